//! Which keys were added of late: a set of bits that says no for nearly every key that was not.

/// Keys of the documents from some number on.
#[derive(Debug)]
pub(super) struct Recent {
    bits: Box<[u64; WORDS]>,
    /// The number of the first document whose keys are in it.
    first: u64,
    keys: usize,
}

/// 8 KiB: they stay in the nearest cache.
const WORDS: usize = 1024;

/// An eighth of the bits.
const MOST_KEYS: usize = WORDS * 8;

impl Default for Recent {
    fn default() -> Self {
        Self {
            bits: Box::new([0; WORDS]),
            first: 0,
            keys: 0,
        }
    }
}

fn place(key: u64) -> (usize, u64) {
    // Bits that decide neither the shard nor the chain of a key.
    let bit = (key >> 32) as usize % (64 * WORDS);
    (bit / 64, 1 << (bit % 64))
}

impl Recent {
    /// Begins anew with the document with this number, if there are many keys.
    pub(super) fn begin(&mut self, number: u64) {
        if self.keys >= MOST_KEYS {
            self.bits.fill(0);
            self.first = number;
            self.keys = 0;
        }
    }

    pub(super) fn add(&mut self, key: u64) {
        let (word, bit) = place(key);
        self.bits[word] |= bit;
        self.keys += 1;
    }

    /// Whether a document from `since` on may have been added under this key.
    pub(super) fn may_have(&self, key: u64, since: u64) -> bool {
        let (word, bit) = place(key);
        since < self.first || self.bits[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn what_was_added_may_be_there_and_little_else() {
        let mut recent = Recent::default();
        for number in 0..20_000u64 {
            recent.begin(number);
            recent.add(mix(2 * number));
            recent.add(mix(2 * number + 1));
            let since = number.saturating_sub(100);
            for earlier in since..=number {
                assert!(recent.may_have(mix(2 * earlier), since));
                assert!(recent.may_have(mix(2 * earlier + 1), since));
            }
        }
        assert!(recent.first > 0);
        let wrong = (0..10_000).filter(|&key| recent.may_have(mix(1 << 40 | key), recent.first));
        assert!(wrong.count() < 1300);
    }
}
