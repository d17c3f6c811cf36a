//! Stream deduplication: documents are checked and inserted one after another in one total order, while
//! old documents expire.
//!
//! A [`StreamMatcher`] stores kept documents and decides on the next one by the rule of
//! [`dedup`](crate::dedup): *a document is kept if and only if no kept document before it, within
//! the window, matches it*. A document that is not kept names its representative: the most similar kept
//! document, and the earliest of several. The plan, the sketches and the predicate are those of a
//! batch. So a stream gets the verdicts that [`find_verdicts`](crate::dedup::find_verdicts) gives
//! for the same documents with the same window.
//!
//! # How it works
//!
//! As in a batch, a document has bucket keys, and only documents that share one can match: its text,
//! bands of its signature, rare features of a short document, blocks of bits. One hash table holds the
//! keys of all kept documents. A feature is rare if it was rare among earlier documents. The prefix
//! filter is exact under any fixed order of features, so a document is looked up under each order that
//! live documents were inserted under. Fingerprints within a distance come from [`LiveIndex`].
//!
//! Documents are divided into *partitions* by arrival. When the window moves on, the oldest partition is
//! dropped as a whole: everything below a low-water mark has expired, so expiry needs no work per
//! document.
//!
//! # Cost
//!
//! Preparing a document ([`SketchedDocument`]) takes nearly all of the time and needs no access to the
//! matcher. A check reads one or two cache lines for every key, and reads texts only of candidates that
//! sketches do not rule out. Many threads can [check ahead](StreamMatcher::precheck), so that little is
//! left for the thread that inserts. A kept short document takes about 50 bytes and 23 for each of its
//! keys; the signature of a long one takes 4 bytes a slot. By containment, all features of a document are keys.
//! [`StreamMatcher::memory_by_part`] returns the
//! memory by part.
//!
//! Verification by edit distances takes time in proportion to the product of the lengths. The work of a check
//! can be [bounded](StreamMatcher::set_step_limit). By every measure a check can be done in
//! [turns](StreamMatcher::continue_precheck), so that one with many candidates does not hold a lock for long, and
//! long candidates can be compared [without the matcher](CandidateVerifier). The keys of a document with millions of
//! features are made [without it](KeyExtractor::extract_search_keys), too, and inserted in
//! [turns](StreamMatcher::insert_ahead).
//!
//! # Limits
//!
//! A matcher is not durable, knows no ids and holds no texts: these come from [`StreamTexts`], and a
//! [`DocumentStream`] adds both in memory. It has no clock, so the caller passes the time. Changes need exclusive access; any number of threads can check
//! at once.

mod buckets;
mod candidate_search;
mod candidate_verifier;
mod containment;
mod decided_texts;
mod document_stream;
mod keys;
mod pair_inputs;
mod partitions;
mod precheck;
mod prefilter;
mod rarity;
mod recent;
mod search_turn;
mod sketched_document;
#[cfg(test)]
mod tests;
mod window;

pub use candidate_verifier::CandidateVerifier;
pub use decided_texts::{DecisionPreview, KeptLocation, TextDecision};
pub use document_stream::{
    DocumentStream, DocumentVerdict, DuplicateOf, KeptDocument, StreamReach,
};
pub use keys::{DocumentKeys, KeyExtractor, SearchKeys};
pub use pair_inputs::StreamTexts;
pub use partitions::DocumentSlot;
pub use precheck::{KnownComparison, PrecheckResult};
pub use search_turn::SearchTurn;
pub use sketched_document::{DocumentPreparer, SketchedDocument};
pub use window::{ArrivalTime, StreamWindow, Timestamp};

use crate::error::Result;
use crate::hamming::live::{LiveIndex, SequenceNumber};
use crate::plan::MatchPlan;
use crate::recipe::Recipe;
use crate::similarity::{PairPredicate, Route, SketchRef};
use crate::text::AnalysisScratch;
use crate::types::{Distance, DocId, Similarity};
use buckets::StreamBuckets;
use candidate_verifier::CandidateDocument;
use decided_texts::DecidedTexts;
use keys::StreamKeys;
use partitions::TimePartitions;
use prefilter::PrefilterTable;
use recent::RecentKeys;

/// A kept document that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptMatch {
    /// Location of the kept document.
    pub slot: DocumentSlot,
    /// Place of the kept document in the total order.
    pub order: u64,
    /// Similarity of the two documents.
    pub similarity: Similarity,
    /// The way in which the pair was found.
    pub route: Route,
}

