//! The audit of a run on many machines ([`lookalike::shuffle::SampleAudit`]), batch by batch.
//!
//! Numbers of documents are 64-bit hashes. They travel as signed integers in the same order; see
//! [`signed_number`].

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch};
use lookalike::shuffle::{
    DocumentSampler, SampleAudit as Comparing, SampledDocument, SampledPartner,
};
use lookalike_batch::run::{
    AuditFindings, AuditSettings, CountedDocuments, PartnerFinding, RemovedSample, RemovedTexts,
    SampleDraw, check_shuffle_audit,
};
use pyo3::prelude::*;

use crate::distributed::{
    PyRecordBatch, ShuffleJob, binary_column, input_error, make_batch, step_finished,
    string_column, typed_column,
};
use crate::documents::TableDocumentReader;
use crate::error::{engine_error_to_py, run_error_to_py};
use crate::run::summary_to_json;
use crate::settings::AUDIT_SEED;

/// Returns a number as a signed integer; the order of numbers is that of the integers.
fn signed_number(number: u64) -> i64 {
    (number ^ (1 << 63)) as i64
}

fn number_from_signed(number: i64) -> u64 {
    number as u64 ^ (1 << 63)
}

fn audit_settings(wanted: Option<usize>) -> AuditSettings {
    AuditSettings {
        documents: wanted,
        seed: AUDIT_SEED,
    }
}

/// Refuses a run that cannot be audited.
#[pyfunction]
pub(crate) fn check_audit(of: &ShuffleJob) -> PyResult<()> {
    check_shuffle_audit(of.setup().match_plan()).map_err(run_error_to_py)
}

/// Returns how many of `documents` documents to sample, and the limit for [`SampleDocuments`].
#[pyfunction]
#[pyo3(signature = (documents, wanted=None))]
pub(crate) fn choose_sample(documents: u64, wanted: Option<usize>) -> (usize, u64) {
    let counted = CountedDocuments {
        documents,
        bytes: 0,
    };
    let draw = SampleDraw::choose(audit_settings(wanted), counted);
    (draw.requested, draw.limit)
}

/// Selects the documents that may be sampled, and those with some ids.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct SampleDocuments {
    reading: TableDocumentReader,
    sampler: DocumentSampler,
    wanted_ids: HashSet<String>,
}

#[pymethods]
impl SampleDocuments {
    #[new]
    fn new(of: ShuffleJob, limit: u64, ids: Vec<String>) -> Self {
        Self {
            reading: of.read_options(),
            sampler: DocumentSampler::new(of.setup().clone(), AUDIT_SEED, limit),
            wanted_ids: ids.into_iter().collect(),
        }
    }

    /// Returns the rows of a batch that may be sampled, with their numbers, and those with a wanted id. A
    /// row that is wanted alone has no number.
    fn add(&self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyRecordBatch> {
        let mut rows = SampleRows::default();
        py.detach(|| {
            self.reading.visit_documents(batch.0, &mut |document| {
                let number = self.sampler.number_within_limit(document);
                if number.is_some() || self.wanted_ids.contains(document.id) {
                    let sampled = self.sampler.sampled_document(document, number.unwrap_or(0));
                    rows.push_document(&sampled, number);
                }
                Ok(())
            })
        })?;
        rows.into_batch()
    }
}

/// Builder of rows of sampled documents.
#[derive(Default)]
struct SampleRows {
    numbers: Int64Builder,
    ids: StringBuilder,
    given: BooleanBuilder,
    partitions: Int64Builder,
    positions: BinaryBuilder,
    texts: StringBuilder,
}

impl SampleRows {
    fn push_document(&mut self, document: &SampledDocument, number: Option<u64>) {
        self.numbers.append_option(number.map(signed_number));
        self.ids.append_value(&document.id);
        self.given.append_value(document.is_known);
        self.partitions.append_value(document.partition as i64);
        self.positions.append_value(&document.position);
        self.texts.append_value(&document.text);
    }

    fn into_batch(mut self) -> PyResult<PyRecordBatch> {
        make_batch([
            ("number", Arc::new(self.numbers.finish()) as ArrayRef),
            ("id", Arc::new(self.ids.finish())),
            ("given", Arc::new(self.given.finish())),
            ("of_part", Arc::new(self.partitions.finish())),
            ("position", Arc::new(self.positions.finish())),
            ("text", Arc::new(self.texts.finish())),
        ])
    }
}

fn named_strings(batch: &RecordBatch, name: &str) -> PyResult<ArrayRef> {
    let at = batch.schema().index_of(name).map_err(input_error)?;
    string_column(batch, at)
}

/// Returns the sampled documents of a batch, all of which have a number.
fn sampled_documents(batch: &RecordBatch) -> PyResult<Vec<SampledDocument>> {
    let numbers: &Int64Array = typed_column(batch, "number")?;
    let given: &BooleanArray = typed_column(batch, "given")?;
    let partitions: &Int64Array = typed_column(batch, "of_part")?;
    let positions = binary_column(batch, "position")?;
    let (ids, texts) = (named_strings(batch, "id")?, named_strings(batch, "text")?);
    let (ids, texts) = (ids.as_string::<i64>(), texts.as_string::<i64>());
    let document = |row| SampledDocument {
        number: number_from_signed(numbers.value(row)),
        id: ids.value(row).to_owned(),
        is_known: given.value(row),
        partition: partitions.value(row) as u64,
        position: positions.value(row).to_vec(),
        text: texts.value(row).to_owned(),
    };
    Ok((0..batch.num_rows()).map(document).collect())
}

/// Compares documents with those of a sample that come before them.
#[pyclass(module = "lookalike._engine")]
pub(crate) struct CompareSample {
    reading: TableDocumentReader,
    audit: Option<Comparing>,
}

#[pymethods]
impl CompareSample {
    #[new]
    fn new(py: Python<'_>, of: ShuffleJob, sample: PyRecordBatch) -> PyResult<Self> {
        let sampled = sampled_documents(&sample.0)?;
        let audit = py.detach(|| Comparing::new(of.setup().clone(), &sampled));
        Ok(Self {
            reading: of.read_options(),
            audit: Some(audit.map_err(engine_error_to_py)?),
        })
    }

