//! Errors as clients see them: `application/problem+json` (RFC 9457), with a stable `code`.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use lookalike_store::{Error, ErrorKind};
use serde::Serialize;

/// Makes [`ProblemCode`] of a table of kinds, each with its name, status and title.
macro_rules! problem_codes {
    ($($kind:ident $name:ident $status:literal $title:literal,)*) => {
        /// Kind of a problem, for programs. Names and statuses are part of the interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ProblemCode {
            $($kind),*
        }

        impl ProblemCode {
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),*];

            fn code_details(self) -> (&'static str, u16, &'static str) {
                match self {
                    $(Self::$kind => (stringify!($name), $status, $title)),*
                }
            }
        }
    };
}

problem_codes! {
    BadRequest bad_request 400 "The request cannot be understood",
    BadJson bad_json 400 "The JSON is invalid or does not fit the schema",
    BadBody bad_body 400 "The body cannot be read",
    Unauthenticated unauthenticated 401 "A key is required",
    Forbidden forbidden 403 "The key does not allow this",
    NoSuchPlace no_such_place 404 "There is no call at this path",
    NoCollection no_collection 404 "There is no such collection",
    NoSnapshot no_snapshot 404 "There is no such snapshot",
    NoAlias no_alias 404 "There is no such alias",
    NoRecipe no_recipe 404 "There is no such recipe",
    NoDocument no_document 404 "There is no such document",
    NoDecision no_decision 404 "There is no such decision",
    NoCluster no_cluster 404 "There is no such cluster",
    MethodNotAllowed method_not_allowed 405 "The path does not support this method",
    TooSlow too_slow 408 "The request did not come in time",
    IdConflict id_conflict 409 "The id has other content",
    CollectionConflict collection_conflict 409 "The name has another collection or alias",
    RecipeConflict recipe_conflict 409 "The recipe is in use, or there are too many",
    SnapshotConflict snapshot_conflict 409 "The name is in use by another snapshot",
    TooLarge too_large 413 "The document or the request exceeds a limit",
    UnsupportedType unsupported_type 415 "This type of body is not supported",
    UnsupportedEncoding unsupported_encoding 415 "This encoding of the body is not supported",
    WrongHost wrong_host 421 "The Host of the request is not that of the service",
    BadName bad_name 422 "The name is not valid",
    BadSettings bad_settings 422 "The settings are not valid",
    BadDocument bad_document 422 "The document is not valid",
    BadDecision bad_decision 422 "The decision is not valid",
    TooCostly too_costly 422 "The request takes too much work",
    Busy busy 429 "The queue is full",
    TooManyRequests too_many_requests 429 "The client sends too many requests",
    Damaged damaged 500 "A file is damaged",
    Disk disk 500 "A disk operation failed",
    LogUnavailable log_unavailable 503 "The shared log cannot be reached",
    LogStopped log_stopped 503 "The replica has stopped",
    CatchingUp catching_up 503 "The replica is catching up with the shared log",
    Behind behind 503 "The replica has not applied the asked place yet",
    PassagesNotReady passages_not_ready 503 "The passages of the collection are being indexed",
    NotReady not_ready 503 "The collection is being opened",
    Stopped stopped 503 "The collection accepts no more writes",
    Deleting deleting 503 "The collection is being deleted",
    Stopping stopping 503 "The service is stopping",
    HeadTooLarge head_too_large 431 "The head of the request exceeds the limit",
    PassageMemory passage_memory 507 "The indexes of passages exceed their memory",
    DiskFull disk_full 507 "The disk is nearly full",
}

impl ProblemCode {
    pub(crate) fn code_name(self) -> &'static str {
        self.code_details().0
    }

    pub(crate) fn http_status(self) -> StatusCode {
        // Every number in the table is a valid status, so the default is never used.
        StatusCode::from_u16(self.code_details().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the seconds after which the same request may succeed.
    fn retry_after(self) -> Option<u32> {
        match self {
            Self::Busy
            | Self::TooManyRequests
            | Self::Stopping
            | Self::LogUnavailable
            | Self::CatchingUp
            | Self::Behind
            | Self::PassagesNotReady => Some(1),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl ApiProblem {
    /// Creates a problem. A detail that repeats a long value of the request is shortened in its middle, because its
    /// beginning names the place and its end says what to do.
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            code,
            detail: shorten_middle(detail),
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
            request_id: None,
        }
    }

    /// Serialises the problem, with the id of the request if it is known.
    pub(crate) fn to_bytes(&self, request_id: Option<&str>) -> Vec<u8> {
        let json = ProblemJson {
            request_id,
            ..self.to_json()
        };
        // Strings and numbers always serialise.
        serde_json::to_vec(&json).unwrap_or_default()
    }

    /// Returns the response to a request. It carries the problem, so that the id of the request can be added.
    pub(crate) fn to_response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.to_bytes(None)));
        response.extensions_mut().insert(self.clone());
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

/// Characters that stay at the beginning and at the end of a detail that has more than both together.
const DETAIL_BEGINNING: usize = 1200;
const DETAIL_END: usize = 600;

/// Removes the middle of a detail that is too long.
fn shorten_middle(detail: String) -> String {
    // Few details are long, and none with fewer bytes has more characters.
    if detail.len() <= DETAIL_BEGINNING + DETAIL_END {
        return detail;
    }
    let characters = detail.chars().count();
    if characters <= DETAIL_BEGINNING + DETAIL_END {
        return detail;
    }
    let beginning = detail.chars().take(DETAIL_BEGINNING);
    let end = detail.chars().skip(characters - DETAIL_END);
    beginning.chain(['…']).chain(end).collect()
}

/// Returns the beginning of a text, as a message shows it.
pub(crate) fn shorten_text(text: &str) -> String {
    text.chars().take(60).collect()
}

impl From<Error> for ApiProblem {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Setting => ProblemCode::BadSettings,
            ErrorKind::Document | ErrorKind::Engine => ProblemCode::BadDocument,
            ErrorKind::Decision => ProblemCode::BadDecision,
            ErrorKind::Conflict => ProblemCode::IdConflict,
            ErrorKind::Cancelled => ProblemCode::TooSlow,
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
    fn long_details_lose_their_middle() {
        for sign in ["a", "质"] {
            let longest = sign.repeat(DETAIL_BEGINNING + DETAIL_END);
            let kept = ApiProblem::new(ProblemCode::BadRequest, longest.clone());
            assert_eq!(kept.detail, longest);
            let cut = ApiProblem::new(ProblemCode::BadRequest, format!("the {longest}: give"));
            assert_eq!(
                cut.detail.chars().count(),
                DETAIL_BEGINNING + 1 + DETAIL_END
            );
            assert!(cut.detail.starts_with("the ") && cut.detail.ends_with(": give"));
        }
    }

    #[test]
    fn problem_codes_are_unique() {
        let names: std::collections::BTreeSet<_> = ProblemCode::ALL
            .iter()
            .map(|code| code.code_name())
            .collect();
        assert_eq!(names.len(), ProblemCode::ALL.len());
        for &code in ProblemCode::ALL {
            assert_eq!(code.http_status().as_u16(), code.code_details().1);
        }
    }
}
