//! Calls about the service: health, metrics, API description.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::access::AccessScope;
use crate::activity::{ActivitySample, SAMPLE_INTERVAL};
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::api::router::{ApiRequest, ApiResult, CALLS};
use crate::api::{openapi as document, responses};
use crate::collections::CollectionStatus;
use crate::metrics::{BUCKET_BOUNDS, ServiceFigures};
use crate::replication::Replica;
use crate::snapshots::SnapshotStore;

/// Reports that the process runs.
pub(crate) async fn report_live(_: ApiRequest) -> ApiResult {
    Ok(responses::json_response(
        StatusCode::OK,
        &json!({ "live": true }),
    ))
}

/// Reports whether every collection accepts documents, can be read and is undamaged as far as is known,
/// and answers 503 if one is not. Names such collections to a caller who may read, and gives others only
/// their number.
pub(crate) async fn report_ready(api_request: ApiRequest) -> ApiResult {
    let service = api_request.service;
    // The state of a collection includes the free space, for which the disk is asked.
    responses::in_background(move || {
        Ok(readiness_response(
            &service.collections.list_states(),
            service.replica.as_deref(),
            api_request.caller.may_read(AccessScope::Service),
        ))
    })
    .await
}

/// States in which a collection does not accept every document that it should.
const UNREADY_STATES: [&str; 6] = [
    "opening",
    "stopped",
    "failed",
    "full",
    "damaged",
    "unreadable",
];

fn readiness_response(
    states: &[(String, CollectionStatus)],
    replica: Option<&Replica>,
    may_read: bool,
) -> Response<Body> {
    let mut body = json!({ "collections": states.len() });
    for unready in UNREADY_STATES {
        body[unready] = json!([]);
    }
    let mut ready = true;
    for (name, state) in states {
        // Only unready states have a list.
        let names = body.get_mut(state.status_name());
        if let Some(names) = names.and_then(Value::as_array_mut) {
            names.push(name.clone().into());
            ready = false;
        }
    }
    if !may_read {
        for unready in UNREADY_STATES {
            body[unready] = body[unready].as_array().map_or(0, Vec::len).into();
        }
    }
    if let Some(replica) = replica {
        let progress = &replica.progress;
        let (lag, stopped) = (progress.current_lag(), progress.stop_reason());
        ready &= stopped.is_none() && progress.is_caught_up();
        body["log"] = json!({
            "replica": replica.settings.name,
            "applied": progress.applied_record(),
            "lag_records": lag.records,
            "lag_seconds": lag.time.as_secs_f64(),
            "caught_up": stopped.is_none() && progress.is_caught_up(),
            "stopped": if may_read { json!(stopped) } else { json!(stopped.is_some()) },
            "unavailable": if may_read {
                json!(progress.store_error())
            } else {
                json!(progress.store_error().is_some())
            },
        });
    }
    body["ready"] = ready.into();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    responses::json_response(status, &body)
}

/// Returns the metrics for Prometheus; with `collection=NAME`, those of one collection in full.
pub(crate) async fn report_metrics(api_request: ApiRequest) -> ApiResult {
    let only = api_request.query.as_deref().unwrap_or_default();
    let mut parameters = only.split('&');
    let only = parameters.find_map(|parameter| parameter.strip_prefix("collection="));
    let only = only.map(|name| api_request.service.collections.resolve_name(name));
    let service = api_request.service;
    responses::in_background(move || {
        let collections = service.collections.list_states();
        if let Some(name) = &only
            && !collections.iter().any(|(known, _)| known == name)
        {
            let detail = format!("there is no collection '{}'", shorten_text(name));
            return Err(ApiProblem::new(ProblemCode::NoCollection, detail));
        }
        let text = service.metrics.render_metrics(&ServiceFigures {
            directory: &service.config.data,
            certificate_expiry: service.reloaded.certificate_expiry(),
            queued: service.waiting_budget.used_bytes(),
            held: service.answer_budget.used_bytes(),
            collections: &collections,
            replica: service.replica.as_deref(),
            snapshots: service
                .snapshots
                .as_ref()
                .map_or_else(BTreeMap::new, SnapshotStore::newest_times),
            only: only.as_deref(),
        });
        Ok(text_response(
            text,
            "text/plain; version=0.0.4; charset=utf-8",
        ))
    })
    .await
}

/// The activity of an interval.
#[derive(Serialize)]
struct ActivitySampleJson {
    /// End of the interval, in UTC.
    time: String,
    seconds: f64,
    kept: u64,
    duplicates: u64,
    /// Requests to insert by the class of their time; empty if there were none.
    insert_times: Vec<u64>,
}

impl From<ActivitySample> for ActivitySampleJson {
    fn from(sample: ActivitySample) -> Self {
        let time = Timestamp::try_from(sample.time).unwrap_or(Timestamp::UNIX_EPOCH);
        let counts = sample.counts;
        let has_inserts = counts.insert_times.iter().any(|&count| count > 0);
        Self {
            time: time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            seconds: sample.length.as_secs_f64(),
            kept: counts.kept,
            duplicates: counts.duplicates,
            insert_times: if has_inserts {
                counts.insert_times.to_vec()
            } else {
                Vec::new()
            },
        }
    }
}

/// Returns the activity of the last ten minutes, the oldest interval first.
pub(crate) async fn list_activity(api_request: ApiRequest) -> ApiResult {
    let samples = api_request.service.activity.list_samples();
    let samples: Vec<_> = samples.into_iter().map(ActivitySampleJson::from).collect();
    let body = json!({
        "interval_seconds": SAMPLE_INTERVAL.as_secs(),
        "bounds_seconds": BUCKET_BOUNDS,
        "samples": samples,
    });
    Ok(responses::json_response(StatusCode::OK, &body))
}

/// Returns the description of all calls in OpenAPI.
pub(crate) async fn openapi_document(_: ApiRequest) -> ApiResult {
    Ok(responses::json_response(
        StatusCode::OK,
        &document::openapi_document(),
    ))
}

/// The page of the console, and its policy. Both are built from `console/`.
const CONSOLE_PAGE: &str = include_str!("../../pages/console.html");
const CONSOLE_POLICY: &str = include_str!("../../pages/console.policy");

/// Returns the console to a browser, and the description of all calls as text to others.
pub(crate) async fn api_page(api_request: ApiRequest) -> ApiResult {
    let accepted = api_request.headers.get(header::ACCEPT);
    let is_browser = accepted.is_some_and(|header| {
        header
            .to_str()
            .is_ok_and(|header| header.contains("text/html"))
    });
    if api_request.service.config.serves_console && is_browser {
        let mut response = text_response(CONSOLE_PAGE.to_owned(), "text/html; charset=utf-8");
        let policy = HeaderValue::from_static(CONSOLE_POLICY);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        return Ok(response);
    }
    let mut text = format!(
        "lookalike {}: finds near-duplicate text.\n\n",
        env!("CARGO_PKG_VERSION")
    );
    for call in &CALLS {
        let _ = writeln!(
            text,
            "{:<6} {:<48} {}",
            call.method.as_str(),
            call.path,
            call.about
        );
    }
    Ok(text_response(text, "text/plain; charset=utf-8"))
}

fn text_response(text: String, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
