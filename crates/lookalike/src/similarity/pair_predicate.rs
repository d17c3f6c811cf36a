//! The predicate of a plan: which two documents are candidates, and which candidates match.

use super::document_lists::DocumentList;
use crate::candidates::band_key;
use crate::error::Result;
use crate::forms;
use crate::plan::{
    BlockPlan, BottomKPlan, ComparedInputs, EditUnit, EqualKeySketch, MatchPlan, SimilarityMeasure,
};
use crate::plan::{WeightMeasure, name_choices};
use crate::similarity::{
    self, SequenceMeasure, SequenceOutline, SetCheck, StepBudget, WeightedFeature,
};
use crate::sketch::{DocumentSketches, LONG_SIZE, SetSummary};
use crate::sketch::{equal_slots, shared_smallest};
use crate::types::{DocId, Similarity};

/// The way in which a pair was found. The values are its numbers in files, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The texts are equal after normalisation.
    Exact = 0,
    /// The exact join of short documents.
    Join = 1,
    /// A shared band of the MinHash signatures.
    MinHash = 2,
    /// SimHash fingerprints within the Hamming distance, or with a shared block of bits.
    SimHash = 3,
    /// The same longest sentences.
    Sentences = 4,
    /// One of the smallest hashes of the features in common.
    BottomK = 5,
    /// A person's decision that the two texts are the same.
    Decision = 6,
}

name_choices! {
    Route, 7,
    Exact => "exact",
    Join => "join",
    MinHash => "minhash",
    SimHash => "simhash",
    Sentences => "sentences",
    BottomK => "bottomk",
    Decision => "decision",
}

impl Route {
    /// Returns a phrase that says how a document was found.
    pub fn description(self) -> &'static str {
        match self {
            Self::Exact => "equal after normalisation",
            Self::Join => "short, joined exactly",
            Self::MinHash => "found by MinHash",
            Self::SimHash => "found by SimHash",
            Self::Sentences => "of the same longest sentences",
            Self::BottomK => "found by bottom-k",
            Self::Decision => "decided as the same by a person",
        }
    }

    /// Returns the number of the route in files.
    pub fn file_number(self) -> u8 {
        self as u8
    }

    /// Returns the route with a number in files, if there is one.
    pub fn from_file_number(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|route| route.file_number() == number)
    }
}

/// A match, seen from one of its two documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DocumentMatch {
    /// The other document.
    pub with: DocId,
    /// Similarity of the two documents.
    pub similarity: Similarity,
    /// The way in which the pair was found.
    pub route: Route,
}

/// A document of a pair, by its sketches.
#[derive(Clone, Copy)]
pub(crate) struct SketchRef<'a> {
    pub(crate) sketches: &'a DocumentSketches,
    pub(crate) document: DocId,
}

impl<'a> SketchRef<'a> {
    #[inline]
    pub(crate) fn text_key(self) -> u128 {
        self.sketches.text_key(self.document)
    }

    #[inline]
    fn set_summary(self) -> SetSummary {
        self.sketches.set_summary(self.document)
    }

    /// Returns the number of distinct features, if the plan has an exact join.
    pub(crate) fn set_size(self) -> Option<usize> {
        let summary = self.sketches.optional_summary(self.document);
        summary.map(|summary| summary.size as usize)
    }

    #[inline]
    fn sequence_outline(self) -> SequenceOutline {
        self.sketches.sequence_outline(self.document)
    }

    #[inline]
    pub(crate) fn signature(self) -> Option<&'a [u32]> {
        self.sketches.minhash_signature(self.document)
    }

    #[inline]
    pub(crate) fn fingerprint(self) -> Option<u128> {
        self.sketches.fingerprint(self.document)
    }

    #[inline]
    pub(crate) fn equal_key(self) -> Option<u64> {
        self.sketches.equal_key(self.document)
    }

    #[inline]
    pub(crate) fn smallest_hashes(self) -> Option<&'a [u64]> {
        self.sketches.smallest_hashes(self.document)
    }

    /// Returns the form and the values of its slots, if the sketches have forms.
    #[inline]
    fn form_values(self) -> Option<&'a [u64]> {
        self.sketches.form_values(self.document)
    }

    /// Returns `true` if the texts are equal after normalisation. Most unequal texts are rejected by a
    /// few bits of their keys.
    #[inline]
    pub(crate) fn has_equal_text(self, other: Self) -> bool {
        self.sketches
            .may_have_equal_text(self.document, other.sketches, other.document)
            && self.text_key() == other.text_key()
    }
}

