//! Small tables: what was removed, clusters, pairs. Rows are written as they come.
//!
//! The extension decides the format: `.tsv` (also where there is none that is known, and on
//! standard output), `.csv`, `.jsonl`, `.parquet`, and each but the last with `.gz` or `.zst`. TSV
//! has no quoting, so a tab, a line feed or a carriage return in a value is written as `\t`, `\n`
//! or `\r`; everything else stands for itself.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, RecordBatch, StringBuilder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as ParquetCompression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::stream::{OutputStream, Target, compression};
use super::{Output, Written};
use crate::error::{Error, ErrorKind, Result};
use crate::source::{Compression, Format, Inputs, format_by_extension};

/// Rows of Parquet collected before they are encoded.
const BATCH_ROWS: usize = 8192;

/// Bytes of lines collected before they are handed on.
const LINE_BYTES: usize = 64 << 10;

/// A column of a table: its name and what it holds. Every column may hold [`Cell::Null`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column<'a> {
    /// Strings.
    Text(&'a str),
    /// Doubles.
    Number(&'a str),
    /// Whole numbers.
    Integer(&'a str),
    /// Truth values.
    Bool(&'a str),
}

impl<'a> Column<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Text(name) | Self::Number(name) | Self::Integer(name) | Self::Bool(name) => name,
        }
    }
}

/// A value of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value: an empty cell, JSON `null`, a Parquet null.
    Null,
    /// A string.
    Text(&'a str),
    /// A double, written as the shortest digits that give it back; what is not finite is no value
    /// in JSON.
    Number(f64),
    /// A whole number.
    Integer(u64),
    /// A truth value: `true` or `false`.
    Bool(bool),
}

/// Writes a table row by row. Nothing appears under the output's name before
/// [`finish`](Self::finish).
pub struct TableWriter {
    name: String,
    names: Vec<String>,
    rows: u64,
    form: Form,
}

enum Form {
    Lines {
        stream: Box<OutputStream>,
        lines: String,
        kind: LineKind,
    },
    Parquet(Box<ParquetForm>),
}

struct ParquetForm {
    writer: ArrowWriter<OutputStream>,
    schema: SchemaRef,
    columns: Vec<Builder>,
    /// Rows collected.
    pending: usize,
}

#[derive(Clone, Copy)]
enum LineKind {
    Delimited { delimiter: u8, quoting: bool },
    Json,
}

