//! A file whose changes stay in memory. Databases need it, because they write even when opened for reading.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::DiskFile;

/// Bytes of a page, the unit in which changes are kept.
const PAGE_BYTES: u64 = 4096;

/// A read-only file, overlaid with changes in memory.
#[derive(Debug)]
pub(crate) struct OverlayFile {
    below: Arc<dyn DiskFile>,
    above: Mutex<OverlayPages>,
}

/// The changes.
#[derive(Debug)]
struct OverlayPages {
    length: u64,
    /// Length of the part of the underlying file that is still visible.
    counted: u64,
    /// Changed pages by number.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl OverlayFile {
    pub(crate) fn new(below: Arc<dyn DiskFile>) -> io::Result<Self> {
        let length = below.len()?;
        let above = Mutex::new(OverlayPages {
            length,
            counted: length,
            pages: BTreeMap::new(),
        });
        Ok(Self { below, above })
    }

    fn lock_overlay(&self) -> MutexGuard<'_, OverlayPages> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OverlayPages {
    /// Reads from the underlying file, and zeros beyond its visible part.
    fn read_below(
        &self,
        below: &Arc<dyn DiskFile>,
        bytes: &mut [u8],
        offset: u64,
    ) -> io::Result<()> {
        let count = self.counted.saturating_sub(offset).min(bytes.len() as u64);
        let (counted, behind) = bytes.split_at_mut(count as usize);
        below.read_exact(counted, offset)?;
        behind.fill(0);
        Ok(())
    }

    /// Returns a page for writing.
    fn writable_page(
        &mut self,
        below: &Arc<dyn DiskFile>,
        number: u64,
    ) -> io::Result<&mut Vec<u8>> {
        if !self.pages.contains_key(&number) {
            let mut page = vec![0; PAGE_BYTES as usize];
            self.read_below(below, &mut page, number * PAGE_BYTES)?;
            self.pages.insert(number, page);
        }
        Ok(self.pages.entry(number).or_default())
    }
}

/// Calls `visit` for each page of a byte range, with the page number, the start within the page, and the part
/// of the range that is in it.
fn visit_pages(
    offset: u64,
    length: usize,
    mut visit: impl FnMut(u64, usize, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let (number, start) = (
            (offset + done as u64) / PAGE_BYTES,
            (offset + done as u64) % PAGE_BYTES,
        );
        let count = (length - done).min((PAGE_BYTES - start) as usize);
        visit(number, start as usize, done..done + count)?;
        done += count;
    }
    Ok(())
}

impl DiskFile for OverlayFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock_overlay().length)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut above = self.lock_overlay();
        if len < above.length {
            above.counted = above.counted.min(len);
            above.pages.split_off(&len.div_ceil(PAGE_BYTES));
            if let Some(last) = above.pages.get_mut(&(len / PAGE_BYTES)) {
                last[(len % PAGE_BYTES) as usize..].fill(0);
            }
        }
        above.length = len;
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let above = self.lock_overlay();
        let there = above.length.saturating_sub(offset);
        let count = there.min(bytes.len() as u64) as usize;
        let bytes = &mut bytes[..count];
        above.read_below(&self.below, bytes, offset)?;
        if above.pages.is_empty() {
            return Ok(count);
        }
        visit_pages(offset, count, |number, start, of_bytes| {
            if let Some(page) = above.pages.get(&number) {
                bytes[of_bytes.clone()].copy_from_slice(&page[start..start + of_bytes.len()]);
            }
            Ok(())
        })?;
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut above = self.lock_overlay();
        visit_pages(offset, bytes.len(), |number, start, of_bytes| {
            let page = above.writable_page(&self.below, number)?;
            page[start..start + of_bytes.len()].copy_from_slice(&bytes[of_bytes]);
            Ok(())
        })?;
        above.length = above.length.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::{Disk, DiskFolder};

    #[derive(Clone, Debug)]
    enum Change {
        Write(u64, Vec<u8>),
        Length(u64),
    }

    fn change() -> impl Strategy<Value = Change> {
        let bytes = proptest::collection::vec(1u8.., 0..9000);
        prop_oneof![
            (0..20_000u64, bytes).prop_map(|(at, bytes)| Change::Write(at, bytes)),
            (0..20_000u64).prop_map(Change::Length),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// After any writes and truncations it reads like a real file.
        #[test]
        fn overlay_reads_like_a_written_file(
            length in 0..20_000usize,
            changes in proptest::collection::vec(change(), 0..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let disk = DiskFolder::open(folder.path()).unwrap();
            let mut expected = vec![9; length];
            let below = disk.create_file("file").unwrap();
            below.write_at(&expected, 0).unwrap();
            let file = OverlayFile::new(below.clone()).unwrap();
            for change in changes {
                match change {
                    Change::Write(at, bytes) => {
                        let end = at as usize + bytes.len();
                        if !bytes.is_empty() {
                            expected.resize(expected.len().max(end), 0);
                        }
                        expected[..].get_mut(at as usize..end).unwrap_or_default()
                            .copy_from_slice(&bytes);
                        if !bytes.is_empty() {
                            file.write_at(&bytes, at).unwrap();
                        }
                    }
                    Change::Length(length) => {
                        expected.resize(length as usize, 0);
                        file.set_len(length).unwrap();
                    }
                }
                let mut read = vec![7; expected.len() + 1];
                prop_assert_eq!(file.len().unwrap(), expected.len() as u64);
                prop_assert_eq!(file.read_at(&mut read, 0).unwrap(), expected.len());
                prop_assert!(read[..expected.len()] == expected);
                let from = expected.len() / 3;
                let rest = file.read_at(&mut read, from as u64).unwrap();
                prop_assert!(read[..rest] == expected[from..]);
            }
            prop_assert_eq!(below.len().unwrap(), length as u64);
        }
    }
}
