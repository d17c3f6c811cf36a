//! AVX2 and AVX-512 for x86-64.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::*;

use super::{Arch, BLOCK, BlockMasks, CacheLine, Kernel, LANES, LINE, Plain, StripLanes};

/// Returns `true` if the CPU and the operating system support everything that [`run_avx2`] uses.
pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Returns `true` if the CPU and the operating system support everything that [`run_avx512`] uses beyond
/// AVX2.
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vpopcntdq")
}

/// Moves the lowest row of every lane to the lane after it, and puts `above` where a strip is the `first` one. A function
/// and not a closure, because a closure that is not inlined has none of the instructions, and calls each of them.
///
/// # Safety
/// [`has_avx2`] must be true.
#[inline(always)]
unsafe fn rows_above_avx2(right: &[u64; LANES], above: u64, first: &[u64; LANES]) -> [__m256i; 2] {
    // SAFETY: the caller has AVX2; both halves of the 64 bytes of an array are read, unaligned.
    unsafe {
        let (right, first) = (right.as_ptr(), first.as_ptr());
        let low = _mm256_srli_epi64::<63>(_mm256_loadu_si256(right.cast()));
        let high = _mm256_srli_epi64::<63>(_mm256_loadu_si256(right.add(4).cast()));
        let low = _mm256_permute4x64_epi64::<TURN_WORDS_UP>(low);
        let high = _mm256_permute4x64_epi64::<TURN_WORDS_UP>(high);
        let above = _mm256_set1_epi64x(above as i64);
        let moved_low = _mm256_blend_epi32::<0b11>(low, _mm256_setzero_si256());
        let moved_high = _mm256_blend_epi32::<0b11>(high, low);
        [
            _mm256_blendv_epi8(moved_low, above, _mm256_loadu_si256(first.cast())),
            _mm256_blendv_epi8(moved_high, above, _mm256_loadu_si256(first.add(4).cast())),
        ]
    }
}

/// Runs a kernel with AVX2.
///
/// # Safety
/// [`has_avx2`] must be true.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

/// Runs a kernel with AVX-512.
///
/// # Safety
/// [`has_avx2`] and [`has_avx512`] must be true.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx512vpopcntdq")]
pub(super) unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

