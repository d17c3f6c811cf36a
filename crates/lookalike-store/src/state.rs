//! In-memory state of an open collection: the matcher, the places of documents, and rows waiting to be
//! written. All of it is derived from the rows.

#[cfg(test)]
mod orders;
mod replay;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lookalike::online::{self, Ahead, Arrival, Found, Matcher, Slot, Texts, Time, Window};

use crate::document::{Answer, Evidence, Known, Prepared, Verdict, shown};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Ids, id_hash};
use crate::leaves::Leaves;
use crate::partition::{About, CACHE, FileNames, Partition};
use crate::records::Record;
use crate::rows::Verdict as RowVerdict;
use crate::rows::{self, BYTES_OF_A_DELETION, MOST_ROWS, Place, Removal, Row, Rows, UNIT};
use crate::settings::{Holds, OnConflict, Settings};
use crate::share;
use crate::sketches::Entries;

/// A partition in memory. It takes 8 bytes per kept document, by index, in addition to the matcher.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) number: u64,
    /// Number of its first row.
    pub(crate) first: u64,
    /// Places of the records of kept documents, in units, or [`NOWHERE`]. Compaction replaces the list.
    pub(crate) places: Leaves<u32>,
    /// Lower half of the number of the last row in each kept document's cluster. It is the document's own
    /// sequence number if it has no duplicates, because no document is a duplicate of itself.
    last: Leaves<u32>,
    /// Place of the next record, in units.
    pub(crate) end: u64,
    /// Rows of documents that were deleted, moved or erased by compaction.
    gone: RowSet,
    /// Live documents.
    live: u64,
    /// Rows of which compaction left nothing, or only what other rows need.
    erased: u64,
    dead: Dead,
    /// Oldest and newest time of a live document. Times of dead documents may still be included.
    times: Option<(Time, Time)>,
    /// The last compaction took deletions and moves before this row into account.
    applied: u64,
}

/// Place of the record of an erased document.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl Home {
    fn new(number: u64, first: u64) -> Self {
        Self {
            number,
            first,
            places: Leaves::default(),
            last: Leaves::default(),
            end: 0,
            gone: RowSet::default(),
            live: 0,
            erased: 0,
            dead: Dead::default(),
            times: None,
            applied: 0,
        }
    }

    /// Counts a live document.
    fn count_document(&mut self, time: Time) {
        self.live += 1;
        self.note_times(time, time);
    }

    fn note_times(&mut self, oldest: Time, newest: Time) {
        let (before, after) = self.times.unwrap_or((oldest, newest));
        self.times = Some((before.min(oldest), after.max(newest)));
    }
}

/// A set of rows of one partition, as distances from its first row.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSet(Vec<u64>);

impl RowSet {
    /// Adds a row; returns `true` if it was not in the set.
    fn insert(&mut self, row: u64) -> bool {
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
            self.insert(row);
        }
    }

    pub(crate) fn contains(&self, row: u64) -> bool {
        let word = self.0.get((row / 64) as usize);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    fn bytes(&self) -> usize {
        8 * self.0.capacity()
    }
}

/// Disk space that dead documents of a partition occupy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dead {
    /// Approximate number of bytes.
    bytes: u64,
    /// Wall clock time of the first deletion.
    since: Option<Time>,
}

impl Dead {
    fn add(&mut self, other: Self) {
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
    pub(crate) gone: RowSet,
    /// For all partitions: the number of the first row, and the row before which deletions were taken into
    /// account.
    homes: Vec<(u64, u64)>,
    dead: Dead,
}

impl ToCompact {
    pub(crate) fn is_gone(&self, number: u64) -> bool {
        self.gone.contains(number - self.first)
    }

    /// Returns `true` if opening the collection still needs row `number`, which removes row `about`.
    pub(crate) fn is_needed(&self, number: u64, about: u64) -> bool {
        let behind = self.homes.partition_point(|&(first, _)| first <= about);
        let home = behind.checked_sub(1).map(|at| self.homes[at]);
        // An expired partition is not in the list, and a compacted partition takes its own deletions into
        // account.
        home.is_some_and(|(first, applied)| first != self.first && applied <= number)
    }
}

/// Rows and records of one partition that are not on disk yet.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) partition: u64,
    /// Description of the partition, if it begins with this batch.
    pub(crate) begins: Option<About>,
    pub(crate) first: u64,
    pub(crate) rows: Rows,
    /// Place of the first record, in units.
    pub(crate) texts_at: u64,
    pub(crate) texts: Vec<u8>,
    pub(crate) sketches: Entries,
    pub(crate) with_sketches: bool,
}

impl Batch {
    fn new(partition: u64, first: u64, texts_at: u64, with_sketches: bool) -> Self {
        Self {
            partition,
            begins: None,
            first,
            rows: Rows::default(),
            texts_at,
            texts: Vec::new(),
            sketches: Entries::default(),
            with_sketches,
        }
    }

    fn next(&self) -> u64 {
        self.first + self.rows.len() as u64
    }

    fn is_empty(&self) -> bool {
        self.rows.len() == 0 && self.begins.is_none()
    }

    fn has_record(&self, partition: u64, at: u64) -> bool {
        self.partition == partition && at >= self.texts_at
    }

    /// Returns the place after the last record, in units.
    pub(crate) fn texts_end(&self) -> u64 {
        self.texts_at + self.texts.len() as u64 / UNIT
    }
}

/// Disk operations that are due, in this order.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) batches: Vec<Arc<Batch>>,
    /// Partitions past the window.
    pub(crate) expired: Vec<u64>,
    /// Number of the last row that is on disk once the work is done.
    pub(crate) last: u64,
}

