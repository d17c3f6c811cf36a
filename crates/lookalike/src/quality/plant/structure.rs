//! The parts of a text that edits move, drop and replace: paragraphs, sentences, words.

use std::ops::Range;

use crate::text::split_sentences;
use crate::text::unicode::{CharacterClass, character_class};

/// A word, or a character of a script written without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextUnit {
    pub(super) range: Range<usize>,
    /// `true` if it is a word, which spaces part from others.
    pub(super) is_word: bool,
}

/// The words and single characters of a text, in its order. Cost: some ten nanoseconds a character.
pub(super) fn split_units(text: &str) -> Vec<TextUnit> {
    let mut units: Vec<TextUnit> = Vec::new();
    let mut in_word = false;
    for (start, point) in text.char_indices() {
        let end = start + point.len_utf8();
        let class = character_class(point);
        match (class, units.last_mut()) {
            (CharacterClass::Word, Some(word)) if in_word => word.range.end = end,
            (CharacterClass::Word | CharacterClass::Character, _) => units.push(TextUnit {
                range: start..end,
                is_word: class == CharacterClass::Word,
            }),
            _ => {}
        }
        in_word = class == CharacterClass::Word || in_word && class == CharacterClass::Ignorable;
    }
    units
}

/// The sentences of a text without the white space around them; blank ones are left out.
pub(super) fn sentence_ranges(text: &str) -> Vec<Range<usize>> {
    trim_pieces(text, split_sentences(text))
}

/// The lines of a text without the white space around them; blank ones are left out.
pub(super) fn paragraph_ranges(text: &str) -> Vec<Range<usize>> {
    trim_pieces(text, text.split_inclusive('\n'))
}

fn trim_pieces<'t>(text: &str, pieces: impl Iterator<Item = &'t str>) -> Vec<Range<usize>> {
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
    fn words_are_runs_or_single_chinese_characters() {
        let text = "Fast-food 在café里，3.5元";
        let found: Vec<_> = split_units(text)
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
    fn ranges_exclude_surrounding_white_space() {
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
