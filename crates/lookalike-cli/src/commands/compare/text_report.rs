//! A comparison as text for a terminal.

use std::fmt::Write as _;

use lookalike::Similarity;
use lookalike::compare::{AnalysisSteps, FigureKind};
use lookalike::passages::PassageKind;
use lookalike::text::TextState;
use lookalike_comparison::comparison::{
    ComparisonCase, FingerprintShape, count_differing, format_number,
};
use lookalike_comparison::text_diff::diff_passages;
use unicode_width::UnicodeWidthStr;

use super::sketches::{SLOTS, list_sentences, sample_hashes, signatures};
use super::{GIVEN_TEXT, STANDARD_INPUT};
use crate::commands::recipe::describe_feature;
use crate::commands::shared::summary::format_recipe;
use crate::commands::shared::weighted_hashes::{format_votes, push_sums};
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone, escape_control, pad_to_width};
use crate::text_diff::{mark_passages, show_both};

/// Tokens shown of a text.
const TOKENS: usize = 40;

pub(super) fn render_report(case: &ComparisonCase<'_>, printer: &OutputPrinter) -> String {
    let mut sheet = TextReport {
        case,
        printer,
        text: String::new(),
    };
    sheet.push_head();
    sheet.push_texts();
    sheet.push_tokens();
    for (letter, _, steps) in case.labelled_sides() {
        sheet.push_features(letter, steps);
    }
    sheet.push_sums();
    sheet.push_bits();
    sheet.push_java_blocks();
    sheet.push_slots();
    sheet.push_smallest_hashes();
    sheet.push_sentences();
    sheet.push_figures();
    sheet.push_verdict();
    sheet.text
}

struct TextReport<'a> {
    case: &'a ComparisonCase<'a>,
    printer: &'a OutputPrinter,
    text: String,
}

