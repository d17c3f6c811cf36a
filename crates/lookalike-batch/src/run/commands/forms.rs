//! Learns a table of forms from documents.

use std::time::Instant;

use lookalike::forms::FormTable;
use lookalike_io::error::Result;
use lookalike_io::sink::{ByteWriter, OutputTarget, StagedOutput, check_output, commit_all};
use serde::Serialize;

use crate::run::commands::bad_row_outputs::BadRowOutputs;
use crate::run::execution::form_learning;
use crate::run::execution::memory_measuring::{RunMemoryNeeds, plan_spilling};
use crate::run::execution::run_stages::RunStorage;
use crate::run::progress::ProgressListener;
use crate::run::reading::open_inputs::OpenInputs;
use crate::run::settings::{RunInputs, RunSettings};

/// The result of a run that learns forms.
#[derive(Debug, Clone, Serialize)]
pub struct FormsSummary {
    /// Documents read.
    pub documents: u64,
    /// Forms in the table.
    pub forms: u64,
    /// Documents of which the forms were learned.
    pub documents_of_forms: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
}

/// Learns forms from the documents that a dedup run with these settings would remove, and writes them as a table. If the
/// recipe has forms, the table is theirs with the new ones behind: documents of its forms are compared by these.
///
/// # Errors
/// If something cannot be read or written, or if the settings contradict each other. The output is then unchanged.
pub fn write_form_table(
    inputs: &RunInputs,
    settings: &RunSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<FormsSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        learn_and_write_table(inputs, settings, output, rejected, progress)
    })
}

fn learn_and_write_table(
    paths: &RunInputs,
    settings: &RunSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<FormsSummary> {
    let started = Instant::now();
    let opened = OpenInputs::new(paths, settings)?;
    for output in [Some(output), rejected].into_iter().flatten() {
        check_output(output, &opened.documents)?;
    }
    let bad_rows = BadRowOutputs::create_output(rejected)?;
    let reject = |inputs: &_, rows: &_| bad_rows.push_rows(inputs, rows);
    let storage = RunStorage {
        work: None,
        spill: plan_spilling(paths, settings, RunMemoryNeeds::default())?,
    };
    let learned = form_learning::learn_from_inputs(&opened, settings, storage, &reject, progress);
    let learned = learned?;
    let table = match settings.recipe.form_table() {
        Some(table) => table.extend_with(&learned.table),
        None => learned.table,
    };
    let (rejected, rejected_rows, _) = bad_rows.prepare_output()?;
    let staged = stage_table(&table, output)?;
    commit_all(std::iter::once(staged).chain(rejected_rows))?;
    let documents_of_forms = table.forms().iter().map(|form| form.documents).sum();
    Ok(FormsSummary {
        documents: learned.documents,
        forms: table.forms().len() as u64,
        documents_of_forms,
        rejected,
        bytes: learned.bytes,
        seconds: started.elapsed().as_secs_f64(),
        recipe: settings.recipe.name.clone(),
        recipe_id: settings.recipe.recipe_id().to_string(),
    })
}

fn stage_table(table: &FormTable, output: &OutputTarget) -> Result<StagedOutput> {
    let mut writer = ByteWriter::create_output(output)?;
    writer.write_bytes(table.to_toml().as_bytes())?;
    writer.prepare_output()
}
