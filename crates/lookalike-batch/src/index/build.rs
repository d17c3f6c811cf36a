//! Building an index and adding to it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike::Distance;
use lookalike::hamming::{FingerprintCode, HammingPlan, PlanRequest};
use lookalike::passages::PassageSettings;
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{OutputTarget, check_output};
use lookalike_io::source::{IdField, InputSet};

use crate::index::build_space::BuildSpace;
use crate::index::directory::{DirectoryKind, NewDirectory};
use crate::index::ids::{IdsWriter, StoredIds};
use crate::index::manifest::{IndexManifest, SegmentEntry, TableEntry, file_name};
use crate::index::number_files::NumberFile;
use crate::index::records::DocumentRecords;
use crate::index::repeated_ids::NewIds;
use crate::index::row_batches::{
    CHUNK_BYTES, NewRows, RecordScratch, RowBatch, RowRecorder, check_ids,
};
use crate::index::row_numbers::RowNumbers;
use crate::index::row_set::RowSet;
use crate::index::segments::{
    MOST_ROWS, SegmentIds, SegmentSource, StoredSegment, merge_segments, write_index,
    write_unfingerprinted,
};
use crate::index::texts::StoredTexts;
use crate::index::unfingerprinted::UnfingerprintedRows;
use crate::index::{
    AddSummary, BuildSettings, IndexReadOptions, RowContent, by_width, directory, grams, ids,
    inspect,
};
use crate::memory::build_plan::{ExpectedRows, smallest_limit};
use crate::run::progress::{ProgressListener, RepeatedIds, RunStage};
use crate::run::reading::ordered_pipeline::parse_blocks_in_order;
use crate::run::reading::rejected_rows::{OpenedRows, RejectedRows};
use crate::run::reading::row_analysis::make_bad_row;
use crate::sealed_manifest::FileChecksum;
use crate::threads::run_in_pool;

/// A new segment is merged with the one before it if that one is at most this many times as large.
const MAX_MERGE_RATIO: u64 = 2;

