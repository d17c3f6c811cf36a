//! Seeds: short runs of tokens that find where an item may stand in a document.
//!
//! A seed begins at every token of a unit. It has at least the width [`MIN_SEED_WIDTH`], where a word has the width 5 and
//! a character of a script without spaces 3. It grows by a token as long as more than [`MAX_POSTINGS`] places of units
//! begin with it, because "which of the following" finds too many. So a seed is as short as edits need it and as long as
//! speed needs it.
//!
//! ```text
//!  63        38 37  34 33  32 31           0
//! +------------+------+------+--------------+   kind 0: empty
//! | hash check | cover| kind | value        |        1: value is the only place, whose cover is here
//! +------------+------+------+--------------+        2: value is where the list of places begins
//!                                                    3: as 2, and longer seeds begin with this one
//! ```
//!
//! A list is its length, the places, ascending, and the covers of eight places in each further number. A place is the
//! number of a token, counted through all units. A cover is an upper bound of the part of its unit that the seed at a
//! place covers. It stands beside the place, so that most hits are rejected by it alone (`seed_prefilter`).
//!
//! Memory: 8 bytes for each slot, of which 35 to 70 % are in use; 4½ bytes for each place in a list; two bytes for each
//! seed in a filter. Cost of a token that begins no seed: one bit of the filter.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use rayon::prelude::*;

use super::seed_prefilter::SeedCover;
use super::term_table::{NO_TERM, term_width};
use super::unit_places::UnitPlaces;
use crate::hash::fold_product;

/// Smallest width of a seed: three words or four characters.
const MIN_SEED_WIDTH: u32 = 12;

/// Largest number of places that a seed finds, unless their units end with it.
const MAX_POSTINGS: usize = 64;

/// Bits of the filter for each seed, at least.
const FILTER_BITS_PER_SEED: usize = 16;

/// Tokens of a document whose filter bits, slots and lists are loaded at the same time.
const LOOKUP_BATCH: usize = 32;

/// Covers in a number of a list.
const COVERS_PER_NUMBER: usize = (u32::BITS / SeedCover::BITS) as usize;

/// Partitions of the seeds while the index is built, a power of two. The seeds of a partition fit into a cache as a rule.
const PARTITIONS: usize = 128;

/// Units whose seeds a task finds.
const UNITS_PER_TASK: usize = 1024;

const SINGLE_PLACE: u64 = 1;
const PLACE_LIST: u64 = 2;
const EXTENDED_LIST: u64 = 3;

/// First hash of a seed, and the multiplier of its tokens.
const HASH_START: u64 = 0x517c_c1b7_2722_0a95;
const HASH_STEP: u64 = 0x2545_f491_4f6c_dd1d;

/// A seed and a place in a document where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeedHit {
    /// Number of the seed's first token, counted through all units.
    pub(super) place: u32,
    /// Number of the document's token.
    pub(super) at: u32,
    /// The part of its unit that the seed covers at most.
    pub(super) cover: SeedCover,
}

/// The seeds of all units.
#[derive(Clone, Debug)]
pub(super) struct SeedIndex {
    slots: Vec<u64>,
    /// Bits of a hash that the number of a slot does not have.
    slot_shift: u32,
    lists: Vec<u32>,
    filter: Vec<u64>,
    /// Bits of a hash that the number of a filter bit does not have.
    filter_shift: u32,
}

/// A seed while the index is built.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct GrowingSeed {
    hash: u64,
    place: u32,
    /// Number of the token behind the seed.
    end: u32,
}

/// A seed as it is stored: its hash, and its slot without the check.
struct FinishedSeed {
    hash: u64,
    slot: u64,
}

/// The finished seeds of a partition, their lists, and longer seeds that begin with them.
#[derive(Default)]
struct FinishedPartition {
    seeds: Vec<FinishedSeed>,
    lists: Vec<u32>,
    longer: Vec<GrowingSeed>,
}

/// The shortest seeds of all units, from which an index is built.
pub(super) struct SeedBuilder<'a> {
    terms: &'a [u32],
    places: &'a UnitPlaces,
    seeds: SeedPartitions,
}

