//! The calls of the operating system that lookalike needs beyond the standard library.
//!
//! Each system has one file with the same functions. [`Directory`], [`PositionedAccess`], [`FileVersion`] and the functions
//! here are all that other crates see, and no other crate asks which system it runs on (`tests/it/room.rs`).
//!
//! | file | system |
//! |---|---|
//! | `unix.rs` | Linux, macOS and other Unix systems |
//! | `linux.rs` | unnamed files, `/proc` and control groups, which Linux alone has |
//! | `other_unix.rs` | the same functions for the other Unix systems, which report nothing |
//! | `windows.rs` | Windows; its calls are in `windows/calls.rs` |
//! | `no_system.rs` | targets without a system, such as WebAssembly: files by their paths, and nothing else |
//!
//! Windows cannot keep every promise. Names of files become durable with its journal and cannot be
//! [synced](Directory::sync), files have a name until they are complete, and a file that is open or mapped may refuse to be
//! removed. The functions say so where it matters, and `SECURITY.md` lists the consequences.
//!
//! ```
//! use lookalike_system::PositionedAccess;
//!
//! # fn main() -> std::io::Result<()> {
//! let file = tempfile::tempfile()?;
//! file.write_all_bytes_at(b"near-duplicate", 0)?;
//! let mut bytes = [0; 9];
//! file.read_exact_bytes_at(&mut bytes, 5)?;
//! assert_eq!(&bytes, b"duplicate");
//! # Ok(())
//! # }
//! ```

mod console;
mod files;
mod memory;
mod process;
mod shell;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "other_unix.rs"]
mod linux;
#[cfg(not(any(unix, windows)))]
mod no_system;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(any(unix, windows)))]
use self::no_system as current;
#[cfg(unix)]
use self::unix as current;
#[cfg(windows)]
use self::windows as current;

pub use self::console::{
    StandardOutput, data_directory_of_user, has_own_console, locale_of_user, open_in_browser,
    open_standard_input, open_standard_output, prepare_console,
};
pub use self::files::{
    Directory, DiskSpace, FileNumber, FileVersion, NAMES_IGNORE_CASE, PositionedAccess,
    RENAMES_OPEN_DIRECTORIES, create_symlink, create_unnamed, is_device, link_unnamed,
    read_disk_space, replace_file, resolve_path,
};
pub use self::memory::{available_memory, total_memory};
pub use self::process::{
    HAS_THREADS, InterruptionCode, ProcessFailure, ProcessUse, clean_up_when_interrupted,
    limit_process, machine_name, make_files_private, read_process_failure, read_process_use,
};
#[cfg(feature = "service")]
pub use self::process::{ReloadRequests, StopRequests};
pub use self::shell::{ShellSyntax, quote_for_shell};
