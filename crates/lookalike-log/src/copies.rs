//! A replica's own copies of the records that it has read or written, from which a damaged log can be repaired.

use std::fmt::Debug;
use std::io;

/// Copies of the objects of records.
pub trait RecordCopies: Send + Sync + Debug {
    /// Reads the copy of a record; `None` if there is none.
    ///
    /// # Errors
    /// If the copy cannot be read.
    fn read_copy(&self, number: u64) -> io::Result<Option<Vec<u8>>>;

    /// Writes the copy of a record.
    ///
    /// # Errors
    /// If the copy cannot be written.
    fn write_copy(&self, number: u64, object: &[u8]) -> io::Result<()>;

    /// Returns the largest number of a copy; `None` if there is none.
    ///
    /// # Errors
    /// If the copies cannot be listed.
    fn last_number(&self) -> io::Result<Option<u64>>;

    /// Removes the copies of all records before a number.
    ///
    /// # Errors
    /// If a copy cannot be removed.
    fn remove_before(&self, number: u64) -> io::Result<()>;
}
