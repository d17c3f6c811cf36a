//! `lookalike index`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use lookalike::Distance;
use lookalike::hamming::live::LivePlan;
use lookalike::hamming::{Permutation, Plan, Prediction, Request};
use lookalike_batch::library::{self, AddSummary};
use serde_json::{Value, json};

use super::fingerprint::rejected_hint;
use crate::Outcome;
use crate::args::{
    IndexAddArgs, IndexArgs, IndexBuildArgs, IndexCommand, IndexInfoArgs, IndexPlanArgs,
    IndexRemoveArgs, IndexVerifyArgs, Running,
};
use crate::output::{Printer, ReplacedFiles, Tone, bytes, count, visible};
use crate::progress::Reporter;
use crate::settings::{self, AddRun};
use crate::summary;

/// Number of missing ids that are shown.
const TOLD_IDS: usize = 10;

pub(crate) fn run(args: &IndexArgs) -> Result<Outcome> {
    match &args.command {
        IndexCommand::Build(args) => build(args),
        IndexCommand::Add(args) => add(args),
        IndexCommand::Remove(args) => remove(args),
        IndexCommand::Info(args) => info(args),
        IndexCommand::Verify(args) => verify(args),
        IndexCommand::Plan(args) => plan(args),
    }
}

fn build(args: &IndexBuildArgs) -> Result<Outcome> {
    let settings = settings::build_settings(args)?;
    let run = AddRun::new(
        &args.inputs,
        &args.bare,
        &args.input_format,
        &args.reading,
        (&args.running, args.rejected.as_deref()),
    )?;
    let replaced = ReplacedFiles::find([args.rejected.as_ref()]);
    take_in(&run, (&args.running, &replaced), |reporter| {
        library::build(
            &args.library,
            &args.inputs,
            &settings,
            &run.reading,
            run.rejected.as_ref(),
            reporter,
        )
    })
}

fn add(args: &IndexAddArgs) -> Result<Outcome> {
    let run = AddRun::new(
        &args.inputs,
        &args.bare,
        &args.input_format,
        &args.reading,
        (&args.running, args.rejected.as_deref()),
    )?;
    let replaced = ReplacedFiles::find([args.rejected.as_ref()]);
    take_in(&run, (&args.running, &replaced), |reporter| {
        library::add(
            &args.library,
            &args.inputs,
            &run.reading,
            run.rejected.as_ref(),
            reporter,
        )
    })
}

fn take_in(
    run: &AddRun,
    (running, replaced): (&Running, &ReplacedFiles),
    work: impl FnOnce(&Reporter) -> lookalike_batch::Result<AddSummary>,
) -> Result<Outcome> {
    let printer = Printer::new(running.quiet);
    let reporter = Reporter::new(printer, running.strict);
    let result = work(&reporter);
    reporter.finish(rejected_hint(run.rejected.is_some()));
    let done = result?;
    replaced.tell(&printer);
    if running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::added(&done, &run.reading.entries));
    }
    Ok(Outcome::of(done.rejected))
}

fn remove(args: &IndexRemoveArgs) -> Result<Outcome> {
    let printer = Printer::new(args.telling.quiet);
    let mut ids = args.id.clone();
    if let Some(file) = &args.ids {
        let text = read_ids(file)
            .map_err(|cause| anyhow!("cannot read the ids in {}: {cause}", file.display()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        ids.extend(text.lines().filter(|id| !id.is_empty()).map(str::to_owned));
    }
    let threads = settings::threads(args.telling.threads);
    let reporter = Reporter::new(printer, false);
    let result = library::remove(&args.library, &ids, threads, &reporter);
    reporter.finish("");
    let done = result?;
    for id in done.missing.iter().take(TOLD_IDS) {
        let text = format!("the id '{id}' is not in {}", args.library.display());
        printer.warn(visible(&text));
    }
    let more = done.missing.len().saturating_sub(TOLD_IDS);
    if more > 0 {
        let all = "; --json lists them all";
        printer.warn(format!(
            "{} more ids are not in the index{all}",
            count(more as u64)
        ));
    }
    if args.telling.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::removed_from_library(&done));
    }
    Ok(Outcome::of(done.missing.len() as u64))
}

fn read_ids(file: &Path) -> io::Result<String> {
    if file.as_os_str() == "-" {
        return io::read_to_string(io::stdin());
    }
    std::fs::read_to_string(file)
}

fn info(args: &IndexInfoArgs) -> Result<Outcome> {
    let info = library::info(&args.library)?;
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&info)?)
    } else {
        summary::library(&info)
    };
    Printer::new(false).data(&text)?;
    Ok(Outcome::Done)
}

