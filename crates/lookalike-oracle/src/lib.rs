//! Reference implementation: the engine's definitions again, in the plainest form.
//!
//! Tests compare the engine with it. Everything here works on strings and sets of strings, follows
//! the written definitions, and shares no code, table or hash with the engine. It is slow, because
//! it is meant to be obviously right. When the two disagree, the definition decides which of them
//! is wrong.
//!
//! ```
//! use lookalike_oracle::{all_pairs, token_ngrams, jaccard_index, normalize_text};
//!
//! assert_eq!(normalize_text("Ｅｖｅｎ in\u{200b}side: 漢字"), "even inside: 汉字");
//! let (a, b) = (token_ngrams("one two three four", 2), token_ngrams("two, three; FOUR!", 2));
//! assert_eq!(jaccard_index(&a, &b), 2.0 / 3.0);
//!
//! let texts = ["one two three", "One, two, three.", "something else"];
//! assert_eq!(all_pairs(&texts, 2, 0.8), [(0, 1, 1.0)]);
//! ```
//!
//! - [`text`]: the normalised text of the default recipe and its tokens
//! - [`document`]: features, similarity, and the texts that have too few tokens for features
//! - [`sequence`]: edit distances, common substrings, the cosine
//! - [`pairs`]: every pair at or above a threshold, exactly
//! - [`verdict`]: the verdict on every document, by the rule alone
//! - [`effort`]: the effort of tests, in short and in long runs
//! - [`generate`]: corpora in English and Chinese with planted near-duplicates, from a seed

pub mod document;
pub mod effort;
pub mod generate;
pub mod pairs;
pub mod sequence;
pub mod text;
pub mod verdict;

pub use document::{OracleDocument, containment, jaccard_index, token_ngrams};
pub use pairs::{all_containments, all_pairs, all_pairs_by_double_loop, all_pairs_of_sets};
pub use text::{normalize_text, split_tokens};
pub use verdict::{OracleVerdict, judge_documents, verdicts_from_pairs};
