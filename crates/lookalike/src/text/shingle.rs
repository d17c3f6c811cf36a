//! Features: n-grams of tokens as 64-bit hashes.

use crate::hash::{POSITION, mix_bits};

/// Writes the feature of every window of `n` tokens; `features` must have one entry for each.
///
/// A feature is the finalised sum of the token values, each multiplied by the odd constant of its position.
/// This multilinear hash depends on the order of the tokens.
#[inline(always)]
pub(crate) fn hash_shingles(n: usize, tokens: &[u64], features: &mut [u64]) {
    match n {
        1 => hash_windows::<1>(tokens, features),
        2 => hash_windows::<2>(tokens, features),
        3 => hash_windows::<3>(tokens, features),
        4 => hash_windows::<4>(tokens, features),
        5 => hash_windows::<5>(tokens, features),
        6 => hash_windows::<6>(tokens, features),
        7 => hash_windows::<7>(tokens, features),
        8 => hash_windows::<8>(tokens, features),
        _ => long_windows(n, tokens, features),
    }
}

/// Returns the feature of a single token.
#[inline(always)]
pub(crate) fn hash_single_token(token: u64) -> u64 {
    mix_bits(token.wrapping_mul(POSITION[0]))
}

#[inline(always)]
fn hash_windows<const N: usize>(tokens: &[u64], features: &mut [u64]) {
    let count = features.len();
    if count == 0 {
        return;
    }
    let shifted: [&[u64]; N] = std::array::from_fn(|at| &tokens[at..at + count]);
    for (at, feature) in features.iter_mut().enumerate() {
        let mut sum = 0u64;
        for position in 0..N {
            sum = sum.wrapping_add(shifted[position][at].wrapping_mul(POSITION[position]));
        }
        *feature = mix_bits(sum);
    }
}

/// Number of features that are summed together. They and their tokens stay in the first-level cache.
const BLOCK_FEATURES: usize = 512;

/// Writes the features for any `n`, with one pass over a block for each position.
#[inline(never)]
fn long_windows(n: usize, tokens: &[u64], features: &mut [u64]) {
    let starts = (0..).step_by(BLOCK_FEATURES);
    for (start, features) in starts.zip(features.chunks_mut(BLOCK_FEATURES)) {
        features.fill(0);
        for (tokens, factor) in (start..).map(|at| &tokens[at..]).zip(&POSITION[..n]) {
            for (feature, token) in features.iter_mut().zip(tokens) {
                *feature = feature.wrapping_add(token.wrapping_mul(*factor));
            }
        }
        for feature in features {
            *feature = mix_bits(*feature);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_windows_equal_short_ones() {
        for count in [0, 1, 2, 511, 512, 513, 1030] {
            let tokens: Vec<u64> = (0..count + 31).map(|at| mix_bits(at as u64 + 1)).collect();
            let check = |n: usize, short: fn(&[u64], &mut [u64])| {
                let tokens = &tokens[..count + n - 1];
                let (mut long, mut features) = (vec![7; count], vec![8; count]);
                long_windows(n, tokens, &mut long);
                short(tokens, &mut features);
                assert_eq!(long, features, "{count} windows of {n}");
            };
            check(1, hash_windows::<1>);
            check(2, hash_windows::<2>);
            check(8, hash_windows::<8>);
            check(9, hash_windows::<9>);
            check(24, hash_windows::<24>);
            check(32, hash_windows::<32>);
        }
    }
}
