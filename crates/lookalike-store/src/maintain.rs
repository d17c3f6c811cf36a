//! Maintenance of a collection: verify, repair, restore, export and import.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;

use lookalike::stream::Timestamp;
use lookalike::text::AnalysisScratch;
use serde::{Deserialize, Serialize};

use crate::collection::{Collection, CollectionOptions, stored_document};
use crate::disk::Disk;
use crate::document::{
    DocumentContent, LONGEST_ID, LONGEST_META, LONGEST_TEXT, NewDocument, StoredDocument,
    StoredVerdict, shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::files::file_names::{FileNames, INCOMPLETE, MANIFEST_FILE, is_listed_or_data_file};
use crate::files::inventory::{DiskInventory, list_files};
use crate::files::manifest::CollectionManifest;
use crate::files::partition::PartitionFiles;
use crate::files::rows::{self, PartitionRow, count_rows, number_rows};
use crate::files::sketches::SketchFileReader;
use crate::settings::CollectionSettings;
use crate::snapshot_copy::FileCopier;
use crate::state::CollectionState;
use crate::state::hash_id;

/// Result of checking every byte of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyReport {
    /// Partitions that were checked.
    pub partitions: u64,
    /// Intact rows.
    pub rows: u64,
    /// Documents among them whose records are intact, without deleted ones.
    pub documents: u64,
    /// Damage found, as messages.
    pub findings: Vec<String>,
    /// Damaged or missing files of sketches. Nothing is lost with them, because they are rebuilt from the
    /// texts when the collection is opened.
    pub remade: Vec<String>,
}

/// Checks every row and every record of a collection that is not open. First completes or undoes a commit
/// that a power failure interrupted, as opening the collection would do; on a
/// [`ReadFolder`](crate::ReadFolder) only in memory.
///
/// # Errors
/// If the manifest cannot be read. All other damage is in the report.
pub fn verify_collection(disk: &dyn Disk) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let source = OfflineCollection::open_offline(disk, CollectionManifest::read_file(disk)?)?;
    source.visit_documents(&mut report, &mut |_, _, _| Ok(()))?;
    Ok(report)
}

/// Copies a collection that is not open, for example a [snapshot](Collection::copy_to_snapshot), to a
/// disk without one. The manifest is written last: a copy without it is incomplete and is not a
/// collection. Checks nothing but the manifest; use [`verify_collection`] for the rest.
///
/// # Errors
/// If there is no collection to copy, the destination has one already, or an operation on either disk fails.
pub fn restore_collection(from: &dyn Disk, to: &dyn Disk) -> Result<()> {
    CollectionManifest::read_file(from)?;
    let is_own = |name: &String| *name == MANIFEST_FILE || is_listed_or_data_file(name);
    if let Some(name) = list_files(to)?.into_iter().find(is_own) {
        let what = format!("there are files of a collection already: '{name}'");
        return Err(Error::setting_error(what));
    }
    let opened = |name: &str| {
        from.open_file(name)
            .map_err(|error| Error::disk_error("cannot open", name, &error))
    };
    let mut copier = FileCopier::new(to, 0);
    let names = list_files(from)?.into_iter();
    let names: Vec<_> = names.filter(|name| is_listed_or_data_file(name)).collect();
    for name in &names {
        let length = opened(name)?.len();
        copier.reserve_bytes(
            length.map_err(|error| Error::disk_error("cannot read", name, &error))?,
        )?;
    }
    for name in &names {
        copier.copy_file(opened(name)?, name)?;
    }
    let new = format!("{MANIFEST_FILE}{INCOMPLETE}");
    copier.copy_file(opened(MANIFEST_FILE)?, &new)?;
    // All other names are made durable first, because a manifest marks a copy as complete.
    to.sync_names()
        .and_then(|()| to.rename_file(&new, MANIFEST_FILE))
        .and_then(|()| to.sync_names())
        .map_err(|error| Error::disk_error("cannot write", MANIFEST_FILE, &error))
}

