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
    /// Whether a bitmap found no place.
    lacks_some: bool,
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
            ..Self::default()
        }
    }

    /// Takes the bitmap of a document of so many features. What finds no place has none.
    pub(super) fn insert(&mut self, rank: Rank, features: usize, bitmap: &[u64]) {
        if let Ok(start) = u32::try_from(self.words.len()) {
            self.starts[rank as usize] = start;
            self.words.push(features as u64);
            self.words.extend_from_slice(bitmap);
        } else {
            self.lacks_some = true;
        }
    }

    /// Whether a document has a bitmap, as all others have that ever met one in a hot group.
    #[inline]
    pub(super) fn hold(&self, rank: Rank) -> bool {
        !self.lacks_some
            && self
                .starts
                .get(rank as usize)
                .is_some_and(|&start| start != NONE)
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
        let differing = Cpu::best().run(Differing(a, b));
        share_too_few(in_a, in_b, differing, threshold)
    }

    /// Calls back with those of other documents that are not ruled out. All have bitmaps.
    pub(super) fn scan(
        &self,
        rank: Rank,
        others: &[Rank],
        threshold: Threshold,
        visit: impl FnMut(Rank),
    ) {
        if let Some(of) = self.of(rank) {
            Cpu::best().run(Scan {
                bitmaps: self,
                of,
                others,
                threshold,
                visit,
            });
        }
    }
}

/// Whether so many differing bits leave too few shared features for the threshold.
#[inline(always)]
fn share_too_few(in_a: usize, in_b: usize, differing: u32, threshold: Threshold) -> bool {
    let both = in_a + in_b;
    let shared = ((both - differing as usize) / 2).min(in_a).min(in_b);
    // A division would take longer than the rest. Rounding errors are far below the margin.
    let threshold = threshold.get();
    (shared as f64 + 0.001) * (1.0 + threshold) < threshold * both as f64
}

/// Looks at the bitmaps of many documents.
struct Scan<'a, F> {
    bitmaps: &'a Bitmaps,
    of: (usize, &'a [u64]),
    others: &'a [Rank],
    threshold: Threshold,
    visit: F,
}

impl<F: FnMut(Rank)> Kernel for Scan<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self, arch: A) {
        let (in_this, bitmap) = self.of;
        for &other in self.others {
            let Some((in_other, of_other)) = self.bitmaps.of(other) else {
                continue;
            };
            let differing = Differing(bitmap, of_other).run(arch);
            if !share_too_few(in_this, in_other, differing, self.threshold) {
                (self.visit)(other);
            }
        }
    }
}

/// Counts the bits in which two bitmaps differ, the longer one folded to the length of the other.
struct Differing<'a>(&'a [u64], &'a [u64]);

impl Kernel for Differing<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) -> u32 {
        let Self(a, b) = self;
        if a.len() != b.len() {
            return differing_folded(a, b);
        }
        let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<LINE>(), b.as_chunks::<LINE>());
        let differ = |(a, b): (&u64, &u64)| (a ^ b).count_ones();
        let lines = a.iter().zip(b);
        let lines = lines.map(|(a, b)| a.iter().zip(b).map(differ).sum::<u32>());
        lines.sum::<u32>() + rest_of_a.iter().zip(rest_of_b).map(differ).sum::<u32>()
    }
}

/// Words that are compared at a time.
const LINE: usize = 8;

#[inline(always)]
fn differing_folded(a: &[u64], b: &[u64]) -> u32 {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut differing = 0;
    for (at, &word) in less.iter().enumerate() {
        let folded = more[at..].iter().step_by(less.len());
        differing += folded.fold(word, |word, other| word ^ other).count_ones();
    }
    differing
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

    /// Documents of every length of a bitmap, with all instructions that are there.
    #[test]
    fn a_scan_leaves_what_is_not_ruled_out() {
        let mut bitmaps = Bitmaps::new(400);
        for rank in 0..400u64 {
            let (shared, own) = (3 + rank % 40 * (rank % 7), rank % 11 * (rank % 5));
            let own = (0..own).map(|at| mix(rank << 32 | at | 1 << 60));
            let set: BTreeSet<u64> = (0..shared).map(mix).chain(own).collect();
            let set: Vec<u64> = set.into_iter().collect();
            bitmaps.insert(rank as Rank, set.len(), &bitmap(&set));
        }
        let threshold = Threshold::new(0.8).unwrap();
        let others: Vec<Rank> = (0..400).filter(|rank| rank % 3 != 0).collect();
        let mut left = 0;
        for rank in 0..400 {
            let ruled_out = |other| bitmaps.rule_out(rank, other, threshold);
            let expected: Vec<Rank> = others
                .iter()
                .copied()
                .filter(|&it| !ruled_out(it))
                .collect();
            for cpu in Cpu::all() {
                let mut found = Vec::new();
                cpu.run(Scan {
                    bitmaps: &bitmaps,
                    of: bitmaps.of(rank).unwrap(),
                    others: &others,
                    threshold,
                    visit: |other| found.push(other),
                });
                assert_eq!(found, expected, "{cpu:?} {rank}");
            }
            left += expected.len();
        }
        assert!((2000..80_000).contains(&left), "{left}");
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
