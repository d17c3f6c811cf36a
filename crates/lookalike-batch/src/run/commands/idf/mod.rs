//! Document frequencies of the terms of a corpus, as a table of weights.
//!
//! All threads read the inputs once; the counts do not depend on the number of threads, nor on the memory: what does
//! not fit into it goes to temporary files (see `spilled_terms`). `docs/format.md` describes the table, which is a text.

mod memory_measuring;
mod settings;
mod spilled_terms;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use lookalike::Recipe;
use lookalike::text::frequencies::{DocumentFrequencies, FrequencyTally, LearnedFrequencies};
use lookalike::text::weight::{
    FrequencyLines, FrequencyTableHeader, read_frequencies, read_frequency_lines,
};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike_io::error::{Error, Result, display_path};
use lookalike_io::sink::{ByteWriter, OutputTarget};
use lookalike_io::source::{
    CompressionKind, InputFormat, RowSource, compression_by_extension, format_by_extension,
};
use rayon::prelude::*;
use serde::Serialize;

pub use settings::IdfSettings;

use crate::memory::frequency_plan::FrequencyShares;
use crate::run::commands::summary::SpilledData;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::reading::ordered_pipeline::parse_blocks_in_order;
use crate::run::reading::rejected_rows::{CountedRows, OpenedRows};
use spilled_terms::{SpilledRows, TermSpill};

/// Number of terms whose lines are formatted at a time.
const LINES_AT_ONCE: usize = 16 << 10;

/// Number of such groups of lines that all threads format before they are written.
const LINE_GROUPS_AT_ONCE: usize = 64;

/// Bytes of lines that are written at a time.
const LINE_BUFFER_BYTES: usize = 256 << 10;

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
    /// The data of the run that went to temporary files, if not everything fitted into the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<SpilledData>,
}

/// Writes a table of document frequencies. The most frequent terms come first, and equally frequent
/// ones are ordered by their bytes. Memory grows with the vocabulary of the inputs, by some tens of
/// bytes per distinct term, up to the limit of the settings; terms beyond it go to temporary files.
///
/// # Errors
/// If something cannot be read or written, if a table to merge was learned with another recipe, or if the limit of
/// memory is too small for any run. The outputs are then unchanged.
pub fn write_frequencies(
    source: &RowSource,
    settings: &IdfSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<IdfSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        run_idf(source, settings, output, rejected, progress)
    })
}

/// The buffers and the tally with which a thread counts a block.
///
/// States are kept in a pool and not by the threads, because their tallies are needed after the last block: they have the
/// text of each term, and counts that are not added yet. There are at most as many states as threads.
struct CountingState {
    scratch: AnalysisScratch,
    tally: FrequencyTally,
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
    let memory = FrequencyShares::new(settings.memory, settings.threads)?;
    let frequencies = DocumentFrequencies::with_table_bytes(&settings.recipe, memory.table_bytes());
    let spill = TermSpill::new(&frequencies, memory, settings.read.scratch.clone());
    let (merged_documents, merged_counts) = if memory.keeps_tables(&settings.merge)? {
        read_merged_tables(settings)?
    } else {
        (spill.add_tables(settings)?, HashMap::new())
    };
    let (read, strict) = (&settings.read, settings.strict);
    let opened = OpenedRows::open_source(source, read, output, rejected, strict, progress)?;
    let (total, tallies) = count_inputs(&opened, settings, &spill)?;
    opened.refuse_useless()?;
    let written = if spill.needs_temporary_files(&tallies) {
        progress.begin_stage(RunStage::Write, None);
        if !merged_counts.is_empty() {
            // The merged tables fitted when they were read; now the run uses temporary files, so they are read again into
            // these.
            spill.add_tables(settings)?;
            drop(merged_counts);
        }
        let documents = merged_documents + frequencies.counted_documents();
        let rows = spill.order_rows(tallies, settings)?;
        write_spilled_table(&settings.recipe, documents, &rows, output)?
    } else {
        drop(spill);
        for tally in tallies {
            frequencies.merge_tally(tally);
        }
        let least = settings.least_documents;
        let learned =
            frequencies.finish_counting(merged_documents, merged_counts, least, settings.top);
        write_table(&settings.recipe, &learned, output)?
    };
    Ok(IdfSummary {
        documents: total.documents,
        counted: written.documents,
        terms: written.terms,
        rejected: opened.into_rejected().finish_output()?,
        bytes: total.bytes,
        seconds: started.elapsed().as_secs_f64(),
        recipe: settings.recipe.name.clone(),
        terms_id: settings.recipe.terms_id().to_string(),
        spilled: written.spilled,
    })
}

/// The documents and terms of a table that was written, and the data that went to temporary files for it.
struct TableTotals {
    documents: u64,
    terms: u64,
    spilled: Option<SpilledData>,
}

