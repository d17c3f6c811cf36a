//! A bit set of recently inserted keys, which rejects nearly every key that was not inserted.

/// Keys of the documents from some number on.
#[derive(Debug)]
pub(super) struct Recent {
    bits: Box<[u64; WORDS]>,
    /// Number of the first document whose keys are included.
    first: u64,
    keys: usize,
}

/// Words of the bit set: 8 KiB, which stay in the first-level cache.
const WORDS: usize = 1024;

/// Number of keys after which the set is cleared: an eighth of the bits.
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
    // These bits choose neither the shard nor the chain of a key.
    let bit = (key >> 32) as usize % (64 * WORDS);
    (bit / 64, 1 << (bit % 64))
}

impl Recent {
    /// Clears the set if it is full. It then starts with the document of this number.
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

    /// Returns `true` if a document from `since` on may have been inserted under this key.
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
