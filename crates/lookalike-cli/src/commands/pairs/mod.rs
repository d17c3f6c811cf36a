//! `lookalike pairs`.

mod sample_report;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use lookalike::dedup::{CopyPairs, SurveyKind};
use lookalike_batch::run::report::ReportOutput;
use lookalike_batch::run::{self, PairsOutputs, PairsSummary, PlannedDirectories};
use lookalike_options::keep_order::KeepOrder;

use crate::CommandOutcome;
use crate::commands::shared::matching_runs::MatchingRunArgs;
use crate::commands::shared::outputs::{
    RejectedArgs, TableOutputs, check_separate_outputs, check_standard_output, output_file,
    output_target, page_language,
};
use crate::commands::shared::plan_report::{PlannedRun, explain_plan};
use crate::commands::shared::running::{RowsRun, parse_limit};
use crate::commands::shared::summary::{SummaryText, TEXT_OPTIONS};
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, format_count};

/// List every pair of near-duplicates with its similarity
///
/// Writes a table with the columns a, b, similarity, a_source, a_row, b_source and b_row, and the form of both unless --forms off,
/// sorted by position, a before b; rows count from 1 within their source. Of equal texts, each copy is paired
/// with the earliest within reach of --window and --within, with similarity 1, and further pairs name
/// the earliest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike pairs articles.jsonl --threshold 0.9 > pairs.tsv
  lookalike pairs titles.txt -o pairs.parquet --all
  lookalike pairs essays/ --against sources/ --document-per-file
  lookalike pairs articles.jsonl --threshold 0.5 --sample-by-similarity 3 | less")]
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

    /// Table of pairs (.tsv, .csv, .jsonl, .parquet or .arrow, the first three also .gz and .zst); without it, TSV on standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// List every combination of equal texts, both with each other and with similar texts. --against implies
    /// it unless --distinct is given
    #[arg(long, help_heading = "Output", conflicts_with = "distinct")]
    pub(crate) all: bool,

    /// Also list pairs that are similar enough and are kept apart by --forms: the column `apart` says by what (form, title
    /// or numbers), and is empty for pairs that match
    #[arg(long, help_heading = "Output")]
    pub(crate) apart: bool,

    /// Leave equal texts out: every pair has two different texts and names the earliest document of each
    #[arg(long, help_heading = "Output")]
    pub(crate) distinct: bool,

    /// Show N pairs of each band of similarity instead of the table, with their texts and differences, to choose
    /// a threshold by eye
    ///
    /// The bands are 0.05 wide, from the threshold on, and the last one has the pairs of similarity 1. A band
    /// says how many pairs it has. The same inputs give the same pairs, whatever the number of threads. With
    /// --json, the summary has them as `sample`. -o OUT also writes the table of all pairs.
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_limit,
        help_heading = "Output"
    )]
    pub(crate) sample_by_similarity: Option<usize>,

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

    /// Returns the outputs, which go to different places. Standard output receives the table or the sample.
    fn to_outputs(&self) -> Result<PairsOutputs> {
        let recipe = self.run.matching.rule.recipe.as_deref();
        let place = self.output.as_deref();
        let rejected = self.bad_rows.rejected.as_deref();
        let report = self.report.as_deref();
        let places = [
            ("pairs", place),
            ("report", report),
            ("rejected rows", rejected),
        ];
        let places = places
            .into_iter()
            .filter_map(|(name, it)| Some((name, it?)));
        check_separate_outputs(&places.collect::<Vec<_>>(), recipe)?;
        let (pairs, rejected) = if self.sample_by_similarity.is_some() {
            let files = [("pairs", place), ("rejected rows", rejected)];
            let files = files.into_iter().filter_map(|(name, it)| Some((name, it?)));
            let named: Vec<_> = files.chain([("the sample", Path::new("-"))]).collect();
            check_standard_output(&named, false)?;
            check_separate_outputs(&named, recipe)?;
            (place.map(output_target), self.bad_rows.target())
        } else {
            let json = self.run.running.json;
            let outputs = TableOutputs::new("pairs", place, &self.bad_rows, json, recipe)?;
            (Some(outputs.table), outputs.rejected)
        };
        Ok(PairsOutputs {
            pairs,
            sample: self.sample_by_similarity,
            copies: self.copy_pairs(),
            apart: self.apart,
            rejected,
            report: report.map(|place| ReportOutput {
                target: output_target(place),
                language: page_language(),
                written: self
                    .output
                    .iter()
                    .map(|path| ("pairs".to_owned(), path.display().to_string()))
                    .collect(),
                explain_command: None,
            }),
        })
    }
}

pub(crate) fn run_pairs(args: &PairsArgs) -> Result<CommandOutcome> {
    let running = &args.run.running;
    if args.run.matching.explain_plan {
        let planned = PlannedRun {
            args: &args.run,
            against: &args.against,
            keep: &KeepOrder::default(),
            sources: None,
            directories: PlannedDirectories::default(),
            has_passages: false,
            purpose: SurveyKind::Pairs,
        };
        return explain_plan(planned, &OutputPrinter::new(running.quiet));
    }
    if args.sample_by_similarity.is_some() && args.run.reading.features.is_some() {
        bail!("--sample-by-similarity shows texts, and --features has no texts: leave one out");
    }
    let settings = args.run.to_settings(&KeepOrder::default())?;
    let outputs = args.to_outputs()?;
    let targets = [&outputs.pairs, &outputs.rejected].into_iter().flatten();
    let report = outputs.report.as_ref().map(|report| &report.target);
    let files = targets.chain(report).filter_map(output_file);
    let run = RowsRun::new(running, files, outputs.rejected.is_some());
    let inputs = args.run.run_inputs(&args.against);
    let done =
        run.watch_work(|reporter| run::find_pairs(&inputs, &settings, &outputs, reporter))?;
    if let Some(bands) = done.sample.as_ref().filter(|_| !running.json) {
        let report = sample_report::render_sample(bands, done.run.threshold, &run.printer);
        run.printer.write_data(&report)?;
    }
    run.finish_run(&done, done.run.rejected, || {
        describe_pairs(&done, args, &run.printer)
    })
}

/// Returns the summary for people.
fn describe_pairs(done: &PairsSummary, args: &PairsArgs, printer: &OutputPrinter) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.run.bytes, done.run.seconds);
    text.add_line(&messages::pairs(), format_count(done.pairs));
    if done.equal_texts > 0 {
        let documents = NounCount(done.equal_texts, CountedNoun::Document);
        let treatment = if args.distinct {
            messages::equal_texts_left_out(documents)
        } else {
            messages::equal_texts_paired(documents)
        };
        text.add_line(&messages::equal_texts(), treatment);
    }
    text.add_forms(done.forms);
    if let Some(apart) = done.apart {
        let pairs = NounCount(apart, CountedNoun::Pair);
        text.add_line(&messages::kept_apart(), messages::pairs_kept_apart(pairs));
    }
    let heading = messages::similarity_of_pairs();
    text.add_histogram(&done.histogram, done.run.threshold, &heading, printer);
    text.add_audit(done.audit.as_ref(), messages::precision_of_pairs, printer);
    text.add_rejected(done.run.rejected, done.documents, TEXT_OPTIONS);
    text.add_matching(&done.run);
    text.add_spilled(done.spilled);
    text.add_output(args.output.as_deref());
    text.into_text()
}
