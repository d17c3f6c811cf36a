//! What was found, missed and found wrongly.

use serde::Serialize;

/// The four numbers of a binary decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Similar pairs that were found.
    pub true_positives: u64,
    /// Pairs that were found and are not similar.
    pub false_positives: u64,
    /// Similar pairs that were not found.
    pub false_negatives: u64,
    /// Pairs that are not similar and were not found.
    pub true_negatives: u64,
}

impl Counts {
    /// Counts one decision.
    pub fn add(&mut self, similar: bool, found: bool) {
        *match (similar, found) {
            (true, true) => &mut self.true_positives,
            (false, true) => &mut self.false_positives,
            (true, false) => &mut self.false_negatives,
            (false, false) => &mut self.true_negatives,
        } += 1;
    }

    /// The share of what was found that is similar; none if nothing was found.
    pub fn precision(&self) -> Option<f64> {
        ratio(
            self.true_positives,
            self.true_positives + self.false_positives,
        )
    }

    /// The share of what is similar that was found; none if nothing is similar.
    pub fn recall(&self) -> Option<f64> {
        ratio(
            self.true_positives,
            self.true_positives + self.false_negatives,
        )
    }

    /// The harmonic mean of precision and recall, 2·TP / (2·TP + FP + FN): 0 where something is
    /// similar and none of it was found; none if nothing is similar and nothing was found.
    pub fn f1(&self) -> Option<f64> {
        let both = 2 * self.true_positives;
        ratio(both, both + self.false_positives + self.false_negatives)
    }
}

/// `part / whole`, none if the whole is 0.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
