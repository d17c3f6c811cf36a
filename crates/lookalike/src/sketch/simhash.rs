//! SimHash: fingerprints by weighted vote (Charikar 2002).
//!
//! Every feature adds its weight to counter i if bit i of its hash is 1, and subtracts it if the bit is 0.
//! Bit i of the fingerprint is 1 if counter i is above 0. A counter of exactly 0 is frequent in short texts.
//! Setting its bit to 0 would bias fingerprints toward 0 bits and so make unrelated short texts alike. The
//! bit is therefore taken from one feature of the text: the first in an order in which all bits of a feature
//! take part. Similar texts are likely to share that feature.
//!
//! Counts are integers, so the order of the features never matters. Cost: about 0.1 ns per feature, because
//! counting uses carry-save adders on whole vectors of hashes.

use std::cmp::Ordering;
use std::ops::{AddAssign, Neg};

use super::minhash::FeatureObserver;
use crate::arch::{Arch, Cpu, Kernel};
use crate::compat::{ForeignVotes, vote_of_keywords};
use crate::hash::mix_bits;
use crate::recipe::{SimHashRecipe, WeightScheme};
use crate::text::TextAnalysis;

/// Computes fingerprints of 8–128 bits.
///
/// ```
/// use lookalike::sketch::SimHasher;
/// use lookalike::text::{TextAnalyzer, AnalysisScratch};
/// use lookalike::{Cpu, Recipe};
///
/// let recipe = Recipe::built_in("default")?;
/// let (analyzer, hasher) = (TextAnalyzer::new(&recipe), SimHasher::new(&recipe.simhash, Cpu::detect_best()));
/// let fingerprint = |text| hasher.fingerprint(&analyzer.analyze_text(text, &mut AnalysisScratch::default()));
/// assert_eq!(fingerprint("两只鸟停在屋顶上。"), Some(0xc07e_93a3_f701_9355));
/// // One word has no pair of adjacent words, and so no fingerprint.
/// assert_eq!(fingerprint("bird"), None);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SimHasher {
    bits: u32,
    weights: WeightScheme,
    cpu: Cpu,
}

/// Number of hashes that are added side by side.
const LANES: usize = 8;

/// Number of hashes in one round of carry-save addition.
const HASHES_PER_ROUND: usize = 16 * LANES;

impl SimHasher {
    /// Creates a hasher for a recipe.
    pub fn new(recipe: &SimHashRecipe, cpu: Cpu) -> Self {
        Self {
            bits: recipe.bits,
            weights: recipe.weights,
            cpu,
        }
    }

    /// Returns the fingerprint of a text in the lowest bits, or `None` if the text has no features or none of
    /// its features has a weight.
    pub fn fingerprint(&self, analysis: &TextAnalysis<'_>) -> Option<u128> {
        self.fingerprint_seen(analysis, &mut |_| ())
    }

    /// Returns the same fingerprint and also passes the features on. If the fingerprint [is made of the
    /// features](Self::works_on_features) as they come, `see` is called with all of them, one chunk at a
    /// time.
    pub(crate) fn fingerprint_seen(
        &self,
        analysis: &TextAnalysis<'_>,
        see: FeatureObserver<'_>,
    ) -> Option<u128> {
        let nothing_votes = analysis
            .iter_weighted()
            .is_some_and(|features| features.len() == 0);
        if analysis.feature_count() == 0 || nothing_votes {
            return None;
        }
        let low = self.vote_half(analysis, 0, see);
        let high = if self.bits > 64 {
            self.vote_half(analysis, 1, &mut |_| ())
        } else {
            0
        };
        Some(self.cut_to_bits(u128::from(low) | u128::from(high) << 64))
    }

    /// Returns `true` if the features of a text vote as they come, all with weight 1.
    pub(crate) fn works_on_features(&self, analysis: &TextAnalysis<'_>) -> bool {
        analysis.foreign_votes().is_none()
            && analysis.iter_weighted().is_none()
            && self.weights != WeightScheme::Binary
    }

