//! Thread pools of one thread that wait for their next run.
//!
//! Starting a thread and ending it takes longer than a run over a few short texts, for example of a program that
//! compares one pair after another. Runs at the same time take different pools, so that none waits for another one.
//!
//! A process that forks does not have the threads of its parent. Each pool therefore names the process that started it,
//! and another process leaves it alone: even dropping it could wait for a thread that does not exist.

use std::sync::Mutex;

use rayon::ThreadPool;

/// Largest number of pools that wait.
const MAX_IDLE_POOLS: usize = 8;

/// Idle pools, each with the process that started it.
static IDLE_POOLS: Mutex<Vec<(u32, ThreadPool)>> = Mutex::new(Vec::new());

/// Returns an idle pool of this process, if there is one.
pub(crate) fn take_pool() -> Option<ThreadPool> {
    // `try_lock` does not wait: in a forked process no thread may be left that releases the lock.
    let (process, pool) = IDLE_POOLS.try_lock().ok()?.pop()?;
    if process == std::process::id() {
        return Some(pool);
    }
    std::mem::forget(pool);
    None
}

/// Keeps a pool for the next run, or ends its thread if enough pools wait.
pub(crate) fn give_back(pool: ThreadPool) {
    if let Ok(mut idle) = IDLE_POOLS.try_lock()
        && idle.len() < MAX_IDLE_POOLS
    {
        idle.push((std::process::id(), pool));
    }
}

#[cfg(test)]
mod tests {
    use crate::threads::run_in_pool;

    #[test]
    fn a_pool_is_used_again_and_never_by_two_runs() {
        let thread = || std::thread::current().id();
        let run = || run_in_pool(1, || Ok((thread(), rayon::current_num_threads())));
        let (first, threads) = run().unwrap();
        assert_eq!(threads, 1);
        let mut later_threads = (0..20).map(|_| run().unwrap().0);
        assert!(later_threads.any(|thread| thread == first));
        let both = std::thread::scope(|scope| {
            let nested = run_in_pool(1, || {
                let other = scope.spawn(|| run_in_pool(1, || Ok(thread())));
                Ok((thread(), other.join().unwrap()?))
            });
            nested.unwrap()
        });
        assert_ne!(both.0, both.1);
    }
}
