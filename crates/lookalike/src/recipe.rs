//! Everything that determines a fingerprint.
//!
//! A recipe says how a text becomes tokens, features and sketches. It reads and writes as TOML, has
//! a name when it is built in, and is identified by a hash of all that it says: two recipes with
//! different identities never compare.
//!
//! A recipe may name files: a user dictionary, stopwords, a table of weights. Their content is part
//! of what it says, so it records a digest of each; where the files are, and what they are called,
//! is not.

mod files;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hash;

pub use files::Files;
pub(crate) use files::{Loaded, UserWord};

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
    /// Words as `words` has them, and Chinese cut into words by jieba. How: [`SegmentRecipe`].
    Jieba,
}

impl Tokens {
    /// The name, as in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Characters => "characters",
            Self::Whitespace => "whitespace",
            Self::Jieba => "jieba",
        }
    }
}

/// Which words jieba makes of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The most probable words, one after the other.
    #[default]
    Precise,
    /// Every word of the dictionary that occurs, overlapping.
    Full,
    /// The most probable words, and before a long one the shorter ones in it.
    Search,
}

/// How Chinese is cut into words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRecipe {
    /// The dictionary and its version; there is one.
    #[serde(default = "dictionary")]
    pub dictionary: String,
    /// Which words are made.
    #[serde(default)]
    pub mode: Mode,
    /// Whether a hidden Markov model finds words that the dictionary does not have. Not for the
    /// full mode, which knows the dictionary alone.
    #[serde(default = "yes")]
    pub hmm: bool,
    /// A file with words of one's own: `word [frequency] [part of speech]` a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// The dictionary that comes with the engine.
const DICTIONARY: &str = "jieba-rs-0.11.0";

fn dictionary() -> String {
    DICTIONARY.into()
}

fn yes() -> bool {
    true
}

impl Default for SegmentRecipe {
    fn default() -> Self {
        Self {
            dictionary: dictionary(),
            mode: Mode::Precise,
            hmm: true,
            user: None,
        }
    }
}

/// Which tokens count. One that does not is as if it were not in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterRecipe {
    /// Tokens with fewer characters do not count; 0 and 1 keep all, 100 at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub least_characters: u32,
    /// Tokens on these lists do not count: `zh` and `en` are built in, all else is a file with a
    /// word a line.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_many"
    )]
    pub stopwords: Vec<String>,
    /// Only tokens with these parts of speech count: beginnings of jieba's tags, such as `n` for all
    /// nouns; `content` stands for [`CONTENT`].
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_many"
    )]
    pub parts: Vec<String>,
}

/// The parts of speech of words that carry content: nouns, verbs, adjectives, idioms, set phrases,
/// abbreviations, words of state, foreign words.
pub const CONTENT: [&str; 8] = ["n", "v", "a", "i", "l", "j", "z", "eng"];

/// The parts of speech in jieba's dictionary and of what it cuts without one.
const TAGS: [&str; 56] = [
    "a", "ad", "ag", "an", "b", "c", "d", "df", "dg", "e", "eng", "f", "g", "h", "i", "j", "k",
    "l", "m", "mg", "mq", "n", "ng", "nr", "nrfg", "nrt", "ns", "nt", "nz", "o", "p", "q", "r",
    "rg", "rr", "rz", "s", "t", "tg", "u", "ud", "ug", "uj", "ul", "uv", "uz", "v", "vd", "vg",
    "vi", "vn", "vq", "x", "y", "z", "zg",
];

/// The lists of stopwords that are built in.
pub const STOPWORD_LISTS: [&str; 2] = ["zh", "en"];

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A list, or a string that stands for a list of one.
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
    /// Whether every token counts.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The stopword files.
    fn files(&self) -> impl Iterator<Item = &str> {
        let names = self.stopwords.iter().map(String::as_str);
        names.filter(|name| !STOPWORD_LISTS.contains(name))
    }
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
    /// By five levels, 1–5: those of a table `term<TAB>level` (1 where it has none), or, with a
    /// table of document frequencies, the fifths of tf·idf within the document.
    Levels,
    /// As often as it occurs, times its inverse document frequency in the table; a term that is not
    /// in the table counts as the rarest that is.
    Tfidf,
    /// As often as it occurs, times its weight in a table `term<TAB>weight` (1 where it has none).
    Given,
}

