//! The searches of a decision in advance: its documents are searched for matches by the decisions as they will be, before it
//! is made.
//!
//! ```text
//! kept documents ──> which of them match an earlier one now        in turns of the shared lock,
//! documents that leave ──> their matches among those that stay     as queries
//! documents that leave ──> their matches among each other          without a lock
//! ```
//!
//! Nothing changes, and nothing is decided: a search says at the end what was compared, and the verdicts are made under the
//! exclusive lock. So it does no harm that documents are deleted or expire during these searches.
//!
//! Cost: for each document a search of the collection, and one of the documents that are expected to be kept again. Memory:
//! the candidates and keys of these searches, up to [`MOST_SEARCH_BYTES`], and the sketches of these documents.

use std::collections::HashSet;

use lookalike::stream::{DocumentSlot, SearchTurn, StreamMatcher, StreamTexts, Timestamp};

use super::Collection;
use crate::decision::{DOCUMENTS_OF_WORK, MOST_SEARCH_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::state::{
    ChangedRelations, DecisionPlan, DocumentCheck, PlannedCluster, PlannedDocument,
    PreviewedDecision, StayingDocuments,
};

impl Collection {
    /// Searches the documents of a plan for matches, and keeps these searches in it.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if that takes more work than a decision may, unless the collection follows a log.
    pub(super) fn search_in_advance(&self, plan: &mut DecisionPlan, now: Timestamp) -> Result<()> {
        let mut search = AdvanceSearch {
            collection: self,
            decided: &plan.decided,
            now,
            most_steps: self.most_decision_steps(),
            steps: 0,
            bytes: 0,
        };
        let leaving = search.find_leaving(&mut plan.clusters)?;
        search.search_leaving(leaving)
    }

    /// Returns the steps that a decision may take. On a replica it has no limit.
    fn most_decision_steps(&self) -> u64 {
        if self.options.follows_log {
            return u64::MAX;
        }
        let of_document = self.options.verification.document_steps;
        of_document.saturating_mul(DOCUMENTS_OF_WORK)
    }
}

struct AdvanceSearch<'a> {
    collection: &'a Collection,
    decided: &'a PreviewedDecision,
    now: Timestamp,
    most_steps: u64,
    /// Steps so far.
    steps: u64,
    /// Bytes of the searches that are kept.
    bytes: usize,
}

