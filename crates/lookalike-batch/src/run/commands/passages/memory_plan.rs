//! The memory of a passages run: its limit, and how it is divided.
//!
//! The places and ids of all rows stay in memory. Grams of the sources stay there while they fit, and go to a temporary
//! file otherwise, so a run needs no estimate to keep its limit. The plan that users see estimates them from the first
//! block of the inputs.

use lookalike::passages::{SelectedGram, Winnower};
use lookalike::text::{SpanTokenizer, SpannedTokens};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{InputSet, ParseScratch};
use serde::Serialize;

use crate::memory::{BYTES_BESIDE_ROW, MemoryBudget, MemoryLimit, RowBudget, with_reserve};
use crate::run::commands::passages::settings::PassageRunSettings;
use crate::run::reading::documents::{ExtraFields, ReadDocuments};
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::RunInputs;

/// Bytes of buffers for each thread: blocks of rows, and the text that is searched.
const THREAD_BYTES: u64 = 48 << 20;

/// Fewest bytes for grams and texts.
const MIN_WORKING_BYTES: u64 = 64 << 20;

/// Bytes of memory of a gram of the sources while an index of them is built in memory.
const BUILD_BYTES_PER_GRAM: u64 = 26;

/// Bytes of a gram in temporary files: sorted, and in the order in which they are looked up.
const DISK_BYTES_PER_GRAM: f64 = 14.0 + 12.0;

/// Most bytes of texts that are kept for all threads, and of the prepared sources that a thread keeps, because
/// neighbouring documents often have the same sources.
const KEPT_TEXT_BYTES: u64 = 256 << 20;
const KEPT_SOURCE_BYTES: u64 = 64 << 20;

/// Number of documents of the first block that are measured.
const MEASURED_DOCUMENTS: usize = 4096;

/// How a run divides its memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassageMemory {
    /// The bytes that rows may take.
    rows: RowBudget,
    /// Bytes for everything beside the rows.
    working: u64,
    /// `true` if grams go to temporary files whether they would fit or not.
    is_always_spilled: bool,
    threads: u64,
}

impl PassageMemory {
    /// Divides the limit of the settings; without one, everything stays in memory. A limit that a user has not set is
    /// raised to what the run needs.
    ///
    /// # Errors
    /// If the inputs cannot be read, or if the limit is too small for their rows.
    pub(super) fn for_run(paths: &RunInputs, settings: &PassageRunSettings) -> Result<Self> {
        let threads = settings.threads as u64;
        let Some(limit) = settings.memory else {
            return Ok(Self {
                rows: RowBudget {
                    limit_bytes: u64::MAX,
                    most_bytes: u64::MAX,
                    beside_row: BYTES_BESIDE_ROW,
                },
                working: u64::MAX,
                is_always_spilled: false,
                threads,
            });
        };
        let plan = PassagePlan::plan_run(paths, settings, limit)?;
        let bytes = if limit.is_set {
            limit.bytes
        } else {
            limit.bytes.max(plan.smallest_limit_bytes)
        };
        let budget = budget_of_run(settings);
        let left = (bytes - budget.fixed_bytes() - plan.resident_bytes) / 8 * 7;
        Ok(Self {
            rows: RowBudget {
                limit_bytes: bytes,
                most_bytes: bytes - budget.smallest_limit(0),
                beside_row: BYTES_BESIDE_ROW,
            },
            working: limit.working_set.unwrap_or(left),
            is_always_spilled: limit.working_set.is_some(),
            threads,
        })
    }

    /// Returns the number of grams that are collected before they are written; at most one for each document of a
    /// block less.
    pub(super) fn collected_grams(self, kinds: u64) -> usize {
        (self.working / 2 / kinds / size_of::<(u64, u32)>() as u64).max(16) as usize
    }

    /// Returns `true` if an index of `grams` grams can be built in memory.
    pub(super) fn fits(self, grams: usize, kinds: u64) -> bool {
        let for_grams = self.working.saturating_sub(self.text_bytes() as u64) / kinds;
        !self.is_always_spilled && BUILD_BYTES_PER_GRAM * grams as u64 <= for_grams
    }

    /// Returns the bytes of the buffers by which sorted grams are read.
    pub(super) fn merged_bytes(self) -> usize {
        (self.working / 8).min(usize::MAX as u64 / 2) as usize
    }

    /// Returns the bytes of a filter of grams.
    pub(super) fn filter_bytes(self, kinds: u64) -> usize {
        (self.working / 4 / kinds).min(1 << 33) as usize
    }

    /// Returns the bytes of the files of an index on disk that are kept.
    pub(super) fn index_bytes(self) -> u64 {
        self.working / 4
    }

    /// Returns the bytes of texts that are kept for all threads.
    pub(super) fn text_bytes(self) -> usize {
        (self.working / 4).min(KEPT_TEXT_BYTES) as usize
    }

    /// Returns the bytes of prepared sources that a thread keeps.
    pub(super) fn source_bytes(self) -> usize {
        (self.working / 8 / self.threads).min(KEPT_SOURCE_BYTES) as usize
    }

    /// Refuses rows that take more memory than the limit leaves for them.
    ///
    /// # Errors
    /// As [`RowBudget::check_rows`].
    pub(super) fn check_rows(self, documents: usize, bytes: u64) -> Result<()> {
        self.rows.check_rows(documents, bytes)
    }

