//! Other tools' fingerprints, bit for bit.
//!
//! A recipe with a [`CompatScheme`] takes every step from a text to its features and their hashes from
//! another tool. The results are then used like other features: sets of them have Jaccard indexes, and a
//! text without features matches at most equal texts.
//! [`SimHasher::original_fingerprint`](crate::sketch::SimHasher::original_fingerprint) and
//! [`MinHasher::original_signature`](crate::sketch::MinHasher::original_signature) return what the tool itself
//! prints, also for texts without features.
//!
//! | scheme | features of a text | hash | a bit is set if the vote is |
//! |---|---|---|---|
//! | `1e0ng` | 4 code points of its lower-cased word characters | MD5 | above 0 |
//! | `seomoz` | 4 words of its lower-cased text | MD5 | above 0 |
//! | `news-md5` | parts between white space | MD5 | at least 0 |
//! | `java-classic` | parts between blanks | Python 2's, of UTF-16 | at least 0 |
//! | `datasketch-*` | parts between white space | SHA-1 | – |
//! | `yanyiwu` | words of cppjieba, weighted | lookup3 | above 0 |
//!
//! Features that the caller has cut are hashed unchanged, by their UTF-8 bytes.
//!
//! This module knows neither the analysis of texts nor the sketches, which both use it.

mod datasketch;
mod e0ng;
mod java_classic;
mod news_md5;
mod python;
mod seomoz;
mod yanyiwu;

use std::ops::Range;

pub(crate) use datasketch::hash_messages as datasketch_hashes;
pub use e0ng::fingerprint_weighted_tokens;
pub use java_classic::{count_reachable_blocks, java_block_values};
pub(crate) use yanyiwu::vote_in_doubles as vote_of_keywords;
pub(crate) use yanyiwu::{File, Sources, Tables};

use crate::arch::Cpu;
use crate::digest::{Digest, DigestState, HashCache, Md5, Sha1, ShortMessage, digest_ranges};
use crate::recipe::{CompatScheme, Recipe};

/// Buffers that are reused from text to text.
#[derive(Debug, Default)]
pub(crate) struct CompatBuffers {
    /// Bytes from which the features are cut.
    bytes: Vec<u8>,
    /// Ranges of the features in `bytes`, in order.
    ranges: Vec<Range<usize>>,
    /// The lowest 64 bits of the hash of every feature.
    pub(crate) low: Vec<u64>,
    /// Bits 64 to 127 of the hash of every feature.
    high: Vec<u64>,
    /// Distinct features with their weights in steps, for a scheme that weighs them.
    pub(crate) weighed: Vec<(u64, i64)>,
    /// Cached hashes of this scheme's features.
    seen: HashCache,
    seen_under: Option<CompatScheme>,
    /// Positions of the features whose hashes are not cached.
    unseen: Vec<usize>,
    yanyiwu: yanyiwu::ExtractorBuffers,
}

/// A scheme with the tables that its recipe names.
#[derive(Clone, Debug)]
pub(crate) struct CompatTool {
    scheme: CompatScheme,
    voting: Option<VotingRule>,
    extractor: Option<yanyiwu::KeywordExtractor>,
}

/// Content of a text that yields no feature under a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRemainder {
    /// Nothing.
    None,
    /// Words that are too few for a feature, with their hash.
    Words(u64),
}

/// The vote of the features of a scheme on a fingerprint. It follows from the scheme, so it is chosen once, when the
/// tool of a recipe is made.
#[derive(Clone, Copy, Debug)]
struct VotingRule {
    /// Bits for votes of exactly 0, the same in every position.
    tie: u64,
    /// Fingerprint of a text without features.
    of_empty_text: u128,
    /// Fingerprint of an empty list of features.
    of_no_features: u128,
    /// `true` if weighted keywords vote in doubles, in their order.
    by_keywords: bool,
}

