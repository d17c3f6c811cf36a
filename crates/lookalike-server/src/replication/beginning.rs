//! Decides where a replica begins, and starts its threads.
//!
//! | data directory | log | beginning |
//! |---|---|---|
//! | has a checkpoint | | behind the checkpoint |
//! | empty | has a snapshot | the newest snapshot is copied, and the records behind it are applied |
//! | empty | has no snapshot | its first record |
//! | has content and no checkpoint | does not exist | the content becomes its first snapshot |
//! | has content and no checkpoint | exists | refused: nobody knows how the two fit together |
//!
//! The content of a directory is its collections, recipes and aliases.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lookalike_log::{
    AppendOutcome, EntryKind, FolderCopies, LogEntry, LogError, LogStore, LogTail, RECORD_PREFIX,
    RecordCopies as _, SharedLog, check_exclusive_creation, check_machine_clock,
    check_replica_name, read_first_number,
};
use lookalike_store::RecipeArchive;
use tokio::runtime::Handle;

use super::apply::RecordApplier;
use super::checkpoint::{DirectoryState, LogCheckpoint};
use super::durability::{self, DurableProgress};
use super::log_snapshots::{LogSnapshot, LogSnapshots, ServiceParts, read_recipe_files};
use super::log_store::open_log_store;
use super::log_thread::{LogThread, ReceivedRecord};
use super::mark_writer::MarkWriter;
use super::snapshot_thread::SnapshotThread;
use super::state_check::CheckSchedule;
use super::{LogClock, Replica, ReplicaSettings, machine_time_us};
use crate::collections::{has_aliases, has_collections, remove_collections};
use crate::error::{Error, Result, bail, with_context};
use crate::recipes::RECIPES_DIRECTORY;
use crate::service::ServiceState;

/// Records that wait to be applied, with up to a full record of bytes each.
const RECORDS_IN_FLIGHT: usize = 2;

/// Folder, in the data directory, of the copies of records, from which a damaged log can be repaired.
pub const COPIES_FOLDER: &str = ".shared-log";

/// Time between two marks of a replica beside the log, while it applies records and while it does not.
const MARK_INTERVAL: Duration = Duration::from_secs(15);
const IDLE_MARK_INTERVAL: Duration = Duration::from_secs(3600);

/// Time between two checks whether a mark is due.
const MARK_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Bytes, about, of the files of a new collection or recipe beside the content of its entry.
const SMALL_FILES_BYTES: u64 = 64 << 10;
/// Reason in the last mark of a replica whose service was ended.
const END_OF_SERVICE: &str = "the service was ended";

/// Wait while the disk is full or behind.
const DISK_WAIT: Duration = Duration::from_millis(20);

/// Where a replica begins.
#[derive(Debug)]
enum BeginningPlan {
    /// Behind the checkpoint of the directory.
    Continue(LogCheckpoint),
    /// With a copy of a snapshot.
    Restore(Box<LogSnapshot>),
    /// With the content of the directory, which becomes the first snapshot of a new log.
    Found,
}

/// A replica whose beginning is known and whose threads have not started.
pub(crate) struct PreparedReplica {
    pub(crate) clock: LogClock,
    pub(crate) replica: Arc<Replica>,
    store: Arc<dyn LogStore>,
    snapshots: LogSnapshots,
    plan: BeginningPlan,
}

/// Parts that the threads of a replica share.
pub(super) struct ReplicaParts {
    pub(super) replica: Arc<Replica>,
    pub(super) store: Arc<dyn LogStore>,
    pub(super) snapshots: LogSnapshots,
    pub(super) durable: DurableProgress,
    pub(super) checks: Arc<CheckSchedule>,
    clock: LogClock,
    copies: Arc<FolderCopies>,
    marks: MarkWriter,
    /// Locked while a record is applied, and while the parts of a snapshot are collected.
    pub(super) applying: Mutex<()>,
}