impl AdvanceSearch<'_> {
    /// Returns the documents that are expected to be judged again, in the order in which that happens.
    fn find_leaving<'p>(
        &mut self,
        clusters: &'p mut [PlannedCluster],
    ) -> Result<Vec<&'p mut PlannedDocument>> {
        let changed: &ChangedRelations = &self.decided.changed;
        let mut staying = StayingDocuments::default();
        let mut leaving = Vec::new();
        for PlannedCluster { kept, members } in clusters {
            let can_match = staying.list_new_matches(changed, kept.text);
            let is_demoted = !can_match.is_empty()
                && !self.is_late(kept)?
                && self.matches_any(kept, &can_match)?;
            if !is_demoted {
                staying.push(kept);
            }
            let content = kept.text.content;
            let separated = members
                .iter_mut()
                .filter(|member| is_demoted || changed.may_separate(content, member.text.content));
            leaving.extend(separated);
            leaving.extend(is_demoted.then_some(kept));
        }
        leaving.sort_unstable_by_key(|document| document.seq());
        Ok(leaving)
    }

    fn is_late(&self, document: &PlannedDocument) -> Result<bool> {
        let state = self.collection.read_state()?;
        Ok(state.is_late(&document.prepared, self.now))
    }

    fn matches_any(&mut self, kept: &mut PlannedDocument, others: &HashSet<u64>) -> Result<bool> {
        self.search_document(kept)?;
        let check = kept.check.as_ref();
        Ok(check.is_some_and(|check| check.matches_any(others)))
    }

    /// Searches the collection for the matches of a document, unless that is done.
    fn search_document(&mut self, document: &mut PlannedDocument) -> Result<()> {
        if document.check.is_some() {
            return Ok(());
        }
        let mut check = {
            let state = self.collection.read_state()?;
            let preview = &self.decided.preview;
            state.begin_advance_search(document, preview, self.left_steps(), self.now)
        };
        loop {
            let mut turn = self.collection.options.verification.begin_turn();
            let is_complete = {
                let state = self.collection.read_state()?;
                state.continue_advance_search(&mut check, document, self.now, &mut turn)
            };
            self.count_steps(turn.steps())?;
            if is_complete.map_err(|error| self.name_limit(error))? {
                break;
            }
            self.do_unlocked_work(&mut check, document)?;
        }
        check.keep_for_later();
        document.check = Some(check);
        self.bytes += document.search_bytes();
        Ok(())
    }

    /// Does the work that ended the last turn of a search, and counts it.
    fn do_unlocked_work(
        &mut self,
        check: &mut DocumentCheck,
        document: &PlannedDocument,
    ) -> Result<()> {
        let mut work = SearchTurn::unlimited();
        work.add_text_bytes(check.unlocked_text_bytes());
        let compared_before = check.search.steps();
        check.do_unlocked_work(&document.prepared);
        work.add_steps(check.search.steps() - compared_before);
        self.count_steps(work.steps())
    }

    /// Searches the matches of all documents that leave: among those that stay, and among each other.
    fn search_leaving(&mut self, mut leaving: Vec<&mut PlannedDocument>) -> Result<()> {
        if leaving.is_empty() {
            return Ok(());
        }
        let left_seqs: HashSet<u64> = leaving.iter().map(|document| document.seq()).collect();
        let state = self.collection.read_state()?;
        let mut among = MutualComparison {
            matcher: state.empty_matcher_under(&self.decided.preview)?,
            kept: Vec::new(),
        };
        drop(state);
        for at in 0..leaving.len() {
            let (earlier, rest) = leaving.split_at_mut(at);
            let document = &mut *rest[0];
            self.search_document(document)?;
            self.bytes -= document.search_bytes();
            let matches_earlier = among.compare_document(document, earlier, self)?;
            let check = document.check.as_ref();
            let matched = check.map_or_else(Vec::new, DocumentCheck::matched_seqs);
            let is_match = matched.iter().any(|seq| !left_seqs.contains(seq));
            if !matches_earlier && !is_match {
                among.keep_document(document, at)?;
                self.make_insertion_keys(document)?;
            }
            if self.bytes + document.search_bytes() > MOST_SEARCH_BYTES {
                document.check = None;
                document.comparisons = Vec::new();
            }
            self.bytes += document.search_bytes();
        }
        Ok(())
    }

    /// Makes the keys of a document that is expected to be kept again.
    fn make_insertion_keys(&self, document: &mut PlannedDocument) -> Result<()> {
        let extractor = self.collection.read_state()?.matcher.key_extractor();
        if let Some(check) = &mut document.check {
            let sketched = &document.prepared.sketched;
            check.search.make_insertion_keys(&extractor, sketched);
        }
        Ok(())
    }

    fn left_steps(&self) -> u64 {
        self.most_steps - self.steps
    }

    fn count_steps(&mut self, steps: u64) -> Result<()> {
        if steps > self.left_steps() {
            return Err(self.too_costly());
        }
        self.steps += steps;
        Ok(())
    }

    fn too_costly(&self) -> Error {
        let what = format!(
            "judging the documents of the decision again takes more than {} steps of 64 cells, the limit: delete documents \
             of the clusters that it is about first",
            self.most_steps
        );
        Error::new(ErrorKind::TooCostly, what)
    }

    /// Names the limit of the decision in place of that of one document, which is the rest of it.
    fn name_limit(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::TooCostly => self.too_costly(),
            _ => error,
        }
    }
}

/// The documents that are expected to be kept again, in a matcher of their own.
struct MutualComparison {
    matcher: StreamMatcher,
    /// Their places among the documents that leave, by their slots.
    kept: Vec<usize>,
}

/// The texts of these documents.
struct MutualTexts<'a, 'p> {
    kept: &'a [usize],
    leaving: &'a [&'p mut PlannedDocument],
}

impl StreamTexts for MutualTexts<'_, '_> {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> lookalike::Result<()> {
        let document = &self.leaving[self.kept[slot.index as usize]];
        visit(document.prepared.sketched.text().unwrap_or_default());
        Ok(())
    }
}

impl MutualComparison {
    /// Compares a document with the `earlier` ones of those that leave, and notes the results in it. Returns `true` if it
    /// matches one.
    fn compare_document(
        &mut self,
        document: &mut PlannedDocument,
        earlier: &[&mut PlannedDocument],
        advance: &mut AdvanceSearch<'_>,
    ) -> Result<bool> {
        self.matcher.set_step_limit(advance.left_steps());
        let matcher = &self.matcher;
        let texts = MutualTexts {
            kept: &self.kept,
            leaving: earlier,
        };
        let arrival = matcher.resolve_arrival(document.prepared.time, advance.now);
        let mut search = matcher.begin_listing(&arrival);
        let turn = &mut SearchTurn::unlimited();
        let sketched = &document.prepared.sketched;
        let compared =
            matcher.continue_precheck(&mut search, sketched, &arrival, None, &texts, turn);
        compared.map_err(|error| advance.name_limit(error.into()))?;
        advance.count_steps(turn.steps())?;
        document.comparisons = matcher.list_comparisons(&search);
        Ok(search.found_match().is_some())
    }

    /// Keeps the document at a place among those that leave.
    fn keep_document(&mut self, document: &PlannedDocument, at: usize) -> Result<()> {
        let sketched = &document.prepared.sketched;
        self.kept.push(at);
        self.matcher
            .keep_document(sketched, document.seq(), Timestamp(0))?;
        Ok(())
    }
}
