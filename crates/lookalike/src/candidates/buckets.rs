//! Buckets: the documents that share a key, in compressed rows.

use std::ops::Range;

use rayon::prelude::*;

use crate::arch::prefetch;
use crate::error::{Error, Result};

/// The place of a document in the total order of a run.
pub(crate) type DocumentRank = u32;

/// A bucket key of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RankedKey {
    pub(crate) key: u64,
    pub(crate) side: BucketSide,
    pub(crate) rank: DocumentRank,
}

impl RankedKey {
    /// Returns a key under which a document is a candidate for all others with the key.
    pub(crate) fn on_indexing_side(key: u64, rank: DocumentRank) -> Self {
        let side = BucketSide::Indexing;
        Self { key, side, rank }
    }
}

/// The side of a bucket on which a document is. See [`PrefixLengths`](super::PrefixLengths).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BucketSide {
    /// The document is a candidate for all others of the bucket.
    Indexing,
    /// The document is a candidate for those of the indexing side alone.
    Probing,
}

impl BucketSide {
    /// Returns the side of a document that has the key in its indexing prefix, or else in its probing prefix.
    pub(crate) fn of_prefix(is_indexing: bool) -> Self {
        if is_indexing {
            Self::Indexing
        } else {
            Self::Probing
        }
    }
}

/// Buckets of documents, for every document its buckets, and for every bucket its neighbours: the
/// buckets whose members are candidates of its own members too.
///
/// ```text
/// members  | kept ... | (free) | not yet processed ... | next bucket
///          ^ start    ^ kept   ^ passed                ^ length
/// ```
///
/// Members are in ascending order. Deduplication moves the kept members of a bucket to its front. Kept
/// members are never more than processed ones, so this needs no other memory.
#[derive(Debug, Default)]
pub(crate) struct CandidateBuckets {
    members: Vec<DocumentRank>,
    buckets: Vec<CandidateBucket>,
    of_start: Vec<u32>,
    of: Vec<u32>,
    /// Start of the neighbours of each bucket; empty if no bucket has any.
    near_start: Vec<u32>,
    near: Vec<u32>,
    /// Dense buckets, one bit each; empty if there are none.
    dense: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct CandidateBucket {
    start: u32,
    /// Number of kept members at the front.
    kept: u32,
    /// Number of members that are processed.
    passed: u32,
    length: u32,
    meets: BucketPartners,
}

/// The buckets whose members are candidates for the members of a bucket.
#[derive(Clone, Copy, Debug)]
enum BucketPartners {
    /// The bucket itself.
    Own,
    /// The bucket itself and the next one: this is the indexing side of a key, and the next is the probing
    /// side.
    OwnAndNext,
    /// The previous bucket, which is the indexing side of their key.
    Previous,
}

impl CandidateBuckets {
    /// Returns the number of buckets.
    pub(crate) fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Returns the buckets of a document.
    pub(crate) fn buckets_of(&self, rank: DocumentRank) -> &[u32] {
        let at = rank as usize;
        &self.of[self.of_start[at] as usize..self.of_start[at + 1] as usize]
    }

    /// Returns the buckets that contain a document's candidates, by its own buckets and their
    /// neighbours.
    pub(crate) fn candidate_buckets(&self, rank: DocumentRank) -> impl Iterator<Item = u32> {
        self.buckets_of(rank)
            .iter()
            .flat_map(|&group| self.reachable_buckets(group))
    }

    /// Returns the buckets that contain the candidates of a bucket's members, neighbours included.
    pub(crate) fn reachable_buckets(&self, group: u32) -> impl Iterator<Item = u32> {
        self.partner_buckets(group)
            .chain(self.neighbour_buckets(group).iter().copied())
    }

    /// Returns the side on which the members of a bucket are.
    pub(crate) fn side_of(&self, group: u32) -> BucketSide {
        match self.buckets[group as usize].meets {
            BucketPartners::Own | BucketPartners::OwnAndNext => BucketSide::Indexing,
            BucketPartners::Previous => BucketSide::Probing,
        }
    }

    fn partner_buckets(&self, group: u32) -> Range<u32> {
        match self.buckets[group as usize].meets {
            BucketPartners::Own => group..group + 1,
            BucketPartners::OwnAndNext => group..group + 2,
            BucketPartners::Previous => group - 1..group,
        }
    }

