//! Evaluations as text for people.

use std::fmt::Write as _;

use lookalike::quality::evaluate::{
    AveragedMetrics, ClassBreakdown, ConfusionCounts, Evaluation, EvaluationPoint, MetricEstimate,
    MetricEstimates, SweptParameter,
};
use lookalike_batch::run::{
    ClusterSummary, EvaluateSummary, LabelSummary, PassageEvaluation, SettingSummary,
};

use super::setting_name;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{
    OutputPrinter, TextTone, escape_control, format_count, pad_before, pad_to_width,
};

/// Width of a number of pairs.
const COUNT_WIDTH: usize = 9;

/// Width of a figure with its interval.
pub(crate) const FIGURE_WIDTH: usize = 20;

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
    let mut text = messages::labelled_pairs(
        NounCount(truth.texts, CountedNoun::Text),
        NounCount(truth.similar, CountedNoun::Pair),
        &format_count(truth.different),
    );
    if truth.ungraded > 0 {
        text.push_str(&messages::ungraded_pairs(&format_count(truth.ungraded)));
    }
    if truth.repeated > 0 {
        text.push_str(&messages::repeated_pairs(NounCount(
            truth.repeated,
            CountedNoun::RepeatingRow,
        )));
    }
    if truth.contradictory > 0 {
        text.push_str(&messages::contradictory_pairs(NounCount(
            truth.contradictory,
            CountedNoun::ContradictoryPair,
        )));
    }
    text.push('\n');
    text
}

fn append_intervals(text: &mut String, confidence: f64, resamples: u32, units: u64) {
    if resamples > 0 && units < 2 {
        let _ = writeln!(text, "{}", messages::no_intervals());
    } else if resamples > 0 {
        let intervals = messages::intervals_of(
            confidence * 100.0,
            &format_count(u64::from(resamples)),
            NounCount(units, CountedNoun::TextUnit),
        );
        let _ = writeln!(text, "{intervals}");
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

/// Returns the name of the parameter that is swept, for people.
pub(crate) fn axis_heading(sweep: SweptParameter) -> String {
    match sweep {
        SweptParameter::Threshold => messages::threshold(),
        SweptParameter::Distance => messages::figure_distance(),
        SweptParameter::Nothing => String::new(),
    }
}

/// Returns the heading of the figures.
fn column_headings() -> String {
    let counts = [
        messages::figure_found(),
        messages::figure_wrong(),
        messages::figure_missed(),
    ];
    let figures = [messages::precision(), messages::recall()];
    let [found, wrong, missed] = counts.map(|count| pad_before(&count, COUNT_WIDTH));
    let [precision, recall] = figures.map(|figure| pad_to_width(&figure, FIGURE_WIDTH));
    format!(
        "{found} {wrong} {missed}  {precision} {recall} {:<FIGURE_WIDTH$}",
        "F1"
    )
}

fn append_points(text: &mut String, evaluation: &Evaluation) {
    let by_threshold = evaluation.sweep == SweptParameter::Threshold;
    let axis = pad_before(&axis_heading(evaluation.sweep), COUNT_WIDTH);
    let lost_column = if by_threshold {
        format!(" {}", messages::figure_lost())
    } else {
        String::new()
    };
    let _ = writeln!(text, "  {axis} {}{lost_column}", column_headings());
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
            if best {
                messages::best_mark()
            } else {
                String::new()
            },
        );
    }
}

/// Returns the number of similar pairs that the measure finds but the method does not.
fn describe_lost(point: &EvaluationPoint) -> String {
    let Some(method) = &point.method else {
        return messages::no_plan();
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
        "{:>9} {:>9} {:>9}  {:<FIGURE_WIDTH$} {:<FIGURE_WIDTH$} {:<FIGURE_WIDTH$}",
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
    let class = match breakdown.by {
        "length" => messages::class_length(),
        "script" => messages::class_script(),
        "kind" => messages::class_kind(),
        other => other.to_owned(),
    };
    let heading = match sweep {
        SweptParameter::Nothing => messages::by_class(&class),
        _ => {
            let cut = format_cut(point.cut, sweep);
            messages::by_class_at(&class, &axis_heading(sweep), &cut)
        }
    };
    let heading = pad_to_width(&heading, 28);
    let pairs = pad_before(&messages::figure_pairs(), COUNT_WIDTH);
    let _ = writeln!(text, "  {heading} {pairs} {}", column_headings());
    for class in &breakdown.classes {
        let ConfusionCounts {
            true_positives,
            false_positives,
            false_negatives,
            true_negatives,
        } = class.metrics.counts;
        let pairs = true_positives + false_positives + false_negatives + true_negatives;
        let name = translate_phrase(&class.name);
        let _ = writeln!(
            text,
            "    {} {:>9} {}",
            pad_to_width(&escape_control(&name), 26),
            format_count(pairs),
            format_figures(&class.metrics)
        );
    }
}

/// Returns the comparison of predicted clusters with true ones.
pub(crate) fn describe_clusters(done: &ClusterSummary, printer: &OutputPrinter) -> String {
    let scores = &done.scores;
    let mut text = messages::clusters_compared(
        NounCount(scores.documents, CountedNoun::Document),
        NounCount(scores.predicted, CountedNoun::Cluster),
        &format_count(scores.truth),
        &format_count(scores.exact),
    ) + "\n";
    let figures = [messages::precision(), messages::recall()];
    let [precision, recall] = figures.map(|figure| pad_to_width(&figure, FIGURE_WIDTH));
    let heading = format!("{:<10} {precision} {recall} F1", "");
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    for (name, averages) in [
        (messages::pairwise(), scores.pairwise),
        (messages::b_cubed(), scores.b_cubed),
        (messages::exact_sets(), scores.exact_set),
    ] {
        let AveragedMetrics {
            precision,
            recall,
            f1,
        } = averages;
        let _ = writeln!(
            text,
            "{} {:<FIGURE_WIDTH$} {:<FIGURE_WIDTH$} {}",
            pad_to_width(&name, 10),
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
    let figure =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.3}"));
    let mut text = messages::passages_detected(
        NounCount(done.found, CountedNoun::Passage),
        &format_count(done.truth),
        &format_count(scores.detected),
    ) + "\n";
    for (name, value, micro) in [
        (
            messages::precision(),
            scores.precision,
            Some(scores.micro_precision),
        ),
        (messages::recall(), scores.recall, Some(scores.micro_recall)),
        (messages::granularity(), scores.granularity, None),
        ("plagdet".to_owned(), scores.plagdet, None),
    ] {
        let micro = micro.map_or_else(String::new, |micro| {
            messages::over_all_characters(&figure(micro))
        });
        let _ = writeln!(text, "{} {}{micro}", pad_to_width(&name, 12), figure(value));
    }
    text
}
