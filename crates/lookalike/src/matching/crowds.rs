//! Crowds: documents that share so many keys that going through their groups would take longest, and
//! bitmaps that rule out most of their pairs.
//!
//! Documents of one template meet whatever their keys are, and to compare their features takes long.
//! A group whose members meet many others is crowded, and a crowd is all that crowded groups connect.
//! Of each of its features a document has a bit, the parity of those that lead to it; every bit in
//! which two documents differ is a feature that only one of them has (Sandes, Teodoro and Melo,
//! "Bitmap Filter", 2020). Two things make these bitmaps nearly exact where documents are alike: what
//! most of a crowd has stands in places of its own, and features that one document alone has are no
//! bits but a number, as they differ from everybody's.
//!
//! Bitmaps are made once going through the groups of a crowd has taken about as long as making them
//! will, so that they never cost much more than they save: whether the documents of a crowd match,
//! and few of them are kept, shows only on the way.
//!
//! Guaranteed: no pair that may match is ruled out. Cost: the features of a crowd's documents twice,
//! 2 bits a feature of its usual document, [`MOST_BITS`] at the most where crowds are large, and a
//! look at as many bits for a pair, where to compare the features is a look at every one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::components::Union;
use super::groups::{Groups, Rank};
use super::keys::{MOST_MET, MetTwice};
use crate::arch::{Arch, Cpu, Kernel, prefetch};
use crate::error::Result;
use crate::types::Threshold;

/// Calls back with the features of a document, ascending; the list is room to make them in.
pub(super) type FeaturesOf<'a> =
    dyn Fn(Rank, &mut Vec<u64>, &mut dyn FnMut(&[u64])) -> Result<()> + Sync + 'a;

/// All crowds of a run.
#[derive(Debug)]
pub(super) struct Crowds {
    crowds: Vec<Crowd>,
    /// The Jaccard index that all who match reach.
    threshold: Threshold,
    /// Bits of a bitmap at the most.
    most: usize,
    /// Where every document stands; empty if there are no crowds.
    seats: Vec<Seat>,
}

/// A place in a crowd. Seats are in the order of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) crowd: u32,
    pub(super) at: u32,
}

/// Of a document that is in no crowd.
const NOWHERE: Seat = Seat {
    crowd: u32::MAX,
    at: 0,
};

/// The documents of a crowd.
#[derive(Debug)]
struct Crowd {
    /// Ascending.
    members: Vec<Rank>,
    /// How often one of them has met another by a crowded group.
    met: AtomicU64,
    /// How often one of them was compared with another.
    compared: AtomicU64,
    /// How many features the first of them has, once that was asked.
    size: Option<u64>,
    bitmaps: Option<Bitmaps>,
}

/// The bitmaps of a crowd, by seats.
#[derive(Debug)]
struct Bitmaps {
    /// How many bits a document may have that another one has not, itself doing the same, less what
    /// it has alone; in parts of [`ONE`].
    slack: Vec<i64>,
    /// Words of a bitmap.
    length: usize,
    words: Vec<u64>,
}

/// Parts of a bit in which slack is counted.
const ONE: i64 = 1 << 16;

/// Bits of a bitmap at the most, where crowds are too large for more.
const MOST_BITS: usize = 4096;

/// Bytes of bitmaps up to which they may be longer.
const ROOM: usize = 32 << 20;

/// Documents of a crowd that say which features are usual.
const SAMPLE: usize = 64;

/// Features that are counted for that: some 24 MB.
const MOST_SAMPLED: usize = 1 << 20;

impl Crowds {
    /// Finds the crowds of so many documents: a group is crowded if its members meet more than
    /// `most`.
    pub(super) fn form(
        groups: &mut Groups,
        documents: usize,
        most: usize,
        threshold: Threshold,
    ) -> Self {
        let mut formed = Self {
            threshold,
            ..Self::default()
        };
        if groups.find_crowded(most) {
            let (seats, members) = seated(groups, documents);
            let seated: usize = members.iter().map(Vec::len).sum();
            formed.most = (8 * ROOM / seated.max(1)).max(MOST_BITS);
            formed.crowds = members.into_iter().map(Crowd::of).collect();
            formed.seats = seats;
        }
        formed
    }

    /// Counts members of a crowd that one of them meets by crowded groups.
    pub(super) fn meet(&self, crowd: u32, members: usize) {
        let met = &self.crowds[crowd as usize].met;
        met.fetch_add(members as u64, Ordering::Relaxed);
    }

