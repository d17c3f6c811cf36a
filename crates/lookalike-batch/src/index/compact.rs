//! Compaction: the rows of all segments in one, without the removed rows.

use std::path::Path;
use std::time::Instant;

use lookalike::hamming::FingerprintCode;
use lookalike_io::error::Result;
use serde::Serialize;

use crate::index::build_space::BuildSpace;
use crate::index::inspect::IndexInfo;
use crate::index::manifest::{IndexManifest, SegmentEntry};
use crate::index::segments::{MOST_ROWS, SegmentSource, merge_segments};
use crate::index::{by_width, directory, inspect};
use crate::run::progress::{ProgressListener, RunStage};
use crate::threads::run_in_pool;

/// The result of a compaction.
#[derive(Debug, Clone, Serialize)]
pub struct CompactSummary {
    /// Removed rows that left the disk.
    pub erased: u64,
    /// Segments before.
    pub segments: u64,
    /// Bytes on disk before.
    pub bytes_before: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// The index after the change.
    pub index: IndexInfo,
}

/// Writes all segments anew as one, without the removed rows, whose fingerprints, ids and texts leave the disk. An
/// index of more than about 2³¹ rows keeps several segments. One segment without removed rows stays as it is.
///
/// The new files take the place of the old ones when they are complete, so the disk holds both until then.
///
/// # Errors
///
/// If `index_path` is not an index, is damaged, is locked by another writer, or cannot be written. The index is then
/// unchanged.
pub fn compact_index(
    index_path: &Path,
    threads: usize,
    progress: &dyn ProgressListener,
) -> Result<CompactSummary> {
    let started = Instant::now();
    let mut summary = directory::change_index(index_path, |manifest| {
        let bits = manifest.bits;
        progress.begin_stage(RunStage::Index, None);
        run_in_pool(threads, || {
            by_width!(bits, compact_segments(index_path, manifest))
        })
    })?;
    summary.seconds = started.elapsed().as_secs_f64();
    Ok(summary)
}

fn compact_segments<C: FingerprintCode>(
    index_path: &Path,
    mut manifest: IndexManifest,
) -> Result<CompactSummary> {
    let before = inspect::info_from_manifest(index_path, &manifest);
    let old = std::mem::take(&mut manifest.segments);
    let space = BuildSpace::default();
    for group in group_segments(&old) {
        let entry = match group {
            [entry] if entry.removed.is_none() => entry.clone(),
            _ => {
                let sources = group
                    .iter()
                    .map(|entry| {
                        SegmentSource::<C>::open_segment(index_path, &manifest, entry, &space)
                    })
                    .collect::<Result<Vec<_>>>()?;
                let done = manifest.segments.clone();
                merge_segments(index_path, &mut manifest, &done, sources, &space)?
            }
        };
        manifest.segments.push(entry);
    }
    if manifest.segments != old {
        directory::replace_manifest(index_path, &manifest)?;
    }
    let index = inspect::info_from_manifest(index_path, &manifest);
    Ok(CompactSummary {
        erased: before.tombstones - index.tombstones,
        segments: old.len() as u64,
        bytes_before: before.bytes,
        seconds: 0.0,
        index,
    })
}

/// Divides segments into runs of neighbours that fit into one segment.
fn group_segments(segments: &[SegmentEntry]) -> Vec<&[SegmentEntry]> {
    let (mut groups, mut start, mut rows) = (Vec::new(), 0, 0);
    for (at, segment) in segments.iter().enumerate() {
        let live = segment.count_live_rows();
        if at > start && rows + live > MOST_ROWS {
            groups.push(&segments[start..at]);
            (start, rows) = (at, 0);
        }
        rows += live;
    }
    groups.extend((start < segments.len()).then(|| &segments[start..]));
    groups
}
