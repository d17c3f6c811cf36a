//! Work of a check that is done without the lock: it is about texts, which never change, or makes the keys of a
//! document with very many features.
//!
//! A turn does such work at once if the text is short. It leaves a longer text as [`UnlockedWork`] and ends; the
//! caller releases the lock, does the work, and goes on with the next turn. The subject of the work can change
//! meanwhile. Then its result is not used, because each result names the row or the slot that it holds for.

use lookalike::stream::{
    CandidateVerifier, DocumentKeys, DocumentPreparer, DocumentSlot, KeyExtractor, SketchedDocument,
};
use lookalike::text::AnalysisScratch;

use super::DocumentCheck;
use super::open_record::OpenRecord;
use crate::document::{BYTES_OF_STEP, PendingInsert};
use crate::error::Result;
use crate::files::rows::RowDocument;

/// Work that a turn leaves to be done without the lock.
#[derive(Clone, Debug)]
pub(super) enum UnlockedWork {
    ReadRecord(RecordWork),
    /// Makes the keys of the document itself.
    MakeKeys(KeyExtractor),
}

/// Work on the text of a stored document.
#[derive(Clone, Debug)]
pub(super) struct RecordWork {
    pub(super) record: OpenRecord,
    pub(super) task: RecordTask,
}

#[derive(Clone, Debug)]
pub(super) enum RecordTask {
    /// Compares the text with that of the stored document in a row, which has the same id.
    CompareContent { row: u64 },
    /// Compares the candidate that the search has deferred.
    CompareCandidate(CandidateVerifier),
    /// Prepares a kept document to be moved.
    PrepareMove(Box<MovePreparation>),
}

/// The inputs for preparing the move of a kept document.
#[derive(Clone, Debug)]
pub(super) struct MovePreparation {
    pub(super) slot: DocumentSlot,
    pub(super) from: u64,
    pub(super) seq: u64,
    pub(super) kept: RowDocument,
    pub(super) preparer: DocumentPreparer,
    pub(super) extractor: KeyExtractor,
}

/// A kept document that is about to be moved to the newest partition.
#[derive(Clone, Debug)]
pub(super) struct MovingDocument {
    /// Slot that it leaves. Its content is always the same, because no other document ever has the slot.
    pub(super) slot: DocumentSlot,
    /// Number of the row that it leaves.
    pub(super) from: u64,
    pub(super) seq: u64,
    pub(super) kept: RowDocument,
    pub(super) sketched: SketchedDocument,
    /// Keys under which it is inserted.
    pub(super) keys: DocumentKeys,
    /// A copy of its record.
    pub(super) record: Vec<u8>,
}

/// The comparison of a document with the stored one that has the same id.
#[derive(Clone, Debug)]
pub(super) struct ContentComparison {
    /// Number of the row of the stored document.
    pub(super) row: u64,
    pub(super) is_same: Result<bool>,
}

impl MovePreparation {
    fn prepare(self, record: &OpenRecord) -> Result<MovingDocument> {
        let Self {
            slot,
            from,
            seq,
            kept,
            preparer,
            extractor,
        } = self;
        let (sketched, record) = record.visit_text(|record, text| {
            let sketched = match kept.fingerprint {
                Some(fingerprint) => preparer.fingerprint(fingerprint),
                None => Ok(preparer.prepare_text(text, &mut AnalysisScratch::default())),
            };
            (sketched, record.to_padded_bytes())
        })?;
        let sketched = sketched?;
        Ok(MovingDocument {
            keys: extractor.extract_keys(&sketched),
            slot,
            from,
            seq,
            kept,
            sketched,
            record,
        })
    }
}

impl MovingDocument {
    /// Returns its memory, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.record.len() + self.sketched.memory_bytes() as usize + self.keys.memory_bytes()
    }

    /// Returns the steps that the move takes about.
    pub(super) fn insertion_steps(&self) -> u64 {
        self.keys.insertion_steps() + self.record.len() as u64 / BYTES_OF_STEP
    }
}

impl DocumentCheck {
    /// Returns `true` if the check goes on only after [work without the lock](Self::do_unlocked_work).
    pub(crate) fn has_unlocked_work(&self) -> bool {
        self.unlocked_work.is_some()
    }

    /// Returns the length of the text, in bytes, that this work reads.
    pub(crate) fn unlocked_text_bytes(&self) -> usize {
        match self.unlocked_work.as_deref() {
            Some(UnlockedWork::ReadRecord(work)) => work.record.text_bytes(),
            Some(UnlockedWork::MakeKeys(_)) | None => 0,
        }
    }

    /// Does the work that ended the last turn of the check.
    pub(crate) fn do_unlocked_work(&mut self, document: &PendingInsert) {
        let Some(work) = self.unlocked_work.take() else {
            return;
        };
        let done = match *work {
            UnlockedWork::ReadRecord(work) => self.do_record_work(work, document),
            UnlockedWork::MakeKeys(extractor) => {
                let keys = extractor.extract_search_keys(&document.sketched);
                self.search.set_keys(keys);
                Ok(())
            }
        };
        if let Err(error) = done {
            self.refusal = Some(error);
        }
    }

    /// Does work on the text of a stored document.
    pub(super) fn do_record_work(
        &mut self,
        work: RecordWork,
        document: &PendingInsert,
    ) -> Result<()> {
        let RecordWork { record, task } = work;
        match task {
            RecordTask::CompareContent { row } => {
                let text = document.sketched.text();
                let is_same = record.visit_text(|_, stored| text == Some(stored));
                self.content = Some(ContentComparison { row, is_same });
            }
            RecordTask::CompareCandidate(verifier) => {
                record.visit_text(|_, text| {
                    verifier.compare_deferred(&mut self.search, &document.sketched, text)
                })??;
            }
            RecordTask::PrepareMove(preparation) => {
                self.moving = Some(Box::new(preparation.prepare(&record)?));
            }
        }
        Ok(())
    }
}
