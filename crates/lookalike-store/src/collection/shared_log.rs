//! The calls of a collection that follows a shared log.
//!
//! Replicas apply the same entries in the same order, each to its own collection, and derive the same verdicts,
//! sequence numbers and rows from them. Nothing that differs between machines may decide:
//!
//! | differs | what decides |
//! |---|---|
//! | time of the call | [`clock`](super::CollectionOptions::clock), which is the time of the record |
//! | free bytes of the disk | nothing: the owner waits for room |
//! | batches, compactions | rows alone, as everywhere |
//! | time of maintenance | [`Collection::expire_logged`], at places of the log; maintenance only compacts |
//! | restarts | the progress beside the rows: partitions and clock are those of its position |
//!
//! A document that arrived late leaves the disk with its partition, as it does where documents are the clock. Earlier,
//! it would be gone in memory alone, and exist again after a restart.
//!
//! # Repetition
//!
//! A replica that is opened again continues behind [`Collection::log_mark`]. Entries after that mark wrote no row,
//! but the state on disk can be later than some of them: a partition that they found may have expired. So an
//! entry that was applied before is answered like a query, and writes no row.

use std::sync::Arc;

use super::Collection;
use crate::document::{InsertAnswer, PendingInsert};
use crate::error::{Error, Result};
use crate::files::log_progress::{LogMark, LogPosition, LogProgress};
use crate::files::manifest::CollectionManifest;

/// The answers to documents of a shared log; see [`Collection::admit_logged`].
#[derive(Debug, Default)]
pub struct LoggedAdmission {
    /// Answers to the first documents, in their order. They may not be on disk yet.
    pub answers: Vec<Result<InsertAnswer>>,
    /// Error of this machine that the document after these met. It was not applied, and neither were those after it.
    pub stopped: Option<Error>,
}

impl LoggedAdmission {
    fn stopped_by(error: Error) -> Self {
        Self {
            answers: Vec::new(),
            stopped: Some(error),
        }
    }
}

impl Collection {
    /// Returns the position in a shared log at which the collection was created, if it was
    /// [created at one](Self::create_at).
    pub fn created_at(&self) -> Option<LogPosition> {
        self.current_manifest().created_at
    }

    /// Returns the position of the last [change of the settings](Self::change_settings_at) in a shared log, if there
    /// was one.
    pub fn settings_changed_at(&self) -> Option<LogPosition> {
        let change = self.current_manifest().logged_change;
        change.map(|change| change.mark.position)
    }

    /// Returns how far the collection has followed a shared log in memory, or on disk if it follows none now. After it
    /// was opened, both are the same.
    ///
    /// # Errors
    /// If a thread has panicked, or the disk refuses a read.
    pub fn log_mark(&self) -> Result<LogMark> {
        let state = self.read_state()?;
        if let Some(progress) = state.log_progress() {
            return Ok(progress.mark);
        }
        let partitions = state.partitions_on_disk().clone();
        drop(state);
        let progress = super::newest_progress(&partitions)?.unwrap_or_default();
        Ok(self.newest_mark(&progress))
    }

    /// Returns the mark of rows, or that of a change of the settings if it is later.
    fn newest_mark(&self, progress: &LogProgress) -> LogMark {
        let change = self.current_manifest().logged_change;
        let change = change.filter(|change| change.mark.position >= progress.next);
        change.map_or(progress.mark, |change| change.mark)
    }

    /// Admits documents of a shared log in their order, without waiting for the disk: checks and inserts each as
    /// [`insert_documents`](Self::insert_documents) does. Each needs its
    /// [position](PendingInsert::set_log_position), and the clock must be the time of their record.
    ///
    /// A refusal that every replica gives, for example for a conflict of ids, is an answer. The first error of this
    /// machine alone ends the call before its document: a refused read, a damaged file, or a collection that accepts
    /// no more writes. The owner applies that document again later.
    pub fn admit_logged(&self, documents: &mut [PendingInsert]) -> LoggedAdmission {
        if let Err(error) = self.check_follows_log().and_then(|()| self.check_running()) {
            return LoggedAdmission::stopped_by(error);
        }
        // A check that was begun elsewhere may hold an error of that moment.
        documents
            .iter_mut()
            .for_each(|document| document.check = None);
        let recovered_count = match self.read_state() {
            Ok(state) => documents.partition_point(|document| {
                let position = document.log_position;
                position.is_some_and(|position| state.is_recovered(position))
            }),
            Err(error) => return LoggedAdmission::stopped_by(error),
        };
        let (recovered, following) = documents.split_at(recovered_count);
        let mut admission = self.answer_recovered(recovered);
        if admission.stopped.is_none() {
            let (answers, stopped) = self.admit_in_order(following);
            admission.answers.extend(answers);
            admission.stopped = stopped;
        }
        admission
    }

