//! Parallel work whose results are passed on in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::error::Result;

/// Calls `work` for 0, 1, …, `count` − 1 on `threads` threads, and `hand_on` with each result in order.
/// At most one finished result per thread waits. The error that occurs first ends all work.
pub(super) fn work_in_order<S, T>(
    count: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(usize, &mut S) -> Result<T> + Sync,
    hand_on: impl FnMut(T, &mut S) -> Result<()> + Send,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    // The index whose result is next; beyond all indices after a failure.
    let turn = Mutex::new((0, hand_on));
    let moved = Condvar::new();
    let run = || -> Result<()> {
        let mut state = state();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            let result = work(index, &mut state);
            let mut guard = turn.lock().unwrap_or_else(PoisonError::into_inner);
            while guard.0 < index && result.is_ok() {
                guard = moved.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            if guard.0 > index {
                return Ok(());
            }
            let done = result.and_then(|result| (guard.1)(result, &mut state));
            guard.0 = if done.is_ok() { index + 1 } else { usize::MAX };
            moved.notify_all();
            done?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(run)).collect();
        let own = run();
        workers.into_iter().fold(own, |result, worker| {
            let other = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.and(other)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_come_in_order() {
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
    fn an_error_ends_all() {
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
}
