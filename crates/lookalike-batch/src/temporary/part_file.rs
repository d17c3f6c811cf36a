//! Blocks of bytes by parts, in one unlinked temporary file.
//!
//! Blocks of a part are collected until they are worth a write. Nothing remains however the process ends.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lookalike_io::error::{Error, Result};
use lookalike_io::spool::SpoolFile;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fewest and most bytes of a part that are written at once.
const WRITE_BUFFER_RANGE: (u64, u64) = (4 << 10, 128 << 10);

/// Blocks by parts. Memory: the buffers of all parts, one block for each part, and 12 bytes for each write.
pub(crate) struct PartFile {
    file: SpoolFile,
    parts: Vec<Mutex<PartBlocks>>,
    written_at_once: usize,
}

#[derive(Default)]
struct PartBlocks {
    pending: Vec<u8>,
    /// Start and length of what was written.
    extents: Vec<(u64, u32)>,
    /// The order of each extent, if blocks have one.
    orders: Vec<u64>,
    bytes: u64,
}

impl PartBlocks {
    fn sort_extents(&mut self) {
        if self.orders.is_empty() {
            return;
        }
        let orders = std::mem::take(&mut self.orders);
        let mut ordered: Vec<_> = orders.into_iter().zip(self.extents.drain(..)).collect();
        // Stable, because blocks of the same order stay as they are.
        ordered.sort_by_key(|&(order, _)| order);
        self.extents
            .extend(ordered.into_iter().map(|(_, extent)| extent));
    }
}

impl PartFile {
    /// Creates an empty file in `directory`, or in the system's directory for temporary files. All parts together
    /// keep about `buffered` bytes in memory, but at least 4 KiB and at most 128 KiB each.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn create_file(directory: Option<&Path>, parts: u32, buffered: u64) -> Result<Self> {
        let (fewest, most) = WRITE_BUFFER_RANGE;
        let written_at_once = (buffered / u64::from(parts.max(1))).clamp(fewest, most);
        Ok(Self {
            file: SpoolFile::create_file(directory)?,
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            written_at_once: written_at_once as usize,
        })
    }

    /// Creates an empty file in which every block is written at once, so that it can be read by its number.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn with_single_blocks(directory: Option<&Path>, parts: u32) -> Result<Self> {
        Ok(Self {
            written_at_once: 0,
            ..Self::create_file(directory, parts, 0)?
        })
    }

    /// Number of parts.
    pub(crate) fn part_count(&self) -> u32 {
        self.parts.len() as u32
    }

    /// Returns all bytes that were written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.file.end_offset()
    }

    /// Returns the bytes of a part's blocks.
    pub(crate) fn part_bytes(&self, part: u32) -> u64 {
        lock(&self.parts[part as usize]).bytes
    }

    /// Adds a block to a part.
    ///
    /// # Errors
    /// If the file cannot be written or the block has 4 GiB or more.
    pub(crate) fn push_block(&self, part: u32, block: &[u8]) -> Result<()> {
        self.add_block(&mut lock(&self.parts[part as usize]), block)
    }

    /// Adds a block to a part of a file of [single blocks](Self::with_single_blocks). Once writing is finished, blocks
    /// are read in ascending `order`. Blocks of equal order are read as they were added.
    ///
    /// # Errors
    /// As [`push_block`](Self::push_block).
    pub(crate) fn push_ordered_block(&self, part: u32, order: u64, block: &[u8]) -> Result<()> {
        debug_assert_eq!(self.written_at_once, 0);
        let mut blocks = lock(&self.parts[part as usize]);
        self.add_block(&mut blocks, block)?;
        blocks.orders.push(order);
        Ok(())
    }

    fn add_block(&self, blocks: &mut PartBlocks, block: &[u8]) -> Result<()> {
        let length = u32::try_from(block.len() + size_of::<u32>()).map_err(|_| {
            Error::limit_error(format!(
                "a block of {} bytes is too large for a temporary file",
                block.len()
            ))
        })?;
        if blocks.pending.len() + length as usize >= u32::MAX as usize {
            self.write_pending(blocks)?;
        }
        blocks.bytes += block.len() as u64;
        blocks.pending.extend((block.len() as u32).to_le_bytes());
        blocks.pending.extend_from_slice(block);
        if blocks.pending.len() < self.written_at_once {
            Ok(())
        } else {
            self.write_pending(blocks)
        }
    }

    fn write_pending(&self, blocks: &mut PartBlocks) -> Result<()> {
        if blocks.pending.is_empty() {
            return Ok(());
        }
        let start = self.file.append_bytes(&blocks.pending)?;
        blocks.extents.push((start, blocks.pending.len() as u32));
        blocks.pending = Vec::new();
        Ok(())
    }

    /// Writes what is pending, so that all blocks can be read.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish_writing(&self) -> Result<()> {
        for blocks in &self.parts {
            let mut blocks = lock(blocks);
            self.write_pending(&mut blocks)?;
            blocks.sort_extents();
        }
        Ok(())
    }

    /// Number of writes of a part, which is the number of its blocks if they are single.
    pub(crate) fn extent_count(&self, part: u32) -> usize {
        lock(&self.parts[part as usize]).extents.len()
    }

    /// Reads the blocks of a write, from 0, and calls `visit` with each.
    ///
    /// # Errors
    /// If the file cannot be read, and the errors of `visit`.
    pub(crate) fn visit_extent(
        &self,
        part: u32,
        at: usize,
        visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (start, length) = lock(&self.parts[part as usize]).extents[at];
        let mut bytes = vec![0; length as usize];
        let read = self.file.read_exact_at(&mut bytes, start);
        read.map_err(|cause| {
            Error::read_error(
                "read",
                format_args!("byte {start} of the temporary file"),
                cause,
            )
        })?;
        visit_blocks(&bytes, visit)
    }

    /// Reads the blocks of a part in the order in which they were added, and calls `visit` with each.
    ///
    /// # Errors
    /// If the file cannot be read, and the errors of `visit`.
    pub(crate) fn visit_part(
        &self,
        part: u32,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut extents = 0..self.extent_count(part);
        extents.try_for_each(|at| self.visit_extent(part, at, &mut visit))
    }
}

