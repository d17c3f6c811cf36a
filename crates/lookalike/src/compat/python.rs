//! Python 3.11's view of text: `str.lower_case_table`, `\w` of `re`, and the white space of
//! `str.split_whitespace`.
//!
//! The tables are those of the interpreter itself (Unicode 14), because Rust's own functions follow the
//! Unicode version of the compiler and call other characters alphanumeric.

mod generated;

use std::ops::Range;
use std::sync::LazyLock;

use generated::{CASED, IGNORED, LOWER, WORD};

use crate::arch::{Arch, BLOCK, Cpu, Kernel};

const PAGE_POINTS: usize = 256;
const PAGE_COUNT: usize = 0x11_0000 / PAGE_POINTS;

/// Flag of a character whose lower case `\w` does not match.
const NO_WORD: u32 = 1 << 31;

const CAPITAL_SIGMA: char = 'Σ';
const DOTTED_I: char = 'İ';

/// The lower case of every character, with [`NO_WORD`] set if `\w` does not match it.
pub(super) struct LowerCaseTable {
    /// Index of every page of characters in `entries`.
    pages: Box<[u16; PAGE_COUNT]>,
    /// Differences between the entry of a character and its code point, so that most pages are equal and
    /// stored once.
    entries: Vec<[u32; PAGE_POINTS]>,
    /// Entries of ASCII as bytes; 0 if `\w` does not match.
    ascii: [u8; 128],
}

/// Returns the tables, which are built on first use.
pub(super) fn lower_case_table() -> &'static LowerCaseTable {
    static LOWER_CASE_TABLES: LazyLock<LowerCaseTable> = LazyLock::new(LowerCaseTable::new);
    &LOWER_CASE_TABLES
}

impl LowerCaseTable {
    fn new() -> Self {
        let mut lowered: Vec<u32> = (0..(PAGE_COUNT * PAGE_POINTS) as u32).collect();
        for [first, last, step, to] in LOWER {
            for point in (first..=last).step_by(step as usize) {
                lowered[point as usize] = point.wrapping_add(to.wrapping_sub(first));
            }
        }
        lowered[CAPITAL_SIGMA as usize] = u32::from('σ');
        lowered[DOTTED_I as usize] = u32::from('i');
        let mut word = vec![false; PAGE_COUNT * PAGE_POINTS];
        for [first, last] in WORD {
            word[first as usize..=last as usize].fill(true);
        }
        let entry = |point: usize| {
            let to = lowered[point];
            (to | if word[to as usize] { 0 } else { NO_WORD }).wrapping_sub(point as u32)
        };
        let mut tables = Self {
            pages: Box::new([0; PAGE_COUNT]),
            entries: Vec::new(),
            ascii: std::array::from_fn(|byte| {
                let entry = entry(byte).wrapping_add(byte as u32);
                if entry & NO_WORD == 0 { entry as u8 } else { 0 }
            }),
        };
        for number in 0..PAGE_COUNT {
            let page = std::array::from_fn(|at| entry(number * PAGE_POINTS + at));
            let known = tables.entries.iter().position(|known| *known == page);
            let place = known.unwrap_or_else(|| {
                tables.entries.push(page);
                tables.entries.len() - 1
            });
            tables.pages[number] = place as u16;
        }
        tables
    }

    /// Returns the lower case of an ASCII character, or 0 if `\w` does not match it.
    #[inline(always)]
    pub(super) fn ascii_word(&self, byte: u8) -> u8 {
        self.ascii[usize::from(byte & 0x7f)]
    }

    /// Returns the lower case of a single character, and whether `\w` matches it. For U+0130 this is only the
    /// first of its two characters, and for U+03A3 it may be wrong, because that depends on its neighbours.
    #[inline(always)]
    fn lower_character(&self, character: char) -> (char, bool) {
        let point = character as usize;
        let page = usize::from(self.pages[point / PAGE_POINTS]);
        let entry = self.entries[page][point % PAGE_POINTS].wrapping_add(point as u32);
        let lower = char::from_u32(entry & !NO_WORD).unwrap_or(character);
        (lower, entry & NO_WORD == 0)
    }

