//! Runs over files: deduplication, pairs, planted corpora, fingerprints, document frequencies of terms,
//! and evaluation on labelled texts.
//!
//! ```text
//! read → sketch → link → decide → write
//! ```
//!
//! | module | part of a run |
//! |---|---|
//! | `settings` | what a user asks for |
//! | `reading` | rows of the inputs → sketched documents, in input order |
//! | `execution` | the documents in memory or in temporary files, resumable or not: links and verdicts |
//! | `report` | the page that shows a run |
//! | `commands` | one run for each command, and its outputs |
//!
//! Each module uses only those above it in this table.

pub(crate) mod commands;
pub(crate) mod execution;
mod length_classes;
pub(crate) mod progress;
pub(crate) mod reading;
mod recall_curve;
pub mod report;
pub(crate) mod settings;

pub use self::commands::copy_weights::{CopyWeight, WeightTable};
pub use self::commands::corpus_sample::CorpusSample;
pub use self::commands::decontaminate::{
    BenchmarkContamination, BoilerplateQuestion, ContaminationCut, ContaminationEvaluation,
    ContaminationFiles, DecontaminateInputs, DecontaminateOutputs, DecontaminateSettings,
    DecontaminateSummary, DecoyFindings, FormRecall, check_cut_fields, evaluate_contamination,
    run_decontaminate,
};
pub(crate) use self::commands::dedup::copy_counts::sort_sources;
pub use self::commands::dedup::kept_members::KeptMembers;
pub use self::commands::dedup::{run_dedup, run_dedup_beside_index, run_resumable_dedup};
pub use self::commands::evaluate::{
    ClusterFiles, ClusterSummary, EvaluateSettings, EvaluateSummary, LabelSummary, SettingSummary,
    evaluate_clusters, lowest_threshold, options_to_measure, run_evaluation, thresholds_from,
    usual_measure,
};
pub use self::commands::fingerprint::{FingerprintSettings, FingerprintSummary, fingerprint};
pub use self::commands::forecast::{ForecastPairs, RunForecast, forecast_run};
pub use self::commands::forms::{FormsSummary, write_form_table};
pub use self::commands::forms_check::{
    CheckedForm, FormCheckSettings, FormCheckSummary, check_forms,
};
pub use self::commands::head::{HeadField, HeadRow, HeadSettings, InputHead, read_head};
pub use self::commands::idf::{IdfSettings, IdfSummary, write_frequencies};
pub use self::commands::labelled::{
    ContradictoryLabels, GradeThresholds, GroupTexts, LabelledInputs, LabelledRows, PairFields,
    ReadLabels, read_labelled,
};
pub use self::commands::output_settings::{
    CopyFields, DedupOutputs, PairsOutputs, SourcesField, WeightField,
};
pub use self::commands::pairs::find_pairs;
pub use self::commands::passages::{
    BaseSummary, BoilerplateExample, BoilerplateSummary, CommonPassage, CopiedPair,
    DescribedPassage, GuessedFiles, OffsetUnit, PassageEvaluation, PassageFiles, PassageOrder,
    PassageOutputs, PassageRunLimits, PassageRunSettings, PassagesSummary,
    SHOWN_PASSAGE_CHARACTERS, TextDocument, TextPassages, evaluate_passages, find_passages,
    find_passages_of_texts,
};
pub use self::commands::plant::{
    EditEffect, PlantOutputs, PlantSettings, PlantSummary, RemainingSimilarity, run_plant,
};
pub use self::commands::plant_contamination::{
    PlantContaminationInputs, PlantContaminationOutputs, PlantContaminationSettings,
    PlantContaminationSummary, PlantedFormCount, run_plant_contamination,
};
pub use self::commands::repeated_text::{
    RepeatedTextAction, RepeatedTextSettings, RepeatedTextSummary,
};
pub use self::commands::segment::{
    SegmentSettings, SegmentSummary, SegmentTexts, TermListing, run_segment,
};
pub use self::commands::summary::{
    ByRoute, DedupSummary, FormAdvice, LargeCluster, PairsSummary, RunSummary, SpilledData,
    SuspicionKind, SuspiciousCluster, bytes_per_second,
};
pub use self::commands::tune::{
    RemovedShare, SettingPrice, TriedDocuments, TuneSettings, TuneSummary, TunedSummary,
    parse_goal, run_tuning,
};
pub use self::execution::audit::{
    AuditFindings, AuditReport, AuditedContents, ByEdit, ByLength, CountedDocuments,
    DifferentRemoval, EstimatedShare, PartnerFinding, PlantedReport, RemovedSample, RemovedTexts,
    SampleDraw, check_shuffle_audit,
};
pub use self::execution::out_of_core::SpilledSummary;
pub use self::execution::run_directories::PlannedDirectories;
pub use self::execution::run_stages::FormUse;
pub use self::execution::work_directory::{
    StageProgress, WorkSettings, WorkStage, WorkStatus, read_work_status,
};
pub use self::progress::{ProgressListener, RepeatedIds, RunStage, SilentProgress};
pub use self::reading::benchmarks::{
    BenchmarkInfo, BenchmarkItem, BenchmarkSet, ItemFields, RejectedItem, read_benchmarks,
};
pub use self::reading::documents::{MixedValues, TextStateCounts, partition_value, rank_of_field};
pub use self::recall_curve::RecallCurve;
pub use self::report::band_sample::{BandDocument, SampledPair, SimilarityBand};
pub use self::report::similarity_histogram::SimilarityHistogram;
pub use self::settings::{AuditSettings, FormLearning, RunInputs, RunSettings, RunWindow};
pub use crate::memory::MemoryLimit;
pub use crate::memory::contamination_plan::ContaminationPlan;
pub use crate::memory::frequency_plan::IdfPlan;
pub use crate::memory::passage_plan::PassagePlan;
pub use crate::memory::repeated_text_plan::RepeatedTextCoefficients;
pub use crate::memory::run_plan::{MemoryPlan, RunParts};
pub use crate::threads::{run_in_caller, run_in_pool};
