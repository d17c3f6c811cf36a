//! `lookalike eval`.

mod args;
mod chart;
mod contamination_report;
mod points;
pub(super) mod report;
mod report_page;

use anyhow::Result;
use lookalike::quality::evaluate::SweptParameter;
use lookalike_batch::run::{
    self, ClusterFiles, ContaminationFiles, LabelSummary, PassageFiles, SettingSummary,
};

pub(crate) use self::args::EvalArgs;
use self::args::{EvalRun, cluster_files, contamination_files, passage_files};
use crate::CommandOutcome;
use crate::language::messages;
use crate::output::{OutputPrinter, ReplacedFiles, format_duration};
use crate::progress::ProgressReporter;

pub(crate) fn run_evaluation(args: &EvalArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.quiet);
    if let Some(predicted) = &args.clusters {
        let files = cluster_files(predicted.clone(), args)?;
        return compare_clusters(&files, args.json, printer);
    }
    if let Some(truth) = &args.passages {
        let files = passage_files(truth.clone(), args)?;
        return score_passages(&files, args.json, printer);
    }
    if let Some(truth) = &args.contamination {
        let files = contamination_files(truth.clone(), args)?;
        return score_contamination(&files, args.json, printer);
    }
    let EvalRun {
        inputs,
        settings,
        table,
        chart,
    } = EvalRun::new(args)?;
    let files = [
        args.csv.as_deref(),
        args.svg.as_deref(),
        args.report.as_deref(),
    ];
    let replaced = ReplacedFiles::find_existing(files.into_iter().flatten());
    let done = ProgressReporter::watch_run(printer, true, "", |reporter| {
        run::run_evaluation(&inputs, &settings, reporter)
    })?;
    if let Some(table) = &table {
        points::write_points(&done, table)?;
    }
    if let Some(chart) = &chart {
        chart::write_chart(&done, chart)?;
    }
    if let Some(place) = &args.report {
        report_page::write_report(&done, &args.inputs, place)?;
    }
    let text = if args.json {
        format!("{}\n", serde_json::to_string(&done)?)
    } else {
        report::evaluation(&done, &printer)
    };
    warn_of_ids(&done.labelled, printer);
    replaced.report_replaced(&printer);
    printer.write_data(&text)?;
    printer.print_note(&format!("{}\n", format_duration(done.seconds)));
    Ok(CommandOutcome::Done)
}

/// Warns that the labels may name documents of a missing `--corpus` by their ids.
pub(super) fn warn_of_ids(labelled: &LabelSummary, printer: OutputPrinter) {
    if labelled.look_like_ids {
        printer.print_warning(messages::texts_look_like_ids());
    }
}

fn compare_clusters(
    files: &ClusterFiles,
    json: bool,
    printer: OutputPrinter,
) -> Result<CommandOutcome> {
    let done = ProgressReporter::watch_run(printer, true, "", |reporter| {
        run::evaluate_clusters(files, reporter)
    })?;
    let text = if json {
        format!("{}\n", serde_json::to_string(&done)?)
    } else {
        report::describe_clusters(&done, &printer)
    };
    printer.write_data(&text)?;
    printer.print_note(&format!("{}\n", format_duration(done.seconds)));
    Ok(CommandOutcome::Done)
}

fn score_passages(
    files: &PassageFiles,
    json: bool,
    printer: OutputPrinter,
) -> Result<CommandOutcome> {
    let done = ProgressReporter::watch_run(printer, true, "", |reporter| {
        run::evaluate_passages(files, reporter)
    })?;
    let text = if json {
        format!("{}\n", serde_json::to_string(&done)?)
    } else {
        report::describe_passages(&done)
    };
    printer.write_data(&text)?;
    printer.print_note(&format!("{}\n", format_duration(done.seconds)));
    Ok(CommandOutcome::Done)
}

fn score_contamination(
    files: &ContaminationFiles,
    json: bool,
    printer: OutputPrinter,
) -> Result<CommandOutcome> {
    let done = ProgressReporter::watch_run(printer, true, "", |reporter| {
        run::evaluate_contamination(files, reporter)
    })?;
    let text = if json {
        format!("{}\n", serde_json::to_string(&done)?)
    } else {
        contamination_report::describe_contamination(&done, &printer)
    };
    printer.write_data(&text)?;
    printer.print_note(&format!("{}\n", format_duration(done.seconds)));
    Ok(CommandOutcome::Done)
}

/// Returns the name of a setting.
fn setting_name(setting: &SettingSummary) -> String {
    let mut name = evaluated_method_name(
        &setting.recipe,
        setting.method,
        setting.measure,
        setting.evaluation.sweep,
        setting.unit,
    );
    match (setting.evaluation.blocks, setting.distance) {
        (Some(blocks), _) => name.push_str(&format!(", sharing one of {blocks} blocks")),
        (None, Some(distance)) => name.push_str(&format!(", within distance {distance}")),
        (None, None) => {}
    }
    name
}

/// Returns the name of a recipe with a method and a measure.
pub(super) fn evaluated_method_name(
    recipe: &str,
    method: &str,
    measure: &str,
    sweep: SweptParameter,
    unit: Option<&str>,
) -> String {
    let mut name = format!("{recipe}, {method}");
    match (measure, sweep) {
        ("none", SweptParameter::Threshold) => name.push_str(", without verification"),
        ("none", _) | (_, SweptParameter::Nothing) => {}
        (measure, _) => name.push_str(&format!(", {measure}")),
    }
    if let Some(unit) = unit {
        name.push_str(&format!(" by {unit}"));
    }
    name
}

/// Returns the name of the parameter that is swept.
pub(super) fn axis_name(sweep: SweptParameter) -> &'static str {
    match sweep {
        SweptParameter::Threshold => "threshold",
        SweptParameter::Distance => "distance",
        SweptParameter::Nothing => "",
    }
}
