//! Extracts the wanted fields of a CSV or TSV row.
//!
//! `csv_core` defines the result. Two faster ways handle most rows with the same result: a row without
//! quotes is split at its delimiters, and well-formed quoted fields are unquoted in place. Only other
//! rows, for example with text after a closing quote, are parsed by `csv_core`.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr_iter};

use super::field_census::suggest_field;
use super::line_reader::RowEnds;
use super::row_values::{FieldPlan, RowValues, ValueKind};

/// Delimiters that files with the extension of CSV or TSV have instead of that of the format.
const OTHER_DELIMITERS: [char; 4] = [';', '|', '\t', ','];

/// The columns of an input, with the slots of those that are wanted.
#[derive(Debug)]
pub(super) struct DelimitedColumns {
    pub(super) names: Vec<String>,
    delimiter: u8,
    quoting: bool,
    /// The slot of each column, if it is wanted.
    slots: Vec<Option<usize>>,
}

impl DelimitedColumns {
    /// Creates the columns that a header names.
    pub(super) fn from_header(row: &str, delimiter: u8, quoting: bool) -> Self {
        Self {
            names: split_cells(row, delimiter, quoting),
            delimiter,
            quoting,
            slots: Vec::new(),
        }
    }

    /// Creates columns named `1`, `2`, …, as many as the first row has.
    pub(super) fn number_columns(row: &str, delimiter: u8, quoting: bool) -> Self {
        let width = split_cells(row, delimiter, quoting).len();
        let names = (1..=width).map(|number| number.to_string()).collect();
        Self {
            names,
            delimiter,
            quoting,
            slots: Vec::new(),
        }
    }

    /// Returns the cells of a row.
    pub(super) fn split_row(&self, row: &str) -> Vec<String> {
        split_cells(row, self.delimiter, self.quoting)
    }

    /// Finds the wanted columns. The error says which column is missing or occurs more than once.
    pub(super) fn choose_columns(&mut self, plan: &FieldPlan) -> Result<(), String> {
        self.slots = vec![None; self.names.len()];
        for (slot, wanted) in plan.names.iter().enumerate() {
            let mut found = (0..self.names.len()).filter(|&column| self.names[column] == *wanted);
            match (found.next(), found.next()) {
                (Some(column), None) => self.slots[column] = Some(slot),
                (None, _) if plan.may_be_absent(slot) => {}
                (None, _) => {
                    let names = self.names.join("`, `");
                    let own = self.names.iter().map(String::as_str);
                    let meant = self
                        .suggest_format()
                        .unwrap_or_else(|| suggest_field(wanted, plan.slot_role(slot), own));
                    return Err(format!(
                        "there is no column `{wanted}` among `{names}`{meant}"
                    ));
                }
                (Some(_), Some(_)) => {
                    return Err(format!("there is more than one column `{wanted}`"));
                }
            }
        }
        Ok(())
    }

    /// Returns what a header looks like that is not one of this format.
    fn suggest_format(&self) -> Option<String> {
        let first = self.names.first()?;
        if first.trim_start().starts_with(['{', '[']) {
            return Some("; the file looks like JSON: give --format jsonl".to_owned());
        }
        let [only] = &self.names[..] else {
            return None;
        };
        let delimiter = OTHER_DELIMITERS
            .into_iter()
            .find(|other| only.contains(*other))?;
        let shown = if delimiter == '\t' {
            "tab".to_owned()
        } else {
            format!("'{delimiter}'")
        };
        Some(format!(
            "; the columns seem to be separated otherwise: give --delimiter {shown}"
        ))
    }

    /// Stores the wanted fields of a row in `values`, or returns the reason why the row is bad.
    pub(super) fn parse_row(
        &self,
        row: &str,
        plan: &FieldPlan,
        reader: &mut CellReader,
        values: &mut RowValues,
    ) -> Result<(), String> {
        values.clear_row(plan);
        let width = if !self.quoting || memchr(b'"', row.as_bytes()).is_none() {
            self.divide_row(row, values)
        } else {
            match self.unquote_row(row, values) {
                Some(width) => width,
                None if self.is_unclosed(row) => {
                    return Err(
                        "a quoted field is not closed before the end of the input, so everything \
                         after the quote would be one field"
                            .to_owned(),
                    );
                }
                None => {
                    values.clear_row(plan);
                    self.parse_by_definition(row, reader, values)
                }
            }
        };
        if width == self.names.len() {
            return Ok(());
        }
        Err(format!(
            "the row has {width} fields where the first row has {}",
            self.names.len()
        ))
    }

