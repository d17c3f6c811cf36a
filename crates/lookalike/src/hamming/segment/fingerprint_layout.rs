//! Splits a fingerprint into the parts that the tables of a segment store.
//!
//! ```text
//! first table    bucket | word of 32 bits | rest      together the whole fingerprint
//! other tables   bucket | word of 32 bits             the word determines the bucket in the first table
//! ```
//!
//! The word of another table holds all bits that decide the bucket in the first table, and some
//! bits more. Words that are near there are looked up in the first table.

use crate::hamming::fingerprint_code::{FingerprintCode, low_bits_mask};
use crate::hamming::key::{BlockKey, BucketNumber};
use crate::hamming::plan::HammingPlan;

/// 32 bits of a fingerprint, from two runs of bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordLayout {
    shift: u32,
    width: u32,
    second: u32,
    /// Bits that are used of the second run. They overlap neither the first run nor the table's
    /// blocks, so that a differing bit is counted once.
    mask: u32,
}

impl WordLayout {
    #[inline(always)]
    pub(super) fn extract_word<C: FingerprintCode>(&self, code: C) -> u32 {
        let first = u64::from(code.word_at(self.shift)) & ((1 << self.width) - 1);
        let second = u64::from(code.word_at(self.second) & self.mask);
        (first | second << self.width) as u32
    }

    /// Takes bits `shift..shift + width`, and fills the word with the run that contains the most
    /// `useful` bits.
    fn new(shift: u32, width: u32, useful: u128, bits: u32) -> Self {
        let gain = |second: u32| {
            let run = low_bits_mask(32 - width) << second;
            (run & useful).count_ones()
        };
        // Ties go to the lowest run, because `max_by_key` returns the last maximum.
        let second = (0..bits)
            .rev()
            .max_by_key(|&second| gain(second))
            .unwrap_or(0);
        Self {
            shift,
            width,
            second,
            mask: (useful >> second) as u32,
        }
    }
}

/// Splits fingerprints of a plan into bucket, word and rest, and joins these again.
#[derive(Clone, Debug)]
pub(in crate::hamming) struct FingerprintLayout {
    key: BlockKey,
    source_shift: u32,
    source_mask: u32,
    word_shift: u32,
    words: Vec<WordLayout>,
    remainder_bits: u32,
    /// Runs of bits, as start and width, that neither bucket nor word of the first table
    /// determines.
    others: [(u32, u32); 3],
    rest_bytes: usize,
}

impl FingerprintLayout {
    pub(in crate::hamming) fn new(plan: &HammingPlan) -> Self {
        let bits = plan.fingerprint_bits();
        let key = plan.plan_tables()[0].key;
        let (source_shift, source_bits) = key.source_bits();
        let source = low_bits_mask(source_bits) << source_shift;
        let all = low_bits_mask(bits);
        // Prefer bits outside the first block, because fingerprints of one bucket differ little
        // inside it.
        let block = plan.plan_tables()[0].mask;
        let beside = if bits - block.count_ones() >= 32 {
            block
        } else {
            source
        };
        let first = WordLayout::new(0, 0, all & !source & !beside, bits);
        let word_shift = first.second;
        let mut words = vec![first];
        words.extend(plan.plan_tables()[1..].iter().map(|table| {
            let useful = all & !source & !table.mask;
            WordLayout::new(source_shift, source_bits, useful, bits)
        }));
        let mut left = all & !source & !(u128::from(first.mask) << word_shift);
        let mut others = [(0, 0); 3];
        for other in &mut others {
            let start = left.trailing_zeros().min(127);
            let width = (left >> start).trailing_ones();
            *other = (start, width);
            left &= !(low_bits_mask(width) << start);
        }
        debug_assert_eq!(left, 0);
        let other_bits: u32 = others.iter().map(|&(_, width)| width).sum();
        let remainder_bits = key.remainder_bits();
        Self {
            key,
            source_shift,
            source_mask: low_bits_mask(source_bits) as u32,
            word_shift,
            words,
            remainder_bits,
            others,
            rest_bytes: (remainder_bits + other_bits).div_ceil(8) as usize,
        }
    }

