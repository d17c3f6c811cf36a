//! Stream deduplication: documents are checked and inserted one after another in one total order, while
//! old documents expire.
//!
//! A [`Matcher`] stores kept documents and decides on the next one by the rule of
//! [`matching`](crate::matching): *a document is kept if and only if no kept document before it, within
//! the window, matches it*. A document that is not kept names its representative: the most similar kept
//! document, and the earliest of several. The plan, the sketches and the predicate are those of a
//! batch. So a stream gets the verdicts that [`find_verdicts`](crate::matching::find_verdicts) gives
//! for the same documents with the same window.
//!
//! # How it works
//!
//! As in a batch, a document has bucket keys, and only documents that share one can match: its text,
//! bands of its signature, rare features of a short document, blocks of bits. One hash table holds the
//! keys of all kept documents. A feature is rare if it was rare among earlier documents. The prefix
//! filter is exact under any fixed order of features, so a document is looked up under each order that
//! live documents were inserted under. Fingerprints within a distance come from [`Live`].
//!
//! Documents are divided into *sections* by arrival. When the window moves on, the oldest section is
//! dropped as a whole: everything below a low-water mark has expired, so expiry needs no work per
//! document.
//!
//! # Cost
//!
//! Preparing a document ([`Prepared`]) takes nearly all of the time and needs no access to the matcher.
//! A check reads one or two cache lines for every key, and reads texts only of candidates that sketches
//! do not rule out. Many threads can [check ahead](Matcher::look_ahead), so that little is left for the
//! thread that inserts. A kept short document takes about 50 bytes and 23 for each of its keys; the
//! signature of a long one takes 4 bytes a slot. [`Matcher::memory`] returns the memory by part.
//!
//! Verification by edit distances takes time in proportion to the product of the lengths. The work of a check
//! can be [bounded](Matcher::set_step_limit).
//!
//! # Limits
//!
//! A matcher is not durable, knows no ids and holds no texts: these come from [`Texts`]. It has no
//! clock, so the caller passes the time. Changes need exclusive access; any number of threads can check
//! at once.

mod ahead;
mod buckets;
mod glance;
mod keys;
mod material;
mod prepared;
mod rarity;
mod recent;
mod sections;
#[cfg(test)]
mod tests;
mod window;

pub use ahead::Ahead;
pub use keys::{Keyed, Keyer};
pub use material::Texts;
pub use prepared::{Prepared, Preparer};
pub use sections::Slot;
pub use window::{Arrival, Time, Window};

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::hamming::live::{Live, Seq};
use crate::matching::{Route, Rule, Side, Sketched};
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::text::Scratch;
use crate::types::{Distance, DocId, Similarity};
use crate::verify::StepBudget;
use buckets::Buckets;
use glance::Glances;
use keys::Keys;
use material::Material;
use rarity::Asked;
use recent::Recent;
use sections::Sections;

/// A kept document that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Location of the kept document.
    pub slot: Slot,
    /// Place of the kept document in the total order.
    pub order: u64,
    /// Similarity of the two documents.
    pub similarity: Similarity,
    /// The way in which the pair was found.
    pub route: Route,
}

impl Found {
    /// Returns `true` if this match takes precedence: it is more similar, or equally similar and
    /// earlier.
    fn beats(&self, other: &Self) -> bool {
        self.similarity > other.similarity
            || self.similarity == other.similarity && self.order < other.order
    }
}

/// The kept documents of a window; see the [module](self).
///
/// ```
/// use lookalike::online::{Matcher, Slot, Texts, Time};
/// use lookalike::plan::{Plan, Settings};
/// use lookalike::text::Scratch;
/// use lookalike::{Recipe, Result};
///
/// let recipe = Recipe::named("default")?;
/// let plan = Plan::new(&recipe, Settings::default())?;
/// let mut matcher = Matcher::new(&recipe, &plan, None)?;
/// matcher.begin_section(0, Time(0))?;
///
/// struct Kept(Vec<&'static str>);
///
/// impl Texts for Kept {
///     fn text(&self, slot: Slot, visit: &mut dyn FnMut(&str)) -> Result<()> {
///         visit(self.0[slot.index as usize]);
///         Ok(())
///     }
/// }
///
/// let mut kept = Kept(Vec::new());
/// let mut repeats = Vec::new();
/// for (order, text) in ["老船长解开了缆绳", "別的事", "老船長解開了纜繩！"].into_iter().enumerate() {
///     let document = matcher.preparer().text(text, &mut Scratch::default());
///     let arrival = matcher.arrival(None, Time(order as i64));
///     match matcher.check(&document, &arrival, &kept)? {
///         Some(found) => repeats.push((order, found.order, found.similarity.get())),
///         None => {
///             matcher.keep(&document, order as u64, arrival.time)?;
///             kept.0.push(text);
///         }
///     }
/// }
/// assert_eq!(repeats, [(2, 0, 1.0)]);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Debug)]
pub struct Matcher {
    plan: Plan,
    window: Option<Window>,
    preparer: Preparer,
    /// Newest time of a stored document.
    newest: Time,
    sections: Sections,
    buckets: Buckets,
    keys: Keys,
    glances: Glances,
    codes: Option<Codes>,
    material: Material,
    recent: Recent,
    /// Number of changes other than insertions. After such a change, an earlier check may no longer
    /// hold.
    changes: u64,
    /// Steps of verification that a check may take where documents are compared as sequences.
    step_limit: u64,
    /// Steps of verification of all checks so far.
    steps_taken: AtomicU64,
    /// Document that fills skipped places.
    blank: Prepared,
}

