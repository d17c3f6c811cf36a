//! Insertion, refreshing and deletion of documents, under the exclusive lock.
//!
//! Each operation first does everything that can fail, and then changes all parts of the state.

use lookalike::stream::{
    ArrivalTime, DocumentSlot, KeptMatch, PrecheckResult, SearchTurn, SketchedDocument, Timestamp,
};

use super::unlocked_work::{MovePreparation, MovingDocument};
use super::{CollectionState, DocumentCheck};
use crate::document::{
    DuplicateEvidence, InsertAnswer, KnownDocument, PendingInsert, StoredVerdict, hash_id,
};
use crate::error::Result;
use crate::files::rows::{DeletionRecord, PartitionRow, RecordPlace, RowDocument, RowVerdict};

impl CollectionState {
    /// Checks a document, inserts it and returns the answer. The caller frees the rest of the check after the lock,
    /// because it can be tens of bytes for each feature.
    pub(crate) fn admit_document(
        &mut self,
        document: &PendingInsert,
        check: &mut DocumentCheck,
        now: Timestamp,
    ) -> Result<InsertAnswer> {
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let arrival = self.matcher.resolve_arrival(document.time, now);
        let turn = &mut SearchTurn::unlimited();
        self.compare_content(known.as_ref(), check, document, &arrival, turn)?;
        if let Some(earlier) = self.earlier_answer(document, known.as_ref(), &arrival, check)? {
            return Ok(earlier);
        }
        if arrival.late {
            let replaced = known.as_ref().and_then(|known| self.document_slot(known));
            self.update_verdict_without(replaced, check, document, &arrival)?;
            return self.answer_with(check.search.found_match(), document, &arrival);
        }
        // A document that is refused expires no others, so it is refused before there is room for it.
        let replaced = known.as_ref().and_then(|known| self.document_slot(known));
        self.update_verdict_without(replaced, check, document, &arrival)?;
        self.check_keepable(check)?;
        self.make_room(document, &arrival)?;
        // A document that expired with its partition in the meantime is not replaced any more.
        let known = known.filter(|known| !self.is_dead_row(known.number));
        let replaced = known.as_ref().and_then(|known| self.document_slot(known));
        self.update_verdict_without(replaced, check, document, &arrival)?;
        self.check_keepable(check)?;
        if check.search.found_match().is_none() || check.moving.is_some() {
            self.matcher.check_free_slot()?;
        }
        // The reads that can fail are done, so a replaced document is deleted only if the new one is stored.
        if let Some(known) = known {
            self.delete_document(&known, now);
        }
        self.store_document(document, arrival.time, check)
    }

    /// Refuses a document that would be kept and may not be.
    fn check_keepable(&self, check: &DocumentCheck) -> Result<()> {
        if check.search.found_match().is_none() {
            self.matcher.check_keepable(&check.search)?;
        }
        Ok(())
    }

    /// Inserts bucket keys of the document that is admitted next, before the document itself, until the turn is over.
    /// Returns `true` if the rest of its insertion takes no more than its record and its sketches.
    pub(crate) fn insert_ahead(
        &mut self,
        document: &PendingInsert,
        check: &mut DocumentCheck,
        turn: &mut SearchTurn,
    ) -> bool {
        if let Some(moving) = &mut check.moving {
            return self
                .matcher
                .insert_ahead(&moving.sketched, &mut moving.keys, turn);
        }
        match check.search.insertion_keys_mut() {
            Some(keys) => self.matcher.insert_ahead(&document.sketched, keys, turn),
            None => true,
        }
    }

    /// Brings the verdict on a document up to date, as if the document that it replaces did not exist. Unlike
    /// `update_check`, does not compare contents.
    ///
    /// The caller has completed the check before, under the same exclusive lock, so mostly nothing is left to do. Only if
    /// a partition has begun or expired since, to make room for the document, the check decides again which of the
    /// compared documents are visible.
    pub(super) fn update_verdict_without(
        &self,
        replaced: Option<DocumentSlot>,
        check: &mut DocumentCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
    ) -> Result<()> {
        let turn = &mut SearchTurn::unlimited();
        self.update_verdict(check, document, arrival, replaced, turn)?;
        Ok(())
    }

    pub(super) fn store_document(
        &mut self,
        document: &PendingInsert,
        time: Timestamp,
        check: &DocumentCheck,
    ) -> Result<InsertAnswer> {
        let (seq, found) = (self.rows.partitions.next_row(), check.search.found_match());
        let (place, in_row) = match (found, &check.verdict) {
            (Some(found), StoredVerdict::Duplicate(evidence)) => {
                self.matcher.note_time(time);
                let in_row = self.join_cluster(found.slot, evidence, seq);
                (self.rows.append_record(&document.record), in_row)
            }
            _ => self.keep_document(document, &check.search, seq, time)?,
        };
        self.rows.append_row(&PartitionRow::Document(RowDocument {
            id: document.id.clone(),
            time,
            content_hash: document.content_hash,
            place,
            fingerprint: document.fingerprint,
            meta: document.meta.clone(),
            verdict: in_row,
            refreshed: None,
        }));
        self.index_document(document.id_hash, seq, time);
        if let Some(found) = found {
            self.refresh_window(found, time, check.moving.as_deref())?;
        }
        Ok(InsertAnswer {
            id: document.id.clone(),
            verdict: check.verdict.clone(),
            seq: Some(seq),
            time,
            again: false,
        })
    }

