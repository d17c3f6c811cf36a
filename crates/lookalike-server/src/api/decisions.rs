//! Calls on decisions of a person: make, list, withdraw.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::{Response, StatusCode};
use lookalike::content_hash::ContentHash;
use lookalike_log::{EntryKind, LogEntry};
use lookalike_store::{DecisionOutcome, DecisionRequest, DecisionSubject, NamedText};
use serde::Serialize;

use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::api::replicated::{AT_LEAST, with_position};
use crate::api::responses::{self, BodyKind, FIRST_ANSWER_BYTES, QueryParameters, in_background};
use crate::api::router::{ApiRequest, ApiResult};
use crate::collections::open_collection::OpenCollection;
use crate::json::decisions::{
    DecisionJson, DecisionResultJson, ReadDecision, read_decision, withdrawal_line,
};
use crate::replication::Replica;
use crate::replication::proposals::{EntryAnswer, EntryOutcome};

/// Decisions in one request.
pub(crate) const MAX_DECISION_LINES: usize = 1000;

/// Largest body with decisions.
const MAX_DECISION_BYTES: u64 = 4 << 20;

/// Decisions on a page: default and maximum.
pub(crate) const DECISIONS_ON_PAGE: (usize, usize) = (100, 1000);

/// Documents that were judged again and that an answer lists: default and maximum.
pub(crate) const CHANGED_IN_ANSWER: (usize, usize) = (100, 1000);

/// Places that an answer has left for documents that were judged again.
#[derive(Clone)]
struct ChangedPlaces(Arc<AtomicUsize>);

impl ChangedPlaces {
    /// Reads how many such documents an answer lists.
    fn from_query(query: Option<&str>) -> Result<Self, ApiProblem> {
        let parameters = QueryParameters::parse_query(query, &["limit"])?;
        let (usual, most) = CHANGED_IN_ANSWER;
        let count = parameters.count_parameter("limit", usual, most)?;
        Ok(Self(Arc::new(AtomicUsize::new(count))))
    }

    /// Keeps the documents of an outcome for which there are places, and takes these.
    fn shorten_outcome(&self, outcome: &mut DecisionOutcome) {
        let wanted = outcome.rejudged.first.len();
        let take = |left: usize| Some(left - left.min(wanted));
        let left = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let left = left.unwrap_or_else(|left| left);
        outcome.rejudged.keep_first(left);
    }

    fn shorten_entry(&self, outcome: &mut EntryOutcome) {
        if let Ok(EntryAnswer::Decided(decided)) = &mut outcome.result {
            self.shorten_outcome(decided);
        }
    }
}

/// The outcome of a line, and whether its decision is about a form.
type LineResult = Result<(DecisionOutcome, bool), ApiProblem>;

#[derive(Serialize)]
struct DecisionResultsJson<'a> {
    results: Vec<DecisionResultJson<'a>>,
}

/// Makes decisions in their order: one, or one per line.
pub(crate) async fn make_decisions(mut api_request: ApiRequest) -> ApiResult {
    drop(api_request.look_up_collection()?);
    let places = ChangedPlaces::from_query(api_request.query.as_deref())?;
    let kind = responses::body_kind(&api_request.headers)?;
    let (service, client) = (Arc::clone(&api_request.service), api_request.client);
    let (named, subject) = (api_request.target_collection(), api_request.log_subject());
    let reader = api_request.take_body_reader(MAX_DECISION_BYTES)?;
    let (body, held_bytes) =
        responses::read_whole_body(reader, &service.waiting_budget, client).await?;
    let lines = split_lines(&body, kind)?;
    let open = service.collections.look_up_collection(&named)?;
    let response = match &service.replica {
        Some(replica) => {
            let recipes = open.recipe_ids();
            drop(open);
            let decided = decide_through_log(replica, &subject, &lines, &recipes, places);
            let (results, record) = decided.await?;
            with_position(results_response(&results), record)
        }
        None => {
            let results = in_background(move || decide_all(&open, &lines, &places)).await;
            results_response(&results)
        }
    };
    drop(held_bytes);
    Ok(response)
}

