//! Kept rows of Parquet: all columns with their types, filtered by row number.
//!
//! The row groups of the inputs, divided if they are large, are read, filtered and encoded in parallel.
//! They become row groups of the output in input order. Each column keeps its compression, and the file
//! keeps its key-value metadata.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter};
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;

use super::kept_rows::{OutputPart, WriteJob};
use super::output_stream::{OpenOutput, OutputStream};
use super::table::unwritable;
use super::{AddedField, AddedFields, AddedValue, LeftOutText, RowChange};
use crate::error::{Error, Result};
use crate::ordered_results::work_in_order;
use crate::source::{InputFile, PositionedFile, to_large_strings};

/// Uncompressed bytes of input in one task. Tasks are small because rows differ much in length, and all
/// threads should finish at about the same time.
const TASK_BYTES: u64 = 16 << 20;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 256;

/// An opened input.
struct OpenParquetInput<'a> {
    input: &'a InputFile,
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    /// Indices of its rows in the row set.
    rows: Range<usize>,
}

/// Some rows of one row group.
struct RowGroupTask {
    opened: usize,
    group: usize,
    /// Number of the file's rows before the group.
    group_start: u64,
    /// Indices of the rows in the row set.
    rows: Range<usize>,
}

/// Writes the rows of a part. The returned target is still to be sealed.
pub(super) fn write_parquet(
    job: &WriteJob<'_>,
    part: &OutputPart,
    target: OpenOutput,
) -> Result<(OpenOutput, u64)> {
    let opened = open_inputs(job, part)?;
    let name = part.output.to_string();
    let failed = |error| unwritable(&name, error);
    let stream = OutputStream::new(&part.output, target, 1)?;
    let Some(first) = opened.first() else {
        return stream.finish_stream();
    };
    let schema = output_schema(first, job.options.change.added_fields())?;
    let options = ArrowWriterOptions::new().with_properties(properties(&first.metadata));
    let writer = ArrowWriter::try_new_with_options(stream, Arc::clone(&schema), options);
    let (mut writer, factory) = writer
        .and_then(ArrowWriter::into_serialized_writer)
        .map_err(failed)?;
    let tasks = divide_row_groups(job, &opened);
    work_in_order(
        tasks.len(),
        job.options.threads,
        || (),
        |index, ()| {
            let task = &tasks[index];
            let chunks = encode_task(job, &opened[task.opened], task, index, &schema, &factory)?;
            Ok((chunks, task.rows.len()))
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

fn unreadable(input: &InputFile, error: ParquetError) -> Error {
    Error::input_error(format!(
        "cannot read {} as Parquet: {error}",
        input.display_name()
    ))
    .with_source(error)
}

/// Opens the inputs of a part and verifies that they have the same columns.
fn open_inputs<'a>(job: &WriteJob<'a>, part: &OutputPart) -> Result<Vec<OpenParquetInput<'a>>> {
    let mut all: Vec<OpenParquetInput<'a>> = Vec::new();
    for index in part.files.clone() {
        let input = &job.inputs.input_files()[index];
        let file = input.open_positioned()?;
        let metadata = ArrowReaderMetadata::load(&file, Default::default())
            .map_err(|error| unreadable(input, error))?;
        if let Some(first) = all.first()
            && first.metadata.schema().fields() != metadata.schema().fields()
        {
            return Err(Error::input_error(format!(
                "{} and {} have different columns and cannot go into one output, {}",
                first.input.display_name(),
                input.display_name(),
                part.output
            )));
        }
        let rows = job
            .part_of_inputs(part.output.clone(), index..index + 1)
            .rows;
        all.push(OpenParquetInput {
            input,
            file,
            metadata,
            rows,
        });
    }
    Ok(all)
}

/// Returns the columns of the output.
fn output_schema(
    first: &OpenParquetInput<'_>,
    added: Option<&AddedFields<'_>>,
) -> Result<SchemaRef> {
    let schema = first.metadata.schema();
    let Some(added) = added else {
        return Ok(Arc::clone(schema));
    };
    let mut fields = schema.fields().to_vec();
    for &AddedField { name, is_number } in added.fields {
        if schema.fields().find(name).is_some() {
            return Err(Error::input_error(format!(
                "{} already has a column `{name}`",
                first.input.display_name()
            )));
        }
        let data_type = if is_number {
            DataType::Float64
        } else {
            DataType::Utf8
        };
        // The first column has a value in every row.
        let is_nullable = fields.len() > schema.fields().len();
        fields.push(Arc::new(Field::new(name, data_type, is_nullable)));
    }
    Ok(Arc::new(Schema::new_with_metadata(
        fields,
        schema.metadata().clone(),
    )))
}

/// Returns the compression of each column and the metadata of the file.
fn properties(metadata: &ArrowReaderMetadata) -> WriterProperties {
    let metadata: &ParquetMetaData = metadata.metadata();
    let mut properties = WriterProperties::builder();
    for column in metadata
        .row_groups()
        .first()
        .iter()
        .flat_map(|group| group.columns())
    {
        let compression = match column.compression() {
            // The framing of the old LZ4 codec can no longer be written.
            Compression::LZ4 => Compression::LZ4_RAW,
            other => other,
        };
        properties = properties.set_column_compression(column.column_path().clone(), compression);
    }
    // The writer adds the schema itself.
    let pairs = metadata.file_metadata().key_value_metadata().map(|pairs| {
        pairs
            .iter()
            .filter(|pair| pair.key != ARROW_SCHEMA_META_KEY)
            .cloned()
            .collect::<Vec<_>>()
    });
    properties
        .set_key_value_metadata(pairs.filter(|pairs| !pairs.is_empty()))
        .build()
}

/// Divides the row groups of the inputs into tasks. Ranges without a kept row are left out.
fn divide_row_groups(job: &WriteJob<'_>, opened: &[OpenParquetInput<'_>]) -> Vec<RowGroupTask> {
    let mut tasks = Vec::new();
    for (index, file) in opened.iter().enumerate() {
        let mut group_start = 0;
        for (group, metadata) in file.metadata.metadata().row_groups().iter().enumerate() {
            let group_rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
            let bytes = u64::try_from(metadata.total_byte_size()).unwrap_or(0);
            let usual = bytes / group_rows.max(1);
            let mut first = first_row_at(job, file, group_start);
            let end = first_row_at(job, file, group_start + group_rows);
            while first < end {
                let last = find_task_end(job, first..end, usual);
                if (first..last).any(|row| job.rows.is_kept(row)) {
                    tasks.push(RowGroupTask {
                        opened: index,
                        group,
                        group_start,
                        rows: first..last,
                    });
                }
                first = last;
            }
            group_start += group_rows;
        }
    }
    tasks
}

