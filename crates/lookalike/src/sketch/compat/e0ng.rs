//! `1e0ng`: the fingerprints of the Python package `simhash`.
//!
//! The word characters (`\w`) of the text in Python's lower case, one after the other, are cut into
//! all windows of four code points; fewer than four are one feature. The hash is the end of MD5,
//! big-endian: eight bytes for 64 bits.
//!
//! A window has at most 16 bytes, so it is always one block of MD5, of which at most five words and
//! the length vary; of a window of ASCII a single word does.
//!
//! Cost: a block of MD5 for every sixteen windows, and reading the text a character at a time.

use super::python::{self, Lower};
use super::{Buffers, md5_number};
use crate::arch::{Arch, Cpu, Kernel};
use crate::digest::{Columns, LANES, Md5, State, digest, one_block};

/// Code points of a feature.
const WINDOW: usize = 4;

/// Bytes of the longest window.
const LONGEST: usize = 16;

/// The fingerprint of a text without word characters: the hash of the empty feature.
pub(super) const EMPTY: u128 = 0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e;

pub(super) fn hash(state: State) -> u128 {
    md5_number(state)
}

pub(super) fn analyze(cpu: Cpu, text: &str, buffers: &mut Buffers) {
    let mut content = std::mem::take(&mut buffers.bytes);
    let collected = collect(text, python::lower(), &mut content);
    let Collected { bytes, characters } = collected;
    match characters {
        0 => {}
        1..WINDOW => buffers.push(hash(digest::<Md5>(&content[..bytes]))),
        _ => {
            let windows = characters + 1 - WINDOW;
            let lanes = windows.next_multiple_of(LANES);
            content.resize(bytes + lanes + 2 * LONGEST, 0);
            buffers.low.resize(lanes, 0);
            buffers.high.resize(lanes, 0);
            cpu.run(Windows {
                content: &content,
                count: windows,
                is_ascii: bytes == characters,
                low: &mut buffers.low,
                high: &mut buffers.high,
            });
            buffers.low.truncate(windows);
            buffers.high.truncate(windows);
        }
    }
    buffers.bytes = content;
}

pub(super) fn features(text: &str) -> Vec<String> {
    let lowered = python::lowered(text);
    let words: Vec<char> = lowered
        .into_iter()
        .filter_map(|(lower, is_word)| is_word.then_some(lower))
        .collect();
    match words.len() {
        0 => Vec::new(),
        1..WINDOW => vec![words.iter().collect()],
        _ => words
            .windows(WINDOW)
            .map(|window| window.iter().collect())
            .collect(),
    }
}

/// How much of the text is word characters, in lower case.
struct Collected {
    bytes: usize,
    characters: usize,
}

/// Writes the word characters of a text to the front of `content`.
fn collect(text: &str, lower: &Lower, content: &mut Vec<u8>) -> Collected {
    // A character in lower case takes at most half as many bytes again, and never more than four.
    content.resize(text.len() + text.len() / 2 + 4, 0);
    let source = text.as_bytes();
    let (mut at, mut bytes, mut continued) = (0, 0, 0);
    while at < source.len() {
        let stretch = source[at..].iter().take_while(|byte| byte.is_ascii());
        for &byte in stretch {
            let lower = lower.ascii_word(byte);
            content[bytes] = lower;
            bytes += usize::from(lower != 0);
            at += 1;
        }
        while let Some(character) = text[at..].chars().next().filter(|next| !next.is_ascii()) {
            at = lower.visit(text, at, character, |lower, is_word| {
                if is_word {
                    let length = lower.encode_utf8(&mut content[bytes..]).len();
                    bytes += length;
                    continued += length - 1;
                }
            });
        }
    }
    Collected {
        bytes,
        characters: bytes - continued,
    }
}

/// Fills the first `count` of `low` and `high`, whose lengths are that rounded up to a multiple of
/// [`LANES`], with the hashes of the windows of `content`, behind which there are zeros enough for as
/// many windows.
struct Windows<'a> {
    content: &'a [u8],
    count: usize,
    is_ascii: bool,
    low: &'a mut [u64],
    high: &'a mut [u64],
}

impl Kernel for Windows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        let Self {
            content,
            count,
            is_ascii,
            low,
            high,
        } = self;
        let (low, _) = low.as_chunks_mut::<LANES>();
        let (high, _) = high.as_chunks_mut::<LANES>();
        let mut window = Window::first(content);
        for (group, (low, high)) in low.iter_mut().zip(high).enumerate() {
            let count = count - group * LANES;
            let states = if is_ascii {
                ascii_windows(count, &content[group * LANES..][..LANES + WINDOW])
            } else {
                windows(count, content, &mut window)
            };
            let [a, b, c, d, _] = &states;
            let join = |high: u32, low: u32| {
                u64::from(high.swap_bytes()) << 32 | u64::from(low.swap_bytes())
            };
            for lane in 0..LANES {
                low[lane] = join(c[lane], d[lane]);
                high[lane] = join(a[lane], b[lane]);
            }
        }
    }
}

