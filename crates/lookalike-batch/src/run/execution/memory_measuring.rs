//! The measuring of the memory of a run: its first documents are measured, and [`MemoryPlan`] is made from the
//! measures.

use lookalike::plan::MatchPlan;
use lookalike::shuffle::{LocalKeys, LocalScatterer};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, DocId, DocumentSketcher};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{InputRow, ParseScratch};

use crate::memory::MemoryLimit;
use crate::memory::repeated_text_plan::RepeatedTextShares;
use crate::memory::run_plan::{DocumentBytes, MemoryPlan, PlanFrame, RunParts, RunShares};
use crate::run::execution::out_of_core::spilled_reading::shuffle_setup;
use crate::run::reading::corpus_reader::FEATURES_IN_MEMORY;
use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::reading::row_analysis::analyze_row;
use crate::run::settings::{RunInputs, RunSettings};

/// Largest number of documents that are measured, and of blocks in which they are.
const MEASURED_DOCUMENTS: usize = 4096;
const MEASURED_BLOCKS: usize = 8;

impl MemoryPlan {
    /// Plans a run over inputs, with the memory of its other parts. It reads up to eight first blocks of the inputs, from
    /// a source of its own.
    ///
    /// # Errors
    /// If the inputs cannot be read, or the limit is too small for any run over them; the message says which limit
    /// would do.
    pub fn plan_run(
        paths: &RunInputs,
        settings: &RunSettings,
        limit: MemoryLimit,
        parts: RunParts,
    ) -> Result<Self> {
        let mut frame = PlanFrame::new(limit, settings.threads, parts);
        let of_unknown_size = || Self::from_measures(None, DocumentBytes::default(), frame);
        let sources = [&paths.documents, &paths.against];
        let are_read_once = sources.iter().any(|source| source.is_read_once());
        // Measuring reads the first blocks of an object once more.
        let are_remote = sources.iter().any(|source| source.has_objects());
        if are_read_once || are_remote && !frame.limit.is_set {
            return of_unknown_size();
        }
        let plan = MatchPlan::new(&settings.recipe, settings.matching)?;
        let opened = OpenInputs::new(paths, settings)?;
        let documents = match opened.size_on_disk() {
            Some(_) => opened.expected_rows()?,
            None => None,
        };
        let Some(documents) = documents else {
            return of_unknown_size();
        };
        let of_document = measure_documents(&opened, settings, &plan)?;
        frame.budget.decoding_bytes = opened.decoding_bytes()?;
        Self::from_measures(Some(documents), of_document, frame)
    }
}

/// The needs of a run that decide whether it can go out of core.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::run) struct RunMemoryNeeds {
    /// An option for which all documents must be in memory.
    pub(in crate::run) needs_all: Option<&'static str>,
    pub(in crate::run) parts: RunParts,
}

/// The memory of a run, as its limit divides it.
#[derive(Debug, Clone, Copy)]
pub(in crate::run) struct RunMemory {
    /// The shares of a run out of core; `None` if everything but passages stays in memory.
    pub(in crate::run) spill: Option<RunShares>,
    /// The shares of a search for repeated text in a run that is not out of core.
    pub(in crate::run) passages: RepeatedTextShares,
}

/// Returns the shares of the memory of a run, if its limit makes it go out of core.
///
/// # Errors
/// As [`plan_memory`].
pub(in crate::run) fn plan_spilling(
    paths: &RunInputs,
    settings: &RunSettings,
    needs: RunMemoryNeeds,
) -> Result<Option<RunShares>> {
    Ok(plan_memory(paths, settings, needs)?.spill)
}