/// An index of fingerprints within a distance. A fingerprint has the number of its document.
#[derive(Debug)]
enum Codes {
    Narrow(Live<u64>),
    Wide(Live<u128>),
}

impl Codes {
    /// Returns `None` if the plan has no distance, or if candidates are found by blocks of bits.
    fn new(plan: &Plan) -> Result<Option<Self>> {
        let Some(distance) = plan.distance() else {
            return Ok(None);
        };
        if plan.blocks().is_some() || distance.get() > Live::<u64>::GREATEST_DISTANCE {
            return Ok(None);
        }
        Ok(Some(if plan.bits() <= u64::BITS {
            Self::Narrow(Live::new(plan.bits(), distance)?)
        } else {
            Self::Wide(Live::new(plan.bits(), distance)?)
        }))
    }

    fn insert(&self, code: u128, section: u64) -> Result<Seq> {
        match self {
            Self::Narrow(live) => live.insert(code as u64, section),
            Self::Wide(live) => live.insert(code, section),
        }
    }

    fn remove(&self, seq: Seq) -> bool {
        match self {
            Self::Narrow(live) => live.remove(seq),
            Self::Wide(live) => live.remove(seq),
        }
    }

    fn expire_before(&self, section: u64) {
        match self {
            Self::Narrow(live) => live.expire_before(section),
            Self::Wide(live) => live.expire_before(section),
        }
    }

    fn search(&self, code: u128, distance: Distance, visit: impl FnMut(Seq, u32)) -> Result<()> {
        match self {
            Self::Narrow(live) => live.search(code as u64, distance, visit),
            Self::Wide(live) => live.search(code, distance, visit),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Narrow(live) => live.bytes(),
            Self::Wide(live) => live.bytes(),
        }
    }
}

/// Returns the match that takes precedence.
fn better(one: Option<Found>, other: Option<Found>) -> Option<Found> {
    match (one, other) {
        (Some(one), Some(other)) if other.beats(&one) => Some(other),
        (one, other) => one.or(other),
    }
}

/// A candidate that is not verified yet.
struct Candidate {
    number: u64,
    slot: Slot,
    order: u64,
    route: Route,
}

impl Matcher {
    /// Returns an empty matcher. Without a window, documents are only forgotten by
    /// [`remove`](Self::remove).
    ///
    /// # Errors
    /// Fails if no index can search fingerprints of the plan's bits and distance.
    pub fn new(recipe: &Recipe, plan: &Plan, window: Option<Window>) -> Result<Self> {
        let preparer = Preparer::new(recipe, plan);
        let codes = Codes::new(plan)?;
        Ok(Self {
            plan: *plan,
            window,
            newest: Time::BEGINNING,
            sections: Sections::new(preparer.for_section()),
            buckets: Buckets::default(),
            keys: Keys::new(plan, codes.is_some()),
            glances: Glances::new(plan),
            codes,
            material: Material::new(preparer.clone()),
            recent: Recent::default(),
            changes: 0,
            step_limit: u64::MAX,
            steps_taken: AtomicU64::new(0),
            blank: preparer.text("", &mut Scratch::default()),
            preparer,
        })
    }

    /// Bounds the steps of verification of a document, where documents are compared as sequences. A check
    /// that takes more fails; a check [again](Self::check_again) counts the steps of the check before.
    /// The steps of a pair follow from its two texts, so the same check always fails or never does.
    ///
    /// Measures of features are not bounded, because their cost is linear in the lengths.
    pub fn set_step_limit(&mut self, limit: u64) {
        self.step_limit = limit;
    }

