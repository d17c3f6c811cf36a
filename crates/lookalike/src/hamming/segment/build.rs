//! Builds a segment: distributes the fingerprints by bucket into parts that fit the cache, sorts
//! each part there, and hands the parts in order to a [`SegmentSink`], which keeps or writes them.
//!
//! Each table takes one pass over the fingerprints to count, and one more pass per slice of parts
//! to distribute. There is one slice unless the distributed copy exceeds the bytes of a slice, so the
//! memory beyond the result is that of a slice and of the parts that are being sorted. Every bucket is sorted at the end, so the bytes depend
//! neither on the number of threads nor on the size of a slice.

use std::io;
use std::ops::Range;

use rayon::prelude::*;

use super::columns::ColumnMut;
use super::fingerprint_layout::FingerprintLayout;
use super::neighbourhoods::build_neighbourhoods;
use super::sink::{MemorySink, SegmentSink, TableSizes};
use super::{HammingSegment, LIST_FLAG};
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
    ///
    /// # Errors
    /// Returns the error of the place from which the fingerprints are read.
    fn read_codes(&self, from: usize, into: &mut [C]) -> io::Result<()>;
}

impl<C: FingerprintCode> CodeSource<C> for [C] {
    fn code_count(&self) -> usize {
        self.len()
    }

    fn read_codes(&self, from: usize, into: &mut [C]) -> io::Result<()> {
        into.copy_from_slice(&self[from..from + into.len()]);
        Ok(())
    }
}

/// Memory that building may take in addition to its result.
#[derive(Clone, Copy, Debug)]
pub struct BuildMemory {
    /// Approximate largest size of a distributed copy in bytes. Less means more passes over the
    /// fingerprints.
    pub slice_bytes: usize,
    /// Largest number of bytes for distributing and sorting a part. It cannot be divided, so building fails if
    /// very many fingerprints share a bucket. `None` if there is no limit.
    pub most_bytes: Option<usize>,
}

impl Default for BuildMemory {
    /// Slices of 4 GiB, or of all memory where addresses have 32 bits.
    fn default() -> Self {
        Self {
            slice_bytes: usize::try_from(1_u64 << 32).unwrap_or(usize::MAX),
            most_bytes: None,
        }
    }
}

/// Approximate number of entries of a part, so that it is sorted in the second-level cache.
const ENTRIES_PER_PART: usize = 8 << 10;

/// Fingerprints that are read at once.
const CODES_PER_CHUNK: usize = 1 << 10;

/// Parts that are sorted before their results are written.
const PARTS_AT_ONCE: usize = 256;

/// Approximate bytes that sorting takes for an entry: the sorted copy and what is written of it.
const SORTING_BYTES: usize = 64;

/// Builds all tables in memory.
pub(super) fn build_segment<C: FingerprintCode>(
    plan: &HammingPlan,
    codes: &(impl CodeSource<C> + ?Sized),
) -> Result<HammingSegment<C>> {
    let rows = check_rows(codes)?;
    let code_layout = FingerprintLayout::new(plan);
    let mut sink = MemorySink::new(rows, code_layout.rest_bytes())?;
    let distinct = build_tables(plan, &code_layout, codes, BuildMemory::default(), &mut sink)?;
    let columns = sink.finish_columns()?;
    let mut segment = HammingSegment {
        plan: plan.clone(),
        code_layout,
        rows,
        distinct,
        tables: columns.tables,
        rests: columns.rests,
        ids: columns.ids,
        lists: columns.lists,
        cpu: Cpu::detect_best(),
        codes: std::marker::PhantomData,
    };
    if let Some(key) = plan.neighbourhood_key() {
        let table = build_neighbourhoods(&segment, &key)?;
        segment.tables.push(table);
    }
    Ok(segment)
}

