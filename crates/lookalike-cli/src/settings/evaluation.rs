//! Settings of the commands that measure against labels.

use std::path::PathBuf;

use anyhow::{Result, bail};
use lookalike::Threshold;
use lookalike::evaluate::{Bootstrap, Goal, Options, Setting, Sweep, TuneOptions};
use lookalike_batch::run::{
    ClusterFiles, EvaluateSettings, Grades, GroupTexts, LabelledInputs, LabelledRows, PairFields,
    TuneSettings,
};
use lookalike_batch::sink::Output;

use super::{check_standard_output, chosen, of_sequences, output, read_options, threads};
use crate::args::{
    EvalArgs, InputFormat, Labels, Method, Reading, Resampling, Rule, TuneArgs, Verify, Ways,
};
use crate::settings::load_recipe;

/// The largest distance that is looked at unless another one is given.
const DISTANCE: u32 = 10;

/// The lowest threshold for pairs, and for groups.
const LOWEST: [f64; 2] = [0.05, 0.3];

/// Everything about one evaluation.
pub(crate) struct EvalRun {
    pub(crate) inputs: LabelledInputs,
    pub(crate) settings: EvaluateSettings,
    pub(crate) table: Option<Output>,
    pub(crate) chart: Option<PathBuf>,
}

impl EvalRun {
    pub(crate) fn new(args: &EvalArgs) -> Result<Self> {
        let places = [args.csv.as_deref(), args.svg.as_deref()];
        // What is printed is data itself.
        check_standard_output(places.into_iter().flatten(), true)?;
        let mut inputs = labelled(
            &args.inputs,
            &args.labels,
            &args.input_format,
            &args.reading,
        )?;
        if let LabelledRows::Pairs(fields) = &mut inputs.rows {
            fields.kind.clone_from(&args.kind);
        }
        inputs.outputs = places.into_iter().flatten().map(output).collect();
        let lowest = lowest(args.ways.from, &inputs)?;
        Ok(Self {
            inputs,
            settings: EvaluateSettings {
                settings: settings(&args.ways, lowest, &args.reading)?,
                options: Options {
                    thresholds: thresholds(lowest),
                    bootstrap: bootstrap(args.resampling),
                },
                threads: threads(args.threads),
            },
            table: args.csv.as_deref().map(output),
            chart: args.svg.clone(),
        })
    }
}

/// Everything about one tuning.
pub(crate) struct TuneRun {
    pub(crate) inputs: LabelledInputs,
    pub(crate) settings: TuneSettings,
}

impl TuneRun {
    pub(crate) fn new(args: &TuneArgs) -> Result<Self> {
        if let Some(place) = &args.output
            && place
                .extension()
                .is_none_or(|extension| extension != "toml")
        {
            bail!(
                "the recipe would be {}: give it the extension .toml, by which it is known as one",
                place.display()
            );
        }
        let mut inputs = labelled(
            &args.inputs,
            &args.labels,
            &args.input_format,
            &args.reading,
        )?;
        inputs.outputs = args.output.iter().map(|place| output(place)).collect();
        let lowest = lowest(args.from, &inputs)?;
        Ok(Self {
            inputs,
            settings: TuneSettings {
                recipe: load_recipe(&args.recipe, &args.changes)?,
                lowest,
                options: TuneOptions {
                    goal: args.goal,
                    bootstrap: bootstrap(args.resampling),
                },
                threads: threads(args.threads),
            },
        })
    }
}

