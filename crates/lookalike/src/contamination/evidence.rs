//! Evidence in bits: how much the tokens that were found tell.
//!
//! A token that one of `n` tokens of the corpus is weighs log₂ n bits. The counts are those of the corpus, those of the
//! items, and a prior, so that a corpus of ten documents gives sensible weights as well.
//!
//! | what is found | is a finding if |
//! |---|---|
//! | most of a question, with enough bits | always, unless the question stands in very many documents |
//! | a short or common question | its answer, its choices or its passage stand nearby, and all together have enough bits |
//! | a long answer without its question | most of its bits are found |
//!
//! Weights are whole sixteenths of a bit and computed without logarithms, so that they are the same on every machine.

use super::alignment::{SKIPPED_TOKEN_COST, SixteenthBits};
use super::index::{ContaminationIndex, UnitKind};
use super::search::{ItemCandidate, ItemPart};
use super::term_table::term_index;
use crate::byte_reader::ByteReader;
use crate::error::{Error, ErrorKind, Result};

/// Tokens of the corpus that the prior stands for.
const PRIOR_TOKENS: u64 = 1 << 20;

/// Occurrences that the prior has of a stop word, of a short number or a single letter, and of a character of a script
/// without spaces.
const PRIOR_STOP_WORD: u64 = 1 << 13;
const PRIOR_SHORT_TOKEN: u64 = 1 << 11;
const PRIOR_CHARACTER: u64 = 1 << 10;

/// One bit.
const BIT: SixteenthBits = 16;

/// Weight of the most frequent token, and of the rarest.
const MIN_WEIGHT: SixteenthBits = BIT / 2;
const MAX_WEIGHT: SixteenthBits = 20 * BIT;

/// Largest weight of a single letter or digit. Formulae and tables have them in rows that are easily guessed.
const MAX_SHORT_WEIGHT: SixteenthBits = 5 * BIT;

/// Counts of tokens of a corpus, by the items that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorpusTerms {
    /// Number of all tokens.
    total: u64,
    /// Occurrences of each token that an item has.
    counts: Vec<u64>,
    /// `true` for a single letter or digit, if these are the prior counts; empty otherwise.
    short: Vec<bool>,
}

impl CorpusTerms {
    /// Returns counts of 0 for the tokens of an index.
    pub fn new(index: &ContaminationIndex) -> Self {
        Self {
            total: 0,
            counts: vec![0; index.term_count()],
            short: Vec::new(),
        }
    }

    pub(super) fn with_prior_total() -> Self {
        Self {
            total: PRIOR_TOKENS,
            counts: Vec::new(),
            short: Vec::new(),
        }
    }

    /// Adds a token of an item with the occurrences that the prior has of it.
    pub(super) fn push_term(&mut self, text: &str, is_stop_word: bool) {
        let mut characters = text.chars();
        let is_single = characters.next().is_some() && characters.next().is_none();
        self.short.push(is_single && text.is_ascii());
        let is_short_number = text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        self.counts.push(if is_stop_word {
            PRIOR_STOP_WORD
        } else if is_short_number || (is_single && text.is_ascii()) {
            PRIOR_SHORT_TOKEN
        } else if is_single {
            PRIOR_CHARACTER
        } else {
            0
        });
    }

    #[inline]
    pub(super) fn count_term(&mut self, term: u32) {
        self.counts[term_index(term)] += 1;
    }

    pub(super) fn add_total(&mut self, tokens: u64) {
        self.total += tokens;
    }

    /// Adds the counts of documents.
    pub fn add_counted(&mut self, counted: &CountedTerms) {
        self.total += counted.total;
        for &(term, count) in &counted.counts {
            self.counts[term as usize] += u64::from(count);
        }
    }

    /// Adds the counts of other documents.
    ///
    /// # Panics
    /// If they are of another index.
    pub fn add_counts(&mut self, other: &Self) {
        assert_eq!(
            self.counts.len(),
            other.counts.len(),
            "counts are of one index"
        );
        self.total += other.total;
        for (count, added) in self.counts.iter_mut().zip(&other.counts) {
            *count += added;
        }
    }

    /// Returns the counts as numbers: the total first.
    pub fn to_numbers(&self) -> Vec<u64> {
        std::iter::once(self.total)
            .chain(self.counts.iter().copied())
            .collect()
    }

