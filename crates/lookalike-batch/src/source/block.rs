//! Blocks: what one thread parses at a time.

use super::columnar::Portion;
use super::delimited::CellReader;
use super::features::Entry;
use super::lines::Buffer;
use super::values::Values;

/// A run of whole rows in input order.
pub struct Block {
    pub(super) ordinal: u64,
    pub(super) bytes_on_disk: u64,
    pub(super) body: Body,
}

pub(super) enum Body {
    Lines(Lines),
    Documents(Documents),
    Packed(Packed),
    Memory(Held),
}

/// Rows that end at line feeds.
pub(super) struct Lines {
    pub(super) file: usize,
    pub(super) buffer: Buffer,
    /// Where the rows begin in the buffer: behind a header.
    pub(super) start: usize,
    /// Where the rows begin in the input's data.
    pub(super) offset: u64,
    /// The line on which the rows begin, from 1.
    pub(super) line: u64,
    /// The number of the first row.
    pub(super) number: u64,
    /// How many rows there are.
    pub(super) rows: u64,
}

/// Files that are a document each.
pub(super) struct Documents {
    /// The first file.
    pub(super) file: usize,
    pub(super) buffer: Buffer,
    /// Where each file ends in the buffer.
    pub(super) ends: Vec<usize>,
    /// The number of the first row.
    pub(super) number: u64,
}

/// Rows of a Parquet file, to be decoded.
pub(super) struct Packed {
    pub(super) file: usize,
    pub(super) portion: Portion,
    /// The number of the first row of the file.
    pub(super) number: u64,
}

/// Rows of a table in memory, all of one batch.
pub(super) struct Held {
    /// Rows of the table, from 0.
    pub(super) rows: std::ops::Range<u64>,
}

impl Block {
    /// The place of the block among all blocks of the run: 0, 1, 2, ….
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// The numbers of its rows, bad ones included.
    pub(crate) fn rows(&self) -> std::ops::Range<u64> {
        let (first, count) = match &self.body {
            Body::Lines(lines) => (lines.number, lines.rows),
            Body::Documents(documents) => (documents.number, documents.ends.len() as u64),
            Body::Packed(packed) => {
                let first = packed.number + packed.portion.first();
                (first, packed.portion.rows())
            }
            Body::Memory(held) => (held.rows.start + 1, held.rows.end - held.rows.start),
        };
        first..first + count
    }

    /// The bytes on disk that were read for this block. Over all blocks this makes
    /// [`Inputs::total_bytes`](super::Inputs::total_bytes), for Parquet about so.
    pub fn bytes_on_disk(&self) -> u64 {
        self.bytes_on_disk
    }

    /// Bytes of its rows: expanded ones, of Parquet those on disk, 0 of a table in memory.
    pub(crate) fn bytes_of_rows(&self) -> u64 {
        match &self.body {
            Body::Lines(lines) => (lines.buffer.filled().len() - lines.start) as u64,
            Body::Documents(documents) => documents.buffer.filled().len() as u64,
            Body::Packed(_) => self.bytes_on_disk,
            Body::Memory(_) => 0,
        }
    }
}

/// Memory that parsing reuses from row to row: one per thread.
#[derive(Default)]
pub struct ParseScratch {
    pub(super) values: Values,
    pub(super) decoded: String,
    pub(super) cells: CellReader,
    pub(super) frames: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    pub(super) bytes: Vec<u8>,
}
