//! Conversion of tables from and to Arrow.

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::{IntoPyArrow, PyArrowType, Table};
use lookalike_io::sink::CollectedTable;
use lookalike_io::source;
use pyo3::prelude::*;

use crate::error::{InputError, run_error_to_py};

/// An object with `__arrow_c_stream__`.
pub(crate) type PyTableStream = PyArrowType<RecordBatchStreamReader>;

/// Takes the batches of a stream without copying their buffers; `name` denotes the table in
/// messages.
pub(crate) fn take_table(stream: PyTableStream, name: &str) -> PyResult<source::MemoryTable> {
    let reader = stream.0;
    let schema = reader.schema();
    let batches: Result<Vec<_>, _> = reader.collect();
    let batches =
        batches.map_err(|error| InputError::new_err(format!("cannot read {name}: {error}")))?;
    source::MemoryTable::new(name, schema, batches).map_err(run_error_to_py)
}

/// Returns a table that a run wrote as a table of pyarrow.
pub(crate) fn give_table<'py>(
    py: Python<'py>,
    collected: &CollectedTable,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((schema, batches)) = collected.take_batches() else {
        return Ok(py.None().into_bound(py));
    };
    let table = Table::try_new(batches, schema);
    let table = table.map_err(|error| InputError::new_err(error.to_string()))?;
    table.into_pyarrow(py)
}
