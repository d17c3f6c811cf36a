//! Small tables, for example of removed documents, clusters or pairs. Rows are written as they come.
//!
//! The extension decides the format: `.tsv` (the default for unknown extensions and standard output),
//! `.csv`, `.jsonl` or `.parquet`; all but the last also with `.gz` or `.zst`. TSV has no quoting, so a
//! tab, a line feed or a carriage return in a value is written as `\t`, `\n` or `\r`. Everything else
//! is written unchanged.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, ListBuilder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as ParquetCompression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::prepared::Prepared;
use super::stream::{OutputStream, Target, compression, refuse_extension};
use super::{Collected, Output, Written};
use crate::error::{Error, ErrorKind, Result};
use crate::source::{Compression, Format, Inputs, format_by_extension};

/// Rows collected into one Parquet batch.
const BATCH_ROWS: usize = 8192;

/// Bytes of lines collected before they are written.
const LINE_BYTES: usize = 64 << 10;

/// A column of a table: its name and the type of its values. Every column may hold [`Cell::Null`].
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
    /// Lists of 32-bit whole numbers.
    Numbers(&'a str),
    /// Lists of 64-bit whole numbers.
    LongNumbers(&'a str),
}

impl<'a> Column<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Text(name)
            | Self::Number(name)
            | Self::Integer(name)
            | Self::Bool(name)
            | Self::Numbers(name)
            | Self::LongNumbers(name) => name,
        }
    }
}

/// A value of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value: an empty cell, JSON `null`, a Parquet null.
    Null,
    /// An expected value that does not exist: `-` in a cell, JSON `null`, a Parquet null.
    Absent,
    /// A string.
    Text(&'a str),
    /// A double, written with the fewest digits that restore it. A value that is not finite becomes
    /// `null` in JSON.
    Number(f64),
    /// A whole number.
    Integer(u64),
    /// A truth value: `true` or `false`.
    Bool(bool),
    /// A list of whole numbers: separated by spaces in delimited tables, a list in JSON and Parquet.
    Numbers(&'a [u32]),
    /// The same for 64-bit numbers.
    LongNumbers(&'a [u64]),
}

impl Cell<'_> {
    /// Returns the approximate number of bytes that the value takes.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 8,
            Self::Numbers(numbers) => 4 * numbers.len() + 8,
            Self::LongNumbers(numbers) => 8 * numbers.len() + 8,
            _ => 8,
        }
    }
}

/// Writes a table row by row. Nothing appears under the output's name before [`finish`](Self::finish).
pub struct TableWriter {
    name: String,
    sink: Sink,
    /// Rows that have not been written yet.
    pending: TableRows,
    written: u64,
}

/// Encoded rows of a table, independent of the writer. Several threads can each fill their own, and
/// [`TableWriter::append`] takes them without encoding them again.
pub struct TableRows {
    names: Arc<[String]>,
    count: u64,
    encoded: Encoded,
}

enum Sink {
    Lines(Box<OutputStream>),
    Parquet(Box<ArrowWriter<OutputStream>>),
    Memory(Collected),
}

enum Encoded {
    Lines { lines: String, kind: LineKind },
    Parquet(Columns),
}

struct Columns {
    schema: SchemaRef,
    builders: Vec<Builder>,
    /// Rows in the builders.
    collected: usize,
    batches: Vec<RecordBatch>,
    /// Approximate bytes of all rows in the builders and batches.
    bytes: usize,
}

#[derive(Clone, Copy)]
enum LineKind {
    Delimited { delimiter: u8, quoting: bool },
    Json,
}

/// Refuses a table whose format or compression is not supported.
///
/// # Errors
///
/// If the extension of the output stands for an unsupported format or compression.
pub fn check_table(output: &Output) -> Result<()> {
    match output {
        Output::Path(path) => refuse_extension(path, true),
        Output::Stdout | Output::Memory(_) => Ok(()),
    }
}

