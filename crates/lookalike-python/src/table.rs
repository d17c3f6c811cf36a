//! Conversion of tables from and to Arrow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_pyarrow::{IntoPyArrow, PyArrowType, Table};
use arrow_schema::{DataType, SchemaRef};
use lookalike_io::sink::CollectedTable;
use lookalike_io::source;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::error::{InputError, run_error_to_py};

/// An object with `__arrow_c_stream__`.
pub(crate) type PyTableStream = PyArrowType<RecordBatchStreamReader>;

/// Takes the batches of a stream without copying their buffers; `name` denotes the table in
/// messages.
pub(crate) fn take_table(stream: PyTableStream, name: &str) -> PyResult<source::MemoryTable> {
    Ok(take_sized_table(stream, name)?.0)
}

/// Takes the batches of a stream as [`take_table`] does, and returns the bytes of their buffers too.
pub(crate) fn take_sized_table(
    stream: PyTableStream,
    name: &str,
) -> PyResult<(source::MemoryTable, usize)> {
    let reader = stream.0;
    let schema = reader.schema();
    let batches: Result<Vec<_>, _> = reader.collect();
    let batches =
        batches.map_err(|error| InputError::new_err(format!("cannot read {name}: {error}")))?;
    let bytes = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    let table = source::MemoryTable::new(name, schema, batches).map_err(run_error_to_py)?;
    Ok((table, bytes))
}

/// Empty tables of pyarrow that were made, by their schemas. Making one takes longer than a run that finds nothing in a
/// few texts.
static EMPTY_TABLES: Mutex<Vec<(SchemaRef, Py<PyAny>)>> = Mutex::new(Vec::new());

/// Largest number of empty tables that are kept.
const MOST_EMPTY_TABLES: usize = 16;

fn lock_empty_tables() -> MutexGuard<'static, Vec<(SchemaRef, Py<PyAny>)>> {
    EMPTY_TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find_empty_table(py: Python<'_>, schema: &SchemaRef) -> Option<Py<PyAny>> {
    let tables = lock_empty_tables();
    let (_, table) = tables.iter().find(|(known, _)| known == schema)?;
    Some(table.clone_ref(py))
}

/// Returns a table that a run wrote as a table of pyarrow.
pub(crate) fn give_table<'py>(
    py: Python<'py>,
    collected: &CollectedTable,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((schema, batches)) = collected.take_batches() else {
        return Ok(py.None().into_bound(py));
    };
    let is_empty = batches.iter().all(|batch| batch.num_rows() == 0);
    if is_empty && let Some(known) = find_empty_table(py, &schema) {
        return Ok(known.into_bound(py));
    }
    let table = Table::try_new(batches, Arc::clone(&schema));
    let table = table.map_err(|error| InputError::new_err(error.to_string()))?;
    let table = table.into_pyarrow(py)?;
    if is_empty {
        let mut tables = lock_empty_tables();
        if tables.len() < MOST_EMPTY_TABLES {
            tables.push((schema, table.clone().unbind()));
        }
    }
    Ok(table)
}

/// Returns the column `row` of a table that a run wrote.
pub(crate) fn give_rows<'py>(
    py: Python<'py>,
    collected: &CollectedTable,
) -> Bound<'py, PyArray1<i64>> {
    let batches = collected
        .take_batches()
        .map_or_else(Vec::new, |(_, batches)| batches);
    let mut rows = Vec::new();
    for column in batches
        .iter()
        .filter_map(|batch| batch.column_by_name("row"))
    {
        match column.data_type() {
            DataType::UInt64 => {
                let numbers = column.as_primitive::<UInt64Type>().values();
                rows.extend(numbers.iter().map(|&row| row as i64));
            }
            _ => rows.extend_from_slice(column.as_primitive::<Int64Type>().values()),
        }
    }
    rows.into_pyarray(py)
}
