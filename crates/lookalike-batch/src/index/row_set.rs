//! A set of rows of a segment: the removed ones, or those without a fingerprint.

/// A set of row numbers, with one bit per row up to the largest one.
#[derive(Debug, Clone, Default)]
pub(super) struct RowSet {
    bits: Vec<u64>,
    count: u64,
}

impl RowSet {
    /// Creates an empty set.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Creates a set from its bits. The first row is the lowest bit of the first word.
    pub(super) fn from_bits(bits: Vec<u64>) -> Self {
        let count = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Self { bits, count }
    }

    /// Returns the 64 bits at `index`; 0 beyond the largest row.
    pub(super) fn word_at(&self, index: usize) -> u64 {
        self.bits.get(index).copied().unwrap_or(0)
    }

    /// Returns the number of rows in the set.
    pub(super) fn count_rows(&self) -> u64 {
        self.count
    }

    #[inline]
    pub(super) fn contains_row(&self, row: u32) -> bool {
        let word = self.bits.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Returns a function that counts the rows of the set before a row.
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

    /// Adds a row. Returns `true` if it was not in the set before.
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
}
