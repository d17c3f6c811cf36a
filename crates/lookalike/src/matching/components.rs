//! Connected components of the graph of all matching pairs.
//!
//! The verdicts already connect most documents. The remaining candidates are compared only where a
//! match would connect two components. Where the Hamming distance alone decides, the components follow
//! directly from the join of near fingerprints.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::groups::Rank;
use super::judge::Judge;
use super::portions::Portions;
use super::walk::{Corpus, Nodes, Outcome, PairFinder, Seen};
use crate::error::Result;
use crate::hamming::Code;
use crate::hamming::join::{Equal, Near, near_rows};
use crate::plan::Measure;
use crate::types::{Distance, DocId};

/// Finds the components of a run, given its verdicts. Returns, for every document, the first document
/// of its component in the total order.
///
/// The pairs of the verdicts connect most documents. Other candidates are compared only if a match
/// would connect two components.
///
/// The [module](super) has an example.
///
/// # Errors
/// Fails if `corpus.texts` cannot provide a document again, if texts are too long for the measure, or
/// if the documents share more than 2³² − 1 bucket keys.
pub fn find_components(corpus: &Corpus<'_>, outcome: &Outcome) -> Result<Vec<DocId>> {
    components_in(Portions::default(), corpus, outcome)
}

pub(super) fn components_in(
    portions: Portions,
    corpus: &Corpus<'_>,
    outcome: &Outcome,
) -> Result<Vec<DocId>> {
    let mut rank_of = vec![0; corpus.sketches.len()];
    (0..corpus.len() as Rank).for_each(|rank| rank_of[corpus.document(rank).index()] = rank);
    let nodes = Nodes::alike(corpus);
    let mut union = Union::of(corpus.len());
    (0..corpus.len() as Rank).for_each(|rank| union.join(rank, nodes.first(rank)));
    for removal in &outcome.removals {
        union.join(
            rank_of[removal.document.index()],
            rank_of[removal.kept.with.index()],
        );
    }
    match nearness(corpus) {
        Some(distance) if corpus.plan.bits() <= u64::BITS => {
            connect_near::<u64>(corpus, distance, &mut union)?;
        }
        Some(distance) => connect_near::<u128>(corpus, distance, &mut union)?,
        None => connect_matching(portions, corpus, nodes, &mut union)?,
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

/// Returns the Hamming distance within which documents match, if nothing but that and equal texts
/// decides.
fn nearness(corpus: &Corpus<'_>) -> Option<Distance> {
    let plan = corpus.plan;
    let by_sketch = plan.settings().measure == Measure::Sketch && plan.blocks().is_none();
    let anywhere = corpus.parts.is_none() && corpus.window.is_none();
    plan.distance().filter(|_| by_sketch && anywhere)
}

/// Connects the documents whose fingerprints are within `distance`.
fn connect_near<C: Code>(corpus: &Corpus<'_>, distance: Distance, union: &mut Union) -> Result<()> {
    let fingerprint = |rank: Rank| corpus.sketches.fingerprint(corpus.document(rank));
    let all = (0..corpus.len() as Rank).into_par_iter();
    let (ranks, codes): (Vec<Rank>, Vec<C>) = all
        .filter_map(|rank| fingerprint(rank).map(|code| (rank, C::narrow(code))))
        .unzip();
    let union = Mutex::new(union);
    let connect = |near: &[Near]| {
        let mut union = union.lock().unwrap_or_else(PoisonError::into_inner);
        for near in near {
            union.join(ranks[near.a as usize], ranks[near.b as usize]);
        }
        ControlFlow::Continue(())
    };
    let all = near_rows(
        &codes,
        corpus.plan.bits(),
        distance,
        Equal::Linked,
        &connect,
    )?;
    debug_assert!(all.is_continue());
    Ok(())
}

/// Connects the documents that match, where `union` already connects some.
fn connect_matching(
    portions: Portions,
    corpus: &Corpus<'_>,
    nodes: Nodes,
    union: &mut Union,
) -> Result<()> {
    let mut finder = PairFinder::new(Judge::new(corpus, portions), corpus, nodes)?;
    let mut done = vec![false; finder.groups().count()];
    let (mut start, mut length) = (0, portions.first_block);
    while start < corpus.len() {
        let block = start as Rank..(start + length).min(corpus.len()) as Rank;
        let groups = finder.groups();
        // A bucket inside one component cannot connect anything more.
        for group in block.clone().flat_map(|rank| groups.around(rank)) {
            if !done[group as usize] {
                let mut members = groups.ahead(group).windows(2);
                done[group as usize] = members.all(|pair| union.joined(pair[0], pair[1]));
            }
        }
        let joined = |a, b| union.joined(a, b);
        let is_done = |group: u32, rank| {
            let first = groups.ahead(group).first();
            done[group as usize] && first.is_some_and(|&first| joined(rank, first))
        };
        let found: Vec<Vec<Rank>> = block
            .clone()
            .into_par_iter()
            .map_init(Seen::default, |seen, rank| {
                finder.apart_before(rank, seen, joined, |group| is_done(group, rank))
            })
            .collect::<Result<_>>()?;
        for (rank, others) in block.clone().zip(found) {
            others.into_iter().for_each(|other| union.join(rank, other));
        }
        finder.learn()?;
        start = block.end as usize;
        length = (2 * length).min(portions.block);
    }
    Ok(())
}

/// A union-find structure. The root of a set is its smallest member.
pub(crate) struct Union {
    parent: Vec<Rank>,
}

impl Union {
    /// Returns `members` sets of one member each.
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

    /// Returns the smallest member of a set. Halves the path to it, so that later look-ups are shorter.
    pub(crate) fn root(&mut self, mut rank: Rank) -> Rank {
        while self.parent[rank as usize] != rank {
            let grandparent = self.parent[self.parent[rank as usize] as usize];
            self.parent[rank as usize] = grandparent;
            rank = grandparent;
        }
        rank
    }
}
