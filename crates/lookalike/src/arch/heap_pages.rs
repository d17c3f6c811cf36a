//! Ordinary memory with the calls of mapped memory, for WebAssembly, which can map nothing.
//!
//! It is as aligned and as zero as mapped memory is. Cost: a file is read as a whole when it is mapped, and all pages take
//! memory at once.

use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, DerefMut};

use super::CacheLine;

/// Bytes in whole cache lines.
#[derive(Debug, Default)]
pub(super) struct HeapPages {
    lines: Vec<CacheLine>,
    length: usize,
}

/// The settings of an allocation.
#[derive(Debug, Default)]
pub(super) struct HeapPagesOptions {
    length: usize,
}

impl HeapPages {
    /// Reads a whole file.
    ///
    /// # Errors
    /// If the file cannot be read.
    ///
    /// # Safety
    /// Calling it is always safe. Mapping a file is not, and this call has the same form.
    pub(super) unsafe fn map(mut file: &File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let mut pages = HeapPagesOptions { length }.map_anon()?;
        file.read_exact(&mut pages)?;
        Ok(pages)
    }

    /// Returns the same bytes. Nobody writes to them any more.
    pub(super) fn make_read_only(self) -> io::Result<Self> {
        Ok(self)
    }
}

impl HeapPagesOptions {
    /// Creates settings for no bytes.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Sets the number of bytes.
    pub(super) fn len(&mut self, length: usize) -> &mut Self {
        self.length = length;
        self
    }

    /// Has no effect, because there is no swap space.
    pub(super) fn no_reserve_swap(&mut self) -> &mut Self {
        self
    }

    /// Allocates zero bytes.
    ///
    /// # Errors
    /// If there is no memory.
    pub(super) fn map_anon(&self) -> io::Result<HeapPages> {
        let count = self.length.div_ceil(size_of::<CacheLine>());
        let mut lines = Vec::new();
        lines
            .try_reserve_exact(count)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        lines.resize(count, bytemuck::Zeroable::zeroed());
        Ok(HeapPages {
            lines,
            length: self.length,
        })
    }
}

impl Deref for HeapPages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.length]
    }
}

impl DerefMut for HeapPages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn pages_are_zero_aligned_and_as_long_as_wanted() {
        for length in [0, 1, 63, 64, 65, 4097] {
            let mut pages = HeapPagesOptions::new().len(length).map_anon().unwrap();
            assert_eq!(pages.len(), length);
            assert_eq!(pages.as_ptr().addr() % size_of::<CacheLine>(), 0);
            assert!(pages.iter().all(|&byte| byte == 0));
            pages.fill(7);
            assert_eq!(&*pages.make_read_only().unwrap(), vec![7; length]);
        }
    }

    #[test]
    fn mapped_file_has_its_bytes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let written: Vec<u8> = (0..200).collect();
        file.write_all(&written).unwrap();
        let opened = File::open(file.path()).unwrap();
        // SAFETY: the call is always safe.
        let pages = unsafe { HeapPages::map(&opened) }.unwrap();
        assert_eq!(&*pages, written);
    }
}
