//! An inverted index of drawn documents: by their features, or by bins of these if they are many.

use std::borrow::Cow;

use crate::arch::prefetch;
use crate::hash::mix;
use crate::types::Threshold;

/// Which drawn texts have a feature.
#[derive(Debug)]
pub(super) struct Index {
    looks: Looks,
    /// A bit for every key that may be there: 32 to 64 bits a key.
    bits: Vec<u64>,
    /// Keys that are indexed, by themselves, with open addressing; at most half full.
    slots: Vec<Slot>,
    /// How many slots are taken.
    keys: usize,
    /// The texts with a key besides the last one.
    links: Vec<Link>,
    /// Of every text, how many of its keys a similar document has at the least.
    least: Vec<u32>,
    /// In how many drawn texts keys occur, whether indexed or not, up to 255; keys that share a
    /// counter count as more frequent than they are, which costs time alone.
    counts: Vec<u8>,
}

/// A key and the last text that has it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
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
        key: 0,
        link: Link {
            text: END,
            next: END,
        },
    };

    fn is_empty(&self) -> bool {
        self.link.text == END
    }
}

/// How documents are looked at, which follows from the floor alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    floor: Threshold,
    /// A text with many features is looked up by so many bins, a power of two.
    bins: usize,
    /// A text with more distinct features has many.
    most: usize,
    /// No document with more is similar to a text that has not many.
    reach: usize,
}

/// Bins that texts with many features are compared by: a feature chooses by a byte.
const BINS: usize = 256;

/// A floor below this would need more bins.
const LEAST_OF_BINS: f64 = 0.2;

/// One in so many of what a text can be indexed by must be found in the index, where a similar document
/// surely has so many.
const FOUND: usize = 12;

impl Looks {
    pub(super) fn new(floor: Threshold) -> Self {
        let bins = match floor.get() {
            0.6.. => BINS / 4,
            0.4.. => BINS / 2,
            _ => BINS,
        };
        let (most, reach) = if floor.get() < LEAST_OF_BINS {
            (usize::MAX, usize::MAX)
        } else {
            let most = 2 * bins;
            (most, (most as f64 / floor.get()) as usize + 1)
        };
        Self {
            floor,
            bins,
            most,
            reach,
        }
    }

    /// What a text of these features can be indexed by: they themselves, or what their bins hold.
    fn keys_of<'f>(&self, features: &'f [u64]) -> Cow<'f, [u64]> {
        if features.len() <= self.most {
            return Cow::Borrowed(features);
        }
        let mut keys = Vec::new();
        Bins::of(features).keys(self.bins, &mut keys);
        keys.into()
    }

    /// Whether a document of so many features, repetitions counted, may be similar to a text that has
    /// many.
    fn may_have_many(&self, features: usize) -> bool {
        features as f64 >= self.floor.get() * self.most as f64
    }
}

/// What a document has to have of a text with many features besides keys.
#[derive(Debug)]
pub(super) struct Binned {
    tags: Tags,
    /// A similar document has so many of the tags at the least.
    least: usize,
}

impl Binned {
    fn of(features: &[u64], floor: Threshold) -> Self {
        let tags = Bins::of(features).tags();
        let count = tags.iter().filter(|&&tag| tag != 0).count();
        let least = count - most_differing(count, floor);
        Self { tags, least }
    }

    /// Whether the document that was looked at may be similar.
    #[inline(always)]
    pub(super) fn may_be_similar(&self, looked: &mut Looked) -> bool {
        let tags = looked.tags.get_or_insert_with(|| looked.bins.tags());
        let shared = |(&own, &other): (&u8, &u8)| u16::from(own == other && own != 0);
        let shared: u16 = self.tags.iter().zip(tags.iter()).map(shared).sum();
        usize::from(shared) >= self.least
    }
}

/// What the index is asked for of a document: filled while features are made.
#[derive(Clone, Debug, Default)]
pub(super) struct Looked {
    /// The first of its features, all of them if they are few.
    first: Vec<u64>,
    /// Keep so many of the features.
    keep: usize,
    /// Filled for a document that may be similar to a text that has many features.
    bins: Bins,
    may_have_many: bool,
    /// The tags of the bins, if anybody has asked for them.
    tags: Option<Tags>,
    keys: Vec<u64>,
}

