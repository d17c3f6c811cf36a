//! `lookalike decontaminate`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lookalike_batch::run::report::ReportOutput;
use lookalike_batch::run::{
    self, BenchmarkContamination, ContaminationCut, ContaminationPlan, DecontaminateInputs,
    DecontaminateOutputs, DecontaminateSettings, DecontaminateSummary, ItemFields, WorkSettings,
};
use lookalike_options::match_options::OptionSpelling;
use lookalike_options::units::parse_size;

use super::shared::inputs::{ReadingArgs, read_options, refuse_features, without_features};
use super::shared::matching_runs::memory_limit;
use super::shared::memory_report::{MemoryReport, print_plan};
use super::shared::outputs::{
    EmptyInputArgs, RejectedArgs, check_separate_outputs, check_standard_output, output_file,
    output_target, page_language,
};
use super::shared::running::{RowsRun, RunningArgs, thread_count};
use super::shared::summary::{SummaryText, TEXT_OPTIONS};
use crate::CommandOutcome;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, format_bytes, format_count};

/// Benchmarks that a summary lists.
const LISTED_BENCHMARKS: usize = 20;

/// Take items of evaluation benchmarks out of a corpus
///
/// An item is found where its question stands in a document: as it is or in other case and punctuation, over lines and
/// cells of a table, between HTML tags and LaTeX commands, in the other Chinese script, or with some words replaced. A
/// short or common question is found only with its answer or its choices nearby. How much a word tells follows from
/// how rare it is in the corpus. Questions in very many documents are boilerplate and find nothing alone.
///
/// Benchmarks are read as they come: JSONL, CSV or Parquet of well-known benchmarks is recognised by its fields (MMLU, GSM8K,
/// ARC, HellaSwag, AGIEval, C-Eval, CMMLU, HumanEval, MBPP and others). For other files, --fields names the fields.
///
/// The table of findings has the columns id, benchmark, item, found (question, answer, both), score, start, end, item_start,
/// item_end, source and row. The score is the share of the question's information that was found in order. Positions count
/// characters from 0.
#[derive(Debug, Args)]
#[command(mut_arg("features", without_features))]
#[command(after_help = "\
Examples:
  lookalike decontaminate corpus.jsonl --benchmarks evals/ -o clean.jsonl --findings findings.tsv
  lookalike decontaminate pages/ --benchmarks mmlu.parquet gsm8k.jsonl --items items.tsv
  lookalike decontaminate corpus.parquet --benchmarks quiz.csv --fields question=ask,answer=key \\
    --cut sentence -o clean.parquet")]
pub(crate) struct DecontaminateArgs {
    /// Corpus: files, directories, globs, URLs, or - for standard input (read as JSONL unless --format is given)
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// Benchmarks: files, directories and globs. Give them after IN, or before another option
    #[arg(long, value_name = "DIR|FILE", num_args = 1.., required = true, help_heading = "Input")]
    pub(crate) benchmarks: Vec<PathBuf>,

    /// Fields of the benchmarks: question=FIELD, and choices=, answer=, passage= and id= if they have them. Several fields
    /// with choices are joined by +
    #[arg(long, value_name = "NAME=FIELD,…", help_heading = "Input")]
    pub(crate) fields: Option<ItemFields>,

    /// Corpus without the items, in the format of IN or of the extension; a directory mirrors the inputs
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Table of findings: which item stands in which document, and where
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) findings: Option<PathBuf>,

    /// Table of the items that stand in the corpus, for whoever publishes scores: benchmark, item, found, score, documents
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) items: Option<PathBuf>,

    /// Part of a document with findings that is taken out
    #[arg(long, value_enum, default_value_t = CutArg::Document, help_heading = "Output")]
    pub(crate) cut: CutArg,

    /// Report of the run as one HTML file: how many items of each benchmark are found, the worst findings beside their
    /// items, and the ids of the items for whoever publishes scores. It opens in a browser without a network
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) bad_rows: RejectedArgs,

    #[command(flatten)]
    pub(crate) empty_input: EmptyInputArgs,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,

    /// Directory for intermediate results, so that the run can be continued with --resume after an interruption
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub(crate) work: Option<PathBuf>,

    /// Continue the run in the directory of --work; begin one if there is none
    #[arg(long, requires = "work", help_heading = "Running")]
    pub(crate) resume: bool,

    /// Maximum memory of the process: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of 1024). Candidates that
    /// do not fit go to a temporary file; the findings do not depend on it
    ///
    /// Temporary files are in --scratch, else in the directory of the variable TMPDIR, else in /tmp. The items and 8 bytes
    /// for each row stay in memory: a limit in which they do not fit is refused with the smallest one that would do, and
    /// --explain-plan shows both. Default: no limit.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Running")]
    pub(crate) memory: Option<u64>,

    /// Print the plan of the memory, then stop. The items are read; the rows are estimated from samples
    #[arg(long, help_heading = "Running")]
    pub(crate) explain_plan: bool,

    #[command(flatten)]
    pub(crate) running: RunningArgs,
}

