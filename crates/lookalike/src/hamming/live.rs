//! A window of fingerprints that changes while it is searched.
//!
//! [`LiveIndex`] takes in fingerprints, each with the slot of time that it belongs to. It forgets them
//! one by one, or all of the earliest slots at once. At every moment a search answers exactly what
//! [`scan`](super::scan) over the live fingerprints would answer. Any number of threads can search
//! while one thread changes the index.
//!
//! # How it works
//!
//! Codes are stored in a log in the order of their insertion. A table therefore stores only
//! sequence numbers, and the expired fingerprints are a prefix of the log, so that expiry does no
//! work per fingerprint. There is one table per block of bits. It maps its block to residual bits
//! and sequence numbers, by a key that lets few buckets hold everything near. Candidates that the
//! residual does not rule out are compared in the log.
//!
//! Tables grow bucket by bucket (linear hashing), logs and pools grow in chunks, and nothing is
//! ever copied or rehashed as a whole. A bucket drops its dead entries when it is full. An
//! incremental sweep evicts the dead entries of all other buckets.
//!
//! # Cost
//!
//! For 64 bits and distance 3 there are two blocks of 32 bits with radius 1. A look-up reads 32
//! cache lines, and one more for about every seventh of them, whose bucket is full. An insertion
//! writes four lines. A fingerprint takes 33–35 bytes, and 2 more while a window slides, because of
//! dead entries that are not dropped yet. A lock is held for a batch of insertions or look-ups,
//! which takes tens of microseconds, so readers wait for their turn while there is a writer.
//!
//! # Limits
//!
//! The index is not durable. Memory that tables have taken is reused, but only the log returns
//! memory to the system. The log keeps the code of a removed fingerprint until it expires or until
//! its whole segment of 2²⁰ is removed. Numbers of removed fingerprints are not reused. A bucket
//! with very many distinct fingerprints, for example because nearly all agree in 32 bits, is split
//! and swept in one step, and all threads wait for it.

mod blocks;
mod code_log;
mod fair_lock;
mod forecast;
mod line_rings;
mod search;
mod table;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use super::fingerprint_code::{FingerprintCode, low_bits_mask};
use crate::arch::{Arch, Cpu, Kernel};
use crate::error::{Error, Result};
use crate::types::Distance;
use code_log::CodeLog;
use fair_lock::SpinFairLock;
pub use forecast::LivePlan;
use search::{LiveSearch, LookUpScratch};
use table::{INSERTIONS_PER_SWEEP, LiveTable};

/// Live fingerprints per bucket above which a bucket is added.
const BUCKET_LOAD: u64 = 12;

/// Number of insertions, or of queries, for which the lock is held.
const CALLS_PER_LOCK: usize = 128;

/// Number of insertions between prefetching the lines of one and writing them.
const PREFETCH_DISTANCE: usize = 8;

/// Sequence number of an insertion, ascending without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub u64);

/// An index of fingerprints that come and go; see the [module](self).
///
/// ```
/// use lookalike::Distance;
/// use lookalike::hamming::live::LiveIndex;
///
/// let live = LiveIndex::<u64>::new(64, Distance::new(3, 64)?)?;
/// let first = live.insert_code(0b1010, 7)?;
/// let second = live.insert_code(0b1111_0000, 8)?;
///
/// let mut found = Vec::new();
/// live.search_within(0b1000, Distance::new(3, 64)?, |seq, distance| found.push((seq, distance)))?;
/// assert_eq!(found, [(first, 1)]);
///
/// live.expire_before(8);
/// assert_eq!(live.len(), 1);
/// assert!(live.remove_code(second) && live.is_empty());
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Debug)]
pub struct LiveIndex<C> {
    bits: u32,
    distance: Distance,
    cpu: Cpu,
    /// Held during a whole change, while the lock of the state is held only for a batch.
    writer: Mutex<()>,
    state: SpinFairLock<LiveState<C>>,
}

#[derive(Debug)]
struct LiveState<C> {
    log: CodeLog<C>,
    tables: Vec<LiveTable>,
}

/// Sizes of memory blocks; tests use small ones.
#[derive(Clone, Copy, Debug)]
struct LiveSizes {
    /// Lines of a chunk, as a power of two.
    chunk_bits: u32,
    /// Codes of a segment of the log, as a power of two.
    segment_bits: u32,
    /// First sequence number.
    first: u64,
}

