//! The alignment of two token sequences: runs of equal tokens in the same order in both.
//!
//! It is patience diff. Equal tokens at both ends are taken first. Between them, tokens that occur once in both
//! sequences are anchors, of which the longest chain in the same order is kept. The gaps between the anchors are aligned
//! likewise, and small gaps without anchors by their longest common subsequence.
//!
//! Guarantee: the runs ascend in both sequences and do not overlap. The result depends on the tokens alone. It is not
//! always the longest common subsequence, because large gaps without anchors stay unaligned.
//!
//! Cost: O(n log n) for sequences of n tokens, at each of at most [`MAX_DEPTH`] levels.

use std::ops::Range;

use crate::hash::mix_bits;

/// A run of equal tokens in two sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EqualRun {
    /// First token of the run in the first sequence.
    pub(super) a: usize,
    /// First token of the run in the second sequence.
    pub(super) b: usize,
    /// Number of tokens of the run.
    pub(super) length: usize,
}

/// Levels of anchors between anchors. A gap at a deeper level stays unaligned.
const MAX_DEPTH: usize = 12;

/// Largest product of the lengths of a gap that is aligned by its longest common subsequence.
const MAX_TABLE_CELLS: usize = 4096;

/// Returns the runs of equal tokens of two sequences.
pub(super) fn align_tokens(a: &[u64], b: &[u64]) -> Vec<EqualRun> {
    let mut aligner = TokenAligner {
        a,
        b,
        runs: Vec::new(),
    };
    aligner.align_gap(0..a.len(), 0..b.len(), 0);
    aligner.runs
}

struct TokenAligner<'t> {
    a: &'t [u64],
    b: &'t [u64],
    runs: Vec<EqualRun>,
}

impl TokenAligner<'_> {
    fn align_gap(&mut self, mut a: Range<usize>, mut b: Range<usize>, depth: usize) {
        let prefix = count_equal_tokens(self.a[a.clone()].iter().zip(&self.b[b.clone()]));
        self.push_run(a.start, b.start, prefix);
        a.start += prefix;
        b.start += prefix;
        let backwards = self.a[a.clone()].iter().rev();
        let suffix = count_equal_tokens(backwards.zip(self.b[b.clone()].iter().rev()));
        a.end -= suffix;
        b.end -= suffix;
        if !a.is_empty() && !b.is_empty() && depth < MAX_DEPTH {
            let anchors = self.find_anchors(a.clone(), b.clone());
            if !anchors.is_empty() {
                self.align_between(&anchors, a.clone(), b.clone(), depth);
            } else if a.len() * b.len() <= MAX_TABLE_CELLS {
                self.align_by_table(a.clone(), b.clone());
            }
        }
        self.push_run(a.end, b.end, suffix);
    }

    fn align_between(
        &mut self,
        anchors: &[(usize, usize)],
        a: Range<usize>,
        b: Range<usize>,
        depth: usize,
    ) {
        let (mut a_start, mut b_start) = (a.start, b.start);
        for &(a_anchor, b_anchor) in anchors {
            self.align_gap(a_start..a_anchor, b_start..b_anchor, depth + 1);
            self.push_run(a_anchor, b_anchor, 1);
            (a_start, b_start) = (a_anchor + 1, b_anchor + 1);
        }
        self.align_gap(a_start..a.end, b_start..b.end, depth + 1);
    }

    /// Returns the longest chain of tokens that occur once in both gaps, as pairs of positions.
    fn find_anchors(&self, a: Range<usize>, b: Range<usize>) -> Vec<(usize, usize)> {
        let mut places = TokenPlaces::with_tokens(a.len());
        for at in a.clone() {
            places.add_first(self.a[at], at);
        }
        for at in b {
            places.add_second(self.b[at], at);
        }
        let single = a.filter_map(|at| Some((at, places.single_partner(self.a[at], at)?)));
        longest_ascending_chain(&single.collect::<Vec<_>>())
    }

    /// Aligns a small gap by its longest common subsequence.
    fn align_by_table(&mut self, a: Range<usize>, b: Range<usize>) {
        let width = b.len() + 1;
        // lengths[i * width + j]: the longest common subsequence of a[i..] and b[j..].
        let mut lengths = vec![0_u16; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                lengths[i * width + j] = if self.a[a.start + i] == self.b[b.start + j] {
                    lengths[(i + 1) * width + j + 1] + 1
                } else {
                    lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            if self.a[a.start + i] == self.b[b.start + j] {
                self.push_run(a.start + i, b.start + j, 1);
                i += 1;
                j += 1;
            } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }

    /// Appends a run, and joins it with the last one if it continues it.
    fn push_run(&mut self, a: usize, b: usize, length: usize) {
        if length == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some(last) if last.a + last.length == a && last.b + last.length == b => {
                last.length += length;
            }
            _ => self.runs.push(EqualRun { a, b, length }),
        }
    }
}

fn count_equal_tokens<'t>(pairs: impl Iterator<Item = (&'t u64, &'t u64)>) -> usize {
    pairs.take_while(|(a, b)| a == b).count()
}

