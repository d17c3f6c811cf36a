//! What a person may choose of a run.

use std::path::PathBuf;

use lookalike::Recipe;
use lookalike::plan;

use crate::sink::Output;
use crate::source::ReadOptions;

/// Which document of a group comes first and is kept: the total order of a run. Ties are broken by
/// position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keep {
    /// The one read first.
    #[default]
    First,
    /// The one read last.
    Last,
    /// The one with the most characters.
    Longest,
    /// The one with the largest value of a field: numbers below strings, strings by their bytes; a
    /// document without the field comes last. The field of the ids always counts as strings.
    Max(String),
    /// The one with the smallest value of a field, ordered in the same way; a document without the
    /// field comes last.
    Min(String),
}

/// How far apart in time two documents may be to match.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The largest difference that counts, in seconds.
    pub seconds: f64,
    /// The field with the time: a number (seconds since 1970) or an ISO 8601 date or date and time.
    pub field: String,
}

/// What a person may choose of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How texts become features and sketches.
    pub recipe: Recipe,
    /// How candidates are found and checked.
    pub matching: plan::Settings,
    /// How inputs are read. `fields.extra` is filled by the run itself.
    pub read: ReadOptions,
    /// Which document of a group is kept.
    pub keep: Keep,
    /// Documents match only if they have equal values of this field.
    pub within: Option<String>,
    /// Documents match only if they are near in time.
    pub window: Option<Window>,
    /// How many threads work, from 1.
    pub threads: usize,
    /// Stop at the first bad row.
    pub strict: bool,
    /// Estimate what the run misses.
    pub audit: Option<AuditSettings>,
}

/// How a run is audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// How many documents are drawn, from 1. If none is given, one in eighty as estimated from the
    /// first block, from 500 to 4,000, and 2,000 where the size of the input is not known.
    pub documents: Option<usize>,
    /// What draws them.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            recipe: Recipe::default(),
            matching: plan::Settings::default(),
            read: ReadOptions::default(),
            keep: Keep::default(),
            within: None,
            window: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            strict: false,
            audit: None,
        }
    }
}

/// What a dedup run writes; nothing is required.
#[derive(Debug, Clone, Default)]
pub struct DedupOutputs {
    /// The kept rows as they were (or, with `annotate`, all rows with added fields).
    pub kept: Option<Output>,
    /// All rows, with the fields `cluster`, `duplicate_of` and `similarity`.
    pub annotate: bool,
    /// A table of the removed documents: `id, kept, similarity, method, threshold, cluster`.
    pub removed: Option<Output>,
    /// A table of the documents of clusters: `id, cluster, representative, similarity, kept`.
    pub clusters: Option<Output>,
    /// Adds `component` to the table of clusters and counts components: documents connected by
    /// verified pairs.
    pub components: bool,
    /// The rows that could not be used, byte for byte.
    pub rejected: Option<Output>,
}

/// What a pairs run writes.
#[derive(Debug, Clone)]
pub struct PairsOutputs {
    /// A table of pairs: `a, b, similarity`.
    pub pairs: Output,
    /// Every pair of documents, not one document for each equal text.
    pub all: bool,
    /// The rows that could not be used, byte for byte.
    pub rejected: Option<Output>,
}

/// The inputs of a run.
#[derive(Debug, Clone, Default)]
pub struct RunInputs {
    /// Files, directories, globs, `-`.
    pub paths: Vec<PathBuf>,
    /// Documents that come before all others and count as kept whatever they match; they are never
    /// written.
    pub against: Vec<PathBuf>,
}
