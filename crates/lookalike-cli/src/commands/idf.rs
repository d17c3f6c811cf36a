//! `lookalike write_frequencies`.

use anyhow::Result;
use lookalike_batch::run;

use super::fingerprint::rejected_hint;
use crate::CommandOutcome;
use crate::args::IdfArgs;
use crate::output::{OutputPrinter, ReplacedFiles};
use crate::progress::ProgressReporter;
use crate::settings::IdfRun;
use crate::summary;

pub(crate) fn run_idf(args: &IdfArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.running.quiet);
    let IdfRun {
        settings,
        output,
        rejected,
    } = IdfRun::new(args)?;
    let replaced = ReplacedFiles::find_existing([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = ProgressReporter::new(printer, args.running.strict);
    let result = run::write_frequencies(
        &args.inputs.clone().into(),
        &settings,
        &output,
        rejected.as_ref(),
        &reporter,
    );
    reporter.finish_progress(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.report_replaced(&printer);
    if args.running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::frequencies(&done, args));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}
