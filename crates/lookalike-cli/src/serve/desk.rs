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
//! Documents that take much work to verify are admitted in turns. Between two turns the task takes in those that
//! have arrived, one of each client, so that no document waits for all that another client has sent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lookalike::plan::Measure;
use lookalike::text::Scratch;
use lookalike_store::{Admitted, Answer, Collection, Content, Document, Error, Prepared, Verdict};
use rayon::prelude::*;
use tokio::sync::{oneshot, watch};

use super::byte_budget::{ClientId, HeldBytes};
use super::fair_queue::FairQueue;
use super::problem::{Code, Problem};
use super::wire;

/// Largest number of documents admitted as one batch.
const TOGETHER: usize = 1024;

/// Largest text, in bytes, that is compared by edit distance. That takes time in proportion to the product of
/// both lengths, and all other inserts wait meanwhile.
const IN_SEQUENCE: usize = 64 << 10;

/// Size of a batch, in bytes, from which it is prepared on all threads.
const MANY_BYTES: usize = 64 << 10;

/// An open collection.
pub(super) struct Open {
    pub(super) name: String,
    pub(super) collection: Collection,
    pub(super) counts: Counts,
    desk: Mutex<Desk>,
    closing: watch::Sender<bool>,
    stopped: AtomicBool,
    damaged: AtomicBool,
    /// `true` from a read that the disk refused until it succeeds.
    unreadable: AtomicBool,
}

/// Numbers of documents by outcome, since the service started.
#[derive(Debug, Default)]
pub(super) struct Counts {
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
struct Desk {
    waiting: FairQueue<Waiting>,
    /// `true` while a task admits waiting documents.
    admitting: bool,
    taken: Vec<(Taken, Vec<Receiver>)>,
    /// `true` while a task returns answers.
    settling: bool,
}

struct Waiting {
    document: WaitingDocument,
    answer: Receiver,
}

enum WaitingDocument {
    /// As it was sent.
    Sent(Bytes),
    Prepared(Box<Result<Prepared, Refused>>),
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
struct Receiver {
    answer: oneshot::Sender<Result<Answer, Problem>>,
    room: HeldBytes,
}

/// A document that was not inserted, and its id if it has one.
pub(super) struct Refused {
    pub(super) id: Option<String>,
    pub(super) problem: Problem,
}

/// Admitted documents, whose answers are due once they are on disk.
pub(super) struct Taken {
    documents: Vec<Prepared>,
    /// One entry for each document offered: the refusal, or `None` if it is among `documents`.
    places: Vec<Option<Refused>>,
    admitted: Admitted,
}

/// Separates documents from refusals, which keep their places among them.
fn separate(prepared: Vec<Result<Prepared, Refused>>) -> (Vec<Prepared>, Vec<Option<Refused>>) {
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

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { id: None, problem }
    }
}

impl Open {
    pub(super) fn new(name: &str, collection: Collection) -> Self {
        Self {
            name: name.to_owned(),
            collection,
            counts: Counts::default(),
            desk: Mutex::default(),
            closing: watch::Sender::new(false),
            stopped: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
        }
    }

    /// Returns the number of bits of a fingerprint.
    pub(super) fn bits(&self) -> u32 {
        self.collection.settings().recipe.simhash.bits
    }

    /// Returns `true` if texts are compared as sequences, in time that grows with the product of their lengths.
    pub(super) fn compares_sequences(&self) -> bool {
        let measure = self.collection.settings().matching.measure;
        matches!(
            measure,
            Measure::Levenshtein | Measure::Indel | Measure::Substring
        )
    }

    /// Refuses all further portions, so that everyone who uses the collection finishes.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until the collection is being deleted.
    pub(super) async fn closed(&self) {
        // The sender lives at least as long as this borrow, so the wait cannot fail.
        let _ = self.closing.subscribe().wait_for(|&closing| closing).await;
    }

    /// Checks that the collection accepts requests.
    ///
    /// # Errors
    /// [`Code::Deleting`] if the collection is being deleted.
    pub(super) fn check_open(&self) -> Result<(), Problem> {
        if !*self.closing.borrow() {
            return Ok(());
        }
        let detail = format!("the collection '{}' is being deleted", self.name);
        Err(Problem::new(Code::Deleting, detail))
    }

    /// Returns `true` if the collection accepts no more writes because a write failed.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns `true` if the collection accepts documents, damaged or not.
    pub(super) fn takes_documents(&self) -> bool {
        !self.is_stopped() && !self.is_full()
    }

    /// Returns `true` if inserts are refused because the disk is nearly full.
    fn is_full(&self) -> bool {
        matches!(self.collection.full(), Ok(Some(_)))
    }

