//! Maintenance of an open collection: expiry by the wall clock, and compaction.

mod compacted_rows;
mod compaction;
mod late_documents;
mod pace;
mod partition_copy;
mod record_copier;
mod row_survey;
mod sketch_copier;

use std::sync::{MutexGuard, TryLockError};

pub use self::pace::MaintenancePace;
use crate::collection::{Collection, stopped_error};
use crate::error::Result;
use crate::files::file_names::FileNames;
use crate::files::partition::remove_unlisted_files;

/// Work done by a call of [`Collection::run_maintenance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceReport {
    /// Partitions that were compacted.
    pub compacted: u64,
    /// Partitions that left the window by the wall clock.
    pub expired: u64,
}

impl Collection {
    /// Compacts every partition that is due by [`CompactionTrigger`](crate::CompactionTrigger) and, if the
    /// window follows the wall clock, expires what has left it. Call this about once a second; it is cheap
    /// when nothing is due. Documents are answered and inserted meanwhile. If the collection follows a shared log,
    /// this only compacts; [`expire_logged`](Self::expire_logged) expires.
    ///
    /// `go_on` is called between small pieces of work and returns whether to continue. It may sleep, to leave
    /// more of the disk to others. An abandoned compaction starts from its beginning at the next call.
    /// Nothing is compacted while the collection is being copied, or while another thread compacts.
    ///
    /// # Errors
    /// If a file is damaged, the disk has no room for the compacted files, or a disk operation fails. Then
    /// everything is as it was, with one exception: if the list of partitions could not be written, the
    /// collection accepts no more writes.
    pub fn run_maintenance(&self, go_on: &mut dyn FnMut() -> bool) -> Result<MaintenanceReport> {
        self.check_running()?;
        let mut maintenance = MaintenanceReport::default();
        if !self.options.follows_log {
            maintenance.expired = self.expire_by_clock()?;
        }
        let Some(mut leftovers) = self.try_lock_maintenance() else {
            return Ok(maintenance);
        };
        self.remove_leftovers(&mut leftovers)?;
        if !self.options.follows_log {
            self.drop_late_documents(go_on)?;
        }
        maintenance.compacted = self.compact_due(&mut leftovers, go_on)?;
        Ok(maintenance)
    }

    /// Compacts every partition that is due. Returns their number.
    pub(crate) fn compact_due(
        &self,
        leftovers: &mut Vec<FileNames>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<u64> {
        let mut compacted = 0;
        let (now, trigger) = ((self.options.clock)(), &self.options.compaction);
        let (mut from, mut refused) = (0, None);
        loop {
            let due = self
                .read_state()?
                .partition_to_compact(from, trigger, now)?;
            let Some(number) = due else { break };
            // A partition that cannot be compacted does not keep others from being compacted.
            match self.compact_one(number, leftovers, go_on) {
                Ok(is_done) => compacted += u64::from(is_done),
                Err(error) => refused = refused.or(Some(error)),
            }
            from = number + 1;
        }
        refused.map_or(Ok(compacted), Err)
    }

    /// Compacts every partition that has dead rows on disk, due or not. Returns the number of partitions
    /// compacted.
    ///
    /// # Errors
    /// As for [`run_maintenance`](Self::run_maintenance).
    pub fn compact_all(&self, go_on: &mut dyn FnMut() -> bool) -> Result<u64> {
        self.check_running()?;
        let mut leftovers = self.lock_maintenance();
        self.remove_leftovers(&mut leftovers)?;
        let mut compacted = 0;
        let with_dead = self.read_state()?.partitions_with_dead();
        for number in with_dead {
            compacted += u64::from(self.compact_one(number, &mut leftovers, go_on)?);
        }
        Ok(compacted)
    }

    /// Locks compaction and copying, unless another thread holds the lock.
    fn try_lock_maintenance(&self) -> Option<MutexGuard<'_, Vec<FileNames>>> {
        match self.maintenance.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Expires partitions that have left the window, if it follows the wall clock.
    fn expire_by_clock(&self) -> Result<u64> {
        let now = (self.options.clock)();
        if !self.read_state()?.can_expire(now) {
            return Ok(0);
        }
        let expired = self.write_state()?.expire_partitions(now)?;
        let write = || self.commit_pending().map_err(|error| error.to_string());
        self.group
            .write_alone(write)
            .map_err(|why| stopped_error(&why))?;
        Ok(expired)
    }

    fn remove_leftovers(&self, leftovers: &mut Vec<FileNames>) -> Result<()> {
        while let Some(&names) = leftovers.last() {
            remove_unlisted_files(&*self.disk, names)?;
            leftovers.pop();
        }
        Ok(())
    }
}
