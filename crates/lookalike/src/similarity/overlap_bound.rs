//! The least overlap of two sets of features with which the exact join makes them candidates.

use crate::types::Threshold;

/// A bound of the overlap of two sets. It follows from the measure and the threshold of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OverlapBound {
    /// A least Jaccard index.
    Jaccard(Threshold),
    /// A least share of the smaller set, whatever the size of the larger one is.
    Containment(Threshold),
}

impl OverlapBound {
    /// Returns `true` if two sets of these sizes that share `shared` features reach the bound. Neither may be
    /// empty.
    #[inline]
    pub(crate) fn admits_overlap(self, shared: usize, one: usize, other: usize) -> bool {
        match self {
            Self::Jaccard(threshold) => threshold.admits_ratio(shared, one + other - shared),
            Self::Containment(threshold) => threshold.admits_ratio(shared, one.min(other)),
        }
    }

    /// Returns the least number of features that a set of `features` features shares with any set that reaches the
    /// bound; at least 1.
    pub(crate) fn least_shared_with_any(self, features: usize) -> usize {
        match self {
            // Two sets that reach the threshold share at least its part of the larger one.
            Self::Jaccard(threshold) => threshold.least_part(features).max(1),
            Self::Containment(_) => 1,
        }
    }

    /// Returns the least containment, if the bound is one.
    pub(crate) fn least_containment(self) -> Option<Threshold> {
        match self {
            Self::Jaccard(_) => None,
            Self::Containment(threshold) => Some(threshold),
        }
    }
}
