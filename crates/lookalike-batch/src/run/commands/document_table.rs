//! A table with rows of every document, in input order. Memory does not grow with the input.

use lookalike_io::error::Result;
use lookalike_io::sink::{TableRows, TableWriter};
use lookalike_io::source::InputRow;

use crate::run::reading::ordered_pipeline::parse_blocks_in_order;
use crate::run::reading::rejected_rows::{CountedRows, OpenedRows};

/// Bytes of a block's results that are passed on before the block ends.
const CHUNK_BYTES: usize = 8 << 20;

/// Counts of a finished table.
#[derive(Default)]
pub(super) struct DocumentTableCounts {
    pub(super) documents: u64,
    /// Sum of what was returned for the documents.
    pub(super) sum: u64,
    pub(super) rejected: u64,
    pub(super) bytes: u64,
}

struct TableChunk {
    rows: TableRows,
    read: CountedRows,
    sum: u64,
}

/// Writes the rows that `push_document` adds for every document, with a state of its own per thread, and puts the
/// table and the bad rows in place. `push_document` returns a number, of which the sum is returned.
///
/// # Errors
/// If something cannot be read or written, or no row can be used.
pub(super) fn write_document_table<S: Default>(
    opened: OpenedRows<'_>,
    mut table: TableWriter,
    push_document: impl Fn(&InputRow<'_>, &mut S, &mut TableRows) -> Result<u64> + Sync,
) -> Result<DocumentTableCounts> {
    let template = table.new_rows();
    let new_chunk = || TableChunk {
        rows: template.empty_like(),
        read: CountedRows::default(),
        sum: 0,
    };
    let mut total = DocumentTableCounts::default();
    parse_blocks_in_order(
        &opened.inputs,
        opened.progress,
        |block, parse, state: &mut S, emit| {
            let mut chunk = new_chunk();
            opened.inputs.parse_block(block, parse, &mut |row| {
                if let Some(row) = chunk.read.count_row(row) {
                    chunk.sum += push_document(&row, state, &mut chunk.rows)?;
                }
                if chunk.rows.approximate_bytes() >= CHUNK_BYTES {
                    emit(std::mem::replace(&mut chunk, new_chunk()))?;
                }
                Ok(())
            })?;
            Ok(chunk)
        },
        |chunk| {
            opened.report_rows(&chunk.read.bad, chunk.read.documents)?;
            total.documents += chunk.read.documents;
            total.sum += chunk.sum;
            total.bytes += chunk.read.bytes;
            table.append_rows(chunk.rows)
        },
    )?;
    opened.refuse_useless()?;
    table.finish_table()?;
    total.rejected = opened.into_rejected().finish_output()?;
    Ok(total)
}
