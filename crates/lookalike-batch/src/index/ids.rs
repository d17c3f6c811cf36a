//! The ids of a segment, one string per row, with random access.
//!
//! ```text
//! strings   each with its length before it: 7 bits per byte, lowest first; the top bit means "more follows"
//! starts    start of every 64th row (8 bytes each)
//! rows      number of rows (8 bytes)
//! ```

use std::borrow::Cow;
use std::path::Path;

use lookalike_io::error::Result;

use crate::index::paged::{
    FileMagic, MIN_RECENT_PAGES, PagedFile, PagedWriter, damaged_file, to_array,
};

const IDS_MAGIC: FileMagic = *b"LAid";

/// Rows per entry of the table of starts.
const ROWS_PER_START: u64 = 64;

/// Strings in the format of the file; several threads produce such batches.
#[derive(Debug, Default)]
pub(super) struct IdBatch {
    bytes: Vec<u8>,
    /// Start of each string.
    starts: Vec<u32>,
}

/// Writes the ids of a segment.
pub(super) struct IdsWriter {
    file: PagedWriter,
    places: Vec<u8>,
    rows: u64,
}

/// The ids of a segment.
pub(super) struct StoredIds {
    file: PagedFile,
    rows: u64,
    /// Start of the table of starts.
    table: u64,
}

impl IdBatch {
    /// Appends a string. Panics if the batch is larger than 4 GiB.
    pub(super) fn push_id(&mut self, text: &str) {
        let start = u32::try_from(self.bytes.len()).expect("a batch is of one block of rows");
        self.starts.push(start);
        put_length(text.len(), &mut self.bytes);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn clear_ids(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len()
    }
}

impl IdsWriter {
    pub(super) fn create_file(path: &Path) -> Result<Self> {
        Ok(Self {
            file: PagedWriter::create_file(path, IDS_MAGIC)?,
            places: Vec::new(),
            rows: 0,
        })
    }

    pub(super) fn append_batch(&mut self, batch: &IdBatch) -> Result<()> {
        let base = self.file.byte_length();
        let to_next = (ROWS_PER_START - self.rows % ROWS_PER_START) % ROWS_PER_START;
        for &start in batch
            .starts
            .iter()
            .skip(to_next as usize)
            .step_by(ROWS_PER_START as usize)
        {
            self.places.extend((base + u64::from(start)).to_le_bytes());
        }
        self.rows += batch.len() as u64;
        self.file.put_bytes(&batch.bytes)
    }

    /// Completes the file and returns its seal.
    pub(super) fn finish_file(mut self) -> Result<u64> {
        self.file.put_bytes(&self.places)?;
        self.file.put_bytes(&self.rows.to_le_bytes())?;
        self.file.finish_file()
    }
}

impl StoredIds {
    pub(super) fn open_file(path: &Path) -> Result<Self> {
        let file = PagedFile::open_file(path, IDS_MAGIC)?;
        let rows = file
            .byte_length()
            .checked_sub(8)
            .map(|at| file.read_range(at, at + 8))
            .transpose()?
            .map(|bytes| u64::from_le_bytes(to_array(&bytes)));
        let table = rows.and_then(|rows| {
            let bytes = rows
                .div_ceil(ROWS_PER_START)
                .checked_mul(8)?
                .checked_add(8)?;
            file.byte_length().checked_sub(bytes)
        });
        match (rows, table) {
            (Some(rows), Some(table)) => Ok(Self { file, rows, table }),
            _ => Err(damaged_file(path, "it is too short for its number of rows")),
        }
    }

    /// Keeps only the pages that were read last from now on.
    pub(super) fn keep_recent_pages(&mut self) {
        self.file.keep_recent_pages(MIN_RECENT_PAGES);
    }

    /// Returns the file.
    pub(super) fn file_mut(&mut self) -> &mut PagedFile {
        &mut self.file
    }

    pub(super) fn len(&self) -> u64 {
        self.rows
    }

    pub(super) fn seal(&self) -> u64 {
        self.file.seal()
    }

