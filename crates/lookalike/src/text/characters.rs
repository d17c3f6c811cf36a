//! Normalised text as characters, for measures of sequences.
//!
//! The characters are those of the tokens, with one space between two words that follow one another and none
//! beside a character that is a token of its own. Two texts are therefore equal in this form exactly if they
//! are equal after normalisation.
//!
//! Cost: some nanoseconds per character; some tens for text whose characters depend on one another.

use super::charmap::{CharMap, Entry};
use super::normalize::{self, Token};
use crate::recipe::Recipe;

const SPACE: u32 = ' ' as u32;

/// Appends the normalised characters of a text as code points. `map` must be the table of the recipe.
pub(super) fn append(recipe: &Recipe, map: &CharMap, text: &str, into: &mut Vec<u32>) {
    let start = into.len();
    let mut run = Run {
        into,
        start,
        in_word: false,
        parted: false,
        space_due: false,
    };
    for point in text.chars() {
        if !run.character(map, point) {
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
    normalize::tokens(recipe, &characters, |token| match token {
        Token::Word(word) => {
            if std::mem::replace(&mut after_word, true) {
                into.push(SPACE);
            }
            into.extend(word.chars().map(u32::from));
        }
        Token::Character(character) => {
            after_word = false;
            into.push(character.into());
        }
    });
}

struct Run<'a> {
    into: &'a mut Vec<u32>,
    start: usize,
    /// `true` if the last character belongs to a word.
    in_word: bool,
    /// `true` if a separator followed that word.
    parted: bool,
    space_due: bool,
}

impl Run<'_> {
    /// Appends a character. Returns `false` if the text has to be composed as a whole.
    #[inline]
    fn character(&mut self, map: &CharMap, point: char) -> bool {
        let value = u32::from(point);
        if value <= 0xffff {
            return self.act(map, map.basic(value));
        }
        let mut complete = true;
        map.beyond(point, |entry| complete &= self.act(map, entry));
        complete
    }

    #[inline]
    fn act(&mut self, map: &CharMap, entry: Entry) -> bool {
        match entry.kind() {
            Entry::WORD => {
                if self.in_word && self.parted {
                    self.into.push(SPACE);
                }
                self.into.push(entry.value());
                (self.in_word, self.parted) = (true, false);
            }
            Entry::CHARACTER => {
                if std::mem::take(&mut self.space_due) {
                    self.into.push(SPACE);
                }
                self.into.push(entry.value());
                self.in_word = false;
            }
            Entry::BREAK => self.parted = true,
            Entry::IGNORE => {}
            Entry::SPACE => self.space_due = self.into.len() > self.start,
            Entry::EXPAND => {
                let expansion = map.expansion(entry.value());
                return expansion.iter().all(|&entry| self.act(map, entry));
            }
            _ => return false,
        }
        true
    }
}
