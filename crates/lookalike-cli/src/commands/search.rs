//! `lookalike search`.

use anyhow::Result;
use lookalike_batch::index;

use super::fingerprint::rejected_hint;
use crate::CommandOutcome;
use crate::args::SearchArgs;
use crate::output::{OutputPrinter, ReplacedFiles};
use crate::progress::ProgressReporter;
use crate::settings::SearchRun;
use crate::summary;

pub(crate) fn run_search(args: &SearchArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.running.quiet);
    let SearchRun {
        settings,
        reading,
        output,
        rejected,
    } = SearchRun::new(args)?;
    let replaced = ReplacedFiles::find_existing([args.output.as_ref(), args.rejected.as_ref()]);
    let reporter = ProgressReporter::new(printer, args.running.strict);
    let result = index::search_index(
        &args.library,
        &args.inputs,
        &settings,
        &reading,
        (&output, rejected.as_ref()),
        &reporter,
    );
    reporter.finish_progress(rejected_hint(rejected.is_some()));
    let done = result?;
    replaced.report_replaced(&printer);
    if args.running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::describe_search(&done, args, &reading.entries));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}
