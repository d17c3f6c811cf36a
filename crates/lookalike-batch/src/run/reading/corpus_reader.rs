//! Reads all inputs of a run: all threads turn rows into sketches, and the documents come in input order.

use lookalike::plan::MatchPlan;
use lookalike::text::TextAnalyzer;
use lookalike::{Cpu, DocId, DocumentSketcher, DocumentSketches};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{BadRow, InputBlock, InputRow, InputSet};

use crate::run::progress::{ProgressListener, RepeatedIds};
use crate::run::reading::documents::{ExtraFields, ReadDocuments};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::ordered_pipeline::process_blocks_in_order;
use crate::run::reading::reading_sink::{
    BlockSource, InputRole, ReadBuffers, ReadingBackend, ReadingSink, RowSketching, SinkWorker,
    SketchedBlock,
};
use crate::run::reading::rejected_rows::{RowTally, tell_bad_rows};
use crate::run::reading::repeated_ids::find_repeats;
use crate::run::reading::row_analysis::{analyze_row, make_bad_row};
use crate::run::settings::RunSettings;

/// Receives the bad rows of a block.
pub(in crate::run) type RejectRows<'a> = dyn Fn(&InputSet, &[BadRow]) -> Result<()> + Sync + 'a;

/// Number of features of short documents kept from the first reading; they take 96 MiB.
pub(in crate::run) const FEATURES_IN_MEMORY: usize = 12 << 20;

/// Number of documents after which memory is reserved for all.
const DOCUMENTS_BEFORE_RESERVATION: usize = 4096;

/// The documents of all inputs of a run.
pub(in crate::run) struct SketchedInputs {
    pub(in crate::run) analyzer: TextAnalyzer,
    /// Known documents (`--against`), without their sketches.
    pub(in crate::run) against: ReadDocuments,
    /// New documents, which the run decides about, without their sketches.
    pub(in crate::run) documents: ReadDocuments,
    /// Sketches of the known documents and then of the new ones; empty if the backend has taken them.
    pub(in crate::run) sketches: DocumentSketches,
    /// Ids that several documents have, if all rows were read.
    pub(in crate::run) repeated_ids: Option<RepeatedIds>,
}

/// Reads the known documents and then the new ones. `backend` decides where sketches go (memory or disk) and which blocks
/// are restored. `reject` receives all bad rows in order.
///
/// # Errors
/// If an input cannot be read, if no row of it can be used, if no row has a field of the settings, in a strict run if
/// a row is bad, and the errors of `backend` and `reject`.
pub(in crate::run) fn read_inputs(
    opened: &OpenInputs,
    settings: &RunSettings,
    plan: &MatchPlan,
    backend: &dyn ReadingBackend,
    reject: &RejectRows<'_>,
    progress: &dyn ProgressListener,
) -> Result<SketchedInputs> {
    let sketcher = DocumentSketcher::new(&settings.recipe, plan, Cpu::detect_best());
    let analyzer = TextAnalyzer::new(&settings.recipe).with_extras(sketcher.required_extras());
    let reader = CorpusReader {
        settings,
        sketching: RowSketching { analyzer, sketcher },
        reject,
        progress,
        reads_all_rows: backend.reads_all_rows(),
    };
    let mut against = ReadDocuments::with_sketches(reader.new_sketches());
    let mut repeated_ids = None;
    if let Some(inputs) = &opened.against {
        against.ids = backend.new_ids()?;
        let sink = backend.open_sink(InputRole::Known, 0);
        against = reader.read_set(inputs, &opened.against_fields, against, &*sink)?;
        if reader.reads_all_rows {
            repeated_ids = find_repeats(inputs, &against)?;
        }
    }
    let sink = backend.open_sink(InputRole::New, against.last_number());
    // The new documents are appended to the sketches of the known ones. So `documents` has the rows of the new ones, and
    // the sketches of both sets until these are returned by themselves.
    let mut base = ReadDocuments::with_sketches(std::mem::take(&mut against.sketches));
    base.ids = backend.new_ids()?;
    let mut documents =
        reader.read_set(&opened.documents, &opened.document_fields, base, &*sink)?;
    if reader.reads_all_rows {
        let repeated = find_repeats(&opened.documents, &documents)?;
        repeated_ids = RepeatedIds::add_counts(repeated, repeated_ids);
        documents.check_fields(&opened.documents, &opened.document_fields, settings)?;
        opened.documents.refuse_absent_fields()?;
    }
    Ok(SketchedInputs {
        sketches: std::mem::take(&mut documents.sketches),
        analyzer: reader.sketching.analyzer,
        against,
        documents,
        repeated_ids,
    })
}

