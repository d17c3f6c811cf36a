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

use super::BUCKET_LOAD;
use super::blocks::LiveBlock;
use super::code_log::CodeLog;
use super::line_rings::{LAST, LineRings, NONE, out_of_memory};
use crate::arch::{self, Arch, CacheLine, ChunkedLines};
use crate::error::Result;
use crate::hamming::fingerprint_code::FingerprintCode;
use crate::hamming::key::{BlockKey, BucketNumber, COVERING_PROBES, CoveringCode, MOST_SEGMENTS};

/// Number of entries in a pair of lines.
const ENTRIES_PER_PAIR: u32 = LAST as u32;

/// Entries that leave a full bucket at once: few, so that the room that they take is soon free
/// again.
const SPILLED_ENTRIES: usize = 3;

/// Number of entries that leave a full bucket as long as nothing was removed or has expired.
const SPILL_GROWING: usize = 5;

/// Number of sequence numbers in a line of a group; the next word is their count.
const NUMBERS_PER_LINE: usize = LAST - 1;

/// Largest number of bits of a bucket number. The sweep visits one bucket every 8 insertions, so it
/// visits each of 2²⁶ buckets every 2²⁹ insertions.
const MOST_BITS: u32 = 26;

/// Lines of a large page. Each array of lines starts its next page at a different time, because the
/// first touch of a page takes up to a few milliseconds in a virtual machine that must get the
/// memory from its host.
const LINES_PER_PAGE: u32 = 1 << 15;

/// Lines by which an array is ahead of the previous one. Its multiples are spread evenly over a
/// page.
const STAGGER_LINES: u32 = 11 << 10;

/// Insertions per bucket that the sweep visits.
pub(super) const INSERTIONS_PER_SWEEP: u64 = 8;

/// Largest number of lines of a group that one visit of the sweep frees.
const MOST_FREED_LINES: u32 = 64;

#[derive(Debug)]
pub(super) struct LiveTable {
    /// Position among the tables.
    number: u32,
    /// Ratio of page size to chunk size, as a power of two.
    page_shift: u32,
    block: LiveBlock,
    mask: u128,
    key: BlockKey,
    /// `true` if keys are hashed. Otherwise near keys are found by flipping bits.
    scattered: bool,
    most_bits: u32,
    /// There are 2^`level` + `split` buckets; those below `split` have been split in this round.
    level: u32,
    split: u32,
    /// Masks that turn a key of `level` bits into all keys within the radius.
    deltas: Vec<(BucketNumber, u8)>,
    residuals: ChunkedLines,
    entries: ChunkedLines,
    /// Residuals of the overflow; `over_entries` has its entries under the same numbers.
    over_residuals: LineRings,
    over_entries: ChunkedLines,
    groups: LineRings,
    hand: u32,
    /// Number of buckets that the sweep must still visit.
    unswept: u32,
    moving: Vec<LiveTableEntry>,
}

/// One entry of a bucket.
#[derive(Clone, Copy, Debug)]
struct LiveTableEntry {
    residual: u32,
    item: EntryItem,
}

/// The sequence numbers of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryItem {
    /// Lower half of a sequence number.
    One(u32),
    /// Newest line of a group.
    Group(u32),
}

/// Place of a pair of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairPlace {
    Bucket(u32),
    Over(u32),
}

#[inline(always)]
fn entry_count(entries: &CacheLine) -> u32 {
    entries.0[LAST] & 0xff
}

/// Returns a mask of the entries in use.
#[inline(always)]
fn used_mask(entries: &CacheLine) -> u32 {
    (1 << entry_count(entries)) - 1
}

#[inline(always)]
fn item_at(entries: &CacheLine, at: u32) -> EntryItem {
    let word = entries.0[at as usize];
    if entries.0[LAST] >> (8 + at) & 1 == 1 {
        EntryItem::Group(word)
    } else {
        EntryItem::One(word)
    }
}

