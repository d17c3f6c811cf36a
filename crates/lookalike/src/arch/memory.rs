//! Large memory: anonymous with large pages, or a file mapped for reading.
//!
//! Structures that are read at random want large pages: with small ones every access also misses the
//! table that translates addresses. Anonymous memory is zero and takes room only where it was
//! touched.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::{Advice, Mmap, MmapMut, MmapOptions};

/// Bytes that are only read, aligned to at least 64.
#[derive(Debug)]
pub(crate) struct Memory(Option<Mmap>);

/// Bytes of one's own, zero at first, aligned to at least 64.
#[derive(Debug)]
pub(crate) struct MemoryMut(Option<MmapMut>);

impl Memory {
    /// Maps a whole file.
    ///
    /// A file that somebody else cuts short while it is mapped ends the process when the missing
    /// part is read: files handed in must be ones that are only ever replaced.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the bytes are only read, and have no invalid values; that they do not change
        // underneath is the caller's contract, stated above.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(Some(map)))
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl MemoryMut {
    /// This many zero bytes.
    pub(crate) fn zeroed(bytes: usize) -> io::Result<Self> {
        if bytes == 0 {
            return Ok(Self(None));
        }
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
        // Without large pages everything still works.
        #[cfg(target_os = "linux")]
        let _ = map.advise(Advice::HugePage);
        Ok(Self(Some(map)))
    }

    /// From now on only to be read.
    pub(crate) fn freeze(self) -> io::Result<Memory> {
        Ok(Memory(self.0.map(MmapMut::make_read_only).transpose()?))
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
