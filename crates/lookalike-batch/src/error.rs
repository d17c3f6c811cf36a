//! The error of this crate: one opaque type whose text is a sentence naming the value, the limit
//! and the place, with a [`kind`](Error::kind) to act on and the cause kept as its
//! [`source`](std::error::Error::source).

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;

/// What went wrong in a run over files.
///
/// One pointer wide, so that a `Result` of a small value stays small on the hot path.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The classes of errors that a caller may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself makes no sense: options that contradict each other, a field that no
    /// input has, an output over an input.
    Usage,
    /// An input could not be found, opened, read, decompressed or understood as a whole.
    Input,
    /// A row was bad in a run that stops at the first bad row.
    BadRow,
    /// An output could not be created, written, synced or put in place.
    Output,
    /// Whoever read the standard output went away; for a command line this is success.
    BrokenPipe,
    /// A stated limit was passed.
    Limit,
    /// The engine refused a setting or failed.
    Engine,
}

impl Error {
    /// An error of the given kind whose text is `message`, a whole sentence without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            source: None,
        }))
    }

    /// The same error with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What class of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    pub(crate) fn output(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Output, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    pub(crate) fn engine(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Engine, message)
    }

    /// The same error, said of a place: "{place}: {message}".
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// A failed read of `name`: "cannot {action} {name}: {cause}".
    pub(crate) fn reading(action: &str, name: impl fmt::Display, cause: io::Error) -> Self {
        Self::input(format!("cannot {action} {name}: {cause}")).with_source(cause)
    }

    /// A failed write to `name`; a closed pipe gets its own kind.
    pub(crate) fn writing(action: &str, name: impl fmt::Display, cause: io::Error) -> Self {
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

/// How a path is shown in messages: as given, undecodable bytes replaced.
pub(crate) fn shown(path: &Path) -> String {
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
