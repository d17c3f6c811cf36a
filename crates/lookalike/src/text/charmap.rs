//! A table of the actions of all characters under a recipe.
//!
//! An entry holds an action in its upper byte, and in the rest a code point or the index of an expansion. The
//! table of the Basic Multilingual Plane is built when a recipe is first used, which takes about two
//! milliseconds and 256 KiB. It is first filled by runs of one class, and then corrected where normalisation
//! may change a character. Characters beyond this plane are looked up in the base tables each time.

use std::sync::{Arc, Mutex, PoisonError};

use super::normalize::{self, CharacterRole};
use super::unicode;
use crate::recipe::{NormalizationStep, Recipe, TokenKind};

/// The action of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharacterAction {
    /// Separates words and is not a token.
    Break,
    /// Belongs to a word, as this character.
    Word(char),
    /// Is a token of its own, as this character.
    Character(char),
    /// Is removed without separating its neighbours.
    Ignore,
    /// White space: one space per run, and only between tokens.
    Space,
    /// Becomes several characters, whose entries are the expansion with this index.
    Expand(u32),
    /// Depends on its neighbours, so the text must be composed as a whole.
    Compose,
}

/// An [`CharacterAction`] in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub(super) struct CharMapEntry(u32);

impl CharMapEntry {
    pub(super) const BREAK: u32 = 0;
    pub(super) const WORD: u32 = 1;
    pub(super) const CHARACTER: u32 = 2;
    pub(super) const IGNORE: u32 = 3;
    pub(super) const SPACE: u32 = 4;
    pub(super) const EXPAND: u32 = 5;
    pub(super) const COMPOSE: u32 = 6;

    fn new(action: CharacterAction) -> Self {
        let (kind, value) = match action {
            CharacterAction::Break => (Self::BREAK, 0),
            CharacterAction::Word(to) => (Self::WORD, to as u32),
            CharacterAction::Character(to) => (Self::CHARACTER, to as u32),
            CharacterAction::Ignore => (Self::IGNORE, 0),
            CharacterAction::Space => (Self::SPACE, 0),
            CharacterAction::Expand(at) => (Self::EXPAND, at),
            CharacterAction::Compose => (Self::COMPOSE, 0),
        };
        Self(kind << 24 | value)
    }

    #[inline(always)]
    pub(super) fn entry_kind(self) -> u32 {
        self.0 >> 24
    }

    /// Returns the code point of a word character or a character token, or the index of an expansion.
    #[inline(always)]
    pub(super) fn entry_value(self) -> u32 {
        self.0 & 0x00ff_ffff
    }
}

/// The table of one recipe.
#[derive(Debug)]
pub(super) struct CharMap {
    basic: Box<[CharMapEntry; 0x1_0000]>,
    expansions: Vec<Vec<CharMapEntry>>,
    recipe: Recipe,
}

/// Identity of a table: the normalisation steps, sorted and without repetitions, and the kind of token.
type TableKey = (Vec<NormalizationStep>, TokenKind);

/// The latest tables that [`CharMap::shared_map`] returned, most recently used first.
static SHARED: Mutex<Vec<(TableKey, Arc<CharMap>)>> = Mutex::new(Vec::new());

/// Largest number of tables that are kept, which take 4 MiB.
const MAX_SHARED: usize = 16;

impl CharMap {
    /// Returns the table of a recipe. Recipes with the same steps and tokens share one, because building it
    /// takes longer than analysing a short text.
    pub(super) fn shared_map(recipe: &Recipe) -> Arc<Self> {
        let mut steps = recipe.normalize.clone();
        steps.sort_unstable();
        steps.dedup();
        let key = (steps, recipe.tokens);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let table = match shared.iter().position(|(known, _)| *known == key) {
            Some(at) => shared.remove(at).1,
            None => Arc::new(Self::new(recipe)),
        };
        shared.truncate(MAX_SHARED - 1);
        shared.insert(0, (key, Arc::clone(&table)));
        table
    }

    /// Builds the table of a recipe.
    pub(super) fn new(recipe: &Recipe) -> Self {
        let basic = vec![CharMapEntry::new(CharacterAction::Break); 0x1_0000];
        let mut map = Self {
            basic: basic.try_into().expect("the table has 65,536 entries"),
            expansions: Vec::new(),
            recipe: recipe.clone(),
        };
        for (points, class) in unicode::character_classes() {
            let role = normalize::class_role(recipe, class);
            for point in points.filter(|&point| point <= '\u{ffff}') {
                map.basic[point as usize] = CharMapEntry::new(role_action(role, point));
            }
        }
        unicode::visit_changing(|point| {
            if point <= '\u{ffff}' {
                map.fill_entry(point);
            }
        });
        map
    }

    /// Computes the entry of a character that normalisation may change.
    fn fill_entry(&mut self, point: char) {
        let action = match self.map_character(point) {
            MappedCharacter::One(action) => action,
            MappedCharacter::Several(entries) => {
                self.expansions.push(entries);
                CharacterAction::Expand(self.expansions.len() as u32 - 1)
            }
        };
        self.basic[point as usize] = CharMapEntry::new(action);
    }

    /// Returns the entry of a character of the Basic Multilingual Plane.
    #[inline(always)]
    pub(super) fn basic_entry(&self, point: u32) -> CharMapEntry {
        self.basic[(point & 0xffff) as usize]
    }

    /// Returns the entries of all characters of the Basic Multilingual Plane.
    #[inline(always)]
    pub(super) fn basic_entries(&self) -> &[CharMapEntry; 0x1_0000] {
        &self.basic
    }

