//! The walk through the total order: pairs and verdicts.
//!
//! *x is kept iff no kept y before x matches it.* So a document is compared with kept ones only, a
//! removed one always meets the threshold with the kept one that it names, and a hot bucket costs
//! what its kept documents cost. The walk goes block by block: within a block, documents are first
//! compared with all that was kept before it, in parallel; then the candidates among those of the
//! block that may still be kept are found and their features made, in parallel; then these are
//! compared with one another; then the verdicts fall in order. The result is that of the plain loop
//! over all documents, whatever the number of threads.

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

/// The documents of a run and the order in which they count.
#[derive(Clone, Copy)]
pub struct Corpus<'a> {
    /// How candidates are found and checked.
    pub plan: &'a Plan,
    /// What is remembered of every document.
    pub sketches: &'a Sketches,
    /// Gives again what documents are compared by.
    pub texts: &'a dyn Texts,
    /// The documents in their total order; None if that is the order read.
    pub order: Option<&'a [DocId]>,
    /// Documents match only if these values are equal.
    pub parts: Option<&'a [u64]>,
    /// Documents match only if their times differ by no more than this.
    pub window: Option<Window<'a>>,
    /// So many documents, the first of the order, count as kept whatever they match.
    pub given: usize,
}

/// A limit on how far apart in time two documents may be.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The time of every document, in the order read.
    pub times: &'a [f64],
    /// The largest difference that counts, in the same unit.
    pub width: f64,
}

impl Corpus<'_> {
    /// Whether two documents may match whatever their texts are: they are of one part, within the
    /// window, and not both given.
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

    /// Whether part and window let two documents meet.
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

    /// Whether the order is that of the times of a window, so that what a document reaches stands
    /// side by side.
    fn goes_by_time(&self) -> bool {
        let time = |times: &[f64], rank: usize| times[self.document(rank as Rank).index()];
        let in_order = |Window { times, .. }: Window<'_>| {
            (1..self.len()).all(|rank| time(times, rank - 1) <= time(times, rank))
        };
        self.window.is_some_and(in_order)
    }

    /// The part of a document; the same for all if there are no parts.
    pub(super) fn part(&self, rank: Rank) -> u64 {
        self.parts
            .map_or(0, |parts| parts[self.document(rank).index()])
    }

    /// A key that only documents of the same part share.
    pub(super) fn parted(&self, key: u64, rank: Rank) -> u64 {
        match self.parts {
            None => key,
            Some(parts) => mix(key ^ parts[self.document(rank).index()]),
        }
    }
}

/// A removed document and its evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Removal {
    /// The document that is removed.
    pub document: DocId,
    /// The kept document that is most similar to it, the earliest of several.
    pub kept: Match,
}

/// The verdicts of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The removed documents in their total order; all others are kept.
    pub removals: Vec<Removal>,
}

/// A pair that matches, the earlier document first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The earlier document.
    pub a: DocId,
    /// The later document.
    pub b: DocId,
    /// How similar they are.
    pub similarity: Similarity,
    /// How the pair was found.
    pub route: Route,
}

/// Walks the documents in their total order and decides which are kept.
///
/// Calls `progress` with the number of documents decided: with 0 once the candidates are known, then
/// from time to time.
///
/// # Errors
/// If what a document is compared by cannot be had again.
pub fn find_verdicts(corpus: &Corpus<'_>, progress: &(dyn Fn(usize) + Sync)) -> Result<Outcome> {
    follow_verdicts(corpus, &|decided, _| progress(decided))
}

/// The same for somebody who uses verdicts as they fall: calls `told` with the number of documents
/// of the order that are decided and the removals among those since the last call. These verdicts
/// are final, unless an error follows.
///
/// # Errors
/// If what a document is compared by cannot be had again.
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

/// Which documents are equal after normalisation.
pub(super) struct Nodes {
    /// The first document with the same key, by rank. With a window, every document is its own:
    /// equal texts may be out of each other's reach.
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

