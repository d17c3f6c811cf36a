//! The host that a request names.
//!
//! A service without keys answers only requests that name it by a loopback address, so that a web page cannot
//! reach it from a browser under a host name of its own (DNS rebinding).

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};

/// Checks that a request names the service by a loopback address or `localhost`.
///
/// # Errors
/// [`ProblemCode::WrongHost`] if it names another host or none.
pub(crate) fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), ApiProblem> {
    let stated = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let authority = uri
        .authority()
        .map(|authority| authority.as_str())
        .or(stated);
    let host = authority.unwrap_or_default();
    if is_loopback(host) {
        return Ok(());
    }
    let told = match host {
        "" => "has no Host header".to_owned(),
        host => format!("is for '{}'", shorten_text(host)),
    };
    Err(ApiProblem::new(
        ProblemCode::WrongHost,
        format!(
            "the request {told}, and a service without keys answers only requests for a loopback \
             address or localhost"
        ),
    ))
}

/// Returns `true` if an authority, a host with an optional port, names this machine by loopback.
fn is_loopback(host: &str) -> bool {
    let parts = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']'),
        None => Some(host.split_at(host.find(':').unwrap_or(host.len()))),
    };
    let Some((name, port)) = parts else {
        return false;
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let address = name
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    address || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_several_names() {
        for host in [
            "localhost",
            "LOCALHOST:7600",
            "127.0.0.1:7600",
            "127.1.2.3",
            "[::1]:7600",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "127.0.0.1.example.com",
            "[::2]:1",
            "10.0.0.1",
            "localhost.x",
            "localhost:80@example.com",
            "localhost:700000",
            "[::1]x",
            "[::1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
