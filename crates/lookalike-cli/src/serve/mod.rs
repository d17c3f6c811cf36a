//! `lookalike serve`: collections over HTTP.
//!
//! This is the only asynchronous code of the program. A few threads read requests and write answers; they
//! block for nothing but the query of a single short document. A thread pool prepares documents. Checking,
//! inserting and syncing run on threads that may block.
//!
//! # Guarantees
//!
//! - An insert is answered only after it is on disk.
//! - The documents of one request are inserted in their order. If one request was answered before another was
//!   sent, its documents come first.
//! - A document that is refused does not affect the others.
//! - After a failed write, a collection accepts no more writes.
//!
//! # Path of a document
//!
//! | module | step |
//! |---|---|
//! | [`connections`] | accept a connection and read the request head in time |
//! | [`router`] | find the call in the table and check the key |
//! | [`body`], [`stream`] | decompress the body and cut it into lines |
//! | [`json_types`] | parse a line into a document |
//! | [`insert_queue`] | prepare, check and insert it, in a batch with other waiting documents |
//! | [`problem`] | or report why it was refused |
//!
//! One more thread, [`maintenance`], compacts partitions and expires documents, also while no requests
//! arrive.

mod access;
mod answer_turns;
mod body;
mod byte_budget;
mod collection_calls;
mod collections;
mod config;
mod connections;
mod document_calls;
mod fair_queue;
mod health;
mod insert_queue;
mod json_types;
mod maintenance;
mod metrics;
mod openapi;
mod problem;
mod request_rate;
mod response_budget;
mod responses;
mod router;
mod stream;
mod text_calls;

use std::io;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use lookalike_store::{CollectionOptions, CollectionSettings, VerificationLimits};
use rustix::fs::Mode;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tracing_subscriber::fmt;

pub(crate) use self::collections::is_own_file;
use crate::CommandOutcome;
use crate::allocator;
use crate::args::{LogFormat, LogLevel, ServeArgs};
use crate::output::with_context;
use crate::snapshots::SnapshotStore;
use answer_turns::AnswerTurns;
use byte_budget::ByteBudget;
use collections::ServedCollections;
use config::ServiceConfig;
use metrics::ServiceMetrics;
use request_rate::RequestRate;

/// State shared by all requests.
struct ServiceState {
    config: ServiceConfig,
    collections: ServedCollections,
    metrics: ServiceMetrics,
    snapshots: Option<SnapshotStore>,
    /// Budget, in bytes, for documents that wait for their answers.
    queue: Arc<ByteBudget>,
    /// Budget, in bytes, for answers that clients have not taken yet.
    held: Arc<ByteBudget>,
    /// Limit of requests per second for each client.
    rate: RequestRate,
    /// Turns for long answers.
    turns: Arc<AnswerTurns>,
    /// Permits for short look-ups that block a request thread. There is one fewer than request threads, so
    /// that one thread always stays responsive.
    at_once: Semaphore,
}

impl ServiceState {
    fn new(config: ServiceConfig) -> Result<Self> {
        let snapshots = config.snapshots.as_ref();
        let snapshots = snapshots.map(|place| SnapshotStore::open_place(place, Handle::current()));
        let options = CollectionOptions {
            headroom: config.limits.headroom,
            verification: VerificationLimits {
                document_steps: config.limits.verification_steps,
                ..VerificationLimits::default()
            },
            ..CollectionOptions::default()
        };
        Ok(Self {
            collections: ServedCollections::new(&config.data, options)?,
            metrics: ServiceMetrics::new(),
            snapshots: snapshots.transpose()?,
            queue: ByteBudget::new(config.limits.queue),
            held: ByteBudget::new(config.limits.queue),
            rate: RequestRate::new(config.limits.rate),
            turns: Arc::default(),
            at_once: Semaphore::new(Handle::current().metrics().num_workers() - 1),
            config,
        })
    }

