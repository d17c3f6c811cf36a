//! The memory of runs that compare documents: what stays in memory, what goes to temporary files, and how much of it.
//!
//! All figures are estimates but the limit. `run::execution::memory_measuring` measures [`DocumentBytes`] in the first
//! blocks of the inputs, and makes the plan with [`MemoryPlan::plan_run`].

use lookalike_io::error::{Error, Result};
use serde::Serialize;

use crate::memory::repeated_text_plan::{self, RepeatedTextCoefficients, RepeatedTextShares};
use crate::memory::{MemoryBudget, MemoryLimit, RowBudget, with_reserve};

/// The parts of a run that take memory beside its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunParts {
    /// `true` if the run decides beside an index.
    pub has_index: bool,
    /// `true` if the run searches for repeated text.
    pub has_passages: bool,
}

/// The limit and the coefficients of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanFrame {
    pub(crate) limit: MemoryLimit,
    pub(crate) budget: MemoryBudget,
    parts: RunParts,
    /// Bytes that stay in memory for each document beside its row.
    beside_row: f64,
}

/// Bytes that stay in memory for each document beside its row. While documents are linked and grouped, these are its
/// component, its group, the earliest document with its text and the counts of components; afterwards its verdict, if
/// it is removed, and its component if clusters are written. Before, the search for repeated ids takes 8.
const BYTES_BESIDE_ROW: f64 = 24.0;

/// Bytes more if everything stays in memory: candidates and lists that grow.
const MORE_BYTES_IN_MEMORY: f64 = 8.0;

/// Bytes that a document takes beside an index: its match and the name of the matching row, or, if it is kept, its place
/// and id while it is added.
const INDEX_MATCH_BYTES: f64 = 160.0;

/// Bytes of memory that the keys of a document take, for each byte of keys and features in temporary files.
const BUCKET_BYTES_PER_BYTE: f64 = 0.9;

/// Bytes of buffers for each thread.
const THREAD_BYTES: u64 = 24 << 20;

/// Fewest bytes for keys and groups.
const MIN_WORKING_BYTES: u64 = 48 << 20;

/// Fewest bytes for what an index sorts.
const MIN_INDEX_SORT_BYTES: u64 = 1 << 20;

/// Bytes of memory that a part of the keys takes while its documents are linked, for each of its bytes.
const LINKING_BYTES_PER_BYTE: u64 = 5;

/// Bytes that a run mostly takes beside its documents, and for each thread. Limits count with the larger figures of
/// [`MemoryBudget`].
const USUAL_FIXED_BYTES: f64 = 40e6;
const USUAL_THREAD_BYTES: f64 = 15e6;

/// Bytes of temporary files for each document; and for each byte of its sketches, which are written once more for
/// documents that may match, and of its keys, which are written once more in parts. Measured on corpora of titles,
/// paragraphs and articles. A tenth to nine tenths of them may match.
const DISK_BYTES_PER_DOCUMENT: f64 = 20.0;
const DISK_BYTES_PER_SKETCH_BYTE: f64 = 1.5;
const DISK_BYTES_PER_KEY_BYTE: f64 = 2.5;

/// The memory and disk that a run takes. It says also whether the run goes to temporary files.
#[derive(Debug, Clone, Serialize)]
pub struct MemoryPlan {
    /// Expected number of documents; `None` if the size of the inputs is not known.
    pub documents: Option<u64>,
    /// Limit on the memory of the process, in bytes.
    pub limit_bytes: u64,
    /// Most bytes of memory that a run may take that keeps everything in memory.
    pub in_memory_bytes: Option<u64>,
    /// Expected bytes of memory of such a run.
    pub expected_bytes: Option<u64>,
    /// `true` if sketches and keys go to temporary files.
    pub out_of_core: bool,
    /// Expected bytes that stay in memory in any case.
    pub resident_bytes: u64,
    /// Expected bytes of temporary files; 0 if everything stays in memory.
    pub disk_bytes: u64,
    /// Smallest limit, in bytes, with which the run would be accepted.
    pub smallest_limit_bytes: u64,
    /// Coefficients of the search for repeated text, if the run has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passages: Option<RepeatedTextCoefficients>,
    #[serde(skip)]
    shares: RunShares,
}

