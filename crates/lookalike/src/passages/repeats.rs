//! Text that stands in an earlier document of a corpus already, found without comparing pairs of documents.
//!
//! ```text
//! 1. count     every run of every document             two bits for each slot of a table
//! 2. collect   the runs whose slot was counted twice   hash, document, first token
//! 3. resolve   equal hashes                            each run with its first occurrence
//! 4. join      runs that follow one another            copied pieces
//! ```
//!
//! A *run* is the shortest run of tokens from a position on with at least the width of the settings. So every longer
//! stretch of equal tokens consists of equal runs, whatever surrounds it and however many documents have it. Two
//! different runs have equal hashes with a probability of 2⁻⁶¹, so callers compare the tokens before they change a
//! text.
//!
//! Cost: some nanoseconds per token and reading. Memory: the table, a quarter to half a byte for a byte of text, and
//! 16 bytes for each run that is counted more than once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::PassageSettings;
use super::grams::token_width;
use crate::hash::mix_bits;

/// The modulus of the hash of a run, a prime.
const HASH_MODULUS: u64 = (1 << 61) - 1;

/// The base of the hash of a run, a fixed number without a pattern.
const HASH_BASE: u64 = 0x0f3a_91c4_5be7_26d9;

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    reduce((product as u64 & HASH_MODULUS) + (product >> 61) as u64)
}

fn reduce(value: u64) -> u64 {
    let folded = (value & HASH_MODULUS) + (value >> 61);
    if folded >= HASH_MODULUS {
        folded - HASH_MODULUS
    } else {
        folded
    }
}

/// The runs of a text, in the order of their first tokens. It keeps its buffers from text to text.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    settings: PassageSettings,
    hashes: Vec<u64>,
    ends: Vec<u32>,
    /// Powers of [`HASH_BASE`].
    powers: Vec<u64>,
}

impl RunList {
    /// Creates an empty list of runs for passages of a length.
    pub fn new(settings: PassageSettings) -> Self {
        let longest = settings.min_width() as usize;
        let powers = std::iter::successors(Some(1), |&power| Some(multiply(power, HASH_BASE)));
        Self {
            settings,
            hashes: Vec::new(),
            ends: Vec::new(),
            powers: powers.take(longest).collect(),
        }
    }

    /// Replaces the runs by those of a text. Runs of texts with different values of `part` are never equal.
    pub fn fill_runs(&mut self, tokens: &[u64], part: u64) {
        self.hashes.clear();
        self.ends.clear();
        let min_width = self.settings.min_width();
        // Hash, width and end of the run at `start`.
        let (mut hash, mut width, mut end) = (0, 0, 0);
        for start in 0..tokens.len() {
            while width < min_width && end < tokens.len() {
                hash = reduce(multiply(hash, HASH_BASE) + reduce(tokens[end]));
                width += token_width(tokens[end]);
                end += 1;
            }
            if width < min_width {
                break;
            }
            self.hashes.push(mix_bits(hash ^ mix_bits(part)));
            self.ends.push(end as u32);
            let first = multiply(reduce(tokens[start]), self.powers[end - start - 1]);
            hash = reduce(hash + HASH_MODULUS - first);
            width -= token_width(tokens[start]);
        }
    }
}

/// Counts which runs of a corpus occur more than once. Every run that does is known as repeated, and so are a few of
/// those that occur once.
#[derive(Debug)]
pub struct RunCounter {
    /// Two bits for each slot: counted once, counted again.
    words: Vec<AtomicU64>,
    shift: u32,
}

impl RunCounter {
    /// Slots of a word.
    const SLOTS_PER_WORD: u64 = 32;

    /// Creates a counter with at least one slot for each expected run. With four slots for each run, about a
    /// fifth of the runs that occur once share a slot and are known as repeated.
    pub fn new(expected: u64) -> Self {
        let slots = expected.clamp(1 << 10, 1 << 40).next_power_of_two();
        let words = (0..slots / Self::SLOTS_PER_WORD).map(|_| AtomicU64::new(0));
        Self {
            words: words.collect(),
            shift: 64 - slots.trailing_zeros(),
        }
    }

    /// Counts the runs of a text. Threads may count at the same time; the result is the same.
    pub fn count_runs(&self, runs: &RunList) {
        for &hash in &runs.hashes {
            let (word, once) = self.find_slot(hash);
            let before = word.fetch_or(once, Ordering::Relaxed);
            if before & once != 0 && before & (once << 1) == 0 {
                word.fetch_or(once << 1, Ordering::Relaxed);
            }
        }
    }

