//! Removal of rows by their ids.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use lookalike::hamming::FingerprintCode;
use lookalike_io::error::Result;
use serde::Serialize;

use crate::index::build_space::BuildSpace;
use crate::index::inspect::IndexInfo;
use crate::index::manifest::{IndexManifest, RemovedEntry, SegmentEntry, file_name};
use crate::index::segments::{
    SegmentIds, SegmentSource, StoredSegment, merge_segments, open_stored_segment,
};
use crate::index::tombstones::write_tombstones;
use crate::index::{by_width, directory, inspect};
use crate::run::progress::{ProgressListener, RunStage};
use crate::sealed_manifest::FileChecksum;
use crate::threads::run_in_pool;

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
    pub index: IndexInfo,
}

/// Removes the rows with these ids. A segment in which fewer than half of the rows remain is rewritten
/// without the removed ones.
///
/// # Errors
///
/// If `index_path` is not an index, is damaged, is locked by another writer, or cannot be written. The
/// index is then unchanged.
pub fn remove_from_index(
    index_path: &Path,
    ids: &[String],
    threads: usize,
    progress: &dyn ProgressListener,
) -> Result<RemoveSummary> {
    let started = Instant::now();
    let mut summary = directory::change_index(index_path, |manifest| {
        let bits = manifest.bits;
        progress.begin_stage(RunStage::Open, None);
        run_in_pool(threads, || {
            by_width!(bits, remove_rows(index_path, manifest, ids))
        })
    })?;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

fn remove_rows<C: FingerprintCode>(
    index_path: &Path,
    mut manifest: IndexManifest,
    ids: &[String],
) -> Result<RemoveSummary> {
    // `true` for each id that has been found.
    let mut is_found: HashMap<&str, bool> = ids.iter().map(|id| (id.as_str(), false)).collect();
    let mut removed = 0;
    let mut kept = Vec::new();
    let space = BuildSpace::default();
    for entry in manifest.segments.clone() {
        let mut stored = open_stored_segment(index_path, &entry)?;
        let removed_here = mark_removed(&mut stored, &mut is_found)?;
        removed += removed_here;
        let live = entry.count_live_rows() - removed_here;
        if removed_here == 0 {
            kept.push(entry);
        } else if live >= entry.rows / 2 && live > 0 {
            kept.push(with_removed(index_path, &mut manifest, stored)?);
        } else if live > 0 {
            let mut source =
                SegmentSource::<C>::open_segment(index_path, &manifest, &entry, &space)?;
            source.stored = stored;
            let others = other_segments(&manifest, &entry);
            kept.push(merge_segments(
                index_path,
                &mut manifest,
                &others,
                vec![source],
                &space,
            )?);
        }
    }
    manifest.segments = kept;
    if removed > 0 {
        directory::replace_manifest(index_path, &manifest)?;
    }
    let missing = ids.iter().filter(|id| !is_found[id.as_str()]);
    Ok(RemoveSummary {
        removed,
        missing: missing.cloned().collect(),
        seconds: 0.0,
        index: inspect::info_from_manifest(index_path, &manifest),
    })
}

fn other_segments(manifest: &IndexManifest, entry: &SegmentEntry) -> Vec<SegmentEntry> {
    let others = manifest
        .segments
        .iter()
        .filter(|other| other.file != entry.file);
    others.cloned().collect()
}

/// Adds tombstones for the wanted rows of a segment and returns their number.
fn mark_removed(stored: &mut StoredSegment, is_found: &mut HashMap<&str, bool>) -> Result<u64> {
    let before = stored.removed.count_rows();
    match &stored.ids {
        SegmentIds::Stored(ids) => ids.visit_ids(|row, id| {
            if let Some(found) = is_found.get_mut(id)
                && !stored.removed.contains_row(row as u32)
            {
                *found = true;
                stored.removed.insert_row(row as u32);
            }
            Ok(())
        })?,
        SegmentIds::Numbered(first) => {
            for (id, found) in is_found.iter_mut() {
                let row = parse_row_number(id).and_then(|number| number.checked_sub(*first));
                if let Some(row) = row.filter(|&row| row < stored.entry.rows) {
                    *found |= stored.removed.insert_row(row as u32);
                }
            }
        }
    }
    Ok(stored.removed.count_rows() - before)
}

/// Parses a row number in the exact form in which the index writes it.
fn parse_row_number(id: &str) -> Option<u64> {
    id.parse::<u64>()
        .ok()
        .filter(|number| number.to_string() == id)
}

fn with_removed(
    index_path: &Path,
    manifest: &mut IndexManifest,
    stored: StoredSegment,
) -> Result<SegmentEntry> {
    let file = manifest.next_file;
    manifest.next_file += 1;
    let path = index_path.join(file_name(file, "removed"));
    let seal = write_tombstones(&stored.removed, &path, stored.entry.rows)?;
    let mut entry = stored.entry;
    if let Some(unfingerprinted) = &mut entry.unfingerprinted {
        let rows = stored.unfingerprinted.sorted_entries().iter();
        unfingerprinted.removed = rows
            .filter(|(_, row)| stored.removed.contains_row(*row))
            .count() as u64;
    }
    entry.removed = Some(RemovedEntry {
        file,
        rows: stored.removed.count_rows(),
        seal: FileChecksum(seal),
    });
    Ok(entry)
}
