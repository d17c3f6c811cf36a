//! Building an index and adding to it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use lookalike::hamming::{FingerprintCode, HammingPlan, PlanRequest};
use lookalike::passages::PassageSettings;
use lookalike::similarity::DocumentRecorder;
use lookalike::text::{AnalysisScratch, TextAnalysis};
use lookalike::{Cpu, Distance};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{OutputTarget, check_output};
use lookalike_io::source::{BadRow, IdField, InputSet};

use super::build_space::BuildSpace;
use super::directory::{self, DirectoryKind, NewDirectory};
use super::grams::{self, GramSelector};
use super::ids::{self, IdsWriter, StoredIds};
use super::manifest::{FileChecksum, IndexManifest, SegmentEntry, TableEntry, file_name};
use super::number_files::NumberFile;
use super::records::{self, DocumentRecords, RecordsWriter};
use super::repeated_ids::NewIds;
use super::row_numbers::RowNumbers;
use super::rows::{IndexRow, RowFingerprinter, RowPrint};
use super::segments::{
    MOST_ROWS, SegmentIds, SegmentPart, SegmentSource, merge_segments, spill_failed, write_index,
    write_unfingerprinted,
};
use super::spill_buffer::FingerprintSpool;
use super::texts::{self, StoredTexts, TextsWriter};
use super::tombstones::Tombstones;
use super::unfingerprinted::UnfingerprintedRows;
use super::{AddSummary, BuildSettings, IndexEntries, IndexReadOptions, by_width, inspect};
use crate::run::ordered_pipeline::blocks_in_order;
use crate::run::rejected::{BadRows, RejectedRows};
use crate::run::row_reader::make_bad_row;
use crate::run::{ProgressListener, RepeatedIds, RunStage, run_in_pool};

/// Bytes of a block's fingerprints, ids, texts and records that are passed on before the block ends.
const PART_BYTES: usize = 8 << 20;

/// A new segment is merged with the one before it if that one is at most this many times as large.
const GROWTH: u64 = 2;

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
    let space = BuildSpace::new(settings.memory, reading.threads, index_path)?;
    let there = directory::directory_kind(index_path)?;
    refuse_to_replace(index_path, there, settings.replace)?;
    let made = NewDirectory::make_directory(index_path)?;
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
        progress,
    };
    copy_tables(index_path, &mut manifest)?;
    let built = run_in_pool(reading.threads, || change.add_inputs(manifest, inputs));
    if built.is_err() && change.replaces {
        directory::clean_after_failure(index_path);
    }
    let summary = built?;
    made.keep_directory()?;
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
    let _lock = directory::lock_index(index_path)?;
    let manifest = directory::read_manifest(index_path)?;
    if manifest.matching && reading.entries != IndexEntries::Documents {
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
        space: &BuildSpace::default(),
        rejected,
        progress,
    };
    let added = run_in_pool(reading.threads, || change.add_inputs(manifest, inputs));
    if added.is_err() {
        directory::clean_after_failure(index_path);
    }
    added
}

fn new_manifest(settings: &BuildSettings, reading: &IndexReadOptions) -> Result<IndexManifest> {
    let bits = settings.bits;
    if reading.entries != IndexEntries::Documents && settings.texts {
        return Err(Error::usage_error(
            "bare fingerprints have no texts to store: leave --texts out",
        ));
    }
    if reading.options.fields.features.is_some() && settings.texts {
        return Err(Error::usage_error(
            "the fingerprints are computed from --features, so stored texts could not be compared: \
             leave --texts out",
        ));
    }
    if settings.memory.is_some() && reading.entries == IndexEntries::Documents {
        return Err(Error::usage_error(
            "--memory bounds the process for bare fingerprints, and the rows are documents: leave --memory out, \
             or give their fingerprints (`lookalike fingerprint`) with --fingerprints",
        ));
    }
    if settings.passages.is_some() && !settings.texts {
        return Err(Error::usage_error(
            "passages are verified on the texts: an index that finds them stores texts",
        ));
    }
    let distance = Distance::new(settings.distance, bits)?;
    let of_documents = reading.entries == IndexEntries::Documents;
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
        next_row: 1,
        next_file: 1,
        segments: Vec::new(),
        tables: Vec::new(),
        loaded: settings.recipe.clone(),
    })
}