impl TextReport<'_> {
    fn push_heading(&mut self, heading: &str) {
        let heading = self.printer.paint_for_output(TextTone::Heading, heading);
        let _ = writeln!(self.text, "\n{heading}");
    }

    fn push_line(&mut self, label: &str, value: &str) {
        let _ = writeln!(self.text, "  {label:<3} {}", escape_control(value));
    }

    fn push_head(&mut self) {
        let recipe = self.case.recipe;
        let named = format_recipe(&recipe.name, recipe.recipe_id());
        let feature = describe_feature(recipe);
        let described = messages::compared_recipe(&named, &translate_phrase(&feature));
        let _ = writeln!(self.text, "{described}");
        for (letter, side, _) in self.case.labelled_sides() {
            self.push_line(letter, &describe_place(&side.place));
        }
    }

    /// Adds the passages that B has from A, with their differences.
    fn push_passages(&mut self) {
        self.push_heading(&messages::shared_passages());
        let ComparisonCase { a, b, shared, .. } = self.case;
        for (number, it) in (1..).zip(&shared.passages) {
            let words = NounCount(it.length as u64, CountedNoun::Word);
            let (in_b, in_a) = (it.b.line, it.a.line);
            let kind = translate_phrase(it.kind.kind_name());
            let line = messages::shared_passage(number, in_b, in_a, words, &kind, it.similarity);
            let _ = writeln!(self.text, "{line}");
            let both = [&a.text[it.a.bytes.clone()], &b.text[it.b.bytes.clone()]];
            let text = match it.kind {
                PassageKind::Reworded => show_both([("A: ", both[0]), ("B: ", both[1])]),
                _ => mark_passages(&diff_passages(both[0], both[1]), false, self.printer),
            };
            for line in text.lines() {
                let _ = writeln!(self.text, "     {line}");
            }
        }
        let [a, b] =
            [shared.share_of_a, shared.share_of_b].map(|share| format!("{:.0}", 100.0 * share));
        let _ = writeln!(self.text, "{}", messages::shares_of_both(a, b));
    }

    fn push_texts(&mut self) {
        if self.case.shared.explain_more_than_differences() {
            return self.push_passages();
        }
        self.push_heading(&messages::both_texts());
        let ComparisonCase { a, b, .. } = self.case;
        let text = mark_passages(&diff_passages(&a.text, &b.text), false, self.printer);
        for line in text.lines() {
            let _ = writeln!(self.text, "  {line}");
        }
    }

    fn push_tokens(&mut self) {
        self.push_heading(&messages::normalised());
        for (letter, _, steps) in self.case.labelled_sides() {
            self.push_line(letter, &shorten_text(&steps.normalized));
        }
        self.push_heading(&messages::tokens());
        for (letter, _, steps) in self.case.labelled_sides() {
            let shown = &steps.tokens[..steps.tokens.len().min(TOKENS)];
            let more = steps.tokens.len() - shown.len();
            let more = if more > 0 {
                messages::and_others(NounCount(more as u64, CountedNoun::Other))
            } else {
                String::new()
            };
            self.push_line(letter, &format!("{}{more}", shown.join(" | ")));
        }
    }

    fn push_features(&mut self, letter: &str, steps: &AnalysisSteps) {
        let all = steps.features.len();
        let shown = &steps.features[..all.min(self.case.top)];
        match steps.state {
            TextState::Fingerprintable => {
                let heading = messages::heaviest_features(letter, shown.len(), all);
                self.push_heading(&heading);
            }
            TextState::TooShort => self.push_heading(&messages::too_few_tokens(letter)),
            TextState::SymbolsOnly => self.push_heading(&messages::no_token(letter)),
            TextState::Empty => self.push_heading(&messages::empty_text(letter)),
        }
        let wide = shown
            .iter()
            .map(|feature| escape_control(&feature.text).width())
            .max()
            .unwrap_or(0);
        for feature in shown {
            let text = escape_control(&feature.text).into_owned();
            let padding = " ".repeat(wide.saturating_sub(text.width()));
            let _ = writeln!(
                self.text,
                "  {text}{padding}  {:>6}  {}  {}",
                format_number(feature.weight),
                self.case.fingerprint_shape().format_hex(feature.hash),
                format_votes(feature, self.case.fingerprint_shape().bits)
            );
        }
    }

    fn push_sums(&mut self) {
        if self.case.fingerprints().is_none() {
            return;
        }
        let rule = self.case.rule_of_sums();
        self.push_heading(&messages::sums_of_votes(&translate_phrase(rule)));
        for (letter, _, steps) in self.case.labelled_sides() {
            push_sums(&mut self.text, letter, &steps.sums);
            let is_tied = steps.sums.contains(&0.0);
            if let Some(feature) = steps.deciding_feature().filter(|_| is_tied) {
                let hash = self.case.fingerprint_shape().format_hex(feature.hash);
                let text = escape_control(&feature.text);
                let _ = writeln!(self.text, "{}", messages::ties_fall(&hash, &text));
            }
        }
    }

    fn push_bits(&mut self) {
        if let Some((a, b)) = self.case.fingerprints() {
            let (heading, rows) = fingerprints(self.case.fingerprint_shape(), a, b);
            self.push_heading(&heading);
            self.text.push_str(&rows);
        }
    }

    fn push_java_blocks(&mut self) {
        let Some([a, b]) = self.case.java_blocks() else {
            return;
        };
        let blocks = NounCount(a.values.len() as u64, CountedNoun::Block);
        self.push_heading(&messages::java_blocks(self.case.distance, blocks));
        let numbers = [&a, &b].map(|signature| signature.values.iter().map(u128::to_string));
        let [in_a, in_b] = numbers.map(Iterator::collect::<Vec<_>>);
        let wide = in_a.iter().chain(&in_b).map(String::len).max().unwrap_or(0);
        let row = |cells: &[String]| {
            let cells = cells.iter().map(|cell| format!(" {cell:>wide$}"));
            cells.collect::<String>()
        };
        let equal = in_a.iter().zip(&in_b).map(|(a, b)| a == b);
        let marks: Vec<_> = equal
            .map(|equal| if equal { "=" } else { "" }.to_owned())
            .collect();
        let _ = writeln!(self.text, "  A  {}", row(&in_a));
        let _ = writeln!(self.text, "  B  {}", row(&in_b));
        let marks = format!("     {}", row(&marks));
        if !marks.trim().is_empty() {
            let _ = writeln!(self.text, "{}", marks.trim_end());
        }
        for (letter, blocks) in [("A", &a), ("B", &b)] {
            let (all, reachable) = (blocks.values.len(), blocks.reachable);
            if reachable < all {
                let stops = messages::java_stops(reachable, all, letter);
                let _ = writeln!(self.text, "{stops}");
            }
        }
    }

    fn push_slots(&mut self) {
        let Some(([a, b], equal)) = signatures(self.case) else {
            return;
        };
        let (all, shown) = (a.len(), a.len().min(SLOTS));
        self.push_heading(&messages::minhash_slots(shown, all, equal));
        let row = |values: Vec<String>| -> String {
            let cells = values.iter().map(|value| format!(" {value:>10}"));
            cells.collect()
        };
        let numbers = |slots: &[u32]| slots[..shown].iter().map(u32::to_string).collect();
        let marks = a.iter().zip(b).take(shown).map(|(a, b)| {
            if a == b {
                String::new()
            } else {
                "^".repeat(a.max(b).to_string().len())
            }
        });
        let marks = row(marks.collect());
        let _ = writeln!(self.text, "  A  {}", row(numbers(a)));
        let _ = writeln!(self.text, "  B  {}", row(numbers(b)));
        if !marks.trim().is_empty() {
            let _ = writeln!(self.text, "     {}", marks.trim_end());
        }
    }

    fn push_smallest_hashes(&mut self) {
        let sample = sample_hashes(self.case);
        if sample.is_empty() {
            return;
        }
        let (all, shown) = (sample.len(), sample.len().min(self.case.top));
        let shared = sample
            .iter()
            .filter(|feature| feature.in_a && feature.in_b)
            .count();
        self.push_heading(&messages::smallest_hashes(shown, all, shared));
        for one in &sample[..shown] {
            let letter = |is_in, letter| if is_in { letter } else { ' ' };
            let _ = writeln!(
                self.text,
                "  {} {}  {:>20}  {}",
                letter(one.in_a, 'A'),
                letter(one.in_b, 'B'),
                one.hash,
                escape_control(one.feature)
            );
        }
    }

    fn push_sentences(&mut self) {
        let (a, b) = (&self.case.compared.a, &self.case.compared.b);
        for (letter, own, other) in [("A", a, b), ("B", b, a)] {
            let Some(chosen) = list_sentences(own, other) else {
                return;
            };
            self.push_heading(&messages::longest_sentences(letter));
            for (sentence, shared) in chosen {
                let _ = writeln!(
                    self.text,
                    "{} {:>4}  {:016x}  {}",
                    if shared { '=' } else { ' ' },
                    sentence.characters,
                    sentence.hash,
                    escape_control(&shorten_text(&sentence.text))
                );
            }
        }
    }

    fn push_figures(&mut self) {
        self.push_heading(&messages::similarities());
        let figures = &self.case.compared.figures;
        let names = figures.iter().map(|figure| translate_phrase(figure.name));
        let names: Vec<_> = names.collect();
        let wide = names.iter().map(|name| name.width()).max().unwrap_or(0);
        for (figure, name) in figures.iter().zip(names) {
            let value = figure
                .value
                .map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
            let kind = match figure.kind {
                FigureKind::Similarity => String::new(),
                FigureKind::Distance => messages::distance_kind(),
                FigureKind::Estimate => messages::estimate_kind(),
                FigureKind::Biased => messages::biased_kind(),
            };
            let _ = writeln!(
                self.text,
                "  {}  {value:>8}  {kind}{}",
                pad_to_width(&name, wide),
                translate_phrase(&figure.detail)
            );
        }
    }

    fn push_verdict(&mut self) {
        let verdict = &self.case.compared.verdict;
        let why = translate_phrase(&verdict.why);
        self.push_heading(&match verdict.matched {
            Some(_) => messages::they_match(&why),
            None => messages::they_do_not_match(&why),
        });
        let is_by_similarity = verdict
            .matched
            .is_some_and(|(_, similarity)| similarity < Similarity::ONE);
        if is_by_similarity && self.case.recipe.forms.is_none() {
            self.text.push_str(&messages::compared_without_forms());
            self.text.push('\n');
        }
    }
}

