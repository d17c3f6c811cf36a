//! `lookalike serve`.
//!
//! The command line takes precedence over the environment, the environment over the configuration file, and
//! the file over the defaults.

mod args;
mod desktop;
mod document_passages;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use lookalike_documents::PdfLimits;
use lookalike_server::{
    AccessKeys, ClientLimits, ReplicaSettings, RequestLogSettings, ServiceConfig, SnapshotPlace,
    SnapshotSchedule, run_service,
};
use lookalike_store::VerificationLimits;
use lookalike_system::make_files_private;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

pub(crate) use self::args::ServeArgs;
use self::args::{ByteSize, LogFormat, LogLevel, PeriodArg};
pub(crate) use self::desktop::serve_desktop;
use self::document_passages::find_document_passages;
use super::shared::inputs::pdf_reader;
use super::shared::running::thread_count;
use crate::CommandOutcome;
use crate::free_memory;

use crate::output::{OutputPrinter, with_context};

/// Limits for reading one PDF file of a client. They are shorter than those of a run over files, because the file
/// occupies a permit that other clients wait for.
const PDF_LIMITS: PdfLimits = PdfLimits {
    memory_bytes: 2 << 30,
    cpu_seconds: 20,
    wall_seconds: 30,
};

/// Serves until a signal asks the process to stop.
pub(crate) fn run_serve(args: &ServeArgs) -> Result<CommandOutcome> {
    free_memory::keep_for_later();
    // The files contain texts.
    make_files_private();
    let args = with_configuration(args)?;
    let config = service_config(&args)?;
    let (level, format) = log_settings(&args);
    log_to_standard_error(level, format);
    run_service(config)?;
    Ok(CommandOutcome::Done)
}

/// Adds the options of the configuration file, if one is given.
fn with_configuration(args: &ServeArgs) -> Result<ServeArgs> {
    let Some(path) = &args.config else {
        return Ok(args.clone());
    };
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(with_context(format!(
        "cannot read the configuration {file}"
    )))?;
    let written =
        toml::from_str(&text).map_err(with_context(format!("the configuration {file}")))?;
    Ok(args.clone().or_else_from(written))
}

/// Returns the validated configuration.
///
/// # Errors
/// If an option is missing, contradicts another or is out of range, or if the service would accept
/// everybody at an address that other machines can reach.
fn service_config(args: &ServeArgs) -> Result<ServiceConfig> {
    let Some(data) = args.data.clone() else {
        bail!("--data is missing: give the directory of the collections");
    };
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 7600));
    let listen = args.listen.map_or(local, |listen| listen.0);
    let keys = AccessKeys::load_keys(args.keys.as_deref())?;
    let whoever = args.allow_unauthenticated.unwrap_or(false);
    check_access(&keys, listen, whoever)?;
    let tls = match (args.tls_cert.clone(), args.tls_key.clone()) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => bail!("--tls-cert and --tls-key belong together: give both or neither"),
    };
    if let Some(SnapshotPlace::Folder(snapshots)) = &args.snapshots {
        check_separate_places(&data, snapshots)?;
    }
    Ok(ServiceConfig {
        only_loopback: keys.is_empty() && !whoever,
        serves_console: !args.no_console.unwrap_or(false),
        pdf: pdf_reader(PDF_LIMITS),
        release_memory: free_memory::release_of_thread,
        release_unused_memory: free_memory::release_unused,
        find_document_passages,
        trusted_proxies: args
            .trusted_proxy
            .clone()
            .map_or(Vec::new(), |trusted_proxy| trusted_proxy.0),
        data,
        listen,
        when_listening: None,
        snapshots: args.snapshots.clone(),
        snapshot_schedule: snapshot_schedule(args)?,
        replica: replica_settings(args)?,
        threads: thread_count(args.threads),
        keys,
        key_file: args.keys.clone(),
        tls,
        traces: args.traces.clone(),
        request_log: request_log_settings(args),
        limits: client_limits(args)?,
    })
}

/// Shortest time for which a log stays.
const SHORTEST_KEPT_LOG: Duration = Duration::from_secs(3600);

