//! `lookalike eval`.

mod chart;
mod points;
pub(super) mod report;

use anyhow::Result;
use lookalike::evaluate::Sweep;
use lookalike_batch::run::{self, SettingSummary, Truth};

use crate::Outcome;
use crate::args::EvalArgs;
use crate::output::{Printer, ReplacedFiles, duration};
use crate::progress::Reporter;
use crate::settings::{ClustersRun, EvalRun};

pub(crate) fn run(args: &EvalArgs) -> Result<Outcome> {
    let printer = Printer::new(args.quiet);
    if let Some(predicted) = &args.clusters {
        let run = ClustersRun::new(predicted.clone(), args)?;
        return compare_clusters(&run, args.json, printer);
    }
    let EvalRun {
        inputs,
        settings,
        table,
        chart,
    } = EvalRun::new(args)?;
    let replaced = ReplacedFiles::find([args.csv.as_ref(), args.svg.as_ref()]);
    let reporter = Reporter::new(printer, true);
    let result = run::evaluate(&inputs, &settings, &reporter);
    reporter.finish("");
    let done = result?;
    if let Some(table) = &table {
        points::write(&done, table)?;
    }
    if let Some(chart) = &chart {
        chart::write(&done, chart)?;
    }
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&done)?)
    } else {
        report::evaluation(&done, &printer)
    };
    warn_of_ids(&done.labelled, printer);
    replaced.tell(&printer);
    printer.data(&text)?;
    printer.note(&format!("{}\n", duration(done.seconds)));
    Ok(Outcome::Done)
}

/// Warns that the labels may name documents of a missing `--corpus` by their ids.
pub(super) fn warn_of_ids(labelled: &Truth, printer: Printer) {
    if labelled.like_ids {
        printer.warn(
            "every text is one word, as ids are: if these are ids, give the documents with \
             --corpus FILE",
        );
    }
}

fn compare_clusters(run: &ClustersRun, json: bool, printer: Printer) -> Result<Outcome> {
    let reporter = Reporter::new(printer, true);
    let result = run::clusters(&run.files, &reporter);
    reporter.finish("");
    let done = result?;
    let text = if json {
        format!("{}\n", serde_json::to_string(&done)?)
    } else {
        report::clusters(&done, &printer)
    };
    printer.data(&text)?;
    printer.note(&format!("{}\n", duration(done.seconds)));
    Ok(Outcome::Done)
}

/// Returns the name of a setting.
fn name(setting: &SettingSummary) -> String {
    let way = (setting.method, setting.measure, setting.evaluation.sweep);
    let mut name = way_name(&setting.recipe, way, setting.unit);
    match (setting.evaluation.blocks, setting.distance) {
        (Some(blocks), _) => name.push_str(&format!(", sharing one of {blocks} blocks")),
        (None, Some(distance)) => name.push_str(&format!(", within distance {distance}")),
        (None, None) => {}
    }
    name
}

/// Returns the name of a recipe with a method and a measure.
pub(super) fn way_name(
    recipe: &str,
    (method, measure, sweep): (&str, &str, Sweep),
    unit: Option<&str>,
) -> String {
    let mut name = format!("{recipe}, {method}");
    match (measure, sweep) {
        ("none", Sweep::Threshold) => name.push_str(", without verification"),
        ("none", _) | (_, Sweep::Nothing) => {}
        (measure, _) => name.push_str(&format!(", {measure}")),
    }
    if let Some(unit) = unit {
        name.push_str(&format!(" by {unit}"));
    }
    name
}

/// Returns the name of the parameter that is swept.
pub(super) fn axis(sweep: Sweep) -> &'static str {
    match sweep {
        Sweep::Threshold => "threshold",
        Sweep::Distance => "distance",
        Sweep::Nothing => "",
    }
}
