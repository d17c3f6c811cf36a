//! Seeds: short runs of tokens that find where an item may stand in a document.
//!
//! A seed begins at every token of a unit. It has at least the width [`MIN_SEED_WIDTH`], where a word has the width 5 and
//! a character of a script without spaces 3. It grows by a token as long as more than [`MAX_POSTINGS`] places of units
//! begin with it, because "which of the following" finds too many. So a seed is as short as edits need it and as long as
//! speed needs it.
//!
//! ```text
//!  63        34 33  32 31           0
//! +------------+------+--------------+   kind 0: empty
//! | hash check | kind | value        |        1: value is the only place
//! +------------+------+--------------+        2: value is where the list of places begins
//!                                             3: as 2, and longer seeds begin with this one
//! ```
//!
//! A list is its length and the places, ascending. A place is the number of a token, counted through all units.
//!
//! Memory: 8 bytes for each slot, of which 35 to 70 % are in use; 4 bytes for each place in a list; two bytes for each
//! seed in a filter. Cost of a token that begins no seed: one bit of the filter.

use rayon::slice::ParallelSliceMut;

use super::term_table::{NO_TERM, term_width};
use crate::hash::fold_product;

/// Smallest width of a seed: three words or four characters.
const MIN_SEED_WIDTH: u32 = 12;

/// Largest number of places that a seed finds, unless their units end with it.
const MAX_POSTINGS: usize = 64;

/// Bits of the filter for each seed, at least.
const FILTER_BITS_PER_SEED: usize = 16;

/// Tokens of a document whose filter bits are loaded at the same time.
const LOOKUP_BATCH: usize = 32;

const SINGLE_PLACE: u64 = 1;
const PLACE_LIST: u64 = 2;
const EXTENDED_LIST: u64 = 3;

/// First hash of a seed, and the multiplier of its tokens.
const HASH_START: u64 = 0x517c_c1b7_2722_0a95;
const HASH_STEP: u64 = 0x2545_f491_4f6c_dd1d;

/// A seed and a place in a document where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeedHit {
    /// Number of the seed's first token, counted through all units.
    pub(super) place: u32,
    /// Number of the document's token.
    pub(super) at: u32,
}

/// The seeds of all units.
#[derive(Clone, Debug)]
pub(super) struct SeedIndex {
    slots: Vec<u64>,
    lists: Vec<u32>,
    filter: Vec<u64>,
    /// Bits of a hash that the number of a filter bit does not have.
    filter_shift: u32,
}

/// A seed while the index is built.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GrowingSeed {
    hash: u64,
    place: u32,
    /// Number of the token behind the seed.
    end: u32,
}

/// A finished seed: its places, and `true` if longer ones begin with it.
struct FinishedSeed {
    hash: u64,
    places: std::ops::Range<u32>,
    is_extended: bool,
}

impl SeedIndex {
    /// Builds the index of units. `terms` has the tokens of all units, and `units` the range of each, ascending. `share` is
    /// called with a place and the number of units with the shortest seed there.
    ///
    /// Cost: a few sorts of all tokens on all threads of the pool.
    pub(super) fn build(
        terms: &[u32],
        units: impl Iterator<Item = std::ops::Range<u32>>,
        mut share: impl FnMut(u32, u32),
    ) -> Self {
        let mut growing = Vec::new();
        let mut ends = Vec::new();
        for unit in units {
            ends.push(unit.end);
            for place in unit.clone() {
                let within = &terms[place as usize..unit.end as usize];
                if let Some((hash, length)) = first_seed(within) {
                    let end = place + length as u32;
                    growing.push(GrowingSeed { hash, place, end });
                }
            }
        }
        let mut lists: Vec<u32> = Vec::new();
        let mut finished: Vec<FinishedSeed> = Vec::new();
        growing.par_sort_unstable();
        for seeds in growing.chunk_by(|a, b| a.hash == b.hash) {
            let unit_of = |seed: &GrowingSeed| ends.partition_point(|&end| end <= seed.place);
            let units = seeds.chunk_by(|a, b| unit_of(a) == unit_of(b)).count() as u32;
            seeds.iter().for_each(|seed| share(seed.place, units));
        }
        while !growing.is_empty() {
            growing.par_sort_unstable();
            let mut longer = Vec::new();
            for seeds in growing.chunk_by(|a, b| a.hash == b.hash) {
                let extended_before = longer.len();
                let first = lists.len() as u32;
                for seed in seeds {
                    let can_grow =
                        seeds.len() > MAX_POSTINGS && ends.binary_search(&seed.end).is_err();
                    if can_grow {
                        longer.push(GrowingSeed {
                            hash: extend_hash(seed.hash, terms[seed.end as usize]),
                            end: seed.end + 1,
                            ..*seed
                        });
                    } else if lists.len() - (first as usize) < MAX_POSTINGS {
                        lists.push(seed.place);
                    }
                }
                finished.push(FinishedSeed {
                    hash: seeds[0].hash,
                    places: first..lists.len() as u32,
                    is_extended: longer.len() > extended_before,
                });
            }
            growing = longer;
        }
        Self::from_finished(&finished, &lists)
    }

