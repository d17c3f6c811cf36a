//! Summaries of runs for people, line by line.

use std::fmt::{Display, Write as _};
use std::path::Path;

use lookalike_batch::run::{SimilarityHistogram, SpilledSummary};

use super::outputs::is_standard;
use crate::output::{
    OutputPrinter, TextTone, escape_control, format_bar, format_bytes, format_count,
    format_duration, format_plural,
};

/// Longest bar of a plot, in characters.
const BAR: usize = 32;

/// Options that name the texts of documents.
pub(crate) const TEXT_OPTIONS: &str = "--text FIELD, or --features FIELD,";

/// Summary of a run for people.
#[derive(Debug, Default)]
pub(crate) struct SummaryText(String);

impl SummaryText {
    /// Begins with the documents that were read, their bytes and the seconds of the run.
    pub(crate) fn from_speed(documents: u64, bytes: u64, seconds: f64) -> Self {
        let mut text = format!(
            "{} ({}) in {}",
            format_plural(documents, "document", "documents"),
            format_bytes(bytes),
            format_duration(seconds)
        );
        if seconds > 0.05 {
            let _ = write!(text, ": {:.1} MB/s", bytes as f64 / seconds / 1e6);
        }
        Self(text + "\n")
    }

    /// Adds a label and a value, aligned with other lines.
    pub(crate) fn add_line(&mut self, label: &str, value: impl Display) {
        let _ = writeln!(self.0, "  {label:<16} {value}");
    }

    /// Adds a line as it is.
    pub(crate) fn add_text(&mut self, line: impl Display) {
        let _ = writeln!(self.0, "{line}");
    }

    pub(crate) fn add_heading(&mut self, printer: &OutputPrinter, tone: TextTone, heading: &str) {
        self.add_text(printer.in_message(tone, heading));
    }

    /// Adds the number of bad rows. If no row was good, the option may be the reason, so it is named.
    pub(crate) fn add_rejected(&mut self, rows: u64, good: u64, option: &str) {
        let remedy = match good {
            0 => format!(", and no row is usable: check {option}"),
            _ => String::new(),
        };
        if rows > 0 {
            let rows = format_count(rows);
            self.add_line("bad rows", format_args!("{rows} left out{remedy}"));
        }
    }

    /// Adds how much of a run went to temporary files, if it was out of core.
    pub(crate) fn add_spilled(&mut self, spilled: Option<SpilledSummary>) {
        if let Some(spilled) = spilled {
            self.add_line(
                "out of core",
                format_args!(
                    "{} written to temporary files; {} with possible matches decided in {}",
                    format_bytes(spilled.bytes),
                    format_plural(spilled.grouped, "document", "documents"),
                    format_plural(spilled.groups, "group", "groups")
                ),
            );
        }
    }

    /// Adds the file that received the table, if it is not standard output.
    pub(crate) fn add_output(&mut self, output: Option<&Path>) {
        if let Some(output) = output.filter(|output| !is_standard(output)) {
            self.add_line("written to", output.display());
        }
    }

    /// Adds the method, measure, threshold and recipe of a run.
    pub(crate) fn add_matching(&mut self, matched: MatchDescription<'_>) {
        let by = match matched.measure {
            "jaccard" => String::new(),
            "none" => ", unverified".to_owned(),
            measure => format!(", verified by {measure}"),
        };
        self.add_line(
            "matched by",
            format_args!(
                "{}{by}, threshold {}, recipe {}",
                matched.method,
                matched.threshold,
                format_recipe(matched.recipe, matched.recipe_id)
            ),
        );
        if let Some(from) = matched.candidate_threshold {
            let from = round_to_four_digits(from);
            let only = "or more; no others were compared";
            self.add_line(
                "candidates",
                format_args!("pairs with a Jaccard index of {from} {only}"),
            );
        }
    }

    /// Adds the bins from the threshold on, or from the first non-empty one if that is lower.
    pub(crate) fn add_histogram(
        &mut self,
        (histogram, threshold): (&SimilarityHistogram, f64),
        heading: &str,
        printer: &OutputPrinter,
    ) {
        let counts = histogram.bin_counts();
        if counts.iter().all(|&count| count == 0) {
            return;
        }
        let first = histogram.first_bin(threshold);
        let most = counts.iter().copied().max().unwrap_or(1);
        self.add_heading(printer, TextTone::Heading, heading);
        for (bin, &counted) in counts.iter().enumerate().skip(first) {
            let label = format_band(SimilarityHistogram::bin_edges(bin));
            let plot = format_bar(counted as f64 / most as f64, BAR);
            let row = format!("  {label:<14} {:>9} {plot}", format_count(counted));
            self.add_text(row.trim_end());
        }
        if threshold * SimilarityHistogram::STEPS as f64 + 1e-9 >= 1.0 {
            self.add_text(format_args!(
                "  pairs below {threshold} are not searched for"
            ));
        }
    }

    /// Adds the number of texts without a fingerprint, which an index finds only if they are equal.
    pub(crate) fn add_unfingerprinted(&mut self, documents: u64) {
        if documents > 0 {
            let documents = format_count(documents);
            self.add_line(
                "texts too short",
                format_args!(
                    "{documents} too short for a fingerprint: they match only equal texts"
                ),
            );
        }
    }

    /// Adds the number of rows without content, and what became of them.
    pub(crate) fn add_empty_rows(&mut self, rows: u64, what: &str) {
        if rows > 0 {
            let rows = format_count(rows);
            self.add_line(
                "empty",
                format_args!("{rows} without text or fingerprint: {what}"),
            );
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Formats a band of similarity: its least one, and the one above it if it has more than that.
pub(crate) fn format_band((from, below): (f64, Option<f64>)) -> String {
    match below {
        Some(below) => format!("{from:.2} to {below:.2}"),
        None => from.to_string(),
    }
}

/// How a run found and checked its matches.
pub(crate) struct MatchDescription<'a> {
    pub(crate) method: &'a str,
    pub(crate) measure: &'a str,
    pub(crate) threshold: f64,
    /// Least Jaccard index of candidates, if another measure decides.
    pub(crate) candidate_threshold: Option<f64>,
    pub(crate) recipe: &'a str,
    pub(crate) recipe_id: &'a str,
}

/// Formats the name of a recipe and its identity.
pub(crate) fn format_recipe(name: &str, id: impl Display) -> String {
    format!("{} ({id})", escape_control(name))
}

/// Formats the recipe of an index, which may be unknown.
pub(crate) fn format_optional_recipe(name: Option<&str>, id: Option<&str>) -> String {
    match (name, id) {
        (Some(name), Some(id)) => format_recipe(name, id),
        _ => "unknown".to_owned(),
    }
}

/// Rounds to four decimals.
pub(crate) fn round_to_four_digits(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
