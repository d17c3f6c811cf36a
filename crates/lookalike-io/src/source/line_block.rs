//! Rows of a block of lines: JSON, CSV and plain text.

use super::block::{LineBlock, ParseScratch};
use super::file::InputFile;
use super::inputs::{InputSet, RowLayout, is_wanted};
use super::line_reader::{RowEnds, trim_line_end};
use super::row_values::{ParsedRow, RowPosition, RowValues};
use super::{IdField, InputFormat, RowPlace, RowResult, json};
use crate::error::Result;

impl InputSet {
    pub(super) fn parse_lines(
        &self,
        lines: &LineBlock,
        wanted: Option<&[u64]>,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(RowResult<'_>) -> Result<()>,
    ) -> Result<()> {
        let ParseScratch {
            values,
            cells,
            decoded,
            ..
        } = scratch;
        if lines.is_oversized {
            // A row that is not parsed decides nothing about the layout.
            return self.visit_lines(lines, wanted, decoded, |position, row| match row {
                Err(reason) => visit(Err(position.bad_row_for(reason))),
                Ok(_) => Ok(()),
            });
        }
        let file = &self.files[lines.file];
        let layout = self.provisional_layout(file);
        let layout = layout.as_ref().unwrap_or_else(|| self.row_layout());
        self.visit_lines(lines, wanted, decoded, |position, row| {
            let parsed = row.and_then(|row| self.parse_row(file, layout, row, values, cells));
            match parsed {
                Ok(row) => row.visit_row(&layout.plan, position, &mut *visit),
                Err(reason) => visit(Err(position.bad_row_for(reason))),
            }
        })
    }

    /// Calls `visit` with the text of each row, or with the reason why it has none. `decoded` is memory for texts that
    /// have to be decoded.
    pub(super) fn visit_lines(
        &self,
        lines: &LineBlock,
        wanted: Option<&[u64]>,
        decoded: &mut String,
        mut visit: impl FnMut(RowPosition<'_>, std::result::Result<&str, String>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[lines.file];
        let base = self.bases[lines.file] + lines.offset;
        if lines.is_oversized {
            if !is_wanted(wanted, lines.number) {
                return Ok(());
            }
            let position = RowPosition {
                file: file.display_name(),
                line: lines.line,
                number: lines.number,
                place: RowPlace::new(base, 0),
            };
            return visit(position, Err(self.oversized_reason(file, lines.length)));
        }
        let bytes = &lines.buffer.filled_bytes()[lines.start..];
        // For a few rows, checking the encoding of each is cheaper than checking the whole block.
        let whole = match wanted {
            None => self.decoding.decode_whole(bytes),
            Some(_) => None,
        };
        let last = wanted.map(|wanted| wanted.last().copied().unwrap_or(0));
        let ends = file.row_ends();
        let (mut line, mut number, mut start) = (lines.line, lines.number, 0);
        while start < bytes.len() && last.is_none_or(|last| number <= last) {
            let end = ends.find_row_end(bytes, start);
            let content = trim_line_end(&bytes[start..end]);
            if !content.is_empty() && is_wanted(wanted, number) {
                let length = self.row_length(file, start..end);
                // A row beyond the limit has no bytes that are read again.
                let length_in_place = length.as_ref().copied().unwrap_or(0);
                let position = RowPosition {
                    file: file.display_name(),
                    line,
                    number,
                    place: RowPlace::new(base + start as u64, length_in_place),
                };
                let row = length.and_then(|_| match whole {
                    Some(text) => Ok(&text[start..start + content.len()]),
                    None => self.decoding.decode_row(content, decoded),
                });
                visit(position, row)?;
            }
            number += u64::from(!content.is_empty());
            line += match ends {
                RowEnds::LineFeed => 1,
                RowEnds::OutsideQuotes(_) => {
                    memchr::memchr_iter(b'\n', &bytes[start..end]).count() as u64
                }
            };
            start = end;
        }
        Ok(())
    }

    /// Returns the length of a row as numbers of places in its text.
    ///
    /// # Errors
    /// The reason why the row is refused, if it is longer than the limit.
    pub(super) fn row_length(
        &self,
        file: &InputFile,
        place: std::ops::Range<usize>,
    ) -> std::result::Result<u32, String> {
        u32::try_from(place.len())
            .ok()
            .filter(|&length| length <= self.options.max_row_bytes)
            .ok_or_else(|| self.oversized_reason(file, place.len() as u64))
    }

    /// Returns the reason why a row of this many bytes is refused.
    pub(super) fn oversized_reason(&self, file: &InputFile, length: u64) -> String {
        let most = self.options.max_row_bytes;
        let reason = format!("the row has {length} bytes, more than the limit of {most}");
        if length > u64::from(most) && file.row_ends() != RowEnds::LineFeed {
            return format!("{reason}; perhaps a quote in it is never closed");
        }
        reason
    }

    /// Returns a layout without ids if the input is JSON and no row so far was a valid object.
    pub(super) fn provisional_layout(&self, file: &InputFile) -> Option<RowLayout> {
        let undecided = self.layout.get().is_none() && file.input_format().is_json();
        undecided.then(|| RowLayout::new(&self.options.fields, None, &self.census))
    }

    pub(super) fn parse_row<'a>(
        &self,
        file: &'a InputFile,
        layout: &RowLayout,
        row: &'a str,
        values: &'a mut RowValues,
        cells: &mut super::delimited::CellReader,
    ) -> std::result::Result<ParsedRow<'a>, String> {
        let plan = &layout.plan;
        let invalid_text = self.options.invalid_text;
        match (file.input_format(), file.columns.get()) {
            (InputFormat::Jsonl | InputFormat::Json, _) => {
                json::parse_row(row, plan, &layout.paths, invalid_text, values)?;
                self.census.observe_row(&layout.census_indices, values);
            }
            (InputFormat::Csv { .. }, Some(columns)) => {
                columns.parse_row(row, plan, cells, values)?
            }
            (InputFormat::TextFile, _) => {
                let id = (self.options.fields.id == IdField::Default).then(|| file.display_name());
                return Ok(ParsedRow::from_plain_text(id, row, values));
            }
            // Lines of plain text. Rows of columns and of memory are no lines, so they do not come here.
            _ => {
                return Ok(ParsedRow::from_plain_text(None, row, values));
            }
        }
        values.parsed_row(plan, row, invalid_text)
    }
}
