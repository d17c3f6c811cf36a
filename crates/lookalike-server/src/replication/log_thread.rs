//! The thread that writes and reads records.
//!
//! It alone uses the log. It writes the entries that wait as the next record when the [pace](super::pace) allows it.
//! If another replica has written that record first, it passes that one on, and proposes the same entries for the
//! record after it. While nothing waits it looks for records of others.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use lookalike_log::{
    AppendOutcome, EntryKind, LogEntry, LogError, LogRecord, LogStore, LogTail, RECORD_PREFIX,
    SharedLog, StoreError, describe_record, find_lost_end, read_first_number, record_key,
};

use super::beginning::describe_lost_end;
use super::pace::{PollPace, SeenRecord, WritePace};
use super::proposals::{OwnEntry, ProposedEntry, QueueState, is_full_record};
use super::record_time::RecordTime;
use super::state_check::CheckSchedule;
use super::{Replica, machine_time_us};

/// Waits after an error of the object store: the first and the longest.
pub(super) const RETRY_BOUNDS: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(2));

/// Time before a write in which there are no looks.
const NO_LOOK_BEFORE_WRITE: Duration = Duration::from_millis(50);

/// A record that is to be applied.
pub(crate) struct ReceivedRecord {
    pub(super) record: LogRecord,
    /// The entries of this replica in it, one for each entry; none if another replica wrote it.
    pub(super) own: Vec<OwnEntry>,
    /// Place in the log behind the record.
    pub(super) tail: LogTail,
}

/// State of the thread.
pub(super) struct LogThread {
    replica: Arc<Replica>,
    store: Arc<dyn LogStore>,
    /// `true` once the log is known to reach as far as other replicas have applied it.
    is_end_checked: bool,
    log: SharedLog,
    records: SyncSender<ReceivedRecord>,
    checks: Arc<CheckSchedule>,
    /// Parts of the entries that are being written.
    in_flight: Vec<OwnEntry>,
    append_began: Instant,
    write_pace: WritePace,
    poll_pace: PollPace,
    record_time: RecordTime,
    next_look: Instant,
    /// Number of the last record that was looked for before it would have been written.
    looked_before_write: Option<u64>,
    retry_wait: Duration,
    /// `true` after a copy of a record could not be written.
    lacks_copies: bool,
}

/// The thread ends, because the replica stops.
struct ThreadEnds;

impl LogThread {
    pub(super) fn new(
        replica: Arc<Replica>,
        store: Arc<dyn LogStore>,
        log: SharedLog,
        records: SyncSender<ReceivedRecord>,
        checks: Arc<CheckSchedule>,
    ) -> Self {
        let now = Instant::now();
        let settings = &replica.settings;
        Self {
            write_pace: WritePace::new(&settings.name, settings.writes_per_second, now),
            poll_pace: PollPace::new(now),
            record_time: RecordTime::default(),
            next_look: now,
            looked_before_write: None,
            retry_wait: RETRY_BOUNDS.0,
            lacks_copies: false,
            in_flight: Vec::new(),
            append_began: now,
            replica,
            store,
            is_end_checked: false,
            log,
            records,
            checks,
        }
    }

    /// Runs until the queue of proposals is closed, the log is damaged, or records are not applied any more.
    pub(super) fn run(mut self) {
        loop {
            match self.step() {
                Ok(Ok(())) => {}
                Ok(Err(ThreadEnds)) => return,
                Err(LogError::Store(error)) => {
                    let progress = &self.replica.progress;
                    progress.note_unavailable(error, Instant::now());
                    if self.replica.has_ended() {
                        return;
                    }
                    self.wait_to_retry();
                }
                Err(damage) => {
                    self.replica.progress.stop(&damage.to_string());
                    self.replica.stop_threads();
                    return;
                }
            }
        }
    }

    /// Writes a record, reads one, or waits.
    fn step(&mut self) -> Result<Result<(), ThreadEnds>, LogError> {
        if !self.is_end_checked {
            return self.check_end();
        }
        if self.log.has_pending_append() {
            // The time of an outage is not that of a record.
            self.append_began = Instant::now();
            let outcome = self.log.continue_append()?;
            return Ok(self.finish_append(outcome));
        }
        let state = self.replica.proposals.queue_state();
        if state == QueueState::Closed {
            return Ok(Err(ThreadEnds));
        }
        let now = Instant::now();
        let next_write = match state {
            QueueState::Empty => None,
            _ => Some(self.write_pace.next_write(state == QueueState::Full, now)),
        };
        if next_write.is_some_and(|time| time <= now) {
            let number = Some(self.log.tail().next);
            if self.write_pace.follows_others(now) && self.looked_before_write != number {
                self.looked_before_write = number;
                return self.look_for_record();
            }
            let (entries, own) = self.replica.proposals.take_record();
            // No client may wait for them any more.
            if entries.is_empty() {
                return Ok(Ok(()));
            }
            self.in_flight = own;
            self.append_began = Instant::now();
            let time_us = self.record_time.next_time(machine_time_us(), now);
            let outcome = self.log.append(entries, time_us)?;
            return Ok(self.finish_append(outcome));
        }
        // A write that follows soon tells the same as a look.
        let writes_soon = next_write.is_some_and(|time| time <= now + NO_LOOK_BEFORE_WRITE);
        let is_look_due = self.next_look <= now && !writes_soon;
        if is_look_due || self.replica.proposals.is_look_asked() {
            return self.look_for_record();
        }
        self.propose_check();
        let until = match next_write {
            Some(time) if writes_soon => time,
            Some(time) => time.min(self.next_look),
            None => self.next_look,
        };
        self.replica.proposals.wait_for_change(state, until);
        Ok(Ok(()))
    }

