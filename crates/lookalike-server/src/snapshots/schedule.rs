//! Snapshots at regular intervals.
//!
//! Such a snapshot is named `auto-` and its time in UTC. Only snapshots with such names are ever deleted by the
//! schedule, and only after a newer one is complete. The call that makes a snapshot on request refuses such names, so
//! that the name alone says who made a snapshot. A mark in the snapshot would not say it of those that earlier
//! versions made.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;

use super::{SnapshotInfo, SnapshotStore};
use crate::api::snapshots::copy_collection;
use crate::collections::open_collection::OpenCollection;
use crate::condition_log::ConditionLog;
use crate::service::ServiceState;

/// Prefix of the names of scheduled snapshots.
const SCHEDULED_PREFIX: &str = "auto-";

/// Form of their times: fixed length, so that names are ordered by time.
const TIME_FORM: &str = "%Y%m%dt%H%M%Sz";

/// Interval between checks whether a snapshot is due.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Interval after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// When snapshots are made, and how many of them stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotSchedule {
    /// Time between two snapshots of a collection, at least a second.
    pub every: Duration,
    /// Number of scheduled snapshots of a collection that stay, from 1.
    pub keep: usize,
}

/// Starts the thread that makes snapshots until the service is dropped.
///
/// # Errors
/// If the system cannot start a thread.
pub(crate) fn start_thread(
    service: &Arc<ServiceState>,
    schedule: SnapshotSchedule,
) -> std::io::Result<()> {
    let service = Arc::downgrade(service);
    let thread = std::thread::Builder::new().name("lookalike-snapshots".to_owned());
    thread
        .spawn(move || run_schedule(&service, schedule))
        .map(drop)
}

fn run_schedule(service: &Weak<ServiceState>, schedule: SnapshotSchedule) {
    // The time of the next attempt for collections whose last one failed.
    let mut retry_at: BTreeMap<String, Instant> = BTreeMap::new();
    let mut failed_collections = ConditionLog::default();
    loop {
        std::thread::sleep(CHECK_INTERVAL);
        let Some(service) = service.upgrade() else {
            return;
        };
        let Some(snapshots) = &service.snapshots else {
            return;
        };
        let names = service.collections.open_names();
        failed_collections.retain_subjects(&names);
        // A new collection of the name of a deleted one does not wait for it.
        retry_at.retain(|name, _| names.contains(name));
        for name in names {
            if retry_at
                .get(&name)
                .is_some_and(|&time| Instant::now() < time)
            {
                continue;
            }
            // One collection at a time, because a deletion waits for what uses the collection.
            let Ok(open) = service.collections.look_up_collection(&name) else {
                continue;
            };
            retry_at.remove(&name);
            let Err(error) = make_if_due(&open, snapshots, schedule) else {
                if let Some(attempts) = failed_collections.end_condition(&name) {
                    tracing::info!(collection = name, attempts, "snapshots are made again");
                }
                continue;
            };
            service.metrics.count_failed_snapshot();
            let now = Instant::now();
            if let Some(attempts) = failed_collections.count_failure(&name, &error, now) {
                tracing::error!(collection = name, error, attempts, "no snapshot was made");
            }
            retry_at.insert(name, now + RETRY_INTERVAL.min(schedule.every));
        }
    }
}

/// Makes a snapshot if the newest scheduled one is older than the interval, and deletes the oldest ones.
fn make_if_due(
    open: &OpenCollection,
    snapshots: &SnapshotStore,
    schedule: SnapshotSchedule,
) -> Result<(), String> {
    let now = SystemTime::now();
    let newest = snapshots.newest_scheduled(&open.name, || scheduled_times(open, snapshots))?;
    if !is_due(newest, now, schedule.every) {
        return Ok(());
    }
    let name = snapshot_name(now);
    copy_collection(open, snapshots, &name).map_err(|problem| problem.detail)?;
    snapshots.set_newest_scheduled(&open.name, now);
    tracing::info!(collection = open.name, snapshot = name, "snapshot made");
    if let Err(error) = delete_oldest(&open.name, snapshots, &name, schedule.keep) {
        let collection = &open.name;
        tracing::warn!(
            collection,
            error,
            "old snapshots were not deleted: they stay until the next time"
        );
    }
    Ok(())
}

/// Returns the time of the newest scheduled snapshot.
fn scheduled_times(
    open: &OpenCollection,
    snapshots: &SnapshotStore,
) -> Result<Option<SystemTime>, String> {
    let scheduled = scheduled_snapshots(&open.name, snapshots)?;
    Ok(scheduled.iter().map(|snapshot| snapshot.time).max())
}

fn is_due(newest: Option<SystemTime>, now: SystemTime, every: Duration) -> bool {
    newest.is_none_or(|newest| match now.duration_since(newest) {
        Ok(age) => age >= every,
        // The clock was set back.
        Err(ahead) => ahead.duration() >= every,
    })
}

