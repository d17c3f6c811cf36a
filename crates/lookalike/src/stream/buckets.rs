//! The hash table of bucket keys. Many documents can have the same key, and they are inserted in the
//! order of their numbers.
//!
//! The table is divided into shards that grow one by one, so no insertion waits for a resize of the
//! whole table. Entries of a shard are chained by key, the newest first. When a shard grows, the
//! entries of each chain are laid out side by side, so that following a chain reads memory in order;
//! later entries are appended. Expired entries are at the end of every chain. A look-up stops at the
//! first of them, and a full shard drops them before it grows. An incremental sweep evicts them from
//! shards in which nothing is inserted.
//!
//! ```text
//! head   | filter bits | place of the newest entry + 1, or 0 |                                (32 bits)
//! entry  | side (1) | key tag (31) | document number (32) | next place + 1 (32) | prefilter (32) |
//! ```
//!
//! The bits of a head that are not needed for the place form a filter (Bloom, 1970). Each stands for a
//! part of all keys, and is set if a key of that part is in the chain. The filter rejects most absent
//! keys without reading an entry: a shard of a hundred thousand entries has fifteen such bits, and one
//! or two entries per chain.
//!
//! Cost: one cache line for nearly every absent key; 16 bytes per entry, 2–4 bytes for its head, and at
//! most a quarter more as room to grow.

use super::prefilter::ParityPrefilter;
use crate::arch;
use crate::candidates::BucketSide;

/// Bucket keys and the numbers of the documents that have them. See the [module](self).
#[derive(Debug)]
pub(super) struct StreamBuckets {
    shards: Vec<BucketShard>,
    /// Insertions since the last step of the sweep.
    since: u32,
    /// Next shard to sweep.
    hand: usize,
}

#[derive(Debug, Default)]
struct BucketShard {
    /// For each chain, the place of the newest entry plus one (0 if there is none), with the filter in
    /// the bits above. The length is a power of two.
    heads: Vec<u32>,
    /// Number of bits of a head that hold a place.
    place_bits: u32,
    entries: Vec<BucketEntry>,
    /// Number of entries at the front that are laid out chain by chain, the newest first.
    sorted: usize,
    /// Lower half of the smallest document number, if there are entries.
    oldest: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct BucketEntry {
    /// Lower 31 bits of the key. The highest bit is set if the document is on the probing side.
    tag: u32,
    /// Lower half of the document number.
    number: u32,
    /// Place of the next entry of the chain plus one, or 0.
    next: u32,
    prefilter: ParityPrefilter,
}

/// Bit of a tag that is set on the probing side.
const PROBING_BIT: u32 = 1 << 31;

/// Number of shards as a power of two. With fifty million documents, a shard has some tens of thousands
/// of entries.
const SHARD_BITS: u32 = 12;

/// Number of chains that are followed at once: about as many as a core has memory reads in flight.
const CHAINS_AT_ONCE: usize = 16;

/// Insertions between two steps of the sweep. A round takes 2²² documents, far fewer than would make
/// the lower half of a number ambiguous.
const INSERTIONS_PER_STEP: u32 = 1024;

impl Default for StreamBuckets {
    fn default() -> Self {
        Self {
            shards: (0..1 << SHARD_BITS)
                .map(|_| BucketShard::default())
                .collect(),
            since: 0,
            hand: 0,
        }
    }
}

impl StreamBuckets {
    fn shard_index(key: u64) -> usize {
        (key >> (64 - SHARD_BITS)) as usize
    }

    /// Prefetches the first cache line that a look-up of a key reads.
    pub(super) fn prefetch_bucket(&self, key: u64) {
        self.shards[Self::shard_index(key)].prefetch_head(key);
    }

    /// Prefetches the cache lines that an insertion of a key writes.
    pub(super) fn prefetch_to_add(&self, key: u64) {
        let shard = &self.shards[Self::shard_index(key)];
        shard.prefetch_head(key);
        // The next entry is mostly in the same cache line.
        if let Some(entry) = shard.entries.last() {
            arch::prefetch(entry);
        }
    }

