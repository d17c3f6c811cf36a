//! Group commit: of all threads that wait for the disk, the first one that finds nobody writing writes for
//! all.
//!
//! After a write that failed or panicked, nobody writes again, and no further row is reported as durable.

use std::sync::PoisonError;

use crate::sync::{Condvar, Mutex, MutexGuard};

/// Progress of the disk, and the threads that wait for it.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    progress: Mutex<CommitProgress>,
    /// Notified when the progress changes.
    changed: Condvar,
}

#[derive(Clone, Debug)]
pub(crate) struct CommitProgress {
    /// Number of the last row on disk.
    pub(crate) durable: u64,
    /// `true` while a thread writes for all.
    writing: bool,
    /// Why nothing is written any more, if a write failed.
    pub(crate) failed: Option<String>,
}

impl GroupCommit {
    /// Starts with all rows up to `durable` on disk.
    pub(crate) fn new(durable: u64) -> Self {
        Self {
            progress: Mutex::new(CommitProgress {
                durable,
                writing: false,
                failed: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns the progress of the disk.
    pub(crate) fn current_progress(&self) -> CommitProgress {
        self.lock_progress().clone()
    }

    /// Waits until row `last` is on disk, or writes it with everything else that waits. `write` returns the
    /// number of the last row on disk, which is at least `last`, or the reason why nothing is written any
    /// more.
    pub(crate) fn wait_for_row(
        &self,
        last: u64,
        write: impl Fn() -> Result<u64, String>,
    ) -> Result<(), String> {
        while self.claim_writing(|progress| progress.durable >= last)? {
            // The next look at the progress reports a failure.
            let _ = self.write_claimed(&write);
        }
        Ok(())
    }

    /// Waits until nobody writes, and then writes, whether anything waits or not. `write` returns the number
    /// of the last row on disk, or the reason why nothing is written any more.
    pub(crate) fn write_alone(
        &self,
        write: impl FnOnce() -> Result<u64, String>,
    ) -> Result<(), String> {
        self.claim_writing(|_| false)?;
        self.write_claimed(write)
    }

    /// Waits until nobody writes, claims writing for this thread, and returns `true`. Returns `false` as soon as
    /// `is_done` holds.
    fn claim_writing(&self, is_done: impl Fn(&CommitProgress) -> bool) -> Result<bool, String> {
        let mut progress = self.lock_progress();
        loop {
            if is_done(&progress) {
                return Ok(false);
            }
            if let Some(why) = &progress.failed {
                return Err(why.clone());
            }
            if !progress.writing {
                progress.writing = true;
                return Ok(true);
            }
            progress = self
                .changed
                .wait(progress)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn write_claimed(&self, write: impl FnOnce() -> Result<u64, String>) -> Result<(), String> {
        let mut claim = WriteClaim {
            group: self,
            written: Err("a thread has panicked".to_owned()),
        };
        claim.written = write();
        claim.written.clone().map(drop)
    }

    fn lock_progress(&self) -> MutexGuard<'_, CommitProgress> {
        // Every change is made as a whole, so a poisoned lock is still consistent.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The claim of the only thread that writes. It ends on drop, even if the write panics.
struct WriteClaim<'a> {
    group: &'a GroupCommit,
    written: Result<u64, String>,
}

impl Drop for WriteClaim<'_> {
    fn drop(&mut self) {
        let mut progress = self.group.lock_progress();
        progress.writing = false;
        match &self.written {
            Ok(durable) => progress.durable = *durable,
            Err(why) => progress.failed = Some(why.clone()),
        }
        drop(progress);
        self.group.changed.notify_all();
    }
}
