//! The measuring of the memory of a run: the rows and grams of its first block are measured, and [`PassagePlan`] is
//! made from the measures.

use lookalike::passages::{SelectedGram, Winnower};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::Result;
use lookalike_io::source::{InputSet, ParseScratch};

use crate::memory::MemoryLimit;
use crate::memory::passage_plan::{MeasuredRows, PassagePlan, PassageShares};
use crate::run::commands::passages::base_texts::{RunBase, read_base};
use crate::run::commands::passages::settings::PassageRunSettings;
use crate::run::reading::documents::{ExtraFields, ReadDocuments};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::RunInputs;

/// Number of documents of the first block that are measured.
const MEASURED_DOCUMENTS: usize = 4096;

impl PassageShares {
    /// Divides the limit of the settings beside base texts of `base_bytes` bytes of memory; without a limit, everything
    /// stays in memory.
    ///
    /// # Errors
    /// If the inputs cannot be read, or if the limit is too small for their rows.
    pub(super) fn for_run(
        paths: &RunInputs,
        settings: &PassageRunSettings,
        base_bytes: u64,
    ) -> Result<Self> {
        let Some(limit) = settings.reading.memory else {
            return Ok(Self::unlimited(settings.reading.threads));
        };
        let plan = PassagePlan::plan_beside(paths, settings, base_bytes, limit)?;
        Ok(Self::from_plan(&plan, limit, settings.reading.threads))
    }
}

impl PassagePlan {
    /// Estimates a run. It reads the base texts, and the first block of each kind of inputs, from a source of its own.
    ///
    /// # Errors
    /// If the inputs cannot be read, or if the limit is too small for any run over them and was set by a user; the
    /// message says which limit would do.
    pub fn plan_run(
        paths: &RunInputs,
        settings: &PassageRunSettings,
        limit: MemoryLimit,
    ) -> Result<Self> {
        let base = read_base(settings, Some(limit))?;
        let base_bytes = base.as_ref().map_or(0, RunBase::memory_bytes);
        Self::plan_beside(paths, settings, base_bytes, limit)
    }

    fn plan_beside(
        paths: &RunInputs,
        settings: &PassageRunSettings,
        base_bytes: u64,
        limit: MemoryLimit,
    ) -> Result<Self> {
        let measured = measure_inputs(paths, settings, limit)?;
        Self::from_measures(measured, base_bytes, settings.reading.threads, limit)
    }
}

/// Measures the sources and the other documents; `None` if their number is not known, or if they are so small that the
/// limit cannot matter.
fn measure_inputs(
    paths: &RunInputs,
    settings: &PassageRunSettings,
    limit: MemoryLimit,
) -> Result<Option<[MeasuredRows; 2]>> {
    let sources = [&paths.documents, &paths.against];
    if (sources.iter()).any(|source| source.is_read_once() || source.has_objects()) {
        return Ok(None);
    }
    let opened = OpenInputs::new(paths, &settings.reading)?;
    let size = opened.size_on_disk();
    if size.is_none_or(|bytes| limit.is_far_above(bytes)) {
        return Ok(None);
    }
    let against = match &opened.against {
        Some(inputs) => measure_rows(inputs, &opened.against_fields, settings, true)?,
        None => Some(MeasuredRows::default()),
    };
    let are_sources = opened.against.is_none() && settings.index.is_none();
    let own = measure_rows(
        &opened.documents,
        &opened.document_fields,
        settings,
        are_sources,
    )?;
    Ok(against.zip(own).map(|(against, own)| [against, own]))
}

fn measure_rows(
    inputs: &InputSet,
    extra: &ExtraFields,
    settings: &PassageRunSettings,
    are_sources: bool,
) -> Result<Option<MeasuredRows>> {
    let Some(documents) = inputs.expected_rows()? else {
        return Ok(None);
    };
    let tokenizer = SpanTokenizer::new(&settings.reading.recipe);
    let mut winnower = Winnower::new(settings.passages);
    let (mut tokens, mut selected) = (SpannedTokens::default(), Vec::<SelectedGram>::new());
    let (mut read, mut grams) = (ReadDocuments::default(), 0);
    if let Some(block) = inputs.next_block()? {
        inputs.parse_block(&block, &mut ParseScratch::default(), &mut |row| {
            if let Ok(row) = row
                && read.len() < MEASURED_DOCUMENTS
                && read.push_row(&row, extra).is_ok()
                && are_sources
            {
                tokenizer.tokenize_text(row.text, &mut tokens)?;
                winnower.select_grams(tokens.values(), &mut selected);
                grams += selected.len();
                if settings.passages.finds_reworded() {
                    grams += tokens.len();
                }
            }
            Ok(())
        })?;
    }
    let count = read.len().max(1) as f64;
    Ok(Some(MeasuredRows {
        documents,
        row_bytes: read.memory_bytes() as f64 / count,
        grams: grams as f64 / count,
    }))
}
