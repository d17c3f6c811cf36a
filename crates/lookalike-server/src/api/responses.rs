//! JSON responses, and the request bodies and parameters that calls have in common.

use std::num::NonZero;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::api::answer_text::{AnswerText, largest_memory, wait_for_permit};
use crate::api::body::{BYTE_ORDER_MARK, BodyReader};
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::api::router::{ApiRequest, ApiResult};
use crate::api::stream::queue_full;
use crate::limits::byte_budget::{ByteBudget, ClientId, HeldBytes};
use crate::limits::request_budget::RequestBudget;
use crate::service::ServiceState;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use bytes::{Buf, Bytes};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

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

pub(crate) fn with_json_type(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Bytes of finished work from which its thread returns free memory to the system, because the thread may then be idle.
pub(crate) const MUCH_MEMORY: usize = 1 << 20;

/// Bytes for which a long answer of unknown length takes budget before it is made.
pub(crate) const FIRST_ANSWER_BYTES: usize = 64 << 10;

/// Time for which the parts of a long answer beyond its first bytes wait for budget. Others wait for its permit
/// meanwhile.
const TURN_PATIENCE: Duration = Duration::from_secs(1);

/// Returns a JSON response about stored documents that may take long to compute or be long itself. Few of them are
/// computed at a time, fewer for one client, and their bytes count towards a budget from the first one on, until the
/// client has taken them. Budget for `first_bytes` of the answer is taken before the permit, or as much as a request
/// may hold if that is less.
///
/// # Errors
/// Any error of `work`, or [`ProblemCode::Busy`] if there is no budget for the answer in time.
pub(crate) async fn long_answer(
    service: Arc<ServiceState>,
    client: ClientId,
    first_bytes: usize,
    work: impl FnOnce(&mut AnswerText) -> Result<(), ApiProblem> + Send + 'static,
) -> ApiResult {
    let memory = RequestBudget::new(Arc::clone(&service.answer_budget), client);
    let first_bytes = first_bytes.min(largest_memory(memory.total_bytes()));
    let patience = service.config.limits.body_timeout;
    let begun = wait_for_permit(
        &memory,
        first_bytes,
        patience,
        &service.answer_permits,
        client,
    );
    let (held_bytes, permit) = begun.await?;
    let mut text = AnswerText::new_waiting(memory, held_bytes, TURN_PATIENCE.min(patience));
    let release_memory = service.config.release_memory;
    let working = permit.run_work(move || {
        let made = work(&mut text);
        text.close_answer();
        if text.byte_count() >= MUCH_MEMORY {
            release_memory();
        }
        (made, text)
    });
    let ((made, text), _permit) = working.await;
    made?;
    Ok(text_response(text))
}

/// Returns a JSON response with a text that counts towards a budget.
pub(crate) fn text_response(text: AnswerText) -> Response<Body> {
    let length = HeaderValue::from(text.byte_count());
    let mut response = with_json_type(text.into_body());
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, length);
    response
}

/// Returns a JSON response with a value whose bytes count towards a budget until the client has taken them.
///
/// # Errors
/// [`ProblemCode::Busy`] or [`ProblemCode::TooCostly`] if there is no budget.
pub(crate) fn counted_answer(budget: RequestBudget, value: &impl Serialize) -> ApiResult {
    let mut text = AnswerText::new(budget);
    text.write_json(value)?;
    Ok(text_response(text))
}

/// Returns a response without a body.
pub(crate) fn empty_response() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Threads for look-ups of all services of the process. They are few, because an allocator keeps free memory for each thread.
static LOOK_UP_THREADS: LazyLock<Runtime> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = Builder::new_current_thread()
        .max_blocking_threads(cores.max(LEAST_LOOK_UP_THREADS))
        .build();
    threads.expect("a runtime without timers and sockets has nothing that can fail")
});

const LEAST_LOOK_UP_THREADS: usize = 4;

