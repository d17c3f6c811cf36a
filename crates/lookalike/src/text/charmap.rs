//! A table of the actions of all characters under a recipe.
//!
//! An entry holds an action in its upper byte, and in the rest a code point or the index of an expansion. The
//! table of the Basic Multilingual Plane is built when a recipe is first used, which takes about two
//! milliseconds and 256 KiB. It is first filled by runs of one class, and then corrected where normalisation
//! may change a character. Characters beyond this plane are looked up in the base tables each time.

use std::sync::{Arc, Mutex, PoisonError};

use super::normalize::{self, Role};
use super::unicode;
use crate::recipe::{Recipe, Step, Tokens};

/// The action of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
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

/// An [`Action`] in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub(super) struct Entry(u32);

impl Entry {
    pub(super) const BREAK: u32 = 0;
    pub(super) const WORD: u32 = 1;
    pub(super) const CHARACTER: u32 = 2;
    pub(super) const IGNORE: u32 = 3;
    pub(super) const SPACE: u32 = 4;
    pub(super) const EXPAND: u32 = 5;
    pub(super) const COMPOSE: u32 = 6;

    fn new(action: Action) -> Self {
        let (kind, value) = match action {
            Action::Break => (Self::BREAK, 0),
            Action::Word(to) => (Self::WORD, to as u32),
            Action::Character(to) => (Self::CHARACTER, to as u32),
            Action::Ignore => (Self::IGNORE, 0),
            Action::Space => (Self::SPACE, 0),
            Action::Expand(at) => (Self::EXPAND, at),
            Action::Compose => (Self::COMPOSE, 0),
        };
        Self(kind << 24 | value)
    }

    #[inline(always)]
    pub(super) fn kind(self) -> u32 {
        self.0 >> 24
    }

    /// Returns the code point of a word character or a character token, or the index of an expansion.
    #[inline(always)]
    pub(super) fn value(self) -> u32 {
        self.0 & 0x00ff_ffff
    }
}

/// The table of one recipe.
#[derive(Debug)]
pub(super) struct CharMap {
    basic: Box<[Entry; 0x1_0000]>,
    expansions: Vec<Vec<Entry>>,
    recipe: Recipe,
}

/// Identity of a table: the normalisation steps, sorted and without repetitions, and the kind of token.
type TableKey = (Vec<Step>, Tokens);

/// The latest tables that [`CharMap::shared`] returned, most recently used first.
static SHARED: Mutex<Vec<(TableKey, Arc<CharMap>)>> = Mutex::new(Vec::new());

/// Largest number of tables that are kept, which take 4 MiB.
const MAX_SHARED: usize = 16;

impl CharMap {
    /// Returns the table of a recipe. Recipes with the same steps and tokens share one, because building it
    /// takes longer than analysing a short text.
    pub(super) fn shared(recipe: &Recipe) -> Arc<Self> {
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
        let basic = vec![Entry::new(Action::Break); 0x1_0000];
        let mut map = Self {
            basic: basic.try_into().expect("the table has 65,536 entries"),
            expansions: Vec::new(),
            recipe: recipe.clone(),
        };
        for (points, class) in unicode::classes() {
            let role = normalize::role_of(recipe, class);
            for point in points.filter(|&point| point <= '\u{ffff}') {
                map.basic[point as usize] = Entry::new(action(role, point));
            }
        }
        unicode::changing(|point| {
            if point <= '\u{ffff}' {
                map.fill(point);
            }
        });
        map
    }

    /// Computes the entry of a character that normalisation may change.
    fn fill(&mut self, point: char) {
        let action = match self.becomes(point) {
            Becomes::One(action) => action,
            Becomes::Several(entries) => {
                self.expansions.push(entries);
                Action::Expand(self.expansions.len() as u32 - 1)
            }
        };
        self.basic[point as usize] = Entry::new(action);
    }

    /// Returns the entry of a character of the Basic Multilingual Plane.
    #[inline(always)]
    pub(super) fn basic(&self, point: u32) -> Entry {
        self.basic[(point & 0xffff) as usize]
    }

    /// Returns the entries of all characters of the Basic Multilingual Plane.
    #[inline(always)]
    pub(super) fn entries(&self) -> &[Entry; 0x1_0000] {
        &self.basic
    }

    /// Returns the entries that an [`Entry::EXPAND`] stands for.
    pub(super) fn expansion(&self, at: u32) -> &[Entry] {
        &self.expansions[at as usize]
    }

