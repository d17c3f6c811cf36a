//! Pools that consist of the calling thread.
//!
//! A run over a few short texts takes less time than waking another thread and waiting for it. In such a pool its
//! parallel loops are plain ones. Runs on different threads never wait for each other, and a process that forks keeps
//! the pool of the thread that forked.
//!
//! Limit: rayon never frees the registry of such a pool, some kilobytes, even after its thread has ended. Only the
//! first [`MAX_POOLS`] threads therefore get one. Others hand their runs to an idle pool.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike_io::error::Result;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Largest number of threads that get a pool of their own.
const MAX_POOLS: usize = 64;

/// Number of threads that have asked for a pool of their own.
static REQUESTED_POOLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CALLER_POOL: OnceCell<Option<ThreadPool>> = const { OnceCell::new() };
}

/// Runs `work` in the calling thread, in a pool of this thread alone. Runs that `work` starts with one thread stay in
/// the calling thread too.
///
/// Use it for work that takes less than some milliseconds. Parallel loops of this thread outside a pool then run in its
/// own pool as well, so larger work needs a pool or a thread of its own.
///
/// # Errors
/// The errors of `work`, and those of [`run_in_pool`](super::run_in_pool).
pub fn run_in_caller<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    CALLER_POOL.with(|pool| match pool.get_or_init(start_pool) {
        Some(pool) => pool.install(work),
        None => super::run_in_pool(1, work),
    })
}

/// Returns a pool of this thread. Returns `None` if enough threads have one, or if the thread belongs to another pool.
fn start_pool() -> Option<ThreadPool> {
    if REQUESTED_POOLS.fetch_add(1, Ordering::Relaxed) >= MAX_POOLS {
        return None;
    }
    let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    pool.build().ok()
}

#[cfg(test)]
mod tests {
    use std::thread::{current, scope};

    use lookalike_io::error::Error;

    use super::*;
    use crate::threads::run_in_pool;

    // One test, because all tests share the limit.
    #[test]
    fn small_work_stays_in_its_thread_up_to_a_number_of_threads() {
        let count = || Ok(rayon::current_num_threads());
        let nested = || run_in_pool(1, || Ok((current().id(), rayon::current_num_threads())));
        for _ in 0..3 {
            assert_eq!(run_in_caller(nested).unwrap(), (current().id(), 1));
        }
        // A run of several threads takes other threads.
        assert_eq!(run_in_caller(|| run_in_pool(2, count)).unwrap(), 2);
        let failed = run_in_caller(|| -> Result<()> { Err(Error::usage_error("no")) });
        assert_eq!(failed.unwrap_err().to_string(), "no");
        for _ in 0..MAX_POOLS + 8 {
            let alone = scope(|scope| scope.spawn(|| run_in_caller(count)).join().unwrap());
            assert_eq!(alone.unwrap(), 1);
        }
        // The thread of another pool has no pool of its own.
        assert_eq!(run_in_pool(2, || run_in_caller(count)).unwrap(), 1);
    }
}
