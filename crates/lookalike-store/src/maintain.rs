//! Looking after a collection: is all of it as it was written, and how to carry it elsewhere.

use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::sync::Arc;

use lookalike::online::Time;
use lookalike::text::Scratch;
use serde::{Deserialize, Serialize};

use crate::collection::{Collection, Options, copy, stored};
use crate::disk::Disk;
use crate::document::{Content, Document, Verdict, shown};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::id_hash;
use crate::inventory::{Inventory, names};
use crate::partition::{Partition, is_of_collection};
use crate::rows::{self, Row};
use crate::settings::{MANIFEST, Manifest, NEW, Settings};

/// What looking at every byte of a collection has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Partitions that were looked at.
    pub partitions: u64,
    /// Rows that are as they were written.
    pub rows: u64,
    /// Documents among them whose records are as they were written.
    pub documents: u64,
    /// What is wrong, in words.
    pub findings: Vec<String>,
}

/// Checks every row and every record of a collection that nobody has open. A commit that a loss of
/// power interrupted is completed or undone first, as opening the collection would do.
///
/// # Errors
/// If the manifest cannot be read; all else that is wrong is in the report.
pub fn verify(disk: &dyn Disk) -> Result<Report> {
    let mut report = Report::default();
    walk(disk, &mut report, &mut |_, _| Ok(()))?;
    Ok(report)
}

/// Copies a collection that nobody has open, a [snapshot](Collection::snapshot) say, to a disk that has
/// none. The manifest comes last: without it a copy is none. Nothing is checked but the manifest; that
/// is for [`verify`].
///
/// # Errors
/// If there is no collection, there is one already, or one of the disks refuses.
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
    for name in names(from)?.iter().filter(|name| is_of_collection(name)) {
        copy(&*opened(name)?, to, name)?;
    }
    let new = format!("{MANIFEST}{NEW}");
    copy(&*opened(MANIFEST)?, to, &new)?;
    to.rename(&new, MANIFEST)
        .and_then(|()| to.sync_names())
        .map_err(|error| Error::disk("cannot write", MANIFEST, &error))
}

/// Makes a new collection of all documents that can still be read of a damaged one, in their order.
/// They are checked and inserted anew, so their sequence numbers change, and where a kept document was
/// lost so do verdicts. A document whose deletion cannot be read is there again, unless another follows
/// under its id. Returns what was found, and the new collection.
///
/// # Errors
/// If the manifest cannot be read, or the new disk refuses.
pub fn repair(
    from: &dyn Disk,
    to: Arc<dyn Disk>,
    options: Options,
) -> Result<(Report, Collection)> {
    let settings = Manifest::read(from)?.settings;
    let deleted = deleted(from)?;
    let collection = Collection::create(to, &settings, options)?;
    let mut import = Import {
        findings: Some(Vec::new()),
        ..Import::new(&collection)
    };
    let mut report = Report::default();
    walk(from, &mut report, &mut |number, document| {
        if deleted.contains(&number) {
            return Ok(());
        }
        import.push(document)
    })?;
    import.flush()?;
    report
        .findings
        .extend(import.findings.take().unwrap_or_default());
    drop(import);
    Ok((report, collection))
}

/// The numbers of rows that do not count any more.
fn deleted(disk: &dyn Disk) -> Result<HashSet<u64>> {
    let mut deleted = HashSet::new();
    each_row(disk, &mut Report::default(), &mut |_, _, row| {
        match row {
            Row::Deleted { number, .. } => deleted.insert(*number),
            Row::Moved { from, .. } => deleted.insert(*from),
            Row::Document(_) => false,
        };
        Ok(())
    })?;
    Ok(deleted)
}

