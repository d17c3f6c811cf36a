//! Rows of a compacted partition, on their way to its database.

use std::sync::Arc;

use crate::error::Result;
use crate::files::partition::PartitionFiles;
use crate::files::rows::{EncodedRows, PartitionRow};

/// Rows that are not written yet. Consecutive erased rows become one.
pub(super) struct CompactedRows {
    to: Arc<PartitionFiles>,
    rows: EncodedRows,
    /// Number of the first of them.
    first_row: u64,
    /// Erased rows after them, which are not written yet because more may follow.
    erased_run: ErasedRun,
    /// Rows of which nothing remains, or only what other rows need.
    erased: u64,
}

/// Consecutive rows of which nothing remains.
#[derive(Default)]
struct ErasedRun {
    rows: u64,
    /// Kept documents among them.
    kept: u32,
}

impl CompactedRows {
    /// Starts with the first row of a partition.
    pub(super) fn new(to: Arc<PartitionFiles>) -> Self {
        Self {
            first_row: to.about.first,
            to,
            rows: EncodedRows::default(),
            erased_run: ErasedRun::default(),
            erased: 0,
        }
    }

    /// Returns the number of rows of which nothing remains, or only what other rows need.
    pub(super) fn erased_count(&self) -> u64 {
        self.erased
    }

    /// Returns the bytes of the rows that are not written yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.rows.byte_count()
    }

    pub(super) fn push_row(&mut self, row: PartitionRow) {
        match row {
            PartitionRow::Erased { rows, kept } => {
                self.erased += rows;
                self.erased_run.rows += rows;
                self.erased_run.kept += kept;
                return;
            }
            PartitionRow::ErasedMove { .. } | PartitionRow::ErasedDuplicate { .. } => {
                self.erased += 1
            }
            PartitionRow::Document(_)
            | PartitionRow::Moved { .. }
            | PartitionRow::Deleted { .. }
            | PartitionRow::Decision(_) => {}
        }
        self.end_erased_run();
        self.rows.push_row(&row);
    }

    fn end_erased_run(&mut self) {
        let ErasedRun { rows, kept } = std::mem::take(&mut self.erased_run);
        if rows > 0 {
            self.rows.push_row(&PartitionRow::Erased { rows, kept });
        }
    }

    /// Writes the rows, durably, except the erased rows at their end. `next_row` is the number of the row
    /// that follows.
    pub(super) fn write_rows(&mut self, next_row: u64) -> Result<()> {
        if self.rows.len() > 0 {
            self.to.commit_rows(&self.rows, self.first_row, None)?;
            self.rows = EncodedRows::default();
        }
        self.first_row = next_row - self.erased_run.rows;
        Ok(())
    }

    /// Writes all rows, durably.
    pub(super) fn write_rest(&mut self, next_row: u64) -> Result<()> {
        self.end_erased_run();
        self.write_rows(next_row)
    }
}
