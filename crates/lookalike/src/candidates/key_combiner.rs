//! Bucket keys of several rare features, where buckets of a single one would be crowded.
//!
//! As a corpus grows, so does the number of documents that have even their rarest features in common. Their
//! combinations stay rare. Let c₁, c₂, c₃ be the first features that two sets share, in the order of the
//! [prefix filter](super::PrefixLengths). If the sets share enough features for a match, c₁ is in the prefixes of
//! both, c₂ in prefixes that are one feature longer, and c₃ in prefixes two features longer (Wang, Li, Feng, "Can
//! we beat the prefix filtering?", SIGMOD 2012). So both sets have these keys:
//!
//! ```text
//! c₁          unless it is crowded, that is, more documents than `most` have it
//! c₁ c₂       if c₁ is crowded, unless c₁ c₂ is crowded too
//! c₁ c₂ c₃    if c₁ c₂ is crowded
//! ```
//!
//! Guarantee: two sets that reach the threshold have a key in common, because whether a key is crowded depends on the
//! key alone. So both sets have the same one of the three. Where a match may share fewer features than a key has, the
//! sizes of both sets show it, and both have the shorter key as well.
//!
//! Counts of combinations are those of a table without collision handling ([`KeyCounters`]): counts that are too
//! large cost time and lose nothing.

use std::sync::atomic::{AtomicU8, Ordering};

use super::buckets::BucketSide;
use super::prefix_filter::{RarestFeatures, feature_key};
use crate::arch::prefetch;
use crate::hash::mix_bits;

/// Largest number of features in a key.
pub(crate) const MAX_KEY_FEATURES: usize = 3;

/// A bucket key of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CombinedKey {
    pub(crate) key: u64,
    pub(crate) side: BucketSide,
    /// Number of features that the key consists of.
    pub(crate) features: usize,
    /// Number of documents that have the key, or more; 0 if it has not been counted. Counts of combinations end at
    /// 255, from where the frequency is that of the key with one feature less.
    pub(crate) frequency: u32,
}

/// Makes bucket keys of rare features and of their combinations.
#[derive(Debug)]
pub(crate) struct KeyCombiner {
    /// Number of documents with a key above which the key is crowded.
    most: u32,
    /// Largest number of features in a key.
    max_features: usize,
    /// Counts of the keys of two features, of three features and so on, as far as they have been counted.
    counters: Vec<KeyCounters>,
}

impl KeyCombiner {
    /// Returns a combiner whose keys are single features.
    pub(crate) fn for_single_features() -> Self {
        Self::with_limit(u32::MAX, 1)
    }

    /// Returns a combiner for which keys of more than `most` documents are crowded, with up to `max_features`
    /// features in a key. No combination has been counted yet.
    pub(crate) fn with_limit(most: u32, max_features: usize) -> Self {
        Self {
            most,
            max_features,
            counters: Vec::new(),
        }
    }

    /// Number of documents with a key above which the key is crowded.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Returns `true` if combinations of the key with further features take its place.
    pub(crate) fn is_crowded(&self, key: &CombinedKey) -> bool {
        key.features < self.max_features && key.frequency > self.most
    }

    /// Largest number of features in a key.
    pub(crate) fn max_features(&self) -> usize {
        self.max_features
    }

    /// Returns `true` if keys of the largest number of features have not been counted, and need it.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.max_features > self.counters.len() + 1
    }

    /// Adds the counts of the keys of [`max_features`](Self::max_features) features.
    pub(crate) fn add_counters(&mut self, counters: KeyCounters) {
        self.counters.push(counters);
    }

    /// Lets crowded keys of the largest number of features have one feature more.
    pub(crate) fn raise_max_features(&mut self) {
        self.max_features += 1;
    }

    /// Lowers the largest number of features in a key by one.
    pub(crate) fn lower_max_features(&mut self) {
        self.max_features -= 1;
    }

    /// Calls `visit` with the bucket keys of a document. Of those with the largest number of features, only keys
    /// that `wants` accepts are visited, and only their counts are read.
    pub(crate) fn visit_keys(
        &self,
        rarest: &RarestFeatures,
        buffer: &mut KeyBuffer,
        wants: impl Fn(u64) -> bool,
        mut visit: impl FnMut(CombinedKey),
    ) {
        let is_wanted = |features: usize, key: u64| features < self.max_features || wants(key);
        let KeyBuffer { open, longer } = buffer;
        open.clear();
        let features = rarest.features();
        let prefix = &features[..rarest.probing().min(features.len())];
        for (at, &(frequency, feature)) in prefix.iter().enumerate() {
            let key = feature_key(feature);
            if is_wanted(1, key) {
                let side = BucketSide::of_prefix(at < rarest.indexing());
                open.push((
                    CombinedKey {
                        key,
                        side,
                        features: 1,
                        frequency,
                    },
                    at + 1,
                ));
            }
        }
        for count in 1..=self.max_features {
            longer.clear();
            for &(key, next) in &*open {
                let is_crowded = self.is_crowded(&key);
                if !is_crowded || rarest.least_shared() <= count {
                    visit(key);
                }
                if is_crowded {
                    extend_key(rarest, key, next, |longer_key, next| {
                        if is_wanted(count + 1, longer_key.key) {
                            longer.push((longer_key, next));
                        }
                    });
                }
            }
            match self.counters.get(count - 1) {
                Some(counters) => counters.look_up_all(longer),
                None => longer.iter_mut().for_each(|(key, _)| key.frequency = 0),
            }
            std::mem::swap(open, longer);
        }
    }
}

