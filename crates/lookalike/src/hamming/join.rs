//! Exact join: all pairs within a Hamming distance, of one list or of one list and another.
//!
//! Every pair within the distance is found once. First, equal fingerprints are collapsed
//! ([`DistinctCodes`]), so that a hot value costs one comparison instead of one for each of its rows.
//! The distinct values are then split recursively:
//!
//! * Near pairs differ in at most k bits, so they are equal in at least one of k + 1 blocks of bits
//!   (the pigeonhole principle). Fingerprints are grouped by the first block, then by the next one.
//!   A pair found in a later block counts only if it differs in all earlier blocks, because
//!   otherwise it has been reported before. No list of reported pairs is needed.
//! * A group in which a block is equal is a smaller problem of the same kind: its pairs differ in
//!   at most k of the remaining bits, or in at most k − s if they differ in s skipped blocks. For
//!   example, at k = 3 the recursion itself arrives at five blocks of which two are equal. Manku,
//!   Jain and Das Sarma (2007) build ten tables for this; here four are made from the whole list,
//!   and ten within groups that fit the cache.
//! * A group that is cheap to compare is compared, a cache line of fingerprints at a time.
//!
//! A cost model decides anew in every group how wide the blocks are, how deep to split and when to
//! compare. It uses the number of fingerprints and the bits that vary in the group. Real
//! fingerprints need this because some of their bits are nearly constant, and a group that stays
//! large after one split is then split by other bits. In a group in which only k bits vary, every
//! pair is a match, so comparing all pairs is no waste.
//!
//! # Cost
//!
//! In addition to the given fingerprints, a join takes 8.5 bytes per row and three times the bytes
//! of a fingerprint (33 bytes per row at 64 bits, 57 at 128), whatever the fingerprints are, and
//! the batches of pairs in progress. It passes over the whole list about 2·(k + 2) times. All other
//! work is done in the cache and grows with the number of pairs.
//!
//! # Limits
//!
//! A join runs in the `rayon` pool in which it is called. The set of pairs is always the same;
//! their order and their batches are not. Nothing can be added to a join: an index is better for
//! looking up one fingerprint after another.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

mod distinct;
mod kernel;
mod plan;
mod search;
#[cfg(test)]
mod tests;

pub use distinct::DistinctCodes;

use plan::JoinTuning;
use search::{JoinSearch, JoinSide};

use super::fingerprint_code::FingerprintCode;
use crate::arch::Cpu;
use crate::arch::LargePageArray;
use crate::error::Result;
use crate::types::Distance;

/// Two values or rows that are near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NearPair {
    /// The first of the two: in a join of one list with itself, the one with the lower number.
    pub a: u32,
    /// The second of the two.
    pub b: u32,
    /// Number of bits that differ.
    pub distance: u32,
}

/// The pairs that are reported for rows of equal fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EqualRows {
    /// Only the first row of each value is paired with first rows of near values. In a join of one
    /// list with itself, it is also paired with every other row of its value. This connects the
    /// same rows as all pairs would, and costs one pair per row of a hot value.
    Linked,
    /// Every pair of rows: n²/2 of them for a value of n rows.
    Expanded,
}

