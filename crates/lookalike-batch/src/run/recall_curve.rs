//! The expected share of matching pairs that a plan finds, by their similarity.
//!
//! One place computes it for reports, `--explain-plan` and whatever else shows it, so that all say the same of a pair.

use std::f64::consts::PI;

use lookalike::plan::{BandPlan, BottomKPlan, MatchPlan};

/// Probability that a pair of documents with sketches is found, as a function of its similarity.
///
/// ```
/// use lookalike::Recipe;
/// use lookalike::plan::{MatchPlan, MatchSettings, RECALL};
/// use lookalike_batch::run::RecallCurve;
///
/// let plan = MatchPlan::new(&Recipe::built_in("default")?, MatchSettings::default())?;
/// let curve = RecallCurve::from_plan(&plan).unwrap();
/// assert!(curve.recall_at(plan.threshold().get()) >= RECALL);
/// assert_eq!(curve.axis_name(), "Jaccard");
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RecallCurve(CurveKind);

#[derive(Debug, Clone, Copy)]
enum CurveKind {
    /// As a function of the Jaccard index.
    Bands { bands: BandPlan, slots: usize },
    /// As a function of the Jaccard index.
    Smallest(BottomKPlan),
    /// As a function of the cosine of the weighted features.
    Distance { most: u32, bits: u32 },
}

impl RecallCurve {
    /// Returns the curve of a plan. `None` if no pair at the threshold is lost or nothing is predicted.
    pub fn from_plan(plan: &MatchPlan) -> Option<Self> {
        let by_bands = plan.band_plan().map(|bands| CurveKind::Bands {
            bands,
            slots: plan.signature_slots(),
        });
        let by_smallest = plan.bottom_k_plan().map(CurveKind::Smallest);
        // Documents that share a block can have any distance, so there is no curve.
        let by_distance = plan.distance().filter(|_| plan.block_plan().is_none());
        let by_distance = by_distance.map(|distance| CurveKind::Distance {
            most: distance.get(),
            bits: plan.fingerprint_bits(),
        });
        by_bands.or(by_smallest).or(by_distance).map(Self)
    }

    /// Returns the name of the similarity of which the recall is a function: `Jaccard` or `cosine`.
    pub fn axis_name(&self) -> &'static str {
        match self.0 {
            CurveKind::Bands { .. } | CurveKind::Smallest(_) => "Jaccard",
            CurveKind::Distance { .. } => "cosine",
        }
    }

    /// Returns the expected recall of pairs with a similarity from 0 to 1. With bands, a pair must share a band and have
    /// enough equal slots. The two conditions are strongly correlated, so the smaller probability is taken.
    pub fn recall_at(&self, similarity: f64) -> f64 {
        match self.0 {
            CurveKind::Bands { bands, slots } => {
                let differing = (slots - bands.min_equal_slots) as u32;
                let near = binomial_at_most(differing, slots as u32, 1.0 - similarity);
                bands.expected_recall(similarity).min(near)
            }
            CurveKind::Smallest(smallest) => {
                let differing = (smallest.hashes - smallest.min_shared_hashes) as u32;
                let near = binomial_at_most(differing, smallest.hashes as u32, 1.0 - similarity);
                smallest.expected_recall(similarity).min(near)
            }
            CurveKind::Distance { most, bits } => {
                binomial_at_most(most, bits, similarity.acos() / PI)
            }
        }
    }
}

/// Returns the probability of at most `most` successes in `trials` trials of the given probability.
fn binomial_at_most(most: u32, trials: u32, probability: f64) -> f64 {
    if probability <= 0.0 {
        return 1.0;
    }
    if probability >= 1.0 {
        return f64::from(u8::from(most >= trials));
    }
    let odds = probability / (1.0 - probability);
    let mut term = (1.0 - probability).powi(trials as i32);
    let mut sum = 0.0;
    for successes in 0..=most.min(trials) {
        sum += term;
        term *= odds * f64::from(trials - successes) / f64::from(successes + 1);
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use lookalike::Recipe;
    use lookalike::plan::{MatchSettings, RECALL};

    use super::*;

    #[test]
    fn binomial_sums_equal_worked_examples() {
        assert!((binomial_at_most(0, 3, 0.5) - 0.125).abs() < 1e-12);
        assert!((binomial_at_most(1, 3, 0.5) - 0.5).abs() < 1e-12);
        assert_eq!(
            (
                binomial_at_most(3, 64, 0.0),
                binomial_at_most(3, 64, 1.0),
                binomial_at_most(3, 3, 1.0)
            ),
            (1.0, 0.0, 1.0)
        );
        assert!((binomial_at_most(64, 64, 0.3) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn recall_rises_and_holds_at_threshold() {
        let plan = MatchPlan::new(&Recipe::default(), MatchSettings::default()).unwrap();
        let curve = RecallCurve::from_plan(&plan).unwrap();
        let recalls = (0..=100).map(|at| curve.recall_at(f64::from(at) / 100.0));
        let recalls: Vec<_> = recalls.collect();
        // Sums of many terms are rounded.
        let rises = |two: &[f64]| two[1] >= two[0] - 1e-12;
        assert!(recalls.windows(2).all(rises), "{recalls:?}");
        assert!(curve.recall_at(plan.threshold().get()) >= RECALL);
        assert!(curve.recall_at(0.5) < 0.05);
    }
}
