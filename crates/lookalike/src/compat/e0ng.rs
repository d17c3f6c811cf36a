//! `1e0ng`: the fingerprints of the Python package `simhash`.
//!
//! The word characters (`\w`) of the text in Python's lower case are joined and cut into all windows of four
//! code points; fewer than four are one feature. The hash is the last bytes of the MD5 digest, big-endian:
//! for example eight bytes for 64 bits.
//!
//! A window has at most 16 bytes. It is therefore always one block of MD5, in which at most five words and
//! the length vary. ASCII windows are looked up in a cache first.
//!
//! Cost: one look-up for every ASCII window, one block of MD5 for every sixteen other windows, and reading
//! the text character by character.

use std::ops::RangeInclusive;

use super::python::{self, LowerCaseTable};
use super::{CompatBuffers, md5_number};
use crate::arch::{Arch, Cpu, Kernel};
use crate::digest::{
    Digest, DigestState, HashCache, LANES, LaneColumns, Md5, ShortMessage, digest_one_block,
    digest_ranges,
};

/// Number of code points in a feature.
const WINDOW_POINTS: usize = 4;

/// Length of the longest window in bytes.
const LONGEST_WINDOW: usize = 16;

/// The fingerprint of a text without word characters: the hash of the empty feature.
pub(super) const EMPTY_FINGERPRINT: u128 = 0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e;

pub(super) fn window_hash(state: DigestState) -> u128 {
    md5_number(state)
}

/// Returns the fingerprint of weighted tokens, for callers that cut texts themselves.
///
/// Token i is `bytes[ends[i - 1]..ends[i]]` and has `weights[i]`. A token with a weight below 1 does not vote, but
/// its weight counts in the total. A bit is set if more than half of the total votes for it.
///
/// # Panics
/// If there are not as many ends as weights, if `ends` do not ascend, or if `bits` exceeds 128.
pub fn fingerprint_weighted_tokens(
    bytes: &[u8],
    ends: &[usize],
    weights: &[i64],
    bits: u32,
) -> u128 {
    assert_eq!(ends.len(), weights.len(), "every token has a weight");
    let starts = std::iter::once(&0).chain(ends);
    let ranges: Vec<_> = starts.zip(ends).map(|(&start, &end)| start..end).collect();
    let chosen: Vec<usize> = (0..ends.len()).filter(|&at| weights[at] > 0).collect();
    let mut votes = [0i64; 128];
    let votes = &mut votes[..bits as usize];
    digest_ranges::<Md5>(Cpu::detect_best(), bytes, &ranges, &chosen, |at, state| {
        add_token_votes(window_hash(state), weights[at], votes);
    });
    let total: i64 = weights.iter().sum();
    let is_set = |&(_, &votes): &(usize, &i64)| 2 * votes > total;
    let set = votes.iter().enumerate().filter(is_set);
    set.map(|(bit, _)| 1 << bit).sum()
}

/// Adds the weight to the votes of every bit that is set. Bits go by halves of 64, so that the loop is one of
/// vector instructions.
fn add_token_votes(hash: u128, weight: i64, votes: &mut [i64]) {
    for (half, votes) in votes.chunks_mut(64).enumerate() {
        let hash = (hash >> (64 * half)) as i64;
        for (bit, votes) in votes.iter_mut().enumerate() {
            *votes += weight & -(hash >> bit & 1);
        }
    }
}

pub(super) fn analyze_windows(cpu: Cpu, text: &str, buffers: &mut CompatBuffers) {
    let mut content = std::mem::take(&mut buffers.bytes);
    let collected = collect_characters(text, python::lower_case_table(), &mut content);
    let bytes = collected.bytes;
    match collected.characters {
        0 => {}
        1..WINDOW_POINTS => buffers.push_hash(window_hash(Md5::digest_message(&content[..bytes]))),
        _ => {
            content[bytes..bytes + LONGEST_WINDOW].fill(0);
            hash_windows(cpu, &content, &collected, buffers);
        }
    }
    buffers.bytes = content;
}

pub(super) fn list_features(text: &str) -> Vec<String> {
    let lowered = python::lower_text(text);
    let words: Vec<char> = lowered
        .into_iter()
        .filter_map(|(lower, is_word)| is_word.then_some(lower))
        .collect();
    match words.len() {
        0 => Vec::new(),
        1..WINDOW_POINTS => vec![words.iter().collect()],
        _ => words
            .windows(WINDOW_POINTS)
            .map(|window| window.iter().collect())
            .collect(),
    }
}

/// Size of the word characters of a text, in lower case.
struct CollectedCharacters {
    bytes: usize,
    characters: usize,
}

