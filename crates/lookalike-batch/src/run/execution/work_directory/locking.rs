//! The directory of an interruptible run, locked by the process that works on it, and the run that it holds.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{RecordedUploads, sync_parent};
use lookalike_io::source::{ReadOptions, RowSource};
use lookalike_io::{ObjectCopies, remove_copies};

use crate::run::execution::work_directory::NamedOutput;
use crate::run::execution::work_directory::learned_step::LearnedStep;
use crate::run::execution::work_directory::manifest::{self, WorkManifest, WorkStage};
use crate::run::settings::{RunInputs, RunSettings};

/// The file that the process of a run locks. It holds the id of the process.
pub(super) const LOCK_FILE: &str = "lock";

/// The directory of a run that learns the forms of the run.
pub(super) const LEARNING_DIRECTORY: &str = "forms";

/// Number of attempts to lock. `status` can hold the lock for a moment.
const LOCK_ATTEMPTS: usize = 20;

/// Time between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The directory of an interruptible run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkSettings {
    /// The directory. It is created if it does not exist.
    pub directory: PathBuf,
    /// `true` to continue the run in the directory, or to begin one if there is none. Otherwise a directory with
    /// an unfinished run is refused.
    pub resume: bool,
}

/// The directory of an interruptible run. No other process changes it until this value is dropped.
pub(in crate::run) struct LockedDirectory {
    pub(super) path: PathBuf,
    pub(super) resume: bool,
    pub(super) lock: Arc<File>,
}

/// A run that a directory holds, and that is to be continued.
pub(in crate::run) struct BegunRun {
    /// The directory, as messages show it.
    pub(in crate::run) directory: String,
    /// The forms that it has learned.
    pub(in crate::run) learned: Option<LearnedStep>,
}

impl LockedDirectory {
    /// Locks a directory for a run over `inputs`, and creates it if it does not exist.
    ///
    /// # Errors
    /// - If an input is standard input.
    /// - If another process works on it.
    /// - If it holds something else than a run.
    /// - If it holds an unfinished run that is not to be continued, or a run whose manifest is damaged.
    pub(in crate::run) fn lock_directory(work: &WorkSettings, inputs: &RunInputs) -> Result<Self> {
        if inputs.documents.has_standard_input() || inputs.against.has_standard_input() {
            return Err(manifest::read_once_error("standard input"));
        }
        let path = work.directory.clone();
        create_directory(&path)?;
        if read_manifest(&path)?.is_none() {
            refuse_foreign_files(&path)?;
        }
        let lock = try_lock_directory(&path)?.ok_or_else(|| {
            Error::usage_error(format!(
                "another process works on the run in {}: wait until it ends",
                display_path(&path)
            ))
        })?;
        let locked = Self {
            path,
            resume: work.resume,
            lock: Arc::new(lock),
        };
        if !work.resume && locked.has_unfinished_run()? {
            return Err(Error::usage_error(format!(
                "{} holds an unfinished run: continue it with --resume, or delete the directory or name another one \
                 to begin again",
                display_path(&locked.path)
            )));
        }
        Ok(locked)
    }

    fn has_unfinished_run(&self) -> Result<bool> {
        Ok(match read_manifest(&self.path)? {
            Some(manifest) => manifest.stage != WorkStage::Finished,
            None => read_manifest(&self.learning_path())?.is_some(),
        })
    }

    /// Returns `true` if what was transferred from stores and to them is of the run that this process goes on with, as
    /// far as versions of objects and names of outputs say so too.
    fn keeps_transfers(&self) -> Result<bool> {
        let manifest = read_manifest(&self.path)?;
        let is_finished = manifest.is_some_and(|manifest| manifest.stage == WorkStage::Finished);
        Ok(self.resume && !is_finished)
    }

    /// Lets a run keep in this directory what it reads of objects, so that a later process does not transfer it again.
    /// Does nothing if no source has objects. The copies of an earlier run are removed.
    ///
    /// # Errors
    /// If the manifest is damaged, or if a file cannot be opened or removed.
    pub(in crate::run) fn keep_objects(
        &self,
        read: &mut ReadOptions,
        sources: &[&RowSource],
    ) -> Result<()> {
        if !self.keeps_transfers()? {
            remove_copies(&self.path)?;
        }
        if sources.iter().any(|source| source.has_objects()) {
            read.object_copies = Some(Arc::new(ObjectCopies::open_in(&self.path)?));
        }
        Ok(())
    }

