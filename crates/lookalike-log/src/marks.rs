//! Marks: how far each replica has applied the log. They tell people, what may be pruned, and that the end of a log is lost.

use serde::{Deserialize, Serialize};

use crate::keys::{REPLICA_PREFIX, check_replica_name};
use crate::record::{LogId, RecordDigest};
use crate::store::{LogStore, StoreError, random_number};

/// Age from which a mark does not say any more that its replica runs, in microseconds. A replica that applies records
/// writes its mark twice as often.
const RUNNING_US: i64 = 30_000_000;

/// Mark of a replica, stored as JSON. Older programs write and read marks without the optional fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaMark {
    /// Name of the replica: 1 to 64 of the letters a to z, digits, `-` and `_`.
    pub name: String,
    /// Version of the program that the replica runs.
    pub version: String,
    /// Newest [format version](crate::FORMAT_VERSION) of records that the replica reads.
    pub format: u32,
    /// Number of the last record that the replica has applied; 0 before the first.
    pub applied: u64,
    /// Time of the mark by the replica's clock, in microseconds since 1970.
    pub time_us: i64,
    /// Log that the replica reads; absent before its first record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogId>,
    /// Digest of the record `applied`; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<RecordDigest>,
    /// Reason why the replica has stopped; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Random name of the process that wrote the mark, of [`create_instance_name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// `instance` of another process that writes marks under the same name, or `unknown`; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_instance: Option<String>,
}

impl ReplicaMark {
    /// Returns the seconds since the mark was written, by a clock of `now_us` microseconds since 1970; 0 if that clock is
    /// behind.
    pub fn age_seconds(&self, now_us: i64) -> u64 {
        let age_us = now_us.saturating_sub(self.time_us).max(0);
        age_us.unsigned_abs() / 1_000_000
    }

    /// Returns `true` if the replica has written the mark within the last 30 s and has not stopped.
    pub fn is_running(&self, now_us: i64) -> bool {
        self.stopped.is_none() && now_us.saturating_sub(self.time_us) < RUNNING_US
    }
}

/// Returns a random name for the marks of one process, 32 hexadecimal digits.
///
/// # Errors
/// If the operating system has no random numbers.
pub fn create_instance_name() -> Result<String, StoreError> {
    random_number().map(|number| format!("{number:032x}"))
}

/// Writes the mark of a replica, in place of its last one.
///
/// # Errors
/// If the name is not valid, or the request fails.
pub fn write_mark(store: &dyn LogStore, mark: &ReplicaMark) -> Result<(), StoreError> {
    let key = mark_key(&mark.name)?;
    let json = serde_json::to_vec(mark).expect("a mark is JSON");
    store.replace(&key, &json)
}

/// Reads the mark of a replica; `None` if it has written none, or the object is not a mark.
///
/// # Errors
/// If the name is not valid, or the request fails.
pub fn read_mark(store: &dyn LogStore, name: &str) -> Result<Option<ReplicaMark>, StoreError> {
    let object = store.read(&mark_key(name)?)?;
    Ok(object.and_then(|object| serde_json::from_slice(&object).ok()))
}

/// Reads the marks of all replicas, sorted by name.
///
/// # Errors
/// If a request fails, or an object is not a mark.
pub fn read_marks(store: &dyn LogStore) -> Result<Vec<ReplicaMark>, StoreError> {
    let listed = store.list(REPLICA_PREFIX)?;
    let keys: Vec<String> = listed.into_iter().map(|object| object.key).collect();
    let objects = store.read_several(&keys)?;
    let mut marks = Vec::new();
    for (key, object) in keys.iter().zip(objects) {
        // A mark may be removed after the list was made.
        let Some(object) = object else { continue };
        let mark = serde_json::from_slice(&object).map_err(|cause| {
            StoreError::permanent(format!(
                "object '{key}' is not the mark of a replica ({cause}): remove it; a replica that runs writes its own again"
            ))
        })?;
        marks.push(mark);
    }
    Ok(marks)
}

/// Removes the mark of a replica that is no more.
///
/// # Errors
/// If the name is not valid, or the request fails.
pub fn remove_mark(store: &dyn LogStore, name: &str) -> Result<(), StoreError> {
    store.remove(&mark_key(name)?)
}

fn mark_key(name: &str) -> Result<String, StoreError> {
    check_replica_name(name)?;
    Ok(format!("{REPLICA_PREFIX}{name}"))
}
