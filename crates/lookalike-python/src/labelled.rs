//! Learning from texts: document frequencies, and the quality of settings on labelled texts.

use std::path::PathBuf;

use lookalike::Threshold;
use lookalike::quality::evaluate::{
    BootstrapOptions, EvaluatedSetting, EvaluationOptions, TuneOptions,
};
use lookalike_batch::run::{
    ContradictoryLabels, EvaluateSettings, GradeThresholds, GroupTexts, IdfSettings,
    LabelledInputs, LabelledRows, PairFields, TuneSettings, lowest_threshold, options_to_measure,
    parse_goal, thresholds_from,
};
use lookalike_io::sink::OutputTarget;
use lookalike_io::source::RowSource;
use lookalike_options::match_options::OptionSpelling;
use pyo3::prelude::*;

use crate::error::{OutputError, SettingError, engine_error_to_py, option_error_to_py};
use crate::recipe::Recipe;
use crate::run::{RunWatch, run_watched, summary_to_json};
use crate::settings::{ReadSettings, RuleSettings, thread_count};
use crate::table::{PyTableStream, take_table};

/// Fields and grades of labelled texts, which are pairs or texts with groups.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LabelSettings {
    a: String,
    b: String,
    label: String,
    group: Option<String>,
    positive: Option<f64>,
    negative: Option<f64>,
    reading: ReadSettings,
}

/// Options of a measurement: lowest threshold, resampling and threads.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ResamplingSettings {
    lowest: Option<f64>,
    resamples: u32,
    seed: u64,
    threads: Option<usize>,
}

impl LabelSettings {
    fn labelled_inputs(
        self,
        table: PyTableStream,
        corpus: Option<PyTableStream>,
    ) -> PyResult<LabelledInputs> {
        let corpus = corpus
            .map(|corpus| take_table(corpus, "corpus"))
            .transpose()?;
        let grades = match (self.positive, self.negative) {
            (Some(positive), Some(negative)) if negative < positive => {
                Some(GradeThresholds { positive, negative })
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
                corpus: corpus.map_or_else(RowSource::default, RowSource::Table),
                contradictory: ContradictoryLabels::Refuse,
                spelling: OptionSpelling::Arguments,
            }),
        };
        Ok(LabelledInputs {
            source: RowSource::Table(take_table(table, "labelled")?),
            rows,
            read: self.reading.read_options(),
            outputs: Vec::new(),
        })
    }
}

impl ResamplingSettings {
    fn lowest_threshold(&self, rows: &LabelledRows) -> PyResult<Threshold> {
        let lowest = self.lowest.map(Threshold::new);
        lowest
            .unwrap_or_else(|| lowest_threshold(rows))
            .map_err(engine_error_to_py)
    }

    fn bootstrap_options(&self) -> BootstrapOptions {
        BootstrapOptions {
            resamples: self.resamples,
            seed: self.seed,
            ..BootstrapOptions::default()
        }
    }
}

/// Measures settings on labelled texts. Returns the JSON of the command line.
#[pyfunction]
pub(crate) fn evaluate(
    py: Python<'_>,
    table: PyTableStream,
    corpus: Option<PyTableStream>,
    labels: LabelSettings,
    ways: ResamplingSettings,
    settings: Vec<(Recipe, RuleSettings)>,
) -> PyResult<String> {
    let inputs = labels.labelled_inputs(table, corpus)?;
    let lowest = ways.lowest_threshold(&inputs.rows)?;
    let settings = settings.into_iter().map(|(recipe, rule)| {
        let asked = options_to_measure(&rule.match_options()?, lowest);
        Ok(EvaluatedSetting {
            matching: asked
                .to_settings(OptionSpelling::Arguments)
                .map_err(option_error_to_py)?,
            recipe: recipe.0,
        })
    });
    let settings = EvaluateSettings {
        settings: settings.collect::<PyResult<_>>()?,
        options: EvaluationOptions {
            thresholds: thresholds_from(lowest),
            bootstrap: ways.bootstrap_options(),
        },
        threads: thread_count(ways.threads)?,
    };
    let watch = RunWatch::default();
    let summary = run_watched(py, &watch, None, || {
        lookalike_batch::run::run_evaluation(&inputs, &settings, &watch)
    })?;
    summary_to_json(&summary)
}

/// Searches the best setting for labelled texts. Returns the JSON of the command line and the
/// recipe.
#[pyfunction]
pub(crate) fn tune(
    py: Python<'_>,
    table: PyTableStream,
    corpus: Option<PyTableStream>,
    labels: LabelSettings,
    ways: ResamplingSettings,
    recipe: &Recipe,
    goal: &str,
) -> PyResult<(String, String)> {
    let inputs = labels.labelled_inputs(table, corpus)?;
    let goal = parse_goal(goal)
        .map_err(|reason| SettingError::new_err(format!("goal is '{goal}': {reason}")))?;
    let settings = TuneSettings {
        recipe: recipe.0.clone(),
        lowest: ways.lowest_threshold(&inputs.rows)?,
        options: TuneOptions {
            goal,
            bootstrap: ways.bootstrap_options(),
        },
        threads: thread_count(ways.threads)?,
    };
    let watch = RunWatch::default();
    let summary = run_watched(py, &watch, None, || {
        lookalike_batch::run::run_tuning(&inputs, &settings, &watch)
    })?;
    Ok((summary_to_json(&summary)?, summary.recipe.to_toml()))
}

/// Options of counting document frequencies: the rows that are read, and the features that are
/// kept.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CountingSettings {
    recipe: Recipe,
    reading: ReadSettings,
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
    table: PyTableStream,
    counting: CountingSettings,
    path: PathBuf,
) -> PyResult<String> {
    let source = RowSource::Table(take_table(table, "data")?);
    let settings = IdfSettings {
        recipe: counting.recipe.0,
        least_documents: counting.min_documents,
        top: counting.top,
        merge: counting.merge,
        read: counting.reading.read_options(),
        threads: thread_count(counting.threads)?,
        strict: counting.strict,
        memory: None,
    };
    let (output, watch) = (OutputTarget::Path(path), RunWatch::default());
    let summary = run_watched(py, &watch, None, || {
        lookalike_batch::run::write_frequencies(&source, &settings, &output, None, &watch)
    })?;
    serde_json::to_string(&summary).map_err(|error| OutputError::new_err(error.to_string()))
}