    /// Returns the steps of verification of all checks so far, including reading candidates.
    pub fn steps_taken(&self) -> u64 {
        self.steps_taken.load(Ordering::Relaxed)
    }

    /// Returns the preparer, which can be used on any thread.
    pub fn preparer(&self) -> &Preparer {
        &self.preparer
    }

    /// Returns the match plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the window.
    pub fn window(&self) -> Option<&Window> {
        self.window.as_ref()
    }

    /// Returns the number of kept documents. It includes documents past the window whose section is not
    /// dropped yet.
    pub fn len(&self) -> u64 {
        self.sections.live()
    }

    /// Returns `true` if there are no kept documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Interprets the time of a document that arrives at `now`. A document that states no time has the
    /// time `now`.
    pub fn arrival(&self, stated: Option<Time>, now: Time) -> Arrival {
        self.arrival_after(self.newest, stated, now)
    }

    fn arrival_after(&self, newest: Time, stated: Option<Time>, now: Time) -> Arrival {
        let stated = stated.unwrap_or(now);
        match &self.window {
            Some(window) => window.arrival(stated, now, newest),
            None => Arrival {
                time: stated,
                clock: stated,
                late: false,
            },
        }
    }

    /// Interprets the times of documents that arrive one after another and are all stored.
    pub fn arrivals(&self, stated: impl Iterator<Item = Option<Time>>, now: Time) -> Vec<Arrival> {
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

    /// Returns `true` if there is no section or the newest one has lasted a 24th of the window. Then
    /// another section should [begin](Self::begin_section) before this document is stored, and before
    /// its final check.
    pub fn is_section_due(&self, arrival: &Arrival) -> bool {
        match (&self.window, self.sections.newest()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(window), Some(section)) => window.is_over(section.began(), arrival.clock),
        }
    }

    /// Begins a section.
    ///
    /// If the wall clock was set back, documents may have times that are more than a window ahead of
    /// `clock`. From now on they count as a window ahead, and so does the newest time. Otherwise their
    /// section would never expire, nor would any later one.
    ///
    /// # Errors
    /// Fails if `number` is not above those of all earlier sections.
    pub fn begin_section(&mut self, number: u64, clock: Time) -> Result<()> {
        self.sections.begin(number, clock)?;
        if let Some(window) = &self.window {
            let farthest = window.farthest(clock);
            self.sections.hold_back(farthest);
            self.newest = self.newest.min(farthest);
        }
        Ok(())
    }

    /// Returns the number of the oldest section if it has expired and is not the only one.
    pub fn expired_section(&self, arrival: &Arrival) -> Option<u64> {
        let oldest = self.sections.oldest_of_several()?;
        self.has_expired(arrival).then(|| oldest.number())
    }

    /// Returns `true` if all documents of the oldest section are past the window at this arrival.
    pub fn has_expired(&self, arrival: &Arrival) -> bool {
        match (&self.window, self.sections.oldest()) {
            (Some(window), Some(oldest)) => window.has_passed(oldest.newest_time(), arrival.clock),
            _ => false,
        }
    }

    /// Drops the oldest section with its documents.
    pub fn drop_section(&mut self) {
        self.sections.drop_oldest();
        if let (Some(codes), Some(oldest)) = (&self.codes, self.sections.oldest()) {
            codes.expire_before(oldest.number());
        }
        self.keys.forget_before(self.sections.low());
        self.changes += 1;
    }

    /// Returns the most similar kept document that matches; the earliest if several are equally
    /// similar.
    ///
    /// # Errors
    /// Fails if `texts` cannot provide the text of a candidate, or if verification takes more steps than are
    /// [allowed](Matcher::set_step_limit).
    pub fn check(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        texts: &dyn Texts,
    ) -> Result<Option<Found>> {
        self.check_without(document, arrival, None, texts)
    }

    /// Checks as [`check`](Self::check) does, but ignores the kept document at `without`.
    ///
    /// # Errors
    /// Fails as [`check`](Self::check) does.
    pub fn check_without(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        without: Option<Slot>,
        texts: &dyn Texts,
    ) -> Result<Option<Found>> {
        Ok(self.look(document, arrival, without, texts)?.found())
    }

