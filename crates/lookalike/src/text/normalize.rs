//! The definition of normalised text and its tokens, in separate plain steps.
//!
//! 1. Every character is replaced: case folding and compatibility mapping alternate until nothing changes,
//!    and ignorable characters are dropped. With `nfkc`, a text that contains a Greek iota subscript is
//!    composed canonically before this step.
//! 2. If the recipe has `nfkc`, the whole text is composed canonically.
//! 3. Traditional characters become simplified ones, then variants become common forms.
//! 4. The result is cut into tokens by the role of every character.
//!
//! This module defines the meaning of fingerprints. It is used for texts whose characters depend on their
//! neighbours (combining marks, conjoining jamo), and to test the fast path. It processes some tens of MB/s.

use super::unicode::{self, CharacterClass};
use crate::hash;
use crate::recipe::{NormalizationStep, Recipe, TokenKind};

/// A token as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextToken {
    /// A run of word characters.
    Word(String),
    /// A character that is a token of its own.
    Character(char),
}

impl TextToken {
    /// Returns the token of a term.
    pub(super) fn from_term(term: super::SpelledTerm<'_>) -> Self {
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
    pub fn token_value(&self) -> u64 {
        match self {
            Self::Word(word) => hash::hash_word(word.as_bytes()),
            Self::Character(character) => u64::from(*character as u32),
        }
    }
}

/// The role of a normalised character in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharacterRole {
    Break,
    Word,
    Character,
    Ignore,
    Space,
}

/// Appends the replacement of `point` before composition.
pub(super) fn replace_character(recipe: &Recipe, point: char, into: &mut Vec<char>) {
    let drops = |point| {
        recipe.has_step(NormalizationStep::ZeroWidth)
            && unicode::character_class(point) == CharacterClass::Ignorable
    };
    let start = into.len();
    into.push(point);
    // Two rounds are always enough for folding and compatibility mapping; the third confirms it.
    for _ in 0..4 {
        let before: Vec<char> = into.drain(start..).collect();
        for &point in before.iter().filter(|&&point| !drops(point)) {
            map_character(recipe, point, into);
        }
        if before == into[start..] {
            return;
        }
    }
}

fn map_character(recipe: &Recipe, point: char, into: &mut Vec<char>) {
    let folded = if recipe.has_step(NormalizationStep::Fold) {
        unicode::fold_case(point)
    } else {
        None
    };
    let own = [point];
    for &point in folded.unwrap_or(&own) {
        let compatible = if recipe.has_step(NormalizationStep::Nfkc)
            || recipe.has_step(NormalizationStep::Width) && is_wide(point)
        {
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
pub(super) fn finish_characters(recipe: &Recipe, characters: &mut Vec<char>) {
    if recipe.has_step(NormalizationStep::Nfkc) {
        unicode::compose::normalize_nfc(characters);
    }
    if recipe.has_step(NormalizationStep::Simplified) {
        for point in &mut *characters {
            *point = unicode::simplified(*point).unwrap_or(*point);
        }
    }
    if recipe.has_step(NormalizationStep::Variants) {
        for point in characters {
            *point = unicode::common_variant(*point).unwrap_or(*point);
        }
    }
}

/// Computes the normalised characters of a text.
pub(super) fn characters(recipe: &Recipe, text: &str, into: &mut Vec<char>) {
    let composes_first =
        recipe.has_step(NormalizationStep::Nfkc) && text.chars().any(has_iota_subscript);
    compose_characters(recipe, text, composes_first, into);
}

/// Computes the normalised characters of a text, or of a part of one whose ends nothing composes across. With
/// `composes_first` they are composed before they are replaced, too.
pub(super) fn compose_characters(
    recipe: &Recipe,
    text: &str,
    composes_first: bool,
    into: &mut Vec<char>,
) {
    into.clear();
    if composes_first {
        let mut composed = text.chars().collect();
        unicode::compose::normalize_nfc(&mut composed);
        composed
            .into_iter()
            .for_each(|point| replace_character(recipe, point, into));
    } else {
        text.chars()
            .for_each(|point| replace_character(recipe, point, into));
    }
    finish_characters(recipe, into);
}

/// Returns `true` for an iota subscript, alone or in a composed letter. It is the only mark that folds to a
/// letter. Other marks, which may be before or behind it, would belong to that letter if they are behind.
/// Composing first makes texts that differ only in this order equal.
pub(super) fn has_iota_subscript(point: char) -> bool {
    matches!(point, '\u{345}' | '\u{1f80}'..='\u{1ffc}')
}

/// Returns the role of a normalised character under a recipe.
pub(super) fn character_role(recipe: &Recipe, point: char) -> CharacterRole {
    class_role(recipe, unicode::character_class(point))
}

/// Returns the role of the normalised characters of a class under a recipe.
pub(super) fn class_role(recipe: &Recipe, class: CharacterClass) -> CharacterRole {
    let cancels_punctuation = recipe.has_step(NormalizationStep::Punctuation);
    match (recipe.tokens, class) {
        (TokenKind::Words | TokenKind::Jieba, CharacterClass::Word) => CharacterRole::Word,
        (TokenKind::Words | TokenKind::Jieba, CharacterClass::Character) => {
            CharacterRole::Character
        }
        (TokenKind::Words | TokenKind::Jieba | TokenKind::Whitespace, CharacterClass::Space) => {
            CharacterRole::Break
        }
        (
            TokenKind::Words | TokenKind::Jieba | TokenKind::Whitespace,
            CharacterClass::Separator,
        ) if cancels_punctuation => CharacterRole::Break,
        (
            TokenKind::Words | TokenKind::Jieba,
            CharacterClass::Separator | CharacterClass::Ignorable,
        ) => CharacterRole::Character,
        (TokenKind::Whitespace, _) => CharacterRole::Word,
        (TokenKind::Characters, CharacterClass::Space)
            if recipe.has_step(NormalizationStep::NoWhitespace) =>
        {
            CharacterRole::Ignore
        }
        (TokenKind::Characters, CharacterClass::Space)
            if recipe.has_step(NormalizationStep::Whitespace) =>
        {
            CharacterRole::Space
        }
        (TokenKind::Characters, CharacterClass::Separator) if cancels_punctuation => {
            CharacterRole::Ignore
        }
        (TokenKind::Characters, _) => CharacterRole::Character,
    }
}

/// Cuts normalised characters into tokens.
pub(super) fn cut_tokens(recipe: &Recipe, characters: &[char], mut visit: impl FnMut(TextToken)) {
    let mut word = String::new();
    let mut space_due = false;
    let mut any = false;
    for &point in characters {
        let role = character_role(recipe, point);
        if matches!(role, CharacterRole::Break | CharacterRole::Character) && !word.is_empty() {
            visit(TextToken::Word(std::mem::take(&mut word)));
        }
        match role {
            CharacterRole::Word => word.push(point),
            CharacterRole::Character => {
                if std::mem::take(&mut space_due) {
                    visit(TextToken::Character(' '));
                }
                visit(TextToken::Character(point));
                any = true;
            }
            CharacterRole::Space => space_due = any,
            CharacterRole::Break | CharacterRole::Ignore => {}
        }
    }
    if !word.is_empty() {
        visit(TextToken::Word(word));
    }
}
