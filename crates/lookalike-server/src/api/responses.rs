//! JSON responses, and the request bodies and parameters that calls have in common.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use bytes::{Buf, Bytes};
use serde::Serialize;
use tokio::time::timeout;

use crate::api::body::{BodyReader, MARK};
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::api::router::{ApiRequest, ApiResult};
use crate::api::stream::queue_full;
use crate::limits::byte_budget::{ByteBudget, ClientId, HeldBytes};
use crate::limits::response_budget::{self, HeldAnswer};
use crate::service::ServiceState;

/// Returns a JSON response.
pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let mut response = with_json_type(Body::from(json_text(value)));
    *response.status_mut() = status;
    response
}

/// Serialises a value to JSON.
pub(crate) fn json_text(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what is answered serialises")
}

fn with_json_type(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Returns a JSON response that may take long to compute or be long itself. Few of them are computed at a
/// time, fewer for one client, and their bytes count towards a budget until the client has taken them.
///
/// # Errors
/// Any error of `work`, or [`ProblemCode::Busy`] if there is no budget for the answer in time.
pub(crate) async fn long_answer(
    service: Arc<ServiceState>,
    client: ClientId,
    work: impl FnOnce() -> Result<Vec<u8>, ApiProblem> + Send + 'static,
) -> ApiResult {
    let limits = &service.config.limits;
    let turn = service.turns.take(client).await;
    // The turn is kept until the bytes are counted, even if the client disconnects.
    let (text, _turn) = in_background(move || (work(), turn)).await;
    let text = text?;
    let bytes = text.len().min(limits.queue);
    let room = timeout(limits.body_timeout, service.held.take_bytes(client, bytes)).await;
    let room = room.map_err(|_| queue_full())?;
    Ok(with_json_type(response_budget::single_answer_body(
        HeldAnswer::new(text.into(), (None, room)),
    )))
}

/// Returns a response without a body.
pub(crate) fn empty_response() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Runs `work` on a thread that may block.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("a panic ends the process")
}

/// Format of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// One JSON value.
    Json,
    /// One JSON value per line.
    Lines,
}

/// Returns the format of a body by its `Content-Type`.
///
/// # Errors
/// If the type is missing or not supported.
pub(crate) fn body_kind(headers: &HeaderMap) -> Result<BodyKind, ApiProblem> {
    let stated = headers.get(header::CONTENT_TYPE);
    let stated = stated.map_or("", |it| it.to_str().unwrap_or("?"));
    let (essence, parameters) = stated.split_once(';').unwrap_or((stated, ""));
    let essence = essence.trim();
    check_charset(parameters)?;
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(BodyKind::Json),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(BodyKind::Lines),
        other => {
            let shown = shorten_text(other);
            Err(ApiProblem::new(
                ProblemCode::UnsupportedType,
                format!(
                    "the Content-Type is '{shown}': give application/json, or for many documents \
                     application/x-ndjson"
                ),
            ))
        }
    }
}

/// Checks the parameters of a `Content-Type`: the only charset is UTF-8.
fn check_charset(parameters: &str) -> Result<(), ApiProblem> {
    for parameter in parameters.split(';') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let charset = value.trim().trim_matches('"');
        if name.trim().eq_ignore_ascii_case("charset") && !charset.eq_ignore_ascii_case("utf-8") {
            let shown = shorten_text(charset);
            let detail = format!("the charset is '{shown}': bodies are UTF-8");
            return Err(ApiProblem::new(ProblemCode::UnsupportedType, detail));
        }
    }
    Ok(())
}

/// Reads a whole JSON body. Also returns the budget that it occupies.
///
/// # Errors
/// If it has another type, is too large, too slow or malformed, or the budget is used up.
pub(crate) async fn read_json_body(
    mut api_request: ApiRequest,
    most: u64,
) -> Result<(Bytes, HeldBytes), ApiProblem> {
    if body_kind(&api_request.headers)? != BodyKind::Json {
        let detail = "the call takes one JSON object: give application/json";
        return Err(ApiProblem::new(ProblemCode::UnsupportedType, detail));
    }
    let reader = api_request.read_body(most)?;
    read_whole_body(reader, &api_request.service.queue, api_request.client).await
}