impl TableWriter {
    /// Starts a table; `inputs`, if given, are not to be overwritten.
    ///
    /// # Errors
    ///
    /// An output that cannot be created or is an input.
    pub fn create(
        output: &Output,
        columns: &[Column<'_>],
        inputs: Option<&Inputs>,
    ) -> Result<Self> {
        let format = match output {
            Output::Path(path) => format_by_extension(path),
            Output::Stdout => None,
        };
        if format == Some(Format::Parquet) && compression(output) != Compression::None {
            return Err(Error::usage(format!("{output} would be compressed twice")));
        }
        let target = Target::open(output, inputs)?;
        let stream = OutputStream::new(output, target, 1)?;
        let names: Vec<String> = columns
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        let form = match format {
            Some(Format::Parquet) => parquet_form(output, stream, columns)?,
            Some(Format::Jsonl) => Form::lines(stream, LineKind::Json),
            Some(Format::Csv { delimiter, quoting }) => {
                Form::lines(stream, LineKind::Delimited { delimiter, quoting })
            }
            _ => Form::lines(
                stream,
                LineKind::Delimited {
                    delimiter: b'\t',
                    quoting: false,
                },
            ),
        };
        let mut table = Self {
            name: output.to_string(),
            names,
            rows: 0,
            form,
        };
        table.put_header();
        Ok(table)
    }

    fn put_header(&mut self) {
        if let Form::Lines {
            lines,
            kind: LineKind::Delimited { delimiter, quoting },
            ..
        } = &mut self.form
        {
            let cells: Vec<_> = self.names.iter().map(|name| Cell::Text(name)).collect();
            put_line(&cells, *delimiter, *quoting, lines);
        }
    }

    /// Adds a row: a cell per column, of the column's type or [`Cell::Null`].
    ///
    /// # Errors
    ///
    /// A failed write, and cells that do not fit the columns.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        if cells.len() != self.names.len() {
            return Err(self.misfit(&format!("{} cells", cells.len())));
        }
        self.rows += 1;
        match &mut self.form {
            Form::Lines {
                stream,
                lines,
                kind,
            } => {
                match *kind {
                    LineKind::Json => put_object(&self.names, cells, lines),
                    LineKind::Delimited { delimiter, quoting } => {
                        put_line(cells, delimiter, quoting, lines);
                    }
                }
                if lines.len() >= LINE_BYTES {
                    stream.put(lines.as_bytes())?;
                    lines.clear();
                }
                Ok(())
            }
            Form::Parquet(form) => {
                for (builder, cell) in form.columns.iter_mut().zip(cells) {
                    if !builder.push(*cell) {
                        return Err(self.misfit(&format!("the cell {cell:?}")));
                    }
                }
                form.pending += 1;
                match form.pending < BATCH_ROWS {
                    true => Ok(()),
                    false => form
                        .write_batch()
                        .map_err(|error| unwritable(&self.name, error)),
                }
            }
        }
    }

    fn misfit(&self, what: &str) -> Error {
        let names = self.names.join("`, `");
        Error::new(
            ErrorKind::Usage,
            format!(
                "{what} cannot be written to {} with the columns `{names}`",
                self.name
            ),
        )
    }

    /// Completes the table and puts it in place.
    ///
    /// # Errors
    ///
    /// A failed write, sync or rename; the output is then as it was.
    pub fn finish(self) -> Result<Written> {
        let stream = match self.form {
            Form::Lines {
                mut stream, lines, ..
            } => {
                stream.put(lines.as_bytes())?;
                *stream
            }
            Form::Parquet(mut form) => {
                let stream = form.write_batch().and_then(|()| form.writer.into_inner());
                stream.map_err(|error| unwritable(&self.name, error))?
            }
        };
        let (target, bytes) = stream.finish()?;
        target.seal()?.commit()?;
        Ok(Written {
            rows: self.rows,
            bytes,
        })
    }
}

impl Form {
    fn lines(stream: OutputStream, kind: LineKind) -> Self {
        Self::Lines {
            stream: Box::new(stream),
            lines: String::new(),
            kind,
        }
    }
}

/// A failure of the Parquet writer, which may be one of the output under it.
pub(super) fn unwritable(name: &str, error: ParquetError) -> Error {
    let closed = match &error {
        ParquetError::External(cause) => cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe),
        _ => false,
    };
    let kind = if closed {
        ErrorKind::BrokenPipe
    } else {
        ErrorKind::Output
    };
    Error::new(kind, format!("cannot write {name}: {error}")).with_source(error)
}

