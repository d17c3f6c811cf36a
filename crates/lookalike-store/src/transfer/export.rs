//! Writes the documents of a collection as lines.

use std::io::{self, Write};
use std::ops::ControlFlow;

use serde::Serialize;

use super::export_line::{DecisionLine, ExportLine};
use crate::collection::{Collection, DocumentWalk, open_document};
use crate::error::{Error, Result};

/// Writes the decisions that hold, and then every document of a collection as [`DocumentExport`] does. Returns the number
/// of documents.
///
/// A decision is one JSON object on a line, with the fields `decision`, `a`, `a_key`, `b`, `b_key`, and `a_id` and `b_id`
/// if they are known.
///
/// # Errors
/// If a file is damaged, or writing to `out` fails.
pub fn export_documents(collection: &Collection, out: &mut dyn Write) -> Result<u64> {
    let mut export = DocumentExport::begin(collection)?;
    let mut lines = Vec::new();
    append_decisions(collection, &mut lines)?;
    loop {
        let goes_on = export.append_lines(collection, &mut lines)?;
        out.write_all(&lines)
            .map_err(|error| Error::disk_error("cannot write", "export", &error))?;
        lines.clear();
        if !goes_on {
            return Ok(export.count);
        }
    }
}

/// An export, portion by portion: one JSON object per line and document, in the order of sequence numbers, with
/// the fields `id`, `time_us`, `text` or `fingerprint`, `meta` and `seq`; a duplicate also has `of` and
/// `similarity`. If windows are refreshed, the time of a document may be that of its last duplicate.
///
/// It has the documents that exist when it begins. Of these, documents that are deleted or replaced or expire
/// before they are reached are left out. It holds no lock between two portions.
#[derive(Debug)]
pub struct DocumentExport {
    walk: DocumentWalk,
    count: u64,
}

impl DocumentExport {
    /// Begins an export of the documents that a collection has now.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn begin(collection: &Collection) -> Result<Self> {
        let last = collection.read_state()?.last_row();
        Ok(Self {
            walk: DocumentWalk::new(0, last),
            count: 0,
        })
    }

    /// Appends the lines of the next documents: about 256 KiB of texts and metadata and one document, or fewer.
    /// There may be none although others follow, if many documents were deleted. Returns `false` at the end.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn append_lines(&mut self, collection: &Collection, lines: &mut Vec<u8>) -> Result<bool> {
        let mut portion = Vec::new();
        let goes_on = self
            .walk
            .visit_under_lock(collection, &mut |state, known| {
                let opened = open_document(state, known)?;
                let bytes = opened.text_bytes();
                portion.push(opened);
                Ok(ControlFlow::Continue(bytes))
            })?;
        // Long texts are read, and all are converted to JSON, without the lock.
        self.count += portion.len() as u64;
        for opened in portion {
            append_line(&ExportLine::from(opened.into_stored()?), lines)?;
        }
        Ok(goes_on)
    }

    /// Returns the number of documents so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

fn append_decisions(collection: &Collection, lines: &mut Vec<u8>) -> Result<()> {
    let state = collection.read_state()?;
    let mut decisions = state.decisions().decisions_after(0);
    decisions.try_for_each(|stored| append_line(&DecisionLine::from(stored), lines))
}

fn append_line(line: &impl Serialize, lines: &mut Vec<u8>) -> Result<()> {
    let written = serde_json::to_writer(&mut *lines, line);
    written
        .map_err(|error| Error::disk_error("cannot write", "export", &io::Error::from(error)))?;
    lines.push(b'\n');
    Ok(())
}
