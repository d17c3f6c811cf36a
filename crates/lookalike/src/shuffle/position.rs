//! The place of a document in the total order, as bytes that compare in that order.
//!
//! Documents on many machines have no order of reading, so ids, ordered by their bytes, take its place.
//! The values that a policy orders by come before the id, one after another.
//!
//! ```text
//! value, smallest first   00, kind and value               or ff if the value is missing
//! value, largest first    00, inverted (kind and value)    or ff if the value is missing
//! id, smallest first      id
//! id, largest first       inverted (id, escaped, 00 00), id
//!
//! kind 0     a number: the largest double that is not above it (8 bytes), the number less this double (2 bytes)
//! kind 1     a text: its bytes, escaped, 00 00
//! ```
//!
//! The second part of a number is 0 for doubles and below 1024 for integers of 64 bits, so both kinds of numbers are
//! compared without rounding. No value is the beginning of another one, so that the next one decides only between equal
//! ones.

use crate::error::{Error, Result};

/// Largest number of values by which documents are ordered.
const MAX_VALUES: usize = 32;

/// The policy of which document comes first, as in a run over files: some values, one after another, and the id between
/// documents that are equal by all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentOrder {
    /// Number of the values.
    values: u8,
    /// Bit n is set if the largest n-th value comes first, and not the smallest.
    largest_values: u32,
    /// `true` if the largest id comes first.
    is_largest_id: bool,
}

/// A value by which documents are ordered. Numbers come before texts in ascending order; missing values
/// always come last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OrderValue<'a> {
    /// An integer, compared without rounding, with doubles too.
    Integer(i64),
    /// Any other number. Both zeros are equal.
    Number(f64),
    /// A text, compared by its bytes.
    Text(&'a str),
    /// No value.
    Missing,
}

const NUMBER_BYTE: u8 = 0;
const TEXT_BYTE: u8 = 1;
/// First byte of a position without a value. It sorts after [`PRESENT_BYTE`].
const ABSENT_BYTE: u8 = 0xff;
const PRESENT_BYTE: u8 = 0;

impl DocumentOrder {
    /// The smallest id.
    pub const SMALLEST_ID: Self = Self {
        values: 0,
        largest_values: 0,
        is_largest_id: false,
    };
    /// The largest id.
    pub const LARGEST_ID: Self = Self {
        is_largest_id: true,
        ..Self::SMALLEST_ID
    };
    /// The smallest value, then the smallest id.
    pub const LEAST_VALUE: Self = Self {
        values: 1,
        ..Self::SMALLEST_ID
    };
    /// The largest value, then the smallest id.
    pub const MOST_VALUE: Self = Self {
        largest_values: 1,
        ..Self::LEAST_VALUE
    };

    /// Returns the order by values, of which each is `true` if the largest comes first, and then by the largest id or by
    /// the smallest.
    ///
    /// # Errors
    /// Fails if there are more than 32 values.
    pub fn new(largest_values: &[bool], is_largest_id: bool) -> Result<Self> {
        if largest_values.len() > MAX_VALUES {
            return Err(Error::setting_error(format!(
                "an order of {} values is too long for documents on many machines: give at most {MAX_VALUES}",
                largest_values.len()
            )));
        }
        let bits = largest_values.iter().enumerate();
        Ok(Self {
            values: largest_values.len() as u8,
            largest_values: bits.fold(0, |all, (at, &is_largest)| {
                all | u32::from(is_largest) << at
            }),
            is_largest_id,
        })
    }

