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
mod caller_pool;
mod corpus_rows;
mod dedup;
mod documents;
mod evaluate;
pub(crate) mod fingerprint;
mod forecast;
mod head;
mod idf;
mod idle_pools;
pub(crate) mod ids;
mod index_matches;
mod labelled;
mod length_classes;
pub(crate) mod ordered_pipeline;
mod out_of_core;
mod pair_sample;
mod pairs;
mod passages;
mod person_decisions;
mod plant;
mod progress;
mod read_corpus;
pub(crate) mod rejected;
mod repeated_text;
pub mod report;
pub(crate) mod row_reader;
mod sampled;
mod segment;
mod settings;
mod summary;
mod tune;
mod work_directory;

use lookalike_io::error::{Error, Result};

pub use audit::{
    AuditFindings, AuditReport, ByEdit, ByLength, CountedDocuments, EstimatedShare, PartnerFinding,
    PlantedReport, RemovedSample, RemovedTexts, SampleDraw, check_shuffle_audit,
};
pub use caller_pool::run_in_caller;
pub use dedup::{ShardOutcome, run_dedup, run_dedup_beside_index, run_resumable_dedup, run_shard};
pub use documents::{parse_time, part_value};
pub use evaluate::{
    ClusterFiles, ClusterSummary, EvaluateSettings, EvaluateSummary, LabelSummary, SettingSummary,
    evaluate_clusters, lowest_threshold, options_to_measure, run_evaluation, thresholds_from,
    usual_measure,
};
pub use fingerprint::{
    FingerprintSettings, FingerprintSummary, SketchKind, SketchValue, TextFingerprinter,
    fingerprint,
};
pub use forecast::{ForecastPairs, RunForecast, forecast_run};
pub use head::{HeadField, HeadRow, HeadSettings, InputHead, read_head};
pub use idf::{IdfPlan, IdfSettings, IdfSummary, write_frequencies};
pub use ids::RepeatedIds;
pub use labelled::{
    ContradictoryLabels, GradeThresholds, GroupTexts, LabelledInputs, LabelledRows, PairFields,
    ReadLabels, read_labelled,
};
pub use out_of_core::{MemoryLimit, MemoryPlan};
pub use pair_sample::{SampledDocument, SampledPair, SimilarityBand};
pub use pairs::find_pairs;
pub use passages::{
    BoilerplateExample, BoilerplateLimit, BoilerplateSummary, CopiedPair, DescribedPassage,
    OffsetUnit, PassageEvaluation, PassageFiles, PassageOrder, PassageOutputs, PassagePlan,
    PassageRunLimits, PassageRunSettings, PassageTableRow, PassagesSummary, TextDocument,
    TextPassages, evaluate_passages, find_passages, find_passages_of_texts,
    parse_boilerplate_limit,
};
pub use plant::{
    EditEffect, PlantOutputs, PlantSettings, PlantSummary, RemainingSimilarity, run_plant,
};
pub use progress::{ProgressListener, RunStage, SilentProgress};
pub use repeated_text::{RepeatedTextAction, RepeatedTextSettings, RepeatedTextSummary};
pub use sampled::CorpusSample;
pub use segment::{
    SegmentSettings, SegmentSummary, SegmentTexts, TermListing, run_segment, weight_in_digits,
};
pub use settings::{
    AuditSettings, DedupOutputs, KeepOrder, PairsOutputs, RunInputs, RunSettings, RunWindow,
    parse_keep,
};
pub use summary::{
    ByRoute, DedupSummary, LargeCluster, MixedValues, PairsSummary, SimilarityHistogram,
    SpilledRuns, SpilledSummary, SuspicionKind, SuspiciousCluster, TextStateCounts,
};
pub use tune::{
    RemovedShare, SettingPrice, TriedDocuments, TuneSettings, TuneSummary, TunedSummary,
    parse_goal, run_tuning,
};
pub use work_directory::{
    ShardNumber, ShardStage, ShardsStatus, StageProgress, WorkSettings, WorkStage, WorkStatus,
    read_shards_status, read_work_status,
};

impl MemoryLimit {
    /// Returns `true` if inputs of so many bytes cannot reach the limit and nobody has set it, so that they need not be
    /// measured.
    pub(crate) fn is_far_above(self, bytes: u64) -> bool {
        !self.is_set && self.working_set.is_none() && bytes <= self.bytes / 16
    }
}

/// Runs `work` in a thread pool of the given size: the one of the calling thread if it has that size, else one of its
/// own, or for one thread an idle one.
///
/// # Errors
/// If the threads cannot be started, and the errors of `work`.
pub fn run_in_pool<T: Send>(threads: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if rayon::current_thread_index().is_some() && rayon::current_num_threads() == threads {
        return work();
    }
    if threads > 1 {
        return start_pool(threads)?.install(work);
    }
    let pool = match idle_pools::take_pool() {
        Some(pool) => pool,
        None => start_pool(1)?,
    };
    let done = pool.install(work);
    idle_pools::give_back(pool);
    done
}

fn start_pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|cause| {
        Error::usage_error(format!("cannot start {threads} threads: {cause}")).with_source(cause)
    })
}
