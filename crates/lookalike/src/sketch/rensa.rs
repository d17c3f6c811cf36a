//! The MinHashes of the Python package `rensa` 0.5, for callers that supply tokens one after another.
//!
//! A token is hashed by [`hash_rensa_token`], and all seeds come from Xoshiro256++. The schemes ([`RensaScheme`]) differ in
//! the function that gives a slot its value:
//!
//! | scheme | a slot is the least of |
//! |---|---|
//! | bucketed | in each of three rounds, the ranks of the tokens that the round sends to the slot; if it is still empty, the ranks of all tokens by a function of its own |
//! | circulant | `mix(mix(hash + σ) + π − slot − 1)` of all tokens, modulo 2⁶⁴ |
//!
//! A value of the bucketed scheme begins with the number of its round, two bits, so that the value of an earlier round is
//! less than each of a later one. For that reason the values do not depend on how tokens are divided into updates.
//!
//! ```text
//!  31 30 29                             0
//! +-----+--------------------------------+
//! |round| rank of the token in the round |     round 3: by the slot's own function
//! +-----+--------------------------------+
//! ```

use crate::arch::{Arch, Cpu, Kernel};
use crate::hash::{fold_product, mix_bits};

/// The way from the hash of a token to the values of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RensaScheme {
    /// The values of `RMinHash`, of 32 bits.
    Bucketed,
    /// The values of `CMinHash`, of 64 bits.
    Circulant,
}

/// The functions of all slots.
#[derive(Clone, Debug)]
pub struct RensaFunctions {
    slots: SlotFunctions,
    cpu: Cpu,
}

/// Factor and summand of a slot's own function.
type AffineFunction = (u64, u64);

#[derive(Clone, Debug)]
enum SlotFunctions {
    Bucketed(Vec<AffineFunction>),
    Circulant { sigma: u64, pi: u64 },
}

impl RensaScheme {
    /// Returns the value of a slot without a token, of which every other one is less.
    pub fn empty_value(self) -> u64 {
        match self {
            Self::Bucketed => u32::MAX.into(),
            Self::Circulant => u64::MAX,
        }
    }
}

impl RensaFunctions {
    /// Returns the functions that the package draws for a seed. The bucketed scheme has at most 2³² slots.
    pub fn draw_functions(scheme: RensaScheme, slots: usize, seed: u64) -> Self {
        let mut seeds = SeedSequence::new(seed);
        let slots = match scheme {
            RensaScheme::Circulant => SlotFunctions::Circulant {
                sigma: seeds.next_number(),
                pi: seeds.next_number(),
            },
            RensaScheme::Bucketed => {
                let draw = |_| (seeds.next_number() | 1, seeds.next_number());
                SlotFunctions::Bucketed((0..slots).map(draw).collect())
            }
        };
        Self {
            slots,
            cpu: Cpu::detect_best(),
        }
    }

    /// Returns the functions for another instruction set, with equal values.
    #[cfg(test)]
    fn with_cpu(self, cpu: Cpu) -> Self {
        Self { cpu, ..self }
    }

    /// Lowers each slot to the least of its value and those of tokens, which are given by their hashes.
    ///
    /// Cost of a token: for the bucketed scheme up to three mixes, and one more for each slot that stays empty; for the
    /// circulant one a mix for each slot.
    ///
    /// # Panics
    /// If the bucketed scheme is given another number of slots than functions were drawn for.
    pub fn lower_slots(&self, hashes: &[u64], slots: &mut [u64]) {
        match &self.slots {
            SlotFunctions::Bucketed(functions) => {
                assert_eq!(
                    functions.len(),
                    slots.len(),
                    "a function belongs to each slot"
                );
                lower_by_rounds(self.cpu, functions, hashes, slots);
            }
            &SlotFunctions::Circulant { sigma, pi } => self.cpu.run(CirculantKernel {
                sigma,
                pi,
                hashes,
                slots,
            }),
        }
    }
}

struct CirculantKernel<'a> {
    sigma: u64,
    pi: u64,
    hashes: &'a [u64],
    slots: &'a mut [u64],
}

impl Kernel for CirculantKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        for &hash in self.hashes {
            let first = mix_bits(hash.wrapping_add(self.sigma)).wrapping_add(self.pi);
            for (slot, shift) in self.slots.iter_mut().zip(1u64..) {
                *slot = (*slot).min(mix_bits(first.wrapping_sub(shift)));
            }
        }
    }
}

/// Bits of a bucketed value that are its round, and rounds before the slots' own functions.
const ROUND_BITS: u32 = 2;
const RANK_BITS: u32 = 32 - ROUND_BITS;
const ROUND_COUNT: u32 = (1 << ROUND_BITS) - 1;

/// Least value of a slot that no round filled.
const UNFILLED_SLOT: u32 = ROUND_COUNT << RANK_BITS;

/// Constants that make the seeds of the rounds and of the slots' own functions differ.
const FIRST_ROUND: u64 = 0x6a09_e667_f3bc_c909;
const ROUND_STEP: u64 = 0x3c6e_f372_fe94_f82b;
const OWN_FUNCTIONS: u64 = 0xbb67_ae85_84ca_a73b;

