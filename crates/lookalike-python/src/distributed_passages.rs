//! The steps of a passages run on many machines ([`lookalike_batch::passage_shuffle`]), batch by batch.
//!
//! As in `distributed`, steps take and return Arrow record batches, and blocks travel as rows with a kind, a part and
//! the block.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder,
    ListBuilder, StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array};
use lookalike::passages::PassageSettings;
use lookalike::shuffle::MatchBounds;
use lookalike_batch::passage_shuffle::{
    CandidateBlocks, CandidateGatherer, ComparedDocumentText, DocumentKey, FoundPassage,
    GatheredMembers, GramScatterer, GroupComparer, MemberDocument, MemberGatherer, PartBlock,
    PassageShuffleSetup,
};
use lookalike_batch::run::OffsetUnit;
use pyo3::prelude::*;
use serde_json::json;

use crate::distributed::{
    BUFFERED_BYTES, PyRecordBatch, block_column, input_error, make_batch, step_finished,
    string_column, typed_column,
};
use crate::documents::TableDocumentReader;
use crate::error::{InputError, engine_error_to_py, run_error_to_py};
use crate::passages::{DocumentLimit, boilerplate_limit, choose};
use crate::recipe::Recipe;

/// Content of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassageRowKind {
    /// Selected grams of a part.
    Grams = 0,
    /// Ids of a part.
    Ids = 1,
    /// Members of groups, and documents with boilerplate, of a part.
    Members = 2,
    /// A row that cannot be used: its id and the reason, as JSON.
    Rejected = 3,
    /// Numbers of what a task has processed, as JSON.
    Counts = 4,
    /// The number of boilerplate grams, in 8 bytes.
    Boilerplate = 5,
    /// A document of a candidate pair with its groups.
    Document = 6,
    /// An id that several rows have.
    RepeatedId = 7,
    /// An id that several rows of the known documents have.
    RepeatedKnownId = 8,
}

const BOILERPLATE: i32 = PassageRowKind::Boilerplate as i32;

/// Groups of the documents in a batch.
const GROUPS_IN_BATCH: usize = 1 << 16;

/// Settings of a run.
#[pyclass(
    frozen,
    module = "lookalike._engine",
    name = "DistributedPassages",
    from_py_object
)]
#[derive(Clone)]
pub(crate) struct PassageJob {
    setup: Arc<PassageShuffleSetup>,
    bounds: MatchBounds,
}

#[pymethods]
impl PassageJob {
    #[new]
    fn new(
        recipe: &Recipe,
        min_length: u32,
        offsets: &str,
        within: bool,
        against: bool,
    ) -> PyResult<Self> {
        let bounds = MatchBounds {
            within,
            against,
            features: false,
        };
        let passages = PassageSettings::new(min_length).map_err(engine_error_to_py)?;
        let offsets = choose("offsets", offsets, &OffsetUnit::ALL, OffsetUnit::name)?;
        let setup = PassageShuffleSetup::new(&recipe.0, passages, bounds, offsets);
        Ok(Self {
            setup: Arc::new(setup),
            bounds,
        })
    }
}

/// Returns the number of documents, of `documents`, that may share a gram; None without a limit.
#[pyfunction]
pub(crate) fn document_limit(
    max_documents: Option<DocumentLimit>,
    documents: usize,
) -> PyResult<Option<u32>> {
    Ok(boilerplate_limit(max_documents)?.max_documents(documents))
}

/// Builder of rows of blocks.
#[derive(Default)]
pub(crate) struct PartRows {
    kinds: Int32Builder,
    parts: Int32Builder,
    blocks: BinaryBuilder,
}

impl PartRows {
    /// Adds a block; `kind` says what it has.
    pub(crate) fn push_row(&mut self, kind: i32, part: u32, block: &[u8]) {
        self.kinds.append_value(kind);
        self.parts.append_value(part as i32);
        self.blocks.append_value(block);
    }

    fn push_blocks(&mut self, kind: PassageRowKind, blocks: &[PartBlock]) {
        blocks
            .iter()
            .for_each(|block| self.push_row(kind as i32, block.part, &block.block));
    }

    /// Returns the rows as a batch.
    pub(crate) fn into_batch(mut self) -> PyResult<PyRecordBatch> {
        make_batch([
            ("kind", Arc::new(self.kinds.finish()) as ArrayRef),
            ("part", Arc::new(self.parts.finish())),
            ("block", Arc::new(self.blocks.finish())),
        ])
    }
}

/// Selects the grams of documents.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct ScatterGrams {
    reading: TableDocumentReader,
    scatterer: GramScatterer,
    parts: u32,
    rows: u64,
    /// Rows that cannot be used, as JSON.
    rejected: Vec<String>,
}

#[pymethods]
impl ScatterGrams {
    #[new]
    fn new(of: PassageJob, parts: u32) -> Self {
        Self {
            reading: TableDocumentReader::new(&[], of.bounds),
            scatterer: GramScatterer::new(of.setup),
            parts,
            rows: 0,
            rejected: Vec::new(),
        }
    }

