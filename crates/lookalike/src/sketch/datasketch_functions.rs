//! The functions of the signatures of the Python package `datasketch`, before 2.0 and since.
//!
//! Both families draw the numbers of their functions from the Mersenne Twister of NumPy's `RandomState`
//! (Matsumoto and Nishimura 1998). Its seed is the recipe's, and draws beyond the range are rejected.

use super::permuted::PermutedScheme;
use crate::recipe::MinHashFamily;

/// The functions of the slots of a signature: `factor · hash + summand` in the arithmetic of the family.
#[derive(Clone, Debug)]
pub(super) struct PermutationFunctions {
    pub(super) factors: Vec<u64>,
    pub(super) summands: Vec<u64>,
}

/// 2⁶¹ − 1, the modulus of the older family.
const MERSENNE_PRIME: u64 = (1 << 61) - 1;

impl PermutationFunctions {
    /// Returns the functions of a family of this package, or `None` for the other families.
    pub(super) fn new(family: MinHashFamily, slots: usize, seed: u32) -> Option<Self> {
        let scheme = match family {
            MinHashFamily::DatasketchLegacy => PermutedScheme::Legacy,
            MinHashFamily::DatasketchAffine32 => PermutedScheme::Affine32,
            MinHashFamily::FastSimilarity | MinHashFamily::Affine32 => return None,
        };
        Some(Self::draw_functions(scheme, slots, seed))
    }

    /// Draws the functions of a scheme.
    pub(super) fn draw_functions(scheme: PermutedScheme, slots: usize, seed: u32) -> Self {
        let mut random = MersenneTwister::new(seed);
        let mut numbers = |draw: fn(&mut MersenneTwister) -> u64| -> Vec<u64> {
            (0..slots).map(|_| draw(&mut random)).collect()
        };
        match scheme {
            PermutedScheme::Legacy => {
                let pairs = (0..slots).map(|_| {
                    (
                        random.next_between(1, MERSENNE_PRIME),
                        random.next_between(0, MERSENNE_PRIME),
                    )
                });
                let (factors, summands) = pairs.unzip();
                Self { factors, summands }
            }
            PermutedScheme::Affine32 => Self {
                factors: numbers(|random| u64::from(random.next_32() & i32::MAX as u32) * 2 + 1),
                summands: numbers(|random| random.next_32().into()),
            },
            PermutedScheme::Affine64 => Self {
                factors: numbers(|random| (random.next_64() & i64::MAX as u64) * 2 + 1),
                summands: numbers(MersenneTwister::next_64),
            },
        }
    }
}

/// Returns the value of one function of the older family. Product and sum wrap at 2⁶⁴, as in the package.
#[inline(always)]
pub(super) fn legacy_value(factor: u64, summand: u64, hash: u64) -> u32 {
    let sum = factor.wrapping_mul(hash).wrapping_add(summand);
    let folded = (sum & MERSENNE_PRIME) + (sum >> 61);
    // The folded sum is below 2 · `MERSENNE_PRIME`.
    (if folded >= MERSENNE_PRIME {
        folded - MERSENNE_PRIME
    } else {
        folded
    }) as u32
}

/// The finaliser of MurmurHash3 on 32 bits, which the newer family applies to a hash first.
#[inline(always)]
pub(super) fn finalize_hash(mut hash: u32) -> u32 {
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// The finaliser of MurmurHash3 on 64 bits.
#[inline(always)]
pub(super) fn finalized_64(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// The Mersenne Twister MT19937.
struct MersenneTwister {
    state: [u32; TWISTER_WORDS],
    at: usize,
}

const TWISTER_WORDS: usize = 624;
const TWISTER_MIDDLE: usize = 397;

impl MersenneTwister {
    fn new(seed: u32) -> Self {
        let mut state = [seed; TWISTER_WORDS];
        for at in 1..TWISTER_WORDS {
            let before = state[at - 1];
            state[at] = (before ^ before >> 30)
                .wrapping_mul(1_812_433_253)
                .wrapping_add(at as u32);
        }
        Self {
            state,
            at: TWISTER_WORDS,
        }
    }

    fn next_32(&mut self) -> u32 {
        if self.at == TWISTER_WORDS {
            self.twist_state();
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn twist_state(&mut self) {
        for at in 0..TWISTER_WORDS {
            let next = self.state[(at + 1) % TWISTER_WORDS];
            let joined = self.state[at] & 1 << 31 | next & !(1 << 31);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[at] = self.state[(at + TWISTER_MIDDLE) % TWISTER_WORDS] ^ joined >> 1 ^ odd;
        }
        self.at = 0;
    }

    /// Returns a number of 64 bits, its upper half drawn first.
    fn next_64(&mut self) -> u64 {
        let high = self.next_32();
        u64::from(high) << 32 | u64::from(self.next_32())
    }

    /// Returns a number from `low` up to, but not including, `high`.
    fn next_between(&mut self, low: u64, high: u64) -> u64 {
        let most = high - 1 - low;
        let mask = u64::MAX >> most.leading_zeros();
        loop {
            let drawn = self.next_64() & mask;
            if drawn <= most {
                return low + drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mersenne_twister_equals_the_reference() {
        let mut random = MersenneTwister::new(5489);
        assert_eq!(
            [random.next_32(), random.next_32()],
            [3_499_211_612, 581_869_302]
        );
        let thousands = (2..10_000).map(|_| random.next_32()).last();
        assert_eq!(thousands, Some(4_123_659_995));
    }

    #[test]
    fn folding_equals_the_remainder() {
        for sum in [
            0,
            1,
            MERSENNE_PRIME - 1,
            MERSENNE_PRIME,
            MERSENNE_PRIME + 1,
            u64::MAX,
            u64::MAX - 7,
            7 * MERSENNE_PRIME,
        ] {
            assert_eq!(
                legacy_value(1, sum, 0),
                (sum % MERSENNE_PRIME) as u32,
                "{sum}"
            );
        }
    }
}
