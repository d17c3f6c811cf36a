//! `lookalike run_segment`.

use anyhow::Result;
use lookalike_batch::run;

use super::fingerprint::rejected_hint;
use crate::CommandOutcome;
use crate::args::SegmentArgs;
use crate::output::{OutputPrinter, ReplacedFiles};
use crate::progress::ProgressReporter;
use crate::settings::SegmentRun;
use crate::summary;

pub(crate) fn run_segment(args: &SegmentArgs) -> Result<CommandOutcome> {
    // For a text on the command line, the summary adds nothing to the output.
    let printer = OutputPrinter::new(args.running.quiet || !args.literal.is_empty());
    let SegmentRun {
        texts,
        settings,
        output,
        rejected,
    } = SegmentRun::new(args)?;
    let replaced = ReplacedFiles::find_existing([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = ProgressReporter::new(printer, args.running.strict);
    let result = run::run_segment(&texts, &settings, &output, rejected.as_ref(), &reporter);
    reporter.finish_progress(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.report_replaced(&printer);
    if args.running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::describe_segmented(&done, args));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}
