//! Conversion of Python arguments to validated settings, with the choices and errors of the command
//! line.

use lookalike_batch::run::{
    AuditSettings, CopyFields, CopyWeight, FormLearning, KeptMembers, RunSettings, RunWindow,
    SourcesField, WeightField, WeightTable,
};
use lookalike_io::source::{IdField, ReadOptions, WantedFields};
use lookalike_options::forms_choice::FormsChoice;
use lookalike_options::keep_order::parse_keep;
use lookalike_options::match_options::{MatchOptions, NamedMatchOptions, OptionSpelling};
use lookalike_options::units::parse_seconds;
use pyo3::prelude::*;

use crate::error::{SettingError, option_error_to_py, run_error_to_py};
use crate::recipe::Recipe;

/// Largest number of threads, as on the command line.
const MOST_THREADS: usize = 1024;

/// Seed of audits.
pub(crate) const AUDIT_SEED: u64 = 1;

/// Match options as given in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RuleSettings {
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
pub(crate) enum TimeSpan {
    Seconds(f64),
    Text(String),
}

/// Fields that are read of a row.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReadSettings {
    text: Vec<String>,
    id: Option<String>,
    id_row: bool,
    features: Option<String>,
}

/// How many documents of a cluster are kept, and the fields about copies that kept rows get.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CopyOptions {
    keep_count: Option<u32>,
    drop_all: Option<u32>,
    copies: Option<String>,
    /// The field that is read, and the field that is added.
    sources: Option<(String, String)>,
    most_sources: usize,
    weight: Option<String>,
    weight_by: WeightChoice,
}

/// The argument `weight_by`.
#[derive(FromPyObject)]
pub(crate) enum WeightChoice {
    /// `log`, `sqrt` or the path of a table.
    Named(String),
    /// A table.
    Steps(Vec<(u64, f64)>),
}

impl WeightChoice {
    /// Returns the rule, after reading its file if it has one.
    pub(crate) fn into_copy_weight(self) -> PyResult<CopyWeight> {
        match self {
            Self::Named(rule) => CopyWeight::from_name_or_file(&rule).map_err(run_error_to_py),
            Self::Steps(steps) => {
                let table = WeightTable::from_steps(steps).map_err(|reason| {
                    SettingError::new_err(format!("weight_by is a table, and {reason}"))
                })?;
                Ok(CopyWeight::Table(table))
            }
        }
    }
}

impl CopyOptions {
    /// Returns the field with the source of each document.
    pub(crate) fn source_field(&self) -> Option<&str> {
        self.sources.as_ref().map(|(field, _)| &**field)
    }

    /// Returns how many documents of a cluster are kept.
    pub(crate) fn kept_members(&self) -> KeptMembers {
        match (self.keep_count, self.drop_all) {
            (_, Some(least)) => KeptMembers::DropClusters(least),
            (Some(count), None) => KeptMembers::Best(count),
            (None, None) => KeptMembers::Representative,
        }
    }

    /// Returns the fields that are added to kept rows.
    pub(crate) fn copy_fields(self) -> PyResult<CopyFields> {
        let weight = match self.weight {
            None => None,
            Some(name) => {
                let rule = self.weight_by.into_copy_weight()?;
                Some(WeightField { name, rule })
            }
        };
        Ok(CopyFields {
            copies: self.copies,
            sources: self.sources.map(|(_, name)| SourcesField {
                name,
                most: self.most_sources,
            }),
            weight,
        })
    }
}

/// Options of a run: fields, match options, and the documents that are kept.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunOptions {
    recipe: Recipe,
    forms: Option<String>,
    rule: RuleSettings,
    reading: ReadSettings,
    keep: Option<String>,
    within: Option<String>,
    window: Option<TimeSpan>,
    time: Option<String>,
    audit: Option<usize>,
    threads: Option<usize>,
    strict: bool,
}

impl RuleSettings {
    /// Returns the validated settings.
    pub(crate) fn match_settings(&self) -> PyResult<lookalike::plan::MatchSettings> {
        self.match_options()?
            .to_settings(OptionSpelling::Arguments)
            .map_err(option_error_to_py)
    }

