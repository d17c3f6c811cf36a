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
    spill_space: Option<Arc<SpillSpace>>,
    /// Bytes of memory of the process; `None` if they are not limited, or if only the bytes of its working set are
    /// known.
    limit: Option<u64>,
    /// Bytes of memory of a row with an id.
    id_bytes: u64,
    /// Bytes reserved for ids and for rows without a fingerprint; `u64::MAX` if they are unbounded.
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

    /// Divides `working_bytes`, of which `column_bytes` are for kept columns. Ids are not bounded.
    pub(super) fn with_working_set(
        working_bytes: u64,
        column_bytes: u64,
        directory: &Path,
    ) -> Self {
        let shares = BuildShares::from_working_bytes(working_bytes, column_bytes);
        Self::from_shares(shares, directory)
    }

    fn from_shares(shares: BuildShares, directory: &Path) -> Self {
        let space = |bytes| Arc::new(SpillSpace::new(bytes, directory.to_path_buf()));
        Self {
            sorting: shares.sorting,
            spill_space: shares.column_bytes.map(space),
            limit: shares.limit_bytes,
            id_bytes: shares.id_bytes,
            resident: AtomicU64::new(shares.resident_bytes),
        }
    }

    /// Returns `true` if the memory of the process is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.spill_space.is_some()
    }

    /// Returns the bytes that went to temporary files.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.spill_space
            .as_ref()
            .map_or(0, |space| space.written_bytes())
    }

    /// Reserves memory for ids and for rows without a fingerprint. Both parameters are numbers of rows since the build
    /// began.
    ///
    /// # Errors
    /// If there is too little.
    pub(super) fn reserve_row_bytes(
        &self,
        named_so_far: u64,
        unfingerprinted_so_far: u64,
    ) -> Result<()> {
        let Some(space) = &self.spill_space else {
            return Ok(());
        };
        let needed_bytes =
            named_so_far * self.id_bytes + unfingerprinted_so_far * UNFINGERPRINTED_BYTES;
        let resident = self.resident.load(Ordering::Relaxed);
        if needed_bytes <= resident {
            return Ok(());
        }
        // Memory is taken in large amounts, because each row takes little.
        let more = (needed_bytes - resident).max(4 << 20);
        if space.take_bytes(more) {
            self.resident.fetch_add(more, Ordering::Relaxed);
            return Ok(());
        }
        // A quarter of the memory beside the fixed part is for ids if the number of rows is unknown.
        Err(Error::limit_error(format!(
            "{named_so_far} rows with ids and {unfingerprinted_so_far} without a fingerprint take {} MB, {}{}",
            needed_bytes.div_ceil(1_000_000),
            self.limit_advice(4 * needed_bytes),
            if named_so_far > 0 {
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
    pub(super) fn check_segment_fits(&self, bytes: u64) -> Result<()> {
        let Some(most) = self.sorting.most_bytes.filter(|&most| bytes > most as u64) else {
            return Ok(());
        };
        // Inverse of `BuildShares::from_limit`: 15/16 of the rest is working memory, half of it is for sorting.
        let missing = 2 * (bytes - most as u64) / 15 * 16 + (1 << 20);
        Err(Error::limit_error(format!(
            "merging the added rows with a segment before them takes {} MB at once, {}",
            bytes.div_ceil(1_000_000),
            self.limit_advice(missing)
        )))
    }

    /// Returns the end of a message about too little memory. It names no limit if only the working set is known,
    /// because the limit that the user gave has other parts.
    fn limit_advice(&self, missing_bytes: u64) -> String {
        match self.limit {
            Some(limit) => format!(
                "more than --memory {limit} leaves: give --memory {}M or more",
                (limit + missing_bytes).div_ceil(1_000_000)
            ),
            None => "more than the part of --memory for the index: give more --memory".to_owned(),
        }
    }

    /// Returns how postings are sorted.
    pub(super) fn posting_sort(&self) -> PostingSort {
        let most_sorted = match self.sorting.most_bytes {
            Some(most) => (most as u64 / 2 / size_of::<u64>() as u64).min(MAX_SORTED_POSTINGS),
            None => MAX_SORTED_POSTINGS,
        };
        PostingSort {
            most_sorted,
            space: self.spill_space.clone(),
        }
    }

    pub(super) fn new_buffer(&self) -> SpillBuffer {
        SpillBuffer::new(self.spill_space.clone())
    }

    /// Adds to an error of the engine about too little memory how the option divides it.
    pub(super) fn explain_limit(&self, error: lookalike::Error) -> Error {
        match self.sorting.most_bytes {
            None => error.into(),
            Some(_) => Error::limit_error(format!(
                "{error} (half of what --memory leaves beside threads and ids is for sorting)"
            )),
        }
    }

    pub(super) fn new_spool<C: FingerprintCode>(&self) -> FingerprintSpool<C> {
        FingerprintSpool::new(self.spill_space.clone())
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
        space.reserve_row_bytes(1_100_000, 0).unwrap();
        space.reserve_row_bytes(2_000_000, 0).unwrap();
        let error = space
            .reserve_row_bytes(5_000_000, 10)
            .unwrap_err()
            .to_string();
        let words = [
            "5000000 rows with ids",
            "take 201 MB",
            "--id-row",
            "or more",
        ];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        BuildSpace::default().reserve_row_bytes(1 << 40, 0).unwrap();
    }

    #[test]
    fn a_segment_that_does_not_fit_is_refused_with_the_limit_that_would_do() {
        let rows = rows(None, false);
        let new = |limit| BuildSpace::new(Some(limit), 2, Path::new("."), &rows).unwrap();
        let space = new(1 << 30);
        let bytes = space.sorting.most_bytes.unwrap() as u64;
        space.check_segment_fits(bytes).unwrap();
        let error = space.check_segment_fits(2 * bytes).unwrap_err().to_string();
        let named = error.split("give --memory ").nth(1).unwrap();
        let named = lookalike_options::units::parse_size(named.split(' ').next().unwrap()).unwrap();
        new(named).check_segment_fits(2 * bytes).unwrap();
        assert!(
            new(named - (4 << 20))
                .check_segment_fits(2 * bytes)
                .is_err()
        );
    }

    /// The working set is a part of the limit of a run, so no limit can be told from it.
    #[test]
    fn a_segment_beyond_a_working_set_is_refused_without_a_limit_to_give() {
        let space = BuildSpace::with_working_set(900_000_000, 450_000_000, Path::new("."));
        space.check_segment_fits(450_000_000).unwrap();
        let error = space.check_segment_fits(450_000_001).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("takes 451 MB at once"), "{error}");
        assert!(error.ends_with("give more --memory"), "{error}");
        space.reserve_row_bytes(1 << 40, 1 << 40).unwrap();
    }
}