/// Returns the lines of a body that are not empty, with their numbers.
fn split_lines(body: &[u8], kind: BodyKind) -> Result<Vec<(usize, Vec<u8>)>, ApiProblem> {
    let lines: Vec<&[u8]> = match kind {
        BodyKind::Json => vec![body],
        BodyKind::Lines => body.split(|&byte| byte == b'\n').collect(),
    };
    let lines = (1..).zip(lines);
    // Files that are joined can each begin with a byte order mark.
    let lines = lines.map(|(number, line)| {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        (number, line.trim_ascii().to_vec())
    });
    let lines: Vec<_> = lines.filter(|(_, line)| !line.is_empty()).collect();
    if lines.len() > MAX_DECISION_LINES {
        let detail = format!(
            "the request has {} decisions, and {MAX_DECISION_LINES} is the limit: send several requests",
            lines.len()
        );
        return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
    }
    Ok(lines)
}

fn results_response(results: &[(usize, LineResult)]) -> Response<Body> {
    let results = results.iter().map(|(line, result)| match result {
        Ok((outcome, has_form)) => DecisionResultJson::new(*line, outcome, *has_form),
        Err(problem) => DecisionResultJson::refused(*line, problem),
    });
    let results = DecisionResultsJson {
        results: results.collect(),
    };
    responses::json_response(StatusCode::OK, &results)
}

fn decide_all(
    open: &OpenCollection,
    lines: &[(usize, Vec<u8>)],
    places: &ChangedPlaces,
) -> Vec<(usize, LineResult)> {
    let recipes = open.recipe_ids();
    let decide = |line: &[u8]| {
        let ReadDecision { request, has_form } = read_decision(line, &recipes)?;
        let outcome = open.collection.decide(&request);
        let mut outcome = outcome.map_err(|error| open.to_problem(error))?;
        places.shorten_outcome(&mut outcome);
        Ok((outcome, has_form))
    };
    let results = lines.iter().map(|(number, line)| (*number, decide(line)));
    results.collect()
}

/// Makes decisions through the log. Lines that are none are refused before. Returns the number of the last record, too.
async fn decide_through_log(
    replica: &Replica,
    subject: &str,
    lines: &[(usize, Vec<u8>)],
    recipes: &[String],
    places: ChangedPlaces,
) -> Result<(Vec<(usize, LineResult)>, u64), ApiProblem> {
    let read: Vec<_> = lines
        .iter()
        .map(|(number, line)| (*number, line, read_decision(line, recipes)))
        .collect();
    let valid = read.iter().filter(|(_, _, read)| read.is_ok());
    let entries = valid.map(|(_, line, _)| decision_entry(subject, (*line).clone()));
    let shorten = move |outcome: &mut EntryOutcome| places.shorten_entry(outcome);
    let proposed = replica.propose_changes_with(entries.collect(), shorten);
    let outcomes = proposed.await?;
    let last = outcomes.iter().map(|outcome| outcome.record).max();
    let mut outcomes = outcomes.into_iter();
    let results = read.into_iter().map(|(number, _, read)| {
        let result = read.and_then(|read| {
            let outcome = outcomes.next().map(EntryOutcome::into_change);
            let outcome = outcome.unwrap_or_else(|| Err(replica.dropped_problem()))?;
            match outcome {
                (EntryAnswer::Decided(outcome), _) => Ok((*outcome, read.has_form)),
                _ => unreachable!("a decision has the answer of a decision"),
            }
        });
        (number, result)
    });
    Ok((results.collect(), last.unwrap_or(0)))
}

fn decision_entry(subject: &str, line: Vec<u8>) -> LogEntry {
    LogEntry {
        kind: EntryKind::Decide,
        subject: subject.to_owned(),
        body: line,
    }
}

