//! A sample of the rows of all inputs, for a forecast.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lookalike_io::source::InputBlock;

/// Approximate number of sampled documents.
const WANTED: f64 = 10_000.0;

/// Largest number of bytes read from disk.
const MOST_READ: u64 = 1 << 30;

/// Approximate largest number of bytes of the rows of a sample.
const WANTED_BYTES: f64 = 16e6;

/// The selection of rows by their numbers.
#[derive(Debug)]
pub(in crate::run) struct RowSampling {
    /// Bytes on disk of all inputs.
    bytes: u64,
    /// Largest hash of a sampled row.
    cut: OnceLock<u64>,
    pub(in crate::run) rows: AtomicU64,
    pub(in crate::run) bad: AtomicU64,
    read: AtomicU64,
    /// Nanoseconds of sketching the sampled rows as they take in a run, summed over all threads.
    pub(in crate::run) sketching: AtomicU64,
    /// Nanoseconds spent on the sampled rows, summed over all threads.
    pub(in crate::run) spent: AtomicU64,
}

impl RowSampling {
    pub(in crate::run) fn new(bytes: u64) -> Self {
        Self {
            bytes,
            cut: OnceLock::new(),
            rows: AtomicU64::new(0),
            bad: AtomicU64::new(0),
            read: AtomicU64::new(0),
            sketching: AtomicU64::new(0),
            spent: AtomicU64::new(0),
        }
    }

    /// Records a block that was read. After the call the selection is known; it follows from the number
    /// of rows in the first block.
    pub(in crate::run) fn begin_block(&self, block: &InputBlock) {
        let rows = block.row_numbers();
        let rows = rows.end - rows.start;
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.read
            .fetch_add(block.bytes_on_disk(), Ordering::Relaxed);
        if block.ordinal() > 0 {
            self.cut.wait();
            return;
        }
        self.cut.get_or_init(|| {
            let per_byte = rows as f64 / block.bytes_on_disk().max(1) as f64;
            let all = (per_byte * self.bytes as f64).max(1.0);
            let per_row = block.bytes_of_rows() as f64 / rows.max(1) as f64;
            let wanted = WANTED.min(WANTED_BYTES / per_row.max(1.0));
            ((wanted / all).min(1.0) * u64::MAX as f64) as u64
        });
    }

    pub(in crate::run) fn takes_row(&self, row: u64) -> bool {
        let hash = lookalike::value_hash(&row.to_le_bytes());
        self.cut.get().is_some_and(|&cut| hash <= cut)
    }

    /// Counts a row that cannot be used.
    pub(in crate::run) fn count_bad_row(&self) {
        self.bad.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::run) fn is_enough(&self) -> bool {
        self.read.load(Ordering::Relaxed) >= MOST_READ
    }

    /// Adds the time of sketching a sampled row as a run takes it, and all the time spent on the row.
    pub(in crate::run) fn add_sketching(&self, sketching: Duration, spent: Duration) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sketching
            .fetch_add(nanoseconds(sketching), Ordering::Relaxed);
        self.spent.fetch_add(nanoseconds(spent), Ordering::Relaxed);
    }

    /// Returns the share of the input that was read.
    pub(in crate::run) fn read_share(&self) -> f64 {
        if self.bytes == 0 {
            return 1.0;
        }
        (self.read.load(Ordering::Relaxed) as f64 / self.bytes as f64).min(1.0)
    }

    /// Returns the share of the read rows that is sampled.
    pub(in crate::run) fn chosen_share(&self) -> f64 {
        self.cut
            .get()
            .map_or(1.0, |&cut| cut as f64 / u64::MAX as f64)
    }
}
