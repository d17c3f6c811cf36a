//! Prechecks: most of a check is done on any thread while others insert, and only what has changed in
//! between is checked when the document's turn comes.
//!
//! Guarantee: [`update_precheck`](StreamMatcher::update_precheck) returns what
//! [`find_match`](StreamMatcher::find_match) would return at that moment. Insertions only add candidates, so
//! only these are checked. After any other change, or with another arrival time, the whole check is repeated.

use super::keys::{DocumentKeys, KeyExtractor};
use super::pair_inputs::StreamTexts;
use super::rarity::ProbeKey;
use super::{
    ArrivalTime, DocumentSlot, KeptMatch, SketchedDocument, StreamMatcher, Timestamp, better_match,
};
use crate::candidates::{BucketSide, ContainmentFilter};
use crate::error::{Error, ErrorKind, Result};
use crate::text::TextState;

/// The result of a check at some moment. See [`StreamMatcher::precheck`].
#[derive(Clone, Debug)]
pub struct PrecheckResult {
    found: Option<KeptMatch>,
    /// Steps of verification.
    steps: u64,
    arrival: ArrivalTime,
    /// `true` if an equal text was found. No later insertion can be a better match, so no keys were made.
    settled: bool,
    /// Bucket keys under which the document looks for others.
    probed: Vec<ProbeKey>,
    /// Bucket keys under which it will be inserted; empty if a match was found.
    added: Vec<(u64, BucketSide)>,
    /// Number of the first document that was not there yet.
    since: u64,
    changes: u64,
    /// Generation of the keys; see `StreamKeys::generation`.
    generation: u64,
}

impl PrecheckResult {
    /// Returns the match that the check found.
    pub fn found_match(&self) -> Option<KeptMatch> {
        self.found
    }

    /// Steps that verification took, those of checks before included; see
    /// [`set_step_limit`](StreamMatcher::set_step_limit).
    pub fn steps(&self) -> u64 {
        self.steps
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
        self.search_kept(document, arrival, None, texts)
    }

    pub(super) fn search_kept(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
        texts: &dyn StreamTexts,
    ) -> Result<PrecheckResult> {
        let mut precheck = PrecheckResult {
            found: None,
            steps: 0,
            arrival: *arrival,
            settled: false,
            probed: Vec::new(),
            added: Vec::new(),
            since: self.partitions.next_number(),
            changes: self.changes,
            generation: self.keys.generation(),
        };
        if document.text_state() == TextState::Empty {
            return Ok(precheck);
        }
        precheck.found = self.find_equal_text(document, arrival, without);
        precheck.settled = precheck.found.is_some();
        if !precheck.settled {
            precheck.probed = self.keys.probe_keys(document);
            let mut candidates = self.candidates(document, arrival, &precheck.probed)?;
            candidates.retain(|candidate| Some(candidate.slot) != without);
            (precheck.found, precheck.steps) = self.best_match(document, candidates, texts, 0)?;
            if precheck.found.is_none() {
                precheck.added = self.keys.insertion_keys(document);
            }
        }
        Ok(precheck)
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
        let same_reach = self.window.is_none() || precheck.arrival == *arrival;
        if precheck.changes != self.changes || !same_reach {
            return self.precheck(document, arrival, texts);
        }
        if document.text_state() == TextState::Empty || precheck.settled {
            return Ok(precheck);
        }
        let added = self.numbers_added(document, &precheck);
        let candidate = |number: u64| self.check_candidate(document, arrival, number);
        let candidates: Vec<_> = added.into_iter().filter_map(candidate).collect();
        let (added, steps) = self.best_match(document, candidates, texts, precheck.steps)?;
        precheck.found = better_match(precheck.found, added);
        precheck.steps = steps;
        precheck.arrival = *arrival;
        precheck.since = self.partitions.next_number();
        Ok(precheck)
    }

    /// Returns the numbers of candidates that were inserted since the precheck, ascending.
    fn numbers_added(&self, document: &SketchedDocument, precheck: &PrecheckResult) -> Vec<u64> {
        if precheck.since == self.partitions.next_number() {
            return Vec::new();
        }
        if let Some(filter) = ContainmentFilter::for_plan(&self.plan) {
            return self.find_containments(filter, document, &precheck.probed, precheck.since);
        }
        let mut added: Vec<u64> = Vec::new();
        self.visit_added(document, precheck, |number| added.push(number));
        added.sort_unstable();
        added.dedup();
        added
    }

    /// Calls `visit` with the number of every candidate that was inserted since the precheck: documents under a
    /// probed key, and near fingerprints.
    fn visit_added(
        &self,
        document: &SketchedDocument,
        precheck: &PrecheckResult,
        mut visit: impl FnMut(u64),
    ) {
        let since = precheck.since;
        let from = self
            .prefilters
            .query_from(self.prefilters.prefilter_of(document.set_summary()));
        for &probed in &precheck.probed {
            if self.recent.may_contain(probed.key, since) {
                // The newest come first, so the first document before `since` ends the chain.
                self.buckets
                    .visit_bucket(probed.key, since, |number, prefilter, side| {
                        if probed.finds_side(side) && !from.rules_out_match(prefilter) {
                            visit(number);
                        }
                    });
            }
        }
        if let (Some(_), Some(distance), Some(code)) =
            (&self.codes, self.plan.distance(), document.fingerprint())
        {
            let near = |other: u128| (other ^ code).count_ones() <= distance.get();
            self.partitions.visit_codes(since, |number, other| {
                if near(other) {
                    visit(number);
                }
            });
        }
    }

    /// Refuses a document whose precheck took more than half of the [allowed](Self::set_step_limit) steps,
    /// because keeping it would make the checks of later similar documents more costly.
    ///
    /// # Errors
    /// [`ErrorKind::TooCostly`] if it may not.
    pub fn check_keepable(&self, precheck: &PrecheckResult) -> Result<()> {
        if self.plan.sequence_measure().is_none() || precheck.steps <= self.step_limit / 2 {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooCostly,
            format!(
                "comparing the text with its candidates took {} steps of 64 cells and found no \
                 match: it is not kept, because a kept text may take at most half of {}, the limit \
                 for one document. Send a shorter text, or use a collection with a higher \
                 threshold or a measure of features, such as jaccard",
                precheck.steps, self.step_limit
            ),
        ))
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
        if precheck.generation != self.keys.generation() || precheck.added.is_empty() {
            return self.keep_document(document, order, time);
        }
        self.add_document(document, &precheck.added, order, time)
    }

    /// Returns a maker of the keys of documents that are inserted next. When the order of features
    /// changes, keys made before are discarded and made again on insertion.
    pub fn key_extractor(&self) -> KeyExtractor {
        self.keys.key_extractor().clone()
    }

    /// Prefetches the memory that the insertion of a document needs.
    pub fn prefetch_for_insert(&self, document: &SketchedDocument, document_keys: &DocumentKeys) {
        self.prefetch_to_add(document, &document_keys.keys);
    }

    /// Prefetches as [`prefetch_for_insert`](Self::prefetch_for_insert) does, for a document that was
    /// checked.
    pub fn prefetch_checked(&self, document: &SketchedDocument, precheck: &PrecheckResult) {
        self.prefetch_to_add(document, &precheck.added);
    }

    fn prefetch_to_add(&self, document: &SketchedDocument, keys: &[(u64, BucketSide)]) {
        for &(key, _) in keys {
            self.buckets.prefetch_to_add(key);
        }
        if !keys.is_empty() {
            self.keys.prefetch_counters(document);
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
        self.add_document(document, &document_keys.keys, order, time)
    }
}
