//! An inverted index of winnowed grams: which documents may share a passage with a text.
//!
//! ```text
//! directory   first posting by the upper bits of the hash    2^b numbers of 32 bits
//! keys        lower 32 bits of the hash of a gram            one for each posting, ascending within its upper bits
//! documents   the document that has the gram                 one for each posting, ascending within its gram
//! ```
//!
//! Guarantee: two texts that share a run of tokens as long as [`PassageSettings`] say have a selected gram in common
//! (see `grams`), so each is a candidate for the other, unless all of these grams are boilerplate. Boilerplate are
//! grams in more documents than a limit; they are counted and no candidates are found by them. Two grams whose hashes
//! agree in the upper bits and the lower 32 bits find one another, so candidates are verified on their texts.
//!
//! Memory: 8 bytes for each posting and about one for the directory, or .35 bytes for a byte of English text and .4
//! for one of Chinese. Building takes 16 bytes for each posting in addition.

use rayon::prelude::*;

use super::PassageSettings;
use super::grams::{GramList, index_width, visit_winnowed};

/// Postings for each entry of the directory, on average.
const POSTINGS_PER_ENTRY: usize = 4;

/// Selects the grams by which a text is found in an index. It keeps its buffers from text to text.
#[derive(Clone, Debug, Default)]
pub struct Winnower {
    settings: PassageSettings,
    grams: GramList,
}

/// A selected gram of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SelectedGram {
    /// Hash of its tokens.
    pub hash: u64,
    /// Its first token.
    pub start: u32,
    /// End of its tokens.
    pub end: u32,
}

impl Winnower {
    /// Creates a winnower for passages of a length.
    pub fn new(settings: PassageSettings) -> Self {
        Self {
            settings,
            grams: GramList::default(),
        }
    }

    /// Replaces `selected` by the selected grams of a text, given by its tokens: ascending by hash, each hash
    /// once, with its first place.
    pub fn select_grams(&mut self, tokens: &[u64], selected: &mut Vec<SelectedGram>) {
        selected.clear();
        let width = self.settings.min_width();
        self.grams.fill_grams(tokens, index_width(width));
        visit_winnowed(tokens, &self.grams, width, |start| {
            selected.push(SelectedGram {
                hash: self.grams.hashes[start],
                start: start as u32,
                end: self.grams.ends[start],
            });
        });
        selected.sort_unstable();
        selected.dedup_by_key(|gram| gram.hash);
    }
}

/// A gram that is in more documents than the limit of its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoilerplateGram {
    /// Hash of its tokens.
    pub hash: u64,
    /// Number of documents that have it.
    pub documents: u32,
    /// The first of them.
    pub first: u32,
}

/// A document that shares selected grams with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassageCandidate {
    /// Number of the document.
    pub document: u32,
    /// Number of distinct selected grams that it shares with the text.
    pub shared: u32,
}

impl PassageCandidate {
    /// Returns each document of a list once, ascending, with its frequency in the list.
    pub fn count_documents(mut documents: Vec<u32>) -> Vec<Self> {
        documents.sort_unstable();
        let equal = documents.chunk_by(|a, b| a == b);
        let candidates = equal.map(|equal| Self {
            document: equal[0],
            shared: equal.len() as u32,
        });
        candidates.collect()
    }
}

/// The selected grams of many documents, in memory.
#[derive(Debug, Default)]
pub struct PassageIndex {
    directory: Vec<u32>,
    /// Number of bits by which a hash is shifted to become an index of `directory`.
    shift: u32,
    keys: Vec<u32>,
    documents: Vec<u32>,
    /// Ascending by hash.
    boilerplate: Vec<BoilerplateGram>,
}

impl PassageIndex {
    /// Largest number of postings.
    pub const MAX_POSTINGS: usize = u32::MAX as usize;

    /// Builds an index from pairs of a hash and a document, in any order, each pair once. Grams in more than
    /// `max_documents` documents become boilerplate; `None` for no limit.
    ///
    /// Cost: a sort of the pairs on all threads of the pool.
    ///
    /// # Panics
    /// If there are more than [`MAX_POSTINGS`](Self::MAX_POSTINGS) pairs.
    pub fn from_pairs(mut pairs: Vec<(u64, u32)>, max_documents: Option<u32>) -> Self {
        assert!(
            pairs.len() <= Self::MAX_POSTINGS,
            "the caller checks the number of postings"
        );
        pairs.par_sort_unstable();
        let boilerplate = remove_boilerplate(&mut pairs, max_documents);
        let entries = (pairs.len() / POSTINGS_PER_ENTRY).next_power_of_two();
        let shift = 64 - entries.trailing_zeros().max(1);
        let mut directory = vec![0; (1 << (64 - shift)) + 1];
        for &(hash, _) in &pairs {
            directory[(hash >> shift) as usize + 1] += 1;
        }
        for at in 1..directory.len() {
            directory[at] += directory[at - 1];
        }
        // Within an entry the pairs ascend by their lower bits, too, once they are sorted again.
        for entry in directory.windows(2) {
            pairs[entry[0] as usize..entry[1] as usize]
                .sort_unstable_by_key(|&(hash, document)| (hash as u32, document));
        }
        Self {
            directory,
            shift,
            keys: pairs.iter().map(|&(hash, _)| hash as u32).collect(),
            documents: pairs.iter().map(|&(_, document)| document).collect(),
            boilerplate,
        }
    }

    /// Returns the grams in too many documents, ascending by hash.
    pub fn boilerplate_grams(&self) -> &[BoilerplateGram] {
        &self.boilerplate
    }

    /// Returns the number of postings.
    pub fn posting_count(&self) -> usize {
        self.documents.len()
    }

