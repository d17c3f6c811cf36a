//! Which documents have a key: a hash table with many documents to a key, added in the order of their
//! numbers.
//!
//! The table is cut into shards that grow one by one, so that no insertion waits for the whole. In
//! each, entries are chained by key, the newest first. When a shard grows, the entries of a chain are
//! put side by side, so that walking along it reads memory in order; what was added since stands behind.
//! What has expired is the end of every chain: looking up stops there, and a shard that is full drops
//! it before it grows. A hand that goes around drops it where nothing is added.
//!
//! The bits of a head that its shard does not need for places are a filter (Bloom, 1970): each stands for a part
//! of all keys, and says whether one of it is in the chain. Most keys that nobody has end there: with a hundred
//! thousand entries to a shard there are fifteen such bits, and one or two entries to a chain.
//!
//! Cost: one cache line for nearly all keys that nobody has; 16 bytes an entry, 2–4 for its head, and the
//! room to grow, a quarter at the most.

use super::glance::Glance;
use crate::arch;
use crate::matching::Side;

/// Keys to the numbers of what has them; see the [module](super).
#[derive(Debug)]
pub(super) struct Buckets {
    shards: Vec<Shard>,
    /// Insertions since the hand moved.
    since: u32,
    /// The next shard that is swept.
    hand: usize,
}

#[derive(Debug, Default)]
struct Shard {
    /// The place of the newest entry of each chain plus one, or 0, and above it the filter; a power of two
    /// of them.
    heads: Vec<u32>,
    /// Bits of a head that are a place.
    place_bits: u32,
    entries: Vec<Entry>,
    /// So many of the first entries stand chain by chain, each the newest first.
    sorted: usize,
    /// The lower half of the least number, if there are entries.
    oldest: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The lower half of the key, but for the highest bit: whether the document is on the probing side.
    tag: u32,
    /// The lower half of the document's number.
    number: u32,
    /// The place of the next entry of the chain plus one, or 0.
    next: u32,
    glance: Glance,
}

/// The bit of a tag that tells the side.
const PROBING: u32 = 1 << 31;

/// Shards, as a power of two: some tens of thousands of entries each when there are fifty million
/// documents.
const SHARD_BITS: u32 = 12;

/// Chains that are walked side by side: about as many as a core has reads of memory under way.
const ABREAST: usize = 16;

/// Documents between two moves of the hand. A round takes 2²² documents, far fewer than would make
/// a number's lower half ambiguous.
const STEP: u32 = 1024;

impl Default for Buckets {
    fn default() -> Self {
        Self {
            shards: (0..1 << SHARD_BITS).map(|_| Shard::default()).collect(),
            since: 0,
            hand: 0,
        }
    }
}

impl Buckets {
    fn shard(key: u64) -> usize {
        (key >> (64 - SHARD_BITS)) as usize
    }

    /// Asks for the first cache line that looking for a key needs.
    pub(super) fn prefetch(&self, key: u64) {
        self.shards[Self::shard(key)].prefetch_head(key);
    }

    /// Asks for the cache lines that adding a key needs.
    pub(super) fn prefetch_to_add(&self, key: u64) {
        let shard = &self.shards[Self::shard(key)];
        shard.prefetch_head(key);
        // The next one mostly has the same line.
        if let Some(entry) = shard.entries.last() {
            arch::prefetch(entry);
        }
    }

    /// Calls back with the number, the glance and the side of every document with the key, and of few
    /// others with a key that is like it, the newest first. All before `low` are gone.
    #[inline]
    pub(super) fn visit(&self, key: u64, low: u64, mut visit: impl FnMut(u64, Glance, Side)) {
        let mut walk = self.walk(key);
        while let Some(at) = walk {
            walk = at.step(low, &mut visit);
        }
    }

    /// As [`visit`](Self::visit), of many keys: calls back with which of them it is too. Chains are
    /// walked side by side, so that one does not wait for memory after another.
    #[inline]
    pub(super) fn visit_all<K: Copy>(
        &self,
        keys: &[K],
        key: impl Fn(K) -> u64,
        low: u64,
        mut visit: impl FnMut(K, u64, Glance, Side),
    ) {
        keys.iter().for_each(|&it| self.prefetch(key(it)));
        for keys in keys.chunks(ABREAST) {
            let mut walks = [None; ABREAST];
            let mut under_way = 0;
            for &it in keys {
                if let Some(walk) = self.walk(key(it)) {
                    walk.prefetch();
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
                    let visit = &mut |number, glance, side| visit(it, number, glance, side);
                    if let Some(walk) = walk.step(low, visit) {
                        walk.prefetch();
                        walks[left] = Some((it, walk));
                        left += 1;
                    }
                }
                under_way = left;
            }
        }
    }

