//! `lookalike fingerprint`.

use anyhow::Result;
use lookalike_batch::run;

use crate::Outcome;
use crate::args::FingerprintArgs;
use crate::output::{Printer, ReplacedFiles};
use crate::progress::Reporter;
use crate::settings::FingerprintRun;
use crate::summary;

pub(crate) fn run(args: &FingerprintArgs) -> Result<Outcome> {
    let printer = Printer::new(args.running.quiet);
    let FingerprintRun {
        settings,
        output,
        rejected,
    } = FingerprintRun::new(args)?;
    let replaced = ReplacedFiles::find([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = Reporter::new(printer, args.running.strict);
    let (inputs, to) = (&args.inputs, rejected.as_ref());
    let result = run::fingerprint(inputs, &settings, &output, to, &reporter);
    reporter.finish(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.tell(&printer);
    if args.running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::fingerprints(&done, args));
    }
    Ok(Outcome::of(done.rejected))
}

/// Returns the hint where to find bad rows that were not shown.
pub(crate) fn rejected_hint(written: bool) -> &'static str {
    if written {
        ""
    } else {
        "; --rejected FILE writes them all"
    }
}