    /// Returns the counts from their numbers.
    ///
    /// # Errors
    /// [`ErrorKind::File`] if they are not those of this index.
    pub fn from_numbers(numbers: &[u64], index: &ContaminationIndex) -> Result<Self> {
        match numbers.split_first() {
            Some((&total, counts)) if counts.len() == index.term_count() => Ok(Self {
                total,
                counts: counts.to_vec(),
                short: Vec::new(),
            }),
            _ => Err(Error::new(
                ErrorKind::File,
                format!(
                    "{} counts of words are not those of benchmarks with {} different words",
                    numbers.len(),
                    index.term_count()
                ),
            )),
        }
    }
}

/// Counts of tokens of some documents: those that they have.
///
/// Memory: 8 bytes for each token of the index, kept from block to block.
#[derive(Clone, Debug)]
pub(super) struct BlockTerms {
    total: u64,
    counts: Vec<u32>,
    /// Numbers of the tokens that were counted.
    counted: Vec<u32>,
}

impl BlockTerms {
    pub(super) fn new(index: &ContaminationIndex) -> Self {
        Self {
            total: 0,
            counts: vec![0; index.term_count()],
            counted: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn count_term(&mut self, term: u32) {
        let count = &mut self.counts[term_index(term)];
        if *count == 0 {
            self.counted.push(term_index(term) as u32);
        }
        *count += 1;
    }

    pub(super) fn add_total(&mut self, tokens: u64) {
        self.total += tokens;
    }

    pub(super) fn take_counts(&mut self) -> CountedTerms {
        self.counted.sort_unstable();
        let counts = self.counted.drain(..).map(|term| {
            let count = std::mem::take(&mut self.counts[term as usize]);
            (term, count)
        });
        CountedTerms {
            counts: counts.collect(),
            total: std::mem::take(&mut self.total),
        }
    }
}

/// The tokens of some documents that items have, with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedTerms {
    /// Number of all tokens.
    total: u64,
    /// Number of each token in the index, ascending, and its occurrences.
    counts: Vec<(u32, u32)>,
}

impl CountedTerms {
    /// Appends the counts as bytes, little-endian.
    pub fn append_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.total.to_le_bytes());
        bytes.extend((self.counts.len() as u32).to_le_bytes());
        for (term, count) in &self.counts {
            bytes.extend(term.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
    }

    /// Reads counts from bytes; `None` if they are not those of tokens of this index.
    pub fn from_bytes(reader: &mut ByteReader<'_>, index: &ContaminationIndex) -> Option<Self> {
        let total = reader.read_u64()?;
        let length = reader.read_u32()? as usize;
        let counts = reader.read_list(length, |pair: [u8; 8]| {
            let [term, count] = bytemuck::cast::<_, [[u8; 4]; 2]>(pair);
            (u32::from_le_bytes(term), u32::from_le_bytes(count))
        })?;
        let is_known = counts
            .last()
            .is_none_or(|&(term, _)| (term as usize) < index.term_count());
        (is_known && counts.is_sorted_by_key(|&(term, _)| term)).then_some(Self { total, counts })
    }
}

/// The weight of each token of an index.
#[derive(Clone, Debug)]
pub struct EvidenceWeights {
    weights: Vec<u16>,
}

impl EvidenceWeights {
    /// Returns the weights by the counts of a corpus.
    pub fn new(index: &ContaminationIndex, corpus: &CorpusTerms) -> Self {
        let mut terms = index.prior.clone();
        terms.add_counts(corpus);
        Self::from_terms(&terms)
    }

    pub(super) fn from_terms(terms: &CorpusTerms) -> Self {
        let weight = |(&count, &is_short): (&u64, &bool)| {
            let bits = log2_sixteenths(terms.total, count.max(1));
            let limit = if is_short {
                MAX_SHORT_WEIGHT
            } else {
                MAX_WEIGHT
            };
            bits.clamp(MIN_WEIGHT, limit) as u16
        };
        let counts = terms.counts.iter().zip(&terms.short);
        Self {
            weights: counts.map(weight).collect(),
        }
    }

    #[inline]
    pub(super) fn weight_of(&self, term: u32) -> SixteenthBits {
        SixteenthBits::from(self.weights[term_index(term)])
    }

