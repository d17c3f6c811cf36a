//! Which entries a collection has already, when records are applied again after a crash.
//!
//! Records are applied again from the checkpoint on, and a collection may be ahead of it in three ways:
//!
//! | entry | it is there already if its position is |
//! |---|---|
//! | insert, deletion, expiry | at most that of the last entry that the collection has on disk, or before its creation |
//! | change of settings | at most that of the last change, or before the creation |
//! | creation and deletion of the collection | at most that of the creation: they are of an earlier collection of its name |
//!
//! Positions before the creation count because the entry is of an earlier collection of the same name. Entries within a
//! record that was being applied are skipped before all this, by
//! [`RecordApplier::partial`](super::apply::RecordApplier). The store itself refuses to write the rows of an entry twice
//! ([`lookalike_store::Collection::log_mark`]).

use lookalike_store::LogPosition;

use super::apply::LocalFailure;
use crate::collections::open_collection::OpenCollection;

impl OpenCollection {
    /// Returns `true` if the rows that the entry at a position wrote or removed are there.
    ///
    /// # Errors
    /// If the place of this collection in the log cannot be read.
    pub(super) fn has_rows_of(&self, position: LogPosition) -> Result<bool, LocalFailure> {
        let last = self.last_row_position()?;
        Ok(Some(position) <= last)
    }

    /// Returns the position up to which [`has_rows_of`](Self::has_rows_of) is `true`.
    ///
    /// # Errors
    /// As for it.
    pub(super) fn last_row_position(&self) -> Result<Option<LogPosition>, LocalFailure> {
        let mark = self.collection.log_mark();
        let mark = mark.map_err(|error| format!("the collection '{}': {error}", self.name))?;
        Ok(Some(mark.position).max(self.collection.created_at()))
    }

    /// Returns `true` if the change of settings at a position has been made.
    pub(super) fn has_settings_of(&self, position: LogPosition) -> bool {
        let changed = self.collection.settings_changed_at();
        Some(position) <= self.collection.created_at().max(changed)
    }

    /// Returns `true` if the collection was created by the entry at a position, or by a later one.
    pub(super) fn is_created_from(&self, position: LogPosition) -> bool {
        Some(position) <= self.collection.created_at()
    }
}
