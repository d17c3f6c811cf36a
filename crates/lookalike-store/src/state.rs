//! In-memory state of an open collection: the matcher, the places of documents, and rows waiting to be
//! written. All of it is derived from the rows.

#[cfg(test)]
mod interleavings;
mod replay;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lookalike::stream::{
    self, ArrivalTime, DocumentSlot, KeptMatch, PrecheckResult, StreamMatcher, StreamTexts,
    StreamWindow, Timestamp,
};

use crate::chunked_vec::ChunkedVec;
use crate::document::{
    DuplicateEvidence, InsertAnswer, KnownDocument, PendingInsert, StoredVerdict, shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{IdTable, hash_id};
use crate::parallel_map;
use crate::partition::{CACHE, FileNames, PartitionFiles, PartitionHeader};
use crate::records::StoredRecord;
use crate::rows::RowVerdict;
use crate::rows::{
    self, BYTES_OF_A_DELETION, DeletionRecord, EncodedRows, MOST_ROWS, PartitionRow, RecordPlace,
    UNIT,
};
use crate::settings::{CollectionContent, CollectionSettings, OnConflict};
use crate::sketches::SketchEntries;

/// A partition in memory. It takes 8 bytes per kept document, by index, in addition to the matcher.
#[derive(Debug)]
pub(crate) struct PartitionState {
    pub(crate) number: u64,
    /// Number of its first row.
    pub(crate) first: u64,
    /// Places of the records of kept documents, in units, or [`NOWHERE`]. Compaction replaces the list.
    pub(crate) places: ChunkedVec<u32>,
    /// Lower half of the number of the last row in each kept document's cluster. It is the document's own
    /// sequence number if it has no duplicates, because no document is a duplicate of itself.
    last: ChunkedVec<u32>,
    /// Place of the next record, in units.
    pub(crate) end: u64,
    /// Rows of documents that were deleted, moved or erased by compaction.
    gone: RowBitmap,
    /// Live documents.
    live: u64,
    /// Rows of which compaction left nothing, or only what other rows need.
    erased: u64,
    dead: DeadSpace,
    /// Oldest and newest time of a live document. Times of dead documents may still be included.
    times: Option<(Timestamp, Timestamp)>,
    /// The last compaction took deletions and moves before this row into account.
    applied: u64,
}

/// Place of the record of an erased document.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl PartitionState {
    fn new(number: u64, first: u64) -> Self {
        Self {
            number,
            first,
            places: ChunkedVec::default(),
            last: ChunkedVec::default(),
            end: 0,
            gone: RowBitmap::default(),
            live: 0,
            erased: 0,
            dead: DeadSpace::default(),
            times: None,
            applied: 0,
        }
    }

    /// Counts a live document.
    fn count_document(&mut self, time: Timestamp) {
        self.live += 1;
        self.note_times(time, time);
    }

    fn note_times(&mut self, oldest: Timestamp, newest: Timestamp) {
        let (before, after) = self.times.unwrap_or((oldest, newest));
        self.times = Some((before.min(oldest), after.max(newest)));
    }
}

/// A set of rows of one partition, as distances from its first row.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBitmap(Vec<u64>);

impl RowBitmap {
    /// Adds a row; returns `true` if it was not in the set.
    fn insert_row(&mut self, row: u64) -> bool {
        let (at, bit) = ((row / 64) as usize, 1 << (row % 64));
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        let is_new = self.0[at] & bit == 0;
        self.0[at] |= bit;
        is_new
    }

    fn insert_all(&mut self, from: u64, count: u64) {
        for row in from..from + count {
            self.insert_row(row);
        }
    }

    pub(crate) fn contains_row(&self, row: u64) -> bool {
        let word = self.0.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    fn memory_bytes(&self) -> usize {
        8 * self.0.capacity()
    }
}

/// Disk space that dead documents of a partition occupy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeadSpace {
    /// Approximate number of bytes.
    bytes: u64,
    /// Wall clock time of the first deletion.
    since: Option<Timestamp>,
}

impl DeadSpace {
    fn add_space(&mut self, other: Self) {
        self.bytes += other.bytes;
        let both = self.since.into_iter().chain(other.since);
        self.since = both.min();
    }
}

/// Conditions under which a partition is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionTrigger {
    /// Share of the bytes of a partition's files that must belong to deleted, replaced or moved documents.
    pub dead_share: f64,
    /// Dead bytes from which the share is considered.
    pub least_dead_bytes: u64,
    /// Longest time that deleted or replaced content stays on disk. A partition is also compacted when it is
    /// reached.
    pub longest_wait: Duration,
}

