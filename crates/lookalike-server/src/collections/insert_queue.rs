//! The queue of single-document inserts into a collection.
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
//! Documents that take much work to check are admitted in turns. Between two turns the task takes in
//! those that have arrived, one of each client. The client that a turn was spent on goes behind the others,
//! and its document keeps the work that was done for it. So no document waits for more than a turn of each
//! client.

use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use lookalike::text::AnalysisScratch;
use rayon::prelude::*;
use tokio::sync::oneshot;

use super::open_collection::{AdmittedBatch, AnswerResult, OpenCollection, PreparationResult};
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::limits::byte_budget::{ClientId, HeldBytes};
use crate::limits::fair_queue::FairQueue;

/// Largest number of documents admitted as one batch.
const MAX_BATCH_DOCUMENTS: usize = 1024;

/// Size of a batch, in bytes, from which it is prepared on all threads.
const PARALLEL_BATCH_BYTES: usize = 64 << 10;

/// Inserts that wait to be admitted, and batches that wait for the disk.
#[derive(Default)]
pub(super) struct InsertQueue {
    waiting: FairQueue<WaitingInsert>,
    /// `true` while a task admits waiting documents.
    admitting: bool,
    taken: Vec<(AdmittedBatch, Vec<AnswerSender>)>,
    /// `true` while a task returns answers.
    answering: bool,
}

struct WaitingInsert {
    document: WaitingDocument,
    answer: AnswerSender,
}

enum WaitingDocument {
    /// As it was sent.
    Sent(Bytes),
    Prepared(Box<PreparationResult>),
}

impl WaitingDocument {
    fn bytes_to_prepare(&self) -> usize {
        match self {
            Self::Sent(document) => document.len(),
            Self::Prepared(_) => 0,
        }
    }
}

/// Sender of an answer, and the reserved bytes of its document, which stay reserved until it is answered even
/// if the client disconnects.
struct AnswerSender {
    answer: oneshot::Sender<AnswerResult>,
    room: HeldBytes,
}

impl OpenCollection {
    /// Queues a document for insertion and waits for its answer.
    ///
    /// # Errors
    /// If the document is refused.
    pub(crate) async fn insert_queued(
        self: &Arc<Self>,
        client: ClientId,
        document: Bytes,
        room: HeldBytes,
    ) -> AnswerResult {
        let (answer, answered) = oneshot::channel();
        let answer = AnswerSender { answer, room };
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
            Err(ApiProblem::new(ProblemCode::Stopping, detail).into())
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
                queue.waiting.take(MAX_BATCH_DOCUMENTS)
            };
            let (prepared, mut senders) = self.prepare_all(waiting, &mut scratch);
            let (taken, rest) = self.admit_turn(prepared);
            let senders_of_rest = senders.split_off(senders.len() - rest.len());
            let rest = rest.into_iter().zip(senders_of_rest);
            let rest = rest.map(|(prepared, (client, answer))| {
                let document = WaitingDocument::Prepared(Box::new(prepared));
                (client, WaitingInsert { document, answer })
            });
            let rest: Vec<_> = rest.collect();
            let (mut served, answers): (Vec<_>, Vec<_>) = senders.into_iter().unzip();
            if served.is_empty() {
                // The whole turn went to the first document, which is not finished.
                served.extend(rest.first().map(|&(client, _)| client));
            }
            let begins = {
                let mut queue = self.lock_queue();
                queue.waiting.put_back(rest, &served);
                if answers.is_empty() {
                    continue;
                }
                queue.taken.push((taken, answers));
                !std::mem::replace(&mut queue.answering, true)
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
                    queue.answering = false;
                    return;
                }
                std::mem::take(&mut queue.taken)
            };
            for (taken, senders) in taken {
                let answers = self.wait_for_answers(taken);
                for (sender, answer) in senders.into_iter().zip(answers) {
                    // The bytes are released first, so that a client that has its answer can send the next
                    // document.
                    drop(sender.room);
                    // The client may have disconnected; then nobody needs the answer.
                    let _ = sender.answer.send(answer);
                }
            }
        }
    }

    /// Prepares documents that are not prepared yet; also returns where their answers go.
    fn prepare_all(
        &self,
        waiting: Vec<(ClientId, WaitingInsert)>,
        scratch: &mut AnalysisScratch,
    ) -> (Vec<PreparationResult>, Vec<(ClientId, AnswerSender)>) {
        let (documents, senders): (Vec<_>, Vec<_>) = waiting
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
        let prepared = if documents.len() > 1 && bytes >= PARALLEL_BATCH_BYTES {
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
        (prepared, senders)
    }

    fn lock_queue(&self) -> MutexGuard<'_, InsertQueue> {
        // Every change is complete before the lock is released, so a poisoned lock is still consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
