//! A lock for one writer and many readers, in alternation.
//!
//! Both hold it for tens of microseconds, which is less than it takes to put a thread to sleep and
//! to wake it. A thread that finds the lock taken therefore spins for some time before it sleeps. A
//! waiting writer keeps further readers out, and a returning writer first lets in the readers that
//! wait, so that neither starves.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Number of attempts before sleeping, which take some hundred microseconds.
const TRIES_BEFORE_SLEEP: u32 = 1 << 13;

/// Reason why a poisoned lock is never observed.
const NEVER_POISONED: &str = "whoever panicked with the lock has left nothing to be used";

#[derive(Debug, Default)]
pub(super) struct SpinFairLock<T> {
    lock: RwLock<T>,
    writer_waits: AtomicBool,
    readers_wait: AtomicU32,
}

impl<T> SpinFairLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            lock: RwLock::new(value),
            writer_waits: AtomicBool::new(false),
            readers_wait: AtomicU32::new(0),
        }
    }

    // Relaxed ordering is enough: the flags only decide who tries, and the lock itself orders the
    // accesses to its data.

    pub(super) fn lock_read(&self) -> RwLockReadGuard<'_, T> {
        let attempt = || {
            let free = !self.writer_waits.load(Ordering::Relaxed);
            free.then(|| self.lock.try_read().ok()).flatten()
        };
        if let Some(guard) = attempt() {
            return guard;
        }
        self.readers_wait.fetch_add(1, Ordering::Relaxed);
        let guard = try_repeatedly(attempt);
        let guard = guard.unwrap_or_else(|| self.lock.read().expect(NEVER_POISONED));
        self.readers_wait.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// The caller ensures that there is at most one writer at a time.
    pub(super) fn lock_write(&self) -> RwLockWriteGuard<'_, T> {
        try_repeatedly(|| (self.readers_wait.load(Ordering::Relaxed) == 0).then_some(()));
        self.writer_waits.store(true, Ordering::Relaxed);
        let guard = try_repeatedly(|| self.lock.try_write().ok());
        let guard = guard.unwrap_or_else(|| self.lock.write().expect(NEVER_POISONED));
        self.writer_waits.store(false, Ordering::Relaxed);
        guard
    }
}

fn try_repeatedly<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    (0..TRIES_BEFORE_SLEEP).find_map(|_| {
        let done = attempt();
        if done.is_none() {
            spin_loop();
        }
        done
    })
}
