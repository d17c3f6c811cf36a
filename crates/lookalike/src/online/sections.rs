//! Kept documents in sections by arrival, which come and go as a whole.
//!
//! Documents have numbers, ascending without gaps over all sections, of which tables hold the lower
//! half. All below the first one of the oldest section are gone.
//!
//! A section is in leaves of some thousands of documents, so that no list of a whole section moves when it
//! grows or ends.

use std::collections::{HashMap, VecDeque};

use super::prepared::Prepared;
use super::window::Time;
use crate::error::{Error, ErrorKind, Result};
use crate::matching::Sketched;
use crate::sketches::Sketches;
use crate::types::DocId;

/// Where a kept document stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// The number of its section.
    pub section: u64,
    /// Its place among the kept documents of the section, from 0.
    pub index: u32,
}

/// The most documents from the oldest to the newest: tables keep half of a number.
const LIMIT: u64 = 1 << 31;

/// Stands for a place in the total order that is too far from the others of its section.
const FAR: u32 = u32::MAX;

/// Documents of a leaf: so few that nobody waits long while its lists grow, or are cut when it is full. Tests
/// have several leaves of few documents.
const LEAF: usize = if cfg!(test) { 8 } else { 1 << 12 };

/// Some documents of a section.
#[derive(Debug)]
struct Leaf {
    sketches: Sketches,
    times: Vec<Time>,
    /// Places in the total order, from the section's least one on, or [`FAR`].
    orders: Vec<u32>,
}

impl Leaf {
    fn new(sketches: Sketches) -> Self {
        Self {
            sketches,
            times: Vec::new(),
            orders: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.times.len()
    }

    /// Gives back what room is left, for nothing more will come.
    fn seal(&mut self) {
        self.sketches.shrink_to_fit();
        self.times.shrink_to_fit();
        self.orders.shrink_to_fit();
    }

    fn bytes(&self) -> u64 {
        let own = size_of::<Self>() + size_of::<Time>() * self.times.capacity();
        (own + 4 * self.orders.capacity()) as u64 + self.sketches.bytes()
    }
}

/// Kept documents of one stretch of time.
#[derive(Debug)]
pub(super) struct Section {
    number: u64,
    began: Time,
    /// The newest time of a document that is stored with it, kept or not.
    newest: Time,
    /// The number of its first document.
    first: u64,
    /// Its documents, in full leaves but for the last.
    leaves: Vec<Leaf>,
    least_order: u64,
    /// Places that are far from the others: documents that were moved here after a very long time.
    far: HashMap<u32, u64>,
    /// A bit for each document, from the first removal on.
    removed: Vec<u64>,
}

impl Section {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn began(&self) -> Time {
        self.began
    }

    pub(super) fn newest_time(&self) -> Time {
        self.newest
    }

    pub(super) fn slot(&self, at: usize) -> Slot {
        Slot {
            section: self.number,
            index: at as u32,
        }
    }

    fn len(&self) -> usize {
        let last = self.leaves.last().map_or(0, Leaf::len);
        self.leaves.len().saturating_sub(1) * LEAF + last
    }

    fn leaf(&self, at: usize) -> (&Leaf, usize) {
        (&self.leaves[at / LEAF], at % LEAF)
    }

    fn push(&mut self, document: &Prepared, order: u64, time: Time, empty: &Sketches) {
        self.make_near(order);
        let at = self.len() as u32;
        let order = self.order_behind(order).unwrap_or_else(|| {
            self.far.insert(at, order);
            FAR
        });
        let leaf = self.leaf_to_fill(empty);
        leaf.sketches.append(document.sketches());
        leaf.times.push(time);
        leaf.orders.push(order);
    }

    fn leaf_to_fill(&mut self, empty: &Sketches) -> &mut Leaf {
        let full = self.leaves.last_mut().filter(|leaf| leaf.len() == LEAF);
        let is_full = full.map(Leaf::seal).is_some();
        if is_full || self.leaves.is_empty() {
            self.leaves.push(Leaf::new(empty.clone()));
        }
        let last = self.leaves.len() - 1;
        &mut self.leaves[last]
    }

