//! Deduplication and the search for all pairs, in the total order of the documents.
//!
//! *A document is kept if and only if no kept document before it matches it.* So a document is compared
//! with kept documents only, a removed document always reaches the threshold with the kept one that it
//! names, and a dense bucket costs what its kept documents cost.
//!
//! Verdicts are found block by block:
//!
//! 1. Each document of the block is compared with all that were kept before the block, in parallel.
//! 2. For each document, the candidates before it in the block that may still be kept are collected, and
//!    the features of these pairs are made, in parallel.
//! 3. These pairs are compared, a few documents at a time, and the verdicts of these documents follow
//!    in order.
//!
//! Guarantee: the result is that of the plain loop over all documents, whatever the number of threads.

use std::collections::HashMap;
use std::ops::ControlFlow;

use rayon::prelude::*;

use super::batch_sizes::BatchSizes;
use super::corpus_buckets;
use super::document_cache::DocumentSource;
use crate::candidates::bitmap_filter::BucketSlot;
use crate::candidates::buckets::{CandidateBuckets, DocumentRank};
use crate::error::{Error, Result};
use crate::hash::mix_bits;
use crate::plan::MatchPlan;
use crate::similarity::{DocumentMatch, PairVerifier, Route};
use crate::sketch::DocumentSketches;
use crate::types::{DocId, Similarity};

/// The documents of a run, their total order, and the restrictions on which of them may match.
#[derive(Clone, Copy)]
pub struct MatchCorpus<'a> {
    /// Match plan: how candidates are found and checked.
    pub plan: &'a MatchPlan,
    /// Sketches of every document.
    pub sketches: &'a DocumentSketches,
    /// Source that provides features, weights and sequences again.
    pub texts: &'a dyn DocumentSource,
    /// The documents in their total order; `None` if that is the order read.
    pub order: Option<&'a [DocId]>,
    /// Partition of every document, in the order read. Documents match only within a partition.
    pub partitions: Option<&'a [u64]>,
    /// Time window. Documents match only if their times differ by no more than its width.
    pub window: Option<TimeWindow<'a>>,
    /// Number of documents at the start of the order that are kept whatever they match.
    pub known_prefix: usize,
}

/// A limit on how far apart in time two documents may be.
#[derive(Clone, Copy, Debug)]
pub struct TimeWindow<'a> {
    /// Times of all documents, in the order read.
    pub times: &'a [f64],
    /// Largest difference of two times at which documents may match, in the unit of `times`.
    pub width: f64,
}

impl MatchCorpus<'_> {
    /// Returns `true` if two documents may match, whatever their texts are: they are of one partition
    /// and within the window, and not both are given.
    pub fn can_pair(&self, a: DocId, b: DocId) -> bool {
        let both_given = a.index().max(b.index()) < self.known_prefix;
        !both_given && self.within_reach(a, b)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.map_or(self.sketches.len(), <[_]>::len)
    }

    pub(crate) fn document_at(&self, rank: DocumentRank) -> DocId {
        self.order.map_or(DocId(rank), |order| order[rank as usize])
    }

    /// Returns `true` if the partition and the window allow a match of two documents.
    pub(crate) fn can_meet(&self, a: DocumentRank, b: DocumentRank) -> bool {
        self.within_reach(self.document_at(a), self.document_at(b))
    }

    fn within_reach(&self, a: DocId, b: DocId) -> bool {
        let (a, b) = (a.index(), b.index());
        self.partitions.is_none_or(|parts| parts[a] == parts[b])
            && self
                .window
                .is_none_or(|TimeWindow { times, width }| (times[a] - times[b]).abs() <= width)
    }

    /// Returns `true` if the order is that of the times of a window, so that all documents within reach
    /// of one are neighbours in the order.
    fn goes_by_time(&self) -> bool {
        let time =
            |times: &[f64], rank: usize| times[self.document_at(rank as DocumentRank).index()];
        let in_order = |TimeWindow { times, .. }: TimeWindow<'_>| {
            (1..self.len()).all(|rank| time(times, rank - 1) <= time(times, rank))
        };
        self.window.is_some_and(in_order)
    }

    /// Returns the partition of a document, or 0 if there are no partitions.
    pub(crate) fn partition_of(&self, rank: DocumentRank) -> u64 {
        self.partitions
            .map_or(0, |parts| parts[self.document_at(rank).index()])
    }

    /// Returns a key that only documents of the same partition share.
    pub(crate) fn partitioned_key(&self, key: u64, rank: DocumentRank) -> u64 {
        match self.partitions {
            None => key,
            Some(parts) => mix_bits(key ^ parts[self.document_at(rank).index()]),
        }
    }
}

/// A removed document, and the match for which it is removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DocumentRemoval {
    /// The removed document.
    pub document: DocId,
    /// The kept document that is most similar to it; the earliest if several are equally similar.
    pub kept: DocumentMatch,
}

/// The verdicts of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct DedupOutcome {
    /// The removed documents in their total order. All others are kept.
    pub removals: Vec<DocumentRemoval>,
}

/// A matching pair, with the earlier document first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchingPair {
    /// The earlier document.
    pub a: DocId,
    /// The later document.
    pub b: DocId,
    /// Similarity of the two documents.
    pub similarity: Similarity,
    /// The way in which the pair was found.
    pub route: Route,
}

/// Decides which documents are kept.
///
/// Calls `progress` with the number of documents decided: with 0 once the buckets are built, then after
/// each block.
///
/// The [module](super) has an example.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, if texts are too long for the measure, or
/// if the documents share more than 2³² − 1 bucket keys.
pub fn find_verdicts(
    corpus: &MatchCorpus<'_>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<DedupOutcome> {
    follow_verdicts(corpus, &|decided, _| progress(decided))
}

