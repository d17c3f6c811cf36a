//! The MinHash of the Python package `datasketch`, for callers that supply hashes one after another.
//!
//! [`MinHasher`](super::MinHasher) signs a whole text under a recipe. Here hashes come in batches of any
//! size and with any parameters, as in that package, and the result equals the package's bit for bit.
//! The package has three schemes ([`PermutedScheme`]), with values of 32 bits (affine32) or 64 bits.
//! `legacy_value` values fit into 32 bits, but the package stores them in 64.

use super::datasketch_functions::{
    PermutationFunctions, finalize_hash, finalized_64, legacy_value,
};
use crate::arch::{Arch, Cpu, Kernel};
use crate::compat::{CompatBuffers, datasketch_hashes};
use crate::error::{Error, Result};

/// The arithmetic that turns a hash into the value of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermutedScheme {
    /// `factor · hash + summand` in 32 bits, on finalised hashes; factors are odd.
    Affine32,
    /// `factor · hash + summand` in 64 bits, on finalised hashes; factors are odd.
    Affine64,
    /// The lower 32 bits of `(factor · hash + summand) mod (2⁶¹ − 1)`; product and sum wrap at 2⁶⁴.
    Legacy,
}

/// The functions of all slots.
#[derive(Clone, Debug)]
pub struct PermutedFunctions {
    scheme: PermutedScheme,
    factors: Vec<u64>,
    summands: Vec<u64>,
    /// Factors and summands in 32 bits; empty except for [`PermutedScheme::Affine32`].
    narrow: (Vec<u32>, Vec<u32>),
    cpu: Cpu,
}

impl PermutedFunctions {
    /// Returns the functions that the package draws for a seed.
    pub fn draw_functions(scheme: PermutedScheme, slots: usize, seed: u32) -> Self {
        let PermutationFunctions { factors, summands } =
            PermutationFunctions::draw_functions(scheme, slots, seed);
        Self::of_numbers(scheme, factors, summands)
    }

    /// Creates functions from numbers that the caller has drawn.
    ///
    /// # Errors
    /// [`ErrorKind::Setting`](crate::ErrorKind::Setting) if there are not as many
    /// factors as summands, if a number of affine32 has more than 32 bits, or if a factor of an affine
    /// scheme is even.
    pub fn new(scheme: PermutedScheme, factors: Vec<u64>, summands: Vec<u64>) -> Result<Self> {
        if factors.len() != summands.len() {
            return Err(Error::setting_error(format!(
                "there are {} factors and {} summands",
                factors.len(),
                summands.len()
            )));
        }
        let all = || factors.iter().chain(&summands);
        if let Some(wide) = all().find(|&&number| number > u64::from(u32::MAX))
            && scheme == PermutedScheme::Affine32
        {
            return Err(Error::setting_error(format!(
                "the number {wide} has more than 32 bits"
            )));
        }
        if let Some(even) = factors.iter().find(|&&factor| factor % 2 == 0)
            && scheme != PermutedScheme::Legacy
        {
            return Err(Error::setting_error(format!("the factor {even} is even")));
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
            cpu: Cpu::detect_best(),
        }
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> PermutedScheme {
        self.scheme
    }

    /// Returns the number of slots.
    pub fn slot_count(&self) -> usize {
        self.factors.len()
    }

    /// Returns the factor of every slot.
    pub fn factors(&self) -> &[u64] {
        &self.factors
    }

    /// Returns the summand of every slot.
    pub fn summands(&self) -> &[u64] {
        &self.summands
    }

    /// Lowers each 32-bit slot to the minimum of its value and its function's values for the hashes.
    ///
    /// # Panics
    /// If the scheme is not [`PermutedScheme::Affine32`], or the number of slots is wrong.
    pub fn lower_narrow(&self, hashes: &[u32], slots: &mut [u32]) {
        assert_eq!(
            self.scheme,
            PermutedScheme::Affine32,
            "these slots are wide"
        );
        let functions = (&self.narrow.0[..], &self.narrow.1[..]);
        let finalised: Vec<u32> = hashes.iter().map(|&hash| finalize_hash(hash)).collect();
        self.lower_slots(functions, &finalised, slots, |factor, summand, hash| {
            factor.wrapping_mul(hash).wrapping_add(summand)
        });
    }

    /// Lowers each 64-bit slot to the minimum of its value and its function's values for the hashes.
    ///
    /// # Panics
    /// If the scheme is [`PermutedScheme::Affine32`], or the number of slots is wrong.
    pub fn lower_wide(&self, hashes: &[u64], slots: &mut [u64]) {
        let functions = (&self.factors[..], &self.summands[..]);
        match self.scheme {
            PermutedScheme::Affine32 => panic!("these slots are narrow"),
            PermutedScheme::Affine64 => {
                let finalised: Vec<u64> = hashes.iter().map(|&hash| finalized_64(hash)).collect();
                self.lower_slots(functions, &finalised, slots, |factor, summand, hash| {
                    factor.wrapping_mul(hash).wrapping_add(summand)
                });
            }
            PermutedScheme::Legacy => {
                self.lower_slots(functions, hashes, slots, |factor, summand, hash| {
                    u64::from(legacy_value(factor, summand, hash))
                });
            }
        }
    }

    fn lower_slots<T: Copy + Ord>(
        &self,
        functions: (&[T], &[T]),
        hashes: &[T],
        slots: &mut [T],
        apply: impl Fn(T, T, T) -> T,
    ) {
        assert_eq!(slots.len(), self.slot_count(), "every function has a slot");
        self.cpu.run(LowerSlotsKernel {
            functions,
            hashes,
            slots,
            apply,
        });
    }
}

/// Number of slots that are lowered together. Those of 32 bits fit into the registers of a CPU.
const SLOTS_AT_ONCE: usize = 64;

struct LowerSlotsKernel<'a, T, F> {
    functions: (&'a [T], &'a [T]),
    hashes: &'a [T],
    slots: &'a mut [T],
    apply: F,
}

impl<T: Copy + Ord, F: Fn(T, T, T) -> T> Kernel for LowerSlotsKernel<'_, T, F> {
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

/// Hashes messages as the package does by default: the first eight bytes of SHA-1, little-endian. The scheme
/// affine32 and the older one use the lower half.
///
/// It caches the hashes of short messages, in 1 MiB.
#[derive(Debug, Default)]
pub struct MessageHasher(CompatBuffers);

impl MessageHasher {
    /// Returns the hashes of messages that are stored one after another; message i ends at `ends[i]`.
    ///
    /// # Panics
    /// If the ends are not ascending, or beyond the bytes.
    pub fn hash_messages(&mut self, messages: &[u8], ends: &[usize]) -> &[u64] {
        datasketch_hashes(Cpu::detect_best(), messages, ends, &mut self.0)
    }
}