/// Creates a new collection from all documents of a damaged one that can still be read, in their order.
///
/// The documents are checked and inserted again. Their sequence numbers change, and so do verdicts where a
/// kept document was lost. A document whose deletion cannot be read exists again, unless a later document has
/// its id. `settings` replaces a lost manifest; the checksum in each partition shows whether these are the
/// right ones. Returns the report and the new collection.
///
/// # Errors
/// If the manifest cannot be read and no settings are given, no partition belongs to a collection with the
/// given settings, or the new disk fails.
pub fn repair_collection(
    from: &dyn Disk,
    settings: Option<&CollectionSettings>,
    to: Arc<dyn Disk>,
    options: CollectionOptions,
) -> Result<(VerifyReport, Collection)> {
    let manifest = match settings {
        Some(settings) => CollectionManifest::new(settings)?,
        None => CollectionManifest::read_file(from)?,
    };
    let source = OfflineCollection::open_offline(from, manifest)?;
    if settings.is_some() && source.partitions == 0 {
        let what = "no partition belongs to a collection with these settings";
        return Err(Error::setting_error(what));
    }
    let collection = Collection::create_empty(to, &source.manifest.settings, options)?;
    let mut findings = Vec::new();
    let mut reject = |_, error: &Error| {
        findings.push(error.to_string());
        Ok(())
    };
    let mut import = BulkImport {
        ids: Some(HashSet::new()),
        ..BulkImport::new(&collection, &mut reject)
    };
    let mut report = VerifyReport::default();
    source.visit_in_order(&mut report, &mut |number, document| {
        import.push_document(number, document)
    })?;
    import.insert_waiting()?;
    report.findings.append(&mut findings);
    Ok((report, collection))
}

/// A collection that is not open.
struct OfflineCollection<'a> {
    disk: &'a dyn Disk,
    manifest: CollectionManifest,
    /// Numbers of dead rows.
    deleted: HashSet<u64>,
    /// Destinations of moved documents, by sequence number: the row and the time.
    moved: HashMap<u64, (u64, Timestamp)>,
    /// Number of the first readable row.
    first: u64,
    /// Number of readable partitions.
    partitions: u64,
}

impl<'a> OfflineCollection<'a> {
    fn open_offline(disk: &'a dyn Disk, manifest: CollectionManifest) -> Result<Self> {
        let (mut report, mut deleted) = (VerifyReport::default(), HashSet::new());
        let (mut moved, mut first) = (HashMap::new(), u64::MAX);
        visit_all_rows(disk, &manifest, &mut report, &mut |_, number, row| {
            first = first.min(number);
            match row {
                PartitionRow::Deleted { number, .. } => drop(deleted.insert(*number)),
                PartitionRow::Moved {
                    from,
                    seq,
                    document,
                    ..
                } => {
                    deleted.insert(*from);
                    moved.insert(*seq, (number, document.time));
                }
                PartitionRow::ErasedMove { from, seq, .. } => {
                    deleted.insert(*from);
                    moved.remove(seq);
                }
                PartitionRow::Document(_)
                | PartitionRow::Erased { .. }
                | PartitionRow::ErasedDuplicate { .. } => {}
            }
            Ok(())
        })?;
        moved.retain(|_, (number, _)| !deleted.contains(number));
        Ok(Self {
            disk,
            manifest,
            deleted,
            moved,
            first,
            partitions: report.partitions,
        })
    }