    /// Calls `visit_bucket` with the number, the prefilter and the side of every document with the key, the
    /// newest first. A few documents with a similar key come too. Documents before `low` have expired
    /// and are left out.
    #[inline]
    pub(super) fn visit_bucket(
        &self,
        key: u64,
        low: u64,
        mut visit: impl FnMut(u64, ParityPrefilter, BucketSide),
    ) {
        let mut walk = self.start_chain(key);
        while let Some(at) = walk {
            walk = at.next_entry(low, &mut visit);
        }
    }

    /// Looks up many keys as [`visit_bucket`](Self::visit_bucket) does, and also passes the key to
    /// `visit`. Chains are followed at once, so that their memory reads overlap.
    #[inline]
    pub(super) fn visit_buckets<K: Copy>(
        &self,
        keys: &[K],
        key: impl Fn(K) -> u64,
        low: u64,
        mut visit: impl FnMut(K, u64, ParityPrefilter, BucketSide),
    ) {
        keys.iter().for_each(|&it| self.prefetch_bucket(key(it)));
        for keys in keys.chunks(CHAINS_AT_ONCE) {
            let mut walks = [None; CHAINS_AT_ONCE];
            let mut under_way = 0;
            for &it in keys {
                if let Some(walk) = self.start_chain(key(it)) {
                    walk.prefetch_entry();
                    walks[under_way] = Some((it, walk));
                    under_way += 1;
                }
            }
            while under_way > 0 {
                let mut left = 0;
                for at in 0..under_way {
                    let Some((it, walk)) = walks[at] else {
                        continue;
                    };
                    let visit = &mut |number, prefilter, side| visit(it, number, prefilter, side);
                    if let Some(walk) = walk.next_entry(low, visit) {
                        walk.prefetch_entry();
                        walks[left] = Some((it, walk));
                        left += 1;
                    }
                }
                under_way = left;
            }
        }
    }

    /// Returns the start of the chain of a key, if there is one.
    fn start_chain(&self, key: u64) -> Option<ChainCursor<'_>> {
        let shard = &self.shards[Self::shard_index(key)];
        let at = shard.newest_in_chain(key)?;
        Some(ChainCursor {
            entries: &shard.entries,
            at,
            tag: key as u32 & !PROBING_BIT,
        })
    }

    /// Inserts a document, whose number must not be below earlier ones. `dead` returns `true` for
    /// documents that need not be found any more.
    pub(super) fn insert_document(
        &mut self,
        key: u64,
        number: u64,
        prefilter: ParityPrefilter,
        side: BucketSide,
        low: u64,
        dead: impl Fn(u64) -> bool,
    ) {
        let shard = &mut self.shards[Self::shard_index(key)];
        if shard.entries.len() == shard.entries.capacity() {
            shard.make_room_for_entries(low, dead);
        }
        let probing = if side == BucketSide::Probing {
            PROBING_BIT
        } else {
            0
        };
        shard.push_entry(
            key as u32 & !PROBING_BIT | probing,
            number as u32,
            prefilter,
        );
    }

    /// Advances the sweep. Called once for each inserted document.
    pub(super) fn sweep_shard(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        self.since += 1;
        if self.since < INSERTIONS_PER_STEP {
            return;
        }
        self.since = 0;
        let shard = &mut self.shards[self.hand];
        self.hand = (self.hand + 1) % (1 << SHARD_BITS);
        if !shard.entries.is_empty() && restore_number(shard.oldest, low).is_none() {
            shard.compact_entries(low, dead);
        }
    }

    /// Returns the bytes of memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        let shards = self.shards.iter();
        let held = shards.map(|shard| {
            4 * shard.heads.capacity() + size_of::<BucketEntry>() * shard.entries.capacity()
        });
        (held.sum::<usize>() + size_of::<BucketShard>() * self.shards.len()) as u64
    }
}

/// Returns the whole number from its lower half, or `None` if it is before `low`.
fn restore_number(number: u32, low: u64) -> Option<u64> {
    let precheck = number.wrapping_sub(low as u32);
    (precheck <= u32::MAX >> 1).then(|| low + u64::from(precheck))
}

/// A position in a chain: an entry that is not visited yet.
#[derive(Clone, Copy)]
struct ChainCursor<'a> {
    entries: &'a [BucketEntry],
    at: usize,
    tag: u32,
}