impl VotingRule {
    /// Returns the rule of a scheme, or `None` if the scheme has no SimHash.
    fn from_scheme(scheme: CompatScheme) -> Option<Self> {
        let tie = match scheme {
            CompatScheme::E0ng | CompatScheme::Seomoz | CompatScheme::Yanyiwu => 0,
            CompatScheme::NewsMd5 | CompatScheme::JavaClassic => u64::MAX,
            CompatScheme::DatasketchLegacy | CompatScheme::DatasketchAffine32 => return None,
        };
        let of_ties = u128::from(tie) << 64 | u128::from(tie);
        let is_e0ng = scheme == CompatScheme::E0ng;
        Some(Self {
            tie,
            of_empty_text: if is_e0ng {
                e0ng::EMPTY_FINGERPRINT
            } else {
                of_ties
            },
            of_no_features: of_ties,
            by_keywords: scheme == CompatScheme::Yanyiwu,
        })
    }
}

/// The votes of the features of a text under a scheme, besides the lowest 64 bits of every hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignVotes<'a> {
    rule: VotingRule,
    high: &'a [u64],
    keywords: &'a [(u64, f64)],
    of_nothing: u128,
}

impl<'a> ForeignVotes<'a> {
    /// Returns the keywords with their weights in voting order, if the tool votes in doubles.
    pub(crate) fn weighted_keywords(&self) -> Option<&'a [(u64, f64)]> {
        self.rule.by_keywords.then_some(self.keywords)
    }

    /// Returns bits 64 to 127 of every hash.
    pub(crate) fn upper_hashes(&self) -> &'a [u64] {
        self.high
    }

    /// Returns the bits for votes of exactly 0, the same in every position.
    pub(crate) fn tie_bits(&self) -> u64 {
        self.rule.tie
    }

    /// Returns the fingerprint that the tool gives if there are no features.
    pub(crate) fn of_nothing(&self) -> u128 {
        self.of_nothing
    }
}

impl CompatTool {
    /// Returns the tool of a recipe, or `None` if the recipe has no scheme.
    pub(crate) fn new(recipe: &Recipe) -> Option<Self> {
        let scheme = recipe.scheme?;
        Some(Self {
            scheme,
            voting: VotingRule::from_scheme(scheme),
            extractor: yanyiwu::KeywordExtractor::new(recipe),
        })
    }

