//! An immutable index: built once, kept in a file, searched by many threads.
//!
//! **Guarantees.** A look-up reports every row within the distance exactly once, and nothing else:
//! the answer of [`scan`](crate::hamming::scan::scan). The bytes of an index depend on plan and
//! fingerprints alone.
//!
//! **Layout.** Every table of the [plan](crate::hamming::HammingPlan) puts fingerprints into buckets and
//! stores a word of 32 bits of each, so that a look-up compares sixteen words with one instruction.
//! Only the first table stores the rest of a fingerprint and its row; equal fingerprints are one
//! entry there, with a list of rows. A near word of another table is looked up in the first table,
//! because it contains the bits that decide the bucket there. A fingerprint of 64 bits, with
//! distance 3, takes 15–19 bytes, row included. Stored neighbourhoods are a table of another kind; its
//! buckets hold positions in the first table.
//!
//! **Cost.** A look-up reads a random cache line per visited bucket (31 buckets at 64 bits and
//! distance 3). Queries are processed in groups, so that these lines are prefetched. Building takes
//! a pass over the fingerprints per table and one more per slice of buckets, and the bytes of
//! a slice ([`BuildMemory`]) in addition to the result. The result is in memory
//! ([`HammingSegment::build_index`]) or goes to a file part by part ([`HammingSegment::build_file`]).
//!
//! **Limits.** A segment never changes; a [live](crate::hamming::live) index does. It stores rows,
//! not ids.

mod build;
mod columns;
mod file;
mod fingerprint_layout;
mod neighbourhoods;
mod search;
mod sink;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::marker::PhantomData;

pub use build::{BuildMemory, CodeSource};
use columns::SegmentColumn;
pub(in crate::hamming) use fingerprint_layout::FingerprintLayout;
pub use search::{SearchLimits, SegmentMatch};
pub use sink::ColumnBuffer;

use super::fingerprint_code::FingerprintCode;
use super::key::BucketNumber;
use super::plan::{BucketLayout, HammingPlan};
use crate::arch::{CacheLine, Cpu, LINE};
use crate::error::Result;

/// Flag of an id that is not a row but the place of a list of rows.
const LIST_FLAG: u32 = 1 << 31;

/// An immutable index of fingerprints.
///
/// ```
/// use lookalike::Distance;
/// use lookalike::hamming::{HammingPlan, PlanRequest, SearchLimits, HammingSegment};
///
/// let codes = [0b0000_u64, 0b0111, 0b1111_0000];
/// let distance = Distance::new(3, 64)?;
/// let plan = HammingPlan::choose_plan(&PlanRequest { count: 3, bits: 64, distance, memory: None })?;
/// let index: HammingSegment<u64> = HammingSegment::build_index(&plan, &codes[..])?;
/// let mut found = Vec::new();
/// index.search_queries(&[0b0001], &SearchLimits::within_distance(distance), |_, near| found.push((near.row, near.distance)));
/// found.sort();
/// assert_eq!(found, [(0, 1), (1, 2)]);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HammingSegment<C> {
    plan: HammingPlan,
    code_layout: FingerprintLayout,
    rows: usize,
    distinct: usize,
    tables: Vec<TableColumns>,
    rests: SegmentColumn<u8>,
    ids: SegmentColumn<u32>,
    lists: SegmentColumn<u32>,
    cpu: Cpu,
    codes: PhantomData<C>,
}

#[derive(Clone, Debug)]
struct TableColumns {
    lines: SegmentColumn<CacheLine>,
    /// Start of every bucket among the distinct fingerprints of the first table, or among the words
    /// of a packed table; empty for other tables.
    directory: SegmentColumn<u32>,
    /// Words that do not fit into the line of their bucket: their count, then the words.
    overflow: SegmentColumn<CacheLine>,
}

impl<C: FingerprintCode> HammingSegment<C> {
    /// Builds an index; the row of a fingerprint is its position. Bits above those of the plan must
    /// be 0.
    ///
    /// # Errors
    /// Returns an error if there are 2³¹ fingerprints or more, or if memory cannot be allocated.
    pub fn build_index(plan: &HammingPlan, codes: &(impl CodeSource<C> + ?Sized)) -> Result<Self> {
        build::build_segment(plan, codes)
    }