/// State that the reading of both sets of inputs shares.
struct CorpusReader<'a> {
    settings: &'a RunSettings,
    sketching: RowSketching,
    reject: &'a RejectRows<'a>,
    progress: &'a dyn ProgressListener,
    reads_all_rows: bool,
}

impl CorpusReader<'_> {
    fn new_sketches(&self) -> DocumentSketches {
        self.sketching.sketcher.new_sketches(FEATURES_IN_MEMORY)
    }

    /// Reads one set of inputs and appends its documents to `documents`.
    fn read_set(
        &self,
        inputs: &InputSet,
        extra: &ExtraFields,
        mut documents: ReadDocuments,
        sink: &dyn ReadingSink,
    ) -> Result<ReadDocuments> {
        let mut tally = RowTally::default();
        let mut expected = if self.reads_all_rows {
            inputs.expected_rows()?
        } else {
            None
        };
        process_blocks_in_order(
            inputs,
            self.progress,
            || (ReadBuffers::default(), sink.new_worker()),
            &|| next_block(inputs, sink),
            |block, (buffers, worker), _| {
                let source = BlockSource { inputs, block };
                self.read_block(source, extra, buffers, &mut **worker)
            },
            |mut block| {
                self.report_bad_rows(inputs, &block.documents, &mut tally)?;
                sink.accept_block(&mut block, &documents)?;
                documents.append_documents(&mut block.documents)?;
                check_document_count(documents.len())?;
                // The first documents show how long their lists are.
                if documents.len() >= DOCUMENTS_BEFORE_RESERVATION
                    && let Some(rows) = expected.take()
                {
                    documents.reserve_documents((1.02 * rows) as usize);
                }
                Ok(())
            },
        )?;
        sink.finish_reading()?;
        if self.reads_all_rows {
            tally.refuse_useless(inputs)?;
        }
        Ok(documents)
    }

    fn read_block(
        &self,
        source: BlockSource<'_>,
        extra: &ExtraFields,
        buffers: &mut ReadBuffers,
        worker: &mut dyn SinkWorker,
    ) -> Result<SketchedBlock> {
        let restored = worker.restore_block(source, buffers)?;
        let mut block = if let Some(restored) = restored {
            restored
        } else {
            worker.begin_block(source, &self.sketching.analyzer, buffers)?;
            let documents = self.sketch_rows(source, extra, buffers, worker)?;
            worker.finish_block(source, documents)?
        };
        block.bytes_on_disk = source.block.bytes_on_disk();
        Ok(block)
    }

    fn sketch_rows(
        &self,
        source: BlockSource<'_>,
        extra: &ExtraFields,
        buffers: &mut ReadBuffers,
        worker: &mut dyn SinkWorker,
    ) -> Result<ReadDocuments> {
        let BlockSource { inputs, block } = source;
        let ReadBuffers { parse, analysis } = buffers;
        let mut documents = ReadDocuments::with_sketches(self.new_sketches());
        inputs.parse_block(block, parse, &mut |row| {
            let row: InputRow<'_> = match row {
                Ok(row) => row,
                Err(bad) => {
                    documents.bytes += u64::from(bad.place.byte_length());
                    worker.accept_bad_row(bad, &mut documents);
                    return Ok(());
                }
            };
            if !worker.wants_row(row.number) {
                return Ok(());
            }
            documents.bytes += u64::from(row.place.byte_length());
            if let Err(reason) = documents.push_row(&row, extra) {
                worker.accept_bad_row(make_bad_row(inputs, &row, reason), &mut documents);
                return Ok(());
            }
            let analysed = analyze_row(&self.sketching.analyzer, &row, analysis);
            worker.add_document(&self.sketching, &row, &analysed, &mut documents)
        })?;
        Ok(documents)
    }

    fn report_bad_rows(
        &self,
        inputs: &InputSet,
        documents: &ReadDocuments,
        tally: &mut RowTally,
    ) -> Result<()> {
        tally.add_rows(documents.len() as u64, &documents.bad);
        let strict = self.settings.strict;
        tell_bad_rows(&documents.bad, self.progress, strict, |rows| {
            (self.reject)(inputs, rows)
        })
    }
}

/// Returns the next block that the sink wants. A stored block of lines is not read from its input again.
fn next_block(inputs: &InputSet, sink: &dyn ReadingSink) -> Result<Option<InputBlock>> {
    if sink.is_enough() {
        return Ok(None);
    }
    inputs.next_block_unless_known(&|ordinal| sink.find_stored_block(ordinal))
}

fn check_document_count(documents: usize) -> Result<()> {
    let limit = DocId::LIMIT;
    if documents < limit {
        return Ok(());
    }
    Err(Error::limit_error(format!(
        "a run holds at most {limit} documents"
    )))
}
