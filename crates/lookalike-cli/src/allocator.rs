//! The global memory allocator of the program.
//!
//! The library of this crate does not use it, because the Python package links the library, and an extension shares its
//! process with other allocators.

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use libmimalloc_sys::{mi_collect, mi_option_set_default, mi_option_t};
use lookalike_io::sink;
use mimalloc::MiMalloc;

/// mimalloc, because documents of many sizes are allocated by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator(MiMalloc);

/// An allocator that reports an out-of-memory condition and ends the process, instead of aborting it
/// silently.
struct ReportingAllocator(MiMalloc);

// SAFETY: every call is passed to the inner allocator with the same arguments; only a null result does not
// return.
unsafe impl GlobalAlloc for ReportingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises that the inner allocator requires.
        check_not_null(unsafe { self.0.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        check_not_null(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        check_not_null(unsafe { self.0.realloc(pointer, layout, size) }, size)
    }
}

fn check_not_null(pointer: *mut u8, size: usize) -> *mut u8 {
    if pointer.is_null() {
        fail_without_memory(size);
    }
    pointer
}

/// `true` once the lack of memory was reported.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Removes incomplete outputs and ends the process with 2.
#[cold]
fn fail_without_memory(size: usize) -> ! {
    if IS_TOLD.swap(true, Ordering::SeqCst) {
        // Another thread is ending the process. If it is this one, even that needs more memory than there is.
        std::thread::sleep(std::time::Duration::from_secs(2));
        std::process::abort();
    }
    // Writing to standard error allocates nothing, and a failure cannot be reported anywhere.
    let _ = writeln!(
        std::io::stderr(),
        "lookalike: out of memory: the system refused {size} more bytes. Give fewer --threads, a \
         smaller --max-row, or the input in parts, each --against the earlier ones."
    );
    sink::abandon_all();
    std::process::exit(2)
}

/// Number of the option `mi_option_purge_delay`, which the bindings do not define.
const PURGE_DELAY: mi_option_t = 15;

/// Milliseconds after which free memory is returned to the system. The default, a second, is as long as whole
/// stages of a run, so the memory of one stage would still be held while the next allocates its own.
const PURGE_DELAY_MILLISECONDS: std::ffi::c_long = 50;

/// Makes the allocator return free memory after a short time, unless `MIMALLOC_PURGE_DELAY` is set.
pub(crate) fn give_back_soon() {
    // SAFETY: sets a number that the allocator reads; no other thread runs yet.
    unsafe { mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MILLISECONDS) }
}

/// The same for a service, which soon allocates as much again. Returning and allocating memory repeatedly
/// slows down the opening of a collection.
const OF_A_SERVICE: std::ffi::c_long = 10_000;

/// Makes the allocator keep free memory for some seconds, unless `MIMALLOC_PURGE_DELAY` is set.
pub(crate) fn give_back_later() {
    // SAFETY: sets a number that the allocator reads whenever it has freed something.
    unsafe { mi_option_set_default(PURGE_DELAY, OF_A_SERVICE) }
}

/// Returns free memory to the system at once, from all threads of the current pool, because the next stage of
/// a run allocates other sizes. Does nothing outside a pool.
pub(crate) fn release_free_memory() {
    if rayon::current_thread_index().is_some() {
        // SAFETY: the allocator only returns pages of this thread that contain no allocation.
        rayon::broadcast(|_| unsafe { mi_collect(true) });
    }
}

/// Returns free memory of this thread to the system at once, because the thread may have nothing to do for long.
pub(crate) fn release_memory_of_thread() {
    // SAFETY: the allocator only returns pages of this thread that contain no allocation.
    unsafe { mi_collect(true) }
}

/// Returns memory to the system that has been free for as long as [`give_back_later`] says. The allocator does so by itself
/// only while it is used.
pub(crate) fn release_unused_memory() {
    // SAFETY: the allocator only returns pages that contain no allocation.
    unsafe { mi_collect(false) }
}
