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

/// Another tool whose fingerprints a recipe makes, bit for bit: it replaces all that stands between a
/// text and its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// The Python package `simhash`.
    #[serde(rename = "1e0ng")]
    E0ng,
    /// The Python package `simhash-py`.
    Seomoz,
    /// A widely copied Python 2 script for news.
    NewsMd5,
    /// A widely copied Java class.
    JavaClassic,
    /// The Python package `datasketch` before 2.0.
    DatasketchLegacy,
    /// The Python package `datasketch` since 2.0.
    #[serde(rename = "datasketch-affine32")]
    DatasketchAffine32,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::E0ng,
        Self::Seomoz,
        Self::NewsMd5,
        Self::JavaClassic,
        Self::DatasketchLegacy,
        Self::DatasketchAffine32,
    ];

    /// The name, in recipes and of the built-in recipe.
    pub fn name(self) -> &'static str {
        match self {
            Self::E0ng => "1e0ng",
            Self::Seomoz => "seomoz",
            Self::NewsMd5 => "news-md5",
            Self::JavaClassic => "java-classic",
            Self::DatasketchLegacy => "datasketch-legacy",
            Self::DatasketchAffine32 => "datasketch-affine32",
        }
    }

    /// The MinHash family of the tool; none if its fingerprints are SimHashes.
    pub fn family(self) -> Option<MinHashFamily> {
        match self {
            Self::DatasketchLegacy => Some(MinHashFamily::DatasketchLegacy),
            Self::DatasketchAffine32 => Some(MinHashFamily::DatasketchAffine32),
            Self::E0ng | Self::Seomoz | Self::NewsMd5 | Self::JavaClassic => None,
        }
    }

    /// The least and the most bits of a fingerprint, and what divides their number.
    fn bits(self) -> (std::ops::RangeInclusive<u32>, u32) {
        match self {
            Self::E0ng => (8..=128, 8),
            Self::Seomoz => (64..=64, 1),
            Self::NewsMd5 => (8..=96, 1),
            Self::JavaClassic | Self::DatasketchLegacy | Self::DatasketchAffine32 => (8..=128, 1),
        }
    }
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
    /// The functions of the Python package `datasketch` before 2.0; with its scheme only.
    DatasketchLegacy,
    /// The functions of the Python package `datasketch` since 2.0; with its scheme only.
    #[serde(rename = "datasketch-affine32")]
    DatasketchAffine32,
}

impl MinHashFamily {
    /// The most slots of a signature.
    pub fn most_slots(self) -> u32 {
        match self {
            // A round has eight bits of a slot, and that of the last slot must fit.
            Self::FastSimilarity => 128,
            Self::Affine32 | Self::DatasketchLegacy | Self::DatasketchAffine32 => 1024,
        }
    }

    /// Whether a recipe may seed the functions.
    fn is_seeded(self) -> bool {
        matches!(self, Self::DatasketchLegacy | Self::DatasketchAffine32)
    }
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
    /// Slots of the signature, 16–128; to 1,024 for the affine families.
    pub slots: u32,
    /// What the functions of the `datasketch` families are drawn from, as in that package; 1 if a
    /// recipe of theirs does not say. None for the other families, whose functions are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
}

/// Everything that determines a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// A name for people; not part of the identity.
    pub name: String,
    /// Version of the engine's tables and rules (Unicode, Chinese, tokeniser, hashes): 1.
    pub version: u32,
    /// Another tool that decides over all from the text to its features; the fields from markup to
    /// n-gram then say nothing, and are not in the TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
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

/// What a recipe with a scheme says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemeRecipe {
    name: String,
    version: u32,
    scheme: Scheme,
    simhash: SimHashRecipe,
    minhash: MinHashRecipe,
}

