//! The best setting for labelled texts, and what it costs.

use std::time::{Duration, Instant};

use lookalike::evaluate::{
    Bootstrap, Contender, Counts, Goal, LabelReach, Labelled, Metrics, Setting, Sweep, TuneOptions,
    Tuning, contenders, count_removed,
};
use lookalike::plan::{self, Plan};
use lookalike::text::{Analyzer, Scratch};
use lookalike::{Cpu, Recipe, Sketcher, Threshold};
use serde::Serialize;

use super::evaluate::{Truth, unit_name};
use super::labelled::{LabelledInputs, read_labelled_and_sample};
use super::progress::{Progress, Stage};
use super::sampled::CorpusSample;
use crate::error::Result;
use crate::rule::{measure_name, method_name};

/// How long the price of a setting is measured.
const MEASURED: Duration = Duration::from_millis(300);

/// So many of the best settings are tried on documents, besides the chosen one, the runner-up and the
/// untuned one.
const TRIED_ON_DOCUMENTS: usize = 8;

/// What a person may choose of a tuning.
#[derive(Debug, Clone)]
pub struct TuneSettings {
    /// The recipe from which others are made.
    pub recipe: Recipe,
    /// The lowest threshold that is looked at.
    pub lowest: Threshold,
    /// The goal, and how intervals are made.
    pub options: TuneOptions,
    /// How many threads work, from 1.
    pub threads: usize,
}

/// What a tuning has found.
#[derive(Debug, Clone, Serialize)]
pub struct TuneSummary {
    /// The labels.
    pub labelled: Truth,
    /// Similar pairs and others of the half to choose by, and of that held back.
    pub halves: [[u64; 2]; 2],
    /// What settings were chosen by: `f1`, or `precision>=` and a number.
    pub goal: String,
    /// All settings, in the order in which they are preferred if they are as good.
    pub settings: Vec<TunedSummary>,
    /// The setting with the highest value on the half to choose by.
    pub best: usize,
    /// The first setting that is as good: the best does not beat it in 95 of 100 resamples.
    pub chosen: usize,
    /// The best of the others.
    pub runner_up: Option<usize>,
    /// The chosen one on the half held back, and its price.
    pub held_back: Price,
    /// The runner-up.
    pub runner_up_held_back: Option<Price>,
    /// The recipe that was begun with, untuned: method, measure and threshold as they are usual.
    pub untuned_held_back: Price,
    /// The documents that settings were tried on, to see how many each removes.
    pub tried_on: TriedDocuments,
    /// What the untuned recipe removes of them.
    pub untuned_removed: Option<RemovedShare>,
    /// Warnings about the labels, each a sentence.
    pub warnings: Vec<String>,
    /// The chosen recipe.
    #[serde(skip)]
    pub recipe: Recipe,
    /// What was chosen of the matching.
    #[serde(skip)]
    pub matching: plan::Settings,
    /// How many resamples stand behind intervals.
    pub resamples: u32,
    /// What they, and the halves, were drawn from.
    pub seed: u64,
    /// The share of resamples inside an interval.
    pub confidence: f64,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// A setting on the half to choose by.
#[derive(Debug, Clone, Serialize)]
pub struct TunedSummary {
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
    /// What is open in it.
    pub sweep: Sweep,
    /// The best threshold or distance; none if neither is open.
    pub cut: Option<f64>,
    /// What it finds with that.
    pub counts: Counts,
    /// Its F1, or its recall if the goal is precision; none if it misses the goal.
    pub value: Option<f64>,
    /// Whether the best is not clearly better.
    pub as_good: bool,
    /// `false` if the labels cannot judge whether the goal is reached.
    pub is_judged: bool,
    /// Where the labels reach.
    pub reach: LabelReach,
    /// What it removes of the documents; none of settings that are far from the best.
    pub removed: Option<RemovedShare>,
}

/// Documents that settings are tried on.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TriedDocuments {
    /// Documents that are tried: all, or a sample.
    pub documents: u64,
    /// Documents there are.
    pub of: u64,
    /// They are those of the corpus that the labels name, or else the labelled texts.
    pub are_of_corpus: bool,
}

/// What a setting removes of some documents. Of a sample it removes less than of all, because the similar
/// document may not be in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RemovedShare {
    /// Documents that are removed.
    pub documents: u64,
    /// Their share, from 0 to 1.
    pub share: f64,
}

/// How a setting does on the half held back, and what it costs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Price {
    /// Precision, recall and F1.
    pub metrics: Metrics,
    /// Megabytes of text a second that one thread analyses and sketches, on the labelled texts.
    pub megabytes_per_second: f64,
    /// Bytes that are remembered for the sketch of a document that has one.
    pub bytes_per_sketch: usize,
}

/// A goal as typed: `f1`, or `precision>=` and a number.
///
/// # Errors
/// Anything else, in words that follow what was typed.
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

/// Looks for the best setting for labelled texts.
///
/// # Errors
/// As for [`read_labelled`]; labels that cannot be parted into halves; a goal that no setting reaches.
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
    let read = read_labelled_and_sample(inputs, progress)?;
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
    let documents =
        (read.sample.clone()).unwrap_or_else(|| CorpusSample::of_texts(read.labelled.texts()));
    let mut summaries: Vec<_> = tuning.contenders.iter().map(TunedSummary::new).collect();
    for at in tried_on_documents(&tuning) {
        summaries[at].removed = RemovedShare::new(setting_of(at), &documents);
    }
    Ok(TuneSummary {
        tried_on: TriedDocuments {
            documents: documents.texts.len() as u64,
            of: documents.documents,
            are_of_corpus: read.sample.is_some(),
        },
        untuned_removed: RemovedShare::new(&untuned, &documents),
        warnings: summaries[tuning.chosen].warnings(),
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
fn tried_on_documents(tuning: &Tuning) -> Vec<usize> {
    let value = |at: &usize| tuning.contenders[*at].value.unwrap_or(-1.0);
    let mut tried: Vec<usize> = (0..tuning.contenders.len()).collect();
    tried.sort_by(|a, b| value(b).total_cmp(&value(a)));
    tried.truncate(TRIED_ON_DOCUMENTS);
    tried.push(tuning.chosen);
    tried.extend(tuning.runner_up);
    tried.sort_unstable();
    tried.dedup();
    tried
}

impl RemovedShare {
    /// None if the setting cannot be tried on them, for example because a text is too long for its
    /// measure.
    fn new(setting: &Setting, documents: &CorpusSample) -> Option<Self> {
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
        let by_distance = self.sweep == Sweep::Distance;
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
            if low < cut && cut < high && self.sweep != Sweep::Nothing {
                warnings.push(format!(
                    "no pair with a {} by {way} is labelled as similar: the labels cannot tell what \
                     a setting misses there",
                    range([low, high])
                ));
            }
        }
        warnings
    }

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

/// Megabytes a second of analysing and sketching on one thread, over all texts as often as it takes.
/// Few texts that are gone through again and again are a little faster than as many new ones.
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
