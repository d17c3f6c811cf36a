//! Steps of reading: the documents of blocks, as the threads have made them.
//!
//! The content of a step is, for each block in input order, the number of its bytes (8), and its bytes, which
//! `disk_backend::stored_block` describes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lookalike::byte_reader::ByteReader;
use lookalike_io::error::{Error, Result};

use crate::run::execution::work_directory::manifest::{
    StepEntry, StepKind, WorkManifest, damaged_file,
};
use crate::run::execution::work_directory::step_file::{NewStep, StepContent, read_step};
use crate::run::execution::work_directory::{WorkDirectory, lock};
use crate::sealed_manifest::FileChecksum;

/// The steps of one set of inputs: those that are stored, and the one that is being made.
pub(in crate::run) struct ReadingSteps<'a> {
    /// The directory for further steps; `None` if all blocks are stored.
    directory: Option<(&'a WorkDirectory, StepKind)>,
    stored: Vec<StoredStep>,
    /// Number of blocks that are stored.
    stored_blocks: u64,
    pending: Mutex<PendingStep>,
    keeps_lists: AtomicBool,
}

struct StoredStep {
    path: PathBuf,
    run: FileChecksum,
    entry: StepEntry,
    /// The first block among those of all inputs.
    first: u64,
    blocks: Mutex<StoredBlocks>,
}

/// The blocks of a step, which are in memory while some of them are still to be used.
struct StoredBlocks {
    content: Option<(Arc<StepContent>, Vec<Range<usize>>)>,
    /// Number of blocks that are still to be used.
    unused: u64,
}

#[derive(Default)]
struct PendingStep {
    content: Vec<u8>,
    blocks: Range<u64>,
    documents: u64,
    input_bytes: u64,
}

/// A block that is stored.
pub(in crate::run) struct StoredBlock {
    content: Arc<StepContent>,
    range: Range<usize>,
    path: PathBuf,
}

impl StoredBlock {
    /// Returns the bytes of the block.
    pub(in crate::run) fn as_bytes(&self) -> &[u8] {
        &self.content.as_bytes()[self.range.clone()]
    }
}

impl<'a> ReadingSteps<'a> {
    /// Returns the steps of a set of inputs.
    pub(in crate::run) fn new(directory: &'a WorkDirectory, kind: StepKind) -> Self {
        let mut stored = Vec::new();
        append_stored(&directory.state.path, &directory.before, kind, &mut stored);
        Self::with_stored(stored, Some((directory, kind)))
    }

