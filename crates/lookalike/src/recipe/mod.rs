//! Recipes: everything that determines a fingerprint.
//!
//! A recipe defines how a text becomes tokens, features and sketches. It is read from and written to TOML.
//! Built-in recipes have a name. The identity of a recipe is a hash of everything in it except its name, and
//! fingerprints of recipes with different identities are never compared.
//!
//! A recipe may name files: a user dictionary, stopwords, a table of weights. The recipe records a digest of
//! each file, because the content belongs to its identity. The names and places of the files do not.

mod files;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hash;

use files::ReadFile;
pub use files::RecipeFiles;
pub(crate) use files::{LoadedFiles, UserWord};

/// One step of normalisation. The order in which a recipe lists the steps does not matter. The steps apply in
/// the order of this list, character by character, and composition comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormalizationStep {
    /// Unicode compatibility composition (NFKC): ligatures, circled digits, full and half width,
    /// precomposed and combining accents become one form.
    Nfkc,
    /// Full Unicode case folding.
    Fold,
    /// Full-width ASCII, half-width katakana and the ideographic space only (part of `nfkc`).
    Width,
    /// Removes zero-width characters and other default ignorables.
    ZeroWidth,
    /// Traditional to simplified Chinese, character by character.
    Simplified,
    /// Common variants of Chinese characters that `simplified` leaves, character by character: 著 becomes 着,
    /// 牠 becomes 它, 妳 becomes 你, 邨 becomes 村. No built-in recipe has this step.
    Variants,
    /// Removes punctuation and symbols; between two words they still separate.
    Punctuation,
    /// Collapses a run of white space to one space, and removes it at both ends.
    Whitespace,
    /// Removes white space. This is for character tokens, because words are always separated by white space.
    NoWhitespace,
}

/// Markup that is removed before any other step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkupKind {
    /// The text is plain.
    #[default]
    None,
    /// CommonMark with tables: the text that a reader would see.
    Markdown,
    /// HTML: the text without tags, scripts and styles, entities resolved.
    Html,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenKind {
    /// Runs of letters, digits and marks; single characters in scripts written without spaces.
    Words,
    /// Every character.
    Characters,
    /// Everything between white space.
    Whitespace,
    /// Words as in `words`, with Chinese cut into words by jieba as [`SegmentRecipe`] says.
    Jieba,
}

impl TokenKind {
    /// Returns the name in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Characters => "characters",
            Self::Whitespace => "whitespace",
            Self::Jieba => "jieba",
        }
    }
}

/// The words that jieba cuts a text into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentationMode {
    /// The most probable words, one after the other.
    #[default]
    Precise,
    /// Every word of the dictionary that occurs, overlapping.
    Full,
    /// The most probable words, and before a long one the shorter ones in it.
    Search,
}

/// Segmentation of Chinese into words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRecipe {
    /// Dictionary and its version. Only one exists.
    #[serde(default = "dictionary")]
    pub dictionary: String,
    /// Words to cut the text into.
    #[serde(default)]
    pub mode: SegmentationMode,
    /// `true` if a hidden Markov model finds words that are not in the dictionary. Must be `false` in the
    /// full mode, which uses the dictionary alone.
    #[serde(default = "default_true")]
    pub hmm: bool,
    /// Name of a file with the user's own words: `word [frequency] [part of speech]` on a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// The dictionary that comes with the engine.
const EMBEDDED_DICTIONARY: &str = "jieba-rs-0.11.0";

fn dictionary() -> String {
    EMBEDDED_DICTIONARY.into()
}

fn default_true() -> bool {
    true
}

impl Default for SegmentRecipe {
    fn default() -> Self {
        Self {
            dictionary: dictionary(),
            mode: SegmentationMode::Precise,
            hmm: true,
            user: None,
        }
    }
}

/// Filters of tokens. A token that is filtered out has the same effect as if it were not in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterRecipe {
    /// Smallest number of characters of a token, at most 100; 0 and 1 keep all tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_characters: u32,
    /// Lists of stopwords, which are filtered out. `zh` and `en` are built in; any other name is a file with
    /// one word per line.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_many"
    )]
    pub stopwords: Vec<String>,
    /// Parts of speech to keep; if empty, all are kept. Each is the beginning of one of jieba's tags, for
    /// example `n` for all nouns; `content` stands for [`CONTENT_TAGS`].
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_many"
    )]
    pub parts: Vec<String>,
}

/// The parts of speech of words that carry content: nouns, verbs, adjectives, idioms, set phrases,
/// abbreviations, words of state, foreign words.
pub const CONTENT_TAGS: [&str; 8] = ["n", "v", "a", "i", "l", "j", "z", "eng"];

