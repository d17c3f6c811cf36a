//! The thread that applies records, as the [applier](super::apply) does it, and waits for the disk before each.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use lookalike_log::{EntryKind, LogEntry, LogTail};

use super::apply::{RecordApplier, collection_of_subject};
use super::beginning::ReplicaParts;
use super::durability::is_disk_behind;
use super::log_thread::ReceivedRecord;
use crate::collections::ServedCollections;
use crate::service::ServiceState;

/// Bytes, about, of the files of a new collection or recipe beside the content of its entry.
const SMALL_FILES_BYTES: u64 = 64 << 10;

/// Wait while the disk is full or behind.
const DISK_WAIT: Duration = Duration::from_millis(20);

impl ReplicaParts {
    /// Applies records until there are no more, or one cannot be applied.
    pub(super) fn apply_records(&self, service: &ServiceState, records: &Receiver<ReceivedRecord>) {
        let runtime = service.runtime.clone();
        let applier = RecordApplier {
            collections: &service.collections,
            recipes: &service.recipes,
            clock: &self.clock,
            checks: &self.checks,
            first_snapshot: self.durable.first_snapshot(),
            first_manifest: self.durable.first_manifest(),
            partial: self.durable.partial_position(),
            note_service_change: &|position| {
                self.durable.write_partial(&service.collections, position)
            },
            note_difference: None,
            runtime: &runtime,
        };
        for received in records {
            if !self.wait_for_disk(service, &received.record.entries) {
                return;
            }
            let applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
            let ReceivedRecord { record, own, tail } = received;
            let applied = applier.apply_record(&record, own);
            let time_us = tail.time_us;
            if applied.is_ok() {
                self.durable.note_applied(tail);
            }
            drop(applying);
            if let Err(reason) = applied {
                self.replica.progress.stop(&reason);
                self.replica.stop_threads();
                return;
            }
            if record.writer != self.replica.settings.name {
                self.last_foreign.store(record.number, Relaxed);
            }
            self.replica.progress.note_applied(record.number, time_us);
        }
    }

    /// Returns the number of the last applied record that another replica has written since the start, or 0.
    pub(super) fn foreign_record(&self) -> u64 {
        self.last_foreign.load(Relaxed)
    }

    /// Returns the place up to which records are applied, once none is being applied.
    pub(super) fn wait_for_applied(&self) -> LogTail {
        let _applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        self.durable.applied_tail()
    }

    /// Waits while the disk has no room for entries, or more waits to be written than should. Returns `false` if the
    /// replica stops.
    fn wait_for_disk(&self, service: &ServiceState, entries: &[LogEntry]) -> bool {
        let collections = &service.collections;
        let wanted = count_created_bytes(entries) + most_decision_room(collections, entries);
        let mut is_reported = false;
        loop {
            if self.replica.has_ended() {
                return false;
            }
            let mut full = collections.disk_full_reason();
            if full.is_none() && wanted > 0 {
                full = collections.lack_of_room(wanted);
            }
            if full.is_none() && !is_disk_behind(collections) {
                self.replica.progress.note_disk_wait(None);
                return true;
            }
            if let Some(reason) = full
                && !std::mem::replace(&mut is_reported, true)
            {
                tracing::warn!(reason, "the replica waits for room on its disk");
                self.replica.progress.note_disk_wait(Some(reason));
            }
            std::thread::sleep(DISK_WAIT);
        }
    }
}

/// Returns the bytes of disk that the largest decision of entries can want.
fn most_decision_room(collections: &ServedCollections, entries: &[LogEntry]) -> u64 {
    let decisions = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Decide);
    let wanted = decisions.filter_map(|entry| {
        let open = collections.look_up_collection(collection_of_subject(&entry.subject));
        open.ok()?.collection.most_decision_room().ok()
    });
    wanted.max().unwrap_or(0)
}

/// Returns the bytes of disk, about, that entries take which create a collection or upload a recipe.
fn count_created_bytes(entries: &[LogEntry]) -> u64 {
    let creates = |entry: &&LogEntry| {
        matches!(
            entry.kind,
            EntryKind::CreateCollection | EntryKind::PutRecipe
        )
    };
    let bytes = entries
        .iter()
        .filter(creates)
        .map(|entry| SMALL_FILES_BYTES + 2 * entry.body.len() as u64);
    bytes.sum()
}
