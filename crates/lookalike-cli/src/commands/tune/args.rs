//! Arguments of `tune`, and the settings of its run.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use lookalike::Threshold;
use lookalike::quality::evaluate::{TuneOptions, TuningGoal};
use lookalike_batch::recipes::load_recipe_from_here;
use lookalike_batch::run::{LabelledInputs, TuneSettings, parse_goal};
use lookalike_options::match_options::OptionSpelling;

use crate::commands::shared::inputs::ReadingArgs;
use crate::commands::shared::labels::{
    LabelArgs, ResamplingArgs, bootstrap_options, labelled_inputs, lowest_threshold_or_default,
};
use crate::commands::shared::matching::parse_threshold;
use crate::commands::shared::outputs::{check_separate_outputs, output_target};
use crate::commands::shared::recipes::{FormTableArgs, RecipeChangeArgs};
use crate::commands::shared::running::{parse_threads, thread_count};

/// Find the best settings for labelled texts, as a recipe
///
/// Reads labels as `eval` does and splits them into two halves, so that connected texts stay in one half. On
/// the first half, tries every n-gram of words, of characters and, for Chinese, of words cut by jieba, with
/// every measure, with fingerprints, with signatures and with the smallest hashes, each at its best threshold
/// or distance. Also tries the features of the recipe with every weight that its table allows.
/// Among the settings that the best one does not beat in 95 of 100 resamples, chooses the first in the order
/// of preference: common settings come first, costly ones last. The other half, which is held back, measures
/// the chosen setting beside the runner-up and the recipe as it was, with the price in speed and
/// memory and with the share of the corpus that each removes: of --corpus or of the labelled texts, of more
/// than 10,000 documents or 32 MiB a sample.
///
/// No threshold is chosen below the lowest labelled pair, or below a wide range of similarities in which no
/// pair is labelled as different; such ranges are reported. A goal of precision that a setting keeps at every
/// threshold does not count as reached, because the labels cannot judge it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike tune pairs.jsonl -o mine.toml
  lookalike tune pairs.csv -o mine.toml --goal 'precision>=0.99'
  lookalike tune pairs.csv --set simhash.weights=tfidf --set simhash.table=idf.tsv -o mine.toml
  lookalike tune edits.jsonl --texts versions --recipe characters-3 --json")]
pub(crate) struct TuneArgs {
    /// Labelled texts: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is
    /// given)
    #[arg(value_name = "LABELLED", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// File for the recipe (.toml); without it, standard output
    #[arg(short, long, value_name = "RECIPE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) labels: LabelArgs,

    /// Goal of the choice: f1, or precision>=P for the highest recall at that precision
    #[arg(
        long,
        value_name = "GOAL",
        default_value = "f1",
        value_parser = parse_goal,
        help_heading = "Matching"
    )]
    pub(crate) goal: TuningGoal,

    /// Lowest threshold that is tried
    ///
    /// Default: 0.05; 0.3 for groups, because all pairs that reach it are searched for.
    #[arg(
        long,
        value_name = "T",
        value_parser = parse_threshold,
        help_heading = "Matching"
    )]
    pub(crate) from: Option<Threshold>,

    /// Recipe to start from, whose normalisation all settings share: a name (see `lookalike recipe`) or a
    /// TOML file. File paths in the resulting recipe are relative to the directory of that recipe
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "default",
        help_heading = "Matching"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) forms: FormTableArgs,

    #[command(flatten)]
    pub(crate) resampling: ResamplingArgs,

    /// Print one JSON object with all settings instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Number of worker threads; figures other than speeds do not depend on it. Default: one per core
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

/// Settings of a tuning run.
pub(super) struct TuneRun {
    pub(super) inputs: LabelledInputs,
    pub(super) settings: TuneSettings,
}

impl TuneRun {
    pub(super) fn new(args: &TuneArgs) -> Result<Self> {
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
            .map(|recipe| ("the tuned recipe", &**recipe))
            .collect();
        check_separate_outputs(&named, [&*args.recipe])?;
        let mut inputs = labelled_inputs(&args.inputs, &args.labels, &args.reading)?;
        inputs.outputs = args
            .output
            .iter()
            .map(|place| output_target(place))
            .collect();
        let lowest = lowest_threshold_or_default(args.from, &inputs)?;
        Ok(Self {
            inputs,
            settings: TuneSettings {
                recipe: args.forms.apply_to(load_recipe_from_here(
                    &args.recipe,
                    &args.changes.set,
                    OptionSpelling::Options,
                )?)?,
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
