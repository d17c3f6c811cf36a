//! Other tools' fingerprints, bit for bit.
//!
//! A recipe with a [`Scheme`] takes every step from a text to its features and their hashes from another
//! tool. The results are then used like other features: sets of them have Jaccard indexes, and a text without
//! features has no match. [`SimHasher::original`](super::SimHasher::original) and
//! [`MinHasher::original`](super::MinHasher::original) return what the tool itself prints, also for texts
//! without features.
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

mod datasketch;
mod e0ng;
mod java_classic;
mod news_md5;
mod python;
mod seomoz;
mod yanyiwu;

use std::ops::Range;

pub(super) use datasketch::{
    Permutations, finalized, finalized_64, hashes as datasketch_hashes, legacy,
};
pub(super) use yanyiwu::vote as vote_of_keywords;
pub(crate) use yanyiwu::{File, Sources, Tables};

use crate::arch::Cpu;
use crate::digest::{Digest, Md5, Seen, Sha1, Short, State, digests};
use crate::recipe::{Recipe, Scheme};

/// Buffers that are reused from text to text.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
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
    seen: Seen,
    seen_under: Option<Scheme>,
    /// Positions of the features whose hashes are not cached.
    unseen: Vec<usize>,
    yanyiwu: yanyiwu::Buffers,
}

/// A scheme with the tables that its recipe names.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) scheme: Scheme,
    extractor: Option<yanyiwu::Extractor>,
}

/// Content of a text that yields no feature under a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing.
    None,
    /// Words that are too few for a feature, with their hash.
    Words(u64),
}

/// Inputs of a vote under a scheme, besides the lowest 64 bits of every hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Original<'a> {
    scheme: Scheme,
    high: &'a [u64],
    of_text: bool,
    keywords: &'a [(u64, f64)],
}

impl<'a> Original<'a> {
    pub(crate) fn new(scheme: Scheme, buffers: &'a Buffers, of_text: bool) -> Self {
        Self {
            scheme,
            high: &buffers.high,
            of_text,
            keywords: &buffers.yanyiwu.keywords,
        }
    }

    /// Returns the keywords with their weights in voting order, if the tool votes in doubles.
    pub(crate) fn keywords(&self) -> Option<&'a [(u64, f64)]> {
        (self.scheme == Scheme::Yanyiwu).then_some(self.keywords)
    }

    /// Returns bits 64 to 127 of every hash.
    pub(crate) fn high(&self) -> &'a [u64] {
        self.high
    }

    /// Returns the bits for votes of exactly 0, the same in every position, or `None` if the scheme has no
    /// SimHash.
    pub(crate) fn tie(&self) -> Option<u64> {
        match self.scheme {
            Scheme::E0ng | Scheme::Seomoz | Scheme::Yanyiwu => Some(0),
            Scheme::NewsMd5 | Scheme::JavaClassic => Some(u64::MAX),
            Scheme::DatasketchLegacy | Scheme::DatasketchAffine32 => None,
        }
    }

    /// Returns the fingerprint that the tool gives to a text without features, or `None` if it has no
    /// SimHash.
    pub(crate) fn of_nothing(&self) -> Option<u128> {
        if self.scheme == Scheme::E0ng && self.of_text {
            return Some(e0ng::EMPTY);
        }
        self.tie()
            .map(|tie| u128::from(tie) << 64 | u128::from(tie))
    }
}

impl Tool {
    /// Returns the tool of a recipe, or `None` if the recipe has no scheme.
    pub(crate) fn new(recipe: &Recipe) -> Option<Self> {
        Some(Self {
            scheme: recipe.scheme?,
            extractor: yanyiwu::Extractor::new(recipe),
        })
    }

    fn extractor(&self) -> &yanyiwu::Extractor {
        let extractor = self.extractor.as_ref();
        extractor.expect("a recipe of this scheme names its tables, and Recipe::read reads them")
    }

    /// Fills the buffers with the hashes of the features of a text.
    pub(crate) fn analyze(&self, cpu: Cpu, text: &str, buffers: &mut Buffers) -> Rest {
        buffers.clear(self.scheme);
        match self.scheme {
            Scheme::E0ng => e0ng::analyze(cpu, text, buffers),
            Scheme::Seomoz => return seomoz::analyze(cpu, text, buffers),
            Scheme::NewsMd5 => news_md5::analyze(cpu, text, buffers),
            Scheme::JavaClassic => java_classic::analyze(text, buffers),
            Scheme::DatasketchLegacy | Scheme::DatasketchAffine32 => {
                datasketch::analyze(cpu, text, buffers);
            }
            Scheme::Yanyiwu => self.extractor().analyze(text, buffers),
        }
        Rest::None
    }

    /// Fills the buffers with the hashes of given features, in their order. Weights matter only for a tool
    /// that has them.
    pub(crate) fn analyze_features<'f>(
        &self,
        cpu: Cpu,
        features: impl Iterator<Item = (&'f str, f64)>,
        buffers: &mut Buffers,
    ) {
        buffers.clear(self.scheme);
        let unweighted = match self.scheme {
            Scheme::Yanyiwu => {
                features.for_each(|(feature, weight)| buffers.push_keyword(feature, weight));
                return;
            }
            _ => features.map(|(feature, _)| feature),
        };
        if self.scheme == Scheme::JavaClassic {
            unweighted.for_each(|feature| buffers.push(java_classic::hash(feature)));
            return;
        }
        let mut bytes = std::mem::take(&mut buffers.bytes);
        for feature in unweighted {
            let start = bytes.len();
            bytes.extend_from_slice(feature.as_bytes());
            buffers.ranges.push(start..bytes.len());
        }
        match self.scheme {
            Scheme::E0ng => buffers.hash::<Md5>(cpu, &bytes, e0ng::hash),
            Scheme::Seomoz => buffers.hash::<Md5>(cpu, &bytes, seomoz::hash),
            Scheme::NewsMd5 => buffers.hash::<Md5>(cpu, &bytes, news_md5::hash),
            _ => buffers.hash::<Sha1>(cpu, &bytes, datasketch::hash),
        }
        buffers.bytes = bytes;
    }