    /// Builds an index as [`build_index`](Self::build_index) does, and writes its file without holding the
    /// index in memory. Columns that cannot be written yet are put aside in buffers.
    ///
    /// `out` receives the file from byte [`front_length`](Self::front_length) on. The front is returned, because it
    /// holds the checksums of what follows it.
    ///
    /// # Errors
    /// Returns the errors of `build_index`, and those of `codes`, `out` and the buffers.
    pub fn build_file<B: ColumnBuffer>(
        plan: &HammingPlan,
        codes: &(impl CodeSource<C> + ?Sized),
        memory: BuildMemory,
        new_buffer: impl Fn() -> B,
        out: &mut dyn Write,
    ) -> Result<Vec<u8>> {
        file::build_file::<C, B>(plan, codes, memory, new_buffer, out)
    }

    /// Uses another instruction set, for benchmarks and tests.
    pub fn with_instructions(self, cpu: Cpu) -> Self {
        Self { cpu, ..self }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the number of different fingerprints.
    pub fn distinct_count(&self) -> usize {
        self.distinct
    }

    /// Returns the plan of the index.
    pub fn plan(&self) -> &HammingPlan {
        &self.plan
    }

    /// Returns the size in bytes, in memory or in the file.
    pub fn size_in_bytes(&self) -> usize {
        let tables = self.tables.iter().map(|table| {
            size_of_val(&table.lines[..])
                + size_of_val(&table.directory[..])
                + size_of_val(&table.overflow[..])
        });
        tables.sum::<usize>()
            + self.rests.len()
            + size_of_val(&self.ids[..])
            + size_of_val(&self.lists[..])
    }

    /// Calls `visit` with every row and its fingerprint, in the order of the buckets.
    pub fn visit_rows(&self, mut visit: impl FnMut(u32, C)) {
        let directory = &self.tables[0].directory[..];
        let (ids, lists) = (&self.ids[..], &self.lists[..]);
        let mut words = Vec::new();
        for bucket in 0..directory.len() - 1 {
            let (start, end) = (directory[bucket] as usize, directory[bucket + 1] as usize);
            self.bucket_words(bucket as BucketNumber, start, end, &mut words);
            for (position, &word) in (start..end).zip(&words) {
                let code = self.code_layout.restore_code(
                    bucket as BucketNumber,
                    word,
                    self.rest_at(position),
                );
                for &row in rows_of_entry(ids[position], position, ids, lists) {
                    visit(row, code);
                }
            }
        }
    }

    /// Copies the words of a bucket of the first table to `words`, in the order of their positions.
    fn bucket_words(&self, bucket: BucketNumber, start: usize, end: usize, words: &mut Vec<u32>) {
        words.clear();
        let table = &self.tables[0];
        match self.plan.bucket_layout() {
            BucketLayout::Packed => {
                let all: &[u32] = bytemuck::cast_slice(&table.lines);
                words.extend_from_slice(&all[start..end]);
            }
            BucketLayout::Lines => {
                let line = &table.lines[bucket as usize].0;
                if line[0] > line[1] {
                    words.extend_from_slice(&line[..LINE - 1]);
                    let all: &[u32] = bytemuck::cast_slice(&table.overflow);
                    let from = line[LINE - 1] as usize * LINE;
                    words.extend_from_slice(&all[from + 1..][..all[from] as usize]);
                } else {
                    // More words than a line holds are all equal.
                    words.extend_from_slice(&line[..LINE.min(end - start)]);
                    words.resize(end - start, line[LINE - 1]);
                }
            }
        }
    }

    #[inline(always)]
    fn rest_at(&self, position: usize) -> u128 {
        read_rest(&self.rests, self.code_layout.rest_bytes(), position)
    }
}

/// Reads the rest at a position; a rest has `width` bytes.
#[inline(always)]
fn read_rest(rests: &[u8], width: usize, position: usize) -> u128 {
    let bytes = &rests[position * width..][..width];
    match *bytes {
        [] => 0,
        [byte] => byte.into(),
        [low, high] => u16::from_le_bytes([low, high]).into(),
        _ => {
            let mut wide = [0; 16];
            wide[..width].copy_from_slice(bytes);
            u128::from_le_bytes(wide)
        }
    }
}

/// Returns the rows of an entry.
#[inline(always)]
fn rows_of_entry<'a>(id: u32, position: usize, ids: &'a [u32], lists: &'a [u32]) -> &'a [u32] {
    if id < LIST_FLAG {
        return &ids[position..=position];
    }
    let at = (id - LIST_FLAG) as usize;
    &lists[at + 1..][..lists[at] as usize]
}
