//! Evaluation: the quality of settings on labelled texts, and of clusters against a true clustering.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use lookalike::Threshold;
use lookalike::plan::{MatchMethod, SimilarityMeasure};
use lookalike::quality::evaluate::{
    BootstrapOptions, ClusterScores, EvaluatedSetting, Evaluation, EvaluationOptions,
    LabelledTexts, compare_clusters,
};
use lookalike_io::error::{Error, Result};
use lookalike_io::source::ReadOptions;
use lookalike_options::match_options::{MatchOptions, has_threshold};
use serde::Serialize;

use crate::run::commands::labelled::{
    LabelledInputs, LabelledRows, ReadLabels, read_both_clusters, read_labelled,
};
use crate::run::progress::{ProgressListener, RunStage};

/// Settings of an evaluation.
#[derive(Debug, Clone)]
pub struct EvaluateSettings {
    /// The match settings to evaluate. The threshold of each is the lowest one evaluated.
    pub settings: Vec<EvaluatedSetting>,
    /// Thresholds, and the options of confidence intervals.
    pub options: EvaluationOptions,
    /// Number of threads, from 1.
    pub threads: usize,
}

/// Counts of the labels.
#[derive(Debug, Clone, Serialize)]
pub struct LabelSummary {
    /// Labelled texts; in pairs, equal texts count once.
    pub texts: u64,
    /// Similar pairs.
    pub similar: u64,
    /// Pairs that are not similar; for groups, all pairs across groups.
    pub different: u64,
    /// Pairs whose grade is between similar and not similar.
    pub ungraded: u64,
    /// Rows that repeat a pair with the same label.
    pub repeated: u64,
    /// Pairs with contradictory labels, which were left out or have their first label.
    pub contradictory: u64,
    /// Resampling units: texts that belong together and are always resampled together.
    pub units: u64,
    /// `true` if every text is a single ASCII word, which suggests that ids were read as texts.
    pub look_like_ids: bool,
}

impl LabelSummary {
    pub(in crate::run) fn new(read: &ReadLabels) -> Self {
        let labelled = &read.labelled;
        Self {
            texts: labelled.texts().len() as u64,
            similar: labelled.count_similar_pairs(),
            different: labelled.count_different_pairs(),
            ungraded: read.ungraded,
            repeated: read.repeated,
            contradictory: read.contradictory,
            units: labelled.unit_count() as u64,
            look_like_ids: labelled.texts().iter().all(|text| is_like_id(text)),
        }
    }
}

fn is_like_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The result of an evaluation.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluateSummary {
    /// The labels.
    pub labelled: LabelSummary,
    /// The results of the settings, in the given order.
    pub settings: Vec<SettingSummary>,
    /// Number of resamples behind each confidence interval.
    pub resamples: u32,
    /// Seed of the resamples.
    pub seed: u64,
    /// The confidence level: the share of resamples within an interval.
    pub confidence: f64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The result of one setting.
#[derive(Debug, Clone, Serialize)]
pub struct SettingSummary {
    /// Name of the recipe.
    pub recipe: String,
    /// Identity of the recipe.
    pub recipe_id: String,
    /// Name of the method, as on the command line.
    pub method: &'static str,
    /// Name of the measure, as on the command line.
    pub measure: &'static str,
    /// The unit in which edits are counted, if the measure counts edits.
    pub unit: Option<&'static str>,
    /// Largest distance of candidates, if candidates are found by fingerprints and then verified.
    pub distance: Option<u32>,
    /// The measured figures.
    #[serde(flatten)]
    pub evaluation: Evaluation,
}

impl SettingSummary {
    fn new(setting: &EvaluatedSetting, evaluation: Evaluation) -> Self {
        let matching = &setting.matching;
        let is_checked =
            evaluation.sweep == lookalike::quality::evaluate::SweptParameter::Threshold;
        let by_fingerprints = matching.method.takes_distance();
        Self {
            recipe: setting.recipe.name.clone(),
            recipe_id: setting.recipe.recipe_id().to_string(),
            method: matching.method.name(),
            measure: matching.measure.name(),
            unit: unit_name(setting),
            distance: (by_fingerprints && is_checked).then_some(matching.distance),
            evaluation,
        }
    }
}

/// Returns the unit in which edits are counted, if the measure counts edits.
pub(in crate::run) fn unit_name(setting: &EvaluatedSetting) -> Option<&'static str> {
    let matching = &setting.matching;
    let counts = matching.measure.sequence_measure().is_some();
    counts.then_some(matching.unit.name())
}

/// Default of the largest evaluated distance.
const MOST_DISTANCE: u32 = 10;

/// Returns the default of the lowest evaluated threshold: 0.05 for pairs, and 0.3 for groups, because
/// these have very many pairs across groups.
///
/// # Errors
/// Never for these two values.
pub fn lowest_threshold(rows: &LabelledRows) -> lookalike::Result<Threshold> {
    Threshold::new(match rows {
        LabelledRows::Pairs(_) => 0.05,
        LabelledRows::Groups { .. } => 0.3,
    })
}

/// Returns the lowest threshold and all multiples of 0.05 above it.
pub fn thresholds_from(lowest: Threshold) -> Vec<f64> {
    let twentieths = (1..=20).map(|count| f64::from(count) / 20.0);
    std::iter::once(lowest.get())
        .chain(twentieths.filter(|&value| value > lowest.get()))
        .collect()
}

/// Returns the default measure of a method in an evaluation.
pub fn usual_measure(method: MatchMethod) -> SimilarityMeasure {
    if method.takes_distance() || method.equal_key().is_some() {
        SimilarityMeasure::Sketch
    } else {
        SimilarityMeasure::default()
    }
}

