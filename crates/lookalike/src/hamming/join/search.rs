//! The recursion of a join: split a group, descend into its buckets, skip known pairs, compare.

use std::array;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::super::code::{Code, low_bits};
use super::distinct::{deal, piece, varying};
use super::kernel::{Across, Block, Count, Deal, Scatter, Within, WithinSmall};
use super::plan::{Load, Tuning};
use crate::arch::Cpu;

/// Near pairs per call of `visit`.
const BATCH: usize = 4096;

/// The parts of a join that all threads share.
pub(super) struct Search<'a, F> {
    pub(super) distance: u32,
    pub(super) cpu: Cpu,
    pub(super) tuning: Tuning,
    /// Takes near pairs, and can stop the join. In a join across two lists, the fingerprint of the
    /// left list comes first.
    pub(super) visit: &'a F,
    pub(super) stopped: AtomicBool,
}

/// Fingerprints of one side, and a buffer of the same length. However often they are moved between
/// the two, they end up in `codes`, in another order.
pub(super) struct Side<'a, C> {
    pub(super) codes: &'a mut [C],
    pub(super) room: &'a mut [C],
}

/// Knowledge about the pairs that a group is searched for.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// Bits in which at most `budget` differ.
    pub(super) free: u128,
    pub(super) budget: u32,
    /// Bits that must be equal but by which the group is not split yet.
    pub(super) equal: u128,
}

/// State of one thread.
struct Worker<'a, C, F> {
    search: &'a Search<'a, F>,
    /// Blocks in which a pair must differ, because otherwise it has been reported before.
    differing: Vec<u128>,
    pairs: Vec<(C, C)>,
    spare: Vec<Vec<u32>>,
}

impl<F> Search<'_, F> {
    /// Finds all near pairs of one side, or across two.
    pub(super) fn run<C: Code, const SIDES: usize>(
        &self,
        mut sides: [Side<'_, C>; SIDES],
        bits: u32,
    ) where
        F: Fn(&[(C, C)]) -> ControlFlow<()> + Sync,
    {
        let state = State {
            free: low_bits(bits),
            budget: self.distance,
            equal: 0,
        };
        let mut worker = Worker::new(self, &[]);
        worker.group(&mut sides, state);
        worker.flush();
    }
}

