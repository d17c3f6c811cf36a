//! `yanyiwu`: the fingerprints of the C++ library `simhash` with cppjieba 5.6.7, which it includes.
//!
//! Features are the words that cppjieba cuts a text into, without words of one character and stopwords. The
//! heaviest distinct words vote, heaviest first, with weights tf · idf in doubles; a word without an idf gets
//! the mean of all idfs. In the library the caller chooses how many words vote. Here it is the recipe's
//! `simhash.top`, or otherwise the number that the library recommends: one for every 120 bytes of text, at
//! least 5 and at most 200.
//!
//! Dictionary, model, idf and stopwords are files that the recipe names. With the same tables, texts get the
//! fingerprints of the library compiled with GNU's C++ library, because that library determines the order of
//! equally heavy words. Given features all vote, in their order, as in the library's
//! `make_from_predefined_keywords`.
//!
//! Cost: some tens of nanoseconds per byte for cutting, and a sort of the words. Reading the tables of
//! cppjieba takes about 80 MB and 0.2 s.

mod cut;
mod heaviest;
mod lookup3;
mod tables;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

pub(super) use lookup3::hash_64;
pub(crate) use tables::{File, Sources, Tables};

use crate::recipe::Recipe;
use crate::text::hash_single_token;
use crate::text::weight::WEIGHT_STEPS;

/// Extracts the features of a text.
#[derive(Clone, Debug)]
pub(super) struct KeywordExtractor {
    tables: Arc<Tables>,
    top: Option<usize>,
}

/// Buffers that are reused from text to text.
#[derive(Debug, Default)]
pub(super) struct ExtractorBuffers {
    cut: cut::CutterBuffers,
    /// Indexes of the words, ordered by their bytes.
    order: Vec<usize>,
    /// Hashes and weights of the words that vote, in voting order.
    pub(super) keywords: Vec<(u64, f64)>,
}

/// Bytes of text per word that votes, and the smallest and largest number of such words.
const BYTES_A_WORD: usize = 120;
const LEAST_WORDS: usize = 5;
const MOST_WORDS: usize = 200;

impl KeywordExtractor {
    /// Returns the extractor of a recipe, or `None` if the recipe has no tables of this scheme.
    pub(super) fn new(recipe: &Recipe) -> Option<Self> {
        Some(Self {
            tables: recipe.loaded_files().tables.clone()?,
            top: recipe.simhash.top.map(|top| top as usize),
        })
    }

    /// Calls `visit` with the range and hash of every word that is not a stopword, in the order of the text.
    fn visit_words(
        &self,
        text: &str,
        cut: &mut cut::CutterBuffers,
        mut visit: impl FnMut(Range<usize>, u64),
    ) {
        self.tables.cutter.visit_words(text, cut, |place| {
            let hash = hash_64(&text.as_bytes()[place.clone()]);
            if !self.tables.is_stopword(hash) {
                visit(place, hash);
            }
        });
    }

    pub(super) fn analyze_text(&self, text: &str, buffers: &mut super::CompatBuffers) {
        let super::CompatBuffers {
            ranges,
            low,
            high,
            weighed,
            yanyiwu,
            ..
        } = buffers;
        self.visit_words(text, &mut yanyiwu.cut, |place, hash| {
            ranges.push(place);
            low.push(hash);
        });
        high.resize(low.len(), 0);
        self.weigh_words(text, (ranges, low), yanyiwu);
        let steps = |weight: f64| (weight * WEIGHT_STEPS as f64).round() as i64;
        let keywords = yanyiwu.keywords.iter();
        weighed.extend(keywords.map(|&(hash, weight)| (hash_single_token(hash), steps(weight))));
    }

    /// Finds the keywords of a text, given the ranges and hashes of its words.
    fn weigh_words(
        &self,
        text: &str,
        (places, hashes): (&[Range<usize>], &[u64]),
        own: &mut ExtractorBuffers,
    ) {
        let ExtractorBuffers {
            order, keywords, ..
        } = own;
        let word = |&at: &usize| &text.as_bytes()[places[at].clone()];
        order.extend(0..places.len());
        order.sort_unstable_by(|a, b| word(a).cmp(word(b)));
        keywords.extend(order.chunk_by(|a, b| word(a) == word(b)).map(|equal| {
            let hash = hashes[equal[0]];
            (hash, equal.len() as f64 * self.tables.idf(hash))
        }));
        let advised = (text.len() / BYTES_A_WORD).clamp(LEAST_WORDS, MOST_WORDS);
        heaviest::keep_heaviest(keywords, self.top.unwrap_or(advised));
    }

    pub(super) fn list_features(&self, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        self.visit_words(text, &mut cut::CutterBuffers::default(), |place, _| {
            words.push(text[place].to_owned());
        });
        words
    }
}

impl ExtractorBuffers {
    pub(super) fn clear_buffers(&mut self, kept: usize) {
        self.cut.trim_buffers(kept);
        super::clear_buffer(&mut self.order, kept);
        super::clear_buffer(&mut self.keywords, kept);
    }
}

/// Returns the vote of hashes in their order, in doubles: a bit is set if its sum is above 0.
pub(crate) fn vote_in_doubles(keywords: &[(u64, f64)]) -> u64 {
    let mut sums = [0.0; 64];
    for &(hash, weight) in keywords {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if hash >> bit & 1 == 1 {
                weight
            } else {
                -weight
            };
        }
    }
    let bits = sums.iter().enumerate();
    bits.map(|(bit, &sum)| u64::from(sum > 0.0) << bit).sum()
}
