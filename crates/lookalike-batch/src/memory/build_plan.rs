//! The memory of building an index: how many rows are expected, which limit they need, and the shares of a limit.
//!
//! ```text
//! process and threads    a constant, and a constant per thread: program, blocks of rows, buffers of files
//! ids                    a constant for each row that has one, because repeated ids are found in memory
//! kept                   fingerprints, grams and columns of the index, the rest of which is in temporary files
//! slice                  fingerprints distributed by bucket, as many as fit at a time
//! sorting                as much as a slice, for fingerprints of which very many share a bucket; later for
//!                        postings, and before for a segment that is merged
//! ```
//!
//! Without a limit everything is kept. Beyond the constants, memory is then that of the fingerprints, of a slice of
//! 2 GiB, and of the columns that cannot be written at once. These columns take at most 10 bytes per fingerprint of
//! 64 bits in common plans.

use lookalike::hamming::BuildMemory;
use lookalike_io::error::{Error, Result};
use serde::Serialize;

use crate::memory::{MemoryBudget, with_reserve};

/// Bytes that a thread takes for reading and sorting bare fingerprints, and for reading and recording documents.
const THREAD_BYTES: u64 = 32 << 20;
const DOCUMENT_THREAD_BYTES: u64 = 64 << 20;

/// Bytes of memory of a row with an id in a new index, of a row with an id that is added to an index, and of a row
/// without a fingerprint. Ids that are added are compared with the ids of the index.
const ID_BYTES: u64 = 40;
const ADDED_ID_BYTES: u64 = 80;
pub(crate) const UNFINGERPRINTED_BYTES: u64 = 80;

/// Smallest number of bytes for what is kept, a slice and sorting together.
const MIN_WORKING_BYTES: u64 = 128 << 20;

/// Largest slice, and the slice of a build without a limit. More would save few passes over the fingerprints.
const MAX_SLICE_BYTES: u64 = 2 << 30;

/// The rows that a build expects.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExpectedRows {
    /// Number of rows, if it is known before they are read.
    pub(crate) documents: Option<f64>,
    /// `true` if the rows have ids.
    pub(crate) have_ids: bool,
    /// `true` if the rows are documents, `false` if they are bare fingerprints.
    pub(crate) are_documents: bool,
    /// `true` if the index has other rows.
    pub(crate) are_added: bool,
}

/// The memory that a build takes.
#[derive(Debug, Clone, Serialize)]
pub struct BuildPlan {
    /// Expected number of rows; `None` if it is not known before they are read.
    pub documents: Option<u64>,
    /// Limit on the memory of the process, in bytes; `None` without one.
    pub limit_bytes: Option<u64>,
    /// Expected bytes that stay in memory for ids.
    pub resident_bytes: u64,
    /// Smallest limit, in bytes, with which the build would be accepted.
    pub smallest_limit_bytes: u64,
}

impl BuildPlan {
    /// Plans a build of these rows.
    pub(crate) fn from_rows(rows: &ExpectedRows, threads: usize, limit_bytes: Option<u64>) -> Self {
        Self {
            documents: rows.documents.map(|count| count.round() as u64),
            limit_bytes,
            resident_bytes: resident_bytes(rows),
            smallest_limit_bytes: smallest_limit(threads, rows),
        }
    }
}

/// The shares of a build of its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuildShares {
    /// Slice and sorting.
    pub(crate) sorting: BuildMemory,
    /// Bytes for kept fingerprints, grams and columns; `None` if everything is kept.
    pub(crate) column_bytes: Option<u64>,
    /// Bytes of memory of the process; `None` if they are not limited, or if only the bytes of its working set are
    /// known.
    pub(crate) limit_bytes: Option<u64>,
    /// Bytes of memory of a row with an id.
    pub(crate) id_bytes: u64,
    /// Bytes reserved for ids and for rows without a fingerprint; `u64::MAX` if they are unbounded.
    pub(crate) resident_bytes: u64,
}

impl BuildShares {
    /// Returns the shares of a build without a limit.
    pub(crate) fn unlimited() -> Self {
        Self {
            sorting: BuildMemory {
                slice_bytes: MAX_SLICE_BYTES as usize,
                most_bytes: None,
            },
            column_bytes: None,
            limit_bytes: None,
            id_bytes: ADDED_ID_BYTES,
            resident_bytes: 0,
        }
    }

    /// Divides the memory of a process.
    ///
    /// # Errors
    /// If the limit is too small for the rows.
    pub(crate) fn from_limit(limit: u64, threads: usize, rows: &ExpectedRows) -> Result<Self> {
        check_limit(limit, threads, rows)?;
        // The allocator keeps a part of the memory that was freed.
        let resident = resident_bytes(rows);
        let working_bytes =
            (limit - budget_of_build(threads, rows).fixed_bytes() - resident) / 16 * 15;
        // Rows of unknown number may have ids.
        let for_ids = match rows.documents {
            Some(_) => 0,
            None => working_bytes / 4,
        };
        Ok(Self {
            limit_bytes: Some(limit),
            id_bytes: bytes_of_id(rows),
            resident_bytes: resident + for_ids,
            ..Self::from_working_bytes(working_bytes, working_bytes / 2 - for_ids)
        })
    }

    /// Divides `working_bytes`, of which `column_bytes` are for what is kept. Ids are not bounded.
    pub(crate) fn from_working_bytes(working_bytes: u64, column_bytes: u64) -> Self {
        let sorting = working_bytes / 2;
        Self {
            sorting: BuildMemory {
                slice_bytes: (sorting / 2).min(MAX_SLICE_BYTES) as usize,
                most_bytes: Some(sorting as usize),
            },
            column_bytes: Some(column_bytes),
            limit_bytes: None,
            id_bytes: ID_BYTES,
            resident_bytes: u64::MAX,
        }
    }
}

fn budget_of_build(threads: usize, rows: &ExpectedRows) -> MemoryBudget {
    MemoryBudget {
        threads,
        thread_bytes: if rows.are_documents {
            DOCUMENT_THREAD_BYTES
        } else {
            THREAD_BYTES
        },
        decoding_bytes: 0,
        least_working_bytes: MIN_WORKING_BYTES,
    }
}

fn bytes_of_id(rows: &ExpectedRows) -> u64 {
    if rows.are_added {
        ADDED_ID_BYTES
    } else {
        ID_BYTES
    }
}

/// Returns the bytes that stay in memory for ids.
pub(crate) fn resident_bytes(rows: &ExpectedRows) -> u64 {
    match (rows.documents, rows.have_ids) {
        (Some(documents), true) => with_reserve(documents) * bytes_of_id(rows),
        _ => 0,
    }
}

/// Returns the smallest limit of a build.
pub(crate) fn smallest_limit(threads: usize, rows: &ExpectedRows) -> u64 {
    budget_of_build(threads, rows).smallest_limit(resident_bytes(rows))
}

/// Refuses a limit that no build keeps.
fn check_limit(limit: u64, threads: usize, rows: &ExpectedRows) -> Result<()> {
    let smallest = smallest_limit(threads, rows);
    if limit >= smallest {
        return Ok(());
    }
    let of_rows = match (rows.documents, rows.have_ids) {
        (Some(documents), true) => format!(" of {} rows with ids", documents.round()),
        _ => String::new(),
    };
    let threads = match threads {
        1 => "1 thread".to_owned(),
        _ => format!("{threads} threads"),
    };
    Err(Error::usage_error(format!(
        "--memory {limit} is not enough: building an index{of_rows} on {threads} takes at least {smallest} bytes: give \
         --memory {}Mi or more",
        smallest.div_ceil(1 << 20)
    )))
}
