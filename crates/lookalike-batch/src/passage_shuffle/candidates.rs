//! The second step: finds the candidate pairs among the documents that share a gram.

use std::sync::Arc;

use lookalike_io::error::Result;

use crate::passage_shuffle::blocks::{
    BlockContent, GramPosting, GroupMember, damaged_block, decode_block, encode_boilerplate,
    encode_members,
};
use crate::passage_shuffle::{DocumentKey, PartBlock, PassageShuffleSetup, divide_entries};

/// Members, and documents with boilerplate, that are collected before their repeats are dropped and they are
/// returned: 16 MiB.
const MAX_PENDING_ENTRIES: usize = 1 << 20;

/// Receives all grams of some parts.
///
/// Memory: 24 bytes for each gram.
#[derive(Debug)]
pub struct CandidateGatherer {
    setup: Arc<PassageShuffleSetup>,
    max_documents: Option<u32>,
    postings: Vec<GramPosting>,
}

impl CandidateGatherer {
    /// Returns a step without grams. Grams that more than `max_documents` possible sources have are boilerplate;
    /// `None` for no limit.
    pub fn new(setup: Arc<PassageShuffleSetup>, max_documents: Option<u32>) -> Self {
        Self {
            setup,
            max_documents,
            postings: Vec::new(),
        }
    }

    /// Adds a block of [`GramScatterer`](super::GramScatterer).
    ///
    /// # Errors
    /// If the block is damaged or holds no grams.
    pub fn add_block(&mut self, block: &[u8]) -> Result<()> {
        let BlockContent::Postings(postings) = decode_block(block)? else {
            return Err(damaged_block());
        };
        self.postings.extend(postings);
        Ok(())
    }

    /// Returns the candidate pairs as members of groups, in blocks for `parts` parts.
    pub fn find_candidates(mut self, parts: u32) -> CandidateBlocks {
        self.postings.sort_unstable_by_key(|posting| {
            (
                posting.hash,
                posting.partition,
                posting.document.is_known(),
                posting.document,
            )
        });
        CandidateBlocks {
            has_known: self.setup.bounds.against,
            max_documents: self.max_documents.map_or(usize::MAX, |most| most as usize),
            postings: self.postings,
            parts,
            next: 0,
            gram_end: 0,
            run_end: 0,
            members: Vec::new(),
            with_boilerplate: Vec::new(),
            boilerplate_grams: 0,
        }
    }
}

/// An iterator over blocks of members, so that only some of the pairs are in memory at a time.
#[derive(Debug)]
pub struct CandidateBlocks {
    has_known: bool,
    max_documents: usize,
    /// Ascending by gram, by partition, and with the known documents last in each partition.
    postings: Vec<GramPosting>,
    parts: u32,
    /// The next posting. It is paired with the later ones of its run, which are those of the same gram and partition.
    next: usize,
    /// End of the postings with the current gram.
    gram_end: usize,
    /// End of the current run.
    run_end: usize,
    members: Vec<GroupMember>,
    with_boilerplate: Vec<DocumentKey>,
    boilerplate_grams: u64,
}

impl CandidateBlocks {
    /// Returns the number of boilerplate grams so far.
    pub fn boilerplate_grams(&self) -> u64 {
        self.boilerplate_grams
    }

    /// Visits the next posting: begins its gram and its run, or skips the gram if it is boilerplate.
    fn visit_posting(&mut self) {
        if self.next == self.gram_end {
            self.gram_end = self.end_of_equal(|posting| posting.hash);
            let gram = &self.postings[self.next..self.gram_end];
            if self.count_sources(gram) > self.max_documents {
                self.skip_boilerplate();
                return;
            }
        }
        if self.next >= self.run_end {
            self.run_end = self.end_of_equal(|posting| (posting.hash, posting.partition));
        }
        self.pair_posting();
    }

    /// Returns the end of the postings from the next one on that are equal to it in a value.
    fn end_of_equal<T: PartialEq>(&self, value: impl Fn(&GramPosting) -> T) -> usize {
        let rest = &self.postings[self.next..];
        let first = value(&rest[0]);
        self.next
            + rest
                .iter()
                .take_while(|posting| value(posting) == first)
                .count()
    }

    fn count_sources(&self, gram: &[GramPosting]) -> usize {
        let is_source = |posting: &&GramPosting| !self.has_known || posting.document.is_known();
        gram.iter().filter(is_source).count()
    }

    fn skip_boilerplate(&mut self) {
        let gram = &self.postings[self.next..self.gram_end];
        let searched = gram.iter().map(|posting| posting.document);
        self.with_boilerplate
            .extend(searched.filter(|document| !document.is_known()));
        self.boilerplate_grams += 1;
        self.next = self.gram_end;
        self.run_end = self.gram_end;
    }

    /// Pairs the next posting with those behind it in its run. If there are known documents, only they are
    /// partners.
    fn pair_posting(&mut self) {
        let group = self.postings[self.next].document;
        if self.has_known && group.is_known() {
            self.next = self.run_end;
            return;
        }
        self.next += 1;
        let behind = &self.postings[self.next..self.run_end];
        let first = if self.has_known {
            behind.partition_point(|posting| !posting.document.is_known())
        } else {
            0
        };
        let partners = &behind[first..];
        if partners.is_empty() {
            return;
        }
        let member = |document| GroupMember { document, group };
        self.members.push(member(group));
        self.members
            .extend(partners.iter().map(|partner| member(partner.document)));
    }

    fn take_blocks(&mut self) -> Vec<PartBlock> {
        self.members.sort_unstable();
        self.members.dedup();
        self.with_boilerplate.sort_unstable();
        self.with_boilerplate.dedup();
        let mut blocks = divide_entries(
            &self.members,
            self.parts,
            |member| member.document.0,
            encode_members,
        );
        blocks.extend(divide_entries(
            &self.with_boilerplate,
            self.parts,
            |document| document.0,
            encode_boilerplate,
        ));
        self.members.clear();
        self.with_boilerplate.clear();
        blocks
    }
}

impl Iterator for CandidateBlocks {
    type Item = Vec<PartBlock>;

    fn next(&mut self) -> Option<Vec<PartBlock>> {
        while self.next < self.postings.len()
            && self.members.len() + self.with_boilerplate.len() < MAX_PENDING_ENTRIES
        {
            self.visit_posting();
        }
        let blocks = self.take_blocks();
        (!blocks.is_empty()).then_some(blocks)
    }
}
