//! Every fingerprint within a Hamming distance.
//!
//! Fingerprints are cut into blocks of bits. If two differ in at most k bits and the blocks have
//! radii r with Σ(r + 1) = k + 1, then in some block they differ in at most its r: otherwise they
//! would differ in at least Σ(r + 1) bits (the general pigeonhole principle; Norouzi, Punjani and
//! Fleet 2012). So a table per block, asked for everything within its radius, misses nothing. What a
//! table finds is compared in full, and reported by the first table that can see it, so that nothing
//! comes up twice. All answers are exact: [`scan`] is the definition.

mod code;
pub mod join;
mod key;
pub mod live;
mod plan;
pub mod scan;
mod segment;

pub use code::Code;
pub use plan::{Layout, MOST_DISTANCE, Permutation, Plan, Prediction, Request, Shape};
pub use scan::distances;
pub use segment::{Codes, Match, Search, Segment};