/// Runs a look-up on one of a few threads. It may wait for a lock or the disk for some milliseconds, and for nothing else, because
/// other look-ups wait behind it.
pub(crate) async fn look_up<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = LOOK_UP_THREADS.spawn_blocking(work).await;
    done.expect("a panic ends the process")
}

/// Runs `work` on a thread that may block.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("a panic ends the process")
}

/// Runs `work` on a thread that may block. Its argument returns `false` once the result is not awaited any more,
/// because the client has disconnected.
pub(crate) async fn in_background_while<T: Send + 'static>(
    work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> T {
    let awaited = Arc::new(());
    let waiting = Arc::downgrade(&awaited);
    let done = in_background(move || work(&|| waiting.strong_count() > 0)).await;
    drop(awaited);
    done
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
    let stated = stated.map_or("", |header| header.to_str().unwrap_or("?"));
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
    let reader = api_request.take_body_reader(most)?;
    read_whole_body(
        reader,
        &api_request.service.waiting_budget,
        api_request.client,
    )
    .await
}

/// Reads a whole body. There must be budget for every piece as it arrives; this never waits for budget.
pub(crate) async fn read_whole_body(
    mut reader: BodyReader,
    waiting_budget: &Arc<ByteBudget>,
    client: ClientId,
) -> Result<(Bytes, HeldBytes), ApiProblem> {
    reader.check_stated_length()?;
    let first = reader.next_piece().await?.unwrap_or_default();
    let held_bytes = waiting_budget.try_take_bytes(client, first.len());
    let held_bytes = held_bytes.ok_or_else(queue_full)?;
    let Some(mut piece) = reader.next_piece().await? else {
        return Ok((without_mark(first), held_bytes));
    };
    let mut body = GrowingBody {
        bytes: Vec::from(first),
        held_bytes,
        longest: reader.longest_length(),
    };
    loop {
        body.push_piece(&piece, waiting_budget, client)?;
        reader.check_rate(body.bytes.len())?;
        match reader.next_piece().await? {
            Some(next) => piece = next,
            None => return Ok(body.into_bytes()),
        }
    }
}

/// A body that arrives in pieces, and the budget that its buffer occupies.
struct GrowingBody {
    bytes: Vec<u8>,
    held_bytes: HeldBytes,
    /// Largest length that the body can have.
    longest: usize,
}

