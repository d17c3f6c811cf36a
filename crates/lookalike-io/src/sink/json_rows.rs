//! Kept rows of JSON as columns.
//!
//! The rows are read twice: first for the types of their fields, then for their values. Both times threads read
//! different tasks, and the memory holds one chunk of rows for each thread.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::column_rows::{BatchVisitor, ColumnRows, TASK_BYTES};
use super::json_columns::JsonBatchBuilder;
use super::json_types::{JsonType, TypeConflict};
use super::json_value::JsonValue;
use super::kept_rows::{CHUNK_BYTES, OutputPart, RowChunk, WriteJob};
use crate::error::{Error, Result};
use crate::ordered_results::work_in_order;
use crate::source::trim_line_end;

/// Chunks of rows in one task.
const TASK_CHUNKS: usize = (TASK_BYTES / CHUNK_BYTES) as usize;

/// Largest row in bytes. A column of strings has offsets of 32 bits.
const MAX_ROW_BYTES: u32 = i32::MAX as u32;

/// The kept rows of some inputs.
pub(super) struct KeptJsonRows<'a> {
    job: &'a WriteJob<'a>,
    tasks: Vec<Vec<RowChunk>>,
    schema: SchemaRef,
    first_name: &'a str,
}

impl<'a> KeptJsonRows<'a> {
    /// Reads the inputs of a part and finds the types of their fields.
    ///
    /// # Errors
    /// If the values of a field have no common type. The message names the field and two rows.
    pub(super) fn open_inputs(job: &'a WriteJob<'a>, part: &OutputPart) -> Result<Self> {
        let mut chunks = job.divide_part(part, 0);
        let mut tasks = Vec::new();
        loop {
            let task: Vec<RowChunk> = chunks.by_ref().take(TASK_CHUNKS).collect();
            if task.is_empty() {
                break;
            }
            tasks.push(task);
        }
        let conflict = |conflict| describe_conflict(job, part, &conflict);
        let types = find_types(job, &tasks, &conflict)?;
        let schema = Schema::new(types.to_fields().map_err(conflict)?);
        let first = job.inputs.input_files()[part.files.clone()].first();
        Ok(Self {
            job,
            tasks,
            schema: Arc::new(schema),
            first_name: first.map_or("", |first| first.display_name()),
        })
    }
}

impl ColumnRows for KeptJsonRows<'_> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn first_name(&self) -> &str {
        self.first_name
    }

    fn task_count(&self) -> usize {
        self.tasks.len()
    }

    fn task_rows(&self, task: usize) -> usize {
        self.tasks[task].iter().map(|chunk| chunk.rows.len()).sum()
    }

    fn visit_task(&self, task: usize, visit: &mut BatchVisitor<'_>) -> Result<()> {
        let mut builder = JsonBatchBuilder::new(&self.schema);
        let (mut rows, mut bytes) = (Vec::new(), Vec::new());
        for chunk in &self.tasks[task] {
            rows.clear();
            visit_values(self.job, chunk, &mut bytes, &mut |row, value| {
                rows.push(row);
                let changed = |_| bad_row(self.job, row, "it was changed while it was being read");
                builder.append_row(&value).map_err(changed)
            })?;
            let batch = builder
                .finish_batch()
                .map_err(|error| Error::input_error(format!("{}: {error}", self.first_name)))?;
            visit(batch, &rows)?;
        }
        Ok(())
    }
}

/// Finds the common type of the rows of all tasks.
fn find_types(
    job: &WriteJob<'_>,
    tasks: &[Vec<RowChunk>],
    conflict: &(dyn Fn(TypeConflict) -> Error + Sync),
) -> Result<JsonType> {
    let mut types = JsonType::default();
    work_in_order(
        tasks.len(),
        job.options.threads,
        Vec::new,
        |task, bytes| {
            let mut types = JsonType::default();
            for chunk in &tasks[task] {
                visit_values(job, chunk, bytes, &mut |row, value| {
                    types.add_value(&value, row).map_err(conflict)
                })?;
            }
            Ok(types)
        },
        |later, _| types.merge_later(later).map_err(conflict),
    )?;
    Ok(types)
}

/// Parses the kept rows of a chunk and calls `visit` with each and its index in the row set.
fn visit_values(
    job: &WriteJob<'_>,
    chunk: &RowChunk,
    bytes: &mut Vec<u8>,
    visit: &mut dyn FnMut(usize, JsonValue<'_>) -> Result<()>,
) -> Result<()> {
    job.read_kept_rows(chunk, bytes)?;
    let mut start = 0;
    let mut decoded = String::new();
    for row in chunk.rows.clone().filter(|&row| job.rows.is_kept(row)) {
        let length = job.rows.place_of(row).byte_length();
        if length > MAX_ROW_BYTES {
            let reason = format!("it has {length} bytes; at most {MAX_ROW_BYTES} fit into columns");
            return Err(bad_row(job, row, &reason));
        }
        let content = trim_line_end(&bytes[start..start + length as usize]);
        start += length as usize;
        let broken = |reason: String| bad_row(job, row, &reason);
        let text = job
            .inputs
            .decode_row(content, &mut decoded)
            .map_err(broken)?;
        let mended = job.inputs.mend_json(text);
        let value = JsonValue::parse_row(mended.as_deref().unwrap_or(text)).map_err(broken)?;
        visit(row, value)?;
    }
    Ok(())
}

/// Returns the place of a row, for example `posts.jsonl:7`.
fn place_name(job: &WriteJob<'_>, row: usize) -> String {
    let (name, row) = (job.inputs).source_row(job.rows.place_of(row), job.rows.row_number(row));
    format!("{name}:{row}")
}

fn bad_row(job: &WriteJob<'_>, row: usize, reason: &str) -> Error {
    Error::input_error(format!(
        "the row {} cannot be written as columns: {reason}",
        place_name(job, row)
    ))
}

fn describe_conflict(job: &WriteJob<'_>, part: &OutputPart, conflict: &TypeConflict) -> Error {
    let seen: Vec<String> = (conflict.seen.iter())
        .map(|&(what, row)| format!("{what} in {}", place_name(job, row)))
        .collect();
    let path = conflict.field_path();
    let field = if path.is_empty() {
        "a row".to_owned()
    } else {
        format!("the field `{path}`")
    };
    Error::input_error(format!(
        "the rows cannot be written to {} as columns: {field} is {}, and a column has one type: write them to a \
         .jsonl file",
        part.output,
        seen.join(" and ")
    ))
}
