//! Summaries of runs for people, line by line.

use std::fmt::{Display, Write as _};
use std::path::Path;

use lookalike::plan::SimilarityMeasure;
use lookalike_batch::run::{
    FormUse, RunSummary, SimilarityHistogram, SpilledData, SpilledSummary, bytes_per_second,
};

use super::outputs::is_standard;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, MessageLanguage, NounCount, messages};
use crate::output::{
    OutputPrinter, TextTone, escape_control, format_bar, format_bytes, format_count,
    format_duration, pad_to_width,
};

/// Longest bar of a plot, in characters.
const LONGEST_BAR: usize = 32;

/// Options that name the texts of documents.
pub(crate) const TEXT_OPTIONS: &str = "--text FIELD, or --features FIELD,";

/// Summary of a run for people.
#[derive(Debug, Default)]
pub(crate) struct SummaryText(String);

impl SummaryText {
    /// Begins with the documents that were read, their bytes and the seconds of the run.
    pub(crate) fn from_speed(documents: u64, bytes: u64, seconds: f64) -> Self {
        let documents = NounCount(documents, CountedNoun::Document);
        let (size, time) = (format_bytes(bytes), format_duration(seconds));
        let mut text = messages::read_in(documents, &size, &time);
        if let Some(speed) = bytes_per_second(bytes, seconds) {
            text.push_str(&messages::at_speed(format_args!("{:.1}", speed / 1e6)));
        }
        Self(text + "\n")
    }

    /// Adds a label and a value, aligned with other lines.
    pub(crate) fn add_line(&mut self, label: &str, value: impl Display) {
        let _ = writeln!(self.0, "  {} {value}", pad_to_width(label, 16));
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
        let number = format_count(rows);
        let left_out = match good {
            0 => messages::check_option(&number, option),
            _ => messages::left_out(&number),
        };
        if rows > 0 {
            self.add_line(&messages::bad_rows(), left_out);
        }
    }

    /// Adds the part that forms took in a run, if documents were compared by them.
    pub(crate) fn add_forms(&mut self, forms: Option<FormUse>) {
        let Some(forms) = forms else {
            return;
        };
        let documents = NounCount(forms.documents, CountedNoun::Document);
        let of_documents = messages::forms_of_run(&format_count(forms.forms), documents);
        self.add_line(&messages::forms(), of_documents);
        if let Some(documents) = forms.kept_apart {
            let documents = NounCount(documents, CountedNoun::Document);
            self.add_line(
                &messages::kept_apart(),
                messages::documents_kept_apart(documents),
            );
        }
    }

    /// Adds how much of a run went to temporary files, if it was out of core.
    pub(crate) fn add_spilled(&mut self, spilled: Option<SpilledSummary>) {
        if let Some(spilled) = spilled {
            let written = messages::spilled_to_disk(
                &format_bytes(spilled.bytes),
                NounCount(spilled.grouped, CountedNoun::Document),
                NounCount(spilled.groups, CountedNoun::Group),
            );
            self.add_line(&messages::out_of_core(), written);
        }
    }

    /// Adds how much of a run went to temporary files of sorted runs, if there are any.
    pub(crate) fn add_spilled_data(&mut self, spilled: Option<SpilledData>) {
        if let Some(spilled) = spilled {
            let written = messages::written_to_disk(&format_bytes(spilled.bytes));
            self.add_line(&messages::out_of_core(), written);
        }
    }

    /// Adds the file that received the table, if it is not standard output.
    pub(crate) fn add_output(&mut self, output: Option<&Path>) {
        if let Some(output) = output.filter(|output| !is_standard(output)) {
            self.add_line(&messages::written_to(), output.display());
        }
    }

