//! Base text: what all documents were given, for example the question of an exam, a form or a cover sheet.
//!
//! Tokens of a document are *given* if they lie in a gram of an index (five words or ten characters, see `grams`) that
//! stands in a base text. They are replaced by tokens that are equal to no other, so they are never matched. Grams of a
//! base text name no candidates.
//!
//! ```text
//! document   own own own own GIVEN GIVEN GIVEN own own own
//! compared   own own own own  ░     ░     ░    own own own
//! ```
//!
//! Guarantees: no passage begins or ends with a given token, and the tokens that make a passage long enough are not
//! given. A passage may go on across up to [`MAX_BRIDGED_WIDTH`] of given text, as across an edit, because five words of
//! a question are also a phrase that an answer uses. In a reworded passage, which is judged by shares, given tokens count
//! as changed ones.
//!
//! Grams are found by their hashes and compared token by token, so no token is given by chance.
//!
//! Cost: a look-up in a table for each token of a document. Memory: some 40 bytes for each token of the base texts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use super::PassageSettings;
use super::grams::{GramList, index_width, is_character};
use crate::text::frequencies::FeatureHasher;

/// Largest width of given text inside a passage: 12 words or 24 characters, which is the widest edit that needs no
/// further evidence.
pub(super) const MAX_BRIDGED_WIDTH: u32 = 24;

/// Characters that stand for given ones in a document and in a source: those of two planes for private use, of which a
/// text has next to none.
const MASKED_CHARACTERS: [u64; 2] = [0xf_0000, 0x10_0000];

/// Characters of a plane for private use.
const PLANE_CHARACTERS: u64 = 0xfffe;

/// The side of a pair on which a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairSide {
    Document,
    Source,
}

/// Texts that all documents were given, as the grams that stand in them.
///
/// ```
/// use lookalike::passages::{BaseText, PassageSettings};
///
/// let mut base = BaseText::new(PassageSettings::default());
/// let question: Vec<u64> = (0..12).map(|word| word << 40 | 1 << 60).collect();
/// base.add_text(&question);
/// let answer = [&[7 << 40], &question[..5], &[8 << 40], &question[..4]].concat();
/// let given: Vec<_> = base.find_given(&answer);
/// assert_eq!(given, [1..6]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct BaseText {
    settings: PassageSettings,
    /// The tokens of all texts, text by text.
    tokens: Vec<u64>,
    /// The first place of each gram in them, by its hash.
    grams: HashMap<u64, u32, BuildHasherDefault<FeatureHasher>>,
    /// Places of different grams that have the hash of the first one, by it. There are none unless somebody makes them.
    collisions: HashMap<u64, Vec<u32>, BuildHasherDefault<FeatureHasher>>,
    text_count: u64,
}

