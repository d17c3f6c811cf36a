//! Brings a replica to its beginning, as [`beginning_plan`](super::beginning_plan) decides it, and starts its threads.
//!
//! A directory with a checkpoint needs nothing of the store to begin, so it answers queries while the store is away. All
//! others wait until the store answers. A restoration that fails is tried again, with the snapshot that is best then.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lookalike_log::{
    AppendOutcome, ContradictionKind, EntryKind, FolderCopies, LogEntry, LogError, LogId, LogStore,
    LogTail, SharedLog, StoreError, WitnessContradiction, check_exclusive_creation,
    check_machine_clock, check_replica_name, find_lost_end,
};
use tokio::runtime::Handle;

use super::beginning_plan::{
    BeginningPlan, LogContent, PlanProblem, log_of_plan, plan_beginning, restoring_checkpoint,
};
use super::checkpoint::{DirectoryState, LogCheckpoint};
use super::durability::{self, DurableProgress};
use super::log_snapshots::{
    LogSnapshot, LogSnapshots, ServiceParts, StateComparison, read_recipe_files,
};
use super::log_store::{open_existing_log_store, open_log_store};
use super::log_thread::{LogThread, RETRY_BOUNDS};
use super::mark_writer::MarkWriter;
use super::snapshot_thread::SnapshotThread;
use super::state_check::CheckSchedule;
use super::{LogClock, Replica, ReplicaSettings, machine_time_us};
use crate::collections::{ServedCollections, remove_collections};
use crate::error::{Error, Result, bail, with_context};
use crate::service::ServiceState;

/// Records that wait to be applied, each with the bytes that are proposed as one record at most, or a single entry.
const RECORDS_IN_FLIGHT: usize = 2;

/// Folder, in the data directory, of the copies of records, from which a damaged log can be repaired.
pub const COPIES_FOLDER: &str = ".shared-log";

/// Interval between two checks, during a wait, whether the replica ends.
const RETRY_STEP: Duration = Duration::from_millis(20);

/// A replica whose beginning is known and whose threads have not started.
pub(crate) struct PreparedReplica {
    pub(crate) clock: LogClock,
    pub(crate) replica: Arc<Replica>,
    store: Arc<dyn LogStore>,
    snapshots: LogSnapshots,
    plan: BeginningPlan,
    /// `false` if the store has not answered yet.
    is_store_checked: bool,
    marks: MarkWriter,
}

/// Parts that the threads of a replica share.
pub(super) struct ReplicaParts {
    pub(super) replica: Arc<Replica>,
    pub(super) store: Arc<dyn LogStore>,
    pub(super) snapshots: LogSnapshots,
    pub(super) durable: DurableProgress,
    pub(super) checks: Arc<CheckSchedule>,
    pub(super) clock: LogClock,
    pub(super) copies: Arc<FolderCopies>,
    pub(super) marks: MarkWriter,
    /// Number of the last applied record that another replica has written since the start, or 0.
    pub(super) last_foreign: AtomicU64,
    /// Locked while a record is applied, and while the parts of a snapshot are collected.
    pub(super) applying: Mutex<()>,
}

impl PreparedReplica {
    /// Opens the log and decides where the replica begins. The data directory is locked and not open yet. Waits while
    /// the store gives no answer, unless the directory has a checkpoint.
    ///
    /// # Errors
    /// If the store refuses requests, or the directory does not belong to the log.
    pub(crate) fn prepare(
        settings: ReplicaSettings,
        directory: &Path,
        runtime: &Handle,
    ) -> Result<Self> {
        check_replica_name(&settings.name).map_err(|error| Error::new(error.to_string()))?;
        let checkpoint = LogCheckpoint::read_file(directory)?;
        let url = &settings.shared_log;
        // A directory in which this replica has read a log is there, or not mounted.
        let store = match checkpoint {
            Some(_) => open_existing_log_store(url, runtime)?,
            None => open_log_store(url, runtime)?,
        };
        let snapshots = LogSnapshots::open(url, Arc::clone(&store), runtime)?;
        let is_following =
            |checkpoint: &LogCheckpoint| checkpoint.state == DirectoryState::Following;
        let (plan, is_store_checked) = match checkpoint.filter(is_following) {
            Some(following) => {
                let is_checked = check_store(&settings, &*store)?;
                (BeginningPlan::Continue(following), is_checked)
            }
            None => {
                let decide = || plan_and_prepare(&settings, directory, &*store, &snapshots);
                (wait_for_plan(decide)?, true)
            }
        };
        let marks = MarkWriter::new(&settings.name);
        let prepared = Self {
            marks: marks.map_err(with_context("the mark of the replica"))?,
            clock: LogClock::default(),
            replica: Arc::new(Replica::new(
                settings,
                plan.first_tail().next.saturating_sub(1),
            )),
            store,
            snapshots,
            plan,
            is_store_checked,
        };
        prepared.clock.set_time(prepared.plan.first_tail().time_us);
        Ok(prepared)
    }

