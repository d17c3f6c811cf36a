//! Search for the best setting for labelled texts, with its cost.

use std::time::{Duration, Instant};

use lookalike::evaluate::{
    Bootstrap, Contender, Counts, Goal, Labelled, Metrics, Setting, Sweep, TuneOptions, Tuning,
    contenders,
};
use lookalike::plan::{self, Plan};
use lookalike::text::{Analyzer, Scratch};
use lookalike::{Cpu, Recipe, Sketcher, Threshold};
use serde::Serialize;

use super::evaluate::{Truth, unit_name};
use super::labelled::{LabelledInputs, read_labelled};
use super::progress::{Progress, Stage};
use crate::error::Result;
use crate::rule::{measure_name, method_name};

/// Duration of measuring the speed of a setting.
const MEASURED: Duration = Duration::from_millis(300);

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
    pub labelled: Truth,
    /// Numbers of similar and of other pairs, first in the half for choosing, then in the held-back
    /// half.
    pub halves: [[u64; 2]; 2],
    /// The goal of the choice: `f1`, or `precision>=` and a number.
    pub goal: String,
    /// All settings. Of equally good ones, the earlier is preferred.
    pub settings: Vec<TunedSummary>,
    /// Index of the setting with the highest value on the half for choosing.
    pub best: usize,
    /// Index of the first setting that is as good: the best one does not beat it in 95 of 100
    /// resamples.
    pub chosen: usize,
    /// Index of the best of the other settings.
    pub runner_up: Option<usize>,
    /// The chosen setting on the held-back half, with its cost.
    pub held_back: Price,
    /// The runner-up on the held-back half.
    pub runner_up_held_back: Option<Price>,
    /// The original recipe with the default method, measure and threshold, on the held-back half.
    pub untuned_held_back: Price,
    /// The chosen recipe.
    #[serde(skip)]
    pub recipe: Recipe,
    /// The chosen match settings.
    #[serde(skip)]
    pub matching: plan::Settings,
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
    pub sweep: Sweep,
    /// The best threshold or distance, or `None` if neither is varied.
    pub cut: Option<f64>,
    /// Counts of results at that threshold or distance.
    pub counts: Counts,
    /// The F1, or the recall if the goal is precision; `None` if the setting misses the goal.
    pub value: Option<f64>,
    /// `true` if the best setting is not clearly better.
    pub as_good: bool,
}

/// The quality of a setting on the held-back half, and its cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Price {
    /// Precision, recall and F1.
    pub metrics: Metrics,
    /// Megabytes of labelled text per second that one thread analyses and sketches.
    pub megabytes_per_second: f64,
    /// Bytes of memory per sketched document.
    pub bytes_per_sketch: usize,
}

/// Parses a goal: `f1`, or `precision>=` and a number.
///
/// # Errors
/// If the text is neither. The message is a phrase that can follow the text.
pub fn parse_goal(text: &str) -> Result<Goal, String> {
    let wrong = || "give f1, or precision>= and a number above 0 and at most 1".to_owned();
    if text == "f1" {
        return Ok(Goal::F1);
    }
    let least: f64 = text
        .strip_prefix("precision>=")
        .and_then(|least| least.parse().ok())
        .ok_or_else(wrong)?;
    if least > 0.0 && least <= 1.0 {
        Ok(Goal::Precision(least))
    } else {
        Err(wrong())
    }
}

/// Finds the best setting for labelled texts.
///
/// # Errors
/// The errors of [`read_labelled`], labels that cannot be divided into halves, and a goal that no
/// setting reaches.
pub fn tune(
    inputs: &LabelledInputs,
    settings: &TuneSettings,
    progress: &dyn Progress,
) -> Result<TuneSummary> {
    super::in_pool(settings.threads, || run(inputs, settings, progress))
}

