//! From text to features.
//!
//! The definition is in `normalize`: every character is replaced according to the recipe, the
//! result is composed, and runs of it become tokens. `tokenize` does the same in one pass over
//! the bytes, with one table look-up a character and 64 ASCII bytes at a time; the tests hold the
//! two together. A token is a 64-bit value, and an n-gram of tokens is a 64-bit feature: no string
//! is built and every word is hashed once.

mod analyze;
mod characters;
mod charmap;
mod markup;
mod normalize;
mod sentences;
mod shingle;
mod sort;
mod tokenize;
pub(crate) mod unicode;

pub(crate) use analyze::CHUNK;
pub use analyze::{Analysis, Analyzer, Extras, Scratch, State};
pub use normalize::Token;

#[cfg(test)]
mod tests;
pub use unicode::UNICODE_VERSION;
