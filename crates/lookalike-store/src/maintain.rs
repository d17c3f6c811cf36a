//! Maintenance of a collection: verify, repair, restore, export and import.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;

use lookalike::online::Time;
use lookalike::text::Scratch;
use serde::{Deserialize, Serialize};

use crate::collection::{Collection, Options, stored};
use crate::copying::Copier;
use crate::disk::Disk;
use crate::document::{
    Content, Document, LONGEST_ID, LONGEST_META, LONGEST_TEXT, Stored, Verdict, shown,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::id_hash;
use crate::inventory::{Inventory, names};
use crate::partition::{FileNames, Partition, is_of_collection};
use crate::rows::{self, Row, count_rows, numbered};
use crate::settings::{MANIFEST, Manifest, NEW, Settings};
use crate::sketches::Reading;
use crate::state::State;

/// Result of checking every byte of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
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
pub fn verify(disk: &dyn Disk) -> Result<Report> {
    let mut report = Report::default();
    let source = Source::of(disk, Manifest::read(disk)?)?;
    source.walk(&mut report, &mut |_, _, _| Ok(()))?;
    Ok(report)
}

/// Copies a collection that is not open, for example a [snapshot](Collection::snapshot), to a disk without
/// one. The manifest is written last: a copy without it is incomplete and is not a collection. Checks nothing
/// but the manifest; use [`verify`] for the rest.
///
/// # Errors
/// If there is no collection to copy, the destination has one already, or an operation on either disk fails.
pub fn restore(from: &dyn Disk, to: &dyn Disk) -> Result<()> {
    Manifest::read(from)?;
    let is_own = |name: &String| *name == MANIFEST || is_of_collection(name);
    if let Some(name) = names(to)?.into_iter().find(is_own) {
        let what = format!("there are files of a collection already: '{name}'");
        return Err(Error::setting(what));
    }
    let opened = |name: &str| {
        from.open(name)
            .map_err(|error| Error::disk("cannot open", name, &error))
    };
    let mut copier = Copier::new(to, 0);
    let names = names(from)?.into_iter();
    let names: Vec<_> = names.filter(|name| is_of_collection(name)).collect();
    for name in &names {
        let length = opened(name)?.len();
        copier.expect(length.map_err(|error| Error::disk("cannot read", name, &error))?)?;
    }
    for name in &names {
        copier.copy(opened(name)?, name)?;
    }
    let new = format!("{MANIFEST}{NEW}");
    copier.copy(opened(MANIFEST)?, &new)?;
    // All other names are made durable first, because a manifest marks a copy as complete.
    to.sync_names()
        .and_then(|()| to.rename(&new, MANIFEST))
        .and_then(|()| to.sync_names())
        .map_err(|error| Error::disk("cannot write", MANIFEST, &error))
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
pub fn repair(
    from: &dyn Disk,
    settings: Option<&Settings>,
    to: Arc<dyn Disk>,
    options: Options,
) -> Result<(Report, Collection)> {
    let manifest = match settings {
        Some(settings) => Manifest::new(settings)?,
        None => Manifest::read(from)?,
    };
    let source = Source::of(from, manifest)?;
    if settings.is_some() && source.partitions == 0 {
        let what = "no partition belongs to a collection with these settings";
        return Err(Error::setting(what));
    }
    let collection = Collection::create(to, &source.manifest.settings, options)?;
    let mut findings = Vec::new();
    let mut reject = |_, error: &Error| {
        findings.push(error.to_string());
        Ok(())
    };
    let mut import = Import {
        ids: Some(HashSet::new()),
        ..Import::new(&collection, &mut reject)
    };
    let mut report = Report::default();
    source.walk_in_order(&mut report, &mut |number, document| {
        import.push(number, document)
    })?;
    import.flush()?;
    report.findings.append(&mut findings);
    Ok((report, collection))
}

/// A collection that is not open.
struct Source<'a> {
    disk: &'a dyn Disk,
    manifest: Manifest,
    /// Numbers of dead rows.
    deleted: HashSet<u64>,
    /// Destinations of moved documents, by sequence number: the row and the time.
    moved: HashMap<u64, (u64, Time)>,
    /// Number of the first readable row.
    first: u64,
    /// Number of readable partitions.
    partitions: u64,
}

impl<'a> Source<'a> {
    fn of(disk: &'a dyn Disk, manifest: Manifest) -> Result<Self> {
        let (mut report, mut deleted) = (Report::default(), HashSet::new());
        let (mut moved, mut first) = (HashMap::new(), u64::MAX);
        each_row(disk, &manifest, &mut report, &mut |_, number, row| {
            first = first.min(number);
            match row {
                Row::Deleted { number, .. } => drop(deleted.insert(*number)),
                Row::Moved {
                    from,
                    seq,
                    document,
                    ..
                } => {
                    deleted.insert(*from);
                    moved.insert(*seq, (number, document.time));
                }
                Row::ErasedMove { from, seq, .. } => {
                    deleted.insert(*from);
                    moved.remove(seq);
                }
                Row::Document(_) | Row::Erased { .. } | Row::ErasedDuplicate { .. } => {}
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
    fn walk_in_order(
        &self,
        report: &mut Report,
        visit: &mut dyn FnMut(u64, Document) -> Result<()>,
    ) -> Result<()> {
        let mut done = HashSet::new();
        if self.moved.keys().any(|&seq| seq < self.first) {
            self.walk(&mut Report::default(), &mut |number, row, document| {
                let Row::Moved { seq, .. } = row else {
                    return Ok(());
                };
                if *seq >= self.first || !self.counts(number) {
                    return Ok(());
                }
                done.insert(*seq);
                visit(number, document)
            })?;
        }
        self.walk(report, &mut |number, row, mut document| match row {
            Row::Document(_) => {
                if let Some(&(_, time)) = self.moved.get(&number) {
                    done.insert(number);
                    document.time = Some(time);
                } else if !self.counts(number) {
                    return Ok(());
                }
                visit(number, document)
            }
            Row::Moved { seq, .. } if self.counts(number) && done.insert(*seq) => {
                visit(number, document)
            }
            _ => Ok(()),
        })
    }

    fn counts(&self, number: u64) -> bool {
        !self.deleted.contains(&number)
    }

    /// Calls `visit` with every readable document, live or dead, and the number of its row.
    fn walk(
        &self,
        report: &mut Report,
        visit: &mut dyn FnMut(u64, &Row, Document) -> Result<()>,
    ) -> Result<()> {
        let (mut documents, mut unreadable) = (0, Vec::new());
        let mut cached = Cached::new(&self.manifest)?;
        each_row(
            self.disk,
            &self.manifest,
            report,
            &mut |partition, number, row| {
                let (Row::Document(document) | Row::Moved { document, .. }) = row else {
                    return Ok(());
                };
                cached.check(self.disk, partition, document);
                match read_again(partition, document) {
                    Ok(again) => {
                        documents += u64::from(self.counts(number));
                        visit(number, row, again)
                    }
                    Err(error) => {
                        unreadable.push(format!("document '{}': {error}", shown(&document.id)));
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
struct Cached {
    seal: u32,
    /// `true` if the collection has sketches.
    is_there: bool,
    /// Cache of the current partition, until an entry is wrong.
    reading: Option<(FileNames, Option<Reading>)>,
    /// Names of files with a wrong entry.
    wrong: Vec<String>,
}

impl Cached {
    fn new(manifest: &Manifest) -> Result<Self> {
        let seal = manifest.seal;
        Ok(Self {
            seal,
            is_there: State::new(Arc::clone(&manifest.settings), seal)?.has_sketches(),
            reading: None,
            wrong: Vec::new(),
        })
    }

    fn check(&mut self, disk: &dyn Disk, partition: &Partition, document: &rows::Document) {
        if !self.is_there || !matches!(document.verdict, rows::Verdict::Kept { .. }) {
            return;
        }
        let names = partition.about.names();
        if self.reading.as_ref().is_none_or(|(of, _)| *of != names) {
            self.reading = Some((names, Some(Reading::open(disk, self.seal, names))));
        }
        let Some((_, reading)) = &mut self.reading else {
            return;
        };
        let Some(file) = reading else { return };
        let entry = file.next();
        if entry.is_none_or(|entry| entry.of(document.content).is_none()) {
            *reading = None;
            self.wrong.push(names.sketches());
        }
    }
}

fn read_again(partition: &Partition, document: &rows::Document) -> Result<Document> {
    partition.check_record(document.place, &document.id)?;
    let content = match document.fingerprint {
        Some(fingerprint) => Content::Fingerprint(fingerprint),
        None => Content::Text(partition.text(document.place.at, str::to_owned)?),
    };
    Ok(Document {
        id: document.id.clone(),
        content,
        time: Some(document.time),
        meta: document.meta.clone(),
    })
}

type VisitRow<'a> = dyn FnMut(&Partition, u64, &Row) -> Result<()> + 'a;

fn each_row(
    disk: &dyn Disk,
    manifest: &Manifest,
    report: &mut Report,
    visit: &mut VisitRow<'_>,
) -> Result<()> {
    manifest.settings.plan()?;
    let inventory = Inventory::take(disk, manifest)?;
    let findings = inventory.findings.iter().map(ToString::to_string);
    report.findings.extend(findings);
    let mut expected = None;
    for names in inventory.partitions {
        let partition = match Partition::open(disk, manifest.seal, names) {
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
            let name = partition.name();
            report
                .findings
                .push(format!("'{name}' begins with row {first}, not {expected}"));
        }
        expected = rows_of(&partition, report, visit)?;
    }
    Ok(())
}

/// Checks the rows of a partition. Returns the number after the last row, if that can be read.
fn rows_of(
    partition: &Partition,
    report: &mut Report,
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
            numbered(first, &rows).try_for_each(|(number, row)| visit(partition, number, row));
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
struct Line {
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
pub fn export(collection: &Collection, out: &mut dyn Write) -> Result<u64> {
    let (low, last, moved) = {
        let state = collection.state()?;
        (state.low(), state.last(), state.moved_from_before())
    };
    let mut count = 0;
    for seq in moved.into_iter().chain(low..=last) {
        let state = collection.state()?;
        let number = state.number_of(seq);
        if state.is_gone(number) {
            continue;
        }
        // A moved document is exported at its sequence number, not at the row to which it was moved.
        let Some(known) = state.known(number)?.filter(|known| known.seq == seq) else {
            continue;
        };
        let stored = stored(&state, &known)?;
        drop(state);
        let line = Line::from(stored);
        let written = serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from);
        written
            .and_then(|()| out.write_all(b"\n"))
            .map_err(|error| Error::disk("cannot write", "export", &error))?;
        count += 1;
    }
    Ok(count)
}

impl From<Stored> for Line {
    fn from(stored: Stored) -> Self {
        let evidence = match stored.answer.verdict {
            Verdict::Kept => None,
            Verdict::Duplicate(evidence) => Some(evidence),
        };
        let (text, fingerprint) = match stored.content {
            Content::Text(text) => (Some(text), None),
            Content::Fingerprint(code) => (None, Some(format!("{code:032x}"))),
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
pub struct Imported {
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

/// Reads the lines of an export and inserts their documents in order, with their times. Verdicts are decided
/// again; they are the same if nothing was deleted or late and no document is past the window. Calls `reject`
/// with the number of each line that is not part of an export or whose document is refused, and the reason.
///
/// # Errors
/// If the lines cannot be read or the collection accepts no more writes, and any error of `reject`.
pub fn import(
    collection: &Collection,
    lines: &mut dyn BufRead,
    reject: &mut Reject<'_>,
) -> Result<Imported> {
    import_lines(collection, lines, LONGEST_LINE, reject)
}

fn import_lines(
    collection: &Collection,
    lines: &mut dyn BufRead,
    longest: usize,
    reject: &mut Reject<'_>,
) -> Result<Imported> {
    let mut import = Import::new(collection, reject);
    let mut line = Vec::new();
    for number in 1.. {
        let is_whole = read_line(lines, &mut line, longest);
        let is_whole = is_whole.map_err(|error| Error::disk("cannot read", "import", &error))?;
        if line.is_empty() {
            break;
        }
        if !is_whole {
            let what = format!("the line has more than {longest} bytes, the limit for a document");
            import.reject(number, &Error::document(what))?;
            continue;
        }
        let line = match number {
            1 => line.strip_prefix(MARK).unwrap_or(&line),
            _ => &line,
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match Line::read(line) {
            Ok(document) => import.push(number, document)?,
            Err(error) => import.reject(number, &error)?,
        }
    }
    import.flush()?;
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

impl Line {
    fn read(line: &[u8]) -> Result<Document> {
        let line: Self = serde_json::from_slice(line).map_err(|error| {
            // The caller reports the number of the line.
            let (told, column) = (error.to_string(), error.column());
            match told.strip_suffix(&format!(" at line 1 column {column}")) {
                Some(what) => Error::document(format!("{what} at column {column}")),
                None => Error::document(told),
            }
        })?;
        line.document()
    }

    fn document(self) -> Result<Document> {
        let content = match (self.text, self.fingerprint) {
            (Some(text), None) => Content::Text(text),
            (None, Some(digits)) => {
                let code = u128::from_str_radix(&digits, 16);
                let wrong = |_| Error::document(format!("'{digits}' is not a fingerprint"));
                Content::Fingerprint(code.map_err(wrong)?)
            }
            _ => {
                return Err(Error::document(
                    "it must have either 'text' or 'fingerprint'",
                ));
            }
        };
        Ok(Document {
            id: self.id,
            content,
            time: Some(Time(self.time_us)),
            meta: self.meta,
        })
    }
}

/// Records a rejected document or line by its number, or stops the operation with an error.
pub type Reject<'a> = dyn FnMut(u64, &Error) -> Result<()> + 'a;

/// Documents collected for insertion in batches.
struct Import<'a, 'b> {
    collection: &'a Collection,
    scratch: Scratch,
    waiting: Vec<crate::Prepared>,
    /// Bytes of the waiting documents.
    bytes: usize,
    /// Their line or row numbers.
    numbers: Vec<u64>,
    imported: Imported,
    /// Hashes of the ids so far, if a later document replaces an earlier one with the same id.
    ids: Option<HashSet<u64>>,
    reject: &'a mut Reject<'b>,
}

/// Largest number of documents in a batch.
const AT_A_TIME: usize = 1024;

/// Number of bytes from which a batch is inserted.
const BYTES_AT_A_TIME: usize = 8 << 20;

impl<'a, 'b> Import<'a, 'b> {
    fn new(collection: &'a Collection, reject: &'a mut Reject<'b>) -> Self {
        Self {
            collection,
            scratch: Scratch::default(),
            waiting: Vec::new(),
            bytes: 0,
            numbers: Vec::new(),
            imported: Imported::default(),
            ids: None,
            reject,
        }
    }

    fn push(&mut self, number: u64, document: Document) -> Result<()> {
        let prepared = match self.collection.prepare(document, &mut self.scratch) {
            Ok(prepared) => prepared,
            Err(error) => return self.reject(number, &error),
        };
        let hash = id_hash(prepared.id());
        let is_later = self.ids.as_mut().is_some_and(|ids| !ids.insert(hash));
        if is_later {
            self.flush()?;
            return self.take_later(number, &prepared);
        }
        self.bytes += prepared.bytes();
        self.waiting.push(prepared);
        self.numbers.push(number);
        if self.waiting.len() >= AT_A_TIME || self.bytes >= BYTES_AT_A_TIME {
            self.flush()?;
        }
        Ok(())
    }

    /// Inserts a document whose id occurred before; it replaces the earlier document.
    fn take_later(&mut self, number: u64, document: &crate::Prepared) -> Result<()> {
        let mut answers = self.collection.insert(std::slice::from_ref(document));
        let in_conflict = |answer: &Result<crate::Answer>| {
            let error = answer.as_ref().err();
            error.is_some_and(|error| error.kind() == ErrorKind::Conflict)
        };
        if answers.iter().any(in_conflict) {
            let what = format!(
                "document '{}' is repeated: the later one is used",
                shown(document.id())
            );
            self.reject(number, &Error::document(what))?;
            self.collection.delete(document.id())?;
            answers = self.collection.insert(std::slice::from_ref(document));
        }
        self.take_answers(&[number], std::slice::from_ref(document), answers)
    }

    fn reject(&mut self, number: u64, error: &Error) -> Result<()> {
        (self.reject)(number, error)?;
        self.imported.rejected += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let numbers = std::mem::take(&mut self.numbers);
        self.bytes = 0;
        let answers = self.collection.insert(&waiting);
        self.take_answers(&numbers, &waiting, answers)
    }

    fn take_answers(
        &mut self,
        numbers: &[u64],
        documents: &[crate::Prepared],
        answers: Vec<Result<crate::Answer>>,
    ) -> Result<()> {
        for ((&number, document), answer) in numbers.iter().zip(documents).zip(answers) {
            let id = shown(document.id());
            match answer {
                Ok(answer) if answer.seq.is_none() => {
                    let what = format!("document '{id}' is older than the window");
                    self.reject(number, &Error::document(what))?;
                }
                Ok(answer) if answer.again => self.imported.again += 1,
                Ok(_) => self.imported.new += 1,
                Err(error) if error.kind() == ErrorKind::Conflict => self.reject(number, &error)?,
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
pub fn read_settings(disk: &dyn Disk) -> Result<Settings> {
    let settings = Manifest::read(disk)?.settings;
    Ok(Arc::unwrap_or_clone(settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;

    /// Lines up to the limit are read; longer ones are skipped to their ends.
    #[test]
    fn lines_that_are_too_long_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Folder::open(folder.path()).unwrap());
        let options = Options {
            headroom: 0,
            ..Options::default()
        };
        let collection = Collection::create(disk, &Settings::default(), options).unwrap();
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
        let is_there = ["a", "b", "c", "d", "e"].map(|id| collection.get(id).unwrap().is_some());
        assert_eq!(is_there, [true, true, false, true, false]);
    }

    /// Only few documents wait if they are long.
    #[test]
    fn documents_wait_by_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Folder::open(folder.path()).unwrap());
        let collection =
            Collection::create(disk, &Settings::default(), Options::default()).unwrap();
        let (text, mut sent) = ("long ".repeat(BYTES_AT_A_TIME / 20), 0);
        let mut reject = |number, error: &Error| Err(Error::document(format!("{number}: {error}")));
        let mut import = Import::new(&collection, &mut reject);
        for number in 0..20 {
            let document = Document {
                id: number.to_string(),
                content: Content::Text(format!("{number} {text}")),
                time: None,
                meta: None,
            };
            import.push(number, document).unwrap();
            sent += 1;
            let waiting = sent - collection.stats().unwrap().rows;
            assert!(waiting < 4, "{waiting} wait");
        }
        import.flush().unwrap();
        assert_eq!(collection.stats().unwrap().rows, 20);
    }
}
