//! Building an index and adding to it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use lookalike::hamming::{Code, Plan, Request};
use lookalike::matching::DocumentRecorder;
use lookalike::text::{Analysis, Scratch};
use lookalike::{Cpu, Distance};

use super::directory::{self, Kind, NewDirectory};
use super::ids::{self, Ids, IdsWriter};
use super::manifest::{Manifest, Seal, SegmentEntry, TableEntry, file_name};
use super::numbers::Numbers;
use super::poor::Poor;
use super::records::{self, Records, RecordsWriter};
use super::removed::Removed;
use super::rows::{Fingerprinter, Item, Print};
use super::segments::{MOST_ROWS, Names, Part, Source, merge, open_part, write_poor};
use super::texts::{self, Texts, TextsWriter};
use super::{AddSummary, BuildSettings, Entries, Reading, by_width, inspect};
use crate::error::{Error, Result, shown};
use crate::run::ids::{BitTable, alike};
use crate::run::ordered::blocks_in_order;
use crate::run::read::bad_row;
use crate::run::rejected::{BadRows, Rejected};
use crate::run::{Progress, Stage, in_pool};
use crate::sink::{Output, check_output};
use crate::source::{BadRow, Inputs};

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
pub fn build(
    library: &Path,
    inputs: &[PathBuf],
    settings: &BuildSettings,
    reading: &Reading,
    rejected: Option<&Output>,
    progress: &dyn Progress,
) -> Result<AddSummary> {
    let manifest = new_manifest(settings, reading)?;
    let there = directory::kind(library)?;
    refuse_to_replace(library, there, settings.replace)?;
    let made = NewDirectory::make(library)?;
    // Checked once more under the lock, because another process may have created an index meanwhile.
    let there = directory::kind(library)?;
    refuse_to_replace(library, there, settings.replace)?;
    let mut manifest = manifest;
    if there == Kind::Library {
        // New files get new numbers, because the files of the old index stay until the manifest is
        // replaced. An unreadable index needs no such care.
        manifest.next_file = directory::read_manifest(library).map_or(1, |old| old.next_file);
    } else {
        directory::clean(library, None);
    }
    let change = Change {
        library,
        replaces: there == Kind::Library,
        reading,
        rejected,
        progress,
    };
    copy_tables(library, &mut manifest)?;
    let built = in_pool(reading.threads, || change.run(manifest, inputs));
    if built.is_err() && change.replaces {
        directory::clean_after_failure(library);
    }
    let summary = built?;
    made.completed()?;
    Ok(summary)
}

/// Adds the rows of the inputs to an index.
///
/// # Errors
///
/// If `library` is not an index or is locked by another writer, if the index already contains an id, or
/// if something cannot be read or written. The index is then unchanged.
pub fn add(
    library: &Path,
    inputs: &[PathBuf],
    reading: &Reading,
    rejected: Option<&Output>,
    progress: &dyn Progress,
) -> Result<AddSummary> {
    directory::read_manifest(library)?;
    let _lock = directory::lock(library)?;
    let manifest = directory::read_manifest(library)?;
    if manifest.matching && reading.entries != Entries::Documents {
        return Err(Error::usage(format!(
            "the index {} is also searched by thresholds, for which bare fingerprints are not \
             enough: add documents, or build it with --distance-only",
            shown(library)
        )));
    }
    directory::clean(library, Some(&manifest));
    let change = Change {
        library,
        replaces: false,
        reading,
        rejected,
        progress,
    };
    let added = in_pool(reading.threads, || change.run(manifest, inputs));
    if added.is_err() {
        directory::clean_after_failure(library);
    }
    added
}

