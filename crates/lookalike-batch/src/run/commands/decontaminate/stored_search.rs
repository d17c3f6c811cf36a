//! The results of blocks in the directory of a run that can be interrupted.
//!
//! | bytes | content of a block |
//! |---|---|
//! | 73 | the beginning of the block: [`BlockStart`] |
//! | 8 | its size on disk |
//! | 8, then 1 for each wanted field | number of wanted fields, and for each a 1 if a row has had it so far |
//! | 8, then 12 for each row | number of usable rows, and their places |
//! | | bad rows |
//! | 8 | bytes of the rows |
//! | 8, then any number | length of the documents with candidates, and these |
//! | | counts of the tokens of all documents |

use lookalike::byte_reader::ByteReader;
use lookalike::contamination::{ContaminationIndex, CountedTerms};
use lookalike_io::error::Result;
use lookalike_io::source::{KnownBlock, ParseScratch};

use super::search::SearchedBlock;
use crate::run::execution::disk_backend::stored_block::BlockStart;
use crate::run::execution::work_directory::WorkDirectory;
use crate::run::execution::work_directory::manifest::StepKind;
use crate::run::execution::work_directory::reading_steps::{ReadingSteps, StoredBlock};
use crate::run::reading::documents::block_codec::{
    put_bad_row, put_place, read_all, read_bad_row, read_place,
};
use crate::run::reading::element_count::{put_count, read_count};
use crate::run::reading::reading_sink::BlockSource;
use crate::run::reading::rejected_rows::CountedRows;

/// The blocks that a run has searched.
pub(super) struct StoredSearch<'a> {
    steps: ReadingSteps<'a>,
}

impl<'a> StoredSearch<'a> {
    pub(super) fn new(work: &'a WorkDirectory) -> Self {
        Self {
            steps: ReadingSteps::new(work, StepKind::Documents),
        }
    }

    /// Returns the place of a stored block of lines, which is then not read from its input.
    ///
    /// # Errors
    /// If a file of the directory is damaged.
    pub(super) fn find_block(&self, ordinal: u64) -> Result<Option<KnownBlock>> {
        let find = |bytes: &[u8]| BlockStart::decode_start(&mut ByteReader::new(bytes))?.lines;
        Ok(self.steps.peek_block(ordinal, find)?.flatten())
    }

    /// Returns the result of a block if it is stored.
    ///
    /// # Errors
    /// If a file of the directory is damaged, or if the block was made from other rows.
    pub(super) fn restore_block(
        &self,
        source: BlockSource<'_>,
        parse: &mut ParseScratch,
        index: &ContaminationIndex,
    ) -> Result<Option<SearchedBlock>> {
        let Some(stored) = self.steps.remove_block(source.block.ordinal())? else {
            return Ok(None);
        };
        let mut block = self.decode_block(source, &stored, index)?;
        if !source.block.has_fixed_places() {
            // A further reading copies rows to other places.
            let (mut places, mut bad) = (Vec::new(), block.read.bad.iter_mut());
            source.inputs.parse_block(source.block, parse, &mut |row| {
                match row {
                    Ok(row) => places.push(row.place),
                    Err(row) => {
                        if let Some(bad) = bad.next() {
                            bad.place = row.place;
                        }
                    }
                }
                Ok(())
            })?;
            if places.len() != block.places.len() {
                return Err(self
                    .steps
                    .block_error(&stored, "it was made from other rows"));
            }
            block.places = places;
        }
        Ok(Some(block))
    }

    fn decode_block(
        &self,
        source: BlockSource<'_>,
        stored: &StoredBlock,
        index: &ContaminationIndex,
    ) -> Result<SearchedBlock> {
        let refuse = |what: &str| self.steps.block_error(stored, what);
        let (start, bytes_on_disk, seen_fields, block) = decode_bytes(stored.as_bytes(), index)
            .ok_or_else(|| refuse("its documents cannot be read"))?;
        if bytes_on_disk != source.block.bytes_on_disk() {
            return Err(refuse("it was made from another input"));
        }
        if !BlockStart::of_block(source, None).is_at(start) {
            return Err(refuse("its rows were at another place"));
        }
        let numbers = source.block.row_numbers();
        let rows = numbers.end - numbers.start;
        source.inputs.add_stored_rows(rows, &seen_fields);
        Ok(block)
    }

    /// Adds the result of the next block, in input order.
    ///
    /// # Errors
    /// If a file of the directory cannot be written.
    pub(super) fn push_block(&self, block: &SearchedBlock) -> Result<()> {
        let Some(stored) = &block.stored else {
            return Ok(());
        };
        self.steps
            .push_block(stored, block.read.documents, block.bytes_on_disk)
    }

    /// Ends the last step, once all blocks are read.
    ///
    /// # Errors
    /// If it cannot be written, and if blocks are stored that the inputs do not have.
    pub(super) fn finish_steps(&self) -> Result<()> {
        self.steps.finish_steps()
    }
}

/// Returns a block as bytes.
pub(super) fn encode_block(source: BlockSource<'_>, block: &SearchedBlock) -> Vec<u8> {
    let mut bytes = Vec::new();
    BlockStart::of_block(source, None).encode_start(&mut bytes);
    bytes.extend(source.block.bytes_on_disk().to_le_bytes());
    let seen = source.inputs.seen_fields();
    put_count(seen.len(), &mut bytes);
    bytes.extend(seen.into_iter().map(u8::from));
    put_count(block.places.len(), &mut bytes);
    block
        .places
        .iter()
        .for_each(|&place| put_place(place, &mut bytes));
    put_count(block.read.bad.len(), &mut bytes);
    block
        .read
        .bad
        .iter()
        .for_each(|bad| put_bad_row(bad, &mut bytes));
    bytes.extend(block.read.bytes.to_le_bytes());
    put_count(block.documents.len(), &mut bytes);
    bytes.extend_from_slice(&block.documents);
    block.terms.append_bytes(&mut bytes);
    bytes
}

type DecodedBlock = (BlockStart, u64, Vec<bool>, SearchedBlock);

fn decode_bytes(bytes: &[u8], index: &ContaminationIndex) -> Option<DecodedBlock> {
    let mut reader = ByteReader::new(bytes);
    let start = BlockStart::decode_start(&mut reader)?;
    let bytes_on_disk = reader.read_u64()?;
    let fields = read_count(&mut reader)?;
    let seen = reader
        .read_bytes(fields)?
        .iter()
        .map(|&seen| seen != 0)
        .collect();
    let places = read_all(&mut reader, read_place)?;
    let bad = read_all(&mut reader, read_bad_row)?;
    let row_bytes = reader.read_u64()?;
    let length = read_count(&mut reader)?;
    let documents = reader.read_bytes(length)?.to_vec();
    let terms = CountedTerms::from_bytes(&mut reader, index)?;
    let block = SearchedBlock {
        read: CountedRows {
            bad,
            documents: places.len() as u64,
            bytes: row_bytes,
        },
        places,
        documents,
        terms,
        stored: None,
        bytes_on_disk,
    };
    reader
        .is_at_end()
        .then_some((start, bytes_on_disk, seen, block))
}