#[derive(Serialize)]
struct DecisionPageJson<'a> {
    decisions: Vec<DecisionJson<'a>>,
    /// Value of `after` for the next page; null at the end.
    next: Option<u64>,
    /// Number of all decisions of the collection.
    total: usize,
}

/// Returns a page of decisions, in the order in which they were made.
pub(crate) async fn list_decisions(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    let known = ["after", "limit", "document", AT_LEAST];
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &known)?;
    let after: Option<u64> = parameters.get_parameter("after", "the `next` of the page before")?;
    let count = parameters.count_parameter("limit", DECISIONS_ON_PAGE.0, DECISIONS_ON_PAGE.1)?;
    let document: Option<String> = parameters.get_parameter("document", "the id of a document")?;
    let (service, client) = (api_request.service, api_request.client);
    responses::long_answer(service, client, FIRST_ANSWER_BYTES, move |text| {
        let page = open
            .collection
            .list_decisions(after.unwrap_or(0), count, document.as_deref());
        let page = page.map_err(|error| open.to_problem(error))?;
        let recipes = open.recipe_ids();
        let recipe = recipes.first().map_or("", String::as_str);
        let decisions = page.decisions.iter();
        text.write_json(&DecisionPageJson {
            decisions: decisions
                .map(|stored| DecisionJson::new(stored, recipe))
                .collect(),
            next: page.continue_after,
            total: page.total,
        })
    })
    .await
}

/// Withdraws the decision on two texts, which are named by their contents in either order.
pub(crate) async fn withdraw_decision(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    let places = ChangedPlaces::from_query(api_request.query.as_deref())?;
    let (service, subject) = (Arc::clone(&api_request.service), api_request.log_subject());
    let contents = ["a", "b"].map(|name| api_request.path_part(name));
    let texts = find_decided_texts(&open, &contents)?;
    if let Some(replica) = &service.replica {
        let recipes = open.recipe_ids();
        drop(open);
        let recipe = recipes.first().map_or("", String::as_str);
        let line = responses::json_text(&withdrawal_line(&texts, recipe));
        let lines = [(1, line)];
        let decided = decide_through_log(replica, &subject, &lines, &recipes, places);
        let (results, record) = decided.await?;
        return Ok(with_position(single_response(results)?, record));
    }
    let request = DecisionRequest {
        subject: DecisionSubject::Texts(texts),
        decision: None,
    };
    let outcome = in_background(move || {
        let outcome = open.collection.decide(&request);
        outcome.map_err(|error| open.to_problem(error))
    });
    let mut outcome = outcome.await?;
    places.shorten_outcome(&mut outcome);
    single_response(vec![(1, Ok((outcome, false)))])
}

/// Returns the answer to a request with one decision.
///
/// # Errors
/// If the decision was refused: then the request was.
fn single_response(results: Vec<(usize, LineResult)>) -> ApiResult {
    let applied = results
        .into_iter()
        .map(|(line, result)| Ok((line, Ok(result?))));
    let applied = applied.collect::<Result<Vec<_>, ApiProblem>>()?;
    Ok(results_response(&applied))
}

fn find_decided_texts(
    open: &OpenCollection,
    contents: &[String; 2],
) -> Result<[NamedText; 2], ApiProblem> {
    let no_decision = || {
        let detail = format!(
            "there is no decision on '{}' and '{}': give the fields `a` and `b` of a decision",
            shorten_text(&contents[0]),
            shorten_text(&contents[1])
        );
        ApiProblem::new(ProblemCode::NoDecision, detail)
    };
    let [a, b] = contents
        .each_ref()
        .map(|content| ContentHash::parse_hash(content));
    let (a, b) = a.zip(b).ok_or_else(no_decision)?;
    let found = open.collection.find_decision(a, b);
    let found = found.map_err(|error| open.to_problem(error))?;
    found.map(|stored| stored.texts).ok_or_else(no_decision)
}
