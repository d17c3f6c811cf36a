//! How well settings do on labelled texts, and how well clusters agree with true ones.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use lookalike::Threshold;
use lookalike::evaluate::{
    Bootstrap, ClusterScores, Evaluation, Labelled, Options, Setting, compare_clusters,
};
use lookalike::plan::{Measure, Method, Unit};
use serde::Serialize;

use super::labelled::{LabelledInputs, LabelledRows, Read, read_both_clusters, read_labelled};
use super::progress::{Progress, Stage};
use crate::error::{Error, Result};
use crate::rule::{Asked, measure_name, method_name};
use crate::source::ReadOptions;

/// What a person may choose of an evaluation.
#[derive(Debug, Clone)]
pub struct EvaluateSettings {
    /// What is measured; the threshold of each is the lowest that is looked at.
    pub settings: Vec<Setting>,
    /// Thresholds and intervals.
    pub options: Options,
    /// How many threads work, from 1.
    pub threads: usize,
}

/// What labels were read.
#[derive(Debug, Clone, Serialize)]
pub struct Truth {
    /// Texts with labels; of pairs, equal ones count once.
    pub texts: u64,
    /// Pairs that are similar.
    pub similar: u64,
    /// Pairs that are not, those across groups included.
    pub different: u64,
    /// Pairs whose grade lies between.
    pub ungraded: u64,
    /// Rows that repeat a pair.
    pub repeated: u64,
    /// Pairs with contradictory labels, which were left out or have their first label.
    pub contradictory: u64,
    /// Units that are resampled as wholes: texts that hang together.
    pub units: u64,
    /// Whether every text is one ASCII word, as ids are that were taken for texts.
    pub like_ids: bool,
}

impl Truth {
    pub(super) fn new(read: &Read) -> Self {
        let labelled = &read.labelled;
        Self {
            texts: labelled.texts().len() as u64,
            similar: labelled.similar(),
            different: labelled.different(),
            ungraded: read.ungraded,
            repeated: read.repeated,
            contradictory: read.contradictory,
            units: labelled.units() as u64,
            like_ids: labelled.texts().iter().all(|text| is_like_id(text)),
        }
    }
}

fn is_like_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What an evaluation has found.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluateSummary {
    /// The labels.
    pub labelled: Truth,
    /// How every setting does, in the order given.
    pub settings: Vec<SettingSummary>,
    /// How many resamples stand behind intervals.
    pub resamples: u32,
    /// What they were drawn from.
    pub seed: u64,
    /// The share of resamples inside an interval.
    pub confidence: f64,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// How a setting does.
#[derive(Debug, Clone, Serialize)]
pub struct SettingSummary {
    /// Name of the recipe.
    pub recipe: String,
    /// Its identity.
    pub recipe_id: String,
    /// The method, as on the command line.
    pub method: &'static str,
    /// The measure, as on the command line.
    pub measure: &'static str,
    /// What edits are counted in, where they are.
    pub unit: Option<&'static str>,
    /// The largest distance of candidates, with fingerprints that are checked.
    pub distance: Option<u32>,
    /// The figures.
    #[serde(flatten)]
    pub evaluation: Evaluation,
}

impl SettingSummary {
    fn new(setting: &Setting, evaluation: Evaluation) -> Self {
        let matching = &setting.matching;
        let is_checked = evaluation.sweep == lookalike::evaluate::Sweep::Threshold;
        let by_fingerprints = matching.method == lookalike::plan::Method::SimHash;
        Self {
            recipe: setting.recipe.name.clone(),
            recipe_id: setting.recipe.id().to_string(),
            method: method_name(matching.method),
            measure: measure_name(matching.measure),
            unit: unit_name(setting),
            distance: (by_fingerprints && is_checked).then_some(matching.distance),
            evaluation,
        }
    }
}

/// What edits are counted in, if the measure counts some.
pub(super) fn unit_name(setting: &Setting) -> Option<&'static str> {
    use lookalike::plan::Measure::{Indel, Levenshtein, Substring};
    let counts = matches!(setting.matching.measure, Levenshtein | Indel | Substring);
    counts.then_some(match setting.matching.unit {
        Unit::Characters => "characters",
        Unit::Words => "words",
    })
}

/// The largest distance that is looked at unless another one is given.
const MOST_DISTANCE: u32 = 10;

/// The lowest threshold that is looked at unless another one is given: .05 of pairs, .3 of groups, whose
/// pairs across are many.
///
/// # Errors
/// None for these two.
pub fn lowest_threshold(rows: &LabelledRows) -> lookalike::Result<Threshold> {
    Threshold::new(match rows {
        LabelledRows::Pairs(_) => 0.05,
        LabelledRows::Groups { .. } => 0.3,
    })
}

