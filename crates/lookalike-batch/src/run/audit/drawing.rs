//! Drawing documents from blocks of rows, in the order of the input.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use lookalike::audit::{Counter, Drawn, Sample};
use lookalike::text::{Analysis, Analyzer, Scratch};

use super::super::read::analyze;
use super::super::settings::AuditSettings;
use super::OF_INPUTS;
use crate::error::Result;
use crate::source::{Block, Inputs, ParseScratch};

/// Documents that are drawn where it is not known how many there are.
const AUDITED: usize = 1000;

/// One in so many is drawn where that is known, within the bounds below.
const AUDITED_SHARE: f64 = 80.0;
const FEWEST: usize = 500;
const MOST: usize = 1_000;

/// So many times the documents wanted are drawn where the inputs could be looked into, of which the
/// smallest numbers remain.
const SURPLUS: f64 = 1.25;

/// The same where their number is estimated from the first block. There are fewer than wanted where
/// rows behind it are more than so many times as long.
const SURPLUS_OF_FIRST: f64 = 4.0;

/// The documents drawn so far.
pub(in super::super) struct Drawing {
    seed: u64,
    /// Whether the number of documents follows from the size of the inputs.
    by_size: bool,
    sample: RwLock<Sample>,
    /// Rows with larger numbers are not drawn. Never grows.
    cut: AtomicU64,
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    /// Where rows are numbered from.
    base: u64,
    /// The block whose turn it is.
    next: u64,
    /// How many documents are drawn.
    most: usize,
    /// Whether the number of all documents has been estimated.
    estimated: bool,
    /// Numbers and rows of what is drawn.
    drawn: BTreeSet<(u64, u64)>,
    /// A thread will never have its turn.
    failed: bool,
}

/// A row that may be drawn.
struct Candidate {
    number: u64,
    row: u64,
    drawn: Drawn,
}

impl Drawing {
    pub(super) fn new(sample: Sample, settings: AuditSettings) -> Self {
        Self {
            seed: settings.seed,
            by_size: settings.documents.is_none(),
            sample: RwLock::new(sample),
            cut: AtomicU64::new(u64::MAX),
            state: Mutex::new(State {
                base: 0,
                next: 0,
                most: settings.documents.unwrap_or(AUDITED),
                estimated: false,
                drawn: BTreeSet::new(),
                failed: false,
            }),
            moved: Condvar::new(),
        }
    }

    /// The blocks that follow are those of the inputs, not of documents given as known.
    pub(in super::super) fn begin_inputs(&self) {
        let mut state = self.state();
        state.base = OF_INPUTS;
        state.next = 0;
    }

    /// Says about how many documents there are, before any is read: by this rows are chosen, and how
    /// many.
    pub(in super::super) fn expect(&self, rows: f64) {
        self.choose(rows, SURPLUS);
    }

    /// The same from the first block of all, if it is known how many bytes on disk all inputs have.
    fn estimate(&self, first: &Block, bytes: u64) {
        let rows = first.rows();
        let read = first.bytes_on_disk().max(1) as f64;
        let all = (rows.end - rows.start) as f64 * (bytes as f64 / read).max(1.0);
        self.choose(all, SURPLUS_OF_FIRST);
    }

    fn choose(&self, all: f64, surplus: f64) {
        let mut state = self.state();
        if std::mem::replace(&mut state.estimated, true) {
            return;
        }
        if self.by_size {
            state.most = ((all / AUDITED_SHARE) as usize).clamp(FEWEST, MOST);
        }
        // Few may be fewer by chance: by four standard deviations hardly ever.
        let most = state.most as f64;
        let share = (surplus * most + 4.0 * most.sqrt() + 8.0) / all;
        if share < 1.0 {
            let cut = (share * u64::MAX as f64) as u64;
            self.cut.fetch_min(cut, Ordering::Relaxed);
        }
    }

    /// Draws from a block and waits until that was done with all before it. From then on every
    /// document of the block may be compared.
    pub(in super::super) fn draw(
        &self,
        (inputs, bytes): (&Inputs, Option<u64>),
        block: &Block,
        analyzer: &Analyzer,
        (parse, scratch): (&mut ParseScratch, &mut Scratch),
    ) -> Result<()> {
        let mut guard = FailUnlessDone {
            drawing: self,
            done: false,
        };
        let base = self.state().base;
        if let (0, Some(bytes)) = (block.ordinal(), bytes) {
            self.estimate(block, bytes);
        }
        let cut = self.cut.load(Ordering::Relaxed);
        let numbered = block.rows().filter(|row| self.number(base + row) <= cut);
        let wanted: Vec<u64> = numbered.collect();
        let mut candidates = Vec::with_capacity(wanted.len());
        inputs.parse_some(block, &wanted, parse, &mut |row| {
            // A bad row is told when the block is parsed.
            if let Ok(row) = row {
                let drawn = Drawn::new(&analyze(analyzer, &row, scratch));
                let row = base + row.number;
                let number = self.number(row);
                candidates.push(Candidate { number, row, drawn });
            }
            Ok(())
        })?;
        self.take(block.ordinal(), candidates);
        guard.done = true;
        Ok(())
    }

    fn take(&self, ordinal: u64, candidates: Vec<Candidate>) {
        let mut state = self.state();
        while state.next != ordinal && !state.failed {
            let waited = self.moved.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if !candidates.is_empty() {
            let mut sample = self.sample.write().unwrap_or_else(PoisonError::into_inner);
            for candidate in candidates {
                self.take_one(&mut state, &mut sample, candidate);
            }
        }
        state.next += 1;
        drop(state);
        self.moved.notify_all();
    }

    fn take_one(&self, state: &mut State, sample: &mut Sample, candidate: Candidate) {
        let Candidate { number, row, drawn } = candidate;
        // Other threads may have drawn since this one looked.
        if number > self.cut.load(Ordering::Relaxed) {
            return;
        }
        state.drawn.insert((number, row));
        sample.add(row, drawn);
        if state.drawn.len() > state.most
            && let Some((_, last)) = state.drawn.pop_last()
        {
            sample.remove(last);
            if let Some(&(number, _)) = state.drawn.last() {
                self.cut.fetch_min(number, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn compare(&self, number: u64, analysis: &Analysis<'_>, counter: &mut Counter) {
        self.with_sample(|sample| sample.compare_seen(number, analysis, counter));
    }

    /// Where the sample numbers the rows of the present inputs from: those of the run come behind
    /// those given as known.
    pub(in super::super) fn base(&self) -> u64 {
        self.state().base
    }

    /// How many documents are wanted.
    pub(super) fn wanted(&self) -> u64 {
        self.state().most as u64
    }

    /// The drawn rows by their numbers, smallest first: the first so many are a sample themselves.
    pub(super) fn in_order(&self) -> Vec<u64> {
        self.state().drawn.iter().map(|&(_, row)| row).collect()
    }

    pub(super) fn with_sample<T>(&self, look: impl FnOnce(&Sample) -> T) -> T {
        look(&self.sample.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn number(&self, row: u64) -> u64 {
        let mut name = [0; 16];
        name[..8].copy_from_slice(&self.seed.to_le_bytes());
        name[8..].copy_from_slice(&row.to_le_bytes());
        lookalike::value_hash(&name)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets nobody wait for a thread that has failed.
struct FailUnlessDone<'a> {
    drawing: &'a Drawing,
    done: bool,
}

impl Drop for FailUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.drawing.state().failed = true;
            self.drawing.moved.notify_all();
        }
    }
}