    /// Counts a comparison of two documents, if bitmaps might have made it needless.
    #[inline]
    pub(super) fn compare(&self, a: Rank, b: Rank) {
        let (Some(a), Some(b)) = (self.seat(a), self.seat(b)) else {
            return;
        };
        if a.crowd == b.crowd && !self.can_scan(a.crowd) {
            let compared = &self.crowds[a.crowd as usize].compared;
            compared.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts all that meet where every pair is looked at.
    pub(super) fn meet_all(&self, groups: &Groups) {
        for group in groups.crowded() {
            let members = groups.members(group);
            let met: usize = groups.reach(group).map(|it| groups.members(it).len()).sum();
            if let Some(seat) = self.seat(members[0]) {
                self.meet(seat.crowd, members.len() * met / 2);
            }
        }
    }

    /// Makes the bitmaps of the crowds whose members have met and were compared so often that it pays;
    /// `price` is how many features might be compared while one finds its place in a bitmap.
    pub(super) fn learn(&mut self, price: usize, features: &FeaturesOf<'_>) -> Result<()> {
        for crowd in &mut self.crowds {
            if crowd.bitmaps.is_none() && crowd.is_worth(price, features)? {
                let bitmaps = Bitmaps::of(&crowd.members, self.most, self.threshold, features)?;
                crowd.bitmaps = Some(bitmaps);
            }
        }
        Ok(())
    }

    fn bitmaps(&self, crowd: u32) -> Option<&Bitmaps> {
        self.crowds[crowd as usize].bitmaps.as_ref()
    }

    /// Whether a crowd has bitmaps by now.
    #[inline]
    pub(super) fn can_scan(&self, crowd: u32) -> bool {
        self.bitmaps(crowd).is_some()
    }

    /// Gives every document the seat of the first one with the same text.
    pub(super) fn stand_for(&mut self, first: impl Fn(Rank) -> Rank) {
        for rank in 0..self.seats.len() {
            self.seats[rank] = self.seats[first(rank as Rank) as usize];
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.crowds.len()
    }

    /// Where a document stands.
    #[inline]
    pub(super) fn seat(&self, rank: Rank) -> Option<Seat> {
        let seat = *self.seats.get(rank as usize)?;
        (seat != NOWHERE).then_some(seat)
    }

    /// The documents of a crowd, by their seats.
    pub(super) fn members(&self, crowd: u32) -> &[Rank] {
        &self.crowds[crowd as usize].members
    }

    /// How many seats of a crowd are gone through at a time, for several documents one after another,
    /// while the cache holds them.
    pub(super) fn tile(&self, crowd: u32) -> usize {
        let length = self.bitmaps(crowd).map_or(1, |bitmaps| bitmaps.length);
        (TILE / length).max(LINE)
    }

    /// Asks the memory for the first lines of a bitmap.
    #[inline]
    pub(super) fn fetch(&self, rank: Rank) {
        let Some(Seat { crowd, at }) = self.seat(rank) else {
            return;
        };
        if let Some(bitmaps) = self.bitmaps(crowd) {
            prefetch(&bitmaps.slack[at as usize]);
            let lines = bitmaps.of_seat(at).iter().step_by(LINE);
            lines.take(2).for_each(prefetch);
        }
    }

    /// Whether two documents do not match for certain.
    #[inline]
    pub(super) fn rule_out(&self, a: Rank, b: Rank) -> bool {
        let (Some(a), Some(b)) = (self.seat(a), self.seat(b)) else {
            return false;
        };
        if a.crowd != b.crowd || a.at == b.at {
            return false;
        }
        let Some(bitmaps) = self.bitmaps(a.crowd) else {
            return false;
        };
        let (a, b) = (a.at, b.at);
        let differing = Cpu::best().run(Differing(bitmaps.of_seat(a), bitmaps.of_seat(b)));
        differing as i64 * ONE > bitmaps.slack[a as usize] + bitmaps.slack[b as usize]
    }

    /// Calls back with those of other documents of a crowd, given by their seats, that are not ruled
    /// out: all of them as long as there are no bitmaps.
    pub(super) fn scan(&self, seat: Seat, others: &[u32], mut visit: impl FnMut(Rank)) {
        let members = self.members(seat.crowd);
        match self.bitmaps(seat.crowd) {
            None => others
                .iter()
                .for_each(|&other| visit(members[other as usize])),
            Some(bitmaps) => Cpu::best().run(Scan {
                bitmaps,
                at: seat.at,
                others,
                visit: |other: u32| visit(members[other as usize]),
            }),
        }
    }
}

impl Default for Crowds {
    /// None.
    fn default() -> Self {
        Self {
            crowds: Vec::new(),
            threshold: Threshold::DEFAULT,
            most: MOST_BITS,
            seats: Vec::new(),
        }
    }
}

/// Words of bitmaps in a tile: a quarter of a MiB.
const TILE: usize = 1 << 15;

/// The seats of all documents, and the members of every crowd.
fn seated(groups: &Groups, documents: usize) -> (Vec<Seat>, Vec<Vec<Rank>>) {
    let mut union = Union::of(documents);
    let mut in_crowd = vec![false; groups.count()];
    for group in groups.crowded() {
        let first = groups.members(group)[0];
        for met in groups.reach(group) {
            in_crowd[met as usize] = true;
            union.join(first, groups.members(met)[0]);
        }
    }
    let mut seats = vec![NOWHERE; documents];
    for group in (0..groups.count() as u32).filter(|&group| in_crowd[group as usize]) {
        for &member in groups.members(group) {
            union.join(member, groups.members(group)[0]);
            seats[member as usize].crowd = 0;
        }
    }
    let mut members: Vec<Vec<Rank>> = Vec::new();
    let mut crowd_of = HashMap::new();
    for (rank, seat) in seats.iter_mut().enumerate() {
        if *seat != NOWHERE {
            let root = union.root(rank as Rank);
            let crowd = *crowd_of.entry(root).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            *seat = Seat {
                crowd: crowd as u32,
                at: members[crowd].len() as u32,
            };
            members[crowd].push(rank as Rank);
        }
    }
    (seats, members)
}

impl Crowd {
    fn of(members: Vec<Rank>) -> Self {
        Self {
            members,
            met: AtomicU64::new(0),
            compared: AtomicU64::new(0),
            size: None,
            bitmaps: None,
        }
    }

    /// Whether going through its groups has cost as much as bitmaps do.
    fn is_worth(&mut self, price: usize, features_of: &FeaturesOf<'_>) -> Result<bool> {
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
        let spent = (MEETING * met).saturating_add(size.saturating_mul(compared));
        Ok(spent >= price.saturating_mul(size + MEETING))
    }
}

/// How many features might be compared while one document meets another: it is found and looked at.
const MEETING: u64 = 8;

impl Bitmaps {
    /// Of the documents of a crowd, with at most so many bits each.
    fn of(
        members: &[Rank],
        most: usize,
        threshold: Threshold,
        features_of: &FeaturesOf<'_>,
    ) -> Result<Self> {
        let mut sample = Sample::default();
        let mut buffer = Vec::new();
        for &rank in members
            .iter()
            .step_by(members.len().div_ceil(SAMPLE).max(1))
        {
            features_of(rank, &mut buffer, &mut |features| sample.add(features))?;
        }
        let met = MetTwice::new((members.len() * sample.usual_size()).min(MOST_MET));
        let places = sample.places(most);
        members
            .par_iter()
            .try_for_each_init(Vec::new, |buffer, &rank| {
                features_of(rank, buffer, &mut |features| {
                    met.fetch(features);
                    features.iter().for_each(|&feature| met.meet(feature));
                })
            })?;
        let length = places.words();
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
                met.fetch(features);
                let shared = |feature: &u64| met.may_be_shared(*feature);
                let alone = features.len() - places.mark(features, shared, bitmap);
                // Rounded up: rounding errors are far below one part.
                let may_differ = differing * features.len() as f64 * ONE as f64;
                *slack = may_differ as i64 + 1 - alone as i64 * ONE;
            })
        })?;
        Ok(made)
    }

    #[inline(always)]
    fn of_seat(&self, at: u32) -> &[u64] {
        &self.words[at as usize * self.length..][..self.length]
    }
}

