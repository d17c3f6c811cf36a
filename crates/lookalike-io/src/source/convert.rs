//! Conversion of Arrow columns of any width and encoding to the few types that the readers handle.
//!
//! These are the conversions of `arrow-cast` that are needed here, with the same results. That crate is
//! not used because it converts every type into every other, which takes a tenth of the time of a
//! release build.

use std::fmt::Write;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, Int64Array, LargeStringArray, PrimitiveArray,
    new_null_array,
};
use arrow_schema::{ArrowError, DataType, TimeUnit};

/// Returns the column as strings with 64-bit offsets; numbers become their shortest decimal digits.
///
/// # Errors
/// If the column is neither strings, plain or in a dictionary, nor numbers, nor all null.
pub fn to_large_strings(array: &ArrayRef) -> Result<LargeStringArray, ArrowError> {
    let collect = |strings: &mut dyn Iterator<Item = Option<&str>>| {
        let mut builder = LargeStringBuilder::with_capacity(array.len(), 0);
        strings.for_each(|string| builder.append_option(string));
        builder.finish()
    };
    Ok(match array.data_type() {
        DataType::LargeUtf8 => array.as_string::<i64>().clone(),
        DataType::Utf8 => collect(&mut array.as_string::<i32>().iter()),
        DataType::Utf8View => collect(&mut array.as_string_view().iter()),
        DataType::Null => new_null_array(&DataType::LargeUtf8, array.len())
            .as_string::<i64>()
            .clone(),
        DataType::Dictionary(..) => to_large_strings(&plain_values(array)?)?,
        _ => number_digits(array)?,
    })
}

/// Returns the column as binary strings with 32-bit offsets.
///
/// # Errors
/// If the column is not binary or holds more than 2 GiB.
pub fn to_binary(array: &ArrayRef) -> Result<BinaryArray, ArrowError> {
    let collect = |values: &mut dyn Iterator<Item = Option<&[u8]>>, bytes: usize| {
        if i32::try_from(bytes).is_err() {
            let message = format!("a batch has {bytes} bytes of blocks; at most 2147483647 fit");
            return Err(ArrowError::CastError(message));
        }
        Ok(values.collect())
    };
    match array.data_type() {
        DataType::Binary => Ok(array.as_binary::<i32>().clone()),
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            let offsets = values.value_offsets();
            let bytes = (offsets[offsets.len() - 1] - offsets[0]) as usize;
            collect(&mut values.iter(), bytes)
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            let bytes = values.lengths().map(|length| length as usize).sum();
            collect(&mut values.iter(), bytes)
        }
        _ => Err(unsupported(array, "binary strings")),
    }
}

/// Returns a numeric column as 64-bit floating-point numbers; each is the nearest to its value.
pub(super) fn to_floats(array: &ArrayRef) -> Result<Float64Array, ArrowError> {
    fn floats<T: ArrowPrimitiveType>(array: &ArrayRef, to: fn(T::Native) -> f64) -> Float64Array {
        array.as_primitive::<T>().unary(to)
    }
    fn parsed<T: DecimalType>(array: &ArrayRef) -> Float64Array {
        let decimals = array.as_primitive::<T>();
        let value = |row| decimals.value_as_string(row).parse().unwrap_or(f64::NAN);
        (0..decimals.len())
            .map(|row| decimals.is_valid(row).then(|| value(row)))
            .collect()
    }
    Ok(match array.data_type() {
        DataType::Int8 => floats::<Int8Type>(array, f64::from),
        DataType::Int16 => floats::<Int16Type>(array, f64::from),
        DataType::Int32 => floats::<Int32Type>(array, f64::from),
        DataType::Int64 => floats::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => floats::<UInt8Type>(array, f64::from),
        DataType::UInt16 => floats::<UInt16Type>(array, f64::from),
        DataType::UInt32 => floats::<UInt32Type>(array, f64::from),
        DataType::UInt64 => floats::<UInt64Type>(array, |value| value as f64),
        DataType::Float16 => floats::<Float16Type>(array, f64::from),
        DataType::Float32 => floats::<Float32Type>(array, f64::from),
        DataType::Float64 => array.as_primitive::<Float64Type>().clone(),
        DataType::Decimal32(..) => parsed::<Decimal32Type>(array),
        DataType::Decimal64(..) => parsed::<Decimal64Type>(array),
        DataType::Decimal128(..) => parsed::<Decimal128Type>(array),
        DataType::Decimal256(..) => parsed::<Decimal256Type>(array),
        _ => return Err(unsupported(array, "numbers")),
    })
}

