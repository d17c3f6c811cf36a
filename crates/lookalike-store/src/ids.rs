//! Which rows have an id: hashes of ids to numbers of rows.
//!
//! The table is cut into shards that grow one by one. In each, entries stand in the order of their hash,
//! each no farther behind the place that its hash names than others make necessary (Celis, "Robin Hood
//! Hashing", 1986), so that a shard can be nearly full: nine of ten places are taken before it grows by
//! an eighth. An id that is not there is told by the first entry with a greater hash.
//!
//! Cost: 9–10 bytes a row; one or two cache lines for an id.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The hash of an id. It is made with a secret of the process, so that nobody can choose ids that share
/// one; it never reaches the disk.
pub(crate) fn id_hash(id: &str) -> u64 {
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SECRET.hash_one(id)
}

/// Hashes of ids to numbers of rows; see the [module](self).
#[derive(Debug)]
pub(crate) struct Ids {
    shards: Vec<Shard>,
    /// Insertions since the hand moved.
    since: u32,
    /// The next shard that is swept.
    hand: usize,
}

#[derive(Debug, Default)]
struct Shard {
    /// Hash and number, or 0; the last ones are behind all places that hashes name.
    entries: Vec<u64>,
    /// Places that hashes name.
    places: usize,
    taken: usize,
    /// The lower half of the least number, if there are entries.
    oldest: u32,
}

/// Shards, as a power of two: some ten thousand entries each when there are fifty million documents.
const SHARD_BITS: u32 = 12;

/// Rows between two moves of the hand, which goes around in 2²² rows.
const STEP: u32 = 1024;

impl Default for Ids {
    fn default() -> Self {
        Self {
            shards: (0..1 << SHARD_BITS).map(|_| Shard::default()).collect(),
            since: 0,
            hand: 0,
        }
    }
}

/// The shard of an id and its hash there, which is not 0.
fn split(hash: u64) -> (usize, u32) {
    ((hash >> (64 - SHARD_BITS)) as usize, hash as u32 | 1)
}

/// The whole number from its lower half, or None if it is before `low`.
fn whole(entry: u64, low: u64) -> Option<u64> {
    let ahead = (entry as u32).wrapping_sub(low as u32);
    (ahead <= u32::MAX >> 1).then(|| low + u64::from(ahead))
}

fn tag(entry: u64) -> u32 {
    (entry >> 32) as u32
}

impl Ids {
    /// Asks for the memory that looking for an id will need.
    pub(crate) fn prefetch(&self, hash: u64) {
        let (shard, wanted) = split(hash);
        let shard = &self.shards[shard];
        if let Some(entry) = shard.entries.get(shard.place(wanted)) {
            lookalike::prefetch(entry);
        }
    }

    /// Calls back with the number of every row whose id has this hash, and of few others. All before
    /// `low` are gone.
    pub(crate) fn visit(&self, hash: u64, low: u64, mut visit: impl FnMut(u64)) {
        let (shard, wanted) = split(hash);
        let shard = &self.shards[shard];
        if shard.taken == 0 {
            return;
        }
        for &entry in &shard.entries[shard.place(wanted)..] {
            if entry == 0 || tag(entry) > wanted {
                return;
            }
            if tag(entry) == wanted
                && let Some(number) = whole(entry, low)
            {
                visit(number);
            }
        }
    }

    /// Adds a row, whose number is above all that were added. `gone` says which rows do not count any
    /// more.
    pub(crate) fn insert(&mut self, hash: u64, number: u64, low: u64, gone: impl Fn(u64) -> bool) {
        let (at, tag) = split(hash);
        let shard = &mut self.shards[at];
        if !shard.has_room() {
            shard.rebuild(low, &gone);
        }
        if shard.taken == 0 {
            shard.oldest = number as u32;
        }
        shard.insert(u64::from(tag) << 32 | u64::from(number as u32));
        self.since += 1;
        if self.since >= STEP {
            self.since = 0;
            self.sweep(low, gone);
        }
    }

