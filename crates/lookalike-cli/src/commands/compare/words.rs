//! A comparison as text for a terminal.

use std::fmt::Write as _;

use lookalike::compare::{Feature, Kind, Steps};
use lookalike::text::State;
use unicode_width::UnicodeWidthStr;

use super::sketches::{SLOTS, sample, sentences, signatures};
use crate::commands::recipe::features;
use crate::comparison::{Case, Shape, differing, number};
use crate::diff::{marked, passages};
use crate::output::{Printer, Tone, plural, visible};

/// Tokens shown of a text.
const TOKENS: usize = 40;

/// Numbers per line.
const IN_A_LINE: usize = 16;

/// Number of bits up to which votes are written as numbers; beyond it only their signs are.
const BITS_AS_NUMBERS: u32 = 16;

pub(super) fn in_words(case: &Case<'_>, printer: &Printer) -> String {
    let mut sheet = Sheet {
        case,
        printer,
        text: String::new(),
    };
    sheet.head();
    sheet.texts();
    sheet.tokens();
    for (letter, _, steps) in case.sides() {
        sheet.features(letter, steps);
    }
    sheet.sums();
    sheet.bits();
    sheet.slots();
    sheet.smallest();
    sheet.sentences();
    sheet.figures();
    sheet.verdict();
    sheet.text
}

struct Sheet<'a> {
    case: &'a Case<'a>,
    printer: &'a Printer,
    text: String,
}

