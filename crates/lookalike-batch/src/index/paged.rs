//! Files that are written once and read in pages, each of which is verified on its first use.
//!
//! Opening a file reads the page checksums and the footer, which verifies them, and no data. A page is read and verified
//! when it is first needed, and then stays in memory, unless only the pages that were read last are kept.
//!
//! | part | bytes |
//! |---|---|
//! | data | any number |
//! | checksums | 8 per page of 64 KiB |
//! | length of the data | 8 |
//! | seal: a checksum of the two parts before | 8 |
//! | magic: 4 bytes for the type of content, 4 bytes for the version | 8 |

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::AtomicFile;
use lookalike_system::PositionedAccess;

/// Bytes of a page.
const PAGE_BYTES: usize = 64 << 10;

/// Bytes of the footer.
const FOOTER_BYTES: usize = 24;

/// The version of all paged files.
const PAGED_FILE_VERSION: u32 = 1;

/// Bytes collected before a write.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// Fewest pages in memory if only those that were read last are kept: enough for files that are read in order.
pub(super) const MIN_RECENT_PAGES: usize = 4;

/// The type of a file's content: the first four bytes of the magic.
pub(super) type FileMagic = [u8; 4];

/// Writes a paged file. It appears under its name when [`finish_file`](Self::finish_file) completes it.
pub(super) struct PagedWriter {
    path: PathBuf,
    output: BufWriter<PagedOutput>,
    page: Vec<u8>,
    checksums: Vec<u8>,
    length: u64,
    magic: FileMagic,
}

/// Writes to a file that does not have its name yet.
struct PagedOutput(AtomicFile);

impl Write for PagedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An opened paged file.
pub(super) struct PagedFile {
    path: PathBuf,
    file: File,
    length: u64,
    checksums: Vec<u64>,
    pages: PageCache,
    seal: u64,
}

/// The verified pages in memory.
enum PageCache {
    /// All that were read.
    All(Vec<OnceLock<Box<[u8]>>>),
    /// The pages that were read from the file last; a use does not count.
    Recent(Mutex<RecentPages>),
}

/// The pages of a file that were read last.
struct RecentPages {
    capacity: usize,
    pages: HashMap<usize, Arc<[u8]>>,
    /// Oldest first.
    order: VecDeque<usize>,
}

impl RecentPages {
    fn add_page(&mut self, index: usize, page: Arc<[u8]>) {
        if self.order.len() == self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.pages.remove(&oldest);
        }
        self.pages.insert(index, page);
        self.order.push_back(index);
    }
}

/// A verified page.
enum VerifiedPage<'a> {
    Kept(&'a [u8]),
    Recent(Arc<[u8]>),
}

impl Deref for VerifiedPage<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Kept(page) => page,
            Self::Recent(page) => page,
        }
    }
}

impl Write for PagedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put_bytes(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PagedWriter {
    pub(super) fn create_file(path: &Path, magic: FileMagic) -> Result<Self> {
        let file = AtomicFile::create_for(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            output: BufWriter::with_capacity(WRITE_BUFFER_BYTES, PagedOutput(file)),
            page: Vec::with_capacity(PAGE_BYTES),
            checksums: Vec::new(),
            length: 0,
            magic,
        })
    }

    /// Returns the number of bytes put so far.
    pub(super) fn byte_length(&self) -> u64 {
        self.length
    }

    pub(super) fn put_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAGE_BYTES - self.page.len()));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() == PAGE_BYTES {
                self.finish_page()?;
            }
        }
        Ok(())
    }

    fn finish_page(&mut self) -> Result<()> {
        self.checksums
            .extend(lookalike::value_hash(&self.page).to_le_bytes());
        let written = self.output.write_all(&self.page);
        self.page.clear();
        written.map_err(|cause| Error::write_error("write", display_path(&self.path), cause))
    }

    /// Completes the file, syncs it and renames it into place. Returns its seal.
    pub(super) fn finish_file(mut self) -> Result<u64> {
        if !self.page.is_empty() {
            self.finish_page()?;
        }
        self.checksums.extend(self.length.to_le_bytes());
        let seal = lookalike::value_hash(&self.checksums);
        let written = self
            .output
            .write_all(&self.checksums)
            .and_then(|()| self.output.write_all(&seal.to_le_bytes()))
            .and_then(|()| self.output.write_all(&self.magic))
            .and_then(|()| self.output.write_all(&PAGED_FILE_VERSION.to_le_bytes()));
        let failed = |cause| Error::write_error("write", display_path(&self.path), cause);
        written.map_err(failed)?;
        let output = self.output.into_inner();
        let output = output.map_err(|error| failed(error.into_error()))?;
        output.0.commit_file()?;
        Ok(seal)
    }
}