    /// Finds the dense buckets, whose members have more than `most` candidates by them. Returns `true`
    /// if there are any.
    pub(crate) fn find_dense(&mut self, most: usize) -> bool {
        let length = |group: u32| self.buckets[group as usize].length as usize;
        let is_crowded =
            |&group: &u32| self.reachable_buckets(group).map(length).sum::<usize>() > most;
        let found: Vec<u32> = (0..self.bucket_count() as u32).filter(is_crowded).collect();
        if !found.is_empty() {
            self.dense = vec![0; self.bucket_count().div_ceil(64)];
        }
        for group in &found {
            self.dense[*group as usize / 64] |= 1 << (group % 64);
        }
        !found.is_empty()
    }

    /// Returns the dense buckets.
    pub(crate) fn dense_buckets(&self) -> impl Iterator<Item = u32> {
        (0..self.bucket_count() as u32).filter(|&group| self.is_dense(group))
    }

    /// Returns `true` if a bucket is dense.
    #[inline]
    pub(crate) fn is_dense(&self, group: u32) -> bool {
        let word = self.dense.get(group as usize / 64);
        word.is_some_and(|word| word >> (group % 64) & 1 == 1)
    }

    /// Returns all members of a bucket. Valid as long as none is processed.
    pub(crate) fn bucket_members(&self, group: u32) -> &[DocumentRank] {
        let group = self.buckets[group as usize];
        &self.members[group.start as usize..][..group.length as usize]
    }

    fn neighbour_buckets(&self, group: u32) -> &[u32] {
        if self.near_start.is_empty() {
            return &[];
        }
        let at = group as usize;
        &self.near[self.near_start[at] as usize..self.near_start[at + 1] as usize]
    }

    /// Returns the kept members among the processed ones, ascending.
    pub(crate) fn kept_members(&self, group: u32) -> &[DocumentRank] {
        let group = self.buckets[group as usize];
        &self.members[group.start as usize..][..group.kept as usize]
    }

    /// Returns the members of a bucket that are not processed yet, ascending.
    pub(crate) fn members_ahead(&self, group: u32) -> &[DocumentRank] {
        let group = self.buckets[group as usize];
        &self.members[group.start as usize..][group.passed as usize..group.length as usize]
    }

    /// Prefetches the headers of a document's buckets.
    pub(crate) fn fetch_heads(&self, rank: DocumentRank) {
        let own = self.buckets_of(rank).iter();
        own.for_each(|&group| prefetch(&self.buckets[group as usize]));
    }

    /// Prefetches the first members of the buckets that contain a document's candidates, neighbours excepted.
    pub(crate) fn fetch_members(&self, rank: DocumentRank) {
        for group in self
            .buckets_of(rank)
            .iter()
            .flat_map(|&own| self.partner_buckets(own))
        {
            prefetch(&self.members[self.buckets[group as usize].start as usize]);
        }
    }

    /// Marks a document as processed in all its buckets. Documents must be processed in ascending
    /// order.
    pub(crate) fn pass_document(&mut self, rank: DocumentRank, kept: bool) {
        let at = rank as usize;
        for slot in self.of_start[at]..self.of_start[at + 1] {
            let group = &mut self.buckets[self.of[slot as usize] as usize];
            debug_assert_eq!(self.members[(group.start + group.passed) as usize], rank);
            group.passed += 1;
            if kept {
                self.members[(group.start + group.kept) as usize] = rank;
                group.kept += 1;
            }
        }
    }
}

/// Builds buckets from batches of keys.
#[derive(Debug)]
pub(crate) struct CandidateBucketsBuilder {
    buckets: CandidateBuckets,
    memberships: Vec<u32>,
    /// Pairs of buckets that are neighbours.
    near: Vec<(u32, u32)>,
}

impl CandidateBucketsBuilder {
    /// Returns a builder for documents of ranks below `documents`.
    pub(crate) fn new(documents: usize) -> Self {
        let buckets = CandidateBuckets {
            of_start: vec![0; documents + 1],
            ..CandidateBuckets::default()
        };
        Self {
            buckets,
            memberships: Vec::new(),
            near: Vec::new(),
        }
    }

    /// Adds the buckets of a batch of keys, which it sorts. Buckets whose members `take` rejects are
    /// left out.
    pub(crate) fn add_keys(
        &mut self,
        ranked_keys: &mut Vec<RankedKey>,
        mut take: impl FnMut(&[RankedKey]) -> bool,
    ) {
        sort_keys(ranked_keys);
        for group in ranked_keys.chunk_by(|a, b| a.key == b.key) {
            let indexing = group.partition_point(|member| member.side == BucketSide::Indexing);
            if group.len() > 1 && indexing > 0 && take(group) {
                self.push_sides(&group[..indexing], &group[indexing..]);
            }
        }
    }

