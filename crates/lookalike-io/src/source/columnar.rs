//! Parquet: decodes the wanted columns of portions of row groups, in batches of about one block.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, LargeBinaryArray,
    LargeStringArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use lookalike_documents::decoding::InvalidText;
use lookalike_system::PositionedAccess;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection, RowSelector};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::SchemaDescriptor;

use super::InputFormat;
use super::convert::{plain_values, to_floats, to_large_strings, to_ticks};
use super::field_census::suggest_field;
use super::file::InputFile;
use super::parquet_file::{load_metadata, open_batches};
use super::row_values::{FieldPlan, RowValues, ValueKind};
use crate::error::{Error, Result};
use crate::objects::RangeCopy;

/// Largest number of rows in a batch. It limits memory, because a dictionary may hide how long rows
/// are.
pub(super) const MAX_BATCH_ROWS: usize = 2048;

/// A file or an object that is read at given offsets, so that no two readers share a position.
#[derive(Clone)]
pub(crate) struct PositionedFile {
    bytes: PositionedBytes,
    length: u64,
}

#[derive(Clone)]
enum PositionedBytes {
    File(Arc<File>),
    Object(Arc<RangeCopy>),
}

impl PositionedBytes {
    fn read_at(&self, room: &mut [u8], start: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_bytes_at(room, start),
            Self::Object(ranges) => ranges.read_at(room, start),
        }
    }
}

impl PositionedFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            bytes: PositionedBytes::File(Arc::new(file)),
            length,
        })
    }

    pub(super) fn from_ranges(ranges: Arc<RangeCopy>) -> Self {
        Self {
            length: ranges.byte_length(),
            bytes: PositionedBytes::Object(ranges),
        }
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
            bytes: self.bytes.clone(),
            position: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<bytes::Bytes> {
        let available = self.length.saturating_sub(start);
        if length as u64 > available {
            return Err(ParquetError::EOF(format!(
                "{length} bytes are needed at byte {start}, but only {available} are left"
            )));
        }
        let mut bytes = vec![0; length];
        let mut reader = PositionedReader {
            bytes: self.bytes.clone(),
            position: start,
        };
        reader.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Reads a [`PositionedFile`] sequentially from an offset.
pub(crate) struct PositionedReader {
    bytes: PositionedBytes,
    position: u64,
}

impl Read for PositionedReader {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.read_at(room, self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}

/// Returns the type of a column. A name with dots reaches through structs and lists of structs, but a column with that
/// very name has priority.
fn column_type<'a>(schema: &'a SchemaRef, name: &str) -> Option<&'a DataType> {
    if let Some((_, field)) = schema.fields().find(name) {
        return Some(field.data_type());
    }
    let mut parts = name.split('.');
    let (_, mut field) = schema.fields().find(parts.next()?)?;
    for part in parts {
        let DataType::Struct(fields) = type_of_elements(field.data_type()) else {
            return None;
        };
        (_, field) = fields.find(part)?;
    }
    Some(field.data_type())
}

/// Returns the type of the elements of a list, at any depth of lists; another type as it is.
fn type_of_elements(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            type_of_elements(item.data_type())
        }
        _ => data_type,
    }
}

/// The elements of a list column, and where those of each row are among them.
struct ListElements {
    lists: ArrayRef,
    /// Index of the first of the values.
    base: usize,
}

impl ListElements {
    /// Returns the elements of a list column with their values, or `None` for a column of another type.
    fn new(lists: &ArrayRef) -> Option<(Self, ArrayRef)> {
        let within =
            |values: &ArrayRef, first: usize, last: usize| values.slice(first, last - first);
        let (base, values) = match lists.data_type() {
            DataType::List(_) => {
                let list = lists.as_list::<i32>();
                let ends = list.value_offsets();
                let (first, last) = (ends[0] as usize, ends[list.len()] as usize);
                (first, within(list.values(), first, last))
            }
            DataType::LargeList(_) => {
                let list = lists.as_list::<i64>();
                let ends = list.value_offsets();
                let (first, last) = (ends[0] as usize, ends[list.len()] as usize);
                (first, within(list.values(), first, last))
            }
            DataType::ListView(_) => (0, Arc::clone(lists.as_list_view::<i32>().values())),
            _ => return None,
        };
        let lists = Arc::clone(lists);
        Some((Self { lists, base }, values))
    }

