//! Evaluation curves as an SVG picture: one panel per setting, readable on light and dark backgrounds.
//!
//! ```text
//! setting                      ── precision  ╌╌ recall  ┈┈ F1
//! 1.0 ┤·····  curves with dots, intervals as areas
//!     │    ╎  a dashed line at the best cut
//! 0.0 ┼──────────────────────────────────────────────────────
//!     cuts                                          threshold
//! ```

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use lookalike::quality::evaluate::{Evaluation, MetricEstimate, MetricEstimates, SweptParameter};
use lookalike_batch::run::{EvaluateSummary, SettingSummary};
use lookalike_io::sink::{ByteWriter, OutputTarget};

use super::{axis_name, setting_name};

/// Size of a panel in pixels.
const PANEL_SIZE: (f64, f64) = (560.0, 360.0);

/// Plot within a panel: left, top, right and bottom edges in pixels.
const PLOT_EDGES: [f64; 4] = [52.0, 52.0, 544.0, 312.0];

/// Largest number of labels below a plot.
const MAX_LABELS: usize = 11;

/// A figure that is drawn.
struct ChartFigure {
    name: &'static str,
    /// Colour; the colours differ in brightness too.
    colour: &'static str,
    /// Dashes, so that meaning is never by colour alone.
    dashes: &'static str,
    of: fn(&MetricEstimates) -> MetricEstimate,
}

const CHART_FIGURES: [ChartFigure; 3] = [
    ChartFigure {
        name: "precision",
        colour: "#1f77b4",
        dashes: "none",
        of: |point| point.precision,
    },
    ChartFigure {
        name: "recall",
        colour: "#d66018",
        dashes: "8 4",
        of: |point| point.recall,
    },
    ChartFigure {
        name: "F1",
        colour: "#3e923e",
        dashes: "2 3",
        of: |point| point.f1,
    },
];

