//! Arguments of `serve`: on the command line, in the configuration file or in the environment.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::settings;
use crate::snapshots::Place;

/// Run the service: collections over HTTP that answer for every document, new or a repeat
///
/// Texts come in over HTTP, each is checked and inserted in one step, and the answer is given when it
/// is on disk: of two near-duplicates sent at the same moment exactly one is kept. Everything a
/// collection holds stands in a directory below --data. Every option may also stand in a file
/// (--config, TOML, named as here without the dashes) and in the environment (LOOKALIKE_ and the name in
/// capitals, with _ for -); what is typed wins over the environment, and that over the file.
///
/// Ends in good order on SIGTERM and SIGINT: it takes no more requests, finishes those it has, and
/// stops. A second signal ends it at once.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(after_help = "\
Examples:
  lookalike serve --data /var/lib/lookalike
  lookalike serve --data data --listen 0.0.0.0:7600 --keys keys.txt --tls-cert cert.pem --tls-key key.pem

A file of keys has a line for each: its role (read, write or admin), a blank, and `sha256:` with the
SHA-256 of the key in hexadecimal digits, as `printf %s \"$KEY\" | sha256sum` prints it. A key has at
least 16 bytes. The environment may hold one key of each role: LOOKALIKE_READ_KEY, LOOKALIKE_WRITE_KEY,
LOOKALIKE_ADMIN_KEY.")]
pub(crate) struct ServeArgs {
    /// A file with these options
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CONFIG", hide_env = true)]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,

    /// The directory of the collections; made if it is not there
    #[arg(long, value_name = "DIR", env = "LOOKALIKE_DATA", hide_env = true)]
    pub(crate) data: Option<PathBuf>,

    /// Where to listen
    ///
    /// The default is 127.0.0.1:7600. An address that other machines reach needs keys.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "LOOKALIKE_LISTEN",
        hide_env = true
    )]
    pub(crate) listen: Option<Listen>,

    /// The directory below which snapshots are made, or the URL of a prefix of an object store
    ///
    /// Without it none are made. Of a store (s3://bucket/prefix, gs://…, az://…), keys, region and endpoint
    /// come from the environment by the names that its own tools use: AWS_ACCESS_KEY_ID,
    /// AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT, GOOGLE_APPLICATION_CREDENTIALS,
    /// AZURE_STORAGE_ACCOUNT_NAME and so on. Only a program built with `--features object-store`
    /// has stores.
    #[arg(
        long,
        value_name = "PLACE",
        env = "LOOKALIKE_SNAPSHOTS",
        hide_env = true
    )]
    pub(crate) snapshots: Option<Place>,

    /// How many threads prepare documents; the default is one for each core
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_threads,
        env = "LOOKALIKE_THREADS",
        hide_env = true
    )]
    pub(crate) threads: Option<usize>,

    /// The keys that are accepted
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_KEYS",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) keys: Option<PathBuf>,

    /// Serve whoever comes, on any address
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

    /// The certificate and those that vouch for it (PEM); needs --tls-key
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_CERT",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_TLS_KEY",
        hide_env = true,
        help_heading = "Access"
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// How many connections are open at a time; beyond, only probes are answered
    ///
    /// The default is 1024.
    #[arg(
        long,
        value_name = "N",
        value_parser = settings::parse_limit,
        env = "LOOKALIKE_CONNECTIONS",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) connections: Option<usize>,

    /// How many connections one address may have open at a time; 0 limits nothing. Further ones are closed
    ///
    /// The default is 256. Of IPv6 the first 64 bits are one address.
    #[arg(
        long,
        value_name = "N",
        env = "LOOKALIKE_CONNECTIONS_PER_ADDRESS",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) connections_per_address: Option<usize>,

    /// How many requests a second one client may make, by its key or else its address; 0 limits nothing
    ///
    /// The default is 0. Probes do not count. A client that was idle may make those of a second at once.
    #[arg(
        long,
        value_name = "N",
        env = "LOOKALIKE_MAX_RATE",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_rate: Option<u32>,

    /// Addresses of proxies, separated by commas: their clients are those that X-Forwarded-For names last
    ///
    /// Such an address may have any number of connections.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "LOOKALIKE_TRUSTED_PROXY",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) trusted_proxy: Option<ProxyAddresses>,

    /// The largest head of a request, its first line and all headers: bytes, or with the unit K, M, G (of 1000) or Ki, Mi, Gi (of
    /// 1024); at least 8Ki
    ///
    /// The default is 32Ki. A head has at most 100 headers, whatever their size.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_HEADER",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_header: Option<Size>,

    /// The largest document: one JSON object, or a line of many
    ///
    /// The default is 16Mi.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_DOCUMENT",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_document: Option<Size>,

    /// The largest body of a request after it is expanded
    ///
    /// The default is 4Gi.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_BODY",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_body: Option<Size>,

    /// Bytes of documents that wait for their answers; beyond, requests are told to come again
    ///
    /// The default is 256Mi. One client holds at most eight times what is left to others. Answers that
    /// clients have not taken may have as many.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_MAX_QUEUE",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_queue: Option<Size>,

    /// How long the head of a request may take, and how long a connection may be idle: a number with
    /// the unit s, m, h or d
    ///
    /// The default is 20s.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_HEADER_TIMEOUT",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) header_timeout: Option<Period>,

    /// How long a body may bring less than 1 KiB, and a client take nothing of its answer
    ///
    /// The default is 30s. After that both go on at 32 KiB a second at least.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_BODY_TIMEOUT",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) body_timeout: Option<Period>,

    /// How long requests may go on after a signal to stop
    ///
    /// The default is 30s.
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOOKALIKE_DRAIN",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) drain: Option<Period>,

    /// What is left free on the disk: nothing is taken that would leave less
    ///
    /// Documents by which a part of the window goes may have half of it. Snapshots leave it on their disk too.
    /// The default is 256Mi.
    #[arg(
        long,
        value_name = "SIZE",
        env = "LOOKALIKE_HEADROOM",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) headroom: Option<Size>,

    /// How many steps the verification of a document may take where texts are compared by edit distance or
    /// common substring; beyond, it is refused
    ///
    /// A step is 64 cells of the table of two texts, a few nanoseconds. The default is 16777216. A document
    /// that would be kept may take half of them.
    #[arg(
        long,
        value_name = "N",
        env = "LOOKALIKE_MAX_VERIFICATION_STEPS",
        hide_env = true,
        help_heading = "Limits"
    )]
    pub(crate) max_verification_steps: Option<u64>,

    /// What is logged on standard error; never texts
    ///
    /// The default is info.
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        env = "LOOKALIKE_LOG",
        hide_env = true,
        help_heading = "Log"
    )]
    pub(crate) log: Option<LogLevel>,

    /// How it is written
    ///
    /// The default is text.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        env = "LOOKALIKE_LOG_FORMAT",
        hide_env = true,
        help_heading = "Log"
    )]
    pub(crate) log_format: Option<LogFormat>,
}

