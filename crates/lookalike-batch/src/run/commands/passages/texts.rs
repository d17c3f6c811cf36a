//! Passages of documents in memory: the run over files, without files.

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike_io::error::Result;
use lookalike_io::source::{MemoryTable, ReadOptions, RowSource};
use serde::{Deserialize, Serialize};

use crate::match_options::OptionSpelling;
use crate::run::commands::passages::search::PassageRow;
use crate::run::commands::passages::settings::{
    BoilerplateLimit, OffsetUnit, PassageOrder, PassageOutputs, PassageRunSettings, PassagesSummary,
};
use crate::run::commands::passages::{ReturnedResults, run_passages};
use crate::run::progress::SilentProgress;
use crate::run::settings::RunInputs;
use crate::threads::run_in_pool;

/// A document in memory.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextDocument {
    /// Its name in the result.
    pub id: String,
    /// Its text.
    pub text: String,
}

impl PassageRunSettings {
    /// Returns the settings for documents in memory, on this number of threads; everything else is as usual.
    pub fn for_texts(recipe: Recipe, passages: PassageSettings, threads: usize) -> Self {
        Self {
            recipe,
            passages,
            max_documents: BoilerplateLimit::default(),
            read: ReadOptions::default(),
            time: None,
            window: None,
            within: None,
            index: None,
            offsets: OffsetUnit::default(),
            order: PassageOrder::default(),
            described: 0,
            threads,
            strict: false,
            memory: None,
            limits: None,
            spelling: OptionSpelling::Fields,
        }
    }
}

/// A row of the table of passages, with the fields that the table has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassageTableRow {
    /// Id of the document.
    pub document: String,
    /// Id of the source.
    pub source: String,
    /// First position in the document, in the unit of the run.
    pub start: usize,
    /// Position behind the passage in the document.
    pub end: usize,
    /// First position in the source.
    pub source_start: usize,
    /// Position behind the passage in the source.
    pub source_end: usize,
    /// Words and single characters of the document's part.
    pub length: usize,
    /// Share of equal tokens of both parts.
    pub similarity: f64,
    /// `verbatim`, `edited`, `reordered` or `reworded`.
    pub kind: &'static str,
}

impl PassageTableRow {
    /// Returns the bytes of memory, with twice the room of the row, because lists of rows grow.
    pub(super) fn memory_bytes(&self) -> usize {
        2 * size_of::<Self>() + self.document.len() + self.source.len()
    }

    pub(super) fn new(row: &PassageRow) -> Self {
        let [document, source] = row.ids.each_ref().map(|id| id.to_string());
        Self {
            document,
            source,
            start: row.place.start,
            end: row.place.end,
            source_start: row.source_place.start,
            source_end: row.source_place.end,
            length: row.length,
            similarity: row.similarity,
            kind: row.kind,
        }
    }
}

/// The passages of documents in memory.
#[derive(Debug, Clone)]
pub struct TextPassages {
    /// Totals, as a run over files has them.
    pub summary: PassagesSummary,
    /// All passages, in the order of the settings.
    pub rows: Vec<PassageTableRow>,
    /// The report as one HTML page, if it was asked for.
    pub page: Option<String>,
    /// `false` if the limits of the settings ended the search early.
    pub is_complete: bool,
}

/// Finds the passages that documents share with earlier ones, or with those of `against` if there are any. The result is
/// that of [`find_passages`](super::find_passages) over files with the same documents. `page` asks for the report, and
/// names the language in which it opens; `Some(None)` leaves the language to the browser.
///
/// # Errors
/// If the settings contradict each other, a text is too long, or the threads cannot be started.
pub fn find_passages_of_texts(
    documents: &[TextDocument],
    against: &[TextDocument],
    settings: &PassageRunSettings,
    page: Option<Option<&'static str>>,
) -> Result<TextPassages> {
    let table = |name: &str, documents: &[TextDocument]| {
        let pairs = documents
            .iter()
            .map(|document| (&*document.id, &*document.text));
        RowSource::Table(MemoryTable::from_texts(name, pairs))
    };
    let inputs = RunInputs {
        documents: table("documents", documents),
        against: match against {
            [] => RowSource::default(),
            sources => table("against", sources),
        },
    };
    let outputs = PassageOutputs {
        passages: None,
        rejected: None,
        extracted: None,
        report: None,
    };
    let returned = ReturnedResults { rows: true, page };
    let finished = run_in_pool(settings.threads, || {
        run_passages(&inputs, settings, &outputs, returned, &SilentProgress)
    })?;
    Ok(TextPassages {
        summary: finished.summary,
        rows: finished.rows,
        page: finished.page,
        is_complete: finished.is_complete,
    })
}