    /// Brings the collections to the beginning, and starts the threads. The collections of the directory are open.
    ///
    /// # Errors
    /// If the log cannot begin, the disk fails, the store overwrites objects, or a thread cannot be started.
    pub(crate) fn start(self, service: &Arc<ServiceState>) -> Result<()> {
        let directory = &service.config.data;
        let checkpoint = match &self.plan {
            BeginningPlan::Continue(checkpoint) => {
                check_all_open(service)?;
                checkpoint.clone()
            }
            BeginningPlan::Restore(snapshot) => self.restore(snapshot, service)?,
            BeginningPlan::BeginLog => {
                check_all_open(service)?;
                self.begin_log(service)?
            }
        };
        let written = checkpoint.write_file(directory);
        written.map_err(with_context("the checkpoint of the shared log"))?;
        if !self.is_store_checked {
            self.check_store_later()?;
        }
        let copies = FolderCopies::open(&directory.join(COPIES_FOLDER));
        let copies = copies.map_err(with_context("the copies of the records"))?;
        let checks = Arc::new(CheckSchedule::new(&self.replica.settings.name));
        let parts = Arc::new(ReplicaParts {
            marks: self.marks,
            replica: self.replica,
            store: self.store,
            snapshots: self.snapshots,
            durable: DurableProgress::new(directory, checkpoint),
            checks,
            clock: self.clock,
            copies: Arc::new(copies),
            last_foreign: AtomicU64::new(0),
            applying: Mutex::default(),
        });
        parts.start_threads(service)
    }

    /// Checks the store as soon as it answers.
    ///
    /// # Errors
    /// If it overwrites objects or refuses requests, or the service stops.
    fn check_store_later(&self) -> Result<()> {
        let progress = &self.replica.progress;
        let mut wait = RETRY_BOUNDS.0;
        while !self.replica.has_ended() {
            match check_log_store(&*self.store, &self.replica.settings.name) {
                Ok(()) => {
                    progress.note_available();
                    return Ok(());
                }
                Err(error) if error.is_retryable => {
                    progress.note_unavailable(error, Instant::now());
                }
                Err(error) => return Err(error.into()),
            }
            wait = self.wait_to_retry(wait);
        }
        bail!("the service stops before the shared log could be reached")
    }

