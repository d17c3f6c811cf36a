//! The search for passages among the documents of a request, which the program that starts the service provides.
//!
//! Such a search is the run that `lookalike passages` makes over files. The service gives it documents, limits and a number
//! of threads ([`DocumentPassageSearch`]), and answers with what it finds. It is a function in the configuration
//! ([`ServiceConfig::find_document_passages`](crate::ServiceConfig)), because runs read and write tables: a service that
//! depended on them would contain every format of files.

use std::sync::Arc;

use lookalike::Recipe;
use lookalike::passages::{PassageBudget, PassageSettings};
use lookalike_comparison::passage_table::PassageTableRow;
use lookalike_options::boilerplate_limit::BoilerplateLimit;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Finds the passages of documents.
pub type FindDocumentPassages =
    fn(&DocumentPassageSearch) -> Result<DocumentPassages, PassageSearchError>;

/// A document of a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassageDocument {
    /// Its name in the result.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// A search for the passages that documents share with one another, or with those of `against` if there are any.
#[derive(Debug)]
pub struct DocumentPassageSearch {
    /// The documents that are searched.
    pub documents: Vec<PassageDocument>,
    /// The possible sources; without any, the documents are compared with one another.
    pub against: Vec<PassageDocument>,
    /// Texts that all documents were given, which are no part of any passage.
    pub base: Vec<String>,
    /// In how many documents a gram may be.
    pub max_documents: BoilerplateLimit,
    /// Its normalisation determines which tokens are equal.
    pub recipe: Recipe,
    /// Shortest length of a passage.
    pub passages: PassageSettings,
    /// Number of threads, from 1.
    pub threads: usize,
    /// The steps of all threads, and the bytes of memory that a thread may use for a document and its source.
    pub budget: Arc<PassageBudget>,
    /// Bytes of memory of all rows of the result.
    pub max_row_bytes: usize,
    /// `true` if a search beyond its limits ends with what it has found, and `false` if it fails.
    pub allows_partial: bool,
    /// `Some` asks for the report, and names the language in which it opens; `Some(None)` leaves it to the browser.
    pub report_language: Option<Option<&'static str>>,
}

/// The passages of documents.
#[derive(Debug)]
pub struct DocumentPassages {
    /// Totals, as JSON.
    pub summary: Box<RawValue>,
    /// `true` if it is known which of two documents is the source, because sources were given.
    pub is_directed: bool,
    /// All passages, in the order of documents, sources and positions.
    pub rows: Vec<PassageTableRow>,
    /// The report as one HTML page, if the search asks for it.
    pub page: Option<String>,
    /// `false` if the limits ended the search early.
    pub is_complete: bool,
}

/// Why a search failed. The message is a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassageSearchError {
    /// The search needs more work or memory than its limits allow.
    TooCostly(String),
    /// A document is too large.
    TooLarge(String),
}