/// `--goal`.
pub(crate) fn parse_goal(text: &str) -> Result<Goal, String> {
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

/// The lowest threshold: as given, or as is usual for pairs and for groups.
fn lowest(given: Option<Threshold>, inputs: &LabelledInputs) -> Result<Threshold> {
    let in_groups = matches!(inputs.rows, LabelledRows::Groups { .. });
    match given {
        Some(lowest) => Ok(lowest),
        None => Ok(Threshold::new(LOWEST[usize::from(in_groups)])?),
    }
}

/// Everything about one comparison of clusters.
pub(crate) struct ClustersRun {
    pub(crate) files: ClusterFiles,
}

impl ClustersRun {
    pub(crate) fn new(predicted: PathBuf, args: &EvalArgs) -> Result<Self> {
        let [truth] = &args.inputs[..] else {
            bail!(
                "--clusters compares one table with one: {} were given as true clusters",
                args.inputs.len()
            );
        };
        let files = ClusterFiles {
            predicted,
            truth: truth.clone(),
            read: read_options(args.input_format.format, &args.reading)?,
            documents: args.documents,
            bootstrap: bootstrap(args.resampling),
            threads: threads(args.threads),
        };
        Ok(Self { files })
    }
}

/// The lowest threshold and the twentieths above it.
fn thresholds(lowest: Threshold) -> Vec<f64> {
    let twentieths = (1..=20).map(|count| f64::from(count) / 20.0);
    std::iter::once(lowest.get())
        .chain(twentieths.filter(|&value| value > lowest.get()))
        .collect()
}

fn bootstrap(resampling: Resampling) -> Bootstrap {
    Bootstrap {
        resamples: resampling.resamples,
        seed: resampling.seed,
        ..Bootstrap::default()
    }
}

/// What is read, and what its rows are.
fn labelled(
    paths: &[PathBuf],
    labels: &Labels,
    format: &InputFormat,
    reading: &Reading,
) -> Result<LabelledInputs> {
    if let Some(field) = &reading.features {
        bail!("--features {field} is not for labelled texts: features are made of them here");
    }
    let in_groups = labels.groups || labels.texts.is_some();
    if let (Some(field), false) = (&labels.group, in_groups) {
        bail!("--group {field} is for groups: add --groups, or --texts FIELD");
    }
    if labels.corpus.is_empty() && (reading.id.is_some() || reading.id_row) {
        bail!("--id and --id-row are for --corpus, whose texts the pairs name by their ids");
    }
    if !in_groups && labels.corpus.is_empty() && !reading.text.is_empty() {
        bail!("--text is for groups and for --corpus: the texts of pairs are in --a and --b");
    }
    let rows = if in_groups {
        LabelledRows::Groups {
            group: labels.group.clone().unwrap_or_else(|| "group".to_owned()),
            texts: match &labels.texts {
                Some(field) => GroupTexts::InList(field.clone()),
                None => GroupTexts::InRows,
            },
        }
    } else {
        LabelledRows::Pairs(PairFields {
            a: labels.a.clone(),
            b: labels.b.clone(),
            label: labels.label.clone(),
            kind: None,
            grades: grades(labels)?,
            corpus: labels.corpus.clone(),
        })
    };
    Ok(LabelledInputs {
        paths: paths.to_vec(),
        rows,
        read: read_options(format.format, reading)?,
        outputs: Vec::new(),
    })
}

fn grades(labels: &Labels) -> Result<Option<Grades>> {
    let (Some(positive), Some(negative)) = (labels.positive, labels.negative) else {
        return Ok(None);
    };
    if !(positive.is_finite() && negative.is_finite() && negative < positive) {
        bail!(
            "--negative {negative} must be below --positive {positive}: a pair cannot be similar and \
             not similar"
        );
    }
    Ok(Some(Grades { positive, negative }))
}

/// Every recipe with every method and every measure.
fn settings(ways: &Ways, lowest: Threshold, reading: &Reading) -> Result<Vec<Setting>> {
    check_ways(ways)?;
    let mut settings = Vec::new();
    for recipe in &ways.recipe {
        for &method in &ways.method {
            let usual = [match method {
                Method::Simhash | Method::Sentences => Verify::None,
                _ => Verify::Jaccard,
            }];
            let measures = if ways.verify.is_empty() {
                &usual[..]
            } else {
                &ways.verify
            };
            for &verify in measures {
                settings.push(setting(ways, recipe, (method, verify), lowest, reading)?);
            }
        }
    }
    let has_threshold = |setting: &Setting| setting.sweep() == Sweep::Threshold;
    if let Some(from) = ways.from
        && !settings.iter().any(has_threshold)
    {
        bail!(
            "--from {} is for thresholds, and nothing that is measured has one: leave it out, or give \
             a measure with --verify",
            from.get()
        );
    }
    Ok(settings)
}

fn setting(
    ways: &Ways,
    recipe: &str,
    (method, verify): (Method, Verify),
    lowest: Threshold,
    reading: &Reading,
) -> Result<Setting> {
    let by_sketch = verify == Verify::None;
    let has_threshold = match method {
        Method::Exact => false,
        Method::Simhash | Method::Sentences => !by_sketch,
        _ => true,
    };
    let all_distances = (method == Method::Simhash && by_sketch).then_some(DISTANCE);
    let rule = Rule {
        method,
        threshold: has_threshold.then_some(lowest),
        distance: ways
            .distance
            .or(all_distances)
            .filter(|_| method == Method::Simhash),
        candidates: None,
        sentences: ways.sentences.filter(|_| method == Method::Sentences),
        recipe: recipe.to_owned(),
        changes: ways.changes.clone(),
        verify,
        unit: ways.unit.filter(|_| of_sequences(verify).is_some()),
    };
    let (recipe, matching) = chosen(&rule, reading)?;
    Ok(Setting { recipe, matching })
}

/// Refuses options that none of the methods and measures has a use for.
fn check_ways(ways: &Ways) -> Result<()> {
    let has = |method| ways.method.contains(&method);
    if let Some(distance) = ways.distance
        && !has(Method::Simhash)
    {
        bail!("--distance {distance} is for fingerprints: add --method simhash");
    }
    if let Some(sentences) = ways.sentences
        && !has(Method::Sentences)
    {
        bail!("--sentences {sentences} is for --method sentences: give both or neither");
    }
    if ways.unit.is_some() && !ways.verify.iter().any(|&it| of_sequences(it).is_some()) {
        bail!("--unit is for --verify levenshtein, indel and lcs, which count characters or words");
    }
    Ok(())
}