    /// Calls `visit_character` with the lower case of the character at byte `at` of `text`, which may be two
    /// characters, and whether `\w` matches each. Returns the start of the next character.
    #[inline(always)]
    pub(super) fn visit_character(
        &self,
        text: &str,
        at: usize,
        character: char,
        mut visit: impl FnMut(char, bool),
    ) -> usize {
        let next = at + character.len_utf8();
        let (lower, is_word) = self.lower_character(character);
        match character {
            CAPITAL_SIGMA if is_final_sigma(&text[..at], &text[next..]) => visit('ς', true),
            DOTTED_I => {
                visit(lower, is_word);
                visit('\u{307}', false);
            }
            _ => visit(lower, is_word),
        }
        next
    }
}

/// Calls `visit` with the characters of a text in lower case, and whether `\w` matches each.
pub(super) fn each_lowered(text: &str, mut visit: impl FnMut(char, bool)) {
    let (lower, mut at) = (lower_case_table(), 0);
    while let Some(character) = text[at..].chars().next() {
        at = lower.visit_character(text, at, character, &mut visit);
    }
}

/// Returns the characters of a text in lower case, and whether `\w` matches each. This is the definition.
pub(super) fn lower_text(text: &str) -> Vec<(char, bool)> {
    let mut all = Vec::new();
    each_lowered(text, |lower, is_word| all.push((lower, is_word)));
    all
}

/// Returns `true` if a capital sigma between these texts ends a word: a cased character precedes it, and none
/// follows it, not counting the characters that Unicode ignores here.
#[cold]
fn is_final_sigma(before: &str, after: &str) -> bool {
    let cased = |mut characters: &mut dyn Iterator<Item = char>| {
        (&mut characters)
            .find(|&character| !is_in_runs(&IGNORED, character))
            .is_some_and(|character| is_in_runs(&CASED, character))
    };
    cased(&mut before.chars().rev()) && !cased(&mut after.chars())
}

fn is_in_runs(runs: &[[u32; 2]], character: char) -> bool {
    let point = u32::from(character);
    let behind = runs.partition_point(|&[first, _]| first <= point);
    behind > 0 && point <= runs[behind - 1][1]
}

/// Splits a text at white space as `str.split_whitespace` of Python 3 does.
pub(super) fn split_whitespace(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_python_space)
        .filter(|token| !token.is_empty())
}

/// Splits a text at white space as Python 2.7 does (Unicode 5.2), which also splits at U+180E.
pub(super) fn split_like_python_2(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space_of_python_2)
        .filter(|token| !token.is_empty())
}

/// Appends the ranges of the parts that [`split_whitespace`] returns.
pub(super) fn find_words(cpu: Cpu, text: &str, ranges: &mut Vec<Range<usize>>) {
    cpu.run(WordPlaces {
        text,
        is_space: is_python_space,
        ranges,
    });
}

/// Appends the ranges of the parts that [`split_like_python_2`] returns.
pub(super) fn places_like_python_2(cpu: Cpu, text: &str, ranges: &mut Vec<Range<usize>>) {
    cpu.run(WordPlaces {
        text,
        is_space: is_space_of_python_2,
        ranges,
    });
}

/// Finds the parts between white space. It skips ASCII letters in blocks, and decodes only those other
/// characters whose first byte can begin white space.
struct WordPlaces<'a, F> {
    text: &'a str,
    is_space: F,
    ranges: &'a mut Vec<Range<usize>>,
}

impl<F: Fn(char) -> bool> WordPlaces<'_, F> {
    /// Returns the length of the white space that begins at byte `at`, or `None` if none begins there.
    #[inline(always)]
    fn whitespace_length(&self, at: usize) -> Option<usize> {
        let first = match self.text.as_bytes()[at] {
            byte if byte.is_ascii() => char::from(byte),
            0xc2 | 0xe1..=0xe3 => self.text[at..].chars().next()?,
            _ => return None,
        };
        (self.is_space)(first).then(|| first.len_utf8())
    }
}

impl<F: Fn(char) -> bool> Kernel for WordPlaces<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let (blocks, rest) = self.text.as_bytes().as_chunks::<BLOCK>();
        let mut last = [b'.'; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let mut copy = [0; BLOCK];
        let mut start = 0;
        for (number, block) in blocks.iter().chain([&last]).enumerate() {
            let masks = arch.ascii_block::<false>(block, &mut copy);
            let mut candidates = masks.space | masks.non_ascii;
            while candidates != 0 {
                let at = number * BLOCK + candidates.trailing_zeros() as usize;
                candidates &= candidates - 1;
                if let Some(width) = self.whitespace_length(at) {
                    if start < at {
                        self.ranges.push(start..at);
                    }
                    start = at + width;
                }
            }
        }
        if start < self.text.len() {
            self.ranges.push(start..self.text.len());
        }
    }
}