/// Parts of speech in jieba's dictionary, and of the words that jieba cuts without it.
const KNOWN_TAGS: [&str; 56] = [
    "a", "ad", "ag", "an", "b", "c", "d", "df", "dg", "e", "eng", "f", "g", "h", "i", "j", "k",
    "l", "m", "mg", "mq", "n", "ng", "nr", "nrfg", "nrt", "ns", "nt", "nz", "o", "p", "q", "r",
    "rg", "rr", "rz", "s", "t", "tg", "u", "ud", "ug", "uj", "ul", "uv", "uz", "v", "vd", "vg",
    "vi", "vn", "vq", "x", "y", "z", "zg",
];

/// The built-in lists of stopwords.
pub const STOPWORD_LISTS: [&str; 2] = ["zh", "en"];

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Deserializes a list, or a single string as a list of one.
fn one_or_many<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

impl FilterRecipe {
    /// Returns `true` if nothing is filtered out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the names of the stopword files.
    fn stopword_files(&self) -> impl Iterator<Item = &str> {
        let names = self.stopwords.iter().map(String::as_str);
        names.filter(|name| !STOPWORD_LISTS.contains(name))
    }
}

/// Weight of a feature in a weighted sketch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightScheme {
    /// The number of its occurrences.
    #[default]
    Frequency,
    /// Always 1.
    Binary,
    /// A level from 1 to 5. A table `term<TAB>level` gives the level, which is 1 for a term that is not in it.
    /// With a table of document frequencies, the level is the quintile of the term's tf·idf among the terms of
    /// the document.
    Levels,
    /// The number of its occurrences times its inverse document frequency from the table. A term that is not
    /// in the table is taken to be as rare as the rarest term in it.
    Tfidf,
    /// The number of its occurrences times its weight from a table `term<TAB>weight` (1 if it is not in the
    /// table).
    Given,
}

impl WeightScheme {
    /// Returns `true` if the weights come from a table.
    pub fn needs_table(self) -> bool {
        matches!(self, Self::Levels | Self::Tfidf | Self::Given)
    }
}

/// Another tool whose fingerprints a recipe reproduces bit for bit. A scheme replaces every step between a
/// text and its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompatScheme {
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
    /// The C++ library `simhash` with cppjieba, with the tables of a [`YanyiwuRecipe`].
    Yanyiwu,
}

impl CompatScheme {
    /// The schemes that are built-in recipes: all that need no tables.
    pub const BUILT_IN: [Self; 6] = [
        Self::E0ng,
        Self::Seomoz,
        Self::NewsMd5,
        Self::JavaClassic,
        Self::DatasketchLegacy,
        Self::DatasketchAffine32,
    ];

    /// Returns the name in recipes, which is also the name of the built-in recipe.
    pub fn name(self) -> &'static str {
        match self {
            Self::E0ng => "1e0ng",
            Self::Seomoz => "seomoz",
            Self::NewsMd5 => "news-md5",
            Self::JavaClassic => "java-classic",
            Self::DatasketchLegacy => "datasketch-legacy",
            Self::DatasketchAffine32 => "datasketch-affine32",
            Self::Yanyiwu => "yanyiwu",
        }
    }

    /// Returns the MinHash family of the tool, or `None` if its fingerprints are SimHashes.
    pub fn minhash_family(self) -> Option<MinHashFamily> {
        match self {
            Self::DatasketchLegacy => Some(MinHashFamily::DatasketchLegacy),
            Self::DatasketchAffine32 => Some(MinHashFamily::DatasketchAffine32),
            Self::E0ng | Self::Seomoz | Self::NewsMd5 | Self::JavaClassic | Self::Yanyiwu => None,
        }
    }

    /// Returns the range of fingerprint sizes in bits, and a number that the size must be a multiple of.
    fn allowed_bits(self) -> (std::ops::RangeInclusive<u32>, u32) {
        match self {
            Self::E0ng => (8..=128, 8),
            Self::Seomoz | Self::Yanyiwu => (64..=64, 1),
            Self::NewsMd5 => (8..=96, 1),
            Self::JavaClassic | Self::DatasketchLegacy | Self::DatasketchAffine32 => (8..=128, 1),
        }
    }
}

/// The tables of the scheme `yanyiwu`: files in the format of cppjieba, with one word per line and spaces
/// between the fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YanyiwuRecipe {
    /// The dictionary: `word frequency tag`.
    pub dictionary: String,
    /// The user's own words: `word`, `word tag` or `word frequency tag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The hidden Markov model, in logarithms of probabilities: those of the four states at the start, those
    /// of the four states after each state, and those of the characters in each state, as `character:weight`
    /// with commas between.
    pub hmm: String,
    /// The inverse document frequencies: `word idf`.
    pub idf: String,
    /// The words that are filtered out.
    pub stopwords: String,
}

