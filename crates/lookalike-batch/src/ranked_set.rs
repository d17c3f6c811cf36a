//! A set of small numbers that also counts them in order.

/// Numbers of a word, and of a rank.
const WORD_BITS: usize = 64;

/// A set of numbers below a bound. Each number in it has a rank: how many smaller ones are in it. So values of the
/// numbers can be kept in a list that has none for the others.
///
/// Memory: 1.5 bits for each number below the bound. Time: all but building is constant.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankedSet {
    words: Vec<u64>,
    /// Number of numbers in the words before each.
    ranks: Vec<u32>,
}

impl RankedSet {
    /// Builds the set of these numbers, in any order and possibly repeated, all below `bound`.
    ///
    /// # Panics
    /// If a number is not below `bound`.
    pub(crate) fn from_numbers(bound: usize, numbers: impl Iterator<Item = u32>) -> Self {
        let mut words = vec![0_u64; bound.div_ceil(WORD_BITS)];
        for number in numbers {
            words[number as usize / WORD_BITS] |= 1 << (number as usize % WORD_BITS);
        }
        let mut before = 0;
        let ranks = words.iter().map(|word| {
            let rank = before;
            before += word.count_ones();
            rank
        });
        let ranks = ranks.collect();
        Self { words, ranks }
    }

    /// Number of numbers in the set.
    pub(crate) fn len(&self) -> usize {
        let last = self.words.last().zip(self.ranks.last());
        last.map_or(0, |(word, rank)| (rank + word.count_ones()) as usize)
    }

    /// Returns the rank of a number; `None` if it is not in the set.
    pub(crate) fn rank_of(&self, number: u32) -> Option<usize> {
        let at = number as usize / WORD_BITS;
        let (word, bit) = (self.words.get(at)?, 1 << (number as usize % WORD_BITS));
        (word & bit != 0).then(|| (self.ranks[at] + (word & (bit - 1)).count_ones()) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_the_smaller_numbers() {
        for numbers in [
            vec![],
            vec![0],
            vec![63, 64, 65, 64, 199],
            (0..200).filter(|number| number % 3 == 1).rev().collect(),
            (0..200).collect::<Vec<u32>>(),
        ] {
            let set = RankedSet::from_numbers(200, numbers.iter().copied());
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(set.len(), sorted.len());
            for number in 0..300 {
                let expected = sorted.binary_search(&number).ok();
                assert_eq!(set.rank_of(number), expected, "{number} of {numbers:?}");
            }
        }
    }
}
