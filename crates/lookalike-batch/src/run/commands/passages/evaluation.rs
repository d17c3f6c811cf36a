//! Found passages against true ones, as two tables.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use lookalike::quality::passages::{PassagePlace, PassageScores, score_passages};
use lookalike_io::error::Result;
use lookalike_io::source::{
    FieldValue, IdField, InputRow, InputSet, ReadOptions, WantedFields, shortest_digits,
};
use serde::Serialize;

use crate::run::commands::labelled::{
    as_written, is_tsv, refuse_nothing, text_of_field, visit_label_rows,
};
use crate::run::progress::ProgressListener;

/// Two tables with the columns `document, source, start, end, source_start, source_end`.
#[derive(Debug, Clone)]
pub struct PassageFiles {
    /// The found passages; may have no rows.
    pub found: PathBuf,
    /// The true passages.
    pub truth: PathBuf,
    /// Options of reading: encoding and format.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
}

/// The agreement of found with true passages.
#[derive(Debug, Clone, Serialize)]
pub struct PassageEvaluation {
    /// The scores.
    #[serde(flatten)]
    pub scores: PassageScores,
    /// Found passages.
    pub found: u64,
    /// True passages.
    pub truth: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Scores found passages against true ones, in the unit of their positions, which must be the same in both.
///
/// # Errors
/// If a table cannot be read, if there are no true passages, or if a row lacks a column or has a range that is empty
/// or no whole numbers.
pub fn evaluate_passages(
    files: &PassageFiles,
    progress: &dyn ProgressListener,
) -> Result<PassageEvaluation> {
    crate::threads::run_in_pool(files.threads, || {
        let started = Instant::now();
        let open = |path| open_passages(path, &files.read);
        let (found, truth) = (open(&files.found)?, open(&files.truth)?);
        let in_tsv = [&found, &truth]
            .iter()
            .any(|side| side.input_files().iter().any(is_tsv));
        let mut numbers = IdNumbers::default();
        let found = read_passages(&found, in_tsv, &mut numbers, progress)?;
        let places = read_passages(&truth, in_tsv, &mut numbers, progress)?;
        refuse_nothing(&truth, places.len() as u64)?;
        Ok(PassageEvaluation {
            scores: score_passages(&found, &places),
            found: found.len() as u64,
            truth: places.len() as u64,
            seconds: started.elapsed().as_secs_f64(),
        })
    })
}

const RANGE_FIELDS: [&str; 4] = ["start", "end", "source_start", "source_end"];

fn open_passages(path: &PathBuf, read: &ReadOptions) -> Result<InputSet> {
    let extra = ["source"]
        .into_iter()
        .chain(RANGE_FIELDS)
        .map(str::to_owned);
    InputSet::open_paths(
        std::slice::from_ref(path),
        &ReadOptions {
            again: false,
            fields: WantedFields {
                text: Vec::new(),
                id: IdField::Named("document".to_owned()),
                extra: extra.collect(),
                ..WantedFields::default()
            },
            ..read.clone()
        },
    )
}

/// Numbers of ids, in order of appearance.
#[derive(Default)]
struct IdNumbers(HashMap<String, u32>);

impl IdNumbers {
    fn number_of(&mut self, id: String) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(id).or_insert(next)
    }
}

/// A row of a table: document, source, and the four ends.
type PassageRecord = (String, String, [u64; 4]);

fn read_passages(
    inputs: &InputSet,
    in_tsv: bool,
    numbers: &mut IdNumbers,
    progress: &dyn ProgressListener,
) -> Result<Vec<PassagePlace>> {
    let mut places = Vec::new();
    visit_label_rows(
        inputs,
        progress,
        |row| parse_passage(row, in_tsv),
        |(document, source, [start, end, source_start, source_end]), _| {
            places.push(PassagePlace {
                document: numbers.number_of(document),
                source: numbers.number_of(source),
                range: start..end,
                source_range: source_start..source_end,
            });
            Ok(())
        },
    )?;
    Ok(places)
}

fn parse_passage(row: &InputRow<'_>, in_tsv: bool) -> Result<PassageRecord, String> {
    let source = match row.extra[0] {
        FieldValue::Number { literal, .. } => shortest_digits(literal),
        value => text_of_field("source", value)?.into(),
    };
    let mut ends = [0; 4];
    for ((end, field), &value) in ends.iter_mut().zip(RANGE_FIELDS).zip(&row.extra[1..]) {
        *end = parse_position(field, value)?;
    }
    for range in ends.chunks(2) {
        if range[0] >= range[1] {
            return Err(format!(
                "the range from {} to {} is empty",
                range[0], range[1]
            ));
        }
    }
    let id = |id| as_written(id, in_tsv).into_owned();
    Ok((id(row.id.unwrap_or_default()), id(&source), ends))
}

fn parse_position(field: &str, value: FieldValue<'_>) -> Result<u64, String> {
    let literal = match value {
        FieldValue::Number { literal, .. } | FieldValue::Text(literal) => literal,
        _ => "nothing",
    };
    literal
        .trim()
        .parse()
        .map_err(|_| format!("the field `{field}` is {literal}, not a whole number from 0"))
}