    /// Returns the entries that an [`CharMapEntry::EXPAND`] stands for.
    pub(super) fn expansion_at(&self, at: u32) -> &[CharMapEntry] {
        &self.expansions[at as usize]
    }

    /// Calls `visit` with every entry of a character beyond the Basic Multilingual Plane.
    #[cold]
    pub(super) fn visit_supplementary(&self, point: char, mut visit: impl FnMut(CharMapEntry)) {
        match self.map_character(point) {
            MappedCharacter::One(action) => visit(CharMapEntry::new(action)),
            MappedCharacter::Several(entries) => entries.into_iter().for_each(visit),
        }
    }

    /// Returns how ASCII can be read many bytes at a time, or `None` if [`AsciiRules`] cannot express
    /// the entries of ASCII.
    pub(super) fn ascii_rules(&self) -> Option<AsciiRules> {
        let folds = self.basic_entry(u32::from(b'A')).entry_value() == u32::from(b'a');
        let words = AsciiRules {
            folds,
            tokens: AsciiTokens::Words,
        };
        let characters = |spaces| AsciiRules {
            folds,
            tokens: AsciiTokens::Characters { spaces },
        };
        [words, characters(true), characters(false)]
            .into_iter()
            .find(|ascii| {
                (0..128u8).all(|byte| {
                    self.basic_entry(u32::from(byte)) == CharMapEntry::new(ascii.byte_action(byte))
                })
            })
    }

    fn map_character(&self, point: char) -> MappedCharacter {
        if self.recipe.has_step(NormalizationStep::Nfkc) && unicode::is_composing(point) {
            return MappedCharacter::One(CharacterAction::Compose);
        }
        let mut characters = Vec::new();
        normalize::replace_character(&self.recipe, point, &mut characters);
        normalize::finish_characters(&self.recipe, &mut characters);
        if characters.first().is_some_and(|&first| {
            self.recipe.has_step(NormalizationStep::Nfkc) && unicode::is_composing(first)
        }) {
            return MappedCharacter::One(CharacterAction::Compose);
        }
        let mut actions: Vec<_> = characters
            .iter()
            .map(|&point| self.character_action(point))
            .collect();
        actions.dedup_by(|a, b| *a == CharacterAction::Break && *b == CharacterAction::Break);
        match actions[..] {
            [] => MappedCharacter::One(CharacterAction::Ignore),
            [action] => MappedCharacter::One(action),
            _ => MappedCharacter::Several(actions.into_iter().map(CharMapEntry::new).collect()),
        }
    }

    fn character_action(&self, point: char) -> CharacterAction {
        role_action(normalize::character_role(&self.recipe, point), point)
    }
}

/// Returns the action of a normalised character.
fn role_action(role: CharacterRole, point: char) -> CharacterAction {
    match role {
        CharacterRole::Break => CharacterAction::Break,
        CharacterRole::Word => CharacterAction::Word(point),
        CharacterRole::Character => CharacterAction::Character(point),
        CharacterRole::Ignore => CharacterAction::Ignore,
        CharacterRole::Space => CharacterAction::Space,
    }
}

enum MappedCharacter {
    One(CharacterAction),
    Several(Vec<CharMapEntry>),
}

/// The meaning of ASCII under a simple recipe: letters and digits are words or tokens; all other characters
/// separate them or are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AsciiRules {
    /// `true` if capital letters become small letters.
    pub(super) folds: bool,
    pub(super) tokens: AsciiTokens,
}

/// The tokens of ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsciiTokens {
    /// Runs of letters and digits.
    Words,
    /// Each letter and digit. If `spaces`, one space is a token too where spaces or control characters are
    /// between two of them.
    Characters { spaces: bool },
}

impl AsciiRules {
    fn byte_action(self, byte: u8) -> CharacterAction {
        let letter = char::from(if self.folds {
            byte.to_ascii_lowercase()
        } else {
            byte
        });
        match self.tokens {
            AsciiTokens::Words if byte.is_ascii_alphanumeric() => CharacterAction::Word(letter),
            AsciiTokens::Words => CharacterAction::Break,
            AsciiTokens::Characters { .. } if byte.is_ascii_alphanumeric() => {
                CharacterAction::Character(letter)
            }
            AsciiTokens::Characters { spaces: true } if byte <= b' ' || byte == 0x7f => {
                CharacterAction::Space
            }
            AsciiTokens::Characters { .. } => CharacterAction::Ignore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_equals_the_mapped_character() {
        let mut recipes: Vec<_> = ["default-1", "characters-3"]
            .map(|name| Recipe::built_in(name).unwrap())
            .into();
        let steps = recipes[0].normalize.clone();
        for without in 0..steps.len() {
            let mut recipe = recipes[without % 2].clone();
            recipe.normalize.remove(without);
            recipes.push(recipe);
        }
        recipes.push(Recipe {
            normalize: vec![NormalizationStep::Width],
            ..Recipe::default()
        });
        for recipe in recipes {
            let map = CharMap::new(&recipe);
            for point in (0..=0xffff).filter_map(char::from_u32) {
                let entry = map.basic_entry(u32::from(point));
                match map.map_character(point) {
                    MappedCharacter::One(action) => {
                        assert_eq!(entry, CharMapEntry::new(action), "{point:?}")
                    }
                    MappedCharacter::Several(entries) => {
                        assert_eq!(entry.entry_kind(), CharMapEntry::EXPAND, "{point:?}");
                        assert_eq!(map.expansion_at(entry.entry_value()), entries, "{point:?}");
                    }
                }
            }
        }
    }
}
