//! Makes snapshots beside the log at regular intervals, and removes what is older than the replicas need.
//!
//! Of all replicas that make snapshots, one makes that of an interval: the one that creates its claim. If that replica
//! dies, the next interval has another claim.
//!
//! A snapshot hands its state on to all replicas that begin with it. While other replicas are active, it is made only
//! behind a place at which one of them had the same state, and never while states are disputed. Once another replica has
//! the same state behind its end, it is confirmed. A replica that stops because its state differs removes its snapshots
//! that nobody has confirmed.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use lookalike_log::{
    ABANDONED_AFTER, CreateOutcome, KEPT_RECORDS, ListedObject, ReplicaMark, StoreError, prune_log,
    read_marks, remove_incomplete_snapshots,
};

use super::beginning::{ReadRecipes, ReplicaParts, collect_parts, scratch_folder};
use super::log_snapshots::{LogSnapshot, ServiceParts, StateComparison, snapshot_name};
use super::machine_time_us;
use crate::service::ServiceState;

/// Time between two checks whether a snapshot is due.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Time between two checks whether the state is confirmed, while a snapshot waits for that.
const CONFIRMATION_INTERVAL: Duration = Duration::from_secs(10);

/// Attempts to remove the snapshots of a replica that has stopped, and the time between two of them.
const REMOVAL_ATTEMPTS: u32 = 30;
const REMOVAL_INTERVAL: Duration = Duration::from_secs(2);

/// Age of a mark up to which its replica counts as active.
const ACTIVE_MARK_AGE: Duration = Duration::from_secs(60);

/// Records within which a replica that wrote one counts as active, and a comparison of states as recent.
const RECENT_RECORDS: u64 = 128;

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
    /// The last snapshot that was made here, until another replica has confirmed it.
    unconfirmed: Option<LogSnapshot>,
}

