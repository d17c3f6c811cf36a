//! Calls on texts that are not stored: compare, passages, fingerprint, segment.

use std::sync::Arc;

use lookalike::passages::{BaseText, PassageSettings};
use lookalike::plan::{MatchMethod, MatchSettings, SENTENCES};
use lookalike::text::{AnalysisScratch, SpanTokenizer, TextAnalyzer};
use lookalike::{ErrorKind, Recipe, compare::Comparison};
use lookalike_comparison::comparison::{ComparedSide, ComparisonCase};
use lookalike_comparison::passage_table::PassageTableRow;
use lookalike_comparison::shared_passages::{
    SharedPassages, SourceComparer, preparation_steps, read_base_texts,
};
use lookalike_documents::ExtractedText;
use lookalike_options::boilerplate_limit::{BoilerplateLimit, parse_boilerplate_limit};
use lookalike_options::fingerprint_notation::{FingerprintNotation, NO_FINGERPRINT};
use lookalike_options::sketch_kind::SketchKind;
use lookalike_options::text_fingerprinter::{SketchValue, TextFingerprinter};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::api::answer_text::AnswerText;
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::api::responses;
use crate::api::router::{ApiRequest, ApiResult};
use crate::api::text_work::{TextAllowance, answer_with_work};
use crate::collections::passage_search::SourceSearch;
use crate::document_passages::{
    DocumentPassageSearch, DocumentPassages, PassageDocument, PassageSearchError,
};
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
    work: impl FnOnce(
        JsonFields,
        NamedRecipes,
        &mut TextAllowance,
        &mut AnswerText,
    ) -> Result<(), ApiProblem>
    + Send
    + 'static,
) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let most = most.min(service.config.limits.document);
    let client = api_request.client;
    let (body, room) = responses::read_json_body(api_request, most).await?;
    let first_bytes = PARSED_COPIES * body.len();
    let recipes = Arc::clone(&service);
    answer_with_work(&service, client, first_bytes, move |allowance, answer| {
        let uploaded = |name: &str| recipes.recipes.load_recipe(name);
        let fields = JsonFields::read_fields(&body)?;
        // The parsed texts count as memory of the work.
        drop((body, room));
        work(fields, &uploaded, allowance, answer)
    })
    .await
}

/// Copies of a body that its parsed texts take: the values, and the texts that are made of them.
const PARSED_COPIES: usize = 2;

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

fn compare_all(
    mut fields: JsonFields,
    uploaded: NamedRecipes,
    allowance: &mut TextAllowance,
    answer: &mut AnswerText,
) -> Result<(), ApiProblem> {
    let pairs: Vec<JsonObject<TextPairJson>> = fields.need_field("pairs")?;
    let recipe = fields.take_recipe("default", uploaded)?;
    let matching = fields.take_matching()?;
    fields.refuse_rest()?;
    check_count("pairs", pairs.len(), MAX_PAIRS)?;
    let bytes: usize = pairs
        .iter()
        .map(|pair| pair.0.a.len() + pair.0.b.len())
        .sum();
    if bytes > MAX_COMPARED_BYTES {
        let detail = format!(
            "the texts have {bytes} bytes, more than the limit of {MAX_COMPARED_BYTES} per request"
        );
        return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
    }
    // The texts are so short that finding their passages needs no limit of memory.
    allowance.budget.set_max_bytes(usize::MAX);
    answer.write_bytes(b"{\"results\":[")?;
    for (at, pair) in pairs.into_iter().enumerate() {
        allowance.check_client()?;
        if at > 0 {
            answer.write_bytes(b",")?;
        }
        write_comparison(&recipe, matching, pair.0, allowance, answer)?;
    }
    answer.write_bytes(b"]}")
}

fn write_comparison(
    recipe: &Recipe,
    matching: MatchSettings,
    pair: TextPairJson,
    allowance: &TextAllowance,
    answer: &mut AnswerText,
) -> Result<(), ApiProblem> {
    let compared = Comparison::new(recipe, matching, &pair.a, &pair.b)
        .map_err(|error| ApiProblem::new(ProblemCode::BadSettings, error.to_string()))?;
    let (both, budget) = ([&*pair.a, &*pair.b], Arc::clone(&allowance.budget));
    let shared = SharedPassages::find_all_within(recipe, both, PassageSettings::default(), budget)
        .map_err(passage_problem)?;
    let side = |place: &str, text| ComparedSide {
        place: place.to_owned(),
        text,
    };
    answer.write_json(&ComparisonCase {
        recipe,
        a: side("a", pair.a),
        b: side("b", pair.b),
        compared,
        shared,
        top: SHOWN_FEATURES,
        distance: matching.distance,
    })
}

