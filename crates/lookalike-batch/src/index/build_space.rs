//! The places where a build keeps its data: memory as far as its [shares](BuildShares) go, then temporary files.
//!
//! All rows go to one segment whatever the limit is, so the files of the index do not depend on it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::hamming::{BuildMemory, FingerprintCode};
use lookalike_io::error::{Error, Result};

use crate::index::postings::{MAX_SORTED_POSTINGS, PostingSort};
use crate::index::spill_buffer::{FingerprintSpool, SpillBuffer, SpillSpace};
use crate::memory::build_plan::{BuildShares, ExpectedRows, UNFINGERPRINTED_BYTES};

/// The places where a build keeps fingerprints and columns, and the bytes that it sorts at once.
#[derive(Debug)]
pub(super) struct BuildSpace {
    pub(super) sorting: BuildMemory,
    /// `None` if everything is kept in memory.
    kept: Option<Arc<SpillSpace>>,
    /// Bytes of memory of the process; 0 without a limit.
    limit: u64,
    id_bytes: u64,
    /// Bytes that were taken for ids and for rows without a fingerprint.
    resident: AtomicU64,
}

impl Default for BuildSpace {
    /// A space without a limit.
    fn default() -> Self {
        Self::from_shares(BuildShares::unlimited(), Path::new(""))
    }
}

impl BuildSpace {
    /// Divides the memory of a process. Temporary files in `directory` take the rest.
    ///
    /// # Errors
    /// If the limit is too small for the rows.
    pub(super) fn new(
        limit: Option<u64>,
        threads: usize,
        directory: &Path,
        rows: &ExpectedRows,
    ) -> Result<Self> {
        let Some(limit) = limit else {
            return Ok(Self::default());
        };
        let shares = BuildShares::from_limit(limit, threads, rows)?;
        Ok(Self::from_shares(shares, directory))
    }

    /// Divides `work` bytes, of which `kept` are for kept columns. Ids are not bounded.
    pub(super) fn with_working_set(work: u64, kept: u64, directory: &Path) -> Self {
        Self::from_shares(BuildShares::from_working_bytes(work, kept), directory)
    }

    fn from_shares(shares: BuildShares, directory: &Path) -> Self {
        let space = |bytes| Arc::new(SpillSpace::new(bytes, directory.to_path_buf()));
        Self {
            sorting: shares.sorting,
            kept: shares.kept_bytes.map(space),
            limit: shares.limit_bytes,
            id_bytes: shares.id_bytes,
            resident: AtomicU64::new(shares.resident_bytes),
        }
    }