/// Counts the terms of all inputs. All counts are in `spill.frequencies()` by then; the tallies, which are returned, keep
/// only the text of each term.
fn count_inputs(
    opened: &OpenedRows<'_>,
    settings: &IdfSettings,
    spill: &TermSpill<'_>,
) -> Result<(CountedRows, Vec<FrequencyTally>)> {
    let analyzer = TextAnalyzer::new(&settings.recipe);
    let frequencies = spill.frequencies();
    let idle_states: Mutex<Vec<CountingState>> = Mutex::default();
    let lock = || {
        idle_states
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    let mut total = CountedRows::default();
    parse_blocks_in_order(
        &opened.inputs,
        opened.progress,
        |block, parse, (): &mut (), _| {
            let idle = lock().pop();
            let mut state = idle.unwrap_or_else(|| CountingState {
                scratch: AnalysisScratch::default(),
                tally: frequencies.new_tally(),
            });
            let mut chunk = CountedRows::default();
            opened.inputs.parse_block(block, parse, &mut |row| {
                if let Some(row) = chunk.count_row(row) {
                    let CountingState { scratch, tally } = &mut state;
                    frequencies.count_document(&analyzer, row.text, scratch, tally);
                    spill.keep_limits(tally)?;
                }
                Ok(())
            })?;
            lock().push(state);
            Ok(chunk)
        },
        |chunk: CountedRows| {
            total.documents += chunk.documents;
            total.bytes += chunk.bytes;
            opened.report_rows(&chunk.bad, chunk.documents)
        },
    )?;
    let states = idle_states.into_inner();
    let states = states.unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut tallies: Vec<_> = states.into_iter().map(|state| state.tally).collect();
    for tally in &mut tallies {
        frequencies.count_waiting(tally);
        spill.keep_limits(tally)?;
    }
    Ok((total, tallies))
}

/// Returns the number of documents and the counts of the tables to merge.
fn read_merged_tables(settings: &IdfSettings) -> Result<(u64, HashMap<String, u64>)> {
    let mut documents = 0;
    let mut counts: HashMap<String, u64> = HashMap::new();
    for path in &settings.merge {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| Error::read_error("read", display_path(path), cause))?;
        let head = read_frequencies(&display_path(path), &text, |term, count| {
            *counts.entry(term).or_default() += count;
        })?;
        documents += check_terms(&settings.recipe, &head, path)?;
    }
    Ok((documents, counts))
}

/// Reads a table to merge line by line, and returns the number of its documents. It calls `visit` with each term, the
/// number of documents that have it, and the number of its line.
fn read_table_lines(
    settings: &IdfSettings,
    path: &Path,
    visit: impl FnMut(String, u64, u64) -> Result<()>,
) -> Result<u64> {
    let name = display_path(path);
    let failed = |cause| Error::read_error("read", &name, cause);
    let mut lines = BufReader::new(File::open(path).map_err(failed)?);
    let next_line = |line: &mut String| {
        line.clear();
        let length = lines.read_line(line).map_err(failed)?;
        if line.ends_with('\n') {
            line.pop();
            if line.ends_with('\r') {
                line.pop();
            }
        }
        Ok(length > 0)
    };
    let head = read_frequency_lines(&name, next_line, visit)?;
    check_terms(&settings.recipe, &head, path)
}

/// Refuses a table that was learned with another recipe. Returns the number of its documents.
fn check_terms(recipe: &Recipe, head: &FrequencyTableHeader, path: &Path) -> Result<u64> {
    let own = recipe.terms_id().to_string();
    if head.terms_id == own {
        return Ok(head.documents);
    }
    Err(Error::usage_error(format!(
        "{} was learned under the recipe {} (terms {}), which has other terms than {} \
         (terms {own}): their counts cannot be added",
        display_path(path),
        head.recipe,
        head.terms_id,
        recipe.name
    )))
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
    recipe: &Recipe,
    learned: &LearnedFrequencies,
    output: &OutputTarget,
) -> Result<TableTotals> {
    let head = FrequencyTableHeader::new(recipe, learned.documents, learned.len());
    let mut writer = ByteWriter::create_output(output)?;
    writer.write_bytes(head.to_text().as_bytes())?;
    let starts: Vec<usize> = (0..learned.len()).step_by(LINES_AT_ONCE).collect();
    for starts in starts.chunks(LINE_GROUPS_AT_ONCE) {
        let texts: Vec<String> = starts
            .par_iter()
            .map(|&start| {
                let mut lines = String::with_capacity(24 * LINES_AT_ONCE);
                let end = (start + LINES_AT_ONCE).min(learned.len());
                head.append_rows(learned, start..end, &mut lines);
                lines
            })
            .collect();
        for lines in texts {
            writer.write_bytes(lines.as_bytes())?;
        }
    }
    writer.finish_output()?;
    Ok(TableTotals {
        documents: learned.documents,
        terms: learned.len() as u64,
        spilled: None,
    })
}

/// Writes the table of terms that are in temporary files.
fn write_spilled_table(
    recipe: &Recipe,
    documents: u64,
    rows: &SpilledRows,
    output: &OutputTarget,
) -> Result<TableTotals> {
    let head = FrequencyTableHeader::new(recipe, documents, rows.rows as usize);
    let mut writer = ByteWriter::create_output(output)?;
    let mut lines = head.to_text();
    let mut format = FrequencyLines::new(documents);
    rows.visit_rows(|term, count| {
        format.append_line(term, count, &mut lines);
        if lines.len() >= LINE_BUFFER_BYTES {
            writer.write_bytes(lines.as_bytes())?;
            lines.clear();
        }
        Ok(())
    })?;
    writer.write_bytes(lines.as_bytes())?;
    writer.finish_output()?;
    Ok(TableTotals {
        documents,
        terms: rows.rows,
        spilled: Some(rows.spilled),
    })
}
