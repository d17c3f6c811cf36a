//! The audit: estimates the recall of a run from a sample, while the run is under way.
//!
//! Documents are drawn at random, and every document read later is compared with them exactly, by an
//! inverted index of their features ([`DrawnSample`]). No sketch, band or bucket of the run is involved. The
//! draw does not depend on what a document resembles. So the pairs of drawn documents with later ones
//! are a fair sample of all pairs: each pair is drawn with the probability of its earlier document.
//!
//! # Estimated quantity
//!
//! The recall of a document is the share of the later documents similar to it that a method finds. The
//! recall of a run is the mean of that over all documents that have any. Drawn documents are
//! independent cases of it, so the interval of a share applies ([`WilsonEstimate`]). Pairs are not
//! independent, because the pairs of one template are found or missed together. Documents with equal
//! texts after normalisation are always found, so they do not count.
//!
//! # Cost
//!
//! About a nanosecond for every feature of a document. A short document also takes one look-up for each
//! feature, and a long one takes a look-up for each of 64 to 256 bins. Features come from a caller that
//! makes them anyway, or are made a second time. A drawn document is analysed twice. A pair of long
//! documents may be overlooked, whatever the method of the run, with a probability of at most 10⁻⁶.

mod draw;
mod drawn_index;
mod interval;
mod sample;

#[cfg(test)]
mod tests;

use crate::plan::MatchPlan;
use crate::similarity;
use crate::types::Similarity;

pub use draw::{default_sample_size, draw_limit, draw_number};
pub use interval::WilsonEstimate;
pub use sample::{DrawnDocument, DrawnSample, PARTNERS, SampleComparer, SimilarPartner};
pub(crate) use sample::{DrawnText, PartnerVisitor};

/// Returns the exact similarity of two ascending lists of distinct features if they match by a plan's
/// measure. If sketches alone decide, the measure is the Jaccard index.
pub fn similarity(plan: &MatchPlan, a: &[u64], b: &[u64]) -> Option<Similarity> {
    similarity::verify_sets(plan, a, b)
}
