//! Finds the rows of documents: by their ids, and by the sequence numbers of moved ones.

use std::collections::BTreeMap;
use std::ops::Range;

use super::id_table::IdTable;
use super::partition_table::PartitionTable;
use super::stored_rows::StoredRows;
use crate::document::KnownDocument;
use crate::error::Result;

/// Approximate bytes of memory of a moved document: two numbers, in nodes that are two thirds full.
const MOVED_BYTES: usize = 24;

/// Rows by id and by sequence number. A document that never moved is in the row whose number is its sequence
/// number, so only moved ones are listed.
#[derive(Debug, Default)]
pub(crate) struct DocumentIndex {
    /// Row numbers by id hash. Dead rows stay until a sweep finds them.
    ids: IdTable,
    /// Row numbers of moved documents, by sequence number. They are sorted, because lists of documents continue
    /// after any of them.
    moved: BTreeMap<u64, u64>,
}

impl DocumentIndex {
    /// Prefetches the memory that a look-up needs.
    pub(super) fn prefetch_id(&self, id_hash: u64) {
        self.ids.prefetch_id(id_hash);
    }

    /// Adds the newest row with an id.
    pub(super) fn insert_id(&mut self, id_hash: u64, row: u64, partitions: &PartitionTable) {
        let is_dead = |row| partitions.is_dead_row(row);
        self.ids
            .insert_id(id_hash, row, partitions.first_row(), is_dead);
    }

    /// Returns the document with an id, if there is one.
    pub(super) fn find_by_id(
        &self,
        id: &str,
        id_hash: u64,
        rows: &StoredRows,
    ) -> Result<Option<KnownDocument>> {
        let partitions = &rows.partitions;
        let mut numbers = Vec::new();
        self.ids
            .visit_candidates(id_hash, partitions.first_row(), |row| {
                if !partitions.is_dead_row(row) {
                    numbers.push(row);
                }
            });
        for number in numbers {
            let known = rows.find_by_row(number)?;
            if let Some(known) = known.filter(|known| known.document.id == id) {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    /// Notes the row to which a document moved.
    pub(super) fn note_move(&mut self, seq: u64, row: u64) {
        self.moved.insert(seq, row);
    }

    /// Forgets the move of a document that no longer exists.
    pub(super) fn forget_move(&mut self, seq: u64) {
        self.moved.remove(&seq);
    }

    /// Forgets the moves to rows before `first_row`, because their partition has expired.
    pub(super) fn forget_moves_before(&mut self, first_row: u64) {
        self.moved.retain(|_, row| *row >= first_row);
    }

    pub(super) fn is_moved(&self, seq: u64) -> bool {
        self.moved.contains_key(&seq)
    }

    /// Returns the number of the row of a kept document.
    pub(super) fn row_of_document(&self, seq: u64) -> u64 {
        self.moved.get(&seq).copied().unwrap_or(seq)
    }

    /// Returns the sequence numbers in a range that moved documents have, ascending.
    pub(super) fn moved_seqs(&self, seqs: Range<u64>) -> impl Iterator<Item = u64> {
        self.moved.range(seqs).map(|(seq, _)| *seq)
    }

    /// Takes the table of ids, which another thread fills while a collection is opened.
    pub(super) fn take_ids(&mut self) -> IdTable {
        std::mem::take(&mut self.ids)
    }

    pub(super) fn put_ids(&mut self, ids: IdTable) {
        self.ids = ids;
    }

    /// Returns bytes of memory of the table of ids.
    pub(super) fn id_bytes(&self) -> u64 {
        self.ids.memory_bytes()
    }

    /// Returns bytes of memory of the list of moved documents.
    pub(super) fn moved_bytes(&self) -> usize {
        MOVED_BYTES * self.moved.len()
    }
}
