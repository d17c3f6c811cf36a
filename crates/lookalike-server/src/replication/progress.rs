//! How far a replica is, and why it stopped.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lookalike_log::StoreError;
use tokio::sync::watch;

use super::machine_time_us;
use crate::api::problem::{ApiProblem, ProblemCode};

/// Progress of a replica. All of it is read by requests while the threads of the replica change it.
pub(crate) struct ReplicaProgress {
    /// Number of the last record that was applied.
    applied: watch::Sender<u64>,
    /// Number of the last record that is known to exist.
    newest: AtomicU64,
    /// Time of the last record that was applied, in microseconds since 1970.
    applied_time_us: AtomicI64,
    /// Number of the last asked look at the end of the log that was made.
    answered_look: watch::Sender<u64>,
    /// Number of the last record at the first look that found no other behind it; `u64::MAX` before.
    first_end: AtomicU64,
    /// `true` once the replica has applied that record.
    is_caught_up: AtomicBool,
    /// Reason why the replica stopped; never cleared.
    stopped: Mutex<Option<String>>,
    /// Error of the object store, while it lasts.
    unavailable: Mutex<Option<StoreOutage>>,
    /// Reason why the disk has no room, while the replica waits for some.
    disk_wait: Mutex<Option<String>>,
    /// `true` from the start of the thread that writes marks to its last mark.
    writes_marks: watch::Sender<bool>,
    pub(crate) appended: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) store_errors: AtomicU64,
}

/// Time after which an error of the store that lasts until somebody changes something is logged again.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);

/// An error of the object store that lasts.
struct StoreOutage {
    error: StoreError,
    logged: Instant,
}

impl StoreOutage {
    /// Returns `true` if an error after this one is to be logged: it is of another kind, or a permanent one lasts.
    fn is_log_due(&self, error: &StoreError, now: Instant) -> bool {
        self.error.is_retryable != error.is_retryable
            || !error.is_retryable && now.duration_since(self.logged) >= REMINDER_INTERVAL
    }

    /// Returns the error as requests and `/readyz` show it.
    fn describe(&self) -> String {
        let error = &self.error;
        if error.is_retryable {
            error.to_string()
        } else {
            format!(
                "the store refuses its requests until its settings or the credentials are changed: {error}"
            )
        }
    }
}

/// Lag of a replica behind the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReplicaLag {
    pub(crate) records: u64,
    /// Age of the last applied record, or 0 if all known ones are applied.
    pub(crate) time: Duration,
}

impl ReplicaProgress {
    pub(super) fn new(applied: u64) -> Self {
        Self {
            applied: watch::Sender::new(applied),
            newest: AtomicU64::new(applied),
            applied_time_us: AtomicI64::new(0),
            answered_look: watch::Sender::new(0),
            first_end: AtomicU64::new(u64::MAX),
            is_caught_up: AtomicBool::new(false),
            stopped: Mutex::default(),
            unavailable: Mutex::default(),
            disk_wait: Mutex::default(),
            writes_marks: watch::Sender::new(false),
            appended: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            store_errors: AtomicU64::new(0),
        }
    }

    pub(crate) fn applied_record(&self) -> u64 {
        *self.applied.borrow()
    }

    pub(super) fn subscribe_applied(&self) -> watch::Receiver<u64> {
        self.applied.subscribe()
    }

    pub(super) fn note_applied(&self, record: u64, time_us: i64) {
        self.applied_time_us.store(time_us, Relaxed);
        self.applied.send_replace(record);
        self.note_if_caught_up();
    }

    /// The lock of the applied record orders the two threads that call this: the later one sees both numbers.
    fn note_if_caught_up(&self) {
        let applied = self.applied_record();
        if applied >= self.first_end.load(Relaxed) && !self.is_caught_up.swap(true, Relaxed) {
            tracing::info!(record = applied, "ready: follows the shared log");
        }
    }

    pub(super) fn note_newest(&self, record: u64) {
        self.newest.fetch_max(record, Relaxed);
    }

    pub(super) fn subscribe_looks(&self) -> watch::Receiver<u64> {
        self.answered_look.subscribe()
    }

    /// Returns the number of the last record that is known to exist.
    pub(super) fn newest_record(&self) -> u64 {
        self.newest.load(Relaxed)
    }

