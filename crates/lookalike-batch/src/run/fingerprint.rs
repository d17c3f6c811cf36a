//! One fingerprint, signature or other sketch for every document, in input order.

use std::sync::Mutex;
use std::time::Instant;

use lookalike::sketch::{MinHasher, SimHasher, smallest_features};
use lookalike::text::{Analysis, Analyzer, Extras, Scratch, State};
use lookalike::{Cpu, Recipe};
use serde::Serialize;

use super::ordered::blocks_in_order;
use super::progress::Progress;
use super::read::analyze;
use super::rejected::{BadRows, Rejected};
use crate::digits::Digits;
use crate::error::Result;
use crate::sink::{Cell, Column, Output, TableRows, TableWriter, check_output};
use crate::source::{BadRow, Inputs, ReadOptions, Row};

/// Bytes of a block's results that are passed on before the block ends.
const PART_BYTES: usize = 8 << 20;

/// The kind of sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sketch {
    /// A SimHash fingerprint, written in digits.
    SimHash(Digits),
    /// A MinHash signature: a list of numbers.
    MinHash,
    /// A bottom-k sketch: the smallest feature hashes, as many as the recipe has slots.
    BottomK,
    /// A 64-bit key of this many longest sentences, in hexadecimal digits.
    Sentences(usize),
}

/// Settings of a run that writes fingerprints.
#[derive(Debug, Clone)]
pub struct FingerprintSettings {
    /// Determines how texts become fingerprints.
    pub recipe: Recipe,
    /// The kind of sketch.
    pub sketch: Sketch,
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
    pub without: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// `simhash`, `minhash`, `bottomk` or `sentences`.
    pub method: &'static str,
    /// Bits of a fingerprint, slots of a signature, number of hashes, or number of sentences.
    pub size: u32,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
}

/// Writes a table `id, fingerprint` with one row per document. Memory does not grow with the input. Ids
/// are written unchanged, even if they are repeated.
///
/// # Errors
/// If something cannot be read or written. The outputs are then unchanged.
pub fn fingerprint(
    paths: &[std::path::PathBuf],
    settings: &FingerprintSettings,
    output: &Output,
    rejected: Option<&Output>,
    progress: &dyn Progress,
) -> Result<FingerprintSummary> {
    super::in_pool(settings.threads, || {
        run(paths, settings, output, rejected, progress)
    })
}

struct Part {
    rows: TableRows,
    bad: Vec<BadRow>,
    documents: u64,
    without: u64,
    bytes: u64,
}

#[derive(Default)]
struct Worker {
    scratch: Scratch,
    number: String,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    digits: String,
    signature: Vec<u32>,
    hashes: Vec<u64>,
}

/// Computes the fingerprints of single texts.
pub struct Fingerprinter {
    analyzer: Analyzer,
    hasher: Hasher,
}

/// A fingerprint or other sketch, as tables contain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Fingerprint {
    /// The digits of a fingerprint or of a key of sentences.
    Digits(String),
    /// A MinHash signature.
    Signature(Vec<u32>),
    /// The smallest hashes.
    Hashes(Vec<u64>),
}

impl Fingerprinter {
    /// Creates a fingerprinter for a recipe.
    pub fn new(recipe: &Recipe, sketch: Sketch) -> Self {
        let analyzer = Analyzer::new(recipe).with_extras(Extras {
            characters: false,
            sentences: match sketch {
                Sketch::Sentences(count) => Some(count),
                _ => None,
            },
        });
        let hasher = Hasher::new(recipe, sketch);
        Self { analyzer, hasher }
    }

    /// Returns the fingerprint of a text, or `None` if the text has none, for example because it is too
    /// short.
    pub fn fingerprint(&self, text: &str, scratch: &mut Scratch) -> Option<Fingerprint> {
        let analysis = self.analyzer.analyze(text, scratch);
        let mut buffers = Buffers::default();
        if !self.hasher.fill(&analysis, &mut buffers) {
            return None;
        }
        Some(match self.hasher {
            Hasher::SimHash(..) | Hasher::Sentences(_) => Fingerprint::Digits(buffers.digits),
            Hasher::MinHash(_) => Fingerprint::Signature(buffers.signature),
            Hasher::BottomK(_) => Fingerprint::Hashes(buffers.hashes),
        })
    }
}

enum Hasher {
    SimHash(SimHasher, u32, Digits),
    MinHash(MinHasher),
    BottomK(usize),
    Sentences(usize),
}