impl ChainCursor<'_> {
    fn prefetch_entry(&self) {
        if let Some(entry) = self.entries.get(self.at) {
            arch::prefetch(entry);
        }
    }

    /// Visits the entry if it has the key, and returns the next position.
    #[inline]
    fn next_entry(
        self,
        low: u64,
        visit: &mut impl FnMut(u64, ParityPrefilter, BucketSide),
    ) -> Option<Self> {
        let entry = self.entries[self.at];
        let number = restore_number(entry.number, low)?;
        if entry.tag & !PROBING_BIT == self.tag {
            let probing = entry.tag & PROBING_BIT != 0;
            let side = if probing {
                BucketSide::Probing
            } else {
                BucketSide::Indexing
            };
            visit(number, entry.prefilter, side);
        }
        let at = (entry.next as usize).checked_sub(1)?;
        Some(Self { at, ..self })
    }
}

impl BucketShard {
    fn head_index(&self, tag: u32) -> usize {
        tag as usize & self.heads.len().wrapping_sub(1)
    }

    fn prefetch_head(&self, key: u64) {
        if let Some(head) = self.heads.get(self.head_index(key as u32)) {
            arch::prefetch(head);
        }
    }

    /// Returns the place of the first entry of a key's chain, if the key may be in it.
    #[inline]
    fn newest_in_chain(&self, key: u64) -> Option<usize> {
        let tag = key as u32;
        let head = *self.heads.get(self.head_index(tag))?;
        let mark = self.filter_bit(tag);
        if head & mark != mark {
            return None;
        }
        (self.entry_index(head) as usize).checked_sub(1)
    }

    fn entry_index(&self, head: u32) -> u32 {
        head & low_bits(self.place_bits)
    }

    /// Returns the filter bit of a tag, or 0 if places need all bits.
    #[inline]
    fn filter_bit(&self, tag: u32) -> u32 {
        let marks = u32::BITS - self.place_bits;
        // These bits do not choose the shard, and they choose the head only in shards of more than 2²⁰
        // heads.
        let part = (tag & !PROBING_BIT) >> 20;
        let mark = (part * marks) >> 11;
        1u32.checked_shl(self.place_bits + mark).unwrap_or(0)
    }

    fn push_entry(&mut self, tag: u32, number: u32, prefilter: ParityPrefilter) {
        if self.entries.is_empty() {
            self.oldest = number;
        }
        let (at, mark) = (self.head_index(tag), self.filter_bit(tag));
        let head = self.heads[at];
        let next = self.entry_index(head);
        self.heads[at] = (head - next) | mark | (self.entries.len() as u32 + 1);
        self.entries.push(BucketEntry {
            tag,
            number,
            next,
            prefilter,
        });
    }

    /// Drops dead entries, and makes room for a quarter more if these were few.
    fn make_room_for_entries(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        let full = self.entries.len();
        self.drop_dead(low, dead);
        let more = if self.entries.len() >= full - full / 8 {
            (full / 4).max(LEAST_CAPACITY)
        } else {
            0
        };
        self.rebuild_chains(full + more);
    }

    /// Drops dead entries, and releases memory if most entries were dead.
    fn compact_entries(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        self.drop_dead(low, dead);
        let (held, room) = (self.entries.len(), self.entries.capacity());
        self.rebuild_chains(if held < room / 4 { 2 * held } else { room });
    }

    fn drop_dead(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        let (mut at, mut sorted, mut oldest) = (0, 0, u64::MAX);
        self.entries.retain(|entry| {
            let alive = restore_number(entry.number, low).filter(|&number| !dead(number));
            sorted += usize::from(at < self.sorted && alive.is_some());
            at += 1;
            oldest = oldest.min(alive.unwrap_or(u64::MAX));
            alive.is_some()
        });
        self.sorted = sorted;
        self.oldest = oldest as u32;
    }