/// Outcome of a check whether a snapshot is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DueOutcome {
    /// Nothing is left to do in this interval.
    Settled,
    /// No other replica has confirmed the state yet.
    Unconfirmed,
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
            unconfirmed: None,
        }
    }

    /// Runs until the replica stops.
    pub(super) fn run(mut self) {
        let mut next_check = Instant::now();
        let mut last_interval = None;
        while !self.parts.replica.has_ended() {
            std::thread::sleep(CHECK_INTERVAL);
            self.confirm_last();
            let interval = machine_time_us() / self.every.as_micros().max(1) as i64;
            let is_ready = self.parts.replica.progress.is_caught_up();
            if !is_ready || last_interval == Some(interval) || Instant::now() < next_check {
                continue;
            }
            match self.make_if_due(interval) {
                Ok(DueOutcome::Settled) => last_interval = Some(interval),
                Ok(DueOutcome::Unconfirmed) => {
                    next_check = Instant::now() + self.every.min(CONFIRMATION_INTERVAL);
                }
                Err(error) => {
                    self.service.metrics.count_failed_snapshot();
                    tracing::error!(error, "no snapshot was made beside the shared log");
                    next_check = Instant::now() + self.every.min(Duration::from_secs(60));
                }
            }
        }
        let was_stopped = self.parts.replica.progress.stop_reason().is_some();
        if was_stopped && self.parts.checks.is_disputed() {
            self.remove_unconfirmed();
        }
    }

    /// Confirms the last snapshot once another replica has had the same state behind its end.
    fn confirm_last(&mut self) {
        let Some(snapshot) = &self.unconfirmed else {
            return;
        };
        let Some(place) = self.parts.checks.confirmed_place() else {
            return;
        };
        let replica = &self.parts.replica.settings.name;
        if !snapshot.awaits_confirmation(replica, place.record) {
            return;
        }
        let confirmed = self
            .parts
            .snapshots
            .confirm_snapshot(&snapshot.name, &place);
        match confirmed {
            Ok(()) => self.unconfirmed = None,
            Err(error) => tracing::debug!(%error, "a snapshot cannot be confirmed yet"),
        }
    }

    /// Removes the snapshots that this replica has made and nobody has confirmed, because its state may be wrong.
    fn remove_unconfirmed(&self) {
        for attempt in 1..=REMOVAL_ATTEMPTS {
            match self.remove_unconfirmed_once() {
                Ok(()) => return,
                Err(error) if attempt == REMOVAL_ATTEMPTS => tracing::error!(
                    %error,
                    "the snapshots of this replica that nobody has confirmed cannot be removed: remove them below \
                     'snapshots/' before a replica starts with an empty directory"
                ),
                Err(_) => std::thread::sleep(REMOVAL_INTERVAL),
            }
        }
    }

    fn remove_unconfirmed_once(&self) -> Result<(), StoreError> {
        let snapshots = &self.parts.snapshots;
        let replica = &self.parts.replica.settings.name;
        let agreed = self.parts.checks.agreed_record();
        let listed = snapshots.list_snapshots()?;
        for snapshot in listed
            .iter()
            .filter(|snapshot| snapshot.is_unconfirmed_of(replica, agreed))
        {
            snapshots.remove_snapshot(&snapshot.name)?;
            tracing::warn!(
                snapshot = snapshot.name,
                "a snapshot of this replica was removed: nobody has confirmed its state"
            );
        }
        snapshots.remove_rests(replica, "")
    }

    /// Returns the comparison of states on which a snapshot can rest now; `None` if there is none, because states are
    /// disputed or no other replica has confirmed this one.
    fn compare_states(&self) -> Result<Option<StateComparison>, StoreError> {
        let checks = &self.parts.checks;
        if checks.is_disputed() {
            return Ok(None);
        }
        let applied = self.parts.durable.applied_tail().next.saturating_sub(1);
        let is_recent = |record: u64| record > 0 && record + RECENT_RECORDS >= applied;
        let place = checks.confirmed_place();
        if let Some(place) = place.filter(|place| is_recent(place.record)) {
            return Ok(Some(StateComparison::Confirmed(place)));
        }
        if is_recent(self.parts.foreign_record()) {
            return Ok(None);
        }
        let replica = &self.parts.replica.settings.name;
        let now_us = machine_time_us();
        let marks = read_marks(&*self.parts.store)?;
        let is_active = |mark: &ReplicaMark| {
            mark.name != *replica
                && mark.stopped.is_none()
                && !is_older(mark.time_us, now_us, ACTIVE_MARK_AGE)
        };
        let is_alone = !marks.iter().any(is_active);
        Ok(is_alone.then_some(StateComparison::Alone))
    }

    fn make_if_due(&mut self, interval: i64) -> Result<DueOutcome, String> {
        let snapshots = self.list_snapshots()?;
        let every_us = self.every.as_micros() as i64;
        let made_us = snapshots.last().map(|newest| newest.tail.time_us);
        if made_us.is_some_and(|made_us| made_us / every_us.max(1) >= interval) {
            return Ok(DueOutcome::Settled);
        }
        let applied = self.parts.durable.applied_tail().next;
        let is_new = |snapshot: &LogSnapshot| snapshot.tail.next < applied;
        if !snapshots.last().is_none_or(is_new) {
            return Ok(DueOutcome::Settled);
        }
        let failed = |error: StoreError| error.to_string();
        let Some(checked) = self.compare_states().map_err(failed)? else {
            return Ok(DueOutcome::Unconfirmed);
        };
        let key = format!("{CLAIM_PREFIX}{interval}");
        let replica = &self.parts.replica.settings.name;
        let claimed = self.parts.store.create(&key, replica.as_bytes());
        if claimed.map_err(failed)? == CreateOutcome::AlreadyExists {
            // An attempt of this replica that failed is made again.
            let owner = self.parts.store.read(&key).map_err(failed)?;
            if owner.as_deref() != Some(replica.as_bytes()) {
                return Ok(DueOutcome::Settled);
            }
        }
        self.unconfirmed = Some(self.make_snapshot(checked)?);
        self.remove_claims(interval).map_err(failed)?;
        self.remove_incomplete().map_err(failed)?;
        self.remove_old().map_err(failed)?;
        Ok(DueOutcome::Settled)
    }

    /// Collects the state of the service behind a record. Records wait meanwhile, but not for the files of the recipes:
    /// they are read before, and again if a recipe has changed since.
    fn collect_parts(&self, checked: &StateComparison) -> Result<ServiceParts, String> {
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
            let parts = collect_parts(&self.service, tail, recipes, checked.clone());
            return parts.map_err(|error| error.to_string());
        }
    }

    fn make_snapshot(&self, checked: StateComparison) -> Result<LogSnapshot, String> {
        let parts = self.collect_parts(&checked)?;
        let replica = &self.parts.replica.settings.name;
        let name = snapshot_name(replica, &parts.tail);
        let removed = self.parts.snapshots.remove_rests(replica, &name);
        removed.map_err(|error| error.to_string())?;
        let collections = &self.service.collections;
        let scratch = scratch_folder(&self.service.config.data);
        let written = self.parts.snapshots.write_snapshot(
            replica,
            parts,
            collections,
            &scratch,
            &|| self.parts.wait_for_applied(),
            &|| !self.parts.checks.is_disputed(),
        );
        let snapshot = written.map_err(|problem| problem.detail)?;
        tracing::info!(
            snapshot = snapshot.name,
            "snapshot made beside the shared log"
        );
        Ok(snapshot)
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
        let is_old = |time_us: i64, age: Duration| is_older(time_us, now_us, age);
        let retention = self.parts.replica.settings.keep_log;
        let old = listed[..count_removable(&listed)].iter();
        let old = old.take_while(|snapshot| is_old(snapshot.tail.time_us, retention));
        let old: Vec<_> = old.collect();
        let Some((first_kept, removed)) = old.split_last() else {
            return Ok(());
        };
        for snapshot in removed {
            self.parts.snapshots.remove_snapshot(&snapshot.name)?;
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

    /// Removes the claims of earlier intervals, which are of no use any more. Another replica may have made a claim of a
    /// later one, because a snapshot can take longer than an interval.
    fn remove_claims(&self, interval: i64) -> Result<(), StoreError> {
        let claims = self.parts.store.list(CLAIM_PREFIX)?;
        let is_earlier = |claim: &&ListedObject| is_earlier_claim(&claim.key, interval);
        let mut earlier = claims.iter().filter(is_earlier);
        earlier.try_for_each(|claim| self.parts.store.remove(&claim.key))
    }
}

fn is_earlier_claim(key: &str, interval: i64) -> bool {
    let number = key.strip_prefix(CLAIM_PREFIX);
    let number = number.and_then(|number| number.parse::<i64>().ok());
    number.is_some_and(|number| number < interval)
}

fn is_older(time_us: i64, now_us: i64, age: Duration) -> bool {
    now_us.saturating_sub(time_us) > age.as_micros() as i64
}

/// Returns how many of the oldest snapshots may be removed, or become the first one that stays: all but the newest, and
/// none behind the newest one from which a replica should begin.
fn count_removable(sorted: &[LogSnapshot]) -> usize {
    let trusted = sorted.iter().rposition(LogSnapshot::is_trusted);
    let by_count = sorted.len().saturating_sub(KEPT_SNAPSHOTS - 1);
    trusted.map_or(by_count, |newest| by_count.min(newest + 1))
}

#[cfg(test)]
mod tests {
    use super::super::log_snapshots::tests::snapshot;
    use super::*;

    /// A claim of a later interval is that of another replica, and stays.
    #[test]
    fn only_earlier_claims_are_removed() {
        let keys = ["claims/9", "claims/10", "claims/11", "claims/x", "other/1"];
        let earlier: Vec<_> = keys.iter().map(|key| is_earlier_claim(key, 10)).collect();
        assert_eq!(earlier, [true, false, false, false, false]);
    }

    /// The snapshot from which a replica should begin is the last one that can be the first that stays.
    #[test]
    fn newest_trusted_snapshot_stays() {
        let (wrong, right) = (|at| snapshot(at, "c", false), |at| snapshot(at, "a", true));
        assert_eq!(count_removable(&[]), 0);
        // Snapshots of older versions say nothing.
        assert_eq!(count_removable(&[wrong(2), wrong(3), wrong(4)]), 2);
        assert_eq!(count_removable(&[right(2), right(3), right(4)]), 2);
        assert_eq!(count_removable(&[right(2), wrong(3), wrong(4)]), 1);
    }
}