impl Looked {
    /// Begins with a document of so many features, repetitions counted.
    pub(super) fn begin(&mut self, looks: Looks, features: usize) {
        self.first.clear();
        self.keep = looks.reach.saturating_mul(2);
        self.may_have_many = looks.may_have_many(features);
        self.tags = None;
        if self.may_have_many {
            self.bins.clear();
        }
    }

    /// Takes features of the document.
    #[inline(always)]
    pub(super) fn take(&mut self, features: &[u64]) {
        let room = self.keep - self.first.len();
        self.first
            .extend_from_slice(&features[..features.len().min(room)]);
        if self.may_have_many {
            self.bins.take(features);
        }
    }

    /// The features to look up, if the document of so many may be similar to a text that has not
    /// many; `all` gives them where they were not all kept.
    pub(super) fn features(
        &mut self,
        looks: Looks,
        count: usize,
        all: impl FnOnce(&mut Vec<u64>),
    ) -> &[u64] {
        if has_more_distinct(&self.first, looks.reach) {
            return &[];
        }
        if self.first.len() < count {
            self.first.clear();
            all(&mut self.first);
        }
        &self.first
    }

    /// The keys of a document that may be similar to a text that has many features.
    #[inline(always)]
    pub(super) fn keys(&mut self, looks: Looks) -> &[u64] {
        self.keys.clear();
        if self.may_have_many {
            self.bins.keys(looks.bins, &mut self.keys);
        }
        &self.keys
    }
}

/// The least hash in each of some bins, into which the features fall by other bits of their hashes
/// than those that signatures are made of: of a bin into which a feature of either of two sets falls,
/// the two are equal with a probability of their Jaccard index (one permutation hashing, Li, Owen and
/// Zhang 2012).
#[derive(Clone, Debug)]
struct Bins {
    /// Features that follow one another go to lanes of their own: see the first round of
    /// FastSimilaritySketch.
    lanes: [[u32; BINS]; LANES],
}

const LANES: usize = 4;

/// No feature fell into the bin.
const NOBODY: u32 = u32::MAX;

const BIN_DOMAIN: u64 = 0x6175_6469_745f_6269;

/// Of each bin a byte of its least hash: 0 if it is empty, and only then.
type Tags = [u8; BINS];

impl Default for Bins {
    fn default() -> Self {
        Self {
            lanes: [[NOBODY; BINS]; LANES],
        }
    }
}

impl Bins {
    fn of(features: &[u64]) -> Self {
        let mut bins = Self::default();
        bins.take(features);
        bins
    }

    fn clear(&mut self) {
        self.lanes.as_flattened_mut().fill(NOBODY);
    }

    #[inline(always)]
    fn take(&mut self, features: &[u64]) {
        let mut put = |lane: usize, feature: u64| {
            let bin = (feature >> 24) as u8 as usize;
            let hash = (feature >> 32) as u32 & 0x01ff_ffff;
            let least = &mut self.lanes[lane][bin];
            *least = hash.min(*least);
        };
        let (groups, rest) = features.as_chunks::<LANES>();
        for group in groups {
            for (lane, &feature) in group.iter().enumerate() {
                put(lane, feature);
            }
        }
        rest.iter().for_each(|&feature| put(0, feature));
    }

    #[inline(always)]
    fn least(&self) -> [u32; BINS] {
        let [mut least, others @ ..] = self.lanes;
        for lane in &others {
            for (least, &value) in least.iter_mut().zip(lane) {
                *least = value.min(*least);
            }
        }
        least
    }

    #[inline(always)]
    fn tags(&self) -> Tags {
        self.least().map(|hash| match hash {
            NOBODY => 0,
            hash => (hash as u8).max(1),
        })
    }

    /// What so many bins hold, which these are joined to, each as a key that no other bin has; none of
    /// those that are empty.
    #[inline(always)]
    fn keys(&self, count: usize, keys: &mut Vec<u64>) {
        let mut least = self.least();
        let (joined, others) = least.split_at_mut(count);
        for bins in others.chunks_exact(count) {
            for (joined, &value) in joined.iter_mut().zip(bins) {
                *joined = value.min(*joined);
            }
        }
        let filled = joined
            .iter()
            .enumerate()
            .filter(|&(_, &hash)| hash != NOBODY);
        let key =
            |(bin, &hash): (usize, &u32)| mix((bin as u64) << 32 ^ u64::from(hash) ^ BIN_DOMAIN);
        keys.extend(filled.map(key));
    }
}