/// Adds tokens to the slots of the bucketed scheme.
fn lower_by_rounds(cpu: Cpu, functions: &[AffineFunction], hashes: &[u64], slots: &mut [u64]) {
    let Some(&(factor, summand)) = functions.first() else {
        return;
    };
    let buckets = BucketChoice::new(functions.len());
    let mut mixed = vec![0; hashes.len()];
    for round in 0..ROUND_COUNT {
        let seed = summand ^ FIRST_ROUND ^ u64::from(round).wrapping_mul(ROUND_STEP);
        cpu.run(MixKernel {
            hashes,
            seed,
            mixed: &mut mixed,
        });
        for &mixed in &mixed {
            let value = u64::from(round << RANK_BITS) | (mixed >> (32 + ROUND_BITS));
            let slot = &mut slots[buckets.choose_bucket(mixed)];
            *slot = (*slot).min(value);
        }
        let next = u64::from((round + 1) << RANK_BITS);
        if slots.iter().all(|&slot| slot < next) {
            return;
        }
    }
    cpu.run(MixKernel {
        hashes,
        seed: factor ^ OWN_FUNCTIONS,
        mixed: &mut mixed,
    });
    for (slot, &(factor, summand)) in slots.iter_mut().zip(functions) {
        if *slot < u64::from(UNFILLED_SLOT) {
            continue;
        }
        let ranks = mixed
            .iter()
            .map(|hash| hash.wrapping_mul(factor).wrapping_add(summand));
        if let Some(least) = ranks.min() {
            *slot = (*slot).min(u64::from(UNFILLED_SLOT) | (least >> (32 + ROUND_BITS)));
        }
    }
}

/// Mixes each hash with a seed.
struct MixKernel<'a> {
    hashes: &'a [u64],
    seed: u64,
    mixed: &'a mut [u64],
}

impl Kernel for MixKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        for (mixed, hash) in self.mixed.iter_mut().zip(self.hashes) {
            *mixed = mix_next(hash ^ self.seed);
        }
    }
}

/// Chooses the slot of a token without a bias, by Lemire's multiplication and rejection.
struct BucketChoice {
    count: u32,
    /// Products whose lower half is less are rejected.
    threshold: u32,
}

impl BucketChoice {
    /// Takes a number of slots of at least 1.
    fn new(count: usize) -> Self {
        let count = count as u32;
        Self {
            count,
            threshold: count.wrapping_neg() % count,
        }
    }

    #[inline(always)]
    fn choose_bucket(&self, mut mixed: u64) -> usize {
        loop {
            let product = u64::from(mixed as u32) * u64::from(self.count);
            if product as u32 >= self.threshold {
                return (product >> 32) as usize;
            }
            mixed = mix_next(mixed);
        }
    }
}

/// The generator Xoshiro256++ of Blackman and Vigna, with a state from SplitMix64.
struct SeedSequence([u64; 4]);

impl SeedSequence {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(GOLDEN_RATIO);
            mix_bits(state)
        }))
    }

    fn next_number(&mut self) -> u64 {
        let Self([a, b, c, d]) = self;
        let number = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        number
    }
}

/// 2⁶⁴ divided by the golden ratio.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the number that SplitMix64 gives after a state.
#[inline(always)]
fn mix_next(state: u64) -> u64 {
    mix_bits(state.wrapping_add(GOLDEN_RATIO))
}

/// Returns the hash of a token: that of `FxHasher` of the crate `rustc-hash` 2, on 64 bits.
pub fn hash_rensa_token(token: &[u8]) -> u64 {
    const HASH_FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
    compress_token(token)
        .wrapping_mul(HASH_FACTOR)
        .rotate_left(26)
}

fn compress_token(token: &[u8]) -> u64 {
    const AGAINST_ZERO: u64 = 0xa409_3822_299f_31d0;
    let (mut a, mut b): (u64, u64) = (0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
    let word = |at: usize| u64::from_le_bytes(*token[at..].first_chunk().expect("8 bytes follow"));
    let half = |at: usize| u32::from_le_bytes(*token[at..].first_chunk().expect("4 bytes follow"));
    match token.len() {
        0 => {}
        length @ 1..4 => {
            a ^= u64::from(token[0]);
            b ^= (u64::from(token[length - 1]) << 8) | u64::from(token[length / 2]);
        }
        length @ 4..8 => {
            a ^= u64::from(half(0));
            b ^= u64::from(half(length - 4));
        }
        length @ 8..=16 => {
            a ^= word(0);
            b ^= word(length - 8);
        }
        length => {
            for at in (0..length - 16).step_by(16) {
                let mixed = fold_product(a ^ word(at), AGAINST_ZERO ^ word(at + 8));
                (a, b) = (b, mixed);
            }
            a ^= word(length - 16);
            b ^= word(length - 8);
        }
    }
    fold_product(a, b) ^ token.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every instruction set gives the values of the plain one, whatever the number of tokens and slots, and however
    /// they are divided into updates.
    #[test]
    fn values_do_not_depend_on_instructions_or_updates() {
        for scheme in [RensaScheme::Bucketed, RensaScheme::Circulant] {
            for (slots, tokens) in [(1, 3), (7, 1), (128, 40), (128, 400), (200, 1000)] {
                let hashes: Vec<u64> = (0..tokens as u32)
                    .map(|token| hash_rensa_token(&token.to_le_bytes()))
                    .collect();
                let functions = RensaFunctions::draw_functions(scheme, slots, 42);
                let lowered = |cpu, parts: usize| {
                    let functions = functions.clone().with_cpu(cpu);
                    let mut values = vec![scheme.empty_value(); slots];
                    for part in hashes.chunks(hashes.len().div_ceil(parts)) {
                        functions.lower_slots(part, &mut values);
                    }
                    values
                };
                let plain = lowered(Cpu::detect_all()[0], 1);
                assert!(plain.iter().all(|&value| value < scheme.empty_value()));
                for cpu in Cpu::detect_all() {
                    for parts in [1, 3] {
                        assert_eq!(
                            lowered(cpu, parts),
                            plain,
                            "{} {slots} {tokens}",
                            cpu.name()
                        );
                    }
                }
            }
        }
    }
}