/// A kept document that is about to be moved to the newest partition.
#[derive(Debug)]
struct Moving {
    /// Number of the row that it leaves.
    from: u64,
    seq: u64,
    kept: rows::Document,
    again: online::Prepared,
    record: Vec<u8>,
}

/// A document that was checked before its turn, and the verdict of that check.
#[derive(Debug)]
pub(crate) struct Looked {
    ahead: Ahead,
    verdict: Verdict,
}

#[derive(Debug)]
pub(crate) struct State {
    settings: Arc<Settings>,
    seal: u32,
    pub(crate) matcher: Matcher,
    /// `true` if the sketches of kept documents are written beside them.
    with_sketches: bool,
    /// Row numbers by id hash.
    ids: Ids,
    /// Row numbers of moved documents, by sequence number.
    moved: HashMap<u64, u64>,
    pub(crate) homes: VecDeque<Home>,
    /// Number of the next row.
    next: u64,
    /// Largest number of rows in the window.
    most_rows: u64,
    /// Batch being filled; `None` before the first partition.
    open: Option<Batch>,
    /// Batches that wait to be written or are being written.
    sealed: VecDeque<Arc<Batch>>,
    expired: Vec<u64>,
    /// Partitions that are on disk.
    partitions: VecDeque<Arc<Partition>>,
}