/// Decides which documents are kept, for a caller that uses verdicts while the run goes on.
///
/// Calls `told` after each block with the number of documents decided and the removals since the last
/// call. These verdicts are final unless an error follows.
///
/// # Errors
/// Fails as [`find_verdicts`] does.
pub fn follow_verdicts(
    corpus: &MatchCorpus<'_>,
    told: &(dyn Fn(usize, &[DocumentRemoval]) + Sync),
) -> Result<DedupOutcome> {
    verdicts_in(BatchSizes::default(), corpus, told)
}

pub(crate) fn verdicts_in(
    batch_sizes: BatchSizes,
    corpus: &MatchCorpus<'_>,
    told: &(dyn Fn(usize, &[DocumentRemoval]) + Sync),
) -> Result<DedupOutcome> {
    let deduplicator = Deduplicator::new(PairVerifier::new(corpus, batch_sizes), corpus)?;
    told(0, &[]);
    deduplicator.run_blocks(|decided, removals| {
        told(decided, removals);
        ControlFlow::Continue(())
    })
}

/// Documents that are equal after normalisation, as one node each.
pub(crate) struct EqualTextNodes {
    /// For each rank, the rank of the first document with the same text. With a window, every document
    /// is a node of its own, because equal texts may be out of each other's reach.
    first: Vec<DocumentRank>,
    together: bool,
}

impl EqualTextNodes {
    fn new(corpus: &MatchCorpus<'_>) -> Self {
        let mut nodes = Self::all_separate(corpus);
        if corpus.window.is_none() {
            nodes.together = true;
            corpus_buckets::equal_texts(corpus, |rank, earliest| {
                nodes.first[rank as usize] = earliest
            });
        }
        nodes
    }

    /// Returns the nodes for a search for all pairs.
    pub(crate) fn for_pairs(corpus: &MatchCorpus<'_>, copies: CopyPairs) -> Self {
        if copies == CopyPairs::All || corpus.known_prefix > 0 {
            Self::all_separate(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Returns the nodes for verdicts and components. Documents with equal texts are one node only if
    /// they match the same others. With sentences they may not, because punctuation decides where
    /// sentences end and equal texts may differ in it.
    pub(crate) fn by_matches(corpus: &MatchCorpus<'_>) -> Self {
        if corpus.plan.sentence_count().is_some() {
            Self::all_separate(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Returns every document as a node of its own.
    fn all_separate(corpus: &MatchCorpus<'_>) -> Self {
        Self {
            first: (0..corpus.len() as DocumentRank).collect(),
            together: false,
        }
    }

    /// Returns `true` if equal documents are one node.
    pub(crate) fn merges_equal_texts(&self) -> bool {
        self.together
    }

    pub(crate) fn first_equal(&self, rank: DocumentRank) -> DocumentRank {
        self.first[rank as usize]
    }

    pub(crate) fn is_first(&self, rank: DocumentRank) -> bool {
        self.first_equal(rank) == rank
    }
}

/// The window, where the order is that of time, so that documents out of reach can be cut off.
struct WindowReach<'a> {
    window: Option<(&'a MatchCorpus<'a>, TimeWindow<'a>)>,
}

impl<'a> WindowReach<'a> {
    fn from_corpus(corpus: &'a MatchCorpus<'a>) -> Self {
        let window = corpus.window.filter(|_| corpus.goes_by_time());
        Self {
            window: window.map(|window| (corpus, window)),
        }
    }

    /// Cuts off, at both ends of ascending ranks, the documents that are too far from `rank` in time.
    fn limit_to_window<'m>(
        &self,
        rank: DocumentRank,
        others: &'m [DocumentRank],
    ) -> &'m [DocumentRank] {
        let Some((corpus, TimeWindow { times, width })) = self.window else {
            return others;
        };
        let time = |rank: DocumentRank| times[corpus.document_at(rank).index()];
        let at = time(rank);
        let start = others.partition_point(|&other| at - time(other) > width);
        let others = &others[start..];
        &others[..others.partition_point(|&other| time(other) - at <= width)]
    }
}

pub(crate) struct Deduplicator<'a> {
    corpus: &'a MatchCorpus<'a>,
    verifier: PairVerifier<'a>,
    nodes: EqualTextNodes,
    buckets: CandidateBuckets,
    reach: WindowReach<'a>,
    kept: Vec<bool>,
    /// Positions of the kept documents in every dense set, ascending.
    kept_slots: Vec<Vec<u32>>,
    removals: Vec<DocumentRemoval>,
}

/// Number of pairs below which waking another thread costs more than it saves.
const FEW_PAIRS: usize = 16;

/// Numbers of documents by which the headers of buckets, and then their members, are prefetched ahead.
const HEADS_AHEAD: DocumentRank = 16;
const MEMBERS_AHEAD: DocumentRank = 8;

/// The findings about a document of the block before its verdict.
#[derive(Default)]
struct PendingVerdict {
    /// Best match among the documents kept before the block.
    best: Option<BestMatch>,
    /// Rank below which candidates are searched for; 0 if no candidate can change the verdict.
    below: DocumentRank,
    /// Candidates inside the block. The similarity is set once the pair was compared and matches.
    inner: Vec<(DocumentRank, Route, Option<Similarity>)>,
}

/// A document that is looked up.
#[derive(Default)]
struct LookUp<'w> {
    rank: DocumentRank,
    finding: PendingVerdict,
    /// Kept documents that are scanned instead of dense buckets, if that is less work.
    scanned: Option<ScannedBucket<'w>>,
}

/// Kept documents of a dense set that are scanned by their bitmaps.
struct ScannedBucket<'w> {
    bucket_slot: BucketSlot,
    /// Positions of these documents.
    bucket_slots: &'w [u32],
    /// The documents that the bitmap filter does not rule out.
    left: Vec<DocumentRank>,
}

#[derive(Clone, Copy)]
struct BestMatch {
    rank: DocumentRank,
    similarity: Similarity,
    route: Route,
}

impl PendingVerdict {
    /// Takes a match if it is more similar than the best one so far, or equally similar and earlier.
    fn offer_match(&mut self, rank: DocumentRank, route: Route, similarity: Option<Similarity>) {
        let Some(similarity) = similarity else { return };
        let better = self.best.is_none_or(|best| {
            similarity > best.similarity || similarity == best.similarity && rank < best.rank
        });
        if better {
            self.best = Some(BestMatch {
                rank,
                similarity,
                route,
            });
        }
    }
}

impl<'a> Deduplicator<'a> {
    /// Builds the buckets of a corpus. No document is decided yet.
    pub(crate) fn new(mut verifier: PairVerifier<'a>, corpus: &'a MatchCorpus<'a>) -> Result<Self> {
        let nodes = EqualTextNodes::by_matches(corpus);
        let buckets = corpus_buckets::build_buckets(corpus, &mut verifier, &nodes)?;
        Ok(Self {
            corpus,
            nodes,
            buckets,
            reach: WindowReach::from_corpus(corpus),
            kept: vec![false; corpus.len()],
            kept_slots: vec![Vec::new(); verifier.dense_buckets.bucket_count()],
            verifier,
            removals: Vec::new(),
        })
    }