/// Returns the number of fingerprints, which must be below 2³¹ ([`LIST_FLAG`]).
pub(super) fn check_rows<C>(codes: &(impl CodeSource<C> + ?Sized)) -> Result<usize> {
    let rows = codes.code_count();
    if rows < LIST_FLAG as usize {
        return Ok(rows);
    }
    Err(Error::new(
        ErrorKind::Limit,
        format!(
            "{rows} fingerprints are more than the {} of one segment",
            LIST_FLAG - 1
        ),
    ))
}

/// Hands all tables of a plan except stored neighbourhoods to a sink. Returns the number of different
/// fingerprints.
pub(super) fn build_tables<C: FingerprintCode>(
    plan: &HammingPlan,
    code_layout: &FingerprintLayout,
    codes: &(impl CodeSource<C> + ?Sized),
    memory: BuildMemory,
    sink: &mut impl SegmentSink,
) -> Result<usize> {
    let build = TableBuild {
        plan,
        code_layout,
        codes,
        memory,
    };
    let distinct = build.build_first(sink)?;
    for table in 1..plan.plan_tables().len() {
        build.build_other(table, sink)?;
    }
    Ok(distinct)
}

/// Checks that the places of all row lists fit beside the [`LIST_FLAG`] flag. They may not, although the
/// rows do, because a fingerprint with several rows takes one place more than it has rows.
fn check_list_places(rows: usize, places: usize) -> Result<()> {
    if places <= LIST_FLAG as usize {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Limit,
        format!(
            "so many of {rows} fingerprints are equal that their rows take more than the {LIST_FLAG} places of one \
             segment: build several"
        ),
    ))
}

/// The inputs of the tables of a segment.
struct TableBuild<'a, S: ?Sized> {
    plan: &'a HammingPlan,
    code_layout: &'a FingerprintLayout,
    codes: &'a S,
    memory: BuildMemory,
}

impl<S: ?Sized> TableBuild<'_, S> {
    fn build_first<C: FingerprintCode>(&self, sink: &mut impl SegmentSink) -> Result<usize>
    where
        S: CodeSource<C>,
    {
        let (plan, code_layout) = (self.plan, self.code_layout);
        let rows = self.codes.code_count();
        let key = plan.plan_tables()[0].key;
        let layout = plan.bucket_layout();
        let parting = BucketParting::new(&key, rows);
        let entry_of = |code: C, row: u32, _: BucketNumber| code.pack_entry(row);
        let mut places = TablePlaces::default();
        let mut list_places = 0;
        sink.begin_table(&TableSizes::new(layout, &key, rows, true))?;
        parting.visit_batches(&key, self.codes, self.memory, entry_of, |batch, slice| {
            let sort = |scratch: &mut Vec<SortableCode<C>>, part| {
                let entries = slice.entries_of_part(part);
                sort_first::<C>(&parting, part, &key, code_layout, layout, &entries, scratch)
            };
            let mut sorted: Vec<FirstPart> =
                batch.into_par_iter().map_init(Vec::new, sort).collect();
            places.place_parts(sorted.iter_mut().map(|part| &mut part.table).collect())?;
            // The lists of a part follow those of the parts before it.
            let mut bases = Vec::with_capacity(sorted.len());
            for part in &sorted {
                check_list_places(rows, list_places + part.lists.len())?;
                bases.push(list_places as u32);
                list_places += part.lists.len();
            }
            let parts = sorted.par_iter_mut().zip(bases);
            parts.for_each(|(part, base)| part.move_lists(base));
            let tables: Vec<_> = sorted.iter().map(|part| &part.table).collect();
            sink.put_tables(&tables)?;
            sink.put_fingerprints(&sorted)
        })?;
        sink.end_table()?;
        Ok(places.words)
    }

    fn build_other<C: FingerprintCode>(
        &self,
        table: usize,
        sink: &mut impl SegmentSink,
    ) -> Result<()>
    where
        S: CodeSource<C>,
    {
        let (code_layout, layout) = (self.code_layout, self.plan.bucket_layout());
        let rows = self.codes.code_count();
        let key = self.plan.plan_tables()[table].key;
        let parting = BucketParting::new(&key, rows);
        let entry_of = |code: C, _: u32, bucket: BucketNumber| {
            u64::from(bucket) << 32 | u64::from(code_layout.table_word(table, code))
        };
        let mut places = TablePlaces::default();
        sink.begin_table(&TableSizes::new(layout, &key, rows, false))?;
        parting.visit_batches(&key, self.codes, self.memory, entry_of, |batch, slice| {
            let sort = |part| sort_other(&parting, part, layout, &slice.entries_of_part(part));
            let mut sorted: Vec<TablePart> = batch.into_par_iter().map(sort).collect();
            places.place_parts(sorted.iter_mut().collect())?;
            sink.put_tables(&sorted.iter().collect::<Vec<_>>())
        })?;
        sink.end_table()
    }
}

