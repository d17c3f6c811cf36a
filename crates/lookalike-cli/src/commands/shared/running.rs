//! Options for running a command, and the course of a run: progress, bad rows, summary.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::outputs::{TableOutputs, output_file};
use crate::CommandOutcome;
use crate::language::messages;
use crate::output::{OutputPrinter, ReplacedFiles};
use crate::progress::ProgressReporter;

/// Options for running a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct RunningArgs {
    /// Stop at the first bad row. `dedup`, `pairs` and `index` also refuse repeated ids, which they otherwise
    /// only count
    #[arg(long)]
    pub(crate) strict: bool,

    /// Number of worker threads; results do not depend on it. Default: one per core
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,

    /// Print the summary as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only errors and bad rows on standard error, no progress and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options for threads and the summary of a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct ReportingArgs {
    /// Number of worker threads; results do not depend on it. Default: one per core
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,

    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
}

/// Options for the summary of a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct SummaryArgs {
    /// Print the summary as one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only errors and warnings on standard error, no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Run of a command that reads rows.
pub(crate) struct RowsRun<'a> {
    pub(crate) printer: OutputPrinter,
    running: &'a RunningArgs,
    /// `true` if a file receives the rejected rows.
    writes_rejected: bool,
    replaced: ReplacedFiles,
}

impl<'a> RowsRun<'a> {
    /// Creates a run that writes to these outputs.
    pub(crate) fn new<'p>(
        running: &'a RunningArgs,
        outputs: impl IntoIterator<Item = &'p Path>,
        writes_rejected: bool,
    ) -> Self {
        Self {
            printer: OutputPrinter::new(running.quiet),
            running,
            writes_rejected,
            replaced: ReplacedFiles::find_existing(outputs),
        }
    }

    /// Creates a run that writes a table.
    pub(crate) fn with_table(running: &'a RunningArgs, outputs: &TableOutputs) -> Self {
        let targets = [Some(&outputs.table), outputs.rejected.as_ref()];
        let files = targets.into_iter().flatten().filter_map(output_file);
        Self::new(running, files, outputs.rejected.is_some())
    }

    /// Runs `work`, showing its progress and bad rows, and reports the files that it replaced.
    pub(crate) fn watch_work<T>(
        &self,
        work: impl FnOnce(&ProgressReporter) -> lookalike_io::Result<T>,
    ) -> Result<T> {
        let hint = if self.writes_rejected {
            String::new()
        } else {
            messages::rejected_option_hint()
        };
        let done = ProgressReporter::watch_run(self.printer, self.running.strict, &hint, work)?;
        self.replaced.report_replaced(&self.printer);
        Ok(done)
    }

    /// Prints the summary of a run that rejected this many rows.
    pub(crate) fn finish_run(
        &self,
        summary: &impl Serialize,
        rejected: u64,
        describe: impl FnOnce() -> String,
    ) -> Result<CommandOutcome> {
        print_summary(&self.printer, self.running.json, summary, describe)?;
        Ok(CommandOutcome::from_rejected(rejected))
    }
}

/// Prints a summary: as JSON on standard output, or for people on standard error.
pub(crate) fn print_summary(
    printer: &OutputPrinter,
    json: bool,
    summary: &impl Serialize,
    describe: impl FnOnce() -> String,
) -> Result<()> {
    if json {
        printer.write_data(&format!("{}\n", serde_json::to_string(summary)?))?;
    } else {
        printer.print_note(&describe());
    }
    Ok(())
}

/// Returns the number of threads: as given, or one per core.
pub(crate) fn thread_count(given: Option<usize>) -> usize {
    given.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Parses `--threads`.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|threads| (1..=MOST_THREADS).contains(threads))
        .ok_or_else(|| format!("give a number from 1 to {MOST_THREADS}"))
}

/// Largest number of threads. It is more than the machines for this program have cores, but few enough to start.
const MOST_THREADS: usize = 1024;

/// Parses a number of at least 1.
pub(crate) fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&limit| limit > 0)
        .ok_or_else(|| "give a number of at least 1".to_owned())
}
