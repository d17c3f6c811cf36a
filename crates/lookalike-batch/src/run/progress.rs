//! Progress reports of a run.

use std::path::PathBuf;

use lookalike_io::source::{BadRow, InputSet};

/// The stages of a run, in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStage {
    /// Reading and sketching, measured in bytes of input.
    Read,
    /// Searching the index of `--library`, measured in documents.
    Library,
    /// Finding candidates, without a measure.
    Candidates,
    /// Deciding verdicts by similarity alone, to learn forms, measured in documents.
    Forms,
    /// Verifying candidates and deciding verdicts, measured in documents.
    Decide,
    /// Finding repeated text, measured in documents read.
    Passages,
    /// Evaluating settings on labelled texts, measured in settings.
    Measure,
    /// Opening or verifying an index, without a measure.
    Open,
    /// Building an index, without a measure.
    Index,
    /// Writing, measured in documents.
    Write,
}

/// Ids that several documents have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedIds {
    /// Documents that have the id of an earlier document of the same inputs.
    pub documents: u64,
    /// The first repeated id.
    pub id: String,
    /// The first two occurrences of this id, as text for messages, for example `source:row`.
    pub places: [String; 2],
}

impl RunStage {
    /// All stages, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Library,
        Self::Candidates,
        Self::Forms,
        Self::Decide,
        Self::Passages,
        Self::Measure,
        Self::Open,
        Self::Index,
        Self::Write,
    ];

    /// Returns the name in calls of a program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Library => "library",
            Self::Candidates => "candidates",
            Self::Forms => "forms",
            Self::Decide => "decide",
            Self::Passages => "passages",
            Self::Measure => "measure",
            Self::Open => "open",
            Self::Index => "index",
            Self::Write => "write",
        }
    }
}

/// Receives progress reports. Its methods are called from several threads.
pub trait ProgressListener: Sync {
    /// A stage begins. `total` is the final value of [`advance_stage`](Self::advance_stage), if it is known.
    fn begin_stage(&self, stage: RunStage, total: Option<u64>) {
        let _ = (stage, total);
    }

    /// Reports the amount of work done since the stage began.
    fn advance_stage(&self, done: u64) {
        let _ = done;
    }

    /// Reports files in given directories that are left out because their format is unknown.
    fn report_left_out(&self, files: &[PathBuf]) {
        let _ = files;
    }

    /// Reports a row that cannot be used and is left out.
    fn report_bad_row(&self, row: &BadRow) {
        let _ = row;
    }

    /// Reports documents that have the id of an earlier one. Called at most once.
    fn repeated_ids(&self, repeated: &RepeatedIds) {
        let _ = repeated;
    }

    /// Reports rows of an index that have the id of an earlier row. Called at most once.
    fn repeated_index_ids(&self, repeated: &RepeatedIds) {
        let _ = repeated;
    }
}

/// Reports the beginning of reading.
pub(crate) fn begin_reading(progress: &dyn ProgressListener, inputs: &InputSet) {
    progress.begin_stage(RunStage::Read, inputs.total_bytes());
    if !inputs.skipped_files().is_empty() {
        progress.report_left_out(inputs.skipped_files());
    }
}

/// Ignores all progress reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentProgress;

impl ProgressListener for SilentProgress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_numbered_in_their_order() {
        for (number, stage) in RunStage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, number, "{}", stage.name());
        }
    }
}
