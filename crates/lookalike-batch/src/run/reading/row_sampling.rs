//! A sample of the rows of all inputs, for a forecast.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::source::{BadRow, InputBlock, InputRow};

use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::reading_sink::{
    BlockSource, InputRole, ReadBuffers, ReadingBackend, ReadingSink, RowSketching, SinkWorker,
};
use crate::run::reading::row_analysis::analyze_row;

/// Approximate number of sampled documents.
const SAMPLED_DOCUMENTS: f64 = 10_000.0;

/// Largest number of bytes read from disk.
const MAX_READ_BYTES: u64 = 1 << 30;

/// Approximate largest number of bytes of the rows of a sample.
const SAMPLED_BYTES: f64 = 16e6;

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
    pub(in crate::run) spent_nanoseconds: AtomicU64,
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
            spent_nanoseconds: AtomicU64::new(0),
        }
    }

    /// Records a block that was read. After the call the selection is known; it follows from the number
    /// of rows in the first block.
    fn begin_block(&self, block: &InputBlock) {
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
            let documents = SAMPLED_DOCUMENTS.min(SAMPLED_BYTES / per_row.max(1.0));
            ((documents / all).min(1.0) * u64::MAX as f64) as u64
        });
    }

    fn wants_row(&self, row: u64) -> bool {
        let hash = lookalike::value_hash(&row.to_le_bytes());
        self.cut.get().is_some_and(|&cut| hash <= cut)
    }

    /// Counts a row that cannot be used.
    fn count_bad_row(&self) {
        self.bad.fetch_add(1, Ordering::Relaxed);
    }

    fn is_enough(&self) -> bool {
        self.read.load(Ordering::Relaxed) >= MAX_READ_BYTES
    }

    /// Adds the time of sketching a sampled row as a run takes it, and all the time spent on the row.
    fn add_sketching(&self, sketching: Duration, spent: Duration) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sketching
            .fetch_add(nanoseconds(sketching), Ordering::Relaxed);
        self.spent_nanoseconds
            .fetch_add(nanoseconds(spent), Ordering::Relaxed);
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

/// Reads the rows of a sample and keeps them in memory. Bad rows are only counted.
impl ReadingBackend for RowSampling {
    fn open_sink(&self, _role: InputRole, _rows_before: u64) -> Box<dyn ReadingSink + '_> {
        Box::new(SampleSink { sampling: self })
    }

    fn reads_all_rows(&self) -> bool {
        false
    }
}

struct SampleSink<'a> {
    sampling: &'a RowSampling,
}

impl ReadingSink for SampleSink<'_> {
    fn new_worker(&self) -> Box<dyn SinkWorker + '_> {
        Box::new(SampleWorker {
            sampling: self.sampling,
            scratch: AnalysisScratch::default(),
            started: Instant::now(),
        })
    }

    fn is_enough(&self) -> bool {
        self.sampling.is_enough()
    }
}

struct SampleWorker<'a> {
    sampling: &'a RowSampling,
    scratch: AnalysisScratch,
    /// Time at which the current row was begun.
    started: Instant,
}

impl SinkWorker for SampleWorker<'_> {
    fn begin_block(
        &mut self,
        source: BlockSource<'_>,
        _analyzer: &TextAnalyzer,
        _buffers: &mut ReadBuffers,
    ) -> Result<()> {
        self.sampling.begin_block(source.block);
        Ok(())
    }

    fn wants_row(&mut self, number: u64) -> bool {
        let is_wanted = self.sampling.wants_row(number);
        if is_wanted {
            self.started = Instant::now();
        }
        is_wanted
    }

    /// Analyses the row once more. A sampled row stands alone between others that are skipped, so its first analysis
    /// reads code and tables into the caches again. The second one takes as long as among other rows, and counts.
    fn add_document(
        &mut self,
        sketching: &RowSketching,
        row: &InputRow<'_>,
        _analysis: &TextAnalysis<'_>,
        documents: &mut ReadDocuments,
    ) -> Result<()> {
        let warm = Instant::now();
        let analysis = analyze_row(&sketching.analyzer, row, &mut self.scratch);
        sketching
            .sketcher
            .add_document(&analysis, &mut documents.sketches);
        self.sampling
            .add_sketching(warm.elapsed(), self.started.elapsed());
        Ok(())
    }

    fn accept_bad_row(&mut self, _bad: BadRow, _documents: &mut ReadDocuments) {
        self.sampling.count_bad_row();
    }
}
