//! Rows as Parquet. Each task becomes a row group; threads encode different ones, which are appended in order.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::{ParquetError, Result as ParquetResult};

use super::OutputTarget;
use super::column_rows::{ColumnRows, changed_columns, output_schema};
use super::conversion::{ColumnTarget, check_schema};
use super::kept_rows::WriteJob;
use super::output_stream::{OpenOutput, OutputStream};
use super::table::unwritable;
use crate::error::Result;
use crate::ordered_results::work_in_order;

/// Writes all tasks. The returned target is still to be sealed.
pub(super) fn write_parquet(
    job: &WriteJob<'_>,
    source: &dyn ColumnRows,
    output: &OutputTarget,
    target: OpenOutput,
) -> Result<(OpenOutput, u64)> {
    let name = output.to_string();
    let failed = |error| unwritable(&name, error);
    let schema = output_schema(source, job.options.change.added_fields())?;
    check_schema(source.first_name(), &schema, ColumnTarget::Parquet, output)?;
    let stream = OutputStream::new(output, target, 1)?;
    let options = ArrowWriterOptions::new().with_properties(source.parquet_properties());
    let writer = ArrowWriter::try_new_with_options(stream, Arc::clone(&schema), options);
    let (mut writer, factory) = writer
        .and_then(ArrowWriter::into_serialized_writer)
        .map_err(failed)?;
    work_in_order(
        source.task_count(),
        job.options.threads,
        || (),
        |task, ()| {
            let chunks = encode_task(job, source, task, &schema, &factory, &failed)?;
            Ok((chunks, source.task_rows(task)))
        },
        |(chunks, rows), ()| {
            (job.progress)(rows as u64);
            append_row_group(&mut writer, chunks).map_err(failed)
        },
    )?;
    writer.into_inner().map_err(failed)?.finish_stream()
}

fn append_row_group(
    writer: &mut parquet::file::writer::SerializedFileWriter<OutputStream>,
    chunks: Vec<ArrowColumnChunk>,
) -> ParquetResult<()> {
    if chunks.is_empty() {
        return Ok(());
    }
    let mut group = writer.next_row_group()?;
    for chunk in chunks {
        chunk.append_to_row_group(&mut group)?;
    }
    group.close().map(|_| ())
}

/// Reads, filters and encodes the rows of a task.
fn encode_task(
    job: &WriteJob<'_>,
    source: &dyn ColumnRows,
    task: usize,
    schema: &SchemaRef,
    factory: &ArrowRowGroupWriterFactory,
    failed: &dyn Fn(ParquetError) -> crate::error::Error,
) -> Result<Vec<ArrowColumnChunk>> {
    let mut writers = factory.create_column_writers(task).map_err(failed)?;
    source.visit_task(task, &mut |batch, rows| {
        let columns = changed_columns(job, source, &batch, rows)?;
        let mut leaves = writers.iter_mut();
        for (field, column) in schema.fields().iter().zip(&columns) {
            for leaf in compute_leaves(field, column).map_err(failed)? {
                if let Some(writer) = leaves.next() {
                    writer.write(&leaf).map_err(failed)?;
                }
            }
        }
        Ok(())
    })?;
    writers
        .into_iter()
        .map(|writer| writer.close().map_err(failed))
        .collect()
}
