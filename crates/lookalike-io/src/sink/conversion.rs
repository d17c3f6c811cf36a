//! Which formats of inputs can be written as which formats of outputs. No other module decides that.
//!
//! | rows of | to JSONL | to Parquet | to Arrow | to CSV, TSV, text |
//! |---|---|---|---|---|
//! | JSONL, a JSON list | byte for byte | converted | converted | no |
//! | Parquet | converted | column for column | converted | no |
//! | Arrow | converted | converted | column for column | no |
//! | CSV, TSV, text | no | no | no | byte for byte, to the same format |
//!
//! A conversion has two halves, which know nothing of each other. [`ColumnRows`] decodes rows as batches of columns:
//! [`ParquetRows`], [`ArrowRows`], and [`KeptJsonRows`](super::json_rows::KeptJsonRows), which first finds the types
//! of the fields. A writer encodes the batches: [`write_parquet`], [`write_arrow`] and [`write_json_lines`].

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;

use super::OutputTarget;
use super::arrow_rows::ArrowRows;
use super::arrow_writer::write_arrow;
use super::column_rows::ColumnRows;
use super::json_lines::write_json_lines;
use super::json_rows::KeptJsonRows;
use super::kept_rows::{OutputPart, WriteJob};
use super::output_stream::{OpenOutput, compression};
use super::parquet_rows::ParquetRows;
use super::parquet_writer::write_parquet;
use crate::error::{Error, Result};
use crate::source::{
    CompressionKind, InputFile, InputFormat, check_types, column_schema, format_by_extension,
};

/// The way in which the rows of an output are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowWriting {
    /// Byte for byte.
    Bytes,
    /// Decoded as columns, and encoded in this format.
    Columns(ColumnTarget),
}

/// A format that columns are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnTarget {
    JsonLines,
    Parquet,
    ArrowFile,
    ArrowStream,
}

impl ColumnTarget {
    /// Returns the target for a format, if it is one. Arrow is a stream if the output is one by its name, or if it
    /// has none.
    pub(super) fn from_format(format: InputFormat, output: &OutputTarget) -> Option<Self> {
        match format {
            InputFormat::Jsonl | InputFormat::Json => Some(Self::JsonLines),
            InputFormat::Parquet => Some(Self::Parquet),
            InputFormat::Arrow if is_stream(output) => Some(Self::ArrowStream),
            InputFormat::Arrow => Some(Self::ArrowFile),
            _ => None,
        }
    }

    /// Returns the target that the name of an output stands for.
    pub(super) fn from_path(output: &OutputTarget) -> Option<Self> {
        match output {
            OutputTarget::Path(path) => Self::from_format(format_by_extension(path)?, output),
            OutputTarget::Stdout | OutputTarget::Memory(_) => None,
        }
    }
}

fn is_stream(output: &OutputTarget) -> bool {
    match output {
        OutputTarget::Path(path) => {
            (path.extension()).is_some_and(|extension| extension.eq_ignore_ascii_case("arrows"))
        }
        OutputTarget::Stdout | OutputTarget::Memory(_) => true,
    }
}

/// Returns how rows of a format are written to an output. Messages call the input `name`.
///
/// # Errors
/// If the output has a format that rows of this format are not converted to.
pub(super) fn choose_writing(
    name: &str,
    format: InputFormat,
    output: &OutputTarget,
) -> Result<RowWriting> {
    let promised = promised_format(output)?;
    let columns = |format| ColumnTarget::from_format(format, output).map(RowWriting::Columns);
    let is_compressed = compression(output) != CompressionKind::None;
    let writing = match (format, promised) {
        // Rows in memory have no bytes that could be written unchanged.
        (InputFormat::Memory, _) => None,
        (format, None) if format.is_columnar() && is_compressed => None,
        (format, promised) if format.is_columnar() => columns(promised.unwrap_or(format)),
        (format, Some(promised)) if format.is_json() && promised.is_columnar() => columns(promised),
        (format, promised) => is_same(format, promised).then_some(RowWriting::Bytes),
    };
    writing.ok_or_else(|| {
        Error::usage_error(format!(
            "kept rows are written as they are: {name} is {}, and {output} would be {}; only JSONL, JSON lists, \
             Parquet and Arrow are converted, into JSONL, Parquet and Arrow",
            describe_format(format),
            promised.map_or("compressed as a whole", describe_format)
        ))
    })
}