    /// Returns the votes of the features of a text in the buffers, or `None` if the scheme has no SimHash.
    pub(crate) fn text_votes<'a>(&self, buffers: &'a CompatBuffers) -> Option<ForeignVotes<'a>> {
        let rule = self.voting?;
        Some(buffers.votes_by(rule, rule.of_empty_text))
    }

    /// Returns the votes of given features in the buffers, or `None` if the scheme has no SimHash.
    pub(crate) fn feature_votes<'a>(&self, buffers: &'a CompatBuffers) -> Option<ForeignVotes<'a>> {
        let rule = self.voting?;
        Some(buffers.votes_by(rule, rule.of_no_features))
    }

    /// Returns `true` if the tool gives the features of a text weights of its own.
    pub(crate) fn weighs_features(&self) -> bool {
        self.scheme == CompatScheme::Yanyiwu
    }

    fn keyword_extractor(&self) -> &yanyiwu::KeywordExtractor {
        let extractor = self.extractor.as_ref();
        extractor.expect("a recipe of this scheme names its tables, and Recipe::read reads them")
    }

    /// Fills the buffers with the hashes of the features of a text.
    pub(crate) fn analyze_text(
        &self,
        cpu: Cpu,
        text: &str,
        buffers: &mut CompatBuffers,
    ) -> TextRemainder {
        buffers.clear_buffers(self.scheme);
        match self.scheme {
            CompatScheme::E0ng => e0ng::analyze_windows(cpu, text, buffers),
            CompatScheme::Seomoz => return seomoz::analyze_words(cpu, text, buffers),
            CompatScheme::NewsMd5 => news_md5::analyze_tokens(cpu, text, buffers),
            CompatScheme::JavaClassic => java_classic::analyze_tokens(text, buffers),
            CompatScheme::DatasketchLegacy | CompatScheme::DatasketchAffine32 => {
                datasketch::analyze_messages(cpu, text, buffers);
            }
            CompatScheme::Yanyiwu => self.keyword_extractor().analyze_text(text, buffers),
        }
        TextRemainder::None
    }

    /// Fills the buffers with the hashes of given features, in their order. Weights matter only for a tool
    /// that has them.
    pub(crate) fn analyze_features<'f>(
        &self,
        cpu: Cpu,
        features: impl Iterator<Item = (&'f str, f64)>,
        buffers: &mut CompatBuffers,
    ) {
        buffers.clear_buffers(self.scheme);
        let unweighted = match self.scheme {
            CompatScheme::Yanyiwu => {
                features.for_each(|(feature, weight)| buffers.push_keyword(feature, weight));
                return;
            }
            _ => features.map(|(feature, _)| feature),
        };
        if self.scheme == CompatScheme::JavaClassic {
            unweighted.for_each(|feature| buffers.push_hash(java_classic::token_hash(feature)));
            return;
        }
        let mut bytes = std::mem::take(&mut buffers.bytes);
        for feature in unweighted {
            let start = bytes.len();
            bytes.extend_from_slice(feature.as_bytes());
            buffers.ranges.push(start..bytes.len());
        }
        match self.scheme {
            CompatScheme::E0ng => buffers.hash_ranges::<Md5>(cpu, &bytes, e0ng::window_hash),
            CompatScheme::Seomoz => buffers.hash_ranges::<Md5>(cpu, &bytes, seomoz::window_hash),
            CompatScheme::NewsMd5 => buffers.hash_ranges::<Md5>(cpu, &bytes, news_md5::token_hash),
            _ => buffers.hash_ranges::<Sha1>(cpu, &bytes, datasketch::message_hash),
        }
        buffers.bytes = bytes;
    }

    /// Appends the characters from which the tool makes features: in its lower case, without the characters
    /// that it ignores, and with one space between words.
    pub(crate) fn characters(&self, text: &str, into: &mut Vec<u32>) {
        let mut push = |character: char| into.push(character.into());
        match self.scheme {
            CompatScheme::E0ng => python::each_lowered(text, |character, is_word| {
                if is_word {
                    push(character);
                }
            }),
            CompatScheme::Seomoz => seomoz::join_words(text, push),
            CompatScheme::NewsMd5 => visit_joined(python::split_like_python_2(text), push),
            CompatScheme::JavaClassic => visit_joined(java_classic::split_tokens(text), push),
            CompatScheme::DatasketchLegacy | CompatScheme::DatasketchAffine32 => {
                visit_joined(python::split_whitespace(text), push);
            }
            CompatScheme::Yanyiwu => text.chars().for_each(push),
        }
    }

    /// Returns the features of a text as strings, in order, by the definition.
    pub(crate) fn list_features(&self, text: &str) -> Vec<String> {
        let owned = |parts: &mut dyn Iterator<Item = &str>| parts.map(str::to_owned).collect();
        match self.scheme {
            CompatScheme::E0ng => e0ng::list_features(text),
            CompatScheme::Seomoz => seomoz::list_features(text),
            CompatScheme::NewsMd5 => owned(&mut python::split_like_python_2(text)),
            CompatScheme::JavaClassic => owned(&mut java_classic::split_tokens(text)),
            CompatScheme::DatasketchLegacy | CompatScheme::DatasketchAffine32 => {
                owned(&mut python::split_whitespace(text))
            }
            CompatScheme::Yanyiwu => self.keyword_extractor().list_features(text),
        }
    }
}

fn visit_joined<'t>(words: impl Iterator<Item = &'t str>, mut visit: impl FnMut(char)) {
    for (at, word) in words.enumerate() {
        if at > 0 {
            visit(' ');
        }
        word.chars().for_each(&mut visit);
    }
}

/// Buffers with a capacity of more elements are freed before the next text.
const KEPT: usize = 1 << 20;

