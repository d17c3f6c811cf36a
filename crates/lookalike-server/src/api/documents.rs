//! Calls on documents and clusters: insert, query, get, delete, list.

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use lookalike::stream::DocumentSlot;
use lookalike::text::AnalysisScratch;
use lookalike_store::{
    ClusterPreference, ClusterSelection, DocumentCluster, DocumentContent, DocumentLookup,
    PreferredDocument, StoredVerdict,
};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use crate::api::listing::parse_filter;
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::api::replicated::{AT_LEAST, delete_through_log, insert_through_log, with_position};
use crate::api::responses::{
    self, BodyKind, FIRST_ANSWER_BYTES, QueryParameters, in_background, in_background_while,
    look_up,
};
use crate::api::router::{ApiRequest, ApiResult};
use crate::api::stream::{DocumentStream, StreamTask, check_room};
use crate::api::text_work::answer_with_work;
use crate::collections::nearest_document::find_nearest;
use crate::collections::open_collection::{AnswerResult, OpenCollection, RefusedDocument};
use crate::json::documents::{DocumentJson, read_query_document};
use crate::json::preference::ClusterPreferenceRule;
use crate::json::verdicts::{ClusterJson, MatchesJson, VerdictJson};
use crate::limits::byte_budget::HeldBytes;
use crate::limits::request_budget::RequestBudget;
use crate::service::ServiceState;

/// Longest queried document, in bytes, that is compared on the request thread, because waking another thread would
/// take longer.
const MAX_SHORT_BYTES: usize = 16 << 10;

/// Clusters on a page: default and maximum.
pub(crate) const CLUSTERS_ON_PAGE: (usize, usize) = (100, 1000);

/// Members listed per cluster, default and maximum: on a page of clusters, and for a single cluster.
pub(crate) const MEMBERS_ON_PAGE: (usize, usize) = (10, 1000);
pub(crate) const MEMBER_LIMITS: (usize, usize) = (1000, 100_000);

/// Newest members per cluster that are compared for `prefer`: on a page of clusters, and for a single cluster.
pub(crate) const COMPARED_ON_PAGE: usize = 100;
pub(crate) const MOST_COMPARED: usize = 10_000;

/// Clusters on a page with `prefer`, because each can have a `meta` of 64 KiB.
pub(crate) const CLUSTERS_WITH_PREFERRED: usize = 100;

/// Bytes of `meta` that are compared for one answer with `prefer`, without those of the representatives.
const COMPARED_BYTES: usize = 16 << 20;

/// Checks and inserts documents. A replica that takes none says so at once, and not on every line of an answer of success.
pub(crate) async fn insert_documents(api_request: ApiRequest) -> ApiResult {
    if let Some(replica) = &api_request.service.replica {
        replica.progress.check_running()?;
    }
    process_body(api_request, StreamTask::Insert).await
}

/// Largest number of matches of a query.
pub(crate) const MAX_MATCHES: usize = 1000;

/// Checks documents without inserting them. With the parameter `limit`, lists the matches of one document, and with
/// `nearest` also the most similar kept document if there is none.
pub(crate) async fn query_documents(api_request: ApiRequest) -> ApiResult {
    let known = ["limit", "nearest", AT_LEAST];
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &known)?;
    let is_given = parameters
        .get_parameter::<String>("limit", "a number")?
        .is_some();
    let limit = is_given.then(|| parameters.count_parameter("limit", 1, MAX_MATCHES));
    let wants_nearest = parameters
        .get_parameter("nearest", "true or false")?
        .unwrap_or(false);
    match limit.transpose()? {
        None if wants_nearest => {
            let detail = "the parameter `nearest` is for one document: give `limit`, too";
            Err(ApiProblem::new(ProblemCode::BadRequest, detail))
        }
        None => process_body(api_request, StreamTask::Query).await,
        Some(limit) => list_matches(api_request, limit, wants_nearest).await,
    }
}

