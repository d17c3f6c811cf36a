//! Outputs of the dedup and pairs runs.

use lookalike::dedup::CopyPairs;
use lookalike_io::sink::OutputTarget;

use crate::run::commands::repeated_text::RepeatedTextSettings;
use crate::run::report::ReportOutput;

/// Outputs of a dedup run; all are optional.
#[derive(Debug, Clone, Default)]
pub struct DedupOutputs {
    /// The kept rows, unchanged; or, with `annotate`, all rows with added fields.
    pub kept: Option<OutputTarget>,
    /// `true` to write all rows, with the fields `cluster`, `duplicate_of` and `similarity` added.
    pub annotate: bool,
    /// A table of the removed documents: `id, kept, similarity, method, threshold, cluster, source,
    /// row, kept_source, kept_row`. Rows count from 1 within their source.
    pub removed: Option<OutputTarget>,
    /// A table of the documents in clusters: `id, cluster, representative, similarity, kept, source,
    /// row`.
    pub clusters: Option<OutputTarget>,
    /// `true` to add `component` to the table of clusters and to count components. A component is the
    /// documents that are connected by verified pairs.
    pub components: bool,
    /// The rejected rows, byte for byte.
    pub rejected: Option<OutputTarget>,
    /// Whether text of kept documents that stands in an earlier one is marked or left out. Its first occurrence stays.
    /// It cannot be combined with `annotate`.
    pub passages: Option<RepeatedTextSettings>,
    /// A table of that text: `id, first, start, end, first_start, first_end, length, source, row, first_source,
    /// first_row, text`. Positions count characters from 0.
    pub cuts: Option<OutputTarget>,
    /// A report of the run as an HTML file.
    pub report: Option<ReportOutput>,
}

/// Outputs of a pairs run.
#[derive(Debug, Clone)]
pub struct PairsOutputs {
    /// A table of pairs: `a, b, similarity, a_source, a_row, b_source, b_row`. Rows count from 1
    /// within their source.
    pub pairs: Option<OutputTarget>,
    /// Largest number of pairs that [`PairsSummary::sample`](super::PairsSummary::sample) has of each band
    /// of similarity, if it is wanted.
    pub sample: Option<usize>,
    /// The pairs of equal texts to list.
    pub copies: CopyPairs,
    /// The rejected rows, byte for byte.
    pub rejected: Option<OutputTarget>,
    /// A report of the run as an HTML file.
    pub report: Option<ReportOutput>,
}
