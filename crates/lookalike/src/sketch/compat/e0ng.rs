//! `1e0ng`: the fingerprints of the Python package `simhash`.
//!
//! The word characters (`\w`) of the text in Python's lower case, one after the other, are cut into
//! all windows of four code points; fewer than four are one feature. The hash is the end of MD5,
//! big-endian: eight bytes for 64 bits.
//!
//! A window has at most 16 bytes, so it is always one block of MD5, of which at most five words and
//! the length vary. Those of ASCII are looked up first among the ones that came before.
//!
//! Cost: a look-up for every window of ASCII, a block of MD5 for every sixteen of all others, and
//! reading the text a character at a time.

use super::python::{self, Lower};
use super::{Buffers, md5_number};
use crate::arch::{Arch, Cpu, Kernel};
use crate::digest::{Columns, LANES, Md5, Seen, Short, State, digest, one_block};

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
    let bytes = collected.bytes;
    match collected.characters {
        0 => {}
        1..WINDOW => buffers.push(hash(digest::<Md5>(&content[..bytes]))),
        _ => {
            content.resize(bytes + LONGEST, 0);
            hash_windows(cpu, &content, &collected, buffers);
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

/// Fills the buffers with the hashes of the windows of `content`, behind which [`LONGEST`] bytes follow.
fn hash_windows(cpu: Cpu, content: &[u8], collected: &Collected, buffers: &mut Buffers) {
    let count = collected.characters + 1 - WINDOW;
    buffers.low.resize(count, 0);
    buffers.high.resize(count, 0);
    // Looking up costs more than it spares where few windows are ASCII.
    if 4 * collected.bytes > 5 * collected.characters {
        let halves = (&mut buffers.low[..], &mut buffers.high[..]);
        hash_all(cpu, content, halves);
        return;
    }
    buffers.seen.prepare();
    let mut hashes = Hashes {
        cpu,
        content,
        low: &mut buffers.low,
        high: &mut buffers.high,
        seen: &mut buffers.seen,
        unseen: [Window::default(); LANES],
        places: [0; LANES],
        count: 0,
    };
    if collected.bytes == collected.characters {
        for first in (0..count).step_by(LANES) {
            hashes.add(first, LANES.min(count - first), |lane| Window {
                start: first + lane,
                end: first + lane + WINDOW,
            });
        }
    } else {
        let mut window = Window::first(content);
        for first in (0..count).step_by(LANES) {
            let lanes = LANES.min(count - first);
            let windows = window.take(content, lanes);
            hashes.add(first, lanes, |lane| windows[lane]);
        }
    }
    hashes.flush();
}

/// Fills both halves with the hashes of as many windows.
fn hash_all(cpu: Cpu, content: &[u8], (low, high): (&mut [u64], &mut [u64])) {
    let mut window = Window::first(content);
    for (low, high) in low.chunks_mut(LANES).zip(high.chunks_mut(LANES)) {
        let count = low.len();
        let windows = &window.take(content, count);
        let hashes = cpu.run(Windows {
            content,
            windows,
            count,
        });
        low.copy_from_slice(&hashes.0[..count]);
        high.copy_from_slice(&hashes.1[..count]);
    }
}

/// The hashes of windows, by their places among all.
struct Hashes<'a> {
    cpu: Cpu,
    content: &'a [u8],
    low: &'a mut [u64],
    high: &'a mut [u64],
    seen: &'a mut Seen,
    /// Windows that wait to be hashed side by side, and their places.
    unseen: [Window; LANES],
    places: [usize; LANES],
    count: usize,
}

impl Hashes<'_> {
    /// Adds the windows of at most [`LANES`] places from `first` on. What stands in a place for one that
    /// is not remembered is written over when that has been hashed.
    #[inline(always)]
    fn add(&mut self, first: usize, lanes: usize, window: impl Fn(usize) -> Window) {
        let mut missing = 0u64;
        for lane in 0..lanes {
            let message = window(lane).ascii(self.content).unwrap_or_default();
            let (hash, is_known) = self.seen.look_up(message);
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
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        let count = std::mem::take(&mut self.count);
        let (low, high) = self.cpu.run(Windows {
            content: self.content,
            windows: &self.unseen,
            count,
        });
        for lane in 0..count {
            let place = self.places[lane];
            (self.low[place], self.high[place]) = (low[lane], high[lane]);
            if let Some(message) = self.unseen[lane].ascii(self.content) {
                let hash = u128::from(high[lane]) << 64 | u128::from(low[lane]);
                self.seen.put(message, hash);
            }
        }
    }
}

/// The lower and upper halves of the hashes of the first `count` of some windows.
struct Windows<'a> {
    content: &'a [u8],
    windows: &'a [Window; LANES],
    count: usize,
}

impl Kernel for Windows<'_> {
    type Output = ([u64; LANES], [u64; LANES]);

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> Self::Output {
        let [a, b, c, d, _] = digests(self.content, &self.windows[..self.count]);
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

/// The byte of a block that follows the message.
const END: u32 = 0x80;

/// The word of a block that holds the length of a short message in bits.
const LENGTH: usize = 14;

/// A window of four characters.
#[derive(Clone, Copy, Debug, Default)]
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

    /// This and the windows behind it, so many; it is then the one that follows them.
    #[inline(always)]
    fn take(&mut self, content: &[u8], count: usize) -> [Self; LANES] {
        let mut windows = [Self::default(); LANES];
        for window in &mut windows[..count] {
            *window = *self;
            self.advance(content);
        }
        windows
    }

    /// The window as a message, if all its characters are ASCII.
    #[inline(always)]
    fn ascii(self, content: &[u8]) -> Option<Short> {
        let bytes = content[self.start..].first_chunk();
        let word = u32::from_le_bytes(*bytes?);
        (self.end - self.start == WINDOW).then(|| Short::of_word(word))
    }
}

/// Bytes of the character that begins with this one: two bits less one by its upper half.
#[inline(always)]
fn width(first: u8) -> usize {
    1 + (0xe500_0000_u32 >> (2 * (first >> 4)) & 3) as usize
}

/// The digests of at most [`LANES`] windows.
#[inline(always)]
fn digests(content: &[u8], windows: &[Window]) -> Columns<5> {
    let mut words = [[0; LANES]; 1 + LONGEST / 4];
    let mut lengths = [0; LANES];
    for (lane, window) in windows.iter().enumerate() {
        let bytes = content[window.start..].first_chunk();
        let all = u128::from_le_bytes(*bytes.expect("so many bytes follow the last window"));
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
    }
    one_block::<Md5>(windows.len(), |at, lane| match at {
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