    /// Appends the position of a document. Of two documents, the one whose position has smaller bytes
    /// comes first. Values that are not given are missing.
    pub fn append_position(self, id: &str, values: &[OrderValue<'_>], into: &mut Vec<u8>) {
        for (at, mask) in self.value_masks().enumerate() {
            let value = values.get(at).copied().unwrap_or(OrderValue::Missing);
            append_value(value, mask, into);
        }
        if self.is_largest_id {
            let start = into.len();
            append_terminated(id.as_bytes(), into);
            invert_bytes(&mut into[start..]);
        }
        into.extend_from_slice(id.as_bytes());
    }

    /// Returns the id in a position.
    ///
    /// # Errors
    /// Fails if these bytes are not a position in this order.
    pub fn id_in_position(self, position: &[u8]) -> Result<&str> {
        let mut rest = Some(position);
        for mask in self.value_masks() {
            rest = rest.and_then(|rest| behind_value(rest, mask));
        }
        if self.is_largest_id {
            rest = rest.and_then(|rest| behind_ended(rest, 0xff));
        }
        rest.and_then(|id| std::str::from_utf8(id).ok())
            .ok_or_else(|| none_of_this_order(position))
    }

    /// Returns for each value 255 if its bytes are inverted, so that the largest comes first, else 0.
    fn value_masks(self) -> impl Iterator<Item = u8> {
        (0..self.values).map(move |at| {
            if self.largest_values >> at & 1 == 1 {
                0xff
            } else {
                0
            }
        })
    }
}

/// Appends a value with its presence. `mask` is 255 to invert its bytes, else 0.
fn append_value(value: OrderValue<'_>, mask: u8, into: &mut Vec<u8>) {
    if value == OrderValue::Missing {
        into.push(ABSENT_BYTE);
        return;
    }
    into.push(PRESENT_BYTE);
    let start = into.len();
    match value {
        OrderValue::Integer(integer) => {
            let (floor, rest) = split_integer(integer);
            append_number(floor, rest, into);
        }
        OrderValue::Number(number) => append_number(number, 0, into),
        OrderValue::Text(text) => {
            into.push(TEXT_BYTE);
            append_terminated(text.as_bytes(), into);
        }
        OrderValue::Missing => {}
    }
    if mask != 0 {
        invert_bytes(&mut into[start..]);
    }
}

pub(super) fn none_of_this_order(position: &[u8]) -> Error {
    Error::setting_error(format!(
        "{} bytes are not a position of a document in this order: give positions of the same run",
        position.len()
    ))
}

/// Returns the largest double that is not above an integer, and how much the integer exceeds it.
fn split_integer(integer: i64) -> (f64, u16) {
    let nearest = integer as f64;
    let floor = if nearest as i128 > i128::from(integer) {
        nearest.next_down()
    } else {
        nearest
    };
    // Doubles up to 2^63 are at most 1024 apart.
    (floor, (i128::from(integer) - floor as i128) as u16)
}

/// Bytes of a number after its kind.
const NUMBER_BYTES: usize = 10;

fn append_number(floor: f64, rest: u16, into: &mut Vec<u8>) {
    into.push(NUMBER_BYTE);
    // The sum makes a positive zero of a negative one.
    into.extend(ascending_bits(floor + 0.0).to_be_bytes());
    into.extend(rest.to_be_bytes());
}

/// Returns bits that ascend as `f64::total_cmp` does.
fn ascending_bits(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// Appends bytes with an end mark that preserves their order: each zero byte is followed by 255, and
/// the end is two zero bytes.
fn append_terminated(bytes: &[u8], into: &mut Vec<u8>) {
    for &byte in bytes {
        into.push(byte);
        if byte == 0 {
            into.push(0xff);
        }
    }
    into.extend([0, 0]);
}

fn invert_bytes(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

/// Returns the bytes after those that end with a mark. `turned` is 255 if they were inverted, else 0.
fn behind_ended(bytes: &[u8], turned: u8) -> Option<&[u8]> {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] ^ turned != 0 {
            at += 1;
        } else if bytes.get(at + 1)? ^ turned == 0 {
            return Some(&bytes[at + 2..]);
        } else {
            at += 2;
        }
    }
    None
}

fn behind_value(position: &[u8], turned: u8) -> Option<&[u8]> {
    let (&first, rest) = position.split_first()?;
    if first == ABSENT_BYTE {
        return Some(rest);
    }
    let (&kind, rest) = rest.split_first()?;
    match kind ^ turned {
        NUMBER_BYTE => rest.get(NUMBER_BYTES..),
        TEXT_BYTE => behind_ended(rest, turned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    fn compare(a: OrderValue<'_>, b: OrderValue<'_>) -> Ordering {
        match (a, b) {
            (OrderValue::Integer(a), OrderValue::Integer(b)) => a.cmp(&b),
            // The integers of the test are small enough to be exact or differ much from its doubles.
            (OrderValue::Integer(a), OrderValue::Number(b)) => (a as f64).total_cmp(&(b + 0.0)),
            (OrderValue::Number(a), OrderValue::Integer(b)) => (a + 0.0).total_cmp(&(b as f64)),
            (OrderValue::Number(a), OrderValue::Number(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (OrderValue::Text(a), OrderValue::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (OrderValue::Missing, _) | (_, OrderValue::Missing) => Ordering::Equal,
            (_, OrderValue::Text(_)) => Ordering::Less,
            (OrderValue::Text(_), _) => Ordering::Greater,
        }
    }

    fn expected(
        first: DocumentOrder,
        a: (&str, OrderValue<'_>),
        b: (&str, OrderValue<'_>),
    ) -> Ordering {
        let missing = |value| value == OrderValue::Missing;
        let by_missing = missing(a.1).cmp(&missing(b.1));
        let by_id = a.0.as_bytes().cmp(b.0.as_bytes());
        match first {
            DocumentOrder::SMALLEST_ID => by_id,
            DocumentOrder::LARGEST_ID => by_id.reverse(),
            DocumentOrder::LEAST_VALUE => by_missing.then(compare(a.1, b.1)).then(by_id),
            _ => by_missing.then(compare(b.1, a.1)).then(by_id),
        }
    }

    #[test]
    fn positions_follow_the_order_and_hold_the_id() {
        let ids = [
            "",
            "\0",
            "\0\0",
            "a",
            "a\0",
            "a\0b",
            "aa",
            "b",
            "ä",
            "文",
            "\u{10ffff}",
        ];
        let numbers = [-1e300, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY];
        let texts = ["", "\0", "a", "a\0", "a\0b", "ab", "b"];
        let mut values = vec![OrderValue::Missing];
        values.extend(numbers.map(OrderValue::Number));
        values.extend([i64::MIN, -3, 0, 2, i64::MAX - 1, i64::MAX].map(OrderValue::Integer));
        values.extend(texts.map(OrderValue::Text));
        for first in [
            DocumentOrder::SMALLEST_ID,
            DocumentOrder::LARGEST_ID,
            DocumentOrder::LEAST_VALUE,
            DocumentOrder::MOST_VALUE,
        ] {
            let documents = || {
                ids.iter()
                    .flat_map(|&id| values.iter().map(move |&it| (id, it)))
            };
            for a in documents() {
                let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
                first.append_position(a.0, &[a.1], &mut of_a);
                assert_eq!(first.id_in_position(&of_a).unwrap(), a.0);
                for b in documents() {
                    of_b.clear();
                    first.append_position(b.0, &[b.1], &mut of_b);
                    assert_eq!(
                        of_a.cmp(&of_b),
                        expected(first, a, b),
                        "{first:?} {a:?} {b:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn later_values_and_ids_decide_between_equal_ones() {
        let values = [
            OrderValue::Missing,
            OrderValue::Integer(1),
            OrderValue::Number(2.5),
            OrderValue::Text(""),
            OrderValue::Text("a"),
            OrderValue::Text("a\0"),
        ];
        let by_value = |a: OrderValue<'_>, b: OrderValue<'_>, is_largest: bool| {
            let missing = |value| value == OrderValue::Missing;
            let ordering = compare(a, b);
            let ordering = if is_largest {
                ordering.reverse()
            } else {
                ordering
            };
            missing(a).cmp(&missing(b)).then(ordering)
        };
        let documents: Vec<_> = values
            .iter()
            .flat_map(|&first| values.iter().map(move |&second| [first, second]))
            .flat_map(|pair| ["a", "b\0", "b"].map(|id| (id, pair)))
            .collect();
        for bits in 0..8 {
            let [first, second, is_largest_id] = [0, 1, 2].map(|bit| bits >> bit & 1 == 1);
            let order = DocumentOrder::new(&[first, second], is_largest_id).unwrap();
            let position = |(id, pair): &(&str, [OrderValue<'_>; 2])| {
                let mut position = Vec::new();
                order.append_position(id, pair, &mut position);
                assert_eq!(order.id_in_position(&position).unwrap(), *id);
                position
            };
            for a in &documents {
                for b in &documents {
                    let by_id = a.0.cmp(b.0);
                    let by_id = if is_largest_id {
                        by_id.reverse()
                    } else {
                        by_id
                    };
                    let expected = by_value(a.1[0], b.1[0], first)
                        .then(by_value(a.1[1], b.1[1], second))
                        .then(by_id);
                    assert_eq!(
                        position(a).cmp(&position(b)),
                        expected,
                        "{order:?} {a:?} {b:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn orders_have_a_name_and_a_limit() {
        for (order, largest_values, is_largest_id) in [
            (DocumentOrder::SMALLEST_ID, &[][..], false),
            (DocumentOrder::LARGEST_ID, &[], true),
            (DocumentOrder::LEAST_VALUE, &[false], false),
            (DocumentOrder::MOST_VALUE, &[true], false),
        ] {
            assert_eq!(
                DocumentOrder::new(largest_values, is_largest_id).unwrap(),
                order
            );
        }
        assert!(DocumentOrder::new(&[true; MAX_VALUES], true).is_ok());
        let error = DocumentOrder::new(&[true; MAX_VALUES + 1], true).unwrap_err();
        assert!(error.to_string().contains("33 values"), "{error}");
    }

    #[test]
    fn invalid_position_bytes_are_refused() {
        for (first, bytes) in [
            (DocumentOrder::LEAST_VALUE, &[][..]),
            (DocumentOrder::LEAST_VALUE, &[0, 0, 1]),
            (DocumentOrder::MOST_VALUE, &[0, 7, 1]),
            (DocumentOrder::LARGEST_ID, &[1, 2, 3]),
            (DocumentOrder::SMALLEST_ID, &[0xff]),
        ] {
            let error = first.id_in_position(bytes).unwrap_err().to_string();
            assert!(error.contains("not a position"), "{error}");
        }
    }
}