/// Finds the passages that texts share, pair by pair.
pub(crate) async fn find_passages(api_request: ApiRequest) -> ApiResult {
    answer_texts(api_request, u64::MAX, find_passages_of_pairs).await
}

fn find_passages_of_pairs(
    mut fields: JsonFields,
    uploaded: NamedRecipes,
    allowance: &mut TextAllowance,
    answer: &mut AnswerText,
) -> Result<(), ApiProblem> {
    let pairs: Vec<JsonObject<TextPairJson>> = fields.need_field("pairs")?;
    let recipe = fields.take_recipe("default", uploaded)?;
    let settings = take_passage_settings(&mut fields)?;
    let base_texts = take_base_texts(&mut fields)?;
    let allows_partial = fields.take_field("partial")?.unwrap_or(false);
    fields.refuse_rest()?;
    check_count("pairs", pairs.len(), MAX_PAIRS)?;
    let tokenizer = SpanTokenizer::new(&recipe);
    let mut texts_left: usize = pairs
        .iter()
        .map(|pair| pair.0.a.len() + pair.0.b.len())
        .sum();
    let base = read_base(&tokenizer, settings, base_texts, texts_left, allowance)?;
    let base_bytes = base.as_ref().map_or(0, BaseText::memory_bytes);
    write_recipe(&recipe, answer)?;
    let comparison = PairComparison {
        tokenizer: &tokenizer,
        settings,
        base: base.as_ref(),
    };
    // Nothing says which of two texts is the source.
    answer.write_bytes(b"\"directed\":false,\"results\":[")?;
    let mut is_complete = true;
    for (at, JsonObject(pair)) in pairs.into_iter().enumerate() {
        let bytes = pair.a.len() + pair.b.len();
        let found = allowance
            .hold_memory(texts_left + base_bytes, work_bytes(settings, bytes))
            .and_then(|()| write_passages(at > 0, pair, &comparison, allowance));
        texts_left -= bytes;
        match found {
            Ok(result) => answer.append(result),
            Err(problem) if allows_partial && problem.code == ProblemCode::TooCostly => {
                is_complete = false;
                break;
            }
            Err(problem) => return Err(problem),
        }
    }
    // The memory of the work has room for the end of the answer.
    allowance.keep_memory(0);
    answer.write_exactly(format!("],\"complete\":{is_complete}}}").as_bytes())
}

/// The settings of the comparisons of a request.
struct PairComparison<'a> {
    tokenizer: &'a SpanTokenizer,
    settings: PassageSettings,
    base: Option<&'a BaseText>,
}

/// Returns the passages of a pair as a part of an answer, behind a comma if other pairs precede it.
fn write_passages(
    has_predecessor: bool,
    TextPairJson { a, b }: TextPairJson,
    comparison: &PairComparison<'_>,
    allowance: &TextAllowance,
) -> Result<AnswerText, ApiProblem> {
    let mut result = allowance.new_part();
    if has_predecessor {
        result.write_bytes(b",")?;
    }
    let [a, b] = [a, b].map(ExtractedText::from_plain_text);
    let budget = Arc::clone(&allowance.budget);
    let PairComparison {
        tokenizer,
        settings,
        base,
    } = *comparison;
    let shared = SourceComparer::new_within(tokenizer, &b, settings, base, budget)
        .and_then(|mut comparer| comparer.find_passages(&a))
        .map_err(passage_problem)?;
    result.write_json(&shared)?;
    Ok(result)
}

/// Writes the beginning of an answer: its recipe.
fn write_recipe(recipe: &Recipe, answer: &mut AnswerText) -> Result<(), ApiProblem> {
    answer.write_bytes(b"{\"recipe\":")?;
    answer.write_json(&recipe.name)?;
    answer.write_bytes(b",\"recipe_id\":")?;
    answer.write_json(&recipe.recipe_id().to_string())?;
    answer.write_bytes(b",")
}