    /// Answers documents that were applied before the collection was opened.
    fn answer_recovered(&self, documents: &[PendingInsert]) -> LoggedAdmission {
        let mut admission = LoggedAdmission::default();
        for document in documents {
            match self.query_document(document) {
                Err(error) if error.is_local() => {
                    admission.stopped = Some(error);
                    break;
                }
                answer => admission.answers.push(answer),
            }
        }
        admission
    }

    /// Deletes a document at a place of the shared log, as [`delete_document`](Self::delete_document) does, without
    /// waiting for the disk. Returns `true` if the document existed.
    ///
    /// # Errors
    /// If the collection follows no log or accepts no more writes, a read is refused, or a file is damaged. Then
    /// nothing was deleted.
    pub fn delete_logged(&self, id: &str, position: LogPosition) -> Result<bool> {
        self.check_follows_log()?;
        self.check_running()?;
        let mut state = self.write_state()?;
        if state.is_recovered(position) {
            return Ok(false);
        }
        let last_row = state.last_row();
        let is_deleted = self.delete_in(&mut state, id)?;
        state.note_entry(position, last_row);
        Ok(is_deleted)
    }

    /// Begins a partition if it is due, and expires partitions past the window, by the clock alone; returns the number
    /// of expired ones. Nothing is done if the window follows the times of documents, which expire partitions
    /// themselves.
    ///
    /// Every replica calls this at the same places of the log: whenever a record has a later time than those before,
    /// ahead of its entries. A call at an earlier time than the last one, by a replica that repeats records, does
    /// nothing. Files of expired partitions are removed with the next commit. A document that arrived late leaves with
    /// its partition.
    ///
    /// # Errors
    /// If the collection follows no log or accepts no more writes.
    pub fn expire_logged(&self) -> Result<u64> {
        self.check_follows_log()?;
        self.check_running()?;
        let now = (self.options.clock)();
        self.write_state()?.expire_logged(now)
    }

    /// Writes everything that was admitted to the disk; it is there when this returns.
    ///
    /// # Errors
    /// If a write fails, now or earlier. The collection then accepts no more writes.
    pub fn flush(&self) -> Result<()> {
        self.check_running()?;
        if !self.read_state()?.has_pending_work() {
            return Ok(());
        }
        let write = || self.commit_pending().map_err(|error| error.to_string());
        let written = self.group.write_alone(write);
        written.map_err(|why| super::stopped_error(&why))
    }

    /// Returns the bytes that were admitted and are not on disk. It takes the shared lock for a moment; 0 if a thread
    /// has panicked.
    pub fn pending_bytes(&self) -> u64 {
        self.read_state().map_or(0, |state| state.pending_bytes())
    }

    /// Forgets the positions of the log that the collection has followed, so that it can follow a new one from its first
    /// record on. Nothing else may use the collection meanwhile.
    ///
    /// # Errors
    /// If the collection follows no log, or a write fails. It can be repeated then.
    pub fn forget_log(&self) -> Result<()> {
        self.check_follows_log()?;
        self.flush()?;
        let manifest = self.current_manifest();
        if manifest.created_at.is_some() || manifest.logged_change.is_some() {
            let manifest = manifest.without_log();
            manifest.stage_file(&*self.disk)?;
            CollectionManifest::publish_file(&*self.disk)?;
            *self.manifest.write() = Arc::new(manifest);
        }
        self.write_state()?.forget_positions();
        self.flush()
    }

    pub(super) fn check_follows_log(&self) -> Result<()> {
        if self.options.follows_log {
            return Ok(());
        }
        Err(Error::setting_error(
            "the collection was opened without a shared log to follow: open it with `follows_log`",
        ))
    }
}
