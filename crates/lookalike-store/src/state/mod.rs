//! In-memory state of an open collection. All of it is derived from the rows.
//!
//! ```text
//! CollectionState      decides, and changes all parts together
//!  ├─ matcher          sketches of kept documents: finds matches          (lookalike::stream)
//!  ├─ rows             reads rows and records, on disk or waiting         stored_rows.rs
//!  │   ├─ partitions   live and dead rows, places, clusters, times        partition_table.rs, partition_state.rs
//!  │   ├─ pending      batches that wait for the disk                     pending_queue.rs
//!  │   └─ on_disk      open files of the partitions                       files/partition_set.rs
//!  └─ index            rows by id, and by sequence number                 document_index.rs, id_table.rs
//! ```
//!
//! | module | what happens to the state |
//! |---|---|
//! | [`verdicts`] | nothing: documents are checked and answered under the shared lock |
//! | [`unlocked_work`] | nothing: long texts are compared and prepared without a lock |
//! | [`insertion`] | a document is inserted, refreshed or deleted |
//! | [`decisions`] | a person decides about two texts, and documents are judged again |
//! | [`expiry`] | partitions begin and expire |
//! | [`shared_log`] | it notes its place in a shared log, and expires partitions at places of it |
//! | [`compaction`] | a partition is replaced by its compacted version |
//! | [`replay`] | all of it is rebuilt when a collection is opened |

mod check_memory;
mod chunked_vec;
mod compaction;
mod decisions;
mod document_index;
mod expiry;
mod id_table;
mod insertion;
#[cfg(test)]
mod interleavings;
mod open_record;
mod partition_state;
mod partition_table;
mod pending_queue;
mod replay;
mod row_bitmap;
mod row_reader;
mod shared_log;
mod stored_rows;
mod unlocked_work;
mod verdicts;

use std::sync::Arc;

use lookalike::stream::{DocumentSlot, StreamMatcher, Timestamp};

use self::check_memory::CheckMemory;
pub(crate) use self::chunked_vec::ChunkedVec;
pub(crate) use self::compaction::CompactionStart;
pub use self::compaction::CompactionTrigger;
pub(crate) use self::decisions::{
    ChangedRelations, DecisionPlan, DecisionTable, PlannedCluster, PlannedDocument,
    PreviewedDecision, StayingDocuments,
};
use self::document_index::DocumentIndex;
pub(crate) use self::open_record::OpenText;
pub(crate) use self::partition_state::NO_PLACE;
use self::partition_state::PartitionState;
pub(crate) use self::pending_queue::{PendingBatch, PendingWork};
pub(crate) use self::row_reader::DocumentReader;
use self::stored_rows::StoredRows;
pub(crate) use self::verdicts::{DocumentCheck, PendingCheck, begin_turn};
use crate::document::KnownDocument;
use crate::error::{Error, ErrorKind, Result};
use crate::files::log_progress::LogPosition;
use crate::files::partition::PartitionFiles;
use crate::files::partition_set::PartitionSet;
use crate::files::rows::{PLACE_UNIT_BYTES, PartitionRow};
use crate::files::window_history::WindowHistory;
use crate::settings::{CollectionContent, CollectionSettings};

/// State of a collection; see the [module](self).
///
/// A kept document is in the matcher and in the table of partitions under the same slot, and every live
/// document is in the index under its id. Each change keeps both, so they hold whenever the lock is free.
#[derive(Debug)]
pub(crate) struct CollectionState {
    settings: Arc<CollectionSettings>,
    pub(crate) matcher: StreamMatcher,
    rows: StoredRows,
    index: DocumentIndex,
    check_memory: CheckMemory,
    /// Windows under which the replayed rows were written.
    windows: WindowHistory,
    /// Number of changes of the window that the replay has passed.
    reached_changes: usize,
    /// Entries of the shared log before this position were applied before the collection was opened; `None` if it
    /// follows none.
    recovered: Option<LogPosition>,
    decisions: DecisionTable,
    /// Why nothing may be written any more, if a change was made in part.
    broken: Option<String>,
}

impl CollectionState {
    /// Creates the state of an empty collection. `seal` is the checksum of its manifest.
    pub(crate) fn new(settings: Arc<CollectionSettings>, seal: u32) -> Result<Self> {
        let windows = WindowHistory::new(settings.window);
        Self::with_windows(settings, &windows, seal)
    }

    /// Creates the state of an empty collection into which rows are replayed. Each is replayed under the window
    /// of its time.
    pub(crate) fn with_windows(
        settings: Arc<CollectionSettings>,
        windows: &WindowHistory,
        seal: u32,
    ) -> Result<Self> {
        let plan = settings.match_plan()?;
        let matcher = StreamMatcher::new(&settings.recipe, &plan, windows.created_window())?;
        let has_sketches =
            settings.holds == CollectionContent::Texts && matcher.document_preparer().can_encode();
        Ok(Self {
            settings,
            rows: StoredRows::new(seal, has_sketches),
            matcher,
            index: DocumentIndex::default(),
            check_memory: CheckMemory::default(),
            windows: windows.clone(),
            reached_changes: 0,
            recovered: None,
            decisions: DecisionTable::default(),
            broken: None,
        })
    }

