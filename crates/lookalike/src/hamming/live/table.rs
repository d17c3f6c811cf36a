//! One table: maps one block to every fingerprint whose block is near.
//!
//! **Buckets.** A bucket begins with a pair of lines in two arrays:
//!
//! ```text
//! residuals   15 words of the codes                   | link to the overflow
//! entries     15 sequence numbers or group references | count, and flags of the groups
//! ```
//!
//! A residual takes its bits from outside the block as far as there are any. A look-up reads the
//! residuals, and reads the entries only if a residual is near the query's.
//!
//! **Overflow.** A full bucket moves a few of its oldest entries to a pair of such lines in a ring.
//! Before that it drops its dead entries, which are those that were removed or have expired. An
//! incremental sweep over all buckets runs along with insertions, so that no dead entry stays for
//! ever.
//!
//! **Equal codes.** An insertion that finds its code among the newest 15 entries joins that entry,
//! which becomes a group: a ring of lines of sequence numbers. A value that is inserted a million
//! times therefore takes few entries, and costs nothing to queries that do not match it.
//!
//! **Growth** is linear hashing (Litwin 1980): with every twelfth fingerprint the next bucket in
//! turn moves the entries whose key has one more bit set to a new last bucket. This reads the codes
//! again, about twice per fingerprint in all.

use super::LOAD;
use super::blocks::Block;
use super::lines::{LAST, NONE, Rings, no_memory};
use super::log::Log;
use crate::arch::{self, Arch, Line, Lines};
use crate::error::Result;
use crate::hamming::code::Code;
use crate::hamming::key::{Bucket, COVERING_PROBES, Covering, Key, MOST_SEGMENTS};

/// Number of entries in a pair of lines.
const PAIR: u32 = LAST as u32;

/// Entries that leave a full bucket at once: few, so that the room that they take is soon free
/// again.
const SPILL: usize = 3;

/// Number of entries that leave a full bucket as long as nothing was removed or has expired.
const SPILL_GROWING: usize = 5;

/// Number of sequence numbers in a line of a group; the next word is their count.
const GROUP: usize = LAST - 1;

/// Largest number of bits of a bucket number. The sweep visits one bucket every 8 insertions, so it
/// visits each of 2²⁶ buckets every 2²⁹ insertions.
const MOST_BITS: u32 = 26;

/// Lines of a large page. Each array of lines starts its next page at a different time, because the
/// first touch of a page takes up to a few milliseconds in a virtual machine that must get the
/// memory from its host.
const PAGE: u32 = 1 << 15;

/// Lines by which an array is ahead of the previous one. Its multiples are spread evenly over a
/// page.
const STAGGER: u32 = 11 << 10;

/// Insertions per bucket that the sweep visits.
pub(super) const SWEEP: u64 = 8;

/// Largest number of lines of a group that one visit of the sweep frees.
const TRIM: u32 = 64;

#[derive(Debug)]
pub(super) struct Table {
    /// Position among the tables.
    number: u32,
    /// Ratio of page size to chunk size, as a power of two.
    page_shift: u32,
    block: Block,
    mask: u128,
    key: Key,
    /// `true` if keys are hashed. Otherwise near keys are found by flipping bits.
    scattered: bool,
    most_bits: u32,
    /// There are 2^`level` + `split` buckets; those below `split` have been split in this round.
    level: u32,
    split: u32,
    /// Masks that turn a key of `level` bits into all keys within the radius.
    deltas: Vec<(Bucket, u8)>,
    residuals: Lines,
    entries: Lines,
    /// Residuals of the overflow; `over_entries` has its entries under the same numbers.
    over_residuals: Rings,
    over_entries: Lines,
    groups: Rings,
    hand: u32,
    /// Number of buckets that the sweep must still visit.
    unswept: u32,
    moving: Vec<Entry>,
}

/// One entry of a bucket.
#[derive(Clone, Copy, Debug)]
struct Entry {
    residual: u32,
    item: Item,
}

/// The sequence numbers of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Lower half of a sequence number.
    One(u32),
    /// Newest line of a group.
    Group(u32),
}

/// Place of a pair of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Bucket(u32),
    Over(u32),
}

#[inline(always)]
fn count(entries: &Line) -> u32 {
    entries.0[LAST] & 0xff
}

/// Returns a mask of the entries in use.
#[inline(always)]
fn used(entries: &Line) -> u32 {
    (1 << count(entries)) - 1
}

