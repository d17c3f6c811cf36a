//! A journal of the temporary names in a directory of outputs, by which the next run removes what a killed one has left.
//!
//! A run that writes many files below a directory keeps each complete file under a temporary name until all are complete.
//! If the process is killed, nobody removes these names. So it first writes every name to a journal in the directory,
//! which it keeps locked as long as it runs:
//!
//! ```text
//! .lookalike-HEX.outputs   names relative to the directory, each ended by a zero byte
//! ```
//!
//! The lock ends with the process, however it ends. A journal that can be locked is therefore of no running process,
//! on any machine that shares the directory and its locks, and the names in it are removed, then the journal. Names that
//! are in no journal stay. If files cannot be locked, there is no journal.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

/// Beginning and end of a journal's name.
const JOURNAL_NAME: (&str, &str) = (".lookalike-", ".outputs");

/// Most bytes of a journal that are read: enough for millions of names.
const MOST_BYTES: u64 = 1 << 30;

/// A journal of this process.
#[derive(Debug)]
pub(super) struct OutputJournal {
    directory: PathBuf,
    path: PathBuf,
    /// Locked until it is closed.
    file: File,
}

impl OutputJournal {
    /// Creates a journal in a directory. Returns `None` if it cannot be locked there.
    pub(super) fn create_in(directory: &Path) -> io::Result<Option<Self>> {
        let random = RandomState::new().hash_one(directory);
        let (front, end) = JOURNAL_NAME;
        let path = directory.join(format!("{front}{random:016x}{end}"));
        // Windows locks only files that can be read or written anywhere.
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(&path)?;
        if file.try_lock().is_err() {
            fs::remove_file(&path)?;
            return Ok(None);
        }
        Ok(Some(Self {
            directory: directory.to_path_buf(),
            path,
            file,
        }))
    }

    /// Returns the path of the journal.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes a temporary name before it is used, if it is below the directory.
    pub(super) fn note_name(&self, name: &Path) -> io::Result<()> {
        let Ok(relative) = name.strip_prefix(&self.directory) else {
            return Ok(());
        };
        let mut line = relative.as_os_str().as_encoded_bytes().to_vec();
        line.push(0);
        (&self.file).write_all(&line)
    }
}

/// Removes the temporary names that killed processes have left below a directory. A name stays if it cannot be
/// removed, or is not certainly of a process that has ended.
pub(super) fn remove_leftovers(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(is_journal_name) {
            // Another run may remove the same files at the same moment.
            let _ = remove_named_files(directory, &entry.path());
        }
    }
}

fn remove_named_files(directory: &Path, journal: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(journal)?;
    if file.try_lock().is_err() {
        return Ok(());
    }
    let mut names = Vec::new();
    (&file).take(MOST_BYTES).read_to_end(&mut names)?;
    for name in names.split(|&byte| byte == 0) {
        let Some(relative) = as_temporary_name(name) else {
            continue;
        };
        let path = directory.join(relative);
        if path
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_file())
        {
            let _ = fs::remove_file(path);
        }
    }
    fs::remove_file(journal)
}

fn is_journal_name(name: &str) -> bool {
    let (front, end) = JOURNAL_NAME;
    let random = name
        .strip_prefix(front)
        .and_then(|middle| middle.strip_suffix(end));
    random.is_some_and(is_random)
}

fn is_random(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a name of a journal as a path, if it can be one of a temporary file below the directory: `.NAME.HEX.tmp`.
fn as_temporary_name(name: &[u8]) -> Option<&Path> {
    let path = Path::new(std::str::from_utf8(name).ok()?);
    let is_below = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let file_name = path.file_name()?.to_str()?;
    let hidden = file_name.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (_, random) = hidden.rsplit_once('.')?;
    (is_below && is_random(random)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "text").unwrap();
        path
    }

    #[test]
    fn only_names_of_ended_processes_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("out");
        let names = [".a.0123456789abcdef.tmp", "b/.é.0123456789abcde0.tmp"];
        let others = [
            ".c.0123456789abcdef.tmp",
            "a.jsonl",
            ".b.0123456789abcdef.txt",
            "../.d.0123456789abcdef.tmp",
        ];
        let named = names.map(|name| temporary(&directory, name));
        let foreign = others.map(|name| temporary(&directory, name));
        let journal = OutputJournal::create_in(&directory).unwrap().unwrap();
        named
            .iter()
            .for_each(|name| journal.note_name(name).unwrap());
        // Names that no run writes: not hidden, of another kind, and outside of the directory.
        journal.note_name(&foreign[1]).unwrap();
        journal.note_name(&foreign[2]).unwrap();
        (&journal.file)
            .write_all(b"../.d.0123456789abcdef.tmp\0/.x.0123456789abcdef.tmp\0")
            .unwrap();
        remove_leftovers(&directory);
        assert!(named.iter().chain(&foreign).all(|path| path.exists()));
        assert!(journal.path().exists());
        // The lock ends with the file, as with a killed process.
        let path = journal.path().to_path_buf();
        drop(journal);
        remove_leftovers(&directory);
        assert!(!named.iter().any(|path| path.exists()) && !path.exists());
        assert!(foreign.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_truncated_name_is_no_name() {
        assert!(as_temporary_name(b".a.0123456789abcdef.tmp").is_some());
        for name in [
            &b".a.0123456789abcdef.tm"[..],
            b"a.0123456789abcdef.tmp",
            b".a.0123456789abcde.tmp",
            b"",
            b"../.a.0123456789abcdef.tmp",
            b"\xff/.a.0123456789abcdef.tmp",
        ] {
            assert!(as_temporary_name(name).is_none(), "{name:?}");
        }
        assert!(is_journal_name(".lookalike-0123456789abcdef.outputs"));
        assert!(!is_journal_name(".lookalike-0123456789abcde.outputs"));
    }
}