/// The features, weights and sequences of one document. Each list is requested only where the measure
/// needs it, because it may have to be made from the text.
pub(crate) trait PairInputs {
    /// Returns the distinct features, ascending.
    fn distinct_features(&self) -> Result<DocumentList<'_, u64>>;

    /// Returns the distinct features with their weights, ascending.
    fn weighted_features(&self) -> Result<DocumentList<'_, WeightedFeature>>;

    /// Returns the normalised characters.
    fn code_points(&self) -> Result<DocumentList<'_, u32>>;

    /// Returns the values of the tokens.
    fn token_values(&self) -> Result<DocumentList<'_, u64>>;

    /// Returns the form with a hash of the value of each slot; empty if the document is of no form.
    fn form_values(&self) -> Result<DocumentList<'_, u64>>;

    /// Returns the tokens by which titles and numbers are compared.
    fn marked_tokens(&self) -> Result<DocumentList<'_, u64>>;
}

/// The predicate of a plan: which two documents are candidates, and which candidates match. It looks at
/// the two documents and at nothing else, so all its callers agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairPredicate<'p> {
    plan: &'p MatchPlan,
    verification: VerificationStep,
    sequence_measure: Option<SequenceMeasure>,
    blocks: Option<BlockPlan>,
    equal_key: Option<EqualKeySketch>,
}

/// Comparison that verification makes, by the measure of the plan. It is chosen once for all pairs.
#[derive(Clone, Copy, Debug)]
enum VerificationStep {
    Sets(SetCheck),
    Weights(WeightMeasure),
    Sequences(SequenceMeasure),
}

impl VerificationStep {
    fn new(plan: &MatchPlan) -> Self {
        match plan.match_settings().measure.descriptor().inputs {
            ComparedInputs::Sets(measure) => Self::Sets(SetCheck::new(plan, measure)),
            ComparedInputs::Weights(measure) => Self::Weights(measure),
            ComparedInputs::Sequences(measure) => Self::Sequences(measure),
        }
    }
}

impl<'p> PairPredicate<'p> {
    pub(crate) fn new(plan: &'p MatchPlan) -> Self {
        Self {
            plan,
            verification: VerificationStep::new(plan),
            sequence_measure: plan.sequence_measure(),
            blocks: plan.block_plan(),
            equal_key: plan.equal_key(),
        }
    }

    /// Returns the route by which the plan makes two documents candidates, if it does. Cheap, because
    /// it compares sketches and no features.
    pub(crate) fn candidates(&self, a: SketchRef<'_>, b: SketchRef<'_>) -> Option<Route> {
        if let Some(of) = self.sequence_measure
            && !of.may_reach_threshold(
                a.sequence_outline(),
                b.sequence_outline(),
                self.plan.threshold(),
            )
        {
            return None;
        }
        if a.has_equal_text(b) {
            return Some(Route::Exact);
        }
        if let (Some(a), Some(b)) = (a.form_values(), b.form_values())
            && !forms::do_forms_agree(a, b)
        {
            return None;
        }
        if let Some(distance) = self.plan.distance() {
            let (a, b) = (a.fingerprint()?, b.fingerprint()?);
            let near = match self.blocks {
                Some(blocks) => blocks.share_block(a, b),
                None => (a ^ b).count_ones() <= distance.get(),
            };
            return near.then_some(Route::SimHash);
        }
        if let Some(key) = self.equal_key {
            return (a.equal_key()? == b.equal_key()?).then_some(key.route);
        }
        if let Some(smallest) = self.plan.bottom_k_plan() {
            let (a, b) = (a.smallest_hashes()?, b.smallest_hashes()?);
            let near = meet_by_smallest(smallest, a, b) && self.near_by_smallest(smallest, a, b);
            return near.then_some(Route::BottomK);
        }
        if self.plan.join_plan().is_some()
            && let Some(near) = self.is_join_candidate(a.set_summary(), b.set_summary())
        {
            return near.then_some(Route::Join);
        }
        let bands = self.plan.band_plan()?;
        let (a, b) = (a.signature()?, b.signature()?);
        let near = equal_slots(a, b) >= bands.min_equal_slots
            && (0..bands.bands).any(|band| band_key(bands, band, a) == band_key(bands, band, b));
        near.then_some(Route::MinHash)
    }

