//! The tokens of items, numbered: a hash table with linear probing.
//!
//! A *term* is a token's number times two, and one more if the token is a word. So the width of a token is known without
//! a look-up.
//!
//! Cost: one look-up reads one cache line as a rule. Words that are frequent in documents stay in the cache.

/// The term of a token that no item has.
pub(super) const NO_TERM: u32 = u32::MAX;

/// Largest code point: the value of a larger token is the hash of a word.
const MAX_CHARACTER: u64 = 0x10_ffff;

/// Returns the width of a term: 5 for a word, and 3 for a character of a script without spaces.
#[inline]
pub(super) fn term_width(term: u32) -> u32 {
    3 + 2 * (term & 1)
}

/// Returns the number of a term's token, from 0.
#[inline]
pub(super) fn term_index(term: u32) -> usize {
    (term >> 1) as usize
}

/// Multiplier of Fibonacci hashing: 2⁶⁴ divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Tokens that are looked up while the slot of another one is loaded.
const PREFETCH_DISTANCE: usize = 16;

/// Slots of the smallest table.
const MIN_SLOTS: usize = 64;

/// Tokens and their terms.
#[derive(Clone, Debug)]
pub(super) struct TermTable {
    /// Token and term; the term is [`NO_TERM`] in an empty slot.
    slots: Vec<(u64, u32)>,
    /// Bits of the product that the number of a slot does not have.
    shift: u32,
    term_count: u32,
}

impl TermTable {
    pub(super) fn new() -> Self {
        Self::with_slots(MIN_SLOTS)
    }

    fn with_slots(slots: usize) -> Self {
        Self {
            slots: vec![(0, NO_TERM); slots],
            shift: 64 - slots.trailing_zeros(),
            term_count: 0,
        }
    }

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.term_count as usize
    }

    /// Returns the term of a token; [`NO_TERM`] if no item has it.
    #[inline]
    pub(super) fn find_term(&self, token: u64) -> u32 {
        let (found, term) = self.slots[self.find_slot(token)];
        debug_assert!(term == NO_TERM || found == token);
        term
    }

    /// Appends the terms of tokens. The slots of rare words are in no cache, so that several are loaded at the same time.
    pub(super) fn append_terms(&self, tokens: &[u64], terms: &mut Vec<u32>) {
        let found = tokens.iter().enumerate().map(|(at, &token)| {
            if let Some(&later) = tokens.get(at + PREFETCH_DISTANCE) {
                crate::prefetch(&self.slots[self.home_slot(later)]);
            }
            self.find_term(token)
        });
        terms.extend(found);
    }

    /// Returns the term of a token, and `true` if it is new.
    pub(super) fn add_term(&mut self, token: u64) -> (u32, bool) {
        let slot = self.find_slot(token);
        if self.slots[slot].1 != NO_TERM {
            return (self.slots[slot].1, false);
        }
        let term = self.term_count << 1 | u32::from(token > MAX_CHARACTER);
        self.slots[slot] = (token, term);
        self.term_count += 1;
        if 2 * self.len() > self.slots.len() {
            self.grow();
        }
        (term, true)
    }

    /// Returns the slot of a token, or the empty slot where it belongs.
    #[inline]
    fn find_slot(&self, token: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.home_slot(token);
        loop {
            let (found, term) = self.slots[slot];
            if term == NO_TERM || found == token {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    #[inline]
    fn home_slot(&self, token: u64) -> usize {
        (token.wrapping_mul(MULTIPLIER) >> self.shift) as usize
    }

    fn grow(&mut self) {
        let mut larger = Self::with_slots(2 * self.slots.len());
        for &(token, term) in self.slots.iter().filter(|(_, term)| *term != NO_TERM) {
            let slot = larger.find_slot(token);
            larger.slots[slot] = (token, term);
        }
        larger.term_count = self.term_count;
        *self = larger;
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_numbered_in_order() {
        let mut table = TermTable::new();
        let tokens: Vec<u64> = (0..10_000_u64).map(|at| at * at * 977).collect();
        for (number, &token) in tokens.iter().enumerate() {
            assert_eq!(table.find_term(token), NO_TERM);
            let term = 2 * number as u32 + u32::from(token > MAX_CHARACTER);
            assert_eq!(table.add_term(token), (term, true));
            assert_eq!(table.add_term(token), (term, false));
        }
        for (number, &token) in tokens.iter().enumerate() {
            assert_eq!(term_index(table.find_term(token)), number);
        }
        assert_eq!(table.len(), tokens.len());
        let some = [tokens[7], 1 << 40 | 3, tokens[8]];
        let mut terms = vec![5];
        table.append_terms(&some.repeat(20), &mut terms);
        let found = some.map(|token| table.find_term(token));
        assert_eq!(found[1], NO_TERM);
        assert_eq!((terms[0], &terms[1..]), (5, &found.repeat(20)[..]));
    }
}
