//! All calls of the HTTP interface in one table, [`CALLS`]. The router, the OpenAPI document, the metrics and
//! the page at `/` are made from it.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Version, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::routing::{MethodFilter, on};
use axum::{RequestPartsExt, Router};

use super::request_log::{RequestId, RequestRecord};
use super::{
    aliases, collections, decisions, documents, export, extraction, forms, health, listing,
    recipes, snapshots, texts,
};
use crate::access::host::check_host;
use crate::access::request_access::{ConnectionAccess, RequestAccess};
use crate::access::{AccessRole, AccessScope, ApiCaller};
use crate::api::body::BodyReader;
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::replicated::{AskedPlace, catch_up_with_name};
use crate::api::responses::QueryParameters;
use crate::collections::open_collection::OpenCollection;
use crate::connections::PeerAddress;
use crate::limits::byte_budget::ClientId;
use crate::replication::apply::alias_subject;
use crate::service::ServiceState;
use crate::traces::AnsweredRequest;

/// A call of the HTTP interface.
pub(crate) struct ApiCall {
    /// Name in metrics, logs and the OpenAPI document.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Role that a caller needs.
    pub(crate) role: AccessRole,
    /// Description in a phrase.
    pub(crate) about: &'static str,
    /// Schema of the request body, and `true` if the body may also have many values, one per line.
    pub(crate) takes: Option<(&'static str, bool)>,
    /// Names of the accepted query parameters.
    pub(crate) parameters: &'static [&'static str],
    /// Status of success, and the schema of the response body if there is one.
    pub(crate) gives: (u16, Option<&'static str>),
    answer: fn(ApiRequest) -> AnswerFuture,
}

impl ApiCall {
    /// Returns the paths of other calls that are also a path of this call, and the value that its last part has in
    /// them. For example, `documents/get` is also the path of the document with the id `get`.
    pub(crate) fn named_paths(&self) -> Vec<(&'static str, NamedPart)> {
        let last = self.path.rsplit_once('/');
        let last = last
            .and_then(|(before, last)| Some((before, last.strip_prefix('{')?.strip_suffix('}')?)));
        let Some((before, name)) = last else {
            return Vec::new();
        };
        let paths = CALLS.iter().filter_map(|other| {
            let value = other.path.strip_prefix(before)?.strip_prefix('/')?;
            let is_value = !value.is_empty() && !value.contains(['/', '{']);
            is_value.then_some((other.path, (name, value)))
        });
        let mut paths: Vec<_> = paths.collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Returns what the call touches. Calls without a collection concern the whole service, unless they answer
    /// each caller with what it may see.
    fn access_scope<'a>(&self, collection: &'a [&'a str]) -> AccessScope<'a> {
        match (collection.is_empty(), FOR_LIMITED_KEYS.contains(&self.name)) {
            (false, _) => AccessScope::Collection(collection),
            (true, true) => AccessScope::Nothing,
            (true, false) => AccessScope::Service,
        }
    }
}

/// Names of the calls without a collection that a key for some collections permits.
const FOR_LIMITED_KEYS: [&str; 11] = [
    "list_snapshots",
    "list_collections",
    "list_aliases",
    "list_recipes",
    "get_recipe",
    "compare",
    "passages",
    "document_passages",
    "extract",
    "fingerprint",
    "segment",
];

/// Names of the calls that act on the name in their path itself, and never on the collection that it is an alias of.
/// Such a name may be that of a collection that does not exist yet, or that exists no more and has left snapshots.
const BY_OWN_NAME: [&str; 5] = [
    "put_collection",
    "patch_collection",
    "delete_collection",
    "restore",
    "delete_snapshot",
];

/// A variable part of a path, and its value.
pub(crate) type NamedPart = (&'static str, &'static str);

type AnswerFuture = Pin<Box<dyn Future<Output = ApiResult> + Send>>;

/// A response, or the problem that prevented it.
pub(crate) type ApiResult = Result<Response<Body>, ApiProblem>;

/// Path prefix of the calls that accept only the query parameters listed for them.
const VERSIONED_PREFIX: &str = "/v1/";

/// Paths of the calls that report the state of the service.
const PROBE_PATHS: [&str; 2] = ["/livez", "/readyz"];

/// Returns `true` for the paths that load balancers ask for.
pub(crate) fn is_probe_path(path: &str) -> bool {
    PROBE_PATHS.contains(&path)
}

/// Returns `true` for the names of the calls that load balancers make.
pub(crate) fn is_probe_call(name: &str) -> bool {
    matches!(name, "live" | "ready")
}

const ONE: bool = false;
const ONE_OR_MANY: bool = true;

macro_rules! calls {
    ($($name:literal $method:ident $path:literal $role:ident, $about:literal,
       takes $takes:expr, with $parameters:expr, gives $status:literal $gives:expr, $answer:path;)*) => {
        [$(ApiCall {
            name: $name,
            method: Method::$method,
            path: $path,
            role: AccessRole::$role,
            about: $about,
            takes: $takes,
            parameters: &$parameters,
            gives: ($status, $gives),
            answer: |asked| Box::pin($answer(asked)),
        }),*]
    };
}

/// All calls.
pub(crate) static CALLS: [ApiCall; 45] = calls! {
    "list_collections" GET "/v1/collections" Read, "list the collections",
        takes None, with [], gives 200 Some("CollectionList"), collections::list_collections;
    "get_collection" GET "/v1/collections/{collection}" Read, "show a collection's settings",
        takes None, with [], gives 200 Some("Collection"), collections::get_collection;
    "put_collection" PUT "/v1/collections/{collection}" Admin,
        "create a collection; no effect if it exists with the same settings",
        takes Some(("CollectionSettings", ONE)), with [], gives 201 Some("Collection"), collections::create_collection;
    "patch_collection" PATCH "/v1/collections/{collection}" Admin,
        "change the window of a collection, and what becomes of documents in conflict",
        takes Some(("SettingsChange", ONE)), with [], gives 200 Some("Collection"), collections::change_collection;
    "delete_collection" DELETE "/v1/collections/{collection}" Admin,
        "delete a collection with all its documents",
        takes None, with [], gives 204 None, collections::delete_collection;
    "insert" POST "/v1/collections/{collection}/documents" Write,
        "check documents and insert them: one, or one per line",
        takes Some(("Document", ONE_OR_MANY)), with [], gives 200 Some("Verdict"), documents::insert_documents;
    "list_documents" GET "/v1/collections/{collection}/documents" Read,
        "list the documents in the order of their sequence numbers",
        takes None, with ["after", "limit", "text", "verdict", "meta.FIELD", "at_least"], gives 200 Some("DocumentPage"),
        listing::list_documents;
    "get_documents" POST "/v1/collections/{collection}/documents/get" Read, "show several documents",
        takes Some(("DocumentsRequest", ONE)), with ["at_least"], gives 200 Some("StoredDocuments"), listing::get_documents;
    "delete_documents" POST "/v1/collections/{collection}/documents/delete" Write, "delete several documents",
        takes Some(("DocumentIds", ONE)), with [], gives 200 Some("DeletionResults"), listing::delete_documents;
    "export" GET "/v1/collections/{collection}/export" Read,
        "send all documents, one per line, as `lookalike store export` writes them",
        takes None, with ["at_least"], gives 200 Some("ExportedDocument"), export::export_documents;
    "query" POST "/v1/collections/{collection}/query" Read,
        "check documents without inserting them: one, or one per line",
        takes Some(("QueryDocument", ONE_OR_MANY)), with ["limit", "nearest", "at_least"], gives 200 Some("QueryVerdict"),
        documents::query_documents;
    "find_sources" POST "/v1/collections/{collection}/passages" Read,
        "find the kept documents that a text has passages from",
        takes Some(("SourcesRequest", ONE)), with ["at_least"], gives 200 Some("SourcesResult"), texts::find_sources;
    "learn_forms" POST "/v1/collections/{collection}/forms/learn" Read,
        "learn a table of forms from the clusters of a collection, for the recipe of a new one",
        takes None, with ["format"], gives 200 Some("LearnedForms"), forms::learn_forms;
    "get_document" GET "/v1/collections/{collection}/documents/{id}" Read, "show a document",
        takes None, with ["id", "at_least"], gives 200 Some("StoredDocument"), documents::get_document;
    "delete_document" DELETE "/v1/collections/{collection}/documents/{id}" Write,
        "delete a document: it matches nothing any more",
        takes None, with ["id"], gives 204 None, documents::delete_document;
    "list_clusters" GET "/v1/collections/{collection}/clusters" Read,
        "list the clusters with more than one document",
        takes None, with ["after", "limit", "members", "prefer", "meta.FIELD", "at_least"], gives 200 Some("ClusterPage"),
        documents::list_clusters;
    "get_cluster" GET "/v1/collections/{collection}/clusters/{id}" Read,
        "show the cluster of a kept document",
        takes None, with ["id", "after", "members", "prefer", "at_least"], gives 200 Some("Cluster"), documents::get_cluster;
    "decide" POST "/v1/collections/{collection}/decisions" Write,
        "decide about pairs of texts as a person, and judge their documents again: one, or one per line",
        takes Some(("Decision", ONE_OR_MANY)), with ["limit"], gives 200 Some("DecisionResults"), decisions::make_decisions;
    "list_decisions" GET "/v1/collections/{collection}/decisions" Read,
        "list the decisions that hold, in the order in which they were made",
        takes None, with ["after", "limit", "document", "at_least"], gives 200 Some("DecisionPage"),
        decisions::list_decisions;
    "withdraw_decision" DELETE "/v1/collections/{collection}/decisions/{a}/{b}" Write,
        "withdraw the decision on two texts, and judge their documents again",
        takes None, with ["limit"], gives 200 Some("DecisionResults"), decisions::withdraw_decision;
    "get_stats" GET "/v1/collections/{collection}/stats" Read, "show the size and state of a \
        collection",
        takes None, with ["at_least"], gives 200 Some("CollectionStats"), collections::collection_stats;
    "snapshot" POST "/v1/collections/{collection}/snapshot" Admin,
        "write a snapshot of a collection, as it is at one moment",
        takes Some(("SnapshotRequest", ONE)), with [], gives 201 Some("Snapshot"), snapshots::make_snapshot;
    "restore" POST "/v1/collections/{collection}/restore" Admin,
        "create a collection from a snapshot, of this or another collection",
        takes Some(("RestoreRequest", ONE)), with [], gives 201 Some("Collection"), snapshots::restore_snapshot;
    "list_snapshots" GET "/v1/snapshots" Read, "list the snapshots",
        takes None, with ["collection"], gives 200 Some("SnapshotList"), snapshots::list_snapshots;
    "delete_snapshot" DELETE "/v1/snapshots/{collection}/{snapshot}" Admin, "delete a snapshot",
        takes None, with [], gives 204 None, snapshots::delete_snapshot;
    "list_aliases" GET "/v1/aliases" Read, "list the aliases of collections",
        takes None, with [], gives 200 Some("AliasList"), aliases::list_aliases;
    "change_aliases" POST "/v1/aliases" Admin, "set and remove several aliases in one step",
        takes Some(("AliasChanges", ONE)), with [], gives 200 Some("AliasList"), aliases::change_aliases;
    "put_alias" PUT "/v1/aliases/{alias}" Admin,
        "give a collection a further name, or switch that name to another collection",
        takes Some(("AliasTarget", ONE)), with [], gives 200 Some("Alias"), aliases::put_alias;
    "delete_alias" DELETE "/v1/aliases/{alias}" Admin, "remove an alias; its collection stays",
        takes None, with [], gives 204 None, aliases::delete_alias;
    "list_recipes" GET "/v1/recipes" Read, "list the uploaded recipes",
        takes None, with [], gives 200 Some("RecipeList"), recipes::list_recipes;
    "get_recipe" GET "/v1/recipes/{recipe}" Read,
        "show an uploaded recipe, its files and the collections that use it",
        takes None, with [], gives 200 Some("Recipe"), recipes::get_recipe;
    "put_recipe" PUT "/v1/recipes/{recipe}" Write,
        "upload a recipe with its files, in place of one that no collection uses",
        takes Some(("RecipeUpload", ONE)), with [], gives 201 Some("Recipe"), recipes::put_recipe;
    "delete_recipe" DELETE "/v1/recipes/{recipe}" Write, "delete a recipe that no collection uses",
        takes None, with [], gives 204 None, recipes::delete_recipe;
    "compare" POST "/v1/compare" Read, "compare pairs of texts, every step and every similarity",
        takes Some(("CompareRequest", ONE)), with [], gives 200 Some("CompareResults"), texts::compare_texts;
    "passages" POST "/v1/passages" Read, "find the passages that pairs of texts share",
        takes Some(("PassagesRequest", ONE)), with [], gives 200 Some("PassagesResults"), texts::find_passages;
    "document_passages" POST "/v1/passages/documents" Read,
        "find the passages that documents have from earlier ones, or from given sources",
        takes Some(("DocumentPassagesRequest", ONE)), with [], gives 200 Some("DocumentPassages"),
        texts::find_document_passages;
    "extract" POST "/v1/extract" Read, "return the text of a document file",
        takes Some(("DocumentFile", ONE)), with ["name"], gives 200 Some("ExtractedFile"), extraction::extract_file;
    "fingerprint" POST "/v1/fingerprint" Read, "compute the fingerprints of texts",
        takes Some(("FingerprintRequest", ONE)), with [], gives 200 Some("FingerprintResults"),
        texts::fingerprint;
    "segment" POST "/v1/segment" Read, "list the tokens of texts, or their terms with weights",
        takes Some(("SegmentRequest", ONE)), with [], gives 200 Some("SegmentResults"), texts::segment_texts;
    "activity" GET "/v1/activity" Read, "show the documents inserted in the last ten minutes, and the times of inserts",
        takes None, with [], gives 200 Some("Activity"), health::list_activity;
    "live" GET "/livez" Anyone, "report that the service runs",
        takes None, with [], gives 200 Some("Liveness"), health::report_live;
    "ready" GET "/readyz" Anyone, "report whether all collections accept documents",
        takes None, with [], gives 200 Some("Readiness"), health::report_ready;
    "metrics" GET "/metrics" Read, "show metrics for Prometheus",
        takes None, with [], gives 200 None, health::report_metrics;
    "openapi" GET "/openapi.json" Anyone, "describe all calls for programs (OpenAPI)",
        takes None, with [], gives 200 None, health::openapi_document;
    "index" GET "/" Anyone, "describe all calls for people; browsers get the console",
        takes None, with [], gives 200 None, health::api_page;
};

/// A request whose time is measured until its answer has been made.
#[derive(Clone)]
pub(crate) struct TimedRequest {
    pub(crate) service: Arc<ServiceState>,
    call: usize,
    started: Instant,
    record: Arc<RequestRecord>,
}

impl TimedRequest {
    /// Counts the request and the time until now, and logs it.
    pub(crate) fn count_request(&self, status: u16) {
        let took = self.started.elapsed();
        let call = CALLS[self.call].name;
        self.service
            .request_log
            .log_answer(&self.record, call, status, took);
        self.observe_request(status, took);
    }

    /// Counts a request as [`count_request`](Self::count_request) does, and logs that its client disconnected, however
    /// long it took.
    pub(crate) fn count_disconnected(&self, status: u16) {
        let took = self.started.elapsed();
        let call = CALLS[self.call].name;
        self.service
            .request_log
            .log_disconnected(&self.record, call, took);
        self.observe_request(status, took);
    }

    fn observe_request(&self, status: u16, took: Duration) {
        self.service.metrics.observe_call(self.call, status, took);
        let call = CALLS[self.call].name;
        if let Some(traces) = &self.service.traces
            && !is_probe_call(call)
        {
            traces.record_request(&AnsweredRequest {
                record: &self.record,
                call,
                status,
                took,
            });
        }
    }
}

/// Marks a response whose body is still being produced. Its producer counts the request.
#[derive(Clone, Copy)]
pub(crate) struct UnfinishedBody;

/// A request that has passed all general checks.
pub(crate) struct ApiRequest {
    pub(crate) service: Arc<ServiceState>,
    pub(crate) timed: TimedRequest,
    pub(crate) client: ClientId,
    pub(crate) caller: ApiCaller,
    /// Permission of the caller, which can end while the request is open.
    pub(crate) access: RequestAccess,
    /// Name of the collection that the call acts on, by which its access was decided.
    target: Option<String>,
    path: Vec<(String, String)>,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) version: Version,
    body: Body,
}

impl ApiRequest {
    /// Returns a part of the path, percent-decoded.
    pub(crate) fn path_part(&self, name: &str) -> String {
        find_parameter(&self.path, name)
            .unwrap_or_default()
            .to_owned()
    }

