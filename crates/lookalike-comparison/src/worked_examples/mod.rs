//! The two classic sketches by hand, with every step shown, for people who learn how they work.
//!
//! No run uses this module. `fingerprint` and `compare` show its steps for hashes, weights, shingles and permutations
//! that are given instead of computed from texts.

mod shingle_sets;
mod weighted_hashes;

pub use shingle_sets::{ColumnSimilarity, MOST_ENTRIES, ShingleSets};
pub use weighted_hashes::{MOST_FEATURES, WeightedHashes};
