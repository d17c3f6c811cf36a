//! The file of a stream that was in memory: its kept documents and settings, as an Arrow file.
//!
//! The columns are `id` (a JSON string or number), `text`, `time` (seconds since 1970) and `seq`. The settings are JSON in
//! the metadata of the schema, with the number of the next document as `next`. The others are those of the binding that
//! made the stream: this module does not read them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{ArrayRef, Float64Array, LargeStringArray, RecordBatch, UInt64Array};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use lookalike::catch_panics;
use lookalike::stream::{KeptDocument, Timestamp};
use serde_json::{Map, Value};

use crate::error::{Error, Result, display_path};
use crate::sink::AtomicFile;

/// Name of the settings in the metadata of the schema.
const SETTINGS_KEY: &str = "lookalike stream";

/// Field of the settings with the number of the next document.
const NEXT_FIELD: &str = "next";

/// Rows that are converted at a time.
const ROWS_PER_BATCH: usize = 1 << 14;

const MICROSECONDS_PER_SECOND: f64 = 1e6;

/// Largest distance of a time from 1970, in microseconds, that a file can have: about 285,000 years.
const MAX_TIME_US: f64 = 9e18;

/// A kept document, whose id is JSON.
pub type SavedDocument = KeptDocument<String>;

/// A stream as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedStream {
    /// Settings.
    pub settings: Map<String, Value>,
    /// Number of the next document.
    pub next_seq: u64,
    /// Kept documents in the order of their numbers.
    pub documents: Vec<SavedDocument>,
}

/// Writes a stream to a file, which appears under its name when it is complete and on disk.
///
/// # Errors
/// If the file cannot be written.
pub fn write_stream(
    path: &Path,
    mut settings: Map<String, Value>,
    next_seq: u64,
    documents: impl Iterator<Item = SavedDocument>,
) -> Result<()> {
    let failed =
        |error| Error::output_error(format!("cannot write {}: {error}", display_path(path)));
    let file = AtomicFile::create_for(path)?;
    settings.insert(NEXT_FIELD.to_owned(), next_seq.into());
    let settings = Value::Object(settings).to_string();
    let metadata = HashMap::from([(SETTINGS_KEY.to_owned(), settings)]);
    let schema = Arc::new(stream_schema().with_metadata(metadata));
    let mut writer =
        FileWriter::try_new(BufWriter::new(file.as_file()), &schema).map_err(failed)?;
    let mut documents = documents.peekable();
    while documents.peek().is_some() {
        let rows: Vec<_> = documents.by_ref().take(ROWS_PER_BATCH).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), to_columns(&rows));
        batch
            .and_then(|batch| writer.write(&batch))
            .map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    drop(writer);
    file.commit_file()
}

/// Reads a stream that [`write_stream`] wrote.
///
/// # Errors
/// If the file cannot be read, or is not one of a stream.
pub fn read_stream(path: &Path) -> Result<SavedStream> {
    let place = display_path(path);
    let file = File::open(path).map_err(|cause| Error::read_error("open", &place, cause))?;
    let refused = |reason: &str| {
        Error::input_error(format!("{place} is not a stream that was saved: {reason}"))
    };
    let unreadable = |error: ArrowError| refused(&error.to_string());
    // Damaged files make the library panic.
    let read = catch_panics(|| read_columns(file, &unreadable, &refused));
    read.unwrap_or_else(|_| Err(refused("its content is damaged")))
}

fn read_columns(
    file: File,
    unreadable: &dyn Fn(ArrowError) -> Error,
    refused: &dyn Fn(&str) -> Error,
) -> Result<SavedStream> {
    let reader = FileReader::try_new(BufReader::new(file), None).map_err(unreadable)?;
    let schema = reader.schema();
    let settings = schema.metadata().get(SETTINGS_KEY);
    let settings = settings.ok_or_else(|| refused("its schema has no settings"))?;
    let settings: serde_json::Result<Map<_, _>> = serde_json::from_str(settings);
    let mut settings = settings.map_err(|error| refused(&format!("its settings: {error}")))?;
    let next_seq = settings.remove(NEXT_FIELD);
    let next_seq = next_seq.as_ref().and_then(Value::as_u64);
    let next_seq = next_seq.ok_or_else(|| refused("its settings have no number `next`"))?;
    if !has_stream_columns(&schema) {
        return Err(refused("its columns are not id, text, time and seq"));
    }
    let mut documents = Vec::new();
    for batch in reader {
        let read = read_rows(&batch.map_err(unreadable)?, next_seq, &mut documents);
        read.map_err(|reason| refused(&reason))?;
    }
    Ok(SavedStream {
        settings,
        next_seq,
        documents,
    })
}

