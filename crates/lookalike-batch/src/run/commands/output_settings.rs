//! Settings of the outputs of the dedup and pairs runs: which are wanted, and where they go.

use lookalike::dedup::CopyPairs;
use lookalike_io::sink::OutputTarget;

use crate::run::commands::repeated_text::RepeatedTextSettings;
use crate::run::execution::work_directory::NamedOutput;
use crate::run::report::ReportOutput;

/// Outputs of a dedup run; all are optional.
#[derive(Debug, Clone, Default)]
pub struct DedupOutputs {
    /// The kept rows. `annotate` and `passages` change what is written.
    pub kept: Option<OutputTarget>,
    /// `true` to write all rows, with the fields `cluster`, `duplicate_of` and `similarity` added.
    pub annotate: bool,
    /// A table of the removed documents: `id, kept, similarity, method, threshold, cluster, source,
    /// row, kept_source, kept_row`, and `form` if documents are compared by forms. Rows count from 1 within their source.
    pub removed: Option<OutputTarget>,
    /// A table of the documents in clusters: `id, cluster, representative, similarity, kept, source,
    /// row`.
    pub clusters: Option<OutputTarget>,
    /// `true` to add `component` to the table of clusters and to count components. A component is the
    /// documents that are connected by verified pairs.
    pub components: bool,
    /// The rejected rows, byte for byte.
    pub rejected: Option<OutputTarget>,
    /// Search for repeated text: what an earlier kept document has too is marked or left out, and the first occurrence
    /// stays. It cannot be combined with `annotate`.
    pub passages: Option<RepeatedTextSettings>,
    /// A table of the repeated text: `id, first, start, end, first_start, first_end, length, source, row, first_source,
    /// first_row, text`. Positions count characters from 0.
    pub cuts: Option<OutputTarget>,
    /// A report of the run as an HTML file.
    pub report: Option<ReportOutput>,
}

impl DedupOutputs {
    /// Returns the outputs that are wanted, each with the name of its content.
    pub(super) fn named_outputs(&self) -> Vec<NamedOutput<'_>> {
        let kept_name = match (&self.passages, self.annotate) {
            (Some(passages), _) => format!("kept, {passages:?}"),
            (None, true) => "annotated".to_owned(),
            (None, false) => "kept".to_owned(),
        };
        let clusters_name = if self.components {
            "clusters, components"
        } else {
            "clusters"
        };
        let report = self.report.as_ref().map(|report| &report.target);
        let targets = [
            (&*kept_name, self.kept.as_ref()),
            ("removed", self.removed.as_ref()),
            (clusters_name, self.clusters.as_ref()),
            ("rejected", self.rejected.as_ref()),
            ("cuts", self.cuts.as_ref()),
            ("report", report),
        ];
        let named = targets.into_iter().filter_map(|(name, target)| {
            Some(NamedOutput {
                name: name.to_owned(),
                target: target?,
            })
        });
        named.collect()
    }

    /// Returns no outputs, but the settings on which the counts of the summary depend.
    pub(super) fn without_files(&self) -> Self {
        Self {
            components: self.components,
            passages: self.passages,
            ..Self::default()
        }
    }
}

/// Outputs of a pairs run.
#[derive(Debug, Clone)]
pub struct PairsOutputs {
    /// A table of pairs: `a, b, similarity, a_source, a_row, b_source, b_row`, and `form` if documents are compared by
    /// forms. Rows count from 1 within their source.
    pub pairs: Option<OutputTarget>,
    /// Largest number of pairs that [`PairsSummary::sample`](crate::run::PairsSummary::sample) has of each band
    /// of similarity; `None` for no sample.
    pub sample: Option<usize>,
    /// The pairs of equal texts to list.
    pub copies: CopyPairs,
    /// `true` to list also pairs that are similar enough and are kept apart by their form, title or numbers. The reason is
    /// in the column `apart`, which is empty for pairs that match.
    pub apart: bool,
    /// The rejected rows, byte for byte.
    pub rejected: Option<OutputTarget>,
    /// A report of the run as an HTML file.
    pub report: Option<ReportOutput>,
}
