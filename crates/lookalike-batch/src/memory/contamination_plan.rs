//! The memory of a run that looks for items of benchmarks: its limit, and what items, threads and rows take of it.
//!
//! ```text
//! fixed       the program, buffers and counts of words for each thread, what decoding the inputs takes
//! resident    items with their index and weights; about four bytes for each row of the corpus
//! working     the rest: candidates, which go to a temporary file from their share on; findings
//! ```
//!
//! The items are measured exactly, because they are read before the corpus. The number of rows is estimated, and checked
//! while they are read.

use lookalike_io::error::{Error, Result};
use serde::Serialize;

use crate::memory::{MemoryBudget, MemoryLimit, PROCESS_BYTES, RowBudget, with_reserve};

/// Bytes of buffers for each thread: blocks of rows with their candidates, and the tokens of a text.
const THREAD_BYTES: u64 = 48 << 20;

/// Fewest bytes for candidates and findings.
const MIN_WORKING_BYTES: u64 = 64 << 20;

/// Bytes of a row. They are in a list that grows, and that may be copied when it does.
const BYTES_PER_ROW: u64 = 4;
const BYTES_PER_ROW_OF_GROWING_LIST: f64 = 8.0;

/// Bytes of a word of the items for each thread, which counts it, and in the counts and weights of the corpus.
const THREAD_BYTES_PER_TERM: u64 = 8;
const WEIGHT_BYTES_PER_TERM: u64 = 10;

/// Bytes that are taken while the index of the items is built, for each byte of it: the index itself, sorted seeds and the
/// units that are known so far. No rows are in memory then.
const BUILD_BYTES_PER_INDEX_BYTE: f64 = 2.5;

/// Bytes of candidates that stay in memory if the limit allows.
const KEPT_CANDIDATE_BYTES: u64 = 64 << 20;

/// The items of all benchmarks, measured.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MeasuredItems {
    pub(crate) items: u64,
    /// Bytes of their texts.
    pub(crate) text_bytes: u64,
    /// Bytes of their index.
    pub(crate) index_bytes: u64,
    /// Number of their different words.
    pub(crate) terms: u64,
}

/// The corpus before it is read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExpectedCorpus {
    /// Expected number of rows; `None` if it is not known.
    pub(crate) documents: Option<f64>,
    /// Bytes of the largest record batches of an Arrow file while they are decoded.
    pub(crate) decoding_bytes: u64,
}

/// The memory that a run is expected to take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContaminationPlan {
    /// Expected number of documents; `None` if the size of the corpus is not known.
    pub documents: Option<u64>,
    /// Number of items.
    pub items: u64,
    /// Limit on the memory of the process, in bytes.
    pub limit_bytes: u64,
    /// Bytes of the items: their texts and their index.
    pub item_bytes: u64,
    /// Bytes of the counts and weights of their words.
    pub weight_bytes: u64,
    /// Bytes of the buffers and counts of all threads.
    pub thread_bytes: u64,
    /// Expected bytes of the rows, with a reserve while their list grows.
    pub row_bytes: u64,
    /// Bytes of candidates that stay in memory. Further ones go to a temporary file.
    pub candidate_bytes: u64,
    /// Expected bytes of memory of the run, if the number of documents is known.
    pub in_memory_bytes: Option<u64>,
    /// Smallest limit, in bytes, with which the run would be accepted.
    pub smallest_limit_bytes: u64,
    /// Bytes of findings, at most.
    #[serde(skip)]
    finding_bytes: u64,
    /// Bytes of items, texts and process while the index is built.
    #[serde(skip)]
    building_bytes: u64,
    /// The bytes of a limit that rows may not take.
    #[serde(skip)]
    bytes_beside_rows: u64,
}

/// The shares of a run of its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContaminationShares {
    rows: RowBudget,
    candidate_bytes: u64,
    finding_bytes: u64,
}

impl ContaminationShares {
    /// Returns the shares of a run without a limit.
    pub(crate) fn unlimited() -> Self {
        Self {
            rows: RowBudget {
                limit_bytes: u64::MAX,
                most_bytes: u64::MAX,
                beside_row: 0.0,
            },
            candidate_bytes: KEPT_CANDIDATE_BYTES,
            finding_bytes: u64::MAX,
        }
    }

