//! `lookalike run_plant`.

use std::fmt::Write as _;

use anyhow::Result;
use lookalike_batch::run::{self, EditEffect, PlantSummary, RemainingSimilarity};

use super::fingerprint::rejected_hint;
use crate::CommandOutcome;
use crate::args::PlantArgs;
use crate::output::{OutputPrinter, ReplacedFiles, TextTone};
use crate::progress::ProgressReporter;
use crate::settings::PlantRun;
use crate::summary;

pub(crate) fn run_plant(args: &PlantArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.running.quiet);
    let PlantRun { settings, outputs } = PlantRun::new(args)?;
    let outputs_given = [
        Some(&args.output),
        Some(&args.labels),
        args.rejected.as_ref(),
    ];
    let replaced = ReplacedFiles::find_existing(outputs_given);
    let reporter = ProgressReporter::new(printer, args.running.strict);
    let result = run::run_plant(&args.inputs, &settings, &outputs, &reporter);
    reporter.finish_progress(rejected_hint(args.rejected.is_some()));
    let done = result?;
    replaced.report_replaced(&printer);
    if args.running.json {
        printer.write_data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.write_data(&describe_effects(&done, &printer))?;
        printer.print_note(&summary::describe_planted(&done, args));
    }
    Ok(CommandOutcome::from_rejected(done.rejected))
}

/// Returns a line for every edit: the effect on all copies, and the share that reaches the threshold by
/// length.
fn describe_effects(done: &PlantSummary, printer: &OutputPrinter) -> String {
    let heading = format!(
        "Similarity after each edit (lengths in tokens; above: at {} or more)",
        done.threshold
    );
    let mut text = format!(
        "{}\n",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    let lengths = length_classes(done);
    let _ = write!(
        text,
        "{:<24} {:>7} {:>7} {:>6} {:>6} {:>6}",
        "edit", "copies", "no use", "mean", "5 %", "above"
    );
    for length in &lengths {
        let _ = write!(text, " {length:>9}");
    }
    text.push('\n');
    for effect in &done.effects {
        let _ = write!(
            text,
            "{:<24} {:>7} {:>7} {:>6} {:>6} {:>6}",
            effect_name(effect),
            effect.all.copies,
            effect.not_applicable,
            format_figure(&effect.all, effect.all.mean),
            format_figure(&effect.all, effect.all.low),
            format_figure(&effect.all, effect.all.above)
        );
        for length in &lengths {
            let of_length = effect.by_length.iter().find(|left| left.length == *length);
            let above =
                of_length.map_or_else(|| "-".to_owned(), |left| format_figure(left, left.above));
            let _ = write!(text, " {above:>9}");
        }
        text.push('\n');
    }
    text
}

/// Returns the length classes of the copies, short to long.
fn length_classes(done: &PlantSummary) -> Vec<&'static str> {
    let mut lengths = Vec::new();
    for left in done.effects.iter().flat_map(|effect| &effect.by_length) {
        if !lengths.contains(&left.length) {
            lengths.push(left.length);
        }
    }
    let least = |length: &&str| {
        let digits = length.split('-').next().unwrap_or_default();
        digits.parse::<u64>().unwrap_or_default()
    };
    lengths.sort_by_key(least);
    lengths
}

fn effect_name(effect: &EditEffect) -> String {
    match effect.strength {
        None => effect.kind.to_owned(),
        Some(strength) => format!("{} {} %", effect.kind, (strength * 1000.0).round() / 10.0),
    }
}

fn format_figure(left: &RemainingSimilarity, value: f64) -> String {
    if left.copies == 0 {
        "-".to_owned()
    } else {
        format!("{value:.3}")
    }
}
