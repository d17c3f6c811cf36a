//! Checks and answers of documents. Nothing here changes the state, so all of it runs under the shared lock,
//! at the same time as readers.
//!
//! A document is kept if and only if no kept document before it matches it. A [precheck](PrecheckedDocument)
//! finds the match in advance; [`insertion`](super::insertion) brings it up to date at the document's turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lookalike::stream::{
    ArrivalTime, DocumentSlot, KeptMatch, PrecheckResult, SearchTurn, StreamWindow, Timestamp,
};

use super::CollectionState;
use crate::document::{
    DuplicateEvidence, InsertAnswer, KnownDocument, PendingInsert, StoredVerdict, shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel_map;
use crate::settings::OnConflict;

/// A document that was checked before its turn, and the verdict of that check.
#[derive(Clone, Debug)]
pub(crate) struct PrecheckedDocument {
    pub(super) precheck: PrecheckResult,
    /// Verdict by the match in `verdict_of`.
    pub(super) verdict: StoredVerdict,
    verdict_of: Option<KeptMatch>,
    /// Number of times that the check was not up to date when the document could have been admitted, because
    /// others had inserted too much meanwhile.
    pub(crate) overtaken: u32,
}

impl PrecheckedDocument {
    /// Returns the steps that the insertion of the document takes about, if it is kept.
    pub(crate) fn insertion_steps(&self) -> u64 {
        self.precheck.insertion_steps()
    }
}

/// A check that may not be complete yet, or why the document is refused.
pub(crate) type PendingCheck = Option<Result<PrecheckedDocument>>;

/// Steps of preparing, storing and answering a document that matches nothing and has no keys, some 2 µs.
const STEPS_OF_CHECK: u64 = 600;

impl CollectionState {
    /// Checks documents that are about to be admitted together, on all cores and in their order, and brings
    /// those up to date that were checked before. It ends once the work exceeds `turn_steps`; what was done is
    /// kept in `checks`. Returns how many of the first ones are up to date: none if the first one takes more
    /// than a turn.
    pub(crate) fn precheck(
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
            let mut turn = SearchTurn::new(left);
            let mut check = taken[at].lock().unwrap_or_else(PoisonError::into_inner);
            let is_complete =
                self.continue_check(&mut check, &documents[at], &arrivals[at], &mut turn);
            spent.fetch_add(turn.steps(), Ordering::Relaxed);
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
        self.continue_check(check, document, &arrival, turn)
    }

    /// Begins or continues the check of a document. Returns `true` if it is complete, or the document refused.
    fn continue_check(
        &self,
        check: &mut PendingCheck,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        turn: &mut SearchTurn,
    ) -> bool {
        let checked = check.take().unwrap_or_else(|| {
            Ok(PrecheckedDocument {
                precheck: self.matcher.begin_precheck(arrival),
                verdict: StoredVerdict::Kept,
                verdict_of: None,
                overtaken: 0,
            })
        });
        turn.add_steps(STEPS_OF_CHECK);
        let continued = checked.and_then(|mut checked| {
            let replaced = self.replaced_slot(document)?;
            let is_complete =
                self.continue_checked(&mut checked, document, arrival, replaced, turn)?;
            Ok((checked, is_complete))
        });
        match continued {
            Ok((checked, is_complete)) => {
                *check = Some(Ok(checked));
                is_complete
            }
            Err(error) => {
                *check = Some(Err(error));
                true
            }
        }
    }

    /// Continues a check, and makes its verdict once it is complete.
    pub(super) fn continue_checked(
        &self,
        checked: &mut PrecheckedDocument,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        replaced: Option<DocumentSlot>,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let is_complete = self.matcher.continue_precheck(
            &mut checked.precheck,
            &document.sketched,
            arrival,
            replaced,
            &self.rows,
            turn,
        )?;
        let found = checked.precheck.found_match();
        if is_complete && found != checked.verdict_of {
            checked.verdict = self.make_verdict(found)?;
            checked.verdict_of = found;
        }
        Ok(is_complete)
    }

    /// Returns the slot of the kept document that a document replaces, if the collection replaces documents.
    fn replaced_slot(&self, document: &PendingInsert) -> Result<Option<DocumentSlot>> {
        if self.settings.on_conflict != OnConflict::Replace {
            return Ok(None);
        }
        let known = self.find_by_id(&document.id, document.id_hash)?;
        Ok(known.and_then(|known| self.document_slot(&known)))
    }

    /// Prefetches the memory that a document will need when it is inserted.
    pub(crate) fn prefetch_document(
        &self,
        document: &PendingInsert,
        prechecked: &Result<PrecheckedDocument>,
    ) {
        self.index.prefetch_id(document.id_hash);
        if let Ok(prechecked) = prechecked {
            self.matcher
                .prefetch_checked(&document.sketched, &prechecked.precheck);
        }
    }

    /// Makes the match of a document its verdict.
    pub(super) fn make_verdict(&self, found: Option<KeptMatch>) -> Result<StoredVerdict> {
        match found {
            None => Ok(StoredVerdict::Kept),
            Some(found) => self.make_evidence(&found).map(StoredVerdict::Duplicate),
        }
    }

    fn make_evidence(&self, found: &KeptMatch) -> Result<DuplicateEvidence> {
        let of = self
            .rows
            .visit_record(found.slot, |record| record.id.to_owned())?;
        Ok(DuplicateEvidence {
            of,
            seq: found.order,
            similarity: found.similarity.get(),
            route: found.route,
        })
    }

    /// Begins a query for the verdict of a document, or for its matches.
    pub(crate) fn begin_query(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        lists_all: bool,
    ) -> PrecheckResult {
        let arrival = self.matcher.resolve_arrival(document.time, now);
        if lists_all {
            self.matcher.begin_listing(&arrival)
        } else {
            self.matcher.begin_precheck(&arrival)
        }
    }

    /// Answers a document as if it were inserted now. Returns `None` if the search takes further turns.
    pub(crate) fn answer_query(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        search: &mut PrecheckResult,
        turn: &mut SearchTurn,
    ) -> Result<Option<InsertAnswer>> {
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let arrival = self.matcher.resolve_arrival(document.time, now);
        if let Some(first) = self.first_answer(document, known.as_ref(), &arrival)? {
            return Ok(Some(first));
        }
        let own = known.as_ref().and_then(|known| self.document_slot(known));
        if !self.continue_query(search, document, &arrival, own, turn)? {
            return Ok(None);
        }
        self.answer_with(search.found_match(), document, &arrival)
            .map(Some)
    }

    /// Answers a document as if it were inserted now, with the kept documents that match it. Returns `None` if
    /// the search takes further turns.
    pub(crate) fn answer_with_matches(
        &self,
        document: &PendingInsert,
        now: Timestamp,
        limit: usize,
        search: &mut PrecheckResult,
        turn: &mut SearchTurn,
    ) -> Result<Option<(InsertAnswer, Vec<DuplicateEvidence>)>> {
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let own = known.as_ref().and_then(|known| self.document_slot(known));
        let arrival = self.matcher.resolve_arrival(document.time, now);
        let first = self.first_answer(document, known.as_ref(), &arrival)?;
        if !self.continue_query(search, document, &arrival, own, turn)? {
            return Ok(None);
        }
        let answer = match first {
            Some(first) => first,
            None => self.answer_with(search.found_match(), document, &arrival)?,
        };
        let found = search.list_matches();
        let matches = found
            .iter()
            .take(limit)
            .map(|kept| self.make_evidence(kept));
        Ok(Some((answer, matches.collect::<Result<_>>()?)))
    }

    fn continue_query(
        &self,
        search: &mut PrecheckResult,
        document: &PendingInsert,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let sketched = &document.sketched;
        let searched = self
            .matcher
            .continue_precheck(search, sketched, arrival, without, &self.rows, turn);
        Ok(searched?)
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

    /// Returns the first answer of the document with this id, if the content is the same. A document that is
    /// past the window at this arrival counts as absent, even if it is still on disk.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if the content differs and documents are not replaced.
    pub(super) fn first_answer(
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

    /// Returns `true` if a document has the same content as the stored one. Hashes can only prove a
    /// difference, because they can be made to collide.
    fn is_same_document(&self, known: &KnownDocument, document: &PendingInsert) -> Result<bool> {
        let stored = &known.document;
        if (stored.content, &stored.meta, stored.fingerprint)
            != (document.content, &document.meta, document.fingerprint)
        {
            return Ok(false);
        }
        if stored.fingerprint.is_some() {
            return Ok(true);
        }
        Ok(document.sketched.text() == Some(&*self.document_text(known)?))
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
