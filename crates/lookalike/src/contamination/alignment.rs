//! The alignment of a unit with a part of a document (Smith and Waterman 1981, with weights).
//!
//! A token of both, in order, counts its weight. A token of the document in between costs [`SKIPPED_TOKEN_COST`], so a
//! far token joins the rest only if it weighs more than what is skipped. Tokens of the unit may be missing at no cost
//! but their own weight.
//!
//! Cost: the product of both lengths, in operations of about a nanosecond; nothing beside a comparison if the unit
//! stands in the document token by token.

use std::ops::Range;

/// Bits of information, in sixteenths.
pub(super) type SixteenthBits = u32;

/// Cost of a token of the document that is skipped between two tokens of the unit: a quarter of a bit.
pub(super) const SKIPPED_TOKEN_COST: SixteenthBits = 4;

/// A unit within a part of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitAlignment {
    /// For each token of the unit, its place in the part, if it was found.
    pub(super) places: Vec<Option<u32>>,
}

impl UnitAlignment {
    /// Returns the tokens of the part from the first to the last that was found; `None` if none was.
    pub(super) fn part_range(&self) -> Option<Range<usize>> {
        let mut found = self.places.iter().flatten();
        let first = *found.next()?;
        let last = found.next_back().copied().unwrap_or(first);
        Some(first as usize..last as usize + 1)
    }

    /// Returns the tokens of the unit from the first to the last that was found; `None` if none was.
    pub(super) fn unit_range(&self) -> Option<Range<usize>> {
        let first = self.places.iter().position(Option::is_some)?;
        let last = self.places.iter().rposition(Option::is_some)?;
        Some(first..last + 1)
    }

    /// Returns the sum of the weights of the tokens that were found.
    pub(super) fn sum_found(&self, weight: impl Fn(usize) -> SixteenthBits) -> u64 {
        let places = self.places.iter().enumerate();
        let found = places.filter(|(_, place)| place.is_some());
        found.map(|(at, _)| u64::from(weight(at))).sum()
    }

    /// Returns the number of tokens of the unit that were found.
    pub(super) fn found_count(&self) -> usize {
        self.places.iter().flatten().count()
    }
}

/// Buffers of [`align_unit`].
#[derive(Debug, Default)]
pub(super) struct AlignmentBuffers {
    row: Vec<u32>,
    /// The step that reached each cell: 0 begins here, 1 skips a token of the unit, 2 one of the part, 3 matches.
    steps: Vec<u8>,
}

const STEP_START: u8 = 0;
const STEP_UNIT: u8 = 1;
const STEP_PART: u8 = 2;
const STEP_MATCH: u8 = 3;

/// Returns the alignment of a unit with a part of a document that has the largest weight. `weight` is that of the token
/// at a place of the unit.
pub(super) fn align_unit(
    unit: &[u32],
    part: &[u32],
    weight: impl Fn(usize) -> SixteenthBits,
    buffers: &mut AlignmentBuffers,
) -> UnitAlignment {
    let columns = part.len() + 1;
    buffers.row.clear();
    buffers.row.resize(columns, 0);
    buffers.steps.clear();
    buffers.steps.resize((unit.len() + 1) * columns, STEP_START);
    let (mut best, mut best_cell) = (0, (0, 0));
    for (row, &term) in unit.iter().enumerate() {
        let term_weight = weight(row);
        let steps = &mut buffers.steps[(row + 1) * columns..][..columns];
        // Score of the cell above and to the left.
        let mut diagonal = 0;
        for (column, &other) in part.iter().enumerate() {
            let above = buffers.row[column + 1];
            let mut score = above;
            let mut step = if above > 0 { STEP_UNIT } else { STEP_START };
            let left = buffers.row[column].saturating_sub(SKIPPED_TOKEN_COST);
            if left > score {
                (score, step) = (left, STEP_PART);
            }
            if other == term && diagonal + term_weight >= score {
                (score, step) = (diagonal + term_weight, STEP_MATCH);
            }
            diagonal = above;
            buffers.row[column + 1] = score;
            steps[column + 1] = step;
            if score > best {
                (best, best_cell) = (score, (row + 1, column + 1));
            }
        }
    }
    let mut alignment = UnitAlignment {
        places: vec![None; unit.len()],
    };
    let (mut row, mut column) = best_cell;
    while row > 0 && column > 0 {
        match buffers.steps[row * columns + column] {
            STEP_START => break,
            STEP_UNIT => row -= 1,
            STEP_PART => column -= 1,
            _ => {
                row -= 1;
                column -= 1;
                alignment.places[row] = Some(column as u32);
            }
        }
    }
    alignment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(unit: &[u32], part: &[u32]) -> Vec<Option<u32>> {
        align_unit(unit, part, |_| 64, &mut AlignmentBuffers::default()).places
    }

    #[test]
    fn tokens_are_found_in_order() {
        let some = |places: &[u32]| places.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(places_of(&[1, 2, 3], &[9, 1, 2, 3, 9]), some(&[1, 2, 3]));
        assert_eq!(places_of(&[1, 2, 3], &[1, 9, 9, 2, 3]), some(&[0, 3, 4]));
        assert_eq!(places_of(&[1, 2, 3], &[1, 7, 3]), [Some(0), None, Some(2)]);
        assert_eq!(places_of(&[1, 2, 3], &[7, 8]), [None, None, None]);
        assert_eq!(places_of(&[], &[1]), []);
        assert_eq!(places_of(&[1], &[]), [None]);
    }

    #[test]
    fn a_far_token_is_left_out() {
        // A token weighs 64, and each skipped one costs 4.
        let near: Vec<u32> = [1, 2].into_iter().chain([9; 15]).chain([3]).collect();
        let far: Vec<u32> = [1, 2].into_iter().chain([9; 16]).chain([3]).collect();
        assert_eq!(places_of(&[1, 2, 3], &near)[2], Some(17));
        assert_eq!(places_of(&[1, 2, 3], &far)[2], None);
    }

    /// The largest score by trying every choice of tokens.
    fn best_score(unit: &[u32], part: &[u32]) -> i64 {
        fn from(unit: &[u32], part: &[u32], is_begun: bool) -> i64 {
            let Some((&term, rest)) = unit.split_first() else {
                return 0;
            };
            let mut best = from(rest, part, is_begun);
            for (at, &other) in part.iter().enumerate() {
                if other == term {
                    let cost = if is_begun {
                        i64::from(SKIPPED_TOKEN_COST) * at as i64
                    } else {
                        0
                    };
                    best =
                        best.max(i64::from(10 + term) - cost + from(rest, &part[at + 1..], true));
                }
            }
            best
        }
        from(unit, part, false)
    }

    proptest::proptest! {
        #[test]
        fn alignment_has_the_largest_score(
            unit in proptest::collection::vec(0_u32..4, 0..7),
            part in proptest::collection::vec(0_u32..4, 0..9),
        ) {
            let alignment = align_unit(&unit, &part, |at| 10 + unit[at], &mut AlignmentBuffers::default());
            let mut score = 0;
            let mut last: Option<u32> = None;
            for (&term, place) in unit.iter().zip(&alignment.places) {
                let Some(place) = *place else { continue };
                proptest::prop_assert_eq!(part[place as usize], term);
                if let Some(last) = last {
                    proptest::prop_assert!(place > last);
                    score -= i64::from(SKIPPED_TOKEN_COST) * i64::from(place - last - 1);
                }
                last = Some(place);
                score += i64::from(10 + term);
            }
            proptest::prop_assert_eq!(score, best_score(&unit, &part));
        }
    }
}
