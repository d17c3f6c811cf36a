//! An open collection: its documents, its state and what happened to documents since the start.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lookalike::plan::SimilarityMeasure;
use lookalike::text::AnalysisScratch;
use lookalike_store::{
    AdmittedDocuments, Collection, DocumentContent, DuplicateEvidence, Error, InsertAnswer,
    NewDocument, PendingInsert, PendingQuery, StoredVerdict, UnlockedWorkPolicy,
};
use tokio::sync::watch;

use super::insert_queue::InsertQueues;
use super::passage_search::PassageSearch;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::json::documents;

/// Largest text, in bytes, that is compared by edit distance. That takes time in proportion to the product of
/// both lengths, without a lock, and other long documents wait meanwhile.
const MAX_EDIT_DISTANCE_BYTES: usize = 64 << 10;

/// Largest number of documents of a turn of a bulk request.
const MAX_TURN_DOCUMENTS: usize = 512;

/// An open collection.
pub(crate) struct OpenCollection {
    pub(crate) name: String,
    pub(crate) collection: Collection,
    pub(crate) counts: DocumentCounts,
    /// Search for passages in the kept documents.
    pub(crate) passages: PassageSearch,
    pub(super) queues: InsertQueues,
    closing: watch::Sender<bool>,
    /// Set when a write fails; never cleared.
    stopped: AtomicBool,
    /// Set when a damaged file is found; never cleared.
    damaged: AtomicBool,
    /// Set when the disk refuses a read; cleared when the repeated read succeeds.
    unreadable: AtomicBool,
}

/// Numbers of documents by outcome, since the service started.
#[derive(Debug, Default)]
pub(crate) struct DocumentCounts {
    pub(crate) kept: AtomicU64,
    pub(crate) duplicate: AtomicU64,
    /// Older than the window: answered but not stored.
    pub(crate) late: AtomicU64,
    /// Sent again: answered as before.
    pub(crate) again: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Checked but not inserted.
    pub(crate) queried: AtomicU64,
    pub(crate) refused_query: AtomicU64,
}

/// A document that is ready to be checked, or why it is refused.
pub(crate) type PreparationResult = Result<PendingInsert, RefusedDocument>;

/// The answer to a document, or why it is refused.
pub(crate) type AnswerResult = Result<InsertAnswer, RefusedDocument>;

/// Why a document has no answer, and its id if it could be read.
pub(crate) struct RefusedDocument {
    pub(crate) id: Option<String>,
    pub(crate) problem: ApiProblem,
}

/// Admitted documents, whose answers are due once they are on disk.
pub(crate) struct AdmittedBatch {
    documents: Vec<PendingInsert>,
    /// One entry for each document offered, in their order: the refusal, or `None` if it is among `documents`.
    refusals: Vec<Option<RefusedDocument>>,
    admitted: AdmittedDocuments,
}

/// Documents admitted in turns, and those behind them that were refused.
#[derive(Default)]
pub(crate) struct AdmittedTurns {
    batches: Vec<AdmittedBatch>,
    refused: Vec<RefusedDocument>,
}

/// Refuses a document for a problem, unless it is refused already.
pub(crate) fn refuse_document(
    document: PreparationResult,
    problem: &ApiProblem,
) -> RefusedDocument {
    match document {
        Ok(document) => RefusedDocument {
            id: Some(document.id().to_owned()),
            problem: problem.clone(),
        },
        Err(refused) => refused,
    }
}

/// Returns the documents, and for each position the refusal, or `None` for a document.
fn separate_refusals(
    prepared: Vec<PreparationResult>,
) -> (Vec<PendingInsert>, Vec<Option<RefusedDocument>>) {
    let mut documents = Vec::with_capacity(prepared.len());
    let mut refusals = Vec::with_capacity(prepared.len());
    for document in prepared {
        match document {
            Ok(document) => {
                documents.push(document);
                refusals.push(None);
            }
            Err(refused) => refusals.push(Some(refused)),
        }
    }
    (documents, refusals)
}

impl From<ApiProblem> for RefusedDocument {
    fn from(problem: ApiProblem) -> Self {
        Self { id: None, problem }
    }
}

