//! Prechecks: most of a check is done on any thread while others insert, and only what has changed in
//! between is checked when the document is admitted.
//!
//! A check is a search that can stop after any candidate and go on later, so that a caller that holds a
//! lock can let others have it. It remembers which kept documents it has compared. Texts do not change, so
//! a pair is compared once, whatever is removed, refreshed or inserted meanwhile.
//!
//! ```text
//! bucket keys ──walk──> candidates ──compare──> compared documents ──> the best that is visible
//! ```
//!
//! Guarantee: a [complete](StreamMatcher::continue_precheck) search has the result that
//! [`find_match`](StreamMatcher::find_match) would return at that moment. Insertions add candidates, which are
//! looked up from the first new number on. After any other change, or with another arrival time, it is decided
//! again which of the compared documents are visible.

use super::candidate_search::KeyWalk;
use super::candidate_verifier::{
    CandidateDocument, CandidateVerifier, ComparedCandidate, DeferredCandidate,
};
use super::decided_texts::DecisionPreview;
use super::keys::{DocumentKeys, KeyExtractor, STEPS_OF_ADDED_KEY, SearchKeys};
use super::pair_inputs::{ArrivingLists, StreamTexts};
use super::rarity::ProbeKey;
use super::search_turn::SearchTurn;
use super::{
    ArrivalTime, DocumentSlot, KeptMatch, SketchedDocument, StreamMatcher, Timestamp, better_match,
};
use crate::candidates::PrefixHits;
use crate::error::{Error, ErrorKind, Result};
use crate::similarity::Route;
use crate::types::Similarity;
use std::collections::HashMap;
use std::sync::Arc;

/// The result of a check at some moment, or what is known of it. See [`StreamMatcher::precheck`].
#[derive(Clone, Debug)]
pub struct PrecheckResult {
    pub(super) found: Option<KeptMatch>,
    /// Steps of verification of the visible candidates.
    pub(super) steps: u64,
    pub(super) arrival: ArrivalTime,
    /// The kept document that is ignored.
    pub(super) without: Option<DocumentSlot>,
    /// `true` if all matches are wanted, so that an equal text does not end the search.
    pub(super) lists_all: bool,
    /// `true` if an equal text was found. No later insertion can be a better match, so no keys were made.
    pub(super) has_equal_text: bool,
    /// Bucket keys under which the document looks for others.
    pub(super) probed: Vec<ProbeKey>,
    /// Bucket keys under which it will be inserted, unless a match was found.
    pub(super) added: Option<DocumentKeys>,
    /// `true` if making the keys takes more than a unit of the turn that it ended.
    pub(super) awaits_keys: bool,
    /// Number of the first document that was not looked up yet.
    pub(super) since: u64,
    /// The look-up of keys that is under way.
    pub(super) walk: Option<KeyWalk>,
    /// Candidates that are not compared yet, the next one last.
    pub(super) pending: Vec<(u64, PrefixHits)>,
    /// The candidate whose comparison ended the last turn.
    pub(super) deferred: Option<Box<DeferredCandidate>>,
    pub(super) compared: Vec<ComparedCandidate>,
    /// Compared documents of which it is not known yet, after a change, whether they are still visible.
    pub(super) unchecked: Vec<ComparedCandidate>,
    /// `true` if all of them are checked in one unit.
    pub(super) rechecks_at_once: bool,
    /// Features, weights and sequences of the document, made for comparisons.
    pub(super) lists: Arc<ArrivingLists>,
    /// Candidates that were out of reach.
    pub(super) passed_over: Vec<(u64, PrefixHits)>,
    /// Number of changes of the matcher by then; `None` if the search has not begun.
    pub(super) changes: Option<u64>,
    /// Generation of the keys; see `StreamKeys::generation`.
    pub(super) generation: u64,
    /// Number of changes of the decisions when the search began; `None` if it has not begun.
    pub(super) decisions: Option<u64>,
    /// Class of the content, if a person has decided about it.
    pub(super) class: Option<u32>,
    /// Kept documents that are decided as the same as the document.
    pub(super) decided_matches: Vec<KeptMatch>,
    /// The decisions by which the search compares, if they are not those of the matcher yet.
    pub(super) preview: Option<DecisionPreview>,
    /// Steps of verification that the search may take, if they are not those of the matcher.
    pub(super) own_step_limit: Option<u64>,
    /// Results of comparisons that were made elsewhere, by the place of the kept document in the total order.
    pub(super) known: HashMap<u64, KnownComparison>,
}

/// The result of a comparison of two texts, which holds whenever they are compared in this direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownComparison {
    /// Steps of verification.
    steps: u64,
    /// The similarity and the route, if they match.
    found: Option<(Similarity, Route)>,
}

