//! Kept rows as columns: the interface between the inputs that they are decoded from and the formats that they are
//! encoded in, and the changes of rows, which all of them share.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_ipc::CompressionType;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::kept_rows::WriteJob;
use super::{AddedField, AddedFields, AddedKind, AddedValue, LeftOutText, RowChange};
use crate::error::{Error, Result};
use crate::source::to_large_strings;

/// Uncompressed bytes of input in one task. Tasks are small because rows differ much in length, and all
/// threads should finish at about the same time.
pub(super) const TASK_BYTES: u64 = 16 << 20;

/// Receives some rows and their indices in the row set.
pub(super) type BatchVisitor<'a> = dyn FnMut(RecordBatch, &[usize]) -> Result<()> + 'a;

/// The kept rows of one output, decoded as columns. Threads decode different tasks.
pub(super) trait ColumnRows: Sync {
    /// Returns the columns.
    fn schema(&self) -> &SchemaRef;

    /// Returns the name of the first input, for messages.
    fn first_name(&self) -> &str;

    /// Returns the number of tasks.
    fn task_count(&self) -> usize;

    /// Returns the number of rows of a task, kept or not.
    fn task_rows(&self, task: usize) -> usize;

    /// Decodes the kept rows of a task, in order.
    fn visit_task(&self, task: usize, visit: &mut BatchVisitor<'_>) -> Result<()>;

    /// Returns the compression of each column, and the metadata, of Parquet.
    fn parquet_properties(&self) -> WriterProperties {
        let zstd = Compression::ZSTD(ZstdLevel::default());
        WriterProperties::builder().set_compression(zstd).build()
    }

    /// Returns the compression of Arrow.
    fn arrow_compression(&self) -> Option<CompressionType> {
        Some(CompressionType::ZSTD)
    }

    /// Returns `true` if each column with a dictionary has the same dictionary in all batches.
    fn has_fixed_dictionaries(&self) -> bool {
        false
    }
}

/// Returns the columns of an output, with those that are added.
pub(super) fn output_schema(
    source: &dyn ColumnRows,
    added: Option<&AddedFields<'_>>,
) -> Result<SchemaRef> {
    let schema = source.schema();
    let Some(added) = added else {
        return Ok(Arc::clone(schema));
    };
    refuse_taken_names(source, added)?;
    let mut fields = schema.fields().to_vec();
    for AddedField { name, kind } in added.fields {
        let data_type = match kind {
            AddedKind::Text => DataType::Utf8,
            AddedKind::Number => DataType::Float64,
            AddedKind::Integer => DataType::Int64,
            AddedKind::Texts => DataType::new_list(DataType::Utf8, true),
        };
        // The first column has a value in every row.
        let is_nullable = fields.len() > schema.fields().len();
        fields.push(Arc::new(Field::new(&**name, data_type, is_nullable)));
    }
    Ok(Arc::new(Schema::new_with_metadata(
        fields,
        schema.metadata().clone(),
    )))
}

/// Refuses added fields whose names are taken.
pub(super) fn refuse_taken_names(source: &dyn ColumnRows, added: &AddedFields<'_>) -> Result<()> {
    let fields = source.schema().fields();
    match added.names().find(|name| fields.find(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::input_error(format!(
            "{} already has a column `{name}`",
            source.first_name()
        ))),
    }
}

/// Returns the columns of some rows as they are written.
pub(super) fn changed_columns(
    job: &WriteJob<'_>,
    source: &dyn ColumnRows,
    batch: &RecordBatch,
    rows: &[usize],
) -> Result<Vec<ArrayRef>> {
    let mut columns = cut_columns(job, source, batch, rows)?;
    if let RowChange::AddFields(fields) = job.options.change {
        columns.extend(added_columns(fields, rows)?);
    }
    Ok(columns)
}

/// Returns the columns of some rows, without the parts of the text that are left out.
pub(super) fn cut_columns(
    job: &WriteJob<'_>,
    source: &dyn ColumnRows,
    batch: &RecordBatch,
    rows: &[usize],
) -> Result<Vec<ArrayRef>> {
    let mut columns = batch.columns().to_vec();
    if let RowChange::CutText(left_out) = job.options.change {
        let field = job.inputs.first_text_field();
        let schema = batch.schema();
        let (at, _) = schema.column_with_name(field).ok_or_else(|| {
            Error::usage_error(format!(
                "the text `{field}` of {} is within a column: text can be cut in a column of its own",
                source.first_name()
            ))
        })?;
        columns[at] = cut_column(source.first_name(), &columns[at], rows, left_out)?;
    }
    Ok(columns)
}

/// Returns the values of added fields as columns.
fn added_columns(fields: &AddedFields<'_>, rows: &[usize]) -> Result<Vec<ArrayRef>> {
    let values = rows.iter().map(|&row| (fields.values)(row));
    let values: Vec<Vec<AddedValue>> = values.collect::<Result<_>>()?;
    let column = |(at, field): (usize, &AddedField)| -> ArrayRef {
        let values = values.iter().map(|row| &row[at]);
        match field.kind {
            AddedKind::Number => Arc::new(values.map(number_of).collect::<Float64Array>()),
            AddedKind::Integer => Arc::new(values.map(integer_of).collect::<Int64Array>()),
            AddedKind::Text => Arc::new(values.map(text_of).collect::<StringArray>()),
            AddedKind::Texts => Arc::new(collect_lists(values)),
        }
    };
    Ok(fields.fields.iter().enumerate().map(column).collect())
}

fn number_of(value: &AddedValue) -> Option<f64> {
    match value {
        AddedValue::Number(number) => Some(*number),
        _ => None,
    }
}

fn integer_of(value: &AddedValue) -> Option<i64> {
    match value {
        AddedValue::Integer(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}

fn collect_lists<'v>(values: impl Iterator<Item = &'v AddedValue>) -> ListArray {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for value in values {
        match value {
            AddedValue::Texts(texts) => lists.append_value(texts.iter().map(Some)),
            _ => lists.append_null(),
        }
    }
    lists.finish()
}

fn text_of(value: &AddedValue) -> Option<&str> {
    match value {
        AddedValue::Text(text) | AddedValue::Json(text) => Some(text),
        _ => None,
    }
}

/// Returns a column of texts, of which parts are left out, with its type.
fn cut_column(
    name: &str,
    column: &ArrayRef,
    rows: &[usize],
    left_out: &(dyn Fn(usize) -> Result<Option<LeftOutText>> + Sync),
) -> Result<ArrayRef> {
    let left_out = rows.iter().map(|&row| left_out(row));
    let left_out: Vec<Option<LeftOutText>> = left_out.collect::<Result<_>>()?;
    if left_out.iter().all(Option::is_none) {
        return Ok(Arc::clone(column));
    }
    let failed = |reason: String| Error::input_error(format!("{name}: {reason}"));
    let wide = to_large_strings(column).map_err(|error| failed(error.to_string()))?;
    let texts = wide.iter().zip(&left_out);
    let texts = texts.map(|(text, left_out)| match (text, left_out) {
        (Some(text), Some(left_out)) => left_out.cut_text(text).map(Some).map_err(failed),
        (text, _) => Ok(text.map(str::to_owned)),
    });
    let texts = texts.collect::<Result<Vec<Option<String>>>>()?;
    match column.data_type() {
        DataType::Utf8 => Ok(Arc::new(StringArray::from(texts))),
        DataType::LargeUtf8 => Ok(Arc::new(LargeStringArray::from(texts))),
        DataType::Utf8View => Ok(Arc::new(texts.into_iter().collect::<StringViewArray>())),
        other => Err(failed(format!(
            "text can be cut in columns of strings, and this one has the type {other}"
        ))),
    }
}

/// Returns the kept rows among those of a range of the row set.
pub(super) fn kept_rows_of(job: &WriteJob<'_>, rows: Range<usize>) -> Vec<usize> {
    rows.filter(|&row| job.rows.is_kept(row)).collect()
}
