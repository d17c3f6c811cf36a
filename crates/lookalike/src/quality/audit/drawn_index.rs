//! An inverted index of drawn texts, by their features or, for long texts, by bins of these.

use std::borrow::Cow;

use crate::arch::prefetch;
use crate::hash::mix_bits;
use crate::types::Threshold;

/// An inverted index from keys (features, or values of bins) to drawn texts.
#[derive(Debug)]
pub(super) struct DrawnTextIndex {
    rule: LookupRule,
    /// Bit set of the keys that may be indexed: 32 to 64 bits a key.
    bits: Vec<u64>,
    /// Indexed keys, in an open-addressing table that is at most half full.
    slots: Vec<IndexSlot>,
    /// Number of occupied slots.
    keys: usize,
    /// Further texts of each key, besides the last one.
    links: Vec<TextLink>,
    /// For each text, the least number of its indexed keys that a similar document has.
    least: Vec<u32>,
    /// Number of drawn texts in which each key occurs, indexed or not, up to 255. Keys that share a
    /// counter count as more frequent than they are, which costs time alone.
    counts: Vec<u8>,
}

/// A key and the last text that has it.
#[derive(Clone, Copy, Debug)]
struct IndexSlot {
    key: u64,
    link: TextLink,
}

/// A text, and the index of the next one in the list of links.
#[derive(Clone, Copy, Debug)]
struct TextLink {
    text: u32,
    next: u32,
}

impl IndexSlot {
    const EMPTY: Self = Self {
        key: 0,
        link: TextLink {
            text: CHAIN_END,
            next: CHAIN_END,
        },
    };

    fn is_empty(&self) -> bool {
        self.link.text == CHAIN_END
    }
}

/// Parameters of the index, which follow from the floor (the lowest similarity) alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookupRule {
    floor: Threshold,
    /// Number of bins by which a long text is looked up, a power of two.
    bins: usize,
    /// Number of distinct features above which a text is long.
    most: usize,
    /// Largest number of features of a document that can be similar to a text that is not long.
    reach: usize,
}

/// Number of bins by which long texts are compared. A feature selects a bin by one byte.
const BIN_COUNT: usize = 256;

/// Floor below which texts are never treated as long, because that would need more bins.
const LEAST_OF_BINS: f64 = 0.2;

/// A similar document must have one in this many of a text's keys in the index, provided that
/// similarity guarantees so many.
const KEYS_PER_FOUND: usize = 12;

impl LookupRule {
    pub(super) fn new(floor: Threshold) -> Self {
        let bins = match floor.get() {
            0.6.. => BIN_COUNT / 4,
            0.4.. => BIN_COUNT / 2,
            _ => BIN_COUNT,
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

    /// Returns the keys by which a text can be indexed: its features, or the values of its bins if it
    /// is long.
    fn index_keys<'f>(&self, features: &'f [u64]) -> Cow<'f, [u64]> {
        if features.len() <= self.most {
            return Cow::Borrowed(features);
        }
        let mut keys = Vec::new();
        HashBins::from_features(features).append_keys(self.bins, &mut keys);
        keys.into()
    }

    /// Returns `true` if a document of `features` features, counted with repetitions, may be
    /// similar to a long text.
    fn may_have_many(&self, features: usize) -> bool {
        features as f64 >= self.floor.get() * self.most as f64
    }
}

/// Bytes of the bins of a long text, which a similar document must share besides keys.
#[derive(Debug)]
pub(super) struct BinnedText {
    tags: BinTags,
    /// Least number of tags that a similar document shares.
    least: usize,
}

impl BinnedText {
    fn from_features(features: &[u64], floor: Threshold) -> Self {
        let tags = HashBins::from_features(features).bin_tags();
        let count = tags.iter().filter(|&&tag| tag != 0).count();
        let least = count - most_differing(count, floor);
        Self { tags, least }
    }

    /// Returns `true` if the document may be similar.
    #[inline(always)]
    pub(super) fn may_be_similar(&self, probe: &mut DocumentProbe) -> bool {
        let tags = probe.tags.get_or_insert_with(|| probe.bins.bin_tags());
        let shared = |(&own, &other): (&u8, &u8)| u16::from(own == other && own != 0);
        let shared: u16 = self.tags.iter().zip(tags.iter()).map(shared).sum();
        usize::from(shared) >= self.least
    }
}

