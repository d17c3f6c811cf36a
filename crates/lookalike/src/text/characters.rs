//! Normalised text as characters, for measures of sequences.
//!
//! The characters are those of the tokens, with one space between two words that follow one another and none
//! beside a character that is a token of its own. Two texts are therefore equal in this form exactly if they
//! are equal after normalisation.
//!
//! Cost: some nanoseconds per character; some tens for text whose characters depend on one another.

use super::charmap::{CharMap, CharMapEntry};
use super::normalize::{self, TextToken};
use crate::recipe::Recipe;

const SPACE: u32 = ' ' as u32;

/// Appends the normalised characters of a text as code points. `map` must be the table of the recipe.
pub(super) fn append_characters(recipe: &Recipe, map: &CharMap, text: &str, into: &mut Vec<u32>) {
    let start = into.len();
    let mut run = CharacterRun {
        into,
        start,
        in_word: false,
        parted: false,
        space_due: false,
    };
    for point in text.chars() {
        if !run.push_character(map, point) {
            into.truncate(start);
            return by_definition(recipe, text, into);
        }
    }
}

/// Appends the same characters by the definition.
pub(super) fn by_definition(recipe: &Recipe, text: &str, into: &mut Vec<u32>) {
    let mut characters = Vec::new();
    normalize::characters(recipe, text, &mut characters);
    let mut after_word = false;
    normalize::cut_tokens(recipe, &characters, |token| match token {
        TextToken::Word(word) => {
            if std::mem::replace(&mut after_word, true) {
                into.push(SPACE);
            }
            into.extend(word.chars().map(u32::from));
        }
        TextToken::Character(character) => {
            after_word = false;
            into.push(character.into());
        }
    });
}

struct CharacterRun<'a> {
    into: &'a mut Vec<u32>,
    start: usize,
    /// `true` if the last character belongs to a word.
    in_word: bool,
    /// `true` if a separator followed that word.
    parted: bool,
    space_due: bool,
}

impl CharacterRun<'_> {
    /// Appends a character. Returns `false` if the text has to be composed as a whole.
    #[inline]
    fn push_character(&mut self, map: &CharMap, point: char) -> bool {
        let value = u32::from(point);
        if value <= 0xffff {
            return self.apply_entry(map, map.basic_entry(value));
        }
        let mut complete = true;
        map.visit_supplementary(point, |entry| complete &= self.apply_entry(map, entry));
        complete
    }

    #[inline]
    fn apply_entry(&mut self, map: &CharMap, entry: CharMapEntry) -> bool {
        match entry.entry_kind() {
            CharMapEntry::WORD => {
                if self.in_word && self.parted {
                    self.into.push(SPACE);
                }
                self.into.push(entry.entry_value());
                (self.in_word, self.parted) = (true, false);
            }
            CharMapEntry::CHARACTER => {
                if std::mem::take(&mut self.space_due) {
                    self.into.push(SPACE);
                }
                self.into.push(entry.entry_value());
                self.in_word = false;
            }
            CharMapEntry::BREAK => self.parted = true,
            CharMapEntry::IGNORE => {}
            CharMapEntry::SPACE => self.space_due = self.into.len() > self.start,
            CharMapEntry::EXPAND => {
                let expansion = map.expansion_at(entry.entry_value());
                return expansion.iter().all(|&entry| self.apply_entry(map, entry));
            }
            _ => return false,
        }
        true
    }
}
