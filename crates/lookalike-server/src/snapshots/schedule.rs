//! Snapshots at regular intervals.
//!
//! Such a snapshot is named `auto-` and its time in UTC. Only snapshots with such names are ever deleted by the
//! schedule, and only after a newer one is complete.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::SnapshotStore;
use crate::api::snapshots::copy_collection;
use crate::collections::CollectionStatus;
use crate::collections::open_collection::OpenCollection;
use crate::service::ServiceState;

/// Prefix of the names of scheduled snapshots.
const PREFIX: &str = "auto-";

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
    let mut retry_at = None;
    loop {
        std::thread::sleep(CHECK_INTERVAL);
        let Some(service) = service.upgrade() else {
            return;
        };
        if retry_at.is_some_and(|time| SystemTime::now() < time) {
            continue;
        }
        retry_at = None;
        for (name, state) in service.collections.list_states() {
            let (CollectionStatus::Open(open), Some(snapshots)) = (state, &service.snapshots)
            else {
                continue;
            };
            if let Err(error) = make_if_due(&open, snapshots, schedule) {
                service.metrics.count_failed_snapshot();
                tracing::error!(collection = name, error, "no snapshot was made");
                retry_at = Some(SystemTime::now() + RETRY_INTERVAL.min(schedule.every));
            }
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
    if !is_due(
        snapshots.newest_scheduled(&open.name, || scheduled_times(open, snapshots))?,
        now,
        schedule.every,
    ) {
        return Ok(());
    }
    let name = snapshot_name(now);
    copy_collection(open, snapshots, &name).map_err(|problem| problem.detail)?;
    snapshots.set_newest_scheduled(&open.name, now);
    tracing::info!(collection = open.name, snapshot = name, "snapshot made");
    delete_oldest(&open.name, snapshots, schedule.keep)
}

/// Returns the time of the newest scheduled snapshot.
fn scheduled_times(
    open: &OpenCollection,
    snapshots: &SnapshotStore,
) -> Result<Option<SystemTime>, String> {
    let names = scheduled_names(&open.name, snapshots)?;
    Ok(names.iter().filter_map(|name| time_of_name(name)).max())
}

fn is_due(newest: Option<SystemTime>, now: SystemTime, every: Duration) -> bool {
    newest.is_none_or(|newest| match now.duration_since(newest) {
        Ok(age) => age >= every,
        // The clock was set back.
        Err(ahead) => ahead.duration() >= every,
    })
}

fn delete_oldest(collection: &str, snapshots: &SnapshotStore, keep: usize) -> Result<(), String> {
    let mut names = scheduled_names(collection, snapshots)?;
    names.sort_unstable();
    let surplus = names.len().saturating_sub(keep);
    for name in &names[..surplus] {
        // One that is being restored is deleted the next time.
        match snapshots.delete_snapshot(collection, name) {
            Ok(_) => tracing::info!(collection, snapshot = name, "old snapshot deleted"),
            Err(refusal) => tracing::warn!(collection, snapshot = name, ?refusal, "not deleted"),
        }
    }
    Ok(())
}

fn scheduled_names(collection: &str, snapshots: &SnapshotStore) -> Result<Vec<String>, String> {
    let listed = snapshots.list_snapshots(Some(collection));
    let listed = listed.map_err(|error| format!("the snapshots cannot be listed: {error}"))?;
    let names = listed.into_iter().map(|it| it.name);
    Ok(names.filter(|name| time_of_name(name).is_some()).collect())
}

fn snapshot_name(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{PREFIX}{}", time.strftime(TIME_FORM))
}

/// Returns the time in the name of a scheduled snapshot.
fn time_of_name(name: &str) -> Option<SystemTime> {
    let text = name.strip_prefix(PREFIX)?;
    let civil = jiff::civil::DateTime::strptime(TIME_FORM, text).ok()?;
    let time = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    (snapshot_name(time.into()) == name).then(|| time.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::check_name;

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
