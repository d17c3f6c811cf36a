//! An inverted index of the features of drawn documents.

use crate::arch::{Arch, Cpu, Kernel, prefetch};
use crate::text::Analysis;
use crate::types::Threshold;

/// Which drawn texts have a feature.
#[derive(Debug)]
pub(super) struct Index {
    floor: Threshold,
    /// A bit for every feature that may be there: 16 to 64 bits a feature.
    bits: Vec<u64>,
    /// Features that are indexed, by their hashes, with open addressing; at most half full.
    slots: Vec<Slot>,
    /// How many slots are taken.
    features: usize,
    /// The texts with a feature besides the last one.
    links: Vec<Link>,
    /// In how many drawn texts features occur, whether indexed or not, up to 255; features that share
    /// a counter count as more frequent than they are, which costs time alone.
    counts: Vec<u8>,
    /// The most features of a text that is looked at in each part of the hashes.
    largest: [usize; PARTS + 1],
}

/// A feature and the last text that has it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    feature: u64,
    link: Link,
}

/// A text and the place of the next one in the list of links.
#[derive(Clone, Copy, Debug)]
struct Link {
    text: u32,
    next: u32,
}

impl Slot {
    const EMPTY: Self = Self {
        feature: 0,
        link: Link {
            text: END,
            next: END,
        },
    };

    fn is_empty(&self) -> bool {
        self.link.text == END
    }
}

/// What is indexed of a text, by what a similar document has of it at the least.
#[derive(Debug)]
pub(super) struct Indexed {
    /// So many of the features that are indexed.
    pub(super) least: u32,
    /// So many of the features that are looked at.
    pub(super) least_looked_at: usize,
    /// The features that are looked at, ascending, unless these are all.
    pub(super) looked_at: Option<Box<[u64]>>,
}

impl Indexed {
    /// Of a text that nothing is similar to.
    pub(super) const NOTHING: Self = Self {
        least: u32::MAX,
        least_looked_at: usize::MAX,
        looked_at: None,
    };
}

/// Of a document with twice as many features or more, so many to twice as many are looked at.
const LOOKED_AT: usize = 128;

/// One in so many of the features that are looked at must be found in the index, where a similar
/// document surely has so many.
const FOUND: usize = 10;

/// At a lower floor a document may lack all of a part too easily.
const LEAST_OF_PARTS: f64 = 0.3;

/// The smallest part of all hashes is one in 2 to the power of this.
const PARTS: usize = 10;

/// The part of all hashes in which a document of so many features is looked at: one in 2 to the power
/// of this.
fn part_of(features: usize, floor: Threshold) -> u32 {
    if floor.get() < LEAST_OF_PARTS {
        return 0;
    }
    (features / LOOKED_AT).max(1).ilog2().min(PARTS as u32)
}

fn share_of(part: u32) -> f64 {
    1.0 / f64::from(1 << part)
}

/// So much of the features of most documents is distinct, repetitions counted.
const DISTINCT: f64 = 0.65;

/// Bits of a hash that serve for nothing else here.
#[inline(always)]
fn is_in(feature: u64, part: u32) -> bool {
    (feature >> 46) & ((1 << part) - 1) == 0
}

/// The natural logarithm of the probability with which a similar document may be overlooked: one in a
/// million.
const OVERLOOKED: f64 = -13.8;

/// Of `count` features that were chosen by their hashes, the most that a document lacks whose Jaccard
/// index is at the floor; all but one if no number is improbable enough.
fn most_lacking(count: usize, floor: Threshold) -> usize {
    let expected = 1.0 - floor.get();
    let improbable = |lacking: usize| {
        let share = (lacking + 1) as f64 / count as f64;
        if share >= 1.0 {
            return true;
        }
        if share <= expected {
            return false;
        }
        let had = 1.0 - share;
        let apart = share * (share / expected).ln() + had * (had / floor.get()).ln();
        -apart * count as f64 <= OVERLOOKED
    };
    let most = count.saturating_sub(1);
    (0..most)
        .find(|&lacking| improbable(lacking))
        .unwrap_or(most)
}

/// Counters of features: more than there are features in thousands of texts.
const COUNTERS: usize = 1 << 22;

fn counter_of(feature: u64) -> usize {
    (feature >> 24) as usize & (COUNTERS - 1)
}

const END: u32 = u32::MAX;

const LEAST_SLOTS: usize = 1 << 12;

impl Index {
    pub(super) fn new(floor: Threshold) -> Self {
        Self::with_counts(floor, vec![0; COUNTERS])
    }

