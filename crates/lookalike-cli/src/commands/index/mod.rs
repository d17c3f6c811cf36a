//! `lookalike index`.

mod args;
mod plan;
mod report;

use std::io;
use std::path::Path;

use anyhow::{Result, anyhow};
use lookalike_batch::index::{self, AddSummary};

pub(crate) use self::args::IndexArgs;
use self::args::{
    AddRun, IndexAddArgs, IndexBuildArgs, IndexCommand, IndexInfoArgs, IndexRemoveArgs,
    IndexVerifyArgs, build_settings,
};
use super::shared::outputs::RejectedArgs;
use super::shared::running::{RowsRun, RunningArgs, print_summary, thread_count};
use crate::CommandOutcome;
use crate::output::{OutputPrinter, escape_control, format_count};
use crate::progress::ProgressReporter;

/// Number of missing ids that are shown.
const TOLD_IDS: usize = 10;

pub(crate) fn run_index(args: &IndexArgs) -> Result<CommandOutcome> {
    match &args.command {
        IndexCommand::Build(args) => run_build(args),
        IndexCommand::Add(args) => run_add(args),
        IndexCommand::Remove(args) => run_remove(args),
        IndexCommand::Info(args) => run_info(args),
        IndexCommand::Verify(args) => run_verify(args),
        IndexCommand::Plan(args) => plan::run_plan(args),
    }
}

fn run_build(args: &IndexBuildArgs) -> Result<CommandOutcome> {
    let settings = build_settings(args)?;
    let (running, rejected) = (&args.running, &args.bad_rows);
    let run = AddRun::new(&args.inputs, &args.bare, &args.reading, running, rejected)?;
    run_insertion(&run, running, rejected, |reporter| {
        let to = run.rejected.as_ref();
        index::build_index(
            &args.library,
            &args.inputs,
            &settings,
            &run.reading,
            to,
            reporter,
        )
    })
}

fn run_add(args: &IndexAddArgs) -> Result<CommandOutcome> {
    let (running, rejected) = (&args.running, &args.bad_rows);
    let run = AddRun::new(&args.inputs, &args.bare, &args.reading, running, rejected)?;
    run_insertion(&run, running, rejected, |reporter| {
        let to = run.rejected.as_ref();
        index::add_to_index(&args.library, &args.inputs, &run.reading, to, reporter)
    })
}

fn run_insertion(
    run: &AddRun,
    running: &RunningArgs,
    rejected: &RejectedArgs,
    work: impl FnOnce(&ProgressReporter) -> lookalike_batch::Result<AddSummary>,
) -> Result<CommandOutcome> {
    let files = rejected.rejected.as_deref();
    let rows = RowsRun::new(running, files, files.is_some());
    let done = rows.watch_work(work)?;
    rows.finish_run(&done, done.rejected, || {
        report::describe_added(&done, &run.reading.entries)
    })
}

fn run_remove(args: &IndexRemoveArgs) -> Result<CommandOutcome> {
    let telling = &args.telling.summary;
    let printer = OutputPrinter::new(telling.quiet);
    let mut ids = args.id.clone();
    if let Some(file) = &args.ids {
        let text = read_ids_from(file)
            .map_err(|cause| anyhow!("cannot read the ids in {}: {cause}", file.display()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        ids.extend(text.lines().filter(|id| !id.is_empty()).map(str::to_owned));
    }
    let threads = thread_count(args.telling.threads);
    let done = ProgressReporter::watch_run(printer, false, "", |reporter| {
        index::remove_from_index(&args.library, &ids, threads, reporter)
    })?;
    for id in done.missing.iter().take(TOLD_IDS) {
        let text = format!("the id '{id}' is not in {}", args.library.display());
        printer.print_warning(escape_control(&text));
    }
    let more = done.missing.len().saturating_sub(TOLD_IDS);
    if more > 0 {
        let all = "; --json lists them all";
        printer.print_warning(format!(
            "{} more ids are not in the index{all}",
            format_count(more as u64)
        ));
    }
    print_summary(&printer, telling.json, &done, || {
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
    let telling = &args.telling.summary;
    let printer = OutputPrinter::new(telling.quiet);
    let threads = thread_count(args.telling.threads);
    let done = ProgressReporter::watch_run(printer, false, "", |reporter| {
        index::verify_index(&args.library, threads, reporter)
    })?;
    print_summary(&printer, telling.json, &done, || {
        report::describe_verified(&done)
    })?;
    Ok(CommandOutcome::Done)
}
