//! The bytes of objects that a run has read, in two files of its directory, so that no later process transfers them
//! again.
//!
//! ```text
//! objects.copy    parts of objects, in the order in which they arrived
//! objects.parts   an entry for each part
//! ```
//!
//! | part of an entry | bytes |
//! |---|---|
//! | object: a hash of its name, length and version | 8 |
//! | number of the part in the object, from 0 | 8 |
//! | offset of the part in `objects.copy` | 8 |
//! | length of the part | 8 |
//! | checksum of all of that but the offset, and of the bytes of the part | 8 |
//!
//! The first part of an object has [`FIRST_BYTES`]. All others have a 128th of the object, in multiples of 64 KiB, at
//! least 256 KiB and at most [`PART_BYTES`]. So a process that is killed while it waits for four of them loses
//! at most a 32nd of an object of 32 MiB and more.
//!
//! An entry is written after its part, and neither is synced. A part is compared with its checksum when a later
//! process uses it for the first time. Guarantee: damage, as after a power failure, costs another transfer and never
//! changes a result. Cost: 40 bytes of memory for each part that earlier processes have stored, and one hash of it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lookalike::byte_reader::ByteReader;
use tokio::sync::Mutex as AsyncMutex;

use super::{COPY_FILE, FIRST_BYTES, ObjectFailure, ObjectIdentity, PART_BYTES, PARTS_FILE};
use crate::error::{Error, Result, display_path};
use crate::spool::SpoolFile;

/// Bytes of an entry.
const ENTRY_BYTES: usize = 40;

/// Parts of an object are about this many.
const PARTS_OF_OBJECT: u64 = 128;

/// Bytes of which the size of a part is a multiple, and the smallest size: 64 and 256 KiB.
const PART_STEP: u64 = 64 << 10;
const SMALLEST_PART: u64 = 256 << 10;

/// The copies of all objects of a run, for several processes one after the other.
#[derive(Debug)]
pub struct ObjectCopies {
    spool: SpoolFile,
    entries: Mutex<File>,
    /// Parts that earlier processes have stored, by object.
    stored: HashMap<u64, Vec<StoredPart>>,
    tables: Mutex<HashMap<u64, Arc<PartTable>>>,
}

#[derive(Debug, Clone, Copy)]
struct StoredPart {
    number: u64,
    offset: u64,
    length: u64,
    checksum: u64,
}

/// The parts of one object.
#[derive(Debug)]
pub(super) struct PartTable {
    /// The hash that stands for the object.
    object: u64,
    length: u64,
    part_bytes: u64,
    /// The place of each part. A part is locked while it is requested.
    places: Vec<AsyncMutex<PartPlace>>,
    /// Locked while an object without ranges is transferred.
    pub(super) whole: AsyncMutex<()>,
}

/// The place of a part in the file of copies.
#[derive(Debug, Clone, Copy)]
pub(super) enum PartPlace {
    Missing,
    /// Of an earlier process.
    Unverified(StoredPartPlace),
    /// At this offset.
    Present(u64),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StoredPartPlace {
    offset: u64,
    checksum: u64,
}

impl ObjectCopies {
    /// Opens the copies in a directory, and creates their files if there are none. No other process may use them.
    ///
    /// # Errors
    /// If a file cannot be opened or read.
    pub fn open_in(directory: &Path) -> Result<Self> {
        let spool = SpoolFile::open_path(&directory.join(COPY_FILE))?;
        let place = directory.join(PARTS_FILE);
        let failed = |cause| Error::write_error("open", display_path(&place), cause);
        let mut entries = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&place)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        entries.read_to_end(&mut bytes).map_err(failed)?;
        let (whole, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() {
            // An entry that was cut would shift those that follow it.
            let length = whole.len() * ENTRY_BYTES;
            entries.set_len(length as u64).map_err(failed)?;
        }
        let mut stored: HashMap<u64, Vec<StoredPart>> = HashMap::new();
        for (object, part) in whole.iter().filter_map(parse_entry) {
            let end = part.offset.checked_add(part.length);
            if end.is_some_and(|end| end <= spool.end_offset()) {
                stored.entry(object).or_default().push(part);
            }
        }
        Ok(Self {
            spool,
            entries: Mutex::new(entries),
            stored,
            tables: Mutex::default(),
        })
    }

    /// Returns the parts of an object. Every call for the same version of the object returns the same table.
    pub(super) fn table_of(
        &self,
        name: &str,
        length: u64,
        identity: &ObjectIdentity,
    ) -> Arc<PartTable> {
        let known = format!("{name}\0{length}\0{identity:?}");
        let object = lookalike::value_hash(known.as_bytes());
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(object).or_insert_with(|| {
            let stored = self.stored.get(&object).map_or(&[][..], Vec::as_slice);
            Arc::new(PartTable::with_stored(object, length, stored))
        });
        Arc::clone(table)
    }

