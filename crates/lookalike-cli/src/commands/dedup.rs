//! `lookalike dedup`.

use anyhow::Result;
use lookalike::matching::SurveyKind;
use lookalike_batch::run;

use crate::CommandOutcome;
use crate::args::DedupArgs;
use crate::commands::fingerprint::rejected_hint;
use crate::output::{OutputPrinter, ReplacedFiles};
use crate::progress::ProgressReporter;
use crate::settings::{DedupRun, ForecastOf};
use crate::{plan_report, summary};

pub(crate) fn run_dedup(args: &DedupArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.running.quiet);
    if args.matching.explain_plan {
        let of = ForecastOf {
            sources: &args.sources,
            against: &args.against,
            matching: &args.matching,
            input_format: &args.input_format,
            reading: &args.reading,
            running: &args.running,
            keep: &args.keep,
            followed: SurveyKind::Verdicts,
        };
        return plan_report::explain_plan(of, &printer);
    }
    let DedupRun {
        inputs,
        settings,
        outputs,
        written,
    } = DedupRun::new(args)?;
    let replaced = ReplacedFiles::find_existing([
        args.output.as_ref(),
        args.removed.as_ref(),
        args.clusters.as_ref(),
        args.rejected.as_ref(),
    ]);
    let reporter = ProgressReporter::new(printer, args.running.strict);
    let result = run::run_dedup(&inputs, &settings, &outputs, &reporter);
    let told = args.rejected.is_some() && !args.dry_run;
    reporter.finish_progress(rejected_hint(told));
    let done = result?;
    if !args.dry_run {
        replaced.report_replaced(&printer);
    }
    if args.running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::describe_dedup(&done, args, &written, &printer));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}
