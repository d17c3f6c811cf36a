//! Levenshtein distance in strips of 512 rows: eight strips of 64 rows, one in each lane of a wide register.
//!
//! A cell depends on the column before it and on the row above it. So each lane is one column behind the lane
//! above it, and a step moves all lanes by a column. The steps of one strip after another would have to wait
//! for each other; a step of eight lanes takes about twice as long as one of a single strip.
//!
//! Between two strips, the band of cells that a path within the limit can reach is narrowed from both sides by
//! the values along the edge (Ukkonen 1985). The nearer the distance comes to the limit, the narrower the band
//! becomes, and where it is empty the comparison ends.
//!
//! Cost: (m/512)·(b + 512) steps for m rows and a band of b columns, so it pays for bands of some hundred
//! columns. Memory is 64 bytes for each different symbol of the shorter text, and 5 for each
//! symbol of the longer one.

use super::{NumberedSequences, PairSteps, ROWS};
use crate::arch::{Arch, Cpu, Kernel, LANES, StripLanes};
use crate::error::Result;

/// Symbols of the columns before the first and behind the last one, in which some lanes are while others are inside.
/// The shorter sequence does not have them.
const PADDING_SYMBOLS: [u32; LANES - 1] = [0; LANES - 1];

/// Computes the distance of numbered symbols, up to the limit `most`, which must not be below the difference of the
/// lengths. The shorter sequence must not be empty. `rows` has an entry for every symbol; all are 0 before and after.
pub(super) fn distance_in_lanes(
    numbered: &NumberedSequences,
    most: usize,
    rows: &mut [[u64; LANES]],
    cpu: Cpu,
    steps: &mut PairSteps<'_>,
) -> Result<Option<usize>> {
    let NumberedSequences { less, more, .. } = numbered;
    let mut band = CellBand::new([less.len(), more.len()], most);
    let mut edge = vec![1i8; more.len()];
    let mut symbols = Vec::new();
    for strip in less.chunks(LANES * ROWS) {
        let lanes = strip.len().div_ceil(ROWS);
        band.begin_strip(strip.len(), &mut edge);
        let columns = band.first..band.end;
        steps.take_steps(lanes * columns.len())?;
        symbols.clear();
        symbols.extend(PADDING_SYMBOLS);
        symbols.extend(more[columns.clone()].iter().rev());
        symbols.extend(PADDING_SYMBOLS);
        mark_rows(strip, rows);
        cpu.run(StripKernel {
            rows,
            symbols: &symbols,
            edge: &mut edge[columns],
            lanes,
            last: (strip.len() - 1) % ROWS,
        });
        for &symbol in strip {
            rows[symbol as usize] = [0; LANES];
        }
        if !band.end_strip(&edge) {
            return Ok(None);
        }
    }
    Ok(band.last_value())
}

/// Sets the bits of a strip's symbols. The last rows are those of the last lane.
fn mark_rows(strip: &[u32], rows: &mut [[u64; LANES]]) {
    let skipped = LANES - strip.len().div_ceil(ROWS);
    for (row, &symbol) in strip.iter().enumerate() {
        rows[symbol as usize][skipped + row / ROWS] |= 1 << (row % ROWS);
    }
}

/// The cells below an edge that a path within the limit can lead through.
struct CellBand {
    /// Number of rows and columns of the table.
    size: [usize; 2],
    most: usize,
    /// Rows above the edge.
    bottom: usize,
    /// Columns of the strip, as a range.
    first: usize,
    end: usize,
    /// Value on the edge before the column `first`.
    corner: usize,
    /// Column up to which paths lead at the edge. Each further row leads one column further.
    reach: usize,
    /// Value on the edge behind the last column of the strip.
    value: usize,
}

impl CellBand {
    fn new(size: [usize; 2], most: usize) -> Self {
        let mut band = Self {
            size,
            most,
            bottom: 0,
            first: 0,
            end: 0,
            corner: 0,
            reach: 0,
            value: 0,
        };
        band.reach = band.reach_from(0, 0);
        band
    }

    /// Returns `true` if a path within the limit may lead through a cell of the edge.
    fn may_lead(&self, column: usize, value: usize) -> bool {
        let (rows, columns) = (self.size[0] - self.bottom, self.size[1] - column);
        value + rows.abs_diff(columns) <= self.most
    }

    /// Returns the column up to which paths within the limit lead from a cell of the edge that one leads through.
    /// Let d be the number of columns that remain less that of the rows. A path that leads e columns off the diagonal
    /// costs e, and at least |d − e| to come back, so e + |d − e| ≤ limit − value. Hence
    /// e ≤ (limit − value − |d|) ÷ 2 + max(d, 0).
    fn reach_from(&self, column: usize, value: usize) -> usize {
        let (rows, columns) = (self.size[0] - self.bottom, self.size[1] - column);
        let left = self.most - value - rows.abs_diff(columns);
        column + left / 2 + columns.saturating_sub(rows)
    }

    /// Sets the columns of a strip of `height` rows. Beyond the columns of the strip before, the edge has the
    /// values of a path along it.
    fn begin_strip(&mut self, height: usize, edge: &mut [i8]) {
        let end = self.size[1].min(self.reach + height);
        if end > self.end {
            edge[self.end..end].fill(1);
        }
        self.end = end;
        self.bottom += height;
        self.corner += height;
    }

