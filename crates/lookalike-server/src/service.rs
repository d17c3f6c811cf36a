//! The running service: its shared state, its start and its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lookalike_store::{CollectionOptions, VerificationLimits};
use lookalike_system::{ReloadRequests, StopRequests};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::activity::{self, ActivityHistory};
use crate::api::request_log::RequestLog;
use crate::api::responses::in_background;
use crate::api::router;
use crate::collections::{DirectoryLock, ServedCollections, maintenance};
use crate::config::ServiceConfig;
use crate::connections;
use crate::error::{Result, with_context};
use crate::limits::answer_permits::AnswerPermits;
use crate::limits::byte_budget::ByteBudget;
use crate::limits::request_rate::RequestRate;
use crate::metrics::ServiceMetrics;
use crate::recipes::ServedRecipes;
use crate::reload::ReloadedFiles;
use crate::replication::{
    LogCheckpoint, LogClock, PreparedReplica, Replica, ReplicaSettings, flush_collections,
};
use crate::snapshots::{SnapshotStore, schedule};
use crate::traces::SpanExport;

/// Long answers about stored documents that are made at a time.
const LONG_ANSWERS: usize = 3;

/// Longest time in which a replica that stops writes the rest of what it has applied.
const LONGEST_LAST_WRITE: Duration = Duration::from_secs(10);

/// Longest time in which a replica that stops writes its last mark.
const LONGEST_LAST_MARK: Duration = Duration::from_secs(5);

/// Requests with texts that are worked on at a time. They are few, because each takes a core and inserts need cores,
/// too.
const TEXT_REQUESTS: usize = 2;

/// State shared by all requests.
pub(crate) struct ServiceState {
    pub(crate) config: ServiceConfig,
    pub(crate) collections: ServedCollections,
    pub(crate) recipes: ServedRecipes,
    pub(crate) metrics: ServiceMetrics,
    pub(crate) activity: ActivityHistory,
    pub(crate) request_log: RequestLog,
    pub(crate) traces: Option<SpanExport>,
    /// Keys and certificate.
    pub(crate) reloaded: Arc<ReloadedFiles>,
    pub(crate) snapshots: Option<SnapshotStore>,
    /// The part that follows a shared log.
    pub(crate) replica: Option<Arc<Replica>>,
    /// Runs requests to stores from threads of their own.
    pub(crate) runtime: Handle,
    /// Budget, in bytes, for documents that wait for their answers.
    pub(crate) waiting_budget: Arc<ByteBudget>,
    /// Budget, in bytes, for answers that clients have not taken yet.
    pub(crate) answer_budget: Arc<ByteBudget>,
    /// Limit of requests per second for each client.
    pub(crate) rate: RequestRate,
    /// Permits for long answers about stored documents.
    pub(crate) answer_permits: Arc<AnswerPermits>,
    /// Permits for work on texts that clients send: searches for passages, comparisons, document files. They are apart,
    /// so that no such work keeps a list or an export waiting.
    pub(crate) text_permits: Arc<AnswerPermits>,
    /// Permits for short queries that run on a request thread. There is one fewer than request threads, so that one
    /// request thread always stays free.
    pub(crate) short_query_permits: Semaphore,
}

impl ServiceState {
    fn new(
        config: ServiceConfig,
        lock: DirectoryLock,
        reloaded: Arc<ReloadedFiles>,
        replica: Option<&PreparedReplica>,
    ) -> Result<Self> {
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
        let options = match replica {
            Some(replica) => follower_options(options, &replica.clock),
            None => options,
        };
        // A replica waits for room before it applies an upload, because others may have room.
        let recipe_headroom = match replica {
            Some(_) => 0,
            None => config.limits.headroom,
        };
        Ok(Self {
            // The collections keep the lock of the directory, in which the recipes are too.
            collections: ServedCollections::with_lock(lock, options)?,
            recipes: ServedRecipes::open(&config.data, recipe_headroom, config.limits.queue)?,
            metrics: ServiceMetrics::new(),
            activity: ActivityHistory::new(Instant::now()),
            request_log: RequestLog::new(config.request_log),
            traces: config
                .traces
                .as_deref()
                .map(SpanExport::open_endpoint)
                .transpose()?,
            reloaded,
            snapshots: snapshots.transpose()?,
            replica: replica.map(|prepared| Arc::clone(&prepared.replica)),
            runtime: Handle::current(),
            waiting_budget: ByteBudget::new(config.limits.queue),
            answer_budget: ByteBudget::new(config.limits.queue),
            rate: RequestRate::new(config.limits.rate),
            answer_permits: start_permits(LONG_ANSWERS)?,
            text_permits: start_permits(TEXT_REQUESTS)?,
            short_query_permits: Semaphore::new(Handle::current().metrics().num_workers() - 1),
            config,
        })
    }
}

/// Returns the options of collections that follow a shared log. Nothing that is this machine's alone may decide there:
/// neither its clock, nor a limit on the work for a document, which requests check before their document is in the log.
pub(crate) fn follower_options(options: CollectionOptions, clock: &LogClock) -> CollectionOptions {
    CollectionOptions {
        clock: clock.as_wall_clock(),
        follows_log: true,
        verification: VerificationLimits {
            document_steps: u64::MAX,
            ..options.verification
        },
        ..options
    }
}

fn start_permits(count: usize) -> Result<Arc<AnswerPermits>> {
    AnswerPermits::new(count).map_err(with_context("cannot start the threads for long answers"))
}

/// Serves until a signal asks the process to stop. The calling process creates files that only their owner can
/// read and receives the log through `tracing`.
///
/// # Errors
/// If the directory of the collections, a certificate, the place of the snapshots or the address cannot be
/// used, or the system refuses threads or signals.
pub fn run_service(config: ServiceConfig) -> Result<()> {
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
    // Documents still waiting for the disk have not been answered, so they may be abandoned. The runtime stays, because a
    // thread that waits for a store would panic without it.
    std::mem::forget(runtime);
    result
}

