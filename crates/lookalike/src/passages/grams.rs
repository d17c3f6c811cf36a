//! Grams: short runs of tokens that anchor passages, and the selection of some of them for an index.
//!
//! A word of a script with spaces has the width 2 and a character of any other script the width 1, because a
//! word tells as much as two such characters. A gram is the shortest run of tokens from a position on that has
//! at least a certain width: 10 in an index, which is five words or ten characters, and 7 in the comparison of a pair, which is
//! four words or seven characters.
//!
//! **Winnowing** (Schleimer, Wilkerson, Aiken 2003) selects at least one gram of every run of tokens with a
//! certain width: of each shortest run with that width, the gram with the smallest hash, the last one of
//! several. The choice depends on the tokens of the run alone, so two texts that share such a run have a
//! selected gram in common. With runs of 24 about 2/9 of the grams of words and 1/8 of those of characters
//! are selected.
//!
//! Cost: some nanoseconds per token, whatever the width of a run is.

use std::collections::VecDeque;

use crate::hash::{POSITION, mix_bits};

/// Width of the grams of an index, unless passages may be shorter.
const INDEX_WIDTH: u32 = 10;

/// Width of the grams that anchor the passages of a pair, unless passages may be shorter. They are shorter than those
/// of an index, because an edited passage has few long runs of equal tokens.
const ANCHOR_WIDTH: u32 = 7;

/// Largest code point, which is the largest value of a token that is a single character. The value of a word
/// is a hash, which is smaller with a probability of 2⁻⁴³; such a word has the width of a character.
const MAX_CHARACTER: u64 = 0x10_ffff;

/// Returns the width of a token: 2 for a word, 1 for a character.
pub(super) fn token_width(token: u64) -> u32 {
    1 + u32::from(!is_character(token))
}

/// Returns `true` if a token is a single character of a script without spaces, and not a word.
pub fn is_character(token: u64) -> bool {
    token <= MAX_CHARACTER
}

/// Returns the width of the grams of an index for passages of at least `min_width`.
pub(super) fn index_width(min_width: u32) -> u32 {
    min_width.min(INDEX_WIDTH)
}

/// Returns the width of the grams that anchor passages of at least `min_width`.
pub(super) fn anchor_width(min_width: u32) -> u32 {
    min_width.min(ANCHOR_WIDTH)
}

/// The grams of a text, in the order of their first tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct GramList {
    /// Hash of the gram that begins with this token.
    pub(super) hashes: Vec<u64>,
    /// End of each gram in tokens.
    pub(super) ends: Vec<u32>,
}

impl GramList {
    /// Fills the list with the grams of a text that have at least `width`. The last tokens of a text begin none.
    pub(super) fn fill_grams(&mut self, tokens: &[u64], width: u32) {
        self.hashes.clear();
        self.ends.clear();
        self.hashes.reserve(tokens.len());
        self.ends.reserve(tokens.len());
        // Width and end of the gram at `start`.
        let (mut total, mut end) = (0, 0);
        for start in 0..tokens.len() {
            while total < width && end < tokens.len() {
                total += token_width(tokens[end]);
                end += 1;
            }
            if total < width {
                break;
            }
            self.hashes.push(hash_gram(&tokens[start..end]));
            self.ends.push(end as u32);
            total -= token_width(tokens[start]);
        }
    }
}

/// Returns the hash of a gram, which depends on the order of its tokens.
#[inline]
fn hash_gram(tokens: &[u64]) -> u64 {
    let product = |(token, factor): (&u64, &u64)| token.wrapping_mul(*factor);
    // Most grams have one of these lengths, for which the compiler unrolls the loop.
    let sum = if let Ok(tokens) = <&[u64; 5]>::try_from(tokens) {
        let products = tokens.iter().zip(&POSITION).map(product);
        products.fold(0u64, u64::wrapping_add)
    } else if let Ok(tokens) = <&[u64; 10]>::try_from(tokens) {
        let products = tokens.iter().zip(&POSITION).map(product);
        products.fold(0u64, u64::wrapping_add)
    } else {
        let products = tokens.iter().zip(&POSITION).map(product);
        products.fold(0u64, u64::wrapping_add)
    };
    mix_bits(sum)
}

