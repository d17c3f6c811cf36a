//! The walk through the total order: pairs and verdicts.
//!
//! *x is kept iff no kept y before x matches it.* So a document is compared with kept ones only, a
//! removed one always meets the threshold with the kept one that it names, and a hot bucket costs
//! what its kept documents cost. The walk goes block by block: within a block, documents are first
//! compared with all that was kept before it, in parallel; then the candidates among those of the
//! block that may still be kept are found and their features made, in parallel; then these are
//! compared with one another; then the verdicts fall in order. The result is that of the plain loop
//! over all documents, whatever the number of threads.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::cache::Texts;
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

    /// Equal documents are one only where they match the same others: what punctuation makes of
    /// sentences is not in the tokens.
    fn alike(corpus: &Corpus<'_>) -> Self {
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

pub(super) struct Walk<'a> {
    corpus: &'a Corpus<'a>,
    judge: Judge<'a>,
    nodes: Nodes,
    groups: Groups,
    kept: Vec<bool>,
    /// The kept documents of the crowds.
    kept_crowd: Vec<Rank>,
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
            judge,
            nodes,
            groups,
            kept: vec![false; corpus.len()],
            kept_crowd: Vec::new(),
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
        let mut findings: Vec<Finding> = block
            .clone()
            .into_par_iter()
            .map_init(Seen::default, |seen, rank| {
                self.look_up(rank, block.start, seen)
            })
            .collect::<Result<_>>()?;
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
        let crowd: Vec<Rank> = (start..start + findings.len() as Rank)
            .filter(|&rank| may_be_kept(rank) && self.is_of_crowd(rank))
            .collect();
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
            self.candidates(first, before(&crowd, below), ahead, |other| {
                if may_be_kept(other) {
                    seen.meet(&self.judge, other);
                }
            });
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

    /// Compares a document with those kept before the block.
    fn look_up(&self, rank: Rank, start: Rank, seen: &mut Seen) -> Result<Finding> {
        let mut finding = Finding::default();
        self.fetch_ahead(rank);
        let first = self.nodes.first(rank);
        if self.is_given(rank) {
            return Ok(finding);
        }
        finding.below = rank;
        if first < start && self.kept[first as usize] {
            finding.offer(first, Route::Exact, Some(Similarity::ONE));
            if !self.is_given(first) {
                finding.below = 0;
                return Ok(finding);
            }
            // One given before it may be as similar: given ones are kept whatever they match.
            finding.below = first;
        }
        seen.begin();
        let below = finding.below;
        let kept = |group| before(self.groups.kept(group), below);
        self.candidates(first, before(&self.kept_crowd, below), kept, |other| {
            seen.meet(&self.judge, other);
        });
        for &other in seen.met() {
            if let Some(route) = self.judge.candidates(rank, other) {
                finding.offer(other, route, self.judge.check(rank, other, route)?);
            }
        }
        Ok(finding)
    }

    /// Calls back with those that may be candidates of a document, of the members of its groups and
    /// of the crowd.
    fn candidates<'m>(
        &self,
        first: Rank,
        crowd: &[Rank],
        members: impl Fn(u32) -> &'m [Rank],
        visit: impl FnMut(Rank),
    ) {
        candidates((&self.groups, &self.judge), first, crowd, members, visit);
    }

    fn is_of_crowd(&self, rank: Rank) -> bool {
        self.nodes.is_first(rank) && self.judge.bitmaps.hold(rank)
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
        if kept && self.is_of_crowd(rank) {
            self.kept_crowd.push(rank);
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

/// Calls back with the members of the groups around a document; where those of the crowds are many,
/// with what bitmaps leave of the crowd instead. Some come more than once.
#[inline]
fn candidates<'m>(
    (groups, judge): (&Groups, &Judge<'_>),
    first: Rank,
    crowd: &[Rank],
    members: impl Fn(u32) -> &'m [Rank],
    mut visit: impl FnMut(Rank),
) {
    let crowded = groups.crowded_around(first);
    let met = crowded.map(|group| members(group).len()).sum();
    let scans = judge.scans(first, crowd, met);
    for group in groups.around(first) {
        if !(scans && groups.is_crowded(group)) {
            members(group).iter().for_each(|&other| visit(other));
        }
    }
    if scans {
        judge.scan(first, crowd, visit);
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

    fn candidates(&mut self, judge: &Judge<'_>, rank: Rank, other: Rank) -> Option<Route> {
        if self.is_new(other) {
            judge.candidates(rank, other)
        } else {
            None
        }
    }
}

/// Finds every pair that matches, ordered by the earlier document, then the later one, in the total
/// order.
///
/// With `all`, every document takes part; otherwise of equal texts only the first, unless there is
/// a window. Where some documents are given, pairs are of a given one and another, and all take
/// part. Returns how many documents are represented by an equal one.
///
/// Calls `progress` with the number of documents done.
///
/// # Errors
/// If what a document is compared by cannot be had again, or `visit` fails.
pub fn find_pairs<E: From<Error>>(
    corpus: &Corpus<'_>,
    all: bool,
    visit: impl FnMut(Pair) -> Result<(), E>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<usize, E> {
    pairs_in(Portions::default(), corpus, all, visit, progress)
}

pub(super) fn pairs_in<E: From<Error>>(
    portions: Portions,
    corpus: &Corpus<'_>,
    all: bool,
    mut visit: impl FnMut(Pair) -> Result<(), E>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<usize, E> {
    let finder = PairFinder::new(Judge::new(corpus, portions), corpus, all)?;
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
        progress(start);
    }
    Ok(finder.equal())
}

pub(super) struct PairFinder<'a> {
    corpus: &'a Corpus<'a>,
    judge: Judge<'a>,
    nodes: Nodes,
    groups: Groups,
    /// The documents of the crowds.
    crowd: Vec<Rank>,
}

impl<'a> PairFinder<'a> {
    pub(super) fn new(mut judge: Judge<'a>, corpus: &'a Corpus<'a>, all: bool) -> Result<Self> {
        let nodes = if all || corpus.given > 0 {
            Nodes::apart(corpus)
        } else {
            Nodes::new(corpus)
        };
        let groups = keys::groups(corpus, &mut judge, &nodes)?;
        let ranks = 0..corpus.len() as Rank;
        let is_of_crowd = |&rank: &Rank| nodes.is_first(rank) && judge.bitmaps.hold(rank);
        let crowd = ranks.filter(is_of_crowd).collect();
        Ok(Self {
            corpus,
            judge,
            nodes,
            groups,
            crowd,
        })
    }

    /// How many documents may be the earlier one of a pair: those that come first.
    pub(super) fn firsts(&self) -> usize {
        if self.corpus.given > 0 {
            self.corpus.given
        } else {
            self.corpus.len()
        }
    }

    /// How many documents are represented by an equal one.
    fn equal(&self) -> usize {
        let ranks = 0..self.corpus.len() as Rank;
        ranks.filter(|&rank| !self.nodes.is_first(rank)).count()
    }

    /// Those of ascending ranks that come after a document, where given documents meet others only.
    fn later<'m>(&self, members: &'m [Rank], rank: Rank) -> &'m [Rank] {
        let from = rank.max((self.corpus.given as Rank).saturating_sub(1));
        &members[members.partition_point(|&other| other <= from)..]
    }

    /// A block of documents from `start` that have not too many candidates together.
    pub(super) fn block(&self, start: usize, end: usize) -> std::ops::Range<Rank> {
        let mut candidates = 0;
        let mut stop = start;
        let Portions { block, pairs, .. } = self.judge.portions;
        while stop < end && stop < start + block && (stop == start || candidates < pairs) {
            let rank = stop as Rank;
            let groups = self.groups.around(rank);
            candidates += groups
                .map(|group| self.later(self.groups.ahead(group), rank).len())
                .sum::<usize>();
            stop += 1;
        }
        start as Rank..stop as Rank
    }

    /// The later documents that are candidates, ascending.
    fn candidates_of(&self, rank: Rank, seen: &mut Seen) -> Vec<(Rank, Route)> {
        seen.begin();
        let mut others = Vec::new();
        candidates(
            (&self.groups, &self.judge),
            rank,
            self.later(&self.crowd, rank),
            |group| self.later(self.groups.ahead(group), rank),
            |other| seen.meet(&self.judge, other),
        );
        for &other in seen.met() {
            let route = self.judge.candidates(rank, other);
            others.extend(route.map(|route| (other, route)));
        }
        others.sort_unstable_by_key(|&(other, _)| other);
        others
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

/// The components of a run: documents connected by verified pairs, given the verdicts. For every
/// document the first of its component in the total order.
///
/// The pairs of the verdicts connect most; what remains is compared only where it would connect two
/// components.
///
/// # Errors
/// If what a document is compared by cannot be had again.
pub fn find_components(corpus: &Corpus<'_>, outcome: &Outcome) -> Result<Vec<DocId>> {
    components_in(Portions::default(), corpus, outcome)
}

pub(super) fn components_in(
    portions: Portions,
    corpus: &Corpus<'_>,
    outcome: &Outcome,
) -> Result<Vec<DocId>> {
    let mut judge = Judge::new(corpus, portions);
    let nodes = Nodes::alike(corpus);
    let groups = keys::groups(corpus, &mut judge, &nodes)?;
    let mut rank_of = vec![0; corpus.sketches.len()];
    (0..corpus.len() as Rank).for_each(|rank| rank_of[corpus.document(rank).index()] = rank);
    let mut union = Union::of(corpus.len());
    (0..corpus.len() as Rank).for_each(|rank| union.join(rank, nodes.first(rank)));
    for removal in &outcome.removals {
        union.join(
            rank_of[removal.document.index()],
            rank_of[removal.kept.with.index()],
        );
    }
    let mut done = vec![false; groups.count()];
    for start in (0..corpus.len()).step_by(portions.block) {
        let block = start as Rank..(start + portions.block).min(corpus.len()) as Rank;
        // A group within one component has nothing left to connect.
        for group in block.clone().flat_map(|rank| groups.around(rank)) {
            if !done[group as usize] {
                let members = groups.ahead(group);
                done[group as usize] = members
                    .windows(2)
                    .all(|pair| union.joined(pair[0], pair[1]));
            }
        }
        let found: Vec<Vec<Rank>> = block
            .clone()
            .into_par_iter()
            .map_init(Seen::default, |seen, rank| {
                let mut connected = Vec::new();
                seen.begin();
                for group in groups.around(rank) {
                    if done[group as usize] && union.joined(rank, groups.ahead(group)[0]) {
                        continue;
                    }
                    for &other in groups
                        .ahead(group)
                        .iter()
                        .take_while(|&&other| other < rank)
                    {
                        if union.joined(rank, other) {
                            continue;
                        }
                        if let Some(route) = seen.candidates(&judge, rank, other)
                            && judge.check(rank, other, route)?.is_some()
                        {
                            connected.push(other);
                        }
                    }
                }
                Ok(connected)
            })
            .collect::<Result<_>>()?;
        for (rank, others) in block.zip(found) {
            others.into_iter().for_each(|other| union.join(rank, other));
        }
    }
    let mut components = rank_of;
    for rank in 0..corpus.len() as Rank {
        components[corpus.document(rank).index()] = union.first(rank);
    }
    Ok(components
        .into_iter()
        .map(|rank| corpus.document(rank))
        .collect())
}

/// Union-find; the root of a set is its smallest member.
pub(crate) struct Union {
    parent: Vec<Rank>,
}

impl Union {
    /// So many sets of one member each.
    pub(crate) fn of(members: usize) -> Self {
        Self {
            parent: (0..members as Rank).collect(),
        }
    }

    fn first(&self, mut rank: Rank) -> Rank {
        while self.parent[rank as usize] != rank {
            rank = self.parent[rank as usize];
        }
        rank
    }

    fn joined(&self, a: Rank, b: Rank) -> bool {
        self.first(a) == self.first(b)
    }

    pub(crate) fn join(&mut self, a: Rank, b: Rank) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b) as usize] = a.min(b);
    }

    /// The first of a set, with every path on the way halved.
    pub(crate) fn root(&mut self, mut rank: Rank) -> Rank {
        while self.parent[rank as usize] != rank {
            let grandparent = self.parent[self.parent[rank as usize] as usize];
            self.parent[rank as usize] = grandparent;
            rank = grandparent;
        }
        rank
    }
}