impl PagedFile {
    /// Opens a file whose content must be of the type `magic`.
    pub(super) fn open_file(path: &Path, magic: FileMagic) -> Result<Self> {
        let name = display_path(path);
        let failed = |cause| Error::read_error("read", &name, cause);
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let mut footer = [0; FOOTER_BYTES];
        let start = bytes.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| {
            damaged_file(path, &format!("it has {bytes} bytes, less than a footer"))
        })?;
        file.read_exact_bytes_at(&mut footer, start)
            .map_err(failed)?;
        let number = |at: usize| u64::from_le_bytes(to_array(&footer[at..at + 8]));
        let (length, seal) = (number(0), number(8));
        if footer[16..20] != magic {
            return Err(damaged_file(path, "it is a file of another kind"));
        }
        let version = u32::from_le_bytes(to_array(&footer[20..]));
        if version != PAGED_FILE_VERSION {
            return Err(Error::input_error(format!(
                "{name} is of version {version}; this program reads version {PAGED_FILE_VERSION}"
            )));
        }
        let pages = length.div_ceil(PAGE_BYTES as u64);
        let expected_bytes = pages
            .checked_mul(8)
            .and_then(|table| table.checked_add(length)?.checked_add(FOOTER_BYTES as u64));
        if expected_bytes != Some(bytes) {
            return Err(damaged_file(
                path,
                &format!("it has {bytes} bytes, which does not match {length} bytes of data"),
            ));
        }
        let mut table = vec![0; pages as usize * 8 + 8];
        file.read_exact_bytes_at(&mut table, length)
            .map_err(failed)?;
        if lookalike::value_hash(&table) != seal {
            return Err(damaged_file(
                path,
                "its checksums do not match their own checksum",
            ));
        }
        let checksums: Vec<_> = table[..pages as usize * 8]
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(to_array(bytes)))
            .collect();
        Ok(Self {
            path: path.to_path_buf(),
            file,
            length,
            pages: PageCache::All(checksums.iter().map(|_| OnceLock::new()).collect()),
            checksums,
            seal,
        })
    }

    /// Keeps only the `most` pages that were read last from now on, at least [`MIN_RECENT_PAGES`].
    pub(super) fn keep_recent_pages(&mut self, most: usize) {
        self.pages = PageCache::Recent(Mutex::new(RecentPages {
            capacity: most.max(MIN_RECENT_PAGES),
            pages: HashMap::new(),
            order: VecDeque::new(),
        }));
    }

    /// Keeps as many pages from now on as fit into the part of this file in `bytes`, a budget that files of `all_bytes` in
    /// total share by their lengths.
    pub(super) fn keep_recent_within_share(&mut self, bytes: u64, all_bytes: u64) {
        let share = u128::from(bytes) * u128::from(self.length) / u128::from(all_bytes.max(1));
        self.keep_recent_pages((share / PAGE_BYTES as u128) as usize);
    }

    /// Returns the seal: a checksum that identifies the whole content.
    pub(super) fn seal(&self) -> u64 {
        self.seal
    }

    pub(super) fn byte_length(&self) -> u64 {
        self.length
    }

    pub(super) fn file_path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes `start..end` of the data.
    pub(super) fn read_range(&self, start: u64, end: u64) -> Result<Cow<'_, [u8]>> {
        if start > end || end > self.length {
            return Err(damaged_file(
                &self.path,
                &format!("it refers to its bytes {start} to {end} of {}", self.length),
            ));
        }
        if start == end {
            return Ok(Cow::Borrowed(&[]));
        }
        let (first, last) = (start / PAGE_BYTES as u64, (end - 1) / PAGE_BYTES as u64);
        let offset = (start % PAGE_BYTES as u64) as usize;
        let length = (end - start) as usize;
        if first == last {
            return Ok(match self.verified_page(first as usize)? {
                VerifiedPage::Kept(page) => Cow::Borrowed(&page[offset..offset + length]),
                VerifiedPage::Recent(page) => Cow::Owned(page[offset..offset + length].to_vec()),
            });
        }
        let mut bytes = Vec::with_capacity(length);
        for page in first..=last {
            let from = if page == first { offset } else { 0 };
            let page = self.verified_page(page as usize)?;
            let page = &page[from..];
            bytes.extend_from_slice(&page[..page.len().min(length - bytes.len())]);
        }
        Ok(Cow::Owned(bytes))
    }

    /// Returns a page that was verified, from memory or from the file.
    fn verified_page(&self, index: usize) -> Result<VerifiedPage<'_>> {
        let recent = match &self.pages {
            PageCache::All(pages) => {
                if let Some(page) = pages[index].get() {
                    return Ok(VerifiedPage::Kept(page));
                }
                let page = self.read_page(index)?;
                return Ok(VerifiedPage::Kept(pages[index].get_or_init(|| page)));
            }
            PageCache::Recent(recent) => recent,
        };
        let lock = || recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = lock().pages.get(&index) {
            return Ok(VerifiedPage::Recent(Arc::clone(page)));
        }
        // The lock is not held while a page is read: two threads that want the same page both read it.
        let page: Arc<[u8]> = self.read_page(index)?.into();
        let mut recent = lock();
        if !recent.pages.contains_key(&index) {
            recent.add_page(index, Arc::clone(&page));
        }
        Ok(VerifiedPage::Recent(page))
    }

    fn read_page(&self, index: usize) -> Result<Box<[u8]>> {
        let start = (index * PAGE_BYTES) as u64;
        let mut page = vec![0; PAGE_BYTES.min((self.length - start) as usize)];
        self.file
            .read_exact_bytes_at(&mut page, start)
            .map_err(|cause| Error::read_error("read", display_path(&self.path), cause))?;
        if lookalike::value_hash(&page) != self.checksums[index] {
            let end = start + page.len() as u64;
            return Err(damaged_file(
                &self.path,
                &format!("bytes {start} to {end} do not match their checksum"),
            ));
        }
        Ok(page.into_boxed_slice())
    }

    /// Reads and verifies every page without keeping it in memory.
    pub(super) fn verify_pages(&self) -> Result<()> {
        (0..self.checksums.len()).try_for_each(|index| self.read_page(index).map(drop))
    }

    /// Reads the first `end` bytes page by page without keeping them in memory.
    pub(super) fn scan_pages(
        &self,
        end: u64,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        for index in 0..end.div_ceil(PAGE_BYTES as u64) {
            let page = self.read_page(index as usize)?;
            let left = end - index * PAGE_BYTES as u64;
            visit(&page[..page.len().min(left as usize)])?;
        }
        Ok(())
    }
}

