//! Search for the best setting for labelled texts, with its cost.

use std::time::{Duration, Instant};

use lookalike::plan::{self, MatchPlan};
use lookalike::quality::evaluate::{
    BootstrapOptions, ConfusionCounts, EvaluatedSetting, LabelReach, LabelledTexts,
    MetricEstimates, SweptParameter, TuneOptions, TunedContender, TuningGoal, TuningOutcome,
    contenders, count_removed,
};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, DocumentSketcher, Recipe, Threshold};
use lookalike_io::error::Result;
use serde::Serialize;

use crate::run::commands::corpus_sample::CorpusSample;
use crate::run::commands::evaluate::{LabelSummary, unit_name};
use crate::run::commands::labelled::{LabelledInputs, read_labelled_and_sample};
use crate::run::progress::{ProgressListener, RunStage};

/// Duration of measuring the speed of a setting.
const MEASUREMENT_TIME: Duration = Duration::from_millis(300);

/// Number of the best settings that are tried on documents, besides the chosen one, the runner-up and the
/// untuned one.
const BEST_SETTINGS_TRIED: usize = 8;

/// Settings of the search.
#[derive(Debug, Clone)]
pub struct TuneSettings {
    /// The recipe from which others are derived.
    pub recipe: Recipe,
    /// Lowest threshold to evaluate.
    pub lowest: Threshold,
    /// The goal, and the options of confidence intervals.
    pub options: TuneOptions,
    /// Number of threads, from 1.
    pub threads: usize,
}

/// The result of the search.
#[derive(Debug, Clone, Serialize)]
pub struct TuneSummary {
    /// The labels.
    pub labelled: LabelSummary,
    /// Numbers of similar and of other pairs, first in the half for choosing, then in the held-back
    /// half.
    pub halves: [[u64; 2]; 2],
    /// The goal of the choice: `f1`, or `precision>=` and a number.
    pub goal: String,
    /// All settings. The earlier one of equally good settings is preferred.
    pub settings: Vec<TunedSummary>,
    /// Index of the setting with the highest value on the half for choosing.
    pub best: usize,
    /// Index of the first setting that is as good: the best one does not beat it in 95 of 100
    /// resamples.
    pub chosen: usize,
    /// Index of the best of the other settings.
    pub runner_up: Option<usize>,
    /// The chosen setting on the held-back half, with its cost.
    pub held_back: SettingPrice,
    /// The runner-up on the held-back half.
    pub runner_up_held_back: Option<SettingPrice>,
    /// The original recipe with the default method, measure and threshold, on the held-back half.
    pub untuned_held_back: SettingPrice,
    /// The documents that settings were tried on, to see how many each removes.
    pub tried_on: TriedDocuments,
    /// Documents among them that the untuned recipe removes.
    pub untuned_removed: Option<RemovedShare>,
    /// Warnings about the labels, each a sentence.
    pub warnings: Vec<String>,
    /// The chosen recipe.
    #[serde(skip)]
    pub recipe: Recipe,
    /// The chosen match settings.
    #[serde(skip)]
    pub matching: plan::MatchSettings,
    /// Number of resamples behind each confidence interval.
    pub resamples: u32,
    /// Seed of the resamples and of the halves.
    pub seed: u64,
    /// The confidence level: the share of resamples within an interval.
    pub confidence: f64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The result of a setting on the half for choosing.
#[derive(Debug, Clone, Serialize)]
pub struct TunedSummary {
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
    /// The parameter of the setting that is varied.
    pub sweep: SweptParameter,
    /// The best threshold or distance, or `None` if neither is varied.
    pub cut: Option<f64>,
    /// Counts of results at that threshold or distance.
    pub counts: ConfusionCounts,
    /// The F1, or the recall if the goal is precision; `None` if the setting misses the goal.
    pub value: Option<f64>,
    /// `true` if the best setting is not clearly better.
    pub is_as_good: bool,
    /// `false` if the labels cannot judge whether the goal is reached.
    pub is_judged: bool,
    /// The range that the labels cover.
    pub reach: LabelReach,
    /// Documents that it removes; `None` for a setting that is far from the best.
    pub removed: Option<RemovedShare>,
}

/// Documents that settings are tried on.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TriedDocuments {
    /// Documents that are tried: all, or a sample.
    pub documents: u64,
    /// Documents there are.
    pub total: u64,
    /// They are those of the corpus that the labels name, or else the labelled texts.
    pub is_corpus: bool,
}

/// The documents that a setting removes from some documents. It removes a smaller share of a sample than of
/// all documents, because the similar document may be missing in the sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RemovedShare {
    /// Documents that are removed.
    pub documents: u64,
    /// Their share, from 0 to 1.
    pub share: f64,
}

