//! The steps of a run on many machines that finds items of benchmarks ([`lookalike_batch::contamination_shuffle`]), batch
//! by batch.
//!
//! As in `distributed_passages`, steps take and return Arrow record batches, and blocks travel as rows with a kind, a part
//! and the block.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use lookalike::byte_reader::ByteReader;
use lookalike::shuffle::MatchBounds;
use lookalike_batch::contamination_shuffle::{
    ContaminationShuffleSetup, DocumentCut, FindingDecider, ItemCandidateScatterer, LoneQuestion,
    ShuffleFinding, boilerplate_question_limit,
};
use lookalike_batch::run::{check_cut_fields, read_benchmarks};
use lookalike_io::source::ReadOptions;
use lookalike_options::match_options::OptionSpelling;
use pyo3::prelude::*;
use serde_json::json;

use crate::decontaminate::{parse_cut, parse_fields};
use crate::distributed::{BUFFERED_BYTES, PyRecordBatch, block_column, make_batch};
use crate::distributed_passages::PartRows;
use crate::documents::TableDocumentReader;
use crate::error::{InputError, run_error_to_py};
use crate::run::summary_to_json;

/// Content of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContaminationRowKind {
    /// Candidates of documents.
    Candidates = 0,
    /// Counts of tokens, 8 bytes each.
    Terms = 1,
    /// A row that cannot be used: its id and the reason, as JSON.
    Rejected = 2,
    /// Numbers of what a task has processed, as JSON.
    Counts = 3,
}

/// Parts into which the counts of tokens go to be added up.
const TERM_PARTS: u64 = 8;

/// Reads benchmarks. Returns their items as bytes, and the benchmarks as JSON.
#[pyfunction]
#[pyo3(signature = (paths, fields))]
pub(crate) fn read_items(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    fields: Option<&str>,
) -> PyResult<(Vec<u8>, String)> {
    let fields = parse_fields(fields)?;
    let read = py.detach(|| {
        let options = ReadOptions::default();
        let set = read_benchmarks(&paths, fields.as_ref(), &options, OptionSpelling::Arguments)?;
        ContaminationShuffleSetup::new(set)
    });
    let setup = read.map_err(run_error_to_py)?;
    let summary = json!({
        "items": setup.benchmarks().items.len(),
        "short_items": setup.short_item_count(),
        "benchmarks": setup.benchmarks().benchmarks,
    });
    Ok((setup.to_bytes(), summary.to_string()))
}

/// Returns the number of documents, of `documents`, in which a question may stand alone.
#[pyfunction]
pub(crate) fn question_limit(documents: u64) -> u64 {
    boilerplate_question_limit(documents)
}

/// Refuses a part of documents that is not the name of one, and parts of a text that has several columns.
#[pyfunction]
pub(crate) fn check_cut(cut: &str, text: Vec<String>) -> PyResult<()> {
    let checked = check_cut_fields(parse_cut(cut)?, &text, OptionSpelling::Arguments);
    checked.map_err(run_error_to_py)
}

/// Items of a run and their index.
#[pyclass(
    frozen,
    module = "lookalike._engine",
    name = "DistributedContamination",
    from_py_object
)]
#[derive(Clone)]
pub(crate) struct ContaminationJob(Arc<ContaminationShuffleSetup>);

#[pymethods]
impl ContaminationJob {
    #[new]
    fn new(py: Python<'_>, items: &[u8]) -> PyResult<Self> {
        let setup = py.detach(|| ContaminationShuffleSetup::from_bytes(items));
        Ok(Self(Arc::new(setup.map_err(run_error_to_py)?)))
    }

    /// Returns a question that is boilerplate, as JSON.
    fn boilerplate_question(
        &self,
        first_item: u32,
        documents: u64,
        candidates: u64,
    ) -> PyResult<String> {
        let question = LoneQuestion {
            documents,
            candidates,
            first_item,
        };
        let described = self.0.describe_boilerplate(&question);
        summary_to_json(&described.ok_or_else(|| InputError::new_err("there is no such item"))?)
    }
}

