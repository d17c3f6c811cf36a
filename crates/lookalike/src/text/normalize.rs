//! The definition of normalised text and its tokens, one plain step after the other.
//!
//! 1. Every character is replaced: case folding and compatibility mapping in turn until nothing
//!    changes, ignorable characters dropped. With `nfkc`, text that has a Greek iota subscript is
//!    composed canonically before.
//! 2. If the recipe has `nfkc`, the whole text is composed canonically.
//! 3. Traditional characters become simplified ones.
//! 4. The result is cut into tokens by the role of every character.
//!
//! This is what fingerprints mean; it serves documents whose characters depend on their
//! neighbours (combining marks, conjoining jamo), and the tests of the fast path. It runs at some
//! tens of MB/s.

use super::unicode::{self, Class};
use crate::hash;
use crate::recipe::{Recipe, Step, Tokens};

/// A token as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// A run of word characters.
    Word(String),
    /// A character that stands for itself.
    Character(char),
}

impl Token {
    /// The token that a term is.
    pub(super) fn of(term: super::Term<'_>) -> Self {
        match term.text.chars().next() {
            Some(point) if u64::from(point as u32) == term.value => Self::Character(point),
            _ => Self::Word(term.text.to_owned()),
        }
    }

    /// The text.
    pub fn text(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Character(character) => character.to_string(),
        }
    }

    /// The value that features are made from: of a character its code point, of a word the frozen
    /// hash of its UTF-8 bytes.
    pub fn value(&self) -> u64 {
        match self {
            Self::Word(word) => hash::word(word.as_bytes()),
            Self::Character(character) => u64::from(*character as u32),
        }
    }
}

/// What a normalised character does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Break,
    Word,
    Character,
    Ignore,
    Space,
}

/// Appends what `point` becomes before composition.
pub(super) fn replace(recipe: &Recipe, point: char, into: &mut Vec<char>) {
    let drops = |point| recipe.has(Step::ZeroWidth) && unicode::class(point) == Class::Ignorable;
    let start = into.len();
    into.push(point);
    // Folding and compatibility mapping settle after two rounds at most; the third proves it.
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

/// Half- and full-width forms, and the ideographic space.
fn is_wide(point: char) -> bool {
    matches!(point, '\u{3000}' | '\u{ff00}'..='\u{ffef}')
}

/// What is done to the whole text once its characters are replaced.
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

/// The normalised characters of a text.
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

/// The one mark that folds to a letter: the marks behind it, which may stand before it as well,
/// would then belong to that letter. Composed first, texts that differ in this alone are the same.
fn has_iota_subscript(point: char) -> bool {
    matches!(point, '\u{345}' | '\u{1f80}'..='\u{1ffc}')
}

/// What a normalised character does under a recipe.
pub(super) fn role(recipe: &Recipe, point: char) -> Role {
    role_of(recipe, unicode::class(point))
}

/// What normalised characters of a class do under a recipe.
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