    /// Takes a batch of documents, and returns blocks once there are many.
    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<Option<PyRecordBatch>> {
        let (reading, scatterer) = (&self.reading, &mut self.scatterer);
        self.rows += batch.0.num_rows() as u64;
        let bad = py.detach(|| {
            reading.visit_documents(batch.0, &mut |document| scatterer.add_document(document))
        })?;
        self.rejected
            .extend(bad.into_iter().map(|row| json!(row).to_string()));
        if self.scatterer.pending_bytes() < BUFFERED_BYTES {
            Ok(None)
        } else {
            self.take_rows(py).into_batch().map(Some)
        }
    }

    /// Returns the other blocks, and the numbers of all documents.
    fn finish(&mut self, py: Python<'_>) -> PyResult<PyRecordBatch> {
        let mut rows = self.take_rows(py);
        let counts = self.scatterer.counts();
        let told = json!({
            "documents": counts.searched,
            "known": counts.known,
            "tokens": counts.tokens,
            "rejected": self.rows - counts.searched - counts.known,
        });
        rows.push_row(
            PassageRowKind::Counts as i32,
            0,
            told.to_string().as_bytes(),
        );
        rows.into_batch()
    }
}

impl ScatterGrams {
    fn take_rows(&mut self, py: Python<'_>) -> PartRows {
        let blocks = py.detach(|| self.scatterer.take_blocks(self.parts));
        let mut rows = PartRows::default();
        rows.push_blocks(PassageRowKind::Grams, &blocks.grams);
        rows.push_blocks(PassageRowKind::Ids, &blocks.ids);
        for rejected in self.rejected.drain(..) {
            rows.push_row(PassageRowKind::Rejected as i32, 0, rejected.as_bytes());
        }
        rows
    }
}

/// Progress of a step that first takes blocks and then returns candidates.
enum CandidateProgress {
    Gathering(CandidateGatherer),
    Returning(CandidateBlocks),
    Finished,
}

/// Finds the candidate pairs among the grams of some parts.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct GatherCandidates {
    progress: CandidateProgress,
    parts: u32,
}

#[pymethods]
impl GatherCandidates {
    /// `parts` is the number of parts that receive the candidates.
    #[new]
    #[pyo3(signature = (of, max_documents, parts))]
    fn new(of: PassageJob, max_documents: Option<u32>, parts: u32) -> Self {
        let gatherer = CandidateGatherer::new(of.setup, max_documents);
        Self {
            progress: CandidateProgress::Gathering(gatherer),
            parts,
        }
    }

    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<()> {
        let blocks = block_column(&batch.0)?;
        let CandidateProgress::Gathering(gatherer) = &mut self.progress else {
            return Err(step_finished());
        };
        let added = py.detach(|| {
            let mut blocks = blocks.iter().flatten();
            blocks.try_for_each(|block| gatherer.add_block(block))
        });
        added.map_err(run_error_to_py)
    }

    /// Returns the next candidates, and None after the last ones. The last batch has the number of boilerplate grams.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<PyRecordBatch>> {
        self.progress = match std::mem::replace(&mut self.progress, CandidateProgress::Finished) {
            CandidateProgress::Gathering(gatherer) => {
                CandidateProgress::Returning(py.detach(|| gatherer.find_candidates(self.parts)))
            }
            other => other,
        };
        let CandidateProgress::Returning(candidates) = &mut self.progress else {
            return Ok(None);
        };
        let mut rows = PartRows::default();
        match py.detach(|| candidates.next()) {
            Some(blocks) => rows.push_blocks(PassageRowKind::Members, &blocks),
            None => {
                let grams = candidates.boilerplate_grams().to_le_bytes();
                rows.push_row(BOILERPLATE, 0, &grams);
                self.progress = CandidateProgress::Finished;
            }
        }
        rows.into_batch().map(Some)
    }
}

/// Gives each document of some parts its groups.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct GatherMembers {
    gatherer: MemberGatherer,
    boilerplate_grams: u64,
}

#[pymethods]
impl GatherMembers {
    #[new]
    fn new() -> Self {
        Self {
            gatherer: MemberGatherer::new(),
            boilerplate_grams: 0,
        }
    }

    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<()> {
        let kinds: &Int32Array = typed_column(&batch.0, "kind")?;
        let blocks = block_column(&batch.0)?;
        let added = py.detach(|| {
            let rows = kinds.values().iter().zip(blocks.iter().flatten());
            for (&kind, block) in rows {
                if kind == BOILERPLATE {
                    let grams = block.try_into().map_or(0, u64::from_le_bytes);
                    self.boilerplate_grams += grams;
                } else {
                    self.gatherer.add_block(block)?;
                }
            }
            Ok(())
        });
        added.map_err(run_error_to_py)
    }

    /// Returns batches of documents with their groups, repeated ids, and numbers.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Vec<PyRecordBatch>> {
        let gatherer = std::mem::take(&mut self.gatherer);
        let found = py.detach(|| gatherer.finish_gathering());
        let found = found.map_err(run_error_to_py)?;
        let mut rows = MemberRows::default();
        rows.push_findings(&found, self.boilerplate_grams);
        let mut batches = Vec::new();
        for document in &found.documents {
            rows.push_document(document);
            if rows.groups.values().len() >= GROUPS_IN_BATCH {
                batches.push(std::mem::take(&mut rows).into_batch()?);
            }
        }
        batches.push(rows.into_batch()?);
        Ok(batches)
    }
}

