//! A record that is read without the lock of the collection.
//!
//! Texts never change, and an open file of texts can be read until it is closed, even after its partition has
//! expired or is compacted. So whoever has the lock opens a record, and reads it once the lock is released.
//!
//! Cost of opening: a read of some hundred bytes, or a copy of a record that waits for the disk.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::files::partition::PartitionFiles;
use crate::files::records::{StoredRecord, text_length};

/// A record that can be read without the lock.
#[derive(Clone, Debug)]
pub(crate) struct OpenRecord {
    source: RecordSource,
    text_bytes: usize,
}

#[derive(Clone, Debug)]
enum RecordSource {
    File {
        files: Arc<PartitionFiles>,
        /// Place of the record in the file of texts, in units of [`PLACE_UNIT_BYTES`](crate::files::rows::PLACE_UNIT_BYTES).
        place: u32,
    },
    /// A copy of a record that was not on disk yet.
    Memory(Arc<[u8]>),
}

/// The text of a document: a short one is read at once, and a long one once the lock is released.
#[derive(Clone, Debug)]
pub(crate) enum OpenText {
    Loaded(String),
    NotLoaded(OpenRecord),
}

impl OpenText {
    /// Returns the length of the text in bytes. It is not verified yet if the text is not loaded.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Loaded(text) => text.len(),
            Self::NotLoaded(record) => record.text_bytes(),
        }
    }

    /// Returns the text.
    pub(crate) fn into_text(self) -> Result<String> {
        match self {
            Self::Loaded(text) => Ok(text),
            Self::NotLoaded(record) => record.visit_text(|_, text| text.to_owned()),
        }
    }
}

impl OpenRecord {
    pub(super) fn from_file(files: &Arc<PartitionFiles>, place: u32) -> Result<Self> {
        Ok(Self {
            text_bytes: files.text_length(place)?,
            source: RecordSource::File {
                files: Arc::clone(files),
                place,
            },
        })
    }

    pub(super) fn from_memory(record: &[u8]) -> Result<Self> {
        Ok(Self {
            text_bytes: text_length(record).ok_or_else(damaged_record)?,
            source: RecordSource::Memory(record.into()),
        })
    }

    /// Returns the length of the text in bytes, as the record states it. It is not verified yet.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Returns how many bytes were copied to open the record.
    pub(super) fn copied_bytes(&self) -> usize {
        match &self.source {
            RecordSource::File { .. } => 0,
            RecordSource::Memory(record) => record.len(),
        }
    }

    /// Calls `visit` with the record and its text.
    pub(super) fn visit_text<T>(
        &self,
        visit: impl FnOnce(&StoredRecord<'_>, &str) -> T,
    ) -> Result<T> {
        let visit_parsed =
            |record: &StoredRecord<'_>| record.visit_text(|text| visit(record, text));
        let visited = match &self.source {
            RecordSource::File { files, place } => files.visit_record(*place, visit_parsed)?,
            RecordSource::Memory(record) => {
                visit_parsed(&StoredRecord::parse_record(record).ok_or_else(damaged_record)?)
            }
        };
        visited.ok_or_else(damaged_record)
    }
}

fn damaged_record() -> Error {
    Error::damaged_file("texts", "the record of a document")
}
