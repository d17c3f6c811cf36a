//! Fingerprints as unsigned integers, 64 or 128 bits wide.

use std::fmt::Debug;
use std::hash::Hash;

/// A fingerprint in the lowest bits of an integer; the bits above are 0.
///
/// `u64` implements it for fingerprints of 8–64 bits, and `u128` for those of 65–128 bits.
pub trait FingerprintCode:
    bytemuck::Pod + Ord + Hash + Debug + Default + Send + Sync + sealed::SealedCode + 'static
{
    /// Width of the type in bits, which is the largest width of its fingerprints.
    const BITS: u32;

    /// A fingerprint and its row, without padding.
    #[doc(hidden)]
    type Entry: bytemuck::Pod + Send + Sync;

    #[doc(hidden)]
    fn pack_entry(self, row: u32) -> Self::Entry;

    #[doc(hidden)]
    fn unpack_entry(entry: Self::Entry) -> (Self, u32);

    /// Returns the fingerprint as a 128-bit integer.
    fn widen(self) -> u128;

    /// Returns the lowest [`BITS`](Self::BITS) bits of a 128-bit integer.
    fn narrow_from(wide: u128) -> Self;

    /// Returns the bits in which the two differ.
    fn differing_bits(self, other: Self) -> Self;

    /// Returns the number of bits that are 1.
    fn count_ones(self) -> u32;

    /// Returns bits `shift..shift + 32`; those past the end are 0. `shift` must be below
    /// [`BITS`](Self::BITS).
    fn word_at(self, shift: u32) -> u32;

    /// Returns the Hamming distance.
    #[inline(always)]
    fn hamming_distance(self, other: Self) -> u32 {
        self.differing_bits(other).count_ones()
    }

    /// Returns the number of bits of `mask` that are 1.
    #[inline(always)]
    fn count_ones_in(self, mask: u128) -> u32 {
        Self::narrow_from(self.widen() & mask).count_ones()
    }
}

mod sealed {
    pub trait SealedCode: bytemuck::Pod {}
    impl SealedCode for u64 {}
    impl SealedCode for u128 {}
}

macro_rules! code {
    ($number:ty, $words:literal) => {
        impl FingerprintCode for $number {
            const BITS: u32 = <$number>::BITS;

            type Entry = [u32; $words + 1];

            #[inline(always)]
            fn pack_entry(self, row: u32) -> Self::Entry {
                let word = |at: usize| (self >> (32 * at)) as u32;
                std::array::from_fn(|at| if at < $words { word(at) } else { row })
            }

            #[inline(always)]
            fn unpack_entry(entry: Self::Entry) -> (Self, u32) {
                let words = entry[..$words].iter().rev();
                let code = words.fold(0, |code, &word| code << 32 | Self::from(word));
                (code, entry[$words])
            }

            #[inline(always)]
            fn widen(self) -> u128 {
                self.into()
            }

            #[inline(always)]
            fn narrow_from(wide: u128) -> Self {
                wide as Self
            }

            #[inline(always)]
            fn differing_bits(self, other: Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            fn count_ones(self) -> u32 {
                self.count_ones()
            }

            #[inline(always)]
            fn word_at(self, shift: u32) -> u32 {
                (self >> shift) as u32
            }
        }
    };
}

code!(u64, 2);
code!(u128, 4);

/// Returns a mask of the lowest `bits` bits, at most 128.
pub(crate) const fn low_bits_mask(bits: u32) -> u128 {
    if bits == 0 {
        0
    } else {
        u128::MAX >> (128 - bits)
    }
}