    /// Returns the id of a row.
    pub(super) fn id_of_row(&self, row: u64) -> Result<Cow<'_, str>> {
        let (group, within) = (row / ROWS_PER_START, row % ROWS_PER_START);
        let bytes = self.read_group(group)?;
        let wrong = || self.wrong_id_error(row);
        let mut at = 0;
        for _ in 0..within {
            let (start, length) = read_length_at(&bytes, at).ok_or_else(wrong)?;
            at = start + length;
        }
        let (start, length) = read_length_at(&bytes, at).ok_or_else(wrong)?;
        let text = match &bytes {
            Cow::Borrowed(bytes) => bytes
                .get(start..start + length)
                .map(as_utf8)
                .map(|text| text.map(Cow::Borrowed)),
            Cow::Owned(bytes) => bytes
                .get(start..start + length)
                .map(as_utf8)
                .map(|text| text.map(|text| Cow::Owned(text.to_owned()))),
        };
        text.flatten().ok_or_else(wrong)
    }

    /// Calls `visit` with all ids in order, holding about one page in memory.
    pub(super) fn visit_ids(&self, mut visit: impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
        let (mut open, mut row) = (Vec::new(), 0);
        self.file.scan_pages(self.table, |page| {
            open.extend_from_slice(page);
            let mut at = 0;
            while let Some((start, length)) = read_length_at(&open, at) {
                let Some(bytes) = open.get(start..start + length) else {
                    break;
                };
                let text = as_utf8(bytes).ok_or_else(|| self.wrong_id_error(row))?;
                visit(row, text)?;
                row += 1;
                at = start + length;
            }
            open.drain(..at);
            Ok(())
        })?;
        if open.is_empty() && row == self.rows {
            Ok(())
        } else {
            Err(self.wrong_id_error(row))
        }
    }

    pub(super) fn verify_file(&self) -> Result<()> {
        self.file.verify_pages()?;
        self.visit_ids(|_, _| Ok(()))
    }

    fn read_group(&self, group: u64) -> Result<Cow<'_, [u8]>> {
        let place = |group: u64| -> Result<u64> {
            if group * ROWS_PER_START >= self.rows {
                return Ok(self.table);
            }
            let at = self.table + group * 8;
            Ok(u64::from_le_bytes(to_array(
                &self.file.read_range(at, at + 8)?,
            )))
        };
        let (start, end) = (place(group)?, place(group + 1)?);
        if end > self.table {
            return Err(self.wrong_id_error(group * ROWS_PER_START));
        }
        self.file.read_range(start, end)
    }

    fn wrong_id_error(&self, row: u64) -> lookalike_io::error::Error {
        damaged_file(
            self.file.file_path(),
            &format!("the id of row {row} is not valid"),
        )
    }
}

fn as_utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Appends a length, 7 bits per byte.
pub(super) fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Reads the length at `at`. Returns the start of the data and their length.
pub(super) fn read_length_at(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut length = 0usize;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((at, length));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_in_any_order() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ids");
        for count in [0, 1, 63, 64, 65, 128, 5000] {
            let id = |row: usize| format!("{row}é{}", "x".repeat(row * row % 300));
            for size in [1, 63, 64, 100] {
                let mut writer = IdsWriter::create_file(&path).unwrap();
                let mut batch = IdBatch::default();
                for row in 0..count {
                    batch.push_id(&id(row));
                    if batch.len() == size {
                        writer.append_batch(&batch).unwrap();
                        batch.clear_ids();
                    }
                }
                writer.append_batch(&batch).unwrap();
                let seal = writer.finish_file().unwrap();
                let ids = StoredIds::open_file(&path).unwrap();
                assert_eq!((ids.len(), ids.seal()), (count as u64, seal));
                (0..count).for_each(|row| assert_eq!(ids.id_of_row(row as u64).unwrap(), id(row)));
                assert!(ids.id_of_row(count as u64).is_err());
                let mut next = 0;
                ids.visit_ids(|row, text| {
                    assert_eq!((row, text), (next, &id(next as usize)[..]));
                    next += 1;
                    Ok(())
                })
                .unwrap();
                assert_eq!(next, count as u64);
            }
        }
    }

    #[test]
    fn lengths_round_trip() {
        for length in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u32::MAX as usize] {
            let mut bytes = vec![0xff];
            put_length(length, &mut bytes);
            assert_eq!(read_length_at(&bytes, 1), Some((bytes.len(), length)));
            assert_eq!(read_length_at(&bytes[..bytes.len() - 1], 1), None);
        }
        assert_eq!(read_length_at(&[0x80; 9], 0), None);
    }
}