#[inline(always)]
fn item(entries: &Line, at: u32) -> Item {
    let word = entries.0[at as usize];
    if entries.0[LAST] >> (8 + at) & 1 == 1 {
        Item::Group(word)
    } else {
        Item::One(word)
    }
}

#[inline(always)]
fn set_item(entries: &mut Line, at: u32, item: Item) {
    let flag = 1 << (8 + at);
    let (word, group) = match item {
        Item::One(word) => (word, 0),
        Item::Group(word) => (word, flag),
    };
    entries.0[at as usize] = word;
    entries.0[LAST] = entries.0[LAST] & !flag | group;
}

/// Adds an entry to a pair that is not full.
#[inline(always)]
fn add(residuals: &mut Line, entries: &mut Line, entry: Entry) {
    let at = count(entries);
    debug_assert!(at < PAIR);
    residuals.0[at as usize] = entry.residual;
    entries.0[LAST] += 1;
    set_item(entries, at, entry.item);
}

#[inline(always)]
fn entry(residuals: &Line, entries: &Line, at: u32) -> Entry {
    Entry {
        residual: residuals.0[at as usize],
        item: item(entries, at),
    }
}

/// Returns a live number of the item, by which its code can be read; `None` if the item is dead.
#[inline(always)]
fn witness<C: Code>(item: Item, groups: &Rings, log: &Log<C>) -> Option<u32> {
    match item {
        Item::One(number) => log.is_live(number).then_some(number),
        Item::Group(newest) => witness_of_group(newest, groups, log),
    }
}

fn witness_of_group<C: Code>(newest: u32, groups: &Rings, log: &Log<C>) -> Option<u32> {
    let last = latest(groups.get(newest));
    // The latest number of all expires last.
    if log.is_expired(last) {
        return None;
    }
    if log.is_live(last) {
        return Some(last);
    }
    let mut at = newest;
    loop {
        at = groups.next(at);
        let live = numbers(groups.get(at))
            .iter()
            .find(|&&number| log.is_live(number));
        if live.is_some() || at == newest {
            return live.copied();
        }
    }
}

/// Returns the sequence numbers in a line of a group, ascending.
#[inline(always)]
fn numbers(line: &Line) -> &[u32] {
    &line.0[..line.0[GROUP] as usize]
}

#[inline(always)]
fn latest(line: &Line) -> u32 {
    line.0[line.0[GROUP] as usize - 1]
}

/// Frees up to `most` of the oldest lines of a group if all their numbers are dead. Returns `true`
/// if there may be more such lines.
fn trim<C: Code>(groups: &mut Rings, newest: u32, most: u32, log: &Log<C>) -> bool {
    for _ in 0..most {
        let oldest = groups.next(newest);
        let mut numbers = numbers(groups.get(oldest)).iter();
        if oldest == newest || numbers.any(|&number| log.is_live(number)) {
            return false;
        }
        groups.pop(newest);
    }
    true
}

/// Drops the expired numbers at the start of a line of a group, but never its last number.
fn drop_expired<C: Code>(line: &mut Line, log: &Log<C>) {
    let before = line.0[GROUP] as usize;
    let expired = line.0[..before - 1].iter();
    let expired = expired
        .take_while(|&&number| log.is_expired(number))
        .count();
    line.0.copy_within(expired..before, 0);
    line.0[GROUP] = (before - expired) as u32;
}

/// Drops the dead entries of a pair.
fn compact<C: Code>(residuals: &mut Line, entries: &mut Line, groups: &mut Rings, log: &Log<C>) {
    let before = count(entries);
    let mut kept = 0;
    let mut flags = 0;
    for at in 0..before {
        let item = item(entries, at);
        if witness(item, groups, log).is_some() {
            residuals.0[kept as usize] = residuals.0[at as usize];
            entries.0[kept as usize] = entries.0[at as usize];
            flags |= u32::from(matches!(item, Item::Group(_))) << (8 + kept);
            kept += 1;
        } else if let Item::Group(newest) = item {
            groups.free(newest);
        }
    }
    entries.0[LAST] = kept | flags;
}

fn prefetch_codes<C: Code>(entries: &Line, log: &Log<C>) {
    for &number in &entries.0[..count(entries) as usize] {
        log.prefetch(number);
    }
}

