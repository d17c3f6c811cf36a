//! The items of benchmarks, prepared for the search.
//!
//! A *unit* is a text that is searched for: the question of an item, and its answer if that is long enough to be known by
//! itself. Equal questions of several items are one unit. A *part* is a text that is looked for near a question: a choice,
//! the answer, or the end of the passage.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::alignment::SixteenthBits;
use super::evidence::{CorpusTerms, EvidenceWeights};
use super::item_tokens::ItemTokenizer;
use super::seed_index::{SeedBuilder, SeedIndex, has_seed};
use super::term_table::{NO_TERM, TermTable};
use super::unit_places::UnitPlaces;
use super::unit_weights::{share_of_units, weigh_units};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::hash_sequence;

/// Tokens of a question or an answer that are looked at: the first ones.
pub(super) const MAX_UNIT_TOKENS: usize = 512;

/// Fewest tokens of an answer that is searched for by itself.
const MIN_ANSWER_UNIT_TOKENS: usize = 20;

/// Tokens at the end of a passage that are looked for before a question.
const PASSAGE_TOKENS: usize = 48;

/// Domain of the hash of a unit's tokens.
const UNIT_DOMAIN: u64 = 11;

/// Lists of words that are frequent in every corpus.
const STOP_WORD_LISTS: [&str; 2] = ["en", "zh"];

/// The texts of an item.
#[derive(Clone, Copy, Debug)]
pub struct ItemTexts<'a> {
    /// The question.
    pub question: &'a str,
    /// The choices, in any order; none if the item has none.
    pub choices: &'a [String],
    /// The right answer; empty if it is unknown.
    pub answer: &'a str,
    /// A text that the question is about; empty if there is none.
    pub passage: &'a str,
}

/// The part of its items that a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum UnitKind {
    Question,
    Answer,
}

/// A text that is searched for.
#[derive(Clone, Debug)]
pub(super) struct SearchUnit {
    pub(super) kind: UnitKind,
    /// The tokens, as a range of [`ContaminationIndex::terms`].
    pub(super) tokens: Range<u32>,
    /// The items with this text.
    pub(super) items: Vec<u32>,
    /// Bits of all tokens, by items alone.
    pub(super) weight: u64,
}

/// An item, as ranges of [`ContaminationIndex::terms`].
#[derive(Clone, Debug)]
pub(super) struct IndexedItem {
    pub(super) choices: Vec<Range<u32>>,
    pub(super) answer: Range<u32>,
    pub(super) passage: Range<u32>,
    /// The unit of the question; `None` if it has no tokens.
    pub(super) question: Option<u32>,
    /// The unit of the answer, if it is one.
    pub(super) answer_unit: Option<u32>,
}

/// The items of benchmarks, prepared for the search.
#[derive(Clone, Debug)]
pub struct ContaminationIndex {
    pub(super) table: TermTable,
    /// The tokens of all units and parts.
    pub(super) terms: Vec<u32>,
    /// The part of its weight that each of these tokens has, in sixteenths; see `unit_weights`.
    pub(super) shares: Vec<u8>,
    /// Units, by their tokens.
    pub(super) units: Vec<SearchUnit>,
    pub(super) places: UnitPlaces,
    pub(super) items: Vec<IndexedItem>,
    pub(super) seeds: SeedIndex,
    /// Counts of tokens before a document is read: those of the items and what is known of the language.
    pub(super) prior: CorpusTerms,
    pub(super) prior_weights: EvidenceWeights,
}