impl Sheet<'_> {
    fn heading(&mut self, heading: &str) {
        let heading = self.printer.in_output(Tone::Heading, heading);
        let _ = writeln!(self.text, "\n{heading}");
    }

    fn line(&mut self, label: &str, value: &str) {
        let _ = writeln!(self.text, "  {label:<3} {}", visible(value));
    }

    fn head(&mut self) {
        let recipe = self.case.recipe;
        let _ = writeln!(
            self.text,
            "recipe {} ({}): {}",
            recipe.name,
            recipe.id(),
            features(recipe)
        );
        for (letter, side, _) in self.case.sides() {
            self.line(letter, &side.place);
        }
    }

    fn texts(&mut self) {
        self.heading("Texts: [-only in A-] {+only in B+}");
        let Case { a, b, .. } = self.case;
        let text = marked(&passages(&a.text, &b.text), false, self.printer);
        for line in text.lines() {
            let _ = writeln!(self.text, "  {line}");
        }
    }

    fn tokens(&mut self) {
        self.heading("Normalised");
        for (letter, _, steps) in self.case.sides() {
            self.line(letter, &shortened(&steps.normalized));
        }
        self.heading("Tokens");
        for (letter, _, steps) in self.case.sides() {
            let shown = &steps.tokens[..steps.tokens.len().min(TOKENS)];
            let more = steps.tokens.len() - shown.len();
            let more = if more > 0 {
                format!(" … and {}", plural(more as u64, "other", "others"))
            } else {
                String::new()
            };
            self.line(letter, &format!("{}{more}", shown.join(" | ")));
        }
    }

    fn features(&mut self, letter: &str, steps: &Steps) {
        let all = steps.features.len();
        let shown = &steps.features[..all.min(self.case.top)];
        match steps.state {
            State::Rich => self.heading(&format!(
                "Heaviest features of {letter} ({} of {all}): weight, hash, votes from the highest bit",
                shown.len()
            )),
            State::Poor => self.heading(&format!("{letter} has too few tokens for a feature")),
            State::Blank => self.heading(&format!("{letter} has no token")),
            State::Empty => self.heading(&format!("{letter} is empty")),
        }
        let wide = shown
            .iter()
            .map(|feature| visible(&feature.text).width())
            .max()
            .unwrap_or(0);
        for feature in shown {
            let text = visible(&feature.text).into_owned();
            let padding = " ".repeat(wide.saturating_sub(text.width()));
            let _ = writeln!(
                self.text,
                "  {text}{padding}  {:>6}  {}  {}",
                number(feature.weight),
                self.case.shape().hex(feature.hash),
                self.votes(feature)
            );
        }
    }

    fn votes(&self, feature: &Feature) -> String {
        let bits = self.case.shape().bits;
        let votes = feature.votes(bits);
        if bits <= BITS_AS_NUMBERS {
            let votes: Vec<_> = votes
                .iter()
                .map(|vote| format!("{:>4}", number(*vote)))
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

    fn sums(&mut self) {
        if self.case.fingerprints().is_none() {
            return;
        }
        let rule = self.case.rule_of_sums();
        self.heading(&format!("Sums of the votes, from the highest bit; {rule}"));
        for (letter, _, steps) in self.case.sides() {
            for (at, line) in steps.sums.chunks(IN_A_LINE).enumerate() {
                let sums: Vec<_> = line
                    .iter()
                    .map(|sum| format!("{:>6}", number(*sum)))
                    .collect();
                let label = if at == 0 { letter } else { "" };
                let _ = writeln!(self.text, "  {label:<3}{}", sums.concat());
            }
            let is_tied = steps.sums.contains(&0.0);
            if let Some(feature) = steps.deciding_feature().filter(|_| is_tied) {
                let hash = self.case.shape().hex(feature.hash);
                let text = visible(&feature.text);
                let _ = writeln!(self.text, "     ties fall as in {hash}, {text}");
            }
        }
    }

    fn bits(&mut self) {
        if let Some(both) = self.case.fingerprints() {
            let (heading, rows) = fingerprints(self.case.shape(), both);
            self.heading(&heading);
            self.text.push_str(&rows);
        }
    }

    fn slots(&mut self) {
        let Some(([a, b], equal)) = signatures(self.case) else {
            return;
        };
        let (all, shown) = (a.len(), a.len().min(SLOTS));
        self.heading(&format!(
            "MinHash: the first {shown} of {all} slots; equal: {equal} of {all}"
        ));
        let row = |values: Vec<String>| -> String {
            let cells = values.iter().map(|value| format!(" {value:>10}"));
            cells.collect()
        };
        let numbers = |slots: &[u32]| slots[..shown].iter().map(u32::to_string).collect();
        let marks = a.iter().zip(b).take(shown).map(|(a, b)| match a == b {
            true => String::new(),
            false => "^".repeat(a.max(b).to_string().len()),
        });
        let marks = row(marks.collect());
        let _ = writeln!(self.text, "  A  {}", row(numbers(a)));
        let _ = writeln!(self.text, "  B  {}", row(numbers(b)));
        if !marks.trim().is_empty() {
            let _ = writeln!(self.text, "     {}", marks.trim_end());
        }
    }

    fn smallest(&mut self) {
        let sample = sample(self.case);
        if sample.is_empty() {
            return;
        }
        let (all, shown) = (sample.len(), sample.len().min(self.case.top));
        let shared = sample.iter().filter(|it| it.in_a && it.in_b).count();
        self.heading(&format!(
            "Bottom-k: smallest hashes of the union ({shown} of {all}); in both texts: {shared} of \
             {all}"
        ));
        for one in &sample[..shown] {
            let letter = |is_in, letter| if is_in { letter } else { ' ' };
            let _ = writeln!(
                self.text,
                "  {} {}  {:>20}  {}",
                letter(one.in_a, 'A'),
                letter(one.in_b, 'B'),
                one.hash,
                visible(one.feature)
            );
        }
    }

    fn sentences(&mut self) {
        let (a, b) = (&self.case.compared.a, &self.case.compared.b);
        for (letter, own, other) in [("A", a, b), ("B", b, a)] {
            let Some(chosen) = sentences(own, other) else {
                return;
            };
            self.heading(&format!(
                "Longest sentences of {letter}: characters, hash; = marks sentences that are in \
                 both"
            ));
            for (sentence, shared) in chosen {
                let _ = writeln!(
                    self.text,
                    "{} {:>4}  {:016x}  {}",
                    if shared { '=' } else { ' ' },
                    sentence.characters,
                    sentence.hash,
                    visible(&shortened(&sentence.text))
                );
            }
        }
    }

    fn figures(&mut self) {
        self.heading("Similarities");
        let figures = &self.case.compared.figures;
        let wide = figures.iter().map(|it| it.name.len()).max().unwrap_or(0);
        for figure in figures {
            let value = figure
                .value
                .map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
            let kind = match figure.kind {
                Kind::Similarity => "",
                Kind::Distance => "distance ",
                Kind::Estimate => "estimate ",
                Kind::Biased => "biased estimate ",
            };
            let _ = writeln!(
                self.text,
                "  {:<wide$}  {value:>8}  {kind}{}",
                figure.name, figure.detail
            );
        }
    }

    fn verdict(&mut self) {
        let verdict = &self.case.compared.verdict;
        let said = if verdict.matched.is_some() {
            "They match"
        } else {
            "They do not match"
        };
        self.heading(&format!("{said}: {}.", verdict.why));
    }
}

/// Returns two fingerprints block by block, and a heading.
pub(super) fn fingerprints(shape: Shape, (a, b): (u128, u128)) -> (String, String) {
    let blocks = shape.blocks();
    let heading = format!(
        "Fingerprints in {}: distance {}",
        plural(blocks.len() as u64, "block", "blocks"),
        (a ^ b).count_ones()
    );
    let (in_a, in_b) = (shape.digits(a), shape.digits(b));
    let parted = |digits: &str| {
        let parts: Vec<_> = blocks.iter().map(|block| &digits[block.clone()]).collect();
        parts.join(" ")
    };
    let marks: String = in_a
        .bytes()
        .zip(in_b.bytes())
        .map(|(a, b)| if a == b { ' ' } else { '^' })
        .collect();
    let mut rows = format!("  A   {}  {}\n", parted(&in_a), shape.hex(a));
    let _ = writeln!(rows, "  B   {}  {}", parted(&in_b), shape.hex(b));
    if a != b {
        let _ = writeln!(rows, "      {}", parted(&marks).trim_end());
    }
    let apart: Vec<_> = blocks
        .iter()
        .map(|block| {
            let width = block.len();
            format!(
                "{:<width$}",
                differing(&in_a[block.clone()], &in_b[block.clone()])
            )
        })
        .collect();
    let _ = writeln!(rows, "      {}", apart.join(" ").trim_end());
    (heading, rows)
}

/// Returns the beginning of a long text.
fn shortened(text: &str) -> String {
    const MOST: usize = 400;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text.to_owned(),
    }
}
