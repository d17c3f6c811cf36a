//! Evaluations as text for people.

use std::fmt::Write as _;

use lookalike::quality::evaluate::{
    AveragedMetrics, ClassBreakdown, ConfusionCounts, Evaluation, EvaluationPoint, MetricEstimate,
    MetricEstimates, SweptParameter,
};
use lookalike_batch::run::{
    ClusterSummary, EvaluateSummary, LabelSummary, PassageEvaluation, SettingSummary,
};

use super::{axis_name, setting_name};
use crate::output::{OutputPrinter, TextTone, escape_control, format_count, format_plural};

/// Width of a figure with its interval.
pub(crate) const FIGURE: usize = 20;

/// Returns an evaluation: the labels, a table for every setting, and details at its best row.
pub(crate) fn evaluation(done: &EvaluateSummary, printer: &OutputPrinter) -> String {
    let mut text = describe_labels(&done.labelled);
    append_intervals(
        &mut text,
        done.confidence,
        done.resamples,
        done.labelled.units,
    );
    for setting in &done.settings {
        text.push('\n');
        self::append_setting(&mut text, setting, printer);
    }
    // Rows without a mark end in blanks, which are removed here.
    text.lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

/// Describes the labels.
pub(crate) fn describe_labels(truth: &LabelSummary) -> String {
    let mut text = format!(
        "{}: {} similar, {} not",
        format_plural(truth.texts, "text", "texts"),
        format_plural(truth.similar, "pair", "pairs"),
        format_count(truth.different)
    );
    if truth.ungraded > 0 {
        let _ = write!(
            text,
            "; {} between the two grades left out",
            format_count(truth.ungraded)
        );
    }
    if truth.repeated > 0 {
        let rows = format_plural(truth.repeated, "row repeats", "rows repeat");
        let _ = write!(text, "; {rows} a pair that counts once");
    }
    if truth.contradictory > 0 {
        let pairs = format_plural(truth.contradictory, "pair has", "pairs have");
        let _ = write!(text, "; {pairs} contradictory labels (--contradictory)");
    }
    text.push('\n');
    text
}

fn append_intervals(text: &mut String, confidence: f64, resamples: u32, units: u64) {
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
            format_count(u64::from(resamples)),
            format_plural(units, "unit of texts", "units of texts")
        );
    }
}

fn append_setting(text: &mut String, setting: &SettingSummary, printer: &OutputPrinter) {
    let heading = escape_control(&setting_name(setting)).into_owned();
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    append_points(text, &setting.evaluation);
    let Some(best) = setting.evaluation.best else {
        return;
    };
    let point = &setting.evaluation.points[best];
    for breakdown in &setting.evaluation.breakdown {
        append_breakdown(text, breakdown, point, setting.evaluation.sweep);
    }
}

/// Returns the heading of the figures.
fn column_headings() -> String {
    format!(
        "{:>9} {:>9} {:>9}  {:<FIGURE$} {:<FIGURE$} {:<FIGURE$}",
        "found", "wrong", "missed", "precision", "recall", "F1"
    )
}

fn append_points(text: &mut String, evaluation: &Evaluation) {
    let by_threshold = evaluation.sweep == SweptParameter::Threshold;
    let axis = axis_name(evaluation.sweep);
    let lost_column = if by_threshold { " lost" } else { "" };
    let _ = writeln!(text, "  {axis:>9} {}{lost_column}", column_headings());
    for (at, point) in evaluation.points.iter().enumerate() {
        let best = evaluation.best == Some(at);
        let cut = format_cut(point.cut, evaluation.sweep);
        let lost = if by_threshold {
            format!(" {:>4}", describe_lost(point))
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "{} {cut:>9} {}{lost}{}",
            if best { '*' } else { ' ' },
            format_figures(point.decisive_metrics()),
            if best { "  <- best" } else { "" },
        );
    }
}

/// Returns the number of similar pairs that the measure finds but the method does not.
fn describe_lost(point: &EvaluationPoint) -> String {
    let Some(method) = &point.method else {
        return "no plan".to_owned();
    };
    let (measure, method) = (point.measure.counts, method.counts);
    format_count(measure.true_positives.saturating_sub(method.true_positives))
}