    /// Returns the indices of a row's values.
    fn range_of(&self, row: usize) -> Range<usize> {
        let (start, end) = match self.lists.data_type() {
            DataType::List(_) => {
                let ends = self.lists.as_list::<i32>().value_offsets();
                (ends[row] as usize, ends[row + 1] as usize)
            }
            DataType::LargeList(_) => {
                let ends = self.lists.as_list::<i64>().value_offsets();
                (ends[row] as usize, ends[row + 1] as usize)
            }
            _ => {
                let list = self.lists.as_list_view::<i32>();
                let start = list.value_offsets()[row] as usize;
                (start, start + list.value_sizes()[row] as usize)
            }
        };
        start - self.base..end - self.base
    }
}

/// Returns the number of rows that a file declares.
pub(super) fn count_rows(file: &InputFile) -> Result<u64> {
    let broken =
        |cause: ParquetError| Error::input_error(format!("{}: {cause}", file.display_name()));
    let opened = file.open_positioned()?;
    let metadata = load_metadata(&opened).map_err(broken)?;
    let rows = metadata.metadata().file_metadata().num_rows();
    Ok(u64::try_from(rows).unwrap_or(0))
}

/// Returns `true` if the file has a top-level column of this name.
pub(super) fn has_column(file: &PositionedFile, name: &str) -> ParquetResult<bool> {
    let metadata = load_metadata(file)?;
    Ok(metadata.schema().fields().find(name).is_some())
}

/// Size of a portion in blocks of uncompressed bytes in the wanted columns. A page on the border of two
/// portions is decompressed for both, and at this size that costs little.
pub(super) const PORTION_BLOCKS: u64 = 16;

/// Divides one Parquet file into portions, which several threads decode in parallel.
pub(super) struct ParquetPortions {
    file: Arc<OpenFile>,
    bytes: u64,
    rows: u64,
    /// Row group of the next portion, and in `within` the rows of it that have been handed out.
    group: usize,
    within: u64,
    passed: u64,
}

/// A Parquet file with its wanted columns.
struct OpenFile {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    leaves: Vec<usize>,
    mask: ProjectionMask,
    block_bytes: usize,
}

/// Some rows of one row group.
pub(super) struct ParquetPortion {
    file: Arc<OpenFile>,
    group: usize,
    within: Range<u64>,
    /// Number of the file's rows before this portion.
    first: u64,
}

/// A batch, and the number of the file's rows before it.
pub(super) type NumberedBatch = (RecordBatch, u64);

impl OpenFile {
    fn group_rows(&self, group: usize) -> u64 {
        let group = self.metadata.metadata().row_group(group);
        u64::try_from(group.num_rows()).unwrap_or(0)
    }

    /// Returns the approximate number of bytes of one row of a row group in the wanted columns.
    fn row_bytes(&self, group: usize) -> u64 {
        let columns = self.metadata.metadata().row_group(group);
        let sizes = self.leaves.iter();
        let bytes: i64 = sizes
            .map(|&leaf| columns.column(leaf).uncompressed_size())
            .sum();
        u64::try_from(bytes).unwrap_or(0) / self.group_rows(group).max(1) + 1
    }
}

impl ParquetPortions {
    pub(super) fn open_file(
        name: &str,
        file: PositionedFile,
        plan: &FieldPlan,
        block_bytes: usize,
    ) -> Result<Self> {
        let bytes = file.len();
        let broken = |error: ParquetError| {
            unreadable(name, InputFormat::Parquet, &error.to_string()).with_source(error)
        };
        let metadata = load_metadata(&file).map_err(broken)?;
        check_columns(name, metadata.schema(), plan)?;
        let said = metadata.metadata().file_metadata();
        let leaves = wanted_leaf_columns(said.schema_descr(), metadata.schema(), plan);
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), leaves.clone());
        let rows = u64::try_from(said.num_rows()).unwrap_or(0);
        let file = OpenFile {
            file,
            metadata,
            leaves,
            mask,
            block_bytes,
        };
        let groups = file.metadata.metadata().num_row_groups();
        let in_groups: u64 = (0..groups).map(|group| file.group_rows(group)).sum();
        if in_groups != rows {
            let reason =
                format!("its row groups have {in_groups} rows where its footer says {rows}");
            return Err(unreadable(name, InputFormat::Parquet, &reason));
        }
        Ok(Self {
            file: Arc::new(file),
            bytes,
            rows,
            group: 0,
            within: 0,
            passed: 0,
        })
    }

    /// Returns the number of rows that have been handed out.
    pub(super) fn passed_rows(&self) -> u64 {
        self.passed
    }

    /// Returns the approximate number of the file's bytes that have been handed out.
    pub(super) fn passed_bytes(&self) -> u64 {
        let share = u128::from(self.bytes) * u128::from(self.passed) / u128::from(self.rows.max(1));
        share as u64
    }
}