/// Returns the format that the name of an output stands for.
fn promised_format(output: &OutputTarget) -> Result<Option<InputFormat>> {
    let OutputTarget::Path(path) = output else {
        return Ok(None);
    };
    let within = path
        .file_stem()
        .map(Path::new)
        .and_then(format_by_extension);
    let is_compressed = compression(output) != CompressionKind::None;
    match within.filter(|format| is_compressed && format.is_columnar()) {
        None => Ok(format_by_extension(path)),
        Some(format) => Err(Error::usage_error(format!(
            "{output} would be compressed as a whole: {} compresses its columns itself, so leave the last extension \
             out",
            describe_format(format)
        ))),
    }
}

/// Returns `true` if rows of a format can be written byte for byte to an output of the promised one.
fn is_same(format: InputFormat, promised: Option<InputFormat>) -> bool {
    match (format, promised) {
        (_, None) => true,
        // The delimiter stays that of the input, which its extension does not tell.
        (InputFormat::Csv { quoting, .. }, Some(InputFormat::Csv { quoting: other, .. })) => {
            quoting == other
        }
        (InputFormat::Text | InputFormat::TextFile, Some(InputFormat::Text)) => true,
        // Documents in files of their own keep the names of the files, whatever the extension.
        (InputFormat::TextFile, _) => true,
        (format, Some(promised)) => format == promised || format.is_json() && promised.is_json(),
    }
}

fn describe_format(format: InputFormat) -> &'static str {
    format.descriptor().name
}

/// Refuses, before any row is read, inputs with a column that the target has no type for.
///
/// # Errors
/// If there is such a column, or a schema cannot be read.
pub(super) fn check_conversion(
    files: &[InputFile],
    writing: RowWriting,
    output: &OutputTarget,
) -> Result<()> {
    let RowWriting::Columns(target) = writing else {
        return Ok(());
    };
    let converted = files
        .iter()
        .filter(|file| file.input_format().is_columnar());
    for file in converted {
        if ColumnTarget::from_format(file.input_format(), output) != Some(target) {
            check_schema(file.display_name(), &column_schema(file)?, target, output)?;
        }
    }
    Ok(())
}

/// Refuses columns that the target has no type for. Messages call the rows `name`.
pub(super) fn check_schema(
    name: &str,
    schema: &SchemaRef,
    target: ColumnTarget,
    output: &OutputTarget,
) -> Result<()> {
    let refused = match target {
        ColumnTarget::JsonLines => check_types(schema).err(),
        ColumnTarget::Parquet => (schema.fields().iter()).find_map(refuse_parquet),
        ColumnTarget::ArrowFile | ColumnTarget::ArrowStream => None,
    };
    match refused {
        None => Ok(()),
        Some(reason) => Err(Error::input_error(format!(
            "{name} cannot be written to {output}: {reason}"
        ))),
    }
}

/// Returns why a column cannot be written to Parquet.
fn refuse_parquet(field: &Arc<Field>) -> Option<String> {
    let schema = Schema::new(vec![Arc::clone(field)]);
    let error = ArrowSchemaConverter::new().convert(&schema).err()?;
    Some(format!(
        "the column `{}` is of the type {}, which Parquet does not have ({error})",
        field.name(),
        field.data_type()
    ))
}

/// Writes the rows of a part in another form than byte for byte. The returned target is still to be sealed.
pub(super) fn write_columns(
    job: &WriteJob<'_>,
    part: &OutputPart,
    target: OpenOutput,
    format: ColumnTarget,
) -> Result<(OpenOutput, u64)> {
    let first = job.inputs.input_files()[part.files.clone()].first();
    let source: Box<dyn ColumnRows + '_> = match first.map(InputFile::input_format) {
        Some(InputFormat::Parquet) => Box::new(ParquetRows::open_inputs(job, part)?),
        Some(InputFormat::Arrow) => Box::new(ArrowRows::open_inputs(job, part)?),
        _ => Box::new(KeptJsonRows::open_inputs(job, part)?),
    };
    match format {
        ColumnTarget::JsonLines => write_json_lines(job, &*source, &part.output, target),
        ColumnTarget::Parquet => write_parquet(job, &*source, &part.output, target),
        ColumnTarget::ArrowFile => write_arrow(job, &*source, &part.output, target, false),
        ColumnTarget::ArrowStream => write_arrow(job, &*source, &part.output, target, true),
    }
}
