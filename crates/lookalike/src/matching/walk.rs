//! Deduplication and the search for all pairs, in the total order of the documents.
//!
//! *A document is kept if and only if no kept document before it matches it.* So a document is compared
//! with kept documents only, a removed document always reaches the threshold with the kept one that it
//! names, and a dense bucket costs what its kept documents cost.
//!
//! Verdicts are found block by block:
//!
//! 1. Each document of the block is compared with all that were kept before the block, in parallel.
//! 2. The candidate pairs among those documents of the block that may still be kept are collected, and
//!    their features are made, in parallel.
//! 3. These pairs are compared, a few documents at a time, and the verdicts of these documents follow
//!    in order.
//!
//! Guarantee: the result is that of the plain loop over all documents, whatever the number of threads.

use std::collections::HashMap;
use std::ops::ControlFlow;

use rayon::prelude::*;

use super::cache::Texts;
use super::crowds::Seat;
use super::groups::{Groups, Rank};
use super::judge::{Judge, Match, Route};
use super::keys;
use super::portions::Portions;
use crate::error::{Error, Result};
use crate::hash::mix;
use crate::plan::Plan;
use crate::sketches::Sketches;
use crate::types::{DocId, Similarity};

/// The documents of a run, their total order, and the restrictions on which of them may match.
#[derive(Clone, Copy)]
pub struct Corpus<'a> {
    /// Match plan: how candidates are found and checked.
    pub plan: &'a Plan,
    /// Sketches of every document.
    pub sketches: &'a Sketches,
    /// Source that provides features, weights and sequences again.
    pub texts: &'a dyn Texts,
    /// The documents in their total order; `None` if that is the order read.
    pub order: Option<&'a [DocId]>,
    /// Partition of every document, in the order read. Documents match only within a partition.
    pub parts: Option<&'a [u64]>,
    /// Time window. Documents match only if their times differ by no more than its width.
    pub window: Option<Window<'a>>,
    /// Number of documents at the start of the order that are kept whatever they match.
    pub given: usize,
}

/// A limit on how far apart in time two documents may be.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Times of all documents, in the order read.
    pub times: &'a [f64],
    /// Largest difference of two times at which documents may match, in the unit of `times`.
    pub width: f64,
}

impl Corpus<'_> {
    /// Returns `true` if two documents may match, whatever their texts are: they are of one partition
    /// and within the window, and not both are given.
    pub fn may_pair(&self, a: DocId, b: DocId) -> bool {
        let both_given = a.index().max(b.index()) < self.given;
        !both_given && self.within_reach(a, b)
    }

    pub(super) fn len(&self) -> usize {
        self.order.map_or(self.sketches.len(), <[_]>::len)
    }

    pub(super) fn document(&self, rank: Rank) -> DocId {
        self.order.map_or(DocId(rank), |order| order[rank as usize])
    }

    /// Returns `true` if the partition and the window allow a match of two documents.
    pub(super) fn may_meet(&self, a: Rank, b: Rank) -> bool {
        self.within_reach(self.document(a), self.document(b))
    }

    fn within_reach(&self, a: DocId, b: DocId) -> bool {
        let (a, b) = (a.index(), b.index());
        self.parts.is_none_or(|parts| parts[a] == parts[b])
            && self
                .window
                .is_none_or(|Window { times, width }| (times[a] - times[b]).abs() <= width)
    }

    /// Returns `true` if the order is that of the times of a window, so that all documents within reach
    /// of one are neighbours in the order.
    fn goes_by_time(&self) -> bool {
        let time = |times: &[f64], rank: usize| times[self.document(rank as Rank).index()];
        let in_order = |Window { times, .. }: Window<'_>| {
            (1..self.len()).all(|rank| time(times, rank - 1) <= time(times, rank))
        };
        self.window.is_some_and(in_order)
    }

    /// Returns the partition of a document, or 0 if there are no partitions.
    pub(super) fn part(&self, rank: Rank) -> u64 {
        self.parts
            .map_or(0, |parts| parts[self.document(rank).index()])
    }

    /// Returns a key that only documents of the same partition share.
    pub(super) fn parted(&self, key: u64, rank: Rank) -> u64 {
        match self.parts {
            None => key,
            Some(parts) => mix(key ^ parts[self.document(rank).index()]),
        }
    }
}

/// A removed document, and the match for which it is removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Removal {
    /// The removed document.
    pub document: DocId,
    /// The kept document that is most similar to it; the earliest if several are equally similar.
    pub kept: Match,
}