fn new_manifest(settings: &BuildSettings, reading: &Reading) -> Result<Manifest> {
    let bits = settings.bits;
    if reading.entries != Entries::Documents && settings.texts {
        return Err(Error::usage(
            "bare fingerprints have no texts to store: leave --texts out",
        ));
    }
    if reading.options.fields.features.is_some() && settings.texts {
        return Err(Error::usage(
            "the fingerprints are computed from --features, so stored texts could not be compared: \
             leave --texts out",
        ));
    }
    let distance = Distance::new(settings.distance, bits)?;
    let of_documents = reading.entries == Entries::Documents;
    // Fails now rather than after all inputs have been read.
    let request = Request {
        count: 1,
        bits,
        distance,
        memory: None,
    };
    Plan::named(&settings.plan, &request)?;
    Ok(Manifest {
        recipe: settings.recipe.as_ref().map(lookalike::Recipe::to_toml),
        bits,
        distance: settings.distance,
        plan: settings.plan.clone(),
        memory: settings.memory,
        ids: None,
        texts: settings.texts,
        matching: of_documents && !settings.distance_only,
        next_row: 1,
        next_file: 1,
        segments: Vec::new(),
        tables: Vec::new(),
        loaded: settings.recipe.clone(),
    })
}

/// Copies the files that the recipe names into the index, so that it depends on no other files.
fn copy_tables(library: &Path, manifest: &mut Manifest) -> Result<()> {
    let Some(recipe) = &manifest.loaded else {
        return Ok(());
    };
    for (name, content) in recipe.files.contents() {
        let file = manifest.next_file;
        manifest.next_file += 1;
        directory::write_file(&library.join(file_name(file, "table")), content)?;
        manifest.tables.push(TableEntry {
            name: name.to_owned(),
            file,
        });
    }
    Ok(())
}

fn refuse_to_replace(library: &Path, there: Kind, replace: bool) -> Result<()> {
    let name = shown(library);
    match there {
        Kind::Free => Ok(()),
        Kind::Library if replace => Ok(()),
        Kind::Library => Err(Error::usage(format!(
            "{name} already is an index: add to it with `lookalike index add`, or replace it with \
             --force"
        ))),
        Kind::Strange => Err(Error::usage(format!(
            "{name} exists and is not an index: give a new name"
        ))),
    }
}

struct Change<'a> {
    library: &'a Path,
    /// `true` if an existing index is replaced.
    replaces: bool,
    reading: &'a Reading,
    rejected: Option<&'a Output>,
    progress: &'a dyn Progress,
}

/// The rows read from a block.
struct Lot<C> {
    codes: Vec<C>,
    /// Rows without a fingerprint, with the keys of their texts.
    poor: Vec<(u128, u32)>,
    ids: ids::Lot,
    hashes: Vec<u64>,
    /// Numbers of the rows with ids.
    numbers: Vec<u32>,
    texts: texts::Lot,
    records: records::Lot,
    bad: Vec<BadRow>,
    /// Numbers of the rows without ids.
    unnamed: Numbers,
    /// Number of the last row read, whether it was used or not.
    last: u64,
    without: u64,
    bytes: u64,
}

impl<C> Default for Lot<C> {
    fn default() -> Self {
        Self {
            codes: Vec::new(),
            poor: Vec::new(),
            ids: ids::Lot::default(),
            hashes: Vec::new(),
            numbers: Vec::new(),
            texts: texts::Lot::default(),
            records: records::Lot::default(),
            bad: Vec::new(),
            unnamed: Numbers::default(),
            last: 0,
            without: 0,
            bytes: 0,
        }
    }
}

impl<C: Code> Lot<C> {
    /// Adds a row, with its text if texts are stored.
    fn push(&mut self, item: &Item<'_>, number: u64, texts: bool) -> Result<()> {
        let code = match item.print {
            Print::Nothing => {
                self.without += 1;
                return Ok(());
            }
            Print::Code(fingerprint) => fingerprint,
            Print::Text { key, code } => {
                self.poor.push((key, self.codes.len() as u32));
                code
            }
        };
        self.codes.push(C::narrow(code));
        if let Some(id) = item.id {
            self.ids.push(id);
            self.hashes.push(lookalike::value_hash(id.as_bytes()));
            self.numbers.push(number.min(u32::MAX.into()) as u32);
        } else {
            self.unnamed.push(number);
        }
        if texts {
            self.texts.push(item.text)?;
        }
        Ok(())
    }

    fn room(&self) -> usize {
        let codes = self.codes.len() * size_of::<C>();
        codes + self.ids.bytes() + self.texts.bytes() + self.records.bytes()
    }
}

/// All new rows. Their ids, texts and records are already in files.
struct New<C> {
    codes: Vec<C>,
    poor: Vec<(u128, u32)>,
    unnamed: Numbers,
    last: u64,
    hashes: Vec<u64>,
    numbers: Vec<u32>,
    ids: Option<IdsWriter>,
    texts: Option<TextsWriter>,
    records: Option<RecordsWriter>,
    named: Option<bool>,
    without: u64,
    bytes: u64,
}

