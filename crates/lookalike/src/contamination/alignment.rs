//! The alignment of a unit with a part of a document (Smith and Waterman 1981, with weights).
//!
//! A token of both, in order, counts its weight. A token of the document in between costs [`SKIPPED_TOKEN_COST`], so a
//! far token joins the rest only if it weighs more than what is skipped. Tokens of the unit may be missing at no cost
//! but their own weight.
//!
//! Only tokens of both have a row or a column in the table of scores. A row of another token would repeat the one above it,
//! and a column of another one would take a skip off the one before it.
//!
//! Cost: the product of the numbers of tokens that both have, in operations of about a nanosecond.

use std::ops::Range;

use super::term_table::NO_TERM;

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
    /// Places of the tokens of the unit that the part may have.
    unit_places: Vec<u32>,
    /// Places of the tokens of the part that the unit may have.
    part_places: Vec<u32>,
    row: Vec<u32>,
    /// The step that reached each cell: [`STEP_START`] begins here, [`STEP_UNIT`] skips a token of the unit, [`STEP_PART`]
    /// one of the part; and [`EQUALS_ABOVE`].
    steps: Vec<u8>,
}

const STEP_START: u8 = 0;
const STEP_UNIT: u8 = 1;
const STEP_PART: u8 = 2;
const STEP_MATCH: u8 = 3;
/// A match that begins the alignment, because what was found before is too far away.
const STEP_FIRST_MATCH: u8 = 4;

/// Bit of a cell with the score of the one above.
const EQUALS_ABOVE: u8 = 8;

/// Returns the alignment of a unit with a part of a document that has the largest weight. `weight` is that of the token
/// at a place of the unit. There may be no alignment if that weight is below `least_weight`.
pub(super) fn align_unit(
    unit: &[u32],
    part: &[u32],
    weight: impl Fn(usize) -> SixteenthBits,
    least_weight: u64,
    buffers: &mut AlignmentBuffers,
) -> UnitAlignment {
    let mut alignment = UnitAlignment {
        places: vec![None; unit.len()],
    };
    buffers.find_common(unit, part);
    let common = buffers.unit_places.iter();
    let common: u64 = common.map(|&at| u64::from(weight(at as usize))).sum();
    if common >= least_weight {
        let best = buffers.fill_cells(unit, part, weight);
        buffers.trace_back(best, &mut alignment);
    }
    alignment
}

/// A cell of the table: its row and its column, from 1. Row and column 0 have no tokens.
type Cell = [usize; 2];

impl AlignmentBuffers {
    /// Finds the tokens that both have, and few others. The others change no alignment: those of the unit because they
    /// match nothing, and those of the part because all that they do is to be skipped.
    fn find_common(&mut self, unit: &[u32], part: &[u32]) {
        let (in_unit, in_part) = (TermFilter::new(unit), TermFilter::new(part));
        collect_places(unit, &in_part, &mut self.unit_places);
        collect_places(part, &in_unit, &mut self.part_places);
    }

    /// Computes the steps of all cells, and returns the first one with the largest score.
    fn fill_cells(
        &mut self,
        unit: &[u32],
        part: &[u32],
        weight: impl Fn(usize) -> SixteenthBits,
    ) -> Cell {
        let columns = self.part_places.len() + 1;
        self.row.clear();
        self.row.resize(columns, 0);
        self.steps.clear();
        self.steps
            .resize((self.unit_places.len() + 1) * columns, STEP_START);
        let (mut best, mut best_cell) = (0, [0, 0]);
        let mut next_unit_place = 0;
        for (row, &unit_place) in self.unit_places.iter().enumerate() {
            let term = unit[unit_place as usize];
            let term_weight = weight(unit_place as usize);
            let is_below_gap = unit_place > next_unit_place;
            next_unit_place = unit_place + 1;
            let steps = &mut self.steps[(row + 1) * columns..][..columns];
            // Score of the cell above and to the left, and the place behind its token.
            let (mut diagonal, mut next_part_place) = (0_u32, 0);
            for (column, &part_place) in self.part_places.iter().enumerate() {
                let gap = part_place - next_part_place;
                next_part_place = part_place + 1;
                let gap_cost = gap.saturating_mul(SKIPPED_TOKEN_COST);
                let above = self.row[column + 1];
                let mut score = above;
                let mut step = if above > 0 { STEP_UNIT } else { STEP_START };
                let left = self.row[column]
                    .saturating_sub(gap_cost)
                    .saturating_sub(SKIPPED_TOKEN_COST);
                if left > score {
                    (score, step) = (left, STEP_PART);
                }
                let before = diagonal.saturating_sub(gap_cost);
                if part[part_place as usize] == term && before + term_weight >= score {
                    let is_first = before == 0 && (gap > 0 || is_below_gap);
                    step = if is_first {
                        STEP_FIRST_MATCH
                    } else {
                        STEP_MATCH
                    };
                    score = before + term_weight;
                }
                diagonal = above;
                self.row[column + 1] = score;
                steps[column + 1] = step | if score == above { EQUALS_ABOVE } else { 0 };
                if score > best {
                    (best, best_cell) = (score, [row + 1, column + 1]);
                }
            }
        }
        best_cell
    }

