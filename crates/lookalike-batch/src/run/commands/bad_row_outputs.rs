//! The bad rows of a run: their output, and their counts by reason for the report.

use lookalike_io::error::Result;
use lookalike_io::sink::{OutputTarget, StagedOutput};
use lookalike_io::source::{BadRow, InputSet};

use crate::run::reading::rejected_rows::RejectedRows;
use crate::run::report::bad_rows::BadRowTally;

/// Receives the bad rows of a run, counts them by reason and writes them.
pub(super) struct BadRowOutputs {
    tally: BadRowTally,
    rejected: RejectedRows,
}

impl BadRowOutputs {
    /// Creates the output of bad rows, if one is wanted.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn create_output(output: Option<&OutputTarget>) -> Result<Self> {
        Ok(Self {
            tally: BadRowTally::default(),
            rejected: RejectedRows::create_output(output)?,
        })
    }

    /// Counts and writes the bad rows of a block.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(super) fn push_rows(&self, inputs: &InputSet, rows: &[BadRow]) -> Result<()> {
        self.tally.add_rows(rows);
        self.rejected.push_rows(inputs, rows)
    }

    /// Completes the output, if there is one. Returns the number of bad rows, the output, which is still to be put in
    /// place, and the counts by reason.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub(super) fn prepare_output(self) -> Result<(u64, Option<StagedOutput>, BadRowTally)> {
        let (count, output) = self.rejected.prepare_output()?;
        Ok((count, output, self.tally))
    }
}