/// The verdicts of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The removed documents in their total order. All others are kept.
    pub removals: Vec<Removal>,
}

/// A matching pair, with the earlier document first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
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
pub fn find_verdicts(corpus: &Corpus<'_>, progress: &(dyn Fn(usize) + Sync)) -> Result<Outcome> {
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
    corpus: &Corpus<'_>,
    told: &(dyn Fn(usize, &[Removal]) + Sync),
) -> Result<Outcome> {
    verdicts_in(Portions::default(), corpus, told)
}

pub(super) fn verdicts_in(
    portions: Portions,
    corpus: &Corpus<'_>,
    told: &(dyn Fn(usize, &[Removal]) + Sync),
) -> Result<Outcome> {
    let walk = Walk::new(Judge::new(corpus, portions), corpus)?;
    told(0, &[]);
    walk.go(|decided, removals| {
        told(decided, removals);
        ControlFlow::Continue(())
    })
}

/// Documents that are equal after normalisation, as one node each.
pub(super) struct Nodes {
    /// For each rank, the rank of the first document with the same text. With a window, every document
    /// is a node of its own, because equal texts may be out of each other's reach.
    first: Vec<Rank>,
    together: bool,
}

impl Nodes {
    fn new(corpus: &Corpus<'_>) -> Self {
        let mut nodes = Self::apart(corpus);
        if corpus.window.is_none() {
            nodes.together = true;
            keys::equal_texts(corpus, |rank, earliest| {
                nodes.first[rank as usize] = earliest
            });
        }
        nodes
    }

    /// Returns the nodes for a search for all pairs.
    pub(super) fn of_pairs(corpus: &Corpus<'_>, copies: CopyPairs) -> Self {
        if copies == CopyPairs::All || corpus.given > 0 {
            Self::apart(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Returns the nodes for verdicts and components. Documents with equal texts are one node only if
    /// they match the same others. With sentences they may not, because punctuation decides where
    /// sentences end and equal texts may differ in it.
    pub(super) fn alike(corpus: &Corpus<'_>) -> Self {
        if corpus.plan.sentences().is_some() {
            Self::apart(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Returns every document as a node of its own.
    fn apart(corpus: &Corpus<'_>) -> Self {
        Self {
            first: (0..corpus.len() as Rank).collect(),
            together: false,
        }
    }

    /// Returns `true` if equal documents are one node.
    pub(super) fn together(&self) -> bool {
        self.together
    }

    pub(super) fn first(&self, rank: Rank) -> Rank {
        self.first[rank as usize]
    }

    pub(super) fn is_first(&self, rank: Rank) -> bool {
        self.first(rank) == rank
    }
}

/// The window, where the order is that of time, so that documents out of reach can be cut off.
struct Reach<'a> {
    window: Option<(&'a Corpus<'a>, Window<'a>)>,
}

impl<'a> Reach<'a> {
    fn of(corpus: &'a Corpus<'a>) -> Self {
        let window = corpus.window.filter(|_| corpus.goes_by_time());
        Self {
            window: window.map(|window| (corpus, window)),
        }
    }

    /// Cuts off, at both ends of ascending ranks, the documents that are too far from `rank` in time.
    fn of_those<'m>(&self, rank: Rank, others: &'m [Rank]) -> &'m [Rank] {
        let Some((corpus, Window { times, width })) = self.window else {
            return others;
        };
        let time = |rank: Rank| times[corpus.document(rank).index()];
        let at = time(rank);
        let start = others.partition_point(|&other| at - time(other) > width);
        let others = &others[start..];
        &others[..others.partition_point(|&other| time(other) - at <= width)]
    }
}

pub(super) struct Walk<'a> {
    corpus: &'a Corpus<'a>,
    judge: Judge<'a>,
    nodes: Nodes,
    groups: Groups,
    reach: Reach<'a>,
    kept: Vec<bool>,
    /// Positions of the kept documents in every dense set, ascending.
    kept_seats: Vec<Vec<u32>>,
    removals: Vec<Removal>,
}

/// Number of pairs below which waking another thread costs more than it saves.
const FEW_PAIRS: usize = 16;

/// Numbers of documents by which the headers of buckets, and then their members, are prefetched ahead.
const HEADS_AHEAD: Rank = 16;
const MEMBERS_AHEAD: Rank = 8;

/// The findings about a document of the block before its verdict.
#[derive(Default)]
struct Finding {
    /// Best match among the documents kept before the block.
    best: Option<Best>,
    /// Rank below which candidates are searched for; 0 if no candidate can change the verdict.
    below: Rank,
    /// Candidates inside the block. The similarity is set once the pair was compared and matches.
    inner: Vec<(Rank, Route, Option<Similarity>)>,
}

/// A document that is looked up.
#[derive(Default)]
struct LookUp<'w> {
    rank: Rank,
    finding: Finding,
    /// Kept documents that are scanned instead of dense buckets, if that is less work.
    scanned: Option<Scanned<'w>>,
}

/// Kept documents of a dense set that are scanned by their bitmaps.
struct Scanned<'w> {
    seat: Seat,
    /// Positions of these documents.
    seats: &'w [u32],
    /// The documents that the bitmap filter does not rule out.
    left: Vec<Rank>,
}

#[derive(Clone, Copy)]
struct Best {
    rank: Rank,
    similarity: Similarity,
    route: Route,
}

impl Finding {
    /// Takes a match if it is more similar than the best one so far, or equally similar and earlier.
    fn offer(&mut self, rank: Rank, route: Route, similarity: Option<Similarity>) {
        let Some(similarity) = similarity else { return };
        let better = self.best.is_none_or(|best| {
            similarity > best.similarity || similarity == best.similarity && rank < best.rank
        });
        if better {
            self.best = Some(Best {
                rank,
                similarity,
                route,
            });
        }
    }
}

impl<'a> Walk<'a> {
    /// Builds the buckets of a corpus. No document is decided yet.
    pub(super) fn new(mut judge: Judge<'a>, corpus: &'a Corpus<'a>) -> Result<Self> {
        let nodes = Nodes::alike(corpus);
        let groups = keys::groups(corpus, &mut judge, &nodes)?;
        Ok(Self {
            corpus,
            nodes,
            groups,
            reach: Reach::of(corpus),
            kept: vec![false; corpus.len()],
            kept_seats: vec![Vec::new(); judge.crowds.count()],
            judge,
            removals: Vec::new(),
        })
    }