/// Colours and fonts; dark ones for readers who prefer a dark background.
const STYLE_SHEET: &str = "<style>
.page { fill: #fff; } .ink { stroke: #000; } .rule { stroke: #000; opacity: .12; }
text { fill: #000; font: 12px sans-serif; } text.title { font-size: 14px; font-weight: bold; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15171c; } .ink, .rule { stroke: #e8e8e8; } text { fill: #e8e8e8; }
}
</style>";

/// Writes the picture. The file gets its name once it is complete.
pub(super) fn write_chart(done: &EvaluateSummary, path: &Path) -> Result<()> {
    let svg = draw_chart(&done.settings);
    let mut writer = ByteWriter::create_output(&OutputTarget::Path(path.to_path_buf()))?;
    writer.write_bytes(svg.as_bytes())?;
    writer.finish_output()?;
    Ok(())
}

fn draw_chart(settings: &[SettingSummary]) -> String {
    let columns = if settings.len() > 1 { 2 } else { 1 };
    let rows = settings.len().div_ceil(columns);
    let (width, height) = (PANEL_SIZE.0 * columns as f64, PANEL_SIZE.1 * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n{STYLE_SHEET}\n\
         <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    for (at, setting) in settings.iter().enumerate() {
        let (x, y) = (
            PANEL_SIZE.0 * (at % columns) as f64,
            PANEL_SIZE.1 * (at / columns) as f64,
        );
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        draw_panel(&mut svg, setting);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_panel(svg: &mut String, setting: &SettingSummary) {
    let evaluation = &setting.evaluation;
    let axis = CutAxis::new(evaluation);
    let [left, _, right, bottom] = PLOT_EDGES;
    draw_text(svg, left, 20.0, "start", "title", &setting_name(setting));
    draw_rules(svg, evaluation, &axis);
    let name = axis_name(evaluation.sweep);
    draw_text(svg, right, bottom + 36.0, "end", "", name);
    for (number, figure) in CHART_FIGURES.iter().enumerate() {
        draw_figure(svg, evaluation, &axis, figure);
        let x = left + 110.0 * number as f64;
        draw_line(svg, [(x, 36.0), (x + 26.0, 36.0)], figure);
        draw_text(svg, x + 32.0, 40.0, "start", "", figure.name);
    }
    if let Some(best) = evaluation.best {
        let x = axis.place(evaluation.points[best].cut);
        let [_, top, _, bottom] = PLOT_EDGES;
        let _ = writeln!(
            svg,
            "<line class=\"ink\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke-dasharray=\"5 3\" \
             opacity=\".6\"/>"
        );
    }
}

/// The horizontal axis: thresholds or distances.
struct CutAxis {
    low: f64,
    high: f64,
}

impl CutAxis {
    fn new(evaluation: &Evaluation) -> Self {
        let cuts = evaluation.points.iter().map(|point| point.cut);
        let (low, high) = cuts.fold((f64::MAX, f64::MIN), |(low, high), cut| {
            (low.min(cut), high.max(cut))
        });
        if low < high {
            Self { low, high }
        } else if low == high {
            // A single point stands in the middle.
            Self {
                low: low - 0.5,
                high: high + 0.5,
            }
        } else {
            Self {
                low: 0.0,
                high: 1.0,
            }
        }
    }

    /// Returns the place of a cut in pixels.
    fn place(&self, cut: f64) -> f64 {
        let [left, _, right, _] = PLOT_EDGES;
        left + (cut - self.low) / (self.high - self.low) * (right - left)
    }
}

/// Returns the place of a figure from 0 to 1 in pixels.
fn place_value(value: f64) -> f64 {
    let [_, top, _, bottom] = PLOT_EDGES;
    bottom - value * (bottom - top)
}

/// Draws the rules with their labels.
fn draw_rules(svg: &mut String, evaluation: &Evaluation, axis: &CutAxis) {
    let [left, top, right, bottom] = PLOT_EDGES;
    let rule = |svg: &mut String, class: &str, [x1, y1, x2, y2]: [f64; 4]| {
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    };
    for tenth in (0..=10).step_by(2) {
        let value = f64::from(tenth) / 10.0;
        let y = place_value(value);
        rule(svg, "rule", [left, y, right, y]);
        draw_text(svg, left - 8.0, y + 4.0, "end", "", &format!("{value:.1}"));
    }
    let every = evaluation.points.len().div_ceil(MAX_LABELS).max(1);
    for point in evaluation.points.iter().step_by(every) {
        let x = axis.place(point.cut);
        rule(svg, "rule", [x, top, x, bottom]);
        let label = match evaluation.sweep {
            SweptParameter::Distance => format!("{:.0}", point.cut),
            SweptParameter::Threshold => format!("{:.2}", point.cut),
            SweptParameter::Nothing => String::new(),
        };
        draw_text(svg, x, bottom + 18.0, "middle", "", &label);
    }
    rule(svg, "ink", [left, bottom, right, bottom]);
}

/// Draws a figure: its intervals as an area, its curve and its points.
fn draw_figure(svg: &mut String, evaluation: &Evaluation, axis: &CutAxis, figure: &ChartFigure) {
    let colour = figure.colour;
    let band = interval_band(evaluation, axis, figure.of);
    if !band.is_empty() {
        let points = list_points(&band);
        let _ = writeln!(
            svg,
            "<polygon points=\"{points}\" fill=\"{colour}\" opacity=\".15\"/>"
        );
    }
    let curve = curve_points(evaluation, axis, figure.of);
    draw_line(svg, curve.iter().copied(), figure);
    for (x, y) in curve {
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        );
    }
}

fn draw_line(svg: &mut String, points: impl IntoIterator<Item = (f64, f64)>, figure: &ChartFigure) {
    let points = list_points(&points.into_iter().collect::<Vec<_>>());
    let (colour, dashes) = (figure.colour, figure.dashes);
    let _ = writeln!(
        svg,
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-dasharray=\"{dashes}\"/>"
    );
}

fn draw_text(svg: &mut String, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let _ = writeln!(
        svg,
        "<text{class} x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

/// Returns points as the attribute of a line has them.
fn list_points(points: &[(f64, f64)]) -> String {
    let points = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
    points.collect::<Vec<_>>().join(" ")
}

/// Returns the curve of a figure in pixels, without undefined values.
fn curve_points(
    evaluation: &Evaluation,
    axis: &CutAxis,
    of: fn(&MetricEstimates) -> MetricEstimate,
) -> Vec<(f64, f64)> {
    let points = evaluation.points.iter();
    points
        .filter_map(|point| {
            let value = of(point.decisive_metrics()).value?;
            Some((axis.place(point.cut), place_value(value)))
        })
        .collect()
}

/// Returns the outline of the confidence intervals in pixels.
fn interval_band(
    evaluation: &Evaluation,
    axis: &CutAxis,
    of: fn(&MetricEstimates) -> MetricEstimate,
) -> Vec<(f64, f64)> {
    let intervals: Vec<_> = (evaluation.points.iter())
        .filter_map(|point| {
            let interval = of(point.decisive_metrics()).interval?;
            Some((axis.place(point.cut), interval))
        })
        .collect();
    let below = intervals.iter().map(|(x, it)| (*x, place_value(it.low)));
    let above = intervals.iter().map(|(x, it)| (*x, place_value(it.high)));
    below.chain(above.rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        let mut svg = String::new();
        draw_text(&mut svg, 1.0, 2.0, "start", "", "<b>&amp;</b>");
        assert_eq!(
            svg,
            "<text x=\"1.0\" y=\"2.0\" text-anchor=\"start\">&lt;b&gt;&amp;amp;&lt;/b&gt;</text>\n"
        );
    }

    #[test]
    fn values_are_placed_within_the_plot() {
        let [left, top, right, bottom] = PLOT_EDGES;
        let axis = CutAxis {
            low: 0.5,
            high: 0.9,
        };
        assert_eq!([axis.place(0.5), axis.place(0.9)], [left, right]);
        assert_eq!([place_value(0.0), place_value(1.0)], [bottom, top]);
    }
}