    fn from_finished(finished: &[FinishedSeed], places: &[u32]) -> Self {
        let slots = (finished.len() * 10 / 7).next_power_of_two().max(64);
        let bits = (finished.len() * FILTER_BITS_PER_SEED).next_power_of_two();
        let bits = bits.max(64);
        let mut index = Self {
            slots: vec![0; slots],
            lists: Vec::new(),
            filter: vec![0; bits / 64],
            filter_shift: 64 - bits.trailing_zeros(),
        };
        for seed in finished {
            let list = &places[seed.places.start as usize..seed.places.end as usize];
            let (kind, value) = match (seed.is_extended, list) {
                (false, &[place]) => (SINGLE_PLACE, place),
                (is_extended, list) => {
                    let value = index.lists.len() as u32;
                    index.lists.push(list.len() as u32);
                    index.lists.extend_from_slice(list);
                    let kind = if is_extended {
                        EXTENDED_LIST
                    } else {
                        PLACE_LIST
                    };
                    (kind, value)
                }
            };
            index.insert_slot(seed.hash, kind, value);
            let bit = seed.hash >> index.filter_shift;
            index.filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        index.lists.shrink_to_fit();
        index
    }

    fn insert_slot(&mut self, hash: u64, kind: u64, value: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot_check(hash) | kind << 32 | u64::from(value);
    }

    /// Returns kind and value of a seed.
    fn find_slot(&self, hash: u64) -> Option<(u64, u32)> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        let check = slot_check(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot & CHECK_MASK == check {
                return Some((slot >> 32 & 3, slot as u32));
            }
            at = (at + 1) & mask;
        }
    }

