//! Conversion of rows to fingerprints: of documents with a recipe, or of rows that hold bare
//! fingerprints.

use std::path::PathBuf;

use lookalike::sketch::SimHasher;
use lookalike::text::{AnalysisScratch, TextAnalysis, TextAnalyzer, TextState};
use lookalike::{Cpu, Recipe};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::{FieldValue, IdField, InputFormat, InputRow, InputSet, ReadOptions};
use lookalike_options::fingerprint_notation::FingerprintNotation;

use crate::index::RowContent;
use crate::index::number_files::is_number_file;
use crate::run::reading::row_analysis::analyze_row;

/// Default name of the field of fingerprints, and the header of a file of lines.
const FINGERPRINT_COLUMN: &str = "fingerprint";

/// Converts rows to fingerprints.
pub(super) struct RowFingerprinter {
    kind: FingerprinterKind,
    bits: u32,
    numbered: bool,
}

enum FingerprinterKind {
    Documents(Box<TextAnalyzer>, SimHasher),
    Lines(FingerprintNotation),
    Field(FingerprintNotation, String),
}

/// A row of the input as the index stores or searches it.
pub(super) struct IndexRow<'a> {
    /// The id; `None` if the row number is the id.
    pub(super) id: Option<&'a str>,
    pub(super) value: ComparedValue,
    pub(super) text: &'a str,
}

/// The value by which a row is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedValue {
    /// The fingerprint.
    Code(u128),
    /// For a text without a fingerprint: the key of its normalised text, and a placeholder for the
    /// fingerprint.
    Text { key: u128, code: u128 },
    /// Nothing, because the text is empty or no fingerprint is given.
    Nothing,
}

impl ComparedValue {
    fn from_fingerprint(fingerprint: Option<u128>) -> Self {
        fingerprint.map_or(Self::Nothing, Self::Code)
    }
}

impl RowFingerprinter {
    pub(super) fn new(
        content: &RowContent,
        recipe: Option<&Recipe>,
        bits: u32,
        id: &IdField,
    ) -> Result<Self> {
        let kind = match (content, recipe) {
            (RowContent::Documents, Some(recipe)) => FingerprinterKind::Documents(
                Box::new(TextAnalyzer::new(recipe)),
                SimHasher::new(&recipe.simhash, Cpu::detect_best()),
            ),
            (RowContent::Documents, None) => {
                return Err(Error::usage_error(
                    "the index holds bare fingerprints of an unknown recipe, so texts cannot be \
                     compared with them: give fingerprints with --fingerprints, or build the index \
                     with --recipe",
                ));
            }
            (RowContent::Numbers, _) => return Err(numbers_error()),
            (RowContent::Lines(digits), _) => FingerprinterKind::Lines(*digits),
            (RowContent::Field(digits, field), _) => {
                FingerprinterKind::Field(*digits, field.clone())
            }
        };
        Ok(Self {
            kind,
            bits,
            numbered: *id == IdField::RowNumber,
        })
    }

