//! The store compared with a model, and on disks that lose power, fail, fill up or change bits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changing;
mod clients;
mod compaction;
mod costly;
mod decisions;
mod disk;
mod faults;
mod fingerprints;
mod flips;
mod formats;
#[path = "../../src/group_commit.rs"]
mod group;
mod group_commit;
mod listing;
mod long_texts;
mod lost;
mod machine;
mod power;
mod recipes;
mod repair;
mod shared_log;
mod snapshots;
mod support;
/// The primitives of `group` are those of loom here, so that every interleaving is tried.
mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}
