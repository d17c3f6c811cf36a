//! A shared log as a sequence of objects in an object store.

mod copies;
mod entry;
mod error;
mod keys;
mod maintenance;
mod marks;
#[cfg(feature = "object-store")]
mod object_store;
mod record;
mod shared_log;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod store;
#[cfg(test)]
mod tests;

pub use copies::{FolderCopies, RecordCopies};
pub use entry::{EntryKind, LogEntry, MAX_ENTRIES_BYTES, MAX_SUBJECT_BYTES};
pub use error::{DamageKind, LogDamage, LogError, NewerFeature};
pub use keys::{
    MAX_REPLICA_NAME, RECORD_PREFIX, REPLICA_PREFIX, SNAPSHOT_PREFIX, check_replica_name,
    parse_record_key, record_key,
};
pub use maintenance::{
    KEPT_RECORDS, ListedSnapshot, LogStatus, PruneReport, RepairReport, ReplicaStatus,
    UnreadableRecord, UnrepairedRecord, VerifyReport, WriterRecords, log_status, prune_log,
    repair_log, verify_log,
};
pub use marks::{ReplicaMark, read_marks, remove_mark, write_mark};
#[cfg(feature = "object-store")]
pub use object_store::ObjectLogStore;
pub use record::{FORMAT_VERSION, LogId, LogRecord, LogTail, MAX_RECORD_BYTES, RecordDigest};
pub use shared_log::{AppendOutcome, SharedLog};
pub use store::{
    CreateOutcome, CreatedBetween, ListedObject, LogStore, StoreError, check_exclusive_creation,
};