    fn add(&mut self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<()> {
        let Self { reading, audit } = self;
        let audit = audit.as_mut().ok_or_else(step_finished)?;
        let bad = py.detach(|| {
            reading.visit_documents(batch.0, &mut |document| audit.compare_document(document))
        });
        bad.map(drop)
    }

    /// Returns the documents that are similar to a sampled one.
    fn finish(&mut self) -> PyResult<PyRecordBatch> {
        let audit = self.audit.take().ok_or_else(step_finished)?;
        let (mut sampled, mut numbers) = (Int32Builder::new(), Int64Builder::new());
        let (mut ids, mut given) = (StringBuilder::new(), BooleanBuilder::new());
        let mut found = BooleanBuilder::new();
        for partner in audit.into_partners() {
            let SampledPartner { id, number, .. } = &partner;
            sampled.append_value(partner.sampled as i32);
            numbers.append_value(signed_number(*number));
            ids.append_value(id);
            given.append_value(partner.is_known);
            found.append_value(partner.found);
        }
        make_batch([
            ("sampled", Arc::new(sampled.finish()) as ArrayRef),
            ("number", Arc::new(numbers.finish())),
            ("id", Arc::new(ids.finish())),
            ("given", Arc::new(given.finish())),
            ("found", Arc::new(found.finish())),
        ])
    }
}

/// Samples removed documents.
#[pyclass(module = "lookalike._engine")]
#[derive(Default)]
pub(crate) struct SampleRemoved {
    sample: RemovedSample,
}

#[pymethods]
impl SampleRemoved {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Takes rows of `id` and `kept`.
    fn add(&mut self, batch: PyRecordBatch) -> PyResult<()> {
        let (ids, kept) = (
            named_strings(&batch.0, "id")?,
            named_strings(&batch.0, "kept")?,
        );
        let (ids, kept) = (ids.as_string::<i64>(), kept.as_string::<i64>());
        for row in 0..batch.0.num_rows() {
            self.sample.offer_removed(ids.value(row), kept.value(row));
        }
        Ok(())
    }

    /// Returns the sampled rows.
    fn finish(&mut self) -> PyResult<PyRecordBatch> {
        let (mut ids, mut kept) = (StringBuilder::new(), StringBuilder::new());
        for (id, of) in std::mem::take(&mut self.sample).into_pairs() {
            ids.append_value(id);
            kept.append_value(of);
        }
        make_batch([
            ("id", Arc::new(ids.finish()) as ArrayRef),
            ("kept", Arc::new(kept.finish())),
        ])
    }
}

/// Returns the report of an audit as JSON.
///
/// `counted` has the number of documents and the bytes of their texts. `sample` has the sampled documents by
/// their numbers, and `partners` the columns `sampled`, `found` and `left`. `removed` has the text of each
/// sampled removal and the texts of the documents with the id of the kept one.
#[pyfunction]
#[pyo3(signature = (of, counted, wanted, sample, partners, removed))]
pub(crate) fn audit_report(
    py: Python<'_>,
    of: &ShuffleJob,
    counted: (u64, u64),
    wanted: Option<usize>,
    sample: PyRecordBatch,
    partners: PyRecordBatch,
    removed: Vec<(String, Vec<String>)>,
) -> PyResult<String> {
    let indexes: &Int32Array = typed_column(&partners.0, "sampled")?;
    let found: &BooleanArray = typed_column(&partners.0, "found")?;
    let left: &BooleanArray = typed_column(&partners.0, "left")?;
    let partner = |row| PartnerFinding {
        sampled: indexes.value(row) as usize,
        found: found.value(row),
        left_together: left.value(row),
    };
    let findings = AuditFindings {
        counted: CountedDocuments {
            documents: counted.0,
            bytes: counted.1,
        },
        sampled: sampled_documents(&sample.0)?,
        partners: (0..partners.0.num_rows()).map(partner).collect(),
        removed: removed
            .into_iter()
            .map(|(removed, kept)| RemovedTexts { removed, kept })
            .collect(),
    };
    let report = py.detach(|| findings.report(of.setup(), of.recipe(), audit_settings(wanted)));
    summary_to_json(&report.map_err(run_error_to_py)?)
}
