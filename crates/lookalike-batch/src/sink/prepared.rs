//! Outputs that wait for their names, so that several appear together or not at all.

use super::Written;
use super::atomic::{OutputDirectories, Sealed};
use super::stream::Target;
use crate::error::{ErrorKind, Result};

/// An output that is written and on disk, but not under its name yet. Dropped, it is gone.
pub struct Prepared {
    pub(super) written: Written,
    pub(super) sealed: Vec<Sealed>,
    /// One that has not even a temporary name.
    pub(super) single: Option<Target>,
    /// Directories that were made for the files, dropped after these are in place.
    pub(super) directories: OutputDirectories,
}

impl Prepared {
    /// Of what is written to a target, which is synced. A pipe or a device is closed: who reads it
    /// waits for its end.
    pub(super) fn of(mut target: Target, written: Written) -> Result<Self> {
        if !target.is_regular() {
            target.seal()?;
            return Ok(Self::nothing(written));
        }
        target.sync()?;
        Ok(Self {
            written,
            sealed: Vec::new(),
            single: Some(target),
            directories: OutputDirectories::default(),
        })
    }

    /// Of what needs no name.
    pub(super) fn nothing(written: Written) -> Self {
        Self {
            written,
            sealed: Vec::new(),
            single: None,
            directories: OutputDirectories::default(),
        }
    }

    /// A reader that has gone away has what it wanted: the other outputs of a run are completed.
    pub(crate) fn even_if_unread(prepared: Result<Self>) -> Result<Self> {
        match prepared {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                Ok(Self::nothing(Written::default()))
            }
            prepared => prepared,
        }
    }

    /// Puts the output under its name, or all its files under theirs.
    ///
    /// # Errors
    ///
    /// A failed renaming.
    pub fn commit(self) -> Result<Written> {
        let written = self.written;
        commit_all([self])?;
        Ok(written)
    }
}

/// Puts several outputs under their names, all of them or, unless it is the renaming itself that
/// fails half-way, none.
///
/// # Errors
///
/// A failed renaming.
pub fn commit_all(outputs: impl IntoIterator<Item = Prepared>) -> Result<()> {
    let mut sealed = Vec::new();
    let mut directories = Vec::new();
    for output in outputs {
        directories.push(output.directories);
        sealed.extend(output.sealed);
        sealed.extend(output.single.map(Target::seal).transpose()?);
    }
    sealed.into_iter().try_for_each(Sealed::commit)
}