    /// Notes that there was no record behind the newest known one at a look that was asked for, or at a later one.
    pub(super) fn note_end_of_log(&self, look: u64) {
        self.answered_look.send_if_modified(|answered| {
            let is_new = look > *answered;
            *answered = look.max(*answered);
            is_new
        });
        let newest = self.newest_record();
        let first = self
            .first_end
            .compare_exchange(u64::MAX, newest, Relaxed, Relaxed);
        if first.is_ok() {
            self.note_if_caught_up();
        }
    }

    pub(crate) fn current_lag(&self) -> ReplicaLag {
        let applied = self.applied_record();
        let records = self.newest.load(Relaxed).saturating_sub(applied);
        let age_us = machine_time_us().saturating_sub(self.applied_time_us.load(Relaxed));
        let age = Duration::from_micros(age_us.max(0) as u64);
        let has_time = self.applied_time_us.load(Relaxed) > 0;
        let time = if records > 0 && has_time {
            age
        } else {
            Duration::ZERO
        };
        ReplicaLag { records, time }
    }

    /// Stops the replica: it applies and accepts nothing more.
    pub(crate) fn stop(&self, reason: &str) {
        let mut stopped = lock(&self.stopped);
        if stopped.is_none() {
            tracing::error!(
                reason,
                "the replica has stopped: it refuses changes, and answers queries by its last state"
            );
            *stopped = Some(reason.to_owned());
        }
    }

    pub(crate) fn stop_reason(&self) -> Option<String> {
        lock(&self.stopped).clone()
    }

    /// Notes that a thread writes marks from now on.
    pub(super) fn note_marks(&self) {
        self.writes_marks.send_replace(true);
    }

    /// Notes that the last mark is written.
    pub(super) fn note_last_mark(&self) {
        self.writes_marks.send_replace(false);
    }

    /// Waits until the last mark of a replica that stops is written.
    pub(crate) async fn wait_for_last_mark(&self) {
        // The sender lives as long as the replica.
        let _ = self
            .writes_marks
            .subscribe()
            .wait_for(|writes| !writes)
            .await;
    }

    /// Notes an error of the object store, after which the request is repeated. A permanent one is logged every minute,
    /// because it lasts until somebody mends it.
    pub(super) fn note_unavailable(&self, error: StoreError, now: Instant) {
        self.store_errors.fetch_add(1, Relaxed);
        let mut known = lock(&self.unavailable);
        let is_due = known
            .as_ref()
            .is_none_or(|known| known.is_log_due(&error, now));
        let logged = match &*known {
            Some(known) if !is_due => known.logged,
            _ => now,
        };
        let outage = StoreOutage { error, logged };
        let shown = is_due.then(|| outage.describe());
        let is_retryable = outage.error.is_retryable;
        *known = Some(outage);
        drop(known);
        match shown {
            Some(error) if is_retryable => {
                tracing::warn!(error, "the shared log cannot be reached: changes wait");
            }
            Some(error) => {
                tracing::error!(error, "the shared log cannot be used: changes wait");
            }
            None => {}
        }
    }

    pub(super) fn note_available(&self) {
        if lock(&self.unavailable).take().is_some() {
            tracing::info!("the shared log can be reached again");
        }
    }

    /// Notes that the replica waits for room on its disk, and why, or that it does not any more.
    pub(super) fn note_disk_wait(&self, reason: Option<String>) {
        *lock(&self.disk_wait) = reason;
    }

    /// Returns in parentheses why changes wait, if it is known.
    fn waiting_reason(&self) -> String {
        let disk = || {
            let reason = lock(&self.disk_wait).clone();
            reason.map(|reason| format!("this replica waits for room on its disk: {reason}"))
        };
        let reason = self.store_error().or_else(disk);
        reason.map_or_else(String::new, |reason| format!(" ({reason})"))
    }

    /// Returns the error of the object store, while it lasts.
    pub(crate) fn store_error(&self) -> Option<String> {
        lock(&self.unavailable).as_ref().map(StoreOutage::describe)
    }

    /// Checks that the replica accepts changes.
    ///
    /// # Errors
    /// [`ProblemCode::LogStopped`] if it has stopped, and [`ProblemCode::CatchingUp`] if it has not caught up yet.
    pub(crate) fn check_running(&self) -> Result<(), ApiProblem> {
        if let Some(reason) = self.stop_reason() {
            let detail = format!("this replica has stopped: {reason}");
            return Err(ApiProblem::new(ProblemCode::LogStopped, detail));
        }
        if !self.is_caught_up() {
            let detail =
                "this replica is catching up with the shared log: ask another one, or later";
            return Err(ApiProblem::new(ProblemCode::CatchingUp, detail));
        }
        Ok(())
    }

