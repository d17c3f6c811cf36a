//! The search of a check: it looks up bucket keys, collects candidates and compares them, unit by unit.
//!
//! A unit is a few keys, or one candidate. Between two units the search can stop and go on later, after
//! others have inserted, removed or refreshed documents; see [`precheck`](super::precheck).
//!
//! Cost of stopping: none. Memory: 16 bytes for each candidate that is not compared yet, and 56 for each that is, and
//! the features, weights or symbols of the document itself.

use super::candidate_verifier::DeferredCandidate;
use super::pair_inputs::{ArrivingDocument, StreamTexts};
use super::precheck::PrecheckResult;
use super::search_turn::SearchTurn;
use super::{ArrivalTime, DocumentSlot, SketchedDocument, StreamMatcher};
use crate::candidates::{ContainmentFilter, PrefixHits};
use crate::error::Result;
use crate::hamming::live::SequenceNumber;
use crate::text::TextState;
use std::sync::Arc;

/// A look-up of all keys, for the documents of a range of numbers.
#[derive(Clone, Debug)]
pub(super) struct KeyWalk {
    from: u64,
    until: u64,
    /// Next key to look up, by its place.
    next_key: usize,
    /// Keys of the next unit.
    unit_keys: usize,
    /// Documents under the keys so far: each once up to `summed`, with the sum of its hits, then one for each hit.
    hits: Vec<(u64, PrefixHits)>,
    summed: usize,
}

/// Keys of a unit at first, and at most.
const FIRST_UNIT_KEYS: usize = 16;
const MOST_UNIT_KEYS: usize = 256;

/// Hits after which a unit has fewer keys, some milliseconds of work.
const MOST_UNIT_HITS: usize = 1 << 14;

/// Hits that are collected before those of a document are summed up.
const UNSUMMED_HITS: usize = 1 << 15;

/// Documents from which on new fingerprints are searched for in the index rather than one after another.
const LONGEST_CODE_SCAN: u64 = 4096;

/// Compared documents of a unit whose visibility is decided again. Tests have small units.
const RECHECKED_IN_UNIT: usize = if cfg!(test) { 2 } else { 1024 };

/// Steps of looking up a key, of reading an entry of a bucket, of collecting and sorting a hit, and of filtering
/// a candidate. They are estimates for memory that is not in a cache.
const STEPS_OF_KEY: u64 = 16;
const STEPS_OF_ENTRY: u64 = 1;
const STEPS_OF_HIT: u64 = 12;
const STEPS_OF_BUCKET: u64 = 4;
const STEPS_OF_CANDIDATE: u64 = 32;

impl KeyWalk {
    fn new(from: u64, until: u64) -> Self {
        Self {
            from,
            until,
            next_key: 0,
            unit_keys: FIRST_UNIT_KEYS,
            hits: Vec::new(),
            summed: 0,
        }
    }

    /// Chooses the keys of the next unit by the hits of the last one.
    fn adapt_unit(&mut self, hits: usize) {
        self.unit_keys = if hits > MOST_UNIT_HITS {
            (self.unit_keys / 4).max(1)
        } else if hits < MOST_UNIT_HITS / 4 {
            (self.unit_keys * 2).min(MOST_UNIT_KEYS)
        } else {
            self.unit_keys
        };
    }

    /// Sums up the hits of each document once they are as many again as the documents.
    fn limit_hits(&mut self) {
        if self.hits.len() - self.summed > UNSUMMED_HITS.max(self.summed) {
            self.sum_hits();
        }
    }

    /// Sums up the hits of each document, in the order of their numbers.
    fn sum_hits(&mut self) {
        // The first part is sorted already, which a stable sort makes use of.
        self.hits.sort_by_key(|&(number, _)| number);
        self.hits.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1.add_hits(later.1);
            }
            is_same
        });
        self.summed = self.hits.len();
    }
}

impl StreamMatcher {
    /// Does what [`continue_precheck`](Self::continue_precheck) says.
    pub(super) fn search_further(
        &self,
        precheck: &mut PrecheckResult,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
        texts: &dyn StreamTexts,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        if document.text_state() == TextState::Empty {
            return Ok(true);
        }
        self.follow_decisions(precheck, document);
        let has_same_reach = self.window.is_none() || precheck.arrival == *arrival;
        let is_current =
            precheck.changes == Some(self.changes) && precheck.without == without && has_same_reach;
        precheck.arrival = *arrival;
        precheck.without = without;
        let deferred = precheck.deferred.take();
        precheck
            .pending
            .extend(deferred.map(|deferred| deferred.into_pending()));
        if !is_current {
            self.begin_recheck(precheck, document);
        }
        if precheck.has_equal_text {
            precheck.awaits_keys = false;
            return Ok(true);
        }
        precheck.awaits_keys = self.defers_keys(precheck, document, turn);
        if precheck.awaits_keys || !self.recheck_compared(precheck, turn) {
            return Ok(false);
        }
        loop {
            if !self.compare_pending(precheck, document, texts, turn)? {
                return Ok(false);
            }
            if precheck.walk.is_none() {
                let next = self.partitions.next_number();
                if precheck.since >= next {
                    break;
                }
                precheck.walk = Some(self.begin_walk(precheck, document, next));
            }
            if !self.continue_walk(precheck, document, turn)? {
                return Ok(false);
            }
        }
        self.find_decided_matches(precheck, texts, turn)?;
        if precheck.found.is_none() && precheck.added.is_none() && !precheck.lists_all {
            precheck.added = Some(self.keys.key_extractor().extract_keys(document));
        }
        Ok(true)
    }