#[inline(always)]
fn set_item_at(entries: &mut CacheLine, at: u32, item: EntryItem) {
    let flag = 1 << (8 + at);
    let (word, group) = match item {
        EntryItem::One(word) => (word, 0),
        EntryItem::Group(word) => (word, flag),
    };
    entries.0[at as usize] = word;
    entries.0[LAST] = entries.0[LAST] & !flag | group;
}

/// Adds an entry to a pair that is not full.
#[inline(always)]
fn add_entry(residuals: &mut CacheLine, entries: &mut CacheLine, entry: LiveTableEntry) {
    let at = entry_count(entries);
    debug_assert!(at < ENTRIES_PER_PAIR);
    residuals.0[at as usize] = entry.residual;
    entries.0[LAST] += 1;
    set_item_at(entries, at, entry.item);
}

#[inline(always)]
fn entry_at(residuals: &CacheLine, entries: &CacheLine, at: u32) -> LiveTableEntry {
    LiveTableEntry {
        residual: residuals.0[at as usize],
        item: item_at(entries, at),
    }
}

/// Returns a live number of the item, by which its code can be read; `None` if the item is dead.
#[inline(always)]
fn witness_number<C: FingerprintCode>(
    item: EntryItem,
    groups: &LineRings,
    log: &CodeLog<C>,
) -> Option<u32> {
    match item {
        EntryItem::One(number) => log.is_live(number).then_some(number),
        EntryItem::Group(newest) => witness_of_group(newest, groups, log),
    }
}

fn witness_of_group<C: FingerprintCode>(
    newest: u32,
    groups: &LineRings,
    log: &CodeLog<C>,
) -> Option<u32> {
    let last = latest_number(groups.get(newest));
    // The latest number of all expires last.
    if log.is_expired(last) {
        return None;
    }
    if log.is_live(last) {
        return Some(last);
    }
    let mut at = newest;
    loop {
        at = groups.next_line(at);
        let live = group_numbers(groups.get(at))
            .iter()
            .find(|&&number| log.is_live(number));
        if live.is_some() || at == newest {
            return live.copied();
        }
    }
}

/// Returns the sequence numbers in a line of a group, ascending.
#[inline(always)]
fn group_numbers(line: &CacheLine) -> &[u32] {
    &line.0[..line.0[NUMBERS_PER_LINE] as usize]
}

#[inline(always)]
fn latest_number(line: &CacheLine) -> u32 {
    line.0[line.0[NUMBERS_PER_LINE] as usize - 1]
}

/// Frees up to `most` of the oldest lines of a group if all their numbers are dead. Returns `true`
/// if there may be more such lines.
fn trim_group<C: FingerprintCode>(
    groups: &mut LineRings,
    newest: u32,
    most: u32,
    log: &CodeLog<C>,
) -> bool {
    for _ in 0..most {
        let oldest = groups.next_line(newest);
        let mut numbers = group_numbers(groups.get(oldest)).iter();
        if oldest == newest || numbers.any(|&number| log.is_live(number)) {
            return false;
        }
        groups.free_oldest(newest);
    }
    true
}

/// Drops the expired numbers at the start of a line of a group, but never its last number.
fn drop_expired<C: FingerprintCode>(line: &mut CacheLine, log: &CodeLog<C>) {
    let before = line.0[NUMBERS_PER_LINE] as usize;
    let expired = line.0[..before - 1].iter();
    let expired = expired
        .take_while(|&&number| log.is_expired(number))
        .count();
    line.0.copy_within(expired..before, 0);
    line.0[NUMBERS_PER_LINE] = (before - expired) as u32;
}

