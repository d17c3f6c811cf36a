//! `lookalike pairs`.

use anyhow::Result;
use lookalike::matching::Surveyed;
use lookalike_batch::run::{self, Keep};

use crate::Outcome;
use crate::args::PairsArgs;
use crate::commands::fingerprint::rejected_hint;
use crate::output::{Printer, ReplacedFiles};
use crate::progress::Reporter;
use crate::settings::{ForecastOf, PairsRun};
use crate::{plan, summary};

pub(crate) fn run(args: &PairsArgs) -> Result<Outcome> {
    let printer = Printer::new(args.running.quiet);
    if args.matching.explain_plan {
        let of = ForecastOf {
            sources: &args.sources,
            against: &args.against,
            matching: &args.matching,
            input_format: &args.input_format,
            reading: &args.reading,
            running: &args.running,
            keep: &Keep::First,
            followed: Surveyed::Pairs,
        };
        return plan::explain(of, &printer);
    }
    let PairsRun {
        inputs,
        settings,
        outputs,
    } = PairsRun::new(args)?;
    let replaced = ReplacedFiles::find([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = Reporter::new(printer, args.running.strict);
    let result = run::pairs(&inputs, &settings, &outputs, &reporter);
    let told = args.rejected.is_some();
    reporter.finish(rejected_hint(told));
    let done = result?;
    replaced.tell(&printer);
    if args.running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::pairs(&done, args, &printer));
    }
    Ok(Outcome::of(done.rejected))
}
