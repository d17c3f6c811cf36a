//! A compact list of row numbers, stored as runs of consecutive numbers.

use std::ops::Range;

/// Ascending row numbers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RowNumbers {
    /// For each run of consecutive numbers: the index of its first row, and the number of that row.
    runs: Vec<(usize, u64)>,
    rows: usize,
}

impl RowNumbers {
    /// Appends the number of the next row.
    pub(super) fn push_number(&mut self, number: u64) {
        if self.next_number() != Some(number) {
            self.runs.push((self.rows, number));
        }
        self.rows += 1;
    }

    /// Appends the numbers of the next rows, which are consecutive.
    pub(super) fn push_range(&mut self, numbers: Range<u64>) {
        if !numbers.is_empty() {
            if self.next_number() != Some(numbers.start) {
                self.runs.push((self.rows, numbers.start));
            }
            self.rows += (numbers.end - numbers.start) as usize;
        }
    }

    /// Returns the number that would continue the last run.
    fn next_number(&self) -> Option<u64> {
        let &(start, first) = self.runs.last()?;
        Some(first + (self.rows - start) as u64)
    }

    pub(super) fn append_numbers(&mut self, others: &Self) {
        for numbers in others.iter_ranges() {
            self.push_range(numbers);
        }
    }

    /// Returns the number of the first row.
    pub(super) fn first_number(&self) -> Option<u64> {
        self.runs.first().map(|&(_, first)| first)
    }

    /// Returns the first number if all numbers are consecutive.
    pub(super) fn without_gaps(&self) -> Option<u64> {
        match self.runs[..] {
            [(_, first)] => Some(first),
            _ => None,
        }
    }

    /// Returns an iterator over the runs.
    pub(super) fn iter_ranges(&self) -> impl Iterator<Item = Range<u64>> {
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
    fn row_numbers_round_trip_from_any_parts() {
        for numbers in [
            &[][..],
            &[1],
            &[5],
            &[1, 2, 3, 4],
            &[1, 2, 4, 5, 9],
            &[3, 5, 7],
        ] {
            for cut in 0..=numbers.len() {
                let mut all = RowNumbers::default();
                for part in [&numbers[..cut], &numbers[cut..]] {
                    let mut batch = RowNumbers::default();
                    part.iter().for_each(|&number| batch.push_number(number));
                    all.append_numbers(&batch);
                }
                let mut pushed = RowNumbers::default();
                numbers
                    .iter()
                    .for_each(|&number| pushed.push_number(number));
                assert_eq!(all, pushed);
                assert!(all.iter_ranges().flatten().eq(numbers.iter().copied()));
                let gaps = numbers.windows(2).any(|pair| pair[0] + 1 != pair[1]);
                let first = numbers.first().copied().filter(|_| !gaps);
                assert_eq!(all.without_gaps(), first);
            }
        }
    }
}