impl KeptMatch {
    /// Returns `true` if this match takes precedence: it is more similar, or equally similar and
    /// earlier.
    fn is_better_than(&self, other: &Self) -> bool {
        self.similarity > other.similarity
            || self.similarity == other.similarity && self.order < other.order
    }
}

/// The kept documents of a window; see the [module](self).
///
/// ```
/// use lookalike::stream::{StreamMatcher, DocumentSlot, StreamTexts, Timestamp};
/// use lookalike::plan::{MatchPlan, MatchSettings};
/// use lookalike::text::AnalysisScratch;
/// use lookalike::{Recipe, Result};
///
/// let recipe = Recipe::built_in("default")?;
/// let plan = MatchPlan::new(&recipe, MatchSettings::default())?;
/// let mut matcher = StreamMatcher::new(&recipe, &plan, None)?;
/// matcher.begin_partition(0, Timestamp(0))?;
///
/// struct Kept(Vec<&'static str>);
///
/// impl StreamTexts for Kept {
///     fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()> {
///         visit(self.0[slot.index as usize]);
///         Ok(())
///     }
/// }
///
/// let mut kept = Kept(Vec::new());
/// let mut repeats = Vec::new();
/// for (order, text) in ["老船长解开了缆绳", "別的事", "老船長解開了纜繩！"].into_iter().enumerate() {
///     let document = matcher.document_preparer().prepare_text(text, &mut AnalysisScratch::default());
///     let arrival = matcher.resolve_arrival(None, Timestamp(order as i64));
///     match matcher.find_match(&document, &arrival, &kept)? {
///         Some(found) => repeats.push((order, found.order, found.similarity.get())),
///         None => {
///             matcher.keep_document(&document, order as u64, arrival.time)?;
///             kept.0.push(text);
///         }
///     }
/// }
/// assert_eq!(repeats, [(2, 0, 1.0)]);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamMatcher {
    plan: MatchPlan,
    window: Option<StreamWindow>,
    preparer: DocumentPreparer,
    /// Newest time of a stored document.
    newest: Timestamp,
    partitions: TimePartitions,
    buckets: StreamBuckets,
    keys: StreamKeys,
    prefilters: PrefilterTable,
    codes: Option<LiveFingerprints>,
    verifier: CandidateVerifier,
    recent: RecentKeys,
    /// Number of changes other than insertions. After such a change, an earlier check may no longer
    /// hold.
    changes: u64,
    /// Number of the first document after the last change of the window. Documents before it were kept by
    /// another window.
    window_since: u64,
    /// Document that fills skipped places.
    blank: SketchedDocument,
    decided: DecidedTexts,
}

/// An index of fingerprints within a distance. A fingerprint has the number of its document.
#[derive(Debug)]
enum LiveFingerprints {
    Narrow(LiveIndex<u64>),
    Wide(LiveIndex<u128>),
}

impl LiveFingerprints {
    /// Returns `None` if the plan has no distance, or if candidates are found by blocks of bits.
    fn new(plan: &MatchPlan) -> Result<Option<Self>> {
        let Some(distance) = plan.distance() else {
            return Ok(None);
        };
        if plan.block_plan().is_some() || distance.get() > LiveIndex::<u64>::GREATEST_DISTANCE {
            return Ok(None);
        }
        Ok(Some(if plan.fingerprint_bits() <= u64::BITS {
            Self::Narrow(LiveIndex::new(plan.fingerprint_bits(), distance)?)
        } else {
            Self::Wide(LiveIndex::new(plan.fingerprint_bits(), distance)?)
        }))
    }

    fn insert_fingerprint(&self, code: u128, partition: u64) -> Result<SequenceNumber> {
        match self {
            Self::Narrow(live) => live.insert_code(code as u64, partition),
            Self::Wide(live) => live.insert_code(code, partition),
        }
    }

    fn remove_fingerprint(&self, seq: SequenceNumber) -> bool {
        match self {
            Self::Narrow(live) => live.remove_code(seq),
            Self::Wide(live) => live.remove_code(seq),
        }
    }

    fn expire_before(&self, partition: u64) {
        match self {
            Self::Narrow(live) => live.expire_before(partition),
            Self::Wide(live) => live.expire_before(partition),
        }
    }

    fn buckets_per_search(&self) -> u64 {
        match self {
            Self::Narrow(live) => live.buckets_per_search(),
            Self::Wide(live) => live.buckets_per_search(),
        }
    }

