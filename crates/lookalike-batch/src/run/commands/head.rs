//! The beginning of inputs: their fields, and what a recipe makes of the first rows.

use std::collections::BTreeMap;

use lookalike::Recipe;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::source::{
    BadRow, InputFile, InputFormat, InputRow, InputSet, ParseScratch, ReadOptions, RowSource,
};
use serde::Serialize;
use serde_json::Value;

use crate::run::reading::row_analysis::id_text;
use crate::run::reading::row_analysis::make_bad_row;

/// Number of first rows in which fields are looked for.
const FIELD_ROWS: usize = 100;

/// Longest shown part of a text or a value, in characters.
const SHOWN_CHARACTERS: usize = 200;

/// Largest number of shown tokens of a row.
const SHOWN_TOKENS: usize = 60;

/// Settings of a look at the beginning of inputs.
#[derive(Debug, Clone)]
pub struct HeadSettings {
    /// Determines what the first rows become.
    pub recipe: Recipe,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of rows to show.
    pub rows: usize,
}

/// The beginning of inputs.
#[derive(Debug, Clone, Serialize)]
pub struct InputHead {
    /// The first input.
    pub source: String,
    /// Its format.
    pub format: &'static str,
    /// Number of all inputs.
    pub inputs: usize,
    /// Size of all inputs on disk, if it is known.
    pub bytes: Option<u64>,
    /// Number of rows in which fields were looked for.
    pub looked_at: usize,
    /// The fields of these rows; those of JSON by name.
    pub fields: Vec<HeadField>,
    /// The first usable rows.
    pub rows: Vec<HeadRow>,
    /// The first bad rows among those that were looked at: `source:row`, and the reason.
    pub bad: Vec<(String, String)>,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
}

/// A field of the first rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadField {
    /// The name, `a.b` for the field `b` of an object `a`.
    pub name: String,
    /// Number of rows that have it, nulls apart.
    pub rows: usize,
    /// The types of its values: string, number, boolean, list.
    pub types: Vec<&'static str>,
    /// The first value, at most 200 characters of it.
    pub example: String,
}

/// A row, and what the recipe makes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadRow {
    /// The input and the number of the row in it, from 1.
    pub place: String,
    /// The id.
    pub id: String,
    /// At most 200 characters of the text.
    pub text: String,
    /// Number of characters of the text.
    pub characters: usize,
    /// At most 60 tokens, in the order of the text.
    pub tokens: Vec<String>,
    /// Number of tokens.
    pub token_count: usize,
    /// Number of different features.
    pub features: usize,
    /// `fingerprintable`, or why the text has no features.
    pub state: &'static str,
}

/// Reads the beginning of inputs. A missing text field makes rows bad and is no error, because this shows which fields
/// there are.
///
/// # Errors
/// If the inputs cannot be opened or read.
pub fn read_head(source: &RowSource, settings: &HeadSettings) -> Result<InputHead> {
    let inputs = InputSet::open_source(source, &settings.read)?;
    let mut reading = HeadReading {
        settings,
        inputs: &inputs,
        analyzer: TextAnalyzer::new(&settings.recipe),
        scratch: AnalysisScratch::default(),
        inspected: Vec::new(),
        rows: Vec::new(),
    };
    let mut parse = ParseScratch::default();
    while reading.wants_more()
        && let Some(block) = inputs.next_block()?
    {
        inputs.parse_block(&block, &mut parse, &mut |row| {
            reading.accept_row(row);
            Ok(())
        })?;
    }
    let HeadReading {
        inspected, rows, ..
    } = reading;
    let bad = inspected.iter().filter(|(_, reason)| reason.is_some());
    let bad = bad.take(settings.rows.max(1)).map(|(row, reason)| {
        let (name, number) = inputs.source_row(row.place, row.number);
        (
            format!("{name}:{number}"),
            reason.clone().unwrap_or_default(),
        )
    });
    let first = inputs.input_files().first();
    Ok(InputHead {
        source: first.map_or_else(String::new, |file| file.display_name().to_owned()),
        format: first.map_or("nothing", |file| format_name(file)),
        inputs: inputs.input_files().len(),
        bytes: inputs.total_bytes(),
        looked_at: inspected.len(),
        bad: bad.collect(),
        fields: find_fields(&inputs, &settings.read, &inspected)?,
        rows,
        recipe: settings.recipe.name.clone(),
        recipe_id: settings.recipe.recipe_id().to_string(),
    })
}

struct HeadReading<'a> {
    settings: &'a HeadSettings,
    inputs: &'a InputSet,
    analyzer: TextAnalyzer,
    scratch: AnalysisScratch,
    /// The first rows, and the reason if one is bad.
    inspected: Vec<(BadRow, Option<String>)>,
    rows: Vec<HeadRow>,
}