impl OpenCollection {
    pub(crate) fn new(name: &str, collection: Collection) -> Self {
        Self {
            name: name.to_owned(),
            collection,
            counts: DocumentCounts::default(),
            passages: PassageSearch::default(),
            queues: InsertQueues::default(),
            closing: watch::Sender::new(false),
            stopped: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
        }
    }

    /// Returns the number of bits of a fingerprint.
    pub(crate) fn fingerprint_bits(&self) -> u32 {
        self.collection.collection_settings().recipe.simhash.bits
    }

    /// Returns the measure of similarity.
    pub(crate) fn similarity_measure(&self) -> SimilarityMeasure {
        self.collection.collection_settings().matching.measure
    }

    /// Ends the bulk requests of the collection, so that it can be deleted.
    pub(crate) fn begin_closing(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until the collection is being deleted.
    pub(crate) async fn wait_until_closing(&self) {
        // The sender lives at least as long as this borrow, so the wait cannot fail.
        let _ = self.closing.subscribe().wait_for(|&closing| closing).await;
    }

    /// Returns a wait until the collection is being deleted, or is gone. It does not keep the collection.
    pub(crate) fn subscribe_closing(&self) -> impl Future<Output = ()> + use<> {
        let mut closing = self.closing.subscribe();
        async move {
            let _ = closing.wait_for(|&closing| closing).await;
        }
    }

    /// Checks that the collection is not being deleted.
    ///
    /// # Errors
    /// [`ProblemCode::Deleting`] if the collection is being deleted.
    pub(crate) fn check_not_deleting(&self) -> Result<(), ApiProblem> {
        if *self.closing.borrow() {
            Err(self.deleting_problem())
        } else {
            Ok(())
        }
    }

    /// Returns the problem of a request that ends because the collection is being deleted.
    pub(crate) fn deleting_problem(&self) -> ApiProblem {
        let detail = format!("the collection '{}' is being deleted", self.name);
        ApiProblem::new(ProblemCode::Deleting, detail)
    }

    /// Returns `true` if the collection accepts no more writes because a write failed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns `true` if the collection accepts documents, damaged or not.
    pub(crate) fn takes_documents(&self) -> bool {
        !self.is_stopped() && !self.is_disk_full()
    }

    /// Returns `true` if inserts are refused because the disk is nearly full.
    fn is_disk_full(&self) -> bool {
        matches!(self.collection.disk_full_error(), Ok(Some(_)))
    }

    /// Returns `true` if a damaged file has been found.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Repeats the reads that the disk has refused last, if there are any. Returns `true` if one still fails;
    /// otherwise clears the mark.
    pub(crate) fn still_refuses_reads(&self) -> bool {
        if !self.unreadable.load(Ordering::Relaxed) {
            return false;
        }
        let fails = !matches!(self.collection.retry_refused_reads(), Ok(None));
        if !fails && self.unreadable.swap(false, Ordering::Relaxed) {
            tracing::warn!(collection = self.name, "the disk does not refuse any more");
        }
        fails
    }

    /// Returns the state of the collection for programs. If several apply, the most severe one is returned.
    pub(crate) fn condition_name(&self) -> &'static str {
        if self.is_stopped() {
            "stopped"
        } else if self.is_disk_full() {
            "full"
        } else if self.is_damaged() {
            "damaged"
        } else if self.still_refuses_reads() {
            "unreadable"
        } else {
            "open"
        }
    }

    /// Converts an error of the store into the problem that the client gets. Marks the collection as stopped
    /// after a failed write, as damaged if a file is damaged, and as unreadable while the disk refuses reads.
    pub(crate) fn to_problem(&self, error: Error) -> ApiProblem {
        let problem = ApiProblem::from(error);
        match problem.code {
            ProblemCode::Stopped => self.set_mark(&self.stopped, &problem.detail, "stopped"),
            // Only requests that need the damaged part fail; all others are answered.
            ProblemCode::Damaged => self.set_mark(&self.damaged, &problem.detail, "damaged"),
            // `still_refuses_reads` repeats the refused read and clears the mark.
            ProblemCode::Disk => {
                self.set_mark(&self.unreadable, &problem.detail, "the disk refuses");
            }
            _ => {}
        }
        problem
    }

