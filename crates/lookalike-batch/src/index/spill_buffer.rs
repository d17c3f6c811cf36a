//! Bytes that are kept in memory up to a budget, and beyond it in an unlinked temporary file.
//!
//! All buffers of a build share one budget ([`SpillSpace`]). A buffer takes it chunk by chunk; once it is used up,
//! further bytes go to a temporary file of the buffer. The file has no name, so nothing remains however the
//! process ends.

use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::hamming::{CodeSource, ColumnBuffer, FingerprintCode};
use lookalike_io::error::Error;
use lookalike_system::PositionedAccess;

/// Bytes that a buffer takes from the budget, reads or writes at once.
const CHUNK_BYTES: usize = 1 << 20;

/// The memory that several buffers may take together, and where they keep the rest.
#[derive(Debug)]
pub(super) struct SpillSpace {
    /// Bytes that no buffer has taken.
    free_bytes: AtomicU64,
    /// Bytes that went to temporary files.
    written: AtomicU64,
    directory: PathBuf,
}

impl SpillSpace {
    pub(super) fn new(bytes: u64, directory: PathBuf) -> Self {
        Self {
            free_bytes: AtomicU64::new(bytes),
            written: AtomicU64::new(0),
            directory,
        }
    }

    /// Counts bytes that went to a temporary file.
    pub(super) fn count_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes that went to temporary files.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns the directory of temporary files.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Takes bytes for something that is no buffer and stays in memory. Returns `false` if there are too few left.
    pub(super) fn take_bytes(&self, bytes: u64) -> bool {
        let take = |free_bytes: u64| free_bytes.checked_sub(bytes);
        self.free_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    fn take_chunk(&self) -> bool {
        self.take_bytes(CHUNK_BYTES as u64)
    }

    fn return_chunk(&self) {
        self.free_bytes
            .fetch_add(CHUNK_BYTES as u64, Ordering::Relaxed);
    }
}

/// Bytes that are appended, and then read or moved to an output.
#[derive(Debug, Default)]
pub(super) struct SpillBuffer {
    /// `None` if everything stays in memory.
    space: Option<Arc<SpillSpace>>,
    /// The first bytes; all but the last chunk are full.
    chunks: Vec<Vec<u8>>,
    file: Option<SpillFile>,
}

/// The bytes of a buffer beyond the budget: those in the file, and up to about a chunk on the way to it.
#[derive(Debug)]
struct SpillFile {
    file: File,
    /// Bytes that are not yet written.
    pending: Vec<u8>,
}

impl SpillFile {
    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() < CHUNK_BYTES {
            Ok(())
        } else {
            self.write_pending()
        }
    }