/// Empties a buffer, and frees it if its capacity is more than `kept` elements.
fn clear_buffer<T>(values: &mut Vec<T>, kept: usize) {
    values.clear();
    if values.capacity() > kept {
        *values = Vec::new();
    }
}

impl CompatBuffers {
    fn votes_by(&self, rule: VotingRule, of_nothing: u128) -> ForeignVotes<'_> {
        ForeignVotes {
            rule,
            high: &self.high,
            keywords: &self.yanyiwu.keywords,
            of_nothing,
        }
    }

    fn clear_buffers(&mut self, scheme: CompatScheme) {
        if self.seen_under != Some(scheme) {
            self.seen.clear();
            self.seen_under = Some(scheme);
        }
        clear_buffer(&mut self.bytes, KEPT);
        clear_buffer(&mut self.ranges, KEPT);
        clear_buffer(&mut self.low, KEPT);
        clear_buffer(&mut self.high, KEPT);
        clear_buffer(&mut self.weighed, KEPT);
        self.yanyiwu.clear_buffers(KEPT);
    }

    /// Appends the hash of a feature.
    fn push_hash(&mut self, hash: u128) {
        self.low.push(hash as u64);
        self.high.push((hash >> 64) as u64);
    }

    /// Appends a feature that votes in doubles.
    fn push_keyword(&mut self, feature: &str, weight: f64) {
        let hash = yanyiwu::hash_64(feature.as_bytes());
        self.push_hash(hash.into());
        self.yanyiwu.keywords.push((hash, weight));
    }

    /// Fills the hashes of the features in all ranges of `bytes`.
    fn hash_ranges<D: Digest>(
        &mut self,
        cpu: Cpu,
        bytes: &[u8],
        number: impl Fn(DigestState) -> u128,
    ) {
        self.seen.allocate_slots();
        self.unseen.clear();
        self.low.resize(self.ranges.len(), 0);
        self.high.resize(self.ranges.len(), 0);
        let mut fill = |at: usize, hash: u128| {
            self.low[at] = hash as u64;
            self.high[at] = (hash >> 64) as u64;
        };
        for (at, range) in self.ranges.iter().enumerate() {
            match ShortMessage::new(bytes, range).and_then(|message| self.seen.get(message)) {
                Some(hash) => fill(at, hash),
                None => self.unseen.push(at),
            }
        }
        digest_ranges::<D>(cpu, bytes, &self.ranges, &self.unseen, |at, state| {
            let hash = number(state);
            fill(at, hash);
            if let Some(message) = ShortMessage::new(bytes, &self.ranges[at]) {
                self.seen.remember_hash(message, hash);
            }
        });
    }
}

/// Returns an MD5 digest as a number, its first byte the highest.
fn md5_number(state: DigestState) -> u128 {
    state[..4].iter().fold(0, |number, word| {
        number << 32 | u128::from(word.swap_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_of_schemes_are_separate() {
        let text = "aaa bbb the ferry the ferry leaves aaa bbb at seven aaa";
        let hashed = |scheme, buffers: &mut CompatBuffers| {
            let tool = CompatTool {
                scheme,
                voting: None,
                extractor: None,
            };
            tool.analyze_text(Cpu::detect_best(), text, buffers);
            let of_text = (buffers.low.clone(), buffers.high.clone());
            let features = text.split(' ').map(|word| (word, 1.0));
            tool.analyze_features(Cpu::detect_best(), features, buffers);
            (of_text, buffers.low.clone(), buffers.high.clone())
        };
        let mut shared = CompatBuffers::default();
        for before in CompatScheme::BUILT_IN {
            for scheme in CompatScheme::BUILT_IN {
                hashed(before, &mut shared);
                let fresh = hashed(scheme, &mut CompatBuffers::default());
                assert_eq!(hashed(scheme, &mut shared), fresh, "{before:?} {scheme:?}");
                assert_eq!(hashed(scheme, &mut shared), fresh, "{scheme:?} again");
            }
        }
    }
}