impl ContaminationIndex {
    /// Builds the index of items.
    ///
    /// Cost: some microseconds for each item, and sorts of all tokens on all threads of the pool.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if all items have 2³¹ tokens or more, or a text has 4 GiB.
    pub fn build<'a>(items: impl IntoIterator<Item = ItemTexts<'a>>) -> Result<Self> {
        let mut builder = IndexBuilder::new();
        for item in items {
            builder.add_item(item)?;
        }
        builder.finish_index()
    }

    /// Returns the number of items.
    pub fn item_count(&self) -> usize {
        self.items.len()
    }

    /// Returns the number of an item's question. Equal questions have one number. `None` if the question has no words.
    pub fn question_number(&self, item: u32) -> Option<u32> {
        self.items[item as usize].question
    }

    /// Returns `true` if the question of an item is long enough to be found: three words, or four characters of a script
    /// without spaces.
    pub fn is_findable(&self, item: u32) -> bool {
        let unit = self.unit_of(item, UnitKind::Question);
        unit.is_some_and(|unit| has_seed(self.unit_terms(unit)))
    }

    /// Returns the number of different tokens of the items.
    pub fn term_count(&self) -> usize {
        self.table.len()
    }

    /// Returns the bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
            + self.seeds.memory_bytes()
            + size_of_val(&*self.terms)
            + self.shares.len()
            + size_of_val(&*self.units)
            + self.places.memory_bytes()
            + self
                .units
                .iter()
                .map(|unit| 4 * unit.items.len())
                .sum::<usize>()
            + size_of_val(&*self.items)
            + self
                .items
                .iter()
                .map(|item| size_of_val(&*item.choices))
                .sum::<usize>()
            + 12 * self.table.len()
    }

    /// Returns the weight of each token of a range.
    pub(super) fn range_weights(
        &self,
        range: &Range<u32>,
        weights: &EvidenceWeights,
    ) -> impl Iterator<Item = u64> {
        let places = range.start as usize..range.end as usize;
        places.map(move |place| u64::from(self.weight_at(place, weights)))
    }

    /// Returns the weight of the token at a place.
    pub(super) fn weight_at(&self, place: usize, weights: &EvidenceWeights) -> SixteenthBits {
        weights.shared_weight(self.terms[place], self.shares[place])
    }

    /// Returns the tokens of a unit.
    pub(super) fn unit_terms(&self, unit: &SearchUnit) -> &[u32] {
        self.range_terms(&unit.tokens)
    }

    pub(super) fn range_terms(&self, range: &Range<u32>) -> &[u32] {
        &self.terms[range.start as usize..range.end as usize]
    }

    /// Returns the unit that an item has for its question or its answer.
    pub(super) fn unit_of(&self, item: u32, kind: UnitKind) -> Option<&SearchUnit> {
        let item = &self.items[item as usize];
        let unit = match kind {
            UnitKind::Question => item.question,
            UnitKind::Answer => item.answer_unit,
        };
        unit.map(|unit| &self.units[unit as usize])
    }
}

struct IndexBuilder {
    tokenizer: ItemTokenizer,
    table: TermTable,
    terms: Vec<u32>,
    units: Vec<SearchUnit>,
    items: Vec<IndexedItem>,
    /// Units by kind and hash of their tokens.
    known_units: HashMap<(UnitKind, u128), u32>,
    stop_words: HashSet<u64>,
    prior: CorpusTerms,
}

impl IndexBuilder {
    fn new() -> Self {
        let mut tokenizer = ItemTokenizer::new();
        let words = STOP_WORD_LISTS
            .iter()
            .flat_map(|name| stop_words::lookup(name).unwrap_or_default());
        let mut stop_words = HashSet::new();
        for word in words {
            if let Ok(tokens) = tokenizer.tokenize_text(word)
                && let &[token] = tokens.values()
            {
                stop_words.insert(token);
            }
        }
        Self {
            tokenizer,
            table: TermTable::new(),
            terms: Vec::new(),
            units: Vec::new(),
            items: Vec::new(),
            known_units: HashMap::new(),
            stop_words,
            prior: CorpusTerms::with_prior_total(),
        }
    }

