//! The sample of `--sample-by-similarity` for people.

use std::fmt::Write as _;

use lookalike_batch::run::{BandDocument, SampledPair, SimilarityBand};
use lookalike_comparison::text_diff::diff_passages;

use crate::commands::shared::summary::format_band;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, escape_control, format_count};
use crate::text_diff::mark_briefly;

/// Returns the bands, the most similar first, because a reader goes down to where the pairs are no longer alike.
pub(super) fn render_sample(
    bands: &[SimilarityBand],
    threshold: f64,
    printer: &OutputPrinter,
) -> String {
    let mut text = messages::sample_legend()
        + "
";
    for band in bands.iter().rev() {
        let heading = describe_band(band);
        let _ = writeln!(
            text,
            "\n{}",
            printer.paint_for_output(TextTone::Heading, &heading)
        );
        for pair in &band.sampled {
            push_pair(&mut text, pair, printer);
        }
    }
    let _ = writeln!(text, "\n{}", messages::lower_threshold(threshold));
    text
}

/// Returns the heading of a band: its similarities, and how many of its pairs are shown.
fn describe_band(band: &SimilarityBand) -> String {
    let name = format_band(band.from, band.below);
    let shown = band.sampled.len() as u64;
    let pairs = NounCount(band.pairs, CountedNoun::Pair);
    match band.pairs {
        0 => messages::no_pairs(&name),
        all if all == shown => messages::all_pairs(&name, pairs),
        _ => messages::some_pairs(&name, &format_count(shown), pairs),
    }
}

fn push_pair(text: &mut String, pair: &SampledPair, printer: &OutputPrinter) {
    let SampledPair { similarity, a, b } = pair;
    let (first, second) = (describe_document(a), describe_document(b));
    let _ = writeln!(text, "\n  {similarity:.4}  {first}\n          {second}");
    let marked = mark_briefly(&diff_passages(&a.text, &b.text), printer);
    for line in marked.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(text, "    {line}");
    }
}

fn describe_document(document: &BandDocument) -> String {
    let BandDocument {
        id, source, row, ..
    } = document;
    let described = messages::document_at(id, source, *row);
    escape_control(&described).replace(['\n', '\t'], " ")
}