    /// Copies a snapshot to the open directory, and tries again until that succeeds. Collections that are complete stay
    /// while the snapshot is the same.
    ///
    /// # Errors
    /// If the service stops.
    fn restore(&self, first: &LogSnapshot, service: &ServiceState) -> Result<LogCheckpoint> {
        let settings = &self.replica.settings;
        let mut snapshot = first.clone();
        let mut wait = RETRY_BOUNDS.0;
        loop {
            // The records behind the snapshot stay while the mark of a replica says that it needs them.
            if let Err(error) = self.marks.write(&*self.store, &snapshot.tail, None) {
                tracing::debug!(%error, "the mark of the replica cannot be written");
            }
            let Err(reason) = self.restore_once(&snapshot, service) else {
                break;
            };
            self.note_failed_restoration(&snapshot.name, reason);
            wait = self.wait_to_retry(wait);
            if self.replica.has_ended() {
                bail!(
                    "the service stops before the snapshot '{}' was restored",
                    snapshot.name
                );
            }
            match self.change_snapshot(&snapshot, service) {
                Ok(Some(other)) => snapshot = other,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "no other snapshot can be restored now"),
            }
        }
        self.replica.progress.note_available();
        tracing::info!(
            snapshot = snapshot.name,
            is_confirmed = snapshot.is_trusted(),
            "restored from the shared log"
        );
        Ok(LogCheckpoint {
            state: DirectoryState::Following,
            ..restoring_checkpoint(settings, &snapshot)
        })
    }

    fn restore_once(&self, snapshot: &LogSnapshot, service: &ServiceState) -> Result<(), String> {
        let collections = &service.collections;
        let complete = collections.open_names();
        let has_failed = |name: &str| !complete.iter().any(|complete| complete == name);
        remove_open_collections(collections, has_failed)?;
        let headroom = service.config.limits.headroom;
        let restored = self
            .snapshots
            .restore_collections(snapshot, collections, headroom);
        restored.map_err(|problem| problem.detail)
    }

    fn note_failed_restoration(&self, snapshot: &str, reason: String) {
        tracing::warn!(
            reason,
            snapshot,
            "the restoration from the shared log failed, and is tried again"
        );
        let error = StoreError::retryable(reason);
        let progress = &self.replica.progress;
        progress.note_unavailable(error, Instant::now());
    }

    /// Prepares the open directory for the snapshot from which a replica begins now; `None` if it is the same.
    ///
    /// # Errors
    /// If no snapshot fits the log, or the store or the disk fails.
    fn change_snapshot(
        &self,
        current: &LogSnapshot,
        service: &ServiceState,
    ) -> Result<Option<LogSnapshot>> {
        let content = LogContent::read(&*self.store, &self.snapshots)?;
        let Some(other) = content.choose_snapshot() else {
            bail!("the shared log has no snapshot that fits its records");
        };
        if (&other.name, other.manifest) == (&current.name, current.manifest) {
            return Ok(None);
        }
        let directory = &service.config.data;
        let checkpoint = restoring_checkpoint(&self.replica.settings, &other);
        let written = checkpoint.write_file(directory);
        written.map_err(with_context("the checkpoint of the shared log"))?;
        remove_open_collections(&service.collections, |_| true).map_err(Error::new)?;
        self.snapshots.restore_small_parts(&other, directory)?;
        let reloaded = service.recipes.reload_recipes();
        reloaded.map_err(|problem| Error::new(problem.detail))?;
        self.clock.set_time(other.tail.time_us);
        let applied = other.tail.next.saturating_sub(1);
        let progress = &self.replica.progress;
        progress.note_applied(applied, other.tail.time_us);
        Ok(Some(other))
    }

    /// Waits before something is tried again, unless the replica ends; returns the next wait.
    fn wait_to_retry(&self, wait: Duration) -> Duration {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.replica.has_ended() {
            std::thread::sleep(RETRY_STEP);
        }
        (wait * 2).min(RETRY_BOUNDS.1)
    }

    /// Makes the content of the directory the first snapshot of a new log.
    fn begin_log(&self, service: &ServiceState) -> Result<LogCheckpoint> {
        let settings = &self.replica.settings;
        let directory = &service.config.data;
        let written_at = || with_context("the checkpoint of the shared log");
        let first = LogTail::default();
        let beginning = LogCheckpoint::new(DirectoryState::Beginning, &settings.name, first);
        beginning.write_file(directory).map_err(written_at())?;
        // The directory may have followed another log, whose positions mean nothing in this one.
        let forgotten = service.collections.forget_log();
        forgotten.map_err(|problem| Error::new(problem.detail))?;
        let snapshot = self.write_first_snapshot(service)?;
        // After a crash it tells the log that begins with this snapshot from one that another directory has begun.
        let beginning = LogCheckpoint {
            snapshot: Some(snapshot.name.clone()),
            manifest: snapshot.manifest,
            ..beginning
        };
        beginning.write_file(directory).map_err(written_at())?;
        let mut log = SharedLog::open(Arc::clone(&self.store), &settings.name, first);
        match self.append_beginning(&mut log, &snapshot)? {
            AppendOutcome::Appended(_) => {
                tracing::info!("the collections are the beginning of the shared log");
                let tail = *log.tail();
                self.clock.set_time(tail.time_us);
                self.replica.progress.note_applied(1, tail.time_us);
                Ok(LogCheckpoint {
                    state: DirectoryState::Following,
                    tail,
                    ..beginning
                })
            }
            AppendOutcome::Overtaken { record, .. } => {
                // Nobody may begin with it.
                let removed = self.snapshots.remove_snapshot(&snapshot.name);
                removed.map_err(with_context("the snapshot of the beginning"))?;
                bail!(
                    "the replica '{}' has begun the shared log at the same moment: use another URL for these \
                     collections, or start with an empty directory",
                    record.writer
                )
            }
        }
    }

    /// Writes the content of the directory as the snapshot with which a log begins, and tries again until that succeeds.
    ///
    /// # Errors
    /// If the recipes cannot be read, or the service stops.
    fn write_first_snapshot(&self, service: &ServiceState) -> Result<LogSnapshot> {
        let name = &self.replica.settings.name;
        let scratch = scratch_folder(&service.config.data);
        let mut wait = RETRY_BOUNDS.0;
        while !self.replica.has_ended() {
            let recipes = ReadRecipes::read_files(service);
            let checked = StateComparison::Alone;
            let parts = collect_parts(service, LogTail::default(), recipes, checked)?;
            let reason = match self.snapshots.remove_rest(name, &parts.tail) {
                Err(error) => error.to_string(),
                Ok(()) => {
                    let written = self.snapshots.write_snapshot(
                        name,
                        parts,
                        &service.collections,
                        &scratch,
                        &LogTail::default,
                        &|| true,
                    );
                    match written {
                        Ok(snapshot) => return Ok(snapshot),
                        Err(problem) => problem.detail,
                    }
                }
            };
            tracing::warn!(
                reason,
                "the first snapshot of the shared log failed, and is tried again"
            );
            wait = self.wait_to_retry(wait);
        }
        bail!("the service stops before the first snapshot of the shared log was written")
    }

    /// Writes the entry that names the first snapshot as record 1.
    fn append_beginning(
        &self,
        log: &mut SharedLog,
        snapshot: &LogSnapshot,
    ) -> Result<AppendOutcome> {
        let begin = LogEntry {
            kind: EntryKind::Begin,
            subject: snapshot.name.clone(),
            body: snapshot
                .manifest
                .map_or_else(Vec::new, |manifest| manifest.0.to_vec()),
        };
        let mut outcome = log.append(vec![begin], machine_time_us());
        let mut wait = RETRY_BOUNDS.0;
        while let Err(LogError::Store(error)) = &outcome {
            if !log.has_pending_append() || self.replica.has_ended() {
                bail!("the shared log: {error}");
            }
            tracing::warn!(%error, "the beginning of the shared log cannot be written, and is tried again");
            wait = self.wait_to_retry(wait);
            outcome = log.continue_append();
        }
        outcome.map_err(with_context("the shared log"))
    }
}

