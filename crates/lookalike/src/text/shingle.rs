//! n-grams of tokens as 64-bit features.

use crate::hash::{POSITION, mix};

/// Writes the feature of every window of `n` tokens; `features` must have room for just as many.
///
/// A feature is the finalised sum of the token values, each times the odd constant of its
/// position: a multilinear hash, so that order counts and no window is read twice.
#[inline(always)]
pub(crate) fn shingle(n: usize, tokens: &[u64], features: &mut [u64]) {
    match n {
        1 => windows::<1>(tokens, features),
        2 => windows::<2>(tokens, features),
        3 => windows::<3>(tokens, features),
        4 => windows::<4>(tokens, features),
        5 => windows::<5>(tokens, features),
        6 => windows::<6>(tokens, features),
        7 => windows::<7>(tokens, features),
        _ => windows::<8>(tokens, features),
    }
}

/// The feature of a single token.
#[inline(always)]
pub(crate) fn single(token: u64) -> u64 {
    mix(token.wrapping_mul(POSITION[0]))
}

#[inline(always)]
fn windows<const N: usize>(tokens: &[u64], features: &mut [u64]) {
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
        *feature = mix(sum);
    }
}
