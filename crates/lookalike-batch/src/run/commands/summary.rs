//! Results of runs, for people and programs.

use lookalike::Threshold;
use lookalike::plan::MatchPlan;
use lookalike::similarity::Route;
use serde::{Serialize, Serializer};

use crate::decisions::DecisionSummary;
use crate::index::run_index::RunIndexSummary;
use crate::run::commands::repeated_text::RepeatedTextSummary;
use crate::run::execution::audit::report::AuditReport;
use crate::run::execution::form_learning::recipe_as_given;
use crate::run::execution::out_of_core::grouping::SpilledSummary;
use crate::run::execution::run_corpus::RunCorpus;
use crate::run::execution::run_stages::FormUse;
use crate::run::reading::documents::{MixedValues, TextStateCounts};
use crate::run::report::band_sample::SimilarityBand;
use crate::run::report::similarity_histogram::SimilarityHistogram;

/// Part of the result of a run that compares documents, which `dedup` and `pairs` have in common.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    /// Rows that could not be used.
    pub rejected: u64,
    /// Bytes of input, after decompression.
    pub bytes: u64,
    /// Seconds from start to the last synced byte; with a report, to the moment when the report is written, because both
    /// tell the same time.
    pub seconds: f64,
    /// `auto`, `minhash`, …
    pub method: &'static str,
    /// `jaccard`, `levenshtein`, …
    pub measure: &'static str,
    /// Smallest Jaccard index for which candidates were found, if another measure decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_threshold: Option<f64>,
    /// Smallest similarity of a match.
    pub threshold: f64,
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe, without the forms that the run has learned itself. Decisions name it.
    pub recipe_id: String,
}

/// Least seconds of a run whose speed is told. The speed of a shorter one is that of its start.
const LEAST_MEASURED_SECONDS: f64 = 0.05;

/// Returns the bytes of input that a run has read per second of all its stages. `None` if the run is too short.
pub fn bytes_per_second(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > LEAST_MEASURED_SECONDS).then(|| bytes as f64 / seconds)
}

impl RunSummary {
    /// Summarises a run that is not over; `seconds` is still 0.
    pub(super) fn new(corpus: &RunCorpus, plan: &MatchPlan, rejected: u64) -> Self {
        let settings = plan.match_settings();
        Self {
            rejected,
            bytes: corpus.documents.bytes,
            seconds: 0.0,
            method: settings.method.name(),
            measure: settings.measure.name(),
            candidate_threshold: plan.separate_candidate_threshold().map(Threshold::get),
            threshold: plan.threshold().get(),
            recipe: corpus.run_recipe().name.clone(),
            recipe_id: recipe_as_given(corpus.run_recipe()).recipe_id().to_string(),
        }
    }
}

/// The result of a dedup run.
#[derive(Debug, Clone, Serialize)]
pub struct DedupSummary {
    /// The way in which a next run keeps the filled forms that this one removed.
    #[serde(skip)]
    pub form_advice: FormAdvice,
    /// Documents read, without those of `--against`.
    pub documents: u64,
    /// Documents of `--against`.
    pub against: u64,
    /// The index of `--library`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<RunIndexSummary>,
    /// Documents that have the id of an earlier document of the same inputs.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_ids: u64,
    /// Documents that have the id of a document of `--against`, or its number if rows are numbered.
    /// Tables distinguish the two by source and row.
    #[serde(skip_serializing_if = "is_zero")]
    pub shared_ids: u64,
    /// Counts of numbers and strings in the field of `--keep`, if it has both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed_values: Option<MixedValues>,
    /// Documents kept.
    pub kept: u64,
    /// Documents removed.
    pub removed: u64,
    /// Removed documents among these that represent a cluster of which no document is kept; `None` if each cluster keeps
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Clusters: kept documents that at least one removed document names.
    pub clusters: u64,
    /// Components: groups of at least two documents connected by verified pairs. `None` if not asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<u64>,
    /// Its inputs, its recipe and how documents were compared.
    #[serde(flatten)]
    pub run: RunSummary,
    /// Removed documents by route: texts equal after normalisation, exact join, MinHash, and so on.
    pub by_route: ByRoute,
    /// Documents without features: too short for an n-gram, only symbols, or empty.
    pub states: TextStateCounts,
    /// The ten largest clusters, largest first.
    pub largest: Vec<LargeCluster>,
    /// Clusters that a person should inspect.
    pub suspicious: Vec<SuspiciousCluster>,
    /// Removed documents by similarity: counts for [0.00, 0.05), …, [0.95, 1.00), and exactly 1.
    pub histogram: SimilarityHistogram,
    /// The part that forms took in the run, if documents were compared by forms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forms: Option<FormUse>,
    /// Estimate of what the run missed, if it was audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
    /// Decisions of a person, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionSummary>,
    /// Text of kept documents that stands in earlier ones, if it was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passages: Option<RepeatedTextSummary>,
    /// The share of the run that went to temporary files, if it was out of core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<SpilledSummary>,
    /// Seconds of each stage.
    pub stages: Vec<(&'static str, f64)>,
}

/// The data that a command wrote to temporary files, in sorted pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SpilledData {
    /// Bytes that were written to temporary files.
    pub bytes: u64,
    /// Number of sorted pieces.
    pub runs: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Removed documents by the route that found their match.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByRoute([u64; Route::ALL.len()]);

impl ByRoute {
    /// Counts a document whose match was found by a route.
    pub fn count_removal(&mut self, route: Route) {
        self.0[route as usize] += 1;
    }