    /// Divides a limit. One that a user has not set is no bound on the rows.
    pub(crate) fn from_plan(plan: &ContaminationPlan, limit: MemoryLimit) -> Self {
        if !limit.is_set {
            return Self::unlimited();
        }
        Self {
            rows: RowBudget {
                limit_bytes: limit.bytes,
                most_bytes: limit.bytes.saturating_sub(plan.bytes_beside_rows),
                beside_row: BYTES_PER_ROW_OF_GROWING_LIST - BYTES_PER_ROW as f64,
            },
            candidate_bytes: plan.candidate_bytes,
            finding_bytes: plan.finding_bytes,
        }
    }

    /// Refuses findings that take more memory than the limit leaves for them.
    ///
    /// # Errors
    /// If the `bytes` of the findings, in `documents` documents so far, are too many.
    pub(crate) fn check_findings(self, documents: usize, bytes: usize) -> Result<()> {
        if bytes as u64 <= self.finding_bytes {
            return Ok(());
        }
        Err(Error::limit_error(format!(
            "the findings of {documents} documents take {} MB, more than a limit of {} MB leaves for them: give a higher \
             one, or search for some benchmarks at a time",
            bytes.div_ceil(1_000_000),
            self.rows.limit_bytes / 1_000_000
        )))
    }

    /// Returns the bytes of candidates that stay in memory.
    pub(crate) fn candidate_bytes(self) -> usize {
        self.candidate_bytes as usize
    }

    /// Refuses rows that take more memory than the limit leaves for them.
    ///
    /// # Errors
    /// As [`RowBudget::check_rows`].
    pub(crate) fn check_rows(self, documents: usize, bytes: u64) -> Result<()> {
        self.rows.check_rows(documents, bytes)
    }
}

impl ContaminationPlan {
    /// Plans a run over measured items.
    ///
    /// # Errors
    /// If the limit is too small for the items and the rows, and was set by a user; the message says which limit would do.
    pub(crate) fn from_measures(
        items: MeasuredItems,
        corpus: ExpectedCorpus,
        threads: usize,
        limit: MemoryLimit,
    ) -> Result<Self> {
        let budget = MemoryBudget {
            threads,
            thread_bytes: THREAD_BYTES + THREAD_BYTES_PER_TERM * items.terms,
            decoding_bytes: corpus.decoding_bytes,
            least_working_bytes: MIN_WORKING_BYTES,
        };
        let item_bytes = items.text_bytes + items.index_bytes;
        let weight_bytes = WEIGHT_BYTES_PER_TERM * items.terms;
        let documents = corpus.documents.unwrap_or_default();
        let row_bytes = with_reserve(documents * BYTES_PER_ROW_OF_GROWING_LIST);
        let resident = item_bytes + weight_bytes + row_bytes;
        let left = limit
            .bytes
            .saturating_sub(budget.fixed_bytes() + resident)
            .max(MIN_WORKING_BYTES);
        // A chunk of candidates is read again while the last one is still in memory, and findings are beside both.
        let building = BUILD_BYTES_PER_INDEX_BYTE * items.index_bytes as f64;
        let building_bytes = PROCESS_BYTES + items.text_bytes + building as u64;
        let candidate_bytes = (left / 4).min(KEPT_CANDIDATE_BYTES);
        let plan = Self {
            documents: corpus.documents.map(|documents| documents.round() as u64),
            items: items.items,
            limit_bytes: limit.bytes,
            item_bytes,
            weight_bytes,
            thread_bytes: threads as u64 * budget.thread_bytes,
            row_bytes,
            candidate_bytes,
            in_memory_bytes: corpus
                .documents
                .map(|_| budget.fixed_bytes() + resident + 2 * candidate_bytes),
            smallest_limit_bytes: budget.smallest_limit(resident).max(building_bytes),
            finding_bytes: left / 2,
            building_bytes,
            bytes_beside_rows: budget.smallest_limit(item_bytes + weight_bytes),
        };
        if limit.bytes >= plan.smallest_limit_bytes || !limit.is_set {
            return Ok(plan);
        }
        Err(plan.limit_error(budget))
    }