    /// Returns `true` if the last row of an input ends within quotes.
    fn is_unclosed(&self, row: &str) -> bool {
        let longer = format!("{row}\n\n");
        let end = RowEnds::OutsideQuotes(self.delimiter).find_row_end(longer.as_bytes(), 0);
        end == longer.len()
    }

    fn set_field(&self, column: usize, start: usize, end: usize, values: &mut RowValues) {
        if let Some(Some(slot)) = self.slots.get(column) {
            values.set_range(*slot, ValueKind::Text, start, end);
        }
    }

    /// Splits a row at every delimiter and returns the number of fields.
    fn divide_row(&self, row: &str, values: &mut RowValues) -> usize {
        let (mut column, mut start) = (0, 0);
        for end in memchr_iter(self.delimiter, row.as_bytes()) {
            self.set_field(column, start, end, values);
            (column, start) = (column + 1, end + 1);
        }
        self.set_field(column, start, row.len(), values);
        column + 1
    }

    /// Splits a row with quoted fields. Returns `None` if it is not well-formed.
    fn unquote_row(&self, row: &str, values: &mut RowValues) -> Option<usize> {
        let bytes = row.as_bytes();
        let (mut column, mut start) = (0, 0);
        loop {
            let end = if bytes.get(start) == Some(&b'"') {
                self.quoted_field(row, column, start + 1, values)?
            } else {
                let rest = &bytes[start..];
                let end = memchr(self.delimiter, rest).map_or(row.len(), |length| start + length);
                self.set_field(column, start, end, values);
                end
            };
            column += 1;
            match bytes.get(end) {
                None => return Some(column),
                Some(&byte) if byte == self.delimiter => start = end + 1,
                Some(_) => return None,
            }
        }
    }

    /// Reads a quoted field whose content begins at `start`. Returns the position after its closing
    /// quote.
    fn quoted_field(
        &self,
        row: &str,
        column: usize,
        start: usize,
        values: &mut RowValues,
    ) -> Option<usize> {
        let bytes = row.as_bytes();
        let wanted = self.slots.get(column).copied().flatten();
        let arena_start = values.arena.len();
        let mut from = start;
        loop {
            let quote = from + memchr(b'"', &bytes[from..])?;
            let doubled = bytes.get(quote + 1) == Some(&b'"');
            if !doubled && from == start {
                self.set_field(column, start, quote, values);
                return Some(quote + 1);
            }
            if wanted.is_some() {
                values
                    .arena
                    .push_str(&row[from..quote + usize::from(doubled)]);
            }
            if !doubled {
                if let Some(slot) = wanted {
                    values.set_arena_range(slot, ValueKind::Text, arena_start);
                }
                return Some(quote + 1);
            }
            from = quote + 2;
        }
    }

    /// Parses the row with `csv_core`, which defines the result.
    fn parse_by_definition(
        &self,
        row: &str,
        reader: &mut CellReader,
        values: &mut RowValues,
    ) -> usize {
        let cells = reader.read_cells(row, self.delimiter);
        for (column, cell) in cells.iter().enumerate() {
            if let Some(Some(slot)) = self.slots.get(column) {
                values.set_copied_text(*slot, ValueKind::Text, cell);
            }
        }
        cells.len()
    }
}

/// Returns the cells of a row as strings.
fn split_cells(row: &str, delimiter: u8, quoting: bool) -> Vec<String> {
    if quoting {
        return CellReader::default().read_cells(row, delimiter);
    }
    row.split(char::from(delimiter))
        .map(str::to_owned)
        .collect()
}

/// A `csv_core` reader, reused because creating one is expensive.
#[derive(Default)]
pub(super) struct CellReader(Option<(u8, Box<Reader>)>);

