//! Copied passages: those that two texts share, and those of all documents of a table.

use lookalike::passages::PassageSettings;
use lookalike_batch::run::{
    OffsetUnit, PassageOrder, PassageOutputs, PassageRunSettings, RunSettings, RunWindow,
    SHOWN_PASSAGE_CHARACTERS, find_passages,
};
use lookalike_comparison::shared_passages::{PassageSpot, SharedPassage, SharedPassages};
use lookalike_io::sink::{CollectedTable, OutputTarget};
use lookalike_io::source::{MemoryTable, RowSource};
use lookalike_options::boilerplate_limit::{BoilerplateLimit, parse_boilerplate_limit};
use lookalike_options::match_options::{OptionSpelling, choose_by_name};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{SettingError, engine_error_to_py, option_error_to_py};
use crate::recipe::Recipe;
use crate::run::{RunWatch, abandonable, run_inputs, run_watched, summary_to_json};
use crate::settings::{ReadSettings, TimeSpan, parse_window, thread_count};
use crate::table::{PyTableStream, give_table};

/// Bytes of two texts from which the search can take so long that users interrupt it.
const INTERRUPTIBLE_BYTES: usize = 1_000_000;

/// Passages and pairs that a summary describes, as the command has it.
const DESCRIBED_PASSAGES: usize = 5;

/// The number of documents that may share a gram.
#[derive(FromPyObject)]
pub(crate) enum DocumentLimit {
    Documents(u32),
    Text(String),
}

/// Options of a passages run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PassageOptions {
    recipe: Recipe,
    reading: ReadSettings,
    min_length: u32,
    reworded: bool,
    max_documents: Option<DocumentLimit>,
    base: Vec<String>,
    time: Option<String>,
    window: Option<TimeSpan>,
    within: Option<String>,
    offsets: String,
    order: String,
    threads: Option<usize>,
    strict: bool,
}

impl PassageOptions {
    fn run_settings(self) -> PyResult<PassageRunSettings> {
        let window = self.window.map(parse_window).transpose()?;
        if window.is_some() && self.time.is_none() {
            return Err(SettingError::new_err(
                "window needs time, the field with the time: give both, or leave window out",
            ));
        }
        let passages = passage_settings(self.min_length, self.reworded)?;
        let max_documents = boilerplate_limit(self.max_documents)?;
        let offsets = choose("offsets", &self.offsets, &OffsetUnit::ALL, OffsetUnit::name)?;
        let order = choose("order", &self.order, &PassageOrder::ALL, PassageOrder::name)?;
        Ok(PassageRunSettings {
            reading: RunSettings {
                recipe: self.recipe.0,
                read: self.reading.read_options(),
                within: self.within,
                window: self.time.map(|field| RunWindow {
                    seconds: window.unwrap_or(f64::INFINITY),
                    field,
                }),
                threads: thread_count(self.threads)?,
                strict: self.strict,
                spelling: OptionSpelling::Arguments,
                ..RunSettings::default()
            },
            passages,
            max_documents,
            base: base_source(&self.base),
            index: None,
            offsets,
            order,
            described: DESCRIBED_PASSAGES,
            common_characters: SHOWN_PASSAGE_CHARACTERS,
            limits: None,
        })
    }
}

/// Returns texts that all documents were given as the rows of a table.
fn base_source(texts: &[String]) -> RowSource {
    if texts.is_empty() {
        return RowSource::default();
    }
    let rows = texts.iter().map(|text| ("", &**text));
    RowSource::Table(MemoryTable::from_texts("base", rows))
}

fn passage_settings(min_length: u32, reworded: bool) -> PyResult<PassageSettings> {
    let settings = PassageSettings::new(min_length).map_err(engine_error_to_py)?;
    Ok(settings.with_reworded(reworded))
}

pub(crate) fn choose<T: Copy>(
    what: &str,
    name: &str,
    choices: &[T],
    name_of: fn(T) -> &'static str,
) -> PyResult<T> {
    choose_by_name(what, name, choices, name_of).map_err(option_error_to_py)
}

pub(crate) fn boilerplate_limit(given: Option<DocumentLimit>) -> PyResult<BoilerplateLimit> {
    match given {
        None => Ok(BoilerplateLimit::Usual),
        Some(DocumentLimit::Documents(most)) => Ok(BoilerplateLimit::Documents(most)),
        Some(DocumentLimit::Text(text)) => parse_boilerplate_limit(&text).map_err(|reason| {
            SettingError::new_err(format!("max_documents is '{text}': {reason}"))
        }),
    }
}

/// Finds the passages that documents of a table share with one another, or with those of another table.
#[pyfunction]
#[pyo3(signature = (table, against, options, progress))]
pub(crate) fn passages<'py>(
    py: Python<'py>,
    table: PyTableStream,
    against: Option<PyTableStream>,
    options: PassageOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = options.run_settings()?;
    let (inputs, _) = run_inputs(table, against)?;
    let passages = CollectedTable::default();
    let outputs = PassageOutputs {
        passages: Some(OutputTarget::Memory(passages.clone())),
        rejected: None,
        extracted: None,
        report: None,
    };
    let watch = RunWatch::default();
    let summary = run_watched(py, &watch, progress.as_ref(), || {
        find_passages(&inputs, &settings, &outputs, &watch)
    })?;
    let result = PyDict::new(py);
    result.set_item("passages", give_table(py, &passages)?)?;
    result.set_item("rejected", watch.bad_row_list())?;
    result.set_item("summary", summary_to_json(&summary)?)?;
    Ok(result)
}

/// Finds the passages that two texts share, without what stands in a base text.
#[pyfunction]
pub(crate) fn shared_passages<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    recipe: &Recipe,
    min_length: u32,
    reworded: bool,
    base: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = passage_settings(min_length, reworded)?;
    let base_bytes: usize = base.iter().map(String::len).sum();
    let shared = if a.len() + b.len() + base_bytes < INTERRUPTIBLE_BYTES {
        py.detach(|| SharedPassages::find_all_beside(&recipe.0, [a, b], settings, &base))
    } else {
        let (recipe, a, b) = (recipe.0.clone(), a.to_owned(), b.to_owned());
        abandonable(py, move || {
            SharedPassages::find_all_beside(&recipe, [&a, &b], settings, &base)
        })?
    };
    let shared = shared.map_err(engine_error_to_py)?;
    let passages: Vec<_> = shared.passages.iter().map(passage_to_tuple).collect();
    let result = PyDict::new(py);
    result.set_item("passages", passages)?;
    result.set_item("share_of_a", shared.share_of_a)?;
    result.set_item("share_of_b", shared.share_of_b)?;
    Ok(result)
}

/// Start and end in characters, start and end in bytes, and the line.
type SpotTuple = (usize, usize, usize, usize, usize);

fn passage_to_tuple(passage: &SharedPassage) -> (SpotTuple, SpotTuple, usize, f64, &'static str) {
    (
        spot_to_tuple(&passage.a),
        spot_to_tuple(&passage.b),
        passage.length,
        passage.similarity,
        passage.kind.kind_name(),
    )
}

fn spot_to_tuple(spot: &PassageSpot) -> SpotTuple {
    let (characters, bytes) = (&spot.characters, &spot.bytes);
    (
        characters.start,
        characters.end,
        bytes.start,
        bytes.end,
        spot.line,
    )
}
