//! Items of evaluation benchmarks in the documents of a table.

use std::path::PathBuf;

use lookalike_batch::run::{
    ContaminationCut, DecontaminateInputs, DecontaminateOutputs, DecontaminateSettings, ItemFields,
    run_decontaminate,
};
use lookalike_io::sink::{CollectedTable, OutputTarget};
use lookalike_io::source::RowSource;
use lookalike_options::match_options::OptionSpelling;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::SettingError;
use crate::passages::choose;
use crate::run::{RunWatch, run_watched, summary_to_json, threads_by_size};
use crate::settings::ReadSettings;
use crate::table::{PyTableStream, give_table, take_sized_table};

/// Options of a run that takes benchmarks out of a table.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DecontaminateOptions {
    reading: ReadSettings,
    fields: Option<String>,
    cut: String,
    threads: Option<usize>,
    strict: bool,
}

/// Returns the fields of benchmarks that a user names.
pub(crate) fn parse_fields(fields: Option<&str>) -> PyResult<Option<ItemFields>> {
    let parsed = fields.map(str::parse::<ItemFields>).transpose();
    parsed.map_err(|error| SettingError::new_err(format!("fields is {error}")))
}

/// Returns the part of documents that is cut, by its name.
pub(crate) fn parse_cut(name: &str) -> PyResult<ContaminationCut> {
    choose("cut", name, &ContaminationCut::ALL, ContaminationCut::name)
}

/// Finds the items of benchmarks in the documents of a table, and takes them out.
#[pyfunction]
#[pyo3(signature = (table, benchmarks, options, progress))]
pub(crate) fn decontaminate<'py>(
    py: Python<'py>,
    table: PyTableStream,
    benchmarks: Vec<PathBuf>,
    options: DecontaminateOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let fields = parse_fields(options.fields.as_deref())?;
    let cut = parse_cut(&options.cut)?;
    let (table, bytes) = take_sized_table(table, "data")?;
    let settings = DecontaminateSettings {
        read: options.reading.read_options(),
        threads: threads_by_size(options.threads, bytes)?,
        strict: options.strict,
        cut,
        spelling: OptionSpelling::Arguments,
        work: None,
        memory: None,
    };
    let inputs = DecontaminateInputs {
        documents: RowSource::Table(table),
        benchmarks,
        fields,
    };
    let [kept, findings, items] = [(); 3].map(|()| CollectedTable::default());
    let memory = |collected: &CollectedTable| Some(OutputTarget::Memory(collected.clone()));
    let outputs = DecontaminateOutputs {
        kept: memory(&kept),
        findings: memory(&findings),
        items: memory(&items),
        rejected: None,
        report: None,
        allows_empty: false,
    };
    let watch = RunWatch::default();
    let summary = run_watched(py, &watch, progress.as_ref(), || {
        run_decontaminate(&inputs, &settings, &outputs, &watch)
    })?;
    let result = PyDict::new(py);
    result.set_item("kept", give_table(py, &kept)?)?;
    result.set_item("findings", give_table(py, &findings)?)?;
    result.set_item("items", give_table(py, &items)?)?;
    result.set_item("rejected", watch.bad_row_list())?;
    result.set_item("summary", summary_to_json(&summary)?)?;
    Ok(result)
}
