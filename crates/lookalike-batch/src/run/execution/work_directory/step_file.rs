//! Files of steps.
//!
//! | part | bytes |
//! |---|---|
//! | magic `LKWS` | 4 |
//! | version | 4 |
//! | number of the run, as in the manifest | 8 |
//! | kind, first and end, as in the manifest | 1, 8, 8 |
//! | content | any number |
//! | checksum of the parts before the content followed by the checksum of the content | 8 |
//!
//! A file is on disk under its name before the manifest names it, and never changes. Guarantee: a file that is
//! damaged, truncated, of another run or of another step is refused by its name.

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use lookalike::byte_reader::ByteReader;
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::AtomicFile;

use crate::run::execution::work_directory::manifest::{
    StepEntry, StepKind, WORK_FORMAT_VERSION, damaged_file,
};
use crate::sealed_manifest::FileChecksum;

const STEP_MAGIC: [u8; 4] = *b"LKWS";

/// Bytes before the content.
const HEADER_BYTES: usize = 33;

/// Bytes after the content.
const CHECKSUM_BYTES: usize = 8;

/// A step that is to be written.
pub(super) struct NewStep {
    pub(super) kind: StepKind,
    /// Blocks or documents, as in [`StepEntry`].
    pub(super) range: Range<u64>,
    pub(super) documents: u64,
    pub(super) input_bytes: u64,
    pub(super) content: Vec<u8>,
}

/// The content of a step that was read and verified.
pub(super) struct StepContent(Vec<u8>);

impl StepContent {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0[HEADER_BYTES..self.0.len() - CHECKSUM_BYTES]
    }
}

fn encode_header(run: FileChecksum, kind: StepKind, range: &Range<u64>) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(STEP_MAGIC);
    header.extend(WORK_FORMAT_VERSION.to_le_bytes());
    header.extend(run.0.to_le_bytes());
    header.push(kind as u8);
    header.extend(range.start.to_le_bytes());
    header.extend(range.end.to_le_bytes());
    header
}

/// Writes a file that appears under its name when it is on disk.
pub(super) fn write_file(path: &Path, parts: &[&[u8]]) -> Result<()> {
    let file = AtomicFile::create_for(path)?;
    let mut output = file.as_file();
    parts
        .iter()
        .try_for_each(|part| output.write_all(part))
        .map_err(|cause| Error::write_error("write", display_path(path), cause))?;
    file.commit_file()
}

/// Returns the checksum of a step. It takes the content by its checksum, so that the two need not be joined in memory.
fn compute_checksum(header: &[u8], content: &[u8]) -> u64 {
    let content = lookalike::value_hash(content).to_le_bytes();
    lookalike::value_hash(&[header, &content].concat())
}

/// Writes the file of a step, and returns its entry.
pub(super) fn write_step(path: &Path, run: FileChecksum, step: &NewStep) -> Result<StepEntry> {
    let header = encode_header(run, step.kind, &step.range);
    let checksum = compute_checksum(&header, &step.content);
    write_file(path, &[&header, &step.content, &checksum.to_le_bytes()])?;
    Ok(StepEntry {
        kind: step.kind,
        first: step.range.start,
        end: step.range.end,
        documents: step.documents,
        input_bytes: step.input_bytes,
        bytes: (HEADER_BYTES + step.content.len() + CHECKSUM_BYTES) as u64,
        checksum: FileChecksum(checksum),
    })
}

/// Reads and verifies the file of a step.
///
/// # Errors
/// If it cannot be read, or is not the file that the manifest names.
pub(super) fn read_step(path: &Path, run: FileChecksum, step: &StepEntry) -> Result<StepContent> {
    let bytes =
        fs::read(path).map_err(|cause| Error::read_error("read", display_path(path), cause))?;
    check_step(&bytes, run, step).map_err(|what| damaged_file(path, &what))?;
    Ok(StepContent(bytes))
}

fn check_step(bytes: &[u8], run: FileChecksum, step: &StepEntry) -> Result<(), String> {
    if bytes.len() as u64 != step.bytes || bytes.len() < HEADER_BYTES + CHECKSUM_BYTES {
        return Err(format!(
            "it has {} bytes, where the manifest says {}",
            bytes.len(),
            step.bytes
        ));
    }
    let (header, rest) = bytes.split_at(HEADER_BYTES);
    let (content, checksum) = rest.split_at(rest.len() - CHECKSUM_BYTES);
    if header[..4] != STEP_MAGIC {
        return Err("it does not begin as a step of a run does".to_owned());
    }
    let computed = compute_checksum(header, content);
    if ByteReader::new(checksum).read_u64() != Some(computed) {
        return Err("its bytes do not match their checksum".to_owned());
    }
    if ByteReader::new(&header[8..]).read_u64() != Some(run.0) {
        return Err("it is of another run".to_owned());
    }
    if header != encode_header(run, step.kind, &(step.first..step.end))
        || step.checksum.0 != computed
    {
        return Err("it is another step than the manifest says".to_owned());
    }
    Ok(())
}