/// Builds an index of the rows of the inputs.
///
/// # Errors
///
/// If the directory holds something else, or an index that must not be replaced; if settings contradict
/// each other; or if something cannot be read or written. The directory is then unchanged.
pub fn build_index(
    index_path: &Path,
    inputs: &[PathBuf],
    settings: &BuildSettings,
    reading: &IndexReadOptions,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<AddSummary> {
    check_number_options(reading, rejected)?;
    let manifest = new_manifest(settings, reading)?;
    let space = build_space(index_path, inputs, reading, false)?;
    let there = directory::directory_kind(index_path)?;
    refuse_to_replace(index_path, there, settings.replace)?;
    let directory = NewDirectory::make_directory(index_path)?;
    // Checked once more under the lock, because another process may have created an index meanwhile.
    let there = directory::directory_kind(index_path)?;
    refuse_to_replace(index_path, there, settings.replace)?;
    let mut manifest = manifest;
    if there == DirectoryKind::Index {
        // New files get new numbers, because the files of the old index stay until the manifest is
        // replaced. An unreadable index needs no such care.
        manifest.next_file = directory::read_manifest(index_path).map_or(1, |old| old.next_file);
    } else {
        directory::remove_unnamed_files(index_path, None);
    }
    let change = IndexChange {
        index_path,
        replaces: there == DirectoryKind::Index,
        reading,
        space: &space,
        rejected,
        is_of_run: false,
        progress,
    };
    copy_tables(index_path, &mut manifest)?;
    let built = run_in_pool(reading.threads, || change.add_inputs(manifest, inputs));
    if built.is_err() && change.replaces {
        directory::clean_after_failure(index_path);
    }
    let summary = built?;
    directory.keep_directory()?;
    Ok(summary)
}

/// Adds the rows of the inputs to an index.
///
/// # Errors
///
/// If `index_path` is not an index or is locked by another writer, if an id is repeated and the run is strict, or
/// if something cannot be read or written. The index is then unchanged.
pub fn add_to_index(
    index_path: &Path,
    inputs: &[PathBuf],
    reading: &IndexReadOptions,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<AddSummary> {
    check_number_options(reading, rejected)?;
    directory::read_manifest(index_path)?;
    let space = build_space(index_path, inputs, reading, true)?;
    let _lock = directory::lock_index(index_path)?;
    let manifest = directory::read_manifest(index_path)?;
    if manifest.matching && reading.content != RowContent::Documents {
        return Err(Error::usage_error(format!(
            "the index {} is also searched by thresholds, for which bare fingerprints are not \
             enough: add documents, or build it with --distance-only",
            display_path(index_path)
        )));
    }
    directory::remove_unnamed_files(index_path, Some(&manifest));
    let change = IndexChange {
        index_path,
        replaces: false,
        reading,
        space: &space,
        rejected,
        is_of_run: false,
        progress,
    };
    let added = run_in_pool(reading.threads, || change.add_inputs(manifest, inputs));
    if added.is_err() {
        directory::clean_after_failure(index_path);
    }
    added
}

/// Divides the memory of a build. A limit that a user has not set is raised to what the build needs.
fn build_space(
    index_path: &Path,
    inputs: &[PathBuf],
    reading: &IndexReadOptions,
    is_addition: bool,
) -> Result<BuildSpace> {
    let Some(limit) = reading.memory else {
        return Ok(BuildSpace::default());
    };
    if let Some(work) = limit.working_set {
        return Ok(BuildSpace::with_working_set(work, work / 2, index_path));
    }
    let rows = ExpectedRows::from_inputs(inputs, reading, is_addition, Some(limit))?;
    let bytes = if limit.is_set {
        limit.bytes
    } else {
        limit.bytes.max(smallest_limit(reading.threads, &rows))
    };
    BuildSpace::new(Some(bytes), reading.threads, index_path, &rows)
}

pub(super) fn new_manifest(
    settings: &BuildSettings,
    reading: &IndexReadOptions,
) -> Result<IndexManifest> {
    let bits = settings.bits;
    if reading.content != RowContent::Documents && settings.texts {
        return Err(Error::usage_error(
            "bare fingerprints have no texts to store: leave --texts out",
        ));
    }
    if reading.read.fields.features.is_some() && settings.texts {
        return Err(Error::usage_error(
            "the fingerprints are computed from --features, so stored texts could not be compared: \
             leave --texts out",
        ));
    }
    if settings.passages.is_some() && !settings.texts {
        return Err(Error::usage_error(
            "passages are verified on the texts: an index that finds them stores texts",
        ));
    }
    let distance = Distance::new(settings.distance, bits)?;
    let of_documents = reading.content == RowContent::Documents;
    // Fails now rather than after all inputs have been read.
    let request = PlanRequest {
        count: 1,
        bits,
        distance,
        memory: None,
    };
    HammingPlan::from_name(&settings.plan, &request)?;
    Ok(IndexManifest {
        recipe: settings.recipe.as_ref().map(lookalike::Recipe::to_toml),
        bits,
        distance: settings.distance,
        plan: settings.plan.clone(),
        memory: settings.index_memory,
        ids: None,
        texts: settings.texts,
        matching: of_documents && !settings.distance_only,
        passages: settings.passages.map(PassageSettings::min_words),
        sources: None,
        next_row: 1,
        next_file: 1,
        segments: Vec::new(),
        tables: Vec::new(),
        loaded: settings.recipe.clone(),
    })
}

/// Copies the files that the recipe names into the index, so that it depends on no other files.
pub(super) fn copy_tables(index_path: &Path, manifest: &mut IndexManifest) -> Result<()> {
    let Some(recipe) = &manifest.loaded else {
        return Ok(());
    };
    for (name, content) in recipe.files.iter_contents() {
        let file = manifest.next_file;
        manifest.next_file += 1;
        directory::write_file(&index_path.join(file_name(file, "table")), content)?;
        manifest.tables.push(TableEntry {
            name: name.to_owned(),
            file,
        });
    }
    Ok(())
}

fn refuse_to_replace(index_path: &Path, there: DirectoryKind, replace: bool) -> Result<()> {
    let name = display_path(index_path);
    match there {
        DirectoryKind::Free => Ok(()),
        DirectoryKind::Index if replace => Ok(()),
        DirectoryKind::Index => Err(Error::usage_error(format!(
            "{name} already is an index: add to it with `lookalike index add`, or replace it with \
             --force"
        ))),
        DirectoryKind::Strange => Err(Error::usage_error(format!(
            "{name} exists and is not an index: give a new name"
        ))),
    }
}

/// A change that adds rows to an index.
pub(super) struct IndexChange<'a> {
    pub(super) index_path: &'a Path,
    /// `true` if an existing index is replaced.
    pub(super) replaces: bool,
    pub(super) reading: &'a IndexReadOptions,
    pub(super) space: &'a BuildSpace,
    pub(super) rejected: Option<&'a OutputTarget>,
    /// `true` if a run adds its rows, which has reported the ids that its own rows share.
    pub(super) is_of_run: bool,
    pub(super) progress: &'a dyn ProgressListener,
}

impl IndexChange<'_> {
    fn add_inputs(&self, manifest: IndexManifest, inputs: &[PathBuf]) -> Result<AddSummary> {
        let started = Instant::now();
        let bits = manifest.bits;
        let mut summary = by_width!(bits, add_rows(self, manifest, inputs))?;
        summary.seconds = started.elapsed().as_secs_f64();
        Ok(summary)
    }
}

