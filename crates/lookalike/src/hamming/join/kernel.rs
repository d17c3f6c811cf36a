//! The hot loops of a join: distributing codes to buckets, and comparing the codes of a bucket.

use super::super::fingerprint_code::{FingerprintCode, low_bits_mask};
use crate::arch::{Arch, Kernel};

/// The bits of a fingerprint that form its bucket key.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinKeyBlock {
    pub(super) mask: u128,
    shift: u32,
    contiguous: bool,
}

impl JoinKeyBlock {
    /// Creates a block of at least one and at most 32 bits.
    pub(super) fn new(mask: u128) -> Self {
        let shift = mask.trailing_zeros();
        Self {
            mask,
            shift,
            contiguous: mask >> shift == low_bits_mask(mask.count_ones()),
        }
    }

    pub(super) fn key_bits(&self) -> u32 {
        self.mask.count_ones()
    }

    pub(super) fn bucket_count(&self) -> usize {
        1 << self.key_bits()
    }
}

/// A way to read bucket keys: one for contiguous blocks, one for all others.
trait KeyReader: Copy {
    fn read_key<C: FingerprintCode>(self, code: C) -> usize;
}

#[derive(Clone, Copy)]
struct ContiguousReader {
    shift: u32,
    mask: usize,
}

impl KeyReader for ContiguousReader {
    #[inline(always)]
    fn read_key<C: FingerprintCode>(self, code: C) -> usize {
        code.word_at(self.shift) as usize & self.mask
    }
}

#[derive(Clone, Copy)]
struct ScatteredReader<A> {
    arch: A,
    mask: u128,
    low: u32,
}

impl<A: Arch> KeyReader for ScatteredReader<A> {
    #[inline(always)]
    fn read_key<C: FingerprintCode>(self, code: C) -> usize {
        let wide = code.widen();
        let low = self.arch.gather(wide as u64, self.mask as u64);
        if C::BITS == 64 {
            return low as usize;
        }
        let high = self
            .arch
            .gather((wide >> 64) as u64, (self.mask >> 64) as u64);
        (high << self.low | low) as usize
    }
}

macro_rules! with_reader {
    ($arch:expr, $block:expr, $reader:ident => $body:expr) => {
        if $block.contiguous {
            let $reader = ContiguousReader {
                shift: $block.shift,
                mask: low_bits_mask($block.key_bits()) as usize,
            };
            $body
        } else {
            let $reader = ScatteredReader {
                arch: $arch,
                mask: $block.mask,
                low: ($block.mask as u64).count_ones(),
            };
            $body
        }
    };
}

/// Counts the codes of each bucket.
pub(super) struct CountKernel<'a, C> {
    pub(super) codes: &'a [C],
    pub(super) block: JoinKeyBlock,
    pub(super) counts: &'a mut [u32],
}

impl<C: FingerprintCode> Kernel for CountKernel<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        with_reader!(arch, self.block, reader => {
            for &code in self.codes {
                self.counts[reader.read_key(code)] += 1;
            }
        });
    }
}

/// Copies codes to their buckets. `at` holds the start of each bucket, and afterwards its end.
pub(super) struct ScatterKernel<'a, C> {
    pub(super) codes: &'a [C],
    pub(super) block: JoinKeyBlock,
    pub(super) to: &'a mut [C],
    pub(super) at: &'a mut [u32],
}

impl<C: FingerprintCode> Kernel for ScatterKernel<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        with_reader!(arch, self.block, reader => {
            for &code in self.codes {
                let at = &mut self.at[reader.read_key(code)];
                self.to[*at as usize] = code;
                *at += 1;
            }
        });
    }
}

/// Copies codes to their buckets, each of which has its own slice that it fills.
pub(super) struct DealKernel<'a, 'b, C> {
    pub(super) codes: &'a [C],
    pub(super) block: JoinKeyBlock,
    pub(super) cursors: &'a mut [std::slice::IterMut<'b, C>],
}