    /// Decides all documents, block by block. After each block, calls `told` with the number of
    /// documents decided and the removals of the block, and stops if it breaks.
    pub(super) fn go(
        mut self,
        mut told: impl FnMut(usize, &[Removal]) -> ControlFlow<()>,
    ) -> Result<Outcome> {
        let Portions {
            first_block, block, ..
        } = self.judge.portions;
        let (mut start, mut length) = (0, first_block);
        while start < self.corpus.len() {
            let end = (start + length).min(self.corpus.len());
            let removed_before = self.removals.len();
            self.block(start as Rank..end as Rank)?;
            if told(end, &self.removals[removed_before..]).is_break() {
                break;
            }
            start = end;
            length = (2 * length).min(block);
        }
        Ok(Outcome {
            removals: self.removals,
        })
    }

    fn block(&mut self, block: std::ops::Range<Rank>) -> Result<()> {
        self.judge.learn_crowds()?;
        let mut findings = self.look_up(block.clone())?;
        self.find_inner(&mut findings, block.start);
        self.make_features(&findings, block.start)?;
        let mut start = block.start;
        for few in findings.chunks_mut(self.judge.portions.few) {
            self.compare_inside(few, start)?;
            for (finding, rank) in few.iter_mut().zip(start..) {
                self.decide(rank, std::mem::take(finding));
            }
            start += few.len() as Rank;
        }
        Ok(())
    }

    /// Collects the candidates inside the block. Documents that match one kept before the block are not
    /// kept themselves, so they are left out as candidates of others.
    fn find_inner(&self, findings: &mut [Finding], start: Rank) {
        let undecided: Vec<bool> = findings.iter().map(|it| it.best.is_none()).collect();
        let Some(earliest) = undecided.iter().position(|&it| it) else {
            return;
        };
        let may_be_kept = |other: Rank| undecided[(other - start) as usize];
        let mut seats: HashMap<u32, Vec<u32>> = HashMap::new();
        for rank in (start..start + findings.len() as Rank).filter(|&rank| may_be_kept(rank)) {
            if let Some(Seat { crowd, at }) = self.own_seat(rank) {
                seats.entry(crowd).or_default().push(at);
            }
        }
        let find = |seen: &mut Seen, (finding, rank): (&mut Finding, Rank)| {
            if finding.below <= start + earliest as Rank {
                return;
            }
            let first = self.nodes.first(rank);
            seen.begin();
            if first >= start && first < rank && may_be_kept(first) {
                seen.is_new(first);
                finding.inner.push((first, Route::Exact, None));
            }
            let below = finding.below;
            let ahead = |group| before(self.groups.ahead(group), below);
            let mut meet = |other| {
                if may_be_kept(other) {
                    seen.meet(&self.judge, other);
                }
            };
            let met = || crowded(&self.groups, first, ahead);
            let seats = |crowd| {
                seats
                    .get(&crowd)
                    .map_or(&[][..], |seats| self.seats_before(crowd, seats, below))
            };
            let scans = self.scans(first, met, seats);
            visit_groups(&self.groups, first, scans.is_some(), ahead, &mut meet);
            if let Some((seat, others)) = scans {
                self.judge.crowds.scan(seat, others, meet);
            }
            self.count_met(first, seen);
            for &other in seen.met().iter().filter(|&&other| other != first) {
                let route = self.judge.candidates(rank, other);
                finding
                    .inner
                    .extend(route.map(|route| (other, route, None)));
            }
        };
        let ranks = start..start + findings.len() as Rank;
        let findings = findings.par_iter_mut().zip(ranks);
        findings.for_each_init(Seen::default, find);
    }