/// The features of some documents of a crowd.
#[derive(Default)]
struct Sample {
    sizes: Vec<usize>,
    counts: HashMap<u64, u32>,
}

impl Sample {
    fn add(&mut self, features: &[u64]) {
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

    /// Two bits a feature of a usual document. What several have goes to bits of its own, what most
    /// have first, and a quarter of the bits or more are left for all others.
    fn places(self, most: usize) -> Places {
        let words = (2 * self.usual_size()).min(most).div_ceil(64).max(1);
        let words = if words < LINE {
            words.next_power_of_two()
        } else {
            words.next_multiple_of(LINE)
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
        Places { own, bits }
    }
}

/// The bits to which features lead.
struct Places {
    /// Features with bits of their own, ascending; their places are the bits.
    own: Vec<u64>,
    bits: usize,
}

impl Places {
    fn words(&self) -> usize {
        self.bits / 64
    }

    /// Turns the bits of those of a document's features that are `shared`, and counts these.
    fn mark(&self, features: &[u64], shared: impl Fn(&u64) -> bool, bitmap: &mut [u64]) -> usize {
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

/// Looks at the bitmaps of many documents.
struct Scan<'a, F> {
    bitmaps: &'a Bitmaps,
    at: u32,
    others: &'a [u32],
    visit: F,
}

impl<F: FnMut(u32)> Kernel for Scan<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        match self.bitmaps.length {
            1 => self.by(differing_of::<1>),
            2 => self.by(differing_of::<2>),
            4 => self.by(differing_of::<4>),
            8 => self.by(|a, b| differing_of_blocks(arch, &a[..LINE], &b[..LINE])),
            _ => self.by(|a, b| differing_of_blocks(arch, a, b)),
        }
    }
}

impl<F: FnMut(u32)> Scan<'_, F> {
    #[inline(always)]
    fn by(mut self, differing: impl Fn(&[u64], &[u64]) -> u64) {
        let bitmaps = self.bitmaps;
        let (bitmap, slack) = (bitmaps.of_seat(self.at), bitmaps.slack[self.at as usize]);
        for &other in self.others {
            let differing = differing(bitmap, bitmaps.of_seat(other));
            if differing as i64 * ONE <= slack + bitmaps.slack[other as usize] {
                (self.visit)(other);
            }
        }
    }
}