/// Division of the buckets of a table into parts.
struct BucketParting {
    rows: usize,
    /// Bits of a bucket number within its part.
    local_bits: u32,
    parts: usize,
}

/// Entries of a slice of parts, as the threads distributed them.
struct PartedSlice<'a, E> {
    /// The first part of the slice.
    first: usize,
    of_threads: Vec<PartedEntries<'a, E>>,
}

/// Entries that one thread distributed: those of part p of the slice are `starts[p]..starts[p + 1]`.
struct PartedEntries<'a, E> {
    entries: &'a [E],
    starts: Vec<usize>,
}

impl<E> PartedSlice<'_, E> {
    fn entries_of_part(&self, part: usize) -> Vec<&[E]> {
        let at = part - self.first;
        let of_thread = |thread: &PartedEntries<'_, E>| thread.starts[at]..thread.starts[at + 1];
        let threads = self.of_threads.iter();
        threads
            .map(|thread| &thread.entries[of_thread(thread)])
            .collect()
    }
}

/// Splits a range of parts into ranges with at most `most_entries` entries and `most_parts` parts each.
/// A part with more entries is a range of its own.
fn split_parts(
    parts: Range<usize>,
    entries: &[usize],
    most_entries: usize,
    most_parts: usize,
) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut open = parts.start..parts.start;
    let mut held = 0;
    for part in parts {
        if !open.is_empty() && (held + entries[part] > most_entries || open.len() == most_parts) {
            ranges.push(std::mem::replace(&mut open, part..part));
            held = 0;
        }
        open.end = part + 1;
        held += entries[part];
    }
    ranges.push(open);
    ranges
}

impl BucketParting {
    fn new(key: &BlockKey, rows: usize) -> Self {
        let part_bits = (rows / ENTRIES_PER_PART)
            .max(1)
            .ilog2()
            .min(key.bucket_bits());
        Self {
            rows,
            local_bits: key.bucket_bits() - part_bits,
            parts: 1 << part_bits,
        }
    }