/// Copies the files that the recipe names into the index, so that it depends on no other files.
fn copy_tables(index_path: &Path, manifest: &mut IndexManifest) -> Result<()> {
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

struct IndexChange<'a> {
    index_path: &'a Path,
    /// `true` if an existing index is replaced.
    replaces: bool,
    reading: &'a IndexReadOptions,
    space: &'a BuildSpace,
    rejected: Option<&'a OutputTarget>,
    progress: &'a dyn ProgressListener,
}

/// The rows read from a block.
struct RowLot<C> {
    codes: Vec<C>,
    /// Rows without a fingerprint, with the keys of their texts.
    unfingerprinted: Vec<(u128, u32)>,
    ids: ids::IdLot,
    hashes: Vec<u64>,
    /// Numbers of the rows with ids.
    numbers: Vec<u32>,
    texts: texts::TextLot,
    records: records::RecordLot,
    /// Grams of the texts.
    grams: Vec<u64>,
    bad: Vec<BadRow>,
    /// Numbers of the rows without ids.
    unnamed: RowNumbers,
    /// Number of the last row read, whether it was used or not.
    last: u64,
    without: u64,
    bytes: u64,
}

impl<C> Default for RowLot<C> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            unfingerprinted: Vec::new(),
            ids: ids::IdLot::default(),
            hashes: Vec::new(),
            numbers: Vec::new(),
            texts: texts::TextLot::default(),
            records: records::RecordLot::default(),
            grams: Vec::new(),
            bad: Vec::new(),
            unnamed: RowNumbers::default(),
            last: 0,
            without: 0,
            bytes: 0,
        }
    }
}

impl<C: FingerprintCode> RowLot<C> {
    /// Adds a row, with its text if texts are stored.
    fn push_row(&mut self, item: &IndexRow<'_>, number: u64, texts: bool) -> Result<()> {
        let code = match item.print {
            RowPrint::Nothing => {
                self.without += 1;
                return Ok(());
            }
            RowPrint::Code(fingerprint) => fingerprint,
            RowPrint::Text { key, code } => {
                self.unfingerprinted.push((key, self.codes.len() as u32));
                code
            }
        };
        self.codes.push(C::narrow_from(code));
        if let Some(id) = item.id {
            self.ids.push_id(id);
            self.hashes.push(lookalike::value_hash(id.as_bytes()));
            self.numbers.push(number.min(u32::MAX.into()) as u32);
        } else {
            self.unnamed.push_number(number);
        }
        if texts {
            self.texts.push_text(item.text)?;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        let codes = self.codes.len() * size_of::<C>();
        let grams = 8 * self.grams.len();
        codes + grams + self.ids.byte_count() + self.texts.byte_count() + self.records.byte_count()
    }
}

/// All new rows. Their ids, texts and records are already in files.
struct NewRows<C> {
    codes: FingerprintSpool<C>,
    unfingerprinted: Vec<(u128, u32)>,
    unnamed: RowNumbers,
    last: u64,
    hashes: Vec<u64>,
    numbers: Vec<u32>,
    ids: Option<IdsWriter>,
    texts: Option<TextsWriter>,
    records: Option<RecordsWriter>,
    grams: Vec<u64>,
    named: Option<bool>,
    without: u64,
    bytes: u64,
}

impl<C: FingerprintCode> NewRows<C> {
    fn without_rows(change: &IndexChange<'_>, manifest: &IndexManifest) -> Self {
        Self {
            codes: change.space.new_spool(),
            unfingerprinted: Vec::new(),
            unnamed: RowNumbers::default(),
            last: 0,
            hashes: Vec::new(),
            numbers: Vec::new(),
            ids: None,
            texts: None,
            records: None,
            grams: Vec::new(),
            named: manifest.ids,
            without: 0,
            bytes: 0,
        }
    }

