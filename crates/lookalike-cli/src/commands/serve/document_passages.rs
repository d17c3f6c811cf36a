//! The search for passages among the documents of a request: a run over documents in memory.

use std::error::Error as _;
use std::sync::Arc;

use lookalike_batch::run::{
    PassageRunLimits, PassageRunSettings, TextDocument, find_passages_of_texts,
};
use lookalike_io::{Error, ErrorKind};
use lookalike_server::{
    DocumentPassageSearch, DocumentPassages, PassageDocument, PassageSearchError,
};
use serde_json::value::to_raw_value;

/// Finds the passages of the documents of a request, as `lookalike passages` finds them in files.
pub(super) fn find_document_passages(
    search: &DocumentPassageSearch,
) -> Result<DocumentPassages, PassageSearchError> {
    let recipe = search.recipe.clone();
    let settings = PassageRunSettings {
        limits: Some(PassageRunLimits {
            budget: Arc::clone(&search.budget),
            max_row_bytes: search.max_row_bytes,
            allows_partial: search.allows_partial,
        }),
        max_documents: search.max_documents,
        ..PassageRunSettings::for_texts(recipe, search.passages, search.threads)
    };
    let [documents, against] = [&search.documents, &search.against].map(|all| as_texts(all));
    let base = search.base.iter().map(|text| TextDocument { id: "", text });
    let base: Vec<_> = base.collect();
    let page = search.report_language;
    let found = find_passages_of_texts(&documents, &against, &base, &settings, page)
        .map_err(|error| search_error(&error))?;
    Ok(DocumentPassages {
        is_directed: found.summary.directed,
        summary: to_raw_value(&found.summary).expect("numbers and texts serialise"),
        rows: found.rows,
        page: found.page,
        is_complete: found.is_complete,
    })
}

fn as_texts(documents: &[PassageDocument]) -> Vec<TextDocument<'_>> {
    let texts = documents.iter().map(|document| TextDocument {
        id: &document.id,
        text: &document.text,
    });
    texts.collect()
}

/// Tells a search that goes beyond its limits from one that has too large a document.
fn search_error(error: &Error) -> PassageSearchError {
    let of_engine = error
        .source()
        .and_then(|cause| cause.downcast_ref::<lookalike::Error>());
    let is_costly = match of_engine {
        Some(cause) => cause.kind() == lookalike::ErrorKind::TooCostly,
        None => error.kind() == ErrorKind::Limit,
    };
    let message = error.to_string();
    if is_costly {
        PassageSearchError::TooCostly(message)
    } else {
        PassageSearchError::TooLarge(message)
    }
}