impl YanyiwuRecipe {
    /// Returns the names of the files, each with the recipe key that contains it.
    fn named_files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let user = self.user.as_deref();
        [("yanyiwu.dictionary", &*self.dictionary)]
            .into_iter()
            .chain(user.map(|name| ("yanyiwu.user", name)))
            .chain([
                ("yanyiwu.hmm", &*self.hmm),
                ("yanyiwu.idf", &*self.idf),
                ("yanyiwu.stopwords", &*self.stopwords),
            ])
    }

    fn file_names_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self {
            dictionary,
            user,
            hmm,
            idf,
            stopwords,
        } = self;
        [dictionary, hmm, idf, stopwords].into_iter().chain(user)
    }
}

impl Default for YanyiwuRecipe {
    /// Returns the names that the files have in cppjieba.
    fn default() -> Self {
        Self {
            dictionary: "jieba.dict.utf8".into(),
            user: Some("user.dict.utf8".into()),
            hmm: "hmm_model.utf8".into(),
            idf: "idf.utf8".into(),
            stopwords: "stop_words.utf8".into(),
        }
    }
}

/// A family of MinHash functions. Signatures of different families are never compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinHashFamily {
    /// FastSimilaritySketch (Dahlgaard, Knudsen, Thorup 2017). It has about half the variance of independent
    /// functions on small sets, and its cost hardly grows with the number of slots.
    FastSimilarity,
    /// k affine functions over 32-bit hashes: the textbook sketch, vectorised.
    Affine32,
    /// The functions of the Python package `datasketch` before 2.0, allowed only with the scheme of this
    /// name.
    DatasketchLegacy,
    /// The functions of the Python package `datasketch` since 2.0, allowed only with the scheme of this name.
    #[serde(rename = "datasketch-affine32")]
    DatasketchAffine32,
}

impl MinHashFamily {
    /// Returns the largest number of slots of a signature.
    pub fn most_slots(self) -> u32 {
        match self {
            // A slot stores the number of its round in eight bits, and the rounds go up to 127 + slots.
            Self::FastSimilarity => 128,
            Self::Affine32 | Self::DatasketchLegacy | Self::DatasketchAffine32 => 1024,
        }
    }

    /// Returns `true` if the recipe contains the seed of the functions.
    fn is_seeded(self) -> bool {
        matches!(self, Self::DatasketchLegacy | Self::DatasketchAffine32)
    }
}

/// Settings of SimHash: size and weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimHashRecipe {
    /// Size of the fingerprint in bits, 8–128.
    pub bits: u32,
    /// Weights of the features in the vote.
    #[serde(default)]
    pub weights: WeightScheme,
    /// Name of the file with the weights, if they come from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Number of features that vote, at least 1: the heaviest ones, and among equal weights the first ones in
    /// a fixed order of hashes. `None` if all vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<u32>,
}

impl Default for SimHashRecipe {
    fn default() -> Self {
        Self {
            bits: 64,
            weights: WeightScheme::Frequency,
            table: None,
            top: None,
        }
    }
}

/// Settings of MinHash: functions and slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinHashRecipe {
    /// The family of functions.
    pub family: MinHashFamily,
    /// Number of slots of a signature, 16–128, for the affine families up to 1,024.
    pub slots: u32,
    /// Seed from which the functions of the `datasketch` families are drawn, as in that package; 1 by
    /// default. `None` for the other families, because their functions are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
}

/// Everything that determines a fingerprint.
///
/// ```
/// use std::str::FromStr;
///
/// use lookalike::Recipe;
///
/// let pairs_of_words = Recipe::built_in("default")?;
/// let single_words = Recipe { ngram: 1, ..pairs_of_words.clone() }.validate()?;
/// // Fingerprints of recipes with different identities are never compared.
/// assert_ne!(single_words.recipe_id(), pairs_of_words.recipe_id());
///
/// // The TOML form contains everything, so reading it gives the same recipe.
/// assert_eq!(Recipe::from_str(&single_words.to_toml())?, single_words);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name for people. It is not part of the identity.
    pub name: String,
    /// Version of the engine's tables and rules (Unicode, Chinese, tokeniser, hashes): 1.
    pub version: u32,
    /// Another tool, which determines every step from the text to its features. The fields from `markup` to
    /// `filter` then have no effect and are not in the TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<CompatScheme>,
    /// Tables of the scheme `yanyiwu`.
    #[serde(skip)]
    pub yanyiwu: Option<YanyiwuRecipe>,
    /// Markup to remove.
    #[serde(default)]
    pub markup: MarkupKind,
    /// Normalisation steps.
    pub normalize: Vec<NormalizationStep>,
    /// Kind of the tokens.
    pub tokens: TokenKind,
    /// Number of tokens in a feature, 1–32.
    pub ngram: u32,
    /// Name of the file with a [table of forms](crate::forms::FormTable). Two documents of one form match only if their
    /// slots agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forms: Option<String>,
    /// Segmentation of Chinese, only with [`TokenKind::Jieba`]; by default [`SegmentRecipe::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<SegmentRecipe>,
    /// Filters of tokens.
    #[serde(default, skip_serializing_if = "FilterRecipe::is_empty")]
    pub filter: FilterRecipe,
    /// Settings of SimHash.
    pub simhash: SimHashRecipe,
    /// Settings of MinHash.
    pub minhash: MinHashRecipe,
    /// The files that the recipe names, with digests of their contents.
    #[serde(default, skip_serializing_if = "RecipeFiles::is_empty")]
    pub files: RecipeFiles,
}