impl Change<'_> {
    fn run(&self, manifest: Manifest, inputs: &[PathBuf]) -> Result<AddSummary> {
        let started = Instant::now();
        let bits = manifest.bits;
        let mut summary = by_width!(bits, add_rows(self, manifest, inputs))?;
        summary.seconds = started.elapsed().as_secs_f64();
        Ok(summary)
    }
}

fn add_rows<C: Code>(
    change: &Change<'_>,
    mut manifest: Manifest,
    paths: &[PathBuf],
) -> Result<AddSummary> {
    let library = change.library;
    let file = manifest.next_file;
    manifest.next_file += 1;
    let rejected = Rejected::create(change.rejected)?;
    let new = read_rows::<C>(change, &manifest, file, paths, &rejected)?;
    let (added, poor) = (new.codes.len() as u64, new.poor.len() as u64);
    let (without, bytes, last) = (new.without, new.bytes, new.last);
    change.progress.begin(Stage::Index, None);
    if added > 0 {
        manifest.ids = new.named;
        let source = finish(change, &manifest, file, new)?;
        place(library, &mut manifest, source)?;
    }
    manifest.next_row += last;
    let rejected = rejected.finish()?;
    directory::replace_manifest(library, &manifest)?;
    Ok(AddSummary {
        added,
        poor,
        without,
        rejected,
        bytes,
        seconds: 0.0,
        library: inspect::info_of(library, &manifest),
    })
}

fn read_rows<C: Code>(
    change: &Change<'_>,
    manifest: &Manifest,
    file: u64,
    paths: &[PathBuf],
    rejected: &Rejected,
) -> Result<New<C>> {
    let Reading {
        entries,
        options,
        strict,
        ..
    } = change.reading;
    let inputs = Inputs::open(
        paths,
        &entries.read_options(options, change.rejected.is_some())?,
    )?;
    if let Some(output) = change.rejected {
        check_output(output, &inputs)?;
    }
    let recipe = manifest.recipe();
    let fingerprinter =
        Fingerprinter::new(entries, recipe.as_ref(), manifest.bits, &options.fields.id)?;
    let recorder = recipe
        .as_ref()
        .filter(|_| manifest.matching)
        .map(|recipe| DocumentRecorder::new(recipe, Cpu::best()));
    let bad_rows = BadRows {
        inputs: &inputs,
        rejected,
        strict: *strict,
        progress: change.progress,
        tally: Mutex::default(),
    };
    let path = |extension| change.library.join(file_name(file, extension));
    let mut new = New {
        codes: Vec::new(),
        poor: Vec::new(),
        unnamed: Numbers::default(),
        last: 0,
        hashes: Vec::new(),
        numbers: Vec::new(),
        ids: None,
        texts: match manifest.texts {
            true => Some(TextsWriter::create(&path("texts"))?),
            false => None,
        },
        records: match &recorder {
            Some(recorder) => Some(RecordsWriter::create(
                change.library,
                file,
                recorder.slots(),
            )?),
            None => None,
        },
        named: manifest.ids,
        without: 0,
        bytes: 0,
    };
    blocks_in_order(
        &inputs,
        change.progress,
        |block, parse, scratch: &mut Scratch, emit| {
            let mut lot = Lot::default();
            inputs.parse(block, parse, &mut |row| {
                let row = match row {
                    Ok(row) => row,
                    Err(bad) => {
                        lot.bytes += u64::from(bad.place.length());
                        lot.last = bad.number;
                        lot.bad.push(bad);
                        return Ok(());
                    }
                };
                lot.bytes += u64::from(row.place.length());
                lot.last = row.number;
                let mut record = |analysis: &Analysis<'_>| {
                    if let Some(recorder) = &recorder {
                        lot.records.push(recorder, analysis);
                    }
                };
                match fingerprinter.item(&inputs, &row, scratch, &mut record) {
                    Err(reason) => lot.bad.push(bad_row(&inputs, &row, reason)),
                    Ok(None) => {}
                    Ok(Some(item)) => lot.push(&item, row.number, manifest.texts)?,
                }
                if lot.room() >= PART_BYTES {
                    lot.texts.close()?;
                    emit(std::mem::take(&mut lot))?;
                }
                Ok(())
            })?;
            lot.texts.close()?;
            Ok(lot)
        },
        |mut lot| {
            let used = lot.codes.len() as u64 + lot.without;
            bad_rows.tell(&lot.bad, used)?;
            check_names(change.library, &mut new.named, &lot)?;
            if lot.ids.len() > 0 && new.ids.is_none() {
                new.ids = Some(IdsWriter::create(&path("ids"))?);
            }
            if let Some(ids) = &mut new.ids {
                ids.put(&lot.ids)?;
            }
            if let Some(texts) = &mut new.texts {
                texts.put(&lot.texts)?;
            }
            if let Some(records) = &mut new.records {
                records.put(&lot.records)?;
            }
            let base = new.codes.len() as u32;
            let poor = lot.poor.iter().map(|&(key, row)| (key, base + row));
            new.poor.extend(poor);
            new.unnamed.append(&lot.unnamed);
            new.last = lot.last.max(new.last);
            new.codes.append(&mut lot.codes);
            new.hashes.append(&mut lot.hashes);
            new.numbers.append(&mut lot.numbers);
            new.without += lot.without;
            new.bytes += lot.bytes;
            match new.codes.len() as u64 > MOST_ROWS {
                false => Ok(()),
                true => Err(Error::limit(format!(
                    "one run adds at most {MOST_ROWS} fingerprints: give the inputs in several \
                     runs of `lookalike index add`"
                ))),
            }
        },
    )?;
    bad_rows.refuse_useless()?;
    Ok(new)
}