    /// Verifies candidates within the step limit. Returns the best match, and the steps taken, to which those
    /// of the check before are added.
    fn best(
        &self,
        document: &Prepared,
        candidates: Vec<Candidate>,
        texts: &dyn Texts,
        steps_before: u64,
    ) -> Result<(Option<Found>, u64)> {
        let mut budget = StepBudget::new(match self.plan.of_sequences() {
            Some(_) => self.step_limit.saturating_sub(steps_before),
            None => u64::MAX,
        });
        let best = self.find_best(document, candidates, texts, &mut budget);
        let steps = budget.taken();
        self.steps_taken.fetch_add(steps, Ordering::Relaxed);
        Ok((best?, steps_before.saturating_add(steps)))
    }

    fn find_best(
        &self,
        document: &Prepared,
        candidates: Vec<Candidate>,
        texts: &dyn Texts,
        budget: &mut StepBudget,
    ) -> Result<Option<Found>> {
        let new = self.material.of_new(document);
        let mut best: Option<Found> = None;
        for candidate in candidates {
            let (section, at) = self.sections.at(candidate.number);
            let in_kept = section.sketched(at);
            let kept = self.material.of_kept(&candidate, section.key(at), texts);
            budget.take(self.rule().count_reading_steps(candidate.route, in_kept))?;
            let similarity = self.rule().check_within(
                candidate.route,
                (document.sketched(), &new),
                (in_kept, &kept),
                budget,
            )?;
            let found = similarity.map(|similarity| Found {
                slot: candidate.slot,
                order: candidate.order,
                similarity,
                route: candidate.route,
            });
            best = better(best, found);
        }
        Ok(best)
    }