    /// Makes the features that the comparisons inside the block need. All threads share this work here,
    /// while few documents are decided together later.
    fn make_features(&self, findings: &[Finding], start: Rank) -> Result<()> {
        let mut wanted = vec![false; findings.len()];
        for (at, finding) in findings.iter().enumerate() {
            for &(other, route, _) in &finding.inner {
                if route != Route::Exact {
                    wanted[at] = true;
                    wanted[(other - start) as usize] = true;
                }
            }
        }
        let wanted: Vec<Rank> = (start..)
            .zip(wanted)
            .filter_map(|(rank, wanted)| wanted.then_some(rank))
            .collect();
        wanted
            .into_par_iter()
            .with_max_len(8)
            .try_for_each(|rank| self.judge.prepare(rank))
    }

    /// Compares the documents of a block with those kept before it.
    fn look_up(&self, block: std::ops::Range<Rank>) -> Result<Vec<Finding>> {
        let together = self.judge.portions.together as Rank;
        let starts: Vec<Rank> = block.clone().step_by(together as usize).collect();
        let found: Vec<Vec<Finding>> = starts
            .into_par_iter()
            .map_init(Seen::default, |seen, start| {
                let ranks = start..block.end.min(start + together);
                let mut begun: Vec<_> = ranks.map(|rank| self.begin(rank, block.start)).collect();
                self.scan_crowds(&mut begun);
                begun.into_iter().map(|it| self.finish(it, seen)).collect()
            })
            .collect::<Result<_>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Starts the look-up of a document: finds a kept document with an equal text, and decides whether
    /// dense sets are scanned.
    fn begin(&self, rank: Rank, start: Rank) -> LookUp<'_> {
        let first = self.nodes.first(rank);
        let mut look_up = LookUp {
            rank,
            ..LookUp::default()
        };
        if self.is_given(rank) {
            return look_up;
        }
        let finding = &mut look_up.finding;
        finding.below = rank;
        if first < start && self.kept[first as usize] {
            finding.offer(first, Route::Exact, Some(Similarity::ONE));
            // An earlier given document may be equally similar, because given documents are kept
            // whatever they match.
            finding.below = if self.is_given(first) { first } else { 0 };
        }
        let below = finding.below;
        if self.judge.crowds.seat(first).is_some() {
            let met = || {
                crowded(&self.groups, first, |group| {
                    self.kept_in(group, rank, below)
                })
            };
            let seats = |crowd| self.seats_before(crowd, &self.kept_seats[crowd as usize], below);
            let scans = self.scans(first, met, seats);
            look_up.scanned = scans.map(|(seat, seats)| Scanned {
                seat,
                seats,
                left: Vec::new(),
            });
        }
        look_up
    }

    /// Returns the kept members of a bucket that come before `below` and are within reach of `rank`.
    fn kept_in(&self, group: u32, rank: Rank, below: Rank) -> &[Rank] {
        self.reach
            .of_those(rank, before(self.groups.kept(group), below))
    }