/// Drops the dead entries of a pair.
fn compact_pair<C: FingerprintCode>(
    residuals: &mut CacheLine,
    entries: &mut CacheLine,
    groups: &mut LineRings,
    log: &CodeLog<C>,
) {
    let before = entry_count(entries);
    let mut kept = 0;
    let mut flags = 0;
    for at in 0..before {
        let item = item_at(entries, at);
        if witness_number(item, groups, log).is_some() {
            residuals.0[kept as usize] = residuals.0[at as usize];
            entries.0[kept as usize] = entries.0[at as usize];
            flags |= u32::from(matches!(item, EntryItem::Group(_))) << (8 + kept);
            kept += 1;
        } else if let EntryItem::Group(newest) = item {
            groups.free_ring(newest);
        }
    }
    entries.0[LAST] = kept | flags;
}

fn prefetch_codes<C: FingerprintCode>(entries: &CacheLine, log: &CodeLog<C>) {
    for &number in &entries.0[..entry_count(entries) as usize] {
        log.prefetch_code(number);
    }
}

/// Hashes a key with a bijection that lets every bit reach the lower bits (constants from Wellons'
/// search for integer hashes).
#[inline(always)]
fn scatter_key(key: u32) -> u32 {
    let key = key.wrapping_mul(0x7feb_352d);
    let key = (key ^ key >> 15).wrapping_mul(0x846c_a68b);
    key ^ key >> 16
}

impl LiveTable {
    pub(super) fn new(number: u32, block: LiveBlock, chunk_bits: u32) -> Result<Self> {
        let direct = |bits: u32| {
            let mut segments = [(0, 0); MOST_SEGMENTS];
            segments[0] = (block.shift as u8, block.width as u8);
            BlockKey::Direct { segments, bits }
        };
        let covering = block.radius == 1 && block.width == 32;
        let key = if covering {
            BlockKey::Covering {
                shift: block.shift,
                code: CoveringCode::OneOf31,
                bits: CoveringCode::OneOf31.key_bits(),
            }
        } else {
            direct(block.width.min(MOST_BITS))
        };
        let mut table = Self {
            number,
            page_shift: LINES_PER_PAGE.ilog2().saturating_sub(chunk_bits),
            block,
            mask: block.block_mask(),
            key,
            scattered: covering || block.radius == 0,
            most_bits: key.bucket_bits().min(MOST_BITS),
            level: 0,
            split: 0,
            deltas: Vec::new(),
            residuals: ChunkedLines::new(chunk_bits),
            entries: ChunkedLines::new(chunk_bits),
            over_residuals: LineRings::new(chunk_bits),
            over_entries: ChunkedLines::new(chunk_bits),
            groups: LineRings::new(chunk_bits),
            hand: 0,
            unswept: 0,
            moving: Vec::new(),
        };
        table.begin_level(0);
        // Reserve the first bucket.
        table.reserve_insertions(0)?;
        Ok(table)
    }

    fn begin_level(&mut self, level: u32) {
        (self.level, self.split) = (level, 0);
        let BlockKey::Direct { segments, .. } = self.key else {
            return;
        };
        let lowest = BlockKey::Direct {
            segments,
            bits: level,
        };
        self.deltas = if self.scattered {
            vec![(0, 0)]
        } else {
            lowest.probe_deltas(self.block.radius)
        };
    }

    fn bucket_count(&self) -> u32 {
        (1 << self.level) + self.split
    }

    /// Returns the bytes that are in use or once were.
    pub(super) fn memory_bytes(&self) -> u64 {
        let pairs = self.bucket_count() + self.over_residuals.touched_lines();
        let lines = 2 * u64::from(pairs) + u64::from(self.groups.touched_lines());
        lines * size_of::<CacheLine>() as u64
    }

    /// Makes room for this many insertions.
    pub(super) fn reserve_insertions(&mut self, insertions: u32) -> Result<()> {
        // An insertion spills into at most one new pair, and a bucket that is split or swept needs
        // at most one pair more than before. One more bucket is reserved because `prepare_split`
        // prefetches it before it exists.
        let heads = self.bucket_count() + insertions + 1;
        let pairs = self.over_residuals.touched_lines() + 4 * insertions;
        let arrays = [
            (&mut self.residuals, heads),
            (&mut self.entries, heads),
            (self.over_residuals.lines_mut(), pairs),
            (&mut self.over_entries, pairs),
        ];
        for (number, (lines, needed)) in (0..).zip(arrays) {
            let ahead =
                ((4 * self.number + number) * STAGGER_LINES % LINES_PER_PAGE) >> self.page_shift;
            let last = needed + ahead;
            lines
                .reserve_lines(u64::from(last) + 1)
                .map_err(out_of_memory)?;
            lines.touch_line(last);
        }
        self.groups.reserve_lines(insertions)
    }