    /// Appends the runs of a text that may occur more than once.
    pub fn collect_repeated(&self, runs: &RunList, document: u32, places: &mut Vec<RunPlace>) {
        for (start, &hash) in (0u32..).zip(&runs.hashes) {
            let (word, once) = self.find_slot(hash);
            if word.load(Ordering::Relaxed) & (once << 1) != 0 {
                places.push(RunPlace {
                    hash,
                    document,
                    start,
                });
            }
        }
    }

    fn find_slot(&self, hash: u64) -> (&AtomicU64, u64) {
        let slot = hash >> self.shift;
        let word = &self.words[(slot / Self::SLOTS_PER_WORD) as usize];
        (word, 1 << (2 * (slot % Self::SLOTS_PER_WORD)))
    }
}

/// The place of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunPlace {
    hash: u64,
    document: u32,
    start: u32,
}

/// The runs that stand in an earlier document, each with its first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepeatedRuns {
    /// Ascending by document and first token.
    runs: Vec<RepeatedRun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RepeatedRun {
    document: u32,
    start: u32,
    first_document: u32,
    first_start: u32,
}

impl RepeatedRuns {
    /// Finds the first occurrence of every run in an earlier document; runs of one document alone are not repeated.
    /// The order of `places` does not matter.
    ///
    /// Cost: two sorts on all threads of the pool, in place.
    pub fn from_places(mut places: Vec<RunPlace>) -> Self {
        places.par_sort_unstable();
        let groups = places.par_chunk_by(|a, b| a.hash == b.hash);
        let mut runs: Vec<RepeatedRun> = groups.flat_map_iter(repeats_of).collect();
        drop(places);
        runs.par_sort_unstable();
        Self { runs }
    }

    /// Returns `true` if a document has text that stands in an earlier one.
    pub fn has_document(&self, document: u32) -> bool {
        !self.runs_of(document).is_empty()
    }

    /// Returns the pieces of a document that stand in earlier ones, ascending and without an overlap. Every token of
    /// a repeated run lies in a piece. `runs` are those of this document.
    pub fn find_pieces(&self, document: u32, runs: &RunList) -> Vec<CopiedPiece> {
        let mut pieces: Vec<CopiedPiece> = Vec::new();
        for run in self.runs_of(document) {
            let end = runs.ends[run.start as usize];
            match pieces.last_mut() {
                Some(last) if last.is_continued_by(run) => last.tokens.end = end,
                last => {
                    let start = last.map_or(run.start, |last| run.start.max(last.tokens.end));
                    if start < end {
                        pieces.push(CopiedPiece {
                            tokens: start..end,
                            document: run.first_document,
                            start: run.first_start + (start - run.start),
                        });
                    }
                }
            }
        }
        pieces
    }

    fn runs_of(&self, document: u32) -> &[RepeatedRun] {
        let from = self.runs.partition_point(|run| run.document < document);
        let rest = &self.runs[from..];
        &rest[..rest.partition_point(|run| run.document == document)]
    }
}

/// Returns the repeats among the places of equal runs, which ascend by document.
fn repeats_of(equal: &[RunPlace]) -> impl Iterator<Item = RepeatedRun> {
    let first = equal[0];
    let later = equal
        .iter()
        .filter(move |repeat| repeat.document != first.document);
    later.map(move |later| RepeatedRun {
        document: later.document,
        start: later.start,
        first_document: first.document,
        first_start: first.start,
    })
}

/// A piece of a document that stands in an earlier one, token by token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedPiece {
    /// Tokens of the document.
    pub tokens: Range<u32>,
    /// The earlier document.
    pub document: u32,
    /// The first token of the piece in the earlier document.
    pub start: u32,
}

impl CopiedPiece {
    /// Returns the tokens of the piece in the earlier document.
    pub fn source_tokens(&self) -> Range<u32> {
        self.start..self.start + (self.tokens.end - self.tokens.start)
    }

    /// Returns the part of the piece that has these tokens of the earlier document; both must overlap.
    pub(super) fn part_in_source(&self, source: &Range<u32>) -> Self {
        let whole = self.source_tokens();
        let part = source.start.max(whole.start)..source.end.min(whole.end);
        let shift = self.tokens.start;
        Self {
            tokens: part.start - whole.start + shift..part.end - whole.start + shift,
            document: self.document,
            start: part.start,
        }
    }

