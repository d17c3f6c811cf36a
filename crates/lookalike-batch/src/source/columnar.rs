//! Parquet: the wanted columns, decoded in batches of about a block.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, LargeStringArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::SchemaDescriptor;

use super::values::{Kind, Plan, Values};
use crate::error::{Error, Result};

/// The most rows in a batch, however short they look: a dictionary may hide how long they are.
const MAX_BATCH_ROWS: usize = 2048;

/// A file that is read at given places, so that no two readers share a position.
#[derive(Clone)]
pub(crate) struct PositionedFile {
    file: Arc<File>,
    length: u64,
}

impl PositionedFile {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            file: Arc::new(file),
            length,
        })
    }
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<PositionedReader>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::new(PositionedReader {
            file: Arc::clone(&self.file),
            position: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<bytes::Bytes> {
        let available = self.length.saturating_sub(start);
        if length as u64 > available {
            return Err(ParquetError::EOF(format!(
                "{length} bytes are wanted at byte {start}, where only {available} are left"
            )));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// Reads on from a place.
pub(crate) struct PositionedReader {
    file: Arc<File>,
    position: u64,
}

impl Read for PositionedReader {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(room, self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}

/// The type of a column, reached through structs; a column whose own name is `name` goes first.
fn data_type<'a>(schema: &'a SchemaRef, name: &str) -> Option<&'a DataType> {
    if let Some((_, field)) = schema.fields().find(name) {
        return Some(field.data_type());
    }
    let mut parts = name.split('.');
    let (_, mut field) = schema.fields().find(parts.next()?)?;
    for part in parts {
        let DataType::Struct(fields) = field.data_type() else {
            return None;
        };
        (_, field) = fields.find(part)?;
    }
    Some(field.data_type())
}

/// Whether a file has a column of this name at its top.
pub(super) fn has_column(file: &PositionedFile, name: &str) -> ParquetResult<bool> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone())?;
    Ok(builder.schema().fields().find(name).is_some())
}

/// Reads one Parquet file batch by batch.
pub(super) struct BatchReader {
    reader: ParquetRecordBatchReader,
    rows: u64,
    passed: u64,
    bytes: u64,
}

/// A batch and the number of rows in the file before it.
pub(super) type Batch = (RecordBatch, u64);

impl BatchReader {
    pub(super) fn open(
        name: &str,
        file: PositionedFile,
        plan: &Plan,
        block_bytes: usize,
    ) -> Result<Self> {
        let bytes = file.len();
        let broken = |error: ParquetError| unreadable(name, &error.to_string()).with_source(error);
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(broken)?;
        check_columns(name, builder.schema(), plan)?;
        let metadata = Arc::clone(builder.metadata());
        let leaves = wanted_leaves(
            metadata.file_metadata().schema_descr(),
            builder.schema(),
            plan,
        );
        let rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
        let wanted_bytes: i64 = metadata
            .row_groups()
            .iter()
            .flat_map(|group| {
                leaves
                    .iter()
                    .map(|&leaf| group.column(leaf).uncompressed_size())
            })
            .sum();
        let row_bytes = u64::try_from(wanted_bytes).unwrap_or(0) / rows.max(1) + 1;
        let batch_rows = block_bytes / usize::try_from(row_bytes).unwrap_or(usize::MAX);
        let mask = ProjectionMask::leaves(builder.parquet_schema(), leaves);
        let reader = builder
            .with_projection(mask)
            .with_batch_size(batch_rows.clamp(1, MAX_BATCH_ROWS))
            .build()
            .map_err(broken)?;
        Ok(Self {
            reader,
            rows,
            passed: 0,
            bytes,
        })
    }

    /// The next rows; `None` at the end.
    pub(super) fn next_batch(&mut self, name: &str) -> Result<Option<Batch>> {
        let first = self.passed;
        match self.reader.next() {
            Some(Ok(batch)) => {
                self.passed += batch.num_rows() as u64;
                Ok(Some((batch, first)))
            }
            Some(Err(error)) => {
                let reason = format!("after row {first}: {error}");
                Err(unreadable(name, &reason).with_source(error))
            }
            None if first == self.rows => Ok(None),
            None => Err(unreadable(
                name,
                &format!("it holds {first} rows where its footer says {}", self.rows),
            )),
        }
    }

    /// About how many bytes of the file have been used up.
    pub(super) fn position(&self) -> u64 {
        let share = u128::from(self.bytes) * u128::from(self.passed) / u128::from(self.rows.max(1));
        share as u64
    }
}

pub(crate) fn unreadable(name: &str, reason: &str) -> Error {
    Error::input(format!("cannot read {name} as Parquet: {reason}"))
}

/// The leaves below the wanted columns. Structs are told from names with a dot by the schema.
fn wanted_leaves(leaves: &SchemaDescriptor, schema: &SchemaRef, plan: &Plan) -> Vec<usize> {
    let wanted = |path: &[String]| {
        plan.names
            .iter()
            .any(|name| match schema.fields().find(name) {
                Some(_) => path[0] == *name,
                None => {
                    let mut parts = path.iter();
                    name.split('.')
                        .all(|part| parts.next().is_some_and(|step| step == part))
                }
            })
    };
    (0..leaves.num_columns())
        .filter(|&leaf| wanted(leaves.column(leaf).path().parts()))
        .collect()
}

/// Refuses a file that lacks a wanted column or has it in a type that cannot be used.
fn check_columns(name: &str, schema: &SchemaRef, plan: &Plan) -> Result<()> {
    for (slot, wanted) in plan.names.iter().enumerate() {
        match data_type(schema, wanted) {
            None if plan.may_be_absent(slot) => {}
            None => {
                let names: Vec<_> = schema
                    .fields()
                    .iter()
                    .map(|field| format!("`{}`", field.name()))
                    .collect();
                return Err(Error::input(format!(
                    "{name} has no column `{wanted}` among {}",
                    names.join(", ")
                )));
            }
            Some(data_type) => {
                let kind = kind_of(data_type).filter(|&kind| plan.accepts(slot, kind));
                if kind.is_none() {
                    return Err(Error::input(format!(
                        "the column `{wanted}` of {name} is of the type {data_type}, which cannot \
                         be used as {}",
                        plan.role(slot)
                    )));
                }
            }
        }
    }
    Ok(())
}

/// What the values of a column are taken for.
fn kind_of(data_type: &DataType) -> Option<Kind> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Kind::Text),
        DataType::Dictionary(_, values) => kind_of(values).filter(|kind| *kind == Kind::Text),
        DataType::Boolean => Some(Kind::True),
        DataType::Null => Some(Kind::Null),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Some(Kind::Number),
        _ if data_type.is_numeric() => Some(Kind::Number),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            kind_of(item.data_type())
                .filter(|kind| *kind == Kind::Text)
                .map(|_| Kind::List)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let key = kind_of(fields.first()?.data_type())?;
                let value = fields.get(1)?.data_type().is_numeric();
                (key == Kind::Text && value).then_some(Kind::Object)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The values of a wanted column, ready to be read row by row.
