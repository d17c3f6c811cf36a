//! Small tables, for example of removed documents, clusters or pairs. Rows are written as they come.
//!
//! The extension decides the format: `.tsv` (the default for unknown extensions and standard output),
//! `.csv`, `.jsonl`, `.parquet` or Arrow (`.arrow`, `.feather`, and `.arrows` as a stream); the text formats also with
//! `.gz` or `.zst`. TSV has no quoting, so a
//! tab, a line feed or a carriage return in a value is written as `\t`, `\n` or `\r`. Everything else
//! is written unchanged.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, ListBuilder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as ParquetCompression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::arrow_writer::{ArrowSink, unwritable_arrow};
use super::conversion::ColumnTarget;
use super::output_stream::{OpenOutput, OutputStream, compression, refuse_extension};
use super::staged_output::StagedOutput;
use super::{CollectedTable, OutputTarget, WrittenOutput};
use crate::error::{Error, ErrorKind, Result};
use crate::source::{CompressionKind, InputFormat, InputSet, format_by_extension};

/// Rows collected into one batch of Parquet or Arrow.
const BATCH_ROWS: usize = 8192;

/// Bytes of lines collected before they are written.
const LINE_BYTES: usize = 64 << 10;

/// A column of a table: its name and the type of its values. Every column may hold [`TableCell::Null`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableColumn<'a> {
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

impl<'a> TableColumn<'a> {
    fn column_name(self) -> &'a str {
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
pub enum TableCell<'a> {
    /// No value: an empty cell, JSON `null`, a null of Parquet and Arrow.
    Null,
    /// An expected value that does not exist: `-` in a cell, JSON `null`, a null of Parquet and Arrow.
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
    /// A list of whole numbers: separated by spaces in delimited tables, a list in JSON, Parquet and Arrow.
    Numbers(&'a [u32]),
    /// A list of 64-bit numbers, in the same form.
    LongNumbers(&'a [u64]),
}

impl TableCell<'_> {
    /// Returns the approximate number of bytes that the value takes.
    fn approximate_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 8,
            Self::Numbers(numbers) => 4 * numbers.len() + 8,
            Self::LongNumbers(numbers) => 8 * numbers.len() + 8,
            _ => 8,
        }
    }
}

/// Writes a table row by row. Nothing appears under the output's name before
/// [`finish_table`](Self::finish_table).
pub struct TableWriter {
    name: String,
    sink: TableSink,
    /// Rows that have not been written yet.
    pending: TableRows,
    written: u64,
}

/// Encoded rows of a table, independent of the writer. Several threads can each fill their own, and
/// [`TableWriter::append_rows`] takes them without encoding them again.
pub struct TableRows {
    names: Arc<[String]>,
    count: u64,
    encoded: EncodedTableRows,
}

enum TableSink {
    Lines(Box<OutputStream>),
    Parquet(Box<ArrowWriter<OutputStream>>),
    Arrow(ArrowSink),
    Memory(CollectedTable),
}

enum EncodedTableRows {
    Lines { lines: String, kind: LineKind },
    Columns(ColumnBuilders),
}

