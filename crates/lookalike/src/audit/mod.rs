//! What a run has missed, estimated from a sample while it is under way.
//!
//! Documents are drawn, and every document that is read later is compared with them exactly, by an
//! inverted index of their features ([`Sample`]): no sketch, band or group of the run has a part in it.
//! Since a document is drawn whatever it resembles, the pairs of drawn documents with later ones are
//! a fair sample of all pairs: each has the chance of its earlier document.
//!
//! # What is estimated
//!
//! The recall of a document is the share of the later documents similar to it that a method finds,
//! and the recall of a run the mean of that over all documents that have any. Drawn documents are
//! independent cases of it, so the interval of a share applies ([`Estimate`]); pairs are not, since
//! the pairs of one template are found or lost together. Documents whose texts are equal after
//! normalisation are found by that and do not count.
//!
//! # What it costs
//!
//! About a nanosecond for every feature of a document, and a look-up for each of a short document, for
//! each of 64 to 256 bins of a long one. Features come from whoever makes them anyway, or are made a
//! second time. A drawn document is analysed twice. A pair of long documents may be overlooked, whatever
//! the method of the run, with a probability of at most 10⁻⁶.

mod index;
mod interval;
mod sample;

#[cfg(test)]
mod tests;

use crate::plan::Plan;
use crate::types::Similarity;
use crate::verify;

pub use interval::Estimate;
pub use sample::{Counter, Drawn, PARTNERS, Partner, Sample};

/// The exact similarity of two ascending lists of distinct features if a plan's measure admits it;
/// where sketches alone decide, by the Jaccard index.
pub fn similarity(plan: &Plan, a: &[u64], b: &[u64]) -> Option<Similarity> {
    verify::check(plan, a, b)
}
