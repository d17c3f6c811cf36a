//! Kept documents in partitions by arrival. A partition is added and dropped as a whole.
//!
//! Documents are numbered consecutively over all partitions. Tables hold the lower half of a number. All
//! documents before the first one of the oldest partition have expired.
//!
//! A partition consists of chunks of some thousands of documents, so that growth and sealing never move
//! the lists of a whole partition.

use std::collections::{HashMap, VecDeque};

use super::sketched_document::SketchedDocument;
use super::window::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::similarity::SketchRef;
use crate::sketch::DocumentSketches;
use crate::types::DocId;

/// The location of a kept document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentSlot {
    /// Number of the partition.
    pub partition: u64,
    /// Place among the kept documents of the partition, from 0.
    pub index: u32,
}

/// Largest number of documents from the oldest to the newest. It is limited because tables keep half of
/// a number.
const MOST_DOCUMENTS: u64 = 1 << 31;

/// Mark of an order that is too far from the others of its partition for 32 bits.
const FAR_ORDER: u32 = u32::MAX;

/// Documents per chunk: so few that growing its lists, or shrinking them once it is full, never stalls
/// readers for long. Tests use small chunks.
const CHUNK_LENGTH: usize = if cfg!(test) { 8 } else { 1 << 12 };

/// A chunk of documents of a partition.
#[derive(Debug)]
struct PartitionChunk {
    sketches: DocumentSketches,
    times: Vec<Timestamp>,
    /// Places in the total order, relative to the partition's least one, or [`FAR_ORDER`].
    orders: Vec<u32>,
}

impl PartitionChunk {
    fn new(sketches: DocumentSketches) -> Self {
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
    fn shrink_to_fit(&mut self) {
        self.sketches.shrink_to_fit();
        self.times.shrink_to_fit();
        self.orders.shrink_to_fit();
    }

    fn memory_bytes(&self) -> u64 {
        let own = size_of::<Self>() + size_of::<Timestamp>() * self.times.capacity();
        (own + 4 * self.orders.capacity()) as u64 + self.sketches.memory_bytes()
    }
}

/// Kept documents of one stretch of time.
#[derive(Debug)]
pub(super) struct TimePartition {
    number: u64,
    began: Timestamp,
    /// Newest time of a document that is stored with the partition, kept or not.
    newest: Timestamp,
    /// Number of the first document.
    first: u64,
    /// Chunks of documents, all full but the last.
    chunks: Vec<PartitionChunk>,
    least_order: u64,
    /// Orders too far from the others, by index. They come from documents that were moved here after a
    /// very long time.
    far: HashMap<u32, u64>,
    /// Removed documents, one bit each; empty before the first removal.
    removed: Vec<u64>,
}

impl TimePartition {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn begin_time(&self) -> Timestamp {
        self.began
    }

    pub(super) fn newest_time(&self) -> Timestamp {
        self.newest
    }

    pub(super) fn slot_at(&self, at: usize) -> DocumentSlot {
        DocumentSlot {
            partition: self.number,
            index: at as u32,
        }
    }

    fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, PartitionChunk::len);
        self.chunks.len().saturating_sub(1) * CHUNK_LENGTH + last
    }

    fn chunk_at(&self, at: usize) -> (&PartitionChunk, usize) {
        (&self.chunks[at / CHUNK_LENGTH], at % CHUNK_LENGTH)
    }

    fn push_document(
        &mut self,
        document: &SketchedDocument,
        order: u64,
        time: Timestamp,
        empty: &DocumentSketches,
    ) {
        self.rebase_orders(order);
        let at = self.len() as u32;
        let order = self.order_behind(order).unwrap_or_else(|| {
            self.far.insert(at, order);
            FAR_ORDER
        });
        let chunk = self.chunk_to_fill(empty);
        chunk.sketches.append_sketches(document.sketches());
        chunk.times.push(time);
        chunk.orders.push(order);
    }

    fn chunk_to_fill(&mut self, empty: &DocumentSketches) -> &mut PartitionChunk {
        let full = self
            .chunks
            .last_mut()
            .filter(|chunk| chunk.len() == CHUNK_LENGTH);
        let is_full = full.map(PartitionChunk::shrink_to_fit).is_some();
        if is_full || self.chunks.is_empty() {
            self.chunks.push(PartitionChunk::new(empty.clone()));
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }

    /// Moves the base of the partition's orders up if `order` would be too far from it.
    fn rebase_orders(&mut self, order: u64) {
        if order <= self.least_order || self.order_behind(order).is_some() {
            return;
        }
        let orders: Vec<u64> = (0..self.len()).map(|at| self.order_at(at)).collect();
        self.least_order = order.saturating_sub(MOST_DOCUMENTS);
        self.far.clear();
        for (at, order) in orders.into_iter().enumerate() {
            let behind = self.order_behind(order);
            if behind.is_none() {
                self.far.insert(at as u32, order);
            }
            self.chunks[at / CHUNK_LENGTH].orders[at % CHUNK_LENGTH] = behind.unwrap_or(FAR_ORDER);
        }
    }

    /// Returns the distance of an order from the base, or `None` if it is too far.
    fn order_behind(&self, order: u64) -> Option<u32> {
        let behind = order.checked_sub(self.least_order)?;
        u32::try_from(behind)
            .ok()
            .filter(|&behind| behind != FAR_ORDER)
    }

    pub(super) fn sketch_at(&self, at: usize) -> SketchRef<'_> {
        let (chunk, at) = self.chunk_at(at);
        SketchRef {
            sketches: &chunk.sketches,
            document: DocId(at as u32),
        }
    }

    pub(super) fn text_key_at(&self, at: usize) -> u128 {
        let (chunk, at) = self.chunk_at(at);
        chunk.sketches.text_key(DocId(at as u32))
    }

    pub(super) fn time_at(&self, at: usize) -> Timestamp {
        let (chunk, at) = self.chunk_at(at);
        chunk.times[at]
    }

    pub(super) fn order_at(&self, at: usize) -> u64 {
        let (chunk, at_leaf) = self.chunk_at(at);
        match chunk.orders[at_leaf] {
            FAR_ORDER => self.far[&(at as u32)],
            behind => self.least_order + u64::from(behind),
        }
    }

    pub(super) fn is_removed(&self, at: usize) -> bool {
        self.removed
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Marks a document as removed. Returns `true` if it was there.
    fn remove_at(&mut self, at: usize) -> bool {
        if at >= self.len() || self.is_removed(at) {
            return false;
        }
        if self.removed.len() <= at / 64 {
            self.removed.resize(self.len().div_ceil(64), 0);
        }
        self.removed[at / 64] |= 1 << (at % 64);
        true
    }

    fn count_removed(&self) -> u64 {
        let words = self.removed.iter();
        words.map(|word| u64::from(word.count_ones())).sum()
    }

    /// Releases unused capacity, because nothing more will be added.
    fn shrink_to_fit(&mut self) {
        if let Some(last) = self.chunks.last_mut() {
            last.shrink_to_fit();
        }
    }

    fn memory_bytes(&self) -> u64 {
        let own = 8 * self.removed.capacity() + 16 * self.far.capacity();
        own as u64
            + self
                .chunks
                .iter()
                .map(PartitionChunk::memory_bytes)
                .sum::<u64>()
    }
}

/// All partitions, the oldest first.
#[derive(Debug)]
pub(super) struct TimePartitions {
    partitions: VecDeque<TimePartition>,
    /// Number of the next document.
    next: u64,
    /// Number of removed documents in all partitions.
    removals: u64,
    empty: DocumentSketches,
}