/// The shares of the memory by which a run out of core divides its work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunShares {
    /// Expected number of documents.
    pub(crate) documents: usize,
    /// Expected number of keys of sketches and texts.
    pub(crate) keys: usize,
    /// Bytes of the filter of keys that several documents have.
    pub(crate) filter_bytes: usize,
    /// Bytes of buffers of a temporary file.
    pub(crate) buffered_bytes: u64,
    /// Bytes of keys of a part.
    pub(crate) part_bytes: u64,
    /// Bytes of memory of a group of components.
    pub(crate) group_bytes: u64,
    /// Largest number of bytes of a group that has only one component.
    pub(crate) largest_group_bytes: u64,
    /// Number of features that a group keeps in memory.
    pub(crate) held_features: usize,
    /// The bytes that rows may take.
    pub(crate) rows: RowBudget,
    /// Bytes of the limit that are for rows, keys and groups.
    free_bytes: u64,
    /// Bytes for keys and groups, if they do not follow from the limit.
    working_set: Option<u64>,
    threads: u64,
}

impl RunShares {
    /// Returns the shares that remain beside the rows, whose number and bytes are known once they are read.
    pub(crate) fn beside_rows(self, documents: usize, bytes: u64) -> Self {
        let resident = self.rows.resident_bytes(documents, bytes);
        self.of_working_bytes(self.free_bytes.saturating_sub(resident))
    }

    /// Takes `bytes` for an index, which needs them as long as the run lasts.
    ///
    /// # Errors
    /// If the limit leaves too little for the rest.
    pub(crate) fn beside_index(mut self, bytes: u64) -> Result<Self> {
        let least = self.rows.resident_bytes(self.documents, 0) + MIN_WORKING_BYTES;
        if self.free_bytes < bytes + least {
            let missing = bytes + least - self.free_bytes;
            return Err(Error::usage_error(format!(
                "the rows of the library take {} MB of memory, more than a limit of {} MB leaves for them: give {} MB \
                 or more",
                bytes.div_ceil(1_000_000),
                self.rows.limit_bytes / 1_000_000,
                (self.rows.limit_bytes + missing).div_ceil(1_000_000)
            )));
        }
        self.free_bytes -= bytes;
        self.rows.most_bytes = self.rows.most_bytes.saturating_sub(bytes);
        Ok(self)
    }

    /// Bytes that an index may take while it is opened, and while rows are added to it.
    pub(crate) fn index_bytes(&self) -> u64 {
        (2 * self.group_bytes).max(MIN_INDEX_SORT_BYTES)
    }

    /// Returns the shares of a search for repeated text, which comes when keys and groups need no memory any more.
    pub(crate) fn repeated_text_shares(&self) -> RepeatedTextShares {
        RepeatedTextShares::of_working_bytes(Some(2 * self.group_bytes), self.threads as usize)
    }

    fn of_working_bytes(mut self, left: u64) -> Self {
        let left = left.max(MIN_WORKING_BYTES);
        let working = self.working_set.unwrap_or(left);
        self.filter_bytes = (working / 4) as usize;
        self.buffered_bytes = working / 8;
        self.part_bytes = (working / 2 / LINKING_BYTES_PER_BYTE / self.threads).max(1);
        self.group_bytes = working / 2;
        self.largest_group_bytes = working.max(left);
        self.held_features = (working / 8 / 8).min(12 << 20) as usize;
        self
    }

    /// Refuses rows that take more memory than the limit leaves for them.
    ///
    /// # Errors
    /// As [`RowBudget::check_rows`].
    pub(crate) fn check_rows(&self, documents: usize, bytes: u64) -> Result<()> {
        self.rows.check_rows(documents, bytes)
    }

