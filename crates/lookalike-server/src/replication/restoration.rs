//! Restores the state that a shared log had at a moment.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookalike_log::{
    LogRecord, LogStore, LogTail, SharedLog, StoreError, describe_record, read_first_number,
    record_key,
};
use lookalike_store::CollectionOptions;
use tokio::runtime::Runtime;

use super::LogClock;
use super::apply::RecordApplier;
use super::beginning_plan::LogContent;
use super::durability::{flush_collections, is_disk_behind};
use super::log_snapshots::{LogSnapshot, LogSnapshots};
use super::log_store::{check_log_exists, open_existing_log_store};
use super::state_check::CheckSchedule;
use crate::collections::{ServedCollections, has_collections};
use crate::error::{Error, Result, bail, with_context};
use crate::recipes::ServedRecipes;
use crate::service::follower_options;

/// Bytes of the cache of recipes while a state is restored.
const RECIPE_BYTES: usize = 256 << 20;

/// Moment whose state is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// Behind the last record.
    Latest,
    /// Behind the record of this number.
    Record(u64),
    /// Behind the last record that is not later than this time, in microseconds since 1970.
    Time(i64),
}

impl RestorePoint {
    /// Returns `true` if a place behind a record, with the time of that record, is not behind the moment.
    fn includes(self, record: u64, time_us: i64) -> bool {
        match self {
            Self::Latest => true,
            Self::Record(last) => record <= last,
            Self::Time(last_us) => time_us <= last_us,
        }
    }
}

/// A snapshot from which a state could not be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableSnapshot {
    /// Name of the snapshot.
    pub name: String,
    /// Reason why it cannot be used.
    pub reason: String,
}

/// A restored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredLog {
    /// Number of the last record whose effect is in it.
    pub record: u64,
    /// Time of that record, in microseconds since 1970.
    pub time_us: i64,
    /// Names of the collections.
    pub collections: Vec<String>,
    /// Comparisons of states in the log that differ from the restored state.
    pub differing_checks: Vec<DifferingCheck>,
    /// Better snapshots that could not be used.
    pub unusable_snapshots: Vec<UnusableSnapshot>,
}

/// A comparison of states that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferingCheck {
    /// Number of the record behind which the states differ.
    pub record: u64,
    /// Name of the replica that has the other state.
    pub writer: String,
    /// Names of the collections that differ; none if the comparison cannot be read.
    pub collections: Vec<String>,
}

/// Restores the state that a log had at a moment to an empty data directory, from the newest snapshot before it that
/// others confirmed (or the newest one) and the records behind that. A service can then be started with the directory, without the log or as the beginning of a new
/// one. A failed restoration removes what it has made.
///
/// # Errors
/// If there is no log, the directory has collections, the log does not reach back or forth to the moment, the log is
/// damaged, or the store or the disk fails.
pub fn restore_from_log(url: &str, directory: &Path, point: RestorePoint) -> Result<RestoredLog> {
    let runtime = Runtime::new().map_err(with_context("cannot start the threads for requests"))?;
    let store = open_existing_log_store(url, runtime.handle())?;
    check_log_exists(url, &*store)?;
    let snapshots = LogSnapshots::open(url, Arc::clone(&store), runtime.handle())?;
    let content = LogContent::read(&*store, &snapshots)?;
    FirstMoment::find(url, &*store, &content)?.check_point(url, point)?;
    let mut unusable = Vec::<UnusableSnapshot>::new();
    loop {
        let is_usable = |snapshot: &LogSnapshot| {
            let end = &snapshot.end;
            point.includes(end.next - 1, end.time_us)
                && !unusable.iter().any(|other| other.name == snapshot.name)
        };
        let first = content.choose_snapshot_of(is_usable);
        let made = MadeDirectory::make(directory)?;
        let store = Arc::clone(&store);
        match restore_to(
            directory,
            point,
            store,
            &snapshots,
            first.as_ref(),
            &runtime,
        ) {
            Ok(restored) => {
                return Ok(RestoredLog {
                    unusable_snapshots: unusable,
                    ..restored
                });
            }
            Err(RestoreFailure::Snapshot(error)) if first.is_some() => {
                made.remove();
                let name = first.map_or_else(String::new, |snapshot| snapshot.name);
                let reason = error.to_string();
                unusable.push(UnusableSnapshot { name, reason });
            }
            Err(RestoreFailure::Snapshot(error) | RestoreFailure::Other(error)) => {
                made.remove();
                return Err(first_failure(unusable, error));
            }
        }
    }
}