    /// Sets the places of the tokens that were found on the way to a cell.
    fn trace_back(&self, [mut row, mut column]: Cell, alignment: &mut UnitAlignment) {
        let columns = self.part_places.len() + 1;
        while row > 0 && column > 0 {
            let step = self.steps[row * columns + column] & !EQUALS_ABOVE;
            if step == STEP_START {
                break;
            }
            if step == STEP_UNIT {
                row -= 1;
                continue;
            }
            column -= 1;
            let place = self.part_places[column];
            if step != STEP_PART {
                row -= 1;
                alignment.places[self.unit_places[row] as usize] = Some(place);
            }
            if step == STEP_FIRST_MATCH {
                break;
            }
            if column > 0 && self.part_places[column - 1] + 1 < place {
                row = self.skip_equal_rows(row, column);
            }
        }
    }

    /// Returns the first row with the score of a row in a column. An alignment skips tokens of the unit before a token of
    /// the part that the unit does not have, so it comes to the column in that row.
    fn skip_equal_rows(&self, mut row: usize, column: usize) -> usize {
        let columns = self.part_places.len() + 1;
        while row > 0 && self.steps[row * columns + column] & EQUALS_ABOVE != 0 {
            row -= 1;
        }
        row
    }
}

/// Replaces `places` by those of the tokens that a filter has.
fn collect_places(terms: &[u32], filter: &TermFilter, places: &mut Vec<u32>) {
    places.clear();
    let terms = (0..).zip(terms);
    places.extend(
        terms
            .filter(|&(_, &term)| filter.may_have(term))
            .map(|(at, _)| at),
    );
}

/// A set of tokens, one bit for each by its hash: it has all of them, and few others.
struct TermFilter([u64; TERM_FILTER_WORDS]);

const TERM_FILTER_WORDS: usize = 64;

/// Multiplier of Fibonacci hashing: 2³² divided by the golden ratio.
const MULTIPLIER: u32 = 0x9e37_79b9;

impl TermFilter {
    fn new(terms: &[u32]) -> Self {
        let mut words = [0; TERM_FILTER_WORDS];
        for &term in terms.iter().filter(|&&term| term != NO_TERM) {
            let bit = Self::bit_of(term);
            words[bit / 64] |= 1 << (bit % 64);
        }
        Self(words)
    }

    fn may_have(&self, term: u32) -> bool {
        let bit = Self::bit_of(term);
        term != NO_TERM && self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn bit_of(term: u32) -> usize {
        let bits = (64 * TERM_FILTER_WORDS).trailing_zeros();
        (term.wrapping_mul(MULTIPLIER) >> (u32::BITS - bits)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(unit: &[u32], part: &[u32]) -> Vec<Option<u32>> {
        align_unit(unit, part, |_| 64, 0, &mut AlignmentBuffers::default()).places
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

    #[test]
    fn too_few_common_tokens_are_not_aligned() {
        let found = |least_weight| {
            let buffers = &mut AlignmentBuffers::default();
            align_unit(&[1, 2, 3], &[1, 9, 3], |_| 64, least_weight, buffers).found_count()
        };
        assert_eq!(found(128), 2);
        assert_eq!(found(129), 0);
    }

    /// The alignment by a table with a row for each token of the unit and a column for each one of the part.
    fn align_by_whole_table(unit: &[u32], part: &[u32], weights: &[u32]) -> Vec<Option<u32>> {
        let mut scores = vec![vec![0_u32; part.len() + 1]; unit.len() + 1];
        let mut steps = vec![vec![STEP_START; part.len() + 1]; unit.len() + 1];
        let (mut best, mut row, mut column) = (0, 0, 0);
        for (y, term) in unit.iter().enumerate() {
            for (x, other) in part.iter().enumerate() {
                let above = scores[y][x + 1];
                let mut score = above;
                let mut step = if above > 0 { STEP_UNIT } else { STEP_START };
                let left = scores[y + 1][x].saturating_sub(SKIPPED_TOKEN_COST);
                if left > score {
                    (score, step) = (left, STEP_PART);
                }
                if other == term && scores[y][x] + weights[y] >= score {
                    (score, step) = (scores[y][x] + weights[y], STEP_MATCH);
                }
                scores[y + 1][x + 1] = score;
                steps[y + 1][x + 1] = step;
                if score > best {
                    (best, row, column) = (score, y + 1, x + 1);
                }
            }
        }
        let mut places = vec![None; unit.len()];
        while row > 0 && column > 0 {
            let step = steps[row][column];
            if step == STEP_START {
                break;
            }
            row -= usize::from(step != STEP_PART);
            column -= usize::from(step != STEP_UNIT);
            if step == STEP_MATCH {
                places[row] = Some(column as u32);
            }
        }
        places
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
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]
        #[test]
        fn common_tokens_are_aligned_as_in_the_whole_table(
            unit in proptest::collection::vec(0_u32..12, 0..14),
            part in proptest::collection::vec(proptest::prop_oneof![0_u32..6, 20_u32..30], 0..40),
            weights in proptest::collection::vec(0_u32..14, 14),
        ) {
            let buffers = &mut AlignmentBuffers::default();
            let alignment = align_unit(&unit, &part, |at| weights[at], 0, buffers);
            let expected = align_by_whole_table(&unit, &part, &weights);
            proptest::prop_assert_eq!(alignment.places, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn alignment_has_the_largest_score(
            unit in proptest::collection::vec(0_u32..4, 0..7),
            part in proptest::collection::vec(0_u32..4, 0..9),
        ) {
            let alignment = align_unit(&unit, &part, |at| 10 + unit[at], 0, &mut AlignmentBuffers::default());
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
