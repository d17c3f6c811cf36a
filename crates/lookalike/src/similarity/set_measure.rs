//! Measures of sets of features: a ratio of the shared features to both sizes.

use super::jaccard::intersection_of_at_least;
use crate::plan::MatchPlan;
use crate::types::{Similarity, Threshold};

/// A measure of the similarity of two sets of features.
///
/// ```
/// use lookalike::similarity::SetMeasure;
///
/// // 6 features are shared, of 8 and of 12.
/// assert_eq!(SetMeasure::Containment.similarity_of_sizes(6, 8, 12).get(), 0.75);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetMeasure {
    /// |A ∩ B| / |A ∪ B|.
    Jaccard,
    /// |A ∩ B| / min(|A|, |B|).
    Containment,
}

impl SetMeasure {
    /// Returns the similarity of two sets of `a` and `b` features that share `shared`; 0 if it is undefined.
    pub fn similarity_of_sizes(self, shared: usize, a: usize, b: usize) -> Similarity {
        match self {
            Self::Jaccard => Similarity::from_ratio(shared, a + b - shared),
            Self::Containment => Similarity::from_ratio(shared, a.min(b)),
        }
    }

    /// Returns the least number of features that two sets of `less` and `more` features share if their
    /// similarity reaches the threshold. Returns `None` if no sets of these sizes reach it.
    #[inline]
    fn least_shared(self, threshold: Threshold, less: usize, more: usize) -> Option<usize> {
        match self {
            Self::Jaccard => (more > 0 && threshold.admits_ratio(less, more))
                .then(|| threshold.least_shared(less + more)),
            Self::Containment => (less > 0).then(|| threshold.least_part(less)),
        }
    }

    /// Returns `true` if sets whose similarity reaches a threshold have a least Jaccard index, whatever their
    /// sizes are.
    pub fn bounds_jaccard(self) -> bool {
        self != Self::Containment
    }

    /// Describes how the similarity of two sets comes about.
    pub(crate) fn describe_sizes(self, shared: usize, a: usize, b: usize) -> String {
        match self {
            Self::Jaccard => format!("features: {a} and {b}, {shared} shared"),
            Self::Containment => format!("{shared} of the {} of the smaller", a.min(b)),
        }
    }
}

/// The check of two sets of features by a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetCheck {
    measure: SetMeasure,
    threshold: Threshold,
    /// Least Jaccard index, if the plan has one besides the threshold.
    least_jaccard: Option<Threshold>,
}

impl SetCheck {
    /// Returns the check that a plan makes by a measure.
    pub(crate) fn new(plan: &MatchPlan, measure: SetMeasure) -> Self {
        Self {
            measure,
            threshold: plan.threshold(),
            least_jaccard: plan.separate_candidate_threshold(),
        }
    }

    /// Returns the check that two sets have the least Jaccard index of the plan's candidates.
    pub(crate) fn of_candidates(plan: &MatchPlan) -> Self {
        Self {
            measure: SetMeasure::Jaccard,
            threshold: plan.candidate_threshold(),
            least_jaccard: None,
        }
    }

    /// Returns the similarity of two sets if it reaches the threshold, and their Jaccard index the least one of
    /// candidates.
    #[inline]
    pub(crate) fn verify_sets(self, a: &[u64], b: &[u64]) -> Option<Similarity> {
        let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let least = self
            .measure
            .least_shared(self.threshold, less.len(), more.len())?;
        let shared = intersection_of_at_least(less, more, least)?;
        if let Some(least_jaccard) = self.least_jaccard
            && !least_jaccard.admits_ratio(shared, less.len() + more.len() - shared)
        {
            return None;
        }
        let similarity = self
            .measure
            .similarity_of_sizes(shared, less.len(), more.len());
        Some(similarity)
    }
}
