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
//!
//! A caller with less memory gives the counter fewer slots, because that leads to more collected runs and to no other
//! result. It writes the collected places to files, divided by [`RunPlace::hash`], and resolves one file after another
//! with [`FirstPlaces`], a table of a fixed size.

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

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns `true` if the text is shorter than a run.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the hashes of the runs, by their first tokens.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
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

    /// Slots of a byte of memory.
    const SLOTS_PER_BYTE: u64 = 4;

    /// Creates a counter as [`new`](Self::new) does, in at most `max_bytes` bytes of memory but at least 256. With
    /// fewer slots than runs, most runs that occur once are known as repeated.
    pub fn with_limit(expected: u64, max_bytes: u64) -> Self {
        let fitting = max_bytes.saturating_mul(Self::SLOTS_PER_BYTE);
        Self::new(expected.min(1 << fitting.checked_ilog2().unwrap_or(0)))
    }

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

    /// Counts the runs of a text. Threads may count at the same time; the result is the same. Returns by how many runs
    /// more [`collect_repeated`](Self::collect_repeated) collects than before, of this text and of those before it. So
    /// the sum over all texts is the number of all runs that are collected.
    pub fn count_runs(&self, runs: &RunList) -> u64 {
        let counted = runs.hashes.iter().map(|&hash| {
            let (word, once) = self.find_slot(hash);
            let (again, before) = (once << 1, word.fetch_or(once, Ordering::Relaxed));
            if before & once == 0 {
                0
            } else if before & again != 0 {
                1
            } else {
                // The first thread that gets here also counts the run that has the slot already.
                2 - u64::from(word.fetch_or(again, Ordering::Relaxed) & again != 0)
            }
        });
        counted.sum()
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

impl RunPlace {
    /// Length of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 16;

    /// Returns the hash of the run. All of its bits are mixed, so any of them divide places evenly.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the place as bytes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.hash.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.document.to_le_bytes());
        bytes[12..].copy_from_slice(&self.start.to_le_bytes());
        bytes
    }

    /// Reads places that follow one another, each as [`to_bytes`](Self::to_bytes) returns it. Bytes behind the last
    /// whole place are left out.
    pub fn read_places(bytes: &[u8]) -> impl Iterator<Item = Self> {
        let (places, _) = bytes.as_chunks::<{ Self::BYTES }>();
        places.iter().map(|bytes| {
            let place = u128::from_le_bytes(*bytes);
            Self {
                hash: place as u64,
                document: (place >> 64) as u32,
                start: (place >> 96) as u32,
            }
        })
    }
}

/// The first place of each run, in a table of a fixed size.
///
/// Add all places of some hashes, in any order, and then ask for each place whether it repeats an earlier one.
///
/// Cost: one access to memory for a place. Memory: 16 bytes for a slot; a quarter of the slots stays free.
#[derive(Clone, Debug)]
pub struct FirstPlaces {
    /// A power of two. Free slots have the document [`NO_DOCUMENT`].
    slots: Vec<RunPlace>,
    used: usize,
}

/// The document of a free slot, which no document has.
const NO_DOCUMENT: u32 = u32::MAX;

impl FirstPlaces {
    /// Smallest number of slots.
    const MIN_SLOTS: usize = 64;

    /// Creates a table for up to `places` places, in at most `max_bytes` bytes of memory but at least 1 KiB.
    pub fn with_limit(places: u64, max_bytes: u64) -> Self {
        let slot_bytes = size_of::<RunPlace>() as u64;
        let most = (max_bytes / slot_bytes).checked_ilog2().unwrap_or(0);
        let wanted = (places.min(1 << 40) * 4 / 3 + 1).next_power_of_two();
        let slots = wanted.min(1 << most).max(Self::MIN_SLOTS as u64) as usize;
        let free = RunPlace {
            hash: 0,
            document: NO_DOCUMENT,
            start: 0,
        };
        Self {
            slots: vec![free; slots],
            used: 0,
        }
    }

    /// Adds a place. Returns `false` if its run is new and the table is full; then nothing has changed.
    #[must_use]
    pub fn add_place(&mut self, place: RunPlace) -> bool {
        debug_assert_ne!(place.document, NO_DOCUMENT);
        let slot = self.find_slot(place.hash);
        let first = &mut self.slots[slot];
        if first.document != NO_DOCUMENT {
            *first = (*first).min(place);
            return true;
        }
        if self.used >= self.slots.len() / 4 * 3 {
            return false;
        }
        self.slots[slot] = place;
        self.used += 1;
        true
    }

    /// Returns the repeat of a run at a place, if an earlier document has the run. The place must have been added.
    pub fn find_repeat(&self, place: RunPlace) -> Option<RepeatedRun> {
        let first = self.slots[self.find_slot(place.hash)];
        (first.document < place.document).then_some(RepeatedRun {
            document: place.document,
            start: place.start,
            first_document: first.document,
            first_start: first.start,
        })
    }

    /// Returns the slot of a hash, or the free slot where it would be.
    fn find_slot(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].document != NO_DOCUMENT && self.slots[at].hash != hash {
            at = (at + 1) & mask;
        }
        at
    }
}

/// The runs that stand in an earlier document, each with its first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepeatedRuns {
    /// Ascending by document and first token.
    runs: Vec<RepeatedRun>,
}

/// A run of a document that stands in an earlier one. Values are ordered by document and first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepeatedRun {
    document: u32,
    start: u32,
    first_document: u32,
    first_start: u32,
}