    /// Returns the offset of a part if it is stored and undamaged. `place` is that of the part.
    pub(super) fn find_part(
        &self,
        table: &PartTable,
        number: usize,
        place: &mut PartPlace,
    ) -> Option<u64> {
        let stored = match *place {
            PartPlace::Present(offset) => return Some(offset),
            PartPlace::Missing => return None,
            PartPlace::Unverified(stored) => stored,
        };
        let range = table.range_of(number);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = self.spool.read_exact_at(&mut bytes, stored.offset);
        let is_whole =
            read.is_ok() && part_checksum(table.object, number as u64, &bytes) == stored.checksum;
        *place = if is_whole {
            PartPlace::Present(stored.offset)
        } else {
            PartPlace::Missing
        };
        is_whole.then_some(stored.offset)
    }

    /// Stores a part and returns its offset.
    ///
    /// # Errors
    /// If a file cannot be written, for example because the disk is full.
    pub(super) fn append_part(
        &self,
        table: &PartTable,
        number: usize,
        bytes: &[u8],
    ) -> Result<u64, ObjectFailure> {
        let failed = |reason: String| ObjectFailure::Failed(reason);
        let offset = self.spool.append_bytes(bytes);
        let offset = offset.map_err(|error| failed(error.to_string()))?;
        let number = number as u64;
        let checksum = part_checksum(table.object, number, bytes);
        let values = [table.object, number, offset, bytes.len() as u64, checksum];
        let entry: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let written = entries.write_all(&entry);
        written
            .map_err(|cause| failed(format!("cannot write its copy to {PARTS_FILE}: {cause}")))?;
        Ok(offset)
    }

    /// Fills `room` with stored bytes.
    pub(super) fn read_exact_at(&self, room: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.spool.read_exact_at(room, offset)
    }
}

fn parse_entry(entry: &[u8; ENTRY_BYTES]) -> Option<(u64, StoredPart)> {
    let mut reader = ByteReader::new(entry);
    let object = reader.read_u64()?;
    let part = StoredPart {
        number: reader.read_u64()?,
        offset: reader.read_u64()?,
        length: reader.read_u64()?,
        checksum: reader.read_u64()?,
    };
    Some((object, part))
}

/// Returns the checksum of a part. It takes the bytes by their hash, so that they need not be copied.
fn part_checksum(object: u64, number: u64, bytes: &[u8]) -> u64 {
    let values = [
        object,
        number,
        bytes.len() as u64,
        lookalike::value_hash(bytes),
    ];
    lookalike::value_hash(values.map(u64::to_le_bytes).as_flattened())
}

impl PartTable {
    fn with_stored(object: u64, length: u64, stored: &[StoredPart]) -> Self {
        let part_bytes = length
            .div_ceil(PARTS_OF_OBJECT)
            .next_multiple_of(PART_STEP)
            .clamp(SMALLEST_PART, PART_BYTES);
        let after_first = length.saturating_sub(FIRST_BYTES);
        let count = u64::from(length > 0) + after_first.div_ceil(part_bytes);
        let mut table = Self {
            object,
            length,
            part_bytes,
            places: (0..count)
                .map(|_| AsyncMutex::new(PartPlace::Missing))
                .collect(),
            whole: AsyncMutex::default(),
        };
        for part in stored {
            let number = part.number as usize;
            if part.number >= count {
                continue;
            }
            let range = table.range_of(number);
            if range.end - range.start == part.length {
                *table.places[number].get_mut() = PartPlace::Unverified(StoredPartPlace {
                    offset: part.offset,
                    checksum: part.checksum,
                });
            }
        }
        table
    }

    /// Returns the number of parts; 0 for an empty object.
    pub(super) fn part_count(&self) -> usize {
        self.places.len()
    }

    /// Returns the place of a part.
    pub(super) fn place_of(&self, number: usize) -> &AsyncMutex<PartPlace> {
        &self.places[number]
    }

    /// Returns the part that contains a byte. At the end of the object it is the number of parts or the last one.
    pub(super) fn part_at(&self, byte: u64) -> usize {
        if byte < FIRST_BYTES.min(self.length) {
            0
        } else {
            let number = 1 + byte.saturating_sub(FIRST_BYTES) / self.part_bytes;
            (number as usize).min(self.part_count())
        }
    }

    /// Returns the bytes of the object that a part has.
    pub(super) fn range_of(&self, number: usize) -> Range<u64> {
        let first_end = FIRST_BYTES.min(self.length);
        match number as u64 {
            0 => 0..first_end,
            number => {
                let start = first_end + (number - 1) * self.part_bytes;
                start..self.length.min(start + self.part_bytes)
            }
        }
    }
}