impl Default for CompactionTrigger {
    /// Returns a third of at least 1 MiB, and a day.
    fn default() -> Self {
        Self {
            dead_share: 1.0 / 3.0,
            least_dead_bytes: 1 << 20,
            longest_wait: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// State of a partition when its compaction begins.
#[derive(Debug)]
pub(crate) struct ToCompact {
    pub(crate) number: u64,
    /// Number of its first row.
    pub(crate) first: u64,
    /// Number of the first row whose deletions and moves are not taken into account.
    pub(crate) applied: u64,
    /// Place after the records of earlier rows, in units.
    pub(crate) end: u64,
    /// Dead rows.
    pub(crate) gone: RowBitmap,
    /// For all partitions: the number of the first row, and the row before which deletions were taken into
    /// account.
    partition_states: Vec<(u64, u64)>,
    dead: DeadSpace,
}

impl ToCompact {
    pub(crate) fn is_removed_row(&self, number: u64) -> bool {
        self.gone.contains_row(number - self.first)
    }

    /// Returns `true` if opening the collection still needs row `number`, which removes row `about`.
    pub(crate) fn is_needed_row(&self, number: u64, about: u64) -> bool {
        let behind = self
            .partition_states
            .partition_point(|&(first, _)| first <= about);
        let partition_state = behind.checked_sub(1).map(|at| self.partition_states[at]);
        // An expired partition is not in the list, and a compacted partition takes its own deletions into
        // account.
        partition_state.is_some_and(|(first, applied)| first != self.first && applied <= number)
    }
}

/// Rows and records of one partition that are not on disk yet.
#[derive(Debug)]
pub(crate) struct PendingRows {
    pub(crate) partition: u64,
    /// Description of the partition, if it begins with this batch.
    pub(crate) begins: Option<PartitionHeader>,
    pub(crate) first: u64,
    pub(crate) rows: EncodedRows,
    /// Place of the first record, in units.
    pub(crate) texts_at: u64,
    pub(crate) texts: Vec<u8>,
    pub(crate) sketches: SketchEntries,
    pub(crate) with_sketches: bool,
}

impl PendingRows {
    fn new(partition: u64, first: u64, texts_at: u64, with_sketches: bool) -> Self {
        Self {
            partition,
            begins: None,
            first,
            rows: EncodedRows::default(),
            texts_at,
            texts: Vec::new(),
            sketches: SketchEntries::default(),
            with_sketches,
        }
    }

    fn next_number(&self) -> u64 {
        self.first + self.rows.len() as u64
    }

    fn is_empty(&self) -> bool {
        self.rows.len() == 0 && self.begins.is_none()
    }

    fn has_record(&self, partition: u64, at: u64) -> bool {
        self.partition == partition && at >= self.texts_at
    }

    /// Returns the place after the last record, in units.
    pub(crate) fn texts_end_unit(&self) -> u64 {
        self.texts_at + self.texts.len() as u64 / UNIT
    }
}

/// Disk operations that are due, in this order.
#[derive(Debug, Default)]
pub(crate) struct PendingWork {
    pub(crate) batches: Vec<Arc<PendingRows>>,
    /// Partitions past the window.
    pub(crate) expired: Vec<u64>,
    /// Number of the last row that is on disk once the work is done.
    pub(crate) last: u64,
}

/// A kept document that is about to be moved to the newest partition.
#[derive(Debug)]
struct MovingDocument {
    /// Number of the row that it leaves.
    from: u64,
    seq: u64,
    kept: rows::RowDocument,
    again: stream::SketchedDocument,
    record: Vec<u8>,
}

/// A document that was checked before its turn, and the verdict of that check.
#[derive(Debug)]
pub(crate) struct PrecheckedDocument {
    precheck: PrecheckResult,
    verdict: StoredVerdict,
}

#[derive(Debug)]
pub(crate) struct CollectionState {
    settings: Arc<CollectionSettings>,
    seal: u32,
    pub(crate) matcher: StreamMatcher,
    /// `true` if the sketches of kept documents are written beside them.
    with_sketches: bool,
    /// Row numbers by id hash.
    ids: IdTable,
    /// Row numbers of moved documents, by sequence number.
    moved: HashMap<u64, u64>,
    pub(crate) partition_states: VecDeque<PartitionState>,
    /// Number of the next row.
    next: u64,
    /// Largest number of rows in the window.
    most_rows: u64,
    /// Batch being filled; `None` before the first partition.
    open: Option<PendingRows>,
    /// Batches that wait to be written or are being written.
    sealed: VecDeque<Arc<PendingRows>>,
    expired: Vec<u64>,
    /// Partitions that are on disk.
    partitions: VecDeque<Arc<PartitionFiles>>,
}

impl CollectionState {
    pub(crate) fn new(settings: Arc<CollectionSettings>, seal: u32) -> Result<Self> {
        let plan = settings.match_plan()?;
        let matcher = StreamMatcher::new(&settings.recipe, &plan, settings.window)?;
        let of_texts = settings.holds == CollectionContent::Texts;
        Ok(Self {
            settings,
            seal,
            with_sketches: of_texts && matcher.document_preparer().can_encode(),
            matcher,
            ids: IdTable::default(),
            moved: HashMap::new(),
            partition_states: VecDeque::new(),
            next: 1,
            most_rows: MOST_ROWS,
            open: None,
            sealed: VecDeque::new(),
            expired: Vec::new(),
            partitions: VecDeque::new(),
        })
    }

    /// Returns `true` if the sketches of kept documents are written beside them.
    pub(crate) fn has_sketches(&self) -> bool {
        self.with_sketches
    }

    /// Returns the number of the last row.
    pub(crate) fn last_row(&self) -> u64 {
        self.next - 1
    }

    /// Returns the number of the oldest row. Earlier rows are gone.
    pub(crate) fn first_live_row(&self) -> u64 {
        self.partition_states
            .front()
            .map_or(self.next, |partition_state| partition_state.first)
    }

    pub(crate) fn partitions(&self) -> impl ExactSizeIterator<Item = &Arc<PartitionFiles>> {
        self.partitions.iter()
    }

    /// Checks documents that are about to be admitted together, on all cores and in their order, and brings
    /// those up to date that were checked before. It begins no further one once the work exceeds
    /// `turn_steps`. Returns how many of the first ones are up to date: at least one.
    pub(crate) fn precheck(
        &self,
        documents: &[PendingInsert],
        checks: &mut [Option<Result<PrecheckedDocument>>],
        now: Timestamp,
        turn_steps: u64,
    ) -> usize {
        let stated = documents.iter().map(|document| document.time);
        let arrivals = self.matcher.resolve_arrivals(stated, now);
        let spent = AtomicU64::new(0);
        let before = &*checks;
        let made = parallel_map::parallel_map(documents.len(), |at| {
            if at > 0 && spent.load(Ordering::Relaxed) > turn_steps {
                return None;
            }
            let document = &documents[at].online;
            let prechecked = self.look(document, &arrivals[at], before[at].as_ref());
            let steps = prechecked
                .as_ref()
                .map_or(turn_steps, |it| it.precheck.steps());
            spent.fetch_add(steps, Ordering::Relaxed);
            Some(prechecked)
        });
        let count = made
            .iter()
            .take_while(|prechecked| prechecked.is_some())
            .count();
        for (check, prechecked) in checks.iter_mut().zip(made) {
            if prechecked.is_some() {
                *check = prechecked;
            }
        }
        count
    }

    /// Checks a document, or brings an earlier check up to date.
    fn look(
        &self,
        document: &stream::SketchedDocument,
        arrival: &ArrivalTime,
        before: Option<&Result<PrecheckedDocument>>,
    ) -> Result<PrecheckedDocument> {
        let precheck = match before {
            Some(Ok(before)) => {
                let before = before.precheck.clone();
                self.matcher
                    .update_precheck(before, document, arrival, self)?
            }
            Some(Err(error)) => return Err(error.clone()),
            None => self.matcher.precheck(document, arrival, self)?,
        };
        let verdict = self.verdict_of(precheck.found_match())?;
        Ok(PrecheckedDocument { precheck, verdict })
    }

    /// Returns `true` if inserting these documents expires a partition.
    pub(crate) fn expires_partition(&self, documents: &[PendingInsert], now: Timestamp) -> bool {
        let stated = documents.iter().map(|document| document.time);
        let arrivals = self.matcher.resolve_arrivals(stated, now);
        arrivals
            .iter()
            .any(|arrival| self.matcher.has_expired(arrival))
    }

    /// Prefetches the memory that a document will need when it is inserted.
    pub(crate) fn prefetch_document(
        &self,
        document: &PendingInsert,
        prechecked: &Result<PrecheckedDocument>,
    ) {
        self.ids.prefetch_id(document.id_hash);
        if let Ok(prechecked) = prechecked {
            self.matcher
                .prefetch_checked(&document.online, &prechecked.precheck);
        }
    }

    /// Checks a document, inserts it and returns the answer.
    pub(crate) fn admit_document(
        &mut self,
        document: &PendingInsert,
        prechecked: Result<PrecheckedDocument>,
        now: Timestamp,
    ) -> Result<InsertAnswer> {
        let clock = now;
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let arrival = self.matcher.resolve_arrival(document.time, now);
        if let Some(first) = self.first_answer(document, known.as_ref(), &arrival)? {
            return Ok(first);
        }
        if arrival.late {
            let replaced = known.as_ref().and_then(|known| self.document_slot(known));
            return self.answer_without(replaced, document, &arrival);
        }
        self.begin_partition_if_due(document, &arrival)?;
        // A document that expired with its partition in the meantime is not replaced any more.
        let known = known.filter(|known| !self.is_row_gone(known.number));
        let replaced = known.as_ref().and_then(|known| self.document_slot(known));
        let (now, verdict) =
            self.check_without(replaced, prechecked?, &document.online, &arrival)?;
        if now.found_match().is_none() {
            self.matcher.check_keepable(&now)?;
        }
        let moving = self.document_to_move(now.found_match())?;
        // The reads that can fail are done, so a replaced document is deleted only if the new one is stored.
        if let Some(known) = known {
            self.delete_document(&known, clock);
        }
        self.store_document(document, arrival.time, verdict, &now, moving)
    }

    /// Returns the first answer of the document with this id, if the content is the same. A document that is
    /// past the window at this arrival counts as absent, even if it is still on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if the content differs and documents are not replaced.
    fn first_answer(
        &self,
        document: &PendingInsert,
        known: Option<&KnownDocument>,
        arrival: &ArrivalTime,
    ) -> Result<Option<InsertAnswer>> {
        let Some(known) = known.filter(|known| !self.has_passed(known, arrival)) else {
            return Ok(None);
        };
        if self.is_same_document(known, document)? {
            return Ok(Some(known.to_answer(true)));
        }
        if self.settings.on_conflict == OnConflict::Replace {
            return Ok(None);
        }
        let what = format!(
            "document '{}' exists with other content, as number {}",
            shorten_id(&document.id),
            known.seq
        );
        Err(Error::new(ErrorKind::Conflict, what))
    }

    /// Returns `true` if the window follows the wall clock and the document is past it.
    pub(crate) fn is_past_window(&self, known: &KnownDocument, now: Timestamp) -> bool {
        let follows = |window: &StreamWindow| window.follows_wall_clock();
        self.settings.window.as_ref().is_some_and(follows)
            && self.has_passed(known, &self.matcher.resolve_arrival(None, now))
    }

    /// Returns `true` if a document is past the window at an arrival.
    fn has_passed(&self, known: &KnownDocument, arrival: &ArrivalTime) -> bool {
        let time = self.window_start(known);
        let window = self.matcher.window();
        window.is_some_and(|window| window.has_passed(time, arrival.clock))
    }

    /// Returns the first answer of a document that exists already, and the number of its row.
    pub(crate) fn repeated_answer(
        &self,
        document: &PendingInsert,
        now: Timestamp,
    ) -> Result<Option<(InsertAnswer, u64)>> {
        let Some(known) = self.find_by_id(&document.id, document.id_hash)? else {
            return Ok(None);
        };
        let arrival = self.matcher.resolve_arrival(document.time, now);
        let first = self.first_answer(document, Some(&known), &arrival)?;
        Ok(first.map(|answer| (answer, known.number)))
    }

    /// Checks a document as if the one that it replaces did not exist.
    fn check_without(
        &mut self,
        replaced: Option<DocumentSlot>,
        prechecked: PrecheckedDocument,
        document: &stream::SketchedDocument,
        arrival: &ArrivalTime,
    ) -> Result<(PrecheckResult, StoredVerdict)> {
        let PrecheckedDocument { precheck, verdict } = prechecked;
        let before = precheck.found_match();
        if let Some(slot) = replaced {
            self.matcher.hide_document(slot);
        }
        let checked = self
            .matcher
            .update_precheck(precheck, document, arrival, self);
        if let Some(slot) = replaced {
            self.matcher.unhide_document(slot);
        }
        let now = checked?;
        if now.found_match() == before {
            return Ok((now, verdict));
        }
        let verdict = self.verdict_of(now.found_match())?;
        Ok((now, verdict))
    }

    /// Returns `true` if a document has the same content as the stored one. Hashes can only prove a
    /// difference, because they can be made to collide.
    fn is_same_document(&self, known: &KnownDocument, document: &PendingInsert) -> Result<bool> {
        let row = &known.document;
        if (row.content, &row.meta, row.fingerprint)
            != (document.content, &document.meta, document.fingerprint)
        {
            return Ok(false);
        }
        if row.fingerprint.is_some() {
            return Ok(true);
        }
        Ok(document.online.text() == Some(&*self.document_text(known)?))
    }

    /// Answers a document as if it were inserted now.
    pub(crate) fn answer_query(
        &self,
        document: &PendingInsert,
        now: Timestamp,
    ) -> Result<InsertAnswer> {
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let arrival = self.matcher.resolve_arrival(document.time, now);
        if let Some(first) = self.first_answer(document, known.as_ref(), &arrival)? {
            return Ok(first);
        }
        let replaced = known.as_ref().and_then(|known| self.document_slot(known));
        self.answer_without(replaced, document, &arrival)
    }

    /// Answers a document as if it were inserted now, with the kept documents that match it.
    pub(crate) fn answer_with_matches(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        limit: usize,
    ) -> Result<(InsertAnswer, Vec<DuplicateEvidence>)> {
        let answer = self.answer_query(document, now)?;
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let own = known.as_ref().and_then(|known| self.document_slot(known));
        let arrival = self.matcher.resolve_arrival(document.time, now);
        let online = &document.online;
        let found = self
            .matcher
            .find_matches(online, &arrival, own, limit, self)?;
        let matches = found.into_iter().map(|it| self.evidence_of(&it));
        Ok((answer, matches.collect::<Result<_>>()?))
    }

    /// Answers a document that is not inserted, as if the one that it would replace did not exist.
    fn answer_without(
        &self,
        replaced: Option<DocumentSlot>,
        document: &PendingInsert,
        arrival: &ArrivalTime,
    ) -> Result<InsertAnswer> {
        let online = &document.online;
        let found = self
            .matcher
            .check_without(online, arrival, replaced, self)?;
        Ok(InsertAnswer {
            id: document.id.clone(),
            verdict: self.verdict_of(found)?,
            seq: None,
            time: arrival.time,
            again: false,
        })
    }

    fn verdict_of(&self, found: Option<KeptMatch>) -> Result<StoredVerdict> {
        match found {
            None => Ok(StoredVerdict::Kept),
            Some(found) => self.evidence_of(&found).map(StoredVerdict::Duplicate),
        }
    }

    fn evidence_of(&self, found: &KeptMatch) -> Result<DuplicateEvidence> {
        let of = self.with_record(found.slot, |record| record.id.to_owned())?;
        Ok(DuplicateEvidence {
            of,
            seq: found.order,
            similarity: found.similarity.get(),
            route: found.route,
        })
    }

    fn store_document(
        &mut self,
        document: &PendingInsert,
        time: Timestamp,
        verdict: StoredVerdict,
        precheck: &PrecheckResult,
        moving: Option<MovingDocument>,
    ) -> Result<InsertAnswer> {
        let (seq, found) = (self.next, precheck.found_match());
        let (slot, in_row) = match (found, &verdict) {
            (Some(found), StoredVerdict::Duplicate(evidence)) => {
                self.matcher.note_time(time);
                (None, self.join_cluster(found.slot, evidence, seq))
            }
            _ => {
                let online = &document.online;
                let slot = self.matcher.keep_checked(online, precheck, seq, time)?;
                (Some(slot), RowVerdict::Kept { index: slot.index })
            }
        };
        let place = self.push_record(&document.record);
        if slot.is_some() {
            self.push_entry(place, seq, 0);
            self.push_sketches(document.content, &document.online);
        }
        let row = rows::RowDocument {
            id: document.id.clone(),
            time,
            content: document.content,
            place,
            fingerprint: document.fingerprint,
            meta: document.meta.clone(),
            verdict: in_row,
            refreshed: None,
        };
        self.append_row(&PartitionRow::Document(row));
        self.count_document(time);
        self.index_id(document.id_hash, seq);
        if let Some(found) = found {
            self.refresh_window(found, time, moving)?;
        }
        Ok(InsertAnswer {
            id: document.id.clone(),
            verdict,
            seq: Some(seq),
            time,
            again: false,
        })
    }

    /// Makes a document the last one in the cluster of a kept document.
    fn join_cluster(
        &mut self,
        slot: DocumentSlot,
        evidence: &DuplicateEvidence,
        number: u64,
    ) -> RowVerdict {
        RowVerdict::Duplicate {
            of: evidence.of.clone(),
            seq: evidence.seq,
            slot,
            similarity: evidence.similarity,
            route: evidence.route,
            previous: self.set_last_repeat(slot, number),
        }
    }

    fn is_refreshing(&self) -> bool {
        self.settings
            .window
            .is_some_and(|window| window.is_refreshing())
    }

    /// Returns the refreshed document that a duplicate moves from an older partition to the newest one, if
    /// any. Without the move, the older partition could not expire.
    fn document_to_move(&self, found: Option<KeptMatch>) -> Result<Option<MovingDocument>> {
        let newest = self
            .partition_states
            .back()
            .map(|partition_state| partition_state.number);
        let older = |it: &KeptMatch| newest != Some(it.slot.partition);
        let Some(found) = found.filter(|it| self.is_refreshing() && older(it)) else {
            return Ok(None);
        };
        let from = self.row_of_document(found.order);
        let Some((kept, seq)) = self.read_row(from)?.into_document(from) else {
            return Ok(None);
        };
        let (again, record) = self.reprepare_document(found.slot, &kept)?;
        Ok(Some(MovingDocument {
            from,
            seq,
            kept,
            again,
            record,
        }))
    }

    /// Restarts the window of a kept document at the time of its duplicate, if windows are refreshed. A moved
    /// document leaves its section at once, so that the section can expire.
    fn refresh_window(
        &mut self,
        found: KeptMatch,
        time: Timestamp,
        moving: Option<MovingDocument>,
    ) -> Result<()> {
        if !self.is_refreshing() {
            return Ok(());
        }
        let Some(moving) = moving else {
            self.matcher.refresh_document(found.slot, time);
            return Ok(());
        };
        let MovingDocument {
            from,
            seq,
            kept,
            again,
            record,
        } = moving;
        let before = self
            .matcher
            .kept_document(found.slot)
            .map(|(_, before)| before);
        let time = before.map_or(time, |before| before.max(time));
        let last = self.last_repeat_of(found.slot);
        self.matcher.remove_document(found.slot);
        let slot = self.matcher.keep_document(&again, seq, time)?;
        let place = self.push_record(&record);
        self.push_entry(place, seq, last);
        self.push_sketches(kept.content, &again);
        let number = self.next;
        self.note_moved_document(from, kept.bytes_on_disk());
        self.moved.insert(seq, number);
        let id_hash = hash_id(&kept.id);
        self.append_row(&PartitionRow::Moved {
            document: rows::RowDocument {
                time,
                place,
                verdict: RowVerdict::Kept { index: slot.index },
                refreshed: None,
                ..kept
            },
            from,
            from_slot: found.slot,
            seq,
            last,
        });
        self.count_document(time);
        self.index_id(id_hash, number);
        Ok(())
    }

    /// Returns the prepared form of a kept document, and its record.
    fn reprepare_document(
        &self,
        slot: DocumentSlot,
        kept: &rows::RowDocument,
    ) -> Result<(stream::SketchedDocument, Vec<u8>)> {
        let preparer = self.matcher.document_preparer();
        let text = self.visit_text(slot, str::to_owned)?;
        let record = crate::records::encode_record(&kept.id, &text);
        let again = match kept.fingerprint {
            Some(fingerprint) => preparer.fingerprint(fingerprint)?,
            None => preparer.prepare_text(text, &mut lookalike::text::AnalysisScratch::default()),
        };
        Ok((again, record))
    }

    /// Deletes a document; `now` is the wall clock.
    pub(crate) fn delete_document(&mut self, known: &KnownDocument, now: Timestamp) {
        let slot = self.document_slot(known);
        if let Some(slot) = slot {
            self.matcher.remove_document(slot);
        }
        let removal = DeletionRecord {
            at: now,
            bytes: known
                .document
                .bytes_on_disk()
                .try_into()
                .unwrap_or(u32::MAX),
        };
        self.note_deletion(known.number, removal);
        self.moved.remove(&known.seq);
        self.append_row(&PartitionRow::Deleted {
            number: known.number,
            seq: known.seq,
            slot,
            removal: Some(removal),
        });
    }

    fn note_deletion(&mut self, number: u64, removal: DeletionRecord) {
        let dead = DeadSpace {
            bytes: removal.bytes.into(),
            since: Some(removal.at),
        };
        self.note_removed_row(number, dead);
        // The row of a deletion is dead as well if it is in the same partition as the deleted document.
        if let Some(newest) = self
            .partition_states
            .back_mut()
            .filter(|partition_state| number >= partition_state.first)
        {
            newest.dead.bytes += BYTES_OF_A_DELETION;
        }
    }

    /// Counts a moved document as gone from its old row. Its content is still stored elsewhere.
    fn note_moved_document(&mut self, from: u64, bytes: u64) {
        let dead = DeadSpace { bytes, since: None };
        self.note_removed_row(from, dead);
    }

    fn note_removed_row(&mut self, number: u64, dead: DeadSpace) {
        if let Some(partition_state) = self.partition_of_row_mut(number)
            && partition_state
                .gone
                .insert_row(number - partition_state.first)
        {
            partition_state.live = partition_state.live.saturating_sub(1);
            partition_state.dead.add_space(dead);
        }
    }

    /// Counts a document that was written to the newest partition.
    fn count_document(&mut self, time: Timestamp) {
        if let Some(partition_state) = self.partition_states.back_mut() {
            partition_state.count_document(time);
        }
    }

    /// Returns a partition with documents that left the window by the wall clock long before the rest of the
    /// partition does, because they arrived late. Returns `None` if the window does not follow the wall
    /// clock.
    pub(crate) fn late_partition(&self, now: Timestamp) -> Option<u64> {
        let follows = |window: &&StreamWindow| window.follows_wall_clock();
        let window = self.settings.window.as_ref().filter(follows)?;
        let clock = self.matcher.resolve_arrival(None, now).clock;
        let lasts = i64::try_from(window.width().as_micros() / 24).unwrap_or(i64::MAX);
        let has_late = |partition_state: &&PartitionState| {
            partition_state.times.is_some_and(|(oldest, newest)| {
                let overdue = Timestamp(oldest.0.saturating_add(lasts / 2));
                newest.0.saturating_sub(oldest.0) > lasts && window.has_passed(overdue, clock)
            })
        };
        self.partition_states
            .iter()
            .find(has_late)
            .map(|partition_state| partition_state.number)
    }

    /// Forgets the times of a partition's documents, so that they can be collected again, and returns them.
    pub(crate) fn take_times(&mut self, number: u64) -> Option<(Timestamp, Timestamp)> {
        self.partition_state_mut(number)
            .and_then(|partition_state| partition_state.times.take())
    }

    pub(crate) fn put_time_range(&mut self, number: u64, (oldest, newest): (Timestamp, Timestamp)) {
        if let Some(partition_state) = self.partition_state_mut(number) {
            partition_state.note_times(oldest, newest);
        }
    }

    /// Returns the time at which the window of a document starts.
    pub(crate) fn window_start(&self, known: &KnownDocument) -> Timestamp {
        let kept = self
            .document_slot(known)
            .and_then(|slot| self.matcher.kept_document(slot));
        kept.map_or(known.document.time, |(_, time)| time)
    }

    /// Removes a document that has left the window before its partition expires. Nothing is written, because
    /// the clock leads to the same result whenever the collection is opened.
    pub(crate) fn drop_expired(&mut self, known: &KnownDocument) {
        if self.is_row_gone(known.number) {
            return;
        }
        if let Some(slot) = self.document_slot(known) {
            self.matcher.remove_document(slot);
        }
        self.moved.remove(&known.seq);
        let dead = DeadSpace {
            bytes: known.document.bytes_on_disk(),
            since: Some(Timestamp::BEGINNING),
        };
        self.note_removed_row(known.number, dead);
    }

    /// Begins a new partition if it is due, and expires partitions past the window, by the wall clock alone.
    /// Returns the number of expired partitions.
    pub(crate) fn expire_partitions(&mut self, now: Timestamp) -> Result<usize> {
        let arrival = self.matcher.resolve_arrival(None, now);
        if let Some(number) = self.next_partition(&arrival) {
            self.begin_partition(number, arrival.clock)?;
        }
        let before = self.partition_states.len();
        while let Some(number) = self.matcher.expired_partition(&arrival) {
            self.forget_partition(number);
        }
        Ok(before - self.partition_states.len())
    }

    /// Returns `true` if [`expire_partitions`](Self::expire_partitions) has something to do.
    pub(crate) fn can_expire(&self, now: Timestamp) -> bool {
        let follows = |window: &StreamWindow| window.follows_wall_clock();
        let arrival = self.matcher.resolve_arrival(None, now);
        self.settings.window.as_ref().is_some_and(follows)
            && (self.next_partition(&arrival).is_some()
                || self.matcher.expired_partition(&arrival).is_some())
    }

    /// Returns the number of the next partition, if it is due and the newest one has rows.
    fn next_partition(&self, arrival: &ArrivalTime) -> Option<u64> {
        let newest = self
            .partition_states
            .back()
            .filter(|partition_state| partition_state.first < self.next)?;
        let is_due = self.matcher.is_partition_due(arrival);
        is_due.then_some(newest.number + 1)
    }

    /// Returns the oldest partition, from number `from` on, that is due for compaction.
    pub(crate) fn to_compact(
        &self,
        from: u64,
        trigger: &CompactionTrigger,
        now: Timestamp,
    ) -> Result<Option<u64>> {
        let longest = trigger.longest_wait.as_micros();
        for partition_state in self
            .partition_states
            .iter()
            .filter(|partition_state| partition_state.number >= from)
        {
            let dead = partition_state.dead;
            let waits = |since: Timestamp| u128::from(since.0.abs_diff(now.0)) >= longest;
            if dead.since.is_some_and(waits) {
                return Ok(Some(partition_state.number));
            }
            if dead.bytes == 0 || dead.bytes < trigger.least_dead_bytes {
                continue;
            }
            let Ok(partition) = self.partition_files(partition_state.number) else {
                continue;
            };
            let bytes = partition.size_in_bytes()?;
            if dead.bytes as f64 >= trigger.dead_share * bytes as f64 {
                return Ok(Some(partition_state.number));
            }
        }
        Ok(None)
    }

    /// Returns the numbers of the partitions with dead rows on disk.
    pub(crate) fn partitions_with_dead(&self) -> Vec<u64> {
        let with_dead = self.partition_states.iter().filter(|partition_state| {
            partition_state.dead.bytes > 0 || partition_state.dead.since.is_some()
        });
        with_dead
            .map(|partition_state| partition_state.number)
            .collect()
    }

    /// Begins the compaction of a partition and returns its state, or `None` if there is no such partition.
    /// The compaction [ends](Self::put_compacted) or is [given up](Self::give_up_compaction).
    pub(crate) fn begin_compaction(&mut self, number: u64) -> Option<ToCompact> {
        let partition_states = self
            .partition_states
            .iter()
            .map(|partition_state| (partition_state.first, partition_state.applied));
        let partition_states = partition_states.collect();
        let applied = self.next;
        let partition_state = self.partition_state_mut(number)?;
        Some(ToCompact {
            number,
            first: partition_state.first,
            applied,
            end: partition_state.end,
            gone: partition_state.gone.clone(),
            partition_states,
            dead: std::mem::take(&mut partition_state.dead),
        })
    }

    pub(crate) fn give_up_compaction(&mut self, begun: &ToCompact) {
        if let Some(partition_state) = self.partition_state_mut(begun.number) {
            partition_state.dead.add_space(begun.dead);
        }
    }

    /// Replaces a partition by its compacted version; returns the old one and its list of places. `places`
    /// are those of the kept documents on disk, and `erased` is the number of erased rows.
    pub(crate) fn put_compacted(
        &mut self,
        partition: Arc<PartitionFiles>,
        mut places: ChunkedVec<u32>,
        erased: u64,
    ) -> Option<(Arc<PartitionFiles>, ChunkedVec<u32>)> {
        let about = partition.about;
        let of = |it: &Arc<PartitionFiles>| it.about.number;
        let at = self
            .partitions
            .binary_search_by_key(&about.number, of)
            .ok()?;
        let partition_state = self.partition_state_mut(about.number)?;
        // Kept documents that are not on disk yet keep their places.
        for index in places.len()..partition_state.places.len() {
            places.push(
                partition_state
                    .places
                    .get(index)
                    .copied()
                    .unwrap_or(NOWHERE),
            );
        }
        std::mem::swap(&mut partition_state.places, &mut places);
        partition_state.erased = erased;
        partition_state.applied = about.compacted.map_or(0, |it| it.applied);
        let before = std::mem::replace(&mut self.partitions[at], partition);
        Some((before, places))
    }

    /// Returns a partition, if it is on disk.
    pub(crate) fn partition_on_disk(&self, number: u64) -> Option<Arc<PartitionFiles>> {
        let of = |it: &Arc<PartitionFiles>| it.about.number;
        let at = self.partitions.binary_search_by_key(&number, of).ok()?;
        self.partitions.get(at).cloned()
    }

    /// Returns the number of live documents, and the number of dead rows on disk: those of deleted or moved
    /// documents, and the rows of their deletions.
    pub(crate) fn count_rows(&self) -> (u64, u64) {
        let all = self.next - self.first_live_row();
        let live: u64 = self
            .partition_states
            .iter()
            .map(|partition_state| partition_state.live)
            .sum();
        let erased: u64 = self
            .partition_states
            .iter()
            .map(|partition_state| partition_state.erased)
            .sum();
        (live, all.saturating_sub(live + erased))
    }

    pub(crate) fn document_slot(&self, known: &KnownDocument) -> Option<DocumentSlot> {
        let RowVerdict::Kept { index } = known.document.verdict else {
            return None;
        };
        let partition_state = self.partition_of_row(known.number)?;
        Some(DocumentSlot {
            partition: partition_state.number,
            index,
        })
    }

    /// Begins a new partition if it is due, and expires partitions past the window.
    fn begin_partition_if_due(
        &mut self,
        document: &PendingInsert,
        arrival: &ArrivalTime,
    ) -> Result<()> {
        let is_full = self.next - self.first_live_row() >= self.most_rows;
        if is_full && !self.matcher.has_expired(arrival) {
            let what = format!("the window has {} rows, the limit", self.most_rows);
            return Err(Error::new(ErrorKind::Full, what));
        }
        // Twice the size, because a document may be moved as well as stored.
        let units = 2 * (document.record.len() as u64 / UNIT) + (1 << 24);
        let full =
            |partition_state: &PartitionState| partition_state.end + units > u64::from(u32::MAX);
        if self.matcher.is_partition_due(arrival) || self.partition_states.back().is_some_and(full)
        {
            let number = self
                .partition_states
                .back()
                .map_or(1, |partition_state| partition_state.number + 1);
            self.begin_partition(number, arrival.clock)?;
        }
        while let Some(number) = self.matcher.expired_partition(arrival) {
            self.forget_partition(number);
        }
        Ok(())
    }

    fn begin_partition(&mut self, number: u64, began: Timestamp) -> Result<()> {
        self.matcher.begin_partition(number, began)?;
        let about = PartitionHeader {
            seal: self.seal,
            number,
            first: self.next,
            began,
            compacted: None,
        };
        self.push_partition(number, self.next);
        self.seal_batch();
        self.open = Some(PendingRows {
            begins: Some(about),
            ..PendingRows::new(number, self.next, 0, self.with_sketches)
        });
        Ok(())
    }

    fn push_partition(&mut self, number: u64, first: u64) {
        self.partition_states
            .push_back(PartitionState::new(number, first));
    }

    fn forget_partition(&mut self, number: u64) {
        self.matcher.drop_partition();
        self.partition_states.pop_front();
        let oldest = self.partitions.front();
        if oldest.is_some_and(|oldest| oldest.about.number == number) {
            self.partitions.pop_front();
        }
        self.expired.push(number);
        let low = self.first_live_row();
        self.moved.retain(|_, number| *number >= low);
    }

    fn seal_batch(&mut self) {
        let batch = self.open.take().filter(|batch| !batch.is_empty());
        self.sealed.extend(batch.map(Arc::new));
    }

    fn append_row(&mut self, row: &PartitionRow) {
        if let Some(open) = &mut self.open {
            open.rows.push_row(row);
            self.next += 1;
        }
    }

    fn push_sketches(&mut self, content: u64, document: &stream::SketchedDocument) {
        if let Some(open) = self.open.as_mut().filter(|open| open.with_sketches) {
            let preparer = self.matcher.document_preparer();
            open.sketches
                .push_entry(content, |into| preparer.encode_document(document, into));
        }
    }

    fn push_record(&mut self, record: &[u8]) -> RecordPlace {
        let units = record.len() as u64 / UNIT;
        let at = self
            .partition_states
            .back_mut()
            .map_or(0, |partition_state| {
                partition_state.end += units;
                partition_state.end - units
            });
        if let Some(open) = &mut self.open {
            open.texts.extend_from_slice(record);
        }
        RecordPlace {
            at: at as u32,
            units: units as u32,
        }
    }

    fn push_entry(&mut self, place: RecordPlace, seq: u64, last: u64) {
        let last = if last == 0 { seq } else { last };
        if let Some(partition_state) = self.partition_states.back_mut() {
            partition_state.places.push(place.at);
            partition_state.last.push(last as u32);
        }
    }

    fn index_id(&mut self, id_hash: u64, number: u64) {
        let low = self.first_live_row();
        let partition_states = &self.partition_states;
        self.ids.insert_id(id_hash, number, low, |number| {
            is_gone_row(partition_states, number)
        });
    }

    /// Returns everything that waits to be written.
    pub(crate) fn take_pending_work(&mut self) -> PendingWork {
        let next = self
            .open
            .as_ref()
            .map(|open| (open.partition, open.texts_end_unit()));
        self.seal_batch();
        self.open = next.map(|(partition, texts_at)| {
            PendingRows::new(partition, self.next, texts_at, self.with_sketches)
        });
        PendingWork {
            batches: self.sealed.iter().cloned().collect(),
            expired: std::mem::take(&mut self.expired),
            last: self.last_row(),
        }
    }

    /// Records that the work was written.
    pub(crate) fn mark_written(&mut self, work: &PendingWork, begun: Vec<Arc<PartitionFiles>>) {
        self.sealed.drain(..work.batches.len());
        let oldest = self
            .partition_states
            .front()
            .map_or(u64::MAX, |partition_state| partition_state.number);
        let live = begun
            .into_iter()
            .filter(|partition| partition.about.number >= oldest);
        self.partitions.extend(live);
    }

    fn partition_state(&self, number: u64) -> Option<&PartitionState> {
        let at = self
            .partition_states
            .binary_search_by_key(&number, |partition_state| partition_state.number)
            .ok()?;
        self.partition_states.get(at)
    }

    fn partition_state_mut(&mut self, number: u64) -> Option<&mut PartitionState> {
        let at = self
            .partition_states
            .binary_search_by_key(&number, |partition_state| partition_state.number)
            .ok()?;
        self.partition_states.get_mut(at)
    }

    fn partition_of_row(&self, number: u64) -> Option<&PartitionState> {
        partition_of_row(&self.partition_states, number)
    }

    fn partition_of_row_mut(&mut self, number: u64) -> Option<&mut PartitionState> {
        let behind = self
            .partition_states
            .partition_point(|partition_state| partition_state.first <= number);
        self.partition_states.get_mut(behind.checked_sub(1)?)
    }

    /// Returns the slots of kept documents after `after`, in order.
    pub(crate) fn slots_after(
        &self,
        after: Option<DocumentSlot>,
    ) -> impl Iterator<Item = DocumentSlot> {
        let section = after.map_or(0, |slot| slot.partition);
        let begin = self
            .partition_states
            .partition_point(|partition_state| partition_state.number < section);
        self.partition_states
            .range(begin..)
            .flat_map(move |partition_state| {
                let passed = after.filter(|slot| slot.partition == partition_state.number);
                let first = passed.map_or(0, |slot| slot.index.saturating_add(1));
                (first..partition_state.places.len() as u32).map(|index| DocumentSlot {
                    partition: partition_state.number,
                    index,
                })
            })
    }

    /// Returns the sequence number of a kept document that has duplicates.
    pub(crate) fn last_repeat(&self, slot: DocumentSlot) -> Option<u64> {
        let (seq, _) = self.matcher.kept_document(slot)?;
        (self.last_repeat_of(slot) > 0).then_some(seq)
    }

    /// Returns the number of the last duplicate of a kept document, or 0 if none is left.
    pub(crate) fn last_repeat_of(&self, slot: DocumentSlot) -> u64 {
        let last = self
            .partition_state(slot.partition)
            .and_then(|partition_state| partition_state.last.get(slot.index as usize));
        match (last, self.matcher.kept_document(slot)) {
            (Some(&last), Some((seq, _))) if last != seq as u32 => self.restore_number(last),
            _ => 0,
        }
    }

    /// Restores a row number from its lower half; returns 0 if it is before all rows.
    fn restore_number(&self, number: u32) -> u64 {
        let low = self.first_live_row();
        let precheck = number.wrapping_sub(low as u32);
        if u64::from(precheck) < MOST_ROWS {
            low + u64::from(precheck)
        } else {
            0
        }
    }

    /// Sets the last duplicate of a kept document; returns the previous one.
    fn set_last_repeat(&mut self, slot: DocumentSlot, number: u64) -> u64 {
        let before = self.last_repeat_of(slot);
        self.put_last_repeat(slot, number);
        before
    }

    fn put_last_repeat(&mut self, slot: DocumentSlot, number: u64) {
        if let Some(partition_state) = self.partition_state_mut(slot.partition)
            && let Some(last) = partition_state.last.get_mut(slot.index as usize)
        {
            *last = number as u32;
        }
    }

    /// Returns the document with an id, if there is one.
    pub(crate) fn find_by_id(&self, id: &str, id_hash: u64) -> Result<Option<KnownDocument>> {
        let mut numbers = Vec::new();
        self.ids
            .visit_candidates(id_hash, self.first_live_row(), |number| {
                if !is_gone_row(&self.partition_states, number) {
                    numbers.push(number);
                }
            });
        for number in numbers {
            if let Some(known) = self
                .find_by_number(number)?
                .filter(|known| known.document.id == id)
            {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    /// Returns the document whose row has this number.
    pub(crate) fn find_by_number(&self, number: u64) -> Result<Option<KnownDocument>> {
        let document = self.read_row(number)?.into_document(number);
        Ok(document.map(|(document, seq)| KnownDocument {
            number,
            seq,
            document,
        }))
    }

    /// Returns `true` if a kept document still exists.
    pub(crate) fn is_still_kept(&self, seq: u64, slot: DocumentSlot) -> bool {
        self.moved.contains_key(&seq)
            || self
                .matcher
                .kept_document(slot)
                .is_some_and(|(order, _)| order == seq)
    }

    /// Returns `true` if the row of a document is dead.
    pub(crate) fn is_row_gone(&self, number: u64) -> bool {
        is_gone_row(&self.partition_states, number)
    }

    /// Returns the number of the row of a kept document.
    pub(crate) fn row_of_document(&self, seq: u64) -> u64 {
        self.moved.get(&seq).copied().unwrap_or(seq)
    }

    /// Returns the sequence numbers of documents whose original partitions have expired, ascending.
    pub(crate) fn moved_from_before(&self) -> Vec<u64> {
        let low = self.first_live_row();
        let before = self.moved.keys().copied().filter(|&seq| seq < low);
        let mut before: Vec<u64> = before.collect();
        before.sort_unstable();
        before
    }

    fn pending_batches(&self) -> impl DoubleEndedIterator<Item = &PendingRows> {
        self.sealed.iter().map(|batch| &**batch).chain(&self.open)
    }

    pub(crate) fn read_row(&self, number: u64) -> Result<PartitionRow> {
        let waiting = self
            .pending_batches()
            .find(|batch| (batch.first..batch.next_number()).contains(&number));
        let row =
            waiting.and_then(|batch| batch.rows.decode_row_at((number - batch.first) as usize));
        if let Some(row) = row {
            return Ok(row);
        }
        let behind = self
            .partitions
            .partition_point(|partition| partition.about.first <= number);
        let partition = behind.checked_sub(1).and_then(|at| self.partitions.get(at));
        let partition =
            partition.ok_or_else(|| Error::damaged_file("rows", format!("no row {number}")))?;
        partition.read_row(number)
    }

    fn partition_files(&self, number: u64) -> Result<&PartitionFiles> {
        let at = self
            .partitions
            .binary_search_by_key(&number, |partition| partition.about.number);
        let partition = at.ok().and_then(|at| self.partitions.get(at));
        let partition = partition.map(|partition| &**partition);
        partition.ok_or_else(|| Error::damaged_file("rows", format!("no partition {number:x}")))
    }

    /// Calls `visit` with the record at a place in a partition.
    pub(crate) fn with_record_at<T>(
        &self,
        partition: u64,
        at: u32,
        visit: impl FnOnce(&StoredRecord<'_>) -> T,
    ) -> Result<T> {
        let place = u64::from(at);
        let waiting = self
            .pending_batches()
            .rev()
            .find(|batch| batch.has_record(partition, place));
        let Some(batch) = waiting else {
            return self.partition_files(partition)?.visit_record(at, visit);
        };
        let record = batch
            .texts
            .get(((place - batch.texts_at) * UNIT) as usize..);
        let record = record.and_then(StoredRecord::parse_record);
        let record =
            record.ok_or_else(|| Error::damaged_file("memory", format!("record {place}")))?;
        Ok(visit(&record))
    }

    fn with_record<T>(
        &self,
        slot: DocumentSlot,
        visit: impl FnOnce(&StoredRecord<'_>) -> T,
    ) -> Result<T> {
        let partition_state = self.partition_state(slot.partition);
        let place = partition_state
            .and_then(|partition_state| partition_state.places.get(slot.index as usize));
        let place = place.ok_or_else(|| {
            let what = format!(
                "no kept document {} in partition {:x}",
                slot.index, slot.partition
            );
            Error::damaged_file("rows", what)
        })?;
        self.with_record_at(slot.partition, *place, visit)
    }

    fn visit_text<T>(&self, slot: DocumentSlot, visit: impl FnOnce(&str) -> T) -> Result<T> {
        let text = self.with_record(slot, |record| record.visit_text(visit))?;
        text.ok_or_else(|| {
            let what = format!("the text of kept document {}", slot.index);
            Error::damaged_file(&self.partition_names(slot.partition).texts_file(), what)
        })
    }

    /// Returns the text of a document.
    pub(crate) fn document_text(&self, known: &KnownDocument) -> Result<String> {
        let partition = self
            .partition_of_row(known.number)
            .map_or(0, |partition_state| partition_state.number);
        let at = known.document.place.at;
        let text = self.with_record_at(partition, at, |record| record.visit_text(str::to_owned))?;
        text.ok_or_else(|| {
            Error::damaged_file(
                &self.partition_names(partition).texts_file(),
                format!("the text at place {at}"),
            )
        })
    }

    /// Returns the names of the files of a partition.
    fn partition_names(&self, number: u64) -> FileNames {
        let partition = self.partition_files(number).ok();
        partition.map_or(
            FileNames {
                number,
                generation: 0,
            },
            |partition| partition.about.file_names(),
        )
    }

    /// Returns bytes of memory by component.
    pub(crate) fn memory_by_part(&self) -> Vec<(&'static str, u64)> {
        let mut parts = self.matcher.memory_by_part().to_vec();
        let of_home = |partition_state: &PartitionState| {
            partition_state.places.memory_bytes()
                + partition_state.last.memory_bytes()
                + partition_state.gone.memory_bytes()
        };
        let kept: usize = self.partition_states.iter().map(of_home).sum();
        let waiting: usize = self
            .pending_batches()
            .map(|batch| batch.rows.byte_count() + batch.texts.len() + batch.sketches.byte_count())
            .sum();
        let moved = 16 * self.moved.capacity();
        parts.push(("ids", self.ids.memory_bytes()));
        parts.push(("places", (kept + moved) as u64));
        parts.push(("waiting", waiting as u64));
        // Upper bound of the page caches.
        parts.push(("pages", (self.partitions.len() * CACHE) as u64));
        parts
    }
}

fn partition_of_row(
    partition_states: &VecDeque<PartitionState>,
    number: u64,
) -> Option<&PartitionState> {
    let behind =
        partition_states.partition_point(|partition_state| partition_state.first <= number);
    partition_states.get(behind.checked_sub(1)?)
}

/// Returns `true` if the row of a document is dead, or is before the first partition.
fn is_gone_row(partition_states: &VecDeque<PartitionState>, number: u64) -> bool {
    partition_of_row(partition_states, number).is_none_or(|partition_state| {
        partition_state
            .gone
            .contains_row(number - partition_state.first)
    })
}

impl StreamTexts for CollectionState {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> lookalike::Result<()> {
        self.visit_text(slot, |text| visit(text))
            .map_err(lookalike::Error::text_error)
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
        state.most_rows = 3;
        let mut admit = |id: &str, seconds: i64| {
            let text = format!("{id} is all that this says");
            let document =
                interleavings::prepare_text(state.matcher.document_preparer(), &settings, id, text);
            let now = Timestamp(seconds * 1_000_000);
            let prechecked = interleavings::check(&state, std::slice::from_ref(&document), now);
            state.admit_document(&document, prechecked.into_iter().next().unwrap(), now)
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
            .partition_states
            .iter()
            .map(|partition_state| (partition_state.number, partition_state.first));
        assert!(partitions.eq([(2, 2), (3, 3), (4, 4)]));
    }
}
