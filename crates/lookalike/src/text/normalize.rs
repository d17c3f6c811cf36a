//! The definition of normalised text and its tokens, in separate plain steps.
//!
//! 1. Every character is replaced: case folding and compatibility mapping alternate until nothing changes,
//!    and ignorable characters are dropped. With `nfkc`, a text that contains a Greek iota subscript is
//!    composed canonically before this step.
//! 2. If the recipe has `nfkc`, the whole text is composed canonically.
//! 3. Traditional characters become simplified ones.
//! 4. The result is cut into tokens by the role of every character.
//!
//! This module defines the meaning of fingerprints. It is used for texts whose characters depend on their
//! neighbours (combining marks, conjoining jamo), and to test the fast path. It processes some tens of MB/s.

use super::unicode::{self, Class};
use crate::hash;
use crate::recipe::{Recipe, Step, Tokens};

/// A token as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// A run of word characters.
    Word(String),
    /// A character that is a token of its own.
    Character(char),
}

impl Token {
    /// Returns the token of a term.
    pub(super) fn of(term: super::Term<'_>) -> Self {
        match term.text.chars().next() {
            Some(point) if u64::from(point as u32) == term.value => Self::Character(point),
            _ => Self::Word(term.text.to_owned()),
        }
    }

    /// Returns the text.
    pub fn text(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Character(character) => character.to_string(),
        }
    }

    /// Returns the value from which features are computed: the code point of a character, or the frozen hash
    /// of the UTF-8 bytes of a word.
    pub fn value(&self) -> u64 {
        match self {
            Self::Word(word) => hash::word(word.as_bytes()),
            Self::Character(character) => u64::from(*character as u32),
        }
    }
}

/// The role of a normalised character in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Break,
    Word,
    Character,
    Ignore,
    Space,
}

/// Appends the replacement of `point` before composition.
pub(super) fn replace(recipe: &Recipe, point: char, into: &mut Vec<char>) {
    let drops = |point| recipe.has(Step::ZeroWidth) && unicode::class(point) == Class::Ignorable;
    let start = into.len();
    into.push(point);
    // Two rounds are always enough for folding and compatibility mapping; the third confirms it.
    for _ in 0..4 {
        let before: Vec<char> = into.drain(start..).collect();
        for &point in before.iter().filter(|&&point| !drops(point)) {
            mapped(recipe, point, into);
        }
        if before == into[start..] {
            return;
        }
    }
}

fn mapped(recipe: &Recipe, point: char, into: &mut Vec<char>) {
    let folded = if recipe.has(Step::Fold) {
        unicode::fold(point)
    } else {
        None
    };
    let own = [point];
    for &point in folded.unwrap_or(&own) {
        let compatible = if recipe.has(Step::Nfkc) || recipe.has(Step::Width) && is_wide(point) {
            unicode::compatibility(point)
        } else {
            None
        };
        into.extend_from_slice(compatible.unwrap_or(&[point]));
    }
}

/// Returns `true` for half- and full-width forms and the ideographic space.
fn is_wide(point: char) -> bool {
    matches!(point, '\u{3000}' | '\u{ff00}'..='\u{ffef}')
}

/// Applies the steps that concern the whole text, after its characters are replaced.
pub(super) fn finish(recipe: &Recipe, characters: &mut Vec<char>) {
    if recipe.has(Step::Nfkc) {
        unicode::compose::nfc(characters);
    }
    if recipe.has(Step::Simplified) {
        for point in characters {
            *point = unicode::simplified(*point).unwrap_or(*point);
        }
    }
}

/// Computes the normalised characters of a text.
pub(super) fn characters(recipe: &Recipe, text: &str, into: &mut Vec<char>) {
    into.clear();
    if recipe.has(Step::Nfkc) && text.chars().any(has_iota_subscript) {
        let mut composed = text.chars().collect();
        unicode::compose::nfc(&mut composed);
        composed
            .into_iter()
            .for_each(|point| replace(recipe, point, into));
    } else {
        text.chars().for_each(|point| replace(recipe, point, into));
    }
    finish(recipe, into);
}

/// Returns `true` for an iota subscript, alone or in a composed letter. It is the only mark that folds to a
/// letter. Other marks, which may be before or behind it, would belong to that letter if they are behind.
/// Composing first makes texts that differ only in this order equal.
fn has_iota_subscript(point: char) -> bool {
    matches!(point, '\u{345}' | '\u{1f80}'..='\u{1ffc}')
}

/// Returns the role of a normalised character under a recipe.
pub(super) fn role(recipe: &Recipe, point: char) -> Role {
    role_of(recipe, unicode::class(point))
}

/// Returns the role of the normalised characters of a class under a recipe.
pub(super) fn role_of(recipe: &Recipe, class: Class) -> Role {
    let cancels_punctuation = recipe.has(Step::Punctuation);
    match (recipe.tokens, class) {
        (Tokens::Words | Tokens::Jieba, Class::Word) => Role::Word,
        (Tokens::Words | Tokens::Jieba, Class::Character) => Role::Character,
        (Tokens::Words | Tokens::Jieba | Tokens::Whitespace, Class::Space) => Role::Break,
        (Tokens::Words | Tokens::Jieba | Tokens::Whitespace, Class::Separator)
            if cancels_punctuation =>
        {
            Role::Break
        }
        (Tokens::Words | Tokens::Jieba, Class::Separator | Class::Ignorable) => Role::Character,
        (Tokens::Whitespace, _) => Role::Word,
        (Tokens::Characters, Class::Space) if recipe.has(Step::NoWhitespace) => Role::Ignore,
        (Tokens::Characters, Class::Space) if recipe.has(Step::Whitespace) => Role::Space,
        (Tokens::Characters, Class::Separator) if cancels_punctuation => Role::Ignore,
        (Tokens::Characters, _) => Role::Character,
    }
}

/// Cuts normalised characters into tokens.
pub(super) fn tokens(recipe: &Recipe, characters: &[char], mut visit: impl FnMut(Token)) {
    let mut word = String::new();
    let mut space_due = false;
    let mut any = false;
    for &point in characters {
        let role = role(recipe, point);
        if matches!(role, Role::Break | Role::Character) && !word.is_empty() {
            visit(Token::Word(std::mem::take(&mut word)));
        }
        match role {
            Role::Word => word.push(point),
            Role::Character => {
                if std::mem::take(&mut space_due) {
                    visit(Token::Character(' '));
                }
                visit(Token::Character(point));
                any = true;
            }
            Role::Space => space_due = any,
            Role::Break | Role::Ignore => {}
        }
    }
    if !word.is_empty() {
        visit(Token::Word(word));
    }
}
