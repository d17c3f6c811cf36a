//! `lookalike status`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use lookalike_batch::run::{
    ShardStage, ShardsStatus, StageProgress, WorkStage, WorkStatus, read_shards_status,
    read_work_status,
};

use super::dedup::list_shards;
use crate::CommandOutcome;
use crate::output::{OutputPrinter, format_bytes, format_count, format_plural};

/// Show how far a run with --work DIR is
///
/// Works at any time, also while a process works on the run. Counts what is in complete steps, which is what a resumed
/// run continues from. Exit code 2: the directory holds no run, or a file of it is missing or damaged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike status run1
  lookalike status run1 --json --verify")]
pub(crate) struct StatusArgs {
    /// Directory of the run
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Read and verify the content of every step, instead of their sizes alone
    #[arg(long)]
    pub(crate) verify: bool,

    /// Print the state as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run_status(args: &StatusArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(false);
    if let Some(status) = read_shards_status(&args.directory, args.verify)? {
        let text = match args.json {
            true => format!("{}\n", serde_json::to_string(&status)?),
            false => describe_shards(&status, &args.directory),
        };
        printer.write_data(&text)?;
        return outcome_of(&status.damaged);
    }
    let status = read_work_status(&args.directory, args.verify)?;
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string(&status)?),
        false => describe_status(&status, &args.directory),
    };
    printer.write_data(&text)?;
    outcome_of(&status.damaged)
}

fn outcome_of(damaged: &[String]) -> Result<CommandOutcome> {
    match damaged.len() {
        0 => Ok(CommandOutcome::Done),
        count => bail!(
            "{} of the run {} missing or damaged; the first: {}",
            format_plural(count as u64, "file", "files"),
            if count == 1 { "is" } else { "are" },
            damaged[0]
        ),
    }
}

/// Returns the state of a run that several processes share, in lines of a name and a value.
fn describe_shards(status: &ShardsStatus, directory: &Path) -> String {
    let stage = match (status.stage, status.finished) {
        (_, true) => format!("finished; {} may be deleted", directory.display()),
        (None, false) => "writing: run any shard to write the outputs".to_owned(),
        (Some(ShardStage::Read), false) => "reading".to_owned(),
        (Some(ShardStage::Link), false) => "linking".to_owned(),
        (Some(ShardStage::Decide), false) => "deciding".to_owned(),
        (Some(ShardStage::Write), false) => "writing".to_owned(),
    };
    let mut lines = vec![("stage", stage)];
    let done = u64::from(status.shards) - status.missing.len() as u64;
    let shards = format_plural(u64::from(status.shards), "shard", "shards");
    lines.push(("done", format!("by {} of {shards}", format_count(done))));
    if !status.missing.is_empty() {
        lines.push(("to come", list_shards(&status.missing)));
    }
    lines.push(("documents", format_count(status.documents)));
    lines.push(("complete", format_bytes(status.step_bytes)));
    let changed = describe_seconds(status.idle_seconds);
    lines.push(("last step", format!("{changed} ago")));
    lines.extend(
        status
            .damaged
            .iter()
            .map(|damaged| ("damaged", damaged.clone())),
    );
    format_lines(lines)
}

fn format_lines(lines: Vec<(&str, String)>) -> String {
    let lines = lines.into_iter();
    lines
        .map(|(name, value)| format!("{name:<10} {value}\n"))
        .collect()
}

/// Returns the state for people, in lines of a name and a value.
fn describe_status(status: &WorkStatus, directory: &Path) -> String {
    let mut lines = vec![("stage", describe_stage(status, directory))];
    lines.push((
        "read",
        describe_progress(status.read, "of input", &format_bytes),
    ));
    lines.push(("documents", format_count(status.documents)));
    let decided = describe_progress(status.decided, "documents", &format_count);
    lines.push(("decided", decided));
    let steps = format_plural(status.steps, "step", "steps");
    let size = format_bytes(status.step_bytes);
    lines.push(("complete", format!("{steps}, {size}")));
    let begun = describe_seconds(status.age_seconds);
    lines.push(("begun", format!("{begun} ago")));
    let changed = describe_seconds(status.idle_seconds);
    lines.push(("last step", format!("{changed} ago")));
    let damaged = status.damaged.iter();
    lines.extend(damaged.map(|damaged| ("damaged", damaged.clone())));
    format_lines(lines)
}

fn describe_stage(status: &WorkStatus, directory: &Path) -> String {
    let stage = match status.stage {
        WorkStage::Read => "reading",
        WorkStage::Decide => "deciding",
        WorkStage::Write => "writing",
        WorkStage::Finished => {
            return format!("finished; {} may be deleted", directory.display());
        }
    };
    match status.process {
        Some(process) => format!("{stage}, by process {process}"),
        None => format!("{stage}; no process works on it: continue with --resume"),
    }
}

/// Returns what is done, and its share if the total is known. `unit` stands behind the numbers.
fn describe_progress(
    progress: StageProgress,
    unit: &str,
    format: &dyn Fn(u64) -> String,
) -> String {
    let done = format(progress.done);
    match progress.total.zip(progress.share_done()) {
        Some((total, share)) => {
            let total = format(total);
            format!("{done} of {total} {unit} ({:.1} %)", 100.0 * share)
        }
        None => format!("{done} {unit}"),
    }
}

fn describe_seconds(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