fn add_rows<C: FingerprintCode>(
    change: &IndexChange<'_>,
    mut manifest: IndexManifest,
    paths: &[PathBuf],
) -> Result<AddSummary> {
    let index_path = change.index_path;
    let file = manifest.next_file;
    manifest.next_file += 1;
    let rejected = RejectedRows::create_output(change.rejected)?;
    let (new, rejected) = match change.reading.content {
        RowContent::Numbers => (read_numbers::<C>(change, &manifest, paths)?, rejected),
        _ => read_rows::<C>(change, &manifest, file, paths, rejected)?,
    };
    let (empty_rows, bytes) = (new.empty_rows, new.bytes);
    let placed = place_rows(change, &mut manifest, file, new)?;
    let rejected = rejected.finish_output()?;
    directory::replace_manifest(index_path, &manifest)?;
    Ok(AddSummary {
        added: placed.added,
        unfingerprinted: placed.unfingerprinted,
        repeated_ids: placed.repeated_ids,
        empty: empty_rows,
        rejected,
        bytes,
        spilled_bytes: change.space.spilled_bytes(),
        seconds: 0.0,
        index: inspect::info_from_manifest(index_path, &manifest),
    })
}

/// The rows that a change has added.
pub(super) struct PlacedRows {
    pub(super) added: u64,
    /// Rows without a fingerprint among them.
    pub(super) unfingerprinted: u64,
    /// Rows with the id of an earlier row.
    pub(super) repeated_ids: u64,
}

/// Writes new rows as a segment, which the manifest then names. The manifest's file stays as it is.
pub(super) fn place_rows<C: FingerprintCode>(
    change: &IndexChange<'_>,
    manifest: &mut IndexManifest,
    file: u64,
    new: NewRows<C>,
) -> Result<PlacedRows> {
    let mut placed = PlacedRows {
        added: new.codes.len() as u64,
        unfingerprinted: new.unfingerprinted.len() as u64,
        repeated_ids: 0,
    };
    let last = new.last;
    change.progress.begin_stage(RunStage::Index, None);
    if placed.added > 0 {
        manifest.ids = new.named;
        let (source, repeated) = finish_new_rows(change, manifest, file, new)?;
        if let Some(repeated) = &repeated {
            change.progress.repeated_index_ids(repeated);
            placed.repeated_ids = repeated.documents;
        }
        place_segment(change, manifest, source)?;
    }
    manifest.next_row += last;
    Ok(placed)
}