impl TableWriter {
    /// Starts a table. `inputs`, if given, are protected from being overwritten.
    ///
    /// # Errors
    ///
    /// If the output cannot be created or is one of the inputs.
    pub fn create(
        output: &Output,
        columns: &[Column<'_>],
        inputs: Option<&Inputs>,
    ) -> Result<Self> {
        check_table(output)?;
        let format = match output {
            Output::Path(path) => format_by_extension(path),
            Output::Stdout => None,
            Output::Memory(collected) => return Ok(Self::in_memory(collected, columns)),
        };
        if format == Some(Format::Parquet) && compression(output) != Compression::None {
            return Err(Error::usage(format!("{output} would be compressed twice")));
        }
        let target = Target::open(output, inputs)?;
        let stream = OutputStream::new(output, target, 1)?;
        let mut pending = TableRows::new(columns, format);
        let sink = match &pending.encoded {
            Encoded::Lines { .. } => Sink::Lines(Box::new(stream)),
            Encoded::Parquet(columns) => {
                let properties = WriterProperties::builder()
                    .set_compression(ParquetCompression::ZSTD(ZstdLevel::default()))
                    .build();
                let schema = Arc::clone(&columns.schema);
                let writer = ArrowWriter::try_new(stream, schema, Some(properties))
                    .map_err(|error| unwritable(&output.to_string(), error))?;
                Sink::Parquet(Box::new(writer))
            }
        };
        pending.put_header();
        Ok(Self {
            name: output.to_string(),
            sink,
            pending,
            written: 0,
        })
    }

    fn in_memory(collected: &Collected, columns: &[Column<'_>]) -> Self {
        let pending = TableRows::new(columns, Some(Format::Memory));
        if let Encoded::Parquet(columns) = &pending.encoded {
            collected.begin(&columns.schema);
        }
        Self {
            name: Output::Memory(collected.clone()).to_string(),
            sink: Sink::Memory(collected.clone()),
            pending,
            written: 0,
        }
    }

    /// Returns an empty batch of rows for this table.
    pub fn rows(&self) -> TableRows {
        self.pending.empty()
    }

    /// Adds a row: one cell per column, of the column's type or [`Cell::Null`].
    ///
    /// # Errors
    ///
    /// If a write fails or the cells do not match the columns.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        self.pending.push(cells)?;
        match self.pending.is_worth_writing() {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Appends rows that were created by [`rows`](Self::rows).
    ///
    /// # Errors
    ///
    /// If a write fails.
    pub fn append(&mut self, rows: TableRows) -> Result<()> {
        // The header is written with the first rows, so that a run that is refused has written nothing.
        if rows.count == 0 {
            return Ok(());
        }
        self.flush()?;
        self.pending = rows;
        self.flush()
    }

    /// Writes the pending rows, except for those of an incomplete Parquet batch.
    fn flush(&mut self) -> Result<()> {
        self.written += std::mem::take(&mut self.pending.count);
        match (&mut self.sink, &mut self.pending.encoded) {
            (Sink::Lines(stream), Encoded::Lines { lines, .. }) => {
                stream.put(lines.as_bytes())?;
                lines.clear();
                Ok(())
            }
            (Sink::Parquet(writer), Encoded::Parquet(columns)) => {
                let all = columns.take_batches();
                let written = all
                    .and_then(|batches| batches.iter().try_for_each(|batch| writer.write(batch)));
                written.map_err(|error| unwritable(&self.name, error))
            }
            (Sink::Memory(collected), Encoded::Parquet(columns)) => {
                let batches = columns.take_batches();
                collected.extend(batches.map_err(|error| unwritable(&self.name, error))?);
                Ok(())
            }
            _ => Err(Error::usage(format!("the rows are not of {}", self.name))),
        }
    }

    /// Completes the table and puts it in place.
    ///
    /// # Errors
    ///
    /// If a write, a sync or a rename fails. The output is then unchanged.
    pub fn finish(self) -> Result<Written> {
        self.prepare()?.commit()
    }

    /// Completes the table without putting it in place.
    ///
    /// # Errors
    ///
    /// If a write or a sync fails.
    pub fn prepare(mut self) -> Result<Prepared> {
        self.flush()?;
        let rows = self.written;
        let stream = match self.sink {
            Sink::Lines(stream) => *stream,
            Sink::Parquet(writer) => {
                let stream = writer.into_inner();
                stream.map_err(|error| unwritable(&self.name, error))?
            }
            Sink::Memory(_) => return Ok(Prepared::nothing(Written { rows, bytes: 0 })),
        };
        let (target, bytes) = stream.finish()?;
        Prepared::of(target, Written { rows, bytes })
    }
}

impl TableRows {
    fn new(columns: &[Column<'_>], format: Option<Format>) -> Self {
        let lines = |kind| Encoded::Lines {
            lines: String::new(),
            kind,
        };
        let encoded = match format {
            Some(Format::Parquet | Format::Memory) => Encoded::Parquet(Columns::new(columns)),
            Some(Format::Jsonl) => lines(LineKind::Json),
            Some(Format::Csv { delimiter, quoting }) => {
                lines(LineKind::Delimited { delimiter, quoting })
            }
            _ => lines(LineKind::Delimited {
                delimiter: b'\t',
                quoting: false,
            }),
        };
        Self {
            names: columns.iter().map(|column| column.name().into()).collect(),
            count: 0,
            encoded,
        }
    }

    /// Returns an empty batch of rows for the same table.
    #[must_use]
    pub fn empty(&self) -> Self {
        Self {
            names: Arc::clone(&self.names),
            count: 0,
            encoded: match &self.encoded {
                Encoded::Lines { kind, .. } => Encoded::Lines {
                    lines: String::new(),
                    kind: *kind,
                },
                Encoded::Parquet(columns) => Encoded::Parquet(columns.empty()),
            },
        }
    }

    fn put_header(&mut self) {
        if let Encoded::Lines {
            lines,
            kind: LineKind::Delimited { delimiter, quoting },
        } = &mut self.encoded
        {
            let cells: Vec<_> = self.names.iter().map(|name| Cell::Text(name)).collect();
            put_line(&cells, *delimiter, *quoting, lines);
        }
    }

    /// Adds a row: one cell per column, of the column's type or [`Cell::Null`].
    ///
    /// # Errors
    ///
    /// If the cells do not match the columns.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        if cells.len() != self.names.len() {
            return Err(self.misfit(&format!("{} cells", cells.len())));
        }
        self.count += 1;
        match &mut self.encoded {
            Encoded::Lines { lines, kind } => {
                match *kind {
                    LineKind::Json => put_object(&self.names, cells, lines),
                    LineKind::Delimited { delimiter, quoting } => {
                        put_line(cells, delimiter, quoting, lines);
                    }
                }
                Ok(())
            }
            Encoded::Parquet(columns) => match columns.push(cells) {
                Ok(()) => Ok(()),
                Err(wrong) => Err(self.misfit(&wrong)),
            },
        }
    }

    /// Returns the approximate number of bytes that the rows take.
    pub fn bytes(&self) -> usize {
        match &self.encoded {
            Encoded::Lines { lines, .. } => lines.len(),
            Encoded::Parquet(columns) => columns.bytes,
        }
    }

    fn is_worth_writing(&self) -> bool {
        match &self.encoded {
            Encoded::Lines { lines, .. } => lines.len() >= LINE_BYTES,
            Encoded::Parquet(columns) => columns.collected >= BATCH_ROWS,
        }
    }

    fn misfit(&self, what: &str) -> Error {
        let names = self.names.join("`, `");
        Error::new(
            ErrorKind::Usage,
            format!("{what} cannot be written to a table with the columns `{names}`"),
        )
    }
}

impl Columns {
    fn new(columns: &[Column<'_>]) -> Self {
        let builders: Vec<_> = columns.iter().map(Builder::new).collect();
        let field = |(column, builder): (&Column<'_>, &Builder)| {
            Field::new(column.name(), builder.data_type(), true)
        };
        let fields: Vec<_> = columns.iter().zip(&builders).map(field).collect();
        Self {
            schema: Arc::new(Schema::new(fields)),
            builders,
            collected: 0,
            batches: Vec::new(),
            bytes: 0,
        }
    }

    fn empty(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            builders: self.builders.iter().map(Builder::empty).collect(),
            collected: 0,
            batches: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a row. The error names the cell that does not match its column.
    fn push(&mut self, cells: &[Cell<'_>]) -> std::result::Result<(), String> {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            if !builder.push(*cell) {
                return Err(format!("the cell {cell:?}"));
            }
            self.bytes += cell.bytes();
        }
        self.collected += 1;
        if self.collected == BATCH_ROWS {
            self.batch().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn batch(&mut self) -> std::result::Result<(), ParquetError> {
        if self.collected > 0 {
            self.collected = 0;
            let arrays = self.builders.iter_mut().map(Builder::finish).collect();
            self.batches
                .push(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?);
        }
        Ok(())
    }

    fn take_batches(&mut self) -> std::result::Result<Vec<RecordBatch>, ParquetError> {
        self.batch()?;
        self.bytes = 0;
        Ok(std::mem::take(&mut self.batches))
    }
}

/// Returns the error for a failure of the Parquet writer, which may be caused by the output beneath it.
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
            Cell::Absent => out.push('-'),
            Cell::Text(text) => put_delimited(text, delimiter, quoting, out),
            Cell::Number(number) => put_display(number, out),
            Cell::Integer(number) => put_display(number, out),
            Cell::Bool(value) => put_display(value, out),
            Cell::Numbers(numbers) => put_numbers(numbers, " ", out),
            Cell::LongNumbers(numbers) => put_numbers(numbers, " ", out),
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
            Cell::Null | Cell::Absent | Cell::Number(_) => out.push_str("null"),
            Cell::Integer(number) => put_display(number, out),
            Cell::Bool(value) => put_display(value, out),
            Cell::Numbers(numbers) => put_list(numbers, out),
            Cell::LongNumbers(numbers) => put_list(numbers, out),
        }
    }
    out.push_str("}\n");
}

fn put_list(numbers: &[impl std::fmt::Display], out: &mut String) {
    out.push('[');
    put_numbers(numbers, ",", out);
    out.push(']');
}

fn put_numbers(numbers: &[impl std::fmt::Display], between: &str, out: &mut String) {
    for (position, number) in numbers.iter().enumerate() {
        if position > 0 {
            out.push_str(between);
        }
        put_display(number, out);
    }
}

fn put_display(value: &impl std::fmt::Display, out: &mut String) {
    write!(out, "{value}").expect("writing to a string does not fail");
}

/// Appends a value as a field of a delimited table.
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

/// Returns a value as TSV contains it.
pub(crate) fn tsv_value(text: &str) -> Cow<'_, str> {
    let is_special = |byte| matches!(byte, b'\t' | b'\n' | b'\r');
    if !text.bytes().any(is_special) {
        return Cow::Borrowed(text);
    }
    let mut value = String::new();
    put_delimited(text, b'\t', false, &mut value);
    Cow::Owned(value)
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
    Numbers(ListBuilder<UInt32Builder>),
    LongNumbers(ListBuilder<UInt64Builder>),
}

impl Builder {
    fn new(column: &Column<'_>) -> Self {
        match column {
            Column::Text(_) => Self::Text(StringBuilder::new()),
            Column::Number(_) => Self::Number(Float64Builder::new()),
            Column::Integer(_) => Self::Integer(UInt64Builder::new()),
            Column::Bool(_) => Self::Bool(BooleanBuilder::new()),
            Column::Numbers(_) => Self::Numbers(ListBuilder::new(UInt32Builder::new())),
            Column::LongNumbers(_) => Self::LongNumbers(ListBuilder::new(UInt64Builder::new())),
        }
    }