/// Calls `visit` with the combinations of a key with one of the features from `next` on, and with the position
/// behind that feature.
fn extend_key(
    rarest: &RarestFeatures,
    key: CombinedKey,
    next: usize,
    mut visit: impl FnMut(CombinedKey, usize),
) {
    let further = rarest.features().iter().enumerate();
    let end = rarest.probing() + key.features;
    for (at, &(_, feature)) in further.take(end).skip(next) {
        let is_indexing = key.side == BucketSide::Indexing && at < rarest.indexing() + key.features;
        let combined = CombinedKey {
            key: mix_bits(key.key ^ feature.rotate_left(32)),
            side: BucketSide::of_prefix(is_indexing),
            features: key.features + 1,
            frequency: key.frequency,
        };
        visit(combined, at + 1);
    }
}

/// Buffers of [`KeyCombiner::visit_keys`]: keys, each with the position of the first feature that may extend it.
#[derive(Debug, Default)]
pub(crate) struct KeyBuffer {
    open: Vec<(CombinedKey, usize)>,
    longer: Vec<(CombinedKey, usize)>,
}

/// Counts of keys up to 255, in a table of one byte each without collision handling.
#[derive(Debug)]
pub(crate) struct KeyCounters {
    counts: Vec<AtomicU8>,
}