/// Verifies that either all rows of an index have ids or none has.
fn check_names<C>(library: &Path, named: &mut Option<bool>, lot: &Lot<C>) -> Result<()> {
    let library = shown(library);
    let has_names = !lot.numbers.is_empty();
    if let (Some(row), true) = (lot.unnamed.first(), has_names || *named == Some(true)) {
        return Err(Error::input(format!(
            "row {row} of the inputs has no id, but other rows of the index {library} have ids: \
             name the field with --id, or build the index with --id-row"
        )));
    }
    if has_names && *named == Some(false) {
        return Err(Error::input(format!(
            "row {} of the inputs has an id, but the rows of the index {library} are numbered: \
             number these rows too, with --id-row",
            lot.numbers[0]
        )));
    }
    if has_names || lot.unnamed.first().is_some() {
        *named = Some(has_names);
    }
    Ok(())
}

/// Completes the files of the new rows, after verifying that their ids are new.
fn finish<C: Code>(
    change: &Change<'_>,
    manifest: &Manifest,
    file: u64,
    new: New<C>,
) -> Result<Source<C>> {
    let library = change.library;
    let path = |extension| library.join(file_name(file, extension));
    let mut entry = SegmentEntry {
        file,
        rows: new.codes.len() as u64,
        codes: Seal(0),
        bytes: 0,
        first: None,
        ids: None,
        texts: None,
        poor: None,
        matching: None,
        removed: None,
    };
    let names = match new.ids {
        None => number(&path("ids"), manifest.next_row, &new.unnamed, &mut entry)?,
        Some(writer) => {
            entry.ids = Some(Seal(writer.finish()?));
            let ids = Ids::open(&path("ids"))?;
            refuse_repeats(&ids, &new.hashes, &new.numbers)?;
            refuse_known(library, manifest, &ids, &new.hashes, &new.numbers)?;
            Names::Stored(ids)
        }
    };
    let texts = match new.texts {
        None => None,
        Some(writer) => {
            entry.texts = Some(Seal(writer.finish()?));
            Some(Texts::open(&path("texts"))?)
        }
    };
    let records = match new.records {
        None => None,
        Some(writer) => {
            let (_, signatures) = writer.finish()?;
            Some(Records::open(library, file, signatures.is_some())?)
        }
    };
    let poor = Poor::of(new.poor);
    entry.poor = write_poor(library, file, &poor)?;
    let part = Part {
        entry,
        names,
        texts,
        poor,
        records,
        removed: Removed::none(),
    };
    Ok(Source {
        codes: new.codes,
        part,
    })
}

