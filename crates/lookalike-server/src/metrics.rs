//! Metrics of a running service, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use lookalike_store::{CollectionStats, SYNC_BOUNDS_SECONDS, SyncLatency};

use crate::api::router::CALLS;
use crate::collections::CollectionStatus;
use crate::collections::open_collection::{DocumentCounts, OpenCollection};
use crate::process_figures::process_figures;
use crate::replication::Replica;

/// Upper bounds of the histogram buckets, in seconds.
pub(crate) const BUCKET_BOUNDS: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0, 60.0,
];

/// Classes of the times of inserts: one for each bucket, and one for longer times.
pub(crate) const INSERT_TIME_CLASSES: usize = BUCKET_BOUNDS.len() + 1;

/// Counters of the service.
pub(crate) struct ServiceMetrics {
    started: SystemTime,
    calls: Vec<CallMetrics>,
    /// Requests that matched no call.
    unmatched: CallMetrics,
    /// Connections that ended because a request head could not be parsed.
    pub(crate) malformed: AtomicU64,
    /// Connections closed at once because their address had too many.
    pub(crate) refused_connections: AtomicU64,
    pub(crate) connections: AtomicU64,
    /// Scheduled snapshots that could not be made.
    failed_snapshots: AtomicU64,
}

#[derive(Default)]
struct CallMetrics {
    buckets: [AtomicU64; BUCKET_BOUNDS.len()],
    count: AtomicU64,
    microseconds: AtomicU64,
    /// Counts by the first digit of the status.
    statuses: [AtomicU64; 6],
}

