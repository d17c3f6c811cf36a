//! From text to features.
//!
//! The definition is in `normalize`: every character is replaced according to the recipe, the
//! result is composed, and runs of it become tokens. `tokenize` does the same in one pass over
//! the bytes, with one table look-up a character and 64 ASCII bytes at a time; the tests hold the
//! two together. A token is a 64-bit value, and an n-gram of tokens is a 64-bit feature: no string
//! is built and every word is hashed once. Where the spelling of tokens matters, for words that
//! jieba cuts (`segment`), filters and tables of terms, `layout` keeps it.

mod analyze;
mod characters;
mod charmap;
mod layout;
mod listing;
mod markup;
mod normalize;
mod segment;
mod sentences;
mod shingle;
mod sort;
mod terms;
mod tokenize;
pub(crate) mod unicode;

pub use analyze::{Analysis, Analyzer, Extras, Scratch, State};
pub(crate) use analyze::{CHUNK, features_of_terms};
pub use listing::ListedTerm;
pub(crate) use listing::join_tokens;
pub use normalize::Token;
pub use sentences::Sentence;
pub(crate) use sentences::sentences;
pub(crate) use shingle::{shingle, single};
pub use terms::Term;

#[cfg(test)]
mod tests;
pub use unicode::UNICODE_VERSION;
