//! A partition: the rows of a time range in a database, and the records of its documents in a file beside it.
//!
//! The database is the source of truth: a record is valid only if a committed row has its place, and it is on
//! disk before that row. Only the newest partition is written to. Compaction writes the live rows of a
//! partition to files of the next generation, which then replace the old ones.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Durability, ReadOnlyTable, ReadableDatabase, TableDefinition, WriteTransaction};

use super::database::{GuardedDatabase, guard_database, open_or_create_database};
use super::file_names::FileNames;
use super::log_progress::LogProgress;
use super::partition_header::{COMPACTED_VERSION, PartitionHeader, UNCOMPACTED_VERSION};
use super::records::{self, FIRST_READ, StoredRecord};
use super::rows::{EncodedRows, PLACE_UNIT_BYTES, PartitionRow, RecordPlace, open_block};
use super::whole_file::{incomplete_name, publish_file};
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, ErrorKind, Result};

/// Blocks of rows by the number of their first row.
const ROW_BLOCKS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("rows");

/// Description of the partition, under [`DESCRIPTION_KEY`].
const DESCRIPTIONS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("about");
const DESCRIPTION_KEY: &str = "partition";

/// Progress in a shared log, under [`PROGRESS_KEY`]. Collections that follow none do not have the table.
const LOG_PROGRESS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("log");
const PROGRESS_KEY: &str = "progress";

/// An open partition.
#[derive(Debug)]
pub(crate) struct PartitionFiles {
    pub(crate) about: PartitionHeader,
    database: GuardedDatabase,
    pub(crate) rows_file: Arc<dyn DiskFile>,
    pub(crate) texts_file: Arc<dyn DiskFile>,
    /// The last read that the disk refused, until the same read succeeds.
    failed_read: Mutex<Option<FailedRead>>,
}

/// Ends of the append-only files of a partition, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileEnds {
    pub(crate) texts: u64,
    pub(crate) sketches: u64,
}

/// A read that the disk refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailedRead {
    /// The row with a number.
    Row(u64),
    /// The blocks of rows from a number on.
    Blocks(u64),
    /// The record at a place, in units.
    Record(u32),
}

impl PartitionFiles {
    /// Creates a partition, with the progress in a shared log if its collection follows one. The database gets its
    /// final name once it is complete.
    pub(crate) fn create_files(
        disk: &dyn Disk,
        about: PartitionHeader,
        progress: Option<&LogProgress>,
    ) -> Result<Self> {
        let (name, texts_name) = (
            about.file_names().rows_file(),
            about.file_names().texts_file(),
        );
        let refuse = |name, error: io::Error| Error::disk_error("cannot make", name, &error);
        let texts_file = disk.create_file(&texts_name);
        let texts_file = texts_file.map_err(|error| refuse(&texts_name, error))?;
        texts_file
            .sync()
            .map_err(|error| refuse(&texts_name, error))?;
        let rows_file = disk.create_file(&incomplete_name(&name));
        let rows_file = rows_file.map_err(|error| refuse(&name, error))?;
        let database = open_or_create_database(&name, &rows_file)?;
        guard_database(&name, || {
            let mut transaction = database.database()?.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.set_two_phase_commit(true);
            transaction.open_table(ROW_BLOCKS)?;
            transaction
                .open_table(DESCRIPTIONS)?
                .insert(DESCRIPTION_KEY, &*about.encode_header())?;
            put_progress(&transaction, progress)?;
            transaction.commit()?;
            Ok(())
        })?;
        let published = rows_file.sync().and_then(|()| publish_file(disk, &name));
        published.map_err(|error| refuse(&name, error))?;
        Ok(Self {
            about,
            database,
            rows_file,
            texts_file,
            failed_read: Mutex::default(),
        })
    }