impl<C: FingerprintCode> Kernel for DealKernel<'_, '_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        with_reader!(arch, self.block, reader => {
            for &code in self.codes {
                let next = self.cursors[reader.read_key(code)].next();
                *next.expect("there is room for all that were counted") = code;
            }
        });
    }
}

/// Compares all codes of a slice with one another.
pub(super) struct WithinKernel<'a, C, F> {
    pub(super) codes: &'a [C],
    pub(super) limit: u32,
    pub(super) near: F,
}

impl<C: FingerprintCode, F: FnMut(C, C)> Kernel for WithinKernel<'_, C, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self, arch: A) {
        compare_within(
            arch,
            self.codes,
            0..self.codes.len(),
            self.limit,
            &mut self.near,
        );
    }
}

/// Compares all codes of one slice with those of another.
pub(super) struct AcrossKernel<'a, C, F> {
    pub(super) codes: &'a [C],
    pub(super) others: &'a [C],
    pub(super) limit: u32,
    pub(super) near: F,
}

impl<C: FingerprintCode, F: FnMut(C, C)> Kernel for AcrossKernel<'_, C, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self, arch: A) {
        for &code in self.codes {
            let all = 0..self.others.len();
            compare_span(arch, self.others, all, code, self.limit, &mut self.near);
        }
    }
}

/// Compares the codes of every small bucket with one another.
pub(super) struct WithinSmall<'a, C, F> {
    pub(super) codes: &'a [C],
    pub(super) ends: &'a [u32],
    /// Largest number of codes of a small bucket.
    pub(super) most: usize,
    pub(super) limit: u32,
    pub(super) near: F,
}

impl<C: FingerprintCode, F: FnMut(C, C)> Kernel for WithinSmall<'_, C, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self, arch: A) {
        let mut start = 0;
        for &end in self.ends {
            let end = end as usize;
            if end - start <= self.most {
                compare_within(arch, self.codes, start..end, self.limit, &mut self.near);
            }
            start = end;
        }
    }
}

#[inline(always)]
fn compare_within<C: FingerprintCode, A: Arch>(
    arch: A,
    codes: &[C],
    range: std::ops::Range<usize>,
    limit: u32,
    near: &mut impl FnMut(C, C),
) {
    for at in range.start..range.end {
        compare_span(arch, codes, at + 1..range.end, codes[at], limit, near);
    }
}

/// Compares one code with a `range` of others, a cache line at a time. Codes after the range are
/// read but not reported.
#[inline(always)]
fn compare_span<C: FingerprintCode, A: Arch>(
    arch: A,
    codes: &[C],
    mut range: std::ops::Range<usize>,
    query: C,
    limit: u32,
    near: &mut impl FnMut(C, C),
) {
    let lanes = const { 64 / size_of::<C>() };
    while !range.is_empty() {
        let mut mask = match codes.get(range.start..range.start + lanes) {
            Some(line) => near_line(arch, line, query, limit),
            None => {
                let mut line = [C::default(); 8];
                line[..codes.len() - range.start].copy_from_slice(&codes[range.start..]);
                near_line(arch, &line[..lanes], query, limit)
            }
        };
        if range.len() < lanes {
            mask &= (1 << range.len()) - 1;
        }
        while mask != 0 {
            near(query, codes[range.start + mask.trailing_zeros() as usize]);
            mask &= mask - 1;
        }
        range.start += lanes;
    }
}

#[inline(always)]
fn near_line<C: FingerprintCode, A: Arch>(arch: A, line: &[C], query: C, limit: u32) -> u32 {
    const LINE_LENGTH: &str = "a line has 64 bytes";
    if C::BITS == 64 {
        let line: &[u64] = bytemuck::cast_slice(line);
        arch.near_64(
            line.try_into().expect(LINE_LENGTH),
            query.widen() as u64,
            limit,
        )
    } else {
        let line: &[u128] = bytemuck::cast_slice(line);
        arch.near_128(line.try_into().expect(LINE_LENGTH), query.widen(), limit)
    }
}
