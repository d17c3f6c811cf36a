//! The similarity of two texts by a measure alone, without a search for candidates.
//!
//! The numbers are those that [`find_pairs`](crate::matching::find_pairs) reports, computed by the same
//! functions, so a threshold means the same in both.

use crate::arch::Cpu;
use crate::error::Result;
use crate::plan::{Measure, Method, Plan, SHORT, Unit};
use crate::recipe::Recipe;
use crate::sketch::{MinHasher, SimHasher, bottom_k_jaccard, equal_slots, smallest_features};
use crate::text::{Analysis, Analyzer, Extras, Scratch, State};
use crate::types::{Similarity, Threshold};
use crate::verify::{OfSequences, Weighted, containment, cosine, jaccard};

/// Scores pairs of texts. A higher score means more similar.
pub(super) struct Scorer {
    analyzer: Analyzer,
    by: By,
}

/// The measure that gives the score.
enum By {
    Jaccard,
    Containment,
    Cosine,
    /// Similarity of sequences; no score below the threshold.
    Sequences(OfSequences, Unit, Threshold),
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
pub(super) struct Side {
    state: State,
    key: u128,
    material: Material,
}

enum Material {
    Features(Vec<u64>),
    Weighted(Vec<Weighted>),
    Characters(Vec<u32>),
    Tokens(Vec<u64>),
    Fingerprint(u128),
    Signature(Vec<u32>, Vec<u64>),
    Sentences(Option<u64>),
    Nothing,
}

impl Scorer {
    /// Returns a scorer for the measure of a plan. Sequences are only measured from its threshold up.
    pub(super) fn new(recipe: &Recipe, plan: &Plan) -> Self {
        let settings = plan.settings();
        let by = By::new(recipe, plan);
        let extras = Extras {
            characters: matches!(by, By::Sequences(_, Unit::Characters, _)),
            sentences: matches!(by, By::Sentences).then_some(settings.sentences),
        };
        Self {
            analyzer: Analyzer::new(recipe).with_extras(extras),
            by,
        }
    }

    /// Prepares a text for scoring.
    pub(super) fn side(&self, text: &str, scratch: &mut Scratch) -> Side {
        let analysis = self.analyzer.analyze(text, scratch);
        Side {
            state: analysis.state,
            key: analysis.key,
            material: self.material(&analysis),
        }
    }

    fn material(&self, analysis: &Analysis<'_>) -> Material {
        if analysis.state != State::Rich {
            return Material::Nothing;
        }
        let features = || {
            let mut features = Vec::new();
            analysis.features(&mut features);
            features
        };
        match &self.by {
            By::Jaccard | By::Containment => Material::Features(features()),
            By::Cosine => {
                let mut weighted = Vec::new();
                analysis.weighted_features(&mut weighted);
                Material::Weighted(weighted)
            }
            By::Sequences(_, Unit::Characters, _) => {
                Material::Characters(analysis.characters().to_vec())
            }
            By::Sequences(_, Unit::Words, _) => Material::Tokens(analysis.tokens().to_vec()),
            By::Distance(simhash) => {
                let fingerprint = simhash.fingerprint(analysis);
                fingerprint.map_or(Material::Nothing, Material::Fingerprint)
            }
            By::Slots { minhash, exact } => {
                let mut signature = vec![0; minhash.slots()];
                minhash.sign(analysis, &mut signature);
                Material::Signature(signature, if *exact { features() } else { Vec::new() })
            }
            By::Smallest(kept) => {
                let mut smallest = Vec::new();
                smallest_features(analysis, *kept, &mut smallest);
                Material::Features(smallest)
            }
            By::Sentences => Material::Sentences(analysis.sentences()),
            By::Equality => Material::Nothing,
        }
    }

    /// Returns the score of a pair, or `None` if the two match at no threshold and no distance.
    ///
    /// # Errors
    /// Fails if sequences are too long to be compared.
    pub(super) fn score(&self, a: &Side, b: &Side) -> Result<Option<f64>> {
        if a.state == State::Empty || b.state == State::Empty {
            return Ok(None);
        }
        if a.key == b.key {
            let by_distance = matches!(self.by, By::Distance(_));
            return Ok(Some(if by_distance { 0.0 } else { 1.0 }));
        }
        self.compared(&a.material, &b.material)
    }

    fn compared(&self, a: &Material, b: &Material) -> Result<Option<f64>> {
        use Material as M;
        let similarity = match (&self.by, a, b) {
            (By::Jaccard, M::Features(a), M::Features(b)) => jaccard(a, b),
            (By::Containment, M::Features(a), M::Features(b)) => containment(a, b),
            (By::Cosine, M::Weighted(a), M::Weighted(b)) => cosine(a, b),
            (By::Sequences(of, _, least), M::Characters(a), M::Characters(b)) => {
                return Ok(of.similarity(a, b, *least)?.map(Similarity::get));
            }
            (By::Sequences(of, _, least), M::Tokens(a), M::Tokens(b)) => {
                return Ok(of.similarity(a, b, *least)?.map(Similarity::get));
            }
            (By::Distance(_), M::Fingerprint(a), M::Fingerprint(b)) => {
                return Ok(Some(-f64::from((a ^ b).count_ones())));
            }
            (By::Slots { exact, .. }, M::Signature(a, in_a), M::Signature(b, in_b)) => {
                if *exact && in_a.len().min(in_b.len()) <= SHORT {
                    jaccard(in_a, in_b)
                } else {
                    Similarity::ratio(equal_slots(a, b), a.len())
                }
            }
            (By::Smallest(kept), M::Features(a), M::Features(b)) => bottom_k_jaccard(a, b, *kept),
            (By::Sentences, M::Sentences(Some(a)), M::Sentences(Some(b))) if a == b => {
                Similarity::ONE
            }
            _ => return Ok(None),
        };
        Ok(Some(similarity.get()))
    }
}

impl By {
    fn new(recipe: &Recipe, plan: &Plan) -> Self {
        let settings = plan.settings();
        match (settings.method, settings.measure) {
            (Method::Exact, _) => Self::Equality,
            (Method::SimHash, Measure::Sketch) => {
                Self::Distance(SimHasher::new(&recipe.simhash, Cpu::best()))
            }
            (Method::Sentences, Measure::Sketch) => Self::Sentences,
            (Method::BottomK, Measure::Sketch) => Self::Smallest(plan.slots()),
            (method @ (Method::Auto | Method::MinHash), Measure::Sketch) => Self::Slots {
                minhash: MinHasher::new(&recipe.minhash, Cpu::best()),
                exact: method == Method::Auto,
            },
            (_, Measure::Jaccard | Measure::Sketch) => Self::Jaccard,
            (_, Measure::Containment) => Self::Containment,
            (_, Measure::Cosine) => Self::Cosine,
            (_, Measure::Levenshtein) => Self::sequences(OfSequences::Levenshtein, plan),
            (_, Measure::Indel) => Self::sequences(OfSequences::Indel, plan),
            (_, Measure::Substring) => Self::sequences(OfSequences::Substring, plan),
        }
    }

    fn sequences(of: OfSequences, plan: &Plan) -> Self {
        Self::Sequences(of, plan.settings().unit, plan.threshold())
    }
}