    /// Begins to record uploads in this directory, so that a later process continues them. Uploads of a run that is
    /// begun anew, and of outputs that are not given any more, are aborted.
    ///
    /// # Errors
    /// If the manifest is damaged.
    pub(in crate::run) fn record_uploads(
        &self,
        outputs: &[NamedOutput<'_>],
    ) -> Result<RecordedUploads> {
        let targets = outputs.iter().map(|output| output.target);
        let continues = self.keeps_transfers()?;
        Ok(RecordedUploads::begin_in(&self.path, targets, continues))
    }

    /// Returns the settings of a run in this directory. One that is continued and was begun out of core stays so, whatever
    /// memory is free now, unless a user has set the limit.
    ///
    /// # Errors
    /// If a manifest is damaged.
    pub(in crate::run) fn settings_to_continue(
        &self,
        settings: &RunSettings,
    ) -> Result<RunSettings> {
        let manifest = match read_manifest(&self.path)? {
            Some(manifest) => Some(manifest),
            None => read_manifest(&self.learning_path())?,
        };
        let is_out_of_core = manifest.is_some_and(|manifest| manifest.is_out_of_core());
        let mut settings = settings.clone();
        if let Some(limit) = settings.memory.as_mut()
            && self.resume
            && is_out_of_core
            && !limit.is_set
        {
            limit.working_set.get_or_insert(limit.bytes / 4);
        }
        Ok(settings)
    }

    /// Returns the run that is to be continued; `None` if this is not asked for, or if no run has learned its forms yet.
    ///
    /// # Errors
    /// If a file of the directory is damaged.
    pub(in crate::run) fn begun_run(&self) -> Result<Option<BegunRun>> {
        let Some(manifest) = read_manifest(&self.path)?.filter(|_| self.resume) else {
            return Ok(None);
        };
        let place = self.path.join(manifest::learned_file_name());
        let learned = manifest.learned.as_ref();
        let learned = learned.map(|entry| LearnedStep::read_step(&place, manifest.run, entry));
        Ok(Some(BegunRun {
            directory: display_path(&self.path),
            learned: learned.transpose()?,
        }))
    }

    /// Returns an error if the run in this directory was interrupted while it learned its forms.
    ///
    /// # Errors
    /// If it was, or if its manifest is damaged.
    pub(in crate::run) fn refuse_unlearned(&self) -> Result<()> {
        let is_learning =
            read_manifest(&self.path)?.is_none() && read_manifest(&self.learning_path())?.is_some();
        if is_learning {
            return Err(Error::usage_error(format!(
                "the run in {} was interrupted while it learned its forms, and cannot be continued without learning \
                 them: give the settings with which it was begun, or delete the directory",
                display_path(&self.path)
            )));
        }
        Ok(())
    }

    /// Creates the directory of the run that learns the forms. It is locked with this one. A finished run that this
    /// directory holds is forgotten.
    ///
    /// # Errors
    /// If a directory or a manifest cannot be written.
    pub(in crate::run) fn begin_learning(&self) -> Result<Self> {
        let manifest = self.path.join(manifest::MANIFEST_FILE);
        match fs::remove_file(&manifest).and_then(|()| sync_parent(&manifest)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(Error::write_error("remove", display_path(&manifest), cause));
            }
            _ => {}
        }
        let path = self.learning_path();
        create_directory(&path)?;
        Ok(Self {
            path,
            resume: self.resume,
            lock: Arc::clone(&self.lock),
        })
    }

    fn learning_path(&self) -> PathBuf {
        self.path.join(LEARNING_DIRECTORY)
    }
}

fn create_directory(path: &Path) -> Result<()> {
    let failed = |cause| Error::write_error("create", display_path(path), cause);
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
            return Ok(());
        }
        Err(cause) => return Err(failed(cause)),
    }
    sync_parent(path).map_err(failed)
}

/// Acquires the exclusive right to work on a run; `None` if another process has it.
fn try_lock_directory(path: &Path) -> Result<Option<File>> {
    let place = path.join(LOCK_FILE);
    let failed = |cause| Error::write_error("lock", display_path(&place), cause);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&place)
        .map_err(failed)?;
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            Err(TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
        }
    }
    file.set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()))
        .map_err(failed)?;
    Ok(Some(file))
}

/// Reads the manifest of a directory, if it has one.
pub(super) fn read_manifest(path: &Path) -> Result<Option<WorkManifest>> {
    let place = path.join(manifest::MANIFEST_FILE);
    match fs::read(&place) {
        Ok(bytes) => WorkManifest::parse_manifest(&bytes, &place).map(Some),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Error::read_error("read", display_path(&place), cause)),
    }
}

/// Refuses a directory that holds something else than the files of a run.
fn refuse_foreign_files(path: &Path) -> Result<()> {
    let failed = |cause| Error::read_error("read", display_path(path), cause);
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        let is_own = name == LOCK_FILE || name == LEARNING_DIRECTORY;
        if !is_own && !manifest::is_work_file(&name) && !manifest::is_transfer_file(&name) {
            return Err(Error::usage_error(format!(
                "{} holds {name}, which is no part of a run: give a new or empty directory",
                display_path(path)
            )));
        }
    }
    Ok(())
}