fn is_space_of_python_2(character: char) -> bool {
    is_python_space(character) || character == '\u{180e}'
}

/// Returns `true` for white space by Unicode, and for the information separators, which Python adds.
fn is_python_space(character: char) -> bool {
    matches!(character,
        '\t'..='\r' | '\u{1c}'..='\u{1f}' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}'
        | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(text: &str) -> (String, String) {
        let all = lower_text(text);
        let words = all.iter().filter(|(_, is_word)| *is_word);
        (
            all.iter().map(|(lower, _)| lower).collect(),
            words.map(|(lower, _)| lower).collect(),
        )
    }

    #[test]
    fn lower_case_depends_on_context() {
        for (text, expected) in [
            ("ΟΔΟΣ", "οδος"),
            ("Σ", "σ"),
            ("ΑΣ.", "ας."),
            ("ΑΣ.Α", "ασ.α"),
            ("Α.Σ", "α.ς"),
            ("ΑΣ\u{301}Α", "ασ\u{301}α"),
            ("İI", "i\u{307}i"),
            ("ẞÀȺꟀ", "ßàⱥꟁ"),
        ] {
            assert_eq!(both(text).0, expected);
        }
    }

    #[test]
    fn words_are_letters_numbers_and_underscores() {
        let (_, words) = both("a½²①_ー・मा é\u{301}\u{200d}𝟘😀\u{ad}漢ゟ٣Ⅷ");
        assert_eq!(words, "a½²①_ーमé𝟘漢ゟ٣ⅷ");
        for byte in 0..128u8 {
            let (lower, words) = both(&char::from(byte).to_string());
            let expected = if words.is_empty() {
                0
            } else {
                lower.as_bytes()[0]
            };
            assert_eq!(super::lower_case_table().ascii_word(byte), expected);
        }
    }

    #[test]
    fn python_splits_at_extra_separators() {
        let text = "a\u{1c}b\u{1f}c\u{180e}d\u{85}\u{3000}e\u{200b}f";
        let parts: Vec<_> = split_whitespace(text).collect();
        assert_eq!(parts, ["a", "b", "c\u{180e}d", "e\u{200b}f"]);
        let parts: Vec<_> = split_like_python_2(text).collect();
        assert_eq!(parts, ["a", "b", "c", "d", "e\u{200b}f"]);
    }

    #[test]
    fn places_equal_the_parts_at_every_length() {
        let alphabet: Vec<char> = "abcdefgh \t\n\0\u{1c}\u{7f}\u{85}\u{a0}é\u{1680}\u{180e}ᚁ\u{2003}\u{200b}\u{205f}、\u{3000}漢𝟘".chars().collect();
        for number in 0..2000u64 {
            // Some texts are mostly letters, some mostly not.
            let letters = [8, 11, alphabet.len()][number as usize % 3];
            let text: String = (0..number % 211)
                .map(|at| alphabet[crate::hash::mix_bits(number << 16 | at) as usize % letters])
                .collect();
            for cpu in Cpu::detect_all() {
                let mut ranges = Vec::new();
                find_words(cpu, &text, &mut ranges);
                let found = ranges.drain(..).map(|range| &text[range]);
                assert!(found.eq(split_whitespace(&text)), "{} {text:?}", cpu.name());
                places_like_python_2(cpu, &text, &mut ranges);
                let found = ranges.drain(..).map(|range| &text[range]);
                assert!(
                    found.eq(split_like_python_2(&text)),
                    "{} {text:?}",
                    cpu.name()
                );
            }
        }
    }

    #[test]
    fn white_space_includes_information_separators() {
        for point in '\0'..=char::MAX {
            let expected = point.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&point);
            assert_eq!(is_python_space(point), expected, "{point:?}");
            let place = WordPlaces {
                text: &point.to_string(),
                is_space: is_python_space,
                ranges: &mut Vec::new(),
            };
            assert_eq!(place.whitespace_length(0).is_some(), expected, "{point:?}");
        }
    }
}
