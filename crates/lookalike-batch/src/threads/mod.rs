//! The threads of a run: a pool of a given size, idle pools for the next run, and pools of the calling thread.

mod caller_pool;
mod idle_pools;

use lookalike_io::error::{Error, Result};
use lookalike_system::HAS_THREADS;

pub use self::caller_pool::run_in_caller;

/// Runs `work` in a thread pool of the given size: the one of the calling thread if it has that size, else one of its
/// own, or for one thread an idle one. Where no thread can be started, it is that of the calling thread.
///
/// # Errors
/// If the threads cannot be started, and the errors of `work`.
pub fn run_in_pool<T: Send>(threads: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if rayon::current_thread_index().is_some() && rayon::current_num_threads() == threads {
        return work();
    }
    if threads > 1 {
        return start_pool(threads)?.install(work);
    }
    if !HAS_THREADS {
        return run_in_caller(work);
    }
    let pool = match idle_pools::take_pool() {
        Some(pool) => pool,
        None => start_pool(1)?,
    };
    let done = pool.install(work);
    idle_pools::give_back(pool);
    done
}

fn start_pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|cause| {
        Error::usage_error(format!("cannot start {threads} threads: {cause}")).with_source(cause)
    })
}
