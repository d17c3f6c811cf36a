//! JSON values that borrow from their row. Objects keep the order of their members.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Members of an object from which a repeated key is looked up instead of compared.
const MANY_MEMBERS: usize = 32;

/// Digits of a whole number that may not fit into 64 bits.
const LONG_DIGITS: usize = 19;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JsonValue<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    /// A whole number above those of [`Integer`](Self::Integer).
    Unsigned(u64),
    /// A number with a fraction or an exponent.
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<JsonValue<'a>>),
    Object(Vec<JsonMember<'a>>),
}

/// A member of an object. No two members of an object have one key.
pub(super) type JsonMember<'a> = (Cow<'a, str>, JsonValue<'a>);

impl<'a> JsonValue<'a> {
    /// Parses a row.
    ///
    /// # Errors
    /// If the row is no JSON, or has a whole number that does not fit into 64 bits. The message is a phrase.
    pub(super) fn parse_row(row: &'a str) -> Result<Self, String> {
        let value: Self = serde_json::from_str(row).map_err(|error| error.to_string())?;
        // The parser makes a floating-point number of a whole number that is too long, and loses digits.
        if value.has_huge_float() && has_long_integer(row) {
            Err("it has a whole number of more than 64 bits".to_owned())
        } else {
            Ok(value)
        }
    }

    fn has_huge_float(&self) -> bool {
        match self {
            Self::Float(number) => number.abs() >= i64::MAX as f64,
            Self::List(items) => items.iter().any(Self::has_huge_float),
            Self::Object(members) => members.iter().any(|(_, value)| value.has_huge_float()),
            _ => false,
        }
    }
}

/// Returns `true` if a row has a number of at least [`LONG_DIGITS`] digits without a fraction or an exponent.
fn has_long_integer(row: &str) -> bool {
    let bytes = row.as_bytes();
    let (mut at, mut in_string) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'0'..=b'9' if !in_string => {
                let part_of_number =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let length = bytes[at..].iter().take_while(part_of_number).count();
                let number = &bytes[at..at + length];
                if length >= LONG_DIGITS && number.iter().all(u8::is_ascii_digit) {
                    return true;
                }
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    false
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = JsonValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(JsonValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(JsonValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(JsonValue::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(JsonValue::Unsigned(value), JsonValue::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(JsonValue::Float(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(JsonValue::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(JsonValue::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(JsonValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members: Vec<JsonMember<'de>> = Vec::new();
        while let Some(KeyText(key)) = access.next_key()? {
            members.push((key, access.next_value()?));
        }
        Ok(JsonValue::Object(without_repeated_keys(members)))
    }
}

/// Returns the members without those whose key is repeated later, because the last value of a key counts.
fn without_repeated_keys(mut members: Vec<JsonMember<'_>>) -> Vec<JsonMember<'_>> {
    let is_repeated: Vec<bool> = if members.len() <= MANY_MEMBERS {
        let repeats = |at: usize| {
            members[at + 1..]
                .iter()
                .any(|later| later.0 == members[at].0)
        };
        (0..members.len()).map(repeats).collect()
    } else {
        let last: HashMap<&str, usize> = (members.iter().enumerate())
            .map(|(at, member)| (&*member.0, at))
            .collect();
        let repeats = |(at, member): (usize, &JsonMember<'_>)| last[&*member.0] != at;
        members.iter().enumerate().map(repeats).collect()
    };
    if is_repeated.contains(&true) {
        let mut repeated = is_repeated.into_iter();
        members.retain(|_| !repeated.next().unwrap_or(false));
    }
    members
}

/// A key of an object.
struct KeyText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for KeyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = KeyText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
                Ok(KeyText(Cow::Borrowed(value)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
                Ok(KeyText(Cow::Owned(value.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_kind_and_long_ones_are_refused() {
        let parse = |row: &'static str| JsonValue::parse_row(row);
        assert_eq!(
            parse("9223372036854775807"),
            Ok(JsonValue::Integer(i64::MAX))
        );
        assert_eq!(
            parse("18446744073709551615"),
            Ok(JsonValue::Unsigned(u64::MAX))
        );
        assert_eq!(parse("1.0"), Ok(JsonValue::Float(1.0)));
        assert_eq!(parse("1e30"), Ok(JsonValue::Float(1e30)));
        assert_eq!(
            parse("1000000000000000000000.5"),
            Ok(JsonValue::Float(1e21))
        );
        for row in [
            "18446744073709551616",
            r#"{"a\"":[1,-9223372036854775809]}"#,
        ] {
            assert!(
                parse(row).is_err_and(|reason| reason.contains("64 bits")),
                "{row}"
            );
        }
        let text = r#"{"a":1e300,"b":"18446744073709551616"}"#;
        assert!(parse(text).is_ok());
    }

    #[test]
    fn the_last_value_of_a_key_counts() {
        let keys: Vec<String> = (0..40).map(|at| format!("\"k{at}\":{at}")).collect();
        let long = format!("{{\"k7\":0,{}}}", keys.join(","));
        for (row, first) in [(r#"{"a":1,"b":2,"a":3}"#, "b"), (&*long, "k0")] {
            let JsonValue::Object(members) = JsonValue::parse_row(row).unwrap() else {
                panic!("an object")
            };
            assert_eq!(members[0].0, first);
            assert_eq!(
                members
                    .iter()
                    .filter(|member| member.0 == "a" || member.0 == "k7")
                    .count(),
                1
            );
        }
    }
}
