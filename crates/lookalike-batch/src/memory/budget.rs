//! The part of a memory limit that is left for the documents of a run.
//!
//! ```text
//! fixed       PROCESS_BYTES, bytes for each thread, and what decoding the inputs takes
//! resident    bytes for each row, which stay in memory in any case; with a reserve, because they are estimated
//! working     the rest: keys, grams, counts. Temporary files take those that do not fit
//! ```
//!
//! Each kind of run states its coefficients here: bytes for each thread, and the fewest bytes with which it can work.

use lookalike_io::error::{Error, Result};

/// Bytes that every run takes: the program, dictionaries, buffers of files.
pub(crate) const PROCESS_BYTES: u64 = 64 << 20;

/// Bytes that stay in memory for each document beside its row where passages are searched: for example the search for
/// repeated ids.
pub(crate) const BYTES_BESIDE_ROW: f64 = 32.0;

/// Factor by which the real memory may exceed an estimate.
const ESTIMATE_RESERVE: f64 = 1.15;

/// Returns estimated bytes (or rows) with a reserve for the error of the estimate.
pub(crate) fn with_reserve(estimate: f64) -> u64 {
    (ESTIMATE_RESERVE * estimate) as u64
}

/// The coefficients of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryBudget {
    /// Number of threads, from 1.
    pub(crate) threads: usize,
    /// Bytes of buffers for each thread.
    pub(crate) thread_bytes: u64,
    /// Bytes of the largest record batches of an Arrow file while they are decoded.
    pub(crate) decoding_bytes: u64,
    /// Fewest bytes for what grows with the inputs.
    pub(crate) least_working_bytes: u64,
}

impl MemoryBudget {
    /// Returns the bytes that do not depend on the number of documents.
    pub(crate) fn fixed_bytes(self) -> u64 {
        PROCESS_BYTES + self.threads as u64 * self.thread_bytes + self.decoding_bytes
    }

    /// Returns the smallest limit of a run with these resident bytes.
    pub(crate) fn smallest_limit(self, resident_bytes: u64) -> u64 {
        self.fixed_bytes() + resident_bytes + self.least_working_bytes
    }

    /// Returns the error for a limit that is too small for the rows of the inputs. `documents` is their expected number, if it is
    /// known, and `smallest_limit` the limit that would do.
    pub(crate) fn limit_error(
        self,
        limit_bytes: u64,
        documents: Option<f64>,
        row_bytes: u64,
        smallest_limit: u64,
    ) -> Error {
        let of_documents = match documents {
            Some(count) => format!(
                "{} documents, whose rows take {} MB",
                count.round(),
                row_bytes.div_ceil(1_000_000)
            ),
            None => "inputs of unknown size, whose rows come".to_owned(),
        };
        let reading = match self.decoding_bytes {
            0 => String::new(),
            bytes => format!(
                " and the {} MB of the largest record batches of an Arrow file",
                bytes.div_ceil(1_000_000)
            ),
        };
        Error::usage_error(format!(
            "{} MB of memory are too little for {of_documents} beside the {} MB of every run{reading}: give {} MB \
             or more",
            limit_bytes / 1_000_000,
            (self.fixed_bytes() - self.decoding_bytes).div_ceil(1_000_000),
            smallest_limit.div_ceil(1_000_000)
        ))
    }
}

/// The bytes that the rows of a run may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowBudget {
    /// Limit on the memory of the process.
    pub(crate) limit_bytes: u64,
    /// Most bytes of all rows.
    pub(crate) most_bytes: u64,
    /// Bytes that stay in memory for each document beside its row.
    pub(crate) beside_row: f64,
}

impl RowBudget {
    /// Returns the bytes that `documents` documents take if their rows take `row_bytes`.
    pub(crate) fn resident_bytes(self, documents: usize, row_bytes: u64) -> u64 {
        row_bytes + (self.beside_row * documents as f64) as u64
    }

    /// Refuses rows that take more memory than the limit leaves for them, because inputs were larger than expected.
    ///
    /// # Errors
    /// If `row_bytes`, of `documents` rows read so far, are too many.
    pub(crate) fn check_rows(self, documents: usize, row_bytes: u64) -> Result<()> {
        let bytes = self.resident_bytes(documents, row_bytes);
        if bytes <= self.most_bytes {
            return Ok(());
        }
        Err(Error::limit_error(format!(
            "the places and ids of {documents} rows take {} MB, more than a limit of {} MB leaves for them: give \
             a higher one",
            bytes.div_ceil(1_000_000),
            self.limit_bytes / 1_000_000
        )))
    }
}
