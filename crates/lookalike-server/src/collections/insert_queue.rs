//! The queue of single-document inserts into a collection.
//!
//! Inserts that arrive one at a time share the cost of a sync. One task, `admit_waiting`, prepares and admits waiting
//! documents as one batch, at most 1,024 documents or about 256 KiB (`MAX_BATCH_DOCUMENTS`, `MAX_BATCH_BYTES`), and goes
//! on with the others and with those that arrived meanwhile; it does not wait for the disk. A
//! second task, `finish_batches`, returns the answers: while it waits for one sync, more documents are admitted, and
//! the next sync writes all of them. A document therefore waits for at most two syncs: the one in progress
//! and its own.
//!
//! ```text
//! request ──> waiting ──admit_waiting──> admitted ──finish_batches──> answer
//!             (queue)                    (queue)
//! ```
//!
//! There are two lanes, each with a queue and tasks of its own: preparing a document of megabytes, or comparing it with
//! such ones, takes up to a second, and short documents do not wait for that. A short document whose check needs a long
//! text changes to the lane of the long ones.
//!
//! Documents that take much work to check are admitted in turns. Between two turns the task takes in
//! those that have arrived, one of each client. The client that a turn was spent on goes behind the others,
//! and its document keeps the work that was done for it. So no document waits for more than a turn of each
//! client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lookalike::text::AnalysisScratch;
use lookalike_store::{PendingInsert, UnlockedWorkPolicy};
use rayon::prelude::*;
use tokio::sync::oneshot;

use super::open_collection::{AdmittedBatch, AnswerResult, OpenCollection, PreparationResult};
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::limits::byte_budget::{ClientId, HeldBytes};
use crate::limits::fair_queue::FairQueue;

/// Size of a document, in bytes, from which it is in the lane of long ones: some milliseconds of preparation.
const LONG_DOCUMENT_BYTES: usize = 64 << 10;

/// Largest number of documents admitted as one batch.
const MAX_BATCH_DOCUMENTS: usize = 1024;

/// Once a batch has this many bytes, no document is added. So others delay a document by the preparation of at most
/// these bytes and one more document.
const MAX_BATCH_BYTES: usize = 256 << 10;

/// Size of a batch, in bytes, from which it is prepared on all threads, if it is in the lane of long documents and has
/// several. A batch of the other lane is prepared by the thread that admits it, whatever its size is.
const PARALLEL_BATCH_BYTES: usize = 64 << 10;

/// A lane: its documents wait for each other, and not for those of the other lane.
#[derive(Clone, Copy, Debug, PartialEq)]
enum InsertLane {
    Short,
    Long,
}

/// The queues of both lanes.
#[derive(Default)]
pub(super) struct InsertQueues {
    short: Mutex<InsertQueue>,
    long: Mutex<InsertQueue>,
}

/// Inserts of a lane that wait to be admitted, and batches that wait for the disk.
#[derive(Default)]
struct InsertQueue {
    waiting: FairQueue<WaitingInsert>,
    /// `true` while a task admits waiting documents.
    is_admitting: bool,
    /// Batches that wait for the disk, with the senders of their answers.
    admitted: Vec<(AdmittedBatch, Vec<AnswerSender>)>,
    /// `true` while a task returns answers.
    is_answering: bool,
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

    fn has_unlocked_work(&self) -> bool {
        match self {
            Self::Prepared(prepared) => {
                let document = prepared.as_ref().as_ref();
                document.is_ok_and(PendingInsert::has_unlocked_work)
            }
            Self::Sent(_) => false,
        }
    }
}

