//! Where the program has its memory from.

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use libmimalloc_sys::{mi_collect, mi_option_set_default, mi_option_t};
use lookalike_batch::sink;
use mimalloc::MiMalloc;

/// Documents of many sizes are made by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: TellingAllocator = TellingAllocator(MiMalloc);

/// Says so and ends the process where there is no memory, instead of aborting it without a word.
struct TellingAllocator(MiMalloc);

// SAFETY: every call is one of the allocator inside, with the same arguments; only what is null does not
// come back.
unsafe impl GlobalAlloc for TellingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the allocator inside.
        told_if_null(unsafe { self.0.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        told_if_null(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        told_if_null(unsafe { self.0.realloc(pointer, layout, size) }, size)
    }
}

fn told_if_null(pointer: *mut u8, size: usize) -> *mut u8 {
    if pointer.is_null() {
        fail_without_memory(size);
    }
    pointer
}

/// `true` once the lack of memory was told.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Ends the process with 2, after what was not completed is removed.
#[cold]
fn fail_without_memory(size: usize) -> ! {
    if IS_TOLD.swap(true, Ordering::SeqCst) {
        // Another thread is ending the process; if it is this one, there is no memory even for that.
        std::thread::sleep(std::time::Duration::from_secs(2));
        std::process::abort();
    }
    // Nothing here takes memory; nobody is left to be told if it fails.
    let _ = writeln!(
        std::io::stderr(),
        "lookalike: out of memory: the system gave no {size} bytes more. Give fewer --threads, a smaller \
         --max-row, or the input in parts, each --against those before."
    );
    sink::abandon_all();
    std::process::exit(2)
}

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
