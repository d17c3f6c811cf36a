//! Bucket keys of a segment: finds the rows that have a key without reading the other rows.
//!
//! ```text
//! postings    8 bytes each, ascending: upper 32 bits of the key, then the row (32 bits)
//! directory   2^d + 1 positions (8 bytes each): start of the postings for each value of the upper d key bits
//! count       number of postings (8 bytes)
//! d           8 bytes
//! ```
//!
//! Guarantee: every row that has a key is found under it. Rows whose key differs but has the same upper
//! half are also found; this happens with a probability of 2⁻³² per posting, and the comparison rejects
//! them.
//!
//! Cost: 8 bytes per posting, and for the directory about half a byte per posting at most. A look-up
//! reads one entry of the directory and searches some 16 postings, in pages that are verified on their
//! first use.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use lookalike::hamming::ColumnBuffer;
use lookalike_io::error::{Error, Result, display_path};
use rayon::slice::ParallelSliceMut;

use crate::index::build_space::BuildSpace;
use crate::index::paged::{
    FileMagic, MIN_RECENT_PAGES, PagedFile, PagedWriter, damaged_file, to_array,
};
use crate::index::spill_buffer::{SpillBuffer, SpillSpace};
use crate::sealed_manifest::FileChecksum;
use crate::temporary::sorted_runs::SortedRuns;

const POSTINGS_MAGIC: FileMagic = *b"LAbk";

/// Bytes of a posting or a position.
const NUMBER_BYTES: u64 = 8;

/// Postings per directory entry that are aimed at.
const POSTINGS_PER_ENTRY: u64 = 16;

/// Postings sorted at a time without a limit of memory: 256 MiB.
pub(super) const MAX_SORTED_POSTINGS: u64 = 1 << 25;

/// Postings read at a time.
const POSTINGS_READ_AT_ONCE: u64 = 4096;

/// Returns the posting of a row under a key.
pub(super) fn pack_posting(key: u64, row: u32) -> u64 {
    key >> 32 << 32 | u64::from(row)
}

/// The postings of a segment.
pub(super) struct PostingList {
    file: PagedFile,
    count: u64,
    /// Upper bits of a key that select an entry of the directory.
    bits: u32,
}

/// The way in which postings are sorted.
#[derive(Debug, Clone)]
pub(super) struct PostingSort {
    /// Largest number of postings that are sorted in memory at a time, from 1.
    pub(super) most_sorted: u64,
    /// The space of further postings: sorted runs in a temporary file. `None` if they are produced in several passes.
    pub(super) space: Option<Arc<SpillSpace>>,
}

impl Default for PostingSort {
    fn default() -> Self {
        Self {
            most_sorted: MAX_SORTED_POSTINGS,
            space: None,
        }
    }
}

/// Calls a function with every posting.
type VisitPostings<'a> = dyn FnMut(&mut dyn FnMut(u64)) -> Result<()> + 'a;

impl PostingSort {
    /// Calls `put` with all postings in ascending order. `visit_all` is called once per pass and must produce the
    /// same postings each time.
    fn visit_sorted(
        &self,
        count: u64,
        visit_all: &mut VisitPostings<'_>,
        mut put: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        match &self.space {
            Some(space) if count > self.most_sorted => self.merge_runs(space, visit_all, &mut put),
            _ => self.sort_in_passes(count, visit_all, &mut put),
        }
    }

    fn sort_in_passes(
        &self,
        count: u64,
        visit_all: &mut VisitPostings<'_>,
        put: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let passes = count.div_ceil(self.most_sorted).next_power_of_two().max(1);
        let pass_of = |posting: u64| (u128::from(posting) * u128::from(passes)) >> 64;
        let mut sorted = Vec::new();
        for pass in 0..passes {
            sorted.clear();
            visit_all(&mut |posting| {
                if passes == 1 || pass_of(posting) == u128::from(pass) {
                    sorted.push(posting);
                }
            })?;
            sorted.par_sort_unstable();
            sorted.iter().try_for_each(|&posting| put(posting))?;
        }
        Ok(())
    }

