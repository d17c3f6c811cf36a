//! Near-duplicate runs over files, in bounded memory: deduplication, pairs, indexes, fingerprints and
//! evaluation.

pub mod comparison;
pub mod decisions;
mod fingerprint_notation;
pub mod index;
pub mod machine_memory;
pub mod match_options;
mod memory;
pub mod passage_shuffle;
pub mod rank_value;
pub mod recipes;
pub mod run;
mod sealed_manifest;
pub mod shared_passages;
pub mod teaching;
mod temporary;
pub mod text_diff;
mod threads;
pub mod units;

pub use fingerprint_notation::{FingerprintNotation, NO_FINGERPRINT};
