//! Decisions of a person on two texts.
//!
//! The documents that a decision can be about are found, read and prepared first, while nobody inserts: readers go on, and
//! inserts wait. Then the decision is made and they are judged again under the exclusive lock; readers wait for that, too.
//!
//! Cost: a look-up for each text, and the members of the clusters of these texts, which are read to know their contents.

use std::collections::HashSet;
use std::ops::ControlFlow;

use lookalike::content_hash::ContentHash;
use lookalike::dedup::{DecidedText, PairDecision};
use lookalike::stream::Timestamp;
use lookalike::text::AnalysisScratch;

use super::Collection;
use super::documents::open_content;
use super::member_walk::{MemberWalk, WalkEnd};
use crate::decision::{
    DecisionOutcome, DecisionPage, DecisionRequest, DecisionSubject, MOST_REJUDGED_BYTES,
    MOST_REJUDGED_DOCUMENTS, NamedText, StoredDecision,
};
use crate::document::{
    DocumentContent, KnownDocument, LONGEST_ID, NewDocument, PendingInsert, hash_id, shorten_id,
};
use crate::error::{Error, ErrorKind, Result};
use crate::files::log_progress::LogPosition;
use crate::settings::CollectionContent;
use crate::state::{CollectionState, DecisionPlan, PlannedCluster, PlannedDocument};

/// Largest size, in bytes, of the row of a decision.
const DECISION_ROW_BYTES: u64 = 256 + 2 * LONGEST_ID as u64;

/// Rows of members that are read under one lock.
const ROWS_PER_LOCK: usize = 64;

fn decision_error(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Decision, what)
}

impl Collection {
    /// Decides about two texts, and judges the documents again for which that changes something; returns once all is on
    /// disk.
    ///
    /// From now on the relation of matching is the one that decisions correct, as in a batch: *same* is a match with
    /// similarity 1, *different* is none, and neither do two texts match that are decided as different from the same third
    /// one, unless they are equal or a decision says otherwise. A document that is judged again gets a new sequence number,
    /// as if it were deleted and inserted again with the time that it has.
    ///
    /// # Errors
    /// [`ErrorKind::Decision`] if the collection holds fingerprints, the texts are the same, there is no such document,
    /// there are too many decisions, or too many documents would be judged again. Otherwise as for an insert.
    pub fn decide(&self, request: &DecisionRequest) -> Result<DecisionOutcome> {
        self.check_running()?;
        self.check_room(DECISION_ROW_BYTES)?;
        let (outcome, last) = self.decide_at(request, None)?;
        self.wait_for_row(last)?;
        Ok(outcome)
    }

    /// Decides at a place of the shared log, as [`decide`](Self::decide) does, without waiting for the disk.
    ///
    /// # Errors
    /// As for [`decide`](Self::decide), and if the collection follows no log.
    pub fn decide_logged(
        &self,
        request: &DecisionRequest,
        position: LogPosition,
    ) -> Result<DecisionOutcome> {
        self.check_follows_log()?;
        self.check_running()?;
        self.decide_at(request, Some(position))
            .map(|(outcome, _)| outcome)
    }

    /// Returns a page of decisions, in the order in which they were made. With `id`, those on the text of the document
    /// with that id.
    ///
    /// # Errors
    /// If there is no document with the id, or a file is damaged.
    pub fn list_decisions(
        &self,
        after: u64,
        count: usize,
        id: Option<&str>,
    ) -> Result<DecisionPage> {
        let content = id.map(|id| self.content_of_id(id)).transpose()?;
        let state = self.read_state()?;
        let total = state.decisions().len();
        let is_about =
            |text: &NamedText| content.is_none_or(|content| text.text.content == content);
        let mut found = state
            .decisions()
            .decisions_after(after)
            .filter(|decision| decision.texts.iter().any(is_about));
        let decisions: Vec<_> = found.by_ref().take(count).cloned().collect();
        let last = decisions.last().map(|decision| decision.seq);
        Ok(DecisionPage {
            continue_after: found.next().and(last),
            decisions,
            total,
        })
    }

