//! What a run tells while it works.

use std::path::PathBuf;

use super::ids::RepeatedIds;
use crate::source::{BadRow, Inputs};

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

    /// These files of directories that were given are of no known format and left out.
    fn left_out(&self, files: &[PathBuf]) {
        let _ = files;
    }

    /// Some rows can be used, so the run will give something. Called at least once before the rows of
    /// the first such block are told.
    fn rows_usable(&self) {}

    /// A row cannot be used and is left out.
    fn bad_row(&self, row: &BadRow) {
        let _ = row;
    }

    /// Documents have the id of an earlier one. Called once at most.
    fn repeated_ids(&self, repeated: &RepeatedIds) {
        let _ = repeated;
    }
}

/// Reading begins.
pub(crate) fn begin_reading(progress: &dyn Progress, inputs: &Inputs) {
    progress.begin(Stage::Read, inputs.total_bytes());
    if !inputs.left_out().is_empty() {
        progress.left_out(inputs.left_out());
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}