    /// Decides all documents, block by block. After each block, calls `told` with the number of
    /// documents decided and the removals of the block, and stops if it breaks.
    pub(crate) fn run_blocks(
        mut self,
        mut told: impl FnMut(usize, &[DocumentRemoval]) -> ControlFlow<()>,
    ) -> Result<DedupOutcome> {
        let BatchSizes {
            first_block, block, ..
        } = self.verifier.batch_sizes;
        let (mut start, mut length) = (0, first_block);
        while start < self.corpus.len() {
            let end = (start + length).min(self.corpus.len());
            let removed_before = self.removals.len();
            self.decide_block(start as DocumentRank..end as DocumentRank)?;
            if told(end, &self.removals[removed_before..]).is_break() {
                break;
            }
            start = end;
            length = (2 * length).min(block);
        }
        Ok(DedupOutcome {
            removals: self.removals,
        })
    }

    fn decide_block(&mut self, block: std::ops::Range<DocumentRank>) -> Result<()> {
        self.verifier.learn_dense_buckets()?;
        let mut findings = self.find_kept_matches(block.clone())?;
        self.find_inner(&mut findings, block.start);
        self.make_features(&findings, block.start)?;
        let mut start = block.start;
        for few in findings.chunks_mut(self.verifier.batch_sizes.few) {
            self.compare_inside(few, start)?;
            for (finding, rank) in few.iter_mut().zip(start..) {
                self.decide_document(rank, std::mem::take(finding));
            }
            start += few.len() as DocumentRank;
        }
        Ok(())
    }

    /// Collects the candidates inside the block. Documents that match one kept before the block are not
    /// kept themselves, so they are left out as candidates of others.
    fn find_inner(&self, findings: &mut [PendingVerdict], start: DocumentRank) {
        let undecided: Vec<bool> = findings.iter().map(|it| it.best.is_none()).collect();
        let Some(earliest) = undecided.iter().position(|&it| it) else {
            return;
        };
        let may_be_kept = |other: DocumentRank| undecided[(other - start) as usize];
        let mut bucket_slots: HashMap<u32, Vec<u32>> = HashMap::new();
        for rank in
            (start..start + findings.len() as DocumentRank).filter(|&rank| may_be_kept(rank))
        {
            if let Some(BucketSlot { dense_bucket, at }) = self.own_slot(rank) {
                bucket_slots.entry(dense_bucket).or_default().push(at);
            }
        }
        let find = |seen: &mut SeenCandidates,
                    (finding, rank): (&mut PendingVerdict, DocumentRank)| {
            if finding.below <= start + earliest as DocumentRank {
                return;
            }
            let first = self.nodes.first_equal(rank);
            seen.begin_look_up();
            if first >= start && first < rank && may_be_kept(first) {
                seen.mark_seen(first);
                finding.inner.push((first, Route::Exact, None));
            }
            let below = finding.below;
            let ahead = |group| ranks_before(self.buckets.members_ahead(group), below);
            let mut meet = |other| {
                if may_be_kept(other) {
                    seen.meet_candidate(&self.verifier, other);
                }
            };
            let met = || count_dense_members(&self.buckets, first, ahead);
            let bucket_slots = |dense_bucket| {
                bucket_slots
                    .get(&dense_bucket)
                    .map_or(&[][..], |bucket_slots| {
                        self.slots_before(dense_bucket, bucket_slots, below)
                    })
            };
            let scans = self.bucket_to_scan(first, met, bucket_slots);
            visit_groups(&self.buckets, first, scans.is_some(), ahead, &mut meet);
            if let Some((bucket_slot, others)) = scans {
                self.verifier
                    .dense_buckets
                    .scan_members(bucket_slot, others, meet);
            }
            self.count_encounters(first, seen);
            for &other in seen
                .candidates_met()
                .iter()
                .filter(|&&other| other != first)
            {
                let route = self.verifier.candidates(rank, other);
                finding
                    .inner
                    .extend(route.map(|route| (other, route, None)));
            }
        };
        let ranks = start..start + findings.len() as DocumentRank;
        let findings = findings.par_iter_mut().zip(ranks);
        findings.for_each_init(SeenCandidates::default, find);
    }

