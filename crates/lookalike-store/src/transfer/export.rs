//! Writes the documents of a collection as lines.

use std::io::{self, Write};

use super::export_line::ExportLine;
use crate::collection::{Collection, read_stored_document};
use crate::error::{Error, Result};

/// Writes every document of a collection as one JSON object per line, in the order of sequence numbers, with
/// the fields `id`, `time_us`, `text` or `fingerprint`, `meta` and `seq`; a duplicate also has `of` and
/// `similarity`. If windows are refreshed, the time of a document may be that of its last duplicate. Returns
/// the number of documents.
///
/// # Errors
/// If a file is damaged, or writing to `out` fails.
pub fn export_documents(collection: &Collection, out: &mut dyn Write) -> Result<u64> {
    let (low, last, moved) = {
        let state = collection.read_state()?;
        (
            state.first_live_row(),
            state.last_row(),
            state.moved_before_window(),
        )
    };
    let mut count = 0;
    for seq in moved.into_iter().chain(low..=last) {
        let state = collection.read_state()?;
        let number = state.row_of_document(seq);
        if state.is_dead_row(number) {
            continue;
        }
        // A moved document is exported at its sequence number, not at the row to which it was moved.
        let Some(known) = state.find_by_row(number)?.filter(|known| known.seq == seq) else {
            continue;
        };
        let stored = read_stored_document(&state, &known)?;
        drop(state);
        let line = ExportLine::from(stored);
        let written = serde_json::to_writer(&mut *out, &line).map_err(io::Error::from);
        written
            .and_then(|()| out.write_all(b"\n"))
            .map_err(|error| Error::disk_error("cannot write", "export", &error))?;
        count += 1;
    }
    Ok(count)
}