    /// Of the documents whose pairs are looked for.
    pub(super) fn of_pairs(corpus: &Corpus<'_>, copies: CopyPairs) -> Self {
        if copies == CopyPairs::All || corpus.given > 0 {
            Self::apart(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Equal documents are one only where they match the same others: what punctuation makes of
    /// sentences is not in the tokens.
    pub(super) fn alike(corpus: &Corpus<'_>) -> Self {
        if corpus.plan.sentences().is_some() {
            Self::apart(corpus)
        } else {
            Self::new(corpus)
        }
    }

    /// Every document is its own.
    fn apart(corpus: &Corpus<'_>) -> Self {
        Self {
            first: (0..corpus.len() as Rank).collect(),
            together: false,
        }
    }

    /// Whether equal documents are one node.
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

/// Which documents a window lets meet, where the order is that of time.
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

    /// Leaves out, from both ends of ascending ranks, those that are too far from a document.
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
    /// The kept documents of every crowd, by their seats.
    kept_seats: Vec<Vec<u32>>,
    removals: Vec<Removal>,
}

/// Fewer pairs are not worth waking a thread for.
const FEW_PAIRS: usize = 16;

/// So many documents before they are looked up, their groups are asked for, and then the members.
const HEADS_AHEAD: Rank = 16;
const MEMBERS_AHEAD: Rank = 8;

/// What is known of a document of the block before its verdict.
#[derive(Default)]
struct Finding {
    /// The best match among the documents kept before the block.
    best: Option<Best>,
    /// Candidates inside the block are before this one.
    below: Rank,
    /// These candidates, with their similarity if they were compared and match.
    inner: Vec<(Rank, Route, Option<Similarity>)>,
}

/// A document that is looked up.
#[derive(Default)]
struct LookUp<'w> {
    rank: Rank,
    finding: Finding,
    /// What is gone through instead of crowded groups, if that is less work.
    scanned: Option<Scanned<'w>>,
}

/// Kept documents of a crowd that are gone through by their bitmaps.
struct Scanned<'w> {
    seat: Seat,
    /// The seats of these documents.
    seats: &'w [u32],
    /// Those that are not ruled out.
    left: Vec<Rank>,
}

#[derive(Clone, Copy)]
struct Best {
    rank: Rank,
    similarity: Similarity,
    route: Route,
}

impl Finding {
    /// Takes the more similar, of equals the earlier.
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
    /// With all candidates known and nothing decided.
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

    /// Goes block by block; after each it tells how many documents are decided and which of the
    /// block are removed, and stops where it is told to.
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

    /// Finds the candidates inside the block: those that match an earlier one are not kept, so
    /// nobody needs to be compared with them.
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

    /// Makes the features that comparing inside the block will ask for, so that all threads share
    /// this work and not only the few documents that are decided together.
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

    /// What is known of a document before any other is looked at.
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
            // One given before it may be as similar: given ones are kept whatever they match.
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

    /// The kept members of a group that come before some document and are within reach of another.
    fn kept_in(&self, group: u32, rank: Rank, below: Rank) -> &[Rank] {
        self.reach
            .of_those(rank, before(self.groups.kept(group), below))
    }

    /// Goes through the crowds that documents need, a tile after another.
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

    /// Where a document stands in a crowd, and the seats there that are gone through instead of `met`
    /// members of groups, if they are.
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

    /// Counts whom a document has met, as long as its crowd is not gone through by bitmaps.
    fn count_met(&self, first: Rank, seen: &Seen) {
        let crowds = &self.judge.crowds;
        let seat = crowds.seat(first).filter(|it| !crowds.can_scan(it.crowd));
        if let Some(seat) = seat {
            crowds.meet(seat.crowd, seen.met().len());
        }
    }

    /// Those of ascending seats whose documents come before one.
    fn seats_before<'s>(&self, crowd: u32, seats: &'s [u32], below: Rank) -> &'s [u32] {
        let members = self.judge.crowds.members(crowd);
        &seats[..seats.partition_point(|&seat| members[seat as usize] < below)]
    }

    /// The seat of a document, unless an equal one before it has it.
    fn own_seat(&self, rank: Rank) -> Option<Seat> {
        let seat = self.judge.crowds.seat(rank);
        seat.filter(|_| self.nodes.is_first(rank))
    }

    /// Asks for the groups of documents that are looked up soon: they stand anywhere in memory.
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

    /// Compares documents of the block, from `start` on, with those before them in the block: with
    /// the kept ones before `start`, and with those behind it that may still be kept.
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

/// Those of ascending ranks that come before one.
#[inline]
fn before(ranks: &[Rank], below: Rank) -> &[Rank] {
    match ranks.last() {
        Some(&last) if last >= below => &ranks[..ranks.partition_point(|&rank| rank < below)],
        _ => ranks,
    }
}

/// How many members of crowded groups a document meets, some counted more than once.
fn crowded<'m>(groups: &Groups, first: Rank, members: impl Fn(u32) -> &'m [Rank]) -> usize {
    let own = groups.of(first).iter();
    let crowded = own.filter(|&&group| groups.is_crowded(group));
    let met = crowded.flat_map(|&group| groups.reach(group));
    met.map(|group| members(group).len()).sum()
}