/// The look-up data of one document, collected while its features are made.
#[derive(Clone, Debug, Default)]
pub(super) struct DocumentProbe {
    /// First features of the document; all of them if they are few.
    first: Vec<u64>,
    /// Number of features to keep.
    keep: usize,
    /// Bins, filled if the document may be similar to a long text.
    bins: HashBins,
    may_have_many: bool,
    /// Tags of the bins, computed on first use.
    tags: Option<BinTags>,
    keys: Vec<u64>,
}

impl DocumentProbe {
    /// Starts with a document of `features` features, counted with repetitions.
    pub(super) fn begin_document(&mut self, rule: LookupRule, features: usize) {
        self.first.clear();
        self.keep = rule.reach.saturating_mul(2);
        self.may_have_many = rule.may_have_many(features);
        self.tags = None;
        if self.may_have_many {
            self.bins.clear_bins();
        }
    }

    /// Adds features of the document.
    #[inline(always)]
    pub(super) fn add_features(&mut self, features: &[u64]) {
        let room = self.keep - self.first.len();
        self.first
            .extend_from_slice(&features[..features.len().min(room)]);
        if self.may_have_many {
            self.bins.add_features(features);
        }
    }

    /// Returns the features to look up, or none if the document is too long to be similar to a text
    /// that is not long. `all` provides the features if not all were kept.
    pub(super) fn features_to_look_up(
        &mut self,
        rule: LookupRule,
        count: usize,
        all: impl FnOnce(&mut Vec<u64>),
    ) -> &[u64] {
        if has_more_distinct(&self.first, rule.reach) {
            return &[];
        }
        if self.first.len() < count {
            self.first.clear();
            all(&mut self.first);
        }
        &self.first
    }

    /// Returns the bin keys of a document, or none if it cannot be similar to a long text.
    #[inline(always)]
    pub(super) fn bin_keys(&mut self, rule: LookupRule) -> &[u64] {
        self.keys.clear();
        if self.may_have_many {
            self.bins.append_keys(rule.bins, &mut self.keys);
        }
        &self.keys
    }
}

/// The smallest hash in each bin.
///
/// A feature selects its bin by bits of its hash that signatures do not use. If at least one of two
/// sets has a feature in a bin, the bins are equal with a probability of the Jaccard index (one
/// permutation hashing, Li, Owen and Zhang 2012).
#[derive(Clone, Debug)]
struct HashBins {
    /// Consecutive features go to different lanes, so that they do not wait for each other, as in the
    /// first round of `FastSimilaritySketch`.
    lanes: [[u32; BIN_COUNT]; LANES],
}

const LANES: usize = 4;

/// Value of a bin without features.
const EMPTY_BIN: u32 = u32::MAX;

const BIN_DOMAIN: u64 = 0x6175_6469_745f_6269;

/// One byte of the smallest hash of each bin; 0 if, and only if, the bin is empty.
type BinTags = [u8; BIN_COUNT];

impl Default for HashBins {
    fn default() -> Self {
        Self {
            lanes: [[EMPTY_BIN; BIN_COUNT]; LANES],
        }
    }
}

impl HashBins {
    fn from_features(features: &[u64]) -> Self {
        let mut bins = Self::default();
        bins.add_features(features);
        bins
    }

    fn clear_bins(&mut self) {
        self.lanes.as_flattened_mut().fill(EMPTY_BIN);
    }

    #[inline(always)]
    fn add_features(&mut self, features: &[u64]) {
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
    fn least_hashes(&self) -> [u32; BIN_COUNT] {
        let [mut least, others @ ..] = self.lanes;
        for lane in &others {
            for (least, &value) in least.iter_mut().zip(lane) {
                *least = value.min(*least);
            }
        }
        least
    }

    #[inline(always)]
    fn bin_tags(&self) -> BinTags {
        self.least_hashes().map(|hash| match hash {
            EMPTY_BIN => 0,
            hash => (hash as u8).max(1),
        })
    }

    /// Appends a key for each non-empty one of `count` bins, into which all bins are merged. No two
    /// bins have a key in common.
    #[inline(always)]
    fn append_keys(&self, count: usize, keys: &mut Vec<u64>) {
        let mut least = self.least_hashes();
        let (joined, others) = least.split_at_mut(count);
        for bins in others.chunks_exact(count) {
            for (joined, &value) in joined.iter_mut().zip(bins) {
                *joined = value.min(*joined);
            }
        }
        let filled = joined
            .iter()
            .enumerate()
            .filter(|&(_, &hash)| hash != EMPTY_BIN);
        let key = |(bin, &hash): (usize, &u32)| {
            mix_bits((bin as u64) << 32 ^ u64::from(hash) ^ BIN_DOMAIN)
        };
        keys.extend(filled.map(key));
    }
}

/// Natural logarithm of the probability with which a similar document may be overlooked: one in a
/// million.
const LOG_OVERLOOKED_PROBABILITY: f64 = -13.8;

/// Returns the largest number of `count` bins in which a document with a Jaccard index at the floor
/// differs (Chernoff's bound), except with the probability of [`LOG_OVERLOOKED_PROBABILITY`]. Returns all but one if
/// there is no such number.
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
        -apart * count as f64 <= LOG_OVERLOOKED_PROBABILITY
    };
    let most = count.saturating_sub(1);
    (0..most).find(|&it| improbable(it)).unwrap_or(most)
}

