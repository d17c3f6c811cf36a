//! Answers as JSON, and the bodies and parameters that calls share.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use bytes::{Buf, Bytes};
use serde::Serialize;
use tokio::time::timeout;

use super::Service;
use super::api::{Answered, Asked};
use super::body::{MARK, Reader};
use super::byte_budget::{ByteBudget, ClientId, HeldBytes};
use super::held::{self, Held};
use super::problem::{Code, Problem};
use super::stream::busy;

/// An answer.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let mut response = as_json(Body::from(text(value)));
    *response.status_mut() = status;
    response
}

/// An answer as it is sent.
pub(super) fn text(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what is answered serialises")
}

fn as_json(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// An answer that may take long to make or have many bytes: few are made at a time, one client makes fewer, and
/// their bytes count until the client has taken them.
///
/// # Errors
/// If it is none, or there is no room for it in time.
pub(super) async fn long(
    service: Arc<Service>,
    client: ClientId,
    work: impl FnOnce() -> Result<Vec<u8>, Problem> + Send + 'static,
) -> Answered {
    let limits = &service.config.limits;
    let turn = service.turns.take(client).await;
    // The turn lasts until the answer counts, even if the client goes away.
    let (text, _turn) = in_background(move || (work(), turn)).await;
    let text = text?;
    let bytes = text.len().min(limits.queue);
    let room = timeout(limits.body_timeout, service.held.take(client, bytes)).await;
    let room = room.map_err(|_| busy())?;
    Ok(as_json(held::body(Held::new(text.into(), (None, room)))))
}

/// An answer without a body.
pub(super) fn empty() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Runs on a thread that may wait.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("a panic ends the process")
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One JSON value.
    Json,
    /// A JSON value a line.
    Lines,
}

/// What a body is, by its `Content-Type`.
///
/// # Errors
/// If it is none that is taken, or unstated.
pub(super) fn kind(headers: &HeaderMap) -> Result<Kind, Problem> {
    let stated = headers.get(header::CONTENT_TYPE);
    let stated = stated.map_or("", |it| it.to_str().unwrap_or("?"));
    let (essence, parameters) = stated.split_once(';').unwrap_or((stated, ""));
    let essence = essence.trim();
    check_charset(parameters)?;
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(Kind::Json),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(Kind::Lines),
        other => {
            let shown: String = other.chars().take(60).collect();
            Err(Problem::new(
                Code::UnsupportedType,
                format!(
                    "the Content-Type is '{shown}': give application/json, or for many documents \
                     application/x-ndjson"
                ),
            ))
        }
    }
}

/// Checks the parameters of a `Content-Type`: what is read is UTF-8.
fn check_charset(parameters: &str) -> Result<(), Problem> {
    for parameter in parameters.split(';') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let charset = value.trim().trim_matches('"');
        if name.trim().eq_ignore_ascii_case("charset") && !charset.eq_ignore_ascii_case("utf-8") {
            let shown: String = charset.chars().take(60).collect();
            let detail = format!("the charset is '{shown}': bodies are UTF-8");
            return Err(Problem::new(Code::UnsupportedType, detail));
        }
    }
    Ok(())
}

/// A whole JSON body, and its part of the bytes that may wait.
///
/// # Errors
/// If it is of another type, too large, too slow, malformed, or too much waits already.
pub(super) async fn body(asked: Asked, most: u64) -> Result<(Bytes, HeldBytes), Problem> {
    if kind(&asked.headers)? != Kind::Json {
        let detail = "this takes one JSON object: give application/json";
        return Err(Problem::new(Code::UnsupportedType, detail));
    }
    let service = &asked.service;
    let limits = &service.config.limits;
    let reader = Reader::new(&asked.headers, asked.body, most, limits.body_timeout)?;
    whole(reader, &service.queue, asked.client).await
}

/// The whole of a body, for which there must be room at once.
pub(super) async fn whole(
    mut reader: Reader,
    queue: &Arc<ByteBudget>,
    client: ClientId,
) -> Result<(Bytes, HeldBytes), Problem> {
    let room = |bytes: usize| queue.try_take(client, bytes).ok_or_else(busy);
    reader.check_stated_length()?;
    let first = reader.piece().await?.unwrap_or_default();
    let mut held = room(first.len())?;
    let Some(second) = reader.piece().await? else {
        return Ok((without_mark(first), held));
    };
    let mut all = Vec::from(first);
    let mut next = Some(second);
    while let Some(piece) = next {
        held.merge(room(piece.len())?);
        reserve_a_little(&mut all, piece.len());
        all.extend_from_slice(&piece);
        reader.check_rate(all.len())?;
        next = reader.piece().await?;
    }
    Ok((without_mark(all.into()), held))
}

/// Makes room for more bytes, and for an eighth of what there is: a buffer that doubles would take twice
/// what the budget counts.
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

/// The parameters behind the question mark; those that are not known are refused.
pub(super) struct Parameters<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parameters<'a> {
    /// # Errors
    /// If one is not among `known`, or given twice.
    pub(super) fn read(query: Option<&'a str>, known: &[&str]) -> Result<Self, Problem> {
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        let parts = query.unwrap_or_default().split('&');
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let twice = parameters.iter().any(|(earlier, _)| *earlier == name);
            if twice || !known.contains(&name) {
                let shown: String = name.chars().take(60).collect();
                let what = if twice {
                    "given twice"
                } else {
                    "not known here"
                };
                let detail = format!("the parameter `{shown}` is {what}");
                return Err(Problem::new(Code::BadRequest, detail));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// A parameter, if it is given.
    ///
    /// # Errors
    /// If it is not what is `wanted`.
    pub(super) fn get<T: FromStr>(&self, name: &str, wanted: &str) -> Result<Option<T>, Problem> {
        let Some((_, value)) = self.0.iter().find(|(known, _)| *known == name) else {
            return Ok(None);
        };
        value.parse().map(Some).map_err(|_| {
            let shown: String = value.chars().take(60).collect();
            let detail = format!("the parameter `{name}` is '{shown}': give {wanted}");
            Problem::new(Code::BadRequest, detail)
        })
    }

    /// A number from 1 to `most`.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn count(&self, name: &str, usual: usize, most: usize) -> Result<usize, Problem> {
        let wanted = format!("a number from 1 to {most}");
        let count = self.get(name, &wanted)?.unwrap_or(usual);
        if (1..=most).contains(&count) {
            return Ok(count);
        }
        let detail = format!("the parameter `{name}` is {count}: give {wanted}");
        Err(Problem::new(Code::BadRequest, detail))
    }
}