    /// Returns the identities under which decisions on its texts are made: that of its recipe, and that of the recipe
    /// without forms, because the keys of texts do not depend on them.
    pub(crate) fn recipe_ids(&self) -> Vec<String> {
        let settings = self.collection.collection_settings();
        let without_forms = settings.recipe.clone().without_forms();
        let recipes = [&settings.recipe, &without_forms];
        recipes.map(|recipe| recipe.recipe_id().to_string()).into()
    }

    /// Parses a document as it was sent and prepares it to be checked.
    pub(crate) fn prepare_document(
        &self,
        sent: &[u8],
        scratch: &mut AnalysisScratch,
    ) -> PreparationResult {
        let parsed = documents::read_document(sent, self.fingerprint_bits());
        self.prepare_parsed(parsed, sent, |document| {
            self.collection.prepare_document(document, scratch)
        })
    }

    fn prepare_parsed<Id: Clone + Into<Option<String>>, T>(
        &self,
        parsed: Result<NewDocument<Id>, ApiProblem>,
        sent: &[u8],
        prepare: impl FnOnce(NewDocument<Id>) -> lookalike_store::Result<T>,
    ) -> Result<T, RefusedDocument> {
        let document = parsed.map_err(|problem| RefusedDocument {
            id: documents::readable_id(sent),
            problem,
        })?;
        let id = document.id.clone().into();
        let prepared = self
            .check_length(&document.content)
            .and_then(|()| prepare(document).map_err(|error| self.to_problem(error)));
        prepared.map_err(|problem| RefusedDocument { id, problem })
    }

    fn check_length(&self, content: &DocumentContent) -> Result<(), ApiProblem> {
        let text = match content {
            DocumentContent::Text(text) if self.similarity_measure().counts_edits() => text,
            _ => return Ok(()),
        };
        if text.len() <= MAX_EDIT_DISTANCE_BYTES {
            return Ok(());
        }
        let detail = format!(
            "the text has {} bytes, and a collection that compares by edit distance accepts at \
             most {MAX_EDIT_DISTANCE_BYTES}",
            text.len()
        );
        Err(ApiProblem::new(ProblemCode::TooLarge, detail))
    }

    /// Checks and inserts documents in their order, so that earlier ones count for later ones. Documents
    /// already refused keep their position. `may_go_on` is asked before each turn; once it fails, the documents that are
    /// left are refused with its problem.
    pub(crate) fn admit_while(
        &self,
        prepared: Vec<PreparationResult>,
        may_go_on: &mut dyn FnMut() -> Result<(), ApiProblem>,
    ) -> AdmittedTurns {
        let mut admitted = AdmittedTurns::default();
        let mut waiting = prepared.into_iter();
        loop {
            // A few at a time, because a turn looks at all that it is given.
            let mut rest: Vec<_> = waiting.by_ref().take(MAX_TURN_DOCUMENTS).collect();
            if rest.is_empty() {
                return admitted;
            }
            while !rest.is_empty() {
                if let Err(problem) = may_go_on() {
                    admitted.refused = rest
                        .into_iter()
                        .chain(waiting)
                        .map(|document| refuse_document(document, &problem))
                        .collect();
                    return admitted;
                }
                let (batch, left) = self.admit_prepared_turn(rest, UnlockedWorkPolicy::DoAtOnce);
                admitted.batches.push(batch);
                rest = left;
            }
        }
    }

    /// Checks and inserts documents until a turn ends; also returns those that were not admitted.
    pub(super) fn admit_prepared_turn(
        &self,
        prepared: Vec<PreparationResult>,
        policy: UnlockedWorkPolicy,
    ) -> (AdmittedBatch, Vec<PreparationResult>) {
        let (mut documents, mut refusals) = separate_refusals(prepared);
        let admitted = self.collection.admit_turn_with(&mut documents, policy);
        let mut left = documents.split_off(admitted.count()).into_iter();
        // A refusal belongs to the turn up to the first document that is left.
        let mut passed_documents = 0;
        let is_left = |refusal: &Option<RefusedDocument>| {
            passed_documents += usize::from(refusal.is_none());
            passed_documents > documents.len()
        };
        let end = refusals.iter().position(is_left).unwrap_or(refusals.len());
        let left_refusals = refusals.split_off(end).into_iter();
        let rest = left_refusals.filter_map(|refusal| match refusal {
            Some(refused) => Some(Err(refused)),
            None => left.next().map(Ok),
        });
        let rest = rest.collect();
        // A batch waits for the disk, and each turn makes one.
        documents.shrink_to_fit();
        refusals.shrink_to_fit();
        let batch = AdmittedBatch {
            documents,
            refusals,
            admitted,
        };
        (batch, rest)
    }