/// Divides the memory of a run.
///
/// # Errors
/// As [`MemoryPlan::plan_run`], and if all documents must be in memory, do not fit, and the limit was set by a user.
pub(in crate::run) fn plan_memory(
    paths: &RunInputs,
    settings: &RunSettings,
    needs: RunMemoryNeeds,
) -> Result<RunMemory> {
    let RunMemoryNeeds { needs_all, parts } = needs;
    let limit = settings
        .memory
        .filter(|limit| limit.is_set || needs_all.is_none());
    let Some(limit) = limit else {
        return Ok(RunMemory {
            spill: None,
            passages: RepeatedTextShares::of_working_bytes(None, settings.threads),
        });
    };
    let plan = MemoryPlan::plan_run(paths, settings, limit, parts)?;
    let spill = refuse_spilling(settings, needs_all, plan.run_shares())?;
    let for_passages = Some(plan.bytes_for_passages());
    Ok(RunMemory {
        spill,
        passages: RepeatedTextShares::of_working_bytes(for_passages, settings.threads),
    })
}

/// Returns the shares of a run out of core, unless an option needs all documents in memory.
fn refuse_spilling(
    settings: &RunSettings,
    needs_all: Option<&str>,
    shares: Option<RunShares>,
) -> Result<Option<RunShares>> {
    match (needs_all, shares) {
        (Some(option), Some(shares)) => {
            let spelling = &settings.spelling;
            Err(Error::usage_error(format!(
                "{} needs all documents in memory, which takes more than {} MB: leave it out, or raise {}",
                spelling.spell_option(option),
                shares.rows.limit_bytes / 1_000_000,
                spelling.spell_option("memory")
            )))
        }
        _ => Ok(shares),
    }
}

/// Returns the bytes of a document, from the first blocks of the inputs.
fn measure_documents(
    opened: &OpenInputs,
    settings: &RunSettings,
    plan: &MatchPlan,
) -> Result<DocumentBytes> {
    let sketcher = DocumentSketcher::new(&settings.recipe, plan, Cpu::detect_best());
    let analyzer = TextAnalyzer::new(&settings.recipe).with_extras(sketcher.required_extras());
    let setup = shuffle_setup(settings)?;
    let mut scatterer = LocalScatterer::new(setup.clone());
    let mut documents = ReadDocuments::with_sketches(sketcher.new_sketches(FEATURES_IN_MEMORY));
    let mut scratch = AnalysisScratch::default();
    let mut of_texts = 0;
    for _ in 0..MEASURED_BLOCKS {
        let Some(block) = opened
            .documents
            .next_block()?
            .filter(|_| documents.len() < MEASURED_DOCUMENTS)
        else {
            break;
        };
        let mut measure_row = |row: &InputRow<'_>| {
            if documents.len() == MEASURED_DOCUMENTS
                || documents.push_row(row, &opened.document_fields).is_err()
            {
                return;
            }
            of_texts += row.text.len();
            let analysis = analyze_row(&analyzer, row, &mut scratch);
            sketcher.add_document(&analysis, &mut documents.sketches);
            let number = documents.len() as u32 - 1;
            let partition = documents.partitions.last().copied().unwrap_or(0);
            let sketches = &documents.sketches;
            scatterer.add_document(number, partition, sketches, DocId(number), &analysis);
        };
        opened
            .documents
            .parse_block(&block, &mut ParseScratch::default(), &mut |row| {
                if let Ok(row) = row {
                    measure_row(&row);
                }
                Ok(())
            })?;
    }
    let keys = LocalKeys::new(setup, documents.len(), 0, 0);
    let blocks = scatterer.take_blocks(&keys);
    let of_keys: usize = blocks.iter().map(|block| block.block.len()).sum();
    let count = documents.len().max(1) as f64;
    let values = documents.value_bytes() + documents.string_value_bytes();
    let ids = documents.ids.memory_bytes();
    let row = documents.memory_bytes() - ids as u64 + values;
    let sketches = documents.sketches.memory_bytes() + documents.sketches.list_bytes();
    Ok(DocumentBytes {
        row: row as f64 / count,
        ids: ids as f64 / count,
        sketches: sketches as f64 / count,
        keys: of_keys as f64 / count,
        text: of_texts as f64 / count,
    })
}