/// Returns the end of a task that begins at the start of `rows`. A row counts with the bytes of its
/// place, but with no less than the average of its row group, because it may have columns that were not
/// read.
fn find_task_end(job: &WriteJob<'_>, rows: Range<usize>, usual: u64) -> usize {
    let mut bytes = 0;
    for row in rows.clone() {
        bytes += u64::from(job.rows.place_of(row).byte_length()).max(usual);
        if bytes >= TASK_BYTES {
            return row + 1;
        }
    }
    rows.end
}

/// Returns the first row of the set at or after a row of the file.
fn first_row_at(job: &WriteJob<'_>, file: &OpenParquetInput<'_>, row: u64) -> usize {
    let (mut low, mut high) = (file.rows.start, file.rows.end);
    while low < high {
        let middle = low + (high - low) / 2;
        match row_in_file(job, file, middle) < row {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

fn row_in_file(job: &WriteJob<'_>, file: &OpenParquetInput<'_>, row: usize) -> u64 {
    job.rows.row_number(row) - file.input.first_number().unwrap_or(1)
}

/// Reads, filters and encodes the rows of a task.
fn encode_task(
    job: &WriteJob<'_>,
    file: &OpenParquetInput<'_>,
    task: &RowGroupTask,
    index: usize,
    schema: &SchemaRef,
    factory: &ArrowRowGroupWriterFactory,
) -> Result<Vec<ArrowColumnChunk>> {
    let kept: Vec<usize> = task
        .rows
        .clone()
        .filter(|&row| job.rows.is_kept(row))
        .collect();
    let failed = |error| unreadable(file.input, error);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
        file.file.clone(),
        file.metadata.clone(),
    )
    .with_row_groups(vec![task.group])
    .with_row_selection(select_rows(job, file, task, &kept))
    .with_batch_size(BATCH_ROWS)
    .build()
    .map_err(failed)?;
    let mut writers = factory.create_column_writers(index).map_err(failed)?;
    let mut passed = 0;
    for batch in reader {
        let batch = batch.map_err(|error| failed(error.into()))?;
        let rows = &kept[passed..(passed + batch.num_rows()).min(kept.len())];
        passed += batch.num_rows();
        let columns = changed_columns(job, file, batch, rows)?;
        let mut leaves = writers.iter_mut();
        for (field, column) in schema.fields().iter().zip(&columns) {
            for leaf in compute_leaves(field, column).map_err(failed)? {
                if let Some(writer) = leaves.next() {
                    writer.write(&leaf).map_err(failed)?;
                }
            }
        }
    }
    if passed != kept.len() {
        let reason = format!(
            "{passed} rows were found, but {} were read before",
            kept.len()
        );
        return Err(failed(ParquetError::General(reason)));
    }
    writers
        .into_iter()
        .map(|writer| writer.close().map_err(failed))
        .collect()
}

/// Returns the selection of a task's kept rows within its row group.
fn select_rows(
    job: &WriteJob<'_>,
    file: &OpenParquetInput<'_>,
    task: &RowGroupTask,
    kept: &[usize],
) -> RowSelection {
    let mut selectors: Vec<RowSelector> = Vec::new();
    let mut at = 0;
    for &row in kept {
        let row = (row_in_file(job, file, row) - task.group_start) as usize;
        if row > at {
            selectors.push(RowSelector::skip(row - at));
        }
        match selectors.last_mut() {
            Some(last) if !last.skip => last.row_count += 1,
            _ => selectors.push(RowSelector::select(1)),
        }
        at = row + 1;
    }
    RowSelection::from(selectors)
}

/// Returns the columns of some rows as they are written.
fn changed_columns(
    job: &WriteJob<'_>,
    file: &OpenParquetInput<'_>,
    batch: RecordBatch,
    rows: &[usize],
) -> Result<Vec<ArrayRef>> {
    let mut columns = batch.columns().to_vec();
    match job.options.change {
        RowChange::Unchanged => {}
        RowChange::AddFields(fields) => columns.extend(added_columns(fields, rows)?),
        RowChange::CutText(left_out) => {
            let field = job.inputs.first_text_field();
            let schema = batch.schema();
            let (at, _) = schema.column_with_name(field).ok_or_else(|| {
                Error::usage_error(format!(
                    "the text `{field}` of {} is within a column: text can be cut in a column of its own",
                    file.input.display_name()
                ))
            })?;
            columns[at] = cut_column(file, &columns[at], rows, left_out)?;
        }
    }
    Ok(columns)
}

/// Returns the values of added fields as columns.
fn added_columns(fields: &AddedFields<'_>, rows: &[usize]) -> Result<Vec<ArrayRef>> {
    let values = rows.iter().map(|&row| (fields.values)(row));
    let values: Vec<Vec<AddedValue>> = values.collect::<Result<_>>()?;
    let column = |(at, field): (usize, &AddedField)| -> ArrayRef {
        let values = values.iter().map(|row| &row[at]);
        match field.is_number {
            true => Arc::new(values.map(number_of).collect::<Float64Array>()),
            false => Arc::new(values.map(text_of).collect::<StringArray>()),
        }
    };
    Ok(fields.fields.iter().enumerate().map(column).collect())
}

fn number_of(value: &AddedValue) -> Option<f64> {
    match value {
        AddedValue::Number(number) => Some(*number),
        AddedValue::Text(_) | AddedValue::Json(_) | AddedValue::Null => None,
    }
}

fn text_of(value: &AddedValue) -> Option<&str> {
    match value {
        AddedValue::Text(text) | AddedValue::Json(text) => Some(text),
        AddedValue::Number(_) | AddedValue::Null => None,
    }
}

/// Returns a column of texts, of which parts are left out, with its type.
fn cut_column(
    file: &OpenParquetInput<'_>,
    column: &ArrayRef,
    rows: &[usize],
    left_out: &(dyn Fn(usize) -> Option<LeftOutText> + Sync),
) -> Result<ArrayRef> {
    let left_out: Vec<_> = rows.iter().map(|&row| left_out(row)).collect();
    if left_out.iter().all(Option::is_none) {
        return Ok(Arc::clone(column));
    }
    let failed =
        |reason: String| Error::input_error(format!("{}: {reason}", file.input.display_name()));
    let wide = to_large_strings(column).map_err(|it| failed(it.to_string()))?;
    let texts = wide.iter().zip(&left_out);
    let texts = texts.map(|(text, left_out)| match (text, left_out) {
        (Some(text), Some(left_out)) => left_out.cut_text(text).map(Some).map_err(failed),
        (text, _) => Ok(text.map(str::to_owned)),
    });
    let texts = texts.collect::<Result<Vec<Option<String>>>>()?;
    match column.data_type() {
        DataType::Utf8 => Ok(Arc::new(StringArray::from(texts))),
        DataType::LargeUtf8 => Ok(Arc::new(LargeStringArray::from(texts))),
        DataType::Utf8View => Ok(Arc::new(texts.into_iter().collect::<StringViewArray>())),
        other => Err(failed(format!(
            "text can be cut in columns of strings, and this one has the type {other}"
        ))),
    }
}
