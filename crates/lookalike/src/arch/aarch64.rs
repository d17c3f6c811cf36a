//! NEON, which every 64-bit ARM CPU has.

use std::arch::aarch64::*;
use std::arch::asm;

use super::{Arch, BLOCK, BlockMasks, CacheLine, Kernel, LANES, LINE, Plain, StripLanes};

/// Runs a kernel with NEON.
#[inline]
pub(super) fn run_neon<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Neon(()))
}

/// The instructions of NEON. Operations on registers are safe, because every 64-bit ARM CPU has NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Arch for Neon {
    #[inline(always)]
    fn ascii_block<const FOLD: bool>(
        self,
        block: &[u8; BLOCK],
        copy: &mut [u8; BLOCK],
    ) -> BlockMasks {
        let [mut word, mut space, mut non_ascii] = [[none(); 4]; 3];
        for (quarter, copy) in copy.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let bytes = load(block, quarter);
            // SAFETY: NEON is always available; the copy takes 16 bytes, unaligned.
            unsafe {
                let from = |first: u8, length: u8| {
                    vcltq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(length))
                };
                let upper = from(b'A', 26);
                let folded = if FOLD {
                    vorrq_u8(bytes, vandq_u8(upper, vdupq_n_u8(0x20)))
                } else {
                    bytes
                };
                vst1q_u8(copy.as_mut_ptr(), folded);
                word[quarter] = vorrq_u8(vorrq_u8(upper, from(b'a', 26)), from(b'0', 10));
                space[quarter] = vorrq_u8(from(0, 33), from(0x7f, 1));
                non_ascii[quarter] = vcgeq_u8(bytes, vdupq_n_u8(0x80));
            }
        }
        BlockMasks {
            word: bits(word),
            space: bits(space),
            non_ascii: bits(non_ascii),
        }
    }

    #[inline(always)]
    fn either(self, block: &[u8; BLOCK], wanted: [u8; 2]) -> u64 {
        bits(std::array::from_fn(|quarter| {
            let bytes = load(block, quarter);
            // SAFETY: NEON is always available.
            unsafe {
                let is = |byte: u8| vceqq_u8(bytes, vdupq_n_u8(byte));
                vorrq_u8(is(wanted[0]), is(wanted[1]))
            }
        }))
    }

    #[inline(always)]
    fn positions(self, bits: u64, base: u32, positions: &mut [u32; BLOCK]) -> usize {
        Plain.positions(bits, base, positions)
    }

    #[inline(always)]
    fn near(self, line: &CacheLine, query: u32, limit: u32) -> u32 {
        // SAFETY: NEON is always available; the four quarters of the line's 64 bytes are read.
        unsafe {
            let [a, b, c, d]: [uint16x4_t; 4] = std::array::from_fn(|quarter| {
                let words = vld1q_u32(line.0.as_ptr().add(LINE / 4 * quarter));
                let differing = veorq_u32(words, vdupq_n_u32(query));
                let ones = vpaddlq_u16(vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u32(differing))));
                vmovn_u32(vcleq_u32(ones, vdupq_n_u32(limit)))
            });
            let low = vmovn_u16(vcombine_u16(a, b));
            let near = vcombine_u8(low, vmovn_u16(vcombine_u16(c, d)));
            bits([near, none(), none(), none()]) as u32
        }
    }

    #[inline(always)]
    fn near_64(self, numbers: &[u64; 8], query: u64, limit: u32) -> u32 {
        // SAFETY: NEON is always available; the four quarters of the 64 bytes are read.
        unsafe {
            let [a, b, c, d]: [uint32x2_t; 4] = std::array::from_fn(|quarter| {
                let numbers = vld1q_u64(numbers.as_ptr().add(2 * quarter));
                let differing = veorq_u64(numbers, vdupq_n_u64(query));
                let ones = vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u64(differing)));
                let ones = vpaddlq_u32(vpaddlq_u16(ones));
                vmovn_u64(vcleq_u64(ones, vdupq_n_u64(limit.into())))
            });
            let low = vmovn_u32(vcombine_u32(a, b));
            let near = vmovn_u16(vcombine_u16(low, vmovn_u32(vcombine_u32(c, d))));
            let near = vcombine_u8(near, vdup_n_u8(0));
            bits([near, none(), none(), none()]) as u32
        }
    }

    #[inline(always)]
    fn near_128(self, numbers: &[u128; 4], query: u128, limit: u32) -> u32 {
        let numbers = numbers.iter().enumerate();
        numbers.fold(0, |mask, (at, number)| {
            let differing = (number ^ query).to_ne_bytes();
            // SAFETY: NEON is always available; 16 bytes are read.
            let ones = unsafe { vaddvq_u8(vcntq_u8(vld1q_u8(differing.as_ptr()))) };
            mask | u32::from(u32::from(ones) <= limit) << at
        })
    }

    #[inline(always)]
    fn differing(self, a: &[[u64; 8]], b: &[[u64; 8]]) -> u64 {
        Plain.differing(a, b)
    }

    #[inline(always)]
    fn gather(self, word: u64, mask: u64) -> u64 {
        Plain.gather(word, mask)
    }

    #[inline(always)]
    fn advance_strips(
        self,
        strips: &mut StripLanes,
        rows: &[[u64; LANES]],
        symbols: &[u32; LANES],
        first: &[u64; LANES],
        above: [u64; 2],
    ) {
        Plain.advance_strips(strips, rows, symbols, first, above);
    }
}

#[inline(always)]
fn none() -> uint8x16_t {
    // SAFETY: NEON is always available.
    unsafe { vdupq_n_u8(0) }
}

#[inline(always)]
fn load(block: &[u8; BLOCK], quarter: usize) -> uint8x16_t {
    let bytes = &block.as_chunks::<16>().0[quarter];
    // SAFETY: NEON is always available; 16 bytes are read.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Returns a mask in which bit i is set if byte i of 64 is all ones. Every byte must be all ones or 0.
#[inline(always)]
fn bits(bytes: [uint8x16_t; 4]) -> u64 {
    static BIT_PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: NEON is always available; 16 bytes are read.
    unsafe {
        let places = vld1q_u8(BIT_PLACES.as_ptr());
        let [a, b, c, d] = bytes.map(|bytes| vandq_u8(bytes, places));
        let sum = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)))
    }
}

/// Prefetches the cache line of a value.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    // SAFETY: a prefetch has no visible effect, and the address is that of a value.
    unsafe {
        asm!(
            "prfm pldl1keep, [{at}]",
            at = in(reg) std::ptr::from_ref(value),
            options(nostack, preserves_flags, readonly)
        );
    }
}
