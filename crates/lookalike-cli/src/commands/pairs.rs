//! `lookalike pairs`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lookalike::dedup::{CopyPairs, SurveyKind};
use lookalike_batch::run::report::ReportOutput;
use lookalike_batch::run::{self, KeepOrder, PairsOutputs, PairsSummary};

use super::shared::matching_runs::MatchingRunArgs;
use super::shared::outputs::{
    RejectedArgs, TableOutputs, check_separate_outputs, output_target, page_language,
};
use super::shared::plan_report::{PlannedRun, explain_plan};
use super::shared::running::RowsRun;
use super::shared::summary::{MatchDescription, SummaryText, TEXT_OPTIONS};
use crate::CommandOutcome;
use crate::output::{OutputPrinter, format_count, format_plural};

/// List every pair of near-duplicates with its similarity
///
/// Writes a table with the columns a, b, similarity, a_source, a_row, b_source and b_row, sorted by
/// position, a before b; rows count from 1 within their source. Of equal texts, each copy is paired
/// with the earliest within reach of --window and --within, with similarity 1, and further pairs name
/// the earliest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike pairs articles.jsonl --threshold 0.9 > pairs.tsv
  lookalike pairs titles.txt -o pairs.parquet --all
  lookalike pairs essays/ --against sources/ --document-per-file")]
pub(crate) struct PairsArgs {
    /// Reference documents: lists only pairs of one of these (a) and one of IN (b). Give them after IN, or
    /// before another option
    #[arg(
        long,
        value_name = "IN",
        num_args = 1..,
        help_heading = "Input"
    )]
    pub(crate) against: Vec<PathBuf>,

    /// Table of pairs (.tsv, .csv, .jsonl or .parquet, also .gz and .zst); without it, TSV on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// List every combination of equal texts, both with each other and with similar texts. --against implies
    /// it unless --distinct is given
    #[arg(long, help_heading = "Output", conflicts_with = "distinct")]
    pub(crate) all: bool,

    /// Leave equal texts out: every pair has two different texts and names the earliest document of each
    #[arg(long, help_heading = "Output")]
    pub(crate) distinct: bool,

    /// Report of the run as one HTML file: similarities, and pairs side by side, the nearest to the threshold first.
    /// Marks that are set in it become a file for dedup --decisions
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    #[command(flatten)]
    pub(crate) run: MatchingRunArgs,
}

impl PairsArgs {
    /// Returns the pairs of equal texts that are listed.
    fn copy_pairs(&self) -> CopyPairs {
        match (self.all, self.distinct) {
            (true, _) => CopyPairs::All,
            (_, true) => CopyPairs::None,
            _ => CopyPairs::WithEarliest,
        }
    }
}

pub(crate) fn run_pairs(args: &PairsArgs) -> Result<CommandOutcome> {
    let running = &args.run.running;
    if args.run.matching.explain_plan {
        let planned = PlannedRun {
            args: &args.run,
            against: &args.against,
            keep: &KeepOrder::First,
            purpose: SurveyKind::Pairs,
        };
        return explain_plan(planned, &OutputPrinter::new(running.quiet));
    }
    let settings = args.run.to_settings(&KeepOrder::First)?;
    let named = ("pairs", args.output.as_deref());
    let recipe = Some(&*args.run.matching.rule.recipe);
    let outputs = TableOutputs::new(named, &args.bad_rows, running.json, recipe)?;
    let places = [
        ("pairs", &args.output),
        ("report", &args.report),
        ("rejected rows", &args.bad_rows.rejected),
    ];
    let places: Vec<_> = (places.into_iter())
        .filter_map(|(name, place)| Some((name, place.as_deref()?)))
        .collect();
    check_separate_outputs(&places, recipe)?;
    let run = RowsRun::with_table(running, &outputs);
    let outputs = PairsOutputs {
        pairs: outputs.table,
        copies: args.copy_pairs(),
        rejected: outputs.rejected,
        report: args.report.as_deref().map(|place| ReportOutput {
            target: output_target(place),
            language: page_language(),
            written: args
                .output
                .iter()
                .map(|it| ("pairs".to_owned(), it.display().to_string()))
                .collect(),
            explain_command: None,
        }),
    };
    let inputs = args.run.run_inputs(&args.against);
    let done =
        run.watch_work(|reporter| run::find_pairs(&inputs, &settings, &outputs, reporter))?;
    run.finish_run(&done, done.rejected, || {
        describe_pairs(&done, args, &run.printer)
    })
}

/// Returns the summary for people.
fn describe_pairs(done: &PairsSummary, args: &PairsArgs, printer: &OutputPrinter) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    text.add_line("pairs", format_count(done.pairs));
    if done.equal_texts > 0 {
        let documents = format_plural(done.equal_texts, "document", "documents");
        let treatment = match args.distinct {
            true => " and are left out",
            false => ", with which each is paired; --all lists every combination",
        };
        text.add_line(
            "equal texts",
            format_args!("{documents} have the text of an earlier one{treatment}"),
        );
    }
    let by_similarity = (&done.histogram, done.threshold);
    text.add_histogram(by_similarity, "Similarity of the pairs", printer);
    text.add_audit(done.audit.as_ref(), "pairs", printer);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    text.add_matching(MatchDescription {
        method: done.method,
        measure: done.measure,
        threshold: done.threshold,
        candidate_threshold: done.candidate_threshold,
        recipe: &done.recipe,
        recipe_id: &done.recipe_id,
    });
    text.add_spilled(done.spilled);
    text.add_output(args.output.as_deref());
    text.into_text()
}
