//! Parallel work whose results are passed on in order.
//!
//! Guarantees: the receiver sees the results by their ordinals 0, 1, …, whichever thread produces them;
//! memory is bounded, because a thread that is too far ahead waits; the failure that occurs first, of the
//! work or of the receiver, ends all work; a panic ends all waiting and propagates.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// A receiver that many threads share, and the results that wait for earlier ones.
pub struct OrderedResults<R, T> {
    state: Mutex<OrderedState<R, T>>,
    moved: Condvar,
    max_ahead: u64,
}

struct OrderedState<R, T> {
    /// The next ordinal that the receiver accepts.
    next: u64,
    waiting: BTreeMap<u64, T>,
    receiver: R,
    failure: Option<Error>,
}

impl<R, T> OrderedResults<R, T> {
    /// Creates a queue. A thread whose result is more than `max_ahead` ordinals ahead waits in
    /// [`finish_result`](Self::finish_result). The other methods with an ordinal wait until it is the next one.
    pub fn new(receiver: R, max_ahead: u64) -> Self {
        Self {
            state: Mutex::new(OrderedState {
                next: 0,
                waiting: BTreeMap::new(),
                receiver,
                failure: None,
            }),
            moved: Condvar::new(),
            max_ahead,
        }
    }

    /// Returns `true` if a thread has failed.
    pub fn is_stopped(&self) -> bool {
        self.lock_state().failure.is_some()
    }

    /// Uses the receiver at once, in no order.
    pub fn with_receiver<U>(&self, access: impl FnOnce(&mut R) -> U) -> U {
        access(&mut self.lock_state().receiver)
    }

    /// Begins again with the ordinal 0. Call it while no thread works and no result waits.
    pub fn restart_order(&self) {
        self.lock_state().next = 0;
    }

    /// Waits until `ordinal` is the next one, and uses the receiver. The ordinal stays the next one.
    ///
    /// # Errors
    /// If another thread has failed, and the errors of `access`.
    pub fn use_in_order<U>(
        &self,
        ordinal: u64,
        access: impl FnOnce(&mut R) -> Result<U>,
    ) -> Result<U> {
        access(&mut self.wait_until(|next| next == ordinal)?.receiver)
    }

    /// Waits until `ordinal` is the next one, uses the receiver, and goes on to the ordinal after it.
    ///
    /// # Errors
    /// The errors of [`use_in_order`](Self::use_in_order).
    pub fn finish_in_order(
        &self,
        ordinal: u64,
        access: impl FnOnce(&mut R) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.wait_until(|next| next == ordinal)?;
        access(&mut state.receiver)?;
        state.next += 1;
        self.moved.notify_all();
        Ok(())
    }

    /// Runs the work of one thread. If it fails or panics, all waiting ends.
    pub fn run_worker(&self, work: impl FnOnce() -> Result<()>) {
        let guard = self.stop_unless_done();
        match work() {
            Ok(()) => guard.mark_done(),
            Err(error) => self.record_failure(error),
        }
    }

