//! Verification of the candidate pairs of a corpus.

use super::batch_sizes::BatchSizes;
use super::corpus::MatchCorpus;
use super::document_cache::BatchInputs;
use super::pair_decisions::PairDecision;
use super::survey::ComparisonTally;
use crate::candidates::bitmap_filter::{DenseSets, FeaturesOf};
use crate::candidates::buckets::{CandidateBuckets, DocumentRank};
use crate::candidates::{ContainmentFilter, PrefixHits};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{ComparedInputs, EditUnit, SimilarityMeasure};
use crate::similarity::{PairPredicate, Route, SketchRef, StepBudget};
use crate::types::{DocId, Similarity};

/// The predicate of a plan applied to the documents of a corpus, behind the bitmap filter.
pub(crate) struct PairVerifier<'a> {
    corpus: &'a MatchCorpus<'a>,
    predicate: PairPredicate<'a>,
    pub(crate) batch_sizes: BatchSizes,
    pub(crate) inputs: BatchInputs<'a>,
    /// Bitmap filter of the dense sets.
    pub(crate) dense_sets: DenseSets,
    /// Filter of candidates by shared prefix features, if the plan joins by containment.
    containment: Option<ContainmentFilter>,
    /// Counter of comparisons, if a survey wants them counted.
    tally: Option<&'a ComparisonTally>,
}

impl<'a> PairVerifier<'a> {
    pub(crate) fn new(corpus: &'a MatchCorpus<'a>, batch_sizes: BatchSizes) -> Self {
        Self {
            corpus,
            predicate: PairPredicate::new(corpus.plan),
            batch_sizes,
            inputs: BatchInputs::new(
                corpus.sketches,
                corpus.texts,
                corpus.plan,
                batch_sizes.remembered,
            ),
            dense_sets: DenseSets::default(),
            containment: ContainmentFilter::for_plan(corpus.plan),
            tally: None,
        }
    }

    /// Returns a verifier that counts its comparisons in `tally`.
    pub(crate) fn with_tally(
        corpus: &'a MatchCorpus<'a>,
        batch_sizes: BatchSizes,
        tally: &'a ComparisonTally,
    ) -> Self {
        Self {
            tally: Some(tally),
            ..Self::new(corpus, batch_sizes)
        }
    }

