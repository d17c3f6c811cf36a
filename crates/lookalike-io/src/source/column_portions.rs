//! Portions of inputs with columns, whatever their format.

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

/// An opened input with columns.
pub(super) enum OpenColumns {
    Parquet(super::PositionedFile),
    Arrow(ArrowFile),
}

/// Divides one input into portions, which several threads decode in parallel.
pub(super) enum ColumnPortions {
    Parquet(ParquetPortions),
    Arrow(ArrowPortions),
}

/// Consecutive rows of an input.
pub(super) enum ColumnPortion {
    Parquet(ParquetPortion),
    Arrow(ArrowPortion),
}

impl OpenColumns {
    pub(super) fn open_input(input: &InputFile) -> Result<Self> {
        match input.input_format() {
            InputFormat::Arrow => ArrowFile::open_input(input).map(Self::Arrow),
            _ => input.open_positioned().map(Self::Parquet),
        }
    }

    /// Returns `true` if the input has a top-level column of this name.
    pub(super) fn has_column(&self, input: &InputFile, name: &str) -> Result<bool> {
        match self {
            Self::Arrow(file) => Ok(file.schema().fields().find(name).is_some()),
            Self::Parquet(file) => has_column(file, name).map_err(|error| {
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
        name: &str,
        visit: impl FnMut(NumberedBatch) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Parquet(portion) => portion.visit_batches(name, visit),
            Self::Arrow(portion) => portion.visit_batches(name, visit),
        }
    }
}

/// Returns the number of rows that an input declares.
pub(super) fn count_rows(input: &InputFile) -> Result<u64> {
    match input.input_format() {
        InputFormat::Arrow => Ok(ArrowFile::open_input(input)?.row_count()),
        _ => super::columnar::count_rows(input),
    }
}

/// Returns the columns of an input.
///
/// # Errors
/// If the input cannot be read.
pub(crate) fn column_schema(input: &InputFile) -> Result<SchemaRef> {
    match OpenColumns::open_input(input)? {
        OpenColumns::Arrow(file) => Ok(Arc::clone(file.schema())),
        OpenColumns::Parquet(file) => load_metadata(&file)
            .map(|metadata| Arc::clone(metadata.schema()))
            .map_err(|error| {
                input
                    .unreadable_columns(&error.to_string())
                    .with_source(error)
            }),
    }
}