/// Writes the word characters of a text to the front of `content`.
fn collect_characters(
    text: &str,
    lower: &LowerCaseTable,
    content: &mut Vec<u8>,
) -> CollectedCharacters {
    // In lower case a character has at most 1.5 times as many bytes, and never more than four.
    content.resize(text.len() + text.len() / 2 + LONGEST_WINDOW, 0);
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
        let copied = copy_ideographs(&source[at..], &mut content[bytes..]);
        at += copied;
        bytes += copied;
        continued += copied / IDEOGRAPH_BYTES * (IDEOGRAPH_BYTES - 1);
        if let Some(character) = text[at..].chars().next().filter(|next| !next.is_ascii()) {
            at = lower.visit_character(text, at, character, |lower, is_word| {
                if is_word {
                    let length = lower.encode_utf8(&mut content[bytes..]).len();
                    bytes += length;
                    continued += length - 1;
                }
            });
        }
    }
    CollectedCharacters {
        bytes,
        characters: bytes - continued,
    }
}

/// Length of an ideograph in bytes.
const IDEOGRAPH_BYTES: usize = 3;

/// Copies the leading ideographs of the main block, and returns the number of bytes copied. They need no
/// look-up, because they are word characters without case. An ideograph at the very end is not copied,
/// because four bytes are read at a time.
#[inline(always)]
fn copy_ideographs(from: &[u8], to: &mut [u8]) -> usize {
    /// U+4E00 to U+9FCC, the range that the package's own expression lists beside `\w`.
    const IDEOGRAPH_RANGE: RangeInclusive<u32> = 0xe4_b8_80..=0xe9_bf_8c;
    let mut copied = 0;
    while let Some(bytes) = from[copied..].first_chunk::<4>()
        && let Some(room) = to[copied..].first_chunk_mut()
        && IDEOGRAPH_RANGE.contains(&(u32::from_be_bytes(*bytes) >> 8))
    {
        *room = *bytes;
        copied += IDEOGRAPH_BYTES;
    }
    copied
}

/// Fills the buffers with the hashes of the windows of `content`. [`LONGEST_WINDOW`] more bytes must follow them.
fn hash_windows(
    cpu: Cpu,
    content: &[u8],
    collected: &CollectedCharacters,
    buffers: &mut CompatBuffers,
) {
    let count = collected.characters + 1 - WINDOW_POINTS;
    // If few windows are ASCII, looking them up costs more than it saves.
    if 4 * collected.bytes > 5 * collected.characters {
        hash_all_windows(cpu, content, count, &mut buffers.low, &mut buffers.high);
        return;
    }
    buffers.low.resize(count, 0);
    buffers.high.resize(count, 0);
    buffers.seen.allocate_slots();
    let mut hashes = WindowHashes {
        cpu,
        content,
        low: &mut buffers.low,
        high: &mut buffers.high,
        seen: &mut buffers.seen,
        unseen: [CharacterWindow::default(); LANES],
        places: [0; LANES],
        count: 0,
    };
    if collected.bytes == collected.characters {
        for first in (0..count).step_by(LANES) {
            hashes.add_windows(first, LANES.min(count - first), |lane| CharacterWindow {
                start: first + lane,
                end: first + lane + WINDOW_POINTS,
            });
        }
    } else {
        let mut cut = WindowCutter::new(content);
        for first in (0..count).step_by(LANES) {
            let lanes = LANES.min(count - first);
            let windows = cut.next_windows(lanes);
            hashes.add_windows(first, lanes, |lane| windows[lane]);
        }
    }
    hashes.flush_windows();
}

/// Appends both halves of the hashes of all windows.
fn hash_all_windows(
    cpu: Cpu,
    content: &[u8],
    count: usize,
    low: &mut Vec<u64>,
    high: &mut Vec<u64>,
) {
    let mut cut = WindowCutter::new(content);
    for first in (0..count).step_by(LANES) {
        let count = LANES.min(count - first);
        let windows = &cut.next_windows(count);
        let hashes = cpu.run(WindowDigests {
            content,
            windows,
            count,
        });
        low.extend_from_slice(&hashes.0[..count]);
        high.extend_from_slice(&hashes.1[..count]);
    }
}

/// The hashes of windows, by position.
struct WindowHashes<'a> {
    cpu: Cpu,
    content: &'a [u8],
    low: &'a mut [u64],
    high: &'a mut [u64],
    seen: &'a mut HashCache,
    /// Windows that wait to be hashed side by side, and their positions.
    unseen: [CharacterWindow; LANES],
    places: [usize; LANES],
    count: usize,
}

