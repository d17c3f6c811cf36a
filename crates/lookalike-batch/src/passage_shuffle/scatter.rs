//! The first step: selects the grams of a batch of documents.

use std::sync::Arc;

use lookalike::passages::{SelectedGram, Winnower};
use lookalike::shuffle::ShuffleDocument;
use lookalike::text::SpannedTokens;

use crate::passage_shuffle::blocks::{GramPosting, encode_ids, encode_postings};
use crate::passage_shuffle::{DocumentKey, PartBlock, PassageShuffleSetup, divide_entries};

/// Numbers of documents and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScatterCounts {
    /// Documents that are searched for passages.
    pub searched: u64,
    /// Documents that are given as known.
    pub known: u64,
    /// Words and single characters of the searched documents.
    pub tokens: u64,
}

/// Blocks of a batch of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScatteredBlocks {
    /// Selected grams, for [`CandidateGatherer`](super::CandidateGatherer).
    pub grams: Vec<PartBlock>,
    /// Ids, for [`MemberGatherer`](super::MemberGatherer).
    pub ids: Vec<PartBlock>,
}

/// Selects the grams of documents, with the same [`Winnower`] as a run on one machine, so that both select the same
/// grams.
///
/// Memory: up to twice 24 bytes for each selected gram, and 32 and the id for each document, kept for the next
/// documents. So the blocks should be [taken](Self::take_blocks) when they have some tens of megabytes.
#[derive(Debug)]
pub struct GramScatterer {
    setup: Arc<PassageShuffleSetup>,
    winnower: Winnower,
    tokens: SpannedTokens,
    selected: Vec<SelectedGram>,
    postings: Vec<GramPosting>,
    ids: Vec<(DocumentKey, String)>,
    id_bytes: usize,
    counts: ScatterCounts,
}

impl GramScatterer {
    /// Returns a scatterer without documents.
    pub fn new(setup: Arc<PassageShuffleSetup>) -> Self {
        Self {
            winnower: Winnower::new(setup.passages),
            setup,
            tokens: SpannedTokens::default(),
            selected: Vec::new(),
            postings: Vec::new(),
            ids: Vec::new(),
            id_bytes: 0,
            counts: ScatterCounts::default(),
        }
    }

    /// Adds a document.
    ///
    /// # Errors
    /// If the text has 4 GiB or more.
    pub fn add_document(&mut self, document: &ShuffleDocument<'_>) -> lookalike::Result<()> {
        let setup = &self.setup;
        let has_known = setup.bounds.against;
        let is_known = has_known && document.is_known;
        let key = DocumentKey::from_id(document.id, is_known);
        setup
            .tokenizer
            .tokenize_text(document.text, &mut self.tokens)?;
        self.winnower
            .select_grams(self.tokens.values(), &mut self.selected);
        let is_partitioned = setup.bounds.within;
        let partition = if is_partitioned {
            document.partition
        } else {
            0
        };
        self.postings
            .extend(self.selected.iter().map(|gram| GramPosting {
                hash: gram.hash,
                document: key,
                partition,
            }));
        self.ids.push((key, document.id.to_owned()));
        self.id_bytes += document.id.len();
        self.count_document(is_known);
        Ok(())
    }

    fn count_document(&mut self, is_known: bool) {
        if is_known {
            self.counts.known += 1;
        } else {
            self.counts.searched += 1;
            self.counts.tokens += self.tokens.len() as u64;
        }
    }

    /// Returns the bytes of memory of what was not taken yet.
    pub fn pending_bytes(&self) -> usize {
        24 * self.postings.len() + 32 * self.ids.len() + self.id_bytes
    }

    /// Returns all grams and ids since the last call, in blocks for `parts` parts.
    pub fn take_blocks(&mut self, parts: u32) -> ScatteredBlocks {
        let is_partitioned = self.setup.bounds.within;
        let encode_grams = |postings: &[GramPosting]| encode_postings(postings, is_partitioned);
        self.postings.sort_unstable_by_key(|posting| posting.hash);
        self.ids.sort_unstable();
        let blocks = ScatteredBlocks {
            grams: divide_entries(&self.postings, parts, |posting| posting.hash, encode_grams),
            ids: divide_entries(&self.ids, parts, |entry| entry.0.0, encode_ids),
        };
        self.postings.clear();
        self.ids.clear();
        self.id_bytes = 0;
        blocks
    }

    /// Returns the numbers of all documents that were added.
    pub fn counts(&self) -> ScatterCounts {
        self.counts
    }
}
