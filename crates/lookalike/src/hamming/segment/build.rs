//! Builds a segment: distributes the fingerprints by bucket into parts that fit the cache, sorts
//! each part there, and writes it to its final place.
//!
//! Each table takes one pass over the fingerprints to count, and one more pass per slice of parts
//! to distribute. There is one slice unless the distributed copy exceeds 4 GiB, so a billion
//! fingerprints are built in the memory of the result and 4 GiB more. Every bucket is sorted at the
//! end, so the bytes do not depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::columns::ColumnMut;
use super::fingerprint_layout::FingerprintLayout;
use super::neighbourhoods::build_neighbourhoods;
use super::{HammingSegment, LISTED, TableColumns};
use crate::arch::{Arch, CacheLine, Cpu, Kernel, LINE};
use crate::error::{Error, ErrorKind, Result};
use crate::hamming::fingerprint_code::FingerprintCode;
use crate::hamming::key::{BlockKey, BucketNumber};
use crate::hamming::plan::{BucketLayout, HammingPlan};

/// Fingerprints that several threads can read several times.
pub trait CodeSource<C>: Sync {
    /// Returns the number of fingerprints.
    fn code_count(&self) -> usize;

    /// Copies the fingerprints from row `from` on, until `into` is full.
    fn read_codes(&self, from: usize, into: &mut [C]);
}

impl<C: FingerprintCode> CodeSource<C> for [C] {
    fn code_count(&self) -> usize {
        self.len()
    }

    fn read_codes(&self, from: usize, into: &mut [C]) {
        into.copy_from_slice(&self[from..from + into.len()]);
    }
}

/// Approximate largest size of a distributed copy in bytes.
const SLICE_BYTES: usize = 1 << 32;

/// Approximate number of entries of a part, so that it is sorted in the second-level cache.
const PART: usize = 8 << 10;

/// Fingerprints that are read at once.
const CHUNK: usize = 1 << 10;

/// Parts that are sorted before their results are written.
const PARTS_AT_ONCE: usize = 256;

/// Builds all tables.
pub(super) fn build_segment<C: FingerprintCode>(
    plan: &HammingPlan,
    codes: &(impl CodeSource<C> + ?Sized),
) -> Result<HammingSegment<C>> {
    let rows = codes.code_count();
    if rows >= LISTED as usize {
        return Err(Error::new(
            ErrorKind::Limit,
            format!(
                "{rows} fingerprints are more than the {} of one segment",
                LISTED - 1
            ),
        ));
    }
    let code_layout = FingerprintLayout::new(plan);
    let first = build_first(plan, &code_layout, codes)?;
    let mut tables = vec![first.table];
    for table in 1..plan.plan_tables().len() {
        tables.push(build_other(plan, &code_layout, table, codes)?);
    }
    let mut segment = HammingSegment {
        plan: plan.clone(),
        code_layout,
        rows,
        distinct: first.distinct,
        tables,
        rests: first.rests,
        ids: first.ids,
        lists: first.lists,
        cpu: Cpu::detect_best(),
        codes: std::marker::PhantomData,
    };
    if let Some(key) = plan.neighbourhood_key() {
        let table = build_neighbourhoods(&segment, &key)?;
        segment.tables.push(table);
    }
    Ok(segment)
}

/// Checks that the places of all row lists fit beside the [`LISTED`] flag. They may not, although the
/// rows do, because a fingerprint with several rows takes one place more than it has rows.
fn check_list_places(rows: usize, places: usize) -> Result<()> {
    if places <= LISTED as usize {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Limit,
        format!(
            "so many of {rows} fingerprints are equal that their rows take more than the {LISTED} places of one \
             segment: build several"
        ),
    ))
}

struct FirstTable {
    table: TableColumns,
    distinct: usize,
    rests: super::columns::SegmentColumn<u8>,
    ids: super::columns::SegmentColumn<u32>,
    lists: super::columns::SegmentColumn<u32>,
}