/// Hashes a key with a bijection that lets every bit reach the lower bits (constants from Wellons'
/// search for integer hashes).
#[inline(always)]
fn scatter(key: u32) -> u32 {
    let key = key.wrapping_mul(0x7feb_352d);
    let key = (key ^ key >> 15).wrapping_mul(0x846c_a68b);
    key ^ key >> 16
}

impl Table {
    pub(super) fn new(number: u32, block: Block, chunk_bits: u32) -> Result<Self> {
        let direct = |bits: u32| {
            let mut segments = [(0, 0); MOST_SEGMENTS];
            segments[0] = (block.shift as u8, block.width as u8);
            Key::Direct { segments, bits }
        };
        let covering = block.radius == 1 && block.width == 32;
        let key = if covering {
            Key::Covering {
                shift: block.shift,
                code: Covering::OneOf31,
                bits: Covering::OneOf31.bits(),
            }
        } else {
            direct(block.width.min(MOST_BITS))
        };
        let mut table = Self {
            number,
            page_shift: PAGE.ilog2().saturating_sub(chunk_bits),
            block,
            mask: block.mask(),
            key,
            scattered: covering || block.radius == 0,
            most_bits: key.bits().min(MOST_BITS),
            level: 0,
            split: 0,
            deltas: Vec::new(),
            residuals: Lines::new(chunk_bits),
            entries: Lines::new(chunk_bits),
            over_residuals: Rings::new(chunk_bits),
            over_entries: Lines::new(chunk_bits),
            groups: Rings::new(chunk_bits),
            hand: 0,
            unswept: 0,
            moving: Vec::new(),
        };
        table.begin_level(0);
        // Reserve the first bucket.
        table.reserve(0)?;
        Ok(table)
    }

    fn begin_level(&mut self, level: u32) {
        (self.level, self.split) = (level, 0);
        let Key::Direct { segments, .. } = self.key else {
            return;
        };
        let lowest = Key::Direct {
            segments,
            bits: level,
        };
        self.deltas = if self.scattered {
            vec![(0, 0)]
        } else {
            lowest.deltas(self.block.radius)
        };
    }

    fn buckets(&self) -> u32 {
        (1 << self.level) + self.split
    }

    /// Returns the bytes that are in use or once were.
    pub(super) fn bytes(&self) -> u64 {
        let pairs = self.buckets() + self.over_residuals.touched();
        let lines = 2 * u64::from(pairs) + u64::from(self.groups.touched());
        lines * size_of::<Line>() as u64
    }

    /// Makes room for this many insertions.
    pub(super) fn reserve(&mut self, insertions: u32) -> Result<()> {
        // An insertion spills into at most one new pair, and a bucket that is split or swept needs
        // at most one pair more than before. One more bucket is reserved because `prepare_split`
        // prefetches it before it exists.
        let heads = self.buckets() + insertions + 1;
        let pairs = self.over_residuals.touched() + 4 * insertions;
        let arrays = [
            (&mut self.residuals, heads),
            (&mut self.entries, heads),
            (self.over_residuals.lines(), pairs),
            (&mut self.over_entries, pairs),
        ];
        for (number, (lines, needed)) in (0..).zip(arrays) {
            let ahead = ((4 * self.number + number) * STAGGER % PAGE) >> self.page_shift;
            let last = needed + ahead;
            lines.reserve(u64::from(last) + 1).map_err(no_memory)?;
            lines.touch(last);
        }
        self.groups.reserve(insertions)
    }

    /// Returns the bucket of a key.
    #[inline(always)]
    fn reduce(&self, key: Bucket) -> u32 {
        let key = if self.scattered { scatter(key) } else { key };
        let low = key & ((2 << self.level) - 1);
        if low < self.buckets() {
            low
        } else {
            low & ((1 << self.level) - 1)
        }
    }

    #[inline(always)]
    fn bucket<C: Code>(&self, code: C) -> u32 {
        self.reduce(self.key.bucket(code))
    }

    #[inline(always)]
    pub(super) fn residual<C: Code>(&self, code: C) -> u32 {
        let lower = code.word(self.block.residual);
        let upper = u64::from(code.word(0)) << self.block.residual_wrap;
        lower | upper as u32
    }

    /// Returns `true` if this table sees that two codes are near.
    #[inline(always)]
    pub(super) fn sees<C: Code>(&self, differing: C) -> bool {
        differing.ones_in(self.mask) <= self.block.radius
    }