    /// Returns the error for a component that does not fit into the memory.
    pub(crate) fn refuse_component(&self, documents: u32, per_document: u64) -> Error {
        let needed_bytes = u64::from(documents) * per_document;
        let missing_bytes = needed_bytes.saturating_sub(self.largest_group_bytes);
        Error::limit_error(format!(
            "{documents} documents may match one another by chains, and are decided together, which takes {} MB \
             of memory: give a limit of {} MB or more, a higher threshold, or a stricter recipe",
            needed_bytes.div_ceil(1_000_000),
            (self.rows.limit_bytes + missing_bytes).div_ceil(1_000_000) + 1,
        ))
    }
}

/// Measured bytes of a document.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DocumentBytes {
    pub(crate) row: f64,
    /// The id, which goes to a temporary file if the run is out of core.
    pub(crate) ids: f64,
    pub(crate) sketches: f64,
    /// Keys and features as they are written to temporary files.
    pub(crate) keys: f64,
    pub(crate) text: f64,
}

impl DocumentBytes {
    fn in_memory(self, beside_row: f64) -> f64 {
        let beside_row = beside_row + MORE_BYTES_IN_MEMORY;
        self.row + self.ids + self.sketches + BUCKET_BYTES_PER_BYTE * self.keys + beside_row
    }

    /// Bytes of temporary files of a run out of core.
    fn on_disk(self, parts: RunParts) -> f64 {
        let of_texts = if parts.has_passages {
            repeated_text_plan::DISK_BYTES_PER_TEXT_BYTE * self.text
        } else {
            0.0
        };
        of_texts
            + DISK_BYTES_PER_DOCUMENT
            + self.ids
            + DISK_BYTES_PER_SKETCH_BYTE * self.sketches
            + DISK_BYTES_PER_KEY_BYTE * self.keys
    }
}

impl PlanFrame {
    /// Returns the frame of a run under a limit.
    pub(crate) fn new(limit: MemoryLimit, threads: usize, parts: RunParts) -> Self {
        let mut beside_row = BYTES_BESIDE_ROW;
        if parts.has_index {
            beside_row += INDEX_MATCH_BYTES;
        }
        if parts.has_passages {
            beside_row += repeated_text_plan::RESIDENT_BYTES_PER_DOCUMENT;
        }
        Self {
            parts,
            beside_row,
            limit,
            budget: MemoryBudget {
                threads,
                thread_bytes: THREAD_BYTES,
                decoding_bytes: 0,
                least_working_bytes: MIN_WORKING_BYTES,
            },
        }
    }
}

