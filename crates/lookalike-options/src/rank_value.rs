//! Values by which documents are preferred to others: `--keep max:FIELD` of a run, and `prefer` of the
//! clusters of a collection.

use std::cmp::Ordering;

use lookalike::shuffle::OrderValue;

/// The value by which documents are ordered.
#[derive(Debug, Clone, PartialEq)]
pub enum RankValue {
    /// Compared exactly, without rounding.
    Integer(i64),
    /// A number that is not an integer of 64 bits; never NaN.
    Number(f64),
    /// Compared byte by byte.
    Text(Box<str>),
    /// No value, an empty text, or NaN.
    Missing,
}

impl RankValue {
    /// Returns the bytes that the value takes outside of itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Integer(_) | Self::Number(_) | Self::Missing => 0,
        }
    }

    /// Converts a text. One that is a number counts as a number, because a CSV cell is text even if it contains a number.
    pub fn from_text(text: &str) -> Self {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Self::Missing;
        }
        match trimmed.parse() {
            Ok(number) => Self::from_number(trimmed, number),
            Err(_) => Self::Text(text.into()),
        }
    }

    /// Converts a JSON value as it stands in a document. Lists and objects count as missing.
    pub fn from_json(literal: &str) -> Self {
        match literal.as_bytes().first() {
            Some(b'"') => {
                let text: String = serde_json::from_str(literal).unwrap_or_default();
                Self::from_text(&text)
            }
            Some(b't') => Self::from_truth(true),
            Some(b'f') => Self::from_truth(false),
            Some(b'-' | b'0'..=b'9') => {
                Self::from_number(literal, literal.parse().unwrap_or(f64::NAN))
            }
            _ => Self::Missing,
        }
    }

    /// Converts a Boolean value: `true` is 1, `false` is 0.
    pub fn from_truth(truth: bool) -> Self {
        Self::Integer(i64::from(truth))
    }

    /// Converts a number given by its digits. NaN counts as a missing value.
    pub fn from_number(literal: &str, value: f64) -> Self {
        match literal.parse() {
            Ok(integer) => Self::Integer(integer),
            Err(_) if value.is_nan() => Self::Missing,
            Err(_) => Self::Number(value),
        }
    }

    /// Returns the value for runs on many machines, which order documents by it in the same way.
    pub fn as_order_value(&self) -> OrderValue<'_> {
        match self {
            Self::Integer(integer) => OrderValue::Integer(*integer),
            Self::Number(number) => OrderValue::Number(*number),
            Self::Text(text) => OrderValue::Text(text),
            Self::Missing => OrderValue::Missing,
        }
    }

    /// Compares two values as preferences: `Less` if this one is preferred. The largest value is preferred if
    /// `descending`, else the smallest. Missing values come last.
    pub fn compare_preferred(&self, other: &Self, descending: bool) -> Ordering {
        let by_value = if descending {
            other.compare_rank(self)
        } else {
            self.compare_rank(other)
        };
        self.is_missing().cmp(&other.is_missing()).then(by_value)
    }

    /// Compares two values; numbers come before texts.
    fn compare_rank(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Integer(a), Self::Number(b)) => compare_exactly(*a, *b),
            (Self::Number(a), Self::Integer(b)) => compare_exactly(*b, *a).reverse(),
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Integer(_) | Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Integer(_) | Self::Number(_)) => Ordering::Greater,
            (Self::Missing, _) | (_, Self::Missing) => Ordering::Equal,
        }
    }

    fn is_missing(&self) -> bool {
        *self == Self::Missing
    }
}

/// Compares an integer with a double exactly, without rounding the integer. The double must not be NaN.
fn compare_exactly(integer: i64, number: f64) -> Ordering {
    const FIRST_ABOVE_I64: f64 = 9_223_372_036_854_775_808.0;
    if number >= FIRST_ABOVE_I64 {
        return Ordering::Less;
    }
    if number < -FIRST_ABOVE_I64 {
        return Ordering::Greater;
    }
    let whole = number.trunc();
    let rest = number - whole;
    let by_rest = || 0.0_f64.partial_cmp(&rest).unwrap_or(Ordering::Equal);
    integer.cmp(&(whole as i64)).then_with(by_rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferred_values_come_first_and_missing_ones_last() {
        let text = RankValue::from_text;
        let number = |literal: &str| RankValue::from_number(literal, literal.parse().unwrap());
        let ascending = [
            number("-1e300"),
            number("2"),
            number("2.5"),
            number("9007199254740992"),
            number("9007199254740993"),
            text("10000000000000000"),
            text("a"),
            text("b"),
        ];
        for (at, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(a.compare_preferred(b, false), at.cmp(&other), "{a:?} {b:?}");
                assert_eq!(a.compare_preferred(b, true), other.cmp(&at), "{a:?} {b:?}");
            }
            for missing in [RankValue::Missing, text(" "), text("NaN")] {
                assert_eq!(a.compare_preferred(&missing, true), Ordering::Less);
                assert_eq!(missing.compare_preferred(a, false), Ordering::Greater);
            }
        }
    }

    /// A run on many machines compares positions, and one machine the values themselves.
    #[test]
    fn positions_compare_as_the_values_do() {
        use lookalike::shuffle::DocumentOrder;

        let text = RankValue::from_text;
        let integers = [
            0,
            5,
            1 << 53,
            (1 << 53) + 1,
            (1 << 53) + 2,
            i64::MAX - 1,
            i64::MAX,
        ];
        let signed = integers.iter().flat_map(|&integer| [integer, -integer]);
        let doubles = [
            -0.0,
            0.5,
            5.0,
            9_007_199_254_740_992.0,
            9.223_372_036_854_775e18,
            1e300,
        ];
        let doubles = doubles.iter().flat_map(|&number| [number, -number]);
        let mut values: Vec<RankValue> = signed.map(RankValue::Integer).collect();
        values.extend(doubles.map(RankValue::Number));
        values.extend(
            [
                " 5 ",
                "",
                "NaN",
                "inf",
                "-inf",
                "9007199254740993",
                "a",
                "b 5",
            ]
            .map(text),
        );
        values.extend([RankValue::Integer(i64::MIN), RankValue::Missing]);
        for (order, is_descending) in [
            (DocumentOrder::LEAST_VALUE, false),
            (DocumentOrder::MOST_VALUE, true),
        ] {
            let position = |value: &RankValue| {
                let mut position = Vec::new();
                order.append_position("id", &[value.as_order_value()], &mut position);
                position
            };
            for a in &values {
                for b in &values {
                    let by_value = a.compare_preferred(b, is_descending);
                    assert_eq!(
                        position(a).cmp(&position(b)),
                        by_value,
                        "{order:?} {a:?} {b:?}"
                    );
                }
            }
        }
    }
}
