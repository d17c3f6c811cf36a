//! The log of insertions by sequence number: the codes, their removals, and the start of the
//! window.

use std::collections::VecDeque;

use super::line_rings::out_of_memory;
use crate::arch::{self, MemoryMut};
use crate::error::{Error, ErrorKind, Result};
use crate::hamming::fingerprint_code::FingerprintCode;

/// The codes in the order of their insertion, in segments that are allocated and freed as a whole.
#[derive(Debug)]
pub(super) struct CodeLog<C> {
    segments: VecDeque<LogSegment>,
    /// Unused segments, kept because the kernel must zero new ones.
    spare: Vec<MemoryMut>,
    segment_bits: u32,
    /// First sequence number of the first segment.
    first: u64,
    /// Lowest sequence number that has not expired.
    low: u64,
    /// Next sequence number.
    next: u64,
    /// First of all sequence numbers.
    start: u64,
    /// Number of fingerprints that are removed and not expired.
    removed: u64,
    /// Starts of slots: slot and sequence number, both ascending.
    slots: VecDeque<(u64, u64)>,
    low_slot: u64,
    codes: std::marker::PhantomData<C>,
}

#[derive(Debug)]
struct LogSegment {
    /// Empty once all codes were removed.
    codes: MemoryMut,
    /// One bit per code; empty before the first removal.
    removed: Vec<u64>,
    removals: usize,
}

impl LogSegment {
    #[inline(always)]
    fn segment_codes<C: FingerprintCode>(&self) -> &[C] {
        // Empty memory is not aligned; the cast then fails and there are no codes.
        bytemuck::try_cast_slice(&self.codes).unwrap_or_default()
    }
}

/// Largest number of segments kept for reuse.
const MOST_SPARE_SEGMENTS: usize = 2;

impl<C: FingerprintCode> CodeLog<C> {
    pub(super) fn new(segment_bits: u32, first: u64) -> Self {
        Self {
            segments: VecDeque::new(),
            spare: Vec::new(),
            segment_bits,
            first: first >> segment_bits << segment_bits,
            low: first,
            next: first,
            start: first,
            removed: 0,
            slots: VecDeque::new(),
            low_slot: 0,
            codes: std::marker::PhantomData,
        }
    }

