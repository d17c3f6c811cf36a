//! From sketches to pairs and verdicts.
//!
//! Every route to candidates is of one kind: a document has keys, and documents that share a key
//! are candidates (`keys`). Sorting the keys of all documents gives groups, and keys that nobody
//! shares vanish (`groups`). The walk then takes the documents in their total order, looks up the
//! kept ones in its groups, and verifies (`walk`). What is a candidate, and what matches, is
//! decided by `judge` from the two documents alone; bitmaps of `crowds` rule out most pairs of large
//! groups before it looks. `components` are what all matching pairs connect. `stored` decides on pairs
//! with documents of an index on disk.

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
pub use survey::{ComparedPairs, Survey, SurveyLimits, Surveyed, survey};
pub use walk::{
    CopyPairs, Corpus, Outcome, Pair, Removal, Window, find_pairs, find_verdicts, follow_verdicts,
};

#[cfg(test)]
mod tests;
