//! SimHash: the weighted vote of Charikar (2002).
//!
//! Every feature's hash adds its weight to counter i where its bit i is 1 and takes it away where
//! the bit is 0; bit i of the fingerprint says whether counter i is above 0. A counter of exactly 0,
//! frequent in short texts, would bias a strict comparison toward 0 bits and so make unrelated
//! short texts alike: such a bit is taken from one feature of the text, the first in an order that
//! no single bit decides. Similar texts are likely to share it.
//!
//! Cost: counting is by carry-save adders on whole vectors of hashes, about 0.1 ns a feature.
//! Integer counts: the order of features never matters.

use std::cmp::Ordering;
use std::ops::{AddAssign, Neg};

use super::compat::vote_of_keywords;
use crate::arch::{Arch, Cpu, Kernel};
use crate::hash::mix;
use crate::recipe::{SimHashRecipe, Weights};
use crate::text::Analysis;

/// Makes fingerprints of 8–128 bits.
#[derive(Clone, Copy, Debug)]
pub struct SimHasher {
    bits: u32,
    weights: Weights,
    cpu: Cpu,
}

/// Hashes that are added side by side.
const LANES: usize = 8;

/// Hashes that one round of carry-save addition takes.
const ROUND: usize = 16 * LANES;

impl SimHasher {
    /// A hasher for a recipe.
    pub fn new(recipe: &SimHashRecipe, cpu: Cpu) -> Self {
        Self {
            bits: recipe.bits,
            weights: recipe.weights,
            cpu,
        }
    }

    /// The fingerprint of a rich text, in the lowest bits; None for any other text.
    pub fn fingerprint(&self, analysis: &Analysis<'_>) -> Option<u128> {
        if analysis.feature_count() == 0 {
            return None;
        }
        let low = self.half(analysis, 0);
        let high = if self.bits > 64 {
            self.half(analysis, 1)
        } else {
            0
        };
        Some(self.cut(u128::from(low) | u128::from(high) << 64))
    }

    /// The fingerprint that the tool whose scheme the recipe names gives to any text: also to one
    /// without features, to which [`fingerprint`](Self::fingerprint) gives none because it would
    /// make such texts alike. Without a scheme both are the same.
    pub fn original(&self, analysis: &Analysis<'_>) -> Option<u128> {
        let of_nothing = || Some(self.cut(analysis.original()?.of_nothing()?));
        self.fingerprint(analysis).or_else(of_nothing)
    }

    fn cut(&self, all: u128) -> u128 {
        all & u128::MAX >> (128 - self.bits)
    }

    fn half(&self, analysis: &Analysis<'_>, half: u64) -> u64 {
        self.cpu.run(Half {
            analysis,
            weights: self.weights,
            half,
        })
    }
}

/// The hash of every feature of a text as it votes, in the order of the text: 64 bits, and 64 more
/// above them for wider fingerprints.
pub fn ballots(analysis: &Analysis<'_>) -> Vec<u128> {
    let joined = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
    if let Some(original) = analysis.original()
        && original.tie().is_some()
    {
        let halves = analysis.tokens().iter().zip(original.high());
        return halves.map(|(&low, &high)| joined(low, high)).collect();
    }
    let mut hashes = Vec::with_capacity(analysis.feature_count());
    analysis.chunks(|features| {
        hashes.extend(features.iter().map(|&low| joined(low, rehash(low, 1))));
    });
    hashes
}

/// The second 64 bits come from the features mixed once more.
#[inline(always)]
fn rehash(feature: u64, half: u64) -> u64 {
    if half == 0 {
        feature
    } else {
        mix(feature ^ SECOND_HALF)
    }
}

const SECOND_HALF: u64 = 0x6a09_e667_f3bc_c909;

/// Where a feature stands in the order by which ties are decided. The smallest feature itself would
/// not do: its highest bits are nearly always 0.
#[inline(always)]
pub(crate) const fn shuffle(feature: u64) -> u64 {
    feature.wrapping_mul(SHUFFLE)
}

const fn unshuffle(place: u64) -> u64 {
    place.wrapping_mul(UNSHUFFLE)
}

const SHUFFLE: u64 = 0xd129_42f0_4efb_2c4d;