    /// Makes the features that the comparisons inside the block need. All threads share this work here,
    /// while few documents are decided together later.
    fn make_features(&self, findings: &[PendingVerdict], start: DocumentRank) -> Result<()> {
        let mut wanted = vec![false; findings.len()];
        for (at, finding) in findings.iter().enumerate() {
            for &(other, route, _) in &finding.inner {
                if route != Route::Exact {
                    wanted[at] = true;
                    wanted[(other - start) as usize] = true;
                }
            }
        }
        let wanted: Vec<DocumentRank> = (start..)
            .zip(wanted)
            .filter_map(|(rank, wanted)| wanted.then_some(rank))
            .collect();
        wanted
            .into_par_iter()
            .with_max_len(8)
            .try_for_each(|rank| self.verifier.prepare_inputs(rank))
    }

    /// Compares the documents of a block with those kept before it.
    fn find_kept_matches(
        &self,
        block: std::ops::Range<DocumentRank>,
    ) -> Result<Vec<PendingVerdict>> {
        let together = self.verifier.batch_sizes.together as DocumentRank;
        let starts: Vec<DocumentRank> = block.clone().step_by(together as usize).collect();
        let found: Vec<Vec<PendingVerdict>> = starts
            .into_par_iter()
            .map_init(SeenCandidates::default, |seen, start| {
                let ranks = start..block.end.min(start + together);
                let mut begun: Vec<_> = ranks
                    .map(|rank| self.begin_look_up(rank, block.start))
                    .collect();
                self.scan_dense_buckets(&mut begun);
                begun
                    .into_iter()
                    .map(|it| self.finish_look_up(it, seen))
                    .collect()
            })
            .collect::<Result<_>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Starts the look-up of a document: finds a kept document with an equal text, and decides whether
    /// dense sets are scanned.
    fn begin_look_up(&self, rank: DocumentRank, start: DocumentRank) -> LookUp<'_> {
        let first = self.nodes.first_equal(rank);
        let mut look_up = LookUp {
            rank,
            ..LookUp::default()
        };
        if self.is_known(rank) {
            return look_up;
        }
        let finding = &mut look_up.finding;
        finding.below = rank;
        if first < start && self.kept[first as usize] {
            finding.offer_match(first, Route::Exact, Some(Similarity::ONE));
            // An earlier given document may be equally similar, because given documents are kept
            // whatever they match.
            finding.below = if self.is_known(first) { first } else { 0 };
        }
        let below = finding.below;
        if self.verifier.dense_buckets.slot_of(first).is_some() {
            let met = || {
                count_dense_members(&self.buckets, first, |group| {
                    self.kept_members_in(group, rank, below)
                })
            };
            let bucket_slots = |dense_bucket| {
                self.slots_before(dense_bucket, &self.kept_slots[dense_bucket as usize], below)
            };
            let scans = self.bucket_to_scan(first, met, bucket_slots);
            look_up.scanned = scans.map(|(bucket_slot, bucket_slots)| ScannedBucket {
                bucket_slot,
                bucket_slots,
                left: Vec::new(),
            });
        }
        look_up
    }

    /// Returns the kept members of a bucket that come before `below` and are within reach of `rank`.
    fn kept_members_in(
        &self,
        group: u32,
        rank: DocumentRank,
        below: DocumentRank,
    ) -> &[DocumentRank] {
        self.reach
            .limit_to_window(rank, ranks_before(self.buckets.kept_members(group), below))
    }

    /// Scans the dense sets that documents need, one cache-sized tile after another.
    fn scan_dense_buckets(&self, begun: &mut [LookUp<'_>]) {
        let mut scanned: Vec<&mut ScannedBucket<'_>> = begun
            .iter_mut()
            .filter_map(|it| it.scanned.as_mut())
            .collect();
        scanned.sort_by_key(|it| it.bucket_slot.dense_bucket);
        for scanned in
            scanned.chunk_by_mut(|a, b| a.bucket_slot.dense_bucket == b.bucket_slot.dense_bucket)
        {
            let tile = self
                .verifier
                .dense_buckets
                .tile_size(scanned[0].bucket_slot.dense_bucket);
            let longest = scanned
                .iter()
                .map(|it| it.bucket_slots.len())
                .max()
                .unwrap_or(0);
            for start in (0..longest).step_by(tile) {
                for ScannedBucket {
                    bucket_slot,
                    bucket_slots,
                    left,
                } in scanned.iter_mut()
                {
                    let end = bucket_slots.len().min(start + tile);
                    let bucket_slots = bucket_slots.get(start..end).unwrap_or_default();
                    self.verifier
                        .dense_buckets
                        .scan_members(*bucket_slot, bucket_slots, |other| left.push(other));
                }
            }
        }
    }

    /// Compares a document with the candidates among those kept before the block.
    fn finish_look_up(
        &self,
        look_up: LookUp<'_>,
        seen: &mut SeenCandidates,
    ) -> Result<PendingVerdict> {
        let LookUp {
            rank,
            mut finding,
            scanned,
        } = look_up;
        self.prefetch_ahead(rank);
        let below = finding.below;
        if below == 0 {
            return Ok(finding);
        }
        seen.begin_look_up();
        let kept = |group| self.kept_members_in(group, rank, below);
        let first = self.nodes.first_equal(rank);
        visit_groups(&self.buckets, first, scanned.is_some(), kept, |other| {
            seen.meet_candidate(&self.verifier, other)
        });
        for other in scanned.into_iter().flat_map(|it| it.left) {
            seen.meet_candidate(&self.verifier, other);
        }
        self.count_encounters(first, seen);
        for &other in seen.candidates_met() {
            if let Some(route) = self.verifier.candidates(rank, other) {
                finding.offer_match(other, route, self.verifier.verify_pair(rank, other, route)?);
            }
        }
        Ok(finding)
    }

    /// Returns a document's place in a dense set and the positions to scan there, if scanning is less
    /// work than visiting the `met` members of its dense buckets.
    fn bucket_to_scan<'s>(
        &self,
        first: DocumentRank,
        met: impl FnOnce() -> usize,
        bucket_slots: impl Fn(u32) -> &'s [u32],
    ) -> Option<(BucketSlot, &'s [u32])> {
        let dense_buckets = &self.verifier.dense_buckets;
        let bucket_slot = dense_buckets
            .slot_of(first)
            .filter(|it| dense_buckets.has_bitmaps(it.dense_bucket))?;
        let bucket_slots = bucket_slots(bucket_slot.dense_bucket);
        self.verifier
            .should_scan(met(), bucket_slots.len())
            .then_some((bucket_slot, bucket_slots))
    }

