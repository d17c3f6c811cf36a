//! Check and insert: one document after another, in one total order, while older ones are forgotten.
//!
//! A [`Matcher`] remembers kept documents and answers for the next one by the rule of
//! [`matching`](crate::matching): *x is kept iff no kept y before x, in the window, matches it*; a
//! document that is not kept names the most similar kept one, of equals the earliest. It uses the
//! plan, the sketches and the predicate of a batch, so a stream gets the verdicts that the same
//! documents get from [`find_verdicts`](crate::matching::find_verdicts) with the same window.
//!
//! # How it works
//!
//! As in a batch, a document has keys, and only documents that share one can match: bands of its
//! signature, rare features of a short one, blocks of bits, its text. The keys of kept documents stand
//! in one table. Rare is what was rare among the documents before; since the prefix filter
//! is exact under any fixed order of features, a document is looked up under each order that live
//! documents were added under. Fingerprints within a distance come from
//! [`Live`].
//!
//! Documents stand in *sections* by arrival. The window slides by dropping the oldest
//! section whole: what has expired is below a low-water mark, so nothing is done per document.
//!
//! # What it costs
//!
//! Making a [`Prepared`] document takes nearly all of the time and needs nothing of the matcher. The
//! check reads a cache line or two for every key, and texts only of candidates that sketches do not
//! rule out. It may be done [ahead](Matcher::look_ahead) by many threads, so that little is left for the
//! one that adds. A kept short document takes about 50 bytes and 23 for each of its keys; signatures of
//! long ones take 4 bytes a slot. [`Matcher::memory`] says it by part.
//!
//! Verification by edit distances takes time in proportion to the product of the lengths. What a check may
//! spend on it can be [bounded](Matcher::set_step_limit).
//!
//! # What it does not do
//!
//! It is not durable, knows no ids and holds no texts: these come from [`Texts`]. It has no clock: the
//! caller says what time it is. One thread changes it at a time; any number check beside one another.

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
    /// Where it stands.
    pub slot: Slot,
    /// Its place in the total order.
    pub order: u64,
    /// How similar it is.
    pub similarity: Similarity,
    /// How it was found.
    pub route: Route,
}

impl Found {
    /// Whether it is the better evidence: the more similar, of equals the earlier.
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
    /// The newest time of a stored document.
    newest: Time,
    sections: Sections,
    buckets: Buckets,
    keys: Keys,
    glances: Glances,
    codes: Option<Codes>,
    material: Material,
    recent: Recent,
    /// Goes up with every change but an addition: what was found before may not hold any more.
    changes: u64,
    /// Steps of verification that a check may take where documents are compared as sequences.
    step_limit: u64,
    /// Steps of verification of all checks so far.
    steps_taken: AtomicU64,
    /// Stands in the places that are skipped.
    blank: Prepared,
}

/// Fingerprints within a distance: a fingerprint's number is that of its document.
#[derive(Debug)]
enum Codes {
    Narrow(Live<u64>),
    Wide(Live<u128>),
}

impl Codes {
    /// None where candidates come by blocks of bits.
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

/// The better evidence of two.
fn better(one: Option<Found>, other: Option<Found>) -> Option<Found> {
    match (one, other) {
        (Some(one), Some(other)) if other.beats(&one) => Some(other),
        (one, other) => one.or(other),
    }
}

/// A candidate before it is compared.
struct Candidate {
    number: u64,
    slot: Slot,
    order: u64,
    route: Route,
}

impl Matcher {
    /// An empty matcher. Without a window nothing is ever forgotten but by
    /// [`remove`](Self::remove).
    ///
    /// # Errors
    /// If the plan asks for fingerprints that cannot be searched.
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

    /// Makes documents ready to be checked, on any thread.
    pub fn preparer(&self) -> &Preparer {
        &self.preparer
    }

    /// How candidates are found and checked.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The window.
    pub fn window(&self) -> Option<&Window> {
        self.window.as_ref()
    }

    /// How many kept documents are remembered, those included that are past the window and wait for
    /// their section to be dropped.
    pub fn len(&self) -> u64 {
        self.sections.live()
    }

    /// Whether no kept document is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a document's time means when it arrives at `now`; one that states no time is of now.
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

    /// What the times of documents mean that arrive one after another and are all stored.
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

    /// Whether the newest section has lasted a 24th of the window: then another should
    /// [begin](Self::begin_section) before this arrival is stored, and before it is checked for good.
    pub fn is_section_due(&self, arrival: &Arrival) -> bool {
        match (&self.window, self.sections.newest()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(window), Some(section)) => window.is_over(section.began(), arrival.clock),
        }
    }

