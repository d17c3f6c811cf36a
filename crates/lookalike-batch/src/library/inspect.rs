//! Description and verification of an index.

use std::path::Path;
use std::time::Instant;

use lookalike::hamming::{Code, Segment};
use lookalike::sketch::SimHasher;
use lookalike::text::{Analyzer, Scratch};
use lookalike::{Cpu, Recipe};
use serde::Serialize;

use super::by_width;
use super::directory;
use super::manifest::{Manifest, SegmentEntry, file_name};
use super::paged::damaged;
use super::records::open_postings;
use super::segments::{Names, Part, open_index, open_part, seal_of};
use super::texts::Unpacked;
use crate::error::Result;
use crate::run::{Progress, Stage, in_pool};

/// Number of rows whose fingerprints are computed again from their texts.
const SAMPLE: u64 = 1000;

/// Description of an index.
#[derive(Debug, Clone, Serialize)]
pub struct Info {
    /// The directory.
    pub path: String,
    /// Rows that can be found, with or without a fingerprint.
    pub fingerprints: u64,
    /// Removed rows that still occupy space.
    pub removed: u64,
    /// Bits of a fingerprint.
    pub bits: u32,
    /// Largest distance that a search can ask for.
    pub distance: u32,
    /// The name of the Hamming plan.
    pub plan: String,
    /// Largest size of all Hamming indexes together in bytes, if it is limited.
    pub memory: Option<u64>,
    /// Name of the recipe, if it is known.
    pub recipe: Option<String>,
    /// Identity of the recipe, if it is known.
    pub recipe_id: Option<String>,
    /// Rows without a fingerprint, which match only equal texts.
    pub poor: u64,
    /// `true` if rows have ids, `false` if they are numbered, `None` while there are no rows.
    pub ids: Option<bool>,
    /// `true` if the texts are stored.
    pub texts: bool,
    /// `true` if the index can be searched by thresholds and measures, `false` if only by distances.
    pub matching: bool,
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
    pub removed: u64,
    /// Bytes of the Hamming index on disk and in memory.
    pub bytes: u64,
    /// The tables of the Hamming index, if it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// The result of a verification.
#[derive(Debug, Clone, Serialize)]
pub struct Verified {
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
/// If `library` is not an index or is damaged.
pub fn info(library: &Path) -> Result<Info> {
    directory::read_consistently(library, |manifest| {
        let mut info = info_of(library, &manifest);
        let bits = manifest.bits;
        for (entry, segment) in manifest.segments.iter().zip(&mut info.segments) {
            let plan = by_width!(bits, plan_of(library, &manifest, entry))?;
            segment.plan = Some(plan);
        }
        Ok(info)
    })
}

fn plan_of<C: Code>(library: &Path, manifest: &Manifest, entry: &SegmentEntry) -> Result<String> {
    Ok(open_index::<C>(library, manifest, entry)?
        .plan()
        .to_string())
}

/// Describes an index by its manifest and the sizes of its files.
pub(super) fn info_of(library: &Path, manifest: &Manifest) -> Info {
    let recipe = manifest.recipe();
    let sizes = manifest
        .files()
        .into_iter()
        .chain([super::manifest::NAME.to_owned()]);
    let size = |name: String| std::fs::metadata(library.join(name)).map_or(0, |file| file.len());
    Info {
        path: library.display().to_string(),
        fingerprints: manifest.live(),
        removed: manifest
            .segments
            .iter()
            .map(|entry| entry.rows - entry.live())
            .sum(),
        bits: manifest.bits,
        distance: manifest.distance,
        plan: manifest.plan.clone(),
        memory: manifest.memory,
        recipe: recipe.as_ref().map(|recipe| recipe.name.clone()),
        recipe_id: recipe.as_ref().map(|recipe| recipe.id().to_string()),
        poor: manifest.segments.iter().map(SegmentEntry::poor).sum(),
        ids: manifest.ids,
        texts: manifest.texts,
        matching: manifest.matching,
        bytes: sizes.map(size).sum(),
        segments: manifest
            .segments
            .iter()
            .map(|entry| SegmentInfo {
                rows: entry.rows,
                removed: entry.rows - entry.live(),
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
/// If `library` is not an index, and for the first damage found.
pub fn verify(library: &Path, threads: usize, progress: &dyn Progress) -> Result<Verified> {
    let started = Instant::now();
    progress.begin(Stage::Open, None);
    let mut verified = in_pool(threads, || {
        directory::read_consistently(library, |manifest| {
            let bits = manifest.bits;
            by_width!(bits, verify_files(library, &manifest))
        })
    })?;
    verified.seconds = started.elapsed().as_secs_f64();
    Ok(verified)
}

fn verify_files<C: Code>(library: &Path, manifest: &Manifest) -> Result<Verified> {
    let rows: u64 = manifest.segments.iter().map(|entry| entry.rows).sum();
    let mut verified = Verified {
        files: 1 + manifest.files().len() as u64,
        bytes: info_of(library, manifest).bytes,
        rows,
        sampled: 0,
        seconds: 0.0,
    };
    for entry in &manifest.segments {
        let path = library.join(file_name(entry.file, "codes"));
        let index = open_index::<C>(library, manifest, entry)?;
        if seal_of(&path)? != entry.codes {
            return Err(damaged(&path, "it is not the file that the manifest names"));
        }
        let part = open_part(library, entry)?;
        if let Names::Stored(ids) = &part.names {
            ids.verify()?;
        }
        if let Some(texts) = &part.texts {
            texts.verify()?;
        }
        if let (Some(records), Some(matching)) = (&part.records, &entry.matching) {
            records.verify()?;
            open_postings(library, entry.file, matching.postings)?.verify()?;
        }
        if let Some(recipe) = manifest.recipe() {
            verified.sampled +=
                sample(&index, &part, &recipe, rows.div_ceil(SAMPLE).max(1), &path)?;
        }
    }
    Ok(verified)
}

/// Computes the fingerprint of every `step`th row again. Returns the number of these rows.
fn sample<C: Code>(
    index: &Segment<C>,
    part: &Part,
    recipe: &Recipe,
    step: u64,
    path: &Path,
) -> Result<u64> {
    let Some(texts) = &part.texts else {
        return Ok(0);
    };
    let mut chosen = Vec::new();
    index.for_each(|row, code| {
        if u64::from(row).is_multiple_of(step) {
            chosen.push((row, code));
        }
    });
    chosen.sort_unstable();
    let analyzer = Analyzer::new(recipe);
    let hasher = SimHasher::new(&recipe.simhash, Cpu::best());
    let (mut scratch, mut unpacked) = (Scratch::default(), Unpacked::default());
    for &(row, code) in &chosen {
        let text = texts.get(row.into(), &mut unpacked)?;
        let analysis = analyzer.analyze(text, &mut scratch);
        let is_of_text = match hasher.fingerprint(&analysis) {
            Some(made) => !part.poor.contains(row) && made == code.widen(),
            None => part.poor.rows_of(analysis.key).any(|it| it == row),
        };
        if !is_of_text {
            let id = part.names.get(row.into())?;
            let what = format!("the fingerprint of '{id}' is not that of its text");
            return Err(damaged(path, &what));
        }
    }
    Ok(chosen.len() as u64)
}