/// The TOML form of a recipe with a scheme.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemeRecipe {
    name: String,
    version: u32,
    scheme: CompatScheme,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    yanyiwu: Option<YanyiwuRecipe>,
    simhash: SimHashRecipe,
    minhash: MinHashRecipe,
    #[serde(default, skip_serializing_if = "RecipeFiles::is_empty")]
    files: RecipeFiles,
}

impl From<SchemeRecipe> for Recipe {
    fn from(recipe: SchemeRecipe) -> Self {
        let SchemeRecipe {
            name,
            version,
            scheme,
            yanyiwu,
            simhash,
            minhash,
            files,
        } = recipe;
        Self {
            name,
            version,
            scheme: Some(scheme),
            yanyiwu,
            files,
            normalize: Vec::new(),
            tokens: TokenKind::Whitespace,
            ngram: 1,
            simhash,
            minhash,
            ..Self::default()
        }
    }
}

/// The identity of a recipe: a 64-bit hash of everything in it except its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecipeId(pub u64);

impl fmt::Display for RecipeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// The default seed of the `datasketch` families.
const DEFAULT_SEED: u32 = 1;

/// Version of the tables and rules that this engine implements.
const VERSION: u32 = 1;

impl Default for Recipe {
    fn default() -> Self {
        use NormalizationStep::{Fold, Nfkc, Punctuation, Simplified, Whitespace, ZeroWidth};
        Self {
            name: "default-1".into(),
            version: VERSION,
            scheme: None,
            yanyiwu: None,
            markup: MarkupKind::None,
            normalize: vec![Nfkc, Fold, ZeroWidth, Simplified, Punctuation, Whitespace],
            tokens: TokenKind::Words,
            ngram: 2,
            forms: None,
            segment: None,
            filter: FilterRecipe::default(),
            simhash: SimHashRecipe::default(),
            minhash: MinHashRecipe {
                family: MinHashFamily::FastSimilarity,
                slots: 128,
                seed: None,
            },
            files: RecipeFiles::default(),
        }
    }
}

impl Recipe {
    /// The names that [`built_in`](Self::built_in) accepts.
    pub const NAMES: [&str; 15] = [
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
        "jieba",
        "jieba-full",
        "jieba-search",
    ];

    /// Returns a built-in recipe; `default` is another name for `default-1`.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe) if no built-in recipe has this name.
    pub fn built_in(name: &str) -> Result<Self> {
        let mut schemes = CompatScheme::BUILT_IN.into_iter();
        if let Some(scheme) = schemes.find(|scheme| scheme.name() == name) {
            return Ok(Self::from_scheme(scheme));
        }
        let words = |ngram| Self {
            name: name.into(),
            ngram,
            ..Self::default()
        };
        let jieba = |mode| Self {
            tokens: TokenKind::Jieba,
            segment: Some(SegmentRecipe {
                mode,
                hmm: mode != SegmentationMode::Full,
                ..SegmentRecipe::default()
            }),
            ..words(1)
        };
        match name {
            "default" | "default-1" => Ok(Self::default()),
            "words-1" => Ok(words(1)),
            "words-3" => Ok(words(3)),
            "words-5" => Ok(words(5)),
            "characters-3" => Ok(Self {
                tokens: TokenKind::Characters,
                ..words(3)
            }),
            "jieba" => Ok(jieba(SegmentationMode::Precise)),
            "jieba-full" => Ok(jieba(SegmentationMode::Full)),
            "jieba-search" => Ok(jieba(SegmentationMode::Search)),
            "yanyiwu" => Err(Self::needs_tables()),
            _ => Err(Error::recipe_error(format!(
                "there is no recipe named '{name}': give one of {}, or a TOML file",
                Self::NAMES.join(", ")
            ))),
        }
    }

    /// Returns the error for the name `yanyiwu`, with an example of a recipe that works.
    fn needs_tables() -> Error {
        let example = Self {
            name: "mine".into(),
            yanyiwu: Some(YanyiwuRecipe::default()),
            simhash: SimHashRecipe {
                weights: WeightScheme::Tfidf,
                ..SimHashRecipe::default()
            },
            ..Self::from_scheme(CompatScheme::Yanyiwu)
        };
        Error::recipe_error(format!(
            "yanyiwu is not built in, because its tables are files, which come with cppjieba. Give \
             a TOML file beside them:\n\n{}",
            example.to_toml()
        ))
    }

