//! Rows in memory: the columns of Arrow tables, read where they are.
//!
//! A row's [`Place`](super::Place) has the number of rows before it for an offset and the bytes of its
//! text for a length. Nothing is copied but values that are not strings: to read a row again is to look
//! at it.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use super::InvalidText;
use super::columnar::{Columns, check_columns};
use super::utf8::first_malformed;
use super::values::Plan;
use crate::error::{Error, Result};

/// The most rows in a block, however short they are.
const BLOCK_ROWS: usize = 1 << 14;

/// A table in memory.
#[derive(Debug, Clone)]
pub struct Table {
    name: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of these batches; `name` stands for it in messages.
    ///
    /// # Errors
    /// Batches of different columns.
    pub fn new(
        name: impl Into<String>,
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
    ) -> Result<Self> {
        let name = name.into();
        let of_fields = |schema: &Schema| schema.fields().clone();
        match batches
            .iter()
            .find(|batch| of_fields(batch.schema_ref()) != of_fields(&schema))
        {
            None => Ok(Self {
                name,
                schema,
                batches,
            }),
            Some(batch) => Err(Error::input(format!(
                "{name} has a batch with the columns {:?} where its schema says {:?}",
                batch.schema_ref().fields(),
                schema.fields()
            ))),
        }
    }

    /// What stands for it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The columns.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        let rows = self.batches.iter().map(RecordBatch::num_rows);
        rows.sum::<usize>() as u64
    }
}

/// A table that is being read.
pub(super) struct OpenTable {
    name: String,
    batches: Vec<RecordBatch>,
    /// Rows before each batch.
    starts: Vec<u64>,
    /// Bytes of the text before each batch, and of all.
    bytes: Vec<u64>,
}

impl OpenTable {
    pub(super) fn new(table: &Table, plan: &Plan) -> Result<Self> {
        check_columns(&table.name, &table.schema, plan)?;
        let wanted: Vec<_> = (0..table.schema.fields().len())
            .filter(|&at| plan.reads(table.schema.field(at).name()))
            .collect();
        let (mut starts, mut bytes) = (Vec::new(), vec![0]);
        let mut batches = Vec::with_capacity(table.batches.len());
        let (mut rows, mut text) = (0, 0);
        for batch in &table.batches {
            let batch = batch.project(&wanted).map_err(|error| {
                Error::input(format!("cannot read {}: {error}", table.name)).with_source(error)
            })?;
            starts.push(rows);
            rows += batch.num_rows() as u64;
            text += Columns::text_bytes(&batch, plan);
            bytes.push(text);
            batches.push(batch);
        }
        Ok(Self {
            name: table.name.clone(),
            batches,
            starts,
            bytes,
        })
    }

    /// Bytes of all texts, about so where they are not plain strings.
    pub(super) fn total_bytes(&self) -> u64 {
        self.bytes.last().copied().unwrap_or(0)
    }

    pub(super) fn rows(&self) -> u64 {
        let last = self.starts.last().zip(self.batches.last());
        last.map_or(0, |(start, batch)| start + batch.num_rows() as u64)
    }

    /// The batch that holds a row.
    fn batch_of(&self, row: u64) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }

    /// The rows of the block that begins at a row, if there are any left, and bytes up to its end.
    pub(super) fn block(&self, first: u64, block_bytes: usize) -> Option<(Range<u64>, u64)> {
        if first >= self.rows() {
            return None;
        }
        let at = self.batch_of(first);
        let (batch, start) = (&self.batches[at], self.starts[at]);
        let rows = batch.num_rows() as u64;
        let text = self.bytes[at + 1] - self.bytes[at];
        let about = (block_bytes as u64 * rows)
            .checked_div(text)
            .unwrap_or(rows);
        let end = (first + about.clamp(1, BLOCK_ROWS as u64)).min(start + rows);
        let position =
            self.bytes[at] + (u128::from(text) * u128::from(end - start) / u128::from(rows)) as u64;
        Some((first..end, position))
    }

    /// Calls back with the columns of rows of one batch, in which they are counted from 0.
    pub(super) fn columns(
        &self,
        rows: Range<u64>,
        plan: &Plan,
        invalid_text: InvalidText,
    ) -> Result<Columns> {
        let at = self.batch_of(rows.start);
        let within = (rows.start - self.starts[at]) as usize;
        let slice = self.batches[at].slice(within, (rows.end - rows.start) as usize);
        for (field, column) in slice.schema_ref().fields().iter().zip(slice.columns()) {
            if let Some(bad) = first_malformed(column) {
                return Err(Error::input(format!(
                    "cannot read {}: the string in row {} of the column `{}` is no UTF-8",
                    self.name,
                    rows.start + bad as u64 + 1,
                    field.name()
                )));
            }
        }
        Columns::new(&slice, plan, invalid_text, |_| true)
            .map_err(|reason| Error::input(format!("cannot read {}: {reason}", self.name)))
    }
}