    fn rule(&self) -> Rule<'_> {
        Rule::new(&self.plan)
    }

    /// Returns the earliest kept document with the same text, if no other match can take precedence.
    ///
    /// An earlier kept document with the same similarity of 1 would also match the equal document,
    /// which would then not have been kept, unless the two were out of each other's reach. If the new
    /// document is not older than the equal one, a document out of reach of the equal one is also out
    /// of reach of the new one. This reasoning fails where times are refreshed, and with sentences,
    /// where equal texts may match different documents.
    fn equal(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        without: Option<Slot>,
    ) -> Option<Found> {
        let settled = self.plan.sentences().is_none()
            && self
                .window
                .as_ref()
                .is_none_or(|window| !window.refreshes());
        let key = self.keys.of_text(document).filter(|_| settled)?;
        let mut earliest: Option<(Found, Time)> = None;
        self.buckets.prefetch(key);
        let from = self.glances.from(self.glances.of(document.brief()));
        self.buckets
            .visit(key, self.sections.low(), |number, glance, _| {
                if from.rules_out(glance) {
                    return;
                }
                let (section, at) = self.sections.at(number);
                let order = section.order(at);
                if section.key(at) == document.key()
                    && self.in_reach(section.time(at), arrival)
                    && !section.is_removed(at)
                    && Some(section.slot(at)) != without
                    && earliest.is_none_or(|(found, _)| order < found.order)
                {
                    let found = Found {
                        slot: section.slot(at),
                        order,
                        similarity: Similarity::ONE,
                        route: Route::Exact,
                    };
                    earliest = Some((found, section.time(at)));
                }
            });
        let (found, time) = earliest?;
        (self.window.is_none() || arrival.time >= time).then_some(found)
    }

    fn in_reach(&self, time: Time, arrival: &Arrival) -> bool {
        self.window
            .as_ref()
            .is_none_or(|window| window.reaches(time, arrival))
    }

    /// Returns the kept documents that the plan makes candidates, by ascending number.
    fn candidates(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        keys: &[Asked],
    ) -> Result<Vec<Candidate>> {
        let from = self.glances.from(self.glances.of(document.brief()));
        let (low, mut numbers) = (self.sections.low(), Vec::new());
        let found = |asked: Asked, number, glance, side| {
            if asked.finds(side) && !from.rules_out(glance) {
                numbers.push(number);
            }
        };
        self.buckets.visit_all(keys, |asked| asked.key, low, found);
        if let (Some(codes), Some(distance), Some(code)) =
            (&self.codes, self.plan.distance(), document.code())
        {
            codes.search(code, distance, |Seq(number), _| numbers.push(number))?;
        }
        numbers.sort_unstable();
        numbers.dedup();
        let candidate = |number: u64| self.candidate(document, arrival, number);
        Ok(numbers.into_iter().filter_map(candidate).collect())
    }

    /// Returns a document as a candidate, if it is not removed, is within reach, and the plan makes it
    /// one.
    fn candidate(&self, document: &Prepared, arrival: &Arrival, number: u64) -> Option<Candidate> {
        let (section, at) = self.sections.at(number);
        let route = self
            .rule()
            .candidates(document.sketched(), section.sketched(at))?;
        if section.is_removed(at) || !self.in_reach(section.time(at), arrival) {
            return None;
        }
        Some(Candidate {
            number,
            slot: section.slot(at),
            order: section.order(at),
            route,
        })
    }

    /// Inserts a document as kept into the newest section. `order` is its place in the total order.
    ///
    /// # Errors
    /// Fails if there is no section, or if the number of kept documents reaches its limit. Nothing has
    /// changed then.
    pub fn keep(&mut self, document: &Prepared, order: u64, time: Time) -> Result<Slot> {
        let keys = self.keys.to_add(document);
        self.add(document, &keys, order, time)
    }

    /// Inserts a document under its bucket keys.
    fn add(
        &mut self,
        document: &Prepared,
        keys: &[(u64, Side)],
        order: u64,
        time: Time,
    ) -> Result<Slot> {
        let number = self.sections.next();
        let slot = self.sections.next_slot()?;
        if let Some(codes) = &self.codes {
            // Every document takes a number in the index, so that its numbers are those of documents.
            let seq = codes.insert(document.code().unwrap_or(0), slot.section)?;
            debug_assert_eq!(seq.0, number);
            if document.code().is_none() {
                codes.remove(seq);
            }
        }
        self.sections.push(document, order, time);
        let sections = &self.sections;
        let dead = |number: u64| sections.is_dead(number);
        let glance = self.glances.of(document.brief());
        self.recent.begin(number);
        for &(key, side) in keys {
            let entry = (number, glance, side);
            self.buckets.insert(key, entry, sections.low(), dead);
            self.recent.add(key);
        }
        self.buckets.sweep(sections.low(), dead);
        if self.keys.learn(document, number, sections) {
            self.changes += 1;
        }
        self.note(time);
        Ok(slot)
    }

    /// Fills the next place of the newest section for a document that is no longer there, so that later
    /// documents keep their places. No check finds it. `order` is its place in the total order.
    ///
    /// # Errors
    /// Fails as [`keep`](Self::keep) does.
    pub fn skip_place(&mut self, order: u64) -> Result<Slot> {
        let slot = self.sections.next_slot()?;
        if let Some(codes) = &self.codes {
            let seq = codes.insert(0, slot.section)?;
            codes.remove(seq);
        }
        self.sections.push(&self.blank, order, Time::BEGINNING);
        self.sections.remove(slot);
        Ok(slot)
    }

    /// Records the time of a document that is stored with the newest section but not kept.
    pub fn note(&mut self, time: Time) {
        self.newest = self.newest.max(time);
        self.sections.note(time);
    }

    /// Refreshes a kept document: its window now runs from `time`, that of a duplicate. Its section
    /// stays as long as the document does.
    pub fn refresh(&mut self, slot: Slot, time: Time) {
        self.sections.refresh(slot, time);
        self.changes += 1;
    }

    /// Removes a kept document. Returns `true` if it was there.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let Some(number) = self.sections.remove(slot) else {
            return false;
        };
        self.changes += 1;
        if let Some(codes) = &self.codes {
            codes.remove(Seq(number));
        }
        true
    }

    /// Hides a kept document from all checks until it is [brought back](Self::bring_back).
    pub fn set_aside(&mut self, slot: Slot) {
        self.sections.remove(slot);
        self.changes += 1;
    }

    /// Makes a document visible again that was [set aside](Self::set_aside).
    pub fn bring_back(&mut self, slot: Slot) {
        self.sections.bring_back(slot);
        self.changes += 1;
    }

    /// Returns the order and the time of a kept document, if it is there.
    pub fn kept(&self, slot: Slot) -> Option<(u64, Time)> {
        self.sections.kept(slot)
    }

    /// Returns the bytes of memory by part.
    pub fn memory(&self) -> [(&'static str, u64); 5] {
        [
            ("documents", self.sections.bytes()),
            ("keys", self.buckets.bytes()),
            ("rarity", self.keys.bytes()),
            (
                "fingerprints",
                self.codes.as_ref().map_or(0, |codes| codes.bytes()),
            ),
            ("features", self.material.bytes()),
        ]
    }
}

/// Number of a prepared document in its sketches, where it is the only one.
const ALONE: DocId = DocId(0);

impl Prepared {
    fn sketched(&self) -> Sketched<'_> {
        Sketched {
            sketches: self.sketches(),
            document: ALONE,
        }
    }
}
