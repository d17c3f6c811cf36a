//! Conversion of rows to fingerprints: of documents with a recipe, or of rows that hold bare
//! fingerprints.

use std::path::PathBuf;

use lookalike::sketch::SimHasher;
use lookalike::text::{Analysis, Analyzer, Scratch, State};
use lookalike::{Cpu, Recipe};

use super::Entries;
use crate::digits::Digits;
use crate::error::{Error, Result};
use crate::run::read::analyze;
use crate::source::{Format, IdField, Inputs, ReadOptions, Row, Scalar};

/// Default name of the field of fingerprints, and the header of a file of lines.
const COLUMN: &str = "fingerprint";

/// Converts rows to fingerprints.
pub(super) struct Fingerprinter {
    kind: Kind,
    bits: u32,
    numbered: bool,
}

enum Kind {
    Documents(Box<Analyzer>, SimHasher),
    Lines(Digits),
    Field(Digits, String),
}

/// A row of the input as the index stores or searches it.
pub(super) struct Item<'a> {
    /// The id; `None` if the row number is the id.
    pub(super) id: Option<&'a str>,
    pub(super) print: Print,
    pub(super) text: &'a str,
}

/// The value by which a row is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Print {
    /// The fingerprint.
    Code(u128),
    /// For a text without a fingerprint: the key of its normalised text, and a placeholder for the
    /// fingerprint.
    Text { key: u128, code: u128 },
    /// Nothing, because the text is empty or no fingerprint is given.
    Nothing,
}

impl Print {
    fn given(fingerprint: Option<u128>) -> Self {
        fingerprint.map_or(Self::Nothing, Self::Code)
    }
}

impl Fingerprinter {
    pub(super) fn new(
        entries: &Entries,
        recipe: Option<&Recipe>,
        bits: u32,
        id: &IdField,
    ) -> Result<Self> {
        let kind = match (entries, recipe) {
            (Entries::Documents, Some(recipe)) => Kind::Documents(
                Box::new(Analyzer::new(recipe)),
                SimHasher::new(&recipe.simhash, Cpu::best()),
            ),
            (Entries::Documents, None) => {
                return Err(Error::usage(
                    "the index holds bare fingerprints of an unknown recipe, so texts cannot be \
                     compared with them: give fingerprints with --fingerprints, or build the index \
                     with --recipe",
                ));
            }
            (Entries::Lines(digits), _) => Kind::Lines(*digits),
            (Entries::Field(digits, field), _) => Kind::Field(*digits, field.clone()),
        };
        Ok(Self {
            kind,
            bits,
            numbered: *id == IdField::RowNumber,
        })
    }

    /// Returns the item of a row, or `None` if the row is a header. The error is the reason why the row
    /// is not valid. Calls `visit` with the analysis of a document, unless its text is empty.
    pub(super) fn item<'a>(
        &self,
        inputs: &Inputs,
        row: &Row<'a>,
        scratch: &mut Scratch,
        visit: &mut dyn FnMut(&Analysis<'_>),
    ) -> Result<Option<Item<'a>>, String> {
        let (id, print) = match &self.kind {
            Kind::Documents(analyzer, hasher) => {
                let analysis = analyze(analyzer, row, scratch);
                let print = match (hasher.fingerprint(&analysis), analysis.state) {
                    (Some(fingerprint), _) => Print::Code(fingerprint),
                    (None, State::Empty) => Print::Nothing,
                    (None, _) => Print::Text {
                        key: analysis.key,
                        code: analysis.key >> (u128::BITS - self.bits),
                    },
                };
                if print != Print::Nothing {
                    visit(&analysis);
                }
                (row.id, print)
            }
            Kind::Lines(digits) => {
                let (id, cell) = match row.text.split_once('\t') {
                    Some((id, cell)) => (Some(id), cell),
                    None => (None, row.text),
                };
                if cell == COLUMN && is_first(inputs, row) {
                    return Ok(None);
                }
                if id == Some("") {
                    return Err("the id is empty".into());
                }
                (id, Print::given(digits.read(cell, self.bits)?))
            }
            Kind::Field(digits, field) => {
                let fingerprint = self.scalar(*digits, field, row.extra)?;
                (row.id, Print::given(fingerprint))
            }
        };
        Ok(Some(Item {
            id: id.filter(|_| !self.numbered),
            print,
            text: row.text,
        }))
    }

    fn scalar(
        &self,
        digits: Digits,
        field: &str,
        values: &[Scalar<'_>],
    ) -> Result<Option<u128>, String> {
        let said = |what: &str| Err(format!("the field `{field}` {what}"));
        match values.first() {
            Some(Scalar::Text(text)) => digits.read(text, self.bits),
            // A JSON or Parquet number is decimal, whatever the notation of strings.
            Some(Scalar::Number { literal, .. }) => Digits::Decimal.read(literal, self.bits),
            Some(Scalar::Null) => Ok(None),
            Some(Scalar::Bool(_)) => said("is a boolean, not a fingerprint"),
            Some(Scalar::Missing) | None => said("is missing"),
        }
    }
}

fn is_first(inputs: &Inputs, row: &Row<'_>) -> bool {
    inputs.file_of(row.place).first_number() == Some(row.number)
}

impl Entries {
    /// Returns the entries of bare fingerprints: those of the field if one is named, those of the
    /// default field if the inputs have fields, otherwise those of lines.
    pub fn bare(
        digits: Digits,
        field: Option<&str>,
        paths: &[PathBuf],
        format: Option<Format>,
    ) -> Self {
        use crate::source::format_by_extension;
        let has_fields = |format: Option<Format>| {
            matches!(
                format,
                Some(Format::Jsonl | Format::Json | Format::Parquet | Format::CSV)
            )
        };
        let fields = match format {
            Some(_) => has_fields(format),
            None => paths
                .iter()
                .any(|path| path.is_dir() || has_fields(format_by_extension(path))),
        };
        match field {
            Some(field) => Self::Field(digits, field.to_owned()),
            None if fields => Self::Field(digits, COLUMN.to_owned()),
            None => Self::Lines(digits),
        }
    }

    /// Returns the options of reading inputs with such rows.
    pub(super) fn read_options(&self, options: &ReadOptions, again: bool) -> Result<ReadOptions> {
        let mut options = ReadOptions {
            again,
            ..options.clone()
        };
        match self {
            Self::Documents => {}
            Self::Lines(_) => {
                if let IdField::Named(field) = &options.fields.id {
                    return Err(Error::usage(format!(
                        "lines of fingerprints have no field `{field}`: name the field of the \
                         fingerprints too, with --fingerprint"
                    )));
                }
                options.format = Some(Format::Text);
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