impl<'a> SeedBuilder<'a> {
    /// Finds the shortest seed at each token of units. `terms` has the tokens of all units, and `units` the range of each,
    /// ascending.
    ///
    /// Cost: one sort of all seeds, in partitions on all threads of the pool; 16 bytes of memory for each.
    pub(super) fn new(terms: &'a [u32], units: &[Range<u32>], places: &'a UnitPlaces) -> Self {
        let tasks: Vec<&[Range<u32>]> = units.chunks(UNITS_PER_TASK).collect();
        let seeds = SeedPartitions::collect(&tasks, |units, add| {
            for unit in units.iter() {
                for place in unit.clone() {
                    let within = &terms[place as usize..unit.end as usize];
                    if let Some((hash, length)) = first_seed(within) {
                        let end = place + length as u32;
                        add(GrowingSeed { hash, place, end });
                    }
                }
            }
        });
        Self {
            terms,
            places,
            seeds,
        }
    }

    /// Returns a share for each token of a unit, by the number of units with the shortest seed there; the share of one unit
    /// for tokens without a seed.
    pub(super) fn share_seeds(&self, share_of_units: impl Fn(u32) -> u8 + Sync) -> Vec<u8> {
        let of_one = share_of_units(1);
        let shares: Vec<AtomicU8> = self.terms.iter().map(|_| AtomicU8::new(of_one)).collect();
        self.seeds.partitions().for_each(|seeds| {
            for seeds in seeds.chunk_by(|a, b| a.hash == b.hash) {
                if seeds.len() == 1 {
                    continue;
                }
                let unit_of = |seed: &GrowingSeed| self.places.unit_of_place(seed.place);
                let units = 1 + seeds
                    .windows(2)
                    .filter(|two| unit_of(&two[0]) != unit_of(&two[1]))
                    .count();
                let share = share_of_units(units as u32);
                for seed in seeds {
                    // Each place has one seed, so that no other thread writes there.
                    shares[seed.place as usize].store(share, Ordering::Relaxed);
                }
            }
        });
        shares.into_iter().map(AtomicU8::into_inner).collect()
    }

    /// Builds the index. `covers` has the cover of the seed at each token.
    ///
    /// Cost: sorts of the seeds that are too frequent, and one pass over all others.
    pub(super) fn finish_index(mut self, covers: &[SeedCover]) -> SeedIndex {
        let mut finished: Vec<FinishedPartition> = Vec::new();
        while !self.seeds.is_empty() {
            let seeds = self.seeds.partitions();
            let mut round: Vec<FinishedPartition> = seeds
                .map(|seeds| self.finish_seeds(seeds, covers))
                .collect();
            let longer = round
                .iter_mut()
                .map(|part| std::mem::take(&mut part.longer));
            let longer: Vec<Vec<GrowingSeed>> = longer.collect();
            self.seeds = SeedPartitions::collect(&longer, |seeds, add| {
                seeds.iter().for_each(|&seed| add(seed));
            });
            finished.append(&mut round);
        }
        SeedIndex::from_finished(finished)
    }

    /// Finishes the seeds of a partition that are rare enough or end with their units.
    fn finish_seeds(&self, seeds: &[GrowingSeed], covers: &[SeedCover]) -> FinishedPartition {
        let mut finished = FinishedPartition::default();
        let mut places: Vec<u32> = Vec::new();
        for seeds in seeds.chunk_by(|a, b| a.hash == b.hash) {
            let longer_before = finished.longer.len();
            places.clear();
            for seed in seeds {
                if seeds.len() > MAX_POSTINGS && seed.end < self.places.end_of_unit(seed.place) {
                    finished.longer.push(GrowingSeed {
                        hash: extend_hash(seed.hash, self.terms[seed.end as usize]),
                        end: seed.end + 1,
                        ..*seed
                    });
                } else if places.len() < MAX_POSTINGS {
                    places.push(seed.place);
                }
            }
            let is_extended = finished.longer.len() > longer_before;
            let slot = match (is_extended, &places[..]) {
                (false, &[place]) => slot_of(SINGLE_PLACE, place, Some(covers[place as usize])),
                (is_extended, places) => {
                    let kind = if is_extended {
                        EXTENDED_LIST
                    } else {
                        PLACE_LIST
                    };
                    let list = finished.lists.len() as u32;
                    push_list(places, covers, &mut finished.lists);
                    slot_of(kind, list, None)
                }
            };
            let hash = seeds[0].hash;
            finished.seeds.push(FinishedSeed { hash, slot });
        }
        finished
    }
}

