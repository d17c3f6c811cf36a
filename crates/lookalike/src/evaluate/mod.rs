//! How well a way of matching does on texts of which somebody has said what is similar.
//!
//! [`Labelled`] holds the texts and the truth: pairs with a label, or groups of texts in which all
//! are similar and between which none are. [`Evaluation`] scores every pair under a [`Setting`],
//! which is a recipe with a method and a measure, and counts at every threshold (or Hamming
//! distance) what is found, missed and found wrongly. It does so twice: for the *measure* alone,
//! and for the whole *method*, whose candidates may not meet. The difference is what the candidates
//! lose. [`compare_clusters`] scores clusters against true ones, and [`tune`] looks for the best
//! setting.
//!
//! # What is guaranteed
//!
//! * Counts are exact, and the method's are decided by the code that every run uses.
//! * Results do not depend on the order of the labelled rows, on which side of a pair is named first
//!   or on the number of threads. What is drawn at random is drawn from a seed.
//! * A ratio without a denominator has no value; no number is invented for it.
//! * Intervals come from resampling whole units, so pairs that share a text stay together.
//! * [`Labelled::split`] never puts texts that are connected by pairs, or equal, into different parts.
//!
//! # What it costs
//!
//! Every pair is scored once, all threads at work, and decided once for every threshold that is
//! shown; the resamples take some nanoseconds a pair each. All labelled texts are held in memory.
//! Pairs across groups are not enumerated: those that matter are found by the exact join.
//!
//! # What it does not do
//!
//! It does not say that labels are right. A percentile interval says how much a figure would vary
//! with other texts of the same kind; where nothing went wrong in the sample it has no width.

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

pub use bootstrap::{Bootstrap, Estimate, Interval, Metrics};
pub use classes::{LengthClass, Script, TextClass};
pub use clusters::{Averages, ClusterScores, compare_clusters};
pub use counts::Counts;
pub use curve::{Curve, CurvePoint, Goal};
pub use evaluation::{Breakdown, Class, Evaluation, Options, Point};
pub use labelled::{Labelled, LabelledPair, MOST_PAIRS};
pub use reach::LabelReach;
pub use removed::count_removed;
pub use scored::{Setting, Sweep};
pub use tune::{Contender, TuneOptions, Tuning, contenders, tune};

#[cfg(test)]
mod tests;
