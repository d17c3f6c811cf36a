//! A file to which several threads append and which they read at any offset.
//!
//! Unless it is opened by a path, it has no name, so nothing remains however the process ends. Appending reserves
//! space with one atomic addition and then writes without a lock. The bytes of one call are contiguous.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike_system::PositionedAccess;

use crate::error::{Error, Result, display_path};

/// A file that grows at its end.
#[derive(Debug)]
pub struct SpoolFile {
    /// `None` if nothing will be read back.
    file: Option<File>,
    end: AtomicU64,
    /// The file in messages.
    name: String,
}

/// Name of a file without a path in messages.
const UNNAMED: &str = "the temporary file";

impl SpoolFile {
    /// Creates a spool in `directory`, or in the system's directory for temporary files.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create_file(directory: Option<&Path>) -> Result<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|cause| {
            Error::write_error(
                "create a temporary file in",
                display_path(&directory),
                cause,
            )
        })?;
        Ok(Self {
            file: Some(file),
            end: AtomicU64::new(0),
            name: UNNAMED.to_owned(),
        })
    }

    /// Opens a file that outlives the process, and creates it if it does not exist. What is appended follows its
    /// content.
    ///
    /// # Errors
    /// If the file cannot be opened.
    #[cfg(feature = "object-store")]
    pub(crate) fn open_path(path: &Path) -> Result<Self> {
        let failed = |cause| Error::write_error("open", display_path(path), cause);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let end = file.metadata().map_err(failed)?.len();
        Ok(Self {
            file: Some(file),
            end: AtomicU64::new(end),
            name: display_path(path),
        })
    }

    /// Creates a spool that hands out offsets but discards what is appended.
    pub(crate) fn forgetting() -> Self {
        Self {
            file: None,
            end: AtomicU64::new(0),
            name: UNNAMED.to_owned(),
        }
    }

    /// Returns the total length, which is where the next [`append_bytes`](Self::append_bytes) writes.
    pub fn end_offset(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Appends `bytes` and returns the offset at which they begin.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append_bytes(&self, bytes: &[u8]) -> Result<u64> {
        let start = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let Some(file) = &self.file else {
            return Ok(start);
        };
        file.write_all_bytes_at(bytes, start).map_err(|cause| {
            let place = format_args!("byte {start} of {}", self.name);
            Error::write_error("write", place, cause)
        })?;
        Ok(start)
    }

    /// Fills `bytes` with the bytes at offset `start`.
    ///
    /// # Errors
    /// If the file cannot be read, or ends before.
    pub fn read_exact_at(&self, bytes: &mut [u8], start: u64) -> io::Result<()> {
        match &self.file {
            Some(file) => file.read_exact_bytes_at(bytes, start),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_append_without_overlap() {
        let spool = SpoolFile::create_file(None).unwrap();
        let places: Vec<(u8, u64)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4u8)
                .map(|worker| {
                    let spool = &spool;
                    scope.spawn(move || {
                        let append = |_| (worker, spool.append_bytes(&[worker; 37]).unwrap());
                        (0..50).map(append).collect::<Vec<_>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap())
                .collect()
        });
        for (worker, start) in places {
            let mut bytes = [0; 37];
            spool.read_exact_at(&mut bytes, start).unwrap();
            assert_eq!(bytes, [worker; 37]);
        }
        assert_eq!(spool.end_offset(), 4 * 50 * 37);
    }

    #[cfg(feature = "object-store")]
    #[test]
    fn a_file_with_a_path_goes_on_at_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spool");
        let first = SpoolFile::open_path(&path).unwrap();
        assert_eq!(first.append_bytes(b"abc").unwrap(), 0);
        drop(first);
        let second = SpoolFile::open_path(&path).unwrap();
        assert_eq!(second.append_bytes(b"de").unwrap(), 3);
        let mut bytes = [0; 5];
        second.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"abcde");
    }
}