/// Formats a threshold or a distance.
pub(crate) fn format_cut(cut: f64, sweep: SweptParameter) -> String {
    match sweep {
        SweptParameter::Nothing => String::new(),
        SweptParameter::Threshold | SweptParameter::Distance => cut.to_string(),
    }
}

fn format_figures(metrics: &MetricEstimates) -> String {
    format!(
        "{:>9} {:>9} {:>9}  {:<FIGURE$} {:<FIGURE$} {:<FIGURE$}",
        format_count(metrics.counts.true_positives),
        format_count(metrics.counts.false_positives),
        format_count(metrics.counts.false_negatives),
        format_figure(metrics.precision),
        format_figure(metrics.recall),
        format_figure(metrics.f1),
    )
}

/// Formats a figure with its interval, or `-` if it is undefined.
pub(crate) fn format_figure(estimate: MetricEstimate) -> String {
    match (estimate.value, estimate.interval) {
        (None, _) => "-".to_owned(),
        (Some(value), None) => format!("{value:.3}"),
        (Some(value), Some(interval)) => {
            format!("{value:.3} ({:.3}-{:.3})", interval.low, interval.high)
        }
    }
}

fn append_breakdown(
    text: &mut String,
    breakdown: &ClassBreakdown,
    point: &EvaluationPoint,
    sweep: SweptParameter,
) {
    let at = match sweep {
        SweptParameter::Nothing => String::new(),
        _ => format!(" at {} {}", axis_name(sweep), format_cut(point.cut, sweep)),
    };
    let heading = format!("by {}{at}", breakdown.by);
    let _ = writeln!(text, "  {heading:<28} {:>9} {}", "pairs", column_headings());
    for class in &breakdown.classes {
        let ConfusionCounts {
            true_positives,
            false_positives,
            false_negatives,
            true_negatives,
        } = class.metrics.counts;
        let pairs = true_positives + false_positives + false_negatives + true_negatives;
        let _ = writeln!(
            text,
            "    {:<26} {:>9} {}",
            escape_control(&class.name),
            format_count(pairs),
            format_figures(&class.metrics)
        );
    }
}

/// Returns the comparison of predicted clusters with true ones.
pub(crate) fn describe_clusters(done: &ClusterSummary, printer: &OutputPrinter) -> String {
    let scores = &done.scores;
    let mut text = format!(
        "{}; {} predicted, {} true (with two or more documents); {} the same in both\n",
        format_plural(scores.documents, "document", "documents"),
        format_plural(scores.predicted, "cluster", "clusters"),
        format_count(scores.truth),
        format_count(scores.exact),
    );
    let heading = format!(
        "{:<10} {:<FIGURE$} {:<FIGURE$} {}",
        "", "precision", "recall", "F1"
    );
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    for (name, averages) in [
        ("pairwise", scores.pairwise),
        ("B-cubed", scores.b_cubed),
        ("exact sets", scores.exact_set),
    ] {
        let AveragedMetrics {
            precision,
            recall,
            f1,
        } = averages;
        let _ = writeln!(
            text,
            "{name:<10} {:<FIGURE$} {:<FIGURE$} {}",
            format_figure(precision),
            format_figure(recall),
            format_figure(f1)
        );
    }
    text
}

/// Returns the comparison of found passages with true ones.
pub(crate) fn describe_passages(done: &PassageEvaluation) -> String {
    let scores = &done.scores;
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| format!("{it:.3}"));
    let mut text = format!(
        "{} found, {} true, of which {} are detected\n",
        format_plural(done.found, "passage", "passages"),
        format_count(done.truth),
        format_count(scores.detected)
    );
    for (name, value, micro) in [
        ("precision", scores.precision, Some(scores.micro_precision)),
        ("recall", scores.recall, Some(scores.micro_recall)),
        ("granularity", scores.granularity, None),
        ("plagdet", scores.plagdet, None),
    ] {
        let micro = micro.map_or_else(String::new, |it| {
            format!("  ({} over all characters)", figure(it))
        });
        let _ = writeln!(text, "{name:<12} {}{micro}", figure(value));
    }
    text
}
