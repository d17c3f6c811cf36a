//! Metrics of a running service, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::api::router::CALLS;
use crate::collections::CollectionStatus;

/// Upper bounds of the histogram buckets, in seconds.
const BOUNDS: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0, 60.0,
];

/// Counters of the service.
pub(crate) struct ServiceMetrics {
    calls: Vec<CallMetrics>,
    /// Requests that matched no call.
    unmatched: CallMetrics,
    /// Connections that ended because a request head could not be parsed.
    pub(crate) malformed: AtomicU64,
    /// Connections closed at once because their address had too many.
    pub(crate) refused_connections: AtomicU64,
    pub(crate) connections: AtomicU64,
}

#[derive(Default)]
struct CallMetrics {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
    /// Counts by the first digit of the status.
    statuses: [AtomicU64; 6],
}

impl CallMetrics {
    fn observe_request(&self, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|&bound| seconds <= bound) {
            self.buckets[bucket].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.microseconds
            .fetch_add(took.as_micros() as u64, Relaxed);
        let class = usize::from(status / 100).min(self.statuses.len() - 1);
        self.statuses[class].fetch_add(1, Relaxed);
    }
}

impl ServiceMetrics {
    pub(crate) fn new() -> Self {
        Self {
            calls: CALLS.iter().map(|_| CallMetrics::default()).collect(),
            unmatched: CallMetrics::default(),
            malformed: AtomicU64::new(0),
            refused_connections: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }
    }

    /// Counts a request by its position in [`CALLS`]. Its time ends with the head of the response, and for
    /// bulk requests with the last answer.
    pub(crate) fn observe_call(&self, call: usize, status: u16, took: Duration) {
        self.calls[call].observe_request(status, took);
    }

    /// Counts a request that matched no call.
    pub(crate) fn observe_unmatched(&self, status: u16, took: Duration) {
        self.unmatched.observe_request(status, took);
    }

    /// Returns the counters of all calls with their names.
    fn named_calls(&self) -> impl Iterator<Item = (&CallMetrics, &'static str)> {
        let names = CALLS.iter().map(|about| about.name);
        let calls = self.calls.iter().zip(names);
        calls.chain([(&self.unmatched, "none")])
    }
    /// Returns all metrics as text. `queued` is the number of bytes waiting, `held` that of untaken answers.
    pub(crate) fn render_metrics(
        &self,
        queued: u64,
        held: u64,
        collections: &[(String, CollectionStatus)],
    ) -> String {
        let mut page = MetricsPage::default();
        self.append_requests(&mut page);
        let name = "lookalike_malformed_requests_total";
        let help = "Connections that ended because the head of a request was malformed or too \
            large.";
        page.push_family(name, "counter", help);
        page.push_sample(name, "", self.malformed.load(Relaxed));
        let name = "lookalike_refused_connections_total";
        let help =
            "Connections that were closed at once because their address had the maximum number.";
        page.push_family(name, "counter", help);
        page.push_sample(name, "", self.refused_connections.load(Relaxed));
        page.push_family("lookalike_connections", "gauge", "Open connections.");
        page.push_sample("lookalike_connections", "", self.connections.load(Relaxed));
        let help = "Bytes of documents that wait for their answers.";
        page.push_family("lookalike_queue_bytes", "gauge", help);
        page.push_sample("lookalike_queue_bytes", "", queued);
        let help = "Bytes of answers that clients have not read.";
        page.push_family("lookalike_answer_bytes", "gauge", help);
        page.push_sample("lookalike_answer_bytes", "", held);
        page.collections(collections);
        page.0
    }

