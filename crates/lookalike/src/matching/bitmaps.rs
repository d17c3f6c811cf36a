//! Bitmaps of features, which rule out most pairs of documents that share many and match in nothing
//! else.
//!
//! Documents of one template meet whatever their keys are, and to compare their features takes long.
//! Bit i of a bitmap says whether the number of features whose hash leads to bit i is odd, so every
//! bit in which two differ is a feature that only one of them has: what that rules out cannot reach
//! the threshold (Sandes, Teodoro and Melo, "Bitmap Filter", 2020). Cost: 4 to 8 bits a feature, 256
//! bytes at the most, and a look at as many bits for a pair, where to compare the features is a look
//! at every one.

use super::groups::Rank;
use crate::arch::{Arch, Cpu, Kernel, prefetch};
use crate::types::Threshold;

/// The bitmaps of some documents.
#[derive(Debug, Default)]
pub(super) struct Bitmaps {
    /// Where the bitmap of every document starts, or [`NONE`]; empty if none has one.
    starts: Vec<u32>,
    /// The number of features of each document, and its bitmap.
    words: Vec<u64>,
}

const NONE: u32 = u32::MAX;

/// Words of a bitmap.
fn length(features: usize) -> usize {
    (4 * features)
        .div_ceil(64)
        .next_power_of_two()
        .min(MOST_WORDS)
}

const MOST_WORDS: usize = 32;

/// The bitmap of a set of features.
pub(super) fn bitmap(features: &[u64]) -> Vec<u64> {
    let mut words = vec![0; length(features.len())];
    let last = words.len() - 1;
    for feature in features {
        let at = (feature >> 32) as usize;
        words[(at / 64) & last] ^= 1 << (at % 64);
    }
    words
}

impl Bitmaps {
    /// For documents of ranks below `documents`.
    pub(super) fn new(documents: usize) -> Self {
        Self {
            starts: vec![NONE; documents],
            words: Vec::new(),
        }
    }

    /// Takes the bitmap of a document of so many features. What finds no place has none.
    pub(super) fn insert(&mut self, rank: Rank, features: usize, bitmap: &[u64]) {
        if let Ok(start) = u32::try_from(self.words.len()) {
            self.starts[rank as usize] = start;
            self.words.push(features as u64);
            self.words.extend_from_slice(bitmap);
        }
    }

    /// Gives every document the bitmap of the first one with the same text.
    pub(super) fn stand_for(&mut self, first: impl Fn(Rank) -> Rank) {
        for rank in 0..self.starts.len() {
            self.starts[rank] = self.starts[first(rank as Rank) as usize];
        }
    }

    fn of(&self, rank: Rank) -> Option<(usize, &[u64])> {
        let start = *self.starts.get(rank as usize)?;
        let (&features, rest) = self.words.get(start as usize..)?.split_first()?;
        let features = features as usize;
        Some((features, &rest[..length(features)]))
    }

    /// Asks the memory for the first lines of a bitmap.
    #[inline]
    pub(super) fn fetch(&self, rank: Rank) {
        let Some(&start) = self.starts.get(rank as usize) else {
            return;
        };
        let lines = self.words.get(start as usize..).unwrap_or_default();
        lines.iter().step_by(8).take(2).for_each(prefetch);
    }

    /// Whether the Jaccard index of two documents is below the threshold for certain.
    #[inline]
    pub(super) fn rule_out(&self, a: Rank, b: Rank, threshold: Threshold) -> bool {
        let (Some((in_a, a)), Some((in_b, b))) = (self.of(a), self.of(b)) else {
            return false;
        };
        let differing = if a.len() == b.len() {
            Cpu::best().run(Differing(a, b))
        } else {
            Cpu::best().run(DifferingFolded(a, b))
        };
        let both = in_a + in_b;
        let shared = ((both - differing as usize) / 2).min(in_a).min(in_b);
        // A division would take longer than the rest. Rounding errors are far below the margin.
        let threshold = threshold.get();
        (shared as f64 + 0.001) * (1.0 + threshold) < threshold * both as f64
    }
}

