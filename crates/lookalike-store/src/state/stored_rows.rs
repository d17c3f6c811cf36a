//! The rows and records of a collection, whether they are on disk or wait for it.

use std::sync::Arc;

use lookalike::stream::{DocumentSlot, StreamTexts, Timestamp};

use super::chunked_vec::ChunkedVec;
use super::open_record::{OpenRecord, OpenText};
use super::partition_table::PartitionTable;
use super::pending_queue::{PendingQueue, PendingWork};
use crate::document::KnownDocument;
use crate::error::{Error, Result};
use crate::files::PAGE_CACHE_BYTES;
use crate::files::file_names::FileNames;
use crate::files::partition::PartitionFiles;
use crate::files::partition_header::PartitionHeader;
use crate::files::partition_set::PartitionSet;
use crate::files::records::{StoredRecord, text_length};
use crate::files::rows::{PLACE_UNIT_BYTES, PartitionRow, RecordPlace, RowVerdict};

/// Rows and records. Every row of the window is in the queue or on disk, and never in neither: it leaves the
/// queue only once it is on disk.
#[derive(Debug)]
pub(crate) struct StoredRows {
    pub(super) partitions: PartitionTable,
    pub(super) pending: PendingQueue,
    /// Partitions that are on disk.
    on_disk: PartitionSet,
    /// Checksum of the manifest.
    seal: u32,
}

impl StoredRows {
    pub(super) fn new(seal: u32, has_sketches: bool) -> Self {
        Self {
            partitions: PartitionTable::default(),
            pending: PendingQueue::new(has_sketches),
            on_disk: PartitionSet::default(),
            seal,
        }
    }

    pub(super) fn seal(&self) -> u32 {
        self.seal
    }

    pub(super) fn on_disk(&self) -> &PartitionSet {
        &self.on_disk
    }

    /// Begins a new partition with the next row.
    pub(super) fn begin_partition(&mut self, number: u64, began: Timestamp) {
        self.pending.begin_partition(PartitionHeader {
            seal: self.seal,
            number,
            first: self.partitions.next_row(),
            began,
            compacted: None,
        });
        self.partitions.push_newest(number);
    }

    /// Adds a partition that is on disk.
    ///
    /// # Errors
    /// If it does not begin with the next row.
    pub(super) fn follow_with(&mut self, partition: Arc<PartitionFiles>) -> Result<()> {
        let about = partition.about;
        let expected = self.partitions.next_row();
        if !self.partitions.push_from_disk(about.number, about.first) {
            let what = format!("it begins with row {}, not {expected}", about.first);
            return Err(Error::damaged_file(&partition.rows_name(), what));
        }
        if let (Some(newest), Some(compacted)) = (self.partitions.newest_mut(), about.compacted) {
            newest.begin_compacted(compacted.base, compacted.applied);
        }
        self.on_disk.push_newest(partition);
        Ok(())
    }

    /// Makes the queue continue the newest partition on disk.
    pub(super) fn continue_newest(&mut self) {
        if let Some(newest) = self.partitions.newest() {
            let next_row = self.partitions.next_row();
            self.pending
                .continue_partition(newest.number(), next_row, newest.texts_end());
        }
    }

    /// Removes the oldest partition, which has expired.
    pub(super) fn expire_oldest(&mut self, number: u64) {
        self.partitions.remove_oldest();
        self.on_disk.remove_up_to(number);
        self.pending.expire_partition(number);
    }

    /// Adds a row, which is written with the next batch.
    pub(super) fn append_row(&mut self, row: &PartitionRow) {
        if self.pending.push_row(row) {
            self.partitions.advance_rows(1);
        }
    }

    /// Adds a record, which is written with the next batch, and returns its place.
    pub(super) fn append_record(&mut self, record: &[u8]) -> RecordPlace {
        let units = record.len() as u64 / PLACE_UNIT_BYTES;
        self.pending.push_record(record);
        let newest = self.partitions.newest_mut();
        let nowhere = RecordPlace {
            at: 0,
            units: units as u32,
        };
        newest.map_or(nowhere, |newest| newest.reserve_place(units))
    }

    /// Adds the kept document `seq` to the newest partition. `last` is the number of its last duplicate, or
    /// 0.
    pub(super) fn append_kept(&mut self, place: RecordPlace, seq: u64, last: u64) {
        let last = if last == 0 { seq } else { last };
        if let Some(newest) = self.partitions.newest_mut() {
            newest.kept_mut().push_document(place, last);
        }
    }

    /// Returns everything that waits to be written.
    pub(super) fn take_work(&mut self) -> PendingWork {
        self.pending.take_work(self.partitions.last_row())
    }

