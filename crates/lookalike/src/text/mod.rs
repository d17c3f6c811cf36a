//! Text analysis: from a text to tokens and features.
//!
//! `normalize` is the definition: every character is replaced as the recipe says, the result is composed, and
//! runs of it become tokens. `tokenize` computes the same in one pass over the bytes, with one table look-up
//! per character and 64 ASCII bytes at a time; the tests compare the two. A token is a 64-bit value, and an
//! n-gram of tokens is a 64-bit feature. No strings are built, and every word is hashed once. Where the
//! spelling of tokens matters, `layout` keeps it: for words that jieba cuts (`segment`), for filters and for
//! tables of terms.

mod analyze;
mod characters;
mod charmap;
pub mod frequencies;
pub mod html;
mod layout;
mod listing;
mod markup;
mod normalize;
mod segment;
mod sentences;
mod shingle;
mod sort;
mod spans;
mod terms;
mod tokenize;
pub(crate) mod unicode;
pub mod weight;

pub use analyze::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
pub(crate) use analyze::{CHUNK_FEATURES, features_of_terms};
pub use listing::ListedTerm;
pub(crate) use listing::join_tokens;
pub use normalize::TextToken;
#[cfg(target_family = "wasm")]
pub use segment::provide_dictionary;
pub use sentences::LongSentence;
pub(crate) use sentences::{last_certain_start, split_sentences};
pub(crate) use shingle::{hash_shingles, hash_single_token};
pub use spans::{SpanTokenizer, SpannedTokens};
pub use terms::SpelledTerm;

#[cfg(test)]
mod tests;
pub use unicode::UNICODE_VERSION;