    /// Returns a guard that ends all waiting if it is dropped before its work is done.
    pub fn stop_unless_done(&self) -> StopGuard<'_, R, T> {
        StopGuard {
            results: self,
            is_done: false,
        }
    }

    /// Returns the receiver after all work.
    ///
    /// # Errors
    /// The failure that occurred first.
    pub fn into_receiver(self) -> Result<R> {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(error) => Err(error),
            None => Ok(state.receiver),
        }
    }

    /// Waits until `is_reached` holds for the next ordinal. Returns an error if another thread has failed.
    fn wait_until(
        &self,
        is_reached: impl Fn(u64) -> bool,
    ) -> Result<MutexGuard<'_, OrderedState<R, T>>> {
        let mut state = self.lock_state();
        while state.failure.is_none() && !is_reached(state.next) {
            let waited = self.moved.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        match state.failure {
            // A placeholder: the failure that occurred first is the one that is reported.
            Some(_) => Err(Error::usage_error("another thread has failed")),
            None => Ok(state),
        }
    }

    fn record_failure(&self, error: Error) {
        self.lock_state().failure.get_or_insert(error);
        self.moved.notify_all();
    }

    fn lock_state(&self) -> MutexGuard<'_, OrderedState<R, T>> {
        // A panic in another thread propagates when the threads are joined anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: FnMut(T) -> Result<()>, T> OrderedResults<R, T> {
    /// Passes on the result of `ordinal`, and all that waited for it; or keeps it until it is the next one. The receiver
    /// runs under the lock of the queue.
    ///
    /// # Errors
    /// If another thread has failed, and the errors of the receiver.
    pub fn finish_result(&self, ordinal: u64, result: T) -> Result<()> {
        let mut state = self.wait_until(|next| next + self.max_ahead >= ordinal)?;
        state.waiting.insert(ordinal, result);
        loop {
            let next = state.next;
            let Some(result) = state.waiting.remove(&next) else {
                break;
            };
            (state.receiver)(result)?;
            state.next += 1;
        }
        self.moved.notify_all();
        Ok(())
    }
}

/// Ends all waiting if a thread fails or panics.
pub struct StopGuard<'a, R, T> {
    results: &'a OrderedResults<R, T>,
    is_done: bool,
}

impl<R, T> StopGuard<'_, R, T> {
    /// States that the thread has not failed.
    pub fn mark_done(mut self) {
        self.is_done = true;
    }
}

impl<R, T> Drop for StopGuard<'_, R, T> {
    fn drop(&mut self) {
        if !self.is_done {
            self.results
                .record_failure(Error::usage_error("a thread has failed"));
        }
    }
}

/// Calls `work` for 0, 1, …, `count` − 1 on `threads` threads, and `hand_on` with each result in order,
/// on the thread that made it. At most one finished result per thread waits.
///
/// # Errors
/// The error that occurs first; it ends all work.
pub fn work_in_order<S, T>(
    count: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(usize, &mut S) -> Result<T> + Sync,
    hand_on: impl FnMut(T, &mut S) -> Result<()> + Send,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let ordered = OrderedResults::<_, ()>::new(hand_on, 0);
    let work_through = || -> Result<()> {
        let mut state = state();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || ordered.is_stopped() {
                return Ok(());
            }
            let result = work(index, &mut state)?;
            ordered.finish_in_order(index as u64, |hand_on| hand_on(result, &mut state))?;
        }
    };
    let run = || ordered.run_worker(work_through);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(run)).collect();
        run();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    ordered.into_receiver().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_keep_input_order() {
        for threads in [1, 2, 5] {
            let mut seen = Vec::new();
            work_in_order(
                100,
                threads,
                || (),
                |index, ()| Ok(index),
                |index, ()| {
                    seen.push(index);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn first_error_ends_all_work() {
        for threads in [1, 2, 5] {
            let work = |index, (): &mut ()| {
                if index == 50 {
                    Err(Error::input_error("fifty"))
                } else {
                    Ok(index)
                }
            };
            let mut last = 0;
            let result = work_in_order(
                100,
                threads,
                || (),
                work,
                |index, ()| {
                    last = index;
                    Ok(())
                },
            );
            assert_eq!(result.unwrap_err().to_string(), "fifty");
            assert!(last < 50);
            let refuse = |index, (): &mut ()| {
                if index == 10 {
                    Err(Error::output_error("ten"))
                } else {
                    Ok(())
                }
            };
            let result = work_in_order(100, threads, || (), |index, ()| Ok(index), refuse);
            assert_eq!(result.unwrap_err().to_string(), "ten");
        }
    }

    #[test]
    fn panic_ends_all_work() {
        for threads in [1, 2, 5] {
            let work = |index, (): &mut ()| {
                assert_ne!(index, 20, "twenty");
                Ok(index)
            };
            let run = || work_in_order(100, threads, || (), work, |_, ()| Ok(()));
            let panic = std::panic::catch_unwind(run).unwrap_err();
            assert!(panic.downcast_ref::<String>().unwrap().contains("twenty"));
        }
    }
}