    /// Adds the method, measure, threshold and recipe of a run.
    pub(crate) fn add_matching(&mut self, run: &RunSummary) {
        let check = match run.measure {
            "jaccard" => String::new(),
            "none" => messages::unverified(),
            measure => messages::verified_by(&describe_measure(measure)),
        };
        let recipe = format_recipe(&run.recipe, &run.recipe_id);
        let rule = messages::match_rule(run.method, &check, run.threshold, &recipe);
        self.add_line(&messages::matched_by(), rule);
        if let Some(from) = run.candidate_threshold {
            let least = messages::least_candidate(round_to_four_digits(from));
            self.add_line(&messages::candidates(), least);
        }
    }

    /// Adds the bins from the threshold on, or from the first non-empty one if that is lower.
    pub(crate) fn add_histogram(
        &mut self,
        histogram: &SimilarityHistogram,
        threshold: f64,
        heading: &str,
        printer: &OutputPrinter,
    ) {
        let counts = histogram.bin_counts();
        if counts.iter().all(|&count| count == 0) {
            return;
        }
        let first = histogram.first_shown_bin(threshold);
        let most = counts.iter().copied().max().unwrap_or(1);
        self.add_heading(printer, TextTone::Heading, heading);
        for (bin, &counted) in counts.iter().enumerate().skip(first) {
            let (from, below) = SimilarityHistogram::bin_edges(bin);
            let label = format_band(from, below);
            let plot = format_bar(counted as f64 / most as f64, LONGEST_BAR);
            let label = pad_to_width(&label, 14);
            let row = format!("  {label} {:>9} {plot}", format_count(counted));
            self.add_text(row.trim_end());
        }
        if threshold * SimilarityHistogram::INTERVAL_COUNT as f64 + 1e-9 >= 1.0 {
            self.add_text(format_args!("  {}", messages::not_searched(threshold)));
        }
    }

    /// Adds the number of texts without a fingerprint, which an index finds only if they are equal.
    pub(crate) fn add_unfingerprinted(&mut self, documents: u64) {
        if documents > 0 {
            let short = messages::match_only_equal(&format_count(documents));
            self.add_line(&messages::texts_too_short(), short);
        }
    }

    /// Adds the number of rows without content. `describe` says what became of them.
    pub(crate) fn add_empty_rows(&mut self, rows: u64, describe: fn(&str) -> String) {
        if rows > 0 {
            self.add_line(&messages::empty(), describe(&format_count(rows)));
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Formats a band of similarity: its least one, and the one above it if it has more than that.
pub(crate) fn format_band(from: f64, below: Option<f64>) -> String {
    match below {
        Some(below) => messages::band(format_args!("{from:.2}"), format_args!("{below:.2}")),
        None => from.to_string(),
    }
}

/// Formats the name of a recipe and its identity.
pub(crate) fn format_recipe(name: &str, id: impl Display) -> String {
    messages::recipe_with_id(&escape_control(name), id)
}

/// Returns a measure as a sentence names it: by its option in English, by its noun in Chinese, with a space before Latin
/// letters.
pub(crate) fn describe_measure(name: &str) -> String {
    let by_name = SimilarityMeasure::ALL
        .into_iter()
        .find(|measure| measure.name() == name);
    match (MessageLanguage::current(), by_name) {
        (MessageLanguage::Chinese, Some(measure)) => {
            let noun = translate_phrase(measure.descriptor().noun);
            let gap = if noun.starts_with(|c: char| c.is_ascii()) {
                " "
            } else {
                ""
            };
            format!("{gap}{noun}")
        }
        _ => name.to_owned(),
    }
}

/// Formats the recipe of an index, which may be unknown.
pub(crate) fn format_optional_recipe(name: Option<&str>, id: Option<&str>) -> String {
    match (name, id) {
        (Some(name), Some(id)) => format_recipe(name, id),
        _ => messages::unknown(),
    }
}

/// Longest id that is shown, in characters.
const SHOWN_ID: usize = 60;

/// Returns an id as one line of bounded length.
pub(crate) fn shorten_id(id: &str) -> String {
    let visible = escape_control(id).replace(['\n', '\t'], " ");
    match visible.char_indices().nth(SHOWN_ID) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible,
    }
}

/// Rounds to four decimals.
pub(crate) fn round_to_four_digits(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
