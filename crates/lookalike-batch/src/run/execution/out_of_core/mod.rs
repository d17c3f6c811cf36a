//! Runs in less memory than the corpus takes: sketches, bucket keys and features go to temporary files.
//!
//! ```text
//! reading    rows → sketches → a file, in input order              spilled_reading
//!            keys, features → a file                               (engine: shuffle::LocalScatterer)
//! linking    keys that several documents have → parts              linking
//!            a part at a time → links → components                 (engine: shuffle::BlockGatherer)
//! grouping   whole components → groups that fit into the memory    grouping, component_groups
//! resolving  a group at a time → verdicts or pairs                 resolving (engine: dedup)
//! ```
//!
//! A document whose text an earlier one has is in no group: it gets the verdict of the earliest one with its text, or,
//! where that is removed, a verdict from a second round.
//!
//! Documents that match are always in the same component, and every group is resolved as a run in memory resolves
//! its documents. So the results are those of a run in memory, byte for byte, whatever the limit is.
//!
//! The place and the number of its row, some four bytes, and 24 bytes stay in memory for every document. Its id goes to a
//! temporary file too, and so do verdicts, until all documents are decided.
//! [`MemoryPlan`](crate::memory::run_plan::MemoryPlan) says before the run how much that is, and refuses a limit in
//! which it does not fit.

mod component_groups;
pub(crate) mod grouping;
mod linking;
pub(in crate::run) mod resolving;
pub(in crate::run) mod spilled_reading;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::grouping::SpilledSummary;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the value of a mutex that no thread uses any more.
fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
