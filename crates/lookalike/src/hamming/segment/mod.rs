//! An immutable index: built once, kept in a file, asked by many.
//!
//! **What it guarantees.** A look-up reports every fingerprint within the distance, once per row,
//! and nothing else: the answer of [`scan`](crate::hamming::scan::scan). The bytes of an index
//! depend on plan and fingerprints alone.
//!
//! **How it lies in memory.** Every table of the [plan](crate::hamming::Plan) puts fingerprints into
//! buckets, of which it keeps 32 bits each, so that a look-up compares sixteen with one instruction.
//! Only the first table knows the rest of a fingerprint and its row; equal fingerprints are one
//! entry there with a list of rows. What another table finds near is looked up in the first by the
//! bits that decide its bucket. So a fingerprint of 64 bits and distance 3 takes 15–19 bytes, row
//! included.
//!
//! **What it costs.** A look-up is a random cache line per bucket visited (31 at 64 bits and
//! distance 3): queries are handled in groups whose lines are asked for ahead. Building goes through
//! the fingerprints once per table and once more per slice of buckets, and takes at most 4 GiB for a
//! slice beside the result.
//!
//! **What it does not do.** It never changes: a [live](crate::hamming::live) index does. It knows
//! rows, not ids.

mod anatomy;
mod build;
mod columns;
mod file;
mod search;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

pub(in crate::hamming) use anatomy::Anatomy;
pub use build::Codes;
use columns::Column;
pub use search::{Match, Search};

use super::code::Code;
use super::key::Bucket;
use super::plan::{Layout, Plan};
use crate::arch::{Cpu, LINE, Line};
use crate::error::Result;

/// An id with this bit is not a row but the place of a list of rows.
const LISTED: u32 = 1 << 31;

/// An immutable index.
#[derive(Clone, Debug)]
pub struct Segment<C> {
    plan: Plan,
    anatomy: Anatomy,
    rows: usize,
    distinct: usize,
    tables: Vec<TableColumns>,
    rests: Column<u8>,
    ids: Column<u32>,
    lists: Column<u32>,
    cpu: Cpu,
    codes: PhantomData<C>,
}

#[derive(Clone, Debug)]
struct TableColumns {
    lines: Column<Line>,
    /// Where every bucket starts among the distinct fingerprints of the first table, or the words of
    /// a packed one; empty for others.
    directory: Column<u32>,
    /// What does not find room in a line: the count, then that many words.
    overflow: Column<Line>,
}

impl<C: Code> Segment<C> {
    /// Builds an index; a fingerprint's row is its position. Bits above those of the plan must
    /// be 0.
    ///
    /// # Errors
    /// If there are 2³¹ − 1 fingerprints or more, or there is not the memory.
    pub fn build(plan: &Plan, codes: &(impl Codes<C> + ?Sized)) -> Result<Self> {
        build::build(plan, codes)
    }

    /// With another instruction set: for benchmarks and tests.
    pub fn with_cpu(self, cpu: Cpu) -> Self {
        Self { cpu, ..self }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Different fingerprints.
    pub fn distinct(&self) -> usize {
        self.distinct
    }

    /// How it finds.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Bytes of memory or file.
    pub fn bytes(&self) -> usize {
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

    /// Calls back with every row and its fingerprint, in the order of the buckets.
    pub fn for_each(&self, mut visit: impl FnMut(u32, C)) {
        let directory = &self.tables[0].directory[..];
        let (ids, lists) = (&self.ids[..], &self.lists[..]);
        let mut words = Vec::new();
        for bucket in 0..directory.len() - 1 {
            let (start, end) = (directory[bucket] as usize, directory[bucket + 1] as usize);
            self.bucket_words(bucket as Bucket, start, end, &mut words);
            for (position, &word) in (start..end).zip(&words) {
                let code = self
                    .anatomy
                    .code(bucket as Bucket, word, self.rest(position));
                for &row in rows(ids[position], position, ids, lists) {
                    visit(row, code);
                }
            }
        }
    }

    /// The words of a bucket of the first table, in the order of their positions.
    fn bucket_words(&self, bucket: Bucket, start: usize, end: usize, words: &mut Vec<u32>) {
        words.clear();
        let table = &self.tables[0];
        match self.plan.layout() {
            Layout::Packed => {
                let all: &[u32] = bytemuck::cast_slice(&table.lines);
                words.extend_from_slice(&all[start..end]);
            }
            Layout::Lines => {
                let line = &table.lines[bucket as usize].0;
                if line[0] > line[1] {
                    words.extend_from_slice(&line[..LINE - 1]);
                    let all: &[u32] = bytemuck::cast_slice(&table.overflow);
                    let from = line[LINE - 1] as usize * LINE;
                    words.extend_from_slice(&all[from + 1..][..all[from] as usize]);
                } else {
                    // More than a line holds are all the same.
                    words.extend_from_slice(&line[..LINE.min(end - start)]);
                    words.resize(end - start, line[LINE - 1]);
                }
            }
        }
    }

    #[inline(always)]
    fn rest(&self, position: usize) -> u128 {
        read_rest(&self.rests, self.anatomy.rest_bytes(), position)
    }
}

/// A rest of this many bytes.
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

/// The rows of an entry.
#[inline(always)]
fn rows<'a>(id: u32, position: usize, ids: &'a [u32], lists: &'a [u32]) -> &'a [u32] {
    if id < LISTED {
        return &ids[position..=position];
    }
    let at = (id - LISTED) as usize;
    &lists[at + 1..][..lists[at] as usize]
}