/// Describes the place of a text, which JSON names in English.
fn describe_place(place: &str) -> String {
    match place {
        GIVEN_TEXT => messages::given_text(),
        STANDARD_INPUT => messages::standard_input(),
        _ => match place.rsplit_once(", row ") {
            Some((source, row)) => messages::row_of(source, row),
            None => place.to_owned(),
        },
    }
}

/// Returns two fingerprints block by block, and a heading.
pub(super) fn fingerprints(shape: FingerprintShape, a: u128, b: u128) -> (String, String) {
    let blocks = shape.bit_blocks();
    let count = NounCount(blocks.len() as u64, CountedNoun::Block);
    let heading = messages::fingerprints_in(count, (a ^ b).count_ones());
    let (in_a, in_b) = (shape.bit_digits(a), shape.bit_digits(b));
    let parted = |digits: &str| {
        let parts: Vec<_> = blocks.iter().map(|block| &digits[block.clone()]).collect();
        parts.join(" ")
    };
    let marks: String = in_a
        .bytes()
        .zip(in_b.bytes())
        .map(|(a, b)| if a == b { ' ' } else { '^' })
        .collect();
    let mut rows = format!("  A   {}  {}\n", parted(&in_a), shape.format_hex(a));
    let _ = writeln!(rows, "  B   {}  {}", parted(&in_b), shape.format_hex(b));
    if a != b {
        let _ = writeln!(rows, "      {}", parted(&marks).trim_end());
    }
    let apart: Vec<_> = blocks
        .iter()
        .map(|block| {
            let width = block.len();
            format!(
                "{:<width$}",
                count_differing(&in_a[block.clone()], &in_b[block.clone()])
            )
        })
        .collect();
    let _ = writeln!(rows, "      {}", apart.join(" ").trim_end());
    (heading, rows)
}

/// Returns the beginning of a long text.
fn shorten_text(text: &str) -> String {
    const MOST: usize = 400;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text.to_owned(),
    }
}