/// Returns the error of a restoration in which no snapshot was usable: that of the best one.
fn first_failure(unusable: Vec<UnusableSnapshot>, error: Error) -> Error {
    match unusable.into_iter().next() {
        None => error,
        Some(UnusableSnapshot { name, reason }) => Error::new(format!(
            "the moment can be restored from no snapshot; from '{name}': {reason}"
        )),
    }
}

/// The first moment whose state can be restored.
struct FirstMoment {
    record: u64,
    time_us: i64,
    /// Name of the snapshot of that moment; `None` if the log has its first record.
    snapshot: Option<String>,
}

impl FirstMoment {
    /// Finds the first moment: the first record, or the oldest snapshot if that was removed.
    fn find(url: &str, store: &dyn LogStore, content: &LogContent) -> Result<Self> {
        let unreadable = || with_context::<StoreError>(format!("the shared log {url}"));
        if read_first_number(store).map_err(unreadable())? == 1
            && let Some(object) = store.read(&record_key(1)).map_err(unreadable())?
            && let Ok(record) = LogRecord::decode(1, &object)
        {
            return Ok(Self {
                record: 1,
                time_us: record.time_us,
                snapshot: None,
            });
        }
        let oldest = content
            .fitting_snapshots()
            .filter(|snapshot| snapshot.end.next > 1)
            .min_by_key(|snapshot| snapshot.end.next);
        let Some(oldest) = oldest else {
            bail!(
                "the first records of the shared log {url} are missing or damaged and it has no snapshot, so no state \
                 of it can be restored: `lookalike store log verify` lists the damages"
            );
        };
        Ok(Self {
            record: oldest.end.next - 1,
            time_us: oldest.end.time_us,
            snapshot: Some(oldest.name.clone()),
        })
    }

    /// Checks that a moment is not before this one.
    fn check_point(&self, url: &str, point: RestorePoint) -> Result<()> {
        if point.includes(self.record, self.time_us) {
            return Ok(());
        }
        let time = jiff::Timestamp::from_microsecond(self.time_us).unwrap_or_default();
        let origin = match &self.snapshot {
            Some(snapshot) => {
                format!(
                    "that of its first snapshot, '{snapshot}', because older records were removed"
                )
            }
            None => "that of its first record".to_owned(),
        };
        bail!(
            "{} is before the first moment of the shared log {url} that can be restored: {time}, behind {}, {origin}",
            describe_point(point),
            describe_record(self.record)
        )
    }
}

fn describe_point(point: RestorePoint) -> String {
    match point {
        RestorePoint::Latest => "the end of the log".to_owned(),
        RestorePoint::Record(record) => describe_record(record),
        RestorePoint::Time(time_us) => {
            let time = jiff::Timestamp::from_microsecond(time_us).unwrap_or_default();
            time.to_string()
        }
    }
}

/// A directory in which a state is restored, as it was before.
struct MadeDirectory {
    path: PathBuf,
    /// The outermost directory that was created for it.
    created: Option<PathBuf>,
    /// Names that the directory had.
    earlier: BTreeSet<OsString>,
}

impl MadeDirectory {
    /// Makes a directory without collections, if it does not exist.
    fn make(path: &Path) -> Result<Self> {
        let at = || with_context(format!("the directory {}", path.display()));
        let missing = path
            .ancestors()
            .filter(|ancestor| !ancestor.as_os_str().is_empty())
            .take_while(|ancestor| !ancestor.exists());
        let created = missing.last().map(Path::to_owned);
        lookalike_store::make_directory(path).map_err(at())?;
        if has_collections(path).map_err(at())? {
            bail!("{} has collections: name a new directory", path.display());
        }
        let earlier = fs::read_dir(path).map_err(at())?;
        let earlier = earlier.map(|entry| entry.map(|entry| entry.file_name()));
        Ok(Self {
            path: path.to_owned(),
            created,
            earlier: earlier.collect::<Result<_, _>>().map_err(at())?,
        })
    }

    /// Removes all that came into the directory, and the directory itself if it was made. What cannot be removed stays.
    fn remove(self) {
        if let Some(created) = self.created {
            let _ = fs::remove_dir_all(created);
            return;
        }
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if self.earlier.contains(&entry.file_name()) {
                continue;
            }
            let path = entry.path();
            let _ = if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
    }
}

/// A failed restoration.
enum RestoreFailure {
    /// The snapshot cannot be used; another one may do.
    Snapshot(Error),
    Other(Error),
}

