//! The queue of entries that wait for their record.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use lookalike_log::LogEntry;
use lookalike_store::{InsertAnswer, PendingInsert};

use super::LineAnswer;
use crate::api::problem::ApiProblem;
use crate::collections::open_collection::{AnswerResult, OpenCollection, RefusedDocument};
use crate::limits::byte_budget::HeldBytes;
use crate::recipes::UploadOutcome;

/// Most bytes of the entries of a record, unless it has a single one.
const MAX_RECORD_BYTES: usize = 4 << 20;

/// Bytes and number of entries from which a record is written at once, because it costs no more for each document than
/// a paced one does at hundreds of documents a second.
const FULL_RECORD_BYTES: usize = 512 << 10;
const FULL_RECORD_ENTRIES: usize = 512;

/// Bytes of waiting entries from which no more are taken.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Bytes of an entry beside its body, about.
const ENTRY_HEAD_BYTES: usize = 16;

/// Result of an entry that was applied.
#[derive(Debug)]
pub(crate) enum EntryAnswer {
    /// The answer to a document.
    Inserted(InsertAnswer),
    /// `true` if the document existed.
    Deleted(bool),
    /// `true` if the collection was created; `false` if it existed with the same settings.
    Created(bool),
    /// A recipe was uploaded.
    Uploaded(UploadOutcome),
    /// Something else was changed.
    Changed,
}

/// Outcome of an entry, and the number of its record.
pub(crate) struct EntryOutcome {
    pub(crate) record: u64,
    pub(crate) result: Result<EntryAnswer, RefusedDocument>,
}

impl EntryOutcome {
    /// Returns the result of a change that is no insert.
    ///
    /// # Errors
    /// The problem with which it was refused.
    pub(crate) fn into_change(self) -> Result<(EntryAnswer, u64), ApiProblem> {
        let answer = self.result.map_err(|refused| refused.problem)?;
        Ok((answer, self.record))
    }

    /// Returns the answer to the document of an insert, with its record if it was inserted.
    pub(crate) fn into_line_answer(self) -> LineAnswer {
        let record = self.result.is_ok().then_some(self.record);
        LineAnswer {
            answer: self.into_insert_answer(),
            record,
        }
    }

    /// Returns the answer to the document of an insert.
    pub(crate) fn into_insert_answer(self) -> AnswerResult {
        match self.result? {
            EntryAnswer::Inserted(answer) => Ok(answer),
            _ => unreachable!("an insert has the answer of an insert"),
        }
    }
}

/// Receiver of an outcome. It must not block.
pub(crate) type EntryReply = Box<dyn FnOnce(EntryOutcome) + Send>;

/// A document that this replica has prepared, so that it is not prepared again when its record is applied.
pub(crate) struct PreparedInsert {
    pub(super) document: Box<PendingInsert>,
    /// Collection whose settings it was prepared for. It may be deleted, and another one be created under its name,
    /// before the record is applied.
    pub(super) open: Weak<OpenCollection>,
}

impl PreparedInsert {
    pub(crate) fn new(open: &Arc<OpenCollection>, document: PendingInsert) -> Self {
        Self {
            document: Box::new(document),
            open: Arc::downgrade(open),
        }
    }
}

/// The parts of a proposed entry that stay with this replica.
pub(crate) struct OwnEntry {
    pub(super) prepared: Option<PreparedInsert>,
    /// Budget of the document, occupied until it is answered.
    pub(super) held_bytes: Option<HeldBytes>,
    pub(super) reply: EntryReply,
}

/// An entry that waits for its record.
pub(crate) struct ProposedEntry {
    pub(crate) entry: LogEntry,
    pub(crate) prepared: Option<PreparedInsert>,
    pub(crate) held_bytes: Option<HeldBytes>,
    pub(crate) reply: EntryReply,
}

impl ProposedEntry {
    fn byte_count(&self) -> usize {
        ENTRY_HEAD_BYTES + self.entry.subject.len() + self.entry.body.len()
    }

    fn into_parts(self) -> (LogEntry, OwnEntry) {
        let own = OwnEntry {
            prepared: self.prepared,
            held_bytes: self.held_bytes,
            reply: self.reply,
        };
        (self.entry, own)
    }
}

/// Entries in the order in which they came, up to a number of bytes and one proposal more.
#[derive(Default)]
pub(crate) struct ProposalQueue {
    waiting: Mutex<WaitingEntries>,
    arrived: Condvar,
}

#[derive(Default)]
struct WaitingEntries {
    entries: VecDeque<ProposedEntry>,
    bytes: usize,
    is_closed: bool,
    /// Looks at the end of the log that were asked for, and the last of them that the log thread has seen.
    asked_looks: u64,
    taken_looks: u64,
}

