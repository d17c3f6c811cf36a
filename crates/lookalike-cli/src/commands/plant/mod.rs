//! `lookalike plant`.

mod args;
mod report;

use anyhow::Result;
use lookalike_batch::run;

pub(crate) use self::args::PlantArgs;
use self::args::{PlantContaminationRun, PlantRun};
use super::shared::running::RowsRun;
use crate::CommandOutcome;

pub(crate) fn run_plant(args: &PlantArgs) -> Result<CommandOutcome> {
    if let Some(planting) = PlantContaminationRun::new(args)? {
        return plant_contamination(args, &planting);
    }
    let PlantRun { settings, outputs } = PlantRun::new(args)?;
    let files = args.named_outputs().into_iter().map(|(_, place)| place);
    let run = RowsRun::new(&args.running, files, outputs.rejected.is_some());
    let done =
        run.watch_work(|reporter| run::run_plant(&args.inputs, &settings, &outputs, reporter))?;
    if !args.running.json {
        let effects = report::describe_effects(&done, &run.printer);
        run.printer.write_data(&effects)?;
    }
    run.finish_run(&done, done.rejected, || {
        report::describe_planted(&done, args)
    })
}

fn plant_contamination(
    args: &PlantArgs,
    planting: &PlantContaminationRun,
) -> Result<CommandOutcome> {
    let PlantContaminationRun {
        inputs,
        settings,
        outputs,
    } = planting;
    let files = args.named_outputs().into_iter().map(|(_, place)| place);
    let run = RowsRun::new(&args.running, files, outputs.rejected.is_some());
    let done = run
        .watch_work(|reporter| run::run_plant_contamination(inputs, settings, outputs, reporter))?;
    run.finish_run(&done, done.rejected, || {
        report::describe_contamination(&done, args)
    })
}
