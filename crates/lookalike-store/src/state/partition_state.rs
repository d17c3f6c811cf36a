//! The state of one partition in memory: places of kept documents, dead rows, and times.

use lookalike::stream::Timestamp;

use super::chunked_vec::ChunkedVec;
use super::row_bitmap::RowBitmap;
use crate::files::rows::{DELETION_BYTES, RecordPlace};

/// A partition in memory. It takes 8 bytes per kept document in addition to the matcher.
///
/// A row is live, dead (deleted or moved) or erased (compaction left nothing of it); dead and erased rows are
/// in the bitmap. A row dies once: its live document and its bytes are never counted twice.
#[derive(Debug)]
pub(crate) struct PartitionState {
    number: u64,
    first_row: u64,
    kept: KeptTable,
    /// Place of the next record, in units.
    texts_end: u64,
    /// Dead and erased rows.
    dead_rows: RowBitmap,
    /// Number of live documents.
    live: u64,
    /// Number of rows of which compaction left nothing, or only what other rows need.
    erased: u64,
    /// Number of rows with a decision, which are no documents and not dead.
    decisions: u64,
    dead_space: DeadSpace,
    /// Oldest and newest time of a live document. Times of dead documents may still be included.
    times: Option<(Timestamp, Timestamp)>,
    /// The last compaction took deletions and moves before this row into account.
    applied: u64,
}

impl PartitionState {
    pub(super) fn new(number: u64, first_row: u64) -> Self {
        Self {
            number,
            first_row,
            kept: KeptTable::default(),
            texts_end: 0,
            dead_rows: RowBitmap::default(),
            live: 0,
            erased: 0,
            decisions: 0,
            dead_space: DeadSpace::default(),
            times: None,
            applied: 0,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of its first row.
    pub(super) fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Returns the row before which its last compaction took deletions and moves into account.
    pub(super) fn applied_row(&self) -> u64 {
        self.applied
    }

    /// Returns the number of live documents.
    pub(super) fn live_count(&self) -> u64 {
        self.live
    }

    /// Returns the number of erased rows.
    pub(super) fn erased_count(&self) -> u64 {
        self.erased
    }

    /// Returns the number of rows with a decision.
    pub(super) fn decision_count(&self) -> u64 {
        self.decisions
    }

    /// Counts a row with a decision.
    pub(super) fn count_decision(&mut self) {
        self.decisions += 1;
    }

    pub(super) fn kept(&self) -> &KeptTable {
        &self.kept
    }

    pub(super) fn kept_mut(&mut self) -> &mut KeptTable {
        &mut self.kept
    }

    /// Counts a live document.
    pub(super) fn count_document(&mut self, time: Timestamp) {
        self.live += 1;
        self.note_times(time, time);
    }

    pub(super) fn is_dead_row(&self, row: u64) -> bool {
        self.dead_rows.contains_row(row - self.first_row)
    }

    /// Notes that the document of a row is deleted or moved, unless that was noted before.
    pub(super) fn mark_dead(&mut self, row: u64, space: DeadSpace) {
        if self.dead_rows.insert_row(row - self.first_row) {
            self.live = self.live.saturating_sub(1);
            self.dead_space.add_space(space);
        }
    }

    /// Counts the row of a deletion in this partition, which is dead from its beginning.
    pub(super) fn count_dead_deletion(&mut self) {
        self.dead_space.bytes += DELETION_BYTES;
    }

    /// Notes rows of which compaction left nothing.
    pub(super) fn mark_erased(&mut self, row: u64, count: u64) {
        self.dead_rows.insert_all(row - self.first_row, count);
        self.erased += count;
    }

    /// Returns all dead and erased rows.
    pub(super) fn dead_rows(&self) -> &RowBitmap {
        &self.dead_rows
    }

    pub(super) fn dead_space(&self) -> DeadSpace {
        self.dead_space
    }

    /// Forgets the dead space, because a compaction begins, and returns it.
    pub(super) fn take_dead_space(&mut self) -> DeadSpace {
        std::mem::take(&mut self.dead_space)
    }

    /// Counts dead space again, because a compaction was given up.
    pub(super) fn restore_dead_space(&mut self, space: DeadSpace) {
        self.dead_space.add_space(space);
    }

    /// Returns the place of the next record, in units.
    pub(super) fn texts_end(&self) -> u64 {
        self.texts_end
    }

    /// Returns `true` if records of so many units still have places.
    pub(super) fn has_room_for(&self, units: u64) -> bool {
        self.texts_end + units <= u64::from(u32::MAX)
    }

    /// Gives the next record its place.
    pub(super) fn reserve_place(&mut self, units: u64) -> RecordPlace {
        let at = self.texts_end as u32;
        self.texts_end += units;
        RecordPlace {
            at,
            units: units as u32,
        }
    }

    /// Notes a record that is on disk.
    pub(super) fn include_place(&mut self, place: RecordPlace) {
        self.texts_end = self.texts_end.max(place.end_unit());
    }

    /// Takes over the state of a compacted partition that is about to be read.
    pub(super) fn begin_compacted(&mut self, base: u64, applied: u64) {
        self.texts_end = base;
        self.applied = applied;
    }

    /// Takes over the result of a compaction; returns the places before. `places` are those of the kept
    /// documents on disk; the others keep their places.
    pub(super) fn end_compaction(
        &mut self,
        places: ChunkedVec<u32>,
        erased: u64,
        applied: u64,
    ) -> ChunkedVec<u32> {
        self.erased = erased;
        self.applied = applied;
        self.kept.replace_places(places)
    }

    /// Returns the oldest and the newest time of a document.
    pub(super) fn times(&self) -> Option<(Timestamp, Timestamp)> {
        self.times
    }

    /// Forgets the times and returns them.
    pub(super) fn take_times(&mut self) -> Option<(Timestamp, Timestamp)> {
        self.times.take()
    }

    pub(super) fn note_times(&mut self, oldest: Timestamp, newest: Timestamp) {
        let (before, after) = self.times.unwrap_or((oldest, newest));
        self.times = Some((before.min(oldest), after.max(newest)));
    }

    /// Returns bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.kept.memory_bytes() + self.dead_rows.memory_bytes()
    }
}

/// Place of the record of an erased document.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// The kept documents of a partition, by index. Both lists have the same length.
#[derive(Debug, Default)]
pub(crate) struct KeptTable {
    /// Places of their records, in units, or [`NO_PLACE`]. Compaction replaces the list.
    places: ChunkedVec<u32>,
    /// Lower half of the number of the last row in each one's cluster. It is the document's own sequence
    /// number if it has no duplicates, because no document is a duplicate of itself.
    last_rows: ChunkedVec<u32>,
}

impl KeptTable {
    pub(super) fn len(&self) -> u32 {
        self.places.len() as u32
    }

