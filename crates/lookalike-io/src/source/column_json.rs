//! Values of columns as JSON: rows of Parquet and Arrow that are written as JSONL, or shown as a whole.
//!
//! | column | JSON |
//! |---|---|
//! | strings, plain, view or in a dictionary | a string |
//! | binary | its text if it is UTF-8, else its bytes in hexadecimal digits |
//! | integers, decimals | a number with all of its digits |
//! | floating-point numbers | a number with the fewest digits that restore it; `null` if it is not finite |
//! | dates, times, timestamps | a string by ISO 8601; a timestamp with a time zone is in UTC and ends in `Z` |
//! | lists | a list |
//! | structs, maps with strings as keys | an object |
//! | other maps | a list of pairs |
//! | a missing value | `null` |
//!
//! Durations, intervals, unions and run-end encoded columns have no JSON; [`check_types`] names them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, LargeStringArray, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef, TimeUnit};

use super::columnar::{BinaryColumn, StringColumn};
use super::convert::{plain_values, to_large_strings, to_ticks};

/// The columns of a batch, prepared for writing rows as JSON objects.
pub(crate) struct JsonRows {
    /// The names as JSON strings, with the punctuation before and after them.
    names: Vec<Vec<u8>>,
    columns: Vec<JsonColumn>,
}

