//! The queue of entries that wait for their record.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use lookalike_log::LogEntry;
use lookalike_store::{DecisionOutcome, InsertAnswer, PendingInsert};

use super::LineAnswer;
use crate::api::problem::ApiProblem;
use crate::collections::open_collection::{AnswerResult, OpenCollection, RefusedDocument};
use crate::recipes::UploadOutcome;

/// Most bytes of the entries that are proposed as a record, unless it has a single one.
const MAX_PROPOSED_BYTES: usize = 4 << 20;

/// Part of a record that lone changes fill before documents of bulk requests, so that neither waits for all of the other.
const LONE_BYTES_OF_RECORD: usize = MAX_PROPOSED_BYTES / 2;

/// Bytes and number of entries from which a record is written at once, because it costs no more for each document than
/// a paced one does at hundreds of documents a second.
const FULL_RECORD_BYTES: usize = 512 << 10;
const FULL_RECORD_ENTRIES: usize = 512;

/// Bytes of waiting entries from which no more are taken: of lone changes, which are refused then, and of bulk requests,
/// which wait for room.
const MAX_LONE_BYTES: usize = 64 << 20;
const MAX_BULK_BYTES: usize = 32 << 20;

/// Bytes of an entry beside its body, about.
const ENTRY_HEAD_BYTES: usize = 16;

/// Result of an entry that was applied.
#[derive(Debug)]
pub(crate) enum EntryAnswer {
    /// The answer to a document.
    Inserted(InsertAnswer),
    /// `true` if the document existed.
    Deleted(bool),
    /// The effect of a decision.
    Decided(Box<DecisionOutcome>),
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

/// Kept by whoever waits for the outcome of an entry. Once it is dropped, the entry is not proposed any more: its client
/// may have sent the same to another replica, and changed it there since.
#[derive(Debug, Default)]
pub(crate) struct WaitingClient(Arc<()>);

/// Tells whether a client still waits.
#[derive(Debug)]
struct ClientWatch(Weak<()>);

/// The parts of a proposed entry that stay with this replica.
pub(crate) struct OwnEntry {
    pub(super) prepared: Option<PreparedInsert>,
    /// The client that waits for the outcome; `None` if the replica proposes the entry by itself.
    client: Option<ClientWatch>,
    /// `true` for a document of a bulk request.
    is_bulk: bool,
    pub(super) reply: EntryReply,
}

impl OwnEntry {
    pub(super) fn new(reply: EntryReply) -> Self {
        Self {
            prepared: None,
            client: None,
            is_bulk: false,
            reply,
        }
    }

    fn is_abandoned(&self) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|client| client.0.strong_count() == 0)
    }
}

/// An entry that waits for its record.
pub(crate) struct ProposedEntry {
    pub(crate) entry: LogEntry,
    pub(super) own: OwnEntry,
}

impl ProposedEntry {
    pub(crate) fn new(entry: LogEntry, reply: EntryReply) -> Self {
        Self {
            entry,
            own: OwnEntry::new(reply),
        }
    }

    /// Proposes the entry as long as this client waits for its outcome.
    pub(crate) fn of_client(mut self, client: &WaitingClient) -> Self {
        self.own.client = Some(ClientWatch(Arc::downgrade(&client.0)));
        self
    }

    /// Adds the document of an insert, as this replica has prepared it.
    pub(crate) fn with_document(mut self, prepared: PreparedInsert) -> Self {
        self.own.prepared = Some(prepared);
        self
    }

    fn byte_count(&self) -> usize {
        ENTRY_HEAD_BYTES + self.entry.subject.len() + self.entry.body.len()
    }
}

/// Entries that wait, in two lanes: lone changes, and documents of bulk requests. Each has them in the order in which they
/// came, up to a number of bytes and one proposal more.
#[derive(Default)]
pub(crate) struct ProposalQueue {
    waiting: Mutex<WaitingEntries>,
    arrived: Condvar,
    has_room: Condvar,
}

#[derive(Default)]
struct Lane {
    entries: VecDeque<ProposedEntry>,
    bytes: usize,
}

impl Lane {
    fn push_all(&mut self, proposed: Vec<ProposedEntry>) {
        let bytes = proposed.iter().map(ProposedEntry::byte_count);
        self.bytes += bytes.sum::<usize>();
        self.entries.extend(proposed);
    }

