//! The index file: a header and the columns as they are in memory, each with a checksum.
//!
//! Byte tables are in `docs/format.md`. Opening checks the whole file. A file that is cut short,
//! damaged or of another version is refused. The columns are also checked against one another, so
//! that no file makes a look-up wrong or aborts the process.

use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use rayon::prelude::*;

use super::build::{build_segment, build_tables, check_rows};
use super::columns::SegmentColumn;
use super::fingerprint_layout::FingerprintLayout;
use super::sink::{ColumnBuffer, FileSink};
use super::{BuildMemory, CodeSource, HammingSegment, LIST_FLAG, TableColumns};
use crate::arch::{Cpu, LINE, ReadOnlyMemory};
use crate::error::{Error, ErrorKind, Result};
use crate::hamming::fingerprint_code::FingerprintCode;
use crate::hamming::plan::{BucketLayout, HammingPlan, PlanShape};
use crate::types::Distance;

const SEGMENT_MAGIC: [u8; 8] = *b"LKLKHSEG";
const SEGMENT_VERSION: u32 = 1;

/// Bytes of magic, version, header length and header checksum.
const PREAMBLE_BYTES: usize = 24;

/// Alignment of sections in bytes.
const SECTION_ALIGNMENT: usize = 4096;

/// Largest header in bytes; no plan needs as much.
const MOST_HEADER: usize = 1 << 20;

impl<C: FingerprintCode> HammingSegment<C> {
    /// Writes the index as a file.
    ///
    /// # Errors
    /// Returns the errors of the writer, and an error on a big-endian machine.
    pub fn write_file(&self, out: &mut dyn Write) -> io::Result<()> {
        check_byte_order().map_err(io::Error::other)?;
        let sections = self.file_sections();
        let described: Vec<_> = sections
            .par_iter()
            .map(|bytes| (bytes.len() as u64, crc32fast::hash(bytes)))
            .collect();
        out.write_all(&file_front(
            &self.plan,
            self.rows,
            self.distinct,
            &described,
        ))?;
        let mut last = 0;
        for bytes in sections {
            out.write_all(&[0; SECTION_ALIGNMENT][..padding_after(last)])?;
            out.write_all(bytes)?;
            last = bytes.len();
        }
        Ok(())
    }

    /// Returns the number of bytes before the first section of a file.
    pub fn front_length(plan: &HammingPlan) -> usize {
        file_front(plan, 0, 0, &vec![(0, 0); section_count(plan)]).len()
    }

    /// Maps a file and checks all of it, at the speed at which it can be read. The file must not be
    /// changed while the index exists; it may be replaced or removed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not an index, is of another version or
    /// width, or is damaged.
    pub fn open_file(path: &Path) -> Result<Self> {
        check_byte_order().map_err(|why| Error::new(ErrorKind::File, why))?;
        let refused =
            |why: String| Error::new(ErrorKind::File, format!("{}: {why}", path.display()));
        let memory = File::open(path)
            .and_then(|file| ReadOnlyMemory::map_file(&file))
            .map_err(|error| refused(error.to_string()))?;
        parse_segment(Arc::new(memory)).map_err(refused)
    }

    fn file_sections(&self) -> Vec<&[u8]> {
        let tables = self.tables.iter().flat_map(|table| {
            [
                bytemuck::cast_slice(&table.lines[..]),
                bytemuck::cast_slice(&table.directory[..]),
                bytemuck::cast_slice(&table.overflow[..]),
            ]
        });
        let others = [
            &self.rests[..],
            bytemuck::cast_slice(&self.ids[..]),
            bytemuck::cast_slice(&self.lists[..]),
        ];
        tables.chain(others).collect()
    }
}

/// Builds an index and writes its sections. Returns what precedes them.
pub(super) fn build_file<C: FingerprintCode, B: ColumnBuffer>(
    plan: &HammingPlan,
    codes: &(impl CodeSource<C> + ?Sized),
    memory: BuildMemory,
    new_buffer: impl Fn() -> B,
    out: &mut dyn Write,
) -> Result<Vec<u8>> {
    check_byte_order().map_err(|why| Error::new(ErrorKind::File, why))?;
    if plan.neighbourhood_key().is_some() {
        // Stored neighbourhoods are made from the other columns, and are for few fingerprints.
        let mut file = Vec::new();
        let segment = build_segment::<C>(plan, codes)?;
        let length = HammingSegment::<C>::front_length(plan);
        let written = segment
            .write_file(&mut file)
            .and_then(|()| out.write_all(&file[length..]));
        written.map_err(|cause| Error::file_error("cannot write the index", cause))?;
        file.truncate(length);
        return Ok(file);
    }
    let rows = check_rows(codes)?;
    let mut sink = FileSink::new(out, new_buffer);
    let code_layout = FingerprintLayout::new(plan);
    let distinct = build_tables::<C>(plan, &code_layout, codes, memory, &mut sink)?;
    let sections = sink.finish_sections()?;
    Ok(file_front(plan, rows, distinct, &sections))
}