    fn merge_runs(
        &self,
        space: &SpillSpace,
        visit_all: &mut VisitPostings<'_>,
        put: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let runs = SortedRuns::with_parts(Some(space.directory().to_path_buf()), 1);
        let most = self.most_sorted as usize;
        let mut sorted = Vec::with_capacity(most);
        let mut written = Ok(());
        visit_all(&mut |posting| {
            sorted.push(posting);
            if sorted.len() == most && written.is_ok() {
                written = write_run(&mut sorted, &runs);
            }
            // After an error nothing is kept.
            sorted.truncate(most - 1);
        })?;
        written?;
        write_run(&mut sorted, &runs)?;
        drop(sorted);
        runs.merge_part(0, most * NUMBER_BYTES as usize / 2, |key, _| {
            put(u64::from_be_bytes(to_array(key)))
        })?;
        space.count_written(runs.written_bytes());
        Ok(())
    }
}

fn write_run(sorted: &mut Vec<u64>, runs: &SortedRuns) -> Result<()> {
    sorted.par_sort_unstable();
    let mut run = runs.begin_run(0);
    for posting in sorted.drain(..) {
        run.push_record(&posting.to_be_bytes(), 0)?;
    }
    run.finish_run()
}

/// Writes all postings that `visit_all` produces, and returns the seal of the file. `count` is their number. The bytes
/// do not depend on how they are sorted. `visit_all` is called at least once and must produce the same postings each
/// time.
pub(super) fn write_postings(
    path: &Path,
    count: u64,
    sort: &PostingSort,
    mut visit_all: impl FnMut(&mut dyn FnMut(u64)) -> Result<()>,
) -> Result<u64> {
    let bits = (count / POSTINGS_PER_ENTRY)
        .checked_ilog2()
        .unwrap_or(0)
        .clamp(1, 28);
    let mut file = PagedWriter::create_file(path, POSTINGS_MAGIC)?;
    let failed = |cause| Error::write_error("write", display_path(path), cause);
    let mut directory = SpillBuffer::new(sort.space.clone());
    let mut entries = 0;
    let mut fill_directory = |end: u64, position: u64| {
        while entries < end {
            directory
                .append_bytes(&position.to_le_bytes())
                .map_err(failed)?;
            entries += 1;
        }
        Ok::<_, Error>(())
    };
    fill_directory(1, 0)?;
    let mut written = 0;
    let mut bytes = Vec::with_capacity(1 << 16);
    sort.visit_sorted(count, &mut visit_all, |posting| {
        fill_directory((posting >> (64 - bits)) + 1, written)?;
        written += 1;
        bytes.extend(posting.to_le_bytes());
        if bytes.len() >= 1 << 16 {
            file.put_bytes(&bytes)?;
            bytes.clear();
        }
        Ok(())
    })?;
    file.put_bytes(&bytes)?;
    fill_directory((1 << bits) + 1, written)?;
    directory.move_bytes(&mut file).map_err(failed)?;
    file.put_bytes(&written.to_le_bytes())?;
    file.put_bytes(&u64::from(bits).to_le_bytes())?;
    file.finish_file()
}

/// Postings that are made when an index is opened, because they depend on the settings of a search.
pub(super) enum OpenedPostings {
    /// In ascending order.
    Memory(Vec<u64>),
    /// In a temporary file.
    File(PostingList),
}

impl OpenedPostings {
    /// Sorts all postings that `visit_all` produces. `space` keeps them in a temporary file if it is limited.
    ///
    /// # Errors
    /// If the file cannot be written, and the errors of `visit_all`, which must produce the same postings each time.
    pub(super) fn sort_postings(
        space: &BuildSpace,
        mut visit_all: impl FnMut(&mut dyn FnMut(u64)) -> Result<()>,
    ) -> Result<Self> {
        let sort = space.posting_sort();
        let Some(spill) = &sort.space else {
            let mut postings = Vec::new();
            visit_all(&mut |posting| postings.push(posting))?;
            postings.par_sort_unstable();
            return Ok(Self::Memory(postings));
        };
        let mut count = 0;
        visit_all(&mut |_| count += 1)?;
        let failed =
            |cause| Error::write_error("create a file in", display_path(spill.directory()), cause);
        let place = tempfile::tempdir_in(spill.directory()).map_err(failed)?;
        let path = place.path().join("postings");
        write_postings(&path, count, &sort, visit_all)?;
        // The name is removed with its directory, and the file when it is closed.
        PostingList::open_file(&path).map(Self::File)
    }