    /// Calls `visit` with every readable live document, in the order of sequence numbers. A document that was
    /// moved behind its duplicates comes in its old position, read from its old row if that is readable.
    fn visit_in_order(
        &self,
        report: &mut VerifyReport,
        visit: &mut dyn FnMut(u64, NewDocument) -> Result<()>,
    ) -> Result<()> {
        let mut done = HashSet::new();
        if self.moved.keys().any(|&seq| seq < self.first) {
            self.visit_documents(
                &mut VerifyReport::default(),
                &mut |number, row, document| {
                    let PartitionRow::Moved { seq, .. } = row else {
                        return Ok(());
                    };
                    if *seq >= self.first || !self.is_counted(number) {
                        return Ok(());
                    }
                    done.insert(*seq);
                    visit(number, document)
                },
            )?;
        }
        self.visit_documents(report, &mut |number, row, mut document| match row {
            PartitionRow::Document(_) => {
                if let Some(&(_, time)) = self.moved.get(&number) {
                    done.insert(number);
                    document.time = Some(time);
                } else if !self.is_counted(number) {
                    return Ok(());
                }
                visit(number, document)
            }
            PartitionRow::Moved { seq, .. } if self.is_counted(number) && done.insert(*seq) => {
                visit(number, document)
            }
            _ => Ok(()),
        })
    }

    fn is_counted(&self, number: u64) -> bool {
        !self.deleted.contains(&number)
    }

    /// Calls `visit` with every readable document, live or dead, and the number of its row.
    fn visit_documents(
        &self,
        report: &mut VerifyReport,
        visit: &mut dyn FnMut(u64, &PartitionRow, NewDocument) -> Result<()>,
    ) -> Result<()> {
        let (mut documents, mut unreadable) = (0, Vec::new());
        let mut cached = SketchCacheCheck::new(&self.manifest)?;
        visit_all_rows(
            self.disk,
            &self.manifest,
            report,
            &mut |partition, number, row| {
                let (PartitionRow::Document(document) | PartitionRow::Moved { document, .. }) = row
                else {
                    return Ok(());
                };
                cached.check_document(self.disk, partition, document);
                match reread_row(partition, document) {
                    Ok(again) => {
                        documents += u64::from(self.is_counted(number));
                        visit(number, row, again)
                    }
                    Err(error) => {
                        unreadable
                            .push(format!("document '{}': {error}", shorten_id(&document.id)));
                        Ok(())
                    }
                }
            },
        )?;
        report.documents += documents;
        report.findings.append(&mut unreadable);
        report.remade.append(&mut cached.wrong);
        Ok(())
    }
}

/// Checks the cached sketches of kept documents, in their order.
struct SketchCacheCheck {
    seal: u32,
    /// `true` if the collection has sketches.
    is_there: bool,
    /// Cache of the current partition, until an entry is wrong.
    reading: Option<(FileNames, Option<SketchFileReader>)>,
    /// Names of files with a wrong entry.
    wrong: Vec<String>,
}

impl SketchCacheCheck {
    fn new(manifest: &CollectionManifest) -> Result<Self> {
        let seal = manifest.seal;
        Ok(Self {
            seal,
            is_there: CollectionState::new(Arc::clone(&manifest.settings), seal)?.has_sketches(),
            reading: None,
            wrong: Vec::new(),
        })
    }

    fn check_document(
        &mut self,
        disk: &dyn Disk,
        partition: &PartitionFiles,
        document: &rows::RowDocument,
    ) {
        if !self.is_there || !matches!(document.verdict, rows::RowVerdict::Kept { .. }) {
            return;
        }
        let names = partition.about.file_names();
        if self.reading.as_ref().is_none_or(|(of, _)| *of != names) {
            self.reading = Some((
                names,
                Some(SketchFileReader::open_file(disk, self.seal, names)),
            ));
        }
        let Some((_, reading)) = &mut self.reading else {
            return;
        };
        let Some(file) = reading else { return };
        let entry = file.next_entry();
        if entry.is_none_or(|entry| entry.sketches_for(document.content).is_none()) {
            *reading = None;
            self.wrong.push(names.sketches_file());
        }
    }
}

fn reread_row(partition: &PartitionFiles, document: &rows::RowDocument) -> Result<NewDocument> {
    partition.check_record(document.place, &document.id)?;
    let content = match document.fingerprint {
        Some(fingerprint) => DocumentContent::Fingerprint(fingerprint),
        None => DocumentContent::Text(partition.visit_text(document.place.at, str::to_owned)?),
    };
    Ok(NewDocument {
        id: document.id.clone(),
        content,
        time: Some(document.time),
        meta: document.meta.clone(),
    })
}