    /// The way along the chain of a key, if there is one.
    fn walk(&self, key: u64) -> Option<Walk<'_>> {
        let shard = &self.shards[Self::shard(key)];
        let at = shard.newest(key)?;
        Some(Walk {
            entries: &shard.entries,
            at,
            tag: key as u32 & !PROBING,
        })
    }

    /// Adds a document, whose number is not below those added before. `dead` says which documents need
    /// not be found any more.
    pub(super) fn insert(
        &mut self,
        key: u64,
        (number, glance, side): (u64, Glance, Side),
        low: u64,
        dead: impl Fn(u64) -> bool,
    ) {
        let shard = &mut self.shards[Self::shard(key)];
        if shard.entries.len() == shard.entries.capacity() {
            shard.make_room(low, dead);
        }
        let probing = if side == Side::Probing { PROBING } else { 0 };
        shard.push(key as u32 & !PROBING | probing, number as u32, glance);
    }

    /// Moves the hand, once for each document that was added.
    pub(super) fn sweep(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        self.since += 1;
        if self.since < STEP {
            return;
        }
        self.since = 0;
        let shard = &mut self.shards[self.hand];
        self.hand = (self.hand + 1) % (1 << SHARD_BITS);
        if !shard.entries.is_empty() && whole(shard.oldest, low).is_none() {
            shard.compact(low, dead);
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        let shards = self.shards.iter();
        let held = shards.map(|shard| {
            4 * shard.heads.capacity() + size_of::<Entry>() * shard.entries.capacity()
        });
        (held.sum::<usize>() + size_of::<Shard>() * self.shards.len()) as u64
    }
}

/// The whole number from its lower half, or None if it is before `low`.
fn whole(number: u32, low: u64) -> Option<u64> {
    let ahead = number.wrapping_sub(low as u32);
    (ahead <= u32::MAX >> 1).then(|| low + u64::from(ahead))
}

/// On the way along a chain: at an entry that was not looked at.
#[derive(Clone, Copy)]
struct Walk<'a> {
    entries: &'a [Entry],
    at: usize,
    tag: u32,
}

impl Walk<'_> {
    fn prefetch(&self) {
        if let Some(entry) = self.entries.get(self.at) {
            arch::prefetch(entry);
        }
    }

    /// Calls back with the entry if it has the key, and goes to the next one.
    #[inline]
    fn step(self, low: u64, visit: &mut impl FnMut(u64, Glance, Side)) -> Option<Self> {
        let entry = self.entries[self.at];
        let number = whole(entry.number, low)?;
        if entry.tag & !PROBING == self.tag {
            let probing = entry.tag & PROBING != 0;
            let side = if probing { Side::Probing } else { Side::Full };
            visit(number, entry.glance, side);
        }
        let at = (entry.next as usize).checked_sub(1)?;
        Some(Self { at, ..self })
    }
}

impl Shard {
    fn head(&self, tag: u32) -> usize {
        tag as usize & self.heads.len().wrapping_sub(1)
    }

    fn prefetch_head(&self, key: u64) {
        if let Some(head) = self.heads.get(self.head(key as u32)) {
            arch::prefetch(head);
        }
    }

    /// Where the chain of a key begins, if the key may be in it.
    #[inline]
    fn newest(&self, key: u64) -> Option<usize> {
        let tag = key as u32;
        let head = *self.heads.get(self.head(tag))?;
        let mark = self.mark(tag);
        if head & mark != mark {
            return None;
        }
        (self.place(head) as usize).checked_sub(1)
    }

    fn place(&self, head: u32) -> u32 {
        head & low_bits(self.place_bits)
    }

    /// The bit of the filter that stands for a tag; none if places need all bits.
    #[inline]
    fn mark(&self, tag: u32) -> u32 {
        let marks = u32::BITS - self.place_bits;
        // These bits choose neither the shard nor, but in the largest, the head.
        let part = (tag & !PROBING) >> 20;
        let mark = (part * marks) >> 11;
        1u32.checked_shl(self.place_bits + mark).unwrap_or(0)
    }

