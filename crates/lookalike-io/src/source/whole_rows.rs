//! Complete rows of Parquet and Arrow, all columns, as JSON. They are for the rows that could not be used, and for
//! showing the fields of an input.
//!
//! Cost: the pages of Parquet, or the record batches of Arrow, that contain the wanted rows are decoded again, in one
//! pass per call.

use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

use super::arrow_file::ArrowFile;
use super::column_json::row_to_json;
use super::file::InputFile;
use super::parquet_file::{load_metadata, open_batches};
use super::{BadRow, InputFormat};
use crate::error::Result;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 64;

/// Receives a row as a JSON object.
type RowVisitor<'a> = dyn FnMut(&BadRow, &str) -> Result<()> + 'a;

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

fn cannot_read_again(file: &InputFile, row: &BadRow) -> crate::error::Error {
    file.unreadable_columns(&format!("row {} cannot be read again", row.line))
}
