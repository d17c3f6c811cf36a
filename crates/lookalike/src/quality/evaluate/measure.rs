//! The similarity of two texts by a measure alone, without a search for candidates.
//!
//! The numbers are those that [`find_pairs`](crate::dedup::find_pairs) reports, computed by the same
//! functions, so a threshold means the same in both.

use crate::arch::Cpu;
use crate::error::Result;
use crate::plan::{EditUnit, MatchMethod, MatchPlan, SHORT, SimilarityMeasure};
use crate::recipe::Recipe;
use crate::similarity::{
    SequenceMeasure, WeightedFeature, containment_index, cosine_similarity, jaccard_index,
};
use crate::sketch::{MinHasher, SimHasher, bottom_k_jaccard, equal_slots, smallest_features};
use crate::text::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use crate::types::{Similarity, Threshold};

/// Scores pairs of texts. A higher score means more similar.
pub(super) struct PairScorer {
    analyzer: TextAnalyzer,
    by: ScoringMeasure,
}

/// The measure that gives the score.
enum ScoringMeasure {
    Jaccard,
    Containment,
    Cosine,
    /// Similarity of sequences; no score below the threshold.
    Sequences(SequenceMeasure, EditUnit, Threshold),
    /// Negative Hamming distance.
    Distance(SimHasher),
    /// Share of equal slots. With `exact`, the Jaccard index if one of the texts is short.
    Slots {
        minhash: MinHasher,
        exact: bool,
    },
    /// Estimate from this many smallest hashes.
    Smallest(usize),
    Sentences,
    Equality,
}

/// One text of a pair, in the form that the measure compares.
pub(super) struct ScoredText {
    state: TextState,
    key: u128,
    inputs: ScoredInputs,
}

enum ScoredInputs {
    Features(Vec<u64>),
    Weighted(Vec<WeightedFeature>),
    Characters(Vec<u32>),
    Tokens(Vec<u64>),
    Fingerprint(u128),
    Signature(Vec<u32>, Vec<u64>),
    Sentences(Option<u64>),
    Nothing,
}

impl PairScorer {
    /// Returns a scorer for the measure of a plan. Sequences are only measured from its threshold up.
    pub(super) fn new(recipe: &Recipe, plan: &MatchPlan) -> Self {
        let settings = plan.match_settings();
        let by = ScoringMeasure::new(recipe, plan);
        let extras = AnalysisExtras {
            characters: matches!(by, ScoringMeasure::Sequences(_, EditUnit::Characters, _)),
            sentences: matches!(by, ScoringMeasure::Sentences).then_some(settings.sentences),
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
            ScoringMeasure::Jaccard | ScoringMeasure::Containment => {
                ScoredInputs::Features(features())
            }
            ScoringMeasure::Cosine => {
                let mut weighted = Vec::new();
                analysis.weighted_features(&mut weighted);
                ScoredInputs::Weighted(weighted)
            }
            ScoringMeasure::Sequences(_, EditUnit::Characters, _) => {
                ScoredInputs::Characters(analysis.characters().to_vec())
            }
            ScoringMeasure::Sequences(_, EditUnit::Words, _) => {
                ScoredInputs::Tokens(analysis.token_values().to_vec())
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
                ScoredInputs::Features(smallest)
            }
            ScoringMeasure::Sentences => ScoredInputs::Sentences(analysis.sentence_signature()),
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
            (ScoringMeasure::Jaccard, M::Features(a), M::Features(b)) => jaccard_index(a, b),
            (ScoringMeasure::Containment, M::Features(a), M::Features(b)) => {
                containment_index(a, b)
            }
            (ScoringMeasure::Cosine, M::Weighted(a), M::Weighted(b)) => cosine_similarity(a, b),
            (ScoringMeasure::Sequences(of, _, least), M::Characters(a), M::Characters(b)) => {
                return Ok(of.similarity(a, b, *least)?.map(Similarity::get));
            }
            (ScoringMeasure::Sequences(of, _, least), M::Tokens(a), M::Tokens(b)) => {
                return Ok(of.similarity(a, b, *least)?.map(Similarity::get));
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
            (ScoringMeasure::Smallest(kept), M::Features(a), M::Features(b)) => {
                bottom_k_jaccard(a, b, *kept)
            }
            (ScoringMeasure::Sentences, M::Sentences(Some(a)), M::Sentences(Some(b))) if a == b => {
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
        match (settings.method, settings.measure) {
            (MatchMethod::Exact, _) => Self::Equality,
            (MatchMethod::SimHash, SimilarityMeasure::Sketch) => {
                Self::Distance(SimHasher::new(&recipe.simhash, Cpu::detect_best()))
            }
            (MatchMethod::Sentences, SimilarityMeasure::Sketch) => Self::Sentences,
            (MatchMethod::BottomK, SimilarityMeasure::Sketch) => {
                Self::Smallest(plan.signature_slots())
            }
            (method @ (MatchMethod::Auto | MatchMethod::MinHash), SimilarityMeasure::Sketch) => {
                Self::Slots {
                    minhash: MinHasher::new(&recipe.minhash, Cpu::detect_best()),
                    exact: method == MatchMethod::Auto,
                }
            }
            (_, SimilarityMeasure::Jaccard | SimilarityMeasure::Sketch) => Self::Jaccard,
            (_, SimilarityMeasure::Containment) => Self::Containment,
            (_, SimilarityMeasure::Cosine) => Self::Cosine,
            (_, SimilarityMeasure::Levenshtein) => {
                Self::from_sequences(SequenceMeasure::Levenshtein, plan)
            }
            (_, SimilarityMeasure::Indel) => Self::from_sequences(SequenceMeasure::Indel, plan),
            (_, SimilarityMeasure::Substring) => {
                Self::from_sequences(SequenceMeasure::Substring, plan)
            }
        }
    }

    fn from_sequences(of: SequenceMeasure, plan: &MatchPlan) -> Self {
        Self::Sequences(of, plan.match_settings().unit, plan.threshold())
    }
}
