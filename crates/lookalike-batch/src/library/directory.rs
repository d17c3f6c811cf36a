//! A library's directory: opening, locking, replacing the manifest, cleaning up.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::manifest::{self, Manifest};
use crate::error::{Error, Result, shown};
use crate::sink::{AtomicFile, ProvisionalDirectory};

/// The extensions of a library's files.
const EXTENSIONS: [&str; 9] = [
    "codes",
    "ids",
    "texts",
    "poor",
    "records",
    "signatures",
    "postings",
    "removed",
    "table",
];

/// The file that a writer locks. It stays when the writer is done.
const LOCK: &str = "lock";

/// How often a reader looks again if a writer replaces the library under its hands.
const ATTEMPTS: usize = 20;

/// The right to change a library; ends with the value, or with the process.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// What a directory is to a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is nothing of this name, or an empty directory, or one in which a library was begun.
    Free,
    /// A library.
    Library,
    /// Something else.
    Strange,
}

/// What is at `path`.
pub(super) fn kind(path: &Path) -> Result<Kind> {
    if path.join(manifest::NAME).is_file() {
        return Ok(Kind::Library);
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Kind::Free),
        Err(cause) if cause.kind() == io::ErrorKind::NotADirectory => return Ok(Kind::Strange),
        Err(cause) => return Err(Error::reading("read", shown(path), cause)),
    };
    for entry in entries {
        let entry = entry.map_err(|cause| Error::reading("read", shown(path), cause))?;
        let name = entry.file_name();
        if name != LOCK && !is_ours(&name.to_string_lossy()) {
            return Ok(Kind::Strange);
        }
    }
    Ok(Kind::Free)
}

fn is_ours(name: &str) -> bool {
    name.split_once('.').is_some_and(|(number, extension)| {
        number.len() >= 8
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && EXTENSIONS.contains(&extension)
    })
}

/// Takes the right to change a library. The directory must exist.
pub(super) fn lock(path: &Path) -> Result<Lock> {
    let place = path.join(LOCK);
    let failed = |cause| Error::writing("lock", shown(&place), cause);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&place)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(Error::output(format!(
            "the library {} is being changed by another process: wait until that is done",
            shown(path)
        ))),
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

/// Reads the manifest with the tables of its recipe; once more if a writer has replaced both
/// meanwhile.
pub(super) fn read_manifest(path: &Path) -> Result<Manifest> {
    let place = path.join(manifest::NAME);
    let mut bytes = manifest_bytes(path, &place)?;
    for _ in 0..ATTEMPTS {
        let error = match Manifest::parse(&bytes, &place) {
            Ok(manifest) => return Ok(manifest),
            Err(error) => error,
        };
        let now = manifest_bytes(path, &place)?;
        if now == bytes {
            return Err(error);
        }
        bytes = now;
    }
    Manifest::parse(&bytes, &place)
}

fn manifest_bytes(path: &Path, place: &Path) -> Result<Vec<u8>> {
    match fs::read(place) {
        Ok(bytes) => Ok(bytes),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let what = if path.is_dir() {
                "it has no manifest"
            } else {
                "there is no such directory"
            };
            Err(Error::input(format!(
                "{} is not a library ({what}): make one with `lookalike index build`",
                shown(path)
            )))
        }
        Err(cause) => Err(Error::reading("read", shown(place), cause)),
    }
}

/// Writes a file of a library that is complete at once.
pub(super) fn write_file(place: &Path, content: &[u8]) -> Result<()> {
    let file = AtomicFile::create(place)?;
    file.file()
        .write_all(content)
        .map_err(|cause| Error::writing("write", shown(place), cause))?;
    file.commit()
}

/// Reads the manifest and what it names; once more if a writer has replaced both meanwhile.
pub(super) fn read_consistently<T>(
    path: &Path,
    mut read: impl FnMut(Manifest) -> Result<T>,
) -> Result<T> {
    let mut manifest = read_manifest(path)?;
    for _ in 0..ATTEMPTS {
        let error = match read(manifest.clone()) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let now = read_manifest(path)?;
        if now == manifest {
            return Err(error);
        }
        manifest = now;
    }
    read(manifest)
}

/// Puts a manifest in place of the one before and removes the files that it does not name.
pub(super) fn replace_manifest(path: &Path, manifest: &Manifest) -> Result<()> {
    write_file(&path.join(manifest::NAME), manifest.to_text().as_bytes())?;
    clean(path, Some(manifest));
    Ok(())
}

/// Removes files of a library that its manifest does not name: what a writer that was interrupted
/// has left, or what was replaced. What cannot be removed is tried again by the next writer.
pub(super) fn clean(path: &Path, manifest: Option<&Manifest>) {
    let named = manifest.map_or_else(Vec::new, Manifest::files);
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_ours(&name) && !named.contains(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes what a change that has failed has left. The library must be locked.
pub(super) fn clean_after_failure(path: &Path) {
    match (kind(path), read_manifest(path)) {
        (_, Ok(manifest)) => clean(path, Some(&manifest)),
        (Ok(Kind::Free), _) => clean(path, None),
        // Whatever it is, it is not ours to tidy.
        _ => {}
    }
}

/// A directory for a new library, locked. One that had to be made goes away again, also when the
/// process is interrupted, unless the library is completed.
#[derive(Debug)]
pub(super) struct NewDirectory {
    path: PathBuf,
    completed: bool,
    made: Option<ProvisionalDirectory>,
    // Released after everything is tidied.
    _lock: Lock,
}

impl NewDirectory {
    pub(super) fn make(path: &Path) -> Result<Self> {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => false,
            Err(cause) => return Err(Error::writing("create", shown(path), cause)),
        };
        let lock = lock(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            completed: false,
            made: made.then(|| ProvisionalDirectory::of(path)),
            _lock: lock,
        })
    }

    /// From now on the directory stays; its name is synced.
    pub(super) fn completed(mut self) -> Result<()> {
        self.completed = true;
        let Some(made) = self.made.take() else {
            return Ok(());
        };
        made.keep();
        let parent = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(parent)
            .and_then(|parent| parent.sync_all())
            .map_err(|cause| Error::writing("complete", shown(&self.path), cause))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.completed && self.made.is_none() {
            clean_after_failure(&self.path);
        }
    }
}