impl Default for LiveSizes {
    fn default() -> Self {
        Self {
            chunk_bits: 19,
            segment_bits: 20,
            first: 0,
        }
    }
}

impl<C: FingerprintCode> LiveIndex<C> {
    /// Largest number of fingerprints from the oldest that has not expired to the newest. Tables
    /// store 32 bits of a sequence number, and may keep a dead entry for 2³¹ further insertions.
    pub const LIMIT: u64 = 1 << 31;

    /// Largest distance that a live index supports.
    pub const GREATEST_DISTANCE: u32 = 16;

    /// Creates an index of fingerprints of `bits` bits, to be searched within up to `distance`.
    ///
    /// # Errors
    /// Returns an error if `C` has no room for so many bits, or if the distance is not below the
    /// bits or is above [`GREATEST_DISTANCE`](Self::GREATEST_DISTANCE).
    pub fn new(bits: u32, distance: Distance) -> Result<Self> {
        Self::with_shape(bits, distance, LiveSizes::default())
    }

    fn with_shape(bits: u32, distance: Distance, shape: LiveSizes) -> Result<Self> {
        if !(1..=C::BITS).contains(&bits) {
            return Err(Error::setting_error(format!(
                "fingerprints of {bits} bits do not fit numbers of {}",
                C::BITS
            )));
        }
        // Check again, because the distance may have been made for another width.
        let distance = Distance::new(distance.get(), bits)?;
        if distance.get() > Self::GREATEST_DISTANCE {
            return Err(Error::setting_error(format!(
                "the distance {} is above {}, the limit of a live index: scan instead",
                distance.get(),
                Self::GREATEST_DISTANCE
            )));
        }
        let blocks = blocks::blocks_for_distance(bits, distance.get()).into_iter();
        let tables: Result<_> = blocks
            .zip(0..)
            .map(|(block, number)| LiveTable::new(number, block, shape.chunk_bits))
            .collect();
        Ok(Self {
            bits,
            distance,
            cpu: Cpu::detect_best(),
            writer: Mutex::new(()),
            state: SpinFairLock::new(LiveState {
                log: CodeLog::new(shape.segment_bits, shape.first),
                tables: tables?,
            }),
        })
    }

    /// Returns the number of live fingerprints.
    pub fn len(&self) -> u64 {
        self.state.lock_read().log.count_live()
    }

    /// Returns `true` if no fingerprint is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of memory taken, without what is the same for every size.
    pub fn memory_bytes(&self) -> u64 {
        let state = self.state.lock_read();
        state.log.memory_bytes()
            + state
                .tables
                .iter()
                .map(LiveTable::memory_bytes)
                .sum::<u64>()
    }

    /// Adds a fingerprint that belongs to a slot.
    ///
    /// # Errors
    /// Returns an error in the cases of [`insert_many`](Self::insert_many).
    pub fn insert_code(&self, code: C, slot: u64) -> Result<SequenceNumber> {
        let added = self.insert_many(&[code], slot)?;
        Ok(SequenceNumber(added.start))
    }

    /// Adds fingerprints that belong to a slot, and returns their sequence numbers. Searches of
    /// other threads find each fingerprint as soon as its batch is added.
    ///
    /// # Errors
    /// Returns an error, and adds nothing, if the slot has expired or is lower than one that was
    /// used, if a fingerprint has more bits than the index, or if the [limit](Self::LIMIT) would be
    /// exceeded. Also returns an error if memory runs out; the first fingerprints may then have
    /// been added.
    pub fn insert_many(&self, codes: &[C], slot: u64) -> Result<Range<u64>> {
        let all = codes.iter().fold(0, |all, code| all | code.widen());
        if all & !low_bits_mask(self.bits) != 0 {
            let wide = codes
                .iter()
                .find(|code| code.widen() & !low_bits_mask(self.bits) != 0);
            return Err(Error::setting_error(format!(
                "the fingerprint {:#x} has more than {} bits",
                wide.map_or(0, |code| code.widen()),
                self.bits
            )));
        }
        let _writer = self.only_writer();
        let first = {
            let state = self.state.lock_read();
            state
                .log
                .check_admission(slot, codes.len() as u64, Self::LIMIT)?;
            state.log.next_number()
        };
        for codes in codes.chunks(CALLS_PER_LOCK) {
            let mut state = self.state.lock_write();
            state.reserve_insertions(codes.len())?;
            state.log.begin_slot(slot);
            self.cpu.run(InsertKernel {
                state: &mut state,
                codes,
            });
        }
        Ok(first..first + codes.len() as u64)
    }

