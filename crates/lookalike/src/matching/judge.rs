//! What is a candidate, and what matches: decided from two documents alone.

use super::cache::FeatureCache;
use super::groups::Rank;
use super::keys::band_key;
use super::portions::Portions;
use super::walk::Corpus;
use crate::error::Result;
use crate::plan::{Measure, Plan};
use crate::sketch::equal_slots;
use crate::types::{DocId, Similarity};
use crate::verify;

/// How a pair was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The texts are equal after normalisation.
    Exact,
    /// By the exact join of short documents.
    Join,
    /// By a shared band of their MinHash signatures.
    MinHash,
    /// By the Hamming distance of their SimHash fingerprints.
    SimHash,
}

impl Route {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Join => "join",
            Self::MinHash => "minhash",
            Self::SimHash => "simhash",
        }
    }
}

/// A pair that matches, seen from one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The other document.
    pub with: DocId,
    /// How similar it is.
    pub similarity: Similarity,
    /// How it was found.
    pub route: Route,
}

/// Decides on pairs of documents.
pub(super) struct Judge<'a> {
    corpus: &'a Corpus<'a>,
    plan: &'a Plan,
    pub(super) portions: Portions,
    pub(super) features: FeatureCache<'a>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(corpus: &'a Corpus<'a>, portions: Portions) -> Self {
        let features = FeatureCache::new(corpus.sketches, corpus.texts, portions.remembered);
        Self {
            corpus,
            plan: corpus.plan,
            portions,
            features,
        }
    }

    /// How the plan makes these two candidates, if it does. Cheap: no features are looked at.
    pub(super) fn candidates(&self, a: Rank, b: Rank) -> Option<Route> {
        if !self.corpus.may_meet(a, b) {
            return None;
        }
        let (a, b) = (self.corpus.document(a), self.corpus.document(b));
        let sketches = self.corpus.sketches;
        let (brief_a, brief_b) = (sketches.brief(a), sketches.brief(b));
        if brief_a.may_equal(brief_b) && sketches.key(a) == sketches.key(b) {
            return Some(Route::Exact);
        }
        if let Some(distance) = self.plan.distance() {
            let differing = (sketches.fingerprint(a)? ^ sketches.fingerprint(b)?).count_ones();
            return (differing <= distance.get()).then_some(Route::SimHash);
        }
        if let Some(join) = self.plan.join()
            && brief_a.size.max(brief_b.size) as usize <= join.reach
        {
            let shared = brief_a.most_shared(brief_b);
            let union = (brief_a.size + brief_b.size) as usize - shared;
            let near = self.plan.candidate_threshold().admits(shared, union);
            return (shared > 0 && near).then_some(Route::Join);
        }
        let bands = self.plan.bands()?;
        let (a, b) = (sketches.signature(a)?, sketches.signature(b)?);
        let near = equal_slots(a, b) >= bands.least_equal
            && (0..bands.bands).any(|band| band_key(bands, band, a) == band_key(bands, band, b));
        near.then_some(Route::MinHash)
    }

    /// Makes sure that [`check`](Self::check) has the features of a document at hand.
    pub(super) fn prepare(&self, rank: Rank) -> Result<()> {
        if self.plan.settings().measure != Measure::Sketch {
            self.features.get(self.corpus.document(rank))?;
        }
        Ok(())
    }

    /// The similarity of two candidates, if it passes the check.
    pub(super) fn check(&self, a: Rank, b: Rank, route: Route) -> Result<Option<Similarity>> {
        let (a, b) = (self.corpus.document(a), self.corpus.document(b));
        let sketches = self.corpus.sketches;
        let by_sketch = self.plan.settings().measure == Measure::Sketch;
        match route {
            Route::Exact => Ok(Some(Similarity::ONE)),
            Route::SimHash if by_sketch => {
                let print = |document| sketches.fingerprint(document).unwrap_or(0);
                let bits = self.plan.bits() as usize;
                let differing = (print(a) ^ print(b)).count_ones() as usize;
                Ok(Some(Similarity::ratio(bits - differing, bits)))
            }
            Route::MinHash if by_sketch => {
                let (Some(a), Some(b)) = (sketches.signature(a), sketches.signature(b)) else {
                    return Ok(None);
                };
                let (equal, slots) = (equal_slots(a, b), self.plan.slots());
                let passes = self.plan.threshold().admits(equal, slots);
                Ok(passes.then(|| Similarity::ratio(equal, slots)))
            }
            Route::Join | Route::MinHash | Route::SimHash => {
                let (a, b) = (self.features.get(a)?, self.features.get(b)?);
                Ok(verify::check(self.plan, &a, &b))
            }
        }
    }
}
