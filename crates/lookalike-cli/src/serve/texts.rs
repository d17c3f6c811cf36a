//! Texts that are not stored: compare them, make their fingerprints, list their tokens.

use axum::http::StatusCode;
use lookalike::plan::SENTENCES;
use lookalike::text::{Analyzer, Scratch};
use lookalike::{Recipe, compare::Comparison};
use lookalike_batch::run::{Fingerprinter, Sketch, weight_in_digits};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Answered, Asked};
use super::problem::{Code, Problem};
use super::reply::{self, in_background};
use super::wire::Fields;
use crate::args::{Notation, SketchMethod};
use crate::comparison::{Case, Side};
use crate::settings::digits;

/// The most texts of a request.
const TEXTS: usize = 10_000;

/// The most pairs of a request.
const PAIRS: usize = 100;

/// The most bytes of a text that is compared: every similarity is computed, some in time that grows
/// with the product of the lengths.
const COMPARED: usize = 64 << 10;

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
    answer(asked, |mut fields| {
        let pairs: Vec<Pair> = fields.need("pairs")?;
        let recipe = fields.recipe()?;
        let matching = fields.matching()?;
        fields.end()?;
        check_count("pairs", pairs.len(), PAIRS)?;
        for (at, pair) in pairs.iter().enumerate() {
            let longest = pair.a.len().max(pair.b.len());
            if longest > COMPARED {
                let detail = format!("a text of pair {at} has {longest} bytes: at most {COMPARED}");
                return Err(Problem::new(Code::TooLarge, detail));
            }
        }
        let results: Result<Vec<Value>, Problem> = pairs
            .into_par_iter()
            .map(|pair| compared(&recipe, matching, pair))
            .collect();
        Ok(json!({ "results": results? }))
    })
    .await
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
    };
    Ok(case.as_json())
}

/// A fingerprint or signature for every text.
pub(super) async fn fingerprint(asked: Asked) -> Answered {
    answer(asked, |mut fields| {
        let texts: Vec<String> = fields.need("texts")?;
        let recipe = fields.recipe()?;
        let sketch = sketch(&mut fields, &recipe)?;
        fields.end()?;
        check_count("texts", texts.len(), TEXTS)?;
        let maker = Fingerprinter::new(&recipe, sketch);
        let fingerprints: Vec<_> = texts
            .par_iter()
            .map_init(Scratch::default, |scratch, text| {
                maker.fingerprint(text, scratch)
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
        let recipe = fields.recipe()?;
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