impl MemoryPlan {
    /// Plans a run over `documents` documents, or over inputs of unknown size, beside an index if `frame` counts its
    /// bytes.
    ///
    /// # Errors
    /// If the limit is too small for any run over them; the message says which limit would do.
    pub(crate) fn from_measures(
        documents: Option<f64>,
        of_document: DocumentBytes,
        frame: PlanFrame,
    ) -> Result<Self> {
        let PlanFrame {
            limit,
            budget,
            parts,
            beside_row,
        } = frame;
        let fixed = budget.fixed_bytes();
        let of_passages = if parts.has_passages {
            repeated_text_plan::MIN_WORKING_BYTES
        } else {
            0
        };
        let count = documents.unwrap_or(0.0);
        let row_bytes = with_reserve(count * (of_document.row + beside_row));
        let in_memory = documents.map(|count| {
            fixed + with_reserve(count * of_document.in_memory(beside_row)) + of_passages
        });
        let exceeds_limit = in_memory.map_or(limit.is_set, |bytes| bytes > limit.bytes);
        let out_of_core = exceeds_limit || limit.working_set.is_some();
        let resident = if out_of_core {
            fixed + row_bytes
        } else {
            in_memory.unwrap_or(fixed)
        };
        let smallest = budget
            .smallest_limit(row_bytes)
            .min(in_memory.unwrap_or(u64::MAX));
        if limit.bytes < smallest {
            return Err(budget.limit_error(limit.bytes, documents, row_bytes, smallest));
        }
        let disk = if out_of_core {
            count * of_document.on_disk(parts)
        } else {
            0.0
        };
        let keys = count * of_document.keys / 12.0;
        Ok(Self {
            documents: documents.map(|count| count.round() as u64),
            limit_bytes: limit.bytes,
            in_memory_bytes: in_memory,
            expected_bytes: documents.map(|_| {
                let of_threads = budget.threads as f64 * USUAL_THREAD_BYTES;
                let usual = USUAL_FIXED_BYTES + of_threads + budget.decoding_bytes as f64;
                (usual + count * of_document.in_memory(beside_row)) as u64
            }),
            out_of_core,
            resident_bytes: resident,
            disk_bytes: disk as u64,
            smallest_limit_bytes: smallest,
            passages: parts.has_passages.then_some(RepeatedTextCoefficients::ALL),
            shares: RunShares {
                // Without a known size, tables are as large as those of 16 million documents.
                documents: documents.map_or(1 << 24, |count| count as usize),
                keys: documents.map_or(usize::MAX, |_| keys as usize),
                rows: RowBudget {
                    limit_bytes: limit.bytes,
                    most_bytes: limit.bytes.saturating_sub(budget.smallest_limit(0)),
                    beside_row,
                },
                free_bytes: limit.bytes.saturating_sub(fixed),
                working_set: limit.working_set,
                threads: budget.threads as u64,
                filter_bytes: 0,
                buffered_bytes: 0,
                part_bytes: 0,
                group_bytes: 0,
                largest_group_bytes: 0,
                held_features: 0,
            }
            .of_working_bytes(limit.bytes.saturating_sub(resident)),
        })
    }

    /// Returns the shares of the memory, if the run is out of core.
    pub(crate) fn run_shares(&self) -> Option<RunShares> {
        self.out_of_core.then_some(self.shares)
    }