    /// Begins a section. Its number must be above those of all sections before.
    ///
    /// Documents that are more than a window ahead of the clock, since it was set back, count from now on
    /// as if they were a window ahead, for the clock too: what is never reached would stay for ever, and with
    /// it all that came later.
    ///
    /// # Errors
    /// If the number is not above the others.
    pub fn begin_section(&mut self, number: u64, clock: Time) -> Result<()> {
        self.sections.begin(number, clock)?;
        if let Some(window) = &self.window {
            let farthest = window.farthest(clock);
            self.sections.hold_back(farthest);
            self.newest = self.newest.min(farthest);
        }
        Ok(())
    }

    /// The number of the oldest section if all that is in it is past the window, unless it is the
    /// newest section too.
    pub fn expired_section(&self, arrival: &Arrival) -> Option<u64> {
        let oldest = self.sections.oldest_of_several()?;
        self.has_expired(arrival).then(|| oldest.number())
    }

    /// Whether all that is in the oldest section is past the window at this arrival.
    pub fn has_expired(&self, arrival: &Arrival) -> bool {
        match (&self.window, self.sections.oldest()) {
            (Some(window), Some(oldest)) => window.has_passed(oldest.newest_time(), arrival.clock),
            _ => false,
        }
    }

    /// Forgets the oldest section.
    pub fn drop_section(&mut self) {
        self.sections.drop_oldest();
        if let (Some(codes), Some(oldest)) = (&self.codes, self.sections.oldest()) {
            codes.expire_before(oldest.number());
        }
        self.keys.forget_before(self.sections.low());
        self.changes += 1;
    }

    /// The most similar kept document that matches, of equals the earliest.
    ///
    /// # Errors
    /// If the text of a candidate cannot be had, or verification takes more steps than are
    /// [allowed](Self::set_step_limit).
    pub fn check(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        texts: &dyn Texts,
    ) -> Result<Option<Found>> {
        self.check_without(document, arrival, None, texts)
    }

    /// As [`check`](Self::check), as if one document were not there.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_without(
        &self,
        document: &Prepared,
        arrival: &Arrival,
        without: Option<Slot>,
        texts: &dyn Texts,
    ) -> Result<Option<Found>> {
        Ok(self.look(document, arrival, without, texts)?.found())
    }

    /// The best of candidates that match, and the steps of verification, to which those of the check before
    /// are added.
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

    /// The earliest kept document with the same text, if that settles the matter.
    ///
    /// No earlier document can be as similar: it would match that one too and would have kept it from
    /// being kept, unless it was out of its reach then. If x is not older than the equal one, what
    /// was out of the reach of that is out of the reach of x. It may be otherwise where times are
    /// refreshed, and where equal texts match different others.
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

    /// The kept documents that the plan makes candidates, in the order of their numbers.
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

    /// A document if it is there, in reach and a candidate.
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

    /// Takes in a document that is kept: from now on it is found. It goes into the newest section.
    /// `order` is its place in the total order.
    ///
    /// # Errors
    /// If there is no section, or more documents than can be numbered are remembered. Nothing has
    /// changed then.
    pub fn keep(&mut self, document: &Prepared, order: u64, time: Time) -> Result<Slot> {
        let keys = self.keys.to_add(document);
        self.add(document, &keys, order, time)
    }

    /// Adds a document under its keys.
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
            // Every document takes a number there, so that numbers are those of documents.
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

    /// Takes up the next place of the newest section for a document that is not there any more, so that those
    /// behind it stand where they stood. No check finds it. `order` is its place in the total order.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
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

    /// Takes note of the time of a document that is stored with the newest section and not kept.
    pub fn note(&mut self, time: Time) {
        self.newest = self.newest.max(time);
        self.sections.note(time);
    }

    /// Lets a kept document's window run from a later time, that of its repeat. Its section stays as long
    /// as it does.
    pub fn refresh(&mut self, slot: Slot, time: Time) {
        self.sections.refresh(slot, time);
        self.changes += 1;
    }

    /// Forgets a kept document; returns whether it was there.
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

    /// Lets a kept document be found by nobody until it is [brought back](Self::bring_back).
    pub fn set_aside(&mut self, slot: Slot) {
        self.sections.remove(slot);
        self.changes += 1;
    }

    /// Lets a document be found again that was [set aside](Self::set_aside).
    pub fn bring_back(&mut self, slot: Slot) {
        self.sections.bring_back(slot);
        self.changes += 1;
    }

    /// The order and the time of a kept document, if it is there.
    pub fn kept(&self, slot: Slot) -> Option<(u64, Time)> {
        self.sections.kept(slot)
    }

    /// Bytes of memory by part.
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

/// A prepared document stands alone in its sketches.
const ALONE: DocId = DocId(0);

impl Prepared {
    fn sketched(&self) -> Sketched<'_> {
        Sketched {
            sketches: self.sketches(),
            document: ALONE,
        }
    }
}
