//! The candidates of one document from all its buckets, each once.

use super::pair_verifier::PairVerifier;
use crate::candidates::PrefixHits;
use crate::candidates::buckets::{CandidateBuckets, DocumentRank};

/// Returns those of ascending ranks that come before `below`.
#[inline]
pub(super) fn ranks_before(ranks: &[DocumentRank], below: DocumentRank) -> &[DocumentRank] {
    match ranks.last() {
        Some(&last) if last >= below => &ranks[..ranks.partition_point(|&rank| rank < below)],
        _ => ranks,
    }
}

/// Returns the number of candidates that a document has in dense buckets. Documents in several of them
/// count several times.
pub(super) fn count_dense_members<'m>(
    buckets: &CandidateBuckets,
    first: DocumentRank,
    members: impl Fn(u32) -> &'m [DocumentRank],
) -> usize {
    let own = buckets.buckets_of(first).iter();
    let dense = own.filter(|&&group| buckets.is_dense(group));
    let met = dense.flat_map(|&group| buckets.reachable_buckets(group));
    met.map(|group| members(group).len()).sum()
}

/// Calls `visit` with the candidates that a document has in its buckets, without dense buckets if
/// `without_dense` is set. Documents in several buckets come several times.
#[inline]
pub(super) fn visit_candidates<'m>(
    buckets: &CandidateBuckets,
    first: DocumentRank,
    without_dense: bool,
    members: impl Fn(u32) -> &'m [DocumentRank],
    mut visit: impl FnMut(DocumentRank),
) {
    for &own in buckets.buckets_of(first) {
        if !(without_dense && buckets.is_dense(own)) {
            let met = buckets.reachable_buckets(own).flat_map(&members);
            met.for_each(|&other| visit(other));
        }
    }
}

/// The candidates that a look-up has found already. They may be in several of its buckets.
#[derive(Default)]
pub(crate) struct SeenCandidates {
    bits: Vec<u64>,
    candidates: Vec<DocumentRank>,
    /// Shared prefix features by rank, while candidates for containment are counted. All are 0 between
    /// look-ups.
    hits: Vec<PrefixHits>,
}

impl SeenCandidates {
    pub(super) fn begin_look_up(&mut self) {
        for rank in self.candidates.drain(..) {
            // Candidates for containment have no bit.
            if let Some(word) = self.bits.get_mut(rank as usize / 64) {
                *word = 0;
            }
        }
    }

    pub(super) fn mark_seen(&mut self, rank: DocumentRank) -> bool {
        let (at, bit) = (rank as usize / 64, 1 << (rank % 64));
        if at >= self.bits.len() {
            self.bits.resize(at + 1024, 0);
        }
        let new = self.bits[at] & bit == 0;
        if new {
            self.bits[at] |= bit;
            self.candidates.push(rank);
        }
        new
    }

    /// Adds a document and, if it is new, prefetches the data of its prefilter.
    pub(super) fn add_candidate(&mut self, verifier: &PairVerifier<'_>, other: DocumentRank) {
        if self.mark_seen(other) {
            verifier.prefetch_summary(other);
        }
    }

    /// Adds the documents that may contain one, or be contained in it, by the prefix features that they share.
    /// `members` returns the relevant members of a bucket.
    pub(super) fn add_containments<'m>(
        &mut self,
        verifier: &PairVerifier<'_>,
        buckets: &CandidateBuckets,
        first: DocumentRank,
        members: impl Fn(u32) -> &'m [DocumentRank],
    ) {
        let before = self.candidates.len();
        for &own in buckets.buckets_of(first) {
            for reached in buckets.reachable_buckets(own) {
                let hit = PrefixHits::from_sides(buckets.side_of(own), buckets.side_of(reached));
                members(reached)
                    .iter()
                    .for_each(|&other| self.count_hit(other, hit));
            }
        }
        let mut left = before;
        for at in before..self.candidates.len() {
            let other = self.candidates[at];
            let hits = std::mem::take(&mut self.hits[other as usize]);
            self.candidates[left] = other;
            left += usize::from(verifier.may_contain(first, other, hits));
        }
        self.candidates.truncate(left);
    }

    fn count_hit(&mut self, other: DocumentRank, hit: PrefixHits) {
        let at = other as usize;
        if at >= self.hits.len() {
            self.hits.resize(at + 1024, PrefixHits::default());
        }
        if self.hits[at].is_none() {
            self.candidates.push(other);
        }
        self.hits[at].add_hits(hit);
    }

    /// Returns the documents in the order in which they were added.
    pub(super) fn candidates(&self) -> &[DocumentRank] {
        &self.candidates
    }
}
