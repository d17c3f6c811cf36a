//! `lookalike segment`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lookalike_batch::recipes::SEGMENTATION_RECIPE;
use lookalike_batch::run::{self, SegmentSettings, SegmentSummary, SegmentTexts, TermListing};

use super::shared::inputs::{ReadingArgs, read_options, refuse_features, without_features};
use super::shared::outputs::{RejectedArgs, TableOutputs};
use super::shared::recipes::{RecipeChangeArgs, load_recipe};
use super::shared::running::{RowsRun, RunningArgs, thread_count};
use super::shared::summary::{SummaryText, TEXT_OPTIONS, format_recipe};
use crate::CommandOutcome;
use crate::language::messages;
use crate::output::OutputPrinter;

/// Print the tokens of every document, or its terms with their weights
///
/// Writes a table with the columns id and tokens: the normalised tokens in the order of the text, separated
/// by spaces. With --weights, writes one row for each distinct term that counts in the SimHash of a document:
/// id, term, count, weight and part (of speech, for words cut by jieba), the heaviest term first.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike segment --literal 我来到北京清华大学
  lookalike segment --literal 我来到北京清华大学 --recipe jieba-full
  lookalike segment articles.jsonl --set segment.user=words.txt
  lookalike segment articles.jsonl --weights --set simhash.weights=tfidf --set simhash.table=idf.tsv
  lookalike segment articles.jsonl --set filter.parts=content --set filter.stopwords=zh")]
pub(crate) struct SegmentArgs {
    /// Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required_unless_present = "literal")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Text to segment instead of inputs; may be repeated, and the ids are then numbers
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with_all = ["inputs", "rejected"],
        help_heading = "Input"
    )]
    pub(crate) literal: Vec<String>,

    /// Table to write (.tsv, .csv, .jsonl, .parquet or .arrow, the first three also .gz and .zst); without it, TSV on
    /// standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Write one row for each distinct term with its count, weight and part of speech
    #[arg(long, help_heading = "Output")]
    pub(crate) weights: bool,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    /// Recipe that turns texts into tokens: a name (see `lookalike recipe`) or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = SEGMENTATION_RECIPE,
        help_heading = "Recipe"
    )]
    pub(crate) recipe: String,

    #[command(flatten)]
    pub(crate) changes: RecipeChangeArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

pub(crate) fn run_segment(args: &SegmentArgs) -> Result<CommandOutcome> {
    let recipe = Some(&*args.recipe);
    let outputs = TableOutputs::new(
        "the table",
        args.output.as_deref(),
        &args.bad_rows,
        args.running.json,
        recipe,
    )?;
    let settings = segment_settings(args)?;
    let texts = if args.literal.is_empty() {
        SegmentTexts::Inputs(args.inputs.clone().into())
    } else {
        SegmentTexts::Literal(args.literal.clone())
    };
    let mut run = RowsRun::with_table(&args.running, &outputs);
    // For a text on the command line, the summary adds nothing to the output.
    run.printer = OutputPrinter::new(args.running.quiet || !args.literal.is_empty());
    let TableOutputs { table, rejected } = &outputs;
    let done = run.watch_work(|reporter| {
        run::run_segment(&texts, &settings, table, rejected.as_ref(), reporter)
    })?;
    run.finish_run(&done, done.rejected, || describe_segmented(&done, args))
}

fn segment_settings(args: &SegmentArgs) -> Result<SegmentSettings> {
    refuse_features(&args.reading)?;
    Ok(SegmentSettings {
        recipe: load_recipe(&args.recipe, &args.changes)?,
        listing: if args.weights {
            TermListing::Weights
        } else {
            TermListing::Tokens
        },
        read: read_options(&args.reading)?,
        threads: thread_count(args.running.threads),
        strict: args.running.strict,
    })
}

/// Returns the summary for people.
fn describe_segmented(done: &SegmentSummary, args: &SegmentArgs) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    text.add_line(
        &messages::recipe(),
        format_recipe(&done.recipe, &done.recipe_id),
    );
    text.add_output(args.output.as_deref());
    text.into_text()
}
