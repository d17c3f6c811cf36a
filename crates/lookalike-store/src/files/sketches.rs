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

use lookalike::byte_reader::ByteReader;

use super::file_names::FileNames;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};

const SKETCHES_MAGIC: [u8; 4] = *b"LAsk";
const SKETCHES_VERSION: u32 = 1;

/// Bytes of the head of the file.
const HEAD_BYTES: u64 = 24;

/// Bytes of the head of a block.
const BLOCK_HEAD: usize = 12;

/// Bytes that may be written before the file is synced.
const MOST_UNSYNCED_BYTES: u64 = 4 << 20;

/// Bytes before the sketch of an entry: content hash and length.
const ENTRY_HEAD: usize = 12;

fn file_header(seal: u32, number: u64) -> Vec<u8> {
    let mut head = SKETCHES_MAGIC.to_vec();
    head.extend(SKETCHES_VERSION.to_le_bytes());
    head.extend(seal.to_le_bytes());
    head.extend(number.to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    head
}

/// Entries of documents, to be written as a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct SketchEntries {
    bytes: Vec<u8>,
    count: u32,
}

impl SketchEntries {
    /// Adds the entry of a document with this content hash.
    pub(crate) fn push_entry(&mut self, content_hash: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend(content_hash.to_le_bytes());
        let at = self.bytes.len();
        self.bytes.extend([0; 4]);
        write(&mut self.bytes);
        let length = (self.bytes.len() - at - 4) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        self.count += 1;
    }

    pub(crate) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    fn encode_block(&self) -> Vec<u8> {
        let mut block = (self.bytes.len() as u32).to_le_bytes().to_vec();
        block.extend(self.count.to_le_bytes());
        block.extend(block_checksum(&block, &self.bytes).to_le_bytes());
        block.extend(&self.bytes);
        block
    }
}

fn block_checksum(numbers: &[u8], entries: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(numbers);
    hasher.update(entries);
    hasher.finalize()
}

/// The file, open for appending.
#[derive(Debug)]
pub(crate) struct SketchFile {
    name: String,
    file: Arc<dyn DiskFile>,
    end: u64,
    /// Offset up to which it is synced.
    synced: u64,
}

impl SketchFile {
    /// Creates the file for a partition.
    pub(crate) fn create_file(disk: &dyn Disk, seal: u32, names: FileNames) -> Result<Self> {
        let name = names.sketches_file();
        let made = || {
            let file = disk.create_file(&name)?;
            file.write_at(&file_header(seal, names.number), 0)?;
            Ok(file)
        };
        let file = made().map_err(|error| Error::disk_error("cannot make", &name, &error))?;
        Ok(Self {
            name,
            file,
            end: HEAD_BYTES,
            synced: 0,
        })
    }

    /// Returns the offset of the next block.
    pub(crate) fn end_offset(&self) -> u64 {
        self.end
    }

    /// Appends entries as a block.
    pub(crate) fn append_entries(&mut self, entries: &SketchEntries) -> Result<()> {
        self.append_and_sync(entries, MOST_UNSYNCED_BYTES)
    }

    /// Adds entries as a block, and syncs the file where at least so many bytes wait to be written to
    /// the disk.
    pub(crate) fn append_and_sync(&mut self, entries: &SketchEntries, most: u64) -> Result<()> {
        if entries.count == 0 {
            return Ok(());
        }
        let block = entries.encode_block();
        let written = self.file.write_at(&block, self.end);
        written.map_err(|error| Error::disk_error("cannot write", &self.name, &error))?;
        self.end += block.len() as u64;
        if self.end - self.synced >= most {
            let synced = self.file.sync();
            synced.map_err(|error| Error::disk_error("cannot sync", &self.name, &error))?;
            self.synced = self.end;
        }
        Ok(())
    }
}

/// An entry that was read.
#[derive(Clone, Debug)]
pub(crate) struct SketchEntry {
    block: Arc<Vec<u8>>,
    start: usize,
    end: usize,
    content_hash: u64,
}

impl SketchEntry {
    /// Returns the sketch, if the entry belongs to this content hash.
    pub(crate) fn sketches_for(&self, content_hash: u64) -> Option<&[u8]> {
        (self.content_hash == content_hash).then(|| &self.block[self.start..self.end])
    }
}

/// The file, open for reading its intact entries in order. A clone remembers the position.
#[derive(Clone, Debug)]
pub(crate) struct SketchFileReader {
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

impl SketchFileReader {
    /// Opens the file of a partition. If it does not exist or belongs to another partition, it has no
    /// entries.
    pub(crate) fn open_file(disk: &dyn Disk, seal: u32, names: FileNames) -> Self {
        let open = || {
            let file = disk.open_file(&names.sketches_file()).ok()?;
            let mut bytes = [0; HEAD_BYTES as usize];
            file.read_exact(&mut bytes, 0).ok()?;
            (bytes[..] == file_header(seal, names.number)).then_some(file)
        };
        Self {
            file: open(),
            at: HEAD_BYTES,
            block: Arc::default(),
            read: 0,
            count: 0,
        }
    }

    /// Returns the entry of the next kept document, if it is intact.
    pub(crate) fn next_entry(&mut self) -> Option<SketchEntry> {
        let entry = self.next_of_block();
        if entry.is_none() {
            self.file = None;
        }
        entry
    }