impl KnownComparison {
    pub(super) fn to_compared(self, candidate: &CandidateDocument) -> ComparedCandidate {
        let found = self.found.map(|(similarity, route)| KeptMatch {
            slot: candidate.slot,
            order: candidate.order,
            similarity,
            route,
        });
        ComparedCandidate {
            number: candidate.number,
            steps: self.steps,
            found,
            is_visible: true,
        }
    }
}

/// Number of keys of a document whose memory is prefetched.
const MOST_PREFETCHED_KEYS: usize = 512;

/// Number of keys that are inserted in a unit. Tests have small units.
const KEYS_OF_UNIT: usize = if cfg!(test) { 7 } else { 256 };

impl PrecheckResult {
    /// Ends the preview of a search: it goes on by the decisions of the matcher, which must be those of the preview by now,
    /// and within its step limit.
    pub fn end_preview(&mut self) {
        self.preview = None;
        self.own_step_limit = None;
    }

    /// Lets a search that finds all matches go on as one for the best match.
    pub fn find_best_only(&mut self) {
        self.lists_all = false;
    }

    /// Notes the result of the comparison with a kept document, which is named by its place in the total order, so that
    /// the search does not make it again.
    pub fn note_comparison(&mut self, order: u64, known: KnownComparison) {
        self.known.insert(order, known);
    }

    /// Makes the keys under which the document is inserted if it is kept.
    pub fn make_insertion_keys(&mut self, extractor: &KeyExtractor, document: &SketchedDocument) {
        if self.added.is_none() {
            self.added = Some(extractor.extract_keys(document));
        }
    }

    /// Frees the features, weights and sequences of the document that were made for comparisons. They are made again if
    /// they are needed.
    pub fn forget_lists(&mut self) {
        self.lists = Arc::default();
    }

    /// Returns the match that the check found.
    pub fn found_match(&self) -> Option<KeptMatch> {
        self.found
    }

    /// Steps that verification took, those of checks before included; see
    /// [`set_step_limit`](StreamMatcher::set_step_limit).
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the memory of its keys and candidates, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let added = self.added.as_ref().map_or(0, DocumentKeys::memory_bytes);
        let candidates = size_of_val(&*self.pending) + size_of_val(&*self.passed_over);
        let compared = size_of_val(&*self.compared) + size_of_val(&*self.unchecked);
        let known = self.known.len() * (size_of::<(u64, KnownComparison)>() + 1);
        added + size_of_val(&*self.probed) + candidates + compared + known
    }

    /// Steps that the insertion of the document takes about, if it is kept.
    pub fn insertion_steps(&self) -> u64 {
        let added = self.added.as_ref().filter(|_| self.found.is_none());
        added.map_or(0, DocumentKeys::insertion_steps)
    }

    /// Returns `true` if the check needs [keys](Self::set_keys) that take more than a
    /// [unit](SearchTurn::with_unit_steps) of the turn that it ended.
    pub fn awaits_keys(&self) -> bool {
        self.awaits_keys
    }

    /// Sets the keys of the document, which the matcher's [extractor](StreamMatcher::key_extractor) has made.
    pub fn set_keys(&mut self, keys: SearchKeys) {
        let SearchKeys { probed, added } = keys;
        self.generation = added.generation;
        self.probed = probed;
        self.added = Some(added);
        self.awaits_keys = false;
        // The places of its keys are those of other keys now.
        self.walk = None;
    }

    /// Returns the keys under which the document is inserted if it is kept, for
    /// [`insert_ahead`](StreamMatcher::insert_ahead).
    pub fn insertion_keys_mut(&mut self) -> Option<&mut DocumentKeys> {
        self.added.as_mut().filter(|_| self.found.is_none())
    }

    /// Returns the slot of the candidate whose comparison takes more than a
    /// [unit](SearchTurn::with_unit_steps) of the turn that it ended. Before the check is continued,
    /// [`compare_deferred`](CandidateVerifier::compare_deferred) compares it, because otherwise the next turn
    /// begins with it again.
    pub fn deferred_slot(&self) -> Option<DocumentSlot> {
        self.deferred.as_ref().map(|deferred| deferred.slot())
    }

    /// Adds a candidate that was compared.
    pub(super) fn add_compared(&mut self, compared: ComparedCandidate) {
        if compared.is_visible {
            self.steps = self.steps.saturating_add(compared.steps);
            self.found = better_match(self.found, compared.found);
        }
        self.compared.push(compared);
    }

    /// Returns the first `limit` of the visible matches, the most similar first, and of equally similar ones the
    /// earliest first. Time: linear in the number of compared documents.
    pub fn list_matches(&self, limit: usize) -> Vec<KeptMatch> {
        let order_matches = |one: &KeptMatch, other: &KeptMatch| {
            let by_similarity = other.similarity.get().total_cmp(&one.similarity.get());
            by_similarity.then(one.order.cmp(&other.order))
        };
        let visible = self.compared.iter().filter(|kept| kept.is_visible);
        let compared = visible.filter_map(|kept| kept.found);
        let decided = self.decided_matches.iter().copied();
        let mut matches: Vec<KeptMatch> = compared.chain(decided).collect();
        if limit < matches.len() {
            matches.select_nth_unstable_by(limit, order_matches);
            matches.truncate(limit);
        }
        matches.sort_unstable_by(order_matches);
        matches
    }

    /// Returns the number of documents that were compared.
    pub fn compared_count(&self) -> usize {
        self.compared.len()
    }
}