fn put_line(cells: &[Cell<'_>], delimiter: u8, quoting: bool, out: &mut String) {
    for (position, cell) in cells.iter().enumerate() {
        if position > 0 {
            out.push(char::from(delimiter));
        }
        match cell {
            Cell::Null => {}
            Cell::Text(text) => put_delimited(text, delimiter, quoting, out),
            Cell::Number(number) => put_display(number, out),
            Cell::Integer(number) => put_display(number, out),
            Cell::Bool(value) => put_display(value, out),
        }
    }
    out.push('\n');
}

fn put_object(names: &[String], cells: &[Cell<'_>], out: &mut String) {
    for (position, (name, cell)) in names.iter().zip(cells).enumerate() {
        out.push(if position == 0 { '{' } else { ',' });
        put_json_string(name, out);
        out.push(':');
        match cell {
            Cell::Text(text) => put_json_string(text, out),
            Cell::Number(number) if number.is_finite() => put_display(number, out),
            Cell::Null | Cell::Number(_) => out.push_str("null"),
            Cell::Integer(number) => put_display(number, out),
            Cell::Bool(value) => put_display(value, out),
        }
    }
    out.push_str("}\n");
}

fn put_display(value: &impl std::fmt::Display, out: &mut String) {
    write!(out, "{value}").expect("writing to a string does not fail");
}

/// Appends a value as a field between delimiters.
pub(super) fn put_delimited(text: &str, delimiter: u8, quoting: bool, out: &mut String) {
    let special = |byte: u8| byte == delimiter || matches!(byte, b'\n' | b'\r');
    match quoting {
        true if text.bytes().any(|byte| special(byte) || byte == b'"') => {
            out.push('"');
            out.push_str(&text.replace('"', "\"\""));
            out.push('"');
        }
        false if text.bytes().any(special) => {
            for character in text.chars() {
                match character {
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' if delimiter == b'\t' => out.push_str("\\t"),
                    other => out.push(other),
                }
            }
        }
        _ => out.push_str(text),
    }
}

/// Appends a JSON string with its quotes.
pub(super) fn put_json_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

enum Builder {
    Text(StringBuilder),
    Number(Float64Builder),
    Integer(UInt64Builder),
    Bool(BooleanBuilder),
}

impl Builder {
    fn new(column: &Column<'_>) -> Self {
        match column {
            Column::Text(_) => Self::Text(StringBuilder::new()),
            Column::Number(_) => Self::Number(Float64Builder::new()),
            Column::Integer(_) => Self::Integer(UInt64Builder::new()),
            Column::Bool(_) => Self::Bool(BooleanBuilder::new()),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Utf8,
            Self::Number(_) => DataType::Float64,
            Self::Integer(_) => DataType::UInt64,
            Self::Bool(_) => DataType::Boolean,
        }
    }

    /// Whether the cell fits.
    fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (Self::Text(builder), Cell::Text(text)) => builder.append_value(text),
            (Self::Number(builder), Cell::Number(number)) => builder.append_value(number),
            (Self::Integer(builder), Cell::Integer(number)) => builder.append_value(number),
            (Self::Bool(builder), Cell::Bool(value)) => builder.append_value(value),
            (Self::Text(builder), Cell::Null) => builder.append_null(),
            (Self::Number(builder), Cell::Null) => builder.append_null(),
            (Self::Integer(builder), Cell::Null) => builder.append_null(),
            (Self::Bool(builder), Cell::Null) => builder.append_null(),
            _ => return false,
        }
        true
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Number(builder) => Arc::new(builder.finish()),
            Self::Integer(builder) => Arc::new(builder.finish()),
            Self::Bool(builder) => Arc::new(builder.finish()),
        }
    }
}

fn parquet_form(output: &Output, stream: OutputStream, columns: &[Column<'_>]) -> Result<Form> {
    let builders: Vec<_> = columns.iter().map(Builder::new).collect();
    let field = |(column, builder): (&Column<'_>, &Builder)| {
        Field::new(column.name(), builder.data_type(), true)
    };
    let fields: Vec<_> = columns.iter().zip(&builders).map(field).collect();
    let properties = WriterProperties::builder()
        .set_compression(ParquetCompression::ZSTD(ZstdLevel::default()))
        .build();
    let schema = Arc::new(Schema::new(fields));
    let writer = ArrowWriter::try_new(stream, Arc::clone(&schema), Some(properties))
        .map_err(|error| unwritable(&output.to_string(), error))?;
    Ok(Form::Parquet(Box::new(ParquetForm {
        writer,
        schema,
        columns: builders,
        pending: 0,
    })))
}

impl ParquetForm {
    fn write_batch(&mut self) -> std::result::Result<(), ParquetError> {
        self.pending = 0;
        let arrays = self.columns.iter_mut().map(Builder::finish).collect();
        self.writer
            .write(&RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }
}
