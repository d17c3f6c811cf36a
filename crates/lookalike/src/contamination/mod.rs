//! Contamination: items of evaluation benchmarks that stand in documents.
//!
//! An item has a question, and often choices, an answer and a passage. A model that was trained on a document with the
//! question, or with the question and its answer, is no longer measured by the item. The question rarely stands in the
//! document byte for byte: it is wrapped in other text, has other case and punctuation, stands in cells of a table,
//! between HTML tags or LaTeX commands, in the other Chinese script, or with some words replaced.
//!
//! ```text
//! items ──> tokens ──> seeds ──────────────┐
//!                                          v
//! document ──> tokens ──> seeds found ──> window ──> alignment ──> candidate
//!                  └────> counts of tokens ───────────────┐          │
//!                                                         v          v
//!                                                      weights ──> finding
//! ```
//!
//! 1. [`ItemTokenizer`] cuts both sides into normalised words and characters, without tags, commands and entities.
//! 2. A *seed* is a short run of tokens of an item that few items share (`seed_index`). An item is aligned with the
//!    part of a document where enough of its seeds stand near one another.
//! 3. The alignment keeps the order of the tokens and takes a little off for each token in between (`alignment`).
//! 4. Evidence is counted in bits: a token that one of a thousand tokens of the corpus is tells ten bits
//!    (`evidence`). A question is found alone if most of its bits are found and there are enough of them. A short or
//!    common one is found only with its answer or choices nearby.
//!
//! Candidates depend on one document and the items alone, and the weights on sums over all documents. So a corpus may
//! be read in any order, in parts and on many machines.
//!
//! Cost: some 25 nanoseconds for each word of a document, and up to three times as many with 100,000 items, whose index is in
//! no cache; some 30 bytes of memory for each word of an item.

mod alignment;
mod cut_places;
mod evidence;
mod index;
mod item_marks;
mod item_tokens;
mod markup_places;
mod nearby_parts;
mod search;
mod seed_index;
mod seed_prefilter;
mod term_table;
mod unit_places;
mod unit_weights;

pub use cut_places::{extend_to_blanks, extend_to_marks, extend_to_sentences};
pub use evidence::{CorpusTerms, CountedTerms, EvidenceWeights, FoundParts, ItemEvidence};
pub use index::{ContaminationIndex, ItemTexts};
pub use item_marks::{ItemMarker, ItemMarks};
pub use item_tokens::ItemTokenizer;
pub use search::{ItemCandidate, ItemPart, ItemSearcher};

#[cfg(test)]
mod tests;
