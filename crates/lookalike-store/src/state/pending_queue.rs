//! Rows and records that are not on disk yet, in batches.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::files::log_progress::LogProgress;
use crate::files::partition_header::PartitionHeader;
use crate::files::records::{StoredRecord, record_length};
use crate::files::rows::{EncodedRows, PLACE_UNIT_BYTES, PartitionRow};
use crate::files::sketches::SketchEntries;

/// Rows and records of one partition that are not on disk yet.
#[derive(Debug)]
pub(crate) struct PendingBatch {
    /// Number of the partition.
    partition: u64,
    /// Description of the partition, if it begins with this batch.
    pub(crate) begins: Option<PartitionHeader>,
    /// Progress in a shared log with which the partition begins, if the collection follows one.
    pub(crate) initial_progress: Option<LogProgress>,
    /// Progress once the rows are on disk.
    pub(crate) progress: Option<LogProgress>,
    pub(crate) first_row: u64,
    pub(crate) rows: EncodedRows,
    /// Place of the first record, in units.
    pub(crate) texts_place: u64,
    pub(crate) texts: Vec<u8>,
    /// Sketches of kept documents; `None` if the collection has no sketches.
    pub(crate) sketches: Option<SketchEntries>,
}

impl PendingBatch {
    fn new(partition: u64, first_row: u64, texts_place: u64, has_sketches: bool) -> Self {
        Self {
            partition,
            begins: None,
            initial_progress: None,
            progress: None,
            first_row,
            rows: EncodedRows::default(),
            texts_place,
            texts: Vec::new(),
            sketches: has_sketches.then(SketchEntries::default),
        }
    }

    /// Returns an empty batch that continues this one.
    fn following_batch(&self) -> Self {
        Self::new(
            self.partition,
            self.next_row(),
            self.texts_end(),
            self.sketches.is_some(),
        )
    }

    fn next_row(&self) -> u64 {
        self.first_row + self.rows.len() as u64
    }

    fn is_empty(&self) -> bool {
        self.rows.len() == 0 && self.begins.is_none() && self.progress.is_none()
    }

    /// Returns the place after the last record, in units.
    pub(crate) fn texts_end(&self) -> u64 {
        self.texts_place + self.texts.len() as u64 / PLACE_UNIT_BYTES
    }

    fn has_record(&self, partition: u64, place: u64) -> bool {
        self.partition == partition && place >= self.texts_place
    }

    /// Returns the texts from a record on.
    fn texts_from(&self, place: u64) -> &[u8] {
        let at = (place - self.texts_place) * PLACE_UNIT_BYTES;
        self.texts.get(at as usize..).unwrap_or_default()
    }

    fn memory_bytes(&self) -> usize {
        let sketches = self.sketches.as_ref().map_or(0, SketchEntries::byte_count);
        self.rows.byte_count() + self.texts.len() + sketches
    }
}

/// Disk operations that are due, in this order.
#[derive(Debug, Default)]
pub(crate) struct PendingWork {
    pub(crate) batches: Vec<Arc<PendingBatch>>,
    /// Partitions past the window.
    pub(crate) expired: Vec<u64>,
    /// Number of the last row that is on disk once the work is done.
    pub(crate) last: u64,
}

/// Everything that waits for the disk. Rows and records of the batches follow one another without gaps.
#[derive(Debug)]
pub(crate) struct PendingQueue {
    has_sketches: bool,
    /// Batch being filled; `None` before the first partition.
    open: Option<PendingBatch>,
    /// Batches that wait to be written or are being written.
    sealed: VecDeque<Arc<PendingBatch>>,
    /// Partitions whose files are to be removed.
    expired: Vec<u64>,
    /// Progress in a shared log, which each batch takes along; `None` if the collection follows none.
    progress: Option<LogProgress>,
    /// `true` if the progress must reach the disk even if no row does.
    is_progress_due: bool,
}