    fn from_scheme(scheme: CompatScheme) -> Self {
        let Self {
            version,
            simhash,
            minhash,
            ..
        } = Self::default();
        let family = scheme.minhash_family();
        SchemeRecipe {
            name: scheme.name().into(),
            version,
            scheme,
            yanyiwu: None,
            simhash,
            minhash: MinHashRecipe {
                family: family.unwrap_or(minhash.family),
                seed: family.map(|_| DEFAULT_SEED),
                ..minhash
            },
            files: RecipeFiles::default(),
        }
        .into()
    }

    /// Checks all values and puts the recipe into its canonical form.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe) if a value is out of range, or if values contradict
    /// one another. The message names the value and its range.
    pub fn validate(mut self) -> Result<Self> {
        self.check_numbers()?;
        self.check_scheme()?;
        if self.minhash.family.is_seeded() {
            self.minhash.seed.get_or_insert(DEFAULT_SEED);
        }
        self.normalize.sort_unstable();
        self.normalize.dedup();
        if self.tokens == TokenKind::Jieba {
            self.segment.get_or_insert_default();
        }
        self.check_forms()?;
        self.check_segment()?;
        self.check_filter()?;
        self.check_weights()?;
        Ok(self)
    }

    fn check_numbers(&self) -> Result<()> {
        let within = |what: &str, value: u32, range: std::ops::RangeInclusive<u32>| {
            if range.contains(&value) {
                return Ok(());
            }
            let range = describe_range(range);
            Err(self.recipe_error(format!("{what} is {value}, but must be {range}")))
        };
        within("version", self.version, VERSION..=VERSION)?;
        within("ngram", self.ngram, 1..=crate::hash::POSITION.len() as u32)?;
        within("simhash.bits", self.simhash.bits, 8..=128)?;
        let most = self.minhash.family.most_slots();
        within("minhash.slots", self.minhash.slots, 16..=most)?;
        within(
            "filter.least_characters",
            self.filter.least_characters,
            0..=100,
        )?;
        within("simhash.top", self.simhash.top.unwrap_or(1), 1..=u32::MAX)
    }

    fn check_forms(&self) -> Result<()> {
        match self.scheme {
            Some(scheme) if self.forms.is_some() => Err(self.recipe_error(format!(
                "forms are found in the tokens of texts, and the scheme {} has features of another tool: leave \
                 forms out",
                scheme.name()
            ))),
            _ => Ok(()),
        }
    }

