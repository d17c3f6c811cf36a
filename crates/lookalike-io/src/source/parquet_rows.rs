//! Complete rows of Parquet, all columns, as JSON. They are for the rows that could not be used.
//!
//! Cost: the pages that contain the wanted rows are decoded again, in one pass per call.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use serde_json::{Map, Number, Value};

use super::BadRow;
use super::columnar::{plain_numbers, unreadable};
use super::convert::to_large_strings;
use super::file::InputFile;
use crate::error::Result;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 64;

/// Reads the rows with these line numbers, which ascend, and calls `visit` with each as a JSON object.
pub(super) fn visit_whole_rows(
    file: &InputFile,
    rows: &[BadRow],
    visit: &mut dyn FnMut(&BadRow, &str) -> Result<()>,
) -> Result<()> {
    let name = file.display_name();
    let handle = file.open_positioned()?;
    let broken = |reason: String| unreadable(name, &reason);
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
    let reader = ParquetRecordBatchReaderBuilder::try_new(handle)
        .and_then(|builder| {
            builder
                .with_row_selection(RowSelection::from(selectors))
                .with_batch_size(BATCH_ROWS)
                .build()
        })
        .map_err(|error| broken(error.to_string()))?;
    let mut rows = rows.iter();
    for batch in reader {
        let batch = batch.map_err(|error| broken(error.to_string()))?;
        for at in 0..batch.num_rows() {
            if let Some(row) = rows.next() {
                visit(row, &row_to_json(&batch, at))?;
            }
        }
    }
    match rows.next() {
        None => Ok(()),
        Some(row) => Err(broken(format!("row {} cannot be read again", row.line))),
    }
}

/// Returns a row as a JSON object; the columns keep their order.
fn row_to_json(batch: &RecordBatch, row: usize) -> String {
    let mut json = String::from("{");
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&Value::from(field.name().as_str()).to_string());
        json.push(':');
        json.push_str(&value_json(column, row).to_string());
    }
    json.push('}');
    json
}

/// Returns a value as JSON. Times are seconds since 1970, and bytes that are not text are hexadecimal
/// digits.
fn value_json(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let items = |items: ArrayRef| (0..items.len()).map(|at| value_json(&items, at)).collect();
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Binary => bytes_json(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes_json(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes_json(array.as_binary_view().value(row)),
        DataType::List(_) => items(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => items(array.as_list::<i64>().value(row)),
        DataType::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            let members =
                members.map(|(field, column)| (field.name().clone(), value_json(column, row)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let pair = |at| [0, 1].map(|column| value_json(entries.column(column), at));
            (0..entries.len())
                .map(|at| Value::from(pair(at).to_vec()))
                .collect()
        }
        _ => plain_json(&array.slice(row, 1)),
    }
}

/// Returns the string or number of an array with one row.
fn plain_json(array: &ArrayRef) -> Value {
    if let Ok(digits) = plain_numbers(array) {
        let number: Option<Number> = digits.parse().ok();
        return number.map_or(Value::String(digits), Value::Number);
    }
    match to_large_strings(array) {
        Ok(strings) if strings.is_valid(0) => strings.value(0).into(),
        Ok(_) => Value::Null,
        Err(_) => format!("({})", array.data_type()).into(),
    }
}

fn bytes_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
            .into(),
    }
}
