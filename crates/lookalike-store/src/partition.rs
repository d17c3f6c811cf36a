//! A partition: the rows of a stretch of time in a database, and the records of its documents in a file
//! beside it.
//!
//! The database is the truth: a record counts only because a committed row says where it is, and it was
//! on disk before that row. A partition that is not the newest is never written again.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lookalike::online::Time;
use redb::{Builder, Database, Durability, ReadableDatabase, StorageBackend};
use redb::{ReadOnlyTable, TableDefinition};

use crate::bytes::Reader;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::inventory::PARTITIONS;
use crate::records::{self, FIRST_READ, Record};
use crate::rows::{Place, Row, Rows, UNIT, open_block};
use crate::settings::NEW;
use crate::sketches::{SKETCHES_END, sketches_name};

/// Blocks of rows by the number of their first row.
const ROWS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("rows");

/// What the partition is, under [`SELF`].
const ABOUT: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("about");
const SELF: &str = "partition";

/// The version of the format of partitions.
const VERSION: u32 = 1;

/// Bytes of pages that each database may keep in memory.
pub(crate) const CACHE: usize = 1 << 20;

/// What a partition is, from its beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// The checksum of the manifest of its collection.
    pub(crate) seal: u32,
    /// Ascending with time.
    pub(crate) number: u64,
    /// The number of its first row.
    pub(crate) first: u64,
    /// The clock when it began.
    pub(crate) began: Time,
}

impl About {
    fn encode(self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend(self.seal.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.began.0.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        let mut reader = Reader(body);
        let right = crc32fast::hash(body) == u32::from_le_bytes(*sum);
        if !right || reader.u32()? != VERSION {
            return None;
        }
        Some(Self {
            seal: reader.u32()?,
            number: reader.u64()?,
            first: reader.u64()?,
            began: Time(reader.i64()?),
        })
    }
}

/// The ending of the names of databases.
const ROWS_END: &str = ".rows";

/// The ending of the names of files of texts.
const TEXTS_END: &str = ".texts";

pub(crate) fn rows_name(number: u64) -> String {
    format!("{number:016x}{ROWS_END}")
}

pub(crate) fn texts_name(number: u64) -> String {
    format!("{number:016x}{TEXTS_END}")
}

/// The number of the partition whose database has this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_suffix(ROWS_END)?, 16).ok()?;
    (rows_name(number) == name).then_some(number)
}

/// The number of the partition whose file of texts has this name.
pub(crate) fn number_of_texts(name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_suffix(TEXTS_END)?, 16).ok()?;
    (texts_name(number) == name).then_some(number)
}

/// Whether a file holds what happened or what documents say.
pub(crate) fn is_of_partition(name: &str) -> bool {
    name.ends_with(ROWS_END) || name.ends_with(TEXTS_END)
}

/// Whether a file holds a part of a collection besides its manifest.
pub(crate) fn is_of_collection(name: &str) -> bool {
    name == PARTITIONS || is_of_partition(name) || name.ends_with(SKETCHES_END)
}

/// An open partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) about: About,
    database: Pages,
    pub(crate) rows_file: Arc<dyn DiskFile>,
    pub(crate) texts_file: Arc<dyn DiskFile>,
}

impl Partition {
    /// Makes a partition. It has its name once it is complete.
    pub(crate) fn create(disk: &dyn Disk, about: About) -> Result<Self> {
        let name = rows_name(about.number);
        let new = format!("{name}{NEW}");
        let wrong = |error: io::Error| Error::disk("cannot make", &name, &error);
        let texts_file = disk.create(&texts_name(about.number)).map_err(wrong)?;
        texts_file.sync().map_err(wrong)?;
        let rows_file = disk.create(&new).map_err(wrong)?;
        let database = database(&name, &rows_file)?;
        guarded(&name, || {
            let mut transaction = database.get()?.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.set_two_phase_commit(true);
            transaction.open_table(ROWS)?;
            transaction
                .open_table(ABOUT)?
                .insert(SELF, &*about.encode())?;
            transaction.commit()?;
            Ok(())
        })?;
        rows_file.sync().map_err(wrong)?;
        disk.rename(&new, &name).map_err(wrong)?;
        disk.sync_names().map_err(wrong)?;
        Ok(Self {
            about,
            database,
            rows_file,
            texts_file,
        })
    }

