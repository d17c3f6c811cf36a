//! Calls on texts that are not stored: compare, passages, fingerprint, segment.

use std::sync::Arc;

use lookalike::passages::PassageSettings;
use lookalike::plan::{MatchMethod, MatchSettings, SENTENCES};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Recipe, compare::Comparison};
use lookalike_batch::comparison::{ComparedSide, ComparisonCase};
use lookalike_batch::run::{
    PassageRunSettings, PassageTableRow, PassagesSummary, SketchKind, SketchValue, TextDocument,
    TextFingerprinter, find_passages_of_texts, weight_in_digits,
};
use lookalike_batch::shared_passages::SharedPassages;
use lookalike_batch::{FingerprintNotation, NO_FINGERPRINT};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::responses;
use crate::api::router::{ApiRequest, ApiResult};
use crate::collections::passage_search::FoundSources;
use crate::json::settings::NamedRecipes;
use crate::json::{JsonFields, JsonObject, bad_settings};

/// Largest number of texts in a request.
const MAX_TEXTS: usize = 10_000;

/// Largest number of pairs in a request.
const MAX_PAIRS: usize = 100;

/// Largest total size, in bytes, of the texts of a comparison. Every similarity is computed, some in time in
/// proportion to the product of both lengths, and the answer is about a hundred times as long as the texts.
const MAX_COMPARED_BYTES: usize = 64 << 10;

/// Largest body, in bytes, of a request whose answer is much longer than itself. It has room for its texts in
/// any escaping, and for a recipe.
const MAX_SHORT_BODY_BYTES: u64 = 1 << 20;

/// Number of features shown for each compared text.
const SHOWN_FEATURES: usize = 20;

