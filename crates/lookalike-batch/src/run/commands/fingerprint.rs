//! One fingerprint, signature or other sketch for every document, in input order.

use std::time::Instant;

use lookalike::plan::MatchMethod;
use lookalike::sketch::{MinHasher, SimHasher, smallest_features};
use lookalike::text::{AnalysisExtras, AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use lookalike::{Cpu, Recipe};
use lookalike_io::error::Result;
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableRows, TableWriter};
use lookalike_io::source::{InputRow, ReadOptions, RowSource};
use serde::Serialize;

use crate::fingerprint_notation::FingerprintNotation;
use crate::run::commands::document_table::write_document_table;
use crate::run::progress::ProgressListener;
use crate::run::reading::rejected_rows::OpenedRows;
use crate::run::reading::row_analysis::{analyze_row, id_text};

/// The kind of sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SketchKind {
    /// A SimHash fingerprint, written in digits.
    SimHash(FingerprintNotation),
    /// A MinHash signature: a list of numbers.
    MinHash,
    /// A bottom-k sketch: the smallest feature hashes, as many as the recipe has slots.
    BottomK,
    /// A 64-bit key of this many longest sentences, in hexadecimal digits.
    Sentences(usize),
}

impl SketchKind {
    /// The methods that make a sketch of a text.
    pub const METHODS: [MatchMethod; 4] = [
        MatchMethod::SimHash,
        MatchMethod::MinHash,
        MatchMethod::BottomK,
        MatchMethod::Sentences,
    ];

    /// Returns the method of a recipe's default sketch.
    pub fn default_method(recipe: &Recipe) -> MatchMethod {
        match recipe.scheme.and_then(|scheme| scheme.minhash_family()) {
            Some(_) => MatchMethod::MinHash,
            None => MatchMethod::SimHash,
        }
    }
}

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

#[derive(Default)]
struct SketchBuffers {
    digits: String,
    signature: Vec<u32>,
    hashes: Vec<u64>,
}

/// Computes the fingerprints of single texts.
pub struct TextFingerprinter {
    analyzer: TextAnalyzer,
    hasher: SketchHasher,
}

/// A fingerprint or other sketch, as tables contain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SketchValue {
    /// The digits of a fingerprint or of a key of sentences.
    Digits(String),
    /// A MinHash signature.
    Signature(Vec<u32>),
    /// The smallest hashes.
    Hashes(Vec<u64>),
}

impl TextFingerprinter {
    /// Creates a fingerprinter for a recipe.
    pub fn new(recipe: &Recipe, sketch: SketchKind) -> Self {
        let analyzer = TextAnalyzer::new(recipe).with_extras(AnalysisExtras {
            characters: false,
            sentences: match sketch {
                SketchKind::Sentences(count) => Some(count),
                _ => None,
            },
        });
        let hasher = SketchHasher::new(recipe, sketch);
        Self { analyzer, hasher }
    }

    /// Returns the fingerprint of a text, or `None` if the text has none, for example because it is too
    /// short.
    pub fn fingerprint(&self, text: &str, scratch: &mut AnalysisScratch) -> Option<SketchValue> {
        let analysis = self.analyzer.analyze_text(text, scratch);
        let mut buffers = SketchBuffers::default();
        if !self.hasher.fill_buffer(&analysis, &mut buffers) {
            return None;
        }
        Some(match self.hasher {
            SketchHasher::SimHash(..) | SketchHasher::Sentences(_) => {
                SketchValue::Digits(buffers.digits)
            }
            SketchHasher::MinHash(_) => SketchValue::Signature(buffers.signature),
            SketchHasher::BottomK(_) => SketchValue::Hashes(buffers.hashes),
        })
    }
}

enum SketchHasher {
    SimHash(SimHasher, u32, FingerprintNotation),
    MinHash(MinHasher),
    BottomK(usize),
    Sentences(usize),
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
    let TextFingerprinter { analyzer, hasher } = TextFingerprinter::new(recipe, settings.sketch);
    let columns = [TableColumn::Text("id"), hasher.value_column()];
    let table = TableWriter::create_table(output, &columns, Some(&opened.inputs))?;
    let total = write_document_table(opened, table, |row, worker, rows| {
        hasher.push_document(&analyzer, row, worker, rows)
    })?;
    Ok(FingerprintSummary {
        documents: total.documents,
        unfingerprinted: total.sum,
        rejected: total.rejected,
        bytes: total.bytes,
        seconds: started.elapsed().as_secs_f64(),
        method: hasher.name(),
        size: hasher.sketch_size(),
        recipe: recipe.name.clone(),
        recipe_id: recipe.recipe_id().to_string(),
    })
}

