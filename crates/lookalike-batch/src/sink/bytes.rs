//! Outputs of plain bytes, and checks of an output before a run begins.

use super::prepared::Prepared;
use super::stream::{OutputStream, Target, refuse_extension, refuse_inputs};
use super::{Output, Written};
use crate::error::{Error, Result, shown};
use crate::source::Inputs;

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
    pub fn create(output: &Output) -> Result<Self> {
        let target = Target::open(output, None)?;
        Ok(Self {
            stream: OutputStream::new(output, target, 1)?,
            bytes: 0,
        })
    }

    /// Writes some bytes.
    ///
    /// # Errors
    /// If the write fails.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.stream.put(bytes)
    }

    /// Completes the output and puts it in place. Returns the number of bytes before compression.
    ///
    /// # Errors
    /// If a write, a sync or a rename fails.
    pub fn finish(self) -> Result<Written> {
        self.prepare()?.commit()
    }

    /// Completes the output without putting it in place.
    ///
    /// # Errors
    /// If a write or a sync fails.
    pub(crate) fn prepare(self) -> Result<Prepared> {
        let (target, _) = self.stream.finish()?;
        let written = Written {
            rows: 0,
            bytes: self.bytes,
        };
        Prepared::of(target, written)
    }
}

/// Checks an output before any work is done for it.
///
/// # Errors
/// If the output would overwrite an input, if its extension stands for an unsupported compression, or
/// if its directory does not exist.
pub fn check_output(output: &Output, inputs: &Inputs) -> Result<()> {
    let Output::Path(path) = output else {
        return Ok(());
    };
    refuse_inputs(path, Some(inputs))?;
    refuse_extension(path, false)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() && !path.is_dir() => Err(Error::output(format!(
            "cannot create {}: the directory {} does not exist",
            shown(path),
            shown(parent)
        ))),
        _ => Ok(()),
    }
}