    /// Notes that work is on disk, with the partitions that began.
    pub(super) fn note_written(&mut self, work: &PendingWork, begun: Vec<Arc<PartitionFiles>>) {
        self.pending.drop_written(work);
        let oldest = self.partitions.oldest();
        let oldest = oldest.map_or(u64::MAX, |partition| partition.number());
        for partition in begun {
            // A partition can expire before it is on disk.
            if partition.about.number >= oldest {
                self.on_disk.push_newest(partition);
            }
        }
    }

    /// Replaces a partition by its compacted version; returns the old one and its list of places.
    pub(super) fn replace_partition(
        &mut self,
        partition: Arc<PartitionFiles>,
        places: ChunkedVec<u32>,
        erased: u64,
    ) -> Option<(Arc<PartitionFiles>, ChunkedVec<u32>)> {
        let about = partition.about;
        self.on_disk.find_by_number(about.number)?;
        let in_memory = self.partitions.find_by_number_mut(about.number)?;
        let applied = about.compacted.map_or(0, |compacted| compacted.applied);
        let places = in_memory.end_compaction(places, erased, applied);
        let before = self.on_disk.replace_partition(partition)?;
        Some((before, places))
    }

    /// Returns a row by its number.
    pub(super) fn read_row(&self, number: u64) -> Result<PartitionRow> {
        if let Some(row) = self.pending.read_row(number) {
            return Ok(row);
        }
        let missing = || Error::damaged_file("rows", format!("no row {number}"));
        let partition = self.on_disk.find_by_row(number).ok_or_else(missing)?;
        partition.read_row(number)
    }