struct Column {
    /// Where the column and all structs around it have a value.
    valid: Option<NullBuffer>,
    cells: Cells,
}

enum Cells {
    Absent,
    Strings(Strings, Kind),
    Bools(BooleanArray),
    /// Lists of strings, each row as JSON.
    Lists(ArrayRef),
    /// Maps from string to number, each row as JSON.
    Maps(ArrayRef),
    Nulls,
}

enum Strings {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl Strings {
    fn get(&self, row: usize) -> &str {
        match self {
            Self::Small(array) => array.value(row),
            Self::Large(array) => array.value(row),
            Self::View(array) => array.value(row),
        }
    }

    fn new(array: &ArrayRef) -> std::result::Result<Self, String> {
        match array.data_type() {
            DataType::Utf8 => Ok(Self::Small(array.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Ok(Self::Large(array.as_string::<i64>().clone())),
            DataType::Utf8View => Ok(Self::View(array.as_string_view().clone())),
            _ => Self::new(&convert(array, &DataType::LargeUtf8)?),
        }
    }
}

fn convert(array: &ArrayRef, to: &DataType) -> std::result::Result<ArrayRef, String> {
    cast(array, to).map_err(|error| error.to_string())
}

impl Column {
    fn new(batch: &RecordBatch, name: &str) -> std::result::Result<Self, String> {
        let Some((array, valid)) = find(batch, name) else {
            return Ok(Self {
                valid: None,
                cells: Cells::Absent,
            });
        };
        let cells = match kind_of(array.data_type()) {
            Some(Kind::Text) => Cells::Strings(Strings::new(&array)?, Kind::Text),
            Some(Kind::Number) => Cells::Strings(number_literals(&array)?, Kind::Number),
            Some(Kind::True) => Cells::Bools(array.as_boolean().clone()),
            Some(Kind::List) => Cells::Lists(array),
            Some(Kind::Object) => Cells::Maps(array),
            _ => Cells::Nulls,
        };
        Ok(Self { valid, cells })
    }

    /// Puts the value at `row` into a slot.
    fn put(&self, row: usize, slot: usize, values: &mut Values) -> std::result::Result<(), String> {
        let null = self.valid.as_ref().is_some_and(|valid| valid.is_null(row));
        match &self.cells {
            Cells::Absent => {}
            _ if null => values.set_copy(slot, Kind::Null, ""),
            Cells::Nulls => values.set_copy(slot, Kind::Null, ""),
            Cells::Strings(strings, kind) => values.set_copy(slot, *kind, strings.get(row)),
            Cells::Bools(bools) if bools.value(row) => values.set_copy(slot, Kind::True, ""),
            Cells::Bools(_) => values.set_copy(slot, Kind::False, ""),
            Cells::Lists(lists) => values.set_copy(slot, Kind::List, &list_json(lists, row)?),
            Cells::Maps(maps) => values.set_copy(slot, Kind::Object, &map_json(maps, row)?),
        }
        Ok(())
    }
}

/// A column of a batch, with where it and everything around it has a value.
fn find(batch: &RecordBatch, name: &str) -> Option<(ArrayRef, Option<NullBuffer>)> {
    let direct = batch.column_by_name(name);
    let mut parts = name.split('.');
    let mut array = match direct {
        Some(array) => {
            parts = "".split('.');
            parts.next();
            Arc::clone(array)
        }
        None => Arc::clone(batch.column_by_name(parts.next()?)?),
    };
    let mut valid = array.logical_nulls();
    for part in parts {
        let child = Arc::clone(array.as_struct_opt()?.column_by_name(part)?);
        valid = NullBuffer::union(valid.as_ref(), child.logical_nulls().as_ref());
        array = child;
    }
    Some((array, valid))
}

/// Numbers as digits; dates and times as decimal seconds since 1970.
fn number_literals(array: &ArrayRef) -> std::result::Result<Strings, String> {
    let per_second = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => 1,
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => 1000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1_000_000_000,
        DataType::Date32 => {
            let days = convert(&convert(array, &DataType::Int32)?, &DataType::Int64)?;
            let seconds = days
                .as_primitive::<Int64Type>()
                .unary::<_, Int64Type>(|day| day * 86_400);
            return Strings::new(&(Arc::new(seconds) as ArrayRef));
        }
        _ => return Strings::new(array),
    };
    let ticks = convert(array, &DataType::Int64)?;
    let ticks = ticks.as_primitive::<Int64Type>();
    let literals: StringArray = ticks
        .iter()
        .map(|tick| tick.map(|tick| decimal(tick, per_second)))
        .collect();
    Ok(Strings::Small(literals))
}

/// `ticks / per_second` in exact decimal digits.
fn decimal(ticks: i64, per_second: u64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let (whole, rest) = (
        ticks.unsigned_abs() / per_second,
        ticks.unsigned_abs() % per_second,
    );
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    let digits = per_second.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

fn list_json(lists: &ArrayRef, row: usize) -> std::result::Result<String, String> {
    let items = match lists.data_type() {
        DataType::List(_) => lists.as_list::<i32>().value(row),
        DataType::LargeList(_) => lists.as_list::<i64>().value(row),
        _ => lists.as_list_view::<i32>().value(row),
    };
    let strings = Strings::new(&items)?;
    let items = (0..items.len()).map(|at| (!items.is_null(at)).then(|| strings.get(at)));
    serde_json::to_string(&items.collect::<Vec<_>>()).map_err(|error| error.to_string())
}

fn map_json(maps: &ArrayRef, row: usize) -> std::result::Result<String, String> {
    let entries = maps.as_map().value(row);
    let keys = Strings::new(entries.column(0))?;
    let weights = convert(entries.column(1), &DataType::Float64)?;
    let weights = weights.as_primitive::<Float64Type>();
    let mut json = String::from("[");
    for at in 0..entries.len() {
        let weight = if weights.is_null(at) {
            f64::NAN
        } else {
            weights.value(at)
        };
        let pair = serde_json::to_string(&(keys.get(at), weight));
        json.push_str(if at == 0 { "" } else { "," });
        json.push_str(&pair.map_err(|error| error.to_string())?);
    }
    json.push(']');
    Ok(json)
}

/// The wanted columns of a batch, by slot.
pub(super) struct Columns(Vec<Column>);

impl Columns {
    pub(super) fn new(
        batch: &RecordBatch,
        plan: &Plan,
        wanted: impl Fn(usize) -> bool,
    ) -> std::result::Result<Self, String> {
        let column = |(slot, name): (usize, &String)| match wanted(slot) {
            true => Column::new(batch, name),
            false => Ok(Column {
                valid: None,
                cells: Cells::Absent,
            }),
        };
        plan.names
            .iter()
            .enumerate()
            .map(column)
            .collect::<std::result::Result<_, _>>()
            .map(Self)
    }

    /// Puts the values of a row into `values`.
    pub(super) fn parse(
        &self,
        row: usize,
        plan: &Plan,
        values: &mut Values,
    ) -> std::result::Result<(), String> {
        values.clear(plan);
        for (slot, column) in self.0.iter().enumerate() {
            column.put(row, slot, values)?;
        }
        Ok(())
    }
}