impl WindowHashes<'_> {
    /// Adds at most [`LANES`] windows, at the positions from `first` on. A window that is not in the cache
    /// gets a meaningless hash first, which is overwritten when the window is hashed.
    #[inline(always)]
    fn add_windows(
        &mut self,
        first: usize,
        lanes: usize,
        window: impl Fn(usize) -> CharacterWindow,
    ) {
        let mut missing = 0u64;
        for lane in 0..lanes {
            let message = window(lane).ascii_message(self.content).unwrap_or_default();
            let (hash, is_known) = self.seen.probe_slot(message);
            self.low[first + lane] = hash as u64;
            self.high[first + lane] = (hash >> 64) as u64;
            missing |= u64::from(!is_known) << lane;
        }
        while missing != 0 {
            let lane = missing.trailing_zeros() as usize;
            missing &= missing - 1;
            self.unseen[self.count] = window(lane);
            self.places[self.count] = first + lane;
            self.count += 1;
            if self.count == LANES {
                self.flush_windows();
            }
        }
    }

    fn flush_windows(&mut self) {
        let count = std::mem::take(&mut self.count);
        let (low, high) = self.cpu.run(WindowDigests {
            content: self.content,
            windows: &self.unseen,
            count,
        });
        for lane in 0..count {
            let place = self.places[lane];
            (self.low[place], self.high[place]) = (low[lane], high[lane]);
            if let Some(message) = self.unseen[lane].ascii_message(self.content) {
                let hash = u128::from(high[lane]) << 64 | u128::from(low[lane]);
                self.seen.remember_hash(message, hash);
            }
        }
    }
}

/// Computes the lower and upper halves of the hashes of the first `count` windows.
struct WindowDigests<'a> {
    content: &'a [u8],
    windows: &'a [CharacterWindow; LANES],
    count: usize,
}

impl Kernel for WindowDigests<'_> {
    type Output = ([u64; LANES], [u64; LANES]);

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> Self::Output {
        let [a, b, c, d, _] = digest_windows(self.content, &self.windows[..self.count]);
        let join =
            |high: u32, low: u32| u64::from(high.swap_bytes()) << 32 | u64::from(low.swap_bytes());
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            low[lane] = join(c[lane], d[lane]);
            high[lane] = join(a[lane], b[lane]);
        }
        (low, high)
    }
}

/// The byte that follows the message in a block.
const MESSAGE_END: u32 = 0x80;

/// Index of the word of a block that holds the length of a short message in bits.
const LENGTH_WORD: usize = 14;

/// A window of four characters.
#[derive(Clone, Copy, Debug, Default)]
struct CharacterWindow {
    start: usize,
    end: usize,
}

impl CharacterWindow {
    /// Returns the window as a message if all its characters are ASCII.
    #[inline(always)]
    fn ascii_message(self, content: &[u8]) -> Option<ShortMessage> {
        let bytes = content[self.start..].first_chunk();
        let word = u32::from_le_bytes(*bytes?);
        (self.end - self.start == WINDOW_POINTS).then(|| ShortMessage::from_word(word))
    }
}

/// Cuts a text into windows. Every byte behind the text begins a character.
struct WindowCutter<'a> {
    content: &'a [u8],
    /// Start of the eight bytes that follow the current ones.
    next: usize,
    /// Among the current eight bytes, those that begin characters; the highest bit of each byte is the flag.
    beginnings: u64,
    /// Starts of the characters of the next window.
    starts: [usize; WINDOW_POINTS],
}

impl<'a> WindowCutter<'a> {
    #[inline(always)]
    fn new(content: &'a [u8]) -> Self {
        let mut cut = Self {
            content,
            next: 0,
            beginnings: 0,
            starts: [0; WINDOW_POINTS],
        };
        cut.starts = std::array::from_fn(|_| cut.next_start());
        cut
    }

    /// Returns the start of the next character.
    #[inline(always)]
    fn next_start(&mut self) -> usize {
        while self.beginnings == 0 {
            let bytes = self.content[self.next..].first_chunk();
            let bytes = u64::from_le_bytes(*bytes.expect("more bytes follow the last window"));
            // Every byte begins a character except those of the form 10xxxxxx.
            self.beginnings = (!bytes | bytes << 1) & 0x8080_8080_8080_8080;
            self.next += 8;
        }
        let at = self.next - 8 + self.beginnings.trailing_zeros() as usize / 8;
        self.beginnings &= self.beginnings - 1;
        at
    }

