//! The choice of cuts from repeated runs, and their records.
//!
//! Documents are divided into portions. The cuts of a portion are chosen on all threads. Then its documents follow one
//! another, because each cut names a place that stays, which the cuts of earlier documents decide.

use lookalike::byte_reader::ByteReader;
use lookalike::passages::{
    RepeatedRun, TextCut, choose_cuts, join_repeated_runs, name_remaining_places,
};
use lookalike_io::error::{Error, Result};
use rayon::prelude::*;

use super::document_records::DocumentRecords;
use super::run_search::{FoundRuns, RunScratch, RunSearch};
use crate::run::execution::work_directory::WorkDirectory;
use crate::run::execution::work_directory::cut_steps::CutSteps;

/// The cuts of documents, each by the number of the document.
pub(super) struct CutRecords {
    records: DocumentRecords,
    is_in_memory: bool,
}

impl CutRecords {
    /// Returns `true` if the records are in memory, and not in a temporary file.
    pub(super) fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Returns the documents that have cuts, ascending.
    pub(super) fn documents(&self) -> &[u32] {
        self.records.documents()
    }

    /// Adds the cuts of a document behind all that have some, and returns their record. Nothing is added if there are
    /// none.
    ///
    /// # Errors
    /// If a temporary file fails.
    fn push_cuts(&mut self, document: u32, mut cuts: Vec<TextCut>) -> Result<Option<Vec<u8>>> {
        name_remaining_places(&mut cuts, |earlier| self.read_cuts(earlier))?;
        if cuts.is_empty() {
            return Ok(None);
        }
        let mut record = Vec::new();
        cuts.iter().for_each(|cut| cut.encode_cut(&mut record));
        self.records.push_record(document, &record)?;
        Ok(Some(record))
    }

    /// Returns the cuts of a document, ascending.
    ///
    /// # Errors
    /// If a temporary file cannot be read or has changed.
    pub(super) fn read_cuts(&self, document: u32) -> Result<Vec<TextCut>> {
        let mut record = Vec::new();
        self.records.read_record(document, &mut record)?;
        let mut reader = ByteReader::new(&record);
        let mut cuts = Vec::new();
        while !reader.is_at_end() {
            let cut = TextCut::decode_cut(&mut reader);
            cuts.push(cut.ok_or_else(changed_file_error)?);
        }
        Ok(cuts)
    }
}

/// Returns the error for records that are not what was written.
pub(super) fn changed_file_error() -> Error {
    Error::input_error(
        "the temporary file of repeated passages has changed while the run used it: check the disk, and run it again",
    )
}

impl RunSearch<'_> {
    /// Finds the cuts of all new documents. Those that the directory of the run has are not chosen again, and it takes
    /// the others.
    ///
    /// # Errors
    /// If a text or the library cannot be read, or if temporary files or the directory fail.
    pub(super) fn find_cuts(&mut self, work: Option<&WorkDirectory>) -> Result<CutRecords> {
        let Some(work) = work else {
            let found = self.find_runs()?;
            return self.choose_all_cuts(found, None);
        };
        let steps = CutSteps::open_prefix(work, self.step_identity(), self.of.corpus.len() as u32)?;
        if steps.is_complete() {
            // The number of repeated runs is not known, so their cuts are in memory only if nothing limits it.
            let mut records = self.new_cut_records(self.of.shares.is_unlimited())?;
            steps
                .visit_records(|document, record| records.records.push_record(document, record))?;
            return Ok(records);
        }
        let found = self.find_runs()?;
        self.choose_all_cuts(found, Some(steps))
    }

    /// Returns a number that differs between searches that choose other cuts.
    fn step_identity(&self) -> u64 {
        let min_words = u64::from(self.of.settings.min_words());
        let kept = self.of.kept.iter();
        kept.fold(min_words, |hash, document| {
            let pair = [hash.to_le_bytes(), u64::from(document.0).to_le_bytes()];
            lookalike::value_hash(pair.as_flattened())
        })
    }

    /// Chooses the cuts of all new documents that `steps` does not have.
    fn choose_all_cuts(
        &self,
        found: FoundRuns,
        mut steps: Option<CutSteps<'_>>,
    ) -> Result<CutRecords> {
        let is_in_memory = matches!(found, FoundRuns::Memory(_));
        let mut records = self.new_cut_records(is_in_memory)?;
        if let Some(steps) = &steps {
            steps
                .visit_records(|document, record| records.records.push_record(document, record))?;
        }
        let first_open = steps.as_ref().map_or(0, CutSteps::decided);
        found.visit_runs(self.of.shares, |runs| {
            let open = runs.partition_point(|run| run.document() < first_open);
            for (document, cuts) in self.choose_cuts(&runs[open..])? {
                let record = records.push_cuts(document, cuts)?;
                if let (Some(steps), Some(record)) = (&mut steps, record) {
                    steps.accept_record(document, &record)?;
                }
            }
            Ok(())
        })?;
        steps.map_or(Ok(()), CutSteps::finish_steps)?;
        Ok(records)
    }

    fn new_cut_records(&self, is_in_memory: bool) -> Result<CutRecords> {
        Ok(CutRecords {
            records: self.new_records(is_in_memory)?,
            is_in_memory,
        })
    }

    /// Creates records of documents.
    ///
    /// # Errors
    /// If a temporary file cannot be created.
    pub(super) fn new_records(&self, is_in_memory: bool) -> Result<DocumentRecords> {
        if is_in_memory {
            Ok(DocumentRecords::in_memory())
        } else {
            DocumentRecords::in_file(self.of.corpus.temporary_directory())
        }
    }

    /// Chooses the cuts of the new documents that have these repeated runs.
    fn choose_cuts(&self, runs: &[RepeatedRun]) -> Result<Vec<(u32, Vec<TextCut>)>> {
        let first_new = self.texts.first_new();
        let by_document = runs.chunk_by(|a, b| a.document() == b.document());
        let new_documents: Vec<&[RepeatedRun]> = by_document
            .filter(|runs| runs[0].document() >= first_new)
            .collect();
        let settings = self.of.settings;
        let chosen = new_documents
            .par_iter()
            .map_init(RunScratch::default, |scratch, repeated| {
                let document = repeated[0].document();
                let text = scratch.read_runs(&self.texts, document, settings)?;
                let pieces = join_repeated_runs(repeated, scratch.runs());
                let cuts = choose_cuts(&text, &scratch.tokens, &pieces, settings);
                Ok((document, cuts))
            });
        chosen.collect()
    }
}
