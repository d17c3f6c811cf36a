//! Blocks: the units that threads parse.

use super::column_portions::ColumnPortion;
use super::delimited::CellReader;
use super::features::FeatureRange;
use super::line_reader::ReadBuffer;
use super::row_values::RowValues;

/// Whole rows in input order, parsed by one thread.
pub struct InputBlock {
    pub(super) ordinal: u64,
    pub(super) bytes_on_disk: u64,
    pub(super) body: BlockBody,
}

pub(super) enum BlockBody {
    Lines(LineBlock),
    Documents(DocumentFiles),
    Packed(ColumnBlock),
    Memory(TableBlock),
}

/// Rows that end at line feeds.
pub(super) struct LineBlock {
    pub(super) file: usize,
    pub(super) buffer: ReadBuffer,
    /// Start of the rows in the buffer, after a header.
    pub(super) start: usize,
    /// Start of the rows in the input's data, in bytes.
    pub(super) offset: u64,
    /// The line on which the first row starts, from 1.
    pub(super) line: u64,
    /// The number of the first row.
    pub(super) number: u64,
    /// Number of rows.
    pub(super) rows: u64,
    /// Number of lines.
    pub(super) lines: u64,
    /// Bytes of the rows. The buffer has them unless the block is known from before or its only row is too long.
    pub(super) length: u64,
    /// `true` if the only row is longer than the limit. The buffer is empty then.
    pub(super) is_oversized: bool,
}

/// The place of a block of lines in its input, for a later run over the same inputs that need not read it again; see
/// [`InputSet::next_block_unless_known`](super::InputSet::next_block_unless_known).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownBlock {
    /// Start of the rows in the input, in bytes.
    pub offset: u64,
    /// Bytes of the rows.
    pub length: u64,
    /// The line on which the first row starts, from 1.
    pub line: u64,
    /// Number of lines.
    pub lines: u64,
    /// Number of rows.
    pub rows: u64,
    /// Bytes on disk that were read for the block.
    pub bytes_on_disk: u64,
}

/// Files that are one document each.
pub(super) struct DocumentFiles {
    /// The first file.
    pub(super) file: usize,
    pub(super) buffer: ReadBuffer,
    /// End of each file in the buffer.
    pub(super) ends: Vec<usize>,
    /// For each file: why it cannot be read.
    pub(super) failures: Vec<Option<String>>,
    /// The number of the first row.
    pub(super) number: u64,
}

/// Rows of Parquet or Arrow, to be decoded.
pub(super) struct ColumnBlock {
    pub(super) file: usize,
    pub(super) portion: ColumnPortion,
    /// The number of the first row of the file.
    pub(super) number: u64,
}

/// Rows of a table in memory, all of the same batch.
pub(super) struct TableBlock {
    /// Rows of the table, from 0.
    pub(super) rows: std::ops::Range<u64>,
}

impl InputBlock {
    /// Returns the position of the block among all blocks of the run, from 0.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns the numbers of its rows, bad rows included.
    pub fn row_numbers(&self) -> std::ops::Range<u64> {
        let (first, count) = match &self.body {
            BlockBody::Lines(lines) => (lines.number, lines.rows),
            BlockBody::Documents(documents) => (documents.number, documents.ends.len() as u64),
            BlockBody::Packed(packed) => {
                let first = packed.number + packed.portion.first_row();
                (first, packed.portion.row_count())
            }
            BlockBody::Memory(held) => (held.rows.start + 1, held.rows.end - held.rows.start),
        };
        first..first + count
    }

    /// Returns where the block is, if it is one of lines.
    pub fn known_block(&self) -> Option<KnownBlock> {
        match &self.body {
            BlockBody::Lines(lines) => Some(KnownBlock {
                offset: lines.offset,
                length: lines.length,
                line: lines.line,
                lines: lines.lines,
                rows: lines.rows,
                bytes_on_disk: self.bytes_on_disk,
            }),
            BlockBody::Documents(_) | BlockBody::Packed(_) | BlockBody::Memory(_) => None,
        }
    }

    /// Returns `true` if the places of its rows are known without parsing it. Otherwise parsing copies the rows
    /// to a temporary file, in the order in which blocks are parsed.
    pub fn has_fixed_places(&self) -> bool {
        matches!(self.body, BlockBody::Lines(_))
    }

    /// Returns the number of bytes on disk that were read for this block. The sum over all blocks is
    /// [`InputSet::total_bytes`](super::InputSet::total_bytes), for Parquet and Arrow approximately.
    pub fn bytes_on_disk(&self) -> u64 {
        self.bytes_on_disk
    }

    /// Bytes of its rows: expanded ones, of Parquet and Arrow those on disk, 0 of a table in memory.
    pub fn bytes_of_rows(&self) -> u64 {
        match &self.body {
            BlockBody::Lines(lines) => lines.length,
            BlockBody::Documents(documents) => documents.buffer.filled_bytes().len() as u64,
            BlockBody::Packed(_) => self.bytes_on_disk,
            BlockBody::Memory(_) => 0,
        }
    }
}

/// Memory that parsing reuses from row to row; one per thread.
#[derive(Default)]
pub struct ParseScratch {
    pub(super) values: RowValues,
    pub(super) decoded: String,
    pub(super) cells: CellReader,
    pub(super) frames: Vec<u8>,
    pub(super) entries: Vec<FeatureRange>,
    pub(super) bytes: Vec<u8>,
}