/// Calls back with the members of the groups that a document meets, but for crowded ones if these
/// are looked for in another way. Some come more than once.
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

/// The documents that a look-up has met already: they stand in several groups.
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

    /// Meets a document, of which what decides whether it is a candidate is asked for.
    fn meet(&mut self, judge: &Judge<'_>, other: Rank) {
        if self.is_new(other) {
            judge.fetch(other);
        }
    }

    /// The documents met, in the order in which they were.
    fn met(&self) -> &[Rank] {
        &self.met
    }
}

/// Which pairs are listed of documents whose texts are equal after normalisation.
///
/// Two documents are within reach of each other if part and window let them match and not both are
/// given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CopyPairs {
    /// Each copy with the earliest document of its text within its reach. A pair of different texts
    /// names of each the earliest document within reach of the other. Where some documents are
    /// given, this is [`All`](Self::All), because copies that are both given, or both not, are not
    /// paired with each other.
    #[default]
    WithEarliest,
    /// Every combination.
    All,
    /// None; pairs of different texts are those of [`WithEarliest`](Self::WithEarliest), also where
    /// some documents are given.
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

/// Finds every pair that matches, ordered by the earlier document, then the later one, in the total
/// order. Where some documents are given, pairs are of a given one and another.
///
/// Returns how many documents are a copy of an earlier one within reach, or 0 where every
/// combination is listed.
///
/// Calls `progress` with the number of documents done.
///
/// # Errors
/// If what a document is compared by cannot be had again, or `visit` fails.
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

/// How documents lead to those of the same text, by what is listed of these.
pub(super) enum CopyChains {
    /// Every document stands for itself.
    Unused,
    /// A text is one node: its first document leads to the next one, and so on; the last one leads to
    /// itself.
    Next(Vec<Rank>),
    /// A text is one node, and its copies are not listed.
    Hidden,
    /// Every document leads to the one before it, and the first to itself.
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

/// Every document with a link to itself, where `link` is called for each two that follow one another
/// among the documents of a text.
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
    /// As many seats as the largest crowd has.
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

    /// Makes use of what a block has shown.
    pub(super) fn learn(&mut self) -> Result<()> {
        self.judge.learn_crowds()
    }

    /// How many documents may be the earlier one of a pair: those that come first.
    pub(super) fn firsts(&self) -> usize {
        if self.corpus.given > 0 {
            self.corpus.given
        } else {
            self.corpus.len()
        }
    }

    /// How many documents are copies of an earlier one within reach.
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
            // In the order of time, those before are still farther away.
            if self.reach.window.is_some() {
                return true;
            }
            at = before;
        }
    }

    /// Returns `true` if the pair of a document and a later one is listed, according to which pairs of
    /// copies are listed.
    fn is_listed(&self, rank: Rank, other: Rank, route: Route) -> bool {
        let CopyChains::Previous { of, lists_copies } = &self.chains else {
            return true;
        };
        let is_copy = route == Route::Exact;
        (*lists_copies || !is_copy)
            && self.is_earliest_within_reach(of, rank, other)
            && (is_copy || self.is_earliest_within_reach(of, other, rank))
    }

    /// The copies of a document that are listed with it and that its groups do not have, ascending.
    fn later_copies(&self, rank: Rank) -> impl Iterator<Item = Rank> {
        let next = match &self.chains {
            CopyChains::Next(next) if self.nodes.is_first(rank) => Some(next),
            _ => None,
        };
        let follow = move |&at: &Rank| next.map(|next| next[at as usize]).filter(|&it| it != at);
        std::iter::successors(Some(rank), follow).skip(1)
    }

    /// Those of ascending ranks that come after a document and are within its reach, where given
    /// documents meet others only.
    fn later<'m>(&self, members: &'m [Rank], rank: Rank) -> &'m [Rank] {
        self.reach
            .of_those(rank, &members[self.before(members, rank)..])
    }

    /// How many of ascending ranks come no later than a document, or are given like it.
    fn before(&self, members: &[Rank], rank: Rank) -> usize {
        let from = rank.max((self.corpus.given as Rank).saturating_sub(1));
        members.partition_point(|&other| other <= from)
    }

    /// A block of documents from `start` that have not too many candidates together. Blocks double:
    /// the first ones show what pays.
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

    /// The later documents that are candidates, ascending.
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

    /// The earlier documents that match one and are not `joined` with it; groups that are done are
    /// left out.
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

    /// Meets the members of groups that are in question, or instead of those of crowded groups what
    /// is in question of the whole crowd.
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

    /// The pairs of a document and a later one, ascending.
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
