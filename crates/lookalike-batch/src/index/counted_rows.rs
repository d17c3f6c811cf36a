//! The table of all rows of an index with the documents for which they stand.

use std::path::Path;

use lookalike_io::error::Result;
use lookalike_io::sink::{
    OutputTarget, StagedOutput, TableCell, TableColumn, TableWriter, commit_all,
};
use serde::Serialize;

use crate::index::counts::CountsReader;
use crate::index::directory;
use crate::index::manifest::IndexManifest;
use crate::index::search::refuse_index;
use crate::index::segments::open_stored_segment;
use crate::run::sort_sources;

/// The result of writing the counts of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountsSummary {
    /// Rows written.
    pub rows: u64,
    /// Documents for which they stand.
    pub documents: u64,
    /// Rows among them, at most, that were added by something else than a run that counts: their counts begin later.
    pub uncounted: u64,
    /// The field with the sources of documents, if runs have counted sources.
    pub sources: Option<String>,
}

/// Writes a table with the columns `id`, `copies` and, if the index has sources, `sources`: a row for each row of the
/// index that is not removed, in their order. Sources are a JSON list, the most frequent first, at most `most_sources`.
///
/// # Errors
/// If `index_path` is not an index or is damaged, or if the table cannot be written.
pub fn write_counts(
    index_path: &Path,
    output: &OutputTarget,
    most_sources: usize,
) -> Result<CountsSummary> {
    refuse_index(output, index_path)?;
    let (summary, staged) = directory::read_consistently(index_path, |manifest| {
        write_table(index_path, &manifest, output, most_sources)
    })?;
    commit_all(vec![staged])?;
    Ok(summary)
}

fn write_table(
    index_path: &Path,
    manifest: &IndexManifest,
    output: &OutputTarget,
    most_sources: usize,
) -> Result<(CountsSummary, StagedOutput)> {
    let mut columns = vec![TableColumn::Text("id"), TableColumn::Integer("copies")];
    let has_sources = manifest.sources.is_some();
    columns.extend(has_sources.then_some(TableColumn::Text("sources")));
    let mut table = TableWriter::create_table(output, &columns, None)?;
    let mut summary = CountsSummary {
        rows: 0,
        documents: 0,
        uncounted: manifest
            .segments
            .iter()
            .map(|entry| entry.count_uncounted())
            .sum(),
        sources: manifest.sources.clone(),
    };
    for entry in &manifest.segments {
        let mut stored = open_stored_segment(index_path, entry)?;
        stored.keep_recent_pages();
        let mut counts = CountsReader::open_counts(index_path, entry)?;
        for row in (0..entry.rows).filter(|&row| !stored.removed.contains_row(row as u32)) {
            let mut counted = counts.counts_of(row as u32, entry.rows)?;
            sort_sources(&mut counted.sources);
            let names = counted
                .sources
                .iter()
                .take(most_sources)
                .map(|(name, _)| name);
            let sources = serde_json::json!(names.collect::<Vec<_>>()).to_string();
            let id = stored.ids.id_of_row(row)?;
            let mut cells = vec![TableCell::Text(&id), TableCell::Integer(counted.copies)];
            cells.extend(has_sources.then_some(TableCell::Text(&sources)));
            table.push_row(&cells)?;
            summary.rows += 1;
            summary.documents += counted.copies;
        }
    }
    Ok((
        summary,
        StagedOutput::even_if_unread(table.prepare_table())?,
    ))
}