impl CallMetrics {
    fn observe_request(&self, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BUCKET_BOUNDS.iter().position(|&bound| seconds <= bound) {
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
            started: SystemTime::now(),
            calls: CALLS.iter().map(|_| CallMetrics::default()).collect(),
            unmatched: CallMetrics::default(),
            malformed: AtomicU64::new(0),
            refused_connections: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            failed_snapshots: AtomicU64::new(0),
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

    /// Counts a scheduled snapshot that could not be made.
    pub(crate) fn count_failed_snapshot(&self) {
        self.failed_snapshots.fetch_add(1, Relaxed);
    }

    /// Returns the number of requests to insert by the class of their time, since the start.
    pub(crate) fn count_insert_times(&self) -> [u64; INSERT_TIME_CLASSES] {
        let mut times = [0; INSERT_TIME_CLASSES];
        let Some((inserts, _)) = self.named_calls().find(|(_, name)| *name == "insert") else {
            return times;
        };
        // The number of all is read last, so that it is at least the sum of the others.
        for (time, bucket) in times.iter_mut().zip(&inserts.buckets) {
            *time = bucket.load(Relaxed);
        }
        let within: u64 = times.iter().sum();
        times[INSERT_TIME_CLASSES - 1] = inserts.count.load(Relaxed).saturating_sub(within);
        times
    }

    /// Returns the counters of all calls with their names.
    fn named_calls(&self) -> impl Iterator<Item = (&CallMetrics, &'static str)> {
        let names = CALLS.iter().map(|about| about.name);
        let calls = self.calls.iter().zip(names);
        calls.chain([(&self.unmatched, "none")])
    }

    /// Returns all metrics as text.
    pub(crate) fn render_metrics(&self, figures: &ServiceFigures<'_>) -> String {
        let mut page = MetricsPage::default();
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        let name = "lookalike_build_info";
        page.push_family(
            name,
            "gauge",
            "1; the label has the version of the program.",
        );
        page.push_sample(name, &version, 1);
        for (name, kind, help, value) in process_figures(self.started, figures.directory) {
            page.push_family(name, kind, help);
            page.push_sample(name, "", value);
        }
        if let Some(expiry) = figures.certificate_expiry {
            let name = "lookalike_certificate_expiry_seconds";
            page.push_family(
                name,
                "gauge",
                "When the first certificate of the chain expires, in seconds since 1970.",
            );
            page.push_sample(name, "", expiry);
        }
        self.append_requests(&mut page);
        let count = |count: &AtomicU64| count.load(Relaxed);
        page.push_figures([
            (
                "lookalike_malformed_requests_total",
                "counter",
                "Connections that ended because the head of a request was malformed or too large.",
                count(&self.malformed),
            ),
            (
                "lookalike_refused_connections_total",
                "counter",
                "Connections that were closed at once because their address had the maximum number.",
                count(&self.refused_connections),
            ),
            (
                "lookalike_failed_snapshots_total",
                "counter",
                "Scheduled snapshots that could not be made.",
                count(&self.failed_snapshots),
            ),
            (
                "lookalike_connections",
                "gauge",
                "Open connections.",
                count(&self.connections),
            ),
            (
                "lookalike_queue_bytes",
                "gauge",
                "Bytes of documents that wait for their answers.",
                figures.queued,
            ),
            (
                "lookalike_answer_bytes",
                "gauge",
                "Bytes of answers that clients have not read.",
                figures.held,
            ),
        ]);
        if let Some(replica) = figures.replica {
            append_log_figures(replica, &mut page);
        }
        CollectionFigures::new(figures).append_to(&mut page);
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
            let buckets = call.buckets.each_ref().map(|bucket| bucket.load(Relaxed));
            let count = call.count.load(Relaxed);
            let microseconds = call.microseconds.load(Relaxed);
            page.push_histogram(name, &about, &BUCKET_BOUNDS, &buckets, count, microseconds);
        }
    }
}

/// Appends how far a replica has followed the shared log.
fn append_log_figures(replica: &Replica, page: &mut MetricsPage) {
    let progress = &replica.progress;
    let lag = progress.current_lag();
    let count = |count: &AtomicU64| count.load(Relaxed);
    page.push_figures([
        (
            "lookalike_log_applied_record",
            "gauge",
            "Number of the last record of the shared log that this replica has applied.",
            progress.applied_record(),
        ),
        (
            "lookalike_log_lag_records",
            "gauge",
            "Records of the shared log that this replica knows and has not applied.",
            lag.records,
        ),
        (
            "lookalike_log_caught_up",
            "gauge",
            "1 if this replica has caught up with the shared log; 0 while it restores or catches up, or once it has stopped.",
            progress.check_running().is_ok().into(),
        ),
        (
            "lookalike_log_appends_total",
            "counter",
            "Records that this replica has written.",
            count(&progress.appended),
        ),
        (
            "lookalike_log_conflicts_total",
            "counter",
            "Records that another replica has written first.",
            count(&progress.conflicts),
        ),
        (
            "lookalike_log_errors_total",
            "counter",
            "Requests that the store of the shared log has refused or not answered.",
            count(&progress.store_errors),
        ),
        (
            "lookalike_log_unavailable",
            "gauge",
            "1 while the store of the shared log refuses requests or does not answer, so that changes wait.",
            progress.store_error().is_some().into(),
        ),
        (
            "lookalike_log_stopped",
            "gauge",
            "1 if this replica has stopped, because the log is damaged, its state differs or its disk failed.",
            progress.stop_reason().is_some().into(),
        ),
    ]);
    let name = "lookalike_log_lag_seconds";
    let help = "Age of the last applied record, while known ones are not applied.";
    page.push_family(name, "gauge", help);
    page.push_sample(name, "", lag.time.as_secs_f64());
}

/// A page of metrics that is being written.
#[derive(Default)]
struct MetricsPage(String);

impl MetricsPage {
    fn push_family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Appends families of one sample each, by name, kind, help and value.
    fn push_figures<'a>(
        &mut self,
        figures: impl IntoIterator<Item = (&'a str, &'a str, &'a str, u64)>,
    ) {
        for (name, kind, help, value) in figures {
            self.push_family(name, kind, help);
            self.push_sample(name, "", value);
        }
    }

    /// Appends a histogram: counts by upper bound in seconds, and the number of events with the sum of their
    /// microseconds.
    fn push_histogram(
        &mut self,
        name: &str,
        labels: &str,
        bounds: &[f64],
        buckets: &[u64],
        count: u64,
        microseconds: u64,
    ) {
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (bound, events) in bounds.iter().zip(buckets) {
            below += events;
            self.push_sample(&bucket, &format!("{labels},le=\"{bound}\""), below);
        }
        self.push_sample(&bucket, &format!("{labels},le=\"+Inf\""), count);
        let seconds = microseconds as f64 / 1e6;
        self.push_sample(&format!("{name}_sum"), labels, seconds);
        self.push_sample(&format!("{name}_count"), labels, count);
    }

    fn push_sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }
}