/// Proof that [`has_avx2`] was true, because only [`run_avx2`] makes it.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Proof that [`has_avx512`] was true, because only [`run_avx512`] makes it.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Arch for Avx2 {
    #[inline(always)]
    fn ascii_block<const FOLD: bool>(
        self,
        block: &[u8; BLOCK],
        copy: &mut [u8; BLOCK],
    ) -> BlockMasks {
        let mut masks = BlockMasks {
            word: 0,
            space: 0,
            non_ascii: 0,
        };
        for half in 0..2 {
            // SAFETY: `self` proves that the CPU has AVX2; 32 · half + 32 ≤ 64 bytes are read and written,
            // unaligned.
            unsafe {
                let bytes = _mm256_loadu_si256(block.as_ptr().add(32 * half).cast());
                let from = |first: u8, length: u8| {
                    let offset = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first as i8));
                    let last = _mm256_set1_epi8(length as i8 - 1);
                    _mm256_cmpeq_epi8(_mm256_min_epu8(offset, last), offset)
                };
                let upper = from(b'A', 26);
                let word = _mm256_or_si256(_mm256_or_si256(upper, from(b'a', 26)), from(b'0', 10));
                let space = _mm256_or_si256(from(0, 33), from(0x7f, 1));
                let folded = if FOLD {
                    _mm256_or_si256(bytes, _mm256_and_si256(upper, _mm256_set1_epi8(0x20)))
                } else {
                    bytes
                };
                _mm256_storeu_si256(copy.as_mut_ptr().add(32 * half).cast(), folded);
                let mask = |vector| u64::from(_mm256_movemask_epi8(vector) as u32) << (32 * half);
                masks.word |= mask(word);
                masks.space |= mask(space);
                masks.non_ascii |= mask(bytes);
            }
        }
        masks
    }

    #[inline(always)]
    fn either(self, block: &[u8; BLOCK], wanted: [u8; 2]) -> u64 {
        let mut found = 0;
        for half in 0..2 {
            // SAFETY: `self` proves that the CPU has AVX2; 32 · half + 32 ≤ 64 bytes are read, unaligned.
            unsafe {
                let bytes = _mm256_loadu_si256(block.as_ptr().add(32 * half).cast());
                let is = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
                let mask = _mm256_movemask_epi8(_mm256_or_si256(is(wanted[0]), is(wanted[1])));
                found |= u64::from(mask as u32) << (32 * half);
            }
        }
        found
    }

    #[inline(always)]
    fn positions(self, mut bits: u64, base: u32, positions: &mut [u32; BLOCK]) -> usize {
        let count = bits.count_ones() as usize;
        // Eight at a time without testing the count for each, because the count is hard to predict.
        for group in positions.chunks_exact_mut(8) {
            for position in group {
                *position = base.wrapping_add(bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
            }
            if bits == 0 {
                break;
            }
        }
        count
    }

    #[inline(always)]
    fn near(self, line: &CacheLine, query: u32, limit: u32) -> u32 {
        let mut mask = 0;
        for half in 0..2 {
            // SAFETY: `self` proves that the CPU has AVX2; half of the line's 64 bytes are read, aligned.
            unsafe {
                let words = _mm256_load_si256(line.0.as_ptr().add(LINE / 2 * half).cast());
                let differing = _mm256_xor_si256(words, _mm256_set1_epi32(query as i32));
                let nibbles = _mm256_set1_epi8(0x0f);
                let table = _mm256_load_si256(NIBBLE_ONES.0.as_ptr().cast());
                let low = _mm256_shuffle_epi8(table, _mm256_and_si256(differing, nibbles));
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(differing), nibbles);
                let bytes = _mm256_add_epi8(low, _mm256_shuffle_epi8(table, high));
                let pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1));
                let ones = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                let over = _mm256_cmpgt_epi32(ones, _mm256_set1_epi32(limit as i32));
                let over = _mm256_movemask_ps(_mm256_castsi256_ps(over)) as u32;
                mask |= (!over & 0xff) << (8 * half);
            }
        }
        mask
    }

    #[inline(always)]
    fn near_64(self, numbers: &[u64; 8], query: u64, limit: u32) -> u32 {
        let mut mask = 0;
        for half in 0..2 {
            // SAFETY: `self` proves that the CPU has AVX2; half of the 64 bytes are read, unaligned.
            unsafe {
                let numbers = _mm256_loadu_si256(numbers.as_ptr().add(4 * half).cast());
                let ones =
                    count_ones_64(_mm256_xor_si256(numbers, _mm256_set1_epi64x(query as i64)));
                let over = _mm256_cmpgt_epi64(ones, _mm256_set1_epi64x(limit.into()));
                let over = _mm256_movemask_pd(_mm256_castsi256_pd(over)) as u32;
                mask |= (!over & 0xf) << (4 * half);
            }
        }
        mask
    }

    #[inline(always)]
    fn near_128(self, numbers: &[u128; 4], query: u128, limit: u32) -> u32 {
        let mut mask = 0;
        for half in 0..2 {
            // SAFETY: `self` proves that the CPU has AVX2; half of the 64 bytes and the 16 bytes of the query
            // are read, unaligned.
            unsafe {
                let numbers = _mm256_loadu_si256(numbers.as_ptr().add(2 * half).cast());
                let query = _mm_loadu_si128(std::ptr::from_ref(&query).cast());
                let query = _mm256_broadcastsi128_si256(query);
                let ones = count_ones_64(_mm256_xor_si256(numbers, query));
                let ones = _mm256_add_epi64(ones, _mm256_shuffle_epi32::<SWAP_HALVES>(ones));
                let over = _mm256_cmpgt_epi64(ones, _mm256_set1_epi64x(limit.into()));
                let over = _mm256_movemask_pd(_mm256_castsi256_pd(over)) as u32;
                mask |= _pext_u32(!over, 0b0101) << (2 * half);
            }
        }
        mask
    }

    #[inline(always)]
    fn differing(self, a: &[[u64; 8]], b: &[[u64; 8]]) -> u64 {
        Plain.differing(a, b)
    }

    #[inline(always)]
    fn gather(self, word: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves that the CPU has BMI2.
        unsafe { _pext_u64(word, mask) }
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
        // SAFETY: `self` proves that the CPU has AVX2; halves of the 64 or 32 bytes of an array are read and
        // written, unaligned, and the gather reads only lanes whose symbol is below the length of `rows`.
        unsafe {
            let ones = _mm256_set1_epi64x(-1);
            let load = |lanes: &[u64; LANES], half: usize| {
                _mm256_loadu_si256(lanes.as_ptr().add(4 * half).cast())
            };
            let store = |lanes: &mut [u64; LANES], half: usize, bits: __m256i| {
                _mm256_storeu_si256(lanes.as_mut_ptr().add(4 * half).cast(), bits);
            };
            let above_rises = rows_above_avx2(&strips.right_rises, above[0], first);
            let above_falls = rows_above_avx2(&strips.right_falls, above[1], first);
            let length = _mm256_set1_epi64x(rows.len() as i64);
            for half in 0..2 {
                let numbers = _mm_loadu_si128(symbols.as_ptr().add(4 * half).cast());
                let numbers = _mm256_cvtepu32_epi64(numbers);
                let is_known = _mm256_cmpgt_epi64(length, numbers);
                let lanes = _mm256_set1_epi64x(4 * half as i64);
                let lanes = _mm256_add_epi64(lanes, _mm256_set_epi64x(3, 2, 1, 0));
                let equal = _mm256_mask_i64gather_epi64::<8>(
                    _mm256_setzero_si256(),
                    rows.as_ptr().cast(),
                    _mm256_add_epi64(_mm256_slli_epi64::<3>(numbers), lanes),
                    is_known,
                );
                let (rises, falls) = (load(&strips.rises, half), load(&strips.falls, half));
                let no_cost_down = _mm256_or_si256(equal, falls);
                let equal = _mm256_or_si256(equal, above_falls[half]);
                let sum = _mm256_add_epi64(_mm256_and_si256(equal, rises), rises);
                let no_cost_right = _mm256_or_si256(_mm256_xor_si256(sum, rises), equal);
                let neither = _mm256_or_si256(no_cost_right, rises);
                let right_rises = _mm256_or_si256(falls, _mm256_xor_si256(neither, ones));
                let right_falls = _mm256_and_si256(rises, no_cost_right);
                store(&mut strips.right_rises, half, right_rises);
                store(&mut strips.right_falls, half, right_falls);
                let right_rises =
                    _mm256_or_si256(_mm256_slli_epi64::<1>(right_rises), above_rises[half]);
                let right_falls =
                    _mm256_or_si256(_mm256_slli_epi64::<1>(right_falls), above_falls[half]);
                let neither = _mm256_or_si256(no_cost_down, right_rises);
                let rises = _mm256_or_si256(right_falls, _mm256_xor_si256(neither, ones));
                store(&mut strips.rises, half, rises);
                store(
                    &mut strips.falls,
                    half,
                    _mm256_and_si256(right_rises, no_cost_down),
                );
            }
        }
    }
}