    /// Adds a kept document to the matcher and to the newest partition; returns the place of its record, and
    /// the verdict of its row.
    fn keep_document(
        &mut self,
        document: &PendingInsert,
        search: &PrecheckResult,
        seq: u64,
        time: Timestamp,
    ) -> Result<(RecordPlace, RowVerdict)> {
        let sketched = &document.sketched;
        let slot = self.matcher.keep_checked(sketched, search, seq, time)?;
        let place = self.rows.append_record(&document.record);
        self.rows.append_kept(place, seq, 0);
        self.append_sketches(document.content_hash, sketched);
        Ok((place, RowVerdict::Kept { index: slot.index }))
    }

    fn append_sketches(&mut self, content_hash: u64, document: &SketchedDocument) {
        let preparer = self.matcher.document_preparer();
        let write = |into: &mut Vec<u8>| preparer.encode_document(document, into);
        self.rows.pending.push_sketches(content_hash, write);
    }

    /// Counts the document of the newest row, and makes its id known.
    fn index_document(&mut self, id_hash: u64, row: u64, time: Timestamp) {
        self.rows.partitions.count_document(time);
        self.index.insert_id(id_hash, row, &self.rows.partitions);
    }

    /// Makes a document the last one in the cluster of a kept document.
    fn join_cluster(
        &mut self,
        slot: DocumentSlot,
        evidence: &DuplicateEvidence,
        number: u64,
    ) -> RowVerdict {
        let previous = self.last_duplicate(slot);
        self.rows.partitions.set_last_duplicate(slot, number);
        RowVerdict::Duplicate {
            of: evidence.of.clone(),
            seq: evidence.seq,
            slot,
            similarity: evidence.similarity,
            route: evidence.route,
            previous,
        }
    }

    pub(super) fn is_refreshing(&self) -> bool {
        let window = self.matcher.window();
        window.is_some_and(|window| window.is_refreshing())
    }

    /// Returns `true` if a duplicate that arrives now moves the kept document that it matches from an older
    /// partition to the newest one, or to the one that begins with the duplicate. Without the move, the older
    /// partition could not expire.
    pub(super) fn must_move(
        &self,
        found: &KeptMatch,
        document: &PendingInsert,
        arrival: &ArrivalTime,
    ) -> bool {
        let newest = self.rows.partitions.newest_number();
        self.is_refreshing()
            && !arrival.late
            && (newest != Some(found.slot.partition) || self.begins_partition(document, arrival))
    }

    /// Returns what the preparation of a kept document for its move needs, besides its record.
    pub(super) fn begin_move(&self, found: &KeptMatch) -> Result<Option<MovePreparation>> {
        let from = self.row_of_document(found.order);
        let kept = self.read_row(from)?.into_document(from);
        Ok(kept.map(|(kept, seq)| MovePreparation {
            slot: found.slot,
            from,
            seq,
            kept,
            preparer: self.matcher.document_preparer().clone(),
            extractor: self.matcher.key_extractor(),
        }))
    }

    /// Restarts the window of a kept document at the time of its duplicate, if windows are refreshed. A moved
    /// document leaves its partition at once, so that the partition can expire.
    fn refresh_window(
        &mut self,
        found: KeptMatch,
        time: Timestamp,
        moving: Option<&MovingDocument>,
    ) -> Result<()> {
        match moving {
            Some(moving) => self.move_document(time, moving),
            None => {
                if self.is_refreshing() {
                    self.matcher.refresh_document(found.slot, time);
                }
                Ok(())
            }
        }
    }

    /// Moves a kept document from its slot to the newest partition.
    fn move_document(&mut self, time: Timestamp, moving: &MovingDocument) -> Result<()> {
        let MovingDocument {
            slot: from_slot,
            from,
            seq,
            kept,
            sketched,
            keys,
            record,
        } = moving;
        let (from_slot, from, seq) = (*from_slot, *from, *seq);
        let before = self.matcher.kept_document(from_slot);
        let time = before.map_or(time, |(_, before)| before.max(time));
        let last = self.last_duplicate(from_slot);
        self.matcher.remove_document(from_slot);
        let slot = self.matcher.keep_with_keys(sketched, keys, seq, time)?;
        let place = self.rows.append_record(record);
        self.rows.append_kept(place, seq, last);
        self.append_sketches(kept.content_hash, sketched);
        let (number, id_hash) = (self.rows.partitions.next_row(), hash_id(&kept.id));
        self.rows.partitions.note_move(from, kept.bytes_on_disk());
        self.index.note_move(seq, number);
        self.rows.append_row(&PartitionRow::Moved {
            document: RowDocument {
                time,
                place,
                verdict: RowVerdict::Kept { index: slot.index },
                refreshed: None,
                ..kept.clone()
            },
            from,
            from_slot,
            seq,
            last,
        });
        self.index_document(id_hash, number, time);
        Ok(())
    }

    /// Deletes a document; `now` is the wall clock.
    pub(crate) fn delete_document(&mut self, known: &KnownDocument, now: Timestamp) {
        let slot = self.forget_document(known);
        let bytes = known.document.bytes_on_disk();
        let removal = DeletionRecord {
            at: now,
            bytes: bytes.try_into().unwrap_or(u32::MAX),
        };
        self.rows.partitions.note_deletion(known.number, removal);
        self.rows.append_row(&PartitionRow::Deleted {
            number: known.number,
            seq: known.seq,
            slot,
            removal: Some(removal),
        });
    }

    /// Removes a document from the matcher and the index; returns its slot, if it was kept.
    pub(super) fn forget_document(&mut self, known: &KnownDocument) -> Option<DocumentSlot> {
        let slot = self.document_slot(known);
        if let Some(slot) = slot {
            self.matcher.remove_document(slot);
        }
        self.index.forget_move(known.seq);
        slot
    }
}
