//! Numbers of pairs that were found, missed and found wrongly.

use serde::Serialize;

/// The four numbers of a binary decision.
///
/// ```
/// use lookalike::quality::evaluate::ConfusionCounts;
///
/// let mut counts = ConfusionCounts::default();
/// for (similar, found) in [(true, true), (true, false), (false, true), (false, false)] {
///     counts.add_decision(similar, found);
/// }
/// assert_eq!((counts.precision(), counts.recall()), (Some(0.5), Some(0.5)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfusionCounts {
    /// Similar pairs that were found.
    pub true_positives: u64,
    /// Pairs that were found and are not similar.
    pub false_positives: u64,
    /// Similar pairs that were not found.
    pub false_negatives: u64,
    /// Pairs that are not similar and were not found.
    pub true_negatives: u64,
}

impl ConfusionCounts {
    /// Counts one decision.
    pub fn add_decision(&mut self, similar: bool, found: bool) {
        *match (similar, found) {
            (true, true) => &mut self.true_positives,
            (false, true) => &mut self.false_positives,
            (true, false) => &mut self.false_negatives,
            (false, false) => &mut self.true_negatives,
        } += 1;
    }

    /// Returns the share of found pairs that are similar, or `None` if nothing was found.
    pub fn precision(&self) -> Option<f64> {
        ratio(
            self.true_positives,
            self.true_positives + self.false_positives,
        )
    }

    /// Returns the share of similar pairs that were found, or `None` if no pair is similar.
    pub fn recall(&self) -> Option<f64> {
        ratio(
            self.true_positives,
            self.true_positives + self.false_negatives,
        )
    }

    /// Returns the harmonic mean of precision and recall, 2·TP / (2·TP + FP + FN). It is 0 if there are
    /// similar pairs and none was found, and `None` if no pair is similar and none was found.
    pub fn f1_score(&self) -> Option<f64> {
        let both = 2 * self.true_positives;
        ratio(both, both + self.false_positives + self.false_negatives)
    }
}

/// Returns `part / whole`, or `None` if the whole is 0.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
