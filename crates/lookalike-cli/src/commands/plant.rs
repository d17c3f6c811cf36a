//! `lookalike plant`.

use std::fmt::Write as _;

use anyhow::Result;
use lookalike_batch::run::{self, Effect, Left, PlantSummary};

use super::fingerprint::rejected_hint;
use crate::Outcome;
use crate::args::PlantArgs;
use crate::output::{Printer, ReplacedFiles, Tone};
use crate::progress::Reporter;
use crate::settings::PlantRun;
use crate::summary;

pub(crate) fn run(args: &PlantArgs) -> Result<Outcome> {
    let printer = Printer::new(args.running.quiet);
    let PlantRun { settings, outputs } = PlantRun::new(args)?;
    let outputs_given = [
        Some(&args.output),
        Some(&args.labels),
        args.rejected.as_ref(),
    ];
    let replaced = ReplacedFiles::find(outputs_given);
    let reporter = Reporter::new(printer, args.running.strict);
    let result = run::plant(&args.inputs, &settings, &outputs, &reporter);
    reporter.finish(rejected_hint(args.rejected.is_some()));
    let done = result?;
    replaced.tell(&printer);
    if args.running.json {
        printer.data(&format!("{}\n", serde_json::to_string(&done)?))?;
    } else {
        printer.data(&effects(&done, &printer))?;
        printer.note(&summary::planted(&done, args));
    }
    Ok(Outcome::of(done.rejected))
}

/// Returns a line for every edit: the effect on all copies, and the share that reaches the threshold by
/// length.
fn effects(done: &PlantSummary, printer: &Printer) -> String {
    let heading = format!(
        "Similarity after each edit (lengths in tokens; above: at {} or more)",
        done.threshold
    );
    let mut text = format!("{}\n", printer.in_output(Tone::Heading, &heading));
    let lengths = lengths(done);
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
            named(effect),
            effect.all.copies,
            effect.not_applicable,
            figure(&effect.all, effect.all.mean),
            figure(&effect.all, effect.all.low),
            figure(&effect.all, effect.all.above)
        );
        for length in &lengths {
            let of_length = effect.by_length.iter().find(|left| left.length == *length);
            let above = of_length.map_or_else(|| "-".to_owned(), |left| figure(left, left.above));
            let _ = write!(text, " {above:>9}");
        }
        text.push('\n');
    }
    text
}

/// Returns the length classes of the copies, short to long.
fn lengths(done: &PlantSummary) -> Vec<&'static str> {
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

fn named(effect: &Effect) -> String {
    match effect.strength {
        None => effect.kind.to_owned(),
        Some(strength) => format!("{} {} %", effect.kind, (strength * 1000.0).round() / 10.0),
    }
}

fn figure(left: &Left, value: f64) -> String {
    if left.copies == 0 {
        "-".to_owned()
    } else {
        format!("{value:.3}")
    }
}
