//! A shared log as a sequence of objects in an object store, from which replicas derive the same state.
//!
//! The verdicts of a collection follow from the order of its documents alone. Replicas that apply the same entries in the
//! same order therefore have the same state, and need to agree on nothing but that order. A [`SharedLog`] gives it: object
//! n is created only if it does not exist, so exactly one replica wins n. The others read it, apply it and propose their
//! entries as n + 1. There is no server, no leader and no consensus code: the store decides.
//!
//! # Example
//!
//! Two replicas append to one log. The second one is overtaken, applies what it finds and tries again.
//!
//! ```
//! # #[cfg(feature = "simulation")] {
//! use std::sync::Arc;
//!
//! use lookalike_log::simulation::MemoryStore;
//! use lookalike_log::{AppendOutcome, EntryKind, LogEntry, LogStore, LogTail, SharedLog};
//!
//! let store: Arc<dyn LogStore> = Arc::new(MemoryStore::new());
//! let mut first = SharedLog::open(Arc::clone(&store), "first", LogTail::default());
//! let mut second = SharedLog::open(store, "second", LogTail::default());
//! let entry = |body: &str| LogEntry {
//!     kind: EntryKind::Insert,
//!     subject: "news".to_owned(),
//!     body: body.as_bytes().to_owned(),
//! };
//!
//! let appended = first.append(vec![entry("a")], 1_700_000_000_000_000)?;
//! assert!(matches!(appended, AppendOutcome::Appended(record) if record.number == 1));
//!
//! let AppendOutcome::Overtaken { record, entries } = second.append(vec![entry("b")], 0)? else {
//!     panic!("record 1 exists");
//! };
//! assert_eq!((record.number, &*record.writer), (1, "first"));
//! let appended = second.append(entries, 0)?;
//! assert!(matches!(appended, AppendOutcome::Appended(record) if record.number == 2));
//!
//! let record = first.read_next()?.expect("record 2 exists");
//! assert_eq!(record.entries, [entry("b")]);
//! # }
//! # Ok::<_, lookalike_log::LogError>(())
//! ```
//!
//! # Guarantees
//!
//! - All replicas see the same records in the same order.
//! - Entries that were reported as appended are in the log, once, and stay there.
//! - A log that was cut, rewritten or damaged is noticed by every replica that meets the change, and refused. Each record
//!   carries a checksum and the digest of the record before it. `docs/format.md` has the layout.
//!
//! They rest on a store that creates objects only if they do not exist and lets a completed write be read at once, as
//! S3, Google Cloud Storage, Azure Blob Storage and local file systems do. [`check_exclusive_creation`] tells whether a
//! store does the former.
//!
//! # Failures
//!
//! A request without an answer may have taken effect, or may still do so. [`SharedLog`] then repeats the same bytes until
//! it knows, and never moves on from number n before record n exists. A nonce tells its own record from others'.
//!
//! A damaged log is repaired by people: [`verify_log`] names every damaged object, and where the end of the log is not
//! the one that replicas and snapshots know. [`repair_log`] writes records again from the [copies](RecordCopies) that each
//! replica keeps.
//!
//! # Cost
//!
//! An append takes the time of one creation, because the records around it are read at the same time. Under contention one
//! replica wins each number, so the log as a whole takes as many records a second as one replica alone; replicas put
//! everything that waits into one record. Reading takes one request for each record, up to 32 at a time.
//!
//! # Limits
//!
//! The core is synchronous and has no thread of its own. With the feature `object-store`, `ObjectLogStore` blocks on a
//! runtime of the caller's. The entries of a record have at most [`MAX_ENTRIES_BYTES`]. Old records stay until
//! [`prune_log`] removes them.

mod copies;
mod entry;
mod error;
mod keys;
#[cfg(feature = "object-store")]
mod log_directory;
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
    MAX_REPLICA_NAME, RECORD_PREFIX, REPLICA_PREFIX, SNAPSHOT_MANIFEST, SNAPSHOT_PREFIX,
    check_replica_name, describe_record, parse_record_key, record_key,
};
pub use maintenance::{
    ABANDONED_AFTER, ContradictionKind, KEPT_RECORDS, ListedSnapshot, LogStatus, LogWitness,
    PruneReport, RepairOptions, RepairReport, ReplicaStatus, SnapshotExtent, UnreadableRecord,
    UnrepairedRecords, VerifyReport, WitnessContradiction, WitnessKind, WriterRecords,
    find_lost_end, has_log, log_status, prune_log, read_first_number, read_snapshot_extents,
    remove_incomplete_snapshots, repair_log, verify_log,
};
pub use marks::{
    ReplicaMark, create_instance_name, read_mark, read_marks, remove_mark, write_mark,
};
#[cfg(feature = "object-store")]
pub use object_store::ObjectLogStore;
pub use record::{FORMAT_VERSION, LogId, LogRecord, LogTail, MAX_RECORD_BYTES, RecordDigest};
pub use shared_log::{AppendOutcome, SharedLog};
pub use store::{
    CreateOutcome, CreatedBetween, ListedObject, LogStore, StoreError, check_exclusive_creation,
    check_machine_clock,
};
