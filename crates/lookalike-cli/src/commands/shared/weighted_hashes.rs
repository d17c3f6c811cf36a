//! The steps from given hashes and weights to fingerprints, for a terminal.

use std::fmt::Write as _;

use lookalike::compare::FeatureVote;
use lookalike_comparison::comparison::{FingerprintShape, format_number};
use lookalike_comparison::worked_examples::WeightedHashes;
use unicode_width::UnicodeWidthStr;

use crate::language::engine_phrases::translate_phrase;
use crate::language::messages;
use crate::output::{OutputPrinter, TextTone, escape_control};

/// Largest number of bits whose votes are written as numbers; of more bits, only their signs are.
const BITS_AS_NUMBERS: u32 = 16;

/// Numbers per line.
const IN_A_LINE: usize = 16;

/// Returns the features with their votes, and the sums, of documents with a letter each.
pub(crate) fn render_votes(
    documents: &[(&str, &WeightedHashes)],
    printer: &OutputPrinter,
) -> String {
    let mut text = String::new();
    for (letter, document) in documents {
        let heading = messages::features_with_votes(letter);
        push_heading(&mut text, &heading, printer);
        push_features(&mut text, document);
        text.push('\n');
    }
    let heading = messages::sums_of_votes(&translate_phrase("above 0 gives 1"));
    push_heading(&mut text, &heading, printer);
    for (letter, document) in documents {
        push_sums(&mut text, letter, &document.sums);
    }
    text
}

fn push_heading(text: &mut String, heading: &str, printer: &OutputPrinter) {
    let heading = printer.paint_for_output(TextTone::Heading, heading);
    let _ = writeln!(text, "{heading}");
}

fn push_features(text: &mut String, document: &WeightedHashes) {
    let names: Vec<_> = document
        .features
        .iter()
        .map(|feature| escape_control(&feature.text))
        .collect();
    let wide = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let shape = FingerprintShape {
        bits: document.bits,
        distance: 0,
    };
    for (name, feature) in names.iter().zip(&document.features) {
        let padding = " ".repeat(wide - name.width());
        let _ = writeln!(
            text,
            "  {name}{padding}  {:>6}  {}  {}",
            format_number(feature.weight),
            shape.bit_digits(feature.hash),
            format_votes(feature, document.bits)
        );
    }
}

/// Formats the signed votes of a feature, the highest bit first.
pub(crate) fn format_votes(feature: &FeatureVote, bits: u32) -> String {
    let votes = feature.signed_votes(bits);
    if bits <= BITS_AS_NUMBERS {
        let votes: Vec<_> = votes
            .iter()
            .map(|vote| format!(" {:>3}", format_number(*vote)))
            .collect();
        return votes.concat();
    }
    votes
        .iter()
        .map(|vote| match vote.total_cmp(&0.0) {
            std::cmp::Ordering::Greater => '+',
            std::cmp::Ordering::Less if *vote < 0.0 => '-',
            _ => '.',
        })
        .collect()
}

/// Appends the sums of the votes of a document, the highest bit first.
pub(crate) fn push_sums(text: &mut String, letter: &str, sums: &[f64]) {
    for (at, line) in sums.chunks(IN_A_LINE).enumerate() {
        let sums: Vec<_> = line
            .iter()
            .map(|sum| format!(" {:>5}", format_number(*sum)))
            .collect();
        let label = if at == 0 { letter } else { "" };
        let _ = writeln!(text, "  {label:<3}{}", sums.concat());
    }
}
