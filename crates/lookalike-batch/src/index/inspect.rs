//! Description and verification of an index.

use std::path::Path;
use std::time::Instant;

use lookalike::hamming::{FingerprintCode, HammingSegment};
use lookalike::sketch::SimHasher;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, Recipe};
use lookalike_io::error::Result;
use serde::Serialize;

use crate::index::counts::CountsReader;
use crate::index::directory::DirectoryKind;
use crate::index::grams::GramSelector;
use crate::index::manifest::{IndexManifest, SegmentEntry, file_name};
use crate::index::paged::damaged_file;
use crate::index::records::open_postings;
use crate::index::segments::{
    SegmentIds, StoredSegment, checksum_of_file, open_index, open_stored_segment,
};
use crate::index::texts::UnpackedFrame;
use crate::index::{by_width, directory, grams};
use crate::run::progress::{ProgressListener, RunStage};
use crate::threads::run_in_pool;

/// Number of rows whose fingerprints are computed again from their texts.
const CHECKED_ROWS: u64 = 1000;

/// Description of an index.
#[derive(Debug, Clone, Serialize)]
pub struct IndexInfo {
    /// The directory.
    pub path: String,
    /// Rows that can be found, with or without a fingerprint.
    pub fingerprints: u64,
    /// Removed rows that still occupy space.
    pub tombstones: u64,
    /// Bits of a fingerprint.
    pub bits: u32,
    /// Largest distance that a search can ask for.
    pub distance: u32,
    /// The name of the Hamming plan.
    pub plan: String,
    /// Largest size of all Hamming indexes together in bytes, if it is limited.
    pub max_memory_bytes: Option<u64>,
    /// Name of the recipe, if it is known.
    pub recipe: Option<String>,
    /// Identity of the recipe, if it is known.
    pub recipe_id: Option<String>,
    /// Rows without a fingerprint, which match only equal texts.
    pub unfingerprinted: u64,
    /// `true` if rows have ids, `false` if they are numbered, `None` while there are no rows.
    pub has_ids: Option<bool>,
    /// `true` if the texts are stored.
    pub has_texts: bool,
    /// `true` if the index can be searched by thresholds and measures, `false` if only by distances.
    pub has_features: bool,
    /// Fewest words of a passage, if passages can be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_passage_words: Option<u32>,
    /// Bytes on disk.
    pub bytes: u64,
    /// The segments, in the order of their rows.
    pub segments: Vec<SegmentInfo>,
}