impl JsonRows {
    /// Prepares a batch.
    ///
    /// # Errors
    /// If a column cannot be converted.
    pub(crate) fn new(batch: &RecordBatch) -> Result<Self, ArrowError> {
        let fields = batch.schema_ref().fields().iter().enumerate();
        Ok(Self {
            names: fields
                .map(|(at, field)| member_name(field.name(), at == 0))
                .collect(),
            columns: (batch.columns().iter())
                .map(JsonColumn::new)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Appends a row without the brace that closes it.
    pub(crate) fn append_open_row(&self, row: usize, out: &mut Vec<u8>) {
        out.push(b'{');
        for (name, column) in self.names.iter().zip(&self.columns) {
            out.extend_from_slice(name);
            column.append_value(row, out);
        }
    }
}

/// Returns a row as a JSON object; the columns keep their order.
pub(super) fn row_to_json(batch: &RecordBatch, row: usize) -> Result<String, ArrowError> {
    let mut json = Vec::new();
    JsonRows::new(&batch.slice(row, 1))?.append_open_row(0, &mut json);
    json.push(b'}');
    Ok(String::from_utf8(json).expect("JSON is written as UTF-8"))
}

/// Refuses columns that have no JSON.
///
/// # Errors
/// A phrase that names the first such column and its type.
pub(crate) fn check_types(schema: &SchemaRef) -> Result<(), String> {
    let unsupported = schema
        .fields()
        .iter()
        .find_map(|field| find_unsupported(field, field.name()));
    match unsupported {
        None => Ok(()),
        Some((path, data_type)) => Err(format!(
            "the column `{path}` is of the type {data_type}, for which JSON has no value"
        )),
    }
}

fn find_unsupported(field: &Field, path: &str) -> Option<(String, DataType)> {
    let within = |field: &Field| find_unsupported(field, &format!("{path}.{}", field.name()));
    match field.data_type() {
        DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Union(..)
        | DataType::RunEndEncoded(..) => Some((path.to_owned(), field.data_type().clone())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => within(item),
        DataType::Struct(fields) => fields.iter().find_map(|field| within(field)),
        DataType::Dictionary(_, values) => {
            find_unsupported(&Field::new("", (**values).clone(), true), path)
        }
        _ => None,
    }
}

fn member_name(name: &str, is_first: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !is_first {
        bytes.push(b',');
    }
    append_string(name, &mut bytes);
    bytes.push(b':');
    bytes
}

/// The values of a column.
struct JsonColumn {
    valid: Option<NullBuffer>,
    values: JsonValues,
}

enum JsonValues {
    Nulls,
    Bools(BooleanArray),
    Strings(StringColumn),
    Bytes(BinaryColumn),
    FixedBytes(arrow_array::FixedSizeBinaryArray),
    /// Digits of numbers; names of those that are not finite.
    Numbers(LargeStringArray),
    /// Dates and times.
    Times(Int64Array, TimeShape),
    Lists(Vec<Range<usize>>, Box<JsonColumn>),
    Objects(Vec<Vec<u8>>, Vec<JsonColumn>),
    /// Maps: keys and values of each row. Keys that are strings make an object.
    Maps(Vec<Range<usize>>, Box<[JsonColumn; 2]>, bool),
    Unsupported(DataType),
}

/// The notation of a count of days or of parts of a second.
#[derive(Clone, Copy)]
enum TimeShape {
    Days,
    /// Time of a day, with this many parts in a second.
    TimeOfDay(i64),
    /// Date and time, with this many parts in a second; `true` with a time zone.
    Instant(i64, bool),
}

impl JsonColumn {
    fn new(array: &ArrayRef) -> Result<Self, ArrowError> {
        let values = match array.data_type() {
            DataType::Dictionary(..) => return Self::new(&plain_values(array)?),
            DataType::Null => JsonValues::Nulls,
            DataType::Boolean => JsonValues::Bools(array.as_boolean().clone()),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                JsonValues::Strings(StringColumn::new(array).map_err(ArrowError::CastError)?)
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                BinaryColumn::new(array).map_or(JsonValues::Nulls, JsonValues::Bytes)
            }
            DataType::FixedSizeBinary(_) => {
                JsonValues::FixedBytes(array.as_fixed_size_binary().clone())
            }
            DataType::Date32 => JsonValues::Times(to_ticks(array)?, TimeShape::Days),
            DataType::Date64 => {
                JsonValues::Times(to_ticks(array)?, TimeShape::Instant(1000, false))
            }
            DataType::Timestamp(unit, zone) => {
                let shape = TimeShape::Instant(parts_of_second(*unit), zone.is_some());
                JsonValues::Times(to_ticks(array)?, shape)
            }
            DataType::Time32(unit) | DataType::Time64(unit) => JsonValues::Times(
                times_of_day(array, *unit),
                TimeShape::TimeOfDay(parts_of_second(*unit)),
            ),
            DataType::Struct(fields) => {
                let names = fields.iter().enumerate();
                JsonValues::Objects(
                    names
                        .map(|(at, field)| member_name(field.name(), at == 0))
                        .collect(),
                    (array.as_struct().columns().iter())
                        .map(Self::new)
                        .collect::<Result<_, _>>()?,
                )
            }
            DataType::Map(entries, _) => {
                let map = array.as_map();
                let all = ranges_of(map.value_offsets().iter().map(|&at| at as usize));
                let (ranges, start, end) = rebase(all);
                let of = |column: &ArrayRef| Self::new(&column.slice(start, end - start));
                let columns = [of(map.keys())?, of(map.values())?];
                let has_names = matches!(entries.data_type(), DataType::Struct(fields)
                    if fields.first().is_some_and(|key| is_string_type(key.data_type())));
                JsonValues::Maps(ranges, Box::new(columns), has_names)
            }
            data_type if data_type.is_numeric() => JsonValues::Numbers(to_large_strings(array)?),
            _ => match list_items(array) {
                Some((all, items)) => {
                    let (ranges, start, end) = rebase(all);
                    let items = Self::new(&items.slice(start, end - start))?;
                    JsonValues::Lists(ranges, Box::new(items))
                }
                None => JsonValues::Unsupported(array.data_type().clone()),
            },
        };
        Ok(Self {
            valid: array.logical_nulls(),
            values,
        })
    }

    fn append_value(&self, row: usize, out: &mut Vec<u8>) {
        if self.valid.as_ref().is_some_and(|valid| valid.is_null(row)) {
            return out.extend_from_slice(b"null");
        }
        match &self.values {
            JsonValues::Nulls => out.extend_from_slice(b"null"),
            JsonValues::Bools(bools) => {
                out.extend_from_slice(if bools.value(row) { b"true" } else { b"false" });
            }
            JsonValues::Strings(strings) => append_string(strings.value_at(row), out),
            JsonValues::Bytes(bytes) => append_bytes(bytes.value_at(row), out),
            JsonValues::FixedBytes(bytes) => append_bytes(bytes.value(row), out),
            JsonValues::Numbers(digits) => append_number(digits.value(row), out),
            JsonValues::Times(ticks, shape) => {
                append_string(&shape.format_ticks(ticks.value(row)), out);
            }
            JsonValues::Lists(ranges, items) => {
                out.push(b'[');
                for at in ranges[row].clone() {
                    if at > ranges[row].start {
                        out.push(b',');
                    }
                    items.append_value(at, out);
                }
                out.push(b']');
            }
            JsonValues::Objects(names, columns) => {
                out.push(b'{');
                for (name, column) in names.iter().zip(columns) {
                    out.extend_from_slice(name);
                    column.append_value(row, out);
                }
                out.push(b'}');
            }
            JsonValues::Maps(ranges, columns, has_names) => {
                append_map(ranges[row].clone(), columns, *has_names, out);
            }
            JsonValues::Unsupported(data_type) => append_string(&format!("({data_type})"), out),
        }
    }
}

fn append_map(
    entries: Range<usize>,
    [keys, values]: &[JsonColumn; 2],
    has_names: bool,
    out: &mut Vec<u8>,
) {
    out.push(if has_names { b'{' } else { b'[' });
    for at in entries.clone() {
        if at > entries.start {
            out.push(b',');
        }
        if has_names {
            keys.append_value(at, out);
            out.push(b':');
            values.append_value(at, out);
        } else {
            out.push(b'[');
            keys.append_value(at, out);
            out.push(b',');
            values.append_value(at, out);
            out.push(b']');
        }
    }
    out.push(if has_names { b'}' } else { b']' });
}

fn is_string_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_string_type(values),
        _ => false,
    }
}

/// Returns the items of each row of a column of lists, as ranges, and all items.
fn list_items(array: &ArrayRef) -> Option<(Vec<Range<usize>>, ArrayRef)> {
    let of_views = |pairs: &mut dyn Iterator<Item = (usize, usize)>| -> Vec<Range<usize>> {
        pairs.map(|(start, size)| start..start + size).collect()
    };
    Some(match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let offsets = lists.value_offsets().iter().map(|&at| at as usize);
            (ranges_of(offsets), Arc::clone(lists.values()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let offsets = lists.value_offsets().iter().map(|&at| at as usize);
            (ranges_of(offsets), Arc::clone(lists.values()))
        }
        DataType::FixedSizeList(_, size) => {
            let lists = array.as_fixed_size_list();
            let offsets = (0..=lists.len()).map(|row| row * *size as usize);
            (ranges_of(offsets), Arc::clone(lists.values()))
        }
        DataType::ListView(_) => {
            let lists = array.as_list_view::<i32>();
            let pairs = lists.offsets().iter().zip(lists.sizes().iter());
            let ranges = of_views(&mut pairs.map(|(&at, &size)| (at as usize, size as usize)));
            (ranges, Arc::clone(lists.values()))
        }
        DataType::LargeListView(_) => {
            let lists = array.as_list_view::<i64>();
            let pairs = lists.offsets().iter().zip(lists.sizes().iter());
            let ranges = of_views(&mut pairs.map(|(&at, &size)| (at as usize, size as usize)));
            (ranges, Arc::clone(lists.values()))
        }
        _ => return None,
    })
}

/// Returns the ranges between successive offsets.
fn ranges_of(offsets: impl Iterator<Item = usize> + Clone) -> Vec<Range<usize>> {
    let starts = offsets.clone();
    starts.zip(offsets.skip(1)).map(|(a, b)| a..b).collect()
}

/// Returns the ranges relative to their smallest start, that start, and their largest end. Only these items are
/// converted, because a batch may be a slice of a large one.
fn rebase(ranges: Vec<Range<usize>>) -> (Vec<Range<usize>>, usize, usize) {
    let filled = || ranges.iter().filter(|range| !range.is_empty());
    let start = filled().map(|range| range.start).min().unwrap_or(0);
    let end = filled().map(|range| range.end).max().unwrap_or(0);
    let relative = ranges.iter().map(|range| {
        if range.is_empty() {
            0..0
        } else {
            range.start - start..range.end - start
        }
    });
    (relative.collect(), start, end)
}

fn parts_of_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn times_of_day(array: &ArrayRef, unit: TimeUnit) -> Int64Array {
    match unit {
        TimeUnit::Second => array.as_primitive::<Time32SecondType>().unary(i64::from),
        TimeUnit::Millisecond => array
            .as_primitive::<Time32MillisecondType>()
            .unary(i64::from),
        TimeUnit::Microsecond => array
            .as_primitive::<Time64MicrosecondType>()
            .unary(|value| value),
        TimeUnit::Nanosecond => array
            .as_primitive::<Time64NanosecondType>()
            .unary(|value| value),
    }
}

impl TimeShape {
    fn format_ticks(self, ticks: i64) -> String {
        match self {
            Self::Days => format_date(ticks),
            Self::TimeOfDay(parts) => format_time(ticks, parts),
            Self::Instant(parts, has_zone) => {
                let of_day = 86_400 * parts;
                let date = format_date(ticks.div_euclid(of_day));
                let time = format_time(ticks.rem_euclid(of_day), parts);
                let zone = if has_zone { "Z" } else { "" };
                format!("{date}T{time}{zone}")
            }
        }
    }
}

/// Returns the time of a day; `ticks` counts parts of a second since midnight.
fn format_time(ticks: i64, parts: i64) -> String {
    let (seconds, rest) = (ticks.div_euclid(parts), ticks.rem_euclid(parts));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{hour:02}:{minute:02}:{second:02}");
    if rest > 0 {
        let digits = parts.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    text
}

/// Returns the date of a day of the Gregorian calendar, counted from 1970-01-01. Years beyond four digits have a sign.
///
/// The calculation is `civil_from_days` of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn format_date(days: i64) -> String {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if (0..=9999).contains(&year) {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{year:+05}-{month:02}-{day:02}")
    }
}