    /// Blocks until the documents that were admitted in turns are on disk, and returns the answers to all.
    pub(crate) fn wait_for_turns(&self, admitted: AdmittedTurns) -> Vec<AnswerResult> {
        let batches = admitted.batches.into_iter();
        let mut answers: Vec<_> = batches
            .flat_map(|batch| self.wait_for_answers(batch))
            .collect();
        answers.extend(admitted.refused.into_iter().map(Err));
        answers
    }

    /// Blocks until the admitted documents are on disk, and returns their answers.
    pub(crate) fn wait_for_answers(&self, batch: AdmittedBatch) -> Vec<AnswerResult> {
        let answers = self.collection.wait_until_durable(batch.admitted);
        let mut answers = batch
            .documents
            .iter()
            .zip(answers)
            .map(|(document, answer)| {
                answer.map_err(|error| RefusedDocument {
                    id: Some(document.id().to_owned()),
                    problem: self.to_problem(error),
                })
            });
        let mut next_answer = |refusal: Option<RefusedDocument>| match refusal {
            Some(refused) => Some(Err(refused)),
            None => answers.next(),
        };
        let refusals = batch.refusals.into_iter();
        let answers: Vec<_> = refusals.filter_map(&mut next_answer).collect();
        answers.iter().for_each(|answer| self.count_answer(answer));
        answers
    }

    /// Counts the outcome of an insert.
    pub(crate) fn count_answer(&self, answer: &AnswerResult) {
        let counter = match answer {
            Ok(answer) if answer.seq.is_none() => &self.counts.late,
            Ok(answer) if answer.again => &self.counts.again,
            Ok(answer) => match answer.verdict {
                StoredVerdict::Kept => &self.counts.kept,
                StoredVerdict::Duplicate(_) => &self.counts.duplicate,
            },
            Err(_) => &self.counts.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets a mark, and logs the error that sets it first.
    fn set_mark(&self, mark: &AtomicBool, error: &str, message: &str) {
        if !mark.swap(true, Ordering::Relaxed) {
            tracing::error!(collection = self.name, error, "{message}");
        }
    }

    /// Counts the outcome of a query.
    pub(crate) fn count_query<T>(&self, answer: &Result<T, RefusedDocument>) {
        let counter = match answer {
            Ok(_) => &self.counts.queried,
            Err(_) => &self.counts.refused_query,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks a document without inserting it, as long as it may go on.
    pub(crate) fn query_document(
        &self,
        sent: &[u8],
        scratch: &mut AnalysisScratch,
        may_go_on: &dyn Fn() -> bool,
    ) -> AnswerResult {
        self.query_with(sent, scratch, |document| {
            self.collection.query_document_while(document, may_go_on)
        })
    }

    /// Checks a document without inserting it, and lists up to `limit` kept documents that match, as long as it may go
    /// on.
    pub(crate) fn query_matches(
        &self,
        sent: &[u8],
        limit: usize,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<(InsertAnswer, Vec<DuplicateEvidence>), RefusedDocument> {
        let scratch = &mut AnalysisScratch::default();
        self.query_with(sent, scratch, |document| {
            self.collection.query_matches(document, limit, may_go_on)
        })
    }

    fn query_with<T>(
        &self,
        sent: &[u8],
        scratch: &mut AnalysisScratch,
        query: impl FnOnce(&PendingQuery) -> lookalike_store::Result<T>,
    ) -> Result<T, RefusedDocument> {
        let asked = documents::read_query_document(sent, self.fingerprint_bits());
        let document = self.prepare_parsed(asked, sent, |document| {
            self.collection.prepare_query(document, scratch)
        })?;
        query(&document).map_err(|error| RefusedDocument {
            id: document.id().map(str::to_owned),
            problem: self.to_problem(error),
        })
    }
}
