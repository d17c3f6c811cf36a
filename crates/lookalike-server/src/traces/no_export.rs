//! Replaces `export` in a build without traces: every address is refused.

use std::convert::Infallible;

use super::AnsweredRequest;
use crate::error::{Result, bail};

/// Exports spans, which cannot exist in this build.
pub(crate) struct SpanExport(Infallible);

impl SpanExport {
    /// Refuses every address.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn open_endpoint(url: &str) -> Result<Self> {
        bail!(
            "--traces {url}: this program was built without traces: leave the option out, or build the program \
             with `--features traces`"
        )
    }

    pub(crate) fn record_request(&self, _request: &AnsweredRequest<'_>) {
        match self.0 {}
    }

    pub(crate) fn finish_export(&self) {
        match self.0 {}
    }
}