/// Description of a segment.
#[derive(Debug, Clone, Serialize)]
pub struct SegmentInfo {
    /// Rows, including removed ones.
    pub rows: u64,
    /// Removed rows.
    pub tombstones: u64,
    /// Bytes of the Hamming index on disk and in memory.
    pub bytes: u64,
    /// The tables of the Hamming index, if it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// The result of a verification.
#[derive(Debug, Clone, Serialize)]
pub struct VerifySummary {
    /// Files read and verified.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Rows, including removed ones.
    pub rows: u64,
    /// Rows whose fingerprints were computed again from their texts.
    pub sampled: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Describes an index, including the tables of its Hamming indexes, which are opened for this.
///
/// # Errors
///
/// If `index_path` is not an index or is damaged.
pub fn index_info(index_path: &Path) -> Result<IndexInfo> {
    directory::read_consistently(index_path, |manifest| {
        let mut info = info_from_manifest(index_path, &manifest);
        let bits = manifest.bits;
        for (entry, segment) in manifest.segments.iter().zip(&mut info.segments) {
            let plan = by_width!(bits, describe_plan(index_path, &manifest, entry))?;
            segment.plan = Some(plan);
        }
        Ok(info)
    })
}

/// Returns the recipe of an index; `None` if there is no index at `index_path`, or if it holds bare fingerprints of an
/// unknown recipe.
///
/// # Errors
///
/// If its manifest is damaged.
pub fn index_recipe(index_path: &Path) -> Result<Option<Recipe>> {
    match directory::directory_kind(index_path)? {
        DirectoryKind::Index => Ok(directory::read_manifest(index_path)?.known_recipe()),
        DirectoryKind::Free | DirectoryKind::Strange => Ok(None),
    }
}

/// Returns the fewest words of a passage that an index finds; `None` if it finds no passages.
///
/// # Errors
///
/// If `index_path` is not an index or its manifest is damaged.
pub fn min_passage_words(index_path: &Path) -> Result<Option<u32>> {
    Ok(directory::read_manifest(index_path)?.passages)
}

fn describe_plan<C: FingerprintCode>(
    index_path: &Path,
    manifest: &IndexManifest,
    entry: &SegmentEntry,
) -> Result<String> {
    Ok(open_index::<C>(index_path, manifest, entry)?
        .plan()
        .to_string())
}

/// Describes an index by its manifest and the sizes of its files.
pub(super) fn info_from_manifest(index_path: &Path, manifest: &IndexManifest) -> IndexInfo {
    let recipe = manifest.known_recipe();
    let sizes = manifest
        .all_file_names()
        .into_iter()
        .chain([super::manifest::MANIFEST_FILE.to_owned()]);
    let size = |name: String| std::fs::metadata(index_path.join(name)).map_or(0, |file| file.len());
    IndexInfo {
        path: index_path.display().to_string(),
        fingerprints: manifest.count_live_rows(),
        tombstones: manifest
            .segments
            .iter()
            .map(|entry| entry.rows - entry.count_live_rows())
            .sum(),
        bits: manifest.bits,
        distance: manifest.distance,
        plan: manifest.plan.clone(),
        max_memory_bytes: manifest.memory,
        recipe: recipe.as_ref().map(|recipe| recipe.name.clone()),
        recipe_id: recipe.as_ref().map(|recipe| recipe.recipe_id().to_string()),
        unfingerprinted: manifest
            .segments
            .iter()
            .map(SegmentEntry::count_unfingerprinted)
            .sum(),
        has_ids: manifest.ids,
        has_texts: manifest.texts,
        has_features: manifest.matching,
        min_passage_words: manifest.passages,
        bytes: sizes.map(size).sum(),
        segments: manifest
            .segments
            .iter()
            .map(|entry| SegmentInfo {
                rows: entry.rows,
                tombstones: entry.rows - entry.count_live_rows(),
                bytes: entry.bytes,
                plan: None,
            })
            .collect(),
    }
}

/// Reads every file of an index and compares it with its checksums and with the manifest. If texts are
/// stored, it also computes the fingerprints of a sample again.
///
/// # Errors
///
/// If `index_path` is not an index, and for the first damage found.
pub fn verify_index(
    index_path: &Path,
    threads: usize,
    progress: &dyn ProgressListener,
) -> Result<VerifySummary> {
    let started = Instant::now();
    progress.begin_stage(RunStage::Open, None);
    let mut verified = run_in_pool(threads, || {
        directory::read_consistently(index_path, |manifest| {
            let bits = manifest.bits;
            by_width!(bits, verify_files(index_path, &manifest))
        })
    })?;
    verified.seconds = started.elapsed().as_secs_f64();
    Ok(verified)
}

fn verify_files<C: FingerprintCode>(
    index_path: &Path,
    manifest: &IndexManifest,
) -> Result<VerifySummary> {
    let rows: u64 = manifest.segments.iter().map(|entry| entry.rows).sum();
    let mut verified = VerifySummary {
        files: 1 + manifest.all_file_names().len() as u64,
        bytes: info_from_manifest(index_path, manifest).bytes,
        rows,
        sampled: 0,
        seconds: 0.0,
    };
    for entry in &manifest.segments {
        let path = index_path.join(file_name(entry.file, "codes"));
        let index = open_index::<C>(index_path, manifest, entry)?;
        if checksum_of_file(&path)? != entry.codes {
            return Err(damaged_file(
                &path,
                "it is not the file that the manifest names",
            ));
        }
        let stored = open_stored_segment(index_path, entry)?;
        if let SegmentIds::Stored(ids) = &stored.ids {
            ids.verify_file()?;
        }
        if let Some(texts) = &stored.texts {
            texts.verify_file()?;
        }
        if let (Some(records), Some(matching)) = (&stored.records, &entry.matching) {
            records.verify_files()?;
            open_postings(index_path, entry.file, matching.postings)?.verify_file()?;
        }
        CountsReader::open_counts(index_path, entry)?.visit_entries(entry.rows, |_, _| Ok(()))?;
        if let (Some(postings), Some(selector)) = (&stored.grams, GramSelector::for_index(manifest))
        {
            postings.verify_file()?;
            grams::verify_sampled_rows(
                &stored,
                selector,
                rows.div_ceil(CHECKED_ROWS).max(1),
                index_path,
            )?;
        }
        if let Some(recipe) = manifest.known_recipe() {
            verified.sampled += verify_sampled_rows(
                &index,
                &stored,
                &recipe,
                rows.div_ceil(CHECKED_ROWS).max(1),
                &path,
            )?;
        }
    }
    Ok(verified)
}

/// Computes the fingerprint of every `step`th row again. Returns the number of these rows.
fn verify_sampled_rows<C: FingerprintCode>(
    index: &HammingSegment<C>,
    stored: &StoredSegment,
    recipe: &Recipe,
    step: u64,
    path: &Path,
) -> Result<u64> {
    let Some(texts) = &stored.texts else {
        return Ok(0);
    };
    let mut chosen = Vec::new();
    index.visit_rows(|row, code| {
        if u64::from(row).is_multiple_of(step) {
            chosen.push((row, code));
        }
    });
    chosen.sort_unstable();
    let analyzer = TextAnalyzer::new(recipe);
    let hasher = SimHasher::new(&recipe.simhash, Cpu::detect_best());
    let (mut scratch, mut unpacked) = (AnalysisScratch::default(), UnpackedFrame::default());
    for &(row, code) in &chosen {
        let text = texts.text_of_row(row.into(), &mut unpacked)?;
        let analysis = analyzer.analyze_text(text, &mut scratch);
        let is_of_text = match hasher.fingerprint(&analysis) {
            Some(fingerprint) => {
                !stored.unfingerprinted.contains_row(row) && fingerprint == code.widen()
            }
            None => stored
                .unfingerprinted
                .rows_with_key(analysis.key)
                .any(|other| other == row),
        };
        if !is_of_text {
            let id = stored.ids.id_of_row(row.into())?;
            let what = format!("the fingerprint of '{id}' is not that of its text");
            return Err(damaged_file(path, &what));
        }
    }
    Ok(chosen.len() as u64)
}
