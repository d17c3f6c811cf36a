//! The backend of reading whose documents live on disk: sketches and keys in temporary files if the run is out of core,
//! blocks in the directory of the run if it can be interrupted, or both.

pub(in crate::run) mod stored_block;

use lookalike::byte_reader::ByteReader;
use lookalike::shuffle::LocalScatterer;
use lookalike::text::TextAnalysis;
use lookalike::{DocId, DocumentSketcher, DocumentSketches};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{InputRow, KnownBlock};

use self::stored_block::{BlockStart, StoredBlockRows};
use crate::run::execution::out_of_core::spilled_reading::{ScatteredBlock, SpillFiles};
use crate::run::execution::work_directory::WorkDirectory;
use crate::run::execution::work_directory::manifest::StepKind;
use crate::run::execution::work_directory::reading_steps::{ReadingSteps, StoredBlock};
use crate::run::reading::document_ids::DocumentIds;
use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::reading_sink::{
    BlockSource, InputRole, ReadBuffers, ReadingBackend, ReadingSink, RowSketching, SinkWorker,
    SketchedBlock,
};

/// The places of the documents of a run on disk.
pub(in crate::run) struct DiskBackend<'a> {
    /// The directory of the run, if it can be interrupted.
    pub(in crate::run) work: Option<&'a WorkDirectory>,
    /// The temporary files of sketches and keys, if the run is out of core.
    pub(in crate::run) spilled: Option<&'a SpillFiles>,
    pub(in crate::run) sketcher: DocumentSketcher,
}

impl ReadingBackend for DiskBackend<'_> {
    fn open_sink(&self, role: InputRole, rows_before: u64) -> Box<dyn ReadingSink + '_> {
        let (kind, is_new) = match role {
            InputRole::Known => (StepKind::Against, false),
            InputRole::New => (StepKind::Documents, true),
        };
        Box::new(DiskSink {
            sketcher: &self.sketcher,
            steps: self.work.map(|work| ReadingSteps::new(work, kind)),
            spill: self.spilled.map(|reading| SpillTarget {
                reading,
                first_node: rows_before,
                is_new,
            }),
        })
    }

    fn new_ids(&self) -> Result<DocumentIds> {
        match self.spilled {
            Some(spilled) => spilled.new_ids(),
            None => Ok(DocumentIds::default()),
        }
    }
}

/// The place of the sketches and keys of one set of inputs, if they do not stay in memory.
#[derive(Clone, Copy)]
struct SpillTarget<'a> {
    reading: &'a SpillFiles,
    /// Node of the first row of these inputs.
    first_node: u64,
    /// `true` if these documents are new, so that the run decides about them.
    is_new: bool,
}

impl SpillTarget<'_> {
    fn node_of_row(&self, number: u64) -> Result<u32> {
        u32::try_from(self.first_node + number - 1).map_err(|_| {
            Error::limit_error(format!(
                "a run in bounded memory reads at most {} rows, with those of the documents to compare against",
                1u64 << 32
            ))
        })
    }

    /// Writes the keys of a block to their file, and returns its sketches as bytes.
    fn spill_block(
        &self,
        source: BlockSource<'_>,
        sketches: &DocumentSketches,
        scattered: &ScatteredBlock,
    ) -> Result<Vec<u8>> {
        let order = (self.is_new, source.block.ordinal());
        self.reading.push_scattered(order, scattered)?;
        if self.is_new {
            self.reading.count_states(sketches);
        }
        Ok(self.reading.encode_sketches(sketches))
    }
}

struct DiskSink<'a> {
    sketcher: &'a DocumentSketcher,
    steps: Option<ReadingSteps<'a>>,
    spill: Option<SpillTarget<'a>>,
}

impl ReadingSink for DiskSink<'_> {
    fn new_worker(&self) -> Box<dyn SinkWorker + '_> {
        Box::new(DiskWorker {
            sink: self,
            scatterer: self.spill.map(|spill| spill.reading.new_scatterer()),
        })
    }

    fn find_stored_block(&self, ordinal: u64) -> Result<Option<KnownBlock>> {
        let Some(steps) = &self.steps else {
            return Ok(None);
        };
        let find = |bytes: &[u8]| BlockStart::decode_start(&mut ByteReader::new(bytes))?.lines;
        Ok(steps.peek_block(ordinal, find)?.flatten())
    }

    fn accept_block(&self, block: &mut SketchedBlock, documents: &ReadDocuments) -> Result<()> {
        if let (Some(spill), Some(sketches)) = (self.spill, block.sketch_bytes.take()) {
            spill.reading.push_sketches(&sketches)?;
            block.documents.sketches = DocumentSketches::default();
            let bytes = documents.memory_bytes() + documents.value_bytes();
            spill.reading.check_rows(documents.len(), bytes)?;
        }
        if let Some(steps) = &self.steps {
            steps.note_room(documents.sketches.has_feature_room());
            if let Some(bytes) = block.step_bytes.take() {
                steps.push_block(&bytes, block.documents.len() as u64, block.bytes_on_disk)?;
            }
        }
        Ok(())
    }

    fn finish_reading(&self) -> Result<()> {
        self.steps
            .as_ref()
            .map_or(Ok(()), ReadingSteps::finish_steps)
    }
}