    /// Returns the next `count` windows.
    #[inline(always)]
    fn next_windows(&mut self, count: usize) -> [CharacterWindow; LANES] {
        let mut starts = [0; LANES + WINDOW_POINTS];
        starts[..WINDOW_POINTS].copy_from_slice(&self.starts);
        for start in &mut starts[WINDOW_POINTS..WINDOW_POINTS + count] {
            *start = self.next_start();
        }
        self.starts
            .copy_from_slice(&starts[count..count + WINDOW_POINTS]);
        let mut windows = [CharacterWindow::default(); LANES];
        for (lane, window) in windows[..count].iter_mut().enumerate() {
            (window.start, window.end) = (starts[lane], starts[lane + WINDOW_POINTS]);
        }
        windows
    }
}

/// For each length of a window: the mask of its bytes, and [`MESSAGE_END`] in the byte that follows them.
const WINDOW_ENDS: [(u128, u128); LONGEST_WINDOW + 1] = {
    let mut ends = [(u128::MAX, 0); LONGEST_WINDOW + 1];
    let mut length = 0;
    while length < LONGEST_WINDOW {
        ends[length] = (
            !(u128::MAX << (8 * length)),
            (MESSAGE_END as u128) << (8 * length),
        );
        length += 1;
    }
    ends
};

/// Returns the digests of at most [`LANES`] windows.
#[inline(always)]
fn digest_windows(content: &[u8], windows: &[CharacterWindow]) -> LaneColumns<5> {
    let mut words = [[0; LANES]; 1 + LONGEST_WINDOW / 4];
    let mut lengths = [0; LANES];
    for (lane, window) in windows.iter().enumerate() {
        let bytes = content[window.start..].first_chunk();
        let all = u128::from_le_bytes(*bytes.expect("so many bytes follow the last window"));
        let length = window.end - window.start;
        let (kept, end) = WINDOW_ENDS[length];
        let message = all & kept | end;
        for (at, column) in words[..LONGEST_WINDOW / 4].iter_mut().enumerate() {
            column[lane] = (message >> (32 * at)) as u32;
        }
        words[LONGEST_WINDOW / 4][lane] = if length == LONGEST_WINDOW {
            MESSAGE_END
        } else {
            0
        };
        lengths[lane] = 8 * length as u32;
    }
    digest_one_block::<Md5>(windows.len(), |at, lane| match at {
        0..=4 => words[at][lane],
        LENGTH_WORD => lengths[lane],
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(cpu: Cpu, text: &str) -> Vec<u128> {
        let mut buffers = CompatBuffers::default();
        analyze_windows(cpu, text, &mut buffers);
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
                let pick = |at: u64| alphabet[crate::hash::mix_bits(at) as usize % alphabet.len()];
                let text: Vec<char> = (0..length).map(pick).collect();
                let windows: Vec<&[char]> = match text.len() {
                    0 => Vec::new(),
                    1..WINDOW_POINTS => vec![&text],
                    _ => text.windows(WINDOW_POINTS).collect(),
                };
                let of = |window: &[char]| {
                    let text: String = window.iter().collect();
                    window_hash(Md5::digest_message(text.as_bytes()))
                };
                let expected: Vec<u128> = windows.into_iter().map(of).collect();
                let text: String = text.iter().collect();
                for cpu in Cpu::detect_all() {
                    assert_eq!(hashes(cpu, &text), expected, "{} {text}", cpu.name());
                }
            }
        }
    }

    #[test]
    fn ideographs_equal_the_tables() {
        let lower = python::lower_case_table();
        for point in '\u{3000}'..='\u{a000}' {
            for behind in ["", "x", "字"] {
                let text = format!("{point}{behind}");
                let mut to = [0; 8];
                let copied = copy_ideographs(text.as_bytes(), &mut to);
                assert_eq!(
                    copied > 0,
                    !behind.is_empty() && ('\u{4e00}'..='\u{9fcc}').contains(&point)
                );
                if copied > 0 {
                    lower.visit_character(&text, 0, point, |lower, is_word| {
                        assert!(is_word && lower == point, "{point:?}");
                    });
                    assert_eq!(to[..IDEOGRAPH_BYTES], text.as_bytes()[..IDEOGRAPH_BYTES]);
                }
            }
        }
    }

    #[test]
    fn empty_feature_is_the_digest_of_no_bytes() {
        assert_eq!(window_hash(Md5::digest_message(b"")), EMPTY_FINGERPRINT);
    }

    #[test]
    fn characters_can_grow_in_lower_case() {
        let cpu = Cpu::detect_best();
        assert_eq!(
            hashes(cpu, &"Ⱥ".repeat(1000)),
            hashes(cpu, &"ⱥ".repeat(1000))
        );
        assert_eq!(hashes(cpu, "Ⱥ"), hashes(cpu, "ⱥ"));
        assert_eq!(hashes(cpu, "İ.İ"), hashes(cpu, "ii"));
    }
}
