//! Reads rows in ascending order, a block at a time.
//!
//! A row by its number costs a transaction and the checksum of its whole block. A reader of many rows keeps the block
//! that it read last, so that each block is read once.

use std::collections::VecDeque;

use super::CollectionState;
use crate::document::KnownDocument;
use crate::error::Result;
use crate::files::rows::PartitionRow;

/// Reads documents of a state under one lock. Cost: a block of up to 64 rows in memory.
#[derive(Debug)]
pub(crate) struct DocumentReader<'s> {
    state: &'s CollectionState,
    /// Rows of the last block that were not read yet, with their numbers.
    block: VecDeque<(u64, PartitionRow)>,
}

impl<'s> DocumentReader<'s> {
    pub(super) fn new(state: &'s CollectionState) -> Self {
        Self {
            state,
            block: VecDeque::new(),
        }
    }

    /// Returns the document with a sequence number, if there is one, as
    /// [`find_by_seq`](CollectionState::find_by_seq) does.
    ///
    /// # Errors
    /// If a file is damaged.
    pub(crate) fn find_by_seq(&mut self, seq: u64) -> Result<Option<KnownDocument>> {
        let number = self.state.row_of_document(seq);
        // A document that was moved is far from its neighbours, whose block is kept.
        if number != seq {
            return self.state.find_by_seq(seq);
        }
        let Some((document, found)) = self.read_row(number)?.into_document(number) else {
            return Ok(None);
        };
        Ok((found == seq).then_some(KnownDocument {
            number,
            seq,
            document,
        }))
    }

    fn read_row(&mut self, number: u64) -> Result<PartitionRow> {
        if let Some(row) = self.take_row(number) {
            return Ok(row);
        }
        self.block = self.state.rows.read_block(number)?.into();
        match self.take_row(number) {
            Some(row) => Ok(row),
            None => self.state.read_row(number),
        }
    }

    /// Takes a row out of the block, with all rows before it. A row that stands for several numbers stays.
    fn take_row(&mut self, number: u64) -> Option<PartitionRow> {
        let after = self.block.partition_point(|&(first, _)| first <= number);
        let at = after.checked_sub(1)?;
        let (first, row) = &self.block[at];
        let count = row.number_count();
        if number - first >= count {
            return None;
        }
        self.block.drain(..at);
        if count > 1 {
            return self.block.front().map(|(_, row)| row.clone());
        }
        self.block.pop_front().map(|(_, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lookalike::text::AnalysisScratch;

    use crate::collection::{Collection, CollectionOptions};
    use crate::disk::DiskFolder;
    use crate::document::{DocumentContent, NewDocument};
    use crate::settings::CollectionSettings;

    fn insert(collection: &Collection, ids: std::ops::Range<usize>) {
        let mut scratch = AnalysisScratch::default();
        let documents = ids.map(|id| NewDocument {
            id: id.to_string(),
            // Every third text comes again.
            content: DocumentContent::Text(format!("text number {}", id - id % 3 / 2)),
            time: None,
            meta: None,
        });
        let documents: Vec<_> = documents
            .map(|document| collection.prepare_document(document, &mut scratch).unwrap())
            .collect();
        for answer in collection.insert_documents(&documents) {
            answer.unwrap();
        }
    }

    /// Reads all documents; returns how many there are and how many blocks were read.
    fn read_all(collection: &Collection) -> (usize, usize) {
        let state = collection.read_state().unwrap();
        let (mut reader, mut documents, mut blocks) = (state.document_reader(), 0, 0);
        for seq in state
            .seqs_after(0)
            .filter(|&seq| !state.is_dead_document(seq))
        {
            let left = reader.block.len();
            let found = reader.find_by_seq(seq).unwrap();
            blocks += usize::from(reader.block.len() > left);
            documents += usize::from(found.is_some());
            let expected = state.find_by_seq(seq).unwrap();
            assert_eq!(
                format!("{found:?}"),
                format!("{expected:?}"),
                "document {seq}"
            );
        }
        (documents, blocks)
    }

    /// A reader has the documents that single reads have, and reads each block of 64 rows once.
    #[test]
    fn blocks_are_read_once() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(directory.path()).unwrap());
        let settings = CollectionSettings::default();
        let options = CollectionOptions::default();
        let collection = Collection::create_empty(disk, &settings, options).unwrap();
        insert(&collection, 0..1_000);
        assert_eq!(read_all(&collection), (1_000, 16));
        for id in (0..1_000).step_by(7) {
            assert!(collection.delete_document(&id.to_string()).unwrap());
        }
        let (documents, blocks) = read_all(&collection);
        assert!(documents == 857 && blocks < 20, "{documents} {blocks}");
        collection.compact_all(&mut || true).unwrap();
        let (documents, blocks) = read_all(&collection);
        assert!(documents == 857 && blocks < 20, "{documents} {blocks}");
    }
}