impl BaseText {
    /// Creates a base without texts, for passages of a length.
    pub fn new(settings: PassageSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Adds a text by its tokens.
    pub fn add_text(&mut self, tokens: &[u64]) {
        let mut grams = GramList::default();
        grams.fill_grams(tokens, self.gram_width());
        let first = self.tokens.len() as u32;
        self.tokens.extend_from_slice(tokens);
        self.text_count += 1;
        for ((start, hash), &end) in (0..).zip(grams.hashes).zip(&grams.ends) {
            let gram = &tokens[start as usize..end as usize];
            match self.grams.entry(hash) {
                Entry::Vacant(place) => _ = place.insert(first + start),
                Entry::Occupied(place)
                    if self.tokens[*place.get() as usize..].starts_with(gram) => {}
                Entry::Occupied(_) => {
                    let places = self.collisions.entry(hash).or_default();
                    let is_known = |&place: &u32| self.tokens[place as usize..].starts_with(gram);
                    if !places.iter().any(is_known) {
                        places.push(first + start);
                    }
                }
            }
        }
    }

    /// Returns `true` if a gram stands in a base text.
    fn has_tokens(&self, hash: u64, gram: &[u64]) -> bool {
        let stands_at = |&place: &u32| self.tokens[place as usize..].starts_with(gram);
        let first = self.grams.get(&hash);
        let others = self.collisions.get(&hash);
        first.is_some_and(stands_at) || others.is_some_and(|places| places.iter().any(stands_at))
    }

    /// Returns the number of texts.
    pub fn text_count(&self) -> u64 {
        self.text_count
    }

    /// Returns the number of tokens of all texts.
    pub fn token_count(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// Returns the bytes of memory, about.
    pub fn memory_bytes(&self) -> usize {
        size_of::<u64>() * self.tokens.capacity() + 2 * size_of::<u64>() * self.grams.capacity()
    }

    /// Returns `true` if a selected gram stands in a base text, so that it names no candidates. The winnower must have
    /// the same settings.
    pub fn has_gram(&self, hash: u64) -> bool {
        self.grams.contains_key(&hash)
    }

    /// Returns the given tokens of a text: ranges that neither touch nor overlap, ascending.
    pub fn find_given(&self, tokens: &[u64]) -> Vec<Range<usize>> {
        let mut given: Vec<Range<usize>> = Vec::new();
        if self.grams.is_empty() {
            return given;
        }
        let mut grams = GramList::default();
        grams.fill_grams(tokens, self.gram_width());
        for (start, (&hash, &end)) in grams.hashes.iter().zip(&grams.ends).enumerate() {
            let end = end as usize;
            if !self.has_tokens(hash, &tokens[start..end]) {
                continue;
            }
            match given.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ => given.push(start..end),
            }
        }
        given
    }

    /// Returns a text of a document as reworded candidates are found by it: without its given tokens.
    pub fn mask_document(&self, tokens: &[u64]) -> Vec<u64> {
        self.mask_tokens(tokens, PairSide::Document)
    }

    /// Returns a text of a source as its terms are indexed: without its given tokens.
    pub fn mask_source(&self, tokens: &[u64]) -> Vec<u64> {
        self.mask_tokens(tokens, PairSide::Source)
    }

    fn mask_tokens(&self, tokens: &[u64], side: PairSide) -> Vec<u64> {
        let mut masked = tokens.to_vec();
        for range in self.find_given(tokens) {
            mask_range(&mut masked, range, side);
        }
        masked
    }

    fn gram_width(&self) -> u32 {
        index_width(self.settings.min_width())
    }
}

/// Replaces the tokens in a range by ones that are equal to no other token of either text, and have their widths.
fn mask_range(tokens: &mut [u64], range: Range<usize>, side: PairSide) {
    for (at, token) in (range.start as u64..).zip(&mut tokens[range]) {
        *token = if is_character(*token) {
            MASKED_CHARACTERS[side as usize] + at % PLANE_CHARACTERS
        } else {
            u64::MAX - 2 * at - side as u64
        };
    }
}

/// The given tokens of one text of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenTokens {
    /// The tokens as the text has them; empty if none are given.
    originals: Vec<u64>,
    ranges: Vec<Range<usize>>,
}

impl GivenTokens {
    /// Replaces the given tokens of a text by ones that are equal to no other, and keeps what they were.
    pub(super) fn mask_text(
        &mut self,
        base: Option<&BaseText>,
        tokens: &mut [u64],
        side: PairSide,
    ) {
        self.originals.clear();
        self.ranges.clear();
        let Some(base) = base else {
            return;
        };
        self.ranges = base.find_given(tokens);
        if self.ranges.is_empty() {
            return;
        }
        self.originals.extend_from_slice(tokens);
        for range in &self.ranges {
            mask_range(tokens, range.clone(), side);
        }
    }

    /// Returns the tokens as the text has them. `tokens` are those that are compared.
    pub(super) fn original_tokens<'t>(&'t self, tokens: &'t [u64]) -> &'t [u64] {
        if self.ranges.is_empty() {
            tokens
        } else {
            &self.originals
        }
    }

    /// Returns the number of given tokens in a range.
    pub(super) fn count_within(&self, range: &Range<usize>) -> usize {
        self.parts_within(range).map(|part| part.len()).sum()
    }

