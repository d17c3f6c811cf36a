//! The host that a request names.
//!
//! A service without API keys answers only requests that name it by a loopback address, so that a web page cannot
//! reach it from a browser under a host name of its own (DNS rebinding).

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};

/// Checks that a request names the service by a loopback address or `localhost`.
///
/// # Errors
/// [`ProblemCode::WrongHost`] if it names another host or none.
pub(crate) fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), ApiProblem> {
    let host_header = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let authority = uri
        .authority()
        .map(|authority| authority.as_str())
        .or(host_header);
    let authority = authority.unwrap_or_default();
    if is_loopback(authority) {
        return Ok(());
    }
    let complaint = match authority {
        "" => "names no host".to_owned(),
        authority => format!("is for '{}'", shorten_text(authority)),
    };
    Err(ApiProblem::new(
        ProblemCode::WrongHost,
        format!(
            "the request {complaint}, and a service without API keys answers only requests for a loopback \
             address or localhost"
        ),
    ))
}

/// Returns `true` if `authority` names this machine by loopback. It is a host with an optional port.
fn is_loopback(authority: &str) -> bool {
    let parts = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']'),
        None => Some(authority.split_at(authority.find(':').unwrap_or(authority.len()))),
    };
    let Some((name, port)) = parts else {
        return false;
    };
    if !port.is_empty() && !is_port(port) {
        return false;
    }
    let is_loopback_address = name
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    is_loopback_address || name.eq_ignore_ascii_case("localhost")
}

/// Returns `true` for a colon and at most five digits. RFC 3986 allows a colon without digits.
fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|digits| digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()))
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
            "[::1]:",
            "localhost:",
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
            "[::1]80",
            "[::1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