    /// Returns the bytes of documents that wait for their answers.
    fn queued_bytes(&self) -> u64 {
        (self.queue.total_bytes() - self.queue.free_bytes()) as u64
    }

    /// Returns the bytes of answers that clients have not taken yet.
    fn held_bytes(&self) -> u64 {
        (self.held.total_bytes() - self.held.free_bytes()) as u64
    }
}

/// Makes files created from now on readable by their owner only, because they contain texts.
pub(crate) fn make_files_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Serves until a signal asks the process to stop.
pub(crate) fn run_serve(args: &ServeArgs) -> Result<CommandOutcome> {
    allocator::give_back_later();
    make_files_private();
    let config = ServiceConfig::new(args)?;
    log_to_standard_error(config.log);
    rayon::ThreadPoolBuilder::new()
        .num_threads(config.threads)
        .build_global()
        .map_err(with_context(format!(
            "cannot start {} threads",
            config.threads
        )))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(with_context("cannot start the threads for requests"))?;
    let result = runtime.block_on(serve_until_stopped(config));
    // Documents still waiting for the disk have not been answered, so they may be abandoned.
    runtime.shutdown_background();
    result.map(|()| CommandOutcome::Done)
}

async fn serve_until_stopped(config: ServiceConfig) -> Result<()> {
    let mut signals = StopSignals::new().map_err(with_context("cannot wait for signals"))?;
    let tls = config.tls.as_ref().map(connections::load_tls).transpose()?;
    let listen = config.listen;
    let drain = config.limits.drain;
    let is_readable = !listen.ip().is_loopback() && tls.is_none();
    let service = Arc::new(ServiceState::new(config)?);
    let listener = TcpListener::bind(listen).await;
    let listener = listener.map_err(with_context(format!("cannot listen on {listen}")))?;
    let address = listener
        .local_addr()
        .map_err(with_context("the address listened on"))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!("listening on {scheme}://{address}");
    if is_readable {
        tracing::warn!(
            "keys and texts are sent unencrypted: give --tls-cert and --tls-key, unless a proxy in \
             front of the service encrypts"
        );
    }
    maintenance::start_thread(&service)
        .map_err(with_context("cannot start the maintenance thread"))?;
    let opening = Arc::clone(&service);
    tokio::task::spawn_blocking(move || {
        opening.collections.open_all();
        tracing::info!("ready");
    });
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let enough = async move {
        signals.next_signal().await;
        drop(stop);
        tokio::select! {
            () = sleep(drain) => "the time limit of --drain is over",
            () = signals.next_signal() => "a second signal",
        }
    };
    let enough = tokio::spawn(enough);
    let stopped = async {
        let _ = stopping.await;
    };
    let enough = async { enough.await.unwrap_or("the wait for signals ended") };
    let router = router::build_router(&service);
    connections::accept_until_stopped(listener, tls, router, &service, stopped, enough).await;
    Ok(())
}

/// The signals that stop the service.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl StopSignals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next_signal(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                // Many services reload their configuration on this signal, so it must not stop this one.
                _ = self.hang_up.recv() => {
                    tracing::warn!("SIGHUP has no effect: restart the service to read its files \
                        again");
                }
            }
        }
    }
}

/// Parses the settings of a collection from the JSON of a request.
///
/// # Errors
/// If the JSON is not valid settings.
pub(crate) fn read_settings(json: &[u8]) -> Result<CollectionSettings> {
    json_types::settings_of_one(json).map_err(|problem| anyhow!(problem.detail))
}

/// Returns the settings of a collection as the JSON of an answer.
///
/// # Errors
/// If serialisation fails, which is not known to happen.
pub(crate) fn write_settings(settings: &CollectionSettings) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(&json_types::SettingsJson::from(
        settings,
    ))?)
}

fn log_to_standard_error((level, format): (LogLevel, LogFormat)) {
    let level = match level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
    };
    let log = fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_target(false)
        .log_internal_errors(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
