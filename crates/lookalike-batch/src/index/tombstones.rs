//! Tombstones: the removed rows of a segment.
//!
//! The file is a bit set with one bit per row. The first row is the lowest bit of the first byte, and
//! the length is padded to a multiple of 8 bytes.

use std::path::Path;

use lookalike_io::error::Result;

use crate::index::paged::{FileMagic, PagedFile, PagedWriter, damaged_file, to_array};
use crate::index::row_set::RowSet;

const TOMBSTONES_MAGIC: FileMagic = *b"LArm";

/// Writes the removed rows of a segment with `rows` rows. Returns the seal of the file.
pub(super) fn write_tombstones(removed: &RowSet, path: &Path, rows: u64) -> Result<u64> {
    let mut file = PagedWriter::create_file(path, TOMBSTONES_MAGIC)?;
    for word in 0..rows.div_ceil(64) as usize {
        file.put_bytes(&removed.word_at(word).to_le_bytes())?;
    }
    file.finish_file()
}

/// Reads the removed rows of a segment with `rows` rows. Also returns the seal of the file.
pub(super) fn read_tombstones(path: &Path, rows: u64) -> Result<(RowSet, u64)> {
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
    Ok((RowSet::from_bits(bits), file.seal()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_round_trip_and_fit_their_segment() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("removed");
        for rows in [1u32, 63, 64, 65, 1000] {
            let mut removed = RowSet::new();
            for row in (0..rows).step_by(3) {
                assert!(removed.insert_row(row) && !removed.insert_row(row));
            }
            let seal = write_tombstones(&removed, &path, rows.into()).unwrap();
            let (read, own) = read_tombstones(&path, rows.into()).unwrap();
            assert_eq!(
                (own, read.count_rows()),
                (seal, u64::from(rows.div_ceil(3)))
            );
            assert!((0..rows).all(|row| read.contains_row(row) == (row % 3 == 0)));
            let rank = read.rank_before();
            assert!((0..rows + 200).all(|row| rank(row) == row.min(rows).div_ceil(3)));
            assert!(!read.contains_row(rows) && !read.contains_row(u32::MAX));
            assert!(read_tombstones(&path, u64::from(rows) + 64).is_err());
        }
        let mut beyond = RowSet::new();
        beyond.insert_row(60);
        write_tombstones(&beyond, &path, 64).unwrap();
        assert!(read_tombstones(&path, 61).is_ok() && read_tombstones(&path, 60).is_err());
    }
}
