//! Pruning: the removal of old records that no replica needs any more.

use serde::Serialize;

use crate::keys::{PRUNED_KEY, record_key};
use crate::maintenance::walk::{PrunedRecords, list_records, read_first_number};
use crate::store::{LogStore, StoreError};

/// Records at the end of a log that are never removed.
///
/// A replica that is fewer records behind goes on by the log alone, and a writer always finds the record before its own.
pub const KEPT_RECORDS: u64 = 1024;

/// Report of a pruning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PruneReport {
    /// Number of the first record that must exist now.
    pub before: u64,
    /// Number of the last record.
    pub last: u64,
    /// Removed objects.
    pub removed: u64,
    /// Bytes of the removed objects.
    pub bytes: u64,
}

/// Removes all records before a number, but none of the last [`KEPT_RECORDS`].
///
/// A replica that has not applied them all must be restored from a snapshot. The store learns first that they may be
/// missing, and then loses them in their order, so an interrupted pruning is no damage and can be repeated.
///
/// # Errors
/// If the number is too large, or a request fails.
pub fn prune_log(store: &dyn LogStore, before: u64) -> Result<PruneReport, StoreError> {
    let first = read_first_number(store)?;
    // A list that is older than the last records keeps more of them.
    let records = list_records(store)?;
    let last = records.last().map_or(0, |record| record.number);
    let most = last.saturating_sub(KEPT_RECORDS) + 1;
    if before > most {
        return Err(StoreError::permanent(format!(
            "the log cannot be pruned before record {before}: its last record is {last}, and the last {KEPT_RECORDS} \
             are kept, so {most} is the largest number"
        )));
    }
    let before = before.max(first);
    raise_first_number(store, before)?;
    let mut report = PruneReport {
        before,
        last,
        removed: 0,
        bytes: 0,
    };
    for record in records.iter().filter(|record| record.number < before) {
        store.remove(&record_key(record.number))?;
        report.removed += 1;
        report.bytes += record.bytes;
    }
    // Another pruning may have replaced the number by a smaller one after it was read.
    raise_first_number(store, before)?;
    Ok(report)
}

/// Notes that records before a number may be missing. A larger number stays, because two prunings at once must not make
/// removed records look lost.
fn raise_first_number(store: &dyn LogStore, before: u64) -> Result<(), StoreError> {
    let json = serde_json::to_vec(&PrunedRecords { before }).expect("a number is JSON");
    while read_first_number(store)? < before {
        store.replace(PRUNED_KEY, &json)?;
    }
    Ok(())
}
