//! Validation of the strings of an Arrow array as UTF-8.
//!
//! Arrow's string types promise UTF-8, and readers rely on it, but programs hand over arrays that
//! nobody validated. Cost: one pass over the bytes, and a check of both ends of each string.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, BinaryViewArray, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use simdutf8::basic::from_utf8;

/// Returns the first row that holds a string that is not UTF-8, also within lists, maps and structs. Of a dictionary
/// with such a string it returns row 0.
#[must_use]
pub fn first_malformed(array: &dyn Array) -> Option<usize> {
    match array.data_type() {
        DataType::Utf8 => first_malformed_value(array.as_string::<i32>()),
        DataType::LargeUtf8 => first_malformed_value(array.as_string::<i64>()),
        DataType::Utf8View => malformed_view(&array.as_string_view().clone().to_binary_view()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            malformed_in_lists(list.value_offsets(), list.values().as_ref())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            malformed_in_lists(list.value_offsets(), list.values().as_ref())
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            // Rows are searched one by one only if some string is malformed, because they may overlap.
            first_malformed(list.values())?;
            let is_bad = |&row: &usize| first_malformed(&list.value(row)).is_some();
            (0..list.len())
                .filter(|&row| list.is_valid(row))
                .find(is_bad)
        }
        DataType::Map(..) => {
            let map = array.as_map();
            malformed_in_lists(map.value_offsets(), map.entries())
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.filter_map(|column| first_malformed(column)).min()
        }
        // Row 0 is reported, because the rows that use the malformed value are not searched.
        DataType::Dictionary(..) => {
            let values = array.as_any_dictionary().values();
            first_malformed(values).map(|_| 0)
        }
        _ => None,
    }
}

fn first_malformed_value<T: ByteArrayType>(strings: &GenericByteArray<T>) -> Option<usize> {
    let at = |row: usize| strings.value_offsets()[row].as_usize();
    let (first, rows) = (at(0), strings.len());
    let bytes = &strings.values()[first..at(rows)];
    if let Ok(all) = from_utf8(bytes)
        && (0..rows).all(|row| all.is_char_boundary(at(row) - first))
    {
        return None;
    }
    // Only valid rows count, because a null row may refer to arbitrary bytes.
    let bad = |&row: &usize| {
        strings.is_valid(row) && from_utf8(&bytes[at(row) - first..at(row + 1) - first]).is_err()
    };
    (0..rows).find(bad)
}

fn malformed_view(strings: &BinaryViewArray) -> Option<usize> {
    let bad = |&row: &usize| strings.is_valid(row) && from_utf8(strings.value(row)).is_err();
    (0..strings.len()).find(bad)
}

fn malformed_in_lists<O: OffsetSizeTrait>(offsets: &[O], values: &dyn Array) -> Option<usize> {
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let bad = first_malformed(values.slice(first, last - first).as_ref())?;
    Some(list_of_value(offsets, first + bad))
}

/// Returns the index of the list that contains the value at this index.
fn list_of_value<O: OffsetSizeTrait>(offsets: &[O], value: usize) -> usize {
    offsets.partition_point(|start| start.as_usize() <= value) - 1
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryArray, LargeBinaryArray};

    use super::*;

    /// Returns the first malformed row in each of three array types with the same rows.
    fn found(rows: &[Option<&[u8]>], start: usize) -> [Option<usize>; 3] {
        let length = rows.len() - start;
        [
            first_malformed_value(&BinaryArray::from_iter(rows).slice(start, length)),
            first_malformed_value(&LargeBinaryArray::from_iter(rows).slice(start, length)),
            malformed_view(&BinaryViewArray::from_iter(rows).slice(start, length)),
        ]
    }

    #[test]
    fn first_malformed_row_is_found() {
        let mut good: Vec<Option<&[u8]>> =
            vec![Some("渡船".as_bytes()), None, Some(b""), Some(b"ab")];
        good.extend([Some("é".as_bytes()); 40]);
        for start in 0..good.len() {
            assert_eq!(found(&good, start), [None; 3]);
            for bad in 0..good.len() {
                let mut rows = good.clone();
                rows[bad] = Some(b"a\xff");
                assert_eq!(found(&rows, start), [bad.checked_sub(start); 3]);
            }
        }
    }

    #[test]
    fn strings_that_split_a_character_are_invalid() {
        let (head, tail) = "é".as_bytes().split_at(1);
        assert_eq!(
            found(&[Some(b"a"), Some(head), Some(tail)], 0),
            [Some(1); 3]
        );
    }

    #[test]
    fn strings_in_lists_are_located_by_list_row() {
        use arrow_array::StringArray;
        let values = StringArray::from(vec!["a", "b", "c"]);
        assert_eq!(malformed_in_lists(&[0, 1, 1, 3], &values), None);
        assert_eq!(list_of_value(&[0, 1, 1, 3], 0), 0);
        assert_eq!(list_of_value(&[0, 1, 1, 3], 1), 2);
        assert_eq!(list_of_value(&[5, 7, 9], 8), 1);
    }
}
