//! Partitions begin and expire as the window slides.

use lookalike::stream::{ArrivalTime, Timestamp};

use super::CollectionState;
use super::partition_state::PartitionState;
use crate::document::{KnownDocument, PendingInsert};
use crate::error::{Error, ErrorKind, Result};
use crate::files::rows::PLACE_UNIT_BYTES;

/// Units of records for which a partition must have room besides those of the next document, because that
/// can move another one.
const SPARE_UNITS: u64 = 1 << 24;

impl CollectionState {
    /// Returns `true` if inserting these documents expires a partition.
    pub(crate) fn expires_partition(&self, documents: &[PendingInsert], now: Timestamp) -> bool {
        let stated = documents.iter().map(|document| document.time);
        let arrivals = self.matcher.resolve_arrivals(stated, now);
        arrivals
            .iter()
            .any(|arrival| self.matcher.has_expired(arrival))
    }

    /// Begins a new partition if it is due, and expires partitions past the window.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if the window has as many rows as it can, and none of them has expired.
    pub(super) fn make_room(
        &mut self,
        document: &PendingInsert,
        arrival: &ArrivalTime,
    ) -> Result<()> {
        self.check_row_limit(arrival)?;
        if self.begins_partition(document, arrival) {
            self.begin_next_partition(arrival)?;
        }
        self.expire_passed(arrival);
        Ok(())
    }

    /// Returns `true` if a document begins a new partition when it is stored.
    pub(super) fn begins_partition(&self, document: &PendingInsert, arrival: &ArrivalTime) -> bool {
        self.begins_with_units(document.record.len() as u64 / PLACE_UNIT_BYTES, arrival)
    }

    /// Returns `true` if records of so many units begin a new partition.
    fn begins_with_units(&self, units: u64, arrival: &ArrivalTime) -> bool {
        // Twice the size, because a document may be moved as well as stored.
        let units = 2 * units + SPARE_UNITS;
        let newest = self.rows.partitions.newest();
        let has_room = newest.is_none_or(|newest| newest.has_room_for(units));
        self.matcher.is_partition_due(arrival) || !has_room
    }

    /// Begins a new partition if it is due, and expires partitions past the window, by the clock as it is. Then rows and
    /// records of so many units follow in one partition.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] if the window has as many rows as it can.
    pub(super) fn make_room_for_rows(&mut self, units: u64, now: Timestamp) -> Result<()> {
        let arrival = self.arrival_at_clock(now);
        self.check_row_limit(&arrival)?;
        if self.begins_with_units(units, &arrival) {
            self.begin_next_partition(&arrival)?;
        }
        self.expire_passed(&arrival);
        Ok(())
    }

    fn check_row_limit(&self, arrival: &ArrivalTime) -> Result<()> {
        let partitions = &self.rows.partitions;
        if partitions.is_full() && !self.matcher.has_expired(arrival) {
            let what = format!("the window has {} rows, the limit", partitions.max_rows);
            return Err(Error::new(ErrorKind::Full, what));
        }
        Ok(())
    }

    fn begin_next_partition(&mut self, arrival: &ArrivalTime) -> Result<()> {
        let newest = self.rows.partitions.newest();
        let number = newest.map_or(1, |newest| newest.number() + 1);
        self.begin_partition(number, arrival.clock)
    }

    /// Returns the arrival of a document with the newest time so far, which does not move the clock.
    pub(super) fn arrival_at_clock(&self, now: Timestamp) -> ArrivalTime {
        let newest = self.matcher.newest_time();
        self.matcher.resolve_arrival(Some(newest), now)
    }

    fn begin_partition(&mut self, number: u64, began: Timestamp) -> Result<()> {
        self.matcher.begin_partition(number, began)?;
        self.note_partitions();
        self.rows.begin_partition(number, began);
        Ok(())
    }

    /// Expires partitions past the window.
    fn expire_passed(&mut self, arrival: &ArrivalTime) {
        while let Some(number) = self.matcher.expired_partition(arrival) {
            self.drop_oldest_partition(number);
        }
    }