struct ColumnBuilders {
    schema: SchemaRef,
    builders: Vec<ColumnBuilder>,
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
pub fn check_table(output: &OutputTarget) -> Result<()> {
    match output {
        OutputTarget::Path(path) => refuse_extension(path, true),
        OutputTarget::Stdout | OutputTarget::Memory(_) => Ok(()),
    }
}

impl TableWriter {
    /// Starts a table. `inputs`, if given, are protected from being overwritten.
    ///
    /// # Errors
    ///
    /// If the output cannot be created or is one of the inputs.
    pub fn create_table(
        output: &OutputTarget,
        columns: &[TableColumn<'_>],
        inputs: Option<&InputSet>,
    ) -> Result<Self> {
        check_table(output)?;
        let format = match output {
            OutputTarget::Path(path) => format_by_extension(path),
            OutputTarget::Stdout => None,
            OutputTarget::Memory(collected) => {
                return Ok(Self::collect_in_memory(collected, columns));
            }
        };
        let is_columnar = format.is_some_and(InputFormat::is_columnar);
        if is_columnar && compression(output) != CompressionKind::None {
            return Err(Error::usage_error(format!(
                "{output} would be compressed twice"
            )));
        }
        let target = OpenOutput::open_target(output, inputs)?;
        let stream = OutputStream::new(output, target, 1)?;
        let mut pending = TableRows::new(columns, format);
        let sink = match &pending.encoded {
            EncodedTableRows::Lines { .. } => TableSink::Lines(Box::new(stream)),
            EncodedTableRows::Columns(columns) => start_columns(stream, output, &columns.schema)?,
        };
        pending.put_header();
        Ok(Self {
            name: output.to_string(),
            sink,
            pending,
            written: 0,
        })
    }

    fn collect_in_memory(collected: &CollectedTable, columns: &[TableColumn<'_>]) -> Self {
        let pending = TableRows::new(columns, Some(InputFormat::Memory));
        if let EncodedTableRows::Columns(columns) = &pending.encoded {
            collected.begin_table(&columns.schema);
        }
        Self {
            name: OutputTarget::Memory(collected.clone()).to_string(),
            sink: TableSink::Memory(collected.clone()),
            pending,
            written: 0,
        }
    }

    /// Returns an empty batch of rows for this table.
    pub fn new_rows(&self) -> TableRows {
        self.pending.empty_like()
    }

    /// Adds a row: one cell per column, of the column's type or [`TableCell::Null`].
    ///
    /// # Errors
    ///
    /// If a write fails or the cells do not match the columns.
    pub fn push_row(&mut self, cells: &[TableCell<'_>]) -> Result<()> {
        self.pending.push_row(cells)?;
        if self.pending.is_worth_writing() {
            self.flush_pending()
        } else {
            Ok(())
        }
    }

    /// Appends rows that were created by [`new_rows`](Self::new_rows).
    ///
    /// # Errors
    ///
    /// If a write fails.
    pub fn append_rows(&mut self, rows: TableRows) -> Result<()> {
        // The header is written with the first rows, so that a run that is refused has written nothing.
        if rows.count == 0 {
            return Ok(());
        }
        self.flush_pending()?;
        self.pending = rows;
        self.flush_pending()
    }

    /// Writes the pending rows, except for those of an incomplete batch of columns.
    fn flush_pending(&mut self) -> Result<()> {
        self.written += std::mem::take(&mut self.pending.count);
        match (&mut self.sink, &mut self.pending.encoded) {
            (TableSink::Lines(stream), EncodedTableRows::Lines { lines, .. }) => {
                stream.write_bytes(lines.as_bytes())?;
                lines.clear();
                Ok(())
            }
            (TableSink::Parquet(writer), EncodedTableRows::Columns(columns)) => {
                let all = columns.take_batches();
                let written = all
                    .and_then(|batches| batches.iter().try_for_each(|batch| writer.write(batch)));
                written.map_err(|error| unwritable(&self.name, error))
            }
            (TableSink::Arrow(sink), EncodedTableRows::Columns(columns)) => {
                let batches = columns.take_batches();
                let batches = batches.map_err(|error| unwritable(&self.name, error))?;
                let written = batches.iter().try_for_each(|batch| sink.write_batch(batch));
                written.map_err(|error| unwritable_arrow(&self.name, error))
            }
            (TableSink::Memory(collected), EncodedTableRows::Columns(columns)) => {
                let batches = columns.take_batches();
                collected.extend_batches(batches.map_err(|error| unwritable(&self.name, error))?);
                Ok(())
            }
            _ => Err(Error::usage_error(format!(
                "the rows are not of {}",
                self.name
            ))),
        }
    }

    /// Completes the table and puts it in place.
    ///
    /// # Errors
    ///
    /// If a write, a sync or a rename fails. The output is then unchanged.
    pub fn finish_table(self) -> Result<WrittenOutput> {
        self.prepare_table()?.commit_output()
    }

    /// Completes the table without putting it in place.
    ///
    /// # Errors
    ///
    /// If a write or a sync fails.
    pub fn prepare_table(mut self) -> Result<StagedOutput> {
        self.flush_pending()?;
        let rows = self.written;
        let stream = match self.sink {
            TableSink::Lines(stream) => *stream,
            TableSink::Parquet(writer) => {
                let stream = writer.into_inner();
                stream.map_err(|error| unwritable(&self.name, error))?
            }
            TableSink::Arrow(sink) => {
                let stream = sink.finish();
                stream.map_err(|error| unwritable_arrow(&self.name, error))?
            }
            TableSink::Memory(_) => {
                return Ok(StagedOutput::without_name(WrittenOutput { rows, bytes: 0 }));
            }
        };
        let (target, bytes) = stream.finish_stream()?;
        StagedOutput::from_target(target, WrittenOutput { rows, bytes })
    }
}

impl TableRows {
    fn new(columns: &[TableColumn<'_>], format: Option<InputFormat>) -> Self {
        let lines = |kind| EncodedTableRows::Lines {
            lines: String::new(),
            kind,
        };
        let encoded = match format {
            Some(format) if format.is_columnar() || format == InputFormat::Memory => {
                EncodedTableRows::Columns(ColumnBuilders::new(columns))
            }
            Some(InputFormat::Jsonl) => lines(LineKind::Json),
            Some(InputFormat::Csv { delimiter, quoting }) => {
                lines(LineKind::Delimited { delimiter, quoting })
            }
            _ => lines(LineKind::Delimited {
                delimiter: b'\t',
                quoting: false,
            }),
        };
        Self {
            names: columns
                .iter()
                .map(|column| column.column_name().into())
                .collect(),
            count: 0,
            encoded,
        }
    }

    /// Returns an empty batch of rows for the same table.
    #[must_use]
    pub fn empty_like(&self) -> Self {
        Self {
            names: Arc::clone(&self.names),
            count: 0,
            encoded: match &self.encoded {
                EncodedTableRows::Lines { kind, .. } => EncodedTableRows::Lines {
                    lines: String::new(),
                    kind: *kind,
                },
                EncodedTableRows::Columns(columns) => {
                    EncodedTableRows::Columns(columns.empty_like())
                }
            },
        }
    }

    fn put_header(&mut self) {
        if let EncodedTableRows::Lines {
            lines,
            kind: LineKind::Delimited { delimiter, quoting },
        } = &mut self.encoded
        {
            let cells: Vec<_> = self
                .names
                .iter()
                .map(|name| TableCell::Text(name))
                .collect();
            append_line(&cells, *delimiter, *quoting, lines);
        }
    }

    /// Adds a row: one cell per column, of the column's type or [`TableCell::Null`].
    ///
    /// # Errors
    ///
    /// If the cells do not match the columns.
    pub fn push_row(&mut self, cells: &[TableCell<'_>]) -> Result<()> {
        if cells.len() != self.names.len() {
            return Err(self.misfit_error(&format!("{} cells", cells.len())));
        }
        self.count += 1;
        match &mut self.encoded {
            EncodedTableRows::Lines { lines, kind } => {
                match *kind {
                    LineKind::Json => put_object(&self.names, cells, lines),
                    LineKind::Delimited { delimiter, quoting } => {
                        append_line(cells, delimiter, quoting, lines);
                    }
                }
                Ok(())
            }
            EncodedTableRows::Columns(columns) => match columns.push_row(cells) {
                Ok(()) => Ok(()),
                Err(wrong) => Err(self.misfit_error(&wrong)),
            },
        }
    }

    /// Returns the approximate number of bytes that the rows take.
    pub fn approximate_bytes(&self) -> usize {
        match &self.encoded {
            EncodedTableRows::Lines { lines, .. } => lines.len(),
            EncodedTableRows::Columns(columns) => columns.bytes,
        }
    }

    fn is_worth_writing(&self) -> bool {
        match &self.encoded {
            EncodedTableRows::Lines { lines, .. } => lines.len() >= LINE_BYTES,
            EncodedTableRows::Columns(columns) => columns.collected >= BATCH_ROWS,
        }
    }

    fn misfit_error(&self, what: &str) -> Error {
        let names = self.names.join("`, `");
        Error::new(
            ErrorKind::Usage,
            format!("{what} cannot be written to a table with the columns `{names}`"),
        )
    }
}

impl ColumnBuilders {
    fn new(columns: &[TableColumn<'_>]) -> Self {
        let builders: Vec<_> = columns.iter().map(ColumnBuilder::new).collect();
        let field = |(column, builder): (&TableColumn<'_>, &ColumnBuilder)| {
            Field::new(column.column_name(), builder.data_type(), true)
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

    fn empty_like(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            builders: self
                .builders
                .iter()
                .map(ColumnBuilder::empty_like)
                .collect(),
            collected: 0,
            batches: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a row. The error names the cell that does not match its column.
    fn push_row(&mut self, cells: &[TableCell<'_>]) -> std::result::Result<(), String> {
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            if !builder.push_cell(*cell) {
                return Err(format!("the cell {cell:?}"));
            }
            self.bytes += cell.approximate_bytes();
        }
        self.collected += 1;
        if self.collected == BATCH_ROWS {
            self.finish_batch().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn finish_batch(&mut self) -> std::result::Result<(), ParquetError> {
        if self.collected > 0 {
            self.collected = 0;
            let arrays = self
                .builders
                .iter_mut()
                .map(ColumnBuilder::finish_array)
                .collect();
            self.batches
                .push(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?);
        }
        Ok(())
    }

    fn take_batches(&mut self) -> std::result::Result<Vec<RecordBatch>, ParquetError> {
        self.finish_batch()?;
        self.bytes = 0;
        Ok(std::mem::take(&mut self.batches))
    }
}

/// Starts a table of columns in the format that the output's name stands for.
fn start_columns(
    stream: OutputStream,
    output: &OutputTarget,
    schema: &SchemaRef,
) -> Result<TableSink> {
    let name = output.to_string();
    let target = ColumnTarget::from_path(output);
    if let Some(target @ (ColumnTarget::ArrowFile | ColumnTarget::ArrowStream)) = target {
        let is_stream = target == ColumnTarget::ArrowStream;
        return ArrowSink::start(stream, schema, Some(CompressionType::ZSTD), is_stream)
            .map(TableSink::Arrow)
            .map_err(|error| unwritable_arrow(&name, error));
    }
    let properties = WriterProperties::builder()
        .set_compression(ParquetCompression::ZSTD(ZstdLevel::default()))
        .build();
    let writer = ArrowWriter::try_new(stream, Arc::clone(schema), Some(properties))
        .map_err(|error| unwritable(&name, error))?;
    Ok(TableSink::Parquet(Box::new(writer)))
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

fn append_line(cells: &[TableCell<'_>], delimiter: u8, quoting: bool, out: &mut String) {
    for (position, cell) in cells.iter().enumerate() {
        if position > 0 {
            out.push(char::from(delimiter));
        }
        match cell {
            TableCell::Null => {}
            TableCell::Absent => out.push('-'),
            TableCell::Text(text) => put_delimited(text, delimiter, quoting, out),
            TableCell::Number(number) => put_display(number, out),
            TableCell::Integer(number) => put_display(number, out),
            TableCell::Bool(value) => put_display(value, out),
            TableCell::Numbers(numbers) => put_numbers(numbers, " ", out),
            TableCell::LongNumbers(numbers) => put_numbers(numbers, " ", out),
        }
    }
    out.push('\n');
}

fn put_object(names: &[String], cells: &[TableCell<'_>], out: &mut String) {
    for (position, (name, cell)) in names.iter().zip(cells).enumerate() {
        out.push(if position == 0 { '{' } else { ',' });
        put_json_string(name, out);
        out.push(':');
        match cell {
            TableCell::Text(text) => put_json_string(text, out),
            TableCell::Number(number) if number.is_finite() => put_display(number, out),
            TableCell::Null | TableCell::Absent | TableCell::Number(_) => out.push_str("null"),
            TableCell::Integer(number) => put_display(number, out),
            TableCell::Bool(value) => put_display(value, out),
            TableCell::Numbers(numbers) => append_list(numbers, out),
            TableCell::LongNumbers(numbers) => append_list(numbers, out),
        }
    }
    out.push_str("}\n");
}

fn append_list(numbers: &[impl std::fmt::Display], out: &mut String) {
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
    if quoting && text.bytes().any(|byte| special(byte) || byte == b'"') {
        out.push('"');
        out.push_str(&text.replace('"', "\"\""));
        out.push('"');
    } else if !quoting && text.bytes().any(special) {
        for character in text.chars() {
            match character {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' if delimiter == b'\t' => out.push_str("\\t"),
                other => out.push(other),
            }
        }
    } else {
        out.push_str(text);
    }
}

/// Returns a value as TSV contains it.
pub fn escape_tsv(text: &str) -> Cow<'_, str> {
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

enum ColumnBuilder {
    Text(StringBuilder),
    Number(Float64Builder),
    Integer(UInt64Builder),
    Bool(BooleanBuilder),
    Numbers(ListBuilder<UInt32Builder>),
    LongNumbers(ListBuilder<UInt64Builder>),
}

impl ColumnBuilder {
    fn new(column: &TableColumn<'_>) -> Self {
        match column {
            TableColumn::Text(_) => Self::Text(StringBuilder::new()),
            TableColumn::Number(_) => Self::Number(Float64Builder::new()),
            TableColumn::Integer(_) => Self::Integer(UInt64Builder::new()),
            TableColumn::Bool(_) => Self::Bool(BooleanBuilder::new()),
            TableColumn::Numbers(_) => Self::Numbers(ListBuilder::new(UInt32Builder::new())),
            TableColumn::LongNumbers(_) => {
                Self::LongNumbers(ListBuilder::new(UInt64Builder::new()))
            }
        }
    }

    /// Returns an empty builder of the same type.
    fn empty_like(&self) -> Self {
        Self::new(&match self {
            Self::Text(_) => TableColumn::Text(""),
            Self::Number(_) => TableColumn::Number(""),
            Self::Integer(_) => TableColumn::Integer(""),
            Self::Bool(_) => TableColumn::Bool(""),
            Self::Numbers(_) => TableColumn::Numbers(""),
            Self::LongNumbers(_) => TableColumn::LongNumbers(""),
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
    fn push_cell(&mut self, cell: TableCell<'_>) -> bool {
        match (self, cell) {
            (Self::Text(builder), TableCell::Text(text)) => builder.append_value(text),
            (Self::Number(builder), TableCell::Number(number)) => builder.append_value(number),
            (Self::Integer(builder), TableCell::Integer(number)) => builder.append_value(number),
            (Self::Bool(builder), TableCell::Bool(value)) => builder.append_value(value),
            (Self::Numbers(builder), TableCell::Numbers(numbers)) => {
                builder.values().append_slice(numbers);
                builder.append(true);
            }
            (Self::LongNumbers(builder), TableCell::LongNumbers(numbers)) => {
                builder.values().append_slice(numbers);
                builder.append(true);
            }
            (Self::Text(builder), TableCell::Null | TableCell::Absent) => builder.append_null(),
            (Self::Number(builder), TableCell::Null | TableCell::Absent) => builder.append_null(),
            (Self::Integer(builder), TableCell::Null | TableCell::Absent) => builder.append_null(),
            (Self::Bool(builder), TableCell::Null | TableCell::Absent) => builder.append_null(),
            (Self::Numbers(builder), TableCell::Null | TableCell::Absent) => builder.append_null(),
            (Self::LongNumbers(builder), TableCell::Null | TableCell::Absent) => {
                builder.append_null()
            }
            _ => return false,
        }
        true
    }

    fn finish_array(&mut self) -> ArrayRef {
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
