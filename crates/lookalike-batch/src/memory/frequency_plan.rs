//! The memory of a run that learns document frequencies: its limit, and the shares of its tables.
//!
//! Terms are counted in tables. When these reach their share of the limit, the counts of some terms go to temporary
//! files, so a run needs no estimate to keep its limit. The plan that users see estimates the number of different terms
//! from the first blocks of the inputs (`run::commands::idf::memory_measuring`).

use std::collections::HashSet;
use std::path::Path;

use lookalike_io::error::{Error, Result, display_path};
use serde::Serialize;

use crate::memory::{MemoryBudget, MemoryLimit};

/// Bytes of buffers for each thread: blocks of rows, and terms that are not yet counted.
const THREAD_BYTES: u64 = 48 << 20;

/// Fewest bytes for counts and spellings.
const MIN_WORKING_BYTES: u64 = 64 << 20;

/// Bytes of memory that a term takes at the end of a run in memory beside its counts and spelling.
const FINISHED_TERM_BYTES: u64 = 32;
const FINISHED_SPELLING_BYTES: u64 = 220;

/// Bytes of memory of a counted term on average, and with its spelling on every thread.
const COUNTED_TERM_BYTES: f64 = 21.0;
const SPELLED_TERM_BYTES: f64 = 100.0;

/// Bytes of memory for each byte of a table to merge that is kept in memory.
const MEMORY_PER_MERGED_BYTE: u64 = 12;

/// Bytes of temporary files of a counted term, of a spelled one, and of a row of the table, beside its spelling.
const DISK_BYTES_PER_COUNT: f64 = 11.0;
const DISK_BYTES_PER_ROW: f64 = 12.0;

/// The shares of a run of its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrequencyShares {
    /// Bytes for everything that grows with the inputs.
    working: u64,
    /// `true` if everything goes to temporary files at the end, whether it would fit or not.
    is_always_spilled: bool,
    threads: usize,
}

impl FrequencyShares {
    /// Divides a limit; without one, everything stays in memory.
    ///
    /// # Errors
    /// If the limit is too small for any run.
    pub(crate) fn new(limit: Option<MemoryLimit>, threads: usize) -> Result<Self> {
        let Some(limit) = limit else {
            return Ok(Self {
                working: u64::MAX,
                is_always_spilled: false,
                threads,
            });
        };
        check_limit(limit.bytes, threads)?;
        let left = (limit.bytes - budget_of_run(threads).fixed_bytes()) / 8 * 7;
        Ok(Self {
            working: limit.working_set.unwrap_or(left),
            is_always_spilled: limit.working_set.is_some(),
            threads,
        })
    }

    /// Returns the bytes of all tables of counts.
    pub(crate) fn table_bytes(self) -> u64 {
        self.working / 2
    }

    /// Returns the bytes of the spellings of a thread.
    pub(crate) fn spelling_bytes(self) -> u64 {
        self.working / 4 / self.threads as u64
    }

    /// Returns the bytes of the rows that a thread collects.
    pub(crate) fn collected_bytes(self) -> usize {
        (self.working / 2 / self.threads as u64) as usize
    }

    /// Returns the bytes of the buffers by which a thread reads sorted runs.
    pub(crate) fn merged_bytes(self) -> usize {
        (self.working / 8 / self.threads as u64) as usize
    }

    /// Returns the bytes of the buffers by which the only thread reads sorted runs.
    pub(crate) fn merged_alone_bytes(self) -> usize {
        (self.working / 4) as usize
    }

    /// Returns `true` if a run that has counted `terms` terms can finish in memory.
    pub(crate) fn fits(self, terms: u64, counted_bytes: u64, has_spellings: bool) -> bool {
        let of_term = if has_spellings {
            FINISHED_SPELLING_BYTES
        } else {
            FINISHED_TERM_BYTES
        };
        !self.is_always_spilled && counted_bytes + of_term * terms <= self.working
    }

