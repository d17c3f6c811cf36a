//! Outputs that are written as a sequence of bytes, and checks of an output before a run begins.

use super::atomic::check_upload;
use super::kept_rows::is_directory;
use super::output_stream::{OpenOutput, OutputStream, refuse_extension, refuse_inputs};
use super::staged_output::StagedOutput;
use super::{OutputTarget, WrittenOutput};
use crate::error::{Error, Result, display_path};
use crate::objects::ObjectUrl;
use crate::source::InputSet;

/// Writes bytes sequentially, compressed according to the extension.
pub struct ByteWriter {
    stream: OutputStream,
    bytes: u64,
}

impl ByteWriter {
    /// Starts an output.
    ///
    /// # Errors
    /// If the output cannot be created.
    pub fn create_output(output: &OutputTarget) -> Result<Self> {
        let target = OpenOutput::open_target(output, None)?;
        Ok(Self {
            stream: OutputStream::new(output, target, 1)?,
            bytes: 0,
        })
    }

    /// Writes some bytes.
    ///
    /// # Errors
    /// If the write fails.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.stream.write_bytes(bytes)
    }

    /// Completes the output and puts it in place.
    ///
    /// # Errors
    /// If a write, a sync, a rename or an upload fails.
    pub fn finish_output(self) -> Result<()> {
        self.prepare_output()?.commit_output().map(drop)
    }

    /// Completes the output without putting it in place.
    ///
    /// # Errors
    /// If a write or a sync fails.
    pub fn prepare_output(self) -> Result<StagedOutput> {
        let (target, _) = self.stream.finish_stream()?;
        let written = WrittenOutput {
            rows: 0,
            bytes: self.bytes,
        };
        StagedOutput::from_target(target, written)
    }
}

/// Checks an output before any work is done for it.
///
/// # Errors
/// If the output would overwrite an input, if its extension stands for an unsupported compression, if its
/// directory does not exist, or if a store refuses the object.
pub fn check_output(output: &OutputTarget, inputs: &InputSet) -> Result<()> {
    let OutputTarget::Path(path) = output else {
        return Ok(());
    };
    refuse_inputs(path, Some(inputs))?;
    refuse_extension(path, false)?;
    if let Some(url) = ObjectUrl::from_path(path) {
        // `check_kept` checks the objects below a prefix one by one.
        return if is_directory(path) {
            Ok(())
        } else {
            check_upload(&url?)
        };
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() && !path.is_dir() => Err(Error::output_error(format!(
            "cannot create {}: the directory {} does not exist",
            display_path(path),
            display_path(parent)
        ))),
        _ => Ok(()),
    }
}
