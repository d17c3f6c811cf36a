//! Cache of the sketches of a partition's kept documents, in a file beside it, so that opening a collection
//! need not compute them from the texts again.
//!
//! The entry of a document contains the hash of its content. An entry that is missing, damaged or left over
//! from an uncommitted insert is thus recognised, and from there on the rest of the file is rebuilt when the
//! collection is opened. Every commit appends to the file without waiting for the disk. The file is still
//! synced every few megabytes, so that the system never has to write much of it while commits wait.
//!
//! ```text
//! head:   "LAsk" │ version: u32 │ seal: u32 │ partition: u64 │ CRC-32
//! block:  bytes of the entries: u32 │ entries: u32 │ CRC-32 │ entries
//! entry:  content hash: u64 │ length: u32 │ sketch
//! ```

use std::sync::Arc;

use crate::bytes::Reader;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::partition::FileNames;

/// File name ending of these files.
pub(crate) const SKETCHES_END: &str = ".sketches";

const MAGIC: [u8; 4] = *b"LAsk";
const VERSION: u32 = 1;

/// Bytes of the head of the file.
const HEAD: u64 = 24;

/// Bytes of the head of a block.
const BLOCK_HEAD: usize = 12;

/// Bytes that may be written before the file is synced.
const UNSYNCED: u64 = 4 << 20;

/// Bytes before the sketch of an entry: content hash and length.
const ENTRY_HEAD: usize = 12;

fn head(seal: u32, number: u64) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend(seal.to_le_bytes());
    head.extend(number.to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    head
}

/// Entries of documents, to be written as a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    count: u32,
}

impl Entries {
    /// Adds the entry of a document with this content hash.
    pub(crate) fn push(&mut self, content: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend(content.to_le_bytes());
        let at = self.bytes.len();
        self.bytes.extend([0; 4]);
        write(&mut self.bytes);
        let length = (self.bytes.len() - at - 4) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        self.count += 1;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn block(&self) -> Vec<u8> {
        let mut block = (self.bytes.len() as u32).to_le_bytes().to_vec();
        block.extend(self.count.to_le_bytes());
        block.extend(checksum(&block, &self.bytes).to_le_bytes());
        block.extend(&self.bytes);
        block
    }
}

fn checksum(numbers: &[u8], entries: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(numbers);
    hasher.update(entries);
    hasher.finalize()
}

/// The file, open for appending.
#[derive(Debug)]
pub(crate) struct Sketches {
    name: String,
    file: Arc<dyn DiskFile>,
    end: u64,
    /// Offset up to which it is synced.
    synced: u64,
}

impl Sketches {
    /// Creates the file for a partition.
    pub(crate) fn create(disk: &dyn Disk, seal: u32, names: FileNames) -> Result<Self> {
        let name = names.sketches();
        let made = || {
            let file = disk.create(&name)?;
            file.write_at(&head(seal, names.number), 0)?;
            Ok(file)
        };
        let file = made().map_err(|error| Error::disk("cannot make", &name, &error))?;
        Ok(Self {
            name,
            file,
            end: HEAD,
            synced: 0,
        })
    }

    /// Returns the offset of the next block.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends entries as a block.
    pub(crate) fn append(&mut self, entries: &Entries) -> Result<()> {
        self.append_and_sync(entries, UNSYNCED)
    }

    /// Adds entries as a block, and syncs the file where at least so many bytes wait to be written to the disk.
    pub(crate) fn append_and_sync(&mut self, entries: &Entries, most: u64) -> Result<()> {
        if entries.count == 0 {
            return Ok(());
        }
        let block = entries.block();
        let written = self.file.write_at(&block, self.end);
        written.map_err(|error| Error::disk("cannot write", &self.name, &error))?;
        self.end += block.len() as u64;
        if self.end - self.synced >= most {
            let synced = self.file.sync();
            synced.map_err(|error| Error::disk("cannot sync", &self.name, &error))?;
            self.synced = self.end;
        }
        Ok(())
    }
}

/// An entry that was read.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    block: Arc<Vec<u8>>,
    start: usize,
    end: usize,
    content: u64,
}

impl Entry {
    /// Returns the sketch, if the entry belongs to this content hash.
    pub(crate) fn of(&self, content: u64) -> Option<&[u8]> {
        (self.content == content).then(|| &self.block[self.start..self.end])
    }
}

/// The file, open for reading its intact entries in order. A clone remembers the position.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// `None` after an entry was damaged or missing.
    file: Option<Arc<dyn DiskFile>>,
    /// Offset of the current block.
    at: u64,
    /// Entries of the current block, and the read position in them.
    block: Arc<Vec<u8>>,
    read: usize,
    /// Entries read from the current block.
    count: u32,
}

impl Reading {
    /// Opens the file of a partition. If it does not exist or belongs to another partition, it has no
    /// entries.
    pub(crate) fn open(disk: &dyn Disk, seal: u32, names: FileNames) -> Self {
        let open = || {
            let file = disk.open(&names.sketches()).ok()?;
            let mut bytes = [0; HEAD as usize];
            file.read_exact(&mut bytes, 0).ok()?;
            (bytes[..] == head(seal, names.number)).then_some(file)
        };
        Self {
            file: open(),
            at: HEAD,
            block: Arc::default(),
            read: 0,
            count: 0,
        }
    }

