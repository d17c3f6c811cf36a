//! The bitmap filter: a compact bitmap for each document of dense buckets, which rules out most pairs
//! before they are verified.
//!
//! Documents of one template are candidates of each other whatever the bucket keys are, and comparing
//! their features one by one takes long. A bucket is *dense* if its members have many candidates in it.
//! A *dense set* ([`DenseSet`]) consists of all documents that dense buckets connect, and
//! [`DenseSlot`] is a document's place in it.
//!
//! Each feature leads to one bit of the bitmap, and the bit is the parity of the features that lead to
//! it. In every bit in which two documents differ, one of them has a feature that the other lacks
//! (Sandes, Teodoro and Melo, "Bitmap Filter", 2020). Two refinements make the bound nearly exact for
//! similar documents. Features that most of a dense set has get bits of their own. Features that only
//! one document has are counted instead of marked, because they differ from all other documents.
//!
//! The bitmaps of a dense set are made once scanning its buckets has cost about as much as making them,
//! so they never cost much more than they save. They are not made earlier, because only the run shows
//! whether the documents match. If they do, few are kept, and scanning the buckets stays cheap.
//!
//! Guarantee: no matching pair is ruled out. Cost: the features of each document are made twice. A
//! bitmap has 2 bits for each feature of a typical document, and at most [`MOST_BITS`] in large dense
//! sets. A pair costs a comparison of these bits, where verification would visit every feature.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::buckets::{CandidateBuckets, DocumentRank};
use super::union_find::UnionFind;
use super::{MAX_SEEN_TWICE, SeenTwiceFilter};
use crate::arch::{Arch, Cpu, Kernel, prefetch};
use crate::error::Result;
use crate::types::Threshold;

/// Calls back with the features of a document, ascending. The list is a buffer in which they may be
/// made.
pub(crate) type FeaturesOf<'a> =
    dyn Fn(DocumentRank, &mut Vec<u64>, &mut dyn FnMut(&[u64])) -> Result<()> + Sync + 'a;

/// All dense sets of a run.
#[derive(Debug)]
pub(crate) struct DenseSets {
    dense_sets: Vec<DenseSet>,
    /// Jaccard index that all matching pairs reach.
    threshold: Threshold,
    /// Largest number of bits of a bitmap.
    most: usize,
    /// Place of every document; empty if there are no dense sets.
    slots: Vec<DenseSlot>,
}

/// The place of a document in a dense set. Positions follow the order of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DenseSlot {
    pub(crate) dense_set: u32,
    pub(crate) at: u32,
}

/// The place of a document that is in no dense set.
const NO_SLOT: DenseSlot = DenseSlot {
    dense_set: u32::MAX,
    at: 0,
};

/// A dense set.
#[derive(Debug)]
struct DenseSet {
    /// Documents, ascending.
    members: Vec<DocumentRank>,
    /// Number of candidates that members have had in dense buckets.
    met: AtomicU64,
    /// Number of times that one member was compared with another.
    compared: AtomicU64,
    /// Number of features of the first member, once that was needed.
    size: Option<u64>,
    bitmaps: Option<FeatureBitmaps>,
}

/// The bitmaps of a dense set, by position.
#[derive(Debug)]
struct FeatureBitmaps {
    /// Largest number of features of a document that a match may lack, less the features that only this
    /// document has. Counted in units of 1 / [`SLACK_OF_ONE_BIT`]. A pair is ruled out if its bitmaps differ in more
    /// bits than the sum of both.
    slack: Vec<i64>,
    /// Words of one bitmap.
    length: usize,
    words: Vec<u64>,
}

/// Units of slack for one bit.
const SLACK_OF_ONE_BIT: i64 = 1 << 16;

/// Largest number of bits of a bitmap in dense sets too large for more.
const MOST_BITS: usize = 4096;

/// Bytes up to which all bitmaps together may be longer than that.
const EXTRA_BITMAP_BYTES: usize = 32 << 20;

/// Documents of a dense set that are sampled for typical features.
const SAMPLED_MEMBERS: usize = 64;

/// Features that are counted in the sample: some 24 MB.
const MOST_SAMPLED: usize = 1 << 20;