impl PreparedReplica {
    /// Opens the log and decides where the replica begins. The data directory is not open yet.
    ///
    /// # Errors
    /// If the log cannot be reached, or the directory does not belong to it.
    pub(crate) fn prepare(
        settings: ReplicaSettings,
        directory: &Path,
        runtime: &Handle,
    ) -> Result<Self> {
        check_replica_name(&settings.name).map_err(|error| Error::new(error.to_string()))?;
        lookalike_store::make_directory(directory).map_err(with_context(format!(
            "the directory {}",
            directory.display()
        )))?;
        let store = open_log_store(&settings.shared_log, runtime)?;
        check_exclusive_creation(&*store, &settings.name).map_err(with_context(format!(
            "the shared log {}",
            settings.shared_log
        )))?;
        check_machine_clock(&*store, &settings.name).map_err(with_context(format!(
            "the shared log {}",
            settings.shared_log
        )))?;
        let snapshots = LogSnapshots::open(&settings.shared_log, Arc::clone(&store), runtime)?;
        let plan = plan_beginning(&settings, directory, &*store, &snapshots)?;
        let tail = match &plan {
            BeginningPlan::Continue(checkpoint) => checkpoint.tail,
            BeginningPlan::Restore(snapshot) => {
                let checkpoint = restoring_checkpoint(&settings, snapshot);
                let at = with_context("the checkpoint of the shared log");
                checkpoint.write_file(directory).map_err(at)?;
                let removed = remove_collections(directory);
                removed.map_err(with_context("the rest of an interrupted copy"))?;
                snapshots.restore_small_parts(snapshot, directory)?;
                snapshot.tail
            }
            BeginningPlan::Found => LogTail::default(),
        };
        let clock = LogClock::default();
        clock.set_time(tail.time_us);
        Ok(Self {
            clock,
            replica: Arc::new(Replica::new(settings, tail.next.saturating_sub(1))),
            store,
            snapshots,
            plan,
        })
    }

    /// Brings the collections to the beginning, and starts the threads. The collections of the directory are open.
    ///
    /// # Errors
    /// If the store or the disk fails, or a thread cannot be started.
    pub(crate) fn start(self, service: &Arc<ServiceState>) -> Result<()> {
        let directory = &service.config.data;
        if let Some(name) = service.collections.first_not_open() {
            bail!(
                "the collection '{name}' cannot be opened: repair it, or start with an empty directory"
            );
        }
        let problem = |problem: crate::api::problem::ApiProblem| Error::new(problem.detail);
        let checkpoint = match &self.plan {
            BeginningPlan::Continue(checkpoint) => checkpoint.clone(),
            BeginningPlan::Restore(snapshot) => {
                let headroom = service.config.limits.headroom;
                let collections = &service.collections;
                let restored = self
                    .snapshots
                    .restore_collections(snapshot, collections, headroom);
                restored.map_err(problem)?;
                tracing::info!(snapshot = snapshot.name, "restored from the shared log");
                LogCheckpoint {
                    state: DirectoryState::Following,
                    ..restoring_checkpoint(&self.replica.settings, snapshot)
                }
            }
            BeginningPlan::Found => self.found_log(service)?,
        };
        let written = checkpoint.write_file(directory);
        written.map_err(with_context("the checkpoint of the shared log"))?;
        let copies = FolderCopies::open(&directory.join(COPIES_FOLDER));
        let copies = copies.map_err(with_context("the copies of the records"))?;
        let checks = Arc::new(CheckSchedule::new(&self.replica.settings.name));
        let marks = MarkWriter::new(&self.replica.settings.name);
        let parts = Arc::new(ReplicaParts {
            marks: marks.map_err(with_context("the mark of the replica"))?,
            replica: self.replica,
            store: self.store,
            snapshots: self.snapshots,
            durable: DurableProgress::new(directory, checkpoint),
            checks,
            clock: self.clock,
            copies: Arc::new(copies),
            applying: Mutex::default(),
        });
        parts.start_threads(service)
    }

