//! A replica's own copies of the records that it has read or written, from which a damaged log can be repaired.

use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::keys::{RECORD_PREFIX, parse_record_key, record_key};
use crate::record::{LogId, LogRecord};

/// End of the name of a file until it is complete.
const INCOMPLETE_SUFFIX: &str = ".incomplete";

/// Copies of the objects of records.
pub trait RecordCopies: Send + Sync + Debug {
    /// Reads the copy of a record; `None` if there is none.
    ///
    /// # Errors
    /// If the copy cannot be read.
    fn read_copy(&self, number: u64) -> io::Result<Option<Vec<u8>>>;

    /// Writes the copy of a record, in place of an existing one.
    ///
    /// # Errors
    /// If the copy cannot be written.
    fn write_copy(&self, number: u64, object: &[u8]) -> io::Result<()>;

    /// Returns the largest number of a copy; `None` if there is none.
    ///
    /// # Errors
    /// If the copies cannot be listed.
    fn last_number(&self) -> io::Result<Option<u64>>;

    /// Removes the copies of all records before a number. Costs nothing if that was done before.
    ///
    /// # Errors
    /// If the copies cannot be listed, or one cannot be removed.
    fn remove_before(&self, number: u64) -> io::Result<()>;
}

/// A directory with one file for each copy, under the number of its record in 16 hexadecimal digits.
///
/// A file appears when it is complete. Files are not synced: after a power failure some may be empty or cut, which
/// their checksums tell, and the log in the store has them.
#[derive(Debug)]
pub struct FolderCopies {
    path: PathBuf,
    /// Number before which all copies were removed.
    removed_before: AtomicU64,
}

impl FolderCopies {
    /// Opens a directory, and creates it if it does not exist. Removes incomplete files.
    ///
    /// # Errors
    /// If the directory cannot be created or read.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_string_lossy().ends_with(INCOMPLETE_SUFFIX) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            removed_before: AtomicU64::new(0),
        })
    }

    /// Removes all copies unless they are of this log, because copies of two logs in one directory fit neither. `None`
    /// stands for a log that does not exist yet. Returns the number of removed copies.
    ///
    /// # Errors
    /// If the copies cannot be listed or read, or one cannot be removed.
    pub fn remove_foreign(&self, log: Option<LogId>) -> io::Result<usize> {
        let mut numbers = self.list_numbers()?;
        numbers.sort_unstable();
        if log.is_some() && self.find_log(&numbers)? == log {
            return Ok(0);
        }
        let mut paths = numbers.iter().map(|copy| self.copy_path(*copy));
        paths.try_for_each(fs::remove_file)?;
        Ok(numbers.len())
    }

    /// Returns the log of the last one of some copies that is not damaged.
    fn find_log(&self, numbers: &[u64]) -> io::Result<Option<LogId>> {
        for number in numbers.iter().rev() {
            let object = self.read_copy(*number)?.unwrap_or_default();
            if let Ok(record) = LogRecord::decode(*number, &object) {
                return Ok(Some(record.log));
            }
        }
        Ok(None)
    }

    fn copy_path(&self, number: u64) -> PathBuf {
        let key = record_key(number);
        self.path.join(&key[RECORD_PREFIX.len()..])
    }

    /// Returns the numbers of all copies, in any order.
    fn list_numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let key = format!("{RECORD_PREFIX}{}", name.to_string_lossy());
            numbers.extend(parse_record_key(&key));
        }
        Ok(numbers)
    }
}

impl RecordCopies for FolderCopies {
    fn read_copy(&self, number: u64) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.copy_path(number)) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write_copy(&self, number: u64, object: &[u8]) -> io::Result<()> {
        let path = self.copy_path(number);
        let mut incomplete = path.clone().into_os_string();
        incomplete.push(INCOMPLETE_SUFFIX);
        fs::write(&incomplete, object)?;
        fs::rename(&incomplete, &path)
    }

    fn last_number(&self) -> io::Result<Option<u64>> {
        Ok(self.list_numbers()?.into_iter().max())
    }

    fn remove_before(&self, number: u64) -> io::Result<()> {
        if self.removed_before.load(Relaxed) >= number {
            return Ok(());
        }
        let mut numbers = self.list_numbers()?;
        numbers.retain(|copy| *copy < number);
        // From the first on, so that an interruption leaves no gap.
        numbers.sort_unstable();
        let mut paths = numbers.into_iter().map(|copy| self.copy_path(copy));
        paths.try_for_each(fs::remove_file)?;
        self.removed_before.store(number, Relaxed);
        Ok(())
    }
}
