//! The seam between reading and what a run does with its documents while they are read.
//!
//! ```text
//! block of rows ──> rows ──> analysis ──> sketches ──> documents, in input order
//!   restore_block   │           │                          │
//!                   wants_row   add_document, finish_block accept_block
//! ```
//!
//! A [`ReadingBackend`] decides where blocks of documents live, or which of them are wanted. For example, one keeps
//! everything in memory, one writes sketches and keys to temporary files and stores blocks for a later process, one
//! compares a sample with every document, and one reads a sample alone. The reader knows none of them.
//!
//! Cost: one virtual call for each document, which is analysed in microseconds.

use lookalike::DocumentSketcher;
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::source::{BadRow, InputBlock, InputRow, InputSet, KnownBlock, ParseScratch};

use crate::run::reading::document_ids::DocumentIds;
use crate::run::reading::documents::ReadDocuments;

/// One of the two sets of inputs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum InputRole {
    /// Known documents (`--against`), which are read first.
    Known,
    /// New documents, which the run decides about.
    New,
}

/// The place of the documents of a run while they are read: memory or disk. The reader itself appends documents with
/// their sketches in memory; a backend does only what goes beyond that, and [`MemoryBackend`] does nothing.
pub(in crate::run) trait ReadingBackend {
    /// Opens the sink of one set of inputs. `rows_before` is the number of rows of the sets before it.
    fn open_sink(&self, role: InputRole, rows_before: u64) -> Box<dyn ReadingSink + '_>;

    /// Returns the empty list of the ids of one set of inputs: in memory, or in a temporary file.
    ///
    /// # Errors
    /// If a temporary file cannot be created.
    fn new_ids(&self) -> Result<DocumentIds> {
        Ok(DocumentIds::default())
    }

    /// Returns `true` if all rows are read. Then some of them must be usable, ids are compared, and fields that no row
    /// has are refused.
    fn reads_all_rows(&self) -> bool {
        true
    }
}

/// Sees the documents of one set of inputs, which the reader appends. All threads use it at the same time.
pub(in crate::run) trait ReadingSink: Sync {
    /// Creates the part of one thread.
    fn new_worker(&self) -> Box<dyn SinkWorker + '_>;

    /// Returns `true` if no further block is wanted.
    fn is_enough(&self) -> bool {
        false
    }

    /// Returns the place of a stored block of lines, which is then not read from the input.
    fn find_stored_block(&self, _ordinal: u64) -> Result<Option<KnownBlock>> {
        Ok(None)
    }

    /// Accepts the results of the worker for the next block, in input order. `documents` are those of earlier blocks.
    /// It may take the sketches of the block, which then do not stay in memory.
    fn accept_block(&self, _block: &mut SketchedBlock, _documents: &ReadDocuments) -> Result<()> {
        Ok(())
    }

    /// Called once all blocks are taken.
    fn finish_reading(&self) -> Result<()> {
        Ok(())
    }
}

/// The part of a [`ReadingSink`] that one thread uses.
pub(in crate::run) trait SinkWorker {
    /// Returns the documents of a block that is stored, so that it is not sketched again.
    fn restore_block(
        &mut self,
        _source: BlockSource<'_>,
        _buffers: &mut ReadBuffers,
    ) -> Result<Option<SketchedBlock>> {
        Ok(None)
    }

    /// Called before the rows of a block are parsed.
    fn begin_block(
        &mut self,
        _source: BlockSource<'_>,
        _analyzer: &TextAnalyzer,
        _buffers: &mut ReadBuffers,
    ) -> Result<()> {
        Ok(())
    }

    /// Returns `true` if a row is wanted.
    fn wants_row(&mut self, _number: u64) -> bool {
        true
    }

    /// Adds the sketches of a document. Its row was added to `documents` before.
    fn add_document(
        &mut self,
        sketching: &RowSketching,
        _row: &InputRow<'_>,
        analysis: &TextAnalysis<'_>,
        documents: &mut ReadDocuments,
    ) -> Result<()> {
        sketching
            .sketcher
            .add_document(analysis, &mut documents.sketches);
        Ok(())
    }

    /// Accepts a row that cannot be used.
    fn accept_bad_row(&mut self, bad: BadRow, documents: &mut ReadDocuments) {
        documents.bad.push(bad);
    }

    /// Called with the documents of a block once all of its rows are parsed.
    fn finish_block(
        &mut self,
        _source: BlockSource<'_>,
        documents: ReadDocuments,
    ) -> Result<SketchedBlock> {
        Ok(SketchedBlock::from_documents(documents))
    }
}

/// A block and the inputs that it belongs to.
#[derive(Clone, Copy)]
pub(in crate::run) struct BlockSource<'a> {
    pub(in crate::run) inputs: &'a InputSet,
    pub(in crate::run) block: &'a InputBlock,
}

/// Buffers of one thread.
#[derive(Default)]
pub(in crate::run) struct ReadBuffers {
    pub(in crate::run) parse: ParseScratch,
    pub(in crate::run) analysis: AnalysisScratch,
}

/// The analyzer and the sketcher that turn a row into sketches.
pub(in crate::run) struct RowSketching {
    pub(in crate::run) analyzer: TextAnalyzer,
    pub(in crate::run) sketcher: DocumentSketcher,
}

/// The documents of a block, and the bytes that its sink writes once all earlier blocks are written.
pub(in crate::run) struct SketchedBlock {
    pub(in crate::run) documents: ReadDocuments,
    /// The sketches as bytes, if they do not stay in memory.
    pub(in crate::run) sketch_bytes: Option<Vec<u8>>,
    /// The bytes to store for a later process.
    pub(in crate::run) step_bytes: Option<Vec<u8>>,
    /// Size of the block on disk.
    pub(in crate::run) bytes_on_disk: u64,
}

impl SketchedBlock {
    pub(in crate::run) fn from_documents(documents: ReadDocuments) -> Self {
        Self {
            documents,
            sketch_bytes: None,
            step_bytes: None,
            bytes_on_disk: 0,
        }
    }
}

/// Does nothing, so everything that the reader appends stays in memory.
pub(in crate::run) struct MemoryBackend;

impl ReadingBackend for MemoryBackend {
    fn open_sink(&self, _role: InputRole, _rows_before: u64) -> Box<dyn ReadingSink + '_> {
        Box::new(Self)
    }
}

impl ReadingSink for MemoryBackend {
    fn new_worker(&self) -> Box<dyn SinkWorker + '_> {
        Box::new(Self)
    }
}

impl SinkWorker for MemoryBackend {}
