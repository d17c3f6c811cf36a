//! Look-ups, many in progress at a time.
//!
//! A look-up takes a few steps, each of which reads what the step before has found: buckets,
//! overflow, sequence numbers, codes. Each step prefetches the memory of the next one, and other
//! look-ups take their steps in the meantime.

use super::State;
use super::lines::{NONE, link};
use super::table::{Item, Place};
use crate::arch::{self, Arch, Kernel};
use crate::hamming::code::Code;

/// Number of look-ups between one step and the next.
const AHEAD: usize = 4;

/// Number of look-ups in progress.
const UNDER_WAY: usize = 4 * AHEAD + 1;

/// Mask of the entries of a pair of lines, without the link.
const ALL: u32 = 0x7fff;

/// A match of one query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) query: u32,
    pub(super) distance: u32,
    pub(super) number: u64,
}

/// Buffers of look-ups, kept from one search to the next.
#[derive(Debug)]
pub(super) struct Scratch {
    steps: [Steps; UNDER_WAY],
    pub(super) found: Vec<Found>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            steps: std::array::from_fn(|_| Steps::default()),
            found: Vec::new(),
        }
    }
}

/// Intermediate results of one look-up.
#[derive(Debug, Default)]
struct Steps {
    buckets: Vec<u32>,
    /// End of the buckets of each table.
    ends: Vec<u32>,
    /// Buffer for the links of one table.
    links: Vec<u32>,
    /// Rings to walk.
    rings: Vec<Walk>,
    near: Vec<Near>,
    candidates: Vec<Candidate>,
}

/// Position of a walk along a ring.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    table: u32,
    newest: u32,
    at: u32,
}

/// Entries whose residuals are near the query's.
#[derive(Clone, Copy, Debug)]
struct Near {
    table: u32,
    place: Place,
    mask: u32,
}

/// An entry that may match, and a number by which its code can be read.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    table: u32,
    item: Item,
    number: u32,
}

/// Finds every live fingerprint within a distance of each query.
pub(super) struct Search<'a, C> {
    pub(super) state: &'a State<C>,
    pub(super) queries: &'a [C],
    pub(super) limit: u32,
    pub(super) scratch: &'a mut Scratch,
}

impl<C: Code> Kernel for Search<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let Self {
            state,
            queries,
            limit,
            scratch,
        } = self;
        let Scratch { steps, found } = scratch;
        found.clear();
        if let &[query] = queries {
            let steps = &mut steps[0];
            steps.find_buckets(state, query);
            steps.read_buckets(arch, state, query, limit);
            steps.walk_rings(arch, state, query, limit);
            steps.read_entries(state);
            steps.compare(state, query, limit, 0, found);
            return;
        }
        let count = queries.len();
        for at in 0..count + 4 * AHEAD {
            let under_way = |behind: usize| {
                let query = at
                    .checked_sub(behind * AHEAD)
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
                steps[slot].compare(state, queries[query], limit, query as u32, found);
            }
        }
    }
}

impl Steps {
    #[inline(always)]
    fn find_buckets<C: Code>(&mut self, state: &State<C>, query: C) {
        self.buckets.clear();
        self.ends.clear();
        let mut begin = 0;
        for table in &state.tables {
            table.probes(query, &mut self.buckets);
            for &bucket in &self.buckets[begin..] {
                arch::prefetch(table.residuals(Place::Bucket(bucket)));
            }
            begin = self.buckets.len();
            self.ends.push(begin as u32);
        }
    }

    #[inline(always)]
    fn read_buckets<A: Arch, C: Code>(&mut self, arch: A, state: &State<C>, query: C, limit: u32) {
        self.near.clear();
        self.rings.clear();
        if self.links.len() < self.buckets.len() {
            self.links.resize(self.buckets.len(), 0);
        }
        let mut begin = 0;
        for number in 0..self.ends.len() {
            let (table, end) = (&state.tables[number], self.ends[number] as usize);
            let residual = table.residual(query);
            let buckets = &self.buckets[begin..end];
            let links = &mut self.links[..buckets.len()];
            let first_near = self.near.len();
            let mut link_count = 0;
            for &bucket in buckets {
                let place = Place::Bucket(bucket);
                let line = table.residuals(place);
                let mask = arch.near(line, residual, limit) & ALL;
                // Avoid a branch here, because it would often be mispredicted.
                links[link_count] = link(line);
                link_count += usize::from(link(line) != NONE);
                if mask != 0 {
                    arch::prefetch(table.entries(place));
                    self.near.push(Near {
                        table: number as u32,
                        place,
                        mask,
                    });
                }
            }
            let mut links = &mut links[..link_count];
            if table.repeats() {
                let near = distinct(&mut self.near[first_near..], |near| near.place);
                self.near.truncate(first_near + near);
                let count = distinct(links, |&link| link);
                links = &mut links[..count];
            }
            for &mut link in links {
                arch::prefetch(table.residuals(Place::Over(link - 1)));
                self.rings.push(Walk {
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
    fn walk_rings<A: Arch, C: Code>(&mut self, arch: A, state: &State<C>, query: C, limit: u32) {
        while !self.rings.is_empty() {
            let mut left = 0;
            for at in 0..self.rings.len() {
                let mut walk = self.rings[at];
                let table = &state.tables[walk.table as usize];
                let place = Place::Over(walk.at);
                let line = table.residuals(place);
                let mask = arch.near(line, table.residual(query), limit) & ALL;
                if mask != 0 {
                    arch::prefetch(table.entries(place));
                    self.near.push(Near {
                        table: walk.table,
                        place,
                        mask,
                    });
                }
                walk.at = link(line) - 1;
                if walk.at != walk.newest {
                    arch::prefetch(table.residuals(Place::Over(walk.at)));
                    self.rings[left] = walk;
                    left += 1;
                }
            }
            self.rings.truncate(left);
        }
    }

    #[inline(always)]
    fn read_entries<C: Code>(&mut self, state: &State<C>) {
        self.candidates.clear();
        for near in &self.near {
            let table = &state.tables[near.table as usize];
            table.items(near.place, near.mask, &state.log, |item, number| {
                state.log.prefetch(number);
                self.candidates.push(Candidate {
                    table: near.table,
                    item,
                    number,
                });
            });
        }
    }

    #[inline(always)]
    fn compare<C: Code>(
        &self,
        state: &State<C>,
        query: C,
        limit: u32,
        number: u32,
        found: &mut Vec<Found>,
    ) {
        let log = &state.log;
        for candidate in &self.candidates {
            let Some(code) = log.code(candidate.number) else {
                continue;
            };
            let differing = code.xor(query);
            let (earlier, from) = state.tables.split_at(candidate.table as usize);
            // Only the first table that sees a match reports it.
            if differing.ones() > limit
                || !from[0].sees(differing)
                || earlier.iter().any(|table| table.sees(differing))
            {
                continue;
            }
            let mut push = |member| {
                found.push(Found {
                    query: number,
                    distance: differing.ones(),
                    number: log.whole(member),
                });
            };
            match candidate.item {
                Item::One(only) => push(only),
                Item::Group(newest) => from[0].members(newest, log, push),
            }
        }
    }
}

/// Moves items with distinct keys to the front and returns their number. Compares all pairs, so it
/// suits only few items.
#[inline(always)]
fn distinct<T: Copy, K: PartialEq>(items: &mut [T], key: impl Fn(&T) -> K) -> usize {
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