fn verify(args: &IndexVerifyArgs) -> Result<Outcome> {
    let printer = Printer::new(args.telling.quiet);
    let threads = settings::threads(args.telling.threads);
    let reporter = Reporter::new(printer, false);
    let result = library::verify(&args.library, threads, &reporter);
    reporter.finish("");
    let done = result?;
    if args.telling.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.note(&summary::verified(&done));
    }
    Ok(Outcome::Done)
}

fn plan(args: &IndexPlanArgs) -> Result<Outcome> {
    let request = Request {
        count: args.count,
        bits: args.bits,
        distance: Distance::new(args.distance, args.bits)?,
        memory: args.memory,
    };
    let Offered {
        chosen,
        tables,
        others,
    } = match args.live {
        true => live_plan(&request)?,
        false => static_plans(&args.plan, &request)?,
    };
    let printer = Printer::new(false);
    let text = if args.json {
        let value = json!({
            "count": args.count,
            "bits": args.bits,
            "distance": args.distance,
            "memory": args.memory,
            "live": args.live,
            "plan": as_json(&chosen),
            "tables": tables.iter().map(table_as_json).collect::<Vec<_>>(),
            "alternatives": others.iter().map(as_json).collect::<Vec<_>>(),
        });
        format!("{value}\n")
    } else {
        let tables = tables_in_words(&tables, &printer);
        in_words(args, &chosen, &others, &printer) + &tables
    };
    printer.data(&text)?;
    Ok(Outcome::Done)
}

/// Name and predicted cost of a plan.
type Planned = (String, Prediction);

/// The available plans.
struct Offered {
    chosen: Planned,
    /// Permuted tables of the chosen plan, if it has any.
    tables: Vec<Permutation>,
    /// The other plans, fastest first.
    others: Vec<Planned>,
}

fn static_plans(name: &str, request: &Request) -> Result<Offered> {
    let planned = |plan: &Plan| (plan.to_string(), plan.predict(request.count));
    let plan = Plan::named(name, request)?;
    let chosen = planned(&plan);
    let mut others: Vec<_> = Plan::all(request)?.iter().map(planned).collect();
    others.retain(|(name, _)| *name != chosen.0);
    others.sort_by(|(_, a), (_, b)| a.nanoseconds.total_cmp(&b.nanoseconds));
    Ok(Offered {
        chosen,
        tables: plan.permutations(),
        others,
    })
}

fn live_plan(request: &Request) -> Result<Offered> {
    let plan = LivePlan::new(request.bits, request.distance)?;
    let cost = plan.predict(request.count);
    if let Some(memory) = request.memory.filter(|&memory| cost.bytes > memory as f64) {
        bail!(
            "a window of {} fingerprints takes about {}, which is above the memory limit of {}",
            count(request.count),
            bytes(cost.bytes as u64),
            bytes(memory)
        );
    }
    Ok(Offered {
        chosen: (plan.to_string(), cost),
        tables: Vec::new(),
        others: Vec::new(),
    })
}

fn as_json((name, cost): &Planned) -> Value {
    json!({
        "plan": name,
        "probes": cost.probes,
        "candidates": cost.candidates,
        "bytes": cost.bytes,
        "nanoseconds": cost.nanoseconds,
    })
}

fn table_as_json(table: &Permutation) -> Value {
    json!({
        "order": table.order,
        "leading": table.leading,
        "leading_bits": table.leading_bits,
    })
}

fn tables_in_words(tables: &[Permutation], printer: &Printer) -> String {
    if tables.is_empty() {
        return String::new();
    }
    let heading = "Tables: order of the blocks (0 has the lowest bits); the blocks before the bar \
                   are equal, with their bits";
    let mut text = format!("{}\n", printer.in_output(Tone::Heading, heading));
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

fn in_words(
    args: &IndexPlanArgs,
    chosen: &Planned,
    others: &[Planned],
    printer: &Printer,
) -> String {
    let mut text = format!(
        "{} fingerprints of {} bits, distance at most {}\n",
        count(args.count),
        args.bits,
        args.distance
    );
    let heading = format!(
        "{:>12} {:>12} {:>10} {:>6} {:>12}  plan: blocks; differing bits allowed in each (keys, \
         layout)",
        "probes", "candidates", "memory", "bytes", "one look-up"
    );
    let _ = writeln!(text, "{}", printer.in_output(Tone::Heading, &heading));
    let mut row = |(name, cost): &Planned, note: &str| {
        let each = cost.bytes / args.count as f64;
        let _ = writeln!(
            text,
            "{:>12} {:>12} {:>10} {:>6.1} {:>12}  {name}{note}",
            figure(cost.probes),
            figure(cost.candidates),
            bytes(cost.bytes as u64),
            each,
            time(cost.nanoseconds),
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
fn figure(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.1}")
    } else {
        count(value as u64)
    }
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e4 => format!("{nanoseconds:.0} ns"),
        ..1e7 => format!("{:.1} µs", nanoseconds / 1e3),
        _ => format!("{:.1} ms", nanoseconds / 1e6),
    }
}