impl SketchHasher {
    fn new(recipe: &Recipe, sketch: SketchKind) -> Self {
        let cpu = Cpu::detect_best();
        match sketch {
            SketchKind::SimHash(digits) => {
                let hasher = SimHasher::new(&recipe.simhash, cpu);
                Self::SimHash(hasher, recipe.simhash.bits, digits)
            }
            SketchKind::MinHash => Self::MinHash(MinHasher::new(&recipe.minhash, cpu)),
            SketchKind::BottomK => Self::BottomK(recipe.minhash.slots as usize),
            SketchKind::Sentences(count) => Self::Sentences(count),
        }
    }

    fn value_column(&self) -> TableColumn<'static> {
        match self {
            Self::SimHash(..) | Self::Sentences(_) => TableColumn::Text("fingerprint"),
            Self::MinHash(_) => TableColumn::Numbers("fingerprint"),
            Self::BottomK(_) => TableColumn::LongNumbers("fingerprint"),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::SimHash(..) => "simhash",
            Self::MinHash(_) => "minhash",
            Self::BottomK(_) => "bottomk",
            Self::Sentences(_) => "sentences",
        }
    }

    fn sketch_size(&self) -> u32 {
        match self {
            Self::SimHash(_, bits, _) => *bits,
            Self::MinHash(hasher) => hasher.slot_count() as u32,
            Self::BottomK(count) | Self::Sentences(count) => *count as u32,
        }
    }

    /// Adds the row of a document. Returns 1 if the document has no fingerprint, else 0.
    fn push_document(
        &self,
        analyzer: &TextAnalyzer,
        row: &InputRow<'_>,
        worker: &mut FingerprintWorker,
        rows: &mut TableRows,
    ) -> Result<u64> {
        let analysis = analyze_row(analyzer, row, &mut worker.scratch);
        let buffers = &mut worker.buffers;
        let made_one = self.fill_buffer(&analysis, buffers);
        let cell = match (self, made_one) {
            (Self::SimHash(..) | Self::Sentences(_), true) => TableCell::Text(&buffers.digits),
            (Self::SimHash(..) | Self::Sentences(_), false) => {
                TableCell::Text(crate::fingerprint_notation::NO_FINGERPRINT)
            }
            (Self::MinHash(_), true) => TableCell::Numbers(&buffers.signature),
            (Self::BottomK(_), true) => TableCell::LongNumbers(&buffers.hashes),
            (Self::MinHash(_) | Self::BottomK(_), false) => TableCell::Absent,
        };
        let id = id_text(row, &mut worker.number);
        rows.push_row(&[TableCell::Text(id), cell])?;
        Ok(u64::from(!made_one))
    }

    /// Computes the fingerprint of a document into the buffer for its kind. Returns `true` if it has
    /// one.
    fn fill_buffer(&self, analysis: &TextAnalysis<'_>, buffers: &mut SketchBuffers) -> bool {
        let SketchBuffers {
            digits,
            signature,
            hashes,
        } = buffers;
        digits.clear();
        hashes.clear();
        let rich = analysis.state == TextState::Fingerprintable;
        match self {
            Self::SimHash(hasher, bits, notation) => {
                let fingerprint = hasher.original_fingerprint(analysis);
                if let Some(fingerprint) = fingerprint {
                    notation.append_fingerprint(fingerprint, *bits, digits);
                }
                fingerprint.is_some()
            }
            Self::MinHash(hasher) => {
                signature.resize(hasher.slot_count(), 0);
                hasher.original_signature(analysis, signature)
            }
            Self::BottomK(kept) => {
                if rich {
                    smallest_features(analysis, *kept, hashes);
                }
                rich
            }
            Self::Sentences(_) => {
                let name = analysis.sentence_signature().filter(|_| rich);
                if let Some(name) = name {
                    FingerprintNotation::Hex.append_fingerprint(name.into(), u64::BITS, digits);
                }
                name.is_some()
            }
        }
    }
}
