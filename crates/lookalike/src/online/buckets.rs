//! Which documents have a key: a hash table with many documents to a key, added in the order of their
//! numbers.
//!
//! The table is cut into shards that grow one by one, so that no insertion waits for the whole. In
//! each, entries stand in the order of their insertion and are chained by key, the newest first. So
//! what has expired is the end of every chain and the beginning of the shard: looking up stops there,
//! and a shard that is full drops it before it grows. A hand that goes around drops it where nothing
//! is added.
//!
//! Cost: one or two cache lines for a key that nobody has; 12 bytes an entry, 2–4 for its head, and the
//! room to grow, a quarter at the most.

use crate::arch;

/// Keys to the numbers of what has them; see the [module](super).
#[derive(Debug)]
pub struct Buckets {
    shards: Vec<Shard>,
    /// Insertions since the hand moved.
    since: u32,
    /// The next shard that is swept.
    hand: usize,
}

#[derive(Debug, Default)]
struct Shard {
    /// The place of the newest entry of each chain plus one, or 0; a power of two of them.
    heads: Vec<u32>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The lower half of the key.
    tag: u32,
    /// The lower half of the document's number.
    number: u32,
    /// The place of the next entry of the chain plus one, or 0.
    next: u32,
}

/// Shards, as a power of two: some tens of thousands of entries each when there are fifty million
/// documents.
const SHARD_BITS: u32 = 12;

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

    /// Asks for the first cache line that a key needs.
    pub(super) fn prefetch(&self, key: u64) {
        let shard = &self.shards[Self::shard(key)];
        if let Some(head) = shard.heads.get(shard.head(key as u32)) {
            arch::prefetch(head);
        }
    }

    /// Calls back with the number of every document with the key, and of few others with a key that is
    /// like it, the newest first. All before `low` are gone.
    pub fn visit(&self, key: u64, low: u64, mut visit: impl FnMut(u64)) {
        let shard = &self.shards[Self::shard(key)];
        let mut place = match shard.heads.get(shard.head(key as u32)) {
            Some(&place) => place,
            None => return,
        };
        while place != 0 {
            let entry = shard.entries[place as usize - 1];
            let Some(number) = whole(entry.number, low) else {
                return;
            };
            if entry.tag == key as u32 {
                visit(number);
            }
            place = entry.next;
        }
    }

    /// Adds a document, whose number is not below those added before. `dead` says which documents need
    /// not be found any more.
    pub fn insert(&mut self, key: u64, number: u64, low: u64, dead: impl Fn(u64) -> bool) {
        let shard = &mut self.shards[Self::shard(key)];
        if shard.entries.len() == shard.entries.capacity() {
            shard.make_room(low, dead);
        }
        shard.push(key as u32, number as u32);
    }

    /// Moves the hand, once for each document that was added.
    pub fn sweep(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        self.since += 1;
        if self.since < STEP {
            return;
        }
        self.since = 0;
        let shard = &mut self.shards[self.hand];
        self.hand = (self.hand + 1) % (1 << SHARD_BITS);
        let oldest = shard.entries.first();
        if oldest.is_some_and(|entry| whole(entry.number, low).is_none()) {
            shard.compact(low, dead);
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        let shards = self.shards.iter();
        let held = shards.map(|shard| 4 * shard.heads.capacity() + 12 * shard.entries.capacity());
        (held.sum::<usize>() + size_of::<Shard>() * self.shards.len()) as u64
    }
}

/// The whole number from its lower half, or None if it is before `low`.
fn whole(number: u32, low: u64) -> Option<u64> {
    let ahead = number.wrapping_sub(low as u32);
    (ahead <= u32::MAX >> 1).then(|| low + u64::from(ahead))
}

impl Shard {
    fn head(&self, tag: u32) -> usize {
        tag as usize & self.heads.len().wrapping_sub(1)
    }

    fn push(&mut self, tag: u32, number: u32) {
        let next = self.link(tag, self.entries.len());
        self.entries.push(Entry { tag, number, next });
    }

    /// Makes an entry the newest of its chain; returns the one before.
    fn link(&mut self, tag: u32, at: usize) -> u32 {
        let head = self.head(tag);
        std::mem::replace(&mut self.heads[head], at as u32 + 1)
    }

    /// Drops what is dead, and makes room for a quarter more if that was little.
    fn make_room(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        let full = self.entries.len();
        self.compact(low, dead);
        if self.entries.len() > full - full / 8 || full == 0 {
            self.entries.reserve_exact((full / 4).max(LEAST));
            self.relink();
        }
    }

    /// Drops what is dead, and the room if most of it was.
    fn compact(&mut self, low: u64, dead: impl Fn(u64) -> bool) {
        self.entries
            .retain(|entry| whole(entry.number, low).is_some_and(|number| !dead(number)));
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(2 * self.entries.len());
        }
        self.relink();
    }

    /// Makes the chains anew, with a head for every one or two entries.
    fn relink(&mut self) {
        let heads = (self.entries.capacity() / 2).next_power_of_two();
        self.heads.clear();
        self.heads.resize(heads, 0);
        self.heads.shrink_to_fit();
        for at in 0..self.entries.len() {
            self.entries[at].next = self.link(self.entries[at].tag, at);
        }
    }
}

/// The first entries of a shard.
const LEAST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    fn found(buckets: &Buckets, key: u64, low: u64) -> Vec<u64> {
        let mut found = Vec::new();
        buckets.visit(key, low, |number| found.push(number));
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
                buckets.insert(key, number, low, dead);
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

    #[test]
    fn what_is_gone_takes_no_room() {
        let mut buckets = Buckets::default();
        let empty = buckets.bytes();
        let mut most = 0;
        for number in 0..400_000u64 {
            let low = number.saturating_sub(50_000);
            buckets.insert(mix(number), number, low, |_| false);
            most = most.max(buckets.bytes() - empty);
        }
        assert!(most < 50_000 * 40, "{most}");
        // Nothing is added to most shards any more: the hand empties them.
        for number in 400_000..400_000 + (u64::from(STEP) << SHARD_BITS) {
            buckets.sweep(number, |_| false);
        }
        assert!(buckets.bytes() - empty < 100_000, "{}", buckets.bytes());
    }
}