    /// Returns `true` if [`probes`](Self::probes) may name a bucket twice.
    #[inline(always)]
    pub(super) fn repeats(&self) -> bool {
        matches!(self.key, Key::Covering { .. })
    }

    /// Appends the numbers of all buckets that can hold a code within the radius.
    #[inline(always)]
    pub(super) fn probes<C: Code>(&self, query: C, buckets: &mut Vec<u32>) {
        match self.key {
            Key::Covering { .. } => self.covering_probes(query, buckets),
            Key::Direct { .. } if self.scattered => buckets.push(self.bucket(query)),
            Key::Direct { .. } => self.direct_probes(query, buckets),
        }
    }

    #[inline(always)]
    fn covering_probes<C: Code>(&self, query: C, buckets: &mut Vec<u32>) {
        let mut found = [0; COVERING_PROBES];
        let mut count = 0;
        self.key.probes(query, &[], |key, _| {
            found[count] = key;
            count += 1;
        });
        for key in &mut found {
            *key = self.reduce(*key);
        }
        // Append all and truncate, because copying a fixed number needs no call.
        let before = buckets.len();
        buckets.extend_from_slice(&found);
        buckets.truncate(before + count);
    }

    /// Appends the buckets of near direct keys. A bucket that is not split yet holds the keys with
    /// either top bit and is visited once. The half of a split bucket that has the other top bit is
    /// one flip further away, so it is visited only if the radius allows one more flip.
    fn direct_probes<C: Code>(&self, query: C, buckets: &mut Vec<u32>) {
        let key = self.key.bucket(query);
        let top = 1 << self.level;
        for &(delta, weight) in &self.deltas {
            let low = (key ^ delta) & (top - 1);
            if low >= self.split {
                buckets.push(low);
                continue;
            }
            buckets.push(low | key & top);
            if u32::from(weight) < self.block.radius {
                buckets.push(low | !key & top);
            }
        }
    }

    #[inline(always)]
    pub(super) fn residuals(&self, place: Place) -> &Line {
        match place {
            Place::Bucket(at) => self.residuals.get(at),
            Place::Over(at) => self.over_residuals.get(at),
        }
    }

    #[inline(always)]
    pub(super) fn entries(&self, place: Place) -> &Line {
        match place {
            Place::Bucket(at) => self.entries.get(at),
            Place::Over(at) => self.over_entries.get(at),
        }
    }

    /// Calls `visit` with the live items among the entries in `mask`, each with a number by which
    /// its code can be read.
    #[inline(always)]
    pub(super) fn items<C: Code>(
        &self,
        place: Place,
        mask: u32,
        log: &Log<C>,
        mut visit: impl FnMut(Item, u32),
    ) {
        let entries = self.entries(place);
        let mut left = mask & used(entries);
        while left != 0 {
            let item = item(entries, left.trailing_zeros());
            if let Some(number) = witness(item, &self.groups, log) {
                visit(item, number);
            }
            left &= left - 1;
        }
    }

    /// Calls `visit` with every live number of a group.
    pub(super) fn members<C: Code>(&self, newest: u32, log: &Log<C>, mut visit: impl FnMut(u32)) {
        let mut at = newest;
        loop {
            at = self.groups.next(at);
            let line = self.groups.get(at);
            for &number in numbers(line).iter().filter(|&&number| log.is_live(number)) {
                visit(number);
            }
            if at == newest {
                return;
            }
        }
    }

    /// Prefetches the lines that an insertion reads.
    #[inline(always)]
    pub(super) fn prefetch<C: Code>(&self, code: C) {
        let bucket = self.bucket(code);
        arch::prefetch(self.residuals.get(bucket));
        arch::prefetch(self.entries.get(bucket));
    }

    /// Adds the code that was last appended to the log. Room must have been reserved.
    #[inline(always)]
    pub(super) fn insert<A: Arch, C: Code>(&mut self, arch: A, code: C, number: u32, log: &Log<C>) {
        let bucket = self.bucket(code);
        let residual = self.residual(code);
        let entries = self.entries.get(bucket);
        let mut equal = arch.near(self.residuals.get(bucket), residual, 0) & used(entries);
        while equal != 0 {
            if self.join(bucket, equal.trailing_zeros(), code, number, log) {
                return;
            }
            equal &= equal - 1;
        }
        let item = Item::One(number);
        self.append(bucket, Entry { residual, item }, log);
    }

