//! Index from ids to rows: maps hashes of ids to numbers of rows.
//!
//! The table consists of shards that grow one by one. The hash of an entry names its home position in a shard. Entries
//! are ordered by hash, and each is as close behind its home position as the others allow (Celis, "Robin Hood Hashing",
//! 1986). A shard can therefore be nearly full: it grows by an eighth when nine of ten positions are taken. A
//! search for an absent id ends at the first entry with a greater hash.
//!
//! Cost: 9 to 10 bytes per row; one or two cache lines per look-up.

/// Hash table from ids to row numbers; see the [module](self).
#[derive(Debug)]
pub(crate) struct IdTable {
    shards: Vec<IdShard>,
    /// Insertions since the last sweep step.
    insertions: u32,
    /// Next shard to be swept.
    next_swept: usize,
}

#[derive(Debug, Default)]
struct IdShard {
    /// Hash and row number, or 0 if empty. The last entries are beyond the home positions.
    entries: Vec<u64>,
    /// Number of home positions.
    positions: usize,
    entry_count: usize,
    /// Lower half of the smallest row number, if there are entries.
    oldest: u32,
}

/// Base-2 logarithm of the number of shards. At fifty million documents a shard has about ten thousand
/// entries.
const SHARD_BITS: u32 = 12;

/// Insertions between two steps of the incremental sweep, which passes all shards in 2²² insertions.
const SWEEP_INTERVAL: u32 = 1024;

impl Default for IdTable {
    fn default() -> Self {
        Self {
            shards: (0..1 << SHARD_BITS).map(|_| IdShard::default()).collect(),
            insertions: 0,
            next_swept: 0,
        }
    }
}

/// Splits a hash into the shard of an id and its hash there, which is not 0.
fn split_hash(hash: u64) -> (usize, u32) {
    ((hash >> (64 - SHARD_BITS)) as usize, hash as u32 | 1)
}

/// Restores a row number from its lower half; `None` if it is before `first_row`.
fn restore_number(entry: u64, first_row: u64) -> Option<u64> {
    let distance = (entry as u32).wrapping_sub(first_row as u32);
    (distance <= u32::MAX >> 1).then(|| first_row + u64::from(distance))
}

fn entry_tag(entry: u64) -> u32 {
    (entry >> 32) as u32
}

impl IdTable {
    /// Prefetches the memory that a look-up needs.
    pub(crate) fn prefetch_id(&self, hash: u64) {
        let (shard, tag) = split_hash(hash);
        let shard = &self.shards[shard];
        if let Some(entry) = shard.entries.get(shard.home_position(tag)) {
            lookalike::prefetch(entry);
        }
    }

    /// Calls `visit` with the number of every row whose id has this hash, and of few others.
    /// Rows before `first_row` are ignored.
    pub(crate) fn visit_candidates(&self, hash: u64, first_row: u64, mut visit: impl FnMut(u64)) {
        let (shard, tag) = split_hash(hash);
        let shard = &self.shards[shard];
        if shard.entry_count == 0 {
            return;
        }
        for &entry in &shard.entries[shard.home_position(tag)..] {
            if entry == 0 || entry_tag(entry) > tag {
                return;
            }
            if entry_tag(entry) == tag
                && let Some(number) = restore_number(entry, first_row)
            {
                visit(number);
            }
        }
    }

    /// Adds a row whose number is greater than all before. `is_dead` returns `true` for dead rows.
    pub(crate) fn insert_id(
        &mut self,
        hash: u64,
        number: u64,
        first_row: u64,
        is_dead: impl Fn(u64) -> bool,
    ) {
        let (at, tag) = split_hash(hash);
        let shard = &mut self.shards[at];
        if !shard.has_room() {
            shard.rebuild_shard(first_row, &is_dead);
        }
        if shard.entry_count == 0 {
            shard.oldest = number as u32;
        }
        shard.insert_entry(u64::from(tag) << 32 | u64::from(number as u32));
        self.insertions += 1;
        if self.insertions >= SWEEP_INTERVAL {
            self.insertions = 0;
            self.sweep_shard(first_row, is_dead);
        }
    }

    fn sweep_shard(&mut self, first_row: u64, is_dead: impl Fn(u64) -> bool) {
        let shard = &mut self.shards[self.next_swept];
        self.next_swept = (self.next_swept + 1) % (1 << SHARD_BITS);
        if shard.entry_count > 0 && restore_number(shard.oldest.into(), first_row).is_none() {
            shard.rebuild_shard(first_row, is_dead);
        }
    }

    /// Returns bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let held: usize = self
            .shards
            .iter()
            .map(|shard| 8 * shard.entries.capacity())
            .sum();
        (held + size_of::<IdShard>() * self.shards.len()) as u64
    }
}

/// Smallest number of home positions of a shard with entries.
const MIN_POSITIONS: usize = 8;

