//! The memory of the search for repeated text (`dedup --passages`).
//!
//! The search comes behind the verdicts, when candidates need no memory any more. So it takes the bytes that a run out of
//! core has for keys and groups, and in memory what the limit leaves. Its first reading counts exactly how many runs are
//! to be collected. If they fit, they stay in memory, and otherwise they go to temporary files.
//!
//! ```text
//! working   counter 1/4, buffers of parts 1/8                          while runs are counted and collected
//!           first places 1/4 and sorting 1/8, for all threads          while runs are resolved
//!           merging 1/8, runs of some documents 1/8, library 1/8       while cuts are chosen
//!           texts of sources 1/4, library 1/8                          while cuts are described
//! ```

use serde::Serialize;

/// Bytes that stay in memory for each document: its place in the list of kept documents, its cuts, and their description.
pub(crate) const RESIDENT_BYTES_PER_DOCUMENT: f64 = 4.0 + 12.0 + 12.0;

/// Fewest bytes of a search in a run that keeps everything else in memory.
pub(crate) const MIN_WORKING_BYTES: u64 = 32 << 20;

/// Bytes of memory of a collected run: its place, and the place of its first occurrence while both are sorted.
const MEMORY_BYTES_PER_RUN: u64 = 32;

/// Bytes of temporary files of a collected run, and of one that stands in an earlier document.
const DISK_BYTES_PER_RUN: u64 = 16;
const DISK_BYTES_PER_REPEAT: u64 = 19;

/// Bytes of temporary files for each byte of text, if one run in six stands in an earlier document and a run begins at
/// every sixth byte, as in English.
pub(crate) const DISK_BYTES_PER_TEXT_BYTE: f64 =
    (DISK_BYTES_PER_RUN + DISK_BYTES_PER_REPEAT) as f64 / 6.0 / 6.0;

/// Slots of the counter of runs for each byte of text.
const SLOTS_PER_TEXT_BYTE: f64 = 0.75;

/// Bytes of sources that are kept for all threads.
const KEPT_SOURCE_BYTES: u64 = 256 << 20;

/// Bytes of a run of a document that stands in an earlier one.
const REPEATED_RUN_BYTES: u64 = 16;

/// Smallest and largest number of such runs for which cuts are chosen at once.
const RUNS_AT_ONCE_RANGE: (u64, u64) = (256, 1 << 20);

/// Most parts among which collected runs are divided at first, and the fewest bytes of the buffer of each.
const MOST_PARTS: u64 = 1024;
const PART_BUFFER_BYTES: u64 = 4 << 10;

/// The coefficients of the search, as plans state them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RepeatedTextCoefficients {
    /// Bytes that stay in memory for each document.
    pub bytes_per_document: u64,
    /// Bytes of memory for each run that is collected, while these fit.
    pub bytes_per_run: u64,
    /// Bytes of temporary files for each run that is collected, if they do not fit.
    pub disk_bytes_per_run: u64,
    /// Further bytes of temporary files for each of these that stands in an earlier document.
    pub disk_bytes_per_repeat: u64,
}

impl RepeatedTextCoefficients {
    /// The coefficients.
    pub const ALL: Self = Self {
        bytes_per_document: RESIDENT_BYTES_PER_DOCUMENT as u64,
        bytes_per_run: MEMORY_BYTES_PER_RUN,
        disk_bytes_per_run: DISK_BYTES_PER_RUN,
        disk_bytes_per_repeat: DISK_BYTES_PER_REPEAT,
    };
}

/// The shares of the memory of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepeatedTextShares {
    /// Bytes for everything that grows with the texts; `None` if nothing limits them.
    working: Option<u64>,
    threads: u64,
}

impl RepeatedTextShares {
    /// Divides `working` bytes, or any number of them.
    pub(crate) fn of_working_bytes(working: Option<u64>, threads: usize) -> Self {
        Self {
            working,
            threads: threads.max(1) as u64,
        }
    }

    /// Returns `true` if nothing limits the memory.
    pub(crate) fn is_unlimited(self) -> bool {
        self.working.is_none()
    }

    fn part_of(self, divisor: u64) -> u64 {
        self.working.map_or(u64::MAX, |working| working / divisor)
    }

