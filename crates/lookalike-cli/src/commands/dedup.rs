//! `lookalike dedup`.

use anyhow::Result;
use lookalike::matching::Surveyed;
use lookalike_batch::run;

use crate::Outcome;
use crate::args::DedupArgs;
use crate::commands::fingerprint::rejected_hint;
use crate::output::{Printer, ReplacedFiles};
use crate::progress::Reporter;
use crate::settings::{DedupRun, ForecastOf};
use crate::{plan, summary};

pub(crate) fn run(args: &DedupArgs) -> Result<Outcome> {
    let printer = Printer::new(args.running.quiet);
    if args.matching.explain_plan {
        let of = ForecastOf {
            sources: &args.sources,
            against: &args.against,
            matching: &args.matching,
            input_format: &args.input_format,
            reading: &args.reading,
            running: &args.running,
            keep: &args.keep,
            followed: Surveyed::Verdicts,
        };
        return plan::explain(of, &printer);
    }
    let DedupRun {
        inputs,
        settings,
        outputs,
        written,
    } = DedupRun::new(args)?;
    let replaced = ReplacedFiles::find([
        args.output.as_ref(),
        args.removed.as_ref(),
        args.clusters.as_ref(),
        args.rejected.as_ref(),
    ]);
    let reporter = Reporter::new(printer, args.running.strict);
    let result = run::dedup(&inputs, &settings, &outputs, &reporter);
    let told = args.rejected.is_some() && !args.dry_run;
    reporter.finish(rejected_hint(told));
    let done = result?;
    if !args.dry_run {
        replaced.tell(&printer);
    }
    if args.running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::dedup(&done, args, &written, &printer));
    }
    Ok(Outcome::of(done.rejected))
}