/// Deletes scheduled snapshots but `made` and the newest others, of which `keep` are left in all, and what
/// interrupted ones have left.
fn delete_oldest(
    collection: &str,
    snapshots: &SnapshotStore,
    made: &str,
    keep: usize,
) -> Result<(), String> {
    let mut others = scheduled_snapshots(collection, snapshots)?;
    others.retain(|other| other.name != made);
    // By time and not by name, because the clock may have been set back.
    others.sort_by_key(|other| other.time);
    let surplus = others.len().saturating_sub(keep - 1);
    let listed = snapshots.list_names(collection);
    let listed = listed.map_err(|error| format!("the snapshots cannot be listed: {error}"))?;
    let is_complete =
        |name: &String| name == made || others.iter().any(|other| other.name == *name);
    let remains = listed
        .iter()
        .filter(|name| is_scheduled_name(name) && !is_complete(name));
    let old = others[..surplus].iter().map(|other| &other.name);
    for name in old.chain(remains) {
        // One that is being restored is deleted the next time.
        match snapshots.delete_snapshot(collection, name) {
            Ok(_) => tracing::info!(collection, snapshot = name, "old snapshot deleted"),
            Err(refusal) => tracing::warn!(collection, snapshot = name, ?refusal, "not deleted"),
        }
    }
    Ok(())
}

/// Returns the complete scheduled snapshots of a collection.
fn scheduled_snapshots(
    collection: &str,
    snapshots: &SnapshotStore,
) -> Result<Vec<SnapshotInfo>, String> {
    let listed = snapshots.list_snapshots(Some(collection));
    let mut listed = listed.map_err(|error| format!("the snapshots cannot be listed: {error}"))?;
    listed.retain(|snapshot| is_scheduled_name(&snapshot.name));
    Ok(listed)
}

fn snapshot_name(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{SCHEDULED_PREFIX}{}", time.strftime(TIME_FORM))
}

/// Returns `true` for a name that the schedule gives, and whose snapshot it deletes in time. Nobody else may give one.
pub(crate) fn is_scheduled_name(name: &str) -> bool {
    time_of_name(name).is_some()
}

/// Returns the time in the name of a scheduled snapshot.
fn time_of_name(name: &str) -> Option<SystemTime> {
    let text = name.strip_prefix(SCHEDULED_PREFIX)?;
    let civil = jiff::civil::DateTime::strptime(TIME_FORM, text).ok()?;
    let time = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    (snapshot_name(time.into()) == name).then(|| time.into())
}

#[cfg(test)]
mod tests {
    use lookalike_store::{Disk, MANIFEST_FILE};

    use super::*;
    use crate::collections::check_name;
    use crate::snapshots::SnapshotPlace;

    #[test]
    fn names_are_ordered_by_time() {
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let times = [0, 59, 86_399, 1_700_000_000, 1_800_000_001];
        let names: Vec<_> = times.iter().map(|&it| snapshot_name(at(it))).collect();
        assert!(names.is_sorted());
        for (name, seconds) in names.iter().zip(times) {
            assert!(check_name(name).is_ok(), "{name}");
            assert_eq!(time_of_name(name), Some(at(seconds)));
        }
        for name in [
            "auto-",
            "auto-1",
            "manual",
            "auto-20260101t000000z1",
            "auto-20261301t000000z",
        ] {
            assert_eq!(time_of_name(name), None, "{name}");
        }
    }

    /// The snapshot just made stays, also if the clock was set back before it, and remains of interrupted ones
    /// are removed.
    #[test]
    fn newest_snapshot_is_never_deleted() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = SnapshotPlace::Folder(folder.path().to_owned());
        let snapshots = SnapshotStore::open_place(&place, runtime.handle().clone()).unwrap();
        let make = |name: &str| {
            let copy = |disk: &dyn Disk| {
                let file = disk.create_file(MANIFEST_FILE).unwrap();
                file.write_at(b"x", 0).unwrap();
                file.sync().unwrap();
                Ok(())
            };
            snapshots.make_snapshot("a", name, copy).unwrap();
            // File times of some systems are coarse.
            std::thread::sleep(Duration::from_millis(20));
        };
        let names = || {
            let mut names = snapshots.list_names("a").unwrap();
            names.sort();
            names
        };
        let (later, now) = ("auto-20990101t000000z", "auto-20260101t000000z");
        ["manual", later, now].into_iter().for_each(make);
        let remains = folder.path().join("a/auto-20250101t000000z");
        std::fs::create_dir(&remains).unwrap();
        std::fs::write(remains.join("0000000000000001.texts"), "half").unwrap();
        delete_oldest("a", &snapshots, now, 2).unwrap();
        assert_eq!(names(), [now, later, "manual"]);
        delete_oldest("a", &snapshots, now, 1).unwrap();
        assert_eq!(names(), [now, "manual"]);
        assert!(!remains.exists());
        assert!(snapshots.newest_times()["a"] <= SystemTime::now());
        for name in [now, "manual"] {
            assert!(snapshots.delete_snapshot("a", name).unwrap());
        }
        assert!(snapshots.newest_times().is_empty() && names().is_empty());
        assert!(!snapshots.delete_snapshot("a", now).unwrap());
    }

    #[test]
    fn snapshots_are_due_after_the_interval() {
        let (now, every) = (SystemTime::now(), Duration::from_secs(60));
        let second = Duration::from_secs(1);
        assert!(is_due(None, now, every));
        assert!(is_due(Some(now - every), now, every));
        assert!(!is_due(Some(now - every + second), now, every));
        assert!(!is_due(Some(now + every - second), now, every));
        assert!(is_due(Some(now + every), now, every));
    }
}
