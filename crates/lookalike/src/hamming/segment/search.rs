//! Look-ups of many queries at a time.
//!
//! A query passes through stages: buckets, directories, lines of words, and for the few near words
//! the rest of the fingerprint and its row. Each stage prefetches the memory that the next one
//! reads, and other queries are processed in the meantime.

use super::{HammingSegment, LIST_FLAG, read_rest, rows_of_entry};
use crate::arch::{Arch, CacheLine, Kernel, LINE, prefetch};
use crate::hamming::fingerprint_code::FingerprintCode;
use crate::hamming::key::BucketNumber;
use crate::hamming::plan::BucketLayout;
use crate::types::Distance;

/// The distance and the limit of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// Largest distance (≤), at most that of the plan. `None` reports every fingerprint that
    /// differs from the query, in some block, in no more bits than the plan's radius for that
    /// block.
    pub distance: Option<Distance>,
    /// Largest number of matches per query. If there are more, it is unspecified which of them are
    /// reported.
    pub limit: usize,
}

impl SearchLimits {
    /// Searches for everything within a distance.
    pub fn within_distance(distance: Distance) -> Self {
        Self {
            distance: Some(distance),
            limit: usize::MAX,
        }
    }
}

/// A row that was found and its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentMatch {
    /// Number of bits that differ.
    pub distance: u32,
    /// Row of the fingerprint.
    pub row: u32,
}

/// Number of queries whose near words are resolved together.
const QUERIES_PER_GROUP: usize = 32;

/// Number of queries between prefetching a line and reading it.
const QUERIES_AHEAD: usize = 2;

impl<C: FingerprintCode> HammingSegment<C> {
    /// Calls `visit` with every match of every query, query by query; the order within a query is
    /// unspecified. Returns the queries that have more matches than the limit.
    ///
    /// # Panics
    /// If the distance is above that of the plan.
    pub fn search_queries(
        &self,
        queries: &[C],
        search: &SearchLimits,
        mut visit: impl FnMut(usize, SegmentMatch),
    ) -> Vec<usize> {
        assert!(
            search
                .distance
                .is_none_or(|distance| distance <= self.plan.distance())
        );
        if let Some(key) = self.plan.neighbourhood_key() {
            return self.search_neighbourhoods(&key, queries, search, visit);
        }
        self.cpu.run(SearchKernel {
            segment: self,
            queries,
            search,
            visit: &mut visit,
        })
    }
}

struct SearchKernel<'a, C, V> {
    segment: &'a HammingSegment<C>,
    queries: &'a [C],
    search: &'a SearchLimits,
    visit: &'a mut V,
}

impl<C: FingerprintCode, V: FnMut(usize, SegmentMatch)> Kernel for SearchKernel<'_, C, V> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) -> Vec<usize> {
        let tables = SearchTables::new(self.segment, self.search);
        let mut truncated = Vec::new();
        let mut state = SearchState::default();
        for (at, group) in self.queries.chunks(QUERIES_PER_GROUP).enumerate() {
            state.near.clear();
            state.overflowing.clear();
            match self.segment.plan.bucket_layout() {
                BucketLayout::Lines => tables.near_in_lines(arch, group, &mut state),
                BucketLayout::Packed => tables.near_in_packed(arch, group, &mut state),
            }
            tables.resolve_candidates(arch, group, &mut state);
            let cut = tables.report_matches(group, &mut state, |query, found| {
                (self.visit)(at * QUERIES_PER_GROUP + query, found);
            });
            truncated.extend(cut.iter().map(|query| at * QUERIES_PER_GROUP + query));
        }
        truncated
    }
}

/// Borrowed columns, and the parts of the plan that a search needs.
struct SearchTables<'a, C> {
    segment: &'a HammingSegment<C>,
    parts: Vec<TableView<'a>>,
    rests: &'a [u8],
    rest_bytes: usize,
    ids: &'a [u32],
    lists: &'a [u32],
    /// Largest number of bits of a word that may differ.
    most: u32,
    limit: usize,
}

