//! Fingerprints as unsigned integers, 64 or 128 bits wide.

use std::fmt::Debug;
use std::hash::Hash;

/// A fingerprint in the lowest bits of an integer; the bits above are 0.
///
/// `u64` implements it for fingerprints of 8–64 bits, and `u128` for those of 65–128 bits.
pub trait Code:
    bytemuck::Pod + Ord + Hash + Debug + Default + Send + Sync + sealed::Sealed + 'static
{
    /// Width of the type in bits, which is the largest width of its fingerprints.
    const BITS: u32;

    /// A fingerprint and its row, without padding.
    #[doc(hidden)]
    type Entry: bytemuck::Pod + Send + Sync;

    #[doc(hidden)]
    fn entry(self, row: u32) -> Self::Entry;

    #[doc(hidden)]
    fn of_entry(entry: Self::Entry) -> (Self, u32);

    /// Returns the fingerprint as a 128-bit integer.
    fn widen(self) -> u128;

    /// Returns the lowest [`BITS`](Self::BITS) bits of a 128-bit integer.
    fn narrow(wide: u128) -> Self;

    /// Returns the bits in which the two differ.
    fn xor(self, other: Self) -> Self;

    /// Returns the number of bits that are 1.
    fn ones(self) -> u32;

    /// Returns bits `shift..shift + 32`; those past the end are 0. `shift` must be below
    /// [`BITS`](Self::BITS).
    fn word(self, shift: u32) -> u32;

    /// Returns the Hamming distance.
    #[inline(always)]
    fn distance(self, other: Self) -> u32 {
        self.xor(other).ones()
    }

    /// Returns the number of bits of `mask` that are 1.
    #[inline(always)]
    fn ones_in(self, mask: u128) -> u32 {
        Self::narrow(self.widen() & mask).ones()
    }
}

mod sealed {
    pub trait Sealed: bytemuck::Pod {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

macro_rules! code {
    ($number:ty, $words:literal) => {
        impl Code for $number {
            const BITS: u32 = <$number>::BITS;

            type Entry = [u32; $words + 1];

            #[inline(always)]
            fn entry(self, row: u32) -> Self::Entry {
                let word = |at: usize| (self >> (32 * at)) as u32;
                std::array::from_fn(|at| if at < $words { word(at) } else { row })
            }

            #[inline(always)]
            fn of_entry(entry: Self::Entry) -> (Self, u32) {
                let words = entry[..$words].iter().rev();
                let code = words.fold(0, |code, &word| code << 32 | Self::from(word));
                (code, entry[$words])
            }

            #[inline(always)]
            fn widen(self) -> u128 {
                self.into()
            }

            #[inline(always)]
            fn narrow(wide: u128) -> Self {
                wide as Self
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            fn ones(self) -> u32 {
                self.count_ones()
            }

            #[inline(always)]
            fn word(self, shift: u32) -> u32 {
                (self >> shift) as u32
            }
        }
    };
}

code!(u64, 2);
code!(u128, 4);

/// Returns a mask of the lowest `bits` bits, at most 128.
pub(crate) const fn low_bits(bits: u32) -> u128 {
    if bits == 0 {
        0
    } else {
        u128::MAX >> (128 - bits)
    }
}