    fn search_fingerprints(
        &self,
        code: u128,
        distance: Distance,
        visit: impl FnMut(SequenceNumber, u32),
    ) -> Result<()> {
        match self {
            Self::Narrow(live) => live.search_within(code as u64, distance, visit),
            Self::Wide(live) => live.search_within(code, distance, visit),
        }
    }

    fn memory_bytes(&self) -> u64 {
        match self {
            Self::Narrow(live) => live.memory_bytes(),
            Self::Wide(live) => live.memory_bytes(),
        }
    }
}

/// Returns the match that takes precedence.
fn better_match(one: Option<KeptMatch>, other: Option<KeptMatch>) -> Option<KeptMatch> {
    match (one, other) {
        (Some(one), Some(other)) if other.is_better_than(&one) => Some(other),
        (one, other) => one.or(other),
    }
}

impl StreamMatcher {
    /// Returns an empty matcher. Without a window, documents are only forgotten by
    /// [`remove_document`](Self::remove_document).
    ///
    /// # Errors
    /// Fails if no index can search fingerprints of the plan's bits and distance.
    pub fn new(recipe: &Recipe, plan: &MatchPlan, window: Option<StreamWindow>) -> Result<Self> {
        let preparer = DocumentPreparer::new(recipe, plan);
        let codes = LiveFingerprints::new(plan)?;
        Ok(Self {
            plan: *plan,
            window,
            newest: Timestamp::BEGINNING,
            partitions: TimePartitions::new(preparer.for_partition()),
            buckets: StreamBuckets::default(),
            keys: StreamKeys::new(plan, codes.is_some()),
            prefilters: PrefilterTable::new(plan),
            codes,
            verifier: CandidateVerifier::new(plan, preparer.clone()),
            recent: RecentKeys::default(),
            changes: 0,
            window_since: 0,
            blank: preparer.prepare_text("", &mut AnalysisScratch::default()),
            decided: DecidedTexts::default(),
            preparer,
        })
    }

    /// Bounds the steps of verification of a document, where documents are compared as sequences. A check
    /// that takes more fails; a check [again](Self::update_precheck) counts the steps of the check before.
    /// The steps of a pair follow from its two texts, so the same check always fails or never does.
    ///
    /// Measures of features are not bounded, because their cost is linear in the lengths.
    pub fn set_step_limit(&mut self, limit: u64) {
        self.verifier.step_limit = limit;
    }

    /// Returns the [limit](Self::set_step_limit) of the steps of verification of a document.
    pub fn step_limit(&self) -> u64 {
        self.verifier.step_limit
    }

    /// Returns the steps of verification of all checks so far, including reading candidates.
    pub fn steps_taken(&self) -> u64 {
        self.verifier.steps_taken()
    }

    /// Returns the preparer, which can be used on any thread.
    pub fn document_preparer(&self) -> &DocumentPreparer {
        &self.preparer
    }

    /// Returns the match plan.
    pub fn plan(&self) -> &MatchPlan {
        &self.plan
    }

    /// Returns the window.
    pub fn window(&self) -> Option<&StreamWindow> {
        self.window.as_ref()
    }

    /// Replaces the window. The new one applies to all documents at once: those that are past it match nothing,
    /// and those that are within it can match again if their partition is not dropped yet. Times that documents
    /// have got by being [refreshed](Self::refresh_document) stay.
    pub fn change_window(&mut self, window: StreamWindow) {
        self.window = Some(window);
        self.window_since = self.partitions.next_number();
        self.changes += 1;
    }

    /// Returns the newest time of a stored document, or [`Timestamp::BEGINNING`] if there was none.
    pub fn newest_time(&self) -> Timestamp {
        self.newest
    }

    /// Raises the newest time of a stored document to `time`, without a document. So a stream whose oldest
    /// documents are gone continues with the clock that it had.
    pub fn restore_newest_time(&mut self, time: Timestamp) {
        self.newest = self.newest.max(time);
    }

    /// Returns the number of kept documents. It includes documents past the window whose partition is not
    /// dropped yet.
    pub fn len(&self) -> u64 {
        self.partitions.count_live()
    }

    /// Returns `true` if there are no kept documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Interprets the time of a document that arrives at `now`. A document that states no time has the
    /// time `now`.
    pub fn resolve_arrival(&self, stated: Option<Timestamp>, now: Timestamp) -> ArrivalTime {
        self.arrival_after(self.newest, stated, now)
    }