    /// Counts the candidates of a document, as long as its dense set has no bitmaps. The counts decide
    /// when bitmaps pay off.
    fn count_encounters(&self, first: DocumentRank, seen: &SeenCandidates) {
        let dense_buckets = &self.verifier.dense_buckets;
        let bucket_slot = dense_buckets
            .slot_of(first)
            .filter(|it| !dense_buckets.has_bitmaps(it.dense_bucket));
        if let Some(bucket_slot) = bucket_slot {
            dense_buckets.count_encounters(bucket_slot.dense_bucket, seen.candidates_met().len());
        }
    }

    /// Returns those of ascending positions whose documents come before `below`.
    fn slots_before<'s>(
        &self,
        dense_bucket: u32,
        bucket_slots: &'s [u32],
        below: DocumentRank,
    ) -> &'s [u32] {
        let members = self.verifier.dense_buckets.bucket_members(dense_bucket);
        &bucket_slots
            [..bucket_slots.partition_point(|&bucket_slot| members[bucket_slot as usize] < below)]
    }

    /// Returns the place of a document in a dense set, unless an earlier document with an equal text
    /// has it.
    fn own_slot(&self, rank: DocumentRank) -> Option<BucketSlot> {
        let bucket_slot = self.verifier.dense_buckets.slot_of(rank);
        bucket_slot.filter(|_| self.nodes.is_first(rank))
    }

    /// Prefetches the buckets of documents that are looked up soon, because they are scattered in
    /// memory.
    fn prefetch_ahead(&self, rank: DocumentRank) {
        let soon = |steps: DocumentRank| {
            let later = (rank + steps) as usize;
            (later < self.corpus.len()).then(|| self.nodes.first_equal(later as DocumentRank))
        };
        if let Some(first) = soon(HEADS_AHEAD) {
            self.buckets.fetch_heads(first);
        }
        if let Some(first) = soon(MEMBERS_AHEAD) {
            self.buckets.fetch_members(first);
        }
    }

    /// Compares documents of the block, from `start` on, with the candidates before them in the block:
    /// with those before `start` that are kept, and with those from `start` on that may still be kept.
    fn compare_inside(&self, few: &mut [PendingVerdict], start: DocumentRank) -> Result<()> {
        let pairs: usize = few.iter().map(|finding| finding.inner.len()).sum();
        let undecided: Vec<bool> = few.iter().map(|finding| finding.best.is_none()).collect();
        let ranks = start..start + few.len() as DocumentRank;
        let compare = |(finding, rank): (&mut PendingVerdict, DocumentRank)| {
            for (other, route, similarity) in &mut finding.inner {
                let may_be_kept = match other.checked_sub(start) {
                    None => self.kept[*other as usize],
                    Some(at) => undecided[at as usize],
                };
                if may_be_kept {
                    *similarity = self.verifier.verify_pair(rank, *other, *route)?;
                }
            }
            Ok(())
        };
        if pairs < FEW_PAIRS {
            few.iter_mut().zip(ranks).try_for_each(compare)
        } else {
            few.par_iter_mut().zip(ranks).try_for_each(compare)
        }
    }

    fn decide_document(&mut self, rank: DocumentRank, mut finding: PendingVerdict) {
        for (other, route, similarity) in std::mem::take(&mut finding.inner) {
            if self.kept[other as usize] {
                finding.offer_match(other, route, similarity);
            }
        }
        if let Some(best) = finding.best {
            let kept = DocumentMatch {
                with: self.corpus.document_at(best.rank),
                similarity: best.similarity,
                route: best.route,
            };
            self.removals.push(DocumentRemoval {
                document: self.corpus.document_at(rank),
                kept,
            });
        }
        let kept = finding.best.is_none();
        self.kept[rank as usize] = kept;
        if let Some(bucket_slot) = self.own_slot(rank).filter(|_| kept) {
            self.kept_slots[bucket_slot.dense_bucket as usize].push(bucket_slot.at);
        }
        if self.nodes.is_first(rank) {
            self.buckets.pass_document(rank, kept);
        }
    }

    fn is_known(&self, rank: DocumentRank) -> bool {
        (rank as usize) < self.corpus.known_prefix
    }
}

/// Returns those of ascending ranks that come before `below`.
#[inline]
fn ranks_before(ranks: &[DocumentRank], below: DocumentRank) -> &[DocumentRank] {
    match ranks.last() {
        Some(&last) if last >= below => &ranks[..ranks.partition_point(|&rank| rank < below)],
        _ => ranks,
    }
}