    fn push_sides(&mut self, indexing: &[RankedKey], probing: &[RankedKey]) {
        let group = self.push_bucket(indexing.iter().map(|member| member.rank));
        if !probing.is_empty() {
            self.buckets.buckets[group as usize].meets = BucketPartners::OwnAndNext;
            let next = self.push_bucket(probing.iter().map(|member| member.rank));
            self.buckets.buckets[next as usize].meets = BucketPartners::Previous;
        }
    }

    /// Adds a bucket of documents, ascending, and returns its number.
    pub(crate) fn push_bucket(&mut self, members: impl IntoIterator<Item = DocumentRank>) -> u32 {
        let CandidateBuckets {
            members: all,
            buckets,
            of_start,
            ..
        } = &mut self.buckets;
        let group = CandidateBucket {
            start: all.len() as u32,
            kept: 0,
            passed: 0,
            length: 0,
            meets: BucketPartners::Own,
        };
        let start = all.len();
        for member in members {
            // A document may have the same key twice.
            if all[start..].last() != Some(&member) {
                all.push(member);
                self.memberships.push(buckets.len() as u32);
                of_start[member as usize + 1] += 1;
            }
        }
        let length = (all.len() - start) as u32;
        buckets.push(CandidateBucket { length, ..group });
        buckets.len() as u32 - 1
    }

    /// Makes the members of two buckets candidates of each other. Neither may be one side of a key.
    pub(crate) fn connect_buckets(&mut self, one: u32, other: u32) {
        let meets = [one, other].map(|group| self.buckets.buckets[group as usize].meets);
        debug_assert!(
            meets
                .iter()
                .all(|meets| matches!(meets, BucketPartners::Own))
        );
        self.near.push((one, other));
    }

    /// Returns the finished buckets.
    ///
    /// # Errors
    /// Fails if all buckets together have more than 2³² − 1 members.
    pub(crate) fn build_buckets(self) -> Result<CandidateBuckets> {
        if u32::try_from(self.memberships.len()).is_err() {
            return Err(Error::setting_error(format!(
                "{} bucket keys are shared by documents, more than the limit of {} per run: split \
                 the corpus, or give a higher threshold or a smaller distance",
                self.memberships.len(),
                u32::MAX
            )));
        }
        Ok(self.finish_buckets())
    }

