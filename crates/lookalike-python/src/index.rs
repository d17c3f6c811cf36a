//! Index directories: those of `lookalike index` and `lookalike search`.
//!
//! Rows come from files, as for the command, so that both build the same index.

use std::path::PathBuf;

use lookalike::Threshold;
use lookalike::passages::PassageSettings;
use lookalike::plan::{CandidateRule, EditUnit};
use lookalike_batch::index::{
    self, BuildSettings, IndexReadOptions, ListedMatches, RowContent, SearchCandidates,
    SearchSettings, TextCheck,
};
use lookalike_io::sink::{CollectedTable, OutputTarget};
use lookalike_options::fingerprint_notation::FingerprintNotation;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::error::{engine_error_to_py, run_error_to_py};
use crate::recipe::Recipe;
use crate::run::{RunWatch, run_watched, summary_to_json};
use crate::settings::{ReadSettings, RuleSettings, thread_count};
use crate::table::give_table;

/// The way in which rows of an index, or queries, are read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct IndexReading {
    reading: ReadSettings,
    /// Field with a fingerprint in hexadecimal digits or as a number; the rows are documents without it.
    fingerprint: Option<String>,
    strict: bool,
    threads: Option<usize>,
}

/// Settings of a new index.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct IndexSettings {
    recipe: Option<Recipe>,
    bits: u32,
    distance: u32,
    plan: String,
    texts: bool,
    distance_only: bool,
    passages: Option<u32>,
    replace: bool,
}

/// Settings of a search.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct IndexQuery {
    rule: RuleSettings,
    nearest: Option<usize>,
    first: bool,
    limit: Option<usize>,
}

impl IndexReading {
    fn read_options(self) -> PyResult<IndexReadOptions> {
        let content = match self.fingerprint {
            Some(field) => RowContent::Field(FingerprintNotation::Hex, field),
            None => RowContent::Documents,
        };
        Ok(IndexReadOptions {
            content,
            read: self.reading.read_options(),
            strict: self.strict,
            threads: thread_count(self.threads)?,
            memory: None,
        })
    }
}

impl IndexSettings {
    fn build_settings(self) -> PyResult<BuildSettings> {
        let passages = self.passages.map(PassageSettings::new).transpose();
        Ok(BuildSettings {
            recipe: self.recipe.map(|recipe| recipe.0),
            bits: self.bits,
            distance: self.distance,
            plan: self.plan,
            index_memory: None,
            texts: self.texts,
            distance_only: self.distance_only,
            passages: passages.map_err(engine_error_to_py)?,
            replace: self.replace,
        })
    }
}

impl IndexQuery {
    /// Returns the settings of a search, with the defaults of `lookalike search`.
    fn search_settings(self) -> PyResult<SearchSettings> {
        let options = self.rule.match_options()?;
        let has_check = options.measure.is_some() || options.threshold.is_some();
        let check = has_check.then(|| TextCheck {
            measure: options.measure.unwrap_or_default(),
            unit: options.unit.unwrap_or(EditUnit::default()),
            threshold: options.threshold.unwrap_or(Threshold::DEFAULT),
        });
        let compares = check.as_ref().is_some_and(TextCheck::compares_texts);
        let candidates = match options.candidates.unwrap_or_default() {
            CandidateRule::Blocks => SearchCandidates::Blocks,
            CandidateRule::Distance if compares && options.distance.is_none() => {
                SearchCandidates::Plan
            }
            CandidateRule::Distance => SearchCandidates::Distance,
        };
        Ok(SearchSettings {
            distance: options.distance,
            which: match (self.nearest, self.first) {
                (Some(count), _) => ListedMatches::Nearest(count),
                (None, true) => ListedMatches::First,
                (None, false) => ListedMatches::All,
            },
            limit: self.limit,
            candidates,
            check,
            recipe: None,
        })
    }
}

