//! Counts of how often features occur in a corpus, by which the prefix filter orders them.

use std::sync::atomic::{AtomicU32, Ordering};

use super::seen_twice_filter::SeenTwiceFilter;
use crate::arch::prefetch;

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
    pub(super) fn count_of_feature(&self, feature: u64) -> u32 {
        match &self.seen_twice {
            Some(seen) if !seen.may_be_shared(feature) => 1,
            _ => self.counter_of(feature).load(Ordering::Relaxed),
        }
    }

    /// Returns `true` if most documents are long. Their features are made only when they are needed, so nothing has
    /// prefetched their counters.
    pub(crate) fn records_long_documents(&self) -> bool {
        self.seen_twice.is_some()
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
}