impl TimePartitions {
    pub(super) fn new(empty: DocumentSketches) -> Self {
        Self {
            partitions: VecDeque::new(),
            next: 0,
            removals: 0,
            empty,
        }
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the number before which all documents have expired.
    pub(super) fn lowest_number(&self) -> u64 {
        self.oldest_partition()
            .map_or(self.next, |partition| partition.first)
    }

    /// Returns the number of documents that are not removed.
    pub(super) fn count_live(&self) -> u64 {
        self.next - self.lowest_number() - self.removals
    }

    pub(super) fn oldest_partition(&self) -> Option<&TimePartition> {
        self.partitions.front()
    }

    pub(super) fn oldest_of_several(&self) -> Option<&TimePartition> {
        self.oldest_partition()
            .filter(|_| self.partitions.len() > 1)
    }

    pub(super) fn newest_partition(&self) -> Option<&TimePartition> {
        self.partitions.back()
    }

    /// Returns the location of the next document.
    pub(super) fn next_slot(&self) -> Result<DocumentSlot> {
        if self.next - self.lowest_number() >= MOST_DOCUMENTS {
            return Err(too_many_documents());
        }
        let partition = self.partitions.back();
        let partition = partition.ok_or_else(|| Error::setting_error("no section was started"))?;
        Ok(partition.slot_at(partition.len()))
    }

    /// Adds a document to the newest partition.
    pub(super) fn push_document(
        &mut self,
        document: &SketchedDocument,
        order: u64,
        time: Timestamp,
    ) {
        if let Some(newest) = self.partitions.back_mut() {
            newest.push_document(document, order, time, &self.empty);
            self.next += 1;
        }
    }

    pub(super) fn begin_partition(&mut self, number: u64, began: Timestamp) -> Result<()> {
        if let Some(newest) = self.partitions.back_mut() {
            if newest.number >= number {
                return Err(Error::setting_error(format!(
                    "section {number} comes after section {}: numbers must increase",
                    newest.number
                )));
            }
            newest.shrink_to_fit();
        }
        self.partitions.push_back(TimePartition {
            number,
            began,
            newest: Timestamp::BEGINNING,
            first: self.next,
            chunks: Vec::new(),
            least_order: 0,
            far: HashMap::new(),
            removed: Vec::new(),
        });
        Ok(())
    }

    /// Limits the newest time of every partition to `latest`.
    pub(super) fn limit_newest_time(&mut self, latest: Timestamp) {
        for partition in &mut self.partitions {
            partition.newest = partition.newest.min(latest);
        }
    }

    pub(super) fn drop_oldest(&mut self) {
        let oldest = self.partitions.pop_front();
        self.removals -= oldest.as_ref().map_or(0, TimePartition::count_removed);
    }

    pub(super) fn note_time(&mut self, time: Timestamp) {
        if let Some(newest) = self.partitions.back_mut() {
            newest.newest = newest.newest.max(time);
        }
    }

    /// Returns the partition and the index of the document with a number, which must not have expired.
    pub(super) fn locate_number(&self, number: u64) -> (&TimePartition, usize) {
        let behind = self
            .partitions
            .partition_point(|partition| partition.first <= number);
        let partition = &self.partitions[behind - 1];
        (partition, (number - partition.first) as usize)
    }

    /// Calls `visit` with the number and the fingerprint of every document from number `from` on that
    /// has one.
    pub(super) fn visit_codes(&self, from: u64, mut visit: impl FnMut(u64, u128)) {
        let mut number = from;
        while number < self.next {
            let (partition, at) = self.locate_number(number);
            for at in at..partition.len() {
                let (chunk, at) = partition.chunk_at(at);
                if let Some(code) = chunk.sketches.fingerprint(DocId(at as u32)) {
                    visit(number, code);
                }
                number += 1;
            }
        }
    }

    /// Returns `true` if the document with a number has expired or is removed.
    pub(super) fn is_dead(&self, number: u64) -> bool {
        if number < self.lowest_number() {
            return true;
        }
        if self.removals == 0 {
            return false;
        }
        let (partition, at) = self.locate_number(number);
        partition.is_removed(at)
    }

    fn partition_index(&self, number: u64) -> Option<usize> {
        self.partitions
            .binary_search_by_key(&number, |partition| partition.number)
            .ok()
    }

    pub(super) fn kept_document(&self, slot: DocumentSlot) -> Option<(u64, Timestamp)> {
        let partition = &self.partitions[self.partition_index(slot.partition)?];
        let at = slot.index as usize;
        let there = at < partition.len() && !partition.is_removed(at);
        there.then(|| (partition.order_at(at), partition.time_at(at)))
    }

    pub(super) fn refresh_document(&mut self, slot: DocumentSlot, time: Timestamp) {
        let Some(at) = self.partition_index(slot.partition) else {
            return;
        };
        let partition = &mut self.partitions[at];
        let at = slot.index as usize;
        if at < partition.len() {
            let kept = &mut partition.chunks[at / CHUNK_LENGTH].times[at % CHUNK_LENGTH];
            *kept = time.max(*kept);
            partition.newest = partition.newest.max(time);
        }
    }

    /// Removes a document. Returns its number if it was there.
    pub(super) fn remove_document(&mut self, slot: DocumentSlot) -> Option<u64> {
        let at = self.partition_index(slot.partition)?;
        let partition = &mut self.partitions[at];
        let removed = partition.remove_at(slot.index as usize);
        self.removals += u64::from(removed);
        removed.then(|| partition.first + u64::from(slot.index))
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.partitions
            .iter()
            .map(TimePartition::memory_bytes)
            .sum()
    }
}

fn too_many_documents() -> Error {
    Error::new(
        ErrorKind::Limit,
        format!(
            "the window has {MOST_DOCUMENTS} kept documents, the limit: give a shorter window, or split the \
             stream"
        ),
    )
}
