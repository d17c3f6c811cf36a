//! Unix systems other than Linux: what Linux reports by `/proc` stays unknown, and every file has a name.

use std::fs::File;
use std::io;
use std::path::Path;

pub(crate) fn create_unnamed(_directory: &Path) -> Option<File> {
    None
}

pub(crate) fn link_unnamed(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The system does not tell which signals a process ignores.
pub(crate) fn ignored_signals() -> u64 {
    0
}

pub(crate) fn total_memory() -> Option<u64> {
    None
}

pub(crate) fn available_memory() -> Option<u64> {
    None
}

pub(crate) fn resident_bytes() -> Option<u64> {
    None
}

pub(crate) fn open_files() -> Option<u64> {
    None
}

pub(crate) fn thread_count() -> Option<u64> {
    None
}