    /// Returns the part of the piece within these tokens of the document; both must overlap.
    pub(super) fn part_in(&self, tokens: &Range<u32>) -> Self {
        let part = tokens.start.max(self.tokens.start)..tokens.end.min(self.tokens.end);
        Self {
            start: self.start + (part.start - self.tokens.start),
            tokens: part,
            document: self.document,
        }
    }

    fn is_continued_by(&self, run: &RepeatedRun) -> bool {
        let offset = |a: u32, b: u32| i64::from(a) - i64::from(b);
        self.document == run.first_document
            && run.start <= self.tokens.end
            && offset(self.start, self.tokens.start) == offset(run.first_start, run.start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings() -> PassageSettings {
        PassageSettings::new(2).unwrap()
    }

    /// Documents of a few distinct characters and words, so that runs repeat.
    fn corpus() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let token = prop_oneof![1..4u64, (1..3u64).prop_map(|token| u64::MAX - token)];
        let document = proptest::collection::vec(token, 0..14);
        proptest::collection::vec(document, 0..8)
    }

    fn repeated_runs(corpus: &[Vec<u64>], parts: &[u64]) -> RepeatedRuns {
        let mut runs = RunList::new(settings());
        let counter = RunCounter::new(1);
        let mut places = Vec::new();
        for (document, &part) in corpus.iter().zip(parts) {
            runs.fill_runs(document, part);
            counter.count_runs(&runs);
        }
        for (number, (document, &part)) in corpus.iter().zip(parts).enumerate() {
            runs.fill_runs(document, part);
            counter.collect_repeated(&runs, number as u32, &mut places);
        }
        places.reverse();
        RepeatedRuns::from_places(places)
    }

    /// Returns the end of the run at a position by the definition.
    fn run_end(tokens: &[u64], start: usize) -> Option<usize> {
        let width = |end: usize| tokens[start..end].iter().map(|&it| token_width(it)).sum();
        (start..=tokens.len()).find(|&end| settings().min_width() <= width(end))
    }

    fn has_run(document: &[u64], run: &[u64]) -> bool {
        document.windows(run.len()).any(|window| window == run)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn pieces_are_what_a_scan_finds(corpus in corpus(), parts in proptest::collection::vec(0..2u64, 8)) {
            let repeated = repeated_runs(&corpus, &parts);
            let mut runs = RunList::new(settings());
            for (number, document) in corpus.iter().enumerate() {
                let earlier: Vec<usize> =
                    (0..number).filter(|&it| parts[it] == parts[number]).collect();
                let mut expected = vec![false; document.len()];
                for start in 0..document.len() {
                    let Some(end) = run_end(document, start) else { continue };
                    let run = &document[start..end];
                    if earlier.iter().any(|&it| has_run(&corpus[it], run)) {
                        expected[start..end].fill(true);
                    }
                }
                runs.fill_runs(document, parts[number]);
                let mut found = vec![false; document.len()];
                for piece in repeated.find_pieces(number as u32, &runs) {
                    let tokens = piece.tokens.start as usize..piece.tokens.end as usize;
                    let source = piece.source_tokens();
                    let source = source.start as usize..source.end as usize;
                    prop_assert!(earlier.contains(&(piece.document as usize)));
                    prop_assert_eq!(&document[tokens.clone()], &corpus[piece.document as usize][source]);
                    prop_assert!(!found[tokens.clone()].contains(&true));
                    found[tokens].fill(true);
                }
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn rolling_hash_is_that_of_the_run_alone(tokens in proptest::collection::vec(any::<u64>(), 2..40)) {
            let mut runs = RunList::new(settings());
            runs.fill_runs(&tokens, 7);
            let all = runs.hashes.clone();
            for (start, &hash) in all.iter().enumerate() {
                let end = run_end(&tokens, start).unwrap();
                runs.fill_runs(&tokens[start..end], 7);
                prop_assert_eq!(&runs.hashes, &[hash]);
            }
        }
    }

    #[test]
    fn arithmetic_is_that_of_the_modulus() {
        let values = [
            0,
            1,
            2,
            HASH_BASE,
            HASH_MODULUS - 1,
            1 << 60,
            12_345_678_901_234_567,
        ];
        for a in values {
            for b in values {
                let expected = u128::from(a) * u128::from(b) % u128::from(HASH_MODULUS);
                assert_eq!(u128::from(multiply(a, b)), expected, "{a} {b}");
            }
        }
        for value in [HASH_MODULUS, HASH_MODULUS + 1, u64::MAX] {
            assert_eq!(reduce(value), value % HASH_MODULUS);
        }
    }
}
