//! A comparison as a self-contained HTML page.

use lookalike::text::SpanTokenizer;
use lookalike_batch::run::report::{encode_runs, render_report};
use lookalike_comparison::comparison::ComparisonCase;
use lookalike_comparison::text_diff::diff_paired;
use serde::Serialize;
use serde_json::{Value, json};

use super::sketches::{list_sentences, sample_hashes, signatures};
use crate::commands::recipe::describe_feature;
use crate::commands::shared::outputs::page_language;

/// The data of the page.
#[derive(Serialize)]
struct ComparisonData {
    /// As `--json` prints it.
    comparison: Value,
    /// What a feature is, in words.
    feature: String,
    /// Features whose votes are shown.
    shown_features: usize,
    /// Rule by which sums become bits, in words.
    rule_of_sums: &'static str,
    /// Runs of the difference, as in reports.
    runs: Vec<usize>,
    /// Passages that both texts have: their starts and ends in A and in B, in UTF-16 units.
    passages: Vec<[usize; 4]>,
    /// `true` if passages show more than differences do.
    prefers_passages: bool,
    /// Equal slots of the MinHash signatures, and all slots.
    equal_slots: Option<(usize, usize)>,
    /// Smallest hashes of the union: hash, whether it is in A, whether it is in B, feature.
    smallest: Vec<(String, bool, bool, String)>,
    /// Longest sentences of A and of B: text, characters, hash, whether both texts have it.
    sentences: Vec<Vec<Value>>,
}

/// Returns the whole page.
///
/// # Errors
/// If a text has 4 GiB or more.
pub(super) fn render_page(case: &ComparisonCase<'_>) -> lookalike::Result<String> {
    let (a, b) = (&case.a.text, &case.b.text);
    let runs = diff_paired(a, b, &SpanTokenizer::new(case.recipe))?;
    let units = |text: &str, byte: usize| text[..byte].encode_utf16().count();
    let passages = case.shared.passages.iter().map(|passage| {
        let (in_a, in_b) = (&passage.a.bytes, &passage.b.bytes);
        let (starts, ends) = ((in_a.start, in_b.start), (in_a.end, in_b.end));
        [
            units(a, starts.0),
            units(a, ends.0),
            units(b, starts.1),
            units(b, ends.1),
        ]
    });
    let smallest = sample_hashes(case)
        .into_iter()
        .take(case.top)
        .map(|sample_hash| {
            let feature = sample_hash.feature.to_owned();
            (
                sample_hash.hash.to_string(),
                sample_hash.in_a,
                sample_hash.in_b,
                feature,
            )
        });
    let data = ComparisonData {
        comparison: case.to_json(),
        feature: describe_feature(case.recipe),
        shown_features: case.top,
        rule_of_sums: case.rule_of_sums(),
        runs: encode_runs(&runs, a, b, false),
        passages: passages.collect(),
        prefers_passages: case.shared.explain_more_than_differences(),
        equal_slots: signatures(case).map(|([slots, _], equal)| (equal, slots.len())),
        smallest: smallest.collect(),
        sentences: list_both_sentences(case),
    };
    Ok(render_report("compare", page_language(), data))
}

/// Returns the longest sentences of both texts; none if the method does not use them.
fn list_both_sentences(case: &ComparisonCase<'_>) -> Vec<Vec<Value>> {
    let (a, b) = (&case.compared.a, &case.compared.b);
    let sides = [list_sentences(a, b), list_sentences(b, a)];
    let listed = sides.into_iter().flatten().map(|chosen| {
        let rows = chosen.into_iter().map(|(sentence, shared)| {
            json!([
                sentence.text,
                sentence.characters,
                format!("{:016x}", sentence.hash),
                shared
            ])
        });
        rows.collect()
    });
    listed.collect()
}
