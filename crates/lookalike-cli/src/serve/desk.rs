//! An open collection, and the desk at which single documents wait for one another.
//!
//! One clerk prepares and admits all that wait, and again what has come by then, without waiting for the
//! disk. Another hands out the answers: while it waits for a sync, more is admitted, and all of it is
//! written by the next, so the cost of a sync is shared by all connections and nobody waits for more than
//! the one that goes on and its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lookalike::plan::Measure;
use lookalike::text::Scratch;
use lookalike_store::{Admitted, Answer, Collection, Content, Document, Error, Prepared, Verdict};
use rayon::prelude::*;
use tokio::sync::{oneshot, watch};

use super::byte_budget::HeldBytes;
use super::problem::{Code, Problem};
use super::wire;

/// The most documents that are admitted together.
const TOGETHER: usize = 1024;

/// The most bytes of a text that is compared in time that grows with the product of the lengths, while all
/// others wait for it.
const IN_SEQUENCE: usize = 64 << 10;

/// From so many bytes on, these are prepared by all threads.
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

/// What has become of documents since the service began.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) kept: AtomicU64,
    pub(super) duplicate: AtomicU64,
    /// Older than the window: answered and not stored.
    pub(super) late: AtomicU64,
    /// Sent again: what was answered before.
    pub(super) again: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Asked about and not inserted.
    pub(super) queried: AtomicU64,
    pub(super) refused_query: AtomicU64,
}

#[derive(Default)]
struct Desk {
    waiting: Vec<Waiting>,
    /// Whether somebody admits them.
    admitting: bool,
    taken: Vec<(Taken, Vec<Receiver>)>,
    /// Whether somebody hands out their answers.
    settling: bool,
}

struct Waiting {
    document: Bytes,
    answer: Receiver,
}

/// Where an answer goes, and the room of its document among what waits: even if the client has gone away.
struct Receiver {
    answer: oneshot::Sender<Result<Answer, Problem>>,
    room: HeldBytes,
}

/// A document that was not taken, and its id if it has one.
pub(super) struct Refused {
    pub(super) id: Option<String>,
    pub(super) problem: Problem,
}

/// Documents whose answers are given when they are on disk.
pub(super) struct Taken {
    documents: Vec<Prepared>,
    /// A place for each that was offered; nothing where it is among the documents.
    places: Vec<Option<Refused>>,
    admitted: Admitted,
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

    /// Bits of a fingerprint.
    pub(super) fn bits(&self) -> u32 {
        self.collection.settings().recipe.simhash.bits
    }

    /// From now on portions are refused, so that whoever uses the collection comes to an end.
    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until it is being deleted.
    pub(super) async fn closed(&self) {
        // The sender is here as long as anybody waits.
        let _ = self.closing.subscribe().wait_for(|&closing| closing).await;
    }

    /// # Errors
    /// If it is being deleted.
    pub(super) fn check_open(&self) -> Result<(), Problem> {
        if !*self.closing.borrow() {
            return Ok(());
        }
        let detail = format!("the collection '{}' is being deleted", self.name);
        Err(Problem::new(Code::Deleting, detail))
    }

    /// Whether it takes nothing any more, after a write that failed.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether it takes documents, however it is otherwise.
    pub(super) fn takes_documents(&self) -> bool {
        !self.is_stopped() && !self.is_full()
    }

    /// Whether it takes nothing while the disk is nearly full.
    fn is_full(&self) -> bool {
        matches!(self.collection.full(), Ok(Some(_)))
    }

    /// Whether a file was found to be not what was written.
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

    /// How it is, for a program: what weighs most.
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

    /// What a client is told of an error; after a write that failed, the collection is known as stopped,
    /// after damage was found, as damaged, and while the disk refuses reads, as unreadable.
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

    /// Reads a document as it was sent and makes it ready to be checked.
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
            "the text has {} bytes: a collection that compares by edit distance takes at most \
             {IN_SEQUENCE}",
            text.len()
        );
        Err(Refused {
            id: Some(document.id.clone()),
            problem: Problem::new(Code::TooLarge, detail),
        })
    }

    /// Checks documents in their order, so that they count for those that come next; those that were
    /// refused keep their places.
    pub(super) fn admit(&self, prepared: Vec<Result<Prepared, Refused>>) -> Taken {
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
        Taken {
            admitted: self.collection.admit(&documents),
            documents,
            places,
        }
    }

    /// The answers to documents that were admitted, once these are on disk.
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

    /// What needs the damaged part is refused from now on, and all else is answered.
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

    /// Takes note of what became of a document that was asked about.
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

    /// Brings a document to the desk and waits for its answer.
    ///
    /// # Errors
    /// If it is refused.
    pub(super) async fn take(
        self: &Arc<Self>,
        document: Bytes,
        room: HeldBytes,
    ) -> Result<Answer, Problem> {
        let (answer, answered) = oneshot::channel();
        let answer = Receiver { answer, room };
        let begins = {
            let mut desk = self.desk();
            desk.waiting.push(Waiting { document, answer });
            !std::mem::replace(&mut desk.admitting, true)
        };
        if begins {
            let open = Arc::clone(self);
            tokio::task::spawn_blocking(move || open.admit_waiting());
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the service ends before it can tell what became of the document: send it \
                          again under the same id when it is back";
            Err(Problem::new(Code::Stopping, detail))
        })
    }

    /// Prepares and admits until nobody waits. A panic here ends the process, so a turn always ends.
    fn admit_waiting(self: &Arc<Self>) {
        let mut scratch = Scratch::default();
        loop {
            let waiting: Vec<_> = {
                let mut desk = self.desk();
                if desk.waiting.is_empty() {
                    desk.admitting = false;
                    return;
                }
                let count = desk.waiting.len().min(TOGETHER);
                desk.waiting.drain(..count).collect()
            };
            let taken = self.admit(self.prepare_all(&waiting, &mut scratch));
            let answers = waiting.into_iter().map(|one| one.answer).collect();
            let begins = {
                let mut desk = self.desk();
                desk.taken.push((taken, answers));
                !std::mem::replace(&mut desk.settling, true)
            };
            if begins {
                let open = Arc::clone(self);
                tokio::task::spawn_blocking(move || open.settle_taken());
            }
        }
    }

    /// Hands out answers until none is owed.
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
                    // Whoever has the answer finds the room given back.
                    drop(receiver.room);
                    // Whoever has gone away needs no answer.
                    let _ = receiver
                        .answer
                        .send(answer.map_err(|refused| refused.problem));
                }
            }
        }
    }

    fn prepare_all(
        &self,
        waiting: &[Waiting],
        scratch: &mut Scratch,
    ) -> Vec<Result<Prepared, Refused>> {
        let bytes: usize = waiting.iter().map(|one| one.document.len()).sum();
        if waiting.len() > 1 && bytes >= MANY_BYTES {
            return waiting
                .par_iter()
                .map_init(Scratch::default, |scratch, one| {
                    self.prepare(&one.document, scratch)
                })
                .collect();
        }
        let prepared = waiting
            .iter()
            .map(|one| self.prepare(&one.document, scratch));
        prepared.collect()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Every change of it is complete.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
