//! The directory of an index: opening, locking, replacing the manifest, cleaning up.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{AtomicFile, ProvisionalDirectory, sync_parent};

use crate::index::manifest;
use crate::index::manifest::IndexManifest;

/// Extensions of an index's files.
const FILE_EXTENSIONS: [&str; 11] = [
    "codes",
    "ids",
    "texts",
    "poor",
    "records",
    "signatures",
    "postings",
    "grams",
    "removed",
    "counts",
    "table",
];

/// The file that a writer locks. It remains after the writer has finished.
const LOCK_FILE: &str = "lock";

/// Largest number of attempts of a reader while a writer replaces the index.
const MAX_READ_ATTEMPTS: usize = 20;

/// The exclusive right to change an index. It ends with this value or with the process.
#[derive(Debug)]
pub(super) struct IndexLock {
    _file: File,
}

/// The kinds of content that a directory can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectoryKind {
    /// It does not exist, is empty, or holds an incomplete new index.
    Free,
    /// An index.
    Index,
    /// Anything else.
    Strange,
}

/// Returns the kind of content at `path`.
pub(super) fn directory_kind(path: &Path) -> Result<DirectoryKind> {
    if path.join(manifest::MANIFEST_FILE).is_file() {
        return Ok(DirectoryKind::Index);
    }
    // Systems differ in how they refuse to list a file.
    if path.is_file() {
        return Ok(DirectoryKind::Strange);
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(DirectoryKind::Free),
        Err(cause) if cause.kind() == io::ErrorKind::NotADirectory => {
            return Ok(DirectoryKind::Strange);
        }
        Err(cause) => return Err(Error::read_error("read", display_path(path), cause)),
    };
    for entry in entries {
        let entry = entry.map_err(|cause| Error::read_error("read", display_path(path), cause))?;
        let name = entry.file_name();
        if name != LOCK_FILE && !is_index_file(&name.to_string_lossy()) {
            return Ok(DirectoryKind::Strange);
        }
    }
    Ok(DirectoryKind::Free)
}

fn is_index_file(name: &str) -> bool {
    name.split_once('.').is_some_and(|(number, extension)| {
        number.len() >= 8
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && FILE_EXTENSIONS.contains(&extension)
    })
}

/// Acquires the exclusive right to change an index. The directory must exist.
pub(super) fn lock_index(path: &Path) -> Result<IndexLock> {
    let place = path.join(LOCK_FILE);
    let failed = |cause| Error::write_error("lock", display_path(&place), cause);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&place)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(IndexLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(Error::output_error(format!(
            "the index {} is being changed by another process: wait until that ends",
            display_path(path)
        ))),
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

/// Reads the manifest with the tables of its recipe. Reads again if a writer has replaced them
/// meanwhile.
pub(super) fn read_manifest(path: &Path) -> Result<IndexManifest> {
    let place = path.join(manifest::MANIFEST_FILE);
    let mut bytes = manifest_bytes(path, &place)?;
    for _ in 0..MAX_READ_ATTEMPTS {
        let error = match IndexManifest::parse_manifest(&bytes, &place) {
            Ok(manifest) => return Ok(manifest),
            Err(error) => error,
        };
        let now = manifest_bytes(path, &place)?;
        if now == bytes {
            return Err(error);
        }
        bytes = now;
    }
    IndexManifest::parse_manifest(&bytes, &place)
}

/// Refuses an index in an object store, because its files are mapped into memory.
pub(super) fn refuse_url(path: &Path) -> Result<()> {
    if lookalike_io::is_url(path) {
        Err(Error::usage_error(format!(
            "{} is a URL, and an index is a directory of this machine: give its path, and copy the directory \
             to or from the store",
            display_path(path)
        )))
    } else {
        Ok(())
    }
}

fn manifest_bytes(path: &Path, place: &Path) -> Result<Vec<u8>> {
    refuse_url(path)?;
    match fs::read(place) {
        Ok(bytes) => Ok(bytes),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let what = if path.is_dir() {
                "it has no manifest"
            } else {
                "there is no such directory"
            };
            Err(Error::input_error(format!(
                "{} is not an index ({what}): build one with `lookalike index build`",
                display_path(path)
            )))
        }
        Err(cause) => Err(Error::read_error("read", display_path(place), cause)),
    }
}

