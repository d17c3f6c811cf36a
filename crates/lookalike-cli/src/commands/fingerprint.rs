//! `lookalike fingerprint`.

use anyhow::Result;
use lookalike_batch::run;

use crate::CommandOutcome;
use crate::args::FingerprintArgs;
use crate::output::{OutputPrinter, ReplacedFiles};
use crate::progress::ProgressReporter;
use crate::settings::FingerprintRun;
use crate::summary;

pub(crate) fn run_fingerprint(args: &FingerprintArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.running.quiet);
    let FingerprintRun {
        settings,
        output,
        rejected,
    } = FingerprintRun::new(args)?;
    let replaced = ReplacedFiles::find_existing([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = ProgressReporter::new(printer, args.running.strict);
    let (inputs, to) = (&args.inputs, rejected.as_ref());
    let result = run::fingerprint(inputs, &settings, &output, to, &reporter);
    reporter.finish_progress(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.report_replaced(&printer);
    if args.running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::fingerprints(&done, args));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}

/// Returns the hint where to find bad rows that were not shown.
pub(crate) fn rejected_hint(written: bool) -> &'static str {
    if written {
        ""
    } else {
        "; --rejected FILE writes them all"
    }
}
