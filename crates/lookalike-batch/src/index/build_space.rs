//! The memory that building an index may take.
//!
//! ```text
//! process and threads    a constant, and a constant per thread: program, blocks of rows, buffers of files
//! kept                   fingerprints and columns of the index, the rest of which is in temporary files
//! slice                  fingerprints distributed by bucket, as many as fit at a time
//! sorting                as much as a slice, for fingerprints of which very many share a bucket
//! ```
//!
//! Without a limit everything is kept, and memory beyond the constants is that of the fingerprints, of the
//! columns that cannot be written at once (at most 10 bytes per fingerprint of 64 bits in common plans) and of a slice
//! of 2 GiB.

use std::path::Path;
use std::sync::Arc;

use lookalike::hamming::{BuildMemory, FingerprintCode};
use lookalike_io::error::{Error, Result};

use super::spill_buffer::{FingerprintSpool, SpillBuffer, SpillSpace};

/// Bytes that the process takes whatever it builds.
const PROCESS_BYTES: u64 = 64 << 20;

/// Bytes that a thread takes for reading and sorting.
const THREAD_BYTES: u64 = 32 << 20;

/// Smallest number of bytes for what is kept, a slice and sorting together.
const SMALLEST_WORK: u64 = 128 << 20;

/// Largest slice, and the slice of a build without a limit. More would save few passes over the fingerprints.
const LARGEST_SLICE: u64 = 2 << 30;

/// The places where a build keeps fingerprints and columns, and the bytes that it sorts at once.
#[derive(Debug)]
pub(super) struct BuildSpace {
    pub(super) sorting: BuildMemory,
    /// `None` if everything is kept in memory.
    kept: Option<Arc<SpillSpace>>,
}

impl Default for BuildSpace {
    /// A space without a limit.
    fn default() -> Self {
        Self {
            sorting: BuildMemory {
                slice_bytes: LARGEST_SLICE as usize,
                most_bytes: None,
            },
            kept: None,
        }
    }
}

impl BuildSpace {
    /// Divides the memory of a process. What does not fit goes to temporary files in `directory`.
    pub(super) fn new(limit: Option<u64>, threads: usize, directory: &Path) -> Result<Self> {
        let Some(limit) = limit else {
            return Ok(Self::default());
        };
        check_limit(limit, threads)?;
        // The allocator holds back some of what it was given.
        let work = (limit - fixed_bytes(threads)) / 16 * 15;
        let sorting = work / 2;
        let kept = SpillSpace::new(work - sorting, directory.to_path_buf());
        Ok(Self {
            sorting: BuildMemory {
                slice_bytes: (sorting / 2).min(LARGEST_SLICE) as usize,
                most_bytes: Some(sorting as usize),
            },
            kept: Some(Arc::new(kept)),
        })
    }

    /// Returns `true` if the memory of the process is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.kept.is_some()
    }

    pub(super) fn new_buffer(&self) -> SpillBuffer {
        SpillBuffer::new(self.kept.clone())
    }

    /// Adds to an error of the engine about too little memory how the option divides it.
    pub(super) fn explain_limit(&self, error: lookalike::Error) -> Error {
        match self.sorting.most_bytes {
            None => error.into(),
            Some(_) => Error::limit_error(format!(
                "{error} (of every two bytes of --memory, one is for sorting)"
            )),
        }
    }

    pub(super) fn new_spool<C: FingerprintCode>(&self) -> FingerprintSpool<C> {
        FingerprintSpool::new(self.kept.clone())
    }
}

fn fixed_bytes(threads: usize) -> u64 {
    PROCESS_BYTES + threads as u64 * THREAD_BYTES
}

/// Refuses a limit that no build keeps.
pub(super) fn check_limit(limit: u64, threads: usize) -> Result<()> {
    let smallest = fixed_bytes(threads) + SMALLEST_WORK;
    if limit >= smallest {
        return Ok(());
    }
    let threads = match threads {
        1 => "1 thread".to_owned(),
        _ => format!("{threads} threads"),
    };
    Err(Error::usage_error(format!(
        "--memory {limit} is not enough: building an index on {threads} takes at least {smallest} bytes: give \
         --memory {}Mi or more",
        smallest >> 20
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_smallest_limit_works() {
        for threads in [1, 2, 64] {
            let error = BuildSpace::new(Some(1), threads, Path::new(".")).unwrap_err();
            let text = error.to_string();
            let named = text.split("--memory ").nth(2).unwrap();
            let smallest = crate::units::parse_size(named.split(' ').next().unwrap()).unwrap();
            assert!(BuildSpace::new(Some(smallest - 1), threads, Path::new(".")).is_err());
            let space = BuildSpace::new(Some(smallest), threads, Path::new(".")).unwrap();
            let most = space.sorting.most_bytes.unwrap();
            assert!(space.sorting.slice_bytes * 2 <= most);
        }
    }
}
