//! Complete outputs that are not in place yet, so that several outputs appear together or not at all.

use super::WrittenOutput;
use super::atomic::{OutputDirectories, SealedFile};
use super::output_stream::OpenOutput;
use crate::error::{ErrorKind, Result};

/// An output that is complete and on disk, but not under its name yet. Dropping it discards it.
pub struct StagedOutput {
    pub(super) written: WrittenOutput,
    pub(super) sealed: Vec<SealedFile>,
    /// A target that does not even have a temporary name.
    pub(super) single: Option<OpenOutput>,
    /// Directories created for the files. Declared last, so that they are dropped after the files are
    /// in place.
    pub(super) directories: OutputDirectories,
}

impl StagedOutput {
    /// Prepares a target by syncing it. A pipe or a device is closed, because its reader waits for the
    /// end.
    pub(super) fn from_target(mut target: OpenOutput, written: WrittenOutput) -> Result<Self> {
        if !target.is_regular() {
            target.seal_output()?;
            return Ok(Self::without_name(written));
        }
        target.sync_output()?;
        Ok(Self {
            written,
            sealed: Vec::new(),
            single: Some(target),
            directories: OutputDirectories::default(),
        })
    }

    /// Creates an output that needs no renaming.
    pub(super) fn without_name(written: WrittenOutput) -> Self {
        Self {
            written,
            sealed: Vec::new(),
            single: None,
            directories: OutputDirectories::default(),
        }
    }

    /// Treats a closed pipe as success, because its reader has all it wanted; the other outputs of the
    /// run are completed.
    pub fn even_if_unread(prepared: Result<Self>) -> Result<Self> {
        match prepared {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                Ok(Self::without_name(WrittenOutput::default()))
            }
            prepared => prepared,
        }
    }

    /// Puts the output, or all of its files, in place.
    ///
    /// # Errors
    ///
    /// If a rename fails.
    pub fn commit_output(self) -> Result<WrittenOutput> {
        let written = self.written;
        commit_all([self])?;
        Ok(written)
    }
}

/// Puts several outputs in place: all of them or none, unless a rename fails half-way. Outputs of object
/// stores are uploaded before the first one appears.
///
/// # Errors
///
/// If an upload or a rename fails.
pub fn commit_all(outputs: impl IntoIterator<Item = StagedOutput>) -> Result<()> {
    let mut sealed = Vec::new();
    let mut directories = Vec::new();
    for output in outputs {
        directories.push(output.directories);
        sealed.extend(output.sealed);
        sealed.extend(output.single.map(OpenOutput::seal_output).transpose()?);
    }
    sealed.into_iter().try_for_each(SealedFile::commit_file)
}