/// The lowest threshold and the twentieths above it.
pub fn thresholds_from(lowest: Threshold) -> Vec<f64> {
    let twentieths = (1..=20).map(|count| f64::from(count) / 20.0);
    std::iter::once(lowest.get())
        .chain(twentieths.filter(|&value| value > lowest.get()))
        .collect()
}

/// What a method is measured by where no measure is asked for.
pub fn usual_measure(method: Method) -> Measure {
    match method {
        Method::SimHash | Method::Sentences => Measure::Sketch,
        _ => Measure::Jaccard,
    }
}

/// What has to be asked for to measure a method and a measure from a threshold on, or up to a distance;
/// of what else is asked for, only that which they have a use for.
#[must_use]
pub fn measured(asked: &Asked, lowest: Threshold) -> Asked {
    let method = asked.method.unwrap_or_default();
    let measure = asked.measure.unwrap_or_else(|| usual_measure(method));
    let by_sketch = measure == Measure::Sketch;
    let has_threshold = match method {
        Method::Exact => false,
        Method::SimHash | Method::Sentences => !by_sketch,
        _ => true,
    };
    let is = |one| method == one;
    let all_distances = (is(Method::SimHash) && by_sketch).then_some(MOST_DISTANCE);
    let counts = matches!(
        measure,
        Measure::Levenshtein | Measure::Indel | Measure::Substring
    );
    Asked {
        method: Some(method),
        threshold: has_threshold.then_some(lowest),
        distance: asked
            .distance
            .or(all_distances)
            .filter(|_| is(Method::SimHash)),
        candidates: None,
        sentences: asked.sentences.filter(|_| is(Method::Sentences)),
        measure: Some(measure),
        unit: asked.unit.filter(|_| counts),
    }
}

/// Measures settings on labelled texts.
///
/// # Errors
/// As for [`read_labelled`]; settings that cannot be planned.
pub fn evaluate(
    inputs: &LabelledInputs,
    settings: &EvaluateSettings,
    progress: &dyn Progress,
) -> Result<EvaluateSummary> {
    super::in_pool(settings.threads, || {
        let started = Instant::now();
        let read = read_labelled(inputs, progress)?;
        let summaries = measure(&read.labelled, settings, progress)?;
        let Bootstrap {
            resamples,
            seed,
            confidence,
        } = settings.options.bootstrap;
        Ok(EvaluateSummary {
            labelled: Truth::new(&read),
            settings: summaries,
            resamples,
            seed,
            confidence,
            seconds: started.elapsed().as_secs_f64(),
        })
    })
}

fn measure(
    labelled: &Labelled,
    settings: &EvaluateSettings,
    progress: &dyn Progress,
) -> Result<Vec<SettingSummary>> {
    progress.begin(Stage::Measure, Some(settings.settings.len() as u64));
    let mut summaries = Vec::new();
    for setting in &settings.settings {
        let evaluation = Evaluation::new(labelled, setting, &settings.options)?;
        summaries.push(SettingSummary::new(setting, evaluation));
        progress.advance(summaries.len() as u64);
    }
    Ok(summaries)
}

/// Two tables of clusters, each with the columns `id` and `cluster`.
#[derive(Debug, Clone)]
pub struct ClusterFiles {
    /// What was found.
    pub predicted: PathBuf,
    /// What is true.
    pub truth: PathBuf,
    /// How they are read: encoding and format; the field of the ids.
    pub read: ReadOptions,
    /// How many documents there are in all, those that stand in neither table included.
    pub documents: Option<u64>,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
    /// How many threads work, from 1.
    pub threads: usize,
}

/// How well clusters agree with true ones.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterSummary {
    /// The scores.
    #[serde(flatten)]
    pub scores: ClusterScores,
    /// Documents that stand in the table of predicted clusters.
    pub in_predicted: u64,
    /// Documents that stand in the table of true ones.
    pub in_truth: u64,
    /// How many resamples stand behind intervals.
    pub resamples: u32,
    /// What they were drawn from.
    pub seed: u64,
    /// The share of resamples inside an interval.
    pub confidence: f64,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// Scores predicted clusters against true ones. A document that stands in one table only is alone in
/// the other, as it is in what a run writes.
///
/// # Errors
/// What cannot be read; rows without id or cluster, repeated ids, empty tables; fewer documents in all
/// than in the tables.
pub fn clusters(files: &ClusterFiles, progress: &dyn Progress) -> Result<ClusterSummary> {
    super::in_pool(files.threads, || {
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
                Error::usage(format!(
                    "there are {documents} documents in all, but the two tables have {}",
                    ids.len()
                ))
            })?,
        };
        let scores = compare_clusters(
            &numbered(&ids, &predicted),
            &numbered(&ids, &truth),
            alone,
            &files.bootstrap,
        )?;
        let Bootstrap {
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

/// The number of the cluster of every document; documents without one have numbers of their own.
fn numbered(ids: &[&str], clusters: &HashMap<String, String>) -> Vec<u64> {
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