impl Iterator for ParquetPortions {
    type Item = ParquetPortion;

    fn next(&mut self) -> Option<ParquetPortion> {
        while self.group < self.file.metadata.metadata().num_row_groups() {
            let (group, start) = (self.group, self.within);
            let rows = self.file.group_rows(group);
            if start == rows {
                (self.group, self.within) = (group + 1, 0);
                continue;
            }
            let bytes = PORTION_BLOCKS * self.file.block_bytes as u64;
            let most = (bytes / self.file.row_bytes(group)).max(1);
            let end = rows.min(start + most);
            let first = self.passed;
            self.within = end;
            self.passed += end - start;
            return Some(ParquetPortion {
                file: Arc::clone(&self.file),
                group,
                within: start..end,
                first,
            });
        }
        None
    }
}

impl ParquetPortion {
    /// Returns the number of the file's rows before this portion.
    pub(super) fn first_row(&self) -> u64 {
        self.first
    }

    /// Returns the number of rows.
    pub(super) fn row_count(&self) -> u64 {
        self.within.end - self.within.start
    }

    /// Decodes the portion and calls `visit` with batches of about one block.
    pub(super) fn visit_batches(
        &self,
        name: &str,
        mut visit: impl FnMut(NumberedBatch) -> Result<()>,
    ) -> Result<()> {
        let file = &self.file;
        let block_rows = file.block_bytes as u64 / file.row_bytes(self.group);
        let selection = [
            RowSelector::skip(self.within.start as usize),
            RowSelector::select(self.row_count() as usize),
        ];
        let batches = open_batches(&file.file, &file.metadata, |builder| {
            builder
                .with_row_groups(vec![self.group])
                .with_row_selection(RowSelection::from(selection.to_vec()))
                .with_projection(file.mask.clone())
                .with_batch_size((block_rows as usize).clamp(1, MAX_BATCH_ROWS))
        });
        let broken = |reason: String| unreadable(name, InputFormat::Parquet, &reason);
        let batches = batches.map_err(|error| broken(error.to_string()).with_source(error))?;
        let mut first = self.first;
        for batch in batches {
            let batch = batch.map_err(|error| {
                broken(format!("after row {first}: {error}")).with_source(error)
            })?;
            let rows = batch.num_rows() as u64;
            visit((batch, first))?;
            first += rows;
        }
        let (found, said) = (first - self.first, self.row_count());
        if found == said {
            return Ok(());
        }
        let reason = format!(
            "after row {} it holds {found} rows, but its footer says {said}",
            self.first
        );
        Err(broken(reason))
    }
}

/// Returns the error for an input with columns that is not what its format says.
pub(crate) fn unreadable(name: &str, format: InputFormat, reason: &str) -> Error {
    let format = format.descriptor().name;
    Error::input_error(format!("cannot read {name} as {format}: {reason}"))
}

/// Returns the leaf columns below the wanted fields, or all if none is wanted by its name. The schema tells a struct's
/// field from a name with a dot.
fn wanted_leaf_columns(
    leaves: &SchemaDescriptor,
    schema: &SchemaRef,
    plan: &FieldPlan,
) -> Vec<usize> {
    let all = 0..leaves.num_columns();
    let mut paths = Vec::new();
    for field in schema.fields() {
        add_leaf_paths(field.data_type(), &[field.name()], &mut paths);
    }
    // The leaves of the schema are those of the file in the same order. If they were not, all columns would be read.
    if plan.reads_whole_rows() || paths.len() != all.len() {
        return all.collect();
    }
    let is_wanted = |path: &[&str], name: &str| match schema.fields().find(name) {
        Some(_) => path[0] == name,
        None => {
            let mut steps = path.iter();
            name.split('.')
                .all(|part| steps.next().is_some_and(|step| *step == part))
        }
    };
    all.filter(|&leaf| plan.names.iter().any(|name| is_wanted(&paths[leaf], name)))
        .collect()
}