    /// Takes the body, of which at most `most` bytes are read.
    ///
    /// # Errors
    /// If its encoding is not supported.
    pub(crate) fn take_body_reader(&mut self, most: u64) -> Result<BodyReader, ApiProblem> {
        let body = std::mem::take(&mut self.body);
        let patience = self.service.config.limits.body_timeout;
        let reader = BodyReader::new(&self.headers, body, most, patience)?;
        Ok(reader.with_access(self.access.clone()))
    }

    /// Returns the name of the collection that the call acts on. It is the name by which access was decided when
    /// the request began: an alias that is switched meanwhile changes neither the collection nor the rights of
    /// the caller.
    pub(crate) fn target_collection(&self) -> String {
        self.target.clone().unwrap_or_default()
    }

    /// Returns the subject of entries of a shared log that change the documents of the collection. It has the alias, too,
    /// if the path named one.
    pub(crate) fn log_subject(&self) -> String {
        let target = self.target_collection();
        match find_parameter(&self.path, "collection") {
            Some(given) if given != target => alias_subject(given, &target),
            _ => target,
        }
    }

    /// Finds the collection again after a wait in which an alias may have been switched, and checks the access to it.
    fn resolve_again(&mut self, call: &ApiCall) -> Result<(), ApiProblem> {
        let given = find_parameter(&self.path, "collection").map(str::to_owned);
        let Some(given) = given.filter(|_| !BY_OWN_NAME.contains(&call.name)) else {
            return Ok(());
        };
        let target = self.service.collections.resolve_name(&given);
        let names = [given.as_str(), target.as_str()];
        self.caller
            .check_access(call.role, call.access_scope(&names))?;
        self.target = Some(target);
        Ok(())
    }