/// Returns the memory, in bytes, that comparing texts of so many bytes usually takes: a word with its blank has six
/// bytes, and a character of Chinese three. A text of the shortest words needs more, and may be refused.
pub(crate) fn work_bytes(settings: PassageSettings, text_bytes: usize) -> usize {
    let per_byte = if settings.finds_reworded() { 64 } else { 32 };
    SMALLEST_WORK + per_byte * text_bytes
}

/// Bytes of memory of the work on short texts.
const SMALLEST_WORK: usize = 64 << 10;

/// Returns the problem of a search for passages that failed.
pub(crate) fn passage_problem(error: lookalike::Error) -> ApiProblem {
    let code = match error.kind() {
        ErrorKind::TooCostly => ProblemCode::TooCostly,
        _ => ProblemCode::TooLarge,
    };
    ApiProblem::new(code, error.to_string())
}

/// Returns the problem of a search in the documents of a request that failed.
fn search_problem(error: PassageSearchError) -> ApiProblem {
    match error {
        PassageSearchError::TooCostly(message) => ApiProblem::new(ProblemCode::TooCostly, message),
        PassageSearchError::TooLarge(message) => ApiProblem::new(ProblemCode::TooLarge, message),
    }
}

/// Largest number of documents in a request, sources included.
pub(crate) const MAX_DOCUMENTS: usize = 1000;

/// Languages in which a report can open.
pub(crate) const REPORT_LANGUAGES: [&str; 2] = ["en", "zh"];

/// Finds the passages of documents, as `lookalike passages` finds them in files.
pub(crate) async fn find_document_passages(api_request: ApiRequest) -> ApiResult {
    let find_passages = api_request.service.config.find_document_passages;
    answer_texts(
        api_request,
        u64::MAX,
        move |mut fields, uploaded, allowance, answer| {
            let documents: Vec<JsonObject<PassageDocument>> = fields.need_field("documents")?;
            let against: Option<Vec<JsonObject<PassageDocument>>> = fields.take_field("against")?;
            let recipe = fields.take_recipe("default", uploaded)?;
            let passages = take_passage_settings(&mut fields)?;
            let base = take_base_texts(&mut fields)?;
            let max_documents = take_document_limit(&mut fields)?;
            let wants_report = fields.take_field("report")?.unwrap_or(false);
            let language =
                fields.choose_field("language", &REPORT_LANGUAGES, |language| language)?;
            let allows_partial = fields.take_field("partial")?.unwrap_or(false);
            fields.refuse_rest()?;
            if language.is_some() && !wants_report {
                return Err(bad_settings(
                    "`language` is that of the report: add `\"report\": true`, or leave it out",
                ));
            }
            let [documents, against] = [documents, against.unwrap_or_default()]
                .map(|all| all.into_iter().map(|pair| pair.0).collect::<Vec<_>>());
            check_count("documents", documents.len() + against.len(), MAX_DOCUMENTS)?;
            let texts = documents.iter().chain(&against);
            let text_bytes: usize = texts.map(|document| document.text.len()).sum();
            let text_bytes = text_bytes + base.iter().map(String::len).sum::<usize>();
            allowance.hold_memory(
                COPIES_IN_RUN * text_bytes,
                SMALLEST_RUN + COPIES_IN_RUN * text_bytes,
            )?;
            let max_bytes = allowance.budget.max_bytes();
            allowance.budget.set_max_bytes(max_bytes / 2);
            let search = DocumentPassageSearch {
                documents,
                against,
                base,
                max_documents,
                recipe,
                passages,
                threads: search_threads(),
                budget: Arc::clone(&allowance.budget),
                max_row_bytes: max_bytes / 2,
                allows_partial,
                report_language: wants_report.then_some(language),
            };
            let found = find_passages(&search).map_err(search_problem)?;
            let recipe = search.recipe;
            drop((search.documents, search.against, search.base));
            write_document_passages(&recipe, &found, allows_partial, allowance, answer)
        },
    )
    .await
}

