//! The exchange of documents between a run and an index: matching documents of the index are found before the
//! verdicts, and kept documents are added to the index.
//!
//! The most similar row of the index is found for each document. These rows, and no others, become the first documents
//! of the corpus, because a document of the index that is no document's best match changes no verdict.
//!
//! Cost: each document is read and analysed once more, and looked up in the index. The size of the index does not
//! matter, except for what [`RunIndex`] opens.

use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::DocId;
use lookalike::dedup::DocumentRemoval;
use lookalike::similarity::DocumentMatch;
use lookalike_io::error::Result;
use lookalike_io::source::RowPlace;
use rayon::prelude::*;

use crate::index::counts::DocumentCounts;
use crate::index::run_index::{AddedRows, IndexHit, RunIndex, RunIndexScratch};
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::progress::{ProgressListener, RunStage};
use crate::run::settings::RunSettings;

/// Documents whose matches are collected at once.
const DOCUMENTS_AT_ONCE: usize = 1 << 18;

/// Documents between two reports of progress.
const DOCUMENTS_PER_REPORT: u64 = 256;

/// Finds the most similar row of the index for each document, and puts these rows before all documents of the corpus.
/// Returns the matches, sorted by document.
pub(in crate::run) fn find_index_matches(
    corpus: &mut RunCorpus<'_>,
    index: &RunIndex,
    progress: &dyn ProgressListener,
) -> Result<Vec<DocumentRemoval>> {
    let hits = find_hits(corpus, index, progress)?;
    let mut positions: Vec<u64> = hits.iter().map(|(_, hit)| hit.position).collect();
    positions.sort_unstable();
    positions.dedup();
    let rows = index.name_rows(&positions)?;
    let shift = rows.len() as u32;
    corpus.put_indexed_first(index.display_name(), rows);
    let matches = hits.into_iter().map(|(document, hit)| DocumentRemoval {
        document: DocId(document.0 + shift),
        kept: DocumentMatch {
            with: DocId(positions.partition_point(|&position| position < hit.position) as u32),
            similarity: hit.similarity,
            route: hit.route,
        },
    });
    Ok(matches.collect())
}

/// Returns the best row of the index for each document that matches one.
fn find_hits(
    corpus: &RunCorpus<'_>,
    index: &RunIndex,
    progress: &dyn ProgressListener,
) -> Result<Vec<(DocId, IndexHit)>> {
    let decided = corpus.known_count() as u32..corpus.len() as u32;
    progress.begin_stage(RunStage::Library, Some(decided.len() as u64));
    let done = AtomicU64::new(0);
    let mut hits = Vec::new();
    for first in decided.clone().step_by(DOCUMENTS_AT_ONCE) {
        let documents = first
            ..decided
                .end
                .min(first.saturating_add(DOCUMENTS_AT_ONCE as u32));
        let found: Vec<Option<(DocId, IndexHit)>> = documents
            .into_par_iter()
            .map_init(RunIndexScratch::default, |scratch, document| {
                let document = DocId(document);
                let mut found = Ok(None);
                corpus.visit_analysis(document, |analysis| {
                    found = index.find_best(analysis, scratch);
                })?;
                let done = 1 + done.fetch_add(1, Ordering::Relaxed);
                if done.is_multiple_of(DOCUMENTS_PER_REPORT) {
                    progress.advance_stage(done);
                }
                found.map(|hit| hit.map(|hit| (document, hit)))
            })
            .collect::<Result<_>>()?;
        hits.extend(found.into_iter().flatten());
    }
    Ok(hits)
}

/// Adds the kept documents to the index, if the run adds any, and the counts of the documents for which these and earlier
/// ones stand. The index leaves out empty texts.
pub(in crate::run) fn add_kept_documents(
    corpus: &RunCorpus<'_>,
    index: &mut RunIndex,
    settings: &RunSettings,
    is_kept: impl Fn(DocId) -> bool,
    counts: &(dyn Fn(DocId) -> DocumentCounts + Sync),
    progress: &dyn ProgressListener,
) -> Result<()> {
    if !index.adds_rows() {
        return Ok(());
    }
    let indexed = corpus.indexed.documents.iter();
    let copied = (0..).map(DocId).zip(indexed).filter_map(|(document, row)| {
        let counts = counts(document);
        (counts.copies > 0).then_some((row.position, counts))
    });
    index.add_counts(copied.collect())?;
    let known = corpus.known_count();
    let documents = &corpus.documents;
    let kept: Vec<(RowPlace, u64)> = (0..documents.len())
        .filter(|&at| is_kept(DocId((known + at) as u32)))
        .map(|at| (documents.place_of(at), documents.row_number(at)))
        .collect();
    let last = documents.len().checked_sub(1);
    let added = AddedRows {
        inputs: &corpus.opened.documents,
        rows: &kept,
        last_row: last.map_or(0, |at| documents.row_number(at)),
        counts: &|number| {
            corpus
                .document_of_row(number)
                .map(counts)
                .unwrap_or_default()
        },
    };
    index.add_rows(&added, settings, progress)
}
