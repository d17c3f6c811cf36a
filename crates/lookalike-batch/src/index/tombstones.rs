//! Tombstones: the removed rows of a segment.
//!
//! The file is a bit set with one bit per row. The first row is the lowest bit of the first byte, and
//! the length is padded to a multiple of 8 bytes.

use std::path::Path;

use lookalike_io::error::Result;

use crate::index::paged::{FileMagic, PagedFile, PagedWriter, damaged_file, to_array};

const TOMBSTONES_MAGIC: FileMagic = *b"LArm";

/// The removed rows of a segment.
#[derive(Debug, Clone, Default)]
pub(super) struct Tombstones {
    bits: Vec<u64>,
    count: u64,
}

impl Tombstones {
    /// Creates an empty set.
    pub(super) fn without_rows() -> Self {
        Self::default()
    }

    pub(super) fn count_removed(&self) -> u64 {
        self.count
    }

    #[inline]
    pub(super) fn contains_row(&self, row: u32) -> bool {
        let word = self.bits.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Returns a function that counts the removed rows before a row.
    pub(super) fn rank_before(&self) -> impl Fn(u32) -> u32 + '_ {
        let mut count = 0;
        let mut before = Vec::with_capacity(self.bits.len());
        for word in &self.bits {
            before.push(count);
            count += word.count_ones();
        }
        move |row| match self.bits.get((row / 64) as usize) {
            Some(word) => {
                let within = word & ((1 << (row % 64)) - 1);
                before[(row / 64) as usize] + within.count_ones()
            }
            None => count,
        }
    }

    /// Adds a row. Returns `true` if it was not removed before.
    pub(super) fn insert_row(&mut self, row: u32) -> bool {
        let (word, bit) = ((row / 64) as usize, 1 << (row % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        self.count += u64::from(new);
        new
    }

    /// Writes the set for a segment with this many rows and returns the seal.
    pub(super) fn write_file(&self, path: &Path, rows: u64) -> Result<u64> {
        let mut file = PagedWriter::create_file(path, TOMBSTONES_MAGIC)?;
        for word in 0..rows.div_ceil(64) as usize {
            file.put_bytes(&self.bits.get(word).copied().unwrap_or(0).to_le_bytes())?;
        }
        file.finish_file()
    }

    /// Reads the set of a segment with this many rows. Also returns its seal.
    pub(super) fn read_file(path: &Path, rows: u64) -> Result<(Self, u64)> {
        let file = PagedFile::open_file(path, TOMBSTONES_MAGIC)?;
        let bytes = file.read_range(0, file.byte_length())?;
        if bytes.len() as u64 != rows.div_ceil(64) * 8 {
            return Err(damaged_file(
                path,
                &format!("it does not belong to a segment of {rows} rows"),
            ));
        }
        let bits: Vec<_> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(to_array(word)))
            .collect();
        if !rows.is_multiple_of(64) && bits.last().is_some_and(|&last| last >> (rows % 64) != 0) {
            return Err(damaged_file(path, "it removes rows that do not exist"));
        }
        let count = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Ok((Self { bits, count }, file.file_checksum()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_round_trip_and_fit_their_segment() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("removed");
        for rows in [1u32, 63, 64, 65, 1000] {
            let mut removed = Tombstones::without_rows();
            for row in (0..rows).step_by(3) {
                assert!(removed.insert_row(row) && !removed.insert_row(row));
            }
            let seal = removed.write_file(&path, rows.into()).unwrap();
            let (read, own) = Tombstones::read_file(&path, rows.into()).unwrap();
            assert_eq!(
                (own, read.count_removed()),
                (seal, u64::from(rows.div_ceil(3)))
            );
            assert!((0..rows).all(|row| read.contains_row(row) == (row % 3 == 0)));
            let rank = read.rank_before();
            assert!((0..rows + 200).all(|row| rank(row) == row.min(rows).div_ceil(3)));
            assert!(!read.contains_row(rows) && !read.contains_row(u32::MAX));
            assert!(Tombstones::read_file(&path, u64::from(rows) + 64).is_err());
        }
        let mut beyond = Tombstones::without_rows();
        beyond.insert_row(60);
        beyond.write_file(&path, 64).unwrap();
        assert!(
            Tombstones::read_file(&path, 61).is_ok() && Tombstones::read_file(&path, 60).is_err()
        );
    }
}