    /// Returns the bucket of a key.
    #[inline(always)]
    fn reduce_key(&self, key: BucketNumber) -> u32 {
        let key = if self.scattered {
            scatter_key(key)
        } else {
            key
        };
        let low = key & ((2 << self.level) - 1);
        if low < self.bucket_count() {
            low
        } else {
            low & ((1 << self.level) - 1)
        }
    }

    #[inline(always)]
    fn bucket_of<C: FingerprintCode>(&self, code: C) -> u32 {
        self.reduce_key(self.key.bucket_of(code))
    }

    #[inline(always)]
    pub(super) fn residual_of<C: FingerprintCode>(&self, code: C) -> u32 {
        let lower = code.word_at(self.block.residual);
        let upper = u64::from(code.word_at(0)) << self.block.residual_wrap;
        lower | upper as u32
    }

    /// Returns `true` if this table sees that two codes are near.
    #[inline(always)]
    pub(super) fn sees_difference<C: FingerprintCode>(&self, differing: C) -> bool {
        differing.count_ones_in(self.mask) <= self.block.radius
    }

    /// Returns `true` if [`probes`](Self::probes) may name a bucket twice.
    #[inline(always)]
    pub(super) fn may_repeat_probes(&self) -> bool {
        matches!(self.key, BlockKey::Covering { .. })
    }

    /// Appends the numbers of all buckets that can hold a code within the radius.
    #[inline(always)]
    pub(super) fn append_probes<C: FingerprintCode>(&self, query: C, buckets: &mut Vec<u32>) {
        match self.key {
            BlockKey::Covering { .. } => self.covering_probes(query, buckets),
            BlockKey::Direct { .. } if self.scattered => buckets.push(self.bucket_of(query)),
            BlockKey::Direct { .. } => self.direct_probes(query, buckets),
        }
    }

    #[inline(always)]
    fn covering_probes<C: FingerprintCode>(&self, query: C, buckets: &mut Vec<u32>) {
        let mut found = [0; COVERING_PROBES];
        let mut count = 0;
        self.key.visit_probes(query, &[], |key, _| {
            found[count] = key;
            count += 1;
        });
        for key in &mut found {
            *key = self.reduce_key(*key);
        }
        // Append all and truncate, because copying a fixed number needs no call.
        let before = buckets.len();
        buckets.extend_from_slice(&found);
        buckets.truncate(before + count);
    }

