//! Checks and answers of documents. Nothing here changes the state, so all of it runs under the shared lock,
//! at the same time as readers.
//!
//! A document is kept if and only if no kept document before it matches it. A [precheck](PrecheckedDocument)
//! finds the match in advance; [`insertion`](super::insertion) brings it up to date at the document's turn.

use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::stream::{
    ArrivalTime, DocumentSlot, KeptMatch, PrecheckResult, SketchedDocument, StreamWindow, Timestamp,
};

use super::CollectionState;
use crate::document::{
    DuplicateEvidence, InsertAnswer, KnownDocument, PendingInsert, StoredVerdict, shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel_map;
use crate::settings::OnConflict;

/// A document that was checked before its turn, and the verdict of that check.
#[derive(Debug)]
pub(crate) struct PrecheckedDocument {
    pub(super) precheck: PrecheckResult,
    /// Verdict by the match that the precheck found.
    pub(super) verdict: StoredVerdict,
}

impl CollectionState {
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
            let document = &documents[at].sketched;
            let prechecked = self.precheck_document(document, &arrivals[at], before[at].as_ref());
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
    fn precheck_document(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        before: Option<&Result<PrecheckedDocument>>,
    ) -> Result<PrecheckedDocument> {
        let precheck = match before {
            Some(Ok(before)) => {
                let before = before.precheck.clone();
                self.matcher
                    .update_precheck(before, document, arrival, &self.rows)?
            }
            Some(Err(error)) => return Err(error.clone()),
            None => self.matcher.precheck(document, arrival, &self.rows)?,
        };
        let verdict = self.make_verdict(precheck.found_match())?;
        Ok(PrecheckedDocument { precheck, verdict })
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
        let known = self.find_by_id(&document.id, document.id_hash)?;
        let own = known.as_ref().and_then(|known| self.document_slot(known));
        let arrival = self.matcher.resolve_arrival(document.time, now);
        let first = self.first_answer(document, known.as_ref(), &arrival)?;
        // The most similar match is also the verdict, even if none is listed.
        let count = limit.max(1);
        let found =
            self.matcher
                .find_matches(&document.sketched, &arrival, own, count, &self.rows)?;
        let answer = match first {
            Some(first) => first,
            None => self.answer_with(found.first().copied(), document, &arrival)?,
        };
        let matches = found.iter().take(limit).map(|it| self.make_evidence(it));
        Ok((answer, matches.collect::<Result<_>>()?))
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

    /// Answers a document that is not inserted, as if the one that it would replace did not exist.
    pub(super) fn answer_without(
        &self,
        replaced: Option<DocumentSlot>,
        document: &PendingInsert,
        arrival: &ArrivalTime,
    ) -> Result<InsertAnswer> {
        let found =
            self.matcher
                .check_without(&document.sketched, arrival, replaced, &self.rows)?;
        self.answer_with(found, document, arrival)
    }

    /// Returns the answer to a document that is not inserted, by its best match.
    fn answer_with(
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