/// Returns the settings of a replica.
///
/// # Errors
/// If an option of replicas is given without a shared log, or the replica has no name.
fn replica_settings(args: &ServeArgs) -> Result<Option<ReplicaSettings>> {
    let Some(shared_log) = args.shared_log.clone() else {
        let without_log = [
            ("--replica", args.replica.is_some()),
            (
                "--log-writes-per-second",
                args.log_writes_per_second.is_some(),
            ),
            ("--snapshot-log-every", args.snapshot_log_every.is_some()),
            ("--keep-log", args.keep_log.is_some()),
        ];
        if let Some((option, _)) = without_log.iter().find(|(_, is_given)| *is_given) {
            bail!("{option} has no effect without --shared-log: give both");
        }
        return Ok(None);
    };
    if !shared_log.contains("://") {
        bail!(
            "--shared-log '{shared_log}' is no URL: give s3://bucket/prefix, gs://…, az://… or file:///directory"
        );
    }
    let snapshot_every = args.snapshot_log_every.map(|PeriodArg(every)| every);
    if snapshot_every.is_some_and(|every| every < Duration::from_secs(1)) {
        bail!("--snapshot-log-every is below a second: give a duration, such as 1h");
    }
    if args.keep_log.is_some() && snapshot_every.is_none() {
        bail!("--keep-log has no effect without --snapshot-log-every: give both");
    }
    let two_days = Duration::from_secs(2 * 24 * 3600);
    let keep_log = args.keep_log.map_or(two_days, |PeriodArg(keep)| keep);
    if keep_log < SHORTEST_KEPT_LOG {
        bail!(
            "--keep-log is below an hour, and a replica that copies a snapshot needs it and the records behind it for so \
             long: give a duration from 1h on, such as 2d"
        );
    }
    Ok(Some(ReplicaSettings {
        shared_log,
        name: args.replica.clone().map_or_else(machine_name, Ok)?,
        writes_per_second: args.log_writes_per_second.unwrap_or(4),
        snapshot_every,
        keep_log,
    }))
}

/// Returns the name of this machine, in the alphabet of names of replicas.
fn machine_name() -> Result<String> {
    let name = lookalike_system::machine_name().to_lowercase();
    let first_part = name.split('.').next().unwrap_or_default().to_owned();
    let is_usable = |name: &str| {
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
            && characters.all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '_'))
    };
    if !is_usable(&first_part) {
        bail!("the name of this machine, '{name}', is no name of a replica: give --replica NAME");
    }
    Ok(first_part)
}

/// Returns when snapshots are made automatically.
///
/// # Errors
/// If there is no place for them, or the interval is below a second.
fn snapshot_schedule(args: &ServeArgs) -> Result<Option<SnapshotSchedule>> {
    let Some(PeriodArg(every)) = args.snapshot_every else {
        if args.snapshot_keep.is_some() {
            bail!("--snapshot-keep has no effect without --snapshot-every: give both");
        }
        return Ok(None);
    };
    if args.snapshots.is_none() {
        bail!("--snapshot-every needs a place for the snapshots: give --snapshots PLACE");
    }
    if every < Duration::from_secs(1) {
        bail!("--snapshot-every is below a second: give a duration, such as 6h");
    }
    Ok(Some(SnapshotSchedule {
        every,
        keep: args.snapshot_keep.unwrap_or(7),
    }))
}

/// Checks that clients without a key are served only on purpose.
fn check_access(keys: &AccessKeys, listen: SocketAddr, whoever: bool) -> Result<()> {
    if keys.is_empty() && !listen.ip().is_loopback() && !whoever {
        bail!(
            "--listen {listen} can be reached by other machines, and there is no key: give \
             --keys FILE, or --allow-unauthenticated to serve clients without a key"
        );
    }
    if !keys.is_empty() && whoever {
        bail!("--allow-unauthenticated contradicts the keys that are given: leave one of them out");
    }
    Ok(())
}

/// Refuses a snapshot directory inside or around the data directory, where snapshots would look like
/// collections.
fn check_separate_places(data: &Path, snapshots: &Path) -> Result<()> {
    let real = |path: &Path| resolve_path(path).map_err(with_context(path.display().to_string()));
    let (of_data, of_snapshots) = (real(data)?, real(snapshots)?);
    if of_data.starts_with(&of_snapshots) || of_snapshots.starts_with(&of_data) {
        bail!(
            "--snapshots {} and --data {} are one inside the other: give separate directories",
            snapshots.display(),
            data.display()
        );
    }
    Ok(())
}

/// Resolves a path of which the last parts need not exist.
fn resolve_path(path: &Path) -> std::io::Result<PathBuf> {
    let mut at = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => drop(at.pop()),
            part => at.push(part),
        }
        // The letter of a drive alone stands for the current directory of the drive.
        if !matches!(part, Component::Prefix(_)) {
            at = at.canonicalize().unwrap_or(at);
        }
    }
    Ok(at)
}

