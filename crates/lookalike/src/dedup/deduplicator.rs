//! Deduplication in the total order of the documents.
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
use super::corpus::{EqualTextNodes, MatchCorpus, WindowReach};
use super::corpus_buckets;
use super::pair_decisions::DecidedPartners;
use super::pair_verifier::PairVerifier;
use super::seen_candidates::{SeenCandidates, count_dense_members, ranks_before, visit_candidates};
use crate::candidates::bitmap_filter::DenseSlot;
use crate::candidates::buckets::{CandidateBuckets, DocumentRank};
use crate::error::Result;
use crate::similarity::{DocumentMatch, Route};
use crate::types::{DocId, Similarity};

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
    verdicts_in(BatchSizes::default(), corpus, &[], told)
}

/// Decides which documents are kept beside an index that is searched on its own.
///
/// `known_matches` has the most similar document of the index for each document that matches one, the earliest if
/// several are equally similar. It is sorted by document. The matching documents of the index are the first ones of the
/// known prefix, numbered in the order of the index, and their sketches are those of an empty text, because the search
/// has compared them. So the cost is that of the other documents, whatever the size of the index is. The verdicts are those
/// of a corpus with the whole index as known prefix.
///
/// # Errors
/// Fails as [`find_verdicts`] does.
pub fn follow_verdicts_beside_index(
    corpus: &MatchCorpus<'_>,
    known_matches: &[DocumentRemoval],
    told: &(dyn Fn(usize, &[DocumentRemoval]) + Sync),
) -> Result<DedupOutcome> {
    verdicts_in(BatchSizes::default(), corpus, known_matches, told)
}

/// Verdicts, and the documents that can match others.
#[derive(Debug)]
pub struct VerdictsAndCandidates {
    /// The verdicts.
    pub outcome: DedupOutcome,
    /// For each document, `true` if its text shares a bucket with another. All others match equal texts at most.
    pub has_candidates: Vec<bool>,
}

/// Decides which documents are kept, as [`follow_verdicts`] does, for a caller that then decides by a stricter plan with
/// the same buckets.
///
/// # Errors
/// As for [`find_verdicts`].
pub fn find_verdicts_and_candidates(
    corpus: &MatchCorpus<'_>,
    report: &(dyn Fn(usize, &[DocumentRemoval]) + Sync),
) -> Result<VerdictsAndCandidates> {
    let verifier = PairVerifier::new(corpus, BatchSizes::default());
    let deduplicator = Deduplicator::new(verifier, corpus)?;
    let mut has_candidates = vec![false; corpus.sketches.len()];
    for rank in 0..corpus.len() as DocumentRank {
        // Of equal texts, the first alone stands in buckets.
        let first = deduplicator.nodes.first_equal(rank);
        let shares = !deduplicator.buckets.buckets_of(first).is_empty();
        has_candidates[corpus.document_at(rank).index()] = shares;
    }
    report(0, &[]);
    let outcome = deduplicator.run_blocks(|decided, removals| {
        report(decided, removals);
        ControlFlow::Continue(())
    })?;
    Ok(VerdictsAndCandidates {
        outcome,
        has_candidates,
    })
}

pub(crate) fn verdicts_in(
    batch_sizes: BatchSizes,
    corpus: &MatchCorpus<'_>,
    known_matches: &[DocumentRemoval],
    told: &(dyn Fn(usize, &[DocumentRemoval]) + Sync),
) -> Result<DedupOutcome> {
    debug_assert!(known_matches.is_sorted_by_key(|found| found.document));
    let verifier = PairVerifier::new(corpus, batch_sizes);
    let deduplicator = Deduplicator {
        known_matches,
        ..Deduplicator::new(verifier, corpus)?
    };
    told(0, &[]);
    deduplicator.run_blocks(|decided, removals| {
        told(decided, removals);
        ControlFlow::Continue(())
    })
}

pub(crate) struct Deduplicator<'a> {
    corpus: &'a MatchCorpus<'a>,
    verifier: PairVerifier<'a>,
    nodes: EqualTextNodes,
    partners: DecidedPartners,
    buckets: CandidateBuckets,
    reach: WindowReach<'a>,
    /// Best matches that were found before the run, sorted by document.
    known_matches: &'a [DocumentRemoval],
    kept: Vec<bool>,
    /// Positions of the kept documents in every dense set, ascending.
    kept_positions: Vec<Vec<u32>>,
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
    scanned: Option<ScannedSet<'w>>,
}