type VisitRow<'a> = dyn FnMut(&PartitionFiles, u64, &PartitionRow) -> Result<()> + 'a;

fn visit_all_rows(
    disk: &dyn Disk,
    manifest: &CollectionManifest,
    report: &mut VerifyReport,
    visit: &mut VisitRow<'_>,
) -> Result<()> {
    manifest.settings.match_plan()?;
    let inventory = DiskInventory::take_inventory(disk, manifest)?;
    let findings = inventory.findings.iter().map(ToString::to_string);
    report.findings.extend(findings);
    let mut expected = None;
    for names in inventory.partitions {
        let partition = match PartitionFiles::open_files(disk, manifest.seal, names) {
            Ok(partition) => partition,
            Err(error) => {
                report.findings.push(error.to_string());
                expected = None;
                continue;
            }
        };
        report.partitions += 1;
        let first = partition.about.first;
        if expected.is_some_and(|expected| expected != first) {
            let expected = expected.unwrap_or_default();
            let name = partition.rows_name();
            report
                .findings
                .push(format!("'{name}' begins with row {first}, not {expected}"));
        }
        expected = visit_partition_rows(&partition, report, visit)?;
    }
    Ok(())
}

/// Checks the rows of a partition. Returns the number after the last row, if that can be read.
fn visit_partition_rows(
    partition: &PartitionFiles,
    report: &mut VerifyReport,
    visit: &mut VisitRow<'_>,
) -> Result<Option<u64>> {
    let mut next = Some(partition.about.first);
    let mut refused = Ok(());
    let scanned = partition.for_each_block(|first, block| {
        let expected = next.unwrap_or(first);
        let in_place = partition.check_next(first, expected);
        report
            .findings
            .extend(in_place.err().map(|error| error.to_string()));
        let rows = match block {
            Ok(rows) => rows,
            Err(error) => {
                report.findings.push(error.to_string());
                next = None;
                return Ok(());
            }
        };
        next = Some(first.saturating_add(count_rows(&rows)));
        report.rows += rows.len() as u64;
        refused =
            number_rows(first, &rows).try_for_each(|(number, row)| visit(partition, number, row));
        refused.clone()
    });
    refused?;
    if let Err(error) = scanned {
        report.findings.push(error.to_string());
        next = None;
    }
    Ok(next)
}

/// A line of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportLine {
    id: String,
    /// Microseconds since 1970.
    time_us: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text: Option<String>,
    /// 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    meta: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    similarity: Option<f64>,
}

/// Writes every document of a collection as one JSON object per line, in the order of sequence numbers, with
/// the fields `id`, `time_us`, `text` or `fingerprint`, `meta` and `seq`; a duplicate also has `of` and
/// `similarity`. If windows are refreshed, the time of a document may be that of its last duplicate. Returns
/// the number of documents.
///
/// # Errors
/// If a file is damaged, or writing to `out` fails.
pub fn export_documents(collection: &Collection, out: &mut dyn Write) -> Result<u64> {
    let (low, last, moved) = {
        let state = collection.read_state()?;
        (
            state.first_live_row(),
            state.last_row(),
            state.moved_before_window(),
        )
    };
    let mut count = 0;
    for seq in moved.into_iter().chain(low..=last) {
        let state = collection.read_state()?;
        let number = state.row_of_document(seq);
        if state.is_dead_row(number) {
            continue;
        }
        // A moved document is exported at its sequence number, not at the row to which it was moved.
        let Some(known) = state.find_by_row(number)?.filter(|known| known.seq == seq) else {
            continue;
        };
        let stored = stored_document(&state, &known)?;
        drop(state);
        let line = ExportLine::from(stored);
        let written = serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from);
        written
            .and_then(|()| out.write_all(b"\n"))
            .map_err(|error| Error::disk_error("cannot write", "export", &error))?;
        count += 1;
    }
    Ok(count)
}