impl State {
    pub(crate) fn new(settings: Arc<Settings>, seal: u32) -> Result<Self> {
        let plan = settings.plan()?;
        let matcher = Matcher::new(&settings.recipe, &plan, settings.window)?;
        let of_texts = settings.holds == Holds::Texts;
        Ok(Self {
            settings,
            seal,
            with_sketches: of_texts && matcher.preparer().can_write(),
            matcher,
            ids: Ids::default(),
            moved: HashMap::new(),
            homes: VecDeque::new(),
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
    pub(crate) fn last(&self) -> u64 {
        self.next - 1
    }

    /// Returns the number of the oldest row. Earlier rows are gone.
    pub(crate) fn low(&self) -> u64 {
        self.homes.front().map_or(self.next, |home| home.first)
    }

    pub(crate) fn partitions(&self) -> impl ExactSizeIterator<Item = &Arc<Partition>> {
        self.partitions.iter()
    }

    /// Checks documents that are about to be admitted together, on all cores and in their order, and brings
    /// those up to date that were checked before. It begins no further one once the work exceeds
    /// `turn_steps`. Returns how many of the first ones are up to date: at least one.
    pub(crate) fn precheck(
        &self,
        documents: &[Prepared],
        checks: &mut [Option<Result<Looked>>],
        now: Time,
        turn_steps: u64,
    ) -> usize {
        let stated = documents.iter().map(|document| document.time);
        let arrivals = self.matcher.arrivals(stated, now);
        let spent = AtomicU64::new(0);
        let before = &*checks;
        let made = share::each(documents.len(), |at| {
            if at > 0 && spent.load(Ordering::Relaxed) > turn_steps {
                return None;
            }
            let document = &documents[at].online;
            let looked = self.look(document, &arrivals[at], before[at].as_ref());
            let steps = looked.as_ref().map_or(turn_steps, |it| it.ahead.steps());
            spent.fetch_add(steps, Ordering::Relaxed);
            Some(looked)
        });
        let count = made.iter().take_while(|looked| looked.is_some()).count();
        for (check, looked) in checks.iter_mut().zip(made) {
            if looked.is_some() {
                *check = looked;
            }
        }
        count
    }

    /// Checks a document, or brings an earlier check up to date.
    fn look(
        &self,
        document: &online::Prepared,
        arrival: &Arrival,
        before: Option<&Result<Looked>>,
    ) -> Result<Looked> {
        let ahead = match before {
            Some(Ok(before)) => {
                let before = before.ahead.clone();
                self.matcher.check_again(before, document, arrival, self)?
            }
            Some(Err(error)) => return Err(error.clone()),
            None => self.matcher.look_ahead(document, arrival, self)?,
        };
        let verdict = self.verdict(ahead.found())?;
        Ok(Looked { ahead, verdict })
    }

    /// Returns `true` if inserting these documents expires a partition.
    pub(crate) fn lets_go(&self, documents: &[Prepared], now: Time) -> bool {
        let stated = documents.iter().map(|document| document.time);
        let arrivals = self.matcher.arrivals(stated, now);
        arrivals
            .iter()
            .any(|arrival| self.matcher.has_expired(arrival))
    }

    /// Prefetches the memory that a document will need when it is inserted.
    pub(crate) fn prefetch(&self, document: &Prepared, looked: &Result<Looked>) {
        self.ids.prefetch(document.id_hash);
        if let Ok(looked) = looked {
            self.matcher
                .prefetch_checked(&document.online, &looked.ahead);
        }
    }

    /// Checks a document, inserts it and returns the answer.
    pub(crate) fn admit(
        &mut self,
        document: &Prepared,
        looked: Result<Looked>,
        now: Time,
    ) -> Result<Answer> {
        let clock = now;
        let known = self.find(&document.id, document.id_hash)?;
        let arrival = self.matcher.arrival(document.time, now);
        if let Some(first) = self.first_answer(document, known.as_ref(), &arrival)? {
            return Ok(first);
        }
        if arrival.late {
            let replaced = known.as_ref().and_then(|known| self.slot_of(known));
            return self.answer_without(replaced, document, &arrival);
        }
        self.make_room(document, &arrival)?;
        // A document that expired with its partition in the meantime is not replaced any more.
        let known = known.filter(|known| !self.is_gone(known.number));
        let replaced = known.as_ref().and_then(|known| self.slot_of(known));
        let (now, verdict) = self.check_without(replaced, looked?, &document.online, &arrival)?;
        if now.found().is_none() {
            self.matcher.check_keepable(&now)?;
        }
        let moving = self.to_move(now.found())?;
        // The reads that can fail are done, so a replaced document is deleted only if the new one is stored.
        if let Some(known) = known {
            self.delete(&known, clock);
        }
        self.store(document, arrival.time, verdict, &now, moving)
    }

    /// Returns the first answer of the document with this id, if the content is the same. A document that is
    /// past the window at this arrival counts as absent, even if it is still on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if the content differs and documents are not replaced.
    fn first_answer(
        &self,
        document: &Prepared,
        known: Option<&Known>,
        arrival: &Arrival,
    ) -> Result<Option<Answer>> {
        let Some(known) = known.filter(|known| !self.has_passed(known, arrival)) else {
            return Ok(None);
        };
        if self.is_same(known, document)? {
            return Ok(Some(known.answer(true)));
        }
        if self.settings.on_conflict == OnConflict::Replace {
            return Ok(None);
        }
        let what = format!(
            "document '{}' exists with other content, as number {}",
            shown(&document.id),
            known.seq
        );
        Err(Error::new(ErrorKind::Conflict, what))
    }

    /// Returns `true` if the window follows the wall clock and the document is past it.
    pub(crate) fn has_passed_by(&self, known: &Known, now: Time) -> bool {
        let follows = |window: &Window| window.follows_wall_clock();
        self.settings.window.as_ref().is_some_and(follows)
            && self.has_passed(known, &self.matcher.arrival(None, now))
    }

    /// Returns `true` if a document is past the window at an arrival.
    fn has_passed(&self, known: &Known, arrival: &Arrival) -> bool {
        let time = self.time_of(known);
        let window = self.matcher.window();
        window.is_some_and(|window| window.has_passed(time, arrival.clock))
    }

    /// Returns the first answer of a document that exists already, and the number of its row.
    pub(crate) fn again(&self, document: &Prepared, now: Time) -> Result<Option<(Answer, u64)>> {
        let Some(known) = self.find(&document.id, document.id_hash)? else {
            return Ok(None);
        };
        let arrival = self.matcher.arrival(document.time, now);
        let first = self.first_answer(document, Some(&known), &arrival)?;
        Ok(first.map(|answer| (answer, known.number)))
    }

    /// Checks a document as if the one that it replaces did not exist.
    fn check_without(
        &mut self,
        replaced: Option<Slot>,
        looked: Looked,
        document: &online::Prepared,
        arrival: &Arrival,
    ) -> Result<(Ahead, Verdict)> {
        let Looked { ahead, verdict } = looked;
        let before = ahead.found();
        if let Some(slot) = replaced {
            self.matcher.set_aside(slot);
        }
        let checked = self.matcher.check_again(ahead, document, arrival, self);
        if let Some(slot) = replaced {
            self.matcher.bring_back(slot);
        }
        let now = checked?;
        if now.found() == before {
            return Ok((now, verdict));
        }
        let verdict = self.verdict(now.found())?;
        Ok((now, verdict))
    }

    /// Returns `true` if a document has the same content as the stored one. Hashes can only prove a
    /// difference, because they can be made to collide.
    fn is_same(&self, known: &Known, document: &Prepared) -> Result<bool> {
        let row = &known.document;
        if (row.content, &row.meta, row.fingerprint)
            != (document.content, &document.meta, document.fingerprint)
        {
            return Ok(false);
        }
        if row.fingerprint.is_some() {
            return Ok(true);
        }
        Ok(document.online.text() == Some(&*self.text_of(known)?))
    }

    /// Answers a document as if it were inserted now.
    pub(crate) fn answer(&self, document: &Prepared, now: Time) -> Result<Answer> {
        let known = self.find(&document.id, document.id_hash)?;
        let arrival = self.matcher.arrival(document.time, now);
        if let Some(first) = self.first_answer(document, known.as_ref(), &arrival)? {
            return Ok(first);
        }
        let replaced = known.as_ref().and_then(|known| self.slot_of(known));
        self.answer_without(replaced, document, &arrival)
    }

    /// Answers a document that is not inserted, as if the one that it would replace did not exist.
    fn answer_without(
        &self,
        replaced: Option<Slot>,
        document: &Prepared,
        arrival: &Arrival,
    ) -> Result<Answer> {
        let online = &document.online;
        let found = self
            .matcher
            .check_without(online, arrival, replaced, self)?;
        Ok(Answer {
            id: document.id.clone(),
            verdict: self.verdict(found)?,
            seq: None,
            time: arrival.time,
            again: false,
        })
    }

    fn verdict(&self, found: Option<Found>) -> Result<Verdict> {
        let Some(found) = found else {
            return Ok(Verdict::Kept);
        };
        let of = self.with_record(found.slot, |record| record.id.to_owned())?;
        Ok(Verdict::Duplicate(Evidence {
            of,
            seq: found.order,
            similarity: found.similarity.get(),
            route: found.route,
        }))
    }

    fn store(
        &mut self,
        document: &Prepared,
        time: Time,
        verdict: Verdict,
        ahead: &Ahead,
        moving: Option<Moving>,
    ) -> Result<Answer> {
        let (seq, found) = (self.next, ahead.found());
        let (slot, in_row) = match (found, &verdict) {
            (Some(found), Verdict::Duplicate(evidence)) => {
                self.matcher.note(time);
                (None, self.join_cluster(found.slot, evidence, seq))
            }
            _ => {
                let online = &document.online;
                let slot = self.matcher.keep_checked(online, ahead, seq, time)?;
                (Some(slot), RowVerdict::Kept { index: slot.index })
            }
        };
        let place = self.push_record(&document.record);
        if slot.is_some() {
            self.push_entry(place, seq, 0);
            self.push_sketches(document.content, &document.online);
        }
        let row = rows::Document {
            id: document.id.clone(),
            time,
            content: document.content,
            place,
            fingerprint: document.fingerprint,
            meta: document.meta.clone(),
            verdict: in_row,
            refreshed: None,
        };
        self.push_row(&Row::Document(row));
        self.count_document(time);
        self.name(document.id_hash, seq);
        if let Some(found) = found {
            self.refresh(found, time, moving)?;
        }
        Ok(Answer {
            id: document.id.clone(),
            verdict,
            seq: Some(seq),
            time,
            again: false,
        })
    }

    /// Makes a document the last one in the cluster of a kept document.
    fn join_cluster(&mut self, slot: Slot, evidence: &Evidence, number: u64) -> RowVerdict {
        RowVerdict::Duplicate {
            of: evidence.of.clone(),
            seq: evidence.seq,
            slot,
            similarity: evidence.similarity,
            route: evidence.route,
            previous: self.set_last(slot, number),
        }
    }

    fn refreshes(&self) -> bool {
        self.settings
            .window
            .is_some_and(|window| window.refreshes())
    }

    /// Returns the refreshed document that a duplicate moves from an older partition to the newest one, if
    /// any. Without the move, the older partition could not expire.
    fn to_move(&self, found: Option<Found>) -> Result<Option<Moving>> {
        let newest = self.homes.back().map(|home| home.number);
        let older = |it: &Found| newest != Some(it.slot.section);
        let Some(found) = found.filter(|it| self.refreshes() && older(it)) else {
            return Ok(None);
        };
        let from = self.number_of(found.order);
        let Some((kept, seq)) = self.row(from)?.document(from) else {
            return Ok(None);
        };
        let (again, record) = self.prepare_again(found.slot, &kept)?;
        Ok(Some(Moving {
            from,
            seq,
            kept,
            again,
            record,
        }))
    }

    /// Restarts the window of a kept document at the time of its duplicate, if windows are refreshed. A moved
    /// document leaves its section at once, so that the section can expire.
    fn refresh(&mut self, found: Found, time: Time, moving: Option<Moving>) -> Result<()> {
        if !self.refreshes() {
            return Ok(());
        }
        let Some(moving) = moving else {
            self.matcher.refresh(found.slot, time);
            return Ok(());
        };
        let Moving {
            from,
            seq,
            kept,
            again,
            record,
        } = moving;
        let before = self.matcher.kept(found.slot).map(|(_, before)| before);
        let time = before.map_or(time, |before| before.max(time));
        let last = self.last_of(found.slot);
        self.matcher.remove(found.slot);
        let slot = self.matcher.keep(&again, seq, time)?;
        let place = self.push_record(&record);
        self.push_entry(place, seq, last);
        self.push_sketches(kept.content, &again);
        let number = self.next;
        self.note_move(from, kept.bytes_on_disk());
        self.moved.insert(seq, number);
        let id_hash = id_hash(&kept.id);
        self.push_row(&Row::Moved {
            document: rows::Document {
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
        self.name(id_hash, number);
        Ok(())
    }

    /// Returns the prepared form of a kept document, and its record.
    fn prepare_again(
        &self,
        slot: Slot,
        kept: &rows::Document,
    ) -> Result<(online::Prepared, Vec<u8>)> {
        let preparer = self.matcher.preparer();
        let text = self.with_text(slot, str::to_owned)?;
        let record = crate::records::encode(&kept.id, &text);
        let again = match kept.fingerprint {
            Some(fingerprint) => preparer.fingerprint(fingerprint)?,
            None => preparer.text(text, &mut lookalike::text::Scratch::default()),
        };
        Ok((again, record))
    }

    /// Deletes a document; `now` is the wall clock.
    pub(crate) fn delete(&mut self, known: &Known, now: Time) {
        let slot = self.slot_of(known);
        if let Some(slot) = slot {
            self.matcher.remove(slot);
        }
        let removal = Removal {
            at: now,
            bytes: known
                .document
                .bytes_on_disk()
                .try_into()
                .unwrap_or(u32::MAX),
        };
        self.note_deletion(known.number, removal);
        self.moved.remove(&known.seq);
        self.push_row(&Row::Deleted {
            number: known.number,
            seq: known.seq,
            slot,
            removal: Some(removal),
        });
    }

    fn note_deletion(&mut self, number: u64, removal: Removal) {
        let dead = Dead {
            bytes: removal.bytes.into(),
            since: Some(removal.at),
        };
        self.note_gone(number, dead);
        // The row of a deletion is dead as well if it is in the same partition as the deleted document.
        if let Some(newest) = self.homes.back_mut().filter(|home| number >= home.first) {
            newest.dead.bytes += BYTES_OF_A_DELETION;
        }
    }

    /// Counts a moved document as gone from its old row. Its content is still stored elsewhere.
    fn note_move(&mut self, from: u64, bytes: u64) {
        let dead = Dead { bytes, since: None };
        self.note_gone(from, dead);
    }

    fn note_gone(&mut self, number: u64, dead: Dead) {
        if let Some(home) = self.home_of_row_mut(number)
            && home.gone.insert(number - home.first)
        {
            home.live = home.live.saturating_sub(1);
            home.dead.add(dead);
        }
    }

    /// Counts a document that was written to the newest partition.
    fn count_document(&mut self, time: Time) {
        if let Some(home) = self.homes.back_mut() {
            home.count_document(time);
        }
    }

    /// Returns a partition with documents that left the window by the wall clock long before the rest of the
    /// partition does, because they arrived late. Returns `None` if the window does not follow the wall
    /// clock.
    pub(crate) fn with_late(&self, now: Time) -> Option<u64> {
        let follows = |window: &&Window| window.follows_wall_clock();
        let window = self.settings.window.as_ref().filter(follows)?;
        let clock = self.matcher.arrival(None, now).clock;
        let lasts = i64::try_from(window.width().as_micros() / 24).unwrap_or(i64::MAX);
        let has_late = |home: &&Home| {
            home.times.is_some_and(|(oldest, newest)| {
                let overdue = Time(oldest.0.saturating_add(lasts / 2));
                newest.0.saturating_sub(oldest.0) > lasts && window.has_passed(overdue, clock)
            })
        };
        self.homes.iter().find(has_late).map(|home| home.number)
    }

    /// Forgets the times of a partition's documents, so that they can be collected again, and returns them.
    pub(crate) fn take_times(&mut self, number: u64) -> Option<(Time, Time)> {
        self.home_mut(number).and_then(|home| home.times.take())
    }

    pub(crate) fn put_times(&mut self, number: u64, (oldest, newest): (Time, Time)) {
        if let Some(home) = self.home_mut(number) {
            home.note_times(oldest, newest);
        }
    }

    /// Returns the time at which the window of a document starts.
    pub(crate) fn time_of(&self, known: &Known) -> Time {
        let kept = self.slot_of(known).and_then(|slot| self.matcher.kept(slot));
        kept.map_or(known.document.time, |(_, time)| time)
    }

    /// Removes a document that has left the window before its partition expires. Nothing is written, because
    /// the clock leads to the same result whenever the collection is opened.
    pub(crate) fn let_go(&mut self, known: &Known) {
        if self.is_gone(known.number) {
            return;
        }
        if let Some(slot) = self.slot_of(known) {
            self.matcher.remove(slot);
        }
        self.moved.remove(&known.seq);
        let dead = Dead {
            bytes: known.document.bytes_on_disk(),
            since: Some(Time::BEGINNING),
        };
        self.note_gone(known.number, dead);
    }

    /// Begins a new partition if it is due, and expires partitions past the window, by the wall clock alone.
    /// Returns the number of expired partitions.
    pub(crate) fn expire(&mut self, now: Time) -> Result<usize> {
        let arrival = self.matcher.arrival(None, now);
        if let Some(number) = self.next_section(&arrival) {
            self.begin(number, arrival.clock)?;
        }
        let before = self.homes.len();
        while let Some(number) = self.matcher.expired_section(&arrival) {
            self.forget(number);
        }
        Ok(before - self.homes.len())
    }

    /// Returns `true` if [`expire`](Self::expire) has something to do.
    pub(crate) fn can_expire(&self, now: Time) -> bool {
        let follows = |window: &Window| window.follows_wall_clock();
        let arrival = self.matcher.arrival(None, now);
        self.settings.window.as_ref().is_some_and(follows)
            && (self.next_section(&arrival).is_some()
                || self.matcher.expired_section(&arrival).is_some())
    }

    /// Returns the number of the next partition, if it is due and the newest one has rows.
    fn next_section(&self, arrival: &Arrival) -> Option<u64> {
        let newest = self.homes.back().filter(|home| home.first < self.next)?;
        let is_due = self.matcher.is_section_due(arrival);
        is_due.then_some(newest.number + 1)
    }

    /// Returns the oldest partition, from number `from` on, that is due for compaction.
    pub(crate) fn to_compact(
        &self,
        from: u64,
        trigger: &CompactionTrigger,
        now: Time,
    ) -> Result<Option<u64>> {
        let longest = trigger.longest_wait.as_micros();
        for home in self.homes.iter().filter(|home| home.number >= from) {
            let dead = home.dead;
            let waits = |since: Time| u128::from(since.0.abs_diff(now.0)) >= longest;
            if dead.since.is_some_and(waits) {
                return Ok(Some(home.number));
            }
            if dead.bytes == 0 || dead.bytes < trigger.least_dead_bytes {
                continue;
            }
            let Ok(partition) = self.partition(home.number) else {
                continue;
            };
            let bytes = partition.bytes()?;
            if dead.bytes as f64 >= trigger.dead_share * bytes as f64 {
                return Ok(Some(home.number));
            }
        }
        Ok(None)
    }

    /// Returns the numbers of the partitions with dead rows on disk.
    pub(crate) fn with_dead(&self) -> Vec<u64> {
        let with_dead = self
            .homes
            .iter()
            .filter(|home| home.dead.bytes > 0 || home.dead.since.is_some());
        with_dead.map(|home| home.number).collect()
    }

    /// Begins the compaction of a partition and returns its state, or `None` if there is no such partition.
    /// The compaction [ends](Self::put_compacted) or is [given up](Self::give_up_compaction).
    pub(crate) fn begin_compaction(&mut self, number: u64) -> Option<ToCompact> {
        let homes = self.homes.iter().map(|home| (home.first, home.applied));
        let homes = homes.collect();
        let applied = self.next;
        let home = self.home_mut(number)?;
        Some(ToCompact {
            number,
            first: home.first,
            applied,
            end: home.end,
            gone: home.gone.clone(),
            homes,
            dead: std::mem::take(&mut home.dead),
        })
    }

    pub(crate) fn give_up_compaction(&mut self, begun: &ToCompact) {
        if let Some(home) = self.home_mut(begun.number) {
            home.dead.add(begun.dead);
        }
    }

    /// Replaces a partition by its compacted version; returns the old one and its list of places. `places`
    /// are those of the kept documents on disk, and `erased` is the number of erased rows.
    pub(crate) fn put_compacted(
        &mut self,
        partition: Arc<Partition>,
        mut places: Leaves<u32>,
        erased: u64,
    ) -> Option<(Arc<Partition>, Leaves<u32>)> {
        let about = partition.about;
        let of = |it: &Arc<Partition>| it.about.number;
        let at = self
            .partitions
            .binary_search_by_key(&about.number, of)
            .ok()?;
        let home = self.home_mut(about.number)?;
        // Kept documents that are not on disk yet keep their places.
        for index in places.len()..home.places.len() {
            places.push(home.places.get(index).copied().unwrap_or(NOWHERE));
        }
        std::mem::swap(&mut home.places, &mut places);
        home.erased = erased;
        home.applied = about.compacted.map_or(0, |it| it.applied);
        let before = std::mem::replace(&mut self.partitions[at], partition);
        Some((before, places))
    }

    /// Returns a partition, if it is on disk.
    pub(crate) fn partition_on_disk(&self, number: u64) -> Option<Arc<Partition>> {
        let of = |it: &Arc<Partition>| it.about.number;
        let at = self.partitions.binary_search_by_key(&number, of).ok()?;
        self.partitions.get(at).cloned()
    }

    /// Returns the number of live documents, and the number of dead rows on disk: those of deleted or moved
    /// documents, and the rows of their deletions.
    pub(crate) fn count_rows(&self) -> (u64, u64) {
        let all = self.next - self.low();
        let live: u64 = self.homes.iter().map(|home| home.live).sum();
        let erased: u64 = self.homes.iter().map(|home| home.erased).sum();
        (live, all.saturating_sub(live + erased))
    }

    pub(crate) fn slot_of(&self, known: &Known) -> Option<Slot> {
        let RowVerdict::Kept { index } = known.document.verdict else {
            return None;
        };
        let home = self.home_of_row(known.number)?;
        Some(Slot {
            section: home.number,
            index,
        })
    }

    /// Begins a new partition if it is due, and expires partitions past the window.
    fn make_room(&mut self, document: &Prepared, arrival: &Arrival) -> Result<()> {
        let is_full = self.next - self.low() >= self.most_rows;
        if is_full && !self.matcher.has_expired(arrival) {
            let what = format!("the window has {} rows, the limit", self.most_rows);
            return Err(Error::new(ErrorKind::Full, what));
        }
        // Twice the size, because a document may be moved as well as stored.
        let units = 2 * (document.record.len() as u64 / UNIT) + (1 << 24);
        let full = |home: &Home| home.end + units > u64::from(u32::MAX);
        if self.matcher.is_section_due(arrival) || self.homes.back().is_some_and(full) {
            let number = self.homes.back().map_or(1, |home| home.number + 1);
            self.begin(number, arrival.clock)?;
        }
        while let Some(number) = self.matcher.expired_section(arrival) {
            self.forget(number);
        }
        Ok(())
    }

    fn begin(&mut self, number: u64, began: Time) -> Result<()> {
        self.matcher.begin_section(number, began)?;
        let about = About {
            seal: self.seal,
            number,
            first: self.next,
            began,
            compacted: None,
        };
        self.push_home(number, self.next);
        self.seal_batch();
        self.open = Some(Batch {
            begins: Some(about),
            ..Batch::new(number, self.next, 0, self.with_sketches)
        });
        Ok(())
    }

    fn push_home(&mut self, number: u64, first: u64) {
        self.homes.push_back(Home::new(number, first));
    }

    fn forget(&mut self, number: u64) {
        self.matcher.drop_section();
        self.homes.pop_front();
        let oldest = self.partitions.front();
        if oldest.is_some_and(|oldest| oldest.about.number == number) {
            self.partitions.pop_front();
        }
        self.expired.push(number);
        let low = self.low();
        self.moved.retain(|_, number| *number >= low);
    }

    fn seal_batch(&mut self) {
        let batch = self.open.take().filter(|batch| !batch.is_empty());
        self.sealed.extend(batch.map(Arc::new));
    }

    fn push_row(&mut self, row: &Row) {
        if let Some(open) = &mut self.open {
            open.rows.push(row);
            self.next += 1;
        }
    }

    fn push_sketches(&mut self, content: u64, document: &online::Prepared) {
        if let Some(open) = self.open.as_mut().filter(|open| open.with_sketches) {
            let preparer = self.matcher.preparer();
            open.sketches
                .push(content, |into| preparer.write(document, into));
        }
    }

    fn push_record(&mut self, record: &[u8]) -> Place {
        let units = record.len() as u64 / UNIT;
        let at = self.homes.back_mut().map_or(0, |home| {
            home.end += units;
            home.end - units
        });
        if let Some(open) = &mut self.open {
            open.texts.extend_from_slice(record);
        }
        Place {
            at: at as u32,
            units: units as u32,
        }
    }

    fn push_entry(&mut self, place: Place, seq: u64, last: u64) {
        let last = if last == 0 { seq } else { last };
        if let Some(home) = self.homes.back_mut() {
            home.places.push(place.at);
            home.last.push(last as u32);
        }
    }

    fn name(&mut self, id_hash: u64, number: u64) {
        let low = self.low();
        let homes = &self.homes;
        self.ids
            .insert(id_hash, number, low, |number| is_gone(homes, number));
    }

    /// Returns everything that waits to be written.
    pub(crate) fn take_work(&mut self) -> Work {
        let next = self
            .open
            .as_ref()
            .map(|open| (open.partition, open.texts_end()));
        self.seal_batch();
        self.open = next.map(|(partition, texts_at)| {
            Batch::new(partition, self.next, texts_at, self.with_sketches)
        });
        Work {
            batches: self.sealed.iter().cloned().collect(),
            expired: std::mem::take(&mut self.expired),
            last: self.last(),
        }
    }

    /// Records that the work was written.
    pub(crate) fn written(&mut self, work: &Work, begun: Vec<Arc<Partition>>) {
        self.sealed.drain(..work.batches.len());
        let oldest = self.homes.front().map_or(u64::MAX, |home| home.number);
        let live = begun
            .into_iter()
            .filter(|partition| partition.about.number >= oldest);
        self.partitions.extend(live);
    }

    fn home(&self, number: u64) -> Option<&Home> {
        let at = self
            .homes
            .binary_search_by_key(&number, |home| home.number)
            .ok()?;
        self.homes.get(at)
    }

    fn home_mut(&mut self, number: u64) -> Option<&mut Home> {
        let at = self
            .homes
            .binary_search_by_key(&number, |home| home.number)
            .ok()?;
        self.homes.get_mut(at)
    }

    fn home_of_row(&self, number: u64) -> Option<&Home> {
        home_of_row(&self.homes, number)
    }

    fn home_of_row_mut(&mut self, number: u64) -> Option<&mut Home> {
        let behind = self.homes.partition_point(|home| home.first <= number);
        self.homes.get_mut(behind.checked_sub(1)?)
    }

    /// Returns the slots of kept documents after `after`, in order.
    pub(crate) fn slots_after(&self, after: Option<Slot>) -> impl Iterator<Item = Slot> {
        let section = after.map_or(0, |slot| slot.section);
        let begin = self.homes.partition_point(|home| home.number < section);
        self.homes.range(begin..).flat_map(move |home| {
            let passed = after.filter(|slot| slot.section == home.number);
            let first = passed.map_or(0, |slot| slot.index.saturating_add(1));
            (first..home.places.len() as u32).map(|index| Slot {
                section: home.number,
                index,
            })
        })
    }

    /// Returns the sequence number of a kept document that has duplicates.
    pub(crate) fn repeated(&self, slot: Slot) -> Option<u64> {
        let (seq, _) = self.matcher.kept(slot)?;
        (self.last_of(slot) > 0).then_some(seq)
    }

    /// Returns the number of the last duplicate of a kept document, or 0 if none is left.
    pub(crate) fn last_of(&self, slot: Slot) -> u64 {
        let last = self
            .home(slot.section)
            .and_then(|home| home.last.get(slot.index as usize));
        match (last, self.matcher.kept(slot)) {
            (Some(&last), Some((seq, _))) if last != seq as u32 => self.whole(last),
            _ => 0,
        }
    }

    /// Restores a row number from its lower half; returns 0 if it is before all rows.
    fn whole(&self, number: u32) -> u64 {
        let low = self.low();
        let ahead = number.wrapping_sub(low as u32);
        if u64::from(ahead) < MOST_ROWS {
            low + u64::from(ahead)
        } else {
            0
        }
    }

    /// Sets the last duplicate of a kept document; returns the previous one.
    fn set_last(&mut self, slot: Slot, number: u64) -> u64 {
        let before = self.last_of(slot);
        self.put_last(slot, number);
        before
    }

    fn put_last(&mut self, slot: Slot, number: u64) {
        if let Some(home) = self.home_mut(slot.section)
            && let Some(last) = home.last.get_mut(slot.index as usize)
        {
            *last = number as u32;
        }
    }

    /// Returns the document with an id, if there is one.
    pub(crate) fn find(&self, id: &str, id_hash: u64) -> Result<Option<Known>> {
        let mut numbers = Vec::new();
        self.ids.visit(id_hash, self.low(), |number| {
            if !is_gone(&self.homes, number) {
                numbers.push(number);
            }
        });
        for number in numbers {
            if let Some(known) = self.known(number)?.filter(|known| known.document.id == id) {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    /// Returns the document whose row has this number.
    pub(crate) fn known(&self, number: u64) -> Result<Option<Known>> {
        let document = self.row(number)?.document(number);
        Ok(document.map(|(document, seq)| Known {
            number,
            seq,
            document,
        }))
    }

    /// Returns `true` if a kept document still exists.
    pub(crate) fn is_there(&self, seq: u64, slot: Slot) -> bool {
        self.moved.contains_key(&seq)
            || self
                .matcher
                .kept(slot)
                .is_some_and(|(order, _)| order == seq)
    }

    /// Returns `true` if the row of a document is dead.
    pub(crate) fn is_gone(&self, number: u64) -> bool {
        is_gone(&self.homes, number)
    }

    /// Returns the number of the row of a kept document.
    pub(crate) fn number_of(&self, seq: u64) -> u64 {
        self.moved.get(&seq).copied().unwrap_or(seq)
    }

    /// Returns the sequence numbers of documents whose original partitions have expired, ascending.
    pub(crate) fn moved_from_before(&self) -> Vec<u64> {
        let low = self.low();
        let before = self.moved.keys().copied().filter(|&seq| seq < low);
        let mut before: Vec<u64> = before.collect();
        before.sort_unstable();
        before
    }

    fn batches(&self) -> impl DoubleEndedIterator<Item = &Batch> {
        self.sealed.iter().map(|batch| &**batch).chain(&self.open)
    }

    pub(crate) fn row(&self, number: u64) -> Result<Row> {
        let waiting = self
            .batches()
            .find(|batch| (batch.first..batch.next()).contains(&number));
        let row = waiting.and_then(|batch| batch.rows.row((number - batch.first) as usize));
        if let Some(row) = row {
            return Ok(row);
        }
        let behind = self
            .partitions
            .partition_point(|partition| partition.about.first <= number);
        let partition = behind.checked_sub(1).and_then(|at| self.partitions.get(at));
        let partition =
            partition.ok_or_else(|| Error::damaged("rows", format!("no row {number}")))?;
        partition.row(number)
    }

    fn partition(&self, number: u64) -> Result<&Partition> {
        let at = self
            .partitions
            .binary_search_by_key(&number, |partition| partition.about.number);
        let partition = at.ok().and_then(|at| self.partitions.get(at));
        let partition = partition.map(|partition| &**partition);
        partition.ok_or_else(|| Error::damaged("rows", format!("no partition {number:x}")))
    }

    /// Calls `visit` with the record at a place in a partition.
    pub(crate) fn with_record_at<T>(
        &self,
        partition: u64,
        at: u32,
        visit: impl FnOnce(&Record<'_>) -> T,
    ) -> Result<T> {
        let place = u64::from(at);
        let waiting = self
            .batches()
            .rev()
            .find(|batch| batch.has_record(partition, place));
        let Some(batch) = waiting else {
            return self.partition(partition)?.record(at, visit);
        };
        let record = batch
            .texts
            .get(((place - batch.texts_at) * UNIT) as usize..);
        let record = record.and_then(Record::read);
        let record = record.ok_or_else(|| Error::damaged("memory", format!("record {place}")))?;
        Ok(visit(&record))
    }

    fn with_record<T>(&self, slot: Slot, visit: impl FnOnce(&Record<'_>) -> T) -> Result<T> {
        let home = self.home(slot.section);
        let place = home.and_then(|home| home.places.get(slot.index as usize));
        let place = place.ok_or_else(|| {
            let what = format!(
                "no kept document {} in partition {:x}",
                slot.index, slot.section
            );
            Error::damaged("rows", what)
        })?;
        self.with_record_at(slot.section, *place, visit)
    }

    fn with_text<T>(&self, slot: Slot, visit: impl FnOnce(&str) -> T) -> Result<T> {
        let text = self.with_record(slot, |record| record.text(visit))?;
        text.ok_or_else(|| {
            let what = format!("the text of kept document {}", slot.index);
            Error::damaged(&self.names(slot.section).texts(), what)
        })
    }

    /// Returns the text of a document.
    pub(crate) fn text_of(&self, known: &Known) -> Result<String> {
        let partition = self.home_of_row(known.number).map_or(0, |home| home.number);
        let at = known.document.place.at;
        let text = self.with_record_at(partition, at, |record| record.text(str::to_owned))?;
        text.ok_or_else(|| {
            Error::damaged(
                &self.names(partition).texts(),
                format!("the text at place {at}"),
            )
        })
    }

    /// Returns the names of the files of a partition.
    fn names(&self, number: u64) -> FileNames {
        let partition = self.partition(number).ok();
        partition.map_or(
            FileNames {
                number,
                generation: 0,
            },
            |partition| partition.about.names(),
        )
    }

    /// Returns bytes of memory by component.
    pub(crate) fn memory(&self) -> Vec<(&'static str, u64)> {
        let mut parts = self.matcher.memory().to_vec();
        let of_home = |home: &Home| home.places.bytes() + home.last.bytes() + home.gone.bytes();
        let kept: usize = self.homes.iter().map(of_home).sum();
        let waiting: usize = self
            .batches()
            .map(|batch| batch.rows.bytes() + batch.texts.len() + batch.sketches.bytes())
            .sum();
        let moved = 16 * self.moved.capacity();
        parts.push(("ids", self.ids.bytes()));
        parts.push(("places", (kept + moved) as u64));
        parts.push(("waiting", waiting as u64));
        // Upper bound of the page caches.
        parts.push(("pages", (self.partitions.len() * CACHE) as u64));
        parts
    }
}

fn home_of_row(homes: &VecDeque<Home>, number: u64) -> Option<&Home> {
    let behind = homes.partition_point(|home| home.first <= number);
    homes.get(behind.checked_sub(1)?)
}

/// Returns `true` if the row of a document is dead, or is before the first partition.
fn is_gone(homes: &VecDeque<Home>, number: u64) -> bool {
    home_of_row(homes, number).is_none_or(|home| home.gone.contains(number - home.first))
}

impl Texts for State {
    fn text(&self, slot: Slot, visit: &mut dyn FnMut(&str)) -> lookalike::Result<()> {
        self.with_text(slot, |text| visit(text))
            .map_err(lookalike::Error::text)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lookalike::online::Window;

    use super::*;

    /// A full window accepts documents again once its oldest partition has expired.
    #[test]
    fn a_full_window_empties() {
        let seconds = Duration::from_secs;
        let settings = Arc::new(Settings {
            window: Some(Window::new(seconds(24), seconds(5), false).unwrap()),
            ..Settings::default()
        });
        let mut state = State::new(settings.clone(), 0).unwrap();
        state.most_rows = 3;
        let mut admit = |id: &str, seconds: i64| {
            let text = format!("{id} is all that this says");
            let document = orders::prepare(state.matcher.preparer(), &settings, id, text);
            let now = Time(seconds * 1_000_000);
            let looked = orders::check(&state, std::slice::from_ref(&document), now);
            state.admit(&document, looked.into_iter().next().unwrap(), now)
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
        let partitions = state.homes.iter().map(|home| (home.number, home.first));
        assert!(partitions.eq([(2, 2), (3, 3), (4, 4)]));
    }
}