/// Order of 64-bit words that moves each one place up, and the last one to the front.
const TURN_WORDS_UP: i32 = 0b10_01_00_11;

/// Shuffle order of 32-bit words that swaps the two halves of 128 bits.
const SWAP_HALVES: i32 = 0b01_00_11_10;

/// Returns the number of ones in each 64 bits.
///
/// # Safety
/// [`has_avx2`] must be true.
#[inline(always)]
unsafe fn count_ones_64(bits: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX2; the table's 32 bytes are read, aligned.
    unsafe {
        let nibbles = _mm256_set1_epi8(0x0f);
        let table = _mm256_load_si256(NIBBLE_ONES.0.as_ptr().cast());
        let low = _mm256_shuffle_epi8(table, _mm256_and_si256(bits, nibbles));
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bits), nibbles);
        let bytes = _mm256_add_epi8(low, _mm256_shuffle_epi8(table, high));
        _mm256_sad_epu8(bytes, _mm256_setzero_si256())
    }
}

#[repr(align(64))]
struct NibbleTable([u8; 32]);

/// Number of ones in each number below 16, in two copies, one per 128-bit lane.
static NIBBLE_ONES: NibbleTable = NibbleTable({
    let mut ones = [0; 32];
    let mut at = 0;
    while at < 32 {
        ones[at] = (at as u8 % 16).count_ones() as u8;
        at += 1;
    }
    ones
});

/// Prefetches the cache line of a value.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    // SAFETY: every x86-64 CPU has SSE; a prefetch has no visible effect, and the address is that of a value.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
}