    fn push_codes(&mut self, codes: &[C]) -> Result<()> {
        self.codes.push_codes(codes).map_err(spill_failed)?;
        match self.codes.len() as u64 > MOST_ROWS {
            false => Ok(()),
            true => Err(Error::limit_error(format!(
                "one run adds at most {MOST_ROWS} fingerprints: give the inputs in several runs of `lookalike \
                 index add`"
            ))),
        }
    }
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
    let new = match change.reading.entries {
        IndexEntries::Numbers => read_numbers::<C>(change, &manifest, paths)?,
        _ => read_rows::<C>(change, &manifest, file, paths, &rejected)?,
    };
    let (added, unfingerprinted) = (new.codes.len() as u64, new.unfingerprinted.len() as u64);
    let (without, bytes, last) = (new.without, new.bytes, new.last);
    change.progress.begin_stage(RunStage::Index, None);
    let mut repeated_ids = 0;
    if added > 0 {
        manifest.ids = new.named;
        let (source, repeated) = finish_new_rows(change, &manifest, file, new)?;
        if let Some(repeated) = &repeated {
            change.progress.repeated_index_ids(repeated);
            repeated_ids = repeated.documents;
        }
        place_segment(change, &mut manifest, source)?;
    }
    manifest.next_row += last;
    let rejected = rejected.finish_output()?;
    directory::replace_manifest(index_path, &manifest)?;
    Ok(AddSummary {
        added,
        unfingerprinted,
        repeated_ids,
        empty: without,
        rejected,
        bytes,
        seconds: 0.0,
        index: inspect::info_from_manifest(index_path, &manifest),
    })
}

fn read_rows<C: FingerprintCode>(
    change: &IndexChange<'_>,
    manifest: &IndexManifest,
    file: u64,
    paths: &[PathBuf],
    rejected: &RejectedRows,
) -> Result<NewRows<C>> {
    let IndexReadOptions {
        entries,
        options,
        strict,
        ..
    } = change.reading;
    let inputs = InputSet::open_paths(
        paths,
        &entries.read_options(options, change.rejected.is_some())?,
    )?;
    if let Some(output) = change.rejected {
        check_output(output, &inputs)?;
    }
    let recipe = manifest.known_recipe();
    let fingerprinter =
        RowFingerprinter::new(entries, recipe.as_ref(), manifest.bits, &options.fields.id)?;
    let recorder = recipe
        .as_ref()
        .filter(|_| manifest.matching)
        .map(|recipe| DocumentRecorder::new(recipe, Cpu::detect_best()));
    let grams = GramSelector::for_index(manifest);
    let bad_rows = BadRows {
        inputs: &inputs,
        rejected,
        strict: *strict,
        progress: change.progress,
        tally: Mutex::default(),
    };
    let path = |extension| change.index_path.join(file_name(file, extension));
    let mut new = NewRows {
        texts: match manifest.texts {
            true => Some(TextsWriter::create_file(&path("texts"))?),
            false => None,
        },
        records: match &recorder {
            Some(recorder) => Some(RecordsWriter::create_files(
                change.index_path,
                file,
                recorder.slot_count(),
            )?),
            None => None,
        },
        ..NewRows::without_rows(change, manifest)
    };
    blocks_in_order(
        &inputs,
        change.progress,
        |block, parse, (scratch, selector): &mut (AnalysisScratch, Option<GramSelector>), emit| {
            let mut lot = RowLot::default();
            inputs.parse_block(block, parse, &mut |row| {
                let row = match row {
                    Ok(row) => row,
                    Err(bad) => {
                        lot.bytes += u64::from(bad.place.byte_length());
                        lot.last = bad.number;
                        lot.bad.push(bad);
                        return Ok(());
                    }
                };
                lot.bytes += u64::from(row.place.byte_length());
                lot.last = row.number;
                let mut record = |analysis: &TextAnalysis<'_>| {
                    if let Some(recorder) = &recorder {
                        lot.records.push_record(recorder, analysis);
                    }
                };
                match fingerprinter.make_row(&inputs, &row, scratch, &mut record) {
                    Err(reason) => lot.bad.push(make_bad_row(&inputs, &row, reason)),
                    Ok(None) => {}
                    Ok(Some(item)) => {
                        lot.push_row(&item, row.number, manifest.texts)?;
                        if let Some(grams) = &grams
                            && item.print != RowPrint::Nothing
                        {
                            let row = lot.codes.len() as u32 - 1;
                            selector.get_or_insert_with(|| grams.clone()).select_grams(
                                item.text,
                                row,
                                &mut lot.grams,
                            )?;
                        }
                    }
                }
                if lot.memory_bytes() >= PART_BYTES {
                    lot.texts.close_frame()?;
                    emit(std::mem::take(&mut lot))?;
                }
                Ok(())
            })?;
            lot.texts.close_frame()?;
            Ok(lot)
        },
        |mut lot: RowLot<C>| {
            let used = lot.codes.len() as u64 + lot.without;
            bad_rows.report_rows(&lot.bad, used)?;
            check_names(
                change.index_path,
                &mut new.named,
                &lot.unnamed,
                &lot.numbers,
            )?;
            if lot.ids.len() > 0 && new.ids.is_none() {
                refuse_limited_ids(change.space, lot.numbers[0])?;
                new.ids = Some(IdsWriter::create_file(&path("ids"))?);
            }
            if let Some(ids) = &mut new.ids {
                ids.put_lot(&lot.ids)?;
            }
            if let Some(texts) = &mut new.texts {
                texts.put_lot(&lot.texts)?;
            }
            if let Some(records) = &mut new.records {
                records.put_lot(&lot.records)?;
            }
            let base = new.codes.len() as u32;
            grams::append_grams(&mut new.grams, &lot.grams, base)?;
            let unfingerprinted = lot
                .unfingerprinted
                .iter()
                .map(|&(key, row)| (key, base + row));
            new.unfingerprinted.extend(unfingerprinted);
            new.unnamed.append_numbers(&lot.unnamed);
            new.last = lot.last.max(new.last);
            new.push_codes(&lot.codes)?;
            new.hashes.append(&mut lot.hashes);
            new.numbers.append(&mut lot.numbers);
            new.without += lot.without;
            new.bytes += lot.bytes;
            Ok(())
        },
    )?;
    bad_rows.refuse_useless()?;
    new.codes.finish_codes().map_err(spill_failed)?;
    Ok(new)
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
            codes.extend(numbers.iter().map(|&it| C::narrow_from(u128::from(it))));
            new.push_codes(&codes)?;
            new.bytes += size_of_val(numbers) as u64;
            change.progress.advance_stage(new.bytes);
            Ok(())
        })?;
    }
    new.last = new.codes.len() as u64;
    new.unnamed.push_range(1..new.last + 1);
    check_names(change.index_path, &mut new.named, &new.unnamed, &[])?;
    new.codes.finish_codes().map_err(spill_failed)?;
    Ok(new)
}