    /// Replaces the settings by others that differ in nothing but the window and the treatment of conflicts.
    /// `now` is the wall clock.
    pub(crate) fn change_settings(&mut self, settings: Arc<CollectionSettings>, now: Timestamp) {
        let changed = settings
            .window
            .filter(|window| self.matcher.window() != Some(window));
        self.settings = settings;
        if let Some(window) = changed {
            self.matcher.change_window(window);
            self.expire_at_clock(now);
        }
    }

    /// Returns `true` if the sketches of kept documents are written beside them.
    pub(crate) fn has_sketches(&self) -> bool {
        self.rows.pending.has_sketches()
    }

    /// Returns the number of the last row.
    pub(crate) fn last_row(&self) -> u64 {
        self.rows.partitions.last_row()
    }

    /// Returns the number of the oldest row. Earlier rows are gone.
    pub(crate) fn first_live_row(&self) -> u64 {
        self.rows.partitions.first_row()
    }

    /// Returns the number of partitions in the window.
    pub(crate) fn partition_count(&self) -> u64 {
        self.rows.partitions.len() as u64
    }

    /// Returns the number of the newest partition, or 0 if there is none.
    pub(crate) fn newest_partition(&self) -> u64 {
        self.rows.partitions.newest_number().unwrap_or(0)
    }

    /// Returns the place after the records of the newest partition, in units.
    pub(crate) fn texts_end(&self) -> u64 {
        let newest = self.rows.partitions.newest();
        newest.map_or(0, |newest| newest.texts_end())
    }

    /// Returns the bytes of all records, those of dead documents included.
    pub(crate) fn record_bytes(&self) -> u64 {
        let ends = self.rows.partitions.iter().map(PartitionState::texts_end);
        ends.sum::<u64>() * PLACE_UNIT_BYTES
    }

    /// Returns the partitions that are on disk.
    pub(crate) fn partitions_on_disk(&self) -> &PartitionSet {
        self.rows.on_disk()
    }

    /// Returns a partition, if it is on disk.
    pub(crate) fn partition_on_disk(&self, number: u64) -> Option<Arc<PartitionFiles>> {
        self.rows.on_disk().find_by_number(number).cloned()
    }

    /// Returns the number of live documents, and the number of dead rows on disk. Dead are the rows of deleted or moved
    /// documents, and the rows of their deletions.
    pub(crate) fn count_rows(&self) -> (u64, u64) {
        self.rows.partitions.count_rows()
    }

    /// Returns the document with an id, if there is one.
    pub(crate) fn find_by_id(&self, id: &str, id_hash: u64) -> Result<Option<KnownDocument>> {
        self.index.find_by_id(id, id_hash, &self.rows)
    }

    /// Returns the document whose row has this number.
    pub(crate) fn find_by_row(&self, number: u64) -> Result<Option<KnownDocument>> {
        self.rows.find_by_row(number)
    }

    /// Returns a row by its number.
    pub(crate) fn read_row(&self, number: u64) -> Result<PartitionRow> {
        self.rows.read_row(number)
    }

    /// Opens the text of a document, so that a long one can be read without the lock.
    pub(crate) fn open_text(&self, known: &KnownDocument) -> Result<OpenText> {
        self.rows.open_text(known)
    }

    /// Returns the length of the text of a document in bytes, as its record states it; 0 for a bare fingerprint. The
    /// record is neither read nor copied.
    pub(crate) fn stored_text_bytes(&self, known: &KnownDocument) -> Result<usize> {
        match known.document.fingerprint {
            Some(_) => Ok(0),
            None => self.rows.stored_text_bytes(known),
        }
    }

    /// Returns the slot of a document, if it is a kept one.
    pub(crate) fn document_slot(&self, known: &KnownDocument) -> Option<DocumentSlot> {
        self.rows.document_slot(known)
    }

    /// Returns `true` if the document of a row is dead.
    pub(crate) fn is_dead_row(&self, number: u64) -> bool {
        self.rows.partitions.is_dead_row(number)
    }

    /// Returns `true` if a kept document still exists.
    pub(crate) fn is_still_kept(&self, seq: u64, slot: DocumentSlot) -> bool {
        let in_slot = || self.matcher.kept_document(slot);
        self.index.is_moved(seq) || in_slot().is_some_and(|(order, _)| order == seq)
    }

    /// Returns the number of the row of a kept document.
    pub(crate) fn row_of_document(&self, seq: u64) -> u64 {
        self.index.row_of_document(seq)
    }