    /// Distributes the fingerprints slice by slice, and calls `visit` with consecutive parts that are
    /// sorted at once.
    fn visit_batches<C: FingerprintCode, E: bytemuck::Pod + Send + Sync>(
        &self,
        key: &BlockKey,
        codes: &(impl CodeSource<C> + ?Sized),
        memory: BuildMemory,
        entry_of: impl Fn(C, u32, BucketNumber) -> E + Copy + Sync,
        mut visit: impl FnMut(Range<usize>, &PartedSlice<'_, E>) -> Result<()>,
    ) -> Result<()> {
        let counts = self.count_rows(key, codes)?;
        let totals: Vec<usize> = (0..self.parts)
            .map(|part| counts.iter().map(|counts| counts[part] as usize).sum())
            .collect();
        let slice_entries = memory.slice_bytes / size_of::<E>();
        let batch_entries =
            (memory.slice_bytes / SORTING_BYTES).min(PARTS_AT_ONCE * ENTRIES_PER_PART);
        if let Some(most) = memory.most_bytes {
            check_largest_part(&totals, size_of::<E>(), most)?;
        }
        let slices = split_parts(0..self.parts, &totals, slice_entries, self.parts);
        // All slices use the same memory, because the first touch of memory costs more than distributing.
        let mut places = allocate_places::<E>(&slices, &counts)?;
        for slice in slices {
            let parted = self.part_rows(&slice, &counts, &mut places, key, codes, entry_of)?;
            for batch in split_parts(slice, &totals, batch_entries, PARTS_AT_ONCE) {
                visit(batch, &parted)?;
            }
        }
        Ok(())
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
    ) -> Result<Vec<Vec<u32>>> {
        let of_rows = |rows| {
            let mut counts = vec![0; self.parts];
            each_bucket(rows, key, codes, |_, _, bucket| {
                counts[self.part_of_bucket(bucket)] += 1;
            })?;
            Ok(counts)
        };
        self.thread_rows().map(of_rows).collect()
    }

    /// Distributes the fingerprints of a slice. Every thread has its own places.
    fn part_rows<'a, C: FingerprintCode, E: bytemuck::Pod + Send + Sync>(
        &self,
        slice: &Range<usize>,
        counts: &[Vec<u32>],
        places: &'a mut [ColumnMut<E>],
        key: &BlockKey,
        codes: &(impl CodeSource<C> + ?Sized),
        entry_of: impl Fn(C, u32, BucketNumber) -> E + Copy + Sync,
    ) -> Result<PartedSlice<'a, E>> {
        let tasks = self.thread_rows().zip(counts).zip(places);
        let of_threads = tasks.map(|((rows, counts), places)| {
            let mut starts = Vec::with_capacity(slice.len() + 1);
            let mut end = 0;
            starts.push(end);
            for &count in &counts[slice.clone()] {
                end += count as usize;
                starts.push(end);
            }
            let mut next = starts.clone();
            let places = &mut places[..end];
            each_bucket(rows, key, codes, |row, code, bucket| {
                if let Some(next) = self
                    .part_of_bucket(bucket)
                    .checked_sub(slice.start)
                    .and_then(|part| next[..slice.len()].get_mut(part))
                {
                    places[*next] = entry_of(code, row as u32, bucket);
                    *next += 1;
                }
            })?;
            Ok(PartedEntries {
                entries: places,
                starts,
            })
        });
        Ok(PartedSlice {
            first: slice.start,
            of_threads: of_threads.collect::<Result<_>>()?,
        })
    }
}

/// Allocates the places of every thread for its largest slice.
fn allocate_places<E: bytemuck::Pod + Send>(
    slices: &[Range<usize>],
    counts: &[Vec<u32>],
) -> Result<Vec<ColumnMut<E>>> {
    let of_thread = |counts: &Vec<u32>| {
        let entries = |slice: &Range<usize>| {
            let counts = counts[slice.clone()].iter();
            counts.map(|&count| count as usize).sum()
        };
        ColumnMut::allocate_zeroed(slices.iter().map(entries).max().unwrap_or(0))
    };
    counts.iter().map(of_thread).collect()
}

/// Checks that the largest part can be distributed and sorted in `most` bytes.
fn check_largest_part(totals: &[usize], entry_bytes: usize, most: usize) -> Result<()> {
    let largest = totals.iter().copied().max().unwrap_or(0);
    let needed = largest * (entry_bytes + SORTING_BYTES);
    if needed <= most {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Limit,
        format!(
            "{largest} of the fingerprints are so similar that they must be sorted together, which takes {needed} \
             bytes of memory, above the limit of {most}: allow {} bytes more",
            needed - most
        ),
    ))
}