impl Weights {
    /// Whether weights come from a table.
    pub fn needs_table(self) -> bool {
        matches!(self, Self::Levels | Self::Tfidf | Self::Given)
    }
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
    /// The C++ library `simhash` with cppjieba, given its tables: [`YanyiwuRecipe`].
    Yanyiwu,
}

impl Scheme {
    /// Those that are built-in recipes: all that need no tables.
    pub const BUILT_IN: [Self; 6] = [
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
            Self::Yanyiwu => "yanyiwu",
        }
    }

    /// The MinHash family of the tool; none if its fingerprints are SimHashes.
    pub fn family(self) -> Option<MinHashFamily> {
        match self {
            Self::DatasketchLegacy => Some(MinHashFamily::DatasketchLegacy),
            Self::DatasketchAffine32 => Some(MinHashFamily::DatasketchAffine32),
            Self::E0ng | Self::Seomoz | Self::NewsMd5 | Self::JavaClassic | Self::Yanyiwu => None,
        }
    }

    /// The least and the most bits of a fingerprint, and what divides their number.
    fn bits(self) -> (std::ops::RangeInclusive<u32>, u32) {
        match self {
            Self::E0ng => (8..=128, 8),
            Self::Seomoz | Self::Yanyiwu => (64..=64, 1),
            Self::NewsMd5 => (8..=96, 1),
            Self::JavaClassic | Self::DatasketchLegacy | Self::DatasketchAffine32 => (8..=128, 1),
        }
    }
}

/// The tables of the scheme `yanyiwu`: files in the form of cppjieba, with a line for each word and
/// spaces between its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YanyiwuRecipe {
    /// The dictionary: `word frequency tag`.
    pub dictionary: String,
    /// Words of one's own: `word`, `word tag` or `word frequency tag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The hidden Markov model: logarithms of the probabilities of four states at the start, of those
    /// behind each, and of characters in each, `character:weight` with commas between.
    pub hmm: String,
    /// The inverse document frequencies: `word idf`.
    pub idf: String,
    /// The words that do not count.
    pub stopwords: String,
}

impl YanyiwuRecipe {
    /// The files, each with the key that names it.
    fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
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

    fn names(&mut self) -> impl Iterator<Item = &mut String> {
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
    /// The names that the files have in cppjieba.
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

/// The bits of SimHash, and the weights of features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimHashRecipe {
    /// Bits of the fingerprint, 8–128.
    pub bits: u32,
    /// How often a feature votes.
    #[serde(default)]
    pub weights: Weights,
    /// The file with the weights, where they come from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Only so many features vote, the heaviest, from 1 on; of equal ones those that come first in
    /// a fixed order of hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<u32>,
}

impl Default for SimHashRecipe {
    fn default() -> Self {
        Self {
            bits: 64,
            weights: Weights::Frequency,
            table: None,
            top: None,
        }
    }
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
    /// The tables of that scheme, if it has some.
    #[serde(skip)]
    pub yanyiwu: Option<YanyiwuRecipe>,
    /// Markup to take off.
    #[serde(default)]
    pub markup: Markup,
    /// Normalisation steps.
    pub normalize: Vec<Step>,
    /// What a token is.
    pub tokens: Tokens,
    /// Tokens in a feature, 1–32.
    pub ngram: u32,
    /// How Chinese is cut into words, with [`Tokens::Jieba`]; the default is
    /// [`SegmentRecipe::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<SegmentRecipe>,
    /// Which tokens count.
    #[serde(default, skip_serializing_if = "FilterRecipe::is_empty")]
    pub filter: FilterRecipe,
    /// SimHash.
    pub simhash: SimHashRecipe,
    /// MinHash.
    pub minhash: MinHashRecipe,
    /// The files that the recipe names, with digests of their content.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub files: Files,
}

/// What a recipe with a scheme says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemeRecipe {
    name: String,
    version: u32,
    scheme: Scheme,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    yanyiwu: Option<YanyiwuRecipe>,
    simhash: SimHashRecipe,
    minhash: MinHashRecipe,
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    files: Files,
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
            tokens: Tokens::Whitespace,
            ngram: 1,
            simhash,
            minhash,
            ..Self::default()
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
            yanyiwu: None,
            markup: Markup::None,
            normalize: vec![Nfkc, Fold, ZeroWidth, Simplified, Punctuation, Whitespace],
            tokens: Tokens::Words,
            ngram: 2,
            segment: None,
            filter: FilterRecipe::default(),
            simhash: SimHashRecipe::default(),
            minhash: MinHashRecipe {
                family: MinHashFamily::FastSimilarity,
                slots: 128,
                seed: None,
            },
            files: Files::default(),
        }
    }
}

