//! Portions of an Arrow file: record batches, several small ones together and large ones in pieces.
//!
//! A record batch is decoded by the first thread that needs it. All portions of the batch share it, and it is freed
//! with the last of them. Portions are handed out in order, so at any time the memory holds the batches of the
//! portions that threads work on.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;

use super::arrow_file::ArrowFile;
use super::columnar::{MAX_BATCH_ROWS, NumberedBatch, PORTION_BLOCKS, check_columns};
use super::file::InputFile;
use super::row_values::FieldPlan;
use crate::error::Result;

/// Divides one file into portions.
pub(super) struct ArrowPortions {
    source: Arc<WantedArrow>,
    /// The record batch of the next portion, and the rows of it that have been handed out.
    batch: usize,
    within: u64,
    /// The record batch that the last portion ended in.
    shared: Option<Arc<DividedBatch>>,
    passed: u64,
}

/// A file with its wanted columns.
struct WantedArrow {
    file: ArrowFile,
    columns: Vec<usize>,
    block_bytes: usize,
}

/// A record batch that several portions have rows of.
struct DividedBatch {
    source: Arc<WantedArrow>,
    index: usize,
    /// Bytes of a row when it is decoded, on average and at least 1.
    row_bytes: u64,
    decoded: Mutex<Option<RecordBatch>>,
}

/// Consecutive rows of a file.
pub(super) struct ArrowPortion {
    pieces: Vec<(Arc<DividedBatch>, Range<u64>)>,
    rows: u64,
    first: u64,
}

impl ArrowPortions {
    pub(super) fn open_file(
        input: &InputFile,
        file: ArrowFile,
        plan: &FieldPlan,
        block_bytes: usize,
    ) -> Result<Self> {
        check_columns(input.display_name(), file.schema(), plan)?;
        let fields = file.schema().fields().iter().enumerate();
        let columns = fields
            .filter(|(_, field)| plan.reads_column(field.name()))
            .map(|(at, _)| at)
            .collect();
        Ok(Self {
            source: Arc::new(WantedArrow {
                file,
                columns,
                block_bytes,
            }),
            batch: 0,
            within: 0,
            shared: None,
            passed: 0,
        })
    }

    pub(super) fn passed_rows(&self) -> u64 {
        self.passed
    }

    pub(super) fn passed_bytes(&self) -> u64 {
        let file = &self.source.file;
        let share = u128::from(file.byte_length()) * u128::from(self.passed)
            / u128::from(file.row_count().max(1));
        share as u64
    }

    /// Returns the record batch of the next portion, which the last one may have shared.
    fn share_batch(&mut self) -> Arc<DividedBatch> {
        match &self.shared {
            Some(shared) if shared.index == self.batch => Arc::clone(shared),
            _ => {
                let shared = Arc::new(DividedBatch::new(&self.source, self.batch));
                self.shared = Some(Arc::clone(&shared));
                shared
            }
        }
    }
}

impl Iterator for ArrowPortions {
    type Item = ArrowPortion;

    fn next(&mut self) -> Option<ArrowPortion> {
        let most = PORTION_BLOCKS * self.source.block_bytes as u64;
        let first = self.passed;
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while self.batch < self.source.file.batch_count() && bytes < most {
            let all = self.source.file.batch_rows(self.batch);
            let rows = all.end - all.start;
            if self.within == rows {
                (self.batch, self.within) = (self.batch + 1, 0);
                continue;
            }
            let shared = self.share_batch();
            let row_bytes = shared.row_bytes;
            let start = self.within;
            let end = rows.min(start + ((most - bytes) / row_bytes).max(1));
            pieces.push((shared, start..end));
            bytes += (end - start) * row_bytes;
            self.within = end;
            self.passed += end - start;
        }
        // The last portion of a batch is the last one to hold it.
        let is_used_up = self.batch >= self.source.file.batch_count() || {
            let all = self.source.file.batch_rows(self.batch);
            self.within == all.end - all.start
        };
        if is_used_up {
            self.shared = None;
        }
        (!pieces.is_empty()).then(|| ArrowPortion {
            pieces,
            rows: self.passed - first,
            first,
        })
    }
}

impl ArrowPortion {
    pub(super) fn first_row(&self) -> u64 {
        self.first
    }

    pub(super) fn row_count(&self) -> u64 {
        self.rows
    }

    /// Decodes the portion and calls `visit` with batches of about one block.
    pub(super) fn visit_batches(
        &self,
        name: &str,
        mut visit: impl FnMut(NumberedBatch) -> Result<()>,
    ) -> Result<()> {
        let mut first = self.first;
        for (shared, rows) in &self.pieces {
            let decoded = shared.decode_batch(name)?;
            let row_bytes = decoded.get_array_memory_size() / decoded.num_rows().max(1) + 1;
            let block_rows = shared.source.block_bytes / row_bytes;
            let block_rows = block_rows.clamp(1, MAX_BATCH_ROWS) as u64;
            let mut start = rows.start;
            while start < rows.end {
                let count = block_rows.min(rows.end - start);
                let slice = decoded.slice(start as usize, count as usize);
                visit((slice, first))?;
                start += count;
                first += count;
            }
        }
        Ok(())
    }
}

impl DividedBatch {
    fn new(source: &Arc<WantedArrow>, index: usize) -> Self {
        let rows = source.file.batch_rows(index);
        let decoded = source.file.decoded_batch_bytes(index);
        Self {
            source: Arc::clone(source),
            index,
            row_bytes: decoded / (rows.end - rows.start).max(1) + 1,
            decoded: Mutex::new(None),
        }
    }

    /// Returns the wanted columns, decoded by the first caller. The others wait for it.
    fn decode_batch(&self, name: &str) -> Result<RecordBatch> {
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = &*decoded {
            return Ok(batch.clone());
        }
        let WantedArrow { file, columns, .. } = &*self.source;
        let batch = file.read_batch(name, self.index, Some(columns))?;
        *decoded = Some(batch.clone());
        Ok(batch)
    }
}