async fn list_matches(mut api_request: ApiRequest, limit: usize, wants_nearest: bool) -> ApiResult {
    drop(api_request.look_up_collection()?);
    if responses::body_kind(&api_request.headers)? != BodyKind::Json {
        let detail = "the parameter `limit` is for one document: give application/json";
        return Err(ApiProblem::new(ProblemCode::UnsupportedType, detail));
    }
    let reader = api_request.take_body_reader(api_request.service.config.limits.document)?;
    let (service, client) = (Arc::clone(&api_request.service), api_request.client);
    let (document, held_bytes) =
        responses::read_whole_body(reader, &service.waiting_budget, client).await?;
    let open = api_request.look_up_collection()?;
    let collection = Arc::clone(&open);
    // The budget is occupied until the search ends, even if the client disconnects.
    let searching = in_background_while(move |may_go_on| {
        let answer = collection.query_matches(&document, limit, may_go_on);
        collection.count_query(&answer);
        (answer, document, held_bytes)
    });
    let (answer, document, held_bytes) = searching.await;
    let (answer, matches) = answer.map_err(|refused| refused.problem)?;
    let is_alone = matches.is_empty() && matches!(answer.verdict, StoredVerdict::Kept);
    if !(wants_nearest && is_alone) {
        let body = MatchesJson::new(&answer, &matches);
        return Ok(responses::json_response(StatusCode::OK, &body));
    }
    let state = Arc::clone(&service);
    // The text, and a kept one beside it.
    let first_bytes = 2 * document.len();
    answer_with_work(&service, client, first_bytes, move |allowance, text| {
        let asked = read_query_document(&document, open.fingerprint_bits())?;
        drop((document, held_bytes));
        let content = match &asked.content {
            DocumentContent::Text(content) => content,
            DocumentContent::Fingerprint(_) => "",
        };
        let nearest = find_nearest(&state, &open, content, answer.stated_id(), allowance)?;
        text.write_json(&MatchesJson::new(&answer, &[]).with_nearest(&nearest))
    })
    .await
}

/// Inserts or queries the documents of a body, as `task` says: a single document, or one on each line.
async fn process_body(api_request: ApiRequest, task: StreamTask) -> ApiResult {
    // A slow body must not keep the collection from being deleted. So the `Arc` is dropped while the body arrives, and
    // looked up again afterwards.
    drop(api_request.look_up_collection()?);
    match responses::body_kind(&api_request.headers)? {
        BodyKind::Json => process_single_document(api_request, task).await,
        BodyKind::Lines => process_document_lines(api_request, task).await,
    }
}

/// Inserts or queries the only document of a body.
async fn process_single_document(mut api_request: ApiRequest, task: StreamTask) -> ApiResult {
    let reader = api_request.take_body_reader(api_request.service.config.limits.document)?;
    let (service, client) = (&api_request.service, api_request.client);
    let (document, held_bytes) =
        responses::read_whole_body(reader, &service.waiting_budget, client).await?;
    let open = api_request.look_up_collection()?;
    if let (StreamTask::Insert, Some(replica)) = (task, &service.replica) {
        let subject = api_request.log_subject();
        let answered = insert_through_log(replica, open, &subject, document, held_bytes).await;
        let (answer, record) = answered?;
        let answer = answer.map_err(|refused| refused.problem)?;
        let response = responses::json_response(StatusCode::OK, &VerdictJson::from(&answer));
        return Ok(with_position(response, record));
    }
    let answer = match task {
        StreamTask::Insert => open.insert_queued(client, document, held_bytes).await,
        StreamTask::Query => {
            let answer = answer_query(service, &open, document, held_bytes).await;
            open.count_query(&answer);
            answer
        }
    };
    let answer = answer.map_err(|refused| refused.problem)?;
    Ok(responses::json_response(
        StatusCode::OK,
        &VerdictJson::from(&answer),
    ))
}

/// Longest work of a query on the thread of its request.
const SHORT_QUERY: Duration = Duration::from_millis(20);

