//! The prefix filter: the rarest features of a document are its bucket keys.
//!
//! Two sets that reach the threshold have a feature in common in their prefixes under any total order of the
//! features. Ordering by frequency makes buckets small. Frequencies are counted in a table without collision
//! handling: counts that are too large cost only time.

use std::sync::atomic::{AtomicU32, Ordering};

use super::buckets::BucketSide;
use super::containment_filter::ContainmentFilter;
use super::seen_twice_filter::SeenTwiceFilter;
use crate::arch::prefetch;
use crate::hash::mix_bits;
use crate::similarity::OverlapBound;

/// Returns the bucket key of a feature.
pub(crate) fn feature_key(feature: u64) -> u64 {
    mix_bits(feature ^ FEATURE_ROUTE)
}

const FEATURE_ROUTE: u64 = 0x5851_f42d_4c95_7f2d;

/// Numbers of features of a set, the first in any total order, that serve as its bucket keys.
///
/// Of two sets with a Jaccard index of at least t, the probing prefix of the larger one and the indexing
/// prefix of the smaller one have a feature in common (Chaudhuri et al. 2006; Bayardo et al. 2007; both
/// lengths and their names: Xiao et al. 2008). For containment, see [`ContainmentFilter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixLengths {
    /// n − ⌈2t / (1 + t) · n⌉ + 1 of n features, or the prefix of a contained set. Under these, a set is a
    /// candidate for all sets with the key.
    pub(crate) indexing: usize,
    /// n − ⌈t · n⌉ + 1 of n features, which is no fewer, or all of them for containment. Under the additional
    /// ones, a set is a candidate only for sets that have the key in their indexing prefix.
    pub(crate) probing: usize,
}

impl PrefixLengths {
    /// Returns the shortest prefixes of a set of `features` features, which must not be 0. They are for callers
    /// that do not count shared features, and differ for containment only.
    pub(crate) fn with_one_hit(features: usize, bound: OverlapBound) -> Self {
        let prefixes = Self::from_feature_count(features, bound);
        match bound {
            OverlapBound::Jaccard(_) => prefixes,
            OverlapBound::Containment(threshold) => Self {
                indexing: ContainmentFilter::new(threshold).shortest_prefix(features),
                ..prefixes
            },
        }
    }

    /// Returns the prefixes of a set of `features` features, which must not be 0.
    pub(crate) fn from_feature_count(features: usize, bound: OverlapBound) -> Self {
        let all_but = |least: usize| features - least.max(1) + 1;
        match bound {
            OverlapBound::Jaccard(threshold) => Self {
                indexing: all_but(threshold.least_shared(2 * features)),
                probing: all_but(threshold.least_part(features)),
            },
            OverlapBound::Containment(threshold) => Self {
                indexing: ContainmentFilter::new(threshold).prefix_length(features),
                probing: features,
            },
        }
    }
}

/// The features of a document that serve as its bucket keys, with those of the indexing prefix first.
#[derive(Debug, Default)]
pub(crate) struct RarestFeatures {
    /// Pairs of a frequency and a feature.
    features: Vec<(u32, u64)>,
    /// Number of features in the indexing prefix.
    indexing: usize,
}

impl RarestFeatures {
    /// Returns the frequency of each feature, and `true` for those of the indexing prefix.
    pub(crate) fn frequencies(&self) -> impl Iterator<Item = (u32, bool)> {
        let features = self.features.iter().enumerate();
        features.map(|(at, &(frequency, _))| (frequency, at < self.indexing))
    }

    /// Returns the bucket key of each feature and the side on which the document is in that bucket.
    pub(crate) fn bucket_keys(&self) -> impl Iterator<Item = (u64, BucketSide)> {
        let indexing = self.indexing;
        let keys = self.features.iter().enumerate();
        keys.map(move |(at, &(_, feature))| {
            let side = if at < indexing {
                BucketSide::Indexing
            } else {
                BucketSide::Probing
            };
            (feature_key(feature), side)
        })
    }