impl CellReader {
    /// Returns the cells of a row without its line end.
    pub(super) fn read_cells(&mut self, row: &str, delimiter: u8) -> Vec<String> {
        let reader = match &mut self.0 {
            Some((known, reader)) if *known == delimiter => reader,
            other => {
                let mut builder = ReaderBuilder::new();
                builder
                    .delimiter(delimiter)
                    .terminator(Terminator::Any(b'\n'));
                &mut other.insert((delimiter, Box::new(builder.build()))).1
            }
        };
        reader.reset();
        let input = row.as_bytes();
        let mut output = vec![0; input.len()];
        let mut ends = vec![0; memchr_iter(delimiter, row.as_bytes()).count() + 2];
        let (mut read, mut written, mut width) = (0, 0, 0);
        loop {
            let (result, used, out, cells) =
                reader.read_record(&input[read..], &mut output[written..], &mut ends[width..]);
            (read, written, width) = (read + used, written + out, width + cells);
            // After the input is used up, `csv_core` expects an empty input, which marks the end.
            if result == ReadRecordResult::Record || result == ReadRecordResult::End {
                break;
            }
        }
        let mut start = 0;
        let cells = ends[..width].iter().map(|&end| {
            let cell = String::from_utf8_lossy(&output[start..end]).into_owned();
            start = end;
            cell
        });
        cells.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{IdField, WantedFields};
    use proptest::prelude::*;

    fn columns(width: usize, quoting: bool) -> (FieldPlan, DelimitedColumns) {
        let fields = WantedFields {
            text: vec!["1".to_owned()],
            id: IdField::RowNumber,
            extra: (2..=width).map(|number| number.to_string()).collect(),
            ..WantedFields::default()
        };
        let plan = FieldPlan::new(&fields, None);
        let mut columns =
            DelimitedColumns::number_columns(&vec!["x"; width].join(","), b',', quoting);
        columns.choose_columns(&plan).unwrap();
        (plan, columns)
    }

    fn cells(row: &str, width: usize, quoting: bool) -> Result<Vec<String>, String> {
        let (plan, columns) = columns(width, quoting);
        let mut values = RowValues::default();
        columns.parse_row(row, &plan, &mut CellReader::default(), &mut values)?;
        Ok(values
            .describe_slots(row)
            .into_iter()
            .map(|(_, text)| text)
            .collect())
    }

    #[test]
    fn quoting_follows_the_format() {
        let quoted = "\"a,b\",\"c \"\"d\"\"\",e\"f";
        assert_eq!(cells(quoted, 3, true).unwrap(), ["a,b", "c \"d\"", "e\"f"]);
        assert_eq!(cells("\"a,b", 2, false).unwrap(), ["\"a", "b"]);
        assert_eq!(cells("\"a\nb\",", 2, true).unwrap(), ["a\nb", ""]);
        assert!(cells("a,b,c", 2, true).unwrap_err().contains("3 fields"));
        assert!(cells("a", 2, true).is_err());
        assert!(
            cells("\"a,b\nc,d", 2, true)
                .unwrap_err()
                .contains("not closed")
        );
        assert_eq!(cells("a\"b,c", 2, true).unwrap(), ["a\"b", "c"]);
    }

    #[test]
    fn missing_or_repeated_column_is_named() {
        let fields = WantedFields {
            text: vec!["text".to_owned()],
            ..WantedFields::default()
        };
        let plan = FieldPlan::new(&fields, None);
        let choose =
            |header| DelimitedColumns::from_header(header, b',', true).choose_columns(&plan);
        assert!(choose("id,text").is_ok());
        assert!(choose("id,body").unwrap_err().contains("`text`"));
        assert!(choose("text,text").unwrap_err().contains("more than one"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn every_reader_agrees_with_the_csv_crate(row in "[ab,\"\n\r中]{0,24}", quoting: bool) {
            // As the row finder guarantees, this is one row, without a line feed outside of quotes.
            let ends = if quoting {
                super::super::line_reader::RowEnds::OutsideQuotes(b',')
            } else {
                super::super::line_reader::RowEnds::LineFeed
            };
            let end = ends.find_row_end(row.as_bytes(), 0);
            let row = row[..end].strip_suffix('\n').unwrap_or(&row[..end]);
            prop_assume!(!row.is_empty());
            if quoting && ends.find_row_end(format!("{row}\n\n").as_bytes(), 0) > row.len() + 1 {
                prop_assert!(cells(row, 1, quoting).unwrap_err().contains("not closed"));
                return Ok(());
            }
            let mut reader = csv::ReaderBuilder::new();
            reader.has_headers(false).flexible(true).quoting(quoting).delimiter(b',');
            reader.terminator(csv::Terminator::Any(b'\n'));
            let mut reader = reader.from_reader(row.as_bytes());
            let mut records = reader.records();
            let expected: Vec<String> =
                records.next().unwrap().unwrap().iter().map(str::to_owned).collect();
            prop_assert!(records.next().is_none());
            prop_assert_eq!(cells(row, expected.len(), quoting).unwrap(), expected);
        }
    }
}