/// Appends the path of names to each leaf below a type. Lists add no name to the paths of their elements.
fn add_leaf_paths<'a>(data_type: &'a DataType, path: &[&'a str], paths: &mut Vec<Vec<&'a str>>) {
    match type_of_elements(data_type) {
        DataType::Struct(fields) => {
            for field in fields {
                let path = [path, &[field.name()]].concat();
                add_leaf_paths(field.data_type(), &path, paths);
            }
        }
        DataType::FixedSizeList(item, _) => add_leaf_paths(item.data_type(), path, paths),
        DataType::Map(entries, _) => add_leaf_paths(entries.data_type(), path, paths),
        _ => paths.push(path.to_vec()),
    }
}

/// End of the message about a column that probably has UUIDs, as DuckDB writes them to Parquet.
const UUID_REMEDY: &str = ": write UUIDs as text, in DuckDB with CAST(… AS VARCHAR)";

/// Refuses a file that lacks a wanted column or has it in an unsuitable type.
pub(super) fn check_columns(name: &str, schema: &SchemaRef, plan: &FieldPlan) -> Result<()> {
    for (slot, wanted) in plan.names.iter().enumerate() {
        match column_type(schema, wanted) {
            None if plan.may_be_absent(slot) => {}
            None => {
                let own = schema.fields().iter().map(|field| field.name().as_str());
                let meant = suggest_field(wanted, plan.slot_role(slot), own);
                let names: Vec<_> = schema
                    .fields()
                    .iter()
                    .map(|field| format!("`{}`", field.name()))
                    .collect();
                let names = if names.is_empty() {
                    ", nor any other".to_owned()
                } else {
                    format!(" among {}", names.join(", "))
                };
                return Err(Error::input_error(format!(
                    "{name} has no column `{wanted}`{names}{meant}"
                )));
            }
            Some(data_type) => {
                let kind = column_kind(data_type).filter(|&kind| plan.accepts_kind(slot, kind));
                if kind.is_none() {
                    let remedy = match data_type {
                        DataType::FixedSizeBinary(16) => UUID_REMEDY,
                        _ => "",
                    };
                    return Err(Error::input_error(format!(
                        "the column `{wanted}` of {name} is of the type {data_type}, which cannot \
                         be used as {}{remedy}",
                        plan.slot_role(slot)
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Returns the kind of a column's values, or `None` if the type cannot be read.
fn column_kind(data_type: &DataType) -> Option<ValueKind> {
    match data_type {
        data_type if is_string(data_type) || is_binary(data_type) => Some(ValueKind::Text),
        DataType::Dictionary(_, values) => {
            column_kind(values).filter(|kind| *kind == ValueKind::Text)
        }
        DataType::Boolean => Some(ValueKind::True),
        DataType::Null => Some(ValueKind::Null),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Some(ValueKind::Number),
        _ if data_type.is_numeric() => Some(ValueKind::Number),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            is_text_item(item.data_type()).then_some(ValueKind::List)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let key = is_text_item(fields.first()?.data_type());
                let value = fields.get(1)?.data_type().is_numeric();
                (key && value).then_some(ValueKind::Object)
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_string(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Returns `true` for binary columns. They may hold text, because older writers do not mark text
/// columns as such.
fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

/// Returns `true` for strings, plain or in a dictionary. Binary values in lists and maps are not read
/// as text.
fn is_text_item(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_string(values),
        other => is_string(other),
    }
}

/// The values of a wanted column, prepared for access by row.
struct ColumnValues {
    /// `true` for rows in which the column and all enclosing structs have a value; `None` if all rows
    /// do.
    valid: Option<NullBuffer>,
    cells: ColumnCells,
}

enum ColumnCells {
    Absent,
    Strings(StringColumn, ValueKind),
    /// Binary values, which are text if they are UTF-8, with the name of the column.
    Bytes(BinaryColumn, String, InvalidText),
    Bools(BooleanArray),
    /// Lists of strings; each row is read as JSON.
    Lists(ArrayRef),
    /// Maps from strings to numbers; each row is read as a JSON list of pairs.
    Maps(ArrayRef),
    /// A field of the structs in lists: the values of a row's elements are joined.
    Elements(ListElements, Box<ColumnValues>),
    Nulls,
}

pub(super) enum StringColumn {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

pub(super) enum BinaryColumn {
    Small(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
}

impl BinaryColumn {
    pub(super) fn value_at(&self, row: usize) -> &[u8] {
        match self {
            Self::Small(array) => array.value(row),
            Self::Large(array) => array.value(row),
            Self::View(array) => array.value(row),
        }
    }

    /// Returns the binary values of a column, or `None` for a column of another type.
    pub(super) fn new(array: &ArrayRef) -> Option<Self> {
        match array.data_type() {
            DataType::Binary => Some(Self::Small(array.as_binary::<i32>().clone())),
            DataType::LargeBinary => Some(Self::Large(array.as_binary::<i64>().clone())),
            DataType::BinaryView => Some(Self::View(array.as_binary_view().clone())),
            DataType::Dictionary(_, values) if is_binary(values) => {
                plain_values(array).ok().as_ref().and_then(Self::new)
            }
            _ => None,
        }
    }
}

impl StringColumn {
    pub(super) fn value_at(&self, row: usize) -> &str {
        match self {
            Self::Small(array) => array.value(row),
            Self::Large(array) => array.value(row),
            Self::View(array) => array.value(row),
        }
    }

    /// Returns the total bytes of all values.
    fn total_bytes(&self) -> u64 {
        let between = |offsets: &[i64]| offsets[offsets.len() - 1] - offsets[0];
        let bytes = match self {
            Self::Small(array) => {
                let offsets = array.value_offsets();
                i64::from(offsets[offsets.len() - 1] - offsets[0])
            }
            Self::Large(array) => between(array.value_offsets()),
            Self::View(array) => array.lengths().map(i64::from).sum(),
        };
        bytes.unsigned_abs()
    }

    pub(super) fn new(array: &ArrayRef) -> std::result::Result<Self, String> {
        match array.data_type() {
            DataType::Utf8 => Ok(Self::Small(array.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Ok(Self::Large(array.as_string::<i64>().clone())),
            DataType::Utf8View => Ok(Self::View(array.as_string_view().clone())),
            _ => to_large_strings(array)
                .map(Self::Large)
                .map_err(|error| error.to_string()),
        }
    }
}

impl ColumnValues {
    fn new(
        batch: &RecordBatch,
        name: &str,
        invalid_text: InvalidText,
    ) -> std::result::Result<Self, String> {
        let (column, parts) = match batch.column_by_name(name) {
            Some(column) => (Some(column), Vec::new()),
            None => {
                let mut parts = name.split('.');
                let first = parts.next().unwrap_or_default();
                (batch.column_by_name(first), parts.collect())
            }
        };
        match column {
            Some(column) => Self::from_column(column, &parts, name, invalid_text),
            None => Ok(Self::absent()),
        }
    }

    /// Returns a column without values.
    fn absent() -> Self {
        Self {
            valid: None,
            cells: ColumnCells::Absent,
        }
    }

    /// Returns the values at a path of names below a column.
    fn from_column(
        column: &ArrayRef,
        parts: &[&str],
        name: &str,
        invalid_text: InvalidText,
    ) -> std::result::Result<Self, String> {
        let mut array = Arc::clone(column);
        let mut valid = array.logical_nulls();
        for (at, part) in parts.iter().enumerate() {
            if let Some((elements, values)) = ListElements::new(&array) {
                let inner = Self::from_column(&values, &parts[at..], name, invalid_text)?;
                let cells = ColumnCells::Elements(elements, Box::new(inner));
                return Ok(Self { valid, cells });
            }
            let child = array
                .as_struct_opt()
                .and_then(|fields| fields.column_by_name(part));
            let Some(child) = child.map(Arc::clone) else {
                return Ok(Self::absent());
            };
            valid = NullBuffer::union(valid.as_ref(), child.logical_nulls().as_ref());
            array = child;
        }
        let cells = match column_kind(array.data_type()) {
            Some(ValueKind::Text) => match BinaryColumn::new(&array) {
                Some(bytes) => ColumnCells::Bytes(bytes, name.to_owned(), invalid_text),
                None => ColumnCells::Strings(StringColumn::new(&array)?, ValueKind::Text),
            },
            Some(ValueKind::Number) => {
                ColumnCells::Strings(number_literals(&array)?, ValueKind::Number)
            }
            Some(ValueKind::True) => ColumnCells::Bools(array.as_boolean().clone()),
            Some(ValueKind::List) => ColumnCells::Lists(array),
            Some(ValueKind::Object) => ColumnCells::Maps(array),
            _ => ColumnCells::Nulls,
        };
        Ok(Self { valid, cells })
    }

    /// Returns the string at `row`, or `None` if there is none.
    fn text_at(&self, row: usize) -> Option<&str> {
        let null = self.valid.as_ref().is_some_and(|valid| valid.is_null(row));
        match &self.cells {
            ColumnCells::Strings(strings, ValueKind::Text) if !null => Some(strings.value_at(row)),
            _ => None,
        }
    }

    /// Stores the value at `row` in a slot.
    fn put_value(
        &self,
        row: usize,
        slot: usize,
        values: &mut RowValues,
    ) -> std::result::Result<(), String> {
        let null = self.valid.as_ref().is_some_and(|valid| valid.is_null(row));
        match &self.cells {
            ColumnCells::Absent => {}
            _ if null => values.set_copied_text(slot, ValueKind::Null, ""),
            ColumnCells::Nulls => values.set_copied_text(slot, ValueKind::Null, ""),
            ColumnCells::Strings(strings, kind) => {
                values.set_copied_text(slot, *kind, strings.value_at(row))
            }
            ColumnCells::Bytes(bytes, name, invalid_text) => {
                let text = text_of_bytes(bytes.value_at(row), name, *invalid_text)?;
                values.set_copied_text(slot, ValueKind::Text, &text);
            }
            ColumnCells::Bools(bools) if bools.value(row) => {
                values.set_copied_text(slot, ValueKind::True, "")
            }
            ColumnCells::Bools(_) => values.set_copied_text(slot, ValueKind::False, ""),
            ColumnCells::Lists(lists) => {
                values.set_copied_text(slot, ValueKind::List, &list_to_json(lists, row)?)
            }
            ColumnCells::Maps(maps) => {
                values.set_copied_text(slot, ValueKind::Object, &map_to_json(maps, row)?)
            }
            ColumnCells::Elements(elements, inner) => {
                let from = values.begin_elements();
                for element in elements.range_of(row) {
                    inner.put_value(element, slot, values)?;
                    values.end_element(&[slot]);
                }
                values.join_elements(&[slot], from, "");
            }
        }
        Ok(())
    }
}

/// Decodes binary values as text.
fn text_of_bytes<'a>(
    bytes: &'a [u8],
    name: &str,
    invalid_text: InvalidText,
) -> std::result::Result<Cow<'a, str>, String> {
    match (std::str::from_utf8(bytes), invalid_text) {
        (Ok(text), _) => Ok(Cow::Borrowed(text)),
        (Err(_), InvalidText::Lossy) => Ok(String::from_utf8_lossy(bytes)),
        (Err(error), InvalidText::Reject) => Err(format!(
            "the field `{name}` holds bytes that are not valid UTF-8 at byte {}",
            error.valid_up_to() + 1
        )),
    }
}

/// Returns numbers as digits, and dates and times as decimal seconds since 1970.
fn number_literals(array: &ArrayRef) -> std::result::Result<StringColumn, String> {
    let per_second = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => 1,
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => 1000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1_000_000_000,
        DataType::Date32 => {
            let days = to_ticks(array).map_err(|error| error.to_string())?;
            let seconds = days.unary::<_, Int64Type>(|day| day * 86_400);
            return StringColumn::new(&(Arc::new(seconds) as ArrayRef));
        }
        _ => return StringColumn::new(array),
    };
    let ticks = to_ticks(array).map_err(|error| error.to_string())?;
    let literals: StringArray = ticks
        .iter()
        .map(|tick| tick.map(|tick| format_decimal(tick, per_second)))
        .collect();
    Ok(StringColumn::Small(literals))
}

/// Returns `ticks / per_second` in exact decimal digits.
fn format_decimal(ticks: i64, per_second: u64) -> String {
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

fn list_to_json(lists: &ArrayRef, row: usize) -> std::result::Result<String, String> {
    let items = match lists.data_type() {
        DataType::List(_) => lists.as_list::<i32>().value(row),
        DataType::LargeList(_) => lists.as_list::<i64>().value(row),
        _ => lists.as_list_view::<i32>().value(row),
    };
    let strings = StringColumn::new(&items)?;
    let items = (0..items.len()).map(|at| (!items.is_null(at)).then(|| strings.value_at(at)));
    serde_json::to_string(&items.collect::<Vec<_>>()).map_err(|error| error.to_string())
}

fn map_to_json(maps: &ArrayRef, row: usize) -> std::result::Result<String, String> {
    let entries = maps.as_map().value(row);
    let keys = StringColumn::new(entries.column(0))?;
    let weights = to_floats(entries.column(1)).map_err(|error| error.to_string())?;
    let mut json = String::from("[");
    for at in 0..entries.len() {
        let weight = if weights.is_null(at) {
            f64::NAN
        } else {
            weights.value(at)
        };
        let pair = serde_json::to_string(&(keys.value_at(at), weight));
        json.push_str(if at == 0 { "" } else { "," });
        json.push_str(&pair.map_err(|error| error.to_string())?);
    }
    json.push(']');
    Ok(json)
}

/// The wanted columns of a batch, by slot.
pub(super) struct WantedColumns(Vec<ColumnValues>);

impl WantedColumns {
    pub(super) fn new(
        batch: &RecordBatch,
        plan: &FieldPlan,
        invalid_text: InvalidText,
        wanted: impl Fn(usize) -> bool,
    ) -> std::result::Result<Self, String> {
        let column = |(slot, name): (usize, &String)| {
            if wanted(slot) {
                ColumnValues::new(batch, name, invalid_text)
            } else {
                Ok(ColumnValues::absent())
            }
        };
        plan.names
            .iter()
            .enumerate()
            .map(column)
            .collect::<std::result::Result<_, _>>()
            .map(Self)
    }

    /// Returns the total bytes of the texts in a batch; an estimate for columns that are not plain
    /// strings.
    pub(super) fn text_bytes(batch: &RecordBatch, plan: &FieldPlan) -> u64 {
        let of_array = |array: &ArrayRef| match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                StringColumn::new(array).map_or(0, |strings| strings.total_bytes())
            }
            _ => array.get_array_memory_size() as u64,
        };
        let of_column = |name: &str| match batch.column_by_name(name) {
            Some(array) => of_array(array),
            None => {
                let mut parts = name.split('.');
                let first = parts.next().and_then(|first| batch.column_by_name(first));
                let field = parts.try_fold(first, |array, part| {
                    let fields = array.and_then(|array| array.as_struct_opt());
                    // A list of structs counts whole.
                    fields.map_or(Err(array), |fields| Ok(fields.column_by_name(part)))
                });
                field.unwrap_or_else(|list| list).map_or(0, of_array)
            }
        };
        let slots = plan.text_slots().iter().chain(plan.features.as_ref());
        slots.map(|&slot| of_column(&plan.names[slot])).sum()
    }

    /// Stores the values of a row in `values`, but does not copy the text if it is a single string
    /// column. Returns the string to which slots outside of the arena refer.
    pub(super) fn parse_around_text(
        &self,
        row: usize,
        plan: &FieldPlan,
        values: &mut RowValues,
    ) -> std::result::Result<&str, String> {
        values.clear_row(plan);
        let mut whole = "";
        for (slot, column) in self.0.iter().enumerate() {
            match column
                .text_at(row)
                .filter(|_| plan.single_text() == Some(slot))
            {
                Some(text) => {
                    whole = text;
                    values.set_range(slot, ValueKind::Text, 0, text.len());
                }
                None => column.put_value(row, slot, values)?,
            }
        }
        Ok(whole)
    }

    /// Stores copies of the values of a row in `values`.
    pub(super) fn parse_row(
        &self,
        row: usize,
        plan: &FieldPlan,
        values: &mut RowValues,
    ) -> std::result::Result<(), String> {
        values.clear_row(plan);
        for (slot, column) in self.0.iter().enumerate() {
            column.put_value(row, slot, values)?;
        }
        Ok(())
    }
}