/// Returns the match options with which a method and a measure are evaluated, from the threshold
/// `lowest` on or up to a largest distance. Other `options` are kept only if they apply.
#[must_use]
pub fn options_to_measure(options: &MatchOptions, lowest: Threshold) -> MatchOptions {
    let method = options.method.unwrap_or_default();
    let measure = options.measure.unwrap_or_else(|| usual_measure(method));
    let by_sketch = measure == SimilarityMeasure::Sketch;
    let all_distances = (method.takes_distance() && by_sketch).then_some(MOST_DISTANCE);
    MatchOptions {
        method: Some(method),
        threshold: has_threshold(method, measure).then_some(lowest),
        distance: options
            .distance
            .or(all_distances)
            .filter(|_| method.takes_distance()),
        candidates: None,
        sentences: options.sentences.filter(|_| method.takes_sentences()),
        measure: Some(measure),
        unit: options
            .unit
            .filter(|_| measure.sequence_measure().is_some()),
    }
}

/// Evaluates settings on labelled texts.
///
/// # Errors
/// The errors of [`read_labelled`], and settings that have no match plan.
pub fn run_evaluation(
    inputs: &LabelledInputs,
    settings: &EvaluateSettings,
    progress: &dyn ProgressListener,
) -> Result<EvaluateSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        let started = Instant::now();
        let read = read_labelled(inputs, progress)?;
        let summaries = measure_settings(&read.labelled, settings, progress)?;
        let BootstrapOptions {
            resamples,
            seed,
            confidence,
        } = settings.options.bootstrap;
        Ok(EvaluateSummary {
            labelled: LabelSummary::new(&read),
            settings: summaries,
            resamples,
            seed,
            confidence,
            seconds: started.elapsed().as_secs_f64(),
        })
    })
}

fn measure_settings(
    labelled: &LabelledTexts,
    settings: &EvaluateSettings,
    progress: &dyn ProgressListener,
) -> Result<Vec<SettingSummary>> {
    progress.begin_stage(RunStage::Measure, Some(settings.settings.len() as u64));
    let mut summaries = Vec::new();
    for setting in &settings.settings {
        let evaluation = Evaluation::new(labelled, setting, &settings.options)?;
        summaries.push(SettingSummary::new(setting, evaluation));
        progress.advance_stage(summaries.len() as u64);
    }
    Ok(summaries)
}

/// Two tables of clusters with the columns `recipe_id` and `cluster`.
#[derive(Debug, Clone)]
pub struct ClusterFiles {
    /// The table of predicted clusters.
    pub predicted: PathBuf,
    /// The table of true clusters.
    pub truth: PathBuf,
    /// Options of reading: encoding, format and the field of the ids.
    pub read: ReadOptions,
    /// Total number of documents, including those in neither table.
    pub documents: Option<u64>,
    /// Options of confidence intervals.
    pub bootstrap: BootstrapOptions,
    /// Number of threads, from 1.
    pub threads: usize,
}

/// The agreement of predicted with true clusters.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterSummary {
    /// The scores.
    #[serde(flatten)]
    pub scores: ClusterScores,
    /// Documents in the table of predicted clusters.
    pub in_predicted: u64,
    /// Documents in the table of true clusters.
    pub in_truth: u64,
    /// Number of resamples behind each confidence interval.
    pub resamples: u32,
    /// Seed of the resamples.
    pub seed: u64,
    /// The confidence level: the share of resamples within an interval.
    pub confidence: f64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Scores predicted clusters against true ones. A document that is in only one table is a cluster of
/// its own in the other, because the tables that a run writes list no such documents.
///
/// # Errors
/// If a table cannot be read or is empty, if a row has no id or cluster, if an id is repeated, or if
/// the total number of documents is smaller than that in the tables.
pub fn evaluate_clusters(
    files: &ClusterFiles,
    progress: &dyn ProgressListener,
) -> Result<ClusterSummary> {
    crate::threads::run_in_pool(files.threads, || {
        let started = Instant::now();
        let tables = [&files.predicted, &files.truth];
        let [predicted, truth] = read_both_clusters(tables, &files.read, progress)?;
        let mut ids: Vec<&str> = predicted
            .keys()
            .chain(truth.keys())
            .map(String::as_str)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let alone = match files.documents {
            None => 0,
            Some(documents) => documents.checked_sub(ids.len() as u64).ok_or_else(|| {
                Error::usage_error(format!(
                    "the number of documents is {documents}, but the two tables have {}",
                    ids.len()
                ))
            })?,
        };
        let scores = compare_clusters(
            &number_clusters(&ids, &predicted),
            &number_clusters(&ids, &truth),
            alone,
            &files.bootstrap,
        )?;
        let BootstrapOptions {
            resamples,
            seed,
            confidence,
        } = files.bootstrap;
        Ok(ClusterSummary {
            scores,
            in_predicted: predicted.len() as u64,
            in_truth: truth.len() as u64,
            resamples,
            seed,
            confidence,
            seconds: started.elapsed().as_secs_f64(),
        })
    })
}

/// Returns the cluster number of each document. Documents without a cluster have unique numbers.
fn number_clusters(ids: &[&str], clusters: &HashMap<String, String>) -> Vec<u64> {
    let mut numbers = HashMap::new();
    ids.iter()
        .zip(1 << 32..)
        .map(|(&id, alone)| match clusters.get(id) {
            None => alone,
            Some(cluster) => {
                let next = numbers.len() as u64;
                *numbers.entry(cluster).or_insert(next)
            }
        })
        .collect()
}
