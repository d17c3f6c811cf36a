//! Steps of repeated text: the cuts of kept documents, in the order of reading.
//!
//! | part of the content | bytes |
//! |---|---|
//! | identity of the search, which follows from the length of its passages and the kept documents | 8 |
//! | for each document with cuts: its number, the length of its record, and the record | 4, 4, any number |
//!
//! A step also decides about the documents between, which have no cuts. Outputs may be others in a resumed run. If they
//! lead to other cuts, the stored steps are left out and made again.

use std::path::{Path, PathBuf};

use lookalike::byte_reader::ByteReader;
use lookalike_io::error::{Error, Result};

use crate::run::execution::work_directory::WorkDirectory;
use crate::run::execution::work_directory::manifest::{StepEntry, StepKind, damaged_file};
use crate::run::execution::work_directory::step_file::{NewStep, read_step};

/// The cuts that are stored, and the step that is being made.
pub(in crate::run) struct CutSteps<'a> {
    directory: &'a WorkDirectory,
    identity: u64,
    /// Number of all documents.
    documents: u32,
    /// The files of stored steps, which are read when their records are wanted.
    files: Vec<(PathBuf, StepEntry)>,
    /// Number of documents in steps: those before it.
    stored: u32,
    /// Documents of the step that is being made, and its records.
    pending: PendingCuts,
}

#[derive(Default)]
struct PendingCuts {
    /// The document behind the last one.
    end: u32,
    content: Vec<u8>,
}

impl<'a> CutSteps<'a> {
    /// Finds the cuts that are stored. Those of a search with another identity are removed.
    ///
    /// # Errors
    /// If a step cannot be read, is damaged, or has documents that the run does not have.
    pub(in crate::run) fn open_prefix(
        directory: &'a WorkDirectory,
        identity: u64,
        documents: u32,
    ) -> Result<Self> {
        let mut steps = Self {
            directory,
            identity,
            documents,
            files: Vec::new(),
            stored: 0,
            pending: PendingCuts::default(),
        };
        for (file, entry) in directory.before.steps_of(StepKind::Cuts) {
            let path = directory.state.path.join(file);
            if steps.files.is_empty() && steps.read_identity(&path, entry)? != Some(identity) {
                steps.forget_stored()?;
                break;
            }
            let end = u32::try_from(entry.end).ok();
            steps.stored = end
                .filter(|&end| end <= documents)
                .ok_or_else(|| steps.damaged_step(&path))?;
            steps.files.push((path, entry.clone()));
        }
        steps.pending.end = steps.stored;
        Ok(steps)
    }

    fn read_identity(&self, path: &Path, entry: &StepEntry) -> Result<Option<u64>> {
        let content = read_step(path, self.directory.before.run, entry)?;
        Ok(ByteReader::new(content.as_bytes()).read_u64())
    }

    fn damaged_step(&self, path: &Path) -> Error {
        let what = format!("it has no repeated text of {} documents", self.documents);
        damaged_file(path, &what)
    }

    fn forget_stored(&self) -> Result<()> {
        self.directory.wait_for_writing()?;
        self.directory.change_manifest(|manifest| {
            manifest.steps.retain(|step| step.kind != StepKind::Cuts);
        })
    }

    /// Returns `true` if the cuts of all documents are stored.
    pub(in crate::run) fn is_complete(&self) -> bool {
        self.stored == self.documents
    }

    /// Returns the number of documents whose cuts are known: those before it.
    pub(in crate::run) fn decided(&self) -> u32 {
        self.stored
    }

    /// Calls `visit` with the stored records, ascending by document.
    ///
    /// # Errors
    /// If a step cannot be read or is damaged, and those of `visit`.
    pub(in crate::run) fn visit_records(
        &self,
        mut visit: impl FnMut(u32, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for (path, entry) in &self.files {
            let content = read_step(path, self.directory.before.run, entry)?;
            let records = decode_records(content.as_bytes(), self.identity, entry);
            for (document, record) in records.ok_or_else(|| self.damaged_step(path))? {
                visit(document, record)?;
            }
        }
        Ok(())
    }

    /// Takes the record of the next document that has cuts. Ends the step if it is due.
    ///
    /// # Errors
    /// If a step cannot be written.
    pub(in crate::run) fn accept_record(&mut self, document: u32, record: &[u8]) -> Result<()> {
        debug_assert!(self.pending.end <= document && document < self.documents);
        let content = &mut self.pending.content;
        content.extend(document.to_le_bytes());
        content.extend((record.len() as u32).to_le_bytes());
        content.extend_from_slice(record);
        self.pending.end = document + 1;
        if self.directory.is_step_due(content.len()) {
            self.end_step(document + 1)
        } else {
            Ok(())
        }
    }

    /// Ends the last step, once the cuts of all documents are known.
    ///
    /// # Errors
    /// If a step cannot be written.
    pub(in crate::run) fn finish_steps(mut self) -> Result<()> {
        if self.stored < self.documents {
            self.end_step(self.documents)?;
        }
        self.directory.wait_for_writing()
    }

    fn end_step(&mut self, end: u32) -> Result<()> {
        let records = std::mem::take(&mut self.pending.content);
        let range = u64::from(self.stored)..u64::from(end);
        self.stored = end;
        self.directory.submit_step(NewStep {
            kind: StepKind::Cuts,
            documents: range.end - range.start,
            range,
            input_bytes: 0,
            content: [&self.identity.to_le_bytes()[..], &records].concat(),
        })
    }
}

/// Reads the records of a step. Returns `None` if the step is of another search, if the bytes are too few, or if the
/// documents do not ascend or are not those of the step.
fn decode_records<'c>(
    content: &'c [u8],
    identity: u64,
    entry: &StepEntry,
) -> Option<Vec<(u32, &'c [u8])>> {
    let mut reader = ByteReader::new(content);
    if reader.read_u64()? != identity {
        return None;
    }
    let mut records: Vec<(u32, &[u8])> = Vec::new();
    while !reader.is_at_end() {
        let document = reader.read_u32()?;
        let length = reader.read_u32()? as usize;
        let record = reader.read_bytes(length)?;
        let ascends = records.last().is_none_or(|(last, _)| *last < document);
        if !ascends || !(entry.first..entry.end).contains(&u64::from(document)) {
            return None;
        }
        records.push((document, record));
    }
    Some(records)
}
