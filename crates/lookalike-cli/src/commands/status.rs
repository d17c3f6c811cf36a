//! `lookalike status`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use lookalike_batch::run::{StageProgress, WorkStage, WorkStatus, read_work_status};

use crate::CommandOutcome;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, format_bytes, format_count, format_plural, pad_to_width};

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
    let status = read_work_status(&args.directory, args.verify)?;
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&status)?)
    } else {
        describe_status(&status, &args.directory)
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

fn format_lines(lines: Vec<(String, String)>) -> String {
    let lines = lines.into_iter();
    lines
        .map(|(name, value)| format!("{} {value}\n", pad_to_width(&name, 10)))
        .collect()
}

/// Returns the state for people, in lines of a name and a value.
fn describe_status(status: &WorkStatus, directory: &Path) -> String {
    let steps = NounCount(status.steps, CountedNoun::Step);
    let since = |seconds| messages::time_ago(&describe_seconds(seconds));
    let documents = |number| NounCount(number, CountedNoun::Document).to_string();
    let mut lines = vec![
        (messages::stage(), describe_stage(status, directory)),
        (
            messages::read(),
            describe_progress(status.read, &format_bytes, &|size| {
                messages::size_of_input(&format_bytes(size))
            }),
        ),
        (messages::documents(), format_count(status.documents)),
        (
            messages::decided(),
            describe_progress(status.decided, &format_count, &documents),
        ),
        (
            messages::complete(),
            messages::steps_of_size(steps, &format_bytes(status.step_bytes)),
        ),
        (messages::begun(), since(status.age_seconds)),
        (messages::last_step(), since(status.idle_seconds)),
    ];
    if status.object_bytes > 0 {
        let kept = messages::kept_of_objects(&format_bytes(status.object_bytes));
        lines.push((messages::objects(), kept));
    }
    let damaged = status.damaged.iter();
    lines.extend(damaged.map(|damaged| (messages::damaged(), damaged.clone())));
    format_lines(lines)
}

fn describe_stage(status: &WorkStatus, directory: &Path) -> String {
    let stage = match status.stage {
        WorkStage::Read => messages::reading(),
        WorkStage::Decide => messages::deciding(),
        WorkStage::Write => messages::writing(),
        WorkStage::Finished => return messages::run_finished(directory.display()),
    };
    let stage = if status.learns_forms {
        messages::stage_of_learning(&stage)
    } else {
        stage
    };
    match status.process {
        Some(process) => messages::stage_of_process(&stage, process),
        None => messages::stage_without_process(&stage),
    }
}

/// Returns what is done, and its share if the total is known. `of_all` writes the total, or what is done without one,
/// with its unit.
fn describe_progress(
    progress: StageProgress,
    format: &dyn Fn(u64) -> String,
    of_all: &dyn Fn(u64) -> String,
) -> String {
    match progress.total.zip(progress.share_done()) {
        Some((total, share)) => messages::done_of(
            &format(progress.done),
            &of_all(total),
            format_args!("{:.1}", 100.0 * share),
        ),
        None => of_all(progress.done),
    }
}

/// Returns a time in hours, minutes and seconds for people.
pub(super) fn describe_seconds(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => messages::seconds(seconds),
        (0, minutes) => messages::minutes_and_seconds(minutes, seconds % 60),
        (hours, minutes) => messages::hours(hours, minutes),
    }
}