impl HeadReading<'_> {
    fn wants_more(&self) -> bool {
        self.rows.len() < self.settings.rows
            && self.inspected.len() < FIELD_ROWS.max(self.settings.rows)
    }

    fn accept_row(&mut self, row: std::result::Result<InputRow<'_>, BadRow>) {
        if self.inspected.len() >= FIELD_ROWS.max(self.settings.rows) {
            return;
        }
        match row {
            Ok(row) => {
                if self.rows.len() < self.settings.rows {
                    let described = self.describe_row(&row);
                    self.rows.push(described);
                }
                self.inspected
                    .push((make_bad_row(self.inputs, &row, String::new()), None));
            }
            Err(bad) => {
                let reason = bad.reason.clone();
                self.inspected.push((bad, Some(reason)));
            }
        }
    }

    fn describe_row(&mut self, row: &InputRow<'_>) -> HeadRow {
        let (name, number) = self.inputs.source_row(row.place, row.number);
        let mut id = String::new();
        let id = id_text(row, &mut id).to_owned();
        let (mut tokens, mut token_count) = (Vec::new(), 0);
        if row.features.is_none() {
            self.analyzer
                .visit_terms(row.text, &mut self.scratch, false, &mut |term| {
                    if token_count < SHOWN_TOKENS {
                        tokens.push(term.text.to_owned());
                    }
                    token_count += 1;
                });
        }
        let analysis =
            crate::run::reading::row_analysis::analyze_row(&self.analyzer, row, &mut self.scratch);
        let mut features = Vec::new();
        analysis.append_features(&mut features);
        HeadRow {
            place: format!("{name}:{number}"),
            id,
            text: first_characters(row.text),
            characters: row.text.chars().count(),
            tokens,
            token_count,
            features: features.len(),
            state: analysis.state.state_name(),
        }
    }
}

fn first_characters(text: &str) -> String {
    text.chars().take(SHOWN_CHARACTERS).collect()
}

fn format_name(file: &InputFile) -> &'static str {
    file.input_format().descriptor().contents
}

/// Returns the fields of rows. Rows of plain text have none.
fn find_fields(
    inputs: &InputSet,
    read: &ReadOptions,
    inspected: &[(BadRow, Option<String>)],
) -> Result<Vec<HeadField>> {
    let mut fields = FieldList::default();
    for rows in inspected.chunk_by(|(a, _), (b, _)| a.file == b.file) {
        let file = inputs.input_of(rows[0].0.place);
        match file.input_format() {
            format if format.is_columnar() => {
                let rows: Vec<BadRow> = rows.iter().map(|(row, _)| row.clone()).collect();
                inputs.visit_whole_rows(&rows, &mut |_, json| {
                    fields.add_json(json.as_bytes());
                    Ok(())
                })?;
            }
            InputFormat::Jsonl | InputFormat::Json => {
                let mut bytes = Vec::new();
                for (row, _) in rows {
                    inputs.read_raw_row(row.place, &mut bytes)?;
                    fields.add_json(read.decode_for_display(&bytes).as_bytes());
                }
            }
            InputFormat::Csv { .. } => {
                let names = file.column_names().unwrap_or_default();
                let mut bytes = Vec::new();
                for (row, _) in rows {
                    inputs.read_raw_row(row.place, &mut bytes)?;
                    let cells = file.split_cells(&read.decode_for_display(&bytes));
                    for (name, cell) in names.iter().zip(cells) {
                        let has = usize::from(!cell.is_empty());
                        fields.add_value(name, &Value::String(cell), has);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(fields.fields)
}

#[derive(Default)]
struct FieldList {
    fields: Vec<HeadField>,
    places: BTreeMap<String, usize>,
}

impl FieldList {
    fn add_json(&mut self, json: &[u8]) {
        if let Ok(Value::Object(row)) = serde_json::from_slice(json) {
            row.iter()
                .for_each(|(name, value)| self.add_nested(name, value));
        }
    }

    fn add_nested(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (inner, value) in fields {
                    self.add_nested(&format!("{name}.{inner}"), value);
                }
            }
            value => self.add_value(name, value, usize::from(!value.is_null())),
        }
    }

    /// Adds a value that `rows` rows have.
    fn add_value(&mut self, name: &str, value: &Value, rows: usize) {
        let at = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.fields.push(HeadField {
                name: name.to_owned(),
                rows: 0,
                types: Vec::new(),
                example: String::new(),
            });
            self.fields.len() - 1
        });
        let field = &mut self.fields[at];
        field.rows += rows;
        let (type_name, shown) = match value {
            Value::Null => return,
            Value::String(text) => ("string", first_characters(text)),
            Value::Number(number) => ("number", number.to_string()),
            Value::Bool(value) => ("boolean", value.to_string()),
            other @ Value::Array(_) => ("list", first_characters(&other.to_string())),
            other @ Value::Object(_) => ("object", other.to_string()),
        };
        if !field.types.contains(&type_name) {
            field.types.push(type_name);
        }
        if field.example.is_empty() {
            field.example = shown;
        }
    }
}