fn build_first<C: FingerprintCode>(
    plan: &HammingPlan,
    code_layout: &FingerprintLayout,
    codes: &(impl CodeSource<C> + ?Sized),
) -> Result<FirstTable> {
    let rows = codes.code_count();
    let key = plan.plan_tables()[0].key;
    let width = code_layout.rest_bytes();
    let mut writer = SegmentTableWriter::new(plan.bucket_layout(), &key, rows, true)?;
    let mut rests = ColumnMut::<u8>::allocate_zeroed(rows * width)?;
    let mut ids = ColumnMut::<u32>::allocate_zeroed(rows)?;
    let mut lists: Vec<u32> = Vec::new();
    let parting = BucketParting::new(&key, rows);
    let entry_of = |code: C, row: u32, _: BucketNumber| code.pack_entry(row);
    let counts = parting.count_rows(&key, codes);
    for slice in parting.part_slices::<C::Entry>() {
        let parted = parting.part_rows(&slice, &counts, &key, codes, entry_of)?;
        for some in part_batches(&slice) {
            let sorted: Vec<_> = some
                .clone()
                .into_par_iter()
                .map_init(Vec::new, |scratch, part| {
                    let entries: Vec<_> = parted
                        .iter()
                        .map(|task| task.entries_of_part(part - slice.start))
                        .collect();
                    sort_first::<C>(
                        &parting,
                        part,
                        &key,
                        code_layout,
                        plan.bucket_layout(),
                        &entries,
                        scratch,
                    )
                })
                .collect();
            let start = writer.next;
            writer.write_parts(some.start, &parting, sorted.iter().map(|part| &part.table))?;
            // The lists of a part follow those of the parts before it.
            let mut bases = Vec::with_capacity(sorted.len());
            for part in &sorted {
                check_list_places(rows, lists.len() + part.lists.len())?;
                bases.push(lists.len() as u32);
                lists.extend(&part.lists);
            }
            let mut rests = &mut rests[start * width..writer.next * width];
            let mut ids = &mut ids[start..writer.next];
            let mut places = Vec::with_capacity(sorted.len());
            for part in &sorted {
                let (own_rests, behind) = rests.split_at_mut(part.rests.len());
                let (own_ids, ids_behind) = ids.split_at_mut(part.ids.len());
                places.push((own_rests, own_ids));
                (rests, ids) = (behind, ids_behind);
            }
            let places = places.into_par_iter().zip(&sorted).zip(bases);
            places.for_each(|(((own_rests, own_ids), part), base)| {
                own_rests.copy_from_slice(&part.rests);
                for (place, &id) in own_ids.iter_mut().zip(&part.ids) {
                    *place = if id >= LISTED { id + base } else { id };
                }
            });
        }
    }
    let distinct = writer.next;
    let mut all_lists = ColumnMut::allocate_zeroed(lists.len())?;
    all_lists.copy_from_slice(&lists);
    Ok(FirstTable {
        table: writer.finish_table()?,
        distinct,
        rests: rests.into_read_only(distinct * width)?,
        ids: ids.into_read_only(distinct)?,
        lists: all_lists.into_read_only(lists.len())?,
    })
}

fn build_other<C: FingerprintCode>(
    plan: &HammingPlan,
    code_layout: &FingerprintLayout,
    table: usize,
    codes: &(impl CodeSource<C> + ?Sized),
) -> Result<TableColumns> {
    let key = plan.plan_tables()[table].key;
    let mut writer =
        SegmentTableWriter::new(plan.bucket_layout(), &key, codes.code_count(), false)?;
    let parting = BucketParting::new(&key, codes.code_count());
    let entry_of = |code: C, _: u32, bucket: BucketNumber| {
        u64::from(bucket) << 32 | u64::from(code_layout.table_word(table, code))
    };
    let counts = parting.count_rows(&key, codes);
    for slice in parting.part_slices::<u64>() {
        let parted = parting.part_rows(&slice, &counts, &key, codes, entry_of)?;
        for some in part_batches(&slice) {
            let sorted: Vec<_> = some
                .clone()
                .into_par_iter()
                .map(|part| {
                    let entries: Vec<_> = parted
                        .iter()
                        .map(|task| task.entries_of_part(part - slice.start))
                        .collect();
                    sort_other(&parting, part, plan.bucket_layout(), &entries)
                })
                .collect();
            writer.write_parts(some.start, &parting, sorted.iter())?;
        }
    }
    writer.finish_table()
}