    /// Returns `true` if the memory of the process is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns the bytes that went to temporary files.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.written_bytes())
    }

    /// Takes memory for `named` rows with ids and `unfingerprinted` rows without a fingerprint, the numbers so far.
    ///
    /// # Errors
    /// If there is too little.
    pub(super) fn keep_rows(&self, named: u64, unfingerprinted: u64) -> Result<()> {
        let Some(kept) = &self.kept else {
            return Ok(());
        };
        let needed_bytes = named * self.id_bytes + unfingerprinted * UNFINGERPRINTED_BYTES;
        let resident = self.resident.load(Ordering::Relaxed);
        if needed_bytes <= resident {
            return Ok(());
        }
        // Memory is taken in large amounts, because each row takes little.
        let more = (needed_bytes - resident).max(4 << 20);
        if kept.take_bytes(more) {
            self.resident.fetch_add(more, Ordering::Relaxed);
            return Ok(());
        }
        Err(Error::limit_error(format!(
            "{named} rows with ids and {unfingerprinted} without a fingerprint take {} MB, more than --memory {} leaves \
             for them: give --memory {}M or more{}",
            needed_bytes.div_ceil(1_000_000),
            self.limit,
            (self.limit + 4 * needed_bytes).div_ceil(1_000_000),
            if named > 0 {
                ", or number the rows with --id-row"
            } else {
                ""
            }
        )))
    }

    /// Refuses a segment if its Hamming index and fingerprints do not fit into the memory for sorting while they are
    /// copied.
    ///
    /// # Errors
    /// If they do not fit.
    pub(super) fn check_opened_segment(&self, bytes: u64) -> Result<()> {
        let Some(most) = self.sorting.most_bytes.filter(|&most| bytes > most as u64) else {
            return Ok(());
        };
        let missing = 2 * (bytes - most as u64) / 15 * 16 + (1 << 20);
        Err(Error::limit_error(format!(
            "merging the added rows with a segment before them takes {} MB at once, more than --memory {} leaves: give \
             --memory {}M or more",
            bytes.div_ceil(1_000_000),
            self.limit,
            (self.limit + missing).div_ceil(1_000_000)
        )))
    }

    /// Returns how postings are sorted.
    pub(super) fn posting_sort(&self) -> PostingSort {
        let most_sorted = match self.sorting.most_bytes {
            Some(most) => (most as u64 / 2 / size_of::<u64>() as u64).min(MAX_SORTED_POSTINGS),
            None => MAX_SORTED_POSTINGS,
        };
        PostingSort {
            most_sorted,
            space: self.kept.clone(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::build_plan::smallest_limit;

    fn rows(documents: Option<f64>, have_ids: bool) -> ExpectedRows {
        ExpectedRows {
            documents,
            have_ids,
            are_documents: have_ids,
            are_added: false,
        }
    }

    #[test]
    fn the_named_smallest_limit_works() {
        for threads in [1, 2, 64] {
            for rows in [
                rows(None, false),
                rows(Some(5e6), true),
                rows(Some(5e6), false),
            ] {
                let new = |limit| BuildSpace::new(Some(limit), threads, Path::new("."), &rows);
                let text = new(1).unwrap_err().to_string();
                let named = text.split("--memory ").nth(2).unwrap();
                let named =
                    lookalike_options::units::parse_size(named.split(' ').next().unwrap()).unwrap();
                let smallest = smallest_limit(threads, &rows);
                assert!(named >= smallest && named < smallest + (1 << 20), "{text}");
                assert!(new(smallest - 1).is_err());
                let space = new(smallest).unwrap();
                let most = space.sorting.most_bytes.unwrap();
                assert!(space.sorting.slice_bytes * 2 <= most);
                assert!(space.posting_sort().most_sorted * 16 <= most as u64);
            }
        }
    }

    #[test]
    fn rows_beyond_the_estimate_are_refused_when_nothing_is_left() {
        let limit = smallest_limit(2, &rows(Some(1e6), true));
        let space =
            BuildSpace::new(Some(limit), 2, Path::new("."), &rows(Some(1e6), true)).unwrap();
        space.keep_rows(1_100_000, 0).unwrap();
        space.keep_rows(2_000_000, 0).unwrap();
        let error = space.keep_rows(5_000_000, 10).unwrap_err().to_string();
        let words = [
            "5000000 rows with ids",
            "take 201 MB",
            "--id-row",
            "or more",
        ];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        BuildSpace::default().keep_rows(1 << 40, 0).unwrap();
    }

    #[test]
    fn a_segment_that_does_not_fit_is_refused_with_the_limit_that_would_do() {
        let rows = rows(None, false);
        let new = |limit| BuildSpace::new(Some(limit), 2, Path::new("."), &rows).unwrap();
        let space = new(1 << 30);
        let bytes = space.sorting.most_bytes.unwrap() as u64;
        space.check_opened_segment(bytes).unwrap();
        let error = space
            .check_opened_segment(2 * bytes)
            .unwrap_err()
            .to_string();
        let named = error.split("give --memory ").nth(1).unwrap();
        let named = lookalike_options::units::parse_size(named.split(' ').next().unwrap()).unwrap();
        new(named).check_opened_segment(2 * bytes).unwrap();
        assert!(
            new(named - (4 << 20))
                .check_opened_segment(2 * bytes)
                .is_err()
        );
    }
}
