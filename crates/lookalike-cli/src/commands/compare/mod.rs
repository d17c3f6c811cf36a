//! `lookalike compare`: two texts through every step.

mod page;
mod words;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use lookalike::Recipe;
use lookalike::compare::{Comparison, Feature, Figure, Kind, Steps};
use lookalike::text::State;
use lookalike_batch::source::{Format, ReadOptions};
use serde_json::{Value, json};

use super::documents::{Found, lock, look_up, unless_known, visit_rows};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::diff::passages;
use crate::output::{Printer, visible};
use crate::settings;

pub(crate) fn run(args: &CompareArgs) -> Result<Outcome> {
    let (recipe, chosen, _) = settings::plan_of(&args.rule, &args.reading)?;
    let options = settings::read_options(args.input_format.format, &args.reading)?;
    if options.fields.features.is_some() {
        bail!("compare shows texts, and --features gives none: leave it out");
    }
    let [a, b] = [&args.a, &args.b].map(|text| Side::read(text, args, &options));
    let (a, b) = (a?, b?);
    let compared = Comparison::new(&recipe, chosen, &a.text, &b.text)?;
    let case = Case {
        recipe: &recipe,
        a,
        b,
        compared,
        top: args.top,
    };
    if let Some(path) = &args.html {
        std::fs::write(path, page::page(&case))
            .map_err(|cause| anyhow!("cannot write the page {}: {cause}", path.display()))?;
    }
    let printer = Printer::new(false);
    let text = if args.json {
        format!("{}\n", case.as_json())
    } else {
        words::in_words(&case, &printer)
    };
    printer.data(&text)?;
    Ok(Outcome::Done)
}

/// A text and where it is from.
struct Side {
    place: String,
    text: String,
}

impl Side {
    fn read(named: &str, args: &CompareArgs, options: &ReadOptions) -> Result<Self> {
        if args.literal {
            return Ok(Self {
                place: "as given".to_owned(),
                text: named.to_owned(),
            });
        }
        if named == "-" {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes)?;
            let (text, _, malformed) = options.encoding.decode(&bytes);
            if malformed && !args.reading.lossy {
                bail!(
                    "standard input is not valid {}: give its --encoding, or --lossy",
                    options.encoding.name()
                );
            }
            return Ok(Self {
                place: "standard input".to_owned(),
                text: text.into_owned(),
            });
        }
        let found = if Path::new(named).exists() {
            only_document(named, args, options)?
        } else {
            document_by_id(named, args, options)?
        };
        Ok(Self {
            place: found.place(),
            text: found.text,
        })
    }
}

/// The document of a file that has no other.
fn only_document(path: &str, args: &CompareArgs, options: &ReadOptions) -> Result<Found> {
    let format = options
        .format
        .or_else(|| unless_known(Path::new(path), Format::Text));
    let options = ReadOptions {
        format,
        document_per_file: options.document_per_file || format == Some(Format::Text),
        ..options.clone()
    };
    let inputs = lookalike_batch::source::Inputs::open(&[PathBuf::from(path)], &options)?;
    let found = std::sync::Mutex::new(Vec::new());
    let bad = std::sync::Mutex::new(None);
    visit_rows(&inputs, settings::threads(args.threads), &|row| match row {
        Ok(row) => {
            let mut found = lock(&found);
            found.push(Found::new(row, &inputs));
            found.len() < 2
        }
        Err(reason) => {
            lock(&bad).get_or_insert(reason);
            false
        }
    })?;
    let found = std::mem::take(&mut *lock(&found));
    if let Some(reason) = lock(&bad).take() {
        bail!("the text cannot be read: {reason}");
    }
    match <[Found; 1]>::try_from(found) {
        Ok([found]) => Ok(found),
        Err(found) if found.is_empty() => bail!("{path} has no document"),
        Err(_) => bail!("{path} has several documents: say which one with {path}#ID"),
    }
}

/// The document that FILE#ID names. Both parts may have a `#` in them: the shortest name of a file
/// that exists counts.
fn document_by_id(named: &str, args: &CompareArgs, options: &ReadOptions) -> Result<Found> {
    let place = named.match_indices('#').map(|(at, _)| at);
    let file = place
        .map(|at| (&named[..at], &named[at + 1..]))
        .find(|(file, _)| Path::new(file).exists());
    let Some((file, wanted)) = file else {
        bail!(
            "there is no file {}: give FILE, FILE#ID or, with --literal, the text itself",
            visible(named)
        );
    };
    let options = ReadOptions {
        format: options
            .format
            .or_else(|| unless_known(Path::new(file), Format::Text)),
        ..options.clone()
    };
    let is_wanted = |id: &str| id == wanted;
    let found = look_up(
        &[PathBuf::from(file)],
        &options,
        settings::threads(args.threads),
        &[&is_wanted],
    )?;
    match found.into_iter().flatten().next() {
        Some(found) => Ok(found),
        None => bail!(
            "{file} has no document with the id {}: check --id, or take row numbers with --id-row",
            visible(wanted)
        ),
    }
}