    fn push(&mut self, tag: u32, number: u32, glance: Glance) {
        if self.entries.is_empty() {
            self.oldest = number;
        }
        let (at, mark) = (self.head(tag), self.mark(tag));
        let head = self.heads[at];
        let next = self.place(head);
        self.heads[at] = (head - next) | mark | (self.entries.len() as u32 + 1);
        self.entries.push(Entry {
            tag,
            number,
            next,
            glance,
        });
    }

    /// Drops what is dead, and makes room for a quarter more if that was little.
    fn make_room(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        let full = self.entries.len();
        self.drop_dead(low, dead);
        let more = if self.entries.len() >= full - full / 8 {
            (full / 4).max(LEAST)
        } else {
            0
        };
        self.rebuild(full + more);
    }

    /// Drops what is dead, and the room if most of it was.
    fn compact(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        self.drop_dead(low, dead);
        let (held, room) = (self.entries.len(), self.entries.capacity());
        self.rebuild(if held < room / 4 { 2 * held } else { room });
    }

    fn drop_dead(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        let (mut at, mut sorted, mut oldest) = (0, 0, u64::MAX);
        self.entries.retain(|entry| {
            let alive = whole(entry.number, low).filter(|&number| !dead(number));
            sorted += usize::from(at < self.sorted && alive.is_some());
            at += 1;
            oldest = oldest.min(alive.unwrap_or(u64::MAX));
            alive.is_some()
        });
        self.sorted = sorted;
        self.oldest = oldest as u32;
    }

    /// Puts the entries chain by chain, with a head for every one or two, into this much room.
    fn rebuild(&mut self, room: usize) {
        let heads = (room / 2).next_power_of_two();
        self.heads.clear();
        self.heads.resize(heads, 0);
        self.heads.shrink_to_fit();
        for at in 0..self.entries.len() {
            let head = self.head(self.entries[at].tag);
            self.heads[head] += 1;
        }
        let mut start = 0;
        for head in &mut self.heads {
            start += std::mem::replace(head, start);
        }
        let mut entries = Vec::with_capacity(room);
        entries.resize(self.entries.len(), Entry::default());
        let (sorted, added) = self.entries.split_at(self.sorted);
        for entry in added.iter().rev().chain(sorted) {
            let place = &mut self.heads[entry.tag as usize & (heads - 1)];
            entries[*place as usize] = *entry;
            *place += 1;
        }
        // Each head stands where its chain ends, which is where the next one begins.
        self.place_bits = bits_of(entries.capacity());
        let mut start = 0;
        for at in 0..heads {
            let end = self.heads[at];
            let mut head = if start < end { start + 1 } else { 0 };
            for at in start..end {
                let entry = &mut entries[at as usize];
                entry.next = if at + 1 < end { at + 2 } else { 0 };
                head |= self.mark(entry.tag);
            }
            self.heads[at] = head;
            start = end;
        }
        self.sorted = entries.len();
        self.entries = entries;
    }
}

/// The first entries of a shard.
const LEAST: usize = 4;

/// Bits that numbers up to this one need.
fn bits_of(most: usize) -> u32 {
    usize::BITS - most.leading_zeros()
}

