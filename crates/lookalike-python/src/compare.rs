//! Comparing two texts, and segmenting texts into tokens.

use lookalike::compare::{Comparison, Kind, Steps};
use lookalike::text::State;
use lookalike_batch::run::{Listing, SegmentSettings, SegmentTexts};
use lookalike_batch::sink::{Collected, Output};
use lookalike_batch::source::Source;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::refuse;
use crate::recipe::Recipe;
use crate::run::{Watch, abandonable, watched};
use crate::settings::{Reading, Rule, threads};
use crate::table::{Stream, give, take};

/// Bytes of two texts from which a comparison can take so long that users interrupt it.
const LONG: usize = 100_000;

/// Compares two texts.
#[pyfunction]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    recipe: &Recipe,
    rule: Rule,
) -> PyResult<Bound<'py, PyDict>> {
    let matching = rule.settings()?;
    let compared = if a.len() + b.len() < LONG {
        py.detach(|| Comparison::new(&recipe.0, matching, a, b))
    } else {
        let (recipe, a, b) = (recipe.0.clone(), a.to_owned(), b.to_owned());
        abandonable(py, move || Comparison::new(&recipe, matching, &a, &b))?
    };
    let compared = compared.map_err(refuse)?;
    let figures = PyDict::new(py);
    for figure in &compared.figures {
        figures.set_item(
            figure.name,
            (figure.value, kind(figure.kind), figure.detail.as_str()),
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
    told.set_item("a", steps(py, &compared.a)?)?;
    told.set_item("b", steps(py, &compared.b)?)?;
    Ok(told)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Similarity => "similarity",
        Kind::Distance => "distance",
        Kind::Estimate => "estimate",
        Kind::Biased => "biased estimate",
    }
}

fn steps<'py>(py: Python<'py>, steps: &Steps) -> PyResult<Bound<'py, PyDict>> {
    let state = match steps.state {
        State::Rich => "rich",
        State::Poor => "poor",
        State::Blank => "blank",
        State::Empty => "empty",
    };
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
    told.set_item("state", state)?;
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
    table: Stream,
    recipe: &Recipe,
    reading: Reading,
    weights: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let listing = if weights {
        Listing::Weights
    } else {
        Listing::Tokens
    };
    let settings = SegmentSettings {
        recipe: recipe.0.clone(),
        listing,
        read: reading.options(),
        threads: self::threads(threads)?,
        strict: true,
    };
    let texts = SegmentTexts::Inputs(Source::Table(take(table, "data")?));
    let collected = Collected::default();
    let output = Output::Memory(collected.clone());
    let watch = Watch::default();
    watched(py, &watch, None, || {
        lookalike_batch::run::segment(&texts, &settings, &output, None, &watch)
    })?;
    give(py, &collected)
}