    /// Returns the bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        4 * (self.directory.len() + self.keys.len() + self.documents.len())
            + self.boilerplate.len() * size_of::<BoilerplateGram>()
    }

    /// Replaces `candidates` by the documents that share selected grams with a text, ascending, and returns the
    /// number of selected grams that are boilerplate.
    pub fn find_candidates(
        &self,
        selected: &[SelectedGram],
        candidates: &mut Vec<PassageCandidate>,
    ) -> usize {
        let mut boilerplate = 0;
        let mut found = Vec::new();
        for gram in selected {
            let documents = self.documents_with(gram.hash);
            found.extend_from_slice(documents);
            boilerplate += usize::from(documents.is_empty() && self.is_boilerplate(gram.hash));
        }
        *candidates = PassageCandidate::count_documents(found);
        boilerplate
    }

    /// Returns `true` if a gram is in more documents than the limit.
    pub fn is_boilerplate(&self, hash: u64) -> bool {
        self.boilerplate
            .binary_search_by_key(&hash, |entry| entry.hash)
            .is_ok()
    }

    /// Returns the documents that have a gram, ascending; none of boilerplate.
    pub(super) fn documents_with(&self, hash: u64) -> &[u32] {
        let entry = (hash >> self.shift) as usize;
        let [from, to] = [entry, entry + 1]
            .map(|place| self.directory.get(place).map_or(0, |&place| place as usize));
        let keys = &self.keys[from..to];
        let key = hash as u32;
        let start = keys.partition_point(|&it| it < key);
        let count = keys[start..].partition_point(|&it| it == key);
        &self.documents[from + start..from + start + count]
    }
}

/// Removes the grams in more documents than the limit from sorted pairs, and returns them.
fn remove_boilerplate(
    pairs: &mut Vec<(u64, u32)>,
    max_documents: Option<u32>,
) -> Vec<BoilerplateGram> {
    let Some(max_documents) = max_documents else {
        return Vec::new();
    };
    let mut boilerplate = Vec::new();
    let (mut read, mut kept) = (0, 0);
    while read < pairs.len() {
        let (hash, first) = pairs[read];
        let count = pairs[read..]
            .iter()
            .take_while(|pair| pair.0 == hash)
            .count();
        if count > max_documents as usize {
            boilerplate.push(BoilerplateGram {
                hash,
                documents: count as u32,
                first,
            });
        } else {
            pairs.copy_within(read..read + count, kept);
            kept += count;
        }
        read += count;
    }
    pairs.truncate(kept);
    boilerplate
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn gram(hash: u64) -> SelectedGram {
        SelectedGram {
            hash,
            start: 0,
            end: 5,
        }
    }

    proptest! {
        /// Candidates are those of a plain scan.
        #[test]
        fn candidates_equal_a_scan(
            pairs in proptest::collection::btree_set((0..60u64, 0..20u32), 0..300),
            query in proptest::collection::btree_set(0..60u64, 0..20),
            max_documents in proptest::option::of(1..12u32),
        ) {
            // The upper bits choose the entry of the directory, the lower ones the key.
            let spread = |hash: u64| hash << 57 | hash;
            let spread_pairs = pairs.iter().map(|&(hash, document)| (spread(hash), document));
            let index = PassageIndex::from_pairs(spread_pairs.collect(), max_documents);
            let with = |hash: u64| pairs.iter().filter(move |pair| spread(pair.0) == spread(hash));
            let is_boilerplate = |hash: u64| {
                max_documents.is_some_and(|most| with(hash).count() > most as usize)
            };
            let hashes: std::collections::BTreeSet<u64> = query.iter().map(|&it| spread(it)).collect();
            let selected: Vec<_> = hashes.iter().copied().map(gram).collect();
            let mut candidates = Vec::new();
            let boilerplate = index.find_candidates(&selected, &mut candidates);
            let mut expected = BTreeMap::new();
            let mut expected_boilerplate = 0;
            for &hash in &query {
                if query.iter().any(|&other| other < hash && spread(other) == spread(hash)) {
                    continue;
                }
                if is_boilerplate(hash) {
                    expected_boilerplate += 1;
                    continue;
                }
                for &(_, document) in with(hash) {
                    *expected.entry(document).or_insert(0) += 1;
                }
            }
            let found: BTreeMap<_, _> =
                candidates.iter().map(|candidate| (candidate.document, candidate.shared)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(boilerplate, expected_boilerplate);
        }
    }

    #[test]
    fn gram_above_the_limit_is_boilerplate() {
        let pairs = |count: u32| (0..count).map(|document| (7 << 50, document)).collect();
        for (count, is_boilerplate) in [(2, false), (3, false), (4, true)] {
            let index = PassageIndex::from_pairs(pairs(count), Some(3));
            assert_eq!(index.is_boilerplate(7 << 50), is_boilerplate);
            let mut candidates = Vec::new();
            let counted = index.find_candidates(&[gram(7 << 50)], &mut candidates);
            assert_eq!(counted, usize::from(is_boilerplate));
            assert_eq!(candidates.is_empty(), is_boilerplate);
        }
        let index = PassageIndex::from_pairs(pairs(100), None);
        assert_eq!(index.posting_count(), 100);
        let mut candidates = Vec::new();
        assert_eq!(
            PassageIndex::default().find_candidates(&[gram(1)], &mut candidates),
            0
        );
    }

    #[test]
    fn candidates_are_counted() {
        let counted = PassageCandidate::count_documents(vec![3, 1, 3]);
        let counted: Vec<_> = counted
            .iter()
            .map(|candidate| (candidate.document, candidate.shared))
            .collect();
        assert_eq!(counted, [(1, 1), (3, 2)]);
    }
}
