//! Document frequencies: in how many documents each term of a corpus occurs.
//!
//! Any number of threads count, each with its own [`FrequencyTally`], into shards by hash. The sums do
//! not depend on which thread counted a document. Memory is proportional to the vocabulary: 24 to 48
//! bytes per distinct term, plus its spelling. Terms of at most three characters need no spelling,
//! because their code points are the key. Each thread takes about 20 MB more. A document costs one
//! look-up in a small table for each feature, and one in a shard for each distinct term.
//!
//! A caller that has less memory takes counts and spellings out while it counts, shard by shard
//! ([`DocumentFrequencies::take_counts`], [`FrequencyTally::take_spellings`]), and adds them up elsewhere.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::arch::prefetch;
use crate::hash::mix_bits;
use crate::recipe::{Recipe, TokenKind};
use crate::text::{AnalysisScratch, TextAnalyzer, hash_shingles, join_tokens};

const SHARDS: usize = 256;

/// Largest number of terms that a tally collects for a shard before it counts them, and the usual one.
const COLLECTED_TERMS: usize = 4096;

/// Bytes of memory of a slot of a shard.
const SLOT_BYTES: u64 = (size_of::<u64>() + size_of::<u32>()) as u64;

/// Bytes of memory of a spelling beside its characters: its entry, its allocation and its place among the known
/// features.
const SPELLING_BYTES: u64 = 72;

/// Prefetch distance in terms. The memory of later terms is requested in advance, because the shards of a
/// large vocabulary do not fit into the cache.
const PREFETCH_DISTANCE: usize = 16;

/// Number of features that a tally recognises without a look-up in the set of all: 256 KiB.
const RECENT_FEATURES: usize = 32 << 10;

/// Number of bits of a code point.
const CODE_POINT_BITS: u32 = 21;

/// Flag that distinguishes a packed term from an empty slot.
const PACKED_FLAG: u64 = 1 << 63;

/// Document frequencies of a corpus while it is read.
#[derive(Debug)]
pub struct DocumentFrequencies {
    shards: Vec<Mutex<CountShard>>,
    /// Spellings of terms whose keys are hashes. Two terms with the same hash are counted as one, with the
    /// smaller spelling.
    spellings: Mutex<HashMap<u64, Box<str>>>,
    documents: Mutex<u64>,
    /// Bytes of memory of all shards.
    table_bytes: AtomicU64,
    /// Number of terms that a tally collects for a shard before it counts them.
    collected: usize,
    ngram: usize,
    packed: bool,
    characters: bool,
}

/// Counts documents on one thread.
#[derive(Debug)]
pub struct FrequencyTally {
    waiting: Vec<Vec<u64>>,
    distinct: DistinctFeatures,
    known: HashSet<u64, BuildHasherDefault<FeatureHasher>>,
    /// Some of the known features, each at the index given by its lowest bits.
    recent: Vec<u64>,
    spelled: Vec<(u64, Box<str>)>,
    spelled_bytes: u64,
    text: String,
    ends: Vec<usize>,
    tokens: Vec<u64>,
    features: Vec<u64>,
    documents: u64,
}

/// A term and the number of documents that contain it.
pub type CountedTerm = (String, u64);

impl DocumentFrequencies {
    /// Number of shards, among which terms are divided by their keys.
    pub const SHARDS: usize = SHARDS;

    /// Creates empty counts for the terms of a recipe.
    pub fn new(recipe: &Recipe) -> Self {
        Self::with_table_bytes(recipe, u64::MAX)
    }

