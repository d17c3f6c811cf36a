//! The points of the curves as a table.

use lookalike::quality::evaluate::{MetricEstimate, MetricEstimates, SweptParameter};
use lookalike_batch::run::{EvaluateSummary, SettingSummary};
use lookalike_io::Result;
use lookalike_io::sink::{OutputTarget, TableCell, TableColumn, TableWriter};

use super::axis_name;

/// Writes the points of every setting, each as a row for the measure and a row for the method.
pub(super) fn write_points(done: &EvaluateSummary, output: &OutputTarget) -> Result<()> {
    let text = ["recipe", "method", "measure", "open"].map(TableColumn::Text);
    let counts = ["found", "wrong", "missed"].map(TableColumn::Integer);
    let figures = [
        "precision",
        "precision_low",
        "precision_high",
        "recall",
        "recall_low",
        "recall_high",
        "f1",
        "f1_low",
        "f1_high",
    ];
    let mut columns = text.to_vec();
    columns.push(TableColumn::Number("cut"));
    columns.push(TableColumn::Text("by"));
    columns.extend(counts);
    columns.extend(figures.map(TableColumn::Number));
    columns.push(TableColumn::Bool("best"));
    let mut table = TableWriter::create_table(output, &columns, None)?;
    for setting in &done.settings {
        for (at, point) in setting.evaluation.points.iter().enumerate() {
            let best = setting.evaluation.best == Some(at);
            let cut = point.cut;
            push_point(&mut table, setting, cut, "measure", &point.measure, best)?;
            if let Some(method) = &point.method {
                push_point(&mut table, setting, cut, "method", method, best)?;
            }
        }
    }
    table.finish_table()?;
    Ok(())
}

fn push_point(
    table: &mut TableWriter,
    setting: &SettingSummary,
    cut: f64,
    by: &str,
    metrics: &MetricEstimates,
    best: bool,
) -> Result<()> {
    let sweep = setting.evaluation.sweep;
    let mut cells = vec![
        TableCell::Text(&setting.recipe),
        TableCell::Text(setting.method),
        TableCell::Text(setting.measure),
        TableCell::Text(axis_name(sweep)),
        match sweep {
            SweptParameter::Nothing => TableCell::Null,
            SweptParameter::Threshold | SweptParameter::Distance => TableCell::Number(cut),
        },
        TableCell::Text(by),
        TableCell::Integer(metrics.counts.true_positives),
        TableCell::Integer(metrics.counts.false_positives),
        TableCell::Integer(metrics.counts.false_negatives),
    ];
    for estimate in [metrics.precision, metrics.recall, metrics.f1] {
        cells.extend(figure_cells(estimate));
    }
    cells.push(TableCell::Bool(best));
    table.push_row(&cells)
}

fn figure_cells(estimate: MetricEstimate) -> [TableCell<'static>; 3] {
    let interval = estimate.interval;
    [
        estimate.value,
        interval.map(|interval| interval.low),
        interval.map(|interval| interval.high),
    ]
    .map(|value| value.map_or(TableCell::Null, TableCell::Number))
}