    /// Returns the decision on two contents, in either order, if there is one.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn find_decision(&self, a: ContentHash, b: ContentHash) -> Result<Option<StoredDecision>> {
        let state = self.read_state()?;
        Ok(state.decisions().find_pair(a, b).cloned())
    }

    fn content_of_id(&self, id: &str) -> Result<ContentHash> {
        let text = self.text_of_id(id)?;
        Ok(ContentHash::from_text(&text))
    }

    fn text_of_id(&self, id: &str) -> Result<String> {
        let stored = self.find_document(id)?;
        let stored = stored
            .ok_or_else(|| decision_error(format!("there is no document '{}'", shorten_id(id))))?;
        match stored.content {
            DocumentContent::Text(text) => Ok(text),
            DocumentContent::Fingerprint(_) => Err(no_texts()),
        }
    }

    /// Makes a decision while nobody inserts. Returns the number of the last row, too.
    fn decide_at(
        &self,
        request: &DecisionRequest,
        position: Option<LogPosition>,
    ) -> Result<(DecisionOutcome, u64)> {
        if self.manifest.read().settings.holds == CollectionContent::Fingerprints {
            return Err(no_texts());
        }
        let _sole_caller = self.inserting_alone.lock();
        let _inserting = self.inserting.write();
        let now = (self.options.clock)();
        let applied = self.decide_alone(request, position, now);
        // A refusal that follows from the log is an answer of the entry as well. Judged again after a restart, by a later
        // state, the decision could be applied.
        if let (Err(error), Some(position)) = (&applied, position)
            && !error.is_local()
        {
            let mut state = self.write_state()?;
            let last_row = state.last_row();
            state.note_refusal(position, last_row);
        }
        applied
    }

    /// Makes a decision. The caller holds the locks of insertions.
    fn decide_alone(
        &self,
        request: &DecisionRequest,
        position: Option<LogPosition>,
        now: Timestamp,
    ) -> Result<(DecisionOutcome, u64)> {
        let recovered = position.filter(|&position| {
            let state = self.read_state();
            state.is_ok_and(|state| state.is_recovered(position))
        });
        let texts = self.resolve_subject(&request.subject)?;
        if recovered.is_some() {
            let outcome = DecisionOutcome {
                texts,
                decision: request.decision,
                seq: None,
                is_new: false,
                rejudged: Vec::new(),
                past_window: 0,
            };
            return Ok((outcome, 0));
        }
        let plan = DecisionPlanner::new(self, now).plan_decision(texts, request.decision)?;
        let mut state = self.write_state()?;
        let last_row = state.last_row();
        let outcome = state.apply_decision(plan, now)?;
        if let Some(position) = position {
            state.note_entry(position, last_row);
        }
        Ok((outcome, state.last_row()))
    }

    /// Returns the texts of a decision.
    fn resolve_subject(&self, subject: &DecisionSubject) -> Result<[NamedText; 2]> {
        let texts = match subject {
            DecisionSubject::Texts(texts) => texts.clone(),
            DecisionSubject::Documents([a, b]) => [self.named_text(a)?, self.named_text(b)?],
        };
        if texts[0].text.content == texts[1].text.content {
            return Err(decision_error(
                "both texts are the same, byte for byte: a decision is about two texts",
            ));
        }
        let state = self.read_state()?;
        for NamedText { text, .. } in &texts {
            let known = state.matcher.decided_text(text.content);
            if known.is_some_and(|known| known.text_key != text.text_key) {
                return Err(decision_error(format!(
                    "the key of the text '{}' is not that of an earlier decision on it: one of the two was not made under \
                     the recipe of the collection, so withdraw the earlier one or correct this one",
                    text.content
                )));
            }
        }
        drop(state);
        let is_long = |text: &NamedText| text.id.as_ref().is_some_and(|id| id.len() > LONGEST_ID);
        if texts.iter().any(is_long) {
            return Err(decision_error(format!(
                "an id of the decision has more than {LONGEST_ID} bytes, the limit"
            )));
        }
        Ok(texts)
    }

    fn named_text(&self, id: &str) -> Result<NamedText> {
        let text = self.text_of_id(id)?;
        let content = ContentHash::from_text(&text);
        let sketched = self
            .preparer
            .prepare_text(text, &mut AnalysisScratch::default());
        let text_key = sketched.text_key();
        Ok(NamedText {
            text: DecidedText { content, text_key },
            id: Some(id.to_owned()),
        })
    }
}

fn no_texts() -> Error {
    decision_error("the collection holds fingerprints, and a decision is about texts")
}

/// Finds and prepares the documents that a decision may judge again.
struct DecisionPlanner<'a> {
    collection: &'a Collection,
    now: Timestamp,
    scratch: AnalysisScratch,
    documents: usize,
    bytes: usize,
}

impl<'a> DecisionPlanner<'a> {
    fn new(collection: &'a Collection, now: Timestamp) -> Self {
        Self {
            collection,
            now,
            scratch: AnalysisScratch::default(),
            documents: 0,
            bytes: 0,
        }
    }

    fn plan_decision(
        mut self,
        texts: [NamedText; 2],
        decision: Option<PairDecision>,
    ) -> Result<DecisionPlan> {
        let decided = [texts[0].text, texts[1].text];
        let pairs = self
            .collection
            .read_state()?
            .pairs_of_decision(decided, decision);
        let contents = CollectionState::distinct_texts(&pairs);
        let mut kept = Vec::new();
        for &text in &contents {
            kept.extend(self.find_kept(text)?);
        }
        kept.sort_unstable_by_key(|document: &PlannedDocument| document.known.seq);
        // A decision that two texts differ makes nothing match that did not match before.
        let may_join = decision != Some(PairDecision::Different);
        let contents: HashSet<_> = contents.iter().map(|text| text.content).collect();
        let mut clusters = Vec::with_capacity(kept.len());
        for (at, kept) in kept.into_iter().enumerate() {
            // The first one is kept in any case, so only the others can lose all their duplicates.
            let takes_all = may_join && at > 0;
            let is_wanted = |content: ContentHash| takes_all || contents.contains(&content);
            let members = self.find_members(&kept.known, &is_wanted)?;
            clusters.push(PlannedCluster { kept, members });
        }
        Ok(DecisionPlan {
            texts,
            decision,
            pairs,
            clusters,
        })
    }

