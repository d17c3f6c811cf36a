//! All pairs within a Hamming distance: of one list, or of one list and another.
//!
//! Exact: every pair within the distance comes up, and comes up once. First equal fingerprints are
//! collapsed ([`Distinct`]), so that a hot value costs one comparison where it would cost one for
//! each of its rows. What is left is split recursively:
//!
//! * near pairs differ in at most k bits, so of k + 1 blocks of bits they are equal in at least one
//!   (the pigeonhole principle). Fingerprints are brought together by the first block, and then by
//!   the next one; pairs that meet in a later block count only if they differ in all earlier ones,
//!   since otherwise they came up before. No list of pairs seen is needed;
//! * a group in which a block is equal is a smaller problem of the same kind: the pairs differ in at
//!   most k bits of those left; in at most k − s, if they differ in s blocks that were skipped. With
//!   that, five blocks of which two are equal come out of the recursion by itself (ten tables at
//!   k = 3, as Manku, Jain and Das Sarma 2007 have them, of which four are made from the whole list
//!   and ten within groups that fit the cache);
//! * a group that is cheap to compare is compared, a cache line of fingerprints at a time.
//!
//! How wide the blocks are, how deep to go and when to compare is decided in every group anew, by a
//! cost model, from the number of its fingerprints and the bits in which they really vary. This is
//! what real fingerprints need: some of their bits are nearly constant, and a group that stays large
//! after one split is split by other bits. In a group where only k bits vary, all pairs are answers,
//! so comparing all of them is no waste.
//!
//! Besides the fingerprints handed in it takes 8.5 bytes a row and three times the bytes of a
//! fingerprint (33 bytes a row at 64 bits, 57 at 128), whatever the fingerprints, and the portions of
//! pairs under way. The whole list is passed over about 2·(k + 2) times; all else is done in the
//! cache, and grows with the number of pairs.
//!
//! Works in the `rayon` pool in which it is called. The set of pairs is always the same; their order
//! and their portions are not. Nothing can be added to a join: to look up what is near to one
//! fingerprint after the other, an index is better.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

mod distinct;
mod kernel;
mod plan;
mod search;
#[cfg(test)]
mod tests;

pub use distinct::Distinct;

use plan::Tuning;
use search::{Search, Side};

use super::code::Code;
use crate::arch::Cpu;
use crate::arch::Numbers;
use crate::error::Result;
use crate::types::Distance;

/// Two that are near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Near {
    /// The one: where both are of one list, the one with the lower number.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// How many bits differ.
    pub distance: u32,
}

/// How rows of equal fingerprints are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equal {
    /// Only the first row of each value is paired with first rows of near values; in a list joined
    /// with itself it is also paired with every other row of its value. That connects the same rows
    /// as all pairs would, and costs a pair for every row of a hot value.
    Linked,
    /// Every pair of rows: n²/2 of them for a value of n rows.
    Expanded,
}