impl From<SchemeRecipe> for Recipe {
    fn from(recipe: SchemeRecipe) -> Self {
        let SchemeRecipe {
            name,
            version,
            scheme,
            simhash,
            minhash,
        } = recipe;
        Self {
            name,
            version,
            scheme: Some(scheme),
            markup: Markup::None,
            normalize: Vec::new(),
            tokens: Tokens::Whitespace,
            ngram: 1,
            simhash,
            minhash,
        }
    }
}

/// The identity of a recipe: 64 bits of a hash of all that it says except its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecipeId(pub u64);

impl fmt::Display for RecipeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// The seed of `datasketch` where nobody gives one.
const DEFAULT_SEED: u32 = 1;

/// The version of tables and rules that this engine implements.
const VERSION: u32 = 1;

impl Default for Recipe {
    fn default() -> Self {
        use Step::{Fold, Nfkc, Punctuation, Simplified, Whitespace, ZeroWidth};
        Self {
            name: "default-1".into(),
            version: VERSION,
            scheme: None,
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
                seed: None,
            },
        }
    }
}

impl Recipe {
    /// The names under which [`named`](Self::named) knows a recipe.
    pub const NAMES: [&str; 12] = [
        "default-1",
        "default",
        "words-1",
        "words-3",
        "words-5",
        "characters-3",
        "1e0ng",
        "seomoz",
        "news-md5",
        "java-classic",
        "datasketch-legacy",
        "datasketch-affine32",
    ];

