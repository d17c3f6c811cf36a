//! Checks and answers of documents. Nothing here changes the state, so all of it runs under the shared lock,
//! at the same time as readers.
//!
//! A document is kept if and only if no kept document before it matches it. A [check](DocumentCheck)
//! finds the match in advance; [`insertion`](super::insertion) brings it up to date at the document's turn.
//!
//! ```text
//! check_ahead, update_check   several documents on all cores, or a single one
//!  └─ check_or_refuse         begins a check if there is none; an error becomes the refusal of the document
//!      └─ check_content_first   the stored document with the same id: if the content is the same, nothing is searched
//!          └─ update_verdict      the verdict by the best match, and the move of a kept document   (also insertion)
//!              └─ continue_search   the search for matches                                        (also queries)
//! ```
//!
//! Cost under one lock: the steps of a [turn](begin_turn), those of a unit, which is a quarter of it, and what a
//! unit counts only afterwards: the analysis of up to two texts of a byte for every four of its steps. Whatever needs
//! a longer text, or more steps, is done [without the lock](super::unlocked_work).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lookalike::stream::{
    ArrivalTime, DocumentSlot, KeptMatch, PrecheckResult, SearchTurn, StreamWindow, Timestamp,
};

use super::CollectionState;
use super::check_memory::{CheckBytes, CheckMemory};
use super::unlocked_work::{
    ContentComparison, MovingDocument, RecordTask, RecordWork, UnlockedWork,
};
use crate::document::{
    BYTES_OF_STEP, DuplicateEvidence, InsertAnswer, KnownDocument, PendingInsert, StoredVerdict,
    shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel_map;
use crate::settings::OnConflict;

/// The check of a document: begun, suspended or complete.
#[derive(Clone, Debug)]
pub(crate) struct DocumentCheck {
    /// Search for the match, as far as it got.
    pub(crate) search: PrecheckResult,
    /// Verdict by the match in `verdict_of`.
    pub(super) verdict: StoredVerdict,
    verdict_of: Option<KeptMatch>,
    /// Why the document is refused, unless a stored document with its id has the same content.
    pub(super) refusal: Option<Error>,
    /// Comparison of its content with that of a stored document with its id.
    pub(super) content: Option<ContentComparison>,
    /// The kept document that it moves to the newest partition.
    pub(super) moving: Option<Box<MovingDocument>>,
    /// Work without the lock that ended the last turn.
    pub(super) unlocked_work: Option<Box<UnlockedWork>>,
    /// `true` if the check goes on only once its document is the first of its chunk, because it needs work without
    /// the lock.
    waits_until_first: bool,
    /// Number of times that the check was not up to date when the document could have been admitted, because
    /// others had inserted too much meanwhile.
    pub(crate) overtaken: u32,
    /// `true` if the insertion takes more than a turn, so that it is done in several while others wait.
    pub(crate) inserts_in_turns: bool,
    /// Ids of matches that were read for a list, by sequence number. They never change.
    listed_ids: HashMap<u64, String>,
    /// Memory that it keeps.
    bytes: CheckBytes,
}

impl DocumentCheck {
    pub(super) fn new(search: PrecheckResult, memory: &CheckMemory) -> Self {
        Self {
            search,
            verdict: StoredVerdict::Kept,
            verdict_of: None,
            refusal: None,
            content: None,
            moving: None,
            unlocked_work: None,
            waits_until_first: false,
            overtaken: 0,
            inserts_in_turns: false,
            listed_ids: HashMap::new(),
            bytes: memory.count_check(),
        }
    }

    /// Returns `true` if the search has found one of these kept documents, which are named by their sequence numbers, as a
    /// match.
    pub(crate) fn matches_any(&self, seqs: &HashSet<u64>) -> bool {
        let matches = self.search.list_matches(usize::MAX);
        matches.iter().any(|found| seqs.contains(&found.order))
    }

    /// Returns the sequence numbers of the kept documents that the search has found as matches.
    pub(crate) fn matched_seqs(&self) -> Vec<u64> {
        let matches = self.search.list_matches(usize::MAX);
        matches.iter().map(|found| found.order).collect()
    }

    /// Frees what only a search that goes on needs.
    pub(crate) fn keep_for_later(&mut self) {
        self.search.forget_lists();
        self.count_bytes();
    }

    /// Counts the memory that the check keeps until its document is admitted.
    fn count_bytes(&mut self) {
        let moving = self
            .moving
            .as_ref()
            .map_or(0, |moving| moving.memory_bytes());
        self.bytes.set(self.search.memory_bytes() + moving);
    }

    /// Leaves work without the lock until the document is the first of its chunk, and frees what only a check that
    /// goes on needs. So whatever is sent together, the texts of one stored document at a time are in memory.
    fn suspend(&mut self) {
        self.waits_until_first = self.unlocked_work.take().is_some();
        self.search.forget_lists();
    }

    /// Returns the steps that the insertion of the document takes about.
    pub(crate) fn insertion_steps(&self) -> u64 {
        let moving = self.moving.as_ref();
        self.search.insertion_steps() + moving.map_or(0, |moving| moving.insertion_steps())
    }

    /// Does work on the text of a stored document, at once if the text is short. Returns `false` if the work waits
    /// until the lock is released.
    fn do_or_defer(
        &mut self,
        work: RecordWork,
        document: &PendingInsert,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        turn.add_steps(work.record.copied_bytes() as u64 / BYTES_OF_STEP);
        let text_bytes = work.record.text_bytes();
        if text_bytes > turn.most_text_bytes() {
            self.unlocked_work = Some(Box::new(UnlockedWork::ReadRecord(work)));
            return Ok(false);
        }
        turn.add_text_bytes(text_bytes);
        self.do_record_work(work, document)?;
        Ok(true)
    }
}

/// A check that has begun, if it has.
pub(crate) type PendingCheck = Option<DocumentCheck>;

/// Number of units in a turn: a turn ends at most one unit beyond its steps.
const UNITS_OF_TURN: u64 = 4;

fn evidence_by(found: &KeptMatch, of: String) -> DuplicateEvidence {
    DuplicateEvidence {
        of,
        seq: found.order,
        similarity: found.similarity.get(),
        route: found.route,
    }
}

/// Returns a turn of which `left_steps` are left and that has units of a quarter of `turn_steps`.
pub(crate) fn begin_turn(turn_steps: u64, left_steps: u64) -> SearchTurn {
    SearchTurn::new(left_steps).with_unit_steps(turn_steps / UNITS_OF_TURN)
}

/// Steps of reading a row, some 15 µs: its block is read and verified.
const STEPS_OF_ROW: u64 = 1 << 12;

/// Reads of the row of a stored document that has the same id: when it is checked, and when it is admitted.
const READS_OF_SAME_ID: u64 = 2;

/// Steps of preparing, storing and answering a document that matches nothing and has no keys, some 2 µs.
const STEPS_OF_CHECK: u64 = 600;

impl CollectionState {
    /// Checks documents that are about to be admitted together, on all cores and in their order, and brings
    /// those up to date that were checked before. It ends once the work exceeds `turn_steps`; what was done is
    /// kept in `checks`. Returns how many of the first ones are up to date: none if the first one takes more
    /// than a turn, or if it has [work without the lock](DocumentCheck::has_unlocked_work).
    pub(crate) fn check_ahead(
        &self,
        documents: &[PendingInsert],
        checks: &mut [PendingCheck],
        now: Timestamp,
        turn_steps: u64,
    ) -> usize {
        let stated = documents.iter().map(|document| document.time);
        let arrivals = self.matcher.resolve_arrivals(stated, now);
        let spent = AtomicU64::new(0);
        let taken = checks.iter_mut().map(|check| Mutex::new(check.take()));
        let taken: Vec<Mutex<PendingCheck>> = taken.collect();
        let is_complete = parallel_map::parallel_map(documents.len(), |at| {
            let left = match at {
                0 => Some(turn_steps),
                _ => turn_steps.checked_sub(spent.load(Ordering::Relaxed)),
            };
            let Some(left) = left else {
                return false;
            };
            let mut turn = begin_turn(turn_steps, left);
            let mut check = taken[at].lock().unwrap_or_else(PoisonError::into_inner);
            let may_begin = check.is_some() || self.check_memory.has_room();
            let waits = check.as_ref().is_some_and(|check| check.waits_until_first);
            if at > 0 && (waits || !may_begin) {
                return false;
            }
            let is_complete =
                self.check_or_refuse(&mut check, &documents[at], &arrivals[at], &mut turn);
            spent.fetch_add(turn.steps(), Ordering::Relaxed);
            let Some(check) = &mut *check else {
                return false;
            };
            if at > 0 || is_complete {
                check.suspend();
            }
            check.count_bytes();
            is_complete
        });
        for (check, taken) in checks.iter_mut().zip(taken) {
            *check = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
        let complete = is_complete.iter().take_while(|&&is_complete| is_complete);
        complete.count()
    }

    /// Brings the check of a document up to date as far as the turn allows. Returns `true` if it is.
    pub(crate) fn update_check(
        &self,
        check: &mut PendingCheck,
        document: &PendingInsert,
        now: Timestamp,
        turn: &mut SearchTurn,
    ) -> bool {
        let arrival = self.matcher.resolve_arrival(document.time, now);
        self.check_or_refuse(check, document, &arrival, turn)
    }

    /// Begins or continues the check of a document. An error becomes its refusal. Returns `true` if the check is
    /// complete, or the document refused.
    fn check_or_refuse(
        &self,
        check: &mut PendingCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        turn: &mut SearchTurn,
    ) -> bool {
        let begin = || {
            let search = self.matcher.begin_precheck(arrival);
            DocumentCheck::new(search, &self.check_memory)
        };
        let check = check.get_or_insert_with(begin);
        turn.add_steps(STEPS_OF_CHECK);
        match self.check_content_first(check, document, arrival, turn) {
            Ok(is_complete) => is_complete,
            Err(error) => {
                check.refusal = Some(error);
                true
            }
        }
    }

    /// Continues a check: compares the document with the stored one that has its id, and finds the verdict unless their
    /// contents are the same. Returns `true` if the check is complete.
    fn check_content_first(
        &self,
        check: &mut DocumentCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let known = self.find_by_id(&document.id, document.id_hash)?;
        if known.is_some() {
            turn.add_steps(READS_OF_SAME_ID * STEPS_OF_ROW);
        }
        if !self.compare_content(known.as_ref(), check, document, arrival, turn)? {
            return Ok(false);
        }
        if let (Some(known), Some(content)) = (&known, &check.content)
            && content.row == known.number
            && matches!(content.is_same, Ok(true))
            && !self.has_passed(known, arrival)
        {
            // It gets its earlier answer, whatever matches it.
            return Ok(true);
        }
        let replaced = known
            .filter(|_| self.settings.on_conflict == OnConflict::Replace)
            .and_then(|known| self.document_slot(&known));
        self.update_verdict(check, document, arrival, replaced, turn)
    }

    /// Continues the search for matches. Once it is complete, makes the verdict, and prepares the move of the kept document
    /// if there is one. Returns `true` if nothing is left to do. `replaced` is not found as a match.
    pub(super) fn update_verdict(
        &self,
        check: &mut DocumentCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        replaced: Option<DocumentSlot>,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        if !self.continue_search(check, document, arrival, replaced, turn)? {
            return Ok(false);
        }
        let found = check.search.found_match();
        if found != check.verdict_of {
            check.verdict = self.make_verdict(found)?;
            check.verdict_of = found;
        }
        self.prepare_move(check, document, arrival, turn)
    }

    /// Continues the search for matches. Returns `true` if it is complete.
    pub(super) fn continue_search(
        &self,
        check: &mut DocumentCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        if let Some(refusal) = &check.refusal {
            return Err(refusal.clone());
        }
        let is_complete = self.matcher.continue_precheck(
            &mut check.search,
            &document.sketched,
            arrival,
            without,
            &self.rows,
            turn,
        )?;
        if let Some(slot) = check.search.deferred_slot() {
            let record = self.rows.open_kept_record(slot)?;
            turn.add_steps(record.copied_bytes() as u64 / BYTES_OF_STEP);
            let verifier = self.matcher.candidate_verifier().clone();
            let task = RecordTask::CompareCandidate(verifier);
            let work = UnlockedWork::ReadRecord(RecordWork { record, task });
            check.unlocked_work = Some(Box::new(work));
        }
        if check.search.awaits_keys() {
            let work = UnlockedWork::MakeKeys(self.matcher.key_extractor());
            check.unlocked_work = Some(Box::new(work));
        }
        Ok(is_complete)
    }

    /// Prepares the kept document that a duplicate moves, unless that is done. Returns `false` if the preparation
    /// waits until the lock is released.
    fn prepare_move(
        &self,
        check: &mut DocumentCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let found = check.search.found_match();
        let found = found.filter(|found| self.must_move(found, document, arrival));
        let slot = found.map(|found| found.slot);
        // Keys of an earlier order of features would be made again under the exclusive lock.
        let moving = check.moving.as_ref();
        let prepared = moving.filter(|moving| self.matcher.are_keys_current(&moving.keys));
        if slot == prepared.map(|moving| moving.slot) {
            return Ok(true);
        }
        check.moving = None;
        let Some(found) = found else {
            return Ok(true);
        };
        let Some(preparation) = self.begin_move(&found)? else {
            return Ok(true);
        };
        let work = RecordWork {
            record: self.rows.open_kept_record(found.slot)?,
            task: RecordTask::PrepareMove(Box::new(preparation)),
        };
        check.do_or_defer(work, document, turn)
    }

    /// Prefetches the memory that a document will need when it is inserted.
    pub(crate) fn prefetch_document(&self, document: &PendingInsert, check: &DocumentCheck) {
        self.index.prefetch_id(document.id_hash);
        self.matcher
            .prefetch_checked(&document.sketched, &check.search);
    }

    /// Makes the match of a document its verdict.
    pub(super) fn make_verdict(&self, found: Option<KeptMatch>) -> Result<StoredVerdict> {
        match found {
            None => Ok(StoredVerdict::Kept),
            Some(found) => self.make_evidence(&found).map(StoredVerdict::Duplicate),
        }
    }

    fn make_evidence(&self, found: &KeptMatch) -> Result<DuplicateEvidence> {
        Ok(evidence_by(found, self.kept_id(found)?))
    }

    fn kept_id(&self, found: &KeptMatch) -> Result<String> {
        self.rows
            .kept_id(found.slot, self.row_of_document(found.order))
    }

    /// Begins a query for the verdict of a document, or for its matches.
    pub(crate) fn begin_query(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        lists_all: bool,
    ) -> DocumentCheck {
        let arrival = self.matcher.resolve_arrival(document.time, now);
        let search = if lists_all {
            self.matcher.begin_listing(&arrival)
        } else {
            self.matcher.begin_precheck(&arrival)
        };
        DocumentCheck::new(search, &self.check_memory)
    }

    /// Answers a document as if it were inserted now. Returns `None` if the search takes further turns.
    pub(crate) fn answer_query(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        check: &mut DocumentCheck,
        turn: &mut SearchTurn,
    ) -> Result<Option<InsertAnswer>> {
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let arrival = self.matcher.resolve_arrival(document.time, now);
        if !self.compare_content(known.as_ref(), check, document, &arrival, turn)? {
            return Ok(None);
        }
        if let Some(earlier) = self.earlier_answer(document, known.as_ref(), &arrival, check)? {
            return Ok(Some(earlier));
        }
        let own = known.as_ref().and_then(|known| self.document_slot(known));
        if !self.continue_search(check, document, &arrival, own, turn)? {
            return Ok(None);
        }
        self.answer_with(check.search.found_match(), document, &arrival)
            .map(Some)
    }

    /// Answers a document as if it were inserted now, with the kept documents that match it. Returns `None` if
    /// the search takes further turns.
    pub(crate) fn answer_with_matches(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        limit: usize,
        check: &mut DocumentCheck,
        turn: &mut SearchTurn,
    ) -> Result<Option<(InsertAnswer, Vec<DuplicateEvidence>)>> {
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let own = known.as_ref().and_then(|known| self.document_slot(known));
        let arrival = self.matcher.resolve_arrival(document.time, now);
        if !self.compare_content(known.as_ref(), check, document, &arrival, turn)? {
            return Ok(None);
        }
        let earlier = self.earlier_answer(document, known.as_ref(), &arrival, check)?;
        if !self.continue_search(check, document, &arrival, own, turn)? {
            return Ok(None);
        }
        let answer = match earlier {
            Some(earlier) => earlier,
            None => self.answer_with(check.search.found_match(), document, &arrival)?,
        };
        let found = check.search.list_matches(limit);
        turn.add_steps(check.search.compared_count() as u64);
        for kept in &found {
            let Entry::Vacant(entry) = check.listed_ids.entry(kept.order) else {
                continue;
            };
            entry.insert(self.kept_id(kept)?);
            turn.add_steps(STEPS_OF_ROW);
            if turn.is_over() {
                return Ok(None);
            }
        }
        let ids = &check.listed_ids;
        let matches = found.iter().filter_map(|kept| {
            let of = ids.get(&kept.order)?;
            Some(evidence_by(kept, of.clone()))
        });
        Ok(Some((answer, matches.collect())))
    }

    /// Returns the earlier answer of a document that exists already, and the number of its row. If `check` has
    /// [work without the lock](DocumentCheck::has_unlocked_work) afterwards, nothing is known before it is done.
    pub(crate) fn query_earlier_answer(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        check: &mut DocumentCheck,
        turn: &mut SearchTurn,
    ) -> Result<Option<(InsertAnswer, u64)>> {
        let Some(known) = self.find_by_id(&document.id, document.id_hash)? else {
            return Ok(None);
        };
        let arrival = self.matcher.resolve_arrival(document.time, now);
        if !self.compare_content(Some(&known), check, document, &arrival, turn)? {
            return Ok(None);
        }
        let earlier = self.earlier_answer(document, Some(&known), &arrival, check)?;
        Ok(earlier.map(|answer| (answer, known.number)))
    }

    /// Returns the earlier answer of the document with this id, if `check` says that its content is the same. A
    /// document that is past the window at this arrival counts as absent, even if it is still on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if the content differs and documents are not replaced.
    pub(super) fn earlier_answer(
        &self,
        document: &PendingInsert,
        known: Option<&KnownDocument>,
        arrival: &ArrivalTime,
        check: &DocumentCheck,
    ) -> Result<Option<InsertAnswer>> {
        let Some(known) = known.filter(|known| !self.has_passed(known, arrival)) else {
            return Ok(None);
        };
        let content = check.content.as_ref();
        let content = content.filter(|content| content.row == known.number);
        if content.map_or(Ok(false), |content| content.is_same.clone())? {
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

    /// Compares the content of a document with that of the stored one with its id, unless that is done. Returns
    /// `false` if the comparison waits until the lock is released.
    ///
    /// Hashes can only prove a difference, because they can be made to collide. So texts are compared.
    pub(super) fn compare_content(
        &self,
        known: Option<&KnownDocument>,
        check: &mut DocumentCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let Some(known) = known.filter(|known| !self.has_passed(known, arrival)) else {
            return Ok(true);
        };
        let row = known.number;
        if check
            .content
            .as_ref()
            .is_some_and(|content| content.row == row)
        {
            return Ok(true);
        }
        let stored = &known.document;
        let may_be_same = (stored.content_hash, &stored.meta, stored.fingerprint)
            == (document.content_hash, &document.meta, document.fingerprint);
        if !may_be_same || stored.fingerprint.is_some() {
            let is_same = Ok(may_be_same);
            check.content = Some(ContentComparison { row, is_same });
            return Ok(true);
        }
        let work = RecordWork {
            record: self.rows.open_record(known)?,
            task: RecordTask::CompareContent { row },
        };
        check.do_or_defer(work, document, turn)
    }

    /// Returns the answer to a document that is not inserted, by its best match.
    pub(super) fn answer_with(
        &self,
        found: Option<KeptMatch>,
        document: &PendingInsert,
        arrival: &ArrivalTime,
    ) -> Result<InsertAnswer> {
        Ok(InsertAnswer {
            id: document.id.clone(),
            verdict: self.make_verdict(found)?,
            seq: None,
            time: arrival.time,
            again: false,
        })
    }

    /// Returns the window, if it follows the wall clock.
    pub(super) fn wall_clock_window(&self) -> Option<&StreamWindow> {
        let window = self.matcher.window();
        window.filter(|window| window.follows_wall_clock())
    }

    /// Returns `true` if the window follows the wall clock and the document is past it.
    pub(crate) fn is_past_window(&self, known: &KnownDocument, now: Timestamp) -> bool {
        self.wall_clock_window().is_some()
            && self.has_passed(known, &self.matcher.resolve_arrival(None, now))
    }

    /// Returns `true` if a document is past the window, whichever clock that follows.
    pub(crate) fn is_past_any_window(&self, known: &KnownDocument, now: Timestamp) -> bool {
        self.has_passed(known, &self.arrival_at_clock(now))
    }

    /// Returns `true` if a document is past the window at an arrival.
    fn has_passed(&self, known: &KnownDocument, arrival: &ArrivalTime) -> bool {
        let time = self.window_start(known);
        let window = self.matcher.window();
        window.is_some_and(|window| window.has_passed(time, arrival.clock))
    }

    /// Returns the time at which the window of a document starts.
    pub(crate) fn window_start(&self, known: &KnownDocument) -> Timestamp {
        let kept = self
            .document_slot(known)
            .and_then(|slot| self.matcher.kept_document(slot));
        kept.map_or(known.document.time, |(_, time)| time)
    }
}
