//! The log of requests: which client asked for what, and how it ended. Texts are never logged.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::api::problem::ApiProblem;
use crate::api::router::is_probe_call;

/// Name of the header with the id of a request, in requests and responses.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over from a client, in bytes.
const LONGEST_ID: usize = 128;

/// Largest number of warnings about requests per second. Further ones are only logged at the level `debug`, so
/// that a failure that hits every request does not fill the disk with log lines.
const WARNINGS_PER_SECOND: u32 = 20;

/// The id of a request: that of the client, if it sent one, or a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    /// Returns the id that a client sent in `X-Request-Id`, if it is short and has only letters, digits and
    /// some punctuation, or else a new one.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let sent = headers
            .get(REQUEST_ID)
            .and_then(|header| header.to_str().ok());
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&c);
        let usable = |id: &&str| (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_plain);
        sent.filter(usable)
            .map_or_else(Self::generate, |id| Self(id.into()))
    }

    /// Returns a new id, which differs from all others of this process, and in all likelihood from those of
    /// other processes.
    pub(crate) fn generate() -> Self {
        static PROCESS_NUMBER: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        static REQUEST_COUNT: AtomicU64 = AtomicU64::new(1);
        let count = REQUEST_COUNT.fetch_add(1, Relaxed);
        Self(format!("{:016x}-{count:x}", *PROCESS_NUMBER).into())
    }

    /// Adds the id to the headers of a response and, if it is a problem, to its body.
    pub(crate) fn add_to_response(&self, response: &mut Response<Body>) {
        if let Some(problem) = response.extensions_mut().remove::<ApiProblem>() {
            *response.body_mut() = Body::from(problem.to_bytes(Some(&self.0)));
        }
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A request as the log names it.
pub(crate) struct RequestRecord {
    pub(crate) id: RequestId,
    pub(crate) client: IpAddr,
    /// Name of the client's key.
    pub(crate) key: Option<String>,
    /// Collection that the path names.
    pub(crate) collection: Option<String>,
    /// Header `traceparent`: the trace that the request belongs to.
    #[cfg_attr(not(feature = "traces"), allow(dead_code))]
    pub(crate) trace_parent: Option<String>,
}

impl RequestRecord {
    /// Returns the record of a request that matches no call.
    pub(crate) fn unmatched(id: RequestId, client: Option<IpAddr>) -> Self {
        Self {
            id,
            client: client.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
            key: None,
            collection: None,
            trace_parent: None,
        }
    }
}

/// Settings of the log of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestLogSettings {
    /// `true` if every request is logged at the level `info`.
    pub log_all: bool,
    /// Time from which a request is logged as slow; `None` means never.
    pub slow: Option<Duration>,
}

/// Logs requests.
pub(crate) struct RequestLog {
    settings: RequestLogSettings,
    /// Start of the current second, and the number of warnings in it.
    warned: Mutex<(Instant, u32)>,
}

/// Reason for a warning about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoggedAs {
    Slow,
    Failed,
    Usual,
}

impl RequestLog {
    pub(crate) fn new(settings: RequestLogSettings) -> Self {
        Self {
            settings,
            warned: Mutex::new((Instant::now(), 0)),
        }
    }

    /// Logs an answered request. One that failed or was slow is a warning; others are logged at the level
    /// `debug`, or `info` if all requests are to be logged. Health probes are never warnings, because they
    /// are repeated.
    pub(crate) fn log_answer(
        &self,
        record: &RequestRecord,
        call: &'static str,
        status: u16,
        took: Duration,
    ) {
        macro_rules! log_at {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    request_id = %record.id,
                    call,
                    status,
                    seconds = took.as_secs_f64(),
                    client = %record.client,
                    key = record.key,
                    collection = record.collection,
                    $message
                )
            };
        }
        let is_probe = is_probe_call(call);
        match self.classify_answer(status, took) {
            LoggedAs::Failed if !is_probe && self.may_warn() => log_at!(warn, "request failed"),
            LoggedAs::Slow if !is_probe && self.may_warn() => log_at!(warn, "slow request"),
            _ if self.settings.log_all && !is_probe => log_at!(info, "answered"),
            _ => log_at!(debug, "answered"),
        }
    }

    /// Logs that a client disconnected before it had the whole answer. That is no warning, because the client may do so
    /// at any time.
    pub(crate) fn log_disconnected(
        &self,
        record: &RequestRecord,
        call: &'static str,
        took: Duration,
    ) {
        tracing::info!(
            request_id = %record.id,
            call,
            seconds = took.as_secs_f64(),
            client = %record.client,
            key = record.key,
            collection = record.collection,
            "the client disconnected before the end of its answer"
        );
    }

    fn classify_answer(&self, status: u16, took: Duration) -> LoggedAs {
        if status >= 500 {
            LoggedAs::Failed
        } else if self.settings.slow.is_some_and(|slow| took >= slow) {
            LoggedAs::Slow
        } else {
            LoggedAs::Usual
        }
    }

    /// Returns `true` if another warning may be logged in this second.
    fn may_warn(&self) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.0.elapsed() >= Duration::from_secs(1) {
            *warned = (Instant::now(), 0);
        }
        warned.1 += 1;
        warned.1 <= WARNINGS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(sent: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, sent.parse().unwrap());
        RequestId::from_headers(&headers).to_string()
    }

    #[test]
    fn plain_ids_of_clients_are_taken_over() {
        let longest = "a".repeat(LONGEST_ID);
        for id in ["a", "01H-x_.:/+=@", &longest] {
            assert_eq!(id_for(id), id);
        }
        for id in ["", "two words", "a\"b", "é", &format!("{longest}a")] {
            assert_ne!(id_for(id), id);
        }
        assert_ne!(RequestId::generate(), RequestId::generate());
    }

    #[test]
    fn warnings_are_bounded() {
        let slow = Duration::from_secs(2);
        let log = RequestLog::new(RequestLogSettings {
            log_all: false,
            slow: Some(slow),
        });
        assert_eq!(log.classify_answer(500, Duration::ZERO), LoggedAs::Failed);
        assert_eq!(log.classify_answer(200, slow), LoggedAs::Slow);
        let below = slow - Duration::from_nanos(1);
        assert_eq!(log.classify_answer(499, below), LoggedAs::Usual);
        let allowed = (0..100).filter(|_| log.may_warn()).count();
        // The test may run into a second or third second.
        assert!((20..=60).contains(&allowed), "{allowed}");
    }
}