/// Sender of an answer, and the reserved bytes of its document, which stay reserved until it is answered even
/// if the client disconnects.
struct AnswerSender {
    answer: oneshot::Sender<AnswerResult>,
    held_bytes: HeldBytes,
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
        held_bytes: HeldBytes,
    ) -> AnswerResult {
        let lane = if document.len() < LONG_DOCUMENT_BYTES {
            InsertLane::Short
        } else {
            InsertLane::Long
        };
        let (answered, begins) = self.push_sent(lane, client, document, held_bytes);
        if begins {
            self.begin_admitting(lane);
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the service stops before the verdict of the document is known: send it \
                          again under the same id when the service is back";
            Err(ApiProblem::new(ProblemCode::Stopping, detail).into())
        })
    }

    /// Starts the task that admits the waiting documents of a lane.
    fn begin_admitting(self: &Arc<Self>, lane: InsertLane) {
        let open = Arc::clone(self);
        tokio::task::spawn_blocking(move || open.admit_waiting(lane));
    }

    /// Appends a document to the queue. Returns the receiver of its answer, and `true` if the caller must start the task
    /// that admits waiting documents.
    fn push_sent(
        &self,
        lane: InsertLane,
        client: ClientId,
        document: Bytes,
        held_bytes: HeldBytes,
    ) -> (oneshot::Receiver<AnswerResult>, bool) {
        let (sender, answered) = oneshot::channel();
        let answer = AnswerSender {
            answer: sender,
            held_bytes,
        };
        let document = WaitingDocument::Sent(document);
        let begins = self.push_waiting(lane, client, WaitingInsert { document, answer });
        (answered, begins)
    }

    fn push_waiting(&self, lane: InsertLane, client: ClientId, insert: WaitingInsert) -> bool {
        let mut queue = self.lock_queue(lane);
        queue.waiting.push(client, insert);
        !std::mem::replace(&mut queue.is_admitting, true)
    }

    /// Prepares and admits documents of a lane until none is waiting. A panic ends the process (see the crate's
    /// documentation), so `is_admitting` is always reset.
    fn admit_waiting(self: &Arc<Self>, lane: InsertLane) {
        let mut scratch = AnalysisScratch::default();
        loop {
            let waiting: Vec<_> = {
                let mut queue = self.lock_queue(lane);
                if queue.waiting.is_empty() {
                    queue.is_admitting = false;
                    return;
                }
                let weight = |insert: &WaitingInsert| insert.document.bytes_to_prepare();
                queue
                    .waiting
                    .take_batch(MAX_BATCH_DOCUMENTS, MAX_BATCH_BYTES, weight)
            };
            let (prepared, mut senders) = self.prepare_all(lane, waiting, &mut scratch);
            let policy = match lane {
                InsertLane::Short => UnlockedWorkPolicy::LeaveForLater,
                InsertLane::Long => UnlockedWorkPolicy::DoAtOnce,
            };
            let (batch, rest) = self.admit_prepared_turn(prepared, policy);
            // `rest` is a suffix of the documents that were given.
            let senders_of_rest = senders.split_off(senders.len() - rest.len());
            let rest = rest.into_iter().zip(senders_of_rest);
            let rest = rest.map(|(prepared, (client, answer))| {
                let document = WaitingDocument::Prepared(Box::new(prepared));
                (client, WaitingInsert { document, answer })
            });
            let mut rest: Vec<_> = rest.collect();
            let first_client = rest.first().map(|&(client, _)| client);
            if lane == InsertLane::Short {
                self.change_to_long_lane(&mut rest);
            }
            let (mut served, answers): (Vec<_>, Vec<_>) = senders.into_iter().unzip();
            if served.is_empty() {
                // The whole turn went to the first document, which is not finished.
                served.extend(first_client);
            }
            let begins = {
                let mut queue = self.lock_queue(lane);
                queue.waiting.put_back(rest, &served);
                if answers.is_empty() {
                    continue;
                }
                queue.admitted.push((batch, answers));
                !std::mem::replace(&mut queue.is_answering, true)
            };
            if begins {
                let open = Arc::clone(self);
                tokio::task::spawn_blocking(move || open.finish_batches(lane));
            }
        }
    }

    /// Moves documents whose checks go on with long texts to the lane of long ones.
    fn change_to_long_lane(self: &Arc<Self>, inserts: &mut Vec<(ClientId, WaitingInsert)>) {
        let has_work =
            |(_, insert): &mut (ClientId, WaitingInsert)| insert.document.has_unlocked_work();
        for (client, insert) in inserts.extract_if(.., has_work) {
            if self.push_waiting(InsertLane::Long, client, insert) {
                self.begin_admitting(InsertLane::Long);
            }
        }
    }

    /// Returns answers until none is due.
    fn finish_batches(&self, lane: InsertLane) {
        loop {
            let admitted = {
                let mut queue = self.lock_queue(lane);
                if queue.admitted.is_empty() {
                    queue.is_answering = false;
                    return;
                }
                std::mem::take(&mut queue.admitted)
            };
            for (batch, senders) in admitted {
                let answers = self.wait_for_answers(batch);
                for (sender, answer) in senders.into_iter().zip(answers) {
                    // The bytes are released first, so that a client that has its answer can send the next
                    // document.
                    drop(sender.held_bytes);
                    // The client may have disconnected; then nobody needs the answer.
                    let _ = sender.answer.send(answer);
                }
            }
        }
    }

    /// Prepares documents that are not prepared yet; also returns where their answers go. Short ones do not wait for the
    /// threads that prepare long ones.
    fn prepare_all(
        &self,
        lane: InsertLane,
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
        let is_parallel = lane == InsertLane::Long && documents.len() > 1;
        let prepared = if is_parallel && bytes >= PARALLEL_BATCH_BYTES {
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

    fn lock_queue(&self, lane: InsertLane) -> MutexGuard<'_, InsertQueue> {
        let queue = match lane {
            InsertLane::Short => &self.queues.short,
            InsertLane::Long => &self.queues.long,
        };
        // Every change is complete before the lock is released, so a poisoned lock is still consistent.
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::responses::in_background;
    use crate::collections::costly_collection::{CostlyCollection, permuted_text};
    use crate::limits::byte_budget::ByteBudget;

    const FIRST: ClientId = ClientId::Key(1);
    const SECOND: ClientId = ClientId::Key(2);

    /// Queues documents of the first client, and one of the second client in the first turn of the others. Returns the
    /// order in which they are inserted.
    async fn insertion_order(first: &[(&'static str, String)], second: &str) -> Vec<String> {
        let costly = CostlyCollection::new();
        let open = Arc::clone(&costly.open);
        let budget = ByteBudget::new(1 << 20);
        let push = move |open: &OpenCollection, client, id: &str, text: &str| {
            let document = serde_json::json!({ "id": id, "text": text }).to_string();
            let held_bytes = budget.try_take_bytes(client, document.len()).unwrap();
            open.push_sent(InsertLane::Long, client, document.into(), held_bytes)
        };
        let mut waiting = Vec::new();
        for (id, text) in first {
            let (answered, begins) = push(&open, FIRST, id, text);
            assert_eq!(begins, waiting.is_empty());
            waiting.push(((*id).to_owned(), answered));
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        let (collection, second) = (Arc::downgrade(&open), second.to_owned());
        costly.on_turn(move |turn| {
            if turn == 1 {
                let open = collection.upgrade().unwrap();
                let (answered, begins) = push(&open, SECOND, "second", &second);
                assert!(!begins);
                sender.send(answered).unwrap();
            }
        });
        let admitting = Arc::clone(&open);
        in_background(move || admitting.admit_waiting(InsertLane::Long)).await;
        waiting.push(("second".to_owned(), receiver.recv().unwrap()));
        let mut inserted = Vec::new();
        for (id, answered) in waiting {
            let answer = answered.await.unwrap();
            inserted.push((answer.ok().unwrap().seq.unwrap(), id));
        }
        inserted.sort();
        inserted.into_iter().map(|(_, id)| id).collect()
    }

    /// A turn that finishes nothing was spent on its first document, whose client goes behind those that came meanwhile.
    #[tokio::test]
    async fn unfinished_document_goes_behind_another_client() {
        let first = [("long", permuted_text(1))];
        let order = insertion_order(&first, "The boat left at dawn.").await;
        assert_eq!(order, ["second", "long"]);
    }

    /// A client whose document a turn has finished goes behind those that came meanwhile, with its further documents.
    #[tokio::test]
    async fn finished_client_goes_behind_another_client() {
        let texts = ["The mayor opened a bridge.", "Rain is expected on Sunday."];
        let first = [("a", texts[0].to_owned()), ("b", texts[1].to_owned())];
        let order = insertion_order(&first, "The boat left at dawn.").await;
        assert_eq!(order, ["a", "second", "b"]);
    }

    /// A short document whose check needs long texts changes its lane, and short documents behind it are inserted first.
    #[test]
    fn long_comparisons_do_not_hold_up_short_documents() {
        // The lane of short documents has the only thread until it is empty.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let costly = CostlyCollection::new();
            let open = Arc::clone(&costly.open);
            let budget = ByteBudget::new(1 << 20);
            let texts = [permuted_text(1), "The boat left at dawn.".to_owned()];
            let mut waiting = Vec::new();
            for (id, text) in ["costly", "short"].into_iter().zip(&texts) {
                let document = serde_json::json!({ "id": id, "text": text }).to_string();
                let held_bytes = budget.try_take_bytes(FIRST, document.len()).unwrap();
                let (answered, begins) =
                    open.push_sent(InsertLane::Short, FIRST, document.into(), held_bytes);
                assert_eq!(begins, waiting.is_empty());
                waiting.push(answered);
            }
            open.begin_admitting(InsertLane::Short);
            let mut numbers = Vec::new();
            for answered in waiting {
                numbers.push(answered.await.unwrap().ok().unwrap().seq.unwrap());
            }
            assert!(numbers[1] < numbers[0], "{numbers:?}");
        });
    }
}