/// Kept documents of a dense set that are scanned by their bitmaps.
struct ScannedSet<'w> {
    slot: DenseSlot,
    /// Positions of these documents.
    positions: &'w [u32],
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
            partners: DecidedPartners::new(corpus, &nodes),
            nodes,
            buckets,
            reach: WindowReach::from_corpus(corpus),
            known_matches: &[],
            kept: vec![false; corpus.len()],
            kept_positions: vec![Vec::new(); verifier.dense_sets.set_count()],
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
        self.verifier.build_due_bitmaps()?;
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
        let undecided: Vec<bool> = findings
            .iter()
            .map(|finding| finding.best.is_none())
            .collect();
        let Some(earliest) = undecided.iter().position(|&it| it) else {
            return;
        };
        let may_be_kept = |other: DocumentRank| undecided[(other - start) as usize];
        let mut positions: HashMap<u32, Vec<u32>> = HashMap::new();
        for rank in
            (start..start + findings.len() as DocumentRank).filter(|&rank| may_be_kept(rank))
        {
            if let Some(DenseSlot { dense_set, at }) = self.own_slot(rank) {
                positions.entry(dense_set).or_default().push(at);
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
            if self.verifier.joins_by_containment() {
                seen.add_containments(&self.verifier, &self.buckets, first, ahead);
            } else {
                let mut add = |other| {
                    if may_be_kept(other) {
                        seen.add_candidate(&self.verifier, other);
                    }
                };
                let met = || count_dense_members(&self.buckets, first, ahead);
                let positions = |dense_set| {
                    positions.get(&dense_set).map_or(&[][..], |positions| {
                        self.positions_before(dense_set, positions, below)
                    })
                };
                let scans = self.set_to_scan(first, met, positions);
                visit_candidates(&self.buckets, first, scans.is_some(), ahead, &mut add);
                if let Some((slot, others)) = scans {
                    self.verifier.dense_sets.scan_members(slot, others, add);
                }
                self.count_encounters(first, seen);
            }
            let decided = self.partners.partners_of(first);
            for other in decided.filter(|&other| (start..below).contains(&other)) {
                seen.add_candidate(&self.verifier, other);
            }
            let others = seen.candidates().iter();
            for &other in others.filter(|&&other| other != first && may_be_kept(other)) {
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
                self.scan_dense_sets(&mut begun);
                begun
                    .into_iter()
                    .map(|look_up| self.finish_look_up(look_up, seen))
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
        if let Some(found) = self.known_match_of(rank) {
            let DocumentMatch {
                with,
                similarity,
                route,
            } = found;
            debug_assert_eq!(self.corpus.document_at(with.0), with);
            finding.offer_match(with.0, route, Some(similarity));
            if similarity == Similarity::ONE {
                // No candidate is earlier than the documents of the index.
                finding.below = 0;
                return look_up;
            }
        }
        if first < start && self.kept[first as usize] {
            finding.offer_match(first, Route::Exact, Some(Similarity::ONE));
            // An earlier known document may be equally similar, because known documents are kept
            // whatever they match.
            finding.below = if self.is_known(first) { first } else { 0 };
        }
        let below = finding.below;
        if self.verifier.dense_sets.slot_of(first).is_some() {
            let met = || {
                count_dense_members(&self.buckets, first, |group| {
                    self.kept_members_in(group, rank, below)
                })
            };
            let positions = |dense_set| {
                self.positions_before(dense_set, &self.kept_positions[dense_set as usize], below)
            };
            let scans = self.set_to_scan(first, met, positions);
            look_up.scanned = scans.map(|(slot, positions)| ScannedSet {
                slot,
                positions,
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
    fn scan_dense_sets(&self, begun: &mut [LookUp<'_>]) {
        let mut scanned: Vec<&mut ScannedSet<'_>> = begun
            .iter_mut()
            .filter_map(|look_up| look_up.scanned.as_mut())
            .collect();
        scanned.sort_by_key(|scan| scan.slot.dense_set);
        for scanned in scanned.chunk_by_mut(|a, b| a.slot.dense_set == b.slot.dense_set) {
            let tile = self
                .verifier
                .dense_sets
                .tile_size(scanned[0].slot.dense_set);
            let longest = scanned
                .iter()
                .map(|look_up| look_up.positions.len())
                .max()
                .unwrap_or(0);
            for start in (0..longest).step_by(tile) {
                for ScannedSet {
                    slot,
                    positions,
                    left,
                } in scanned.iter_mut()
                {
                    let end = positions.len().min(start + tile);
                    let positions = positions.get(start..end).unwrap_or_default();
                    self.verifier
                        .dense_sets
                        .scan_members(*slot, positions, |other| left.push(other));
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
        if self.verifier.joins_by_containment() {
            seen.add_containments(&self.verifier, &self.buckets, first, kept);
        } else {
            visit_candidates(&self.buckets, first, scanned.is_some(), kept, |other| {
                seen.add_candidate(&self.verifier, other)
            });
        }
        for other in scanned.into_iter().flat_map(|scan| scan.left) {
            seen.add_candidate(&self.verifier, other);
        }
        self.count_encounters(first, seen);
        let decided = self.partners.partners_of(first);
        for other in decided.filter(|&other| other < below && self.kept[other as usize]) {
            seen.add_candidate(&self.verifier, other);
        }
        for &other in seen.candidates() {
            if let Some(route) = self.verifier.candidates(rank, other) {
                finding.offer_match(other, route, self.verifier.verify_pair(rank, other, route)?);
            }
        }
        Ok(finding)
    }

    /// Returns a document's place in a dense set and the positions to scan there, if scanning is less
    /// work than visiting the `met` members of its dense buckets.
    fn set_to_scan<'s>(
        &self,
        first: DocumentRank,
        met: impl FnOnce() -> usize,
        positions: impl Fn(u32) -> &'s [u32],
    ) -> Option<(DenseSlot, &'s [u32])> {
        let dense_sets = &self.verifier.dense_sets;
        let slot = dense_sets
            .slot_of(first)
            .filter(|slot| dense_sets.has_bitmaps(slot.dense_set))?;
        let positions = positions(slot.dense_set);
        self.verifier
            .should_scan(met(), positions.len())
            .then_some((slot, positions))
    }

    /// Counts the candidates of a document, as long as its dense set has no bitmaps. The counts decide
    /// when bitmaps pay off.
    fn count_encounters(&self, first: DocumentRank, seen: &SeenCandidates) {
        let dense_sets = &self.verifier.dense_sets;
        let slot = dense_sets
            .slot_of(first)
            .filter(|slot| !dense_sets.has_bitmaps(slot.dense_set));
        if let Some(slot) = slot {
            dense_sets.count_encounters(slot.dense_set, seen.candidates().len());
        }
    }

    /// Returns those of ascending positions whose documents come before `below`.
    fn positions_before<'s>(
        &self,
        dense_set: u32,
        positions: &'s [u32],
        below: DocumentRank,
    ) -> &'s [u32] {
        let members = self.verifier.dense_sets.set_members(dense_set);
        &positions[..positions.partition_point(|&at| members[at as usize] < below)]
    }

    /// Returns the place of a document in a dense set, unless an earlier document with an equal text
    /// has it.
    fn own_slot(&self, rank: DocumentRank) -> Option<DenseSlot> {
        let slot = self.verifier.dense_sets.slot_of(rank);
        slot.filter(|_| self.nodes.is_first(rank))
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
        if let Some(slot) = self.own_slot(rank).filter(|_| kept) {
            self.kept_positions[slot.dense_set as usize].push(slot.at);
        }
        if self.nodes.is_first(rank) {
            self.buckets.pass_document(rank, kept);
        }
    }

    /// Returns the best match of a document that was found before the run. Ranks in the known prefix are the numbers
    /// of its documents.
    fn known_match_of(&self, rank: DocumentRank) -> Option<DocumentMatch> {
        if self.known_matches.is_empty() {
            return None;
        }
        let document = self.corpus.document_at(rank);
        let at = self
            .known_matches
            .binary_search_by_key(&document, |found| found.document)
            .ok()?;
        Some(self.known_matches[at].kept)
    }

    fn is_known(&self, rank: DocumentRank) -> bool {
        (rank as usize) < self.corpus.known_prefix
    }
}