/// Returns what precedes the sections of a file, by the length and checksum of each.
fn file_front(
    plan: &HammingPlan,
    rows: usize,
    distinct: usize,
    sections: &[(u64, u32)],
) -> Vec<u8> {
    let mut header = HeaderWriter::default();
    header.write_plan(plan);
    header.write_u64(rows as u64);
    header.write_u64(distinct as u64);
    header.write_u32(sections.len() as u32);
    for &(length, checksum) in sections {
        header.write_u64(length);
        header.write_u32(checksum);
    }
    let mut front = SEGMENT_MAGIC.to_vec();
    front.extend(SEGMENT_VERSION.to_le_bytes());
    front.extend((header.0.len() as u64).to_le_bytes());
    front.extend(crc32fast::hash(&header.0).to_le_bytes());
    debug_assert_eq!(front.len(), PREAMBLE_BYTES);
    front.extend(header.0);
    front.resize(front.len().next_multiple_of(SECTION_ALIGNMENT), 0);
    front
}

/// Returns the number of sections of a file.
fn section_count(plan: &HammingPlan) -> usize {
    3 * plan.stored_tables() + 3
}

/// Writes sections one after another, and keeps the length and checksum of each.
pub(super) struct SectionWriter<'a> {
    out: &'a mut dyn Write,
    complete: Vec<(u64, u32)>,
    /// Length and checksum of the open section.
    length: u64,
    checksum: crc32fast::Hasher,
}

impl<'a> SectionWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            complete: Vec::new(),
            length: 0,
            checksum: crc32fast::Hasher::new(),
        }
    }

    /// Begins a section at the next multiple of the alignment.
    pub(super) fn begin_section(&mut self) -> io::Result<()> {
        let last = self.complete.last().map_or(0, |&(length, _)| length);
        self.out
            .write_all(&[0; SECTION_ALIGNMENT][..padding_after(last as usize)])
    }

    /// Returns the length of the open section.
    pub(super) fn open_length(&self) -> u64 {
        self.length
    }

    pub(super) fn end_section(&mut self) {
        let checksum = std::mem::take(&mut self.checksum).finalize();
        self.complete
            .push((std::mem::take(&mut self.length), checksum));
    }

    /// Returns the length and checksum of every section.
    pub(super) fn finish_sections(self) -> Vec<(u64, u32)> {
        self.complete
    }
}

impl Write for SectionWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.length += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn check_byte_order() -> Result<(), &'static str> {
    if cfg!(target_endian = "little") {
        Ok(())
    } else {
        Err("index files need a little-endian machine")
    }
}

/// Returns the number of bytes up to the next multiple of the alignment.
fn padding_after(written: usize) -> usize {
    written.next_multiple_of(SECTION_ALIGNMENT) - written
}

#[derive(Default)]
struct HeaderWriter(Vec<u8>);

impl HeaderWriter {
    fn write_u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn write_u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn write_list(&mut self, values: &[u32]) {
        self.write_u32(values.len() as u32);
        values.iter().for_each(|&value| self.write_u32(value));
    }

    fn write_plan(&mut self, plan: &HammingPlan) {
        self.write_u32(plan.fingerprint_bits());
        self.write_u32(plan.distance().get());
        self.write_u32(match plan.bucket_layout() {
            BucketLayout::Lines => 0,
            BucketLayout::Packed => 1,
        });
        self.write_u32(plan.key_bits());
        match plan.plan_shape() {
            PlanShape::Blocks { widths, radii } => {
                self.write_u32(0);
                self.write_list(widths);
                self.write_list(radii);
            }
            PlanShape::Combinations { widths, chosen } => {
                self.write_u32(1);
                self.write_list(widths);
                self.write_u32(*chosen);
            }
            PlanShape::Neighbourhoods => self.write_u32(2),
        }
    }
}

/// Reads a header from the front.
struct HeaderReader<'a>(&'a [u8]);

type ParseResult<T> = Result<T, String>;

