//! Complete rows, with all of their fields.
//!
//! * Some rows of Parquet and Arrow, all columns, as JSON: for the rows that could not be used, and for showing the
//!   fields of an input. Cost: the pages of Parquet, or the record batches of Arrow, that contain the wanted rows are
//!   decoded again, in one pass per call.
//! * All rows of a block, of every format that has fields, for readers that choose the fields by what a row has
//!   ([`InputSet::parse_whole_rows`]). Cost: each row is built as a map of JSON values, beside the parsing of its
//!   single fields.

use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use serde_json::{Map, Value};

use super::arrow_file::ArrowFile;
use super::block::{BlockBody, ColumnBlock, InputBlock, LineBlock, ParseScratch};
use super::column_json::{JsonRows, row_to_json};
use super::file::InputFile;
use super::inputs::InputSet;
use super::parquet_file::{load_metadata, open_batches};
use super::row_values::RowPosition;
use super::{BadRow, InputFormat, RowPlace, json};
use crate::error::{Error, Result};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 64;

/// Receives a row as a JSON object.
type RowVisitor<'a> = dyn FnMut(&BadRow, &str) -> Result<()> + 'a;

/// A row with all of its fields.
#[derive(Debug)]
pub struct WholeRow<'a> {
    /// The input of the row.
    pub file: &'a InputFile,
    /// The number of the row in its input, from 1.
    pub number: u64,
    /// The line on which the row starts, as in [`BadRow::line`].
    pub line: u64,
    /// The fields by their names. Cells of CSV and TSV are strings; if a name is repeated, the last field counts.
    pub fields: Map<String, Value>,
}