    /// Returns all routes with the numbers of their documents.
    pub fn counts(&self) -> impl Iterator<Item = (Route, u64)> {
        Route::ALL.into_iter().zip(self.0)
    }
}

/// An object with the number of each route by its name. Decisions are left out if there are none.
impl Serialize for ByRoute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = self
            .counts()
            .filter(|&(route, count)| route != Route::Decision || count > 0);
        serializer.collect_map(shown.map(|(route, count)| (route.name(), count)))
    }
}

/// A cluster with many documents.
#[derive(Debug, Clone, Serialize)]
pub struct LargeCluster {
    /// Id of the representative, which names the cluster.
    pub cluster: String,
    /// Documents in it, the representative included.
    pub documents: u64,
    /// Smallest similarity between a member and the representative.
    pub least_similarity: f64,
}

/// A cluster or component that a person should inspect.
#[derive(Debug, Clone, Serialize)]
pub struct SuspiciousCluster {
    /// Id of the representative.
    pub cluster: String,
    /// The kind of suspicion.
    pub kind: SuspicionKind,
    /// Number of removed documents if a cluster may be filled forms; number of connected clusters if a component is
    /// stretched.
    pub count: u64,
    /// A phrase that says what is suspicious.
    pub reason: String,
}

/// The way in which a next run keeps the filled forms that a run removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormAdvice {
    /// There is no way: the recipe can have no forms.
    Impossible,
    /// A run that learns forms.
    Learn,
    /// A table of forms with those of the inputs.
    ExtendTable,
    /// A new index, because an index keeps its forms.
    NewIndex,
}

/// The reason why a cluster or component is suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SuspicionKind {
    /// Many documents were removed that are similar to the kept one and not equal: they may be filled forms that say
    /// different things.
    Form,
    /// It connects many clusters by chains of matches.
    Stretched,
}

/// The result of a pairs run.
#[derive(Debug, Clone, Serialize)]
pub struct PairsSummary {
    /// Documents read.
    pub documents: u64,
    /// Matching pairs, which are written.
    pub pairs: u64,
    /// Pairs that are similar enough and are kept apart by their form, title or numbers, if they are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<u64>,
    /// Documents whose text equals that of an earlier document that they may match by `--window` and `--within`. 0 if all
    /// pairs of equal texts are listed, because they count as pairs then.
    pub equal_texts: u64,
    /// Documents that have the id of an earlier document.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_ids: u64,
    /// Its inputs, its recipe and how documents were compared.
    #[serde(flatten)]
    pub run: RunSummary,
    /// Pairs by similarity: counts for [0.00, 0.05), …, [0.95, 1.00), and exactly 1.
    pub histogram: SimilarityHistogram,
    /// Sample of the pairs of each band of similarity from the threshold on, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Vec<SimilarityBand>>,
    /// The part that forms took in the run, if documents were compared by forms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forms: Option<FormUse>,
    /// Estimate of what the run missed, if it was audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
    /// The share of the run that went to temporary files, if it was out of core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<SpilledSummary>,
}
