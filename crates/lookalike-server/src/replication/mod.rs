//! A replica: this service and others follow one shared log, and all that changes their state goes through it.
//!
//! The log is a sequence of records in an object store; see [`lookalike_log`]. A request that changes something
//! becomes an entry of the next record. Every replica applies all records in their order, and so derives the same
//! verdicts. A request is answered when its record exists and this replica has applied it.
//!
//! ```text
//! request ──> proposals ──> log thread ──> records ──> apply thread ──> collections, answer
//!                             │    ▲                        │
//!                             ▼    │                        ▼
//!                         shared log (records of all    durability thread ──> disk, checkpoint
//!                         replicas, in one order)
//! ```
//!
//! | module | job |
//! |---|---|
//! | [`proposals`] | the queue of entries that wait for their record, and their answers |
//! | [`costly_turns`] | bounds what the documents of a record cost to compare |
//! | [`pace`] | when a record is written, and when the next one is looked for |
//! | [`record_time`] | the times of records |
//! | [`log_thread`] | writes and reads records |
//! | [`apply`] | applies records to the collections, recipes and aliases |
//! | [`applied_entries`] | which entries a collection has already, after a crash |
//! | [`apply_thread`] | the thread that applies them, and waits for the disk |
//! | [`durability`] | writes applied records to disk, and remembers how far they are: the [`checkpoint`] |
//! | [`progress`] | how far this replica is, and why it stopped |
//! | [`beginning_plan`] | decides at the start where a replica begins |
//! | [`beginning`] | brings it there, and starts the threads |
//! | [`state_check`] | compares the states of replicas, and advances the clock of the log |
//! | [`log_snapshots`] | snapshots beside the log, from which new replicas start |
//! | [`snapshot_thread`] | makes these snapshots, and removes old ones and old records |
//! | [`restoration`] | makes a data directory of the state at a moment |
//! | [`log_store`] | opens the object store |
//! | [`mark_writer`] | tells people beside the log how far this replica is |
//!
//! # Guarantees
//!
//! - An entry that was answered is in the log, and no replica loses it while the object store keeps its objects.
//! - After a crash, a replica continues behind the last entry that its disk has: each collection stores its
//!   position in the log in the same transaction as its rows.
//! - A replica that reads a damaged log, or that derives other verdicts than the others, stops: it refuses changes
//!   and says why.

mod applied_entries;
pub(crate) mod apply;
mod apply_thread;
mod beginning;
mod beginning_plan;
pub(crate) mod checkpoint;
pub(crate) mod costly_turns;
mod durability;
pub(crate) mod log_snapshots;
mod log_store;
mod log_thread;
mod mark_writer;
mod pace;
pub(crate) mod progress;
pub(crate) mod proposals;
mod record_time;
mod restoration;
#[cfg(test)]
mod simulation;
mod snapshot_thread;
mod state_check;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use lookalike::stream::Timestamp;
use lookalike_log::{EntryKind, LogEntry, MAX_ENTRIES_BYTES};
use lookalike_store::WallClock;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{sleep_until, timeout};

pub use self::beginning::COPIES_FOLDER;
pub(crate) use self::beginning::PreparedReplica;
pub(crate) use self::checkpoint::LogCheckpoint;
use self::costly_turns::{CostlyTurn, CostlyTurns, CountedTurn};
pub(crate) use self::durability::flush_collections;
pub use self::log_store::{check_log_exists, is_shared_log, open_log_store, with_log_store};
use self::progress::ReplicaProgress;
use self::proposals::{
    EntryOutcome, PreparedInsert, ProposalQueue, ProposedEntry, QueueState, WaitingClient,
};
pub use self::restoration::{
    DifferingCheck, RestorePoint, RestoredLog, UnusableSnapshot, restore_from_log,
};
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::collections::open_collection::{
    AnswerResult, OpenCollection, PreparationResult, RefusedDocument,
};

