//! Rows of columns as JSONL, in the form that [`column_json`](crate::source) describes. Threads write the lines of
//! different tasks, which are joined in order.

use super::annotate::put_members;
use super::column_rows::{ColumnRows, cut_columns, refuse_taken_names};
use super::conversion::{ColumnTarget, check_schema};
use super::kept_rows::WriteJob;
use super::output_stream::{OpenOutput, OutputStream};
use super::{AddedFields, OutputTarget};
use crate::error::{Error, Result};
use crate::ordered_results::work_in_order;
use crate::source::JsonRows;

/// Writes all tasks. The returned target is still to be sealed.
pub(super) fn write_json_lines(
    job: &WriteJob<'_>,
    source: &dyn ColumnRows,
    output: &OutputTarget,
    target: OpenOutput,
) -> Result<(OpenOutput, u64)> {
    check_schema(
        source.first_name(),
        source.schema(),
        ColumnTarget::JsonLines,
        output,
    )?;
    let added = job.options.change.added_fields();
    if let Some(added) = added {
        refuse_taken_names(source, added)?;
    }
    let mut stream = OutputStream::new(output, target, job.options.threads)?;
    work_in_order(
        source.task_count(),
        job.options.threads,
        || (),
        |task, ()| {
            let mut lines = Vec::new();
            source.visit_task(task, &mut |batch, rows| {
                let columns = cut_columns(job, source, &batch, rows)?;
                let failed = |error: arrow_schema::ArrowError| {
                    Error::input_error(format!("{}: {error}", source.first_name()))
                };
                let schema = batch.schema();
                // Without columns, a batch knows its number of rows only if it is told.
                let batch = if columns.is_empty() {
                    batch
                } else {
                    arrow_array::RecordBatch::try_new(schema, columns).map_err(failed)?
                };
                append_lines(
                    &JsonRows::new(&batch).map_err(failed)?,
                    rows,
                    added,
                    &mut lines,
                )
            })?;
            Ok((lines, source.task_rows(task)))
        },
        |(lines, rows), ()| {
            (job.progress)(rows as u64);
            stream.write_bytes(&lines)
        },
    )?;
    stream.finish_stream()
}

fn append_lines(
    json: &JsonRows,
    rows: &[usize],
    added: Option<&AddedFields<'_>>,
    lines: &mut Vec<u8>,
) -> Result<()> {
    let mut members = String::new();
    for (at, &row) in rows.iter().enumerate() {
        json.append_open_row(at, lines);
        if let Some(added) = added {
            members.clear();
            let is_empty = lines.ends_with(b"{");
            put_members(added, &(added.values)(row)?, is_empty, &mut members);
            lines.extend_from_slice(members.as_bytes());
        }
        lines.extend_from_slice(b"}\n");
    }
    Ok(())
}
