//! Work on a log by people: its status, verification, repair and pruning.
//!
//! All of it works on the store alone and needs no replica. Status, verification and pruning may run beside replicas;
//! repair runs while none does.

mod prune;
mod repair;
mod snapshots;
mod status;
mod verify;
mod walk;
mod witnesses;

pub use prune::{KEPT_RECORDS, PruneReport, prune_log};
pub use repair::{RepairOptions, RepairReport, UnrepairedRecords, repair_log};
pub use snapshots::{
    ABANDONED_AFTER, ListedSnapshot, SnapshotExtent, read_snapshot_extents,
    remove_incomplete_snapshots,
};
pub use status::{LogStatus, ReplicaStatus, WriterRecords, has_log, log_status};
pub use verify::{UnreadableRecord, VerifyReport, verify_log};
pub use walk::read_first_number;
pub use witnesses::{
    ContradictionKind, LogWitness, WitnessContradiction, WitnessKind, find_lost_end,
};