    /// Returns the entry of the next kept document, if it is intact.
    pub(crate) fn next(&mut self) -> Option<Entry> {
        let entry = self.next_of_block();
        if entry.is_none() {
            self.file = None;
        }
        entry
    }

    fn next_of_block(&mut self) -> Option<Entry> {
        while self.read == self.block.len() {
            self.next_block()?;
        }
        let mut reader = Reader(&self.block[self.read..]);
        let (content, length) = (reader.u64()?, reader.u32()? as usize);
        reader.take(length)?;
        let start = self.read + ENTRY_HEAD;
        self.read = start + length;
        self.count += 1;
        Some(Entry {
            block: self.block.clone(),
            start,
            end: start + length,
            content,
        })
    }

    fn next_block(&mut self) -> Option<()> {
        let file = self.file.as_ref()?;
        let at = self.at + self.length();
        let mut bytes = [0; BLOCK_HEAD];
        file.read_exact(&mut bytes, at).ok()?;
        let mut reader = Reader(&bytes);
        let (length, count, sum) = (reader.u32()?, reader.u32()?, reader.u32()?);
        // A damaged length must not cause an allocation that fails.
        let end = at + BLOCK_HEAD as u64 + u64::from(length);
        if count == 0 || end > file.len().ok()? {
            return None;
        }
        let mut entries = vec![0; length as usize];
        file.read_exact(&mut entries, at + BLOCK_HEAD as u64).ok()?;
        if checksum(&bytes[..8], &entries) != sum {
            return None;
        }
        self.at = at;
        self.block = Arc::new(entries);
        self.read = 0;
        self.count = 0;
        Some(())
    }

    /// Returns the bytes of the current block in the file.
    fn length(&self) -> u64 {
        match self.block.len() {
            0 => 0,
            entries => (BLOCK_HEAD + entries) as u64,
        }
    }

    /// Ends reading, and opens the file for appending after the entries read so far. Anything after them is
    /// damaged, or belongs to inserts that were not committed.
    pub(crate) fn end(self, disk: &dyn Disk, seal: u32, names: FileNames) -> Result<Sketches> {
        let name = names.sketches();
        let Some(file) = self.file.clone() else {
            return Sketches::create(disk, seal, names);
        };
        let mut sketches = Sketches {
            name,
            file,
            end: self.at,
            synced: self.at,
        };
        if self.read == self.block.len() {
            sketches.end += self.length();
        } else {
            let bytes = self.block[..self.read].to_vec();
            let count = self.count;
            sketches.append(&Entries { bytes, count })?;
        }
        Ok(sketches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;

    const ONE: FileNames = FileNames {
        number: 1,
        generation: 0,
    };

    fn entries(from: u64, count: u64) -> Entries {
        let mut entries = Entries::default();
        for content in from..from + count {
            entries.push(content, |into| {
                into.extend(vec![content as u8; content as usize % 9])
            });
        }
        entries
    }

    fn right(reading: &mut Reading, contents: std::ops::Range<u64>) -> u64 {
        let mut right = 0;
        for content in contents {
            let entry = reading.next();
            let written = entry.as_ref().and_then(|entry| entry.of(content));
            if written != Some(&vec![content as u8; content as usize % 9][..]) {
                break;
            }
            assert!(entry.is_some_and(|entry| entry.of(content + 1).is_none()));
            right += 1;
        }
        right
    }

    /// Entries are read up to the first changed byte. New ones can be added after those read, even in the
    /// middle of a block.
    #[test]
    fn entries_come_back_as_far_as_they_are_right() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::open(folder.path()).unwrap();
        let mut sketches = Sketches::create(&disk, 7, ONE).unwrap();
        for (from, count) in [(0, 5), (5, 1), (6, 0), (6, 30)] {
            sketches.append(&entries(from, count)).unwrap();
        }
        assert_eq!(right(&mut Reading::open(&disk, 7, ONE), 0..40), 36);
        assert_eq!(right(&mut Reading::open(&disk, 8, ONE), 0..40), 0);
        assert_eq!(
            right(
                &mut Reading::open(&disk, 7, FileNames { number: 2, ..ONE }),
                0..40
            ),
            0
        );
        for keep in [0, 3, 5, 6, 20, 36] {
            let mut reading = Reading::open(&disk, 7, ONE);
            assert_eq!(right(&mut reading, 0..keep), keep);
            let before = reading.clone();
            reading.next();
            let mut sketches = before.end(&disk, 7, ONE).unwrap();
            sketches.append(&entries(keep, 50)).unwrap();
            assert_eq!(right(&mut Reading::open(&disk, 7, ONE), 0..90), keep + 50);
        }
        let file = disk.open(&ONE.sketches()).unwrap();
        let length = file.len().unwrap();
        for at in (0..length).rev().step_by(13) {
            let mut byte = [0];
            file.read_exact(&mut byte, at).unwrap();
            file.write_at(&[byte[0] ^ 4], at).unwrap();
            assert!(right(&mut Reading::open(&disk, 7, ONE), 0..90) < 86);
        }
    }
}
