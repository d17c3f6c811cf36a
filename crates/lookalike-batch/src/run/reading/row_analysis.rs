//! One row: its analysis, its id, its position, and why it cannot be used.

use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};
use lookalike_io::source::{BadRow, InputRow, InputSet, RowPlace};

/// Analyses a row by its features if they are given, otherwise by its text.
pub(crate) fn analyze_row<'s>(
    analyzer: &'s TextAnalyzer,
    row: &InputRow<'_>,
    scratch: &'s mut AnalysisScratch,
) -> TextAnalysis<'s> {
    match &row.features {
        Some(features) => analyzer.analyze_features(features.iter_weighted(), scratch),
        None => analyzer.analyze_text(row.text, scratch),
    }
}

/// Creates the report of a valid row that this run cannot use.
pub(crate) fn make_bad_row(inputs: &InputSet, row: &InputRow<'_>, reason: String) -> BadRow {
    BadRow {
        file: inputs.input_of(row.place).display_name().to_owned(),
        line: row.line,
        number: row.number,
        reason,
        place: row.place,
    }
}

/// Returns the name of the input and the line of a row, given its place and its number.
pub(in crate::run) fn row_position(inputs: &InputSet, place: RowPlace, number: u64) -> (&str, u64) {
    let file = inputs.input_of(place);
    let header = u64::from(file.header_row().is_some());
    let line = number - file.first_number().unwrap_or(1) + 1 + header;
    (file.display_name(), line)
}

/// Returns the id of a row, or its number if rows have no ids.
pub(crate) fn id_text<'a>(row: &InputRow<'a>, number: &'a mut String) -> &'a str {
    use std::fmt::Write;
    if let Some(id) = row.id {
        return id;
    }
    number.clear();
    write!(number, "{}", row.number).expect("writing to a string does not fail");
    number
}