/// Number of counters: more than there are features in thousands of texts.
const COUNTER_COUNT: usize = 1 << 22;

fn counter_of(key: u64) -> usize {
    (key >> 24) as usize & (COUNTER_COUNT - 1)
}

const CHAIN_END: u32 = u32::MAX;

const LEAST_SLOTS: usize = 1 << 12;

/// Slots per word of the bit set.
const SLOTS_A_WORD: usize = 4;

impl DrawnTextIndex {
    pub(super) fn new(rule: LookupRule) -> Self {
        Self::with_counts(rule, vec![0; COUNTER_COUNT])
    }

    /// Returns an empty index that keeps the counts of keys.
    pub(super) fn empty_with_frequencies(&mut self) -> Self {
        Self::with_counts(self.rule, std::mem::take(&mut self.counts))
    }

    fn with_counts(rule: LookupRule, counts: Vec<u8>) -> Self {
        Self {
            rule,
            bits: vec![0; LEAST_SLOTS / SLOTS_A_WORD],
            slots: vec![IndexSlot::EMPTY; LEAST_SLOTS],
            keys: 0,
            links: Vec::new(),
            least: Vec::new(),
            counts,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        8 * self.bits.len() + 16 * self.slots.len() + 8 * self.links.capacity() + COUNTER_COUNT
    }

    /// Counts the keys by which a text could be indexed.
    pub(super) fn count_features(&mut self, features: &[u64]) {
        for &key in self.rule.index_keys(features).iter() {
            let count = &mut self.counts[counter_of(key)];
            *count = count.saturating_add(1);
        }
    }

    /// Indexes the next text by the rarest of its features, ascending. A long text is indexed by the
    /// rarest of its bins instead, and its tags are returned. No document is similar to a text without
    /// features.
    pub(super) fn insert_text(&mut self, features: &[u64]) -> Option<BinnedText> {
        let text = self.least.len() as u32;
        if features.is_empty() {
            self.least.push(u32::MAX);
            return None;
        }
        let keys = self.rule.index_keys(features);
        let lacking = match keys {
            Cow::Borrowed(_) => keys.len() - self.rule.floor.least_part(keys.len()).max(1),
            Cow::Owned(_) => most_differing(keys.len(), self.rule.floor),
        };
        let least = keys
            .len()
            .div_ceil(KEYS_PER_FOUND)
            .min(keys.len() - lacking);
        self.link_rarest(text, &keys, lacking + least);
        self.least.push(least as u32);
        match keys {
            Cow::Borrowed(_) => None,
            Cow::Owned(_) => Some(BinnedText::from_features(features, self.rule.floor)),
        }
    }

    /// Makes a text similar to no document from now on.
    pub(super) fn forget_text(&mut self, text: u32) {
        self.least[text as usize] = u32::MAX;
    }

    /// Returns `true` if a document with `count` of a text's keys may be similar to it.
    #[inline(always)]
    pub(super) fn are_enough(&self, count: u32, text: u32) -> bool {
        count >= self.least[text as usize]
    }

    fn link_rarest(&mut self, text: u32, keys: &[u64], count: usize) {
        let counted = |&key: &u64| (self.counts[counter_of(key)], key);
        let mut order: Vec<(u8, u64)> = keys.iter().map(counted).collect();
        order.select_nth_unstable(count - 1);
        for &(_, key) in &order[..count] {
            self.link_text(key, text);
        }
    }

    fn link_text(&mut self, key: u64, text: u32) {
        if 2 * self.keys >= self.slots.len() {
            self.grow_slots();
        }
        let at = self.find_slot(key);
        let slot = &mut self.slots[at];
        let mut next = CHAIN_END;
        if slot.is_empty() {
            self.keys += 1;
        } else {
            next = self.links.len() as u32;
            self.links.push(slot.link);
        }
        *slot = IndexSlot {
            key,
            link: TextLink { text, next },
        };
        let (word, bit) = self.bit_position(key);
        self.bits[word] |= bit;
    }

    fn grow_slots(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        self.slots = vec![IndexSlot::EMPTY; 2 * slots.len()];
        self.bits = vec![0; self.slots.len() / SLOTS_A_WORD];
        for slot in slots.into_iter().filter(|slot| !slot.is_empty()) {
            let at = self.find_slot(slot.key);
            self.slots[at] = slot;
            let (word, bit) = self.bit_position(slot.key);
            self.bits[word] |= bit;
        }
    }

    /// Returns the slot in which a key is, or would be inserted.
    #[inline(always)]
    fn find_slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (key >> 8) as usize & mask;
        while !self.slots[at].is_empty() && self.slots[at].key != key {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline(always)]
    fn bit_position(&self, key: u64) -> (usize, u64) {
        let word = (key >> 6) as usize & (self.bits.len() - 1);
        (word, 1 << (key & 63))
    }

    /// Counts distinct keys for every text that has them.
    #[inline(always)]
    pub(super) fn count_hits(&self, keys: &[u64], hits: &mut KeyHits) {
        let mut room = std::mem::take(&mut hits.room);
        room.resize(room.len().max(keys.len()), 0);
        // Written without a branch, because it cannot be predicted which keys are indexed.
        let mut count = 0;
        for &key in keys {
            let (word, bit) = self.bit_position(key);
            room[count] = key;
            count += usize::from(self.bits[word] & bit != 0);
        }
        let found = &mut room[..count];
        let first_slot = |key: u64| (key >> 8) as usize & (self.slots.len() - 1);
        found
            .iter()
            .for_each(|&key| prefetch(&self.slots[first_slot(key)]));
        for &key in make_distinct(found) {
            self.count_slot_hits(self.slots[self.find_slot(key)], hits);
        }
        hits.room = room;
    }

    fn count_slot_hits(&self, slot: IndexSlot, hits: &mut KeyHits) {
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
            if link.next == CHAIN_END {
                return;
            }
            link = self.links[link.next as usize];
        }
    }
}

