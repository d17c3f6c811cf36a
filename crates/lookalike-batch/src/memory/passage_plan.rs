//! The memory of a passages run: its limit, and the shares of grams and texts.
//!
//! The places and ids of all rows stay in memory. Grams of the sources stay there while they fit, and go to a temporary
//! file otherwise, so a run needs no estimate to keep its limit. The plan that users see estimates them from the first
//! block of the inputs (`run::commands::passages::memory_measuring`).

use lookalike_io::error::{Error, Result};
use serde::Serialize;

use crate::memory::{BYTES_BESIDE_ROW, MemoryBudget, MemoryLimit, RowBudget, with_reserve};

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

/// The shares of a run of its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassageShares {
    /// The bytes that rows may take.
    rows: RowBudget,
    /// Bytes for everything beside the rows.
    working: u64,
    /// `true` if grams go to temporary files whether they would fit or not.
    is_always_spilled: bool,
    threads: u64,
}

impl PassageShares {
    /// Returns the shares of a run without a limit: everything stays in memory.
    pub(crate) fn unlimited(threads: usize) -> Self {
        Self {
            rows: RowBudget {
                limit_bytes: u64::MAX,
                most_bytes: u64::MAX,
                beside_row: BYTES_BESIDE_ROW,
            },
            working: u64::MAX,
            is_always_spilled: false,
            threads: threads as u64,
        }
    }

    /// Divides a limit. One that a user has not set is raised to what the run needs.
    pub(crate) fn from_plan(plan: &PassagePlan, limit: MemoryLimit, threads: usize) -> Self {
        let bytes = if limit.is_set {
            limit.bytes
        } else {
            limit.bytes.max(plan.smallest_limit_bytes)
        };
        let budget = budget_of_run(threads);
        let left = (bytes - budget.fixed_bytes() - plan.base_bytes - plan.resident_bytes) / 8 * 7;
        Self {
            rows: RowBudget {
                limit_bytes: bytes,
                most_bytes: bytes - budget.smallest_limit(plan.base_bytes),
                beside_row: BYTES_BESIDE_ROW,
            },
            working: limit.working_set.unwrap_or(left),
            is_always_spilled: limit.working_set.is_some(),
            threads: threads as u64,
        }
    }

    /// Returns the number of grams that are collected before they are written; at most one for each document of a
    /// block less.
    pub(crate) fn collected_grams(self, kinds: u64) -> usize {
        (self.working / 2 / kinds / size_of::<(u64, u32)>() as u64).max(16) as usize
    }

    /// Returns `true` if an index of `grams` grams can be built in memory.
    pub(crate) fn fits(self, grams: usize, kinds: u64) -> bool {
        let for_grams = self.working.saturating_sub(self.text_bytes() as u64) / kinds;
        !self.is_always_spilled && BUILD_BYTES_PER_GRAM * grams as u64 <= for_grams
    }

    /// Returns the bytes of the buffers by which sorted grams are read.
    pub(crate) fn merged_bytes(self) -> usize {
        (self.working / 8).min(usize::MAX as u64 / 2) as usize
    }

    /// Returns the bytes of a filter of grams.
    pub(crate) fn filter_bytes(self, kinds: u64) -> usize {
        (self.working / 4 / kinds).min(1 << 33) as usize
    }

    /// Returns the bytes of the files of an index on disk that are kept.
    pub(crate) fn index_bytes(self) -> u64 {
        self.working / 4
    }

    /// Returns the bytes of texts that are kept for all threads.
    pub(crate) fn text_bytes(self) -> usize {
        (self.working / 4).min(KEPT_TEXT_BYTES) as usize
    }

    /// Returns the bytes of prepared sources that a thread keeps.
    pub(crate) fn source_bytes(self) -> usize {
        (self.working / 8 / self.threads).min(KEPT_SOURCE_BYTES) as usize
    }

    /// Refuses rows that take more memory than the limit leaves for them.
    ///
    /// # Errors
    /// As [`RowBudget::check_rows`].
    pub(crate) fn check_rows(self, documents: usize, bytes: u64) -> Result<()> {
        self.rows.check_rows(documents, bytes)
    }

    /// Refuses passages that wait for their order in more memory than the limit leaves for them.
    ///
    /// # Errors
    /// If the `bytes` of the passages are too many.
    pub(crate) fn check_ranked(self, passages: usize, bytes: usize) -> Result<()> {
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

fn budget_of_run(threads: usize) -> MemoryBudget {
    MemoryBudget {
        threads,
        thread_bytes: THREAD_BYTES,
        decoding_bytes: 0,
        least_working_bytes: MIN_WORKING_BYTES,
    }
}

/// The memory and disk that a run is expected to take.
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
    /// Bytes of the base texts, which stay in memory, too; 0 without any.
    pub base_bytes: u64,
    /// Expected bytes of temporary files; 0 if everything stays in memory.
    pub disk_bytes: u64,
    /// Smallest limit, in bytes, with which the run would be accepted.
    pub smallest_limit_bytes: u64,
}

/// Measured rows of a set of inputs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MeasuredRows {
    pub(crate) documents: f64,
    pub(crate) row_bytes: f64,
    /// Grams and terms of a document.
    pub(crate) grams: f64,
}

impl PassagePlan {
    /// Estimates a run over measured sources and other documents, or over inputs of unknown size, beside base texts of
    /// `base_bytes` bytes of memory.
    ///
    /// # Errors
    /// If the limit is too small for any run over them and was set by a user; the message says which limit would do.
    pub(crate) fn from_measures(
        measured: Option<[MeasuredRows; 2]>,
        base_bytes: u64,
        threads: usize,
        limit: MemoryLimit,
    ) -> Result<Self> {
        let plan = Self::estimate(measured, base_bytes, threads, limit.bytes);
        if limit.bytes >= plan.smallest_limit_bytes || !limit.is_set {
            return Ok(plan);
        }
        if base_bytes > 0 {
            return Err(plan.base_error());
        }
        let documents = plan.documents.map(|count| count as f64);
        Err(budget_of_run(threads).limit_error(
            limit.bytes,
            documents,
            plan.resident_bytes,
            plan.smallest_limit_bytes,
        ))
    }

    /// Returns the error for a limit that is too small for base texts and rows.
    fn base_error(&self) -> Error {
        Error::usage_error(format!(
            "{} MB of memory are too little for base texts of {} MB beside the rows and what every run takes: give {} MB \
             or more",
            self.limit_bytes / 1_000_000,
            self.base_bytes.div_ceil(1_000_000),
            self.smallest_limit_bytes.div_ceil(1_000_000)
        ))
    }

    fn estimate(
        measured: Option<[MeasuredRows; 2]>,
        base_bytes: u64,
        threads: usize,
        limit_bytes: u64,
    ) -> Self {
        let budget = budget_of_run(threads);
        let fixed = budget.fixed_bytes() + base_bytes;
        let all = measured.unwrap_or_default();
        let sum = |of: fn(&MeasuredRows) -> f64| all.iter().map(of).sum::<f64>();
        let resident = with_reserve(sum(|rows| {
            rows.documents * (rows.row_bytes + BYTES_BESIDE_ROW)
        }));
        let grams = sum(|rows| rows.documents * rows.grams);
        let caches = KEPT_TEXT_BYTES + threads as u64 * KEPT_SOURCE_BYTES;
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
            base_bytes,
            disk_bytes: if out_of_core {
                (DISK_BYTES_PER_GRAM * grams) as u64
            } else {
                0
            },
            smallest_limit_bytes: budget.smallest_limit(base_bytes + resident),
        }
    }
}