impl Arch for Avx512 {
    #[inline(always)]
    fn ascii_block<const FOLD: bool>(
        self,
        block: &[u8; BLOCK],
        copy: &mut [u8; BLOCK],
    ) -> BlockMasks {
        // SAFETY: `self` proves that the CPU has AVX-512 BW; 64 bytes are read and written, unaligned.
        unsafe {
            let bytes = _mm512_loadu_si512(block.as_ptr().cast());
            let from = |first: u8, length: u8| {
                let offset = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
                _mm512_cmplt_epu8_mask(offset, _mm512_set1_epi8(length as i8))
            };
            let upper = from(b'A', 26);
            let folded = if FOLD {
                _mm512_mask_add_epi8(bytes, upper, bytes, _mm512_set1_epi8(0x20))
            } else {
                bytes
            };
            _mm512_storeu_si512(copy.as_mut_ptr().cast(), folded);
            BlockMasks {
                word: upper | from(b'a', 26) | from(b'0', 10),
                space: from(0, 33) | from(0x7f, 1),
                non_ascii: _mm512_movepi8_mask(bytes),
            }
        }
    }

    #[inline(always)]
    fn either(self, block: &[u8; BLOCK], wanted: [u8; 2]) -> u64 {
        // SAFETY: `self` proves that the CPU has AVX-512 BW; 64 bytes are read, unaligned.
        unsafe {
            let bytes = _mm512_loadu_si512(block.as_ptr().cast());
            let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
            is(wanted[0]) | is(wanted[1])
        }
    }

