//! Arguments of `serve`: on the command line, in the configuration file or in the environment.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lookalike_options::units::{parse_duration, parse_size};
use lookalike_server::SnapshotPlace;
use serde::Deserialize;

use crate::commands::shared::running::{parse_limit, parse_threads};

/// Run the HTTP service: collections that check and insert documents
///
/// Each document is checked and inserted in one step, and the answer follows when the document is on disk: of
/// two near-duplicates sent at the same moment, exactly one is kept. Each collection is a directory below
/// --data. Every option can also be set in a file (--config, TOML, named as here without the dashes) and in
/// the environment (LOOKALIKE_ and the name in capitals, with _ for -). The command line wins over the
/// environment, which wins over the file.
///
/// On SIGHUP, the service reads the keys and the certificate again; if one of them is not valid, the former
/// stays in use. On SIGTERM or SIGINT, the service takes no new requests, finishes those that it has, and stops. A second
/// signal stops it at once.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(after_help = "\
Examples:
  lookalike serve --data /var/lib/lookalike
  lookalike serve --data data --listen 0.0.0.0:7600 --keys keys.txt --tls-cert cert.pem --tls-key key.pem

A key file has one line per key: its role (read, write or admin), a space, and `sha256:` with the
SHA-256 of the key in hexadecimal digits, as `printf %s \"$KEY\" | sha256sum` prints it. A key has at
least 16 bytes. More may follow: name=NAME, under which the key appears in the log; expires=TIME, from
which it is refused (2027-01-31 or 2027-01-31T12:00:00Z); collections=NAME,NAME, to which it is limited
(news-* stands for all names that begin so). The environment can hold one key of each role:
LOOKALIKE_READ_KEY, LOOKALIKE_WRITE_KEY, LOOKALIKE_ADMIN_KEY.")]
pub(crate) struct ServeArgs {
    /// File with these options
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CONFIG", hide_env = true)]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,

    /// Directory of the collections; created if it does not exist
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_DATA", hide_env = true)]
    pub(crate) data: Option<PathBuf>,