fn read_rows<C: FingerprintCode>(
    change: &IndexChange<'_>,
    manifest: &IndexManifest,
    file: u64,
    paths: &[PathBuf],
    rejected: RejectedRows,
) -> Result<(NewRows<C>, RejectedRows)> {
    let IndexReadOptions {
        content,
        read,
        strict,
        ..
    } = change.reading;
    let inputs = InputSet::open_paths(
        paths,
        &content.read_options(read, change.rejected.is_some())?,
    )?;
    if let Some(output) = change.rejected {
        check_output(output, &inputs)?;
    }
    let recorder = RowRecorder::new(manifest, content, &read.fields.id)?;
    let opened = OpenedRows::new(inputs, rejected, *strict, change.progress);
    let inputs = &opened.inputs;
    let mut new = NewRows::create_files(change, manifest, file, &recorder)?;
    parse_blocks_in_order(
        inputs,
        change.progress,
        |block, parse, scratch: &mut RecordScratch, emit| {
            let mut batch = RowBatch::default();
            inputs.parse_block(block, parse, &mut |row| {
                let row = match row {
                    Ok(row) => row,
                    Err(bad) => {
                        batch.push_bad_row(bad);
                        return Ok(());
                    }
                };
                batch.count_row(&row);
                if let Err(reason) =
                    recorder.record_row(inputs, &row, row.number, scratch, &mut batch)?
                {
                    batch.bad.push(make_bad_row(inputs, &row, reason));
                }
                if batch.is_full() {
                    emit(batch.take_closed()?)?;
                }
                Ok(())
            })?;
            batch.take_closed()
        },
        |batch: RowBatch<C>| {
            opened.report_rows(&batch.bad, batch.used_rows())?;
            new.append_batch(change, batch)
        },
    )?;
    opened.refuse_useless()?;
    new.finish_codes()?;
    Ok((new, opened.into_rejected()))
}

/// Reads binary files of fingerprints.
fn read_numbers<C: FingerprintCode>(
    change: &IndexChange<'_>,
    manifest: &IndexManifest,
    paths: &[PathBuf],
) -> Result<NewRows<C>> {
    let files: Vec<NumberFile> = paths
        .iter()
        .map(|path| NumberFile::open(path))
        .collect::<Result<_>>()?;
    let total = files.iter().map(NumberFile::byte_count).sum();
    change.progress.begin_stage(RunStage::Read, Some(total));
    let mut new = NewRows::without_rows(change, manifest);
    let mut codes = Vec::new();
    for file in files {
        file.visit_numbers(manifest.bits, |numbers| {
            codes.clear();
            codes.extend(
                numbers
                    .iter()
                    .map(|&number| C::narrow_from(u128::from(number))),
            );
            new.push_codes(&codes)?;
            new.bytes += size_of_val(numbers) as u64;
            change.progress.advance_stage(new.bytes);
            Ok(())
        })?;
    }
    new.last = new.codes.len() as u64;
    new.unnamed.push_range(1..new.last + 1);
    check_ids(change.index_path, &mut new.named, &new.unnamed, &[])?;
    new.finish_codes()?;
    Ok(new)
}

/// Refuses options that binary files of fingerprints have no use for.
fn check_number_options(reading: &IndexReadOptions, rejected: Option<&OutputTarget>) -> Result<()> {
    if reading.content != RowContent::Numbers {
        return Ok(());
    }
    if let IdField::Named(field) = &reading.read.fields.id {
        return Err(Error::usage_error(format!(
            "binary files of fingerprints have no field `{field}`: leave --id out"
        )));
    }
    match rejected {
        None => Ok(()),
        Some(_) => Err(Error::usage_error(
            "no single row of a binary file is rejected: leave --rejected out",
        )),
    }
}