    /// Moves the first entries to a record, as long as they have room in it, and those that no client waits for to `abandoned`.
    fn move_to_record(&mut self, record: &mut TakenRecord, most_bytes: usize) {
        while let Some(first) = self.entries.front() {
            let bytes = first.byte_count();
            let is_abandoned = first.own.is_abandoned();
            if !is_abandoned && !record.entries.is_empty() && record.bytes + bytes > most_bytes {
                return;
            }
            self.bytes -= bytes;
            let Some(ProposedEntry { entry, own }) = self.entries.pop_front() else {
                return;
            };
            if is_abandoned {
                record.abandoned.push(own);
            } else {
                record.bytes += bytes;
                record.entries.push(entry);
                record.own.push(own);
            }
        }
    }
}

/// Entries that were taken from the queue.
#[derive(Default)]
struct TakenRecord {
    entries: Vec<LogEntry>,
    own: Vec<OwnEntry>,
    bytes: usize,
    /// Parts of entries that are not proposed.
    abandoned: Vec<OwnEntry>,
}

#[derive(Default)]
struct WaitingEntries {
    lone: Lane,
    bulk: Lane,
    is_closed: bool,
    /// Looks at the end of the log that were asked for, and the last of them that the log thread has seen.
    asked_looks: u64,
    taken_looks: u64,
}

impl WaitingEntries {
    fn entry_count(&self) -> usize {
        self.lone.entries.len() + self.bulk.entries.len()
    }

