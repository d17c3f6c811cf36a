//! An open collection, and the queue of its single-document inserts.
//!
//! Inserts that arrive one at a time share the cost of a sync. One task takes every waiting document,
//! prepares and admits them as one batch, and goes on with those that arrived meanwhile; it does not wait for
//! the disk. A second task returns the answers: while it waits for one sync, more documents are admitted, and
//! the next sync writes all of them. A document therefore waits for at most two syncs: the one in progress
//! and its own.
//!
//! ```text
//! request ──> waiting ──admit──> taken ──settle──> answer
//!             (queue)            (queue)
//! ```
//!
//! Documents that take much work to verify are admitted in turns. Between two turns the task takes in
//! those that have arrived, one of each client, so that no document waits for all that another client
//! has sent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lookalike::plan::SimilarityMeasure;
use lookalike::text::AnalysisScratch;
use lookalike_store::{
    AdmittedDocuments, Collection, DocumentContent, Error, InsertAnswer, NewDocument,
    PendingInsert, StoredVerdict,
};
use rayon::prelude::*;
use tokio::sync::{oneshot, watch};

use super::byte_budget::{ClientId, HeldBytes};
use super::fair_queue::FairQueue;
use super::json_types;
use super::problem::{ApiProblem, ProblemCode};

/// Largest number of documents admitted as one batch.
const TOGETHER: usize = 1024;

/// Largest text, in bytes, that is compared by edit distance. That takes time in proportion to the product of
/// both lengths, and all other inserts wait meanwhile.
const IN_SEQUENCE: usize = 64 << 10;

/// Size of a batch, in bytes, from which it is prepared on all threads.
const MANY_BYTES: usize = 64 << 10;

/// An open collection.
pub(super) struct OpenCollection {
    pub(super) name: String,
    pub(super) collection: Collection,
    pub(super) counts: DocumentCounts,
    queue: Mutex<InsertQueue>,
    closing: watch::Sender<bool>,
    stopped: AtomicBool,
    damaged: AtomicBool,
    /// `true` from a read that the disk refused until it succeeds.
    unreadable: AtomicBool,
}

/// Numbers of documents by outcome, since the service started.
#[derive(Debug, Default)]
pub(super) struct DocumentCounts {
    pub(super) kept: AtomicU64,
    pub(super) duplicate: AtomicU64,
    /// Older than the window: answered but not stored.
    pub(super) late: AtomicU64,
    /// Sent again: answered as before.
    pub(super) again: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Checked but not inserted.
    pub(super) queried: AtomicU64,
    pub(super) refused_query: AtomicU64,
}

#[derive(Default)]
struct InsertQueue {
    waiting: FairQueue<WaitingInsert>,
    /// `true` while a task admits waiting documents.
    admitting: bool,
    taken: Vec<(AdmittedBatch, Vec<AnswerReceiver>)>,
    /// `true` while a task returns answers.
    settling: bool,
}

struct WaitingInsert {
    document: WaitingDocument,
    answer: AnswerReceiver,
}

/// A document that is ready to be checked, or why it is refused.
type PreparedDocument = Result<PendingInsert, RefusedDocument>;

enum WaitingDocument {
    /// As it was sent.
    Sent(Bytes),
    Prepared(Box<PreparedDocument>),
}

impl WaitingDocument {
    fn bytes_to_prepare(&self) -> usize {
        match self {
            Self::Sent(document) => document.len(),
            Self::Prepared(_) => 0,
        }
    }
}

/// Destination of an answer, and the reserved bytes of its document, which stay reserved until it is answered
/// even if the client disconnects.
struct AnswerReceiver {
    answer: oneshot::Sender<Result<InsertAnswer, ApiProblem>>,
    room: HeldBytes,
}

/// A document that was not inserted, and its id if it has one.
pub(super) struct RefusedDocument {
    pub(super) id: Option<String>,
    pub(super) problem: ApiProblem,
}

/// Admitted documents, whose answers are due once they are on disk.
pub(super) struct AdmittedBatch {
    documents: Vec<PendingInsert>,
    /// One entry for each document offered: the refusal, or `None` if it is among `documents`.
    places: Vec<Option<RefusedDocument>>,
    admitted: AdmittedDocuments,
}

/// Separates documents from refusals, which keep their places among them.
fn separate(
    prepared: Vec<Result<PendingInsert, RefusedDocument>>,
) -> (Vec<PendingInsert>, Vec<Option<RefusedDocument>>) {
    let mut documents = Vec::with_capacity(prepared.len());
    let mut places = Vec::with_capacity(prepared.len());
    for one in prepared {
        match one {
            Ok(document) => {
                documents.push(document);
                places.push(None);
            }
            Err(refused) => places.push(Some(refused)),
        }
    }
    (documents, places)
}