    /// Drops the oldest partition, which has this number.
    pub(super) fn drop_oldest_partition(&mut self, number: u64) {
        self.matcher.drop_partition();
        self.rows.expire_oldest(number);
        self.index.forget_moves_before(self.first_live_row());
        self.note_partitions();
        self.carry_decisions();
    }

    /// Expires partitions past the window by the clock as it is, without a document.
    pub(super) fn expire_at_clock(&mut self, now: Timestamp) {
        let arrival = self.arrival_at_clock(now);
        self.expire_passed(&arrival);
    }

    /// Begins a new partition if it is due, and expires partitions past the window, by the wall clock alone.
    /// Returns the number of expired partitions.
    pub(crate) fn expire_partitions(&mut self, now: Timestamp) -> Result<u64> {
        let arrival = self.matcher.resolve_arrival(None, now);
        if let Some(number) = self.next_partition(&arrival) {
            self.begin_partition(number, arrival.clock)?;
        }
        let before = self.partition_count();
        self.expire_passed(&arrival);
        Ok(before - self.partition_count())
    }

    /// Returns `true` if [`expire_partitions`](Self::expire_partitions) has something to do.
    pub(crate) fn can_expire(&self, now: Timestamp) -> bool {
        let arrival = self.matcher.resolve_arrival(None, now);
        self.wall_clock_window().is_some()
            && (self.next_partition(&arrival).is_some()
                || self.matcher.expired_partition(&arrival).is_some())
    }

    /// Returns the number of the next partition, if it is due and the newest one has rows.
    fn next_partition(&self, arrival: &ArrivalTime) -> Option<u64> {
        let partitions = &self.rows.partitions;
        let newest = partitions
            .newest()
            .filter(|newest| newest.first_row() < partitions.next_row())?;
        let is_due = self.matcher.is_partition_due(arrival);
        is_due.then_some(newest.number() + 1)
    }

    /// Returns a partition with documents that left the window by the wall clock long before the rest of the
    /// partition does, because they arrived late. Returns `None` if the window does not follow the wall
    /// clock.
    pub(crate) fn late_partition(&self, now: Timestamp) -> Option<u64> {
        let window = self.wall_clock_window()?;
        let clock = self.matcher.resolve_arrival(None, now).clock;
        // A partition lasts for about a 24th of the window.
        let duration = i64::try_from(window.width().as_micros() / 24).unwrap_or(i64::MAX);
        let has_late = |partition: &&PartitionState| {
            partition.times().is_some_and(|(oldest, newest)| {
                let overdue = Timestamp(oldest.0.saturating_add(duration / 2));
                newest.0.saturating_sub(oldest.0) > duration && window.has_passed(overdue, clock)
            })
        };
        let late = self.rows.partitions.iter().find(has_late);
        late.map(PartitionState::number)
    }

    /// Forgets the times of a partition's documents, so that they can be collected again, and returns them.
    pub(crate) fn take_times(&mut self, number: u64) -> Option<(Timestamp, Timestamp)> {
        let partition = self.rows.partitions.find_by_number_mut(number)?;
        partition.take_times()
    }

    /// Adds the oldest and the newest time of some documents of a partition.
    pub(crate) fn note_times(&mut self, number: u64, oldest: Timestamp, newest: Timestamp) {
        if let Some(partition) = self.rows.partitions.find_by_number_mut(number) {
            partition.note_times(oldest, newest);
        }
    }

    /// Removes a document that has left the window before its partition expires. Nothing is written, because
    /// the clock leads to the same result whenever the collection is opened.
    pub(crate) fn drop_expired(&mut self, known: &KnownDocument) {
        if self.is_dead_row(known.number) {
            return;
        }
        self.forget_document(known);
        let bytes = known.document.bytes_on_disk();
        self.rows.partitions.note_expiry(known.number, bytes);
    }
}