    fn sweep(&mut self, low: u64, gone: impl Fn(u64) -> bool) {
        let shard = &mut self.shards[self.hand];
        self.hand = (self.hand + 1) % (1 << SHARD_BITS);
        if shard.taken > 0 && whole(shard.oldest.into(), low).is_none() {
            shard.rebuild(low, gone);
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        let held: usize = self.shards.iter().map(|it| 8 * it.entries.capacity()).sum();
        (held + size_of::<Shard>() * self.shards.len()) as u64
    }
}

/// Places of a shard that has entries, at the least.
const LEAST: usize = 8;

/// Places behind those that hashes name, for entries that were pushed there.
const SPARE: usize = 4;

impl Shard {
    fn place(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.places as u64) >> 32) as usize
    }

    fn has_room(&self) -> bool {
        10 * self.taken < 9 * self.places
    }

    /// Entries that follow have greater hashes; those with the same one stand before it.
    fn insert(&mut self, entry: u64) {
        let mut at = self.place(tag(entry));
        while self.entries[at] != 0 && tag(self.entries[at]) <= tag(entry) {
            at += 1;
            self.lengthen(at);
        }
        let mut pushed = entry;
        while pushed != 0 {
            self.lengthen(at);
            pushed = std::mem::replace(&mut self.entries[at], pushed);
            at += 1;
        }
        self.taken += 1;
    }

    /// Makes sure that there is a place, behind those that hashes name if need be.
    fn lengthen(&mut self, at: usize) {
        if at >= self.entries.len() {
            self.entries.reserve_exact(SPARE);
            self.entries.resize(at + 1, 0);
        }
    }

    /// Drops what is gone; the places become as many as an eighth more of the rest wants.
    fn rebuild(&mut self, low: u64, gone: impl Fn(u64) -> bool) {
        let before = std::mem::take(&mut self.entries);
        let alive = before
            .into_iter()
            .filter(|&entry| entry != 0 && whole(entry, low).is_some_and(|number| !gone(number)));
        let alive: Vec<u64> = alive.collect();
        self.places = (alive.len() + alive.len() / 8) * 10 / 9 + LEAST;
        self.entries = Vec::with_capacity(self.places + SPARE);
        self.entries.resize(self.places, 0);
        self.taken = 0;
        let oldest = alive.iter().filter_map(|&entry| whole(entry, low)).min();
        self.oldest = oldest.unwrap_or(0) as u32;
        // They are in the order of their hashes, so each goes behind the one before.
        let mut next = 0;
        for &entry in &alive {
            let at = next.max(self.place(tag(entry)));
            self.lengthen(at);
            self.entries[at] = entry;
            next = at + 1;
        }
        self.taken = alive.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(value: u64) -> u64 {
        lookalike::value_hash(&value.to_le_bytes())
    }

    fn found(ids: &Ids, hash: u64, low: u64) -> Vec<u64> {
        let mut found = Vec::new();
        ids.visit(hash, low, |number| found.push(number));
        found.sort_unstable();
        found
    }

    /// Against a list, with few and many rows to a shard, numbers that pass 2³², and hashes that many
    /// share.
    #[test]
    fn finds_what_a_list_finds() {
        for (start, shards) in [
            (1, 1 << 12),
            (u64::from(u32::MAX) - 9000, 3),
            ((1 << 31) - 9, 1),
        ] {
            let mut ids = Ids::default();
            let mut list: Vec<(u64, u64)> = Vec::new();
            let gone = |number: u64| number.is_multiple_of(7);
            let mut low = start;
            for step in 0..30_000u64 {
                let number = start + step;
                let hash = match step % 50 {
                    0 => u64::MAX >> 12,
                    1 => 0,
                    _ => mix(mix(step) % 9000),
                };
                let hash = hash & u64::MAX >> 12 | (mix(hash) % shards) << 52;
                ids.insert(hash, number, low, gone);
                list.push((hash, number));
                if step % 500 == 499 {
                    low = number - 12_000.min(step);
                }
                if step % 37 == 0 {
                    let expected: Vec<u64> = list
                        .iter()
                        .filter(|&&(other, number)| other == hash && number >= low && !gone(number))
                        .map(|&(_, number)| number)
                        .collect();
                    let mut found = found(&ids, hash, low);
                    // What does not count any more may or may not be there.
                    found.retain(|&number| !gone(number));
                    let right = list
                        .iter()
                        .filter(|(other, _)| split(*other) == split(hash));
                    let right: Vec<u64> = right.map(|&(_, number)| number).collect();
                    assert!(found.iter().all(|number| right.contains(number)));
                    assert!(
                        expected.iter().all(|number| found.contains(number)),
                        "{step}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_takes_ten_bytes_and_none_once_it_is_gone() {
        let mut ids = Ids::default();
        let empty = ids.bytes();
        for number in 0..2_000_000u64 {
            ids.insert(mix(number), number, 0, |_| false);
        }
        let each = (ids.bytes() - empty) as f64 / 2e6;
        assert!((8.0..10.5).contains(&each), "{each}");
        // The hand empties them.
        for number in 2_000_000..2_000_000 + (u64::from(STEP) << SHARD_BITS) {
            ids.insert(0, number, number, |_| false);
        }
        assert!(ids.bytes() - empty < 1_000_000, "{}", ids.bytes());
    }
}
