//! Fingerprints and signatures of documents on the command line, with every step.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use lookalike_comparison::comparison::FingerprintShape;
use lookalike_comparison::worked_examples::{ShingleSets, WeightedHashes};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::CommandOutcome;
use crate::commands::shared::weighted_hashes::render_votes;
use crate::language::messages;
use crate::output::{OutputPrinter, TextTone, escape_control};

/// Prints the votes, the sums and the fingerprint of every document.
pub(super) fn show_weighted_hashes(given: &[String], as_json: bool) -> Result<CommandOutcome> {
    let mut documents = Vec::new();
    for (number, text) in (1..).zip(given) {
        let parsed = WeightedHashes::parse_document(text)
            .map_err(|reason| anyhow!("--hashes, document {number}: {reason}"))?;
        documents.push((number.to_string(), parsed));
    }
    let printer = OutputPrinter::new(false);
    let text = if as_json {
        let documents: Vec<Value> = documents.iter().map(|(_, it)| it.to_json()).collect();
        format!("{}\n", json!({ "documents": documents }))
    } else {
        let labelled: Vec<_> = documents.iter().map(|(name, it)| (&**name, it)).collect();
        let mut text = render_votes(&labelled, &printer);
        push_fingerprints(&mut text, &labelled, &printer);
        text
    };
    printer.write_data(&text)?;
    Ok(CommandOutcome::Done)
}

fn push_fingerprints(
    text: &mut String,
    documents: &[(&str, &WeightedHashes)],
    printer: &OutputPrinter,
) {
    let heading = messages::fingerprints_heading();
    let heading = printer.paint_for_output(TextTone::Heading, &heading);
    let _ = writeln!(text, "\n{heading}");
    for (name, document) in documents {
        let shape = FingerprintShape {
            bits: document.bits,
            distance: 0,
        };
        let (digits, hex) = (
            shape.bit_digits(document.fingerprint),
            shape.format_hex(document.fingerprint),
        );
        let _ = writeln!(text, "  {name:<3} {digits}  {hex}");
    }
}

/// Prints the table of shingles and documents under every permutation, and the similarities of all pairs.
pub(super) fn show_permutations(
    documents: &[String],
    permutations: &[String],
    as_json: bool,
) -> Result<CommandOutcome> {
    let sets =
        ShingleSets::parse_sets(documents, permutations).map_err(|reason| anyhow!(reason))?;
    let printer = OutputPrinter::new(false);
    let text = if as_json {
        format!("{}\n", sets.to_json())
    } else {
        render_sets(&sets, &printer)
    };
    printer.write_data(&text)?;
    Ok(CommandOutcome::Done)
}

fn render_sets(sets: &ShingleSets, printer: &OutputPrinter) -> String {
    let mut text = String::new();
    let columns = StepColumns::new(sets);
    for (number, order) in (1..).zip(sets.permutations()) {
        let heading = messages::permutation_table(number);
        let heading = printer.paint_for_output(TextTone::Heading, &heading);
        let _ = writeln!(text, "{heading}");
        columns.push_row(&mut text, "", sets.document_names());
        for shingle in order {
            let row = sets.table_row(shingle);
            let cells = row.iter().map(|&has| if has { "1" } else { "0" });
            columns.push_row(&mut text, shingle, cells);
        }
        let minima = sets.find_minima(order);
        columns.push_row(&mut text, &messages::minimum(), minima.into_iter());
        text.push('\n');
    }
    push_pairs(&mut text, sets, printer);
    text
}

/// Widths of the columns of a table.
struct StepColumns {
    first: usize,
    other: usize,
}

impl StepColumns {
    /// Returns widths in which every name and every shingle has room.
    fn new(sets: &ShingleSets) -> Self {
        let width = |text: &str| escape_control(text).width();
        let shingles = sets.permutations().iter().flatten();
        let shingle = shingles.map(|shingle| width(shingle)).max().unwrap_or(0);
        let name = sets.document_names().map(width).max().unwrap_or(0);
        Self {
            first: shingle.max(messages::minimum().width()),
            other: shingle.max(name),
        }
    }

    fn push_row<'a>(&self, text: &mut String, label: &str, cells: impl Iterator<Item = &'a str>) {
        let mut line = format!("  {}", pad_right(label, self.first));
        for cell in cells {
            let _ = write!(line, "  {}", pad_right(cell, self.other));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Returns a text, safe for a terminal, that fills at least `wide` columns.
fn pad_right(text: &str, wide: usize) -> String {
    let text = escape_control(text);
    let padding = " ".repeat(wide.saturating_sub(text.width()));
    format!("{text}{padding}")
}

fn push_pairs(text: &mut String, sets: &ShingleSets, printer: &OutputPrinter) {
    let pairs = sets.compare_columns();
    if pairs.is_empty() {
        return;
    }
    let heading = messages::equal_minima_of_pairs();
    let heading = printer.paint_for_output(TextTone::Heading, &heading);
    let _ = writeln!(text, "{heading}");
    let names: Vec<_> = sets.document_names().collect();
    let wide = names.iter().map(|name| escape_control(name).width()).max();
    let wide = wide.unwrap_or(0);
    let all = sets.permutations().len();
    for pair in pairs {
        let (a, b) = pair.documents;
        let estimate = pair.equal_minima as f64 / all as f64;
        let _ = writeln!(
            text,
            "  {} {}  {}  {estimate:.4}  {:.4}",
            pad_right(names[a], wide),
            pad_right(names[b], wide),
            messages::some_of_all(pair.equal_minima, all),
            pair.jaccard
        );
    }
}