    fn is_in_filter(&self, hash: u64) -> bool {
        let bit = hash >> self.filter_shift;
        self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Appends the seeds that stand in a document. Its tokens that no item has are [`NO_TERM`].
    pub(super) fn find_seeds(&self, terms: &[u32], hits: &mut Vec<SeedHit>) {
        let mut hashes = [(0, 0, 0); LOOKUP_BATCH];
        for start in (0..terms.len()).step_by(LOOKUP_BATCH) {
            let end = (start + LOOKUP_BATCH).min(terms.len());
            let mut count = 0;
            for at in start..end {
                if let Some((hash, length)) = first_seed(&terms[at..]) {
                    crate::prefetch(&self.filter[(hash >> self.filter_shift) as usize / 64]);
                    hashes[count] = (hash, at, length);
                    count += 1;
                }
            }
            for &(hash, at, length) in &hashes[..count] {
                if self.is_in_filter(hash) {
                    self.push_hits(hash, terms, at, length, hits);
                }
            }
        }
    }

    /// Appends the places of the longest seeds that begin with a token of a document.
    fn push_hits(
        &self,
        mut hash: u64,
        terms: &[u32],
        at: usize,
        length: usize,
        hits: &mut Vec<SeedHit>,
    ) {
        let mut end = at + length;
        while let Some((kind, value)) = self.find_slot(hash) {
            let at = at as u32;
            if kind == SINGLE_PLACE {
                hits.push(SeedHit { place: value, at });
                return;
            }
            let first = value as usize + 1;
            let places = &self.lists[first..first + self.lists[value as usize] as usize];
            hits.extend(places.iter().map(|&place| SeedHit { place, at }));
            match terms.get(end) {
                Some(&next) if kind == EXTENDED_LIST && next != NO_TERM => {
                    hash = extend_hash(hash, next);
                    end += 1;
                }
                _ => return,
            }
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.lists) + size_of_val(&*self.filter)
    }
}

/// The bits of a slot that are part of the hash.
const CHECK_MASK: u64 = !(u64::MAX >> 30);

/// Returns the part of a hash that a slot keeps.
fn slot_check(hash: u64) -> u64 {
    hash & CHECK_MASK
}

fn extend_hash(hash: u64, term: u32) -> u64 {
    fold_product(hash ^ u64::from(term), HASH_STEP ^ u64::from(term) << 32)
}

/// Returns `true` if some tokens are enough for a seed.
pub(super) fn has_seed(terms: &[u32]) -> bool {
    first_seed(terms).is_some()
}

/// Returns the number of tokens of the shortest seed at the front of some tokens of a unit.
pub(super) fn seed_length(terms: &[u32]) -> usize {
    let mut width = 0;
    let widths = terms.iter().map(|&term| term_width(term));
    let before = widths.take_while(|&next| {
        let is_short = width < MIN_SEED_WIDTH;
        width += next;
        is_short
    });
    before.count()
}

/// Returns hash and number of tokens of the shortest seed at the front of some tokens; `None` if they are too few, or if
/// no item has one of them.
#[inline]
fn first_seed(terms: &[u32]) -> Option<(u64, usize)> {
    let (mut hash, mut width, mut length) = (HASH_START, 0, 0);
    while width < MIN_SEED_WIDTH {
        let &term = terms.get(length).filter(|&&term| term != NO_TERM)?;
        hash = extend_hash(hash, term);
        width += term_width(term);
        length += 1;
    }
    Some((hash, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the terms of words with these numbers.
    fn words(numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
        numbers.into_iter().map(|number| 2 * number + 1).collect()
    }

    #[test]
    fn seeds_find_every_place_of_rare_runs() {
        let terms = words(0..200);
        let index = SeedIndex::build(&terms, [0..100, 100..200].into_iter(), |_, units| {
            assert_eq!(units, 1)
        });
        let mut hits = Vec::new();
        let mut document = words([7, 8, 9, 0, 50, 51, 52, 53]);
        document[3] = NO_TERM;
        index.find_seeds(&document, &mut hits);
        let found: Vec<_> = hits.iter().map(|hit| (hit.place, hit.at)).collect();
        assert_eq!(found, [(7, 0), (50, 4), (51, 5)]);
        hits.clear();
        // 98, 99 and 100 are of two units.
        index.find_seeds(&words([98, 99, 100, 101]), &mut hits);
        assert_eq!(hits, []);
    }

    #[test]
    fn frequent_seeds_grow_until_they_are_rare() {
        // Every unit begins with 1, 2, 3, 4; one of a hundred goes on with the same number as another.
        let units = 300;
        let terms = words((0..units).flat_map(|unit| [1, 2, 3, 4, 1000 + unit % 200, 5000 + unit]));
        let ranges = (0..units).map(|unit| 6 * unit..6 * unit + 6);
        let index = SeedIndex::build(&terms, ranges, |_, _| ());
        let mut hits = Vec::new();
        index.find_seeds(&words([1, 2, 3, 4, 1007]), &mut hits);
        hits.sort_unstable();
        let places: Vec<_> = hits.iter().map(|hit| hit.place).collect();
        assert_eq!(places, [42, 43, 44, 1242, 1243, 1244]);
        hits.clear();
        index.find_seeds(&words([1, 2, 3, 4, 9]), &mut hits);
        assert_eq!(hits, []);
    }

    #[test]
    fn units_that_end_within_a_frequent_seed_are_found_up_to_a_limit() {
        let terms = words((0..100).flat_map(|_| [1, 2, 3]));
        let ranges = (0..100).map(|unit| 3 * unit..3 * unit + 3);
        let index = SeedIndex::build(&terms, ranges, |_, units| assert_eq!(units, 100));
        let mut hits = Vec::new();
        index.find_seeds(&words([1, 2, 3]), &mut hits);
        assert_eq!(hits.len(), MAX_POSTINGS);
    }
}