/// Seeds in partitions by their hashes. Those of a partition are sorted by hash and place.
struct SeedPartitions {
    /// The seeds, as numbers: memory for these comes zeroed from the system, so that each task touches its own part first.
    seeds: Vec<[u64; 2]>,
    /// End of each partition in `seeds`.
    ends: Vec<usize>,
}

impl SeedPartitions {
    /// Collects the seeds that `visit` finds for each task, the same ones whenever it is called. It is called twice, so that
    /// each seed is written to its place at once.
    fn collect<T: Sync>(
        tasks: &[T],
        visit: impl Fn(&T, &mut dyn FnMut(GrowingSeed)) + Sync,
    ) -> Self {
        let counts = tasks.par_iter().map(|task| {
            let mut counts = vec![0; PARTITIONS];
            visit(task, &mut |seed| counts[seed.partition()] += 1);
            counts
        });
        let counts: Vec<Vec<usize>> = counts.collect();
        let total = counts.iter().flatten().sum();
        let mut seeds = vec![[0; 2]; total];
        let mut rooms: Vec<Vec<&mut [GrowingSeed]>> = tasks.iter().map(|_| Vec::new()).collect();
        let (mut rest, mut ends) = (cast_slice_mut(&mut seeds), Vec::new());
        for partition in 0..PARTITIONS {
            for (counts, rooms) in counts.iter().zip(&mut rooms) {
                let room = rest.split_off_mut(..counts[partition]);
                rooms.push(room.unwrap_or_default());
            }
            ends.push(total - rest.len());
        }
        let filled = tasks.par_iter().zip(rooms);
        filled.for_each(|(task, mut rooms)| {
            visit(task, &mut |seed| {
                let room = rooms[seed.partition()].split_off_first_mut();
                *room.expect("the same seeds were counted") = seed;
            });
        });
        let mut partitions = Self { seeds, ends };
        partitions.sort();
        partitions
    }

    fn sort(&mut self) {
        let (mut rest, mut start) = (cast_slice_mut::<_, GrowingSeed>(&mut self.seeds), 0);
        let mut partitions = Vec::with_capacity(PARTITIONS);
        for &end in &self.ends {
            partitions.extend(rest.split_off_mut(..end - start));
            start = end;
        }
        let partitions = partitions.into_par_iter();
        partitions.for_each(|seeds| seeds.sort_unstable());
    }

    fn is_empty(&self) -> bool {
        self.seeds.is_empty()
    }

    /// Returns the seeds of each partition, ascending by their hashes.
    fn partitions(&self) -> impl IndexedParallelIterator<Item = &[GrowingSeed]> {
        (0..PARTITIONS).into_par_iter().map(|partition| {
            let start = partition
                .checked_sub(1)
                .map_or(0, |before| self.ends[before]);
            cast_slice(&self.seeds[start..self.ends[partition]])
        })
    }
}

impl GrowingSeed {
    /// Returns the number of its partition: the highest bits of its hash.
    fn partition(&self) -> usize {
        (self.hash >> (u64::BITS - PARTITIONS.trailing_zeros())) as usize
    }
}

/// Appends a list: its length, the places, and their covers.
fn push_list(places: &[u32], covers: &[SeedCover], lists: &mut Vec<u32>) {
    lists.push(places.len() as u32);
    lists.extend_from_slice(places);
    for places in places.chunks(COVERS_PER_NUMBER) {
        let bits = places.iter().rev().fold(0, |bits, &place| {
            bits << SeedCover::BITS | covers[place as usize].to_bits()
        });
        lists.push(bits);
    }
}

/// Returns a slot without its check. The cover is that of a single place.
fn slot_of(kind: u64, value: u32, cover: Option<SeedCover>) -> u64 {
    let cover = cover.map_or(0, SeedCover::to_bits);
    u64::from(cover) << COVER_SHIFT | kind << KIND_SHIFT | u64::from(value)
}

/// A seed of a document that is looked up.
#[derive(Clone, Copy, Default)]
struct SeedLookup {
    hash: u64,
    at: u32,
    /// Number of the token behind the seed.
    end: u32,
    slot: u64,
}

