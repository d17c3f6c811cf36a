//! A parallel map that starts at once, however busy the global thread pool is.
//!
//! The global pool prepares documents, thousands at a time. Checking must not wait behind them, so it has
//! threads of its own, and the calling thread works too.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use rayon::ThreadPool;

/// Items that a thread takes at a time; fewer are not worth sharing.
const ITEMS_PER_CHUNK: usize = 32;

/// One thread fewer than cores; `None` on a single core, or if no thread can be started.
static HELPER_POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let helpers = Some(cores - 1).filter(|&helpers| helpers > 0)?;
    let builder = rayon::ThreadPoolBuilder::new().num_threads(helpers);
    let named = builder.thread_name(|_| "lookalike-check".to_owned());
    named.build().ok()
});

/// Returns the results of `work` for the items from 0 to `count`, in order.
pub(crate) fn parallel_map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let chunks = count.div_ceil(ITEMS_PER_CHUNK);
    match &*HELPER_POOL {
        Some(pool) if chunks > 1 => map_in_pool(pool, count, &work),
        _ => (0..count).map(work).collect(),
    }
}

fn map_in_pool<T: Send>(
    pool: &ThreadPool,
    count: usize,
    work: &(impl Fn(usize) -> T + Sync),
) -> Vec<T> {
    let chunks = count.div_ceil(ITEMS_PER_CHUNK);
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, Vec<T>)>> = Mutex::new(Vec::with_capacity(chunks));
    let take_on = || {
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return;
            }
            let items = chunk_range(chunk, count).map(work).collect();
            made.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((chunk, items));
        }
    };
    pool.in_place_scope(|scope| {
        for _ in 0..pool.current_num_threads().min(chunks - 1) {
            scope.spawn(|_| take_on());
        }
        take_on();
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|&(chunk, _)| chunk);
    made.into_iter().flat_map(|(_, items)| items).collect()
}

fn chunk_range(chunk: usize, count: usize) -> Range<usize> {
    chunk * ITEMS_PER_CHUNK..((chunk + 1) * ITEMS_PER_CHUNK).min(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_order_with_any_number_of_threads() {
        for count in [
            0,
            1,
            ITEMS_PER_CHUNK - 1,
            ITEMS_PER_CHUNK,
            ITEMS_PER_CHUNK + 1,
            10 * ITEMS_PER_CHUNK + 3,
        ] {
            let expected: Vec<usize> = (0..count).map(|at| at * at).collect();
            assert_eq!(parallel_map(count, |at| at * at), expected);
            if count <= ITEMS_PER_CHUNK {
                continue;
            }
            for threads in [1, 2, 8] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                let pool = pool.build().unwrap();
                assert_eq!(map_in_pool(&pool, count, &|at| at * at), expected);
            }
        }
    }
}
