//! `lookalike index plan`: the plans for a search and their cost.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use clap::Args;
use lookalike::Distance;
use lookalike::hamming::live::LivePlan;
use lookalike::hamming::{CostPrediction, HammingPlan, PlanRequest, TablePermutation};
use lookalike_options::units::parse_size;
use serde_json::{Value, json};

use crate::CommandOutcome;
use crate::language::messages;
use crate::output::{OutputPrinter, TextTone, format_bytes, format_count, pad_before};

/// Show the plans for a search and their cost
///
/// Predicts the cost for evenly distributed fingerprints and a search with many queries on one thread. Real
/// fingerprints are skewed, so a prediction is a lower bound.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lookalike index plan --count 50M --distance 3 --index-memory 1Gi
  lookalike index plan --count 50M --plan \"22,21,21; 1,0,0\"
  lookalike index plan --count 50M --live")]
pub(crate) struct IndexPlanArgs {
    /// Number of fingerprints, also with the unit K, M or G
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Index")]
    pub(crate) count: u64,

    /// Bits of a fingerprint, 8 to 128
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(8..=128),
        help_heading = "Index"
    )]
    pub(crate) bits: u32,

    /// Largest distance that can be searched (≤), in bits, at most 16
    #[arg(long, value_name = "K", default_value_t = 3, help_heading = "Index")]
    pub(crate) distance: u32,

    /// Maximum size of the finished index, in memory and on disk: bytes, or with the unit K, M, G (of 1000) or
    /// Ki, Mi, Gi (of 1024)
    ///
    /// Default: three times the size of the fingerprints, and at least 64 MiB.
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_size,
        help_heading = "Index"
    )]
    pub(crate) index_memory: Option<u64>,

    /// Plan to show first: auto, blocks, 4x16, permuted, neighbourhoods or scan, or a plan as it is shown, such
    /// as "22,21,21; 1,0,0"
    #[arg(
        long,
        value_name = "PLAN",
        default_value = "auto",
        help_heading = "Index"
    )]
    pub(crate) plan: String,

    /// Show the plan of a live index, which the service uses for a window that changes while it is searched;
    /// it has one plan only
    #[arg(long, conflicts_with = "plan", help_heading = "Index")]
    pub(crate) live: bool,

    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Parses `--count`.
fn parse_count(text: &str) -> Result<u64, String> {
    let number = text.replace([',', '_'], "");
    parse_size(&number)
        .ok()
        .filter(|_| !text.contains(['i', 'b', 'B']))
        .ok_or_else(|| "give a number of at least 1, such as 1000000, 50M or 1G".to_owned())
}

pub(super) fn run_plan(args: &IndexPlanArgs) -> Result<CommandOutcome> {
    let request = PlanRequest {
        count: args.count,
        bits: args.bits,
        distance: Distance::new(args.distance, args.bits)?,
        memory: args.index_memory,
    };
    let OfferedPlans {
        chosen,
        tables,
        others,
    } = if args.live {
        offer_live_plan(&request)?
    } else {
        static_plans(&args.plan, &request)?
    };
    let printer = OutputPrinter::new(false);
    let text = if args.json {
        let value = json!({
            "count": args.count,
            "bits": args.bits,
            "distance": args.distance,
            "index_memory": args.index_memory,
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
            "a window of {} fingerprints takes about {}, which is above the --index-memory of {}",
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
    let heading = messages::table_orders();
    let heading = printer.paint_for_output(TextTone::Heading, &heading);
    let mut text = format!("{heading}\n");
    for (number, table) in tables.iter().enumerate() {
        let blocks: Vec<String> = table.order.iter().map(u32::to_string).collect();
        let (leading, behind) = blocks.split_at(table.leading as usize);
        let _ = writeln!(
            text,
            "{:>12}  {} | {}  {}",
            number + 1,
            leading.join(" "),
            behind.join(" "),
            messages::table_bits(table.leading_bits)
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
    let mut text = messages::planned_search(&format_count(args.count), args.bits, args.distance);
    text.push('\n');
    let columns = [
        (messages::probes(), 12),
        (messages::candidates(), 12),
        (messages::memory(), 10),
        (messages::bytes_each(), 6),
        (messages::one_look_up(), 12),
    ];
    let columns = columns.map(|(name, width)| pad_before(&name, width));
    let heading = format!("{}  {}", columns.join(" "), messages::plan_column());
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
    row(chosen, &messages::chosen_plan_mark());
    for other in others {
        let over = args
            .index_memory
            .is_some_and(|most| other.1.bytes > most as f64);
        let note = if over {
            messages::too_large_mark()
        } else {
            String::new()
        };
        row(other, &note);
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
