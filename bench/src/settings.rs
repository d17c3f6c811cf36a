//! The experiment that chose the defaults. On every labelled set it compares the default method and
//! recipe with single settings. Each uses the threshold that does best on the tuning half, and all
//! are measured on the other half.

use std::path::Path;

use anyhow::{Context, Result};
use lookalike::plan::{self, EditUnit, MatchMethod, SimilarityMeasure};
use lookalike::quality::evaluate::{
    BootstrapOptions, EvaluatedSetting, Evaluation, EvaluationOptions, EvaluationPoint,
    LabelledPair, LabelledTexts, MetricEstimate, MetricEstimates, SweptParameter,
};
use lookalike::{DocId, Recipe, Threshold};
use serde::Serialize;

use crate::labelled::{self, Half, Set};
use crate::machine;

#[derive(Serialize)]
struct Row {
    set: &'static str,
    truth: &'static str,
    near_duplicates: bool,
    setting: String,
    cut: f64,
    /// Criterion that chose the cut on the tuning half; or `default`; or `fixed`, whose results are
    /// measured on the tuning half itself.
    chosen_by: &'static str,
    positive: u64,
    negative: u64,
    #[serde(serialize_with = "machine::rounded")]
    precision: f64,
    #[serde(serialize_with = "machine::rounded")]
    recall: f64,
    #[serde(serialize_with = "machine::rounded")]
    f1: f64,
    f1_interval: String,
}

/// The lowest threshold of the search, and the number of steps from it on.
const LOWEST_THRESHOLD: f64 = 0.3;
const THRESHOLD_STEPS: usize = 13;

/// Candidates for the default threshold.
const DEFAULT_CANDIDATES: [f64; 5] = [0.65, 0.7, 0.75, 0.8, 0.85];

/// Precision required of a second threshold, beside the one with the highest F1.
const REQUIRED_PRECISION: f64 = 0.99;

/// Largest distance of 64-bit fingerprints that is tried.
const MAX_DISTANCE: u32 = 24;

/// Largest number of characters that edit distances compare, because their time grows with the
/// square of the length.
const MOST_CHARACTERS: usize = 2000;

/// Measures every setting on every set.
pub fn run(data: &Path) -> Result<()> {
    let mut rows = Vec::new();
    for set in labelled::sets(data)? {
        let [tune, test] = [Half::Tune, Half::Test].map(|half| of_half(&set, half));
        let (tune, test) = (tune?, test?);
        let judge = |named: &Named, cut, chosen_by| row(&set, &test, named, cut, chosen_by);
        let default = default_setting()?;
        for threshold in DEFAULT_CANDIDATES {
            rows.push(row(&set, &tune, &default, threshold, "fixed")?);
        }
        rows.push(judge(&default, Threshold::DEFAULT.get(), "default")?);
        if let Some(cut) = precise(&tune, &default.setting)? {
            rows.push(judge(&default, cut, "precision")?);
        }
        for setting in settings(&set)? {
            let cut = chosen(&tune, &setting.setting)
                .with_context(|| format!("{} on {}", setting.name, set.name))?;
            rows.push(judge(&setting, cut, "F1")?);
        }
    }
    machine::write("settings", rows)
}

/// A setting and its name.
struct Named {
    name: String,
    setting: EvaluatedSetting,
}

fn default_setting() -> Result<Named> {
    named(
        "auto, default-1",
        "default-1",
        plan::MatchSettings::default(),
    )
}

fn named(name: &str, recipe: &str, matching: plan::MatchSettings) -> Result<Named> {
    let threshold = Threshold::new(LOWEST_THRESHOLD)?;
    Ok(Named {
        name: name.to_owned(),
        setting: EvaluatedSetting {
            recipe: Recipe::built_in(recipe)?,
            matching: plan::MatchSettings {
                threshold,
                ..matching
            },
        },
    })
}

/// Returns the default method and the single settings that are compared with it.
fn settings(set: &Set) -> Result<Vec<Named>> {
    let default = plan::MatchSettings::default();
    let by = |method| plan::MatchSettings { method, ..default };
    let alone = |method| plan::MatchSettings {
        method,
        measure: SimilarityMeasure::Sketch,
        distance: MAX_DISTANCE,
        ..default
    };
    let checked = |measure, unit| plan::MatchSettings {
        method: MatchMethod::Join,
        measure,
        unit,
        ..default
    };
    let mut settings = vec![default_setting()?];
    let recipes = ["default-1", "words-1", "words-3", "characters-3", "jieba"];
    for recipe in recipes {
        settings.push(named(
            &format!("Jaccard, {recipe}"),
            recipe,
            by(MatchMethod::Join),
        )?);
        settings.push(named(
            &format!("SimHash, {recipe}"),
            recipe,
            alone(MatchMethod::SimHash),
        )?);
    }
    for recipe in ["default-1", "characters-3"] {
        settings.push(named(
            &format!("MinHash, {recipe}"),
            recipe,
            alone(MatchMethod::MinHash),
        )?);
        settings.push(named(
            &format!("bottom-k, {recipe}"),
            recipe,
            alone(MatchMethod::BottomK),
        )?);
    }
    settings.push(named(
        "longest sentences",
        "default-1",
        alone(MatchMethod::Sentences),
    )?);
    for (name, measure) in [
        ("containment, default-1", SimilarityMeasure::Containment),
        ("cosine, default-1", SimilarityMeasure::Cosine),
    ] {
        settings.push(named(
            name,
            "default-1",
            checked(measure, EditUnit::Characters),
        )?);
    }
    if set
        .texts
        .iter()
        .all(|text| text.chars().count() <= MOST_CHARACTERS)
    {
        let edits = checked(SimilarityMeasure::Levenshtein, EditUnit::Characters);
        settings.push(named("Levenshtein, default-1", "default-1", edits)?);
        let edits = checked(SimilarityMeasure::Indel, EditUnit::Words);
        settings.push(named("Indel by words, default-1", "default-1", edits)?);
    }
    Ok(settings)
}

