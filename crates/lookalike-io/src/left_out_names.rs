//! Names of files and objects that folders and patterns leave out.

use std::ffi::OsStr;
use std::path::Path;

/// Files that Windows keeps in folders. The console leaves out the same ones of a dropped folder.
const FOLDER_FILES: [&str; 2] = ["desktop.ini", "thumbs.db"];

/// Returns `true` for the name of a file that Windows or a word processor keeps in a folder of documents: settings, small
/// pictures, and the lock of a document that is open.
pub(crate) fn is_left_by_system(name: &OsStr) -> bool {
    let is_lock = name.as_encoded_bytes().starts_with(b"~$");
    is_lock
        || FOLDER_FILES
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns `true` for a path that a pattern matches and leaves out. As in shells, hidden names need a pattern whose last
/// part begins with a full stop.
pub(crate) fn is_left_out_by_pattern(pattern: &str, path: &Path) -> bool {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let wants_hidden = Path::new(pattern).file_name().is_some_and(is_hidden);
    let name = path.file_name();
    name.is_some_and(|name| is_left_by_system(name) || is_hidden(name) && !wants_hidden)
}
