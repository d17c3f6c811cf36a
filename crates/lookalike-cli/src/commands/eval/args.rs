//! Arguments of `eval`, and the settings of an evaluation.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use lookalike::Threshold;
use lookalike::plan::{CandidateRule, EditUnit, MatchMethod, SimilarityMeasure};
use lookalike::quality::evaluate::{EvaluatedSetting, EvaluationOptions, SweptParameter};
use lookalike_batch::run::{
    ClusterFiles, ContaminationFiles, EvaluateSettings, LabelledInputs, LabelledRows, PassageFiles,
    options_to_measure, thresholds_from,
};
use lookalike_io::sink::OutputTarget;
use lookalike_options::match_options::{MatchOptions, OptionSpelling, list_sequence_measures};

use crate::commands::shared::inputs::{ReadingArgs, read_options};
use crate::commands::shared::labels::{
    LabelArgs, ResamplingArgs, bootstrap_options, labelled_inputs, lowest_threshold_or_default,
};
use crate::commands::shared::matching::{
    candidates_parser, measure_parser, method_parser, parse_threshold, unit_help, unit_long_help,
    unit_parser,
};
use crate::commands::shared::outputs::{check_separate_outputs, is_standard, output_target};
use crate::commands::shared::recipes::{FormTableArgs, RecipeChangeArgs, load_recipe};
use crate::commands::shared::running::{parse_limit, parse_threads, thread_count};

/// Measure precision and recall on labelled texts, at every threshold
///
/// Reads pairs of texts with a label (fields a, b and label), or groups of similar texts. For every threshold
/// or Hamming distance, prints the numbers of found, wrongly found and missed pairs, with intervals. `lost`
/// counts similar pairs that reach the threshold but are not candidates. The row with the highest F1 is
/// marked and broken down by length (of the shorter text), by script and, with --kind, by kind of edit. With
/// --clusters, compares two tables of clusters instead, with --passages two tables of passages, and with
/// --contamination the findings of `decontaminate` with planted items.
///
/// Labels are 1 or 0, true or false, yes or no, words such as duplicate or different, or grades with
/// --positive and --negative. A row that cannot be used stops the command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike eval pairs.jsonl --method simhash --distance 10
  lookalike eval pairs.csv --method auto,minhash --verify jaccard,levenshtein --svg curves.svg
  lookalike eval pairs.tsv --label jaccard --positive 0.8 --negative 0.5 --corpus articles.jsonl
  lookalike eval edits.jsonl --texts versions --recipe words-3 --csv points.csv
  lookalike eval true.tsv --clusters clusters.tsv
  lookalike eval passages.tsv --passages true.tsv
  lookalike eval findings.tsv --contamination planted.tsv")]
pub(crate) struct EvalArgs {
    /// Labelled texts: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is
    /// given). With --clusters, the table of true clusters: id, cluster; with --passages, the table of found passages;
    /// with --contamination, the table of findings
    #[arg(value_name = "LABELLED", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) labels: LabelArgs,