fn append_number(digits: &str, out: &mut Vec<u8>) {
    // The names of numbers that are not finite have letters in them: NaN, inf, -inf.
    let is_finite = digits
        .bytes()
        .last()
        .is_some_and(|last| last.is_ascii_digit());
    out.extend_from_slice(if is_finite {
        digits.as_bytes()
    } else {
        b"null"
    });
}

fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => append_string(text, out),
        Err(_) => {
            out.push(b'"');
            for byte in bytes {
                out.extend_from_slice(format!("{byte:02x}").as_bytes());
            }
            out.push(b'"');
        }
    }
}

fn append_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a string is written to memory without failure");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_follow_the_calendar() {
        let dates = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+10000-01-01"),
        ];
        for (days, expected) in dates {
            assert_eq!(format_date(days), expected);
        }
        let millis = TimeShape::Instant(1000, true);
        assert_eq!(millis.format_ticks(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(
            millis.format_ticks(1_700_000_000_120),
            "2023-11-14T22:13:20.12Z"
        );
        let plain = TimeShape::Instant(1, false);
        assert_eq!(plain.format_ticks(1_700_000_000), "2023-11-14T22:13:20");
        let micros = TimeShape::TimeOfDay(1_000_000);
        assert_eq!(micros.format_ticks(3_600_000_005), "01:00:00.000005");
    }
}
