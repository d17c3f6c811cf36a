//! Everything that determines a fingerprint.
//!
//! A recipe says how a text becomes tokens, features and sketches. It reads and writes as TOML, has
//! a name when it is built in, and is identified by a hash of all that it says: two recipes with
//! different identities never compare.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hash;

/// One step of normalisation. The order in which a recipe names them does not matter: they act in
/// the order of this list, on one character after the other, and composition comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Unicode compatibility composition (NFKC): ligatures, circled digits, full and half width,
    /// precomposed and combining accents become one form.
    Nfkc,
    /// Full Unicode case folding.
    Fold,
    /// Full-width ASCII, half-width katakana and the ideographic space only (part of `nfkc`).
    Width,
    /// Zero-width characters and other default ignorables vanish.
    ZeroWidth,
    /// Traditional to simplified Chinese, character by character.
    Simplified,
    /// Punctuation and symbols vanish (between words they part them).
    Punctuation,
    /// Runs of white space count as one space, at the ends as none.
    Whitespace,
    /// White space vanishes (for character tokens; words are always parted by it).
    NoWhitespace,
}

/// Markup that is taken off before anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Markup {
    /// The text is plain.
    #[default]
    None,
    /// CommonMark with tables: the text that a reader would see.
    Markdown,
    /// HTML: the text without tags, scripts and styles, entities resolved.
    Html,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tokens {
    /// Runs of letters, digits and marks; single characters in scripts written without spaces.
    Words,
    /// Every character.
    Characters,
    /// What stands between white space.
    Whitespace,
}

/// How often a feature counts in a weighted sketch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// As often as it occurs.
    #[default]
    Frequency,
    /// Once.
    Binary,
}

/// A family of MinHash sketches; sketches of two families never compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinHashFamily {
    /// FastSimilaritySketch (Dahlgaard, Knudsen, Thorup 2017): about half the variance on small
    /// sets, and a cost that hardly grows with the number of slots.
    FastSimilarity,
    /// k affine functions over 32-bit hashes: the textbook sketch, vectorised.
    Affine32,
}

/// The bits of SimHash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimHashRecipe {
    /// Bits of the fingerprint, 8–128.
    pub bits: u32,
    /// How often a feature votes.
    #[serde(default)]
    pub weights: Weights,
}

/// The slots of MinHash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinHashRecipe {
    /// The family.
    pub family: MinHashFamily,
    /// Slots of the signature, 16–128.
    pub slots: u32,
}

/// Everything that determines a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// A name for people; not part of the identity.
    pub name: String,
    /// Version of the engine's tables and rules (Unicode, Chinese, tokeniser, hashes): 1.
    pub version: u32,
    /// Markup to take off.
    #[serde(default)]
    pub markup: Markup,
    /// Normalisation steps.
    pub normalize: Vec<Step>,
    /// What a token is.
    pub tokens: Tokens,
    /// Tokens in a feature, 1–8.
    pub ngram: u32,
    /// SimHash.
    pub simhash: SimHashRecipe,
    /// MinHash.
    pub minhash: MinHashRecipe,
}

/// The identity of a recipe: 64 bits of a hash of all that it says except its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecipeId(pub u64);

impl fmt::Display for RecipeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// The version of tables and rules that this engine implements.
const VERSION: u32 = 1;

impl Default for Recipe {
    fn default() -> Self {
        use Step::{Fold, Nfkc, Punctuation, Simplified, Whitespace, ZeroWidth};
        Self {
            name: "default-1".into(),
            version: VERSION,
            markup: Markup::None,
            normalize: vec![Nfkc, Fold, ZeroWidth, Simplified, Punctuation, Whitespace],
            tokens: Tokens::Words,
            ngram: 2,
            simhash: SimHashRecipe {
                bits: 64,
                weights: Weights::Frequency,
            },
            minhash: MinHashRecipe {
                family: MinHashFamily::FastSimilarity,
                slots: 128,
            },
        }
    }
}