/// Answers the query for a document. A short document is compared at once. A query that takes long is begun again
/// in the background, and ends if its client disconnects.
async fn answer_query(
    service: &ServiceState,
    open: &Arc<OpenCollection>,
    document: Bytes,
    held_bytes: HeldBytes,
) -> AnswerResult {
    if document.len() <= MAX_SHORT_BYTES {
        let answer = run_briefly(&service.short_query_permits, || {
            let begun = Instant::now();
            let may_go_on = || begun.elapsed() < SHORT_QUERY;
            open.query_document(&document, &mut AnalysisScratch::default(), &may_go_on)
        });
        let is_long = |refused: &RefusedDocument| refused.problem.code == ProblemCode::TooSlow;
        if !answer.as_ref().is_err_and(is_long) {
            return answer;
        }
    }
    let open = Arc::clone(open);
    in_background_while(move |may_go_on| {
        let answer = open.query_document(&document, &mut AnalysisScratch::default(), may_go_on);
        // The budget is occupied until here, even if the client disconnects.
        drop(held_bytes);
        answer
    })
    .await
}

/// Inserts or queries the document on each line of a body, and answers while the lines arrive.
async fn process_document_lines(mut api_request: ApiRequest, task: StreamTask) -> ApiResult {
    let limits = api_request.service.config.limits;
    let mut reader = api_request.take_body_reader(limits.body)?;
    if expects_continue(&api_request.headers) {
        check_room(&api_request.service.waiting_budget)?;
        reader.wait_for_begin().await?;
    }
    let stream = DocumentStream {
        open: api_request.look_up_collection()?,
        subject: api_request.log_subject(),
        replica: api_request.service.replica.clone(),
        task,
        reader,
        waiting_budget: Arc::clone(&api_request.service.waiting_budget),
        answer_budget: Arc::clone(&api_request.service.answer_budget),
        timed: api_request.timed,
        client: api_request.client,
        access: api_request.access,
        longest: limits.document as usize,
        patience: limits.body_timeout,
    };
    stream.begin_answer()
}

/// Runs short work that may block on a lock or the disk. Blocks this thread while other request threads
/// remain; otherwise lets the runtime start another one first.
fn run_briefly<T>(permits: &Semaphore, work: impl FnOnce() -> T) -> T {
    match permits.try_acquire() {
        Ok(_permit) => work(),
        Err(_) => block_in_place(work),
    }
}

/// Returns `true` if the client sends its body only after `100 Continue`.
fn expects_continue(headers: &HeaderMap) -> bool {
    let expected = headers.get(header::EXPECT);
    expected.is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Longest text, in bytes, of a document that is returned without a permit.
const SHORT_ANSWER_BYTES: usize = 16 << 10;

/// End of a path whose id is in the query.
const ID_IN_QUERY: &str = "-";

/// Returns the id of the document that a call is about: the end of the path, or the parameter `id` if the path ends in `-`.
/// Clients resolve the segments `.` and `..` of a path, encoded or not, so a path cannot end in such an id.
///
/// # Errors
/// If the path has an id and the query another one.
fn document_id(
    api_request: &ApiRequest,
    parameters: &QueryParameters<'_>,
) -> Result<String, ApiProblem> {
    let in_path = api_request.path_part("id");
    let in_query: Option<String> = parameters.get_parameter("id", "the id of a document")?;
    match in_query {
        None => Ok(in_path),
        Some(id) if in_path == ID_IN_QUERY => Ok(id),
        Some(id) => {
            let (path, query) = (shorten_text(&in_path), shorten_text(&id));
            let detail = format!(
                "the path has the id '{path}' and the parameter `id` is '{query}': give one of them, the parameter with \
                 the path `{ID_IN_QUERY}`"
            );
            Err(ApiProblem::new(ProblemCode::BadRequest, detail))
        }
    }
}

/// Returns a stored document. One with a long text is a long answer.
pub(crate) async fn get_document(api_request: ApiRequest) -> ApiResult {
    let (service, client) = (Arc::clone(&api_request.service), api_request.client);
    let open = api_request.look_up_collection()?;
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &["id", AT_LEAST])?;
    let id = document_id(&api_request, &parameters)?;
    let budget = RequestBudget::new(Arc::clone(&service.answer_budget), client);
    let (collection, wanted) = (Arc::clone(&open), id.clone());
    let found = look_up(move || {
        let found = collection
            .collection
            .find_short_document(&wanted, SHORT_ANSWER_BYTES);
        let found = found.map_err(|error| collection.to_problem(error))?;
        match found.ok_or_else(|| no_document(&wanted))? {
            DocumentLookup::Long { text_bytes } => Ok(Err(text_bytes)),
            DocumentLookup::Short(stored) => {
                let document = DocumentJson::new(&stored, collection.fingerprint_bits());
                responses::counted_answer(budget, &document).map(Ok)
            }
        }
    });
    let text_bytes = match found.await? {
        Ok(response) => return Ok(response),
        Err(text_bytes) => text_bytes,
    };
    let first_bytes = FIRST_ANSWER_BYTES.saturating_add(text_bytes);
    responses::long_answer(service, client, first_bytes, move |text| {
        let stored = open.collection.find_document(&id);
        let stored = stored.map_err(|error| open.to_problem(error))?;
        let stored = stored.ok_or_else(|| no_document(&id))?;
        text.write_json(&DocumentJson::new(&stored, open.fingerprint_bits()))
    })
    .await
}