    /// Narrows the band by the differences along the lower edge of the strip. Returns `false` if no path within
    /// the limit crosses this edge.
    ///
    /// The reach of a cell never decreases along the edge, because a value grows by at most 1 for each column. So the
    /// last cell that a path may lead through decides.
    fn end_strip(&mut self, edge: &[i8]) -> bool {
        let rise: i32 = edge[self.first..self.end]
            .iter()
            .map(|&it| i32::from(it))
            .sum();
        self.value = self.corner.wrapping_add_signed(rise as isize);
        while !self.may_lead(self.first, self.corner) {
            if self.first == self.end {
                return false;
            }
            self.corner = self.corner.wrapping_add_signed(edge[self.first].into());
            self.first += 1;
        }
        let (mut column, mut value) = (self.end, self.value);
        while !self.may_lead(column, value) {
            column -= 1;
            value = value.wrapping_add_signed(-isize::from(edge[column]));
        }
        self.reach = self.reach_from(column, value);
        true
    }

    /// Returns the value of the last cell of the table if it is within the limit.
    fn last_value(&self) -> Option<usize> {
        (self.end == self.size[1] && self.value <= self.most).then_some(self.value)
    }
}

/// Moves the lanes of a strip over its columns, and replaces the differences along its upper edge by those along
/// its lower edge.
struct StripKernel<'a> {
    rows: &'a [[u64; LANES]],
    /// The symbols of the columns in descending order, between two [`PADDING_SYMBOLS`]s.
    symbols: &'a [u32],
    edge: &'a mut [i8],
    /// Number of lanes in use, which are the last ones.
    lanes: usize,
    /// Last row of the last lane.
    last: usize,
}

impl Kernel for StripKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let Self { edge, lanes, .. } = self;
        let skipped = LANES - lanes;
        let mut first = [0; LANES];
        first[skipped] = u64::MAX;
        let mut strips = StripLanes::BORDER;
        let steps = edge.len() + lanes - 1;
        // Indexed, because an iterator that is not inlined would make every step store all lanes and load them.
        for step in 0..steps {
            let start = steps - 1 - step;
            let symbols: &[u32; LANES] = self.symbols[start..start + LANES]
                .try_into()
                .expect("a slice has a symbol per lane");
            let above = if step < edge.len() {
                [u64::from(edge[step] > 0), u64::from(edge[step] < 0)]
            } else {
                [0, 0]
            };
            arch.advance_strips(&mut strips, self.rows, symbols, &first, above);
            if step + 1 >= lanes {
                let below = |right: &[u64; LANES]| (right[LANES - 1] >> self.last & 1) as i8;
                edge[step + 1 - lanes] = below(&strips.right_rises) - below(&strips.right_falls);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::LevenshteinCells;
    use super::super::StepBudget;
    use super::super::tests::{edited, plain, random};
    use super::*;

    /// Checks the distance by every instruction set, for limits around it.
    fn check(a: &[u64], b: &[u64]) {
        let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let expected = plain(less, more, 1);
        let numbered = NumberedSequences::new(less, more);
        let mut rows = vec![[0; LANES]; numbered.symbols];
        for most in [
            expected.saturating_sub(1),
            expected,
            expected + 1,
            2 * expected + 70,
            more.len(),
        ] {
            // A limit is at least the difference of the lengths.
            let most = most.max(more.len() - less.len());
            for cpu in Cpu::detect_all() {
                let mut unlimited = StepBudget::unlimited();
                let mut steps = PairSteps::for_lengths::<LevenshteinCells>(
                    less.len(),
                    more.len(),
                    &mut unlimited,
                );
                let found = distance_in_lanes(&numbered, most, &mut rows, cpu, &mut steps).unwrap();
                let within = (expected <= most).then_some(expected);
                let lengths = (less.len(), more.len());
                assert_eq!(found, within, "{lengths:?} within {most} by {}", cpu.name());
                assert!(rows.iter().all(|rows| *rows == [0; LANES]));
            }
        }
    }

    #[test]
    fn lengths_around_lane_borders_equal_the_textbook() {
        for less in [
            1, 63, 64, 65, 128, 447, 448, 449, 511, 512, 513, 577, 1024, 1030,
        ] {
            for more in [0, 1, 7, 64, 300] {
                for alphabet in [2, 30] {
                    check(
                        &random(less, alphabet, 1),
                        &random(less + more, alphabet, 2),
                    );
                }
            }
        }
    }

    #[test]
    fn edited_copies_equal_the_textbook() {
        for (length, edits) in [(600, 3), (1500, 40), (1700, 500), (2500, 200)] {
            for alphabet in [3, 300] {
                let [a, b] = edited(length, alphabet, edits, 7);
                check(&a, &b);
                check(&a, &b[length / 5..]);
                check(&a[..length * 4 / 5], &b);
            }
        }
    }

    /// The band becomes narrower where the distance comes near the limit, so texts that are far apart cost less.
    #[test]
    fn band_closes_before_the_end_of_distant_texts() {
        let (a, b) = (random(20_000, 1 << 40, 1), random(20_000, 1 << 40, 2));
        let numbered = NumberedSequences::new(&a, &b);
        let mut rows = vec![[0; LANES]; numbered.symbols];
        let mut unlimited = StepBudget::unlimited();
        let mut steps =
            PairSteps::for_lengths::<LevenshteinCells>(a.len(), b.len(), &mut unlimited);
        let cpu = Cpu::detect_best();
        let found = distance_in_lanes(&numbered, 4000, &mut rows, cpu, &mut steps);
        assert_eq!(found.unwrap(), None);
        // Without narrowing, 4000 rows of 4000 columns.
        assert!(steps.taken < 4000 * 4000 / 64 * 3 / 4, "{}", steps.taken);
    }
}
