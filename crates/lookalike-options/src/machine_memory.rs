//! The memory that a run or a service may take, as the system states it.
//!
//! It is the memory of the machine, or the smallest limit of the control groups that the process is in. Such a group is
//! for example its container or its unit under systemd. A process that takes more is killed. macOS states nothing.

use lookalike_system::{available_memory, total_memory};

/// Part of the free memory that a run takes without `--memory`.
const DEFAULT_MEMORY_SHARE: f64 = 0.8;

/// Returns the bytes of memory that the process may take, if the system states it.
pub fn memory_limit() -> Option<u64> {
    total_memory()
}

/// Returns the bytes of memory that a run takes without `--memory`, if the system states it: a share of what the machine
/// has free and of what the control groups of the process allow.
pub fn default_memory() -> Option<u64> {
    let available = available_memory()?;
    Some((DEFAULT_MEMORY_SHARE * available as f64) as u64)
}
