//! The partitions in the window, and the numbers of their rows.

use std::collections::VecDeque;

use lookalike::stream::{DocumentSlot, Timestamp};

use super::partition_state::{DeadSpace, PartitionState};
use crate::files::rows::{DeletionRecord, MAX_WINDOW_ROWS};

/// Partitions by number. Their numbers ascend; each one's rows end where those of the next one begin, and
/// those of the newest one end before `next_row`.
#[derive(Debug)]
pub(crate) struct PartitionTable {
    partitions: VecDeque<PartitionState>,
    /// Number of the next row.
    next_row: u64,
    /// Largest number of rows in the window.
    pub(super) max_rows: u64,
}

impl Default for PartitionTable {
    fn default() -> Self {
        Self {
            partitions: VecDeque::new(),
            next_row: 1,
            max_rows: MAX_WINDOW_ROWS,
        }
    }
}

impl PartitionTable {
    pub(super) fn next_row(&self) -> u64 {
        self.next_row
    }

    pub(super) fn last_row(&self) -> u64 {
        self.next_row - 1
    }

    /// Returns the number of the oldest row. Earlier rows are gone.
    pub(super) fn first_row(&self) -> u64 {
        self.partitions
            .front()
            .map_or(self.next_row, PartitionState::first_row)
    }

    /// Returns `true` if the window has as many rows as it can.
    pub(super) fn is_full(&self) -> bool {
        self.next_row - self.first_row() >= self.max_rows
    }

    /// Counts rows that were added to the newest partition; returns the number of the first.
    pub(super) fn advance_rows(&mut self, count: u64) -> u64 {
        let number = self.next_row;
        self.next_row = number.saturating_add(count);
        number
    }

    /// Adds a partition, which begins with the next row.
    pub(super) fn push_newest(&mut self, number: u64) {
        self.partitions
            .push_back(PartitionState::new(number, self.next_row));
    }

    /// Adds a partition that is on disk. Returns `false` if it does not begin with the next row; only the
    /// first one may begin with any.
    pub(super) fn push_from_disk(&mut self, number: u64, first_row: u64) -> bool {
        if !self.partitions.is_empty() && first_row != self.next_row {
            return false;
        }
        self.next_row = first_row;
        self.push_newest(number);
        true
    }

    pub(super) fn remove_oldest(&mut self) {
        self.partitions.pop_front();
    }

    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PartitionState> {
        self.partitions.iter()
    }

    pub(super) fn oldest(&self) -> Option<&PartitionState> {
        self.partitions.front()
    }

    pub(super) fn newest(&self) -> Option<&PartitionState> {
        self.partitions.back()
    }

    pub(super) fn newest_mut(&mut self) -> Option<&mut PartitionState> {
        self.partitions.back_mut()
    }

    /// Returns the number of the newest partition.
    pub(super) fn newest_number(&self) -> Option<u64> {
        self.newest().map(PartitionState::number)
    }

    pub(super) fn find_by_number(&self, number: u64) -> Option<&PartitionState> {
        self.partitions.get(self.position_of(number)?)
    }

    pub(super) fn find_by_number_mut(&mut self, number: u64) -> Option<&mut PartitionState> {
        let at = self.position_of(number)?;
        self.partitions.get_mut(at)
    }

    fn position_of(&self, number: u64) -> Option<usize> {
        self.partitions
            .binary_search_by_key(&number, PartitionState::number)
            .ok()
    }

    pub(super) fn find_by_row(&self, row: u64) -> Option<&PartitionState> {
        self.partitions.get(self.position_of_row(row)?)
    }

    fn find_by_row_mut(&mut self, row: u64) -> Option<&mut PartitionState> {
        let at = self.position_of_row(row)?;
        self.partitions.get_mut(at)
    }

    fn position_of_row(&self, row: u64) -> Option<usize> {
        let behind = self
            .partitions
            .partition_point(|partition| partition.first_row() <= row);
        behind.checked_sub(1)
    }

    /// Returns `true` if the document of a row is dead, or the row is before the first partition.
    pub(super) fn is_dead_row(&self, row: u64) -> bool {
        self.find_by_row(row)
            .is_none_or(|partition| partition.is_dead_row(row))
    }

    /// Notes that the document of a row was deleted by a row in the newest partition.
    pub(super) fn note_deletion(&mut self, row: u64, removal: DeletionRecord) {
        let space = DeadSpace {
            bytes: removal.bytes.into(),
            since: Some(removal.at),
        };
        self.mark_dead(row, space);
        // The row of a deletion is dead as well if it is in the same partition as the deleted document.
        if let Some(newest) = self
            .newest_mut()
            .filter(|partition| row >= partition.first_row())
        {
            newest.count_dead_deletion();
        }
    }

    /// Notes that a document moved away from a row. Its content is still stored elsewhere.
    pub(super) fn note_move(&mut self, row: u64, bytes: u64) {
        self.mark_dead(row, DeadSpace { bytes, since: None });
    }

    /// Notes that a document has left the window by the clock.
    pub(super) fn note_expiry(&mut self, row: u64, bytes: u64) {
        let since = Some(Timestamp::BEGINNING);
        self.mark_dead(row, DeadSpace { bytes, since });
    }

    fn mark_dead(&mut self, row: u64, space: DeadSpace) {
        if let Some(partition) = self.find_by_row_mut(row) {
            partition.mark_dead(row, space);
        }
    }

    /// Counts a document that was written to the newest partition.
    pub(super) fn count_document(&mut self, time: Timestamp) {
        if let Some(partition) = self.newest_mut() {
            partition.count_document(time);
        }
    }