    fn finish_buckets(self) -> CandidateBuckets {
        let Self {
            mut buckets,
            memberships,
            near,
        } = self;
        for at in 1..buckets.of_start.len() {
            buckets.of_start[at] += buckets.of_start[at - 1];
        }
        let mut next = buckets.of_start.clone();
        buckets.of = vec![0; memberships.len()];
        for (&member, group) in buckets.members.iter().zip(memberships) {
            let at = &mut next[member as usize];
            buckets.of[*at as usize] = group;
            *at += 1;
        }
        drop(next);
        buckets.set_neighbours(&near);
        buckets
    }
}

impl CandidateBuckets {
    fn set_neighbours(&mut self, pairs: &[(u32, u32)]) {
        if pairs.is_empty() {
            return;
        }
        // First the position of the next neighbour to write, and in the end the start of the next
        // bucket.
        let mut start = vec![0u32; self.buckets.len() + 2];
        for &(one, other) in pairs {
            start[one as usize + 2] += 1;
            start[other as usize + 2] += 1;
        }
        for at in 2..start.len() {
            start[at] += start[at - 1];
        }
        self.near = vec![0; 2 * pairs.len()];
        for &(one, other) in pairs {
            for (group, neighbour) in [(one, other), (other, one)] {
                let at = &mut start[group as usize + 1];
                self.near[*at as usize] = neighbour;
                *at += 1;
            }
        }
        start.pop();
        self.near_start = start;
    }
}

/// Sorts by key, then side, then rank.
///
/// Keys are hashes. So one pass by their upper bits divides them into chunks of a few thousand, which
/// threads sort in parallel.
pub(crate) fn sort_keys(ranked_keys: &mut Vec<RankedKey>) {
    const BUCKETS_PER_PART: usize = 4096;
    let bits = (ranked_keys.len() / BUCKETS_PER_PART)
        .max(1)
        .ilog2()
        .min(12);
    if bits == 0 {
        ranked_keys.sort_unstable();
        return;
    }
    let bucket = |ranked_keys: &RankedKey| (ranked_keys.key >> (64 - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    ranked_keys
        .iter()
        .for_each(|ranked_keys| ends[bucket(ranked_keys)] += 1);
    let mut end = 0;
    ends.iter_mut()
        .for_each(|count| end += std::mem::replace(count, end));
    let mut sorted = vec![RankedKey::on_indexing_side(0, 0); ranked_keys.len()];
    for &ranked_keys in ranked_keys.iter() {
        let at = &mut ends[bucket(&ranked_keys)];
        sorted[*at] = ranked_keys;
        *at += 1;
    }
    let mut buckets = Vec::with_capacity(ends.len());
    let (mut rest, mut start) = (&mut sorted[..], 0);
    for end in ends {
        let (bucket, behind) = rest.split_at_mut(end - start);
        buckets.push(bucket);
        (rest, start) = (behind, end);
    }
    buckets
        .into_par_iter()
        .for_each(<[RankedKey]>::sort_unstable);
    *ranked_keys = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(documents: usize, pairs: &[(u64, DocumentRank)]) -> CandidateBuckets {
        let mut builder = CandidateBucketsBuilder::new(documents);
        let mut ranked_keys: Vec<_> = pairs
            .iter()
            .map(|&(key, rank)| RankedKey::on_indexing_side(key, rank))
            .collect();
        builder.add_keys(&mut ranked_keys, |_| true);
        builder.finish_buckets()
    }

    #[test]
    fn sort_equals_the_standard_library() {
        for length in [0u32, 1, 100, 5000, 20_000, 70_000] {
            for distinct in [1, 50, 1 << 40] {
                let key = |rank: u32| crate::hash::mix_bits(u64::from(rank) % distinct);
                let mut ranked_keys: Vec<_> = (0..length)
                    .rev()
                    .map(|rank| RankedKey {
                        side: [BucketSide::Indexing, BucketSide::Probing][rank as usize % 3 / 2],
                        ..RankedKey::on_indexing_side(key(rank), rank)
                    })
                    .collect();
                let mut expected = ranked_keys.clone();
                expected.sort_unstable();
                sort_keys(&mut ranked_keys);
                assert_eq!(ranked_keys, expected);
            }
        }
    }

    #[test]
    fn shared_keys_make_buckets_kept_members_first() {
        let mut buckets = groups(5, &[(7, 3), (7, 0), (7, 1), (9, 2), (8, 1), (8, 4), (7, 3)]);
        assert_eq!(buckets.buckets_of(0).len(), 1);
        assert_eq!(buckets.buckets_of(1).len(), 2);
        assert!(buckets.buckets_of(2).is_empty());
        let seven = buckets.buckets_of(0)[0];
        assert_eq!(buckets.members_ahead(seven), [0, 1, 3]);
        buckets.pass_document(0, false);
        buckets.pass_document(1, true);
        assert_eq!(buckets.kept_members(seven), [1]);
        assert_eq!(buckets.members_ahead(seven), [3]);
        buckets.pass_document(2, true);
        buckets.pass_document(3, true);
        assert_eq!(buckets.kept_members(seven), [1, 3]);
        assert!(buckets.members_ahead(seven).is_empty());
    }

    #[test]
    fn probing_documents_do_not_meet_each_other() {
        let mut builder = CandidateBucketsBuilder::new(6);
        let sides = |key, indexing: &[DocumentRank], probing: &[DocumentRank]| {
            let indexing = indexing
                .iter()
                .map(move |&rank| RankedKey::on_indexing_side(key, rank));
            let probing = probing.iter().map(move |&rank| RankedKey {
                side: BucketSide::Probing,
                ..RankedKey::on_indexing_side(key, rank)
            });
            indexing.chain(probing).collect::<Vec<_>>()
        };
        builder.add_keys(&mut sides(7, &[1, 4], &[0, 3]), |_| true);
        builder.add_keys(&mut sides(8, &[], &[1, 2, 5]), |_| true);
        builder.add_keys(&mut sides(9, &[5], &[2]), |_| true);
        let mut buckets = builder.finish_buckets();
        let met = |buckets: &CandidateBuckets, rank| -> Vec<DocumentRank> {
            let around = buckets.candidate_buckets(rank);
            around
                .flat_map(|group| buckets.members_ahead(group))
                .copied()
                .collect()
        };
        assert_eq!(met(&buckets, 1), [1, 4, 0, 3]);
        assert_eq!(met(&buckets, 3), [1, 4]);
        assert_eq!(met(&buckets, 2), [5]);
        assert_eq!(met(&buckets, 5), [5, 2]);
        (0..4).for_each(|rank| buckets.pass_document(rank, true));
        let kept = buckets
            .candidate_buckets(4)
            .map(|group| buckets.kept_members(group).to_vec());
        assert_eq!(kept.collect::<Vec<_>>(), [vec![1], vec![0, 3]]);
    }
}