impl From<StoredDocument> for ExportLine {
    fn from(stored: StoredDocument) -> Self {
        let evidence = match stored.answer.verdict {
            StoredVerdict::Kept => None,
            StoredVerdict::Duplicate(evidence) => Some(evidence),
        };
        let (text, fingerprint) = match stored.content {
            DocumentContent::Text(text) => (Some(text), None),
            DocumentContent::Fingerprint(code) => (None, Some(format!("{code:032x}"))),
        };
        Self {
            id: stored.answer.id,
            time_us: stored.answer.time.0,
            text,
            fingerprint,
            meta: stored.meta,
            seq: stored.answer.seq,
            similarity: evidence.as_ref().map(|evidence| evidence.similarity),
            of: evidence.map(|evidence| evidence.of),
        }
    }
}

/// Result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Documents that are new to the collection.
    pub new: u64,
    /// Documents that existed already with the same content.
    pub again: u64,
    /// Lines that were rejected.
    pub rejected: u64,
}

/// The UTF-8 byte order mark, with which some programs begin a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

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
            1 => line.strip_prefix(MARK).unwrap_or(&line),
            _ => &line,
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match ExportLine::parse_line(line) {
            Ok(document) => import.push_document(number, document)?,
            Err(error) => import.reject_document(number, &error)?,
        }
    }
    import.insert_waiting()?;
    Ok(import.imported)
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

impl ExportLine {
    fn parse_line(line: &[u8]) -> Result<NewDocument> {
        let line: Self = serde_json::from_slice(line).map_err(|error| {
            // The caller reports the number of the line.
            let (told, column) = (error.to_string(), error.column());
            match told.strip_suffix(&format!(" at line 1 column {column}")) {
                Some(what) => Error::document_error(format!("{what} at column {column}")),
                None => Error::document_error(told),
            }
        })?;
        line.into_document()
    }

    fn into_document(self) -> Result<NewDocument> {
        let content = match (self.text, self.fingerprint) {
            (Some(text), None) => DocumentContent::Text(text),
            (None, Some(digits)) => {
                let code = u128::from_str_radix(&digits, 16);
                let wrong = |_| Error::document_error(format!("'{digits}' is not a fingerprint"));
                DocumentContent::Fingerprint(code.map_err(wrong)?)
            }
            _ => {
                return Err(Error::document_error(
                    "it must have either 'text' or 'fingerprint'",
                ));
            }
        };
        Ok(NewDocument {
            id: self.id,
            content,
            time: Some(Timestamp(self.time_us)),
            meta: self.meta,
        })
    }
}

/// Records a rejected document or line by its number, or stops the operation with an error.
pub type RejectDocument<'a> = dyn FnMut(u64, &Error) -> Result<()> + 'a;

/// Documents collected for insertion in batches.
struct BulkImport<'a, 'b> {
    collection: &'a Collection,
    scratch: AnalysisScratch,
    waiting: Vec<crate::PendingInsert>,
    /// Bytes of the waiting documents.
    bytes: usize,
    /// Their line or row numbers.
    numbers: Vec<u64>,
    imported: ImportCounts,
    /// Hashes of the ids so far, if a later document replaces an earlier one with the same id.
    ids: Option<HashSet<u64>>,
    reject: &'a mut RejectDocument<'b>,
}

/// Largest number of documents in a batch.
const AT_A_TIME: usize = 1024;

/// Number of bytes from which a batch is inserted.
const BYTES_AT_A_TIME: usize = 8 << 20;

impl<'a, 'b> BulkImport<'a, 'b> {
    fn new(collection: &'a Collection, reject: &'a mut RejectDocument<'b>) -> Self {
        Self {
            collection,
            scratch: AnalysisScratch::default(),
            waiting: Vec::new(),
            bytes: 0,
            numbers: Vec::new(),
            imported: ImportCounts::default(),
            ids: None,
            reject,
        }
    }