    fn with_stored(
        stored: Vec<StoredStep>,
        directory: Option<(&'a WorkDirectory, StepKind)>,
    ) -> Self {
        let stored_blocks = stored.last().map_or(0, StoredStep::end);
        Self {
            directory,
            stored,
            stored_blocks,
            pending: Mutex::new(PendingStep {
                blocks: stored_blocks..stored_blocks,
                ..PendingStep::default()
            }),
            keeps_lists: AtomicBool::new(true),
        }
    }

    /// Removes and returns a block if it is stored.
    ///
    /// # Errors
    /// If its step cannot be read or is damaged.
    pub(in crate::run) fn remove_block(&self, ordinal: u64) -> Result<Option<StoredBlock>> {
        let Some(step) = self.step_of(ordinal) else {
            return Ok(None);
        };
        let mut blocks = lock(&step.blocks);
        let (content, range) = step.load_block(&mut blocks, ordinal)?;
        blocks.unused = blocks.unused.saturating_sub(1);
        if blocks.unused == 0 {
            blocks.content = None;
        }
        Ok(Some(StoredBlock {
            range,
            content,
            path: step.path.clone(),
        }))
    }

    /// Calls `read` with the bytes of a block that is stored and was not taken yet.
    ///
    /// # Errors
    /// If its step cannot be read or is damaged.
    pub(in crate::run) fn peek_block<T>(
        &self,
        ordinal: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let Some(step) = self.step_of(ordinal) else {
            return Ok(None);
        };
        let (content, range) = step.load_block(&mut lock(&step.blocks), ordinal)?;
        Ok(Some(read(&content.as_bytes()[range])))
    }

    fn step_of(&self, ordinal: u64) -> Option<&StoredStep> {
        let at = self.stored.partition_point(|step| step.end() <= ordinal);
        (ordinal < self.stored_blocks).then(|| &self.stored[at])
    }

    /// Returns the error for a block that is not what a step can hold.
    pub(in crate::run) fn block_error(&self, block: &StoredBlock, what: &str) -> Error {
        damaged_file(&block.path, what)
    }

    /// Returns `true` if lists that are kept within a budget are worth storing.
    pub(in crate::run) fn keeps_lists(&self) -> bool {
        self.keeps_lists.load(Ordering::Relaxed)
    }

    /// Records whether the store of sketches still has room for such lists.
    pub(in crate::run) fn note_room(&self, has_room: bool) {
        self.keeps_lists.store(has_room, Ordering::Relaxed);
    }

    /// Adds the next block to the step that is being made, and ends the step if it is time. Blocks come in input
    /// order.
    ///
    /// # Errors
    /// If a step cannot be written.
    pub(in crate::run) fn push_block(
        &self,
        block: &[u8],
        documents: u64,
        input_bytes: u64,
    ) -> Result<()> {
        let mut pending = lock(&self.pending);
        pending.content.extend((block.len() as u64).to_le_bytes());
        pending.content.extend_from_slice(block);
        pending.blocks.end += 1;
        pending.documents += documents;
        pending.input_bytes += input_bytes;
        let is_due = self
            .directory
            .is_some_and(|(directory, _)| directory.is_step_due(pending.content.len()));
        if is_due {
            self.end_step(&mut pending)
        } else {
            Ok(())
        }
    }

    /// Ends the last step, once all blocks are read.
    ///
    /// # Errors
    /// If a step cannot be written, and if blocks are stored that the inputs do not have.
    pub(in crate::run) fn finish_steps(&self) -> Result<()> {
        let unused = self
            .stored
            .iter()
            .find(|step| lock(&step.blocks).unused > 0);
        if let Some(step) = unused {
            return Err(damaged_file(
                &step.path,
                "it has blocks that the inputs do not have",
            ));
        }
        self.end_step(&mut lock(&self.pending))?;
        let directory = self.directory.map(|(directory, _)| directory);
        directory.map_or(Ok(()), WorkDirectory::wait_for_writing)
    }

    fn end_step(&self, pending: &mut PendingStep) -> Result<()> {
        let next = pending.blocks.end..pending.blocks.end;
        let PendingStep {
            content,
            blocks,
            documents,
            input_bytes,
        } = std::mem::replace(
            pending,
            PendingStep {
                blocks: next,
                ..PendingStep::default()
            },
        );
        if blocks.is_empty() {
            return Ok(());
        }
        let Some((directory, kind)) = self.directory else {
            return Err(Error::input_error(format!(
                "the inputs have more blocks than the {} that were stored of them: they have changed meanwhile",
                blocks.start
            )));
        };
        directory.submit_step(NewStep {
            kind,
            range: blocks,
            documents,
            input_bytes,
            content,
        })
    }
}

/// Appends the steps that a directory holds. Their blocks follow those of the steps before.
fn append_stored(
    path: &Path,
    manifest: &WorkManifest,
    kind: StepKind,
    stored: &mut Vec<StoredStep>,
) {
    let base = stored.last().map_or(0, StoredStep::end);
    let steps = manifest.steps_of(kind);
    stored.extend(steps.map(|(file, entry)| StoredStep {
        path: path.join(file),
        run: manifest.run,
        first: base + entry.first,
        blocks: Mutex::new(StoredBlocks {
            content: None,
            unused: entry.end - entry.first,
        }),
        entry: entry.clone(),
    }));
}

impl StoredStep {
    /// The block after the last one, among those of all inputs.
    fn end(&self) -> u64 {
        self.first + (self.entry.end - self.entry.first)
    }

    /// Returns the content of the step and the range of a block in it. `blocks` are those of this step.
    fn load_block(
        &self,
        blocks: &mut StoredBlocks,
        ordinal: u64,
    ) -> Result<(Arc<StepContent>, Range<usize>)> {
        let (content, ranges) = match &mut blocks.content {
            Some(loaded) => loaded,
            missing => missing.insert(self.load_blocks()?),
        };
        let range = ranges[(ordinal - self.first) as usize].clone();
        Ok((Arc::clone(content), range))
    }

    fn load_blocks(&self) -> Result<(Arc<StepContent>, Vec<Range<usize>>)> {
        let content = read_step(&self.path, self.run, &self.entry)?;
        let ranges = divide_blocks(content.as_bytes(), self.entry.end - self.entry.first)
            .ok_or_else(|| damaged_file(&self.path, "it has not as many blocks as it says"))?;
        Ok((Arc::new(content), ranges))
    }
}

/// Returns the range of each block in the content of a step.
fn divide_blocks(content: &[u8], count: u64) -> Option<Vec<Range<usize>>> {
    let mut reader = ByteReader::new(content);
    let mut ranges = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(reader.read_u64()?).ok()?;
        let start = content.len() - reader.rest().len();
        reader.read_bytes(length)?;
        ranges.push(start..start + length);
    }
    reader.is_at_end().then_some(ranges)
}