impl RepeatedRun {
    /// Returns the document.
    pub fn document(&self) -> u32 {
        self.document
    }

    /// Returns the place of the run and its first place as two numbers. The first number orders as the values do,
    /// because a document has one run at a token.
    pub fn to_numbers(self) -> (u64, u64) {
        let join = |document: u32, start: u32| u64::from(document) << 32 | u64::from(start);
        (
            join(self.document, self.start),
            join(self.first_document, self.first_start),
        )
    }

    /// Returns the value with the numbers that [`to_numbers`](Self::to_numbers) returns.
    pub fn from_numbers(place: u64, first: u64) -> Self {
        Self {
            document: (place >> 32) as u32,
            start: place as u32,
            first_document: (first >> 32) as u32,
            first_start: first as u32,
        }
    }
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

    /// Returns the runs, ascending by document and first token.
    pub fn as_slice(&self) -> &[RepeatedRun] {
        &self.runs
    }
}

/// Returns the pieces of a document that stand in earlier ones, ascending and without an overlap. Every token of
/// a repeated run lies in a piece. `repeated` are the repeated runs of this document, ascending, and `runs` all of its
/// runs. Repeated runs that begin behind the last run are left out, because the text has changed.
pub fn join_repeated_runs(repeated: &[RepeatedRun], runs: &RunList) -> Vec<CopiedPiece> {
    let mut pieces: Vec<CopiedPiece> = Vec::new();
    for run in repeated {
        let Some(&end) = runs.ends.get(run.start as usize) else {
            break;
        };
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
        let (mut places, mut expected) = (Vec::new(), 0);
        for (document, &part) in corpus.iter().zip(parts) {
            runs.fill_runs(document, part);
            expected += counter.count_runs(&runs);
        }
        for (number, (document, &part)) in corpus.iter().zip(parts).enumerate() {
            runs.fill_runs(document, part);
            counter.collect_repeated(&runs, number as u32, &mut places);
        }
        assert_eq!(places.len() as u64, expected);
        places.reverse();
        RepeatedRuns::from_places(places)
    }

    fn find_pieces(repeated: &RepeatedRuns, document: u32, runs: &RunList) -> Vec<CopiedPiece> {
        let all = repeated.as_slice();
        let from = all.partition_point(|run| run.document < document);
        let until = all.partition_point(|run| run.document <= document);
        join_repeated_runs(&all[from..until], runs)
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
                for piece in find_pieces(&repeated, number as u32, &runs) {
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
        fn tables_of_first_places_find_the_repeats_of_sorted_places(corpus in corpus()) {
            let mut runs = RunList::new(settings());
            // All slots of this counter are soon counted twice, so that places of single runs are collected, too.
            let counter = RunCounter::with_limit(1 << 20, 0);
            let mut places = Vec::new();
            for document in corpus.iter().chain(&corpus) {
                runs.fill_runs(document, 0);
                counter.count_runs(&runs);
            }
            for (number, document) in (0..).zip(&corpus) {
                runs.fill_runs(document, 0);
                counter.collect_repeated(&runs, number, &mut places);
            }
            let bytes: Vec<u8> = places.iter().rev().flat_map(|place| place.to_bytes()).collect();
            let read = || RunPlace::read_places(&bytes);
            let mut first = FirstPlaces::with_limit(places.len() as u64, 1 << 20);
            prop_assert!(read().all(|place| first.add_place(place)));
            let mut found: Vec<_> = read().filter_map(|place| first.find_repeat(place)).collect();
            found.sort();
            for &run in &found {
                let (place, earlier) = run.to_numbers();
                prop_assert_eq!(RepeatedRun::from_numbers(place, earlier), run);
            }
            let expected = RepeatedRuns::from_places(places);
            prop_assert_eq!(&found[..], expected.as_slice());
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
    fn a_full_table_refuses_new_runs_and_takes_known_ones() {
        let place = |hash: u64, document: u32| RunPlace {
            hash,
            document,
            start: 7,
        };
        // 64 slots, of which 48 may be used. All hashes want the same slot.
        let mut first = FirstPlaces::with_limit(1 << 30, 1);
        for at in 0..48 {
            assert!(first.add_place(place(at << 6, 5)), "{at}");
        }
        assert!(!first.add_place(place(48 << 6, 5)));
        assert!(first.add_place(place(47 << 6, 3)));
        assert!(first.add_place(place(47 << 6, 9)));
        assert_eq!(first.find_repeat(place(47 << 6, 3)), None);
        let repeat = first.find_repeat(place(47 << 6, 9)).unwrap();
        assert_eq!(repeat.to_numbers(), (9 << 32 | 7, 3 << 32 | 7));
        assert_eq!(first.find_repeat(place(3 << 6, 5)), None);
    }

    #[test]
    fn limits_round_down() {
        for (max_bytes, words) in [
            (0, 32),
            (256, 32),
            (511, 32),
            (512, 64),
            (u64::MAX, 1 << 15),
        ] {
            let counter = RunCounter::with_limit(1 << 20, max_bytes);
            assert_eq!(counter.words.len(), words, "{max_bytes}");
        }
        for (places, max_bytes, slots) in [
            (0, 1 << 20, 64),
            (48, 1 << 20, 128),
            (1000, 1 << 20, 2048),
            (1000, 2047, 64),
            (1000, 2048, 128),
            (u64::MAX, 1 << 14, 1 << 10),
        ] {
            let first = FirstPlaces::with_limit(places, max_bytes);
            assert_eq!(first.slots.len(), slots, "{places} {max_bytes}");
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
