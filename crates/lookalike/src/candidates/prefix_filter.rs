//! The prefix filter: the rarest features of a document are its bucket keys.
//!
//! Two sets that reach the threshold have a feature in common in their prefixes under any total order of the
//! features. Ordering by frequency makes buckets small. Frequencies are counted in a table without collision
//! handling: counts that are too large cost only time.

use super::buckets::BucketSide;
use super::containment_filter::ContainmentFilter;
use super::feature_counters::FeatureCounters;
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

/// The prefixes of sets by their number of features, of which those of small sets are computed only once.
#[derive(Debug)]
pub(crate) struct PrefixTable {
    bound: OverlapBound,
    small: Vec<(PrefixLengths, usize)>,
}

/// Number of set sizes whose prefixes are computed only once.
const SMALL_SETS: usize = 128;

impl PrefixTable {
    pub(crate) fn new(bound: OverlapBound) -> Self {
        let small = (0..SMALL_SETS).map(|features| Self::compute_prefixes(bound, features));
        Self {
            bound,
            small: small.collect(),
        }
    }

    /// Returns the prefixes of a set, and the least number of features that it shares with a match.
    pub(crate) fn prefixes_of(&self, features: usize) -> (PrefixLengths, usize) {
        let known = self.small.get(features).copied();
        known.unwrap_or_else(|| Self::compute_prefixes(self.bound, features))
    }

    /// Returns the prefixes as [`prefixes_of`](Self::prefixes_of) does, for callers that do not count shared
    /// features.
    pub(crate) fn prefixes_of_one_hit(&self, features: usize) -> (PrefixLengths, usize) {
        match self.bound {
            OverlapBound::Jaccard(_) => self.prefixes_of(features),
            OverlapBound::Containment(_) => {
                let features = features.max(1);
                let prefixes = PrefixLengths::with_one_hit(features, self.bound);
                (prefixes, self.bound.least_shared_with_any(features))
            }
        }
    }

    fn compute_prefixes(bound: OverlapBound, features: usize) -> (PrefixLengths, usize) {
        let features = features.max(1);
        let prefixes = PrefixLengths::from_feature_count(features, bound);
        (prefixes, bound.least_shared_with_any(features))
    }
}

/// The features of a document that serve as its bucket keys, the rarest ones first.
#[derive(Clone, Debug, Default)]
pub(crate) struct RarestFeatures {
    /// Pairs of a frequency and a feature. In ascending order as far as keys need it: those of the indexing
    /// prefix come first, and all are sorted if there are further ones behind the probing prefix.
    features: Vec<(u32, u64)>,
    /// Number of features in the indexing prefix.
    indexing: usize,
    /// Number of features in the probing prefix.
    probing: usize,
    /// Number of features that the document shares with any match, at least.
    least_shared: usize,
}

impl RarestFeatures {
    /// Finds the features of a document that serve as its bucket keys, and `further` features behind its probing
    /// prefix, with which keys of several features are made ([`KeyCombiner`](super::KeyCombiner)).
    /// `least_shared` is the number of features that the document shares with any match, at least. Leaves
    /// `self` empty if the document has so many features of its own that it cannot match any other.
    pub(crate) fn select(
        &mut self,
        features: &[u64],
        frequencies: &FeatureCounters,
        prefixes: PrefixLengths,
        least_shared: usize,
        further: usize,
    ) {
        self.clear_features();
        if features.is_empty() {
            return;
        }
        if frequencies.records_long_documents() {
            frequencies.prefetch_counters(features);
        }
        let order = &mut self.features;
        let count = |&feature: &u64| (frequencies.count_of_feature(feature), feature);
        order.extend(features.iter().map(count));
        let alone = order.iter().filter(|(count, _)| *count <= 1).count();
        if alone >= prefixes.probing {
            return self.clear_features();
        }
        let length = prefixes.probing + further;
        if length < order.len() {
            order.select_nth_unstable(length - 1);
            order.truncate(length);
        }
        if further > 0 {
            order.sort_unstable();
        } else if prefixes.indexing < order.len() {
            order.select_nth_unstable(prefixes.indexing - 1);
        }
        order.retain(|&(count, _)| count > 1);
        self.indexing = prefixes.indexing.saturating_sub(alone);
        self.probing = prefixes.probing - alone;
        self.least_shared = least_shared;
    }

    /// Returns the bucket key of each feature of the probing prefix, and the side on which the document is in
    /// that bucket.
    pub(crate) fn bucket_keys(&self) -> impl Iterator<Item = (u64, BucketSide)> {
        let prefix = &self.features[..self.probing.min(self.features.len())];
        let keys = prefix.iter().enumerate();
        keys.map(|(at, &(_, feature))| {
            let side = BucketSide::of_prefix(at < self.indexing);
            (feature_key(feature), side)
        })
    }

    /// Features in ascending order of their frequency, with the frequency first.
    pub(super) fn features(&self) -> &[(u32, u64)] {
        &self.features
    }

    pub(super) fn indexing(&self) -> usize {
        self.indexing
    }

    pub(super) fn probing(&self) -> usize {
        self.probing
    }

    pub(super) fn least_shared(&self) -> usize {
        self.least_shared
    }

    fn clear_features(&mut self) {
        self.features.clear();
        self.indexing = 0;
        self.probing = 0;
    }
}