    /// Returns the given tokens in a range, ascending.
    pub(super) fn parts_within(&self, range: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let (start, end) = (range.start, range.end);
        let first = self.ranges.partition_point(|given| given.end <= start);
        let overlapping = self.ranges[first..]
            .iter()
            .take_while(move |given| given.start < end);
        overlapping.map(move |given| given.start.max(start)..given.end.min(end))
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        8 * self.originals.len() + size_of::<Range<usize>>() * self.ranges.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::grams::token_width;
    use super::*;

    /// Few words and few characters, so that runs repeat.
    fn tokens() -> impl Strategy<Value = Vec<u64>> {
        let token = prop_oneof![2 => 1..4u64, 1 => (1..3u64).prop_map(|token| 1 << 60 | token)];
        proptest::collection::vec(token, 0..60)
    }

    /// Returns the given tokens by their definition: those of every shortest run with the width that stands in a base.
    fn scan_given(bases: &[Vec<u64>], tokens: &[u64], width: u32) -> Vec<bool> {
        let mut given = vec![false; tokens.len()];
        for start in 0..tokens.len() {
            let width_to = |end: usize| {
                tokens[start..end]
                    .iter()
                    .map(|&token| token_width(token))
                    .sum::<u32>()
            };
            let Some(end) = (start..=tokens.len()).find(|&end| width_to(end) >= width) else {
                break;
            };
            let run = &tokens[start..end];
            let stands_in = |base: &Vec<u64>| base.windows(run.len()).any(|window| window == run);
            if bases.iter().any(stands_in) {
                given[start..end].fill(true);
            }
        }
        given
    }

    proptest! {
        #[test]
        fn given_tokens_are_those_of_a_scan(
            bases in proptest::collection::vec(tokens(), 0..3),
            text in tokens(),
            min_words in 2u32..12,
        ) {
            let settings = PassageSettings::new(min_words).unwrap();
            let mut base = BaseText::new(settings);
            bases.iter().for_each(|tokens| base.add_text(tokens));
            let mut found = vec![false; text.len()];
            let ranges = base.find_given(&text);
            prop_assert!(ranges.windows(2).all(|two| two[0].end < two[1].start));
            for range in ranges {
                found[range].fill(true);
            }
            prop_assert_eq!(&found, &scan_given(&bases, &text, index_width(2 * min_words)));
            // Masked tokens keep their widths, and no document has one that a source has.
            let (document, source) = (base.mask_document(&text), base.mask_source(&text));
            for (at, &is_given) in found.iter().enumerate() {
                prop_assert_eq!(token_width(document[at]), token_width(text[at]));
                prop_assert_eq!(token_width(source[at]), token_width(text[at]));
                prop_assert_eq!(document[at] == text[at], !is_given);
                prop_assert_eq!(document[at] == source[at], !is_given);
            }
        }

        #[test]
        fn parts_are_counted_within_a_range(text in tokens(), from in 0..60usize, length in 0..60usize) {
            let mut base = BaseText::new(PassageSettings::new(2).unwrap());
            base.add_text(&[1, 2, 3, 1]);
            let mut masked = text.clone();
            let mut given = GivenTokens::default();
            given.mask_text(Some(&base), &mut masked, PairSide::Source);
            prop_assert_eq!(given.original_tokens(&masked), &text[..]);
            let range = from.min(text.len())..(from + length).min(text.len());
            let expected = range.clone().filter(|&at| masked[at] != text[at]).count();
            prop_assert_eq!(given.count_within(&range), expected);
        }
    }

    #[test]
    fn base_counts_its_texts() {
        let mut base = BaseText::new(PassageSettings::default());
        assert!(base.find_given(&[1; 40]).is_empty());
        base.add_text(&[1; 40]);
        base.add_text(&[2]);
        assert_eq!((base.text_count(), base.token_count()), (2, 41));
        assert_eq!(base.find_given(&[1; 9]), []);
        assert_eq!(base.find_given(&[1; 10]).first(), Some(&(0..10)));
    }
}