    /// Calls `visit` with every row that has a key, in ascending order.
    pub(super) fn visit_rows(&self, key: u64, mut visit: impl FnMut(u32)) -> Result<()> {
        match self {
            Self::Memory(postings) => {
                let from = postings.partition_point(|&posting| posting < pack_posting(key, 0));
                let same = postings[from..].iter();
                same.take_while(|&&posting| posting >> 32 == key >> 32)
                    .for_each(|&posting| visit(posting as u32));
                Ok(())
            }
            Self::File(postings) => postings.visit_rows(postings.find_key(key)?, visit),
        }
    }
}

impl PostingList {
    pub(super) fn open_file(path: &Path) -> Result<Self> {
        let file = PagedFile::open_file(path, POSTINGS_MAGIC)?;
        let short = || damaged_file(path, "it is too short for its number of postings");
        let at = file
            .byte_length()
            .checked_sub(2 * NUMBER_BYTES)
            .ok_or_else(short)?;
        let ends = file.read_range(at, file.byte_length())?;
        let count = u64::from_le_bytes(to_array(&ends[..8]));
        let bits = u64::from_le_bytes(to_array(&ends[8..]));
        drop(ends);
        let directory = (1..=28).contains(&bits).then(|| (1u64 << bits) + 1);
        let numbers = directory.and_then(|directory| directory.checked_add(count));
        match numbers.and_then(|numbers| numbers.checked_mul(NUMBER_BYTES)) {
            Some(bytes) if bytes == at => Ok(Self {
                file,
                count,
                bits: bits as u32,
            }),
            _ => Err(short()),
        }
    }

    /// Keeps only the pages that were read last from now on.
    pub(super) fn keep_recent_pages(&mut self) {
        self.file.keep_recent_pages(MIN_RECENT_PAGES);
    }

    /// Returns the file.
    pub(super) fn file_mut(&mut self) -> &mut PagedFile {
        &mut self.file
    }

    /// Opens a file and compares its checksum with that of the manifest.
    pub(super) fn open_named(path: &Path, expected: FileChecksum) -> Result<Self> {
        let postings = Self::open_file(path)?;
        if FileChecksum(postings.seal()) == expected {
            Ok(postings)
        } else {
            Err(damaged_file(
                path,
                "it is not the file that the manifest names",
            ))
        }
    }

    pub(super) fn seal(&self) -> u64 {
        self.file.seal()
    }

    /// Returns the positions of a key's postings.
    pub(super) fn find_key(&self, key: u64) -> Result<Range<u64>> {
        let prefix = key >> 32 << 32;
        let place = (self.count + (key >> (64 - self.bits))) * NUMBER_BYTES;
        let ends = self.file.read_range(place, place + 2 * NUMBER_BYTES)?;
        let start = u64::from_le_bytes(to_array(&ends[..8]));
        let end = u64::from_le_bytes(to_array(&ends[8..]));
        if start > end || end > self.count {
            return Err(damaged_file(
                self.file.file_path(),
                "its directory of keys is out of order",
            ));
        }
        let first = self.first_from(start..end, prefix)?;
        let last = match prefix.checked_add(1 << 32) {
            Some(next) => self.first_from(first..end, next)?,
            None => end,
        };
        Ok(first..last)
    }

    /// Returns the first position in the range whose posting is at least `value`.
    fn first_from(&self, range: Range<u64>, value: u64) -> Result<u64> {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let bytes = self
                .file
                .read_range(middle * NUMBER_BYTES, (middle + 1) * NUMBER_BYTES)?;
            if u64::from_le_bytes(to_array(&bytes)) < value {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Returns the number of postings.
    pub(super) fn count_postings(&self) -> u64 {
        self.count
    }

    /// Calls `visit` with the rows of the postings in the range.
    pub(super) fn visit_rows(&self, range: Range<u64>, mut visit: impl FnMut(u32)) -> Result<()> {
        self.visit_range(range, |posting| visit(posting as u32))
    }

    /// Calls `visit` with every posting, ascending.
    pub(super) fn visit_postings(&self, visit: impl FnMut(u64)) -> Result<()> {
        self.visit_range(0..self.count, visit)
    }

    fn visit_range(&self, range: Range<u64>, mut visit: impl FnMut(u64)) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let end = (at / POSTINGS_READ_AT_ONCE + 1)
                .saturating_mul(POSTINGS_READ_AT_ONCE)
                .min(range.end);
            let bytes = self
                .file
                .read_range(at * NUMBER_BYTES, end * NUMBER_BYTES)?;
            for posting in bytes.chunks_exact(NUMBER_BYTES as usize) {
                visit(u64::from_le_bytes(to_array(posting)));
            }
            at = end;
        }
        Ok(())
    }