fn part_batches(slice: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = slice.end;
    let starts = slice.clone().step_by(PARTS_AT_ONCE);
    starts.map(move |start| start..(start + PARTS_AT_ONCE).min(end))
}

/// Division of the buckets of a table into parts.
struct BucketParting {
    rows: usize,
    /// Bits of a bucket number within its part.
    local_bits: u32,
    parts: usize,
}

/// Entries that one thread distributed: those of part p are `starts[p]..starts[p + 1]`.
struct PartedEntries<E> {
    entries: ColumnMut<E>,
    starts: Vec<usize>,
}

impl<E: bytemuck::Pod> PartedEntries<E> {
    fn entries_of_part(&self, part: usize) -> &[E] {
        &self.entries[self.starts[part]..self.starts[part + 1]]
    }
}

impl BucketParting {
    fn new(key: &BlockKey, rows: usize) -> Self {
        let part_bits = (rows / PART).max(1).ilog2().min(key.bucket_bits());
        Self {
            rows,
            local_bits: key.bucket_bits() - part_bits,
            parts: 1 << part_bits,
        }
    }

    /// Returns ranges of parts that are distributed in one pass each.
    fn part_slices<E>(&self) -> impl Iterator<Item = Range<usize>> + use<E> {
        let slices = (self.rows * size_of::<E>()).div_ceil(SLICE_BYTES).max(1);
        let length = self.parts.div_ceil(slices);
        let parts = self.parts;
        (0..parts)
            .step_by(length)
            .map(move |start| start..(start + length).min(parts))
    }

    fn buckets_per_part(&self) -> usize {
        1 << self.local_bits
    }

    /// Returns the rows of every thread.
    fn thread_rows(&self) -> impl IndexedParallelIterator<Item = Range<usize>> + use<> {
        let (rows, tasks) = (self.rows, rayon::current_num_threads());
        let length = rows.div_ceil(tasks).max(1);
        let start = move |task: usize| (task * length).min(rows);
        (0..tasks)
            .into_par_iter()
            .map(move |task| start(task)..start(task + 1))
    }

    fn part_of_bucket(&self, bucket: BucketNumber) -> usize {
        (bucket >> self.local_bits) as usize
    }

    /// Returns, for every thread, its number of rows per part.
    fn count_rows<C: FingerprintCode>(
        &self,
        key: &BlockKey,
        codes: &(impl CodeSource<C> + ?Sized),
    ) -> Vec<Vec<u32>> {
        let of_rows = |rows| {
            let mut counts = vec![0; self.parts];
            each_bucket(rows, key, codes, |_, _, bucket| {
                counts[self.part_of_bucket(bucket)] += 1;
            });
            counts
        };
        self.thread_rows().map(of_rows).collect()
    }

    fn part_rows<C: FingerprintCode, E: bytemuck::Pod + Send + Sync>(
        &self,
        slice: &Range<usize>,
        counts: &[Vec<u32>],
        key: &BlockKey,
        codes: &(impl CodeSource<C> + ?Sized),
        entry_of: impl Fn(C, u32, BucketNumber) -> E + Copy + Sync,
    ) -> Result<Vec<PartedEntries<E>>> {
        let tasks = self.thread_rows().zip(counts);
        tasks
            .map(|(rows, counts)| {
                let mut starts = Vec::with_capacity(slice.len() + 1);
                let mut end = 0;
                starts.push(end);
                for &count in &counts[slice.clone()] {
                    end += count as usize;
                    starts.push(end);
                }
                let mut entries = ColumnMut::allocate_zeroed(end)?;
                let mut next = starts.clone();
                let places = &mut entries[..];
                each_bucket(rows, key, codes, |row, code, bucket| {
                    if let Some(next) = self
                        .part_of_bucket(bucket)
                        .checked_sub(slice.start)
                        .and_then(|part| next[..slice.len()].get_mut(part))
                    {
                        places[*next] = entry_of(code, row as u32, bucket);
                        *next += 1;
                    }
                });
                Ok(PartedEntries { entries, starts })
            })
            .collect()
    }
}

