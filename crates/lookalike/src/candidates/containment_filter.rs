//! Exact candidates for containment: the prefix filter in its asymmetric form, and a count of shared prefix
//! features.
//!
//! A set x of n features is contained in a larger set y at the threshold t if y has at least ⌈t·n⌉ of them.
//! Then at most n − ⌈t·n⌉ features of x are not in y. So of *any* n − ⌈t·n⌉ + h features of x, at least h are in
//! y, whatever the size of y is (Chaudhuri et al. 2006 and Bayardo et al. 2007 for h = 1; Wang et al. 2012 for
//! larger h).
//!
//! The first features of x in some order are its indexing prefix. The larger set is looked up with *all* of
//! its features, because any of them may be in the prefix of a smaller one. Sides of buckets express this:
//!
//! ```text
//! features of a set, the rarest first   | prefix: n − ⌈t·n⌉ + h |       all others        |
//! side under their bucket keys          |       indexing        |         probing         |
//! ```
//!
//! A pair has a bucket for every prefix feature of the smaller set that the larger one has. It is a candidate
//! only if these are at least h, so a single frequent feature in common is not enough.
//!
//! Guarantee: no pair at the threshold is lost, under any order of the features. Both sets may even be ordered
//! differently, because the larger one has all of its features as keys.
//!
//! Cost: a key for each feature that other documents have too, and for every key that a prefix has, as
//! many steps as documents have the key.

use super::buckets::BucketSide;
use crate::plan::MatchPlan;
use crate::types::Threshold;

/// Prefix features that a contained set shares at least, for each feature that it may lack in the larger set. More
/// of them make prefixes longer and false candidates fewer.
const HITS_PER_MISS: usize = 1;

/// Largest number of shared prefix features that is asked for, so that counters need 16 bits.
const MOST_HITS: usize = 1 << 15;

/// Decides by the numbers of shared prefix features which pairs may reach a containment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContainmentFilter {
    threshold: Threshold,
}

impl ContainmentFilter {
    /// Returns the filter of a plan, if it joins by containment.
    pub(crate) fn for_plan(plan: &MatchPlan) -> Option<Self> {
        plan.overlap_bound().least_containment().map(Self::new)
    }

    pub(crate) fn new(threshold: Threshold) -> Self {
        Self { threshold }
    }

    /// Returns the number of features in the prefix of a set of `features` features, which must not be 0.
    pub(crate) fn prefix_length(self, features: usize) -> usize {
        let (misses, hits) = self.limits(features);
        misses + hits
    }

    /// Returns the number of features of which a larger set has at least one, if the set of `features` features is
    /// contained in it.
    pub(crate) fn shortest_prefix(self, features: usize) -> usize {
        self.limits(features).0 + 1
    }

    /// Returns the number of features that a set may lack in a larger one, and the number of prefix features that
    /// it then shares at least.
    fn limits(self, features: usize) -> (usize, usize) {
        let least = self.threshold.least_part(features).max(1);
        let misses = features - least;
        let hits = least.min(1 + HITS_PER_MISS * misses).min(MOST_HITS);
        (misses, hits)
    }

    /// Returns `true` if two sets of these sizes may reach the threshold, by the prefix features that they share.
    #[inline]
    pub(crate) fn may_match(self, hits: PrefixHits, own_size: usize, other_size: usize) -> bool {
        let is_enough =
            |hits: u16, size: usize| size > 0 && usize::from(hits) >= self.limits(size).1;
        (own_size > other_size || is_enough(hits.own, own_size))
            && (other_size > own_size || is_enough(hits.other, other_size))
    }
}

/// Numbers of prefix features that a document shares with another one. They stop at the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixHits {
    /// Features of the own prefix that the other document has.
    own: u16,
    /// Features of the other document's prefix.
    other: u16,
}

impl PrefixHits {
    /// Returns the hit of one shared key, by the sides of both documents.
    pub(crate) fn from_sides(own: BucketSide, other: BucketSide) -> Self {
        Self {
            own: u16::from(own == BucketSide::Indexing),
            other: u16::from(other == BucketSide::Indexing),
        }
    }

    /// Returns `true` if no prefix feature is shared.
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Adds the hits of further keys.
    pub(crate) fn add_hits(&mut self, more: Self) {
        self.own = self.own.saturating_add(more.own);
        self.other = self.other.saturating_add(more.other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(own: usize, other: usize) -> PrefixHits {
        let number = |hits: usize| u16::try_from(hits).unwrap_or(u16::MAX);
        PrefixHits {
            own: number(own),
            other: number(other),
        }
    }

    /// A set that lacks as many features as the threshold permits, all of them in its prefix, has exactly the
    /// hits that are asked for. With one more missing, it has fewer.
    #[test]
    fn one_missing_feature_decides() {
        for hundredths in (5..=100).step_by(5).chain([1, 33, 67, 99]) {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            let filter = ContainmentFilter::new(threshold);
            for size in (1..200).chain([1000, 40_000, 100_000, 1_000_000]) {
                let prefix = filter.prefix_length(size);
                let least = threshold.least_part(size);
                assert!((1..=size).contains(&prefix));
                assert_eq!(filter.shortest_prefix(size), size - least.max(1) + 1);
                for (shared, expected) in [(least - 1, false), (least, true), (least + 1, true)] {
                    if shared > size || shared == 0 {
                        continue;
                    }
                    let in_prefix = prefix.saturating_sub(size - shared);
                    for larger in [size + 1, 20 * size] {
                        let found = filter.may_match(hits(in_prefix, 0), size, larger);
                        assert_eq!(found, expected, "{shared} of {size} at {hundredths}");
                        assert_eq!(filter.may_match(hits(0, in_prefix), larger, size), expected);
                    }
                    let equal = filter.may_match(hits(in_prefix, in_prefix), size, size);
                    assert_eq!(equal, expected);
                    assert!(!filter.may_match(hits(in_prefix, 0), size, size));
                }
            }
        }
    }

    #[test]
    fn counters_stop_at_their_largest_number() {
        let mut sum = PrefixHits::default();
        assert!(sum.is_none());
        for _ in 0..100_000 {
            sum.add_hits(PrefixHits::from_sides(
                BucketSide::Indexing,
                BucketSide::Probing,
            ));
        }
        assert_eq!(sum, hits(100_000, 0));
        assert!(!sum.is_none());
    }
}
