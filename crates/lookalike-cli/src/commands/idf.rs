//! `lookalike idf`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use lookalike_batch::recipes::SEGMENTATION_RECIPE;
use lookalike_batch::run::{self, IdfPlan, IdfSettings, IdfSummary};
use lookalike_options::units::parse_size;

use super::shared::inputs::{ReadingArgs, read_options, refuse_features, without_features};
use super::shared::matching_runs::memory_limit;
use super::shared::memory_report::{MemoryReport, print_plan};
use super::shared::outputs::{RejectedArgs, TableOutputs};
use super::shared::recipes::{RecipeChangeArgs, load_recipe};
use super::shared::running::{RowsRun, RunningArgs, parse_limit, thread_count};
use super::shared::summary::{SummaryText, TEXT_OPTIONS, format_recipe};
use crate::CommandOutcome;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, format_bytes, format_count};

/// Learn a table of term weights (document frequencies) from documents
///
/// Writes a table with the columns term, documents and idf, the most frequent terms first. `documents` is the
/// number of documents that contain the term; `idf` is ln((1 + all documents) / (1 + documents with the
/// term)) + 1. Documents without any term do not count. A term is a feature of the recipe, for example a word
/// or three characters. The table is for recipes with the same terms: --set simhash.weights=tfidf --set
/// simhash.table=TABLE. Memory grows with the vocabulary, by some tens of bytes for each distinct term, up to --memory.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike idf articles.jsonl --recipe jieba -o idf.tsv --min-documents 2
  lookalike idf today.jsonl --recipe jieba -o new.tsv --merge idf.tsv
  lookalike fingerprint articles.jsonl --recipe jieba --set simhash.weights=tfidf \\
    --set simhash.table=idf.tsv --set simhash.top=20")]
pub(crate) struct IdfArgs {
    /// Inputs: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required_unless_present = "merge")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Table to write (.tsv); without it, standard output
    #[arg(short, long, value_name = "TABLE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Minimum number of documents that contain a term; rarer terms are left out
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Output"
    )]
    pub(crate) min_documents: u64,

    /// Maximum number of terms: keeps the most frequent ones; of equally frequent terms, the first in byte
    /// order
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_limit,
        help_heading = "Output"
    )]
    pub(crate) top: Option<usize>,

    /// Tables learned under the same recipe, whose counts are added. Terms that they left out are not
    /// counted. Give them after IN, or before another option
    #[arg(long, value_name = "TABLE", num_args = 1.., help_heading = "Input")]
    pub(crate) merge: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    /// Recipe that turns texts into terms: a name (see `lookalike recipe`) or a TOML file
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

    /// Maximum memory of the process: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024). Counts that
    /// do not fit go to temporary files; the table does not depend on it
    ///
    /// Temporary files are in --scratch, else in the directory of the variable TMPDIR, else in /tmp. A limit that is too small for any
    /// run is refused with the smallest one that would do. Default: four fifths of the available memory of the machine
    /// or of its control group.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Running")]
    pub(crate) memory: Option<u64>,

    /// Print the expected number of terms and the plan of the memory, then stop. The number is estimated from the
    /// first 32 MB of text
    #[arg(long, help_heading = "Running")]
    pub(crate) explain_plan: bool,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

pub(crate) fn run_idf(args: &IdfArgs) -> Result<CommandOutcome> {
    if args.explain_plan {
        return explain_plan(args);
    }
    let recipe = Some(&*args.recipe);
    let outputs = TableOutputs::new(
        "the table",
        args.output.as_deref(),
        &args.bad_rows,
        args.running.json,
        recipe,
    )?;
    let settings = idf_settings(args)?;
    let run = RowsRun::with_table(&args.running, &outputs);
    let TableOutputs { table, rejected } = &outputs;
    let inputs = args.inputs.clone().into();
    let done = run.watch_work(|reporter| {
        run::write_frequencies(&inputs, &settings, table, rejected.as_ref(), reporter)
    })?;
    run.finish_run(&done, done.rejected, || describe_frequencies(&done, args))
}

fn idf_settings(args: &IdfArgs) -> Result<IdfSettings> {
    refuse_features(&args.reading)?;
    Ok(IdfSettings {
        recipe: load_recipe(&args.recipe, &args.changes)?,
        least_documents: args.min_documents,
        top: args.top,
        merge: args.merge.clone(),
        read: read_options(&args.reading)?,
        threads: thread_count(args.running.threads),
        strict: args.running.strict,
        memory: memory_limit(args.memory),
    })
}

fn explain_plan(args: &IdfArgs) -> Result<CommandOutcome> {
    let settings = idf_settings(args)?;
    let Some(limit) = settings.memory else {
        anyhow::bail!(
            "the available memory of this machine is not known: give a limit with --memory"
        );
    };
    let plan = IdfPlan::plan_run(&args.inputs.clone().into(), &settings, limit)?;
    print_plan(&plan, &args.running, describe_plan)
}

/// Returns the plan for people.
fn describe_plan(plan: &IdfPlan, printer: &OutputPrinter) -> String {
    let counted = match (plan.documents, plan.terms) {
        (Some(documents), Some(terms)) => format!(
            "About {} terms in {} documents\n\n",
            format_count(terms),
            format_count(documents)
        ),
        _ => String::new(),
    };
    let spilled = match (plan.out_of_core, plan.in_memory_bytes) {
        (true, _) => format!(
            "out of core: about {} of temporary files",
            format_bytes(plan.disk_bytes)
        ),
        (false, Some(_)) => "in memory, without temporary files".to_owned(),
        (false, None) => {
            "inputs of unknown size: counts that do not fit go to temporary files".to_owned()
        }
    };
    let report = MemoryReport {
        limit_bytes: plan.limit_bytes,
        in_memory_bytes: plan.in_memory_bytes,
        plan: spilled,
        smallest_limit_bytes: plan.smallest_limit_bytes,
    };
    counted + &report.into_text(printer)
}

/// Returns the summary for people.
fn describe_frequencies(done: &IdfSummary, args: &IdfArgs) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    let documents = NounCount(done.counted, CountedNoun::Document);
    let terms = messages::terms_of(&format_count(done.terms), documents);
    text.add_line(&messages::terms(), terms);
    let terms = format!("{} {}", messages::terms(), done.terms_id);
    text.add_line(&messages::recipe(), format_recipe(&done.recipe, terms));
    text.add_spilled_data(done.spilled);
    text.add_output(args.output.as_deref());
    text.into_text()
}