    /// Makes the collections of the directory the first snapshot of a new log.
    fn found_log(&self, service: &ServiceState) -> Result<LogCheckpoint> {
        let settings = &self.replica.settings;
        let directory = &service.config.data;
        let founding = LogCheckpoint {
            state: DirectoryState::Founding,
            replica: settings.name.clone(),
            tail: LogTail::default(),
            partial_entries: 0,
            snapshot: None,
        };
        let written = founding.write_file(directory);
        written.map_err(with_context("the checkpoint of the shared log"))?;
        let collections = &service.collections;
        // The directory may have followed another log, whose positions mean nothing in this one.
        collections
            .forget_log()
            .map_err(|problem| Error::new(problem.detail))?;
        let recipes = ReadRecipes::read_files(service);
        let parts = collect_parts(service, LogTail::default(), recipes)?;
        let rest = self.snapshots.remove_rest(&settings.name, &parts.tail);
        rest.map_err(with_context("the rest of an interrupted beginning"))?;
        let written = self.snapshots.write_snapshot(
            &settings.name,
            parts,
            collections,
            &scratch_folder(directory),
            &LogTail::default,
        );
        let snapshot = written.map_err(|problem| Error::new(problem.detail))?;
        let begin = LogEntry {
            kind: EntryKind::Begin,
            subject: snapshot.name.clone(),
            body: Vec::new(),
        };
        let mut log = SharedLog::open(Arc::clone(&self.store), &settings.name, LogTail::default());
        let mut outcome = log.append(vec![begin], machine_time_us());
        while let Err(LogError::Store(error)) = &outcome {
            if !log.has_pending_append() {
                bail!("the shared log: {error}");
            }
            std::thread::sleep(Duration::from_millis(200));
            outcome = log.continue_append();
        }
        match outcome.map_err(with_context("the shared log"))? {
            AppendOutcome::Appended(_) => {
                tracing::info!("the collections are the beginning of the shared log");
                self.clock.set_time(log.tail().time_us);
                self.replica.progress.note_applied(1, log.tail().time_us);
                Ok(LogCheckpoint {
                    state: DirectoryState::Following,
                    tail: *log.tail(),
                    snapshot: Some(snapshot.name),
                    ..founding
                })
            }
            AppendOutcome::Overtaken { record, .. } => bail!(
                "the replica '{}' has begun the shared log at the same moment: use another URL for these collections, \
                 or start with an empty directory",
                record.writer
            ),
        }
    }
}

/// Returns `true` if a data directory that is not open has collections, recipes or aliases.
fn has_content(directory: &Path) -> Result<bool> {
    let at = || with_context(format!("the directory {}", directory.display()));
    let recipes = directory.join(RECIPES_DIRECTORY);
    Ok(has_collections(directory).map_err(at())?
        || RecipeArchive::has_recipes(&recipes).map_err(at())?
        || has_aliases(directory)?)
}

fn restoring_checkpoint(settings: &ReplicaSettings, snapshot: &LogSnapshot) -> LogCheckpoint {
    LogCheckpoint {
        state: DirectoryState::Restoring,
        replica: settings.name.clone(),
        tail: snapshot.tail,
        partial_entries: 0,
        snapshot: Some(snapshot.name.clone()),
    }
}

fn plan_beginning(
    settings: &ReplicaSettings,
    directory: &Path,
    store: &dyn LogStore,
    snapshots: &LogSnapshots,
) -> Result<BeginningPlan> {
    let unreadable = with_context::<lookalike_log::StoreError>("the shared log");
    let url = &settings.shared_log;
    let checkpoint = LogCheckpoint::read_file(directory)?;
    let state = checkpoint.as_ref().map(|checkpoint| checkpoint.state);
    if let (Some(DirectoryState::Following), Some(checkpoint)) = (state, checkpoint) {
        return Ok(BeginningPlan::Continue(checkpoint));
    }
    let first_key = store.list(RECORD_PREFIX).map_err(unreadable)?;
    let first_key = first_key.first().map(|object| object.key.clone());
    let newest = snapshots.list_snapshots()?.pop();
    let has_content = has_content(directory)?;
    match (state, newest) {
        (Some(DirectoryState::Founding), newest) => {
            let Some(first_key) = first_key else {
                return Ok(BeginningPlan::Found);
            };
            founded_before(settings, store, &first_key, newest)
        }
        (Some(DirectoryState::Restoring), Some(newest)) => {
            Ok(BeginningPlan::Restore(Box::new(newest)))
        }
        (None, _) if has_content && first_key.is_none() => Ok(BeginningPlan::Found),
        _ if has_content => bail!(
            "{} has collections, recipes or aliases that do not come from the shared log {url}: start with an empty \
             directory, or give the URL of a new log, which then begins with them",
            directory.display()
        ),
        (_, Some(newest)) => Ok(BeginningPlan::Restore(Box::new(newest))),
        (_, None) => {
            if first_key.is_some_and(|key| key != lookalike_log::record_key(1)) {
                bail!(
                    "the first records of the shared log {url} are gone and it has no snapshot: start with the data \
                     directory of a replica"
                );
            }
            Ok(BeginningPlan::Continue(LogCheckpoint {
                state: DirectoryState::Following,
                replica: settings.name.clone(),
                tail: LogTail::default(),
                partial_entries: 0,
                snapshot: None,
            }))
        }
    }
}