impl GrowingBody {
    /// Appends a piece. A full buffer doubles, up to the length that the body can have, so that a body of any
    /// length is copied about once. If there is no budget for that, it grows by the piece alone.
    fn push_piece(
        &mut self,
        piece: &[u8],
        waiting_budget: &Arc<ByteBudget>,
        client: ClientId,
    ) -> Result<(), ApiProblem> {
        let needed = self.bytes.len() + piece.len();
        let occupied = self.held_bytes.byte_count();
        if needed > occupied {
            let wanted = (2 * occupied).min(self.longest).max(needed);
            let take = |size: usize| waiting_budget.try_take_bytes(client, size - occupied);
            let more = take(wanted).or_else(|| take(needed));
            self.held_bytes.merge_bytes(more.ok_or_else(queue_full)?);
            let capacity = self.held_bytes.byte_count();
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
        let empty = self.held_bytes.byte_count() - self.bytes.len();
        self.held_bytes.set_empty(empty);
        Ok(())
    }

    /// Returns the body, with the budget of its bytes alone.
    fn into_bytes(mut self) -> (Bytes, HeldBytes) {
        self.bytes.shrink_to_fit();
        let held_bytes = self.held_bytes.split_bytes(self.bytes.len());
        (without_mark(self.bytes.into()), held_bytes)
    }
}

fn without_mark(mut body: Bytes) -> Bytes {
    if body.starts_with(BYTE_ORDER_MARK) {
        body.advance(BYTE_ORDER_MARK.len());
    }
    body
}

/// End of the names of parameters that stand for all names with the part before it.
const ANY_FIELD: &str = "FIELD";

/// Returns `true` for the name of a parameter that is among `known`. A known name such as `meta.FIELD` stands for
/// every name that begins with `meta.`.
fn is_known_parameter(name: &str, known: &[&str]) -> bool {
    known
        .iter()
        .any(|known| match known.strip_suffix(ANY_FIELD) {
            None => name == *known,
            Some(prefix) => name
                .strip_prefix(prefix)
                .is_some_and(|field| !field.is_empty()),
        })
}

/// Decodes a name or a value of a query: `%` and two digits are a byte, and `+` is a blank, as forms send it.
///
/// # Errors
/// If an escape is malformed, or the bytes are not UTF-8.
fn decode_query_text(text: &str) -> Result<String, ApiProblem> {
    let malformed = || {
        let shown = shorten_text(text);
        let detail = format!(
            "the query has '{shown}', which is not percent-encoded UTF-8: write `%` as `%25` and other bytes as `%` \
             and two hexadecimal digits"
        );
        ApiProblem::new(ProblemCode::BadRequest, detail)
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    let push_plain = |bytes: &mut Vec<u8>, part: &str| {
        bytes.extend(
            part.bytes()
                .map(|byte| if byte == b'+' { b' ' } else { byte }),
        );
    };
    push_plain(&mut bytes, parts.next().unwrap_or_default());
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|part| part.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(malformed)?);
        push_plain(&mut bytes, &part[2..]);
    }
    String::from_utf8(bytes).map_err(|_| malformed())
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
            if twice || !is_known_parameter(name, known) {
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
        let parsed = decode_value(value).and_then(|decoded| decoded.parse().ok());
        parsed.map(Some).ok_or_else(|| {
            let shown = shorten_text(value);
            let detail = format!("the parameter `{name}` is '{shown}': give {wanted}");
            ApiProblem::new(ProblemCode::BadRequest, detail)
        })
    }

    /// Returns the parameters whose names begin with a prefix: the rest of each name, and the value, both decoded.
    ///
    /// # Errors
    /// If one cannot be decoded, or has the name of another one.
    pub(crate) fn prefixed_parameters(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, String)>, ApiProblem> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, value) in &self.0 {
            let Some(rest) = name.strip_prefix(prefix) else {
                continue;
            };
            let rest = decode_query_text(rest)?;
            if found.iter().any(|(earlier, _)| *earlier == rest) {
                let shown = shorten_text(&rest);
                let detail = format!("the parameter `{prefix}{shown}` is given twice");
                return Err(ApiProblem::new(ProblemCode::BadRequest, detail));
            }
            found.push((rest, decode_query_text(value)?));
        }
        Ok(found)
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