/// Length above which lists are sorted instead of scanned.
const MOST_SCANNED: usize = 2048;

/// Moves one of each feature to the front, in any order, and returns these.
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

/// Returns `true` if more than `count` of the features are certainly distinct.
fn has_more_distinct(features: &[u64], count: usize) -> bool {
    let mut bits = [0u64; 64];
    let mut see = |features: &[u64]| {
        for &feature in features {
            bits[(feature >> 58) as usize] |= 1 << (feature >> 30 & 63);
        }
        let distinct: u32 = bits.iter().map(|bits| bits.count_ones()).sum();
        distinct as usize > count
    };
    // Where hardly any features repeat, slightly more than `count_hits` of them suffice.
    let (begin, rest) = features.split_at(features.len().min(count.saturating_add(count / 4)));
    features.len() > count && (see(begin) || see(rest))
}

/// The number of a document's keys that each text has in the index.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyHits {
    /// Buffer for the keys of the document that are probably indexed.
    room: Vec<u64>,
    /// Number of keys by text; 0 for all texts that are not in `met`.
    pub(super) of: Vec<u32>,
    /// Texts that have at least one of the keys.
    pub(super) met: Vec<u32>,
}

impl KeyHits {
    /// Makes room for all texts before the next document is counted.
    pub(super) fn begin_document(&mut self, texts: usize) {
        self.of.resize(texts.max(self.of.len()), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix_bits;

    #[test]
    fn features_become_distinct_in_lists_of_any_size() {
        for (count, kinds) in [(0, 1), (1, 1), (50, 7), (2048, 900), (2049, 900), (9000, 3)] {
            let mut features: Vec<u64> = (0..count)
                .map(|at| mix_bits(mix_bits(at) % kinds))
                .collect();
            let expected: BTreeSet<u64> = features.iter().copied().collect();
            let distinct = make_distinct(&mut features);
            assert_eq!(distinct.len(), expected.len(), "{count}");
            assert_eq!(distinct.iter().copied().collect::<BTreeSet<_>>(), expected);
        }
    }
}