impl InputSet {
    /// Calls `visit` for each row of a block with all of its fields, good or bad, in order. The inputs are opened with
    /// [`WantedFields::whole_rows`](super::WantedFields::whole_rows), so that all columns are read.
    ///
    /// # Errors
    ///
    /// The first error that `visit` returns; a row over the limit; document files, and tables in memory, which are not
    /// read whole. A line of plain text is a bad row.
    pub fn parse_whole_rows(
        &self,
        block: &InputBlock,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(std::result::Result<WholeRow<'_>, BadRow>) -> Result<()>,
    ) -> Result<()> {
        match &block.body {
            BlockBody::Lines(lines) => self.visit_whole_lines(lines, scratch, visit),
            BlockBody::Packed(packed) => self.visit_whole_columns(packed, visit),
            BlockBody::Documents(documents) => Err(has_no_fields(&self.files[documents.file])),
            BlockBody::Memory(_) => Err(has_no_fields(&self.files[0])),
        }
    }

    fn visit_whole_lines(
        &self,
        lines: &LineBlock,
        scratch: &mut ParseScratch,
        visit: &mut dyn FnMut(std::result::Result<WholeRow<'_>, BadRow>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[lines.file];
        let layout = self.provisional_layout(file);
        let layout = layout.as_ref().unwrap_or_else(|| self.row_layout());
        let before = file.first_number().unwrap_or(1) - 1;
        let ParseScratch {
            values,
            cells,
            decoded,
            ..
        } = scratch;
        self.visit_lines(lines, None, decoded, |position, row| {
            // The parser of single fields says what is wrong with a row.
            let fields = row.and_then(|row| {
                self.parse_row(file, layout, row, values, cells)?;
                self.fields_of_line(file, row)
            });
            match fields {
                Err(reason) => visit(Err(position.bad_row_for(reason))),
                Ok(fields) => visit(Ok(WholeRow {
                    file,
                    number: position.number - before,
                    line: position.line,
                    fields,
                })),
            }
        })
    }

    /// Returns the fields of a row of JSON or of CSV that is not malformed.
    fn fields_of_line(
        &self,
        file: &InputFile,
        row: &str,
    ) -> std::result::Result<Map<String, Value>, String> {
        if file.input_format().is_plain_text() {
            return Err("the row is plain text, which has no fields".to_owned());
        }
        if let Some(names) = file.column_names() {
            let cells = file.split_cells(row).into_iter().map(Value::String);
            return Ok(names.iter().cloned().zip(cells).collect());
        }
        json::parse_fields(row, self.options.invalid_text)
    }

    fn visit_whole_columns(
        &self,
        packed: &ColumnBlock,
        visit: &mut dyn FnMut(std::result::Result<WholeRow<'_>, BadRow>) -> Result<()>,
    ) -> Result<()> {
        let file = &self.files[packed.file];
        let mut json = Vec::new();
        packed
            .portion
            .visit_batches(file.display_name(), |(batch, first)| {
                let rows = JsonRows::new(&batch)
                    .map_err(|error| file.unreadable_columns(&error.to_string()))?;
                for at in 0..batch.num_rows() {
                    json.clear();
                    rows.append_open_row(at, &mut json);
                    json.push(b'}');
                    let line = first + at as u64 + 1;
                    let position = RowPosition {
                        file: file.display_name(),
                        line,
                        number: packed.number + line - 1,
                        place: RowPlace::new(self.bases[packed.file], 0),
                    };
                    // Values that are nested too deeply cannot be parsed.
                    match serde_json::from_slice(&json) {
                        Err(error) => visit(Err(position.bad_row_for(error.to_string())))?,
                        Ok(fields) => visit(Ok(WholeRow {
                            file,
                            number: line,
                            line,
                            fields,
                        }))?,
                    }
                }
                Ok(())
            })?;
        file.check_unchanged()
    }
}

fn has_no_fields(file: &InputFile) -> Error {
    Error::usage_error(format!(
        "{} is {}, whose rows have no fields",
        file.display_name(),
        file.input_format().descriptor().contents
    ))
}

/// Reads the rows with these line numbers, which ascend, and calls `visit` with each as a JSON object.
pub(super) fn visit_whole_rows(
    file: &InputFile,
    rows: &[BadRow],
    visit: &mut RowVisitor<'_>,
) -> Result<()> {
    match file.input_format() {
        InputFormat::Arrow => visit_arrow_rows(file, rows, visit),
        _ => visit_parquet_rows(file, rows, visit),
    }
}

fn visit_parquet_rows(file: &InputFile, rows: &[BadRow], visit: &mut RowVisitor<'_>) -> Result<()> {
    let handle = file.open_positioned()?;
    let broken = |reason: String| file.unreadable_columns(&reason);
    let mut selectors = Vec::new();
    let mut next = 0;
    for row in rows {
        let at = (row.line - 1) as usize;
        if at > next {
            selectors.push(RowSelector::skip(at - next));
        }
        selectors.push(RowSelector::select(1));
        next = at + 1;
    }
    let batches = load_metadata(&handle)
        .and_then(|metadata| {
            open_batches(&handle, &metadata, |builder| {
                builder
                    .with_row_selection(RowSelection::from(selectors))
                    .with_batch_size(BATCH_ROWS)
            })
        })
        .map_err(|error| broken(error.to_string()))?;
    let mut rows = rows.iter();
    for batch in batches {
        let batch = batch.map_err(|error| broken(error.to_string()))?;
        for at in 0..batch.num_rows() {
            if let Some(row) = rows.next() {
                let json = row_to_json(&batch, at).map_err(|error| broken(error.to_string()))?;
                visit(row, &json)?;
            }
        }
    }
    match rows.next() {
        None => Ok(()),
        Some(row) => Err(cannot_read_again(file, row)),
    }
}

fn visit_arrow_rows(file: &InputFile, rows: &[BadRow], visit: &mut RowVisitor<'_>) -> Result<()> {
    let arrow = ArrowFile::open_input(file)?;
    let mut rows = rows.iter().peekable();
    for index in 0..arrow.batch_count() {
        let within = arrow.batch_rows(index);
        if rows.peek().is_none_or(|row| row.line > within.end) {
            continue;
        }
        let batch = arrow.read_batch(file.display_name(), index, None)?;
        while let Some(row) = rows.next_if(|row| row.line <= within.end) {
            let at = (row.line - 1).checked_sub(within.start);
            let at = at.ok_or_else(|| cannot_read_again(file, row))?;
            let json = row_to_json(&batch, at as usize);
            visit(
                row,
                &json.map_err(|error| file.unreadable_columns(&error.to_string()))?,
            )?;
        }
    }
    match rows.next() {
        None => Ok(()),
        Some(row) => Err(cannot_read_again(file, row)),
    }
}

fn cannot_read_again(file: &InputFile, row: &BadRow) -> Error {
    file.unreadable_columns(&format!("row {} cannot be read again", row.line))
}
