//! The last stage: prepared rows change the state as they did when they were written.

use std::sync::{Arc, Mutex, PoisonError};

use lookalike::stream::{KeyExtractor, Timestamp};

use super::{KeptDocument, PREFETCH_DISTANCE, ReadyRows};
use crate::error::{Error, Result};
use crate::files::partition::PartitionFiles;
use crate::files::rows::{DeletionRecord, PartitionRow, RowDocument, RowVerdict};
use crate::state::CollectionState;

/// Deletion of a row of an earlier version, which has no time, so the oldest possible one is assumed.
const LONG_AGO: DeletionRecord = DeletionRecord {
    at: Timestamp::BEGINNING,
    bytes: 0,
};

impl CollectionState {
    /// Adds a partition whose rows follow.
    pub(super) fn follow_with(&mut self, partition: Arc<PartitionFiles>) -> Result<()> {
        let about = partition.about;
        self.reach_row(about.first, about.number);
        self.rows.follow_with(partition)?;
        self.matcher.begin_partition(about.number, about.began)?;
        if let Some(compacted) = about.compacted {
            // The clock includes the times of erased documents.
            self.matcher.note_time(compacted.newest);
        }
        Ok(())
    }

    /// Inserts prepared rows, without their ids.
    pub(super) fn replay_rows(
        &mut self,
        portion: ReadyRows,
        extractor: &Mutex<KeyExtractor>,
    ) -> Result<()> {
        for (at, row) in portion.rows.iter().enumerate() {
            if let Some(Some(next)) = portion.kept.get(at + PREFETCH_DISTANCE) {
                self.matcher
                    .prefetch_for_insert(&next.document, &next.document_keys);
            }
            self.replay_row(row, portion.kept[at].as_ref())?;
        }
        *extractor.lock().unwrap_or_else(PoisonError::into_inner) = self.matcher.key_extractor();
        // Freeing so many small allocations takes a considerable time, so another thread does it.
        rayon::spawn(move || drop(portion));
        Ok(())
    }

    /// Inserts the next row, without its id. `kept` is its prepared document, if that was kept.
    fn replay_row(&mut self, row: &PartitionRow, kept: Option<&KeptDocument>) -> Result<()> {
        let number = self.rows.partitions.advance_rows(row.number_count());
        self.reach_row(number, u64::MAX);
        match row {
            PartitionRow::Document(document) => self.replay_document(document, number, kept, 0),
            PartitionRow::Moved {
                document,
                from,
                from_slot,
                seq,
                last,
            } => {
                self.matcher.remove_document(*from_slot);
                self.rows
                    .partitions
                    .note_move(*from, document.bytes_on_disk());
                self.index.note_move(*seq, number);
                self.replay_document(document, *seq, kept, *last)
            }
            PartitionRow::Deleted {
                number: deleted,
                seq,
                slot,
                removal,
            } => {
                let removal = removal.unwrap_or(LONG_AGO);
                self.rows.partitions.note_deletion(*deleted, removal);
                self.index.forget_move(*seq);
                if let Some(slot) = slot {
                    self.matcher.remove_document(*slot);
                }
                Ok(())
            }
            PartitionRow::Erased { rows, kept } => {
                self.mark_erased(number, *rows);
                (0..*kept).try_for_each(|_| self.skip_kept(number))
            }
            PartitionRow::ErasedMove {
                from,
                from_slot,
                seq,
            } => {
                self.mark_erased(number, 1);
                self.matcher.remove_document(*from_slot);
                self.rows.partitions.note_move(*from, 0);
                self.index.forget_move(*seq);
                self.skip_kept(number)
            }
            PartitionRow::ErasedDuplicate { slot, .. } => {
                self.mark_erased(number, 1);
                self.rows.partitions.set_last_duplicate(*slot, number);
                Ok(())
            }
            PartitionRow::Decision(decision) => {
                self.note_decision(number, decision);
                Ok(())
            }
        }
    }

    /// Changes the window to that under which row `number` was written, as far as it changed before the partition with
    /// the number `partition` began.
    fn reach_row(&mut self, number: u64, partition: u64) {
        let next = self.windows.changes().get(self.reached_changes);
        let next = next.filter(|next| next.is_before(number, partition));
        if let Some(change) = next.copied() {
            self.matcher.change_window(change.window);
            self.reached_changes += 1;
            self.reach_row(number, partition);
        }
    }

    fn replay_document(
        &mut self,
        document: &RowDocument,
        seq: u64,
        kept: Option<&KeptDocument>,
        last: u64,
    ) -> Result<()> {
        if let Some(newest) = self.rows.partitions.newest_mut() {
            newest.include_place(document.place);
            newest.count_document(document.time);
        }
        match (&document.verdict, kept) {
            (RowVerdict::Duplicate { slot, .. }, _) => {
                self.matcher.note_time(document.time);
                self.rows.partitions.set_last_duplicate(*slot, seq);
                // A kept document of an older partition is moved by the row that follows.
                let newest = self.rows.partitions.newest_number();
                if self.is_refreshing() && newest == Some(slot.partition) {
                    self.matcher.refresh_document(*slot, document.time);
                }
                Ok(())
            }
            (RowVerdict::Kept { index }, Some(kept)) => {
                self.replay_kept(document, *index, seq, kept, last)
            }
            (RowVerdict::Kept { .. }, None) => {
                Err(Error::damaged_file("rows", "a kept text is missing"))
            }
        }
    }

    fn replay_kept(
        &mut self,
        row: &RowDocument,
        index: u32,
        seq: u64,
        kept: &KeptDocument,
        last: u64,
    ) -> Result<()> {
        let (document, keys) = (&kept.document, &kept.document_keys);
        let slot = self.matcher.keep_with_keys(document, keys, seq, row.time)?;
        if slot.index != index {
            let what = format!("row {seq} is kept document {index}, not {}", slot.index);
            return Err(Error::damaged_file("rows", what));
        }
        // Earlier versions wrote this time even if nothing was refreshed.
        let is_refreshed = self.windows.is_refreshing_since(seq);
        let refreshed = row.refreshed.filter(|_| is_refreshed);
        if let Some(refreshed) = refreshed {
            self.matcher.refresh_document(slot, refreshed);
        }
        self.rows.append_kept(row.place, seq, last);
        Ok(())
    }

    /// Notes rows of which compaction left nothing.
    fn mark_erased(&mut self, number: u64, rows: u64) {
        if let Some(newest) = self.rows.partitions.newest_mut() {
            newest.mark_erased(number, rows);
        }
    }

    /// Skips an index among the kept documents, because its document no longer exists.
    fn skip_kept(&mut self, number: u64) -> Result<()> {
        self.matcher.skip_place(number)?;
        if let Some(newest) = self.rows.partitions.newest_mut() {
            newest.kept_mut().push_erased(number);
        }
        Ok(())
    }

    /// Checks that the file of texts of the newest partition is as long as its rows require.
    pub(super) fn check_texts(&self) -> Result<()> {
        let newest = self.rows.on_disk().newest();
        newest.map_or(Ok(()), |newest| newest.check_length(self.texts_end()))
    }

    /// Ends the replay: new rows are written after the existing ones.
    pub(crate) fn end_replay(&mut self) {
        self.reach_row(u64::MAX, u64::MAX);
        self.restore_decisions();
        self.rows.continue_newest();
    }
}
