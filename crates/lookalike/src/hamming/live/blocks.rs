//! Which bits of a fingerprint the tables look at.

use crate::hamming::code::low_bits;

/// A run of bits, and how many of them may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) shift: u32,
    /// At most 32.
    pub(super) width: u32,
    pub(super) radius: u32,
    /// Where the 32 bits of residual begin; they go on at bit 0 behind the last bit of the code.
    pub(super) residual: u32,
    /// What bit 0 is shifted by for that; 32 if the residual ends before.
    pub(super) residual_wrap: u32,
}

/// Narrower blocks have too few values for large numbers of fingerprints.
const NARROWEST: u32 = 22;

impl Block {
    pub(super) fn mask(&self) -> u128 {
        low_bits(self.width) << self.shift
    }
}

/// Blocks of `bits` bits for a distance: with their radii r, Σ(r + 1) is the distance + 1. There are
/// as few as let the radii be at most 1, as long as that leaves each wide enough.
pub(super) fn blocks(bits: u32, distance: u32) -> Vec<Block> {
    let parts = distance + 1;
    let count = parts.div_ceil(2).min(bits.div_ceil(NARROWEST));
    let made = (0..count).map(|at| {
        let (from, to) = (bits * at / count, bits * (at + 1) / count);
        // Earlier blocks take what the division leaves over.
        let radius = (parts + count - 1 - at) / count - 1;
        // Of few bits, all: none may be there twice.
        let residual = if bits < 32 { 0 } else { to % bits };
        Block {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radii_fulfil_the_pigeonhole_rule() {
        for bits in 1..=128 {
            for distance in 0..=16.min(bits - 1) {
                let blocks = blocks(bits, distance);
                let sum: u32 = blocks.iter().map(|block| block.radius + 1).sum();
                assert_eq!(sum, distance + 1);
                let mut seen = 0;
                for block in &blocks {
                    assert!((1..=32).contains(&block.width));
                    assert_eq!(seen & block.mask(), 0);
                    seen |= block.mask();
                }
                assert_eq!(seen & !low_bits(bits), 0);
            }
        }
        let halves = blocks(64, 3);
        assert_eq!(halves.len(), 2);
        assert!(
            halves
                .iter()
                .all(|block| (block.width, block.radius) == (32, 1))
        );
        assert_eq!((halves[0].residual, halves[1].residual), (32, 0));
    }
}
