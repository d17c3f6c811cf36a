//! Files that appear under their name only when they are complete and on disk.
//!
//! If the file system permits it, a file has no name at all before it is committed, so that even a
//! killed process leaves nothing behind. Otherwise the file has a hidden temporary name beside the
//! target, which is removed on drop and by [`abandon_all`]. Committing syncs the file, renames it over
//! the target and syncs the directory. Files below a directory of outputs get such names when they are complete; what
//! a killed process leaves of them is removed by the next one (see `output_journal`).
//!
//! A target that is a device or a pipe is written directly, because it cannot be replaced and cannot be
//! left half-written. If the target is a symbolic link, the file that it points to is replaced.
//!
//! A target in an object store is written to a temporary file. Sealing uploads it, and committing makes
//! the object appear. The upload is begun before anything is written, so that a bucket that does not exist
//! is found out first. It is aborted on drop and by [`abandon_all`]. Uploads that a later process can continue are an
//! exception (see `recorded_uploads`): sealing begins them, after their outputs were checked, and they are not aborted.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lookalike_system::{Directory, create_unnamed, is_device, link_unnamed, replace_file};

use super::output_journal::{OutputJournal, remove_leftovers};
use super::recorded_uploads::find_record;
use crate::error::{Error, Result, display_path};
use crate::objects::{ObjectUpload, ObjectUrl};

/// All temporary names and directories of this process, and whether new ones are refused.
static TEMPORARY_FILES: Mutex<TemporaryFiles> = Mutex::new(TemporaryFiles {
    names: Vec::new(),
    directories: Vec::new(),
    empty: Vec::new(),
    uploads: Vec::new(),
    journals: Vec::new(),
    abandoned: false,
});

/// Time that an ending process waits for a store to abort an upload.
const ABORT_TIME: Duration = Duration::from_secs(5);

struct TemporaryFiles {
    names: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    /// Directories that are removed if they are empty; parents come before their children.
    empty: Vec<PathBuf>,
    /// Uploads that are not completed.
    uploads: Vec<ObjectUpload>,
    /// Journals of the directories of outputs.
    journals: Vec<OutputJournal>,
    abandoned: bool,
}

fn lock_temporary_files() -> MutexGuard<'static, TemporaryFiles> {
    TEMPORARY_FILES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Removes every temporary name that is not committed, aborts every upload that no later process can continue, and
/// refuses new ones. Intended for a signal handler that ends the process.
pub fn abandon_all() {
    let mut temporary = lock_temporary_files();
    temporary.abandoned = true;
    for name in temporary.names.drain(..) {
        // A failure is ignored, because the process is ending.
        let _ = fs::remove_file(name);
    }
    for directory in temporary.directories.drain(..) {
        let _ = fs::remove_dir_all(directory);
    }
    while let Some(directory) = temporary.empty.pop() {
        // A directory that is not empty remains.
        let _ = fs::remove_dir(directory);
    }
    for upload in temporary.uploads.drain(..) {
        upload.abort_upload(ABORT_TIME);
    }
    // Their locks end after their names were removed.
    temporary.journals.clear();
}

/// Directories that this process created for outputs. Empty ones are removed on drop and by
/// [`abandon_all`].
#[derive(Debug, Default)]
pub(super) struct OutputDirectories {
    created: Vec<PathBuf>,
    /// Journals of temporary names, which are removed first.
    journals: Vec<PathBuf>,
}

impl OutputDirectories {
    /// Removes what killed processes have left below a directory that exists, and begins a journal of the temporary
    /// names that this process will have there.
    pub(super) fn begin_journal(&mut self, directory: &Path) -> Result<()> {
        let failed = |cause| Error::write_error("create a file in", display_path(directory), cause);
        remove_leftovers(directory);
        let mut temporary = lock_temporary_files();
        if temporary.abandoned {
            return Err(failed(io::ErrorKind::Interrupted.into()));
        }
        if let Some(journal) = OutputJournal::create_in(directory).map_err(failed)? {
            self.journals.push(journal.path().to_path_buf());
            temporary.names.push(journal.path().to_path_buf());
            temporary.journals.push(journal);
        }
        Ok(())
    }

