//! Evaluation curves as an SVG picture: one panel per setting, readable on light and dark backgrounds.

use std::path::Path;

use anyhow::{Result, anyhow};
use lookalike::quality::evaluate::{Evaluation, MetricEstimate, MetricEstimates, SweptParameter};
use lookalike_batch::run::{EvaluateSummary, SettingSummary};
use lookalike_io::sink::{ByteWriter, OutputTarget};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{axis_name, setting_name};

/// Size of a panel in pixels.
const PANEL: (u32, u32) = (560, 360);

/// Name, colour, and accessor of a figure.
type ChartFigure = (
    &'static str,
    RGBColor,
    fn(&MetricEstimates) -> MetricEstimate,
);

/// The figures with their colours, which differ in brightness too.
const FIGURES: [ChartFigure; 3] = [
    ("precision", RGBColor(31, 119, 180), |it| it.precision),
    ("recall", RGBColor(214, 96, 24), |it| it.recall),
    ("F1", RGBColor(62, 146, 62), |it| it.f1),
];

/// Swaps light and dark for readers who prefer a dark background.
const DARK: &str = "<style>@media (prefers-color-scheme: dark) { \
                    svg > rect[fill=\"#FFFFFF\"] { fill: #15171c; } \
                    text { fill: #e8e8e8; } \
                    [stroke=\"#000000\"] { stroke: #9aa0a8; } }</style>\n";

/// Writes the picture. The file gets its name once it is complete.
pub(super) fn write_chart(done: &EvaluateSummary, path: &Path) -> Result<()> {
    let svg =
        draw_chart(done).map_err(|cause| anyhow!("cannot draw {}: {cause}", path.display()))?;
    let mut writer = ByteWriter::create_output(&OutputTarget::Path(path.to_path_buf()))?;
    writer.write_bytes(svg.as_bytes())?;
    writer.finish_output()?;
    Ok(())
}

fn draw_chart(done: &EvaluateSummary) -> Result<String> {
    let panels = done.settings.len();
    let columns = if panels > 1 { 2 } else { 1 };
    let rows = panels.div_ceil(columns);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        for (area, setting) in root
            .split_evenly((rows, columns))
            .iter()
            .zip(&done.settings)
        {
            draw_panel(area, setting)?;
        }
        root.present()?;
    }
    let inside = svg.find('>').map_or(0, |end| end + 1);
    svg.insert_str(inside, &format!("\n{DARK}"));
    Ok(svg)
}

type ChartArea<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_panel(area: &ChartArea<'_>, setting: &SettingSummary) -> Result<()> {
    let evaluation = &setting.evaluation;
    let cuts = || evaluation.points.iter().map(|point| point.cut);
    let (mut low, mut high) = cuts().fold((f64::MAX, f64::MIN), |(low, high), cut| {
        (low.min(cut), high.max(cut))
    });
    if low >= high {
        (low, high) = (low - 0.5, high + 0.5);
    }
    let mut chart = ChartBuilder::on(area)
        .caption(setting_name(setting), ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(40)
        .build_cartesian_2d(low..high, 0.0..1.0)?;
    let whole = evaluation.sweep == SweptParameter::Distance;
    chart
        .configure_mesh()
        .x_desc(axis_name(evaluation.sweep))
        .x_labels(if whole { evaluation.points.len() } else { 11 })
        .y_labels(11)
        .x_label_formatter(&|value| match whole {
            true => format!("{value:.0}"),
            false => format!("{value:.2}"),
        })
        .y_label_formatter(&|value| format!("{value:.1}"))
        .label_style(("sans-serif", 12))
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    for (figure, colour, of) in FIGURES {
        let band = interval_band(evaluation, of);
        chart.draw_series(std::iter::once(Polygon::new(band, colour.mix(0.15))))?;
        let line = curve_points(evaluation, of);
        let dots = line.clone();
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(figure)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(
            dots.into_iter()
                .map(|at| Circle::new(at, 3, colour.filled())),
        )?;
    }
    if let Some(best) = evaluation.best {
        let cut = evaluation.points[best].cut;
        let style = BLACK.mix(0.6).stroke_width(1);
        chart.draw_series(std::iter::once(PathElement::new(
            [(cut, 0.0), (cut, 1.0)],
            style,
        )))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerMiddle)
        .label_font(("sans-serif", 12))
        .draw()?;
    Ok(())
}

/// Returns the curve of a figure, without undefined values.
fn curve_points(
    evaluation: &Evaluation,
    of: fn(&MetricEstimates) -> MetricEstimate,
) -> Vec<(f64, f64)> {
    let points = evaluation.points.iter();
    points
        .filter_map(|point| Some((point.cut, of(point.decisive_metrics()).value?)))
        .collect()
}

/// Returns the outline of the confidence intervals.
fn interval_band(
    evaluation: &Evaluation,
    of: fn(&MetricEstimates) -> MetricEstimate,
) -> Vec<(f64, f64)> {
    let intervals = || {
        let points = evaluation.points.iter();
        points.filter_map(|point| Some((point.cut, of(point.decisive_metrics()).interval?)))
    };
    let below = intervals().map(|(cut, interval)| (cut, interval.low));
    let above: Vec<_> = intervals()
        .map(|(cut, interval)| (cut, interval.high))
        .collect();
    below.chain(above.into_iter().rev()).collect()
}
