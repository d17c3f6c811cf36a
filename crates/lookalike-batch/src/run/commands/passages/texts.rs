//! Passages of documents in memory: the run over files, without files.

use lookalike::Recipe;
use lookalike::passages::PassageSettings;
use lookalike_comparison::passage_table::PassageTableRow;
use lookalike_io::error::Result;
use lookalike_io::source::{MemoryTable, RowSource};
use lookalike_options::boilerplate_limit::BoilerplateLimit;
use lookalike_options::match_options::OptionSpelling;

use crate::run::commands::passages::settings::{
    OffsetUnit, PassageOrder, PassageOutputs, PassageRunSettings, PassagesSummary,
};
use crate::run::commands::passages::{ReturnedResults, run_passages};
use crate::run::progress::SilentProgress;
use crate::run::settings::{RunInputs, RunSettings};
use crate::threads::run_in_pool;

/// A document in memory.
#[derive(Debug, Clone, Copy)]
pub struct TextDocument<'a> {
    /// Its name in the result.
    pub id: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl TextDocument<'_> {
    /// Returns documents as the rows of a table.
    fn to_source(name: &str, documents: &[TextDocument<'_>]) -> RowSource {
        let pairs = documents
            .iter()
            .map(|document| (document.id, document.text));
        RowSource::Table(MemoryTable::from_texts(name, pairs))
    }
}

impl PassageRunSettings {
    /// Returns the settings for documents in memory, on this number of threads; everything else is as usual. The summary has
    /// the whole of a common text.
    pub fn for_texts(recipe: Recipe, passages: PassageSettings, threads: usize) -> Self {
        Self {
            reading: RunSettings {
                recipe,
                threads,
                spelling: OptionSpelling::Fields,
                ..RunSettings::default()
            },
            passages,
            max_documents: BoilerplateLimit::default(),
            base: RowSource::default(),
            index: None,
            offsets: OffsetUnit::default(),
            order: PassageOrder::default(),
            described: 0,
            common_characters: usize::MAX,
            limits: None,
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

/// Finds the passages that documents share with earlier ones, or with those of `against` if there are any, without what
/// stands in a text of `base`. The result is
/// that of [`find_passages`](super::find_passages) over files with the same documents. `page` asks for the report, and
/// names the language in which it opens; `Some(None)` leaves the language to the browser.
///
/// # Errors
/// If the settings contradict each other, a text is too long, or the threads cannot be started.
pub fn find_passages_of_texts(
    documents: &[TextDocument<'_>],
    against: &[TextDocument<'_>],
    base: &[TextDocument<'_>],
    settings: &PassageRunSettings,
    page: Option<Option<&'static str>>,
) -> Result<TextPassages> {
    let table = |name: &str, documents: &[TextDocument<'_>]| match documents {
        [] => RowSource::default(),
        documents => TextDocument::to_source(name, documents),
    };
    let inputs = RunInputs {
        documents: TextDocument::to_source("documents", documents),
        against: table("against", against),
    };
    let settings = &PassageRunSettings {
        base: table("base", base),
        ..settings.clone()
    };
    let outputs = PassageOutputs {
        passages: None,
        rejected: None,
        extracted: None,
        report: None,
    };
    let returned = ReturnedResults { rows: true, page };
    let finished = run_in_pool(settings.reading.threads, || {
        run_passages(&inputs, settings, &outputs, returned, &SilentProgress)
    })?;
    Ok(TextPassages {
        summary: finished.summary,
        rows: finished.rows,
        page: finished.page,
        is_complete: finished.is_complete,
    })
}
