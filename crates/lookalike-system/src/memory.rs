//! Memory that a process may take.

use crate::current;

/// Returns the bytes of memory that the process may take, if the system states it: those of the machine, or the smallest
/// limit of the control groups that the process is in, for example its container.
pub fn total_memory() -> Option<u64> {
    current::total_memory()
}

/// Returns the bytes of memory that are free, within the limits of [`total_memory`], if the system states it.
pub fn available_memory() -> Option<u64> {
    current::available_memory()
}