/// Returns what to do about records that are lost, or that others have taken the place of.
pub(super) fn describe_lost_end(lost: &WitnessContradiction) -> String {
    let key = lost.witness.key();
    let repair = "stop all replicas and write them back with `lookalike store log repair";
    match lost.kind {
        ContradictionKind::OtherRecord { .. } => format!(
            "{lost}: {repair} --replace --from` the data of a replica that has applied them; if the log is right, remove \
             '{key}' from the store"
        ),
        _ => format!(
            "{lost}: {repair} --from` the data of a replica that has applied them; if they are gone for good, remove \
             '{key}' from the store"
        ),
    }
}

/// Checks that the store creates objects exclusively, and that the clock of this machine is not ahead of it.
fn check_log_store(store: &dyn LogStore, replica: &str) -> Result<(), StoreError> {
    check_exclusive_creation(store, replica)?;
    check_machine_clock(store, replica)
}

/// Checks the store as [`check_log_store`] does; returns `false` if it gives no answer.
///
/// # Errors
/// If it overwrites objects or refuses requests.
fn check_store(settings: &ReplicaSettings, store: &dyn LogStore) -> Result<bool> {
    match check_log_store(store, &settings.name) {
        Ok(()) => Ok(true),
        Err(error) if error.is_retryable => {
            tracing::warn!(
                %error,
                "the shared log cannot be reached: queries are answered by what this replica has, and changes wait"
            );
            Ok(false)
        }
        Err(error) => Err(with_context(format!(
            "the shared log {}",
            settings.shared_log
        ))(error)),
    }
}

