//! A prefilter of seed hits, so that those of chance are rejected without a cache miss.
//!
//! Most seeds that stand in a document are chance, because other texts have "of the car" as well. A unit is aligned only
//! if its seeds near one another cover a quarter of its bits. So each hit carries an upper bound of what it covers, and
//! the bounds are added up in cells: those of [`CELL_PLACES`] tokens of units that stand within two stretches of
//! [`STRETCH_TOKENS`] tokens of the document. A unit has tokens of two adjacent cells at most, and the seeds that are
//! near one another stand in two adjacent stretches at most.
//!
//! ```text
//! tokens of units      0      512     1024    1536
//!                      +-------+-------+-------+--
//! stretches 0 and 1    |   2   |   0   |   9   |    cell 2 and a neighbour reach 16 sixty-fourths:
//! stretches 1 and 2    |   1   |   3   |  14   |    the hits of the cells 1 to 3 stay
//!                      +-------+-------+-------+--
//! ```
//!
//! Guarantee: all hits of a unit that could be aligned stay. Of other units some stay. Cost: some nanoseconds for each
//! hit, because the cells fit into the first-level cache.

use super::index::MAX_UNIT_TOKENS;
use super::search::SEED_COVER_DIVISOR;
use super::seed_index::SeedHit;

/// Sixty-fourths of the bits of a unit that its seeds must cover near one another. All bits are [`SEED_COVER_DIVISOR`] times
/// as many.
const REQUIRED_COVER: u8 = 16;

/// Tokens of units in a cell: those of the longest unit, which so has tokens of two cells at most.
const CELL_PLACES: u32 = MAX_UNIT_TOKENS as u32;

/// Number of cells. Tokens of many units share them in turn.
const CELLS: usize = 1 << 14;

/// Tokens of a document in a stretch. Seeds that are near one another are less than a stretch apart.
pub(super) const STRETCH_TOKENS: u32 = 1024;

/// The part of the bits of a unit that a seed covers, rounded up: from 1 to 16 sixty-fourths, where 16 are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeedCover(u8);

impl SeedCover {
    /// Bits of [`to_bits`](Self::to_bits).
    pub(super) const BITS: u32 = 4;

    /// Returns the cover of a seed, given its weight and that of its unit.
    pub(super) fn new(seed_weight: u64, unit_weight: u64) -> Self {
        let required = u64::from(REQUIRED_COVER);
        let sixty_fourths =
            (SEED_COVER_DIVISOR * required * seed_weight).div_ceil(unit_weight.max(1));
        let is_light = unit_weight == 0;
        Self(if is_light {
            REQUIRED_COVER
        } else {
            sixty_fourths.clamp(1, required) as u8
        })
    }

    /// Returns `true` if the seeds of a unit may cover enough of it.
    pub(super) fn are_enough(hits: &[SeedHit]) -> bool {
        let covers = hits.iter().map(|hit| usize::from(hit.cover.0));
        covers.sum::<usize>() >= usize::from(REQUIRED_COVER)
    }

    /// Returns the cover as a number below 16.
    pub(super) fn to_bits(self) -> u32 {
        u32::from(self.0) - 1
    }

    /// Returns the cover from the lowest [`BITS`](Self::BITS) of a number.
    #[inline]
    pub(super) fn from_bits(bits: u32) -> Self {
        Self((bits & ((1 << Self::BITS) - 1)) as u8 + 1)
    }
}

/// Cells, reused from document to document.
#[derive(Debug)]
pub(super) struct SeedPrefilter {
    /// Sum of the covers of hits in each cell; 0 between two calls.
    covers: Box<[u8; CELLS]>,
    /// `true` for each cell whose hits stay; `false` between two calls.
    is_kept: Box<[bool; CELLS]>,
}

impl SeedPrefilter {
    pub(super) fn new() -> Self {
        Self {
            covers: Box::new([0; CELLS]),
            is_kept: Box::new([false; CELLS]),
        }
    }

    /// Removes hits of units that cannot be aligned. The hits ascend by their places in the document.
    pub(super) fn retain_plausible(&mut self, hits: &mut Vec<SeedHit>) {
        let (mut rest, mut keeps_some) = (&hits[..], false);
        while let Some(first) = rest.first() {
            let stretch = first.at / STRETCH_TOKENS;
            let own = rest.partition_point(|hit| hit.at / STRETCH_TOKENS == stretch);
            let later = &rest[own..];
            let next = later.partition_point(|hit| hit.at / STRETCH_TOKENS == stretch + 1);
            keeps_some |= self.mark_cells(&rest[..own + next]);
            // The two stretches had all hits that are near those of the next one if no other follows.
            rest = if next == later.len() { &[] } else { later };
        }
        if !keeps_some {
            return hits.clear();
        }
        hits.retain(|hit| self.is_kept[cell_of(hit)]);
        self.is_kept.fill(false);
    }