/// Reads a body of at most `most` bytes and answers it with the result of `work`.
async fn answer_texts(
    api_request: ApiRequest,
    most: u64,
    work: impl FnOnce(JsonFields, NamedRecipes) -> Result<Vec<u8>, ApiProblem> + Send + 'static,
) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let most = most.min(service.config.limits.document);
    let client = api_request.client;
    let (body, room) = responses::read_json_body(api_request, most).await?;
    responses::long_answer(Arc::clone(&service), client, move || {
        let uploaded = |name: &str| service.recipes.load_recipe(name);
        let text = work(JsonFields::read_fields(&body)?, &uploaded);
        drop(room);
        text
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextPairJson {
    a: String,
    b: String,
}

/// Compares pairs of texts, each as `lookalike compare --json` does, one after another.
pub(crate) async fn compare_texts(api_request: ApiRequest) -> ApiResult {
    answer_texts(api_request, MAX_SHORT_BODY_BYTES, compare_all).await
}

fn compare_all(mut fields: JsonFields, uploaded: NamedRecipes) -> Result<Vec<u8>, ApiProblem> {
    let pairs: Vec<JsonObject<TextPairJson>> = fields.need_field("pairs")?;
    let recipe = fields.take_recipe("default", uploaded)?;
    let matching = fields.take_matching()?;
    fields.refuse_rest()?;
    check_count("pairs", pairs.len(), MAX_PAIRS)?;
    let bytes: usize = pairs.iter().map(|it| it.0.a.len() + it.0.b.len()).sum();
    if bytes > MAX_COMPARED_BYTES {
        let detail = format!(
            "the texts have {bytes} bytes, more than the limit of {MAX_COMPARED_BYTES} per request"
        );
        return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
    }
    let mut text = b"{\"results\":".to_vec();
    for (at, pair) in pairs.into_iter().enumerate() {
        text.push(if at == 0 { b'[' } else { b',' });
        let result = compare_pair(&recipe, matching, pair.0)?;
        serde_json::to_writer(&mut text, &result).expect("strings and numbers serialise");
    }
    let end: &[u8] = if text.ends_with(b":") { b"[]}" } else { b"]}" };
    text.extend_from_slice(end);
    Ok(text)
}

fn compare_pair(
    recipe: &Recipe,
    matching: MatchSettings,
    pair: TextPairJson,
) -> Result<Value, ApiProblem> {
    let compared = Comparison::new(recipe, matching, &pair.a, &pair.b)
        .map_err(|error| ApiProblem::new(ProblemCode::BadSettings, error.to_string()))?;
    let both = [&*pair.a, &*pair.b];
    let shared = SharedPassages::find_all(recipe, both, PassageSettings::default())
        .map_err(|error| ApiProblem::new(ProblemCode::TooLarge, error.to_string()))?;
    let side = |place: &str, text| ComparedSide {
        place: place.to_owned(),
        text,
    };
    let case = ComparisonCase {
        recipe,
        a: side("a", pair.a),
        b: side("b", pair.b),
        compared,
        shared,
        top: SHOWN_FEATURES,
        distance: matching.distance,
    };
    Ok(case.to_json())
}

/// Finds the passages that texts share, pair by pair.
pub(crate) async fn find_passages(api_request: ApiRequest) -> ApiResult {
    answer_texts(api_request, u64::MAX, |mut fields, uploaded| {
        let pairs: Vec<JsonObject<TextPairJson>> = fields.need_field("pairs")?;
        let recipe = fields.take_recipe("default", uploaded)?;
        let settings = take_passage_settings(&mut fields)?;
        fields.refuse_rest()?;
        check_count("pairs", pairs.len(), MAX_PAIRS)?;
        let find = |pair: &JsonObject<TextPairJson>| {
            let both = [&*pair.0.a, &*pair.0.b];
            SharedPassages::find_all(&recipe, both, settings)
                .map(|shared| shared.to_json())
                .map_err(|error| ApiProblem::new(ProblemCode::TooLarge, error.to_string()))
        };
        let results = pairs
            .par_iter()
            .map(find)
            .collect::<Result<Vec<Value>, _>>()?;
        Ok(responses::json_text(&serde_json::json!({
            "recipe": recipe.name,
            "recipe_id": recipe.recipe_id().to_string(),
            "results": results,
        })))
    })
    .await
}

/// Largest number of documents in a request, sources included.
pub(crate) const MAX_DOCUMENTS: usize = 1000;

/// Languages in which a report can open.
pub(crate) const REPORT_LANGUAGES: [&str; 2] = ["en", "zh"];

/// Finds the passages of documents, as `lookalike passages` finds them in files.
pub(crate) async fn find_document_passages(api_request: ApiRequest) -> ApiResult {
    answer_texts(api_request, u64::MAX, |mut fields, uploaded| {
        let documents: Vec<JsonObject<TextDocument>> = fields.need_field("documents")?;
        let against: Option<Vec<JsonObject<TextDocument>>> = fields.take_field("against")?;
        let recipe = fields.take_recipe("default", uploaded)?;
        let passages = take_passage_settings(&mut fields)?;
        let wants_report = fields.take_field("report")?.unwrap_or(false);
        let language = fields.choose_field("language", &REPORT_LANGUAGES, |it| it)?;
        fields.refuse_rest()?;
        if language.is_some() && !wants_report {
            return Err(bad_settings(
                "`language` is that of the report: add `\"report\": true`, or leave it out",
            ));
        }
        let [documents, against] = [documents, against.unwrap_or_default()]
            .map(|all| all.into_iter().map(|it| it.0).collect::<Vec<_>>());
        check_count("documents", documents.len() + against.len(), MAX_DOCUMENTS)?;
        let settings = PassageRunSettings::for_texts(recipe, passages, search_threads());
        let page = wants_report.then_some(language);
        let found = find_passages_of_texts(&documents, &against, &settings, page)
            .map_err(|error| ApiProblem::new(ProblemCode::TooLarge, error.to_string()))?;
        Ok(responses::json_text(&DocumentPassagesJson {
            recipe: &settings.recipe.name,
            recipe_id: settings.recipe.recipe_id().to_string(),
            summary: &found.summary,
            passages: &found.rows,
            report: found.page.as_deref(),
        }))
    })
    .await
}

fn take_passage_settings(fields: &mut JsonFields) -> Result<PassageSettings, ApiProblem> {
    let min_length: Option<u32> = fields.take_field("min_length")?;
    let finds_reworded = fields.take_field("reworded")?.unwrap_or(false);
    let settings = min_length.map_or_else(|| Ok(PassageSettings::default()), PassageSettings::new);
    Ok(settings
        .map_err(bad_settings)?
        .with_reworded(finds_reworded))
}

/// Returns the number of threads of a search in the documents of a request: half of the cores, so that inserts and
/// queries keep the others.
fn search_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// The passages of documents.
#[derive(Serialize)]
struct DocumentPassagesJson<'a> {
    recipe: &'a str,
    recipe_id: String,
    summary: &'a PassagesSummary,
    /// In the order of documents, sources and positions.
    passages: &'a [PassageTableRow],
    /// The report as an HTML page, if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a str>,
}

/// Sources of a text: default and maximum.
const SOURCES: usize = 10;
pub(crate) const MAX_SOURCES: usize = 1000;

/// Finds the kept documents of a collection that a text has passages from.
pub(crate) async fn find_sources(api_request: ApiRequest) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let (name, client) = (api_request.target_collection(), api_request.client);
    drop(api_request.open_collection()?);
    let most = service.config.limits.document;
    let (body, room) = responses::read_json_body(api_request, most).await?;
    // A body that arrives slowly must not keep the collection from being deleted.
    let open = service.collections.open_collection(&name)?;
    responses::long_answer(Arc::clone(&service), client, move || {
        let asked = SourcesRequest::read_body(&body)?;
        drop((body, room));
        let passages = &open.passages;
        let found = passages.find_sources(&service, &open, &asked.text, asked.settings)?;
        Ok(responses::json_text(&asked.to_answer(&found)))
    })
    .await
}

