//! `lookalike dedup --shard`: the share of one of several processes.

use anyhow::Result;
use lookalike_batch::run::{
    self, DedupOutputs, RunInputs, RunSettings, ShardNumber, ShardOutcome, ShardStage, WorkSettings,
};
use serde::Serialize;

use super::args::{DedupArgs, NamedOutput};
use super::report;
use crate::CommandOutcome;
use crate::commands::shared::running::RowsRun;

/// The summary of a process that is not the last one.
#[derive(Serialize)]
struct WaitingShard {
    shard: String,
    /// The stage whose share it has done; `None` if another process writes the outputs.
    stage: Option<ShardStage>,
    /// The shards that have not done theirs.
    missing: Vec<u32>,
}

/// Runs the share of a process, and says what is to be done next.
pub(super) fn run_share(
    args: &DedupArgs,
    (work, shard): (&WorkSettings, ShardNumber),
    (inputs, settings, outputs): (&RunInputs, &RunSettings, &DedupOutputs),
    written: &[NamedOutput<'_>],
) -> Result<CommandOutcome> {
    let replaced = written.iter().map(|(_, place)| *place);
    let run = RowsRun::new(&args.run.running, replaced, outputs.rejected.is_some());
    let done = run.watch_work(|reporter| {
        run::run_shard(inputs, settings, outputs, (work, shard), reporter)
    })?;
    match done {
        ShardOutcome::Finished(done) => run.finish_run(&*done, done.rejected, || {
            report::describe_dedup(&done, args, written, &run.printer)
        }),
        ShardOutcome::Waiting { stage, missing } => {
            let text = describe_waiting(stage, &missing, shard);
            finish_waiting(&run, (shard, Some(stage), missing), text)
        }
        ShardOutcome::WrittenByAnother => {
            let text = format!(
                "shard {shard}: everything is decided, and another process writes the outputs\n"
            );
            finish_waiting(&run, (shard, None, Vec::new()), text)
        }
    }
}

fn finish_waiting(
    run: &RowsRun<'_>,
    (shard, stage, missing): (ShardNumber, Option<ShardStage>, Vec<u32>),
    text: String,
) -> Result<CommandOutcome> {
    let waiting = WaitingShard {
        shard: shard.to_string(),
        stage,
        missing,
    };
    run.finish_run(&waiting, 0, || text)
}

fn describe_waiting(stage: ShardStage, missing: &[u32], shard: ShardNumber) -> String {
    format!(
        "shard {shard} has {} its share; still to come: {} of {}. Run these, then all shards once more\n",
        describe_stage(stage),
        list_shards(missing),
        shard.count
    )
}

fn describe_stage(stage: ShardStage) -> &'static str {
    match stage {
        ShardStage::Read => "read",
        ShardStage::Link => "linked",
        ShardStage::Decide => "decided",
        ShardStage::Write => "written",
    }
}

/// Returns ascending numbers, with ranges: `1, 4–7`.
pub(crate) fn list_shards(numbers: &[u32]) -> String {
    let ranges = numbers.chunk_by(|a, b| a + 1 == *b);
    let ranges = ranges.map(|range| match range {
        [first, _, .., last] => format!("{first}–{last}"),
        [first, last] => format!("{first}, {last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_in_ranges() {
        assert_eq!(list_shards(&[1, 3, 4, 5, 6, 9, 10]), "1, 3–6, 9, 10");
        assert_eq!(list_shards(&[2]), "2");
        assert_eq!(list_shards(&[]), "");
    }
}