/// The inverse modulo 2^64, by Newton's iteration: every round doubles the bits that are right.
const UNSHUFFLE: u64 = {
    let mut inverse = SHUFFLE;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(SHUFFLE.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
};

struct Half<'a, 't> {
    analysis: &'a Analysis<'t>,
    weights: Weights,
    half: u64,
}

impl Kernel for Half<'_, '_> {
    type Output = u64;

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> u64 {
        let Self {
            analysis,
            weights,
            half,
        } = self;
        if let Some(keywords) = analysis.original().and_then(|it| it.keywords()) {
            return vote_of_keywords(keywords);
        }
        if let Some(original) = analysis.original()
            && let Some(tie) = original.tie()
        {
            let hashes = if half == 0 {
                analysis.tokens()
            } else {
                original.high()
            };
            return original_vote(hashes, analysis.weighted(), tie);
        }
        if let Some(weighted) = analysis.weighted() {
            return weighted_vote(weighted, half);
        }
        let mut ones = OneCounts::default();
        match weights {
            Weights::Binary => {
                let mut features = Vec::new();
                analysis.features(&mut features);
                features
                    .iter_mut()
                    .for_each(|feature| *feature = rehash(*feature, half));
                ones.add(&features);
            }
            // Features that came ready-made are not in the tables of other weights.
            _ if half == 0 => analysis.chunks(|features| ones.add(features)),
            _ => analysis.chunks(|features| {
                let mut hashes = [0; ROUND];
                for features in features.chunks(ROUND) {
                    let hashes = &mut hashes[..features.len()];
                    for (hash, &feature) in hashes.iter_mut().zip(features) {
                        *hash = rehash(feature, half);
                    }
                    ones.add(hashes);
                }
            }),
        }
        ones.majority(|| {
            let mut first = u64::MAX;
            analysis.chunks(|features| {
                first = features
                    .iter()
                    .map(|&feature| shuffle(feature))
                    .fold(first, u64::min);
            });
            rehash(unshuffle(first), half)
        })
    }
}

/// The vote of hashes as they are, with the bits of `tie` where it is even.
#[inline(always)]
fn original_vote(
    hashes: &[u64],
    weighted: Option<impl Iterator<Item = (u64, i64)>>,
    tie: u64,
) -> u64 {
    let Some(weighted) = weighted else {
        let mut ones = OneCounts::default();
        ones.add(hashes);
        return ones.majority(|| tie);
    };
    let mut counters = [0i128; 64];
    for (&hash, (_, weight)) in hashes.iter().zip(weighted) {
        for (bit, counter) in counters.iter_mut().enumerate() {
            let sign = if hash >> bit & 1 == 1 { 1 } else { -1 };
            *counter += sign * i128::from(weight);
        }
    }
    decided(&counters, tie)
}

/// The bits of the counters above 0, and those of `tie` where one is 0.
fn decided<T: Default + Ord>(counters: &[T; 64], tie: u64) -> u64 {
    let bit = |(bit, counter): (usize, &T)| match counter.cmp(&T::default()) {
        Ordering::Greater => 1 << bit,
        Ordering::Equal => tie & 1 << bit,
        Ordering::Less => 0,
    };
    counters.iter().enumerate().map(bit).sum()
}

/// The vote with weights. Sums are exact: where 64 bits might not hold them, 128 do.
fn weighted_vote(features: impl Iterator<Item = (u64, i64)> + Clone, half: u64) -> u64 {
    let total: i128 = features
        .clone()
        .map(|(_, weight)| i128::from(weight.unsigned_abs()))
        .sum();
    if i64::try_from(total).is_ok() {
        vote_in::<i64>(features, half)
    } else {
        vote_in::<i128>(features, half)
    }
}

fn vote_in<Sum>(features: impl Iterator<Item = (u64, i64)>, half: u64) -> u64
where
    Sum: Copy + Default + Ord + From<i64> + AddAssign + Neg<Output = Sum>,
{
    let zero = Sum::default();
    let mut counters = [zero; 64];
    let mut first = u64::MAX;
    for (feature, weight) in features {
        first = first.min(shuffle(feature));
        let hash = rehash(feature, half);
        let weight = Sum::from(weight);
        let votes = [-weight, weight];
        for (bit, counter) in counters.iter_mut().enumerate() {
            *counter += votes[(hash >> bit & 1) as usize];
        }
    }
    decided(&counters, rehash(unshuffle(first), half))
}

/// For every bit, how many hashes had it.
struct OneCounts {
    counts: [u64; 64],
    total: u64,
}

impl Default for OneCounts {
    fn default() -> Self {
        Self {
            counts: [0; 64],
            total: 0,
        }
    }
}

type Lanes = [u64; LANES];

impl OneCounts {
    #[inline(always)]
    fn add(&mut self, hashes: &[u64]) {
        self.total += hashes.len() as u64;
        let (rounds, rest) = hashes.as_chunks::<ROUND>();
        for round in rounds {
            self.add_round(round);
        }
        if rest.len() > 2 * LANES {
            // Zeros change no count of ones.
            let mut padded = [0; ROUND];
            padded[..rest.len()].copy_from_slice(rest);
            self.add_round(&padded);
        } else {
            rest.iter().for_each(|&hash| self.spread(hash, 1));
        }
    }

    /// Sixteen vectors of hashes become five vectors of weights 1, 2, 4, 8 and 16.
    #[inline(always)]
    fn add_round(&mut self, round: &[u64; ROUND]) {
        let vector = |at: usize| -> Lanes { std::array::from_fn(|lane| round[at * LANES + lane]) };
        let mut ones = [0; LANES];
        let mut fours_pair = [[0; LANES]; 2];
        let mut twos = [0; LANES];
        let mut fours = [0; LANES];
        let mut eights_pair = [[0; LANES]; 2];
        for (half, eight) in eights_pair.iter_mut().enumerate() {
            for (quarter, four) in fours_pair.iter_mut().enumerate() {
                let at = half * 8 + quarter * 4;
                let first = full_add(&mut ones, vector(at), vector(at + 1));
                let second = full_add(&mut ones, vector(at + 2), vector(at + 3));
                *four = full_add(&mut twos, first, second);
            }
            *eight = full_add(&mut fours, fours_pair[0], fours_pair[1]);
        }
        let mut eights = [0; LANES];
        let sixteens = full_add(&mut eights, eights_pair[0], eights_pair[1]);
        for (weight, lanes) in [
            (1, ones),
            (2, twos),
            (4, fours),
            (8, eights),
            (16, sixteens),
        ] {
            lanes.iter().for_each(|&lane| self.spread(lane, weight));
        }
    }

    #[inline(always)]
    fn spread(&mut self, hash: u64, weight: u64) {
        for (bit, count) in self.counts.iter_mut().enumerate() {
            *count += (hash >> bit & 1) * weight;
        }
    }

    /// Bit i is set iff more than half of the hashes had it; at exactly half, `tie` decides.
    #[inline(always)]
    fn majority(&self, tie: impl FnOnce() -> u64) -> u64 {
        let mut above = 0;
        let mut equal = 0;
        for (bit, &count) in self.counts.iter().enumerate() {
            above |= u64::from(2 * count > self.total) << bit;
            equal |= u64::from(2 * count == self.total) << bit;
        }
        if equal == 0 {
            above
        } else {
            above | equal & tie()
        }
    }
}

/// Adds two vectors to `sum` bit by bit and returns the carries.
#[inline(always)]
fn full_add(sum: &mut Lanes, a: Lanes, b: Lanes) -> Lanes {
    std::array::from_fn(|lane| {
        let half = sum[lane] ^ a[lane];
        let carry = sum[lane] & a[lane] | half & b[lane];
        sum[lane] = half ^ b[lane];
        carry
    })
}

/// The weighted vote itself, step by step, for hashes of any width: the signed counters, highest
/// bit first. This is the definition that [`SimHasher`] counts by.
///
/// ```
/// let counters = lookalike::sketch::vote(6, [(0b100101, 4), (0b101011, 5)]);
/// assert_eq!(counters, [9, -9, 1, -1, 1, 9]);
/// ```
pub fn vote(bits: u32, hashes: impl IntoIterator<Item = (u128, i64)>) -> Vec<i64> {
    let mut counters = vec![0; bits as usize];
    for (hash, weight) in hashes {
        for (at, counter) in counters.iter_mut().enumerate() {
            let bit = hash >> (bits as usize - 1 - at) & 1;
            *counter += if bit == 1 { weight } else { -weight };
        }
    }
    counters
}