/// Reads a whole body. There must be budget for every piece as it arrives; this never waits for budget.
pub(crate) async fn read_whole_body(
    mut reader: BodyReader,
    queue: &Arc<ByteBudget>,
    client: ClientId,
) -> Result<(Bytes, HeldBytes), ApiProblem> {
    let room = |bytes: usize| queue.try_take_bytes(client, bytes).ok_or_else(queue_full);
    reader.check_stated_length()?;
    let first = reader.next_piece().await?.unwrap_or_default();
    let mut held = room(first.len())?;
    let Some(second) = reader.next_piece().await? else {
        return Ok((without_mark(first), held));
    };
    let mut all = Vec::from(first);
    let mut next = Some(second);
    while let Some(piece) = next {
        held.merge_bytes(room(piece.len())?);
        reserve_a_little(&mut all, piece.len());
        all.extend_from_slice(&piece);
        reader.check_rate(all.len())?;
        next = reader.next_piece().await?;
    }
    Ok((without_mark(all.into()), held))
}

/// Reserves space for more bytes and an eighth of the present length. A buffer that doubles could occupy
/// twice the bytes that the budget counts.
fn reserve_a_little(buffer: &mut Vec<u8>, bytes: usize) {
    if buffer.capacity() - buffer.len() < bytes {
        buffer.reserve_exact(bytes + buffer.len() / 8);
    }
}

fn without_mark(mut body: Bytes) -> Bytes {
    if body.starts_with(MARK) {
        body.advance(MARK.len());
    }
    body
}

/// Query parameters. Unknown ones are refused.
pub(crate) struct QueryParameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> QueryParameters<'a> {
    /// Parses a query string.
    ///
    /// # Errors
    /// If a parameter is not among `known`, or appears twice.
    pub(crate) fn parse_query(query: Option<&'a str>, known: &[&str]) -> Result<Self, ApiProblem> {
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        let parts = query.unwrap_or_default().split('&');
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let twice = parameters.iter().any(|(earlier, _)| *earlier == name);
            if twice || !known.contains(&name) {
                let shown = shorten_text(name);
                let what = if twice {
                    "given twice"
                } else {
                    "unknown to this call"
                };
                let detail = format!("the parameter `{shown}` is {what}");
                return Err(ApiProblem::new(ProblemCode::BadRequest, detail));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// Returns a parameter, if it is given.
    ///
    /// # Errors
    /// If it does not parse; the message says what is `wanted`.
    pub(crate) fn get_parameter<T: FromStr>(
        &self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<T>, ApiProblem> {
        let Some((_, value)) = self.0.iter().find(|(known, _)| *known == name) else {
            return Ok(None);
        };
        value.parse().map(Some).map_err(|_| {
            let shown = shorten_text(value);
            let detail = format!("the parameter `{name}` is '{shown}': give {wanted}");
            ApiProblem::new(ProblemCode::BadRequest, detail)
        })
    }

    /// Returns a parameter that is a number from 1 to `most`, or `usual` if it is not given.
    ///
    /// # Errors
    /// If it is not such a number.
    pub(crate) fn count_parameter(
        &self,
        name: &str,
        usual: usize,
        most: usize,
    ) -> Result<usize, ApiProblem> {
        let wanted = format!("a number from 1 to {most}");
        let count = self.get_parameter(name, &wanted)?.unwrap_or(usual);
        if (1..=most).contains(&count) {
            return Ok(count);
        }
        let detail = format!("the parameter `{name}` is {count}: give {wanted}");
        Err(ApiProblem::new(ProblemCode::BadRequest, detail))
    }
}
