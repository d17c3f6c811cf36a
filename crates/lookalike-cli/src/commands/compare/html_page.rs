//! A comparison as a self-contained HTML page.

use std::fmt::Write as _;

use lookalike::compare::{AnalysisSteps, FigureKind};
use lookalike_batch::comparison::{ComparedSide, ComparisonCase, count_differing, format_number};
use lookalike_batch::shared_passages::{PassageSpot, SharedPassage};
use lookalike_batch::text_diff::{self, diff_passages};

use super::sketches::{SLOTS, list_sentences, sample_hashes, signatures};
use crate::commands::recipe::describe_feature;

const STYLE: &str = "\
:root { color-scheme: light dark; --line: #8884; --a: #c0392b; --b: #1e8449; --one: #2e6bd6; }\n\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }\n\
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }\n\
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2rem .6rem; \
border-bottom: 1px solid var(--line); vertical-align: top; }\n\
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }\n\
code, .bits { font: 13px/1.6 ui-monospace, monospace; overflow-wrap: anywhere; }\n\
.verdict { padding: .6rem 1rem; border-left: .3rem solid var(--a); background: #8881; }\n\
.verdict.yes { border-color: var(--b); }\n\
del { color: var(--a); } ins { color: var(--b); }\n\
.text { white-space: pre-wrap; }\n\
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; } .sides > div { min-width: 0; \
overflow-wrap: anywhere; }\n\
@media (max-width: 45rem) { .sides { grid-template-columns: 1fr; } }\n\
mark { color: inherit; background: #f1c40f44; border-bottom: 2px solid #b7950b; }\n\
mark.verbatim { background: #e74c3c33; border-bottom-color: var(--a); }\n\
mark.reordered, mark.reworded { border-bottom-style: dashed; }\n\
mark:target { outline: 2px solid var(--one); }\n\
mark a { font-weight: bold; }\n\
.token { border: 1px solid var(--line); border-radius: .3rem; padding: 0 .3rem; margin: .1rem; \
display: inline-block; }\n\
.block { display: inline-block; margin-right: 1rem; }\n\
.differs { outline: 2px solid var(--a); font-weight: bold; }\n\
.bar { display: inline-block; height: .7rem; background: var(--one); }\n";

/// Tokens shown of a text.
const TOKENS: usize = 2000;

/// Returns the whole page.
pub(super) fn render_page(case: &ComparisonCase<'_>) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Two texts compared</title>\n\
         <style>\n{STYLE}</style>\n<h1>Two texts compared</h1>\n"
    );
    append_verdict(case, &mut page);
    append_texts(case, &mut page);
    for (letter, side, steps) in case.labelled_sides() {
        append_steps(case, letter, side, steps, &mut page);
    }
    append_bits(case, &mut page);
    append_slots(case, &mut page);
    append_smallest_hashes(case, &mut page);
    append_longest_sentences(case, &mut page);
    append_figures(case, &mut page);
    page.push_str("</html>\n");
    page
}

fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

fn append_verdict(case: &ComparisonCase<'_>, page: &mut String) {
    let verdict = &case.compared.verdict;
    let (class, said) = match verdict.matched {
        Some(_) => ("verdict yes", "They match"),
        None => ("verdict", "They do not match"),
    };
    let recipe = case.recipe;
    let _ = writeln!(
        page,
        "<p class=\"{class}\"><strong>{said}</strong>: {}.</p>\n\
         <p>Recipe <code>{}</code> ({}): {}.</p>",
        escape_html(&verdict.why),
        escape_html(&recipe.name),
        recipe.recipe_id(),
        describe_feature(recipe)
    );
}

/// One of the two texts of a passage.
#[derive(Clone, Copy)]
enum PassageSide {
    A,
    B,
}

impl PassageSide {
    /// Returns the place of a passage in this text.
    fn spot_of(self, passage: &SharedPassage) -> &PassageSpot {
        match self {
            Self::A => &passage.a,
            Self::B => &passage.b,
        }
    }
}

/// Appends both texts side by side, with the passages that they share numbered and linked.
fn append_passages(case: &ComparisonCase<'_>, page: &mut String) {
    let shared = &case.shared;
    let _ = writeln!(
        page,
        "<h2>Shared passages</h2>\n<p>{:.0} % of A and {:.0} % of B lie in passages that both have. A number leads to \
         the same passage in the other text.</p>\n<div class=\"sides\">",
        100.0 * shared.share_of_a,
        100.0 * shared.share_of_b
    );
    let sides = [
        ("A", "B", &case.a, PassageSide::A),
        ("B", "A", &case.b, PassageSide::B),
    ];
    for (letter, other, text, side) in sides {
        let _ = write!(
            page,
            "<div><h3>{letter}: {}</h3>\n<p class=\"text\">",
            escape_html(&text.place)
        );
        append_marked(&text.text, [letter, other], &shared.passages, side, page);
        page.push_str("</p></div>\n");
    }
    page.push_str("</div>\n");
}