    /// Opens a partition of the collection whose manifest has the checksum `seal`.
    pub(crate) fn open_files(disk: &dyn Disk, seal: u32, names: FileNames) -> Result<Self> {
        let name = names.rows_file();
        let opened = |name: &str| {
            disk.open_file(name)
                .map_err(|error| Error::disk_error("cannot open", name, &error))
        };
        let rows_file = opened(&name)?;
        let texts_file = opened(&names.texts_file())?;
        let empty = rows_file.is_empty();
        if empty.map_err(|error| Error::disk_error("cannot read", &name, &error))? {
            return Err(Error::damaged_file(&name, "it is empty"));
        }
        let database = open_or_create_database(&name, &rows_file)?;
        let about = guard_database(&name, || {
            let transaction = database.database()?.begin_read()?;
            let table = transaction.open_table(DESCRIPTIONS)?;
            let about = table.get(DESCRIPTION_KEY)?;
            Ok(about.and_then(|about| PartitionHeader::decode_header(about.value())))
        })?;
        let about = about.ok_or_else(|| {
            Error::damaged_file(
                &name,
                format!(
                    "it is not a partition of version {UNCOMPACTED_VERSION} or {COMPACTED_VERSION}"
                ),
            )
        })?;
        if (about.seal, about.file_names()) != (seal, names) {
            return Err(Error::damaged_file(
                &name,
                format!(
                    "it is partition {:x} of collection {:08x}",
                    about.number, about.seal
                ),
            ));
        }
        Ok(Self {
            about,
            database,
            rows_file,
            texts_file,
            failed_read: Mutex::default(),
        })
    }

    /// Makes the read again that the disk refused last; returns why it still fails, if it does.
    pub(crate) fn retry_failed_read(&self) -> Option<Error> {
        let failed = *self.failed_read();
        let read = match failed? {
            FailedRead::Row(number) => self.try_row(number).map(drop),
            FailedRead::Blocks(from) => self.try_blocks(from, 1).map(drop),
            FailedRead::Record(at) => self.try_record(at, usize::MAX, |_| ()).map(drop),
        };
        let error = read.err().filter(|error| error.kind() == ErrorKind::Disk);
        if error.is_none() {
            let mut noted = self.failed_read();
            // Another read can have failed meanwhile.
            if *noted == failed {
                *noted = None;
            }
        }
        error
    }

    /// Takes note of a read that the disk refused.
    fn note_read<T>(&self, read: Result<T>, what: FailedRead) -> Result<T> {
        if let Err(error) = &read
            && error.kind() == ErrorKind::Disk
        {
            *self.failed_read() = Some(what);
        }
        read
    }

    fn failed_read(&self) -> MutexGuard<'_, Option<FailedRead>> {
        // Every change of it is one assignment.
        self.failed_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rows_name(&self) -> String {
        self.about.file_names().rows_file()
    }

    fn texts_name(&self) -> String {
        self.about.file_names().texts_file()
    }

    /// Returns the bytes of the rows.
    pub(crate) fn bytes_of_rows(&self) -> Result<u64> {
        let length = self.rows_file.len();
        length.map_err(|error| Error::disk_error("cannot read", &self.rows_name(), &error))
    }

    /// Returns the bytes of the rows and the texts.
    pub(crate) fn size_in_bytes(&self) -> Result<u64> {
        let texts = self.texts_file.len();
        let texts =
            texts.map_err(|error| Error::disk_error("cannot read", &self.texts_name(), &error))?;
        Ok(self.bytes_of_rows()? + texts)
    }

    /// Converts a place to an offset in the file of texts, in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if the place is before the first record, because its
    /// record was erased.
    pub(crate) fn record_offset(&self, at: u64) -> Result<u64> {
        let erased = || Error::damaged_file(&self.texts_name(), format!("no record at place {at}"));
        let behind = at
            .checked_sub(self.about.first_place())
            .ok_or_else(erased)?;
        Ok(behind * PLACE_UNIT_BYTES)
    }

    /// Makes records durable, starting at place `at`, and then atomically the rows that refer to them, with the
    /// progress in a shared log that they lead to.
    pub(crate) fn write_rows_and_texts(
        &self,
        rows: &EncodedRows,
        first: u64,
        texts: &[u8],
        at: u64,
        progress: Option<&LogProgress>,
    ) -> Result<()> {
        if !texts.is_empty() {
            let written = self.texts_file.write_at(texts, self.record_offset(at)?);
            written
                .and_then(|()| self.texts_file.sync())
                .map_err(|error| Error::disk_error("cannot write", &self.texts_name(), &error))?;
        }
        self.commit_rows(rows, first, progress)
    }