impl DenseSets {
    /// Finds the dense sets among `documents` documents. A bucket is dense if its members have more
    /// than `most` candidates in it.
    pub(crate) fn find_dense_sets(
        buckets: &mut CandidateBuckets,
        documents: usize,
        most: usize,
        threshold: Threshold,
    ) -> Self {
        let mut formed = Self {
            threshold,
            ..Self::default()
        };
        if buckets.find_dense(most) {
            let (slots, members) = assign_slots(buckets, documents);
            let placed: usize = members.iter().map(Vec::len).sum();
            formed.most = (8 * EXTRA_BITMAP_BYTES / placed.max(1)).max(MOST_BITS);
            formed.dense_sets = members.into_iter().map(DenseSet::from_members).collect();
            formed.slots = slots;
        }
        formed
    }

    /// Counts candidates that a member of a dense set has in dense buckets.
    pub(crate) fn count_encounters(&self, dense_set: u32, members: usize) {
        let met = &self.dense_sets[dense_set as usize].met;
        met.fetch_add(members as u64, Ordering::Relaxed);
    }

    /// Counts a comparison of two documents, if bitmaps might have made it unnecessary.
    #[inline]
    pub(crate) fn count_comparison(&self, a: DocumentRank, b: DocumentRank) {
        let (Some(a), Some(b)) = (self.slot_of(a), self.slot_of(b)) else {
            return;
        };
        if a.dense_set == b.dense_set && !self.has_bitmaps(a.dense_set) {
            let compared = &self.dense_sets[a.dense_set as usize].compared;
            compared.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts all candidates for a search that looks at every pair.
    pub(crate) fn count_all_encounters(&self, buckets: &CandidateBuckets) {
        for group in buckets.dense_buckets() {
            let members = buckets.bucket_members(group);
            let met: usize = buckets
                .reachable_buckets(group)
                .map(|bucket| buckets.bucket_members(bucket).len())
                .sum();
            if let Some(slot) = self.slot_of(members[0]) {
                self.count_encounters(slot.dense_set, members.len() * met / 2);
            }
        }
    }

    /// Makes the bitmaps of those dense sets whose candidates and comparisons have cost enough for it.
    /// `price` is the number of features that can be compared in the time in which one is placed in a
    /// bitmap.
    pub(crate) fn build_due_bitmaps(
        &mut self,
        price: usize,
        features: &FeaturesOf<'_>,
    ) -> Result<()> {
        for dense_set in &mut self.dense_sets {
            if dense_set.bitmaps.is_none() && dense_set.is_worth_bitmaps(price, features)? {
                let bitmaps = FeatureBitmaps::from_members(
                    &dense_set.members,
                    self.most,
                    self.threshold,
                    features,
                )?;
                dense_set.bitmaps = Some(bitmaps);
            }
        }
        Ok(())
    }

    fn set_bitmaps(&self, dense_set: u32) -> Option<&FeatureBitmaps> {
        self.dense_sets[dense_set as usize].bitmaps.as_ref()
    }

    /// Returns `true` if a dense set has bitmaps.
    #[inline]
    pub(crate) fn has_bitmaps(&self, dense_set: u32) -> bool {
        self.set_bitmaps(dense_set).is_some()
    }

    /// Gives every document the place of the first document with the same text.
    pub(crate) fn share_slots(&mut self, first: impl Fn(DocumentRank) -> DocumentRank) {
        for rank in 0..self.slots.len() {
            self.slots[rank] = self.slots[first(rank as DocumentRank) as usize];
        }
    }

    /// Returns the number of dense sets.
    pub(crate) fn set_count(&self) -> usize {
        self.dense_sets.len()
    }

    /// Returns the place of a document.
    #[inline]
    pub(crate) fn slot_of(&self, rank: DocumentRank) -> Option<DenseSlot> {
        let slot = *self.slots.get(rank as usize)?;
        (slot != NO_SLOT).then_some(slot)
    }

    /// Returns the documents of a dense set, by position.
    pub(crate) fn set_members(&self, dense_set: u32) -> &[DocumentRank] {
        &self.dense_sets[dense_set as usize].members
    }

    /// Returns the number of positions of a dense set that are scanned at a time, for several documents
    /// one after another, while their bitmaps are in the cache.
    pub(crate) fn tile_size(&self, dense_set: u32) -> usize {
        let length = self
            .set_bitmaps(dense_set)
            .map_or(1, |bitmaps| bitmaps.length);
        (TILE_WORDS / length).max(LINE_WORDS)
    }

    /// Prefetches the first cache lines of a bitmap.
    #[inline]
    pub(crate) fn prefetch_bitmap(&self, rank: DocumentRank) {
        let Some(DenseSlot { dense_set, at }) = self.slot_of(rank) else {
            return;
        };
        if let Some(bitmaps) = self.set_bitmaps(dense_set) {
            prefetch(&bitmaps.slack[at as usize]);
            let lines = bitmaps.bitmap_at(at).iter().step_by(LINE_WORDS);
            lines.take(2).for_each(prefetch);
        }
    }

    /// Returns `true` if two documents certainly do not match.
    #[inline]
    pub(crate) fn rules_out_pair(&self, a: DocumentRank, b: DocumentRank) -> bool {
        let (Some(a), Some(b)) = (self.slot_of(a), self.slot_of(b)) else {
            return false;
        };
        if a.dense_set != b.dense_set || a.at == b.at {
            return false;
        }
        let Some(bitmaps) = self.set_bitmaps(a.dense_set) else {
            return false;
        };
        let (a, b) = (a.at, b.at);
        let differing =
            Cpu::detect_best().run(DifferingBits(bitmaps.bitmap_at(a), bitmaps.bitmap_at(b)));
        differing as i64 * SLACK_OF_ONE_BIT > bitmaps.slack[a as usize] + bitmaps.slack[b as usize]
    }

    /// Calls `visit` with those of the documents at `others` that are not ruled out. Without bitmaps,
    /// these are all of them.
    pub(crate) fn scan_members(
        &self,
        slot: DenseSlot,
        others: &[u32],
        mut visit: impl FnMut(DocumentRank),
    ) {
        let members = self.set_members(slot.dense_set);
        match self.set_bitmaps(slot.dense_set) {
            None => others
                .iter()
                .for_each(|&other| visit(members[other as usize])),
            Some(bitmaps) => Cpu::detect_best().run(BitmapScan {
                bitmaps,
                at: slot.at,
                others,
                visit: |other: u32| visit(members[other as usize]),
            }),
        }
    }
}

impl Default for DenseSets {
    /// Returns no dense sets.
    fn default() -> Self {
        Self {
            dense_sets: Vec::new(),
            threshold: Threshold::DEFAULT,
            most: MOST_BITS,
            slots: Vec::new(),
        }
    }
}

/// Words of bitmaps in a tile: 256 KiB.
const TILE_WORDS: usize = 1 << 15;

/// Returns the place of every document, and the members of every dense set.
fn assign_slots(
    buckets: &CandidateBuckets,
    documents: usize,
) -> (Vec<DenseSlot>, Vec<Vec<DocumentRank>>) {
    let mut union = UnionFind::with_members(documents);
    let mut is_connected = vec![false; buckets.bucket_count()];
    for group in buckets.dense_buckets() {
        let first = buckets.bucket_members(group)[0];
        for met in buckets.reachable_buckets(group) {
            is_connected[met as usize] = true;
            union.union_sets(first, buckets.bucket_members(met)[0]);
        }
    }
    let mut slots = vec![NO_SLOT; documents];
    for group in (0..buckets.bucket_count() as u32).filter(|&group| is_connected[group as usize]) {
        for &member in buckets.bucket_members(group) {
            union.union_sets(member, buckets.bucket_members(group)[0]);
            slots[member as usize].dense_set = 0;
        }
    }
    let mut members: Vec<Vec<DocumentRank>> = Vec::new();
    let mut set_of_root = HashMap::new();
    for (rank, slot) in slots.iter_mut().enumerate() {
        if *slot != NO_SLOT {
            let root = union.find_root(rank as DocumentRank);
            let dense_set = *set_of_root.entry(root).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            *slot = DenseSlot {
                dense_set: dense_set as u32,
                at: members[dense_set].len() as u32,
            };
            members[dense_set].push(rank as DocumentRank);
        }
    }
    (slots, members)
}

impl DenseSet {
    fn from_members(members: Vec<DocumentRank>) -> Self {
        Self {
            members,
            met: AtomicU64::new(0),
            compared: AtomicU64::new(0),
            size: None,
            bitmaps: None,
        }
    }

    /// Returns `true` if scanning the buckets has cost as much as bitmaps do.
    fn is_worth_bitmaps(&mut self, price: usize, features_of: &FeaturesOf<'_>) -> Result<bool> {
        let (met, compared) = (*self.met.get_mut(), *self.compared.get_mut());
        let price = (self.members.len() * price) as u64;
        if met + compared < price {
            return Ok(false);
        }
        let size = match self.size {
            Some(size) => size,
            None => {
                let mut size = 0;
                features_of(self.members[0], &mut Vec::new(), &mut |of| {
                    size = of.len() as u64;
                })?;
                *self.size.insert(size)
            }
        };
        let spent = (FEATURES_PER_CANDIDATE * met).saturating_add(size.saturating_mul(compared));
        Ok(spent >= price.saturating_mul(size + FEATURES_PER_CANDIDATE))
    }
}

/// Number of features that can be compared in the time that it takes to find a candidate and to read
/// its prefilter data.
const FEATURES_PER_CANDIDATE: u64 = 8;

impl FeatureBitmaps {
    /// Makes the bitmaps of a dense set, of at most `most` bits each.
    fn from_members(
        members: &[DocumentRank],
        most: usize,
        threshold: Threshold,
        features_of: &FeaturesOf<'_>,
    ) -> Result<Self> {
        let mut sample = FeatureSample::default();
        let mut buffer = Vec::new();
        for &rank in members
            .iter()
            .step_by(members.len().div_ceil(SAMPLED_MEMBERS).max(1))
        {
            features_of(rank, &mut buffer, &mut |features| {
                sample.add_document(features)
            })?;
        }
        let met = SeenTwiceFilter::new((members.len() * sample.usual_size()).min(MAX_SEEN_TWICE));
        let places = sample.assign_bits(most);
        members
            .par_iter()
            .try_for_each_init(Vec::new, |buffer, &rank| {
                features_of(rank, buffer, &mut |features| {
                    met.prefetch_keys(features);
                    features.iter().for_each(|&feature| met.record_key(feature));
                })
            })?;
        let length = places.word_count();
        let mut made = Self {
            slack: vec![0; members.len()],
            words: vec![0; members.len() * length],
            length,
        };
        let differing = (1.0 - threshold.get()) / (1.0 + threshold.get());
        let bitmaps = made.words.par_chunks_mut(length);
        let members = members.par_iter().zip(&mut made.slack).zip(bitmaps);
        members.try_for_each_init(Vec::new, |buffer, ((&rank, slack), bitmap)| {
            features_of(rank, buffer, &mut |features| {
                met.prefetch_keys(features);
                let shared = |feature: &u64| met.may_be_shared(*feature);
                let alone = features.len() - places.mark_features(features, shared, bitmap);
                // Rounded up, because rounding errors are far below one unit.
                let may_differ = differing * features.len() as f64 * SLACK_OF_ONE_BIT as f64;
                *slack = may_differ as i64 + 1 - alone as i64 * SLACK_OF_ONE_BIT;
            })
        })?;
        Ok(made)
    }

    #[inline(always)]
    fn bitmap_at(&self, at: u32) -> &[u64] {
        &self.words[at as usize * self.length..][..self.length]
    }
}

/// The features of sampled documents of a dense set.
#[derive(Default)]
struct FeatureSample {
    sizes: Vec<usize>,
    counts: HashMap<u64, u32>,
}

impl FeatureSample {
    fn add_document(&mut self, features: &[u64]) {
        self.sizes.push(features.len());
        if self.counts.len() + features.len() <= MOST_SAMPLED {
            for &feature in features {
                *self.counts.entry(feature).or_default() += 1;
            }
        }
    }

    fn usual_size(&self) -> usize {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).copied().unwrap_or(0)
    }

    /// Assigns bits: two for each feature of a typical document. Features of several documents get bits
    /// of their own, the most frequent ones first. At least a quarter of the bits remains for all other
    /// features.
    fn assign_bits(self, most: usize) -> BitAssignment {
        let words = (2 * self.usual_size()).min(most).div_ceil(64).max(1);
        let words = if words < LINE_WORDS {
            words.next_power_of_two()
        } else {
            words.next_multiple_of(LINE_WORDS)
        };
        let bits = 64 * words;
        let mut own: Vec<_> = self
            .counts
            .into_iter()
            .filter(|&(_, count)| count > 1)
            .collect();
        own.sort_unstable_by_key(|&(feature, count)| (std::cmp::Reverse(count), feature));
        own.truncate(bits - bits / 4);
        let mut own: Vec<u64> = own.into_iter().map(|(feature, _)| feature).collect();
        own.sort_unstable();
        BitAssignment { own, bits }
    }
}

/// The bit of each feature.
struct BitAssignment {
    /// Features with a bit of their own, ascending. The index is the bit.
    own: Vec<u64>,
    bits: usize,
}

impl BitAssignment {
    fn word_count(&self) -> usize {
        self.bits / 64
    }