    /// Address to listen on
    ///
    /// Default: 127.0.0.1:7600. An address that other machines can reach needs keys.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "LOOKALIKE_LISTEN",
        hide_env = true
    )]
    pub(crate) listen: Option<ListenAddress>,

    /// Directory below which snapshots are written, or the URL of a prefix in an object store
    ///
    /// Without it, the service makes no snapshots. For an object store (s3://bucket/prefix, gs://…, az://…),
    /// keys, region and endpoint come from the environment, under the names that its own tools use:
    /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT, GOOGLE_APPLICATION_CREDENTIALS,
    /// AZURE_STORAGE_ACCOUNT_NAME and so on. Only a program built with `--features object-store` supports
    /// object stores.
    #[arg(
        long,
        value_name = "PLACE",
        env = "LOOKALIKE_SNAPSHOTS",
        hide_env = true
    )]
    pub(crate) snapshots: Option<SnapshotPlace>,

    /// Time between two automatic snapshots of each collection: a number with the unit s, m, h or d; needs
    /// --snapshots
    ///
    /// They are named auto- and the time in UTC. Without this option, snapshots are made on request alone.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_SNAPSHOT_EVERY",
        hide_env = true
    )]
    pub(crate) snapshot_every: Option<PeriodArg>,

    /// Number of automatic snapshots of a collection that stay; older ones are deleted once a newer one is
    /// complete
    ///
    /// Default: 7. Snapshots that were made on request are never deleted automatically.
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_limit,
        env = "LOOKALIKE_SNAPSHOT_KEEP",
        hide_env = true
    )]
    pub(crate) snapshot_keep: Option<usize>,

    /// URL of the shared log that this service follows, with other replicas: a prefix of an object store
    ///
    /// s3://bucket/prefix, gs://…, az://… or file:///directory; settings of the store come from the environment, as for
    /// --snapshots. What changes the state becomes a record of the log before it is answered, and all replicas of
    /// one log give the same verdicts. A data directory with collections can begin a new log; otherwise it must
    /// be empty or belong to the log. Only a program built with `--features object-store` supports it.
    #[arg(
        long,
        value_name = "URL",
        env = "LOOKALIKE_SHARED_LOG",
        hide_env = true,
        help_heading = "Replicas"
    )]
    pub(crate) shared_log: Option<String>,

    /// Name of this replica, which no other replica of the log has
    ///
    /// Default: the name of the machine.
    #[arg(
        long,
        value_name = "NAME",
        env = "LOOKALIKE_REPLICA",
        hide_env = true,
        help_heading = "Replicas"
    )]
    pub(crate) replica: Option<String>,

    /// Records that all replicas together write per second on average; more documents make larger records
    ///
    /// Default: 4. Object stores charge for each record. A lone change is written at once, and so is a record with
    /// 512 changes or more.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        env = "LOOKALIKE_LOG_WRITES_PER_SECOND",
        hide_env = true,
        help_heading = "Replicas"
    )]
    pub(crate) log_writes_per_second: Option<u32>,

    /// Time between two snapshots beside the log, from which new replicas start: a number with the unit s, m, h or
    /// d
    ///
    /// One of the replicas with this option makes each. Without it, a new replica reads the whole log, and nothing is
    /// removed from the log.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_SNAPSHOT_LOG_EVERY",
        hide_env = true,
        help_heading = "Replicas"
    )]
    pub(crate) snapshot_log_every: Option<PeriodArg>,

    /// Time for which the log and its snapshots stay, so that `store restore --at` reaches back so far; needs
    /// --snapshot-log-every
    ///
    /// Default: 2d, at least 1h. Records that a replica has not applied stay longer, and so do the last two snapshots.
    /// Deleted texts are in the records until these are removed.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_KEEP_LOG",
        hide_env = true,
        help_heading = "Replicas"
    )]
    pub(crate) keep_log: Option<PeriodArg>,

    /// Number of threads that prepare documents. Default: one per core
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_threads,
        env = "LOOKALIKE_THREADS",
        hide_env = true
    )]
    pub(crate) threads: Option<usize>,

    /// File with the accepted keys
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_KEYS",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) keys: Option<PathBuf>,

    /// Serve clients without a key, on any address
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        env = "LOOKALIKE_ALLOW_UNAUTHENTICATED",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) allow_unauthenticated: Option<bool>,

    /// Serve no console: browsers get the list of calls at `/`, as other programs do
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        env = "LOOKALIKE_NO_CONSOLE",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) no_console: Option<bool>,

    /// Certificate and its chain (PEM); needs --tls-key
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_CERT",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_KEY",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// Maximum number of open connections; beyond it, only health probes are answered
    ///
    /// Default: 1024.
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_limit,
        env = "LOOKALIKE_CONNECTIONS",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) connections: Option<usize>,

    /// Maximum number of open connections from one address; further ones are closed. 0: no limit
    ///
    /// Default: 256. For IPv6, addresses with the same first 64 bits count as one.
    #[arg(
        long,
        value_name = "N",
        env = "LOOKALIKE_CONNECTIONS_PER_ADDRESS",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) connections_per_address: Option<usize>,

    /// Maximum number of requests per second from one client, identified by its key or else its address. 0:
    /// no limit
    ///
    /// Default: 0. Health probes do not count. A client that was idle may send the requests of one second at
    /// once.
    #[arg(
        long,
        value_name = "N",
        env = "LOOKALIKE_MAX_RATE",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_rate: Option<u32>,

    /// Addresses of trusted proxies, separated by commas: the client of such a proxy is the last address in
    /// X-Forwarded-For
    ///
    /// A trusted proxy may open any number of connections.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "LOOKALIKE_TRUSTED_PROXY",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) trusted_proxy: Option<ProxyAddresses>,

    /// Maximum size of a request head, which is the first line and all headers: bytes, or with the unit K, M,
    /// G (of 1000) or Ki, Mi, Gi (of 1024); at least 8Ki
    ///
    /// Default: 32Ki. A head has at most 100 headers, whatever their size.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_HEADER",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_header: Option<ByteSize>,

    /// Maximum size of a document: one JSON object, or one line of many
    ///
    /// Default: 16Mi.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_DOCUMENT",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_document: Option<ByteSize>,

    /// Maximum size of a request body after decompression
    ///
    /// Default: 4Gi.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_BODY",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_body: Option<ByteSize>,

    /// Maximum bytes of documents that wait for their answers; beyond it, requests are refused until there is
    /// room
    ///
    /// Default: 256Mi. One client can hold at most eight times the bytes that are left to others. Answers
    /// that clients have not read may take the same number of bytes again.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_QUEUE",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_queue: Option<ByteSize>,

    /// Maximum time for the head of a request, and for an idle connection: a number with the unit s, m, h or
    /// d
    ///
    /// Default: 20s.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_HEADER_TIMEOUT",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) header_timeout: Option<PeriodArg>,

    /// Maximum time in which a body brings less than 1 KiB, or a client reads nothing of its answer
    ///
    /// Default: 30s. After that, both must go on at 32 KiB per second or more.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_BODY_TIMEOUT",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) body_timeout: Option<PeriodArg>,

    /// Maximum time for open requests after a signal to stop
    ///
    /// Default: 30s.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_DRAIN",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) drain: Option<PeriodArg>,

    /// Disk space that stays free; documents that would leave less are refused
    ///
    /// Documents that let a part of the window expire may use half of it. Snapshots leave the same space free
    /// on their disk. Default: 256Mi.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_HEADROOM",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) headroom: Option<ByteSize>,

    /// Maximum number of steps for verifying one document, where texts are compared by edit distance or
    /// common substring; beyond it, the document is refused
    ///
    /// A step is 64 cells of the table of two texts, a few nanoseconds. Default: 16777216. A document that
    /// would be kept may take half of them.
    #[arg(
        long,
        value_name = "N",
        env = "LOOKALIKE_MAX_VERIFICATION_STEPS",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_verification_steps: Option<u64>,

    /// Maximum number of steps of a request that finds passages; beyond it, the request is refused
    ///
    /// A step is the work on one token, some nanoseconds. Default: 1000000000. A request with `"partial": true` is
    /// answered with the passages found so far instead.
    #[arg(
        long,
        value_name = "N",
        env = "LOOKALIKE_MAX_PASSAGE_STEPS",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_passage_steps: Option<u64>,

    /// Memory of the indexes of passages, of all collections together; beyond it, a search for passages is refused
    ///
    /// Default: 1Gi, which is enough for some 3 GB of texts. An index is made at the first search.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_PASSAGE_MEMORY",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) passage_memory: Option<ByteSize>,

    /// Level of the log on standard error; texts are never logged
    ///
    /// Default: info.
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        env = "LOOKALIKE_LOG",
        hide_env = true,
        help_heading = "Log"
    )]
    pub(crate) log: Option<LogLevel>,

    /// Format of the log
    ///
    /// Default: text.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        env = "LOOKALIKE_LOG_FORMAT",
        hide_env = true,
        help_heading = "Log"
    )]
    pub(crate) log_format: Option<LogFormat>,

    /// Log every request but health probes at the level info: id, call, status, time, client, name of the key,
    /// collection
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        env = "LOOKALIKE_LOG_REQUESTS",
        hide_env = true,
        help_heading = "Log"
    )]
    pub(crate) log_requests: Option<bool>,

    /// Time from which a request is logged as slow, as a warning: a number with the unit ms, s, m, h or d. 0s:
    /// never
    ///
    /// Default: 10s. The time of a bulk request ends with its last answer.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_SLOW_REQUEST",
        hide_env = true,
        help_heading = "Log"
    )]
    pub(crate) slow_request: Option<PeriodArg>,

    /// Address of a collector to which a trace of every request but health probes is sent (OpenTelemetry, OTLP
    /// over HTTP), such as http://localhost:4318/v1/traces
    ///
    /// Requests continue the trace of their header `traceparent`. The environment variable OTEL_TRACES_SAMPLER
    /// limits which new traces are sent. Only a program built with `--features traces` supports it.
    #[arg(
        long,
        value_name = "URL",
        env = "LOOKALIKE_TRACES",
        hide_env = true,
        help_heading = "Log"
    )]
    pub(crate) traces: Option<String>,
}