    /// Returns the item of a row, or `None` if the row is a header. The error is the reason why the row
    /// is not valid. Calls `visit` with the analysis of a document, unless its text is empty.
    pub(super) fn make_row<'a>(
        &self,
        inputs: &InputSet,
        row: &InputRow<'a>,
        scratch: &mut AnalysisScratch,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> Result<Option<IndexRow<'a>>, String> {
        let (id, value) = match &self.kind {
            FingerprinterKind::Documents(analyzer, hasher) => {
                let analysis = analyze_row(analyzer, row, scratch);
                let value = match (hasher.fingerprint(&analysis), analysis.state) {
                    (Some(fingerprint), _) => ComparedValue::Code(fingerprint),
                    (None, TextState::Empty) => ComparedValue::Nothing,
                    (None, _) => ComparedValue::Text {
                        key: analysis.key,
                        code: analysis.key >> (u128::BITS - self.bits),
                    },
                };
                if value != ComparedValue::Nothing {
                    visit(&analysis);
                }
                (row.id, value)
            }
            FingerprinterKind::Lines(digits) => {
                let (id, cell) = match row.text.split_once('\t') {
                    Some((id, cell)) => (Some(id), cell),
                    None => (None, row.text),
                };
                if cell == FINGERPRINT_COLUMN && is_first_of_file(inputs, row) {
                    return Ok(None);
                }
                if id == Some("") {
                    return Err("the id is empty".into());
                }
                (
                    id,
                    ComparedValue::from_fingerprint(digits.parse_fingerprint(cell, self.bits)?),
                )
            }
            FingerprinterKind::Field(digits, field) => {
                let fingerprint = self.scalar_fingerprint(*digits, field, row.extra)?;
                (row.id, ComparedValue::from_fingerprint(fingerprint))
            }
        };
        Ok(Some(IndexRow {
            id: id.filter(|_| !self.numbered),
            value,
            text: row.text,
        }))
    }

    fn scalar_fingerprint(
        &self,
        digits: FingerprintNotation,
        field: &str,
        values: &[FieldValue<'_>],
    ) -> Result<Option<u128>, String> {
        let refuse = |what: &str| Err(format!("the field `{field}` {what}"));
        match values.first() {
            Some(FieldValue::Text(text)) => digits.parse_fingerprint(text, self.bits),
            // A JSON or Parquet number is decimal, whatever the notation of strings.
            Some(FieldValue::Number { literal, .. }) => {
                FingerprintNotation::Decimal.parse_fingerprint(literal, self.bits)
            }
            Some(FieldValue::Null) => Ok(None),
            Some(FieldValue::Bool(_)) => refuse("is a boolean, not a fingerprint"),
            Some(FieldValue::Missing) | None => refuse("is missing"),
        }
    }
}

/// Returns the error for binary files where rows are read one by one.
fn numbers_error() -> Error {
    Error::usage_error(
        "binary files of fingerprints (.npy and .u64) are read by `lookalike index build` and `add` alone: give \
         text, CSV, JSON Lines or Parquet",
    )
}

fn is_first_of_file(inputs: &InputSet, row: &InputRow<'_>) -> bool {
    inputs.input_of(row.place).first_number() == Some(row.number)
}

impl RowContent {
    /// Returns the content of bare fingerprints. They are in the field if one is named, and in binary files of
    /// integers if an input is one. Otherwise they are in the default field if the inputs have fields, and in lines if
    /// not.
    pub fn bare_fingerprints(
        digits: FingerprintNotation,
        field: Option<&str>,
        paths: &[PathBuf],
        format: Option<InputFormat>,
    ) -> Self {
        use lookalike_io::source::format_by_extension;
        // Lines of fingerprints often have the extension of TSV.
        let has_fields = |format: Option<InputFormat>| {
            format.is_some_and(|format| {
                !format.is_plain_text()
                    && ![InputFormat::TSV, InputFormat::Memory].contains(&format)
            })
        };
        let fields = match format {
            Some(_) => has_fields(format),
            None => paths
                .iter()
                .any(|path| path.is_dir() || has_fields(format_by_extension(path))),
        };
        let has_numbers = || format.is_none() && paths.iter().any(|path| is_number_file(path));
        match field {
            None if has_numbers() => Self::Numbers,
            Some(field) => Self::Field(digits, field.to_owned()),
            None if fields => Self::Field(digits, FINGERPRINT_COLUMN.to_owned()),
            None => Self::Lines(digits),
        }
    }

    /// Returns the options of reading inputs with such rows.
    pub(super) fn read_options(
        &self,
        options: &ReadOptions,
        rereads_rows: bool,
    ) -> Result<ReadOptions> {
        let mut options = ReadOptions {
            again: rereads_rows,
            ..options.clone()
        };
        match self {
            Self::Documents => {}
            Self::Numbers => return Err(numbers_error()),
            Self::Lines(_) => {
                if let IdField::Named(field) = &options.fields.id {
                    return Err(Error::usage_error(format!(
                        "lines of fingerprints have no field `{field}`: name the field of the \
                         fingerprints too, with --fingerprint"
                    )));
                }
                options.format = Some(InputFormat::Text);
                options.fields.features = None;
            }
            Self::Field(_, field) => {
                options.fields.text = Vec::new();
                options.fields.features = None;
                options.fields.extra = vec![field.clone()];
            }
        }
        Ok(options)
    }
}
