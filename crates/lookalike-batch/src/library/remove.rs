//! Removal of rows by their ids.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use lookalike::hamming::Code;
use serde::Serialize;

use super::by_width;
use super::directory;
use super::inspect::{self, Info};
use super::manifest::{Manifest, RemovedEntry, Seal, SegmentEntry, file_name};
use super::segments::{Names, Part, Source, merge, open_part};
use crate::error::Result;
use crate::run::{Progress, Stage, in_pool};

/// The result of a removal.
#[derive(Debug, Clone, Serialize)]
pub struct RemoveSummary {
    /// Rows removed.
    pub removed: u64,
    /// Ids that the index does not contain, in the given order.
    pub missing: Vec<String>,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// The index after the change.
    pub library: Info,
}

/// Removes the rows with these ids. A segment in which fewer than half of the rows remain is rewritten
/// without the removed ones.
///
/// # Errors
///
/// If `library` is not an index, is damaged, is locked by another writer, or cannot be written. The
/// index is then unchanged.
pub fn remove(
    library: &Path,
    ids: &[String],
    threads: usize,
    progress: &dyn Progress,
) -> Result<RemoveSummary> {
    let started = Instant::now();
    directory::read_manifest(library)?;
    let _lock = directory::lock(library)?;
    let manifest = directory::read_manifest(library)?;
    directory::clean(library, Some(&manifest));
    let bits = manifest.bits;
    progress.begin(Stage::Open, None);
    let removed = in_pool(threads, || {
        by_width!(bits, remove_rows(library, manifest, ids))
    });
    if removed.is_err() {
        directory::clean_after_failure(library);
    }
    let mut summary = removed?;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

fn remove_rows<C: Code>(
    library: &Path,
    mut manifest: Manifest,
    ids: &[String],
) -> Result<RemoveSummary> {
    // `true` for each id that has been found.
    let mut wanted: HashMap<&str, bool> = ids.iter().map(|id| (id.as_str(), false)).collect();
    let mut removed = 0;
    let mut kept = Vec::new();
    for entry in manifest.segments.clone() {
        let mut part = open_part(library, &entry)?;
        let gone = mark(&mut part, &mut wanted)?;
        removed += gone;
        let live = entry.live() - gone;
        if gone == 0 {
            kept.push(entry);
        } else if live >= entry.rows / 2 && live > 0 {
            kept.push(with_removed(library, &mut manifest, part)?);
        } else if live > 0 {
            let mut source = Source::<C>::of(library, &manifest, &entry)?;
            source.part = part;
            let others = others(&manifest, &entry);
            kept.push(merge(library, &mut manifest, &others, vec![source])?);
        }
    }
    manifest.segments = kept;
    if removed > 0 {
        directory::replace_manifest(library, &manifest)?;
    }
    let missing = ids.iter().filter(|id| !wanted[id.as_str()]);
    Ok(RemoveSummary {
        removed,
        missing: missing.cloned().collect(),
        seconds: 0.0,
        library: inspect::info_of(library, &manifest),
    })
}

fn others(manifest: &Manifest, entry: &SegmentEntry) -> Vec<SegmentEntry> {
    let others = manifest
        .segments
        .iter()
        .filter(|other| other.file != entry.file);
    others.cloned().collect()
}

/// Adds tombstones for the wanted rows of a segment and returns their number.
fn mark(part: &mut Part, wanted: &mut HashMap<&str, bool>) -> Result<u64> {
    let before = part.removed.count();
    match &part.names {
        Names::Stored(ids) => ids.for_each(|row, id| {
            if let Some(found) = wanted.get_mut(id)
                && !part.removed.contains(row as u32)
            {
                *found = true;
                part.removed.insert(row as u32);
            }
            Ok(())
        })?,
        Names::Numbered(first) => {
            for (id, found) in wanted.iter_mut() {
                let row = number(id).and_then(|number| number.checked_sub(*first));
                if let Some(row) = row.filter(|&row| row < part.entry.rows) {
                    *found |= part.removed.insert(row as u32);
                }
            }
        }
    }
    Ok(part.removed.count() - before)
}

/// Parses a row number in the exact form in which the index writes it.
fn number(id: &str) -> Option<u64> {
    id.parse::<u64>()
        .ok()
        .filter(|number| number.to_string() == id)
}

fn with_removed(library: &Path, manifest: &mut Manifest, part: Part) -> Result<SegmentEntry> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let path = library.join(file_name(file, "removed"));
    let seal = part.removed.write(&path, part.entry.rows)?;
    let mut entry = part.entry;
    if let Some(poor) = &mut entry.poor {
        let rows = part.poor.entries().iter();
        poor.gone = rows.filter(|(_, row)| part.removed.contains(*row)).count() as u64;
    }
    entry.removed = Some(RemovedEntry {
        file,
        rows: part.removed.count(),
        seal: Seal(seal),
    });
    Ok(entry)
}
