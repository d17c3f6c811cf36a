//! The reach of a stream in memory.

use std::num::NonZeroU64;
use std::time::Duration;

use lookalike::stream::{StreamReach, StreamWindow};

use crate::option_error::{OptionError, OptionErrorKind};

/// Options of the reach of a stream, as a user gives them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamOptions {
    /// Largest difference of times.
    pub window: Option<Duration>,
    /// Number of documents before one with which it is compared.
    pub window_documents: Option<u64>,
    /// Largest lead of a time over the wall clock.
    pub skew: Duration,
    /// `true` if a duplicate renews the window of its original.
    pub refresh: bool,
}

impl StreamOptions {
    /// Returns the documents that a new one is compared with.
    ///
    /// # Errors
    /// If both windows are given, or one of them is 0 or beyond its limit.
    pub fn to_reach(&self) -> Result<StreamReach, OptionError> {
        let refresh = self.refresh;
        match (self.window, self.window_documents) {
            (None, None) => Ok(StreamReach::Everything),
            (Some(window), None) => StreamWindow::new(window, self.skew, refresh)
                .map(StreamReach::Time)
                .map_err(|error| {
                    OptionError::new(OptionErrorKind::OutOfRange, error.to_string())
                }),
            (None, Some(last)) => match NonZeroU64::new(last) {
                Some(last) => Ok(StreamReach::Documents { last, refresh }),
                None => Err(OptionError::new(
                    OptionErrorKind::OutOfRange,
                    "window_documents is 0: give at least 1, or leave it out to compare with all documents"
                        .to_owned(),
                )),
            },
            (Some(_), Some(last)) => Err(OptionError::new(
                OptionErrorKind::Contradiction,
                format!(
                    "window_documents is {last}, and there is a window of time, too: leave one of them out"
                ),
            )),
        }
    }
}