    pub(super) fn verify_file(&self) -> Result<()> {
        self.file.verify_pages()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_rows_of_a_key_are_found() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        for count in [0u64, 1, 40, 30_000] {
            // Some keys have many rows, and the smallest and largest keys are among them.
            let key = |at: u64| match at % 7 {
                0 => 0,
                1 => u64::MAX,
                _ => lookalike::value_hash(&(at / 3).to_le_bytes()),
            };
            let all: Vec<_> = (0..count)
                .map(|at| pack_posting(key(at), at as u32))
                .collect();
            let seal = write_postings(&path, count, &PostingSort::default(), |visit| {
                all.iter().for_each(|&posting| visit(posting));
                Ok(())
            })
            .unwrap();
            let postings = PostingList::open_file(&path).unwrap();
            assert_eq!(postings.seal(), seal);
            postings.verify_file().unwrap();
            for at in (0..count).step_by(11).chain([count + 5]) {
                let range = postings.find_key(key(at)).unwrap();
                let mut found = Vec::new();
                postings.visit_rows(range, |row| found.push(row)).unwrap();
                let has_key = |row: &u32| key(u64::from(*row)) == key(at);
                let expected: Vec<_> = (0..count as u32).filter(has_key).collect();
                assert_eq!(found, expected);
            }
        }
    }

    /// Writes the postings with a limit. Returns the bytes of the file and the number of passes.
    fn write_within(path: &Path, all: &[u64], sort: &PostingSort) -> (Vec<u8>, u64) {
        let mut passes = 0;
        write_postings(path, all.len() as u64, sort, |visit| {
            passes += 1;
            all.iter().for_each(|&posting| visit(posting));
            Ok(())
        })
        .unwrap();
        (std::fs::read(path).unwrap(), passes)
    }

    #[test]
    fn several_passes_write_the_bytes_of_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        // Every eighth posting has one of the ends of the range, where a pass begins or ends.
        let posting = |at: u64| match at % 16 {
            0 => pack_posting(0, at as u32),
            8 => pack_posting(u64::MAX, at as u32),
            _ => pack_posting(lookalike::value_hash(&(at / 3).to_le_bytes()), at as u32),
        };
        let mut all: Vec<_> = (0..30_000).map(posting).collect();
        let borders = (0..1024u64).map(|at| at << 54);
        all.extend(borders.flat_map(|border| [border, border | 1, border.wrapping_sub(1)]));
        let count = all.len() as u64;
        let (expected, passes) = write_within(&path, &all, &PostingSort::default());
        assert_eq!(passes, 1);
        for (most_sorted, kept) in [(count, 0), (count - 1, 5), (1000, 1), (1, 0)] {
            let space = SpillSpace::new(kept << 20, place.path().to_path_buf());
            let sort = PostingSort {
                most_sorted,
                space: Some(Arc::new(space)),
            };
            let (bytes, passes) = write_within(&path, &all, &sort);
            assert!(bytes == expected && passes == 1, "{most_sorted}");
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
        }
        for (most_sorted, expected_passes) in [
            (count + 1, 1),
            (count - 1, 2),
            (count / 2, 2),
            (count / 2 - 1, 4),
            (count / 5, 8),
            (1000, 64),
            (50, 1024),
        ] {
            let sort = PostingSort {
                most_sorted,
                space: None,
            };
            let (bytes, passes) = write_within(&path, &all, &sort);
            assert_eq!(passes, expected_passes, "{most_sorted}");
            assert!(bytes == expected, "{most_sorted}");
        }
    }
}
