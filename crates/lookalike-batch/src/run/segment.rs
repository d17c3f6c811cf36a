//! The tokens of every document, or its terms with their weights, in input order.

use std::sync::Mutex;
use std::time::Instant;

use lookalike::Recipe;
use lookalike::text::{Analyzer, Scratch};
use lookalike::weight::WEIGHT_STEPS;
use serde::Serialize;

use super::fingerprint::id_text;
use super::ordered::blocks_in_order;
use super::progress::Progress;
use super::rejected::{BadRows, Rejected};
use crate::error::Result;
use crate::sink::{Cell, Column, Output, TableRows, TableWriter, check_output};
use crate::source::{BadRow, Inputs, ReadOptions, Source};

/// Bytes of a block's results that are passed on before the block ends.
const PART_BYTES: usize = 8 << 20;

/// The content of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// One row per document: `id, tokens`. The tokens are in the order of the text, separated by
    /// spaces.
    Tokens,
    /// One row per distinct term of a document: `id, term, count, weight, part`, the heaviest first.
    Weights,
}

/// The texts to segment.
#[derive(Debug, Clone)]
pub enum SegmentTexts {
    /// The rows of files or of a table.
    Inputs(Source),
    /// Literal texts. Their ids are numbers from 1.
    Literal(Vec<String>),
}

/// Settings of a run that lists tokens.
#[derive(Debug, Clone)]
pub struct SegmentSettings {
    /// Determines how texts become tokens and terms.
    pub recipe: Recipe,
    /// The content of the table.
    pub listing: Listing,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
}

/// The result of a run that lists tokens.
#[derive(Debug, Clone, Serialize)]
pub struct SegmentSummary {
    /// Documents read.
    pub documents: u64,
    /// Rows written.
    pub rows: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
}

/// Writes a table of tokens or of weighted terms. Memory does not grow with the input. Ids are written
/// unchanged, even if they are repeated.
///
/// # Errors
/// If something cannot be read or written. The outputs are then unchanged.
pub fn segment(
    texts: &SegmentTexts,
    settings: &SegmentSettings,
    output: &Output,
    rejected: Option<&Output>,
    progress: &dyn Progress,
) -> Result<SegmentSummary> {
    let started = Instant::now();
    let lister = Lister {
        analyzer: Analyzer::new(&settings.recipe),
        listing: settings.listing,
    };
    let done = match texts {
        SegmentTexts::Literal(texts) => literal(&lister, texts, output),
        SegmentTexts::Inputs(source) => super::in_pool(settings.threads, || {
            rows(&lister, source, settings, (output, rejected), progress)
        }),
    }?;
    Ok(SegmentSummary {
        documents: done.documents,
        rows: done.rows,
        rejected: done.rejected,
        bytes: done.bytes,
        seconds: started.elapsed().as_secs_f64(),
        recipe: settings.recipe.name.clone(),
        recipe_id: settings.recipe.id().to_string(),
    })
}

#[derive(Default)]
struct Done {
    documents: u64,
    rows: u64,
    rejected: u64,
    bytes: u64,
}

struct Lister {
    analyzer: Analyzer,
    listing: Listing,
}

#[derive(Default)]
struct Worker {
    scratch: Scratch,
    number: String,
    tokens: String,
}

impl Lister {
    fn columns(&self) -> &'static [Column<'static>] {
        match self.listing {
            Listing::Tokens => &[Column::Text("id"), Column::Text("tokens")],
            Listing::Weights => &[
                Column::Text("id"),
                Column::Text("term"),
                Column::Integer("count"),
                Column::Number("weight"),
                Column::Text("part"),
            ],
        }
    }

    /// Adds the rows of a document and returns their number.
    fn push(
        &self,
        id: &str,
        text: &str,
        (scratch, tokens): (&mut Scratch, &mut String),
        rows: &mut TableRows,
    ) -> Result<u64> {
        if self.listing == Listing::Tokens {
            tokens.clear();
            self.analyzer.terms(text, scratch, false, &mut |term| {
                if !tokens.is_empty() {
                    tokens.push(' ');
                }
                tokens.push_str(term.text);
            });
            rows.push(&[Cell::Text(id), Cell::Text(tokens)])?;
            return Ok(1);
        }
        let terms = self.analyzer.list(text, scratch);
        for term in &terms {
            rows.push(&[
                Cell::Text(id),
                Cell::Text(&term.text),
                Cell::Integer(term.count),
                Cell::Number(weight_in_digits(term.weight)),
                term.part.as_deref().map_or(Cell::Null, Cell::Text),
            ])?;
        }
        Ok(terms.len() as u64)
    }
}

/// Converts a weight to a number with four decimal places, as in tables.
pub fn weight_in_digits(steps: i64) -> f64 {
    (steps as f64 / WEIGHT_STEPS as f64 * 1e4).round() / 1e4
}

fn literal(lister: &Lister, texts: &[String], output: &Output) -> Result<Done> {
    let mut table = TableWriter::create(output, lister.columns(), None)?;
    let mut worker = Worker::default();
    let mut done = Done::default();
    for (at, text) in texts.iter().enumerate() {
        let mut rows = table.rows();
        let buffers = (&mut worker.scratch, &mut worker.tokens);
        done.rows += lister.push(&(at + 1).to_string(), text, buffers, &mut rows)?;
        done.documents += 1;
        done.bytes += text.len() as u64;
        table.append(rows)?;
    }
    table.finish()?;
    Ok(done)
}

struct Part {
    rows: TableRows,
    bad: Vec<BadRow>,
    done: Done,
}

fn rows(
    lister: &Lister,
    source: &Source,
    settings: &SegmentSettings,
    (output, rejected): (&Output, Option<&Output>),
    progress: &dyn Progress,
) -> Result<Done> {
    let inputs = Inputs::open_source(
        source,
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
    let mut table = TableWriter::create(output, lister.columns(), Some(&inputs))?;
    let template = table.rows();
    let part = || Part {
        rows: template.empty(),
        bad: Vec::new(),
        done: Done::default(),
    };
    let mut total = Done::default();
    blocks_in_order(
        &inputs,
        progress,
        |block, parse, worker: &mut Worker, emit| {
            let mut made = part();
            inputs.parse(block, parse, &mut |row| {
                match row {
                    Err(bad) => {
                        made.done.bytes += u64::from(bad.place.length());
                        made.bad.push(bad);
                    }
                    Ok(row) => {
                        made.done.bytes += u64::from(row.place.length());
                        made.done.documents += 1;
                        let Worker {
                            scratch,
                            number,
                            tokens,
                        } = &mut *worker;
                        let id = id_text(&row, number);
                        let buffers = (scratch, tokens);
                        made.done.rows += lister.push(id, row.text, buffers, &mut made.rows)?;
                    }
                }
                if made.rows.bytes() >= PART_BYTES {
                    emit(std::mem::replace(&mut made, part()))?;
                }
                Ok(())
            })?;
            Ok(made)
        },
        |made| {
            bad_rows.tell(&made.bad, made.done.documents)?;
            total.documents += made.done.documents;
            total.rows += made.done.rows;
            total.bytes += made.done.bytes;
            table.append(made.rows)
        },
    )?;
    bad_rows.refuse_useless()?;
    table.finish()?;
    total.rejected = rejected.finish()?;
    Ok(total)
}