fn visit_blocks(mut bytes: &[u8], mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (block, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        visit(block)?;
        bytes = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_blocks_are_read_in_their_order() {
        let file = PartFile::with_single_blocks(None, 1).unwrap();
        for (order, block) in [(5, "c"), (2, "a"), (9, "e"), (2, "b"), (5, "d")] {
            file.push_ordered_block(0, order, block.as_bytes()).unwrap();
        }
        file.finish_writing().unwrap();
        let mut read = String::new();
        let visited = file.visit_part(0, |block| {
            read += std::str::from_utf8(block).unwrap();
            Ok(())
        });
        visited.unwrap();
        assert_eq!(read, "abcde");
    }

    #[test]
    fn parts_hold_their_blocks_in_order() {
        for single in [false, true] {
            let file = if single {
                PartFile::with_single_blocks(None, 3).unwrap()
            } else {
                PartFile::create_file(None, 3, 1 << 20).unwrap()
            };
            // 2,000 blocks of up to 999 bytes are several writes of each part.
            let block = |at: usize| vec![at as u8; at * 7 % 1000];
            for at in 0..2000 {
                file.push_block((at % 3) as u32, &block(at)).unwrap();
            }
            file.finish_writing().unwrap();
            for part in 0..3 {
                let mut at = part as usize;
                let mut bytes = 0;
                file.visit_part(part, |read| {
                    assert_eq!(read, block(at));
                    at += 3;
                    bytes += read.len() as u64;
                    Ok(())
                })
                .unwrap();
                assert_eq!(at, 2000 + (part as usize + 1) % 3);
                assert_eq!(file.part_bytes(part), bytes);
                let expected = if single { 2000_usize.div_ceil(3) } else { 2 };
                assert!(file.extent_count(part) + 1 >= expected, "{part}");
            }
        }
    }
}
