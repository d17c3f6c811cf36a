//! Near-duplicate runs over files, in bounded memory: deduplication, pairs, indexes, fingerprints and
//! evaluation.

mod fingerprint_notation;
pub mod index;
pub mod match_options;
pub mod recipes;
pub mod run;

pub use fingerprint_notation::{FingerprintNotation, NO_FINGERPRINT};