/// Longest wait of a request for the record of its entry. After that its outcome is unknown to the client.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait for a look at the end of the log. After that the request is answered by what is applied.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// Shortest time between two looks at the end of the log that requests ask for. Each is a request to the store.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Interval between two looks for room in the queue of proposals.
const ROOM_INTERVAL: Duration = Duration::from_millis(20);

/// Settings of a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSettings {
    /// URL of the prefix of an object store below which the log is.
    pub shared_log: String,
    /// Name of this replica, which no other replica of the log has.
    pub name: String,
    /// Records that are written per second on average, by all replicas together. A full record is written at once.
    pub writes_per_second: u32,
    /// Time between two snapshots beside the log; `None` if this replica makes none.
    pub snapshot_every: Option<Duration>,
    /// Time for which snapshots and records stay, so that states of the past can be restored.
    pub keep_log: Duration,
}

/// The part of the service that follows a shared log.
pub(crate) struct Replica {
    pub(crate) settings: ReplicaSettings,
    pub(crate) progress: ReplicaProgress,
    proposals: ProposalQueue,
    costly_turns: CostlyTurns,
    /// Locked during a look at the end of the log that a request asked for.
    looks: Mutex<RequestedLooks>,
}

/// Times of the looks at the end of the log that requests asked for.
#[derive(Debug, Default)]
struct RequestedLooks {
    /// Beginning of the last look.
    begun: Option<Instant>,
    /// Beginning of the last look that was answered: its request may have ended before.
    answered: Option<Instant>,
}

/// Answer to a document of a bulk request.
pub(crate) struct LineAnswer {
    pub(crate) answer: AnswerResult,
    /// Number of the record that the document is in, if it is in one.
    pub(crate) record: Option<u64>,
}

impl From<AnswerResult> for LineAnswer {
    fn from(answer: AnswerResult) -> Self {
        Self {
            answer,
            record: None,
        }
    }
}

/// The clock of a replica: the time of the record that is being applied, or was applied last.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogClock(Arc<AtomicI64>);

impl LogClock {
    /// Sets the time, in microseconds since 1970.
    pub(crate) fn set_time(&self, time_us: i64) {
        self.0.store(time_us, Ordering::Relaxed);
    }

    /// Returns the time, in microseconds since 1970.
    fn time_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the clock as collections read it.
    pub(crate) fn as_wall_clock(&self) -> WallClock {
        let time = Arc::clone(&self.0);
        Arc::new(move || Timestamp(time.load(Ordering::Relaxed)))
    }
}

/// Returns the time of this machine, in microseconds since 1970.
fn machine_time_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

impl Replica {
    fn new(settings: ReplicaSettings, first_record: u64) -> Self {
        Self {
            settings,
            progress: ReplicaProgress::new(first_record),
            proposals: ProposalQueue::default(),
            costly_turns: CostlyTurns::default(),
            looks: Mutex::default(),
        }
    }