    /// Calls `visit` with every entry of a character beyond the Basic Multilingual Plane.
    #[cold]
    pub(super) fn beyond(&self, point: char, mut visit: impl FnMut(Entry)) {
        match self.becomes(point) {
            Becomes::One(action) => visit(Entry::new(action)),
            Becomes::Several(entries) => entries.into_iter().for_each(visit),
        }
    }

    /// Returns how ASCII can be read many bytes at a time, or `None` if [`Ascii`] cannot express the entries
    /// of ASCII.
    pub(super) fn ascii(&self) -> Option<Ascii> {
        let folds = self.basic(u32::from(b'A')).value() == u32::from(b'a');
        let words = Ascii {
            folds,
            tokens: AsciiTokens::Words,
        };
        let characters = |spaces| Ascii {
            folds,
            tokens: AsciiTokens::Characters { spaces },
        };
        [words, characters(true), characters(false)]
            .into_iter()
            .find(|ascii| {
                (0..128u8).all(|byte| self.basic(u32::from(byte)) == Entry::new(ascii.action(byte)))
            })
    }

    fn becomes(&self, point: char) -> Becomes {
        if self.recipe.has(Step::Nfkc) && unicode::is_composing(point) {
            return Becomes::One(Action::Compose);
        }
        let mut characters = Vec::new();
        normalize::replace(&self.recipe, point, &mut characters);
        normalize::finish(&self.recipe, &mut characters);
        if characters
            .first()
            .is_some_and(|&first| self.recipe.has(Step::Nfkc) && unicode::is_composing(first))
        {
            return Becomes::One(Action::Compose);
        }
        let mut actions: Vec<_> = characters.iter().map(|&point| self.action(point)).collect();
        actions.dedup_by(|a, b| *a == Action::Break && *b == Action::Break);
        match actions[..] {
            [] => Becomes::One(Action::Ignore),
            [action] => Becomes::One(action),
            _ => Becomes::Several(actions.into_iter().map(Entry::new).collect()),
        }
    }

    fn action(&self, point: char) -> Action {
        action(normalize::role(&self.recipe, point), point)
    }
}

/// Returns the action of a normalised character.
fn action(role: Role, point: char) -> Action {
    match role {
        Role::Break => Action::Break,
        Role::Word => Action::Word(point),
        Role::Character => Action::Character(point),
        Role::Ignore => Action::Ignore,
        Role::Space => Action::Space,
    }
}

enum Becomes {
    One(Action),
    Several(Vec<Entry>),
}

/// The meaning of ASCII under a simple recipe: letters and digits are words or tokens; all other characters
/// separate them or are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ascii {
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

impl Ascii {
    fn action(self, byte: u8) -> Action {
        let letter = char::from(if self.folds {
            byte.to_ascii_lowercase()
        } else {
            byte
        });
        match self.tokens {
            AsciiTokens::Words if byte.is_ascii_alphanumeric() => Action::Word(letter),
            AsciiTokens::Words => Action::Break,
            AsciiTokens::Characters { .. } if byte.is_ascii_alphanumeric() => {
                Action::Character(letter)
            }
            AsciiTokens::Characters { spaces: true } if byte <= b' ' || byte == 0x7f => {
                Action::Space
            }
            AsciiTokens::Characters { .. } => Action::Ignore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_what_the_character_becomes() {
        let mut recipes: Vec<_> = ["default-1", "characters-3"]
            .map(|name| Recipe::named(name).unwrap())
            .into();
        let steps = recipes[0].normalize.clone();
        for without in 0..steps.len() {
            let mut recipe = recipes[without % 2].clone();
            recipe.normalize.remove(without);
            recipes.push(recipe);
        }
        recipes.push(Recipe {
            normalize: vec![Step::Width],
            ..Recipe::default()
        });
        for recipe in recipes {
            let map = CharMap::new(&recipe);
            for point in (0..=0xffff).filter_map(char::from_u32) {
                let entry = map.basic(u32::from(point));
                match map.becomes(point) {
                    Becomes::One(action) => assert_eq!(entry, Entry::new(action), "{point:?}"),
                    Becomes::Several(entries) => {
                        assert_eq!(entry.kind(), Entry::EXPAND, "{point:?}");
                        assert_eq!(map.expansion(entry.value()), entries, "{point:?}");
                    }
                }
            }
        }
    }
}