    /// Returns the open collection that the path meant when the request began.
    ///
    /// # Errors
    /// If there is none with this name, or it is not open.
    pub(crate) fn look_up_collection(&self) -> Result<Arc<OpenCollection>, ApiProblem> {
        let name = self.target_collection();
        self.service.collections.look_up_collection(&name)
    }
}

/// Returns the router of all calls.
pub(crate) fn build_router(service: &Arc<ServiceState>) -> Router {
    let mut router = Router::new();
    for (at, call) in CALLS.iter().enumerate() {
        // The table has only methods that the router knows, so the default is never used.
        let filter = MethodFilter::try_from(call.method.clone()).unwrap_or(MethodFilter::GET);
        let mut add_route = |path: &str, named: Option<NamedPart>| {
            let service = Arc::clone(service);
            let answer = move |request: Request| async move {
                answer_call(at, named, service, request).await
            };
            router = std::mem::take(&mut router).route(path, on(filter, answer));
        };
        add_route(call.path, None);
        for (path, named) in call.named_paths() {
            add_route(path, Some(named));
        }
    }
    router
        .fallback(|request: Request| async move {
            let path: String = request.uri().path().chars().take(100).collect();
            let detail = format!("there is no call at '{path}': GET / lists all calls");
            unmatched_response(ProblemCode::NoSuchPlace, detail)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let detail = format!("the path does not take {}", request.method());
            unmatched_response(ProblemCode::MethodNotAllowed, detail)
        })
        .layer(from_fn_with_state(Arc::clone(service), check_and_count))
        .layer(map_response(with_strict_headers))
}

/// Marks the responses to requests that match no call.
#[derive(Clone, Copy)]
struct UnmatchedRequest;

fn unmatched_response(code: ProblemCode, detail: String) -> Response<Body> {
    let mut response = ApiProblem::new(code, detail).to_response();
    response.extensions_mut().insert(UnmatchedRequest);
    response
}

/// Refuses malformed heads, and counts requests that match no call.
async fn check_and_count(
    State(service): State<Arc<ServiceState>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let started = Instant::now();
    let id = RequestId::from_headers(request.headers());
    request.extensions_mut().insert(id.clone());
    let client = request.extensions().get::<PeerAddress>().map(|peer| peer.0);
    let mut response = match check_head(&request, service.config.limits.header) {
        Ok(()) => next.run(request).await,
        Err(problem) => unmatched_response(problem.code, problem.detail),
    };
    if response.extensions().get::<UnmatchedRequest>().is_some() {
        let (status, took) = (response.status().as_u16(), started.elapsed());
        service.metrics.observe_unmatched(status, took);
        let record = RequestRecord::unmatched(id.clone(), client);
        service
            .request_log
            .log_answer(&record, "none", status, took);
    }
    id.add_to_response(&mut response);
    response
}

/// Checks the length of a request head, and that `Host` and `Transfer-Encoding` are unambiguous, so that a
/// proxy and this service cannot interpret the request differently.
fn check_head(request: &Request, most: usize) -> Result<(), ApiProblem> {
    let headers = request.headers();
    let bytes = length_of_head(request);
    if bytes > most {
        let detail =
            format!("the head of the request has {bytes} bytes, more than the limit of {most}");
        return Err(ApiProblem::new(ProblemCode::HeadTooLarge, detail));
    }
    let bad = |detail: &str| Err(ApiProblem::new(ProblemCode::BadRequest, detail));
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
    const REQUEST_LINE_BYTES: usize = " ".len() + " HTTP/1.1\r\n".len() + "\r\n".len();
    const OF_A_LINE: usize = ": ".len() + "\r\n".len();
    let line =
        request.method().as_str().len() + request.uri().to_string().len() + REQUEST_LINE_BYTES;
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + OF_A_LINE);
    line + headers.sum::<usize>()
}

/// Answers a request to the call at a place of the table. `named` is a variable part that the path has by its name.
async fn answer_call(
    at: usize,
    named: Option<NamedPart>,
    service: Arc<ServiceState>,
    request: Request,
) -> Response<Body> {
    let started = Instant::now();
    let (mut parts, body) = request.into_parts();
    let caller = service.reloaded.keys().identify_caller(&parts.headers);
    let address = client_address(&service, &parts);
    let path = path_parameters(&mut parts, named).await;
    let collection = path
        .as_ref()
        .ok()
        .and_then(|path| find_parameter(path, "collection"));
    let record = RequestRecord {
        id: parts
            .extensions
            .get()
            .cloned()
            .unwrap_or_else(RequestId::generate),
        client: address,
        key: caller.key_name().map(str::to_owned),
        collection: collection.map(str::to_owned),
        trace_parent: trace_parent(&parts.headers),
    };
    let timed = TimedRequest {
        service,
        call: at,
        started,
        record: Arc::new(record),
    };
    let call = &CALLS[at];
    let named = timed.record.collection.as_deref();
    // A look at the log costs a request to the store, so the rate is asked for first, and only once.
    let has_token = catch_up_with_name(&timed, call, &caller, named).await;
    let admitted =
        path.and_then(|path| admit_request(call, &timed, caller, path, parts, body, has_token));
    let answered = match admitted {
        Ok(api_request) => answer_while_permitted(call, api_request).await,
        Err(problem) => Err(problem),
    };
    let response = answered.unwrap_or_else(|problem| problem.to_response());
    if response.extensions().get::<UnfinishedBody>().is_none() {
        timed.count_request(response.status().as_u16());
    }
    response
}

/// Answers a request. A call that only reads ends with the access of its caller. One that changes something is
/// completed, because its answer says what was changed, but no more of its body is read.
async fn answer_while_permitted(call: &ApiCall, mut api_request: ApiRequest) -> ApiResult {
    if let Some(asked) = AskedPlace::from_request(call, &api_request)? {
        asked.wait().await?;
        api_request.resolve_again(call)?;
    }
    let access = api_request.access.clone();
    let answer = (call.answer)(api_request);
    if call.role != AccessRole::Read {
        return answer.await;
    }
    tokio::select! {
        biased;
        answered = answer => answered,
        problem = access.wait_until_ended() => Err(problem),
    }
}

/// Returns the names and values of the variable parts of a path.
async fn path_parameters(
    parts: &mut Parts,
    named: Option<NamedPart>,
) -> Result<Vec<(String, String)>, ApiProblem> {
    let path: Result<RawPathParams, RawPathParamsRejection> = parts.extract().await;
    let path = path.map_err(|error| ApiProblem::new(ProblemCode::BadRequest, error.to_string()))?;
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Ok(path.iter().chain(named).map(owned).collect())
}

/// Returns the header `traceparent`, unless it is longer than 128 bytes.
fn trace_parent(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("traceparent")?.to_str().ok()?;
    (value.len() <= 128).then(|| value.to_owned())
}

fn find_parameter<'a>(path: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = path.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

impl TimedRequest {
    /// Returns the client of the request, whom its limits count.
    fn client_of(&self, caller: &ApiCaller) -> ClientId {
        let client = caller.client_id();
        client.unwrap_or_else(|| ClientId::from_address(self.record.client))
    }