/// A number of ones, at most 32.
fn low_bits(count: u32) -> u32 {
    (u64::MAX >> (u64::BITS - count.clamp(1, u32::BITS))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    fn found(buckets: &Buckets, key: u64, low: u64) -> Vec<u64> {
        let mut found = Vec::new();
        buckets.visit(key, low, |number, _, side| {
            assert_eq!(side == Side::Probing, number % 3 == 0);
            found.push(number);
        });
        found
    }

    /// Against a list, with numbers that pass 2³² and half of a number's range.
    #[test]
    fn finds_what_a_list_finds() {
        for start in [0, u64::from(u32::MAX) - 3000, (1 << 31) - 3000] {
            let mut buckets = Buckets::default();
            let mut list: Vec<(u64, u64)> = Vec::new();
            let dead = |number: u64| number.is_multiple_of(7);
            let mut low = start;
            for step in 0..20_000u64 {
                let number = start + step;
                let key = mix(mix(step) % if step < 10_000 { 700 } else { 90 });
                let side = [Side::Probing, Side::Full, Side::Full][number as usize % 3];
                buckets.insert(key, (number, Glance::NOTHING, side), low, dead);
                buckets.sweep(low, dead);
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
                    // The dead may or may not be there.
                    expected.retain(|&number| !dead(number));
                    found.retain(|&number| !dead(number));
                    assert_eq!(found, expected);
                }
            }
        }
    }

    /// As many as are walked side by side, one fewer, one more and several times as many, with chains of
    /// very different lengths, some that end at what has expired and some that do not exist.
    #[test]
    fn many_keys_find_what_each_of_them_finds() {
        let mut buckets = Buckets::default();
        for number in 0..30_000u64 {
            let side = [Side::Probing, Side::Full, Side::Full][number as usize % 3];
            let key = mix((mix(number) % 60) * (mix(number + 1) % 60));
            buckets.insert(key, (number, Glance::NOTHING, side), 0, |_| false);
        }
        for (first, count) in [
            (0, ABREAST - 1),
            (0, ABREAST),
            (1, ABREAST + 1),
            (0, 4000),
            (9, 0),
        ] {
            let keys: Vec<u64> = (first..first + count as u64).map(mix).collect();
            for low in [0, 20_000] {
                let mut together: Vec<(u64, u64)> = Vec::new();
                buckets.visit_all(
                    &keys,
                    |key| key,
                    low,
                    |key, number, _, side| {
                        assert_eq!(side == Side::Probing, number % 3 == 0);
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

    /// A head has room for its place and for what tells keys apart, however large its shard is.
    #[test]
    fn heads_tell_most_keys_that_are_not_there() {
        for place_bits in [3, 9, 17, 30, 31, 32] {
            let shard = Shard {
                place_bits,
                ..Shard::default()
            };
            let marks: Vec<u32> = (0..4000u64)
                .map(|key| shard.mark(mix(key) as u32))
                .collect();
            let all = marks.iter().fold(0, |all, mark| all | mark);
            assert_eq!(all, !low_bits(place_bits));
            assert!(
                marks
                    .iter()
                    .all(|mark| mark.count_ones() == u32::from(place_bits < 32))
            );
            assert_eq!(shard.place(u32::MAX), low_bits(place_bits));
        }
        let mut buckets = Buckets::default();
        for number in 0..200_000u64 {
            let entry = (number, Glance::NOTHING, Side::Full);
            buckets.insert(mix(number), entry, 0, |_| false);
        }
        let walks = |keys: std::ops::Range<u64>| {
            let begun = keys.filter(|&key| buckets.walk(mix(key)).is_some());
            begun.count()
        };
        assert_eq!(walks(0..200_000), 200_000);
        assert!(walks(200_000..300_000) < 10_000);
    }

    /// A shard in which some chains are long and most of what has expired is in the sorted part.
    #[test]
    fn chains_stand_side_by_side_after_growing() {
        let mut shard = Shard::default();
        for number in 0..3000u32 {
            if shard.entries.len() == shard.entries.capacity() {
                shard.make_room(u64::from(number / 2), |number| number % 5 == 0);
            }
            shard.push(mix(u64::from(number % 40)) as u32, number, Glance::NOTHING);
        }
        shard.compact(1500, |_| false);
        assert_eq!(shard.sorted, shard.entries.len());
        assert!(u64::from(shard.oldest) >= 1500);
        for chain in shard
            .entries
            .chunk_by(|one, other| shard.head(one.tag) == shard.head(other.tag))
        {
            assert!(chain.is_sorted_by(|one, other| one.number > other.number));
        }
    }

    #[test]
    fn what_is_gone_takes_no_room() {
        let mut buckets = Buckets::default();
        let empty = buckets.bytes();
        let mut most = 0;
        for number in 0..400_000u64 {
            let low = number.saturating_sub(50_000);
            let entry = (number, Glance::NOTHING, Side::Full);
            buckets.insert(mix(number), entry, low, |_| false);
            most = most.max(buckets.bytes() - empty);
        }
        assert!(most < 50_000 * 50, "{most}");
        // Nothing is added to most shards any more: the hand empties them.
        for number in 400_000..400_000 + (u64::from(STEP) << SHARD_BITS) {
            buckets.sweep(number, |_| false);
        }
        assert!(buckets.bytes() - empty < 100_000, "{}", buckets.bytes());
    }
}