/// The part of a document that is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CutArg {
    /// The whole document
    Document,
    /// The question, with its answer and choices if they stand nearby
    Passage,
    /// The same with the rest of their sentences
    Sentence,
}

pub(crate) fn run_decontaminate(args: &DecontaminateArgs) -> Result<CommandOutcome> {
    refuse_features(&args.reading)?;
    let inputs = DecontaminateInputs {
        documents: args.inputs.clone().into(),
        benchmarks: args.benchmarks.clone(),
        fields: args.fields.clone(),
    };
    let settings = decontaminate_settings(args)?;
    if args.explain_plan {
        return explain_plan(args, &inputs, &settings);
    }
    let outputs = named_outputs(args)?;
    let report = outputs.report.as_ref().map(|report| &report.target);
    let targets = [
        outputs.kept.as_ref(),
        outputs.findings.as_ref(),
        outputs.items.as_ref(),
        outputs.rejected.as_ref(),
        report,
    ];
    let files = targets.into_iter().flatten().filter_map(output_file);
    let run = RowsRun::new(&args.running, files, outputs.rejected.is_some());
    let done =
        run.watch_work(|reporter| run::run_decontaminate(&inputs, &settings, &outputs, reporter))?;
    run.finish_run(&done, done.rejected, || describe_run(&done, args))
}

fn decontaminate_settings(args: &DecontaminateArgs) -> Result<DecontaminateSettings> {
    Ok(DecontaminateSettings {
        read: read_options(&args.reading)?,
        threads: thread_count(args.running.threads),
        strict: args.running.strict,
        cut: match args.cut {
            CutArg::Document => ContaminationCut::Document,
            CutArg::Passage => ContaminationCut::Passage,
            CutArg::Sentence => ContaminationCut::Sentence,
        },
        work: args.work.as_ref().map(|directory| WorkSettings {
            directory: directory.clone(),
            resume: args.resume,
        }),
        memory: memory_limit(args.memory),
        spelling: OptionSpelling::Options,
    })
}

/// Prints the plan of the memory.
fn explain_plan(
    args: &DecontaminateArgs,
    inputs: &DecontaminateInputs,
    settings: &DecontaminateSettings,
) -> Result<CommandOutcome> {
    let Some(limit) = settings.memory else {
        bail!("the available memory of this machine is not known: give a limit with --memory");
    };
    let plan = ContaminationPlan::plan_run(inputs, settings, limit)?;
    print_plan(&plan, &args.running, describe_plan)
}

/// Returns the plan for people.
fn describe_plan(plan: &ContaminationPlan, printer: &OutputPrinter) -> String {
    let items = NounCount(plan.items, CountedNoun::BenchmarkItem);
    let searched = match plan.documents {
        Some(documents) => {
            messages::items_in_documents(items, NounCount(documents, CountedNoun::Document))
        }
        None => messages::items_in_unknown_corpus(items),
    };
    let bytes = format_bytes;
    let memory = MemoryReport {
        limit_bytes: plan.limit_bytes,
        in_memory_bytes: plan.in_memory_bytes,
        plan: messages::contamination_memory(
            &bytes(plan.item_bytes),
            &bytes(plan.weight_bytes),
            &bytes(plan.thread_bytes),
            &bytes(plan.row_bytes),
            &bytes(plan.candidate_bytes),
        ),
        smallest_limit_bytes: plan.smallest_limit_bytes,
    };
    format!("{searched}\n\n{}", memory.into_text(printer))
}