/// Where the tokens of two gaps are: a hash table with linear probing.
struct TokenPlaces {
    entries: Vec<TokenPlace>,
    mask: usize,
}

/// The places of a token in two gaps: a position, [`ABSENT`] or [`REPEATED`].
#[derive(Clone, Copy)]
struct TokenPlace {
    token: u64,
    first: u32,
    second: u32,
}

/// The token is not in the gap. An entry whose token is not in the first gap is free.
const ABSENT: u32 = u32::MAX;

/// The token is in the gap more than once.
const REPEATED: u32 = u32::MAX - 1;

impl TokenPlaces {
    /// Creates a table for a first gap of so many tokens.
    fn with_tokens(tokens: usize) -> Self {
        let free = TokenPlace {
            token: 0,
            first: ABSENT,
            second: ABSENT,
        };
        let entries = vec![free; (2 * tokens).next_power_of_two()];
        Self {
            mask: entries.len() - 1,
            entries,
        }
    }

    /// Returns the entry of a token, or the free entry where it would be.
    fn find_entry(&mut self, token: u64) -> &mut TokenPlace {
        let mut at = mix_bits(token) as usize & self.mask;
        while self.entries[at].first != ABSENT && self.entries[at].token != token {
            at = (at + 1) & self.mask;
        }
        &mut self.entries[at]
    }

    fn add_first(&mut self, token: u64, position: usize) {
        let entry = self.find_entry(token);
        entry.token = token;
        entry.first = if entry.first == ABSENT {
            position as u32
        } else {
            REPEATED
        };
    }

    fn add_second(&mut self, token: u64, position: usize) {
        let entry = self.find_entry(token);
        if entry.first != ABSENT {
            entry.second = if entry.second == ABSENT {
                position as u32
            } else {
                REPEATED
            };
        }
    }

    /// Returns the position of a token in the second gap if each gap has it once, the first one at `position`.
    fn single_partner(&mut self, token: u64, position: usize) -> Option<usize> {
        let entry = self.find_entry(token);
        let is_single = entry.first == position as u32 && entry.second < REPEATED;
        is_single.then_some(entry.second as usize)
    }
}

/// Returns the longest chain of pairs that ascend in both positions. `pairs` ascend in the first position.
fn longest_ascending_chain(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // ends[length - 1]: the pair that ends a chain of this length with the least second position.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![usize::MAX; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        if length > 0 {
            previous[at] = ends[length - 1];
        }
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        chain.push(pairs[at]);
        next = (previous[at] != usize::MAX).then(|| previous[at]);
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matched(a: &[u64], b: &[u64]) -> usize {
        align_tokens(a, b).iter().map(|run| run.length).sum()
    }

    fn longest_common_subsequence(a: &[u64], b: &[u64]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for &token in a {
            let mut diagonal = 0;
            for (at, &other) in b.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if token == other {
                    diagonal + 1
                } else {
                    above.max(row[at])
                };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    #[test]
    fn values_between_equal_runs_are_gaps() {
        let a = [1, 2, 3, 10, 4, 5, 6, 11, 12, 7];
        let b = [1, 2, 3, 20, 21, 4, 5, 6, 7];
        let run = |a, b, length| EqualRun { a, b, length };
        assert_eq!(
            align_tokens(&a, &b),
            [run(0, 0, 3), run(4, 5, 3), run(9, 8, 1)]
        );
    }

    #[test]
    fn equal_and_unrelated_sequences() {
        let tokens: Vec<u64> = (0..500).map(|at| at % 7).collect();
        assert_eq!(matched(&tokens, &tokens), 500);
        assert_eq!(align_tokens(&tokens, &[9; 400]), []);
        assert_eq!(align_tokens(&[], &tokens), []);
    }

    proptest! {
        /// Runs are equal, ascend and do not overlap, and are never more than the longest common subsequence.
        #[test]
        fn runs_are_common_subsequences(
            a in prop::collection::vec(0..6_u64, 0..60),
            b in prop::collection::vec(0..6_u64, 0..60),
        ) {
            let runs = align_tokens(&a, &b);
            let (mut a_end, mut b_end) = (0, 0);
            for run in &runs {
                prop_assert!(run.length > 0 && run.a >= a_end && run.b >= b_end);
                (a_end, b_end) = (run.a + run.length, run.b + run.length);
                prop_assert_eq!(&a[run.a..a_end], &b[run.b..b_end]);
            }
            prop_assert!(matched(&a, &b) <= longest_common_subsequence(&a, &b));
        }

        /// A sequence with some tokens replaced keeps all others aligned.
        #[test]
        fn replaced_tokens_leave_the_others(
            length in 1..200_usize,
            replaced in prop::collection::btree_set(0..200_usize, 0..12),
        ) {
            let a: Vec<u64> = (0..length as u64).collect();
            let mut b = a.clone();
            let replaced: Vec<usize> = replaced.into_iter().filter(|&at| at < length).collect();
            for &at in &replaced {
                b[at] += 1000;
            }
            prop_assert_eq!(matched(&a, &b), length - replaced.len());
        }
    }
}