    /// Returns the weight of a token that keeps some sixteenths of it.
    #[inline]
    pub(super) fn shared_weight(&self, term: u32, share: u8) -> SixteenthBits {
        self.weight_of(term) * SixteenthBits::from(share) / 16
    }
}

/// Returns log₂ of a quotient of at least 1 in sixteenths, at most 1.4 of them too small.
pub(super) fn log2_sixteenths(numerator: u64, denominator: u64) -> SixteenthBits {
    // The quotient is rounded in the same way everywhere. Its exponent and the first bits of its fraction are a
    // logarithm that is linear between two powers of two.
    let quotient = numerator.max(denominator) as f64 / denominator as f64;
    let bits = quotient.to_bits();
    let exponent = (bits >> 52) as u32 - 1023;
    16 * exponent + (bits >> 48 & 15) as u32
}

/// The parts of an item that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FoundParts {
    /// The question.
    Question,
    /// The answer, which is long.
    Answer,
    /// The question, and its answer nearby.
    Both,
}

impl FoundParts {
    /// Returns the name in tables: `question`, `answer` or `both`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Both => "both",
        }
    }
}

/// The evidence that an item stands in a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ItemEvidence {
    /// The parts that were found.
    pub found: FoundParts,
    /// Share of the bits of the question, or of the answer, that was found in order and near one another, from 0 to 1.
    pub score: f64,
    /// Bits of what was found.
    pub bits: f64,
    /// `true` if the question is enough by itself. Otherwise it takes what stands nearby.
    pub is_enough_alone: bool,
    /// `true` if the question and what stands nearby are enough. One of the two is true in a finding.
    pub is_enough_together: bool,
}

/// Tokens of a question from which fewer bits are enough if it stands in a document token by token.
const MIN_VERBATIM_TOKENS: usize = 10;

/// Bits of a question that is found alone; two thirds if it is verbatim, with [`MIN_VERBATIM_TOKENS`].
const MIN_BITS_ALONE: u64 = 60 * BIT as u64;

/// Bits from which edits are allowed for as in long texts.
const LONG_QUESTION_BITS: u64 = 240 * BIT as u64;

/// Bits of a question and what stands nearby; two thirds if the question is verbatim, with [`MIN_VERBATIM_TOKENS`].
const MIN_BITS_TOGETHER: u64 = 36 * BIT as u64;

/// Bits of what stands nearby, beyond chance.
const MIN_BITS_NEARBY: u64 = 8 * BIT as u64;

/// The parts in a thousand of a text that must be found.
struct RequiredShares {
    /// Of the bits of a text with [`MIN_BITS_ALONE`] or less.
    short: u64,
    /// Of the bits of a text with [`LONG_QUESTION_BITS`] or more.
    long: u64,
    /// Of its tokens, however much they tell.
    tokens: u64,
}

/// A question of which nothing else stands nearby. A fifth of its words may be replaced. Questions of one series have two
/// thirds of their bits in common.
const QUESTION_ALONE: RequiredShares = RequiredShares {
    short: 920,
    long: 720,
    tokens: 660,
};

/// A question with its answer, its choices or its passage nearby.
const QUESTION_TOGETHER: RequiredShares = RequiredShares {
    short: 720,
    long: 600,
    tokens: 580,
};

/// A long answer without its question.
const ANSWER_ALONE: RequiredShares = RequiredShares {
    short: 900,
    long: 750,
    tokens: 700,
};

impl RequiredShares {
    /// Returns `true` if enough was found of a text.
    fn are_met(&self, found: &FoundShares) -> bool {
        let beyond = found.all_bits.clamp(MIN_BITS_ALONE, LONG_QUESTION_BITS) - MIN_BITS_ALONE;
        let range = LONG_QUESTION_BITS - MIN_BITS_ALONE;
        let bits = self.short - (self.short - self.long) * beyond / range;
        found.bits >= bits && found.tokens >= self.tokens
    }
}

/// The parts in a thousand of a text that were found.
struct FoundShares {
    bits: u64,
    tokens: u64,
    all_bits: u64,
}

