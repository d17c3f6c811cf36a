//! Fixed-size stand-ins for sets of features.

pub(crate) mod compat;
mod minhash;
mod simhash;

pub use minhash::{MinHasher, equal_slots};
pub(crate) use simhash::shuffle;
pub use simhash::{SimHasher, vote};

#[cfg(test)]
mod tests;