    /// Checks that the log reaches as far as other replicas have applied it. A replica that goes on with a log whose end is
    /// lost would give the numbers of acknowledged records to others.
    fn check_end(&mut self) -> Result<Result<(), ThreadEnds>, LogError> {
        let reason = self.find_reason_to_stop().map_err(LogError::Store)?;
        self.note_answer();
        self.is_end_checked = true;
        let Some(reason) = reason else {
            return Ok(Ok(()));
        };
        self.replica.progress.stop(&reason);
        self.replica.stop_threads();
        Ok(Err(ThreadEnds))
    }

    /// Returns why the log that the store has cannot be gone on with.
    fn find_reason_to_stop(&self) -> Result<Option<String>, StoreError> {
        if let Some(lost) = find_lost_end(&*self.store)? {
            return Ok(Some(describe_lost_end(&lost)));
        }
        let applied = self.log.tail().next - 1;
        let is_empty = applied > 0
            && read_first_number(&*self.store)? == 1
            && self.store.read(&record_key(1))?.is_none()
            && self.store.list(RECORD_PREFIX)?.is_empty();
        Ok(is_empty.then(|| {
            format!(
                "the shared log {} has no records, and this replica has applied {}: correct the URL, mount its directory, or write the log back \
                 with `lookalike store log repair`; to begin a new log with this replica, start it once without \
                 `--shared-log`, and then with the new URL",
                self.replica.settings.shared_log,
                describe_record(applied)
            )
        }))
    }

    fn finish_append(&mut self, outcome: AppendOutcome) -> Result<(), ThreadEnds> {
        self.note_answer();
        let own = std::mem::take(&mut self.in_flight);
        match outcome {
            AppendOutcome::Appended(record) => {
                self.write_pace.observe_write(self.append_began.elapsed());
                self.replica.progress.appended.fetch_add(1, Relaxed);
                self.pass_on(record, own)
            }
            AppendOutcome::Overtaken { record, entries } => {
                self.replica.progress.conflicts.fetch_add(1, Relaxed);
                self.replica.proposals.put_back(entries, own);
                self.pass_on(record, Vec::new())
            }
        }
    }

    fn look_for_record(&mut self) -> Result<Result<(), ThreadEnds>, LogError> {
        let look = self.replica.proposals.take_look();
        let found = self.log.read_next()?;
        self.note_answer();
        Ok(match found {
            Some(record) => self.pass_on(record, Vec::new()),
            None => {
                self.replica.progress.note_end_of_log(look);
                self.next_look = self.poll_pace.next_look(Instant::now());
                Ok(())
            }
        })
    }

    fn pass_on(&mut self, record: LogRecord, own: Vec<OwnEntry>) -> Result<(), ThreadEnds> {
        let now = Instant::now();
        self.replica.progress.note_newest(record.number);
        self.report_copies();
        let seen = SeenRecord {
            number: record.number,
            writer: &record.writer,
            is_full: is_full_record(&record.entries),
            time_us: record.time_us,
            delay_us: machine_time_us().saturating_sub(record.time_us),
        };
        let is_own = !own.is_empty();
        self.write_pace.count_record(seen, now);
        self.next_look = self.poll_pace.note_record(is_own, now);
        // Records of the past say nothing about the time now.
        if self.replica.progress.is_caught_up() {
            self.record_time.note_record(record.time_us, now);
        }
        let tail = *self.log.tail();
        let received = ReceivedRecord { record, own, tail };
        self.records.send(received).map_err(|_| ThreadEnds)
    }

    /// Logs that copies of records cannot be written, once, and that they can be again.
    fn report_copies(&mut self) {
        let failed = self.log.take_copy_error();
        let lacked_copies = std::mem::replace(&mut self.lacks_copies, failed.is_some());
        match failed {
            Some(error) if !lacked_copies => tracing::error!(
                %error,
                "records are not copied to the data directory, so a damaged log cannot be repaired from it: make room, or \
                 make the folder .shared-log writable"
            ),
            None if lacked_copies => {
                tracing::info!("records are copied to the data directory again");
            }
            _ => {}
        }
    }

    /// Proposes that the clock advances, or that states are compared, if that is due.
    fn propose_check(&self) {
        let proposals = &self.replica.proposals;
        // Without room it is proposed the next time.
        if !self.replica.progress.is_caught_up() || !proposals.has_room() {
            return;
        }
        let entries = self
            .checks
            .take_due(self.log.tail().time_us, machine_time_us());
        let proposed = entries.into_iter().map(|(kind, body)| {
            debug_assert!(matches!(
                kind,
                EntryKind::AdvanceClock | EntryKind::CheckState
            ));
            let subject = String::new();
            let entry = LogEntry {
                kind,
                subject,
                body,
            };
            ProposedEntry::new(entry, Box::new(drop))
        });
        let proposed: Vec<_> = proposed.collect();
        if !proposed.is_empty() && proposals.push_entries(proposed).is_err() {
            tracing::debug!("the queue was filled meanwhile: a comparison is left out");
        }
    }

    fn note_answer(&mut self) {
        self.retry_wait = RETRY_BOUNDS.0;
        self.replica.progress.note_available();
    }

    fn wait_to_retry(&mut self) {
        let until = Instant::now() + self.retry_wait;
        self.retry_wait = (self.retry_wait * 2).min(RETRY_BOUNDS.1);
        while Instant::now() < until && self.replica.proposals.queue_state() != QueueState::Closed {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