struct SourcesRequest {
    text: String,
    settings: PassageSettings,
    limit: usize,
}

impl SourcesRequest {
    fn read_body(body: &[u8]) -> Result<Self, ApiProblem> {
        let mut fields = JsonFields::read_fields(body)?;
        let text = fields.need_field("text")?;
        let usual = PassageSettings::default().min_words();
        let min_length = fields.take_field("min_length")?.unwrap_or(usual);
        let limit = fields.take_field("limit")?.unwrap_or(SOURCES);
        fields.refuse_rest()?;
        if min_length < usual {
            return Err(bad_settings(format!(
                "`min_length` is {min_length}: the index of a collection finds passages of at least {usual} words, so \
                 give {usual} to {}",
                PassageSettings::MAX_WORDS
            )));
        }
        if !(1..=MAX_SOURCES).contains(&limit) {
            return Err(bad_settings(format!(
                "`limit` is {limit}: give a number of sources from 1 to {MAX_SOURCES}"
            )));
        }
        let settings = PassageSettings::new(min_length).map_err(bad_settings)?;
        Ok(Self {
            text,
            settings,
            limit,
        })
    }

    fn to_answer(&self, found: &FoundSources) -> Value {
        let sources = found.sources.iter().take(self.limit).map(|source| {
            let mut json = source.shared.to_json();
            json["id"] = source.id.as_str().into();
            // A kept document is the representative of its cluster.
            json["cluster"] = source.id.as_str().into();
            json["seq"] = source.seq.into();
            json["copied"] = source.shared.copied.into();
            json["longest"] = source.longest().into();
            json
        });
        serde_json::json!({
            "candidates": found.candidates,
            "examined": found.examined,
            "found": found.sources.len(),
            "sources": sources.collect::<Vec<_>>(),
        })
    }
}

/// Returns a fingerprint or signature for every text.
pub(crate) async fn fingerprint(api_request: ApiRequest) -> ApiResult {
    answer_texts(api_request, u64::MAX, |mut fields, uploaded| {
        let texts: Vec<String> = fields.need_field("texts")?;
        let recipe = fields.take_recipe("default", uploaded)?;
        let sketch = sketch_kind(&mut fields, &recipe)?;
        fields.refuse_rest()?;
        check_count("texts", texts.len(), MAX_TEXTS)?;
        // A text without features has null as its signature, as in the tables that the command writes.
        let digits = matches!(sketch, SketchKind::SimHash(_) | SketchKind::Sentences(_));
        let none = digits.then(|| SketchValue::Digits(NO_FINGERPRINT.to_owned()));
        let maker = TextFingerprinter::new(&recipe, sketch);
        let fingerprints: Vec<_> = texts
            .par_iter()
            .map_init(AnalysisScratch::default, |scratch, text| {
                maker.fingerprint(text, scratch).or_else(|| none.clone())
            })
            .collect();
        Ok(responses::json_text(&MadeJson {
            recipe: &recipe.name,
            recipe_id: recipe.recipe_id().to_string(),
            of_texts: OfTexts::Fingerprints(fingerprints),
        }))
    })
    .await
}