/// Writes the passages of documents, in the order of documents, sources and positions. If the answer would take more
/// memory than a client may hold and a part of it is allowed, the last passages are left out.
fn write_document_passages(
    recipe: &Recipe,
    found: &DocumentPassages,
    allows_partial: bool,
    allowance: &mut TextAllowance,
    answer: &mut AnswerText,
) -> Result<(), ApiProblem> {
    // The end is made first, so that it has room however long the passages are.
    let mut end = allowance.new_part();
    if let Some(page) = &found.page {
        end.write_bytes(b",\"report\":")?;
        end.write_json(page)?;
    }
    end.write_bytes(b"}")?;
    end.close_part();
    write_recipe(recipe, answer)?;
    answer.write_bytes(format!("\"directed\":{},\"summary\":", found.is_directed).as_bytes())?;
    answer.write_json(&found.summary)?;
    answer.write_bytes(b",\"passages\":[")?;
    let mut is_complete = found.is_complete;
    for rows in found.rows.chunks(ROWS_AT_A_TIME) {
        let is_first = std::ptr::eq(rows, &found.rows[..rows.len()]);
        match write_rows(is_first, rows, allowance) {
            Ok(part) => answer.append(part),
            Err(problem) if allows_partial && problem.code == ProblemCode::TooCostly => {
                is_complete = false;
                break;
            }
            Err(problem) => return Err(problem),
        }
    }
    allowance.keep_memory(0);
    answer.write_exactly(format!("],\"complete\":{is_complete}").as_bytes())?;
    answer.append(end);
    Ok(())
}

/// Rows of a table that are written together or not at all.
const ROWS_AT_A_TIME: usize = 256;

/// Returns rows as a part of an answer, behind a comma if others precede them.
fn write_rows(
    is_first: bool,
    rows: &[PassageTableRow],
    allowance: &TextAllowance,
) -> Result<AnswerText, ApiProblem> {
    let mut part = allowance.new_part();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 || !is_first {
            part.write_bytes(b",")?;
        }
        part.write_json(row)?;
    }
    Ok(part)
}

fn take_passage_settings(fields: &mut JsonFields) -> Result<PassageSettings, ApiProblem> {
    let min_length: Option<u32> = fields.take_field("min_length")?;
    let finds_reworded = fields.take_field("reworded")?.unwrap_or(false);
    let settings = min_length.map_or_else(|| Ok(PassageSettings::default()), PassageSettings::new);
    Ok(settings
        .map_err(bad_settings)?
        .with_reworded(finds_reworded))
}

/// Takes the texts that all documents were given.
fn take_base_texts(fields: &mut JsonFields) -> Result<Vec<String>, ApiProblem> {
    let base: Vec<String> = fields.take_field("base")?.unwrap_or_default();
    check_count("base texts", base.len(), MAX_DOCUMENTS)?;
    let has_words = |text: &String| text.chars().any(char::is_alphanumeric);
    if !base.is_empty() && !base.iter().any(has_words) {
        return Err(bad_settings(
            "`base` has no words, so nothing would be left out: give texts that all documents were given, or leave it out",
        ));
    }
    Ok(base)
}

