//! Conversion of Python arguments to validated settings, with the choices and errors of the command
//! line.

use lookalike::Threshold;
use lookalike_batch::rule::{
    Asked, CANDIDATES, MEASURES, METHODS, Spelling, UNITS, candidates_name, choose, measure_name,
    method_name, unit_name,
};
use lookalike_batch::run::{AuditSettings, Settings, Window, parse_duration, parse_keep};
use lookalike_batch::source::{Fields, IdField, ReadOptions};
use pyo3::prelude::*;

use crate::error::{SettingError, raise, refuse};
use crate::recipe::Recipe;

/// Largest number of threads, as on the command line.
const MOST_THREADS: usize = 1024;

/// Match options as given in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Rule {
    method: Option<String>,
    threshold: Option<f64>,
    distance: Option<u32>,
    candidates: Option<String>,
    sentences: Option<usize>,
    verify: Option<String>,
    unit: Option<String>,
}

/// A duration.
#[derive(FromPyObject)]
enum Span {
    Seconds(f64),
    Text(String),
}

/// Fields that are read of a row.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Reading {
    text: Vec<String>,
    id: Option<String>,
    id_row: bool,
    features: Option<String>,
}

/// Options of a run: fields, match options, and the documents that are kept.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    recipe: Recipe,
    rule: Rule,
    reading: Reading,
    keep: Option<String>,
    within: Option<String>,
    window: Option<Span>,
    time: Option<String>,
    audit: Option<usize>,
    threads: Option<usize>,
    strict: bool,
}

impl Rule {
    /// Returns the validated settings.
    pub(crate) fn settings(&self) -> PyResult<lookalike::plan::Settings> {
        self.asked()?.settings(Spelling::Arguments).map_err(raise)
    }

    /// Returns the given arguments, after checking that their names exist.
    pub(crate) fn asked(&self) -> PyResult<Asked> {
        let threshold = self.threshold.map(Threshold::new).transpose();
        Ok(Asked {
            method: chosen("method", self.method.as_deref(), &METHODS, method_name)?,
            threshold: threshold.map_err(refuse)?,
            distance: self.distance,
            candidates: chosen(
                "candidates",
                self.candidates.as_deref(),
                &CANDIDATES,
                candidates_name,
            )?,
            sentences: self.sentences,
            measure: chosen("verify", self.verify.as_deref(), &MEASURES, measure_name)?,
            unit: chosen("unit", self.unit.as_deref(), &UNITS, unit_name)?,
        })
    }
}

fn chosen<T: Copy>(
    what: &str,
    name: Option<&str>,
    choices: &[T],
    name_of: fn(T) -> &'static str,
) -> PyResult<Option<T>> {
    name.map(|name| choose(what, name, choices, name_of))
        .transpose()
        .map_err(raise)
}

impl Reading {
    /// Returns the options for reading a table.
    pub(crate) fn options(self) -> ReadOptions {
        let id = match self.id {
            Some(field) => IdField::Named(field),
            None if self.id_row => IdField::RowNumber,
            None => IdField::Default,
        };
        ReadOptions {
            fields: Fields {
                text: self.text,
                id,
                features: self.features,
                ..Fields::default()
            },
            ..ReadOptions::default()
        }
    }
}

impl Options {
    /// Returns the settings of a run.
    pub(crate) fn settings(self) -> PyResult<Settings> {
        let keep = self.keep.as_deref().unwrap_or("first");
        let keep = parse_keep(keep)
            .map_err(|reason| SettingError::new_err(format!("keep is '{keep}': {reason}")))?;
        Ok(Settings {
            matching: self.rule.settings()?,
            recipe: self.recipe.0,
            read: self.reading.options(),
            keep,
            within: self.within,
            window: window(self.window, self.time)?,
            threads: threads(self.threads)?,
            strict: self.strict,
            audit: self.audit.map(|documents| AuditSettings {
                documents: Some(documents).filter(|&documents| documents > 0),
                seed: 1,
            }),
            spelling: Spelling::Arguments,
        })
    }
}

fn window(span: Option<Span>, time: Option<String>) -> PyResult<Option<Window>> {
    let wrong =
        |text: &str, reason: &str| SettingError::new_err(format!("window is {text}: {reason}"));
    let seconds = match span {
        None => None,
        Some(Span::Seconds(seconds)) if seconds.is_finite() && seconds >= 0.0 => Some(seconds),
        Some(Span::Seconds(seconds)) => {
            return Err(wrong(
                &seconds.to_string(),
                "give a number of seconds of at least 0",
            ));
        }
        Some(Span::Text(text)) => {
            Some(parse_duration(&text).map_err(|reason| wrong(&format!("'{text}'"), &reason))?)
        }
    };
    match (seconds, time) {
        (None, None) => Ok(None),
        (Some(seconds), Some(field)) => Ok(Some(Window { seconds, field })),
        (Some(_), None) => Err(SettingError::new_err(
            "window needs time, the field with the time: give both or neither",
        )),
        (None, Some(_)) => Err(SettingError::new_err(
            "time is for window: give both or neither",
        )),
    }
}

/// Returns the number of threads: the given one, or one per core.
pub(crate) fn threads(given: Option<usize>) -> PyResult<usize> {
    match given {
        None => Ok(Settings::default().threads),
        Some(threads) if (1..=MOST_THREADS).contains(&threads) => Ok(threads),
        Some(threads) => Err(SettingError::new_err(format!(
            "threads is {threads}: give a number from 1 to {MOST_THREADS}"
        ))),
    }
}