fn of_half(set: &Set, half: Half) -> Result<LabelledTexts> {
    let pairs = set.pairs.iter().filter(|pair| pair.half == half);
    let pairs = pairs.map(|pair| LabelledPair {
        a: DocId(pair.texts.0 as u32),
        b: DocId(pair.texts.1 as u32),
        similar: pair.positive,
        kind: None,
    });
    LabelledTexts::from_pairs(set.texts.clone(), pairs.collect(), Vec::new())
        .with_context(|| format!("a half of {}", set.name))
}

fn grid() -> Vec<f64> {
    (0..=THRESHOLD_STEPS)
        .map(|step| ((LOWEST_THRESHOLD + 0.05 * step as f64) * 100.0).round() / 100.0)
        .collect()
}

/// Returns the cut with the highest F1.
fn chosen(tune: &LabelledTexts, setting: &EvaluatedSetting) -> Result<f64> {
    let evaluation = Evaluation::new(tune, setting, &without_intervals(grid()))?;
    let best = evaluation.best.unwrap_or_default();
    Ok(evaluation.points[best].cut)
}

/// Returns the lowest threshold, in fine steps, at which precision is at least [`REQUIRED_PRECISION`].
fn precise(tune: &LabelledTexts, setting: &EvaluatedSetting) -> Result<Option<f64>> {
    let steps = (60..200).step_by(2).chain((81..161).step_by(2));
    let mut thresholds: Vec<f64> = steps.map(|step| f64::from(step) / 200.0).collect();
    thresholds.sort_by(f64::total_cmp);
    let evaluation = Evaluation::new(tune, setting, &without_intervals(thresholds))?;
    let is_precise = |point: &&EvaluationPoint| {
        let precision = point.decisive_metrics().precision.value;
        precision.is_some_and(|precision| precision >= REQUIRED_PRECISION)
    };
    Ok(evaluation
        .points
        .iter()
        .find(is_precise)
        .map(|point| point.cut))
}

fn without_intervals(thresholds: Vec<f64>) -> EvaluationOptions {
    EvaluationOptions {
        thresholds,
        bootstrap: BootstrapOptions {
            resamples: 0,
            ..BootstrapOptions::default()
        },
    }
}

fn row(
    set: &Set,
    test: &LabelledTexts,
    named: &Named,
    cut: f64,
    chosen_by: &'static str,
) -> Result<Row> {
    let metrics = judged(test, &named.setting, cut)?;
    let value = |estimate: MetricEstimate| estimate.value.unwrap_or(f64::NAN);
    let row = Row {
        set: set.name,
        truth: set.truth,
        near_duplicates: set.near_duplicates,
        setting: named.name.clone(),
        cut,
        chosen_by,
        positive: test.count_similar_pairs(),
        negative: test.count_different_pairs(),
        precision: value(metrics.precision),
        recall: value(metrics.recall),
        f1: value(metrics.f1),
        f1_interval: metrics.f1.interval.map_or_else(String::new, |interval| {
            format!("{:.3}–{:.3}", interval.low, interval.high)
        }),
    };
    println!(
        "{:26} {:26} at {:<6} precision {:.4} recall {:.4} F1 {:.4}",
        row.set, row.setting, row.cut, row.precision, row.recall, row.f1
    );
    Ok(row)
}

/// Measures a setting at one cut.
fn judged(test: &LabelledTexts, setting: &EvaluatedSetting, cut: f64) -> Result<MetricEstimates> {
    let options = EvaluationOptions {
        thresholds: vec![cut],
        bootstrap: BootstrapOptions::default(),
    };
    let setting = match setting.swept_parameter() {
        SweptParameter::Threshold => EvaluatedSetting {
            matching: plan::MatchSettings {
                threshold: Threshold::new(cut)?,
                ..setting.matching
            },
            ..setting.clone()
        },
        SweptParameter::Distance | SweptParameter::Nothing => setting.clone(),
    };
    let evaluation = Evaluation::new(test, &setting, &options)?;
    let at_cut = evaluation.points.iter().find(|point| point.cut == cut);
    Ok(*at_cut.context("the cut was looked at")?.decisive_metrics())
}
