//! Large memory: anonymous memory in large pages, or a file mapped for reading.
//!
//! Structures with random access need large pages, because with small pages every access also misses the TLB,
//! which translates addresses. Anonymous memory is zero at first and takes RAM only where it was touched. WebAssembly
//! has neither large pages nor mapped files, so both are ordinary memory there (`heap_pages`).

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

#[cfg(not(target_family = "wasm"))]
use memmap2::{Mmap, MmapMut, MmapOptions};

use super::CacheLine;
#[cfg(target_family = "wasm")]
use super::heap_pages::{HeapPages as Mmap, HeapPages as MmapMut, HeapPagesOptions as MmapOptions};
use crate::error::{Error, ErrorKind, Result};

/// Read-only bytes, aligned to at least 64.
#[derive(Debug)]
pub(crate) struct ReadOnlyMemory(Option<Mmap>);

/// Writable bytes, zero at first, aligned to at least 64.
#[derive(Debug, Default)]
pub(crate) struct MemoryMut(Option<MmapMut>);

impl ReadOnlyMemory {
    /// Maps a whole file.
    ///
    /// If another process truncates the file while it is mapped, reading the missing part ends this process.
    /// Files given here must therefore be replaced as a whole and never changed in place.
    pub(crate) fn map_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the bytes are only read, and every value is valid; the caller guarantees, as stated above,
        // that they do not change while they are mapped.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(Some(map)))
    }
}

impl Deref for ReadOnlyMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl MemoryMut {
    /// Allocates `bytes` zero bytes.
    pub(crate) fn allocate_zeroed(bytes: usize) -> io::Result<Self> {
        if bytes == 0 {
            return Ok(Self(None));
        }
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
        // A failure is ignored, because large pages only make access faster.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self(Some(map)))
    }

    /// Makes the memory read-only.
    pub(crate) fn into_read_only(self) -> io::Result<ReadOnlyMemory> {
        Ok(ReadOnlyMemory(
            self.0.map(MmapMut::make_read_only).transpose()?,
        ))
    }
}

impl Deref for MemoryMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl DerefMut for MemoryMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_deref_mut().unwrap_or_default()
    }
}

/// An array in large pages; a page takes RAM only once it is touched. A small array is a vector.
#[derive(Debug)]
pub(crate) struct LargePageArray<T>(ArrayMemory<T>);

#[derive(Debug)]
enum ArrayMemory<T> {
    Small(Vec<T>),
    Mapped { memory: MemoryMut, length: usize },
}

/// Bytes below which an array is a vector, because mapping memory takes longer than filling that.
const SMALL_ARRAY: usize = 1 << 16;

impl<T: bytemuck::Pod> LargePageArray<T> {
    /// Allocates an array of `length` zeros.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the memory cannot be allocated.
    pub(crate) fn allocate_zeroed(length: usize) -> Result<Self> {
        let bytes = length * size_of::<T>();
        if bytes < SMALL_ARRAY {
            return Ok(Self(ArrayMemory::Small(vec![T::zeroed(); length])));
        }
        let memory = MemoryMut::allocate_zeroed(bytes).map_err(|error| {
            let message = format!("cannot allocate {bytes} bytes of memory: {error}");
            Error::new(ErrorKind::Limit, message)
        })?;
        Ok(Self(ArrayMemory::Mapped { memory, length }))
    }
}

impl<T: bytemuck::Pod> Deref for LargePageArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            ArrayMemory::Small(array) => array,
            ArrayMemory::Mapped { memory, length } => &bytemuck::cast_slice(memory)[..*length],
        }
    }
}

impl<T: bytemuck::Pod> DerefMut for LargePageArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            ArrayMemory::Small(array) => array,
            ArrayMemory::Mapped { memory, length } => {
                &mut bytemuck::cast_slice_mut(memory)[..*length]
            }
        }
    }
}

/// A chunked vector of cache lines: growth never moves a line. Lines are zero at first.
#[derive(Debug)]
pub(crate) struct ChunkedLines {
    /// Start of each chunk.
    chunks: Vec<NonNull<CacheLine>>,
    /// Owners of the chunks.
    memory: Vec<MemoryMut>,
    /// Base-2 logarithm of the number of lines in a chunk.
    chunk_bits: u32,
}

// SAFETY: the pointers lead to memory that `ChunkedLines` owns; it hands out references by the same
// rules as a slice of lines would.
unsafe impl Send for ChunkedLines {}
// SAFETY: as above.
unsafe impl Sync for ChunkedLines {}

impl ChunkedLines {
    /// Creates an empty vector with chunks of 2 to the power of `chunk_bits` lines.
    pub(crate) fn new(chunk_bits: u32) -> Self {
        Self {
            chunks: Vec::new(),
            memory: Vec::new(),
            chunk_bits,
        }
    }

    /// Makes room for `lines` lines in total. A chunk takes address space at once, but RAM only where it is
    /// touched.
    pub(crate) fn reserve_lines(&mut self, lines: u64) -> io::Result<()> {
        while (self.chunks.len() as u64) << self.chunk_bits < lines {
            let mut memory = MemoryMut::allocate_zeroed(size_of::<CacheLine>() << self.chunk_bits)?;
            let chunk: &mut [CacheLine] = bytemuck::cast_slice_mut(&mut memory);
            self.chunks.push(NonNull::from(chunk).cast());
            self.memory.push(memory);
        }
        Ok(())
    }

    /// Returns a line for which room was reserved.
    #[inline(always)]
    pub(crate) fn line(&self, at: u32) -> &CacheLine {
        let chunk = self.chunks[(at >> self.chunk_bits) as usize];
        // SAFETY: the index within the chunk is below the chunk's number of lines, all of which are
        // initialised; the returned reference borrows `self`.
        unsafe { chunk.add(self.index_in_chunk(at)).as_ref() }
    }

    /// Returns a line for which room was reserved.
    #[inline(always)]
    pub(crate) fn line_mut(&mut self, at: u32) -> &mut CacheLine {
        let chunk = self.chunks[(at >> self.chunk_bits) as usize];
        // SAFETY: as in `line`; `self` is borrowed mutably.
        unsafe { chunk.add(self.index_in_chunk(at)).as_mut() }
    }

    /// Makes the system allocate the page of an unwritten line now, before the line is needed.
    pub(crate) fn touch_line(&mut self, at: u32) {
        self.line_mut(at).0[0] = std::hint::black_box(0);
    }

    #[inline(always)]
    fn index_in_chunk(&self, at: u32) -> usize {
        (at & ((1 << self.chunk_bits) - 1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_zero_on_both_sides_of_the_limit() {
        for length in [0, 1, SMALL_ARRAY / 8 - 1, SMALL_ARRAY / 8, SMALL_ARRAY] {
            let mut array = LargePageArray::<u64>::allocate_zeroed(length).unwrap();
            let is_small = matches!(array.0, ArrayMemory::Small(_));
            assert_eq!(is_small, length * 8 < SMALL_ARRAY);
            assert_eq!(array.len(), length);
            assert!(array.iter().all(|&number| number == 0));
            if let Some(last) = array.last_mut() {
                *last = 7;
                assert_eq!(array[length - 1], 7);
            }
        }
    }

    #[test]
    fn allocated_lines_never_move() {
        let mut lines = ChunkedLines::new(3);
        for count in 1..100u32 {
            lines.reserve_lines(count.into()).unwrap();
            let last = lines.line_mut(count - 1);
            assert_eq!(last.0, [0; crate::arch::LINE]);
            last.0[5] = count;
            assert!((0..count).all(|at| lines.line(at).0[5] == at + 1));
        }
    }
}