/// Counts the bits in which two bitmaps of a length differ.
struct Differing<'a>(&'a [u64], &'a [u64]);

impl Kernel for Differing<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) -> u64 {
        let Self(a, b) = self;
        if a.len() < LINE {
            differing_of::<1>(a, b)
        } else {
            differing_of_blocks(arch, a, b)
        }
    }
}

/// The same of bitmaps of a whole number of parts of `N` words.
#[inline(always)]
fn differing_of<const N: usize>(a: &[u64], b: &[u64]) -> u64 {
    let parts = a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0);
    let ones = |(a, b): (&u64, &u64)| u64::from((a ^ b).count_ones());
    let parts = parts.map(|(a, b)| a.iter().zip(b).map(ones).sum::<u64>());
    parts.sum()
}

#[inline(always)]
fn differing_of_blocks<A: Arch>(arch: A, a: &[u64], b: &[u64]) -> u64 {
    arch.differing(a.as_chunks::<LINE>().0, b.as_chunks::<LINE>().0)
}

/// Words that are compared at a time: a cache line.
const LINE: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::groups::{GroupsBuilder, Keyed, Side};
    use super::*;
    use crate::hash::mix;

    fn ascending(features: impl Iterator<Item = u64>) -> Vec<u64> {
        let features: BTreeSet<u64> = features.map(mix).collect();
        features.into_iter().collect()
    }

    /// Of `common` features, all but `missing` at places of its own and as many others.
    fn siblings(documents: u64, common: u64, missing: u64) -> Vec<Vec<u64>> {
        let sibling = |document: u64| {
            let left_out: BTreeSet<u64> = (0..missing)
                .map(|at| mix(document << 20 | at) % common)
                .collect();
            let own = (0..left_out.len() as u64).map(move |at| 1 << 40 | document << 20 | at);
            ascending((0..common).filter(|at| !left_out.contains(at)).chain(own))
        };
        (0..documents).map(sibling).collect()
    }

    /// One crowd of all sets.
    fn crowd_of(sets: &[Vec<u64>], threshold: Threshold) -> Crowds {
        let mut builder = GroupsBuilder::new(sets.len());
        builder.push(0..sets.len() as Rank);
        crowds(&mut builder.build().unwrap(), sets, 1, threshold)
    }

    fn crowds(groups: &mut Groups, sets: &[Vec<u64>], most: usize, threshold: Threshold) -> Crowds {
        let mut crowds = Crowds::form(groups, sets.len(), most, threshold);
        let features: &FeaturesOf<'_> = &|rank, _, visit| {
            visit(&sets[rank as usize]);
            Ok(())
        };
        crowds.meet_all(groups);
        crowds.learn(0, features).unwrap();
        crowds
    }

    fn reaches(a: &[u64], b: &[u64], threshold: Threshold) -> bool {
        let shared = crate::verify::intersection(a, b);
        threshold.admits(shared, a.len() + b.len() - shared)
    }

    /// How many pairs are below the threshold, and how many of these are ruled out; none of the
    /// others may be.
    fn ruled_out(sets: &[Vec<u64>], threshold: Threshold) -> (usize, usize) {
        let crowds = crowd_of(sets, threshold);
        let (mut below, mut out) = (0, 0);
        for a in 0..sets.len() {
            for b in 0..sets.len() {
                let is_out = crowds.rule_out(a as Rank, b as Rank);
                assert_eq!(is_out, crowds.rule_out(b as Rank, a as Rank));
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
    fn rules_out_nothing_that_reaches_the_threshold_and_nearly_all_else() {
        for hundredths in [30, 60, 75, 80, 90, 95] {
            let threshold = Threshold::new(f64::from(hundredths) / 100.0).unwrap();
            for common in [12, 40, 60, 128, 300, 1100, 5000] {
                // As many as leave siblings below the threshold, hardly.
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
    fn sets_of_all_sizes_are_safe() {
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

    /// With bitmaps of all lengths and all instructions that are there.
    #[test]
    fn a_scan_leaves_what_is_not_ruled_out() {
        let threshold = Threshold::new(0.8).unwrap();
        for common in [20, 50, 100, 200, 400, 1100] {
            let mut sets = siblings(300, common, common / 17 + 1);
            sets.extend(siblings(60, common, common / 9 + 1));
            let crowds = crowd_of(&sets, threshold);
            let mut left = 0;
            for rank in 0..sets.len() as Rank {
                let others: Vec<u32> = (0..sets.len() as u32)
                    .filter(|&at| at % 3 != 0 && at != rank)
                    .collect();
                let expected = others.iter().copied();
                let expected: Vec<u32> =
                    expected.filter(|&it| !crowds.rule_out(rank, it)).collect();
                for cpu in Cpu::all() {
                    let mut found = Vec::new();
                    cpu.run(Scan {
                        bitmaps: crowds.bitmaps(0).unwrap(),
                        at: crowds.seat(rank).unwrap().at,
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
    fn crowds_are_what_crowded_groups_connect() {
        let sets = siblings(12, 30, 2);
        let mut builder = GroupsBuilder::new(12);
        let sides = |key, full: &[Rank], probing: &[Rank]| {
            let of = |side| move |&rank: &Rank| Keyed { key, side, rank };
            let full = full.iter().map(of(Side::Full));
            full.chain(probing.iter().map(of(Side::Probing)))
                .collect::<Vec<_>>()
        };
        builder.add(&mut sides(1, &[0, 2, 4], &[7]), |_| true);
        builder.add(&mut sides(2, &[4, 5], &[9, 10]), |_| true);
        builder.add(&mut sides(3, &[1, 3, 6, 8], &[]), |_| true);
        // Too small to connect the two.
        builder.add(&mut sides(4, &[0, 1], &[]), |_| true);
        let [one, other] = [[11], [3]].map(|members| builder.push(members));
        let crowded = builder.push([3, 6, 8]);
        builder.connect(one, crowded);
        builder.connect(other, one);
        let threshold = Threshold::new(0.8).unwrap();
        let crowds = crowds(&mut builder.build().unwrap(), &sets, 3, threshold);
        let members: Vec<&[Rank]> = (0..crowds.count())
            .map(|it| crowds.members(it as u32))
            .collect();
        assert_eq!(members, [&[0, 2, 4, 5, 7, 9, 10][..], &[1, 3, 6, 8, 11]]);
        assert_eq!(crowds.seat(9), Some(Seat { crowd: 0, at: 5 }));
        assert_eq!(crowds.seat(11), Some(Seat { crowd: 1, at: 4 }));
        assert!(!crowds.rule_out(0, 1) && !crowds.rule_out(2, 11));
    }

    #[test]
    fn equal_texts_have_one_seat() {
        let sets = [siblings(3, 40, 15), siblings(1, 40, 15)].concat();
        let mut builder = GroupsBuilder::new(4);
        builder.push(0..3);
        let threshold = Threshold::new(0.9).unwrap();
        let mut crowds = crowds(&mut builder.build().unwrap(), &sets, 2, threshold);
        assert!(crowds.rule_out(0, 1) && crowds.seat(3).is_none() && !crowds.rule_out(1, 3));
        crowds.stand_for(|rank| rank % 3);
        assert!(crowds.rule_out(1, 3) && !crowds.rule_out(0, 3));
    }
}