    /// Returns the sequence numbers after `after` that live documents can have, ascending. Numbers before the first
    /// row belong to documents that were moved.
    pub(crate) fn seqs_after(&self, after: u64) -> impl Iterator<Item = u64> {
        let (next, first_row) = (after.saturating_add(1), self.first_live_row());
        let moved = self.index.moved_seqs(next..first_row.max(next));
        moved.chain(next.max(first_row)..=self.last_row())
    }

    /// Returns `true` if the document with a sequence number is dead.
    pub(crate) fn is_dead_document(&self, seq: u64) -> bool {
        self.is_dead_row(self.row_of_document(seq))
    }

    /// Returns the document with a sequence number, if there is one.
    pub(crate) fn find_by_seq(&self, seq: u64) -> Result<Option<KnownDocument>> {
        // The row to which a document moved has a number that is not a sequence number.
        let known = self.find_by_row(self.row_of_document(seq))?;
        Ok(known.filter(|known| known.seq == seq))
    }

    /// Returns a reader of many documents in ascending order.
    pub(crate) fn document_reader(&self) -> DocumentReader<'_> {
        DocumentReader::new(self)
    }

    /// Returns the slots of kept documents after `after`, in order.
    pub(crate) fn slots_after(
        &self,
        after: Option<DocumentSlot>,
    ) -> impl Iterator<Item = DocumentSlot> {
        self.rows.partitions.slots_after(after)
    }

    /// Returns the sequence number of the kept document in a slot, if it has duplicates.
    pub(crate) fn find_representative(&self, slot: DocumentSlot) -> Option<u64> {
        let (seq, _) = self.matcher.kept_document(slot)?;
        (self.last_duplicate(slot) > 0).then_some(seq)
    }

    /// Returns the number of the last duplicate of a kept document, or 0 if none is left.
    pub(crate) fn last_duplicate(&self, slot: DocumentSlot) -> u64 {
        let kept = self.matcher.kept_document(slot);
        kept.map_or(0, |(seq, _)| self.rows.partitions.last_duplicate(slot, seq))
    }

    /// Takes everything that waits to be written.
    ///
    /// # Errors
    /// If a change was made in part. Then nothing of what waits may reach the disk.
    pub(crate) fn take_pending_work(&mut self) -> Result<PendingWork> {
        match &self.broken {
            Some(why) => Err(Error::new(ErrorKind::Stopped, why.clone())),
            None => Ok(self.rows.take_work()),
        }
    }

    /// Returns `true` if something waits to be written.
    pub(crate) fn has_pending_work(&self) -> bool {
        self.rows.pending.has_work()
    }

    /// Returns the bytes that wait to be written.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.rows.pending.memory_bytes() as u64
    }

    /// Notes that the work was written.
    pub(crate) fn mark_written(&mut self, work: &PendingWork, begun: Vec<Arc<PartitionFiles>>) {
        self.rows.note_written(work, begun);
    }

    /// Returns bytes of memory by component.
    pub(crate) fn memory_by_part(&self) -> Vec<(&'static str, u64)> {
        let rows = &self.rows;
        let places = rows.partitions.memory_bytes() + self.index.moved_bytes();
        let mut parts = self.matcher.memory_by_part().to_vec();
        parts.push(("ids", self.index.id_bytes()));
        parts.push(("places", places as u64));
        parts.push(("waiting", rows.pending.memory_bytes() as u64));
        parts.push(("pages", rows.page_bytes()));
        parts
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lookalike::stream::StreamWindow;

    use super::*;

    /// A full window accepts documents again once its oldest partition has expired.
    #[test]
    fn full_window_is_emptied() {
        let seconds = Duration::from_secs;
        let settings = Arc::new(CollectionSettings {
            window: Some(StreamWindow::new(seconds(24), seconds(5), false).unwrap()),
            ..CollectionSettings::default()
        });
        let mut state = CollectionState::new(settings.clone(), 0).unwrap();
        state.rows.partitions.max_rows = 3;
        let mut admit = |id: &str, seconds: i64| {
            let text = format!("{id} is all that this says");
            let document =
                interleavings::prepare_text(state.matcher.document_preparer(), &settings, id, text);
            let now = Timestamp(seconds * 1_000_000);
            let mut checks = interleavings::check(&state, std::slice::from_ref(&document), now);
            state.admit_document(&document, &mut checks[0], now)
        };
        for (id, second) in [("one", 100), ("two", 101), ("three", 102)] {
            assert!(admit(id, second).is_ok(), "{id}");
        }
        for second in [102, 124] {
            let refused = admit("four", second).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Full);
            assert!(refused.to_string().contains("3 rows"), "{refused}");
        }
        assert!(admit("four", 125).is_ok());
        // Refused documents began no partition.
        let partitions = state
            .rows
            .partitions
            .iter()
            .map(|partition| (partition.number(), partition.first_row()));
        assert!(partitions.eq([(2, 2), (3, 3), (4, 4)]));
    }
}
