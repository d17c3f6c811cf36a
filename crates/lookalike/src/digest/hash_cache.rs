//! A cache of the hashes of short messages. Most words of a text, and most windows of four letters, are
//! repeated, and looking one up costs less than hashing it.
//!
//! The cache is direct-mapped: a message has one slot, and a later message in the same slot replaces it.
//! Memory is therefore bounded. The messages themselves are compared, so results never depend on earlier
//! messages.
//!
//! Cost: [`SLOT_COUNT`] times 32 bytes, from the first message on.

use std::ops::Range;

/// Number of slots, chosen to fit into a second-level cache.
const SLOT_COUNT: usize = 1 << 15;

/// Length in bytes of the longest message that is cached.
const LONGEST_MESSAGE: usize = 15;

/// A message of at most [`LONGEST_MESSAGE`] bytes, padded with zeros, with its length in the highest byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShortMessage(u128);

impl ShortMessage {
    /// Returns the message in a range of `bytes`, or `None` if it is empty or too long.
    #[inline(always)]
    pub(crate) fn new(bytes: &[u8], range: &Range<usize>) -> Option<Self> {
        let length = range.len();
        if length == 0 || length > LONGEST_MESSAGE {
            return None;
        }
        let all = match bytes[range.start..].first_chunk() {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => {
                let mut chunk = [0; 16];
                chunk[..length].copy_from_slice(&bytes[range.clone()]);
                u128::from_le_bytes(chunk)
            }
        };
        let message = all & !(u128::MAX << (8 * length));
        Some(Self(message | (length as u128) << 120))
    }

    /// Creates a message of four bytes.
    #[inline(always)]
    pub(crate) fn from_word(word: u32) -> Self {
        Self(u128::from(word) | 4 << 120)
    }

    #[inline(always)]
    fn cache_slot(self) -> usize {
        const SLOT_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let folded = (self.0 as u64) ^ ((self.0 >> 64) as u64).wrapping_mul(SLOT_MULTIPLIER);
        (folded.wrapping_mul(SLOT_MULTIPLIER) >> (64 - SLOT_COUNT.trailing_zeros())) as usize
    }
}

/// An empty slot. It differs from every message, because no message has length 0.
const EMPTY_SLOT: (ShortMessage, u128) = (ShortMessage(0), 0);

/// Messages with their hashes, all by the same function.
#[derive(Debug, Default)]
pub(crate) struct HashCache {
    places: Vec<(ShortMessage, u128)>,
}

impl HashCache {
    /// Allocates the slots if necessary. Without slots nothing is cached.
    pub(crate) fn allocate_slots(&mut self) {
        self.places.resize(SLOT_COUNT, EMPTY_SLOT);
    }

    /// Removes all messages.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
    }

    /// Returns the hash of a message if it is cached.
    #[inline(always)]
    pub(crate) fn get(&self, message: ShortMessage) -> Option<u128> {
        let (hash, is_known) = self.probe_slot(message);
        is_known.then_some(hash)
    }

    /// Returns the hash in the slot of a message, and whether it belongs to the message. There is no branch,
    /// so that many slots can be loaded from memory at the same time.
    #[inline(always)]
    pub(crate) fn probe_slot(&self, message: ShortMessage) -> (u128, bool) {
        let &(known, hash) = self.places.get(message.cache_slot()).unwrap_or(&EMPTY_SLOT);
        (hash, known == message && message != ShortMessage::default())
    }

    /// Caches the hash of a message.
    #[inline(always)]
    pub(crate) fn remember_hash(&mut self, message: ShortMessage, hash: u128) {
        if let Some(place) = self.places.get_mut(message.cache_slot()) {
            *place = (message, hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_distinct_at_every_length() {
        let bytes = b"\0\0\0\0abcdefghijklmnopq\0\0\0\0";
        let mut all = Vec::new();
        for start in 0..bytes.len() {
            for end in start..=bytes.len() {
                let short = ShortMessage::new(bytes, &(start..end));
                assert_eq!(
                    short.is_some(),
                    (1..=LONGEST_MESSAGE).contains(&(end - start))
                );
                all.extend(short.map(|short| (short, &bytes[start..end])));
            }
        }
        for &(a, one) in &all {
            assert!(all.iter().all(|&(b, other)| (a == b) == (one == other)));
        }
        let word = ShortMessage::new(bytes, &(4..8));
        assert_eq!(
            word,
            Some(ShortMessage::from_word(u32::from_le_bytes(*b"abcd")))
        );
    }

    #[test]
    fn cached_hashes_are_correct_or_evicted() {
        let mut seen = HashCache::default();
        let message = |at: u32| ShortMessage::from_word(at);
        assert_eq!(seen.get(message(7)), None);
        seen.remember_hash(message(7), 7);
        assert_eq!(seen.get(message(7)), None);
        seen.allocate_slots();
        for at in 0..200_000 {
            assert_eq!(seen.get(message(at)), None);
            seen.remember_hash(message(at), at.into());
            assert_eq!(seen.get(message(at)), Some(at.into()));
        }
        let left = (0..200_000).filter(|&at| seen.get(message(at)).is_some());
        assert!(left.clone().count() <= SLOT_COUNT);
        left.for_each(|at| assert_eq!(seen.get(message(at)), Some(at.into())));
        seen.clear();
        assert!((0..200_000).all(|at| seen.get(message(at)).is_none()));
    }
}