    /// Returns `true` if a damaged file has been found.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Returns `true` while reads of its files fail: one that the disk has refused is made again.
    pub(super) fn is_unreadable(&self) -> bool {
        if !self.unreadable.load(Ordering::Relaxed) {
            return false;
        }
        let fails = !matches!(self.collection.failing_read(), Ok(None));
        if !fails && self.unreadable.swap(false, Ordering::Relaxed) {
            tracing::warn!(collection = self.name, "the disk does not refuse any more");
        }
        fails
    }

    /// Returns the state of the collection for programs. If several apply, the most severe one is returned.
    pub(super) fn condition(&self) -> &'static str {
        if self.is_stopped() {
            "stopped"
        } else if self.is_full() {
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
    pub(super) fn problem(&self, error: Error) -> Problem {
        let problem = Problem::from(error);
        match problem.code {
            Code::Stopped => self.stop(&problem.detail),
            Code::Damaged => self.take_note_of_damage(&problem.detail),
            Code::Disk => self.take_note_of_refusal(&problem.detail),
            _ => {}
        }
        problem
    }

    /// Parses a document as it was sent and prepares it to be checked.
    pub(super) fn prepare(&self, sent: &[u8], scratch: &mut Scratch) -> Result<Prepared, Refused> {
        self.prepare_read(wire::document(sent, self.bits()), sent, scratch)
    }

    fn prepare_read(
        &self,
        read: Result<Document, Problem>,
        sent: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Prepared, Refused> {
        let document = read.map_err(|problem| Refused {
            id: wire::id_of(sent),
            problem,
        })?;
        self.check_length(&document)?;
        let id = document.id.clone();
        let prepared = self.collection.prepare(document, scratch);
        prepared.map_err(|error| Refused {
            id: Some(id),
            problem: self.problem(error),
        })
    }

    fn check_length(&self, document: &Document) -> Result<(), Refused> {
        let measure = self.collection.settings().matching.measure;
        let (Measure::Levenshtein | Measure::Indel, Content::Text(text)) =
            (measure, &document.content)
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
        Err(Refused {
            id: Some(document.id.clone()),
            problem: Problem::new(Code::TooLarge, detail),
        })
    }

    /// Checks and inserts documents in their order, so that earlier ones count for later ones. Documents
    /// already refused keep their position.
    pub(super) fn admit(&self, prepared: Vec<Result<Prepared, Refused>>) -> Taken {
        let (documents, places) = separate(prepared);
        Taken {
            admitted: self.collection.admit(&documents),
            documents,
            places,
        }
    }

    /// As [`admit`](Self::admit), until a turn ends; also returns those that were not admitted.
    fn admit_turn(
        &self,
        prepared: Vec<Result<Prepared, Refused>>,
    ) -> (Taken, Vec<Result<Prepared, Refused>>) {
        let (mut documents, mut places) = separate(prepared);
        let admitted = self.collection.admit_turn(&documents);
        let mut left = documents.split_off(admitted.count()).into_iter();
        let mut admitted_places = 0;
        let is_left = |place: &Option<Refused>| {
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
        let taken = Taken {
            documents,
            places,
            admitted,
        };
        (taken, rest)
    }

    /// Returns the answers to admitted documents, once these are on disk.
    pub(super) fn settle(&self, taken: Taken) -> Vec<Result<Answer, Refused>> {
        let answers = self.collection.settle(taken.admitted);
        let mut answers = taken
            .documents
            .iter()
            .zip(answers)
            .map(|(document, answer)| {
                answer.map_err(|error| Refused {
                    id: Some(document.id().to_owned()),
                    problem: self.problem(error),
                })
            });
        let mut place = |refused: Option<Refused>| match refused {
            Some(refused) => Some(Err(refused)),
            None => answers.next(),
        };
        let answers: Vec<_> = taken.places.into_iter().filter_map(&mut place).collect();
        answers.iter().for_each(|answer| self.count(answer));
        answers
    }

    fn count(&self, answer: &Result<Answer, Refused>) {
        let counter = match answer {
            Ok(answer) if answer.seq.is_none() => &self.counts.late,
            Ok(answer) if answer.again => &self.counts.again,
            Ok(answer) => match answer.verdict {
                Verdict::Kept => &self.counts.kept,
                Verdict::Duplicate(_) => &self.counts.duplicate,
            },
            Err(_) => &self.counts.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn stop(&self, why: &str) {
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

    /// Whoever asks how the collection is tries again what the disk has refused.
    fn take_note_of_refusal(&self, why: &str) {
        if !self.unreadable.swap(true, Ordering::Relaxed) {
            tracing::error!(collection = self.name, error = why, "the disk refuses");
        }
    }

    /// Counts the outcome of a query.
    pub(super) fn count_query(&self, answer: &Result<Answer, Refused>) {
        let counter = match answer {
            Ok(_) => &self.counts.queried,
            Err(_) => &self.counts.refused_query,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks a document without inserting it.
    pub(super) fn query(&self, sent: &[u8], scratch: &mut Scratch) -> Result<Answer, Refused> {
        let asked = wire::question(sent, self.bits());
        let answer = self
            .prepare_read(asked, sent, scratch)
            .and_then(|document| self.answer(&document));
        answer.map_err(|Refused { id, mut problem }| {
            problem.detail = wire::without_name(&problem.detail);
            let id = id.filter(|id| wire::named(id).is_some());
            Refused { id, problem }
        })
    }

    fn answer(&self, document: &Prepared) -> Result<Answer, Refused> {
        self.collection.query(document).map_err(|error| Refused {
            id: Some(document.id().to_owned()),
            problem: self.problem(error),
        })
    }

    /// Queues a document for insertion and waits for its answer.
    ///
    /// # Errors
    /// If the document is refused.
    pub(super) async fn take(
        self: &Arc<Self>,
        client: ClientId,
        document: Bytes,
        room: HeldBytes,
    ) -> Result<Answer, Problem> {
        let (answer, answered) = oneshot::channel();
        let answer = Receiver { answer, room };
        let begins = {
            let mut desk = self.desk();
            let document = WaitingDocument::Sent(document);
            desk.waiting.push(client, Waiting { document, answer });
            !std::mem::replace(&mut desk.admitting, true)
        };
        if begins {
            let open = Arc::clone(self);
            tokio::task::spawn_blocking(move || open.admit_waiting());
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the service stops before the verdict of the document is known: send it \
                          again under the same id when the service is back";
            Err(Problem::new(Code::Stopping, detail))
        })
    }

    /// Prepares and admits documents until none is waiting. A panic here ends the process, so `admitting` is
    /// always reset.
    fn admit_waiting(self: &Arc<Self>) {
        let mut scratch = Scratch::default();
        loop {
            let waiting: Vec<_> = {
                let mut desk = self.desk();
                if desk.waiting.is_empty() {
                    desk.admitting = false;
                    return;
                }
                desk.waiting.take(TOGETHER)
            };
            let (prepared, mut receivers) = self.prepare_all(waiting, &mut scratch);
            let (taken, rest) = self.admit_turn(prepared);
            let receivers_of_rest = receivers.split_off(receivers.len() - rest.len());
            let rest = rest.into_iter().zip(receivers_of_rest);
            let rest = rest.map(|(prepared, (client, answer))| {
                let document = WaitingDocument::Prepared(Box::new(prepared));
                (client, Waiting { document, answer })
            });
            let answers = receivers.into_iter().map(|(_, answer)| answer).collect();
            let begins = {
                let mut desk = self.desk();
                desk.waiting.put_back(rest.collect());
                desk.taken.push((taken, answers));
                !std::mem::replace(&mut desk.settling, true)
            };
            if begins {
                let open = Arc::clone(self);
                tokio::task::spawn_blocking(move || open.settle_taken());
            }
        }
    }

    /// Returns answers until none is due.
    fn settle_taken(&self) {
        loop {
            let taken = {
                let mut desk = self.desk();
                if desk.taken.is_empty() {
                    desk.settling = false;
                    return;
                }
                std::mem::take(&mut desk.taken)
            };
            for (taken, receivers) in taken {
                for (receiver, answer) in receivers.into_iter().zip(self.settle(taken)) {
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
        waiting: Vec<(ClientId, Waiting)>,
        scratch: &mut Scratch,
    ) -> (Vec<Result<Prepared, Refused>>, Vec<(ClientId, Receiver)>) {
        let (documents, receivers): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .map(|(client, one)| (one.document, (client, one.answer)))
            .unzip();
        let bytes: usize = documents
            .iter()
            .map(WaitingDocument::bytes_to_prepare)
            .sum();
        let prepare = |scratch: &mut Scratch, document| match document {
            WaitingDocument::Sent(sent) => self.prepare(&sent, scratch),
            WaitingDocument::Prepared(prepared) => *prepared,
        };
        let prepared = if documents.len() > 1 && bytes >= MANY_BYTES {
            let documents = documents.into_par_iter();
            documents.map_init(Scratch::default, prepare).collect()
        } else {
            let documents = documents.into_iter();
            documents
                .map(|document| prepare(scratch, document))
                .collect()
        };
        (prepared, receivers)
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Every change is complete before the lock is released, so a poisoned lock is still consistent.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
