//! `seomoz`: the fingerprints of the Python package `simhash-py` and of packages that follow it.
//!
//! In that package the caller cuts a text into features; a helper returns every window of four tokens. Here
//! the tokens are the words (`\w+`) of the text in Python's lower case, and a feature is four of them with a
//! blank between. The hash is the first eight bytes of MD5, big-endian.

use super::python;
use super::{CompatBuffers, TextRemainder, md5_number};
use crate::arch::Cpu;
use crate::digest::{Digest, DigestState, Md5};

/// Number of words in a feature.
const WINDOW_WORDS: usize = 4;

pub(super) fn window_hash(state: DigestState) -> u128 {
    md5_number(state) >> 64
}

pub(super) fn analyze_words(cpu: Cpu, text: &str, buffers: &mut CompatBuffers) -> TextRemainder {
    let mut joined = std::mem::take(&mut buffers.bytes);
    let mut utf8 = [0; 4];
    join_words(text, |character| {
        joined.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
    });
    let words = std::iter::once(0).chain(
        (0..joined.len())
            .filter(|&at| joined[at] == b' ')
            .map(|at| at + 1),
    );
    let starts: Vec<usize> = words.filter(|_| !joined.is_empty()).collect();
    // A word ends one byte before the next word begins.
    let end = |word: usize| starts.get(word + 1).map_or(joined.len(), |start| start - 1);
    buffers.ranges.extend(
        (WINDOW_WORDS - 1..starts.len()).map(|last| starts[last + 1 - WINDOW_WORDS]..end(last)),
    );
    buffers.hash_ranges::<Md5>(cpu, &joined, window_hash);
    let rest = if (1..WINDOW_WORDS).contains(&starts.len()) {
        TextRemainder::Words(window_hash(Md5::digest_message(&joined)) as u64)
    } else {
        TextRemainder::None
    };
    buffers.bytes = joined;
    rest
}

pub(super) fn list_features(text: &str) -> Vec<String> {
    let lowered = python::lower_text(text);
    let words: Vec<String> = lowered
        .split(|(_, is_word)| !is_word)
        .filter(|word| !word.is_empty())
        .map(|word| word.iter().map(|(lower, _)| lower).collect())
        .collect();
    words
        .windows(WINDOW_WORDS)
        .map(|words| words.join(" "))
        .collect()
}

/// Calls `visit` with the characters of the words of a text, in lower case, with a blank between words.
pub(super) fn join_words(text: &str, mut visit: impl FnMut(char)) {
    let (mut begun, mut parted) = (false, false);
    python::each_lowered(text, |character, is_word| {
        if !is_word {
            parted = begun;
            return;
        }
        if parted {
            visit(' ');
            parted = false;
        }
        begun = true;
        visit(character);
    });
}
