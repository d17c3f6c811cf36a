//! The sums from which the figures of an audit follow, on one machine and on many.

use std::collections::{BTreeMap, BinaryHeap};

use lookalike::quality::audit::{PARTNERS, WilsonEstimate};

use serde::Serialize;

use crate::run::length_classes;
use crate::run::length_classes::length_class;

/// Number of reported pairs that are compared again.
pub(super) const RECHECKED_PAIRS: usize = 200;

/// The values with the smallest numbers among numbered values that come in any order.
#[derive(Clone, Debug)]
pub(super) struct SmallestNumbers<T> {
    most: usize,
    values: BinaryHeap<(u64, T)>,
}

impl<T: Ord> SmallestNumbers<T> {
    /// Starts without values. At most `most` are stored.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            values: BinaryHeap::new(),
        }
    }

    pub(super) fn offer(&mut self, number: u64, value: T) {
        self.values.push((number, value));
        if self.values.len() > self.most {
            self.values.pop();
        }
    }

    /// Returns `true` if a value of this number would be stored.
    pub(super) fn wants(&self, number: u64) -> bool {
        self.values.len() < self.most || self.values.peek().is_some_and(|last| number <= last.0)
    }

    /// Returns the values so far, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(|(_, value)| value)
    }

    pub(super) fn into_ascending(self) -> Vec<(u64, T)> {
        self.values.into_sorted_vec()
    }
}

/// The mean of shares.
#[derive(Default, Clone, Copy)]
pub(super) struct RunningMean {
    sum: f64,
    cases: u64,
}

impl RunningMean {
    pub(super) fn add_share(&mut self, part: u64, whole: u64) {
        self.sum += part as f64 / whole as f64;
        self.cases += 1;
    }

    pub(super) fn to_share(self) -> EstimatedShare {
        WilsonEstimate::new(self.sum, self.cases).into()
    }
}

/// The later documents similar to a sampled one.
#[derive(Default, Clone, Copy)]
pub(super) struct SimilarCounts {
    pairs: u64,
    /// Pairs that the method finds.
    found: u64,
    /// Pairs of which both documents remain in the output.
    left_together: u64,
}

impl SimilarCounts {
    pub(super) fn add_pair(&mut self, found: bool, left_together: bool) {
        self.pairs += 1;
        self.found += u64::from(found);
        self.left_together += u64::from(left_together);
    }
}

/// The figures over sampled documents that have similar later ones.
#[derive(Default)]
pub(super) struct FoundPairs {
    pub(super) pairs: u64,
    pub(super) recall: RunningMean,
    pub(super) left_together: RunningMean,
    by_length: BTreeMap<&'static str, RunningMean>,
}

impl FoundPairs {
    /// Adds a sampled document of this length in tokens. It counts only if it has similar documents.
    pub(super) fn add_document(&mut self, tokens: usize, counts: SimilarCounts) {
        let SimilarCounts {
            pairs,
            found,
            left_together,
        } = counts;
        if pairs == 0 {
            return;
        }
        debug_assert!(pairs as usize <= PARTNERS);
        self.pairs += pairs;
        self.recall.add_share(found, pairs);
        self.left_together.add_share(left_together, pairs);
        let of_length = self.by_length.entry(length_class(tokens)).or_default();
        of_length.add_share(found, pairs);
    }
}

/// The share of reported pairs that match exactly.
#[derive(Default)]
pub(super) struct PairPrecision {
    pub(super) all: RunningMean,
    by_length: BTreeMap<&'static str, RunningMean>,
}

impl PairPrecision {
    /// Adds a pair whose first document has this length in tokens.
    pub(super) fn add_pair(&mut self, tokens: usize, right: bool) {
        self.all.add_share(u64::from(right), 1);
        let of_length = self.by_length.entry(length_class(tokens)).or_default();
        of_length.add_share(u64::from(right), 1);
    }
}

/// Returns recall and precision of every length class that has cases.
pub(super) fn list_by_length(found: &FoundPairs, precision: &PairPrecision) -> Vec<ByLength> {
    let of =
        |means: &BTreeMap<_, RunningMean>, length| means.get(length).copied().unwrap_or_default();
    let classes = length_classes::class_names().filter_map(|length| {
        let recall = of(&found.by_length, length);
        let precision = of(&precision.by_length, length);
        (recall.cases + precision.cases > 0).then(|| ByLength {
            length,
            recall: recall.to_share(),
            precision: precision.to_share(),
        })
    });
    classes.collect()
}

/// A share with its 95 % confidence interval (Wilson).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct EstimatedShare {
    /// The estimate; `None` without cases.
    pub share: Option<f64>,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Independent cases: documents with a similar one, reported pairs, or copies.
    pub cases: u64,
}

impl From<WilsonEstimate> for EstimatedShare {
    fn from(estimate: WilsonEstimate) -> Self {
        Self {
            share: (estimate.cases > 0).then_some(estimate.share),
            low: estimate.low,
            high: estimate.high,
            cases: estimate.cases,
        }
    }
}

/// Recall and precision of a length class.
#[derive(Debug, Clone, Serialize)]
pub struct ByLength {
    /// The length class in tokens, for example `16-50`.
    pub length: &'static str,
    /// Recall of documents of this length.
    pub recall: EstimatedShare,
    /// Precision of the pairs reported for documents of this length.
    pub precision: EstimatedShare,
}