/// The quality of a setting on the held-back half, and its cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SettingPrice {
    /// Precision, recall and F1.
    pub metrics: MetricEstimates,
    /// Megabytes of labelled text per second that one thread analyses and sketches.
    pub megabytes_per_second: f64,
    /// Bytes of memory per sketched document.
    pub bytes_per_sketch: usize,
}

/// Parses a goal: `f1`, or `precision>=` and a number.
///
/// # Errors
/// If the text is neither. The message is a phrase that can follow the text.
pub fn parse_goal(text: &str) -> Result<TuningGoal, String> {
    let wrong = || "give f1, or precision>= and a number above 0 and at most 1".to_owned();
    if text == "f1" {
        return Ok(TuningGoal::F1);
    }
    let least: f64 = text
        .strip_prefix("precision>=")
        .and_then(|least| least.parse().ok())
        .ok_or_else(wrong)?;
    if least > 0.0 && least <= 1.0 {
        Ok(TuningGoal::Precision(least))
    } else {
        Err(wrong())
    }
}

/// Finds the best setting for labelled texts.
///
/// # Errors
/// The errors of reading labels, labels that cannot be divided into halves, and a goal that no
/// setting reaches.
pub fn run_tuning(
    inputs: &LabelledInputs,
    settings: &TuneSettings,
    progress: &dyn ProgressListener,
) -> Result<TuneSummary> {
    crate::threads::run_in_pool(settings.threads, || {
        tune_and_price(inputs, settings, progress)
    })
}