impl ServeArgs {
    /// Returns these options, with those of `other` where an option is not given.
    pub(crate) fn or_else_from(self, other: Self) -> Self {
        Self {
            config: self.config.or(other.config),
            data: self.data.or(other.data),
            listen: self.listen.or(other.listen),
            snapshots: self.snapshots.or(other.snapshots),
            snapshot_every: self.snapshot_every.or(other.snapshot_every),
            snapshot_keep: self.snapshot_keep.or(other.snapshot_keep),
            shared_log: self.shared_log.or(other.shared_log),
            replica: self.replica.or(other.replica),
            log_writes_per_second: self.log_writes_per_second.or(other.log_writes_per_second),
            snapshot_log_every: self.snapshot_log_every.or(other.snapshot_log_every),
            keep_log: self.keep_log.or(other.keep_log),
            threads: self.threads.or(other.threads),
            keys: self.keys.or(other.keys),
            allow_unauthenticated: self.allow_unauthenticated.or(other.allow_unauthenticated),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            connections: self.connections.or(other.connections),
            connections_per_address: self
                .connections_per_address
                .or(other.connections_per_address),
            max_rate: self.max_rate.or(other.max_rate),
            no_console: self.no_console.or(other.no_console),
            trusted_proxy: self.trusted_proxy.or(other.trusted_proxy),
            max_header: self.max_header.or(other.max_header),
            max_document: self.max_document.or(other.max_document),
            max_body: self.max_body.or(other.max_body),
            max_queue: self.max_queue.or(other.max_queue),
            header_timeout: self.header_timeout.or(other.header_timeout),
            body_timeout: self.body_timeout.or(other.body_timeout),
            drain: self.drain.or(other.drain),
            headroom: self.headroom.or(other.headroom),
            max_verification_steps: self.max_verification_steps.or(other.max_verification_steps),
            max_passage_steps: self.max_passage_steps.or(other.max_passage_steps),
            passage_memory: self.passage_memory.or(other.passage_memory),
            log: self.log.or(other.log),
            log_format: self.log_format.or(other.log_format),
            log_requests: self.log_requests.or(other.log_requests),
            slow_request: self.slow_request.or(other.slow_request),
            traces: self.traces.or(other.traces),
        }
    }
}