/// Everything that is shown.
struct Case<'a> {
    recipe: &'a Recipe,
    a: Side,
    b: Side,
    compared: Comparison,
    /// How many features are shown.
    top: usize,
}

impl Case<'_> {
    fn bits(&self) -> u32 {
        self.recipe.simhash.bits
    }

    /// Both sides with their letters and steps.
    fn sides(&self) -> [(&'static str, &Side, &Steps); 2] {
        [
            ("A", &self.a, &self.compared.a),
            ("B", &self.b, &self.compared.b),
        ]
    }

    fn fingerprints(&self) -> Option<(u128, u128)> {
        Some((self.compared.a.fingerprint?, self.compared.b.fingerprint?))
    }

    fn hex(&self, fingerprint: u128) -> String {
        format!(
            "{fingerprint:0width$x}",
            width = self.bits().div_ceil(4) as usize
        )
    }

    /// The bits of a fingerprint, the highest first.
    fn digits(&self, fingerprint: u128) -> String {
        format!("{fingerprint:0width$b}", width = self.bits() as usize)
    }

    /// Blocks of bits for a distance of 3: where each begins and ends, the highest first.
    fn blocks(&self) -> Vec<std::ops::Range<usize>> {
        let (bits, count) = (self.bits() as usize, 4);
        let edge = |at: usize| at * bits / count;
        (0..count).map(|at| edge(at)..edge(at + 1)).collect()
    }

    fn as_json(&self) -> Value {
        let (matched, verdict) = (self.compared.verdict.matched, &self.compared.verdict);
        let figures: serde_json::Map<_, _> = self
            .compared
            .figures
            .iter()
            .map(|figure| (key(figure.name), figure_as_json(figure)))
            .collect();
        json!({
            "recipe": self.recipe.name,
            "recipe_id": self.recipe.id().to_string(),
            "a": self.side_as_json(&self.a, &self.compared.a),
            "b": self.side_as_json(&self.b, &self.compared.b),
            "distance": self.fingerprints().map(|(a, b)| (a ^ b).count_ones()),
            "blocks": self.fingerprints().map(|both| self.blocks_as_json(both)),
            "figures": figures,
            "match": matched.is_some(),
            "method": matched.map(|(route, _)| route.name()),
            "similarity": verdict.similarity,
            "why": verdict.why,
            "differences": passages(&self.a.text, &self.b.text),
        })
    }

    fn side_as_json(&self, side: &Side, steps: &Steps) -> Value {
        let feature = |feature: &Feature| {
            json!({
                "feature": feature.text,
                "count": feature.count,
                "weight": feature.weight,
                "hash": self.hex(feature.hash),
                "votes": feature.votes(self.bits()),
            })
        };
        json!({
            "place": side.place,
            "text": side.text,
            "state": state(steps.state),
            "normalized": steps.normalized,
            "tokens": steps.tokens,
            "features": steps.features.iter().map(feature).collect::<Vec<_>>(),
            "sums": steps.sums,
            "bits": steps.fingerprint.map(|it| self.digits(it)),
            "fingerprint": steps.fingerprint.map(|it| self.hex(it)),
            "signature": steps.signature,
        })
    }

    fn blocks_as_json(&self, (a, b): (u128, u128)) -> Value {
        let (in_a, in_b) = (self.digits(a), self.digits(b));
        let block = |bits: std::ops::Range<usize>| {
            let (a, b) = (&in_a[bits.clone()], &in_b[bits]);
            json!({ "a": a, "b": b, "distance": differing(a, b) })
        };
        Value::Array(self.blocks().into_iter().map(block).collect())
    }
}

fn figure_as_json(figure: &Figure) -> Value {
    json!({ "value": figure.value, "kind": kind(figure.kind), "detail": figure.detail })
}

/// The name of a figure as a field: small letters, digits and underscores.
fn key(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .map(str::to_ascii_lowercase)
        .collect::<Vec<_>>()
        .join("_")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Similarity => "similarity",
        Kind::Distance => "distance",
        Kind::Estimate => "estimate",
        Kind::Biased => "biased estimate",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Rich => "rich",
        State::Poor => "poor",
        State::Blank => "blank",
        State::Empty => "empty",
    }
}

/// In how many places two rows of digits differ.
fn differing(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).filter(|(a, b)| a != b).count()
}

/// A weight or a sum without needless digits.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}
