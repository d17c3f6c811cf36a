//! Rows of a segment whose texts have no fingerprint, because they are too short or have only symbols.
//! They match only equal texts.
//!
//! The file has one entry of 20 bytes per row: the key of the normalised text (16 bytes) and the row (4 bytes). Entries
//! are sorted by key, then by row. In the Hamming index these rows have a placeholder for a fingerprint.

use std::path::Path;

use lookalike_io::error::Result;

use crate::index::paged::{FileMagic, PagedFile, PagedWriter, damaged_file, to_array};
use crate::index::row_set::RowSet;

/// The last two letters stand for "poor", the name of these rows in the file format.
const UNFINGERPRINTED_MAGIC: FileMagic = *b"LApo";

/// Bytes per entry.
const ENTRY_BYTES: usize = 20;

/// The rows of a segment that have no fingerprint.
#[derive(Debug, Clone, Default)]
pub(super) struct UnfingerprintedRows {
    /// Keys and rows, sorted by key, then by row.
    entries: Vec<(u128, u32)>,
    /// The set of the rows.
    rows: RowSet,
}

impl UnfingerprintedRows {
    /// Creates the list from entries in any order.
    pub(super) fn from_unsorted(mut entries: Vec<(u128, u32)>) -> Self {
        entries.sort_unstable();
        Self::from_sorted(entries)
    }

    fn from_sorted(entries: Vec<(u128, u32)>) -> Self {
        let mut rows = RowSet::new();
        for &(_, row) in &entries {
            rows.insert_row(row);
        }
        Self { entries, rows }
    }

    pub(super) fn row_count(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns `true` if the row has no fingerprint.
    #[inline]
    pub(super) fn contains_row(&self, row: u32) -> bool {
        self.rows.contains_row(row)
    }

    /// Returns all keys and rows, in ascending order.
    pub(super) fn sorted_entries(&self) -> &[(u128, u32)] {
        &self.entries
    }

    /// Returns the rows with this text, in ascending order.
    pub(super) fn rows_with_key(&self, key: u128) -> impl Iterator<Item = u32> {
        let from = self.entries.partition_point(|&(other, _)| other < key);
        let found = self.entries[from..].iter();
        found
            .take_while(move |&&(other, _)| other == key)
            .map(|&(_, row)| row)
    }

    /// Writes the file and returns its seal.
    pub(super) fn write_file(&self, path: &Path) -> Result<u64> {
        let mut file = PagedWriter::create_file(path, UNFINGERPRINTED_MAGIC)?;
        for (key, row) in &self.entries {
            file.put_bytes(&key.to_le_bytes())?;
            file.put_bytes(&row.to_le_bytes())?;
        }
        file.finish_file()
    }

    /// Reads the file of a segment with this many rows. Also returns its seal.
    pub(super) fn read_file(path: &Path, rows: u64) -> Result<(Self, u64)> {
        let file = PagedFile::open_file(path, UNFINGERPRINTED_MAGIC)?;
        let bytes = file.read_range(0, file.byte_length())?;
        let entry = |bytes: &[u8]| {
            let (key, row) = bytes.split_at(16);
            (
                u128::from_le_bytes(to_array(key)),
                u32::from_le_bytes(to_array(row)),
            )
        };
        let entries: Vec<_> = bytes.chunks_exact(ENTRY_BYTES).map(entry).collect();
        let whole = bytes.len().is_multiple_of(ENTRY_BYTES);
        let ascending = entries.windows(2).all(|pair| pair[0] < pair[1]);
        let are_in_range = entries.iter().all(|&(_, row)| u64::from(row) < rows);
        let damaged = || {
            let what = format!(
                "its entries are cut, out of order or repeated, or name rows that a segment of {rows} rows has not"
            );
            damaged_file(path, &what)
        };
        if !whole || !ascending || !are_in_range {
            return Err(damaged());
        }
        let unfingerprinted = Self::from_sorted(entries);
        if unfingerprinted.rows.count_rows() != unfingerprinted.row_count() {
            return Err(damaged());
        }
        Ok((unfingerprinted, file.seal()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfingerprinted_rows_round_trip() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("poor");
        for count in [1u32, 2, 63, 64, 65, 5000] {
            // Three rows per text, inserted in descending order.
            let key = |row: u32| u128::from(row / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15 << 40);
            let unfingerprinted = UnfingerprintedRows::from_unsorted(
                (0..count).rev().map(|row| (key(row), 2 * row)).collect(),
            );
            let seal = unfingerprinted.write_file(&path).unwrap();
            let rows = u64::from(2 * count - 1);
            let (read, own) = UnfingerprintedRows::read_file(&path, rows).unwrap();
            assert_eq!((own, read.row_count()), (seal, u64::from(count)));
            assert!((0..2 * count).all(|row| read.contains_row(row) == (row % 2 == 0)));
            for row in 0..count {
                let alike = (row / 3 * 3..count.min(row / 3 * 3 + 3)).map(|row| 2 * row);
                assert!(read.rows_with_key(key(row)).eq(alike));
            }
            assert_eq!(read.rows_with_key(1).count(), 0);
            assert!(UnfingerprintedRows::read_file(&path, rows - 1).is_err());
        }
        // A row that occurs twice, an entry that occurs twice, and entries out of order.
        for entries in [
            vec![(1, 1), (2, 1)],
            vec![(1, 1), (1, 1)],
            vec![(2, 1), (1, 2)],
        ] {
            UnfingerprintedRows::from_sorted(entries)
                .write_file(&path)
                .unwrap();
            assert!(UnfingerprintedRows::read_file(&path, 10).is_err());
        }
    }
}