    /// Opens a partition of the collection whose manifest has this checksum.
    pub(crate) fn open(disk: &dyn Disk, seal: u32, number: u64) -> Result<Self> {
        let name = rows_name(number);
        let opened = |name: &str| {
            disk.open(name)
                .map_err(|error| Error::disk("cannot open", name, &error))
        };
        let rows_file = opened(&name)?;
        let texts_file = opened(&texts_name(number))?;
        let empty = rows_file.is_empty();
        if empty.map_err(|error| Error::disk("cannot read", &name, &error))? {
            return Err(Error::damaged(&name, "it is empty"));
        }
        let database = database(&name, &rows_file)?;
        let about = guarded(&name, || {
            let transaction = database.get()?.begin_read()?;
            let table = transaction.open_table(ABOUT)?;
            let about = table.get(SELF)?;
            Ok(about.and_then(|about| About::decode(about.value())))
        })?;
        let about = about.ok_or_else(|| {
            Error::damaged(&name, format!("it is no partition of version {VERSION}"))
        })?;
        if (about.seal, about.number) != (seal, number) {
            return Err(Error::damaged(
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
        })
    }

    pub(crate) fn name(&self) -> String {
        rows_name(self.about.number)
    }

    fn texts_name(&self) -> String {
        texts_name(self.about.number)
    }

    /// Makes records durable, and then the rows that refer to them, all or none.
    pub(crate) fn write(&self, rows: &Rows, first: u64, texts: &[u8], at: u64) -> Result<()> {
        if !texts.is_empty() {
            let written = self.texts_file.write_at(texts, at);
            written
                .and_then(|()| self.texts_file.sync())
                .map_err(|error| Error::disk("cannot write", &self.texts_name(), &error))?;
        }
        guarded(&self.name(), || {
            let mut transaction = self.database.get()?.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.set_two_phase_commit(true);
            {
                let mut table = transaction.open_table(ROWS)?;
                for (number, block) in rows.blocks(first) {
                    table.insert(number, &*block)?;
                }
            }
            transaction.commit()?;
            Ok(())
        })
    }

    /// The row with a number that the partition has.
    pub(crate) fn row(&self, number: u64) -> Result<Row> {
        let name = self.name();
        let block = guarded(&name, || {
            let transaction = self.database.get()?.begin_read()?;
            let table: ReadOnlyTable<u64, &[u8]> = transaction.open_table(ROWS)?;
            let block = table.range(..=number)?.next_back().transpose()?;
            Ok(block.map(|(first, block)| (first.value(), block.value().to_vec())))
        })?;
        let missing = || Error::damaged(&name, format!("row {number} is missing"));
        let (first, block) = block.ok_or_else(missing)?;
        let rows = open_block(first, &block).map_err(|what| Error::damaged(&name, what))?;
        let row = rows.get((number - first) as usize).ok_or_else(missing)?;
        Row::decode(row)
            .ok_or_else(|| Error::damaged(&name, format!("row {number} is not well formed")))
    }

    /// Calls back with the number of the first row of every block in order and its rows, or with what is
    /// wrong with its bytes. An error that is handed back ends it.
    pub(crate) fn for_each_block(
        &self,
        mut visit: impl FnMut(u64, Result<Vec<Row>>) -> Result<()>,
    ) -> Result<()> {
        self.for_each_raw_block(|first, block| visit(first, self.decode_block(first, &block)))
    }

    /// Calls back with the number of the first row and the bytes of every block in order. An error that
    /// is handed back ends it.
    pub(crate) fn for_each_raw_block(
        &self,
        mut visit: impl FnMut(u64, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let name = self.name();
        let mut blocks = guarded(&name, || {
            let transaction = self.database.get()?.begin_read()?;
            let table: ReadOnlyTable<u64, &[u8]> = transaction.open_table(ROWS)?;
            Ok(table.range::<u64>(..)?)
        })?;
        // What is done with a block is not done to the database, so it is not guarded.
        let mut next = || {
            guarded(&name, || {
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
        guarded(&name, || {
            drop(blocks);
            Ok(())
        })?;
        visited
    }

    /// Checks that a block begins with the row that is expected.
    pub(crate) fn check_next(&self, first: u64, expected: u64) -> Result<()> {
        if first == expected {
            return Ok(());
        }
        let what = format!("the block of row {expected} is missing before that of {first}");
        Err(Error::damaged(&self.name(), what))
    }

    /// The rows of a block whose first one has a number.
    pub(crate) fn decode_block(&self, first: u64, block: &[u8]) -> Result<Vec<Row>> {
        let name = self.name();
        let rows = open_block(first, block).map_err(|what| Error::damaged(&name, what))?;
        let decoded = (first..).zip(rows).map(|(number, row)| {
            Row::decode(row)
                .ok_or_else(|| Error::damaged(&name, format!("row {number} is not well formed")))
        });
        decoded.collect()
    }

    /// Calls back with the record at a place, in units from the beginning.
    pub(crate) fn record<T>(&self, at: u32, visit: impl FnOnce(&Record<'_>) -> T) -> Result<T> {
        let (name, offset) = (self.texts_name(), u64::from(at) * UNIT);
        let wrong = |error: io::Error| Error::disk("cannot read", &name, &error);
        let mut start = [0; FIRST_READ];
        let read = self.texts_file.read_at(&mut start, offset).map_err(wrong)?;
        let damaged = || Error::damaged(&name, format!("the record at {offset}"));
        let length = records::length(&start[..read]).ok_or_else(damaged)?;
        if length <= read {
            return Ok(visit(&Record::read(&start[..read]).ok_or_else(damaged)?));
        }
        // A length that is damaged must not ask for memory that is not there.
        let there = self.texts_file.len().map_err(wrong)?;
        if offset + length as u64 > there {
            return Err(damaged());
        }
        let mut record = vec![0; length];
        self.texts_file
            .read_exact(&mut record, offset)
            .map_err(wrong)?;
        Ok(visit(&Record::read(&record).ok_or_else(damaged)?))
    }

    /// Calls back with the text of the record at a place.
    pub(crate) fn text<T>(&self, at: u32, visit: impl FnOnce(&str) -> T) -> Result<T> {
        let text = self.record(at, |record| record.text(visit))?;
        text.ok_or_else(|| {
            let offset = u64::from(at) * UNIT;
            Error::damaged(&self.texts_name(), format!("the text at {offset}"))
        })
    }

    /// Checks that the file of texts has so many bytes.
    pub(crate) fn check_length(&self, needed: u64) -> Result<()> {
        let name = self.texts_name();
        let there = self.texts_file.len();
        let there = there.map_err(|error| Error::disk("cannot read", &name, &error))?;
        if there >= needed {
            return Ok(());
        }
        let what = format!("it has {there} bytes, and its rows refer to {needed}");
        Err(Error::damaged(&name, what))
    }

    /// Checks the record of a row.
    pub(crate) fn check_record(&self, place: Place, id: &str) -> Result<()> {
        let right = self.record(place.at, |record| {
            record.id == id && record.text(|_| ()).is_some()
        })?;
        if right {
            return Ok(());
        }
        let what = format!("the record at {} is not that of '{id}'", place.offset());
        Err(Error::damaged(&self.texts_name(), what))
    }
}

/// Removes the files of a partition, the truth first, and durably before anything else is removed.
pub(crate) fn remove(disk: &dyn Disk, number: u64) -> Result<()> {
    let name = rows_name(number);
    disk.remove(&name)
        .and_then(|()| disk.remove(&texts_name(number)))
        .and_then(|()| match disk.remove(&sketches_name(number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
        .and_then(|()| disk.sync_names())
        .map_err(|error| Error::disk("cannot remove", &name, &error))
}

fn database(name: &str, file: &Arc<dyn DiskFile>) -> Result<Pages> {
    let backend = Backend(file.clone());
    guarded(name, || {
        let database = Builder::new()
            .set_cache_size(CACHE)
            .create_with_backend(backend)?;
        Ok(Pages(Some(database)))
    })
}

/// A database whose end is guarded as all else that is done with it.
#[derive(Debug)]
struct Pages(Option<Database>);

impl Pages {
    fn get(&self) -> Result<&Database, redb::Error> {
        let closed = || redb::Error::Corrupted("it is closed".to_owned());
        self.0.as_ref().ok_or_else(closed)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let database = self.0.take();
        // What was committed is on disk: there is nothing that could still be lost.
        let _ = guarded("", || {
            drop(database);
            Ok(())
        });
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would be caught now and become an [`Error`]: hooks of panics should
/// leave it alone then.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Does something with a database. What is damaged can also make it panic: nothing of ours is touched
/// then, so it is an error like the others.
fn guarded<T>(name: &str, work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T> {
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(redb::Error::Io(error))) => Err(Error::disk("cannot read or write", name, &error)),
        Ok(Err(error)) => Err(Error::damaged(name, error)),
        Err(_) => Err(Error::damaged(name, "its pages contradict one another")),
    }
}

/// A file as the database sees it.
#[derive(Debug)]
struct Backend(Arc<dyn DiskFile>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(data, offset)
    }
}
