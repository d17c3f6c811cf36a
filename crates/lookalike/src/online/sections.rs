//! Kept documents in sections by arrival. A section is added and dropped as a whole.
//!
//! Documents are numbered consecutively over all sections. Tables hold the lower half of a number. All
//! documents before the first one of the oldest section have expired.
//!
//! A section consists of chunks of some thousands of documents, so that growth and sealing never move
//! the lists of a whole section.

use std::collections::{HashMap, VecDeque};

use super::prepared::Prepared;
use super::window::Time;
use crate::error::{Error, ErrorKind, Result};
use crate::matching::Sketched;
use crate::sketches::Sketches;
use crate::types::DocId;

/// The location of a kept document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// Number of the section.
    pub section: u64,
    /// Place among the kept documents of the section, from 0.
    pub index: u32,
}

/// Largest number of documents from the oldest to the newest. It is limited because tables keep half of
/// a number.
const LIMIT: u64 = 1 << 31;

/// Mark of an order that is too far from the others of its section for 32 bits.
const FAR: u32 = u32::MAX;

/// Documents per chunk: so few that growing its lists, or shrinking them once it is full, never stalls
/// readers for long. Tests use small chunks.
const LEAF: usize = if cfg!(test) { 8 } else { 1 << 12 };

/// A chunk of documents of a section.
#[derive(Debug)]
struct Leaf {
    sketches: Sketches,
    times: Vec<Time>,
    /// Places in the total order, relative to the section's least one, or [`FAR`].
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

    /// Releases unused capacity, because nothing more will be added.
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
    /// Newest time of a document that is stored with the section, kept or not.
    newest: Time,
    /// Number of the first document.
    first: u64,
    /// Chunks of documents, all full but the last.
    leaves: Vec<Leaf>,
    least_order: u64,
    /// Orders too far from the others, by index. They come from documents that were moved here after a
    /// very long time.
    far: HashMap<u32, u64>,
    /// Removed documents, one bit each; empty before the first removal.
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

    /// Moves the base of the section's orders up if `order` would be too far from it.
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

    /// Returns the distance of an order from the base, or `None` if it is too far.
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

    /// Marks a document as removed. Returns `true` if it was there.
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

    /// Reverts a removal. Returns `true` if the document was removed.
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

    /// Releases unused capacity, because nothing more will be added.
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

/// All sections, the oldest first.
#[derive(Debug)]
pub(super) struct Sections {
    sections: VecDeque<Section>,
    /// Number of the next document.
    next: u64,
    /// Number of removed documents in all sections.
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

    /// Returns the number before which all documents have expired.
    pub(super) fn low(&self) -> u64 {
        self.oldest().map_or(self.next, |section| section.first)
    }

    /// Returns the number of documents that are not removed.
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

    /// Returns the location of the next document.
    pub(super) fn next_slot(&self) -> Result<Slot> {
        if self.next - self.low() >= LIMIT {
            return Err(too_many());
        }
        let section = self.sections.back();
        let section = section.ok_or_else(|| Error::setting("no section was started"))?;
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

    /// Limits the newest time of every section to `latest`.
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

    /// Returns the section and the index of the document with a number, which must not have expired.
    pub(super) fn at(&self, number: u64) -> (&Section, usize) {
        let behind = self
            .sections
            .partition_point(|section| section.first <= number);
        let section = &self.sections[behind - 1];
        (section, (number - section.first) as usize)
    }

    /// Calls `visit` with the number and the fingerprint of every document from number `from` on that
    /// has one.
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

    /// Returns `true` if the document with a number has expired or is removed.
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

    /// Reverts a removal.
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

    /// Removes a document. Returns its number if it was there.
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
            "the window has {LIMIT} kept documents, the limit: give a shorter window, or split the \
             stream"
        ),
    )
}