impl PendingQueue {
    /// Creates an empty queue; with `has_sketches`, sketches of kept documents are written beside them.
    pub(super) fn new(has_sketches: bool) -> Self {
        Self {
            has_sketches,
            open: None,
            sealed: VecDeque::new(),
            expired: Vec::new(),
            progress: None,
            is_progress_due: false,
        }
    }

    /// Follows a shared log from now on, after this progress.
    pub(super) fn follow_log(&mut self, progress: LogProgress) {
        self.progress = Some(progress);
    }

    /// Returns the progress in a shared log; `None` if the collection follows none.
    pub(super) fn progress(&self) -> Option<&LogProgress> {
        self.progress.as_ref()
    }

    /// Lets the progress reach the disk with the next commit, even if no row does.
    pub(super) fn set_progress_due(&mut self) {
        self.is_progress_due = self.progress.is_some();
    }

    /// Returns the progress in a shared log, to be changed. It reaches the disk with the next rows.
    pub(super) fn progress_mut(&mut self) -> Option<&mut LogProgress> {
        self.progress.as_mut()
    }

    pub(super) fn has_sketches(&self) -> bool {
        self.has_sketches
    }

    /// Continues a partition that is on disk.
    pub(super) fn continue_partition(&mut self, partition: u64, next_row: u64, texts_end: u64) {
        let batch = PendingBatch::new(partition, next_row, texts_end, self.has_sketches);
        self.open = Some(batch);
    }

    /// Begins a new partition.
    pub(super) fn begin_partition(&mut self, header: PartitionHeader) {
        self.seal_batch();
        self.open = Some(PendingBatch {
            begins: Some(header),
            initial_progress: self.progress,
            ..PendingBatch::new(header.number, header.first, 0, self.has_sketches)
        });
    }

    fn seal_batch(&mut self) {
        if let Some(open) = &mut self.open
            && (std::mem::take(&mut self.is_progress_due) || !open.is_empty())
        {
            open.progress = self.progress;
        }
        let batch = self.open.take().filter(|batch| !batch.is_empty());
        self.sealed.extend(batch.map(Arc::new));
    }

