//! How far a replica is, and why it stopped.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    /// `true` once the replica has applied all records that existed at some moment.
    is_caught_up: AtomicBool,
    /// Reason why the replica stopped; never cleared.
    stopped: Mutex<Option<String>>,
    /// Error of the object store, while it lasts.
    unavailable: Mutex<Option<String>>,
    /// `true` from the start of the thread that writes marks to its last mark.
    writes_marks: watch::Sender<bool>,
    pub(crate) appended: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) store_errors: AtomicU64,
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
            is_caught_up: AtomicBool::new(false),
            stopped: Mutex::default(),
            unavailable: Mutex::default(),
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
        if self.applied_record() >= self.newest.load(Relaxed)
            && !self.is_caught_up.swap(true, Relaxed)
        {
            tracing::info!(record = self.applied_record(), "follows the shared log");
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

    /// Notes an error of the object store.
    pub(super) fn note_unavailable(&self, error: &str) {
        self.store_errors.fetch_add(1, Relaxed);
        let known = lock(&self.unavailable).replace(error.to_owned());
        if known.is_none() {
            tracing::warn!(error, "the shared log cannot be reached: changes wait");
        }
    }

    pub(super) fn note_available(&self) {
        if lock(&self.unavailable).take().is_some() {
            tracing::info!("the shared log can be reached again");
        }
    }

    /// Returns the error of the object store, while it lasts.
    pub(crate) fn store_error(&self) -> Option<String> {
        lock(&self.unavailable).clone()
    }

    /// Checks that the replica accepts changes.
    ///
    /// # Errors
    /// [`ProblemCode::LogStopped`] if it has stopped, and [`ProblemCode::CatchingUp`] if it has not caught up yet.
    pub(super) fn check_running(&self) -> Result<(), ApiProblem> {
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
        let reason = self.store_error();
        let reason = reason.map_or_else(String::new, |error| format!(" ({error})"));
        let detail =
            format!("too many changes wait for the shared log{reason}: send the same again later");
        ApiProblem::new(ProblemCode::LogUnavailable, detail)
    }

    /// Returns the problem of a change whose record did not come in time.
    pub(crate) fn unavailable_problem(&self) -> ApiProblem {
        let seconds = super::PATIENCE.as_secs();
        let reason = self.store_error();
        let reason = reason.map_or_else(String::new, |error| format!(" ({error})"));
        let detail = format!(
            "the shared log has not taken the change within {seconds} s{reason}, so its outcome is unknown: send the \
             same again"
        );
        ApiProblem::new(ProblemCode::LogUnavailable, detail)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
