//! The recursion of a join: split a group, descend into its buckets, skip known pairs, compare.

use std::array;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::super::fingerprint_code::{FingerprintCode, low_bits_mask};
use super::distinct::{deal_buckets, find_varying_bits, piece_length};
use super::kernel::{
    AcrossKernel, CountKernel, DealKernel, JoinKeyBlock, ScatterKernel, WithinKernel, WithinSmall,
};
use super::plan::{JoinLoad, JoinTuning};
use crate::arch::Cpu;

/// Near pairs per call of `visit`.
const PAIRS_PER_VISIT: usize = 4096;

/// The parts of a join that all threads share.
pub(super) struct JoinSearch<'a, F> {
    pub(super) distance: u32,
    pub(super) cpu: Cpu,
    pub(super) tuning: JoinTuning,
    /// Takes near pairs, and can stop the join. In a join across two lists, the fingerprint of the
    /// left list comes first.
    pub(super) visit: &'a F,
    pub(super) stopped: AtomicBool,
}

/// Fingerprints of one side, and a buffer of the same length. However often they are moved between
/// the two, they end up in `codes`, in another order.
pub(super) struct JoinSide<'a, C> {
    pub(super) codes: &'a mut [C],
    pub(super) room: &'a mut [C],
}

/// Knowledge about the pairs that a group is searched for.
#[derive(Clone, Copy)]
pub(super) struct PairState {
    /// Bits in which at most `budget` differ.
    pub(super) free: u128,
    pub(super) budget: u32,
    /// Bits that must be equal but by which the group is not split yet.
    pub(super) equal: u128,
}

/// State of one thread.
struct JoinWorker<'a, C, F> {
    search: &'a JoinSearch<'a, F>,
    /// Blocks in which a pair must differ, because otherwise it has been reported before.
    differing: Vec<u128>,
    pairs: Vec<(C, C)>,
    spare: Vec<Vec<u32>>,
}

impl<F> JoinSearch<'_, F> {
    /// Finds all near pairs of one side, or across two.
    pub(super) fn find_near_pairs<C: FingerprintCode, const SIDES: usize>(
        &self,
        mut sides: [JoinSide<'_, C>; SIDES],
        bits: u32,
    ) where
        F: Fn(&[(C, C)]) -> ControlFlow<()> + Sync,
    {
        let state = PairState {
            free: low_bits_mask(bits),
            budget: self.distance,
            equal: 0,
        };
        let mut worker = JoinWorker::new(self, &[]);
        worker.search_group(&mut sides, state);
        worker.flush_pairs();
    }
}