    /// Adds a row; returns `false` if there is no partition.
    pub(super) fn push_row(&mut self, row: &PartitionRow) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        if let Some(progress) = &mut self.progress {
            progress.digest_row(open.next_row(), row);
        }
        open.rows.push_row(row);
        true
    }

    pub(super) fn push_record(&mut self, record: &[u8]) {
        if let Some(open) = &mut self.open {
            open.texts.extend_from_slice(record);
        }
    }

    /// Adds the sketches of a kept document with this content hash, unless the collection has no sketches.
    pub(super) fn push_sketches(&mut self, content_hash: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let sketches = self.open.as_mut().and_then(|open| open.sketches.as_mut());
        if let Some(sketches) = sketches {
            sketches.push_entry(content_hash, write);
        }
    }

    /// Notes that the files of a partition are to be removed.
    pub(super) fn expire_partition(&mut self, number: u64) {
        self.expired.push(number);
        // A collection that is opened without these files must know that it has come as far as their expiry, because
        // earlier entries of a shared log found them.
        self.is_progress_due = self.progress.is_some();
    }

    /// Returns `true` if something waits for the disk.
    pub(super) fn has_work(&self) -> bool {
        let has_rows = self.open.as_ref().is_some_and(|open| !open.is_empty());
        has_rows || self.is_progress_due || !self.sealed.is_empty() || !self.expired.is_empty()
    }

    /// Returns everything that waits to be written. `last` is the number of the last row.
    pub(super) fn take_work(&mut self, last: u64) -> PendingWork {
        let following = self.open.as_ref().map(PendingBatch::following_batch);
        self.seal_batch();
        self.open = following;
        PendingWork {
            batches: self.sealed.iter().cloned().collect(),
            expired: std::mem::take(&mut self.expired),
            last,
        }
    }

    /// Drops batches that are on disk now.
    pub(super) fn drop_written(&mut self, work: &PendingWork) {
        self.sealed.drain(..work.batches.len());
    }

    fn batches(&self) -> impl DoubleEndedIterator<Item = &PendingBatch> {
        self.sealed.iter().map(|batch| &**batch).chain(&self.open)
    }

    /// Returns a row, if it waits.
    pub(super) fn read_row(&self, number: u64) -> Option<PartitionRow> {
        let batch = self.find_batch(number)?;
        batch
            .rows
            .decode_row_at((number - batch.first_row) as usize)
    }

    /// Returns `true` if a row waits.
    pub(super) fn has_row(&self, number: u64) -> bool {
        self.find_batch(number).is_some()
    }

    fn find_batch(&self, number: u64) -> Option<&PendingBatch> {
        self.batches()
            .find(|batch| (batch.first_row..batch.next_row()).contains(&number))
    }

    /// Returns the record at a place, if it waits.
    pub(super) fn find_record(
        &self,
        partition: u64,
        place: u32,
    ) -> Option<Result<StoredRecord<'_>>> {
        let texts = self.find_texts(partition, place)?;
        let damaged = || Error::damaged_file("memory", format!("record {place}"));
        Some(StoredRecord::parse_record(texts).ok_or_else(damaged))
    }

    /// Returns the bytes of the record at a place, if it waits. They are not verified.
    pub(super) fn find_record_bytes(&self, partition: u64, place: u32) -> Option<Result<&[u8]>> {
        let texts = self.find_texts(partition, place)?;
        let damaged = || Error::damaged_file("memory", format!("record {place}"));
        let record = record_length(texts).and_then(|length| texts.get(..length));
        Some(record.ok_or_else(damaged))
    }

    /// Returns the texts from the record at a place on, if it waits.
    fn find_texts(&self, partition: u64, place: u32) -> Option<&[u8]> {
        let place = u64::from(place);
        let mut newest_first = self.batches().rev();
        let batch = newest_first.find(|batch| batch.has_record(partition, place))?;
        Some(batch.texts_from(place))
    }

    /// Returns bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.batches().map(PendingBatch::memory_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use lookalike::stream::Timestamp;

    use super::*;
    use crate::files::records::encode_record;

    fn erased(rows: u64) -> PartitionRow {
        PartitionRow::Erased { rows, kept: 0 }
    }

    /// A waiting row is read from its batch until it is written, whatever comes after it.
    #[test]
    fn batches_follow_one_another() {
        let mut queue = PendingQueue::new(false);
        assert!(!queue.push_row(&erased(1)));
        queue.continue_partition(2, 10, 100);
        let record = encode_record("a", "text");
        let units = record.len() as u64 / PLACE_UNIT_BYTES;
        for _ in 0..2 {
            assert!(queue.push_row(&erased(1)));
            queue.push_record(&record);
        }
        let work = queue.take_work(11);
        assert!(queue.push_row(&erased(2)));
        queue.push_record(&encode_record("b", "text"));
        queue.begin_partition(PartitionHeader {
            seal: 0,
            number: 3,
            first: 13,
            began: Timestamp(0),
            compacted: None,
        });
        assert!(queue.push_row(&erased(3)));
        let found = |queue: &PendingQueue, partition, place| {
            let record = queue.find_record(partition, place)?;
            record.ok().map(|record| record.id.to_owned())
        };
        let second = (100 + 2 * units) as u32;
        assert_eq!(found(&queue, 2, 100).as_deref(), Some("a"));
        assert_eq!(found(&queue, 2, second).as_deref(), Some("b"));
        assert_eq!(queue.read_row(13), Some(erased(3)));
        queue.drop_written(&work);
        assert!(queue.read_row(11).is_none() && found(&queue, 2, 100).is_none());
        assert_eq!(queue.read_row(12), Some(erased(2)));
        let work = queue.take_work(13);
        let firsts = work.batches.iter().map(|batch| batch.first_row);
        assert!(firsts.eq([12, 13]));
        assert_eq!(work.batches[0].texts_place, u64::from(second));
    }
}
