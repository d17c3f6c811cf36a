//! Numbers that follow from a seed, the same on every machine and in every version.

use crate::hash::{mix_bits, value_hash};

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator of a seed, a document and a purpose: its numbers depend on nothing else, such
    /// as the order in which documents are edited.
    pub(crate) fn from_document(seed: u64, document: &str, purpose: &str) -> Self {
        let named = mix_bits(seed ^ value_hash(document.as_bytes()));
        Self(mix_bits(named ^ value_hash(purpose.as_bytes())))
    }

    /// The next 64 bits.
    pub(crate) fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix_bits(self.0)
    }

    /// A number below `limit`, which must not be 0; its bias is below limit / 2⁶⁴.
    pub(crate) fn next_below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next_bits()) * limit as u128) >> 64) as usize
    }

    /// One of a list, unless it is empty.
    pub(crate) fn choose_one<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        (!list.is_empty()).then(|| &list[self.next_below(list.len())])
    }

    /// Another order of a list.
    pub(crate) fn shuffle_list<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.next_below(at + 1));
        }
    }

    /// `count` different numbers below `limit`, ascending; all of them if there are no more.
    pub(crate) fn choose_places(&mut self, count: usize, limit: usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..limit).collect();
        let count = count.min(limit);
        for at in 0..count {
            let other = at + self.next_below(limit - at);
            places.swap(at, other);
        }
        places.truncate(count);
        places.sort_unstable();
        places
    }
}
