//! Document frequencies of the terms of a corpus, as a table of weights.
//!
//! All threads read the inputs once; the counts do not depend on the number of threads.
//! `docs/format.md` describes the table, which is a text.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use lookalike::Recipe;
use lookalike::text::frequencies::{DocumentFrequencies, FrequencyTally, LearnedFrequencies};
use lookalike::text::weight::{FrequencyTableHeader, read_frequencies};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{ByteWriter, OutputTarget, check_output};
use lookalike_io::source::{
    BadRow, CompressionKind, InputFormat, InputSet, ReadOptions, RowSource,
};
use lookalike_io::source::{compression_by_extension, format_by_extension};
use rayon::prelude::*;
use serde::Serialize;

use super::ordered_pipeline::blocks_in_order;
use super::progress::ProgressListener;
use super::rejected::{BadRows, RejectedRows};

/// Number of terms whose lines are formatted at a time.
const LINES: usize = 16 << 10;

/// Settings of a run that learns document frequencies.
#[derive(Debug, Clone)]
pub struct IdfSettings {
    /// Determines how texts become terms.
    pub recipe: Recipe,
    /// Smallest number of documents of a term in the table, from 1.
    pub least_documents: u64,
    /// Largest number of terms in the table; the most frequent ones are kept.
    pub top: Option<usize>,
    /// Tables of the same recipe whose counts are added.
    pub merge: Vec<PathBuf>,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
}

/// The result of a run that learns document frequencies.
#[derive(Debug, Clone, Serialize)]
pub struct IdfSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents that are counted in the table, including those of merged tables. Documents without
    /// terms are not counted.
    pub counted: u64,
    /// Terms in the table.
    pub terms: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the part of the recipe that determines the terms.
    pub terms_id: String,
}

/// Writes a table of document frequencies. The most frequent terms come first, and equally frequent
/// ones are ordered by their bytes. Memory grows with the vocabulary of the inputs, by some tens of
/// bytes per distinct term.
///
/// # Errors
/// If something cannot be read or written, or if a table to merge was learned with another recipe. The
/// outputs are then unchanged.
pub fn write_frequencies(
    source: &RowSource,
    settings: &IdfSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<IdfSummary> {
    super::run_in_pool(settings.threads, || {
        run_idf(source, settings, output, rejected, progress)
    })
}

/// Counts the terms of blocks. A thread takes an idle worker for each block.
struct IdfWorker<'f> {
    scratch: AnalysisScratch,
    tally: FrequencyTally,
    frequencies: &'f DocumentFrequencies,
}

struct CountedPart {
    bad: Vec<BadRow>,
    documents: u64,
    bytes: u64,
}

