//! Writes what was applied to disk, and remembers how far that is.
//!
//! An answer does not wait for this, because its entry is in the log. After a crash, records from the checkpoint on
//! are applied again.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lookalike_log::{LogTail, RecordDigest};
use lookalike_store::LogPosition;

use super::Replica;
use super::checkpoint::{DirectoryState, LogCheckpoint};
use crate::collections::{CollectionStatus, ServedCollections};

/// Time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two checkpoints. Each costs a sync, and a shorter one saves only work after a crash.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that wait for the disk, of one collection, at which the application of records pauses.
const MAX_PENDING_BYTES: u64 = 64 << 20;

/// Place up to which records are applied, and the checkpoint of those that are on disk.
pub(crate) struct DurableProgress {
    directory: PathBuf,
    checkpoint: Mutex<LogCheckpoint>,
    /// Place behind the last record that was applied.
    applied: Mutex<LogTail>,
}

impl DurableProgress {
    pub(super) fn new(directory: &Path, checkpoint: LogCheckpoint) -> Self {
        Self {
            directory: directory.to_owned(),
            applied: Mutex::new(checkpoint.tail),
            checkpoint: Mutex::new(checkpoint),
        }
    }

    pub(super) fn note_applied(&self, tail: LogTail) {
        *lock(&self.applied) = tail;
    }

    pub(super) fn applied_tail(&self) -> LogTail {
        *lock(&self.applied)
    }

    pub(super) fn durable_tail(&self) -> LogTail {
        lock(&self.checkpoint).tail
    }

    /// Returns the name of the snapshot from which the directory began.
    pub(super) fn first_snapshot(&self) -> Option<String> {
        lock(&self.checkpoint).snapshot.clone()
    }

    /// Returns the SHA-256 of the manifest of that snapshot, if it is known.
    pub(super) fn first_manifest(&self) -> Option<RecordDigest> {
        lock(&self.checkpoint).manifest
    }

    /// Writes everything that is applied to disk, and then the checkpoint.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(super) fn write_checkpoint(&self, collections: &ServedCollections) -> Result<(), String> {
        let mut checkpoint = lock(&self.checkpoint);
        let tail = self.applied_tail();
        flush_collections(collections)?;
        if tail == checkpoint.tail {
            return Ok(());
        }
        let written = LogCheckpoint {
            state: DirectoryState::Following,
            tail,
            partial_entries: 0,
            ..checkpoint.clone()
        };
        self.replace_checkpoint(&mut checkpoint, written)
    }

    /// Writes everything that is applied to disk, and that the first entries of the record behind it are.
    ///
    /// # Errors
    /// If a disk operation fails.
    pub(super) fn write_partial(
        &self,
        collections: &ServedCollections,
        position: LogPosition,
    ) -> Result<(), String> {
        let mut checkpoint = lock(&self.checkpoint);
        flush_collections(collections)?;
        let written = LogCheckpoint {
            state: DirectoryState::Following,
            tail: self.applied_tail(),
            partial_entries: position.entry,
            ..checkpoint.clone()
        };
        debug_assert_eq!(written.tail.next, position.record);
        self.replace_checkpoint(&mut checkpoint, written)
    }

    /// Returns the position behind the last entry that is on disk, of a record that was being applied at a crash.
    pub(super) fn partial_position(&self) -> Option<LogPosition> {
        let checkpoint = lock(&self.checkpoint);
        let entry = checkpoint.partial_entries;
        (entry > 0).then_some(LogPosition {
            record: checkpoint.tail.next,
            entry,
        })
    }

    fn replace_checkpoint(
        &self,
        checkpoint: &mut LogCheckpoint,
        written: LogCheckpoint,
    ) -> Result<(), String> {
        let result = written.write_file(&self.directory);
        result.map_err(|error| format!("the checkpoint cannot be written: {error}"))?;
        *checkpoint = written;
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes everything that collections have admitted to disk.
///
/// # Errors
/// If a disk operation fails.
pub(crate) fn flush_collections(collections: &ServedCollections) -> Result<(), String> {
    for (name, state) in collections.list_states() {
        let CollectionStatus::Open(open) = state else {
            continue;
        };
        // Partitions that begin or expire have no bytes, and must be on disk before the checkpoint passes them.
        let flushed = open.collection.flush();
        flushed.map_err(|error| {
            let detail = open.to_problem(error).detail;
            format!("the collection '{name}': {detail}")
        })?;
    }
    Ok(())
}

/// Returns `true` while so much waits for the disk that no more should be applied.
pub(super) fn is_disk_behind(collections: &ServedCollections) -> bool {
    collections
        .list_states()
        .iter()
        .any(|(_, state)| match state {
            CollectionStatus::Open(open) => open.collection.pending_bytes() > MAX_PENDING_BYTES,
            _ => false,
        })
}

/// Writes to disk until the replica stops. A failure stops it.
pub(super) fn run_writer(
    replica: &Replica,
    durable: &DurableProgress,
    collections: &ServedCollections,
) {
    let mut last_checkpoint = Instant::now();
    while !replica.has_ended() {
        std::thread::sleep(WRITE_INTERVAL);
        let is_due = last_checkpoint.elapsed() >= CHECKPOINT_INTERVAL;
        let written = if is_due {
            last_checkpoint = Instant::now();
            durable.write_checkpoint(collections)
        } else {
            flush_collections(collections)
        };
        if let Err(reason) = written {
            replica.progress.stop(&reason);
            return replica.stop_threads();
        }
    }
}