    /// Field with the kind of edit between the two texts of a pair; figures are broken down by it
    #[arg(
        long,
        value_name = "FIELD",
        conflicts_with_all = ["groups", "texts"],
        help_heading = "Labels"
    )]
    pub(crate) kind: Option<String>,

    /// Table of predicted clusters, compared with the true ones in LABELLED. Both have the columns id and
    /// cluster, as `dedup --clusters` writes them. Compares by pairs, by B-cubed and by equal sets. A
    /// document that is in one table only counts as a cluster of its own in the other
    #[arg(
        long,
        value_name = "PREDICTED",
        conflicts_with_all = [
            "a", "b", "label", "kind", "positive", "negative", "contradictory", "corpus", "groups", "group", "texts",
            "method", "verify", "unit", "from", "distance", "candidates", "sentences", "recipe", "set", "forms",
            "csv", "svg", "report", "text", "features", "id_row", "document_per_file"
        ],
        help_heading = "Clusters"
    )]
    pub(crate) clusters: Option<PathBuf>,

    /// Number of all documents; for --clusters. A document that is in neither table is a cluster of its own
    /// in both, which B-cubed counts as correct
    #[arg(
        long,
        value_name = "N",
        requires = "clusters",
        help_heading = "Clusters"
    )]
    pub(crate) documents: Option<u64>,

    /// Table of true passages, with which the found ones in LABELLED are compared. Both have the columns document,
    /// source, start, end, source_start and source_end, as `passages` writes them. Prints precision, recall,
    /// granularity and plagdet over characters (Potthast et al. 2010)
    #[arg(
        long,
        value_name = "TRUE",
        conflicts_with_all = [
            "a", "b", "label", "kind", "positive", "negative", "contradictory", "corpus", "groups", "group", "texts",
            "method", "verify", "unit", "from", "distance", "candidates", "sentences", "recipe", "set", "forms",
            "csv", "svg", "report", "text", "features", "id", "id_row", "document_per_file", "clusters"
        ],
        help_heading = "Findings"
    )]
    pub(crate) passages: Option<PathBuf>,

    /// Table of planted items of benchmarks, as `plant --contamination` writes it, with which the findings in LABELLED are
    /// compared: the table that `decontaminate --findings` writes for the planted corpus. Prints the recall by form, of all
    /// items and of those with fewer than 13 words, the precision, and the share of decoys with a wrong finding
    #[arg(
        long,
        value_name = "TRUTH",
        conflicts_with_all = [
            "a", "b", "label", "kind", "positive", "negative", "contradictory", "corpus", "groups", "group", "texts",
            "method", "verify", "unit", "from", "distance", "candidates", "sentences", "recipe", "set", "forms",
            "csv", "svg", "report", "text", "features", "id", "id_row", "document_per_file", "clusters", "passages",
            "resamples", "seed"
        ],
        help_heading = "Findings"
    )]
    pub(crate) contamination: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ways: EvaluatedMethodArgs,

    #[command(flatten)]
    pub(crate) resampling: ResamplingArgs,

    /// Also write all points of the curves as a table (.csv; .tsv, .jsonl, .parquet and .arrow as well)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,

    /// Also draw the curves as SVG
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// Also write a report as one HTML file: the curves with their intervals, the best settings, and figures by length,
    /// script and kind. It opens in a browser without a network
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Number of worker threads; results do not depend on it. Default: one per core
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_threads,
        help_heading = "Running"
    )]
    pub(crate) threads: Option<usize>,

    /// Print no progress and no time on standard error
    #[arg(short, long, help_heading = "Running")]
    pub(crate) quiet: bool,
}

/// Options that select the measured settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct EvaluatedMethodArgs {
    /// Method that finds candidate pairs; several, separated by commas, are measured one after the other
    #[arg(
        long,
        value_name = "METHOD",
        value_parser = method_parser(),
        value_delimiter = ',',
        default_value = "auto"
    )]
    pub(crate) method: Vec<MatchMethod>,

    /// Measure of similarity; several, separated by commas, are measured with every method
    ///
    /// Default: jaccard; none with --method simhash and sentences, which means every distance of
    /// fingerprints, or the sentences alone.
    #[arg(long, value_name = "MEASURE", value_parser = measure_parser(), value_delimiter = ',')]
    pub(crate) verify: Vec<SimilarityMeasure>,

    #[arg(
        long,
        value_name = "UNIT",
        value_parser = unit_parser(),
        help = unit_help("Unit of edits and lengths"),
        long_help = unit_long_help("Unit of edits and lengths")
    )]
    pub(crate) unit: Option<EditUnit>,

    /// Lowest threshold that is evaluated; the others follow in steps of 0.05
    ///
    /// Default: 0.05; 0.3 for groups, because all pairs that reach it are searched for.
    #[arg(long, value_name = "T", value_parser = parse_threshold)]
    pub(crate) from: Option<Threshold>,

    /// Largest distance that is evaluated, after every smaller one; with a measure, the distance within which
    /// candidates are found; for --method simhash
    ///
    /// Default: 10; 3 with a measure.
    #[arg(long, value_name = "K")]
    pub(crate) distance: Option<u32>,

    /// Rule for candidate fingerprints; for --method simhash with a measure
    ///
    /// Default: distance.
    #[arg(long, value_name = "WHICH", value_parser = candidates_parser())]
    pub(crate) candidates: Option<CandidateRule>,

    /// Number of longest sentences that represent a document; for --method sentences
    ///
    /// Default: 3.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    pub(crate) sentences: Option<usize>,

    /// Recipe that turns texts into features: a name (see `lookalike recipe`) or a TOML file; may be repeated
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) recipe: Vec<String>,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) forms: FormTableArgs,
}

/// Settings of an evaluation.
pub(super) struct EvalRun {
    pub(super) inputs: LabelledInputs,
    pub(super) settings: EvaluateSettings,
    pub(super) table: Option<OutputTarget>,
    pub(super) chart: Option<PathBuf>,
}