    /// Counts places in the order from a later one on if this one would be far from them.
    fn make_near(&mut self, order: u64) {
        if order <= self.least_order || self.order_behind(order).is_some() {
            return;
        }
        let orders: Vec<u64> = (0..self.len()).map(|at| self.order(at)).collect();
        self.least_order = order.saturating_sub(LIMIT);
        self.far.clear();
        for (at, order) in orders.into_iter().enumerate() {
            let behind = self.order_behind(order);
            if behind.is_none() {
                self.far.insert(at as u32, order);
            }
            self.leaves[at / LEAF].orders[at % LEAF] = behind.unwrap_or(FAR);
        }
    }

    /// How far a place in the order is behind the least one, unless it is far from the others.
    fn order_behind(&self, order: u64) -> Option<u32> {
        let behind = order.checked_sub(self.least_order)?;
        u32::try_from(behind).ok().filter(|&behind| behind != FAR)
    }

    pub(super) fn sketched(&self, at: usize) -> Sketched<'_> {
        let (leaf, at) = self.leaf(at);
        Sketched {
            sketches: &leaf.sketches,
            document: DocId(at as u32),
        }
    }

    pub(super) fn key(&self, at: usize) -> u128 {
        let (leaf, at) = self.leaf(at);
        leaf.sketches.key(DocId(at as u32))
    }

    pub(super) fn time(&self, at: usize) -> Time {
        let (leaf, at) = self.leaf(at);
        leaf.times[at]
    }

    pub(super) fn order(&self, at: usize) -> u64 {
        let (leaf, at_leaf) = self.leaf(at);
        match leaf.orders[at_leaf] {
            FAR => self.far[&(at as u32)],
            behind => self.least_order + u64::from(behind),
        }
    }

