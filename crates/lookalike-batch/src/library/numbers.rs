//! The numbers of rows: where nothing is left out, one after another.

use std::ops::Range;

/// The numbers of some rows, ascending.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Numbers {
    /// The first numbers of runs without gaps, and before which row each begins.
    runs: Vec<(usize, u64)>,
    rows: usize,
}

impl Numbers {
    /// Adds the next row.
    pub(super) fn push(&mut self, number: u64) {
        if self.next() != Some(number) {
            self.runs.push((self.rows, number));
        }
        self.rows += 1;
    }

    /// The number that would follow without a gap.
    fn next(&self) -> Option<u64> {
        let &(start, first) = self.runs.last()?;
        Some(first + (self.rows - start) as u64)
    }

    pub(super) fn append(&mut self, others: &Self) {
        for Range { start, end } in others.ranges() {
            if self.next() != Some(start) {
                self.runs.push((self.rows, start));
            }
            self.rows += (end - start) as usize;
        }
    }

    /// The number of the first row.
    pub(super) fn first(&self) -> Option<u64> {
        self.runs.first().map(|&(_, first)| first)
    }

    /// The first number, if no other is left out.
    pub(super) fn without_gaps(&self) -> Option<u64> {
        match self.runs[..] {
            [(_, first)] => Some(first),
            _ => None,
        }
    }

    /// All of them, by runs.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let ends = self.runs.iter().skip(1).map(|&(start, _)| start);
        let ends = ends.chain([self.rows]);
        let runs = self.runs.iter().zip(ends);
        runs.map(|(&(start, first), end)| first..first + (end - start) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_however_they_were_divided() {
        for numbers in [
            &[][..],
            &[1],
            &[5],
            &[1, 2, 3, 4],
            &[1, 2, 4, 5, 9],
            &[3, 5, 7],
        ] {
            for cut in 0..=numbers.len() {
                let mut all = Numbers::default();
                for part in [&numbers[..cut], &numbers[cut..]] {
                    let mut lot = Numbers::default();
                    part.iter().for_each(|&number| lot.push(number));
                    all.append(&lot);
                }
                let mut pushed = Numbers::default();
                numbers.iter().for_each(|&number| pushed.push(number));
                assert_eq!(all, pushed);
                assert!(all.ranges().flatten().eq(numbers.iter().copied()));
                let gaps = numbers.windows(2).any(|pair| pair[0] + 1 != pair[1]);
                let first = numbers.first().copied().filter(|_| !gaps);
                assert_eq!(all.without_gaps(), first);
            }
        }
    }
}
