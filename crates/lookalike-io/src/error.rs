//! The error type of this crate. It is opaque: its text is a sentence that names the value, the limit
//! and the place, its [`kind`](Error::kind) is for programs, and its
//! [`source`](std::error::Error::source) is the cause.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;

/// An error of reading, of writing, or of a run over files.
///
/// It is one pointer wide, so that a `Result` of a small value stays small in hot loops.
pub struct Error(Box<ErrorInner>);

struct ErrorInner {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of errors, for callers that handle some of them separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is contradictory: for example options that exclude each other, a field that no input
    /// has, or an output that would overwrite an input.
    Usage,
    /// An input could not be found, opened, read, decompressed or parsed as a whole.
    Input,
    /// A row was bad in a run that stops at the first bad row.
    BadRow,
    /// An output could not be created, written, synced or put in place.
    Output,
    /// The reader of standard output closed the pipe; a command line treats this as success.
    BrokenPipe,
    /// A stated limit was exceeded.
    Limit,
    /// The engine refused a setting or failed.
    Engine,
}

impl Error {
    /// Creates an error with the given text: a sentence without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorInner {
            kind,
            message: message.into(),
            source: None,
        }))
    }

    /// Adds the cause of the error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Creates an error of the kind [`ErrorKind::Usage`].
    pub fn usage_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Creates an error of the kind [`ErrorKind::Input`].
    pub fn input_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// Creates an error of the kind [`ErrorKind::Output`].
    pub fn output_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Output, message)
    }

    /// Creates an error of the kind [`ErrorKind::Limit`].
    pub fn limit_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// Creates an error of the kind [`ErrorKind::Engine`].
    pub fn engine_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Engine, message)
    }

    /// Prefixes the message with a place: "{place}: {message}".
    #[must_use]
    pub fn with_place(mut self, place: &str) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// Creates the error of a failed read of `name`: "cannot {action} {name}: {cause}".
    pub fn read_error(action: &str, name: impl fmt::Display, cause: io::Error) -> Self {
        Self::input_error(format!("cannot {action} {name}: {cause}")).with_source(cause)
    }

    /// Creates the error of a failed write to `name`. A closed pipe has a kind of its own.
    pub fn write_error(action: &str, name: impl fmt::Display, cause: io::Error) -> Self {
        let kind = match cause.kind() {
            io::ErrorKind::BrokenPipe => ErrorKind::BrokenPipe,
            _ => ErrorKind::Output,
        };
        Self::new(kind, format!("cannot {action} {name}: {cause}")).with_source(cause)
    }
}

impl From<lookalike::Error> for Error {
    fn from(error: lookalike::Error) -> Self {
        Self::new(ErrorKind::Engine, error.to_string()).with_source(error)
    }
}

/// Returns a path as messages show it: as given, with undecodable bytes replaced.
pub fn display_path(path: &Path) -> String {
    path.display().to_string()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
