//! Copied passages among documents that are spread over many machines.
//!
//! ```text
//! GramScatterer       documents → selected grams, by part of the gram, and ids, by part of the document
//! CandidateGatherer   all grams of a part → members of groups, by part of the document
//! MemberGatherer      all ids and members of a part → each document with the groups that need its text
//! GroupComparer       texts by group → passages
//! ```
//!
//! A run on one machine finds the documents that share selected grams, and compares their texts. Many machines
//! do the same. Each step processes one portion of the documents, grams or pairs, and the steps exchange blocks of
//! bytes.
//!
//! **Groups.** A candidate pair belongs to the group of one of its two documents. With known documents, which are the
//! only sources, this is the other one; without them it is the document with the smaller key. The text of this
//! document is first in its group and is prepared once. The others follow, one at a time, so a group is never in memory
//! as a whole. A document that shares grams with many others has about half of these pairs in its own group, and the
//! others in as many groups.
//!
//! Guarantee: the passages are those of one machine, whatever the number and the size of the portions. The source of a
//! passage is the known document, or the one with the smaller id in byte order, because there is no order of reading.
//!
//! **Frequent grams.** A gram in m documents makes m·(m−1)/2 pairs, on one machine too. The limit of boilerplate bounds
//! m. Pairs leave [`CandidateGatherer`] in blocks as they are made, so their number bounds no memory, and they are
//! compared in the groups of all m documents.
//!
//! **Cost.** A selected gram sends 16 bytes (24 if documents must have equal values of a field), which is about .6
//! bytes for a byte of English text and .7 for one of Chinese. A candidate pair sends 16 bytes for each part of grams
//! that finds it, and the text of one of its documents.

mod blocks;
mod candidates;
mod compare;
mod members;
mod scatter;
#[cfg(test)]
mod tests;

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike::shuffle::MatchBounds;
use lookalike::text::SpanTokenizer;

pub use candidates::{CandidateBlocks, CandidateGatherer};
pub use compare::{ComparedDocumentText, FoundPassage, GroupComparer};
pub use members::{GatheredMembers, MemberDocument, MemberGatherer};
pub use scatter::{GramScatterer, ScatterCounts, ScatteredBlocks};

use crate::run::commands::passages::settings::OffsetUnit;

/// The setup that all steps of a run share.
#[derive(Debug)]
pub struct PassageShuffleSetup {
    tokenizer: SpanTokenizer,
    passages: PassageSettings,
    bounds: MatchBounds,
    offsets: OffsetUnit,
}

impl PassageShuffleSetup {
    /// Returns the setup for a recipe, of which only the normalisation has an effect. Of `bounds`, `features` has
    /// none.
    pub fn new(
        recipe: &Recipe,
        passages: PassageSettings,
        bounds: MatchBounds,
        offsets: OffsetUnit,
    ) -> Self {
        Self {
            tokenizer: SpanTokenizer::new(recipe),
            passages,
            bounds,
            offsets,
        }
    }
}

/// Key of a document: the hash of its id, and in the lowest bit whether it is given as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey(pub u64);

impl DocumentKey {
    fn from_id(id: &str, is_known: bool) -> Self {
        Self(lookalike::value_hash(id.as_bytes()) & !1 | u64::from(is_known))
    }

    /// Returns `true` if the document is given as known.
    pub fn is_known(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A block of bytes for the part that receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartBlock {
    /// Part, from 0.
    pub part: u32,
    /// Bytes of the block.
    pub block: Vec<u8>,
}

/// Returns the part, of `parts`, to which a hash belongs. Parts ascend with the hash.
fn part_of_hash(hash: u64, parts: u32) -> u32 {
    ((u128::from(hash) * u128::from(parts)) >> 64) as u32
}

/// Returns a block for each part that has entries, which must ascend by their hash.
fn divide_entries<T>(
    entries: &[T],
    parts: u32,
    hash: impl Fn(&T) -> u64,
    encode: impl Fn(&[T]) -> Vec<u8>,
) -> Vec<PartBlock> {
    let part = |entry: &T| part_of_hash(hash(entry), parts);
    let of_parts = entries.chunk_by(|a, b| part(a) == part(b));
    let blocks = of_parts.map(|entries| PartBlock {
        part: part(&entries[0]),
        block: encode(entries),
    });
    blocks.collect()
}