    /// Returns the rows of the block on disk that has a row, with their numbers. Returns none if the row waits for
    /// the disk, or if the block cannot be decoded: [`read_row`](Self::read_row) then has the row, or the error.
    pub(super) fn read_block(&self, number: u64) -> Result<Vec<(u64, PartitionRow)>> {
        let partition = self.on_disk.find_by_row(number);
        match partition.filter(|_| !self.pending.has_row(number)) {
            Some(partition) => partition.read_block_of(number),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the document whose row has this number.
    pub(super) fn find_by_row(&self, number: u64) -> Result<Option<KnownDocument>> {
        let document = self.read_row(number)?.into_document(number);
        Ok(document.map(|(document, seq)| KnownDocument {
            number,
            seq,
            document,
        }))
    }

    /// Returns the slot of a document, if it is a kept one.
    pub(super) fn document_slot(&self, known: &KnownDocument) -> Option<DocumentSlot> {
        let RowVerdict::Kept { index } = known.document.verdict else {
            return None;
        };
        let partition = self.partitions.find_by_row(known.number)?;
        Some(DocumentSlot {
            partition: partition.number(),
            index,
        })
    }

    fn partition_files(&self, number: u64) -> Result<&Arc<PartitionFiles>> {
        let partition = self.on_disk.find_by_number(number);
        let missing = || Error::damaged_file("rows", format!("no partition {number:x}"));
        partition.ok_or_else(missing)
    }

    /// Opens the record of a document.
    pub(super) fn open_record(&self, known: &KnownDocument) -> Result<OpenRecord> {
        let partition = self.partitions.find_by_row(known.number);
        let partition = partition.map_or(0, |partition| partition.number());
        self.open_record_at(partition, known.document.place.at)
    }

    /// Opens the record of a kept document.
    pub(super) fn open_kept_record(&self, slot: DocumentSlot) -> Result<OpenRecord> {
        self.open_record_at(slot.partition, self.kept_place(slot)?)
    }

    fn open_record_at(&self, partition: u64, place: u32) -> Result<OpenRecord> {
        match self.pending.find_record_bytes(partition, place) {
            Some(record) => OpenRecord::from_memory(record?),
            None => OpenRecord::from_file(self.partition_files(partition)?, place),
        }
    }

    /// Calls `visit` with the record at a place in a partition.
    fn visit_record_at<T>(
        &self,
        partition: u64,
        place: u32,
        visit: impl FnOnce(&StoredRecord<'_>) -> T,
    ) -> Result<T> {
        match self.pending.find_record(partition, place) {
            Some(record) => Ok(visit(&record?)),
            None => self.partition_files(partition)?.visit_record(place, visit),
        }
    }

    /// Returns the place of the record of a kept document.
    fn kept_place(&self, slot: DocumentSlot) -> Result<u32> {
        let missing = || {
            let what = format!(
                "no kept document {} in partition {:x}",
                slot.index, slot.partition
            );
            Error::damaged_file("rows", what)
        };
        self.partitions.record_place(slot).ok_or_else(missing)
    }

    /// Calls `visit` with the record at a place in a partition, unless its text has more than `most_text_bytes`
    /// bytes: then the record is not read.
    fn visit_short_record<T>(
        &self,
        partition: u64,
        place: u32,
        most_text_bytes: usize,
        visit: impl FnOnce(&StoredRecord<'_>) -> T,
    ) -> Result<Option<T>> {
        match self.pending.find_record_bytes(partition, place) {
            Some(record) => {
                let bytes = text_length(record?).unwrap_or(0);
                let visit = || self.visit_record_at(partition, place, visit);
                (bytes <= most_text_bytes).then(visit).transpose()
            }
            None => {
                self.partition_files(partition)?
                    .visit_short_record(place, most_text_bytes, visit)
            }
        }
    }

    /// Returns the id of a kept document. `number` is that of its row, which is read instead of a long record.
    pub(super) fn kept_id(&self, slot: DocumentSlot, number: u64) -> Result<String> {
        /// Length of the longest text, in bytes, with which a record is verified sooner than a block of rows.
        const SHORT_TEXT: usize = 16 << 10;
        let read = |record: &StoredRecord<'_>| record.id.to_owned();
        let place = self.kept_place(slot)?;
        if let Some(id) = self.visit_short_record(slot.partition, place, SHORT_TEXT, read)? {
            return Ok(id);
        }
        let document = self.find_by_row(number)?;
        let missing = || Error::damaged_file("rows", format!("no document in row {number}"));
        document.map(|known| known.document.id).ok_or_else(missing)
    }

    /// Calls `visit` with the text of a kept document if it has at most `most_bytes` bytes. Returns `false`
    /// otherwise.
    fn visit_kept_text(
        &self,
        slot: DocumentSlot,
        most_bytes: usize,
        visit: &mut dyn FnMut(&str),
    ) -> Result<bool> {
        let read = |record: &StoredRecord<'_>| record.visit_text(|text| visit(text));
        let place = self.kept_place(slot)?;
        match self.visit_short_record(slot.partition, place, most_bytes, read)? {
            None => Ok(false),
            Some(Some(())) => Ok(true),
            Some(None) => {
                let what = format!("the text of kept document {}", slot.index);
                Err(self.damaged_texts(slot.partition, what))
            }
        }
    }

    /// Returns the length of the text of a document in bytes, as its record states it.
    pub(super) fn stored_text_bytes(&self, known: &KnownDocument) -> Result<usize> {
        let partition = self.partitions.find_by_row(known.number);
        let partition = partition.map_or(0, |partition| partition.number());
        let place = known.document.place.at;
        match self.pending.find_record_bytes(partition, place) {
            Some(record) => {
                let damaged =
                    || self.damaged_texts(partition, format!("the text at place {place}"));
                text_length(record?).ok_or_else(damaged)
            }
            None => self.partition_files(partition)?.text_length(place),
        }
    }

    /// Opens the text of a document.
    pub(super) fn open_text(&self, known: &KnownDocument) -> Result<OpenText> {
        /// Length of the longest text, in bytes, that is read at once.
        const SHORT_TEXT: usize = 64 << 10;
        let partition = self.partitions.find_by_row(known.number);
        let partition = partition.map_or(0, |partition| partition.number());
        let place = known.document.place.at;
        let read = |record: &StoredRecord<'_>| record.visit_text(str::to_owned);
        match self.visit_short_record(partition, place, SHORT_TEXT, read)? {
            None => self.open_record(known).map(OpenText::NotLoaded),
            Some(Some(text)) => Ok(OpenText::Loaded(text)),
            Some(None) => Err(self.damaged_texts(partition, format!("the text at place {place}"))),
        }
    }

    fn damaged_texts(&self, partition: u64, what: String) -> Error {
        let files = self.on_disk.find_by_number(partition);
        let never_compacted = FileNames {
            number: partition,
            generation: 0,
        };
        let names = files.map_or(never_compacted, |files| files.about.file_names());
        Error::damaged_file(&names.texts_file(), what)
    }

    /// Returns an upper bound of the page caches of the databases, in bytes.
    pub(super) fn page_bytes(&self) -> u64 {
        (self.on_disk.len() * PAGE_CACHE_BYTES) as u64
    }
}

impl StreamTexts for StoredRows {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> lookalike::Result<()> {
        self.visit_short_text(slot, usize::MAX, visit).map(drop)
    }

    fn visit_short_text(
        &self,
        slot: DocumentSlot,
        most_bytes: usize,
        visit: &mut dyn FnMut(&str),
    ) -> lookalike::Result<bool> {
        self.visit_kept_text(slot, most_bytes, visit)
            .map_err(lookalike::Error::text_error)
    }
}
