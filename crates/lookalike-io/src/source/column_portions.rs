//! Parquet and Arrow inputs behind one type: opening, dividing into portions, decoding.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::InputFormat;
use super::arrow_file::ArrowFile;
use super::arrow_portions::{ArrowPortion, ArrowPortions};
use super::columnar::{NumberedBatch, ParquetPortion, ParquetPortions, has_column};
use super::file::InputFile;
use super::parquet_file::load_metadata;
use super::row_values::FieldPlan;
use crate::error::Result;

/// An opened Parquet or Arrow input.
pub(super) enum OpenColumnarInput {
    Parquet(super::PositionedFile),
    Arrow(ArrowFile),
}

/// Divides one input into portions, which several threads decode in parallel.
pub(super) enum ColumnPortions {
    Parquet(ParquetPortions),
    Arrow(ArrowPortions),
}

/// Consecutive rows of an input, about `PORTION_BLOCKS` blocks; the unit of work of one thread.
pub(super) enum ColumnPortion {
    Parquet(ParquetPortion),
    Arrow(ArrowPortion),
}

impl OpenColumnarInput {
    pub(super) fn open_input(input: &InputFile) -> Result<Self> {
        match input.input_format() {
            InputFormat::Arrow => ArrowFile::open_input(input).map(Self::Arrow),
            InputFormat::Parquet => input.open_positioned().map(Self::Parquet),
            other => unreachable!("{other:?} is not columnar"),
        }
    }

    /// Returns `true` if the input has a top-level column of this name.
    pub(super) fn has_column(&self, input: &InputFile, column: &str) -> Result<bool> {
        match self {
            Self::Arrow(file) => Ok(file.schema().fields().find(column).is_some()),
            Self::Parquet(file) => has_column(file, column).map_err(|error| {
                input
                    .unreadable_columns(&error.to_string())
                    .with_source(error)
            }),
        }
    }

    /// Begins to divide the input.
    pub(super) fn into_portions(
        self,
        input: &InputFile,
        plan: &FieldPlan,
        block_bytes: usize,
    ) -> Result<ColumnPortions> {
        match self {
            Self::Parquet(file) => {
                ParquetPortions::open_file(input.display_name(), file, plan, block_bytes)
                    .map(ColumnPortions::Parquet)
            }
            Self::Arrow(file) => {
                ArrowPortions::open_file(input, file, plan, block_bytes).map(ColumnPortions::Arrow)
            }
        }
    }
}

impl ColumnPortions {
    /// Returns the number of rows that have been handed out.
    pub(super) fn passed_rows(&self) -> u64 {
        match self {
            Self::Parquet(portions) => portions.passed_rows(),
            Self::Arrow(portions) => portions.passed_rows(),
        }
    }

    /// Returns the approximate number of the input's bytes that have been handed out.
    pub(super) fn passed_bytes(&self) -> u64 {
        match self {
            Self::Parquet(portions) => portions.passed_bytes(),
            Self::Arrow(portions) => portions.passed_bytes(),
        }
    }
}

impl Iterator for ColumnPortions {
    type Item = ColumnPortion;

    fn next(&mut self) -> Option<ColumnPortion> {
        match self {
            Self::Parquet(portions) => portions.next().map(ColumnPortion::Parquet),
            Self::Arrow(portions) => portions.next().map(ColumnPortion::Arrow),
        }
    }
}

impl ColumnPortion {
    /// Returns the number of the input's rows before this portion.
    pub(super) fn first_row(&self) -> u64 {
        match self {
            Self::Parquet(portion) => portion.first_row(),
            Self::Arrow(portion) => portion.first_row(),
        }
    }

    /// Returns the number of rows.
    pub(super) fn row_count(&self) -> u64 {
        match self {
            Self::Parquet(portion) => portion.row_count(),
            Self::Arrow(portion) => portion.row_count(),
        }
    }

    /// Decodes the portion and calls `visit` with batches of about one block.
    pub(super) fn visit_batches(
        &self,
        input_name: &str,
        visit: impl FnMut(NumberedBatch) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Parquet(portion) => portion.visit_batches(input_name, visit),
            Self::Arrow(portion) => portion.visit_batches(input_name, visit),
        }
    }
}

/// Returns the number of rows that an input declares.
pub(super) fn count_rows(input: &InputFile) -> Result<u64> {
    match input.input_format() {
        InputFormat::Arrow => Ok(ArrowFile::open_input(input)?.row_count()),
        InputFormat::Parquet => super::columnar::count_rows(input),
        other => unreachable!("{other:?} is not columnar"),
    }
}

/// Returns the columns of an input.
///
/// # Errors
/// If the input cannot be read.
pub(crate) fn column_schema(input: &InputFile) -> Result<SchemaRef> {
    match OpenColumnarInput::open_input(input)? {
        OpenColumnarInput::Arrow(file) => Ok(Arc::clone(file.schema())),
        OpenColumnarInput::Parquet(file) => load_metadata(&file)
            .map(|metadata| Arc::clone(metadata.schema()))
            .map_err(|error| {
                input
                    .unreadable_columns(&error.to_string())
                    .with_source(error)
            }),
    }
}