    /// Returns the fingerprint that the tool of the recipe's scheme gives to a text. It also exists for a
    /// text without features, for which [`fingerprint`](Self::fingerprint) returns `None` because such texts
    /// would all match. Without a scheme both functions return the same.
    pub fn original_fingerprint(&self, analysis: &TextAnalysis<'_>) -> Option<u128> {
        let of_nothing = || Some(self.cut_to_bits(analysis.foreign_votes()?.of_nothing()));
        self.fingerprint(analysis).or_else(of_nothing)
    }

    fn cut_to_bits(&self, all: u128) -> u128 {
        all & u128::MAX >> (128 - self.bits)
    }

    fn vote_half(&self, analysis: &TextAnalysis<'_>, half: u64, see: FeatureObserver<'_>) -> u64 {
        self.cpu.run(HalfVoteKernel {
            analysis,
            weights: self.weights,
            half,
            see,
        })
    }
}

/// Returns the hash of every feature with which it votes, in the order of the text: 64 bits, and 64 more
/// above them for wider fingerprints.
pub fn list_ballots(analysis: &TextAnalysis<'_>) -> Vec<u128> {
    let joined = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
    if let Some(votes) = analysis.foreign_votes() {
        let halves = analysis.token_values().iter().zip(votes.upper_hashes());
        return halves.map(|(&low, &high)| joined(low, high)).collect();
    }
    let mut hashes = Vec::with_capacity(analysis.feature_count());
    analysis.visit_chunks(|features| {
        hashes.extend(features.iter().map(|&low| joined(low, upper_hash(low, 1))));
    });
    hashes
}

/// The values of the bits whose votes are even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreaker {
    /// The same bit in all positions.
    Bit(bool),
    /// The bits of the hash of this feature. Among the features that vote, it is the one whose product with a
    /// fixed odd number is smallest.
    Feature(u64),
}

/// Returns the rule that decides the ties of a text, or `None` if the text has no features.
pub fn tie_breaker(analysis: &TextAnalysis<'_>) -> Option<TieBreaker> {
    if let Some(votes) = analysis.foreign_votes() {
        return Some(TieBreaker::Bit(votes.tie_bits() != 0));
    }
    let mut first = None;
    let mut see = |feature: u64| {
        let place = tie_order(feature);
        first = Some(first.map_or(place, |first: u64| first.min(place)));
    };
    match analysis.iter_weighted() {
        Some(weighted) => weighted.for_each(|(feature, _)| see(feature)),
        None => analysis.visit_chunks(|features| features.iter().copied().for_each(&mut see)),
    }
    first.map(|place| TieBreaker::Feature(feature_at_tie_order(place)))
}

/// Returns the hash of a feature for one half of a fingerprint. The second half mixes the feature once more.
#[inline(always)]
fn upper_hash(feature: u64, half: u64) -> u64 {
    if half == 0 {
        feature
    } else {
        mix_bits(feature ^ SECOND_HALF)
    }
}

const SECOND_HALF: u64 = 0x6a09_e667_f3bc_c909;

/// Returns the position of a feature in the order that decides ties. This is not the feature itself, because
/// the highest bits of the smallest feature are nearly always 0.
#[inline(always)]
pub(crate) const fn tie_order(feature: u64) -> u64 {
    feature.wrapping_mul(SHUFFLE_FACTOR)
}

const fn feature_at_tie_order(place: u64) -> u64 {
    place.wrapping_mul(UNSHUFFLE_FACTOR)
}

const SHUFFLE_FACTOR: u64 = 0xd129_42f0_4efb_2c4d;

