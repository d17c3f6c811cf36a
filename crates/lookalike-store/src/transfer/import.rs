//! Inserts the documents of an export.

use std::io::{self, BufRead, Read};

use super::bulk_import::{BulkImport, ImportCounts, RejectDocument};
use super::export_line::{ExportLine, ImportedLine};
use crate::collection::Collection;
use crate::document::{LONGEST_ID, LONGEST_META, LONGEST_TEXT};
use crate::error::{Error, Result};

/// The UTF-8 byte order mark, with which some programs begin a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Largest line in bytes: JSON may write each byte of a string as six, and 64 KiB remain for the rest.
const LONGEST_LINE: usize = 6 * (LONGEST_TEXT + LONGEST_META + 2 * LONGEST_ID) + (64 << 10);

/// Reads the lines of an export and inserts their documents in order, with their times. Verdicts are
/// decided again; they are the same if nothing was deleted or late and no document is past the window.
/// Calls `reject` with the number of each line that is not part of an export or whose document
/// is refused, and the reason.
///
/// # Errors
/// If the lines cannot be read or the collection accepts no more writes, and any error of `reject`.
pub fn import_documents(
    collection: &Collection,
    lines: &mut dyn BufRead,
    reject: &mut RejectDocument<'_>,
) -> Result<ImportCounts> {
    import_lines(collection, lines, LONGEST_LINE, reject)
}

fn import_lines(
    collection: &Collection,
    lines: &mut dyn BufRead,
    longest: usize,
    reject: &mut RejectDocument<'_>,
) -> Result<ImportCounts> {
    let mut import = BulkImport::new(collection, reject);
    let mut line = Vec::new();
    for number in 1.. {
        let is_whole = read_line(lines, &mut line, longest);
        let is_whole =
            is_whole.map_err(|error| Error::disk_error("cannot read", "import", &error))?;
        if line.is_empty() {
            break;
        }
        if !is_whole {
            let what = format!("the line has more than {longest} bytes, the limit for a document");
            import.reject_document(number, &Error::document_error(what))?;
            continue;
        }
        let line = match number {
            1 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line),
            _ => &line,
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match ExportLine::parse_line(line) {
            Ok(ImportedLine::Document(document)) => import.push_document(number, document)?,
            Ok(ImportedLine::Decision(request)) => import.make_decision(number, &request)?,
            Err(error) => import.reject_document(number, &error)?,
        }
    }
    import.insert_waiting()?;
    Ok(import.into_counts())
}

/// Reads a line with its line end. Returns `false` for a line longer than `longest`, of which only the first
/// bytes are read and the rest is skipped. The line is empty at the end of the input.
fn read_line(lines: &mut dyn BufRead, line: &mut Vec<u8>, longest: usize) -> io::Result<bool> {
    line.clear();
    let mut bounded = lines.take(longest as u64 + 1);
    bounded.read_until(b'\n', line)?;
    if line.len() <= longest || line.ends_with(b"\n") {
        return Ok(true);
    }
    lines.skip_until(b'\n')?;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::collection::CollectionOptions;
    use crate::disk::DiskFolder;
    use crate::settings::CollectionSettings;

    /// Lines up to the limit are read; longer ones are skipped to their ends.
    #[test]
    fn too_long_lines_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let collection =
            Collection::create_empty(disk, &CollectionSettings::default(), options).unwrap();
        let line = |id: &str, text: &str| format!(r#"{{"id":"{id}","time_us":0,"text":"{text}"}}"#);
        let longest = line("b", "22").len();
        let lines = ["a", "b", "c", "d", "e"].map(|id| {
            let numbers = ["1", "22", "333", "4", "55555"];
            line(id, numbers[(id.as_bytes()[0] - b'a') as usize])
        });
        for end in ["", "\n"] {
            let mut rejected = Vec::new();
            let lines = lines.join("\n") + end;
            let mut reader = io::BufReader::with_capacity(7, lines.as_bytes());
            import_lines(&collection, &mut reader, longest, &mut |number, error| {
                rejected.push((number, error.to_string()));
                Ok(())
            })
            .unwrap();
            let what = format!("the line has more than {longest} bytes, the limit for a document");
            assert_eq!(rejected, [(3, what.clone()), (5, what)]);
        }
        let is_there =
            ["a", "b", "c", "d", "e"].map(|id| collection.find_document(id).unwrap().is_some());
        assert_eq!(is_there, [true, true, false, true, false]);
    }
}