    /// Removes the features that are in the probing prefix alone and whose keys `keeps` rejects.
    pub(crate) fn retain_keys(&mut self, keeps: impl Fn(u64) -> bool) {
        let mut at = 0;
        self.features.retain(|&(_, feature)| {
            at += 1;
            at <= self.indexing || keeps(feature_key(feature))
        });
    }

    fn clear_features(&mut self) {
        self.features.clear();
        self.indexing = 0;
    }
}

/// Counts of how often features occur, in a table without collision handling.
///
/// A feature that shares its counter with others counts as more frequent than it is. That costs time
/// and never loses a pair, because the prefix filter is exact under any order.
pub(crate) struct FeatureCounters {
    counts: Vec<AtomicU32>,
    /// Features seen twice, if they are recorded.
    seen_twice: Option<SeenTwiceFilter>,
}

impl FeatureCounters {
    /// Returns a table of these counts. Their number must be a power of two.
    pub(crate) fn from_counts(counts: Vec<u32>) -> Self {
        let counts = counts.into_iter().map(AtomicU32::new).collect();
        Self {
            counts,
            seen_twice: None,
        }
    }

    /// Returns the table with a filter, which is for documents so long that the features which only one of
    /// them has would fill the table.
    pub(crate) fn with_filter(self, filter: Option<SeenTwiceFilter>) -> Self {
        Self {
            seen_twice: filter,
            ..self
        }
    }

    /// Prefetches the counters of features.
    pub(crate) fn prefetch_counters(&self, features: &[u64]) {
        let counters = features.iter().map(|&feature| self.counter_of(feature));
        counters.for_each(prefetch);
        if let Some(seen) = &self.seen_twice {
            seen.prefetch_keys(features);
        }
    }

    /// Adds the features of one document to the counts.
    pub(crate) fn count_features(&self, features: &[u64]) {
        // Prefetched first because an atomic addition waits for its cache line, and the following ones
        // wait with it.
        self.prefetch_counters(features);
        for &feature in features {
            self.counter_of(feature).fetch_add(1, Ordering::Relaxed);
        }
        if let Some(seen) = &self.seen_twice {
            features
                .iter()
                .for_each(|&feature| seen.record_key(feature));
        }
    }

    /// Returns how often a feature occurs. Never less than the truth, and exact unless another
    /// feature has the same counter.
    fn count_of_feature(&self, feature: u64) -> u32 {
        match &self.seen_twice {
            Some(seen) if !seen.may_be_shared(feature) => 1,
            _ => self.counter_of(feature).load(Ordering::Relaxed),
        }
    }

    /// Returns all counts.
    pub(crate) fn iter_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }

    fn counter_of(&self, feature: u64) -> &AtomicU32 {
        &self.counts[(feature >> 20) as usize & (self.counts.len() - 1)]
    }

    /// Finds the features of a document that serve as its bucket keys, by the prefixes for its number of features.
    /// Leaves `rarest` empty if the document has so many features of its own that it cannot match any other.
    pub(crate) fn select_rarest(
        &self,
        features: &[u64],
        prefixes: PrefixLengths,
        rarest: &mut RarestFeatures,
    ) {
        rarest.clear_features();
        if features.is_empty() {
            return;
        }
        if self.seen_twice.is_some() {
            // The features of long documents were made only now, so nothing has prefetched their
            // counters.
            self.prefetch_counters(features);
        }
        let order = &mut rarest.features;
        let count = |&feature: &u64| (self.count_of_feature(feature), feature);
        order.extend(features.iter().map(count));
        let alone = order.iter().filter(|(count, _)| *count <= 1).count();
        if alone >= prefixes.probing {
            return rarest.clear_features();
        }
        for prefix in [prefixes.probing, prefixes.indexing] {
            if prefix < order.len() {
                order.select_nth_unstable(prefix - 1);
            }
            order.truncate(prefixes.probing);
        }
        order.retain(|&(count, _)| count > 1);
        rarest.indexing = prefixes.indexing.saturating_sub(alone);
    }
}