    /// Creates a directory and its missing parents.
    pub(super) fn create_with_parents(&mut self, path: &Path) -> Result<()> {
        let missing = path
            .ancestors()
            .filter(|parent| !parent.as_os_str().is_empty());
        let missing: Vec<_> = missing
            .take_while(|directory| !directory.exists())
            .collect();
        for directory in missing.into_iter().rev() {
            let failed = |cause| Error::write_error("create", display_path(directory), cause);
            let mut temporary = lock_temporary_files();
            if temporary.abandoned {
                return Err(failed(io::ErrorKind::Interrupted.into()));
            }
            match fs::create_dir(directory) {
                Ok(()) => {
                    temporary.empty.push(directory.to_path_buf());
                    self.created.push(directory.to_path_buf());
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(failed(cause)),
            }
        }
        Ok(())
    }
}

impl Drop for OutputDirectories {
    fn drop(&mut self) {
        let mut temporary = lock_temporary_files();
        for journal in self.journals.drain(..) {
            temporary.names.retain(|known| *known != journal);
            // Failures are ignored as below. The lock ends after the name, so no other process sees it as left.
            let _ = fs::remove_file(&journal);
            temporary.journals.retain(|known| known.path() != journal);
        }
        while let Some(directory) = self.created.pop() {
            temporary.empty.retain(|known| *known != directory);
            // A directory that is not empty remains; other failures are ignored, because a destructor
            // cannot report them.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// A directory that this process created. Unless it is kept, it is removed with all its content on drop
/// and by [`abandon_all`].
#[derive(Debug)]
pub struct ProvisionalDirectory(PathBuf);

impl ProvisionalDirectory {
    /// Registers a directory that has just been created.
    pub fn from_path(path: &Path) -> Self {
        lock_temporary_files().directories.push(path.to_path_buf());
        Self(path.to_path_buf())
    }

    /// Keeps the directory permanently.
    pub fn keep_directory(self) {
        lock_temporary_files()
            .directories
            .retain(|known| *known != self.0);
    }
}

impl Drop for ProvisionalDirectory {
    fn drop(&mut self) {
        let mut temporary = lock_temporary_files();
        let count = temporary.directories.len();
        temporary.directories.retain(|known| *known != self.0);
        if temporary.directories.len() < count {
            // A destructor cannot report a failure.
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

impl TemporaryFiles {
    /// Creates a temporary name beside `target` with `make_beside`, and tries another one if the name is
    /// taken.
    fn make_beside<T>(
        &mut self,
        target: &Path,
        mut make: impl FnMut(&Path) -> io::Result<T>,
    ) -> io::Result<(T, TemporaryName)> {
        if self.abandoned {
            return Err(io::ErrorKind::Interrupted.into());
        }
        for attempt in 0..100u32 {
            let random = RandomState::new().hash_one(attempt);
            let mut name = std::ffi::OsString::from(".");
            name.push(target.file_name().unwrap_or_default());
            name.push(format!(".{random:016x}.tmp"));
            let path = target.with_file_name(name);
            let mut journals = self.journals.iter();
            journals.try_for_each(|journal| journal.note_name(&path))?;
            match make(&path) {
                Ok(made) => {
                    self.names.push(path.clone());
                    return Ok((made, TemporaryName(path)));
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(cause),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Renames a temporary file to its final name, unless everything is being abandoned.
    fn rename_to_target(&mut self, name: &TemporaryName, target: &Path) -> io::Result<()> {
        if self.abandoned {
            return Err(io::ErrorKind::Interrupted.into());
        }
        replace_file(&name.0, target)?;
        self.names.retain(|known| *known != name.0);
        Ok(())
    }
}

/// A file that appears under its name only when [`commit_file`](Self::commit_file) is called. Dropping
/// it before that leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    target: PathBuf,
    stage: FileStage,
    synced: bool,
}

#[derive(Debug)]
enum FileStage {
    /// Without a name.
    Unnamed,
    /// Under a temporary name.
    Named(TemporaryName),
    /// The target itself: a device or a pipe.
    Direct,
    /// Without a name. The written bytes are uploaded.
    Upload(PendingUpload),
}

/// Copies the permissions of the file that is replaced to the new file.
fn copy_permissions(target: &Path, file: &File) -> io::Result<()> {
    match fs::metadata(target) {
        Ok(there) => file.set_permissions(there.permissions()),
        Err(_) => Ok(()),
    }
}

/// A temporary name that is removed on drop.
#[derive(Debug)]
struct TemporaryName(PathBuf);

impl Drop for TemporaryName {
    fn drop(&mut self) {
        let mut temporary = lock_temporary_files();
        let count = temporary.names.len();
        temporary.names.retain(|name| *name != self.0);
        if temporary.names.len() < count {
            // A destructor cannot report a failure.
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// An upload that is aborted on drop unless it is completed or recorded.
#[derive(Debug)]
struct PendingUpload(ObjectUpload);

impl PendingUpload {
    /// Begins the upload of an output, or prepares it if it is recorded.
    fn begin_output(url: &ObjectUrl) -> Result<Self> {
        Self::register_upload(
            url,
            match find_record(url) {
                Some(record) => ObjectUpload::prepare_recorded(url, record)?,
                None => ObjectUpload::begin_upload(url)?,
            },
        )
    }

    fn register_upload(url: &ObjectUrl, upload: ObjectUpload) -> Result<Self> {
        let mut temporary = lock_temporary_files();
        if temporary.abandoned {
            let cause = io::ErrorKind::Interrupted.into();
            return Err(Error::write_error("create", url, cause));
        }
        temporary.uploads.push(upload.clone());
        Ok(Self(upload))
    }

    fn complete_upload(&self) -> Result<()> {
        let is_abandoned = lock_temporary_files().abandoned;
        if is_abandoned {
            Err(Error::write_error(
                "complete",
                self.0.display_name(),
                io::ErrorKind::Interrupted.into(),
            ))
        } else {
            self.0.complete_upload()
        }
    }
}

impl Drop for PendingUpload {
    fn drop(&mut self) {
        // The upload is dropped, and so aborted, after the lock.
        let mut temporary = lock_temporary_files();
        temporary.uploads.retain(|known| !known.is_same(&self.0));
    }
}

/// Checks that an object can be written, by an upload that is aborted.
///
/// # Errors
/// If the URL is not one that can be written to, or if the store refuses.
pub(super) fn check_upload(url: &ObjectUrl) -> Result<()> {
    PendingUpload::register_upload(url, ObjectUpload::begin_upload(url)?).map(drop)
}

/// A complete and synced file without an open handle, so that any number of files can wait to be
/// committed together. Dropping it leaves nothing behind.
#[derive(Debug)]
pub(super) struct SealedFile(SealedStage);

#[derive(Debug)]
enum SealedStage {
    /// In place already.
    Direct,
    /// Under a temporary name beside the target.
    Named(TemporaryName, PathBuf),
    /// Uploaded, but without its name.
    Upload(PendingUpload),
}

impl SealedFile {
    /// Creates the value for a target that needs no renaming.
    pub(super) fn without_name() -> Self {
        Self(SealedStage::Direct)
    }

    /// Renames the file into place, or completes its upload.
    pub(super) fn commit_file(self) -> Result<()> {
        let (name, target) = match self.0 {
            SealedStage::Direct => return Ok(()),
            SealedStage::Upload(upload) => return upload.complete_upload(),
            SealedStage::Named(name, target) => (name, target),
        };
        let failed = |cause| Error::write_error("complete", display_path(&target), cause);
        lock_temporary_files()
            .rename_to_target(&name, &target)
            .map_err(failed)?;
        sync_parent(&target).map_err(failed)
    }
}

impl AtomicFile {
    /// Creates a new, empty file for `path`, which may be the URL of an object.
    ///
    /// # Errors
    ///
    /// If the directory does not exist or is not writable, if the path is a directory, or if the store
    /// refuses the object.
    pub fn create_for(path: &Path) -> Result<Self> {
        Self::create_with_scratch(path, None)
    }

    /// Creates a new, empty file as [`create_for`](Self::create_for) does. The content of an object is
    /// collected in the directory `scratch`, or in the system's directory for temporary files.
    pub(super) fn create_with_scratch(path: &Path, scratch: Option<&Path>) -> Result<Self> {
        match ObjectUrl::from_path(path) {
            Some(url) => Self::create_for_object(path, &url?, scratch),
            None => Self::create_for_file(path),
        }
    }

    fn create_for_object(path: &Path, url: &ObjectUrl, scratch: Option<&Path>) -> Result<Self> {
        let upload = PendingUpload::begin_output(url)?;
        let directory = scratch.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|cause| {
            let place = display_path(&directory);
            Error::write_error("create a temporary file in", place, cause)
        })?;
        Ok(Self {
            file,
            target: path.to_path_buf(),
            stage: FileStage::Upload(upload),
            // The temporary file need not survive the process.
            synced: true,
        })
    }

    fn create_for_file(path: &Path) -> Result<Self> {
        let failed = |cause| Error::write_error("create", display_path(path), cause);
        let metadata = fs::metadata(path).ok();
        let is_special = metadata.is_some_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if is_special || is_device(path) {
            // Opened by the given path, because a link to a pipe, such as /dev/stdout, has no target
            // path.
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(Self {
                file,
                target: path.to_path_buf(),
                stage: FileStage::Direct,
                synced: true,
            });
        }
        let target = if path.is_symlink() {
            path.canonicalize().map_err(failed)?
        } else {
            path.to_path_buf()
        };
        if target.file_name().is_none() || target.is_dir() {
            return Err(Error::output_error(format!(
                "{} is a directory, not a file",
                display_path(path)
            )));
        }
        if let Some(file) = create_unnamed(parent_directory(&target)) {
            copy_permissions(&target, &file).map_err(failed)?;
            return Ok(Self {
                file,
                target,
                stage: FileStage::Unnamed,
                synced: false,
            });
        }
        let new = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let (file, name) = lock_temporary_files()
            .make_beside(&target, new)
            .map_err(failed)?;
        copy_permissions(&target, &file).map_err(failed)?;
        Ok(Self {
            file,
            target,
            stage: FileStage::Named(name),
            synced: false,
        })
    }

    /// Returns the file to write to.
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// Syncs the file and renames it into place.
    ///
    /// # Errors
    ///
    /// If a sync or a rename fails. The target is then unchanged.
    pub fn commit_file(self) -> Result<()> {
        self.seal_file()?.commit_file()
    }

    /// Syncs the file. It must not be written to after that.
    pub(super) fn sync_file(&mut self) -> Result<()> {
        if !self.synced {
            let failed = |cause| Error::write_error("complete", display_path(&self.target), cause);
            self.file.sync_all().map_err(failed)?;
            self.synced = true;
        }
        Ok(())
    }

    /// Syncs the file and closes its handle, or uploads it.
    pub(super) fn seal_file(mut self) -> Result<SealedFile> {
        self.sync_file()?;
        let Self {
            file,
            target,
            stage,
            synced: _,
        } = self;
        let failed = |cause| Error::write_error("complete", display_path(&target), cause);
        let name = match stage {
            FileStage::Direct => return Ok(SealedFile::without_name()),
            FileStage::Upload(upload) => {
                upload.0.send_file(&file)?;
                return Ok(SealedFile(SealedStage::Upload(upload)));
            }
            FileStage::Unnamed => {
                lock_temporary_files()
                    .make_beside(&target, |path| link_unnamed(&file, path))
                    .map_err(failed)?
                    .1
            }
            FileStage::Named(name) => name,
        };
        Ok(SealedFile(SealedStage::Named(name, target)))
    }
}

/// Returns the directory in which a path is, which is the current one for a plain name.
pub fn parent_directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the name of a file or directory durable.
///
/// # Errors
/// If the directory in which it is cannot be opened or synced.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    Directory::sync_path(parent_directory(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn outputs_stay_hidden_before_the_commit() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        fs::write(&target, "old").unwrap();
        let output = AtomicFile::create_for(&target).unwrap();
        output.as_file().write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        output.commit_file().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(names(directory.path()), ["out"]);
    }

    #[test]
    fn temporary_file_is_removed_when_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        let new = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let make = || {
            let (file, name) = lock_temporary_files().make_beside(&target, new).unwrap();
            AtomicFile {
                file,
                target: target.clone(),
                stage: FileStage::Named(name),
                synced: false,
            }
        };
        let named = make();
        assert_eq!(names(directory.path()).len(), 1);
        drop(named);
        assert!(names(directory.path()).is_empty());
        make().commit_file().unwrap();
        assert_eq!(names(directory.path()), ["out"]);
        drop(AtomicFile::create_for(&target).unwrap());
        assert_eq!(names(directory.path()), ["out"]);
    }

    #[test]
    fn links_are_followed_and_directories_refused() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        let link = directory.path().join("link");
        fs::write(&target, "old").unwrap();
        lookalike_system::create_symlink(&target, &link).unwrap();
        let output = AtomicFile::create_for(&link).unwrap();
        output.as_file().write_all(b"new").unwrap();
        output.commit_file().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert!(AtomicFile::create_for(directory.path()).is_err());
        assert!(AtomicFile::create_for(&directory.path().join("none/out")).is_err());
        let devices = ["/dev/null", "NUL"].map(Path::new);
        let device = devices.into_iter().find(|path| is_device(path)).unwrap();
        AtomicFile::create_for(device)
            .unwrap()
            .commit_file()
            .unwrap();
    }
}