fn sketch_kind(fields: &mut JsonFields, recipe: &Recipe) -> Result<SketchKind, ApiProblem> {
    let method = fields.choose_field("method", &SketchKind::METHODS, MatchMethod::name)?;
    let notations = &FingerprintNotation::ALL;
    let digits = fields.choose_field("digits", notations, FingerprintNotation::option_name)?;
    let sentences: Option<std::num::NonZeroUsize> = fields.take_field("sentences")?;
    let method = method.unwrap_or_else(|| SketchKind::default_method(recipe));
    let useless = [
        ("digits", digits.is_some() && method != MatchMethod::SimHash),
        (
            "sentences",
            sentences.is_some() && method != MatchMethod::Sentences,
        ),
    ];
    if let Some((name, _)) = useless.into_iter().find(|(_, is)| *is) {
        let detail = format!("the field `{name}` has no effect with this method: leave it out");
        return Err(ApiProblem::new(ProblemCode::BadSettings, detail));
    }
    Ok(match method {
        MatchMethod::MinHash => SketchKind::MinHash,
        MatchMethod::BottomK => SketchKind::BottomK,
        MatchMethod::Sentences => SketchKind::Sentences(sentences.map_or(SENTENCES, |it| it.get())),
        _ => SketchKind::SimHash(digits.unwrap_or_default()),
    })
}

/// The answer to a request about texts, with one entry for each.
#[derive(Serialize)]
struct MadeJson<'a> {
    recipe: &'a str,
    recipe_id: String,
    #[serde(flatten)]
    of_texts: OfTexts,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum OfTexts {
    Fingerprints(Vec<Option<SketchValue>>),
    Results(Vec<SegmentsJson>),
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum SegmentsJson {
    Tokens(Vec<String>),
    Terms(Vec<TermJson>),
}

#[derive(Serialize)]
struct TermJson {
    term: String,
    count: u64,
    weight: f64,
    part: Option<String>,
}

/// Returns the tokens of every text, or its terms if `weights` is true.
pub(crate) async fn segment_texts(api_request: ApiRequest) -> ApiResult {
    answer_texts(api_request, MAX_SHORT_BODY_BYTES, |mut fields, uploaded| {
        let texts: Vec<String> = fields.need_field("texts")?;
        let recipe = fields.take_recipe("jieba", uploaded)?;
        let weights = fields.take_field("weights")?.unwrap_or(false);
        fields.refuse_rest()?;
        check_count("texts", texts.len(), MAX_TEXTS)?;
        let analyzer = TextAnalyzer::new(&recipe);
        let results: Vec<_> = texts
            .par_iter()
            .map_init(AnalysisScratch::default, |scratch, text| match weights {
                true => SegmentsJson::Terms(list_terms(&analyzer, text, scratch)),
                false => SegmentsJson::Tokens(list_tokens(&analyzer, text, scratch)),
            })
            .collect();
        Ok(responses::json_text(&MadeJson {
            recipe: &recipe.name,
            recipe_id: recipe.recipe_id().to_string(),
            of_texts: OfTexts::Results(results),
        }))
    })
    .await
}

fn list_tokens(analyzer: &TextAnalyzer, text: &str, scratch: &mut AnalysisScratch) -> Vec<String> {
    let mut tokens = Vec::new();
    analyzer.visit_terms(text, scratch, false, &mut |term| {
        tokens.push(term.text.to_owned());
    });
    tokens
}

fn list_terms(analyzer: &TextAnalyzer, text: &str, scratch: &mut AnalysisScratch) -> Vec<TermJson> {
    let terms = analyzer.list_terms(text, scratch).into_iter();
    terms
        .map(|term| TermJson {
            term: term.text,
            count: term.count,
            weight: weight_in_digits(term.weight),
            part: term.part,
        })
        .collect()
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), ApiProblem> {
    if count <= most {
        return Ok(());
    }
    let detail = format!("the request has {count} {what}, more than the limit of {most}");
    Err(ApiProblem::new(ProblemCode::TooLarge, detail))
}