    /// Creates empty counts whose tables will be kept below `most_bytes` by [`take_counts`](Self::take_counts). With
    /// few bytes, tallies collect fewer terms before they count them, because a table has room for all of them.
    pub fn with_table_bytes(recipe: &Recipe, most_bytes: u64) -> Self {
        let of_shard = most_bytes / SHARDS as u64 / (4 * SLOT_BYTES);
        let characters = recipe.tokens == TokenKind::Characters;
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            spellings: Mutex::default(),
            documents: Mutex::new(0),
            table_bytes: AtomicU64::new(0),
            collected: of_shard.clamp(16, COLLECTED_TERMS as u64) as usize,
            ngram: recipe.ngram as usize,
            packed: characters && recipe.ngram <= 3,
            characters,
        }
    }

    /// Creates a tally for a thread. Its counts are added to the sums by [`merge_tally`](Self::merge_tally).
    pub fn new_tally(&self) -> FrequencyTally {
        FrequencyTally {
            waiting: (0..SHARDS).map(|_| Vec::new()).collect(),
            distinct: DistinctFeatures::default(),
            known: HashSet::default(),
            recent: vec![0; RECENT_FEATURES],
            spelled: Vec::new(),
            spelled_bytes: 0,
            text: String::new(),
            ends: Vec::new(),
            tokens: Vec::new(),
            features: Vec::new(),
            documents: 0,
        }
    }

    /// Counts a document. A document without terms is not counted.
    pub fn count_document(
        &self,
        analyzer: &TextAnalyzer,
        text: &str,
        scratch: &mut AnalysisScratch,
        tally: &mut FrequencyTally,
    ) {
        if self.packed {
            let analysis = analyzer.analyze_text(text, scratch);
            pack_terms(analysis.token_values(), self.ngram, &mut tally.features);
        } else {
            tally.spell_terms(analyzer, text, scratch);
            let count = (tally.tokens.len() + 1).saturating_sub(self.ngram);
            tally.features.clear();
            tally.features.resize(count, 0);
            hash_shingles(self.ngram, &tally.tokens, &mut tally.features);
        }
        tally.documents += u64::from(!tally.features.is_empty());
        self.add_tally(tally);
    }

    fn add_tally(&self, tally: &mut FrequencyTally) {
        let features = std::mem::take(&mut tally.features);
        tally.distinct.begin_document(features.len());
        for (at, &feature) in features.iter().enumerate() {
            if !tally.distinct.insert_feature(feature) {
                continue;
            }
            if !self.packed && tally.is_new_feature(feature) {
                tally.remember_spelling(feature, at, self.ngram, self.characters);
            }
            let shard = shard_index(feature);
            let waiting = &mut tally.waiting[shard];
            waiting.push(feature);
            if waiting.len() == self.collected {
                self.count_in_shard(shard, waiting);
                waiting.clear();
            }
        }
        tally.features = features;
    }

    fn count_in_shard(&self, shard: usize, keys: &[u64]) {
        let mut shard = lock_ignoring_poison(&self.shards[shard]);
        let before = shard.table_bytes();
        shard.count_keys(keys);
        let added = shard.table_bytes() - before;
        self.table_bytes.fetch_add(added, Ordering::Relaxed);
    }

    /// Returns the bytes of memory of the tables that count terms.
    pub fn table_bytes(&self) -> u64 {
        self.table_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of terms that are counted in memory.
    pub fn term_count(&self) -> u64 {
        let used = |shard: &Mutex<CountShard>| lock_ignoring_poison(shard).used as u64;
        self.shards.iter().map(used).sum()
    }

    /// Takes all counts of a shard, which is then empty: keys and numbers of documents, ascending by key.
    ///
    /// # Panics
    /// If `shard` is not below [`SHARDS`](Self::SHARDS).
    pub fn take_counts(&self, shard: usize) -> Vec<(u64, u64)> {
        let taken = std::mem::take(&mut *lock_ignoring_poison(&self.shards[shard]));
        let freed = taken.table_bytes();
        let mut counts = Vec::with_capacity(taken.used);
        counts.extend(taken.into_counted(1));
        self.table_bytes.fetch_sub(freed, Ordering::Relaxed);
        counts.sort_unstable();
        counts
    }

    /// Returns the shard that counts a key.
    pub fn shard_of_key(key: u64) -> usize {
        shard_index(key)
    }

    /// Returns `true` if keys are spelled by [`unpack_key`](Self::unpack_key), and tallies have no spellings.
    pub fn has_packed_keys(&self) -> bool {
        self.packed
    }

    /// Appends the term of a packed key.
    pub fn unpack_key(&self, key: u64, into: &mut String) {
        unpack_term(key, self.ngram, into);
    }

    /// Adds what a tally has not yet counted, and its number of documents.
    pub fn count_waiting(&self, tally: &mut FrequencyTally) {
        for (shard, waiting) in tally.waiting.iter_mut().enumerate() {
            if !waiting.is_empty() {
                self.count_in_shard(shard, waiting);
                waiting.clear();
            }
        }
        *lock_ignoring_poison(&self.documents) += std::mem::take(&mut tally.documents);
    }

    /// Returns the number of documents of all tallies that were added.
    pub fn counted_documents(&self) -> u64 {
        *lock_ignoring_poison(&self.documents)
    }

    /// Adds the counts of a tally.
    pub fn merge_tally(&self, mut tally: FrequencyTally) {
        self.count_waiting(&mut tally);
        let mut spellings = lock_ignoring_poison(&self.spellings);
        for (feature, term) in tally.spelled {
            let known = spellings.entry(feature).or_insert_with(|| term.clone());
            if term < *known {
                *known = term;
            }
        }
    }

    /// Returns the terms that occur in at least `least` documents, most frequent first, and equally frequent
    /// ones ordered by their bytes. `top` limits their number. `before` contains earlier counts, which are
    /// added.
    pub fn finish_counting(
        self,
        before_documents: u64,
        before: HashMap<String, u64>,
        least: u64,
        top: Option<usize>,
    ) -> LearnedFrequencies {
        let documents = before_documents + into_inner_ignoring_poison(self.documents);
        let shards: Vec<_> = self
            .shards
            .into_iter()
            .map(into_inner_ignoring_poison)
            .collect();
        // If earlier counts are added, a term that is rare here may still reach `least`.
        let enough = if before.is_empty() { least } else { 1 };
        let mut counted: Vec<(u64, u64)> = shards
            .into_par_iter()
            .flat_map_iter(|shard| shard.into_counted(enough))
            .collect();
        let spellings = into_inner_ignoring_poison(self.spellings);
        let spelled = |key: u64| {
            if self.packed {
                unpack_to_string(key, self.ngram)
            } else {
                String::from(&*spellings[&key])
            }
        };
        if !before.is_empty() {
            let mut sum = before;
            for (key, count) in counted {
                *sum.entry(spelled(key)).or_default() += count;
            }
            let rows = sum.into_iter().filter(|&(_, count)| count >= least);
            let terms = LearnedTerms::Spelled(sort_terms(rows.collect(), top));
            return LearnedFrequencies { documents, terms };
        }
        if !self.packed {
            let rows = counted.into_par_iter();
            let rows = rows.map(|(key, count)| (spelled(key), count)).collect();
            let terms = LearnedTerms::Spelled(sort_terms(rows, top));
            return LearnedFrequencies { documents, terms };
        }
        // The order of packed terms of one length equals the order of their bytes.
        counted
            .par_sort_unstable_by_key(|&(key, count)| u128::from(!count) << 64 | u128::from(key));
        counted.truncate(top.unwrap_or(usize::MAX));
        let terms = LearnedTerms::Packed(counted, self.ngram);
        LearnedFrequencies { documents, terms }
    }
}