/// Completes the files of the new rows. Also returns the ids that are repeated.
fn finish_new_rows<C: FingerprintCode>(
    change: &IndexChange<'_>,
    manifest: &IndexManifest,
    file: u64,
    new: NewRows<C>,
) -> Result<(SegmentSource<C>, Option<RepeatedIds>)> {
    let index_path = change.index_path;
    let path = |extension| index_path.join(file_name(file, extension));
    let mut entry = SegmentEntry {
        file,
        rows: new.codes.len() as u64,
        codes: FileChecksum(0),
        bytes: 0,
        first: None,
        ids: None,
        texts: None,
        unfingerprinted: None,
        matching: None,
        grams: None,
        removed: None,
        counts: new.counts,
    };
    let mut repeated = None;
    let ids = match new.ids {
        None => name_by_number(&path("ids"), manifest.next_row, &new.unnamed, &mut entry)?,
        Some(writer) => {
            entry.ids = Some(FileChecksum(writer.finish_file()?));
            let mut ids = StoredIds::open_file(&path("ids"))?;
            if change.space.is_limited() {
                ids.keep_recent_pages();
            }
            let new_ids = NewIds {
                ids: &ids,
                hashes: &new.hashes,
                numbers: &new.numbers,
                counts_own: !change.is_of_run,
            };
            repeated = new_ids.find_repeats(index_path, manifest, change.reading.strict)?;
            SegmentIds::Stored(ids)
        }
    };
    let texts = match new.texts {
        None => None,
        Some(writer) => {
            entry.texts = Some(FileChecksum(writer.finish_file()?));
            let mut texts = StoredTexts::open_file(&path("texts"))?;
            texts.keep_recent_pages();
            Some(texts)
        }
    };
    let records = match new.records {
        None => None,
        Some(writer) => {
            let (_, signatures) = writer.finish_files()?;
            let has_signatures = signatures.is_some();
            let mut records = DocumentRecords::open_files(index_path, file, has_signatures)?;
            records.keep_recent_pages();
            Some(records)
        }
    };
    let grams = match manifest.passages {
        None => None,
        Some(_) => {
            let (seal, postings) =
                grams::write_grams(index_path, file, &new.grams, &change.space.posting_sort())?;
            entry.grams = Some(seal);
            Some(postings)
        }
    };
    let unfingerprinted = UnfingerprintedRows::from_unsorted(new.unfingerprinted);
    entry.unfingerprinted = write_unfingerprinted(index_path, file, &unfingerprinted)?;
    let stored = StoredSegment {
        entry,
        ids,
        texts,
        unfingerprinted,
        records,
        grams,
        removed: RowSet::new(),
    };
    let source = SegmentSource {
        codes: new.codes,
        stored,
    };
    Ok((source, repeated))
}

/// Names rows without ids by their numbers in the inputs, which continue the numbers of all rows read
/// before.
fn name_by_number(
    path: &Path,
    next: u64,
    numbers: &RowNumbers,
    entry: &mut SegmentEntry,
) -> Result<SegmentIds> {
    let name = |number: u64| next - 1 + number;
    if let Some(first) = numbers.without_gaps() {
        entry.first = Some(name(first));
        return Ok(SegmentIds::Numbered(name(first)));
    }
    let mut writer = IdsWriter::create_file(path)?;
    let mut batch = ids::IdBatch::default();
    for number in numbers.iter_ranges().flatten() {
        batch.push_id(&name(number).to_string());
        if batch.byte_count() >= CHUNK_BYTES {
            writer.append_batch(&batch)?;
            batch.clear_ids();
        }
    }
    writer.append_batch(&batch)?;
    entry.ids = Some(FileChecksum(writer.finish_file()?));
    Ok(SegmentIds::Stored(StoredIds::open_file(path)?))
}

/// Writes the new rows as a segment, merged with the segments before it that are not much larger.
fn place_segment<C: FingerprintCode>(
    change: &IndexChange<'_>,
    manifest: &mut IndexManifest,
    new: SegmentSource<C>,
) -> Result<()> {
    let (index_path, space) = (change.index_path, change.space);
    let mut rows = new.stored.entry.rows;
    let mut kept = manifest.segments.clone();
    let mut merged = Vec::new();
    while let Some(last) = kept.last()
        && last.count_live_rows() <= MAX_MERGE_RATIO * rows
        && last.count_live_rows() + rows <= MOST_ROWS
    {
        rows += last.count_live_rows();
        merged.extend(kept.pop());
    }
    let entry = if merged.is_empty() {
        let mut entry = new.stored.entry.clone();
        let file = entry.file;
        let written = write_index(index_path, manifest, &kept, file, &new.codes, space)?;
        (entry.codes, entry.bytes) = written;
        if let Some(records) = &new.stored.records {
            entry.matching =
                Some(records.write_postings(index_path, entry.file, &space.posting_sort())?);
        }
        entry
    } else {
        let mut sources = merged
            .iter()
            .rev()
            .map(|entry| SegmentSource::open_segment(index_path, manifest, entry, space))
            .collect::<Result<Vec<_>>>()?;
        sources.push(new);
        merge_segments(index_path, manifest, &kept, sources, space)?
    };
    kept.push(entry);
    manifest.segments = kept;
    Ok(())
}