/// Reads the texts that all documents were given; `None` without any. `held_bytes` are those of the other texts.
fn read_base(
    tokenizer: &SpanTokenizer,
    settings: PassageSettings,
    texts: Vec<String>,
    held_bytes: usize,
    allowance: &mut TextAllowance,
) -> Result<Option<BaseText>, ApiProblem> {
    if texts.is_empty() {
        return Ok(None);
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    allowance.hold_memory(held_bytes + bytes, work_bytes(settings, bytes))?;
    let max_bytes = allowance.budget.max_bytes();
    let base = read_base_texts(tokenizer, settings, &texts, max_bytes).map_err(passage_problem)?;
    let steps = preparation_steps(settings, base.token_count() as usize);
    let taken = allowance.budget.take_steps(steps);
    taken.map_err(passage_problem)?;
    Ok(Some(base))
}

/// Takes the number of documents in which a run of words may be: a number, a percentage or `none`.
fn take_document_limit(fields: &mut JsonFields) -> Result<BoilerplateLimit, ApiProblem> {
    let Some(value) = fields.take_field::<serde_json::Value>("max_documents")? else {
        return Ok(BoilerplateLimit::default());
    };
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    parse_boilerplate_limit(&text).map_err(|reason| {
        bad_settings(format!(
            "`max_documents` is {}: {reason}",
            shorten_text(&text)
        ))
    })
}

/// Copies of the texts that a run over documents has: those of the request, its rows, those that it reads again, and its
/// index.
const COPIES_IN_RUN: usize = 4;

/// Bytes of memory of a run over few documents: prepared sources, and rows.
const SMALLEST_RUN: usize = 32 << 20;

/// Returns the number of threads of a search in the documents of a request: half of the cores, so that inserts and
/// queries keep the others.
fn search_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

/// Sources of a text: default and maximum.
const SOURCE_LIMIT: usize = 10;
pub(crate) const MAX_SOURCES: usize = 1000;

/// Finds the kept documents of a collection that a text has passages from.
pub(crate) async fn find_sources(api_request: ApiRequest) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let (name, client) = (api_request.target_collection(), api_request.client);
    drop(api_request.look_up_collection()?);
    let most = service.config.limits.document;
    let (body, room) = responses::read_json_body(api_request, most).await?;
    // A body that arrives slowly must not keep the collection from being deleted.
    let open = service.collections.look_up_collection(&name)?;
    let first_bytes = PARSED_COPIES * body.len();
    let state = Arc::clone(&service);
    answer_with_work(&service, client, first_bytes, move |allowance, answer| {
        let search = read_source_search(&body)?;
        drop((body, room));
        let found = open
            .passages
            .find_sources(&state, &open, &search, allowance)?;
        // The memory of the comparisons has room for the frame of the answer.
        allowance.keep_memory(0);
        answer.write_exactly(b"{\"sources\":[")?;
        for (at, source) in found.sources.into_iter().enumerate() {
            if at > 0 {
                answer.write_exactly(b",")?;
            }
            answer.append(source);
        }
        let counts = format!(
            "],\"candidates\":{},\"examined\":{},\"found\":{},\"complete\":{}}}",
            found.candidates, found.examined, found.found, found.is_complete
        );
        answer.write_exactly(counts.as_bytes())
    })
    .await
}

fn read_source_search(body: &[u8]) -> Result<SourceSearch, ApiProblem> {
    let mut fields = JsonFields::read_fields(body)?;
    let text: String = fields.need_field("text")?;
    let usual = PassageSettings::default().min_words();
    let min_length = fields.take_field("min_length")?.unwrap_or(usual);
    let limit = fields.take_field("limit")?.unwrap_or(SOURCE_LIMIT);
    let allows_partial = fields.take_field("partial")?.unwrap_or(false);
    let base = take_base_texts(&mut fields)?;
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
    Ok(SourceSearch {
        text: ExtractedText::from_plain_text(text),
        settings,
        base,
        limit,
        allows_partial,
    })
}

/// Returns a fingerprint or signature for every text.
pub(crate) async fn fingerprint(api_request: ApiRequest) -> ApiResult {
    answer_texts(api_request, u64::MAX, fingerprint_all).await
}

fn fingerprint_all(
    mut fields: JsonFields,
    uploaded: NamedRecipes,
    allowance: &mut TextAllowance,
    answer: &mut AnswerText,
) -> Result<(), ApiProblem> {
    let texts: Vec<String> = fields.need_field("texts")?;
    let recipe = fields.take_recipe("default", uploaded)?;
    let sketch = sketch_kind(&mut fields, &recipe)?;
    fields.refuse_rest()?;
    check_count("texts", texts.len(), MAX_TEXTS)?;
    // A text without features has null as its signature, as in the tables that the command writes.
    let digits = matches!(sketch, SketchKind::SimHash(_) | SketchKind::Sentences(_));
    let none = digits.then(|| SketchValue::Digits(NO_FINGERPRINT.to_owned()));
    let maker = TextFingerprinter::new(&recipe, sketch);
    let make = |text: &str, scratch: &mut AnalysisScratch| {
        maker.fingerprint(text, scratch).or_else(|| none.clone())
    };
    write_results(&recipe, "fingerprints", &texts, allowance, answer, make)
}

/// Texts whose results are in memory before they are written.
const RESULTS_AT_A_TIME: usize = 256;