/// Deletes a document.
pub(crate) async fn delete_document(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &["id"])?;
    let id = document_id(&api_request, &parameters)?;
    if let Some(replica) = &api_request.service.replica {
        drop(open);
        let subject = api_request.log_subject();
        let deleted = delete_through_log(replica, &subject, std::slice::from_ref(&id)).await?;
        let (results, record) = deleted;
        let results: Result<Vec<bool>, ApiProblem> = results.into_iter().collect();
        return if results?.into_iter().all(|was_deleted| was_deleted) {
            Ok(with_position(responses::empty_response(), record))
        } else {
            Err(no_document(&id))
        };
    }
    in_background(move || {
        let was_deleted = open.collection.delete_document(&id);
        if was_deleted.map_err(|error| open.to_problem(error))? {
            Ok(responses::empty_response())
        } else {
            Err(no_document(&id))
        }
    })
    .await
}

fn no_document(id: &str) -> ApiProblem {
    let detail = format!("there is no document '{}'", shorten_text(id));
    ApiProblem::new(ProblemCode::NoDocument, detail)
}

#[derive(Serialize)]
struct ClusterPageJson<'a> {
    clusters: Vec<ClusterJson<'a>>,
    /// Value of `after` for the next page; null at the end.
    next: Option<String>,
}

/// Position at which a page ended.
struct PageCursor(DocumentSlot);

impl FromStr for PageCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (partition, index) = text.split_once('-').ok_or(())?;
        Ok(Self(DocumentSlot {
            partition: partition.parse().map_err(|_| ())?,
            index: index.parse().map_err(|_| ())?,
        }))
    }
}

/// Returns a page of clusters.
pub(crate) async fn list_clusters(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    let known = [
        "after",
        "limit",
        "members",
        "prefer",
        "meta.FIELD",
        AT_LEAST,
    ];
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &known)?;
    let filter = parse_filter(&parameters)?;
    let after: Option<PageCursor> =
        parameters.get_parameter("after", "the `next` of the page before")?;
    let count = parameters.count_parameter("limit", CLUSTERS_ON_PAGE.0, CLUSTERS_ON_PAGE.1)?;
    let members = parameters.count_parameter("members", MEMBERS_ON_PAGE.0, MEMBERS_ON_PAGE.1)?;
    let prefer = preference_parameter(&parameters)?;
    if prefer.is_some() && count > CLUSTERS_WITH_PREFERRED {
        let detail = format!(
            "a page with `prefer` has at most {CLUSTERS_WITH_PREFERRED} clusters, and `limit` is {count}: \
             give a smaller `limit`"
        );
        return Err(ApiProblem::new(ProblemCode::BadRequest, detail));
    }
    if count * members > MEMBER_LIMITS.1 {
        let detail = format!(
            "{count} clusters with {members} members each can exceed the limit of {} members per \
             page: give a smaller `limit` or fewer `members`",
            MEMBER_LIMITS.1
        );
        return Err(ApiProblem::new(ProblemCode::BadRequest, detail));
    }
    let (service, client) = (api_request.service, api_request.client);
    responses::long_answer(service, client, FIRST_ANSWER_BYTES, move |text| {
        let after = after.map(|place| place.0);
        let selection = ClusterSelection {
            count,
            most_members: members,
            accepts: &|meta| filter.accepts_meta(meta),
        };
        let page = open.collection.list_clusters(after, &selection);
        let page = page.map_err(|error| open.to_problem(error))?;
        let preferred =
            find_all_preferred(&open, &page.clusters, prefer.as_ref(), COMPARED_ON_PAGE)?;
        let page = ClusterPageJson {
            clusters: clusters_as_json(&page.clusters, prefer.as_ref(), &preferred),
            next: page
                .continue_after
                .map(|slot| format!("{}-{}", slot.partition, slot.index)),
        };
        text.write_json(&page)
    })
    .await
}

