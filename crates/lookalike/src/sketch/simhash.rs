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
use super::minhash::See;
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

    /// The fingerprint of a rich text, in the lowest bits; None for any other text, and for one of
    /// whose features none has a weight.
    pub fn fingerprint(&self, analysis: &Analysis<'_>) -> Option<u128> {
        self.fingerprint_seen(analysis, &mut |_| ())
    }

    /// The same for somebody who wants the features too: `see` is called with all of them, some at a
    /// time, if the fingerprint of this text [is made of them](Self::works_on_features) as they come.
    pub(crate) fn fingerprint_seen(&self, analysis: &Analysis<'_>, see: See<'_>) -> Option<u128> {
        let nothing_votes = analysis.weighted().is_some_and(|it| it.len() == 0);
        if analysis.feature_count() == 0 || nothing_votes {
            return None;
        }
        let low = self.half(analysis, 0, see);
        let high = if self.bits > 64 {
            self.half(analysis, 1, &mut |_| ())
        } else {
            0
        };
        Some(self.cut(u128::from(low) | u128::from(high) << 64))
    }

    /// Whether the features of a text vote as they come, all alike.
    pub(crate) fn works_on_features(&self, analysis: &Analysis<'_>) -> bool {
        let foreign = analysis
            .original()
            .is_some_and(|it| it.keywords().is_some() || it.tie().is_some());
        !foreign && analysis.weighted().is_none() && self.weights != Weights::Binary
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

    fn half(&self, analysis: &Analysis<'_>, half: u64, see: See<'_>) -> u64 {
        self.cpu.run(Half {
            analysis,
            weights: self.weights,
            half,
            see,
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

/// What the bits are in which the votes are even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The same in all places.
    Bit(bool),
    /// Those of this feature's hash: of all that vote, the one whose product with a fixed odd number is
    /// least.
    Feature(u64),
}

/// What decides the ties of a text; none if it has no feature.
pub fn tie(analysis: &Analysis<'_>) -> Option<Tie> {
    if let Some(tie) = analysis.original().and_then(|it| it.tie()) {
        return Some(Tie::Bit(tie != 0));
    }
    let mut first = None;
    let mut see = |feature: u64| {
        let place = shuffle(feature);
        first = Some(first.map_or(place, |first: u64| first.min(place)));
    };
    match analysis.weighted() {
        Some(weighted) => weighted.for_each(|(feature, _)| see(feature)),
        None => analysis.chunks(|features| features.iter().copied().for_each(&mut see)),
    }
    first.map(|place| Tie::Feature(unshuffle(place)))
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
    see: See<'a>,
}

impl Kernel for Half<'_, '_> {
    type Output = u64;

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> u64 {
        let Self {
            analysis,
            weights,
            half,
            see,
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
            _ if half == 0 => analysis.chunks(|features| {
                see(features);
                ones.add(features);
            }),
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

/// For every bit, how many hashes had it, as digits: bit i of a word of power p says whether 2^p is part
/// of the count of bit i (Harley and Seal). So 64 counts are added to and compared by a few operations
/// on whole words, and hashes by the vector.
struct OneCounts {
    /// Digits of eight counts apart, one a lane.
    planes: [Lanes; PLANES],
    /// Rounds that the planes hold.
    rounds: u32,
    /// The digits of all that the planes do not hold.
    digits: [u64; 64],
    total: u64,
}

impl Default for OneCounts {
    fn default() -> Self {
        Self {
            planes: [[0; LANES]; PLANES],
            rounds: 0,
            digits: [0; 64],
            total: 0,
        }
    }
}

type Lanes = [u64; LANES];

const PLANES: usize = 10;

/// Rounds that the planes can hold: each adds at most 16 to a count.
const MOST_ROUNDS: u32 = (1 << (PLANES - 4)) - 1;

impl OneCounts {
    #[inline(always)]
    fn add(&mut self, hashes: &[u64]) {
        self.total += hashes.len() as u64;
        let (rounds, rest) = hashes.as_chunks::<ROUND>();
        for round in rounds {
            self.add_round(round);
        }
        if rest.len() > LANES {
            // Zeros change no count of ones.
            let mut padded = [0; ROUND];
            padded[..rest.len()].copy_from_slice(rest);
            self.add_round(&padded);
        } else {
            rest.iter().for_each(|&hash| self.add_word(hash, 0));
        }
    }

    /// Sixteen vectors of hashes become one carry into the plane of 16, and it into those above.
    #[inline(always)]
    fn add_round(&mut self, round: &[u64; ROUND]) {
        if self.rounds == MOST_ROUNDS {
            self.settle();
        }
        self.rounds += 1;
        let vector = |at: usize| -> Lanes { std::array::from_fn(|lane| round[at * LANES + lane]) };
        let [ones, twos, fours, eights, higher @ ..] = &mut self.planes;
        let mut eights_pair = [[0; LANES]; 2];
        let mut fours_pair = [[0; LANES]; 2];
        for (half, eight) in eights_pair.iter_mut().enumerate() {
            for (quarter, four) in fours_pair.iter_mut().enumerate() {
                let at = half * 8 + quarter * 4;
                let first = full_add(ones, vector(at), vector(at + 1));
                let second = full_add(ones, vector(at + 2), vector(at + 3));
                *four = full_add(twos, first, second);
            }
            *eight = full_add(fours, fours_pair[0], fours_pair[1]);
        }
        let mut carry = full_add(eights, eights_pair[0], eights_pair[1]);
        for plane in higher.iter_mut().take(highest_plane(self.rounds) - 3) {
            carry = full_add(plane, carry, [0; LANES]);
        }
    }

    /// Adds what the planes hold to the digits. The eight words of a plane and the carries of the plane
    /// below become one word, and seven carries: above the highest plane, eight lanes are three digits.
    #[inline(always)]
    fn settle(&mut self) {
        let mut carries = [0; LANES - 1];
        for power in 0..highest_plane(self.rounds) + 4 {
            let plane = self.planes.get_mut(power).map(std::mem::take);
            let [mut sum, plane @ ..] = plane.unwrap_or_default();
            let mut others = [0; 2 * LANES - 2];
            others[..LANES - 1].copy_from_slice(&plane);
            others[LANES - 1..].copy_from_slice(&carries);
            for (carry, &[a, b]) in carries.iter_mut().zip(others.as_chunks().0) {
                let mut word = [sum];
                [*carry] = full_add(&mut word, [a], [b]);
                [sum] = word;
            }
            self.add_word(sum, power);
        }
        self.rounds = 0;
    }

    /// Adds two to the power of `power` for every bit of a word.
    #[inline(always)]
    fn add_word(&mut self, word: u64, power: usize) {
        let mut carry = word;
        for digit in &mut self.digits[power..] {
            if carry == 0 {
                break;
            }
            [carry] = full_add(std::array::from_mut(digit), [carry], [0]);
        }
    }

    /// Bit i is set iff more than half of the hashes had it; at exactly half, `tie` decides.
    #[inline(always)]
    fn majority(mut self, tie: impl FnOnce() -> u64) -> u64 {
        if self.rounds > 0 {
            self.settle();
        }
        let half = self.total / 2;
        let (mut above, mut equal) = (0, u64::MAX);
        let powers = self.total.checked_ilog2().map_or(0, |highest| highest + 1);
        for (power, &digit) in self.digits[..powers as usize].iter().enumerate().rev() {
            let of_half = (half >> power & 1).wrapping_neg();
            above |= equal & digit & !of_half;
            equal &= !(digit ^ of_half);
        }
        if self.total % 2 == 1 || equal == 0 {
            above
        } else {
            above | equal & tie()
        }
    }
}

/// The highest plane that is not all 0 after so many rounds.
#[inline(always)]
fn highest_plane(rounds: u32) -> usize {
    (16 * rounds).ilog2() as usize
}

/// Adds two vectors to `sum` bit by bit and returns the carries.
#[inline(always)]
fn full_add<const N: usize>(sum: &mut [u64; N], a: [u64; N], b: [u64; N]) -> [u64; N] {
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
