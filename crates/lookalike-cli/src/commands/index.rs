//! `lookalike index`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use lookalike::Distance;
use lookalike::hamming::live::LivePlan;
use lookalike::hamming::{CostPrediction, HammingPlan, PlanRequest, TablePermutation};
use lookalike_batch::index::{self, AddSummary};
use serde_json::{Value, json};

use super::fingerprint::rejected_hint;
use crate::CommandOutcome;
use crate::args::{
    IndexAddArgs, IndexArgs, IndexBuildArgs, IndexCommand, IndexInfoArgs, IndexPlanArgs,
    IndexRemoveArgs, IndexVerifyArgs, RunningArgs,
};
use crate::output::{
    OutputPrinter, ReplacedFiles, TextTone, escape_control, format_bytes, format_count,
};
use crate::progress::ProgressReporter;
use crate::settings::{self, AddRun};
use crate::summary;

/// Number of missing ids that are shown.
const TOLD_IDS: usize = 10;

pub(crate) fn run_index(args: &IndexArgs) -> Result<CommandOutcome> {
    match &args.command {
        IndexCommand::Build(args) => run_build(args),
        IndexCommand::Add(args) => run_add(args),
        IndexCommand::Remove(args) => run_remove(args),
        IndexCommand::Info(args) => run_info(args),
        IndexCommand::Verify(args) => run_verify(args),
        IndexCommand::Plan(args) => run_plan(args),
    }
}

fn run_build(args: &IndexBuildArgs) -> Result<CommandOutcome> {
    let settings = settings::build_settings(args)?;
    let run = AddRun::new(
        &args.inputs,
        &args.bare,
        &args.input_format,
        &args.reading,
        (&args.running, args.rejected.as_deref()),
    )?;
    let replaced = ReplacedFiles::find_existing([args.rejected.as_ref()]);
    run_insertion(&run, (&args.running, &replaced), |reporter| {
        index::build_index(
            &args.library,
            &args.inputs,
            &settings,
            &run.reading,
            run.rejected.as_ref(),
            reporter,
        )
    })
}

fn run_add(args: &IndexAddArgs) -> Result<CommandOutcome> {
    let run = AddRun::new(
        &args.inputs,
        &args.bare,
        &args.input_format,
        &args.reading,
        (&args.running, args.rejected.as_deref()),
    )?;
    let replaced = ReplacedFiles::find_existing([args.rejected.as_ref()]);
    run_insertion(&run, (&args.running, &replaced), |reporter| {
        index::add_to_index(
            &args.library,
            &args.inputs,
            &run.reading,
            run.rejected.as_ref(),
            reporter,
        )
    })
}

fn run_insertion(
    run: &AddRun,
    (running, replaced): (&RunningArgs, &ReplacedFiles),
    work: impl FnOnce(&ProgressReporter) -> lookalike_io::Result<AddSummary>,
) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(running.quiet);
    let reporter = ProgressReporter::new(printer, running.strict);
    let result = work(&reporter);
    reporter.finish_progress(rejected_hint(run.rejected.is_some()));
    let done = result?;
    replaced.report_replaced(&printer);
    if running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::describe_added(&done, &run.reading.entries));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}

fn run_remove(args: &IndexRemoveArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.telling.quiet);
    let mut ids = args.id.clone();
    if let Some(file) = &args.ids {
        let text = read_ids_from(file)
            .map_err(|cause| anyhow!("cannot read the ids in {}: {cause}", file.display()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        ids.extend(text.lines().filter(|id| !id.is_empty()).map(str::to_owned));
    }
    let threads = settings::thread_count(args.telling.threads);
    let reporter = ProgressReporter::new(printer, false);
    let result = index::remove_from_index(&args.library, &ids, threads, &reporter);
    reporter.finish_progress("");
    let done = result?;
    for id in done.missing.iter().take(TOLD_IDS) {
        let text = format!("the id '{id}' is not in {}", args.library.display());
        printer.print_warning(escape_control(&text));
    }
    let more = done.missing.len().saturating_sub(TOLD_IDS);
    if more > 0 {
        let all = "; --json lists them all";
        printer.print_warning(format!(
            "{} more ids are not in the index{all}",
            format_count(more as u64)
        ));
    }
    if args.telling.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::describe_index_removal(&done));
    }
    Ok(CommandOutcome::from_rejected(done.missing.len() as u64))
}

fn read_ids_from(file: &Path) -> io::Result<String> {
    if file.as_os_str() == "-" {
        return io::read_to_string(io::stdin());
    }
    std::fs::read_to_string(file)
}

fn run_info(args: &IndexInfoArgs) -> Result<CommandOutcome> {
    let info = index::index_info(&args.library)?;
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&info)?)
    } else {
        summary::describe_index(&info)
    };
    OutputPrinter::new(false).write_data(&text)?;
    Ok(CommandOutcome::Done)
}

fn run_verify(args: &IndexVerifyArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.telling.quiet);
    let threads = settings::thread_count(args.telling.threads);
    let reporter = ProgressReporter::new(printer, false);
    let result = index::verify_index(&args.library, threads, &reporter);
    reporter.finish_progress("");
    let done = result?;
    if args.telling.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.print_note(&summary::describe_verified(&done));
    }
    Ok(CommandOutcome::Done)
}

