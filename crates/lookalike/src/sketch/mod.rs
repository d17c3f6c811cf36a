//! Sketches: a few numbers of fixed size that stand for a set of features.

mod bottomk;
pub(crate) mod compat;
mod minhash;
mod permuted;
mod simhash;

pub use bottomk::{
    bottom_k_containment, bottom_k_jaccard, shared_smallest, smallest_features, textbook_bottom_k,
    textbook_k_minima,
};
pub(crate) use minhash::See;
pub use minhash::{MinHasher, equal_slots};
pub use permuted::{MessageHasher, Permuted, PermutedScheme};
pub(crate) use simhash::shuffle;
pub use simhash::{SimHasher, Tie, ballots, tie, vote};

#[cfg(test)]
mod tests;
