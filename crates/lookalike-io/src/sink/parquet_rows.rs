//! Kept rows of Parquet: all columns with their types, filtered by row number.
//!
//! The row groups of the inputs, divided if they are large, are read and filtered in parallel. If they are written as
//! Parquet again, each column keeps its compression, and the file keeps its key-value metadata.

use std::ops::Range;

use arrow_schema::SchemaRef;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection, RowSelector};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;

use super::column_rows::{BatchVisitor, ColumnRows, TASK_BYTES, kept_rows_of};
use super::kept_rows::{OutputPart, WriteJob, refuse_other_columns};
use crate::error::{Error, Result};
use crate::source::{InputFile, PositionedFile, load_metadata, open_batches};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 256;

/// The kept rows of some inputs.
pub(super) struct ParquetRows<'a> {
    job: &'a WriteJob<'a>,
    opened: Vec<OpenParquetInput<'a>>,
    tasks: Vec<RowGroupTask>,
}

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

impl<'a> ParquetRows<'a> {
    /// Opens the inputs of a part and verifies that they have the same columns.
    pub(super) fn open_inputs(job: &'a WriteJob<'a>, part: &OutputPart) -> Result<Self> {
        let opened = open_inputs(job, part)?;
        let tasks = divide_row_groups(job, &opened);
        Ok(Self { job, opened, tasks })
    }
}

impl ColumnRows for ParquetRows<'_> {
    fn schema(&self) -> &SchemaRef {
        self.opened[0].metadata.schema()
    }

    fn first_name(&self) -> &str {
        self.opened[0].input.display_name()
    }

    fn task_count(&self) -> usize {
        self.tasks.len()
    }

    fn task_rows(&self, task: usize) -> usize {
        self.tasks[task].rows.len()
    }

    fn visit_task(&self, task: usize, visit: &mut BatchVisitor<'_>) -> Result<()> {
        let task = &self.tasks[task];
        visit_row_group(self.job, &self.opened[task.opened], task, visit)
    }

    fn parquet_properties(&self) -> WriterProperties {
        properties(&self.opened[0].metadata)
    }
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
        let metadata = load_metadata(&file).map_err(|error| unreadable(input, error))?;
        if let Some(first) = all.first() {
            refuse_other_columns(
                first.input,
                first.metadata.schema(),
                input,
                metadata.schema(),
                &part.output,
            )?;
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
        if row_in_file(job, file, middle) < row {
            low = middle + 1
        } else {
            high = middle
        }
    }
    low
}

fn row_in_file(job: &WriteJob<'_>, file: &OpenParquetInput<'_>, row: usize) -> u64 {
    job.rows.row_number(row) - file.input.first_number().unwrap_or(1)
}

/// Reads and filters the rows of a task.
fn visit_row_group(
    job: &WriteJob<'_>,
    file: &OpenParquetInput<'_>,
    task: &RowGroupTask,
    visit: &mut BatchVisitor<'_>,
) -> Result<()> {
    let kept = kept_rows_of(job, task.rows.clone());
    let failed = |error| unreadable(file.input, error);
    let batches = open_batches(&file.file, &file.metadata, |builder| {
        builder
            .with_row_groups(vec![task.group])
            .with_row_selection(select_rows(job, file, task, &kept))
            .with_batch_size(BATCH_ROWS)
    });
    let mut passed = 0;
    for batch in batches.map_err(failed)? {
        let batch = batch.map_err(|error| failed(error.into()))?;
        let rows = &kept[passed..(passed + batch.num_rows()).min(kept.len())];
        passed += batch.num_rows();
        visit(batch, rows)?;
    }
    if passed == kept.len() {
        return Ok(());
    }
    let reason = format!(
        "{passed} rows were found, but {} were read before",
        kept.len()
    );
    Err(failed(ParquetError::General(reason)))
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