/// The natural logarithm of the probability with which a similar document may be overlooked: one in a
/// million.
const OVERLOOKED: f64 = -13.8;

/// Of `count` bins the most in which a document differs whose Jaccard index is at the floor (Chernoff's
/// bound); all but one if no number is improbable enough.
fn most_differing(count: usize, floor: Threshold) -> usize {
    let expected = 1.0 - floor.get();
    let improbable = |differing: usize| {
        let share = (differing + 1) as f64 / count as f64;
        if share >= 1.0 {
            return true;
        }
        if share <= expected {
            return false;
        }
        let equal = 1.0 - share;
        let apart = share * (share / expected).ln() + equal * (equal / floor.get()).ln();
        -apart * count as f64 <= OVERLOOKED
    };
    let most = count.saturating_sub(1);
    (0..most).find(|&it| improbable(it)).unwrap_or(most)
}

/// Counters of features: more than there are features in thousands of texts.
const COUNTERS: usize = 1 << 22;

fn counter_of(key: u64) -> usize {
    (key >> 24) as usize & (COUNTERS - 1)
}

const END: u32 = u32::MAX;

const LEAST_SLOTS: usize = 1 << 12;

/// Slots for a word of bits: at most half of them are taken.
const SLOTS_A_WORD: usize = 4;

impl Index {
    pub(super) fn new(looks: Looks) -> Self {
        Self::with_counts(looks, vec![0; COUNTERS])
    }

    /// An empty index that knows how often features occur.
    pub(super) fn emptied(&mut self) -> Self {
        Self::with_counts(self.looks, std::mem::take(&mut self.counts))
    }