fn run_plan(args: &IndexPlanArgs) -> Result<CommandOutcome> {
    let request = PlanRequest {
        count: args.count,
        bits: args.bits,
        distance: Distance::new(args.distance, args.bits)?,
        memory: args.memory,
    };
    let OfferedPlans {
        chosen,
        tables,
        others,
    } = match args.live {
        true => offer_live_plan(&request)?,
        false => static_plans(&args.plan, &request)?,
    };
    let printer = OutputPrinter::new(false);
    let text = if args.json {
        let value = json!({
            "count": args.count,
            "bits": args.bits,
            "distance": args.distance,
            "memory": args.memory,
            "live": args.live,
            "plan": plan_to_json(&chosen),
            "tables": tables.iter().map(table_as_json).collect::<Vec<_>>(),
            "alternatives": others.iter().map(plan_to_json).collect::<Vec<_>>(),
        });
        format!("{value}\n")
    } else {
        let tables = tables_in_words(&tables, &printer);
        plans_in_words(args, &chosen, &others, &printer) + &tables
    };
    printer.write_data(&text)?;
    Ok(CommandOutcome::Done)
}

/// Name and predicted cost of a plan.
type NamedPrediction = (String, CostPrediction);

/// The available plans.
struct OfferedPlans {
    chosen: NamedPrediction,
    /// Permuted tables of the chosen plan, if it has any.
    tables: Vec<TablePermutation>,
    /// The other plans, fastest first.
    others: Vec<NamedPrediction>,
}

fn static_plans(name: &str, request: &PlanRequest) -> Result<OfferedPlans> {
    let planned = |plan: &HammingPlan| (plan.to_string(), plan.predict_cost(request.count));
    let plan = HammingPlan::from_name(name, request)?;
    let chosen = planned(&plan);
    let mut others: Vec<_> = HammingPlan::all_plans(request)?
        .iter()
        .map(planned)
        .collect();
    others.retain(|(name, _)| *name != chosen.0);
    others.sort_by(|(_, a), (_, b)| a.nanoseconds.total_cmp(&b.nanoseconds));
    Ok(OfferedPlans {
        chosen,
        tables: plan.permutations(),
        others,
    })
}

fn offer_live_plan(request: &PlanRequest) -> Result<OfferedPlans> {
    let plan = LivePlan::new(request.bits, request.distance)?;
    let cost = plan.predict_cost(request.count);
    if let Some(memory) = request.memory.filter(|&memory| cost.bytes > memory as f64) {
        bail!(
            "a window of {} fingerprints takes about {}, which is above the memory limit of {}",
            format_count(request.count),
            format_bytes(cost.bytes as u64),
            format_bytes(memory)
        );
    }
    Ok(OfferedPlans {
        chosen: (plan.to_string(), cost),
        tables: Vec::new(),
        others: Vec::new(),
    })
}

fn plan_to_json((name, cost): &NamedPrediction) -> Value {
    json!({
        "plan": name,
        "probes": cost.probes,
        "candidates": cost.candidates,
        "bytes": cost.bytes,
        "nanoseconds": cost.nanoseconds,
    })
}

fn table_as_json(table: &TablePermutation) -> Value {
    json!({
        "order": table.order,
        "leading": table.leading,
        "leading_bits": table.leading_bits,
    })
}

fn tables_in_words(tables: &[TablePermutation], printer: &OutputPrinter) -> String {
    if tables.is_empty() {
        return String::new();
    }
    let heading = "Tables: order of the blocks (0 has the lowest bits); the blocks before the bar \
                   are equal, with their bits";
    let mut text = format!("{}\n", printer.paint_for_output(TextTone::Heading, heading));
    for (number, table) in tables.iter().enumerate() {
        let blocks: Vec<String> = table.order.iter().map(u32::to_string).collect();
        let (leading, behind) = blocks.split_at(table.leading as usize);
        let _ = writeln!(
            text,
            "{:>12}  {} | {}  {} bits",
            number + 1,
            leading.join(" "),
            behind.join(" "),
            table.leading_bits
        );
    }
    text
}

fn plans_in_words(
    args: &IndexPlanArgs,
    chosen: &NamedPrediction,
    others: &[NamedPrediction],
    printer: &OutputPrinter,
) -> String {
    let mut text = format!(
        "{} fingerprints of {} bits, distance at most {}\n",
        format_count(args.count),
        args.bits,
        args.distance
    );
    let heading = format!(
        "{:>12} {:>12} {:>10} {:>6} {:>12}  plan: blocks; differing bits allowed in each (keys, \
         layout)",
        "probes", "candidates", "memory", "bytes", "one look-up"
    );
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    let mut row = |(name, cost): &NamedPrediction, note: &str| {
        let each = cost.bytes / args.count as f64;
        let _ = writeln!(
            text,
            "{:>12} {:>12} {:>10} {:>6.1} {:>12}  {name}{note}",
            format_figure(cost.probes),
            format_figure(cost.candidates),
            format_bytes(cost.bytes as u64),
            each,
            format_nanoseconds(cost.nanoseconds),
        );
    };
    row(chosen, "  <- this one");
    for other in others {
        let over = args.memory.is_some_and(|most| other.1.bytes > most as f64);
        row(other, if over { "  (too large)" } else { "" });
    }
    text
}

/// Formats a number with a meaningful number of decimals.
fn format_figure(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.1}")
    } else {
        format_count(value as u64)
    }
}

fn format_nanoseconds(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e4 => format!("{nanoseconds:.0} ns"),
        ..1e7 => format!("{:.1} µs", nanoseconds / 1e3),
        _ => format!("{:.1} ms", nanoseconds / 1e6),
    }
}
