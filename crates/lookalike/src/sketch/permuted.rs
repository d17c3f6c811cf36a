//! The MinHash of the Python package `datasketch`, for callers who bring one hash after another.
//!
//! [`MinHasher`](super::MinHasher) signs a text at once, under a recipe. Here the hashes come in any
//! portions and with any parameters, as that package has it, and the result is its own bit for bit: of
//! its three schemes, [`PermutedScheme`], whose values are of 32 bits (affine32) or of 64. `legacy`
//! values fit into 32 bits, but the package keeps them in 64.

use super::compat::{Buffers, Permutations, datasketch_hashes, finalized, finalized_64, legacy};
use crate::arch::{Arch, Cpu, Kernel};
use crate::error::{Error, Result};

/// How a hash becomes the value of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermutedScheme {
    /// `factor · hash + summand` in 32 bits, of finalised hashes; factors are odd.
    Affine32,
    /// The same in 64 bits.
    Affine64,
    /// `(factor · hash + summand) mod (2⁶¹ − 1)`, the lower 32 bits; product and sum wrap at 2⁶⁴.
    Legacy,
}

/// The functions of all slots.
#[derive(Clone, Debug)]
pub struct Permuted {
    scheme: PermutedScheme,
    factors: Vec<u64>,
    summands: Vec<u64>,
    /// The same in 32 bits.
    narrow: (Vec<u32>, Vec<u32>),
    cpu: Cpu,
}

impl Permuted {
    /// The functions that the package draws for a seed.
    pub fn drawn(scheme: PermutedScheme, slots: usize, seed: u32) -> Self {
        let Permutations { factors, summands } = Permutations::drawn(scheme, slots, seed);
        Self::of_numbers(scheme, factors, summands)
    }

    /// Functions that somebody else has drawn.
    ///
    /// # Errors
    /// If there are not as many factors as summands, or an affine scheme has a number that its width
    /// does not hold or a factor that is even.
    pub fn new(scheme: PermutedScheme, factors: Vec<u64>, summands: Vec<u64>) -> Result<Self> {
        if factors.len() != summands.len() {
            return Err(Error::setting(format!(
                "there are {} factors and {} summands",
                factors.len(),
                summands.len()
            )));
        }
        let all = || factors.iter().chain(&summands);
        if let Some(wide) = all().find(|&&number| number > u64::from(u32::MAX))
            && scheme == PermutedScheme::Affine32
        {
            return Err(Error::setting(format!(
                "the number {wide} has more than 32 bits"
            )));
        }
        if let Some(even) = factors.iter().find(|&&factor| factor % 2 == 0)
            && scheme != PermutedScheme::Legacy
        {
            return Err(Error::setting(format!("the factor {even} is even")));
        }
        Ok(Self::of_numbers(scheme, factors, summands))
    }

    fn of_numbers(scheme: PermutedScheme, factors: Vec<u64>, summands: Vec<u64>) -> Self {
        let narrow = |numbers: &[u64]| match scheme {
            PermutedScheme::Affine32 => numbers.iter().map(|&number| number as u32).collect(),
            PermutedScheme::Affine64 | PermutedScheme::Legacy => Vec::new(),
        };
        Self {
            scheme,
            narrow: (narrow(&factors), narrow(&summands)),
            factors,
            summands,
            cpu: Cpu::best(),
        }
    }

    /// The scheme.
    pub fn scheme(&self) -> PermutedScheme {
        self.scheme
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.factors.len()
    }

    /// The factor of every slot.
    pub fn factors(&self) -> &[u64] {
        &self.factors
    }

    /// The summand of every slot.
    pub fn summands(&self) -> &[u64] {
        &self.summands
    }