    /// Returns `true` if the keys of the document are missing and take more than a unit of the turn to make.
    fn defers_keys(
        &self,
        precheck: &PrecheckResult,
        document: &SketchedDocument,
        turn: &SearchTurn,
    ) -> bool {
        precheck.probed.is_empty() && self.keys.extraction_steps(document) > turn.unit_steps()
    }

    /// Begins to decide again which compared documents are visible, after a change of the matcher or of the reach.
    fn begin_recheck(&self, precheck: &mut PrecheckResult, document: &SketchedDocument) {
        precheck.changes = Some(self.changes);
        precheck.found = None;
        precheck.steps = 0;
        if precheck.generation != self.keys.generation() {
            // Documents before `since` were looked up under all orders that they were inserted under.
            precheck.generation = self.keys.generation();
            precheck.probed.clear();
            precheck.added = None;
            precheck.walk = None;
        }
        if !precheck.lists_all {
            precheck.found = self.find_equal_text(document, &precheck.arrival, precheck.without);
            precheck.has_equal_text = precheck.found.is_some();
            if precheck.has_equal_text {
                return;
            }
        }
        // A recheck that a change interrupts is done at once the next time, so that changes cannot hold up a check for ever.
        precheck.rechecks_at_once = !precheck.unchecked.is_empty();
        if precheck.unchecked.is_empty() {
            std::mem::swap(&mut precheck.unchecked, &mut precheck.compared);
        } else {
            precheck.unchecked.append(&mut precheck.compared);
        }
        precheck.pending.append(&mut precheck.passed_over);
    }

    /// Decides again which compared documents are visible, in units. Returns `true` if this is decided for all.
    fn recheck_compared(&self, precheck: &mut PrecheckResult, turn: &mut SearchTurn) -> bool {
        while !precheck.unchecked.is_empty() {
            if !turn.begin_unit() {
                return false;
            }
            let in_unit = if precheck.rechecks_at_once {
                usize::MAX
            } else {
                RECHECKED_IN_UNIT
            };
            let left = precheck.unchecked.len().saturating_sub(in_unit);
            let rechecked = (precheck.unchecked.len() - left) as u64;
            turn.add_steps(rechecked * STEPS_OF_CANDIDATE);
            while precheck.unchecked.len() > left
                && let Some(mut candidate) = precheck.unchecked.pop()
            {
                if self.partitions.is_dead(candidate.number) {
                    continue;
                }
                candidate.is_visible = self.is_visible(candidate.number, precheck);
                precheck.add_compared(candidate);
            }
        }
        precheck.unchecked = Vec::new();
        true
    }

    /// Returns `true` if a document that has not expired can be found by the check.
    pub(super) fn is_visible(&self, number: u64, precheck: &PrecheckResult) -> bool {
        let (partition, at) = self.partitions.locate_number(number);
        !partition.is_removed(at)
            && self.is_in_reach(partition.time_at(at), &precheck.arrival)
            && Some(partition.slot_at(at)) != precheck.without
    }

    fn begin_walk(
        &self,
        precheck: &mut PrecheckResult,
        document: &SketchedDocument,
        until: u64,
    ) -> KeyWalk {
        if precheck.probed.is_empty() {
            precheck.probed = self.keys.probe_keys(document);
            for probed in precheck.probed.iter().take(MOST_UNIT_KEYS) {
                self.buckets.prefetch_bucket(probed.key);
            }
        }
        KeyWalk::new(precheck.since, until)
    }

    /// Goes on with the look-up of keys. Returns `true` if it is complete: then all candidates of its range are
    /// pending.
    fn continue_walk(
        &self,
        precheck: &mut PrecheckResult,
        document: &SketchedDocument,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let Some(mut walk) = precheck.walk.take() else {
            return Ok(true);
        };
        while walk.next_key < precheck.probed.len() {
            if !turn.begin_unit() {
                precheck.walk = Some(walk);
                return Ok(false);
            }
            self.look_up_unit(&mut walk, precheck, document, turn);
        }
        if self.codes.is_some() && !turn.begin_unit() {
            precheck.walk = Some(walk);
            return Ok(false);
        }
        self.look_up_codes(&mut walk, document, turn)?;
        walk.sum_hits();
        precheck.since = walk.until;
        precheck.pending = walk.hits;
        // The next candidate is the last one.
        precheck.pending.reverse();
        Ok(true)
    }

