//! Sampling of documents from blocks of rows, in input order.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use lookalike::quality::audit::{
    DrawnDocument, DrawnSample, SampleComparer, default_sample_size, draw_limit, draw_number,
};
use lookalike::text::{TextAnalysis, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::ordered_results::OrderedResults;
use lookalike_io::source::InputBlock;

use crate::run::reading::reading_sink::{BlockSource, ReadBuffers};
use crate::run::reading::row_analysis::analyze_row;
use crate::run::settings::AuditSettings;

/// Offset of the row numbers of the inputs. Rows of `--against` have the offset 0.
pub(super) const FIRST_ROW_OF_INPUTS: u64 = 1 << 40;

/// Number of sampled documents if the size of the input is unknown.
const DEFAULT_AUDITED_DOCUMENTS: usize = 1000;

/// Factor by which the first selection exceeds the wanted number of documents, if the number of rows
/// was estimated from samples of all inputs. The documents with the smallest numbers remain.
const SURPLUS_FACTOR: f64 = 1.25;

/// The same factor if the number of rows is estimated from the first block. The sample becomes too
/// small only if later rows are more than this many times as long.
const FIRST_BLOCK_SURPLUS_FACTOR: f64 = 4.0;

/// The documents sampled so far.
pub(in crate::run) struct AuditDrawing {
    seed: u64,
    /// `true` if the number of sampled documents follows from the size of the inputs.
    by_size: bool,
    sample: RwLock<DrawnSample>,
    /// Largest number of a row that can be sampled. It never grows.
    cut: AtomicU64,
    state: OrderedResults<DrawingState, ()>,
}

struct DrawingState {
    /// Offset of the row numbers: 0 for `--against`, [`FIRST_ROW_OF_INPUTS`] for the inputs.
    base: u64,
    /// Wanted number of sampled documents.
    most: usize,
    /// `true` if the number of all documents has been estimated.
    estimated: bool,
    /// Numbers and rows of the sampled documents.
    drawn: BTreeSet<(u64, u64)>,
}

/// A row that may be sampled.
struct DrawCandidate {
    number: u64,
    row: u64,
    drawn: DrawnDocument,
}

impl AuditDrawing {
    pub(super) fn new(sample: DrawnSample, settings: AuditSettings) -> Self {
        Self {
            seed: settings.seed,
            by_size: settings.documents.is_none(),
            sample: RwLock::new(sample),
            cut: AtomicU64::new(u64::MAX),
            state: OrderedResults::new(
                DrawingState {
                    base: 0,
                    most: settings.documents.unwrap_or(DEFAULT_AUDITED_DOCUMENTS),
                    estimated: false,
                    drawn: BTreeSet::new(),
                },
                0,
            ),
        }
    }

    /// Marks the blocks that follow as those of the inputs, not of `--against`.
    pub(in crate::run) fn begin_inputs(&self) {
        self.state.restart_order();
        self.state
            .with_receiver(|state| state.base = FIRST_ROW_OF_INPUTS);
    }

    /// Sets the expected number of documents before any is read. It determines how many rows are
    /// sampled and which of them are candidates.
    pub(in crate::run) fn expect_rows(&self, rows: f64) {
        self.choose_cut(rows, SURPLUS_FACTOR);
    }

    /// Sets the expected number from the first block, using the size of all inputs on disk.
    fn estimate_rows(&self, first: &InputBlock, bytes: u64) {
        let rows = first.row_numbers();
        let read = first.bytes_on_disk().max(1) as f64;
        let all = (rows.end - rows.start) as f64 * (bytes as f64 / read).max(1.0);
        self.choose_cut(all, FIRST_BLOCK_SURPLUS_FACTOR);
    }

    fn choose_cut(&self, all: f64, surplus: f64) {
        let Some(most) = self.choose_count(all) else {
            return;
        };
        self.cut
            .fetch_min(draw_limit(most, all, surplus), Ordering::Relaxed);
    }

    /// Returns the wanted number of documents if this call is the first.
    fn choose_count(&self, all: f64) -> Option<usize> {
        self.state.with_receiver(|state| {
            if std::mem::replace(&mut state.estimated, true) {
                return None;
            }
            if self.by_size {
                state.most = default_sample_size(all);
            }
            Some(state.most)
        })
    }

    /// Samples from a block, after all blocks before it have been sampled. After that every document of
    /// the block may be compared.
    pub(in crate::run) fn draw_from_block(
        &self,
        BlockSource { inputs, block }: BlockSource<'_>,
        input_bytes: Option<u64>,
        analyzer: &TextAnalyzer,
        ReadBuffers { parse, analysis }: &mut ReadBuffers,
    ) -> Result<()> {
        let guard = self.state.stop_unless_done();
        let base = self.row_number_base();
        if let (0, Some(bytes)) = (block.ordinal(), input_bytes) {
            self.estimate_rows(block, bytes);
        }
        let cut = self.cut.load(Ordering::Relaxed);
        let numbered = block
            .row_numbers()
            .filter(|row| self.draw_number(base + row) <= cut);
        let row_numbers: Vec<u64> = numbered.collect();
        let mut candidates = Vec::with_capacity(row_numbers.len());
        inputs.parse_some(block, &row_numbers, parse, &mut |row| {
            // Bad rows are reported when the block is parsed.
            if let Ok(row) = row {
                let drawn = DrawnDocument::new(&analyze_row(analyzer, &row, analysis));
                let row = base + row.number;
                let number = self.draw_number(row);
                candidates.push(DrawCandidate { number, row, drawn });
            }
            Ok(())
        })?;
        let finished = self.state.finish_in_order(block.ordinal(), |state| {
            self.accept_candidates(state, candidates);
            Ok(())
        });
        // Only another thread's failure ends the order, and that thread reports it.
        drop(finished);
        guard.mark_done();
        Ok(())
    }

    fn accept_candidates(&self, state: &mut DrawingState, candidates: Vec<DrawCandidate>) {
        if candidates.is_empty() {
            return;
        }
        let mut sample = self.sample.write().unwrap_or_else(PoisonError::into_inner);
        for candidate in candidates {
            self.accept_candidate(state, &mut sample, candidate);
        }
    }

    fn accept_candidate(
        &self,
        state: &mut DrawingState,
        sample: &mut DrawnSample,
        candidate: DrawCandidate,
    ) {
        let DrawCandidate { number, row, drawn } = candidate;
        // The limit may have become smaller while this thread was selecting candidates.
        if number > self.cut.load(Ordering::Relaxed) {
            return;
        }
        state.drawn.insert((number, row));
        sample.add_document(row, drawn);
        if state.drawn.len() > state.most
            && let Some((_, last)) = state.drawn.pop_last()
        {
            sample.remove_row(last);
            if let Some(&(number, _)) = state.drawn.last() {
                self.cut.fetch_min(number, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn compare_with_drawn(
        &self,
        number: u64,
        analysis: &TextAnalysis<'_>,
        counter: &mut SampleComparer,
    ) {
        self.with_sample(|sample| sample.compare_seen(number, analysis, counter));
    }

    /// Returns the offset that the sample adds to the row numbers of the current inputs. The
    /// offset of the run's inputs is larger, so that they come after the rows of `--against`.
    pub(in crate::run) fn row_number_base(&self) -> u64 {
        self.state.with_receiver(|state| state.base)
    }

    /// Returns the wanted number of documents.
    pub(super) fn requested_count(&self) -> u64 {
        self.state.with_receiver(|state| state.most as u64)
    }

    /// Returns the sampled rows in the order of their numbers. Any prefix of this list is itself a
    /// random sample.
    pub(super) fn drawn_in_order(&self) -> Vec<u64> {
        self.state
            .with_receiver(|state| state.drawn.iter().map(|&(_, row)| row).collect())
    }

    pub(super) fn with_sample<T>(&self, look: impl FnOnce(&DrawnSample) -> T) -> T {
        look(&self.sample.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn draw_number(&self, row: u64) -> u64 {
        draw_number(self.seed, &row.to_le_bytes())
    }
}