    /// Appends the characters from which the tool makes features: in its lower case, without the characters
    /// that it ignores, and with one space between words.
    pub(crate) fn characters(&self, text: &str, into: &mut Vec<u32>) {
        let mut push = |character: char| into.push(character.into());
        match self.scheme {
            Scheme::E0ng => python::each_lowered(text, |character, is_word| {
                if is_word {
                    push(character);
                }
            }),
            Scheme::Seomoz => seomoz::join_words(text, push),
            Scheme::NewsMd5 => joined(python::split_like_python_2(text), push),
            Scheme::JavaClassic => joined(java_classic::tokens(text), push),
            Scheme::DatasketchLegacy | Scheme::DatasketchAffine32 => {
                joined(python::split(text), push);
            }
            Scheme::Yanyiwu => text.chars().for_each(push),
        }
    }

    /// Returns the features of a text as strings, in order, by the definition.
    pub(crate) fn features(&self, text: &str) -> Vec<String> {
        let owned = |parts: &mut dyn Iterator<Item = &str>| parts.map(str::to_owned).collect();
        match self.scheme {
            Scheme::E0ng => e0ng::features(text),
            Scheme::Seomoz => seomoz::features(text),
            Scheme::NewsMd5 => owned(&mut python::split_like_python_2(text)),
            Scheme::JavaClassic => owned(&mut java_classic::tokens(text)),
            Scheme::DatasketchLegacy | Scheme::DatasketchAffine32 => {
                owned(&mut python::split(text))
            }
            Scheme::Yanyiwu => self.extractor().features(text),
        }
    }
}

fn joined<'t>(words: impl Iterator<Item = &'t str>, mut visit: impl FnMut(char)) {
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
fn clear<T>(values: &mut Vec<T>, kept: usize) {
    values.clear();
    if values.capacity() > kept {
        *values = Vec::new();
    }
}

impl Buffers {
    fn clear(&mut self, scheme: Scheme) {
        if self.seen_under != Some(scheme) {
            self.seen.clear();
            self.seen_under = Some(scheme);
        }
        clear(&mut self.bytes, KEPT);
        clear(&mut self.ranges, KEPT);
        clear(&mut self.low, KEPT);
        clear(&mut self.high, KEPT);
        clear(&mut self.weighed, KEPT);
        self.yanyiwu.clear(KEPT);
    }

    /// Appends the hash of a feature.
    fn push(&mut self, hash: u128) {
        self.low.push(hash as u64);
        self.high.push((hash >> 64) as u64);
    }

    /// Appends a feature that votes in doubles.
    fn push_keyword(&mut self, feature: &str, weight: f64) {
        let hash = yanyiwu::hash(feature.as_bytes());
        self.push(hash.into());
        self.yanyiwu.keywords.push((hash, weight));
    }

    /// Fills the hashes of the features in all ranges of `bytes`.
    fn hash<D: Digest>(&mut self, cpu: Cpu, bytes: &[u8], number: impl Fn(State) -> u128) {
        self.seen.prepare();
        self.unseen.clear();
        self.low.resize(self.ranges.len(), 0);
        self.high.resize(self.ranges.len(), 0);
        let mut fill = |at: usize, hash: u128| {
            self.low[at] = hash as u64;
            self.high[at] = (hash >> 64) as u64;
        };
        for (at, range) in self.ranges.iter().enumerate() {
            match Short::new(bytes, range).and_then(|message| self.seen.get(message)) {
                Some(hash) => fill(at, hash),
                None => self.unseen.push(at),
            }
        }
        digests::<D>(cpu, bytes, &self.ranges, &self.unseen, |at, state| {
            let hash = number(state);
            fill(at, hash);
            if let Some(message) = Short::new(bytes, &self.ranges[at]) {
                self.seen.put(message, hash);
            }
        });
    }
}

/// Returns an MD5 digest as a number, its first byte the highest.
fn md5_number(state: State) -> u128 {
    state[..4].iter().fold(0, |number, word| {
        number << 32 | u128::from(word.swap_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_scheme_has_seen_no_other_remembers() {
        let text = "aaa bbb the ferry the ferry leaves aaa bbb at seven aaa";
        let hashed = |scheme, buffers: &mut Buffers| {
            let tool = Tool {
                scheme,
                extractor: None,
            };
            tool.analyze(Cpu::best(), text, buffers);
            let of_text = (buffers.low.clone(), buffers.high.clone());
            let features = text.split(' ').map(|word| (word, 1.0));
            tool.analyze_features(Cpu::best(), features, buffers);
            (of_text, buffers.low.clone(), buffers.high.clone())
        };
        let mut shared = Buffers::default();
        for before in Scheme::BUILT_IN {
            for scheme in Scheme::BUILT_IN {
                hashed(before, &mut shared);
                let fresh = hashed(scheme, &mut Buffers::default());
                assert_eq!(hashed(scheme, &mut shared), fresh, "{before:?} {scheme:?}");
                assert_eq!(hashed(scheme, &mut shared), fresh, "{scheme:?} again");
            }
        }
    }
}
