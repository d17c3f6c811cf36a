//! The state of a collection that follows a shared log: how far it has come, and what happens at places of the log
//! without a document.

use std::sync::Arc;

use lookalike::stream::Timestamp;

use super::{CollectionState, DocumentCheck};
use crate::document::{InsertAnswer, PendingInsert};
use crate::error::Result;
use crate::files::log_progress::{LogPosition, LogProgress, LoggedChange};
use crate::settings::CollectionSettings;

impl CollectionState {
    /// Follows a shared log from now on. `durable` is the progress that is written beside the rows, and `change` the
    /// last change of the settings, which can be newer.
    ///
    /// Partitions that had expired are dropped, and a change whose effect did not reach the disk has it again.
    pub(crate) fn follow_log(
        &mut self,
        durable: Option<LogProgress>,
        change: Option<LoggedChange>,
    ) {
        let mut progress = durable.unwrap_or_default();
        self.matcher.restore_newest_time(progress.newest);
        progress.newest = self.matcher.newest_time();
        self.rows.pending.follow_log(progress);
        while let Some(number) = self.oldest_expired(progress.oldest) {
            self.drop_oldest_partition(number);
        }
        if let Some(change) = change.filter(|change| change.mark.position >= progress.next) {
            self.note_change(change);
            self.expire_at_clock(change.clock);
        }
        self.recovered = self.log_progress().map(|progress| progress.next);
    }

    /// Forgets the positions of the log that was followed so far. The digest and the clocks stay.
    pub(crate) fn forget_positions(&mut self) {
        if let Some(progress) = self.rows.pending.progress_mut() {
            progress.mark.position = LogPosition::default();
            progress.next = LogPosition::default();
        }
        self.rows.pending.set_progress_due();
        self.recovered = None;
    }

    /// Returns the number of the oldest partition if it is below `oldest`.
    fn oldest_expired(&self, oldest: u64) -> Option<u64> {
        let number = self.rows.partitions.oldest()?.number();
        (number < oldest).then_some(number)
    }

    /// Returns the progress in the shared log; `None` if the collection follows none.
    pub(crate) fn log_progress(&self) -> Option<&LogProgress> {
        self.rows.pending.progress()
    }

    /// Returns `true` if an entry was applied before the collection was opened. Applied again, it writes no row.
    pub(crate) fn is_recovered(&self, position: LogPosition) -> bool {
        self.recovered.is_some_and(|next| position < next)
    }

    /// Admits a document as [`admit_document`](Self::admit_document) does, and notes its position in a shared log if it
    /// has one. An error of this machine leaves the entry to be applied again.
    pub(crate) fn admit_at_position(
        &mut self,
        document: &PendingInsert,
        check: &mut DocumentCheck,
        now: Timestamp,
    ) -> Result<InsertAnswer> {
        let last_row = self.last_row();
        let answer = self.admit_document(document, check, now);
        let is_applied = answer.as_ref().err().is_none_or(|error| !error.is_local());
        if let Some(position) = document.log_position.filter(|_| is_applied) {
            self.note_entry(position, last_row);
        }
        answer
    }

    /// Notes that an entry was applied. `last_row` is the number of the last row before it.
    pub(crate) fn note_entry(&mut self, position: LogPosition, last_row: u64) {
        let has_row = self.last_row() > last_row;
        let newest = self.matcher.newest_time();
        if let Some(progress) = self.rows.pending.progress_mut() {
            // A second entry at one position would count as applied after a restart.
            debug_assert!(
                position >= progress.next,
                "positions must ascend: {position:?} comes after one before {:?}",
                progress.next
            );
            progress.next = position.next_position();
            progress.newest = newest;
            if has_row {
                progress.mark.position = position;
            }
        }
    }

    /// Notes that an entry was refused, unless it is noted already.
    pub(crate) fn note_refusal(&mut self, position: LogPosition, last_row: u64) {
        let is_new = self
            .log_progress()
            .is_some_and(|progress| position >= progress.next);
        if is_new && !self.is_recovered(position) {
            self.note_entry(position, last_row);
        }
    }

    /// Notes that another partition is the oldest, or that one begins.
    pub(super) fn note_partitions(&mut self) {
        let newest = self.matcher.newest_time();
        let oldest = self.rows.partitions.oldest();
        let oldest = oldest.map_or(0, |oldest| oldest.number());
        if let Some(progress) = self.rows.pending.progress_mut() {
            progress.newest = newest;
            progress.oldest = oldest;
        }
    }

    /// Returns a change to these settings at a place of the log.
    pub(crate) fn plan_change(
        &self,
        settings: &CollectionSettings,
        position: LogPosition,
        clock: Timestamp,
    ) -> Option<LoggedChange> {
        let mut progress = *self.log_progress()?;
        progress.digest_settings(settings);
        progress.mark.position = position;
        Some(LoggedChange {
            mark: progress.mark,
            clock,
            expired_at: progress.expired_at,
        })
    }

    /// Notes a change of the settings.
    fn note_change(&mut self, change: LoggedChange) {
        if let Some(progress) = self.rows.pending.progress_mut() {
            progress.mark = change.mark;
            progress.next = change.mark.position.next_position();
            progress.expired_at = change.expired_at;
        }
    }

    /// Replaces the settings as [`change_settings`](Self::change_settings) does, at a place of the log.
    pub(crate) fn change_settings_at(
        &mut self,
        settings: Arc<CollectionSettings>,
        change: LoggedChange,
    ) {
        self.note_change(change);
        self.change_settings(settings, change.clock);
        // As in `follow_log`, which does not know what has changed.
        self.expire_at_clock(change.clock);
    }

    /// Begins a partition if it is due and expires those past the window, by the clock of the log alone, as
    /// [`expire_partitions`](Self::expire_partitions) does. Does nothing if that was done at this time or later, so a
    /// replica that repeats a part of the log has the same partitions. Returns the number of expired ones.
    pub(crate) fn expire_logged(&mut self, now: Timestamp) -> Result<u64> {
        let before = self.log_progress().map(|progress| progress.expired_at);
        if before.is_none_or(|before| now <= before) {
            return Ok(0);
        }
        let expired = if self.can_expire(now) {
            self.expire_partitions(now)?
        } else {
            0
        };
        // Set last: a partition that begins takes the progress along, and can be on disk before the others expire.
        if let Some(progress) = self.rows.pending.progress_mut() {
            progress.expired_at = now;
        }
        Ok(expired)
    }
}