fn stream_schema() -> Schema {
    let columns = [
        ("id", DataType::LargeUtf8),
        ("text", DataType::LargeUtf8),
        ("time", DataType::Float64),
        ("seq", DataType::UInt64),
    ];
    let fields = columns.map(|(name, data_type)| Field::new(name, data_type, true));
    Schema::new(fields.to_vec())
}

fn has_stream_columns(schema: &Schema) -> bool {
    let columns = |schema: &Schema| -> Vec<_> {
        let fields = schema.fields().iter();
        fields
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect()
    };
    columns(schema) == columns(&stream_schema())
}

fn to_columns(rows: &[SavedDocument]) -> Vec<ArrayRef> {
    let ids = rows.iter().map(|row| Some(&*row.id));
    let texts = rows.iter().map(|row| Some(&*row.text));
    let times = rows
        .iter()
        .map(|row| row.time.0 as f64 / MICROSECONDS_PER_SECOND);
    let numbers = rows.iter().map(|row| row.seq);
    vec![
        Arc::new(LargeStringArray::from_iter(ids)),
        Arc::new(LargeStringArray::from_iter(texts)),
        Arc::new(Float64Array::from_iter_values(times)),
        Arc::new(UInt64Array::from_iter_values(numbers)),
    ]
}

/// Appends the rows of a batch with the columns of a stream.
///
/// # Errors
/// The reason why a row is none of a stream, with the number of the row.
fn read_rows(
    batch: &RecordBatch,
    next_seq: u64,
    documents: &mut Vec<SavedDocument>,
) -> Result<(), String> {
    let ids = batch.column(0).as_string::<i64>();
    let texts = batch.column(1).as_string::<i64>();
    let times = batch.column(2).as_primitive::<Float64Type>();
    let numbers = batch.column(3).as_primitive::<UInt64Type>();
    for row in 0..batch.num_rows() {
        let refuse = |reason: &str| Err(format!("its row {}: {reason}", documents.len() + 1));
        if batch.columns().iter().any(|column| column.is_null(row)) {
            return refuse("a value is missing");
        }
        let time_us = (times.value(row) * MICROSECONDS_PER_SECOND).round();
        if !time_us.is_finite() || time_us.abs() > MAX_TIME_US {
            return refuse("its time is no time");
        }
        let seq = numbers.value(row);
        if seq >= next_seq {
            return refuse(&format!("its number {seq} is not below {next_seq}"));
        }
        documents.push(SavedDocument {
            id: ids.value(row).to_owned(),
            text: texts.value(row).into(),
            time: Timestamp(time_us as i64),
            seq,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(
        id: Option<&str>,
        text: Option<&str>,
        time: Option<f64>,
        seq: Option<u64>,
    ) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(LargeStringArray::from_iter([Some("first"), id])),
            Arc::new(LargeStringArray::from_iter([Some("a text"), text])),
            Arc::new(Float64Array::from_iter([Some(1.5), time])),
            Arc::new(UInt64Array::from_iter([Some(0), seq])),
        ];
        RecordBatch::try_new(Arc::new(stream_schema()), columns).unwrap()
    }

    fn read(batch: &RecordBatch) -> Result<Vec<SavedDocument>, String> {
        let mut documents = Vec::new();
        read_rows(batch, 7, &mut documents).map(|()| documents)
    }

    #[test]
    fn damaged_rows_are_refused_by_their_number() {
        let documents = read(&rows(Some("a"), Some("b"), Some(-2.0), Some(6))).unwrap();
        assert_eq!((documents.len(), documents[1].time.0), (2, -2_000_000));
        for (batch, reason) in [
            (rows(None, Some("b"), Some(0.0), Some(1)), "missing"),
            (rows(Some("a"), None, Some(0.0), Some(1)), "missing"),
            (rows(Some("a"), Some("b"), None, Some(1)), "missing"),
            (rows(Some("a"), Some("b"), Some(0.0), None), "missing"),
            (rows(Some("a"), Some("b"), Some(f64::NAN), Some(1)), "time"),
            (
                rows(Some("a"), Some("b"), Some(f64::INFINITY), Some(1)),
                "time",
            ),
            (rows(Some("a"), Some("b"), Some(1e13), Some(1)), "time"),
            (
                rows(Some("a"), Some("b"), Some(0.0), Some(7)),
                "not below 7",
            ),
        ] {
            let refused = read(&batch).err().unwrap();
            assert!(
                refused.contains("its row 2") && refused.contains(reason),
                "{refused}"
            );
        }
    }
}