impl<'a, C: Code, F: Fn(&[(C, C)]) -> ControlFlow<()> + Sync> Worker<'a, C, F> {
    fn new(search: &'a Search<'a, F>, differing: &[u128]) -> Self {
        Self {
            search,
            differing: differing.to_vec(),
            pairs: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Finds the near pairs of a group.
    fn group<const SIDES: usize>(&mut self, sides: &mut [Side<'_, C>; SIDES], state: State) {
        let load = load(sides);
        if load.pairs == 0.0 || self.search.stopped.load(Ordering::Relaxed) {
            return;
        }
        if load.elements <= self.search.tuning.small {
            return self.compare(sides, state.equal);
        }
        let varying = varying_bits(sides);
        let state = State {
            free: state.free & varying,
            equal: state.equal & varying,
            ..state
        };
        if state.equal != 0 {
            self.split(sides, state.equal, State { equal: 0, ..state });
            return put_back(sides, 1);
        }
        // Starting again with all varying bits and the full distance can cost less than going on.
        let left = (state.free, state.budget);
        let again = (varying, self.search.distance);
        let best = [left, again]
            .into_iter()
            .filter_map(|(free, budget)| {
                let split = self.search.tuning.split(load, free.count_ones(), budget)?;
                Some((split, free, budget))
            })
            .min_by(|one, other| one.0.cost.total_cmp(&other.0.cost));
        match best {
            Some((split, free, budget)) if split.cost < self.search.tuning.compare_all(load) => {
                self.blocks(sides, split.width, free, budget);
            }
            _ => self.compare(sides, 0),
        }
    }

    /// Splits by one block after another. The first split finds the pairs that are equal in the
    /// first block, the second those that differ in it and are equal in the second block, and so
    /// on.
    fn blocks<const SIDES: usize>(
        &mut self,
        sides: &mut [Side<'_, C>; SIDES],
        width: u32,
        mut free: u128,
        budget: u32,
    ) {
        let before = self.differing.len();
        for skipped in 0..=budget {
            let block = upper(free, width);
            free &= !block;
            let state = State {
                free,
                budget: budget - skipped,
                equal: 0,
            };
            self.split(sides, block, state);
            self.differing.push(block);
        }
        self.differing.truncate(before);
        put_back(sides, budget + 1);
    }

    /// Splits by a block and descends into its buckets. Swaps `codes` and `room` of each side.
    fn split<const SIDES: usize>(
        &mut self,
        sides: &mut [Side<'_, C>; SIDES],
        equal: u128,
        state: State,
    ) {
        // Split by a wide block in passes of about equal width.
        let Tuning {
            key_bits, large, ..
        } = self.search.tuning;
        let bits = equal.count_ones();
        let now = Block::new(upper(equal, bits.div_ceil(bits.div_ceil(key_bits))));
        let state = State {
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
        sides: &mut [Side<'_, C>; SIDES],
        block: Block,
        state: State,
    ) {
        let cpu = self.search.cpu;
        let ends: [Vec<u32>; SIDES] = array::from_fn(|side| {
            let Side { codes, room } = &mut sides[side];
            let mut at = self.spare.pop().unwrap_or_default();
            at.clear();
            at.resize(block.buckets(), 0);
            cpu.run(Count {
                codes,
                block,
                counts: &mut at,
            });
            let mut start = 0;
            for count in &mut at {
                start += std::mem::replace(count, start);
            }
            cpu.run(Scatter {
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
            let near = emitter(self.search, &self.differing, state.equal, &mut self.pairs);
            cpu.run(WithinSmall {
                codes: &*side.codes,
                ends,
                most: small,
                limit: self.search.distance,
                near,
            });
        }
        let mut starts = [0; SIDES];
        let bounds =
            (0..block.buckets()).map(|bucket| ends.each_ref().map(|ends| ends[bucket] as usize));
        for ends in bounds {
            let ranges: [Range<usize>; SIDES] = array::from_fn(|side| starts[side]..ends[side]);
            starts = ends;
            let empty = ranges.iter().any(Range::is_empty);
            if !empty && ranges[0].len() > small {
                let mut parts = sides.iter_mut().zip(ranges);
                let mut parts: [Side<'_, C>; SIDES] = array::from_fn(|_| {
                    let (side, range) = parts.next().expect("there is a range for every side");
                    Side {
                        codes: &mut side.codes[range.clone()],
                        room: &mut side.room[range],
                    }
                });
                self.group(&mut parts, state);
            }
        }
        self.spare.extend(ends);
    }

    /// Splits with all threads: first they share the whole, then each takes whole groups.
    fn split_together<const SIDES: usize>(
        &mut self,
        sides: &mut [Side<'_, C>; SIDES],
        block: Block,
        state: State,
    ) {
        let cpu = self.search.cpu;
        let lengths: [Vec<usize>; SIDES] = array::from_fn(|side| {
            let Side { codes, room } = &mut sides[side];
            let lengths = scatter_together(cpu, codes, room, block);
            std::mem::swap(codes, room);
            lengths
        });
        let mut rest: [Side<'_, C>; SIDES] = sides.each_mut().map(Side::reborrow);
        let groups = (0..block.buckets())
            .map(|bucket| array::from_fn(|side| rest[side].take(lengths[side][bucket])));
        let (large, small): (Vec<[Side<'_, C>; SIDES]>, Vec<_>) =
            groups.partition(|group| load(group).elements >= self.search.tuning.large);
        for mut group in large {
            self.group(&mut group, state);
        }
        let worker = || Worker::new(self.search, &self.differing);
        small
            .into_par_iter()
            .for_each_init(worker, |worker, mut group| {
                worker.group(&mut group, state);
                worker.flush();
            });
    }

    /// Compares all pairs, and reports only those that are equal in `equal`.
    fn compare<const SIDES: usize>(&mut self, sides: &mut [Side<'_, C>; SIDES], equal: u128) {
        let tiles = sides
            .each_ref()
            .map(|side| side.codes.chunks(self.search.tuning.tile));
        let left: Vec<_> = tiles[0].clone().collect();
        let work = |worker: &mut Self, at: usize| {
            let search = worker.search;
            let mut near = emitter(search, &worker.differing, equal, &mut worker.pairs);
            let (codes, limit) = (left[at], search.distance);
            let first = if SIDES == 1 {
                let near = &mut near;
                search.cpu.run(Within { codes, limit, near });
                at + 1
            } else {
                0
            };
            for others in tiles[SIDES - 1].clone().skip(first) {
                if search.stopped.load(Ordering::Relaxed) {
                    return;
                }
                search.cpu.run(Across {
                    codes,
                    others,
                    limit,
                    near: &mut near,
                });
            }
        };
        if load(sides).elements < self.search.tuning.large {
            (0..left.len()).for_each(|at| work(self, at));
        } else {
            let worker = || Worker::new(self.search, &self.differing);
            (0..left.len())
                .into_par_iter()
                .for_each_init(worker, |worker, at| {
                    work(worker, at);
                    worker.flush();
                });
        }
    }

    fn flush(&mut self) {
        hand_on(self.search, &mut self.pairs);
    }
}

/// Returns a function that collects the near pairs that have not been reported before.
#[inline(always)]
fn emitter<'a, C: Code, F: Fn(&[(C, C)]) -> ControlFlow<()>>(
    search: &'a Search<'_, F>,
    differing: &'a [u128],
    equal: u128,
    pairs: &'a mut Vec<(C, C)>,
) -> impl FnMut(C, C) + use<'a, C, F> {
    move |a, b| {
        let bits = a.xor(b).widen();
        if bits & equal == 0 && differing.iter().all(|block| bits & block != 0) {
            pairs.push((a, b));
            if pairs.len() == BATCH {
                hand_on(search, pairs);
            }
        }
    }
}

#[inline(never)]
fn hand_on<C, F: Fn(&[(C, C)]) -> ControlFlow<()>>(
    search: &Search<'_, F>,
    pairs: &mut Vec<(C, C)>,
) {
    if !pairs.is_empty() && !search.stopped.load(Ordering::Relaxed) {
        let next = (search.visit)(pairs);
        search.stopped.fetch_or(next.is_break(), Ordering::Relaxed);
    }
    pairs.clear();
}

impl<C> Side<'_, C> {
    fn reborrow(&mut self) -> Side<'_, C> {
        Side {
            codes: self.codes,
            room: self.room,
        }
    }
}

impl<'a, C> Side<'a, C> {
    /// Takes the first `length` fingerprints off.
    fn take(&mut self, length: usize) -> Side<'a, C> {
        let codes = self.codes.split_off_mut(..length);
        let room = self.room.split_off_mut(..length);
        let both = codes.zip(room);
        let (codes, room) = both.expect("the groups of a side are as long as the side");
        Side { codes, room }
    }
}

/// Moves the codes back to their original slice after this many splits.
fn put_back<C: Copy, const SIDES: usize>(sides: &mut [Side<'_, C>; SIDES], splits: u32) {
    if !splits.is_multiple_of(2) {
        for Side { codes, room } in sides {
            room.copy_from_slice(codes);
            std::mem::swap(codes, room);
        }
    }
}

fn load<C, const SIDES: usize>(sides: &[Side<'_, C>; SIDES]) -> Load {
    let lengths = sides.each_ref().map(|side| side.codes.len());
    let pairs = match lengths[..] {
        [length] => (length * length.saturating_sub(1) / 2) as f64,
        _ => lengths.iter().map(|&length| length as f64).product(),
    };
    Load {
        elements: lengths.iter().sum(),
        pairs,
    }
}

/// Returns the bits in which any two fingerprints differ, of the same side or not.
fn varying_bits<C: Code, const SIDES: usize>(sides: &[Side<'_, C>; SIDES]) -> u128 {
    let first = sides[0].codes[0];
    sides.iter().fold(0, |bits, side| {
        bits | varying(side.codes) | side.codes[0].xor(first).widen()
    })
}

/// Returns the uppermost `width` ones of a mask.
fn upper(mask: u128, width: u32) -> u128 {
    let mut rest = mask;
    for _ in 0..width {
        rest &= !(1 << (127 - rest.leading_zeros()));
    }
    mask & !rest
}

/// Copies codes to their buckets and returns the number of codes in each.
fn scatter_together<C: Code>(cpu: Cpu, codes: &[C], to: &mut [C], block: Block) -> Vec<usize> {
    let piece = piece(codes.len());
    let counts: Vec<Vec<usize>> = codes
        .par_chunks(piece)
        .map(|codes| {
            let mut counts = vec![0; block.buckets()];
            cpu.run(Count {
                codes,
                block,
                counts: &mut counts,
            });
            counts.into_iter().map(|count| count as usize).collect()
        })
        .collect();
    let targets = deal(to, &counts);
    let pieces = codes.par_chunks(piece).zip(targets);
    pieces.for_each(|(codes, targets)| {
        let mut cursors: Vec<_> = targets.into_iter().map(|part| part.iter_mut()).collect();
        cpu.run(Deal {
            codes,
            block,
            cursors: &mut cursors,
        });
    });
    (0..block.buckets())
        .map(|bucket| counts.iter().map(|counts| counts[bucket]).sum())
        .collect()
}
