//! Rests between pieces of maintenance.

use std::time::{Duration, Instant};

/// Rests between pieces of the work of [`run_maintenance`](crate::Collection::run_maintenance), so that the
/// work takes a quarter of the time, and others have the disk and the processors in between.
#[derive(Debug)]
pub struct MaintenancePace {
    worked_since: Instant,
}

/// Length of a rest as a multiple of the work before it.
const REST_PER_WORK: u32 = 3;

/// Longest rest.
const LONGEST_REST: Duration = Duration::from_millis(300);

impl MaintenancePace {
    /// Begins the first piece of work now.
    #[expect(clippy::new_without_default, reason = "it notes the time")]
    pub fn new() -> Self {
        Self {
            worked_since: Instant::now(),
        }
    }

    /// Rests after a piece of work.
    pub fn rest(&mut self) {
        let worked = self.worked_since.elapsed();
        std::thread::sleep((REST_PER_WORK * worked).min(LONGEST_REST));
        self.worked_since = Instant::now();
    }
}