    fn with_counts(looks: Looks, counts: Vec<u8>) -> Self {
        Self {
            looks,
            bits: vec![0; LEAST_SLOTS / SLOTS_A_WORD],
            slots: vec![Slot::EMPTY; LEAST_SLOTS],
            keys: 0,
            links: Vec::new(),
            least: Vec::new(),
            counts,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.bits.len() + 16 * self.slots.len() + 8 * self.links.capacity() + COUNTERS
    }

    /// Counts what a text could be indexed by.
    pub(super) fn note(&mut self, features: &[u64]) {
        for &key in self.looks.keys_of(features).iter() {
            let count = &mut self.counts[counter_of(key)];
            *count = count.saturating_add(1);
        }
    }

    /// Indexes the next text by those of its features, ascending, that are rarest here, or of its bins
    /// if it has many, which are returned. To one without features nothing is similar.
    pub(super) fn insert(&mut self, features: &[u64]) -> Option<Binned> {
        let text = self.least.len() as u32;
        if features.is_empty() {
            self.least.push(u32::MAX);
            return None;
        }
        let keys = self.looks.keys_of(features);
        let lacking = match keys {
            Cow::Borrowed(_) => keys.len() - self.looks.floor.least_part(keys.len()).max(1),
            Cow::Owned(_) => most_differing(keys.len(), self.looks.floor),
        };
        let least = keys.len().div_ceil(FOUND).min(keys.len() - lacking);
        self.link_rarest(text, &keys, lacking + least);
        self.least.push(least as u32);
        match keys {
            Cow::Borrowed(_) => None,
            Cow::Owned(_) => Some(Binned::of(features, self.looks.floor)),
        }
    }

    /// From now on nothing is similar to a text.
    pub(super) fn forget(&mut self, text: u32) {
        self.least[text as usize] = u32::MAX;
    }

    /// Whether a document with so many keys of a text may be similar to it.
    #[inline(always)]
    pub(super) fn are_enough(&self, count: u32, text: u32) -> bool {
        count >= self.least[text as usize]
    }

    fn link_rarest(&mut self, text: u32, keys: &[u64], count: usize) {
        let counted = |&key: &u64| (self.counts[counter_of(key)], key);
        let mut order: Vec<(u8, u64)> = keys.iter().map(counted).collect();
        order.select_nth_unstable(count - 1);
        for &(_, key) in &order[..count] {
            self.link(key, text);
        }
    }

    fn link(&mut self, key: u64, text: u32) {
        if 2 * self.keys >= self.slots.len() {
            self.grow();
        }
        let at = self.slot_of(key);
        let slot = &mut self.slots[at];
        let mut next = END;
        if slot.is_empty() {
            self.keys += 1;
        } else {
            next = self.links.len() as u32;
            self.links.push(slot.link);
        }
        *slot = Slot {
            key,
            link: Link { text, next },
        };
        let (word, bit) = self.place(key);
        self.bits[word] |= bit;
    }

    fn grow(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        self.slots = vec![Slot::EMPTY; 2 * slots.len()];
        self.bits = vec![0; self.slots.len() / SLOTS_A_WORD];
        for slot in slots.into_iter().filter(|slot| !slot.is_empty()) {
            let at = self.slot_of(slot.key);
            self.slots[at] = slot;
            let (word, bit) = self.place(slot.key);
            self.bits[word] |= bit;
        }
    }

    /// Where a key is, or would be.
    #[inline(always)]
    fn slot_of(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (key >> 8) as usize & mask;
        while !self.slots[at].is_empty() && self.slots[at].key != key {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline(always)]
    fn place(&self, key: u64) -> (usize, u64) {
        let word = (key >> 6) as usize & (self.bits.len() - 1);
        (word, 1 << (key & 63))
    }

    /// Counts keys for every text that has them, each once.
    #[inline(always)]
    pub(super) fn count(&self, keys: &[u64], hits: &mut Hits) {
        let mut room = std::mem::take(&mut hits.room);
        room.resize(room.len().max(keys.len()), 0);
        // Which keys are there cannot be foreseen, so nothing branches on it.
        let mut count = 0;
        for &key in keys {
            let (word, bit) = self.place(key);
            room[count] = key;
            count += usize::from(self.bits[word] & bit != 0);
        }
        let found = &mut room[..count];
        let first_slot = |key: u64| (key >> 8) as usize & (self.slots.len() - 1);
        found
            .iter()
            .for_each(|&key| prefetch(&self.slots[first_slot(key)]));
        for &key in make_distinct(found) {
            self.count_one(self.slots[self.slot_of(key)], hits);
        }
        hits.room = room;
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

/// One of each feature, in some order.
fn make_distinct(features: &mut [u64]) -> &[u64] {
    let mut distinct = 0;
    if features.len() > MOST_SCANNED {
        features.sort_unstable();
        for at in 0..features.len() {
            if at == 0 || features[at] != features[distinct - 1] {
                features[distinct] = features[at];
                distinct += 1;
            }
        }
        return &features[..distinct];
    }
    let mut bits = [0u64; 16];
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
    &features[..distinct]
}

/// Whether more than so many of the features are surely distinct.
fn has_more_distinct(features: &[u64], count: usize) -> bool {
    let mut bits = [0u64; 64];
    let mut see = |features: &[u64]| {
        for &feature in features {
            bits[(feature >> 58) as usize] |= 1 << (feature >> 30 & 63);
        }
        let distinct: u32 = bits.iter().map(|bits| bits.count_ones()).sum();
        distinct as usize > count
    };
    // Where hardly any repeat, somewhat more than so many tell it.
    let (begin, rest) = features.split_at(features.len().min(count.saturating_add(count / 4)));
    features.len() > count && (see(begin) || see(rest))
}

/// How many keys of the index a document has of every text.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    /// Room for the keys of the document that are probably in the index.
    room: Vec<u64>,
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;

    #[test]
    fn one_of_each_feature_is_left_of_short_and_long_lists() {
        for (count, kinds) in [(0, 1), (1, 1), (50, 7), (2048, 900), (2049, 900), (9000, 3)] {
            let mut features: Vec<u64> = (0..count).map(|at| mix(mix(at) % kinds)).collect();
            let expected: BTreeSet<u64> = features.iter().copied().collect();
            let distinct = make_distinct(&mut features);
            assert_eq!(distinct.len(), expected.len(), "{count}");
            assert_eq!(distinct.iter().copied().collect::<BTreeSet<_>>(), expected);
        }
    }
}