/// The terms of a corpus with their document frequencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedFrequencies {
    /// Number of documents that have terms.
    pub documents: u64,
    terms: LearnedTerms,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LearnedTerms {
    Spelled(Vec<CountedTerm>),
    Packed(Vec<(u64, u64)>, usize),
}

impl LearnedFrequencies {
    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        match &self.terms {
            LearnedTerms::Spelled(terms) => terms.len(),
            LearnedTerms::Packed(terms, _) => terms.len(),
        }
    }

    /// Returns `true` if there are no terms.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` with a range of terms and their numbers of documents, most frequent first.
    pub fn visit_terms(&self, range: Range<usize>, mut visit: impl FnMut(&str, u64)) {
        match &self.terms {
            LearnedTerms::Spelled(terms) => terms[range]
                .iter()
                .for_each(|(term, count)| visit(term, *count)),
            LearnedTerms::Packed(terms, ngram) => {
                let mut term = String::new();
                for &(key, count) in &terms[range] {
                    term.clear();
                    unpack_term(key, *ngram, &mut term);
                    visit(&term, count);
                }
            }
        }
    }
}

fn sort_terms(mut rows: Vec<CountedTerm>, top: Option<usize>) -> Vec<CountedTerm> {
    rows.par_sort_unstable_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
    rows.truncate(top.unwrap_or(usize::MAX));
    rows
}

impl FrequencyTally {
    fn spell_terms(&mut self, analyzer: &TextAnalyzer, text: &str, scratch: &mut AnalysisScratch) {
        self.text.clear();
        self.ends.clear();
        self.tokens.clear();
        analyzer.visit_terms(text, scratch, false, &mut |term| {
            self.text.push_str(term.text);
            self.ends.push(self.text.len());
            self.tokens.push(term.value);
        });
    }

