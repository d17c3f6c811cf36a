//! Finds matching pairs and verdicts in a batch of documents.
//!
//! ```text
//! sketches ── keys ──> bucket keys ── groups ──> buckets ── walk ──> candidate pairs
//!                                                                         │ judge: verify
//!                      components <── matching pairs, verdicts <──────────┘
//! ```
//!
//! Every method finds candidates in the same way. A document has bucket keys (`keys`), documents with
//! equal keys form a bucket, and keys that only one document has are dropped (`groups`). `walk` goes
//! through the documents in their total order, looks up the kept ones in their buckets, and verifies
//! each candidate pair. `judge` decides which pairs are candidates and which of these match. It looks
//! at the two documents alone, so batch, stream and cluster agree on every pair.
//!
//! `crowds` holds the bitmap filter, which rules out most pairs of dense buckets before they are
//! verified. `components` connects the documents of matching pairs. `stored` compares documents with
//! those of an index on disk. `survey` counts the comparisons that a plan makes on a sample.

mod cache;
mod components;
mod crowds;
mod decide;
mod groups;
mod judge;
mod keys;
mod portions;
mod stored;
mod survey;
mod walk;

pub(crate) use cache::{Cache, List};
pub(crate) use components::Union;
pub(crate) use groups::Side;
pub(crate) use judge::{Compared, Rule, Sketched};
pub(crate) use keys::{
    Frequencies, Prefixes, Rarest, band_key, block_key, feature_key, smallest_key, text_key,
};

pub use cache::Texts;
pub use components::find_components;
pub use decide::{decide_pairs, route_between};
pub use judge::{Match, Route};
pub use stored::{
    ComparedDocument, DocumentComparer, DocumentRecorder, MOST_INDEXED, visit_record_keys,
};
pub use survey::{ComparedPairs, Survey, Surveyed, survey};
pub use walk::{
    CopyPairs, Corpus, Outcome, Pair, Removal, Window, find_pairs, find_verdicts, follow_verdicts,
};

#[cfg(test)]
mod tests;
