//! Calls about the service: health, metrics, API description.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::api::{Answered, Asked, CALLS};
use super::collections::State;
use super::{openapi as document, reply};

/// Reports that the process runs.
pub(super) async fn live(_: Asked) -> Answered {
    Ok(reply::json(StatusCode::OK, &json!({ "live": true })))
}

/// Reports whether every collection accepts documents, can be read and is undamaged as far as is known, and answers
/// 503 if one is not. Names such collections to a caller who may read, and gives others only their number.
pub(super) async fn ready(asked: Asked) -> Answered {
    let service = asked.service;
    // The state of a collection includes the free space, for which the disk is asked.
    reply::in_background(move || Ok(readiness(&service.collections.states(), asked.may_read))).await
}

/// States in which a collection does not accept every document that it should.
const UNREADY: [&str; 6] = [
    "opening",
    "stopped",
    "failed",
    "full",
    "damaged",
    "unreadable",
];

fn readiness(states: &[(String, State)], may_read: bool) -> Response<Body> {
    let mut body = json!({ "collections": states.len() });
    for unready in UNREADY {
        body[unready] = json!([]);
    }
    let mut ready = true;
    for (name, state) in states {
        // Only unready states have a list.
        let names = body.get_mut(state.name());
        if let Some(names) = names.and_then(Value::as_array_mut) {
            names.push(name.clone().into());
            ready = false;
        }
    }
    if !may_read {
        for unready in UNREADY {
            body[unready] = body[unready].as_array().map_or(0, Vec::len).into();
        }
    }
    body["ready"] = ready.into();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    reply::json(status, &body)
}

/// Returns the metrics for Prometheus.
pub(super) async fn metrics(asked: Asked) -> Answered {
    let service = asked.service;
    reply::in_background(move || {
        let states = service.collections.states();
        let text = service
            .metrics
            .text(service.queued(), service.held(), &states);
        Ok(text_of(text, "text/plain; version=0.0.4; charset=utf-8"))
    })
    .await
}

/// Returns the description of all calls in OpenAPI.
pub(super) async fn openapi(_: Asked) -> Answered {
    Ok(reply::json(StatusCode::OK, &document::document()))
}

/// Returns the description of all calls as text.
pub(super) async fn page(_: Asked) -> Answered {
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
    Ok(text_of(text, "text/plain; charset=utf-8"))
}

fn text_of(text: String, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