    /// Returns an empty builder of the same type.
    fn empty(&self) -> Self {
        Self::new(&match self {
            Self::Text(_) => Column::Text(""),
            Self::Number(_) => Column::Number(""),
            Self::Integer(_) => Column::Integer(""),
            Self::Bool(_) => Column::Bool(""),
            Self::Numbers(_) => Column::Numbers(""),
            Self::LongNumbers(_) => Column::LongNumbers(""),
        })
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Utf8,
            Self::Number(_) => DataType::Float64,
            Self::Integer(_) => DataType::UInt64,
            Self::Bool(_) => DataType::Boolean,
            Self::Numbers(_) => {
                DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, true)))
            }
            Self::LongNumbers(_) => {
                DataType::List(Arc::new(Field::new_list_field(DataType::UInt64, true)))
            }
        }
    }

    /// Appends the cell. Returns `false` if it does not match the column.
    fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (Self::Text(builder), Cell::Text(text)) => builder.append_value(text),
            (Self::Number(builder), Cell::Number(number)) => builder.append_value(number),
            (Self::Integer(builder), Cell::Integer(number)) => builder.append_value(number),
            (Self::Bool(builder), Cell::Bool(value)) => builder.append_value(value),
            (Self::Numbers(builder), Cell::Numbers(numbers)) => {
                builder.values().append_slice(numbers);
                builder.append(true);
            }
            (Self::LongNumbers(builder), Cell::LongNumbers(numbers)) => {
                builder.values().append_slice(numbers);
                builder.append(true);
            }
            (Self::Text(builder), Cell::Null | Cell::Absent) => builder.append_null(),
            (Self::Number(builder), Cell::Null | Cell::Absent) => builder.append_null(),
            (Self::Integer(builder), Cell::Null | Cell::Absent) => builder.append_null(),
            (Self::Bool(builder), Cell::Null | Cell::Absent) => builder.append_null(),
            (Self::Numbers(builder), Cell::Null | Cell::Absent) => builder.append_null(),
            (Self::LongNumbers(builder), Cell::Null | Cell::Absent) => builder.append_null(),
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
            Self::Numbers(builder) => Arc::new(builder.finish()),
            Self::LongNumbers(builder) => Arc::new(builder.finish()),
        }
    }
}