    /// Waits for the turn of a document of so many bytes that is costly to compare.
    ///
    /// # Errors
    /// [`ProblemCode::LogUnavailable`] if earlier ones take too long.
    pub(crate) async fn begin_costly_turn(
        &self,
        bytes: usize,
    ) -> Result<CostlyTurn<'_>, ApiProblem> {
        let turn = timeout(PATIENCE, self.costly_turns.begin_turn(bytes)).await;
        turn.map_err(|_| self.progress.full_queue_problem())
    }

    /// Counts a document whose check has taken some time, once there is room for it.
    ///
    /// # Errors
    /// As for [`begin_costly_turn`](Self::begin_costly_turn).
    pub(crate) async fn count_costly_document<'a>(
        &self,
        turn: CostlyTurn<'a>,
        check_time: Duration,
    ) -> Result<CountedTurn<'a>, ApiProblem> {
        let counted = timeout(PATIENCE, turn.count_document(check_time)).await;
        counted.map_err(|_| self.progress.full_queue_problem())
    }

    /// Proposes an entry, and waits until this replica has applied it.
    ///
    /// # Errors
    /// The problem with which the entry was refused; [`ProblemCode::LogStopped`] if this replica has stopped; or
    /// [`ProblemCode::LogUnavailable`] if the record did not come in time, so that the outcome is unknown.
    pub(crate) async fn propose_change(
        &self,
        kind: EntryKind,
        subject: &str,
        body: Vec<u8>,
    ) -> Result<EntryOutcome, ApiProblem> {
        let entry = LogEntry {
            kind,
            subject: subject.to_owned(),
            body,
        };
        let client = WaitingClient::default();
        let (proposed, receiver) = propose_for(&client, entry, |_| ());
        self.push_proposals(vec![proposed])?;
        self.wait_for_outcome(receiver).await
    }

    /// Proposes entries that follow one another, and waits until this replica has applied all of them.
    ///
    /// # Errors
    /// As for [`propose_change`](Self::propose_change), except the refusals of entries, which are outcomes.
    pub(crate) async fn propose_changes(
        &self,
        entries: Vec<LogEntry>,
    ) -> Result<Vec<EntryOutcome>, ApiProblem> {
        self.propose_changes_with(entries, |_| ()).await
    }

    /// Proposes changes as [`propose_changes`](Self::propose_changes) does. `shorten` is called with each outcome at once,
    /// so that outcomes that wait for the last one take little memory.
    ///
    /// # Errors
    /// As for [`propose_changes`](Self::propose_changes).
    pub(crate) async fn propose_changes_with(
        &self,
        entries: Vec<LogEntry>,
        shorten: impl Fn(&mut EntryOutcome) + Clone + Send + 'static,
    ) -> Result<Vec<EntryOutcome>, ApiProblem> {
        let client = WaitingClient::default();
        let (proposed, receivers): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .map(|entry| propose_for(&client, entry, shorten.clone()))
            .unzip();
        self.push_proposals(proposed)?;
        let mut outcomes = Vec::with_capacity(receivers.len());
        for receiver in receivers {
            outcomes.push(self.wait_for_outcome(receiver).await?);
        }
        Ok(outcomes)
    }

    /// Inserts a document through the log, and waits for its answer. Also returns the number of the record. `turn` is
    /// that of a document that is costly to compare.
    ///
    /// # Errors
    /// As for [`propose_change`](Self::propose_change).
    pub(crate) async fn insert_document(
        &self,
        open: Arc<OpenCollection>,
        subject: &str,
        sent: Bytes,
        prepared: PreparationResult,
        turn: Option<CountedTurn<'_>>,
    ) -> Result<(AnswerResult, u64), ApiProblem> {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(refused) => return Ok((Err(refused), self.progress.applied_record())),
        };
        let client = WaitingClient::default();
        let (sender, receiver) = oneshot::channel();
        let (cost, turn) = turn.map(CountedTurn::into_parts).unzip();
        let reply = Box::new(move |outcome| {
            drop(cost);
            drop(sender.send(outcome));
        });
        let proposed = ProposedEntry::new(insert_entry(subject, &sent), reply)
            .of_client(&client)
            .with_document(PreparedInsert::new(&open, prepared));
        self.push_proposals(vec![proposed])?;
        drop(turn);
        // The files of a deleted collection stay while it is used, and so a request that waits for the log must not keep
        // it.
        let closing = open.subscribe_closing();
        let deleting = open.deleting_problem();
        drop(open);
        let outcome = tokio::select! {
            outcome = self.wait_for_outcome(receiver) => outcome?,
            () = closing => return Err(deleting),
        };
        let record = outcome.record;
        Ok((outcome.into_insert_answer(), record))
    }

    /// Proposes the documents of a portion of a bulk request, in their order, as long as a client waits for them. `reply`
    /// is called for each with its place in the portion, also for those that are refused. Blocks while there is no room
    /// for them, as long as `patience` lasts. The subject of the entries goes with the collection.
    pub(crate) fn propose_documents<'a>(
        &self,
        client: &WaitingClient,
        collection: (&Arc<OpenCollection>, &str),
        documents: impl Iterator<Item = (PreparationResult, &'a [u8])>,
        patience: Duration,
        reply: &(impl Fn(usize, LineAnswer) + Clone + Send + 'static),
    ) {
        let (open, subject) = collection;
        let problem = self.progress.check_running().err();
        let mut proposed = Vec::new();
        for (at, (prepared, sent)) in documents.enumerate() {
            let prepared = match (prepared, &problem) {
                (Ok(prepared), None) => prepared,
                (Ok(_), Some(problem)) => {
                    reply(at, Err(problem.clone().into()).into());
                    continue;
                }
                (Err(refused), _) => {
                    reply(at, Err(refused).into());
                    continue;
                }
            };
            let entry = insert_entry(subject, sent);
            if let Err(problem) = check_size(&entry) {
                let id = Some(prepared.id().to_owned());
                reply(at, Err(RefusedDocument { id, problem }).into());
                continue;
            }
            let answer = reply.clone();
            let reply =
                Box::new(move |outcome: EntryOutcome| answer(at, outcome.into_line_answer()));
            let document = PreparedInsert::new(open, prepared);
            let entry = ProposedEntry::new(entry, reply);
            proposed.push(entry.of_client(client).with_document(document));
        }
        if let Err(refused) = self.proposals.push_bulk(proposed, patience) {
            for proposed in refused {
                (proposed.own.reply)(EntryOutcome {
                    record: self.progress.applied_record(),
                    result: Err(self.progress.full_queue_problem().into()),
                });
            }
        }
    }

    /// Waits until there is room for documents of bulk requests, without a thread.
    pub(crate) async fn wait_for_bulk_room(&self) {
        let waiting = async {
            while !self.proposals.has_bulk_room() {
                tokio::time::sleep(ROOM_INTERVAL).await;
            }
        };
        // Without room, the documents are refused.
        let _ = timeout(PATIENCE, waiting).await;
    }

    fn push_proposals(&self, proposed: Vec<ProposedEntry>) -> Result<(), ApiProblem> {
        self.progress.check_running()?;
        proposed
            .iter()
            .try_for_each(|proposed| check_size(&proposed.entry))?;
        let pushed = self.proposals.push_entries(proposed);
        pushed.map_err(|_| self.progress.full_queue_problem())
    }

    /// Returns the problem of an entry that was dropped: this replica has stopped, or the service is stopping.
    pub(crate) fn dropped_problem(&self) -> ApiProblem {
        self.progress
            .dropped_problem()
            .unwrap_or_else(stopping_problem)
    }

    async fn wait_for_outcome(
        &self,
        receiver: oneshot::Receiver<EntryOutcome>,
    ) -> Result<EntryOutcome, ApiProblem> {
        match timeout(PATIENCE, receiver).await {
            Ok(Ok(outcome)) => Ok(outcome),
            // The entry was dropped, because this replica has stopped or is stopping.
            Ok(Err(_)) => Err(self.dropped_problem()),
            Err(_) => Err(self.progress.unavailable_problem()),
        }
    }

    /// Waits until this replica has applied all records that exist now, for a moment at most. One look at the end of the
    /// log answers all who wait for it, and a look begins [`LOOK_INTERVAL`] after the one before at the earliest.
    pub(crate) async fn catch_up(&self) {
        let asked = Instant::now();
        let _ = timeout(LOOK_PATIENCE, self.look_since(asked)).await;
    }

    /// Waits until a look that began at `asked` or later has been applied.
    async fn look_since(&self, asked: Instant) {
        let mut looks = self.looks.lock().await;
        if looks.answered.is_some_and(|began| began >= asked) {
            return;
        }
        if let Some(begun) = looks.begun {
            sleep_until((begun + LOOK_INTERVAL).into()).await;
        }
        let begun = Instant::now();
        looks.begun = Some(begun);
        self.look_at_end().await;
        looks.answered = Some(begun);
    }

    async fn look_at_end(&self) {
        let mut looks = self.progress.subscribe_looks();
        let look = self.proposals.ask_for_look();
        // The senders live as long as the replica.
        let _ = looks.wait_for(|&answered| answered >= look).await;
        let newest = self.progress.newest_record();
        let mut applied = self.progress.subscribe_applied();
        let _ = applied.wait_for(|&applied| applied >= newest).await;
    }

    /// Waits until this replica has applied a record.
    ///
    /// # Errors
    /// [`ProblemCode::Behind`] if it has not done so in time.
    pub(crate) async fn wait_for_record(&self, record: u64) -> Result<(), ApiProblem> {
        let mut applied = self.progress.subscribe_applied();
        let waiting = applied.wait_for(|&applied| applied >= record);
        match timeout(PATIENCE, waiting).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let applied = self.progress.applied_record();
                Err(behind_problem(
                    &format!("record {record} of the log"),
                    applied,
                ))
            }
        }
    }

    /// Waits until a collection has a row with a sequence number.
    ///
    /// # Errors
    /// [`ProblemCode::Behind`] if it has none in time, or any error of the collection.
    pub(crate) async fn wait_for_seq(
        &self,
        open: Arc<OpenCollection>,
        seq: u64,
    ) -> Result<(), ApiProblem> {
        let (closing, deleting) = (open.subscribe_closing(), open.deleting_problem());
        let open = Arc::downgrade(&open);
        let mut applied = self.progress.subscribe_applied();
        let waiting = async {
            loop {
                applied.mark_unchanged();
                if has_admitted(&open, seq)? {
                    return Ok(());
                }
                // The sender lives as long as the replica.
                let _ = applied.changed().await;
            }
        };
        let waiting = async {
            tokio::select! {
                found = waiting => found,
                () = closing => Err(deleting),
            }
        };
        match timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => {
                let applied = self.progress.applied_record();
                Err(behind_problem(&format!("the document {seq}"), applied))
            }
        }
    }

    /// Ends the threads of the replica. Entries that wait are dropped, so their outcome is unknown to their clients.
    pub(crate) fn stop_threads(&self) {
        self.proposals.close_queue();
    }

    /// Returns `true` once the threads have to end.
    fn has_ended(&self) -> bool {
        self.proposals.queue_state() == QueueState::Closed
    }
}