    /// Flips the bits of those features of a document that are `shared`, and returns the number of
    /// these features.
    fn mark_features(
        &self,
        features: &[u64],
        shared: impl Fn(&u64) -> bool,
        bitmap: &mut [u64],
    ) -> usize {
        let others = (self.bits - self.own.len()) as u64;
        let (mut at, mut marked) = (0, 0);
        for &feature in features.iter().filter(|feature| shared(feature)) {
            while self.own.get(at).is_some_and(|&own| own < feature) {
                at += 1;
            }
            let bit = if self.own.get(at) == Some(&feature) {
                at
            } else {
                self.own.len() + (((feature & u64::from(u32::MAX)) * others) >> 32) as usize
            };
            bitmap[bit / 64] ^= 1 << (bit % 64);
            marked += 1;
        }
        marked
    }
}

/// A scan of the bitmaps of many documents.
struct BitmapScan<'a, F> {
    bitmaps: &'a FeatureBitmaps,
    at: u32,
    others: &'a [u32],
    visit: F,
}

impl<F: FnMut(u32)> Kernel for BitmapScan<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        match self.bitmaps.length {
            1 => self.scan_with(differing_of::<1>),
            2 => self.scan_with(differing_of::<2>),
            4 => self.scan_with(differing_of::<4>),
            8 => {
                self.scan_with(|a, b| differing_of_blocks(arch, &a[..LINE_WORDS], &b[..LINE_WORDS]))
            }
            _ => self.scan_with(|a, b| differing_of_blocks(arch, a, b)),
        }
    }
}

