//! `lookalike search`.

use anyhow::Result;
use lookalike_batch::library;

use super::fingerprint::rejected_hint;
use crate::Outcome;
use crate::args::SearchArgs;
use crate::output::{Printer, ReplacedFiles};
use crate::progress::Reporter;
use crate::settings::SearchRun;
use crate::summary;

pub(crate) fn run(args: &SearchArgs) -> Result<Outcome> {
    let printer = Printer::new(args.running.quiet);
    let SearchRun {
        settings,
        reading,
        output,
        rejected,
    } = SearchRun::new(args)?;
    let replaced = ReplacedFiles::find([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = Reporter::new(printer, args.running.strict);
    let result = library::search(
        &args.library,
        &args.inputs,
        &settings,
        &reading,
        (&output, rejected.as_ref()),
        &reporter,
    );
    reporter.finish(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.tell(&printer);
    if args.running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::search(&done, args, &reading.entries));
    }
    Ok(Outcome::of(done.rejected))
}