/// Returns `true` if a collection has a row with a sequence number. It is not kept meanwhile, because the files of a
/// deleted collection stay while it is used.
fn has_admitted(open: &Weak<OpenCollection>, seq: u64) -> Result<bool, ApiProblem> {
    let Some(open) = open.upgrade() else {
        return Ok(true);
    };
    let last = open.collection.last_admitted_row();
    Ok(last.map_err(|error| open.to_problem(error))? >= seq)
}

/// Returns an entry that is proposed as long as a client waits for it, and the receiver of its outcome.
fn propose_for(
    client: &WaitingClient,
    entry: LogEntry,
    shorten: impl Fn(&mut EntryOutcome) + Send + 'static,
) -> (ProposedEntry, oneshot::Receiver<EntryOutcome>) {
    let (sender, receiver) = oneshot::channel();
    let reply = Box::new(move |mut outcome| {
        shorten(&mut outcome);
        drop(sender.send(outcome));
    });
    (ProposedEntry::new(entry, reply).of_client(client), receiver)
}

fn insert_entry(subject: &str, sent: &[u8]) -> LogEntry {
    LogEntry {
        kind: EntryKind::Insert,
        subject: subject.to_owned(),
        body: sent.to_vec(),
    }
}

/// Checks that an entry fits into a record, because the log would stop at one that does not.
fn check_size(entry: &LogEntry) -> Result<(), ApiProblem> {
    let bytes = entry.encoded_bytes();
    if bytes <= MAX_ENTRIES_BYTES {
        return Ok(());
    }
    let detail = format!(
        "the change of '{}' has {bytes} bytes, and a record of the shared log has at most {MAX_ENTRIES_BYTES}: send less \
         at a time",
        shorten_text(&entry.subject)
    );
    Err(ApiProblem::new(ProblemCode::TooLarge, detail))
}