    /// Returns the given arguments, after checking that their names exist.
    pub(crate) fn match_options(&self) -> PyResult<MatchOptions> {
        let options = NamedMatchOptions {
            method: self.method.clone(),
            threshold: self.threshold,
            distance: self.distance,
            candidates: self.candidates.clone(),
            sentences: self.sentences,
            verify: self.verify.clone(),
            unit: self.unit.clone(),
        };
        options.to_options().map_err(option_error_to_py)
    }
}

impl ReadSettings {
    /// Returns the options for reading a table.
    pub(crate) fn read_options(self) -> ReadOptions {
        let id = match self.id {
            Some(field) => IdField::Named(field),
            None if self.id_row => IdField::RowNumber,
            None => IdField::Default,
        };
        ReadOptions {
            fields: WantedFields {
                text: self.text,
                id,
                features: self.features,
                ..WantedFields::default()
            },
            ..ReadOptions::default()
        }
    }
}

impl RunOptions {
    /// Returns the number of threads, if it is given.
    pub(crate) fn given_threads(&self) -> Option<usize> {
        self.threads
    }

    /// Returns the settings of a run, with the given threads, or with 1.
    pub(crate) fn run_settings(self, py: Python<'_>) -> PyResult<RunSettings> {
        let forms = self.forms.as_deref().map(FormsChoice::from);
        let recipe = match &forms {
            None => {
                self.recipe.recipe_analyzer(py);
                self.recipe.0
            }
            Some(forms) => forms.apply_to(self.recipe.0).map_err(option_error_to_py)?,
        };
        let form_learning = match forms {
            Some(FormsChoice::Learn) => FormLearning::Always,
            None => FormLearning::WherePossible,
            Some(_) => FormLearning::Never,
        };
        let needs_texts = form_learning == FormLearning::Always || recipe.forms.is_some();
        if self.reading.features.is_some() && needs_texts {
            return Err(SettingError::new_err(
                "a comparison of forms needs texts, and features has no texts: leave one of them out",
            ));
        }
        let keep = self.keep.as_deref().unwrap_or("first");
        let keep = parse_keep(keep)
            .map_err(|reason| SettingError::new_err(format!("keep is '{keep}': {reason}")))?;
        Ok(RunSettings {
            memory: None,
            temporary: None,
            matching: self.rule.match_settings()?,
            recipe,
            form_learning,
            read: self.reading.read_options(),
            keep,
            within: self.within,
            sources: None,
            window: run_window(self.window, self.time)?,
            threads: thread_count(self.threads.or(Some(1)))?,
            strict: self.strict,
            audit: self.audit.map(|documents| AuditSettings {
                documents: Some(documents).filter(|&documents| documents > 0),
                seed: AUDIT_SEED,
            }),
            decisions: Vec::new(),
            spelling: OptionSpelling::Arguments,
        })
    }
}

fn run_window(span: Option<TimeSpan>, time: Option<String>) -> PyResult<Option<RunWindow>> {
    let seconds = span.map(parse_window).transpose()?;
    match (seconds, time) {
        (None, None) => Ok(None),
        (Some(seconds), Some(field)) => Ok(Some(RunWindow { seconds, field })),
        (Some(_), None) => Err(SettingError::new_err(
            "window needs time, the field with the time: give both or neither",
        )),
        (None, Some(_)) => Err(SettingError::new_err(
            "time is for window: give both or neither",
        )),
    }
}

/// Returns the seconds of the argument `window`.
pub(crate) fn parse_window(span: TimeSpan) -> PyResult<f64> {
    let wrong =
        |text: &str, reason: &str| SettingError::new_err(format!("window is {text}: {reason}"));
    match span {
        TimeSpan::Seconds(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        TimeSpan::Seconds(seconds) => Err(wrong(
            &seconds.to_string(),
            "give a number of seconds of at least 0",
        )),
        TimeSpan::Text(text) => {
            parse_seconds(&text).map_err(|reason| wrong(&format!("'{text}'"), &reason))
        }
    }
}

/// Returns the number of threads: the given one, or one per core. Counting the cores reads files, because their number
/// can be limited while the process runs.
pub(crate) fn thread_count(given: Option<usize>) -> PyResult<usize> {
    match given {
        None => Ok(RunSettings::default().threads),
        Some(threads) if (1..=MOST_THREADS).contains(&threads) => Ok(threads),
        Some(threads) => Err(SettingError::new_err(format!(
            "threads is {threads}: give a number from 1 to {MOST_THREADS}"
        ))),
    }
}