    /// Appends the buckets of near direct keys. A bucket that is not split yet holds the keys with
    /// either top bit and is visited once. The half of a split bucket that has the other top bit is
    /// one flip further away, so it is visited only if the radius allows one more flip.
    fn direct_probes<C: FingerprintCode>(&self, query: C, buckets: &mut Vec<u32>) {
        let key = self.key.bucket_of(query);
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
    pub(super) fn residuals_at(&self, place: PairPlace) -> &CacheLine {
        match place {
            PairPlace::Bucket(at) => self.residuals.line(at),
            PairPlace::Over(at) => self.over_residuals.get(at),
        }
    }

    #[inline(always)]
    pub(super) fn entries_at(&self, place: PairPlace) -> &CacheLine {
        match place {
            PairPlace::Bucket(at) => self.entries.line(at),
            PairPlace::Over(at) => self.over_entries.line(at),
        }
    }

    /// Calls `visit` with the live items among the entries in `mask`, each with a number by which
    /// its code can be read.
    #[inline(always)]
    pub(super) fn visit_items<C: FingerprintCode>(
        &self,
        place: PairPlace,
        mask: u32,
        log: &CodeLog<C>,
        mut visit: impl FnMut(EntryItem, u32),
    ) {
        let entries = self.entries_at(place);
        let mut left = mask & used_mask(entries);
        while left != 0 {
            let item = item_at(entries, left.trailing_zeros());
            if let Some(number) = witness_number(item, &self.groups, log) {
                visit(item, number);
            }
            left &= left - 1;
        }
    }

    /// Calls `visit` with every live number of a group.
    pub(super) fn visit_members<C: FingerprintCode>(
        &self,
        newest: u32,
        log: &CodeLog<C>,
        mut visit: impl FnMut(u32),
    ) {
        let mut at = newest;
        loop {
            at = self.groups.next_line(at);
            let line = self.groups.get(at);
            for &number in group_numbers(line)
                .iter()
                .filter(|&&number| log.is_live(number))
            {
                visit(number);
            }
            if at == newest {
                return;
            }
        }
    }

    /// Prefetches the lines that an insertion reads.
    #[inline(always)]
    pub(super) fn prefetch_insert<C: FingerprintCode>(&self, code: C) {
        let bucket = self.bucket_of(code);
        arch::prefetch(self.residuals.line(bucket));
        arch::prefetch(self.entries.line(bucket));
    }

    /// Adds the code that was last appended to the log. Room must have been reserved.
    #[inline(always)]
    pub(super) fn insert_number<A: Arch, C: FingerprintCode>(
        &mut self,
        arch: A,
        code: C,
        number: u32,
        log: &CodeLog<C>,
    ) {
        let bucket = self.bucket_of(code);
        let residual = self.residual_of(code);
        let entries = self.entries.line(bucket);
        let mut equal = arch.near(self.residuals.line(bucket), residual, 0) & used_mask(entries);
        while equal != 0 {
            if self.join_entry(bucket, equal.trailing_zeros(), code, number, log) {
                return;
            }
            equal &= equal - 1;
        }
        let item = EntryItem::One(number);
        self.append_entry(bucket, LiveTableEntry { residual, item }, log);
    }

    /// Adds a number to an entry and returns `true` if the entry is live and has this code.
    fn join_entry<C: FingerprintCode>(
        &mut self,
        bucket: u32,
        at: u32,
        code: C,
        number: u32,
        log: &CodeLog<C>,
    ) -> bool {
        let entries = self.entries.line_mut(bucket);
        let old = item_at(entries, at);
        let Some(known) = witness_number(old, &self.groups, log) else {
            return false;
        };
        if log.code_of(known) != Some(code) {
            return false;
        }
        let line = match old {
            EntryItem::One(other) => {
                let newest = self.groups.push_line(None);
                let line = self.groups.get_mut(newest);
                line.0[0] = other;
                line.0[NUMBERS_PER_LINE] = 1;
                newest
            }
            EntryItem::Group(newest)
                if self.groups.get(newest).0[NUMBERS_PER_LINE] < NUMBERS_PER_LINE as u32 =>
            {
                newest
            }
            EntryItem::Group(newest) => {
                // Free two lines for each new one, so that a recurring value keeps no more than the
                // window.
                trim_group(&mut self.groups, newest, 2, log);
                let newest = self.groups.push_line(Some(newest));
                self.groups.get_mut(newest).0[NUMBERS_PER_LINE] = 0;
                newest
            }
        };
        set_item_at(entries, at, EntryItem::Group(line));
        let line = self.groups.get_mut(line);
        line.0[line.0[NUMBERS_PER_LINE] as usize] = number;
        line.0[NUMBERS_PER_LINE] += 1;
        true
    }

    #[inline(always)]
    fn append_entry<C: FingerprintCode>(
        &mut self,
        bucket: u32,
        entry: LiveTableEntry,
        log: &CodeLog<C>,
    ) {
        if entry_count(self.entries.line(bucket)) == ENTRIES_PER_PAIR {
            self.make_room_in_bucket(bucket, log);
        }
        add_entry(
            self.residuals.line_mut(bucket),
            self.entries.line_mut(bucket),
            entry,
        );
    }

    /// Drops the dead entries of a full bucket; if there are none, moves the oldest entries to the
    /// overflow.
    #[inline(never)]
    fn make_room_in_bucket<C: FingerprintCode>(&mut self, bucket: u32, log: &CodeLog<C>) {
        let residuals = self.residuals.line_mut(bucket);
        let entries = self.entries.line_mut(bucket);
        let mut newest = residuals.0[LAST].checked_sub(1);
        if !log.never_lost() {
            compact_pair(residuals, entries, &mut self.groups, log);
            // A ring usually has a single pair, all of whose entries expire soon.
            if let Some(only) = newest.filter(|&only| self.over_residuals.next_line(only) == only) {
                let over = self.over_residuals.get_mut(only);
                let over_entries = self.over_entries.line_mut(only);
                compact_pair(over, over_entries, &mut self.groups, log);
                if entry_count(over_entries) == 0 {
                    self.over_residuals.free_ring(only);
                    residuals.0[LAST] = NONE;
                    newest = None;
                }
            }
            if entry_count(entries) < ENTRIES_PER_PAIR {
                return;
            }
        }
        let spill = if log.never_lost() {
            SPILL_GROWING
        } else {
            SPILLED_ENTRIES
        };
        let kept = ENTRIES_PER_PAIR - spill as u32;
        let over = match newest {
            Some(newest) if entry_count(self.over_entries.line(newest)) <= kept => newest,
            newest => {
                let over = self.over_residuals.push_line(newest);
                self.over_entries.line_mut(over).0[LAST] = 0;
                residuals.0[LAST] = over + 1;
                over
            }
        };
        let over_residuals = self.over_residuals.get_mut(over);
        let over_entries = self.over_entries.line_mut(over);
        for at in 0..spill as u32 {
            add_entry(
                over_residuals,
                over_entries,
                entry_at(residuals, entries, at),
            );
        }
        residuals.0.copy_within(spill..LAST, 0);
        entries.0.copy_within(spill..LAST, 0);
        let flags = entries.0[LAST] >> (8 + spill) << 8;
        entries.0[LAST] = flags | kept;
    }

    /// Copies the live entries of a bucket to `moving`, oldest first, and frees groups without live
    /// numbers. Returns the number of entries before.
    fn gather_live<C: FingerprintCode>(&mut self, bucket: u32, log: &CodeLog<C>) -> usize {
        let mut total = 0;
        self.moving.clear();
        let newest = self.residuals.line(bucket).0[LAST].checked_sub(1);
        let mut at = newest;
        loop {
            at = at.map(|at| self.over_residuals.next_line(at));
            if let Some(at) = at {
                total += self.gather_pair(PairPlace::Over(at), log);
            }
            if at == newest {
                break;
            }
        }
        total + self.gather_pair(PairPlace::Bucket(bucket), log)
    }

    fn gather_pair<C: FingerprintCode>(&mut self, place: PairPlace, log: &CodeLog<C>) -> usize {
        let (residuals, entries) = match place {
            PairPlace::Bucket(at) => (self.residuals.line(at), self.entries.line(at)),
            PairPlace::Over(at) => (self.over_residuals.get(at), self.over_entries.line(at)),
        };
        for at in 0..entry_count(entries) {
            let entry = entry_at(residuals, entries, at);
            if witness_number(entry.item, &self.groups, log).is_some() {
                self.moving.push(entry);
            } else if let EntryItem::Group(newest) = entry.item {
                self.groups.free_ring(newest);
            }
        }
        entry_count(entries) as usize
    }

    /// Empties a bucket.
    fn clear_bucket(&mut self, bucket: u32) {
        let link = &mut self.residuals.line_mut(bucket).0[LAST];
        if let Some(newest) = std::mem::replace(link, NONE).checked_sub(1) {
            self.over_residuals.free_ring(newest);
        }
        self.entries.line_mut(bucket).0[LAST] = 0;
    }

    /// Adds a bucket if there are too few for the live fingerprints.
    #[inline(always)]
    pub(super) fn grow_table<C: FingerprintCode>(&mut self, log: &CodeLog<C>) {
        if log.count_live() > u64::from(self.bucket_count()) * BUCKET_LOAD
            && self.level < self.most_bits
        {
            self.split_next(log);
        }
    }

    #[inline(never)]
    fn split_next<C: FingerprintCode>(&mut self, log: &CodeLog<C>) {
        let bucket = self.split;
        self.gather_live(bucket, log);
        self.clear_bucket(bucket);
        self.split += 1;
        // The sweep must visit the new bucket too.
        self.unswept += u32::from(self.unswept > 0);
        if self.split == 1 << self.level {
            self.begin_level(self.level + 1);
        }
        let moving = std::mem::take(&mut self.moving);
        for &entry in &moving {
            let code = witness_number(entry.item, &self.groups, log)
                .and_then(|number| log.code_of(number));
            let code = code.expect("what is live has a code");
            self.append_entry(self.bucket_of(code), entry, log);
        }
        self.moving = moving;
        self.prepare_split(log);
    }

    /// Prefetches what the next three splits read. Each of them is at another step, because a step
    /// needs the data of the step before. Also prefetches the bucket that the next split fills.
    fn prepare_split<C: FingerprintCode>(&self, log: &CodeLog<C>) {
        let last = self.bucket_count() - 1;
        let bucket = |ahead: u32| (self.split + ahead).min(last);
        let over = |bucket| self.residuals.line(bucket).0[LAST].checked_sub(1);
        arch::prefetch(self.residuals.line(bucket(2)));
        arch::prefetch(self.entries.line(bucket(2)));
        arch::prefetch(self.residuals.line(last + 1));
        arch::prefetch(self.entries.line(last + 1));
        prefetch_codes(self.entries.line(bucket(1)), log);
        if let Some(over) = over(bucket(1)) {
            arch::prefetch(self.over_residuals.get(over));
            arch::prefetch(self.over_entries.line(over));
        }
        if let Some(over) = over(bucket(0)) {
            prefetch_codes(self.over_entries.line(over), log);
        }
    }

    /// Restarts the count of buckets to sweep, because any bucket may now have dead entries.
    pub(super) fn mark_unswept(&mut self) {
        self.unswept = self.bucket_count();
    }

    /// Sweeps the next bucket if any bucket may have dead entries.
    pub(super) fn sweep_bucket<C: FingerprintCode>(&mut self, log: &CodeLog<C>) {
        if self.unswept == 0 {
            return;
        }
        if self.tidy_bucket(self.hand, log) {
            return;
        }
        self.unswept -= 1;
        self.hand += 1;
        if self.hand >= self.bucket_count() {
            self.hand = 0;
        }
        arch::prefetch(self.entries.line(self.hand));
        arch::prefetch(self.residuals.line(self.hand));
    }

    /// Drops everything dead in a bucket. Returns `true` if there may be more.
    fn tidy_bucket<C: FingerprintCode>(&mut self, bucket: u32, log: &CodeLog<C>) -> bool {
        let before = self.gather_live(bucket, log);
        let moving = std::mem::take(&mut self.moving);
        let mut more = false;
        for entry in &moving {
            if let EntryItem::Group(newest) = entry.item {
                more |= trim_group(&mut self.groups, newest, MOST_FREED_LINES, log);
                let oldest = self.groups.next_line(newest);
                drop_expired(self.groups.get_mut(oldest), log);
                drop_expired(self.groups.get_mut(newest), log);
            }
        }
        if moving.len() < before {
            self.clear_bucket(bucket);
            for &entry in &moving {
                self.append_entry(bucket, entry, log);
            }
        }
        self.moving = moving;
        more
    }
}
