//! Changes of the settings of an open collection.
//!
//! A change is made while no other thread writes: everything that was admitted before is written first, then the
//! manifest is replaced, and then the state gets the new settings. Every row is so written under known settings, and
//! a loss of power leaves the former settings or the new ones.

use std::sync::{Arc, PoisonError};

use super::{Collection, NEW_COLLECTION_BYTES, stopped_error};
use crate::error::{Error, Result};
use crate::files::log_progress::LogPosition;
use crate::files::manifest::CollectionManifest;
use crate::settings::{CollectionSettings, SettingsChange};
use crate::writer::StoreWriter;

/// Result of the attempt to change the settings.
struct ChangeOutcome {
    /// Number of the last row on disk.
    durable: u64,
    /// Error that left everything as it was.
    refused: Option<Error>,
}

impl Collection {
    /// Changes settings, and returns the new ones once they are on disk. They apply at once to all documents that
    /// are still there: documents past a narrower window match nothing any more, and documents that are within a
    /// wider one can match again. Documents that have left the disk stay gone, and earlier verdicts stand. With
    /// `refresh`, duplicates refresh their kept documents from now on.
    ///
    /// If the window follows the wall clock, this waits until no other thread compacts or copies the collection.
    ///
    /// # Errors
    /// If the collection has no window and the change concerns one, the new window is invalid, the window was
    /// changed too often, the disk has no room, or a disk operation fails. Then everything is as it was, with one
    /// exception: if it is unknown which settings are on disk, the collection accepts no more writes.
    pub fn change_settings(&self, change: &SettingsChange) -> Result<Arc<CollectionSettings>> {
        // A panic leaves nothing half changed here.
        let changing = self.changing_settings.lock();
        let _changing = changing.unwrap_or_else(PoisonError::into_inner);
        self.check_running()?;
        let before = self.collection_settings();
        let settings = change.apply_to(&before)?;
        if settings == *before {
            return Ok(before);
        }
        // A change writes a whole manifest beside the one that it replaces. A manifest is about as large as the files of a new
        // collection.
        self.check_room(NEW_COLLECTION_BYTES)?;
        let replaced_window = before.window.filter(|_| settings.window != before.window);
        if !replaced_window.is_some_and(|window| window.follows_wall_clock()) {
            return self.write_settings(&settings, None);
        }
        // Documents that left the window before their partition are gone in memory alone. They are erased from the
        // disk first, because they would be within a wider window when the collection is opened again.
        let mut leftovers = self.lock_maintenance();
        self.compact_due(&mut leftovers, &mut || true)?;
        self.write_settings(&settings, None)
    }

    /// Changes settings as [`change_settings`](Self::change_settings) does, at a place of the shared log that the
    /// collection follows. The manifest remembers the place. A change that it has already, because the log is
    /// repeated from an earlier place, does nothing.
    ///
    /// Nothing is compacted, because no document has left the window in memory alone.
    ///
    /// # Errors
    /// As for [`change_settings`](Self::change_settings), except that room on the disk is not asked for, and if the
    /// collection follows no log.
    pub fn change_settings_at(
        &self,
        change: &SettingsChange,
        position: LogPosition,
    ) -> Result<Arc<CollectionSettings>> {
        let changing = self.changing_settings.lock();
        let _changing = changing.unwrap_or_else(PoisonError::into_inner);
        self.check_follows_log()?;
        self.check_running()?;
        let before = self.collection_settings();
        if self.read_state()?.is_recovered(position) {
            return Ok(before);
        }
        match change.apply_to(&before) {
            Ok(settings) if settings != *before => self.write_settings(&settings, Some(position)),
            unchanged => {
                let mut state = self.write_state()?;
                let last_row = state.last_row();
                state.note_entry(position, last_row);
                unchanged.map(|_| before)
            }
        }
    }

    fn write_settings(
        &self,
        settings: &CollectionSettings,
        position: Option<LogPosition>,
    ) -> Result<Arc<CollectionSettings>> {
        let mut refused = None;
        let change = || {
            let changed = self.write_and_change(settings, position);
            let outcome = changed.map_err(|error| error.to_string())?;
            refused = outcome.refused;
            Ok(outcome.durable)
        };
        let written = self.group.write_alone(change);
        written.map_err(|why| stopped_error(&why))?;
        if let Some(error) = refused {
            return Err(error);
        }
        // The files of partitions that have left the window are removed.
        let write = || self.commit_pending().map_err(|error| error.to_string());
        let removed = self.group.write_alone(write);
        removed.map_err(|why| stopped_error(&why))?;
        Ok(self.collection_settings())
    }

    /// Writes everything that waits, and changes the settings. After an error the content of the disk is
    /// unknown.
    fn write_and_change(
        &self,
        settings: &CollectionSettings,
        position: Option<LogPosition>,
    ) -> Result<ChangeOutcome> {
        // Nearly everything is written before others wait for the state.
        self.commit_pending()?;
        let mut writer = self.lock_writer();
        self.change_while_locked(&mut writer, settings, position)
    }

    fn change_while_locked(
        &self,
        writer: &mut StoreWriter,
        settings: &CollectionSettings,
        position: Option<LogPosition>,
    ) -> Result<ChangeOutcome> {
        let mut state = self.write_state()?;
        let work = state.take_pending_work()?;
        let begun_partitions = self.commit_work(writer, &work)?;
        state.mark_written(&work, begun_partitions);
        let outcome = |refused| ChangeOutcome {
            durable: work.last,
            refused,
        };
        let (next_row, first_row) = (work.last + 1, state.first_live_row());
        let (newest, now) = (state.newest_partition(), (self.options.clock)());
        let logged = position.and_then(|position| state.plan_change(settings, position, now));
        let manifest = self.current_manifest();
        let changed = manifest.with_settings(settings.clone(), next_row, first_row, newest, logged);
        let staged = changed.and_then(|changed| changed.stage_file(&*self.disk).map(|()| changed));
        let manifest = match staged {
            Ok(manifest) => manifest,
            Err(error) => return Ok(outcome(Some(error))),
        };
        CollectionManifest::publish_file(&*self.disk)?;
        match logged {
            Some(logged) => state.change_settings_at(manifest.settings.clone(), logged),
            None => state.change_settings(manifest.settings.clone(), now),
        }
        *self.manifest.write() = Arc::new(manifest);
        Ok(outcome(None))
    }
}
