//! Group commit: of all that wait for the disk, whoever finds nobody writing writes for all.
//!
//! After a write that failed, or panicked, nobody writes again and nothing more is said to be on disk.

use std::sync::PoisonError;

use crate::sync::{Condvar, Mutex, MutexGuard};

/// How far the disk has come, and who waits for it.
#[derive(Debug)]
pub(crate) struct Group {
    progress: Mutex<Progress>,
    /// Waits for the progress to change.
    changed: Condvar,
}

#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// The number of the last row on disk.
    pub(crate) durable: u64,
    /// Whether somebody is writing for all.
    writing: bool,
    /// Why nothing is written any more.
    pub(crate) failed: Option<String>,
}

impl Group {
    /// All up to a row are on disk.
    pub(crate) fn new(durable: u64) -> Self {
        Self {
            progress: Mutex::new(Progress {
                durable,
                writing: false,
                failed: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// How far the disk has come.
    pub(crate) fn progress(&self) -> Progress {
        self.lock().clone()
    }

    /// Waits until a row is on disk, or writes it with all else that waits: `write` returns the number
    /// of the last row that is on disk then, which is not below `last`, or why nothing is written any
    /// more.
    pub(crate) fn wait_for(
        &self,
        last: u64,
        write: impl Fn() -> Result<u64, String>,
    ) -> Result<(), String> {
        while self.wait_for_turn(|progress| progress.durable >= last)? {
            // Why it failed is told by the next look at the progress.
            let _ = self.have_turn(&write);
        }
        Ok(())
    }

    /// Waits until nobody writes, and writes then, whether anything waits or not: `write` returns the number
    /// of the last row that is on disk then, or why nothing is written any more.
    pub(crate) fn take_turn(
        &self,
        write: impl FnOnce() -> Result<u64, String>,
    ) -> Result<(), String> {
        self.wait_for_turn(|_| false)?;
        self.have_turn(write)
    }

    /// Waits until this thread is the only one that writes, and returns `true`; or `false` once what it
    /// waits for has come about.
    fn wait_for_turn(&self, is_done: impl Fn(&Progress) -> bool) -> Result<bool, String> {
        let mut progress = self.lock();
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

    fn have_turn(&self, write: impl FnOnce() -> Result<u64, String>) -> Result<(), String> {
        let mut turn = Turn {
            group: self,
            written: Err("a thread has panicked".to_owned()),
        };
        turn.written = write();
        turn.written.clone().map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // Every change of it is made as a whole.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody's turn to write; it ends even if that panics.
struct Turn<'a> {
    group: &'a Group,
    written: Result<u64, String>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut progress = self.group.lock();
        progress.writing = false;
        match &self.written {
            Ok(durable) => progress.durable = *durable,
            Err(why) => progress.failed = Some(why.clone()),
        }
        drop(progress);
        self.group.changed.notify_all();
    }
}