/// Writes the answer to a request about texts: the recipe, and a list with the result of `work` for each text.
fn write_results<T: Serialize + Send>(
    recipe: &Recipe,
    list_name: &str,
    texts: &[String],
    allowance: &TextAllowance,
    answer: &mut AnswerText,
    work: impl Fn(&str, &mut AnalysisScratch) -> T + Sync,
) -> Result<(), ApiProblem> {
    answer.write_bytes(b"{\"recipe\":")?;
    answer.write_json(&recipe.name)?;
    answer.write_bytes(b",\"recipe_id\":")?;
    answer.write_json(&recipe.recipe_id().to_string())?;
    answer.write_bytes(format!(",\"{list_name}\":[").as_bytes())?;
    let mut is_first = true;
    for some in texts.chunks(RESULTS_AT_A_TIME) {
        for result in map_texts(some, allowance, &work)? {
            if !is_first {
                answer.write_bytes(b",")?;
            }
            answer.write_json(&result)?;
            is_first = false;
        }
    }
    answer.write_bytes(b"]}")
}

/// Works on every text, on all threads.
///
/// # Errors
/// If the client disconnects before the last text.
fn map_texts<T: Send>(
    texts: &[String],
    allowance: &TextAllowance,
    work: impl Fn(&str, &mut AnalysisScratch) -> T + Sync,
) -> Result<Vec<T>, ApiProblem> {
    let texts = texts.par_iter();
    texts
        .map_init(AnalysisScratch::default, |scratch, text| {
            allowance.check_client()?;
            Ok(work(text, scratch))
        })
        .collect()
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
        MatchMethod::Sentences => {
            SketchKind::Sentences(sentences.map_or(SENTENCES, |sentences| sentences.get()))
        }
        _ => SketchKind::SimHash(digits.unwrap_or_default()),
    })
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
    answer_texts(api_request, MAX_SHORT_BODY_BYTES, segment_all).await
}

