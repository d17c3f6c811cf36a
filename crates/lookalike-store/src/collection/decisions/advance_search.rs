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
//! the candidates of these searches, up to [`MOST_SEARCH_BYTES`].

use std::collections::HashSet;

use lookalike::stream::{
    DecisionPreview, DocumentSlot, SearchTurn, StreamMatcher, StreamTexts, Timestamp,
};

use super::Collection;
use crate::decision::{DOCUMENTS_OF_WORK, MOST_SEARCH_BYTES};
use crate::error::{Error, ErrorKind, Result};
use crate::state::{
    ChangedRelations, DecisionPlan, DocumentCheck, PlannedCluster, PlannedDocument,
    StayingDocuments,
};

impl Collection {
    /// Searches the documents of a plan for matches, and keeps these searches in it.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if that takes more work than a decision may, unless the collection follows a log.
    pub(super) fn search_in_advance(
        &self,
        plan: &mut DecisionPlan,
        preview: &DecisionPreview,
        now: Timestamp,
    ) -> Result<()> {
        let mut search = AdvanceSearch {
            collection: self,
            preview,
            now,
            most_steps: self.most_decision_steps(),
            steps: 0,
            bytes: 0,
        };
        let leaving = search.find_leaving(&plan.changed, &mut plan.clusters)?;
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
    preview: &'a DecisionPreview,
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
        changed: &ChangedRelations,
        clusters: &'p mut [PlannedCluster],
    ) -> Result<Vec<&'p mut PlannedDocument>> {
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
            let text = kept.text;
            let separated = members
                .iter_mut()
                .filter(|member| is_demoted || changed.may_separate(text, member.text));
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
            state.begin_advance_search(document, self.preview, self.now)
        };
        loop {
            let mut turn = self.collection.options.verification.begin_turn();
            let is_complete = {
                let state = self.collection.read_state()?;
                state.continue_advance_search(&mut check, document, self.now, &mut turn)?
            };
            self.count_steps(turn.steps())?;
            if is_complete {
                break;
            }
            check.do_unlocked_work(&document.prepared);
        }
        self.bytes += check.keep_for_later();
        document.check = Some(check);
        Ok(())
    }

    /// Searches the matches of all documents that leave: among those that stay, and among each other.
    fn search_leaving(&mut self, mut leaving: Vec<&mut PlannedDocument>) -> Result<()> {
        if leaving.is_empty() {
            return Ok(());
        }
        let left_seqs: HashSet<u64> = leaving.iter().map(|document| document.seq()).collect();
        let state = self.collection.read_state()?;
        let mut among = MutualComparison {
            matcher: state.empty_matcher_under(self.preview)?,
            kept: Vec::new(),
        };
        drop(state);
        for document in &mut leaving {
            self.search_document(document)?;
            let matches_earlier = among.compare_document(document, self)?;
            let check = document.check.as_ref();
            let matched = check.map_or_else(Vec::new, DocumentCheck::matched_seqs);
            let is_match = matched.iter().any(|seq| !left_seqs.contains(seq));
            if !matches_earlier && !is_match {
                self.expect_to_keep(document, &mut among)?;
            }
            if self.bytes > MOST_SEARCH_BYTES {
                document.check = None;
                document.comparisons = Vec::new();
            }
        }
        Ok(())
    }

    /// Prepares a document that is expected to be kept again, and compares the later ones with it.
    fn expect_to_keep(
        &self,
        document: &mut PlannedDocument,
        among: &mut MutualComparison,
    ) -> Result<()> {
        among.keep_document(document)?;
        let extractor = self.collection.read_state()?.matcher.key_extractor();
        if let Some(check) = &mut document.check {
            let sketched = &document.prepared.sketched;
            check.search.make_insertion_keys(&extractor, sketched);
        }
        Ok(())
    }

    fn count_steps(&mut self, steps: u64) -> Result<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps <= self.most_steps {
            return Ok(());
        }
        let what = format!(
            "judging the documents of the decision again takes {} steps of 64 cells or more, and {} is the limit: delete \
             documents of the clusters that it is about first",
            self.steps, self.most_steps
        );
        Err(Error::new(ErrorKind::TooCostly, what))
    }
}

/// The documents that are expected to be kept again, in a matcher of their own.
struct MutualComparison {
    matcher: StreamMatcher,
    /// Their sequence numbers before and their texts, by their places.
    kept: Vec<(u64, String)>,
}

impl StreamTexts for MutualComparison {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> lookalike::Result<()> {
        visit(&self.kept[slot.index as usize].1);
        Ok(())
    }
}

impl MutualComparison {
    /// Compares a document with those before it, and notes the results in it. Returns `true` if it matches one.
    fn compare_document(
        &self,
        document: &mut PlannedDocument,
        advance: &mut AdvanceSearch<'_>,
    ) -> Result<bool> {
        let matcher = &self.matcher;
        let arrival = matcher.resolve_arrival(document.prepared.time, advance.now);
        let mut search = matcher.begin_listing(&arrival);
        let turn = &mut SearchTurn::unlimited();
        let sketched = &document.prepared.sketched;
        matcher.continue_precheck(&mut search, sketched, &arrival, None, self, turn)?;
        advance.count_steps(turn.steps())?;
        document.comparisons = matcher.list_comparisons(&search);
        advance.bytes += size_of_val(&*document.comparisons);
        Ok(search.found_match().is_some())
    }

    fn keep_document(&mut self, document: &PlannedDocument) -> Result<()> {
        let text = document.prepared.sketched.text().unwrap_or_default();
        let sketched = &document.prepared.sketched;
        self.kept.push((document.seq(), text.to_owned()));
        self.matcher
            .keep_document(sketched, document.seq(), Timestamp(0))?;
        Ok(())
    }
}