/// Returns the number of candidates that a document has in dense buckets. Documents in several of them
/// count several times.
fn count_dense_members<'m>(
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
/// `but_crowded` is set. Documents in several buckets come several times.
#[inline]
fn visit_groups<'m>(
    buckets: &CandidateBuckets,
    first: DocumentRank,
    but_crowded: bool,
    members: impl Fn(u32) -> &'m [DocumentRank],
    mut visit: impl FnMut(DocumentRank),
) {
    for &own in buckets.buckets_of(first) {
        if !(but_crowded && buckets.is_dense(own)) {
            let met = buckets.reachable_buckets(own).flat_map(&members);
            met.for_each(|&other| visit(other));
        }
    }
}

/// The candidates that a look-up has found already. They may be in several of its buckets.
#[derive(Default)]
pub(crate) struct SeenCandidates {
    bits: Vec<u64>,
    met: Vec<DocumentRank>,
}

impl SeenCandidates {
    fn begin_look_up(&mut self) {
        for rank in self.met.drain(..) {
            self.bits[rank as usize / 64] = 0;
        }
    }

    fn mark_seen(&mut self, rank: DocumentRank) -> bool {
        let (at, bit) = (rank as usize / 64, 1 << (rank % 64));
        if at >= self.bits.len() {
            self.bits.resize(at + 1024, 0);
        }
        let new = self.bits[at] & bit == 0;
        if new {
            self.bits[at] |= bit;
            self.met.push(rank);
        }
        new
    }

    /// Adds a document and, if it is new, prefetches the data of its prefilter.
    fn meet_candidate(&mut self, verifier: &PairVerifier<'_>, other: DocumentRank) {
        if self.mark_seen(other) {
            verifier.prefetch_summary(other);
        }
    }

    /// Returns the documents in the order in which they were added.
    fn candidates_met(&self) -> &[DocumentRank] {
        &self.met
    }
}

/// The pairs that are listed for documents whose texts are equal after normalisation (copies).
///
/// Two documents are within reach of each other if the partition and the window allow a match, and if
/// not both are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CopyPairs {
    /// Each copy with the earliest document of its text within its reach. A pair of different texts
    /// consists, for each text, of the earliest document within reach of the other. Where some
    /// documents are given, this is [`All`](Self::All), because two copies that are both given, or both
    /// not given, are not paired with each other.
    #[default]
    WithEarliest,
    /// Every combination.
    All,
    /// No pairs of copies. Pairs of different texts are those of [`WithEarliest`](Self::WithEarliest),
    /// also where some documents are given.
    None,
}

impl CopyPairs {
    fn for_corpus(self, corpus: &MatchCorpus<'_>) -> Self {
        match self {
            Self::WithEarliest if corpus.known_prefix > 0 => Self::All,
            other => other,
        }
    }
}

