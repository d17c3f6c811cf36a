//! Texts that are not stored: compare them, make their fingerprints, list their tokens.

use std::sync::Arc;

use axum::http::{HeaderValue, Response, StatusCode, header};
use lookalike::plan::SENTENCES;
use lookalike::text::{Analyzer, Scratch};
use lookalike::{Recipe, compare::Comparison};
use lookalike_batch::NO_FINGERPRINT;
use lookalike_batch::run::{Fingerprint, Fingerprinter, Sketch, weight_in_digits};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::api::{Answered, Asked};
use super::held::{self, Held};
use super::problem::{Code, Problem};
use super::reply::{self, in_background};
use super::stream::busy;
use super::wire::{Fields, Object};
use crate::args::{Notation, SketchMethod};
use crate::comparison::{Case, Side};
use crate::settings::digits;

/// The most texts of a request.
const TEXTS: usize = 10_000;

/// The most pairs of a request.
const PAIRS: usize = 100;

/// The most bytes of all texts that a request compares: every similarity is computed, some in time that
/// grows with the product of the lengths, and what is told of a text is a hundred times as long as it.
const COMPARED: usize = 64 << 10;

/// The most bytes of such a request: its texts, however they are escaped, and a recipe.
const COMPARED_BODY: u64 = 1 << 20;

/// How many such requests are worked on at a time.
pub(super) const COMPARING: usize = 2;

/// How many features are shown of a text that is compared.
const TOP: usize = 20;

async fn answer(
    asked: Asked,
    work: impl FnOnce(Fields) -> Result<Value, Problem> + Send + 'static,
) -> Answered {
    let most = asked.service.config.limits.document;
    let (body, _room) = reply::body(asked, most).await?;
    in_background(move || {
        let value = work(Fields::read(&body)?)?;
        Ok(reply::json(StatusCode::OK, &value))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    a: String,
    b: String,
}

/// Pairs of texts, each as `lookalike compare --json` has it.
pub(super) async fn compare(asked: Asked) -> Answered {
    let service = Arc::clone(&asked.service);
    let limits = service.config.limits;
    let (body, _room) = reply::body(asked, limits.document.min(COMPARED_BODY)).await?;
    let turn = Arc::clone(&service.comparing).acquire_owned().await;
    // The turn lasts until the answer counts, even if the client goes away.
    let (text, _turn) = in_background(move || (compare_all(&body), turn)).await;
    let text = text?;
    let bytes = text.len().min(limits.queue) as u32;
    let room = Arc::clone(&service.held).acquire_many_owned(bytes);
    let room = timeout(limits.body_timeout, room).await;
    let room = room.map_err(|_| busy())?.ok();
    let mut response = Response::new(held::body(Held::new(text.into(), [room, None])));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The answer, of which one result is made at a time.
fn compare_all(body: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut fields = Fields::read(body)?;
    let pairs: Vec<Object<Pair>> = fields.need("pairs")?;
    let recipe = fields.recipe("default")?;
    let matching = fields.matching()?;
    fields.end()?;
    check_count("pairs", pairs.len(), PAIRS)?;
    let bytes: usize = pairs.iter().map(|it| it.0.a.len() + it.0.b.len()).sum();
    if bytes > COMPARED {
        let detail =
            format!("the texts have {bytes} bytes: those of a request have at most {COMPARED}");
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

/// A fingerprint or signature for every text.
pub(super) async fn fingerprint(asked: Asked) -> Answered {
    answer(asked, |mut fields| {
        let texts: Vec<String> = fields.need("texts")?;
        let recipe = fields.recipe("default")?;
        let sketch = sketch(&mut fields, &recipe)?;
        fields.end()?;
        check_count("texts", texts.len(), TEXTS)?;
        // A signature of nothing is null, as in the tables of the command.
        let digits = matches!(sketch, Sketch::SimHash(_) | Sketch::Sentences(_));
        let none = digits.then(|| Fingerprint::Digits(NO_FINGERPRINT.to_owned()));
        let maker = Fingerprinter::new(&recipe, sketch);
        let fingerprints: Vec<_> = texts
            .par_iter()
            .map_init(Scratch::default, |scratch, text| {
                maker.fingerprint(text, scratch).or_else(|| none.clone())
            })
            .collect();
        Ok(json!({
            "recipe": recipe.name,
            "recipe_id": recipe.id().to_string(),
            "fingerprints": fingerprints,
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

/// The tokens of every text, or with `weights` its terms.
pub(super) async fn segment(asked: Asked) -> Answered {
    answer(asked, |mut fields| {
        let texts: Vec<String> = fields.need("texts")?;
        let recipe = fields.recipe("jieba")?;
        let weights = fields.take("weights")?.unwrap_or(false);
        fields.end()?;
        check_count("texts", texts.len(), TEXTS)?;
        let analyzer = Analyzer::new(&recipe);
        let results: Vec<Value> = texts
            .par_iter()
            .map_init(Scratch::default, |scratch, text| match weights {
                true => json!({ "terms": terms(&analyzer, text, scratch) }),
                false => json!({ "tokens": tokens(&analyzer, text, scratch) }),
            })
            .collect();
        Ok(json!({
            "recipe": recipe.name,
            "recipe_id": recipe.id().to_string(),
            "results": results,
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

fn terms(analyzer: &Analyzer, text: &str, scratch: &mut Scratch) -> Vec<Value> {
    let terms = analyzer.list(text, scratch).into_iter();
    terms
        .map(|term| {
            json!({
                "term": term.text,
                "count": term.count,
                "weight": weight_in_digits(term.weight),
                "part": term.part,
            })
        })
        .collect()
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), Problem> {
    if count <= most {
        return Ok(());
    }
    let detail = format!("there are {count} {what}: a request may have {most}");
    Err(Problem::new(Code::TooLarge, detail))
}
