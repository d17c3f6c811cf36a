//! Precision and recall of a setting on labelled texts.
//!
//! [`LabelledTexts`] holds the texts and the truth: labelled pairs, or groups of texts in which all are
//! similar and between which none are. [`Evaluation`] scores every pair under a [`EvaluatedSetting`],
//! which is a recipe with a method and a measure. At every threshold (or Hamming distance) it counts
//! what is found, missed and found wrongly. It does so twice: for the *measure* alone, as if every pair
//! were compared, and for the whole *method*, which compares candidates only. The difference is what the
//! search for candidates loses. [`compare_clusters`] scores clusters against true ones, and
//! [`tune_settings`] searches for the best setting.
//!
//! # Guarantees
//!
//! * Counts are exact, and the method's are decided by the code that every run uses.
//! * Results do not depend on the order of the labelled rows, on which side of a pair is named first,
//!   or on the number of threads. Random draws depend on a seed alone.
//! * A ratio without a denominator has no value.
//! * Intervals come from resampling whole units, so pairs that share a text stay together.
//! * [`LabelledTexts::split_in_halves`] never puts texts that are connected by pairs, or equal, into different parts.
//!
//! # Cost
//!
//! Every pair is scored once, on all threads, and decided once for every threshold that is shown. Each
//! resample takes some nanoseconds a pair. All labelled texts are held in memory. Pairs across groups
//! are not enumerated, because the exact join finds those that matter.
//!
//! # Limits
//!
//! Labels are taken as right. A percentile interval says how much a figure would vary with other texts
//! of the same kind; where the sample has no errors, its width is zero.

mod bootstrap;
mod classes;
mod clusters;
mod counts;
mod curve;
mod evaluation;
mod labelled;
mod measure;
mod reach;
mod removed;
mod scored;
mod tune;

pub use bootstrap::{BootstrapOptions, ConfidenceInterval, MetricEstimate, MetricEstimates};
pub use classes::{LengthClass, ScriptClass, TextClass};
pub use clusters::{AveragedMetrics, ClusterScores, compare_clusters};
pub use counts::ConfusionCounts;
pub use curve::{CurvePoint, PrecisionRecallCurve, TuningGoal};
pub use evaluation::{
    ClassBreakdown, ClassMetrics, Evaluation, EvaluationOptions, EvaluationPoint,
};
pub use labelled::{LabelledPair, LabelledTexts, MOST_PAIRS};
pub use reach::LabelReach;
pub use removed::count_removed;
pub use scored::{EvaluatedSetting, SweptParameter};
pub use tune::{TuneOptions, TunedContender, TuningOutcome, contenders, tune_settings};

#[cfg(test)]
mod tests;
