//! Free memory of the process: when the allocator returns it to the system.
//!
//! The program sets the functions of its allocator. Without them, for example in the Python package, the allocator of
//! the process decides by itself.

use std::sync::OnceLock;

/// Functions of the allocator of a program.
#[derive(Debug, Clone, Copy)]
pub struct FreeMemoryHooks {
    /// Makes the allocator keep free memory for some seconds, because as much is soon allocated again.
    pub keep_for_later: fn(),
    /// Returns free memory to the system at once, from all threads of the current pool.
    pub release_now: fn(),
    /// Returns free memory of the calling thread to the system.
    pub release_of_thread: fn(),
    /// Returns memory to the system that the whole process has not used for some seconds.
    pub release_unused: fn(),
}

static MEMORY_HOOKS: OnceLock<FreeMemoryHooks> = OnceLock::new();

/// Sets the functions of the allocator. Only the first call has an effect.
pub fn set_free_memory_hooks(hooks: FreeMemoryHooks) {
    MEMORY_HOOKS.get_or_init(|| hooks);
}

/// Makes the allocator keep free memory for some seconds.
pub(crate) fn keep_for_later() {
    if let Some(hooks) = MEMORY_HOOKS.get() {
        (hooks.keep_for_later)();
    }
}

/// Returns free memory to the system at once, because the next stage of a run allocates other sizes.
pub(crate) fn release_now() {
    if let Some(hooks) = MEMORY_HOOKS.get() {
        (hooks.release_now)();
    }
}

/// Returns memory to the system that the whole process has not used for some seconds.
pub(crate) fn release_unused() {
    if let Some(hooks) = MEMORY_HOOKS.get() {
        (hooks.release_unused)();
    }
}

/// Returns free memory of the calling thread to the system.
pub(crate) fn release_of_thread() {
    if let Some(hooks) = MEMORY_HOOKS.get() {
        (hooks.release_of_thread)();
    }
}
