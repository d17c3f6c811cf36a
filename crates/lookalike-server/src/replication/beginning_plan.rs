//! Decides where a replica begins, by its data directory and by what is below the URL of the log.
//!
//! | data directory | log | beginning |
//! |---|---|---|
//! | has a checkpoint | | behind the checkpoint |
//! | empty | has a snapshot | the newest snapshot that others confirmed is copied, and the records behind it are applied |
//! | empty | has no snapshot | its first record |
//! | empty | another replica begins it | waits for its first record |
//! | has content and no checkpoint | does not exist | the content becomes its first snapshot |
//! | has content and no checkpoint | exists | refused: nobody knows how the two fit together |
//!
//! The content of a directory is its collections, recipes and aliases.

use std::path::Path;

use lookalike_log::{
    EntryKind, LogEntry, LogId, LogRecord, LogStore, LogTail, RECORD_PREFIX, StoreError,
    parse_record_key,
};
use lookalike_store::RecipeArchive;

use super::ReplicaSettings;
use super::checkpoint::{DirectoryState, LogCheckpoint};
use super::log_snapshots::{LogSnapshot, LogSnapshots, choose_snapshot, snapshot_name};
use crate::collections::{has_aliases, has_collections};
use crate::error::{Error, Result, bail, with_context};
use crate::recipes::RECIPES_DIRECTORY;

/// Where a replica begins.
#[derive(Debug)]
pub(super) enum BeginningPlan {
    /// Behind the checkpoint of the directory.
    Continue(LogCheckpoint),
    /// With a copy of a snapshot.
    Restore(Box<LogSnapshot>),
    /// With the content of the directory, which becomes the first snapshot of a new log.
    BeginLog,
}

/// Reason why a beginning cannot be decided.
#[derive(Debug)]
pub(super) enum PlanProblem {
    /// The store gives no answer, or another replica begins the log: the same may succeed later.
    Temporary(String),
    /// The directory and the log do not fit together, or the store refuses requests.
    Final(Error),
}

impl From<Error> for PlanProblem {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<StoreError> for PlanProblem {
    fn from(error: StoreError) -> Self {
        if error.is_retryable {
            Self::Temporary(error.to_string())
        } else {
            Self::Final(error.into())
        }
    }
}

impl BeginningPlan {
    /// Returns the place in the log at which the replica begins.
    pub(super) fn first_tail(&self) -> LogTail {
        match self {
            Self::Continue(checkpoint) => checkpoint.tail,
            Self::Restore(snapshot) => snapshot.tail,
            Self::BeginLog => LogTail::default(),
        }
    }
}

/// Content of a log, for a replica that begins.
#[derive(Debug)]
pub(super) struct LogContent {
    /// Number of the first record; `None` if there are no records.
    first: Option<u64>,
    /// Record 1; `None` if it does not exist or is damaged, which the replica finds out when it reads it.
    first_record: Option<LogRecord>,
    /// Complete snapshots, by their places.
    snapshots: Vec<LogSnapshot>,
}

impl LogContent {
    /// Reads the beginning of the log and the manifests of the snapshots.
    ///
    /// # Errors
    /// If a request fails.
    pub(super) fn read(store: &dyn LogStore, snapshots: &LogSnapshots) -> Result<Self, StoreError> {
        // In this order, because a pruning removes records only if a snapshot has what they did.
        let found = snapshots.list_snapshots()?;
        let records = store.list(RECORD_PREFIX)?;
        let mut numbers = records
            .iter()
            .filter_map(|object| parse_record_key(&object.key));
        let first = numbers.next();
        let mut first_record = None;
        if first == Some(1) {
            let object = store.read(&lookalike_log::record_key(1))?;
            first_record = object.and_then(|object| LogRecord::decode(1, &object).ok());
        }
        Ok(Self {
            first,
            first_record,
            snapshots: found,
        })
    }

    /// Returns the entry that names the snapshot with which the log begins.
    fn find_beginning(&self) -> Option<&LogEntry> {
        let entry = self.first_record.as_ref()?.entries.first();
        entry.filter(|entry| entry.kind == EntryKind::Begin)
    }