/// Returns the plan of a directory whose collections became the beginning of the log shortly before a crash.
fn founded_before(
    settings: &ReplicaSettings,
    store: &dyn LogStore,
    first_key: &str,
    newest: Option<LogSnapshot>,
) -> Result<BeginningPlan> {
    let object = store
        .read(first_key)
        .map_err(with_context("the shared log"))?;
    let record = lookalike_log::LogRecord::decode(1, &object.unwrap_or_default());
    let record = record.map_err(with_context("the shared log"))?;
    let begin = record
        .entries
        .first()
        .filter(|entry| entry.kind == EntryKind::Begin);
    let is_own = newest.is_some_and(|newest| {
        newest.replica == settings.name && begin.is_some_and(|begin| begin.subject == newest.name)
    });
    let Some(begin) = begin.filter(|_| is_own) else {
        bail!(
            "the replica '{}' has begun the shared log: use another URL for these collections, or start with an empty \
             directory",
            record.writer
        );
    };
    Ok(BeginningPlan::Continue(LogCheckpoint {
        state: DirectoryState::Following,
        replica: settings.name.clone(),
        tail: record.tail(),
        partial_entries: 0,
        snapshot: Some(begin.subject.clone()),
    }))
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
) -> Result<ServiceParts> {
    Ok(ServiceParts {
        tail,
        collections: service.collections.open_names(),
        aliases: service.collections.list_aliases(),
        recipe_files: recipes.files.map_err(with_context("the recipes"))?,
    })
}

