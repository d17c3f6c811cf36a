//! Exact search for all fingerprints within a Hamming distance.
//!
//! Fingerprints are cut into blocks of bits, and each block has a radius r. If the radii satisfy
//! Σ(r + 1) = k + 1, two fingerprints that differ in at most k bits differ in at most r bits of
//! some block, because otherwise they would differ in at least Σ(r + 1) bits (the general
//! pigeonhole principle; Norouzi, Punjani and Fleet 2012, with free radii Qin et al. 2018). One table per block, searched within the
//! block's radius, therefore misses nothing. Every candidate is compared in full and reported only
//! by the first table that can see it, so that no match comes up twice. All answers are exact:
//! [`scan`] is the definition.

mod fingerprint_code;
pub mod join;
mod key;
pub mod live;
mod plan;
pub mod scan;
mod segment;

pub use fingerprint_code::FingerprintCode;
pub use plan::{
    BucketLayout, CostPrediction, HammingPlan, MOST_DISTANCE, MOST_NEIGHBOURHOODS, PlanRequest,
    PlanShape, TablePermutation,
};
pub use scan::pairwise_distances;
pub use segment::{
    BuildMemory, CodeSource, ColumnBuffer, HammingSegment, SearchLimits, SegmentMatch,
};