    /// Returns `true` if the exact join makes two documents candidates, and `None` if one of them does
    /// not take part in the join.
    #[inline]
    pub(crate) fn is_join_candidate(&self, a: SetSummary, b: SetSummary) -> Option<bool> {
        let join = self.plan.join_plan()?;
        if a.size.max(b.size) as usize > join.max_partner_features {
            return None;
        }
        let shared = a.most_shared(b);
        let (a, b) = (a.size as usize, b.size as usize);
        Some(shared > 0 && self.plan.overlap_bound().admits_overlap(shared, a, b))
    }

    fn near_by_smallest(&self, smallest: BottomKPlan, a: &[u64], b: &[u64]) -> bool {
        let (shared, of) = shared_smallest(a, b, smallest.hashes);
        if of < smallest.hashes {
            // The union has fewer hashes than are kept, so these are all features of both documents.
            self.plan.candidate_threshold().admits_ratio(shared, of)
        } else {
            shared >= smallest.min_shared_hashes
        }
    }

    /// Verifies two candidates. Returns their similarity if they match.
    pub(crate) fn verify_candidates(
        &self,
        route: Route,
        a: SketchRef<'_>,
        in_a: &impl PairInputs,
        b: SketchRef<'_>,
        in_b: &impl PairInputs,
    ) -> Result<Option<Similarity>> {
        self.check_within(route, a, in_a, b, in_b, &mut StepBudget::unlimited())
    }

    /// As [`verify_candidates`](Self::verify_candidates), by taking the steps of sequences from a budget.
    pub(crate) fn check_within(
        &self,
        route: Route,
        a: SketchRef<'_>,
        in_a: &impl PairInputs,
        b: SketchRef<'_>,
        in_b: &impl PairInputs,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        if matches!(route, Route::Exact | Route::Decision) {
            return Ok(Some(Similarity::ONE));
        }
        let similarity = if self.is_decided_by_sketches(route) {
            self.similarity_of_sketches(a, b, route)
        } else {
            self.verify_inputs(in_a, in_b, budget)?
        };
        if similarity.is_some()
            && self.plan.compares_forms()
            && !do_contents_agree(in_a, in_b, budget)?
        {
            return Ok(None);
        }
        Ok(similarity)
    }

    /// Returns `true` if candidates that were found so are compared by their sketches alone.
    fn is_decided_by_sketches(&self, route: Route) -> bool {
        self.plan.match_settings().measure == SimilarityMeasure::Sketch && route != Route::Join
    }

    /// Returns the steps that it takes about to read a candidate's text and to make what it is compared by.
    pub(crate) fn count_reading_steps(&self, route: Route, candidate: SketchRef<'_>) -> u64 {
        /// Steps for a symbol or a feature.
        const STEPS_PER_SYMBOL: u64 = 4;
        /// Symbols or features of a document of which the number is not known.
        const USUAL_SYMBOLS: u64 = 1000;
        if matches!(route, Route::Exact | Route::Decision) || self.is_decided_by_sketches(route) {
            return 0;
        }
        let length = match self.sequence_measure {
            Some(_) => candidate
                .sequence_outline()
                .symbol_count()
                .map_or(USUAL_SYMBOLS, |bytes| bytes as u64),
            None => candidate
                .set_size()
                .filter(|&size| size != LONG_SIZE as usize)
                .map_or(USUAL_SYMBOLS, |size| size as u64),
        };
        STEPS_PER_SYMBOL * length
    }

    fn similarity_of_sketches(
        &self,
        a: SketchRef<'_>,
        b: SketchRef<'_>,
        route: Route,
    ) -> Option<Similarity> {
        let (part, whole) = match route {
            Route::SimHash => {
                let print = |document: SketchRef<'_>| document.fingerprint().unwrap_or(0);
                let bits = self.plan.fingerprint_bits() as usize;
                let differing = (print(a) ^ print(b)).count_ones() as usize;
                return Some(Similarity::from_ratio(bits - differing, bits));
            }
            Route::MinHash => (
                equal_slots(a.signature()?, b.signature()?),
                self.plan.signature_slots(),
            ),
            Route::BottomK => shared_smallest(
                a.smallest_hashes()?,
                b.smallest_hashes()?,
                self.plan.signature_slots(),
            ),
            Route::Exact | Route::Sentences | Route::Join | Route::Decision => {
                return Some(Similarity::ONE);
            }
        };
        let passes = self.plan.threshold().admits_ratio(part, whole);
        passes.then(|| Similarity::from_ratio(part, whole))
    }