    pub(crate) fn is_caught_up(&self) -> bool {
        self.is_caught_up.load(Relaxed)
    }

    /// Returns the problem of a change for which there is no room, because earlier ones wait for the log.
    pub(super) fn full_queue_problem(&self) -> ApiProblem {
        let reason = self.waiting_reason();
        let detail =
            format!("too many changes wait for the shared log{reason}: send the same again later");
        ApiProblem::new(ProblemCode::LogUnavailable, detail)
    }

    /// Returns the problem of a change that was on its way when the replica stopped; `None` if it runs.
    pub(super) fn dropped_problem(&self) -> Option<ApiProblem> {
        let reason = self.stop_reason()?;
        let detail = format!(
            "this replica has stopped while the change was on its way, so its outcome is unknown: send the same again to \
             another replica ({reason})"
        );
        Some(ApiProblem::new(ProblemCode::LogStopped, detail))
    }

    /// Returns the problem of a change whose record did not come in time.
    pub(crate) fn unavailable_problem(&self) -> ApiProblem {
        let seconds = super::PATIENCE.as_secs();
        let reason = self.waiting_reason();
        let detail = format!(
            "the change was not in the shared log and applied within {seconds} s{reason}, so its outcome is unknown: \
             send the same again"
        );
        ApiProblem::new(ProblemCode::LogUnavailable, detail)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica has caught up with the end that it has seen first, however fast others go on.
    #[test]
    fn replica_catches_up_while_others_write() {
        let progress = ReplicaProgress::new(3);
        progress.note_newest(10);
        progress.note_end_of_log(1);
        progress.note_newest(20);
        progress.note_applied(9, 1);
        assert!(!progress.is_caught_up());
        progress.note_end_of_log(2);
        assert!(!progress.is_caught_up());
        progress.note_applied(10, 1);
        assert!(progress.is_caught_up());
        let at_end = ReplicaProgress::new(0);
        at_end.note_end_of_log(0);
        assert!(at_end.is_caught_up());
    }

    /// A client is told apart that its change was refused, and that nobody knows what became of it.
    #[test]
    fn dropped_changes_have_an_unknown_outcome() {
        let progress = ReplicaProgress::new(0);
        assert!(progress.dropped_problem().is_none());
        progress.stop("record 4 is damaged");
        let dropped = progress.dropped_problem().unwrap().detail;
        assert!(dropped.contains("unknown: send the same again to another replica"));
        assert!(dropped.contains("record 4 is damaged"), "{dropped}");
        let refused = progress.check_running().unwrap_err().detail;
        assert_eq!(refused, "this replica has stopped: record 4 is damaged");
    }

    /// A permanent error of the store is logged every minute and names what to do; one that passes is logged once.
    #[test]
    fn lasting_errors_of_the_store_are_repeated() {
        let progress = ReplicaProgress::new(0);
        let begin = Instant::now();
        let logged_at = || lock(&progress.unavailable).as_ref().unwrap().logged;
        let note = |error: &StoreError, seconds: u64| {
            let now = begin + Duration::from_secs(seconds);
            progress.note_unavailable(error.clone(), now);
            logged_at().duration_since(begin).as_secs()
        };
        let (passing, lasting) = (
            StoreError::retryable("no answer"),
            StoreError::permanent("access denied"),
        );
        let logged = [0, 70, 140].map(|seconds| note(&passing, seconds));
        assert_eq!(logged, [0, 0, 0]);
        assert_eq!(progress.store_error().unwrap(), "no answer");
        let logged = [141, 200, 201, 260, 261].map(|seconds| note(&lasting, seconds));
        assert_eq!(logged, [141, 141, 201, 201, 261]);
        let shown = progress.unavailable_problem().detail;
        assert!(
            shown.contains("access denied") && shown.contains("credentials"),
            "{shown}"
        );
        progress.note_available();
        assert_eq!(progress.store_error(), None);
        assert_eq!(progress.store_errors.load(Relaxed), 8);
    }
}