impl ReplicaParts {
    fn start_threads(self: Arc<Self>, service: &Arc<ServiceState>) -> Result<()> {
        self.checks
            .note_advance(self.clock.time_us(), &service.collections);
        let (sender, receiver) = sync_channel(RECORDS_IN_FLIGHT);
        let replica = Arc::clone(&self.replica);
        let log = SharedLog::open(
            Arc::clone(&self.store),
            &replica.settings.name,
            self.durable.applied_tail(),
        );
        let log = log.with_copies(Arc::clone(&self.copies) as _);
        let log_thread = LogThread::new(replica, log, sender, Arc::clone(&self.checks));
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

    fn apply_records(&self, service: &ServiceState, records: &Receiver<ReceivedRecord>) {
        let runtime = service.runtime.clone();
        let applier = RecordApplier {
            collections: &service.collections,
            recipes: &service.recipes,
            clock: &self.clock,
            checks: &self.checks,
            first_snapshot: self.durable.first_snapshot(),
            partial: self.durable.partial_position(),
            note_service_change: &|position| {
                self.durable.write_partial(&service.collections, position)
            },
            note_difference: None,
            runtime: &runtime,
        };
        for received in records {
            if !self.wait_for_disk(service, &received.record.entries) {
                return;
            }
            let applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
            let ReceivedRecord { record, own, tail } = received;
            let applied = applier.apply_record(&record, own);
            let time_us = tail.time_us;
            if applied.is_ok() {
                self.durable.note_applied(tail);
            }
            drop(applying);
            if let Err(reason) = applied {
                self.replica.progress.stop(&reason);
                self.replica.stop_threads();
                return;
            }
            self.replica.progress.note_applied(record.number, time_us);
        }
    }

    /// Waits while the disk has no room for entries, or more waits to be written than should. Returns `false` if the
    /// replica stops.
    fn wait_for_disk(&self, service: &ServiceState, entries: &[LogEntry]) -> bool {
        let collections = &service.collections;
        let created_bytes = count_created_bytes(entries);
        let mut is_reported = false;
        loop {
            if self.replica.has_ended() {
                return false;
            }
            let mut full = collections.disk_full_reason();
            if full.is_none() && created_bytes > 0 {
                full = collections.lack_of_room(created_bytes);
            }
            if full.is_none() && !durability::is_disk_behind(collections) {
                self.replica.progress.note_disk_wait(None);
                return true;
            }
            if let Some(reason) = full
                && !std::mem::replace(&mut is_reported, true)
            {
                tracing::warn!(reason, "the replica waits for room on its disk");
                self.replica.progress.note_disk_wait(Some(reason));
            }
            std::thread::sleep(DISK_WAIT);
        }
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

    /// Writes marks until the replica stops. They have a thread of their own, because a store that gives no answer must
    /// not delay what is written to disk.
    fn write_marks(&self, end_of_writing: &Receiver<()>) {
        let mut marked = None::<(u64, Instant)>;
        while !self.replica.has_ended() {
            std::thread::sleep(MARK_CHECK_INTERVAL);
            let applied = self.durable.durable_tail().next.saturating_sub(1);
            let is_due = marked.is_none_or(|(record, time)| {
                let interval = if record == applied {
                    IDLE_MARK_INTERVAL
                } else {
                    MARK_INTERVAL
                };
                time.elapsed() >= interval
            });
            if is_due {
                self.write_mark(None);
                self.prune_copies();
                marked = Some((applied, Instant::now()));
            }
        }
        // The last mark has what the last checkpoint has.
        let _ = end_of_writing.recv();
        let reason = self.replica.progress.stop_reason();
        self.write_mark(reason.or_else(|| Some(END_OF_SERVICE.to_owned())));
        self.replica.progress.note_last_mark();
    }

    /// Writes the mark of this replica. `stopped` is the reason why it stopped.
    fn write_mark(&self, stopped: Option<String>) {
        let tail = self.durable.durable_tail();
        if let Err(error) = self.marks.write(&*self.store, &tail, stopped) {
            tracing::debug!(%error, "the mark of the replica cannot be written");
        }
    }

    /// Removes the copies of records that have been removed from the log.
    fn prune_copies(&self) {
        let Ok(first) = read_first_number(&*self.store) else {
            return;
        };
        if let Err(error) = self.copies.remove_before(first) {
            tracing::warn!(%error, "old copies of records cannot be removed");
        }
    }
}

/// Returns the bytes of disk, about, that entries take which create a collection or upload a recipe.
fn count_created_bytes(entries: &[LogEntry]) -> u64 {
    let creates = |entry: &&LogEntry| {
        matches!(
            entry.kind,
            EntryKind::CreateCollection | EntryKind::PutRecipe
        )
    };
    let bytes = entries
        .iter()
        .filter(creates)
        .map(|entry| SMALL_FILES_BYTES + 2 * entry.body.len() as u64);
    bytes.sum()
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(work);
    started
        .map(drop)
        .map_err(with_context("cannot start a thread of the replica"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::collections::{AliasMap, write_aliases};

    /// Recipes and aliases are content of a directory, also without a collection; what every service leaves is none.
    #[test]
    fn recipes_and_aliases_are_content() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        let recipes = directory.join(RECIPES_DIRECTORY);
        assert!(!has_content(directory).unwrap());
        fs::create_dir(&recipes).unwrap();
        fs::write(recipes.join("lock"), "").unwrap();
        write_aliases(directory, &AliasMap::new()).unwrap();
        assert!(!has_content(directory).unwrap());
        fs::write(recipes.join("own.recipe"), "").unwrap();
        assert!(has_content(directory).unwrap());
        fs::remove_file(recipes.join("own.recipe")).unwrap();
        let aliases = AliasMap::from([("live".to_owned(), "news".to_owned())]);
        write_aliases(directory, &aliases).unwrap();
        assert!(has_content(directory).unwrap());
    }
}
