//! A bounded sample of the pairs of a run, because a run can list more pairs than fit into memory.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use lookalike::DocId;
use lookalike::dedup::{DocumentRemoval, MatchingPair};
use lookalike::similarity::{DocumentMatch, Route};

use crate::run::report::band_sample::hash_pair;
use crate::run::report::budgets::NEAREST_REMOVALS;

/// Pairs that are drawn. More rows than these fit into no report.
const DRAWN_PAIRS: usize = 150_000;

/// Counts all pairs and keeps those nearest to the threshold and others drawn.
#[derive(Default)]
pub(in crate::run) struct PairSample {
    total: usize,
    /// Pairs by hundredths of similarity, and those of exactly 1 last.
    similarities: Vec<u64>,
    nearest: BinaryHeap<RankedPair>,
    drawn: BinaryHeap<RankedPair>,
}

/// A pair, ordered by a number and then by its documents.
struct RankedPair {
    number: u64,
    pair: MatchingPair,
}

impl RankedPair {
    fn sort_key(&self) -> (u64, DocId, DocId) {
        (self.number, self.pair.b, self.pair.a)
    }
}

impl PartialEq for RankedPair {
    fn eq(&self, other: &Self) -> bool {
        self.sort_key() == other.sort_key()
    }
}

impl Eq for RankedPair {}

impl PartialOrd for RankedPair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedPair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PairSample {
    pub(in crate::run) fn offer_pair(&mut self, pair: &MatchingPair) {
        let similarity = pair.similarity.get();
        self.total += 1;
        self.similarities.resize(101, 0);
        self.similarities[super::hundredth_of(similarity)] += 1;
        let sampled = |number| RankedPair {
            number,
            pair: *pair,
        };
        if pair.route != Route::Exact {
            // Numbers from 0 to 1 are ordered as their bits are.
            self.nearest.push(sampled(similarity.to_bits()));
            if self.nearest.len() > NEAREST_REMOVALS {
                self.nearest.pop();
            }
        }
        self.drawn.push(sampled(hash_pair(pair)));
        if self.drawn.len() > DRAWN_PAIRS {
            self.drawn.pop();
        }
    }

    /// Returns the number of all pairs, their counts by similarity, and the sampled pairs by their documents: the later
    /// document of each as the removed one, the earlier one as the kept one.
    pub(in crate::run) fn into_parts(self) -> (usize, Vec<u64>, Vec<DocumentRemoval>) {
        let sampled = self.nearest.into_iter().chain(self.drawn);
        let mut pairs: Vec<MatchingPair> = sampled.map(|sampled_pair| sampled_pair.pair).collect();
        pairs.sort_unstable_by_key(|pair| (pair.b, pair.a));
        pairs.dedup_by_key(|pair| (pair.b, pair.a));
        let removals = pairs.into_iter().map(|pair| DocumentRemoval {
            document: pair.b,
            kept: DocumentMatch {
                with: pair.a,
                similarity: pair.similarity,
                route: pair.route,
            },
        });
        let mut similarities = self.similarities;
        similarities.resize(101, 0);
        (self.total, similarities, removals.collect())
    }
}