    /// Returns the approximate bytes of memory of all spellings.
    pub fn spelling_bytes(&self) -> u64 {
        self.spelled_bytes
    }

    /// Takes the spellings of all terms that this tally has counted since they were last taken, each with its key, in
    /// any order.
    pub fn take_spellings(&mut self) -> Vec<(u64, Box<str>)> {
        self.known = HashSet::default();
        self.recent.fill(0);
        self.spelled_bytes = 0;
        std::mem::take(&mut self.spelled)
    }

    /// Returns `true` if this thread has not seen the feature in any document.
    #[inline]
    fn is_new_feature(&mut self, feature: u64) -> bool {
        let recent = &mut self.recent[feature as usize % RECENT_FEATURES];
        if *recent == feature && feature != 0 {
            return false;
        }
        *recent = feature;
        self.known.insert(feature)
    }

    /// Stores the spelling of the term of the window at `at`.
    #[cold]
    fn remember_spelling(&mut self, feature: u64, at: usize, ngram: usize, characters: bool) {
        let start = |token: usize| token.checked_sub(1).map_or(0, |before| self.ends[before]);
        let tokens = (at..at + ngram).map(|token| &self.text[start(token)..self.ends[token]]);
        let term = join_tokens(tokens, characters);
        self.spelled_bytes += SPELLING_BYTES + term.len() as u64;
        self.spelled.push((feature, term.into_boxed_str()));
    }
}

/// Writes the packed term of every window of `n` characters.
fn pack_terms(tokens: &[u64], n: usize, into: &mut Vec<u64>) {
    into.clear();
    let mask = (1 << (n as u32 * CODE_POINT_BITS)) - 1;
    let mut term = 0;
    for (at, &token) in tokens.iter().enumerate() {
        term = (term << CODE_POINT_BITS | token) & mask;
        if at + 1 >= n {
            into.push(term | PACKED_FLAG);
        }
    }
}

fn unpack_to_string(key: u64, n: usize) -> String {
    let mut term = String::new();
    unpack_term(key, n, &mut term);
    term
}

/// Appends the characters of a packed term.
fn unpack_term(key: u64, n: usize, into: &mut String) {
    let point = |at: u32| (key >> (at * CODE_POINT_BITS)) as u32 & ((1 << CODE_POINT_BITS) - 1);
    let points = (0..n as u32).rev().map(point);
    into.extend(points.filter_map(char::from_u32));
}

#[inline]
fn shard_index(key: u64) -> usize {
    (mix_bits(key) >> 56) as usize
}

/// A hasher that leaves features unchanged, because they are hashes already.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeatureHasher(u64);

impl Hasher for FeatureHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = self.0.rotate_left(8) ^ value;
    }
}

/// The set of distinct features of a document.
#[derive(Debug, Default)]
struct DistinctFeatures {
    slots: Vec<(u64, u32)>,
    mask: usize,
    document: u32,
}

impl DistinctFeatures {
    /// Makes room for at most `most` features of a new document.
    fn begin_document(&mut self, most: usize) {
        let size = (2 * most).next_power_of_two().max(16);
        self.document = self.document.wrapping_add(1);
        if self.slots.len() < size || self.document == 0 {
            self.slots.clear();
            self.slots.resize(size, (0, 0));
            self.document = 1;
        }
        self.mask = size - 1;
    }

    /// Adds a feature. Returns `true` if it is new to the document.
    #[inline]
    fn insert_feature(&mut self, feature: u64) -> bool {
        let mut at = mix_bits(feature) as usize & self.mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.1 != self.document {
                *slot = (feature, self.document);
                return true;
            }
            if slot.0 == feature {
                return false;
            }
            at = (at + 1) & self.mask;
        }
    }
}

/// Counts by key, in a hash table with open addressing, at most three quarters full. A count of 0 marks an
/// empty slot.
#[derive(Debug, Default)]
struct CountShard {
    keys: Vec<u64>,
    counts: Vec<u32>,
    used: usize,
}

