//! A passage as a row of the table of passages, which the command writes and the service answers.

use serde::Serialize;

/// A row of the table of passages, with the fields that the table has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassageTableRow {
    /// Id of the document.
    pub document: String,
    /// Id of the source.
    pub source: String,
    /// First position in the document, in the unit of the run.
    pub start: usize,
    /// Position behind the passage in the document.
    pub end: usize,
    /// First position in the source.
    pub source_start: usize,
    /// Position behind the passage in the source.
    pub source_end: usize,
    /// Words and single characters of the document's part.
    pub length: usize,
    /// Share of equal tokens of both parts.
    pub similarity: f64,
    /// `verbatim`, `edited`, `reordered` or `reworded`.
    pub kind: &'static str,
}

impl PassageTableRow {
    /// Returns the bytes of memory, with twice the room of the row, because lists of rows grow.
    pub fn memory_bytes(&self) -> usize {
        2 * size_of::<Self>() + self.document.len() + self.source.len()
    }
}
