//! Tombstones: the removed rows of a segment.
//!
//! The file is a bit set with one bit per row. The first row is the lowest bit of the first byte, and
//! the length is padded to a multiple of 8 bytes.

use std::path::Path;

use super::paged::{Magic, PagedFile, PagedWriter, array, damaged};
use crate::error::Result;

const MAGIC: Magic = *b"LArm";

/// The removed rows of a segment.
#[derive(Debug, Clone, Default)]
pub(super) struct Removed {
    bits: Vec<u64>,
    count: u64,
}

impl Removed {
    /// Creates an empty set.
    pub(super) fn none() -> Self {
        Self::default()
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    #[inline]
    pub(super) fn contains(&self, row: u32) -> bool {
        let word = self.bits.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Returns a function that counts the removed rows before a row.
    pub(super) fn ranks(&self) -> impl Fn(u32) -> u32 + '_ {
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
    pub(super) fn insert(&mut self, row: u32) -> bool {
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
    pub(super) fn write(&self, path: &Path, rows: u64) -> Result<u64> {
        let mut file = PagedWriter::create(path, MAGIC)?;
        for word in 0..rows.div_ceil(64) as usize {
            file.put(&self.bits.get(word).copied().unwrap_or(0).to_le_bytes())?;
        }
        file.finish()
    }

    /// Reads the set of a segment with this many rows. Also returns its seal.
    pub(super) fn read(path: &Path, rows: u64) -> Result<(Self, u64)> {
        let file = PagedFile::open(path, MAGIC)?;
        let bytes = file.get(0, file.length())?;
        if bytes.len() as u64 != rows.div_ceil(64) * 8 {
            return Err(damaged(
                path,
                &format!("it does not belong to a segment of {rows} rows"),
            ));
        }
        let bits: Vec<_> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(array(word)))
            .collect();
        if !rows.is_multiple_of(64) && bits.last().is_some_and(|&last| last >> (rows % 64) != 0) {
            return Err(damaged(path, "it removes rows that do not exist"));
        }
        let count = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Ok((Self { bits, count }, file.seal()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_rows_come_back_and_fit_their_segment() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("removed");
        for rows in [1u32, 63, 64, 65, 1000] {
            let mut removed = Removed::none();
            for row in (0..rows).step_by(3) {
                assert!(removed.insert(row) && !removed.insert(row));
            }
            let seal = removed.write(&path, rows.into()).unwrap();
            let (read, own) = Removed::read(&path, rows.into()).unwrap();
            assert_eq!((own, read.count()), (seal, u64::from(rows.div_ceil(3))));
            assert!((0..rows).all(|row| read.contains(row) == (row % 3 == 0)));
            let rank = read.ranks();
            assert!((0..rows + 200).all(|row| rank(row) == row.min(rows).div_ceil(3)));
            assert!(!read.contains(rows) && !read.contains(u32::MAX));
            assert!(Removed::read(&path, u64::from(rows) + 64).is_err());
        }
        let mut beyond = Removed::none();
        beyond.insert(60);
        beyond.write(&path, 64).unwrap();
        assert!(Removed::read(&path, 61).is_ok() && Removed::read(&path, 60).is_err());
    }
}