    /// Makes rows and the progress in a shared log durable, atomically.
    pub(crate) fn commit_rows(
        &self,
        rows: &EncodedRows,
        first: u64,
        progress: Option<&LogProgress>,
    ) -> Result<()> {
        guard_database(&self.rows_name(), || {
            let mut transaction = self.database.database()?.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.set_two_phase_commit(true);
            {
                let mut table = transaction.open_table(ROW_BLOCKS)?;
                for (number, block) in rows.iter_blocks(first) {
                    table.insert(number, &*block)?;
                }
            }
            put_progress(&transaction, progress)?;
            transaction.commit()?;
            Ok(())
        })
    }

    /// Reads the progress in a shared log; `None` if no row was written while the collection followed one.
    ///
    /// # Errors
    /// If it is damaged, or the disk refuses the read.
    pub(crate) fn read_log_progress(&self) -> Result<Option<LogProgress>> {
        let name = self.rows_name();
        let bytes = guard_database(&name, || {
            let transaction = self.database.database()?.begin_read()?;
            let table = match transaction.open_table(LOG_PROGRESS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                opened => opened?,
            };
            let bytes = table.get(PROGRESS_KEY)?;
            Ok(bytes.map(|bytes| bytes.value().to_vec()))
        })?;
        let damaged = || Error::damaged_file(&name, "its position in the shared log");
        let decode = |bytes: Vec<u8>| LogProgress::decode_progress(&bytes).ok_or_else(damaged);
        bytes.map(decode).transpose()
    }

    /// Returns a row by its number.
    pub(crate) fn read_row(&self, number: u64) -> Result<PartitionRow> {
        self.note_read(self.try_row(number), FailedRead::Row(number))
    }

    /// Returns all rows of the block that has a row, with their numbers; none if there is no such block, or it cannot
    /// be decoded.
    ///
    /// # Errors
    /// If the disk refuses the read.
    pub(crate) fn read_block_of(&self, number: u64) -> Result<Vec<(u64, PartitionRow)>> {
        let block = self.note_read(self.find_block(number), FailedRead::Row(number))?;
        let rows = block.and_then(|(first, block)| {
            let rows = self.decode_block(first, &block).ok()?;
            Some((first, rows))
        });
        let (mut next, rows) = rows.unwrap_or_default();
        let rows = rows.into_iter().map(|row| {
            let number = next;
            next = next.saturating_add(row.number_count());
            (number, row)
        });
        Ok(rows.collect())
    }

    /// Reads the block that has a row, if there is one, with the number of its first row.
    fn find_block(&self, number: u64) -> Result<Option<(u64, Vec<u8>)>> {
        guard_database(&self.rows_name(), || {
            let transaction = self.database.database()?.begin_read()?;
            let table: ReadOnlyTable<u64, &[u8]> = transaction.open_table(ROW_BLOCKS)?;
            let block = table.range(..=number)?.next_back().transpose()?;
            Ok(block.map(|(first, block)| (first.value(), block.value().to_vec())))
        })
    }

    fn try_row(&self, number: u64) -> Result<PartitionRow> {
        let name = self.rows_name();
        let missing = || Error::damaged_file(&name, format!("row {number} is missing"));
        let (first, block) = self.find_block(number)?.ok_or_else(missing)?;
        let rows = open_block(first, &block).map_err(|what| Error::damaged_file(&name, what))?;
        let mut next = first;
        for row in rows {
            // A row that stands for erased ones has several numbers.
            let row = match number - next {
                0 => PartitionRow::decode_row(row),
                _ if !PartitionRow::may_stand_for_several(row) => {
                    next += 1;
                    continue;
                }
                _ => PartitionRow::decode_row(row),
            };
            let row = row.ok_or_else(|| {
                Error::damaged_file(&name, format!("row {next} is not well formed"))
            })?;
            next = next.saturating_add(row.number_count());
            if number < next {
                return Ok(row);
            }
        }
        Err(missing())
    }

    /// Returns blocks of about `bytes` bytes in total, starting with the first block at or after
    /// row `from`, with the numbers of their first rows.
    pub(crate) fn blocks_from(&self, from: u64, bytes: usize) -> Result<Vec<(u64, Vec<u8>)>> {
        self.note_read(self.try_blocks(from, bytes), FailedRead::Blocks(from))
    }

    fn try_blocks(&self, from: u64, bytes: usize) -> Result<Vec<(u64, Vec<u8>)>> {
        guard_database(&self.rows_name(), || {
            let transaction = self.database.database()?.begin_read()?;
            let table: ReadOnlyTable<u64, &[u8]> = transaction.open_table(ROW_BLOCKS)?;
            let (mut blocks, mut read) = (Vec::new(), 0);
            for block in table.range(from..)? {
                let (first, block) = block?;
                read += block.value().len();
                blocks.push((first.value(), block.value().to_vec()));
                if read >= bytes {
                    break;
                }
            }
            Ok(blocks)
        })
    }

