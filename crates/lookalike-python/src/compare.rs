//! Comparing two texts, and segmenting texts into tokens.

use lookalike::compare::{AnalysisSteps, Comparison};
use lookalike_batch::run::{SegmentSettings, SegmentTexts, TermListing, run_in_caller};
use lookalike_io::sink::{CollectedTable, OutputTarget};
use lookalike_io::source::RowSource;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{engine_error_to_py, run_error_to_py};
use crate::recipe::Recipe;
use crate::run::{RunWatch, abandonable, run_by_size, threads_by_size};
use crate::settings::{ReadSettings, RuleSettings};
use crate::table::{PyTableStream, give_table, take_sized_table};

/// Bytes of two texts from which a comparison can take so long that users interrupt it.
const INTERRUPTIBLE_BYTES: usize = 100_000;

/// Compares two texts.
#[pyfunction]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    recipe: &Recipe,
    rule: RuleSettings,
) -> PyResult<Bound<'py, PyDict>> {
    let matching = rule.match_settings()?;
    recipe.recipe_analyzer(py);
    let compared = if a.len() + b.len() < INTERRUPTIBLE_BYTES {
        // Without a pool, all threads of the process would be woken for two texts.
        py.detach(|| run_in_caller(|| Ok(Comparison::new(&recipe.0, matching, a, b))))
            .map_err(run_error_to_py)?
    } else {
        let (recipe, a, b) = (recipe.0.clone(), a.to_owned(), b.to_owned());
        abandonable(py, move || Comparison::new(&recipe, matching, &a, &b))?
    };
    let compared = compared.map_err(engine_error_to_py)?;
    let figures = PyDict::new(py);
    for figure in &compared.figures {
        figures.set_item(
            figure.name,
            (
                figure.value,
                figure.kind.kind_name(),
                figure.detail.as_str(),
            ),
        )?;
    }
    let fingerprints = compared.a.fingerprint.zip(compared.b.fingerprint);
    let verdict = &compared.verdict;
    let told = PyDict::new(py);
    told.set_item("match", verdict.matched.is_some())?;
    told.set_item("method", verdict.matched.map(|(route, _)| route.name()))?;
    told.set_item("similarity", verdict.similarity)?;
    told.set_item("why", &verdict.why)?;
    told.set_item("distance", fingerprints.map(|(a, b)| (a ^ b).count_ones()))?;
    told.set_item("figures", figures)?;
    told.set_item("a", steps_to_dict(py, &compared.a)?)?;
    told.set_item("b", steps_to_dict(py, &compared.b)?)?;
    Ok(told)
}

fn steps_to_dict<'py>(py: Python<'py>, steps: &AnalysisSteps) -> PyResult<Bound<'py, PyDict>> {
    let features: Vec<_> = steps
        .features
        .iter()
        .map(|feature| {
            (
                feature.text.as_str(),
                feature.count,
                feature.weight,
                feature.hash,
            )
        })
        .collect();
    let told = PyDict::new(py);
    told.set_item("state", steps.state.state_name())?;
    told.set_item("normalized", &steps.normalized)?;
    told.set_item("tokens", &steps.tokens)?;
    told.set_item("features", features)?;
    told.set_item("sums", &steps.sums)?;
    told.set_item("fingerprint", steps.fingerprint)?;
    told.set_item("signature", steps.signature.as_deref())?;
    Ok(told)
}

/// Returns the tokens of every text of a table, or its features with their weights.
#[pyfunction]
pub(crate) fn segment<'py>(
    py: Python<'py>,
    table: PyTableStream,
    recipe: &Recipe,
    reading: ReadSettings,
    weights: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let listing = if weights {
        TermListing::Weights
    } else {
        TermListing::Tokens
    };
    let (table, bytes) = take_sized_table(table, "data")?;
    recipe.recipe_analyzer(py);
    let settings = SegmentSettings {
        recipe: recipe.0.clone(),
        listing,
        read: reading.read_options(),
        threads: threads_by_size(threads, bytes)?,
        strict: true,
    };
    let texts = SegmentTexts::Inputs(RowSource::Table(table));
    let collected = CollectedTable::default();
    let output = OutputTarget::Memory(collected.clone());
    let watch = RunWatch::default();
    run_by_size(py, bytes, &watch, None, || {
        lookalike_batch::run::run_segment(&texts, &settings, &output, None, &watch)
    })?;
    give_table(py, &collected)
}
