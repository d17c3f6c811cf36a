//! Kept rows of Arrow files and streams, all columns with their types.
//!
//! A task has the rows of some record batches, or a part of a large one. The batches that tasks share are decoded
//! once: the last few are kept.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_ipc::CompressionType;
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;

use super::column_rows::{BatchVisitor, ColumnRows, TASK_BYTES, kept_rows_of};
use super::kept_rows::{OutputPart, WriteJob, refuse_other_columns};
use crate::error::Result;
use crate::source::{ArrowFile, InputFile};

/// Rows passed on at a time.
const BATCH_ROWS: usize = 1024;

/// Decoded batches that are kept for the next task.
const KEPT_BATCHES: usize = 2;

/// The kept rows of some inputs.
pub(super) struct ArrowRows<'a> {
    job: &'a WriteJob<'a>,
    opened: Vec<OpenArrowInput<'a>>,
    tasks: Vec<Vec<BatchPart>>,
    recent: Mutex<VecDeque<((usize, usize), SharedBatch)>>,
}

/// A batch, once it has been decoded.
type SharedBatch = Arc<Mutex<Option<RecordBatch>>>;

struct OpenArrowInput<'a> {
    input: &'a InputFile,
    file: ArrowFile,
    /// Indices of its rows in the row set.
    rows: Range<usize>,
}

/// Some rows of a record batch.
struct BatchPart {
    opened: usize,
    batch: usize,
    /// Indices of the rows in the row set.
    rows: Range<usize>,
}

impl<'a> ArrowRows<'a> {
    /// Opens the inputs of a part and verifies that they have the same columns.
    pub(super) fn open_inputs(job: &'a WriteJob<'a>, part: &OutputPart) -> Result<Self> {
        let mut opened: Vec<OpenArrowInput<'a>> = Vec::new();
        for index in part.files.clone() {
            let input = &job.inputs.input_files()[index];
            let file = ArrowFile::open_input(input)?;
            if let Some(first) = opened.first() {
                refuse_other_columns(
                    first.input,
                    first.file.schema(),
                    input,
                    file.schema(),
                    &part.output,
                )?;
            }
            let rows = job
                .part_of_inputs(part.output.clone(), index..index + 1)
                .rows;
            opened.push(OpenArrowInput { input, file, rows });
        }
        let tasks = divide_batches(job, &opened);
        Ok(Self {
            job,
            opened,
            tasks,
            recent: Mutex::default(),
        })
    }

    /// Returns a decoded batch, which the first caller decodes.
    fn decode_batch(&self, opened: usize, batch: usize) -> Result<RecordBatch> {
        let shared = self.share_batch((opened, batch));
        let mut decoded = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = &*decoded {
            return Ok(batch.clone());
        }
        let OpenArrowInput { input, file, .. } = &self.opened[opened];
        let batch = file.read_batch(input.display_name(), batch, None)?;
        *decoded = Some(batch.clone());
        Ok(batch)
    }

    fn share_batch(&self, key: (usize, usize)) -> SharedBatch {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shared)) = recent.iter().find(|(other, _)| *other == key) {
            return Arc::clone(shared);
        }
        let shared = SharedBatch::default();
        recent.push_back((key, Arc::clone(&shared)));
        if recent.len() > KEPT_BATCHES {
            recent.pop_front();
        }
        shared
    }
}

impl ColumnRows for ArrowRows<'_> {
    fn schema(&self) -> &SchemaRef {
        self.opened[0].file.schema()
    }

    fn first_name(&self) -> &str {
        self.opened[0].input.display_name()
    }

    fn task_count(&self) -> usize {
        self.tasks.len()
    }

    fn task_rows(&self, task: usize) -> usize {
        self.tasks[task].iter().map(|part| part.rows.len()).sum()
    }

    fn visit_task(&self, task: usize, visit: &mut BatchVisitor<'_>) -> Result<()> {
        for part in &self.tasks[task] {
            let opened = &self.opened[part.opened];
            let kept = kept_rows_of(self.job, part.rows.clone());
            if kept.is_empty() {
                continue;
            }
            let batch = self.decode_batch(part.opened, part.batch)?;
            let first = opened.file.batch_rows(part.batch).start;
            for rows in kept.chunks(BATCH_ROWS) {
                let within = rows
                    .iter()
                    .map(|&row| (row_in_file(self.job, opened, row) - first) as u32);
                let within: UInt32Array = within.collect::<Vec<_>>().into();
                let taken = take_record_batch(&batch, &within)
                    .map_err(|error| opened.input.unreadable_columns(&error.to_string()))?;
                visit(taken, rows)?;
            }
        }
        Ok(())
    }

    fn arrow_compression(&self) -> Option<CompressionType> {
        self.opened[0].file.compression()
    }

    fn has_fixed_dictionaries(&self) -> bool {
        self.opened.len() == 1 && self.opened[0].file.has_fixed_dictionaries()
    }
}

/// Divides the record batches of the inputs into tasks. Ranges without a kept row are left out.
fn divide_batches(job: &WriteJob<'_>, opened: &[OpenArrowInput<'_>]) -> Vec<Vec<BatchPart>> {
    let (mut tasks, mut parts, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (index, input) in opened.iter().enumerate() {
        for batch in 0..input.file.batch_count() {
            let all = input.file.batch_rows(batch);
            let row_bytes =
                input.file.decoded_batch_bytes(batch) / (all.end - all.start).max(1) + 1;
            let most = (TASK_BYTES / row_bytes).max(1) as usize;
            let mut first = first_row_at(job, input, all.start);
            let end = first_row_at(job, input, all.end);
            while first < end {
                let last = end.min(first + most);
                if (first..last).any(|row| job.rows.is_kept(row)) {
                    parts.push(BatchPart {
                        opened: index,
                        batch,
                        rows: first..last,
                    });
                    bytes += (last - first) as u64 * row_bytes;
                }
                if bytes >= TASK_BYTES {
                    tasks.push(std::mem::take(&mut parts));
                    bytes = 0;
                }
                first = last;
            }
        }
    }
    if !parts.is_empty() {
        tasks.push(parts);
    }
    tasks
}

/// Returns the first row of the set at or after a row of the file.
fn first_row_at(job: &WriteJob<'_>, input: &OpenArrowInput<'_>, row: u64) -> usize {
    let mut rows = input.rows.clone();
    while !rows.is_empty() {
        let middle = rows.start + rows.len() / 2;
        if row_in_file(job, input, middle) < row {
            rows.start = middle + 1
        } else {
            rows.end = middle
        }
    }
    rows.start
}

fn row_in_file(job: &WriteJob<'_>, input: &OpenArrowInput<'_>, row: usize) -> u64 {
    job.rows.row_number(row) - input.input.first_number().unwrap_or(1)
}