    /// Calls `visit` for every block in order, with the number of its first row and its rows, or the error if
    /// it is damaged. An error from `visit` ends the iteration.
    pub(crate) fn for_each_block(
        &self,
        mut visit: impl FnMut(u64, Result<Vec<PartitionRow>>) -> Result<()>,
    ) -> Result<()> {
        self.for_each_raw_block(|first, block| visit(first, self.decode_block(first, &block)))
    }

    /// Calls `visit` for every block in order, with the number of its first row and its bytes. An error from
    /// `visit` ends the iteration.
    pub(crate) fn for_each_raw_block(
        &self,
        mut visit: impl FnMut(u64, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let name = self.rows_name();
        let mut blocks = guard_database(&name, || {
            let transaction = self.database.database()?.begin_read()?;
            let table: ReadOnlyTable<u64, &[u8]> = transaction.open_table(ROW_BLOCKS)?;
            Ok(table.range::<u64>(..)?)
        })?;
        // `visit` does not touch the database, so its panics must not be caught.
        let mut next = || {
            guard_database(&name, || {
                let block = blocks.next().transpose()?;
                Ok(block.map(|(first, block)| (first.value(), block.value().to_vec())))
            })
        };
        let visited = loop {
            match next() {
                Ok(Some((first, block))) => {
                    if let Err(error) = visit(first, block) {
                        break Err(error);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        guard_database(&name, || {
            drop(blocks);
            Ok(())
        })?;
        visited
    }

    /// Checks that a block begins with the expected row.
    pub(crate) fn check_next(&self, first: u64, expected: u64) -> Result<()> {
        if first == expected {
            return Ok(());
        }
        let what = format!("the block of row {expected} is missing before that of {first}");
        Err(Error::damaged_file(&self.rows_name(), what))
    }

    /// Decodes the rows of a block that begins with row `first`.
    pub(crate) fn decode_block(&self, first: u64, block: &[u8]) -> Result<Vec<PartitionRow>> {
        let name = self.rows_name();
        let rows = open_block(first, block).map_err(|what| Error::damaged_file(&name, what))?;
        let mut number = first;
        let decoded = rows.into_iter().map(|row| {
            let row = PartitionRow::decode_row(row).ok_or_else(|| {
                Error::damaged_file(&name, format!("row {number} is not well formed"))
            })?;
            number = number.saturating_add(row.number_count());
            Ok(row)
        });
        decoded.collect()
    }

    /// Calls `visit` with the record at a place.
    pub(crate) fn visit_record<T>(
        &self,
        at: u32,
        visit: impl FnOnce(&StoredRecord<'_>) -> T,
    ) -> Result<T> {
        let visited = self.visit_short_record(at, usize::MAX, visit)?;
        visited.ok_or_else(|| Error::damaged_file(&self.texts_name(), format!("place {at}")))
    }

    /// Calls `visit` with the record at a place, unless its text has more than `most_text_bytes` bytes: such a
    /// record is not read.
    pub(crate) fn visit_short_record<T>(
        &self,
        at: u32,
        most_text_bytes: usize,
        visit: impl FnOnce(&StoredRecord<'_>) -> T,
    ) -> Result<Option<T>> {
        let read = self.try_record(at, most_text_bytes, visit);
        self.note_read(read, FailedRead::Record(at))
    }

    /// Returns the length in bytes of the text of the record at a place, as its head states it. The record is not
    /// read and not verified.
    pub(crate) fn text_length(&self, at: u32) -> Result<usize> {
        let read = self.read_start(at).and_then(|(start, read, offset)| {
            records::text_length(&start[..read]).ok_or_else(|| self.damaged_record(offset))
        });
        self.note_read(read, FailedRead::Record(at))
    }

    /// Reads the first bytes of the record at a place. Returns also how many there are, and the offset.
    fn read_start(&self, at: u32) -> Result<([u8; FIRST_READ], usize, u64)> {
        let offset = self.record_offset(at.into())?;
        let mut start = [0; FIRST_READ];
        let read = self.texts_file.read_at(&mut start, offset);
        let read =
            read.map_err(|error| Error::disk_error("cannot read", &self.texts_name(), &error))?;
        Ok((start, read, offset))
    }

    fn damaged_record(&self, offset: u64) -> Error {
        Error::damaged_file(&self.texts_name(), format!("the record at {offset}"))
    }

    fn try_record<T>(
        &self,
        at: u32,
        most_text_bytes: usize,
        visit: impl FnOnce(&StoredRecord<'_>) -> T,
    ) -> Result<Option<T>> {
        let (start, read, offset) = self.read_start(at)?;
        let start = &start[..read];
        let wrong = |error: io::Error| Error::disk_error("cannot read", &self.texts_name(), &error);
        let damaged = || self.damaged_record(offset);
        let length = records::record_length(start).ok_or_else(damaged)?;
        if records::text_length(start).is_some_and(|bytes| bytes > most_text_bytes) {
            return Ok(None);
        }
        if length <= read {
            return Ok(Some(visit(
                &StoredRecord::parse_record(start).ok_or_else(damaged)?,
            )));
        }
        // A damaged length must not cause an allocation that fails.
        let there = self.texts_file.len().map_err(wrong)?;
        if offset + length as u64 > there {
            return Err(damaged());
        }
        let mut record = vec![0; length];
        self.texts_file
            .read_exact(&mut record, offset)
            .map_err(wrong)?;
        Ok(Some(visit(
            &StoredRecord::parse_record(&record).ok_or_else(damaged)?,
        )))
    }

    /// Calls `visit` with the text of the record at a place.
    pub(crate) fn visit_text<T>(&self, at: u32, visit: impl FnOnce(&str) -> T) -> Result<T> {
        let text = self.visit_record(at, |record| record.visit_text(visit))?;
        text.ok_or_else(|| {
            Error::damaged_file(&self.texts_name(), format!("the text at place {at}"))
        })
    }

    /// Checks that the file of texts has all records before the place `end`.
    pub(crate) fn check_length(&self, end: u64) -> Result<()> {
        let (name, needed) = (self.texts_name(), self.record_offset(end)?);
        let there = self.texts_file.len();
        let there = there.map_err(|error| Error::disk_error("cannot read", &name, &error))?;
        if there >= needed {
            return Ok(());
        }
        let what = format!("it has {there} bytes, and its rows refer to {needed}");
        Err(Error::damaged_file(&name, what))
    }

    /// Checks the record of a row.
    pub(crate) fn check_record(&self, place: RecordPlace, id: &str) -> Result<()> {
        let right = self.visit_record(place.at, |record| {
            record.id == id && record.visit_text(|_| ()).is_some()
        })?;
        if right {
            return Ok(());
        }
        let what = format!("the record at {} is not that of '{id}'", place.at);
        Err(Error::damaged_file(&self.texts_name(), what))
    }
}

/// Writes the progress in a shared log, if there is any.
fn put_progress(
    transaction: &WriteTransaction,
    progress: Option<&LogProgress>,
) -> Result<(), redb::Error> {
    if let Some(progress) = progress {
        let mut table = transaction.open_table(LOG_PROGRESS)?;
        table.insert(PROGRESS_KEY, &*progress.encode_progress())?;
    }
    Ok(())
}

/// Removes the files of a partition, the database first. The removal is durable when this returns.
pub(crate) fn remove_partition_files(disk: &dyn Disk, names: FileNames) -> Result<()> {
    let name = names.rows_file();
    disk.remove_file(&name)
        .and_then(|()| disk.remove_file(&names.texts_file()))
        .and_then(|()| match disk.remove_file(&names.sketches_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
        .and_then(|()| disk.sync_names())
        .map_err(|error| Error::disk_error("cannot remove", &name, &error))
}

/// Removes partition files that no list names.
pub(crate) fn remove_unlisted_files(disk: &dyn Disk, names: FileNames) -> Result<()> {
    let incomplete = incomplete_name(&names.rows_file());
    for name in [
        names.rows_file(),
        incomplete,
        names.texts_file(),
        names.sketches_file(),
    ] {
        match disk.remove_file(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => {
                removed.map_err(|error| Error::disk_error("cannot remove", &name, &error))?
            }
        }
    }
    let synced = disk.sync_names();
    synced.map_err(|error| Error::disk_error("cannot remove", &names.rows_file(), &error))
}