    /// Returns `true` if tables to merge are kept in memory.
    pub(crate) fn keeps_tables(self, tables: &[impl AsRef<Path>]) -> Result<bool> {
        let bytes = file_bytes(tables)?;
        Ok(tables.is_empty()
            || !self.is_always_spilled && MEMORY_PER_MERGED_BYTE * bytes <= self.working / 4)
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

fn check_limit(bytes: u64, threads: usize) -> Result<()> {
    let smallest = budget_of_run(threads).smallest_limit(0);
    if bytes >= smallest {
        return Ok(());
    }
    Err(Error::usage_error(format!(
        "{} MB of memory are too little for a run on {threads} {}: give {} MB or more",
        bytes / 1_000_000,
        if threads == 1 { "thread" } else { "threads" },
        smallest.div_ceil(1_000_000)
    )))
}

fn file_bytes(tables: &[impl AsRef<Path>]) -> Result<u64> {
    let mut bytes = 0;
    for table in tables {
        let path = table.as_ref();
        let metadata = std::fs::metadata(path)
            .map_err(|cause| Error::read_error("read", display_path(path), cause))?;
        bytes += metadata.len();
    }
    Ok(bytes)
}

/// The memory and disk that a run is expected to take.
#[derive(Debug, Clone, Serialize)]
pub struct IdfPlan {
    /// Expected number of documents; `None` if the size of the inputs is not known.
    pub documents: Option<u64>,
    /// Expected number of different terms, if that of documents is known.
    pub terms: Option<u64>,
    /// Limit on the memory of the process, in bytes.
    pub limit_bytes: u64,
    /// Expected bytes of memory of a run that keeps everything in memory.
    pub in_memory_bytes: Option<u64>,
    /// `true` if counts are expected to go to temporary files.
    pub out_of_core: bool,
    /// Expected bytes of temporary files; 0 if everything stays in memory.
    pub disk_bytes: u64,
    /// Smallest limit, in bytes, with which the run would be accepted.
    pub smallest_limit_bytes: u64,
}

/// Terms of the first documents of the inputs.
#[derive(Debug, Default)]
pub(crate) struct MeasuredTerms {
    pub(crate) documents: u64,
    /// Terms of all documents, each once in a document.
    pub(crate) occurrences: u64,
    pub(crate) distinct: HashSet<u64>,
    /// Numbers of documents and of distinct terms after the last block that ends within the first half of the documents.
    pub(crate) half: (u64, usize),
    /// Bytes of the spellings of all distinct terms.
    pub(crate) spelling_bytes: u64,
}

impl IdfPlan {
    /// Returns a plan without estimates.
    ///
    /// # Errors
    /// If the limit is too small for any run.
    pub(crate) fn new(limit: MemoryLimit, threads: usize) -> Result<Self> {
        check_limit(limit.bytes, threads)?;
        Ok(Self {
            documents: None,
            terms: None,
            limit_bytes: limit.bytes,
            in_memory_bytes: None,
            out_of_core: false,
            disk_bytes: 0,
            smallest_limit_bytes: budget_of_run(threads).smallest_limit(0),
        })
    }

    /// Estimates the run from measured terms. `packed` says whether a term is counted without its spelling.
    pub(crate) fn estimate(
        &mut self,
        measured: &MeasuredTerms,
        documents: f64,
        threads: usize,
        packed: bool,
    ) {
        let grown = (documents / measured.documents.max(1) as f64).max(1.0);
        let terms = measured.distinct.len() as f64 * grown.powf(measured.growth());
        let occurrences = measured.occurrences as f64 * grown;
        let spelling = measured.spelling_bytes as f64 / measured.distinct.len().max(1) as f64;
        let of_term = if packed {
            COUNTED_TERM_BYTES + FINISHED_TERM_BYTES as f64
        } else {
            let on_threads = (SPELLED_TERM_BYTES + spelling) * threads as f64;
            COUNTED_TERM_BYTES + on_threads + FINISHED_SPELLING_BYTES as f64
        };
        let in_memory = budget_of_run(threads).fixed_bytes() as f64 + terms * of_term;
        self.documents = Some(documents.round() as u64);
        self.terms = Some(terms as u64);
        self.in_memory_bytes = Some(in_memory as u64);
        self.out_of_core = in_memory > self.limit_bytes as f64;
        if self.out_of_core {
            // A term may be written once for each of its occurrences, but most occurrences are of frequent terms.
            let written = (2.0 * terms).min(occurrences).max(terms);
            let spelled = if packed {
                0.0
            } else {
                DISK_BYTES_PER_COUNT + spelling
            };
            let rows = terms * (DISK_BYTES_PER_ROW + spelling);
            self.disk_bytes = (written * (DISK_BYTES_PER_COUNT + spelled) + rows) as u64;
        }
    }
}

impl MeasuredTerms {
    /// Returns the power of the number of documents with which the number of different terms grows (Heaps' law).
    fn growth(&self) -> f64 {
        let (documents, distinct) = self.half;
        if documents == 0 || distinct == 0 || documents == self.documents {
            return 0.7;
        }
        let terms = (self.distinct.len() as f64 / distinct as f64).ln();
        let grown = (self.documents as f64 / documents as f64).ln();
        (terms / grown).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(bytes: u64) -> Option<MemoryLimit> {
        Some(MemoryLimit {
            bytes,
            is_set: true,
            working_set: None,
        })
    }

    #[test]
    fn the_named_smallest_limit_works() {
        for threads in [1, 2, 64] {
            let smallest = budget_of_run(threads).smallest_limit(0);
            let shares = FrequencyShares::new(limit(smallest), threads).unwrap();
            assert!(shares.table_bytes() >= 24 << 20);
            let error = FrequencyShares::new(limit(smallest - 1), threads).unwrap_err();
            let named = format!("give {} MB or more", smallest.div_ceil(1_000_000));
            assert!(error.to_string().contains(&named), "{error}");
        }
    }

    #[test]
    fn shares_of_the_memory_stay_within_it() {
        let shares = FrequencyShares::new(limit(1 << 30), 4).unwrap();
        let counting = shares.table_bytes() + 4 * shares.spelling_bytes();
        let merging = 4 * (shares.collected_bytes() + shares.merged_bytes()) as u64;
        for share in [counting, merging, shares.merged_alone_bytes() as u64] {
            assert!(share <= (1 << 30) / 8 * 7 - budget_of_run(4).fixed_bytes() / 8 * 7);
        }
        assert!(shares.fits(1000, 1000, true));
        assert!(!shares.fits(1 << 30, 0, false));
        assert!(
            FrequencyShares::new(None, 4)
                .unwrap()
                .fits(1 << 40, 1 << 50, true)
        );
    }
}