/// Searches documents for items.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct SearchItems {
    reading: TableDocumentReader,
    scatterer: ItemCandidateScatterer,
    rows: u64,
    /// Rows that cannot be used, as JSON.
    rejected: Vec<String>,
}

#[pymethods]
impl SearchItems {
    #[new]
    fn new(of: ContaminationJob) -> Self {
        let bounds = MatchBounds {
            within: false,
            against: false,
            features: false,
        };
        Self {
            reading: TableDocumentReader::new(&[], bounds),
            scatterer: ItemCandidateScatterer::new(of.0),
            rows: 0,
            rejected: Vec::new(),
        }
    }

    /// Takes a batch of documents, and returns candidates once there are many.
    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<Option<PyRecordBatch>> {
        let (reading, scatterer) = (&self.reading, &mut self.scatterer);
        self.rows += batch.0.num_rows() as u64;
        let bad = py.detach(|| {
            scatterer.search_batch(|search| {
                reading.visit_documents(batch.0, &mut |document| search(document.id, document.text))
            })
        })?;
        self.rejected
            .extend(bad.into_iter().map(|row| json!(row).to_string()));
        if self.scatterer.pending_bytes() < BUFFERED_BYTES {
            Ok(None)
        } else {
            self.take_rows().into_batch().map(Some)
        }
    }

    /// Returns the other candidates, and the counts of all documents.
    fn finish(&mut self) -> PyResult<PyRecordBatch> {
        let mut rows = self.take_rows();
        let [documents, bytes] = self.scatterer.document_counts();
        if documents > 0 {
            let terms = self.scatterer.term_counts();
            let terms: Vec<u8> = terms.iter().flat_map(|count| count.to_le_bytes()).collect();
            let part = (documents % TERM_PARTS) as u32;
            rows.push_row(ContaminationRowKind::Terms as i32, part, &terms);
        }
        let counted = json!({
            "documents": documents,
            "bytes": bytes,
            "rejected": self.rows - documents,
        });
        rows.push_row(
            ContaminationRowKind::Counts as i32,
            0,
            counted.to_string().as_bytes(),
        );
        rows.into_batch()
    }
}

impl SearchItems {
    fn take_rows(&mut self) -> PartRows {
        let mut rows = PartRows::default();
        let candidates = self.scatterer.take_candidates();
        if !candidates.is_empty() {
            rows.push_row(ContaminationRowKind::Candidates as i32, 0, &candidates);
        }
        for rejected in self.rejected.drain(..) {
            rows.push_row(
                ContaminationRowKind::Rejected as i32,
                0,
                rejected.as_bytes(),
            );
        }
        rows
    }
}

/// Decides which candidates are findings.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct DecideFindings {
    setup: Arc<ContaminationShuffleSetup>,
    decider: FindingDecider,
    boilerplate: HashSet<u32>,
}

#[pymethods]
impl DecideFindings {
    /// `terms` has the sums of the counts of tokens, and `boilerplate` the numbers of the questions that are boilerplate.
    #[new]
    fn new(of: ContaminationJob, terms: &[u8], boilerplate: HashSet<u32>) -> PyResult<Self> {
        let numbers = ByteReader::new(terms).read_list(terms.len() / 8, u64::from_le_bytes);
        let decider = FindingDecider::new(Arc::clone(&of.0), &numbers.unwrap_or_default());
        Ok(Self {
            setup: of.0,
            decider: decider.map_err(run_error_to_py)?,
            boilerplate,
        })
    }

