//! The record of an upload that a later process can continue.
//!
//! A text in the directory of a run. The first line names the upload, and each further line a part that the store has:
//!
//! ```text
//! {"url":"s3://bucket/out.jsonl","upload":"…","length":20971520,"part_bytes":8388608}
//! {"part":0,"checksum":4611686018427387904,"id":"…"}
//! ```
//!
//! The first line is on disk before the first part is sent, so that no upload with parts is unknown. Lines of parts are
//! not synced, because a part whose line is lost is sent again. A line that was cut ends the record.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, display_path};

/// An upload, as the first line names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedUpload {
    /// URL of the object.
    pub(super) url: String,
    /// The id that the store has given the upload.
    pub(super) upload: String,
    /// Bytes of the object.
    pub(super) length: u64,
    /// Bytes of every part but the last one.
    pub(super) part_bytes: u64,
}

/// A part that the store has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedPart {
    /// Number of the part, from 0.
    pub(super) part: usize,
    /// Hash of its bytes.
    pub(super) checksum: u64,
    /// The id that the store has given the part.
    pub(super) id: String,
}

/// Reads a record with its parts. Returns `None` if there is none that names an upload.
pub(super) fn read_record(path: &Path) -> Option<(RecordedUpload, BTreeMap<usize, RecordedPart>)> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let upload = serde_json::from_str(lines.next()?).ok()?;
    let parts = lines.map_while(|line| serde_json::from_str(line).ok());
    let parts = parts.map(|part: RecordedPart| (part.part, part));
    Some((upload, parts.collect()))
}

/// A record that grows with the parts that are sent.
#[derive(Debug)]
pub(super) struct RecordWriter {
    file: Mutex<File>,
    name: String,
}

impl RecordWriter {
    /// Begins the record of an upload, which replaces the one in its place.
    ///
    /// # Errors
    /// If the file cannot be written or synced.
    pub(super) fn create_at(path: &Path, upload: &RecordedUpload) -> Result<Self> {
        let failed = |cause| Error::write_error("write", display_path(path), cause);
        let mut file = File::create(path).map_err(failed)?;
        file.write_all(&to_line(upload)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        crate::sink::sync_parent(path).map_err(failed)?;
        Ok(Self::with_file(path, file))
    }

    /// Goes on with a record of which `parts` are known. A line that was cut at its end is replaced.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn continue_at(
        path: &Path,
        upload: &RecordedUpload,
        parts: &BTreeMap<usize, RecordedPart>,
    ) -> Result<Self> {
        let failed = |cause| Error::write_error("write", display_path(path), cause);
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        let has_cut_line = !fs::read(path).map_err(failed)?.ends_with(b"\n");
        if !has_cut_line {
            return Ok(Self::with_file(path, file));
        }
        file.set_len(0).map_err(failed)?;
        let writer = Self::with_file(path, file);
        writer.append_bytes(&to_line(upload))?;
        parts
            .values()
            .try_for_each(|part| writer.append_part(part))?;
        Ok(writer)
    }

    fn with_file(path: &Path, file: File) -> Self {
        Self {
            file: Mutex::new(file),
            name: display_path(path),
        }
    }

    /// Records a part that the store has.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn append_part(&self, part: &RecordedPart) -> Result<()> {
        self.append_bytes(&to_line(part))
    }

    fn append_bytes(&self, bytes: &[u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(bytes)
            .map_err(|cause| Error::write_error("write", &self.name, cause))
    }
}

fn to_line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("a record has only strings and numbers");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: usize) -> RecordedPart {
        RecordedPart {
            part: number,
            checksum: u64::MAX - number as u64,
            id: format!("\"id {number}\""),
        }
    }

    #[test]
    fn a_record_is_read_up_to_the_line_that_was_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        assert!(read_record(&path).is_none());
        let upload = RecordedUpload {
            url: "s3://b/a".to_owned(),
            upload: "u".to_owned(),
            length: 30,
            part_bytes: 10,
        };
        let writer = RecordWriter::create_at(&path, &upload).unwrap();
        for number in [1, 0, 2] {
            writer.append_part(&part(number)).unwrap();
        }
        let (found, parts) = read_record(&path).unwrap();
        assert_eq!(found, upload);
        assert_eq!(parts.into_values().collect::<Vec<_>>(), [0, 1, 2].map(part));

        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 2]).unwrap();
        let (found, parts) = read_record(&path).unwrap();
        assert_eq!(parts.keys().copied().collect::<Vec<_>>(), [0, 1]);
        let writer = RecordWriter::continue_at(&path, &found, &parts).unwrap();
        writer.append_part(&part(2)).unwrap();
        let (_, parts) = read_record(&path).unwrap();
        assert_eq!(parts.len(), 3);

        fs::write(&path, &whole[..5]).unwrap();
        assert!(read_record(&path).is_none());
    }
}
