//! Rows of a block of a table in memory.

use super::block::{ParseScratch, TableBlock};
use super::columnar;
use super::inputs::{InputSet, is_wanted};
use super::row_values::RowPosition;
use super::{RowPlace, RowResult};
use crate::error::Result;

impl InputSet {
    pub(super) fn parse_table_block(
        &self,
        held: &TableBlock,
        wanted: Option<&[u64]>,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let plan = &self.row_layout().plan;
        let columns = table.read_columns(held.rows.clone(), plan, self.options.invalid_text)?;
        for (at, row) in held.rows.clone().enumerate() {
            if is_wanted(wanted, row + 1) {
                self.visit_table_row(&columns, at, row, scratch, &mut *visit)??;
            }
        }
        Ok(())
    }

    /// Calls `visit` with a row in memory, given by its index in `columns` and its index in
    /// the table.
    pub(super) fn visit_table_row<R>(
        &self,
        columns: &columnar::WantedColumns,
        at: usize,
        row: u64,
        scratch: &mut ParseScratch,
        visit: impl FnOnce(RowResult<'_>) -> R,
    ) -> Result<R> {
        let (file, plan) = (&self.files[0], &self.row_layout().plan);
        let mut position = RowPosition {
            file: file.display_name(),
            line: row + 1,
            number: row + 1,
            place: RowPlace::new(row, 0),
        };
        let values = &mut scratch.values;
        let read = columns.parse_around_text(at, plan, values);
        let parsed =
            read.and_then(|whole| values.parsed_row(plan, whole, self.options.invalid_text));
        let sized = parsed.and_then(|parsed| {
            let length = self.row_length(file, 0..parsed.row_text().len())?;
            Ok((parsed, length))
        });
        match sized {
            Ok((parsed, length)) => {
                position.place = RowPlace::new(row, length);
                Ok(parsed.visit_row(plan, position, visit))
            }
            Err(reason) => Ok(visit(Err(position.bad_row_for(reason)))),
        }
    }
}
