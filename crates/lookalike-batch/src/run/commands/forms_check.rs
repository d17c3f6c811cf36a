//! Lists the documents of every form of a table, with the values of their slots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lookalike::Recipe;
use lookalike::compare::FilledForm;
use lookalike::forms::FormTable;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableRows, TableWriter};
use lookalike_io::source::{ReadOptions, RowSource};
use serde::Serialize;

use crate::run::commands::document_table::write_document_table;
use crate::run::progress::ProgressListener;
use crate::run::reading::rejected_rows::OpenedRows;
use crate::run::reading::row_analysis::id_text;

/// Settings of a run that lists the documents of forms.
#[derive(Debug, Clone)]
pub struct FormCheckSettings {
    /// Recipe without forms.
    pub recipe: Recipe,
    /// The table that is checked.
    pub table: FormTable,
    /// Options of reading.
    pub read: ReadOptions,
    /// Number of threads, from 1.
    pub threads: usize,
    /// `true` to stop at the first bad row.
    pub strict: bool,
}

/// The result of a run that lists the documents of forms.
#[derive(Debug, Clone, Serialize)]
pub struct FormCheckSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents of a form of the table.
    pub documents_of_forms: u64,
    /// The forms of the table, in its order.
    pub forms: Vec<CheckedForm>,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte.
    pub seconds: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe with the table.
    pub recipe_id: String,
}

/// A form with the number of its documents.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedForm {
    /// Name of the form.
    pub name: String,
    /// Documents of the form.
    pub documents: u64,
}

/// Writes a table with a row for every slot of every document of a form: `id, form, slot, value`, slots from 1. Memory
/// does not grow with the input.
///
/// # Errors
/// If something cannot be read or written, or if the recipe can have no forms. The outputs are then unchanged.
pub fn check_forms(
    source: &RowSource,
    settings: &FormCheckSettings,
    output: &OutputTarget,
    rejected: Option<&OutputTarget>,
    progress: &dyn ProgressListener,
) -> Result<FormCheckSummary> {
    const TABLE_COLUMNS: [TableColumn<'_>; 4] = [
        TableColumn::Text("id"),
        TableColumn::Text("form"),
        TableColumn::Integer("slot"),
        TableColumn::Text("value"),
    ];
    let started = Instant::now();
    let recipe = settings.recipe.clone();
    let recipe = recipe.with_forms("checked-forms.toml", &settings.table)?;
    let lister = CheckedFormLister {
        analyzer: TextAnalyzer::new(&recipe),
        table: &settings.table,
        documents: settings.table.forms().iter().map(|_| 0.into()).collect(),
    };
    let done = crate::threads::run_in_pool(settings.threads, || {
        let (read, strict) = (&settings.read, settings.strict);
        let opened = OpenedRows::open_source(source, read, output, rejected, strict, progress)?;
        let table = TableWriter::create_table(output, &TABLE_COLUMNS, Some(&opened.inputs))?;
        write_document_table(opened, table, |row, worker: &mut ListingWorker, rows| {
            let id = id_text(row, &mut worker.number);
            lister.push_document(id, row.text, &mut worker.scratch, rows)
        })
    })?;
    Ok(FormCheckSummary {
        documents: done.documents,
        documents_of_forms: done.sum,
        forms: lister.list_forms(),
        rejected: done.rejected,
        bytes: done.bytes,
        seconds: started.elapsed().as_secs_f64(),
        recipe: recipe.name.clone(),
        recipe_id: recipe.recipe_id().to_string(),
    })
}

#[derive(Default)]
struct ListingWorker {
    scratch: AnalysisScratch,
    number: String,
}

struct CheckedFormLister<'a> {
    analyzer: TextAnalyzer,
    table: &'a FormTable,
    /// Number of documents of each form.
    documents: Vec<AtomicU64>,
}

impl CheckedFormLister<'_> {
    /// Adds the slots of a document. Returns 1 if it is of a form, and 0 otherwise.
    fn push_document(
        &self,
        id: &str,
        text: &str,
        scratch: &mut AnalysisScratch,
        rows: &mut TableRows,
    ) -> Result<u64> {
        let Some(filled) = FilledForm::find_form(&self.analyzer, text, scratch) else {
            return Ok(0);
        };
        let position = filled.form_position();
        self.documents[position].fetch_add(1, Ordering::Relaxed);
        let name = &self.table.forms()[position].name;
        for (slot, value) in (1..).zip(filled.values()) {
            rows.push_row(&[
                TableCell::Text(id),
                TableCell::Text(name),
                TableCell::Integer(slot),
                TableCell::Text(value),
            ])?;
        }
        Ok(1)
    }

    fn list_forms(&self) -> Vec<CheckedForm> {
        let forms = self.table.forms().iter().zip(&self.documents);
        let checked = forms.map(|(form, documents)| CheckedForm {
            name: form.name.clone(),
            documents: documents.load(Ordering::Relaxed),
        });
        checked.collect()
    }
}
