//! Errors as clients see them: `application/problem+json` (RFC 9457), with a stable `code`.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use lookalike_store::{Error, ErrorKind};
use serde::Serialize;

/// Kind of a problem, for programs. Names and statuses are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProblemCode {
    BadRequest,
    BadJson,
    BadBody,
    Unauthenticated,
    Forbidden,
    NoSuchPlace,
    NoCollection,
    NoDocument,
    NoCluster,
    MethodNotAllowed,
    TooSlow,
    IdConflict,
    CollectionConflict,
    SnapshotConflict,
    TooLarge,
    UnsupportedType,
    UnsupportedEncoding,
    WrongHost,
    BadName,
    BadSettings,
    BadDocument,
    TooCostly,
    Busy,
    TooManyRequests,
    Damaged,
    Disk,
    NotReady,
    Stopped,
    Deleting,
    Stopping,
    HeadTooLarge,
    DiskFull,
}

impl ProblemCode {
    pub(crate) const ALL: [Self; 32] = [
        Self::BadRequest,
        Self::BadJson,
        Self::BadBody,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NoSuchPlace,
        Self::NoCollection,
        Self::NoDocument,
        Self::NoCluster,
        Self::MethodNotAllowed,
        Self::TooSlow,
        Self::IdConflict,
        Self::CollectionConflict,
        Self::SnapshotConflict,
        Self::TooLarge,
        Self::UnsupportedType,
        Self::UnsupportedEncoding,
        Self::WrongHost,
        Self::BadName,
        Self::BadSettings,
        Self::BadDocument,
        Self::TooCostly,
        Self::Busy,
        Self::TooManyRequests,
        Self::Damaged,
        Self::Disk,
        Self::NotReady,
        Self::Stopped,
        Self::Deleting,
        Self::Stopping,
        Self::HeadTooLarge,
        Self::DiskFull,
    ];

    pub(crate) fn code_name(self) -> &'static str {
        self.code_details().0
    }

    pub(crate) fn http_status(self) -> StatusCode {
        // Every number in the table is a valid status, so the default is never used.
        StatusCode::from_u16(self.code_details().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn code_details(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::BadRequest => ("bad_request", 400, "The request cannot be understood"),
            Self::BadJson => (
                "bad_json",
                400,
                "The JSON is invalid or does not fit the schema",
            ),
            Self::BadBody => ("bad_body", 400, "The body cannot be read"),
            Self::Unauthenticated => ("unauthenticated", 401, "A key is required"),
            Self::Forbidden => ("forbidden", 403, "The key does not allow this"),
            Self::NoSuchPlace => ("no_such_place", 404, "There is no call at this path"),
            Self::NoCollection => ("no_collection", 404, "There is no such collection"),
            Self::NoDocument => ("no_document", 404, "There is no such document"),
            Self::NoCluster => ("no_cluster", 404, "There is no such cluster"),
            Self::MethodNotAllowed => (
                "method_not_allowed",
                405,
                "The path does not support this method",
            ),
            Self::TooSlow => ("too_slow", 408, "The request did not come in time"),
            Self::IdConflict => ("id_conflict", 409, "The id has other content"),
            Self::CollectionConflict => (
                "collection_conflict",
                409,
                "The collection has other settings",
            ),
            Self::SnapshotConflict => (
                "snapshot_conflict",
                409,
                "The name is in use by another snapshot",
            ),
            Self::TooLarge => (
                "too_large",
                413,
                "The document or the request exceeds a limit",
            ),
            Self::UnsupportedType => (
                "unsupported_type",
                415,
                "This type of body is not supported",
            ),
            Self::UnsupportedEncoding => (
                "unsupported_encoding",
                415,
                "This encoding of the body is not supported",
            ),
            Self::WrongHost => (
                "wrong_host",
                421,
                "The Host of the request is not that of the service",
            ),
            Self::BadName => ("bad_name", 422, "The name is not valid"),
            Self::BadSettings => ("bad_settings", 422, "The settings are not valid"),
            Self::BadDocument => ("bad_document", 422, "The document is not valid"),
            Self::TooCostly => (
                "too_costly",
                422,
                "Verifying the document takes too much work",
            ),
            Self::HeadTooLarge => (
                "head_too_large",
                431,
                "The head of the request exceeds the limit",
            ),
            Self::Busy => ("busy", 429, "The queue is full"),
            Self::TooManyRequests => (
                "too_many_requests",
                429,
                "The client sends too many requests",
            ),
            Self::Damaged => ("damaged", 500, "A file is damaged"),
            Self::Disk => ("disk", 500, "A disk operation failed"),
            Self::NotReady => ("not_ready", 503, "The collection is being opened"),
            Self::Stopped => ("stopped", 503, "The collection accepts no more writes"),
            Self::Deleting => ("deleting", 503, "The collection is being deleted"),
            Self::Stopping => ("stopping", 503, "The service is stopping"),
            Self::DiskFull => ("disk_full", 507, "The disk is nearly full"),
        }
    }

    /// Seconds after which the same request may succeed.
    fn retry_after(self) -> Option<u32> {
        match self {
            Self::Busy | Self::TooManyRequests | Self::Stopping => Some(1),
            Self::NotReady | Self::Deleting => Some(5),
            Self::DiskFull => Some(60),
            _ => None,
        }
    }
}

