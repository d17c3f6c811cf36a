//! What the service says of itself: health, metrics, its description.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use super::api::{Answered, Asked, CALLS};
use super::{openapi as document, reply};

/// It runs.
pub(super) async fn live(_: Asked) -> Answered {
    Ok(reply::json(StatusCode::OK, &json!({ "live": true })))
}

/// Whether every collection takes documents; 503 while one does not, with its name.
pub(super) async fn ready(asked: Asked) -> Answered {
    let states = asked.service.collections.states();
    let names = |wanted: &str| {
        let of_state = states.iter().filter(|(_, state)| state.name() == wanted);
        of_state.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let (opening, stopped, failed) = (names("opening"), names("stopped"), names("failed"));
    let ready = opening.is_empty() && stopped.is_empty() && failed.is_empty();
    let body = json!({
        "ready": ready,
        "collections": states.len(),
        "opening": opening,
        "stopped": stopped,
        "failed": failed,
    });
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Ok(reply::json(status, &body))
}

/// Figures for Prometheus.
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

/// The description of all calls as OpenAPI.
pub(super) async fn openapi(_: Asked) -> Answered {
    Ok(reply::json(StatusCode::OK, &document::document()))
}

/// The description of all calls as text.
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