fn stopping_problem() -> ApiProblem {
    let detail = "the service stops before the outcome is known: send the same again";
    ApiProblem::new(ProblemCode::Stopping, detail)
}

fn behind_problem(what: &str, applied: u64) -> ApiProblem {
    let seconds = PATIENCE.as_secs();
    let detail = format!(
        "this replica has not applied {what} within {seconds} s; it has applied record {applied}: ask again, or ask \
         another replica"
    );
    ApiProblem::new(ProblemCode::Behind, detail)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use lookalike_store::{Collection, CollectionOptions, CollectionSettings, DiskFolder};
    use tokio::task::JoinSet;

    use super::*;
    use crate::api::replicated::insert_through_log;
    use crate::limits::byte_budget::{ByteBudget, ClientId};

    /// Returns a replica without a log thread, which has caught up.
    fn new_replica() -> Arc<Replica> {
        let settings = ReplicaSettings {
            shared_log: "memory:///".to_owned(),
            name: "a".to_owned(),
            writes_per_second: 4,
            snapshot_every: None,
            keep_log: Duration::ZERO,
        };
        let replica = Replica::new(settings, 0);
        replica.progress.note_end_of_log(0);
        Arc::new(replica)
    }

    /// A client that is gone, or has waited for too long, holds no budget, although its entry waits for the store.
    #[tokio::test]
    async fn abandoned_insert_holds_no_budget() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let options = CollectionOptions {
            headroom: 0,
            ..CollectionOptions::default()
        };
        let settings = CollectionSettings::default();
        let collection = Collection::create_empty(disk, &settings, options).unwrap();
        let open = Arc::new(OpenCollection::new("a", collection));
        let (replica, budget) = (new_replica(), ByteBudget::new(1000));
        let held_bytes = budget.try_take_bytes(ClientId::Key(0), 600).unwrap();
        let sent = Bytes::from_static(br#"{"id": "1", "text": "The ferry leaves at seven."}"#);
        let (inserting, target) = (Arc::clone(&replica), Arc::clone(&open));
        let request = tokio::spawn(async move {
            insert_through_log(&inserting, target, "a", sent, held_bytes)
                .await
                .map(drop)
        });
        while replica.proposals.queue_state() == QueueState::Empty {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(budget.free_bytes(), 400);
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert_eq!(budget.free_bytes(), 1000);
        assert_eq!(replica.proposals.queue_state(), QueueState::Waiting);
        replica.stop_threads();
    }

    /// An entry that no record can hold is refused before it is proposed, and one that just fits is not.
    #[tokio::test]
    async fn entry_larger_than_a_record_is_refused() {
        let replica = new_replica();
        let fixed = LogEntry {
            kind: EntryKind::PutRecipe,
            subject: "own".to_owned(),
            body: Vec::new(),
        };
        let most = MAX_ENTRIES_BYTES - fixed.encoded_bytes();
        assert!(
            check_size(&LogEntry {
                body: vec![0; most],
                ..fixed
            })
            .is_ok()
        );
        let body = vec![0; most + 1];
        let refused = replica.propose_change(EntryKind::PutRecipe, "own", body);
        let refused = refused.await.err().unwrap();
        assert_eq!(refused.code, ProblemCode::TooLarge);
        assert_eq!(replica.proposals.queue_state(), QueueState::Empty);
    }

    /// Requests for names that do not exist share their looks at the end of the log.
    #[tokio::test]
    async fn requests_share_looks_at_the_log() {
        let replica = new_replica();
        let looks = Arc::new(AtomicUsize::new(0));
        let (looking, counted) = (Arc::clone(&replica), Arc::clone(&looks));
        let log_thread = tokio::spawn(async move {
            loop {
                if looking.proposals.is_look_asked() {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let look = looking.proposals.take_look();
                    looking.progress.note_end_of_log(look);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let mut requests = JoinSet::new();
        for _ in 0..50 {
            let replica = Arc::clone(&replica);
            requests.spawn(async move { replica.catch_up().await });
        }
        requests.join_all().await;
        log_thread.abort();
        // The first request begins a look at once. All others came after its beginning, and share the second one.
        let looks = looks.load(Ordering::Relaxed);
        assert!((1..=2).contains(&looks), "{looks}");
    }
}