    /// Lays the entries out chain by chain, with a head for every one or two, in memory for `room`
    /// entries.
    fn rebuild_chains(&mut self, room: usize) {
        let heads = (room / 2).next_power_of_two();
        self.heads.clear();
        self.heads.resize(heads, 0);
        self.heads.shrink_to_fit();
        for at in 0..self.entries.len() {
            let head = self.head_index(self.entries[at].tag);
            self.heads[head] += 1;
        }
        let mut start = 0;
        for head in &mut self.heads {
            start += std::mem::replace(head, start);
        }
        let mut entries = Vec::with_capacity(room);
        entries.resize(self.entries.len(), BucketEntry::default());
        let (sorted, added) = self.entries.split_at(self.sorted);
        for entry in added.iter().rev().chain(sorted) {
            let place = &mut self.heads[entry.tag as usize & (heads - 1)];
            entries[*place as usize] = *entry;
            *place += 1;
        }
        // Each head now holds the end of its chain, which is the start of the next one.
        self.place_bits = bits_needed(entries.capacity());
        let mut start = 0;
        for at in 0..heads {
            let end = self.heads[at];
            let mut head = if start < end { start + 1 } else { 0 };
            for at in start..end {
                let entry = &mut entries[at as usize];
                entry.next = if at + 1 < end { at + 2 } else { 0 };
                head |= self.filter_bit(entry.tag);
            }
            self.heads[at] = head;
            start = end;
        }
        self.sorted = entries.len();
        self.entries = entries;
    }
}

/// Initial capacity of a shard.
const LEAST_CAPACITY: usize = 4;

/// Returns the number of bits that numbers up to `most` need.
fn bits_needed(most: usize) -> u32 {
    usize::BITS - most.leading_zeros()
}

