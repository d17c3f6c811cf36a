//! The similarity of two texts by a measure alone, without a search for candidates.
//!
//! The numbers are those that [`find_pairs`](crate::dedup::find_pairs) reports, so a threshold means the same in
//! both. Documents themselves are compared by the [`DocumentComparer`], as everywhere. Sketches are compared
//! here, because an evaluation varies the threshold: it needs the estimate of any pair, below every threshold
//! and for pairs that are no candidates, where the predicate of a plan gives only a decision.

use crate::arch::Cpu;
use crate::error::Result;
use crate::plan::{
    EqualKeySketch, JoinedDocuments, MatchPlan, MethodSketch, SHORT, SimilarityMeasure,
};
use crate::recipe::Recipe;
use crate::similarity::{ComparedDocument, DocumentComparer, jaccard_index};
use crate::sketch::{MinHasher, SimHasher, bottom_k_jaccard, equal_slots, smallest_features};
use crate::text::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use crate::types::Similarity;

/// Scores pairs of texts. A higher score means more similar.
pub(super) struct PairScorer {
    analyzer: TextAnalyzer,
    by: ScoringMeasure,
}

/// The measure that gives the score.
enum ScoringMeasure {
    /// The measure of a plan on the documents themselves; no score below its threshold.
    Documents(Box<DocumentComparer>),
    /// Negative Hamming distance.
    Distance(SimHasher),
    /// Share of equal slots. With `exact`, the Jaccard index if one of the texts is short.
    Slots {
        minhash: MinHasher,
        exact: bool,
    },
    /// Estimate from this many smallest hashes.
    Smallest(usize),
    /// 1 for texts with the same key.
    EqualKey(EqualKeySketch),
    Equality,
}

/// One text of a pair, in the form that the measure compares.
pub(super) struct ScoredText {
    state: TextState,
    key: u128,
    inputs: ScoredInputs,
}

enum ScoredInputs {
    Document(Box<ComparedDocument>),
    Fingerprint(u128),
    Signature(Vec<u32>, Vec<u64>),
    Smallest(Vec<u64>),
    EqualKey(Option<u64>),
    Nothing,
}

impl PairScorer {
    /// Returns a scorer for the measure of a plan. Documents themselves only have scores from its threshold up.
    pub(super) fn new(recipe: &Recipe, plan: &MatchPlan) -> Self {
        let by = ScoringMeasure::new(recipe, plan);
        let extras = match &by {
            ScoringMeasure::Documents(comparer) => comparer.required_extras(),
            ScoringMeasure::EqualKey(_) => AnalysisExtras {
                sentences: plan.sentence_count(),
                ..AnalysisExtras::default()
            },
            _ => AnalysisExtras::default(),
        };
        Self {
            analyzer: TextAnalyzer::new(recipe).with_extras(extras),
            by,
        }
    }

    /// Prepares a text for scoring.
    pub(super) fn prepare_text(&self, text: &str, scratch: &mut AnalysisScratch) -> ScoredText {
        let analysis = self.analyzer.analyze_text(text, scratch);
        ScoredText {
            state: analysis.state,
            key: analysis.key,
            inputs: self.extract_inputs(&analysis),
        }
    }

    fn extract_inputs(&self, analysis: &TextAnalysis<'_>) -> ScoredInputs {
        if analysis.state != TextState::Fingerprintable {
            return ScoredInputs::Nothing;
        }
        let features = || {
            let mut features = Vec::new();
            analysis.append_features(&mut features);
            features
        };
        match &self.by {
            ScoringMeasure::Documents(comparer) => {
                let mut document = Box::<ComparedDocument>::default();
                comparer.fill_lists(analysis, &mut document);
                ScoredInputs::Document(document)
            }
            ScoringMeasure::Distance(simhash) => {
                let fingerprint = simhash.fingerprint(analysis);
                fingerprint.map_or(ScoredInputs::Nothing, ScoredInputs::Fingerprint)
            }
            ScoringMeasure::Slots { minhash, exact } => {
                let mut signature = vec![0; minhash.slot_count()];
                minhash.write_signature(analysis, &mut signature);
                ScoredInputs::Signature(signature, if *exact { features() } else { Vec::new() })
            }
            ScoringMeasure::Smallest(kept) => {
                let mut smallest = Vec::new();
                smallest_features(analysis, *kept, &mut smallest);
                ScoredInputs::Smallest(smallest)
            }
            ScoringMeasure::EqualKey(key) => ScoredInputs::EqualKey((key.key_of)(analysis)),
            ScoringMeasure::Equality => ScoredInputs::Nothing,
        }
    }

    /// Returns the score of a pair, or `None` if the two match at no threshold and no distance.
    ///
    /// # Errors
    /// Fails if sequences are too long to be compared.
    pub(super) fn score_pair(&self, a: &ScoredText, b: &ScoredText) -> Result<Option<f64>> {
        if a.state == TextState::Empty || b.state == TextState::Empty {
            return Ok(None);
        }
        if a.key == b.key {
            let by_distance = matches!(self.by, ScoringMeasure::Distance(_));
            return Ok(Some(if by_distance { 0.0 } else { 1.0 }));
        }
        self.compare_inputs(&a.inputs, &b.inputs)
    }

    fn compare_inputs(&self, a: &ScoredInputs, b: &ScoredInputs) -> Result<Option<f64>> {
        use ScoredInputs as M;
        let similarity = match (&self.by, a, b) {
            (ScoringMeasure::Documents(comparer), M::Document(a), M::Document(b)) => {
                return Ok(comparer.measure_documents(a, b)?.map(Similarity::get));
            }
            (ScoringMeasure::Distance(_), M::Fingerprint(a), M::Fingerprint(b)) => {
                return Ok(Some(-f64::from((a ^ b).count_ones())));
            }
            (ScoringMeasure::Slots { exact, .. }, M::Signature(a, in_a), M::Signature(b, in_b)) => {
                if *exact && in_a.len().min(in_b.len()) <= SHORT {
                    jaccard_index(in_a, in_b)
                } else {
                    Similarity::from_ratio(equal_slots(a, b), a.len())
                }
            }
            (ScoringMeasure::Smallest(kept), M::Smallest(a), M::Smallest(b)) => {
                bottom_k_jaccard(a, b, *kept)
            }
            (ScoringMeasure::EqualKey(_), M::EqualKey(Some(a)), M::EqualKey(Some(b))) if a == b => {
                Similarity::ONE
            }
            _ => return Ok(None),
        };
        Ok(Some(similarity.get()))
    }
}

impl ScoringMeasure {
    fn new(recipe: &Recipe, plan: &MatchPlan) -> Self {
        let settings = plan.match_settings();
        if settings.method.finds_equal_texts_alone() {
            return Self::Equality;
        }
        let method = settings.method.descriptor();
        let by_sketch = settings.measure == SimilarityMeasure::Sketch;
        match method.sketch {
            MethodSketch::Fingerprint if by_sketch => {
                Self::Distance(SimHasher::new(&recipe.simhash, Cpu::detect_best()))
            }
            MethodSketch::EqualKey(key) if by_sketch => Self::EqualKey(key),
            MethodSketch::Smallest if by_sketch => Self::Smallest(plan.signature_slots()),
            MethodSketch::Signature if by_sketch => Self::Slots {
                minhash: MinHasher::new(&recipe.minhash, Cpu::detect_best()),
                exact: method.joined == JoinedDocuments::Short,
            },
            _ => Self::Documents(Box::new(DocumentComparer::new(recipe, plan))),
        }
    }
}
