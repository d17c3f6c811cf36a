//! The end of a call before its work is done: by the client, by the time limit, by the end of the input.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lookalike_batch::run::{ProgressListener, RunStage};
use lookalike_io::source::BadRow;

use crate::commands::shared::documents::lock_ignoring_poison;

/// Number of bad rows that an answer names.
const NAMED_ROWS: usize = 3;

/// Panic payload that unwinds a run which must stop. It is no mistake, so no hook of panics sees it.
pub(super) struct CallStopped;

/// Watches the run of a call. A run stops at its next report of progress by unwinding, which also cleans up unfinished
/// work.
pub(super) struct CallWatch {
    is_cancelled: AtomicBool,
    begun: Instant,
    timeout: Duration,
    bad_rows: AtomicU64,
    named_rows: Mutex<Vec<String>>,
}

impl CallWatch {
    /// Creates the watch of a call that begins now.
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            is_cancelled: AtomicBool::new(false),
            begun: Instant::now(),
            timeout,
            bad_rows: AtomicU64::new(0),
            named_rows: Mutex::default(),
        }
    }

    /// Makes the call stop, without an answer.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Returns the time that is left.
    pub(super) fn remaining_time(&self) -> Duration {
        self.timeout.saturating_sub(self.begun.elapsed())
    }

    /// Returns `true` if the call must stop.
    pub(super) fn is_over(&self) -> bool {
        self.is_cancelled() || self.remaining_time().is_zero()
    }

    /// Unwinds if the call must stop.
    pub(super) fn stop_if_over(&self) {
        if self.is_over() && !std::thread::panicking() {
            resume_unwind(Box::new(CallStopped));
        }
    }

    /// Returns the first bad rows with their reasons, as messages.
    pub(super) fn named_rows(&self) -> Vec<String> {
        lock_ignoring_poison(&self.named_rows).clone()
    }
}

impl ProgressListener for CallWatch {
    fn begin_stage(&self, _: RunStage, _: Option<u64>) {
        self.stop_if_over();
    }

    fn advance_stage(&self, _: u64) {
        self.stop_if_over();
    }

    fn report_bad_row(&self, row: &BadRow) {
        if self.bad_rows.fetch_add(1, Ordering::Relaxed) < NAMED_ROWS as u64 {
            let named = format!("{}:{}: {}", row.file, row.line, row.reason);
            lock_ignoring_poison(&self.named_rows).push(named);
        }
    }
}
