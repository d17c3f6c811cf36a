//! The search for all matching pairs, in the total order of the documents.

use rayon::prelude::*;

use super::batch_sizes::BatchSizes;
use super::corpus::{EqualTextNodes, MatchCorpus, WindowReach};
use super::corpus_buckets;
use super::pair_decisions::DecidedPartners;
use super::pair_verifier::PairVerifier;
use super::seen_candidates::{SeenCandidates, count_dense_members, ranks_before, visit_candidates};
use crate::candidates::buckets::{CandidateBuckets, DocumentRank};
use crate::error::{Error, Result};
use crate::similarity::Route;
use crate::types::{DocId, Similarity};

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

/// The pairs that are listed for documents whose texts are equal after normalisation (copies).
///
/// Two documents are within reach of each other if the partition and the window allow a match, and if
/// not both are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CopyPairs {
    /// Each copy with the earliest document of its text within its reach. A pair of different texts
    /// consists, for each text, of the earliest document within reach of the other. Where some
    /// documents are known, this is [`All`](Self::All), because two copies that are both known, or both
    /// not known, are not paired with each other.
    #[default]
    WithEarliest,
    /// Every combination.
    All,
    /// No pairs of copies. Pairs of different texts are those of [`WithEarliest`](Self::WithEarliest),
    /// also where some documents are known.
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
/// If some documents are known, each pair consists of a known document and one that is not.
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
    let corpus = &MatchCorpus {
        decisions: None,
        ..*corpus
    };
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
        finder.build_due_bitmaps()?;
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
    partners: DecidedPartners,
    chains: CopyChains,
    buckets: CandidateBuckets,
    reach: WindowReach<'a>,
    /// The numbers from 0 up to the size of the largest dense set: the positions in any dense set.
    positions: Vec<u32>,
}

impl<'a> PairFinder<'a> {
    pub(crate) fn new(
        mut verifier: PairVerifier<'a>,
        corpus: &'a MatchCorpus<'a>,
        nodes: EqualTextNodes,
    ) -> Result<Self> {
        let buckets = corpus_buckets::build_buckets(corpus, &mut verifier, &nodes)?;
        verifier.build_all_bitmaps(&buckets)?;
        let sizes = (0..verifier.dense_sets.set_count())
            .map(|dense_set| verifier.dense_sets.set_members(dense_set as u32).len());
        Ok(Self {
            corpus,
            partners: DecidedPartners::new(corpus, &nodes),
            nodes,
            chains: CopyChains::Unused,
            buckets,
            reach: WindowReach::from_corpus(corpus),
            positions: (0..sizes.max().unwrap_or(0) as u32).collect(),
            verifier,
        })
    }

    /// Makes the bitmaps that pay off after the comparisons so far.
    pub(crate) fn build_due_bitmaps(&mut self) -> Result<()> {
        self.verifier.build_due_bitmaps()
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
            let both_known = self.is_known(before) && self.is_known(other);
            if !both_known && self.corpus.can_meet(before, other) {
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

    /// Returns how many of ascending ranks come no later than a document, or are known like it.
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
    pub(crate) fn verifier(&self) -> &PairVerifier<'a> {
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
        self.collect_candidates(rank, seen, later, from);
        let mut others = Vec::new();
        for &other in seen.candidates() {
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
        let earlier = |group| {
            if is_done(group) {
                &[][..]
            } else {
                self.reach
                    .limit_to_window(rank, ranks_before(self.buckets.members_ahead(group), rank))
            }
        };
        let up_to = |members: &[DocumentRank]| 0..ranks_before(members, rank).len();
        self.collect_candidates(rank, seen, earlier, up_to);
        let decided = self.partners.partners_of(rank);
        for other in decided.filter(|&other| other < rank) {
            seen.add_candidate(&self.verifier, other);
        }
        let mut matching = Vec::new();
        for &other in seen.candidates() {
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
    fn collect_candidates<'m>(
        &self,
        rank: DocumentRank,
        seen: &mut SeenCandidates,
        members: impl Fn(u32) -> &'m [DocumentRank],
        range_of: impl Fn(&[DocumentRank]) -> std::ops::Range<usize>,
    ) {
        seen.begin_look_up();
        if self.verifier.joins_by_containment() {
            return seen.add_containments(&self.verifier, &self.buckets, rank, members);
        }
        let met = || count_dense_members(&self.buckets, rank, &members);
        let scans = self.verifier.dense_sets.slot_of(rank).and_then(|slot| {
            let can_scan = self.verifier.dense_sets.has_bitmaps(slot.dense_set);
            let others =
                &self.positions[range_of(self.verifier.dense_sets.set_members(slot.dense_set))];
            let scans = can_scan && self.verifier.should_scan(met(), others.len());
            scans.then_some((slot, others))
        });
        let mut add = |other| seen.add_candidate(&self.verifier, other);
        visit_candidates(&self.buckets, rank, scans.is_some(), members, &mut add);
        if let Some((slot, others)) = scans {
            self.verifier.dense_sets.scan_members(slot, others, add);
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