/// A problem: its kind for programs, and a sentence for people.
#[derive(Debug, Clone)]
pub(crate) struct ApiProblem {
    pub(crate) code: ProblemCode,
    pub(crate) detail: String,
}

/// A problem as it is serialised.
#[derive(Serialize)]
pub(crate) struct ProblemJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'a str,
}

impl ApiProblem {
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    pub(crate) fn to_json(&self) -> ProblemJson<'_> {
        let (code, status, title) = self.code.code_details();
        ProblemJson {
            kind: "about:blank",
            title,
            status,
            code,
            detail: &self.detail,
        }
    }

    pub(crate) fn to_response(&self) -> Response<Body> {
        // Strings and numbers always serialise.
        let body = serde_json::to_vec(&self.to_json()).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.code.http_status();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(seconds) = self.code.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        match self.code {
            ProblemCode::Unauthenticated => {
                let scheme = HeaderValue::from_static("Bearer");
                headers.insert(header::WWW_AUTHENTICATE, scheme);
            }
            ProblemCode::UnsupportedEncoding => {
                let encodings = HeaderValue::from_static("gzip, zstd, identity");
                headers.insert(header::ACCEPT_ENCODING, encodings);
            }
            // The rest of the body is not read.
            ProblemCode::TooSlow
            | ProblemCode::TooLarge
            | ProblemCode::BadBody
            | ProblemCode::HeadTooLarge => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

/// Returns as much of a text as a message shows.
pub(crate) fn shorten_text(text: &str) -> String {
    text.chars().take(60).collect()
}

impl From<Error> for ApiProblem {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Setting => ProblemCode::BadSettings,
            ErrorKind::Document | ErrorKind::Engine => ProblemCode::BadDocument,
            ErrorKind::Conflict => ProblemCode::IdConflict,
            ErrorKind::TooCostly => ProblemCode::TooCostly,
            ErrorKind::Full => ProblemCode::DiskFull,
            ErrorKind::Stopped => ProblemCode::Stopped,
            ErrorKind::Damaged => ProblemCode::Damaged,
            _ => ProblemCode::Disk,
        };
        Self::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = ProblemCode::ALL
            .iter()
            .map(|code| code.code_name())
            .collect();
        assert_eq!(names.len(), ProblemCode::ALL.len());
        for code in ProblemCode::ALL {
            assert_eq!(code.http_status().as_u16(), code.code_details().1);
        }
    }
}