/// Figures that the metrics show beside the counters.
pub(crate) struct ServiceFigures<'a> {
    /// The part of the service that follows a shared log.
    pub(crate) replica: Option<&'a Replica>,
    /// Directory of the collections.
    pub(crate) directory: &'a Path,
    /// When the certificate expires, in seconds since 1970, if connections are encrypted.
    pub(crate) certificate_expiry: Option<i64>,
    /// Bytes of documents that wait for their answers.
    pub(crate) queued: u64,
    /// Bytes of answers that clients have not taken.
    pub(crate) held: u64,
    /// All collections.
    pub(crate) collections: &'a [(String, CollectionStatus)],
    /// Times of the newest snapshot of each collection, as far as is known.
    pub(crate) snapshots: BTreeMap<String, SystemTime>,
    /// The only collection to be shown, if one is named.
    pub(crate) only: Option<&'a str>,
}

/// Largest number of collections of which each has all series. With more, most series are sums over all
/// collections, so that the page stays short.
const MANY_COLLECTIONS: usize = 50;

/// Label of the sums over all collections. No collection has this name.
const ALL_COLLECTIONS: &str = "*";

/// The figures of collections.
struct CollectionFigures<'a> {
    states: Vec<&'a (String, CollectionStatus)>,
    open: Vec<OpenFigures<'a>>,
    snapshots: &'a BTreeMap<String, SystemTime>,
    is_summed: bool,
}

/// The figures of an open collection.
struct OpenFigures<'a> {
    open: &'a OpenCollection,
    /// `None` if it cannot be asked.
    stats: Option<CollectionStats>,
}