struct TableView<'a> {
    lines: &'a [CacheLine],
    words: &'a [u32],
    directory: &'a [u32],
    overflow: &'a [CacheLine],
    deltas: Vec<(BucketNumber, u8)>,
}

/// A bucket to visit.
#[derive(Clone, Copy, Default)]
struct BucketProbe {
    bucket: BucketNumber,
    /// Largest number of bits of a word that may differ.
    most: u32,
    /// Start of the bucket in a packed table; `end` is its end.
    start: u32,
    end: u32,
}

/// A bucket that continues in the overflow.
#[derive(Clone, Copy)]
struct OverflowingBucket {
    query: u32,
    table: u32,
    bucket: BucketNumber,
    most: u32,
    /// First line of the overflow.
    line: u32,
}

/// A word that is near the word of a query.
#[derive(Clone, Copy)]
struct NearWord {
    query: u32,
    table: u32,
    bucket: BucketNumber,
    /// The place in the bucket for the first table, or in all words if it is packed; the word for
    /// other tables.
    word: u32,
    /// Bucket in the first table.
    home: BucketNumber,
}

/// A fingerprint that may match.
#[derive(Clone, Copy)]
struct SegmentCandidate {
    near: u32,
    position: u32,
    word: u32,
}

#[derive(Default)]
struct SearchState {
    probes: [Vec<Vec<BucketProbe>>; QUERIES_IN_PROGRESS],
    overflowing: Vec<OverflowingBucket>,
    near: Vec<NearWord>,
    candidates: Vec<SegmentCandidate>,
    cut: Vec<usize>,
}

/// Number of queries in progress at the same time.
const QUERIES_IN_PROGRESS: usize = 2 * QUERIES_AHEAD + 1;

/// Value of `NearWord::table_word` in a first table of lines that stands for all places of the bucket.
const WHOLE_BUCKET: u32 = u32::MAX;

impl<'a, C: FingerprintCode> SearchTables<'a, C> {
    fn new(segment: &'a HammingSegment<C>, search: &SearchLimits) -> Self {
        let tables = segment.plan.plan_tables().iter().zip(&segment.tables);
        let parts = tables.map(|(table, columns)| {
            let radius = search
                .distance
                .map_or(table.radius, |distance| table.radius.min(distance.get()));
            TableView {
                lines: &columns.lines,
                words: bytemuck::cast_slice(&columns.lines),
                directory: &columns.directory,
                overflow: &columns.overflow,
                deltas: table.key.probe_deltas(radius),
            }
        });
        Self {
            segment,
            parts: parts.collect(),
            rests: &segment.rests,
            rest_bytes: segment.code_layout.rest_bytes(),
            ids: &segment.ids,
            lists: &segment.lists,
            most: search.distance.map_or(C::BITS, Distance::get),
            limit: search.limit,
        }
    }