    /// An empty index that knows how often features occur.
    pub(super) fn emptied(&mut self) -> Self {
        Self::with_counts(self.floor, std::mem::take(&mut self.counts))
    }

    fn with_counts(floor: Threshold, counts: Vec<u8>) -> Self {
        Self {
            floor,
            bits: vec![0; LEAST_SLOTS / 2],
            slots: vec![Slot::EMPTY; LEAST_SLOTS],
            features: 0,
            links: Vec::new(),
            counts,
            largest: [0; PARTS + 1],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.bits.len() + 16 * self.slots.len() + 8 * self.links.capacity() + COUNTERS
    }

    /// Counts the features of a text, which need not be indexed.
    pub(super) fn note(&mut self, features: &[u64]) {
        for &feature in features {
            let count = &mut self.counts[counter_of(feature)];
            *count = count.saturating_add(1);
        }
    }

    /// Indexes the features of a text, ascending, that are rarest here.
    pub(super) fn insert(&mut self, text: u32, features: &[u64]) -> Indexed {
        if features.is_empty() {
            return Indexed::NOTHING;
        }
        let part = part_of(features.len(), self.floor);
        let inside = |&feature: &u64| is_in(feature, part);
        let some: Vec<u64> = features.iter().copied().filter(inside).collect();
        let is_part = part > 0 && some.len() >= LOOKED_AT / 2;
        let (looked_at, lacking) = if is_part {
            (&some[..], most_lacking(some.len(), self.floor))
        } else {
            let needed = self.floor.least_part(features.len()).max(1);
            (features, features.len() - needed)
        };
        let least_looked_at = looked_at.len() - lacking;
        let least = looked_at.len().div_ceil(FOUND).min(least_looked_at);
        self.link_rarest(text, looked_at, lacking + least);
        let largest = &mut self.largest[if is_part { part as usize } else { 0 }];
        *largest = features.len().max(*largest);
        Indexed {
            least: least as u32,
            least_looked_at,
            looked_at: is_part.then(|| some.into()),
        }
    }

    fn link_rarest(&mut self, text: u32, features: &[u64], count: usize) {
        let counted = |&feature: &u64| (self.counts[counter_of(feature)], feature);
        let mut order: Vec<(u8, u64)> = features.iter().map(counted).collect();
        order.select_nth_unstable(count - 1);
        for &(_, feature) in &order[..count] {
            self.link(feature, text);
        }
    }

    fn link(&mut self, feature: u64, text: u32) {
        if 2 * self.features >= self.slots.len() {
            self.grow();
        }
        let at = self.slot_of(feature);
        let slot = &mut self.slots[at];
        let mut next = END;
        if slot.is_empty() {
            self.features += 1;
        } else {
            next = self.links.len() as u32;
            self.links.push(slot.link);
        }
        *slot = Slot {
            feature,
            link: Link { text, next },
        };
        let (word, bit) = self.place(feature);
        self.bits[word] |= bit;
    }

    fn grow(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        self.slots = vec![Slot::EMPTY; 2 * slots.len()];
        self.bits = vec![0; slots.len()];
        for slot in slots.into_iter().filter(|slot| !slot.is_empty()) {
            let at = self.slot_of(slot.feature);
            self.slots[at] = slot;
            let (word, bit) = self.place(slot.feature);
            self.bits[word] |= bit;
        }
    }

    /// Where a feature is, or would be.
    #[inline(always)]
    fn slot_of(&self, feature: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (feature >> 8) as usize & mask;
        while !self.slots[at].is_empty() && self.slots[at].feature != feature {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline(always)]
    fn place(&self, feature: u64) -> (usize, u64) {
        let word = (feature >> 6) as usize & (self.bits.len() - 1);
        (word, 1 << (feature & 63))
    }

    /// How many distinct features in a part of the hashes show that a document has more features than
    /// any that is similar to a text that is looked at in a larger part, but for six standard
    /// deviations.
    fn enough_in(&self, part: u32) -> f64 {
        let largest = self.largest[..part as usize].iter().max();
        let most = largest.map_or(0.0, |&largest| largest as f64 / self.floor.get());
        let expected = most * share_of(part);
        expected + 6.0 * expected.sqrt() + 1.0
    }

    /// The smallest part of the hashes by which a document of so many features, their repetitions
    /// counted, can probably be compared.
    fn part_for(&self, features: usize) -> u32 {
        let distinct = DISTINCT * features as f64;
        let suffices = |&part: &u32| self.enough_in(part) <= distinct * share_of(part);
        (1..=PARTS as u32).rev().find(suffices).unwrap_or(0)
    }

    /// Gathers the features of a document that are to be looked at; returns the part of the hashes
    /// that they are from: with 0 they are all.
    pub(super) fn gather(&self, cpu: Cpu, analysis: &Analysis<'_>, into: &mut Vec<u64>) -> u32 {
        let mut part = self.part_for(analysis.feature_count());
        loop {
            into.clear();
            cpu.run(Gather {
                analysis,
                part,
                into,
            });
            if part == 0 || least_distinct(into) as f64 >= self.enough_in(part) {
                return part;
            }
            // The document repeats itself more than most.
            part = part.saturating_sub(2);
        }
    }

    /// Counts the features of a document for every text that has them, each once.
    pub(super) fn count(&self, features: &[u64], hits: &mut Hits) {
        let mut found = std::mem::take(&mut hits.found);
        found.clear();
        found.resize(features.len(), 0);
        // Which features are there cannot be foreseen, so nothing branches on it.
        let mut count = 0;
        for &feature in features {
            let (word, bit) = self.place(feature);
            found[count] = feature;
            count += usize::from(self.bits[word] & bit != 0);
        }
        found.truncate(count);
        let first_slot = |feature: u64| (feature >> 8) as usize & (self.slots.len() - 1);
        found
            .iter()
            .for_each(|&feature| prefetch(&self.slots[first_slot(feature)]));
        make_distinct(&mut found);
        for &feature in &found {
            self.count_one(self.slots[self.slot_of(feature)], hits);
        }
        hits.found = found;
    }

    fn count_one(&self, slot: Slot, hits: &mut Hits) {
        if slot.is_empty() {
            return;
        }
        let mut link = slot.link;
        loop {
            let count = &mut hits.of[link.text as usize];
            if *count == 0 {
                hits.met.push(link.text);
            }
            *count += 1;
            if link.next == END {
                return;
            }
            link = self.links[link.next as usize];
        }
    }
}

/// Longer lists are sorted.
const MOST_SCANNED: usize = 2048;

/// Leaves one of each feature, in some order.
fn make_distinct(features: &mut Vec<u64>) {
    if features.len() > MOST_SCANNED {
        features.sort_unstable();
        features.dedup();
        return;
    }
    let mut bits = [0u64; 16];
    let mut distinct = 0;
    for at in 0..features.len() {
        let feature = features[at];
        let word = &mut bits[(feature >> 60) as usize];
        let bit = 1 << (feature >> 30 & 63);
        let may_be_there = *word & bit != 0;
        *word |= bit;
        if !may_be_there || !features[..distinct].contains(&feature) {
            features[distinct] = feature;
            distinct += 1;
        }
    }
    features.truncate(distinct);
}

/// So many of the features are distinct, and perhaps some more.
fn least_distinct(features: &[u64]) -> u32 {
    let mut bits = [0u64; 64];
    for &feature in features {
        bits[(feature >> 58) as usize] |= 1 << (feature >> 30 & 63);
    }
    bits.iter().map(|bits| bits.count_ones()).sum()
}

/// Makes the features of a document and keeps those in a part of the hashes.
struct Gather<'a, 'd> {
    analysis: &'a Analysis<'d>,
    part: u32,
    into: &'a mut Vec<u64>,
}

impl Kernel for Gather<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _: A) {
        let Self {
            analysis,
            part,
            into,
        } = self;
        analysis.chunks(|chunk| {
            let mut at = into.len();
            into.resize(at + chunk.len(), 0);
            for &feature in chunk {
                into[at] = feature;
                at += usize::from(is_in(feature, part));
            }
            into.truncate(at);
        });
    }
}

/// How many features of the index a document has of every text.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    /// Features of the document that are probably in the index.
    found: Vec<u64>,
    /// By text; 0 of all that are not in `met`.
    pub(super) of: Vec<u32>,
    /// The texts of which it has any.
    pub(super) met: Vec<u32>,
}

impl Hits {
    /// Begins with another document.
    pub(super) fn begin(&mut self, texts: usize) {
        self.of.resize(texts.max(self.of.len()), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn one_of_each_feature_is_left_of_short_and_long_lists() {
        for (count, kinds) in [(0, 1), (1, 1), (50, 7), (2048, 900), (2049, 900), (9000, 3)] {
            let mut features: Vec<u64> = (0..count).map(|at| mix(mix(at) % kinds)).collect();
            let expected: std::collections::BTreeSet<u64> = features.iter().copied().collect();
            make_distinct(&mut features);
            assert_eq!(features.len(), expected.len(), "{count}");
            assert_eq!(
                features
                    .into_iter()
                    .collect::<std::collections::BTreeSet<_>>(),
                expected
            );
        }
    }
}
