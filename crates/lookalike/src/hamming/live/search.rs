//! Look-ups, many in progress at a time.
//!
//! A look-up takes a few steps, each of which reads what the step before has found: buckets,
//! overflow, sequence numbers, codes. Each step prefetches the memory of the next one, and other
//! look-ups take their steps in the meantime.

use super::LiveState;
use super::line_rings::{NONE, line_link};
use super::table::{EntryItem, PairPlace};
use crate::arch::{self, Arch, Kernel};
use crate::hamming::fingerprint_code::FingerprintCode;

/// Number of look-ups between one step and the next.
const LOOK_UPS_AHEAD: usize = 4;

/// Number of look-ups in progress.
const UNDER_WAY: usize = 4 * LOOK_UPS_AHEAD + 1;

/// Mask of the entries of a pair of lines, without the link.
const ALL_ENTRIES: u32 = 0x7fff;

/// A match of one query.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveMatch {
    pub(super) query: u32,
    pub(super) distance: u32,
    pub(super) number: u64,
}

/// Buffers of look-ups, kept from one search to the next.
#[derive(Debug)]
pub(super) struct LookUpScratch {
    steps: [LookUpSteps; UNDER_WAY],
    pub(super) found: Vec<LiveMatch>,
}

impl Default for LookUpScratch {
    fn default() -> Self {
        Self {
            steps: std::array::from_fn(|_| LookUpSteps::default()),
            found: Vec::new(),
        }
    }
}

/// Intermediate results of one look-up.
#[derive(Debug, Default)]
struct LookUpSteps {
    buckets: Vec<u32>,
    /// End of the buckets of each table.
    ends: Vec<u32>,
    /// Buffer for the links of one table.
    links: Vec<u32>,
    /// Rings to walk.
    rings: Vec<RingCursor>,
    near: Vec<NearEntries>,
    candidates: Vec<LiveCandidate>,
}

/// Position of a walk along a ring.
#[derive(Clone, Copy, Debug, Default)]
struct RingCursor {
    table: u32,
    newest: u32,
    at: u32,
}

/// Entries whose residuals are near the query's.
#[derive(Clone, Copy, Debug)]
struct NearEntries {
    table: u32,
    place: PairPlace,
    mask: u32,
}

/// An entry that may match, and a number by which its code can be read.
#[derive(Clone, Copy, Debug)]
struct LiveCandidate {
    table: u32,
    item: EntryItem,
    number: u32,
}

/// Finds every live fingerprint within a distance of each query.
pub(super) struct LiveSearch<'a, C> {
    pub(super) state: &'a LiveState<C>,
    pub(super) queries: &'a [C],
    pub(super) limit: u32,
    pub(super) scratch: &'a mut LookUpScratch,
}

impl<C: FingerprintCode> Kernel for LiveSearch<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let Self {
            state,
            queries,
            limit,
            scratch,
        } = self;
        let LookUpScratch { steps, found } = scratch;
        found.clear();
        if let &[query] = queries {
            let steps = &mut steps[0];
            steps.find_buckets(state, query);
            steps.read_buckets(arch, state, query, limit);
            steps.walk_rings(arch, state, query, limit);
            steps.read_entries(state);
            steps.compare_candidates(state, query, limit, 0, found);
            return;
        }
        let count = queries.len();
        for at in 0..count + 4 * LOOK_UPS_AHEAD {
            let under_way = |behind: usize| {
                let query = at
                    .checked_sub(behind * LOOK_UPS_AHEAD)
                    .filter(|&query| query < count)?;
                Some((query % UNDER_WAY, query))
            };
            if let Some((slot, query)) = under_way(0) {
                steps[slot].find_buckets(state, queries[query]);
            }
            if let Some((slot, query)) = under_way(1) {
                steps[slot].read_buckets(arch, state, queries[query], limit);
            }
            if let Some((slot, query)) = under_way(2) {
                steps[slot].walk_rings(arch, state, queries[query], limit);
            }
            if let Some((slot, _)) = under_way(3) {
                steps[slot].read_entries(state);
            }
            if let Some((slot, query)) = under_way(4) {
                steps[slot].compare_candidates(state, queries[query], limit, query as u32, found);
            }
        }
    }
}

impl LookUpSteps {
    #[inline(always)]
    fn find_buckets<C: FingerprintCode>(&mut self, state: &LiveState<C>, query: C) {
        self.buckets.clear();
        self.ends.clear();
        let mut begin = 0;
        for table in &state.tables {
            table.append_probes(query, &mut self.buckets);
            for &bucket in &self.buckets[begin..] {
                arch::prefetch(table.residuals_at(PairPlace::Bucket(bucket)));
            }
            begin = self.buckets.len();
            self.ends.push(begin as u32);
        }
    }

