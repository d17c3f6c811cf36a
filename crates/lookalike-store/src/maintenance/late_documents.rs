//! Documents that leave the window by the wall clock long before the rest of their partition.

use super::compaction::PIECE;
use crate::collection::Collection;
use crate::document::KnownDocument;
use crate::error::Result;
use crate::files::rows::PartitionRow;

/// Bytes of rows that are read at a time.
const BYTES_READ: usize = PIECE / 4;

impl Collection {
    /// Drops documents that have left the window by the wall clock long before the rest of their partition,
    /// so that the partition becomes due for compaction.
    pub(super) fn drop_late_documents(&self, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        loop {
            let number = self.read_state()?.late_partition((self.options.clock)());
            let Some(number) = number else { return Ok(()) };
            let (times, last) = {
                let mut state = self.write_state()?;
                (state.take_times(number), state.last_row())
            };
            let Some((oldest, newest)) = times else {
                return Ok(());
            };
            let on_disk = self.wait_for_row(last);
            let dropped = on_disk.and_then(|()| self.drop_late_of(number, go_on));
            if !matches!(dropped, Ok(true)) {
                self.write_state()?.note_times(number, oldest, newest);
                return dropped.map(drop);
            }
        }
    }

    /// Drops the late documents of a partition; returns `true` if the whole partition was examined.
    fn drop_late_of(&self, number: u64, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        let partition = self.read_state()?.partition_on_disk(number);
        let Some(partition) = partition else {
            return Ok(false);
        };
        let mut next_block = 0;
        loop {
            let blocks = partition.blocks_from(next_block, BYTES_READ)?;
            for (first, block) in &blocks {
                let rows = partition.decode_block(*first, block)?;
                self.drop_late_rows(number, *first, rows)?;
                next_block = first + 1;
            }
            if blocks.is_empty() {
                return Ok(true);
            }
            if !go_on() {
                return Ok(false);
            }
        }
    }

    /// Drops the late documents among some rows of a partition, and notes the times of the others.
    fn drop_late_rows(&self, partition: u64, first: u64, rows: Vec<PartitionRow>) -> Result<()> {
        let now = (self.options.clock)();
        let mut state = self.write_state()?;
        let mut next = first;
        for row in rows {
            let number = next;
            next = number.saturating_add(row.number_count());
            let Some((document, seq)) = row.into_document(number) else {
                continue;
            };
            let known = KnownDocument {
                number,
                seq,
                document,
            };
            if state.is_past_window(&known, now) {
                state.drop_expired(&known);
            } else if !state.is_dead_row(number) {
                let time = state.window_start(&known);
                state.note_times(partition, time, time);
            }
        }
        Ok(())
    }
}
