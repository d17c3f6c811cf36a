//! Documents that are inserted in batches.

use std::collections::HashSet;

use lookalike::text::AnalysisScratch;

use crate::collection::Collection;
use crate::decision::DecisionRequest;
use crate::document::{InsertAnswer, NewDocument, PendingInsert, hash_id, shorten_id};
use crate::error::{Error, ErrorKind, Result};

/// Result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Documents that are new to the collection.
    pub new: u64,
    /// Documents that existed already with the same content.
    pub again: u64,
    /// Decisions of a person.
    pub decisions: u64,
    /// Lines that were rejected.
    pub rejected: u64,
}

/// Records a rejected document or line by its number, or stops the operation with an error.
pub type RejectDocument<'a> = dyn FnMut(u64, &Error) -> Result<()> + 'a;

/// Largest number of documents in a batch.
const BATCH_DOCUMENTS: usize = 1024;

/// Number of bytes from which a batch is inserted.
const BATCH_BYTES: usize = 8 << 20;

/// Documents collected for insertion in batches.
pub(crate) struct BulkImport<'a, 'b> {
    collection: &'a Collection,
    scratch: AnalysisScratch,
    waiting: Vec<PendingInsert>,
    /// Bytes of the waiting documents.
    bytes: usize,
    /// Their line or row numbers.
    numbers: Vec<u64>,
    counts: ImportCounts,
    /// Hashes of the ids so far, if a later document replaces an earlier one with the same id.
    ids: Option<HashSet<u64>>,
    reject: &'a mut RejectDocument<'b>,
}

impl<'a, 'b> BulkImport<'a, 'b> {
    pub(crate) fn new(collection: &'a Collection, reject: &'a mut RejectDocument<'b>) -> Self {
        Self {
            collection,
            scratch: AnalysisScratch::default(),
            waiting: Vec::new(),
            bytes: 0,
            numbers: Vec::new(),
            counts: ImportCounts::default(),
            ids: None,
            reject,
        }
    }

    /// Lets a later document replace an earlier one with the same id, and reports it.
    pub(crate) fn with_replacement(mut self) -> Self {
        self.ids = Some(HashSet::new());
        self
    }

    pub(crate) fn push_document(&mut self, number: u64, document: NewDocument) -> Result<()> {
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
            return self.replace_earlier(number, &prepared);
        }
        self.bytes += prepared.memory_bytes();
        self.waiting.push(prepared);
        self.numbers.push(number);
        if self.waiting.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES {
            self.insert_waiting()?;
        }
        Ok(())
    }

    /// Makes a decision, after the documents before it are inserted.
    pub(super) fn make_decision(&mut self, number: u64, request: &DecisionRequest) -> Result<()> {
        self.insert_waiting()?;
        match self.collection.decide(request) {
            Ok(_) => self.counts.decisions += 1,
            Err(error) if error.kind() == ErrorKind::Decision => {
                self.reject_document(number, &error)?
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Inserts a document whose id occurred before; it replaces the earlier document.
    fn replace_earlier(&mut self, number: u64, document: &PendingInsert) -> Result<()> {
        let mut answers = self
            .collection
            .insert_documents(std::slice::from_ref(document));
        let is_in_conflict = |answer: &Result<InsertAnswer>| {
            let error = answer.as_ref().err();
            error.is_some_and(|error| error.kind() == ErrorKind::Conflict)
        };
        if answers.iter().any(is_in_conflict) {
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
        self.record_answers(&[number], std::slice::from_ref(document), answers)
    }

    pub(super) fn reject_document(&mut self, number: u64, error: &Error) -> Result<()> {
        (self.reject)(number, error)?;
        self.counts.rejected += 1;
        Ok(())
    }

    pub(crate) fn insert_waiting(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let numbers = std::mem::take(&mut self.numbers);
        self.bytes = 0;
        let answers = self.collection.insert_documents(&waiting);
        self.record_answers(&numbers, &waiting, answers)
    }

    fn record_answers(
        &mut self,
        numbers: &[u64],
        documents: &[PendingInsert],
        answers: Vec<Result<InsertAnswer>>,
    ) -> Result<()> {
        for ((&number, document), answer) in numbers.iter().zip(documents).zip(answers) {
            let id = shorten_id(document.id());
            match answer {
                Ok(answer) if answer.seq.is_none() => {
                    let what = format!("document '{id}' is older than the window");
                    self.reject_document(number, &Error::document_error(what))?;
                }
                Ok(answer) if answer.again => self.counts.again += 1,
                Ok(_) => self.counts.new += 1,
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

    /// Returns how many documents were inserted and rejected.
    pub(super) fn into_counts(self) -> ImportCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::collection::CollectionOptions;
    use crate::disk::DiskFolder;
    use crate::document::DocumentContent;
    use crate::settings::CollectionSettings;

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
        let (text, mut sent) = ("long ".repeat(BATCH_BYTES / 20), 0);
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
