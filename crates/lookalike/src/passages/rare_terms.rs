//! Rare terms: which documents may have a reworded passage of a text.
//!
//! A term is a word, or in a script without spaces a pair of neighbouring characters in either order. A document is cut
//! into parts of [`PART_WIDTH`]; an index knows the parts that have a term, if they are few. A document is a candidate if
//! two neighbouring slices of the text and two neighbouring parts of the document have [`MIN_MATCHES`] matches of such
//! terms. A match is a term that a slice and a part share, so a term in both slices and both parts makes four.
//!
//! There is no guarantee: a passage is found if enough of its rare terms are left close together somewhere.
//!
//! Memory: some 10 bytes for each rare term of a part, and 16 for each term that is not rare; building takes 16 bytes for
//! each term of a part in addition.

use std::collections::BTreeSet;

use super::grams::token_width;
use super::index::PassageIndex;
use super::reworded::{SLICE_WIDTH, cut_slices};
use crate::hash::mix_bits;

/// Width of a part of a document.
const PART_WIDTH: u32 = 4 * SLICE_WIDTH;

/// Smallest number of matches of two slices of a text and two parts of a candidate.
const MIN_MATCHES: usize = 4;

/// Limits of the number of parts that may have a rare term. Within them it is a thousandth of all parts.
const MAX_PARTS: std::ops::RangeInclusive<u32> = 64..=256;

/// The terms of texts, text by text, each text sorted by term.
#[derive(Debug, Default)]
pub struct PartTerms {
    /// Hash of every term, with each part that has it. Parts are numbered through all texts.
    terms: Vec<(u64, u32)>,
    /// Number of parts up to the end of each text.
    ends: Vec<u32>,
}

impl PartTerms {
    /// Adds a text by its tokens.
    pub fn push_text(&mut self, tokens: &[u64]) {
        let first = self.part_count();
        let from = self.terms.len();
        let mut width = 0;
        for (at, &token) in tokens.iter().enumerate() {
            let term = term_hash(token, tokens.get(at + 1).copied());
            self.terms
                .extend(term.map(|term| (term, first + width / PART_WIDTH)));
            width += token_width(token);
        }
        let mut added = self.terms.split_off(from);
        added.sort_unstable();
        added.dedup();
        self.terms.append(&mut added);
        self.ends.push(first + width.div_ceil(PART_WIDTH));
    }

    /// Appends the texts of another list, and leaves it empty.
    pub fn append_texts(&mut self, other: &mut Self) {
        let first = self.part_count();
        self.terms.extend(
            other
                .terms
                .drain(..)
                .map(|(term, part)| (term, first + part)),
        );
        self.ends
            .extend(other.ends.drain(..).map(|end| first + end));
    }

    /// Takes all terms with their parts, which count from `first_part`, and the number of parts up to the end of each
    /// text. The list is then empty.
    pub fn take_terms(&mut self, first_part: u32) -> (Vec<(u64, u32)>, Vec<u32>) {
        let Self {
            mut terms,
            mut ends,
        } = std::mem::take(self);
        terms.iter_mut().for_each(|(_, part)| *part += first_part);
        ends.iter_mut().for_each(|end| *end += first_part);
        (terms, ends)
    }

    /// Returns the number of terms, each as often as there are parts with it.
    pub fn term_count(&self) -> usize {
        self.terms.len()
    }

