//! Copies the cached sketches of the documents that a compaction keeps.

use super::compaction::PIECE;
use crate::disk::Disk;
use crate::files::partition_header::PartitionHeader;
use crate::files::sketches::{SketchEntries, SketchFile, SketchFileReader};

/// Bytes of sketches that may wait to be written to the disk, so that commits of others do not wait for many.
const MOST_UNSYNCED_BYTES: u64 = PIECE as u64;

/// The caches before and after. A new cache that is incomplete or cannot be written is abandoned here, and
/// rebuilt when the collection is opened.
pub(super) struct SketchCopier {
    reader: SketchFileReader,
    file: Option<SketchFile>,
    /// Entries that are not written yet.
    entries: SketchEntries,
}

impl SketchCopier {
    pub(super) fn new(disk: &dyn Disk, from: PartitionHeader, to: PartitionHeader) -> Self {
        Self {
            reader: SketchFileReader::open_file(disk, from.seal, from.file_names()),
            file: SketchFile::create_file(disk, to.seal, to.file_names()).ok(),
            entries: SketchEntries::default(),
        }
    }

    /// Reads the entry of the next kept document, and copies it if that is live.
    pub(super) fn copy_entry(&mut self, content_hash: u64, is_live: bool) {
        let entry = self.reader.next_entry();
        if self.file.is_none() || !is_live {
            return;
        }
        match entry
            .as_ref()
            .and_then(|entry| entry.sketches_for(content_hash))
        {
            Some(bytes) => self
                .entries
                .push_entry(content_hash, |into| into.extend(bytes)),
            None => self.file = None,
        }
    }

    /// Returns the bytes of the entries that are not written yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.entries.byte_count()
    }

    pub(super) fn write_entries(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        self.file
            .take_if(|file| file.append_and_sync(&entries, MOST_UNSYNCED_BYTES).is_err());
    }

    /// Returns the new cache, if it is complete.
    pub(super) fn take_file(&mut self) -> Option<SketchFile> {
        self.file.take()
    }
}
