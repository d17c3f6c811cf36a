//! The parts of a text that edits move, drop and replace: paragraphs, sentences, words.

use std::ops::Range;

use crate::text::sentences;
use crate::text::unicode::{Class, class};

/// A word, or a character of a script written without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) range: Range<usize>,
    /// Whether it is a word, which spaces part from others.
    pub(super) is_word: bool,
}

/// The words and single characters of a text, in its order. Cost: some ten nanoseconds a character.
pub(super) fn units(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut in_word = false;
    for (start, point) in text.char_indices() {
        let end = start + point.len_utf8();
        let class = class(point);
        match (class, units.last_mut()) {
            (Class::Word, Some(word)) if in_word => word.range.end = end,
            (Class::Word | Class::Character, _) => units.push(Unit {
                range: start..end,
                is_word: class == Class::Word,
            }),
            _ => {}
        }
        in_word = class == Class::Word || in_word && class == Class::Ignorable;
    }
    units
}

/// The sentences of a text without the white space around them; blank ones are left out.
pub(super) fn sentence_ranges(text: &str) -> Vec<Range<usize>> {
    trimmed(text, sentences(text))
}

/// The lines of a text without the white space around them; blank ones are left out.
pub(super) fn paragraph_ranges(text: &str) -> Vec<Range<usize>> {
    trimmed(text, text.split_inclusive('\n'))
}

fn trimmed<'t>(text: &str, pieces: impl Iterator<Item = &'t str>) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut ranges = Vec::new();
    for piece in pieces {
        let from = start + (piece.len() - piece.trim_start().len());
        let to = from + piece.trim().len();
        if from < to {
            ranges.push(from..to);
        }
        start += piece.len();
    }
    debug_assert_eq!(start, text.len());
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_and_chinese_characters_stand_alone() {
        let text = "Fast-food 在café里，3.5元";
        let found: Vec<_> = units(text)
            .into_iter()
            .map(|unit| (text[unit.range].to_owned(), unit.is_word))
            .collect();
        let expected = [
            ("Fast", true),
            ("food", true),
            ("在", false),
            ("café", true),
            ("里", false),
            ("3", true),
            ("5", true),
            ("元", false),
        ];
        let expected: Vec<_> = expected
            .map(|(text, is_word)| (text.to_owned(), is_word))
            .into();
        assert_eq!(found, expected);
    }

    #[test]
    fn ranges_hold_the_text_without_white_space_around_it() {
        let text = "One here. Two!\n\n  三。四 \n";
        let shown = |ranges: Vec<Range<usize>>| -> Vec<&str> {
            ranges.into_iter().map(|range| &text[range]).collect()
        };
        assert_eq!(
            shown(sentence_ranges(text)),
            ["One here.", "Two!", "三。", "四"]
        );
        assert_eq!(shown(paragraph_ranges(text)), ["One here. Two!", "三。四"]);
    }
}
