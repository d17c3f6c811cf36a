//! Steps of deciding: the verdicts of documents, in their total order.
//!
//! The content of a step is the number of all documents of the run (8 bytes), the number of removals (8), and the
//! removals as the engine [encodes](lookalike::dedup::DocumentRemoval::encode_removal) them.

use lookalike::byte_reader::ByteReader;
use lookalike::dedup::{DecidedPrefix, DocumentRemoval};
use lookalike_io::error::Result;

use crate::run::execution::work_directory::WorkDirectory;
use crate::run::execution::work_directory::manifest::{StepKind, damaged_file};
use crate::run::execution::work_directory::step_file::{NewStep, read_step};

/// The verdicts that are stored, and the step that is being made.
pub(in crate::run) struct VerdictSteps<'a> {
    directory: &'a WorkDirectory,
    /// Number of all documents.
    documents: usize,
    /// Number of documents with a stored verdict.
    stored: usize,
    /// Number of documents with a verdict.
    decided: usize,
    /// Removals among those that are not stored yet.
    pending: Vec<DocumentRemoval>,
}

impl<'a> VerdictSteps<'a> {
    /// Reads the verdicts that are stored.
    ///
    /// # Errors
    /// If a step cannot be read, is damaged, or is not of a run with so many documents.
    pub(in crate::run) fn read_prefix(
        directory: &'a WorkDirectory,
        documents: usize,
    ) -> Result<(Self, DecidedPrefix)> {
        let mut prefix = DecidedPrefix::default();
        for (file, entry) in directory.before.steps_of(StepKind::Verdicts) {
            let path = directory.state.path.join(file);
            let content = read_step(&path, directory.before.run, entry)?;
            let removals = decode_removals(content.as_bytes(), documents)
                .filter(|_| entry.end <= documents as u64)
                .ok_or_else(|| {
                    damaged_file(
                        &path,
                        &format!("it has no verdicts of {documents} documents"),
                    )
                })?;
            prefix.removals.extend(removals);
            prefix.documents = entry.end as usize;
        }
        let decided = prefix.documents;
        let steps = Self {
            directory,
            documents,
            stored: decided,
            decided,
            pending: Vec::new(),
        };
        Ok((steps, prefix))
    }

    /// Takes the verdicts up to a number of documents. Verdicts that are stored already are ignored. Ends the
    /// step if it is due.
    ///
    /// # Errors
    /// If a step cannot be written.
    pub(in crate::run) fn accept_removals(
        &mut self,
        decided: usize,
        removals: &[DocumentRemoval],
    ) -> Result<()> {
        if decided <= self.decided {
            return Ok(());
        }
        self.decided = decided;
        self.pending.extend_from_slice(removals);
        let bytes = self.pending.len() * DocumentRemoval::BYTES;
        if self.directory.is_step_due(bytes) {
            self.end_step()
        } else {
            Ok(())
        }
    }

    /// Ends the last step, once all documents have a verdict.
    ///
    /// # Errors
    /// If a step cannot be written.
    pub(in crate::run) fn finish_steps(&mut self) -> Result<()> {
        self.end_step()?;
        self.directory.finish_deciding()
    }

    fn end_step(&mut self) -> Result<()> {
        if self.decided == self.stored {
            return Ok(());
        }
        let mut content = Vec::with_capacity(16 + self.pending.len() * DocumentRemoval::BYTES);
        content.extend((self.documents as u64).to_le_bytes());
        content.extend((self.pending.len() as u64).to_le_bytes());
        for removal in self.pending.drain(..) {
            removal.encode_removal(&mut content);
        }
        let range = self.stored as u64..self.decided as u64;
        self.stored = self.decided;
        self.directory.submit_step(NewStep {
            kind: StepKind::Verdicts,
            documents: range.end - range.start,
            range,
            input_bytes: 0,
            content,
        })
    }
}

fn decode_removals(content: &[u8], documents: usize) -> Option<Vec<DocumentRemoval>> {
    let mut reader = ByteReader::new(content);
    if reader.read_u64()? != documents as u64 {
        return None;
    }
    let count = reader.read_u64()?;
    let is_known = |removal: &DocumentRemoval| {
        removal.document.index() < documents && removal.kept.with.index() < documents
    };
    let removals = (0..count)
        .map(|_| DocumentRemoval::decode_removal(&mut reader).filter(is_known))
        .collect::<Option<Vec<_>>>()?;
    reader.is_at_end().then_some(removals)
}