impl SeedIndex {
    fn from_finished(partitions: Vec<FinishedPartition>) -> Self {
        let count: usize = partitions.iter().map(|part| part.seeds.len()).sum();
        let numbers: usize = partitions.iter().map(|part| part.lists.len()).sum();
        let slots = (count * 10 / 7).next_power_of_two().max(64);
        let bits = (count * FILTER_BITS_PER_SEED).next_power_of_two().max(64);
        let mut index = Self {
            slots: vec![0; slots],
            slot_shift: 64 - slots.trailing_zeros(),
            lists: Vec::with_capacity(numbers),
            filter: vec![0; bits / 64],
            filter_shift: 64 - bits.trailing_zeros(),
        };
        for part in partitions {
            let first = index.lists.len() as u64;
            index.lists.extend(part.lists);
            for FinishedSeed { hash, slot } in part.seeds {
                let is_single = slot_kind(slot) == SINGLE_PLACE;
                let slot = slot + if is_single { 0 } else { first };
                index.insert_slot(hash, slot);
                let bit = hash >> index.filter_shift;
                index.filter[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        index
    }

    /// Inserts a slot. Seeds that come sorted by their hashes fill the table from its start to its end.
    fn insert_slot(&mut self, hash: u64, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.home_slot(hash);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot_check(hash) | slot;
    }

    /// Returns the slot of a seed; 0 if there is none.
    #[inline]
    fn find_slot(&self, hash: u64) -> u64 {
        let mask = self.slots.len() - 1;
        let mut at = self.home_slot(hash);
        let check = slot_check(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 || slot & CHECK_MASK == check {
                return slot;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn home_slot(&self, hash: u64) -> usize {
        (hash >> self.slot_shift) as usize
    }

    #[inline]
    fn is_in_filter(&self, hash: u64) -> bool {
        let bit = hash >> self.filter_shift;
        self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Appends the seeds that stand in a document, in the order of their places there. Its tokens that no item has are
    /// [`NO_TERM`].
    ///
    /// Filter, slots and lists are far larger than a cache, so those of a batch of tokens are loaded at the same time.
    pub(super) fn find_seeds(&self, terms: &[u32], hits: &mut Vec<SeedHit>) {
        let mut batch = [SeedLookup::default(); LOOKUP_BATCH];
        for start in (0..terms.len()).step_by(LOOKUP_BATCH) {
            let places = start..(start + LOOKUP_BATCH).min(terms.len());
            let count = self.hash_seeds(terms, places, &mut batch);
            let count = self.retain_in_filter(&mut batch[..count]);
            let count = self.retain_in_slots(&mut batch[..count]);
            for &lookup in &batch[..count] {
                self.push_hits(lookup, terms, hits);
            }
        }
    }

    /// Writes the shortest seeds at some tokens to the front of a batch, and returns their number.
    #[inline]
    fn hash_seeds(
        &self,
        terms: &[u32],
        places: Range<usize>,
        batch: &mut [SeedLookup; LOOKUP_BATCH],
    ) -> usize {
        let mut count = 0;
        for at in places {
            if let Some((hash, length)) = first_seed(&terms[at..]) {
                crate::prefetch(&self.filter[(hash >> self.filter_shift) as usize / 64]);
                batch[count] = SeedLookup {
                    hash,
                    at: at as u32,
                    end: (at + length) as u32,
                    slot: 0,
                };
                count += 1;
            }
        }
        count
    }

    /// Moves the seeds that the filter has to the front, and returns their number.
    #[inline]
    fn retain_in_filter(&self, batch: &mut [SeedLookup]) -> usize {
        let mut count = 0;
        for at in 0..batch.len() {
            let lookup = batch[at];
            if self.is_in_filter(lookup.hash) {
                crate::prefetch(&self.slots[self.home_slot(lookup.hash)]);
                batch[count] = lookup;
                count += 1;
            }
        }
        count
    }

    /// Moves the seeds with a slot to the front, and returns their number.
    #[inline]
    fn retain_in_slots(&self, batch: &mut [SeedLookup]) -> usize {
        let mut count = 0;
        for at in 0..batch.len() {
            let slot = self.find_slot(batch[at].hash);
            if slot == 0 {
                continue;
            }
            if slot_kind(slot) != SINGLE_PLACE {
                crate::prefetch(&self.lists[slot as u32 as usize]);
            }
            batch[count] = SeedLookup { slot, ..batch[at] };
            count += 1;
        }
        count
    }

    /// Appends the places of the longest seeds that begin with a seed of a document.
    #[inline]
    fn push_hits(&self, lookup: SeedLookup, terms: &[u32], hits: &mut Vec<SeedHit>) {
        let SeedLookup {
            mut hash,
            at,
            end,
            mut slot,
        } = lookup;
        let mut end = end as usize;
        while slot != 0 {
            let (kind, value) = (slot_kind(slot), slot as u32);
            if kind == SINGLE_PLACE {
                let cover = SeedCover::from_bits((slot >> COVER_SHIFT) as u32);
                let place = value;
                hits.push(SeedHit { place, at, cover });
                return;
            }
            self.push_listed(value, at, hits);
            match terms.get(end) {
                Some(&next) if kind == EXTENDED_LIST && next != NO_TERM => {
                    hash = extend_hash(hash, next);
                    end += 1;
                    slot = self.find_slot(hash);
                }
                _ => return,
            }
        }
    }

    /// Appends the places of a list.
    #[inline]
    fn push_listed(&self, list: u32, at: u32, hits: &mut Vec<SeedHit>) {
        let list = &self.lists[list as usize..];
        let (places, covers) = list[1..].split_at(list[0] as usize);
        for (places, &bits) in places.chunks(COVERS_PER_NUMBER).zip(covers) {
            hits.extend(places.iter().enumerate().map(|(number, &place)| SeedHit {
                place,
                at,
                cover: SeedCover::from_bits(bits >> (number as u32 * SeedCover::BITS)),
            }));
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.lists) + size_of_val(&*self.filter)
    }
}

const KIND_SHIFT: u32 = 32;
const COVER_SHIFT: u32 = 34;
const CHECK_SHIFT: u32 = COVER_SHIFT + SeedCover::BITS;

/// The bits of a slot that are part of the hash.
const CHECK_MASK: u64 = u64::MAX << CHECK_SHIFT;

/// Returns the part of a hash that a slot keeps: the lowest bits, because the highest ones are the number of the slot.
#[inline]
fn slot_check(hash: u64) -> u64 {
    hash << CHECK_SHIFT
}

#[inline]
fn slot_kind(slot: u64) -> u64 {
    slot >> KIND_SHIFT & 3
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

    /// Returns covers that differ from token to token.
    fn covers(count: usize) -> Vec<SeedCover> {
        let bits = 0..count as u32;
        bits.map(|at| SeedCover::from_bits(at % 13)).collect()
    }

    /// Returns the index of units, each of whose seeds stands in so many of them.
    fn build(terms: &[u32], units: &[Range<u32>], unit_count: u32) -> SeedIndex {
        let places = UnitPlaces::new(units);
        let builder = SeedBuilder::new(terms, units, &places);
        builder.share_seeds(|units| {
            assert!(units == 1 || units == unit_count);
            0
        });
        builder.finish_index(&covers(terms.len()))
    }

    #[test]
    fn seeds_find_every_place_of_rare_runs() {
        let terms = words(0..200);
        let index = build(&terms, &[0..100, 100..200], 1);
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
        let ranges: Vec<Range<u32>> = (0..units).map(|unit| 6 * unit..6 * unit + 6).collect();
        let places = UnitPlaces::new(&ranges);
        let builder = SeedBuilder::new(&terms, &ranges, &places);
        let shares = builder.share_seeds(|units| units.min(255) as u8);
        // The last two tokens of a unit begin no seed.
        assert_eq!(shares[..6], [255, 255, 2, 1, 1, 1]);
        let index = builder.finish_index(&covers(terms.len()));
        let mut hits = Vec::new();
        index.find_seeds(&words([1, 2, 3, 4, 1007]), &mut hits);
        hits.sort_unstable_by_key(|hit| hit.place);
        let places: Vec<_> = hits.iter().map(|hit| hit.place).collect();
        assert_eq!(places, [42, 43, 44, 1242, 1243, 1244]);
        hits.clear();
        index.find_seeds(&words([1, 2, 3, 4, 9]), &mut hits);
        assert_eq!(hits, []);
    }

    #[test]
    fn units_that_end_within_a_frequent_seed_are_found_up_to_a_limit() {
        let terms = words((0..100).flat_map(|_| [1, 2, 3]));
        let ranges: Vec<Range<u32>> = (0..100).map(|unit| 3 * unit..3 * unit + 3).collect();
        let index = build(&terms, &ranges, 100);
        let mut hits = Vec::new();
        index.find_seeds(&words([1, 2, 3]), &mut hits);
        assert_eq!(hits.len(), MAX_POSTINGS);
        let covers = covers(terms.len());
        for hit in hits {
            assert_eq!((hit.at, hit.cover), (0, covers[hit.place as usize]));
        }
    }
}
