//! A single document of an index, for people who ask why another one was removed because of it.

use std::path::Path;

use lookalike_io::error::Result;

use crate::index::directory::{self, DirectoryKind};
use crate::index::manifest::IndexManifest;
use crate::index::segments::open_stored_segment;
use crate::index::texts::UnpackedFrame;

/// A document of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    /// Its id.
    pub id: String,
    /// Its row among those that are not removed, from 1.
    pub row: u64,
    /// Its text, if the index stores texts.
    pub text: Option<String>,
}

/// Finds the document with an id. Of several the one at `row` counts, which tables of removed documents name, else the
/// first one. `None` if there is no index at `index_path` or no such document in it.
///
/// Cost: one pass over the ids.
///
/// # Errors
/// If the index is damaged or cannot be read.
pub fn find_stored_document(
    index_path: &Path,
    id: &str,
    row: Option<u64>,
) -> Result<Option<StoredDocument>> {
    if directory::directory_kind(index_path)? != DirectoryKind::Index {
        return Ok(None);
    }
    directory::read_consistently(index_path, |manifest| {
        find_in_segments(index_path, &manifest, id, row)
    })
}

fn find_in_segments(
    index_path: &Path,
    manifest: &IndexManifest,
    id: &str,
    row: Option<u64>,
) -> Result<Option<StoredDocument>> {
    let (mut found, mut live_rows) = (None, 0);
    for entry in &manifest.segments {
        let stored = open_stored_segment(index_path, entry)?;
        for at in (0..entry.rows).filter(|&at| !stored.removed.contains_row(at as u32)) {
            live_rows += 1;
            let is_there = row == Some(live_rows);
            if (found.is_some() && !is_there) || stored.ids.id_of_row(at)? != id {
                continue;
            }
            let mut unpacked = UnpackedFrame::default();
            let text = stored.texts.as_ref();
            let text = text.map(|texts| texts.text_of_row(at, &mut unpacked).map(str::to_owned));
            found = Some(StoredDocument {
                id: id.to_owned(),
                row: live_rows,
                text: text.transpose()?,
            });
            if is_there {
                return Ok(found);
            }
        }
    }
    Ok(found)
}