/// Returns dates and times as their counts of days or of the unit of the column.
pub(super) fn to_ticks(array: &ArrayRef) -> Result<Int64Array, ArrowError> {
    fn ticks<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef) -> Int64Array {
        let times = array.as_primitive::<T>();
        Int64Array::new(times.values().clone(), times.nulls().cloned())
    }
    Ok(match array.data_type() {
        DataType::Date32 => array.as_primitive::<Date32Type>().unary(i64::from),
        DataType::Date64 => ticks::<Date64Type>(array),
        DataType::Timestamp(TimeUnit::Second, _) => ticks::<TimestampSecondType>(array),
        DataType::Timestamp(TimeUnit::Millisecond, _) => ticks::<TimestampMillisecondType>(array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => ticks::<TimestampMicrosecondType>(array),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => ticks::<TimestampNanosecondType>(array),
        _ => return Err(unsupported(array, "times")),
    })
}

/// Returns the values of a column with a dictionary, row by row.
pub(crate) fn plain_values(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let dictionary = array.as_any_dictionary();
    let keys = dictionary.normalized_keys();
    let valid = dictionary.keys().nulls();
    let keys: arrow_array::UInt64Array = (keys.iter().enumerate())
        .map(|(row, &key)| {
            let is_valid = valid.is_none_or(|valid| valid.is_valid(row));
            is_valid.then_some(key as u64)
        })
        .collect();
    arrow_select::take::take(dictionary.values(), &keys, None)
}

/// Returns the shortest decimal digits that stand for each number.
fn number_digits(array: &ArrayRef) -> Result<LargeStringArray, ArrowError> {
    let digits = |array: &ArrayRef| -> Option<LargeStringArray> {
        Some(match array.data_type() {
            DataType::Int8 => display_values::<Int8Type>(array),
            DataType::Int16 => display_values::<Int16Type>(array),
            DataType::Int32 => display_values::<Int32Type>(array),
            DataType::Int64 => display_values::<Int64Type>(array),
            DataType::UInt8 => display_values::<UInt8Type>(array),
            DataType::UInt16 => display_values::<UInt16Type>(array),
            DataType::UInt32 => display_values::<UInt32Type>(array),
            DataType::UInt64 => display_values::<UInt64Type>(array),
            DataType::Float16 => display_values::<Float16Type>(array),
            DataType::Float32 => shortest_digits::<Float32Type>(array),
            DataType::Float64 => shortest_digits::<Float64Type>(array),
            DataType::Decimal32(..) => format_decimals::<Decimal32Type>(array),
            DataType::Decimal64(..) => format_decimals::<Decimal64Type>(array),
            DataType::Decimal128(..) => format_decimals::<Decimal128Type>(array),
            DataType::Decimal256(..) => format_decimals::<Decimal256Type>(array),
            _ => return None,
        })
    };
    digits(array).ok_or_else(|| unsupported(array, "strings or numbers"))
}

/// Writes each value of a column by `write`, which appends it to the string.
fn write_each<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    mut write: impl FnMut(&mut String, usize, T::Native),
) -> LargeStringArray {
    let mut builder = LargeStringBuilder::with_capacity(array.len(), 8 * array.len());
    let mut digits = String::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            builder.append_null();
            continue;
        }
        digits.clear();
        write(&mut digits, row, array.value(row));
        builder.append_value(&digits);
    }
    builder.finish()
}

fn display_values<T: ArrowPrimitiveType>(array: &ArrayRef) -> LargeStringArray
where
    T::Native: std::fmt::Display,
{
    write_each(array.as_primitive::<T>(), |digits, _, value| {
        // A string takes everything that is written to it.
        let _ = write!(digits, "{value}");
    })
}

fn shortest_digits<T: ArrowPrimitiveType>(array: &ArrayRef) -> LargeStringArray
where
    T::Native: ryu::Float,
{
    let mut buffer = ryu::Buffer::new();
    write_each(array.as_primitive::<T>(), |digits, _, value| {
        digits.push_str(buffer.format(value));
    })
}