/// Returns the error for a damaged file of an index.
pub(super) fn damaged_file(path: &Path, what: &str) -> Error {
    Error::input_error(format!(
        "{} is damaged: {what}; restore it from a copy, or build the index again",
        display_path(path)
    ))
}

/// Converts a slice of exactly `N` bytes to an array.
pub(super) fn to_array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the caller cut as many bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_MAGIC: FileMagic = *b"test";

    fn write(path: &Path, data: &[u8]) -> u64 {
        let mut file = PagedWriter::create_file(path, TEST_MAGIC).unwrap();
        data.chunks(1000)
            .for_each(|piece| file.put_bytes(piece).unwrap());
        assert_eq!(file.byte_length(), data.len() as u64);
        file.finish_file().unwrap()
    }

    #[test]
    fn any_range_reads_across_page_borders() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        for length in [
            0,
            1,
            PAGE_BYTES - 1,
            PAGE_BYTES,
            PAGE_BYTES + 1,
            3 * PAGE_BYTES,
            3 * PAGE_BYTES + 7,
        ] {
            let data: Vec<u8> = (0..length).map(|at| (at * 31 / 7) as u8).collect();
            let seal = write(&path, &data);
            let mut file = PagedFile::open_file(&path, TEST_MAGIC).unwrap();
            assert_eq!((file.byte_length(), file.seal()), (length as u64, seal));
            file.verify_pages().unwrap();
            let borders = (0..4).flat_map(|page| [0, 1, 2].map(|off| page * PAGE_BYTES + off));
            let places: Vec<_> = borders.map(|at| at.saturating_sub(1).min(length)).collect();
            for keeps_all in [true, false] {
                if !keeps_all {
                    file.keep_recent_pages(0);
                }
                for &start in &places {
                    for &end in places.iter().filter(|&&end| end >= start) {
                        let piece = file.read_range(start as u64, end as u64).unwrap();
                        assert_eq!(&piece[..], &data[start..end]);
                    }
                }
                assert!(file.read_range(0, length as u64 + 1).is_err());
            }
            let mut scanned = Vec::new();
            let take = |page: &[u8]| {
                scanned.extend_from_slice(page);
                Ok(())
            };
            file.scan_pages(length as u64, take).unwrap();
            assert_eq!(scanned, data);
        }
    }

    #[test]
    fn damage_is_detected_on_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let data = vec![7; 2 * PAGE_BYTES];
        write(&path, &data);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[PAGE_BYTES] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let file = PagedFile::open_file(&path, TEST_MAGIC).unwrap();
        assert_eq!(&file.read_range(0, 3).unwrap()[..], &data[..3]);
        let error = file
            .read_range(PAGE_BYTES as u64 - 1, PAGE_BYTES as u64 + 1)
            .unwrap_err();
        assert!(error.to_string().contains("65536 to 131072"), "{error}");
        assert!(file.verify_pages().is_err());
        // All bytes after the data are verified when the file is opened.
        for at in 2 * PAGE_BYTES..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&path, &flipped).unwrap();
            assert!(PagedFile::open_file(&path, TEST_MAGIC).is_err(), "{at}");
        }
        for length in [0, 1, FOOTER_BYTES - 1, FOOTER_BYTES, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(PagedFile::open_file(&path, TEST_MAGIC).is_err(), "{length}");
        }
        std::fs::write(&path, &whole).unwrap();
        assert!(PagedFile::open_file(&path, *b"tset").is_err());
    }
}
