//! Snapshots beside a log: their places in it, and the rest of those that were interrupted.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::keys::{SNAPSHOT_MANIFEST, SNAPSHOT_PREFIX};
use crate::record::LogTail;
use crate::store::{ListedObject, LogStore, StoreError};

/// Age from which a snapshot without a manifest counts as interrupted.
pub const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Places of a complete snapshot in the log, as its manifest states them. All else in a manifest is of no concern here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SnapshotExtent {
    /// Name of the snapshot.
    pub name: String,
    /// Place after the last record of which everything is in the snapshot.
    pub tail: LogTail,
    /// Place after the last record of which anything may be in the snapshot.
    pub end: LogTail,
}

/// The objects of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedSnapshot {
    /// Name of the snapshot.
    pub name: String,
    /// Objects of the snapshot.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// `true` if it has a manifest, which is written last.
    pub complete: bool,
    /// Latest time of a change of an object, in microseconds since 1970; `None` if the time of one is not known.
    #[serde(skip)]
    pub(super) modified_us: Option<i64>,
}

/// Reads the places of all complete snapshots, sorted by name. One request lists them, and each takes one more.
///
/// # Errors
/// If a request fails, or a manifest is malformed.
pub fn read_snapshot_extents(store: &dyn LogStore) -> Result<Vec<SnapshotExtent>, StoreError> {
    let listed = list_snapshots(store)?.into_iter();
    let complete = listed.filter(|snapshot| snapshot.complete);
    let mut extents = Vec::new();
    for snapshot in complete {
        let key = format!("{SNAPSHOT_PREFIX}{}/{SNAPSHOT_MANIFEST}", snapshot.name);
        // A snapshot may be removed after the list was made.
        let Some(object) = store.read(&key)? else {
            continue;
        };
        let extent = serde_json::from_slice(&object).map_err(|cause| {
            StoreError::permanent(format!(
                "object '{key}' is not the manifest of a snapshot ({cause}): remove the objects of this snapshot"
            ))
        })?;
        extents.push(extent);
    }
    Ok(extents)
}

/// Removes the rest of snapshots that were interrupted: those without a manifest of which no object has changed since a
/// time, in microseconds since 1970. Returns their names.
///
/// # Errors
/// If a request fails.
pub fn remove_incomplete_snapshots(
    store: &dyn LogStore,
    unchanged_since_us: i64,
) -> Result<Vec<String>, StoreError> {
    let listed = list_snapshots(store)?;
    let mut removed = Vec::new();
    for snapshot in listed
        .iter()
        .filter(|snapshot| is_abandoned(snapshot, unchanged_since_us))
    {
        for object in store.list(&format!("{SNAPSHOT_PREFIX}{}/", snapshot.name))? {
            store.remove(&object.key)?;
        }
        removed.push(snapshot.name.clone());
    }
    Ok(removed)
}

fn is_abandoned(snapshot: &ListedSnapshot, unchanged_since_us: i64) -> bool {
    let is_old = snapshot
        .modified_us
        .is_some_and(|modified_us| modified_us < unchanged_since_us);
    !snapshot.complete && is_old
}

/// Lists the snapshots, sorted by name.
pub(super) fn list_snapshots(store: &dyn LogStore) -> Result<Vec<ListedSnapshot>, StoreError> {
    store
        .list(SNAPSHOT_PREFIX)
        .map(|objects| group_snapshots(&objects))
}

fn group_snapshots(objects: &[ListedObject]) -> Vec<ListedSnapshot> {
    let mut snapshots = BTreeMap::<&str, ListedSnapshot>::new();
    for object in objects {
        let path = object.key.strip_prefix(SNAPSHOT_PREFIX);
        let Some((name, file)) = path.and_then(|path| path.split_once('/')) else {
            continue;
        };
        let snapshot = snapshots.entry(name).or_insert_with(|| ListedSnapshot {
            name: name.to_owned(),
            objects: 0,
            bytes: 0,
            complete: false,
            modified_us: Some(i64::MIN),
        });
        snapshot.objects += 1;
        snapshot.bytes += object.bytes;
        snapshot.complete |= file == SNAPSHOT_MANIFEST;
        let latest = snapshot.modified_us.zip(object.modified_us);
        snapshot.modified_us = latest.map(|(latest, modified_us)| latest.max(modified_us));
    }
    snapshots.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: &str, modified_us: Option<i64>) -> ListedObject {
        ListedObject {
            key: format!("{SNAPSHOT_PREFIX}{key}"),
            bytes: 3,
            modified_us,
        }
    }

    /// A snapshot without a manifest is abandoned if its newest object is old. An unknown time is not old.
    #[test]
    fn only_old_snapshots_without_a_manifest_are_abandoned() {
        let objects = [
            object("complete/manifest.json", Some(10)),
            object("complete/news/rows", Some(10)),
            object("old/news/manifest.json", Some(10)),
            object("old/news/rows", Some(19)),
            object("timeless/news/rows", None),
            object("timeless/news/texts", Some(10)),
            object("young/news/rows", Some(10)),
            object("young/news/texts", Some(20)),
        ];
        let snapshots = group_snapshots(&objects);
        let names: Vec<_> = snapshots.iter().map(|snapshot| &*snapshot.name).collect();
        assert_eq!(names, ["complete", "old", "timeless", "young"]);
        let sizes = (snapshots[1].objects, snapshots[1].bytes);
        assert_eq!(sizes, (2, 6));
        let abandoned: Vec<_> = snapshots
            .iter()
            .map(|snapshot| is_abandoned(snapshot, 20))
            .collect();
        assert_eq!(abandoned, [false, true, false, false]);
    }
}
