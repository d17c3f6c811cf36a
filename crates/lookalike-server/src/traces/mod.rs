//! Traces of requests in the form of OpenTelemetry: one span for each request, which continues the trace that the
//! client sends in `traceparent` (W3C Trace Context). Only a build with the Cargo feature `traces` exports them;
//! health probes have none.

#[cfg(feature = "traces")]
mod export;
#[cfg(not(feature = "traces"))]
#[path = "no_export.rs"]
mod export;

use std::time::Duration;
#[cfg(feature = "traces")]
use std::time::SystemTime;

pub(crate) use self::export::SpanExport;
use crate::api::request_log::RequestRecord;

/// A request that has been answered.
#[cfg_attr(not(feature = "traces"), allow(dead_code))]
pub(crate) struct AnsweredRequest<'a> {
    pub(crate) record: &'a RequestRecord,
    /// Name of the call.
    pub(crate) call: &'static str,
    pub(crate) status: u16,
    pub(crate) took: Duration,
}

#[cfg(feature = "traces")]
impl AnsweredRequest<'_> {
    /// Returns start and end of the request, if it ends now.
    pub(crate) fn times(&self) -> (SystemTime, SystemTime) {
        let end = SystemTime::now();
        (end.checked_sub(self.took).unwrap_or(end), end)
    }
}