/// Returns a mask of the lowest `count` bits, from 1 to 32.
fn low_bits(count: u32) -> u32 {
    (u64::MAX >> (u64::BITS - count.clamp(1, u32::BITS))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix_bits;

    fn found(buckets: &StreamBuckets, key: u64, low: u64) -> Vec<u64> {
        let mut found = Vec::new();
        buckets.visit_bucket(key, low, |number, _, side| {
            assert_eq!(side == BucketSide::Probing, number % 3 == 0);
            found.push(number);
        });
        found
    }

    /// Compares with a list, with numbers that cross 2³² and half of that.
    #[test]
    fn bucket_map_equals_a_list() {
        for start in [0, u64::from(u32::MAX) - 3000, (1 << 31) - 3000] {
            let mut buckets = StreamBuckets::default();
            let mut list: Vec<(u64, u64)> = Vec::new();
            let dead = |number: u64| number.is_multiple_of(7);
            let mut low = start;
            for step in 0..20_000u64 {
                let number = start + step;
                let key = mix_bits(mix_bits(step) % if step < 10_000 { 700 } else { 90 });
                let side = [
                    BucketSide::Probing,
                    BucketSide::Indexing,
                    BucketSide::Indexing,
                ][number as usize % 3];
                buckets.insert_document(
                    key,
                    number,
                    ParityPrefilter::NEVER_REJECTS,
                    side,
                    low,
                    dead,
                );
                buckets.sweep_shard(low, dead);
                list.push((key, number));
                if step % 500 == 499 {
                    low = number - 1200.min(step);
                }
                if step % 37 == 0 {
                    let mut expected: Vec<u64> = list
                        .iter()
                        .filter(|&&(other, number)| other == key && number >= low)
                        .map(|&(_, number)| number)
                        .collect();
                    expected.reverse();
                    let mut found = found(&buckets, key, low);
                    // Dead entries may or may not be found.
                    expected.retain(|&number| !dead(number));
                    found.retain(|&number| !dead(number));
                    assert_eq!(found, expected);
                }
            }
        }
    }

    /// Keys as many as are followed at once, one fewer, one more and several times as many. Chains have
    /// very different lengths; some end at expired entries, and some keys have none.
    #[test]
    fn key_list_finds_what_each_key_finds() {
        let mut buckets = StreamBuckets::default();
        for number in 0..30_000u64 {
            let side = [
                BucketSide::Probing,
                BucketSide::Indexing,
                BucketSide::Indexing,
            ][number as usize % 3];
            let key = mix_bits((mix_bits(number) % 60) * (mix_bits(number + 1) % 60));
            buckets.insert_document(key, number, ParityPrefilter::NEVER_REJECTS, side, 0, |_| {
                false
            });
        }
        for (first, count) in [
            (0, CHAINS_AT_ONCE - 1),
            (0, CHAINS_AT_ONCE),
            (1, CHAINS_AT_ONCE + 1),
            (0, 4000),
            (9, 0),
        ] {
            let keys: Vec<u64> = (first..first + count as u64).map(mix_bits).collect();
            for low in [0, 20_000] {
                let mut together: Vec<(u64, u64)> = Vec::new();
                buckets.visit_buckets(
                    &keys,
                    |key| key,
                    low,
                    |key, number, _, side| {
                        assert_eq!(side == BucketSide::Probing, number % 3 == 0);
                        together.push((key, number));
                    },
                );
                let each = keys.iter().map(|&key| (key, found(&buckets, key, low)));
                let mut apart: Vec<(u64, u64)> = each
                    .flat_map(|(key, numbers)| numbers.into_iter().map(move |number| (key, number)))
                    .collect();
                assert!(count < 4000 || apart.len() > 5000);
                together.sort_unstable();
                apart.sort_unstable();
                assert_eq!(together, apart);
            }
        }
    }

    /// A head has room for its place and its filter, however large its shard is.
    #[test]
    fn bucket_heads_reject_most_absent_keys() {
        for place_bits in [3, 9, 17, 30, 31, 32] {
            let shard = BucketShard {
                place_bits,
                ..BucketShard::default()
            };
            let marks: Vec<u32> = (0..4000u64)
                .map(|key| shard.filter_bit(mix_bits(key) as u32))
                .collect();
            let all = marks.iter().fold(0, |all, mark| all | mark);
            assert_eq!(all, !low_bits(place_bits));
            assert!(
                marks
                    .iter()
                    .all(|mark| mark.count_ones() == u32::from(place_bits < 32))
            );
            assert_eq!(shard.entry_index(u32::MAX), low_bits(place_bits));
        }
        let mut buckets = StreamBuckets::default();
        for number in 0..200_000u64 {
            let prefilter = ParityPrefilter::NEVER_REJECTS;
            buckets.insert_document(
                mix_bits(number),
                number,
                prefilter,
                BucketSide::Indexing,
                0,
                |_| false,
            );
        }
        let walks = |keys: std::ops::Range<u64>| {
            let begun = keys.filter(|&key| buckets.start_chain(mix_bits(key)).is_some());
            begun.count()
        };
        assert_eq!(walks(0..200_000), 200_000);
        assert!(walks(200_000..300_000) < 10_000);
    }

    /// A shard with some long chains and most expired entries in the sorted part.
    #[test]
    fn chains_are_contiguous_after_growth() {
        let mut shard = BucketShard::default();
        for number in 0..3000u32 {
            if shard.entries.len() == shard.entries.capacity() {
                shard.make_room_for_entries(u64::from(number / 2), |number| number % 5 == 0);
            }
            shard.push_entry(
                mix_bits(u64::from(number % 40)) as u32,
                number,
                ParityPrefilter::NEVER_REJECTS,
            );
        }
        shard.compact_entries(1500, |_| false);
        assert_eq!(shard.sorted, shard.entries.len());
        assert!(u64::from(shard.oldest) >= 1500);
        for chain in shard
            .entries
            .chunk_by(|one, other| shard.head_index(one.tag) == shard.head_index(other.tag))
        {
            assert!(chain.is_sorted_by(|one, other| one.number > other.number));
        }
    }

    #[test]
    fn expired_entries_take_no_memory() {
        let mut buckets = StreamBuckets::default();
        let empty = buckets.memory_bytes();
        let mut most = 0;
        for number in 0..400_000u64 {
            let low = number.saturating_sub(50_000);
            let prefilter = ParityPrefilter::NEVER_REJECTS;
            buckets.insert_document(
                mix_bits(number),
                number,
                prefilter,
                BucketSide::Indexing,
                low,
                |_| false,
            );
            most = most.max(buckets.memory_bytes() - empty);
        }
        assert!(most < 50_000 * 50, "{most}");
        // Nothing is inserted into most shards any more, so the sweep empties them.
        for number in 400_000..400_000 + (u64::from(INSERTIONS_PER_STEP) << SHARD_BITS) {
            buckets.sweep_shard(number, |_| false);
        }
        assert!(
            buckets.memory_bytes() - empty < 100_000,
            "{}",
            buckets.memory_bytes()
        );
    }
}