/// The word of a block that follows a message of four bytes, and one of none.
const END: u32 = 0x80;

/// The word of a block that holds the length of a short message in bits.
const LENGTH: usize = 14;

/// The digests of the windows of four bytes from the first `count` bytes on.
#[inline(always)]
fn ascii_windows(count: usize, content: &[u8]) -> Columns<5> {
    let mut words = [0; LANES];
    for (lane, word) in words.iter_mut().enumerate() {
        let bytes = content[lane..][..WINDOW].try_into();
        *word = u32::from_le_bytes(bytes.expect("a window of ASCII is four bytes"));
    }
    one_block::<Md5>(count, |at, lane| match at {
        0 => words[lane],
        1 => END,
        LENGTH => 8 * WINDOW as u32,
        _ => 0,
    })
}

/// A window of any characters: four of them, or fewer behind the end.
struct Window {
    start: usize,
    end: usize,
}

impl Window {
    #[inline(always)]
    fn first(content: &[u8]) -> Self {
        let end = (0..WINDOW).fold(0, |at, _| at + width(content[at]));
        Self { start: 0, end }
    }

    #[inline(always)]
    fn advance(&mut self, content: &[u8]) {
        self.start += width(content[self.start]);
        self.end += width(content[self.end]);
    }
}

/// Bytes of the character that begins with this one: two bits less one by its upper half.
#[inline(always)]
fn width(first: u8) -> usize {
    1 + (0xe500_0000_u32 >> (2 * (first >> 4)) & 3) as usize
}

/// The digests of `count` windows, or as many as there are lanes, from `window` on.
#[inline(always)]
fn windows(count: usize, content: &[u8], window: &mut Window) -> Columns<5> {
    let mut words = [[0; LANES]; 1 + LONGEST / 4];
    let mut lengths = [0; LANES];
    for lane in 0..count.min(LANES) {
        let bytes = content[window.start..][..LONGEST].try_into();
        let all = u128::from_le_bytes(bytes.expect("so many were asked for"));
        let length = window.end - window.start;
        let bits = 8 * length as u32;
        let (message, last) = if length == LONGEST {
            (all, END)
        } else {
            (all & !(u128::MAX << bits) | u128::from(END) << bits, 0)
        };
        for (at, column) in words[..LONGEST / 4].iter_mut().enumerate() {
            column[lane] = (message >> (32 * at)) as u32;
        }
        words[LONGEST / 4][lane] = last;
        lengths[lane] = bits;
        window.advance(content);
    }
    one_block::<Md5>(count, |at, lane| match at {
        0..=4 => words[at][lane],
        LENGTH => lengths[lane],
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(cpu: Cpu, text: &str) -> Vec<u128> {
        let mut buffers = Buffers::default();
        analyze(cpu, text, &mut buffers);
        let both = buffers.low.iter().zip(&buffers.high);
        both.map(|(&low, &high)| u128::from(high) << 64 | u128::from(low))
            .collect()
    }

    #[test]
    fn every_window_has_the_hash_of_its_bytes() {
        let alphabets = ["abcdefg", "aß漢𝟘", "漢字仮名", "𝟘𝟙𝟚", "éèê"];
        for alphabet in alphabets {
            let alphabet: Vec<char> = alphabet.chars().collect();
            for length in (0..200).chain([255, 256, 257, 1000]) {
                let pick = |at: u64| alphabet[crate::hash::mix(at) as usize % alphabet.len()];
                let text: Vec<char> = (0..length).map(pick).collect();
                let windows: Vec<&[char]> = match text.len() {
                    0 => Vec::new(),
                    1..WINDOW => vec![&text],
                    _ => text.windows(WINDOW).collect(),
                };
                let of = |window: &[char]| {
                    let text: String = window.iter().collect();
                    hash(digest::<Md5>(text.as_bytes()))
                };
                let expected: Vec<u128> = windows.into_iter().map(of).collect();
                let text: String = text.iter().collect();
                for cpu in Cpu::all() {
                    assert_eq!(hashes(cpu, &text), expected, "{} {text}", cpu.name());
                }
            }
        }
    }

    #[test]
    fn the_empty_feature_is_the_digest_of_nothing() {
        assert_eq!(hash(digest::<Md5>(b"")), EMPTY);
    }

    #[test]
    fn characters_that_grow_in_lower_case_find_room() {
        let cpu = Cpu::best();
        assert_eq!(
            hashes(cpu, &"Ⱥ".repeat(1000)),
            hashes(cpu, &"ⱥ".repeat(1000))
        );
        assert_eq!(hashes(cpu, "Ⱥ"), hashes(cpu, "ⱥ"));
        assert_eq!(hashes(cpu, "İ.İ"), hashes(cpu, "ii"));
    }
}