    #[inline(always)]
    fn read_buckets<A: Arch, C: FingerprintCode>(
        &mut self,
        arch: A,
        state: &LiveState<C>,
        query: C,
        limit: u32,
    ) {
        self.near.clear();
        self.rings.clear();
        if self.links.len() < self.buckets.len() {
            self.links.resize(self.buckets.len(), 0);
        }
        let mut begin = 0;
        for number in 0..self.ends.len() {
            let (table, end) = (&state.tables[number], self.ends[number] as usize);
            let residual = table.residual_of(query);
            let buckets = &self.buckets[begin..end];
            let links = &mut self.links[..buckets.len()];
            let first_near = self.near.len();
            let mut link_count = 0;
            for &bucket in buckets {
                let place = PairPlace::Bucket(bucket);
                let line = table.residuals_at(place);
                let mask = arch.near(line, residual, limit) & ALL_ENTRIES;
                // Avoid a branch here, because it would often be mispredicted.
                links[link_count] = line_link(line);
                link_count += usize::from(line_link(line) != NONE);
                if mask != 0 {
                    arch::prefetch(table.entries_at(place));
                    self.near.push(NearEntries {
                        table: number as u32,
                        place,
                        mask,
                    });
                }
            }
            let mut links = &mut links[..link_count];
            if table.may_repeat_probes() {
                let near = move_distinct_to_front(&mut self.near[first_near..], |near| near.place);
                self.near.truncate(first_near + near);
                let count = move_distinct_to_front(links, |&link| link);
                links = &mut links[..count];
            }
            for &mut link in links {
                arch::prefetch(table.residuals_at(PairPlace::Over(link - 1)));
                self.rings.push(RingCursor {
                    table: number as u32,
                    newest: link - 1,
                    at: link - 1,
                });
            }
            begin = end;
        }
    }

    /// Walks all rings at once, so that their lines are fetched in parallel.
    #[inline(always)]
    fn walk_rings<A: Arch, C: FingerprintCode>(
        &mut self,
        arch: A,
        state: &LiveState<C>,
        query: C,
        limit: u32,
    ) {
        while !self.rings.is_empty() {
            let mut left = 0;
            for at in 0..self.rings.len() {
                let mut walk = self.rings[at];
                let table = &state.tables[walk.table as usize];
                let place = PairPlace::Over(walk.at);
                let line = table.residuals_at(place);
                let mask = arch.near(line, table.residual_of(query), limit) & ALL_ENTRIES;
                if mask != 0 {
                    arch::prefetch(table.entries_at(place));
                    self.near.push(NearEntries {
                        table: walk.table,
                        place,
                        mask,
                    });
                }
                walk.at = line_link(line) - 1;
                if walk.at != walk.newest {
                    arch::prefetch(table.residuals_at(PairPlace::Over(walk.at)));
                    self.rings[left] = walk;
                    left += 1;
                }
            }
            self.rings.truncate(left);
        }
    }

    #[inline(always)]
    fn read_entries<C: FingerprintCode>(&mut self, state: &LiveState<C>) {
        self.candidates.clear();
        for near in &self.near {
            let table = &state.tables[near.table as usize];
            table.visit_items(near.place, near.mask, &state.log, |item, number| {
                state.log.prefetch_code(number);
                self.candidates.push(LiveCandidate {
                    table: near.table,
                    item,
                    number,
                });
            });
        }
    }

    #[inline(always)]
    fn compare_candidates<C: FingerprintCode>(
        &self,
        state: &LiveState<C>,
        query: C,
        limit: u32,
        number: u32,
        found: &mut Vec<LiveMatch>,
    ) {
        let log = &state.log;
        for candidate in &self.candidates {
            let Some(code) = log.code_of(candidate.number) else {
                continue;
            };
            let differing = code.differing_bits(query);
            let (earlier, from) = state.tables.split_at(candidate.table as usize);
            // Only the first table that sees a match reports it.
            if differing.count_ones() > limit
                || !from[0].sees_difference(differing)
                || earlier.iter().any(|table| table.sees_difference(differing))
            {
                continue;
            }
            let mut push = |member| {
                found.push(LiveMatch {
                    query: number,
                    distance: differing.count_ones(),
                    number: log.restore_number(member),
                });
            };
            match candidate.item {
                EntryItem::One(only) => push(only),
                EntryItem::Group(newest) => from[0].visit_members(newest, log, push),
            }
        }
    }
}

/// Moves items with distinct keys to the front and returns their number. Compares all pairs, so it
/// suits only few items.
#[inline(always)]
fn move_distinct_to_front<T: Copy, K: PartialEq>(items: &mut [T], key: impl Fn(&T) -> K) -> usize {
    let mut kept = 0;
    for at in 0..items.len() {
        let item = items[at];
        if !items[..kept].iter().any(|other| key(other) == key(&item)) {
            items[kept] = item;
            kept += 1;
        }
    }
    kept
}
