//! Verification of one candidate, within a turn or without the matcher.
//!
//! A candidate is verified by two texts that never change, so the result does not depend on when and where it
//! is found. A turn that has a [unit](SearchTurn::with_unit_steps) verifies only candidates that take no more than
//! that. It leaves any other one as a [`DeferredCandidate`], and the caller, who has released its lock meanwhile,
//! lets a [`CandidateVerifier`] compare it. The next turn goes on behind it.
//!
//! Guarantee: the comparison has the same result and the same steps of verification in both ways. Cost of
//! deferring: the steps until a unit is exceeded are taken again, and the sketches of the candidate are copied.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::pair_inputs::{
    AnalysisLimit, ArrivingDocument, NewDocumentInputs, StreamInputs, StreamTexts,
};
use super::partitions::DocumentSlot;
use super::precheck::PrecheckResult;
use super::search_turn::SearchTurn;
use super::sketched_document::{DocumentPreparer, SketchedDocument};
use super::{KeptMatch, ONLY_DOCUMENT};
use crate::candidates::PrefixHits;
use crate::error::Result;
use crate::plan::MatchPlan;
use crate::similarity::{PairPredicate, Route, SketchRef, StepBudget};
use crate::sketch::DocumentSketches;

/// A candidate that is not verified yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct CandidateDocument {
    pub(super) number: u64,
    pub(super) slot: DocumentSlot,
    pub(super) order: u64,
    pub(super) route: Route,
}

/// A candidate that was compared.
#[derive(Clone, Debug)]
pub(super) struct ComparedCandidate {
    pub(super) number: u64,
    /// Steps of verification.
    pub(super) steps: u64,
    pub(super) found: Option<KeptMatch>,
    /// `false` if it has gone out of reach, or is ignored.
    pub(super) is_visible: bool,
}

/// A candidate whose comparison takes more than a unit of a turn.
#[derive(Clone, Debug)]
pub(super) struct DeferredCandidate {
    candidate: CandidateDocument,
    hits: PrefixHits,
    /// A copy of its sketches.
    sketches: DocumentSketches,
}

impl DeferredCandidate {
    pub(super) fn new(
        candidate: CandidateDocument,
        hits: PrefixHits,
        in_kept: SketchRef<'_>,
        preparer: &DocumentPreparer,
    ) -> Self {
        let mut sketches = preparer.for_partition();
        sketches.append_document(in_kept.sketches, in_kept.document);
        Self {
            candidate,
            hits,
            sketches,
        }
    }

    pub(super) fn slot(&self) -> DocumentSlot {
        self.candidate.slot
    }

    /// Returns it as a candidate that is not compared yet.
    pub(super) fn into_pending(self) -> (u64, PrefixHits) {
        (self.candidate.number, self.hits)
    }
}

/// Verifies candidates of a [`StreamMatcher`](super::StreamMatcher), with or without access to it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CandidateVerifier {
    plan: MatchPlan,
    pub(super) inputs: Arc<StreamInputs>,
    /// Steps of verification that a check may take where documents are compared as sequences.
    pub(super) step_limit: u64,
    /// Steps of verification of all checks so far.
    steps_taken: Arc<AtomicU64>,
}

impl CandidateVerifier {
    pub(super) fn new(plan: &MatchPlan, preparer: DocumentPreparer) -> Self {
        Self {
            plan: *plan,
            inputs: Arc::new(StreamInputs::new(preparer)),
            step_limit: u64::MAX,
            steps_taken: Arc::default(),
        }
    }

    pub(super) fn steps_taken(&self) -> u64 {
        self.steps_taken.load(Ordering::Relaxed)
    }

    /// Compares the candidate that a check has [deferred](PrecheckResult::deferred_slot), if there is one.
    /// `document` is that of the check, and `text` that of the candidate. This needs no access to the matcher.
    ///
    /// # Errors
    /// Fails if the text is not that of the candidate, or if verification takes more steps than are
    /// [allowed](super::StreamMatcher::set_step_limit). The check cannot be continued then.
    pub fn compare_deferred(
        &self,
        precheck: &mut PrecheckResult,
        document: &SketchedDocument,
        text: &str,
    ) -> Result<()> {
        let Some(deferred) = precheck.deferred.take() else {
            return Ok(());
        };
        let in_kept = SketchRef {
            sketches: &deferred.sketches,
            document: ONLY_DOCUMENT,
        };
        let lists = Arc::clone(&precheck.lists);
        let compared = self.compare_candidate(
            self.budget_of(precheck),
            &deferred.candidate,
            in_kept,
            ArrivingDocument {
                document,
                lists: &lists,
            },
            &SingleText(text),
            &mut SearchTurn::unlimited(),
        )?;
        // A turn without a limit defers nothing.
        if let Some(compared) = compared {
            precheck.add_compared(compared);
        }
        Ok(())
    }

    /// Returns the steps of verification that a check may take, without those that it has taken.
    pub(super) fn budget_of(&self, precheck: &PrecheckResult) -> StepBudget {
        let limit = match self.plan.sequence_measure() {
            Some(_) => precheck.own_step_limit.unwrap_or(self.step_limit),
            None => u64::MAX,
        };
        StepBudget::resume(limit, precheck.steps)
    }

    /// Compares a candidate within a budget. Returns `None` if that takes more than a unit of the turn.
    pub(super) fn compare_candidate(
        &self,
        budget: StepBudget,
        candidate: &CandidateDocument,
        in_kept: SketchRef<'_>,
        arriving: ArrivingDocument<'_>,
        texts: &dyn StreamTexts,
        turn: &mut SearchTurn,
    ) -> Result<Option<ComparedCandidate>> {
        let steps_before = budget.taken();
        let mut budget = budget.pausing_after(turn.unit_steps());
        let analysis = AnalysisLimit::new(turn.most_text_bytes());
        let new = self.inputs.inputs_of_new(arriving, &analysis);
        let verified = self.verify_candidate(candidate, in_kept, &new, texts, &mut budget);
        let steps = budget.taken() - steps_before;
        // Steps that were refused are counted, and not made.
        turn.add_steps(steps.min(turn.unit_steps()));
        turn.add_text_bytes(analysis.bytes());
        if budget.has_paused() || analysis.is_exceeded() {
            return Ok(None);
        }
        self.steps_taken.fetch_add(steps, Ordering::Relaxed);
        Ok(Some(ComparedCandidate {
            number: candidate.number,
            steps,
            found: verified?,
            is_visible: true,
        }))
    }

    fn verify_candidate(
        &self,
        candidate: &CandidateDocument,
        in_kept: SketchRef<'_>,
        new: &NewDocumentInputs<'_>,
        texts: &dyn StreamTexts,
        budget: &mut StepBudget,
    ) -> Result<Option<KeptMatch>> {
        let predicate = PairPredicate::new(&self.plan);
        let kept = new.inputs_of_kept(candidate, in_kept.text_key(), texts);
        budget.take(predicate.count_reading_steps(candidate.route, in_kept))?;
        let similarity = predicate.check_within(
            candidate.route,
            new.sketch_ref(),
            new,
            in_kept,
            &kept,
            budget,
        )?;
        Ok(similarity.map(|similarity| KeptMatch {
            slot: candidate.slot,
            order: candidate.order,
            similarity,
            route: candidate.route,
        }))
    }
}

/// The text of the only candidate that is compared.
struct SingleText<'a>(&'a str);

impl StreamTexts for SingleText<'_> {
    fn visit_text(&self, _: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()> {
        visit(self.0);
        Ok(())
    }
}