impl<'a, C: FingerprintCode, F: Fn(&[(C, C)]) -> ControlFlow<()> + Sync> JoinWorker<'a, C, F> {
    fn new(search: &'a JoinSearch<'a, F>, differing: &[u128]) -> Self {
        Self {
            search,
            differing: differing.to_vec(),
            pairs: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Finds the near pairs of a group.
    fn search_group<const SIDES: usize>(
        &mut self,
        sides: &mut [JoinSide<'_, C>; SIDES],
        state: PairState,
    ) {
        let load = load_of(sides);
        if load.pairs == 0.0 || self.search.stopped.load(Ordering::Relaxed) {
            return;
        }
        if load.elements <= self.search.tuning.small {
            return self.compare_all(sides, state.equal);
        }
        let varying = varying_bits(sides);
        let state = PairState {
            free: state.free & varying,
            equal: state.equal & varying,
            ..state
        };
        if state.equal != 0 {
            self.split_by_block(sides, state.equal, PairState { equal: 0, ..state });
            return restore_order(sides, 1);
        }
        // Starting again with all varying bits and the full distance can cost less than going on.
        let left = (state.free, state.budget);
        let again = (varying, self.search.distance);
        let best = [left, again]
            .into_iter()
            .filter_map(|(free, budget)| {
                let split = self
                    .search
                    .tuning
                    .cheapest_split(load, free.count_ones(), budget)?;
                Some((split, free, budget))
            })
            .min_by(|one, other| one.0.cost.total_cmp(&other.0.cost));
        match best {
            Some((split, free, budget)) if split.cost < self.search.tuning.compare_all(load) => {
                self.split_by_blocks(sides, split.width, free, budget);
            }
            _ => self.compare_all(sides, 0),
        }
    }

    /// Splits by one block after another. The first split finds the pairs that are equal in the
    /// first block, the second those that differ in it and are equal in the second block, and so
    /// on.
    fn split_by_blocks<const SIDES: usize>(
        &mut self,
        sides: &mut [JoinSide<'_, C>; SIDES],
        width: u32,
        mut free: u128,
        budget: u32,
    ) {
        let before = self.differing.len();
        for skipped in 0..=budget {
            let block = upper_ones(free, width);
            free &= !block;
            let state = PairState {
                free,
                budget: budget - skipped,
                equal: 0,
            };
            self.split_by_block(sides, block, state);
            self.differing.push(block);
        }
        self.differing.truncate(before);
        restore_order(sides, budget + 1);
    }

    /// Splits by a block and descends into its buckets. Swaps `codes` and `room` of each side.
    fn split_by_block<const SIDES: usize>(
        &mut self,
        sides: &mut [JoinSide<'_, C>; SIDES],
        equal: u128,
        state: PairState,
    ) {
        // Split by a wide block in passes of about equal width.
        let JoinTuning {
            key_bits, large, ..
        } = self.search.tuning;
        let bits = equal.count_ones();
        let now = JoinKeyBlock::new(upper_ones(equal, bits.div_ceil(bits.div_ceil(key_bits))));
        let state = PairState {
            equal: equal & !now.mask,
            ..state
        };
        if sides.iter().any(|side| side.codes.len() >= large) {
            self.split_together(sides, now, state);
        } else {
            self.split_alone(sides, now, state);
        }
    }

    fn split_alone<const SIDES: usize>(
        &mut self,
        sides: &mut [JoinSide<'_, C>; SIDES],
        block: JoinKeyBlock,
        state: PairState,
    ) {
        let cpu = self.search.cpu;
        let ends: [Vec<u32>; SIDES] = array::from_fn(|side| {
            let JoinSide { codes, room } = &mut sides[side];
            let mut at = self.spare.pop().unwrap_or_default();
            at.clear();
            at.resize(block.bucket_count(), 0);
            cpu.run(CountKernel {
                codes,
                block,
                counts: &mut at,
            });
            let mut start = 0;
            for count in &mut at {
                start += std::mem::replace(count, start);
            }
            cpu.run(ScatterKernel {
                codes,
                block,
                to: room,
                at: &mut at,
            });
            std::mem::swap(codes, room);
            at
        });
        let small = if SIDES == 1 {
            self.search.tuning.small
        } else {
            0
        };
        if let ([side], [ends]) = (&sides[..], &ends[..]) {
            let near = pair_emitter(self.search, &self.differing, state.equal, &mut self.pairs);
            cpu.run(WithinSmall {
                codes: &*side.codes,
                ends,
                most: small,
                limit: self.search.distance,
                near,
            });
        }
        let mut starts = [0; SIDES];
        let bounds = (0..block.bucket_count())
            .map(|bucket| ends.each_ref().map(|ends| ends[bucket] as usize));
        for ends in bounds {
            let ranges: [Range<usize>; SIDES] = array::from_fn(|side| starts[side]..ends[side]);
            starts = ends;
            let empty = ranges.iter().any(Range::is_empty);
            if !empty && ranges[0].len() > small {
                let mut parts = sides.iter_mut().zip(ranges);
                let mut parts: [JoinSide<'_, C>; SIDES] = array::from_fn(|_| {
                    let (side, range) = parts.next().expect("there is a range for every side");
                    JoinSide {
                        codes: &mut side.codes[range.clone()],
                        room: &mut side.room[range],
                    }
                });
                self.search_group(&mut parts, state);
            }
        }
        self.spare.extend(ends);
    }

    /// Splits with all threads: first they share the whole, then each takes whole groups.
    fn split_together<const SIDES: usize>(
        &mut self,
        sides: &mut [JoinSide<'_, C>; SIDES],
        block: JoinKeyBlock,
        state: PairState,
    ) {
        let cpu = self.search.cpu;
        let lengths: [Vec<usize>; SIDES] = array::from_fn(|side| {
            let JoinSide { codes, room } = &mut sides[side];
            let lengths = scatter_together(cpu, codes, room, block);
            std::mem::swap(codes, room);
            lengths
        });
        let mut rest: [JoinSide<'_, C>; SIDES] = sides.each_mut().map(JoinSide::reborrow);
        let groups = (0..block.bucket_count())
            .map(|bucket| array::from_fn(|side| rest[side].take_front(lengths[side][bucket])));
        let (large, small): (Vec<[JoinSide<'_, C>; SIDES]>, Vec<_>) =
            groups.partition(|group| load_of(group).elements >= self.search.tuning.large);
        for mut group in large {
            self.search_group(&mut group, state);
        }
        let worker = || JoinWorker::new(self.search, &self.differing);
        small
            .into_par_iter()
            .for_each_init(worker, |worker, mut group| {
                worker.search_group(&mut group, state);
                worker.flush_pairs();
            });
    }

    /// Compares all pairs, and reports only those that are equal in `equal`.
    fn compare_all<const SIDES: usize>(
        &mut self,
        sides: &mut [JoinSide<'_, C>; SIDES],
        equal: u128,
    ) {
        let tiles = sides
            .each_ref()
            .map(|side| side.codes.chunks(self.search.tuning.tile));
        let left: Vec<_> = tiles[0].clone().collect();
        let work = |worker: &mut Self, at: usize| {
            let search = worker.search;
            let mut near = pair_emitter(search, &worker.differing, equal, &mut worker.pairs);
            let (codes, limit) = (left[at], search.distance);
            let first = if SIDES == 1 {
                let near = &mut near;
                search.cpu.run(WithinKernel { codes, limit, near });
                at + 1
            } else {
                0
            };
            for others in tiles[SIDES - 1].clone().skip(first) {
                if search.stopped.load(Ordering::Relaxed) {
                    return;
                }
                search.cpu.run(AcrossKernel {
                    codes,
                    others,
                    limit,
                    near: &mut near,
                });
            }
        };
        if load_of(sides).elements < self.search.tuning.large {
            (0..left.len()).for_each(|at| work(self, at));
        } else {
            let worker = || JoinWorker::new(self.search, &self.differing);
            (0..left.len())
                .into_par_iter()
                .for_each_init(worker, |worker, at| {
                    work(worker, at);
                    worker.flush_pairs();
                });
        }
    }

    fn flush_pairs(&mut self) {
        report_pairs(self.search, &mut self.pairs);
    }
}

/// Returns a function that collects the near pairs that have not been reported before.
#[inline(always)]
fn pair_emitter<'a, C: FingerprintCode, F: Fn(&[(C, C)]) -> ControlFlow<()>>(
    search: &'a JoinSearch<'_, F>,
    differing: &'a [u128],
    equal: u128,
    pairs: &'a mut Vec<(C, C)>,
) -> impl FnMut(C, C) + use<'a, C, F> {
    move |a, b| {
        let bits = a.differing_bits(b).widen();
        if bits & equal == 0 && differing.iter().all(|block| bits & block != 0) {
            pairs.push((a, b));
            if pairs.len() == PAIRS_PER_VISIT {
                report_pairs(search, pairs);
            }
        }
    }
}

#[inline(never)]
fn report_pairs<C, F: Fn(&[(C, C)]) -> ControlFlow<()>>(
    search: &JoinSearch<'_, F>,
    pairs: &mut Vec<(C, C)>,
) {
    if !pairs.is_empty() && !search.stopped.load(Ordering::Relaxed) {
        let next = (search.visit)(pairs);
        search.stopped.fetch_or(next.is_break(), Ordering::Relaxed);
    }
    pairs.clear();
}

impl<C> JoinSide<'_, C> {
    fn reborrow(&mut self) -> JoinSide<'_, C> {
        JoinSide {
            codes: self.codes,
            room: self.room,
        }
    }
}

impl<'a, C> JoinSide<'a, C> {
    /// Takes the first `length` fingerprints off.
    fn take_front(&mut self, length: usize) -> JoinSide<'a, C> {
        let codes = self.codes.split_off_mut(..length);
        let room = self.room.split_off_mut(..length);
        let both = codes.zip(room);
        let (codes, room) = both.expect("the groups of a side are as long as the side");
        JoinSide { codes, room }
    }
}

/// Moves the codes back to their original slice after this many splits.
fn restore_order<C: Copy, const SIDES: usize>(sides: &mut [JoinSide<'_, C>; SIDES], splits: u32) {
    if !splits.is_multiple_of(2) {
        for JoinSide { codes, room } in sides {
            room.copy_from_slice(codes);
            std::mem::swap(codes, room);
        }
    }
}

fn load_of<C, const SIDES: usize>(sides: &[JoinSide<'_, C>; SIDES]) -> JoinLoad {
    let lengths = sides.each_ref().map(|side| side.codes.len());
    let pairs = match lengths[..] {
        [length] => (length * length.saturating_sub(1) / 2) as f64,
        _ => lengths.iter().map(|&length| length as f64).product(),
    };
    JoinLoad {
        elements: lengths.iter().sum(),
        pairs,
    }
}

/// Returns the bits in which any two fingerprints differ, of the same side or not.
fn varying_bits<C: FingerprintCode, const SIDES: usize>(sides: &[JoinSide<'_, C>; SIDES]) -> u128 {
    let first = sides[0].codes[0];
    sides.iter().fold(0, |bits, side| {
        bits | find_varying_bits(side.codes) | side.codes[0].differing_bits(first).widen()
    })
}

/// Returns the uppermost `width` ones of a mask.
fn upper_ones(mask: u128, width: u32) -> u128 {
    let mut rest = mask;
    for _ in 0..width {
        rest &= !(1 << (127 - rest.leading_zeros()));
    }
    mask & !rest
}

/// Copies codes to their buckets and returns the number of codes in each.
fn scatter_together<C: FingerprintCode>(
    cpu: Cpu,
    codes: &[C],
    to: &mut [C],
    block: JoinKeyBlock,
) -> Vec<usize> {
    let piece = piece_length(codes.len());
    let counts: Vec<Vec<usize>> = codes
        .par_chunks(piece)
        .map(|codes| {
            let mut counts = vec![0; block.bucket_count()];
            cpu.run(CountKernel {
                codes,
                block,
                counts: &mut counts,
            });
            counts.into_iter().map(|count| count as usize).collect()
        })
        .collect();
    let targets = deal_buckets(to, &counts);
    let pieces = codes.par_chunks(piece).zip(targets);
    pieces.for_each(|(codes, targets)| {
        let mut cursors: Vec<_> = targets.into_iter().map(|part| part.iter_mut()).collect();
        cpu.run(DealKernel {
            codes,
            block,
            cursors: &mut cursors,
        });
    });
    (0..block.bucket_count())
        .map(|bucket| counts.iter().map(|counts| counts[bucket]).sum())
        .collect()
}