/// Calls `visit` with the first token of every selected gram, ascending, so that every run of tokens with at
/// least `run_width` contains a selected gram.
pub(super) fn visit_winnowed(
    tokens: &[u64],
    grams: &GramList,
    run_width: u32,
    mut visit: impl FnMut(usize),
) {
    // Grams that may still be the smallest, ascending by position and hash.
    let mut smallest: VecDeque<usize> = VecDeque::new();
    let (mut total, mut run_end, mut next) = (0, 0, 0);
    let mut last = None;
    for start in 0..tokens.len() {
        while total < run_width && run_end < tokens.len() {
            total += token_width(tokens[run_end]);
            run_end += 1;
        }
        if total < run_width {
            break;
        }
        while grams
            .ends
            .get(next)
            .is_some_and(|&end| end as usize <= run_end)
        {
            while smallest
                .back()
                .is_some_and(|&it| grams.hashes[it] >= grams.hashes[next])
            {
                smallest.pop_back();
            }
            smallest.push_back(next);
            next += 1;
        }
        while smallest.front().is_some_and(|&it| it < start) {
            smallest.pop_front();
        }
        if let Some(&selected) = smallest.front()
            && last != Some(selected)
        {
            visit(selected);
            last = Some(selected);
        }
        total -= token_width(tokens[start]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens() -> impl Strategy<Value = Vec<u64>> {
        let token = prop_oneof![3 => 0..4u64, 2 => (1 << 40)..(1 << 40) + 4u64];
        proptest::collection::vec(token, 0..120)
    }

    fn width_of(tokens: &[u64]) -> u32 {
        tokens.iter().map(|&token| token_width(token)).sum()
    }

    proptest! {
        /// Every run with the width contains a selected gram, and its choice depends on the run alone.
        #[test]
        fn every_run_contains_a_selected_gram(
            tokens in tokens(),
            before in tokens(),
            after in tokens(),
            run_width in 1u32..40,
        ) {
            let select = |tokens: &[u64]| {
                let mut grams = GramList::default();
                grams.fill_grams(tokens, index_width(run_width));
                let mut selected = Vec::new();
                visit_winnowed(tokens, &grams, run_width, |at| {
                    selected.push((at, grams.ends[at] as usize, grams.hashes[at]));
                });
                selected
            };
            let whole = [&before[..], &tokens, &after].concat();
            let (alone, inside) = (select(&tokens), select(&whole));
            for start in 0..tokens.len() {
                for end in start..=tokens.len() {
                    let run = &tokens[start..end];
                    let contains = |&&(at, until, _): &&(usize, usize, u64)| start <= at && until <= end;
                    let found = alone.iter().find(contains);
                    prop_assert!(found.is_some() || width_of(run) < run_width);
                }
            }
            for (at, until, hash) in alone {
                prop_assert!(inside.contains(&(at + before.len(), until + before.len(), hash)));
            }
        }

        #[test]
        fn gram_has_the_smallest_sufficient_width(tokens in tokens(), width in 1u32..12) {
            let mut grams = GramList::default();
            grams.fill_grams(&tokens, width);
            for (start, &end) in grams.ends.iter().enumerate() {
                let gram = &tokens[start..end as usize];
                prop_assert!(width_of(gram) >= width && width_of(&gram[..gram.len() - 1]) < width);
                let plain = gram.iter().zip(POSITION);
                let sum = plain.fold(0u64, |sum, (t, p)| sum.wrapping_add(t.wrapping_mul(p)));
                prop_assert_eq!(grams.hashes[start], mix_bits(sum));
            }
            prop_assert!(width_of(&tokens[grams.ends.len()..]) < width);
        }
    }

    #[test]
    fn few_grams_are_selected() {
        for (token, share) in [(1u64 << 40, 2.0 / 9.0), (0, 2.0 / 16.0)] {
            let values: Vec<u64> = (0..100_000)
                .map(|at| token + mix_bits(at) % 60_000)
                .collect();
            let mut grams = GramList::default();
            grams.fill_grams(&values, 10);
            let mut selected = 0;
            visit_winnowed(&values, &grams, 24, |_| selected += 1);
            let density = f64::from(selected) / values.len() as f64;
            assert!((density - share).abs() < 0.01, "{density} {share}");
        }
    }
}