impl StreamMatcher {
    /// Checks a document in such a way that [`update_precheck`](Self::update_precheck) can update the result
    /// later at little cost.
    ///
    /// # Errors
    /// Fails if `texts` cannot provide the text of a candidate, or if verification takes more steps than are
    /// [allowed](StreamMatcher::set_step_limit).
    pub fn precheck(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        texts: &dyn StreamTexts,
    ) -> Result<PrecheckResult> {
        self.update_precheck(self.begin_precheck(arrival), document, arrival, texts)
    }

    /// Returns a check that has done nothing yet, to be [continued](Self::continue_precheck).
    pub fn begin_precheck(&self, arrival: &ArrivalTime) -> PrecheckResult {
        PrecheckResult {
            found: None,
            steps: 0,
            arrival: *arrival,
            without: None,
            lists_all: false,
            has_equal_text: false,
            probed: Vec::new(),
            added: None,
            awaits_keys: false,
            since: self.partitions.lowest_number(),
            walk: None,
            pending: Vec::new(),
            deferred: None,
            compared: Vec::new(),
            unchecked: Vec::new(),
            rechecks_at_once: false,
            lists: Arc::default(),
            passed_over: Vec::new(),
            changes: None,
            generation: self.keys.generation(),
            decisions: None,
            class: None,
            decided_matches: Vec::new(),
            preview: None,
            own_step_limit: None,
            known: HashMap::new(),
        }
    }

    /// Returns a check as [`begin_precheck`](Self::begin_precheck) does, that finds all matches; see
    /// [`list_matches`](PrecheckResult::list_matches).
    pub fn begin_listing(&self, arrival: &ArrivalTime) -> PrecheckResult {
        PrecheckResult {
            lists_all: true,
            ..self.begin_precheck(arrival)
        }
    }

    /// Returns a check as [`begin_listing`](Self::begin_listing) does, by decisions that are not made yet. Its verification
    /// may take `step_limit` steps, in place of those that the [matcher](Self::set_step_limit) allows. Once the decisions are
    /// made, it [goes on](PrecheckResult::end_preview), and no pair is compared twice.
    pub fn begin_previewed_listing(
        &self,
        arrival: &ArrivalTime,
        preview: &DecisionPreview,
        step_limit: u64,
    ) -> PrecheckResult {
        PrecheckResult {
            preview: Some(preview.clone()),
            own_step_limit: Some(step_limit),
            ..self.begin_listing(arrival)
        }
    }

    /// Returns the results of the comparisons of a check, each with the place of the kept document in the total order.
    pub fn list_comparisons(&self, precheck: &PrecheckResult) -> Vec<(u64, KnownComparison)> {
        let compared = precheck.compared.iter();
        let live = compared.filter(|compared| !self.partitions.is_dead(compared.number));
        live.map(|compared| {
            let (partition, at) = self.partitions.locate_number(compared.number);
            let known = KnownComparison {
                steps: compared.steps,
                found: (compared.found).map(|found| (found.similarity, found.route)),
            };
            (partition.order_at(at), known)
        })
        .collect()
    }

    /// Updates the result of an earlier check of the same document to this moment.
    ///
    /// # Errors
    /// Fails as [`precheck`](Self::precheck) does.
    pub fn update_precheck(
        &self,
        mut precheck: PrecheckResult,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        texts: &dyn StreamTexts,
    ) -> Result<PrecheckResult> {
        let turn = &mut SearchTurn::unlimited();
        self.continue_precheck(&mut precheck, document, arrival, None, texts, turn)?;
        Ok(precheck)
    }

    /// Goes on with a check until it is complete, the turn is over, a candidate is
    /// [deferred](PrecheckResult::deferred_slot) or the check [awaits keys](PrecheckResult::awaits_keys). Returns `true` if it is complete: then its result is that of this
    /// moment, without the kept document that is named beside the arrival time.
    ///
    /// # Errors
    /// Fails as [`precheck`](Self::precheck) does. The check cannot be continued then.
    pub fn continue_precheck(
        &self,
        precheck: &mut PrecheckResult,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
        texts: &dyn StreamTexts,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        self.search_further(precheck, document, arrival, without, texts, turn)
    }