impl Recipe {
    /// The names under which [`named`](Self::named) knows a recipe.
    pub const NAMES: [&str; 6] = [
        "default-1",
        "default",
        "words-1",
        "words-3",
        "words-5",
        "characters-3",
    ];

    /// A built-in recipe; `default` is another name for `default-1`.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn named(name: &str) -> Result<Self> {
        let words = |ngram| Self {
            name: name.into(),
            ngram,
            ..Self::default()
        };
        match name {
            "default" | "default-1" => Ok(Self::default()),
            "words-1" => Ok(words(1)),
            "words-3" => Ok(words(3)),
            "words-5" => Ok(words(5)),
            "characters-3" => Ok(Self {
                tokens: Tokens::Characters,
                ..words(3)
            }),
            _ => Err(Error::recipe(format!(
                "there is no recipe named '{name}'; built in are {}, or give a TOML file",
                Self::NAMES.join(", ")
            ))),
        }
    }

    /// Refuses what no engine could do.
    ///
    /// # Errors
    /// Names the value and its range.
    pub fn validated(mut self) -> Result<Self> {
        let within = |what: &str, value: u32, range: std::ops::RangeInclusive<u32>| {
            if range.contains(&value) {
                return Ok(());
            }
            let (least, most) = range.into_inner();
            Err(Error::recipe(format!(
                "recipe '{}': {what} is {value}, but must be {least} to {most}",
                self.name
            )))
        };
        within("version", self.version, VERSION..=VERSION)?;
        within("ngram", self.ngram, 1..=8)?;
        within("simhash.bits", self.simhash.bits, 8..=128)?;
        within("minhash.slots", self.minhash.slots, 16..=128)?;
        self.normalize.sort_unstable();
        self.normalize.dedup();
        Ok(self)
    }

    /// Whether the recipe has a step.
    pub fn has(&self, step: Step) -> bool {
        self.normalize.contains(&step)
    }

    /// The recipe as a TOML document.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a recipe has only tables, strings and small numbers")
    }

    /// The identity.
    pub fn id(&self) -> RecipeId {
        let nameless = Self {
            name: String::new(),
            ..self.clone()
        };
        RecipeId(hash::bytes(u64::from(VERSION), nameless.to_toml().as_bytes()) as u64)
    }
}

impl FromStr for Recipe {
    type Err = Error;

    /// Reads a TOML document.
    fn from_str(text: &str) -> Result<Self> {
        let recipe: Self = toml::from_str(text)
            .map_err(|error| Error::recipe(format!("this is not a recipe: {error}")))?;
        recipe.validated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_round_trips_and_identity_ignores_name_and_order() {
        for name in Recipe::NAMES {
            let recipe = Recipe::named(name).unwrap();
            let read: Recipe = recipe.to_toml().parse().unwrap();
            assert_eq!(read, recipe);
            assert_eq!(read.id(), recipe.id());
        }
        let mut renamed = Recipe {
            name: "mine".into(),
            ..Recipe::default()
        };
        renamed.normalize.reverse();
        assert_eq!(renamed.validated().unwrap().id(), Recipe::default().id());
        assert_ne!(
            Recipe::named("words-3").unwrap().id(),
            Recipe::default().id()
        );
    }

    #[test]
    fn impossible_recipes_are_refused_with_the_value_and_the_range() {
        let toml = Recipe::default().to_toml();
        for (from, to, said) in [
            ("ngram = 2", "ngram = 0", "ngram is 0, but must be 1 to 8"),
            ("bits = 64", "bits = 129", "simhash.bits is 129"),
            ("slots = 128", "slots = 4096", "minhash.slots is 4096"),
            ("version = 1", "version = 2", "version is 2"),
            ("ngram", "ngrams", "unknown field"),
            ("\"words\"", "\"wurds\"", "unknown variant"),
        ] {
            let error = toml.replacen(from, to, 1).parse::<Recipe>().unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