/// Calls `visit` with every row, its fingerprint and its bucket.
fn each_bucket<C: FingerprintCode>(
    rows: Range<usize>,
    key: &BlockKey,
    codes: &(impl CodeSource<C> + ?Sized),
    mut visit: impl FnMut(usize, C, BucketNumber),
) -> Result<()> {
    let cpu = Cpu::detect_best();
    let mut chunk = [C::default(); CODES_PER_CHUNK];
    let mut buckets = [0; CODES_PER_CHUNK];
    let mut from = rows.start;
    while from < rows.end {
        let length = CODES_PER_CHUNK.min(rows.end - from);
        codes
            .read_codes(from, &mut chunk[..length])
            .map_err(|cause| Error::file_error("cannot read the fingerprints", cause))?;
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
    Ok(())
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

/// The place in a table at which its next part begins.
#[derive(Default)]
struct TablePlaces {
    /// Words of all parts before.
    words: usize,
    /// Lines of overflow of all parts before.
    overflow: usize,
}

impl TablePlaces {
    /// Moves consecutive parts to their places in the table.
    fn place_parts(&mut self, parts: Vec<&mut TablePart>) -> Result<()> {
        let mut starts = Vec::with_capacity(parts.len());
        for part in &parts {
            starts.push((self.words as u32, self.overflow as u32));
            self.words += part.words.len();
            self.overflow += part.overflow.len();
        }
        if self.overflow > u32::MAX as usize {
            return Err(Error::new(
                ErrorKind::Limit,
                "more than 2^32 lines overflow: use a packed plan",
            ));
        }
        let parts = parts.into_par_iter().zip(starts);
        parts.for_each(|(part, (words, overflow))| part.move_to(words, overflow));
        Ok(())
    }
}

/// A part of a table, in the order in which it is written.
#[derive(Default)]
pub(super) struct TablePart {
    /// Words of all buckets, bucket by bucket.
    words: Vec<u32>,
    /// End of each bucket among the words of the table.
    pub(super) ends: Vec<u32>,
    /// First lines of the buckets, only for [`BucketLayout::Lines`].
    lines: Vec<CacheLine>,
    pub(super) overflow: Vec<CacheLine>,
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
            ends: Vec::with_capacity(buckets),
            lines: Vec::with_capacity(lines),
            overflow: Vec::new(),
        }
    }

    /// Returns the words that this part adds to the lines of the table.
    pub(super) fn line_words(&self, layout: BucketLayout) -> &[u32] {
        match layout {
            BucketLayout::Lines => bytemuck::cast_slice(&self.lines),
            BucketLayout::Packed => &self.words,
        }
    }

    /// Increases the places in the part by the numbers of words and of lines of overflow before it.
    fn move_to(&mut self, words: u32, overflow: u32) {
        let mut start = 0;
        for (line, &end) in self.lines.iter_mut().zip(&self.ends) {
            if (end - start) as usize > LINE && line.0[0] > line.0[1] {
                line.0[LINE - 1] += overflow;
            }
            start = end;
        }
        self.ends.iter_mut().for_each(|end| *end += words);
    }

    /// Ends a bucket whose words begin at `start` of `words`.
    fn end_bucket(&mut self, start: usize, layout: BucketLayout) {
        self.ends.push(self.words.len() as u32);
        if layout == BucketLayout::Packed {
            return;
        }
        let words = &self.words[start..];
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
/// with several rows is [`LIST_FLAG`] plus the place of its list in `lists`.
pub(super) struct FirstPart {
    table: TablePart,
    pub(super) rests: Vec<u8>,
    pub(super) ids: Vec<u32>,
    pub(super) lists: Vec<u32>,
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
    /// Adds the number of places that the lists of the parts before take.
    fn move_lists(&mut self, before: u32) {
        let listed = self.ids.iter_mut().filter(|id| **id >= LIST_FLAG);
        listed.for_each(|id| *id += before);
    }

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
                self.ids.push(LIST_FLAG | self.lists.len() as u32);
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