    /// Counts a decision that was written to the newest partition.
    pub(super) fn count_decision(&mut self) {
        if let Some(partition) = self.newest_mut() {
            partition.count_decision();
        }
    }

    /// Returns the number of live documents, and the number of dead rows on disk: those of deleted or moved
    /// documents, and the rows of their deletions.
    pub(super) fn count_rows(&self) -> (u64, u64) {
        let all = self.next_row - self.first_row();
        let live: u64 = self.iter().map(PartitionState::live_count).sum();
        let erased: u64 = self.iter().map(PartitionState::erased_count).sum();
        let decisions: u64 = self.iter().map(PartitionState::decision_count).sum();
        (live, all.saturating_sub(live + erased + decisions))
    }

    /// Returns the slots of kept documents after `after`, in order.
    pub(super) fn slots_after(
        &self,
        after: Option<DocumentSlot>,
    ) -> impl Iterator<Item = DocumentSlot> {
        let oldest = after.map_or(0, |slot| slot.partition);
        let begin = self
            .partitions
            .partition_point(|partition| partition.number() < oldest);
        self.partitions.range(begin..).flat_map(move |partition| {
            let number = partition.number();
            let passed = after.filter(|slot| slot.partition == number);
            let first = passed.map_or(0, |slot| slot.index.saturating_add(1));
            (first..partition.kept().len()).map(move |index| DocumentSlot {
                partition: number,
                index,
            })
        })
    }

    /// Returns the place of the record of a kept document.
    pub(super) fn record_place(&self, slot: DocumentSlot) -> Option<u32> {
        let partition = self.find_by_number(slot.partition)?;
        partition.kept().record_place(slot.index)
    }

    /// Returns the number of the last duplicate of the kept document `seq` in a slot, or 0 if none is left.
    pub(super) fn last_duplicate(&self, slot: DocumentSlot, seq: u64) -> u64 {
        let partition = self.find_by_number(slot.partition);
        let last = partition.and_then(|partition| partition.kept().last_row(slot.index));
        last.filter(|&last| last != seq as u32)
            .map_or(0, |last| self.restore_row(last))
    }

    /// Notes the last duplicate of a kept document.
    pub(super) fn set_last_duplicate(&mut self, slot: DocumentSlot, row: u64) {
        if let Some(partition) = self.find_by_number_mut(slot.partition) {
            partition.kept_mut().set_last_row(slot.index, row);
        }
    }

    /// Restores the number of a row from its lower half; returns 0 if it is before all rows.
    fn restore_row(&self, lower_half: u32) -> u64 {
        let first = self.first_row();
        let distance = u64::from(lower_half.wrapping_sub(first as u32));
        if distance < MAX_WINDOW_ROWS {
            first + distance
        } else {
            0
        }
    }

    /// Returns bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.iter().map(PartitionState::memory_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::rows::RecordPlace;

    /// Returns three partitions with two rows each, from a row on.
    fn table(first_row: u64) -> PartitionTable {
        let mut table = PartitionTable::default();
        assert!(table.push_from_disk(4, first_row));
        table.advance_rows(2);
        for number in [5, 6] {
            table.push_newest(number);
            table.advance_rows(2);
        }
        table
    }

    #[test]
    fn rows_belong_to_their_partitions() {
        let mut table = table(11);
        let partitions = [10, 11, 12, 13, 16, 99].map(|row| {
            let partition = table.find_by_row(row);
            partition.map(PartitionState::number)
        });
        assert_eq!(
            partitions,
            [None, Some(4), Some(4), Some(5), Some(6), Some(6)]
        );
        assert_eq!((table.first_row(), table.last_row()), (11, 16));
        assert!(!table.push_from_disk(7, 18) && table.push_from_disk(7, 17));
        table.note_deletion(
            12,
            DeletionRecord {
                at: Timestamp(1),
                bytes: 1,
            },
        );
        assert!(table.is_dead_row(10) && table.is_dead_row(12) && !table.is_dead_row(13));
        table.remove_oldest();
        assert!(table.is_dead_row(11) && !table.is_dead_row(13));
        assert_eq!(table.first_row(), 13);
    }

    /// Only the lower halves are stored, so numbers beyond 2³² are restored from the oldest row.
    #[test]
    fn last_duplicates_are_restored_across_the_lower_half() {
        let first_row = u64::from(u32::MAX) - 1;
        let mut table = table(first_row);
        let slot = DocumentSlot {
            partition: 4,
            index: 0,
        };
        let place = RecordPlace { at: 0, units: 1 };
        let oldest = table.find_by_number_mut(4).unwrap();
        oldest.kept_mut().push_document(place, first_row);
        assert_eq!(table.last_duplicate(slot, first_row), 0);
        table.set_last_duplicate(slot, first_row + 3);
        assert_eq!(table.last_duplicate(slot, first_row), first_row + 3);
        // A duplicate whose partition has expired is no longer there.
        table.set_last_duplicate(slot, first_row - 1);
        assert_eq!(table.last_duplicate(slot, first_row), 0);
    }

    #[test]
    fn slots_continue_after_a_slot() {
        let mut table = table(1);
        for number in [4, 6] {
            let partition = table.find_by_number_mut(number).unwrap();
            (0..2).for_each(|row| partition.kept_mut().push_erased(row));
        }
        let all: Vec<_> = table.slots_after(None).collect();
        let numbers: Vec<_> = all
            .iter()
            .map(|entry| (entry.partition, entry.index))
            .collect();
        assert_eq!(numbers, [(4, 0), (4, 1), (6, 0), (6, 1)]);
        for (at, &slot) in all.iter().enumerate() {
            assert!(
                table
                    .slots_after(Some(slot))
                    .eq(all[at + 1..].iter().copied())
            );
        }
    }
}