impl DiskSink<'_> {
    fn start_of_block(&self, source: BlockSource<'_>) -> BlockStart {
        BlockStart::of_block(source, self.spill.map(|spill| spill.first_node))
    }

    /// Returns what a step holds of a block, after checking that it was made from the same rows.
    fn restore_rows(
        &self,
        source: BlockSource<'_>,
        steps: &ReadingSteps<'_>,
        stored: &StoredBlock,
        buffers: &mut ReadBuffers,
    ) -> Result<StoredBlockRows> {
        let BlockSource { inputs, block } = source;
        let refuse = |what: &str| steps.block_error(stored, what);
        let mut rows = StoredBlockRows::decode_rows(stored.as_bytes(), self.sketcher)
            .ok_or_else(|| refuse("its documents cannot be read"))?;
        if rows.bytes_on_disk != block.bytes_on_disk() {
            return Err(refuse("it was made from another input"));
        }
        let numbers = block.row_numbers();
        inputs.add_stored_rows(numbers.end - numbers.start, &rows.seen_fields);
        if !self.start_of_block(source).is_at(rows.start) {
            return Err(refuse("its rows were at another place"));
        }
        if !block.has_fixed_places() {
            let mut places = Vec::new();
            inputs.parse_block(block, &mut buffers.parse, &mut |row| {
                places.push(match row {
                    Ok(row) => (row.number, row.place),
                    Err(bad) => (bad.number, bad.place),
                });
                Ok(())
            })?;
            if !rows.documents.replace_places(&places) {
                return Err(refuse("it was made from other rows"));
            }
        }
        Ok(rows)
    }
}

struct DiskWorker<'a> {
    sink: &'a DiskSink<'a>,
    /// The keys of documents, if they do not stay in memory.
    scatterer: Option<LocalScatterer>,
}

impl SinkWorker for DiskWorker<'_> {
    fn restore_block(
        &mut self,
        source: BlockSource<'_>,
        buffers: &mut ReadBuffers,
    ) -> Result<Option<SketchedBlock>> {
        let Some(steps) = &self.sink.steps else {
            return Ok(None);
        };
        let Some(stored) = steps.remove_block(source.block.ordinal())? else {
            return Ok(None);
        };
        let rows = self.sink.restore_rows(source, steps, &stored, buffers)?;
        let mut restored = SketchedBlock::from_documents(rows.documents);
        if let Some(spill) = self.sink.spill {
            spill.reading.count_scattered(&rows.scattered)?;
            let sketches = &restored.documents.sketches;
            let bytes = spill.spill_block(source, sketches, &rows.scattered)?;
            restored.sketch_bytes = Some(bytes);
        }
        Ok(Some(restored))
    }

    fn add_document(
        &mut self,
        sketching: &RowSketching,
        row: &InputRow<'_>,
        analysis: &TextAnalysis<'_>,
        documents: &mut ReadDocuments,
    ) -> Result<()> {
        sketching
            .sketcher
            .add_document(analysis, &mut documents.sketches);
        if let (Some(spill), Some(scatterer)) = (self.sink.spill, &mut self.scatterer) {
            let node = spill.node_of_row(row.number)?;
            let partition = documents.partitions.last().copied().unwrap_or(0);
            let last = DocId(documents.sketches.len() as u32 - 1);
            scatterer.add_document(node, partition, &documents.sketches, last, analysis);
        }
        Ok(())
    }

    fn finish_block(
        &mut self,
        source: BlockSource<'_>,
        documents: ReadDocuments,
    ) -> Result<SketchedBlock> {
        let sink = self.sink;
        let scattered = match (sink.spill, &mut self.scatterer) {
            (Some(spill), Some(scatterer)) => spill.reading.take_scattered(scatterer),
            _ => ScatteredBlock::default(),
        };
        let mut block = SketchedBlock::from_documents(documents);
        block.step_bytes = sink.steps.as_ref().map(|steps| {
            StoredBlockRows::encode_rows(
                source,
                sink.start_of_block(source),
                sink.sketcher,
                &block.documents,
                &scattered,
                steps.keeps_lists(),
            )
        });
        if let Some(spill) = sink.spill {
            let bytes = spill.spill_block(source, &block.documents.sketches, &scattered)?;
            block.sketch_bytes = Some(bytes);
        }
        Ok(block)
    }
}