fn tune_and_price(
    inputs: &LabelledInputs,
    settings: &TuneSettings,
    progress: &dyn ProgressListener,
) -> Result<TuneSummary> {
    let started = Instant::now();
    let read = read_labelled_and_sample(inputs, progress)?;
    let all = contenders(&settings.recipe, &read.labelled, settings.lowest)?;
    progress.begin_stage(RunStage::Measure, Some(all.len() as u64));
    let tuning = lookalike::quality::evaluate::tune_settings(
        &read.labelled,
        &all,
        &settings.options,
        &|tried| {
            progress.advance_stage(tried as u64);
        },
    )?;
    let untuned = EvaluatedSetting {
        recipe: settings.recipe.clone(),
        matching: plan::MatchSettings::default(),
    };
    let bootstrap = settings.options.bootstrap;
    let price = |setting: &EvaluatedSetting| {
        SettingPrice::new(setting, &read.labelled, &tuning, &bootstrap)
    };
    let setting_of = |at: usize| &tuning.contenders[at].setting;
    let chosen = setting_of(tuning.chosen);
    let documents =
        (read.sample.clone()).unwrap_or_else(|| CorpusSample::of_texts(read.labelled.texts()));
    let mut summaries: Vec<_> = tuning.contenders.iter().map(TunedSummary::new).collect();
    for at in tried_on_documents(&tuning) {
        summaries[at].removed = RemovedShare::new(setting_of(at), &documents);
    }
    Ok(TuneSummary {
        tried_on: TriedDocuments {
            documents: documents.texts.len() as u64,
            total: documents.documents,
            is_corpus: read.sample.is_some(),
        },
        untuned_removed: RemovedShare::new(&untuned, &documents),
        warnings: summaries[tuning.chosen].warnings(),
        held_back: price(chosen)?,
        runner_up_held_back: tuning
            .runner_up
            .map(|at| price(setting_of(at)))
            .transpose()?,
        untuned_held_back: price(&untuned)?,
        labelled: LabelSummary::new(&read),
        halves: tuning
            .halves
            .each_ref()
            .map(|half| [half.count_similar_pairs(), half.count_different_pairs()]),
        goal: match settings.options.goal {
            TuningGoal::F1 => "f1".to_owned(),
            TuningGoal::Precision(least) => format!("precision>={least}"),
        },
        recipe: chosen.recipe.clone(),
        matching: chosen.matching,
        settings: summaries,
        best: tuning.best,
        chosen: tuning.chosen,
        runner_up: tuning.runner_up,
        resamples: bootstrap.resamples,
        seed: bootstrap.seed,
        confidence: bootstrap.confidence,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// The settings that are tried on documents: the best ones, the chosen one and the runner-up.
fn tried_on_documents(tuning: &TuningOutcome) -> Vec<usize> {
    let value = |at: &usize| tuning.contenders[*at].value.unwrap_or(-1.0);
    let mut tried: Vec<usize> = (0..tuning.contenders.len()).collect();
    tried.sort_by(|a, b| value(b).total_cmp(&value(a)));
    tried.truncate(BEST_SETTINGS_TRIED);
    tried.push(tuning.chosen);
    tried.extend(tuning.runner_up);
    tried.sort_unstable();
    tried.dedup();
    tried
}

impl RemovedShare {
    /// Returns `None` if the setting cannot be tried on the documents, for example because a text is too
    /// long for its measure.
    fn new(setting: &EvaluatedSetting, documents: &CorpusSample) -> Option<Self> {
        let removed = count_removed(setting, &documents.texts).ok()?;
        Some(Self {
            documents: removed as u64,
            share: removed as f64 / documents.texts.len().max(1) as f64,
        })
    }
}

impl TunedSummary {
    /// Says where the labels do not reach as far as it concerns the threshold or distance.
    fn warnings(&self) -> Vec<String> {
        let (Some(cut), Some(limit)) = (self.cut, self.reach.limit) else {
            return Vec::new();
        };
        let by_distance = self.sweep == SweptParameter::Distance;
        let axis = if by_distance {
            "distance"
        } else {
            "similarity"
        };
        let range = |[low, high]: [f64; 2]| {
            let digits = |value: f64| (value * 1e4).round() / 1e4;
            format!("{axis} from {} to {}", digits(low), digits(high))
        };
        let way = format!(
            "{} and {}",
            self.recipe,
            measure_of(self.measure, self.method)
        );
        let mut warnings = Vec::new();
        for &[low, high] in &self.reach.without_different {
            if !self.reach.concerns([low, high], cut, self.sweep) {
                continue;
            }
            let end = if by_distance { low } else { high };
            let limited = match (end == limit, by_distance) {
                (false, _) => String::new(),
                (true, false) => format!(", so no threshold below {limit:.4} is recommended"),
                (true, true) => format!(", so no distance above {limit} is recommended"),
            };
            warnings.push(format!(
                "no pair with a {} by {way} is labelled as different: the labels cannot tell what a \
                 setting finds wrongly there{limited}. Label such pairs, or make some with lookalike \
                 plant",
                range([low, high])
            ));
        }
        for &[low, high] in &self.reach.without_similar {
            if low < cut && cut < high && self.sweep != SweptParameter::Nothing {
                warnings.push(format!(
                    "no pair with a {} by {way} is labelled as similar: the labels cannot tell what \
                     a setting misses there",
                    range([low, high])
                ));
            }
        }
        warnings
    }

    fn new(contender: &TunedContender) -> Self {
        let setting = &contender.setting;
        let matching = &setting.matching;
        Self {
            recipe: setting.recipe.name.clone(),
            recipe_id: setting.recipe.recipe_id().to_string(),
            method: matching.method.name(),
            measure: matching.measure.name(),
            unit: unit_name(setting),
            sweep: setting.swept_parameter(),
            cut: match setting.swept_parameter() {
                SweptParameter::Threshold => Some(matching.threshold.get()),
                SweptParameter::Distance => Some(f64::from(matching.distance)),
                SweptParameter::Nothing => None,
            },
            counts: contender.counts,
            value: contender.value,
            is_as_good: contender.as_good,
            is_judged: contender.is_judged,
            reach: contender.reach.clone(),
            removed: None,
        }
    }
}

/// The measure in a sentence, or the method where sketches alone decide.
fn measure_of(measure: &'static str, method: &'static str) -> &'static str {
    match measure {
        "none" => method,
        measure => measure,
    }
}

impl SettingPrice {
    fn new(
        setting: &EvaluatedSetting,
        all: &LabelledTexts,
        tuning: &TuningOutcome,
        bootstrap: &BootstrapOptions,
    ) -> Result<Self> {
        let plan = MatchPlan::new(&setting.recipe, setting.matching)?;
        Ok(Self {
            metrics: setting.estimate_metrics(&tuning.halves[1], bootstrap)?,
            megabytes_per_second: measure_speed(setting, &plan, all.texts()),
            bytes_per_sketch: plan.sketch_bytes(),
        })
    }
}

/// Returns the megabytes per second of analysing and sketching on one thread, repeated over all texts
/// for [`MEASUREMENT_TIME`]. Repeated texts are slightly faster than the same amount of new ones.
fn measure_speed(setting: &EvaluatedSetting, plan: &MatchPlan, texts: &[String]) -> f64 {
    let sketcher = DocumentSketcher::new(&setting.recipe, plan, Cpu::detect_best());
    let analyzer = TextAnalyzer::new(&setting.recipe).with_extras(sketcher.required_extras());
    let mut scratch = AnalysisScratch::default();
    let (started, mut bytes) = (Instant::now(), 0);
    while started.elapsed() < MEASUREMENT_TIME {
        let mut sketches = sketcher.new_sketches(1 << 20);
        for text in texts {
            sketcher.add_document(&analyzer.analyze_text(text, &mut scratch), &mut sketches);
            bytes += text.len();
        }
    }
    bytes as f64 / 1e6 / started.elapsed().as_secs_f64()
}