    /// Returns `true` if the records behind a snapshot exist, and the log begins with it if it has no records. Of several
    /// replicas that began the log at once, only one has succeeded.
    fn fits(&self, snapshot: &LogSnapshot) -> bool {
        if snapshot.is_beginning() {
            let beginning = self.find_beginning();
            return beginning.is_some_and(|entry| is_beginning_with(entry, snapshot));
        }
        self.first.is_none_or(|first| first <= snapshot.tail.next)
    }

    /// Returns the snapshot from which a replica begins.
    pub(super) fn choose_snapshot(&self) -> Option<LogSnapshot> {
        self.choose_snapshot_of(|_| true)
    }

    /// Returns the snapshot, of those that are usable, from which a state is restored.
    pub(super) fn choose_snapshot_of(
        &self,
        is_usable: impl Fn(&LogSnapshot) -> bool,
    ) -> Option<LogSnapshot> {
        let usable = self
            .fitting_snapshots()
            .filter(|snapshot| is_usable(snapshot));
        let usable: Vec<_> = usable.cloned().collect();
        choose_snapshot(&usable).cloned()
    }

    /// Returns the snapshots behind which the records exist, by their places.
    pub(super) fn fitting_snapshots(&self) -> impl Iterator<Item = &LogSnapshot> {
        self.snapshots.iter().filter(|snapshot| self.fits(snapshot))
    }
}

/// Returns `true` if the first entry of a log names a snapshot. Entries of older versions have its name alone.
fn is_beginning_with(entry: &LogEntry, snapshot: &LogSnapshot) -> bool {
    let manifest = snapshot.manifest.map(|manifest| manifest.0);
    entry.subject == snapshot.name
        && (entry.body.is_empty() || manifest.is_some_and(|manifest| entry.body == manifest))
}

/// Decides where a replica begins whose directory has no checkpoint, or the one of an interrupted beginning.
///
/// # Errors
/// If a request fails, the directory does not belong to the log, or the log cannot begin now.
pub(super) fn plan_beginning(
    settings: &ReplicaSettings,
    directory: &Path,
    store: &dyn LogStore,
    snapshots: &LogSnapshots,
) -> Result<BeginningPlan, PlanProblem> {
    let checkpoint = LogCheckpoint::read_file(directory)?;
    let content = LogContent::read(store, snapshots)?;
    let url = &settings.shared_log;
    match checkpoint {
        Some(begun) if begun.state == DirectoryState::Beginning => {
            if content.first.is_none() {
                return Ok(BeginningPlan::BeginLog);
            }
            let plan = begun_before(settings, &begun, &content);
            if plan.is_err() {
                remove_own_beginning(settings, &begun, &content, snapshots)?;
            }
            return Ok(plan?);
        }
        // Content of such a directory is the rest of an interrupted copy.
        Some(_) => {}
        None if has_content(directory)? => {
            if content.first.is_none() {
                return Ok(BeginningPlan::BeginLog);
            }
            return Err(PlanProblem::Final(Error::new(format!(
                "{} has collections, recipes or aliases that do not come from the shared log {url}: start with an empty \
                 directory, or give the URL of a new log, which then begins with them",
                directory.display()
            ))));
        }
        None => {}
    }
    if let Some(snapshot) = content.choose_snapshot() {
        return Ok(BeginningPlan::Restore(Box::new(snapshot)));
    }
    plan_without_snapshot(settings, &content)
}

/// Returns the plan of an empty directory if there is no snapshot from which it can begin.
fn plan_without_snapshot(
    settings: &ReplicaSettings,
    content: &LogContent,
) -> Result<BeginningPlan, PlanProblem> {
    let url = &settings.shared_log;
    let begun = content.snapshots.first();
    if let (None, Some(begun)) = (content.first, begun) {
        return Err(PlanProblem::Temporary(format!(
            "the replica '{}' is beginning the shared log {url}, and this one waits for its first record; if that replica \
             does not come back, remove the objects below 'snapshots/{}'",
            begun.replica, begun.name
        )));
    }
    if let Some(beginning) = content.find_beginning() {
        return Err(PlanProblem::Final(Error::new(format!(
            "the shared log {url} begins with the snapshot '{}', which is gone or is another one now, and it has no later \
             one: start with the data directory of a replica",
            beginning.subject
        ))));
    }
    if content.first.is_some_and(|first| first > 1) {
        return Err(PlanProblem::Final(Error::new(format!(
            "the first records of the shared log {url} are gone and it has no snapshot: start with the data directory of \
             a replica"
        ))));
    }
    let tail = LogTail::default();
    let checkpoint = LogCheckpoint::new(DirectoryState::Following, &settings.name, tail);
    Ok(BeginningPlan::Continue(checkpoint))
}

/// Returns `true` if a data directory that is not open has collections, recipes or aliases.
fn has_content(directory: &Path) -> Result<bool> {
    let at = || with_context(format!("the directory {}", directory.display()));
    let recipes = directory.join(RECIPES_DIRECTORY);
    Ok(has_collections(directory).map_err(at())?
        || RecipeArchive::has_recipes(&recipes).map_err(at())?
        || has_aliases(directory)?)
}

/// Returns the plan of a directory whose collections became the beginning of the log shortly before a crash.
fn begun_before(
    settings: &ReplicaSettings,
    begun: &LogCheckpoint,
    content: &LogContent,
) -> Result<BeginningPlan> {
    let Some(record) = &content.first_record else {
        bail!(
            "the first record of the shared log {} is gone or damaged: find out with `lookalike store log verify`",
            settings.shared_log
        );
    };
    let beginning = content
        .find_beginning()
        .filter(|entry| is_own_beginning(settings, begun, entry));
    let Some(beginning) = beginning else {
        bail!(
            "the replica '{}' has begun the shared log: use another URL for these collections, or start with an empty \
             directory",
            record.writer
        );
    };
    Ok(BeginningPlan::Continue(LogCheckpoint {
        state: DirectoryState::Following,
        tail: record.tail(),
        snapshot: Some(beginning.subject.clone()),
        ..begun.clone()
    }))
}

/// Returns `true` if the first entry of a log names the snapshot that this directory has written. The checkpoint names it
/// before the entry is written.
fn is_own_beginning(settings: &ReplicaSettings, begun: &LogCheckpoint, entry: &LogEntry) -> bool {
    let manifest = begun.manifest.map(|manifest| manifest.0.to_vec());
    entry.subject == snapshot_name(&settings.name, &LogTail::default())
        && entry.body == manifest.unwrap_or_default()
}

/// Removes the snapshot of a beginning that another replica was ahead of, so that nobody begins with it.
fn remove_own_beginning(
    settings: &ReplicaSettings,
    begun: &LogCheckpoint,
    content: &LogContent,
    snapshots: &LogSnapshots,
) -> Result<(), StoreError> {
    let name = snapshot_name(&settings.name, &LogTail::default());
    let own = content.snapshots.iter().find(|snapshot| {
        snapshot.name == name
            && begun
                .manifest
                .is_some_and(|own| Some(own) == snapshot.manifest)
    });
    match own {
        Some(own) => snapshots.remove_snapshot(&own.name),
        None => Ok(()),
    }
}

/// Returns the checkpoint of a directory while a snapshot is copied to it.
pub(super) fn restoring_checkpoint(
    settings: &ReplicaSettings,
    snapshot: &LogSnapshot,
) -> LogCheckpoint {
    LogCheckpoint {
        snapshot: Some(snapshot.name.clone()),
        manifest: snapshot.manifest,
        ..LogCheckpoint::new(DirectoryState::Restoring, &settings.name, snapshot.tail)
    }
}

/// Returns the log to which the copies of a replica belong that begins by a plan; `None` if it does not exist yet.
///
/// # Errors
/// If a request fails.
pub(super) fn log_of_plan(
    plan: &BeginningPlan,
    store: &dyn LogStore,
) -> Result<Option<LogId>, StoreError> {
    let known = plan.first_tail().log;
    if known.is_some() || matches!(plan, BeginningPlan::BeginLog) {
        return Ok(known);
    }
    let object = store.read(&lookalike_log::record_key(1))?;
    let record = object.and_then(|object| LogRecord::decode(1, &object).ok());
    Ok(record.map(|record| record.log))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::time::Duration;

    use lookalike_log::simulation::{FaultRates, MemoryStore, SimulatedStore};
    use lookalike_log::{AppendOutcome, RecordDigest, SharedLog};

    use super::super::log_snapshots::tests::{open_snapshots, snapshot, write_snapshot};
    use super::super::state_check::ConfirmedPlace;
    use super::*;
    use crate::collections::{AliasMap, write_aliases};

    fn settings(name: &str) -> ReplicaSettings {
        ReplicaSettings {
            shared_log: "file:///log".to_owned(),
            name: name.to_owned(),
            writes_per_second: 4,
            snapshot_every: None,
            keep_log: Duration::from_secs(3600),
        }
    }

    /// Writes record 1, which names a snapshot.
    fn begin_log(store: &Arc<MemoryStore>, snapshot: &LogSnapshot, body: Vec<u8>) -> LogTail {
        let mut log = SharedLog::open(
            Arc::clone(store) as _,
            &snapshot.replica,
            LogTail::default(),
        );
        let begin = LogEntry {
            kind: EntryKind::Begin,
            subject: snapshot.name.clone(),
            body,
        };
        let outcome = log.append(vec![begin], 1_000_000).unwrap();
        assert!(matches!(outcome, AppendOutcome::Appended(_)));
        *log.tail()
    }

    fn digest_of(snapshot: &LogSnapshot) -> Vec<u8> {
        snapshot.manifest.unwrap().0.to_vec()
    }

    /// A moment is restored from the newest confirmed snapshot that is not behind it, and from an unconfirmed one without that.
    #[test]
    fn moment_is_restored_from_a_confirmed_snapshot() {
        let store = Arc::new(MemoryStore::new());
        let snapshots = open_snapshots(&store);
        let beginning = write_snapshot(&snapshots, snapshot(1, "a", false));
        write_snapshot(&snapshots, snapshot(1, "b", false));
        begin_log(&store, &beginning, digest_of(&beginning));
        for (next, is_confirmed) in [(65, false), (129, true), (193, false)] {
            write_snapshot(&snapshots, snapshot(next, "c", is_confirmed));
        }
        let place: ConfirmedPlace =
            serde_json::from_str(r#"{"record":128,"collections":{},"replicas":["b"]}"#).unwrap();
        snapshots
            .confirm_snapshot("0000000000000081-c", &place)
            .unwrap();
        let content = LogContent::read(&*store, &snapshots).unwrap();
        let chosen = [5, 64, 128, 200].map(|record| {
            let first = content.choose_snapshot_of(|snapshot| snapshot.end.next <= record + 1);
            first.unwrap().tail.next
        });
        assert_eq!(chosen, [1, 65, 129, 129]);
        let first = content
            .choose_snapshot_of(|snapshot| snapshot.end.next <= 6)
            .unwrap();
        assert_eq!(first.name, beginning.name);
    }

    /// A store with the first snapshots of two replicas that begin one log.
    fn two_beginnings() -> (Arc<MemoryStore>, LogSnapshots, [LogSnapshot; 2]) {
        let store = Arc::new(MemoryStore::new());
        let snapshots = open_snapshots(&store);
        let made =
            ["a", "b"].map(|replica| write_snapshot(&snapshots, snapshot(1, replica, false)));
        (store, snapshots, made)
    }

    fn plan(
        store: &Arc<MemoryStore>,
        snapshots: &LogSnapshots,
        directory: &Path,
    ) -> Result<BeginningPlan, PlanProblem> {
        plan_beginning(&settings("a"), directory, &**store, snapshots)
    }

    fn restored_name(plan: Result<BeginningPlan, PlanProblem>) -> String {
        match plan {
            Ok(BeginningPlan::Restore(snapshot)) => snapshot.name,
            other => panic!("{other:?}"),
        }
    }

    fn final_reason(plan: Result<BeginningPlan, PlanProblem>) -> String {
        match plan {
            Err(PlanProblem::Final(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// Of two replicas that begin a log at once, the snapshot of the one that succeeded is that of all others.
    #[test]
    fn snapshot_of_the_first_record_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let (store, snapshots, [first, second]) = two_beginnings();
        // Until the first record exists nobody knows which one it is.
        let waiting = plan(&store, &snapshots, folder.path());
        assert!(matches!(waiting, Err(PlanProblem::Temporary(_))));
        begin_log(&store, &first, digest_of(&first));
        let planned = plan(&store, &snapshots, folder.path());
        assert_eq!(restored_name(planned), first.name);
        // A later snapshot has both.
        let later = write_snapshot(&snapshots, snapshot(65, "b", false));
        let planned = plan(&store, &snapshots, folder.path());
        assert_eq!(restored_name(planned), later.name);
        snapshots.remove_snapshot(&later.name).unwrap();
        snapshots.remove_snapshot(&first.name).unwrap();
        let reason = final_reason(plan(&store, &snapshots, folder.path()));
        assert!(reason.contains(&first.name), "{reason}");
        assert_ne!(first.name, second.name);
    }

    /// A log of an older version names its snapshot alone.
    #[test]
    fn beginning_without_a_digest_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (store, snapshots, [first, _]) = two_beginnings();
        begin_log(&store, &first, Vec::new());
        let planned = plan(&store, &snapshots, folder.path());
        assert_eq!(restored_name(planned), first.name);
    }

    /// A snapshot that was replaced by another one of its name is not the beginning of the log.
    #[test]
    fn replaced_snapshot_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, snapshots, [first, _]) = two_beginnings();
        begin_log(&store, &first, vec![7; 32]);
        let reason = final_reason(plan(&store, &snapshots, folder.path()));
        assert!(reason.contains("is another one now"), "{reason}");
    }

    /// A directory that was beginning the log goes on after a crash if the first record names what it has written, and
    /// else leaves no snapshot from which others would begin.
    #[test]
    fn interrupted_beginning_goes_on_with_its_own_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let begun = |manifest| {
            let tail = LogTail::default();
            let checkpoint = LogCheckpoint {
                manifest,
                ..LogCheckpoint::new(DirectoryState::Beginning, "a", tail)
            };
            checkpoint.write_file(folder.path()).unwrap();
        };
        let (store, snapshots, [own, other]) = two_beginnings();
        begun(own.manifest);
        let planned = plan(&store, &snapshots, folder.path());
        assert!(
            matches!(planned, Ok(BeginningPlan::BeginLog)),
            "{planned:?}"
        );
        let tail = begin_log(&store, &own, digest_of(&own));
        // Later snapshots of others do not matter.
        write_snapshot(&snapshots, snapshot(65, "b", false));
        let Ok(BeginningPlan::Continue(checkpoint)) = plan(&store, &snapshots, folder.path())
        else {
            panic!("the beginning was not recognised");
        };
        assert_eq!((checkpoint.tail, checkpoint.manifest), (tail, own.manifest));
        // Another directory of the same name has begun the log.
        begun(Some(RecordDigest([7; 32])));
        let reason = final_reason(plan(&store, &snapshots, folder.path()));
        assert!(reason.contains("has begun the shared log"), "{reason}");
        // Another replica has begun it.
        let (store, snapshots, [own, _]) = two_beginnings();
        begin_log(&store, &other, digest_of(&other));
        begun(own.manifest);
        final_reason(plan(&store, &snapshots, folder.path()));
        let left = snapshots.list_snapshots().unwrap();
        assert!(left.iter().all(|snapshot| snapshot.replica == "b"));
    }

    /// Snapshots before the first record that exists are of no use.
    #[test]
    fn snapshots_before_removed_records_are_not_restored() {
        let store = Arc::new(MemoryStore::new());
        let snapshots = open_snapshots(&store);
        let trusted = write_snapshot(&snapshots, snapshot(10, "a", false));
        let place = serde_json::from_str(r#"{"record":9,"collections":{},"replicas":["b"]}"#);
        snapshots
            .confirm_snapshot(&trusted.name, &place.unwrap())
            .unwrap();
        let later = write_snapshot(&snapshots, snapshot(20, "a", false));
        let folder = tempfile::tempdir().unwrap();
        store.replace(&lookalike_log::record_key(10), b"x").unwrap();
        let planned = plan(&store, &snapshots, folder.path());
        assert_eq!(restored_name(planned), trusted.name);
        store.remove(&lookalike_log::record_key(10)).unwrap();
        store.replace(&lookalike_log::record_key(11), b"x").unwrap();
        let planned = plan(&store, &snapshots, folder.path());
        assert_eq!(restored_name(planned), later.name);
    }

    /// A store that gives no answer is waited for.
    #[test]
    fn outage_of_the_store_is_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = open_snapshots(&Arc::new(MemoryStore::new()));
        let store = SimulatedStore::new(1, FaultRates::NONE);
        store.begin_outage(1);
        let decide = || plan_beginning(&settings("a"), folder.path(), &store, &snapshots);
        assert!(matches!(decide(), Err(PlanProblem::Temporary(_))));
        let planned = decide();
        assert!(
            matches!(planned, Ok(BeginningPlan::Continue(_))),
            "{planned:?}"
        );
    }

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