/// Counts the bits in which two bitmaps of one length differ.
struct Differing<'a>(&'a [u64], &'a [u64]);

impl Kernel for Differing<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> u32 {
        let words = self.0.iter().zip(self.1);
        words.map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

/// The same with the longer one folded to the length of the other.
struct DifferingFolded<'a>(&'a [u64], &'a [u64]);

impl Kernel for DifferingFolded<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> u32 {
        let (less, more) = if self.0.len() <= self.1.len() {
            (self.0, self.1)
        } else {
            (self.1, self.0)
        };
        let mut differing = 0;
        for (at, &word) in less.iter().enumerate() {
            let folded = more[at..].iter().step_by(less.len());
            differing += folded.fold(word, |word, other| word ^ other).count_ones();
        }
        differing
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;

    /// Sets of `shared` common features and some of their own, as bitmaps of ranks 0 and 1.
    fn pair(shared: u64, a: u64, b: u64) -> (Bitmaps, usize, usize) {
        let mut bitmaps = Bitmaps::new(3);
        for (rank, own, seed) in [(0, a, 1 << 40), (1, b, 1 << 50)] {
            let own = (0..own).map(|at| mix(seed + at));
            let set: BTreeSet<u64> = (0..shared).map(mix).chain(own).collect();
            let set: Vec<u64> = set.into_iter().collect();
            bitmaps.insert(rank, set.len(), &bitmap(&set));
        }
        (bitmaps, shared as usize, (shared + a + b) as usize)
    }

    #[test]
    fn rules_out_nothing_that_reaches_the_threshold() {
        let (mut ruled_out, mut below) = (0, 0);
        for hundredths in [30, 75, 90, 100] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            for shared in [0, 1, 7, 40, 90, 200, 900, 3000, 10_000] {
                for own in [0, 1, 3, 10, 30, 60, 300, 2500] {
                    for other in [0, 1, own, 5 * own] {
                        let (bitmaps, part, whole) = pair(shared, own, other);
                        let out = bitmaps.rule_out(0, 1, threshold);
                        assert_eq!(out, bitmaps.rule_out(1, 0, threshold));
                        if whole > 0 {
                            let reaches = threshold.admits(part, whole);
                            assert!(!(reaches && out), "{hundredths} {shared} {own} {other}");
                            below += u32::from(!reaches);
                            ruled_out += u32::from(out);
                        }
                    }
                }
            }
        }
        assert!(20 * ruled_out > 19 * below, "{ruled_out} of {below}");
    }

    /// At every border of the lengths: one feature more doubles the bitmap.
    #[test]
    fn bitmaps_of_different_lengths_are_compared() {
        let threshold = Threshold::new(0.75).unwrap();
        for shared in [32, 64, 128, 256] {
            let (bitmaps, ..) = pair(shared, 0, 1);
            assert_eq!(
                2 * bitmaps.of(0).unwrap().1.len(),
                bitmaps.of(1).unwrap().1.len()
            );
            assert!(!bitmaps.rule_out(0, 1, threshold));
            let (bitmaps, ..) = pair(shared / 2, shared / 2, shared / 2 + 1);
            assert!(bitmaps.rule_out(0, 1, threshold));
        }
    }

    #[test]
    fn equal_texts_have_one_bitmap() {
        let (mut bitmaps, ..) = pair(10, 5, 5);
        let threshold = Threshold::new(1.0).unwrap();
        assert!(!bitmaps.rule_out(0, 2, threshold));
        bitmaps.stand_for(|rank| rank.min(1));
        assert!(bitmaps.rule_out(0, 2, threshold));
        assert!(!bitmaps.rule_out(1, 2, threshold));
    }

    #[test]
    fn documents_without_a_bitmap_are_never_ruled_out() {
        let threshold = Threshold::new(1.0).unwrap();
        let (bitmaps, ..) = pair(10, 5, 5);
        assert!(bitmaps.rule_out(0, 1, threshold));
        assert!(!bitmaps.rule_out(0, 2, threshold));
        assert!(!Bitmaps::default().rule_out(0, 1, threshold));
    }
}
