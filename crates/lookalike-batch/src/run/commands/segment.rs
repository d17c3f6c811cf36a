//! The tokens of every document, or its terms with their weights, in input order.

use std::time::Instant;

use lookalike::Recipe;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableRows, TableWriter};
use lookalike_io::source::{ReadOptions, RowSource};
use serde::Serialize;

use crate::run::commands::document_table::{DocumentTableCounts, write_document_table};
use crate::run::progress::ProgressListener;
use crate::run::reading::rejected_rows::OpenedRows;
use crate::run::reading::row_analysis::id_text;

/// The content of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermListing {
    /// One row per document: `recipe_id, tokens`. The tokens are in the order of the text, separated by
    /// spaces.
    Tokens,
    /// One row per distinct term of a document: `recipe_id, term, count, weight, part`, the heaviest first.
    Weights,
}

/// The texts to segment.
#[derive(Debug, Clone)]
pub enum SegmentTexts {
    /// The rows of files or of a table.
    Inputs(RowSource),
    /// Literal texts. Their ids are numbers from 1.
    Literal(Vec<String>),
}

/// Settings of a run that lists tokens.
#[derive(Debug, Clone)]
pub struct SegmentSettings {
    /// Determines how texts become tokens and terms.
    pub recipe: Recipe,
    /// The content of the table.
    pub listing: TermListing,
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
pub fn run_segment(
    texts: &SegmentTexts,
    settings: &SegmentSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<SegmentSummary> {
    let started = Instant::now();
    let lister = TermLister {
        analyzer: TextAnalyzer::new(&settings.recipe),
        listing: settings.listing,
    };
    let done = match texts {
        SegmentTexts::Literal(texts) => list_literal_texts(&lister, texts, output),
        SegmentTexts::Inputs(source) => crate::threads::run_in_pool(settings.threads, || {
            list_rows(&lister, source, settings, output, rejected, progress)
        }),
    }?;
    Ok(SegmentSummary {
        documents: done.documents,
        rows: done.sum,
        rejected: done.rejected,
        bytes: done.bytes,
        seconds: started.elapsed().as_secs_f64(),
        recipe: settings.recipe.name.clone(),
        recipe_id: lister.analyzer.recipe_id().to_string(),
    })
}

struct TermLister {
    analyzer: TextAnalyzer,
    listing: TermListing,
}

#[derive(Default)]
struct SegmentWorker {
    scratch: AnalysisScratch,
    number: String,
    tokens: String,
}

impl TermLister {
    fn table_columns(&self) -> &'static [TableColumn<'static>] {
        match self.listing {
            TermListing::Tokens => &[TableColumn::Text("id"), TableColumn::Text("tokens")],
            TermListing::Weights => &[
                TableColumn::Text("id"),
                TableColumn::Text("term"),
                TableColumn::Integer("count"),
                TableColumn::Number("weight"),
                TableColumn::Text("part"),
            ],
        }
    }

    /// Adds the rows of a document and returns their number.
    fn push_document(
        &self,
        id: &str,
        text: &str,
        scratch: &mut AnalysisScratch,
        tokens: &mut String,
        rows: &mut TableRows,
    ) -> Result<u64> {
        if self.listing == TermListing::Tokens {
            tokens.clear();
            self.analyzer
                .visit_terms(text, scratch, false, &mut |term| {
                    if !tokens.is_empty() {
                        tokens.push(' ');
                    }
                    tokens.push_str(term.text);
                });
            rows.push_row(&[TableCell::Text(id), TableCell::Text(tokens)])?;
            return Ok(1);
        }
        let terms = self.analyzer.list_terms(text, scratch);
        for term in &terms {
            rows.push_row(&[
                TableCell::Text(id),
                TableCell::Text(&term.text),
                TableCell::Integer(term.count),
                TableCell::Number(term.weight_in_digits()),
                term.part
                    .as_deref()
                    .map_or(TableCell::Null, TableCell::Text),
            ])?;
        }
        Ok(terms.len() as u64)
    }
}

fn list_literal_texts(
    lister: &TermLister,
    texts: &[String],
    output: &OutputTarget,
) -> Result<DocumentTableCounts> {
    let mut table = TableWriter::create_table(output, lister.table_columns(), None)?;
    let mut worker = SegmentWorker::default();
    let mut done = DocumentTableCounts::default();
    for (at, text) in texts.iter().enumerate() {
        let mut rows = table.new_rows();
        done.sum += lister.push_document(
            &(at + 1).to_string(),
            text,
            &mut worker.scratch,
            &mut worker.tokens,
            &mut rows,
        )?;
        done.documents += 1;
        done.bytes += text.len() as u64;
        table.append_rows(rows)?;
    }
    table.finish_table()?;
    Ok(done)
}

fn list_rows(
    lister: &TermLister,
    source: &RowSource,
    settings: &SegmentSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<DocumentTableCounts> {
    let (read, strict) = (&settings.read, settings.strict);
    let opened = OpenedRows::open_source(source, read, output, rejected, strict, progress)?;
    let columns = lister.table_columns();
    let table = TableWriter::create_table(output, columns, Some(&opened.inputs))?;
    write_document_table(opened, table, |row, worker: &mut SegmentWorker, rows| {
        let SegmentWorker {
            scratch,
            number,
            tokens,
        } = worker;
        lister.push_document(id_text(row, number), row.text, scratch, tokens, rows)
    })
}
