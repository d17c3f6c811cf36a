//! Sketches: a few numbers of fixed size that stand for a set of features.

mod bottomk;
mod datasketch_functions;
mod document_sketches;
mod minhash;
mod permuted;
mod rensa;
mod simhash;

pub use crate::compat::{count_reachable_blocks, fingerprint_weighted_tokens, java_block_values};
pub use bottomk::{
    bottom_k_containment, bottom_k_jaccard, shared_smallest, smallest_features, textbook_bottom_k,
    textbook_k_minima,
};
pub use document_sketches::{ColumnReservation, DocumentSketcher, DocumentSketches};
pub(crate) use document_sketches::{LONG_SIZE, SetSummary, TEXT_STATES};
pub(crate) use minhash::FeatureObserver;
pub use minhash::{MinHasher, equal_slots};
pub use permuted::{MessageHasher, PermutedFunctions, PermutedScheme};
pub use rensa::{RensaFunctions, RensaScheme, hash_rensa_token};
pub(crate) use simhash::tie_order;
pub use simhash::{SimHasher, TieBreaker, count_weighted_votes, list_ballots, tie_breaker};

#[cfg(test)]
mod tests;