/// A figure of an open collection: rest of its name, kind, description, value.
type OpenFigure = (
    &'static str,
    &'static str,
    &'static str,
    fn(&OpenFigures<'_>) -> Option<u64>,
);

/// Figures that every collection has, however many there are.
const OF_EACH: [OpenFigure; 2] = [
    (
        "collection_rows",
        "gauge",
        "Documents in the collection.",
        |collection| Some(collection.stats.as_ref()?.rows),
    ),
    (
        "collection_kept",
        "gauge",
        "Kept documents that a document can match.",
        |collection| Some(collection.stats.as_ref()?.kept),
    ),
];

/// Figures that are summed if there are many collections.
const OF_FEW: [OpenFigure; 4] = [
    (
        "collection_damaged",
        "gauge",
        "1 if a damaged file of the collection was found.",
        |collection| Some(collection.open.is_damaged().into()),
    ),
    (
        "collection_unreadable",
        "gauge",
        "1 while the disk refuses to read a file of the collection.",
        |collection| Some(collection.open.still_refuses_reads().into()),
    ),
    (
        "collection_dead_rows",
        "gauge",
        "Rows on disk of deleted, replaced or moved documents, and of their deletions.",
        |collection| Some(collection.stats.as_ref()?.dead_rows),
    ),
    (
        "collection_partitions",
        "gauge",
        "Partitions on disk.",
        |collection| Some(collection.stats.as_ref()?.partitions),
    ),
];

/// A number of documents by result.
type ResultCount = (&'static str, fn(&DocumentCounts) -> &AtomicU64);

const RESULT_COUNTS: [ResultCount; 7] = [
    ("kept", |counts| &counts.kept),
    ("duplicate", |counts| &counts.duplicate),
    ("late", |counts| &counts.late),
    ("again", |counts| &counts.again),
    ("refused", |counts| &counts.refused),
    ("queried", |counts| &counts.queried),
    ("refused_query", |counts| &counts.refused_query),
];

impl<'a> CollectionFigures<'a> {
    fn new(figures: &'a ServiceFigures<'a>) -> Self {
        let is_shown = |name: &str| figures.only.is_none_or(|only| only == name);
        let states = figures.collections.iter();
        let states: Vec<_> = states.filter(|(name, _)| is_shown(name)).collect();
        let open = states.iter().filter_map(|(_, state)| match state {
            CollectionStatus::Open(open) => Some(OpenFigures {
                open,
                stats: open.collection.collect_stats().ok(),
            }),
            _ => None,
        });
        Self {
            open: open.collect(),
            snapshots: &figures.snapshots,
            is_summed: states.len() > MANY_COLLECTIONS,
            states,
        }
    }

    /// Appends all figures. Names of collections need no escapes in labels.
    fn append_to(&self, page: &mut MetricsPage) {
        let name = "lookalike_collection_up";
        page.push_family(name, "gauge", "1 if the collection accepts documents.");
        for (collection, state) in &self.states {
            let up = matches!(state, CollectionStatus::Open(open) if open.takes_documents());
            page.push_sample(name, &format!("collection=\"{collection}\""), u8::from(up));
        }
        for (figure, kind, help, value) in OF_EACH {
            let name = format!("lookalike_{figure}");
            page.push_family(&name, kind, help);
            for it in &self.open {
                if let Some(value) = value(it) {
                    page.push_sample(&name, &format!("collection=\"{}\"", it.open.name), value);
                }
            }
        }
        let name = "lookalike_snapshot_age_seconds";
        page.push_family(
            name,
            "gauge",
            "Age of the newest snapshot of the collection, if it has one.",
        );
        for it in &self.open {
            if let Some(time) = self.snapshots.get(&it.open.name) {
                let age = time.elapsed().unwrap_or_default().as_secs();
                page.push_sample(name, &format!("collection=\"{}\"", it.open.name), age);
            }
        }
        for (figure, kind, help, value) in OF_FEW {
            self.append_figure(page, figure, kind, help, |collection| {
                value(collection)
                    .map(|value| (String::new(), value))
                    .into_iter()
                    .collect()
            });
        }
        let help = "Documents and lines since the start, by result: kept and duplicate were inserted, again \
            had been sent before, late were answered but not stored, refused were rejected; queried and \
            refused_query count queries.";
        self.append_figure(page, "documents_total", "counter", help, |collection| {
            let count = |(result, count): &ResultCount| {
                (
                    format!(",result=\"{result}\""),
                    count(&collection.open.counts).load(Relaxed),
                )
            };
            RESULT_COUNTS.iter().map(count).collect()
        });
        self.append_syncs(page);
        let help = "Bytes of memory of a collection, by part.";
        self.append_figure(page, "memory_bytes", "gauge", help, |collection| {
            let passages = Some(("passages", collection.open.passages.memory_bytes()));
            let passages = passages.filter(|search| search.1 > 0);
            let parts = collection.stats.iter().flat_map(|stats| &stats.memory);
            parts
                .copied()
                .chain(passages)
                .map(|(part, bytes)| (format!(",part=\"{part}\""), bytes))
                .collect()
        });
    }

    /// Appends the times of commits, of each collection or, with many collections, of all together.
    fn append_syncs(&self, page: &mut MetricsPage) {
        let name = "lookalike_sync_seconds";
        page.push_family(
            name,
            "histogram",
            "Seconds until a commit, with all documents that waited for it, was on disk.",
        );
        let mut push = |collection: &str, latency: &SyncLatency| {
            let labels = format!("collection=\"{collection}\"");
            page.push_histogram(
                name,
                &labels,
                &SYNC_BOUNDS_SECONDS,
                &latency.buckets,
                latency.count,
                latency.microseconds,
            );
        };
        let mut all = SyncLatency::default();
        for it in &self.open {
            let latency = it.open.collection.sync_latency();
            if self.is_summed {
                all.add_commits(&latency)
            } else {
                push(&it.open.name, &latency)
            }
        }
        if self.is_summed {
            push(ALL_COLLECTIONS, &all);
        }
    }

    /// Appends a figure whose samples in each collection differ by further labels. With many collections, it
    /// appends the sums of equal labels.
    fn append_figure(
        &self,
        page: &mut MetricsPage,
        figure: &str,
        kind: &str,
        help: &str,
        samples: impl Fn(&OpenFigures<'_>) -> Vec<(String, u64)>,
    ) {
        let name = format!("lookalike_{figure}");
        page.push_family(&name, kind, help);
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for it in &self.open {
            for (labels, value) in samples(it) {
                if self.is_summed {
                    *sums.entry(labels).or_default() += value;
                } else {
                    let labels = format!("collection=\"{}\"{labels}", it.open.name);
                    page.push_sample(&name, &labels, value);
                }
            }
        }
        for (labels, sum) in sums {
            let labels = format!("collection=\"{ALL_COLLECTIONS}\"{labels}");
            page.push_sample(&name, &labels, sum);
        }
    }
}
