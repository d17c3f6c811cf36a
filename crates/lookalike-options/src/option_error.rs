//! The error of options that cannot be used.

use std::error::Error;
use std::fmt;

/// An option that cannot be used. Its text is a sentence without a full stop, which spells the option as its user does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError {
    kind: OptionErrorKind,
    message: String,
}

/// The kinds of errors of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OptionErrorKind {
    /// No choice has the given name.
    UnknownName,
    /// A number is outside of its range.
    OutOfRange,
    /// Options contradict each other, or one has no effect.
    Contradiction,
    /// A file that an option names cannot be read, or is not valid.
    UnreadableFile,
}

impl OptionError {
    pub(crate) fn new(kind: OptionErrorKind, message: String) -> Self {
        Self { kind, message }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> OptionErrorKind {
        self.kind
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for OptionError {}