    fn check_segment(&self) -> Result<()> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        if self.tokens != TokenKind::Jieba {
            return Err(self.recipe_error("[segment] is for tokens = \"jieba\""));
        }
        if segment.dictionary != EMBEDDED_DICTIONARY {
            return Err(self.recipe_error(format!(
                "segment.dictionary is '{}', but this program has {EMBEDDED_DICTIONARY}: put your own words \
                 into segment.user",
                segment.dictionary
            )));
        }
        if segment.mode == SegmentationMode::Full && segment.hmm {
            return Err(self.recipe_error(
                "segment.hmm is true, but the full mode uses only the words of the dictionary: set \
                 segment.hmm = false",
            ));
        }
        Ok(())
    }

    fn check_filter(&self) -> Result<()> {
        let filter = &self.filter;
        if self.tokens == TokenKind::Characters && !filter.is_empty() {
            return Err(self.recipe_error(
                "[filter] is for words, but the tokens are characters: filter.least_characters, \
                 filter.stopwords and filter.parts go with other tokens",
            ));
        }
        if !filter.parts.is_empty() && self.segmentation_mode() != Some(SegmentationMode::Precise) {
            return Err(self.recipe_error(
                "filter.parts needs parts of speech, which only tokens = \"jieba\" with \
                 segment.mode = \"precise\" has",
            ));
        }
        if filter.parts.iter().any(String::is_empty) {
            return Err(self.recipe_error("filter.parts has an empty part of speech"));
        }
        // A user dictionary may contain any part of speech.
        let has_own = self
            .segment
            .as_ref()
            .is_some_and(|segment| segment.user.is_some());
        let is_known = |part: &&String| {
            *part == "content" || KNOWN_TAGS.iter().any(|tag| tag.starts_with(&***part))
        };
        if let Some(part) = filter.parts.iter().find(|part| !has_own && !is_known(part)) {
            return Err(self.recipe_error(format!(
                "filter.parts has '{part}', but no part of speech of jieba begins so: give {}, or \
                 content, which means {}",
                KNOWN_TAGS.join(" "),
                CONTENT_TAGS.join(" ")
            )));
        }
        Ok(())
    }

    fn check_weights(&self) -> Result<()> {
        let SimHashRecipe { weights, table, .. } = &self.simhash;
        if self.scheme == Some(CompatScheme::Yanyiwu) {
            return self.check_tables();
        }
        match (weights.needs_table(), table) {
            (true, None) => Err(self.recipe_error(format!(
                "simhash.weights = \"{}\" needs simhash.table = \"FILE\"",
                weights.name()
            ))),
            (false, Some(table)) => Err(self.recipe_error(format!(
                "simhash.table is '{table}', but simhash.weights = \"{}\" does not use it: set \
                 tfidf, levels or given",
                weights.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that the weights are those of the scheme `yanyiwu`.
    fn check_tables(&self) -> Result<()> {
        let SimHashRecipe { weights, table, .. } = &self.simhash;
        if *weights != WeightScheme::Tfidf {
            return Err(self.recipe_error(format!(
                "simhash.weights is {}, but the scheme yanyiwu weighs words by tf-idf: set \
                 simhash.weights = \"tfidf\"",
                weights.name()
            )));
        }
        if let Some(table) = table {
            return Err(self.recipe_error(format!(
                "simhash.table is '{table}', but the scheme yanyiwu has its weights in yanyiwu.idf"
            )));
        }
        Ok(())
    }

    fn recipe_error(&self, what: impl fmt::Display) -> Error {
        Error::recipe_error(format!("recipe '{}': {what}", self.name))
    }

    /// Returns the mode of jieba, or `None` if the tokens are not jieba's.
    pub fn segmentation_mode(&self) -> Option<SegmentationMode> {
        let segment = self.segment.as_ref();
        (self.tokens == TokenKind::Jieba)
            .then(|| segment.map_or(SegmentationMode::default(), |segment| segment.mode))
    }

    /// Refuses values that the scheme forbids, and values that need a scheme where there is none.
    fn check_scheme(&self) -> Result<()> {
        let refuse = |what: String| Err(self.recipe_error(what));
        let Self {
            simhash, minhash, ..
        } = self;
        let wanted = self.scheme.and_then(CompatScheme::minhash_family);
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
        if self.yanyiwu.is_some() != (scheme == CompatScheme::Yanyiwu) {
            return refuse("[yanyiwu] and scheme = \"yanyiwu\" need each other".into());
        }
        let (bits, divisor) = scheme.allowed_bits();
        if !bits.contains(&simhash.bits) || !simhash.bits.is_multiple_of(divisor) {
            let range = describe_range(bits);
            let multiples = if divisor == 1 {
                String::new()
            } else {
                format!(" in steps of {divisor}")
            };
            return refuse(format!(
                "simhash.bits is {}, but must be {range}{multiples} with the scheme {}",
                simhash.bits,
                scheme.name()
            ));
        }
        let is_plain = simhash.weights == WeightScheme::Frequency && simhash.top.is_none();
        if scheme != CompatScheme::Yanyiwu && !is_plain {
            return refuse(format!(
                "simhash.weights is {}{}, but the scheme {} counts every feature as often as it occurs",
                simhash.weights.name(),
                simhash
                    .top
                    .map_or(String::new(), |top| format!(" and simhash.top is {top}")),
                scheme.name()
            ));
        }
        Ok(())
    }

    /// Returns `true` if the recipe contains a step.
    pub fn has_step(&self, step: NormalizationStep) -> bool {
        self.normalize.contains(&step)
    }

    /// Returns the recipe as a TOML document.
    pub fn to_toml(&self) -> String {
        let toml = match self.scheme {
            None => toml::to_string(self),
            Some(scheme) => toml::to_string(&SchemeRecipe {
                name: self.name.clone(),
                version: self.version,
                scheme,
                yanyiwu: self.yanyiwu.clone(),
                simhash: self.simhash.clone(),
                minhash: self.minhash,
                files: self.files.clone(),
            }),
        };
        toml.expect("a recipe has only tables, strings and small numbers")
    }

    /// Returns the identity. Files count by their contents, not by their names.
    pub fn recipe_id(&self) -> RecipeId {
        let mut bare = Self {
            name: String::new(),
            ..self.clone()
        };
        bare.name_files_by_content();
        bare.hash_content()
    }

    /// Returns the identity of the part that makes terms of a text: everything except sketches and weights.
    /// Tables of document frequencies carry it.
    pub fn terms_id(&self) -> RecipeId {
        let standard = Self::default();
        let mut bare = Self {
            name: String::new(),
            forms: None,
            simhash: standard.simhash,
            minhash: standard.minhash,
            ..self.clone()
        };
        bare.name_files_by_content();
        bare.hash_content()
    }

    fn hash_content(&self) -> RecipeId {
        RecipeId(hash::hash_bytes(u64::from(VERSION), self.to_toml().as_bytes()) as u64)
    }

    /// Reads a TOML document and the files that it names. `locate` returns the path of a file, given the key
    /// that contains its name (for example `simhash.table`) and the name.
    ///
    /// # Errors
    /// [`ErrorKind::Recipe`](crate::ErrorKind::Recipe) if the document is not a recipe, or if a file cannot
    /// be read, has invalid content (with the line), or has a digest other than the one in the recipe.
    pub fn read_recipe(
        text: &str,
        locate: &dyn Fn(&str, &str) -> std::path::PathBuf,
    ) -> Result<Self> {
        Self::read_by(text, &|key, name| {
            let path = locate(key, name);
            let place = path.display().to_string();
            match std::fs::read(&path) {
                Ok(content) => Ok((content.into(), place)),
                Err(cause) => Err(format!("cannot read {place}: {cause}")),
            }
        })
    }

    /// Reads a TOML document like [`read_recipe`](Self::read_recipe), with the contents of its files from
    /// memory. `find` returns the content of the file with a name.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use lookalike::Recipe;
    ///
    /// let toml = Recipe::built_in("words-1")?
    ///     .to_toml()
    ///     .replace("[simhash]", "[filter]\nstopwords = \"mine.txt\"\n\n[simhash]");
    /// let mine: Arc<[u8]> = Arc::from(&b"the\nof\n"[..]);
    /// let recipe = Recipe::read_with_files(&toml, &|name| (name == "mine.txt").then(|| mine.clone()))?;
    /// assert!(recipe.has_loaded_files());
    /// assert_ne!(recipe.recipe_id(), Recipe::built_in("words-1")?.recipe_id());
    /// # Ok::<_, lookalike::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`read_recipe`](Self::read_recipe), and if `find` does not have a file that the recipe names.
    pub fn read_with_files(text: &str, find: &dyn Fn(&str) -> Option<Arc<[u8]>>) -> Result<Self> {
        Self::read_by(text, &|_, name| match find(name) {
            Some(content) => Ok((content, format!("'{name}'"))),
            None => Err(format!("the file '{name}' is missing")),
        })
    }

    fn read_by(text: &str, read: &dyn Fn(&str, &str) -> Result<ReadFile, String>) -> Result<Self> {
        let mut recipe = Self::parse_toml(text)?.without_stray_files()?;
        recipe.load_files(read)?;
        Ok(recipe)
    }

    /// Reads a recipe like [`read_recipe`](Self::read_recipe), with file names relative to `directory`.
    ///
    /// # Errors
    /// As for [`read_recipe`](Self::read_recipe).
    pub fn read_in_directory(text: &str, directory: &Path) -> Result<Self> {
        Self::read_recipe(text, &|_, name| directory.join(name))
    }

    fn parse_toml(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().unwrap_or_default();
        let recipe = if let Some(scheme) = table.get("scheme") {
            refuse_replaced(scheme, &table)?;
            toml::from_str(text).map(SchemeRecipe::into)
        } else {
            // This also reports text that is not TOML at all.
            toml::from_str(text)
        };
        let recipe: Self = recipe.map_err(|error| {
            let reason = describe_toml_error(text, &error);
            Error::recipe_error(format!("this is not a recipe: {reason}"))
        })?;
        recipe.validate()
    }
}

/// Describes a mistake in TOML in one line, with the line of the text that has it.
fn describe_toml_error(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim_end();
    let place = error.span().and_then(|span| {
        let before = text.get(..span.start)?;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = text[start..].lines().next()?.trim();
        let number = before.matches('\n').count() + 1;
        (!line.is_empty()).then(|| format!("`{line}`, line {number}: "))
    });
    place.unwrap_or_default() + message
}

/// The keys of a recipe that a scheme replaces.
const REPLACED_KEYS: [&str; 6] = [
    "markup",
    "normalize",
    "tokens",
    "ngram",
    "segment",
    "filter",
];

/// Formats the range of a number for a message.
fn describe_range(range: std::ops::RangeInclusive<u32>) -> String {
    match range.into_inner() {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// Refuses a recipe that contains keys that its scheme replaces.
fn refuse_replaced(scheme: &toml::Value, table: &toml::Table) -> Result<()> {
    let said: Vec<_> = (REPLACED_KEYS.into_iter())
        .filter(|key| table.contains_key(*key))
        .collect();
    if said.is_empty() {
        return Ok(());
    }
    Err(Error::recipe_error(format!(
        "scheme = {scheme} decides over all between a text and its features, but the recipe has {} \
         as well: leave the one or the others out; built-in recipes with a scheme are {}",
        said.join(", "),
        CompatScheme::BUILT_IN.map(CompatScheme::name).join(", ")
    )))
}

impl WeightScheme {
    /// Returns the name in a recipe.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frequency => "frequency",
            Self::Binary => "binary",
            Self::Levels => "levels",
            Self::Tfidf => "tfidf",
            Self::Given => "given",
        }
    }
}

impl FromStr for Recipe {
    type Err = Error;

    /// Reads a TOML document that names no files. For one that names files, use [`Recipe::read_recipe`].
    fn from_str(text: &str) -> Result<Self> {
        let recipe = Self::parse_toml(text)?;
        if let Some((key, name)) = recipe.file_names().first() {
            return Err(recipe.recipe_error(format!(
                "{key} names the file {name}, but a recipe without a directory cannot name files"
            )));
        }
        recipe.without_stray_files()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_round_trips_and_identity_is_stable() {
        for name in Recipe::NAMES {
            let recipe = Recipe::built_in(name).unwrap();
            let read: Recipe = recipe.to_toml().parse().unwrap();
            assert_eq!(read, recipe);
            assert_eq!(read.recipe_id(), recipe.recipe_id());
        }
        let mut renamed = Recipe {
            name: "mine".into(),
            ..Recipe::default()
        };
        renamed.normalize.reverse();
        assert_eq!(
            renamed.validate().unwrap().recipe_id(),
            Recipe::default().recipe_id()
        );
        assert_ne!(
            Recipe::built_in("words-3").unwrap().recipe_id(),
            Recipe::default().recipe_id()
        );
    }

    #[test]
    fn scheme_recipes_set_only_open_values() {
        let toml = |name: &str| Recipe::built_in(name).unwrap().to_toml();
        assert!(!toml("1e0ng").contains("ngram"));
        for (name, from, to, said) in [
            (
                "1e0ng",
                "scheme = \"1e0ng\"",
                "scheme = \"1e0ng\"\nngram = 4",
                "scheme = \"1e0ng\" decides over all between a text and its features, but the recipe \
                 has ngram as well",
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
                "simhash.bits is 63, but must be 64",
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
            assert_ne!(
                changed.recipe_id(),
                Recipe::built_in(name).unwrap().recipe_id()
            );
        }
        let unseeded: Recipe = toml("datasketch-legacy")
            .replace("seed = 1", "")
            .parse()
            .unwrap();
        assert_eq!(unseeded, Recipe::built_in("datasketch-legacy").unwrap());
    }

    /// A recipe is the same whether its files are read from a directory or from memory, and a wrong or missing
    /// file is named.
    #[test]
    fn files_are_read_from_memory_as_from_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.txt"), "一\n").unwrap();
        let toml = Recipe::built_in("words-1").unwrap().to_toml();
        let toml = format!("{toml}\n[filter]\nstopwords = \"mine.txt\"\n");
        let read = |toml: &str, content: &'static str| {
            let content: Arc<[u8]> = content.as_bytes().into();
            Recipe::read_with_files(toml, &|name| (name == "mine.txt").then(|| content.clone()))
        };
        let from_directory = Recipe::read_in_directory(&toml, folder.path()).unwrap();
        let from_memory = read(&toml, "一\n").unwrap();
        assert_eq!(from_memory, from_directory);
        assert_eq!(from_memory.recipe_id(), from_directory.recipe_id());
        let digests: Vec<_> = from_memory.files.iter_digests().collect();
        assert_eq!((digests.len(), digests[0].0), (1, "mine.txt"));
        let wrong = read(&from_memory.to_toml(), "二\n").unwrap_err();
        let said = format!("but [files] says {}", digests[0].1);
        assert!(wrong.to_string().contains(&said), "{wrong}");
        let missing = toml.replace("mine.txt", "other.txt");
        let missing = read(&missing, "一\n").unwrap_err().to_string();
        let said = "filter.stopwords: the file 'other.txt' is missing";
        assert!(missing.contains(said), "{missing}");
    }

    #[test]
    fn invalid_recipes_are_refused_with_the_range() {
        let toml = Recipe::default().to_toml();
        for (from, to, said) in [
            ("ngram = 2", "ngram = 0", "ngram is 0, but must be 1 to 32"),
            ("bits = 64", "bits = 129", "simhash.bits is 129"),
            ("slots = 128", "slots = 4096", "minhash.slots is 4096"),
            ("version = 1", "version = 2", "version is 2"),
            ("ngram", "ngrams", "unknown field"),
            ("\"words\"", "\"wurds\"", "unknown variant"),
            (
                "[simhash]",
                "[segment]\n[simhash]",
                "is for tokens = \"jieba\"",
            ),
            (
                "[simhash]",
                "[filter]\nparts = \"n\"\n[simhash]",
                "parts of speech",
            ),
            (
                "[simhash]",
                "[filter]\nleast_characters = 101\n[simhash]",
                "is 101",
            ),
            ("\"frequency\"", "\"tfidf\"", "needs simhash.table"),
            (
                "\"frequency\"",
                "\"binary\"\ntable = \"x\"",
                "does not use it",
            ),
            ("\"frequency\"", "\"binary\"\ntop = 0", "simhash.top is 0"),
        ] {
            let error = toml.replacen(from, to, 1).parse::<Recipe>().unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