fn format_decimals<T: DecimalType>(array: &ArrayRef) -> LargeStringArray {
    let array = array.as_primitive::<T>();
    write_each(array, |digits, row, _| {
        digits.push_str(&array.value_as_string(row));
    })
}

fn unsupported(array: &ArrayRef, wanted: &str) -> ArrowError {
    let message = format!("a column of the type {} has no {wanted}", array.data_type());
    ArrowError::CastError(message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::UInt8Type;
    use arrow_array::{
        Decimal128Array, Decimal256Array, DictionaryArray, Float32Array, Int32Array,
        LargeBinaryArray, NullArray, StringArray, StringViewArray, UInt64Array,
    };
    use arrow_buffer::i256;

    use super::*;

    fn strings(array: impl Array + 'static) -> Vec<Option<String>> {
        let array: ArrayRef = Arc::new(array);
        let strings = to_large_strings(&array).unwrap();
        strings
            .iter()
            .map(|string| string.map(str::to_owned))
            .collect()
    }

    fn given(strings: &[Option<&str>]) -> Vec<Option<String>> {
        strings
            .iter()
            .map(|string| string.map(str::to_owned))
            .collect()
    }

    #[test]
    fn all_string_encodings_convert_equally() {
        let values = [Some("a"), None, Some(""), Some("青溪市有轨电车三号线")];
        let expected = given(&values);
        assert_eq!(strings(StringArray::from(values.to_vec())), expected);
        assert_eq!(strings(LargeStringArray::from(values.to_vec())), expected);
        assert_eq!(strings(StringViewArray::from(values.to_vec())), expected);
        let dictionary: DictionaryArray<UInt8Type> = values.into_iter().collect();
        assert_eq!(strings(dictionary.slice(1, 3)), expected[1..]);
        assert_eq!(strings(NullArray::new(2)), [None, None]);
    }

    #[test]
    fn numbers_have_their_shortest_digits() {
        let integers = Int64Array::from(vec![Some(i64::MIN), None, Some(0), Some(-7)]);
        let expected = [Some("-9223372036854775808"), None, Some("0"), Some("-7")];
        assert_eq!(strings(integers), given(&expected));
        assert_eq!(
            strings(UInt64Array::from(vec![u64::MAX])),
            given(&[Some("18446744073709551615")])
        );
        let floats = vec![1.0, 0.1, -2.5e-7, 0.00002, 1e15, 1e16, 1e300, f64::NAN];
        let expected = [
            "1.0",
            "0.1",
            "-2.5e-7",
            "0.00002",
            "1000000000000000.0",
            "1e16",
            "1e300",
            "NaN",
        ];
        assert_eq!(
            strings(Float64Array::from(floats)),
            given(&expected.map(Some))
        );
        assert_eq!(
            strings(Float32Array::from(vec![0.1])),
            given(&[Some("0.1")])
        );
        let decimals = Decimal128Array::from(vec![Some(-12_345), None, Some(5)]);
        let decimals = decimals.with_precision_and_scale(9, 3).unwrap();
        assert_eq!(
            strings(decimals),
            given(&[Some("-12.345"), None, Some("0.005")])
        );
    }

    #[test]
    fn floats_round_to_nearest() {
        let floats = |array: ArrayRef| to_floats(&array).unwrap();
        let large = UInt64Array::from(vec![Some(u64::MAX), None]);
        let large = floats(Arc::new(large));
        assert_eq!(large.value(0), 18_446_744_073_709_551_615_u64 as f64);
        assert!(large.is_null(1));
        let decimals = Decimal256Array::from(vec![i256::from_i128(1_234_567_891)]);
        let decimals = decimals.with_precision_and_scale(40, 9).unwrap();
        assert_eq!(floats(Arc::new(decimals)).value(0), 1.234567891);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        assert!(to_floats(&texts).is_err());
    }

    #[test]
    fn all_binary_widths_convert_equally() {
        let values: Vec<Option<&[u8]>> = vec![Some(b"a"), None, Some(b"")];
        let large: ArrayRef = Arc::new(LargeBinaryArray::from(values.clone()));
        assert_eq!(to_binary(&large).unwrap(), BinaryArray::from(values));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(to_binary(&numbers).is_err());
    }
}