/// Parsed address to listen on: a host name or an IP address, with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ListenAddress(pub(crate) SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addresses = text.to_socket_addrs();
        let first = addresses.map_err(|error| error.to_string());
        let first =
            first.and_then(|mut all| all.next().ok_or_else(|| "it has no address".to_owned()));
        first.map(Self).map_err(|why| {
            format!(
                "'{text}' is not an address to listen on ({why}): give 127.0.0.1:7600, \
                 [::1]:7600 or localhost:7600"
            )
        })
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Parsed addresses, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ProxyAddresses(pub(crate) Vec<IpAddr>);

impl FromStr for ProxyAddresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addresses = text.split(',').map(|address| {
            let address = address.trim();
            let parsed: Result<IpAddr, _> = address.parse();
            parsed.map(|parsed| parsed.to_canonical()).map_err(|_| {
                format!("'{address}' is not an address: give 10.0.0.1 or 10.0.0.1,10.0.0.2")
            })
        });
        addresses.collect::<Result<_, _>>().map(Self)
    }
}

impl TryFrom<String> for ProxyAddresses {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Level of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Failures that need an administrator
    Error,
    /// Also conditions that may soon need one
    Warn,
    /// Also start, stop, and created and deleted collections
    Info,
    /// Also every request with its call, status and time
    Debug,
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// One readable line per event
    Text,
    /// One JSON object per line
    Json,
}

/// Parsed size in bytes, with an optional unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ByteSize(pub(crate) u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_size(text).map(Self)
    }
}

impl TryFrom<String> for ByteSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Parsed duration, with a unit, which may also be milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PeriodArg(pub(crate) Duration);

impl FromStr for PeriodArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix("ms").map(str::parse) {
            Some(Ok(milliseconds)) => Ok(Self(Duration::from_millis(milliseconds))),
            _ => parse_duration(text).map(Self),
        }
    }
}

impl TryFrom<String> for PeriodArg {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