/// Writes a file of an index atomically.
pub(super) fn write_file(place: &Path, content: &[u8]) -> Result<()> {
    let file = AtomicFile::create_for(place)?;
    file.as_file()
        .write_all(content)
        .map_err(|cause| Error::write_error("write", display_path(place), cause))?;
    file.commit_file()
}

/// Reads the manifest and the files that it names. Reads again if a writer has replaced them meanwhile.
pub(super) fn read_consistently<T>(
    path: &Path,
    mut read: impl FnMut(IndexManifest) -> Result<T>,
) -> Result<T> {
    let mut manifest = read_manifest(path)?;
    for _ in 0..MAX_READ_ATTEMPTS {
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

/// Replaces the manifest and removes the files that the new one does not name.
pub(super) fn replace_manifest(path: &Path, manifest: &IndexManifest) -> Result<()> {
    write_file(
        &path.join(manifest::MANIFEST_FILE),
        manifest.to_text().as_bytes(),
    )?;
    remove_unnamed_files(path, Some(manifest));
    Ok(())
}

/// Removes files that the manifest does not name: those of an interrupted writer, and those that were
/// replaced. The next writer tries again to remove files that cannot be removed now.
pub(super) fn remove_unnamed_files(path: &Path, manifest: Option<&IndexManifest>) {
    let named = manifest.map_or_else(Vec::new, IndexManifest::all_file_names);
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_index_file(&name) && !named.contains(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Changes an existing index under its lock. `change` receives the manifest. After a failure, files that no manifest
/// names are removed.
///
/// # Errors
/// If the path is not an index, is damaged, or is locked by another writer; and the errors of `change`.
pub(super) fn change_index<T>(
    path: &Path,
    change: impl FnOnce(IndexManifest) -> Result<T>,
) -> Result<T> {
    read_manifest(path)?;
    let _lock = lock_index(path)?;
    let manifest = read_manifest(path)?;
    remove_unnamed_files(path, Some(&manifest));
    let changed = change(manifest);
    if changed.is_err() {
        clean_after_failure(path);
    }
    changed
}

/// Removes the files of a failed change. The index must be locked.
pub(super) fn clean_after_failure(path: &Path) {
    match (directory_kind(path), read_manifest(path)) {
        (_, Ok(manifest)) => remove_unnamed_files(path, Some(&manifest)),
        (Ok(DirectoryKind::Free), _) => remove_unnamed_files(path, None),
        // The content is not known to be ours, so nothing is removed.
        _ => {}
    }
}

/// The locked directory of a new index. If it had to be created, it is removed unless the index is
/// completed, even if the process is interrupted.
#[derive(Debug)]
pub(super) struct NewDirectory {
    path: PathBuf,
    completed: bool,
    /// The directory, if it had to be created.
    provisional: Option<ProvisionalDirectory>,
    // Declared last, so that it is released after the clean-up.
    _lock: IndexLock,
}

impl NewDirectory {
    pub(super) fn make_directory(path: &Path) -> Result<Self> {
        refuse_url(path)?;
        let is_created = match fs::create_dir(path) {
            Ok(()) => true,
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => false,
            Err(cause) => return Err(Error::write_error("create", display_path(path), cause)),
        };
        let lock = lock_index(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            completed: false,
            provisional: is_created.then(|| ProvisionalDirectory::from_path(path)),
            _lock: lock,
        })
    }

    /// Keeps the directory permanently and syncs its name to disk.
    pub(super) fn keep_directory(mut self) -> Result<()> {
        self.completed = true;
        let Some(provisional) = self.provisional.take() else {
            return Ok(());
        };
        provisional.keep_directory();
        sync_parent(&self.path)
            .map_err(|cause| Error::write_error("complete", display_path(&self.path), cause))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.completed && self.provisional.is_none() {
            clean_after_failure(&self.path);
        }
    }
}