impl CountShard {
    fn count_keys(&mut self, keys: &[u64]) {
        let room = (self.used + keys.len()) * 4 / 3 + 16;
        if room > self.keys.len() {
            // Most keys are in the table already, but there must be room even if all are new.
            self.resize_table(room.next_power_of_two());
        }
        for (at, &key) in keys.iter().enumerate() {
            if let Some(&later) = keys.get(at + PREFETCH_DISTANCE) {
                let home = self.home_slot(later);
                prefetch(&self.keys[home]);
                prefetch(&self.counts[home]);
            }
            let at = self.find_slot(key);
            self.used += usize::from(self.counts[at] == 0);
            self.keys[at] = key;
            self.counts[at] = self.counts[at].saturating_add(1);
        }
    }

    fn table_bytes(&self) -> u64 {
        SLOT_BYTES * self.keys.len() as u64
    }

    fn resize_table(&mut self, size: usize) {
        let keys = std::mem::replace(&mut self.keys, vec![0; size]);
        let counts = std::mem::replace(&mut self.counts, vec![0; size]);
        for (key, count) in keys.into_iter().zip(counts).filter(|&(_, count)| count > 0) {
            let at = self.find_slot(key);
            self.keys[at] = key;
            self.counts[at] = count;
        }
    }

    /// Returns the preferred position of a key.
    #[inline]
    fn home_slot(&self, key: u64) -> usize {
        mix_bits(key) as usize & (self.keys.len() - 1)
    }

    #[inline]
    fn find_slot(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mut at = self.home_slot(key);
        while self.counts[at] != 0 && self.keys[at] != key {
            at = (at + 1) & mask;
        }
        at
    }

    fn into_counted(self, least: u64) -> impl Iterator<Item = (u64, u64)> {
        let pairs = self.keys.into_iter().zip(self.counts);
        pairs
            .map(|(key, count)| (key, u64::from(count)))
            .filter(move |&(_, count)| count >= least.max(1))
    }
}

