//! Rows of which parts of the text are left out; all other bytes of a row stay as they are.

use std::ops::Range;

use super::annotate::put_encoded;
use super::table::{put_delimited, put_json_string};
use crate::error::{Error, Result};
use crate::source::{
    InputFile, InputFormat, InputSet, find_cell_text, find_json_text, trim_line_end,
};

/// Parts of a text that are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOutText {
    /// Bytes of the text, ascending.
    pub ranges: Vec<Range<usize>>,
    /// Length of the whole text in bytes.
    pub length: usize,
}

impl LeftOutText {
    /// Returns the rest of a text.
    ///
    /// # Errors
    /// If the text is not the one that the ranges belong to. The message is a phrase.
    pub fn cut_text(&self, text: &str) -> std::result::Result<String, String> {
        let changed = || "its text was changed while it was being read".to_owned();
        if text.len() != self.length {
            return Err(changed());
        }
        let (mut rest, mut at) = (String::with_capacity(text.len()), 0);
        for range in &self.ranges {
            rest.push_str(text.get(at..range.start).ok_or_else(changed)?);
            at = range.end;
        }
        rest.push_str(text.get(at..).ok_or_else(changed)?);
        Ok(rest)
    }
}

/// Cuts the text of the rows of one thread.
pub(super) struct TextCutter<'a> {
    inputs: &'a InputSet,
    decoded: String,
}

impl<'a> TextCutter<'a> {
    pub(super) fn new(inputs: &'a InputSet) -> Self {
        Self {
            inputs,
            decoded: String::new(),
        }
    }

    /// Appends a row, whose text loses these parts, to `out`.
    pub(super) fn cut_row(
        &mut self,
        file: &InputFile,
        number: u64,
        left_out: &LeftOutText,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (mark, content, line_end) = match file.input_format() {
            InputFormat::TextFile => {
                let (mark, content) = self.inputs.split_mark(row);
                (mark, content, &[][..])
            }
            _ => {
                let content = trim_line_end(row);
                (&[][..], content, &row[content.len()..])
            }
        };
        let changed = self.change_content(file, left_out, content);
        let changed = changed.map_err(|reason| {
            Error::input_error(format!(
                "row {number}, in {}: {reason}",
                file.display_name()
            ))
        })?;
        out.extend_from_slice(mark);
        put_encoded(self.inputs, file, &changed, out)?;
        out.extend_from_slice(line_end);
        Ok(())
    }

    fn change_content(
        &mut self,
        file: &InputFile,
        left_out: &LeftOutText,
        content: &[u8],
    ) -> std::result::Result<String, String> {
        let row = self.inputs.decode_row(content, &mut self.decoded)?;
        let field = self.inputs.first_text_field();
        let missing = || {
            "parts of its text cannot be cut out, because they are joined from a list: cut whole documents".to_owned()
        };
        let mended;
        let (row, place, quoted) = match file.input_format() {
            InputFormat::Jsonl | InputFormat::Json => {
                mended = self.inputs.mend_json(row);
                let row = mended.as_deref().unwrap_or(row);
                let place = find_json_text(row, field).ok_or_else(missing)?;
                let mut quoted = String::new();
                put_json_string(&left_out.cut_text(&place.text)?, &mut quoted);
                (row, place.value, quoted)
            }
            InputFormat::Csv { delimiter, quoting } => {
                let names = file.column_names().unwrap_or_default();
                let column = names
                    .iter()
                    .position(|name| name == field)
                    .ok_or_else(missing)?;
                let place = find_cell_text(row, delimiter, quoting, column).ok_or_else(missing)?;
                let mut quoted = String::new();
                put_delimited(
                    &left_out.cut_text(&place.text)?,
                    delimiter,
                    quoting,
                    &mut quoted,
                );
                (row, place.value, quoted)
            }
            format if format.is_plain_text() => return left_out.cut_text(row),
            _ => {
                return Err("its text cannot be cut".to_owned());
            }
        };
        Ok([&row[..place.start], &quoted, &row[place.end..]].concat())
    }
}