impl HeaderReader<'_> {
    fn read_bytes<const N: usize>(&mut self) -> ParseResult<[u8; N]> {
        let Some((bytes, rest)) = self.0.split_first_chunk() else {
            return Err("the header is truncated".to_owned());
        };
        self.0 = rest;
        Ok(*bytes)
    }

    fn read_u32(&mut self) -> ParseResult<u32> {
        self.read_bytes().map(u32::from_le_bytes)
    }

    fn read_u64(&mut self) -> ParseResult<u64> {
        self.read_bytes().map(u64::from_le_bytes)
    }

    fn read_length(&mut self) -> ParseResult<usize> {
        let value = self.read_u64()?;
        usize::try_from(value)
            .map_err(|_| format!("{value} bytes are more than this machine can address"))
    }

    fn read_list(&mut self) -> ParseResult<Vec<u32>> {
        let length = self.read_u32()?;
        if length > 128 {
            return Err(format!("a plan of {length} blocks"));
        }
        (0..length).map(|_| self.read_u32()).collect()
    }

    fn read_plan(&mut self) -> ParseResult<HammingPlan> {
        let (bits, distance) = (self.read_u32()?, self.read_u32()?);
        let layout = match self.read_u32()? {
            0 => BucketLayout::Lines,
            1 => BucketLayout::Packed,
            other => return Err(format!("a layout of the unknown kind {other}")),
        };
        let key_bits = self.read_u32()?;
        let shape = match self.read_u32()? {
            0 => PlanShape::Blocks {
                widths: self.read_list()?,
                radii: self.read_list()?,
            },
            1 => PlanShape::Combinations {
                widths: self.read_list()?,
                chosen: self.read_u32()?,
            },
            2 => PlanShape::Neighbourhoods,
            other => return Err(format!("a plan of the unknown kind {other}")),
        };
        let distance = Distance::new(distance, bits).map_err(|error| error.to_string())?;
        HammingPlan::new(bits, distance, shape, layout, key_bits).map_err(|error| error.to_string())
    }
}

fn parse_segment<C: FingerprintCode>(
    memory: Arc<ReadOnlyMemory>,
) -> ParseResult<HammingSegment<C>> {
    let mut preamble = HeaderReader(&memory);
    if preamble.read_bytes().ok() != Some(SEGMENT_MAGIC) {
        return Err("this is not an index file".to_owned());
    }
    let version = preamble.read_u32()?;
    if version == SEGMENT_VERSION.swap_bytes() {
        return Err("the index file has the other byte order: build it again".to_owned());
    }
    if version != SEGMENT_VERSION {
        return Err(format!(
            "the index file is of version {version}, and this program reads version {SEGMENT_VERSION}: build it again"
        ));
    }
    let (length, checksum) = (preamble.read_length()?, preamble.read_u32()?);
    let header = preamble.0.get(..length).filter(|_| length <= MOST_HEADER);
    let header = header.ok_or("the header is truncated")?;
    if crc32fast::hash(header) != checksum {
        return Err("the header is damaged".to_owned());
    }
    let mut reader = HeaderReader(header);
    let plan = reader.read_plan()?;
    let fits = if C::BITS == 64 { 1..=64 } else { 65..=128 };
    if !fits.contains(&plan.fingerprint_bits()) {
        return Err(format!(
            "the index has {} bits, which is not the requested width",
            plan.fingerprint_bits()
        ));
    }
    let (rows, distinct) = (reader.read_length()?, reader.read_length()?);
    let tables = plan.stored_tables();
    if reader.read_u32()? as usize != section_count(&plan) {
        return Err("the index has another number of sections than its plan".to_owned());
    }
    let mut sections = Vec::new();
    let mut end = PREAMBLE_BYTES + length;
    for _ in 0..3 * tables + 3 {
        let (length, checksum) = (reader.read_length()?, reader.read_u32()?);
        let start = end + padding_after(end);
        end = start.checked_add(length).ok_or("a section has no end")?;
        sections.push((start, length, checksum));
    }
    if end != memory.len() {
        return Err(format!(
            "the file has {} bytes, and its header says {end}: it was truncated or extended",
            memory.len()
        ));
    }
    let damaged = sections.par_iter().find_any(|&&(start, length, checksum)| {
        crc32fast::hash(&memory[start..start + length]) != checksum
    });
    if let Some((start, length, _)) = damaged {
        return Err(format!(
            "the section of {length} bytes at byte {start} is damaged"
        ));
    }
    let mut sections = sections.into_iter();
    fn next<T: Pod>(
        memory: &Arc<ReadOnlyMemory>,
        sections: &mut impl Iterator<Item = (usize, usize, u32)>,
    ) -> ParseResult<SegmentColumn<T>> {
        let (start, length, _) = sections.next().ok_or("a section is missing")?;
        if length % size_of::<T>() != 0 {
            return Err(format!("a section of {length} bytes ends within a value"));
        }
        Ok(SegmentColumn::new(memory, start, length))
    }
    let mut columns = Vec::new();
    for _ in 0..tables {
        columns.push(TableColumns {
            lines: next(&memory, &mut sections)?,
            directory: next(&memory, &mut sections)?,
            overflow: next(&memory, &mut sections)?,
        });
    }
    let segment = HammingSegment {
        code_layout: FingerprintLayout::new(&plan),
        plan,
        rows,
        distinct,
        tables: columns,
        rests: next(&memory, &mut sections)?,
        ids: next(&memory, &mut sections)?,
        lists: next(&memory, &mut sections)?,
        cpu: Cpu::detect_best(),
        codes: PhantomData,
    };
    if segment.is_consistent() {
        Ok(segment)
    } else {
        Err("the columns of the index contradict one another".to_owned())
    }
}

