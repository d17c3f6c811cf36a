//! Times of commits: how long it takes until what was waiting is on disk.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds, in seconds, of the buckets of [`SyncLatency`].
pub const SYNC_BOUNDS_SECONDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0, 60.0,
];

/// Times of the commits of a collection since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncLatency {
    /// Numbers of commits by their time: at most a bound of [`SYNC_BOUNDS_SECONDS`] (≤), and above the bound
    /// before it. Commits above the last bound are in none.
    pub buckets: [u64; SYNC_BOUNDS_SECONDS.len()],
    /// Number of commits.
    pub count: u64,
    /// Sum of their times in microseconds.
    pub microseconds: u64,
}

impl SyncLatency {
    /// Adds the commits of another collection.
    pub fn add_commits(&mut self, other: &Self) {
        for (sum, count) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += count;
        }
        self.count += other.count;
        self.microseconds += other.microseconds;
    }
}

/// Counts commits by their time, on any thread.
#[derive(Debug, Default)]
pub(crate) struct SyncTimer {
    buckets: [AtomicU64; SYNC_BOUNDS_SECONDS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
}

impl SyncTimer {
    pub(crate) fn observe_commit(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = SYNC_BOUNDS_SECONDS
            .iter()
            .position(|&bound| seconds <= bound);
        if let Some(bucket) = bucket {
            self.buckets[bucket].fetch_add(1, Relaxed);
        }
        self.microseconds
            .fetch_add(took.as_micros() as u64, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    pub(crate) fn current_latency(&self) -> SyncLatency {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        SyncLatency {
            buckets: self.buckets.each_ref().map(load),
            count: load(&self.count),
            microseconds: load(&self.microseconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds are inclusive (≤).
    #[test]
    fn commits_are_counted_by_their_time() {
        let timer = SyncTimer::default();
        for microseconds in [1, 500, 501, 1000, 1001, 60_000_000, 60_000_001] {
            timer.observe_commit(Duration::from_micros(microseconds));
        }
        let mut latency = timer.current_latency();
        assert_eq!(latency.buckets, [2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((latency.count, latency.microseconds), (7, 120_003_004));
        latency.add_commits(&timer.current_latency());
        assert_eq!((latency.count, latency.buckets[11]), (14, 2));
    }
}