    /// Collects the probes of a query and calls `visit` with each.
    #[inline(always)]
    fn append_probes(
        &self,
        query: C,
        probes: &mut Vec<Vec<BucketProbe>>,
        visit: impl Fn(&TableView<'a>, BucketNumber),
    ) {
        probes.resize_with(self.parts.len(), Vec::new);
        let tables = self.segment.plan.plan_tables().iter().zip(&self.parts);
        for ((table, part), probes) in tables.zip(probes) {
            probes.clear();
            table
                .key
                .visit_probes(query, &part.deltas, |bucket, differing| {
                    visit(part, bucket);
                    probes.push(BucketProbe {
                        bucket,
                        most: self.most - differing.min(self.most),
                        start: 0,
                        end: 0,
                    });
                });
        }
    }

    #[inline(always)]
    fn near_in_lines<A: Arch>(&self, arch: A, group: &[C], state: &mut SearchState) {
        let ask =
            |part: &TableView<'a>, bucket: BucketNumber| prefetch(&part.lines[bucket as usize]);
        for step in 0..group.len() + QUERIES_AHEAD {
            if let Some(&query) = group.get(step) {
                self.append_probes(query, &mut state.probes[step % QUERIES_IN_PROGRESS], ask);
            }
            let Some(at) = step.checked_sub(QUERIES_AHEAD) else {
                continue;
            };
            for (table, probes) in state.probes[at % QUERIES_IN_PROGRESS].iter().enumerate() {
                let part = &self.parts[table];
                let word = self.segment.code_layout.table_word(table, group[at]);
                for probe in probes {
                    let line = &part.lines[probe.bucket as usize];
                    let near = arch.near(line, word, probe.most);
                    if near != 0 {
                        self.push_near_words(at as u32, table, probe, near, &mut state.near);
                    }
                    if line.0[0] > line.0[1] {
                        let first = line.0[LINE - 1];
                        prefetch(&part.overflow[first as usize]);
                        state.overflowing.push(OverflowingBucket {
                            query: at as u32,
                            table: table as u32,
                            bucket: probe.bucket,
                            most: probe.most,
                            line: first,
                        });
                    }
                }
            }
        }
        self.near_in_overflow(arch, group, state);
    }

    /// Collects the near words of a line.
    #[inline(never)]
    fn push_near_words(
        &self,
        query: u32,
        table: usize,
        probe: &BucketProbe,
        near: u32,
        all: &mut Vec<NearWord>,
    ) {
        let part = &self.parts[table];
        let line = &part.lines[probe.bucket as usize].0;
        let mut push = |place: u32, found: u32| {
            all.push(NearWord {
                query,
                table: table as u32,
                bucket: probe.bucket,
                word: if table == 0 { place } else { found },
                home: 0,
            });
        };
        let flagged = line[0] > line[1];
        let slots = if flagged {
            near & !(1 << (LINE - 1))
        } else {
            near
        };
        if !flagged && table == 0 && slots == 0xffff && line[0] == line[LINE - 1] {
            // The bucket may have more fingerprints than the line has slots, all with this word.
            push(WHOLE_BUCKET, line[0]);
        } else {
            for slot in set_bits(slots) {
                // In other tables, copies of the last word fill the rest of the line.
                if table == 0 || slot == 0 || line[slot] != line[slot - 1] {
                    push(slot as u32, line[slot]);
                }
            }
        }
    }

    /// Collects the near words of the overflow.
    #[inline(always)]
    fn near_in_overflow<A: Arch>(&self, arch: A, group: &[C], state: &mut SearchState) {
        for overflowing in &state.overflowing {
            let table = overflowing.table as usize;
            let part = &self.parts[table];
            let word = self
                .segment
                .code_layout
                .table_word(table, group[overflowing.query as usize]);
            let first = overflowing.line as usize;
            let count = part.overflow[first].0[0] as usize;
            for at in 0..=count / LINE {
                let line = &part.overflow[first + at];
                for slot in set_bits(arch.near(line, word, overflowing.most)) {
                    let place = at * LINE + slot;
                    if place > 0 && place <= count {
                        state.near.push(NearWord {
                            query: overflowing.query,
                            table: overflowing.table,
                            bucket: overflowing.bucket,
                            word: if table == 0 {
                                (LINE - 2 + place) as u32
                            } else {
                                line.0[slot]
                            },
                            home: 0,
                        });
                    }
                }
            }
        }
        if !state.overflowing.is_empty() {
            state.near.sort_by_key(|near| near.query);
        }
    }

    #[inline(always)]
    fn near_in_packed<A: Arch>(&self, arch: A, group: &[C], state: &mut SearchState) {
        let ask =
            |part: &TableView<'a>, bucket: BucketNumber| prefetch(&part.directory[bucket as usize]);
        for step in 0..group.len() + 2 * QUERIES_AHEAD {
            if let Some(&query) = group.get(step) {
                self.append_probes(query, &mut state.probes[step % QUERIES_IN_PROGRESS], ask);
            }
            if let Some(at) = step
                .checked_sub(QUERIES_AHEAD)
                .filter(|&at| at < group.len())
            {
                for (part, probes) in self
                    .parts
                    .iter()
                    .zip(&mut state.probes[at % QUERIES_IN_PROGRESS])
                {
                    for probe in probes {
                        let bucket = probe.bucket as usize;
                        (probe.start, probe.end) =
                            (part.directory[bucket], part.directory[bucket + 1]);
                        if probe.start < probe.end {
                            let first = probe.start as usize / LINE;
                            let last = (probe.end as usize - 1) / LINE;
                            prefetch(&part.lines[first]);
                            if last > first {
                                prefetch(&part.lines[last.min(first + 1)]);
                            }
                        }
                    }
                }
            }
            let Some(at) = step.checked_sub(2 * QUERIES_AHEAD) else {
                continue;
            };
            for (table, probes) in state.probes[at % QUERIES_IN_PROGRESS].iter().enumerate() {
                let part = &self.parts[table];
                let word = self.segment.code_layout.table_word(table, group[at]);
                for probe in probes {
                    let (start, end) = (probe.start as usize, probe.end as usize);
                    for line in start / LINE..end.div_ceil(LINE) {
                        let mut near = arch.near(&part.lines[line], word, probe.most);
                        if near == 0 {
                            continue;
                        }
                        // The first and the last line also hold words of neighbouring buckets.
                        near &= u32::MAX << start.saturating_sub(line * LINE).min(31);
                        near &= (1u32 << (end - line * LINE).min(LINE)) - 1;
                        for slot in set_bits(near) {
                            let place = line * LINE + slot;
                            state.near.push(NearWord {
                                query: at as u32,
                                table: table as u32,
                                bucket: probe.bucket,
                                word: if table == 0 {
                                    place as u32
                                } else {
                                    part.words[place]
                                },
                                home: 0,
                            });
                        }
                    }
                }
            }
        }
    }

    /// Finds the fingerprints of the near words.
    #[inline(always)]
    fn resolve_candidates<A: Arch>(&self, arch: A, group: &[C], state: &mut SearchState) {
        let first = &self.parts[0];
        for near in &mut state.near {
            near.home = if near.table == 0 {
                near.bucket
            } else {
                self.segment.code_layout.home_bucket::<C>(near.word)
            };
            prefetch(&first.directory[near.home as usize]);
            if near.table > 0 && self.segment.plan.bucket_layout() == BucketLayout::Lines {
                prefetch(&first.lines[near.home as usize]);
            }
        }
        if self.segment.plan.bucket_layout() == BucketLayout::Packed {
            for near in &state.near {
                if near.table > 0 {
                    let start = first.directory[near.home as usize] as usize / LINE;
                    prefetch(&first.lines[start.min(first.lines.len() - 1)]);
                }
            }
        }
        state.candidates.clear();
        for (at, near) in state.near.iter().enumerate() {
            let home = near.home as usize;
            let (start, end) = (first.directory[home], first.directory[home + 1]);
            let push = |position: u32, word: u32, candidates: &mut Vec<SegmentCandidate>| {
                let place = position as usize;
                if let Some(rest) = self.rests.get(place * self.rest_bytes) {
                    prefetch(rest);
                }
                prefetch(&self.ids[place]);
                candidates.push(SegmentCandidate {
                    near: at as u32,
                    position,
                    word,
                });
            };
            let candidates = &mut state.candidates;
            if near.table > 0 {
                let query = self
                    .segment
                    .code_layout
                    .table_word(0, group[near.query as usize]);
                self.visit_home_entries(arch, near.home, start, end, query, |position, word| {
                    push(position, word, candidates);
                });
            } else if self.segment.plan.bucket_layout() == BucketLayout::Packed {
                push(near.word, first.words[near.word as usize], candidates);
            } else {
                let line = &first.lines[home].0;
                if near.word == WHOLE_BUCKET {
                    (start..end).for_each(|position| push(position, line[0], candidates));
                } else if start + near.word < end {
                    let place = near.word as usize;
                    let word = if place < LINE - 1 || line[0] <= line[1] {
                        line[place]
                    } else {
                        let from = line[LINE - 1] as usize * LINE;
                        let overflow: &[u32] = bytemuck::cast_slice(first.overflow);
                        overflow[from + place - (LINE - 2)]
                    };
                    push(start + near.word, word, candidates);
                }
            }
        }
    }

    /// Calls `visit` with the position and the word of every near word in a bucket of the first
    /// table.
    #[inline(always)]
    fn visit_home_entries<A: Arch>(
        &self,
        arch: A,
        home: BucketNumber,
        start: u32,
        end: u32,
        query: u32,
        mut visit: impl FnMut(u32, u32),
    ) {
        let first = &self.parts[0];
        let (start, end) = (start as usize, end as usize);
        match self.segment.plan.bucket_layout() {
            BucketLayout::Packed => {
                for line in start / LINE..end.div_ceil(LINE) {
                    let near = arch.near(&first.lines[line], query, self.most);
                    for slot in set_bits(near) {
                        let position = line * LINE + slot;
                        if (start..end).contains(&position) {
                            visit(position as u32, first.words[position]);
                        }
                    }
                }
            }
            BucketLayout::Lines => {
                let line = &first.lines[home as usize];
                let flagged = line.0[0] > line.0[1];
                let held = if flagged { LINE - 1 } else { LINE };
                for slot in set_bits(arch.near(line, query, self.most)) {
                    if slot < held && start + slot < end {
                        visit((start + slot) as u32, line.0[slot]);
                    }
                }
                if flagged {
                    let from = line.0[LINE - 1] as usize;
                    for at in 0..=first.overflow[from].0[0] as usize / LINE {
                        let line = &first.overflow[from + at];
                        for slot in set_bits(arch.near(line, query, self.most)) {
                            let position = start + LINE - 2 + at * LINE + slot;
                            if at + slot > 0 && position < end {
                                visit(position as u32, line.0[slot]);
                            }
                        }
                    }
                } else if end - start > LINE && (line.0[0] ^ query).count_ones() <= self.most {
                    (start + LINE..end).for_each(|position| visit(position as u32, line.0[0]));
                }
            }
        }
    }

    /// Compares candidates in full and reports those that their table is the first to see. Returns
    /// the queries whose answer was cut.
    #[inline(always)]
    fn report_matches<'s>(
        &self,
        group: &[C],
        state: &'s mut SearchState,
        mut visit: impl FnMut(usize, SegmentMatch),
    ) -> &'s [usize] {
        let SearchState {
            near: all,
            candidates,
            cut,
            ..
        } = state;
        cut.clear();
        let (mut last, mut reported) = (usize::MAX, 0);
        for candidate in candidates.iter() {
            let near = &all[candidate.near as usize];
            let query = group[near.query as usize];
            let position = candidate.position as usize;
            let rest = read_rest(self.rests, self.rest_bytes, position);
            let code: C = self
                .segment
                .code_layout
                .restore_code(near.home, candidate.word, rest);
            let differing = code.differing_bits(query);
            let distance = differing.count_ones();
            if distance > self.most || !self.is_first_sighting(near, code, differing) {
                continue;
            }
            if last != near.query as usize {
                (last, reported) = (near.query as usize, 0);
            }
            let found = rows_of_entry(self.ids[position], position, self.ids, self.lists);
            debug_assert!(self.ids[position] < LIST_FLAG || found.len() > 1);
            let room = self.limit - reported;
            if found.len() > room && cut.last() != Some(&last) {
                cut.push(last);
            }
            for &row in &found[..found.len().min(room)] {
                visit(last, SegmentMatch { distance, row });
            }
            reported += found.len().min(room);
        }
        cut
    }

    /// Returns `true` if no earlier table sees the fingerprint, and if the near word is its own.
    #[inline(always)]
    fn is_first_sighting(&self, near: &NearWord, code: C, differing: C) -> bool {
        let tables = self.segment.plan.plan_tables();
        let sees = |table: &&crate::hamming::plan::PlanTable| {
            differing.count_ones_in(table.mask) <= table.radius
        };
        let at = near.table as usize;
        sees(&&tables[at])
            && !tables[..at].iter().any(|table| sees(&table))
            && (at == 0
                || (self.segment.code_layout.table_word(at, code) == near.word
                    && tables[at].key.bucket_of(code) == near.bucket))
    }
}

/// Returns the positions of the bits that are 1, ascending.
#[inline(always)]
fn set_bits(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (at < 32).then_some(at as usize)
    })
}