/// Decides where a replica begins, with a store that creates objects exclusively, and prepares the directory for it.
fn plan_and_prepare(
    settings: &ReplicaSettings,
    directory: &Path,
    store: &dyn LogStore,
    snapshots: &LogSnapshots,
) -> Result<BeginningPlan, PlanProblem> {
    check_log_store(store, &settings.name)?;
    // Before a mark of this replica is written in place of one that tells of the lost records.
    if let Some(lost) = find_lost_end(store)? {
        return Err(PlanProblem::Final(Error::new(describe_lost_end(&lost))));
    }
    let plan = plan_beginning(settings, directory, store, snapshots)?;
    let log = log_of_plan(&plan, store)?;
    remove_foreign_copies(directory, log)?;
    let prepared = prepare_directory(settings, directory, snapshots, &plan);
    // The store may have failed, or the snapshot was removed: there may be another one now.
    prepared.map_err(|error| PlanProblem::Temporary(error.to_string()))?;
    Ok(plan)
}

/// Prepares a directory that is not open for a plan. What an interrupted restoration has copied stays if it goes on with
/// the same snapshot.
fn prepare_directory(
    settings: &ReplicaSettings,
    directory: &Path,
    snapshots: &LogSnapshots,
    plan: &BeginningPlan,
) -> Result<()> {
    let before = LogCheckpoint::read_file(directory)?;
    let rest = with_context("the rest of an interrupted copy");
    match plan {
        BeginningPlan::Restore(snapshot) => {
            let checkpoint = restoring_checkpoint(settings, snapshot);
            if before.as_ref() != Some(&checkpoint) {
                let at = with_context("the checkpoint of the shared log");
                checkpoint.write_file(directory).map_err(at)?;
                remove_collections(directory).map_err(rest)?;
            }
            snapshots.restore_small_parts(snapshot, directory)
        }
        BeginningPlan::Continue(_) => {
            let was_restoring =
                before.is_some_and(|before| before.state == DirectoryState::Restoring);
            if was_restoring {
                remove_collections(directory).map_err(rest)?;
            }
            Ok(())
        }
        BeginningPlan::BeginLog => Ok(()),
    }
}

/// Removes the copies of the records of another log, because a repair of this one would meet them.
fn remove_foreign_copies(directory: &Path, log: Option<LogId>) -> Result<()> {
    let copies = FolderCopies::open(&directory.join(COPIES_FOLDER));
    let copies = copies.map_err(with_context("the copies of the records"))?;
    let removed = copies.remove_foreign(log);
    let removed = removed.map_err(with_context("the copies of the records of another log"))?;
    if removed > 0 {
        tracing::info!(removed, "copies of records of another log were removed");
    }
    Ok(())
}