    /// Returns the slots that the counter of runs should have for `bytes` bytes of texts, and the most bytes that it may
    /// take.
    pub(crate) fn counter_size(self, bytes: u64) -> (u64, u64) {
        ((bytes as f64 * SLOTS_PER_TEXT_BYTE) as u64, self.part_of(4))
    }

    /// Returns `true` if `runs` collected runs fit into the memory.
    pub(crate) fn fits(self, runs: u64) -> bool {
        runs.saturating_mul(MEMORY_BYTES_PER_RUN) <= self.part_of(2)
    }

    /// Returns the number of binary digits of a hash by which `runs` collected runs are divided into parts, so that the
    /// first places of a part are expected to fit.
    pub(crate) fn part_digits(self, runs: u64) -> u32 {
        let places = self.table_bytes() / (2 * REPEATED_RUN_BYTES);
        let wanted = runs.div_ceil(places.max(1));
        let most = (self.buffered_bytes() / PART_BUFFER_BYTES).clamp(1, MOST_PARTS);
        let parts = wanted.clamp(1, most);
        // Rounded down, because buffers have a smallest size.
        parts.ilog2()
    }

    /// Returns the bytes of the buffers of all parts.
    pub(crate) fn buffered_bytes(self) -> u64 {
        self.part_of(8)
    }

    /// Returns the bytes of the table of first places of a thread.
    pub(crate) fn table_bytes(self) -> u64 {
        self.part_of(4) / self.threads
    }

    /// Returns the bytes in which a thread sorts repeated runs.
    pub(crate) fn sorted_bytes(self) -> usize {
        (self.part_of(8) / self.threads).min(1 << 30) as usize
    }

    /// Returns the bytes of the buffers by which sorted runs are merged.
    pub(crate) fn merged_bytes(self) -> usize {
        self.part_of(8).min(1 << 30) as usize
    }

    /// Returns the number of repeated runs from which on no further document is added to those whose cuts are chosen at
    /// once.
    pub(crate) fn runs_at_once(self) -> usize {
        let (least, most) = RUNS_AT_ONCE_RANGE;
        (self.part_of(8) / REPEATED_RUN_BYTES).clamp(least, most) as usize
    }

    /// Returns the bytes of sources that are kept for all threads.
    pub(crate) fn source_bytes(self) -> usize {
        self.part_of(4).min(KEPT_SOURCE_BYTES) as usize
    }

    /// Returns the bytes of the files of a library that are kept.
    pub(crate) fn library_bytes(self) -> u64 {
        self.part_of(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_within_the_working_bytes() {
        for threads in [1, 3, 64] {
            for working in [1 << 20, 48 << 20, 1 << 34] {
                let shares = RepeatedTextShares::of_working_bytes(Some(working), threads);
                let threads = threads as u64;
                let (slots, counter) = shares.counter_size(1 << 40);
                assert!(slots > 1 << 39 && counter + shares.buffered_bytes() <= working);
                let resolving = threads * (shares.table_bytes() + shares.sorted_bytes() as u64);
                assert!(resolving <= working);
                let parts = 1 << shares.part_digits(u64::MAX);
                assert!(parts * PART_BUFFER_BYTES <= shares.buffered_bytes());
                let most = working / 2 / MEMORY_BYTES_PER_RUN;
                assert!(shares.fits(most) && !shares.fits(most + 1));
            }
        }
        let unlimited = RepeatedTextShares::of_working_bytes(None, 2);
        assert!(unlimited.fits(u64::MAX) && unlimited.source_bytes() as u64 == KEPT_SOURCE_BYTES);
    }

    #[test]
    fn parts_follow_from_the_number_of_runs() {
        // A table of 8 MiB has room for 256 Ki places if half of its slots stay free.
        let shares = RepeatedTextShares::of_working_bytes(Some(64 << 20), 2);
        let places = 1 << 18;
        for (runs, digits) in [
            (0, 0),
            (places, 0),
            (places + 1, 1),
            (4 * places, 2),
            (u64::MAX, 10),
        ] {
            assert_eq!(shares.part_digits(runs), digits, "{runs}");
        }
        let tiny = RepeatedTextShares::of_working_bytes(Some(1), 2);
        assert_eq!((tiny.part_digits(1 << 30), tiny.runs_at_once()), (0, 256));
    }
}
