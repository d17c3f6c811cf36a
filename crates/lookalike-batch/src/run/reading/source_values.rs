//! The values of the field of `--sources`: for each document a number, and the texts of all numbers.
//!
//! Values are compared as text, as those of `--within` are: `1`, `1.0` and the string `1` are one value. Missing values,
//! null and empty texts are none. A document takes 4 bytes, and every distinct value its text once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use lookalike::ColumnReservation;
use lookalike::byte_reader::{ByteReader, put_string};
use lookalike_io::source::{FieldValue, shortest_digits};

use crate::run::reading::element_count::{put_count, read_count};

/// Longest value in bytes. A source is a name, and many long texts would not fit into memory.
const LONGEST_VALUE: usize = 1024;

/// The number of no value.
const NO_VALUE: u32 = u32::MAX;

/// The values of documents in reading order; empty if there is no such field.
#[derive(Debug, Default)]
pub(in crate::run) struct SourceValues {
    of_documents: Vec<u32>,
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// Returns the text of a value, or why the value is too long; `None` if there is no value.
pub(in crate::run) fn source_text(value: FieldValue<'_>) -> Result<Option<Cow<'_, str>>, String> {
    let text: Cow<'_, str> = match value {
        FieldValue::Missing | FieldValue::Null => return Ok(None),
        FieldValue::Number { literal, .. } => shortest_digits(literal),
        FieldValue::Text(text) => text.into(),
        FieldValue::Bool(true) => "true".into(),
        FieldValue::Bool(false) => "false".into(),
    };
    if text.len() > LONGEST_VALUE {
        return Err(format!(
            "has {} bytes, and the name of a source has at most {LONGEST_VALUE}",
            text.len()
        ));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

impl SourceValues {
    /// Adds the value of the next document.
    pub(in crate::run) fn push_value(&mut self, text: Option<&str>) {
        let number = text.map_or(NO_VALUE, |text| self.number_of(text));
        self.of_documents.push(number);
    }

    fn number_of(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.add_text(text.into())
    }

    fn add_text(&mut self, text: Arc<str>) -> u32 {
        // A document adds one value at most, and there are fewer documents than numbers.
        let number = self.texts.len() as u32;
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// Adds the values of further documents.
    pub(in crate::run) fn append_values(&mut self, other: &mut Self) {
        let texts = std::mem::take(&mut other.texts);
        let renumbered: Vec<u32> = texts
            .into_iter()
            .map(|text| match self.numbers.get(&text) {
                Some(&number) => number,
                None => self.add_text(text),
            })
            .collect();
        let numbers = std::mem::take(&mut other.of_documents).into_iter();
        self.of_documents.extend(numbers.map(|number| match number {
            NO_VALUE => NO_VALUE,
            number => renumbered[number as usize],
        }));
        other.numbers.clear();
    }

    pub(in crate::run) fn reserve_values(&mut self, reserve: ColumnReservation) {
        reserve.extend_column(&mut self.of_documents);
    }

    /// Returns `true` if the documents have values.
    pub(in crate::run) fn is_empty(&self) -> bool {
        self.of_documents.is_empty()
    }

    /// Returns the number of the value of a document.
    pub(in crate::run) fn value_of(&self, index: usize) -> Option<u32> {
        let number = self.of_documents.get(index).copied();
        number.filter(|&number| number != NO_VALUE)
    }

    /// Returns the text of a value.
    pub(in crate::run) fn text_of(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    /// Returns the bytes of memory for each document: its number here, and its pair when the values of a cluster are
    /// counted.
    pub(in crate::run) fn document_bytes(&self) -> usize {
        12 * self.of_documents.len()
    }

    /// Returns about the bytes of memory of the texts.
    pub(in crate::run) fn text_bytes(&self) -> usize {
        /// Bytes of a text besides its characters: two pointers with lengths, a number, and the counters.
        const BYTES_PER_TEXT: usize = 64;
        let texts = self.texts.iter().map(|text| text.len() + BYTES_PER_TEXT);
        texts.sum()
    }

    /// Appends the texts after their number (8), and the number of each document (4) after the number of documents (8).
    pub(in crate::run) fn encode_values(&self, into: &mut Vec<u8>) {
        put_count(self.texts.len(), into);
        self.texts.iter().for_each(|text| put_string(text, into));
        put_count(self.of_documents.len(), into);
        let numbers = self.of_documents.iter();
        numbers.for_each(|number| into.extend(number.to_le_bytes()));
    }

    /// Reads what [`encode_values`](Self::encode_values) has written. Returns `None` if the bytes are no values.
    pub(in crate::run) fn decode_values(reader: &mut ByteReader<'_>) -> Option<Self> {
        let mut values = Self::default();
        for _ in 0..read_count(reader)? {
            values.add_text(reader.read_string()?.into());
        }
        let count = read_count(reader)?;
        values.of_documents = reader.read_list(count, u32::from_le_bytes)?;
        let is_known = |&number: &u32| number == NO_VALUE || (number as usize) < values.texts.len();
        values.of_documents.iter().all(is_known).then_some(values)
    }

    /// Returns `true` if each of so many documents has a value, or none has.
    pub(in crate::run) fn fits_documents(&self, documents: usize) -> bool {
        self.is_empty() || self.of_documents.len() == documents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_blocks_are_joined() {
        let block = |texts: &[Option<&str>]| {
            let mut values = SourceValues::default();
            texts.iter().for_each(|text| values.push_value(*text));
            let mut bytes = Vec::new();
            values.encode_values(&mut bytes);
            let decoded = SourceValues::decode_values(&mut ByteReader::new(&bytes)).unwrap();
            assert!(
                SourceValues::decode_values(&mut ByteReader::new(&bytes[..bytes.len() - 1]))
                    .is_none()
            );
            assert!(decoded.fits_documents(texts.len()));
            decoded
        };
        let mut all = SourceValues::default();
        all.append_values(&mut block(&[Some("a"), None, Some("b"), Some("a")]));
        all.append_values(&mut block(&[Some("c"), Some("b")]));
        let texts: Vec<_> = (0..6)
            .map(|at| all.value_of(at).map(|number| all.text_of(number)))
            .collect();
        let expected = [Some("a"), None, Some("b"), Some("a"), Some("c"), Some("b")];
        assert_eq!(texts, expected);
    }
}