/// Decodes a value of a query string, in which `%XX` is a byte and `+` a space. Returns `None` if it is malformed or
/// not UTF-8.
fn decode_value(value: &str) -> Option<String> {
    let mut pieces = value.split('%');
    let mut bytes = pieces.next()?.replace('+', " ").into_bytes();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.replace('+', " ").bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_preference(query: &str) -> Result<Option<String>, ApiProblem> {
        let parsed = QueryParameters::parse_query(Some(query), &["prefer"])?;
        parsed.get_parameter("prefer", "a field")
    }

    /// Many clients escape more than they must.
    #[test]
    fn query_values_are_decoded() {
        for (query, value) in [
            ("prefer=max:quality", "max:quality"),
            ("prefer=max%3Aquality", "max:quality"),
            ("prefer=max:%e8%B4%A8", "max:质"),
            ("prefer=max:a+b%20c%2B", "max:a b c+"),
            ("prefer=", ""),
        ] {
            assert_eq!(
                read_preference(query).unwrap().as_deref(),
                Some(value),
                "{query}"
            );
        }
        for query in ["%", "%4", "a%zz", "%+1", "%ff", "%4质"] {
            let problem = read_preference(&format!("prefer={query}")).unwrap_err();
            assert_eq!(problem.code, ProblemCode::BadRequest, "{query}");
            assert!(problem.detail.contains(query), "{}", problem.detail);
        }
    }

    const CLIENT: ClientId = ClientId::Key(0);

    /// Appends pieces of `piece` bytes until the body has `length`; returns it and how often its buffer grew.
    fn grow(
        length: usize,
        piece: usize,
        longest: usize,
        waiting_budget: &Arc<ByteBudget>,
    ) -> Result<(GrowingBody, usize), ApiProblem> {
        let held_bytes = waiting_budget.try_take_bytes(CLIENT, 0).unwrap();
        let mut body = GrowingBody {
            bytes: Vec::new(),
            held_bytes,
            longest,
        };
        let mut growths = 0;
        while body.bytes.len() < length {
            let before = body.bytes.capacity();
            let next = vec![b'x'; piece.min(length - body.bytes.len())];
            body.push_piece(&next, waiting_budget, CLIENT)?;
            growths += usize::from(body.bytes.capacity() != before);
            let occupied = body.held_bytes.byte_count();
            assert_eq!(body.bytes.capacity(), occupied);
            assert!(occupied <= longest.max(body.bytes.len()));
            assert_eq!(
                occupied,
                waiting_budget.total_bytes() - waiting_budget.free_bytes()
            );
            assert_eq!(waiting_budget.used_bytes(), body.bytes.len() as u64);
        }
        Ok((body, growths))
    }

    #[test]
    fn prefixed_parameters_are_decoded() {
        let known = ["after", "meta.FIELD"];
        let read = |query| {
            let parameters = QueryParameters::parse_query(Some(query), &known)?;
            parameters.prefixed_parameters("meta.")
        };
        let found = read("meta.a=1&after=7&meta.%E6%BA%90=a%2Bb+c%3D&meta.x=").unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| (&name[..], &value[..]))
            .collect();
        assert_eq!(found, [("a", "1"), ("源", "a+b c="), ("x", "")]);
        for (query, said) in [
            ("meta.=1", "unknown to this call"),
            ("meta=1", "unknown to this call"),
            ("metas.a=1", "unknown to this call"),
            ("meta.a=1&meta.a=2", "given twice"),
            ("meta.a=1&meta.%61=2", "given twice"),
            ("meta.a=%4", "%25"),
            ("meta.a=%G0", "%25"),
            ("meta.a=%é", "%25"),
            ("meta.%ff=1", "%25"),
        ] {
            let refused = read(query).unwrap_err().detail;
            assert!(refused.contains(said), "{query}: {refused}");
        }
    }

    #[test]
    fn buffer_doubles_within_budget_and_length() {
        let waiting_budget = ByteBudget::new(1 << 30);
        for longest in [16 << 20, 64 << 20] {
            let (body, growths) = grow(16 << 20, 16 << 10, longest, &waiting_budget).unwrap();
            assert_eq!(growths, 11);
            let (bytes, held_bytes) = body.into_bytes();
            assert_eq!((bytes.len(), held_bytes.byte_count()), (16 << 20, 16 << 20));
            assert_eq!(waiting_budget.free_bytes(), (1 << 30) - (16 << 20));
            assert_eq!(waiting_budget.used_bytes(), 16 << 20);
        }
        assert_eq!(
            (waiting_budget.free_bytes(), waiting_budget.used_bytes()),
            (1 << 30, 0)
        );
    }

    #[test]
    fn body_within_budget_is_never_refused() {
        let share = ByteBudget::client_share(1000);
        let waiting_budget = ByteBudget::new(1000);
        assert!(grow(share, 7, 10_000, &waiting_budget).is_ok());
        assert_eq!(waiting_budget.free_bytes(), 1000);
        let refused = grow(2000, 7, 10_000, &waiting_budget).err().unwrap();
        assert_eq!(refused.code, ProblemCode::Busy);
        assert_eq!(waiting_budget.free_bytes(), 1000);
    }
}
