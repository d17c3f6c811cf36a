//! Stored neighbourhoods: every fingerprint is in the bucket of each key within the distance of its own, so
//! a look-up visits one bucket.
//!
//! The articles store all neighbours of a fingerprint, 43,745 at 64 bits and distance 3. A neighbour differs
//! in no more bits of the key either, so it is enough to store the neighbours of the key, 1,351 at 20 bits;
//! the few other fingerprints of a bucket are ruled out by their distance.
//!
//! The table is packed: the directory has the start of every bucket and the end of the last, and an entry is
//! the position of a fingerprint in the first table, ascending within its bucket. Building takes one step per
//! entry, on one thread.

use super::columns::ColumnMut;
use super::{HammingSegment, SearchLimits, SegmentMatch, TableColumns, rows_of_entry};
use crate::arch::{CacheLine, LINE};
use crate::error::{Error, ErrorKind, Result};
use crate::hamming::fingerprint_code::FingerprintCode;
use crate::hamming::key::BlockKey;
use crate::hamming::plan::MOST_NEIGHBOURHOODS;
use crate::types::Distance;

/// Builds the table of a segment that has its first table.
pub(super) fn build_neighbourhoods<C: FingerprintCode>(
    segment: &HammingSegment<C>,
    key: &BlockKey,
) -> Result<TableColumns> {
    let deltas = key.probe_deltas(segment.plan.distance().get());
    check_size(segment.rows, deltas.len() * segment.distinct)?;
    let buckets: Vec<u32> = (0..segment.distinct)
        .map(|position| key.bucket_of(segment.code_at(position)))
        .collect();
    let mut directory = ColumnMut::<u32>::allocate_zeroed(key.bucket_count() + 1)?;
    // Borrowed once, because a column checks its memory at every access.
    let ends: &mut [u32] = &mut directory;
    for &bucket in &buckets {
        for &(delta, _) in &deltas {
            ends[(bucket ^ delta) as usize + 1] += 1;
        }
    }
    for bucket in 1..ends.len() {
        ends[bucket] += ends[bucket - 1];
    }
    let mut next = ends.to_vec();
    let mut lines =
        ColumnMut::<CacheLine>::allocate_zeroed((deltas.len() * segment.distinct).div_ceil(LINE))?;
    let entries: &mut [u32] = bytemuck::cast_slice_mut(&mut lines);
    for (position, &bucket) in (0..).zip(&buckets) {
        for &(delta, _) in &deltas {
            let place = &mut next[(bucket ^ delta) as usize];
            entries[*place as usize] = position;
            *place += 1;
        }
    }
    let (line_count, bucket_count) = (lines.len(), directory.len());
    Ok(TableColumns {
        lines: lines.into_read_only(line_count)?,
        directory: directory.into_read_only(bucket_count)?,
        overflow: ColumnMut::allocate_zeroed(0)?.into_read_only(0)?,
    })
}

fn check_size(rows: usize, entries: usize) -> Result<()> {
    if rows as u64 <= MOST_NEIGHBOURHOODS && u32::try_from(entries).is_ok() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Limit,
        format!(
            "the neighbourhoods of {rows} fingerprints have {entries} entries: they are stored for at most \
             {MOST_NEIGHBOURHOODS} fingerprints with {} entries; use the plan auto",
            u32::MAX
        ),
    ))
}

impl<C: FingerprintCode> HammingSegment<C> {
    /// Searches by stored neighbourhoods, as
    /// [`search_queries`](HammingSegment::search_queries) defines it. Without a distance, the distance of
    /// the plan applies.
    pub(super) fn search_neighbourhoods(
        &self,
        key: &BlockKey,
        queries: &[C],
        search: &SearchLimits,
        mut visit: impl FnMut(usize, SegmentMatch),
    ) -> Vec<usize> {
        let most = search.distance.unwrap_or(self.plan.distance());
        let mut truncated = Vec::new();
        for (at, &query) in queries.iter().enumerate() {
            let mut room = search.limit;
            let is_cut = self.visit_neighbours(key, query, most, |distance, rows| {
                let fits = rows.len().min(room);
                for &row in &rows[..fits] {
                    visit(at, SegmentMatch { distance, row });
                }
                room -= fits;
                rows.len() > fits
            });
            if is_cut {
                truncated.push(at);
            }
        }
        truncated
    }

    /// Calls `visit` with the distance and the rows of every fingerprint near a query. Returns `true` if a
    /// call returned `true`.
    fn visit_neighbours(
        &self,
        key: &BlockKey,
        query: C,
        most: Distance,
        mut visit: impl FnMut(u32, &[u32]) -> bool,
    ) -> bool {
        let table = &self.tables[1];
        let (directory, entries): (&[u32], &[u32]) =
            (&table.directory, bytemuck::cast_slice(&table.lines));
        let bucket = key.bucket_of(query) as usize;
        let (start, end) = (directory[bucket] as usize, directory[bucket + 1] as usize);
        let mut is_cut = false;
        for &position in &entries[start..end] {
            let position = position as usize;
            let distance = self.code_at(position).hamming_distance(query);
            if distance <= most.get() {
                let rows = rows_of_entry(self.ids[position], position, &self.ids, &self.lists);
                is_cut |= visit(distance, rows);
            }
        }
        is_cut
    }

    /// Returns the fingerprint at a position of the first table, which is a scan.
    fn code_at(&self, position: usize) -> C {
        let words: &[u32] = bytemuck::cast_slice(&self.tables[0].lines);
        self.code_layout
            .restore_code(0, words[position], self.rest_at(position))
    }

    /// Returns `true` if the segment has no neighbourhoods, or if a look-up can rely on them.
    pub(super) fn neighbourhoods_are_consistent(&self) -> bool {
        let Some(key) = self.plan.neighbourhood_key() else {
            return true;
        };
        let TableColumns {
            lines,
            directory,
            overflow,
        } = &self.tables[1];
        let entries: &[u32] = bytemuck::cast_slice(lines);
        let used = directory.last().map_or(0, |&end| end as usize);
        let is_ordered = directory.len() == key.bucket_count() + 1
            && directory[0] == 0
            && directory.windows(2).all(|pair| pair[0] <= pair[1]);
        is_ordered
            && overflow.is_empty()
            && lines.len() == used.div_ceil(LINE)
            && directory.windows(2).all(|pair| {
                let bucket = &entries[pair[0] as usize..pair[1] as usize];
                bucket.is_sorted_by(|a, b| a < b)
                    && bucket
                        .last()
                        .is_none_or(|&last| (last as usize) < self.distinct)
            })
    }
}