impl WaitingEntries {
    fn is_full(&self) -> bool {
        self.bytes >= FULL_RECORD_BYTES || self.entries.len() >= FULL_RECORD_ENTRIES
    }
}

/// Returns `true` for the entries of a record that did not wait for the rate.
pub(super) fn is_full_record(entries: &[LogEntry]) -> bool {
    let bytes = entries
        .iter()
        .map(|entry| entry.subject.len() + entry.body.len());
    entries.len() >= FULL_RECORD_ENTRIES || bytes.sum::<usize>() >= FULL_RECORD_BYTES
}

/// State of the queue at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueState {
    Empty,
    /// Entries wait that do not fill a record.
    Waiting,
    /// Entries wait that fill a record.
    Full,
    /// The replica stops.
    Closed,
}

impl ProposalQueue {
    /// Appends entries. They are dropped if the queue is closed.
    ///
    /// # Errors
    /// Returns the entries if so many bytes wait that the log must be behind: clients that give up and send again would
    /// fill the memory.
    pub(crate) fn push_entries(
        &self,
        proposed: Vec<ProposedEntry>,
    ) -> Result<(), Vec<ProposedEntry>> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Ok(());
        }
        if waiting.bytes >= MAX_WAITING_BYTES {
            return Err(proposed);
        }
        let was_empty = waiting.entries.is_empty();
        let bytes = proposed.iter().map(ProposedEntry::byte_count);
        waiting.bytes += bytes.sum::<usize>();
        waiting.entries.extend(proposed);
        // The log thread is woken by the first entry and by those that may fill a record.
        if was_empty || waiting.is_full() {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Puts entries back to the front, in their order.
    pub(super) fn put_back(&self, entries: Vec<LogEntry>, own: Vec<OwnEntry>) {
        let mut waiting = self.lock();
        for (entry, own) in entries.into_iter().zip(own).rev() {
            let proposed = ProposedEntry {
                entry,
                prepared: own.prepared,
                held_bytes: own.held_bytes,
                reply: own.reply,
            };
            waiting.bytes += proposed.byte_count();
            waiting.entries.push_front(proposed);
        }
    }

    /// Takes the first entries, up to a full record, and at least one if there is any.
    pub(super) fn take_record(&self) -> (Vec<LogEntry>, Vec<OwnEntry>) {
        let mut waiting = self.lock();
        let (mut entries, mut own, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(first) = waiting.entries.front() {
            let first_bytes = first.byte_count();
            if !entries.is_empty() && bytes + first_bytes > MAX_RECORD_BYTES {
                break;
            }
            bytes += first_bytes;
            if let Some(first) = waiting.entries.pop_front() {
                let (entry, own_entry) = first.into_parts();
                entries.push(entry);
                own.push(own_entry);
            }
        }
        waiting.bytes -= bytes;
        (entries, own)
    }

    /// Asks for a look at the end of the log; returns its number.
    pub(super) fn ask_for_look(&self) -> u64 {
        let mut waiting = self.lock();
        waiting.asked_looks += 1;
        self.arrived.notify_one();
        waiting.asked_looks
    }

    pub(super) fn is_look_asked(&self) -> bool {
        let waiting = self.lock();
        waiting.taken_looks < waiting.asked_looks
    }

    /// Returns the number of the last look that was asked for; a look that begins now answers it.
    pub(super) fn take_look(&self) -> u64 {
        let mut waiting = self.lock();
        waiting.taken_looks = waiting.asked_looks;
        waiting.asked_looks
    }

    pub(super) fn queue_state(&self) -> QueueState {
        let waiting = self.lock();
        if waiting.is_closed {
            QueueState::Closed
        } else if waiting.entries.is_empty() {
            QueueState::Empty
        } else if waiting.is_full() {
            QueueState::Full
        } else {
            QueueState::Waiting
        }
    }

    /// Waits until the state of the queue is no longer `known`, or until a time.
    pub(super) fn wait_for_change(&self, known: QueueState, until: Instant) {
        let mut waiting = self.lock();
        loop {
            let has_changed = match known {
                QueueState::Empty => !waiting.entries.is_empty(),
                QueueState::Waiting => waiting.is_full(),
                QueueState::Full | QueueState::Closed => true,
            };
            let now = Instant::now();
            let is_look_asked = waiting.taken_looks < waiting.asked_looks;
            if has_changed || is_look_asked || waiting.is_closed || now >= until {
                return;
            }
            let waited = self.arrived.wait_timeout(waiting, until - now);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Drops all entries, and those that come later.
    pub(super) fn close_queue(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let dropped = std::mem::take(&mut waiting.entries);
        waiting.bytes = 0;
        drop(waiting);
        drop(dropped);
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, WaitingEntries> {
        // Every change is complete before the lock is released.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
