//! A filter that finds out which keys occur more than once, because a bucket of one document needs no sorting.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::arch::prefetch;

/// Largest number of keys for which a [`SeenTwiceFilter`] is sized: 64 MiB.
pub(crate) const MAX_SEEN_TWICE: usize = 1 << 25;

/// An approximate set that separates keys seen twice from most keys seen once, in 16 to 32 bits a key.
///
/// Each key has two bits in one word: seen once, and seen twice. A key that was seen twice is always
/// reported as such. A key that was seen once may be reported as seen twice if another key has the same
/// bits.
pub(crate) struct SeenTwiceFilter {
    words: Vec<AtomicU64>,
}

impl SeenTwiceFilter {
    /// Returns an empty filter for about this many keys.
    pub(crate) fn new(keys: usize) -> Self {
        let words = (keys / 4).next_power_of_two();
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Returns the word of a key and the lower of its two bits, which means "seen once". The next bit
    /// means "seen twice".
    fn bit_position(&self, key: u64) -> (&AtomicU64, u64) {
        let word = &self.words[(key >> 5) as usize & (self.words.len() - 1)];
        (word, 1 << (2 * (key % 32)))
    }

    /// Prefetches the words of keys.
    pub(crate) fn prefetch_keys(&self, keys: &[u64]) {
        keys.iter()
            .for_each(|&key| prefetch(self.bit_position(key).0));
    }

    /// Records a key.
    pub(crate) fn record_key(&self, key: u64) {
        let (word, once) = self.bit_position(key);
        let before = word.fetch_or(once, Ordering::Relaxed);
        if before & once != 0 && before & once << 1 == 0 {
            word.fetch_or(once << 1, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the key was recorded at least once. May be wrong in this direction alone.
    pub(crate) fn may_be_recorded(&self, key: u64) -> bool {
        let (word, once) = self.bit_position(key);
        word.load(Ordering::Relaxed) & once != 0
    }

    /// Returns `true` if the key was recorded at least twice. May be wrong in this direction alone.
    pub(crate) fn may_be_shared(&self, key: u64) -> bool {
        let (word, once) = self.bit_position(key);
        word.load(Ordering::Relaxed) & once << 1 != 0
    }
}