    fn only_writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().expect("no writer panicked")
    }

    /// Removes a fingerprint and returns `true` if it was live.
    pub fn remove_code(&self, seq: SequenceNumber) -> bool {
        let _writer = self.only_writer();
        let mut state = self.state.lock_write();
        let removed = state.log.remove_number(seq.0);
        if removed {
            state.mark_unswept();
        }
        removed
    }

    /// Expires everything that belongs to an earlier slot. Costs a few steps per slot and none per
    /// fingerprint.
    pub fn expire_before(&self, slot: u64) {
        let _writer = self.only_writer();
        let mut state = self.state.lock_write();
        let before = state.log.lowest_number();
        state.log.expire_before(slot);
        if state.log.lowest_number() > before {
            state.mark_unswept();
        }
    }

    /// Returns the number of buckets that one search reads at most.
    pub fn buckets_per_search(&self) -> u64 {
        blocks::count_buckets(blocks::blocks_for_distance(self.bits, self.distance.get()))
    }

    /// Calls `visit` with every live fingerprint within `distance` of the query and its distance,
    /// in no particular order. The results show the index at one moment.
    ///
    /// # Errors
    /// Returns an error if the distance is above that of the index.
    pub fn search_within(
        &self,
        query: C,
        distance: Distance,
        mut visit: impl FnMut(SequenceNumber, u32),
    ) -> Result<()> {
        self.search_many(&[query], distance, |_, seq, distance| visit(seq, distance))
    }

    /// Searches for many queries, which is faster than one by one. Calls `visit` with the position
    /// of the query, in ascending order. The results of each query show the index at one moment, no
    /// earlier than those of the queries before it.
    ///
    /// # Errors
    /// Returns an error if the distance is above that of the index.
    pub fn search_many(
        &self,
        queries: &[C],
        distance: Distance,
        mut visit: impl FnMut(usize, SequenceNumber, u32),
    ) -> Result<()> {
        if distance > self.distance {
            return Err(Error::setting_error(format!(
                "the distance {} is above {}, the distance of the index",
                distance.get(),
                self.distance.get()
            )));
        }
        let mut scratch = LOOK_UP_SCRATCH.take().unwrap_or_default();
        for (batch, queries) in queries.chunks(CALLS_PER_LOCK).enumerate() {
            self.cpu.run(LiveSearch {
                state: &self.state.lock_read(),
                queries,
                limit: distance.get(),
                scratch: &mut scratch,
            });
            for found in &scratch.found {
                let query = batch * CALLS_PER_LOCK + found.query as usize;
                visit(query, SequenceNumber(found.number), found.distance);
            }
        }
        LOOK_UP_SCRATCH.set(Some(scratch));
        Ok(())
    }
}

thread_local! {
    /// Taken out while in use, so that the callback of a search can search as well.
    static LOOK_UP_SCRATCH: Cell<Option<Box<LookUpScratch>>> = const { Cell::new(None) };
}

impl<C: FingerprintCode> LiveState<C> {
    /// Makes room for this many insertions, so that they cannot fail half-way.
    fn reserve_insertions(&mut self, insertions: usize) -> Result<()> {
        self.log.trim_segments();
        self.log.reserve_codes(insertions as u64)?;
        for table in &mut self.tables {
            table.reserve_insertions(insertions as u32)?;
        }
        Ok(())
    }

    fn mark_unswept(&mut self) {
        for table in &mut self.tables {
            table.mark_unswept();
        }
    }
}

/// Adds codes for which there is room.
struct InsertKernel<'a, C> {
    state: &'a mut LiveState<C>,
    codes: &'a [C],
}

impl<C: FingerprintCode> Kernel for InsertKernel<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let LiveState { log, tables } = self.state;
        for code in &self.codes[..PREFETCH_DISTANCE.min(self.codes.len())] {
            tables.iter().for_each(|table| table.prefetch_insert(*code));
        }
        for (at, &code) in self.codes.iter().enumerate() {
            if let Some(&later) = self.codes.get(at + PREFETCH_DISTANCE) {
                tables.iter().for_each(|table| table.prefetch_insert(later));
            }
            let number = log.push_code(code);
            for table in &mut *tables {
                table.insert_number(arch, code, number, log);
                table.grow_table(log);
                if log.next_number() % INSERTIONS_PER_SWEEP == 0 {
                    table.sweep_bucket(log);
                }
            }
        }
    }
}
