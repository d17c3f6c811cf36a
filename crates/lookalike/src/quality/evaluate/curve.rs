//! Counts at every cut that makes a difference.

use super::counts::ConfusionCounts;

/// The counts if every pair with at least a certain score counts as found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Least score that counts, which is the score of some pair.
    pub cut: f64,
    /// Counts at this cut.
    pub counts: ConfusionCounts,
}

/// Counts at every distinct score, from the highest down. Found pairs only increase along the curve, so
/// recall never falls.
///
/// ```
/// use lookalike::quality::evaluate::{PrecisionRecallCurve, TuningGoal};
///
/// let curve = PrecisionRecallCurve::new([(Some(0.9), true), (Some(0.8), false), (Some(0.7), true)], 0);
/// let best_cut = |goal| curve.best_point(goal).map(|at| curve.curve_points()[at].cut);
/// assert_eq!(best_cut(TuningGoal::F1), Some(0.7));
/// assert_eq!(best_cut(TuningGoal::Precision(1.0)), Some(0.9));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PrecisionRecallCurve {
    points: Vec<CurvePoint>,
}

/// The goal by which a setting is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TuningGoal {
    /// The highest F1.
    F1,
    /// The highest recall at which precision is at least this.
    Precision(f64),
}

impl TuningGoal {
    /// Returns the value to maximise, or `None` if the goal is missed.
    pub fn evaluate_counts(self, counts: &ConfusionCounts) -> Option<f64> {
        match self {
            Self::F1 => counts.f1_score(),
            Self::Precision(least) => counts.recall().filter(|_| {
                counts
                    .precision()
                    .is_some_and(|precision| precision >= least)
            }),
        }
    }
}

impl PrecisionRecallCurve {
    /// Returns the curve of pairs, each with its score, if it has one, and `true` if it is similar.
    /// Another `others` pairs are not similar and have no score. No score may be NaN.
    pub fn new(pairs: impl IntoIterator<Item = (Option<f64>, bool)>, others: u64) -> Self {
        let mut scored = Vec::new();
        let mut counts = ConfusionCounts {
            true_negatives: others,
            ..ConfusionCounts::default()
        };
        for (score, similar) in pairs {
            counts.add_decision(similar, false);
            scored.extend(score.map(|score| (score, similar)));
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let points = scored
            .chunk_by(|a, b| a.0 == b.0)
            .map(|equal| {
                for &(_, similar) in equal {
                    counts.move_to_found(similar);
                }
                CurvePoint {
                    cut: equal[0].0,
                    counts,
                }
            })
            .collect();
        Self { points }
    }

    /// Returns the points, from the highest cut down.
    pub fn curve_points(&self) -> &[CurvePoint] {
        &self.points
    }

    /// Returns the best point by a goal; the one with the highest cut if several are best.
    pub fn best_point(&self, goal: TuningGoal) -> Option<usize> {
        self.best_from(goal, f64::NEG_INFINITY)
    }

    /// Searches only the points whose cut is at least `floor`.
    pub fn best_from(&self, goal: TuningGoal, floor: f64) -> Option<usize> {
        let mut best = None;
        let allowed = self.points.iter().take_while(|point| point.cut >= floor);
        for (at, point) in allowed.enumerate() {
            let Some(value) = goal.evaluate_counts(&point.counts) else {
                continue;
            };
            if best.is_none_or(|(_, highest)| value > highest) {
                best = Some((at, value));
            }
        }
        best.map(|(at, _)| at)
    }

    /// Returns a threshold with as few decimals as possible that has the effect of a point's cut.
    ///
    /// It is above the next lower score, and as near to the middle between the two as its decimals
    /// allow. Scores must be similarities, and `least` is the lowest threshold that may be given.
    pub fn rounded_threshold(&self, point: usize, least: f64) -> f64 {
        let high = self.points[point].cut;
        let below = self.points.get(point + 1).map(|point| point.cut);
        match below {
            Some(low) if low >= least => shortest_between(low, high, false),
            _ => shortest_between(least, high, true),
        }
    }

    /// Returns `true` if a goal of precision is kept at every cut, so that nothing bounds the cut from
    /// below.
    pub fn is_kept_everywhere(&self, goal: TuningGoal) -> bool {
        let last = self.points.last();
        matches!(goal, TuningGoal::Precision(_))
            && last.is_some_and(|point| goal.evaluate_counts(&point.counts).is_some())
    }
}

impl ConfusionCounts {
    /// Moves one pair from those not found to those found.
    fn move_to_found(&mut self, similar: bool) {
        if similar {
            self.false_negatives -= 1;
            self.true_positives += 1;
        } else {
            self.true_negatives -= 1;
            self.false_positives += 1;
        }
    }
}

/// Returns a number above `low` (or equal to it, if it is `included`) and at most `high`, with as few
/// decimals as possible. Returns `high` itself if ten decimals do not suffice.
fn shortest_between(low: f64, high: f64, included: bool) -> f64 {
    let middle = (low + high) / 2.0;
    let fits = |value: f64| value <= high && (value > low || included && value == low);
    (1..=10)
        .map(|decimals| {
            let scale = 10f64.powi(decimals);
            (middle * scale).round() / scale
        })
        .find(|&value| fits(value) && value > 0.0)
        .unwrap_or(high)
}
