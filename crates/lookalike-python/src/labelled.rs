//! Learning from texts: document frequencies, and the quality of settings on labelled texts.

use std::path::PathBuf;

use lookalike::Threshold;
use lookalike::evaluate::{Bootstrap, Options, Setting, TuneOptions};
use lookalike_batch::rule::Spelling;
use lookalike_batch::run::{
    ContradictoryLabels, EvaluateSettings, Grades, GroupTexts, IdfSettings, LabelledInputs,
    LabelledRows, PairFields, TuneSettings, lowest_threshold, measured, parse_goal,
    thresholds_from,
};
use lookalike_batch::sink::Output;
use lookalike_batch::source::Source;
use pyo3::prelude::*;

use crate::error::{OutputError, SettingError, raise, refuse};
use crate::recipe::Recipe;
use crate::run::{Watch, as_json, watched};
use crate::settings::{Reading, Rule, threads};
use crate::table::{Stream, take};

/// Fields and grades of labelled texts, which are pairs or texts with groups.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Labels {
    a: String,
    b: String,
    label: String,
    group: Option<String>,
    positive: Option<f64>,
    negative: Option<f64>,
    reading: Reading,
}

/// Options of a measurement: lowest threshold, resampling and threads.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Ways {
    lowest: Option<f64>,
    resamples: u32,
    seed: u64,
    threads: Option<usize>,
}

impl Labels {
    fn inputs(self, table: Stream, corpus: Option<Stream>) -> PyResult<LabelledInputs> {
        let corpus = corpus.map(|corpus| take(corpus, "corpus")).transpose()?;
        let grades = match (self.positive, self.negative) {
            (Some(positive), Some(negative)) if negative < positive => {
                Some(Grades { positive, negative })
            }
            (None, None) => None,
            (positive, negative) => {
                let told =
                    |grade: Option<f64>| grade.map_or("None".to_owned(), |at| at.to_string());
                return Err(SettingError::new_err(format!(
                    "positive is {} and negative {}: give both, negative below positive, or neither",
                    told(positive),
                    told(negative)
                )));
            }
        };
        let rows = match self.group {
            Some(group) => LabelledRows::Groups {
                group,
                texts: GroupTexts::InRows,
            },
            None => LabelledRows::Pairs(PairFields {
                a: self.a,
                b: self.b,
                label: self.label,
                kind: None,
                grades,
                corpus: corpus.map_or_else(Source::default, Source::Table),
                contradictory: ContradictoryLabels::Refuse,
                spelling: Spelling::Arguments,
            }),
        };
        Ok(LabelledInputs {
            source: Source::Table(take(table, "labelled")?),
            rows,
            read: self.reading.options(),
            outputs: Vec::new(),
        })
    }
}

impl Ways {
    fn lowest(&self, rows: &LabelledRows) -> PyResult<Threshold> {
        let lowest = self.lowest.map(Threshold::new);
        lowest
            .unwrap_or_else(|| lowest_threshold(rows))
            .map_err(refuse)
    }

    fn bootstrap(&self) -> Bootstrap {
        Bootstrap {
            resamples: self.resamples,
            seed: self.seed,
            ..Bootstrap::default()
        }
    }
}

/// Measures settings on labelled texts. Returns the JSON of the command line.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    table: Stream,
    corpus: Option<Stream>,
    labels: Labels,
    ways: Ways,
    settings: Vec<(Recipe, Rule)>,
) -> PyResult<String> {
    let inputs = labels.inputs(table, corpus)?;
    let lowest = ways.lowest(&inputs.rows)?;
    let settings = settings.into_iter().map(|(recipe, rule)| {
        let asked = measured(&rule.asked()?, lowest);
        Ok(Setting {
            matching: asked.settings(Spelling::Arguments).map_err(raise)?,
            recipe: recipe.0,
        })
    });
    let settings = EvaluateSettings {
        settings: settings.collect::<PyResult<_>>()?,
        options: Options {
            thresholds: thresholds_from(lowest),
            bootstrap: ways.bootstrap(),
        },
        threads: threads(ways.threads)?,
    };
    let watch = Watch::default();
    let summary = watched(py, &watch, None, || {
        lookalike_batch::run::evaluate(&inputs, &settings, &watch)
    })?;
    as_json(&summary)
}

/// Searches the best setting for labelled texts. Returns the JSON of the command line and the
/// recipe.
#[pyfunction]
pub(crate) fn tune(
    py: Python<'_>,
    table: Stream,
    corpus: Option<Stream>,
    labels: Labels,
    ways: Ways,
    recipe: &Recipe,
    goal: &str,
) -> PyResult<(String, String)> {
    let inputs = labels.inputs(table, corpus)?;
    let goal = parse_goal(goal)
        .map_err(|reason| SettingError::new_err(format!("goal is '{goal}': {reason}")))?;
    let settings = TuneSettings {
        recipe: recipe.0.clone(),
        lowest: ways.lowest(&inputs.rows)?,
        options: TuneOptions {
            goal,
            bootstrap: ways.bootstrap(),
        },
        threads: threads(ways.threads)?,
    };
    let watch = Watch::default();
    let summary = watched(py, &watch, None, || {
        lookalike_batch::run::tune(&inputs, &settings, &watch)
    })?;
    Ok((as_json(&summary)?, summary.recipe.to_toml()))
}

/// Options of counting document frequencies: the rows that are read, and the features that are
/// kept.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Counting {
    recipe: Recipe,
    reading: Reading,
    merge: Vec<PathBuf>,
    min_documents: u64,
    top: Option<usize>,
    threads: Option<usize>,
    strict: bool,
}

/// Learns document frequencies and writes them to a file. Returns the JSON of the command line.
#[pyfunction]
pub(crate) fn idf(
    py: Python<'_>,
    table: Stream,
    counting: Counting,
    path: PathBuf,
) -> PyResult<String> {
    let source = Source::Table(take(table, "data")?);
    let settings = IdfSettings {
        recipe: counting.recipe.0,
        least_documents: counting.min_documents,
        top: counting.top,
        merge: counting.merge,
        read: counting.reading.options(),
        threads: threads(counting.threads)?,
        strict: counting.strict,
    };
    let (output, watch) = (Output::Path(path), Watch::default());
    let summary = watched(py, &watch, None, || {
        lookalike_batch::run::idf(&source, &settings, &output, None, &watch)
    })?;
    serde_json::to_string(&summary).map_err(|error| OutputError::new_err(error.to_string()))
}