    /// Returns the similarity of the documents themselves if it reaches the threshold, and their features reach
    /// the candidate threshold of the plan if it has one.
    pub(crate) fn verify_inputs(
        &self,
        a: &impl PairInputs,
        b: &impl PairInputs,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        if let VerificationStep::Sets(_) = self.verification {
            return self.measure_inputs(a, b, budget);
        }
        if self.reaches_candidate_threshold(a, b, budget)? {
            self.measure_inputs(a, b, budget)
        } else {
            Ok(None)
        }
    }

    /// Returns the similarity of the documents themselves if it reaches the threshold. Weights and sequences are
    /// compared even if the features do not reach the candidate threshold.
    pub(crate) fn measure_inputs(
        &self,
        a: &impl PairInputs,
        b: &impl PairInputs,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        match self.verification {
            VerificationStep::Sets(check) => {
                let (a, b) = read_sets(a, b, budget)?;
                Ok(check.verify_sets(&a, &b))
            }
            VerificationStep::Weights(measure) => self.compare_weights(measure, a, b, budget),
            VerificationStep::Sequences(measure) => self.compare_sequences(measure, a, b, budget),
        }
    }

    fn compare_weights(
        &self,
        measure: WeightMeasure,
        a: &impl PairInputs,
        b: &impl PairInputs,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let (a, b) = (a.weighted_features()?, b.weighted_features()?);
        budget.add((a.len() + b.len()) as u64)?;
        let similarity = measure(&a, &b);
        let threshold = self.plan.threshold();
        Ok(Some(similarity).filter(|&it| threshold.admits_similarity(it)))
    }

    fn compare_sequences(
        &self,
        measure: SequenceMeasure,
        a: &impl PairInputs,
        b: &impl PairInputs,
        budget: &mut StepBudget,
    ) -> Result<Option<Similarity>> {
        let settings = self.plan.match_settings();
        let threshold = settings.threshold;
        match settings.unit {
            EditUnit::Characters => {
                measure.similarity_within(&a.code_points()?, &b.code_points()?, threshold, budget)
            }
            EditUnit::Words => {
                measure.similarity_within(&a.token_values()?, &b.token_values()?, threshold, budget)
            }
        }
    }

    /// Returns `true` if the features of two candidates reach the candidate threshold of the plan, or if the
    /// plan has none.
    fn reaches_candidate_threshold(
        &self,
        a: &impl PairInputs,
        b: &impl PairInputs,
        budget: &mut StepBudget,
    ) -> Result<bool> {
        if !self.plan.has_candidate_threshold() {
            return Ok(true);
        }
        let (a, b) = read_sets(a, b, budget)?;
        let check = SetCheck::of_candidates(self.plan);
        Ok(check.verify_sets(&a, &b).is_some())
    }
}

/// Steps of aligning two texts, for each of their tokens.
const STEPS_PER_ALIGNED_TOKEN: u64 = 16;

/// Reads the features of two documents and counts the steps of comparing them.
fn read_sets<'a, A: PairInputs, B: PairInputs>(
    a: &'a A,
    b: &'a B,
    budget: &mut StepBudget,
) -> Result<(DocumentList<'a, u64>, DocumentList<'a, u64>)> {
    let (a, b) = (a.distinct_features()?, b.distinct_features()?);
    budget.add((a.len() + b.len()) as u64)?;
    Ok((a, b))
}

/// Returns `true` if both documents have the same form and its slots agree, or if neither has a form, and if their titles
/// and numbers are about the same thing.
fn do_contents_agree(
    a: &impl PairInputs,
    b: &impl PairInputs,
    budget: &mut StepBudget,
) -> Result<bool> {
    if !forms::do_forms_agree(&a.form_values()?, &b.form_values()?) {
        return Ok(false);
    }
    let (a, b) = (a.marked_tokens()?, b.marked_tokens()?);
    budget.add(STEPS_PER_ALIGNED_TOKEN * (a.len() + b.len()) as u64)?;
    Ok(forms::find_difference(&a, &b).is_none())
}

fn meet_by_smallest(smallest: BottomKPlan, a: &[u64], b: &[u64]) -> bool {
    let first = |hashes: &'_ [u64]| hashes.len().min(smallest.bucket_keys);
    similarity::intersection(&a[..first(a)], &b[..first(b)]) > 0
}
