//! The error type of the engine.

use std::fmt;

/// The category of an error. The categories are stable, so callers may match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value outside its range, or values that contradict one another.
    Setting,
    /// A recipe that cannot be read, or that asks for something impossible.
    Recipe,
    /// More data than the engine can address or is allowed to hold.
    Limit,
    /// A file that cannot be read, or that has the wrong content.
    File,
    /// The text of a document could not be read again when it was needed.
    Text,
    /// Work beyond the budget for one document.
    TooCostly,
}

/// An error whose text is a sentence that names the value, the limit and the place.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A result of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn setting_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Setting, message)
    }

    pub(crate) fn recipe_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Recipe, message)
    }

    /// Wraps a failed operation on a file: "{what}: {cause}".
    pub(crate) fn file_error(what: &str, cause: std::io::Error) -> Self {
        Self {
            kind: ErrorKind::File,
            message: format!("{what}: {cause}"),
            source: Some(cause.into()),
        }
    }

    /// Wraps the error with which a caller's text source failed to return a document again.
    pub fn text_error(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let source = source.into();
        Self {
            kind: ErrorKind::Text,
            message: source.to_string(),
            source: Some(source),
        }
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}