fn run_idf(
    source: &RowSource,
    settings: &IdfSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<IdfSummary> {
    let started = Instant::now();
    refuse_other_formats(output)?;
    let before = read_merged_tables(settings)?;
    let inputs = InputSet::open_source(
        source,
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
    let frequencies = DocumentFrequencies::new(&settings.recipe);
    let total = count_inputs(&inputs, settings, &frequencies, &bad_rows, progress)?;
    bad_rows.refuse_useless()?;
    let learned = frequencies.finish_counting(before, settings.least_documents, settings.top);
    write_table(
        &FrequencyTableHeader::new(&settings.recipe, learned.documents, learned.len()),
        &learned,
        output,
    )?;
    Ok(IdfSummary {
        documents: total.documents,
        counted: learned.documents,
        terms: learned.len() as u64,
        rejected: rejected.finish_output()?,
        bytes: total.bytes,
        seconds: started.elapsed().as_secs_f64(),
        recipe: settings.recipe.name.clone(),
        terms_id: settings.recipe.terms_id().to_string(),
    })
}

fn count_inputs(
    inputs: &InputSet,
    settings: &IdfSettings,
    frequencies: &DocumentFrequencies,
    bad_rows: &BadRows<'_>,
    progress: &dyn ProgressListener,
) -> Result<CountedPart> {
    let analyzer = TextAnalyzer::new(&settings.recipe);
    let idle: Mutex<Vec<IdfWorker<'_>>> = Mutex::default();
    let lock = || {
        idle.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    let mut total = CountedPart {
        bad: Vec::new(),
        documents: 0,
        bytes: 0,
    };
    blocks_in_order(
        inputs,
        progress,
        |block, parse, (): &mut (), _| {
            let free = lock().pop();
            let mut worker = free.unwrap_or_else(|| IdfWorker {
                scratch: AnalysisScratch::default(),
                tally: frequencies.new_tally(),
                frequencies,
            });
            let mut made = CountedPart {
                bad: Vec::new(),
                documents: 0,
                bytes: 0,
            };
            inputs.parse_block(block, parse, &mut |row| {
                match row {
                    Err(bad) => {
                        made.bytes += u64::from(bad.place.byte_length());
                        made.bad.push(bad);
                    }
                    Ok(row) => {
                        made.bytes += u64::from(row.place.byte_length());
                        made.documents += 1;
                        worker.count_text(&analyzer, row.text);
                    }
                }
                Ok(())
            })?;
            lock().push(worker);
            Ok(made)
        },
        |made| {
            total.documents += made.documents;
            total.bytes += made.bytes;
            bad_rows.report_rows(&made.bad, made.documents)
        },
    )?;
    let workers = idle.into_inner();
    for worker in workers.unwrap_or_else(std::sync::PoisonError::into_inner) {
        frequencies.merge_tally(worker.tally);
    }
    Ok(total)
}

impl IdfWorker<'_> {
    fn count_text(&mut self, analyzer: &TextAnalyzer, text: &str) {
        self.frequencies
            .count_document(analyzer, text, &mut self.scratch, &mut self.tally);
    }
}

/// Returns the number of documents and the counts of the tables to merge.
fn read_merged_tables(settings: &IdfSettings) -> Result<(u64, HashMap<String, u64>)> {
    let own = settings.recipe.terms_id().to_string();
    let mut documents = 0;
    let mut counts: HashMap<String, u64> = HashMap::new();
    for path in &settings.merge {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| Error::read_error("read", display_path(path), cause))?;
        let head = read_frequencies(&display_path(path), &text, |term, count| {
            *counts.entry(term).or_default() += count;
        })?;
        if head.recipe_id != own {
            return Err(Error::usage_error(format!(
                "{} was learned under the recipe {} (terms {}), which has other terms than {} \
                 (terms {own}): their counts cannot be added",
                display_path(path),
                head.recipe,
                head.recipe_id,
                settings.recipe.name
            )));
        }
        documents += head.documents;
    }
    Ok((documents, counts))
}

fn refuse_other_formats(output: &OutputTarget) -> Result<()> {
    let OutputTarget::Path(path) = output else {
        return Ok(());
    };
    let is_text = |path: &Path| {
        compression_by_extension(path) == CompressionKind::None
            && matches!(
                format_by_extension(path),
                None | Some(InputFormat::Text | InputFormat::TSV)
            )
    };
    if is_text(path) {
        return Ok(());
    }
    Err(Error::usage_error(format!(
        "{} has the extension of another format: a table of document frequencies is text, give it \
         the extension .tsv",
        display_path(path)
    )))
}

fn write_table(
    head: &FrequencyTableHeader,
    learned: &LearnedFrequencies,
    output: &OutputTarget,
) -> Result<()> {
    let mut writer = ByteWriter::create_output(output)?;
    writer.write_bytes(head.to_text().as_bytes())?;
    let starts: Vec<usize> = (0..learned.len()).step_by(LINES).collect();
    for starts in starts.chunks(64) {
        let lots: Vec<String> = starts
            .par_iter()
            .map(|&start| {
                let mut lines = String::with_capacity(24 * LINES);
                let end = (start + LINES).min(learned.len());
                head.append_rows(learned, start..end, &mut lines);
                lines
            })
            .collect();
        for lines in lots {
            writer.write_bytes(lines.as_bytes())?;
        }
    }
    writer.finish_output()?;
    Ok(())
}