/// Repeats a decision until it is made. Each new reason for waiting is logged.
///
/// # Errors
/// If the decision cannot be made.
fn wait_for_plan(plan: impl Fn() -> Result<BeginningPlan, PlanProblem>) -> Result<BeginningPlan> {
    let mut wait = RETRY_BOUNDS.0;
    let mut reported = None;
    loop {
        let reason = match plan() {
            Ok(plan) => return Ok(plan),
            Err(PlanProblem::Final(error)) => return Err(error),
            Err(PlanProblem::Temporary(reason)) => reason,
        };
        if reported.as_ref() != Some(&reason) {
            tracing::warn!(reason, "the replica cannot begin yet, and tries again");
            reported = Some(reason);
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(RETRY_BOUNDS.1);
    }
}

/// Checks that all collections of the directory are open.
fn check_all_open(service: &ServiceState) -> Result<()> {
    match service.collections.first_not_open() {
        None => Ok(()),
        Some(name) => bail!(
            "the collection '{name}' cannot be opened: repair it, or start with an empty directory"
        ),
    }
}

/// Removes the collections of an open directory that are to be removed.
fn remove_open_collections(
    collections: &ServedCollections,
    is_removed: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let names = collections.list_states().into_iter().map(|(name, _)| name);
    for name in names.filter(|name| is_removed(name)) {
        let deleted = collections.delete_at_once(&name);
        deleted.map_err(|problem| problem.detail)?;
    }
    collections.remove_deleted();
    Ok(())
}

/// Returns the folder through which collections are copied to snapshots.
pub(super) fn scratch_folder(directory: &Path) -> PathBuf {
    directory.join(".log-snapshot")
}

/// Files of the recipes of a service, and the number of changes before they were read.
pub(super) struct ReadRecipes {
    /// Names and contents, or why a file could not be read, which may be because a recipe was changing.
    files: io::Result<Vec<(String, Vec<u8>)>>,
    change_count: u64,
}

impl ReadRecipes {
    /// Reads the files. They may be those of different moments if recipes change meanwhile.
    pub(super) fn read_files(service: &ServiceState) -> Self {
        let change_count = service.recipes.change_count();
        Self {
            files: read_recipe_files(&service.config.data),
            change_count,
        }
    }

    /// Returns `true` if no recipe has changed since the files were read. Nothing is applied meanwhile.
    pub(super) fn are_current(&self, service: &ServiceState) -> bool {
        self.change_count == service.recipes.change_count()
    }
}

/// Returns the state of the service at a place of the log, except its collections. Nothing is applied meanwhile, so the
/// files of the recipes, which can be large, are read before.
///
/// # Errors
/// If the files could not be read.
pub(super) fn collect_parts(
    service: &ServiceState,
    tail: LogTail,
    recipes: ReadRecipes,
    checked: StateComparison,
) -> Result<ServiceParts> {
    Ok(ServiceParts {
        tail,
        collections: service.collections.open_names(),
        aliases: service.collections.list_aliases(),
        recipe_files: recipes.files.map_err(with_context("the recipes"))?,
        checked,
    })
}

impl ReplicaParts {
    fn start_threads(self: Arc<Self>, service: &Arc<ServiceState>) -> Result<()> {
        self.checks.note_advance(self.clock.time_us());
        self.checks.update_interval(&service.collections);
        let (sender, receiver) = sync_channel(RECORDS_IN_FLIGHT);
        let replica = Arc::clone(&self.replica);
        let log = SharedLog::open(
            Arc::clone(&self.store),
            &replica.settings.name,
            self.durable.applied_tail(),
        );
        let log = log.with_copies(Arc::clone(&self.copies) as _);
        let checks = Arc::clone(&self.checks);
        let log_thread = LogThread::new(replica, Arc::clone(&self.store), log, sender, checks);
        spawn_thread("lookalike-log", move || log_thread.run())?;
        let (parts, state) = (Arc::clone(&self), Arc::clone(service));
        spawn_thread("lookalike-apply", move || {
            parts.apply_records(&state, &receiver)
        })?;
        let (parts, state) = (Arc::clone(&self), Arc::clone(service));
        self.replica.progress.note_marks();
        let (writes, end_of_writing) = std::sync::mpsc::channel::<()>();
        spawn_thread("lookalike-flush", move || {
            parts.write_to_disk(&state);
            drop(writes);
        })?;
        let parts = Arc::clone(&self);
        spawn_thread("lookalike-mark", move || parts.write_marks(&end_of_writing))?;
        if let Some(every) = self.replica.settings.snapshot_every {
            let thread = SnapshotThread::new(Arc::clone(&self), Arc::clone(service), every);
            spawn_thread("lookalike-log-snapshot", move || thread.run())?;
        }
        Ok(())
    }

    /// Writes to disk until the replica stops, and then the last checkpoint.
    fn write_to_disk(&self, service: &ServiceState) {
        durability::run_writer(&self.replica, &self.durable, &service.collections);
        if self.replica.progress.stop_reason().is_none()
            && let Err(error) = self.durable.write_checkpoint(&service.collections)
        {
            tracing::warn!(
                error,
                "the last checkpoint cannot be written: the log has what it lacks"
            );
        }
    }
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(work);
    started
        .map(drop)
        .map_err(with_context("cannot start a thread of the replica"))
}
