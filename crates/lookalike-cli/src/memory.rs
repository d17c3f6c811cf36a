//! Where the program has its memory from.

use libmimalloc_sys::{mi_collect, mi_option_set_default, mi_option_t};

/// Documents of many sizes are made by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of `mi_option_purge_delay`, which the bindings do not name.
const PURGE_DELAY: mi_option_t = 15;

/// What is free goes back to the system after so many milliseconds. The default, a second, is as long as
/// whole stages of a run: the memory of one would stay taken while the next takes its own.
const MILLISECONDS: std::ffi::c_long = 50;

/// Lets the allocator keep free memory for a short time only, unless `MIMALLOC_PURGE_DELAY` says
/// otherwise.
pub(crate) fn give_back_soon() {
    // SAFETY: sets a number that the allocator reads; no other thread runs yet.
    unsafe { mi_option_set_default(PURGE_DELAY, MILLISECONDS) }
}

/// As many milliseconds for a service, that goes on asking for as much: giving back and taking again takes
/// part of the time of opening a collection.
const OF_A_SERVICE: std::ffi::c_long = 10_000;

/// Lets the allocator keep free memory for some seconds, likewise.
pub(crate) fn give_back_later() {
    // SAFETY: sets a number that the allocator reads whenever it has freed something.
    unsafe { mi_option_set_default(PURGE_DELAY, OF_A_SERVICE) }
}

/// Gives back at once what is free, from all threads of the pool that this is called in: the next stage of
/// a run asks for other sizes. Does nothing outside of a pool.
pub(crate) fn give_back() {
    if rayon::current_thread_index().is_some() {
        // SAFETY: the allocator gives back pages of this thread that hold nothing.
        rayon::broadcast(|_| unsafe { mi_collect(true) });
    }
}