/// Calls `visit` with every row, its fingerprint and its bucket.
fn each_bucket<C: FingerprintCode>(
    rows: Range<usize>,
    key: &BlockKey,
    codes: &(impl CodeSource<C> + ?Sized),
    mut visit: impl FnMut(usize, C, BucketNumber),
) {
    let cpu = Cpu::detect_best();
    let mut chunk = [C::default(); CHUNK];
    let mut buckets = [0; CHUNK];
    let mut from = rows.start;
    while from < rows.end {
        let length = CHUNK.min(rows.end - from);
        codes.read_codes(from, &mut chunk[..length]);
        cpu.run(BucketsKernel {
            key,
            codes: &chunk[..length],
            buckets: &mut buckets[..length],
        });
        for (at, (&code, &bucket)) in chunk[..length].iter().zip(&buckets).enumerate() {
            visit(from + at, code, bucket);
        }
        from += length;
    }
}

struct BucketsKernel<'a, C> {
    key: &'a BlockKey,
    codes: &'a [C],
    buckets: &'a mut [BucketNumber],
}

impl<C: FingerprintCode> Kernel for BucketsKernel<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, _arch: A) {
        for (bucket, &code) in self.buckets.iter_mut().zip(self.codes) {
            *bucket = self.key.bucket_of(code);
        }
    }
}

/// A part of a table, in the order in which it is written.
#[derive(Default)]
struct TablePart {
    /// Words of all buckets, bucket by bucket.
    words: Vec<u32>,
    /// Number of words per bucket.
    counts: Vec<u32>,
    /// First lines of the buckets, only for [`BucketLayout::Lines`].
    lines: Vec<CacheLine>,
    overflow: Vec<CacheLine>,
}

impl TablePart {
    fn with_capacity(entries: usize, buckets: usize, layout: BucketLayout) -> Self {
        let lines = if layout == BucketLayout::Lines {
            buckets
        } else {
            0
        };
        Self {
            words: Vec::with_capacity(entries),
            counts: Vec::with_capacity(buckets),
            lines: Vec::with_capacity(lines),
            overflow: Vec::new(),
        }
    }

    /// Ends a bucket whose words begin at `start` of `words`.
    fn end_bucket(&mut self, start: usize, layout: BucketLayout) {
        let words = &self.words[start..];
        self.counts.push(words.len() as u32);
        if layout == BucketLayout::Packed {
            return;
        }
        let mut line = [words.last().copied().unwrap_or(0); LINE];
        let direct = words.len().min(LINE);
        line[..direct].copy_from_slice(&words[..direct]);
        if overflows_line(words) {
            line[LINE - 1] = self.overflow.len() as u32;
            let rest = &words[LINE - 1..];
            let count = [rest.len() as u32];
            let mut all = count.iter().chain(rest).copied();
            while let Some(first) = all.next() {
                let mut line = [rest[rest.len() - 1]; LINE];
                line[0] = first;
                for (slot, word) in line[1..].iter_mut().zip(all.by_ref().take(LINE - 1)) {
                    *slot = word;
                }
                self.overflow.push(CacheLine(line));
            }
        }
        self.lines.push(CacheLine(line));
    }
}

/// Returns `true` if a bucket of these words, in writing order, continues in the overflow. The mark
/// of such a bucket is that its first word is larger than its second.
fn overflows_line(words: &[u32]) -> bool {
    words.len() > LINE && words[0] > words[1]
}