    fn write_pending(&mut self) -> io::Result<()> {
        self.file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

impl SpillBuffer {
    /// Creates a buffer; without a space, everything stays in memory.
    pub(super) fn new(space: Option<Arc<SpillSpace>>) -> Self {
        Self {
            space,
            ..Self::default()
        }
    }

    /// Returns the chunk that the next bytes are appended to; `None` if it is a file.
    fn open_chunk(&mut self) -> Option<&mut Vec<u8>> {
        let is_full = self
            .chunks
            .last()
            .is_none_or(|chunk| chunk.len() == CHUNK_BYTES);
        if is_full {
            let space = self.space.as_ref();
            if self.file.is_some() || space.is_some_and(|space| !space.take_chunk()) {
                return None;
            }
            // A small buffer stays small, and a large one never moves its bytes.
            let capacity = if self.chunks.is_empty() {
                0
            } else {
                CHUNK_BYTES
            };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        self.chunks.last_mut()
    }

    fn spill_file(&mut self) -> io::Result<&mut SpillFile> {
        if self.file.is_none() {
            let directory = self.space.as_ref().map(|space| &space.directory);
            let directory = directory.ok_or(io::ErrorKind::Unsupported)?;
            self.file = Some(SpillFile {
                file: tempfile::tempfile_in(directory)?,
                pending: Vec::with_capacity(CHUNK_BYTES),
            });
        }
        self.file
            .as_mut()
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Writes the pending bytes to the file, so that they can be read.
    fn flush_file(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_pending(),
            None => Ok(()),
        }
    }

    /// Fills `into` with the bytes at offset `from`.
    fn read_bytes(&self, mut from: usize, mut into: &mut [u8]) -> io::Result<()> {
        while let Some(chunk) = self.chunks.get(from / CHUNK_BYTES)
            && !into.is_empty()
            && from % CHUNK_BYTES < chunk.len()
        {
            let behind = &chunk[from % CHUNK_BYTES..];
            let (now, later) = into.split_at_mut(into.len().min(behind.len()));
            now.copy_from_slice(&behind[..now.len()]);
            from += now.len();
            into = later;
        }
        match &self.file {
            _ if into.is_empty() => Ok(()),
            Some(spilled) => {
                let at = from - self.chunks.len() * CHUNK_BYTES;
                spilled.file.read_exact_bytes_at(into, at as u64)
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl ColumnBuffer for SpillBuffer {
    fn append_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let Some(chunk) = self.open_chunk() else {
                if let Some(space) = &self.space {
                    space.count_written(bytes.len() as u64);
                }
                return self.spill_file()?.append_bytes(bytes);
            };
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_BYTES - chunk.len()));
            chunk.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn move_bytes(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for chunk in std::mem::take(&mut self.chunks) {
            out.write_all(&chunk)?;
            drop(chunk);
            if let Some(space) = &self.space {
                space.return_chunk();
            }
        }
        self.flush_file()?;
        let Some(spilled) = self.file.take() else {
            return Ok(());
        };
        let (mut piece, mut at) = (spilled.pending, 0);
        piece.resize(CHUNK_BYTES, 0);
        loop {
            let length = spilled.file.read_bytes_at(&mut piece, at)?;
            if length == 0 {
                return Ok(());
            }
            out.write_all(&piece[..length])?;
            at += length as u64;
        }
    }
}

/// Fingerprints that are collected and then read several times.
#[derive(Debug)]
pub(super) struct FingerprintSpool<C> {
    /// Little-endian integers.
    bytes: SpillBuffer,
    count: usize,
    codes: PhantomData<C>,
}

impl<C: FingerprintCode> FingerprintSpool<C> {
    pub(super) fn new(space: Option<Arc<SpillSpace>>) -> Self {
        Self {
            bytes: SpillBuffer::new(space),
            count: 0,
            codes: PhantomData,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Appends fingerprints.
    pub(super) fn push_codes(&mut self, codes: &[C]) -> io::Result<()> {
        self.count += codes.len();
        // Index files need a little-endian machine, so the bytes in memory are those of the file.
        self.bytes.append_bytes(bytemuck::cast_slice(codes))
    }

    /// Completes the fingerprints. Only then can they be read.
    pub(super) fn finish_codes(&mut self) -> io::Result<()> {
        self.bytes.flush_file()
    }

    /// Calls `visit` with runs of consecutive fingerprints and the row of the first of each.
    pub(super) fn visit_codes(
        &self,
        mut visit: impl FnMut(u32, &[C]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut chunk = vec![C::default(); CHUNK_BYTES / size_of::<C>()];
        for from in (0..self.count).step_by(chunk.len()) {
            let length = chunk.len().min(self.count - from);
            self.read_codes(from, &mut chunk[..length])?;
            visit(from as u32, &chunk[..length])?;
        }
        Ok(())
    }
}

impl<C: FingerprintCode> CodeSource<C> for FingerprintSpool<C> {
    fn code_count(&self) -> usize {
        self.count
    }

    fn read_codes(&self, from: usize, into: &mut [C]) -> io::Result<()> {
        let at = from * size_of::<C>();
        self.bytes
            .read_bytes(at, bytemuck::cast_slice_mut::<C, u8>(into))
    }
}

/// Returns the error of fingerprints that could not be kept.
pub(super) fn spill_failed(cause: io::Error) -> Error {
    Error::write_error("write", "the temporary file of the fingerprints", cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_in_memory_and_in_the_file() {
        let place = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..5 * CHUNK_BYTES + 77)
            .map(|at| ((at * at) >> 7) as u8)
            .collect();
        for budget in [0, 1, 2, 10] {
            let space = SpillSpace::new((budget * CHUNK_BYTES) as u64, place.path().to_path_buf());
            let space = Arc::new(space);
            for size in [1000, 65_537, 3 * CHUNK_BYTES] {
                let mut buffer = SpillBuffer::new(Some(Arc::clone(&space)));
                for piece in bytes.chunks(size) {
                    buffer.append_bytes(piece).unwrap();
                }
                buffer.flush_file().unwrap();
                let mut read = vec![0; 100_000];
                for from in (0..bytes.len() - read.len()).step_by(99_991) {
                    buffer.read_bytes(from, &mut read).unwrap();
                    assert!(read == bytes[from..from + read.len()], "{budget} {from}");
                }
                assert!(buffer.read_bytes(bytes.len() - 10, &mut read).is_err());
                let mut out = Vec::new();
                buffer.move_bytes(&mut out).unwrap();
                assert!(out == bytes, "{budget} {size}");
                // All of the budget is free again.
                let free_bytes = space.free_bytes.load(Ordering::Relaxed);
                assert_eq!(free_bytes, (budget * CHUNK_BYTES) as u64);
            }
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn fingerprints_are_read_from_any_row() {
        let place = tempfile::tempdir().unwrap();
        let codes: Vec<u128> = (0..200_000).map(|at| (at << 70) | (at * at)).collect();
        for budget in [0, 2 * CHUNK_BYTES] {
            let space = SpillSpace::new(budget as u64, place.path().to_path_buf());
            let mut spool = FingerprintSpool::new(Some(Arc::new(space)));
            codes
                .chunks(777)
                .for_each(|some| spool.push_codes(some).unwrap());
            spool.finish_codes().unwrap();
            assert_eq!(spool.len(), codes.len());
            let mut all = Vec::new();
            let visited = spool.visit_codes(|from, some| {
                assert_eq!(from as usize, all.len());
                all.extend_from_slice(some);
                Ok(())
            });
            visited.unwrap();
            assert!(all == codes);
            let mut some = [0; 1024];
            for from in [0, 1, 65_535, 65_536, 131_000, 198_976] {
                spool.read_codes(from, &mut some).unwrap();
                assert!(some == codes[from..from + 1024]);
            }
        }
    }
}
