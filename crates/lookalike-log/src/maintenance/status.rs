//! Status of a log: its extent, who writes to it, and how far the replicas are.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::keys::{RECORD_PREFIX, REPLICA_PREFIX, SNAPSHOT_PREFIX, record_key};
use crate::maintenance::prune::KEPT_RECORDS;
use crate::maintenance::snapshots::{ListedSnapshot, list_snapshots};
use crate::maintenance::walk::{OBJECTS_PER_READ, list_records, read_first_number};
use crate::marks::{ReplicaMark, read_marks};
use crate::record::{LogId, LogRecord, object_version};
use crate::store::{LogStore, StoreError};

/// Status of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogStatus {
    /// Log of the last readable record.
    pub log: Option<LogId>,
    /// Number of the first record; `None` if there is none.
    pub first: Option<u64>,
    /// Number of the last record; `None` if there is none.
    pub last: Option<u64>,
    /// Number before which records may have been removed; 1 if the log was never pruned.
    pub pruned_before: u64,
    /// Objects of records.
    pub records: u64,
    /// Bytes of all objects of records.
    pub bytes: u64,
    /// Time of the last readable record, in microseconds since 1970.
    pub last_time_us: Option<i64>,
    /// Writers of the last 1,024 records, sorted by name and format version.
    pub writers: Vec<WriterRecords>,
    /// Objects among the last 1,024 that are not readable records: `verify_log` names the reasons.
    pub unreadable: u64,
    /// Replicas that have left a mark, sorted by name.
    pub replicas: Vec<ReplicaStatus>,
    /// Snapshots, sorted by name.
    pub snapshots: Vec<ListedSnapshot>,
}

/// Records of one writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriterRecords {
    /// Name of the replica.
    pub writer: String,
    /// Format version of the records.
    pub format: u32,
    /// Number of records.
    pub records: u64,
}

/// A replica's mark, and how far it is behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaStatus {
    /// Mark of the replica.
    #[serde(flatten)]
    pub mark: ReplicaMark,
    /// Records after the last one that the mark says to be applied.
    pub lag: u64,
}

/// Returns the status of a log.
///
/// Lists all objects, and reads the last 1,024 records and the marks.
///
/// # Errors
/// If a request fails, or a mark cannot be read.
pub fn log_status(store: &dyn LogStore) -> Result<LogStatus, StoreError> {
    let listed = list_records(store)?;
    let last = listed.last().map(|record| record.number);
    let mut status = LogStatus {
        first: listed.first().map(|record| record.number),
        last,
        pruned_before: read_first_number(store)?,
        records: listed.len() as u64,
        bytes: listed.iter().map(|record| record.bytes).sum(),
        replicas: read_replicas(store, last.unwrap_or_default())?,
        snapshots: list_snapshots(store)?,
        ..LogStatus::default()
    };
    let recent = listed.len().saturating_sub(KEPT_RECORDS as usize);
    let recent: Vec<u64> = listed[recent..]
        .iter()
        .map(|record| record.number)
        .collect();
    status.count_writers(store, &recent)?;
    Ok(status)
}

/// Returns `true` if a store has any object of a log: a record, a mark or a snapshot.
///
/// Makes two requests, and lists only where there is neither a first record nor a pruning.
///
/// # Errors
/// If a request fails.
pub fn has_log(store: &dyn LogStore) -> Result<bool, StoreError> {
    let first = read_first_number(store)?;
    if first > 1 || store.read(&record_key(1))?.is_some() {
        return Ok(true);
    }
    for prefix in [REPLICA_PREFIX, SNAPSHOT_PREFIX, RECORD_PREFIX] {
        if !store.list(prefix)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl LogStatus {
    fn count_writers(&mut self, store: &dyn LogStore, numbers: &[u64]) -> Result<(), StoreError> {
        let mut counts = BTreeMap::<(String, u32), u64>::new();
        for numbers in numbers.chunks(OBJECTS_PER_READ as usize) {
            let keys: Vec<String> = numbers.iter().copied().map(record_key).collect();
            let objects = store.read_several(&keys)?;
            for (number, object) in numbers.iter().zip(&objects) {
                // A record may be pruned after the list was made.
                let Some(object) = object else { continue };
                let Ok(record) = LogRecord::decode(*number, object) else {
                    self.unreadable += 1;
                    continue;
                };
                let format = object_version(object).unwrap_or_default();
                *counts.entry((record.writer, format)).or_default() += 1;
                self.log = Some(record.log);
                self.last_time_us = Some(record.time_us);
            }
        }
        let counts = counts.into_iter();
        self.writers = counts
            .map(|((writer, format), records)| WriterRecords {
                writer,
                format,
                records,
            })
            .collect();
        Ok(())
    }
}

fn read_replicas(store: &dyn LogStore, last: u64) -> Result<Vec<ReplicaStatus>, StoreError> {
    let marks = read_marks(store)?.into_iter();
    let replicas = marks.map(|mark| ReplicaStatus {
        lag: last.saturating_sub(mark.applied),
        mark,
    });
    Ok(replicas.collect())
}
