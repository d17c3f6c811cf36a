//! Blocks of encoded rows, each with a checksum.
//!
//! ```text
//! block:  count: u32 │ length: u32, row │ length: u32, row │ … │ CRC-32: u32      (little-endian)
//! ```

use std::iter;

use lookalike::byte_reader::ByteReader;

use super::PartitionRow;

/// Encoded rows.
#[derive(Debug, Default)]
pub(crate) struct EncodedRows {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Positions of the rows with more than one number, and how many numbers each has.
    counts: Vec<(usize, u64)>,
}

impl EncodedRows {
    pub(crate) fn push_row(&mut self, row: &PartitionRow) {
        row.encode_row(&mut self.bytes);
        if row.number_count() != 1 {
            self.counts.push((self.ends.len(), row.number_count()));
        }
        self.ends.push(self.bytes.len() as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    fn row_bytes(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    pub(crate) fn decode_row_at(&self, at: usize) -> Option<PartitionRow> {
        PartitionRow::decode_row(self.row_bytes(at))
    }

    /// Returns the rows as blocks, each with the number of its first row; the first number is `first`.
    pub(crate) fn iter_blocks(&self, first: u64) -> impl Iterator<Item = (u64, Vec<u8>)> + '_ {
        let (mut number, mut counts) = (first, self.counts.iter().peekable());
        let mut start = 0;
        iter::from_fn(move || {
            let end = self.end_of_block(start)?;
            let rows = (start..end).map(|at| self.row_bytes(at));
            let block = (number, seal_block(number, rows));
            number = number.saturating_add((end - start) as u64);
            while let Some((_, count)) = counts.next_if(|&&(at, _)| at < end) {
                number = number.saturating_add(count - 1);
            }
            start = end;
            Some(block)
        })
    }

    /// Returns the end of the block that begins with a row; `None` behind the last row.
    fn end_of_block(&self, start: usize) -> Option<usize> {
        let before = start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let most_bytes = before as usize + BLOCK_BYTES;
        let rows = self.ends.get(start..)?;
        let rows = &rows[..rows.len().min(BLOCK_ROWS)];
        let fitting = rows.partition_point(|&end| end as usize <= most_bytes);
        (!rows.is_empty()).then(|| start + fitting.max(1))
    }
}

/// Most rows of a block. A look-up reads and verifies a whole block; 64 rows of short documents are about 6 kB.
const BLOCK_ROWS: usize = 64;

/// Most bytes of the rows of a block that has several, so that a look-up is quick beside rows with long metadata.
/// Blocks of earlier versions can have more.
const BLOCK_BYTES: usize = 64 << 10;

fn seal_block<'a>(first: u64, rows: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut block = Vec::new();
    block.extend((rows.len() as u32).to_le_bytes());
    for row in rows {
        block.extend((row.len() as u32).to_le_bytes());
        block.extend(row);
    }
    block.extend(block_checksum(first, &block).to_le_bytes());
    block
}

fn block_checksum(first: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&first.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Returns the encoded rows of a block, or a description of the damage.
pub(crate) fn open_block(first: u64, block: &[u8]) -> Result<Vec<&[u8]>, String> {
    let what = |what: &str| format!("the block of row {first} {what}");
    let (bytes, sum) = block
        .split_last_chunk::<4>()
        .ok_or_else(|| what("is too short"))?;
    if block_checksum(first, bytes) != u32::from_le_bytes(*sum) {
        return Err(what("does not have its checksum"));
    }
    let mut reader = ByteReader::new(bytes);
    let mut rows = || {
        let count = reader.read_u32()?;
        let rows = (0..count).map(|_| {
            let length = reader.read_u32()?;
            reader.read_bytes(length as usize)
        });
        let rows: Option<Vec<_>> = rows.collect();
        rows.filter(|_| reader.is_at_end())
    };
    rows().ok_or_else(|| what("is not well formed"))
}