/// Finds every matching pair, ordered by the earlier document, then the later one, in the total order.
/// Where some documents are given, each pair consists of a given document and one that is not.
///
/// Returns how many documents are a copy of an earlier one within reach, or 0 where every combination
/// is listed. Calls `progress` with the number of documents done.
///
/// The [module](super) has an example.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, if texts are too long for the measure, if
/// the documents share more than 2³² − 1 bucket keys, or if `visit` fails.
pub fn find_pairs<E: From<Error>>(
    corpus: &MatchCorpus<'_>,
    copies: CopyPairs,
    visit: impl FnMut(MatchingPair) -> Result<(), E>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<usize, E> {
    find_pairs_with_sizes(BatchSizes::default(), corpus, copies, visit, progress)
}

pub(crate) fn find_pairs_with_sizes<E: From<Error>>(
    batch_sizes: BatchSizes,
    corpus: &MatchCorpus<'_>,
    copies: CopyPairs,
    mut visit: impl FnMut(MatchingPair) -> Result<(), E>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<usize, E> {
    let copies = copies.for_corpus(corpus);
    let nodes = EqualTextNodes::for_pairs(corpus, copies);
    let chains = CopyChains::for_pairs(corpus, &nodes, copies);
    let finder = PairFinder::new(PairVerifier::new(corpus, batch_sizes), corpus, nodes)?;
    let mut finder = PairFinder { chains, ..finder };
    let ends = finder.count_first_documents();
    progress(0);
    let mut start = 0;
    while start < ends {
        let block = finder.next_block(start, ends);
        start = block.end as usize;
        let found: Vec<Vec<MatchingPair>> = block
            .into_par_iter()
            .map_init(SeenCandidates::default, |seen, rank| {
                finder.pairs_of_document(rank, seen)
            })
            .collect::<Result<_>>()?;
        found.into_iter().flatten().try_for_each(&mut visit)?;
        finder.learn_dense_buckets()?;
        progress(start);
    }
    Ok(finder.count_copies())
}

/// Links between documents of the same text, as the listing of copies needs them.
pub(crate) enum CopyChains {
    /// No links: every document is listed for itself.
    Unused,
    /// Link from each document to the next one of its text. A text is one node, and the last document
    /// links to itself.
    Next(Vec<DocumentRank>),
    /// No links: a text is one node, and its copies are not listed.
    Hidden,
    /// Link from each document to the previous one of its text. The first one links to itself.
    Previous {
        of: Vec<DocumentRank>,
        lists_copies: bool,
    },
}

impl CopyChains {
    pub(crate) fn for_pairs(
        corpus: &MatchCorpus<'_>,
        nodes: &EqualTextNodes,
        copies: CopyPairs,
    ) -> Self {
        match (copies, nodes.merges_equal_texts()) {
            (CopyPairs::All, _) => Self::Unused,
            (CopyPairs::None, true) => Self::Hidden,
            (CopyPairs::WithEarliest, true) => {
                Self::Next(link_copies(corpus, |links, before, rank| {
                    links[before as usize] = rank;
                }))
            }
            (_, false) => Self::Previous {
                of: link_copies(corpus, |links, before, rank| links[rank as usize] = before),
                lists_copies: copies == CopyPairs::WithEarliest,
            },
        }
    }
}

/// Returns a link for every document, initially to itself. `link` is called for each two successive
/// documents of a text.
fn link_copies(
    corpus: &MatchCorpus<'_>,
    link: impl Fn(&mut [DocumentRank], DocumentRank, DocumentRank),
) -> Vec<DocumentRank> {
    let mut links: Vec<DocumentRank> = (0..corpus.len() as DocumentRank).collect();
    let mut latest = links.clone();
    corpus_buckets::equal_texts(corpus, |rank, earliest| {
        let before = std::mem::replace(&mut latest[earliest as usize], rank);
        link(&mut links, before, rank);
    });
    links
}

pub(crate) struct PairFinder<'a> {
    corpus: &'a MatchCorpus<'a>,
    verifier: PairVerifier<'a>,
    nodes: EqualTextNodes,
    chains: CopyChains,
    buckets: CandidateBuckets,
    reach: WindowReach<'a>,
    /// The numbers from 0 up to the size of the largest dense set: the positions in any dense set.
    bucket_slots: Vec<u32>,
}

impl<'a> PairFinder<'a> {
    pub(crate) fn new(
        mut verifier: PairVerifier<'a>,
        corpus: &'a MatchCorpus<'a>,
        nodes: EqualTextNodes,
    ) -> Result<Self> {
        let buckets = corpus_buckets::build_buckets(corpus, &mut verifier, &nodes)?;
        verifier.build_all_bitmaps(&buckets)?;
        let sizes = (0..verifier.dense_buckets.bucket_count()).map(|dense_bucket| {
            verifier
                .dense_buckets
                .bucket_members(dense_bucket as u32)
                .len()
        });
        Ok(Self {
            corpus,
            nodes,
            chains: CopyChains::Unused,
            buckets,
            reach: WindowReach::from_corpus(corpus),
            bucket_slots: (0..sizes.max().unwrap_or(0) as u32).collect(),
            verifier,
        })
    }

    /// Makes the bitmaps that pay off after the comparisons so far.
    pub(crate) fn learn_dense_buckets(&mut self) -> Result<()> {
        self.verifier.learn_dense_buckets()
    }

    /// Returns the number of documents that may be the earlier one of a pair. They come first in the
    /// order.
    pub(crate) fn count_first_documents(&self) -> usize {
        if self.corpus.known_prefix > 0 {
            self.corpus.known_prefix
        } else {
            self.corpus.len()
        }
    }

    /// Returns the number of documents that are copies of an earlier one within reach.
    fn count_copies(&self) -> usize {
        let ranks = 0..self.corpus.len() as DocumentRank;
        match &self.chains {
            CopyChains::Unused => 0,
            CopyChains::Next(_) | CopyChains::Hidden => {
                ranks.filter(|&rank| !self.nodes.is_first(rank)).count()
            }
            CopyChains::Previous { of, .. } => {
                let is_copy = |&rank: &DocumentRank| !self.is_earliest_within_reach(of, rank, rank);
                ranks.filter(is_copy).count()
            }
        }
    }

    fn is_known(&self, rank: DocumentRank) -> bool {
        (rank as usize) < self.corpus.known_prefix
    }

    /// Returns `true` if no earlier document of the same text as `rank` is within reach of `other`.
    fn is_earliest_within_reach(
        &self,
        previous: &[DocumentRank],
        rank: DocumentRank,
        other: DocumentRank,
    ) -> bool {
        let mut at = rank;
        loop {
            let before = previous[at as usize];
            if before == at {
                return true;
            }
            let both_given = self.is_known(before) && self.is_known(other);
            if !both_given && self.corpus.can_meet(before, other) {
                return false;
            }
            // In the order of time, all earlier documents are even farther away.
            if self.reach.window.is_some() {
                return true;
            }
            at = before;
        }
    }

    /// Returns `true` if the pair of a document and a later one is listed, by the rules of
    /// [`CopyPairs`].
    fn is_listed_pair(&self, rank: DocumentRank, other: DocumentRank, route: Route) -> bool {
        let CopyChains::Previous { of, lists_copies } = &self.chains else {
            return true;
        };
        let is_copy = route == Route::Exact;
        (*lists_copies || !is_copy)
            && self.is_earliest_within_reach(of, rank, other)
            && (is_copy || self.is_earliest_within_reach(of, other, rank))
    }

    /// Returns the copies of a document that are listed with it although they are not in its buckets,
    /// ascending.
    fn later_copies(&self, rank: DocumentRank) -> impl Iterator<Item = DocumentRank> {
        let next = match &self.chains {
            CopyChains::Next(next) if self.nodes.is_first(rank) => Some(next),
            _ => None,
        };
        let follow =
            move |&at: &DocumentRank| next.map(|next| next[at as usize]).filter(|&it| it != at);
        std::iter::successors(Some(rank), follow).skip(1)
    }

    /// Returns those of ascending ranks that come after a document and are within its reach. Given
    /// documents are paired with others only.
    fn later_members<'m>(
        &self,
        members: &'m [DocumentRank],
        rank: DocumentRank,
    ) -> &'m [DocumentRank] {
        self.reach
            .limit_to_window(rank, &members[self.count_before(members, rank)..])
    }

    /// Returns how many of ascending ranks come no later than a document, or are given like it.
    fn count_before(&self, members: &[DocumentRank], rank: DocumentRank) -> usize {
        let from = rank.max((self.corpus.known_prefix as DocumentRank).saturating_sub(1));
        members.partition_point(|&other| other <= from)
    }

    /// Returns a block of documents from `start` that have not too many candidates together. Block
    /// lengths double, because the first blocks show whether bitmaps pay off.
    pub(crate) fn next_block(&self, start: usize, end: usize) -> std::ops::Range<DocumentRank> {
        let mut candidates = 0;
        let mut stop = start;
        let BatchSizes {
            first_pairs,
            block,
            pairs,
            ..
        } = self.verifier.batch_sizes;
        let end = end.min(start + start.clamp(first_pairs, block.max(first_pairs)));
        while stop < end && (stop == start || candidates < pairs) {
            let rank = stop as DocumentRank;
            let buckets = self.buckets.candidate_buckets(rank);
            candidates += buckets
                .map(|group| {
                    self.later_members(self.buckets.members_ahead(group), rank)
                        .len()
                })
                .sum::<usize>();
            stop += 1;
        }
        start as DocumentRank..stop as DocumentRank
    }

    /// Verifier of the pairs.
    pub(crate) fn judge(&self) -> &PairVerifier<'a> {
        &self.verifier
    }

    pub(crate) fn candidate_buckets(&self) -> &CandidateBuckets {
        &self.buckets
    }

    /// Returns the later documents that are candidates, ascending.
    pub(crate) fn candidates_of(
        &self,
        rank: DocumentRank,
        seen: &mut SeenCandidates,
    ) -> Vec<(DocumentRank, Route)> {
        let later = |group| self.later_members(self.buckets.members_ahead(group), rank);
        let from = |members: &[DocumentRank]| self.count_before(members, rank)..members.len();
        self.meet_members(rank, seen, later, from);
        let mut others = Vec::new();
        for &other in seen.candidates_met() {
            let route = self.verifier.candidates(rank, other);
            let listed = route.filter(|&route| self.is_listed_pair(rank, other, route));
            others.extend(listed.map(|route| (other, route)));
        }
        let copies = self.later_copies(rank);
        others.extend(copies.map(|other| (other, Route::Exact)));
        others.sort_unstable_by_key(|&(other, _)| other);
        others
    }

    /// Returns the earlier documents that match one and that `joined` does not connect with it. Buckets
    /// for which `is_done` returns `true` are skipped.
    pub(crate) fn separate_before(
        &self,
        rank: DocumentRank,
        seen: &mut SeenCandidates,
        joined: impl Fn(DocumentRank, DocumentRank) -> bool,
        is_done: impl Fn(u32) -> bool,
    ) -> Result<Vec<DocumentRank>> {
        let earlier = |group| match is_done(group) {
            true => &[][..],
            false => self
                .reach
                .limit_to_window(rank, ranks_before(self.buckets.members_ahead(group), rank)),
        };
        let up_to = |members: &[DocumentRank]| 0..ranks_before(members, rank).len();
        self.meet_members(rank, seen, earlier, up_to);
        let mut matching = Vec::new();
        for &other in seen.candidates_met() {
            if !joined(rank, other)
                && let Some(route) = self.verifier.candidates(rank, other)
                && self.verifier.verify_pair(rank, other, route)?.is_some()
            {
                matching.push(other);
            }
        }
        Ok(matching)
    }

    /// Adds the relevant candidates from the buckets of a document to `seen`. Scans the relevant part
    /// of its dense set in place of dense buckets, if that is less work.
    fn meet_members<'m>(
        &self,
        rank: DocumentRank,
        seen: &mut SeenCandidates,
        members: impl Fn(u32) -> &'m [DocumentRank],
        bucket_slots: impl Fn(&[DocumentRank]) -> std::ops::Range<usize>,
    ) {
        seen.begin_look_up();
        let met = || count_dense_members(&self.buckets, rank, &members);
        let scans = self
            .verifier
            .dense_buckets
            .slot_of(rank)
            .and_then(|bucket_slot| {
                let can_scan = self
                    .verifier
                    .dense_buckets
                    .has_bitmaps(bucket_slot.dense_bucket);
                let others = &self.bucket_slots[bucket_slots(
                    self.verifier
                        .dense_buckets
                        .bucket_members(bucket_slot.dense_bucket),
                )];
                let scans = can_scan && self.verifier.should_scan(met(), others.len());
                scans.then_some((bucket_slot, others))
            });
        let mut meet = |other| seen.meet_candidate(&self.verifier, other);
        visit_groups(&self.buckets, rank, scans.is_some(), members, &mut meet);
        if let Some((bucket_slot, others)) = scans {
            self.verifier
                .dense_buckets
                .scan_members(bucket_slot, others, meet);
        }
    }

    /// Returns the matching pairs of a document and later ones, ascending.
    pub(crate) fn pairs_of_document(
        &self,
        rank: DocumentRank,
        seen: &mut SeenCandidates,
    ) -> Result<Vec<MatchingPair>> {
        let mut pairs = Vec::new();
        for (other, route) in self.candidates_of(rank, seen) {
            if let Some(similarity) = self.verifier.verify_pair(rank, other, route)? {
                let (a, b) = (
                    self.corpus.document_at(rank),
                    self.corpus.document_at(other),
                );
                pairs.push(MatchingPair {
                    a,
                    b,
                    similarity,
                    route,
                });
            }
        }
        Ok(pairs)
    }
}