    /// Scans the dense sets that documents need, one cache-sized tile after another.
    fn scan_crowds(&self, begun: &mut [LookUp<'_>]) {
        let mut scanned: Vec<&mut Scanned<'_>> = begun
            .iter_mut()
            .filter_map(|it| it.scanned.as_mut())
            .collect();
        scanned.sort_by_key(|it| it.seat.crowd);
        for scanned in scanned.chunk_by_mut(|a, b| a.seat.crowd == b.seat.crowd) {
            let tile = self.judge.crowds.tile(scanned[0].seat.crowd);
            let longest = scanned.iter().map(|it| it.seats.len()).max().unwrap_or(0);
            for start in (0..longest).step_by(tile) {
                for Scanned { seat, seats, left } in scanned.iter_mut() {
                    let end = seats.len().min(start + tile);
                    let seats = seats.get(start..end).unwrap_or_default();
                    self.judge
                        .crowds
                        .scan(*seat, seats, |other| left.push(other));
                }
            }
        }
    }

    /// Compares a document with the candidates among those kept before the block.
    fn finish(&self, look_up: LookUp<'_>, seen: &mut Seen) -> Result<Finding> {
        let LookUp {
            rank,
            mut finding,
            scanned,
        } = look_up;
        self.fetch_ahead(rank);
        let below = finding.below;
        if below == 0 {
            return Ok(finding);
        }
        seen.begin();
        let kept = |group| self.kept_in(group, rank, below);
        let first = self.nodes.first(rank);
        visit_groups(&self.groups, first, scanned.is_some(), kept, |other| {
            seen.meet(&self.judge, other)
        });
        for other in scanned.into_iter().flat_map(|it| it.left) {
            seen.meet(&self.judge, other);
        }
        self.count_met(first, seen);
        for &other in seen.met() {
            if let Some(route) = self.judge.candidates(rank, other) {
                finding.offer(other, route, self.judge.check(rank, other, route)?);
            }
        }
        Ok(finding)
    }

    /// Returns a document's place in a dense set and the positions to scan there, if scanning is less
    /// work than visiting the `met` members of its dense buckets.
    fn scans<'s>(
        &self,
        first: Rank,
        met: impl FnOnce() -> usize,
        seats: impl Fn(u32) -> &'s [u32],
    ) -> Option<(Seat, &'s [u32])> {
        let crowds = &self.judge.crowds;
        let seat = crowds.seat(first).filter(|it| crowds.can_scan(it.crowd))?;
        let seats = seats(seat.crowd);
        self.judge
            .scans(met(), seats.len())
            .then_some((seat, seats))
    }

    /// Counts the candidates of a document, as long as its dense set has no bitmaps. The counts decide
    /// when bitmaps pay off.
    fn count_met(&self, first: Rank, seen: &Seen) {
        let crowds = &self.judge.crowds;
        let seat = crowds.seat(first).filter(|it| !crowds.can_scan(it.crowd));
        if let Some(seat) = seat {
            crowds.meet(seat.crowd, seen.met().len());
        }
    }

