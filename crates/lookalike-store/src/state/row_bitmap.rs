//! A set of rows of one partition, as a bitmap.

/// Rows, as distances from the first row of their partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBitmap(Vec<u64>);

impl RowBitmap {
    /// Adds a row; returns `true` if it was not in the set.
    pub(super) fn insert_row(&mut self, row: u64) -> bool {
        let (at, bit) = ((row / 64) as usize, 1 << (row % 64));
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        let is_new = self.0[at] & bit == 0;
        self.0[at] |= bit;
        is_new
    }

    pub(super) fn insert_all(&mut self, from: u64, count: u64) {
        for row in from..from + count {
            self.insert_row(row);
        }
    }

    pub(super) fn contains_row(&self, row: u64) -> bool {
        let word = self.0.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Returns bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        8 * self.0.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_set_once_inserted() {
        let mut rows = RowBitmap::default();
        assert!(rows.insert_row(64) && !rows.insert_row(64));
        rows.insert_all(126, 4);
        let found = (0..200).filter(|&row| rows.contains_row(row));
        assert!(found.eq([64, 126, 127, 128, 129]));
        assert!(!rows.contains_row(u64::MAX));
    }
}