impl ItemCandidate {
    /// Returns the evidence that the item stands in the document; `None` if there is too little.
    pub fn weigh_evidence(
        &self,
        index: &ContaminationIndex,
        weights: &EvidenceWeights,
    ) -> Option<ItemEvidence> {
        let kind = match self.part {
            ItemPart::Question => UnitKind::Question,
            ItemPart::Answer => UnitKind::Answer,
        };
        let unit = index.unit_of(self.item, kind)?;
        let all: u64 = index.range_weights(&unit.tokens, weights).sum();
        let tokens = index.range_weights(&unit.tokens, weights).enumerate();
        let found = tokens.filter(|&(at, _)| self.is_token_found(at));
        let found: u64 = found.map(|(_, weight)| weight).sum();
        let skipped = u64::from(self.skipped_tokens) * u64::from(SKIPPED_TOKEN_COST);
        let found = found.saturating_sub(skipped);
        let shares = FoundShares {
            bits: (1000 * found).checked_div(all)?,
            tokens: 1000 * self.found_token_count() / unit.tokens.len() as u64,
            all_bits: all,
        };
        let nearby = self.nearby_bits(index, weights);
        let alone = match kind {
            UnitKind::Question => &QUESTION_ALONE,
            UnitKind::Answer => &ANSWER_ALONE,
        };
        let is_verbatim = shares.tokens == 1000
            && self.skipped_tokens == 0
            && unit.tokens.len() >= MIN_VERBATIM_TOKENS;
        let least = |bits: u64| if is_verbatim { bits * 2 / 3 } else { bits };
        let is_enough_alone = found >= least(MIN_BITS_ALONE) && alone.are_met(&shares);
        let is_enough_together = kind == UnitKind::Question
            && nearby >= MIN_BITS_NEARBY
            && found + nearby >= least(MIN_BITS_TOGETHER)
            && QUESTION_TOGETHER.are_met(&shares);
        (is_enough_alone || is_enough_together).then(|| ItemEvidence {
            found: match kind {
                UnitKind::Answer => FoundParts::Answer,
                UnitKind::Question if self.has_answer() => FoundParts::Both,
                UnitKind::Question => FoundParts::Question,
            },
            score: shares.bits.min(1000) as f64 / 1000.0,
            bits: (found + nearby) as f64 / f64::from(BIT),
            is_enough_alone,
            is_enough_together,
        })
    }

    /// Returns the bits of the parts that stand near the question, beyond what chance finds there.
    fn nearby_bits(&self, index: &ContaminationIndex, weights: &EvidenceWeights) -> u64 {
        let item = &index.items[self.item as usize];
        let (mut choices, mut answer, mut passage) = (0, 0, 0);
        for part in &self.nearby_parts {
            let tokens = part.tokens(item).into_iter();
            let weights = tokens.flat_map(|tokens| index.range_weights(tokens, weights));
            // A part twice as far away is found by chance twice as often, on either side.
            let chance = BIT + 2 * log2_sixteenths(u64::from(part.gap) + 1, 1);
            let bits = weights.sum::<u64>().saturating_sub(u64::from(chance));
            if part.is_choice() {
                choices += bits;
            } else if part.is_answer() {
                answer = bits;
            } else {
                passage = bits;
            }
        }
        // The answer is one of the choices.
        choices.max(answer) + passage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_near_and_ascend() {
        for quotient in 1_u64..5000 {
            let found = f64::from(log2_sixteenths(quotient, 1)) / 16.0;
            let exact = (quotient as f64).log2();
            assert!(
                found <= exact && exact - found < 0.15,
                "{quotient}: {found} {exact}"
            );
        }
        assert_eq!(log2_sixteenths(1 << 20, 1), 320);
        assert_eq!(log2_sixteenths(1, 7), 0);
        assert_eq!(log2_sixteenths(3, 2), 8);
    }

    #[test]
    fn required_share_falls_with_the_bits_of_the_text() {
        let required = RequiredShares {
            short: 900,
            long: 600,
            tokens: 500,
        };
        let is_met = |bits, tokens, all_bits| {
            required.are_met(&FoundShares {
                bits,
                tokens,
                all_bits,
            })
        };
        let middle = (MIN_BITS_ALONE + LONG_QUESTION_BITS) / 2;
        for (all_bits, least) in [
            (0, 900),
            (MIN_BITS_ALONE, 900),
            (middle, 750),
            (LONG_QUESTION_BITS, 600),
            (u64::MAX, 600),
        ] {
            assert!(!is_met(least - 1, 500, all_bits));
            assert!(is_met(least, 500, all_bits));
            assert!(!is_met(1000, 499, all_bits));
        }
    }
}
