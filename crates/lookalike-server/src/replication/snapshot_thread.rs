//! Makes snapshots beside the log at regular intervals, and removes what is older than the replicas need.
//!
//! Of all replicas that make snapshots, one makes that of an interval: the one that creates its claim. If that replica
//! dies, the next interval has another claim.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use lookalike_log::{
    ABANDONED_AFTER, CreateOutcome, KEPT_RECORDS, StoreError, prune_log, read_marks,
    remove_incomplete_snapshots,
};

use super::beginning::{ReadRecipes, ReplicaParts, collect_parts, scratch_folder};
use super::log_snapshots::{LogSnapshot, ServiceParts};
use super::machine_time_us;
use crate::service::ServiceState;

/// Time between two checks whether a snapshot is due.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Number of snapshots that stay, whatever their age is.
const KEPT_SNAPSHOTS: usize = 2;

/// Age of a mark from which its replica counts as gone. Records are kept for all others.
const GONE_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// Prefix of the claims.
const CLAIM_PREFIX: &str = "claims/";

/// The thread.
pub(super) struct SnapshotThread {
    parts: Arc<ReplicaParts>,
    service: Arc<ServiceState>,
    every: Duration,
}

impl SnapshotThread {
    pub(super) fn new(
        parts: Arc<ReplicaParts>,
        service: Arc<ServiceState>,
        every: Duration,
    ) -> Self {
        Self {
            parts,
            service,
            every,
        }
    }

    /// Runs until the replica stops.
    pub(super) fn run(self) {
        let mut next_check = Instant::now();
        let mut last_interval = None;
        while !self.parts.replica.has_ended() {
            std::thread::sleep(CHECK_INTERVAL);
            let interval = machine_time_us() / self.every.as_micros().max(1) as i64;
            let is_ready = self.parts.replica.progress.is_caught_up();
            if !is_ready || last_interval == Some(interval) || Instant::now() < next_check {
                continue;
            }
            match self.make_if_due(interval) {
                Ok(()) => last_interval = Some(interval),
                Err(error) => {
                    self.service.metrics.count_failed_snapshot();
                    tracing::error!(error, "no snapshot was made beside the shared log");
                    next_check = Instant::now() + self.every.min(Duration::from_secs(60));
                }
            }
        }
    }

    fn make_if_due(&self, interval: i64) -> Result<(), String> {
        let snapshots = self.list_snapshots()?;
        let every_us = self.every.as_micros() as i64;
        let made_us = snapshots.last().map(|newest| newest.tail.time_us);
        if made_us.is_some_and(|made_us| made_us / every_us.max(1) >= interval) {
            return Ok(());
        }
        let applied = self.parts.durable.applied_tail().next;
        let is_new = |snapshot: &LogSnapshot| snapshot.tail.next < applied;
        if !snapshots.last().is_none_or(is_new) {
            return Ok(());
        }
        let key = format!("{CLAIM_PREFIX}{interval}");
        let replica = &self.parts.replica.settings.name;
        let claimed = self.parts.store.create(&key, replica.as_bytes());
        let failed = |error: StoreError| error.to_string();
        if claimed.map_err(failed)? == CreateOutcome::AlreadyExists {
            // An attempt of this replica that failed is made again.
            let owner = self.parts.store.read(&key).map_err(failed)?;
            if owner.as_deref() != Some(replica.as_bytes()) {
                return Ok(());
            }
        }
        self.make_snapshot()?;
        // The claims of earlier intervals are of no use any more.
        self.remove_claims(&key).map_err(failed)?;
        self.remove_incomplete().map_err(failed)?;
        self.remove_old().map_err(failed)
    }

    /// Collects the state of the service behind a record. Records wait meanwhile, but not for the files of the recipes:
    /// they are read before, and again if a recipe has changed since.
    fn collect_parts(&self) -> Result<ServiceParts, String> {
        loop {
            let recipes = ReadRecipes::read_files(&self.service);
            let applying = &self.parts.applying;
            let _applying = applying.lock().unwrap_or_else(PoisonError::into_inner);
            if !recipes.are_current(&self.service) {
                continue;
            }
            self.parts
                .durable
                .write_checkpoint(&self.service.collections)?;
            let tail = self.parts.durable.durable_tail();
            let parts = collect_parts(&self.service, tail, recipes);
            return parts.map_err(|error| error.to_string());
        }
    }

    fn make_snapshot(&self) -> Result<(), String> {
        let parts = self.collect_parts()?;
        let replica = &self.parts.replica.settings.name;
        let collections = &self.service.collections;
        let scratch = scratch_folder(&self.service.config.data);
        let written =
            self.parts
                .snapshots
                .write_snapshot(replica, parts, collections, &scratch, &|| {
                    self.parts.durable.applied_tail()
                });
        let snapshot = written.map_err(|problem| problem.detail)?;
        tracing::info!(
            snapshot = snapshot.name,
            "snapshot made beside the shared log"
        );
        Ok(())
    }

    fn list_snapshots(&self) -> Result<Vec<LogSnapshot>, String> {
        let listed = self.parts.snapshots.list_snapshots();
        listed.map_err(|error| error.to_string())
    }

    /// Removes old snapshots, and the records that neither a replica nor a restoration needs.
    ///
    /// The newest snapshot that is older than the retention stays with the records behind it, so that every state since
    /// can be restored.
    fn remove_old(&self) -> Result<(), StoreError> {
        let listed = self.list_snapshots().map_err(StoreError::retryable)?;
        let now_us = machine_time_us();
        let is_old = |time_us: i64, age: Duration| now_us - time_us > age.as_micros() as i64;
        let retention = self.parts.replica.settings.keep_log;
        let removable = listed.len().saturating_sub(KEPT_SNAPSHOTS - 1);
        let old = listed[..removable].iter();
        let old = old.take_while(|snapshot| is_old(snapshot.tail.time_us, retention));
        let old: Vec<_> = old.collect();
        let Some((first_kept, removed)) = old.split_last() else {
            return Ok(());
        };
        for snapshot in removed {
            self.parts.snapshots.remove_snapshot(snapshot)?;
        }
        let marks = read_marks(&*self.parts.store)?;
        let present = marks
            .iter()
            .filter(|mark| !is_old(mark.time_us, GONE_AFTER));
        let needed = present.map(|mark| mark.applied + 1);
        let last = self.parts.durable.applied_tail().next.saturating_sub(1);
        let first_that_stays = (last + 1).saturating_sub(KEPT_RECORDS);
        let before = needed.fold(first_kept.tail.next.min(first_that_stays), u64::min);
        if before <= 1 {
            return Ok(());
        }
        prune_log(&*self.parts.store, before).map(drop)
    }

    /// Removes the rest of interrupted snapshots.
    fn remove_incomplete(&self) -> Result<(), StoreError> {
        let unchanged_since_us = machine_time_us() - ABANDONED_AFTER.as_micros() as i64;
        for name in remove_incomplete_snapshots(&*self.parts.store, unchanged_since_us)? {
            tracing::info!(
                snapshot = name,
                "the rest of an interrupted snapshot was removed"
            );
        }
        Ok(())
    }

    fn remove_claims(&self, newest: &str) -> Result<(), StoreError> {
        for claim in self.parts.store.list(CLAIM_PREFIX)? {
            if claim.key != newest {
                self.parts.store.remove(&claim.key)?;
            }
        }
        Ok(())
    }
}