    fn next_of_block(&mut self) -> Option<SketchEntry> {
        while self.read == self.block.len() {
            self.next_block()?;
        }
        let mut reader = ByteReader::new(&self.block[self.read..]);
        let (content_hash, length) = (reader.read_u64()?, reader.read_u32()? as usize);
        reader.read_bytes(length)?;
        let start = self.read + ENTRY_HEAD;
        self.read = start + length;
        self.count += 1;
        Some(SketchEntry {
            block: self.block.clone(),
            start,
            end: start + length,
            content_hash,
        })
    }

    fn next_block(&mut self) -> Option<()> {
        let file = self.file.as_ref()?;
        let at = self.at + self.block_length();
        let mut bytes = [0; BLOCK_HEAD];
        file.read_exact(&mut bytes, at).ok()?;
        let mut reader = ByteReader::new(&bytes);
        let (length, count, sum) = (reader.read_u32()?, reader.read_u32()?, reader.read_u32()?);
        // A damaged length must not cause an allocation that fails.
        let end = at + BLOCK_HEAD as u64 + u64::from(length);
        if count == 0 || end > file.len().ok()? {
            return None;
        }
        let mut entries = vec![0; length as usize];
        file.read_exact(&mut entries, at + BLOCK_HEAD as u64).ok()?;
        if block_checksum(&bytes[..8], &entries) != sum {
            return None;
        }
        self.at = at;
        self.block = Arc::new(entries);
        self.read = 0;
        self.count = 0;
        Some(())
    }

    /// Returns the bytes of the current block in the file.
    fn block_length(&self) -> u64 {
        match self.block.len() {
            0 => 0,
            entries => (BLOCK_HEAD + entries) as u64,
        }
    }

    /// Ends reading, and opens the file for appending after the entries read so far. Anything after them is
    /// damaged, or belongs to inserts that were not committed.
    pub(crate) fn into_writer(
        self,
        disk: &dyn Disk,
        seal: u32,
        names: FileNames,
    ) -> Result<SketchFile> {
        let name = names.sketches_file();
        let Some(file) = self.file.clone() else {
            return SketchFile::create_file(disk, seal, names);
        };
        let mut sketches = SketchFile {
            name,
            file,
            end: self.at,
            synced: self.at,
        };
        if self.read == self.block.len() {
            sketches.end += self.block_length();
        } else {
            let bytes = self.block[..self.read].to_vec();
            let count = self.count;
            sketches.append_entries(&SketchEntries { bytes, count })?;
        }
        Ok(sketches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskFolder;

    const ONE: FileNames = FileNames {
        number: 1,
        generation: 0,
    };

    fn entries(from: u64, count: u64) -> SketchEntries {
        let mut entries = SketchEntries::default();
        for content_hash in from..from + count {
            entries.push_entry(content_hash, |into| {
                into.extend(vec![content_hash as u8; content_hash as usize % 9])
            });
        }
        entries
    }

    fn right(reading: &mut SketchFileReader, contents: std::ops::Range<u64>) -> u64 {
        let mut right = 0;
        for content_hash in contents {
            let entry = reading.next_entry();
            let written = entry
                .as_ref()
                .and_then(|entry| entry.sketches_for(content_hash));
            if written != Some(&vec![content_hash as u8; content_hash as usize % 9][..]) {
                break;
            }
            assert!(entry.is_some_and(|entry| entry.sketches_for(content_hash + 1).is_none()));
            right += 1;
        }
        right
    }

    /// Entries are read up to the first changed byte. New ones can be added after those read, even in the
    /// middle of a block.
    #[test]
    fn valid_sketches_are_read_up_to_damage() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskFolder::open(folder.path()).unwrap();
        let mut sketches = SketchFile::create_file(&disk, 7, ONE).unwrap();
        for (from, count) in [(0, 5), (5, 1), (6, 0), (6, 30)] {
            sketches.append_entries(&entries(from, count)).unwrap();
        }
        assert_eq!(
            right(&mut SketchFileReader::open_file(&disk, 7, ONE), 0..40),
            36
        );
        assert_eq!(
            right(&mut SketchFileReader::open_file(&disk, 8, ONE), 0..40),
            0
        );
        assert_eq!(
            right(
                &mut SketchFileReader::open_file(&disk, 7, FileNames { number: 2, ..ONE }),
                0..40
            ),
            0
        );
        for keep in [0, 3, 5, 6, 20, 36] {
            let mut reading = SketchFileReader::open_file(&disk, 7, ONE);
            assert_eq!(right(&mut reading, 0..keep), keep);
            let before = reading.clone();
            reading.next_entry();
            let mut sketches = before.into_writer(&disk, 7, ONE).unwrap();
            sketches.append_entries(&entries(keep, 50)).unwrap();
            assert_eq!(
                right(&mut SketchFileReader::open_file(&disk, 7, ONE), 0..90),
                keep + 50
            );
        }
        let file = disk.open_file(&ONE.sketches_file()).unwrap();
        let length = file.len().unwrap();
        for at in (0..length).rev().step_by(13) {
            let mut byte = [0];
            file.read_exact(&mut byte, at).unwrap();
            file.write_at(&[byte[0] ^ 4], at).unwrap();
            assert!(right(&mut SketchFileReader::open_file(&disk, 7, ONE), 0..90) < 86);
        }
    }
}