impl From<Error> for RestoreFailure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Restores a moment to a directory without collections, from a snapshot, or the first record without one.
fn restore_to(
    directory: &Path,
    point: RestorePoint,
    store: Arc<dyn LogStore>,
    snapshots: &LogSnapshots,
    usable: Option<&LogSnapshot>,
    runtime: &Runtime,
) -> Result<RestoredLog, RestoreFailure> {
    let mut tail = LogTail::default();
    if let Some(snapshot) = usable {
        let restored = snapshots.restore_small_parts(snapshot, directory);
        restored.map_err(RestoreFailure::Snapshot)?;
        tail = snapshot.tail;
    }
    let clock = LogClock::default();
    clock.set_time(tail.time_us);
    let options = follower_options(CollectionOptions::default(), &clock);
    let headroom = options.headroom;
    let collections = ServedCollections::new(directory, options)?;
    if let Some(snapshot) = usable {
        let restored = snapshots.restore_collections(snapshot, &collections, headroom);
        restored.map_err(|problem| RestoreFailure::Snapshot(Error::new(problem.detail)))?;
    }
    let recipes = ServedRecipes::open(directory, headroom, RECIPE_BYTES)?;
    let differing_checks = RefCell::new(Vec::<DifferingCheck>::new());
    let applier = RecordApplier {
        collections: &collections,
        recipes: &recipes,
        clock: &clock,
        checks: &CheckSchedule::new("restore"),
        first_snapshot: usable.map(|snapshot| snapshot.name.clone()),
        first_manifest: usable.and_then(|snapshot| snapshot.manifest),
        partial: None,
        // A restoration that is interrupted is begun again.
        note_service_change: &|_| Ok(()),
        note_difference: Some(&|check| differing_checks.borrow_mut().push(check)),
        runtime: runtime.handle(),
    };
    let end = apply_until(store, tail, point, &applier)?;
    flush_collections(&collections).map_err(Error::new)?;
    Ok(RestoredLog {
        record: end.next.saturating_sub(1),
        time_us: end.time_us,
        collections: collections.open_names(),
        differing_checks: differing_checks.into_inner(),
        unusable_snapshots: Vec::new(),
    })
}

/// Applies records up to a moment; returns the place behind the last one.
fn apply_until(
    store: Arc<dyn LogStore>,
    tail: LogTail,
    point: RestorePoint,
    applier: &RecordApplier<'_>,
) -> Result<LogTail> {
    let is_later = |record: &LogRecord| !point.includes(record.number, record.time_us);
    let mut end = tail;
    let mut log = SharedLog::open(store, "restore", tail);
    loop {
        let record = log.read_next().map_err(with_context("the shared log"))?;
        let Some(record) = record else {
            return match point {
                RestorePoint::Record(last) if last >= end.next => bail!(
                    "the shared log ends with record {}, and record {last} was asked for",
                    end.next.saturating_sub(1)
                ),
                _ => Ok(end),
            };
        };
        if is_later(&record) {
            return Ok(end);
        }
        applier
            .apply_record(&record, Vec::new())
            .map_err(Error::new)?;
        end = *log.tail();
        if is_disk_behind(applier.collections) {
            flush_collections(applier.collections).map_err(Error::new)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content that stood in a directory before stays; the rest goes, with the directories that were made for it.
    #[test]
    fn failed_restorations_remove_what_they_made() {
        let folder = tempfile::tempdir().unwrap();
        let made = MadeDirectory::make(&folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/file"), "x").unwrap();
        made.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(folder.path().join("own"), "x").unwrap();
        let made = MadeDirectory::make(folder.path()).unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        fs::create_dir_all(folder.path().join("news/rows")).unwrap();
        made.remove();
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["own"]);
    }

    /// The first moment includes itself, and nothing before it.
    #[test]
    fn moments_before_the_first_one_are_refused() {
        let first = FirstMoment {
            record: 40,
            time_us: 1_700_000_000_000_000,
            snapshot: Some("s".to_owned()),
        };
        for point in [
            RestorePoint::Latest,
            RestorePoint::Record(40),
            RestorePoint::Time(first.time_us),
        ] {
            assert!(first.check_point("file:///x", point).is_ok(), "{point:?}");
        }
        for point in [
            RestorePoint::Record(39),
            RestorePoint::Time(first.time_us - 1),
        ] {
            let refused = first.check_point("file:///x", point).unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains("2023-11-14T22:13:20Z"), "{refused}");
            assert!(
                refused.contains("record 40") && refused.contains("'s'"),
                "{refused}"
            );
        }
    }
}
