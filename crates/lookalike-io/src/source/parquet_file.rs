//! Parquet files: their metadata, and their rows in batches.
//!
//! Guarantee: a damaged file is an error and not a panic. The reader panics on some damaged pages, which is caught.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use lookalike::catch_panics;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};

use super::columnar::PositionedFile;

/// The batches of a file.
pub(crate) struct ParquetBatches {
    /// `None` after a panic.
    reader: Option<ParquetRecordBatchReader>,
}

/// Reads the footer of a file.
///
/// # Errors
/// If the file cannot be read or is damaged.
pub(crate) fn load_metadata(file: &PositionedFile) -> ParquetResult<ArrowReaderMetadata> {
    guard(|| ArrowReaderMetadata::load(file, Default::default()))
}

/// Begins to read a file. `choose` chooses rows, columns and the size of batches.
///
/// # Errors
/// As [`load_metadata`].
pub(crate) fn open_batches(
    file: &PositionedFile,
    metadata: &ArrowReaderMetadata,
    choose: impl FnOnce(
        ParquetRecordBatchReaderBuilder<PositionedFile>,
    ) -> ParquetRecordBatchReaderBuilder<PositionedFile>,
) -> ParquetResult<ParquetBatches> {
    let (file, metadata) = (file.clone(), metadata.clone());
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let reader = Some(guard(|| choose(builder).build())?);
    Ok(ParquetBatches { reader })
}

impl Iterator for ParquetBatches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        catch_panics(|| reader.next()).unwrap_or_else(|_| {
            self.reader = None;
            Some(Err(damaged().into()))
        })
    }
}

fn guard<T>(read: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    catch_panics(read).unwrap_or_else(|_| Err(damaged()))
}

fn damaged() -> ParquetError {
    ParquetError::General("it is damaged".to_owned())
}
