//! The points of the curves as a table.

use lookalike::evaluate::{Estimate, Metrics, Sweep};
use lookalike_batch::Result;
use lookalike_batch::run::{EvaluateSummary, SettingSummary};
use lookalike_batch::sink::{Cell, Column, Output, TableWriter};

use super::axis;

/// Writes the points of every setting, each as a row for the measure and a row for the method.
pub(super) fn write(done: &EvaluateSummary, output: &Output) -> Result<()> {
    let text = ["recipe", "method", "measure", "open"].map(Column::Text);
    let counts = ["found", "wrong", "missed"].map(Column::Integer);
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
    columns.push(Column::Number("cut"));
    columns.push(Column::Text("by"));
    columns.extend(counts);
    columns.extend(figures.map(Column::Number));
    columns.push(Column::Bool("best"));
    let mut table = TableWriter::create(output, &columns, None)?;
    for setting in &done.settings {
        for (at, point) in setting.evaluation.points.iter().enumerate() {
            let best = setting.evaluation.best == Some(at);
            let cut = point.cut;
            row(&mut table, setting, cut, ("measure", &point.measure), best)?;
            if let Some(method) = &point.method {
                row(&mut table, setting, cut, ("method", method), best)?;
            }
        }
    }
    table.finish()?;
    Ok(())
}

fn row(
    table: &mut TableWriter,
    setting: &SettingSummary,
    cut: f64,
    (by, metrics): (&str, &Metrics),
    best: bool,
) -> Result<()> {
    let sweep = setting.evaluation.sweep;
    let mut cells = vec![
        Cell::Text(&setting.recipe),
        Cell::Text(setting.method),
        Cell::Text(setting.measure),
        Cell::Text(axis(sweep)),
        match sweep {
            Sweep::Nothing => Cell::Null,
            Sweep::Threshold | Sweep::Distance => Cell::Number(cut),
        },
        Cell::Text(by),
        Cell::Integer(metrics.counts.true_positives),
        Cell::Integer(metrics.counts.false_positives),
        Cell::Integer(metrics.counts.false_negatives),
    ];
    for estimate in [metrics.precision, metrics.recall, metrics.f1] {
        cells.extend(figure(estimate));
    }
    cells.push(Cell::Bool(best));
    table.push(&cells)
}

fn figure(estimate: Estimate) -> [Cell<'static>; 3] {
    let interval = estimate.interval;
    [
        estimate.value,
        interval.map(|interval| interval.low),
        interval.map(|interval| interval.high),
    ]
    .map(|value| value.map_or(Cell::Null, Cell::Number))
}
