//! The verdicts that are decided so far, so that kept rows are copied while later verdicts are still open.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use lookalike::dedup::DocumentRemoval;
use lookalike_io::sink::OutputRows;
use lookalike_io::source::RowPlace;

use crate::run::execution::run_corpus::RunCorpus;

/// The rows of the inputs with the verdicts decided so far. Asking for a later verdict blocks until it is decided.
/// Requires that documents are decided in reading order (`MatchCorpus::order` is `None`).
pub(super) struct VerdictsSoFar<'a> {
    corpus: &'a RunCorpus<'a>,
    removed: Vec<AtomicBool>,
    /// Number of documents with a verdict.
    decided: AtomicUsize,
    /// The lock for waiting until `decided` grows.
    growth_lock: Mutex<()>,
    grown: Condvar,
}

impl<'a> VerdictsSoFar<'a> {
    pub(super) fn new(corpus: &'a RunCorpus<'a>) -> Self {
        Self {
            corpus,
            removed: (0..corpus.len()).map(|_| AtomicBool::new(false)).collect(),
            decided: AtomicUsize::new(0),
            growth_lock: Mutex::new(()),
            grown: Condvar::new(),
        }
    }

    pub(super) fn accept_removals(&self, decided: usize, removals: &[DocumentRemoval]) {
        for removal in removals {
            self.removed[removal.document.index()].store(true, Ordering::Relaxed);
        }
        let growth_lock = self
            .growth_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.decided.store(decided, Ordering::Release);
        drop(growth_lock);
        self.grown.notify_all();
    }

    /// Returns a guard that ends all waiting when it is dropped, because no more verdicts follow.
    pub(super) fn end_on_drop(&self) -> impl Drop + '_ {
        struct EndOnDrop<'a>(&'a VerdictsSoFar<'a>);
        impl Drop for EndOnDrop<'_> {
            fn drop(&mut self) {
                self.0.accept_removals(usize::MAX, &[]);
            }
        }
        EndOnDrop(self)
    }
}

impl OutputRows for VerdictsSoFar<'_> {
    fn len(&self) -> usize {
        self.corpus.documents.len()
    }

    fn place_of(&self, index: usize) -> RowPlace {
        self.corpus.documents.place_of(index)
    }

    fn row_number(&self, index: usize) -> u64 {
        self.corpus.documents.row_number(index)
    }

    fn is_kept(&self, index: usize) -> bool {
        let document = self.corpus.known_count() + index;
        let undecided = || self.decided.load(Ordering::Acquire) <= document;
        if undecided() {
            let mut growth_lock = self
                .growth_lock
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            while undecided() {
                growth_lock = self
                    .grown
                    .wait(growth_lock)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        !self.removed[document].load(Ordering::Relaxed)
    }
}
