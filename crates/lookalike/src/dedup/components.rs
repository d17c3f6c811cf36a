//! Connected components of the graph of all matching pairs.
//!
//! The verdicts already connect most documents. The remaining candidates are compared only where a
//! match would connect two components. Where the Hamming distance alone decides, the components follow
//! directly from the join of near fingerprints.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::batch_sizes::BatchSizes;
use super::corpus::{EqualTextNodes, MatchCorpus};
use super::deduplicator::DedupOutcome;
use super::pair_verifier::PairVerifier;
use super::pairs::PairFinder;
use super::seen_candidates::SeenCandidates;
use crate::candidates::UnionFind;
use crate::candidates::buckets::DocumentRank;
use crate::error::Result;
use crate::hamming::FingerprintCode;
use crate::hamming::join::{EqualRows, NearPair, visit_near_rows};
use crate::plan::SimilarityMeasure;
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
pub fn find_components(corpus: &MatchCorpus<'_>, outcome: &DedupOutcome) -> Result<Vec<DocId>> {
    components_in(BatchSizes::default(), corpus, outcome)
}

pub(crate) fn components_in(
    batch_sizes: BatchSizes,
    corpus: &MatchCorpus<'_>,
    outcome: &DedupOutcome,
) -> Result<Vec<DocId>> {
    let mut rank_of = vec![0; corpus.sketches.len()];
    (0..corpus.len() as DocumentRank)
        .for_each(|rank| rank_of[corpus.document_at(rank).index()] = rank);
    let nodes = EqualTextNodes::by_matches(corpus);
    let mut union = UnionFind::with_members(corpus.len());
    (0..corpus.len() as DocumentRank)
        .for_each(|rank| union.union_sets(rank, nodes.first_equal(rank)));
    for removal in &outcome.removals {
        union.union_sets(
            rank_of[removal.document.index()],
            rank_of[removal.kept.with.index()],
        );
    }
    match matching_distance(corpus) {
        Some(distance) if corpus.plan.fingerprint_bits() <= u64::BITS => {
            connect_near::<u64>(corpus, distance, &mut union)?;
        }
        Some(distance) => connect_near::<u128>(corpus, distance, &mut union)?,
        None => connect_matching(batch_sizes, corpus, nodes, &mut union)?,
    }
    let mut components = rank_of;
    for rank in 0..corpus.len() as DocumentRank {
        components[corpus.document_at(rank).index()] = union.find_first(rank);
    }
    Ok(components
        .into_iter()
        .map(|rank| corpus.document_at(rank))
        .collect())
}

/// Returns the Hamming distance within which documents match, if nothing but that and equal texts
/// decides.
fn matching_distance(corpus: &MatchCorpus<'_>) -> Option<Distance> {
    let plan = corpus.plan;
    let by_sketch =
        plan.match_settings().measure == SimilarityMeasure::Sketch && plan.block_plan().is_none();
    let anywhere =
        corpus.partitions.is_none() && corpus.window.is_none() && corpus.decisions.is_none();
    let anywhere = anywhere && !plan.compares_forms();
    plan.distance().filter(|_| by_sketch && anywhere)
}

/// Connects the documents whose fingerprints are within `distance`.
fn connect_near<C: FingerprintCode>(
    corpus: &MatchCorpus<'_>,
    distance: Distance,
    union: &mut UnionFind,
) -> Result<()> {
    let fingerprint = |rank: DocumentRank| corpus.sketches.fingerprint(corpus.document_at(rank));
    let all = (0..corpus.len() as DocumentRank).into_par_iter();
    let (ranks, codes): (Vec<DocumentRank>, Vec<C>) = all
        .filter_map(|rank| fingerprint(rank).map(|code| (rank, C::narrow_from(code))))
        .unzip();
    let union = Mutex::new(union);
    let connect = |near: &[NearPair]| {
        let mut union = union.lock().unwrap_or_else(PoisonError::into_inner);
        for near in near {
            union.union_sets(ranks[near.a as usize], ranks[near.b as usize]);
        }
        ControlFlow::Continue(())
    };
    let all = visit_near_rows(
        &codes,
        corpus.plan.fingerprint_bits(),
        distance,
        EqualRows::Linked,
        &connect,
    )?;
    debug_assert!(all.is_continue());
    Ok(())
}

/// Connects the documents that match, where `union` already connects some.
fn connect_matching(
    batch_sizes: BatchSizes,
    corpus: &MatchCorpus<'_>,
    nodes: EqualTextNodes,
    union: &mut UnionFind,
) -> Result<()> {
    let mut finder = PairFinder::new(PairVerifier::new(corpus, batch_sizes), corpus, nodes)?;
    let mut done = vec![false; finder.candidate_buckets().bucket_count()];
    let (mut start, mut length) = (0, batch_sizes.first_block);
    while start < corpus.len() {
        let block = start as DocumentRank..(start + length).min(corpus.len()) as DocumentRank;
        let buckets = finder.candidate_buckets();
        // A bucket inside one component cannot connect anything more.
        for group in block
            .clone()
            .flat_map(|rank| buckets.candidate_buckets(rank))
        {
            if !done[group as usize] {
                let mut members = buckets.members_ahead(group).windows(2);
                done[group as usize] = members.all(|pair| union.is_joined(pair[0], pair[1]));
            }
        }
        let joined = |a, b| union.is_joined(a, b);
        let is_done = |group: u32, rank| {
            let first = buckets.members_ahead(group).first();
            done[group as usize] && first.is_some_and(|&first| joined(rank, first))
        };
        let found: Vec<Vec<DocumentRank>> = block
            .clone()
            .into_par_iter()
            .map_init(SeenCandidates::default, |seen, rank| {
                finder.separate_before(rank, seen, joined, |group| is_done(group, rank))
            })
            .collect::<Result<_>>()?;
        for (rank, others) in block.clone().zip(found) {
            others
                .into_iter()
                .for_each(|other| union.union_sets(rank, other));
        }
        finder.build_due_bitmaps()?;
        start = block.end as usize;
        length = (2 * length).min(batch_sizes.block);
    }
    Ok(())
}