    fn append_requests(&self, page: &mut MetricsPage) {
        let name = "lookalike_requests_total";
        let help = "Requests by call and status class; call=\"none\" counts requests that match no \
            call.";
        page.push_family(name, "counter", help);
        for (call, about) in self.named_calls() {
            for (class, count) in call.statuses.iter().enumerate().skip(2) {
                let labels = format!("call=\"{about}\",status=\"{class}xx\"");
                page.push_sample(name, &labels, count.load(Relaxed));
            }
        }
        let name = "lookalike_request_seconds";
        page.push_family(
            name,
            "histogram",
            "Seconds until the head of the answer is sent, by call; for documents in bulk, until \
             the last answer is ready.",
        );
        for (call, about) in self.named_calls() {
            let about = format!("call=\"{about}\"");
            let mut below = 0;
            for (bound, bucket) in BOUNDS.iter().zip(&call.buckets) {
                below += bucket.load(Relaxed);
                page.push_sample(
                    &format!("{name}_bucket"),
                    &format!("{about},le=\"{bound}\""),
                    below,
                );
            }
            let count = call.count.load(Relaxed);
            page.push_sample(
                &format!("{name}_bucket"),
                &format!("{about},le=\"+Inf\""),
                count,
            );
            let seconds = call.microseconds.load(Relaxed) as f64 / 1e6;
            page.push_sample(&format!("{name}_sum"), &about, seconds);
            page.push_sample(&format!("{name}_count"), &about, count);
        }
    }
}

/// A page of metrics that is being written.
#[derive(Default)]
struct MetricsPage(String);

impl MetricsPage {
    fn push_family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn push_sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    /// Names of collections need no escapes in labels.
    fn collections(&mut self, collections: &[(String, CollectionStatus)]) {
        let name = "lookalike_collection_up";
        self.push_family(name, "gauge", "1 if the collection accepts documents.");
        for (collection, state) in collections {
            let up = matches!(state, CollectionStatus::Open(open) if open.takes_documents());
            self.push_sample(name, &format!("collection=\"{collection}\""), u8::from(up));
        }
        let open = collections.iter().filter_map(|(_, state)| match state {
            CollectionStatus::Open(open) => Some(open),
            _ => None,
        });
        let open: Vec<_> = open.collect();
        let name = "lookalike_collection_damaged";
        let help = "1 if a damaged file of the collection was found.";
        self.push_family(name, "gauge", help);
        for open in &open {
            let labels = format!("collection=\"{}\"", open.name);
            self.push_sample(name, &labels, u8::from(open.is_damaged()));
        }
        let name = "lookalike_collection_unreadable";
        let help = "1 while the disk refuses to read a file of the collection.";
        self.push_family(name, "gauge", help);
        for open in &open {
            let labels = format!("collection=\"{}\"", open.name);
            self.push_sample(name, &labels, u8::from(open.still_refuses_reads()));
        }
        let name = "lookalike_documents_total";
        let help = "Documents and lines since the start, by result: kept and duplicate were \
                    inserted, again had been sent before, late were answered but not stored, \
                    refused were rejected; queried and refused_query count queries.";
        self.push_family(name, "counter", help);
        for open in &open {
            let counts = &open.counts;
            for (result, count) in [
                ("kept", &counts.kept),
                ("duplicate", &counts.duplicate),
                ("late", &counts.late),
                ("again", &counts.again),
                ("refused", &counts.refused),
                ("queried", &counts.queried),
                ("refused_query", &counts.refused_query),
            ] {
                let labels = format!("collection=\"{}\",result=\"{result}\"", open.name);
                self.push_sample(name, &labels, count.load(Relaxed));
            }
        }
        let stats: Vec<_> = open
            .iter()
            .filter_map(|open| Some((open.name.as_str(), open.collection.collect_stats().ok()?)))
            .collect();
        type Figure = fn(&lookalike_store::CollectionStats) -> u64;
        let gauges: [(&str, &str, Figure); 4] = [
            ("rows", "Documents in the collection.", |stats| stats.rows),
            (
                "dead_rows",
                "Rows on disk of deleted, replaced or moved documents, and of their deletions.",
                |stats| stats.dead_rows,
            ),
            (
                "kept",
                "Kept documents that a document can match.",
                |stats| stats.kept,
            ),
            ("partitions", "Partitions on disk.", |stats| {
                stats.partitions
            }),
        ];
        for (figure, help, of) in gauges {
            let name = format!("lookalike_collection_{figure}");
            self.push_family(&name, "gauge", help);
            for (collection, stats) in &stats {
                self.push_sample(&name, &format!("collection=\"{collection}\""), of(stats));
            }
        }
        let name = "lookalike_memory_bytes";
        self.push_family(name, "gauge", "Bytes of memory of a collection, by part.");
        for (collection, stats) in &stats {
            for (part, bytes) in &stats.memory {
                let labels = format!("collection=\"{collection}\",part=\"{part}\"");
                self.push_sample(name, &labels, bytes);
            }
        }
    }
}