    fn arrival_after(
        &self,
        newest: Timestamp,
        stated: Option<Timestamp>,
        now: Timestamp,
    ) -> ArrivalTime {
        let stated = stated.unwrap_or(now);
        match &self.window {
            Some(window) => window.resolve_arrival(stated, now, newest),
            None => ArrivalTime {
                time: stated,
                clock: stated,
                late: false,
            },
        }
    }

    /// Interprets the times of documents that arrive one after another and are all stored.
    pub fn resolve_arrivals(
        &self,
        stated: impl Iterator<Item = Option<Timestamp>>,
        now: Timestamp,
    ) -> Vec<ArrivalTime> {
        let mut newest = self.newest;
        let arrivals = stated.map(|stated| {
            let arrival = self.arrival_after(newest, stated, now);
            if !arrival.late {
                newest = newest.max(arrival.time);
            }
            arrival
        });
        arrivals.collect()
    }

    /// Returns `true` if there is no partition or the newest one has lasted a 24th of the window. Then
    /// another partition should [begin](Self::begin_partition) before this document is stored, and before
    /// its final check.
    pub fn is_partition_due(&self, arrival: &ArrivalTime) -> bool {
        match (&self.window, self.partitions.newest_partition()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(window), Some(partition)) => {
                window.is_partition_over(partition.begin_time(), arrival.clock)
            }
        }
    }

    /// Begins a partition.
    ///
    /// If the wall clock was set back, documents may have times that are more than a window ahead of
    /// `clock`. From now on they count as a window ahead, and so does the newest time. Otherwise their
    /// partition would never expire, nor would any later one.
    ///
    /// # Errors
    /// Fails if `number` is not above those of all earlier partitions.
    pub fn begin_partition(&mut self, number: u64, clock: Timestamp) -> Result<()> {
        self.partitions.begin_partition(number, clock)?;
        if let Some(window) = &self.window {
            let farthest = window.latest_reached(clock);
            self.partitions.limit_newest_time(farthest);
            self.newest = self.newest.min(farthest);
        }
        Ok(())
    }

    /// Returns the number of the oldest partition if it has expired and is not the only one.
    pub fn expired_partition(&self, arrival: &ArrivalTime) -> Option<u64> {
        let oldest = self.partitions.oldest_of_several()?;
        self.has_expired(arrival).then(|| oldest.number())
    }

    /// Returns `true` if all documents of the oldest partition are past the window at this arrival.
    pub fn has_expired(&self, arrival: &ArrivalTime) -> bool {
        match (&self.window, self.partitions.oldest_partition()) {
            (Some(window), Some(oldest)) => window.has_passed(oldest.newest_time(), arrival.clock),
            _ => false,
        }
    }

    /// Drops the oldest partition with its documents.
    pub fn drop_partition(&mut self) {
        self.partitions.drop_oldest();
        if let (Some(codes), Some(oldest)) = (&self.codes, self.partitions.oldest_partition()) {
            codes.expire_before(oldest.number());
        }
        self.keys.forget_before(self.partitions.lowest_number());
        let partitions = &self.partitions;
        self.decided
            .forget_dead(|number| partitions.is_dead(number));
        self.changes += 1;
    }

    /// Returns the most similar kept document that matches; the earliest if several are equally
    /// similar.
    ///
    /// # Errors
    /// Fails if `texts` cannot provide the text of a candidate, or if verification takes more steps than are
    /// [allowed](StreamMatcher::set_step_limit).
    pub fn find_match(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        texts: &dyn StreamTexts,
    ) -> Result<Option<KeptMatch>> {
        self.check_without(document, arrival, None, texts)
    }

    /// Checks as [`find_match`](Self::find_match) does, but ignores the kept document at `without`.
    ///
    /// # Errors
    /// Fails as [`find_match`](Self::find_match) does.
    pub fn check_without(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
        texts: &dyn StreamTexts,
    ) -> Result<Option<KeptMatch>> {
        let mut precheck = self.begin_precheck(arrival);
        let turn = &mut SearchTurn::unlimited();
        self.continue_precheck(&mut precheck, document, arrival, without, texts, turn)?;
        Ok(precheck.found_match())
    }

    /// Returns up to `limit` kept documents that match, without the one at `without`: the most similar first, and
    /// of equally similar ones the earliest first. The first is that of [`check_without`](Self::check_without).
    ///
    /// Every candidate is verified, so the cost does not depend on `limit`.
    ///
    /// # Errors
    /// Fails as [`find_match`](Self::find_match) does.
    pub fn find_matches(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
        limit: usize,
        texts: &dyn StreamTexts,
    ) -> Result<Vec<KeptMatch>> {
        let mut listing = self.begin_listing(arrival);
        let turn = &mut SearchTurn::unlimited();
        self.continue_precheck(&mut listing, document, arrival, without, texts, turn)?;
        Ok(listing.list_matches(limit))
    }

    fn pair_predicate(&self) -> PairPredicate<'_> {
        PairPredicate::new(&self.plan)
    }

    /// Returns the earliest kept document with the same text, if no other match can take precedence.
    ///
    /// Why nothing else takes precedence: let E be the kept document with this text. A kept document D before
    /// E with similarity 1 would also match E, so E would not have been kept unless D was out of its reach.
    /// Then D is out of reach of the new document too, if that is not older than E. This fails where times are
    /// refreshed, with sentences, where equal texts may match different documents, and while there are documents
    /// that were kept by another window, because D may be in the reach of this one. It also fails where a person has
    /// decided about the text, because E and D may be decided as different.
    fn find_equal_text(
        &self,
        document: &SketchedDocument,
        arrival: &ArrivalTime,
        without: Option<DocumentSlot>,
    ) -> Option<KeptMatch> {
        let is_final = self.plan.equal_key().is_none()
            && !self.decided.has_text(document.text_key())
            && self.partitions.lowest_number() >= self.window_since
            && self
                .window
                .as_ref()
                .is_none_or(|window| !window.is_refreshing());
        let key = self.keys.text_key(document).filter(|_| is_final)?;
        let next = self.partitions.next_number();
        let mut earliest: Option<(KeptMatch, Timestamp)> = None;
        self.buckets.prefetch_bucket(key);
        let from = self
            .prefilters
            .query_from(self.prefilters.prefilter_of(document.set_summary()));
        self.buckets.visit_bucket(
            key,
            self.partitions.lowest_number(),
            |number, prefilter, _| {
                if number >= next || from.rules_out_match(prefilter) {
                    return;
                }
                let (partition, at) = self.partitions.locate_number(number);
                let order = partition.order_at(at);
                if partition.text_key_at(at) == document.text_key()
                    && self.is_in_reach(partition.time_at(at), arrival)
                    && !partition.is_removed(at)
                    && Some(partition.slot_at(at)) != without
                    && earliest.is_none_or(|(found, _)| order < found.order)
                {
                    let found = KeptMatch {
                        slot: partition.slot_at(at),
                        order,
                        similarity: Similarity::ONE,
                        route: Route::Exact,
                    };
                    earliest = Some((found, partition.time_at(at)));
                }
            },
        );
        let (found, time) = earliest?;
        (self.window.is_none() || arrival.time >= time).then_some(found)
    }

    fn is_in_reach(&self, time: Timestamp, arrival: &ArrivalTime) -> bool {
        self.window
            .as_ref()
            .is_none_or(|window| window.reaches_time(time, arrival))
    }

    /// Returns a document as a candidate, if the plan makes it one. It may be removed or out of reach.
    fn to_candidate(&self, document: &SketchedDocument, number: u64) -> Option<CandidateDocument> {
        let (partition, at) = self.partitions.locate_number(number);
        let route = self
            .pair_predicate()
            .candidates(document.sketch_ref(), partition.sketch_at(at))?;
        Some(CandidateDocument {
            number,
            slot: partition.slot_at(at),
            order: partition.order_at(at),
            route,
        })
    }

    /// Inserts a document as kept into the newest partition. `order` is its place in the total order.
    ///
    /// # Errors
    /// Fails if there is no partition, or if the number of kept documents reaches its limit. Nothing has
    /// changed then.
    pub fn keep_document(
        &mut self,
        document: &SketchedDocument,
        order: u64,
        time: Timestamp,
    ) -> Result<DocumentSlot> {
        let keys = self.keys.key_extractor().extract_keys(document);
        self.add_document(document, &keys, order, time)
    }

    /// Inserts a document under those of its bucket keys that were not inserted
    /// [ahead](Self::insert_ahead).
    fn add_document(
        &mut self,
        document: &SketchedDocument,
        keys: &DocumentKeys,
        order: u64,
        time: Timestamp,
    ) -> Result<DocumentSlot> {
        let number = self.partitions.next_number();
        let slot = self.partitions.next_slot()?;
        if let Some(codes) = &self.codes {
            // Every document takes a number in the index, so that its numbers are those of documents.
            let seq =
                codes.insert_fingerprint(document.fingerprint().unwrap_or(0), slot.partition)?;
            debug_assert_eq!(seq.0, number);
            if document.fingerprint().is_none() {
                codes.remove_fingerprint(seq);
            }
        }
        self.partitions.push_document(document, order, time);
        self.decided.note_kept(document.text_key(), number);
        self.insert_keys(document, keys, number, keys.keys.len());
        let partitions = &self.partitions;
        let dead = |number: u64| partitions.is_dead(number);
        self.buckets.sweep_shard(partitions.lowest_number(), dead);
        let counted = keys.inserted_ahead(number).features;
        if self
            .keys
            .learn_features(document, counted, number, partitions)
        {
            self.changes += 1;
        }
        self.note_time(time);
        Ok(slot)
    }

    /// Inserts the keys of a document before the place `until` that are not inserted yet.
    fn insert_keys(
        &mut self,
        document: &SketchedDocument,
        keys: &DocumentKeys,
        number: u64,
        until: usize,
    ) {
        let inserted = keys.inserted_ahead(number).keys;
        if inserted == 0 {
            // Later keys of the document are in the set together with these.
            self.recent.begin_anew(number);
        }
        let partitions = &self.partitions;
        let dead = |number: u64| partitions.is_dead(number);
        let prefilter = self.prefilters.prefilter_of(document.set_summary());
        for &(key, side) in &keys.keys[inserted..until] {
            let low = partitions.lowest_number();
            self.buckets
                .insert_document(key, number, prefilter, side, low, dead);
            self.recent.add_key(key);
        }
    }

    /// Fills the next place of the newest partition for a document that is no longer there, so that later
    /// documents keep their places. No check finds it. `order` is its place in the total order.
    ///
    /// # Errors
    /// Fails as [`keep_document`](Self::keep_document) does.
    pub fn skip_place(&mut self, order: u64) -> Result<DocumentSlot> {
        let slot = self.partitions.next_slot()?;
        if let Some(codes) = &self.codes {
            let seq = codes.insert_fingerprint(0, slot.partition)?;
            codes.remove_fingerprint(seq);
        }
        self.partitions
            .push_document(&self.blank, order, Timestamp::BEGINNING);
        self.partitions.remove_document(slot);
        Ok(slot)
    }

    /// Records the time of a document that is stored with the newest partition but not kept.
    pub fn note_time(&mut self, time: Timestamp) {
        self.newest = self.newest.max(time);
        self.partitions.note_time(time);
    }

    /// Refreshes a kept document: its window now runs from `time`, that of a duplicate. Its partition
    /// stays as long as the document does.
    pub fn refresh_document(&mut self, slot: DocumentSlot, time: Timestamp) {
        self.partitions.refresh_document(slot, time);
        self.changes += 1;
    }

    /// Removes a kept document. Returns `true` if it was there.
    pub fn remove_document(&mut self, slot: DocumentSlot) -> bool {
        let Some(number) = self.partitions.remove_document(slot) else {
            return false;
        };
        self.changes += 1;
        let (partition, at) = self.partitions.locate_number(number);
        self.decided.forget_kept(partition.text_key_at(at), number);
        if let Some(codes) = &self.codes {
            codes.remove_fingerprint(SequenceNumber(number));
        }
        true
    }

    /// Returns the order and the time of a kept document, if it is there.
    pub fn kept_document(&self, slot: DocumentSlot) -> Option<(u64, Timestamp)> {
        self.partitions.kept_document(slot)
    }

    /// Returns the bytes of memory by part.
    pub fn memory_by_part(&self) -> [(&'static str, u64); 6] {
        [
            ("documents", self.partitions.memory_bytes()),
            ("keys", self.buckets.memory_bytes()),
            ("rarity", self.keys.memory_bytes()),
            (
                "fingerprints",
                self.codes.as_ref().map_or(0, |codes| codes.memory_bytes()),
            ),
            ("features", self.verifier.inputs.memory_bytes()),
            ("decisions", self.decided.memory_bytes()),
        ]
    }
}

/// Number of a prepared document in its sketches, where it is the only one.
const ONLY_DOCUMENT: DocId = DocId(0);

impl SketchedDocument {
    fn sketch_ref(&self) -> SketchRef<'_> {
        SketchRef {
            sketches: self.sketches(),
            document: ONLY_DOCUMENT,
        }
    }
}