/// Appends a text with its passages marked. Where two passages overlap, the second begins behind the first.
fn append_marked(
    text: &str,
    [letter, other]: [&str; 2],
    passages: &[SharedPassage],
    side: PassageSide,
    page: &mut String,
) {
    let mut numbered: Vec<_> = (1..).zip(passages).collect();
    numbered.sort_by_key(|(_, it)| side.spot_of(it).bytes.start);
    let mut end = 0;
    for (number, passage) in numbered {
        let bytes = &side.spot_of(passage).bytes;
        let start = bytes.start.max(end);
        let stop = bytes.end.max(start);
        let _ = write!(
            page,
            "{}<mark id=\"{letter}{number}\" class=\"{kind}\" title=\"{kind}, similarity {}\">\
             <a href=\"#{other}{number}\">{number}</a> {}</mark>",
            escape_html(&text[end..start]),
            passage.similarity,
            escape_html(&text[start..stop]),
            kind = passage.kind.kind_name(),
        );
        end = stop;
    }
    page.push_str(&escape_html(&text[end..]));
}

fn append_texts(case: &ComparisonCase<'_>, page: &mut String) {
    if case.shared.explain_more_than_differences() {
        return append_passages(case, page);
    }
    let _ = writeln!(
        page,
        "<h2>Texts</h2>\n<p><del>only in A ({})</del> · <ins>only in B ({})</ins></p>",
        escape_html(&case.a.place),
        escape_html(&case.b.place)
    );
    page.push_str("<p class=\"text\">");
    for passage in diff_passages(&case.a.text, &case.b.text) {
        let text = escape_html(&passage.words.concat());
        let _ = match passage.side {
            text_diff::PassageSide::Both => write!(page, "{text}"),
            text_diff::PassageSide::Kept => write!(page, "<del>{text}</del>"),
            text_diff::PassageSide::Removed => write!(page, "<ins>{text}</ins>"),
        };
    }
    page.push_str("</p>\n");
}

fn append_steps(
    case: &ComparisonCase<'_>,
    letter: &str,
    side: &ComparedSide,
    steps: &AnalysisSteps,
    page: &mut String,
) {
    let _ = writeln!(
        page,
        "<h2>{letter}: {}</h2>\n<p>{} bytes, {} tokens, {} features.</p>",
        escape_html(&side.place),
        side.text.len(),
        steps.tokens.len(),
        steps.features.len()
    );
    let _ = write!(
        page,
        "<p class=\"text\">{}</p>\n<p>",
        escape_html(&steps.normalized)
    );
    for token in steps.tokens.iter().take(TOKENS) {
        let _ = write!(page, "<span class=\"token\">{}</span>", escape_html(token));
    }
    if steps.tokens.len() > TOKENS {
        let _ = write!(page, "… and {} others", steps.tokens.len() - TOKENS);
    }
    page.push_str(
        "</p>\n<table><tr><th>feature<th>weight<th><th>hash<th>votes from the highest bit",
    );
    let heaviest = steps.features.first().map_or(1.0, |it| it.weight);
    for feature in steps.features.iter().take(case.top) {
        let share = (feature.weight / heaviest).clamp(0.0, 1.0);
        let votes: String = feature
            .signed_votes(case.fingerprint_shape().bits)
            .into_iter()
            .map(|vote| if vote > 0.0 { '+' } else { '−' })
            .collect();
        let _ = writeln!(
            page,
            "<tr><td>{}<td class=\"n\">{}<td><span class=\"bar\" style=\"width:{:.1}rem\"></span>\
             <td><code>{}</code><td class=\"bits\">{votes}",
            escape_html(&feature.text),
            format_number(feature.weight),
            6.0 * share,
            case.fingerprint_shape().format_hex(feature.hash)
        );
    }
    page.push_str("</table>\n");
    if steps.fingerprint.is_some() {
        let sums: Vec<_> = steps.sums.iter().map(|sum| format_number(*sum)).collect();
        let _ = writeln!(
            page,
            "<p>Sums of all votes, from the highest bit; {}: <span class=\"bits\">{}</span></p>",
            case.rule_of_sums(),
            sums.join(" ")
        );
        let is_tied = steps.sums.contains(&0.0);
        if let Some(feature) = steps.deciding_feature().filter(|_| is_tied) {
            let _ = writeln!(
                page,
                "<p>Ties fall as in <code>{}</code>, {}.</p>",
                case.fingerprint_shape().format_hex(feature.hash),
                escape_html(&feature.text)
            );
        }
    }
}