    /// Marks the cells of two stretches whose hits may cover enough of a unit, and returns `true` if there are any.
    fn mark_cells(&mut self, hits: &[SeedHit]) -> bool {
        let mut marks_some = false;
        for hit in hits {
            let cover = &mut self.covers[cell_of(hit)];
            *cover = cover.saturating_add(hit.cover.0);
        }
        for hit in hits {
            let cell = cell_of(hit);
            let [before, behind] = neighbours(cell);
            let neighbour = self.covers[before].max(self.covers[behind]);
            if self.covers[cell].saturating_add(neighbour) >= REQUIRED_COVER {
                for cell in [before, cell, behind] {
                    self.is_kept[cell] = true;
                }
                marks_some = true;
            }
        }
        for hit in hits {
            self.covers[cell_of(hit)] = 0;
        }
        marks_some
    }
}

#[inline]
fn cell_of(hit: &SeedHit) -> usize {
    (hit.place / CELL_PLACES) as usize % CELLS
}

#[inline]
fn neighbours(cell: usize) -> [usize; 2] {
    [CELLS - 1, 1].map(|step| (cell + step) % CELLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(place: u32, at: u32, cover: u32) -> SeedHit {
        SeedHit {
            place,
            at,
            cover: SeedCover::from_bits(cover - 1),
        }
    }

    fn retained(hits: &[SeedHit]) -> Vec<SeedHit> {
        let mut retained = hits.to_vec();
        SeedPrefilter::new().retain_plausible(&mut retained);
        retained
    }

    #[test]
    fn covers_are_rounded_up_to_a_quarter() {
        let bits = |seed, unit| SeedCover::new(seed, unit).to_bits() + 1;
        assert_eq!(bits(0, 640), 1);
        assert_eq!(bits(10, 640), 1);
        assert_eq!(bits(11, 640), 2);
        assert_eq!(bits(150, 640), 15);
        assert_eq!(bits(151, 640), 16);
        assert_eq!(bits(640, 640), 16);
        assert_eq!(bits(0, 0), 16);
        for bits in 0..16 {
            assert_eq!(SeedCover::from_bits(bits).to_bits(), bits);
        }
    }

    #[test]
    fn hits_stay_that_reach_a_quarter_together() {
        let far = STRETCH_TOKENS;
        // Alone, in one cell, and in two cells.
        let enough = [hit(9, 3, 16)];
        assert_eq!(retained(&enough), enough);
        let enough = [hit(9, 3, 8), hit(20, far + 3, 8)];
        assert_eq!(retained(&enough), enough);
        let enough = [hit(CELL_PLACES - 1, 3, 8), hit(CELL_PLACES, 7, 8)];
        assert_eq!(retained(&enough), enough);
        // Too little, too far in the units, and too far in the document.
        assert_eq!(retained(&[hit(9, 3, 15)]), []);
        assert_eq!(retained(&[hit(9, 3, 8), hit(9, 7, 7)]), []);
        assert_eq!(
            retained(&[hit(9, 3, 8), hit(9 + 2 * CELL_PLACES, 7, 8)]),
            []
        );
        assert_eq!(retained(&[hit(9, 3, 8), hit(20, 2 * far + 3, 8)]), []);
    }

    #[test]
    fn cells_are_empty_for_the_next_document() {
        let mut prefilter = SeedPrefilter::new();
        for cover in [16, 15, 16, 15] {
            let mut hits = vec![hit(9, 3, cover)];
            prefilter.retain_plausible(&mut hits);
            assert_eq!(hits.len(), usize::from(cover == 16));
        }
    }

    proptest::proptest! {
        #[test]
        fn all_hits_of_a_unit_with_enough_cover_stay(
            mut hits in proptest::collection::vec((0_u32..8, 0_u32..300, 0_u32..4000, 1_u32..9), 0..60),
        ) {
            // The units have 300 tokens, and so begin anywhere in a cell.
            hits.sort_by_key(|&(_, _, at, _)| at);
            let all: Vec<SeedHit> = hits
                .iter()
                .map(|&(unit, place, at, cover)| hit(300 * unit + place, at, cover))
                .collect();
            let retained = retained(&all);
            for unit in 0..8 {
                let of_unit = |hit: &&SeedHit| hit.place / 300 == unit;
                let own: Vec<&SeedHit> = all.iter().filter(of_unit).collect();
                let reaches = own.iter().any(|first| {
                    let near = own.iter().filter(|hit| hit.at >= first.at && hit.at - first.at < STRETCH_TOKENS);
                    near.map(|hit| hit.cover.to_bits() + 1).sum::<u32>() >= u32::from(REQUIRED_COVER)
                });
                if reaches {
                    proptest::prop_assert_eq!(retained.iter().filter(of_unit).collect::<Vec<_>>(), own);
                }
            }
        }
    }
}