/// A part of the first table, with the rests and rows of its fingerprints. The id of a fingerprint
/// with several rows is [`LISTED`] plus the place of its list in `lists`.
struct FirstPart {
    table: TablePart,
    rests: Vec<u8>,
    ids: Vec<u32>,
    lists: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct SortableCode<C> {
    word: u32,
    row: u32,
    code: C,
}

fn sort_first<C: FingerprintCode>(
    parting: &BucketParting,
    part: usize,
    key: &BlockKey,
    code_layout: &FingerprintLayout,
    layout: BucketLayout,
    entries: &[&[C::Entry]],
    scratch: &mut Vec<SortableCode<C>>,
) -> FirstPart {
    let local = |code: C| key.bucket_of(code) as usize - (part << parting.local_bits);
    let mut starts = vec![0u32; parting.buckets_per_part() + 1];
    let mut places = Vec::new();
    for &entry in entries.iter().copied().flatten() {
        let bucket = local(C::unpack_entry(entry).0);
        places.push(bucket as u32);
        starts[bucket + 1] += 1;
    }
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    let mut next = starts.clone();
    scratch.clear();
    scratch.resize(places.len(), SortableCode::default());
    for (&entry, &bucket) in entries.iter().copied().flatten().zip(&places) {
        let (code, row) = C::unpack_entry(entry);
        let word = code_layout.table_word(0, code);
        scratch[next[bucket as usize] as usize] = SortableCode { word, row, code };
        next[bucket as usize] += 1;
    }
    let width = code_layout.rest_bytes();
    let mut sorted = FirstPart {
        table: TablePart::with_capacity(places.len(), parting.buckets_per_part(), layout),
        rests: Vec::with_capacity(places.len() * width),
        ids: Vec::with_capacity(places.len()),
        lists: Vec::new(),
    };
    for bucket in 0..parting.buckets_per_part() {
        let entries = &mut scratch[starts[bucket] as usize..starts[bucket + 1] as usize];
        entries.sort_unstable_by_key(|entry| (entry.word, entry.code, entry.row));
        sorted.push_bucket(entries, code_layout, layout);
    }
    sorted
}

impl FirstPart {
    /// Adds a bucket: its fingerprints ascend by word. If the bucket overflows, the last one moves
    /// to the front as the mark.
    fn push_bucket<C: FingerprintCode>(
        &mut self,
        entries: &[SortableCode<C>],
        code_layout: &FingerprintLayout,
        layout: BucketLayout,
    ) {
        let start = self.table.words.len();
        let width = code_layout.rest_bytes();
        for same in entries.chunk_by(|a, b| a.code == b.code) {
            self.table.words.push(same[0].word);
            let rest = code_layout.rest_bits(same[0].code).to_le_bytes();
            self.rests.extend_from_slice(&rest[..width]);
            if same.len() == 1 {
                self.ids.push(same[0].row);
            } else {
                self.ids.push(LISTED | self.lists.len() as u32);
                self.lists.push(same.len() as u32);
                self.lists.extend(same.iter().map(|entry| entry.row));
            }
        }
        let words = &mut self.table.words[start..];
        if layout == BucketLayout::Lines && words.len() > LINE && words[0] < words[words.len() - 1]
        {
            words.rotate_right(1);
            self.ids[start..].rotate_right(1);
            self.rests[start * width..].rotate_right(width);
        }
        self.table.end_bucket(start, layout);
    }
}

fn sort_other(
    parting: &BucketParting,
    part: usize,
    layout: BucketLayout,
    entries: &[&[u64]],
) -> TablePart {
    let local = |entry: u64| (entry >> 32) as usize - (part << parting.local_bits);
    let mut starts = vec![0u32; parting.buckets_per_part() + 1];
    let count = entries.iter().map(|some| some.len()).sum();
    for &entry in entries.iter().copied().flatten() {
        starts[local(entry) + 1] += 1;
    }
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    let mut next = starts.clone();
    let mut words = vec![0u32; count];
    for &entry in entries.iter().copied().flatten() {
        let place = &mut next[local(entry)];
        words[*place as usize] = entry as u32;
        *place += 1;
    }
    let mut sorted = TablePart::with_capacity(count, parting.buckets_per_part(), layout);
    for bucket in 0..parting.buckets_per_part() {
        let own = &mut words[starts[bucket] as usize..starts[bucket + 1] as usize];
        own.sort_unstable();
        let start = sorted.words.len();
        for same in own.chunk_by(|a, b| a == b) {
            sorted.words.push(same[0]);
        }
        let distinct = &mut sorted.words[start..];
        if layout == BucketLayout::Lines && distinct.len() > LINE {
            distinct.rotate_right(1);
        }
        sorted.end_bucket(start, layout);
    }
    sorted
}

/// A table that is written part by part.
struct SegmentTableWriter {
    layout: BucketLayout,
    lines: ColumnMut<CacheLine>,
    directory: ColumnMut<u32>,
    overflow: Vec<CacheLine>,
    /// Number of words written.
    next: usize,
}

impl SegmentTableWriter {
    fn new(layout: BucketLayout, key: &BlockKey, rows: usize, is_first: bool) -> Result<Self> {
        let lines = match layout {
            BucketLayout::Lines => key.bucket_count(),
            BucketLayout::Packed => rows.div_ceil(LINE),
        };
        let directory = if is_first || layout == BucketLayout::Packed {
            key.bucket_count() + 1
        } else {
            0
        };
        Ok(Self {
            layout,
            lines: ColumnMut::allocate_zeroed(lines)?,
            directory: ColumnMut::allocate_zeroed(directory)?,
            overflow: Vec::new(),
            next: 0,
        })
    }

