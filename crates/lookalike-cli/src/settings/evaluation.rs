//! Settings of the commands that evaluate against labels.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use lookalike::Threshold;
use lookalike::evaluate::{
    BootstrapOptions, EvaluatedSetting, EvaluationOptions, SweptParameter, TuneOptions,
};
use lookalike::plan::SimilarityMeasure;
use lookalike_batch::match_options::{MatchOptions, OptionSpelling};
use lookalike_batch::recipes::load_recipe_from_here;
use lookalike_batch::run::{
    ClusterFiles, ContradictoryLabels, EvaluateSettings, GradeThresholds, GroupTexts,
    LabelledInputs, LabelledRows, PairFields, TuneSettings, lowest_threshold, options_to_measure,
    thresholds_from,
};
use lookalike_io::sink::OutputTarget;

use super::{
    check_separate_outputs, is_standard, of_sequences, output_target, read_options, thread_count,
};
use crate::args::{
    ContradictoryPolicy, EvalArgs, EvaluatedMethodArgs, InputFormatArgs, LabelArgs, MeasureArg,
    MethodArg, ReadingArgs, ResamplingArgs, TuneArgs,
};
use crate::settings::load_recipe;

/// Settings of an evaluation.
pub(crate) struct EvalRun {
    pub(crate) inputs: LabelledInputs,
    pub(crate) settings: EvaluateSettings,
    pub(crate) table: Option<OutputTarget>,
    pub(crate) chart: Option<PathBuf>,
}

impl EvalRun {
    pub(crate) fn new(args: &EvalArgs) -> Result<Self> {
        let named = [
            ("--csv", args.csv.as_deref()),
            ("--svg", args.svg.as_deref()),
        ];
        check_eval_outputs(&named, &args.ways.recipe)?;
        let mut inputs = labelled_inputs(
            &args.inputs,
            &args.labels,
            &args.input_format,
            &args.reading,
        )?;
        if let LabelledRows::Pairs(fields) = &mut inputs.rows {
            fields.kind.clone_from(&args.kind);
        }
        inputs.outputs = named
            .iter()
            .filter_map(|(_, place)| place.map(output_target))
            .collect();
        let lowest = lowest_threshold_or_default(args.ways.from, &inputs)?;
        Ok(Self {
            inputs,
            settings: EvaluateSettings {
                settings: evaluated_settings(&args.ways, lowest)?,
                options: EvaluationOptions {
                    thresholds: thresholds_from(lowest),
                    bootstrap: bootstrap_options(args.resampling),
                },
                threads: thread_count(args.threads),
            },
            table: args.csv.as_deref().map(output_target),
            chart: args.svg.clone(),
        })
    }
}

/// Checks the outputs. Standard output receives the result, so the others go to different files.
fn check_eval_outputs(named: &[(&str, Option<&Path>)], recipes: &[String]) -> Result<()> {
    let named: Vec<_> = named
        .iter()
        .filter_map(|&(what, place)| Some((what, place?)))
        .collect();
    for &(what, place) in &named {
        if is_standard(place) {
            bail!(
                "{what} - is not possible, because standard output receives the table or the \
                 JSON: give a file"
            );
        }
        if what == "--svg" && place.extension().is_none_or(|it| it != "svg") {
            bail!("--svg {} must have the extension .svg", place.display());
        }
    }
    let recipes: Vec<&str> = recipes.iter().map(String::as_str).collect();
    check_separate_outputs(&named, &recipes)
}

/// Settings of a tuning run.
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
                "the recipe would be {}: give it the extension .toml, which marks a file as a \
                 recipe",
                place.display()
            );
        }
        let named: Vec<_> = args
            .output
            .iter()
            .map(|it| ("the tuned recipe", &**it))
            .collect();
        check_separate_outputs(&named, &[&args.recipe])?;
        let mut inputs = labelled_inputs(
            &args.inputs,
            &args.labels,
            &args.input_format,
            &args.reading,
        )?;
        inputs.outputs = args
            .output
            .iter()
            .map(|place| output_target(place))
            .collect();
        let lowest = lowest_threshold_or_default(args.from, &inputs)?;
        Ok(Self {
            inputs,
            settings: TuneSettings {
                recipe: load_recipe_from_here(
                    &args.recipe,
                    &args.changes.set,
                    OptionSpelling::Options,
                )?,
                lowest,
                options: TuneOptions {
                    goal: args.goal,
                    bootstrap: bootstrap_options(args.resampling),
                },
                threads: thread_count(args.threads),
            },
        })
    }
}

/// Returns the lowest threshold: as given, or the default for pairs or groups.
fn lowest_threshold_or_default(
    given: Option<Threshold>,
    inputs: &LabelledInputs,
) -> Result<Threshold> {
    match given {
        Some(lowest) => Ok(lowest),
        None => Ok(lowest_threshold(&inputs.rows)?),
    }
}

/// Settings of a comparison of clusters.
pub(crate) struct ClustersRun {
    pub(crate) files: ClusterFiles,
}

impl ClustersRun {
    pub(crate) fn new(predicted: PathBuf, args: &EvalArgs) -> Result<Self> {
        let [truth] = &args.inputs[..] else {
            bail!(
                "--clusters compares two tables, but {} tables of true clusters are given: give \
                 one",
                args.inputs.len()
            );
        };
        let files = ClusterFiles {
            predicted,
            truth: truth.clone(),
            read: read_options(args.input_format.format, &args.reading)?,
            documents: args.documents,
            bootstrap: bootstrap_options(args.resampling),
            threads: thread_count(args.threads),
        };
        Ok(Self { files })
    }
}

