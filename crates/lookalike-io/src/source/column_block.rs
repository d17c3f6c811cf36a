//! Rows of a block of Parquet or Arrow. Each is copied as a frame, from which it is read again.

use arrow_array::RecordBatch;

use super::block::{ColumnBlock, ParseScratch};
use super::columnar::{self, NumberedBatch};
use super::inputs::InputSet;
use super::row_values::{FieldPlan, RowPosition, with_extra};
use super::{InputRow, RowPlace, RowResult, frame};
use crate::error::Result;

impl InputSet {
    pub(super) fn parse_packed(
        &self,
        packed: &ColumnBlock,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[packed.file];
        packed.portion.visit_batches(file.display_name(), |batch| {
            self.parse_batch(packed, &batch, scratch, &mut *visit)
        })?;
        file.check_unchanged()
    }

    pub(super) fn parse_batch(
        &self,
        packed: &ColumnBlock,
        (rows, first): &NumberedBatch,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[packed.file];
        let plan = &self.row_layout().plan;
        let broken = |reason: String| file.unreadable_columns(&reason);
        let framed = self.frame_batch(rows, plan, scratch).map_err(broken)?;
        let spool = self
            .records
            .as_ref()
            .ok_or_else(|| broken("it is not spooled".to_owned()))?;
        let base = self.bases[packed.file] + spool.append_bytes(&scratch.frames)?;
        let invalid_text = self.options.invalid_text;
        let extra =
            columnar::WantedColumns::new(rows, plan, invalid_text, |slot| plan.is_extra_slot(slot));
        let extra = extra.map_err(broken)?;
        for (row, outcome) in framed.into_iter().enumerate() {
            let (start, end) = *outcome.as_ref().unwrap_or(&(0, 0));
            let number = packed.number + first + row as u64;
            let line = first + row as u64 + 1;
            let length = self.row_length(file, start..end);
            let (length, outcome) = match length {
                Ok(length) => (length, outcome),
                Err(reason) => (0, Err(reason)),
            };
            let place = RowPlace::new(base + start as u64, length);
            let position = RowPosition {
                file: file.display_name(),
                line,
                number,
                place,
            };
            let frame = &scratch.frames[start..end];
            let values = &mut scratch.values;
            let entries = &mut scratch.entries;
            let read = outcome.and_then(|_| {
                extra.parse_row(row, plan, values)?;
                frame::decode_frame(frame, entries, place, number)
                    .ok_or_else(|| "it is damaged".into())
            });
            match read {
                Err(reason) => visit(Err(position.bad_row_for(reason)))?,
                Ok(row) => with_extra(values, plan, "", |extra| {
                    visit(
                        extra
                            .map(|extra| InputRow { extra, line, ..row })
                            .map_err(|why| position.bad_row_for(why)),
                    )
                })?,
            }
        }
        Ok(())
    }

    pub(super) fn parse_some_packed(
        &self,
        packed: &ColumnBlock,
        wanted: &[u64],
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[packed.file];
        let plan = &self.row_layout().plan;
        let broken = |reason: String| file.unreadable_columns(&reason);
        packed
            .portion
            .visit_batches(file.display_name(), |(rows, first)| {
                let start = packed.number + first;
                let place_of = |number: u64| wanted.partition_point(|&other| other < number);
                let here = &wanted[place_of(start)..place_of(start + rows.num_rows() as u64)];
                if here.is_empty() {
                    return Ok(());
                }
                let invalid_text = self.options.invalid_text;
                let columns = columnar::WantedColumns::new(&rows, plan, invalid_text, |_| true);
                let columns = columns.map_err(broken)?;
                let values = &mut scratch.values;
                for &number in here {
                    let position = RowPosition {
                        file: file.display_name(),
                        line: number - packed.number + 1,
                        number,
                        place: RowPlace::new(self.bases[packed.file], 0),
                    };
                    let read = columns.parse_row((number - start) as usize, plan, values);
                    match read.and_then(|()| values.parsed_row(plan, "", self.options.invalid_text))
                    {
                        Ok(row) => row.visit_row(plan, position, &mut *visit)?,
                        Err(reason) => visit(Err(position.bad_row_for(reason)))?,
                    }
                }
                Ok(())
            })
    }

    /// Appends the rows of a batch to the scratch memory as frames. Returns the range of each frame, or
    /// the reason why its row is bad.
    #[expect(
        clippy::type_complexity,
        reason = "one outcome per row, and one for the batch"
    )]
    pub(super) fn frame_batch(
        &self,
        rows: &RecordBatch,
        plan: &FieldPlan,
        scratch: &mut ParseScratch,
    ) -> std::result::Result<Vec<std::result::Result<(usize, usize), String>>, String> {
        let invalid_text = self.options.invalid_text;
        let columns =
            columnar::WantedColumns::new(rows, plan, invalid_text, |slot| plan.is_kept_slot(slot))?;
        let (frames, values) = (&mut scratch.frames, &mut scratch.values);
        frames.clear();
        let mut frame = |row| {
            let start = frames.len();
            columns.parse_row(row, plan, values)?;
            let parsed = values.parsed_row(plan, "", self.options.invalid_text)?;
            parsed
                .encode_frame(frames)
                .ok_or_else(|| "the row is longer than 4 GiB".to_owned())?;
            Ok((start, frames.len()))
        };
        Ok((0..rows.num_rows()).map(&mut frame).collect())
    }
}
