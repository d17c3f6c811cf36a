//! `lookalike index`.

mod args;
mod memory;
mod passages;
mod plan;
mod report;

use std::io;
use std::path::Path;

use anyhow::{Result, anyhow};
use lookalike_batch::index::{self, AddSummary, IndexReadOptions};
use lookalike_io::sink::OutputTarget;

pub(crate) use self::args::IndexArgs;
use self::args::{
    IndexAddArgs, IndexBuildArgs, IndexCommand, IndexCompactArgs, IndexCountsArgs, IndexInfoArgs,
    IndexRemoveArgs, IndexVerifyArgs, build_settings,
};
pub(crate) use self::passages::{PassagesIndexArgs, run_passages_index};
use super::shared::outputs::{RejectedArgs, check_standard_output, output_target};
use super::shared::running::{RowsRun, RunningArgs, print_summary, thread_count};
use crate::CommandOutcome;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, escape_control};
use crate::progress::ProgressReporter;

/// Number of missing ids that are shown.
const SHOWN_IDS: usize = 10;

pub(crate) fn run_index(args: &IndexArgs) -> Result<CommandOutcome> {
    match &args.command {
        IndexCommand::Build(args) => run_build(args),
        IndexCommand::Add(args) => run_add(args),
        IndexCommand::Remove(args) => run_remove(args),
        IndexCommand::Compact(args) => run_compact(args),
        IndexCommand::Info(args) => run_info(args),
        IndexCommand::Verify(args) => run_verify(args),
        IndexCommand::Counts(args) => run_counts(args),
        IndexCommand::Plan(args) => plan::run_plan(args),
    }
}

fn run_build(args: &IndexBuildArgs) -> Result<CommandOutcome> {
    let settings = build_settings(args)?;
    let reading = args.rows.read_options()?;
    if let Some(explained) = args.rows.explain_plan(&reading, false)? {
        return Ok(explained);
    }
    let (bad_rows, running) = (&args.rows.bad_rows, &args.rows.running);
    insert_rows(reading, bad_rows, running, |reading, rejected, reporter| {
        let (index, inputs) = (&args.library, &args.rows.inputs);
        index::build_index(index, inputs, &settings, reading, rejected, reporter)
    })
}

fn run_add(args: &IndexAddArgs) -> Result<CommandOutcome> {
    let reading = args.rows.read_options()?;
    if let Some(explained) = args.rows.explain_plan(&reading, true)? {
        return Ok(explained);
    }
    let (bad_rows, running) = (&args.rows.bad_rows, &args.rows.running);
    insert_rows(reading, bad_rows, running, |reading, rejected, reporter| {
        index::add_to_index(
            &args.library,
            &args.rows.inputs,
            reading,
            rejected,
            reporter,
        )
    })
}

fn insert_rows(
    reading: IndexReadOptions,
    bad_rows: &RejectedArgs,
    running: &RunningArgs,
    insert: impl FnOnce(
        &IndexReadOptions,
        Option<&OutputTarget>,
        &ProgressReporter,
    ) -> lookalike_io::Result<AddSummary>,
) -> Result<CommandOutcome> {
    let rejected = bad_rows.target();
    let run = RowsRun::new(running, bad_rows.rejected.as_deref(), rejected.is_some());
    let done = run.watch_work(|reporter| insert(&reading, rejected.as_ref(), reporter))?;
    run.finish_run(&done, done.rejected, || {
        report::describe_added(&done, &reading.content)
    })
}

fn run_remove(args: &IndexRemoveArgs) -> Result<CommandOutcome> {
    let summary = &args.reporting.summary;
    let printer = OutputPrinter::new(summary.quiet);
    let mut ids = args.id.clone();
    if let Some(file) = &args.ids {
        let text = read_ids_from(file)
            .map_err(|cause| anyhow!("cannot read the ids in {}: {cause}", file.display()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        ids.extend(text.lines().filter(|id| !id.is_empty()).map(str::to_owned));
    }
    let threads = thread_count(args.reporting.threads);
    let done = ProgressReporter::watch_run(printer, false, "", |reporter| {
        index::remove_from_index(&args.library, &ids, threads, reporter)
    })?;
    for id in done.missing.iter().take(SHOWN_IDS) {
        let text = messages::id_is_not_in(id, args.library.display());
        printer.print_warning(escape_control(&text));
    }
    let more = done.missing.len().saturating_sub(SHOWN_IDS);
    if more > 0 {
        let count = NounCount(more as u64, CountedNoun::MissingId);
        printer.print_warning(messages::more_ids_are_missing(count));
    }
    print_summary(&printer, summary.json, &done, || {
        report::describe_removal(&done)
    })?;
    Ok(CommandOutcome::from_rejected(done.missing.len() as u64))
}

fn read_ids_from(file: &Path) -> io::Result<String> {
    if file.as_os_str() == "-" {
        return io::read_to_string(io::stdin());
    }
    std::fs::read_to_string(file)
}

fn run_compact(args: &IndexCompactArgs) -> Result<CommandOutcome> {
    let summary = &args.reporting.summary;
    let printer = OutputPrinter::new(summary.quiet);
    let threads = thread_count(args.reporting.threads);
    let done = ProgressReporter::watch_run(printer, false, "", |reporter| {
        index::compact_index(&args.library, threads, reporter)
    })?;
    print_summary(&printer, summary.json, &done, || {
        report::describe_compaction(&done)
    })?;
    Ok(CommandOutcome::Done)
}

fn run_counts(args: &IndexCountsArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.summary.quiet);
    check_standard_output(&[("counts", &args.output)], args.summary.json)?;
    let output = output_target(&args.output);
    let done = index::write_counts(&args.library, &output, args.most_sources as usize)?;
    print_summary(&printer, args.summary.json, &done, || {
        report::describe_counts(&done)
    })?;
    Ok(CommandOutcome::Done)
}

fn run_info(args: &IndexInfoArgs) -> Result<CommandOutcome> {
    let info = index::index_info(&args.library)?;
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&info)?)
    } else {
        report::describe_index(&info)
    };
    OutputPrinter::new(false).write_data(&text)?;
    Ok(CommandOutcome::Done)
}

fn run_verify(args: &IndexVerifyArgs) -> Result<CommandOutcome> {
    let summary = &args.reporting.summary;
    let printer = OutputPrinter::new(summary.quiet);
    let threads = thread_count(args.reporting.threads);
    let done = ProgressReporter::watch_run(printer, false, "", |reporter| {
        index::verify_index(&args.library, threads, reporter)
    })?;
    print_summary(&printer, summary.json, &done, || {
        report::describe_verified(&done)
    })?;
    Ok(CommandOutcome::Done)
}
