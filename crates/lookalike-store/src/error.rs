//! The error type of the store.

use std::{fmt, io};

/// Kind of an error. Kinds are stable, so callers may match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Settings are invalid or contradict one another.
    Setting,
    /// A document is not acceptable.
    Document,
    /// A decision on two texts is not acceptable.
    Decision,
    /// The id belongs to a document with other content.
    Conflict,
    /// The disk is nearly full; nothing was written.
    Full,
    /// Nobody waits for the result any more.
    Cancelled,
    /// The document takes more work to verify than one may; nothing was written.
    TooCostly,
    /// An earlier write failed: the collection accepts no more writes until it is opened again.
    Stopped,
    /// A file is damaged.
    Damaged,
    /// A disk operation failed.
    Disk,
    /// The engine reported an error.
    Engine,
}

/// An error whose text is a sentence that names the value, the limit and the place.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// A result of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn setting_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Setting, message)
    }

    pub(crate) fn document_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Document, message)
    }

    /// Returns the error of a damaged file.
    pub(crate) fn damaged_file(file: &str, what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Damaged, format!("'{file}' is damaged: {what}"))
    }

    /// Returns the error of a failed disk operation on a file.
    pub(crate) fn disk_error(doing: &str, file: &str, error: &io::Error) -> Self {
        Self::new(ErrorKind::Disk, format!("{doing} '{file}': {error}"))
    }

    /// Returns `true` if the error is that of this machine, so that another replica of a shared log may not have it.
    /// [`ErrorKind::Full`] is not: of the inserts of a log, only those beyond the limit of rows meet it.
    pub(crate) fn is_local(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Disk | ErrorKind::Damaged | ErrorKind::Stopped
        )
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<lookalike::Error> for Error {
    /// Restores an error of the store that passed through the engine; wraps any other error.
    fn from(error: lookalike::Error) -> Self {
        let told = std::error::Error::source(&error).and_then(|source| source.downcast_ref());
        match told {
            Some(told) => Self::clone(told),
            None if error.kind() == lookalike::ErrorKind::TooCostly => {
                Self::new(ErrorKind::TooCostly, error.to_string())
            }
            None => Self::new(ErrorKind::Engine, error.to_string()),
        }
    }
}
