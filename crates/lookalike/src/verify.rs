//! Exact similarity of two sets of features.
//!
//! Cost: linear in the two sets, about a nanosecond an element, without a branch that depends on
//! the data.

use crate::plan::{Measure, Plan};
use crate::types::Similarity;

/// How many features two ascending lists of distinct features share.
pub fn intersection(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    shared
}

/// |A ∩ B| / |A ∪ B| of two ascending lists of distinct features; 0 if both are empty.
pub fn jaccard(a: &[u64], b: &[u64]) -> Similarity {
    let shared = intersection(a, b);
    Similarity::ratio(shared, a.len() + b.len() - shared)
}

/// |A ∩ B| / min(|A|, |B|) of two ascending lists of distinct features; 0 if one is empty.
pub fn containment(a: &[u64], b: &[u64]) -> Similarity {
    Similarity::ratio(intersection(a, b), a.len().min(b.len()))
}

/// The similarity of two sets if it passes the check of the plan.
pub(crate) fn check(plan: &Plan, a: &[u64], b: &[u64]) -> Option<Similarity> {
    let (less, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let by_distance = plan.distance().is_some();
    let threshold = plan.threshold();
    match plan.settings().measure {
        Measure::Containment => {
            let shared = intersection(a, b);
            let union = a.len() + b.len() - shared;
            let near = by_distance || plan.candidate_threshold().admits(shared, union);
            let passes = near && threshold.admits(shared, less.len());
            passes.then(|| Similarity::ratio(shared, less.len()))
        }
        Measure::Jaccard | Measure::Sketch => {
            if !threshold.admits(less.len(), more.len()) {
                return None;
            }
            let shared = intersection(a, b);
            let union = a.len() + b.len() - shared;
            threshold
                .admits(shared, union)
                .then(|| Similarity::ratio(shared, union))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Method, Settings};
    use crate::recipe::Recipe;
    use crate::types::Threshold;

    /// Two lists that share `shared` features, with `a` and `b` of their own.
    fn lists(shared: u64, a: u64, b: u64) -> [Vec<u64>; 2] {
        [(0, a), (1 << 40, b)].map(|(from, own)| {
            let own = (1 << 20) + from..(1 << 20) + from + own;
            (0..shared).chain(own).collect()
        })
    }

    #[test]
    fn around_the_threshold_one_feature_decides() {
        let check = |measure, method, [a, b]: [Vec<u64>; 2]| {
            let threshold = Threshold::new(0.8).unwrap();
            let settings = Settings {
                threshold,
                method,
                measure,
                ..Settings::default()
            };
            let plan = Plan::new(&Recipe::default(), settings).unwrap();
            let found = check(&plan, &a, &b).map(Similarity::get);
            assert_eq!(check(&plan, &b, &a).map(Similarity::get), found);
            found
        };
        for measure in [Measure::Jaccard, Measure::Sketch] {
            let jaccard = |shared, a, b| check(measure, Method::Join, lists(shared, a, b));
            assert_eq!(jaccard(79, 21, 0), None);
            assert_eq!(jaccard(79, 10, 11), None);
            assert_eq!(jaccard(80, 20, 0), Some(0.8));
            assert_eq!(jaccard(80, 10, 10), Some(0.8));
            assert_eq!(jaccard(81, 0, 19), Some(0.81));
            assert_eq!(jaccard(0, 5, 5), None);
        }
        let containment =
            |shared, a, b| check(Measure::Containment, Method::Join, lists(shared, a, b));
        assert_eq!(containment(79, 21, 21), None);
        assert_eq!(containment(80, 20, 20), Some(0.8));
        assert_eq!(containment(81, 19, 19), Some(0.81));
        // A small set within a large one is near enough up to a Jaccard index of 0.8 / 1.2.
        assert_eq!(containment(80, 0, 40), Some(1.0));
        assert_eq!(containment(80, 0, 41), None);
        // Fingerprints have said already what is near.
        let near = check(Measure::Containment, Method::SimHash, lists(80, 0, 4000));
        assert_eq!(near, Some(1.0));
    }

    proptest! {
        #[test]
        fn equals_the_textbook(
            a in proptest::collection::btree_set(0u64..60, 0..40),
            b in proptest::collection::btree_set(0u64..60, 0..40),
        ) {
            let list = |set: &BTreeSet<u64>| set.iter().copied().collect::<Vec<_>>();
            let shared = a.intersection(&b).count();
            let union = a.union(&b).count();
            let (a, b) = (list(&a), list(&b));
            prop_assert_eq!(intersection(&a, &b), shared);
            let expected = if union == 0 { 0.0 } else { shared as f64 / union as f64 };
            prop_assert_eq!(jaccard(&a, &b).get(), expected);
            prop_assert_eq!(jaccard(&b, &a), jaccard(&a, &b));
            prop_assert!(containment(&a, &b) >= jaccard(&a, &b));
        }
    }
}