    /// Returns the number of bytes of a rest, at most 16.
    pub(in crate::hamming) fn rest_bytes(&self) -> usize {
        self.rest_bytes
    }

    /// Returns the word that a table stores of a fingerprint.
    #[inline(always)]
    pub(super) fn table_word<C: FingerprintCode>(&self, table: usize, code: C) -> u32 {
        self.words[table].extract_word(code)
    }

    /// Returns the bits that bucket and word of the first table do not determine.
    #[inline(always)]
    pub(super) fn rest_bits<C: FingerprintCode>(&self, code: C) -> u128 {
        let mut rest = u128::from(self.key.source_remainder(code));
        let mut at = self.remainder_bits;
        let wide = code.widen();
        for &(start, width) in &self.others {
            if width == 0 {
                break;
            }
            rest |= (wide >> start & low_bits_mask(width)) << at;
            at += width;
        }
        rest
    }

    /// Returns the fingerprint with this bucket, word and rest in the first table.
    #[inline(always)]
    pub(super) fn restore_code<C: FingerprintCode>(
        &self,
        bucket: BucketNumber,
        word: u32,
        rest: u128,
    ) -> C {
        let remainder = rest as u32 & low_bits_mask(self.remainder_bits) as u32;
        let source = self.key.restore_source(bucket, remainder);
        let mut wide =
            u128::from(source) << self.source_shift | u128::from(word) << self.word_shift;
        let mut at = self.remainder_bits;
        for &(start, width) in &self.others {
            if width == 0 {
                break;
            }
            wide |= (rest >> at & low_bits_mask(width)) << start;
            at += width;
        }
        C::narrow_from(wide)
    }

    /// Returns the bucket in the first table of fingerprints with this word in another table.
    #[inline(always)]
    pub(super) fn home_bucket<C: FingerprintCode>(&self, word: u32) -> BucketNumber {
        let source = u128::from(word & self.source_mask) << self.source_shift;
        self.key.bucket_of(C::narrow_from(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::PlanRequest;
    use crate::hash::mix_bits;
    use crate::types::Distance;

    fn check<C: FingerprintCode>(plan: &HammingPlan) {
        let code_layout = FingerprintLayout::new(plan);
        assert_eq!(code_layout.rest_bytes(), plan.rest_bytes(), "{plan}");
        for seed in 0..300 {
            let wide = u128::from(mix_bits(seed)) << 64 | u128::from(mix_bits(seed + 1000));
            let code = C::narrow_from(wide & low_bits_mask(plan.fingerprint_bits()));
            let bucket = plan.plan_tables()[0].key.bucket_of(code);
            let rest = code_layout.rest_bits(code);
            assert_eq!(rest >> (8 * code_layout.rest_bytes()).min(127), 0);
            assert_eq!(
                code_layout.restore_code::<C>(bucket, code_layout.table_word(0, code), rest),
                code,
                "{plan}"
            );
            for table in 1..plan.plan_tables().len() {
                assert_eq!(
                    code_layout.home_bucket::<C>(code_layout.table_word(table, code)),
                    bucket,
                    "{plan}"
                );
            }
        }
    }

    #[test]
    fn fingerprints_split_and_join_again() {
        for bits in [8, 9, 20, 31, 32, 33, 40, 63, 64, 65, 100, 127, 128] {
            for distance in [0, 1, 2, 3, 5, 7]
                .into_iter()
                .filter(|&distance| distance < bits)
            {
                for count in [1, 1000, 1 << 20, 50_000_000, 1 << 30] {
                    let request = PlanRequest {
                        count,
                        bits,
                        distance: Distance::new(distance, bits).unwrap(),
                        memory: None,
                    };
                    for plan in HammingPlan::all_plans(&request).unwrap() {
                        if bits <= 64 {
                            check::<u64>(&plan);
                        } else {
                            check::<u128>(&plan);
                        }
                    }
                }
            }
        }
    }
}