/// Refuses options that binary files of fingerprints have no use for.
fn check_number_options(reading: &IndexReadOptions, rejected: Option<&OutputTarget>) -> Result<()> {
    if reading.entries != IndexEntries::Numbers {
        return Ok(());
    }
    if let IdField::Named(field) = &reading.options.fields.id {
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

/// Refuses a limit of memory for rows with ids, because repeated ids are found in memory.
fn refuse_limited_ids(space: &BuildSpace, row: u32) -> Result<()> {
    match space.is_limited() {
        false => Ok(()),
        true => Err(Error::usage_error(format!(
            "row {row} of the inputs has an id, and ids take up to 40 bytes of memory each, which --memory does not \
             bound: number the rows with --id-row, or leave --memory out"
        ))),
    }
}

/// Verifies that either all rows of an index have ids or none has.
/// `unnamed` and `with_ids` are the numbers of new rows without and with ids.
fn check_names(
    index_path: &Path,
    named: &mut Option<bool>,
    unnamed: &RowNumbers,
    with_ids: &[u32],
) -> Result<()> {
    let index_path = display_path(index_path);
    let has_names = !with_ids.is_empty();
    if let (Some(row), true) = (unnamed.first_number(), has_names || *named == Some(true)) {
        return Err(Error::input_error(format!(
            "row {row} of the inputs has no id, but other rows of the index {index_path} have ids: \
             name the field with --id, or build the index with --id-row"
        )));
    }
    if has_names && *named == Some(false) {
        return Err(Error::input_error(format!(
            "row {} of the inputs has an id, but the rows of the index {index_path} are numbered: \
             number these rows too, with --id-row",
            with_ids[0]
        )));
    }
    if has_names || unnamed.first_number().is_some() {
        *named = Some(has_names);
    }
    Ok(())
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
        poor: None,
        matching: None,
        grams: None,
        removed: None,
    };
    let mut repeated = None;
    let names = match new.ids {
        None => name_by_number(&path("ids"), manifest.next_row, &new.unnamed, &mut entry)?,
        Some(writer) => {
            entry.ids = Some(FileChecksum(writer.finish_file()?));
            let ids = StoredIds::open_file(&path("ids"))?;
            let new_ids = NewIds {
                ids: &ids,
                hashes: &new.hashes,
                numbers: &new.numbers,
            };
            repeated = new_ids.find_repeats(index_path, manifest, change.reading.strict)?;
            SegmentIds::Stored(ids)
        }
    };
    let texts = match new.texts {
        None => None,
        Some(writer) => {
            entry.texts = Some(FileChecksum(writer.finish_file()?));
            Some(StoredTexts::open_file(&path("texts"))?)
        }
    };
    let records = match new.records {
        None => None,
        Some(writer) => {
            let (_, signatures) = writer.finish_files()?;
            Some(DocumentRecords::open_files(
                index_path,
                file,
                signatures.is_some(),
            )?)
        }
    };
    let grams = match manifest.passages {
        None => None,
        Some(_) => {
            let (seal, postings) = grams::write_grams(index_path, file, &new.grams)?;
            entry.grams = Some(seal);
            Some(postings)
        }
    };
    let unfingerprinted = UnfingerprintedRows::from_unsorted(new.unfingerprinted);
    entry.poor = write_unfingerprinted(index_path, file, &unfingerprinted)?;
    let part = SegmentPart {
        entry,
        names,
        texts,
        unfingerprinted,
        records,
        grams,
        removed: Tombstones::without_rows(),
    };
    let source = SegmentSource {
        codes: new.codes,
        part,
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
    let mut lot = ids::IdLot::default();
    for number in numbers.iter_ranges().flatten() {
        lot.push_id(&name(number).to_string());
        if lot.byte_count() >= PART_BYTES {
            writer.put_lot(&lot)?;
            lot.clear_ids();
        }
    }
    writer.put_lot(&lot)?;
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
    let mut rows = new.part.entry.rows;
    let mut kept = manifest.segments.clone();
    let mut merged = Vec::new();
    while let Some(last) = kept.last()
        && last.count_live_rows() <= GROWTH * rows
        && last.count_live_rows() + rows <= MOST_ROWS
    {
        rows += last.count_live_rows();
        merged.extend(kept.pop());
    }
    let entry = match merged.is_empty() {
        true => {
            let mut entry = new.part.entry.clone();
            let file = entry.file;
            let written = write_index(index_path, manifest, &kept, file, &new.codes, space)?;
            (entry.codes, entry.bytes) = written;
            if let Some(records) = &new.part.records {
                entry.matching = Some(records.write_postings(index_path, entry.file)?);
            }
            entry
        }
        false => {
            let mut sources = merged
                .iter()
                .rev()
                .map(|entry| SegmentSource::open_segment(index_path, manifest, entry))
                .collect::<Result<Vec<_>>>()?;
            sources.push(new);
            merge_segments(index_path, manifest, &kept, sources)?
        }
    };
    kept.push(entry);
    manifest.segments = kept;
    Ok(())
}
