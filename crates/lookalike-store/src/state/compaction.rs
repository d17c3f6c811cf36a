//! The state's share of a compaction: which partition is due, and its replacement.

use std::sync::Arc;
use std::time::Duration;

use lookalike::stream::Timestamp;

use super::partition_state::{DeadSpace, PartitionState};
use super::row_bitmap::RowBitmap;
use super::{ChunkedVec, CollectionState};
use crate::error::Result;
use crate::files::partition::PartitionFiles;

/// Conditions under which a partition is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionTrigger {
    /// Share of the bytes of a partition's files that must belong to deleted, replaced or moved documents.
    pub dead_share: f64,
    /// Dead bytes from which the share is considered.
    pub least_dead_bytes: u64,
    /// Longest time that deleted or replaced content stays on disk. A partition is also compacted when it is
    /// reached.
    pub longest_wait: Duration,
}

impl Default for CompactionTrigger {
    /// Returns a third of at least 1 MiB, and a day.
    fn default() -> Self {
        Self {
            dead_share: 1.0 / 3.0,
            least_dead_bytes: 1 << 20,
            longest_wait: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl CompactionTrigger {
    /// Returns `true` if dead content has waited as long as it may.
    fn is_overdue(&self, dead: DeadSpace, now: Timestamp) -> bool {
        let longest = self.longest_wait.as_micros();
        dead.since
            .is_some_and(|since| u128::from(since.0.abs_diff(now.0)) >= longest)
    }

    /// Returns `true` if the dead bytes are enough for their share to be considered.
    fn has_enough_dead_bytes(&self, dead: DeadSpace) -> bool {
        dead.bytes > 0 && dead.bytes >= self.least_dead_bytes
    }

    /// Returns `true` if enough of a partition's bytes are dead.
    fn is_share_reached(&self, dead: DeadSpace, bytes: u64) -> bool {
        dead.bytes as f64 >= self.dead_share * bytes as f64
    }
}

/// State of a partition when its compaction begins.
#[derive(Debug)]
pub(crate) struct CompactionStart {
    /// Number of the partition.
    pub(crate) number: u64,
    pub(crate) first_row: u64,
    /// Number of the first row whose deletions and moves are not taken into account.
    pub(crate) applied: u64,
    /// Place after the records of earlier rows, in units.
    pub(crate) texts_end: u64,
    dead_rows: RowBitmap,
    /// For all partitions: the number of the first row, and the row before which deletions were taken into
    /// account.
    applied_rows: Vec<(u64, u64)>,
    dead_space: DeadSpace,
}

impl CompactionStart {
    pub(crate) fn is_dead_row(&self, number: u64) -> bool {
        self.dead_rows.contains_row(number - self.first_row)
    }

    /// Returns `true` if opening the collection still needs a row that removes `removed_row`.
    pub(crate) fn is_needed_row(&self, removing_row: u64, removed_row: u64) -> bool {
        let next_partition = self
            .applied_rows
            .partition_point(|&(first_row, _)| first_row <= removed_row);
        let partition = next_partition
            .checked_sub(1)
            .map(|at| self.applied_rows[at]);
        // An expired partition is not in the list, and a compacted partition takes its own deletions into
        // account.
        partition.is_some_and(|(first_row, applied)| {
            first_row != self.first_row && applied <= removing_row
        })
    }
}

impl CollectionState {
    /// Returns the oldest partition, from number `from` on, that is due for compaction.
    pub(crate) fn partition_to_compact(
        &self,
        from: u64,
        trigger: &CompactionTrigger,
        now: Timestamp,
    ) -> Result<Option<u64>> {
        for partition in self.rows.partitions.iter() {
            let (number, dead) = (partition.number(), partition.dead_space());
            if number < from {
                continue;
            }
            if trigger.is_overdue(dead, now) {
                return Ok(Some(number));
            }
            let files = self.rows.on_disk().find_by_number(number);
            if let Some(files) = files.filter(|_| trigger.has_enough_dead_bytes(dead))
                && trigger.is_share_reached(dead, files.size_in_bytes()?)
            {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Returns the numbers of the partitions with dead rows on disk.
    pub(crate) fn partitions_with_dead(&self) -> Vec<u64> {
        let partitions = self.rows.partitions.iter();
        let with_dead = partitions.filter(|partition| partition.dead_space().is_any());
        with_dead.map(PartitionState::number).collect()
    }

    /// Begins the compaction of a partition: takes its dead space and returns its state. Returns `None` if there is no such
    /// partition.
    /// The compaction [ends](Self::end_compaction) or is [given up](Self::give_up_compaction).
    pub(crate) fn begin_compaction(&mut self, number: u64) -> Option<CompactionStart> {
        let partitions = &mut self.rows.partitions;
        let applied_rows = partitions
            .iter()
            .map(|partition| (partition.first_row(), partition.applied_row()))
            .collect();
        let applied = partitions.next_row();
        let partition = partitions.find_by_number_mut(number)?;
        Some(CompactionStart {
            number,
            first_row: partition.first_row(),
            applied,
            texts_end: partition.texts_end(),
            dead_rows: partition.dead_rows().clone(),
            applied_rows,
            dead_space: partition.take_dead_space(),
        })
    }

    pub(crate) fn give_up_compaction(&mut self, begun: &CompactionStart) {
        if let Some(partition) = self.rows.partitions.find_by_number_mut(begun.number) {
            partition.restore_dead_space(begun.dead_space);
        }
    }

    /// Replaces a partition by its compacted version; returns the old one and its list of places. `places`
    /// are those of the kept documents on disk, and `erased` is the number of erased rows.
    pub(crate) fn end_compaction(
        &mut self,
        partition: Arc<PartitionFiles>,
        places: ChunkedVec<u32>,
        erased: u64,
    ) -> Option<(Arc<PartitionFiles>, ChunkedVec<u32>)> {
        self.rows.replace_partition(partition, places, erased)
    }
}
