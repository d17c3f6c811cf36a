//! Runs over files: deduplication, pairs, planted corpora, fingerprints, document frequencies of terms,
//! and evaluation on labelled texts.
//!
//! ```text
//! read → sketch → find candidates → verify → verdict → write
//! ```
//!
//! All threads read the inputs once, in blocks. Each document leaves a sketch and the place of its row.
//! Candidate pairs are verified on features that are made again from the rows. Kept rows are copied as
//! soon as their verdicts are final.

mod audit;
mod corpus;
mod dedup;
mod documents;
mod evaluate;
pub(crate) mod fingerprint;
mod forecast;
mod idf;
pub(crate) mod ids;
mod labelled;
mod lengths;
pub(crate) mod ordered;
mod pairs;
mod plant;
mod progress;
pub(crate) mod read;
pub(crate) mod rejected;
mod sampled;
mod segment;
mod settings;
mod summary;
mod tune;

use crate::error::{Error, Result};

pub use crate::rule::{measure_name, method_name};
pub use audit::{AuditReport, ByEdit, ByLength, Planted, Share};
pub use dedup::dedup;
pub use documents::{parse_time, part_value};
pub use evaluate::{
    ClusterFiles, ClusterSummary, EvaluateSettings, EvaluateSummary, SettingSummary, Truth,
    clusters, evaluate, lowest_threshold, measured, thresholds_from, usual_measure,
};
pub use fingerprint::{
    Fingerprint, FingerprintSettings, FingerprintSummary, Fingerprinter, Sketch, fingerprint,
};
pub use forecast::{Forecast, ForecastPairs, forecast};
pub use idf::{IdfSettings, IdfSummary, idf};
pub use ids::RepeatedIds;
pub use labelled::{
    ContradictoryLabels, Grades, GroupTexts, LabelledInputs, LabelledRows, PairFields, Read,
    read_labelled,
};
pub use pairs::pairs;
pub use plant::{Effect, Left, PlantOutputs, PlantSettings, PlantSummary, plant};
pub use progress::{Progress, Silent, Stage};
pub use sampled::CorpusSample;
pub use segment::{
    Listing, SegmentSettings, SegmentSummary, SegmentTexts, segment, weight_in_digits,
};
pub use settings::{
    AuditSettings, DedupOutputs, Keep, PairsOutputs, RunInputs, Settings, Window, parse_duration,
    parse_keep,
};
pub use summary::{
    ByRoute, Histogram, LargeCluster, MixedValues, PairsSummary, States, Summary, Suspicion,
};
pub use tune::{
    Price, RemovedShare, TriedDocuments, TuneSettings, TuneSummary, TunedSummary, parse_goal, tune,
};

/// Runs `work` in a new thread pool of the given size.
///
/// # Errors
/// If the threads cannot be started, and the errors of `work`.
pub fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .build();
    let pool = pool.map_err(|cause| {
        Error::usage(format!("cannot start {threads} threads: {cause}")).with_source(cause)
    })?;
    pool.install(work)
}