    /// Returns the kept documents with a text, unless they are past the window.
    fn find_kept(&mut self, text: DecidedText) -> Result<Vec<PlannedDocument>> {
        let state = self.collection.read_state()?;
        let locations = state.matcher.find_kept_texts(text.text_key);
        let mut known = Vec::with_capacity(locations.len());
        for location in locations {
            let found = state.find_by_seq(location.order)?;
            known.extend(found.filter(|known| !state.is_past_any_window(known, self.now)));
        }
        drop(state);
        let mut kept = Vec::new();
        for document in known {
            let is_wanted = |content: ContentHash| content == text.content;
            kept.extend(self.prepare_wanted(&document, &is_wanted)?);
        }
        Ok(kept)
    }

    /// Returns the duplicates of a kept document that are wanted.
    fn find_members(
        &mut self,
        kept: &KnownDocument,
        is_wanted: &dyn Fn(ContentHash) -> bool,
    ) -> Result<Vec<PlannedDocument>> {
        let rows = self.list_member_rows(kept)?;
        let mut members = Vec::new();
        for portion in rows.chunks(ROWS_PER_LOCK) {
            let known: Vec<KnownDocument> = {
                let state = self.collection.read_state()?;
                let live = portion.iter().filter(|&&row| !state.is_dead_row(row));
                let known = live.map(|&row| state.find_by_row(row));
                known.filter_map(Result::transpose).collect::<Result<_>>()?
            };
            for member in known {
                members.extend(self.prepare_wanted(&member, is_wanted)?);
            }
        }
        Ok(members)
    }

    /// Returns the numbers of the rows of the duplicates of a kept document.
    fn list_member_rows(&self, kept: &KnownDocument) -> Result<Vec<u64>> {
        loop {
            let walk = MemberWalk::begin(&*self.collection.read_state()?, kept, self.now);
            let Some(mut walk) = walk else {
                return Ok(Vec::new());
            };
            let mut rows = Vec::new();
            let end = walk.visit_members(self.collection, &mut |row, member| {
                rows.extend(member.map(|_| row));
                ControlFlow::Continue(())
            })?;
            match end {
                WalkEnd::Complete | WalkEnd::Stopped => return Ok(rows),
                WalkEnd::ClusterGone => return Ok(Vec::new()),
                // A compaction has erased its place meanwhile.
                WalkEnd::PlaceLost => {}
            }
        }
    }

    /// Prepares a document for its second judgement, if its text is wanted.
    fn prepare_wanted(
        &mut self,
        known: &KnownDocument,
        is_wanted: &dyn Fn(ContentHash) -> bool,
    ) -> Result<Option<PlannedDocument>> {
        let (known, content, time) = {
            let state = self.collection.read_state()?;
            // Its record may have moved, or the document may be gone.
            if state.is_dead_row(known.number) {
                return Ok(None);
            }
            let Some(known) = state.find_by_row(known.number)? else {
                return Ok(None);
            };
            let time = state.window_start(&known);
            let content = open_content(&state, &known)?;
            (known, content, time)
        };
        let DocumentContent::Text(text) = content.into_content()? else {
            return Ok(None);
        };
        let content = ContentHash::from_text(&text);
        if !is_wanted(content) {
            return Ok(None);
        }
        let document = NewDocument {
            id: known.document.id.clone(),
            content: DocumentContent::Text(text),
            time: Some(time),
            meta: known.document.meta.clone(),
        };
        let preparer = &self.collection.preparer;
        let scratch = &mut self.scratch;
        let prepared = PendingInsert::new(document, CollectionContent::Texts, preparer, scratch)?;
        let text_key = prepared.sketched.text_key();
        let text = DecidedText { content, text_key };
        debug_assert_eq!(prepared.id_hash, hash_id(&known.document.id));
        self.count_document(&prepared)?;
        Ok(Some(PlannedDocument {
            known,
            prepared,
            text,
        }))
    }

    fn count_document(&mut self, prepared: &PendingInsert) -> Result<()> {
        self.documents += 1;
        self.bytes += prepared.sketched.text().map_or(0, str::len);
        if self.documents <= MOST_REJUDGED_DOCUMENTS && self.bytes <= MOST_REJUDGED_BYTES {
            return Ok(());
        }
        Err(decision_error(format!(
            "the decision may judge more than {MOST_REJUDGED_DOCUMENTS} documents or {MOST_REJUDGED_BYTES} bytes of \
             texts again, the limits: delete documents of the clusters that it is about first"
        )))
    }
}