/// Positions reserved after the last home position, for displaced entries.
const SPARE_POSITIONS: usize = 4;

impl IdShard {
    fn home_position(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.positions as u64) >> 32) as usize
    }

    fn has_room(&self) -> bool {
        10 * self.entry_count < 9 * self.positions
    }

    /// Inserts an entry. Entries with the same hash stay before it; those with greater hashes move back.
    fn insert_entry(&mut self, entry: u64) {
        let mut at = self.home_position(entry_tag(entry));
        while self.entries[at] != 0 && entry_tag(self.entries[at]) <= entry_tag(entry) {
            at += 1;
            self.ensure_position(at);
        }
        let mut pushed = entry;
        while pushed != 0 {
            self.ensure_position(at);
            pushed = std::mem::replace(&mut self.entries[at], pushed);
            at += 1;
        }
        self.entry_count += 1;
    }

    /// Makes sure that a position exists, if necessary after the home positions.
    fn ensure_position(&mut self, at: usize) {
        if at >= self.entries.len() {
            self.entries.reserve_exact(SPARE_POSITIONS);
            self.entries.resize(at + 1, 0);
        }
    }

    /// Drops dead entries. The new size has room for an eighth more than the rest.
    fn rebuild_shard(&mut self, first_row: u64, is_dead: impl Fn(u64) -> bool) {
        let before = std::mem::take(&mut self.entries);
        let alive = before.into_iter().filter(|&entry| {
            entry != 0 && restore_number(entry, first_row).is_some_and(|number| !is_dead(number))
        });
        let alive: Vec<u64> = alive.collect();
        self.positions = (alive.len() + alive.len() / 8) * 10 / 9 + MIN_POSITIONS;
        self.entries = Vec::with_capacity(self.positions + SPARE_POSITIONS);
        self.entries.resize(self.positions, 0);
        self.entry_count = 0;
        let oldest = alive
            .iter()
            .filter_map(|&entry| restore_number(entry, first_row))
            .min();
        self.oldest = oldest.unwrap_or(0) as u32;
        // The entries are ordered by hash, so each one goes after the one before.
        let mut next = 0;
        for &entry in &alive {
            let at = next.max(self.home_position(entry_tag(entry)));
            self.ensure_position(at);
            self.entries[at] = entry;
            next = at + 1;
        }
        self.entry_count = alive.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(value: u64) -> u64 {
        lookalike::value_hash(&value.to_le_bytes())
    }

    fn found(ids: &IdTable, hash: u64, first_row: u64) -> Vec<u64> {
        let mut found = Vec::new();
        ids.visit_candidates(hash, first_row, |number| found.push(number));
        found.sort_unstable();
        found
    }

    /// Compares with a list: with few and many rows per shard, numbers beyond 2³², and shared hashes.
    #[test]
    fn id_map_equals_a_list() {
        for (start, shards) in [
            (1, 1 << 12),
            (u64::from(u32::MAX) - 9000, 3),
            ((1 << 31) - 9, 1),
        ] {
            let mut ids = IdTable::default();
            let mut list: Vec<(u64, u64)> = Vec::new();
            let is_dead = |number: u64| number.is_multiple_of(7);
            let mut first_row = start;
            for step in 0..30_000u64 {
                let number = start + step;
                let hash = match step % 50 {
                    0 => u64::MAX >> 12,
                    1 => 0,
                    _ => mix(mix(step) % 9000),
                };
                let hash = hash & u64::MAX >> 12 | (mix(hash) % shards) << 52;
                ids.insert_id(hash, number, first_row, is_dead);
                list.push((hash, number));
                if step % 500 == 499 {
                    first_row = number - 12_000.min(step);
                }
                if step % 37 == 0 {
                    let expected: Vec<u64> = list
                        .iter()
                        .filter(|&&(other, number)| {
                            other == hash && number >= first_row && !is_dead(number)
                        })
                        .map(|&(_, number)| number)
                        .collect();
                    let mut found = found(&ids, hash, first_row);
                    // Dead rows may or may not be found.
                    found.retain(|&number| !is_dead(number));
                    let right = list
                        .iter()
                        .filter(|(other, _)| split_hash(*other) == split_hash(hash));
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
    fn row_takes_ten_bytes_until_removed() {
        let mut ids = IdTable::default();
        let empty = ids.memory_bytes();
        for number in 0..2_000_000u64 {
            ids.insert_id(mix(number), number, 0, |_| false);
        }
        let each = (ids.memory_bytes() - empty) as f64 / 2e6;
        assert!((8.0..10.5).contains(&each), "{each}");
        // The incremental sweep removes them.
        for number in 2_000_000..2_000_000 + (u64::from(SWEEP_INTERVAL) << SHARD_BITS) {
            ids.insert_id(0, number, number, |_| false);
        }
        assert!(
            ids.memory_bytes() - empty < 1_000_000,
            "{}",
            ids.memory_bytes()
        );
    }
}