impl<C: FingerprintCode> HammingSegment<C> {
    /// Returns `true` if everything that a look-up relies on holds.
    fn is_consistent(&self) -> bool {
        self.rows < LIST_FLAG as usize
            && self.distinct <= self.rows
            && self.ids.len() == self.distinct
            && self.rests.len() == self.distinct * self.code_layout.rest_bytes()
            && (0..self.plan.plan_tables().len()).all(|table| self.table_is_consistent(table))
            && self.neighbourhoods_are_consistent()
            && self.ids_are_consistent()
    }

    fn table_is_consistent(&self, table: usize) -> bool {
        let buckets = self.plan.plan_tables()[table].key.bucket_count();
        let TableColumns {
            lines,
            directory,
            overflow,
        } = &self.tables[table];
        let words = directory.last().map_or(0, |&end| end as usize);
        let has_directory = table == 0 || self.plan.bucket_layout() == BucketLayout::Packed;
        let ordered = if has_directory {
            directory.len() == buckets + 1
                && directory[0] == 0
                && directory.par_windows(2).all(|pair| pair[0] <= pair[1])
        } else {
            directory.is_empty()
        };
        let lies = match self.plan.bucket_layout() {
            BucketLayout::Packed => overflow.is_empty() && lines.len() == words.div_ceil(LINE),
            BucketLayout::Lines => lines.len() == buckets,
        };
        if !ordered || !lies || (table == 0 && words != self.distinct) {
            return false;
        }
        let directory = &directory[..];
        let overflow = &overflow[..];
        self.plan.bucket_layout() == BucketLayout::Packed
            || lines.par_iter().enumerate().all(|(bucket, line)| {
                let count = |bucket: usize| (directory[bucket + 1] - directory[bucket]) as usize;
                if line.0[0] <= line.0[1] {
                    return table > 0
                        || count(bucket) <= LINE
                        || line.0.iter().all(|&word| word == line.0[0]);
                }
                if table == 0 && count(bucket) <= LINE {
                    return false;
                }
                let first = line.0[LINE - 1] as usize;
                overflow.get(first).is_some_and(|line| {
                    let behind = line.0[0] as usize;
                    first + behind / LINE < overflow.len()
                        && (table > 0 || count(bucket) == LINE - 1 + behind)
                })
            })
    }

    fn ids_are_consistent(&self) -> bool {
        let rows = self.rows as u32;
        let lists = &self.lists[..];
        self.ids.par_iter().all(|&id| {
            if id < LIST_FLAG {
                return id < rows;
            }
            let list = lists.get((id - LIST_FLAG) as usize..).unwrap_or_default();
            let Some((&count, rest)) = list.split_first() else {
                return false;
            };
            count > 1
                && rest
                    .get(..count as usize)
                    .is_some_and(|list| list.iter().all(|&row| row < rows))
        })
    }
}

/// Returns the place at which the sections of a file begin.
#[cfg(test)]
pub(super) fn body(file: &[u8]) -> usize {
    let length = u64::from_le_bytes(file[12..20].try_into().expect("eight bytes")) as usize;
    (PREAMBLE_BYTES + length).next_multiple_of(SECTION_ALIGNMENT)
}

/// Recomputes all checksums.
#[cfg(test)]
pub(super) fn mend(file: &mut [u8]) {
    let header = PREAMBLE_BYTES
        ..PREAMBLE_BYTES + u64::from_le_bytes(file[12..20].try_into().expect("eight")) as usize;
    let mut reader = HeaderReader(&file[header.clone()]);
    reader.read_plan().expect("the header is whole");
    reader.read_bytes::<16>().expect("the header is whole");
    let count = reader.read_u32().expect("the header is whole");
    let mut at = header.end - 12 * count as usize;
    let mut end = header.end;
    for _ in 0..count {
        let length = u64::from_le_bytes(file[at..at + 8].try_into().expect("eight")) as usize;
        let start = end + padding_after(end);
        end = start + length;
        let checksum = crc32fast::hash(&file[start..end]);
        file[at + 8..at + 12].copy_from_slice(&checksum.to_le_bytes());
        at += 12;
    }
    let checksum = crc32fast::hash(&file[header]);
    file[20..24].copy_from_slice(&checksum.to_le_bytes());
}