    pub(super) fn lowest_number(&self) -> u64 {
        self.low
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the number of fingerprints that are neither removed nor expired.
    pub(super) fn count_live(&self) -> u64 {
        self.next - self.low - self.removed
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let segments = self.segments.iter();
        let held: usize = segments
            .map(|segment| segment.codes.len() + 8 * segment.removed.len())
            .sum();
        let spare: usize = self.spare.iter().map(|spare| spare.len()).sum();
        let unused = ((self.segments.len() as u64) << self.segment_bits)
            .saturating_sub(self.next - self.first);
        (held + spare + 16 * self.slots.capacity()) as u64 - unused * size_of::<C>() as u64
    }

    /// Checks that a slot may follow, and that `count` more codes stay within the limit.
    pub(super) fn check_admission(&self, slot: u64, count: u64, limit: u64) -> Result<()> {
        let last = self.slots.back().map_or(0, |&(slot, _)| slot);
        let least = last.max(self.low_slot);
        if slot < least {
            return Err(Error::setting_error(format!(
                "slot {slot} comes after slot {least}: slots must not decrease"
            )));
        }
        let window = self.next - self.low;
        if window + count > limit {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "{count} new fingerprints and the {window} since the oldest one exceed \
                     {limit}, the limit of a live index: expire the oldest first"
                ),
            ));
        }
        Ok(())
    }

    /// Assigns all further insertions to this slot.
    pub(super) fn begin_slot(&mut self, slot: u64) {
        if self.slots.back().is_none_or(|&(last, _)| last < slot) {
            self.slots.push_back((slot, self.next));
        }
    }

    /// Makes room for this many more codes.
    pub(super) fn reserve_codes(&mut self, more: u64) -> Result<()> {
        while self.first + ((self.segments.len() as u64) << self.segment_bits) < self.next + more {
            let codes = match self.spare.pop() {
                Some(spare) => spare,
                None => {
                    let bytes = size_of::<C>() << self.segment_bits;
                    MemoryMut::allocate_zeroed(bytes).map_err(out_of_memory)?
                }
            };
            self.segments.push_back(LogSegment {
                codes,
                removed: Vec::new(),
                removals: 0,
            });
        }
        Ok(())
    }

    /// Appends a code and returns the lower half of its number. Room must have been reserved.
    #[inline(always)]
    pub(super) fn push_code(&mut self, code: C) -> u32 {
        let number = self.next;
        let offset = number - self.first;
        let segment = &mut self.segments[(offset >> self.segment_bits) as usize];
        let codes: &mut [C] = bytemuck::cast_slice_mut(&mut segment.codes);
        codes[(offset & ((1 << self.segment_bits) - 1)) as usize] = code;
        self.next += 1;
        number as u32
    }

    /// Returns the full sequence number, which must not have expired, from its lower half.
    #[inline(always)]
    pub(super) fn restore_number(&self, number: u32) -> u64 {
        self.low + u64::from(number.wrapping_sub(self.low as u32))
    }

    #[inline(always)]
    pub(super) fn is_expired(&self, number: u32) -> bool {
        u64::from(number.wrapping_sub(self.low as u32)) >= self.next - self.low
    }

    /// Returns `true` if the number is neither removed nor expired.
    #[inline(always)]
    pub(super) fn is_live(&self, number: u32) -> bool {
        !self.is_expired(number) && (self.removed == 0 || !self.is_removed(number))
    }

    /// Returns `true` if no fingerprint was ever removed or has expired.
    #[inline(always)]
    pub(super) fn never_lost(&self) -> bool {
        self.removed == 0 && self.low == self.start
    }

    #[inline(always)]
    fn locate_number(&self, number: u32) -> (usize, usize) {
        let offset = number.wrapping_sub(self.first as u32);
        let segment = offset >> self.segment_bits;
        (
            segment as usize,
            (offset & ((1 << self.segment_bits) - 1)) as usize,
        )
    }

    fn is_removed(&self, number: u32) -> bool {
        let (segment, at) = self.locate_number(number);
        let removed = &self.segments[segment].removed;
        removed
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Returns the code of an unexpired number; `None` if all codes of its segment were removed.
    #[inline(always)]
    pub(super) fn code_of(&self, number: u32) -> Option<C> {
        let (segment, at) = self.locate_number(number);
        self.segments[segment].segment_codes().get(at).copied()
    }

    #[inline(always)]
    pub(super) fn prefetch_code(&self, number: u32) {
        let (segment, at) = self.locate_number(number);
        let segment = self.segments.get(segment);
        if let Some(code) = segment.and_then(|segment| segment.segment_codes::<C>().get(at)) {
            arch::prefetch(code);
        }
    }

    /// Removes a number and returns `true` if it was live.
    pub(super) fn remove_number(&mut self, number: u64) -> bool {
        if number < self.low || number >= self.next || self.is_removed(number as u32) {
            return false;
        }
        let (segment, at) = self.locate_number(number as u32);
        let size = 1usize << self.segment_bits;
        let segment = &mut self.segments[segment];
        if segment.removed.is_empty() {
            segment.removed = vec![0; size.div_ceil(64)];
        }
        segment.removed[at / 64] |= 1 << (at % 64);
        segment.removals += 1;
        self.removed += 1;
        if segment.removals == size {
            segment.codes = MemoryMut::default();
            self.skip_removed();
        }
        true
    }

    /// Moves the start of the window past segments of which all codes were removed.
    fn skip_removed(&mut self) {
        loop {
            let segment = (self.low - self.first) >> self.segment_bits;
            match self.segments.get(segment as usize) {
                Some(segment) if segment.codes.is_empty() => {}
                _ => break,
            }
            self.expire_numbers(self.first + ((segment + 1) << self.segment_bits));
        }
    }

    fn expire_numbers(&mut self, low: u64) {
        if self.removed > 0 {
            self.removed -= self.count_removals(self.low, low);
        }
        self.low = low;
    }

    /// Returns the number of removals in a range.
    fn count_removals(&self, from: u64, to: u64) -> u64 {
        let (mut at, mut count) = (from, 0);
        while at < to {
            let (segment, within) = self.locate_number(at as u32);
            let segment = &self.segments[segment];
            let end = (at - within as u64 + (1 << self.segment_bits)).min(to);
            if segment.removals > 0 {
                let numbers = within..within + (end - at) as usize;
                count += count_ones(&segment.removed, numbers);
            }
            at = end;
        }
        count
    }

    /// Expires everything that belongs to an earlier slot.
    pub(super) fn expire_before(&mut self, slot: u64) {
        self.low_slot = self.low_slot.max(slot);
        let gone = self.slots.partition_point(|&(other, _)| other < slot);
        let low = self.slots.get(gone).map_or(self.next, |&(_, first)| first);
        if gone > 0 && low > self.low {
            self.expire_numbers(low);
        }
        self.slots.drain(..gone);
    }

    /// Releases up to two expired segments.
    pub(super) fn trim_segments(&mut self) {
        for _ in 0..2 {
            let size = 1 << self.segment_bits;
            if self.low - self.first < size || self.segments.is_empty() {
                return;
            }
            self.first += size;
            let segment = self.segments.pop_front();
            let codes = segment.map(|segment| segment.codes).unwrap_or_default();
            if !codes.is_empty() && self.spare.len() < MOST_SPARE_SEGMENTS {
                self.spare.push(codes);
            }
        }
    }
}

/// Returns the number of bits of a range that are 1.
fn count_ones(words: &[u64], range: std::ops::Range<usize>) -> u64 {
    let mut count = 0;
    let mut at = range.start;
    while at < range.end {
        let end = (at / 64 * 64 + 64).min(range.end);
        let mask = u64::MAX >> (64 - (end - at)) << (at % 64);
        count += u64::from((words[at / 64] & mask).count_ones());
        at = end;
    }
    count
}