impl Recipe {
    /// The names under which [`named`](Self::named) knows a recipe.
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

    /// A built-in recipe; `default` is another name for `default-1`.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn named(name: &str) -> Result<Self> {
        let mut schemes = Scheme::BUILT_IN.into_iter();
        if let Some(scheme) = schemes.find(|scheme| scheme.name() == name) {
            return Ok(Self::of_scheme(scheme));
        }
        let words = |ngram| Self {
            name: name.into(),
            ngram,
            ..Self::default()
        };
        let jieba = |mode| Self {
            tokens: Tokens::Jieba,
            segment: Some(SegmentRecipe {
                mode,
                hmm: mode != Mode::Full,
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
                tokens: Tokens::Characters,
                ..words(3)
            }),
            "jieba" => Ok(jieba(Mode::Precise)),
            "jieba-full" => Ok(jieba(Mode::Full)),
            "jieba-search" => Ok(jieba(Mode::Search)),
            "yanyiwu" => Err(Self::needs_tables()),
            _ => Err(Error::recipe(format!(
                "there is no recipe named '{name}'; built in are {}, or give a TOML file",
                Self::NAMES.join(", ")
            ))),
        }
    }

    /// Why there is no recipe named `yanyiwu`, with one that can be had.
    fn needs_tables() -> Error {
        let example = Self {
            name: "mine".into(),
            yanyiwu: Some(YanyiwuRecipe::default()),
            simhash: SimHashRecipe {
                weights: Weights::Tfidf,
                ..SimHashRecipe::default()
            },
            ..Self::of_scheme(Scheme::Yanyiwu)
        };
        Error::recipe(format!(
            "yanyiwu is not built in: its tables are files, which come with cppjieba. Give a TOML \
             file beside them:\n\n{}",
            example.to_toml()
        ))
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
            yanyiwu: None,
            simhash,
            minhash: MinHashRecipe {
                family: family.unwrap_or(minhash.family),
                seed: family.map(|_| DEFAULT_SEED),
                ..minhash
            },
            files: Files::default(),
        }
        .into()
    }

    /// Refuses what no engine could do.
    ///
    /// # Errors
    /// Names the value and its range.
    pub fn validated(mut self) -> Result<Self> {
        self.check_numbers()?;
        self.check_scheme()?;
        if self.minhash.family.is_seeded() {
            self.minhash.seed.get_or_insert(DEFAULT_SEED);
        }
        self.normalize.sort_unstable();
        self.normalize.dedup();
        if self.tokens == Tokens::Jieba {
            self.segment.get_or_insert_default();
        }
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
            let range = in_words(range);
            Err(self.refusal(format!("{what} is {value}, but must be {range}")))
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

    fn check_segment(&self) -> Result<()> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        if self.tokens != Tokens::Jieba {
            return Err(self.refusal("[segment] is for tokens = \"jieba\""));
        }
        if segment.dictionary != DICTIONARY {
            return Err(self.refusal(format!(
                "segment.dictionary is '{}', but this program has {DICTIONARY}: words of your own \
                 go into segment.user",
                segment.dictionary
            )));
        }
        if segment.mode == Mode::Full && segment.hmm {
            return Err(self.refusal(
                "segment.hmm is true, but the full mode takes the words of the dictionary alone: \
                 set segment.hmm = false",
            ));
        }
        Ok(())
    }

    fn check_filter(&self) -> Result<()> {
        let filter = &self.filter;
        if self.tokens == Tokens::Characters && !filter.is_empty() {
            return Err(self.refusal(
                "[filter] is for words, but the tokens are characters: filter.least_characters, \
                 filter.stopwords and filter.parts go with other tokens",
            ));
        }
        if !filter.parts.is_empty() && self.mode() != Some(Mode::Precise) {
            return Err(self.refusal(
                "filter.parts needs parts of speech, which tokens = \"jieba\" has with \
                 segment.mode = \"precise\" alone",
            ));
        }
        if filter.parts.iter().any(String::is_empty) {
            return Err(self.refusal("filter.parts has an empty part of speech"));
        }
        // Those of a user dictionary may be any.
        let has_own = self.segment.as_ref().is_some_and(|it| it.user.is_some());
        let is_known =
            |part: &&String| *part == "content" || TAGS.iter().any(|tag| tag.starts_with(&***part));
        if let Some(part) = filter.parts.iter().find(|part| !has_own && !is_known(part)) {
            return Err(self.refusal(format!(
                "filter.parts has '{part}', but jieba has no part of speech that begins so: its \
                 are {}, and content stands for {}",
                TAGS.join(" "),
                CONTENT.join(" ")
            )));
        }
        Ok(())
    }

    fn check_weights(&self) -> Result<()> {
        let SimHashRecipe { weights, table, .. } = &self.simhash;
        if self.scheme == Some(Scheme::Yanyiwu) {
            return self.check_tables();
        }
        match (weights.needs_table(), table) {
            (true, None) => Err(self.refusal(format!(
                "simhash.weights = \"{}\" needs simhash.table = \"FILE\"",
                weights.name()
            ))),
            (false, Some(table)) => Err(self.refusal(format!(
                "simhash.table is '{table}', but simhash.weights = \"{}\" has no use for it: set \
                 tfidf, levels or given",
                weights.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses other weights than those of the scheme with tables.
    fn check_tables(&self) -> Result<()> {
        let SimHashRecipe { weights, table, .. } = &self.simhash;
        if *weights != Weights::Tfidf {
            return Err(self.refusal(format!(
                "simhash.weights is {}, but the scheme yanyiwu weighs words by tf-idf: set \
                 simhash.weights = \"tfidf\"",
                weights.name()
            )));
        }
        if let Some(table) = table {
            return Err(self.refusal(format!(
                "simhash.table is '{table}', but the scheme yanyiwu has its weights in yanyiwu.idf"
            )));
        }
        Ok(())
    }

    fn refusal(&self, what: impl fmt::Display) -> Error {
        Error::recipe(format!("recipe '{}': {what}", self.name))
    }

    /// How Chinese is cut, if jieba does it.
    pub fn mode(&self) -> Option<Mode> {
        let segment = self.segment.as_ref();
        (self.tokens == Tokens::Jieba).then(|| segment.map_or(Mode::default(), |it| it.mode))
    }

    /// Refuses what the recipe's scheme, or the lack of one, forbids.
    fn check_scheme(&self) -> Result<()> {
        let refuse = |what: String| Err(self.refusal(what));
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
        if self.yanyiwu.is_some() != (scheme == Scheme::Yanyiwu) {
            return refuse("[yanyiwu] and scheme = \"yanyiwu\" need each other".into());
        }
        let (bits, divisor) = scheme.bits();
        if !bits.contains(&simhash.bits) || !simhash.bits.is_multiple_of(divisor) {
            let range = in_words(bits);
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
        let is_plain = simhash.weights == Weights::Frequency && simhash.top.is_none();
        if scheme != Scheme::Yanyiwu && !is_plain {
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
                yanyiwu: self.yanyiwu.clone(),
                simhash: self.simhash.clone(),
                minhash: self.minhash,
                files: self.files.clone(),
            }),
        };
        toml.expect("a recipe has only tables, strings and small numbers")
    }

    /// The identity. Files count by what is in them.
    pub fn id(&self) -> RecipeId {
        let mut bare = Self {
            name: String::new(),
            ..self.clone()
        };
        bare.name_files_by_content();
        bare.hashed()
    }

    /// The identity of what makes terms of a text: everything but sketches and weights. Tables of
    /// document frequencies carry it.
    pub fn terms_id(&self) -> RecipeId {
        let standard = Self::default();
        let mut bare = Self {
            name: String::new(),
            simhash: standard.simhash,
            minhash: standard.minhash,
            ..self.clone()
        };
        bare.name_files_by_content();
        bare.hashed()
    }

    fn hashed(&self) -> RecipeId {
        RecipeId(hash::bytes(u64::from(VERSION), self.to_toml().as_bytes()) as u64)
    }

    /// Reads a TOML document and the files that it names; `locate` says where a file is, by the key
    /// that names it (such as `simhash.table`) and its name.
    ///
    /// # Errors
    /// What is no recipe; a file that cannot be read, is not what it should be (with the line), or
    /// has another digest than the recipe says.
    pub fn read(text: &str, locate: &dyn Fn(&str, &str) -> std::path::PathBuf) -> Result<Self> {
        let mut recipe = Self::parse(text)?.without_stray_files()?;
        recipe.load(locate)?;
        Ok(recipe)
    }

    /// [`read`](Self::read), where the names of files are relative to `directory`.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_in(text: &str, directory: &Path) -> Result<Self> {
        Self::read(text, &|_, name| directory.join(name))
    }

    fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().unwrap_or_default();
        let recipe = if let Some(scheme) = table.get("scheme") {
            refuse_replaced(scheme, &table)?;
            toml::from_str(text).map(SchemeRecipe::into)
        } else {
            // What is no TOML at all is told here too.
            toml::from_str(text)
        };
        let recipe: Self =
            recipe.map_err(|error| Error::recipe(format!("this is not a recipe: {error}")))?;
        recipe.validated()
    }
}

/// The keys of a recipe that a scheme takes the place of.
const REPLACED: [&str; 6] = [
    "markup",
    "normalize",
    "tokens",
    "ngram",
    "segment",
    "filter",
];

/// What is allowed of a number.
fn in_words(range: std::ops::RangeInclusive<u32>) -> String {
    match range.into_inner() {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// Refuses a recipe that says what its scheme decides.
fn refuse_replaced(scheme: &toml::Value, table: &toml::Table) -> Result<()> {
    let said: Vec<_> = (REPLACED.into_iter())
        .filter(|key| table.contains_key(*key))
        .collect();
    if said.is_empty() {
        return Ok(());
    }
    Err(Error::recipe(format!(
        "scheme = {scheme} decides over all between a text and its features, but the recipe has {} \
         as well: leave the one or the others out; built-in recipes with a scheme are {}",
        said.join(", "),
        Scheme::BUILT_IN.map(Scheme::name).join(", ")
    )))
}

impl Weights {
    /// The name in a recipe.
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

    /// Reads a TOML document that names no files; [`Recipe::read`] is for those that do.
    fn from_str(text: &str) -> Result<Self> {
        let recipe = Self::parse(text)?;
        if let Some((key, name)) = recipe.file_names().first() {
            return Err(recipe.refusal(format!(
                "{key} names the file {name}, and nothing says where it is"
            )));
        }
        recipe.without_stray_files()
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
                "has no use for it",
            ),
            ("\"frequency\"", "\"binary\"\ntop = 0", "simhash.top is 0"),
        ] {
            let error = toml.replacen(from, to, 1).parse::<Recipe>().unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