/// Steps that a request for passages may take, unless the options say otherwise: some seconds of one core.
const DEFAULT_PASSAGE_STEPS: u64 = 1_000_000_000;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Returns the limits of the options.
///
/// # Errors
/// If a limit is out of range or contradicts another.
fn client_limits(args: &ServeArgs) -> Result<ClientLimits> {
    let size = |name, given: Option<ByteSize>, usual, range: (u64, u64)| {
        let bytes = given.map_or(usual, |size| size.0);
        if bytes < range.0 || bytes > range.1 {
            bail!("--{name} is {bytes} bytes: give {} to {}", range.0, range.1);
        }
        Ok(bytes)
    };
    let seconds = |given: Option<PeriodArg>, usual| {
        given.map_or(Duration::from_secs(usual), |period| period.0)
    };
    let limits = ClientLimits {
        connections: args.connections.unwrap_or(1024),
        per_address: Some(args.connections_per_address.unwrap_or(256)).filter(|&it| it > 0),
        rate: args.max_rate.filter(|&it| it > 0),
        header: size("max-header", args.max_header, 32 * KIB, (8 * KIB, MIB))? as usize,
        document: size(
            "max-document",
            args.max_document,
            16 * MIB,
            (KIB, 512 * MIB),
        )?,
        body: size("max-body", args.max_body, 4096 * MIB, (KIB, 1 << 40))?,
        queue: size("max-queue", args.max_queue, 256 * MIB, (MIB, 1 << 40))? as usize,
        header_timeout: seconds(args.header_timeout, 20),
        body_timeout: seconds(args.body_timeout, 30),
        drain: seconds(args.drain, 30),
        headroom: size("headroom", args.headroom, 256 * MIB, (1, u64::MAX))?,
        verification_steps: args
            .max_verification_steps
            .unwrap_or(VerificationLimits::default().document_steps),
        passage_steps: args.max_passage_steps.unwrap_or(DEFAULT_PASSAGE_STEPS),
        passage_memory: size(
            "passage-memory",
            args.passage_memory,
            1024 * MIB,
            (0, u64::MAX),
        )?,
    };
    for (name, period) in [
        ("header-timeout", limits.header_timeout),
        ("body-timeout", limits.body_timeout),
    ] {
        if period.is_zero() {
            bail!("--{name} is 0: give a duration, such as 20s");
        }
    }
    // The share of a single client must exceed the largest document, because otherwise the client could
    // not queue it.
    if limits.client_share() <= limits.document {
        bail!(
            "--max-queue is {} bytes, of which one client may hold 8/9, and a document may have {}: give a \
             larger queue or smaller documents",
            limits.queue,
            limits.document
        );
    }
    Ok(limits)
}

/// Returns which requests are logged.
fn request_log_settings(args: &ServeArgs) -> RequestLogSettings {
    let slow = args
        .slow_request
        .map_or(Duration::from_secs(10), |slow_request| slow_request.0);
    RequestLogSettings {
        log_all: args.log_requests.unwrap_or(false),
        slow: Some(slow).filter(|slow| !slow.is_zero()),
    }
}

/// Returns level and format of the log.
fn log_settings(args: &ServeArgs) -> (LogLevel, LogFormat) {
    (
        args.log.unwrap_or(LogLevel::Info),
        args.log_format.unwrap_or(LogFormat::Text),
    )
}

fn log_to_standard_error(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let log = fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(OutputPrinter::new(false).paints_messages())
        .log_internal_errors(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commented-out options of the installed configuration file are the defaults.
    #[test]
    fn installed_configuration_states_the_defaults() {
        let text = include_str!("../../../../../deploy/serve.toml");
        let is_option = |line: &&str| line.starts_with("# ") && line.contains(" = ");
        // Automatic snapshots are off by default.
        let has_default = |line: &&str| {
            is_option(line) && !line.contains("snapshot-") && !line.contains("traces")
        };
        let options = text.lines().filter(has_default);
        let options: Vec<_> = options.map(|line| line.replacen("# ", "", 1)).collect();
        assert!(options.len() > 12, "{options:?}");
        let stated: ServeArgs = toml::from_str(&options.join("\n")).unwrap();
        let usual = ServeArgs {
            data: Some("data".into()),
            ..ServeArgs::default()
        };
        let limits = |args| client_limits(args).unwrap();
        assert_eq!(limits(&stated), limits(&usual));
        let listen = service_config(&usual).unwrap().listen;
        assert_eq!(stated.listen.map(|listen| listen.0), Some(listen));
        assert!(stated.log.is_some() && stated.log_format.is_some());
        assert_eq!(log_settings(&stated), log_settings(&usual));
        assert!(stated.log_requests.is_some() && stated.slow_request.is_some());
        assert_eq!(request_log_settings(&stated), request_log_settings(&usual));
    }

    /// The image sets only the environment, because an option in its command line could not be overridden.
    #[test]
    fn container_sets_options_by_environment() {
        let text = include_str!("../../../../../deploy/Containerfile");
        let begins = |word: &str| text.lines().find(|line| line.starts_with(word)).unwrap();
        assert_eq!(
            begins("ENTRYPOINT"),
            r#"ENTRYPOINT ["/usr/local/bin/lookalike", "serve"]"#
        );
        let usual = begins("ENV LOOKALIKE_");
        assert_eq!(
            usual,
            "ENV LOOKALIKE_DATA=/data LOOKALIKE_LISTEN=0.0.0.0:7600"
        );
    }
}
