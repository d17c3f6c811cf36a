//! Blocks: the bits of a fingerprint that each table compares.

use crate::hamming::fingerprint_code::low_bits_mask;

/// A run of bits, and the number of them that may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LiveBlock {
    pub(super) shift: u32,
    /// Number of bits, at most 32.
    pub(super) width: u32,
    pub(super) radius: u32,
    /// Lowest bit of the 32-bit residual, which wraps around from the last bit of the code to bit
    /// 0.
    pub(super) residual: u32,
    /// Position in the residual at which bit 0 of the code follows; 32 if the residual does not
    /// wrap.
    pub(super) residual_wrap: u32,
}

/// Approximate smallest width of a block in bits, because narrower blocks have too few values for
/// large numbers of fingerprints.
const NARROWEST_BLOCK: u32 = 22;

impl LiveBlock {
    pub(super) fn block_mask(&self) -> u128 {
        low_bits_mask(self.width) << self.shift
    }
}

/// Returns the blocks of fingerprints of `bits` bits. Their radii r satisfy Σ(r + 1) = k + 1 for
/// the distance k. There are just enough blocks for radii of at most 1, or fewer if these would be
/// too narrow.
pub(super) fn blocks_for_distance(bits: u32, distance: u32) -> Vec<LiveBlock> {
    let parts = distance + 1;
    let count = parts.div_ceil(2).min(bits.div_ceil(NARROWEST_BLOCK));
    let made = (0..count).map(|at| {
        let (from, to) = (bits * at / count, bits * (at + 1) / count);
        // Earlier blocks take the remainder of the division.
        let radius = (parts + count - 1 - at) / count - 1;
        // Narrow codes begin at bit 0, so that no bit is in the residual twice.
        let residual = if bits < 32 { 0 } else { to % bits };
        LiveBlock {
            shift: from,
            width: (to - from).min(32),
            radius,
            residual,
            residual_wrap: if residual == 0 {
                32
            } else {
                (bits - residual).min(32)
            },
        }
    });
    made.collect()
}

/// Returns the number of buckets that one search reads: for each block all values within its radius.
pub(super) fn count_buckets(blocks: impl IntoIterator<Item = LiveBlock>) -> u64 {
    let of_block = |block: LiveBlock| {
        // C(width, r) for each radius r.
        let mut values = 1_u64;
        let mut all = 1_u64;
        for radius in 1..=u64::from(block.radius) {
            values = values.saturating_mul(u64::from(block.width) + 1 - radius) / radius;
            all = all.saturating_add(values);
        }
        all
    };
    blocks
        .into_iter()
        .map(of_block)
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_the_values_within_the_radius() {
        for (bits, distance) in [(16, 3), (20, 2), (40, 5), (64, 3)] {
            let blocks = blocks_for_distance(bits, distance);
            let all: u64 = blocks
                .iter()
                .map(|block| {
                    let values = 0..1_u64 << block.width.min(20);
                    let near = |value: &u64| value.count_ones() <= block.radius;
                    match block.width {
                        0..=20 => values.filter(near).count() as u64,
                        width => {
                            1 + u64::from(width) * u64::from(block.radius.min(1))
                                + match block.radius {
                                    0 | 1 => 0,
                                    _ => u64::from(width) * u64::from(width - 1) / 2,
                                }
                        }
                    }
                })
                .sum();
            assert!(
                blocks
                    .iter()
                    .all(|block| block.width <= 20 || block.radius <= 2)
            );
            assert_eq!(
                count_buckets(blocks),
                all,
                "{bits} bits, distance {distance}"
            );
        }
    }

    #[test]
    fn radii_satisfy_the_pigeonhole_rule() {
        for bits in 1..=128 {
            for distance in 0..=16.min(bits - 1) {
                let blocks = blocks_for_distance(bits, distance);
                let sum: u32 = blocks.iter().map(|block| block.radius + 1).sum();
                assert_eq!(sum, distance + 1);
                let mut seen = 0;
                for block in &blocks {
                    assert!((1..=32).contains(&block.width));
                    assert_eq!(seen & block.block_mask(), 0);
                    seen |= block.block_mask();
                }
                assert_eq!(seen & !low_bits_mask(bits), 0);
            }
        }
        let halves = blocks_for_distance(64, 3);
        assert_eq!(halves.len(), 2);
        assert!(
            halves
                .iter()
                .all(|block| (block.width, block.radius) == (32, 1))
        );
        assert_eq!((halves[0].residual, halves[1].residual), (32, 0));
    }
}
