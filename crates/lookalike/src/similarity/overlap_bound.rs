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

    /// Returns the least containment, if the bound is one.
    pub(crate) fn least_containment(self) -> Option<Threshold> {
        match self {
            Self::Jaccard(_) => None,
            Self::Containment(threshold) => Some(threshold),
        }
    }
}