impl ServeArgs {
    /// Returns these options, with those of `other` where an option is not given.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            config: self.config.or(other.config),
            data: self.data.or(other.data),
            listen: self.listen.or(other.listen),
            snapshots: self.snapshots.or(other.snapshots),
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
            log: self.log.or(other.log),
            log_format: self.log_format.or(other.log_format),
        }
    }
}

/// Parsed address to listen on: a host name or an IP address, with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Listen(pub(crate) SocketAddr);

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addresses = text.to_socket_addrs();
        let first = addresses.map_err(|error| error.to_string());
        let first =
            first.and_then(|mut all| all.next().ok_or_else(|| "it has no address".to_owned()));
        first.map(Self).map_err(|why| {
            format!("'{text}' is no address to listen on ({why}): give 127.0.0.1:7600, [::1]:7600 or localhost:7600")
        })
    }
}

impl TryFrom<String> for Listen {
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
            parsed.map(|it| it.to_canonical()).map_err(|_| {
                format!("'{address}' is no address: give 10.0.0.1 or 10.0.0.1,10.0.0.2")
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

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// What needs a person
    Error,
    /// What may need one soon
    Warn,
    /// Starting, stopping, collections made and deleted
    Info,
    /// Every request: its call, status and time
    Debug,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// A line for a person
    Text,
    /// A JSON object a line
    Json,
}

/// Parsed size in bytes, with an optional unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        settings::parse_size(text).map(Self)
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Parsed duration, with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Period(pub(crate) Duration);

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = settings::parse_duration(text)?;
        let period = Duration::try_from_secs_f64(seconds);
        period
            .map(Self)
            .map_err(|_| format!("'{text}' is longer than can be waited for: give 30s, 5m or 2d"))
    }
}

impl TryFrom<String> for Period {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