    /// Returns what compares [deferred](PrecheckResult::deferred_slot) candidates without access to the matcher.
    pub fn candidate_verifier(&self) -> &CandidateVerifier {
        &self.verifier
    }

    /// Refuses a document whose precheck took more than half of the [allowed](Self::set_step_limit) steps,
    /// because keeping it would make the checks of later similar documents more costly.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if it may not.
    pub fn check_keepable(&self, precheck: &PrecheckResult) -> Result<()> {
        if self.plan.sequence_measure().is_none() || precheck.steps <= self.verifier.step_limit / 2
        {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "comparing the text with its candidates took {} steps of 64 cells and found no \
                 match: it is not kept, because a kept text may take at most half of {}, the limit \
                 for one document. Send a shorter text, or use a collection with a higher \
                 threshold or a measure of features, such as jaccard",
                precheck.steps, self.verifier.step_limit
            ),
        ))
    }

    /// Checks that a further document can be kept.
    ///
    /// # Errors
    /// Fails if the newest partition is full.
    pub fn check_free_slot(&self) -> Result<()> {
        self.partitions.next_slot().map(drop)
    }

    /// Inserts a document as [`keep_document`](Self::keep_document) does, with the keys that its check
    /// has made.
    ///
    /// # Errors
    /// Fails as [`keep_document`](Self::keep_document) does.
    pub fn keep_checked(
        &mut self,
        document: &SketchedDocument,
        precheck: &PrecheckResult,
        order: u64,
        time: Timestamp,
    ) -> Result<DocumentSlot> {
        match &precheck.added {
            Some(keys) => self.keep_with_keys(document, keys, order, time),
            None => self.keep_document(document, order, time),
        }
    }

    /// Returns a maker of the keys of documents that are inserted next. When the order of features
    /// changes, keys made before are discarded and made again on insertion.
    pub fn key_extractor(&self) -> KeyExtractor {
        self.keys.key_extractor().clone()
    }

    /// Prefetches the memory that the insertion of a document needs.
    pub fn prefetch_for_insert(&self, document: &SketchedDocument, document_keys: &DocumentKeys) {
        for &(key, _) in document_keys.keys.iter().take(MOST_PREFETCHED_KEYS) {
            self.buckets.prefetch_to_add(key);
        }
        self.keys.prefetch_counters(document, MOST_PREFETCHED_KEYS);
    }

    /// Prefetches as [`prefetch_for_insert`](Self::prefetch_for_insert) does, for a document that was
    /// checked.
    pub fn prefetch_checked(&self, document: &SketchedDocument, precheck: &PrecheckResult) {
        if let Some(keys) = &precheck.added {
            self.prefetch_for_insert(document, keys);
        }
    }

    /// Inserts a document as [`keep_document`](Self::keep_document) does, with keys that were made before.
    ///
    /// # Errors
    /// Fails as [`keep_document`](Self::keep_document) does.
    pub fn keep_with_keys(
        &mut self,
        document: &SketchedDocument,
        document_keys: &DocumentKeys,
        order: u64,
        time: Timestamp,
    ) -> Result<DocumentSlot> {
        if document_keys.generation != self.keys.generation() {
            return self.keep_document(document, order, time);
        }
        self.add_document(document, document_keys, order, time)
    }

    /// Returns `true` if keys are those that the document would be inserted under now.
    pub fn are_keys_current(&self, document_keys: &DocumentKeys) -> bool {
        document_keys.generation == self.keys.generation()
    }

    /// Inserts keys of the document that is kept next, and counts its features, until the turn is over. Returns
    /// `true` if none is left. So a document with millions of features can be inserted without stalling readers: they
    /// ignore the keys until the document is inserted with the same `keys`, by
    /// [`keep_with_keys`](Self::keep_with_keys) or [`keep_checked`](Self::keep_checked).
    ///
    /// If another document is kept first, the work was in vain: the keys lead to that one too, as a candidate that does
    /// not match.
    pub fn insert_ahead(
        &mut self,
        document: &SketchedDocument,
        keys: &mut DocumentKeys,
        turn: &mut SearchTurn,
    ) -> bool {
        let number = self.partitions.next_number();
        if keys.generation != self.keys.generation() {
            return true;
        }
        keys.ahead = keys.inserted_ahead(number);
        while keys.ahead.keys < keys.keys.len() {
            if !turn.begin_unit() {
                return false;
            }
            let until = keys.keys.len().min(keys.ahead.keys + KEYS_OF_UNIT);
            self.insert_keys(document, keys, number, until);
            keys.ahead.keys = until;
            let counted = keys.ahead.features;
            keys.ahead.features = self.keys.count_features(document, counted, KEYS_OF_UNIT);
            turn.add_steps(KEYS_OF_UNIT as u64 * STEPS_OF_ADDED_KEY);
        }
        true
    }
}
