//! Calls on texts that are not stored: compare, fingerprint, segment.

use std::sync::Arc;

use lookalike::plan::SENTENCES;
use lookalike::text::{Analyzer, Scratch};
use lookalike::{Recipe, compare::Comparison};
use lookalike_batch::NO_FINGERPRINT;
use lookalike_batch::run::{Fingerprint, Fingerprinter, Sketch, weight_in_digits};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api::{Answered, Asked};
use super::problem::{Code, Problem};
use super::reply;
use super::wire::{Fields, Object};
use crate::args::{Notation, SketchMethod};
use crate::comparison::{Case, Side};
use crate::settings::digits;

/// Largest number of texts in a request.
const TEXTS: usize = 10_000;

/// Largest number of pairs in a request.
const PAIRS: usize = 100;

/// Largest total size, in bytes, of the texts of a comparison. Every similarity is computed, some in time in
/// proportion to the product of both lengths, and the answer is about a hundred times as long as the texts.
const COMPARED: usize = 64 << 10;

/// Largest body, in bytes, of a request whose answer is much longer than itself. It has room for its texts in
/// any escaping, and for a recipe.
const SHORT_BODY: u64 = 1 << 20;

/// Number of features shown for each compared text.
const TOP: usize = 20;

/// Reads a body of at most `most` bytes and answers it with the result of `work`.
async fn answer(
    asked: Asked,
    most: u64,
    work: impl FnOnce(Fields) -> Result<Vec<u8>, Problem> + Send + 'static,
) -> Answered {
    let service = Arc::clone(&asked.service);
    let most = most.min(service.config.limits.document);
    let client = asked.client;
    let (body, room) = reply::body(asked, most).await?;
    reply::long(service, client, move || {
        let text = work(Fields::read(&body)?);
        drop(room);
        text
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    a: String,
    b: String,
}

/// Compares pairs of texts, each as `lookalike compare --json` does, one after another.
pub(super) async fn compare(asked: Asked) -> Answered {
    answer(asked, SHORT_BODY, compare_all).await
}

fn compare_all(mut fields: Fields) -> Result<Vec<u8>, Problem> {
    let pairs: Vec<Object<Pair>> = fields.need("pairs")?;
    let recipe = fields.recipe("default")?;
    let matching = fields.matching()?;
    fields.end()?;
    check_count("pairs", pairs.len(), PAIRS)?;
    let bytes: usize = pairs.iter().map(|it| it.0.a.len() + it.0.b.len()).sum();
    if bytes > COMPARED {
        let detail =
            format!("the texts have {bytes} bytes, more than the limit of {COMPARED} per request");
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let mut text = b"{\"results\":".to_vec();
    for (at, pair) in pairs.into_iter().enumerate() {
        text.push(if at == 0 { b'[' } else { b',' });
        let result = compared(&recipe, matching, pair.0)?;
        serde_json::to_writer(&mut text, &result).expect("strings and numbers serialise");
    }
    let end: &[u8] = if text.ends_with(b":") { b"[]}" } else { b"]}" };
    text.extend_from_slice(end);
    Ok(text)
}

fn compared(
    recipe: &Recipe,
    matching: lookalike::plan::Settings,
    pair: Pair,
) -> Result<Value, Problem> {
    let compared = Comparison::new(recipe, matching, &pair.a, &pair.b)
        .map_err(|error| Problem::new(Code::BadSettings, error.to_string()))?;
    let side = |place: &str, text| Side {
        place: place.to_owned(),
        text,
    };
    let case = Case {
        recipe,
        a: side("a", pair.a),
        b: side("b", pair.b),
        compared,
        top: TOP,
        distance: matching.distance,
    };
    Ok(case.as_json())
}

/// Returns a fingerprint or signature for every text.
pub(super) async fn fingerprint(asked: Asked) -> Answered {
    answer(asked, u64::MAX, |mut fields| {
        let texts: Vec<String> = fields.need("texts")?;
        let recipe = fields.recipe("default")?;
        let sketch = sketch(&mut fields, &recipe)?;
        fields.end()?;
        check_count("texts", texts.len(), TEXTS)?;
        // A text without features has null as its signature, as in the tables that the command writes.
        let digits = matches!(sketch, Sketch::SimHash(_) | Sketch::Sentences(_));
        let none = digits.then(|| Fingerprint::Digits(NO_FINGERPRINT.to_owned()));
        let maker = Fingerprinter::new(&recipe, sketch);
        let fingerprints: Vec<_> = texts
            .par_iter()
            .map_init(Scratch::default, |scratch, text| {
                maker.fingerprint(text, scratch).or_else(|| none.clone())
            })
            .collect();
        Ok(reply::text(&Made {
            recipe: &recipe.name,
            recipe_id: recipe.id().to_string(),
            of_texts: OfTexts::Fingerprints(fingerprints),
        }))
    })
    .await
}

fn sketch(fields: &mut Fields, recipe: &Recipe) -> Result<Sketch, Problem> {
    let method: Option<SketchMethod> = fields.choose("method")?;
    let format: Option<Notation> = fields.choose("format")?;
    let sentences: Option<std::num::NonZeroUsize> = fields.take("sentences")?;
    let method = method.unwrap_or_else(|| SketchMethod::usual(recipe));
    let useless = [
        (
            "format",
            format.is_some() && method != SketchMethod::Simhash,
        ),
        (
            "sentences",
            sentences.is_some() && method != SketchMethod::Sentences,
        ),
    ];
    if let Some((name, _)) = useless.into_iter().find(|(_, is)| *is) {
        let detail = format!("the field `{name}` has no effect with this method: leave it out");
        return Err(Problem::new(Code::BadSettings, detail));
    }
    Ok(match method {
        SketchMethod::Simhash => Sketch::SimHash(digits(format)),
        SketchMethod::Minhash => Sketch::MinHash,
        SketchMethod::Bottomk => Sketch::BottomK,
        SketchMethod::Sentences => Sketch::Sentences(sentences.map_or(SENTENCES, |it| it.get())),
    })
}

/// The answer to a request about texts, with one entry for each.
#[derive(Serialize)]
struct Made<'a> {
    recipe: &'a str,
    recipe_id: String,
    #[serde(flatten)]
    of_texts: OfTexts,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum OfTexts {
    Fingerprints(Vec<Option<Fingerprint>>),
    Results(Vec<Segments>),
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Segments {
    Tokens(Vec<String>),
    Terms(Vec<Term>),
}

#[derive(Serialize)]
struct Term {
    term: String,
    count: u64,
    weight: f64,
    part: Option<String>,
}

/// Returns the tokens of every text, or its terms if `weights` is true.
pub(super) async fn segment(asked: Asked) -> Answered {
    answer(asked, SHORT_BODY, |mut fields| {
        let texts: Vec<String> = fields.need("texts")?;
        let recipe = fields.recipe("jieba")?;
        let weights = fields.take("weights")?.unwrap_or(false);
        fields.end()?;
        check_count("texts", texts.len(), TEXTS)?;
        let analyzer = Analyzer::new(&recipe);
        let results: Vec<_> = texts
            .par_iter()
            .map_init(Scratch::default, |scratch, text| match weights {
                true => Segments::Terms(terms(&analyzer, text, scratch)),
                false => Segments::Tokens(tokens(&analyzer, text, scratch)),
            })
            .collect();
        Ok(reply::text(&Made {
            recipe: &recipe.name,
            recipe_id: recipe.id().to_string(),
            of_texts: OfTexts::Results(results),
        }))
    })
    .await
}

fn tokens(analyzer: &Analyzer, text: &str, scratch: &mut Scratch) -> Vec<String> {
    let mut tokens = Vec::new();
    analyzer.terms(text, scratch, false, &mut |term| {
        tokens.push(term.text.to_owned());
    });
    tokens
}

fn terms(analyzer: &Analyzer, text: &str, scratch: &mut Scratch) -> Vec<Term> {
    let terms = analyzer.list(text, scratch).into_iter();
    terms
        .map(|term| Term {
            term: term.text,
            count: term.count,
            weight: weight_in_digits(term.weight),
            part: term.part,
        })
        .collect()
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), Problem> {
    if count <= most {
        return Ok(());
    }
    let detail = format!("the request has {count} {what}, more than the limit of {most}");
    Err(Problem::new(Code::TooLarge, detail))
}