    #[inline(always)]
    fn positions(self, bits: u64, base: u32, positions: &mut [u32; BLOCK]) -> usize {
        let count = bits.count_ones() as usize;
        // SAFETY: `self` proves that the CPU has AVX-512 VBMI2; each store writes 16 of the 64 slots.
        unsafe {
            let all = _mm512_loadu_si512(ASCENDING_BYTES.0.as_ptr().cast());
            let packed = _mm512_maskz_compress_epi8(bits, all);
            let base = _mm512_set1_epi32(base as i32);
            let mut store = |quarter: usize, bytes: __m128i| {
                let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(bytes), base);
                _mm512_storeu_si512(positions.as_mut_ptr().add(16 * quarter).cast(), wide);
            };
            store(0, _mm512_castsi512_si128(packed));
            store(1, _mm512_extracti32x4_epi32::<1>(packed));
            if count > 32 {
                store(2, _mm512_extracti32x4_epi32::<2>(packed));
                store(3, _mm512_extracti32x4_epi32::<3>(packed));
            }
        }
        count
    }

    #[inline(always)]
    fn near(self, line: &CacheLine, query: u32, limit: u32) -> u32 {
        // SAFETY: `self` proves that the CPU has AVX-512 VPOPCNTDQ; the line's 64 bytes are read, aligned.
        unsafe {
            let words = _mm512_load_si512(line.0.as_ptr().cast());
            let differing = _mm512_xor_si512(words, _mm512_set1_epi32(query as i32));
            let ones = _mm512_popcnt_epi32(differing);
            _mm512_cmple_epu32_mask(ones, _mm512_set1_epi32(limit as i32)).into()
        }
    }

    #[inline(always)]
    fn near_64(self, numbers: &[u64; 8], query: u64, limit: u32) -> u32 {
        // SAFETY: `self` proves that the CPU has AVX-512 VPOPCNTDQ; 64 bytes are read, unaligned.
        unsafe {
            let numbers = _mm512_loadu_si512(numbers.as_ptr().cast());
            let differing = _mm512_xor_si512(numbers, _mm512_set1_epi64(query as i64));
            let ones = _mm512_popcnt_epi64(differing);
            _mm512_cmple_epu64_mask(ones, _mm512_set1_epi64(limit.into())).into()
        }
    }

    #[inline(always)]
    fn near_128(self, numbers: &[u128; 4], query: u128, limit: u32) -> u32 {
        // SAFETY: `self` proves that the CPU has AVX-512 VPOPCNTDQ and BMI2; 64 bytes and the 16 bytes of the
        // query are read, unaligned.
        unsafe {
            let numbers = _mm512_loadu_si512(numbers.as_ptr().cast());
            let query = _mm512_broadcast_i32x4(_mm_loadu_si128(std::ptr::from_ref(&query).cast()));
            let ones = _mm512_popcnt_epi64(_mm512_xor_si512(numbers, query));
            let ones = _mm512_add_epi64(ones, _mm512_shuffle_epi32::<SWAP_HALVES>(ones));
            let near = _mm512_cmple_epu64_mask(ones, _mm512_set1_epi64(limit.into()));
            _pext_u32(near.into(), 0b0101_0101)
        }
    }

    #[inline(always)]
    fn differing(self, a: &[[u64; 8]], b: &[[u64; 8]]) -> u64 {
        // SAFETY: `self` proves that the CPU has AVX-512 VPOPCNTDQ; 64 bytes of each block are read,
        // unaligned.
        unsafe {
            let mut counts = _mm512_setzero_si512();
            for (a, b) in a.iter().zip(b) {
                let a = _mm512_loadu_si512(a.as_ptr().cast());
                let b = _mm512_loadu_si512(b.as_ptr().cast());
                let ones = _mm512_popcnt_epi64(_mm512_xor_si512(a, b));
                counts = _mm512_add_epi64(counts, ones);
            }
            _mm512_reduce_add_epi64(counts) as u64
        }
    }

    #[inline(always)]
    fn gather(self, word: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves that the CPU has BMI2.
        unsafe { _pext_u64(word, mask) }
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
        // SAFETY: `self` proves that the CPU has AVX-512 F and VL; the 64 or 32 bytes of an array are read and
        // written, unaligned, and the gather reads only lanes whose symbol is below the length of `rows`.
        unsafe {
            let ones = _mm512_set1_epi64(-1);
            let load = |lanes: &[u64; LANES]| _mm512_loadu_si512(lanes.as_ptr().cast());
            let store = |lanes: &mut [u64; LANES], bits: __m512i| {
                _mm512_storeu_si512(lanes.as_mut_ptr().cast(), bits);
            };
            let first = load(first);
            // Moves the lowest row of every lane to the lane after it.
            let edge = |right: &[u64; LANES], above: u64| {
                let lowest = _mm512_srli_epi64::<63>(load(right));
                let below = _mm512_alignr_epi64::<7>(lowest, _mm512_setzero_si512());
                let above = _mm512_set1_epi64(above as i64);
                _mm512_or_si512(
                    _mm512_andnot_si512(first, below),
                    _mm512_and_si512(first, above),
                )
            };
            let above_rises = edge(&strips.right_rises, above[0]);
            let above_falls = edge(&strips.right_falls, above[1]);
            let numbers = _mm256_loadu_si256(symbols.as_ptr().cast());
            let numbers = _mm512_cvtepu32_epi64(numbers);
            let length = _mm512_set1_epi64(rows.len() as i64);
            let lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
            let equal = _mm512_mask_i64gather_epi64::<8>(
                _mm512_setzero_si512(),
                _mm512_cmplt_epi64_mask(numbers, length),
                _mm512_add_epi64(_mm512_slli_epi64::<3>(numbers), lanes),
                rows.as_ptr().cast(),
            );
            let (rises, falls) = (load(&strips.rises), load(&strips.falls));
            let no_cost_down = _mm512_or_si512(equal, falls);
            let equal = _mm512_or_si512(equal, above_falls);
            let sum = _mm512_add_epi64(_mm512_and_si512(equal, rises), rises);
            let no_cost_right = _mm512_or_si512(_mm512_xor_si512(sum, rises), equal);
            let neither = _mm512_or_si512(no_cost_right, rises);
            let right_rises = _mm512_or_si512(falls, _mm512_xor_si512(neither, ones));
            let right_falls = _mm512_and_si512(rises, no_cost_right);
            store(&mut strips.right_rises, right_rises);
            store(&mut strips.right_falls, right_falls);
            let right_rises = _mm512_or_si512(_mm512_slli_epi64::<1>(right_rises), above_rises);
            let right_falls = _mm512_or_si512(_mm512_slli_epi64::<1>(right_falls), above_falls);
            let neither = _mm512_or_si512(no_cost_down, right_rises);
            let rises = _mm512_or_si512(right_falls, _mm512_xor_si512(neither, ones));
            store(&mut strips.rises, rises);
            store(
                &mut strips.falls,
                _mm512_and_si512(right_rises, no_cost_down),
            );
        }
    }
}

#[repr(align(64))]
struct AlignedBlock([u8; BLOCK]);

static ASCENDING_BYTES: AlignedBlock = AlignedBlock({
    let mut bytes = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
});