fn lock_ignoring_poison<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in another thread is propagated at the end of the run.
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner_ignoring_poison<T>(value: Mutex<T>) -> T {
    value.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn texts() -> Vec<String> {
        let words = [
            "清华大学",
            "船长",
            "ferry",
            "leaves",
            "的",
            "café",
            "，",
            "x y",
            "缆绳解开",
        ];
        let text = |at: u64| {
            let word = |k: u64| words[(mix_bits(at * 64 + k) % words.len() as u64) as usize];
            (0..at % 60)
                .map(word)
                .collect::<Vec<_>>()
                .join(if at.is_multiple_of(2) { " " } else { "" })
        };
        (0..700).map(text).collect()
    }

    /// Returns the same counts by the simplest method.
    fn plain(recipe: &Recipe, texts: &[String]) -> (u64, Vec<CountedTerm>) {
        let analyzer = TextAnalyzer::new(recipe);
        let mut counts = BTreeMap::new();
        let mut documents = 0;
        for text in texts {
            let mut tokens = Vec::new();
            analyzer.visit_terms(text, &mut AnalysisScratch::default(), false, &mut |term| {
                tokens.push(term.text.to_owned());
            });
            let between = if recipe.tokens == TokenKind::Characters {
                ""
            } else {
                " "
            };
            let windows = tokens.windows(recipe.ngram as usize);
            let terms: HashSet<_> = windows.map(|window| window.join(between)).collect();
            documents += u64::from(!terms.is_empty());
            for term in terms {
                *counts.entry(term).or_default() += 1;
            }
        }
        (documents, sort_terms(counts.into_iter().collect(), None))
    }

    fn all(learned: &LearnedFrequencies) -> (u64, Vec<CountedTerm>) {
        let mut terms = Vec::new();
        learned.visit_terms(0..learned.len(), |term, count| {
            terms.push((term.to_owned(), count))
        });
        (learned.documents, terms)
    }

    fn counted(recipe: &Recipe, texts: &[String], threads: usize) -> DocumentFrequencies {
        let analyzer = TextAnalyzer::new(recipe);
        let frequencies = DocumentFrequencies::new(recipe);
        let (analyzer, all) = (&analyzer, &frequencies);
        std::thread::scope(|scope| {
            for part in texts.chunks(texts.len().div_ceil(threads)) {
                scope.spawn(move || {
                    let (mut tally, mut scratch) = (all.new_tally(), AnalysisScratch::default());
                    for text in part {
                        all.count_document(analyzer, text, &mut scratch, &mut tally);
                    }
                    all.merge_tally(tally);
                });
            }
        });
        frequencies
    }

    #[test]
    fn counts_equal_plain_counts_at_any_threads() {
        let texts = texts();
        for name in [
            "characters-3",
            "default",
            "words-5",
            "jieba",
            "jieba-search",
        ] {
            let recipe = Recipe::built_in(name).unwrap();
            let expected = plain(&recipe, &texts);
            for threads in [1, 3] {
                let found =
                    counted(&recipe, &texts, threads).finish_counting(0, HashMap::new(), 1, None);
                assert_eq!(all(&found), expected, "{name}");
            }
        }
    }

    #[test]
    fn counts_and_spellings_can_be_taken_at_any_time() {
        let texts = texts();
        for (name, most_bytes) in [("characters-3", 0), ("words-5", 1 << 20), ("default", 0)] {
            let recipe = Recipe::built_in(name).unwrap();
            let (documents, expected) = plain(&recipe, &texts);
            let analyzer = TextAnalyzer::new(&recipe);
            let frequencies = DocumentFrequencies::with_table_bytes(&recipe, most_bytes);
            let (mut tally, mut scratch) = (frequencies.new_tally(), AnalysisScratch::default());
            let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
            let mut spellings: HashMap<u64, Box<str>> = HashMap::new();
            let mut takings = 0;
            let mut take = |tally: &mut FrequencyTally| {
                for shard in 0..DocumentFrequencies::SHARDS {
                    let counts = frequencies.take_counts(shard);
                    assert!(counts.is_sorted());
                    for (key, count) in counts {
                        assert_eq!(DocumentFrequencies::shard_of_key(key), shard);
                        *sums.entry(key).or_default() += count;
                    }
                }
                assert_eq!(
                    (frequencies.table_bytes(), frequencies.term_count()),
                    (0, 0)
                );
                spellings.extend(tally.take_spellings());
                assert_eq!(tally.spelling_bytes(), 0);
                takings += 1;
            };
            for (at, text) in texts.iter().enumerate() {
                frequencies.count_document(&analyzer, text, &mut scratch, &mut tally);
                if at % 50 == 0 || frequencies.table_bytes() > 1 << 20 {
                    take(&mut tally);
                }
            }
            frequencies.count_waiting(&mut tally);
            take(&mut tally);
            assert!(takings > 10);
            let spell = |key: u64| {
                if frequencies.has_packed_keys() {
                    unpack_to_string(key, recipe.ngram as usize)
                } else {
                    String::from(&*spellings[&key])
                }
            };
            let found = sums.iter().map(|(&key, &count)| (spell(key), count));
            let found = sort_terms(found.collect(), None);
            assert_eq!(found, expected, "{name}");
            assert_eq!(frequencies.counted_documents(), documents);
        }
    }

    #[test]
    fn tables_are_pruned_and_merged() {
        let texts = texts();
        for name in ["characters-3", "default"] {
            let recipe = Recipe::built_in(name).unwrap();
            let (documents, terms) = plain(&recipe, &texts);
            for least in [1, 2, 40] {
                let expected: Vec<_> = terms
                    .iter()
                    .filter(|(_, count)| *count >= least)
                    .cloned()
                    .collect();
                let found =
                    counted(&recipe, &texts, 1).finish_counting(0, HashMap::new(), least, None);
                assert_eq!(all(&found), (documents, expected.clone()));
                let top =
                    counted(&recipe, &texts, 1).finish_counting(0, HashMap::new(), least, Some(7));
                assert_eq!(all(&top).1, expected[..expected.len().min(7)]);
                let (first, second) = texts.split_at(300);
                let (earlier, counts) = plain(&recipe, first);
                let counts = counts.into_iter().collect();
                let found =
                    counted(&recipe, second, 1).finish_counting(earlier, counts, least, None);
                assert_eq!(all(&found), (documents, expected));
            }
        }
    }

    #[test]
    fn packed_terms_round_trip() {
        for text in ["a", "清", "\u{10ffff}", "\u{0}"] {
            let point = u64::from(text.chars().next().unwrap() as u32);
            for n in 1..=3 {
                let mut packed = Vec::new();
                pack_terms(&vec![point; n], n, &mut packed);
                assert_eq!(packed.len(), 1);
                assert_eq!(unpack_to_string(packed[0], n), text.repeat(n));
            }
        }
    }
}
