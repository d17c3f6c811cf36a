//! A bit set of recently inserted keys, which rejects nearly every key that was not inserted.

/// Keys of the documents from some number on.
#[derive(Debug)]
pub(super) struct RecentKeys {
    bits: Box<[u64; BIT_SET_WORDS]>,
    /// Number of the first document whose keys are included.
    first: u64,
    keys: usize,
}

/// Words of the bit set: 8 KiB, which stay in the first-level cache.
const BIT_SET_WORDS: usize = 1024;

/// Number of keys after which the set is cleared: an eighth of the bits. Tests clear it often.
const MOST_KEYS: usize = if cfg!(test) { 256 } else { BIT_SET_WORDS * 8 };

impl Default for RecentKeys {
    fn default() -> Self {
        Self {
            bits: Box::new([0; BIT_SET_WORDS]),
            first: 0,
            keys: 0,
        }
    }
}

fn bit_position(key: u64) -> (usize, u64) {
    // These bits choose neither the shard nor the chain of a key.
    let bit = (key >> 32) as usize % (64 * BIT_SET_WORDS);
    (bit / 64, 1 << (bit % 64))
}

impl RecentKeys {
    /// Clears the set if it is full. It then starts behind the document of this number, because keys may have been
    /// inserted for it before.
    pub(super) fn begin_anew(&mut self, number: u64) {
        if self.keys >= MOST_KEYS {
            self.bits.fill(0);
            self.first = number + 1;
            self.keys = 0;
        }
    }

    pub(super) fn add_key(&mut self, key: u64) {
        let (word, bit) = bit_position(key);
        self.bits[word] |= bit;
        self.keys += 1;
    }

    /// Returns `true` if a document from `since` on may have been inserted under this key.
    pub(super) fn may_contain(&self, key: u64, since: u64) -> bool {
        let (word, bit) = bit_position(key);
        since < self.first || self.bits[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix_bits;

    #[test]
    fn filter_accepts_added_keys_and_few_others() {
        let mut recent = RecentKeys::default();
        for number in 0..20_000u64 {
            recent.begin_anew(number);
            recent.add_key(mix_bits(2 * number));
            recent.add_key(mix_bits(2 * number + 1));
            let since = number.saturating_sub(100);
            for earlier in since..=number {
                assert!(recent.may_contain(mix_bits(2 * earlier), since));
                assert!(recent.may_contain(mix_bits(2 * earlier + 1), since));
            }
        }
        assert!(recent.first > 0);
        let wrong =
            (0..10_000).filter(|&key| recent.may_contain(mix_bits(1 << 40 | key), recent.first));
        assert!(wrong.count() < 1300);
    }

    /// Keys that were inserted for a document before another one began at its number may be found from that number on.
    #[test]
    fn keys_of_a_document_that_began_earlier_are_not_lost() {
        let mut recent = RecentKeys::default();
        recent.begin_anew(9);
        let key = mix_bits(1);
        recent.add_key(key);
        (0..MOST_KEYS as u64).for_each(|other| recent.add_key(mix_bits(2 + other)));
        recent.begin_anew(9);
        assert!(recent.may_contain(key, 9));
        assert!(!recent.may_contain(key, 10));
    }
}
