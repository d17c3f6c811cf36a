//! The one error type of the store.

use std::{fmt, io};

/// What sort of thing went wrong; stable, so callers may match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Settings that cannot be, or contradict one another.
    Setting,
    /// A document that cannot be taken.
    Document,
    /// The id belongs to a document with other content.
    Conflict,
    /// The disk is nearly full: nothing was written.
    Full,
    /// The document takes more work to verify than one may; nothing was written.
    TooCostly,
    /// An earlier write failed: nothing is taken any more until the collection is opened again.
    Stopped,
    /// A file is not what was written.
    Damaged,
    /// The disk refused.
    Disk,
    /// What the engine said.
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

    pub(crate) fn setting(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Setting, message)
    }

    pub(crate) fn document(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Document, message)
    }

    /// A file that is not what was written, and in what.
    pub(crate) fn damaged(file: &str, what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Damaged, format!("'{file}' is damaged: {what}"))
    }

    /// What the disk refused, and of which file.
    pub(crate) fn disk(doing: &str, file: &str, error: &io::Error) -> Self {
        Self::new(ErrorKind::Disk, format!("{doing} '{file}': {error}"))
    }

    /// What sort of thing went wrong.
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
    /// What the store told the engine of a text comes back as it was.
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
