//! One fingerprint, signature or other sketch for every document, in input order.

use crate::run::reading::row_analysis::id_text;
use std::sync::Mutex;
use std::time::Instant;

use lookalike::Recipe;
use lookalike::text::AnalysisScratch;
use lookalike_io::error::Result;
use lookalike_io::sink::{
    OutputTarget, TableCell, TableColumn, TableRows, TableWriter, check_output,
};
use lookalike_io::source::{BadRow, InputRow, InputSet, ReadOptions};
use lookalike_options::fingerprint_notation::NO_FINGERPRINT;
use lookalike_options::sketch_kind::SketchKind;
use lookalike_options::text_fingerprinter::{SketchBuffers, TextFingerprinter};
use serde::Serialize;

use crate::run::progress::ProgressListener;
use crate::run::reading::ordered_pipeline::blocks_in_order;
use crate::run::reading::rejected_rows::{BadRows, RejectedRows};
use crate::run::reading::row_analysis::analyze_row;

/// Bytes of a block's results that are passed on before the block ends.
const PART_BYTES: usize = 8 << 20;

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

struct FingerprintedPart {
    rows: TableRows,
    bad: Vec<BadRow>,
    documents: u64,
    without: u64,
    bytes: u64,
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
    let inputs = InputSet::open_paths(
        paths,
        &ReadOptions {
            again: rejected.is_some(),
            ..settings.read.clone()
        },
    )?;
    for output in [Some(output), rejected].into_iter().flatten() {
        check_output(output, &inputs)?;
    }
    let rejected = RejectedRows::create_output(rejected)?;
    let bad_rows = BadRows {
        inputs: &inputs,
        rejected: &rejected,
        strict: settings.strict,
        progress,
        tally: Mutex::default(),
    };
    let recipe = &settings.recipe;
    let fingerprinter = TextFingerprinter::new(recipe, settings.sketch);
    let columns = [TableColumn::Text("id"), value_column(settings.sketch)];
    let mut table = TableWriter::create_table(output, &columns, Some(&inputs))?;
    let template = table.new_rows();
    let new_part = || FingerprintedPart {
        rows: template.empty_like(),
        bad: Vec::new(),
        documents: 0,
        without: 0,
        bytes: 0,
    };
    let mut total = new_part();
    blocks_in_order(
        &inputs,
        progress,
        |block, parse, worker: &mut FingerprintWorker, emit| {
            let mut part = new_part();
            inputs.parse_block(block, parse, &mut |row| {
                match row {
                    Err(bad) => {
                        part.bytes += u64::from(bad.place.byte_length());
                        part.bad.push(bad);
                    }
                    Ok(row) => part.push_document(&fingerprinter, settings.sketch, &row, worker)?,
                }
                if part.rows.approximate_bytes() >= PART_BYTES {
                    emit(std::mem::replace(&mut part, new_part()))?;
                }
                Ok(())
            })?;
            Ok(part)
        },
        |part| {
            bad_rows.report_rows(&part.bad, part.documents)?;
            total.documents += part.documents;
            total.without += part.without;
            total.bytes += part.bytes;
            table.append_rows(part.rows)
        },
    )?;
    bad_rows.refuse_useless()?;
    table.finish_table()?;
    Ok(FingerprintSummary {
        documents: total.documents,
        unfingerprinted: total.without,
        rejected: rejected.finish_output()?,
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

impl FingerprintedPart {
    /// Adds a document.
    fn push_document(
        &mut self,
        fingerprinter: &TextFingerprinter,
        sketch: SketchKind,
        row: &InputRow<'_>,
        worker: &mut FingerprintWorker,
    ) -> Result<()> {
        let analysis = analyze_row(fingerprinter.text_analyzer(), row, &mut worker.scratch);
        let has_sketch = fingerprinter.fill_buffer(&analysis, &mut worker.buffers);
        self.documents += 1;
        self.without += u64::from(!has_sketch);
        self.bytes += u64::from(row.place.byte_length());
        let id = id_text(row, &mut worker.number);
        let cell = value_cell(sketch, &worker.buffers, has_sketch);
        self.rows.push_row(&[TableCell::Text(id), cell])
    }
}