    pub(super) fn is_removed(&self, at: usize) -> bool {
        self.removed
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Whether it was there.
    fn remove(&mut self, at: usize) -> bool {
        if at >= self.len() || self.is_removed(at) {
            return false;
        }
        if self.removed.len() <= at / 64 {
            self.removed.resize(self.len().div_ceil(64), 0);
        }
        self.removed[at / 64] |= 1 << (at % 64);
        true
    }

    /// Whether it was removed.
    fn bring_back(&mut self, at: usize) -> bool {
        let removed = self.is_removed(at);
        if removed {
            self.removed[at / 64] &= !(1 << (at % 64));
        }
        removed
    }

    fn removals(&self) -> u64 {
        let words = self.removed.iter();
        words.map(|word| u64::from(word.count_ones())).sum()
    }

    /// Gives back what room is left, for nothing more will come.
    fn seal(&mut self) {
        if let Some(last) = self.leaves.last_mut() {
            last.seal();
        }
    }

    fn bytes(&self) -> u64 {
        let own = 8 * self.removed.capacity() + 16 * self.far.capacity();
        own as u64 + self.leaves.iter().map(Leaf::bytes).sum::<u64>()
    }
}

/// All sections.
#[derive(Debug)]
pub(super) struct Sections {
    sections: VecDeque<Section>,
    /// The number of the next document.
    next: u64,
    /// Documents that are removed in all of them.
    removals: u64,
    empty: Sketches,
}

impl Sections {
    pub(super) fn new(empty: Sketches) -> Self {
        Self {
            sections: VecDeque::new(),
            next: 0,
            removals: 0,
            empty,
        }
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// All documents before this number are gone.
    pub(super) fn low(&self) -> u64 {
        self.oldest().map_or(self.next, |section| section.first)
    }

    /// Documents that were not removed.
    pub(super) fn live(&self) -> u64 {
        self.next - self.low() - self.removals
    }

    pub(super) fn oldest(&self) -> Option<&Section> {
        self.sections.front()
    }

    pub(super) fn oldest_of_several(&self) -> Option<&Section> {
        self.oldest().filter(|_| self.sections.len() > 1)
    }

    pub(super) fn newest(&self) -> Option<&Section> {
        self.sections.back()
    }

    /// Where the next document will stand.
    pub(super) fn next_slot(&self) -> Result<Slot> {
        if self.next - self.low() >= LIMIT {
            return Err(too_many());
        }
        let section = self.sections.back();
        let section = section.ok_or_else(|| Error::setting("no section was begun"))?;
        Ok(section.slot(section.len()))
    }

    /// Adds a document to the newest section.
    pub(super) fn push(&mut self, document: &Prepared, order: u64, time: Time) {
        if let Some(newest) = self.sections.back_mut() {
            newest.push(document, order, time, &self.empty);
            self.next += 1;
        }
    }

    pub(super) fn begin(&mut self, number: u64, began: Time) -> Result<()> {
        if let Some(newest) = self.sections.back_mut() {
            if newest.number >= number {
                return Err(Error::setting(format!(
                    "section {number} comes after section {}: numbers must increase",
                    newest.number
                )));
            }
            newest.seal();
        }
        self.sections.push_back(Section {
            number,
            began,
            newest: Time::BEGINNING,
            first: self.next,
            leaves: Vec::new(),
            least_order: 0,
            far: HashMap::new(),
            removed: Vec::new(),
        });
        Ok(())
    }

    /// No section is newer than this from now on.
    pub(super) fn hold_back(&mut self, latest: Time) {
        for section in &mut self.sections {
            section.newest = section.newest.min(latest);
        }
    }

    pub(super) fn drop_oldest(&mut self) {
        let oldest = self.sections.pop_front();
        self.removals -= oldest.as_ref().map_or(0, Section::removals);
    }

    pub(super) fn note(&mut self, time: Time) {
        if let Some(newest) = self.sections.back_mut() {
            newest.newest = newest.newest.max(time);
        }
    }

    /// The document with a number that is not gone.
    pub(super) fn at(&self, number: u64) -> (&Section, usize) {
        let behind = self
            .sections
            .partition_point(|section| section.first <= number);
        let section = &self.sections[behind - 1];
        (section, (number - section.first) as usize)
    }

    /// Calls back with the number and the fingerprint of all documents from a number on that have one.
    pub(super) fn visit_codes(&self, from: u64, mut visit: impl FnMut(u64, u128)) {
        let mut number = from;
        while number < self.next {
            let (section, at) = self.at(number);
            for at in at..section.len() {
                let (leaf, at) = section.leaf(at);
                if let Some(code) = leaf.sketches.fingerprint(DocId(at as u32)) {
                    visit(number, code);
                }
                number += 1;
            }
        }
    }

    /// Whether the document with a number is gone or removed.
    pub(super) fn is_dead(&self, number: u64) -> bool {
        if number < self.low() {
            return true;
        }
        if self.removals == 0 {
            return false;
        }
        let (section, at) = self.at(number);
        section.is_removed(at)
    }

    fn section(&self, number: u64) -> Option<usize> {
        self.sections
            .binary_search_by_key(&number, |section| section.number)
            .ok()
    }

    pub(super) fn kept(&self, slot: Slot) -> Option<(u64, Time)> {
        let section = &self.sections[self.section(slot.section)?];
        let at = slot.index as usize;
        let there = at < section.len() && !section.is_removed(at);
        there.then(|| (section.order(at), section.time(at)))
    }

    /// Takes a removal back.
    pub(super) fn bring_back(&mut self, slot: Slot) {
        if let Some(at) = self.section(slot.section) {
            let back = self.sections[at].bring_back(slot.index as usize);
            self.removals -= u64::from(back);
        }
    }

    pub(super) fn refresh(&mut self, slot: Slot, time: Time) {
        let Some(at) = self.section(slot.section) else {
            return;
        };
        let section = &mut self.sections[at];
        let at = slot.index as usize;
        if at < section.len() {
            let kept = &mut section.leaves[at / LEAF].times[at % LEAF];
            *kept = time.max(*kept);
            section.newest = section.newest.max(time);
        }
    }

    /// The number of the document, if it was there.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<u64> {
        let at = self.section(slot.section)?;
        let section = &mut self.sections[at];
        let removed = section.remove(slot.index as usize);
        self.removals += u64::from(removed);
        removed.then(|| section.first + u64::from(slot.index))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.sections.iter().map(Section::bytes).sum()
    }
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::Limit,
        format!(
            "there are {LIMIT} kept documents from the oldest to the newest, which is the limit: take a \
             shorter window or parts of the stream"
        ),
    )
}