    fn limit_error(&self, budget: MemoryBudget) -> Error {
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        let rows = match self.documents {
            Some(documents) => format!(
                "{documents} documents, whose places take {} MB",
                megabytes(self.row_bytes)
            ),
            None => "a corpus of unknown size, whose places come".to_owned(),
        };
        Error::usage_error(format!(
            "{} MB of memory are too little for {} items of benchmarks, which take {} MB ({} MB with the program while \
             their index is built), and {rows} beside the {} MB of every run: give {} MB or more, use fewer threads, or \
             search for some benchmarks at a time",
            self.limit_bytes / 1_000_000,
            self.items,
            megabytes(self.item_bytes + self.weight_bytes),
            megabytes(self.building_bytes),
            megabytes(budget.fixed_bytes()),
            megabytes(self.smallest_limit_bytes)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: MeasuredItems = MeasuredItems {
        items: 50_000,
        text_bytes: 40_000_000,
        index_bytes: 160_000_000,
        terms: 200_000,
    };

    fn corpus(documents: f64) -> ExpectedCorpus {
        ExpectedCorpus {
            documents: Some(documents),
            decoding_bytes: 0,
        }
    }

    fn limit(bytes: u64, is_set: bool) -> MemoryLimit {
        MemoryLimit {
            bytes,
            is_set,
            working_set: None,
        }
    }

    #[test]
    fn the_named_smallest_limit_works() {
        for threads in [1, 2, 64] {
            for documents in [0.0, 1e6, 1e9] {
                let plan = |bytes, is_set| {
                    let (corpus, limit) = (corpus(documents), limit(bytes, is_set));
                    ContaminationPlan::from_measures(ITEMS, corpus, threads, limit)
                };
                let smallest = plan(0, false).unwrap().smallest_limit_bytes;
                let fitting = plan(smallest, true).unwrap();
                assert!(fitting.candidate_bytes >= MIN_WORKING_BYTES / 4);
                let error = plan(smallest - 1, true).unwrap_err().to_string();
                let named = format!("give {} MB or more", smallest.div_ceil(1_000_000));
                assert!(error.contains(&named), "{error}");
                assert!(error.contains("50000 items"), "{error}");
                assert!(fitting.in_memory_bytes.unwrap() <= smallest);
            }
        }
    }

    #[test]
    fn more_rows_than_expected_are_refused() {
        let plan = |documents| {
            let limit = limit(1 << 30, true);
            let plan = ContaminationPlan::from_measures(ITEMS, corpus(documents), 2, limit);
            ContaminationShares::from_plan(&plan.unwrap(), limit)
        };
        // The share of the limit for rows does not depend on how many are expected.
        for shares in [plan(0.0), plan(1e6)] {
            let left = (1 << 30) - (64 << 20) - 2 * ((48 << 20) + 1_600_000) - (64 << 20);
            let rows = (left - 202_000_000) / 8;
            let check = |rows: usize| shares.check_rows(rows, BYTES_PER_ROW * rows as u64);
            check(rows).unwrap();
            let error = check(rows + 1).unwrap_err().to_string();
            assert!(error.contains("give a higher one"), "{error}");
        }
        ContaminationShares::unlimited()
            .check_rows(1 << 40, 1 << 42)
            .unwrap();
    }

    #[test]
    fn more_findings_than_fit_are_refused() {
        let limit = limit(1 << 30, true);
        let plan = ContaminationPlan::from_measures(ITEMS, corpus(1e6), 2, limit).unwrap();
        let shares = ContaminationShares::from_plan(&plan, limit);
        // Half of what is left beside items, threads and rows.
        let rows = with_reserve(1e6 * BYTES_PER_ROW_OF_GROWING_LIST) as usize;
        let left = (1 << 30) - (64 << 20) - 2 * ((48 << 20) + 1_600_000) - 202_000_000 - rows;
        shares.check_findings(9, left / 2).unwrap();
        let error = shares.check_findings(9, left / 2 + 1).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("the findings of 9 documents") && error.contains("1073 MB"),
            "{error}"
        );
    }

    #[test]
    fn a_limit_of_the_machine_refuses_nothing() {
        let limit = limit(1 << 20, false);
        let plan = ContaminationPlan::from_measures(ITEMS, corpus(1e9), 4, limit).unwrap();
        let shares = ContaminationShares::from_plan(&plan, limit);
        shares.check_rows(1 << 40, 1 << 42).unwrap();
        assert_eq!(shares.candidate_bytes(), 64 << 20);
    }
}