    fn add_item(&mut self, texts: ItemTexts<'_>) -> Result<()> {
        let number = self.items.len() as u32;
        let question = self.add_unit(number, UnitKind::Question, texts.question)?;
        let answer = self.add_text(texts.answer, MAX_UNIT_TOKENS, false)?;
        let answer_unit = if answer.len() >= MIN_ANSWER_UNIT_TOKENS {
            self.push_unit(number, UnitKind::Answer, answer.clone())
        } else {
            None
        };
        let mut choices = Vec::with_capacity(texts.choices.len());
        for choice in texts.choices {
            choices.push(self.add_text(choice, MAX_UNIT_TOKENS, false)?);
        }
        let passage = self.add_text(texts.passage, PASSAGE_TOKENS, true)?;
        self.items.push(IndexedItem {
            choices,
            answer,
            passage,
            question,
            answer_unit,
        });
        Ok(())
    }

    fn add_unit(&mut self, item: u32, kind: UnitKind, text: &str) -> Result<Option<u32>> {
        let tokens = self.add_text(text, MAX_UNIT_TOKENS, false)?;
        Ok(self.push_unit(item, kind, tokens))
    }

    /// Adds an item to the unit of these tokens, which are the last ones if the unit is new.
    fn push_unit(&mut self, item: u32, kind: UnitKind, tokens: Range<u32>) -> Option<u32> {
        if tokens.is_empty() {
            return None;
        }
        let terms = &self.terms[tokens.start as usize..tokens.end as usize];
        let key = (kind, hash_sequence(UNIT_DOMAIN, terms));
        let unit = *self.known_units.entry(key).or_insert_with(|| {
            self.units.push(SearchUnit {
                kind,
                tokens,
                items: Vec::new(),
                weight: 0,
            });
            self.units.len() as u32 - 1
        });
        self.units[unit as usize].items.push(item);
        Some(unit)
    }

    /// Adds the first or the last tokens of a text, and returns their range.
    fn add_text(&mut self, text: &str, limit: usize, takes_last: bool) -> Result<Range<u32>> {
        let tokens = self.tokenizer.tokenize_text(text)?;
        let count = tokens.len().min(limit);
        let first = if takes_last { tokens.len() - count } else { 0 };
        let start = self.terms.len();
        if start + count >= (NO_TERM / 2) as usize {
            return Err(Error::new(
                ErrorKind::Limit,
                "the items of all benchmarks have 2147483647 words and single characters or more, the limit of one \
                 search: search for some benchmarks at a time",
            ));
        }
        for (at, &token) in tokens.values().iter().enumerate().skip(first).take(count) {
            let (term, is_new) = self.table.add_term(token);
            if is_new {
                let place = tokens.byte_range(at..at + 1);
                let is_stop_word = self.stop_words.contains(&token);
                self.prior.push_term(&text[place], is_stop_word);
            }
            self.prior.count_term(term);
            self.terms.push(term);
        }
        Ok(start as u32..self.terms.len() as u32)
    }

    fn finish_index(mut self) -> Result<ContaminationIndex> {
        self.prior.add_total(self.terms.len() as u64);
        let prior_weights = EvidenceWeights::from_terms(&self.prior);
        // Answers were added behind the questions of their items, so the units ascend.
        debug_assert!(self.units.is_sorted_by_key(|unit| unit.tokens.start));
        let ranges = self.units.iter().map(|unit| unit.tokens.clone());
        let ranges: Vec<Range<u32>> = ranges.collect();
        let places = UnitPlaces::new(&ranges);
        let builder = SeedBuilder::new(&self.terms, &ranges, &places);
        let mut shares = builder.share_seeds(share_of_units);
        let covers = weigh_units(&self.terms, &mut self.units, &mut shares, &prior_weights);
        let seeds = builder.finish_index(&covers);
        Ok(ContaminationIndex {
            table: self.table,
            terms: self.terms,
            shares,
            units: self.units,
            places,
            items: self.items,
            seeds,
            prior: self.prior,
            prior_weights,
        })
    }
}