fn run(
    paths: &[std::path::PathBuf],
    settings: &FingerprintSettings,
    output: &Output,
    rejected: Option<&Output>,
    progress: &dyn Progress,
) -> Result<FingerprintSummary> {
    let started = Instant::now();
    let inputs = Inputs::open(
        paths,
        &ReadOptions {
            again: rejected.is_some(),
            ..settings.read.clone()
        },
    )?;
    for output in [Some(output), rejected].into_iter().flatten() {
        check_output(output, &inputs)?;
    }
    let rejected = Rejected::create(rejected)?;
    let bad_rows = BadRows {
        inputs: &inputs,
        rejected: &rejected,
        strict: settings.strict,
        progress,
        tally: Mutex::default(),
    };
    let recipe = &settings.recipe;
    let Fingerprinter { analyzer, hasher } = Fingerprinter::new(recipe, settings.sketch);
    let columns = [Column::Text("id"), hasher.column()];
    let mut table = TableWriter::create(output, &columns, Some(&inputs))?;
    let template = table.rows();
    let part = || Part {
        rows: template.empty(),
        bad: Vec::new(),
        documents: 0,
        without: 0,
        bytes: 0,
    };
    let mut total = part();
    blocks_in_order(
        &inputs,
        progress,
        |block, parse, worker: &mut Worker, emit| {
            let mut made = part();
            inputs.parse(block, parse, &mut |row| {
                match row {
                    Err(bad) => {
                        made.bytes += u64::from(bad.place.length());
                        made.bad.push(bad);
                    }
                    Ok(row) => hasher.push(&analyzer, &row, worker, &mut made)?,
                }
                if made.rows.bytes() >= PART_BYTES {
                    emit(std::mem::replace(&mut made, part()))?;
                }
                Ok(())
            })?;
            Ok(made)
        },
        |made| {
            bad_rows.tell(&made.bad, made.documents)?;
            total.documents += made.documents;
            total.without += made.without;
            total.bytes += made.bytes;
            table.append(made.rows)
        },
    )?;
    bad_rows.refuse_useless()?;
    table.finish()?;
    Ok(FingerprintSummary {
        documents: total.documents,
        without: total.without,
        rejected: rejected.finish()?,
        bytes: total.bytes,
        seconds: started.elapsed().as_secs_f64(),
        method: hasher.name(),
        size: hasher.size(),
        recipe: recipe.name.clone(),
        recipe_id: recipe.id().to_string(),
    })
}

impl Hasher {
    fn new(recipe: &Recipe, sketch: Sketch) -> Self {
        let cpu = Cpu::best();
        match sketch {
            Sketch::SimHash(digits) => {
                let hasher = SimHasher::new(&recipe.simhash, cpu);
                Self::SimHash(hasher, recipe.simhash.bits, digits)
            }
            Sketch::MinHash => Self::MinHash(MinHasher::new(&recipe.minhash, cpu)),
            Sketch::BottomK => Self::BottomK(recipe.minhash.slots as usize),
            Sketch::Sentences(count) => Self::Sentences(count),
        }
    }

    fn column(&self) -> Column<'static> {
        match self {
            Self::SimHash(..) | Self::Sentences(_) => Column::Text("fingerprint"),
            Self::MinHash(_) => Column::Numbers("fingerprint"),
            Self::BottomK(_) => Column::LongNumbers("fingerprint"),
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

    fn size(&self) -> u32 {
        match self {
            Self::SimHash(_, bits, _) => *bits,
            Self::MinHash(hasher) => hasher.slots() as u32,
            Self::BottomK(count) | Self::Sentences(count) => *count as u32,
        }
    }

    /// Adds a document to a part.
    fn push(
        &self,
        analyzer: &Analyzer,
        row: &Row<'_>,
        worker: &mut Worker,
        made: &mut Part,
    ) -> Result<()> {
        let analysis = analyze(analyzer, row, &mut worker.scratch);
        let buffers = &mut worker.buffers;
        let made_one = self.fill(&analysis, buffers);
        let cell = match (self, made_one) {
            (Self::SimHash(..) | Self::Sentences(_), true) => Cell::Text(&buffers.digits),
            (Self::SimHash(..) | Self::Sentences(_), false) => {
                Cell::Text(crate::digits::NO_FINGERPRINT)
            }
            (Self::MinHash(_), true) => Cell::Numbers(&buffers.signature),
            (Self::BottomK(_), true) => Cell::LongNumbers(&buffers.hashes),
            (Self::MinHash(_) | Self::BottomK(_), false) => Cell::Absent,
        };
        made.documents += 1;
        made.without += u64::from(!made_one);
        made.bytes += u64::from(row.place.length());
        let id = id_text(row, &mut worker.number);
        made.rows.push(&[Cell::Text(id), cell])
    }

    /// Computes the fingerprint of a document into the buffer for its kind. Returns `true` if it has
    /// one.
    fn fill(&self, analysis: &Analysis<'_>, buffers: &mut Buffers) -> bool {
        let Buffers {
            digits,
            signature,
            hashes,
        } = buffers;
        digits.clear();
        hashes.clear();
        let rich = analysis.state == State::Rich;
        match self {
            Self::SimHash(hasher, bits, notation) => {
                let fingerprint = hasher.original(analysis);
                if let Some(fingerprint) = fingerprint {
                    notation.write(fingerprint, *bits, digits);
                }
                fingerprint.is_some()
            }
            Self::MinHash(hasher) => {
                signature.resize(hasher.slots(), 0);
                hasher.original(analysis, signature)
            }
            Self::BottomK(kept) => {
                if rich {
                    smallest_features(analysis, *kept, hashes);
                }
                rich
            }
            Self::Sentences(_) => {
                let name = analysis.sentences().filter(|_| rich);
                if let Some(name) = name {
                    Digits::Hex.write(name.into(), u64::BITS, digits);
                }
                name.is_some()
            }
        }
    }
}

/// Returns the id of a row, or its number if rows have no ids.
pub(crate) fn id_text<'a>(row: &Row<'a>, number: &'a mut String) -> &'a str {
    use std::fmt::Write;
    if let Some(id) = row.id {
        return id;
    }
    number.clear();
    write!(number, "{}", row.number).expect("writing to a string does not fail");
    number
}