    /// Adds a document. `last` is the number of the last row in its cluster.
    pub(super) fn push_document(&mut self, place: RecordPlace, last: u64) {
        self.places.push(place.at);
        self.last_rows.push(last as u32);
    }

    /// Adds the erased document of a row, so that later documents have the right index.
    pub(super) fn push_erased(&mut self, row: u64) {
        self.places.push(NO_PLACE);
        self.last_rows.push(row as u32);
    }

    pub(super) fn record_place(&self, index: u32) -> Option<u32> {
        self.places.get(index as usize).copied()
    }

    /// Returns the lower half of the number of the last row in a document's cluster.
    pub(super) fn last_row(&self, index: u32) -> Option<u32> {
        self.last_rows.get(index as usize).copied()
    }

    pub(super) fn set_last_row(&mut self, index: u32, row: u64) {
        if let Some(last) = self.last_rows.get_mut(index as usize) {
            *last = row as u32;
        }
    }

    /// Replaces the places of the first documents; the others keep theirs. Returns the list before.
    fn replace_places(&mut self, mut places: ChunkedVec<u32>) -> ChunkedVec<u32> {
        for index in places.len()..self.places.len() {
            places.push(self.places.get(index).copied().unwrap_or(NO_PLACE));
        }
        std::mem::replace(&mut self.places, places)
    }

    fn memory_bytes(&self) -> usize {
        self.places.memory_bytes() + self.last_rows.memory_bytes()
    }
}

/// Disk space that dead documents of a partition occupy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeadSpace {
    /// Approximate number of bytes.
    pub(super) bytes: u64,
    /// Wall clock time of the first deletion; `None` if there was none.
    pub(super) since: Option<Timestamp>,
}

impl DeadSpace {
    fn add_space(&mut self, other: Self) {
        self.bytes += other.bytes;
        let both = self.since.into_iter().chain(other.since);
        self.since = both.min();
    }

    /// Returns `true` if there are dead rows on disk.
    pub(super) fn is_any(self) -> bool {
        self.bytes > 0 || self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(bytes: u64, since: i64) -> DeadSpace {
        DeadSpace {
            bytes,
            since: Some(Timestamp(since)),
        }
    }

    #[test]
    fn row_dies_once() {
        let mut partition = PartitionState::new(3, 100);
        partition.count_document(Timestamp(5));
        partition.count_document(Timestamp(1));
        partition.mark_dead(101, space(10, 7));
        partition.mark_dead(101, space(10, 2));
        assert!(partition.is_dead_row(101) && !partition.is_dead_row(100));
        assert_eq!(partition.live_count(), 1);
        let dead = partition.take_dead_space();
        assert_eq!((dead.bytes, dead.since), (10, Some(Timestamp(7))));
        assert!(!partition.dead_space().is_any());
        partition.mark_dead(100, space(1, 9));
        partition.restore_dead_space(dead);
        let dead = partition.dead_space();
        assert_eq!((dead.bytes, dead.since), (11, Some(Timestamp(7))));
        assert_eq!(partition.times(), Some((Timestamp(1), Timestamp(5))));
    }

    /// Documents that are written while the compaction runs keep their places.
    #[test]
    fn compaction_replaces_the_places_on_disk() {
        let mut partition = PartitionState::new(1, 1);
        for row in 1..=3 {
            let place = partition.reserve_place(10);
            partition.kept_mut().push_document(place, row);
        }
        let mut places = ChunkedVec::default();
        places.push(NO_PLACE);
        places.push(4);
        let before = partition.end_compaction(places, 1, 3);
        assert_eq!(before.len(), 3);
        let places = [0, 1, 2, 3].map(|index| partition.kept().record_place(index));
        assert_eq!(places, [Some(NO_PLACE), Some(4), Some(20), None]);
        assert_eq!((partition.erased_count(), partition.applied_row()), (1, 3));
    }
}