    fn part_count(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// Returns the hash of the term that begins with a token; `None` if a single character is at hand.
fn term_hash(token: u64, next: Option<u64>) -> Option<u64> {
    let is_character = |token: u64| token_width(token) == 1;
    if !is_character(token) {
        return Some(mix_bits(token));
    }
    let next = next.filter(|&it| is_character(it))?;
    let (low, high) = (token.min(next), token.max(next));
    Some(mix_bits(low << 32 | high))
}

/// The rare terms of documents, in memory.
#[derive(Debug, Default)]
pub struct RareTermIndex {
    parts: PassageIndex,
    /// Number of parts up to the end of each document.
    ends: Vec<u32>,
}

impl RareTermIndex {
    /// Builds an index of texts, which are numbered from 0.
    ///
    /// Cost: a sort of the terms on all threads of the pool.
    ///
    /// # Panics
    /// If there are more than [`PassageIndex::MAX_POSTINGS`] terms.
    pub fn from_terms(terms: PartTerms) -> Self {
        Self::from_pairs(terms.terms, terms.ends)
    }

    /// Builds an index of terms with their parts, in any order, each pair once. `ends` has the number of parts up to
    /// the end of each text.
    ///
    /// # Panics
    /// As [`from_terms`](Self::from_terms).
    pub fn from_pairs(terms: Vec<(u64, u32)>, ends: Vec<u32>) -> Self {
        let most = Self::max_parts(&ends);
        Self {
            parts: PassageIndex::from_pairs(terms, Some(most)),
            ends,
        }
    }

    /// Returns the largest number of parts that may have a rare term.
    pub fn max_parts(ends: &[u32]) -> u32 {
        let parts = ends.last().copied().unwrap_or(0);
        (parts / 1000).clamp(*MAX_PARTS.start(), *MAX_PARTS.end())
    }

    /// Returns the bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.parts.memory_bytes() + 4 * self.ends.len()
    }

    /// Returns the documents that may have a reworded passage of a text, ascending.
    ///
    /// Cost: for each slice a sort of the parts that have its terms and those of the slice before it.
    pub fn find_candidates(&self, tokens: &[u64]) -> Vec<u32> {
        let found = find_reworded_candidates(&self.ends, tokens, |term, parts| {
            parts.extend_from_slice(self.parts.documents_with(term));
            Ok::<_, std::convert::Infallible>(())
        });
        match found {
            Ok(found) => found,
            Err(never) => match never {},
        }
    }
}

/// Returns the documents that may have a reworded passage of a text, ascending. `ends` has the number of parts up to
/// the end of each document, and `add_parts` appends the parts that have a term, ascending, if it is rare.
///
/// # Errors
/// The errors of `add_parts`.
pub fn find_reworded_candidates<E>(
    ends: &[u32],
    tokens: &[u64],
    mut add_parts: impl FnMut(u64, &mut Vec<u32>) -> Result<(), E>,
) -> Result<Vec<u32>, E> {
    let mut found = BTreeSet::new();
    // Parts of the slice at hand, once for each term, behind those of the slice before it.
    let (mut parts, mut before) = (Vec::new(), 0);
    let mut terms = Vec::new();
    for slice in cut_slices(tokens) {
        terms.clear();
        terms.extend(slice.filter_map(|at| term_hash(tokens[at], tokens.get(at + 1).copied())));
        terms.sort_unstable();
        terms.dedup();
        parts.drain(..before);
        before = parts.len();
        for &term in &terms {
            add_parts(term, &mut parts)?;
        }
        add_candidates(ends, &parts, &mut found);
    }
    Ok(found.into_iter().collect())
}

/// Adds the documents with neighbouring parts that are in a list often enough.
fn add_candidates(ends: &[u32], parts: &[u32], found: &mut BTreeSet<u32>) {
    let mut sorted = parts.to_vec();
    sorted.sort_unstable();
    for run in sorted.windows(MIN_MATCHES) {
        let [first, last] = [run[0], run[MIN_MATCHES - 1]];
        if last - first > 1 {
            continue;
        }
        let document = |part: u32| ends.partition_point(|&end| end <= part) as u32;
        if document(first) == document(last) {
            found.insert(document(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens() -> impl Strategy<Value = Vec<u64>> {
        let token = prop_oneof![1 => 0..8u64, 1 => (1 << 40)..(1 << 40) + 40u64];
        proptest::collection::vec(token, 0..160)
    }

    /// The terms of each part of a text.
    fn plain_parts(tokens: &[u64]) -> Vec<BTreeSet<u64>> {
        let mut parts = Vec::new();
        let mut width = 0;
        for (at, &token) in tokens.iter().enumerate() {
            parts.resize_with((width / PART_WIDTH) as usize + 1, BTreeSet::new);
            let term = term_hash(token, tokens.get(at + 1).copied());
            parts[(width / PART_WIDTH) as usize].extend(term);
            width += token_width(token);
        }
        parts
    }

    fn plain_candidates(texts: &[Vec<u64>], query: &[u64]) -> Vec<u32> {
        let slices: Vec<BTreeSet<u64>> = cut_slices(query)
            .map(|slice| {
                slice
                    .filter_map(|at| term_hash(query[at], query.get(at + 1).copied()))
                    .collect()
            })
            .collect();
        let found = (0..).zip(texts).filter(|(_, text)| {
            let mut parts = plain_parts(text);
            parts.push(BTreeSet::new());
            let empty = BTreeSet::new();
            (0..slices.len()).any(|at| {
                let before = at.checked_sub(1).map_or(&empty, |before| &slices[before]);
                parts.windows(2).any(|two| {
                    let shared = [before, &slices[at]]
                        .iter()
                        .flat_map(|slice| two.iter().map(move |part| (*slice & part).len()))
                        .sum::<usize>();
                    shared >= MIN_MATCHES
                })
            })
        });
        found.map(|found| found.0).collect()
    }

    fn terms_of(texts: &[Vec<u64>]) -> PartTerms {
        let mut terms = PartTerms::default();
        texts.iter().for_each(|text| terms.push_text(text));
        terms
    }

    proptest! {
        /// Candidates are those of a plain scan, if no term is in too many parts.
        #[test]
        fn candidates_equal_a_scan(
            texts in proptest::collection::vec(tokens(), 0..6),
            query in tokens(),
        ) {
            let index = RareTermIndex::from_terms(terms_of(&texts));
            prop_assert_eq!(index.find_candidates(&query), plain_candidates(&texts, &query));
        }

        #[test]
        fn appended_lists_equal_one_list(a in proptest::collection::vec(tokens(), 0..4), b in proptest::collection::vec(tokens(), 0..4)) {
            let mut joined = terms_of(&a);
            joined.append_texts(&mut terms_of(&b));
            let all = terms_of(&[a, b].concat());
            prop_assert_eq!((&joined.terms, &joined.ends), (&all.terms, &all.ends));
        }
    }

    #[test]
    fn terms_of_characters_have_no_order() {
        assert_eq!(term_hash(5, Some(9)), term_hash(9, Some(5)));
        assert_eq!(term_hash(5, Some(1 << 40)), None);
        assert_eq!(term_hash(5, None), None);
        assert_ne!(term_hash(1 << 40, Some(5)), term_hash(1 << 41, Some(5)));
    }

    #[test]
    fn term_in_too_many_parts_is_not_rare() {
        let most = *MAX_PARTS.start();
        for (count, is_found) in [(most, true), (most + 1, false)] {
            let text: Vec<u64> = (0..MIN_MATCHES as u64)
                .map(|token| 1 << 40 | token)
                .collect();
            let texts = vec![text.clone(); count as usize];
            let found = RareTermIndex::from_terms(terms_of(&texts)).find_candidates(&text);
            assert_eq!(found.len(), if is_found { count as usize } else { 0 });
        }
    }
}