    fn push_document(&mut self, number: u64, document: NewDocument) -> Result<()> {
        let prepared = match self
            .collection
            .prepare_document(document, &mut self.scratch)
        {
            Ok(prepared) => prepared,
            Err(error) => return self.reject_document(number, &error),
        };
        let hash = hash_id(prepared.id());
        let is_later = self.ids.as_mut().is_some_and(|ids| !ids.insert(hash));
        if is_later {
            self.insert_waiting()?;
            return self.take_later(number, &prepared);
        }
        self.bytes += prepared.memory_bytes();
        self.waiting.push(prepared);
        self.numbers.push(number);
        if self.waiting.len() >= AT_A_TIME || self.bytes >= BYTES_AT_A_TIME {
            self.insert_waiting()?;
        }
        Ok(())
    }

    /// Inserts a document whose id occurred before; it replaces the earlier document.
    fn take_later(&mut self, number: u64, document: &crate::PendingInsert) -> Result<()> {
        let mut answers = self
            .collection
            .insert_documents(std::slice::from_ref(document));
        let in_conflict = |answer: &Result<crate::InsertAnswer>| {
            let error = answer.as_ref().err();
            error.is_some_and(|error| error.kind() == ErrorKind::Conflict)
        };
        if answers.iter().any(in_conflict) {
            let what = format!(
                "document '{}' is repeated: the later one is used",
                shorten_id(document.id())
            );
            self.reject_document(number, &Error::document_error(what))?;
            self.collection.delete_document(document.id())?;
            answers = self
                .collection
                .insert_documents(std::slice::from_ref(document));
        }
        self.take_answers(&[number], std::slice::from_ref(document), answers)
    }

    fn reject_document(&mut self, number: u64, error: &Error) -> Result<()> {
        (self.reject)(number, error)?;
        self.imported.rejected += 1;
        Ok(())
    }

    fn insert_waiting(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let numbers = std::mem::take(&mut self.numbers);
        self.bytes = 0;
        let answers = self.collection.insert_documents(&waiting);
        self.take_answers(&numbers, &waiting, answers)
    }

    fn take_answers(
        &mut self,
        numbers: &[u64],
        documents: &[crate::PendingInsert],
        answers: Vec<Result<crate::InsertAnswer>>,
    ) -> Result<()> {
        for ((&number, document), answer) in numbers.iter().zip(documents).zip(answers) {
            let id = shorten_id(document.id());
            match answer {
                Ok(answer) if answer.seq.is_none() => {
                    let what = format!("document '{id}' is older than the window");
                    self.reject_document(number, &Error::document_error(what))?;
                }
                Ok(answer) if answer.again => self.imported.again += 1,
                Ok(_) => self.imported.new += 1,
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.reject_document(number, &error)?
                }
                Err(error) => {
                    let what = format!("document '{id}': {error}");
                    return Err(Error::new(error.kind(), what));
                }
            }
        }
        Ok(())
    }
}

/// Returns the settings of a collection that is not open.
///
/// # Errors
/// If the manifest cannot be read.
pub fn read_settings(disk: &dyn Disk) -> Result<CollectionSettings> {
    let settings = CollectionManifest::read_file(disk)?.settings;
    Ok(Arc::unwrap_or_clone(settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskFolder;

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

    /// Only few documents wait if they are long.
    #[test]
    fn import_batches_are_limited_by_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let collection = Collection::create_empty(
            disk,
            &CollectionSettings::default(),
            CollectionOptions::default(),
        )
        .unwrap();
        let (text, mut sent) = ("long ".repeat(BYTES_AT_A_TIME / 20), 0);
        let mut reject =
            |number, error: &Error| Err(Error::document_error(format!("{number}: {error}")));
        let mut import = BulkImport::new(&collection, &mut reject);
        for number in 0..20 {
            let document = NewDocument {
                id: number.to_string(),
                content: DocumentContent::Text(format!("{number} {text}")),
                time: None,
                meta: None,
            };
            import.push_document(number, document).unwrap();
            sent += 1;
            let waiting = sent - collection.collect_stats().unwrap().rows;
            assert!(waiting < 4, "{waiting} wait");
        }
        import.insert_waiting().unwrap();
        assert_eq!(collection.collect_stats().unwrap().rows, 20);
    }
}