/// The inverse of [`SHUFFLE_FACTOR`] modulo 2⁶⁴ by Newton's iteration, in which every round doubles the number of
/// correct bits.
const UNSHUFFLE_FACTOR: u64 = {
    let mut inverse = SHUFFLE_FACTOR;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(SHUFFLE_FACTOR.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
};

struct HalfVoteKernel<'a, 't> {
    analysis: &'a TextAnalysis<'t>,
    weights: WeightScheme,
    half: u64,
    see: FeatureObserver<'a>,
}

impl Kernel for HalfVoteKernel<'_, '_> {
    type Output = u64;

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> u64 {
        let Self {
            analysis,
            weights,
            half,
            see,
        } = self;
        if let Some(votes) = analysis.foreign_votes() {
            return foreign_vote(votes, analysis, half);
        }
        if let Some(weighted) = analysis.iter_weighted() {
            return weighted_vote(weighted, half);
        }
        let mut ones = OneCounts::default();
        match weights {
            WeightScheme::Binary => {
                let mut features = Vec::new();
                analysis.append_features(&mut features);
                features
                    .iter_mut()
                    .for_each(|feature| *feature = upper_hash(*feature, half));
                ones.add_hashes(&features);
            }
            // Given features are not in the tables of other weights, so they count as often as they occur.
            _ if half == 0 => analysis.visit_chunks(|features| {
                see(features);
                ones.add_hashes(features);
            }),
            _ => analysis.visit_chunks(|features| {
                let mut hashes = [0; HASHES_PER_ROUND];
                for features in features.chunks(HASHES_PER_ROUND) {
                    let hashes = &mut hashes[..features.len()];
                    for (hash, &feature) in hashes.iter_mut().zip(features) {
                        *hash = upper_hash(feature, half);
                    }
                    ones.add_hashes(hashes);
                }
            }),
        }
        ones.majority_bits(|| {
            let mut first = u64::MAX;
            analysis.visit_chunks(|features| {
                first = features
                    .iter()
                    .map(|&feature| tie_order(feature))
                    .fold(first, u64::min);
            });
            upper_hash(feature_at_tie_order(first), half)
        })
    }
}

/// Returns the vote of the features of another tool, by its rule.
#[inline(always)]
fn foreign_vote(votes: ForeignVotes<'_>, analysis: &TextAnalysis<'_>, half: u64) -> u64 {
    if let Some(keywords) = votes.weighted_keywords() {
        return vote_of_keywords(keywords);
    }
    let hashes = if half == 0 {
        analysis.token_values()
    } else {
        votes.upper_hashes()
    };
    vote_of_hashes(hashes, analysis.iter_weighted(), votes.tie_bits())
}

/// Returns the vote of hashes that are used as they are, with the bits of `tie` where the vote is even.
#[inline(always)]
fn vote_of_hashes(
    hashes: &[u64],
    weighted: Option<impl Iterator<Item = (u64, i64)>>,
    tie: u64,
) -> u64 {
    let Some(weighted) = weighted else {
        let mut ones = OneCounts::default();
        ones.add_hashes(hashes);
        return ones.majority_bits(|| tie);
    };
    let mut counters = [0i128; 64];
    for (&hash, (_, weight)) in hashes.iter().zip(weighted) {
        for (bit, counter) in counters.iter_mut().enumerate() {
            let sign = if hash >> bit & 1 == 1 { 1 } else { -1 };
            *counter += sign * i128::from(weight);
        }
    }
    decide_bits(&counters, tie)
}

/// Returns a bit for each counter: 1 if the counter is above 0, and the bit of `tie` if it is 0.
fn decide_bits<T: Default + Ord>(counters: &[T; 64], tie: u64) -> u64 {
    let bit = |(bit, counter): (usize, &T)| match counter.cmp(&T::default()) {
        Ordering::Greater => 1 << bit,
        Ordering::Equal => tie & 1 << bit,
        Ordering::Less => 0,
    };
    counters.iter().enumerate().map(bit).sum()
}

/// Returns the weighted vote. Sums are exact, because they have 128 bits if 64 might overflow.
fn weighted_vote(features: impl Iterator<Item = (u64, i64)> + Clone, half: u64) -> u64 {
    let total: i128 = features
        .clone()
        .map(|(_, weight)| i128::from(weight.unsigned_abs()))
        .sum();
    if i64::try_from(total).is_ok() {
        vote_with_counters::<i64>(features, half)
    } else {
        vote_with_counters::<i128>(features, half)
    }
}

fn vote_with_counters<Sum>(features: impl Iterator<Item = (u64, i64)>, half: u64) -> u64
where
    Sum: Copy + Default + Ord + From<i64> + AddAssign + Neg<Output = Sum>,
{
    let zero = Sum::default();
    let mut counters = [zero; 64];
    let mut first = u64::MAX;
    for (feature, weight) in features {
        first = first.min(tie_order(feature));
        let hash = upper_hash(feature, half);
        let weight = Sum::from(weight);
        let votes = [-weight, weight];
        for (bit, counter) in counters.iter_mut().enumerate() {
            *counter += votes[(hash >> bit & 1) as usize];
        }
    }
    decide_bits(&counters, upper_hash(feature_at_tie_order(first), half))
}

/// For every bit, the number of hashes that have it, stored as binary digits across words (Harley and Seal):
/// bit i of the word of power p is set if 2^p is part of the count of bit i. A few operations on whole words
/// then add to and compare 64 counts at once.
struct OneCounts {
    /// Digits of eight separate counts, one per lane.
    planes: [VoteLanes; PLANE_COUNT],
    /// Number of rounds in the planes.
    rounds: u32,
    /// Digits of everything that is not in the planes.
    digits: [u64; 64],
    total: u64,
}

impl Default for OneCounts {
    fn default() -> Self {
        Self {
            planes: [[0; LANES]; PLANE_COUNT],
            rounds: 0,
            digits: [0; 64],
            total: 0,
        }
    }
}

type VoteLanes = [u64; LANES];

const PLANE_COUNT: usize = 10;

/// Number of rounds that the planes can hold, because each round adds at most 16 to a count.
const MOST_ROUNDS: u32 = (1 << (PLANE_COUNT - 4)) - 1;

impl OneCounts {
    #[inline(always)]
    fn add_hashes(&mut self, hashes: &[u64]) {
        self.total += hashes.len() as u64;
        let (rounds, rest) = hashes.as_chunks::<HASHES_PER_ROUND>();
        for round in rounds {
            self.add_round(round);
        }
        if rest.len() > LANES {
            // Padding with zeros is safe, because it changes no count of ones.
            let mut padded = [0; HASHES_PER_ROUND];
            padded[..rest.len()].copy_from_slice(rest);
            self.add_round(&padded);
        } else {
            rest.iter().for_each(|&hash| self.add_word(hash, 0));
        }
    }

    /// Adds sixteen vectors of hashes. They become one carry into the plane of 16, which then carries into
    /// the planes above.
    #[inline(always)]
    fn add_round(&mut self, round: &[u64; HASHES_PER_ROUND]) {
        if self.rounds == MOST_ROUNDS {
            self.settle_planes();
        }
        self.rounds += 1;
        let vector =
            |at: usize| -> VoteLanes { std::array::from_fn(|lane| round[at * LANES + lane]) };
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

    /// Moves the contents of the planes to the digits. For each power, the eight lanes of a plane and the
    /// seven carries of the plane below are added up to one word and seven carries. Three more powers follow
    /// the highest plane, because the sum of eight lanes has up to three more digits.
    #[inline(always)]
    fn settle_planes(&mut self) {
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

    /// Adds 2 to the power of `power` to the count of every bit that `word` has.
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

    /// Returns the bits that more than half of the hashes have. `tie` decides the bits that exactly half of
    /// them have.
    #[inline(always)]
    fn majority_bits(mut self, tie: impl FnOnce() -> u64) -> u64 {
        if self.rounds > 0 {
            self.settle_planes();
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

/// Returns the highest plane that can be nonzero after `rounds` rounds.
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

/// Computes the weighted vote one hash at a time, for hashes of any width, and returns the signed counters
/// with the highest bit first. This is the definition that [`SimHasher`] follows.
///
/// ```
/// let counters = lookalike::sketch::count_weighted_votes(6, [(0b100101, 4), (0b101011, 5)]);
/// assert_eq!(counters, [9, -9, 1, -1, 1, 9]);
/// ```
pub fn count_weighted_votes(bits: u32, hashes: impl IntoIterator<Item = (u128, i64)>) -> Vec<i64> {
    let mut counters = vec![0; bits as usize];
    for (hash, weight) in hashes {
        for (at, counter) in counters.iter_mut().enumerate() {
            let bit = hash >> (bits as usize - 1 - at) & 1;
            *counter += if bit == 1 { weight } else { -weight };
        }
    }
    counters
}
