//! Cosine and Euclidean distance of weighted features.
//!
//! Weights are integers: the numbers of occurrences, or steps of 1/65,536 if weights were given. Products are
//! summed exactly, so that the result depends neither on the order of features nor on the machine. The cosine
//! itself is one square root and one division of IEEE 754, which round in the same way everywhere. The root
//! of a square is exact, so for example a cosine of 4/5 is exactly the number that is written as 0.8. The
//! reported value is the value that is compared with the threshold.
//!
//! Cost: linear in the features, about a nanosecond each.

use crate::types::Similarity;

/// A feature and its weight, which is above 0.
pub type WeightedFeature = (u64, i64);

/// Returns A·B / (|A|·|B|) of two lists of distinct features with their weights, ascending by feature; 0 if
/// one is empty.
///
/// ```
/// // (4, 3) · (1, 0) / (5 · 1)
/// assert_eq!(lookalike::similarity::cosine_similarity(&[(1, 4), (2, 3)], &[(1, 1)]).get(), 0.8);
/// ```
pub fn cosine_similarity(a: &[WeightedFeature], b: &[WeightedFeature]) -> Similarity {
    let mut dot = 0i128;
    visit_common(a, b, |a, b| dot += i128::from(a) * i128::from(b));
    let (norm_a, norm_b) = (square_norm(a), square_norm(b));
    if dot <= 0 || norm_a == 0 || norm_b == 0 {
        return Similarity::from_ratio(0, 1);
    }
    let root = match norm_a.checked_mul(norm_b) {
        Some(product) => (product as f64).sqrt(),
        None => (norm_a as f64).sqrt() * (norm_b as f64).sqrt(),
    };
    Similarity::from_quotient(dot as f64, root)
}

/// Returns the length of A − B in units of the weights, for two lists as for [`cosine_similarity`].
///
/// ```
/// assert_eq!(lookalike::similarity::euclidean_distance(&[(1, 3)], &[(2, 4)]), 5.0);
/// ```
pub fn euclidean_distance(a: &[WeightedFeature], b: &[WeightedFeature]) -> f64 {
    let mut dot = 0i128;
    visit_common(a, b, |a, b| dot += i128::from(a) * i128::from(b));
    let squares = square_norm(a) + square_norm(b);
    // |A − B|² = |A|² + |B|² − 2 A·B, and is never below 0.
    ((squares as i128 - 2 * dot).max(0) as f64).sqrt()
}

fn square_norm(list: &[WeightedFeature]) -> u128 {
    let square = |&(_, weight): &WeightedFeature| u128::from(weight.unsigned_abs()).pow(2);
    list.iter().map(square).sum()
}

/// Calls `visit` with both weights of every feature that is in both lists.
fn visit_common(a: &[WeightedFeature], b: &[WeightedFeature], mut visit: impl FnMut(i64, i64)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        if x.0 == y.0 {
            visit(x.1, y.1);
        }
        i += usize::from(x.0 <= y.0);
        j += usize::from(y.0 <= x.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn list(counts: &BTreeMap<u64, i64>) -> Vec<WeightedFeature> {
        counts
            .iter()
            .map(|(&feature, &weight)| (feature, weight))
            .collect()
    }

    #[test]
    fn cosines_that_are_fractions_are_exact() {
        // (4, 3)·(1, 0) / 5, and the same with weights in steps.
        for scale in [1, 65_536, 1 << 30] {
            let a = [(1, 4 * scale), (2, 3 * scale)];
            assert_eq!(cosine_similarity(&a, &[(1, 1)]).get(), 0.8);
            assert_eq!(cosine_similarity(&[(1, scale)], &a).get(), 0.8);
            assert_eq!(cosine_similarity(&a, &[(2, 7)]).get(), 0.6);
            assert_eq!(cosine_similarity(&a, &a).get(), 1.0);
        }
        // Sets of 100 that share 79, 80 and 81.
        for shared in [79, 80, 81] {
            let set = |from: u64| (0..shared).chain(from..from + 100 - shared);
            let [a, b] = [1000, 2000].map(|from| set(from).map(|at| (at, 1)).collect::<Vec<_>>());
            assert_eq!(cosine_similarity(&a, &b).get(), shared as f64 / 100.0);
        }
        assert_eq!(cosine_similarity(&[], &[]).get(), 0.0);
        assert_eq!(cosine_similarity(&[(1, 5)], &[]).get(), 0.0);
    }

    #[test]
    fn distances_equal_worked_examples() {
        assert_eq!(euclidean_distance(&[(1, 3)], &[(2, 4)]), 5.0);
        assert_eq!(
            euclidean_distance(&[(1, 3), (2, 1)], &[(1, 3), (2, 1)]),
            0.0
        );
        assert_eq!(euclidean_distance(&[], &[(2, 4)]), 4.0);
    }

    proptest! {
        #[test]
        fn cosine_equals_the_definition(
            a in proptest::collection::btree_map(0u64..40, 1i64..9, 0..30),
            b in proptest::collection::btree_map(0u64..40, 1i64..9, 0..30),
        ) {
            let dot: i64 = a.iter().map(|(key, x)| x * b.get(key).unwrap_or(&0)).sum();
            let norm = |of: &BTreeMap<u64, i64>| of.values().map(|x| x * x).sum::<i64>() as f64;
            let expected = if dot == 0 { 0.0 } else { dot as f64 / (norm(&a) * norm(&b)).sqrt() };
            let found = cosine_similarity(&list(&a), &list(&b));
            prop_assert!((found.get() - expected).abs() < 1e-12);
            prop_assert_eq!(found, cosine_similarity(&list(&b), &list(&a)));
            prop_assert!(found.get() <= 1.0);
            let square = norm(&a) + norm(&b) - 2.0 * dot as f64;
            prop_assert!((euclidean_distance(&list(&a), &list(&b)) - square.sqrt()).abs() < 1e-9);
        }
    }
}