    /// A built-in recipe; `default` is another name for `default-1`.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn named(name: &str) -> Result<Self> {
        if let Some(scheme) = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name) {
            return Ok(Self::of_scheme(scheme));
        }
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

    fn of_scheme(scheme: Scheme) -> Self {
        let Self {
            version,
            simhash,
            minhash,
            ..
        } = Self::default();
        let family = scheme.family();
        SchemeRecipe {
            name: scheme.name().into(),
            version,
            scheme,
            simhash,
            minhash: MinHashRecipe {
                family: family.unwrap_or(minhash.family),
                seed: family.map(|_| DEFAULT_SEED),
                ..minhash
            },
        }
        .into()
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
        let most = self.minhash.family.most_slots();
        within("minhash.slots", self.minhash.slots, 16..=most)?;
        self.check_scheme()?;
        if self.minhash.family.is_seeded() {
            self.minhash.seed.get_or_insert(DEFAULT_SEED);
        }
        self.normalize.sort_unstable();
        self.normalize.dedup();
        Ok(self)
    }

    /// Refuses what the recipe's scheme, or the lack of one, forbids.
    fn check_scheme(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::recipe(format!("recipe '{}': {what}", self.name)));
        let Self {
            simhash, minhash, ..
        } = self;
        let wanted = self.scheme.and_then(Scheme::family);
        if wanted.is_some_and(|family| family != minhash.family)
            || wanted.is_none() && minhash.family.is_seeded()
        {
            return refuse(
                "a minhash.family of datasketch and the scheme of the same name need each other"
                    .into(),
            );
        }
        if let Some(seed) = minhash.seed
            && !minhash.family.is_seeded()
        {
            return refuse(format!(
                "minhash.seed is {seed}, but only the families of datasketch have a seed"
            ));
        }
        let Some(scheme) = self.scheme else {
            return Ok(());
        };
        let (bits, divisor) = scheme.bits();
        if !bits.contains(&simhash.bits) || !simhash.bits.is_multiple_of(divisor) {
            let (least, most) = bits.into_inner();
            let multiples = if divisor == 1 {
                String::new()
            } else {
                format!(" in steps of {divisor}")
            };
            return refuse(format!(
                "simhash.bits is {}, but must be {least} to {most}{multiples} with the scheme {}",
                simhash.bits,
                scheme.name()
            ));
        }
        if wanted.is_none() && simhash.weights == Weights::Binary {
            return refuse(format!(
                "simhash.weights is binary, but the scheme {} counts a feature as often as it occurs",
                scheme.name()
            ));
        }
        Ok(())
    }

    /// Whether the recipe has a step.
    pub fn has(&self, step: Step) -> bool {
        self.normalize.contains(&step)
    }

    /// The recipe as a TOML document.
    pub fn to_toml(&self) -> String {
        let toml = match self.scheme {
            None => toml::to_string(self),
            Some(scheme) => toml::to_string(&SchemeRecipe {
                name: self.name.clone(),
                version: self.version,
                scheme,
                simhash: self.simhash,
                minhash: self.minhash,
            }),
        };
        toml.expect("a recipe has only tables, strings and small numbers")
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
        /// As much as decides which fields there may be.
        #[derive(Deserialize)]
        struct Kind {
            scheme: Option<toml::Value>,
        }

        let has_scheme = toml::from_str(text).is_ok_and(|kind: Kind| kind.scheme.is_some());
        let recipe = if has_scheme {
            toml::from_str(text).map(SchemeRecipe::into)
        } else {
            toml::from_str(text)
        };
        let recipe: Self =
            recipe.map_err(|error| Error::recipe(format!("this is not a recipe: {error}")))?;
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
    fn recipes_with_a_scheme_say_only_what_the_scheme_leaves_open() {
        let toml = |name: &str| Recipe::named(name).unwrap().to_toml();
        assert!(!toml("1e0ng").contains("ngram"));
        for (name, from, to, said) in [
            (
                "1e0ng",
                "scheme = \"1e0ng\"",
                "scheme = \"1e0ng\"\nngram = 4",
                "unknown field `ngram`",
            ),
            (
                "1e0ng",
                "scheme = \"1e0ng\"",
                "scheme = \"1e0n\"",
                "unknown variant `1e0n`",
            ),
            (
                "1e0ng",
                "bits = 64",
                "bits = 68",
                "simhash.bits is 68, but must be 8 to 128 in steps of 8",
            ),
            ("1e0ng", "bits = 64", "bits = 136", "simhash.bits is 136"),
            (
                "seomoz",
                "bits = 64",
                "bits = 63",
                "simhash.bits is 63, but must be 64 to 64",
            ),
            (
                "news-md5",
                "bits = 64",
                "bits = 97",
                "simhash.bits is 97, but must be 8 to 96",
            ),
            (
                "java-classic",
                "frequency",
                "binary",
                "simhash.weights is binary",
            ),
            (
                "1e0ng",
                "slots = 128",
                "slots = 128\nseed = 3",
                "minhash.seed is 3",
            ),
            (
                "1e0ng",
                "fast-similarity",
                "datasketch-legacy",
                "need each other",
            ),
            (
                "datasketch-legacy",
                "family = \"datasketch-legacy\"",
                "family = \"affine32\"",
                "need each other",
            ),
            (
                "datasketch-legacy",
                "slots = 128",
                "slots = 1025",
                "minhash.slots is 1025",
            ),
            (
                "default",
                "fast-similarity",
                "datasketch-affine32",
                "need each other",
            ),
            (
                "default",
                "slots = 128",
                "slots = 129",
                "minhash.slots is 129",
            ),
        ] {
            let changed = toml(name).replacen(from, to, 1);
            assert_ne!(changed, toml(name), "{from}");
            let error = changed.parse::<Recipe>().unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        for (name, from, to) in [
            ("1e0ng", "bits = 64", "bits = 128"),
            ("news-md5", "bits = 64", "bits = 96"),
            ("datasketch-legacy", "slots = 128", "slots = 1024"),
            ("datasketch-affine32", "seed = 1", "seed = 4294967295"),
        ] {
            let changed: Recipe = toml(name).replacen(from, to, 1).parse().unwrap();
            assert_ne!(changed.id(), Recipe::named(name).unwrap().id());
        }
        let unseeded: Recipe = toml("datasketch-legacy")
            .replace("seed = 1", "")
            .parse()
            .unwrap();
        assert_eq!(unseeded, Recipe::named("datasketch-legacy").unwrap());
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