fn bootstrap_options(resampling: ResamplingArgs) -> BootstrapOptions {
    BootstrapOptions {
        resamples: resampling.resamples,
        seed: resampling.seed,
        ..BootstrapOptions::default()
    }
}

/// Returns the labelled inputs and the meaning of their rows.
fn labelled_inputs(
    paths: &[PathBuf],
    labels: &LabelArgs,
    format: &InputFormatArgs,
    reading: &ReadingArgs,
) -> Result<LabelledInputs> {
    if let Some(field) = &reading.features {
        bail!(
            "--features {field} is not for labelled texts, because features are computed from \
             the texts: leave it out"
        );
    }
    let in_groups = labels.groups || labels.texts.is_some();
    if let (Some(field), false) = (&labels.group, in_groups) {
        bail!("--group {field} is for groups: add --groups, or give --texts FIELD");
    }
    if labels.corpus.is_empty() && (reading.id.is_some() || reading.id_row) {
        bail!(
            "--id and --id-row are for --corpus, whose texts the pairs name by id: add --corpus, \
             or leave them out"
        );
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
            grades: grade_thresholds(labels)?,
            corpus: labels.corpus.clone().into(),
            contradictory: match labels.contradictory {
                ContradictoryPolicy::Refuse => ContradictoryLabels::Refuse,
                ContradictoryPolicy::Drop => ContradictoryLabels::Drop,
                ContradictoryPolicy::First => ContradictoryLabels::First,
            },
            spelling: OptionSpelling::Options,
        })
    };
    Ok(LabelledInputs {
        source: paths.to_vec().into(),
        rows,
        read: read_options(format.format, reading)?,
        outputs: Vec::new(),
    })
}

fn grade_thresholds(labels: &LabelArgs) -> Result<Option<GradeThresholds>> {
    let (Some(positive), Some(negative)) = (labels.positive, labels.negative) else {
        return Ok(None);
    };
    if let Some(grade) = [positive, negative].into_iter().find(|it| !it.is_finite()) {
        bail!("{grade} is not a grade for --positive or --negative: give a number");
    }
    if negative >= positive {
        bail!(
            "--negative {negative} must be below --positive {positive}: a pair cannot be similar and \
             not similar"
        );
    }
    Ok(Some(GradeThresholds { positive, negative }))
}

/// Returns every combination of recipes, methods and measures.
fn evaluated_settings(
    ways: &EvaluatedMethodArgs,
    lowest: Threshold,
) -> Result<Vec<EvaluatedSetting>> {
    check_ways(ways)?;
    let mut settings = Vec::new();
    for recipe in &ways.recipe {
        for &method in &ways.method {
            let measures: Vec<Option<MeasureArg>> = match &ways.verify[..] {
                [] => vec![None],
                asked => asked.iter().copied().map(Some).collect(),
            };
            for verify in measures {
                settings.push(evaluated_setting(ways, recipe, (method, verify), lowest)?);
            }
        }
    }
    let has_threshold =
        |setting: &EvaluatedSetting| setting.swept_parameter() == SweptParameter::Threshold;
    if let Some(from) = ways.from
        && !settings.iter().any(has_threshold)
    {
        bail!(
            "--from {} is for thresholds, and no measured setting has one: leave it out, or give a \
             measure with --verify",
            from.get()
        );
    }
    Ok(settings)
}

fn evaluated_setting(
    ways: &EvaluatedMethodArgs,
    recipe: &str,
    (method, verify): (MethodArg, Option<MeasureArg>),
    lowest: Threshold,
) -> Result<EvaluatedSetting> {
    let asked = MatchOptions {
        method: Some(method.into()),
        distance: ways.distance,
        sentences: ways.sentences,
        measure: verify.map(Into::into),
        unit: ways.unit.map(Into::into),
        ..MatchOptions::default()
    };
    let asked = options_to_measure(&asked, lowest);
    let checked = asked.measure != Some(SimilarityMeasure::Sketch);
    let candidates = ways.candidates.map(Into::into);
    let asked = MatchOptions {
        candidates: candidates.filter(|_| method == MethodArg::Simhash && checked),
        ..asked
    };
    Ok(EvaluatedSetting {
        matching: asked.to_settings(OptionSpelling::Options)?,
        recipe: load_recipe(recipe, &ways.changes)?,
    })
}

/// Refuses options that have no effect with any of the methods and measures.
fn check_ways(ways: &EvaluatedMethodArgs) -> Result<()> {
    let has = |method| ways.method.contains(&method);
    if let Some(distance) = ways.distance
        && !has(MethodArg::Simhash)
    {
        bail!("--distance {distance} is for fingerprints: add --method simhash");
    }
    let checked = ways.verify.iter().any(|&it| it != MeasureArg::None);
    if ways.candidates.is_some() && !(has(MethodArg::Simhash) && checked) {
        bail!(
            "--candidates is for fingerprints that are verified: add --method simhash and a \
             measure, such as --verify levenshtein"
        );
    }
    if let Some(sentences) = ways.sentences
        && !has(MethodArg::Sentences)
    {
        bail!("--sentences {sentences} is for --method sentences: give both or neither");
    }
    if ways.unit.is_some() && !ways.verify.iter().any(|&it| of_sequences(it).is_some()) {
        bail!("--unit is for --verify levenshtein, indel and lcs, which count characters or words");
    }
    Ok(())
}