    /// Refuses passages that wait for their order in more memory than the limit leaves for them.
    ///
    /// # Errors
    /// If the `bytes` of the passages are too many.
    pub(super) fn check_ranked(self, passages: usize, bytes: usize) -> Result<()> {
        if bytes as u64 <= self.working / 4 {
            return Ok(());
        }
        Err(Error::limit_error(format!(
            "{passages} passages that wait for their order take {} MB, more than a limit of {} MB leaves for them: give \
             a higher one, or write them in the order of their positions",
            bytes.div_ceil(1_000_000),
            self.rows.limit_bytes / 1_000_000
        )))
    }
}

fn budget_of_run(settings: &PassageRunSettings) -> MemoryBudget {
    MemoryBudget {
        threads: settings.threads,
        thread_bytes: THREAD_BYTES,
        decoding_bytes: 0,
        least_working_bytes: MIN_WORKING_BYTES,
    }
}

/// How much memory and disk a run is expected to take.
#[derive(Debug, Clone, Serialize)]
pub struct PassagePlan {
    /// Expected number of documents, with those of `--against`; `None` if the size of the inputs is not known.
    pub documents: Option<u64>,
    /// Limit on the memory of the process, in bytes.
    pub limit_bytes: u64,
    /// Expected bytes of memory of a run that keeps everything in memory.
    pub in_memory_bytes: Option<u64>,
    /// `true` if grams are expected to go to temporary files.
    pub out_of_core: bool,
    /// Expected bytes that stay in memory for the rows.
    pub resident_bytes: u64,
    /// Expected bytes of temporary files; 0 if everything stays in memory.
    pub disk_bytes: u64,
    /// Smallest limit, in bytes, with which the run would be accepted.
    pub smallest_limit_bytes: u64,
}

/// Measured rows of a set of inputs.
#[derive(Debug, Clone, Copy, Default)]
struct MeasuredRows {
    documents: f64,
    row_bytes: f64,
    /// Grams and terms of a document.
    grams: f64,
}

impl PassagePlan {
    /// Estimates a run. It reads the first block of each kind of inputs, from a source of its own.
    ///
    /// # Errors
    /// If the inputs cannot be read, or if the limit is too small for any run over them and was set by a user; the
    /// message says which limit would do.
    pub fn plan_run(
        paths: &RunInputs,
        settings: &PassageRunSettings,
        limit: MemoryLimit,
    ) -> Result<Self> {
        let measured = measure_inputs(paths, settings, limit)?;
        let plan = Self::from_measures(measured, settings, limit.bytes);
        if limit.bytes >= plan.smallest_limit_bytes || !limit.is_set {
            return Ok(plan);
        }
        let documents = plan.documents.map(|count| count as f64);
        Err(budget_of_run(settings).limit_error(
            limit.bytes,
            documents,
            plan.resident_bytes,
            plan.smallest_limit_bytes,
        ))
    }

    fn from_measures(
        measured: Option<[MeasuredRows; 2]>,
        settings: &PassageRunSettings,
        limit_bytes: u64,
    ) -> Self {
        let budget = budget_of_run(settings);
        let fixed = budget.fixed_bytes();
        let all = measured.unwrap_or_default();
        let sum = |of: fn(&MeasuredRows) -> f64| all.iter().map(of).sum::<f64>();
        let resident = with_reserve(sum(|rows| {
            rows.documents * (rows.row_bytes + BYTES_BESIDE_ROW)
        }));
        let grams = sum(|rows| rows.documents * rows.grams);
        let caches = KEPT_TEXT_BYTES + settings.threads as u64 * KEPT_SOURCE_BYTES;
        let in_memory = fixed + resident + (BUILD_BYTES_PER_GRAM as f64 * grams) as u64;
        let left = (limit_bytes.saturating_sub(fixed + resident)) / 8 * 7;
        let for_grams = left.saturating_sub((left / 4).min(KEPT_TEXT_BYTES));
        let out_of_core =
            measured.is_some() && BUILD_BYTES_PER_GRAM as f64 * grams > for_grams as f64;
        Self {
            documents: measured.map(|_| sum(|rows| rows.documents).round() as u64),
            limit_bytes,
            in_memory_bytes: measured.map(|_| in_memory + caches),
            out_of_core,
            resident_bytes: resident,
            disk_bytes: if out_of_core {
                (DISK_BYTES_PER_GRAM * grams) as u64
            } else {
                0
            },
            smallest_limit_bytes: budget.smallest_limit(resident),
        }
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
    let opened = OpenInputs::new(paths, &settings.reading_settings())?;
    let size = opened.size_on_disk();
    if size.is_none_or(|bytes| limit.is_far_above(bytes)) {
        return Ok(None);
    }
    let against = match &opened.against {
        Some(inputs) => measure_rows(inputs, &opened.reference_fields, settings, true)?,
        None => Some(MeasuredRows::default()),
    };
    let are_sources = opened.against.is_none() && settings.index.is_none();
    let own = measure_rows(&opened.inputs, &opened.extra, settings, are_sources)?;
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
    let tokenizer = SpanTokenizer::new(&settings.recipe);
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
