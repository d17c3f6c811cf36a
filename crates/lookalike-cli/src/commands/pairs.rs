//! `lookalike pairs`.

use anyhow::Result;
use lookalike::matching::SurveyKind;
use lookalike_batch::run::{self, KeepOrder};

use crate::CommandOutcome;
use crate::args::PairsArgs;
use crate::commands::fingerprint::rejected_hint;
use crate::output::{OutputPrinter, ReplacedFiles};
use crate::progress::ProgressReporter;
use crate::settings::{ForecastOf, PairsRun};
use crate::{plan_report, summary};

pub(crate) fn run_pairs(args: &PairsArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.running.quiet);
    if args.matching.explain_plan {
        let of = ForecastOf {
            sources: &args.sources,
            against: &args.against,
            matching: &args.matching,
            input_format: &args.input_format,
            reading: &args.reading,
            running: &args.running,
            keep: &KeepOrder::First,
            followed: SurveyKind::Pairs,
        };
        return plan_report::explain_plan(of, &printer);
    }
    let PairsRun {
        inputs,
        settings,
        outputs,
    } = PairsRun::new(args)?;
    let replaced = ReplacedFiles::find_existing([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = ProgressReporter::new(printer, args.running.strict);
    let result = run::find_pairs(&inputs, &settings, &outputs, &reporter);
    let told = args.rejected.is_some();
    reporter.finish_progress(rejected_hint(told));
    let done = result?;
    replaced.report_replaced(&printer);
    if args.running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::describe_pairs(&done, args, &printer));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}