/// Reads the parameter `prefer`.
fn preference_parameter(
    parameters: &QueryParameters<'_>,
) -> Result<Option<ClusterPreferenceRule>, ApiProblem> {
    parameters.get_parameter("prefer", &ClusterPreferenceRule::describe_form())
}

/// Returns the preferred document of every cluster; an empty list if there is no preference. All clusters
/// share one budget of bytes.
fn find_all_preferred(
    open: &OpenCollection,
    clusters: &[DocumentCluster],
    prefer: Option<&ClusterPreferenceRule>,
    most_members: usize,
) -> Result<Vec<Option<PreferredDocument>>, ApiProblem> {
    let Some(rule) = prefer else {
        return Ok(Vec::new());
    };
    let mut left = COMPARED_BYTES;
    let mut all = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        let preference = ClusterPreference {
            compare: &|a, b| rule.compare_metas(a, b),
            most_members,
            most_bytes: left,
        };
        let found = open
            .collection
            .find_preferred(&cluster.kept.id, &preference);
        let found = found.map_err(|error| open.to_problem(error))?;
        let used = found.as_ref().map_or(0, |found| found.considered_bytes);
        left = left.saturating_sub(used);
        all.push(found);
    }
    Ok(all)
}

fn clusters_as_json<'a>(
    clusters: &'a [DocumentCluster],
    prefer: Option<&ClusterPreferenceRule>,
    preferred: &'a [Option<PreferredDocument>],
) -> Vec<ClusterJson<'a>> {
    let all = clusters.iter().map(ClusterJson::from);
    match prefer {
        None => all.collect(),
        Some(rule) => all
            .zip(preferred)
            .map(|(cluster, found)| cluster.with_preferred(rule, found.as_ref()))
            .collect(),
    }
}

/// Returns one cluster.
pub(crate) async fn get_cluster(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    let known = ["id", "after", "members", "prefer", AT_LEAST];
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &known)?;
    let id = document_id(&api_request, &parameters)?;
    let after: Option<u64> =
        parameters.get_parameter("after", "the `next` of the answer before")?;
    let members = parameters.count_parameter("members", MEMBER_LIMITS.0, MEMBER_LIMITS.1)?;
    let prefer = preference_parameter(&parameters)?;
    responses::long_answer(
        api_request.service,
        api_request.client,
        FIRST_ANSWER_BYTES,
        move |text| match open
            .collection
            .find_cluster(&id, after, members)
            .map_err(|error| open.to_problem(error))?
        {
            Some(cluster) => {
                let clusters = [cluster];
                let preferred =
                    find_all_preferred(&open, &clusters, prefer.as_ref(), MOST_COMPARED)?;
                let shown = clusters_as_json(&clusters, prefer.as_ref(), &preferred);
                text.write_json(&shown[0])
            }
            None => {
                let shown = shorten_text(&id);
                let detail = format!(
                    "there is no cluster '{shown}': a cluster has the id of its kept document"
                );
                Err(ApiProblem::new(ProblemCode::NoCluster, detail))
            }
        },
    )
    .await
}