    /// Looks up the next keys.
    fn look_up_unit(
        &self,
        walk: &mut KeyWalk,
        precheck: &PrecheckResult,
        document: &SketchedDocument,
        turn: &mut SearchTurn,
    ) {
        let low = walk.from.max(self.partitions.lowest_number());
        let keys = &precheck.probed[walk.next_key..];
        let keys = &keys[..walk.unit_keys.min(keys.len())];
        let own = self.prefilters.prefilter_of(document.set_summary());
        let own = self.prefilters.query_from(own);
        let (until, hits) = (walk.until, &mut walk.hits);
        let (before, mut entries) = (hits.len(), 0);
        let recent: Vec<_> = keys
            .iter()
            .filter(|probed| self.recent.may_contain(probed.key, low))
            .copied()
            .collect();
        self.buckets.visit_buckets(
            &recent,
            |probed| probed.key,
            low,
            |probed, number, prefilter, side| {
                entries += 1;
                if number < until && probed.finds_side(side) && !own.rules_out_match(prefilter) {
                    hits.push((number, probed.hit_on_side(side)));
                }
            },
        );
        let hits = hits.len() - before;
        walk.next_key += keys.len();
        walk.adapt_unit(hits);
        walk.limit_hits();
        turn.add_steps(
            keys.len() as u64 * STEPS_OF_KEY
                + entries * STEPS_OF_ENTRY
                + hits as u64 * STEPS_OF_HIT,
        );
    }

    /// Adds the documents with a near fingerprint.
    fn look_up_codes(
        &self,
        walk: &mut KeyWalk,
        document: &SketchedDocument,
        turn: &mut SearchTurn,
    ) -> Result<()> {
        let (Some(codes), Some(distance), Some(code)) =
            (&self.codes, self.plan.distance(), document.fingerprint())
        else {
            return Ok(());
        };
        let low = walk.from.max(self.partitions.lowest_number());
        let (until, hits) = (walk.until, &mut walk.hits);
        let before = hits.len();
        let mut add = |number: u64| {
            if (low..until).contains(&number) {
                hits.push((number, PrefixHits::default()));
            }
        };
        let next = self.partitions.next_number();
        if low > self.partitions.lowest_number() && next - low <= LONGEST_CODE_SCAN {
            self.partitions.visit_codes(low, |number, other| {
                if (other ^ code).count_ones() <= distance.get() {
                    add(number);
                }
            });
            turn.add_steps((next - low) * STEPS_OF_ENTRY);
        } else {
            codes.search_fingerprints(code, distance, |SequenceNumber(number), _| add(number))?;
            turn.add_steps(codes.buckets_per_search().saturating_mul(STEPS_OF_BUCKET));
        }
        turn.add_steps((hits.len() - before) as u64 * STEPS_OF_HIT);
        Ok(())
    }

    /// Compares pending candidates. Returns `true` if none is left.
    fn compare_pending(
        &self,
        precheck: &mut PrecheckResult,
        document: &SketchedDocument,
        texts: &dyn StreamTexts,
        turn: &mut SearchTurn,
    ) -> Result<bool> {
        let lists = Arc::clone(&precheck.lists);
        let arriving = ArrivingDocument {
            document,
            lists: &lists,
        };
        let low = self.partitions.lowest_number();
        let filter = ContainmentFilter::for_plan(&self.plan);
        while let Some(&(number, hits)) = precheck.pending.last() {
            if !turn.begin_unit() {
                return Ok(false);
            }
            precheck.pending.pop();
            turn.add_steps(STEPS_OF_CANDIDATE);
            let may_match = number >= low
                && filter.is_none_or(|filter| self.may_contain(filter, document, number, hits));
            if !may_match {
                continue;
            }
            let Some(candidate) = self.to_candidate(document, number) else {
                continue;
            };
            if !self.is_visible(number, precheck) {
                precheck.passed_over.push((number, hits));
                continue;
            }
            if self.is_candidate_decided(precheck, document, number, texts, turn)? {
                continue;
            }
            if let Some(known) = precheck.known.get(&candidate.order) {
                let compared = known.to_compared(&candidate);
                precheck.add_compared(compared);
                continue;
            }
            let (partition, at) = self.partitions.locate_number(number);
            let in_kept = partition.sketch_at(at);
            let compared = self.verifier.compare_candidate(
                self.verifier.budget_of(precheck),
                &candidate,
                in_kept,
                arriving,
                texts,
                turn,
            )?;
            let Some(compared) = compared else {
                let deferred = DeferredCandidate::new(candidate, hits, in_kept, &self.preparer);
                precheck.deferred = Some(Box::new(deferred));
                return Ok(false);
            };
            precheck.add_compared(compared);
        }
        Ok(true)
    }
}
