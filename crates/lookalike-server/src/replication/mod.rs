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
//! | [`pace`] | when a record is written, and when the next one is looked for |
//! | [`log_thread`] | writes and reads records |
//! | [`apply`] | applies records to the collections, recipes and aliases |
//! | [`durability`] | writes applied records to disk, and remembers how far they are: the [`checkpoint`] |
//! | [`progress`] | how far this replica is, and why it stopped |
//! | [`beginning`] | decides at the start where a replica begins |
//! | [`log_snapshots`] | snapshots beside the log, from which new replicas start |
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

pub(crate) mod apply;
mod beginning;
pub(crate) mod checkpoint;
mod durability;
pub(crate) mod log_snapshots;
mod log_store;
mod log_thread;
mod mark_writer;
mod pace;
pub(crate) mod progress;
pub(crate) mod proposals;
mod restoration;
#[cfg(test)]
mod simulation;
mod snapshot_thread;
mod state_check;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use lookalike::stream::Timestamp;
use lookalike_log::{EntryKind, LogEntry};
use lookalike_store::WallClock;
use tokio::sync::oneshot;
use tokio::time::timeout;

pub use self::beginning::COPIES_FOLDER;
pub(crate) use self::beginning::PreparedReplica;
pub(crate) use self::checkpoint::LogCheckpoint;
pub(crate) use self::durability::flush_collections;
pub use self::log_store::{check_log_exists, is_shared_log, open_log_store, with_log_store};
use self::progress::ReplicaProgress;
use self::proposals::{EntryOutcome, PreparedInsert, ProposalQueue, ProposedEntry, QueueState};
pub use self::restoration::{DifferingCheck, RestorePoint, RestoredLog, restore_from_log};
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::collections::open_collection::{AnswerResult, OpenCollection, PreparationResult};
use crate::limits::byte_budget::HeldBytes;

/// Longest wait of a request for the record of its entry. After that its outcome is unknown to the client.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait for a look at the end of the log. After that the request is answered by what is applied.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

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
        }
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
        let (sender, receiver) = oneshot::channel();
        self.push_proposals(vec![ProposedEntry {
            entry,
            prepared: None,
            held_bytes: None,
            reply: Box::new(move |outcome| drop(sender.send(outcome))),
        }])?;
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
        let (proposed, receivers): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .map(|entry| {
                let (sender, receiver) = oneshot::channel();
                let proposed = ProposedEntry {
                    entry,
                    prepared: None,
                    held_bytes: None,
                    reply: Box::new(move |outcome| drop(sender.send(outcome))),
                };
                (proposed, receiver)
            })
            .unzip();
        self.push_proposals(proposed)?;
        let mut outcomes = Vec::with_capacity(receivers.len());
        for receiver in receivers {
            outcomes.push(self.wait_for_outcome(receiver).await?);
        }
        Ok(outcomes)
    }

    /// Inserts a document through the log, and waits for its answer. Also returns the number of the record.
    ///
    /// # Errors
    /// As for [`propose_change`](Self::propose_change).
    pub(crate) async fn insert_document(
        &self,
        open: Arc<OpenCollection>,
        sent: Bytes,
        prepared: PreparationResult,
        held_bytes: HeldBytes,
    ) -> Result<(AnswerResult, u64), ApiProblem> {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(refused) => return Ok((Err(refused), self.progress.applied_record())),
        };
        let (sender, receiver) = oneshot::channel();
        self.push_proposals(vec![ProposedEntry {
            entry: insert_entry(&open, &sent),
            prepared: Some(PreparedInsert::new(&open, prepared)),
            held_bytes: Some(held_bytes),
            reply: Box::new(move |outcome| drop(sender.send(outcome))),
        }])?;
        // A collection that is being deleted waits for its requests, and so must not be kept by one that waits for the
        // log.
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

    /// Proposes the documents of a portion of a bulk request, in their order. `reply` is called for each with its place
    /// in the portion, also for those that are refused.
    pub(crate) fn propose_documents<'a>(
        &self,
        open: &Arc<OpenCollection>,
        documents: impl Iterator<Item = (PreparationResult, &'a [u8])>,
        reply: &(impl Fn(usize, AnswerResult) + Clone + Send + 'static),
    ) {
        let problem = self.progress.check_running().err();
        let mut proposed = Vec::new();
        for (at, (prepared, sent)) in documents.enumerate() {
            let prepared = match (prepared, &problem) {
                (Ok(prepared), None) => prepared,
                (Ok(_), Some(problem)) => {
                    reply(at, Err(problem.clone().into()));
                    continue;
                }
                (Err(refused), _) => {
                    reply(at, Err(refused));
                    continue;
                }
            };
            let answer = reply.clone();
            proposed.push(ProposedEntry {
                entry: insert_entry(open, sent),
                prepared: Some(PreparedInsert::new(open, prepared)),
                held_bytes: None,
                reply: Box::new(move |outcome| answer(at, outcome.into_insert_answer())),
            });
        }
        if let Err(refused) = self.proposals.push_entries(proposed) {
            for proposed in refused {
                (proposed.reply)(EntryOutcome {
                    record: self.progress.applied_record(),
                    result: Err(self.progress.full_queue_problem().into()),
                });
            }
        }
    }

    fn push_proposals(&self, proposed: Vec<ProposedEntry>) -> Result<(), ApiProblem> {
        self.progress.check_running()?;
        let pushed = self.proposals.push_entries(proposed);
        pushed.map_err(|_| self.progress.full_queue_problem())
    }

    /// Returns the problem of an entry that was dropped: this replica has stopped, or the service is stopping.
    pub(crate) fn dropped_problem(&self) -> ApiProblem {
        self.progress
            .check_running()
            .err()
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

    /// Waits until this replica has applied all records that exist now, for a moment at most.
    pub(crate) async fn catch_up(&self) {
        let mut looks = self.progress.subscribe_looks();
        let look = self.proposals.ask_for_look();
        let waiting = async {
            // The senders live as long as the replica.
            let _ = looks.wait_for(|&answered| answered >= look).await;
            let newest = self.progress.newest_record();
            let mut applied = self.progress.subscribe_applied();
            let _ = applied.wait_for(|&applied| applied >= newest).await;
        };
        let _ = timeout(LOOK_PATIENCE, waiting).await;
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

/// Returns `true` if a collection has a row with a sequence number. It is not kept meanwhile, because its deletion waits
/// for all that use it.
fn has_admitted(open: &Weak<OpenCollection>, seq: u64) -> Result<bool, ApiProblem> {
    let Some(open) = open.upgrade() else {
        return Ok(true);
    };
    let last = open.collection.last_admitted_row();
    Ok(last.map_err(|error| open.to_problem(error))? >= seq)
}

fn insert_entry(open: &OpenCollection, sent: &[u8]) -> LogEntry {
    LogEntry {
        kind: EntryKind::Insert,
        subject: open.name.clone(),
        body: sent.to_vec(),
    }
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