    /// Adds a number to an entry and returns `true` if the entry is live and has this code.
    fn join<C: Code>(&mut self, bucket: u32, at: u32, code: C, number: u32, log: &Log<C>) -> bool {
        let entries = self.entries.get_mut(bucket);
        let old = item(entries, at);
        let Some(known) = witness(old, &self.groups, log) else {
            return false;
        };
        if log.code(known) != Some(code) {
            return false;
        }
        let line = match old {
            Item::One(other) => {
                let newest = self.groups.push(None);
                let line = self.groups.get_mut(newest);
                line.0[0] = other;
                line.0[GROUP] = 1;
                newest
            }
            Item::Group(newest) if self.groups.get(newest).0[GROUP] < GROUP as u32 => newest,
            Item::Group(newest) => {
                // Free two lines for each new one, so that a recurring value keeps no more than the
                // window.
                trim(&mut self.groups, newest, 2, log);
                let newest = self.groups.push(Some(newest));
                self.groups.get_mut(newest).0[GROUP] = 0;
                newest
            }
        };
        set_item(entries, at, Item::Group(line));
        let line = self.groups.get_mut(line);
        line.0[line.0[GROUP] as usize] = number;
        line.0[GROUP] += 1;
        true
    }

    #[inline(always)]
    fn append<C: Code>(&mut self, bucket: u32, entry: Entry, log: &Log<C>) {
        if count(self.entries.get(bucket)) == PAIR {
            self.make_room(bucket, log);
        }
        add(
            self.residuals.get_mut(bucket),
            self.entries.get_mut(bucket),
            entry,
        );
    }

    /// Drops the dead entries of a full bucket; if there are none, moves the oldest entries to the
    /// overflow.
    #[inline(never)]
    fn make_room<C: Code>(&mut self, bucket: u32, log: &Log<C>) {
        let residuals = self.residuals.get_mut(bucket);
        let entries = self.entries.get_mut(bucket);
        let mut newest = residuals.0[LAST].checked_sub(1);
        if !log.never_lost() {
            compact(residuals, entries, &mut self.groups, log);
            // A ring usually has a single pair, all of whose entries expire soon.
            if let Some(only) = newest.filter(|&only| self.over_residuals.next(only) == only) {
                let over = self.over_residuals.get_mut(only);
                let over_entries = self.over_entries.get_mut(only);
                compact(over, over_entries, &mut self.groups, log);
                if count(over_entries) == 0 {
                    self.over_residuals.free(only);
                    residuals.0[LAST] = NONE;
                    newest = None;
                }
            }
            if count(entries) < PAIR {
                return;
            }
        }
        let spill = if log.never_lost() {
            SPILL_GROWING
        } else {
            SPILL
        };
        let kept = PAIR - spill as u32;
        let over = match newest {
            Some(newest) if count(self.over_entries.get(newest)) <= kept => newest,
            newest => {
                let over = self.over_residuals.push(newest);
                self.over_entries.get_mut(over).0[LAST] = 0;
                residuals.0[LAST] = over + 1;
                over
            }
        };
        let over_residuals = self.over_residuals.get_mut(over);
        let over_entries = self.over_entries.get_mut(over);
        for at in 0..spill as u32 {
            add(over_residuals, over_entries, entry(residuals, entries, at));
        }
        residuals.0.copy_within(spill..LAST, 0);
        entries.0.copy_within(spill..LAST, 0);
        let flags = entries.0[LAST] >> (8 + spill) << 8;
        entries.0[LAST] = flags | kept;
    }

    /// Copies the live entries of a bucket to `moving`, oldest first, and frees groups without live
    /// numbers. Returns the number of entries before.
    fn gather<C: Code>(&mut self, bucket: u32, log: &Log<C>) -> usize {
        let mut total = 0;
        self.moving.clear();
        let newest = self.residuals.get(bucket).0[LAST].checked_sub(1);
        let mut at = newest;
        loop {
            at = at.map(|at| self.over_residuals.next(at));
            if let Some(at) = at {
                total += self.gather_pair(Place::Over(at), log);
            }
            if at == newest {
                break;
            }
        }
        total + self.gather_pair(Place::Bucket(bucket), log)
    }

