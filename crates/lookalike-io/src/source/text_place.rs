//! The place of a text within its row.

use std::fmt;
use std::ops::Range;

use memchr::memchr;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::delimited::CellReader;

/// The text of a row, and the bytes of the row that spell it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextPlace {
    /// The bytes of the value, with its quotes if it has some.
    pub(crate) value: Range<usize>,
    pub(crate) text: String,
}

/// Finds the text field of a JSON object. Returns `None` if the row is no object, or if the field is no string.
pub(crate) fn find_json_text(row: &str, field: &str) -> Option<TextPlace> {
    let value = find_value(row, field)?.get();
    let start = value.as_ptr().addr() - row.as_ptr().addr();
    Some(TextPlace {
        text: serde_json::from_str(value).ok()?,
        value: start..start + value.len(),
    })
}

/// Returns the last value with this name, or else at this path of names separated by dots.
fn find_value<'a>(object: &'a str, field: &str) -> Option<&'a RawValue> {
    let (first, rest) = field.split_once('.').unzip();
    let (mut named, mut nested) = (None, None);
    for (name, value) in serde_json::from_str::<JsonMembers<'_>>(object).ok()?.0 {
        if name == field {
            named = Some(value);
        } else if first.is_some_and(|first| name == first) {
            nested = rest.and_then(|rest| find_nested(value.get(), rest));
        }
    }
    named.or(nested)
}

fn find_nested<'a>(object: &'a str, path: &str) -> Option<&'a RawValue> {
    let (first, rest) = path
        .split_once('.')
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    let members = serde_json::from_str::<JsonMembers<'_>>(object).ok()?.0;
    let (_, value) = members.into_iter().rfind(|(name, _)| name == first)?;
    match rest {
        None => Some(value),
        Some(rest) => find_nested(value.get(), rest),
    }
}

/// The members of an object in their order, with repeated names.
struct JsonMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for JsonMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(JsonMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Finds the text in a column of a CSV or TSV row. Returns `None` if the row has fewer columns.
pub(crate) fn find_cell_text(
    row: &str,
    delimiter: u8,
    quoting: bool,
    column: usize,
) -> Option<TextPlace> {
    let mut start = 0;
    for _ in 0..column {
        start = end_of_cell(row, delimiter, quoting, start) + 1;
        if start > row.len() {
            return None;
        }
    }
    let value = start..end_of_cell(row, delimiter, quoting, start);
    let cell = &row[value.clone()];
    let text = if quoting && cell.contains('"') {
        CellReader::default()
            .read_cells(cell, delimiter)
            .into_iter()
            .next()?
    } else {
        cell.to_owned()
    };
    Some(TextPlace { value, text })
}

/// Returns the end of the cell that begins at `start`: the next delimiter outside of quotes.
fn end_of_cell(row: &str, delimiter: u8, quoting: bool, start: usize) -> usize {
    let bytes = row.as_bytes();
    let mut at = start;
    if quoting && bytes.get(at) == Some(&b'"') {
        at += 1;
        // A doubled quote is part of the cell; a single one closes it.
        while let Some(quote) = memchr(b'"', &bytes[at..]) {
            at += quote + 1;
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            at += 1;
        }
    }
    memchr(delimiter, &bytes[at..]).map_or(row.len(), |length| at + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_text_is_found_as_it_is_read() {
        for (row, field, expected) in [
            (r#"{"text": "a"}"#, "text", Some((r#""a""#, "a"))),
            (
                r#" {"t\u0065xt": "a\u0020船", "b": 1}"#,
                "text",
                Some((r#""a\u0020船""#, "a 船")),
            ),
            (
                r#"{"text": "a", "text": "b"}"#,
                "text",
                Some((r#""b""#, "b")),
            ),
            (r#"{"a": {"b": "c"}}"#, "a.b", Some((r#""c""#, "c"))),
            (
                r#"{"a.b": "d", "a": {"b": "c"}}"#,
                "a.b",
                Some((r#""d""#, "d")),
            ),
            (r#"{"a": {"b": "c"}, "a": 1}"#, "a.b", None),
            (
                r#"{"a": {"b": {"c": "x"}}}"#,
                "a.b.c",
                Some((r#""x""#, "x")),
            ),
            (r#"{"text": 1}"#, "text", None),
            (r#"["text"]"#, "text", None),
        ] {
            let found = find_json_text(row, field);
            let found = found
                .as_ref()
                .map(|found| (&row[found.value.clone()], found.text.as_str()));
            assert_eq!(found, expected, "{row}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn cells_are_those_of_the_csv_crate(row in "[ab,\"\n中]{0,24}") {
            let ends = super::super::line_reader::RowEnds::OutsideQuotes(b',');
            let end = ends.find_row_end(row.as_bytes(), 0);
            let row = row[..end].trim_end_matches('\n');
            // The second line feed is another row, unless the quotes of this one are open.
            let is_closed = ends.find_row_end(format!("{row}\n\n").as_bytes(), 0) == row.len() + 1;
            if row.is_empty() || !is_closed {
                return Ok(());
            }
            let mut reader = csv::ReaderBuilder::new();
            reader.has_headers(false).flexible(true);
            let mut reader = reader.from_reader(row.as_bytes());
            let expected = reader.records().next().unwrap().unwrap();
            let mut cells = Vec::new();
            let mut values = Vec::new();
            for column in 0..expected.len() {
                let found = find_cell_text(row, b',', true, column).unwrap();
                values.push(row[found.value].to_owned());
                cells.push(found.text);
            }
            prop_assert_eq!(find_cell_text(row, b',', true, expected.len()), None);
            prop_assert_eq!(values.join(","), row);
            prop_assert_eq!(cells, expected.iter().collect::<Vec<_>>());
        }
    }
}