/// Builds an index of the rows of files. Returns its summary as JSON, and the rows that could not be used.
#[pyfunction]
pub(crate) fn index_build(
    py: Python<'_>,
    path: PathBuf,
    inputs: Vec<PathBuf>,
    settings: IndexSettings,
    reading: IndexReading,
) -> PyResult<(String, Vec<(u64, String)>)> {
    let (settings, reading) = (settings.build_settings()?, reading.read_options()?);
    let watch = RunWatch::default();
    let done = run_watched(py, &watch, None, || {
        index::build_index(&path, &inputs, &settings, &reading, None, &watch)
    })?;
    Ok((summary_to_json(&done)?, watch.bad_row_list()))
}

/// Adds the rows of files to an index, and returns as `index_build` does.
#[pyfunction]
pub(crate) fn index_add(
    py: Python<'_>,
    path: PathBuf,
    inputs: Vec<PathBuf>,
    reading: IndexReading,
) -> PyResult<(String, Vec<(u64, String)>)> {
    let reading = reading.read_options()?;
    let watch = RunWatch::default();
    let done = run_watched(py, &watch, None, || {
        index::add_to_index(&path, &inputs, &reading, None, &watch)
    })?;
    Ok((summary_to_json(&done)?, watch.bad_row_list()))
}

/// Removes the rows with these ids, and returns a summary as JSON.
#[pyfunction]
pub(crate) fn index_remove(
    py: Python<'_>,
    path: PathBuf,
    ids: Vec<String>,
    threads: Option<usize>,
) -> PyResult<String> {
    let threads = thread_count(threads)?;
    let watch = RunWatch::default();
    let done = run_watched(py, &watch, None, || {
        index::remove_from_index(&path, &ids, threads, &watch)
    })?;
    summary_to_json(&done)
}

/// Searches the rows of files in an index. Returns the table of matches and the summary as JSON.
#[pyfunction]
pub(crate) fn index_search<'py>(
    py: Python<'py>,
    path: PathBuf,
    inputs: Vec<PathBuf>,
    query: IndexQuery,
    reading: IndexReading,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let (settings, reading) = (query.search_settings()?, reading.read_options()?);
    let collected = CollectedTable::default();
    let output = OutputTarget::Memory(collected.clone());
    let watch = RunWatch::default();
    let done = run_watched(py, &watch, None, || {
        index::search_index(&path, &inputs, &settings, &reading, &output, None, &watch)
    })?;
    Ok((give_table(py, &collected)?, summary_to_json(&done)?))
}

/// Returns the description of an index as JSON, and the TOML of its recipe if it has one.
#[pyfunction]
pub(crate) fn index_info(path: PathBuf) -> PyResult<(String, Option<String>)> {
    let info = index::index_info(&path).map_err(run_error_to_py)?;
    let recipe = index::index_recipe(&path).map_err(run_error_to_py)?;
    let recipe = recipe.map(|recipe| recipe.to_toml());
    Ok((summary_to_json(&info)?, recipe))
}

/// Verifies all files of an index against their checksums, and returns a summary as JSON.
#[pyfunction]
pub(crate) fn index_verify(
    py: Python<'_>,
    path: PathBuf,
    threads: Option<usize>,
) -> PyResult<String> {
    let threads = thread_count(threads)?;
    let watch = RunWatch::default();
    let done = run_watched(py, &watch, None, || {
        index::verify_index(&path, threads, &watch)
    })?;
    summary_to_json(&done)
}

/// The codes of an index as rows of words, their ids, the bits of a code and the distance of the index.
type ExportedCodes<'py> = (Bound<'py, PyArray2<u64>>, Vec<String>, u32, u32);

/// Returns the fingerprints of an index.
#[pyfunction]
pub(crate) fn index_fingerprints(py: Python<'_>, path: PathBuf) -> PyResult<ExportedCodes<'_>> {
    let exported = py
        .detach(|| index::export_fingerprints(&path))
        .map_err(run_error_to_py)?;
    let width = if exported.bits > u64::BITS { 2 } else { 1 };
    let words = exported.codes.iter().flat_map(|&code| {
        let words = [code as u64, (code >> u64::BITS) as u64];
        words.into_iter().take(width)
    });
    let words: Vec<u64> = words.collect();
    let words = words
        .into_pyarray(py)
        .reshape([exported.ids.len(), width])?;
    Ok((words, exported.ids, exported.bits, exported.distance))
}