impl<F: FnMut(u32)> BitmapScan<'_, F> {
    #[inline(always)]
    fn scan_with(mut self, differing: impl Fn(&[u64], &[u64]) -> u64) {
        let bitmaps = self.bitmaps;
        let (bitmap, slack) = (bitmaps.bitmap_at(self.at), bitmaps.slack[self.at as usize]);
        for &other in self.others {
            let differing = differing(bitmap, bitmaps.bitmap_at(other));
            if differing as i64 * SLACK_OF_ONE_BIT <= slack + bitmaps.slack[other as usize] {
                (self.visit)(other);
            }
        }
    }
}

/// Counts the bits in which two bitmaps of the same length differ.
struct DifferingBits<'a>(&'a [u64], &'a [u64]);

impl Kernel for DifferingBits<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) -> u64 {
        let Self(a, b) = self;
        if a.len() < LINE_WORDS {
            differing_of::<1>(a, b)
        } else {
            differing_of_blocks(arch, a, b)
        }
    }
}

/// Counts the differing bits of bitmaps that consist of whole chunks of `N` words.
#[inline(always)]
fn differing_of<const N: usize>(a: &[u64], b: &[u64]) -> u64 {
    let parts = a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0);
    let ones = |(a, b): (&u64, &u64)| u64::from((a ^ b).count_ones());
    let parts = parts.map(|(a, b)| a.iter().zip(b).map(ones).sum::<u64>());
    parts.sum()
}

