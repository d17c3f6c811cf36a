//! Bytes by document, in memory or in a temporary file.
//!
//! Records are written in the order of their documents and are read in any order. Memory: 12 bytes for each record, and
//! the records themselves unless they are in a file.

use std::path::Path;

use lookalike_io::error::{Error, Result};
use lookalike_io::spool::SpoolFile;

/// Records by document.
pub(super) struct DocumentRecords {
    storage: RecordStorage,
    /// Documents with a record, ascending.
    documents: Vec<u32>,
    /// The end of each record.
    ends: Vec<u64>,
}

enum RecordStorage {
    Memory(Vec<u8>),
    File(SpoolFile),
}

impl DocumentRecords {
    /// Creates records in memory.
    pub(super) fn in_memory() -> Self {
        Self::with_storage(RecordStorage::Memory(Vec::new()))
    }

    /// Creates records in a temporary file in `directory`, or in the system's directory for temporary files.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(super) fn in_file(directory: Option<&Path>) -> Result<Self> {
        Ok(Self::with_storage(RecordStorage::File(
            SpoolFile::create_file(directory)?,
        )))
    }

    fn with_storage(storage: RecordStorage) -> Self {
        Self {
            storage,
            documents: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds the record of a document behind all documents that have one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn push_record(&mut self, document: u32, record: &[u8]) -> Result<()> {
        debug_assert!(self.documents.last().is_none_or(|&last| last < document));
        match &mut self.storage {
            RecordStorage::Memory(bytes) => bytes.extend_from_slice(record),
            RecordStorage::File(file) => {
                file.append_bytes(record)?;
            }
        }
        let start = self.ends.last().copied().unwrap_or(0);
        self.documents.push(document);
        self.ends.push(start + record.len() as u64);
        Ok(())
    }

    /// Returns the documents with a record, ascending.
    pub(super) fn documents(&self) -> &[u32] {
        &self.documents
    }

    /// Replaces `record` by that of a document. Returns `false` if it has none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read_record(&self, document: u32, record: &mut Vec<u8>) -> Result<bool> {
        record.clear();
        let Ok(at) = self.documents.binary_search(&document) else {
            return Ok(false);
        };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let end = self.ends[at];
        match &self.storage {
            RecordStorage::Memory(bytes) => {
                record.extend_from_slice(&bytes[start as usize..end as usize]);
            }
            RecordStorage::File(file) => {
                record.resize((end - start) as usize, 0);
                file.read_exact_at(record, start).map_err(|cause| {
                    let place = format_args!("byte {start} of the temporary file");
                    Error::read_error("read", place, cause)
                })?;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_in_any_order_from_memory_and_from_a_file() {
        for mut records in [
            DocumentRecords::in_memory(),
            DocumentRecords::in_file(None).unwrap(),
        ] {
            let record = |document: u32| vec![document as u8; document as usize % 70];
            for document in (5..2000).step_by(3) {
                records.push_record(document, &record(document)).unwrap();
            }
            let mut read = vec![1];
            for document in (0..2100).rev() {
                let has_record = (5..2000).contains(&document) && document % 3 == 2;
                let is_found = records.read_record(document, &mut read).unwrap();
                assert_eq!(is_found, has_record, "{document}");
                if has_record {
                    assert_eq!(read, record(document));
                } else {
                    assert!(read.is_empty());
                }
            }
            assert_eq!(records.documents().len(), 665);
        }
    }
}