/// Names rows without ids by their numbers in the inputs, which continue the numbers of all rows read
/// before.
fn number(path: &Path, next: u64, numbers: &Numbers, entry: &mut SegmentEntry) -> Result<Names> {
    let name = |number: u64| next - 1 + number;
    if let Some(first) = numbers.without_gaps() {
        entry.first = Some(name(first));
        return Ok(Names::Numbered(name(first)));
    }
    let mut writer = IdsWriter::create(path)?;
    let mut lot = ids::Lot::default();
    for number in numbers.ranges().flatten() {
        lot.push(&name(number).to_string());
        if lot.bytes() >= PART_BYTES {
            writer.put(&lot)?;
            lot.clear();
        }
    }
    writer.put(&lot)?;
    entry.ids = Some(Seal(writer.finish()?));
    Ok(Names::Stored(Ids::open(path)?))
}

fn refuse_repeats(ids: &Ids, hashes: &[u64], numbers: &[u32]) -> Result<()> {
    for group in alike(hashes) {
        for (at, &later) in group.iter().enumerate() {
            for &earlier in &group[..at] {
                let id = ids.get(later as u64)?;
                if id == ids.get(earlier as u64)? {
                    return Err(Error::input(format!(
                        "the id '{id}' is in rows {} and {}, but ids must differ: name another \
                         field with --id, or number the rows with --id-row",
                        numbers[earlier], numbers[later]
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Refuses ids that the index already contains.
fn refuse_known(
    library: &Path,
    manifest: &Manifest,
    new: &Ids,
    hashes: &[u64],
    numbers: &[u32],
) -> Result<()> {
    if manifest.segments.is_empty() {
        return Ok(());
    }
    let mut table = BitTable::new(hashes.len());
    let mut sorted: Vec<(u64, u64)> = hashes.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    for &hash in hashes {
        table.insert(hash);
    }
    let check = |id: &str| -> Result<()> {
        let hash = lookalike::value_hash(id.as_bytes());
        if !table.contains(hash) {
            return Ok(());
        }
        let from = sorted.partition_point(|(other, _)| *other < hash);
        for &(_, row) in sorted[from..]
            .iter()
            .take_while(|(other, _)| *other == hash)
        {
            if new.get(row)? == id {
                return Err(Error::input(format!(
                    "the id '{id}' of row {} of the inputs is already in the index {}: remove it \
                     there first, with `lookalike index remove`, or give the row another id",
                    numbers[row as usize],
                    shown(library)
                )));
            }
        }
        Ok(())
    };
    for entry in &manifest.segments {
        let part = open_part(library, entry)?;
        let unless_removed = |row: u64, id: &str| match part.removed.contains(row as u32) {
            true => Ok(()),
            false => check(id),
        };
        match &part.names {
            Names::Stored(ids) => ids.for_each(unless_removed)?,
            Names::Numbered(first) => (0..entry.rows)
                .try_for_each(|row| unless_removed(row, &(first + row).to_string()))?,
        }
    }
    Ok(())
}

/// Writes the new rows as a segment, merged with the segments before it that are not much larger.
fn place<C: Code>(library: &Path, manifest: &mut Manifest, new: Source<C>) -> Result<()> {
    let mut rows = new.part.entry.rows;
    let mut kept = manifest.segments.clone();
    let mut merged = Vec::new();
    while let Some(last) = kept.last()
        && last.live() <= GROWTH * rows
        && last.live() + rows <= MOST_ROWS
    {
        rows += last.live();
        merged.extend(kept.pop());
    }
    let entry = match merged.is_empty() {
        true => {
            let mut entry = new.part.entry.clone();
            let written =
                super::segments::write_index(library, manifest, &kept, entry.file, &new.codes)?;
            (entry.codes, entry.bytes) = written;
            if let Some(records) = &new.part.records {
                entry.matching = Some(records.write_postings(library, entry.file)?);
            }
            entry
        }
        false => {
            let mut sources = merged
                .iter()
                .rev()
                .map(|entry| Source::of(library, manifest, entry))
                .collect::<Result<Vec<_>>>()?;
            sources.push(new);
            merge(library, manifest, &kept, sources)?
        }
    };
    kept.push(entry);
    manifest.segments = kept;
    Ok(())
}
