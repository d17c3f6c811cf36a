//! A fair read-write lock. Waiters get it in the order in which they came.
//!
//! A thread that verifies costly documents takes the lock turn after turn. The lock of the standard library lets the
//! thread that releases it take it again before a waiting thread is awake, so that others wait for seconds. The lock of
//! `parking_lot` passes to the waiting threads.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A value that is not used any more after a thread has panicked while it changed it.
#[derive(Debug)]
pub(crate) struct FairLock<T> {
    lock: RwLock<T>,
    is_poisoned: AtomicBool,
}

impl<T> FairLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            lock: RwLock::new(value),
            is_poisoned: AtomicBool::new(false),
        }
    }

    /// Waits for the lock to read. Returns `None` if a thread has panicked while it changed the value.
    pub(crate) fn read(&self) -> Option<RwLockReadGuard<'_, T>> {
        let guard = self.lock.read();
        (!self.is_poisoned.load(Ordering::Relaxed)).then_some(guard)
    }

    /// Waits for the lock to change the value. Returns `None` if a thread has panicked while it changed it.
    pub(crate) fn write(&self) -> Option<WriteGuard<'_, T>> {
        let guard = WriteGuard {
            guard: self.lock.write(),
            is_poisoned: &self.is_poisoned,
        };
        (!self.is_poisoned.load(Ordering::Relaxed)).then_some(guard)
    }
}

/// Access to change the value of a [`FairLock`].
pub(crate) struct WriteGuard<'a, T> {
    guard: RwLockWriteGuard<'a, T>,
    is_poisoned: &'a AtomicBool,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        // The lock is released after this, which publishes it.
        if std::thread::panicking() {
            self.is_poisoned.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn poisoned_value_is_not_used() {
        let lock = FairLock::new(1);
        *lock.write().unwrap() += 1;
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let _guard = lock.read();
                panic!("a reader changes nothing");
            });
            assert!(reader.join().is_err());
            assert_eq!(lock.read().as_deref(), Some(&2));
            let writer = scope.spawn(|| {
                let mut guard = lock.write().unwrap();
                *guard = 3;
                panic!("this change may not be complete");
            });
            assert!(writer.join().is_err());
        });
        assert!(lock.read().is_none() && lock.write().is_none());
    }

    /// A thread that holds the lock for long and takes it again at once lets another one in every time.
    #[test]
    fn returning_thread_lets_others_in() {
        let (lock, acquisitions) = (FairLock::new(()), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                for _ in 0..5 {
                    let _guard = lock.write();
                }
            });
            while !waits.is_finished() {
                let _guard = lock.write();
                acquisitions.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        assert!(
            acquisitions.load(Ordering::Relaxed) < 50,
            "{acquisitions:?}"
        );
    }
}