/// Calls back with every document that can be read, and the number of its row.
fn walk(
    disk: &dyn Disk,
    report: &mut Report,
    visit: &mut dyn FnMut(u64, Document) -> Result<()>,
) -> Result<()> {
    let (mut documents, mut unreadable) = (0, Vec::new());
    each_row(disk, report, &mut |partition, number, row| {
        let (Row::Document(document) | Row::Moved { document, .. }) = row else {
            return Ok(());
        };
        match read_again(partition, document) {
            Ok(again) => {
                documents += 1;
                visit(number, again)
            }
            Err(error) => {
                unreadable.push(format!("document '{}': {error}", shown(&document.id)));
                Ok(())
            }
        }
    })?;
    report.documents += documents;
    report.findings.append(&mut unreadable);
    Ok(())
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

fn each_row(disk: &dyn Disk, report: &mut Report, visit: &mut VisitRow<'_>) -> Result<()> {
    let manifest = Manifest::read(disk)?;
    manifest.settings.plan()?;
    let inventory = Inventory::take(disk, &manifest)?;
    let findings = inventory.findings.iter().map(ToString::to_string);
    report.findings.extend(findings);
    let mut expected = None;
    for number in inventory.partitions {
        let partition = match Partition::open(disk, manifest.seal, number) {
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

/// Returns the number after the last row, if it can be read.
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
        next = Some(first + rows.len() as u64);
        report.rows += rows.len() as u64;
        refused = (first..)
            .zip(&rows)
            .try_for_each(|(number, row)| visit(partition, number, row));
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

/// Writes every document of a collection, one JSON object a line, in the order of their rows: `id`,
/// `time_us`, `text` or `fingerprint`, `meta`, `seq`, and of those that repeat another `of` and
/// `similarity`. Returns how many.
///
/// # Errors
/// If a file is damaged, or `out` refuses.
pub fn export(collection: &Collection, out: &mut dyn Write) -> Result<u64> {
    let (low, last) = {
        let state = collection.state()?;
        (state.low(), state.last())
    };
    let mut count = 0;
    for number in low..=last {
        let state = collection.state()?;
        if state.is_gone(number) {
            continue;
        }
        let Some(known) = state.known(number)? else {
            continue;
        };
        let stored = stored(&state, &known)?;
        drop(state);
        let evidence = match stored.answer.verdict {
            Verdict::Kept => None,
            Verdict::Duplicate(evidence) => Some(evidence),
        };
        let (text, fingerprint) = match stored.content {
            Content::Text(text) => (Some(text), None),
            Content::Fingerprint(code) => (None, Some(format!("{code:032x}"))),
        };
        let line = Line {
            id: stored.answer.id,
            time_us: stored.answer.time.0,
            text,
            fingerprint,
            meta: stored.meta,
            seq: stored.answer.seq,
            similarity: evidence.as_ref().map(|evidence| evidence.similarity),
            of: evidence.map(|evidence| evidence.of),
        };
        let written = serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from);
        written
            .and_then(|()| out.write_all(b"\n"))
            .map_err(|error| Error::disk("cannot write", "export", &error))?;
        count += 1;
    }
    Ok(count)
}

/// Reads the lines of an export and inserts the documents in their order, with their times. Verdicts
/// fall anew, and are the same if nothing was deleted or late. Returns how many documents were
/// inserted.
///
/// # Errors
/// With the number of the line, if it is none of an export or its document is refused.
pub fn import(collection: &Collection, lines: &mut dyn BufRead) -> Result<u64> {
    let mut import = Import::new(collection);
    for (number, line) in (1u64..).zip(lines.lines()) {
        let line = line.map_err(|error| Error::disk("cannot read", "import", &error))?;
        let at_line = |what: &dyn std::fmt::Display| {
            Error::document(format!("line {number} of the import: {what}"))
        };
        let line: Line = serde_json::from_str(&line).map_err(|error| at_line(&error))?;
        let document = line.document().map_err(|error| at_line(&error))?;
        import.push(document).map_err(|error| at_line(&error))?;
    }
    import.finish()
}

impl Line {
    fn document(self) -> Result<Document> {
        let content = match (self.text, self.fingerprint) {
            (Some(text), None) => Content::Text(text),
            (None, Some(digits)) => {
                let code = u128::from_str_radix(&digits, 16);
                let wrong = |_| Error::document(format!("'{digits}' is no fingerprint"));
                Content::Fingerprint(code.map_err(wrong)?)
            }
            _ => {
                return Err(Error::document(
                    "it has not one of 'text' and 'fingerprint'",
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

/// Documents that are inserted many at a time.
struct Import<'a> {
    collection: &'a Collection,
    scratch: Scratch,
    waiting: Vec<crate::Prepared>,
    count: u64,
    /// Hashes of the ids so far, where one may come again.
    ids: HashSet<u64>,
    /// What was not inserted as it stands, where that does not end it.
    findings: Option<Vec<String>>,
}

const AT_A_TIME: usize = 1024;

impl<'a> Import<'a> {
    fn new(collection: &'a Collection) -> Self {
        Self {
            collection,
            scratch: Scratch::default(),
            waiting: Vec::new(),
            count: 0,
            ids: HashSet::new(),
            findings: None,
        }
    }

    fn push(&mut self, document: Document) -> Result<()> {
        let prepared = match self.collection.prepare(document, &mut self.scratch) {
            Ok(prepared) => prepared,
            Err(error) => return self.note(error),
        };
        let hash = id_hash(prepared.id());
        if self.findings.is_some() && !self.ids.insert(hash) {
            self.flush()?;
            return self.take_later(&prepared);
        }
        self.waiting.push(prepared);
        if self.waiting.len() >= AT_A_TIME {
            self.flush()?;
        }
        Ok(())
    }

    /// Takes a document whose id was there before, in place of the one that has it.
    fn take_later(&mut self, document: &crate::Prepared) -> Result<()> {
        let mut answers = self.collection.insert(std::slice::from_ref(document));
        let in_conflict = |answer: &Result<crate::Answer>| {
            let error = answer.as_ref().err();
            error.is_some_and(|error| error.kind() == ErrorKind::Conflict)
        };
        if answers.iter().any(in_conflict) {
            self.note(Error::document(format!(
                "document '{}' is there twice: the later one is taken",
                shown(document.id())
            )))?;
            self.collection.delete(document.id())?;
            answers = self.collection.insert(std::slice::from_ref(document));
        }
        self.take_answers(std::slice::from_ref(document), answers)
    }

    /// Takes note of a document that is not inserted, or ends with it.
    fn note(&mut self, error: Error) -> Result<()> {
        match &mut self.findings {
            Some(findings) => {
                findings.push(error.to_string());
                Ok(())
            }
            None => Err(error),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let answers = self.collection.insert(&waiting);
        self.take_answers(&waiting, answers)
    }

    fn take_answers(
        &mut self,
        documents: &[crate::Prepared],
        answers: Vec<Result<crate::Answer>>,
    ) -> Result<()> {
        for (document, answer) in documents.iter().zip(answers) {
            let id = shown(document.id());
            let answer = answer
                .map_err(|error| Error::new(error.kind(), format!("document '{id}': {error}")))?;
            if answer.seq.is_some() {
                self.count += 1;
                continue;
            }
            self.note(Error::document(format!(
                "document '{id}' is older than the window"
            )))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.flush()?;
        Ok(self.count)
    }
}

/// The settings of a collection that nobody has open.
///
/// # Errors
/// If the manifest cannot be read.
pub fn read_settings(disk: &dyn Disk) -> Result<Settings> {
    let settings = Manifest::read(disk)?.settings;
    Ok(Arc::unwrap_or_clone(settings))
}