    /// Writes consecutive parts, beginning with part number `first`.
    fn write_parts<'a>(
        &mut self,
        first: usize,
        parting: &BucketParting,
        parts: impl Iterator<Item = &'a TablePart> + Clone,
    ) -> Result<()> {
        let count = parts.clone().count();
        let buckets = parting.buckets_per_part();
        let range = first * buckets..(first + count) * buckets;
        let mut starts = Vec::with_capacity(count);
        let mut overflows = Vec::with_capacity(count);
        let start = self.next;
        for part in parts.clone() {
            starts.push(self.next);
            self.next += part.words.len();
            overflows.push(self.overflow.len() as u32);
            self.overflow.extend_from_slice(&part.overflow);
        }
        if self.overflow.len() > u32::MAX as usize {
            return Err(Error::new(
                ErrorKind::Limit,
                "more than 2^32 lines overflow: use a packed plan",
            ));
        }
        let parts: Vec<_> = parts.collect();
        if !self.directory.is_empty() {
            // A bucket starts at its entry of the directory and ends at the next one.
            let directory = &mut self.directory[range.start + 1..range.end + 1];
            let places = directory.par_chunks_mut(buckets).zip(&parts).zip(&starts);
            places.for_each(|((places, part), &start)| {
                let mut end = start as u32;
                for (place, count) in places.iter_mut().zip(&part.counts) {
                    end += count;
                    *place = end;
                }
            });
        }
        match self.layout {
            BucketLayout::Lines => {
                let places = self.lines[range].par_chunks_mut(buckets);
                let places = places.zip(&parts).zip(&overflows);
                places.for_each(|((places, part), base)| {
                    for ((place, line), &count) in
                        places.iter_mut().zip(&part.lines).zip(&part.counts)
                    {
                        *place = *line;
                        if count as usize > LINE && line.0[0] > line.0[1] {
                            place.0[LINE - 1] += base;
                        }
                    }
                });
            }
            BucketLayout::Packed => {
                let words: &mut [u32] = bytemuck::cast_slice_mut(&mut self.lines);
                let mut words = &mut words[start..self.next];
                let mut places = Vec::with_capacity(parts.len());
                for part in &parts {
                    let (own, behind) = words.split_at_mut(part.words.len());
                    places.push(own);
                    words = behind;
                }
                let places = places.into_par_iter().zip(&parts);
                places.for_each(|(place, part)| place.copy_from_slice(&part.words));
            }
        }
        Ok(())
    }

    fn finish_table(self) -> Result<TableColumns> {
        let lines = match self.layout {
            BucketLayout::Lines => self.lines.len(),
            BucketLayout::Packed => self.next.div_ceil(LINE),
        };
        let directory = self.directory.len();
        let mut overflow = ColumnMut::allocate_zeroed(self.overflow.len())?;
        overflow.copy_from_slice(&self.overflow);
        Ok(TableColumns {
            lines: self.lines.into_read_only(lines)?,
            directory: self.directory.into_read_only(directory)?,
            overflow: overflow.into_read_only(self.overflow.len())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_row_lists_are_limited() {
        for (places, fits) in [
            ((1 << 31) - 1, true),
            (1 << 31, true),
            ((1 << 31) + 1, false),
        ] {
            assert_eq!(check_list_places(7, places).is_ok(), fits, "{places}");
        }
    }
}
