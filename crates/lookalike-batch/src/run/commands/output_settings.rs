//! Settings of the outputs of the dedup and pairs runs: which are wanted, and where they go.

use lookalike::dedup::CopyPairs;
use lookalike_io::sink::OutputTarget;

use crate::run::commands::copy_weights::CopyWeight;
use crate::run::commands::dedup::kept_members::KeptMembers;
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
    /// How many documents of a cluster are kept. Only [`KeptMembers::Representative`] can be combined with `annotate`.
    pub members: KeptMembers,
    /// Fields that are added to kept rows, about the documents for which these stand. Removed rows that `annotate` writes
    /// have no values in them.
    pub copy_fields: CopyFields,
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
    /// `true` if inputs without any row may replace outputs that exist. They are refused otherwise.
    pub allows_empty: bool,
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
    /// Returns the outputs that are wanted, each with the name of its content. A resumed run takes an output as written only
    /// if it has the same name, so every setting that changes a content is in its name.
    pub(super) fn named_outputs(&self) -> Vec<NamedOutput<'_>> {
        let Self {
            kept,
            annotate,
            members,
            copy_fields,
            removed,
            clusters,
            components,
            rejected,
            allows_empty: _,
            passages,
            cuts,
            report,
        } = self;
        let mut kept_name = match (passages, annotate) {
            (Some(passages), _) => format!("kept, {passages:?}"),
            (None, true) => "annotated".to_owned(),
            (None, false) => "kept".to_owned(),
        };
        if !copy_fields.is_empty() {
            kept_name = format!("{kept_name}, {copy_fields:?}");
        }
        let clusters_name = if *components {
            "clusters, components"
        } else {
            "clusters"
        };
        let members = match members {
            KeptMembers::Representative => String::new(),
            members => format!(", {members:?}"),
        };
        let report = report.as_ref().map(|report| &report.target);
        let targets = [
            (&*kept_name, kept.as_ref()),
            ("removed", removed.as_ref()),
            (clusters_name, clusters.as_ref()),
            ("rejected", rejected.as_ref()),
            ("cuts", cuts.as_ref()),
            ("report", report),
        ];
        let named = targets.into_iter().filter_map(|(name, target)| {
            Some(NamedOutput {
                name: format!("{name}{members}"),
                target: target?,
            })
        });
        named.collect()
    }

    /// Returns no outputs, but the settings on which the counts of the summary depend.
    #[must_use]
    pub fn without_files(&self) -> Self {
        let Self {
            kept: _,
            annotate: _,
            members,
            copy_fields: _,
            removed: _,
            clusters: _,
            components,
            rejected: _,
            allows_empty: _,
            passages,
            cuts: _,
            report: _,
        } = self;
        Self {
            members: *members,
            components: *components,
            passages: *passages,
            ..Self::default()
        }
    }
}

/// Fields about the documents for which a kept row stands: itself, and the removed ones that name it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CopyFields {
    /// Name of the field with their number.
    pub copies: Option<String>,
    /// The field with their sources, the values of [`RunSettings::sources`](crate::run::RunSettings::sources).
    pub sources: Option<SourcesField>,
    /// The field with a weight that follows from their number.
    pub weight: Option<WeightField>,
}

/// A field with the sources of documents, the most frequent first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcesField {
    /// Name of the field.
    pub name: String,
    /// Largest number of sources.
    pub most: usize,
}

/// A field with a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightField {
    /// Name of the field.
    pub name: String,
    /// The weight of a number of documents.
    pub rule: CopyWeight,
}

impl CopyFields {
    /// Returns `true` if no field is added.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the first name that two added fields would have. `others` are those of further added fields.
    pub(in crate::run) fn repeated_name(&self, others: &[&str]) -> Option<&str> {
        let names = [
            self.copies.as_deref(),
            self.sources.as_ref().map(|field| &*field.name),
            self.weight.as_ref().map(|field| &*field.name),
        ];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let repeated = names.iter().enumerate();
        let mut repeated = repeated
            .filter(|(at, name)| names[..*at].contains(*name) || others.contains(*name))
            .map(|(_, &name)| name);
        repeated.next()
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
