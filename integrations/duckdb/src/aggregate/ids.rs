//! Ids of documents, in the types of DuckDB.

use std::cmp::Ordering;
use std::fmt;

use lookalike_options::shown_text::shorten_text;

use super::text_list::TextList;
use crate::columns::{InputColumn, ResultColumn};

/// The ids of documents, each at the place of its document.
pub(super) trait IdList: Default {
    /// Appends the id of a row that has one.
    ///
    /// # Errors
    /// If the id is too long.
    fn push_id(&mut self, column: &InputColumn, row: usize) -> Result<(), String>;

    /// Appends the ids of another list.
    fn append_ids(&mut self, other: &Self);

    /// Compares the ids at two places, in the order that DuckDB has for them.
    fn compare_ids(&self, a: usize, b: usize) -> Ordering;

    /// Writes the id at a place to a row of a result.
    fn write_id(&self, at: usize, column: ResultColumn, row: usize);

    /// Returns the id at a place for a message, as DuckDB shows it.
    fn show_id(&self, at: usize) -> String;

    /// Returns the bytes of all ids, if they are texts.
    fn text_bytes(&self) -> Option<usize> {
        None
    }
}

/// Characters of an id in a message.
const SHOWN_CHARACTERS: usize = 40;

/// Ids that are numbers, as DuckDB stores them.
#[derive(Debug, Default)]
pub(super) struct NumberIds<T>(Vec<T>);

impl<T: Copy + Default + fmt::Display + Ord> IdList for NumberIds<T> {
    fn push_id(&mut self, column: &InputColumn, row: usize) -> Result<(), String> {
        // SAFETY: the form of the function with such ids has a column of these numbers.
        self.0.push(unsafe { column.number_at(row) });
        Ok(())
    }

    fn append_ids(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    fn compare_ids(&self, a: usize, b: usize) -> Ordering {
        self.0[a].cmp(&self.0[b])
    }

    fn write_id(&self, at: usize, column: ResultColumn, row: usize) {
        // SAFETY: the form of the function with such ids has them in its result.
        unsafe { column.set_number(row, self.0[at]) };
    }

    fn show_id(&self, at: usize) -> String {
        self.0[at].to_string()
    }
}

/// A UUID as DuckDB stores it: a signed number of 128 bits in the order of its digits, for which its first bit is flipped.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub(super) struct UuidId(i128);

impl fmt::Display for UuidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = (self.0 as u128) ^ (1 << 127);
        let digits = format!("{bits:032x}");
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
        f.write_str(&parts.join("-"))
    }
}

/// Ids that are texts, in the order of their bytes.
#[derive(Debug, Default)]
pub(super) struct TextIds(TextList);

impl IdList for TextIds {
    fn push_id(&mut self, column: &InputColumn, row: usize) -> Result<(), String> {
        self.0.push_text(column.text_at(row))
    }

    fn append_ids(&mut self, other: &Self) {
        self.0.append_texts(&other.0);
    }

    fn compare_ids(&self, a: usize, b: usize) -> Ordering {
        self.0.text_at(a).cmp(self.0.text_at(b))
    }

    fn write_id(&self, at: usize, column: ResultColumn, row: usize) {
        column.set_text(row, self.0.text_at(at));
    }

    fn show_id(&self, at: usize) -> String {
        shorten_text(self.0.text_at(at), SHOWN_CHARACTERS)
    }

    fn text_bytes(&self) -> Option<usize> {
        Some(self.0.byte_count())
    }
}