    /// Counts the request towards the rate of its client; returns `false` if that exceeds its limit.
    pub(crate) fn take_token(&self, caller: &ApiCaller) -> bool {
        let client = self.client_of(caller);
        self.service.rate.take_token(client, self.started)
    }
}

/// Makes the checks that all calls have in common. `has_token` is `true` if the request has been counted towards the
/// rate of its client.
fn admit_request(
    call: &ApiCall,
    timed: &TimedRequest,
    caller: ApiCaller,
    path: Vec<(String, String)>,
    parts: Parts,
    body: Body,
    has_token: bool,
) -> Result<ApiRequest, ApiProblem> {
    let service = &timed.service;
    if service.config.only_loopback && !is_bare_probe(call, &parts) {
        check_host(&parts.headers, &parts.uri)?;
    }
    let given = find_parameter(&path, "collection");
    let target = given.map(|name| {
        if BY_OWN_NAME.contains(&call.name) {
            name.to_owned()
        } else {
            service.collections.resolve_name(name)
        }
    });
    let names: Vec<_> = given.into_iter().chain(target.as_deref()).collect();
    let scope = call.access_scope(&names);
    caller.check_access(call.role, scope)?;
    let keys = service.reloaded.subscribe_keys();
    let access = RequestAccess::new(caller.clone(), call.role, scope, keys);
    if let Some(connection) = parts.extensions.get::<ConnectionAccess>() {
        connection.set_latest(access.clone());
    }
    if !has_token && !is_probe_path(call.path) && !timed.take_token(&caller) {
        let detail = "the client exceeds its limit of requests per second: send fewer, with more \
                      documents in each";
        return Err(ApiProblem::new(ProblemCode::TooManyRequests, detail));
    }
    check_escapes(parts.uri.path())?;
    if call.path.starts_with(VERSIONED_PREFIX) {
        QueryParameters::parse_query(parts.uri.query(), call.parameters)?;
    }
    Ok(ApiRequest {
        service: Arc::clone(service),
        timed: timed.clone(),
        client: timed.client_of(&caller),
        caller,
        access,
        target,
        path,
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers,
        version: parts.version,
        body,
    })
}

/// Returns the address of the client. For a trusted proxy it is the last address in `X-Forwarded-For`, because
/// the proxy itself has added that one.
fn client_address(service: &ServiceState, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<PeerAddress>();
    // Every request arrives over a connection, so the default is never used.
    let peer = peer.map_or(IpAddr::from(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    let named = service.config.trusts_proxy(peer).then(|| {
        let forwarded = parts
            .headers
            .get_all("x-forwarded-for")
            .iter()
            .next_back()?;
        let last = forwarded.to_str().ok()?.rsplit(',').next()?;
        last.trim().parse().ok()
    });
    named.flatten().unwrap_or(peer)
}

/// Returns `true` for a probe that a load balancer sends in HTTP/1.0 without `Host`. A browser always sends
/// one.
fn is_bare_probe(call: &ApiCall, parts: &Parts) -> bool {
    let names_none = parts.uri.authority().is_none() && !parts.headers.contains_key(header::HOST);
    is_probe_path(call.path) && parts.version == Version::HTTP_10 && names_none
}

/// Checks that every `%` in a path is followed by two hexadecimal digits, because otherwise the id would
/// differ from the one intended.
fn check_escapes(path: &str) -> Result<(), ApiProblem> {
    for rest in path.split('%').skip(1) {
        let digits = rest.bytes().take(2).filter(u8::is_ascii_hexdigit);
        if digits.count() < 2 {
            let shown: String = rest.chars().take(2).collect();
            let detail = format!("the path has '%{shown}', which is not a percent-encoded byte");
            return Err(ApiProblem::new(ProblemCode::BadRequest, detail));
        }
    }
    Ok(())
}

/// Adds headers that keep a browser from interpreting a response as something else.
async fn with_strict_headers(mut response: Response<Body>) -> Response<Body> {
    const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
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
    let headers = response.headers_mut();
    // The console has a policy of its own, which allows its script and its style.
    let own_policy = headers.remove(header::CONTENT_SECURITY_POLICY);
    for (name, value) in SECURITY_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(policy) = own_policy {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