    fn gather_pair<C: Code>(&mut self, place: Place, log: &Log<C>) -> usize {
        let (residuals, entries) = match place {
            Place::Bucket(at) => (self.residuals.get(at), self.entries.get(at)),
            Place::Over(at) => (self.over_residuals.get(at), self.over_entries.get(at)),
        };
        for at in 0..count(entries) {
            let entry = entry(residuals, entries, at);
            if witness(entry.item, &self.groups, log).is_some() {
                self.moving.push(entry);
            } else if let Item::Group(newest) = entry.item {
                self.groups.free(newest);
            }
        }
        count(entries) as usize
    }

    /// Empties a bucket.
    fn clear(&mut self, bucket: u32) {
        let link = &mut self.residuals.get_mut(bucket).0[LAST];
        if let Some(newest) = std::mem::replace(link, NONE).checked_sub(1) {
            self.over_residuals.free(newest);
        }
        self.entries.get_mut(bucket).0[LAST] = 0;
    }

    /// Adds a bucket if there are too few for the live fingerprints.
    #[inline(always)]
    pub(super) fn grow<C: Code>(&mut self, log: &Log<C>) {
        if log.live() > u64::from(self.buckets()) * LOAD && self.level < self.most_bits {
            self.split_next(log);
        }
    }

    #[inline(never)]
    fn split_next<C: Code>(&mut self, log: &Log<C>) {
        let bucket = self.split;
        self.gather(bucket, log);
        self.clear(bucket);
        self.split += 1;
        // The sweep must visit the new bucket too.
        self.unswept += u32::from(self.unswept > 0);
        if self.split == 1 << self.level {
            self.begin_level(self.level + 1);
        }
        let moving = std::mem::take(&mut self.moving);
        for &entry in &moving {
            let code = witness(entry.item, &self.groups, log).and_then(|number| log.code(number));
            let code = code.expect("what is live has a code");
            self.append(self.bucket(code), entry, log);
        }
        self.moving = moving;
        self.prepare_split(log);
    }

    /// Prefetches what the next three splits read. Each of them is at another step, because a step
    /// needs the data of the step before. Also prefetches the bucket that the next split fills.
    fn prepare_split<C: Code>(&self, log: &Log<C>) {
        let last = self.buckets() - 1;
        let bucket = |ahead: u32| (self.split + ahead).min(last);
        let over = |bucket| self.residuals.get(bucket).0[LAST].checked_sub(1);
        arch::prefetch(self.residuals.get(bucket(2)));
        arch::prefetch(self.entries.get(bucket(2)));
        arch::prefetch(self.residuals.get(last + 1));
        arch::prefetch(self.entries.get(last + 1));
        prefetch_codes(self.entries.get(bucket(1)), log);
        if let Some(over) = over(bucket(1)) {
            arch::prefetch(self.over_residuals.get(over));
            arch::prefetch(self.over_entries.get(over));
        }
        if let Some(over) = over(bucket(0)) {
            prefetch_codes(self.over_entries.get(over), log);
        }
    }

    /// Restarts the count of buckets to sweep, because any bucket may now have dead entries.
    pub(super) fn mark_unswept(&mut self) {
        self.unswept = self.buckets();
    }

    /// Sweeps the next bucket if any bucket may have dead entries.
    pub(super) fn sweep<C: Code>(&mut self, log: &Log<C>) {
        if self.unswept == 0 {
            return;
        }
        if self.tidy(self.hand, log) {
            return;
        }
        self.unswept -= 1;
        self.hand += 1;
        if self.hand >= self.buckets() {
            self.hand = 0;
        }
        arch::prefetch(self.entries.get(self.hand));
        arch::prefetch(self.residuals.get(self.hand));
    }

    /// Drops everything dead in a bucket. Returns `true` if there may be more.
    fn tidy<C: Code>(&mut self, bucket: u32, log: &Log<C>) -> bool {
        let before = self.gather(bucket, log);
        let moving = std::mem::take(&mut self.moving);
        let mut more = false;
        for entry in &moving {
            if let Item::Group(newest) = entry.item {
                more |= trim(&mut self.groups, newest, TRIM, log);
                let oldest = self.groups.next(newest);
                drop_expired(self.groups.get_mut(oldest), log);
                drop_expired(self.groups.get_mut(newest), log);
            }
        }
        if moving.len() < before {
            self.clear(bucket);
            for &entry in &moving {
                self.append(bucket, entry, log);
            }
        }
        self.moving = moving;
        more
    }
}
