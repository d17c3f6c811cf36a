//! The program `lookalike`; see the library of this crate.

#[allow(unsafe_code)]
mod allocator;

use std::ffi::OsString;
use std::process::ExitCode;

use lookalike_cli::FreeMemoryHooks;

fn main() -> ExitCode {
    allocator::give_back_soon();
    lookalike_cli::set_free_memory_hooks(FreeMemoryHooks {
        keep_for_later: allocator::give_back_later,
        release_now: allocator::release_free_memory,
        release_of_thread: allocator::release_memory_of_thread,
        release_unused: allocator::release_unused_memory,
    });
    let arguments: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(lookalike_cli::run_command_line(&arguments))
}
