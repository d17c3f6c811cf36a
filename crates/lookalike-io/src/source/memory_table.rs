//! Rows in memory: the columns of Arrow tables, read in place.
//!
//! A row's [`RowPlace`](super::RowPlace) has the row's index as its offset and the length of its text in bytes as its
//! length. The text is not copied if it is one string column; other values are. Reading a row again reads it from the
//! table.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, LargeStringArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lookalike_documents::decoding::InvalidText;

use super::columnar::{WantedColumns, check_columns};
use super::row_values::FieldPlan;
use super::utf8::first_malformed;
use crate::error::{Error, Result};

/// Largest number of rows in a block.
const BLOCK_ROWS: usize = 1 << 14;

/// A table in memory.
#[derive(Debug, Clone)]
pub struct MemoryTable {
    name: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl MemoryTable {
    /// Creates a table of these batches. Messages call it `name`.
    ///
    /// # Errors
    /// If the columns of a batch differ from `schema`.
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
            Some(batch) => Err(Error::input_error(format!(
                "{name} has a batch with the columns {:?} where its schema says {:?}",
                batch.schema_ref().fields(),
                schema.fields()
            ))),
        }
    }

    /// Creates a table with the columns `id` and `text`. Messages call it `name`.
    pub fn from_texts<'a>(
        name: impl Into<String>,
        documents: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let (ids, texts): (Vec<_>, Vec<_>) = documents.unzip();
        let fields = ["id", "text"].map(|name| Field::new(name, DataType::LargeUtf8, false));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let columns = [ids, texts].map(|values| -> Arc<dyn Array> {
            Arc::new(LargeStringArray::from_iter_values(values))
        });
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.to_vec());
        Self {
            name: name.into(),
            schema,
            batches: vec![batch.expect("both columns have a value for each document")],
        }
    }

    /// Returns the name of the table in messages.
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Returns the schema.
    pub(super) fn table_schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> u64 {
        let rows = self.batches.iter().map(RecordBatch::num_rows);
        rows.sum::<usize>() as u64
    }
}

/// A table during a run, reduced to the wanted columns.
pub(super) struct OpenTable {
    name: String,
    batches: Vec<RecordBatch>,
    /// Number of rows before each batch.
    starts: Vec<u64>,
    /// Text bytes before each batch, followed by the total.
    bytes: Vec<u64>,
}

impl OpenTable {
    pub(super) fn new(table: &MemoryTable, plan: &FieldPlan) -> Result<Self> {
        check_columns(&table.name, &table.schema, plan)?;
        let wanted: Vec<_> = (0..table.schema.fields().len())
            .filter(|&at| plan.reads_column(table.schema.field(at).name()))
            .collect();
        let (mut starts, mut bytes) = (Vec::new(), vec![0]);
        let mut batches = Vec::with_capacity(table.batches.len());
        let (mut rows, mut text) = (0, 0);
        for batch in &table.batches {
            let batch = batch.project(&wanted).map_err(|error| {
                Error::input_error(format!("cannot read {}: {error}", table.name))
                    .with_source(error)
            })?;
            starts.push(rows);
            rows += batch.num_rows() as u64;
            text += WantedColumns::text_bytes(&batch, plan);
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

    /// Returns the bytes of all texts; an estimate if they are not plain strings.
    pub(super) fn total_bytes(&self) -> u64 {
        self.bytes.last().copied().unwrap_or(0)
    }

    pub(super) fn row_count(&self) -> u64 {
        let last = self.starts.last().zip(self.batches.last());
        last.map_or(0, |(start, batch)| start + batch.num_rows() as u64)
    }

    /// Returns the index of the batch that holds `row`.
    fn batch_index(&self, row: u64) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }

    /// Returns the rows of the block that starts at `first`, and about how many text bytes end there. Returns `None`
    /// after the last row.
    pub(super) fn next_block(&self, first: u64, block_bytes: usize) -> Option<(Range<u64>, u64)> {
        if first >= self.row_count() {
            return None;
        }
        let at = self.batch_index(first);
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

    /// Returns the wanted columns of these rows, which lie in one batch. Within the result, rows count from 0.
    ///
    /// # Errors
    /// If a string is not UTF-8 or a column has the wrong type.
    pub(super) fn read_columns(
        &self,
        rows: Range<u64>,
        plan: &FieldPlan,
        invalid_text: InvalidText,
    ) -> Result<WantedColumns> {
        let at = self.batch_index(rows.start);
        let within = (rows.start - self.starts[at]) as usize;
        let slice = self.batches[at].slice(within, (rows.end - rows.start) as usize);
        for (field, column) in slice.schema_ref().fields().iter().zip(slice.columns()) {
            if let Some(bad) = first_malformed(column) {
                return Err(Error::input_error(format!(
                    "cannot read {}: the string in row {} of the column `{}` is not UTF-8",
                    self.name,
                    rows.start + bad as u64 + 1,
                    field.name()
                )));
            }
        }
        WantedColumns::new(&slice, plan, invalid_text, |_| true)
            .map_err(|reason| Error::input_error(format!("cannot read {}: {reason}", self.name)))
    }
}