    /// Lowers slots of 32 bits to the least of what they are and their functions of the hashes.
    ///
    /// # Panics
    /// Unless the scheme is [`PermutedScheme::Affine32`] and every slot is there.
    pub fn lower_narrow(&self, hashes: &[u32], slots: &mut [u32]) {
        assert_eq!(
            self.scheme,
            PermutedScheme::Affine32,
            "these slots are wide"
        );
        let functions = (&self.narrow.0[..], &self.narrow.1[..]);
        let finalised: Vec<u32> = hashes.iter().map(|&hash| finalized(hash)).collect();
        self.lower(functions, &finalised, slots, |factor, summand, hash| {
            factor.wrapping_mul(hash).wrapping_add(summand)
        });
    }

    /// The same for slots of 64 bits.
    ///
    /// # Panics
    /// If the scheme is [`PermutedScheme::Affine32`], or a slot is missing.
    pub fn lower_wide(&self, hashes: &[u64], slots: &mut [u64]) {
        let functions = (&self.factors[..], &self.summands[..]);
        match self.scheme {
            PermutedScheme::Affine32 => panic!("these slots are narrow"),
            PermutedScheme::Affine64 => {
                let finalised: Vec<u64> = hashes.iter().map(|&hash| finalized_64(hash)).collect();
                self.lower(functions, &finalised, slots, |factor, summand, hash| {
                    factor.wrapping_mul(hash).wrapping_add(summand)
                });
            }
            PermutedScheme::Legacy => {
                self.lower(functions, hashes, slots, |factor, summand, hash| {
                    u64::from(legacy(factor, summand, hash))
                });
            }
        }
    }

    fn lower<T: Copy + Ord>(
        &self,
        functions: (&[T], &[T]),
        hashes: &[T],
        slots: &mut [T],
        apply: impl Fn(T, T, T) -> T,
    ) {
        assert_eq!(slots.len(), self.slots(), "every function has a slot");
        self.cpu.run(Lower {
            functions,
            hashes,
            slots,
            apply,
        });
    }
}

/// Slots that are lowered together; those of 32 bits fit into the registers of a CPU.
const SLOTS_AT_ONCE: usize = 64;

struct Lower<'a, T, F> {
    functions: (&'a [T], &'a [T]),
    hashes: &'a [T],
    slots: &'a mut [T],
    apply: F,
}

impl<T: Copy + Ord, F: Fn(T, T, T) -> T> Kernel for Lower<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        let Self {
            functions: (factors, summands),
            hashes,
            slots,
            apply,
        } = self;
        let (whole, rest) = slots.as_chunks_mut::<SLOTS_AT_ONCE>();
        let (factor_chunks, factors) = factors.as_chunks::<SLOTS_AT_ONCE>();
        let (summand_chunks, summands) = summands.as_chunks::<SLOTS_AT_ONCE>();
        for ((slots, factors), summands) in whole.iter_mut().zip(factor_chunks).zip(summand_chunks)
        {
            let mut least = *slots;
            for &hash in hashes {
                for slot in 0..SLOTS_AT_ONCE {
                    least[slot] = least[slot].min(apply(factors[slot], summands[slot], hash));
                }
            }
            *slots = least;
        }
        for ((slot, &factor), &summand) in rest.iter_mut().zip(factors).zip(summands) {
            for &hash in hashes {
                *slot = (*slot).min(apply(factor, summand, hash));
            }
        }
    }
}

/// Hashes messages as the package does unless it is told otherwise: the first eight bytes of SHA-1,
/// little-endian, of which the narrow scheme and the older one take the lower half.
///
/// Remembers short messages that came before: 1 MiB.
#[derive(Debug, Default)]
pub struct MessageHasher(Buffers);

impl MessageHasher {
    /// The hashes of messages that lie one after another, each up to one of `ends`.
    ///
    /// # Panics
    /// If the ends are not ascending or beyond the bytes.
    pub fn hashes(&mut self, messages: &[u8], ends: &[usize]) -> &[u64] {
        datasketch_hashes(Cpu::best(), messages, ends, &mut self.0)
    }
}