    /// Takes candidates, and returns the questions that stand alone.
    fn questions(&self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyRecordBatch> {
        let blocks = block_column(&batch.0)?;
        let counted = py.detach(|| {
            let mut counted = Vec::new();
            for block in blocks.iter().flatten() {
                counted.extend(self.decider.count_lone_questions(block)?);
            }
            Ok(counted)
        });
        let counted = counted.map_err(run_error_to_py)?;
        let questions = counted.iter();
        let whole = |number: fn(&LoneQuestion) -> u64| -> ArrayRef {
            let numbers = questions.clone().map(|(_, lone)| number(lone) as i64);
            Arc::new(Int64Array::from_iter_values(numbers))
        };
        let numbers = questions.clone().map(|&(question, _)| question as i32);
        make_batch([
            (
                "question",
                Arc::new(Int32Array::from_iter_values(numbers)) as ArrayRef,
            ),
            ("documents", whole(|lone| lone.documents)),
            ("candidates", whole(|lone| lone.candidates)),
            ("first_item", whole(|lone| u64::from(lone.first_item))),
        ])
    }

    /// Takes candidates, and returns the findings.
    fn findings(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyRecordBatch> {
        let blocks = block_column(&batch.0)?;
        let (decider, boilerplate) = (&mut self.decider, &self.boilerplate);
        let found = py.detach(|| {
            let mut found = Vec::new();
            for block in blocks.iter().flatten() {
                found.extend(decider.decide_findings(block, boilerplate)?);
            }
            Ok(found)
        });
        findings_to_batch(&found.map_err(run_error_to_py)?, &self.setup)
    }

    /// Takes candidates, and returns what is cut from each document with findings.
    fn cuts(&self, py: Python<'_>, batch: PyRecordBatch, cut: &str) -> PyResult<PyRecordBatch> {
        let cut = parse_cut(cut)?;
        let blocks = block_column(&batch.0)?;
        let cuts = py.detach(|| {
            let mut cuts = Vec::new();
            for block in blocks.iter().flatten() {
                cuts.extend(self.decider.decide_cuts(block, &self.boilerplate, cut)?);
            }
            Ok(cuts)
        });
        cuts_to_batch(&cuts.map_err(run_error_to_py)?)
    }
}

/// Returns the columns `id`, `length` and `left_out`: the bytes of the text, and the start and the end of each part that is
/// cut. Both are null if nothing of the document stays.
fn cuts_to_batch(cuts: &[DocumentCut]) -> PyResult<PyRecordBatch> {
    let lengths = cuts.iter().map(|cut| {
        let left_out = cut.left_out.as_ref();
        left_out.map(|left_out| left_out.length as i64)
    });
    let mut places = ListBuilder::new(Int64Builder::new());
    for cut in cuts {
        for range in cut.left_out.iter().flat_map(|left_out| &left_out.ranges) {
            places.values().append_value(range.start as i64);
            places.values().append_value(range.end as i64);
        }
        places.append(cut.left_out.is_some());
    }
    let ids = cuts.iter().map(|cut| &*cut.id);
    make_batch([
        (
            "id",
            Arc::new(StringArray::from_iter_values(ids)) as ArrayRef,
        ),
        ("length", Arc::new(Int64Array::from_iter(lengths))),
        ("left_out", Arc::new(places.finish())),
    ])
}

fn findings_to_batch(
    found: &[ShuffleFinding],
    setup: &ContaminationShuffleSetup,
) -> PyResult<PyRecordBatch> {
    let benchmarks = setup.benchmarks();
    let item_of = |finding: &ShuffleFinding| &benchmarks.items[finding.item as usize];
    let names = found
        .iter()
        .map(|finding| &*benchmarks.benchmarks[item_of(finding).benchmark as usize].name);
    let numbers = |number: fn(&ShuffleFinding) -> u64| -> ArrayRef {
        let numbers = found.iter().map(|finding| number(finding) as i64);
        Arc::new(Int64Array::from_iter_values(numbers))
    };
    let ids = found.iter().map(|finding| &*finding.id);
    let items = found.iter().map(|finding| &*item_of(finding).id);
    let parts = found.iter().map(|finding| finding.found);
    let scores = found.iter().map(|finding| finding.score);
    make_batch([
        (
            "id",
            Arc::new(StringArray::from_iter_values(ids)) as ArrayRef,
        ),
        ("benchmark", Arc::new(StringArray::from_iter_values(names))),
        ("item", Arc::new(StringArray::from_iter_values(items))),
        ("found", Arc::new(StringArray::from_iter_values(parts))),
        ("score", Arc::new(Float64Array::from_iter_values(scores))),
        ("start", numbers(|finding| finding.place[0])),
        ("end", numbers(|finding| finding.place[1])),
        ("item_start", numbers(|finding| finding.item_place[0])),
        ("item_end", numbers(|finding| finding.item_place[1])),
    ])
}
