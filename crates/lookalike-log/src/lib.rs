//! A shared log as a sequence of objects in an object store.

mod copies;
mod entry;
mod error;
mod keys;
mod record;
mod shared_log;
mod store;

pub use copies::RecordCopies;
pub use entry::{EntryKind, LogEntry, MAX_ENTRIES_BYTES, MAX_SUBJECT_BYTES};
pub use error::{DamageKind, LogDamage, LogError, NewerFeature};
pub use keys::{
    MAX_REPLICA_NAME, RECORD_PREFIX, REPLICA_PREFIX, SNAPSHOT_PREFIX, check_replica_name,
    parse_record_key, record_key,
};
pub use record::{FORMAT_VERSION, LogId, LogRecord, LogTail, RecordDigest};
pub use shared_log::{AppendOutcome, SharedLog};
pub use store::{CreateOutcome, CreatedBetween, ListedObject, LogStore, StoreError};