    /// Returns those of ascending positions whose documents come before `below`.
    fn seats_before<'s>(&self, crowd: u32, seats: &'s [u32], below: Rank) -> &'s [u32] {
        let members = self.judge.crowds.members(crowd);
        &seats[..seats.partition_point(|&seat| members[seat as usize] < below)]
    }

    /// Returns the place of a document in a dense set, unless an earlier document with an equal text
    /// has it.
    fn own_seat(&self, rank: Rank) -> Option<Seat> {
        let seat = self.judge.crowds.seat(rank);
        seat.filter(|_| self.nodes.is_first(rank))
    }

    /// Prefetches the buckets of documents that are looked up soon, because they are scattered in
    /// memory.
    fn fetch_ahead(&self, rank: Rank) {
        let soon = |steps: Rank| {
            let later = (rank + steps) as usize;
            (later < self.corpus.len()).then(|| self.nodes.first(later as Rank))
        };
        if let Some(first) = soon(HEADS_AHEAD) {
            self.groups.fetch_heads(first);
        }
        if let Some(first) = soon(MEMBERS_AHEAD) {
            self.groups.fetch_members(first);
        }
    }

    /// Compares documents of the block, from `start` on, with the candidates before them in the block:
    /// with those before `start` that are kept, and with those from `start` on that may still be kept.
    fn compare_inside(&self, few: &mut [Finding], start: Rank) -> Result<()> {
        let pairs: usize = few.iter().map(|finding| finding.inner.len()).sum();
        let undecided: Vec<bool> = few.iter().map(|finding| finding.best.is_none()).collect();
        let ranks = start..start + few.len() as Rank;
        let compare = |(finding, rank): (&mut Finding, Rank)| {
            for (other, route, similarity) in &mut finding.inner {
                let may_be_kept = match other.checked_sub(start) {
                    None => self.kept[*other as usize],
                    Some(at) => undecided[at as usize],
                };
                if may_be_kept {
                    *similarity = self.judge.check(rank, *other, *route)?;
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

    fn decide(&mut self, rank: Rank, mut finding: Finding) {
        for (other, route, similarity) in std::mem::take(&mut finding.inner) {
            if self.kept[other as usize] {
                finding.offer(other, route, similarity);
            }
        }
        if let Some(best) = finding.best {
            let kept = Match {
                with: self.corpus.document(best.rank),
                similarity: best.similarity,
                route: best.route,
            };
            self.removals.push(Removal {
                document: self.corpus.document(rank),
                kept,
            });
        }
        let kept = finding.best.is_none();
        self.kept[rank as usize] = kept;
        if let Some(seat) = self.own_seat(rank).filter(|_| kept) {
            self.kept_seats[seat.crowd as usize].push(seat.at);
        }
        if self.nodes.is_first(rank) {
            self.groups.pass(rank, kept);
        }
    }

    fn is_given(&self, rank: Rank) -> bool {
        (rank as usize) < self.corpus.given
    }
}

/// Returns those of ascending ranks that come before `below`.
#[inline]
fn before(ranks: &[Rank], below: Rank) -> &[Rank] {
    match ranks.last() {
        Some(&last) if last >= below => &ranks[..ranks.partition_point(|&rank| rank < below)],
        _ => ranks,
    }
}

/// Returns the number of candidates that a document has in dense buckets. Documents in several of them
/// count several times.
fn crowded<'m>(groups: &Groups, first: Rank, members: impl Fn(u32) -> &'m [Rank]) -> usize {
    let own = groups.of(first).iter();
    let crowded = own.filter(|&&group| groups.is_crowded(group));
    let met = crowded.flat_map(|&group| groups.reach(group));
    met.map(|group| members(group).len()).sum()
}

/// Calls `visit` with the candidates that a document has in its buckets, without dense buckets if
/// `but_crowded` is set. Documents in several buckets come several times.
#[inline]
fn visit_groups<'m>(
    groups: &Groups,
    first: Rank,
    but_crowded: bool,
    members: impl Fn(u32) -> &'m [Rank],
    mut visit: impl FnMut(Rank),
) {
    for &own in groups.of(first) {
        if !(but_crowded && groups.is_crowded(own)) {
            let met = groups.reach(own).flat_map(&members);
            met.for_each(|&other| visit(other));
        }
    }
}

/// The candidates that a look-up has found already. They may be in several of its buckets.
#[derive(Default)]
pub(super) struct Seen {
    bits: Vec<u64>,
    met: Vec<Rank>,
}

impl Seen {
    fn begin(&mut self) {
        for rank in self.met.drain(..) {
            self.bits[rank as usize / 64] = 0;
        }
    }

    fn is_new(&mut self, rank: Rank) -> bool {
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
    fn meet(&mut self, judge: &Judge<'_>, other: Rank) {
        if self.is_new(other) {
            judge.fetch(other);
        }
    }

    /// Returns the documents in the order in which they were added.
    fn met(&self) -> &[Rank] {
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
    fn of_corpus(self, corpus: &Corpus<'_>) -> Self {
        match self {
            Self::WithEarliest if corpus.given > 0 => Self::All,
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
    corpus: &Corpus<'_>,
    copies: CopyPairs,
    visit: impl FnMut(Pair) -> Result<(), E>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<usize, E> {
    pairs_in(Portions::default(), corpus, copies, visit, progress)
}

pub(super) fn pairs_in<E: From<Error>>(
    portions: Portions,
    corpus: &Corpus<'_>,
    copies: CopyPairs,
    mut visit: impl FnMut(Pair) -> Result<(), E>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<usize, E> {
    let copies = copies.of_corpus(corpus);
    let nodes = Nodes::of_pairs(corpus, copies);
    let chains = CopyChains::of_pairs(corpus, &nodes, copies);
    let finder = PairFinder::new(Judge::new(corpus, portions), corpus, nodes)?;
    let mut finder = PairFinder { chains, ..finder };
    let ends = finder.firsts();
    progress(0);
    let mut start = 0;
    while start < ends {
        let block = finder.block(start, ends);
        start = block.end as usize;
        let found: Vec<Vec<Pair>> = block
            .into_par_iter()
            .map_init(Seen::default, |seen, rank| finder.pairs_of(rank, seen))
            .collect::<Result<_>>()?;
        found.into_iter().flatten().try_for_each(&mut visit)?;
        finder.learn()?;
        progress(start);
    }
    Ok(finder.count_copies())
}

/// Links between documents of the same text, as the listing of copies needs them.
pub(super) enum CopyChains {
    /// No links: every document is listed for itself.
    Unused,
    /// Link from each document to the next one of its text. A text is one node, and the last document
    /// links to itself.
    Next(Vec<Rank>),
    /// No links: a text is one node, and its copies are not listed.
    Hidden,
    /// Link from each document to the previous one of its text. The first one links to itself.
    Previous { of: Vec<Rank>, lists_copies: bool },
}

impl CopyChains {
    pub(super) fn of_pairs(corpus: &Corpus<'_>, nodes: &Nodes, copies: CopyPairs) -> Self {
        match (copies, nodes.together()) {
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
fn link_copies(corpus: &Corpus<'_>, link: impl Fn(&mut [Rank], Rank, Rank)) -> Vec<Rank> {
    let mut links: Vec<Rank> = (0..corpus.len() as Rank).collect();
    let mut latest = links.clone();
    keys::equal_texts(corpus, |rank, earliest| {
        let before = std::mem::replace(&mut latest[earliest as usize], rank);
        link(&mut links, before, rank);
    });
    links
}

pub(super) struct PairFinder<'a> {
    corpus: &'a Corpus<'a>,
    judge: Judge<'a>,
    nodes: Nodes,
    chains: CopyChains,
    groups: Groups,
    reach: Reach<'a>,
    /// The numbers from 0 up to the size of the largest dense set: the positions in any dense set.
    seats: Vec<u32>,
}

impl<'a> PairFinder<'a> {
    pub(super) fn new(mut judge: Judge<'a>, corpus: &'a Corpus<'a>, nodes: Nodes) -> Result<Self> {
        let groups = keys::groups(corpus, &mut judge, &nodes)?;
        judge.learn_all_crowds(&groups)?;
        let sizes = (0..judge.crowds.count()).map(|crowd| judge.crowds.members(crowd as u32).len());
        Ok(Self {
            corpus,
            nodes,
            chains: CopyChains::Unused,
            groups,
            reach: Reach::of(corpus),
            seats: (0..sizes.max().unwrap_or(0) as u32).collect(),
            judge,
        })
    }

    /// Makes the bitmaps that pay off after the comparisons so far.
    pub(super) fn learn(&mut self) -> Result<()> {
        self.judge.learn_crowds()
    }

    /// Returns the number of documents that may be the earlier one of a pair. They come first in the
    /// order.
    pub(super) fn firsts(&self) -> usize {
        if self.corpus.given > 0 {
            self.corpus.given
        } else {
            self.corpus.len()
        }
    }

    /// Returns the number of documents that are copies of an earlier one within reach.
    fn count_copies(&self) -> usize {
        let ranks = 0..self.corpus.len() as Rank;
        match &self.chains {
            CopyChains::Unused => 0,
            CopyChains::Next(_) | CopyChains::Hidden => {
                ranks.filter(|&rank| !self.nodes.is_first(rank)).count()
            }
            CopyChains::Previous { of, .. } => {
                let is_copy = |&rank: &Rank| !self.is_earliest_within_reach(of, rank, rank);
                ranks.filter(is_copy).count()
            }
        }
    }

    fn is_given(&self, rank: Rank) -> bool {
        (rank as usize) < self.corpus.given
    }

    /// Returns `true` if no earlier document of the same text as `rank` is within reach of `other`.
    fn is_earliest_within_reach(&self, previous: &[Rank], rank: Rank, other: Rank) -> bool {
        let mut at = rank;
        loop {
            let before = previous[at as usize];
            if before == at {
                return true;
            }
            let both_given = self.is_given(before) && self.is_given(other);
            if !both_given && self.corpus.may_meet(before, other) {
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
    fn is_listed(&self, rank: Rank, other: Rank, route: Route) -> bool {
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
    fn later_copies(&self, rank: Rank) -> impl Iterator<Item = Rank> {
        let next = match &self.chains {
            CopyChains::Next(next) if self.nodes.is_first(rank) => Some(next),
            _ => None,
        };
        let follow = move |&at: &Rank| next.map(|next| next[at as usize]).filter(|&it| it != at);
        std::iter::successors(Some(rank), follow).skip(1)
    }

    /// Returns those of ascending ranks that come after a document and are within its reach. Given
    /// documents are paired with others only.
    fn later<'m>(&self, members: &'m [Rank], rank: Rank) -> &'m [Rank] {
        self.reach
            .of_those(rank, &members[self.before(members, rank)..])
    }

    /// Returns how many of ascending ranks come no later than a document, or are given like it.
    fn before(&self, members: &[Rank], rank: Rank) -> usize {
        let from = rank.max((self.corpus.given as Rank).saturating_sub(1));
        members.partition_point(|&other| other <= from)
    }

    /// Returns a block of documents from `start` that have not too many candidates together. Block
    /// lengths double, because the first blocks show whether bitmaps pay off.
    pub(super) fn block(&self, start: usize, end: usize) -> std::ops::Range<Rank> {
        let mut candidates = 0;
        let mut stop = start;
        let Portions {
            first_pairs,
            block,
            pairs,
            ..
        } = self.judge.portions;
        let end = end.min(start + start.clamp(first_pairs, block.max(first_pairs)));
        while stop < end && (stop == start || candidates < pairs) {
            let rank = stop as Rank;
            let groups = self.groups.around(rank);
            candidates += groups
                .map(|group| self.later(self.groups.ahead(group), rank).len())
                .sum::<usize>();
            stop += 1;
        }
        start as Rank..stop as Rank
    }

    /// What decides on pairs.
    pub(super) fn judge(&self) -> &Judge<'a> {
        &self.judge
    }

    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns the later documents that are candidates, ascending.
    pub(super) fn candidates_of(&self, rank: Rank, seen: &mut Seen) -> Vec<(Rank, Route)> {
        let later = |group| self.later(self.groups.ahead(group), rank);
        let from = |members: &[Rank]| self.before(members, rank)..members.len();
        self.meet(rank, seen, later, from);
        let mut others = Vec::new();
        for &other in seen.met() {
            let route = self.judge.candidates(rank, other);
            let listed = route.filter(|&route| self.is_listed(rank, other, route));
            others.extend(listed.map(|route| (other, route)));
        }
        let copies = self.later_copies(rank);
        others.extend(copies.map(|other| (other, Route::Exact)));
        others.sort_unstable_by_key(|&(other, _)| other);
        others
    }

    /// Returns the earlier documents that match one and that `joined` does not connect with it. Buckets
    /// for which `is_done` returns `true` are skipped.
    pub(super) fn apart_before(
        &self,
        rank: Rank,
        seen: &mut Seen,
        joined: impl Fn(Rank, Rank) -> bool,
        is_done: impl Fn(u32) -> bool,
    ) -> Result<Vec<Rank>> {
        let earlier = |group| match is_done(group) {
            true => &[][..],
            false => self
                .reach
                .of_those(rank, before(self.groups.ahead(group), rank)),
        };
        let up_to = |members: &[Rank]| 0..before(members, rank).len();
        self.meet(rank, seen, earlier, up_to);
        let mut matching = Vec::new();
        for &other in seen.met() {
            if !joined(rank, other)
                && let Some(route) = self.judge.candidates(rank, other)
                && self.judge.check(rank, other, route)?.is_some()
            {
                matching.push(other);
            }
        }
        Ok(matching)
    }

    /// Adds the relevant candidates from the buckets of a document to `seen`. Scans the relevant part
    /// of its dense set in place of dense buckets, if that is less work.
    fn meet<'m>(
        &self,
        rank: Rank,
        seen: &mut Seen,
        members: impl Fn(u32) -> &'m [Rank],
        seats: impl Fn(&[Rank]) -> std::ops::Range<usize>,
    ) {
        seen.begin();
        let met = || crowded(&self.groups, rank, &members);
        let scans = self.judge.crowds.seat(rank).and_then(|seat| {
            let can_scan = self.judge.crowds.can_scan(seat.crowd);
            let others = &self.seats[seats(self.judge.crowds.members(seat.crowd))];
            let scans = can_scan && self.judge.scans(met(), others.len());
            scans.then_some((seat, others))
        });
        let mut meet = |other| seen.meet(&self.judge, other);
        visit_groups(&self.groups, rank, scans.is_some(), members, &mut meet);
        if let Some((seat, others)) = scans {
            self.judge.crowds.scan(seat, others, meet);
        }
    }

    /// Returns the matching pairs of a document and later ones, ascending.
    pub(super) fn pairs_of(&self, rank: Rank, seen: &mut Seen) -> Result<Vec<Pair>> {
        let mut pairs = Vec::new();
        for (other, route) in self.candidates_of(rank, seen) {
            if let Some(similarity) = self.judge.check(rank, other, route)? {
                let (a, b) = (self.corpus.document(rank), self.corpus.document(other));
                pairs.push(Pair {
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
