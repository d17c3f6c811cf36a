//! All calls of the HTTP interface in one table, [`CALLS`]. The router, the OpenAPI document, the metrics and
//! the page at `/` are made from it.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Version, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::routing::{MethodFilter, on};
use axum::{RequestPartsExt, Router};

use super::access::{Role, check_host};
use super::byte_budget::ClientId;
use super::connections::PeerAddress;
use super::problem::{Code, Problem};
use super::reply::Parameters;
use super::{Service, documents, itself, manage, texts};

/// A call of the HTTP interface.
pub(super) struct Call {
    /// Name in metrics, logs and the OpenAPI document.
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Role that a caller needs.
    pub(super) role: Role,
    /// Description in a phrase.
    pub(super) about: &'static str,
    /// Schema of the request body, and `true` if the body may also have many values, one per line.
    pub(super) takes: Option<(&'static str, bool)>,
    /// Names of the accepted query parameters.
    pub(super) parameters: &'static [&'static str],
    /// Status of success, and the schema of the response body if there is one.
    pub(super) gives: (u16, Option<&'static str>),
    answer: fn(Asked) -> Answering,
}

type Answering = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// A response, or the problem that prevented it.
pub(super) type Answered = Result<Response<Body>, Problem>;

/// Path prefix of the calls that accept only the query parameters listed for them.
const VERSIONED: &str = "/v1/";

/// Paths of the calls that report the state of the service.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

/// Returns `true` for the paths that load balancers ask for.
pub(super) fn is_probe(path: &str) -> bool {
    PROBES.contains(&path)
}

const ONE: bool = false;
const ONE_OR_MANY: bool = true;

macro_rules! calls {
    ($($name:literal $method:ident $path:literal $role:ident, $about:literal,
       takes $takes:expr, with $parameters:expr, gives $status:literal $gives:expr, $answer:path;)*) => {
        [$(Call {
            name: $name,
            method: Method::$method,
            path: $path,
            role: Role::$role,
            about: $about,
            takes: $takes,
            parameters: &$parameters,
            gives: ($status, $gives),
            answer: |asked| Box::pin($answer(asked)),
        }),*]
    };
}

/// All calls.
pub(super) static CALLS: [Call; 20] = calls! {
    "list_collections" GET "/v1/collections" Read, "list the collections",
        takes None, with [], gives 200 Some("Collections"), manage::list;
    "get_collection" GET "/v1/collections/{collection}" Read, "show a collection's settings",
        takes None, with [], gives 200 Some("Collection"), manage::get;
    "put_collection" PUT "/v1/collections/{collection}" Admin,
        "create a collection; no effect if it exists with the same settings",
        takes Some(("Settings", ONE)), with [], gives 201 Some("Collection"), manage::put;
    "delete_collection" DELETE "/v1/collections/{collection}" Admin,
        "delete a collection with all its documents",
        takes None, with [], gives 204 None, manage::delete;
    "insert" POST "/v1/collections/{collection}/documents" Write,
        "check documents and insert them: one, or one per line",
        takes Some(("Document", ONE_OR_MANY)), with [], gives 200 Some("Answer"), documents::insert;
    "query" POST "/v1/collections/{collection}/query" Read,
        "check documents without inserting them: one, or one per line",
        takes Some(("Question", ONE_OR_MANY)), with [], gives 200 Some("AnswerToAQuestion"),
        documents::query;
    "get_document" GET "/v1/collections/{collection}/documents/{id}" Read, "show a document",
        takes None, with [], gives 200 Some("Stored"), documents::get;
    "delete_document" DELETE "/v1/collections/{collection}/documents/{id}" Write,
        "delete a document: it matches nothing any more",
        takes None, with [], gives 204 None, documents::delete;
    "list_clusters" GET "/v1/collections/{collection}/clusters" Read,
        "list the clusters with more than one document",
        takes None, with ["after", "limit", "members"], gives 200 Some("Clusters"), documents::clusters;
    "get_cluster" GET "/v1/collections/{collection}/clusters/{id}" Read,
        "show the cluster of a kept document",
        takes None, with ["after", "members"], gives 200 Some("Cluster"), documents::cluster;
    "get_stats" GET "/v1/collections/{collection}/stats" Read, "show the size and state of a \
        collection",
        takes None, with [], gives 200 Some("Stats"), manage::stats;
    "snapshot" POST "/v1/collections/{collection}/snapshot" Admin,
        "write a snapshot of a collection, as it is at one moment",
        takes Some(("SnapshotName", ONE)), with [], gives 201 Some("Snapshot"), manage::snapshot;
    "compare" POST "/v1/compare" Read, "compare pairs of texts, every step and every similarity",
        takes Some(("CompareRequest", ONE)), with [], gives 200 Some("CompareResults"), texts::compare;
    "fingerprint" POST "/v1/fingerprint" Read, "compute the fingerprints of texts",
        takes Some(("FingerprintRequest", ONE)), with [], gives 200 Some("FingerprintResults"),
        texts::fingerprint;
    "segment" POST "/v1/segment" Read, "list the tokens of texts, or their terms with weights",
        takes Some(("SegmentRequest", ONE)), with [], gives 200 Some("SegmentResults"), texts::segment;
    "live" GET "/livez" Anyone, "report that the service runs",
        takes None, with [], gives 200 Some("Live"), itself::live;
    "ready" GET "/readyz" Anyone, "report whether all collections accept documents",
        takes None, with [], gives 200 Some("Ready"), itself::ready;
    "metrics" GET "/metrics" Read, "show metrics for Prometheus",
        takes None, with [], gives 200 None, itself::metrics;
    "openapi" GET "/openapi.json" Anyone, "describe all calls for programs (OpenAPI)",
        takes None, with [], gives 200 None, itself::openapi;
    "index" GET "/" Anyone, "describe all calls for people",
        takes None, with [], gives 200 None, itself::page;
};

/// A request whose time is measured until its answer has been made.
#[derive(Clone)]
pub(super) struct Timed {
    service: Arc<Service>,
    call: usize,
    started: Instant,
}

impl Timed {
    /// Counts the request and the time until now.
    pub(super) fn end(&self, status: u16) {
        let took = self.started.elapsed();
        self.service.metrics.observe(self.call, status, took);
        tracing::debug!(
            call = CALLS[self.call].name,
            status,
            seconds = took.as_secs_f64(),
            "answered"
        );
    }
}

/// Marks a response whose body is still being produced. Its producer counts the request.
#[derive(Clone, Copy)]
pub(super) struct GoesOn;

/// A request that has passed all general checks.
pub(super) struct Asked {
    pub(super) service: Arc<Service>,
    pub(super) timed: Timed,
    pub(super) client: ClientId,
    /// `true` if the caller may see the names of collections.
    pub(super) may_read: bool,
    path: Vec<(String, String)>,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

impl Asked {
    /// Returns a part of the path, percent-decoded.
    pub(super) fn part(&self, name: &str) -> String {
        let part = self.path.iter().find(|(known, _)| known == name);
        part.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    pub(super) fn collection(&self) -> String {
        self.part("collection")
    }
}

/// Returns the router of all calls.
pub(super) fn router(service: &Arc<Service>) -> Router {
    let mut router = Router::new();
    for (at, call) in CALLS.iter().enumerate() {
        // The table has only methods that the router knows, so the default is never used.
        let filter = MethodFilter::try_from(call.method.clone()).unwrap_or(MethodFilter::GET);
        let service = Arc::clone(service);
        let answer = move |request: Request| async move { answer(at, service, request).await };
        router = router.route(call.path, on(filter, answer));
    }
    router
        .fallback(|request: Request| async move {
            let path: String = request.uri().path().chars().take(100).collect();
            let detail = format!("there is no call at '{path}': GET / lists all calls");
            unmatched(Code::NoSuchPlace, detail)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let detail = format!("the path does not take {}", request.method());
            unmatched(Code::MethodNotAllowed, detail)
        })
        .layer(from_fn_with_state(Arc::clone(service), watch))
        .layer(map_response(with_strict_headers))
}

/// Marks the responses to requests that match no call.
#[derive(Clone, Copy)]
struct Unmatched;

fn unmatched(code: Code, detail: String) -> Response<Body> {
    let mut response = Problem::new(code, detail).response();
    response.extensions_mut().insert(Unmatched);
    response
}

/// Refuses malformed heads, and counts requests that match no call.
async fn watch(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let started = Instant::now();
    let response = match check_head(&request, service.config.limits.header) {
        Ok(()) => next.run(request).await,
        Err(problem) => unmatched(problem.code, problem.detail),
    };
    if response.extensions().get::<Unmatched>().is_some() {
        let status = response.status().as_u16();
        service.metrics.observe_unmatched(status, started.elapsed());
    }
    response
}

/// Checks the length of a request head, and that `Host` and `Transfer-Encoding` are unambiguous, so that a
/// proxy and this service cannot interpret the request differently.
fn check_head(request: &Request, most: usize) -> Result<(), Problem> {
    let headers = request.headers();
    let bytes = length_of_head(request);
    if bytes > most {
        let detail =
            format!("the head of the request has {bytes} bytes, more than the limit of {most}");
        return Err(Problem::new(Code::HeadTooLarge, detail));
    }
    let bad = |detail: &str| Err(Problem::new(Code::BadRequest, detail));
    if headers.get_all(header::HOST).iter().count() > 1 {
        return bad("the request has several Host headers: give one");
    }
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(encoding) = encodings.next() else {
        return Ok(());
    };
    if encodings.next().is_some() || !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return bad("the Transfer-Encoding must be 'chunked'");
    }
    Ok(())
}

/// Returns the bytes of the request line and all headers, with line ends. Optional blanks around values are
/// not known here and do not count.
fn length_of_head(request: &Request) -> usize {
    const ENDS: usize = " ".len() + " HTTP/1.1\r\n".len() + "\r\n".len();
    const OF_A_LINE: usize = ": ".len() + "\r\n".len();
    let line = request.method().as_str().len() + request.uri().to_string().len() + ENDS;
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + OF_A_LINE);
    line + headers.sum::<usize>()
}

async fn answer(at: usize, service: Arc<Service>, request: Request) -> Response<Body> {
    let timed = Timed {
        service,
        call: at,
        started: Instant::now(),
    };
    let call = &CALLS[at];
    let answered = match admit(call, &timed, request).await {
        Ok(asked) => (call.answer)(asked).await,
        Err(problem) => Err(problem),
    };
    let response = answered.unwrap_or_else(|problem| problem.response());
    if response.extensions().get::<GoesOn>().is_none() {
        timed.end(response.status().as_u16());
    }
    response
}

async fn admit(call: &Call, timed: &Timed, request: Request) -> Result<Asked, Problem> {
    let service = &timed.service;
    let (mut parts, body) = request.into_parts();
    if service.config.only_loopback && !is_bare_probe(call, &parts) {
        check_host(&parts.headers, &parts.uri)?;
    }
    let keys = &service.config.keys;
    keys.check(&parts.headers, call.role)?;
    let client = client_of(service, &parts);
    if !is_probe(call.path) && !service.rate.allows(client, timed.started) {
        let detail = "the client exceeds its limit of requests per second: send fewer, with more \
                      documents in each";
        return Err(Problem::new(Code::TooManyRequests, detail));
    }
    check_escapes(parts.uri.path())?;
    if call.path.starts_with(VERSIONED) {
        Parameters::read(parts.uri.query(), call.parameters)?;
    }
    let path: Result<RawPathParams, RawPathParamsRejection> = parts.extract().await;
    let path = path.map_err(|error| Problem::new(Code::BadRequest, error.to_string()))?;
    let path = path
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Asked {
        service: Arc::clone(service),
        timed: timed.clone(),
        client,
        may_read: keys.check(&parts.headers, Role::Read).is_ok(),
        path: path.collect(),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers,
        body,
    })
}

