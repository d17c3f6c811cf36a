//! An index of winnowed grams to which documents are added, and from which they are removed.
//!
//! ```text
//! shard 0..=255    upper 8 bits of the hash of a gram
//!   run, run, …    sorted postings, each run at least twice as long as the next one
//!     keys         next 32 bits of the hash, ascending     one for each posting
//!     documents    the document, ascending within its key  one for each posting
//! ```
//!
//! New postings become a run of their shard, and runs of similar length are merged, as in a log-structured merge
//! tree (O'Neil, Cheng, Gawlick and O'Neil 1996). A posting is therefore merged once for each doubling of the index.
//!
//! Guarantee: the candidates are those of a [`PassageIndex`](super::PassageIndex) of the live documents, and some
//! more where the first 40 bits of two hashes agree. Boilerplate is counted when a gram is looked up, because its
//! frequency changes; a gram in too many live documents leads to none.
//!
//! Memory: 8 bytes for each posting. A merge takes twice the memory of one shard in addition.

const SHARDS: usize = 256;

/// Selected grams of documents that come and go, in memory. Documents have numbers from 0.
///
/// ```
/// use lookalike::passages::LivePassageIndex;
///
/// let mut index = LivePassageIndex::default();
/// index.append_postings(vec![(7 << 40, 0), (9 << 40, 0)]);
/// index.append_postings(vec![(7 << 40, 1)]);
/// let mut found = Vec::new();
/// let is_boilerplate = index.find_documents(7 << 40, Some(20), |_| true, &mut found);
/// assert_eq!((is_boilerplate, found), (false, vec![0, 1]));
/// ```
#[derive(Debug)]
pub struct LivePassageIndex {
    shards: Vec<Vec<PostingRun>>,
}

/// Postings, ascending by key and then by document.
#[derive(Debug, Default)]
struct PostingRun {
    keys: Vec<u32>,
    documents: Vec<u32>,
}

impl Default for LivePassageIndex {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| Vec::new()).collect();
        Self { shards }
    }
}

impl LivePassageIndex {
    /// Adds pairs of a hash and a document, in any order. The documents must have larger numbers than all earlier
    /// ones.
    ///
    /// Cost: a sort of the pairs, and for each of them one merge for each doubling of the index.
    pub fn append_postings(&mut self, mut pairs: Vec<(u64, u32)>) {
        pairs.sort_unstable_by_key(|&(hash, document)| (hash >> 24, document));
        for equal in pairs.chunk_by(|a, b| shard_number(a.0) == shard_number(b.0)) {
            let run = PostingRun {
                keys: equal.iter().map(|&(hash, _)| shard_key(hash)).collect(),
                documents: equal.iter().map(|&(_, document)| document).collect(),
            };
            push_run(&mut self.shards[shard_number(equal[0].0)], run);
        }
    }

    /// Appends the live documents that have a gram to `found`, ascending, and returns `false`. If there are more than
    /// `max_documents`, the gram is boilerplate: appends none and returns `true`.
    ///
    /// Cost: a binary search in every run of a shard, and a call of `is_live` for each posting up to the limit.
    pub fn find_documents(
        &self,
        hash: u64,
        max_documents: Option<u32>,
        is_live: impl Fn(u32) -> bool,
        found: &mut Vec<u32>,
    ) -> bool {
        let start = found.len();
        let most = max_documents.map_or(usize::MAX, |most| most as usize);
        let runs = &self.shards[shard_number(hash)];
        let all = runs
            .iter()
            .flat_map(|run| run.documents_with(shard_key(hash)));
        for &document in all {
            if !is_live(document) || found[start..].last() == Some(&document) {
                continue;
            }
            if found.len() - start == most {
                found.truncate(start);
                return true;
            }
            found.push(document);
        }
        false
    }

    /// Removes documents and gives others a new number: `new_numbers[document]` is `None` for one that is removed.
    /// New numbers must be in the order of the old ones.
    ///
    /// Cost: some nanoseconds for each posting.
    pub fn renumber_documents(&mut self, new_numbers: &[Option<u32>]) {
        for shard in &mut self.shards {
            shard.iter_mut().for_each(|run| run.renumber(new_numbers));
            shard.retain(|run| !run.keys.is_empty());
        }
    }

    /// Returns the number of postings.
    pub fn posting_count(&self) -> usize {
        self.shards.iter().flatten().map(|run| run.keys.len()).sum()
    }

    /// Returns the bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        let run_bytes = |run: &PostingRun| 4 * (run.keys.capacity() + run.documents.capacity());
        let shard_bytes = |shard: &Vec<PostingRun>| {
            shard.capacity() * size_of::<PostingRun>() + shard.iter().map(run_bytes).sum::<usize>()
        };
        self.shards.iter().map(shard_bytes).sum()
    }
}

fn shard_number(hash: u64) -> usize {
    (hash >> 56) as usize
}