#[inline(always)]
fn differing_of_blocks<A: Arch>(arch: A, a: &[u64], b: &[u64]) -> u64 {
    arch.differing(a.as_chunks::<LINE_WORDS>().0, b.as_chunks::<LINE_WORDS>().0)
}

/// Words that are compared at a time: a cache line.
const LINE_WORDS: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::buckets::{BucketSide, CandidateBucketsBuilder, RankedKey};
    use super::*;
    use crate::hash::mix_bits;

    fn ascending(features: impl Iterator<Item = u64>) -> Vec<u64> {
        let features: BTreeSet<u64> = features.map(mix_bits).collect();
        features.into_iter().collect()
    }

    /// Returns documents of `common` features, each of which lacks `missing` of them at places of its
    /// own and has as many other features instead.
    fn siblings(documents: u64, common: u64, missing: u64) -> Vec<Vec<u64>> {
        let sibling = |document: u64| {
            let left_out: BTreeSet<u64> = (0..missing)
                .map(|at| mix_bits(document << 20 | at) % common)
                .collect();
            let own = (0..left_out.len() as u64).map(move |at| 1 << 40 | document << 20 | at);
            ascending((0..common).filter(|at| !left_out.contains(at)).chain(own))
        };
        (0..documents).map(sibling).collect()
    }

    /// Returns one dense set of all documents.
    fn one_dense_set(sets: &[Vec<u64>], threshold: Threshold) -> DenseSets {
        let mut builder = CandidateBucketsBuilder::new(sets.len());
        builder.push_bucket(0..sets.len() as DocumentRank);
        dense_sets_of(&mut builder.build_buckets().unwrap(), sets, 1, threshold)
    }

    fn dense_sets_of(
        buckets: &mut CandidateBuckets,
        sets: &[Vec<u64>],
        most: usize,
        threshold: Threshold,
    ) -> DenseSets {
        let mut dense_sets = DenseSets::find_dense_sets(buckets, sets.len(), most, threshold);
        let features: &FeaturesOf<'_> = &|rank, _, visit| {
            visit(&sets[rank as usize]);
            Ok(())
        };
        dense_sets.count_all_encounters(buckets);
        dense_sets.build_due_bitmaps(0, features).unwrap();
        dense_sets
    }

    fn reaches(a: &[u64], b: &[u64], threshold: Threshold) -> bool {
        let shared = crate::similarity::intersection(a, b);
        threshold.admits_ratio(shared, a.len() + b.len() - shared)
    }

    /// Returns how many pairs are below the threshold, and how many of these are ruled out. No other
    /// pair may be ruled out.
    fn ruled_out(sets: &[Vec<u64>], threshold: Threshold) -> (usize, usize) {
        let dense_sets = one_dense_set(sets, threshold);
        let (mut below, mut out) = (0, 0);
        for a in 0..sets.len() {
            for b in 0..sets.len() {
                let is_out = dense_sets.rules_out_pair(a as DocumentRank, b as DocumentRank);
                assert_eq!(
                    is_out,
                    dense_sets.rules_out_pair(b as DocumentRank, a as DocumentRank)
                );
                if a == b || reaches(&sets[a], &sets[b], threshold) {
                    assert!(!is_out, "{} {}", sets[a].len(), sets[b].len());
                } else {
                    below += 1;
                    out += usize::from(is_out);
                }
            }
        }
        (below, out)
    }

    #[test]
    fn filter_keeps_matches_and_rejects_most_others() {
        for hundredths in [30, 60, 75, 80, 90, 95] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            for common in [12, 40, 60, 128, 300, 1100, 5000] {
                // Just enough to leave siblings below the threshold.
                let whole = 1.0 - 2.0 * threshold.get() / (1.0 + threshold.get());
                let missing = (0.53 * whole * common as f64).ceil() as u64 + 1;
                let sets = siblings(60, common, missing.min(common / 2));
                let (below, out) = ruled_out(&sets, threshold);
                assert!(
                    below < 1500 || 20 * out > 19 * below,
                    "{common}: {out} of {below}"
                );
            }
        }
    }

    #[test]
    fn sets_of_all_sizes_keep_their_matches() {
        let set = |at: u64| {
            let (shared, own) = (1 + at % 40 * (at % 7), at % 11 * (at % 5));
            let few = (0..at % 3).map(|rare| 1 << 50 | rare);
            ascending(
                (0..shared)
                    .chain((0..own).map(move |own| at << 32 | own))
                    .chain(few),
            )
        };
        let mut sets: Vec<Vec<u64>> = (0..150).map(set).collect();
        sets.push(Vec::new());
        sets.push(ascending(0..20_000));
        sets.push(ascending(100..20_000));
        for hundredths in [5, 50, 80, 100] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            ruled_out(&sets, threshold);
        }
    }

    /// Covers bitmaps of all lengths and all instruction sets of this machine.
    #[test]
    fn scan_yields_pairs_not_ruled_out() {
        let threshold = Threshold::new(0.8).unwrap();
        for common in [20, 50, 100, 200, 400, 1100] {
            let mut sets = siblings(300, common, common / 17 + 1);
            sets.extend(siblings(60, common, common / 9 + 1));
            let dense_sets = one_dense_set(&sets, threshold);
            let mut left = 0;
            for rank in 0..sets.len() as DocumentRank {
                let others: Vec<u32> = (0..sets.len() as u32)
                    .filter(|&at| at % 3 != 0 && at != rank)
                    .collect();
                let expected = others.iter().copied();
                let expected: Vec<u32> = expected
                    .filter(|&it| !dense_sets.rules_out_pair(rank, it))
                    .collect();
                for cpu in Cpu::detect_all() {
                    let mut found = Vec::new();
                    cpu.run(BitmapScan {
                        bitmaps: dense_sets.set_bitmaps(0).unwrap(),
                        at: dense_sets.slot_of(rank).unwrap().at,
                        others: &others,
                        visit: |other| found.push(other),
                    });
                    assert_eq!(found, expected, "{cpu:?} {rank}");
                }
                left += expected.len();
            }
            assert!((300..80_000).contains(&left), "{common}: {left}");
        }
    }

    #[test]
    fn dense_buckets_are_joined_by_shared_documents() {
        let sets = siblings(12, 30, 2);
        let mut builder = CandidateBucketsBuilder::new(12);
        let sides = |key, indexing: &[DocumentRank], probing: &[DocumentRank]| {
            let of = |side| move |&rank: &DocumentRank| RankedKey { key, side, rank };
            let indexing = indexing.iter().map(of(BucketSide::Indexing));
            indexing
                .chain(probing.iter().map(of(BucketSide::Probing)))
                .collect::<Vec<_>>()
        };
        builder.add_keys(&mut sides(1, &[0, 2, 4], &[7]), |_| true);
        builder.add_keys(&mut sides(2, &[4, 5], &[9, 10]), |_| true);
        builder.add_keys(&mut sides(3, &[1, 3, 6, 8], &[]), |_| true);
        // Too small to connect the two dense sets.
        builder.add_keys(&mut sides(4, &[0, 1], &[]), |_| true);
        let [one, other] = [[11], [3]].map(|members| builder.push_bucket(members));
        let dense = builder.push_bucket([3, 6, 8]);
        builder.connect_buckets(one, dense);
        builder.connect_buckets(other, one);
        let threshold = Threshold::new(0.8).unwrap();
        let dense_sets = dense_sets_of(&mut builder.build_buckets().unwrap(), &sets, 3, threshold);
        let members: Vec<&[DocumentRank]> = (0..dense_sets.set_count())
            .map(|set| dense_sets.set_members(set as u32))
            .collect();
        assert_eq!(members, [&[0, 2, 4, 5, 7, 9, 10][..], &[1, 3, 6, 8, 11]]);
        assert_eq!(
            dense_sets.slot_of(9),
            Some(DenseSlot {
                dense_set: 0,
                at: 5
            })
        );
        assert_eq!(
            dense_sets.slot_of(11),
            Some(DenseSlot {
                dense_set: 1,
                at: 4
            })
        );
        assert!(!dense_sets.rules_out_pair(0, 1) && !dense_sets.rules_out_pair(2, 11));
    }

    #[test]
    fn equal_texts_share_one_slot() {
        let sets = [siblings(3, 40, 15), siblings(1, 40, 15)].concat();
        let mut builder = CandidateBucketsBuilder::new(4);
        builder.push_bucket(0..3);
        let threshold = Threshold::new(0.9).unwrap();
        let mut dense_sets =
            dense_sets_of(&mut builder.build_buckets().unwrap(), &sets, 2, threshold);
        assert!(
            dense_sets.rules_out_pair(0, 1)
                && dense_sets.slot_of(3).is_none()
                && !dense_sets.rules_out_pair(1, 3)
        );
        dense_sets.share_slots(|rank| rank % 3);
        assert!(dense_sets.rules_out_pair(1, 3) && !dense_sets.rules_out_pair(0, 3));
    }
}