/// Returns the outputs. At least one of them must be given.
fn named_outputs(args: &DecontaminateArgs) -> Result<DecontaminateOutputs> {
    let named: Vec<(&str, &Path)> = [
        ("the corpus", &args.output),
        ("the findings", &args.findings),
        ("the items", &args.items),
        ("the report", &args.report),
        ("rejected rows", &args.bad_rows.rejected),
    ]
    .into_iter()
    .filter_map(|(name, path)| Some((name, path.as_deref()?)))
    .collect();
    let has_output = named.iter().any(|(name, _)| *name != "rejected rows");
    if !has_output && !args.running.json {
        bail!(
            "there is nothing to write: give -o for the corpus without the items, --findings or --items for tables, \
             --report for a page, or --json for the counts"
        );
    }
    check_standard_output(&named, args.running.json)?;
    check_separate_outputs(&named, None)?;
    Ok(DecontaminateOutputs {
        kept: args.output.as_deref().map(output_target),
        findings: args.findings.as_deref().map(output_target),
        items: args.items.as_deref().map(output_target),
        report: args.report.as_deref().map(|place| ReportOutput {
            target: output_target(place),
            language: page_language(),
            written: list_other_outputs(args),
            explain_command: None,
        }),
        rejected: args.bad_rows.target(),
        allows_empty: args.empty_input.allow_empty,
    })
}

/// Returns the outputs beside the report, as the page names them: role and path.
fn list_other_outputs(args: &DecontaminateArgs) -> Vec<(String, String)> {
    let others = [
        ("kept rows", &args.output),
        ("findings", &args.findings),
        ("items", &args.items),
        ("rejected rows", &args.bad_rows.rejected),
    ];
    let given = others.into_iter();
    given
        .filter_map(|(role, place)| Some((role.to_owned(), place.as_ref()?.display().to_string())))
        .collect()
}

/// Returns the summary for people.
fn describe_run(done: &DecontaminateSummary, args: &DecontaminateArgs) -> String {
    let mut text = SummaryText::from_speed(done.documents, done.bytes, done.seconds);
    text.add_rejected(done.rejected, done.documents, TEXT_OPTIONS);
    let count = format_count;
    text.add_line(
        &messages::contaminated(),
        messages::contaminated_documents(
            NounCount(done.removed + done.cut, CountedNoun::Document),
            NounCount(done.findings, CountedNoun::ItemFinding),
        ),
    );
    if done.cut > 0 {
        let cut = messages::cut_documents(
            NounCount(done.cut, CountedNoun::Document),
            NounCount(done.removed, CountedNoun::EmptiedDocument),
        );
        text.add_line(&messages::cut(), cut);
    }
    text.add_line(
        &messages::items(),
        messages::items_found(&count(done.items_found), &count(done.items)),
    );
    text.add_line(&messages::memory_of_items(), format_bytes(done.index_bytes));
    text.add_output(args.output.as_deref());
    let mut text = text.into_text();
    text.push('\n');
    for benchmark in done.benchmarks.iter().take(LISTED_BENCHMARKS) {
        text.push_str(&describe_benchmark(benchmark));
    }
    if done.benchmarks.len() > LISTED_BENCHMARKS {
        let more = (done.benchmarks.len() - LISTED_BENCHMARKS) as u64;
        let more = NounCount(more, CountedNoun::FurtherBenchmark);
        text.push_str(&messages::more_benchmarks(more));
        text.push('\n');
    }
    if done.short_items > 0 {
        let items = NounCount(done.short_items, CountedNoun::BenchmarkItem);
        text.push_str(&messages::short_items(items));
        text.push('\n');
    }
    for question in &done.boilerplate_questions {
        let documents = NounCount(question.documents, CountedNoun::Document);
        let named = format!("{} {}", question.benchmark, question.item);
        text.push_str(&messages::boilerplate_question(
            &named,
            &question.question,
            documents,
        ));
        text.push('\n');
    }
    text
}

fn describe_benchmark(benchmark: &BenchmarkContamination) -> String {
    let mut line = messages::benchmark_found(
        &benchmark.name,
        &format_count(benchmark.found),
        NounCount(benchmark.items, CountedNoun::BenchmarkItem),
        NounCount(benchmark.documents, CountedNoun::Document),
    );
    if benchmark.rejected > 0 {
        let rows = NounCount(benchmark.rejected, CountedNoun::RowWithoutItem);
        line.push_str(&messages::benchmark_rejected(rows));
        if let Some(first) = benchmark.rejected_rows.first() {
            line.push_str(&format!(" ({}: {})", first.place, first.reason));
        }
    }
    line.push('\n');
    line
}
