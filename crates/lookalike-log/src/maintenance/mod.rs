//! Work on a log by people: its status, verification, repair and pruning.
//!
//! All of it works on the store alone and needs no replica. Status, verification and pruning may run beside replicas;
//! repair runs while none does.

mod prune;
mod repair;
mod status;
mod verify;
mod walk;

pub use prune::{KEPT_RECORDS, PruneReport, prune_log};
pub use repair::{RepairReport, UnrepairedRecord, repair_log};
pub use status::{ListedSnapshot, LogStatus, ReplicaStatus, WriterRecords, log_status};
pub use verify::{UnreadableRecord, VerifyReport, verify_log};
pub use walk::read_first_number;