fn append_bits(case: &ComparisonCase<'_>, page: &mut String) {
    let Some((a, b)) = case.fingerprints() else {
        page.push_str("<p>One of the texts has no fingerprint.</p>\n");
        return;
    };
    let (in_a, in_b) = (
        case.fingerprint_shape().bit_digits(a),
        case.fingerprint_shape().bit_digits(b),
    );
    let _ = writeln!(
        page,
        "<h2>Fingerprints: distance {}</h2>",
        (a ^ b).count_ones()
    );
    for (letter, own, other, print) in [("A", &in_a, &in_b, a), ("B", &in_b, &in_a, b)] {
        let _ = write!(page, "<p class=\"bits\">{letter} ");
        for block in case.fingerprint_shape().bit_blocks() {
            page.push_str("<span class=\"block\">");
            for (own, other) in own[block.clone()].chars().zip(other[block].chars()) {
                let _ = if own == other {
                    write!(page, "{own}")
                } else {
                    write!(page, "<span class=\"differs\">{own}</span>")
                };
            }
            page.push_str("</span>");
        }
        let _ = writeln!(page, "{}</p>", case.fingerprint_shape().format_hex(print));
    }
    let apart: Vec<_> = case
        .fingerprint_shape()
        .bit_blocks()
        .into_iter()
        .map(|block| count_differing(&in_a[block.clone()], &in_b[block]).to_string())
        .collect();
    let _ = writeln!(page, "<p>Differing bits by block: {}</p>", apart.join(", "));
}

fn append_slots(case: &ComparisonCase<'_>, page: &mut String) {
    let Some(([a, b], equal)) = signatures(case) else {
        return;
    };
    let _ = writeln!(
        page,
        "<h2>MinHash: equal slots: {equal} of {}</h2>\n<p>The first of them:</p>",
        a.len()
    );
    page.push_str("<table>");
    for (letter, own, other) in [("A", a, b), ("B", b, a)] {
        let _ = write!(page, "<tr><th>{letter}");
        for (own, other) in own.iter().zip(other).take(SLOTS) {
            let class = if own == other {
                ""
            } else {
                " class=\"differs\""
            };
            let _ = write!(page, "<td class=\"n\"><span{class}>{own}</span>");
        }
        page.push('\n');
    }
    page.push_str("</table>\n");
}

fn append_smallest_hashes(case: &ComparisonCase<'_>, page: &mut String) {
    let sample = sample_hashes(case);
    let shared = sample.iter().filter(|it| it.in_a && it.in_b).count();
    let _ = writeln!(
        page,
        "<h2>Bottom-k: {shared} of the {} smallest hashes of the union are in \
         both</h2>\n<table><tr><th>in A<th>in B<th>hash<th>feature",
        sample.len()
    );
    for one in sample.iter().take(case.top) {
        let mark = |is_in| if is_in { "✓" } else { "" };
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{}<td class=\"n\">{}<td>{}",
            mark(one.in_a),
            mark(one.in_b),
            one.hash,
            escape_html(one.feature)
        );
    }
    page.push_str("</table>\n");
}

fn append_longest_sentences(case: &ComparisonCase<'_>, page: &mut String) {
    let (a, b) = (&case.compared.a, &case.compared.b);
    for (letter, own, other) in [("A", a, b), ("B", b, a)] {
        let Some(chosen) = list_sentences(own, other) else {
            return;
        };
        let _ = writeln!(
            page,
            "<h2>Longest sentences of {letter}</h2>\n\
             <table><tr><th>in both<th>characters<th>hash<th>sentence"
        );
        for (sentence, shared) in chosen {
            let _ = writeln!(
                page,
                "<tr><td>{}<td class=\"n\">{}<td><code>{:016x}</code><td>{}",
                if shared { "✓" } else { "" },
                sentence.characters,
                sentence.hash,
                escape_html(&sentence.text)
            );
        }
        page.push_str("</table>\n");
    }
}

fn append_figures(case: &ComparisonCase<'_>, page: &mut String) {
    page.push_str("<h2>Similarities</h2>\n<table><tr><th>name<th>value<th><th>kind<th>how");
    for figure in &case.compared.figures {
        let value = figure
            .value
            .map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
        let share = match figure.kind {
            FigureKind::Distance => 0.0,
            _ => figure.value.unwrap_or(0.0).clamp(0.0, 1.0),
        };
        let _ = writeln!(
            page,
            "<tr><td>{}<td class=\"n\">{value}\
             <td><span class=\"bar\" style=\"width:{:.1}rem\"></span><td>{}<td>{}",
            figure.name,
            8.0 * share,
            figure.kind.kind_name(),
            escape_html(&figure.detail)
        );
    }
    page.push_str("</table>\n");
}