    /// Returns the bytes that are left for the search for repeated text of a run that keeps everything else in memory.
    pub(crate) fn bytes_for_passages(&self) -> u64 {
        let others = self.in_memory_bytes.unwrap_or(self.resident_bytes);
        let left = self.limit_bytes.saturating_sub(others);
        left + repeated_text_plan::MIN_WORKING_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTICLE_BYTES: DocumentBytes = DocumentBytes {
        row: 60.0,
        ids: 0.0,
        sketches: 600.0,
        keys: 500.0,
        text: 5000.0,
    };

    fn plan_of(documents: Option<f64>, bytes: u64, is_set: bool) -> Result<MemoryPlan> {
        plan_beside_batches(documents, bytes, is_set, 0)
    }

    fn plan_beside_batches(
        documents: Option<f64>,
        bytes: u64,
        is_set: bool,
        of_batches: u64,
    ) -> Result<MemoryPlan> {
        let limit = MemoryLimit {
            bytes,
            is_set,
            working_set: None,
        };
        let mut frame = PlanFrame::new(limit, 2, RunParts::default());
        frame.budget.decoding_bytes = of_batches;
        MemoryPlan::from_measures(documents, ARTICLE_BYTES, frame)
    }

    #[test]
    fn runs_go_out_of_core_only_where_they_must() {
        let free = plan_of(Some(1e6), 1 << 40, true).unwrap();
        assert!(!free.out_of_core && free.disk_bytes == 0);
        let needed = free.in_memory_bytes.unwrap();
        assert!(!plan_of(Some(1e6), needed, true).unwrap().out_of_core);
        let bounded = plan_of(Some(1e6), needed - 1, true).unwrap();
        assert!(bounded.out_of_core && bounded.disk_bytes > 0);
        assert!(bounded.resident_bytes < needed / 2);
    }

    #[test]
    fn passages_count_for_each_document_and_have_the_rest_of_the_limit() {
        let plan_for = |has_passages, bytes| {
            let limit = MemoryLimit {
                bytes,
                is_set: true,
                working_set: None,
            };
            let parts = RunParts {
                has_passages,
                ..RunParts::default()
            };
            MemoryPlan::from_measures(Some(1e6), ARTICLE_BYTES, PlanFrame::new(limit, 2, parts))
        };
        let plain = plan_for(false, 1 << 40).unwrap();
        let beside = plan_for(true, 1 << 40).unwrap();
        let resident = with_reserve(1e6 * repeated_text_plan::RESIDENT_BYTES_PER_DOCUMENT);
        let more = beside.smallest_limit_bytes - plain.smallest_limit_bytes;
        assert!(more.abs_diff(resident) <= 2, "{more} {resident}");
        assert!(plain.passages.is_none() && beside.passages == Some(RepeatedTextCoefficients::ALL));
        let most = beside.in_memory_bytes.unwrap();
        let in_memory = plan_for(true, most).unwrap();
        assert!(!in_memory.out_of_core);
        assert_eq!(
            in_memory.bytes_for_passages(),
            repeated_text_plan::MIN_WORKING_BYTES
        );
        let out_of_core = plan_for(true, most - 1).unwrap();
        let disk = 1e6 * 5000.0 * repeated_text_plan::DISK_BYTES_PER_TEXT_BYTE;
        let without = 1e6 * ARTICLE_BYTES.on_disk(RunParts::default());
        assert_eq!(out_of_core.disk_bytes, (without + disk) as u64);
    }

    #[test]
    fn large_record_batches_count() {
        let batches = 500_000_000;
        let plain = plan_of(Some(1e6), 1 << 40, true).unwrap();
        let beside = plan_beside_batches(Some(1e6), 1 << 40, true, batches).unwrap();
        assert_eq!(
            beside.smallest_limit_bytes,
            plain.smallest_limit_bytes + batches
        );
        assert_eq!(beside.resident_bytes, plain.resident_bytes + batches);
        let limit = beside.smallest_limit_bytes - 1;
        let error = plan_beside_batches(Some(1e6), limit, true, batches).unwrap_err();
        let named = "every run and the 500 MB of the largest record batches of an Arrow file: give";
        assert!(error.to_string().contains(named), "{error}");
    }

    #[test]
    fn the_smallest_limit_is_accepted_and_one_byte_less_is_not() {
        let smallest = plan_of(Some(1e6), 1 << 40, true)
            .unwrap()
            .smallest_limit_bytes;
        assert!(plan_of(Some(1e6), smallest, true).unwrap().out_of_core);
        let error = plan_of(Some(1e6), smallest - 1, true)
            .unwrap_err()
            .to_string();
        assert!(error.contains("1000000 documents"), "{error}");
        assert!(
            error.contains(&format!("give {} MB", smallest.div_ceil(1_000_000))),
            "{error}"
        );
    }

    #[test]
    fn rows_beyond_the_limit_are_refused_while_they_are_read() {
        let shares = plan_of(None, 1 << 30, true).unwrap().run_shares().unwrap();
        let most = shares.rows.most_bytes;
        assert!(most > (1 << 29) && shares.check_rows(0, most).is_ok());
        let error = shares.check_rows(0, most + 1).unwrap_err().to_string();
        assert!(error.contains("a limit of 1073 MB"), "{error}");
        assert!(shares.check_rows(most as usize / 20, 0).is_err());
    }

    #[test]
    fn a_component_that_does_not_fit_is_refused_with_the_limit_that_would_do() {
        let shares = plan_of(Some(1e6), 1 << 29, true)
            .unwrap()
            .run_shares()
            .unwrap();
        let documents = (shares.largest_group_bytes / 500) as u32;
        let error = shares.refuse_component(documents + 2000, 500).to_string();
        assert!(error.contains("give a limit of 539 MB"), "{error}");
    }

    #[test]
    fn inputs_of_unknown_size_go_out_of_core_under_a_limit_that_was_set() {
        assert!(plan_of(None, 1 << 30, true).unwrap().out_of_core);
        assert!(!plan_of(None, 1 << 30, false).unwrap().out_of_core);
    }
}
