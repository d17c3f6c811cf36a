//! Where the program has its memory from.

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

/// Documents of many sizes are made by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of `mi_option_purge_delay`, which the bindings do not name.
const PURGE_DELAY: mi_option_t = 15;

/// What is free goes back to the system after so many milliseconds. The default, a second, is as long as
/// whole stages of a run: the memory of one would stay taken while the next takes its own.
const MILLISECONDS: std::ffi::c_long = 100;

/// Lets the allocator keep free memory for a short time only, unless `MIMALLOC_PURGE_DELAY` says
/// otherwise.
pub(crate) fn give_back_soon() {
    // SAFETY: sets a number that the allocator reads; no other thread runs yet.
    unsafe { mi_option_set_default(PURGE_DELAY, MILLISECONDS) }
}
