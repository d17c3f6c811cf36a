//! What a run tells while it works.

use crate::source::BadRow;

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading and sketching; measured in bytes of input.
    Read,
    /// Finding candidates; not measured.
    Candidates,
    /// Verifying and deciding; measured in documents.
    Decide,
    /// Measuring settings on labelled texts; measured in settings.
    Measure,
    /// Opening or checking a library; not measured.
    Open,
    /// Building an index; not measured.
    Index,
    /// Writing; measured in bytes.
    Write,
}

/// Listens to a run. Called from several threads.
pub trait Progress: Sync {
    /// A stage begins; `total` is what [`advance`](Self::advance) will reach, if it is known.
    fn begin(&self, stage: Stage, total: Option<u64>) {
        let _ = (stage, total);
    }

    /// So much of the stage is done since it began.
    fn advance(&self, done: u64) {
        let _ = done;
    }

    /// A row cannot be used and is left out.
    fn bad_row(&self, row: &BadRow) {
        let _ = row;
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