fn segment_all(
    mut fields: JsonFields,
    uploaded: NamedRecipes,
    allowance: &mut TextAllowance,
    answer: &mut AnswerText,
) -> Result<(), ApiProblem> {
    let texts: Vec<String> = fields.need_field("texts")?;
    let recipe = fields.take_recipe("jieba", uploaded)?;
    let weights = fields.take_field("weights")?.unwrap_or(false);
    fields.refuse_rest()?;
    check_count("texts", texts.len(), MAX_TEXTS)?;
    let analyzer = TextAnalyzer::new(&recipe);
    let list = |text: &str, scratch: &mut AnalysisScratch| {
        if weights {
            SegmentsJson::Terms(list_terms(&analyzer, text, scratch))
        } else {
            SegmentsJson::Tokens(list_tokens(&analyzer, text, scratch))
        }
    };
    write_results(&recipe, "results", &texts, allowance, answer, list)
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
            weight: term.weight_in_digits(),
            term: term.text,
            count: term.count,
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

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    type TextWork =
        fn(JsonFields, NamedRecipes, &mut TextAllowance, &mut AnswerText) -> Result<(), ApiProblem>;

    fn work_on(
        request: &Value,
        work: TextWork,
        allowance: &mut TextAllowance,
    ) -> Result<AnswerText, ApiProblem> {
        let fields = JsonFields::read_fields(request.to_string().as_bytes()).unwrap();
        let mut answer = allowance.new_part();
        work(fields, &|_| Ok(None), allowance, &mut answer)?;
        Ok(answer)
    }

    async fn parse_answer(answer: AnswerText) -> Value {
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX);
        serde_json::from_slice(&body.await.unwrap()).unwrap()
    }

    /// Pairs of a request, and the passages that each of them shares.
    const PAIRS: usize = 100;
    const PASSAGES: usize = 10;

    fn pairs_with_passages(allows_partial: bool) -> Value {
        let words = |name: &str, at: usize, count: usize| -> String {
            (0..count)
                .map(|word| format!("{name}{at}x{word} "))
                .collect()
        };
        let text = |name: &str| -> String {
            let passages = 0..PASSAGES;
            passages
                .map(|at| words("shared", at, 15) + &words(name, at, 80))
                .collect()
        };
        let pair = json!({ "a": text("first"), "b": text("second") });
        json!({ "pairs": vec![pair; PAIRS], "partial": allows_partial })
    }

    /// No retry helps a request whose results alone are more than a client may hold.
    #[tokio::test]
    async fn passages_beyond_the_share_of_a_client_are_too_costly() {
        let work = find_passages_of_pairs;
        let whole = work_on(
            &pairs_with_passages(false),
            work,
            &mut TextAllowance::new_alone(100 << 20),
        );
        let whole = whole.unwrap();
        let whole_bytes = whole.byte_count();
        let whole = parse_answer(whole).await;
        assert_eq!(whole["complete"], true);
        let results = whole["results"].as_array().unwrap();
        assert_eq!(results.len(), PAIRS);
        assert_eq!(results[0]["passages"].as_array().unwrap().len(), PASSAGES);

        for allows_partial in [false, true] {
            let mut allowance = TextAllowance::new_alone(100 << 20);
            // The memory for the texts is held from the beginning.
            allowance.hold_memory(10 << 20, 10 << 20).unwrap();
            let _taken = allowance.take_all_but(whole_bytes / 2);
            let found = work_on(&pairs_with_passages(allows_partial), work, &mut allowance);
            if !allows_partial {
                let problem = found.err().unwrap();
                assert_eq!(problem.code, ProblemCode::TooCostly, "{}", problem.detail);
                continue;
            }
            let found = parse_answer(found.unwrap()).await;
            assert_eq!(found["complete"], false);
            let part = found["results"].as_array().unwrap();
            assert!((1..PAIRS).contains(&part.len()), "{}", part.len());
            assert_eq!(part[..], results[..part.len()]);
        }
    }

    /// The rows that have no room are left out, and the report stays.
    #[tokio::test]
    async fn rows_beyond_the_share_of_a_client_are_left_out() {
        let recipe = Recipe::built_in("default").unwrap();
        let row = PassageTableRow {
            document: "a".to_owned(),
            source: "b".to_owned(),
            start: 1,
            end: 2,
            source_start: 3,
            source_end: 4,
            length: 1,
            similarity: 1.0,
            kind: "verbatim",
        };
        let found = DocumentPassages {
            summary: RawValue::from_string("{\"passages\":5000}".to_owned()).unwrap(),
            is_directed: false,
            rows: vec![row; 5000],
            page: Some("<html>".to_owned()),
            is_complete: true,
        };
        let mut sizes = Vec::new();
        for (bytes, allows_partial) in [(4 << 20, false), (300 << 10, true), (300 << 10, false)] {
            let mut allowance = TextAllowance::new_alone(10 << 20);
            let _taken = allowance.take_all_but(bytes);
            let mut answer = allowance.new_part();
            let written = write_document_passages(
                &recipe,
                &found,
                allows_partial,
                &mut allowance,
                &mut answer,
            );
            if let Err(problem) = written {
                sizes.push(None);
                assert_eq!(problem.code, ProblemCode::TooCostly);
                continue;
            }
            let answer = parse_answer(answer).await;
            assert_eq!(answer["report"], "<html>");
            assert_eq!(answer["summary"]["passages"], 5000);
            let rows = answer["passages"].as_array().unwrap().len();
            assert_eq!(answer["complete"], rows == 5000);
            sizes.push(Some(rows));
        }
        let [Some(5000), Some(1..5000), None] = sizes[..] else {
            panic!("{sizes:?}");
        };
    }

    /// Nobody reads the answer to a client that has disconnected.
    #[test]
    fn work_ends_with_its_client() {
        let pairs = json!({ "pairs": [{ "a": "The boat left.", "b": "The boat left." }] });
        let texts = json!({ "texts": ["The boat left at dawn.", "The mayor opened a bridge."] });
        let works: [(&Value, TextWork); 3] = [
            (&pairs, compare_all),
            (&texts, fingerprint_all),
            (&texts, segment_all),
        ];
        for (request, work) in works {
            let mut allowance = TextAllowance::new_alone(10 << 20);
            assert!(work_on(request, work, &mut allowance).is_ok());
            allowance.budget.cancel();
            let ended = work_on(request, work, &mut allowance).err().unwrap();
            assert_eq!(ended.code, ProblemCode::TooSlow, "{}", ended.detail);
        }
    }
}