/// Calls `visit` with all pairs of distinct values within the distance, by their positions, a < b.
///
/// # Errors
/// Returns an error if there is not enough memory.
pub fn near_values<C: FingerprintCode>(
    codes: &DistinctCodes<C>,
    distance: Distance,
    visit: &(impl Fn(&[NearPair]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let mut memory = JoinBuffers::new(codes)?;
    let next = run_join(
        [memory.borrow_side()],
        distance,
        Cpu::detect_best(),
        JoinTuning::default(),
        &|pairs: &[(C, C)]| {
            let near = |&(a, b): &(C, C)| {
                let (at, other) = (codes.position_of(a), codes.position_of(b));
                NearPair {
                    a: at.min(other),
                    b: at.max(other),
                    distance: a.hamming_distance(b),
                }
            };
            visit(&pairs.iter().map(near).collect::<Vec<_>>())
        },
    );
    Ok(next)
}

/// Calls `visit` with all pairs of a value of `left` and a value of `right` within the distance,
/// including equal values, by their positions.
///
/// # Errors
/// Returns an error if there is not enough memory.
pub fn near_values_across<C: FingerprintCode>(
    left: &DistinctCodes<C>,
    right: &DistinctCodes<C>,
    distance: Distance,
    visit: &(impl Fn(&[NearPair]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let (mut one, mut other) = (JoinBuffers::new(left)?, JoinBuffers::new(right)?);
    let next = run_join(
        [one.borrow_side(), other.borrow_side()],
        distance,
        Cpu::detect_best(),
        JoinTuning::default(),
        &|pairs: &[(C, C)]| {
            let near = |&(a, b): &(C, C)| NearPair {
                a: left.position_of(a),
                b: right.position_of(b),
                distance: a.hamming_distance(b),
            };
            visit(&pairs.iter().map(near).collect::<Vec<_>>())
        },
    );
    Ok(next)
}

fn run_join<C: FingerprintCode, const SIDES: usize>(
    sides: [JoinSide<'_, C>; SIDES],
    distance: Distance,
    cpu: Cpu,
    tuning: JoinTuning,
    visit: &(impl Fn(&[(C, C)]) -> ControlFlow<()> + Sync),
) -> ControlFlow<()> {
    let search = JoinSearch {
        distance: distance.get(),
        cpu,
        tuning,
        visit,
        stopped: AtomicBool::new(false),
    };
    search.find_near_pairs(sides, C::BITS);
    if search.stopped.into_inner() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// A copy of the values that can be reordered, and a buffer of the same length.
struct JoinBuffers<C: FingerprintCode> {
    codes: LargePageArray<C>,
    room: LargePageArray<C>,
}

impl<C: FingerprintCode> JoinBuffers<C> {
    fn new(distinct: &DistinctCodes<C>) -> Result<Self> {
        let mut codes = LargePageArray::allocate_zeroed(distinct.len())?;
        codes.copy_from_slice(distinct.codes());
        Ok(Self {
            codes,
            room: LargePageArray::allocate_zeroed(distinct.len())?,
        })
    }

    fn borrow_side(&mut self) -> JoinSide<'_, C> {
        JoinSide {
            codes: &mut self.codes,
            room: &mut self.room,
        }
    }
}

/// Calls `visit` with the pairs of rows of one list within the distance, a < b, each pair once.
/// Pairs come in batches, in no specified order, from several threads at once. `visit` can stop the
/// join.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Mutex;
///
/// use lookalike::Distance;
/// use lookalike::hamming::join::{EqualRows, NearPair, visit_near_rows};
///
/// let (codes, found) = ([0b0000_u64, 0b0111, 0b1111, 0b0000], Mutex::new(Vec::new()));
/// let _ = visit_near_rows(&codes, 64, Distance::new(1, 64)?, EqualRows::Linked, &|pairs: &[NearPair]| {
///     found.lock().unwrap().extend(pairs.iter().map(|pair| (pair.a, pair.b, pair.distance)));
///     ControlFlow::Continue(())
/// })?;
/// let mut found = found.into_inner().unwrap();
/// found.sort();
/// assert_eq!(found, [(0, 3, 0), (1, 2, 1)]);
/// # Ok::<_, lookalike::Error>(())
/// ```
///
/// # Errors
/// Returns an error in the cases of [`DistinctCodes::new`].
pub fn visit_near_rows<C: FingerprintCode>(
    codes: &[C],
    bits: u32,
    distance: Distance,
    equal: EqualRows,
    visit: &(impl Fn(&[NearPair]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let distinct = DistinctCodes::new(codes, bits)?;
    let mut batch = PairBatch::new(visit);
    for rows in distinct.repeated_rows() {
        let firsts = match equal {
            EqualRows::Linked => &rows[..1],
            EqualRows::Expanded => rows,
        };
        for (at, &a) in firsts.iter().enumerate() {
            for &b in &rows[at + 1..] {
                if batch.push_pair(a, b, 0).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }
    if batch.flush_pairs().is_break() {
        return Ok(ControlFlow::Break(()));
    }
    near_values(&distinct, distance, &|near: &[NearPair]| {
        expand_to_rows(near, &distinct, &distinct, equal, true, visit)
    })
}

/// Calls `visit` with the pairs of a row of `left` and a row of `right` within the distance, as
/// [`visit_near_rows`] does.
///
/// # Errors
/// Returns an error in the cases of [`DistinctCodes::new`].
pub fn near_rows_across<C: FingerprintCode>(
    left: &[C],
    right: &[C],
    bits: u32,
    distance: Distance,
    equal: EqualRows,
    visit: &(impl Fn(&[NearPair]) -> ControlFlow<()> + Sync),
) -> Result<ControlFlow<()>> {
    let left = DistinctCodes::new(left, bits)?;
    let right = DistinctCodes::new(right, bits)?;
    near_values_across(&left, &right, distance, &|near: &[NearPair]| {
        expand_to_rows(near, &left, &right, equal, false, visit)
    })
}

/// Turns pairs of values into pairs of rows.
fn expand_to_rows<C: FingerprintCode>(
    near: &[NearPair],
    left: &DistinctCodes<C>,
    right: &DistinctCodes<C>,
    equal: EqualRows,
    ordered: bool,
    visit: &impl Fn(&[NearPair]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut batch = PairBatch::new(visit);
    for &NearPair { a, b, distance } in near {
        let (mut a, mut b) = (left.rows_of_value(a), right.rows_of_value(b));
        if equal == EqualRows::Linked {
            (a, b) = (&a[..1], &b[..1]);
        }
        for &a in a {
            for &b in b {
                if ordered && b < a {
                    batch.push_pair(b, a, distance)?;
                } else {
                    batch.push_pair(a, b, distance)?;
                }
            }
        }
    }
    batch.flush_pairs()
}

struct PairBatch<'a, F> {
    pairs: Vec<NearPair>,
    visit: &'a F,
}

impl<'a, F: Fn(&[NearPair]) -> ControlFlow<()>> PairBatch<'a, F> {
    fn new(visit: &'a F) -> Self {
        Self {
            pairs: Vec::new(),
            visit,
        }
    }

    fn push_pair(&mut self, a: u32, b: u32, distance: u32) -> ControlFlow<()> {
        self.pairs.push(NearPair { a, b, distance });
        if self.pairs.len() == PAIRS_PER_VISIT {
            self.flush_pairs()?;
        }
        ControlFlow::Continue(())
    }

    fn flush_pairs(&mut self) -> ControlFlow<()> {
        let next = if self.pairs.is_empty() {
            ControlFlow::Continue(())
        } else {
            (self.visit)(&self.pairs)
        };
        self.pairs.clear();
        next
    }
}

/// Pairs per call of `visit`.
const PAIRS_PER_VISIT: usize = 4096;