/// Calls back with all pairs of distinct values within the distance, by where they stand, a < b.
///
/// # Errors
/// If there is not enough memory.
pub fn near_values<C: Code>(
    codes: &Distinct<C>,
    distance: Distance,
    visit: &(impl Fn(&[Near]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let mut memory = Work::new(codes)?;
    let next = run([memory.side()], distance, best(), &|pairs: &[(C, C)]| {
        let near = |&(a, b): &(C, C)| {
            let (at, other) = (codes.find(a), codes.find(b));
            Near {
                a: at.min(other),
                b: at.max(other),
                distance: a.distance(b),
            }
        };
        visit(&pairs.iter().map(near).collect::<Vec<_>>())
    });
    Ok(next)
}

/// Calls back with all pairs of a value of `left` and one of `right` within the distance, equal ones
/// among them, by where they stand.
///
/// # Errors
/// If there is not enough memory.
pub fn near_values_across<C: Code>(
    left: &Distinct<C>,
    right: &Distinct<C>,
    distance: Distance,
    visit: &(impl Fn(&[Near]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let (mut one, mut other) = (Work::new(left)?, Work::new(right)?);
    let next = run(
        [one.side(), other.side()],
        distance,
        best(),
        &|pairs: &[(C, C)]| {
            let near = |&(a, b): &(C, C)| Near {
                a: left.find(a),
                b: right.find(b),
                distance: a.distance(b),
            };
            visit(&pairs.iter().map(near).collect::<Vec<_>>())
        },
    );
    Ok(next)
}

fn best() -> (Cpu, Tuning) {
    (Cpu::best(), Tuning::default())
}

fn run<C: Code, const SIDES: usize>(
    sides: [Side<'_, C>; SIDES],
    distance: Distance,
    (cpu, tuning): (Cpu, Tuning),
    visit: &(impl Fn(&[(C, C)]) -> ControlFlow<()> + Sync),
) -> ControlFlow<()> {
    let search = Search {
        distance: distance.get(),
        cpu,
        tuning,
        visit,
        stopped: AtomicBool::new(false),
    };
    search.run(sides, C::BITS);
    if search.stopped.into_inner() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// A copy of the values that may be reordered, and as much room.
struct Work<C: Code> {
    codes: Numbers<C>,
    room: Numbers<C>,
}

impl<C: Code> Work<C> {
    fn new(distinct: &Distinct<C>) -> Result<Self> {
        let mut codes = Numbers::zeroed(distinct.len())?;
        codes.copy_from_slice(distinct.codes());
        Ok(Self {
            codes,
            room: Numbers::zeroed(distinct.len())?,
        })
    }

    fn side(&mut self) -> Side<'_, C> {
        Side {
            codes: &mut self.codes,
            room: &mut self.room,
        }
    }
}

/// Calls back with the pairs of rows of one list within the distance, a < b, each pair once, in an
/// order that is not defined, in batches, from several threads at once. Stops early if told to.
///
/// # Errors
/// As [`Distinct::new`].
pub fn near_rows<C: Code>(
    codes: &[C],
    bits: u32,
    distance: Distance,
    equal: Equal,
    visit: &(impl Fn(&[Near]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let distinct = Distinct::new(codes, bits)?;
    let mut batch = Batch::new(visit);
    for rows in distinct.equal() {
        let firsts = match equal {
            Equal::Linked => &rows[..1],
            Equal::Expanded => rows,
        };
        for (at, &a) in firsts.iter().enumerate() {
            for &b in &rows[at + 1..] {
                if batch.push(a, b, 0).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }
    if batch.flush().is_break() {
        return Ok(ControlFlow::Break(()));
    }
    near_values(&distinct, distance, &|near: &[Near]| {
        expand(near, &distinct, &distinct, equal, true, visit)
    })
}

/// Calls back with the pairs of a row of `left` and one of `right` within the distance; otherwise
/// like [`near_rows`].
///
/// # Errors
/// As [`Distinct::new`].
pub fn near_rows_across<C: Code>(
    left: &[C],
    right: &[C],
    bits: u32,
    distance: Distance,
    equal: Equal,
    visit: &(impl Fn(&[Near]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let left = Distinct::new(left, bits)?;
    let right = Distinct::new(right, bits)?;
    near_values_across(&left, &right, distance, &|near: &[Near]| {
        expand(near, &left, &right, equal, false, visit)
    })
}

/// From pairs of values to pairs of rows.
fn expand<C: Code>(
    near: &[Near],
    left: &Distinct<C>,
    right: &Distinct<C>,
    equal: Equal,
    ordered: bool,
    visit: &impl Fn(&[Near]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut batch = Batch::new(visit);
    for &Near { a, b, distance } in near {
        let (mut a, mut b) = (left.rows(a), right.rows(b));
        if equal == Equal::Linked {
            (a, b) = (&a[..1], &b[..1]);
        }
        for &a in a {
            for &b in b {
                if ordered && b < a {
                    batch.push(b, a, distance)?;
                } else {
                    batch.push(a, b, distance)?;
                }
            }
        }
    }
    batch.flush()
}

struct Batch<'a, F> {
    pairs: Vec<Near>,
    visit: &'a F,
}

impl<'a, F: Fn(&[Near]) -> ControlFlow<()>> Batch<'a, F> {
    fn new(visit: &'a F) -> Self {
        Self {
            pairs: Vec::new(),
            visit,
        }
    }

    fn push(&mut self, a: u32, b: u32, distance: u32) -> ControlFlow<()> {
        self.pairs.push(Near { a, b, distance });
        if self.pairs.len() == BATCH {
            self.flush()?;
        }
        ControlFlow::Continue(())
    }

    fn flush(&mut self) -> ControlFlow<()> {
        let next = if self.pairs.is_empty() {
            ControlFlow::Continue(())
        } else {
            (self.visit)(&self.pairs)
        };
        self.pairs.clear();
        next
    }
}

/// Pairs that are handed on together.
const BATCH: usize = 4096;