impl EvalRun {
    pub(super) fn new(args: &EvalArgs) -> Result<Self> {
        let named = [
            ("--csv", args.csv.as_deref()),
            ("--svg", args.svg.as_deref()),
            ("--report", args.report.as_deref()),
        ];
        check_outputs(&named, &args.ways.recipe)?;
        let mut inputs = labelled_inputs(&args.inputs, &args.labels, &args.reading)?;
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
fn check_outputs(named: &[(&str, Option<&Path>)], recipes: &[String]) -> Result<()> {
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
        if what == "--svg" && place.extension().is_none_or(|extension| extension != "svg") {
            bail!("--svg {} must have the extension .svg", place.display());
        }
    }
    check_separate_outputs(&named, recipes.iter().map(String::as_str))
}

/// Returns the settings of a comparison of clusters.
pub(super) fn cluster_files(predicted: PathBuf, args: &EvalArgs) -> Result<ClusterFiles> {
    let [truth] = &args.inputs[..] else {
        bail!(
            "--clusters compares two tables, but {} tables of true clusters are given: give one",
            args.inputs.len()
        );
    };
    Ok(ClusterFiles {
        predicted,
        truth: truth.clone(),
        read: read_options(&args.reading)?,
        documents: args.documents,
        bootstrap: bootstrap_options(args.resampling),
        threads: thread_count(args.threads),
    })
}

/// Returns the settings of a comparison of passages.
pub(super) fn passage_files(truth: PathBuf, args: &EvalArgs) -> Result<PassageFiles> {
    let [found] = &args.inputs[..] else {
        bail!(
            "--passages compares two tables, but {} tables of found passages are given: give one",
            args.inputs.len()
        );
    };
    Ok(PassageFiles {
        found: found.clone(),
        truth,
        read: read_options(&args.reading)?,
        threads: thread_count(args.threads),
    })
}

/// Returns the settings of a comparison of findings with planted items.
pub(super) fn contamination_files(truth: PathBuf, args: &EvalArgs) -> Result<ContaminationFiles> {
    let [findings] = &args.inputs[..] else {
        bail!(
            "--contamination compares two tables, but {} tables of findings are given: give one",
            args.inputs.len()
        );
    };
    Ok(ContaminationFiles {
        findings: findings.clone(),
        truth,
        read: read_options(&args.reading)?,
        threads: thread_count(args.threads),
    })
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
            let measures: Vec<Option<SimilarityMeasure>> = match &ways.verify[..] {
                [] => vec![None],
                asked => asked.iter().copied().map(Some).collect(),
            };
            for verify in measures {
                settings.push(evaluated_setting(ways, recipe, method, verify, lowest)?);
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
    method: MatchMethod,
    verify: Option<SimilarityMeasure>,
    lowest: Threshold,
) -> Result<EvaluatedSetting> {
    let asked = MatchOptions {
        method: Some(method),
        distance: ways.distance,
        sentences: ways.sentences,
        measure: verify,
        unit: ways.unit,
        ..MatchOptions::default()
    };
    let asked = options_to_measure(&asked, lowest);
    let checked = asked.measure != Some(SimilarityMeasure::Sketch);
    let asked = MatchOptions {
        candidates: ways
            .candidates
            .filter(|_| method.takes_distance() && checked),
        ..asked
    };
    Ok(EvaluatedSetting {
        matching: asked.to_settings(OptionSpelling::Options)?,
        recipe: ways.forms.apply_to(load_recipe(recipe, &ways.changes)?)?,
    })
}

/// Refuses options that have no effect with any of the methods and measures.
fn check_ways(ways: &EvaluatedMethodArgs) -> Result<()> {
    let has =
        |is_wanted: fn(MatchMethod) -> bool| ways.method.iter().any(|&method| is_wanted(method));
    if let Some(distance) = ways.distance
        && !has(MatchMethod::takes_distance)
    {
        bail!("--distance {distance} is for fingerprints: add --method simhash");
    }
    let checked = ways
        .verify
        .iter()
        .any(|&it| it != SimilarityMeasure::Sketch);
    if ways.candidates.is_some() && !(has(MatchMethod::takes_distance) && checked) {
        bail!(
            "--candidates is for fingerprints that are verified: add --method simhash and a \
             measure, such as --verify levenshtein"
        );
    }
    if let Some(sentences) = ways.sentences
        && !has(MatchMethod::takes_sentences)
    {
        bail!("--sentences {sentences} is for --method sentences: give both or neither");
    }
    if ways.unit.is_some()
        && !ways
            .verify
            .iter()
            .any(|&it| it.sequence_measure().is_some())
    {
        bail!(
            "--unit is for --verify {}, which count characters or words",
            list_sequence_measures()
        );
    }
    Ok(())
}