fn shard_key(hash: u64) -> u32 {
    (hash >> 24) as u32
}

/// Adds a run, and merges runs until each is at least twice as long as the next one.
fn push_run(runs: &mut Vec<PostingRun>, mut run: PostingRun) {
    while runs
        .last()
        .is_some_and(|last| last.keys.len() < 2 * run.keys.len())
    {
        let older = runs.pop().unwrap_or_default();
        run = older.merge_newer(run);
    }
    runs.push(run);
}

impl PostingRun {
    fn documents_with(&self, key: u32) -> &[u32] {
        let start = self.keys.partition_point(|&it| it < key);
        let count = self.keys[start..].partition_point(|&it| it == key);
        &self.documents[start..start + count]
    }

    /// Merges a run with one whose documents all have larger numbers.
    fn merge_newer(self, newer: Self) -> Self {
        let total = self.keys.len() + newer.keys.len();
        let mut merged = Self {
            keys: Vec::with_capacity(total),
            documents: Vec::with_capacity(total),
        };
        let mut at = 0;
        for (&key, &document) in newer.keys.iter().zip(&newer.documents) {
            while self.keys.get(at).is_some_and(|&it| it <= key) {
                merged.keys.push(self.keys[at]);
                merged.documents.push(self.documents[at]);
                at += 1;
            }
            merged.keys.push(key);
            merged.documents.push(document);
        }
        merged.keys.extend_from_slice(&self.keys[at..]);
        merged.documents.extend_from_slice(&self.documents[at..]);
        merged
    }

    fn renumber(&mut self, new_numbers: &[Option<u32>]) {
        let mut kept = 0;
        for at in 0..self.keys.len() {
            if let Some(number) = new_numbers[self.documents[at] as usize] {
                self.keys[kept] = self.keys[at];
                self.documents[kept] = number;
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.documents.truncate(kept);
        self.keys.shrink_to_fit();
        self.documents.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Spreads few values over shards and keys, so that runs and keys have several postings.
    fn spread(gram: u64) -> u64 {
        (gram % 3) << 56 | gram << 24
    }

    proptest! {
        /// Documents come in batches, some are removed, and some of these are purged: each gram has the documents of a
        /// plain map.
        #[test]
        fn documents_equal_a_map(
            batches in proptest::collection::vec(
                (proptest::collection::btree_set((0..12u64, 0..6u32), 0..40), 0..64u64, any::<bool>()),
                1..12,
            ),
            limit in proptest::option::of(1..9u32),
        ) {
            let mut index = LivePassageIndex::default();
            let mut grams: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            let (mut live, mut next) = (BTreeSet::new(), 0u32);
            for (batch, removed, is_purged) in batches {
                let pairs = batch.iter().map(|&(gram, document)| (spread(gram), next + document));
                index.append_postings(pairs.collect());
                for &(gram, document) in &batch {
                    grams.entry(gram).or_default().push(next + document);
                }
                live.extend(next..next + 6);
                next += 6;
                live.retain(|document| removed >> (document % 64) & 1 == 0);
                if is_purged {
                    let numbers: BTreeMap<u32, u32> = live.iter().copied().zip(0..).collect();
                    let new_numbers: Vec<_> = (0..next).map(|number| numbers.get(&number).copied()).collect();
                    index.renumber_documents(&new_numbers);
                    for documents in grams.values_mut() {
                        *documents = documents.iter().filter_map(|document| numbers.get(document).copied()).collect();
                    }
                    live = (0..live.len() as u32).collect();
                    next = live.len() as u32;
                    prop_assert_eq!(index.posting_count(), grams.values().map(Vec::len).sum::<usize>());
                }
                for gram in 0..12 {
                    let mut expected = grams.get(&gram).cloned().unwrap_or_default();
                    expected.retain(|document| live.contains(document));
                    expected.sort_unstable();
                    let is_boilerplate = limit.is_some_and(|most| expected.len() > most as usize);
                    if is_boilerplate {
                        expected.clear();
                    }
                    let mut found = vec![99];
                    let told = index.find_documents(spread(gram), limit, |document| live.contains(&document), &mut found);
                    prop_assert_eq!(told, is_boilerplate);
                    prop_assert_eq!(&found[1..], &expected);
                }
            }
        }
    }

    #[test]
    fn runs_stay_few() {
        let mut index = LivePassageIndex::default();
        for document in 0..5000 {
            index.append_postings(vec![(5 << 24, document)]);
        }
        let runs = index.shards.iter().map(Vec::len).max();
        assert!(runs <= Some(14), "{runs:?}");
        let mut found = Vec::new();
        assert!(!index.find_documents(5 << 24, Some(5000), |_| true, &mut found));
        assert!(found.iter().copied().eq(0..5000));
        assert!(index.find_documents(5 << 24, Some(4999), |_| true, &mut found));
        assert_eq!(index.memory_bytes() / 5000, 8);
    }
}
