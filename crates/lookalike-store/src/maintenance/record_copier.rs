//! Copies records from one file of texts to another, in pieces.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::compaction::PIECE;
use crate::error::{Error, Result};
use crate::files::partition::PartitionFiles;
use crate::files::rows::PLACE_UNIT_BYTES;

/// Bytes of texts that may wait to be written to the disk, so that commits of others do not wait for many.
const MOST_UNSYNCED_BYTES: u64 = PIECE as u64;

/// Records on their way from one partition to another, where they follow one another without gaps.
pub(super) struct RecordCopier {
    from: Arc<PartitionFiles>,
    to: Arc<PartitionFiles>,
    /// Records that are not copied yet, by their place before and their units.
    queue: VecDeque<(u64, u64)>,
    /// New place of the first queued record, in units.
    next_place: u64,
    /// Place after the last queued record, in units.
    end: u64,
    /// Bytes of the queued records.
    waiting_bytes: u64,
    /// Bytes that are copied and not synced.
    unsynced_bytes: u64,
}

impl RecordCopier {
    /// Starts with the first record at the place `base`.
    pub(super) fn new(from: Arc<PartitionFiles>, to: Arc<PartitionFiles>, base: u64) -> Self {
        Self {
            from,
            to,
            queue: VecDeque::new(),
            next_place: base,
            end: base,
            waiting_bytes: 0,
            unsynced_bytes: 0,
        }
    }

    /// Returns the place after the last queued record, in units.
    pub(super) fn end_place(&self) -> u64 {
        self.end
    }

    /// Returns the bytes of the records that are not copied yet.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Queues the records at a place.
    pub(super) fn push_records(&mut self, place: u64, units: u64) {
        match self.queue.back_mut() {
            Some((start, length)) if *start + *length == place => *length += units,
            _ => self.queue.push_back((place, units)),
        }
        self.end += units;
        self.waiting_bytes += units * PLACE_UNIT_BYTES;
    }

    /// Copies a piece of the queued records.
    pub(super) fn copy_piece(&mut self) -> Result<()> {
        let piece = self.read_piece()?;
        if piece.is_empty() {
            return Ok(());
        }
        let to = self.to.record_offset(self.next_place)?;
        let written = self.to.texts_file.write_at(&piece, to);
        written.map_err(|error| self.write_error(&error))?;
        self.next_place += piece.len() as u64 / PLACE_UNIT_BYTES;
        self.waiting_bytes -= piece.len() as u64;
        self.unsynced_bytes += piece.len() as u64;
        if self.unsynced_bytes >= MOST_UNSYNCED_BYTES {
            self.sync_copied()
        } else {
            Ok(())
        }
    }

    /// Takes the first records of the queue, up to the length of a piece.
    fn read_piece(&mut self) -> Result<Vec<u8>> {
        let mut piece = vec![0; PIECE.min(self.waiting_bytes as usize)];
        let mut filled = 0;
        while filled < piece.len()
            && let Some((place, units)) = self.queue.front_mut()
        {
            let count = ((*units * PLACE_UNIT_BYTES) as usize).min(piece.len() - filled);
            let at = self.from.record_offset(*place)?;
            let into = &mut piece[filled..filled + count];
            let read = self.from.texts_file.read_exact(into, at);
            read.map_err(|error| Error::disk_error("cannot copy", &self.from.rows_name(), &error))?;
            filled += count;
            let taken = count as u64 / PLACE_UNIT_BYTES;
            (*place, *units) = (*place + taken, *units - taken);
            if *units == 0 {
                self.queue.pop_front();
            }
        }
        piece.truncate(filled);
        Ok(piece)
    }

    fn write_error(&self, error: &io::Error) -> Error {
        Error::disk_error("cannot write", &self.to.rows_name(), error)
    }

    /// Copies all queued records, durably.
    pub(super) fn copy_rest(&mut self) -> Result<()> {
        while self.waiting_bytes > 0 {
            self.copy_piece()?;
        }
        self.sync_copied()
    }

    fn sync_copied(&mut self) -> Result<()> {
        if std::mem::take(&mut self.unsynced_bytes) == 0 {
            return Ok(());
        }
        let synced = self.to.texts_file.sync();
        synced.map_err(|error| Error::disk_error("cannot sync", &self.to.rows_name(), &error))
    }
}
