//! The error type of this crate: why a service or a snapshot could not be started or opened.
//!
//! Its text is a sentence that names the value, the limit and the place. Errors of requests are
//! [`ApiProblem`](crate::api::problem::ApiProblem) instead, because clients receive them.

use std::fmt::{self, Display};

/// An error of the service outside requests.
#[derive(Debug)]
pub struct Error(String);

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error with the given text: a sentence without a full stop.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<lookalike_log::StoreError> for Error {
    fn from(error: lookalike_log::StoreError) -> Self {
        Self(format!("the shared log: {error}"))
    }
}

/// Prefixes an error with its subject.
pub(crate) fn with_context<E: Display>(what: impl Display) -> impl FnOnce(E) -> Error {
    move |cause| Error(format!("{what}: {cause}"))
}

/// Returns an error with a formatted message from the calling function.
macro_rules! bail {
    ($($text:tt)*) => {
        return Err($crate::error::Error::new(format!($($text)*)))
    };
}

pub(crate) use bail;