async fn serve_until_stopped(mut config: ServiceConfig) -> Result<()> {
    let mut signals = StopRequests::new().map_err(with_context("cannot wait for signals"))?;
    let reloads = ReloadRequests::new().map_err(with_context("cannot wait for signals"))?;
    let keys = std::mem::take(&mut config.keys);
    let files = ReloadedFiles::new(keys, config.key_file.take(), config.tls.take())?;
    let files = Arc::new(files);
    tokio::spawn(reload_on_request(reloads, Arc::clone(&files)));
    let listen = config.listen;
    let when_listening = config.when_listening.take();
    let drain = config.limits.drain;
    let is_encrypted = files.tls().is_some();
    // Nothing in the directory changes before it is locked, because another process may be using it.
    let lock = DirectoryLock::acquire(&config.data)?;
    let replica = match config.replica.clone() {
        None => {
            let left = LogCheckpoint::remove_file(&config.data);
            left.map_err(with_context("the checkpoint of a shared log"))?;
            None
        }
        // A replica that waits for its store can be stopped.
        Some(settings) => tokio::select! {
            prepared = prepare_replica(settings, config.data.clone()) => Some(prepared?),
            () = signals.next_request() => return Ok(()),
        },
    };
    let service = Arc::new(ServiceState::new(config, lock, files, replica.as_ref())?);
    let listener = TcpListener::bind(listen).await;
    let listener = listener.map_err(with_context(format!("cannot listen on {listen}")))?;
    let address = listener
        .local_addr()
        .map_err(with_context("the address listened on"))?;
    let scheme = if is_encrypted { "https" } else { "http" };
    tracing::info!("listening on {scheme}://{address}");
    if let Some(call) = when_listening {
        call(address);
    }
    if !listen.ip().is_loopback() && !is_encrypted {
        tracing::warn!(
            "keys and texts are sent unencrypted: give --tls-cert and --tls-key, unless a proxy in \
             front of the service encrypts"
        );
    }
    maintenance::start_thread(&service)
        .map_err(with_context("cannot start the maintenance thread"))?;
    activity::start_thread(&service).map_err(with_context(
        "cannot start the thread that records the activity",
    ))?;
    if let Some(schedule) = service.config.snapshot_schedule {
        schedule::start_thread(&service, schedule)
            .map_err(with_context("cannot start the thread for snapshots"))?;
    }
    let opening = Arc::clone(&service);
    tokio::task::spawn_blocking(move || {
        list_snapshots_once(&opening);
        opening.collections.open_all();
        match replica.map(|replica| replica.start(&opening)) {
            Some(Err(error)) => fail_replica(&opening, &error.to_string()),
            // It is ready, and logs it, once it has caught up with the log.
            Some(Ok(())) => {}
            None => tracing::info!("ready"),
        }
    });
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let end_of_wait = async move {
        signals.next_request().await;
        drop(stop);
        tokio::select! {
            () = sleep(drain) => "the time limit of --drain is over",
            () = signals.next_request() => "a second signal",
        }
    };
    let end_of_wait = tokio::spawn(end_of_wait);
    let stopped = async {
        let _ = stopping.await;
    };
    let end_of_wait = async { end_of_wait.await.unwrap_or("the wait for signals ended") };
    let router = router::build_router(&service);
    connections::accept_until_stopped(listener, router, &service, stopped, end_of_wait).await;
    if let Some(replica) = &service.replica {
        replica.stop_threads();
        let stopped = Arc::clone(&service);
        // A copy to a store that gives no answer may hold the files for long; the log has everything.
        let writing = in_background(move || write_rest(&stopped));
        if timeout(LONGEST_LAST_WRITE, writing).await.is_err() {
            tracing::warn!("not everything that was applied is on disk: the log has it");
        }
        // A mark without the end of this replica does no harm.
        let marking = replica.progress.wait_for_last_mark();
        let _ = timeout(LONGEST_LAST_MARK, marking).await;
    }
    if let Some(traces) = &service.traces {
        traces.finish_export();
    }
    Ok(())
}

/// Opens the shared log and decides where this replica begins.
async fn prepare_replica(settings: ReplicaSettings, data: PathBuf) -> Result<PreparedReplica> {
    let runtime = Handle::current();
    in_background(move || PreparedReplica::prepare(settings, &data, &runtime)).await
}

/// Writes what a replica has applied to disk, so that its directory can be used without the log.
fn write_rest(service: &ServiceState) {
    if let Err(error) = flush_collections(&service.collections) {
        tracing::error!(
            error,
            "not everything that was applied is on disk: the log has it"
        );
    }
}

/// Stops a replica that could not begin. The service goes on answering queries by what it has.
fn fail_replica(service: &ServiceState, error: &str) {
    if let Some(replica) = &service.replica {
        replica.progress.stop(error);
        replica.stop_threads();
    }
}

/// Lists the snapshots, so that the metrics have the age of the newest ones.
fn list_snapshots_once(service: &ServiceState) {
    if let Some(Err(error)) = service
        .snapshots
        .as_ref()
        .map(|snapshots| snapshots.list_snapshots(None))
    {
        tracing::warn!(%error, "the snapshots cannot be listed");
    }
}

/// Reads keys and certificate again with every request, which is SIGHUP on Unix.
async fn reload_on_request(mut reloads: ReloadRequests, files: Arc<ReloadedFiles>) {
    while reloads.next_request().await {
        let files = Arc::clone(&files);
        in_background(move || files.reload_files()).await;
    }
}
