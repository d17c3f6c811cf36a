//! Export of spans to a collector, by OTLP over HTTP.
//!
//! A thread of its own sends spans in batches. If the collector does not answer, spans are dropped, and requests
//! do not wait.

use std::thread;

use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use super::AnsweredRequest;
use crate::error::{Error, Result, with_context};

/// Exports spans of requests. Which share of new traces is exported follows the usual environment variables
/// (`OTEL_TRACES_SAMPLER`); a trace that the client has begun follows the client.
pub(crate) struct SpanExport {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

impl SpanExport {
    /// Exports to a collector, such as `http://localhost:4318/v1/traces`. The collector need not run yet.
    ///
    /// # Errors
    /// If the URL is not valid.
    pub(crate) fn open_endpoint(url: &str) -> Result<Self> {
        let what = format!("--traces {url}");
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Error::new(format!(
                "{what}: give a URL, such as http://localhost:4318/v1/traces"
            )));
        }
        // Without an installed provider the client cannot use TLS.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let endpoint = url.to_owned();
        // The exporter's client blocks, so it must not be made on a thread of the runtime.
        let made = thread::spawn(move || {
            SpanExporter::builder()
                .with_http()
                .with_protocol(Protocol::HttpBinary)
                .with_endpoint(endpoint)
                .build()
        });
        let exporter = made.join().expect("the exporter does not panic");
        let exporter = exporter.map_err(with_context(what))?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(Resource::builder().with_service_name("lookalike").build())
            .build();
        Ok(Self {
            tracer: provider.tracer("lookalike"),
            provider,
            propagator: TraceContextPropagator::new(),
        })
    }

    /// Records the span of a request.
    pub(crate) fn record_request(&self, request: &AnsweredRequest<'_>) {
        let (start, end) = request.times();
        let record = request.record;
        let parent = ParentHeader(record.trace_parent.as_deref());
        let parent = self
            .propagator
            .extract_with_context(&Context::new(), &parent);
        let mut attributes = vec![
            KeyValue::new("http.response.status_code", i64::from(request.status)),
            KeyValue::new("client.address", record.client.to_string()),
            KeyValue::new("request.id", record.id.to_string()),
        ];
        let named = [
            ("lookalike.key", &record.key),
            ("lookalike.collection", &record.collection),
        ];
        for (name, value) in named {
            attributes.extend(
                value
                    .as_ref()
                    .map(|value| KeyValue::new(name, value.clone())),
            );
        }
        let mut span = self
            .tracer
            .span_builder(request.call)
            .with_kind(SpanKind::Server)
            .with_start_time(start)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &parent);
        if request.status >= 500 {
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(end);
    }

    /// Sends what waits, and ends the export. Waits a few seconds at most.
    pub(crate) fn finish_export(&self) {
        let provider = self.provider.clone();
        let ended = thread::spawn(move || provider.shutdown());
        if let Ok(Err(error)) = ended.join() {
            tracing::warn!(%error, "the last traces were not exported");
        }
    }
}

/// The header `traceparent` of a request.
struct ParentHeader<'a>(Option<&'a str>);

impl Extractor for ParentHeader<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.filter(|_| key.eq_ignore_ascii_case("traceparent"))
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|_| "traceparent").collect()
    }
}
