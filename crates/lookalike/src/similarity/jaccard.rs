//! Exact similarity of two sets of features.
//!
//! Cost: linear in the two sets, about a nanosecond per element, without branches that depend on the data.

use crate::types::Similarity;

/// Returns the number of features that two ascending lists of distinct features share.
///
/// ```
/// assert_eq!(lookalike::similarity::intersection(&[1, 2, 3], &[2, 3, 4]), 2);
/// ```
pub fn intersection(a: &[u64], b: &[u64]) -> usize {
    intersection_of_at_least(a, b, 0).unwrap_or(0)
}

/// Returns the number of shared features if it is at least `least`. It stops once that can no longer be
/// reached.
pub(super) fn intersection_of_at_least(a: &[u64], b: &[u64], least: usize) -> Option<usize> {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        if shared + (a.len() - i).min(b.len() - j) < least {
            return None;
        }
        let mut steps = STEPS_BETWEEN_CHECKS;
        while steps > 0 && i < a.len() && j < b.len() {
            let (x, y) = (a[i], b[j]);
            shared += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
            steps -= 1;
        }
    }
    (shared >= least).then_some(shared)
}

/// Number of steps between two checks of the reachable number.
const STEPS_BETWEEN_CHECKS: usize = 32;

/// Returns |A ∩ B| / |A ∪ B| of two ascending lists of distinct features; 0 if both are empty.
///
/// ```
/// assert_eq!(lookalike::similarity::jaccard_index(&[1, 2, 3], &[2, 3, 4]).get(), 0.5);
/// ```
pub fn jaccard_index(a: &[u64], b: &[u64]) -> Similarity {
    let shared = intersection(a, b);
    Similarity::from_ratio(shared, a.len() + b.len() - shared)
}

/// Returns |A ∩ B| / min(|A|, |B|) of two ascending lists of distinct features; 0 if one is empty.
///
/// ```
/// assert_eq!(lookalike::similarity::containment_index(&[2, 3], &[1, 2, 3, 4]).get(), 1.0);
/// ```
pub fn containment_index(a: &[u64], b: &[u64]) -> Similarity {
    Similarity::from_ratio(intersection(a, b), a.len().min(b.len()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn jaccard_equals_the_definition(
            a in proptest::collection::btree_set(0u64..300, 0..200),
            b in proptest::collection::btree_set(0u64..300, 0..200),
        ) {
            let list = |set: &BTreeSet<u64>| set.iter().copied().collect::<Vec<_>>();
            let shared = a.intersection(&b).count();
            let union = a.union(&b).count();
            let (a, b) = (list(&a), list(&b));
            prop_assert_eq!(intersection(&a, &b), shared);
            for least in shared.saturating_sub(1)..shared + 2 {
                let expected = (shared >= least).then_some(shared);
                prop_assert_eq!(intersection_of_at_least(&a, &b, least), expected);
            }
            let expected = if union == 0 { 0.0 } else { shared as f64 / union as f64 };
            prop_assert_eq!(jaccard_index(&a, &b).get(), expected);
            prop_assert_eq!(jaccard_index(&b, &a), jaccard_index(&a, &b));
            prop_assert!(containment_index(&a, &b) >= jaccard_index(&a, &b));
        }
    }
}