fn run(
    inputs: &LabelledInputs,
    settings: &TuneSettings,
    progress: &dyn Progress,
) -> Result<TuneSummary> {
    let started = Instant::now();
    let read = read_labelled(inputs, progress)?;
    let all = contenders(&settings.recipe, &read.labelled, settings.lowest)?;
    progress.begin(Stage::Measure, Some(all.len() as u64));
    let tuning = lookalike::evaluate::tune(&read.labelled, &all, &settings.options, &|tried| {
        progress.advance(tried as u64);
    })?;
    let untuned = Setting {
        recipe: settings.recipe.clone(),
        matching: plan::Settings::default(),
    };
    let bootstrap = settings.options.bootstrap;
    let price = |setting: &Setting| Price::new(setting, &read.labelled, &tuning, &bootstrap);
    let setting_of = |at: usize| &tuning.contenders[at].setting;
    let chosen = setting_of(tuning.chosen);
    Ok(TuneSummary {
        held_back: price(chosen)?,
        runner_up_held_back: tuning
            .runner_up
            .map(|at| price(setting_of(at)))
            .transpose()?,
        untuned_held_back: price(&untuned)?,
        labelled: Truth::new(&read),
        halves: tuning
            .halves
            .each_ref()
            .map(|half| [half.similar(), half.different()]),
        goal: match settings.options.goal {
            Goal::F1 => "f1".to_owned(),
            Goal::Precision(least) => format!("precision>={least}"),
        },
        recipe: chosen.recipe.clone(),
        matching: chosen.matching,
        settings: tuning.contenders.iter().map(TunedSummary::new).collect(),
        best: tuning.best,
        chosen: tuning.chosen,
        runner_up: tuning.runner_up,
        resamples: bootstrap.resamples,
        seed: bootstrap.seed,
        confidence: bootstrap.confidence,
        seconds: started.elapsed().as_secs_f64(),
    })
}

impl TunedSummary {
    fn new(contender: &Contender) -> Self {
        let setting = &contender.setting;
        let matching = &setting.matching;
        Self {
            recipe: setting.recipe.name.clone(),
            recipe_id: setting.recipe.id().to_string(),
            method: method_name(matching.method),
            measure: measure_name(matching.measure),
            unit: unit_name(setting),
            sweep: setting.sweep(),
            cut: match setting.sweep() {
                Sweep::Threshold => Some(matching.threshold.get()),
                Sweep::Distance => Some(f64::from(matching.distance)),
                Sweep::Nothing => None,
            },
            counts: contender.counts,
            value: contender.value,
            as_good: contender.as_good,
        }
    }
}

impl Price {
    fn new(
        setting: &Setting,
        all: &Labelled,
        tuning: &Tuning,
        bootstrap: &Bootstrap,
    ) -> Result<Self> {
        let plan = Plan::new(&setting.recipe, setting.matching)?;
        Ok(Self {
            metrics: setting.metrics(&tuning.halves[1], bootstrap)?,
            megabytes_per_second: speed(setting, &plan, all.texts()),
            bytes_per_sketch: plan.sketch_bytes(),
        })
    }
}

/// Returns the megabytes per second of analysing and sketching on one thread, repeated over all texts
/// for [`MEASURED`]. Repeated texts are slightly faster than the same amount of new ones.
fn speed(setting: &Setting, plan: &Plan, texts: &[String]) -> f64 {
    let sketcher = Sketcher::new(&setting.recipe, plan, Cpu::best());
    let analyzer = Analyzer::new(&setting.recipe).with_extras(sketcher.extras());
    let mut scratch = Scratch::default();
    let (started, mut bytes) = (Instant::now(), 0);
    while started.elapsed() < MEASURED {
        let mut sketches = sketcher.sketches(1 << 20);
        for text in texts {
            sketcher.add(&analyzer.analyze(text, &mut scratch), &mut sketches);
            bytes += text.len();
        }
    }
    bytes as f64 / 1e6 / started.elapsed().as_secs_f64()
}