    fn is_full(&self) -> bool {
        self.lone.bytes + self.bulk.bytes >= FULL_RECORD_BYTES
            || self.entry_count() >= FULL_RECORD_ENTRIES
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
    /// Appends lone changes. They are dropped if the queue is closed.
    ///
    /// # Errors
    /// Returns the entries if so many bytes wait that the log must be behind: clients that give up and send again would
    /// fill the memory.
    pub(crate) fn push_entries(
        &self,
        proposed: Vec<ProposedEntry>,
    ) -> Result<(), Vec<ProposedEntry>> {
        let mut waiting = self.lock();
        if waiting.lone.bytes >= MAX_LONE_BYTES {
            return Err(proposed);
        }
        self.append(&mut waiting, proposed, |waiting| &mut waiting.lone);
        Ok(())
    }

    /// Returns `true` if lone changes are taken now.
    pub(super) fn has_room(&self) -> bool {
        self.lock().lone.bytes < MAX_LONE_BYTES
    }

    /// Returns `true` if documents of bulk requests are taken now.
    pub(super) fn has_bulk_room(&self) -> bool {
        let waiting = self.lock();
        waiting.bulk.bytes < MAX_BULK_BYTES || waiting.is_closed
    }

    /// Appends documents of a bulk request. Blocks while there is no room for them, so that one client that sends many
    /// slows down itself.
    ///
    /// # Errors
    /// Returns the entries if there is no room within `patience`.
    pub(crate) fn push_bulk(
        &self,
        mut proposed: Vec<ProposedEntry>,
        patience: Duration,
    ) -> Result<(), Vec<ProposedEntry>> {
        for proposed in &mut proposed {
            proposed.own.is_bulk = true;
        }
        let is_crowded = |waiting: &mut WaitingEntries| {
            waiting.bulk.bytes >= MAX_BULK_BYTES && !waiting.is_closed
        };
        let waited = self
            .has_room
            .wait_timeout_while(self.lock(), patience, is_crowded);
        let (mut waiting, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        if outcome.timed_out() {
            return Err(proposed);
        }
        self.append(&mut waiting, proposed, |waiting| &mut waiting.bulk);
        Ok(())
    }

    fn append(
        &self,
        waiting: &mut WaitingEntries,
        proposed: Vec<ProposedEntry>,
        lane: impl Fn(&mut WaitingEntries) -> &mut Lane,
    ) {
        if waiting.is_closed {
            return;
        }
        let was_empty = waiting.entry_count() == 0;
        lane(waiting).push_all(proposed);
        // The log thread is woken by the first entry and by those that may fill a record.
        if was_empty || waiting.is_full() {
            self.arrived.notify_one();
        }
    }

    /// Puts entries back to the front, in their order.
    pub(super) fn put_back(&self, entries: Vec<LogEntry>, own: Vec<OwnEntry>) {
        let mut waiting = self.lock();
        for (entry, own) in entries.into_iter().zip(own).rev() {
            let proposed = ProposedEntry { entry, own };
            let lane = if proposed.own.is_bulk {
                &mut waiting.bulk
            } else {
                &mut waiting.lone
            };
            lane.bytes += proposed.byte_count();
            lane.entries.push_front(proposed);
        }
    }

    /// Takes the first entries of both lanes, up to a full record. There are none if no client waits for any of them.
    pub(super) fn take_record(&self) -> (Vec<LogEntry>, Vec<OwnEntry>) {
        let mut record = TakenRecord::default();
        let mut waiting = self.lock();
        let lone_bytes = if waiting.bulk.entries.is_empty() {
            MAX_PROPOSED_BYTES
        } else {
            LONE_BYTES_OF_RECORD
        };
        waiting.lone.move_to_record(&mut record, lone_bytes);
        waiting.bulk.move_to_record(&mut record, MAX_PROPOSED_BYTES);
        drop(waiting);
        self.has_room.notify_all();
        (record.entries, record.own)
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
        } else if waiting.entry_count() == 0 {
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
                QueueState::Empty => waiting.entry_count() > 0,
                QueueState::Waiting => waiting.is_full(),
                QueueState::Full => false,
                QueueState::Closed => true,
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
        let dropped = [
            std::mem::take(&mut waiting.lone),
            std::mem::take(&mut waiting.bulk),
        ];
        drop(waiting);
        drop(dropped);
        self.arrived.notify_all();
        self.has_room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, WaitingEntries> {
        // Every change is complete before the lock is released.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use lookalike_log::EntryKind;

    use super::*;

    fn proposed(id: usize, bytes: usize, client: &WaitingClient) -> ProposedEntry {
        let entry = LogEntry {
            kind: EntryKind::Insert,
            subject: id.to_string(),
            body: vec![0; bytes],
        };
        ProposedEntry::new(entry, Box::new(drop)).of_client(client)
    }

    fn taken_ids(queue: &ProposalQueue) -> Vec<String> {
        let (entries, own) = queue.take_record();
        assert_eq!(entries.len(), own.len());
        entries.into_iter().map(|entry| entry.subject).collect()
    }

    /// An entry is not proposed once its client has given up, whether it waits for its first or for another record.
    #[test]
    fn abandoned_entries_are_not_proposed() {
        let queue = ProposalQueue::default();
        let (waits, gives_up) = (WaitingClient::default(), WaitingClient::default());
        let push = |id, client: &WaitingClient| {
            assert!(queue.push_entries(vec![proposed(id, 9, client)]).is_ok());
        };
        push(1, &gives_up);
        push(2, &waits);
        let (entries, own) = queue.take_record();
        assert_eq!(entries.len(), 2);
        push(3, &gives_up);
        // Another replica was first, and meanwhile the client went.
        queue.put_back(entries, own);
        drop(gives_up);
        assert_eq!(taken_ids(&queue), ["2"]);
        push(4, &waits);
        drop(waits);
        assert!(taken_ids(&queue).is_empty());
        assert_eq!(queue.queue_state(), QueueState::Empty);
        assert_eq!(queue.lock().lone.bytes, 0);
    }

    /// Neither bulk requests nor lone changes wait for all of the other, and each stays in its order.
    #[test]
    fn records_are_shared_by_lone_and_bulk_entries() {
        let queue = ProposalQueue::default();
        let client = WaitingClient::default();
        let megabyte = 1 << 20;
        let ids = |from: usize| (from..from + 6).map(|id| proposed(id, megabyte - 100, &client));
        assert!(queue.push_bulk(ids(0).collect(), Duration::ZERO).is_ok());
        assert!(queue.push_entries(ids(10).collect()).is_ok());
        assert_eq!(taken_ids(&queue), ["10", "11", "0", "1"]);
        let (entries, own) = queue.take_record();
        queue.put_back(entries, own);
        assert_eq!(taken_ids(&queue), ["12", "13", "2", "3"]);
        assert_eq!(taken_ids(&queue), ["14", "15", "4", "5"]);
        assert_eq!(queue.queue_state(), QueueState::Empty);
    }

    /// A bulk request waits for room, and leaves room for lone changes.
    #[test]
    fn bulk_requests_wait_for_room() {
        let queue = Arc::new(ProposalQueue::default());
        let client = WaitingClient::default();
        let full = vec![proposed(0, MAX_BULK_BYTES, &client)];
        assert!(queue.push_bulk(full, Duration::ZERO).is_ok());
        let more = vec![proposed(1, 1, &client)];
        let refused = queue.push_bulk(more, Duration::from_millis(1));
        let refused = refused.unwrap_err();
        assert_eq!(refused.len(), 1);
        assert!(queue.push_entries(vec![proposed(2, 1, &client)]).is_ok());
        let waiting = Arc::clone(&queue);
        let pushing =
            std::thread::spawn(move || waiting.push_bulk(refused, Duration::from_secs(60)).is_ok());
        assert_eq!(taken_ids(&queue), ["2"]);
        assert_eq!(taken_ids(&queue), ["0"]);
        assert!(pushing.join().unwrap());
        assert_eq!(taken_ids(&queue), ["1"]);
    }
}