/// Builder of rows with documents and their groups.
#[derive(Default)]
struct MemberRows {
    kinds: Int32Builder,
    keys: Int64Builder,
    ids: StringBuilder,
    given: BooleanBuilder,
    groups: ListBuilder<Int64Builder>,
}

impl MemberRows {
    fn push_document(&mut self, document: &MemberDocument) {
        self.kinds.append_value(PassageRowKind::Document as i32);
        self.keys.append_value(document.key.0 as i64);
        self.ids.append_value(&document.id);
        self.given.append_value(document.key.is_known());
        let groups = document.groups.iter().map(|group| Some(group.0 as i64));
        self.groups.append_value(groups);
    }

    fn push_findings(&mut self, found: &GatheredMembers, boilerplate_grams: u64) {
        for id in &found.repeated_ids {
            self.push_text(PassageRowKind::RepeatedId, id);
        }
        for id in &found.repeated_known_ids {
            self.push_text(PassageRowKind::RepeatedKnownId, id);
        }
        let told = json!({
            "boilerplate_grams": boilerplate_grams,
            "with_boilerplate": found.with_boilerplate,
        });
        self.push_text(PassageRowKind::Counts, &told.to_string());
    }

    fn push_text(&mut self, kind: PassageRowKind, text: &str) {
        self.kinds.append_value(kind as i32);
        self.keys.append_null();
        self.ids.append_value(text);
        self.given.append_null();
        self.groups.append_null();
    }

    fn into_batch(mut self) -> PyResult<PyRecordBatch> {
        make_batch([
            ("kind", Arc::new(self.kinds.finish()) as ArrayRef),
            ("key", Arc::new(self.keys.finish())),
            ("id", Arc::new(self.ids.finish())),
            ("given", Arc::new(self.given.finish())),
            ("groups", Arc::new(self.groups.finish())),
        ])
    }
}

/// Compares the texts of groups.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct CompareGroups {
    comparer: GroupComparer,
}

#[pymethods]
impl CompareGroups {
    #[new]
    fn new(of: PassageJob) -> Self {
        Self {
            comparer: GroupComparer::new(of.setup),
        }
    }

    /// Takes texts by group, first that of the group's document, and returns the passages found.
    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyRecordBatch> {
        let batch = &batch.0;
        let groups: &Int64Array = typed_column(batch, "group")?;
        let keys: &Int64Array = typed_column(batch, "key")?;
        let [ids, texts] = ["id", "text"].map(|name| {
            let at = batch.schema().index_of(name).map_err(input_error)?;
            string_column(batch, at)
        });
        let (ids, texts) = (ids?, texts?);
        let (ids, texts) = (ids.as_string::<i64>(), texts.as_string::<i64>());
        if [groups as &dyn Array, keys, ids, texts]
            .iter()
            .any(|array| array.null_count() > 0)
        {
            return Err(InputError::new_err("a text of a group is null"));
        }
        let comparer = &mut self.comparer;
        let compared = py.detach(|| {
            let text = |row| ComparedDocumentText {
                group: DocumentKey(groups.value(row) as u64),
                key: DocumentKey(keys.value(row) as u64),
                id: ids.value(row),
                text: texts.value(row),
            };
            let texts: Vec<ComparedDocumentText<'_>> = (0..batch.num_rows()).map(text).collect();
            comparer.compare_texts(&texts)?;
            Ok(comparer.take_passages())
        });
        passages_to_batch(&compared.map_err(run_error_to_py)?)
    }
}

fn passages_to_batch(passages: &[FoundPassage]) -> PyResult<PyRecordBatch> {
    let texts = |text: fn(&FoundPassage) -> &str| {
        let mut builder = StringBuilder::new();
        passages
            .iter()
            .for_each(|passage| builder.append_value(text(passage)));
        Arc::new(builder.finish()) as ArrayRef
    };
    let numbers = |number: fn(&FoundPassage) -> usize| {
        let mut builder = Int64Builder::new();
        passages
            .iter()
            .for_each(|passage| builder.append_value(number(passage) as i64));
        Arc::new(builder.finish()) as ArrayRef
    };
    let mut similarities = Float64Builder::new();
    passages
        .iter()
        .for_each(|passage| similarities.append_value(passage.similarity));
    make_batch([
        ("document", texts(|passage| &passage.document)),
        ("source", texts(|passage| &passage.source)),
        ("start", numbers(|passage| passage.place.start)),
        ("end", numbers(|passage| passage.place.end)),
        (
            "source_start",
            numbers(|passage| passage.source_place.start),
        ),
        ("source_end", numbers(|passage| passage.source_place.end)),
        ("length", numbers(|passage| passage.length)),
        ("similarity", Arc::new(similarities.finish())),
        ("kind", texts(|passage| passage.kind)),
    ])
}
