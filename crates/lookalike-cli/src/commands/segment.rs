//! `lookalike segment`.

use anyhow::Result;
use lookalike_batch::run;

use super::fingerprint::rejected_hint;
use crate::Outcome;
use crate::args::SegmentArgs;
use crate::output::{Printer, ReplacedFiles};
use crate::progress::Reporter;
use crate::settings::SegmentRun;
use crate::summary;

pub(crate) fn run(args: &SegmentArgs) -> Result<Outcome> {
    // For a text on the command line, the summary adds nothing to the output.
    let printer = Printer::new(args.running.quiet || !args.literal.is_empty());
    let SegmentRun {
        texts,
        settings,
        output,
        rejected,
    } = SegmentRun::new(args)?;
    let replaced = ReplacedFiles::find([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = Reporter::new(printer, args.running.strict);
    let result = run::segment(&texts, &settings, &output, rejected.as_ref(), &reporter);
    reporter.finish(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.tell(&printer);
    if args.running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::segmented(&done, args));
    }
    Ok(Outcome::of(done.rejected))
}
