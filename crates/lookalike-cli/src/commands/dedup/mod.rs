//! `lookalike dedup`.

mod args;
mod report;

use anyhow::Result;
use lookalike::dedup::SurveyKind;
use lookalike_batch::run as batch_run;
use lookalike_batch::run::PlannedDirectories;

pub(crate) use self::args::DedupArgs;
use self::args::DedupRun;
use crate::CommandOutcome;
use crate::commands::shared::plan_report::{PlannedRun, explain_plan};
use crate::commands::shared::running::RowsRun;
use crate::output::OutputPrinter;

pub(crate) fn run_dedup(args: &DedupArgs) -> Result<CommandOutcome> {
    let running = &args.run.running;
    if args.run.matching.explain_plan {
        let planned = PlannedRun {
            args: &args.run,
            against: &args.against,
            keep: &args.keep,
            sources: args.source_field(),
            directories: PlannedDirectories {
                index: args.library.as_deref(),
                has_work: args.work.is_some(),
            },
            has_passages: args.passages.is_some(),
            purpose: SurveyKind::Verdicts,
        };
        return explain_plan(planned, &OutputPrinter::new(running.quiet));
    }
    let DedupRun {
        inputs,
        settings,
        outputs,
        work,
        library,
        written,
    } = DedupRun::new(args)?;
    let replaced = written.iter().map(|(_, place)| *place);
    let run = RowsRun::new(running, replaced, outputs.rejected.is_some());
    let done = run.watch_work(|reporter| match (&work, &library) {
        (None, None) => batch_run::run_dedup(&inputs, &settings, &outputs, reporter),
        (None, Some(library)) => {
            batch_run::run_dedup_beside_index(&inputs, &settings, &outputs, library, reporter)
        }
        // `--library` conflicts with `--work`, so there is no library here.
        (Some(work), _) => {
            batch_run::run_resumable_dedup(&inputs, &settings, &outputs, work, reporter)
        }
    })?;
    run.finish_run(&done, done.run.rejected, || {
        report::describe_dedup(&done, args, &written, &run.printer)
    })
}
