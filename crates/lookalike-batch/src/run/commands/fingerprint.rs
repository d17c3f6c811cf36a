//! One fingerprint, signature or other sketch for every document, in input order.

use std::time::Instant;

use lookalike::Recipe;
use lookalike::text::AnalysisScratch;
use lookalike_io::error::Result;
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableRows, TableWriter};
use lookalike_io::source::{InputRow, ReadOptions, RowSource};
use lookalike_options::fingerprint_notation::NO_FINGERPRINT;
use lookalike_options::sketch_kind::SketchKind;
use lookalike_options::text_fingerprinter::{SketchBuffers, TextFingerprinter};
use serde::Serialize;

use crate::run::commands::document_table::write_document_table;
use crate::run::progress::ProgressListener;
use crate::run::reading::rejected_rows::OpenedRows;
use crate::run::reading::row_analysis::{analyze_row, id_text};

/// Settings of a run that writes fingerprints.
#[derive(Debug, Clone)]
pub struct FingerprintSettings {
    /// Determines how texts become fingerprints.
    pub recipe: Recipe,
    /// The kind of sketch.
    pub sketch: SketchKind,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
}

/// The result of a run that writes fingerprints.
#[derive(Debug, Clone, Serialize)]
pub struct FingerprintSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents without a fingerprint, for example because they are too short.
    pub unfingerprinted: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// `simhash`, `minhash`, `bottomk` or `sentence_signature`.
    pub method: &'static str,
    /// Bits of a fingerprint, slots of a signature, number of hashes, or number of sentences.
    pub size: u32,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
}

/// Writes a table `recipe_id, fingerprint` with one row per document. Memory does not grow with the
/// input. Ids are written unchanged, even if they are repeated.
///
/// # Errors
/// If something cannot be read or written. The outputs are then unchanged.
pub fn fingerprint(
    paths: &[std::path::PathBuf],
    settings: &FingerprintSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<FingerprintSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        run_fingerprint(paths, settings, output, rejected, progress)
    })
}

#[derive(Default)]
struct FingerprintWorker {
    scratch: AnalysisScratch,
    number: String,
    buffers: SketchBuffers,
}

fn run_fingerprint(
    paths: &[std::path::PathBuf],
    settings: &FingerprintSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<FingerprintSummary> {
    let started = Instant::now();
    let source = RowSource::Paths(paths.to_vec());
    let (read, strict) = (&settings.read, settings.strict);
    let opened = OpenedRows::open_source(&source, read, output, rejected, strict, progress)?;
    let recipe = &settings.recipe;
    let fingerprinter = TextFingerprinter::new(recipe, settings.sketch);
    let columns = [TableColumn::Text("id"), value_column(settings.sketch)];
    let table = TableWriter::create_table(output, &columns, Some(&opened.inputs))?;
    let total = write_document_table(opened, table, |row, worker, rows| {
        push_document(&fingerprinter, settings.sketch, row, worker, rows)
    })?;
    Ok(FingerprintSummary {
        documents: total.documents,
        unfingerprinted: total.sum,
        rejected: total.rejected,
        bytes: total.bytes,
        seconds: started.elapsed().as_secs_f64(),
        method: fingerprinter.method_name(),
        size: fingerprinter.sketch_size(),
        recipe: recipe.name.clone(),
        recipe_id: recipe.recipe_id().to_string(),
    })
}

/// Returns the column of sketches of this kind.
fn value_column(sketch: SketchKind) -> TableColumn<'static> {
    match sketch {
        SketchKind::SimHash(_) | SketchKind::Sentences(_) => TableColumn::Text("fingerprint"),
        SketchKind::MinHash => TableColumn::Numbers("fingerprint"),
        SketchKind::BottomK => TableColumn::LongNumbers("fingerprint"),
    }
}

/// Returns the cell of a text with such a sketch, or of one without.
fn value_cell(sketch: SketchKind, buffers: &SketchBuffers, has_sketch: bool) -> TableCell<'_> {
    match (sketch, has_sketch) {
        (SketchKind::SimHash(_) | SketchKind::Sentences(_), true) => {
            TableCell::Text(&buffers.digits)
        }
        (SketchKind::SimHash(_) | SketchKind::Sentences(_), false) => {
            TableCell::Text(NO_FINGERPRINT)
        }
        (SketchKind::MinHash, true) => TableCell::Numbers(&buffers.signature),
        (SketchKind::BottomK, true) => TableCell::LongNumbers(&buffers.hashes),
        (SketchKind::MinHash | SketchKind::BottomK, false) => TableCell::Absent,
    }
}

/// Adds the row of a document. Returns 1 if the document has no fingerprint, else 0.
fn push_document(
    fingerprinter: &TextFingerprinter,
    sketch: SketchKind,
    row: &InputRow<'_>,
    worker: &mut FingerprintWorker,
    rows: &mut TableRows,
) -> Result<u64> {
    let analysis = analyze_row(fingerprinter.text_analyzer(), row, &mut worker.scratch);
    let has_sketch = fingerprinter.fill_buffer(&analysis, &mut worker.buffers);
    let id = id_text(row, &mut worker.number);
    let cell = value_cell(sketch, &worker.buffers, has_sketch);
    rows.push_row(&[TableCell::Text(id), cell])?;
    Ok(u64::from(!has_sketch))
}
