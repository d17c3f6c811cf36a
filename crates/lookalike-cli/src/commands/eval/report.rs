//! Evaluations as text for people.

use std::fmt::Write as _;

use lookalike::evaluate::{
    Averages, Breakdown, Counts, Estimate, Evaluation, Metrics, Point, Sweep,
};
use lookalike_batch::run::{ClusterSummary, EvaluateSummary, SettingSummary, Truth};

use super::{axis, name};
use crate::output::{Printer, Tone, count, plural, visible};

/// Width of a figure with its interval.
pub(crate) const FIGURE: usize = 20;

/// Returns an evaluation: the labels, a table for every setting, and details at its best row.
pub(crate) fn evaluation(done: &EvaluateSummary, printer: &Printer) -> String {
    let mut text = truth(&done.labelled);
    intervals(
        &mut text,
        done.confidence,
        done.resamples,
        done.labelled.units,
    );
    for setting in &done.settings {
        text.push('\n');
        self::setting(&mut text, setting, printer);
    }
    // Rows without a mark end in blanks, which are removed here.
    text.lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

/// Describes the labels.
pub(crate) fn truth(truth: &Truth) -> String {
    let mut text = format!(
        "{}: {} similar, {} not",
        plural(truth.texts, "text", "texts"),
        plural(truth.similar, "pair", "pairs"),
        count(truth.different)
    );
    if truth.ungraded > 0 {
        let _ = write!(
            text,
            "; {} between the two grades left out",
            count(truth.ungraded)
        );
    }
    if truth.repeated > 0 {
        let rows = plural(truth.repeated, "row repeats", "rows repeat");
        let _ = write!(text, "; {rows} a pair that counts once");
    }
    if truth.contradictory > 0 {
        let pairs = plural(truth.contradictory, "pair has", "pairs have");
        let _ = write!(text, "; {pairs} contradictory labels (--contradictory)");
    }
    text.push('\n');
    text
}

fn intervals(text: &mut String, confidence: f64, resamples: u32, units: u64) {
    if resamples > 0 && units < 2 {
        let _ = writeln!(
            text,
            "no intervals: all texts are connected by pairs, so there is only one unit to resample"
        );
    } else if resamples > 0 {
        let _ = writeln!(
            text,
            "intervals: {} % of {} resamples of {} that pairs connect",
            confidence * 100.0,
            count(u64::from(resamples)),
            plural(units, "unit of texts", "units of texts")
        );
    }
}

fn setting(text: &mut String, setting: &SettingSummary, printer: &Printer) {
    let heading = visible(&name(setting)).into_owned();
    let _ = writeln!(text, "{}", printer.in_output(Tone::Heading, &heading));
    points(text, &setting.evaluation);
    let Some(best) = setting.evaluation.best else {
        return;
    };
    let point = &setting.evaluation.points[best];
    for breakdown in &setting.evaluation.breakdown {
        parts(text, breakdown, point, setting.evaluation.sweep);
    }
}

/// Returns the heading of the figures.
fn columns() -> String {
    format!(
        "{:>9} {:>9} {:>9}  {:<FIGURE$} {:<FIGURE$} {:<FIGURE$}",
        "found", "wrong", "missed", "precision", "recall", "F1"
    )
}

fn points(text: &mut String, evaluation: &Evaluation) {
    let by_threshold = evaluation.sweep == Sweep::Threshold;
    let axis = axis(evaluation.sweep);
    let lost_column = if by_threshold { " lost" } else { "" };
    let _ = writeln!(text, "  {axis:>9} {}{lost_column}", columns());
    for (at, point) in evaluation.points.iter().enumerate() {
        let best = evaluation.best == Some(at);
        let cut = cut(point.cut, evaluation.sweep);
        let lost = if by_threshold {
            format!(" {:>4}", lost(point))
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "{} {cut:>9} {}{lost}{}",
            if best { '*' } else { ' ' },
            figures(point.decisive()),
            if best { "  <- best" } else { "" },
        );
    }
}

/// Returns the number of similar pairs that the measure finds but the method does not.
fn lost(point: &Point) -> String {
    let Some(method) = &point.method else {
        return "no plan".to_owned();
    };
    let (measure, method) = (point.measure.counts, method.counts);
    count(measure.true_positives.saturating_sub(method.true_positives))
}

/// Formats a threshold or a distance.
pub(crate) fn cut(cut: f64, sweep: Sweep) -> String {
    match sweep {
        Sweep::Nothing => String::new(),
        Sweep::Threshold | Sweep::Distance => cut.to_string(),
    }
}

fn figures(metrics: &Metrics) -> String {
    format!(
        "{:>9} {:>9} {:>9}  {:<FIGURE$} {:<FIGURE$} {:<FIGURE$}",
        count(metrics.counts.true_positives),
        count(metrics.counts.false_positives),
        count(metrics.counts.false_negatives),
        figure(metrics.precision),
        figure(metrics.recall),
        figure(metrics.f1),
    )
}

/// Formats a figure with its interval, or `-` if it is undefined.
pub(crate) fn figure(estimate: Estimate) -> String {
    match (estimate.value, estimate.interval) {
        (None, _) => "-".to_owned(),
        (Some(value), None) => format!("{value:.3}"),
        (Some(value), Some(interval)) => {
            format!("{value:.3} ({:.3}-{:.3})", interval.low, interval.high)
        }
    }
}

fn parts(text: &mut String, breakdown: &Breakdown, point: &Point, sweep: Sweep) {
    let at = match sweep {
        Sweep::Nothing => String::new(),
        _ => format!(" at {} {}", axis(sweep), cut(point.cut, sweep)),
    };
    let heading = format!("by {}{at}", breakdown.by);
    let _ = writeln!(text, "  {heading:<28} {:>9} {}", "pairs", columns());
    for class in &breakdown.classes {
        let Counts {
            true_positives,
            false_positives,
            false_negatives,
            true_negatives,
        } = class.metrics.counts;
        let pairs = true_positives + false_positives + false_negatives + true_negatives;
        let _ = writeln!(
            text,
            "    {:<26} {:>9} {}",
            visible(&class.name),
            count(pairs),
            figures(&class.metrics)
        );
    }
}

/// Returns the comparison of predicted clusters with true ones.
pub(crate) fn clusters(done: &ClusterSummary, printer: &Printer) -> String {
    let scores = &done.scores;
    let mut text = format!(
        "{}; {} predicted, {} true (with two or more documents); {} the same in both\n",
        plural(scores.documents, "document", "documents"),
        plural(scores.predicted, "cluster", "clusters"),
        count(scores.truth),
        count(scores.exact),
    );
    let heading = format!(
        "{:<10} {:<FIGURE$} {:<FIGURE$} {}",
        "", "precision", "recall", "F1"
    );
    let _ = writeln!(text, "{}", printer.in_output(Tone::Heading, &heading));
    for (name, averages) in [
        ("pairwise", scores.pairwise),
        ("B-cubed", scores.b_cubed),
        ("exact sets", scores.exact_set),
    ] {
        let Averages {
            precision,
            recall,
            f1,
        } = averages;
        let _ = writeln!(
            text,
            "{name:<10} {:<FIGURE$} {:<FIGURE$} {}",
            figure(precision),
            figure(recall),
            figure(f1)
        );
    }
    text
}