impl KeyCounters {
    /// Returns a table for about this many keys.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        let counts = keys.next_power_of_two().clamp(1 << 12, MAX_COUNTERS);
        Self {
            counts: (0..counts).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    /// Prefetches the counters of keys, then counts them.
    pub(crate) fn count_keys(&self, keys: &[u64]) {
        keys.iter().for_each(|&key| prefetch(self.counter_of(key)));
        for &key in keys {
            let counter = self.counter_of(key);
            let more = |count: u8| count.checked_add(1);
            // Refused at 255, where the count ends.
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Replaces the frequency of keys, which is that of the key with one feature less, by their own count, unless that has
    /// reached 255. All counters are prefetched first, because they are scattered in memory.
    fn look_up_all(&self, keys: &mut [(CombinedKey, usize)]) {
        keys.iter()
            .for_each(|(key, _)| prefetch(self.counter_of(key.key)));
        for (key, _) in keys {
            match self.count_of_key(key.key) {
                u8::MAX => {}
                count => key.frequency = count.into(),
            }
        }
    }

    fn count_of_key(&self, key: u64) -> u8 {
        self.counter_of(key).load(Ordering::Relaxed)
    }

    fn counter_of(&self, key: u64) -> &AtomicU8 {
        &self.counts[(key >> 16) as usize & (self.counts.len() - 1)]
    }
}

/// Largest number of counters, one byte each.
const MAX_COUNTERS: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::feature_counters::FeatureCounters;
    use super::super::prefix_filter::PrefixLengths;
    use super::*;
    use crate::similarity::{OverlapBound, intersection};
    use crate::types::Threshold;

    /// Returns the keys of every set, after all combinations have been counted.
    fn keys_of(sets: &[Vec<u64>], threshold: Threshold, most: u32) -> Vec<Vec<CombinedKey>> {
        let frequencies = FeatureCounters::from_counts(vec![0; 1 << 12]);
        sets.iter().for_each(|set| frequencies.count_features(set));
        let bound = OverlapBound::Jaccard(threshold);
        let mut rarest = vec![RarestFeatures::default(); sets.len()];
        for (rarest, set) in rarest.iter_mut().zip(sets) {
            let prefixes = PrefixLengths::from_feature_count(set.len(), bound);
            let least = bound.least_shared_with_any(set.len());
            rarest.select(set, &frequencies, prefixes, least, MAX_KEY_FEATURES - 1);
        }
        let mut combiner = KeyCombiner::with_limit(most, 2);
        let visit = |combiner: &KeyCombiner, rarest: &RarestFeatures| {
            let mut keys = Vec::new();
            combiner.visit_keys(
                rarest,
                &mut KeyBuffer::default(),
                |_| true,
                |key| keys.push(key),
            );
            keys
        };
        while combiner.max_features() <= MAX_KEY_FEATURES {
            let counters = KeyCounters::with_capacity(1 << 12);
            for rarest in &rarest {
                let keys = visit(&combiner, rarest).into_iter();
                let longest = keys.filter(|key| key.features == combiner.max_features());
                counters.count_keys(&longest.map(|key| key.key).collect::<Vec<_>>());
            }
            combiner.add_counters(counters);
            combiner.raise_max_features();
        }
        combiner.lower_max_features();
        rarest
            .iter()
            .map(|rarest| visit(&combiner, rarest))
            .collect()
    }

    /// Sets of 1 to 30 of few features, so that most keys are crowded.
    fn random_sets(seed: u64) -> Vec<Vec<u64>> {
        let set = |at: u64| {
            let random = |of: u64| mix_bits(seed << 40 | at << 20 | of);
            let (template, size) = (random(0) % 6, 1 + random(1) % 30);
            let own = |of: u64| random(of).is_multiple_of(8);
            let feature = |of: u64| {
                if own(of) {
                    random(of + 100) % 60
                } else {
                    template * 7 + of
                }
            };
            let features: BTreeSet<u64> = (2..2 + size).map(feature).map(mix_bits).collect();
            features.into_iter().collect()
        };
        (0..150).map(set).collect()
    }

    #[test]
    fn matching_sets_have_a_key_in_common() {
        let (mut matching, mut combined) = (0, 0);
        for hundredths in [5u32, 10, 34, 50, 67, 75, 80, 90, 100] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            for most in [1, 3, 20] {
                let sets = random_sets(hundredths.into());
                let keys = keys_of(&sets, threshold, most);
                combined += keys
                    .iter()
                    .flatten()
                    .filter(|key| key.features == 3)
                    .count();
                for (a, one) in sets.iter().enumerate() {
                    for (b, other) in sets.iter().enumerate().skip(a + 1) {
                        let shared = intersection(one, other);
                        if !threshold.admits_ratio(shared, one.len() + other.len() - shared) {
                            continue;
                        }
                        matching += 1;
                        let met = |own: &CombinedKey| {
                            keys[b].iter().any(|key| {
                                key.key == own.key
                                    && (own.side == BucketSide::Indexing
                                        || key.side == BucketSide::Indexing)
                            })
                        };
                        assert!(
                            keys[a].iter().any(met),
                            "{hundredths} {most} {one:?} {other:?}"
                        );
                    }
                }
            }
        }
        assert!(
            matching > 20_000 && combined > 20_000,
            "{matching} {combined}"
        );
    }

    #[test]
    fn crowded_keys_get_further_features() {
        // Twenty sets share features 1 to 3, ten of them the fourth; all other features are their own.
        let set = |at: u64| {
            let fourth = if at.is_multiple_of(2) { 4 } else { 100 + at };
            let set: BTreeSet<u64> = [1, 2, 3, fourth].map(mix_bits).into();
            set.into_iter().collect::<Vec<u64>>()
        };
        let sets: Vec<_> = (0..20).map(set).collect();
        // A match shares three features at least, and the prefixes have one and two.
        let threshold = Threshold::new(0.7).unwrap();
        let sizes = |most: u32| -> BTreeSet<usize> {
            let keys = keys_of(&sets, threshold, most);
            keys.iter().flatten().map(|key| key.features).collect()
        };
        assert_eq!(sizes(20), BTreeSet::from([1]));
        assert_eq!(sizes(10), BTreeSet::from([1, 3]));
        assert_eq!(sizes(9), BTreeSet::from([3]));
    }

    #[test]
    fn counts_end_at_their_largest_number() {
        let counters = KeyCounters::with_capacity(10);
        (0..300).for_each(|_| counters.count_keys(&[5 << 16]));
        counters.count_keys(&[6 << 16]);
        assert_eq!(counters.count_of_key(5 << 16), 255);
        assert_eq!(counters.count_of_key(6 << 16), 1);
        assert_eq!(counters.count_of_key(7 << 16), 0);
    }
}