/// Identifies the client of a request by its key, or by its address. For a trusted proxy it is the last
/// address in `X-Forwarded-For`, because the proxy itself has added that one.
fn client_of(service: &Service, parts: &Parts) -> ClientId {
    if let Some(key) = service.config.keys.position(&parts.headers) {
        return ClientId::Key(key);
    }
    let peer = parts.extensions.get::<PeerAddress>();
    // Every request arrives over a connection, so the default is never used.
    let peer = peer.map_or(IpAddr::from(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let named = service.config.trusts(peer).then(|| {
        let forwarded = parts
            .headers
            .get_all("x-forwarded-for")
            .iter()
            .next_back()?;
        let last = forwarded.to_str().ok()?.rsplit(',').next()?;
        last.trim().parse().ok()
    });
    ClientId::from_address(named.flatten().unwrap_or(peer))
}

/// Returns `true` for a probe that a load balancer sends in HTTP/1.0 without `Host`. A browser always sends
/// one.
fn is_bare_probe(call: &Call, parts: &Parts) -> bool {
    let names_none = parts.uri.authority().is_none() && !parts.headers.contains_key(header::HOST);
    is_probe(call.path) && parts.version == Version::HTTP_10 && names_none
}

/// Checks that every `%` in a path is followed by two hexadecimal digits, because otherwise the id would
/// differ from the one intended.
fn check_escapes(path: &str) -> Result<(), Problem> {
    for rest in path.split('%').skip(1) {
        let digits = rest.bytes().take(2).filter(u8::is_ascii_hexdigit);
        if digits.count() < 2 {
            let shown: String = rest.chars().take(2).collect();
            let detail = format!("the path has '%{shown}', which is not a percent-encoded byte");
            return Err(Problem::new(Code::BadRequest, detail));
        }
    }
    Ok(())
}

/// Adds headers that keep a browser from interpreting a response as something else.
async fn with_strict_headers(mut response: Response<Body>) -> Response<Body> {
    const STRICT: [(HeaderName, &str); 6] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in STRICT {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
