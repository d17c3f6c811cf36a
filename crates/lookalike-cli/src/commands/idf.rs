//! `lookalike idf`.

use anyhow::Result;
use lookalike_batch::run;

use super::fingerprint::rejected_hint;
use crate::Outcome;
use crate::args::IdfArgs;
use crate::output::{Printer, ReplacedFiles};
use crate::progress::Reporter;
use crate::settings::IdfRun;
use crate::summary;

pub(crate) fn run(args: &IdfArgs) -> Result<Outcome> {
    let printer = Printer::new(args.running.quiet);
    let IdfRun {
        settings,
        output,
        rejected,
    } = IdfRun::new(args)?;
    let replaced = ReplacedFiles::find([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = Reporter::new(printer, args.running.strict);
    let result = run::idf(
        &args.inputs.clone().into(),
        &settings,
        &output,
        rejected.as_ref(),
        &reporter,
    );
    reporter.finish(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.tell(&printer);
    if args.running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::frequencies(&done, args));
    }
    Ok(Outcome::of(done.rejected))
}