impl From<ApiProblem> for RefusedDocument {
    fn from(problem: ApiProblem) -> Self {
        Self { id: None, problem }
    }
}

impl OpenCollection {
    pub(super) fn new(name: &str, collection: Collection) -> Self {
        Self {
            name: name.to_owned(),
            collection,
            counts: DocumentCounts::default(),
            queue: Mutex::default(),
            closing: watch::Sender::new(false),
            stopped: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
        }
    }

    /// Returns the number of bits of a fingerprint.
    pub(super) fn fingerprint_bits(&self) -> u32 {
        self.collection.collection_settings().recipe.simhash.bits
    }

    /// Returns `true` if texts are compared as sequences, in time that grows with the product of their
    /// lengths.
    pub(super) fn compares_sequences(&self) -> bool {
        let measure = self.collection.collection_settings().matching.measure;
        matches!(
            measure,
            SimilarityMeasure::Levenshtein
                | SimilarityMeasure::Indel
                | SimilarityMeasure::Substring
        )
    }

    /// Ends the bulk requests of the collection, so that it can be deleted.
    pub(super) fn begin_closing(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until the collection is being deleted.
    pub(super) async fn wait_until_closing(&self) {
        // The sender lives at least as long as this borrow, so the wait cannot fail.
        let _ = self.closing.subscribe().wait_for(|&closing| closing).await;
    }

    /// Checks that the collection accepts requests.
    ///
    /// # Errors
    /// [`ProblemCode::Deleting`] if the collection is being deleted.
    pub(super) fn check_open(&self) -> Result<(), ApiProblem> {
        if !*self.closing.borrow() {
            return Ok(());
        }
        let detail = format!("the collection '{}' is being deleted", self.name);
        Err(ApiProblem::new(ProblemCode::Deleting, detail))
    }

    /// Returns `true` if the collection accepts no more writes because a write failed.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns `true` if the collection accepts documents, damaged or not.
    pub(super) fn takes_documents(&self) -> bool {
        !self.is_stopped() && !self.is_disk_full()
    }

    /// Returns `true` if inserts are refused because the disk is nearly full.
    fn is_disk_full(&self) -> bool {
        matches!(self.collection.disk_full_error(), Ok(Some(_)))
    }

    /// Returns `true` if a damaged file has been found.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Repeats a read that the disk has refused. Returns `true` if it still fails.
    pub(super) fn is_unreadable(&self) -> bool {
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
    pub(super) fn condition_name(&self) -> &'static str {
        if self.is_stopped() {
            "stopped"
        } else if self.is_disk_full() {
            "full"
        } else if self.is_damaged() {
            "damaged"
        } else if self.is_unreadable() {
            "unreadable"
        } else {
            "open"
        }
    }

    /// Converts an error of the store into the problem that the client gets. Marks the collection as stopped
    /// after a failed write, as damaged if a file is damaged, and as unreadable while the disk refuses reads.
    pub(super) fn to_problem(&self, error: Error) -> ApiProblem {
        let problem = ApiProblem::from(error);
        match problem.code {
            ProblemCode::Stopped => self.mark_stopped(&problem.detail),
            ProblemCode::Damaged => self.take_note_of_damage(&problem.detail),
            ProblemCode::Disk => self.take_note_of_refusal(&problem.detail),
            _ => {}
        }
        problem
    }

    /// Parses a document as it was sent and prepares it to be checked.
    pub(super) fn prepare_document(
        &self,
        sent: &[u8],
        scratch: &mut AnalysisScratch,
    ) -> Result<PendingInsert, RefusedDocument> {
        self.prepare_read(
            json_types::read_document(sent, self.fingerprint_bits()),
            sent,
            scratch,
        )
    }

    fn prepare_read(
        &self,
        read: Result<NewDocument, ApiProblem>,
        sent: &[u8],
        scratch: &mut AnalysisScratch,
    ) -> Result<PendingInsert, RefusedDocument> {
        let document = read.map_err(|problem| RefusedDocument {
            id: json_types::readable_id(sent),
            problem,
        })?;
        self.check_length(&document)?;
        let id = document.id.clone();
        let prepared = self.collection.prepare_document(document, scratch);
        prepared.map_err(|error| RefusedDocument {
            id: Some(id),
            problem: self.to_problem(error),
        })
    }

    fn check_length(&self, document: &NewDocument) -> Result<(), RefusedDocument> {
        let measure = self.collection.collection_settings().matching.measure;
        let (
            SimilarityMeasure::Levenshtein | SimilarityMeasure::Indel,
            DocumentContent::Text(text),
        ) = (measure, &document.content)
        else {
            return Ok(());
        };
        if text.len() <= IN_SEQUENCE {
            return Ok(());
        }
        let detail = format!(
            "the text has {} bytes, and a collection that compares by edit distance accepts at \
             most {IN_SEQUENCE}",
            text.len()
        );
        Err(RefusedDocument {
            id: Some(document.id.clone()),
            problem: ApiProblem::new(ProblemCode::TooLarge, detail),
        })
    }

    /// Checks and inserts documents in their order, so that earlier ones count for later ones. Documents
    /// already refused keep their position.
    pub(super) fn admit_documents(
        &self,
        prepared: Vec<Result<PendingInsert, RefusedDocument>>,
    ) -> AdmittedBatch {
        let (documents, places) = separate(prepared);
        AdmittedBatch {
            admitted: self.collection.admit_documents(&documents),
            documents,
            places,
        }
    }

    /// As [`admit_documents`](Self::admit_documents), until a turn ends; also returns those that were
    /// not admitted.
    fn admit_turn(
        &self,
        prepared: Vec<Result<PendingInsert, RefusedDocument>>,
    ) -> (AdmittedBatch, Vec<Result<PendingInsert, RefusedDocument>>) {
        let (mut documents, mut places) = separate(prepared);
        let admitted = self.collection.admit_turn(&documents);
        let mut left = documents.split_off(admitted.count()).into_iter();
        let mut admitted_places = 0;
        let is_left = |place: &Option<RefusedDocument>| {
            admitted_places += usize::from(place.is_none());
            admitted_places > documents.len()
        };
        let end = places.iter().position(is_left).unwrap_or(places.len());
        let left_places = places.split_off(end).into_iter();
        let rest = left_places.filter_map(|place| match place {
            Some(refused) => Some(Err(refused)),
            None => left.next().map(Ok),
        });
        let rest = rest.collect();
        let taken = AdmittedBatch {
            documents,
            places,
            admitted,
        };
        (taken, rest)
    }

    /// Returns the answers to admitted documents, once these are on disk.
    pub(super) fn answers_when_durable(
        &self,
        taken: AdmittedBatch,
    ) -> Vec<Result<InsertAnswer, RefusedDocument>> {
        let answers = self.collection.wait_until_durable(taken.admitted);
        let mut answers = taken
            .documents
            .iter()
            .zip(answers)
            .map(|(document, answer)| {
                answer.map_err(|error| RefusedDocument {
                    id: Some(document.id().to_owned()),
                    problem: self.to_problem(error),
                })
            });
        let mut place = |refused: Option<RefusedDocument>| match refused {
            Some(refused) => Some(Err(refused)),
            None => answers.next(),
        };
        let answers: Vec<_> = taken.places.into_iter().filter_map(&mut place).collect();
        answers.iter().for_each(|answer| self.count_answer(answer));
        answers
    }

    fn count_answer(&self, answer: &Result<InsertAnswer, RefusedDocument>) {
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

    fn mark_stopped(&self, why: &str) {
        if !self.stopped.swap(true, Ordering::Relaxed) {
            tracing::error!(collection = self.name, error = why, "stopped");
        }
    }

    /// Marks the collection as damaged. Only requests that need the damaged part fail; all others are
    /// answered.
    fn take_note_of_damage(&self, what: &str) {
        if !self.damaged.swap(true, Ordering::Relaxed) {
            tracing::error!(collection = self.name, error = what, "damaged");
        }
    }

    /// Marks the collection as unreadable. `is_unreadable` repeats the refused read and clears the mark.
    fn take_note_of_refusal(&self, why: &str) {
        if !self.unreadable.swap(true, Ordering::Relaxed) {
            tracing::error!(collection = self.name, error = why, "the disk refuses");
        }
    }

    /// Counts the outcome of a query.
    pub(super) fn count_query(&self, answer: &Result<InsertAnswer, RefusedDocument>) {
        let counter = match answer {
            Ok(_) => &self.counts.queried,
            Err(_) => &self.counts.refused_query,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks a document without inserting it.
    pub(super) fn query_document(
        &self,
        sent: &[u8],
        scratch: &mut AnalysisScratch,
    ) -> Result<InsertAnswer, RefusedDocument> {
        let asked = json_types::read_query_document(sent, self.fingerprint_bits());
        let answer = self
            .prepare_read(asked, sent, scratch)
            .and_then(|document| self.answer_query(&document));
        answer.map_err(|RefusedDocument { id, mut problem }| {
            problem.detail = json_types::without_name(&problem.detail);
            let id = id.filter(|id| json_types::stated_id(id).is_some());
            RefusedDocument { id, problem }
        })
    }

    fn answer_query(&self, document: &PendingInsert) -> Result<InsertAnswer, RefusedDocument> {
        self.collection
            .query_document(document)
            .map_err(|error| RefusedDocument {
                id: Some(document.id().to_owned()),
                problem: self.to_problem(error),
            })
    }

    /// Queues a document for insertion and waits for its answer.
    ///
    /// # Errors
    /// If the document is refused.
    pub(super) async fn insert_queued(
        self: &Arc<Self>,
        client: ClientId,
        document: Bytes,
        room: HeldBytes,
    ) -> Result<InsertAnswer, ApiProblem> {
        let (answer, answered) = oneshot::channel();
        let answer = AnswerReceiver { answer, room };
        let begins = {
            let mut queue = self.lock_queue();
            let document = WaitingDocument::Sent(document);
            queue
                .waiting
                .push(client, WaitingInsert { document, answer });
            !std::mem::replace(&mut queue.admitting, true)
        };
        if begins {
            let open = Arc::clone(self);
            tokio::task::spawn_blocking(move || open.admit_waiting());
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the service stops before the verdict of the document is known: send it \
                          again under the same id when the service is back";
            Err(ApiProblem::new(ProblemCode::Stopping, detail))
        })
    }

    /// Prepares and admits documents until none is waiting. A panic here ends the process, so `admitting` is
    /// always reset.
    fn admit_waiting(self: &Arc<Self>) {
        let mut scratch = AnalysisScratch::default();
        loop {
            let waiting: Vec<_> = {
                let mut queue = self.lock_queue();
                if queue.waiting.is_empty() {
                    queue.admitting = false;
                    return;
                }
                queue.waiting.take(TOGETHER)
            };
            let (prepared, mut receivers) = self.prepare_all(waiting, &mut scratch);
            let (taken, rest) = self.admit_turn(prepared);
            let receivers_of_rest = receivers.split_off(receivers.len() - rest.len());
            let rest = rest.into_iter().zip(receivers_of_rest);
            let rest = rest.map(|(prepared, (client, answer))| {
                let document = WaitingDocument::Prepared(Box::new(prepared));
                (client, WaitingInsert { document, answer })
            });
            let answers = receivers.into_iter().map(|(_, answer)| answer).collect();
            let begins = {
                let mut queue = self.lock_queue();
                queue.waiting.put_back(rest.collect());
                queue.taken.push((taken, answers));
                !std::mem::replace(&mut queue.settling, true)
            };
            if begins {
                let open = Arc::clone(self);
                tokio::task::spawn_blocking(move || open.finish_batches());
            }
        }
    }

    /// Returns answers until none is due.
    fn finish_batches(&self) {
        loop {
            let taken = {
                let mut queue = self.lock_queue();
                if queue.taken.is_empty() {
                    queue.settling = false;
                    return;
                }
                std::mem::take(&mut queue.taken)
            };
            for (taken, receivers) in taken {
                for (receiver, answer) in
                    receivers.into_iter().zip(self.answers_when_durable(taken))
                {
                    // The bytes are released first, so that a client that has its answer can send the next
                    // document.
                    drop(receiver.room);
                    // The client may have disconnected; then nobody needs the answer.
                    let _ = receiver
                        .answer
                        .send(answer.map_err(|refused| refused.problem));
                }
            }
        }
    }

    /// Prepares documents that are not prepared yet; also returns where their answers go.
    fn prepare_all(
        &self,
        waiting: Vec<(ClientId, WaitingInsert)>,
        scratch: &mut AnalysisScratch,
    ) -> (Vec<PreparedDocument>, Vec<(ClientId, AnswerReceiver)>) {
        let (documents, receivers): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .map(|(client, one)| (one.document, (client, one.answer)))
            .unzip();
        let bytes: usize = documents
            .iter()
            .map(WaitingDocument::bytes_to_prepare)
            .sum();
        let prepare = |scratch: &mut AnalysisScratch, document| match document {
            WaitingDocument::Sent(sent) => self.prepare_document(&sent, scratch),
            WaitingDocument::Prepared(prepared) => *prepared,
        };
        let prepared = if documents.len() > 1 && bytes >= MANY_BYTES {
            let documents = documents.into_par_iter();
            documents
                .map_init(AnalysisScratch::default, prepare)
                .collect()
        } else {
            let documents = documents.into_iter();
            documents
                .map(|document| prepare(scratch, document))
                .collect()
        };
        (prepared, receivers)
    }

    fn lock_queue(&self) -> MutexGuard<'_, InsertQueue> {
        // Every change is complete before the lock is released, so a poisoned lock is still consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