    fn sketch_of(&self, document: DocId) -> SketchRef<'a> {
        let sketches = self.corpus.sketches;
        SketchRef { sketches, document }
    }

    /// Returns the route by which the plan makes two documents candidates, if it does. Returns `None`
    /// for pairs that the partition, the window, a decision or the bitmap filter excludes.
    pub(crate) fn candidates(&self, a: DocumentRank, b: DocumentRank) -> Option<Route> {
        if !self.corpus.can_meet(a, b) {
            return None;
        }
        if let Some(decisions) = self.corpus.decisions {
            let (a, b) = (self.corpus.document_at(a), self.corpus.document_at(b));
            match decisions.decision_between(a, b) {
                Some(PairDecision::Same) => return Some(Route::Decision),
                Some(PairDecision::Different) => return None,
                None => {
                    let text_key = |document| self.corpus.sketches.text_key(document);
                    if decisions.have_common_difference(a, b) && text_key(a) != text_key(b) {
                        return None;
                    }
                }
            }
        }
        if self.dense_sets.rules_out_pair(a, b) {
            return None;
        }
        let (a, b) = (self.corpus.document_at(a), self.corpus.document_at(b));
        self.predicate
            .candidates(self.sketch_of(a), self.sketch_of(b))
    }

    /// Returns `true` if candidates come from the exact join by containment.
    pub(crate) fn joins_by_containment(&self) -> bool {
        self.containment.is_some()
    }

    /// Returns `false` if the prefix features that two documents share are too few for the containment of one in
    /// the other, and their texts differ.
    pub(crate) fn may_contain(&self, a: DocumentRank, b: DocumentRank, hits: PrefixHits) -> bool {
        let summary = |rank| {
            let document = self.corpus.document_at(rank);
            self.corpus.sketches.set_summary(document)
        };
        let (a, b) = (summary(a), summary(b));
        a.may_have_equal_key(b)
            || self
                .containment
                .is_some_and(|filter| filter.may_match(hits, a.size as usize, b.size as usize))
    }

    /// Finds the dense sets among the buckets. `first` returns the first document with the same text.
    pub(crate) fn find_dense_sets(
        &mut self,
        buckets: &mut CandidateBuckets,
        first: impl Fn(DocumentRank) -> DocumentRank,
    ) {
        if let Some(threshold) = self.corpus.plan.guaranteed_jaccard() {
            let (documents, most) = (self.corpus.len(), self.batch_sizes.dense_above);
            self.dense_sets = DenseSets::find_dense_sets(buckets, documents, most, threshold);
            self.dense_sets.share_slots(first);
        }
    }

    /// Makes the bitmaps of those dense sets for which they now pay off.
    pub(crate) fn build_due_bitmaps(&mut self) -> Result<()> {
        let mut dense_sets = std::mem::take(&mut self.dense_sets);
        let features: &FeaturesOf<'_> =
            &|rank, buffer, visit| self.features_once(rank, buffer, visit);
        dense_sets.build_due_bitmaps(self.batch_sizes.price, features)?;
        self.dense_sets = dense_sets;
        Ok(())
    }

    /// Makes the bitmaps of the dense sets for a search that looks at every pair.
    pub(crate) fn build_all_bitmaps(&mut self, buckets: &CandidateBuckets) -> Result<()> {
        self.dense_sets.count_all_encounters(buckets);
        self.build_due_bitmaps()
    }

    /// Returns `true` if scanning `scanned` documents of a dense set by bitmaps is less work than
    /// visiting `met` members of its buckets.
    #[inline]
    pub(crate) fn should_scan(&self, met: usize, scanned: usize) -> bool {
        met > 0 && scanned <= met.saturating_mul(self.batch_sizes.scanned)
    }

    /// Calls `visit` with the features of a document without caching them.
    pub(crate) fn features_once(
        &self,
        rank: DocumentRank,
        buffer: &mut Vec<u64>,
        visit: impl FnOnce(&[u64]),
    ) -> Result<()> {
        let document = self.corpus.document_at(rank);
        self.inputs.features_once(document, buffer, visit)
    }

    /// Prefetches the prefilter data and the bitmap of a document.
    #[inline]
    pub(crate) fn prefetch_summary(&self, rank: DocumentRank) {
        self.dense_sets.prefetch_bitmap(rank);
        self.corpus
            .sketches
            .prefetch_summary(self.corpus.document_at(rank));
    }

    /// Makes and caches the list that [`verify_pair`](Self::verify_pair) needs first for a document.
    pub(crate) fn prepare_inputs(&self, rank: DocumentRank) -> Result<()> {
        let document = self.corpus.document_at(rank);
        let plan = self.corpus.plan;
        let settings = plan.match_settings();
        if settings.measure == SimilarityMeasure::Sketch {
            return Ok(());
        }
        match settings.measure.descriptor().inputs {
            ComparedInputs::Sets(_) => {
                self.inputs.document_features(document)?;
            }
            _ if plan.has_candidate_threshold() => {
                self.inputs.document_features(document)?;
            }
            ComparedInputs::Weights(_) => {
                self.inputs.weighted_features(document)?;
            }
            ComparedInputs::Sequences(_) => match settings.unit {
                EditUnit::Characters => drop(self.inputs.document_characters(document)?),
                EditUnit::Words => drop(self.inputs.document_words(document)?),
            },
        }
        Ok(())
    }

    /// Verifies two candidates. Returns their similarity if they match.
    pub(crate) fn verify_pair(
        &self,
        a: DocumentRank,
        b: DocumentRank,
        route: Route,
    ) -> Result<Option<Similarity>> {
        self.dense_sets.count_comparison(a, b);
        let Some(tally) = self.tally else {
            return self.compare_pair(a, b, route, &mut StepBudget::unlimited());
        };
        tally.count_candidate(route);
        tally.verify(route, |budget| self.compare_pair(a, b, route, budget))
    }

    /// Counts a candidate pair without comparing it.
    pub(crate) fn count_candidate(&self, a: DocumentRank, b: DocumentRank, route: Route) {
        self.dense_sets.count_comparison(a, b);
        if let Some(tally) = self.tally {
            tally.count_candidate(route);
        }
    }

    /// Compares a pair that has been counted as a candidate.
    pub(crate) fn verify_counted(
        &self,
        a: DocumentRank,
        b: DocumentRank,
        route: Route,
    ) -> Result<()> {
        let Some(tally) = self.tally else {
            return Ok(());
        };
        // The inputs are made first and not measured, because a run makes them once for many pairs.
        self.compare_pair(a, b, route, &mut StepBudget::new(0))
            .or_else(refuse_no_limit)?;
        tally
            .verify(route, |budget| self.compare_pair(a, b, route, budget))
            .map(drop)
    }

    fn compare_pair(
        &self,
        a: DocumentRank,
        b: DocumentRank,
        route: Route,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let (a, b) = (self.corpus.document_at(a), self.corpus.document_at(b));
        self.predicate.check_within(
            route,
            self.sketch_of(a),
            &self.inputs.inputs_of(a),
            self.sketch_of(b),
            &self.inputs.inputs_of(b),
            budget,
        )
    }
}

/// Turns the refusal of a comparison beyond its budget into the result of one that finds nothing.
pub(crate) fn refuse_no_limit<T>(error: Error) -> Result<Option<T>> {
    match error.kind() {
        ErrorKind::Limit | ErrorKind::TooCostly => Ok(None),
        _ => Err(error),
    }
}
