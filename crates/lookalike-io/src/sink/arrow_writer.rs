//! Rows as an Arrow file or an Arrow stream. Each task becomes a record batch; threads decode different ones, which
//! are written in order.
//!
//! A column with a dictionary keeps its type only if all batches have one dictionary. Otherwise it is written as
//! plain values, because a file has a single dictionary for each column, and a stream would repeat it for each batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;

use super::OutputTarget;
use super::column_rows::{ColumnRows, changed_columns, output_schema};
use super::kept_rows::WriteJob;
use super::output_stream::{OpenOutput, OutputStream};
use crate::error::{Error, ErrorKind, Result};
use crate::ordered_results::work_in_order;
use crate::source::plain_values;

/// Batches of a task are joined up to this size in bytes, so that offsets of 32 bits suffice.
const MAX_JOINED_BYTES: usize = 512 << 20;

/// A writer of a file or of a stream.
pub(super) enum ArrowSink {
    File(Box<FileWriter<OutputStream>>),
    Stream(Box<StreamWriter<OutputStream>>),
}

impl ArrowSink {
    /// Starts a file, or a stream.
    pub(super) fn start(
        stream: OutputStream,
        schema: &Schema,
        compression: Option<CompressionType>,
        is_stream: bool,
    ) -> Result<Self, ArrowError> {
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        Ok(if is_stream {
            let writer = StreamWriter::try_new_with_options(stream, schema, options)?;
            Self::Stream(Box::new(writer))
        } else {
            let writer = FileWriter::try_new_with_options(stream, schema, options)?;
            Self::File(Box::new(writer))
        })
    }

    /// Writes a record batch.
    pub(super) fn write_batch(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
    }

    /// Writes the end and returns the stream beneath.
    pub(super) fn finish(self) -> Result<OutputStream, ArrowError> {
        match self {
            Self::File(writer) => writer.into_inner(),
            Self::Stream(writer) => writer.into_inner(),
        }
    }
}

/// Returns the error for a failure of the writer, which may be caused by the output beneath it.
pub(super) fn unwritable_arrow(name: &str, error: ArrowError) -> Error {
    let is_closed = matches!(&error, ArrowError::IoError(_, cause)
        if cause.kind() == std::io::ErrorKind::BrokenPipe);
    let kind = if is_closed {
        ErrorKind::BrokenPipe
    } else {
        ErrorKind::Output
    };
    Error::new(kind, format!("cannot write {name}: {error}")).with_source(error)
}

/// Writes all tasks. The returned target is still to be sealed.
pub(super) fn write_arrow(
    job: &WriteJob<'_>,
    source: &dyn ColumnRows,
    output: &OutputTarget,
    target: OpenOutput,
    is_stream: bool,
) -> Result<(OpenOutput, u64)> {
    let name = output.to_string();
    let failed = |error| unwritable_arrow(&name, error);
    let decoded = output_schema(source, job.options.change.added_fields())?;
    let keeps_dictionaries = source.has_fixed_dictionaries();
    let schema = if keeps_dictionaries {
        Arc::clone(&decoded)
    } else {
        plain_schema(&decoded)
    };
    let stream = OutputStream::new(output, target, 1)?;
    let mut sink =
        ArrowSink::start(stream, &schema, source.arrow_compression(), is_stream).map_err(failed)?;
    work_in_order(
        source.task_count(),
        job.options.threads,
        || (),
        |task, ()| {
            let mut batches = Vec::new();
            source.visit_task(task, &mut |batch, rows| {
                let mut columns = changed_columns(job, source, &batch, rows)?;
                if !keeps_dictionaries {
                    let plain = columns.iter().map(plain_column);
                    columns = plain.collect::<Result<_, _>>().map_err(failed)?;
                }
                let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
                let batch =
                    RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options);
                batches.push(batch.map_err(failed)?);
                Ok(())
            })?;
            let batches = join_batches(&schema, batches).map_err(failed)?;
            Ok((batches, source.task_rows(task)))
        },
        |(batches, rows), ()| {
            (job.progress)(rows as u64);
            let mut batches = batches.iter().filter(|batch| batch.num_rows() > 0);
            batches
                .try_for_each(|batch| sink.write_batch(batch))
                .map_err(failed)
        },
    )?;
    sink.finish().map_err(failed)?.finish_stream()
}

/// Joins the batches of a task, unless they are very large.
fn join_batches(
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<Vec<RecordBatch>, ArrowError> {
    let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    if batches.len() > 1 && bytes <= MAX_JOINED_BYTES {
        Ok(vec![concat_batches(schema, &batches)?])
    } else {
        Ok(batches)
    }
}

fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = plain_fields(schema.fields());
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_fields(fields: &Fields) -> Fields {
    fields.iter().map(plain_field).collect()
}

fn plain_field(field: &Arc<Field>) -> Arc<Field> {
    let data_type = plain_type(field.data_type());
    if &data_type == field.data_type() {
        Arc::clone(field)
    } else {
        Arc::new(
            Field::new(field.name(), data_type, field.is_nullable())
                .with_metadata(field.metadata().clone()),
        )
    }
}

/// Returns a type in which values stand instead of dictionaries.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) => DataType::LargeList(plain_field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(plain_field(item), *size),
        DataType::Struct(fields) => DataType::Struct(plain_fields(fields)),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries), *sorted),
        other => other.clone(),
    }
}

/// Returns a column in which values stand instead of dictionaries.
fn plain_column(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data_type = plain_type(column.data_type());
    if &data_type == column.data_type() {
        return Ok(Arc::clone(column));
    }
    if column.as_any_dictionary_opt().is_some() {
        return plain_column(&plain_values(column)?);
    }
    let data = column.to_data();
    let children = (data.child_data().iter())
        .map(|child| Ok(plain_column(&make_array(child.clone()))?.to_data()))
        .collect::<Result<Vec<_>, ArrowError>>()?;
    let plain = data
        .into_builder()
        .data_type(data_type)
        .child_data(children);
    Ok(make_array(plain.build()?))
}
