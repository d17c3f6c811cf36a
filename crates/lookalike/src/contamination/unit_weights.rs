//! The weights of the tokens of units, and of their seeds.
//!
//! A token has a share of its weight in its unit, in sixteenths:
//!
//! - A token that only frequent seeds cover belongs to a phrase of many units, for example "which of the following". If
//!   the rarest of its seeds stands in `n` units, it keeps 1 / (1 + log₂ n) of its weight. So what sets an item apart from
//!   the others of its series decides.
//! - The `k`-th occurrence of a token in a unit keeps 1 / k of that, because a text that has a word once often has it again.
//!
//! Cost: some nanoseconds for each token, on all threads of the pool.

use rayon::prelude::*;

use super::evidence::{EvidenceWeights, log2_sixteenths};
use super::index::{MAX_UNIT_TOKENS, SearchUnit};
use super::seed_index::seed_length;
use super::seed_prefilter::SeedCover;

/// Units that a task weighs.
const UNITS_PER_TASK: usize = 1024;

/// Returns the share of a token whose rarest seed stands in a number of units, in sixteenths.
pub(super) fn share_of_units(units: u32) -> u8 {
    (256 / (16 + log2_sixteenths(u64::from(units), 1))) as u8
}

/// Replaces the shares of seeds, by their first tokens, by those of the tokens themselves, and sets the weights of units.
/// Returns the cover of the seed at each token. Tokens outside of units keep their shares.
pub(super) fn weigh_units(
    terms: &[u32],
    units: &mut [SearchUnit],
    shares: &mut [u8],
    weights: &EvidenceWeights,
) -> Vec<SeedCover> {
    let mut covers = vec![SeedCover::from_bits(0); terms.len()];
    let (mut shares, mut rest, mut first) = (shares, &mut covers[..], 0);
    let mut tasks = Vec::new();
    for units in units.chunks_mut(UNITS_PER_TASK) {
        let end = units.last().map_or(first, |unit| unit.tokens.end as usize);
        tasks.push(WeighedUnits {
            units,
            first,
            terms: &terms[first..end],
            shares: shares.split_off_mut(..end - first).unwrap_or_default(),
            covers: rest.split_off_mut(..end - first).unwrap_or_default(),
        });
        first = end;
    }
    tasks.into_par_iter().for_each(|task| task.weigh(weights));
    covers
}

/// Units whose tokens follow one another, and the tokens from the first to the last of them.
struct WeighedUnits<'a> {
    units: &'a mut [SearchUnit],
    /// Place of the first of the tokens.
    first: usize,
    terms: &'a [u32],
    shares: &'a mut [u8],
    covers: &'a mut [SeedCover],
}

impl WeighedUnits<'_> {
    fn weigh(self, weights: &EvidenceWeights) {
        let mut occurrences = OccurrenceCounts::new();
        let mut seed_shares: Vec<u8> = Vec::new();
        // Weight of the tokens before each one.
        let mut sums: Vec<u64> = Vec::new();
        for unit in self.units {
            let tokens =
                unit.tokens.start as usize - self.first..unit.tokens.end as usize - self.first;
            let terms = &self.terms[tokens.clone()];
            let shares = &mut self.shares[tokens.clone()];
            seed_shares.clear();
            seed_shares.extend_from_slice(shares);
            spread_shares(terms, &seed_shares, shares);
            occurrences.begin_unit();
            sums.clear();
            sums.push(0);
            let mut sum = 0;
            for (&term, share) in terms.iter().zip(shares) {
                *share = (u32::from(*share) / occurrences.count_term(term)).max(1) as u8;
                sum += u64::from(weights.shared_weight(term, *share));
                sums.push(sum);
            }
            unit.weight = sum;
            for (at, cover) in self.covers[tokens].iter_mut().enumerate() {
                let end = at + seed_length(&terms[at..]);
                *cover = SeedCover::new(sums[end] - sums[at], sum);
            }
        }
    }
}

/// Sets the share of each token of a unit to the largest one of the seeds that cover it.
fn spread_shares(terms: &[u32], seed_shares: &[u8], shares: &mut [u8]) {
    shares.fill(0);
    for (at, &seed_share) in seed_shares.iter().enumerate() {
        let length = seed_length(&terms[at..]);
        for share in &mut shares[at..at + length] {
            *share = (*share).max(seed_share);
        }
    }
}

/// Slots of [`OccurrenceCounts`]: twice as many as a unit has tokens.
const OCCURRENCE_SLOTS: usize = (2 * MAX_UNIT_TOKENS).next_power_of_two();

/// Multiplier of Fibonacci hashing: 2³² divided by the golden ratio.
const MULTIPLIER: u32 = 0x9e37_79b9;

/// Counts of the tokens of one unit after another: a hash table whose slots of earlier units are empty.
struct OccurrenceCounts {
    slots: Vec<OccurrenceSlot>,
    /// Number of units so far.
    unit: u32,
}

#[derive(Clone, Copy, Default)]
struct OccurrenceSlot {
    /// Number of the unit that uses the slot, from 1.
    unit: u32,
    term: u32,
    count: u32,
}

impl OccurrenceCounts {
    fn new() -> Self {
        Self {
            slots: vec![OccurrenceSlot::default(); OCCURRENCE_SLOTS],
            unit: 0,
        }
    }

    fn begin_unit(&mut self) {
        self.unit += 1;
    }

    /// Counts a token of the unit, and returns how many of them it had so far.
    fn count_term(&mut self, term: u32) -> u32 {
        let home = term.wrapping_mul(MULTIPLIER) >> (u32::BITS - OCCURRENCE_SLOTS.trailing_zeros());
        let mut at = home as usize;
        while self.slots[at].unit == self.unit && self.slots[at].term != term {
            at = (at + 1) % OCCURRENCE_SLOTS;
        }
        let slot = &mut self.slots[at];
        if slot.unit != self.unit {
            *slot = OccurrenceSlot {
                unit: self.unit,
                term,
                count: 0,
            };
        }
        slot.count += 1;
        slot.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_counted_within_a_unit() {
        let mut counts = OccurrenceCounts::new();
        for _ in 0..3 {
            counts.begin_unit();
            for count in 1..=MAX_UNIT_TOKENS as u32 / 128 {
                for term in 0..128 {
                    // Terms that share their slots.
                    assert_eq!(counts.count_term(term << 22), count);
                }
            }
        }
    }

    #[test]
    fn shares_fall_with_the_units_of_a_seed() {
        let shares = [1, 2, 3, 16, 1 << 15, u32::MAX].map(share_of_units);
        assert_eq!(shares, [16, 8, 6, 3, 1, 0]);
    }

    #[test]
    fn token_has_the_share_of_its_rarest_seed() {
        // Seeds of three words: the first two tokens have one seed or two, and the last ones as well.
        let terms = [1, 3, 5, 7, 9];
        let mut shares = [0; 5];
        spread_shares(&terms, &[4, 2, 8, 16, 16], &mut shares);
        assert_eq!(shares, [4, 4, 8, 16, 16]);
        spread_shares(&terms, &[2, 3, 1, 0, 0], &mut shares);
        assert_eq!(shares, [2, 3, 3, 3, 1]);
    }
}
